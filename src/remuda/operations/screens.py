"""What a captured terminal screen of a runtime means."""

from __future__ import annotations

import msgspec

from remuda.operations.world import World
from remuda.runtimes import screens


class ClassifyRequest(msgspec.Struct, frozen=True):
    """A screen as ``tmux capture-pane -p`` prints it, its runtime, and the terminal's title if known."""

    runtime: str
    text: str
    title: str = ""


class Classified(msgspec.Struct, frozen=True):
    """What the screen means, and by which rule; without one nothing is known of it."""

    state: screens.State
    rule: str | None
    kind: str = ""


def manifest(world: World, runtime: str) -> screens.Manifest:
    """The rules for a runtime's screens; those in the user's folder come first."""
    return screens.load(world.herd.get(runtime).name, world.folders.config / "screens")


def classify(world: World, request: ClassifyRequest) -> Classified:
    """Classify a screen. Nothing is started and nothing is kept."""
    found = screens.classify(manifest(world, request.runtime), request.text, request.title)
    return Classified(state=found.state, rule=found.rule, kind=found.kind)
