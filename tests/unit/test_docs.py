"""The documentation agrees with the code, with itself, and with nothing but this repository."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from tools import generate_docs

from remuda.surfaces.cli.main import PLACES

ROOT = Path(__file__).resolve().parents[2]
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?!\w+:)([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)

USERS = "alice|me|zoë"
"""The people in our examples; any other home folder is somebody's machine."""
FOREIGN = re.compile(
    rf"(?<![\w.}}-])[/](?:(?:root|work)[/]|home[/](?!(?:{USERS})\b)\w)"
    r"|registry[.]npmjs|pypi[.]org|pythonhosted[.]org"
)


def files() -> list[Path]:
    """Every file of the repository that is, or could be, committed."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    paths = (ROOT / name.decode() for name in listed.stdout.split(b"\0") if name)
    return [path for path in paths if path.is_file()]


def slug(heading: str) -> str:
    """The anchor that a heading gets."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def leads_somewhere(page: Path, link: str) -> bool:
    name, _, anchor = link.partition("#")
    target = page.parent / name if name else page
    if not target.exists():
        return False
    return not anchor or anchor in map(slug, _HEADING.findall(target.read_text("utf-8")))


def broken_links(page: Path) -> list[str]:
    links = _LINK.findall(_FENCE.sub("", page.read_text("utf-8")))
    return [link for link in links if not leads_somewhere(page, link)]


def test_generated_pages_are_up_to_date() -> None:
    assert generate_docs.drifted() == [], "run 'make docs'"


def test_every_verb_has_a_section() -> None:
    headings = _HEADING.findall((ROOT / "docs/cli.md").read_text("utf-8"))
    assert [verb for verb in PLACES if f"remuda {verb}" not in headings] == []


def test_every_link_leads_somewhere() -> None:
    broken = {path.name: broken_links(path) for path in files() if path.suffix == ".md"}
    assert {name: links for name, links in broken.items() if links} == {}


def test_every_page_is_linked_from_the_readme() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert [page.name for page in (ROOT / "docs").glob("*.md") if f"docs/{page.name}" not in readme] == []


def test_no_file_speaks_of_one_machine() -> None:
    found = {}
    for path in files():
        if hits := FOREIGN.findall(path.read_bytes().decode("utf-8", "replace")):
            found[str(path.relative_to(ROOT))] = hits
    assert found == {}
