"""The verbs of git that talk to other repositories."""

from __future__ import annotations

from collections.abc import Iterator

from remuda.guard.commands.gitscene import Scene, Verb, unknown
from remuda.guard.commands.operands import names
from remuda.guard.commands.options import Parsed, parse
from remuda.guard.commands.urls import host
from remuda.guard.model import NOTHING, AnyEffect, Network, System, Taint, Unknown, Word, literal

FILES: frozenset[Taint] = frozenset({"file"})

PUSH_OPTIONS = """
    -f|--force --force-with-lease? --no-force-with-lease --force-if-includes --no-force-if-includes
    -d|--delete --mirror --prune --all --branches --tags --follow-tags -n|--dry-run -u|--set-upstream
    -o|--push-option: --receive-pack:! --exec:! --repo: --no-verify --verify --signed? --no-signed --atomic
    --no-atomic --recurse-submodules: --no-recurse-submodules -q|--quiet -v|--verbose --progress --no-progress
    --thin --no-thin -4|--ipv4 -6|--ipv6 --porcelain
"""
FETCH_OPTIONS = """
    --upload-pack:! -j|--jobs: --depth: --deepen: --shallow-since: --shallow-exclude: --refmap: --filter:
    --negotiation-tip: -o|--server-option: -s|--strategy: -X|--strategy-option: --recurse-submodules? -S?
    -f|--force --dry-run -* --*
"""
CLONE_OPTIONS = """
    -u|--upload-pack:! -c|--config: --template:! -b|--branch: -o|--origin: --depth: --shallow-since:
    --shallow-exclude: --reference:r --reference-if-able:r --separate-git-dir:w -j|--jobs: --filter:
    --server-option: --bundle-uri: --ref-format: --recurse-submodules? --revision: -* --*
"""


def _peer(scene: Scene, words: list[Word], *, sends: bool) -> Iterator[AnyEffect]:
    """Talking to a repository that is given by its address, not by the name of a remote."""
    for word in words[:1]:
        text = word.values[0] if word.values else word.prefix
        if text.startswith(("ext::", "-")):
            yield scene.does("execute", detail=text)
        elif "://" in text or ("@" in text and ":" in text):
            carries = word.taint | (FILES if sends else NOTHING)
            yield Network(direction="send" if sends else "get", host=host(word), carries=carries)


def push(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """Pushes: by force, or deleting, when an option or a ref says so."""
    parsed = parse(PUSH_OPTIONS, words)
    for text in parsed.strange:
        yield unknown(f"push {text}")
    yield from scene.options(parsed)
    refs = parsed.operands[1:]
    leased = parsed.has("force-with-lease")
    forced = (parsed.has("force") and not leased) or parsed.has("delete", "mirror", "prune")
    forced = forced or any(value[:1] in {"+", ":"} for ref in refs for value in ref.values)
    detail = "dry-run" if parsed.has("dry-run") else "with-lease" if leased else ""
    yield scene.does("push", forced=forced, refs=[_destination(ref) for ref in refs], detail=detail)
    yield from _peer(scene, parsed.values("repo") + parsed.operands, sends=True)


def _destination(ref: Word) -> Word:
    """The side of a refspec that changes."""
    values = tuple(value.lstrip("+").rpartition(":")[2] for value in ref.values)
    return Word(values, pattern=ref.pattern, taint=ref.taint, prefix=ref.prefix)


def fetch(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """Brings what a remote has; a refspec with a colon changes branches here."""
    parsed = parse(FETCH_OPTIONS, words)
    yield from scene.options(parsed)
    refs = [_destination(ref) for ref in parsed.operands[1:] if any(":" in value for value in ref.values)]
    yield scene.does("fetch", forced=bool(refs) and parsed.has("force"), refs=refs)
    yield from _peer(scene, parsed.operands, sends=False)


def pull(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """Fetches and merges."""
    yield from fetch(scene, words)
    yield scene.does("merge", detail="pull")


def clone(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """Makes a folder with a copy of a repository."""
    parsed = parse(CLONE_OPTIONS, words)
    yield from scene.options(parsed)
    yield from _configured(scene, parsed)
    yield from _peer(scene, parsed.operands, sends=False)
    yield scene.does("clone")
    if len(parsed.operands) > 1:
        yield from scene.writes(parsed.operands[1], "create")
    elif parsed.operands:
        address = (parsed.operands[0].text or "").rstrip("/").removesuffix(".git")
        name = address.replace(":", "/").rpartition("/")[2]
        yield from scene.writes(literal(name) if name else literal("."), "create")


def _configured(scene: Scene, parsed: Parsed) -> Iterator[AnyEffect]:
    from remuda.guard.commands.git import runs

    for setting in parsed.values("config"):
        name = (setting.text or "").partition("=")[0]
        if not name or runs(name):
            yield scene.does("execute", detail=name or "a setting that is not known")


def ls_remote(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """Asks a remote for its refs."""
    parsed = parse("--upload-pack:! --exec:! -o|--server-option: --sort: -* --*", words)
    yield from scene.options(parsed)
    yield scene.does("read", detail="ls-remote")
    yield from _peer(scene, parsed.operands, sends=False)


def remote(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """Shows remotes, or changes where they are."""
    parsed = parse("+ -v|--verbose", words)
    verb = parsed.operands[0].text if parsed.operands else "show"
    if verb in {"show", "get-url"}:
        yield scene.does("read")
    elif verb in {"update"}:
        yield scene.does("fetch")
    elif verb in {"add", "rename", "remove", "rm", "set-head", "set-branches", "set-url", "prune"}:
        yield scene.does("remote", detail=f"remote {verb}")
    else:
        yield unknown(f"remote {verb or ''}")


def submodule(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """Repositories below the repository; ``foreach`` runs a command in each."""
    parsed = parse("+ -q|--quiet --cached --recursive", words)
    verb, rest = (parsed.operands[0].text, parsed.operands[1:]) if parsed.operands else ("status", [])
    if verb in {"status", "summary"}:
        yield scene.does("read")
    elif verb == "foreach":
        yield from _foreach(scene, parse("+ --recursive -q --quiet", rest).operands)
    elif verb in {"init", "update", "add", "sync", "set-branch", "set-url", "absorbgitdirs", "deinit"}:
        forced = any(word.text in {"-f", "--force"} for word in rest)
        yield scene.does("discard" if forced else "fetch", detail=f"submodule {verb}")
        yield from scene.writes(literal("."), "edit")
    else:
        yield unknown(f"submodule {verb or ''}")


def _foreach(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    if len(words) == 1 and words[0].text is not None:
        yield from scene.call.shell(words[0].text)
    elif len(words) > 1:
        yield from scene.call.again(tuple(words))
    else:
        yield Unknown(why="git runs a text that is not known")


def lfs(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """Large files, on a server of their own."""
    verb = words[0].text if words else "help"
    if verb in {"ls-files", "status", "env", "version", "logs", "pointer", "fsck", "help", "locks", "ext"}:
        yield scene.does("read")
    elif verb in {"fetch", "pull", "checkout", "smudge", "clean", "filter-process"}:
        yield scene.does("fetch", detail=f"lfs {verb}")
        yield from scene.writes(literal("."), "edit")
    elif verb in {"push", "pre-push", "lock", "unlock"}:
        yield scene.does("push", detail=f"lfs {verb}")
    elif verb in {"track", "untrack", "install", "update", "uninstall"}:
        yield scene.does("config", detail=f"lfs {verb}")
        yield from scene.writes(literal(".gitattributes"), "edit")
    else:
        yield scene.does("rewrite" if verb == "migrate" else "discard", detail=f"lfs {verb or ''}")


def subtree(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """A project below the project: its own verb tells."""
    verbs = {word.text for word in words}
    if verbs & {"push"}:
        yield scene.does("push", detail="subtree")
    elif verbs & {"add", "merge", "pull", "split"}:
        yield scene.does("merge", detail="subtree")
    else:
        yield unknown("subtree")


def sends(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """Pushes by another name."""
    yield scene.does(
        "push", forced=any(w.text in {"--force", "-f", "--mirror"} for w in words), detail="send"
    )
    yield from _peer(scene, [word for word in words if (word.text or "")[:1] != "-"], sends=True)


def foreign(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """Bridges to other systems: their own verb tells."""
    verb = words[0].text if words else ""
    if verb in {"dcommit", "submit", "commit-diff", "set-tree", "branch", "tag", "shelve"}:
        yield scene.does("push", detail=f"{verb}")
    elif verb in {"log", "info", "blame", "find-rev", "show-ignore", "proplist", "propget", "show-externals"}:
        yield scene.does("read")
    else:
        yield scene.does("merge", detail=verb or "")


def credential(_: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """Shows or stores passwords."""
    yield System(kind="credential", detail=f"git credential {words[0].text or '' if words else ''}".strip())


def serves(_: Scene, __: list[Word]) -> Iterator[AnyEffect]:
    """Opens the repository to others."""
    yield System(kind="network", detail="git serves the repository")


def bundle(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """A repository in a file."""
    verb = words[0].text if words else ""
    parsed = parse("-* --*", words[1:])
    if verb == "create":
        yield scene.does("read")
        for word in parsed.operands[:1]:
            yield from scene.writes(word, "truncate")
    elif verb in {"verify", "list-heads"}:
        yield scene.does("read")
    else:
        yield scene.does("fetch", detail="bundle")


REMOTE: dict[str, Verb] = {
    "push": push,
    "fetch": fetch,
    "pull": pull,
    "clone": clone,
    "ls-remote": ls_remote,
    "remote": remote,
    "submodule": submodule,
    "lfs": lfs,
    "subtree": subtree,
    **dict.fromkeys(names("send-pack http-push send-email imap-send"), sends),
    **dict.fromkeys(names("svn p4 cvsexportcommit"), foreign),
    **dict.fromkeys(
        names("credential credential-cache credential-store credential-cache--daemon"), credential
    ),
    **dict.fromkeys(names("daemon instaweb http-backend receive-pack upload-pack shell cvsserver"), serves),
    **dict.fromkeys(names("fetch-pack http-fetch remote-ext remote-http remote-https"), fetch),
    "bundle": bundle,
}
