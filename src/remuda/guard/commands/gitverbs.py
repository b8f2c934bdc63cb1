"""The verbs of git that work on the repository at hand."""

from __future__ import annotations

from collections.abc import Iterator

from remuda.guard.commands.gitremote import REMOTE
from remuda.guard.commands.gitscene import Scene, Verb, unknown
from remuda.guard.commands.gitstore import STORE
from remuda.guard.commands.operands import join, names
from remuda.guard.commands.options import Parsed, parse
from remuda.guard.model import AnyEffect, GitOperation, Read, Unknown, Word, literal
from remuda.guard.places import marks

READING = names(
    """
    status log show blame annotate shortlog describe rev-parse rev-list ls-files ls-tree cat-file merge-base
    name-rev for-each-ref show-ref show-branch check-ignore check-attr check-mailmap check-ref-format cherry
    count-objects diff-files diff-index diff-tree help range-diff var verify-commit verify-pack verify-tag
    whatchanged version patch-id stripspace column get-tar-commit-id fmt-merge-msg merge-tree request-pull
    fast-export diff-pairs last-modified repo fsck show-index upload-archive
    """
)
READING_OPTIONS = "--export-marks:w --output:w -O?r --contents:r --lost-found! -* --*"
CHECKOUT_OPTIONS = """
    -q -f|--force --ours --theirs -b: -B: -t --track? --no-track --guess --no-guess -l -d|--detach --orphan:
    --ignore-skip-worktree-bits -m|--merge --conflict: -p|--patch --ignore-other-worktrees --overwrite-ignore
    --recurse-submodules? --overlay --no-overlay --pathspec-from-file: --pathspec-file-nul --progress
    -U|--unified: --inter-hunk-context: -* --*
"""
SWITCH_OPTIONS = """
    -c|--create: -C|--force-create: --orphan: -d|--detach -f|--force --discard-changes -m|--merge --conflict:
    -q -t --track? --no-track --guess --no-guess --ignore-other-worktrees --recurse-submodules? --progress -*
    --*
"""
BRANCH_OPTIONS = """
    -a|--all -r|--remotes -l|--list --show-current -v -q -d|--delete -D -m|--move -M -c|--copy -C -f|--force
    -t --track? --no-track -u|--set-upstream-to: --unset-upstream --edit-description --contains:
    --no-contains: --merged: --no-merged: --points-at: --format: --sort: --column? --no-column --color?
    --abbrev? --no-abbrev -i|--ignore-case --create-reflog --recurse-submodules
"""
TAG_OPTIONS = """
    -a|--annotate -s|--sign -u|--local-user: -f|--force -d|--delete -v|--verify -n? -l|--list -m|--message:
    -F|--file:r --sort: --column? --contains: --no-contains: --merged: --no-merged: --points-at: --format:
    --color? -e|--edit -i|--ignore-case --cleanup: --create-reflog --trailer:
"""
MODES = {"--track": names("direct inherit"), "--recurse-submodules": names("checkout on-demand")}
"""Values that people write as words of their own, behind the option."""
LISTS = (
    "all",
    "remotes",
    "list",
    "show-current",
    "contains",
    "no-contains",
    "merged",
    "no-merged",
    "points-at",
)
SUFFIXES = names(
    """
    c h cc cpp cs css go html java js json jsx kt lock lua md mjs php pl py pyi rb rs rst scss sh sql svelte
    swift toml ts tsx txt vue xml yaml yml zig cfg ini conf env log ipynb proto gradle mod sum
    """
)
"""What an argument of ``git checkout`` ends with that is a file rather than a branch."""


def read(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """Only shows something, unless an option names a file."""
    parsed = parse(READING_OPTIONS, words)
    yield from scene.options(parsed)
    yield scene.does("read")
    yield from _shown(scene, parsed)


def _shown(scene: Scene, parsed: Parsed) -> Iterator[AnyEffect]:
    """The files whose committed content is shown: it is as secret as the files are."""
    for place, word in enumerate(parsed.operands):
        _, colon, path = (word.text or "").partition(":")
        divided = parsed.divided is not None and place >= parsed.divided
        name = path if colon else word.text or "" if divided else ""
        if marks(tuple(name.split("/")), at_home=False) & {"secret", "private"}:
            yield Read(path=join(scene.at, literal(name)))


def diff(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """Also compares files that belong to no repository."""
    parsed = parse(READING_OPTIONS, words)
    yield from read(scene, words)
    for word in parsed.operands:
        if parsed.has("no-index") or any(value[:1] in {"/", "~"} for value in word.values):
            yield from scene.reads(word)


def grep(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """May open what it finds in a program."""
    parsed = parse(
        "-O?! --open-files-in-pager?! -f:r -e: -A: -B: -C: -m: --max-depth: --threads: -* --*", words
    )
    if parsed.has("O", "open-files-in-pager"):
        yield scene.does("execute", detail="--open-files-in-pager")
    yield from read(scene, [])
    for file in parsed.values("f"):
        yield from scene.reads(file)


def checkout(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """Switches to a branch, makes one, or throws away the changes of files."""
    parsed = parse(CHECKOUT_OPTIONS, [word for at, word in enumerate(words) if not _is_mode(words, at)])
    yield from scene.options(parsed)
    made = parsed.values("b", "B", "orphan")
    paths = len(parsed.operands) - (parsed.divided or 0) if parsed.divided is not None else 0
    alone = len(parsed.operands) == 1 and _is_path(parsed.operands[0])
    if made:
        yield scene.does("branch", forced=parsed.has("B"), refs=made, detail="make")
    if parsed.has("force", "patch", "pathspec-from-file", "ours", "theirs") or paths > 0:
        yield scene.does("discard", detail="checkout over changed files")
    elif not made and (alone or len(parsed.operands) > 1):
        yield scene.does("discard", detail="checkout of files")
    elif not made and parsed.operands:
        yield scene.does("branch", detail="switch")


def _is_mode(words: list[Word], at: int) -> bool:
    return at > 0 and words[at].text in MODES.get(words[at - 1].text or "", ())


def _is_path(word: Word) -> bool:
    """Whether a word rather names files than a branch."""
    if word.pattern:
        return True
    for text in word.values:
        stem, dot, suffix = text.rpartition("/")[2].rpartition(".")
        if text in {".", ".."} or text.startswith(("./", "../", "/", ":")) or text.endswith("/"):
            return True
        if dot and suffix in SUFFIXES and not stem[-1:].isdigit():
            return True
    return False


def switch(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """Switches to a branch or makes one."""
    parsed = parse(SWITCH_OPTIONS, words)
    yield from scene.options(parsed)
    made = parsed.values("create", "force-create", "orphan")
    if parsed.has("force", "discard-changes"):
        yield scene.does("discard", detail="switch over changed files")
    if made:
        yield scene.does("branch", forced=parsed.has("force-create"), refs=made, detail="make")
    elif parsed.operands:
        yield scene.does("branch", detail="switch")


def restore(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """Unstages, or throws away the changes of files."""
    parsed = parse("-S|--staged -W|--worktree -s|--source: --pathspec-from-file: --conflict: -* --*", words)
    yield from scene.options(parsed)
    if parsed.has("staged") and not parsed.has("worktree"):
        yield scene.does("index", detail="unstage")
    elif parsed.operands or parsed.has("pathspec-from-file", "patch", "p"):
        yield scene.does("discard", detail="restore of files")


def reset(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """Moves the branch; hard, it throws changes away."""
    parsed = parse(
        "--hard --soft --mixed --merge --keep -N|--intent-to-add -q|--quiet --no-quiet -p|--patch --refresh"
        " --no-refresh --pathspec-from-file: --pathspec-file-nul --recurse-submodules?"
        " --no-recurse-submodules -U: --unified:",
        words,
    )
    for text in parsed.strange:
        yield unknown(f"reset {text}")
    if parsed.has("hard", "merge"):
        yield scene.does("discard", detail="reset of changed files")
    else:
        yield scene.does("index", detail="reset")


def clean(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """Deletes what is not tracked, unless it only says what it would."""
    parsed = parse("-d -f|--force -i|--interactive -n|--dry-run -q|--quiet -x -X -e|--exclude:", words)
    yield from scene.options(parsed)
    if parsed.has("dry-run"):
        yield scene.does("read")
    else:
        yield scene.does("discard", forced=parsed.has("force"), detail="clean")


def branch(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """Lists, makes, renames and deletes branches."""
    parsed = parse(BRANCH_OPTIONS, words)
    yield from scene.options(parsed)
    changes = parsed.has(
        "delete", "D", "move", "M", "copy", "C", "force", "set-upstream-to", "unset-upstream"
    )
    if not changes and (parsed.has(*LISTS) or not parsed.operands) and not parsed.has("edit-description"):
        yield scene.does("read")
    elif parsed.has("D") or (parsed.has("delete") and parsed.has("force")):
        yield scene.does("discard", refs=parsed.operands, detail="branch -D")
    elif parsed.has("set-upstream-to", "unset-upstream"):
        yield scene.does("config", refs=parsed.operands, detail="upstream")
    elif parsed.has("delete"):
        yield scene.does("branch", refs=parsed.operands, detail="delete")
    else:
        moved = parsed.has("move", "M", "copy", "C")
        refs = parsed.operands if moved else parsed.operands[:1]
        yield scene.does("branch", forced=parsed.has("M", "C", "force"), refs=refs, detail="make")


def tag(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """Lists, makes and deletes tags."""
    parsed = parse(TAG_OPTIONS, words)
    yield from scene.options(parsed)
    listing = parsed.has("list", "n", "verify", *LISTS) or not parsed.operands
    if parsed.has("delete"):
        yield scene.does("tag", forced=True, refs=parsed.operands, detail="delete")
    elif listing:
        yield scene.does("read")
    else:
        yield scene.does("tag", forced=parsed.has("force"), refs=parsed.operands[:1], detail="make")


def commit(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """Commits; a file may hold the message."""
    parsed = parse(
        "-m|--message: -F|--file:r -C|--reuse-message: -c|--reedit-message: --author: --date:"
        " -t|--template:r --fixup: --squash: --cleanup: --trailer: -S? -u? --pathspec-from-file:r --amend"
        " --dry-run --short --porcelain -* --*",
        words,
    )
    yield from scene.options(parsed)
    if parsed.has("dry-run", "short", "porcelain"):
        yield scene.does("read")
    else:
        yield scene.does("commit", detail="amend" if parsed.has("amend") else "")


def stash(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """The stash, which all worktrees share."""
    verb = words[0].text if words else "push"
    operation: GitOperation | None = STASH.get(verb or "")
    if verb is not None and (verb.startswith("-") or operation is not None):
        yield scene.does(
            operation or "stash", refs=words[1:2] if verb == "branch" else (), detail=f"stash {verb}"
        )
    else:
        yield unknown(f"stash {verb or ''}")


STASH: dict[str, GitOperation] = {
    "push": "stash", "save": "stash", "pop": "stash", "apply": "stash", "store": "stash", "create": "index",
    "list": "read", "show": "read", "drop": "discard", "clear": "discard", "branch": "branch",
    "export": "index", "import": "stash",
}  # fmt: skip


def stage(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """``git add`` and others that only change the index."""
    parsed = parse("-n|--dry-run --chmod: --pathspec-from-file:r -* --*", words)
    yield from scene.options(parsed)
    yield scene.does("read" if parsed.has("dry-run") else "index")


def remove(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """``git rm``: from the index, and the files too."""
    parsed = parse(
        "-f|--force -n|--dry-run -r --cached --ignore-unmatch -q|--quiet --sparse --pathspec-from-file:r",
        words,
    )
    yield from scene.options(parsed)
    if parsed.has("dry-run"):
        yield scene.does("read")
        return
    yield scene.does("index", forced=parsed.has("force"))
    if not parsed.has("cached"):
        for word in parsed.operands:
            yield from scene.writes(
                word, "delete-tree" if parsed.has("r") else "delete", forced=parsed.has("force")
            )


def move(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """``git mv``."""
    parsed = parse("-f|--force -k -n|--dry-run -v|--verbose --sparse", words)
    yield from scene.options(parsed)
    yield scene.does("index")
    for word in parsed.operands[:-1]:
        yield from scene.writes(word, "rename")
    for word in parsed.operands[-1:]:
        yield from scene.writes(word, "create")


def merge(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """Merges, rebases, picks: changes the branch and the files. ``--exec`` runs a command after each step."""
    parsed = parse(
        "-x|--exec: -s: -X: --strategy: --strategy-option: -m|--message: -F|--file:r --onto: -C: -S?"
        " --gpg-sign? --cleanup: --into-name: --log? -* --*",
        words,
    )
    yield from scene.options(parsed)
    yield scene.does("merge")
    for command in parsed.values("exec"):
        if command.text is None:
            yield Unknown(why="git runs a text that is not known")
        else:
            yield from scene.call.shell(command.text)


def apply(scene: Scene, words: list[Word]) -> Iterator[AnyEffect]:
    """``git apply``: changes files below the folder, and no others unless told so."""
    parsed = parse(
        "-p: -C: --directory: --exclude: --include: --whitespace: --build-fake-ancestor:w -* --*", words
    )
    yield from scene.options(parsed)
    for word in parsed.operands:
        yield from scene.reads(word)
    if parsed.has("check", "stat", "numstat", "summary") and not parsed.has("apply"):
        return
    if folder := parsed.value("directory"):
        yield from scene.writes(folder, "edit")
    if parsed.has("unsafe-paths"):
        yield Unknown(why="git apply --unsafe-paths changes files anywhere")
    if parsed.has("cached", "index", "3way", "3"):
        yield scene.does("index")
    if not parsed.has("cached"):
        yield from scene.writes(literal("."), "edit")


VERBS: dict[str, Verb] = {
    **dict.fromkeys(READING, read),
    **dict.fromkeys(
        ("merge", "rebase", "cherry-pick", "revert", "am", "rerere", "merge-index", "quiltimport"), merge
    ),
    **dict.fromkeys(("add", "stage", "update-index", "write-tree"), stage),
    **REMOTE,
    **STORE,
    "diff": diff,
    "grep": grep,
    "checkout": checkout,
    "switch": switch,
    "restore": restore,
    "reset": reset,
    "clean": clean,
    "branch": branch,
    "tag": tag,
    "commit": commit,
    "stash": stash,
    "rm": remove,
    "mv": move,
    "apply": apply,
}
