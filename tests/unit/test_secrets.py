"""Whose keys an agent gets, and the file that they are kept in."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.core.environment import ENDPOINT
from remuda.core.errors import ConfigError, RefusedError, UsageError
from remuda.dispatch.agents import Agent
from remuda.operations.agentsecrets import secrets_for
from remuda.operations.environment import headless_environment, interactive_environment
from remuda.operations.world import World, open_world
from remuda.runtimes import registry
from remuda.secrets import store
from remuda.secrets.choice import choose

NAMES = st.sampled_from(["A", "B", "C", "D"])
PLACES = st.frozensets(NAMES)
ACCOUNTS = st.sampled_from([(("A",), ("B",)), (("A", "B"), ("C", "D")), (("A", "B", "C", "D"),), ()])
TWO = """
[agents.work]
runtime = "claude"
[agents.private]
runtime = "claude"
[agents.named]
runtime = "claude"
secrets = "nowhere"
"""


class TestChoice:
    @given(ACCOUNTS, PLACES, PLACES, PLACES, st.booleans(), st.booleans())
    def test_each_account_has_one_source_and_only_keys_that_are_there(
        self,
        accounts: tuple[tuple[str, ...], ...],
        environment: frozenset[str],
        scope: frozenset[str],
        common: frozenset[str],
        configured: bool,
        own: bool,
    ) -> None:
        chosen = choose(accounts, environment, scope, common, configured=configured, own=own)
        places = {"environment": environment, "scope": scope, "global": common}
        assert all(each.name in places[each.source] for each in chosen)
        assert not (own and any(each.source == "environment" for each in chosen))
        for account in accounts:
            assert len({each.source for each in chosen if each.name in account}) <= 1

    @pytest.mark.parametrize(
        ("configured", "own", "places", "source"),
        [
            (False, False, "esg", "environment"),
            (False, False, "sg", "scope"),
            (False, False, "g", "global"),
            (True, False, "esg", "scope"),
            (True, False, "eg", "environment"),
            (True, True, "eg", "global"),
            (True, True, "e", None),
        ],
    )
    def test_the_order_of_places(self, configured: bool, own: bool, places: str, source: str | None) -> None:
        found = choose(
            (("A", "B"),),
            "A" if "e" in places else "",
            "B" if "s" in places else "",
            "AB" if "g" in places else "",
            configured=configured,
            own=own,
        )
        assert {each.source for each in found} == ({source} if source else set())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.toml").write_text(TWO)
    return tmp_path


def world(folder: Path, **environ: str) -> World:
    return open_world({"REMUDA_HOME": str(folder), "PATH": "/bin", **environ}, folder)


def keep(folder: Path, scope: str, key: str, value: str) -> None:
    store.put(folder / "config" / "secrets.toml", scope, key, value, in_keyring=False)


def environment(folder: Path, agent: str, **environ: str) -> dict[str, str]:
    here = world(folder, **environ)
    plain = Agent(name="claude", runtime="claude", secrets="claude")
    chosen = plain if agent == "claude" else here.roster.get(agent)
    return headless_environment(here, chosen, registry.get("claude"), {})


class TestAgents:
    def test_two_accounts_of_one_runtime_side_by_side(self, folder: Path) -> None:
        keep(folder, "work", "ANTHROPIC_API_KEY", "w")
        keep(folder, "private", "CLAUDE_CODE_OAUTH_TOKEN", "p")
        work = environment(folder, "work", ANTHROPIC_AUTH_TOKEN="stray", ANTHROPIC_BASE_URL="kept")
        assert (work["ANTHROPIC_API_KEY"], work["ANTHROPIC_BASE_URL"]) == ("w", "kept")
        assert "stray" not in work.values()
        private = environment(folder, "private", ANTHROPIC_API_KEY="stray")
        assert private["CLAUDE_CODE_OAUTH_TOKEN"] == "p"
        assert "stray" not in private.values()

    def test_only_what_its_runtime_needs(self, folder: Path) -> None:
        for key in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "MY_OWN"):
            keep(folder, "global", key, f"v-{key}")
        assert secrets_for(world(folder), world(folder).roster.get("work"), registry.get("claude")) == {
            "ANTHROPIC_API_KEY": "v-ANTHROPIC_API_KEY"
        }

    def test_the_scope_comes_before_the_global_one_and_is_not_mixed_with_it(self, folder: Path) -> None:
        keep(folder, "work", "CLAUDE_CODE_OAUTH_TOKEN", "mine")
        keep(folder, "global", "ANTHROPIC_API_KEY", "everybody's")
        assert "everybody's" not in environment(folder, "work").values()
        assert environment(folder, "private")["ANTHROPIC_API_KEY"] == "everybody's"

    def test_an_agent_with_a_scope_of_its_own_inherits_no_secret(self, folder: Path) -> None:
        strays = {"ANTHROPIC_API_KEY": "1", "ANTHROPIC_CUSTOM_HEADERS": "2", "CLAUDE_CODE_CLIENT_KEY": "3"}
        harmless = {"CLAUDE_CODE_MAX_OUTPUT_TOKENS": "100", "ANTHROPIC_MODEL": "m"}
        environ = environment(folder, "named", **strays, **harmless)
        assert not strays.keys() & environ.keys()
        assert harmless.items() <= environ.items()

    def test_the_environment_counts_for_everybody_else(self, folder: Path) -> None:
        keep(folder, "claude", "ANTHROPIC_API_KEY", "kept")
        assert environment(folder, "work", ANTHROPIC_API_KEY="here")["ANTHROPIC_API_KEY"] == "here"
        assert environment(folder, "claude", ANTHROPIC_API_KEY="here")["ANTHROPIC_API_KEY"] == "here"
        assert environment(folder, "claude")["ANTHROPIC_API_KEY"] == "kept"

    def test_a_stand_in_endpoint_gets_no_key(self, folder: Path) -> None:
        keep(folder, "work", "ANTHROPIC_API_KEY", "real")
        keep(folder, "global", "CLAUDE_CODE_OAUTH_TOKEN", "real")
        given = {ENDPOINT: "http://127.0.0.1:1", "ANTHROPIC_AUTH_TOKEN": "real"}
        for agent in ("work", "private", "claude"):
            assert "real" not in environment(folder, agent, **given).values()

    @pytest.mark.parametrize("name", registry.names())
    def test_what_is_ours_never_reaches_an_agent(self, folder: Path, name: str) -> None:
        here = world(folder, REMUDA_DATABASE_URL="postgresql://u:pass@h/d")
        runtime = registry.get(name)
        agent = here.roster.named(name)[0]
        for environ in (
            headless_environment(here, agent, runtime, {}),
            interactive_environment(here, agent, runtime),
        ):
            assert not [value for value in environ.values() if "pass@" in value]

    def test_a_person_keeps_what_is_not_the_runtimes(self, folder: Path) -> None:
        keep(folder, "work", "ANTHROPIC_API_KEY", "w")
        here = world(folder, GITHUB_TOKEN="g", ANTHROPIC_API_KEY="stray")
        environ = interactive_environment(here, here.roster.get("work"), registry.get("claude"))
        assert (environ["GITHUB_TOKEN"], environ["ANTHROPIC_API_KEY"]) == ("g", "w")

    @pytest.mark.parametrize("name", registry.names())
    def test_every_runtime_says_which_keys_it_takes(self, name: str) -> None:
        keys = [key for account in registry.get(name).keys for key in account]
        assert keys
        assert len(keys) == len(set(keys))


class TestFile:
    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        return tmp_path / "config" / "secrets.toml"

    @given(value=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1))
    def test_any_value_comes_back_as_it_was(
        self, value: str, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        file = tmp_path_factory.mktemp("any") / "secrets.toml"
        if not value.strip():
            with pytest.raises(UsageError):
                store.put(file, "s", "K", value, in_keyring=False)
            return
        store.put(file, "s", "K", value, in_keyring=False)
        assert store.load(file).value("s", "K") == value

    def test_it_is_private_whatever_the_umask(self, file: Path) -> None:
        before = os.umask(0)
        try:
            store.put(file, "work", "A", "1", in_keyring=False)
        finally:
            os.umask(before)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700

    def test_comments_and_order_stay(self, file: Path) -> None:
        file.parent.mkdir()
        text = '# mine\n[scopes.work]  # the office\nA = "1"  # old\n\n[scopes.global]\nB = "2"\n'
        file.write_text(text)
        file.chmod(0o600)
        store.put(file, "work", "A", "new", in_keyring=False)
        assert file.read_text() == text.replace('"1"', '"new"')
        assert store.remove(file, "global", "B")
        assert "# mine" in file.read_text()
        assert "global" not in store.load(file).scopes
        assert not store.remove(file, "global", "B")

    @pytest.mark.parametrize("text", ['scopes.old.A = "1"\n', 'scopes = {old = {A = "1"}}\n', "[scopes]\n"])
    def test_one_that_was_written_by_hand_is_edited(self, file: Path, text: str) -> None:
        file.parent.mkdir()
        file.write_text(text)
        file.chmod(0o600)
        for scope in ("new.one", "old"):
            store.put(file, scope, "B", "2", in_keyring=False)
        assert {scope: store.load(file).value(scope, "B") for scope in ("new.one", "old")} == {
            "new.one": "2",
            "old": "2",
        }
        assert store.remove(file, "new.one", "B")

    @pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o644, 0o666])
    def test_one_that_others_can_reach_is_refused(self, file: Path, mode: int) -> None:
        store.put(file, "work", "A", "1", in_keyring=False)
        file.chmod(mode)
        with pytest.raises(RefusedError, match="others"):
            store.load(file)
        with pytest.raises(RefusedError):
            store.put(file, "work", "A", "2", in_keyring=False)
        file.chmod(0o600)
        assert store.load(file).value("work", "A") == "1"

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
    def test_one_of_somebody_else_is_refused(self, file: Path) -> None:
        store.put(file, "work", "A", "1", in_keyring=False)
        os.chown(file, 65534, 65534)
        with pytest.raises(RefusedError, match="another user"):
            store.load(file)

    def test_what_is_no_file_is_refused(self, file: Path) -> None:
        file.parent.mkdir()
        os.mkfifo(file, 0o600)
        with pytest.raises(RefusedError, match="plain"):
            store.load(file)

    @pytest.mark.parametrize(
        "text",
        [
            "[scopes.work]\nA = canary-1\n",
            '[scopes.work]\nA = "canary-1\n',
            "[scopes.work]\ncanary-1\n",
            '[scope.work]\n"canary-1" = 1\n',
            '[scopes.work]\nA = ["canary-1"]\n',
            '"canary-1" = 5\n',
            '[scopes.work]\nA = {keyring = "x", "canary-1" = 1}\n',
            '[scopes.work]\nA = "canary-1"\nA = "canary-1"\n',
        ],
    )
    def test_a_malformed_one_is_told_by_its_line_alone_and_left_alone(self, file: Path, text: str) -> None:
        file.parent.mkdir()
        file.write_text(text)
        file.chmod(0o600)
        with pytest.raises(ConfigError, match=r"line \d") as told:
            store.put(file, "work", "B", "1", in_keyring=False)
        assert "canary" not in str(told.value)
        assert file.read_text() == text

    def test_the_line_is_that_of_the_scope_that_is_wrong(self, file: Path) -> None:
        file.parent.mkdir()
        file.write_text('[scopes.a]\nA = "1"\n[scopes.b]\nA = "1"\nB = 2\n')
        file.chmod(0o600)
        with pytest.raises(ConfigError, match="line 5 "):
            store.load(file)

    @given(data=st.binary(max_size=200))
    def test_no_content_makes_it_fail_otherwise(
        self, data: bytes, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        file = tmp_path_factory.mktemp("any") / "secrets.toml"
        file.write_bytes(data)
        file.chmod(0o600)
        with contextlib.suppress(ConfigError):
            store.load(file)

    @pytest.mark.parametrize(
        ("scope", "key"), [("a b", "K"), ("", "K"), ("s", "K-1"), ("s", ""), ("s", "1K")]
    )
    def test_bad_names_are_not_repeated(self, file: Path, scope: str, key: str) -> None:
        with pytest.raises(UsageError) as told:
            store.put(file, scope, key, "v", in_keyring=False)
        assert not key or key not in told.value.message
        assert not file.exists()

    def test_its_values_have_no_text_form(self, file: Path) -> None:
        store.put(file, "work", "A", "canary", in_keyring=False)
        assert "canary" not in repr(store.load(file)) + str(store.load(file))
