"""Profiles: what a configuration means, and what it is refused for."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.core.dispatchconfig import SandboxConfig
from remuda.core.errors import ConfigError, RefusedError
from remuda.sandbox.cgroups import Hierarchy, groups, hierarchies
from remuda.sandbox.engine import Abilities, choose, obstacles
from remuda.sandbox.hosts import Host, allowed, host, public
from remuda.sandbox.network import outlets
from remuda.sandbox.profile import BUILT_IN, UnresolvableError, profiles, resolve
from remuda.sandbox.scene import resolved

ABLE = Abilities(bubblewrap="/usr/bin/bwrap", landlock=7)
MEMORY = {"memory": Hierarchy(2, "/sys/fs/cgroup", "/sys/fs/cgroup/me")}


def own(**fields: object) -> dict[str, SandboxConfig]:
    return {"mine": msgspec.convert(fields, SandboxConfig)}


class TestResolve:
    def test_the_built_in_ones(self) -> None:
        assert [each.name for each in profiles({})] == [
            "workspace",
            "read-only",
            "offline",
            "danger-full-access",
        ]
        assert resolve("workspace", {}).network == "open"
        assert resolve("offline", {}).network == "none"
        assert resolve("read-only", {}).workspace == "ro"
        assert [each.name for each in profiles({}) if not each.walls] == ["danger-full-access"]

    @pytest.mark.parametrize("name", ["", "nope", "Workspace", "Danger-Full-Access", "../workspace"])
    def test_an_unknown_name_is_refused(self, name: str) -> None:
        with pytest.raises(UnresolvableError, match="refusing to run without a sandbox") as caught:
            resolve(name, {})
        assert isinstance(caught.value, RefusedError)

    def test_ones_own_stands_on_a_built_in_one(self) -> None:
        mine = own(
            extends="offline",
            paths=[{"path": "~/data", "mode": "ro"}],
            network={"policy": "allowlist", "allow": ["*.Example.org", "10.0.0.1:8080"]},
            limits={"memory": "2GB", "timeout": 30, "process_count": 50},
            env={"allow": ["FOO_*"], "deny": ["BAR"]},
        )
        profile = resolve("mine", mine)
        assert (profile.extends, profile.workspace, profile.network) == ("offline", "rw", "allowlist")
        assert profile.allow == (Host(".example.org"), Host("10.0.0.1", 8080, private=True))
        assert (profile.limits.memory, profile.limits.processes) == (2 * 2**30, 50)
        assert (profile.passes, profile.drops) == (("FOO_*",), ("BAR",))

    @pytest.mark.parametrize(
        "fields",
        [
            {"limits": {"memory": "lots"}},
            {"limits": {"memory": ""}},
            {"limits": {"memory": "1"}},
            {"limits": {"memory": "-1GB"}},
            {"limits": {"memory": "٢GB"}},
            {"network": {"policy": "allowlist", "allow": ["http://example.org"]}},
            {"network": {"policy": "allowlist", "allow": ["example.org:0"]}},
            {"network": {"policy": "allowlist", "allow": ["example.org:port"]}},
            {"network": {"policy": "allowlist", "allow": ["*"]}},
            {"network": {"policy": "none", "allow": ["example.org"]}},
            {"network": {"policy": "open", "allow": ["example.org"]}},
        ],
    )
    def test_what_makes_no_sense_is_an_error(self, fields: dict[str, object]) -> None:
        with pytest.raises(ConfigError, match=r"sandboxes\.mine"):
            resolve("mine", own(**fields))

    @pytest.mark.parametrize("name", [*BUILT_IN, "-x", "a b", "A"])
    def test_names_keep_their_meaning(self, name: str) -> None:
        with pytest.raises(ConfigError):
            resolve("workspace", {name: SandboxConfig()})


class TestEngine:
    def test_bubblewrap_comes_first(self) -> None:
        assert choose(BUILT_IN["offline"], ABLE) == "bubblewrap"

    def test_landlock_is_taken_where_it_is_enough(self) -> None:
        able = Abilities(landlock=7)
        assert choose(BUILT_IN["workspace"], able) == "landlock"
        with pytest.raises(UnresolvableError, match="does not bound the network"):
            choose(BUILT_IN["offline"], able)

    @pytest.mark.parametrize(
        ("able", "reason"),
        [
            (Abilities(), "not installed"),
            (Abilities(landlock=5), "version 5"),
            (Abilities(bubblewrap="/b", fault="No permissions to create new namespace"), "No permissions"),
        ],
    )
    def test_where_nothing_works_nothing_runs(self, able: Abilities, reason: str) -> None:
        with pytest.raises(UnresolvableError, match=reason):
            choose(BUILT_IN["workspace"], able)

    def test_a_limit_without_its_control_group_is_refused(self) -> None:
        profile = resolve("mine", own(limits={"memory": "1GB"}))
        with pytest.raises(UnresolvableError, match="memory"):
            choose(profile, ABLE)
        assert choose(profile, msgspec.structs.replace(ABLE, groups=MEMORY)) == "bubblewrap"

    def test_a_setuid_bubblewrap_has_no_ways_out(self) -> None:
        able = msgspec.structs.replace(ABLE, setuid=True)
        assert not [*obstacles(BUILT_IN["workspace"], able, "bubblewrap")]
        assert [*obstacles(BUILT_IN["offline"], able, "bubblewrap")]


class TestPaths:
    ENVIRON = {"HOME": "/home/me", "DATA": "/srv/data"}  # noqa: RUF012

    @pytest.mark.parametrize(
        ("text", "path"),
        [
            ("~/x", "/home/me/x"),
            ("~", "/home/me"),
            ("$DATA/y", "/srv/data/y"),
            ("${DATA}", "/srv/data"),
            (".", "/project"),
            ("sub/../other", "/project/other"),
            ("/abs", "/abs"),
        ],
    )
    def test_spellings(self, text: str, path: str) -> None:
        assert resolved(text, Path("/project"), self.ENVIRON) == Path(path)

    @pytest.mark.parametrize("text", ["", "$NOPE/x", "~other/x", "a$HOME", "x\0y", "${HOME", "$"])
    def test_what_cannot_be_understood_is_refused(self, text: str) -> None:
        with pytest.raises(UnresolvableError):
            resolved(text, Path("/project"), self.ENVIRON)

    @given(st.text(max_size=40))
    def test_any_text_is_an_absolute_path_or_refused(self, text: str) -> None:
        try:
            path = resolved(text, Path("/project"), self.ENVIRON)
        except UnresolvableError:
            return
        assert path.is_absolute()
        assert ".." not in path.parts
        assert "\0" not in str(path)


class TestHosts:
    @pytest.mark.parametrize(
        ("entry", "name", "port", "reached"),
        [
            ("example.org", "example.org", 443, True),
            ("example.org", "EXAMPLE.org.", 80, True),
            ("example.org", "example.org", 22, False),
            ("example.org:22", "example.org", 22, True),
            ("example.org", "evil-example.org", 443, False),
            ("example.org", "a.example.org", 443, False),
            (".example.org", "a.example.org", 443, True),
            (".example.org", "example.org", 443, True),
            ("*.example.org", "a.b.example.org", 443, True),
            (".example.org", "example.org.evil.net", 443, False),
            (".example.org", "evilexample.org", 443, False),
            ("[::1]:8080", "::1", 8080, True),
        ],
    )
    def test_who_is_meant(self, entry: str, name: str, port: int, reached: bool) -> None:
        found = host(entry)
        assert found is not None
        assert (allowed((found,), name, port) is not None) is reached

    @pytest.mark.parametrize(
        "text",
        [
            *("127.0.0.1", "10.1.2.3", "169.254.169.254", "224.0.0.1", "::1", "fd00::1", "fe80::1"),
            *(
                "::ffff:10.0.0.1",
                "64:ff9b::7f00:1",
                "64:ff9b:1::7f00:1",
                "2002:a00:1::",
                "fec0::1",
                "::7f00:1",
            ),
        ],
    )
    def test_what_is_not_public(self, text: str) -> None:
        entry = host(f"[{text}]" if ":" in text else text)
        assert entry is not None
        assert entry.private
        from ipaddress import ip_address

        assert not public(ip_address(text))

    @given(st.text(max_size=60))
    def test_any_text_is_a_host_or_none(self, text: str) -> None:
        found = host(text)
        if found is not None:
            assert found.port is None or 0 < found.port < 65536
            assert not set(found.name) & set("/@ \r\n\0")
            assert host(str(found)) == found


class TestOutlets:
    def test_the_model_by_loopback_is_the_only_way_out(self) -> None:
        ways = outlets(BUILT_IN["offline"], "http://127.0.0.1:8099/v1", ("api.vendor.com",), {})
        assert (ways.shared, ways.ports, ways.egress, ways.env) == (False, (8099,), None, {})

    def test_a_model_elsewhere_is_reached_by_the_proxy(self) -> None:
        ways = outlets(BUILT_IN["offline"], "https://gateway.example.org", ("api.vendor.com",), {})
        assert ways.egress is not None
        assert ways.egress.allow == (Host("gateway.example.org", 443, private=True),)
        assert ways.env["HTTPS_PROXY"] == f"http://127.0.0.1:{ways.egress.port}"

    def test_the_vendor_where_there_is_no_endpoint(self) -> None:
        ways = outlets(
            BUILT_IN["offline"], None, ("*.vendor.com",), {"HTTPS_PROXY": "http://proxy.corp:8080"}
        )
        assert ways.egress is not None
        assert ways.egress.allow == (Host(".vendor.com"),)
        assert ways.egress.upstream == "http://proxy.corp:8080"

    def test_ones_own_list_and_the_port_of_the_model(self) -> None:
        mine = own(network={"policy": "allowlist", "allow": ["localhost:5432", "example.org"]})
        ways = outlets(resolve("mine", mine), "http://localhost:3128", (), {})
        assert ways.ports == (3128, 5432)
        assert ways.egress is not None
        assert ways.egress.port not in ways.ports

    @pytest.mark.parametrize(
        ("named", "spoken_to"),
        [
            ("proxy.corp:8080", "http://proxy.corp:8080"),
            ("me:word@proxy.corp", "http://me:word@proxy.corp"),
            ("https://proxy.corp", ""),
            ("socks5://proxy.corp:1080", ""),
        ],
    )
    def test_the_proxy_of_the_machine(self, named: str, spoken_to: str) -> None:
        ways = outlets(BUILT_IN["offline"], None, ("vendor.com",), {"https_proxy": named})
        assert ways.egress is not None
        assert ways.egress.upstream == spoken_to

    @pytest.mark.parametrize(
        "named", ["http://me:wo/rd@proxy", "http://me:word@proxy:99999", "http://[::1", ":80"]
    )
    def test_one_that_is_no_address_is_refused_without_a_word_of_it(self, named: str) -> None:
        with pytest.raises(UnresolvableError) as refused:
            outlets(BUILT_IN["offline"], None, ("vendor.com",), {"HTTPS_PROXY": named})
        assert named not in str(refused.value)
        assert "word" not in str(refused.value)

    def test_an_endpoint_that_is_none_is_refused(self) -> None:
        for endpoint in ("http://", "nonsense", "http://[::1", "http://a b/"):
            with pytest.raises(UnresolvableError):
                outlets(BUILT_IN["offline"], endpoint, (), {})


class TestControlGroups:
    def test_the_second_version(self) -> None:
        mounts = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
        found = hierarchies(mounts, "0::/user.slice/app.slice/run-1.scope\n")
        base = "/sys/fs/cgroup/user.slice/app.slice"
        assert found["memory"] == Hierarchy(2, base, f"{base}/run-1.scope")
        (group,) = groups(found, {"memory": 1000, "pids": 5, "cpu": 1024})
        assert group.base == base
        assert dict(group.settings)["memory.max"] == "1000"
        assert dict(group.settings)["cpu.weight"] == "39"

    def test_the_first_version_wins_where_it_has_the_controller(self) -> None:
        mounts = (
            "32 31 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
            "33 31 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
        )
        found = hierarchies(mounts, "4:memory:/box\n0::/\n")
        assert found["memory"] == Hierarchy(1, "/sys/fs/cgroup/memory/box", "/sys/fs/cgroup/memory/box")
        assert found["pids"].version == 2
