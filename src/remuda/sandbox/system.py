"""What of the machine itself is visible inside: its programs and libraries, and a part of its settings."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from remuda.sandbox.mounts import Mount

_TREES = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store"),
    *("/sys/devices/system/cpu", "/run/current-system"),
)

_SETTINGS = (
    *("alternatives", "bash.bashrc", "ca-certificates", "ca-certificates.conf", "crypto-policies"),
    *("debian_version", "fonts", "gai.conf", "gitconfig", "group", "host.conf", "hostname", "hosts"),
    *("inputrc", "java-17-openjdk", "java-21-openjdk", "ld.so.cache", "ld.so.conf", "ld.so.conf.d"),
    *("ld.so.preload", "locale.alias", "locale.conf", "localtime", "lsb-release"),
    *("mime.types", "nsswitch.conf", "os-release", "passwd", "pki/ca-trust", "pki/tls/cert.pem"),
    *("pki/tls/certs", "pki/tls/openssl.cnf", "profile", "profile.d", "protocols", "resolv.conf"),
    *("services", "shells", "ssl/cert.pem", "ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone"),
)
"""What is shown of /etc. Keys, passwords and the settings of services are not."""

_OWN = ("/tmp", "/var/tmp")  # noqa: S108 - inside, they are nobody else's


def system() -> Iterator[Mount]:
    """The mounts of a machine of which a program can run and nothing can be changed."""
    for tree in _TREES:
        yield from _shown(tree)
    for name in _SETTINGS:
        yield from _shown(f"/etc/{name}", follow=True)
    for folder in _OWN:
        yield Mount(folder, "private")


def _shown(path: str, *, follow: bool = False) -> Iterator[Mount]:
    if not os.path.exists(path):  # noqa: PTH110 - a link that leads nowhere is not there
        return
    if Path(path).is_symlink() and not follow:
        yield Mount(path, "link", str(Path(path).readlink()))
    else:
        yield Mount(path, "ro", os.path.realpath(path))
