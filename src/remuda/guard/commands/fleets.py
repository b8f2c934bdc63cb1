"""``ansible`` and ``rclone``: many hosts and stores at once."""

from __future__ import annotations

from collections.abc import Iterator

from remuda.guard.commands.contract import Call
from remuda.guard.commands.operands import texts, written
from remuda.guard.commands.options import parse
from remuda.guard.commands.verbs import dry, query
from remuda.guard.model import AnyEffect, Network, Read, System


def ansible(call: Call) -> Iterator[AnyEffect]:
    """``ansible-playbook``: only lists or checks when told so."""
    words = set(texts(call.arguments))
    if words & {"--list-hosts", "--list-tasks", "--list-tags", "--syntax-check", "--version", "--help"}:
        return
    asks = bool(words & {"--check", "-C"})
    if call.name == "ansible" and (module := parse("-m: -a: -i: -e: -* --*", call.arguments).value("m")):
        asks = asks or module.text in {"ping", "setup", "debug", "gather_facts", "stat"}
    yield System(kind="cluster", detail=call.name, adds=asks)


def rclone(call: Call) -> Iterator[AnyEffect]:
    """``rclone``: remotes have a colon."""
    words = [word for word in call.arguments if (word.text or "")[:1] != "-"]
    verb = words[0].text if words else "version"
    if verb in {
        "ls",
        "lsl",
        "lsd",
        "lsf",
        "lsjson",
        "size",
        "about",
        "check",
        "cat",
        "md5sum",
        "tree",
        "ncdu",
    }:
        yield query(call, "rclone")
        return
    if verb in {"version", "help", "listremotes"}:
        return
    if verb in {"copy", "copyto", "sync", "move", "moveto", "bisync"}:
        for word in words[1:2]:
            if ":" not in (word.text or ":"):
                yield Read(path=word)
                yield Network(direction="send", host=words[-1])
        if dry(list(call.arguments)) or "-n" in texts(call.arguments):
            return
        if len(words) > 2 and ":" not in (words[2].text or ":"):
            yield from written(words[2], "create")
    yield System(
        kind="cloud",
        detail=f"rclone {verb}",
        destroys=verb in _RCLONE_LOSES,
        adds=verb in {"copy", "copyto", "mkdir", "touch"},
    )


_RCLONE_LOSES = frozenset(
    (
        "sync",
        "move",
        "moveto",
        "bisync",
        "delete",
        "purge",
        "deletefile",
        "cleanup",
        "dedupe",
        "rmdir",
        "rmdirs",
    )
)
