"""What the tests of guarded runs share: native tools, repositories that want to get out, refusals."""

from __future__ import annotations

import subprocess

from tests.agents.lab import Ended, Lab

from remuda.core.events import Failure
from remuda.rehearsal.scenario import Step

SECRET = "s3cret-of-the-users"


def call(tool: str, **given: object) -> Step:
    """A step that calls a tool by its own name."""
    return Step(tool=tool, input=given)


def scout(lab: Lab, prompt: str = "Look.", *options: str) -> Ended:
    """A guarded run that may only look."""
    return lab.run(prompt, "--capability", "scout", *options)


def builder(lab: Lab, prompt: str = "Build.", *options: str) -> Ended:
    """A guarded run that may write in its folder."""
    return lab.run(prompt, "--capability", "builder", *options)


def stopped(ended: Ended) -> Failure:
    """Why a run was ended by us."""
    assert ended.code == 5, (ended.code, ended.stdout, ended.stderr)
    assert ended.result.error is not None
    assert ended.result.error.kind == "refused"
    return ended.result.error


def failed_outputs(ended: Ended) -> str:
    """What is told of tool calls that failed."""
    return "\n".join(
        part["content"]["text"]
        for update in ended.updates
        if update["sessionUpdate"] == "tool_call_update" and update["status"] == "failed"
        for part in update.get("content", [])
    )


def repository(lab: Lab, files: dict[str, str]) -> None:
    """Make the working folder a repository with these files."""
    subprocess.run(["git", "init", "-q", str(lab.cwd)], check=True)
    for name, text in files.items():
        path = lab.cwd / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def heard_results(lab: Lab) -> str:
    """All that the model was told, tools' results included."""
    return "\n".join(heard.body or "" for heard in lab.server.heard())


FAULTS = [("401", "auth"), ("429", "rate_limit"), ("500", "model")]
"""Answers of a model, and the kind of failure that each of them is."""


def check_fault(lab: Lab, name: str, kind: str) -> None:
    """What a failing model says is told as it is without a guard, and in time."""
    lab.rehearse("errors")
    check_failure(lab, f"rehearse-{name}", kind)


def check_nobody_there(lab: Lab) -> None:
    """A model that does not listen."""
    lab.env["REMUDA_ENDPOINT"] = "http://127.0.0.1:9"
    check_failure(lab, "Hello.", "model")


def check_failure(lab: Lab, prompt: str, kind: str) -> None:
    ended = scout(lab, prompt)
    assert ended.result.error is not None
    assert ended.result.error.kind == kind, ended.result.error
    assert ended.seconds < lab.within(30)
