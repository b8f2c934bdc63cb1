from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.residents import listening, none_left
from tests.integration.tmuxes import place, tmux  # noqa: F401 - fixtures
from tests.support import Site, eventually, finish


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A machine of one's own; the test fails if any of its processes is left behind."""
    folder = tmp_path / "site"
    folder.mkdir()
    site = Site(folder)
    yield site
    eventually(lambda: not site.processes())


@pytest.fixture
def serving(site: Site) -> Iterator[Site]:
    """A site with a resident process, which is ended afterwards, whichever it is by then."""
    site.env["REMUDA_HOOK_ENGINE"] = "auto"
    process = site.start("serve", "--keep")
    eventually(lambda: listening(site))
    yield site
    site.remuda("serve", "--stop")
    finish(process)
    eventually(lambda: none_left(site))


@pytest.fixture
def quiet(site: Site) -> Iterator[Site]:
    """A site without one, where those that are started on demand are ended afterwards."""
    site.env["REMUDA_HOOK_ENGINE"] = "auto"
    yield site
    eventually(lambda: none_left(site))
