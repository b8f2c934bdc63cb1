"""Every operation, as its description says it is asked, and as it says it is not: with a fuzzer, over the
socket. ``REMUDA_FUZZ=400`` asks each of them that often."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import validate
from requests.adapters import HTTPAdapter
from schemathesis import Case, GenerationMode, checks
from schemathesis.core.result import Ok
from tests.integration.residents import connected
from tests.support import Site, eventually
from urllib3.connection import HTTPConnection
from urllib3.connectionpool import HTTPConnectionPool

TIMES = int(os.environ.get("REMUDA_FUZZ", "6"))
SLOW = {"/v1/run", "/v1/send", "/v1/session.send"}
"""Those that start an agent, or speak with one."""

ENDLESS = ("follow", "wait", "timeout", "queue_within", "refresh")
UNASKED = [
    checks.positive_data_acceptance,  # a folder that does not exist is a string, too
    checks.unsupported_method,
    checks.allow_header_conformance,
]


class Lab:
    """A resident process, with a task and a session that there are, and a client of it."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.task = str(site.remuda("task", "submit", "hello", "--agent", "rehearsal", "--json").json["id"])
        assert site.remuda("task", "wait", self.task).code == 0
        started = site.remuda("session", "start", "fuzz", "--agent", "rehearsal", "--mode", "connection")
        assert started.code == 0, started.stderr
        self.session = requests.Session()
        self.session.mount("http://", _adapter(site))
        self.document: dict[str, Any] = self.session.get("http://remuda/v1/openapi.json").json()

    def aimed(self, body: object, kept: int) -> object:
        """A body that is more likely to be carried out: about what there is, in a folder that there is."""
        if not isinstance(body, dict):
            return body
        known = {"id": self.task, "ids": [self.task], "session": "fuzz", "peer": "fuzz", "to": "fuzz"}
        aimed = {name: known.get(name, value) for name, value in body.items() if name not in ENDLESS}
        aimed |= {"cwd": str(self.site.cwd), "environ": {}}
        if "run" in aimed or "prompt" in aimed:
            wanted = aimed if "prompt" in aimed else aimed["run"]
            few = dict([*wanted.items()][:kept]) | {"prompt": wanted["prompt"] or "x", "agent": "rehearsal"}
            few = {name: value for name, value in few.items() if name not in ("session", *ENDLESS)}
            aimed = few | {"cwd": str(self.site.cwd)} if wanted is aimed else aimed | {"run": few}
        return aimed

    def ask(self, case: Case) -> None:
        """Ask, and see that the answer is one of those that are described, whatever was asked."""
        answer = case.call(base_url="http://remuda", session=self.session, timeout=30)
        assert answer.status_code < 500, (case.body, answer.content)
        case.validate_response(answer, excluded_checks=UNASKED)
        if answer.headers["content-type"][0] == "application/x-ndjson":
            schema = case.operation.definition.raw["responses"]["200"]["content"]["application/x-ndjson"]
            validator = OAS31Validator({**schema["schema"], "components": self.document["components"]})
            for line in answer.content.splitlines():
                told = json.loads(line)
                assert "error" in told or not [*validator.iter_errors(told)], told


def _adapter(site: Site) -> HTTPAdapter:
    """How ``requests`` reaches a site's socket."""

    class Connection(HTTPConnection):
        def connect(self) -> None:
            self.sock = connected(site)
            self.sock.settimeout(30)

    class Pool(HTTPConnectionPool):
        ConnectionCls = Connection

    class Adapter(HTTPAdapter):
        def get_connection_with_tls_context(self, *_: object, **__: object) -> HTTPConnectionPool:
            return pool

    pool = Pool("remuda")
    return Adapter()


@pytest.fixture
def lab(serving: Site) -> Iterator[Lab]:
    (serving.home / "config").mkdir(exist_ok=True)
    (serving.home / "config" / "config.toml").write_text("[tasks]\nidle = 1.0\n")
    lab = Lab(serving)
    yield lab
    lab.session.close()
    serving.remuda("session", "stop", "fuzz")
    serving.remuda("worker", "--stop")


def _fuzz(lab: Lab, operation: Any, mode: GenerationMode) -> None:
    """Ask for an operation with what is right, or with what is wrong."""
    right = mode is GenerationMode.POSITIVE
    slow = right and operation.path in SLOW

    @settings(
        max_examples=max(TIMES // 2, 1) if slow else TIMES,
        phases=[Phase.generate],
        derandomize="REMUDA_FUZZ" not in os.environ,
        database=None,
        suppress_health_check=[*HealthCheck],
    )
    @given(case=operation.as_strategy(generation_mode=mode), kept=st.integers(0, 4), aim=st.booleans())
    def asked(case: Case, kept: int, aim: bool) -> None:
        if slow or (right and aim):
            case.body = lab.aimed(case.body, kept)
        lab.ask(case)

    asked()


@pytest.mark.timeout(120 + 60 * TIMES)
def test_whatever_is_asked_is_answered_as_described(lab: Lab) -> None:
    validate(lab.document)
    before = _handles(lab.site)
    for found in schemathesis.openapi.from_dict(lab.document).get_all_operations():
        assert isinstance(found, Ok)
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            _fuzz(lab, found.ok(), mode)
    eventually(lambda: _handles(lab.site) <= before)


def _handles(site: Site) -> int:
    pid = site.remuda("serve", "--status", "--json").json["pid"]
    return len([*Path(f"/proc/{pid}/fd").iterdir()])
