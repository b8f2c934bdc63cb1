"""A runtime in Python, for what a file cannot say: here, a model that depends on the length of its name."""

from __future__ import annotations

from remuda.core.errors import RefusedError
from remuda.runtimes import shapes
from remuda.runtimes.base import Channel, Conduct, Feature, Invocation, Runtime, Turn


def command(turn: Turn) -> Invocation:
    """One headless turn. What the program cannot be held to is refused."""
    if turn.access == "workspace" or turn.permission == "bypass":
        raise RefusedError("Parrot never writes", "Leave out --permission and --capability.")
    model = turn.model or "grey"
    size = "small" if len(model) < 6 else "large"
    return Invocation(arguments=("--once", "--model", f"{size}-{model}", *turn.extra))


RUNTIME = Runtime(
    name="parrot",
    title="Parrot",
    binary="echo-agent",
    install="copy examples/runtimes/echo-agent to a folder on your PATH",
    verified_version="1.0.0",
    minimum_version="1.0.0",
    stability="experimental",
    channels=(Channel("stdin", (), "1.0.0"),),
    instruction_file="AGENTS.md",
    print_command=command,
    spawn_command=command,
    parser=shapes.parser("text"),
    conduct=Conduct(refuses=frozenset({"bypass", "workspace"}), usage=False, resume=False),
    features={"headless": Feature("verified")},
)
