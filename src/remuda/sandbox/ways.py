"""The ways out of a sandbox with a network of its own: listeners in there, and whom they lead to out here."""

from remuda.sandbox import relay
from remuda.sandbox.netns import Outpost
from remuda.sandbox.spec import Network

_LISTENS = "0A"
_LOOPBACK = ("0100007F", "00000000", "0" * 32, "00000000000000000000000001000000")
"""Addresses at which somebody who comes by loopback is heard, as the kernel writes them down."""


class Ways:
    """Ports of the sandbox's loopback, each with the place outside that it leads to."""

    def __init__(self, network: Network, first: int) -> None:
        self._outpost = Outpost(first)
        self._known: set[int] = set()
        self._all = network.loopback
        if network.egress is not None:
            from remuda.sandbox.egress import proxy

            self._open(network.egress.port, proxy(network.egress), needed=True)
        for port in network.ports:
            self._open(port, relay.here(port), needed=True)
        if network.loopback:
            self.look()
        else:
            self._outpost.close()

    def look(self) -> None:
        """Where all ports are led to: also to those at which somebody has begun to listen."""
        for port in listening() if self._all else ():
            self._open(port, relay.here(port), needed=False)

    def _open(self, port: int, serve: relay.Serve, *, needed: bool) -> None:
        if port in self._known:
            return
        listeners = self._outpost.listen(port)
        if needed and not listeners:
            raise OSError(f"port {port} cannot be listened at inside")
        self._known.add(port)
        relay.attend(listeners, serve)


def listening() -> "set[int]":
    """The ports at which somebody on this machine listens for connections by loopback."""
    found: set[int] = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(table) as stream:  # noqa: PTH123 - no pathlib here
                lines = stream.read().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            words = line.split()
            address, _, port = words[1].partition(":")
            if words[3] == _LISTENS and address in _LOOPBACK:
                found.add(int(port, 16))
    return found
