"""The other verbs from the outside: their documents, their words, their exit codes."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from tests.support import PYTHON, SHELL, Site, Terminal, python

from remuda.runtimes import registry
from remuda.surfaces.cli.overview import AGENTS, VERBS

NAMES = [
    *("aider", "amplifier", "claude", "codex", "copilot", "gemini"),
    *("hermes", "openclaw", "opencode", "pi", "rehearsal"),
]
HELP = """
import contextlib, io, json
from remuda.surfaces.cli.main import PLACES, run
pages = {}
commands = [f"config {name}" for name in ("list", "get", "set", "unset")]
commands += [f"guard {name}" for name in ("check", "explain", "log")]
for name in ["", *PLACES, *commands]:
    with contextlib.redirect_stdout(io.StringIO()) as page:
        code = run([*name.split(), "--help"])
    pages[name] = [code, page.getvalue()]
print(json.dumps(pages))
"""


@pytest.fixture(scope="module")
def pages() -> dict[str, tuple[int, str]]:
    found: dict[str, tuple[int, str]] = json.loads(python(HELP))
    return found


@pytest.mark.parametrize("verb", [name for name, _, _ in VERBS])
def test_every_verb_explains_itself(pages: dict[str, tuple[int, str]], verb: str) -> None:
    code, page = pages[verb]
    assert code == 0
    usage, _, rest = page.partition("\n\n")
    assert f"remuda {verb}" in usage
    assert len(rest.split("Options:")[0].split()) >= 6
    assert "--help" in page


def test_the_overview_names_every_verb(pages: dict[str, tuple[int, str]]) -> None:
    overview = pages[""][1]
    for name, _, summary in VERBS:
        assert f"\n  {name} " in overview
        assert summary in " ".join(overview.split())


def test_the_overview_names_every_runtime(pages: dict[str, tuple[int, str]]) -> None:
    assert list(AGENTS) == [runtime.name for runtime in registry.all_runtimes() if not runtime.built_in]
    assert f"Built in: {', '.join(AGENTS)}." in " ".join(pages[""][1].split())


def test_every_runtime_is_a_verb_of_its_own(site: Site) -> None:
    for name in AGENTS:
        site.program(registry.get(name).binary, f'{SHELL}echo "{name} got $*"\n')
        assert site.remuda(name, "--help", "-x").stdout == f"{name} got --help -x\n"


@pytest.mark.parametrize("verb", ["run", "launch", "rehearse", "config"])
def test_the_verbs_with_many_ways_show_examples(pages: dict[str, tuple[int, str]], verb: str) -> None:
    assert "Examples:" in pages[verb][1]
    assert f"remuda {verb} " in pages[verb][1].partition("Examples:")[2]


def test_an_unknown_verb_suggests_the_nearest(site: Site) -> None:
    ended = site.remuda("docter")
    assert ended.code == 2
    assert "Did you mean 'doctor'?" in ended.stderr
    assert "Did you mean" not in site.remuda("zzz").stderr


def test_which_and_use(site: Site) -> None:
    assert site.remuda("which").stdout == "copilot\n"
    used = site.remuda("use", " Codex ")
    assert (used.code, used.stdout) == (0, "")
    assert "codex is now your default agent" in used.stderr
    assert site.remuda("which").stdout == "codex\n"
    document = site.remuda("which", "--json").json
    assert (document["agent"], document["source"]) == ("codex", "sticky")
    assert isinstance(document["explain"], list)
    won = [row for row in document["explain"] if row["outcome"] == "won"]
    assert [row["source"] for row in won] == ["sticky"]


def test_use_says_when_a_stronger_source_wins(site: Site) -> None:
    ended = site.remuda("use", "codex", REMUDA_AGENT_BINARY="claude")
    assert "claude is active nevertheless: REMUDA_AGENT_BINARY is stronger" in ended.stderr
    assert site.remuda("use", "nobody").code == 4
    assert site.remuda("which").stdout == "codex\n"


def test_explain_accounts_for_every_source(site: Site) -> None:
    ended = site.remuda("which", "--explain", AMPLIHACK_AGENT_BINARY="bad name!", REMUDA_AGENT_BINARY="")
    for source in ("explicit", "REMUDA_AGENT_BINARY", "AMPLIHACK_AGENT_BINARY", "launcher_context", "sticky"):
        assert source in ended.stdout
    assert "rejected" in ended.stdout
    assert "bad name!" not in ended.stdout + ended.stderr


def test_the_shell_snippet_is_a_shell_program(site: Site) -> None:
    snippet = site.remuda("which", "--shell-snippet").stdout
    subprocess.run(["sh", "-n"], input=snippet.encode(), check=True)


def test_agents_and_runtimes_keep_their_keys(site: Site) -> None:
    site.program("claude", f"{SHELL}echo '2.1.325 (Claude Code)'\n")
    agents = site.remuda("agents", "--json", ANTHROPIC_API_KEY="k").json["agents"]
    assert isinstance(agents, list)
    assert [agent["name"] for agent in agents] == NAMES
    statuses = {agent["name"]: agent["status"] for agent in agents}
    assert statuses == dict.fromkeys(NAMES, "not installed") | dict.fromkeys(
        ("claude", "rehearsal"), "callable"
    )
    assert all(agent.keys() >= {"name", "runtime", "status", "reason", "path", "active"} for agent in agents)
    assert [agent["name"] for agent in agents if agent["active"]] == ["claude"]
    runtimes = site.remuda("runtimes", "--json").json["runtimes"]
    assert isinstance(runtimes, list)
    assert [runtime["name"] for runtime in runtimes] == NAMES
    keys = {"name", "installed", "version", "verified_version", "channels"}
    assert all(runtime.keys() >= keys for runtime in runtimes)
    claude = runtimes[NAMES.index("claude")]
    assert (claude["installed"], claude["version"]) == (True, "2.1.325")
    assert {channel["mode"] for channel in claude["channels"]} == {"stdin", "argv"}
    told = site.remuda("agents").stdout
    assert "not installed" in told
    assert "hermes-agent[acp]" in told
    assert "2.1.325" in site.remuda("runtimes").stdout


def test_a_version_is_asked_for_once(site: Site) -> None:
    site.program("claude", f"{SHELL}echo asked >> {site.folder}/asked\necho 2.1.325\n")
    for _ in range(2):
        site.remuda("runtimes", "--json")
    assert (site.folder / "asked").read_text() == "asked\n"


def fake_claude(site: Site, flags: str, version: str = "2.1.325") -> None:
    site.program(
        "claude", f"{PYTHON}import sys\nprint('{version}' if '--version' in sys.argv else '{flags}')\n"
    )


FLAGS = (
    "--print --output-format --verbose --permission-mode --model --session-id --resume "
    "--system-prompt --append-system-prompt --input-format --permission-prompt-tool --settings "
    "--setting-sources --strict-mcp-config "
    "--system-prompt-file --append-system-prompt-file"
)


def test_a_healthy_machine_passes_twice_alike(site: Site) -> None:
    fake_claude(site, FLAGS)
    first, second = site.remuda("doctor"), site.remuda("doctor")
    assert (first.code, first.stderr) == (0, "")
    assert first.stdout == second.stdout
    assert "All checks passed." in first.stdout
    assert f"✓ claude 2.1.325 at {site.bin}/claude" in first.stdout
    assert "- codex: not installed" in first.stdout


def test_the_documented_prompt_delivery_block(site: Site) -> None:
    fake_claude(site, FLAGS)
    shown = site.remuda("doctor", AMPLIHACK_PROMPT_DELIVERY="tempfile").stdout
    block = shown[shown.index("Prompt delivery\n") :].split("\n\n")[0].splitlines()
    assert block[:3] == ["Prompt delivery", "  requested: tempfile", "  auto threshold: 4096 bytes"]
    assert [line.strip() for line in block[3:] if line.startswith("  ") and line[2] != " "] == NAMES
    claude = block[block.index("  claude") : block.index("  codex")]
    assert claude[1] == "    capabilities: stdin, argv"
    assert "    effective for long prompt: stdin" in claude
    assert claude[-1] == "    warning: requested tempfile is unsupported; degrading to stdin"
    assert "  requested: auto" in site.remuda("doctor").stdout.splitlines()


def test_the_diagnosis_as_a_document(site: Site) -> None:
    fake_claude(site, FLAGS)
    document = site.remuda("doctor", "--json").json
    assert document.keys() == {
        *("ok", "remuda_version", "active_agent", "active_source"),
        *("runtimes", "tmux", "prompt_delivery", "problems"),
    }
    assert document["ok"] is True
    runtimes = document["runtimes"]
    assert isinstance(runtimes, list)
    keys = {"name", "installed", "path", "version", "verified_version", "channels", "hooks", "connection"}
    assert all(runtime.keys() == keys | {"problems", "warnings"} for runtime in runtimes)


def test_a_missing_or_old_tmux_is_a_warning_and_no_problem(site: Site) -> None:
    def examined() -> tuple[dict[str, object], str]:
        document = site.remuda("doctor", "--json", REMUDA_AGENT_BINARY="rehearsal").json
        assert document["ok"] is True
        tmux = document["tmux"]
        assert isinstance(tmux, dict)
        return tmux, site.remuda("doctor", REMUDA_AGENT_BINARY="rehearsal").stdout

    tmux, shown = examined()
    assert (tmux["path"], tmux["version"]) == (None, None)
    assert (
        "warning: tmux is not installed: sessions in panes do not work; those over a connection do" in shown
    )
    program = site.program("tmux", f"{SHELL}echo tmux 3.4\n")
    tmux, shown = examined()
    assert tmux == {"path": str(program), "version": "3.4", "warnings": []}
    assert f"✓ tmux 3.4 at {program}" in shown
    site.program("tmux", f"{SHELL}echo tmux 2.9a\n")
    tmux, shown = examined()
    assert tmux["version"] == "2.9a"
    assert "warning: tmux 2.9a is too old" in shown
    assert "sessions in panes do not work" in shown
    site.program("tmux", f"{SHELL}exit 1\n")
    assert "warning: 'tmux -V' failed" in examined()[1]


def test_a_missing_agent_is_wrong_only_when_it_is_the_active_one(site: Site) -> None:
    missing = site.remuda("doctor")
    assert missing.code == 1
    assert "✗ the active agent copilot (from default) is not installed" in missing.stdout
    assert "1 problem(s) found." in missing.stdout
    assert site.remuda("doctor", REMUDA_AGENT_BINARY="rehearsal").code == 0


@pytest.mark.parametrize(
    ("flags", "version", "told"),
    [
        (FLAGS.replace("--setting-sources ", ""), "2.1.325", "no longer mentions --setting-sources"),
        (FLAGS.replace("--print ", "--print-all "), "2.1.325", "no longer mentions --print"),
        (FLAGS, "1.0.0", "older than"),
        (FLAGS, "unknown", "--version' gives no version"),
    ],
)
def test_what_has_drifted_is_a_problem(site: Site, flags: str, version: str, told: str) -> None:
    fake_claude(site, flags, version)
    ended = site.remuda("doctor")
    assert ended.code == 1
    assert told in ended.stdout


def test_a_version_that_was_not_verified_is_only_a_warning(site: Site) -> None:
    fake_claude(site, FLAGS, "2.1.999")
    ended = site.remuda("doctor")
    assert ended.code == 0
    assert "warning: version 2.1.999 was not verified" in ended.stdout


def test_the_doctor_tells_no_secret(site: Site) -> None:
    secret = "sk-do-not-tell"
    ended = site.remuda(
        "doctor", "--json", ANTHROPIC_API_KEY=secret, OPENAI_API_KEY=secret, REMUDA_PROMPT_DELIVERY=secret
    )
    assert secret not in ended.stdout + ended.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(site: Site, shell: str) -> None:
    ended = site.remuda("completion", shell)
    assert ended.code == 0
    assert "_REMUDA_COMPLETE" in ended.stdout
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=ended.stdout.encode(), check=True)


def test_completion_completes(site: Site) -> None:
    def complete(words: str, index: int) -> list[str]:
        ended = site.remuda(_REMUDA_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=str(index))
        return [line.partition(",")[2] for line in ended.stdout.splitlines()]

    assert complete("remuda ru", 1) == ["run", "runtimes"]
    assert complete("remuda cod", 1) == ["codex"]
    assert "--idle-timeout" in complete("remuda run --i", 2)
    assert complete("remuda completion z", 2) == ["zsh"]
    assert set(complete("remuda run --permission ", 3)) == {"ask", "bypass"}


@pytest.mark.parametrize("verb", ["agents", "runtimes", "doctor", "which --json", "config list", "--help"])
def test_a_reader_that_goes_away_is_no_drama(site: Site, verb: str) -> None:
    process = site.start(*verb.split(), stdin=subprocess.DEVNULL)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait() in (0, 1)
    process.stderr.close()


def test_colour_only_for_a_terminal_that_wants_it(site: Site) -> None:
    assert "\x1b" not in site.remuda("agents").stdout
    for env, coloured in (({}, True), ({"NO_COLOR": "1"}, False)):
        with Terminal(["remuda", "agents"], site.cwd, {**site.env, **env}) as terminal:
            assert terminal.end() == 0
            assert ("\x1b[" in terminal.shown) is coloured


def test_the_version_in_every_form(site: Site) -> None:
    shown = site.remuda("--version").stdout
    assert shown.startswith("remuda ")
    assert site.remuda("-v", "--version").stdout == shown


def test_a_folder_that_is_gone_is_told_in_one_line(site: Site) -> None:
    gone = site.folder / "gone"
    gone.mkdir()
    ended = subprocess.run(
        ["sh", "-c", 'rmdir "$PWD"; exec "$@"', "sh", sys.executable, "-m", "remuda", "which"],
        cwd=gone,
        env=site.env,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith("remuda: ")
    assert ended.stderr.count("\n") == 1
