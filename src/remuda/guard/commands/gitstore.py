"""The verbs of git that change settings, worktrees and the store itself."""

from __future__ import annotations

from collections.abc import Iterator

from remuda.guard.commands.gitscene import Scene, Verb, unknown
from remuda.guard.commands.operands import names
from remuda.guard.commands.options import parse
from remuda.guard.commands.rows import role
from remuda.guard.model import AnyEffect, Execute, System, Word, literal

CONFIG_OPTIONS = """
    --global --system --local --worktree -f|--file: --blob: --get --get-all --get-regexp --get-urlmatch
    --replace-all --add --unset --unset-all --rename-section --remove-section -l|--list -e|--edit --get-color
    --get-colorbool -t|--type: --bool --int --bool-or-int --bool-or-str --path --expiry-date -z|--null
    --name-only --show-names --show-origin --show-scope --includes --no-includes --default: --fixed-value
    --all --regexp --value: --url: --comment: --append
"""
CONFIG_READS = ("get", "get-all", "get-regexp", "get-urlmatch", "list", "get-color", "get-colorbool")
CONFIG_CHANGES = (
    "add",
    "unset",
    "unset-all",
    "replace-all",
    "rename-section",
    "remove-section",
    "edit",
    "append",
)


def config(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """Shows or changes settings, some of which make git run programs."""
    parsed = parse(CONFIG_OPTIONS, words)
    yield from scene.options(parsed)
    operands = parsed.operands
    verb = operands[0].text if operands else ""
    modern = verb in {"list", "get", "set", "unset", "rename-section", "remove-section", "edit"}
    keys = operands[1:] if modern else operands
    file = parsed.value("file")
    reads = verb in {"list", "get"} if modern else parsed.has(*CONFIG_READS) or len(operands) < 2
    if reads and not parsed.has(*CONFIG_CHANGES):
        yield scene.does("read")
        if file is not None:
            yield from scene.reads(file)
        return
    yield from _changed(scene, keys, "global" if parsed.has("global", "system") else "")
    if file is not None:
        yield from scene.writes(file, "edit")


def _changed(scene: Scene, keys: list[Word], detail: str) -> Iterator[AnyEffect]:
    from remuda.guard.commands.git import runs

    for key in keys[:1]:
        name = key.text or ""
        value = keys[1].text or "!" if len(keys) > 1 else ""
        if (
            not name
            or (runs(name) and len(keys) > 1)
            or (name.lower().startswith("alias.") and value[:1] == "!")
        ):
            yield scene.does("execute", detail=name or "a setting that is not known")
    yield scene.does("config", detail=detail or (keys[0].text or "" if keys else ""))


def worktree(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """Makes and removes worktrees."""
    verb = words[0].text if words else "list"
    parsed = parse("-b: -B: -f|--force --reason: --expire: --orphan -d|--detach -* --*", words[1:])
    if verb == "list":
        yield scene.does("read")
        return
    if verb not in {"add", "remove", "move", "prune", "lock", "unlock", "repair"}:
        yield unknown(f"worktree {verb or ''}")
        return
    forced = parsed.has("force")
    yield scene.does("worktree", forced=forced, detail=verb)
    for made in parsed.values("b", "B"):
        yield scene.does("branch", refs=(made,), forced=parsed.has("B"), detail="make")
    for path in parsed.operands[:1] if verb == "add" else parsed.operands:
        how = {"add": "create", "remove": "delete-tree", "move": "rename"}.get(verb)
        if how == "create":
            yield from scene.writes(path, "create")
        elif how == "delete-tree":
            yield from scene.writes(path, "delete-tree", forced=forced)
        elif how == "rename":
            yield from scene.writes(path, "rename")


def symbolic_ref(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """Shows what a ref points to, or moves it."""
    parsed = parse("-d|--delete -q|--quiet --short --recurse --no-recurse -m:", words)
    if parsed.has("delete") or len(parsed.operands) > 1:
        yield scene.does("discard", refs=parsed.operands[:1], detail="symbolic-ref")
    else:
        yield scene.does("read")


def reflog(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """Shows where refs have been, or forgets it."""
    verb = words[0].text if words else "show"
    lost = verb in {"expire", "delete", "drop"}
    yield scene.does("discard" if lost else "read", detail="reflog" if lost else "")


def collect(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """Tidies the store; what nothing points to may be lost."""
    parsed = parse("--prune? -* --*", words)
    lost = parsed.value("prune")
    if lost is not None and lost.text != "never":
        yield scene.does("discard", detail="gc --prune")
    else:
        yield scene.does("shared", detail="how the store is packed")


def loses(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """Loses objects or moves refs without asking."""
    yield scene.does(
        "discard", refs=[word for word in words if (word.text or "")[:1] != "-"][:1], detail="refs or objects"
    )


def rewrites(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """Rewrites history, partly with commands that are given to it."""
    parsed = parse(
        "--env-filter:x --tree-filter:x --index-filter:x --parent-filter:x --msg-filter:x --commit-filter:x"
        " --tag-name-filter:x --setup:x -d: -* --*",
        words,
    )
    yield scene.does("rewrite")
    for option, value in parsed.given:
        if option.role == "x" and value is not None:
            yield from role(scene.call, "x", value)


def notes(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """Notes on commits."""
    verb = next((word.text for word in words if (word.text or "-")[0] != "-"), "list")
    yield scene.does("read" if verb in {"list", "show", "get-ref"} else "shared", detail="notes")


def bisect(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """Looks for a commit by switching to one after the other; ``run`` tries each with a command."""
    verb = words[0].text if words else "help"
    if verb in {"log", "view", "visualize", "terms", "help", "next"}:
        yield scene.does("read")
        return
    yield scene.does("branch", detail="bisect")
    if verb == "run":
        yield from scene.call.again(tuple(words[1:]))


def sparse(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """Which files are there at all."""
    verb = words[0].text if words else "list"
    yield scene.does("read" if verb in {"list", "check-rules"} else "index", detail="sparse-checkout")


def init(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """Makes a repository."""
    parsed = parse(
        "--template:! --separate-git-dir:w -b|--initial-branch: --object-format: --ref-format: -q --bare"
        " --shared?",
        words,
    )
    yield from scene.options(parsed)
    yield scene.does("clone", detail="init")
    yield from scene.writes(parsed.operands[0] if parsed.operands else literal("."), "create")


def plumbing(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """Puts objects into the store."""
    parsed = parse("-w -t: -p: -m: -F:r -S? --path: --stdin --stdin-paths --literally --no-filters", words)
    yield from scene.options(parsed)
    for word in parsed.operands:
        if any(value[:1] in {"/", "~", "."} for value in word.values):
            yield from scene.reads(word)
    yield scene.does("index")


def hash_object(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """Only says a file's name in the store, unless it writes it there."""
    parsed = parse("-w -t: --path: --stdin --stdin-paths --literally --no-filters", words)
    for word in parsed.operands:
        yield from scene.reads(word)
    yield scene.does("index" if parsed.has("w") else "read")


def read_tree(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """Fills the index, and the files too when told so."""
    files = any(word.text in {"-u", "--reset"} for word in words)
    yield scene.does("discard" if files else "index", detail="read-tree")


def checkout_index(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """Writes files from the index."""
    parsed = parse("-f|--force --prefix: --stage: -* --*", words)
    if prefix := parsed.value("prefix"):
        yield from scene.writes(prefix, "create")
    elif parsed.has("force"):
        yield scene.does("discard", detail="checkout-index")
    else:
        yield from scene.writes(literal("."), "edit")


def format_patch(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """Writes commits as files into a folder, unless to standard output."""
    parsed = parse("-o|--output-directory: --output:w --stdout --signature-file:r -* --*", words)
    yield from scene.options(parsed)
    yield scene.does("read")
    if not parsed.has("stdout", "output"):
        yield from scene.writes(parsed.value("output-directory") or literal("."), "create")


def archive(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """Packs a tree, to standard output or a file."""
    parsed = parse(
        "-o|--output:w --remote: --exec:! --format: --prefix: --add-file:r --add-virtual-file: -# -* --*",
        words,
    )
    yield from scene.options(parsed)
    yield scene.does("fetch" if parsed.has("remote") else "read")


def tool(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """Opens a program to compare or to merge."""
    parsed = parse("-x|--extcmd:x -t|--tool: --tool-help -* --*", words)
    for command in parsed.values("extcmd"):
        yield from role(scene.call, "x", command)
    if parsed.has("extcmd") or not parsed.has("tool-help"):
        yield Execute(program=literal("git-tool"), argv=(literal("git"), *scene.call.arguments))


def maintenance(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """Tidies now, or from now on."""
    if words and words[0].text == "run":
        yield scene.does("shared", detail="how the store is packed")
    else:
        yield System(kind="schedule", detail="git maintenance")


def report(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """Writes a report into the folder."""
    parsed = parse("-o|--output-directory: -s|--suffix: --*", words)
    yield from scene.writes(parsed.value("output-directory") or literal("."), "create")


def hook(scene: Scene, _: list[Word]) -> Iterator[AnyEffect]:
    """Runs a hook."""
    yield scene.does("execute", detail="hook")


def trailers(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """Adds lines to messages, in files when told so."""
    parsed = parse("--in-place --trailer: --where: --if-exists: --if-missing: --*", words)
    for word in parsed.operands:
        yield from scene.writes(word, "edit") if parsed.has("in-place") else scene.reads(word)


def files(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """``git merge-file`` and others on plain files: the first is changed, unless the result is printed."""
    parsed = parse("-p|--stdout -o: -L: -* --*", words)
    for word in (parsed.operands[:1] if not parsed.has("stdout") else []) + parsed.values("o"):
        yield from scene.writes(word, "edit")
    for word in parsed.operands[1:]:
        yield from scene.reads(word)


STORE: dict[str, Verb] = {
    **dict.fromkeys(names("merge-file mailinfo mailsplit"), files),
    "config": config,
    "worktree": worktree,
    "symbolic-ref": symbolic_ref,
    "reflog": reflog,
    **dict.fromkeys(names("gc repack pack-refs commit-graph"), collect),
    **dict.fromkeys(names("prune prune-packed update-ref pack-redundant refs multi-pack-index"), loses),
    **dict.fromkeys(names("filter-branch filter-repo replace fast-import unpack-objects history"), rewrites),
    "notes": notes,
    "bisect": bisect,
    "sparse-checkout": sparse,
    "init": init,
    "init-db": init,
    **dict.fromkeys(names("commit-tree mktree mktag index-pack pack-objects unpack-file"), plumbing),
    "hash-object": hash_object,
    "read-tree": read_tree,
    "checkout-index": checkout_index,
    "format-patch": format_patch,
    "archive": archive,
    "difftool": tool,
    "mergetool": tool,
    "citool": tool,
    "gui": tool,
    "maintenance": maintenance,
    "bugreport": report,
    "diagnose": report,
    "hook": hook,
    "interpret-trailers": trailers,
}
