"""What a short command loads: its start-up time is made of imports."""

from __future__ import annotations

import pytest
from tests.support import Site, python

LOADED = """
import sys
sys.argv = ["remuda", *sys.argv[1:]]
import os
os._exit = sys.exit
from remuda.__main__ import main
import io
real, sys.stdout = sys.stdout, io.TextIOWrapper(io.BytesIO())
try:
    main()
except SystemExit:
    pass
print(" ".join(sys.modules), file=real)
"""
HEAVY = {"rich", "yaml", "sqlite3", "http.server", "asyncio", "tomlkit", "importlib.metadata", "subprocess"}
LAYERS = (
    *("core", "runtimes", "prompts", "sessions", "dispatch", "operations", "surfaces.cli", "rehearsal"),
    *("core.children", "core.terminal", "core.config", "runtimes.registry", "prompts.delivery"),
    *("sessions.headless", "dispatch.resolve", "operations.run", "surfaces.cli.main", "rehearsal.server"),
    *("rehearsal.agent.cli", "api", "guard", "guard.judge", "operations.guard"),
    *(
        "hooks",
        "hooks.program",
        "hooks.asking",
        "hooks.resident",
        "hooks.judges",
        "operations.hook",
        "operations.guardlog",
        "operations.serve",
        "api.sessions",
        "api.tasks",
        "dispatch.tasks.carrying",
        "operations.task.submitting",
        "operations.task.following",
        "operations.session.speaking",
        "operations.session.keeping",
        "operations.session.names",
        "sessions.keeper",
        "sessions.tmux",
        "core.sql",
        "dispatch.limits",
        "dispatch.cooldown",
        "operations.registry",
        "surfaces.http.host",
    ),
)


def loaded(site: Site, *arguments: str) -> set[str]:
    return set(python(LOADED, *arguments, env={**site.env, "REMUDA_AGENT_BINARY": "rehearsal"}).split())


def test_the_version_needs_nothing(site: Site) -> None:
    modules = loaded(site, "--version")
    assert "remuda" in modules
    assert not modules & {"click", "msgspec", *HEAVY}
    assert [name for name in sorted(modules) if name.startswith("remuda.")] == ["remuda.__main__"]


@pytest.mark.parametrize("arguments", [("--help",), ("which",), ("which", "--json"), ("use", "claude")])
def test_short_commands_load_nothing_heavy(site: Site, arguments: tuple[str, ...]) -> None:
    modules = loaded(site, *arguments)
    assert "remuda" in modules
    assert not modules & HEAVY


def test_completing_the_name_of_a_session_reads_the_store_and_no_more(site: Site) -> None:
    words = {"_REMUDA_COMPLETE": "bash_complete", "COMP_WORDS": "remuda session send ", "COMP_CWORD": "3"}
    site.env.update(words)
    modules = loaded(site)
    assert "remuda.operations.session.names" in modules
    assert not modules & (HEAVY - {"sqlite3"})
    assert not {name for name in modules if name.startswith(("remuda.sessions.tmux", "remuda.sessions.live"))}


def test_the_overview_loads_no_verb(site: Site) -> None:
    verbs = {name for name in loaded(site, "--help") if name.startswith("remuda.surfaces.cli.")}
    assert verbs == {"remuda.surfaces.cli.overview"}


def test_a_heavy_command_is_seen_to_be_heavy(site: Site) -> None:
    """Guards the tests above: the way they look does find what is loaded."""
    assert {"rich", "click", "msgspec"} <= loaded(site, "agents")


def test_importing_the_package_loads_no_interface() -> None:
    assert python("import remuda, sys; print('remuda.api' in sys.modules)") == "False\n"
    assert python("from remuda import Remuda; print(Remuda.__module__)") == "remuda.api\n"
    assert python("import remuda; print(hasattr(remuda, 'nothing'))") == "False\n"


def test_every_layer_can_be_imported_alone() -> None:
    code = (
        "import subprocess, sys\n"
        "crowd = [subprocess.Popen([sys.executable, '-W', 'error', '-c', f'import remuda.{name}'])"
        " for name in sys.argv[1:]]\n"
        "print([one.wait() for one in crowd].count(0))"
    )
    assert python(code, *LAYERS) == f"{len(LAYERS)}\n"
