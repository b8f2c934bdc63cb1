"""``git``: which verb, in which repository, and with which settings that make it run programs."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator

from remuda.guard.commands.contract import Call, Table
from remuda.guard.commands.gitscene import Scene
from remuda.guard.commands.operands import HERE, assignment, join, names
from remuda.guard.commands.options import Parsed, parse
from remuda.guard.commands.rows import strange
from remuda.guard.model import AnyEffect, Execute, Unknown, Word, literal

OPTIONS = """
    + -C: -c: -p|--paginate -P|--no-pager -v -h --git-dir: --work-tree: --namespace: --exec-path?
    --config-env: --super-prefix: --attr-source: --list-cmds: --bare --no-replace-objects --no-lazy-fetch
    --no-optional-locks --no-advice --literal-pathspecs --glob-pathspecs --noglob-pathspecs --icase-pathspecs
    --html-path --man-path --info-path --version --help --build-options
"""

RUNS = names(
    """
    core.pager core.editor core.sshcommand core.fsmonitor core.hookspath core.askpass core.gitproxy
    core.alternaterefscommand pager.* diff.external diff.*.command diff.*.textconv difftool.*.cmd
    difftool.*.path mergetool.*.cmd mergetool.*.path merge.*.driver filter.*.clean filter.*.smudge
    filter.*.process credential.helper credential.*.helper gpg.program gpg.*.program sequence.editor
    interactive.difffilter uploadpack.packobjectshook remote.*.uploadpack remote.*.receivepack remote.*.vcs
    remote.*.proxy protocol.*.allow protocol.allow init.templatedir include.path includeif.* trailer.*.command
    trailer.*.cmd browser.*.cmd man.*.cmd web.browser instaweb.* submodule.*.update sendemail.* imap.tunnel
    guitool.*.cmd core.attributesfile tar.*.command ssh.variant gc.recentobjectshook
    """
)
"""Settings by which git comes to run a program, or to read others that may."""

VARIABLES = names(
    """
    GIT_PAGER PAGER GIT_EDITOR EDITOR VISUAL GIT_SEQUENCE_EDITOR GIT_SSH GIT_SSH_COMMAND GIT_PROXY_COMMAND
    GIT_EXTERNAL_DIFF GIT_ASKPASS SSH_ASKPASS GIT_EXEC_PATH GIT_TEMPLATE_DIR GIT_CONFIG_PARAMETERS
    GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM GIT_CONFIG
    """
)
"""Variables by which git comes to run a program."""

FILES = names(
    """
    GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_TRACE GIT_TRACE2 GIT_TRACE2_EVENT GIT_TRACE2_PERF GIT_TRACE_PACKET
    GIT_TRACE_PERFORMANCE GIT_TRACE_SETUP GIT_TRACE_PACK_ACCESS GIT_TRACE_CURL GIT_TRACE_PACKFILE
    """
)
"""Variables that name a file which git writes."""

HARMLESS = names(
    "cat less more most bat delta head true : false vi vim nvim nano emacs ssh /dev/null /bin/true"
)
"""Programs that may be named there: they show, edit or do nothing."""


def git(call: Call) -> Iterator[AnyEffect]:
    """The effects of the settings that a call has, and of its verb."""
    from remuda.guard.commands.gitverbs import VERBS

    parsed = parse(OPTIONS, call.arguments)
    scene = Scene(call=call, at=_repository(call, parsed))
    aliases = dict(_aliases(parsed))
    yield from _settings(scene, parsed)
    yield from _variables(scene)
    if not parsed.operands or parsed.has("help", "version", "h", "v"):
        return
    verb, words = parsed.operands[0], parsed.operands[1:]
    name = verb.text
    if name is None:
        yield Unknown(why="which of git's verbs this is cannot be told")
        return
    if words and words[0].text in {"--help", "-h"}:
        return
    handler = VERBS.get(name) or VERBS.get(name.lower())
    if name in aliases:
        yield from _alias(scene, aliases[name], words)
    elif handler is not None:
        yield from handler(scene, words)
    else:
        yield Execute(program=literal(f"git-{name}"), argv=(literal("git"), *call.arguments))


def _repository(call: Call, parsed: Parsed) -> Word:
    """Where git works: ``-C``, one after the other, then ``--work-tree`` or the folder of ``--git-dir``."""
    at = HERE
    for folder in parsed.values("C"):
        at = join(at, folder)
    tree = parsed.value("work-tree") or call.environment.get("GIT_WORK_TREE")
    if tree is not None:
        return join(at, tree)
    store = parsed.value("git-dir") or call.environment.get("GIT_DIR")
    if store is None:
        return at
    above, _, last = (store.text or "").rstrip("/").rpartition("/")
    return join(at, literal(above or ".") if last == ".git" else store)


def runs(key: str) -> bool:
    """Whether a setting makes git run a program."""
    lowered = key.lower()
    return any(fnmatch.fnmatchcase(lowered, pattern) for pattern in RUNS)


def _aliases(parsed: Parsed) -> Iterator[tuple[str, Word]]:
    for setting in parsed.values("c"):
        name, value = assignment(setting) or ("", setting)
        if name.lower().startswith("alias."):
            yield name[6:], value


def _alias(scene: Scene, value: Word, words: list[Word]) -> Iterator[AnyEffect]:
    """What an alias that the call itself defines stands for."""
    text = value.text
    if text is None:
        yield scene.does("execute", detail="an alias that is not known")
    elif text.startswith("!"):
        yield scene.does("execute", detail=text[1:])
        yield from scene.call.shell(text[1:])
    else:
        yield from scene.call.again((literal("git"), *map(literal, text.split()), *words))


def _settings(scene: Scene, parsed: Parsed) -> Iterator[AnyEffect]:
    """Settings and options before the verb."""
    for text in parsed.strange:
        yield strange("git", text)
    for setting in (*parsed.values("c"), *parsed.values("config-env")):
        name, value = assignment(setting) or (setting.text or setting.prefix, literal("true"))
        if not name:
            yield Unknown(why="a setting of git cannot be told")
        elif runs(name) and not harmless(value):
            yield scene.does("execute", detail=name)
    if parsed.value("exec-path") is not None:
        yield scene.does("execute", detail="--exec-path")


def _variables(scene: Scene) -> Iterator[AnyEffect]:
    for name, value in scene.call.environment.items():
        if name in FILES and value.text not in {"0", "1", "2", "true", "false", ""}:
            yield from scene.writes(value, "edit")
        if (name in VARIABLES or name.startswith("GIT_CONFIG_KEY")) and not harmless(value):
            yield scene.does("execute", detail=name)


def harmless(value: Word) -> bool:
    """Whether a value names no program, or one that only shows or edits."""
    return all((text.split() or [""])[0] in HARMLESS | {"", "false", "0"} for text in value.values) and bool(
        value.values and not any(set(text) & set(";&|`$<>()\n") for text in value.values)
    )


TABLE: Table = {"git": git}
