"""Programs that talk to other hosts: what they bring, and what they carry away."""

from __future__ import annotations

from collections.abc import Iterator

from remuda.guard.commands.contract import Call, Table
from remuda.guard.commands.files import remote
from remuda.guard.commands.operands import assignment, names, taints, written
from remuda.guard.commands.options import Parsed, parse
from remuda.guard.commands.rows import options, role
from remuda.guard.commands.urls import host
from remuda.guard.commands.verbs import remotely
from remuda.guard.model import (
    NOTHING,
    UNKNOWN,
    AnyEffect,
    Network,
    Read,
    System,
    Taint,
    Unknown,
    Word,
    literal,
)

FILE: frozenset[Taint] = frozenset({"file"})


def wire(call: Call) -> Iterator[AnyEffect]:
    """``nc`` and its kin: what comes in goes out, and a program may be put at its end."""
    parsed = parse(
        "-e:x -c:x --exec:x --sh-exec:x --lua-exec:! -l|--listen -p: -w: -i: -s: -q: -X: -x: -z -u -v -* --*",
        call.arguments,
    )
    yield from options(call, parsed)
    if parsed.has("e", "c", "exec", "sh-exec"):
        yield System(kind="network", detail=f"{call.name} gives a shell to a host")
    if parsed.has("listen"):
        yield System(kind="network", detail=f"{call.name} listens")
    elif parsed.operands:
        sends = not parsed.has("z")
        carries = call.input | taints(parsed.operands)
        yield Network(
            direction="send" if sends else "get",
            host=parsed.operands[0],
            carries=carries if sends else NOTHING,
        )


def socat(call: Call) -> Iterator[AnyEffect]:
    """``socat``: addresses that may be programs and files."""
    parsed = parse("-t: -T: -b: -lf:w -* --*", call.arguments)
    for word in parsed.operands:
        kind, _, rest = (word.text or "unknown").partition(":")
        lowered = kind.lower()
        if lowered.startswith(("tcp", "udp", "openssl", "ssl", "socks", "proxy", "sctp")):
            listens = "listen" in lowered or lowered.endswith("-l")
            if listens:
                yield System(kind="network", detail="socat listens")
            else:
                yield Network(direction="send", host=literal(rest.partition(":")[0]), carries=call.input)
        elif lowered not in {"-", "stdio", "stdin", "stdout"}:
            yield Unknown(why=f"socat is given {kind}")


def copy(call: Call) -> Iterator[AnyEffect]:
    """``scp`` and ``sftp``: one side is another host."""
    parsed = parse("-346ABCpqrTvaNRO -c: -F:r -i:r -J: -l: -o:T -P: -S:! -D:! -s: -X: -b:!", call.arguments)
    yield from options(call, parsed)
    yield from _settings(call, parsed)
    for source in parsed.operands[:-1]:
        if far := remote(source):
            yield Network(direction="get", host=far)
        else:
            yield Read(path=source)
    for target in parsed.operands[-1:]:
        if far := remote(target):
            yield Network(direction="send", host=far, carries=taints(parsed.operands))
            lost = _system_path(target)
            yield System(kind="cloud", detail="files on another host", destroys=lost, adds=not lost)
        elif call.name == "sftp":
            yield Network(direction="send", host=host(target), carries=FILE)
        else:
            yield from written(target, "create")


def _settings(call: Call, parsed: Parsed) -> Iterator[AnyEffect]:
    """Settings of ssh that run programs on this side."""
    for value in parsed.values("o"):
        name, command = assignment(value) or ((value.text or "").partition(" ")[0], value)
        if name.lower() in RUNNING_SETTINGS:
            yield from role(call, "x", command)


RUNNING_SETTINGS = names("proxycommand localcommand knownhostscommand permitlocalcommand include")
SSH_OPTIONS = """
    + -46AaCfGgKkMNnqsTtVvXxYy -B: -b: -c: -D: -E:w -e: -F:! -I:! -i:r -J: -L: -l: -m: -O: -o:T -p: -Q: -R:
    -S: -W: -w:
"""


def ssh(call: Call) -> Iterator[AnyEffect]:
    """``ssh``: what runs on another host is out of sight, and standard input goes there."""
    parsed = parse(SSH_OPTIONS, call.arguments)
    yield from options(call, parsed)
    yield from _settings(call, parsed)
    if not parsed.operands:
        return
    command = parsed.operands[1:]
    yield Network(
        direction="send",
        host=host(parsed.operands[0]),
        carries=(call.input - {"input"}) | taints(command),
    )
    if command:
        yield remotely(call, command, "cloud", "a command on another host")


def _system_path(target: Word) -> bool:
    """Whether a path on another host belongs to its system."""
    path = (target.text or "").rpartition(":")[2]
    return path.startswith(("/etc", "/usr", "/bin", "/boot", "/lib", "/sbin", "/var", "/root")) or path == "/"


def names_of_hosts(call: Call) -> Iterator[AnyEffect]:
    """``dig`` and its kin: the name that is asked for goes out."""
    parsed = parse("-f:r -b: -c: -k:r -p: -q: -t: -x: -y: -* --*", call.arguments)
    words = [word for word in parsed.operands if (word.text or "")[:1] not in {"+"}]
    carried = taints(words)
    asked = words[0] if words else literal("localhost")
    yield Network(direction="send" if carried else "get", host=asked, carries=carried)


def openssl(call: Call) -> Iterator[AnyEffect]:
    """``openssl``: a client when told so; keys are read, results written."""
    verb = call.arguments[0].text if call.arguments else "version"
    parsed = parse(
        "~ --in:r --out:w --key:r --inkey:r --keyout:w --connect: --cert:r --CAfile:r --CApath:r --CA:r"
        " --CAkey:r --config:r --passin: --passout: --subj: --days: --servername: --host: --url: --engine:!"
        " --provider: --noout -* --writerand:w --rand:r --signature:r --verify: --sign:r --signkey:r"
        " --certfile:r --extfile:r --*",
        call.arguments[1:],
    )
    yield from options(call, parsed)
    if verb in {"s_client", "ocsp", "s_time"}:
        target = parsed.value("connect", "host", "url") or UNKNOWN
        yield Network(direction="send", host=host(target), carries=call.input)
    elif verb == "s_server":
        yield System(kind="network", detail="openssl s_server")


def mail(call: Call) -> Iterator[AnyEffect]:
    """Sends mail."""
    parsed = parse("-a:r -A:r -s: -c: -b: -r: -S: -f: -q:r -* --*", call.arguments)
    yield from options(call, parsed)
    yield Network(direction="send", host=literal("mail"), carries=call.input | taints(parsed.operands))


def browse(call: Call) -> Iterator[AnyEffect]:
    """Text browsers, and probes that send nothing of ours."""
    parsed = parse("-c: -i: -I: -m: -n: -O: -p: -q: -s: -t: -w: -W: -* --*", call.arguments)
    for word in parsed.operands[-1:]:
        yield Network(direction="send" if word.taint else "get", host=host(word), carries=word.taint)


def ftp(call: Call) -> Iterator[AnyEffect]:
    """``ftp`` and ``lftp``: their own commands cannot be read."""
    parsed = parse("-* --*", call.arguments)
    target = parsed.operands[0] if parsed.operands else UNKNOWN
    yield Network(direction="send", host=host(target), carries=call.input | FILE)


TABLE: Table = {
    **dict.fromkeys(("nc", "ncat", "netcat", "telnet"), wire),
    "socat": socat,
    **dict.fromkeys(("scp", "sftp"), copy),
    **dict.fromkeys(("ssh", "mosh", "autossh", "slogin"), ssh),
    **dict.fromkeys(
        ("dig", "nslookup", "host", "drill", "dog", "whois", "kdig", "resolvectl"), names_of_hosts
    ),
    "openssl": openssl,
    **dict.fromkeys(("mail", "mailx", "sendmail", "mutt", "msmtp", "swaks"), mail),
    **dict.fromkeys(
        ("ping", "ping6", "traceroute", "tracepath", "mtr", "lynx", "w3m", "links", "elinks"), browse
    ),
    **dict.fromkeys(("ftp", "lftp", "tftp", "ncftp"), ftp),
}
