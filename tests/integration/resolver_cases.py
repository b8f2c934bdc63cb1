"""One table of situations, each with the agent and the source that every implementation must find in it."""

from __future__ import annotations

from collections.abc import Callable

from tests.integration.resolver_places import PLACES
from tests.integration.resolver_site import DAY, Case, Site, stamp


def env(label: str, agent: str, source: str, **variables: str) -> Case:
    """Only environment variables; sticky says codex, so that falling through shows."""

    def build(site: Site) -> None:
        site.environ |= variables
        site.sticky(b"codex\n")

    return Case(f"env-{label}", agent, source, build)


def remuda(label: str, value: str, agent: str | None = None) -> Case:
    """A value of REMUDA_AGENT_BINARY: this agent, or refused."""
    source = "REMUDA_AGENT_BINARY" if agent else "sticky"
    return env(label, agent or "codex", source, REMUDA_AGENT_BINARY=value)


def reads(label: str, content: bytes | str | dict[str, object]) -> Case:
    """A context file that says claude and can be used."""
    return Case(f"context-{label}", "claude", "launcher_context", lambda site: site.context(content))


def skips(label: str, content: bytes | str | dict[str, object]) -> Case:
    """A context file that must be passed over, although claude stands in it; the default answers."""
    return Case(f"context-{label}", "copilot", "default", lambda site: site.context(content))


def started(label: str, fresh: bool, make: Callable[[], object], age: float = 0) -> Case:
    """A context file with a certain start time and age."""

    def build(site: Site) -> None:
        site.context({"launcher": "claude", "started_at": make()}, age=age)

    answer = ("claude", "launcher_context") if fresh else ("copilot", "default")
    return Case(f"age-{label}", *answer, build)


def padded(size: int) -> str:
    """A valid document of exactly so many bytes."""
    start = '{"launcher":"claude","pad":"'
    return start + "x" * (size - len(start) - 2) + '"}'


def nested(depth: int) -> str:
    """A document in which arrays lie that deep, the object included."""
    return '{"launcher":"claude","x":' + "[" * (depth - 1) + "]" * (depth - 1) + "}"


ENVIRONMENT = [
    remuda("plain", "claude", "claude"),
    remuda("upper-case", "CLAUDE", "claude"),
    remuda("mixed-case", "ClAuDe", "claude"),
    remuda("spaces-around", "   claude  ", "claude"),
    remuda("many-spaces-around", " " * 200 + "claude" + " " * 200, "claude"),
    remuda("built-in", "rehearsal", "rehearsal"),
    remuda("empty", ""),
    remuda("only-spaces", "     "),
    remuda("newline-at-end", "claude\n"),
    remuda("newline-at-start", "\nclaude"),
    remuda("tab-at-end", "claude\t"),
    remuda("carriage-return", "claude\r"),
    remuda("only-tab", "\t"),
    remuda("escape-character", "\x1bclaude"),
    remuda("delete-character", "claude\x7f"),
    remuda("inner-space", "cla ude"),
    remuda("two-names", "claude codex"),
    remuda("two-lines", "claude\ncodex"),
    remuda("no-break-space-around", "\u00a0claude\u00a0"),
    remuda("em-space-around", "\u2003claude"),
    remuda("next-line-character", "claude\x85"),
    remuda("prefix", "claud"),
    remuda("longer", "claude2"),
    remuda("substring", "laud"),
    remuda("path", "/usr/bin/claude"),
    remuda("relative-path", "./claude"),
    remuda("parent-path", "../claude"),
    remuda("dots", "..claude"),
    remuda("backslash", "claude\\"),
    remuda("extension", "claude.exe"),
    remuda("glob", "*"),
    remuda("glob-question-mark", "claud?"),
    remuda("option", "-claude"),
    remuda("shell-expansion", "$(echo claude)"),
    remuda("semicolon", "claude;"),
    remuda("quotes", "'claude'"),
    remuda("32-bytes", "c" * 32),
    remuda("33-bytes", "c" * 33),
    remuda("32-bytes-that-start-with-a-name", "claude".ljust(32, "-")),
    remuda("100-kilobytes", "claude" * 17000),
    remuda("cyrillic-look-alike", "сlaude"),
    remuda("full-width", "ｃｌａｕｄｅ"),
    remuda("dotless-i", "cop\u0131lot"),
    remuda("long-s", "rehear\u017fal"),
    remuda("combining-mark", "claude\u0301"),
    remuda("zero-width-space", "claude\u200b"),
    remuda("not-utf8", "claude\udcff"),
    env("amplihack", "claude", "AMPLIHACK_AGENT_BINARY", AMPLIHACK_AGENT_BINARY=" Claude "),
    env(
        "both",
        "claude",
        "REMUDA_AGENT_BINARY",
        REMUDA_AGENT_BINARY="claude",
        AMPLIHACK_AGENT_BINARY="amplifier",
    ),
    env(
        "first-invalid",
        "amplifier",
        "AMPLIHACK_AGENT_BINARY",
        REMUDA_AGENT_BINARY="gpt",
        AMPLIHACK_AGENT_BINARY="amplifier",
    ),
    env(
        "first-empty",
        "amplifier",
        "AMPLIHACK_AGENT_BINARY",
        REMUDA_AGENT_BINARY="",
        AMPLIHACK_AGENT_BINARY="amplifier",
    ),
    env("both-invalid", "codex", "sticky", REMUDA_AGENT_BINARY="gpt", AMPLIHACK_AGENT_BINARY="a/b"),
    env("lower-case-variable", "codex", "sticky", remuda_agent_binary="claude"),
]

DOCUMENTS = [
    reads("minimal", '{"launcher":"claude"}'),
    reads(
        "all-fields", {"launcher": "claude", "session_id": "01J9", "cwd": "/x", "amplihack_version": "0.7.4"}
    ),
    reads("white-space", ' \t\r\n{ "launcher" :\n"claude" } \n\n'),
    reads("upper-case", {"launcher": "CLAUDE"}),
    reads("spaces-around-name", {"launcher": "  claude "}),
    reads("escaped-letter", '{"launcher":"clau\\u0064e"}'),
    reads("escaped-letter-upper-hex", '{"launcher":"\\u0063l\\u0061ude","x":"\\u00E9\\u00e9"}'),
    reads("escaped-key", '{"l\\u0061uncher":"claude"}'),
    reads("all-escapes", '{"x":"\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000","launcher":"claude"}'),
    reads("surrogate-pair", '{"x":"\\ud83d\\ude00","launcher":"claude"}'),
    reads("lone-surrogate-elsewhere", '{"x":"\\ud83d","\\udc00\\ud800":1,"launcher":"claude"}'),
    reads("utf8-elsewhere", {"launcher": "claude", "cwd": "/home/zoë/😀/日本"}),
    reads("delete-character-elsewhere", '{"x":"\x7f","launcher":"claude"}'),
    reads("numbers", '{"x":[0,-0,1.5,-1.25e+3,1E5,0e0,10],"launcher":"claude"}'),
    reads("huge-number", '{"x":' + "9" * 6000 + ',"launcher":"claude"}'),
    reads("constants", '{"x":[true,false,null,{},[]],"launcher":"claude"}'),
    reads("duplicate-key-inside", '{"x":{"a":1,"a":2,"launcher":5},"launcher":"claude"}'),
    reads("launcher-inside-too", '{"x":{"launcher":"codex"},"launcher":"claude","y":[{"launcher":1}]}'),
    reads("key-in-other-case", '{"launcher":"claude","Launcher":"codex"}'),
    reads("percent-is-no-escape", '{"%C3%A9":1,"é":2,"%":3,"%25":4,"launcher":"claude"}'),
    reads("65536-bytes", padded(65536)),
    reads("6551-keys", '{"launcher":"claude"' + "".join(f',"{n:05}":1' for n in range(6550)) + "}"),
    reads("nested-64", nested(64)),
    reads("brackets-in-strings", '{"x":"' + "[{" * 100 + '\\"[[","launcher":"claude"}'),
    skips("65537-bytes", padded(65537)),
    skips("nested-65", nested(65)),
    skips("nested-20000", nested(20000)),
    skips("unclosed-20000", '{"launcher":"claude","x":' + "[" * 20000),
    skips("empty-file", b""),
    skips("1-byte", b"{"),
    skips("newline-only", b"\n"),
    skips("byte-order-mark", b'\xef\xbb\xbf{"launcher":"claude"}'),
    skips("utf16", '{"launcher":"claude"}'.encode("utf-16")),
    skips("bad-utf8", b'{"launcher":"claude","x":"\xff"}'),
    skips("overlong-utf8", b'{"launcher":"claude","x":"\xc0\xaf"}'),
    skips("overlong-utf8-3", b'{"launcher":"claude","x":"\xe0\x80\xaf"}'),
    skips("overlong-utf8-4", b'{"launcher":"claude","x":"\xf0\x80\x80\xaf"}'),
    skips("utf8-surrogate", b'{"launcher":"claude","x":"\xed\xa0\x80"}'),
    skips("utf8-beyond-unicode", b'{"launcher":"claude","x":"\xf4\x90\x80\x80"}'),
    skips("cut-utf8", b'{"launcher":"claude","x":"\xe2\x82"}'),
    skips("nul-byte", b'{"launcher":"claude","x":"\x00"}'),
    skips("nul-byte-at-end", b'{"launcher":"claude"}\x00'),
    skips("nul-byte-in-name", b'{"launcher":"claude\x00"}'),
    skips("escaped-nul-in-name", '{"launcher":"claude\\u0000"}'),
    skips("newline-in-string", '{"launcher":"claude","x":"a\nb"}'),
    skips("escaped-newline-in-name", '{"launcher":"claude\\n"}'),
    skips("tab-in-name", '{"launcher":"claude\\t"}'),
    skips("duplicate-launcher", '{"launcher":"claude","launcher":"claude"}'),
    skips("duplicate-other-key", '{"launcher":"claude","x":1,"x":1}'),
    skips("duplicate-by-escape", '{"launcher":"claude","l\\u0061uncher":"claude"}'),
    skips("duplicate-emoji-by-escape", '{"launcher":"claude","😀":1,"\\ud83d\\ude00":2}'),
    skips("duplicate-empty-key", '{"launcher":"claude","":1,"":2}'),
    skips("no-launcher", {"agent": "claude"}),
    skips("empty-object", "{}"),
    skips("empty-name", {"launcher": ""}),
    skips("blank-name", {"launcher": "   "}),
    skips("number", {"launcher": 5}),
    skips("null", {"launcher": None}),
    skips("list", {"launcher": ["claude"]}),
    skips("object", {"launcher": {"launcher": "claude"}}),
    skips("array-on-top", '["launcher","claude"]'),
    skips("string-on-top", '"claude"'),
    skips("number-on-top", "5"),
    skips("unknown-name", {"launcher": "unknown"}),
    skips("prefix-name", {"launcher": "claud"}),
    skips("longer-name", {"launcher": "claude2"}),
    skips("path-name", {"launcher": "bin/claude"}),
    skips("look-alike-name", {"launcher": "cl\u0430ude"}),
    skips("percent-name", {"launcher": "claude%20"}),
    skips("33-byte-name", {"launcher": "c" * 33}),
    skips("huge-name", {"launcher": "claude" * 10000}),
    skips("trailing-garbage", '{"launcher":"claude"}x'),
    skips("two-documents", '{"launcher":"claude"}{"launcher":"claude"}'),
    skips("trailing-comma", '{"launcher":"claude",}'),
    skips("trailing-comma-in-array", '{"launcher":"claude","x":[1,]}'),
    skips("comment", '{"launcher":"claude"} // note'),
    skips("single-quotes", "{'launcher':'claude'}"),
    skips("bare-key", '{launcher:"claude"}'),
    skips("missing-colon", '{"launcher" "claude"}'),
    skips("missing-brace", '{"launcher":"claude"'),
    skips("wrong-brace", '{"launcher":"claude"]'),
    skips("unclosed-string", '{"launcher":"claude'),
    skips("many-escaped-quotes", '{"launcher":"' + '\\"' * 30000),
    skips("bad-escape", '{"launcher":"claude","x":"\\x41"}'),
    skips("bad-unicode-escape", '{"launcher":"claude","x":"\\u00g1"}'),
    skips("short-unicode-escape", '{"launcher":"claude","x":"\\u41"}'),
    skips("leading-zero", '{"launcher":"claude","x":01}'),
    skips("bare-minus", '{"launcher":"claude","x":-}'),
    skips("plus-sign", '{"launcher":"claude","x":+1}'),
    skips("no-fraction-digits", '{"launcher":"claude","x":1.}'),
    skips("no-exponent-digits", '{"launcher":"claude","x":1e}'),
    skips("leading-point", '{"launcher":"claude","x":.5}'),
    skips("not-a-number", '{"launcher":"claude","x":NaN}'),
    skips("infinity", '{"launcher":"claude","x":-Infinity}'),
    skips("wrong-literal", '{"launcher":"claude","x":nul}'),
    skips("literal-in-upper-case", '{"launcher":"claude","x":True}'),
    skips("no-break-space", '{"launcher":"claude"}\u00a0'),
    skips("form-feed", '{"launcher":"claude"}\f'),
]

AGES = [
    started("now", True, lambda: stamp(0)),
    started("23h59m50s", True, lambda: stamp(DAY - 10)),
    started("24h-and-1s", False, lambda: stamp(DAY + 1)),
    started("future", True, lambda: stamp(-7 * DAY)),
    started("far-future", True, lambda: "9999-12-31T23:59:59Z"),
    started("long-ago", False, lambda: "2024-02-29T12:00:00Z"),
    started("first-year", False, lambda: "0001-01-01T00:00:00+23:59"),
    started("file-23h59m50s", True, lambda: stamp(0), age=DAY - 10),
    started("file-24h-and-1s", False, lambda: stamp(0), age=DAY + 1),
    started("file-from-the-future", True, lambda: stamp(0), age=-7 * DAY),
    started("file-very-old", False, lambda: stamp(0), age=400 * DAY),
    started("offset-ahead-fresh", True, lambda: stamp(DAY - 10, "+02:00", 7200)),
    started("offset-ahead-stale", False, lambda: stamp(DAY + 1, "+02:00", 7200)),
    started("offset-behind-fresh", True, lambda: stamp(DAY - 10, "-09:30", -34200)),
    started("offset-behind-stale", False, lambda: stamp(DAY + 1, "-09:30", -34200)),
    started("offset-minus-zero", True, lambda: stamp(0, "-00:00")),
    started("fraction", True, lambda: stamp(0, ".123Z")),
    started("long-fraction", True, lambda: stamp(0, ".123456789012Z")),
    started("fraction-and-offset", True, lambda: stamp(0, ".5+01:00", 3600)),
    started("lower-case", True, lambda: stamp(0, "z").lower()),
    started("future-leap-day", True, lambda: "2096-02-29T00:00:00Z"),
    started("no-leap-day", False, lambda: "2099-02-29T00:00:00Z"),
    started("no-leap-century", False, lambda: "2100-02-29T00:00:00Z"),
    started("leap-century", True, lambda: "2400-02-29T00:00:00Z"),
    started("april-31", False, lambda: "2099-04-31T00:00:00Z"),
    started("month-13", False, lambda: "2099-13-01T00:00:00Z"),
    started("month-0", False, lambda: "2099-00-01T00:00:00Z"),
    started("day-0", False, lambda: "2099-01-00T00:00:00Z"),
    started("year-0", False, lambda: "0000-01-01T00:00:00Z"),
    started("hour-24", False, lambda: "2099-01-01T24:00:00Z"),
    started("minute-60", False, lambda: "2099-01-01T00:60:00Z"),
    started("second-60", False, lambda: "2099-01-01T00:00:60Z"),
    started("offset-24h", False, lambda: "2099-01-01T00:00:00+24:00"),
    started("offset-minute-60", False, lambda: "2099-01-01T00:00:00+01:60"),
    started("no-offset", False, lambda: "2099-01-01T00:00:00"),
    started("offset-without-colon", False, lambda: "2099-01-01T00:00:00+0100"),
    started("date-only", False, lambda: "2099-01-01"),
    started("space-for-t", False, lambda: "2099-01-01 00:00:00Z"),
    started("empty-fraction", False, lambda: "2099-01-01T00:00:00.Z"),
    started("white-space-around", False, lambda: " 2099-01-01T00:00:00Z"),
    started("newline-at-end", False, lambda: "2099-01-01T00:00:00Z\n"),
    started("other-digits", False, lambda: "２099-01-01T00:00:00Z"),
    started("five-digit-year", False, lambda: "12099-01-01T00:00:00Z"),
    started("garbage", False, lambda: "yesterday"),
    started("empty", False, lambda: ""),
    started("number", False, lambda: 4102444800),
    started("null", False, lambda: None),
    started("list", False, lambda: ["2099-01-01T00:00:00Z"]),
]


def sticky(label: str, content: bytes, agent: str | None = None) -> Case:
    """A sticky file; when it is refused, the configuration says codex."""

    def build(site: Site) -> None:
        site.sticky(content)
        site.config('agent = "codex"\n')

    return Case(f"sticky-{label}", agent or "codex", "sticky" if agent else "config", build)


STICKY = [
    sticky("line", b"claude\n", "claude"),
    sticky("without-newline", b"claude", "claude"),
    sticky("upper-case-and-spaces", b"  CLAUDE \n", "claude"),
    sticky("1024-bytes", b"claude" + b" " * 1018, "claude"),
    sticky("1025-bytes", b"claude" + b" " * 1019),
    sticky("empty", b""),
    sticky("newline-only", b"\n"),
    sticky("two-newlines", b"claude\n\n"),
    sticky("two-lines", b"claude\ncodex\n"),
    sticky("carriage-return", b"claude\r\n"),
    sticky("tab", b"claude\t\n"),
    sticky("nul", b"claude\x00"),
    sticky("control-character", b"claude\x01"),
    sticky("not-utf8", b"claude\xff"),
    sticky("byte-order-mark", b"\xef\xbb\xbfclaude\n"),
    sticky("unknown", b"gpt\n"),
    sticky("path", b"bin/claude\n"),
    sticky("json", b'{"agent":"claude"}'),
]


def config(label: str, text: str, agent: str | None = None) -> Case:
    """A configuration file; when it names no agent, the only one installed is codex."""

    def build(site: Site) -> None:
        site.config(text)
        site.install("codex")

    return Case(f"config-{label}", agent or "codex", "config" if agent else "sole", build)


CONFIG = [
    config("double-quotes", 'agent = "claude"\n', "claude"),
    config("single-quotes", "agent = 'claude'\n", "claude"),
    config("tight", 'agent="claude"', "claude"),
    config("spread", '\t agent\t =  "claude" \t\n', "claude"),
    config("comments", '# agent = "amplifier"\n\nagent = "claude" # "not codex"\n', "claude"),
    config("after-another-key", 'prompt_delivery = "auto"\nagent = "claude"\n', "claude"),
    config("upper-case-and-spaces", 'agent = " Claude "\n', "claude"),
    config("byte-order-mark", '\ufeffagent = "claude"\n', "claude"),
    config("windows-line-ends", 'agent = "claude"\r\n[run]\r\n', "claude"),
    config("before-a-table", 'agent = "claude"\n[run]\ntimeout = 5.0\n', "claude"),
    config("empty-file", ""),
    config("empty-name", 'agent = ""\n'),
    config("unknown-name", 'agent = "gpt"\n'),
    config("path-name", "agent = '../claude'\n"),
    config("tab-in-name", 'agent = "claude\t"\n'),
    config("look-alike-name", 'agent = "сlaude"\n'),
    config("not-there", "[run]\ntimeout = 5.0\n"),
    config("name-in-a-table", '[runtimes.agent]\nbinary = "claude"\n'),
]


def installed(label: str, agent: str, source: str, *programs: str) -> Case:
    """Nothing but programs on PATH."""
    return Case(f"installed-{label}", agent, source, lambda site: site.install(*programs))


INSTALLED = [
    installed("none", "copilot", "default"),
    installed("one", "claude", "sole", "claude"),
    installed("two", "copilot", "default", "claude", "codex"),
    installed("all", "copilot", "default", "amplifier", "claude", "codex", "copilot"),
    installed("built-in-does-not-count", "codex", "sole", "codex", "rehearsal"),
    installed("only-built-in", "copilot", "default", "rehearsal"),
    installed("others-do-not-count", "codex", "sole", "codex", "gpt"),
]


CASES = [*ENVIRONMENT, *DOCUMENTS, *AGES, *STICKY, *CONFIG, *INSTALLED, *PLACES]
