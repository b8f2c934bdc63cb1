"""Several judges of one tool call, one answer for the agent CLI.

Security judges come first, other hooks after them, each in the order of their rank. A judge that failed has
to be given as one that denies: what says nothing here decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Literal

Precedence = Literal["documented", "strictest"]
"""``documented``: the first explicit decision by rank, whatever it is. ``strictest``: the same, but an
explicit allow overrides no ask and no deny."""

Said = Mapping[str, object]
"""What a judge or the answer says: a JSON object of the CLI's dialect, passed on as it is."""

_DECISIONS = ("allow", "deny", "ask")
_BLOCKED = "Blocked by a pre-tool-use hook."


def aggregate(
    security: Sequence[object], hooks: Sequence[object], precedence: Precedence = "strictest"
) -> Said:
    """The payload of the judge that decides, unchanged. The ``block: true`` of a hook counts as a deny, after
    every explicit decision; where nobody decides, the answer is empty."""
    decisions = [*chain(_explicit(security), _explicit(hooks), _blocks(hooks))]
    if precedence == "strictest":
        decisions = [said for said in decisions if said["permissionDecision"] != "allow"] or decisions
    return decisions[0] if decisions else {}


def _explicit(judges: Sequence[object]) -> Iterator[Said]:
    """What the judges say that decide in so many words; spelling counts."""
    for said in judges:
        if isinstance(said, Mapping) and said.get("permissionDecision") in _DECISIONS:
            yield said


def _blocks(judges: Sequence[object]) -> Iterator[Said]:
    """What the judges say that block in the older form, in the newer one."""
    for said in judges:
        if isinstance(said, Mapping) and said.get("block") is True:
            message = said.get("message")
            told = message if isinstance(message, str) and message else _BLOCKED
            yield {"permissionDecision": "deny", "message": told}
