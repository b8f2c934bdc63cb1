from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support import Site, eventually


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A machine of one's own; the test fails if any of its processes is left behind."""
    folder = tmp_path / "site"
    folder.mkdir()
    site = Site(folder)
    yield site
    eventually(lambda: not site.processes())
