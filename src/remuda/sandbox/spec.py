"""What the launcher is told: a file that only its user can read, gone once it was read.

Only what is built in is imported, for the launcher runs without any packages.
"""

import marshal
from typing import NamedTuple

from remuda.sandbox.hosts import Host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from remuda.sandbox.standby import ToldNetwork

    Plain = str | int | float | tuple["Plain", ...] | None


class Rule(NamedTuple):
    """What Landlock leaves of a path: reading, or changing as well."""

    path: str
    writable: bool


class Egress(NamedTuple):
    """A proxy that agents find at a port of their own loopback, and whom it lets them reach. ``upstream`` is
    the proxy by which this machine itself reaches others."""

    port: int
    allow: tuple[Host, ...]
    upstream: str = ""


class Network(NamedTuple):
    """The ways out of a network of its own: ``ports`` of this machine's loopback are passed on, with
    ``loopback`` all of them that anybody listens at."""

    ports: tuple[int, ...] = ()
    loopback: bool = False
    egress: Egress | None = None


class Cgroup(NamedTuple):
    """A control group to be made: the folder that it is made in, the group to go back to afterwards, and what
    is written into its files."""

    base: str
    own: str
    settings: tuple[tuple[str, str], ...]


class Spec(NamedTuple):
    """A wall and what stands beside it: the ``command`` that builds it, or else Landlock's ``rules``.

    ``held`` are the paths that have to stay mounted over. ``network`` is there where the agent has one of its
    own. ``hooks`` is where to listen for hook programs, and the socket of the process that answers them.
    ``inside`` is put in front of the agent's command.
    """

    command: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    inside: tuple[str, ...] = ()
    terminal: bool = False
    network: Network | None = None
    hooks: tuple[str, str] | None = None
    cgroups: tuple[Cgroup, ...] = ()
    timeout: float = 0


def encoded(spec: Spec) -> bytes:
    """The content of a file. The launcher reads it without this module, whose imports take their time."""
    return marshal.dumps(_plain(spec))


def _plain(value: object) -> "Plain":
    """Tuples that have lost their names."""
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    assert value is None or isinstance(value, str | int | float)
    return value


def named(told: "ToldNetwork") -> Network:
    """The ways out, as the launcher has read them."""
    ports, loopback, egress = told
    if egress is None:
        return Network(ports, loopback)
    port, allow, upstream = egress
    return Network(ports, loopback, Egress(port, tuple(Host(*entry) for entry in allow), upstream))
