"""Runtimes from files: what a file may say, what it turns into, and what is refused."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from remuda.core.errors import ConfigError, NotFoundError, RefusedError, UsageError
from remuda.core.events import ToolCall
from remuda.operations import matrix
from remuda.operations.runtimes import report
from remuda.runtimes import declared, shapes
from remuda.runtimes.base import Runtime, Turn
from remuda.runtimes.cell import Cell, Place
from remuda.runtimes.declaration import ChannelTable, CommandTable, Declaration, VersionTable
from remuda.runtimes.herd import Herd

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples/runtimes"
SMALL = """
name = "small"
title = "Small"
binary = "small"
install = "nothing"
stream = "text"
channels = [{ mode = "stdin" }]

[headless]
arguments = ["-q"]
ask = []
"""


def turn(**changes: object) -> Turn:
    plain = Turn(cwd=Path("/w"), scratch=Path("/s"), keep=Path("/k"), session="id")
    return msgspec.structs.replace(plain, **changes)


@pytest.fixture
def load(tmp_path: Path) -> Callable[[str], Runtime]:
    def loader(text: str) -> Runtime:
        path = tmp_path / "small.toml"
        path.write_text(text)
        return declared.load(path)

    return loader


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_the_examples_are_runtimes(path: Path) -> None:
    runtime = declared.load(path)
    assert runtime.name == path.stem
    assert runtime.stability == "experimental"
    assert {feature.state for feature in runtime.features.values()} <= {"documented", "no"}


def test_what_is_not_said_is_not_claimed(load: Callable[[str], Runtime]) -> None:
    runtime = load(SMALL)
    assert runtime.verified_version == "unverified"
    assert runtime.conduct.refuses == {"bypass", "read", "workspace"}
    assert not runtime.conduct.usage
    assert not runtime.conduct.tells_tools
    assert runtime.features["resume"].state == runtime.features["usage"].state == "no"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("title", "tilte"), "unknown field `tilte`"),
        (('"small"\ntitle', '"other"\ntitle'), "`$.name`"),
        (('binary = "small"', "binary = 1"), "`$.binary`"),
        (('stream = "text"', 'stream = "xml"'), "`$.stream`"),
        (('stream = "text"', 'stream = "acp"'), "`$.channels[0]`"),
        (('[{ mode = "stdin" }]', "[]"), "`$.channels`"),
        (('mode = "stdin"', 'mode = "argv"'), "need {prompt} - at `$.channels[0]`"),
        (('mode = "stdin"', 'mode = "tempfile"'), "need {prompt_file}"),
        (('mode = "stdin"', 'mode = "pigeon"'), "`$.channels[0].mode`"),
        (("ask = []", 'ask = ["{prompt}"]'), "{prompt}, only {cwd}"),
        (("ask = []", 'ask = { files = { "../x" = "" } }'), "`$.headless.ask.files`"),
        (("ask = []", 'ask = "yes"'), "`$.headless.ask`"),
        (("ask = []", "ask = []\n[version]\npattern = '('"), "`$.version.pattern`"),
        (("channels", "trouble = ['fine', '(']\nchannels"), "`$.trouble[1]`"),
        (("ask = []", 'environment = { A = "{b}" }\nask = []'), "{b}, only {cwd}"),
        (("ask = []", "ask = []\n[conduct]\nresume = true"), "`$.conduct.resume`"),
        (("ask = []", "ask = []\n[conduct]\nbrave = true"), "unknown field `brave`"),
        (("ask = []", "ask = []\n[[screens]]\nstate = 'ready'"), "`$.screens[0]`"),
        (("ask = []", "ask = []\n[[screens]]\nstate = 'ready'\nregex = ['(']"), "`$.screens[0]`"),
        (("ask = []", "ask = []\n[[screens]]\nstate = 'ready'\ncontains = ['>']\nkeys = ['y']"), "a dialog"),
        (("ask = []", "ask = ]"), "line 11"),
    ],
)
def test_a_mistake_is_told_with_file_and_place(
    load: Callable[[str], Runtime], tmp_path: Path, change: tuple[str, str], told: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(SMALL.replace(*change, 1))
    assert str(tmp_path / "small.toml") in caught.value.message
    assert told in caught.value.message


def test_what_is_needed_inside_a_sandbox(load: Callable[[str], Runtime]) -> None:
    assert load(SMALL).cell == Cell()
    table = '[sandbox]\nhome = ".small"\nhosts = ["example.org"]\nheld = { "a.json" = "{}", "hooks/" = "" }\n'
    cell = load(f'home_variable = "SMALL_HOME"\n{SMALL}\n{table}').cell
    assert cell.state == (Place(".small", "SMALL_HOME"),)
    assert cell.reads == (
        Place(".small", "SMALL_HOME", "a.json", kind="file", blank="{}"),
        Place(".small", "SMALL_HOME", "hooks"),
    )
    assert (cell.hosts, cell.verified) == (("example.org",), False)


@pytest.mark.parametrize("place", ["", "/", "/etc", "..", "a/../..", ".", "a//b"])
def test_a_place_inside_a_sandbox_is_below_the_home(load: Callable[[str], Runtime], place: str) -> None:
    with pytest.raises(ConfigError, match=r"\$\.sandbox"):
        load(f'{SMALL}\n[sandbox]\nhome = "{place}"\n')
    with pytest.raises(ConfigError, match=r"\$\.sandbox"):
        load(f'{SMALL}\n[sandbox]\nhome = "a"\nheld = {{ "{place}" = "" }}\n')


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "small.toml").mkdir()
    with pytest.raises(ConfigError, match="cannot read"):
        declared.load(tmp_path / "small.toml")


def test_a_turn_gets_the_groups_that_it_needs() -> None:
    qwen = declared.load(EXAMPLES / "qwen.toml")
    first = qwen.print_command(turn(permission="bypass", model="m", extra=("--more",)))
    assert first.arguments == (
        *("--output-format", "stream-json", "--session-id", "id"),
        *("--approval-mode", "yolo", "--model", "m", "--more"),
    )
    assert {name for name in first.env if not name.startswith("QWEN_TELEMETRY_")} == set()
    assert (first.files, first.preamble) == ((), "")
    later = qwen.print_command(turn(resume=True))
    assert later.arguments[2:] == ("--resume", "id", "--approval-mode", "default")


def test_an_access_bound_wins_over_a_bypass(load: Callable[[str], Runtime]) -> None:
    small = load(f'{SMALL}bypass = ["--yes"]\nread = ["--look"]\n')
    assert small.print_command(turn(permission="bypass")).arguments == ("-q", "--yes")
    assert small.print_command(turn(permission="bypass", access="read")).arguments == ("-q", "--look")


def test_system_prompts_and_endpoints_use_private_files() -> None:
    qwen = declared.load(EXAMPLES / "qwen.toml")
    made = qwen.print_command(
        turn(system_prompt="be brief", append_system_prompt="and kind", endpoint="http://e")
    )
    files = {file.name: file.content for file in made.files}
    assert made.env["QWEN_SYSTEM_MD"] == "/s/part-0.md"
    assert files["part-0.md"] == "be brief"
    assert made.preamble == "and kind"
    assert made.env["OPENAI_BASE_URL"] == "http://e/v1"
    assert made.env["QWEN_CODE_SYSTEM_SETTINGS_PATH"] == "/s/settings.json"
    assert "enableAutoUpdate" in files["settings.json"]
    assert "be brief" not in " ".join(made.arguments)


def test_what_a_file_has_no_group_for_is_refused(load: Callable[[str], Runtime]) -> None:
    small = load(SMALL)
    assert small.print_command(turn()).arguments == ("-q",)
    for changes in ({"permission": "bypass"}, {"access": "read"}, {"access": "workspace"}):
        with pytest.raises(RefusedError):
            small.print_command(turn(**changes))
    for changes in ({"resume": True}, {"model": "m"}, {"system_prompt": "x"}, {"endpoint": "http://e"}):
        with pytest.raises(UsageError):
            small.print_command(turn(**changes))


def test_a_lasting_folder_is_asked_for_where_it_is_used(load: Callable[[str], Runtime]) -> None:
    assert not load(SMALL).print_command(turn()).keeps
    kept = load(SMALL.replace('"-q"', '"--store={keep}"')).print_command(turn())
    assert (kept.keeps, kept.arguments) == (True, ("--store=/k",))


def test_braces_that_are_no_place_stay(load: Callable[[str], Runtime]) -> None:
    small = load(SMALL.replace('"-q"', "'{\"a\": {}}', '{cwd}'"))
    assert small.print_command(turn(cwd=Path("/{model}"))).arguments == ('{"a": {}}', "/{model}")


def test_a_prompt_is_disarmed(load: Callable[[str], Runtime]) -> None:
    disarm = load(f'disarm = "/!"\n{SMALL}').disarm
    assert [disarm(text) for text in ("/x", "!x", "x/", "")] == [" /x", " !x", "x/", ""]
    assert load(SMALL).disarm("/x") == "/x"
    assert load(SMALL).disarm("") == ""


def test_plain_text_is_the_answer() -> None:
    parser = shapes.parser("text")(turn(), "")
    told = [*parser.feed(b"one\r\n"), *parser.feed(b"two \xff")]
    assert len(told) == 2
    parser.hear(b"noise")
    parser.finish(None)
    assert (parser.state.text, parser.state.stop_reason) == ("one\ntwo \ufffd", "end_turn")
    assert parser.state.session == "id"
    silent = shapes.parser("text")(turn(), "")
    silent.finish(None)
    assert silent.state.stop_reason is None


RESULT = b'{"type":"result","result":"ok","usage":{"input_tokens":3}}'


@pytest.mark.parametrize(("counts", "resume"), [("turn", True), ("session", False)])
def test_tokens_of_a_turn_are_told(counts: shapes.Counts, resume: bool) -> None:
    parser = shapes.parser("claude-stream-json", counts)(turn(resume=resume), "")
    parser.feed(RESULT)
    parser.finish(None)
    assert parser.state.usage is not None
    assert parser.state.usage.input_tokens == 3


def test_tools_have_the_kinds_that_are_declared() -> None:
    parser = shapes.parser("claude-stream-json", "turn", {"run": "execute"})(turn(), "")
    blocks = b",".join(b'{"type":"tool_use","id":"1","name":"%s"}' % name for name in (b"run", b"go"))
    calls = list(parser.feed(b'{"type":"assistant","message":{"content":[%s]}}' % blocks))
    assert [call.kind for call in calls if isinstance(call, ToolCall)] == ["execute", "other"]


def test_tokens_of_a_session_are_not_those_of_a_turn() -> None:
    parser = shapes.parser("claude-stream-json", "session")(turn(resume=True), "")
    parser.feed(RESULT)
    parser.finish(None)
    assert (parser.state.text, parser.state.usage) == ("ok", None)


def test_a_failed_attempt_is_told_on_stderr_and_forgotten_with_the_answer() -> None:
    parser = shapes.parser("text", trouble=("attempt failed", "(try|call) failed: (.+)"))(turn(), "")
    parser.hear(b"all is well")
    assert parser.state.trouble is None
    for line, kind in ((b"attempt failed", "model"), (b"call failed: 401 no", "auth")):
        parser.hear(line)
        assert parser.state.trouble is not None
        assert parser.state.trouble.kind == kind
    assert parser.state.trouble.message == "401 no"
    parser.feed(b"An answer.")
    assert parser.state.trouble is None


def test_an_imitation_may_tell_its_error_as_an_object() -> None:
    parser = shapes.parser("claude-stream-json", "turn")(turn(), "")
    parser.feed(b'{"type":"result","is_error":true,"error":{"message":"[API Error: 401 no]"}}')
    assert parser.state.failure is not None
    assert (parser.state.failure.kind, parser.state.failure.message) == ("auth", "[API Error: 401 no]")


@pytest.mark.parametrize("shape", ["text", "acp", "claude-stream-json", "codex-jsonl", "gemini-stream-json"])
def test_every_shape_has_a_parser_that_never_raises(shape: shapes.Shape) -> None:
    parser = shapes.parser(shape, "turn")(turn(), "hello")
    for line in (b"", b"{", b"null", b"[]", b"\xff", b'{"type": 1}'):
        list(parser.feed(line))
        parser.hear(line)
    parser.say()
    parser.finish(None)


def test_a_herd_knows_files_by_their_names_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("rubbish")
    (tmp_path / "notes.txt").touch()
    herd = Herd(tmp_path)
    assert "mine" in herd
    assert "claude" in herd
    assert "notes" not in herd
    assert [*herd] == sorted(herd)
    assert len(herd) == len([*herd])
    assert "claude" in Herd(tmp_path / "missing")


def test_one_bad_file_is_a_problem_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("rubbish")
    (tmp_path / "small.toml").write_text(SMALL)
    (tmp_path / "claude.toml").write_text(SMALL)
    (tmp_path / "Bad Name.toml").write_text(SMALL)
    survey = Herd(tmp_path).survey()
    names = [runtime.name for runtime in survey.runtimes]
    assert "small" in names
    assert "bad" not in names
    assert names.count("claude") == 1
    assert len(survey.problems) == 3
    for name in ("bad.toml", "claude.toml", "Bad Name.toml"):
        assert sum(name in problem for problem in survey.problems) == 1
    with pytest.raises(NotFoundError, match="nobody"):
        Herd(tmp_path).get("nobody")


def test_the_tutorial_shows_the_examples_and_names_every_key() -> None:
    page = (ROOT / "docs/tutorial-runtime.md").read_text("utf-8")
    plugin = ROOT / "examples/plugin"
    for path in (
        *(EXAMPLES / "echo-agent", EXAMPLES / "echo.toml"),
        *(plugin / "pyproject.toml", plugin / "src/remuda_parrot/__init__.py"),
    ):
        assert f"\n{path.read_text('utf-8')}" in page, path.name
    tables = (Declaration, CommandTable, ChannelTable, VersionTable)
    keys = {field.encode_name for table in tables for field in msgspec.structs.fields(table)}
    assert [key for key in sorted(keys) if f"`{key}`" not in page and f"[{key}]" not in page] == []


def test_the_plugin_registers_what_it_says() -> None:
    project = tomllib.loads((ROOT / "examples/plugin/pyproject.toml").read_text("utf-8"))
    assert project["project"]["entry-points"]["remuda.runtimes"] == {"parrot": "remuda_parrot:RUNTIME"}


def test_the_matrix_believes_what_was_seen(load: Callable[[str], Runtime]) -> None:
    runtime = load(SMALL.replace("ask = []", "ask = []\nresume = []"))
    seen = {"channel.stdin": True, "events": True, "resume": False}
    told, tried = (
        matrix.markdown([made], installed=True).splitlines()[-1]
        for made in (report(runtime, "/bin/small", "1.2"), report(runtime, "/bin/small", "1.2", seen))
    )
    assert told == (
        "| `small` | 1.2 | unverified | experimental | stdin (documented) "
        "| documented | no | no | no | documented | no | no |"
    )
    assert tried == (
        "| `small` | 1.2 | unverified | experimental | stdin (verified on 1.2) "
        "| verified on 1.2 | no | no | no | no | no | no |"
    )
