"""What is told about logins, on the real programs: whoever is *not logged in* fails without one, before its
model is called; whoever has one gets as far as the network, which is not there."""

from __future__ import annotations

import json

import pytest
from tests.agents.conftest import MakeLab
from tests.agents.lab import REMUDA, Ended, Lab

from remuda.core.errors import ErrorKind
from remuda.runtimes import registry

WITHOUT: dict[str, ErrorKind] = {
    "claude": "auth",
    "copilot": "auth",
    "pi": "auth",
    "hermes": "start_failed",
    "openclaw": "auth",
}
KEYS = {
    "pi": {"GROQ_API_KEY": "gsk_fake-key-of-a-test"},
    "hermes": {"OPENROUTER_API_KEY": "sk-or-fake-key-of-a-test"},
}


def real(make_lab: MakeLab, name: str) -> Lab:
    """A program that is to call its vendor, whom it cannot reach."""
    lab = make_lab(registry.get(name))
    del lab.env["REMUDA_ENDPOINT"]
    lab.configure("run.retry_patience = 0.5")
    return lab


def status(lab: Lab) -> str:
    rows = json.loads(lab.call([str(REMUDA), "agents", "--json"]).stdout)["agents"]
    return str(next(row["status"] for row in rows if row["name"] == lab.runtime.name))


def kind(ended: Ended) -> ErrorKind | None:
    return ended.result.error and ended.result.error.kind


@pytest.mark.parametrize("name", WITHOUT)
def test_who_is_not_logged_in_fails(make_lab: MakeLab, name: str) -> None:
    lab = real(make_lab, name)
    assert status(lab) == "not logged in"
    assert kind(lab.run("Hello.")) == WITHOUT[name]


@pytest.mark.parametrize("name", KEYS)
def test_who_has_a_key_gets_to_the_network(make_lab: MakeLab, name: str) -> None:
    lab = real(make_lab, name)
    lab.env.update(KEYS[name])
    assert status(lab) == "callable"
    assert kind(lab.run("Hello.")) == "model"


def test_opencode_needs_no_login(make_lab: MakeLab) -> None:
    assert status(real(make_lab, "opencode")) == "callable"
