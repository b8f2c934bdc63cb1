"""The table of operations, and what HTTP makes of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from remuda.core.errors import (
    ConfigError,
    NotFoundError,
    NotInstalledError,
    RefusedError,
    RemudaError,
    UsageError,
)
from remuda.core.sql import StoreGoneError
from remuda.dispatch.limits import LimitedError
from remuda.operations.registry import OPERATIONS
from remuda.operations.remote import check_variables
from remuda.surfaces.http.errors import STATUSES, told
from remuda.surfaces.http.openapi import document

DOCS = Path(__file__).parents[2] / "docs" / "http.md"


def test_the_documentation_names_every_operation() -> None:
    text = DOCS.read_text("utf-8")
    assert [name for name in OPERATIONS if f"`{name}`" not in text] == []


def test_the_documentation_names_every_status() -> None:
    rows = [line.split("|")[1] for line in DOCS.read_text("utf-8").splitlines() if line.startswith("| ")]
    named = {int(word) for row in rows for word in row.replace(",", " ").split() if word.isdigit()}
    assert named == set(STATUSES)


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_is_called_in_one_way(name: str) -> None:
    operation = OPERATIONS[name]
    assert (operation.answered is None) != (operation.stream is None)
    assert {"cwd", "environ"} <= set(operation.body.__struct_fields__)
    assert operation.summary.endswith(".")


def test_those_that_do_more_than_look_are_known() -> None:
    acts = {name for name, operation in OPERATIONS.items() if operation.acts}
    looks = {"which", "agents", "runtimes", "usage", "worker.status", "worktree.list"}
    looks |= {
        name for name in OPERATIONS if name.endswith((".get", ".list", ".show", ".wait", ".watch", ".events"))
    }
    looks |= {"peer.inbox"}
    assert acts | looks == set(OPERATIONS)
    assert acts & looks == set()


def test_the_description_can_be_read() -> None:
    described = json.loads(document())
    assert set(described["paths"]) == {f"/v1/{name}" for name in OPERATIONS}
    answers = described["paths"]["/v1/task.watch"]["post"]["responses"]
    assert "application/x-ndjson" in answers["200"]["content"]
    assert {int(code) for code in answers} == {200, *STATUSES}


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (UsageError("x"), 400, "usage"),
        (ConfigError("x"), 400, "usage"),
        (NotFoundError("x"), 404, "not_found"),
        (RefusedError("x"), 403, "refused"),
        (NotInstalledError("x"), 409, "not_usable"),
        (RemudaError("x"), 409, "failed"),
        (LimitedError("x", "", None), 429, "rate_limit"),
        (StoreGoneError("x"), 503, "store_gone"),
        (ValueError("canary"), 500, "internal"),
    ],
)
def test_an_error_has_one_status(error: Exception, status: int, kind: str) -> None:
    found, said = told(error)
    assert (found, said.error.kind) == (status, kind)
    assert "canary" not in said.error.message
    assert found in STATUSES


OWN = {"HOME": "/home/me", "REMUDA_HOME": "/r", "PATH": "/bin"}


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"PATH": "/x", "LANG": "C", "LC_ALL": "C", "TZ": "UTC"},
        {"REMUDA_AGENT_BINARY": "pi", "AMPLIHACK_AGENT_BINARY": "pi", "CLAWTOOL_PEER_ROUTING": "off"},
        {"HOME": "/home/me", "REMUDA_HOME": "/r"},
    ],
)
def test_variables_that_are_taken(given: dict[str, str]) -> None:
    check_variables(given, OWN)


@pytest.mark.parametrize(
    "name",
    [
        "HOME",
        "REMUDA_HOME",
        "REMUDA_DATABASE_URL",
        "REMUDA_MARK",
        "XDG_STATE_HOME",
        "LD_PRELOAD",
        "PYTHONPATH",
        "",
    ],
)
def test_variables_that_are_not(name: str) -> None:
    with pytest.raises(UsageError, match=f"environ: {name}"):
        check_variables({name: "canary"}, OWN)
