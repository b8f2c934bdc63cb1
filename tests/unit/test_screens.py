"""What terminal screens mean: the recorded ones of every runtime, and the rules themselves."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from remuda.core.errors import ConfigError, NotFoundError
from remuda.runtimes import registry, screens
from remuda.runtimes.screens import Manifest, Rule, Screen, classify, load
from remuda.sessions import pane
from remuda.surfaces.cli.sessionscreen import screen

FIXTURES = Path(__file__).parent.parent / "fixtures" / "screens"
NOWHERE = Path("/nonexistent")
OTHERS = {"adversarial"}
STATES = ("dialog", "working", "ready", "loading")
ORDER = {"dialog": 0, "working": 1, "loading": 1, "ready": 2}


def described() -> list[str]:
    """The runtimes whose screens are described."""
    return [name for name in registry.names() if screens.shipped(name).exists()]


def recordings(name: str) -> list[Path]:
    return sorted((FIXTURES / name).glob("*.txt"))


def title_of(recording: Path) -> str:
    """The terminal's title, where it was recorded because nothing else tells the truth."""
    beside = recording.with_suffix(".title")
    return beside.read_text(encoding="utf-8").strip() if beside.exists() else ""


ALL = [path for name in described() for path in recordings(name)]
MANIFESTS = {name: load(name, NOWHERE) for name in described()}


def look(path: Path) -> Screen:
    return classify(MANIFESTS[path.parent.name], path.read_text(encoding="utf-8"), title_of(path))


@pytest.mark.parametrize("path", ALL, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_recorded_screen_is_what_its_name_says(path: Path) -> None:
    assert look(path).state == path.name.partition("-")[0]


@pytest.mark.parametrize("name", registry.names())
def test_every_runtime_with_a_terminal_has_its_screens_described(name: str) -> None:
    assert screens.shipped(name).exists(), "write its screens.toml and its walk in tools/screens"
    assert MANIFESTS[name].rules


@pytest.mark.parametrize("name", described())
def test_dialogs_are_asked_first_and_ready_last(name: str) -> None:
    order = [ORDER[rule.state] for rule in MANIFESTS[name].rules]
    assert order == sorted(order)


@pytest.mark.parametrize("name", described())
def test_rules_have_names_of_their_own(name: str) -> None:
    names = [rule.name for rule in MANIFESTS[name].rules]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", described())
def test_a_permission_question_is_never_answered_without_consent(name: str) -> None:
    safety = {"permission", "trust", "bypass", "hooks", "key"}
    asked = [rule for rule in MANIFESTS[name].rules if rule.kind in safety and rule.keys]
    assert all(rule.consent for rule in asked)


@pytest.mark.parametrize("name", ["claude", "codex", "copilot"])
def test_every_rule_was_seen_at_work(name: str) -> None:
    seen = {look(path).rule for path in recordings(name)}
    unseen = {rule.name for rule in MANIFESTS[name].rules} - seen
    assert not unseen


def test_recordings_hold_nothing_of_the_machine() -> None:
    for path in ALL:
        text = path.read_text(encoding="utf-8")
        assert "\x1b" not in text
        assert not re.search(r"/root\b|/home/\w+|remuda-agents", text), path


@given(st.sampled_from(sorted(MANIFESTS)), st.text())
@settings(max_examples=200, deadline=None)
def test_any_text_is_classified_and_always_the_same(name: str, text: str) -> None:
    first = classify(MANIFESTS[name], text)
    assert first == classify(MANIFESTS[name], text)
    assert first.state in STATES


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_colours_make_no_difference(data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(ALL))
    lines = path.read_text(encoding="utf-8").split("\n")
    coloured = "\r\n".join(f"\x1b[38;5;{len(line) % 200}m{line}\x1b[0m\x1b[K" for line in lines)
    assert classify(MANIFESTS[path.parent.name], coloured, title_of(path)) == look(path)


# the rules themselves


def manifest(*rules: Rule) -> Manifest:
    return Manifest(rules=rules)


def test_what_no_rule_knows_is_loading() -> None:
    assert classify(manifest(), "anything") == Screen(state="loading")


def test_the_first_rule_that_holds_decides() -> None:
    first = Rule(name="first", state="dialog", contains=("a",), keys=("Enter",), consent=True)
    second = Rule(name="second", state="ready", contains=("a",))
    found = classify(manifest(first, second), "a")
    assert (found.rule, found.keys, found.consent) == ("first", ("Enter",), True)
    assert classify(manifest(second, first), "a").rule == "second"


@pytest.mark.parametrize(
    ("region", "text", "holds"),
    [
        ("all", "x\n\n\n\n", True),
        ("bottom:2", "x\nb\n\n\n", True),
        ("bottom:2", "x\nb\nc\n\n", False),
        ("top:1", "x\nb", True),
        ("top:1", "b\nx", False),
    ],
)
def test_a_rule_looks_at_its_region(region: str, text: str, holds: bool) -> None:
    rule = Rule(name="it", state="ready", region=region, contains=("x",))
    assert (classify(manifest(rule), text).rule == "it") is holds


def test_all_conditions_of_a_rule_must_hold() -> None:
    rule = Rule(name="it", state="ready", contains=("a", "b"), some=("c", "d"), none=("e",), regex=r"^f\Z")
    assert classify(manifest(rule), "a b c\nf").rule == "it"
    for text in ("a c\nf", "a b\nf", "a b c e\nf", "a b c\nf g"):
        assert classify(manifest(rule), text).rule is None


def test_a_busy_title_takes_a_ready_back_and_nothing_else() -> None:
    known = Manifest(
        terminal=screens.Terminal(busy_title="^\\*"),
        rules=(
            Rule(name="asks", state="dialog", contains=("?",)),
            Rule(name="idle", state="ready", contains=(">",)),
        ),
    )
    assert classify(known, ">", "* work").state == "working"
    assert classify(known, ">", "work *").state == "ready"
    assert classify(known, "?", "* work").state == "dialog"


def test_a_title_takes_a_rule_back() -> None:
    between = (FIXTURES / "gemini" / "loading-between-processes.txt").read_text(encoding="utf-8")
    assert classify(MANIFESTS["gemini"], between).rule == "between processes"
    assert classify(MANIFESTS["gemini"], between, "◇  Ready (work)").rule == "ready"


def test_the_rules_of_a_user_come_first(tmp_path: Path) -> None:
    own = '[terminal]\nquit = "/bye"\n[[rule]]\nname = "mine"\nstate = "loading"\ncontains = ["❯"]\n'
    (tmp_path / "claude.toml").write_text(own)
    ours = MANIFESTS["claude"]
    both = load("claude", tmp_path)
    assert [rule.name for rule in both.rules] == ["mine", *(rule.name for rule in ours.rules)]
    assert both.terminal == msgspec.structs.replace(ours.terminal, quit="/bye")
    assert both.verified == ours.verified


def test_a_runtime_of_the_users_own_needs_a_file_of_theirs(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="mine"):
        load("mine", tmp_path)
    (tmp_path / "mine.toml").write_text('[[rule]]\nname = "prompt"\nstate = "ready"\nregex = \'^> \\Z\'\n')
    assert load("mine", tmp_path).rules[0].name == "prompt"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[[rule]]\nname = 'a'\nstate = 'redy'\ncontains = ['x']", "state"),
        ("[[rule]]\nname = 'a'\nstate = 'ready'\ncontains = ['x']\ncolour = 'red'", "colour"),
        ("[[rule]]\nname = 'a'\nstate = 'ready'", "says nothing"),
        ("[[rule]]\nname = 'a'\nstate = 'ready'\nregex = '('", "regex"),
        ("[[rule]]\nname = 'a'\nstate = 'ready'\nregion = 'left:3'\ncontains = ['x']", "region"),
        ("[[rule]]\nname = 'a'\nstate = 'ready'\ncontains = ['x']\nkeys = ['Enter']", "only a dialog"),
        ("[terminal]\npaste_limit = -1", "paste_limit"),
        ("[terminal]\nbusy_title = '('", "busy_title"),
        ("[terminal", "line 1"),
    ],
)
def test_a_malformed_file_is_named_with_the_field(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "claude.toml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load("claude", tmp_path)
    assert str(tmp_path / "claude.toml") in caught.value.message
    assert told in caught.value.message


TERMINAL = screens.Terminal(paste_limit=20, altered="\t", misread=r"\A\s*/", disarmed="!")


@pytest.mark.parametrize("text", ["plain", "two\nlines", "日本 🐎", "!not a command", "a/b", ""])
def test_a_text_that_can_be_pasted(text: str) -> None:
    assert screens.objection(TERMINAL, text) is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x" * 21, "21 bytes"),
        ("語" * 7, "21 bytes"),
        ("a\tb", "U+0009"),
        ("a\x1b[201~rm", "U+001B"),
        ("a\rb", "U+000D"),
        ("a\x9b201~", "U+009B"),
        ("\ud800", "U+D800"),
        (" /exit", "command"),
    ],
)
def test_a_text_that_cannot_be_pasted(text: str, told: str) -> None:
    assert told in (screens.objection(TERMINAL, text) or "")
    assert screens.objection(screens.Terminal(), "plain") is not None


def test_a_first_character_is_disarmed_where_a_space_does_it() -> None:
    assert screens.armoured(TERMINAL, "!ls") == " !ls"
    assert screens.armoured(TERMINAL, "ls!") == "ls!"


def test_the_command_prints_one_json_line(tmp_path: Path) -> None:
    capture = sorted(recordings("codex"))[0].read_bytes()
    env = {"REMUDA_HOME": str(tmp_path)}
    told = CliRunner().invoke(screen, ["--runtime", "codex", "--classify"], input=capture, env=env)
    assert told.exit_code == 0, told.output
    assert told.stdout.count("\n") == 1
    assert told.stdout.startswith('{"state":"dialog","rule":"')
    assert set(msgspec.json.decode(told.stdout)) == {"state", "rule", "kind"}


def test_the_command_says_that_nothing_is_known_of_a_screen(tmp_path: Path) -> None:
    env = {"REMUDA_HOME": str(tmp_path)}
    told = CliRunner().invoke(screen, ["--runtime", "claude", "--classify"], input=b"\xff\xfe$ ", env=env)
    assert msgspec.json.decode(told.stdout) == {"state": "loading", "rule": None, "kind": ""}


def test_the_command_reads_the_rules_of_the_user(tmp_path: Path) -> None:
    folder = tmp_path / "config" / "screens"
    folder.mkdir(parents=True)
    (folder / "claude.toml").write_text('[[rule]]\nname = "mine"\nstate = "working"\ncontains = ["$"]\n')
    env = {"REMUDA_HOME": str(tmp_path)}
    told = CliRunner().invoke(screen, ["--runtime", "claude", "--classify"], input=b"$ ", env=env)
    assert msgspec.json.decode(told.stdout)["rule"] == "mine"


ASKED = Screen(state="dialog", rule="trust", kind="trust", keys=("Down", "Enter"))
CHOSEN = Screen(state="dialog", rule="trust-chosen", kind="trust", keys=("Enter",))
UNKNOWN = Screen(state="loading")


@pytest.mark.parametrize(
    ("key", "now", "changed", "soon", "late"),
    [
        ("Down", ASKED, False, None, False),
        ("Down", ASKED, True, None, False),
        ("Down", UNKNOWN, True, None, False),
        ("Down", CHOSEN, True, True, True),
        ("n", ASKED, False, None, False),
        ("n", ASKED, True, True, True),
        ("1", ASKED, False, None, True),
        ("1", ASKED, True, True, True),
    ],
)
def test_a_key_counts_when_it_has_shown(
    key: str, now: Screen, changed: bool, soon: bool | None, late: bool
) -> None:
    assert pane.taken(key, ASKED, now, changed=changed, late=False) is soon
    assert pane.taken(key, ASKED, now, changed=changed, late=True) is late


@pytest.mark.parametrize("name", registry.names())
def test_where_an_arrow_answers_another_rule_tells_that_it_moved(name: str, tmp_path: Path) -> None:
    rules = load(name, tmp_path).rules
    arrows = [rule for rule in rules if {"Up", "Down"} & {*rule.keys[:-1]}]
    for rule in arrows:
        assert any(other.kind == rule.kind and other.keys == ("Enter",) for other in rules), rule.name
