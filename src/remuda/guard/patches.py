"""Which files a patch changes: the ``*** Begin Patch`` form of agent CLIs, and diffs."""

from __future__ import annotations

from collections.abc import Iterator

from remuda.guard.model import How

_SECTIONS: tuple[tuple[str, How], ...] = (
    ("*** Add File:", "create"),
    ("*** Update File:", "edit"),
    ("*** Delete File:", "delete"),
    ("*** Move to:", "create"),
    ("rename from ", "delete"),
    ("rename to ", "create"),
    ("copy to ", "create"),
)


def changes(patch: str) -> Iterator[tuple[str, How]]:
    """Each file with what becomes of it. Lines of content begin with a sign of their own and name none."""
    for line in patch.splitlines():
        text = line.strip()
        for beginning, how in _SECTIONS:
            if text.startswith(beginning):
                yield text[len(beginning) :].strip(), how
        if line.startswith(("--- ", "+++ ")):
            name = line[4:].partition("\t")[0].strip()
            if name != "/dev/null":
                yield name, "edit"
                yield (name[2:] if name[:2] in ("a/", "b/") else name), "edit"
