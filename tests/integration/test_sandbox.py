"""Agents behind walls: what they cannot touch, what they still can, and that nothing runs without walls."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest
from tests.integration.sandboxes import RUN, config, connects, inside, listener, said, scenario, with_model
from tests.support import Site, eventually, finish


@pytest.fixture(autouse=True)
def secrets(site: Site) -> None:
    """A home with something to hide, and a folder beside the one that is worked in."""
    for name in (".ssh/id_rsa", ".aws/credentials", ".claude/settings.json", "sibling/file", "notes.txt"):
        path = site.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("hidden treasure")


class TestWorkspace:
    def test_it_changes_its_folder_and_nothing_else(self, site: Site) -> None:
        (site.cwd / "escape").symlink_to("../sibling")
        outside = [
            site.folder / "outside.txt",
            site.folder / "sibling/new.txt",
            site.cwd / "escape/new.txt",
            site.home / "new.txt",
            Path("/usr/new-file-of-an-agent"),
            Path("/etc/new-file-of-an-agent"),
        ]
        tries = "; ".join(f"(echo x > {path}) 2>/dev/null && echo BROKE {path}" for path in outside)
        text = said(inside(site, "workspace", f"echo hello > inside.txt; {tries}; echo tried"))
        assert (site.cwd / "inside.txt").read_text() == "hello\n"
        assert "BROKE" not in text
        assert "tried" in text
        assert not [path for path in outside if path.exists()]

    def test_the_home_is_not_seen(self, site: Site) -> None:
        reads = "cat ~/.ssh/id_rsa ~/.aws/credentials ~/.claude/settings.json ~/notes.txt ../sibling/file"
        state = f"cat {site.home}/state/* {site.home}/config/*; cat /etc/shadow; ls /root /home"
        text = said(inside(site, "workspace", f"{reads}; {state}; echo tried"))
        assert "treasure" not in text
        assert "shadow: No such file" in text
        assert "tried" in text

    def test_temporary_files_are_its_own(self, site: Site) -> None:
        mine = site.folder.parent / "mine.tmp"
        mine.write_text("treasure")
        text = said(
            inside(site, "workspace", f"cat {mine}; echo x > /tmp/of-an-agent && cat /tmp/of-an-agent")
        )
        assert "treasure" not in text
        assert "x" in text.split()
        assert not Path("/tmp/of-an-agent").exists()

    def test_processes_outside_are_neither_seen_nor_signalled(self, site: Site) -> None:
        with subprocess.Popen(["sleep", "60"]) as bystander:
            try:
                look = f"kill -0 {bystander.pid} 2>/dev/null && echo SIGNALLED; ls -d /proc/[0-9]* | wc -l"
                text = said(inside(site, "workspace", look))
            finally:
                bystander.kill()
        assert "SIGNALLED" not in text
        assert int(text.split()[-1]) < 10

    def test_it_has_no_rights_of_its_own(self, site: Site) -> None:
        text = said(inside(site, "workspace", "cat /proc/self/status"))
        rights = dict(line.split(":\t") for line in text.splitlines() if ":\t" in line)
        assert int(rights["CapEff"], 16) == int(rights["CapPrm"], 16) == 0
        assert rights["NoNewPrivs"] == "1"

    def test_the_kernel_is_not_told_anything(self, site: Site) -> None:
        """Root may write there without any rights; ``core_pattern`` would name a program."""
        others = "-path '/proc/[0-9]*' -prune -o -path /proc/pressure -prune"
        find = f"find /proc {others} -o -type f -writable -print; echo tried"
        assert said(inside(site, "workspace", find)).split() == ["tried"]

    def test_a_link_to_the_working_folder_is_no_way_out(self, site: Site) -> None:
        link = site.folder / "link"
        link.symlink_to(site.cwd)
        text = said(inside(site, "workspace", "echo x > here.txt; ls -A ..", "--cwd", str(link)))
        assert not {*text.split()} & {"sibling", "notes.txt", ".ssh"}
        assert (site.cwd / "here.txt").exists()

    def test_tools_in_the_working_folder_belong_to_the_work(self, site: Site) -> None:
        for name in ("node_modules/.bin", ".venv/bin"):
            (site.cwd / name).mkdir(parents=True)
        site.env["PATH"] += f":{site.cwd}/node_modules/.bin:{site.cwd}/.venv/bin:/bin"
        told = inside(
            site, "workspace", "touch node_modules/new .venv/new", VIRTUAL_ENV=str(site.cwd / ".venv")
        )
        said(told)
        assert (site.cwd / "node_modules/new").exists()
        assert (site.cwd / ".venv/new").exists()

    def test_the_network_is_open(self, site: Site) -> None:
        with listener() as somebody:
            assert "welcome" in said(inside(site, "workspace", connects(somebody.port)))
            assert somebody.count == 1

    def test_a_guarded_run_is_walled_in_too(self, site: Site) -> None:
        told = scenario(site, "echo x > inside.txt; cat ~/notes.txt")
        run = ("run", "--agent", "rehearsal", "--capability", "builder", "--json", "--sandbox", "workspace")
        ended = site.remuda(*run, "go", REHEARSAL_SCENARIO=told)
        assert ended.code == 0, ended.stderr
        assert "treasure" not in str(ended.result["text"])


class TestReadOnly:
    def test_nothing_is_changed_but_the_agents_own_state(self, site: Site) -> None:
        site.write("old.txt", "old words")
        ended = inside(site, "read-only", "(echo x > new.txt) 2>&1; cat old.txt")
        assert "old words" in said(ended)
        assert not (site.cwd / "new.txt").exists()
        session = str(ended.events[0]["session"])
        again = inside(site, "read-only", "echo again", "--session", session)
        assert said(again).strip() == "again"


class TestOffline:
    def test_the_model_is_reached_and_nobody_else(self, site: Site) -> None:
        with listener() as somebody:
            ended = with_model(site, "offline", f"echo x > in.txt; {connects(somebody.port)}")
            assert "ConnectionRefusedError" in said(ended)
            assert somebody.count == 0
            assert (site.cwd / "in.txt").exists()
            assert "welcome" in said(with_model(site, "workspace", connects(somebody.port)))
            assert somebody.count == 1

    def test_there_is_no_interface_but_loopback(self, site: Site) -> None:
        text = said(inside(site, "offline", "cat /proc/net/dev"))
        interfaces = [line.split(":")[0].strip() for line in text.splitlines() if ":" in line]
        assert interfaces == ["lo"]


class TestNetworks:
    def test_hosts_of_a_list(self, site: Site) -> None:
        with listener() as listed, listener() as other:
            config(
                site,
                "[sandboxes.few]\nnetwork = { policy = 'allowlist', "
                f"allow = ['localhost:{listed.port}', 'example.org'] }}\n",
            )
            text = said(inside(site, "few", f"{connects(listed.port)}; {connects(other.port)}"))
            assert text.split() == ["welcome", "ConnectionRefusedError"]
            assert (listed.count, other.count) == (1, 0)
            ask = (
                "r=${HTTPS_PROXY#http://}; exec 3<>/dev/tcp/${r%:*}/${r#*:}; "
                'printf "CONNECT %s HTTP/1.1\\r\\n\\r\\n" TARGET >&3; cat <&3'
            )
            for target, reason in (
                ("evil.example:443", "host not on allowlist: evil.example:443"),
                ("example.org:22", "host not on allowlist: example.org:22"),
                (f"127.0.0.1:{other.port}", "host not on allowlist"),
            ):
                text = said(inside(site, "few", f"bash -c '{ask.replace('TARGET', target)}'"))
                assert text.startswith("HTTP/1.1 403 Forbidden")
                assert f"X-Deny-Reason: {reason}" in text
            assert other.count == 0

    def test_this_machine_by_loopback(self, site: Site) -> None:
        config(site, "[sandboxes.here]\nnetwork = { policy = 'loopback' }\n")
        with listener() as early:
            wait = f"{connects(early.port)}; touch started; sleep 3; read port < late; PORT"
            code = connects(0).replace(" 0)", " $port)")
            process_told = scenario(site, wait.replace("PORT", code))
            process = site.start(*RUN, "--sandbox", "here", "go", REHEARSAL_SCENARIO=process_told)
            eventually((site.cwd / "started").exists)
            with listener() as late:
                site.write("late", f"{late.port}\n")
                text = said(finish(process))
                assert text.split() == ["welcome", "welcome"]
                assert (early.count, late.count) == (1, 1)


class TestOwnProfiles:
    def test_paths(self, site: Site) -> None:
        site.write("keys/secret", "treasure")
        site.write("secret.txt", "treasure")
        (site.folder / "shared").mkdir()
        config(
            site,
            "[sandboxes.mine]\npaths = [{ path = '../shared', mode = 'rw' },"
            " { path = '~/sibling', mode = 'ro' }, { path = 'keys', mode = 'none' },"
            " { path = './secret.txt', mode = 'none' },"
            " { path = '~/.kube', mode = 'none' }]\n",
        )
        text = said(
            inside(
                site,
                "mine",
                "echo x > ../shared/new; cat ../sibling/file; echo; (echo x > ../sibling/new) 2>/dev/null; "
                "cat secret.txt keys/secret; echo y > keys/new || echo refused",
            )
        )
        assert text.count("treasure") == 1
        assert "refused" in text
        assert (site.folder / "shared/new").exists()
        assert not (site.folder / "sibling/new").exists()
        assert sorted(path.name for path in (site.cwd / "keys").iterdir()) == ["secret"]

    def test_rules_hold_whatever_is_moved_and_by_whatever_name(self, site: Site) -> None:
        site.write("deep/er/fixed", "mine")
        site.write("deep/keys/secret", "treasure")
        config(
            site,
            "[sandboxes.mine]\npaths = [{ path = 'deep/er/fixed', mode = 'ro' },"
            " { path = 'deep/keys', mode = 'none' }]\n",
        )
        link = site.folder / "link"
        link.symlink_to(site.cwd)
        names = f"deep {link}/deep {site.cwd}/deep"
        move = "for d in deep/er deep; do mv $d gone; done; mkdir -p deep/er; echo x > deep/er/fixed"
        text = said(
            inside(site, "mine", f"for d in {names}; do cat $d/keys/*; done; {move}", "--cwd", str(link))
        )
        assert "treasure" not in text
        assert (site.cwd / "deep/er/fixed").read_text() == "mine"

    def test_variables(self, site: Site) -> None:
        config(site, "[sandboxes.all]\nenv = { allow = ['*'] }\n")
        text = said(inside(site, "all", "env", MY_VALUE="1", REMUDA_DATABASE_URL="sqlite:gone"))
        assert "MY_VALUE=1" in text
        assert "REMUDA_DATABASE_URL" not in text
        config(site, "[sandboxes.mine]\nenv = { allow = ['MY_*'], deny = ['TERM', 'MY_SECRET'] }\n")
        text = said(inside(site, "mine", "env", MY_VALUE="1", MY_SECRET="2", OTHER="3"))
        names = {line.partition("=")[0] for line in text.splitlines()}
        assert "MY_VALUE" in names
        assert not names & {"TERM", "MY_SECRET", "OTHER"}

    def test_a_timeout(self, site: Site) -> None:
        config(site, "[sandboxes.mine]\nlimits = { timeout = 1 }\n")
        ended = inside(site, "mine", "sleep 60")
        assert (ended.code, ended.error["kind"]) == (3, "timeout")

    @pytest.mark.parametrize(
        ("limit", "command"),
        [
            ("memory = '200MB'", "head -c 600M /dev/zero | tail"),
            (
                "process_count = 20",
                "for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do sleep 5 & done",
            ),
        ],
    )
    def test_bounds(self, site: Site, limit: str, command: str) -> None:
        """They hold, or the profile is refused; which of the two it is depends on the machine."""
        config(site, f"[sandboxes.mine]\nlimits = {{ {limit} }}\n")
        holds = site.remuda("sandbox", "show", "mine", "--json").json["enforceable"]
        ended = inside(site, "mine", f"({command}) 2>&1; echo through $?")
        if not holds:
            assert ended.code == 5
        else:
            assert "through 0" not in str(ended.result["text"])
        groups = Path("/sys/fs/cgroup").rglob("remuda-*")
        assert not [each for each in groups if not Path("/proc", each.name.removeprefix("remuda-")).exists()]


class TestRefusals:
    @pytest.mark.parametrize(
        ("profile", "text", "told"),
        [
            ("nope", "", "no sandbox profile named 'nope'"),
            ("mine", "[sandboxes.mine]\npaths = [{ path = '~/missing', mode = 'ro' }]\n", "is not there"),
            ("mine", "[sandboxes.mine]\npaths = [{ path = '$NOPE/x', mode = 'rw' }]\n", "is not set"),
            ("mine", "[sandboxes.mine]\npaths = [{ path = '/', mode = 'ro' }]\n", "no walls"),
            ("mine", "[sandboxes.mine]\npaths = [{ path = '~/remuda/state', mode = 'ro' }]\n", "own folders"),
            ("mine", "[sandboxes.mine]\npaths = [{ path = 'link', mode = 'ro' }]\n", "leads by a link"),
            ("mine", "[sandboxes.mine]\npaths = [{ path = 'link/x', mode = 'none' }]\n", "leads by a link"),
            ("danger-full-access", "", "--unsafe-yes"),
        ],
    )
    def test_nothing_runs(self, site: Site, profile: str, text: str, told: str) -> None:
        config(site, text)
        (site.home / "state").mkdir(parents=True, exist_ok=True)
        (site.cwd / "link").symlink_to("../sibling")
        ended = inside(site, profile, "touch ran")
        assert ended.code == 5
        assert told in ended.stdout + ended.stderr
        assert not (site.cwd / "ran").exists()

    def test_a_folder_that_holds_the_home(self, site: Site) -> None:
        ended = inside(site, "workspace", "touch ran", "--cwd", str(site.folder))
        assert ended.code == 5
        assert not (site.folder / "ran").exists()

    @pytest.mark.parametrize("mode", ["run", "session"])
    def test_a_place_of_its_own_that_cannot_be_made(self, site: Site, mode: str) -> None:
        own = site.folder / "own"
        own.symlink_to("nowhere")
        start = ("session", "start", "one", "--agent", "rehearsal")
        asked = (*RUN, "go") if mode == "run" else start
        ended = site.remuda(*asked, "--sandbox", "workspace", REHEARSAL_HOME=str(own))
        assert ended.code == 5
        assert f"{own} cannot be walled in" in ended.stdout + ended.stderr

    def test_no_walls_by_intent(self, site: Site) -> None:
        said(inside(site, "danger-full-access", "touch ../outside", "--unsafe-yes"))
        assert (site.folder / "outside").exists()

    def test_an_agents_own_profile_holds_without_being_asked_for(self, site: Site) -> None:
        config(site, "[agents.tame]\nruntime = 'rehearsal'\nsandbox = 'read-only'\n")
        told = scenario(site, "touch new || echo refused")
        run = ("run", "--agent", "tame", "--permission", "bypass", "--json", "go")
        assert "refused" in said(site.remuda(*run, REHEARSAL_SCENARIO=told))
        assert not (site.cwd / "new").exists()


class TestEndings:
    @pytest.mark.parametrize("profile", ["workspace", "offline"])
    def test_nothing_is_left_when_remuda_is_killed(self, site: Site, profile: str) -> None:
        told = scenario(site, "setsid sleep 61.25 & touch started; trap '' TERM; while :; do sleep 1; done")
        process = site.start(*RUN, "--sandbox", profile, "go", REHEARSAL_SCENARIO=told)
        eventually((site.cwd / "started").exists)
        assert len(site.processes()) > 3
        process.kill()
        process.communicate()
        eventually(lambda: not site.processes())

    def test_what_an_agent_leaves_running_ends_with_it(self, site: Site) -> None:
        begun = time.monotonic()
        said(inside(site, "workspace", "(setsid sleep 60 >/dev/null 2>&1 &); echo left"))
        assert time.monotonic() - begun < 45
        eventually(lambda: not site.processes())

    def test_the_exit_code_of_the_program_arrives(self, site: Site) -> None:
        ended = inside(site, "workspace", "kill -9 $PPID")
        assert (ended.code, ended.error["kind"]) == (137, "crashed")


class TestVerb:
    def test_profiles_and_engines(self, site: Site) -> None:
        config(site, "[sandboxes.mine]\nextends = 'offline'\ndescription = 'my own'\n")
        listed = site.remuda("sandbox", "list", "--json").json["sandboxes"]
        assert isinstance(listed, list)
        assert [each["name"] for each in listed][-1] == "mine"
        assert {each["engine"] for each in listed} == {"bubblewrap", None}
        checked = site.remuda("sandbox", "check", "--json")
        assert checked.code == 0
        assert "bubblewrap" in site.remuda("sandbox", "check").stdout
        assert "my own" in site.remuda("sandbox", "show", "mine").stdout
        assert site.remuda("sandbox", "show", "nope").code == 4

    def test_a_profile_that_cannot_be_enforced_is_told(self, site: Site) -> None:
        config(site, "[sandboxes.mine]\npaths = [{ path = '~/missing', mode = 'rw' }]\n")
        ended = site.remuda("sandbox", "check")
        assert ended.code == 5
        assert "✗ mine" in ended.stdout
