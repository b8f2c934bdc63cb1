"""Programs that transfer what an address names: ``curl``, ``wget`` and their kin."""

from __future__ import annotations

import re
from collections.abc import Iterator

from remuda.guard.commands.contract import Call, Table
from remuda.guard.commands.operands import HERE, base, join, names, taints, written
from remuda.guard.commands.options import Parsed, parse
from remuda.guard.commands.rows import options
from remuda.guard.commands.urls import host
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

_DELETES = r"[/_]do_?(delete|wipe)\b|_delete_by_query|delete_series|/(delete|purge|destroy|drop|flush)(/|$)"
FILE: frozenset[Taint] = frozenset({"file"})
SECRET: frozenset[Taint] = frozenset({"secret"})

PROXIES = tuple(names("proxy preproxy socks5 socks5-hostname socks4 socks4a doh-url"))
SENT = frozenset("DEFSTU")
"""Roles of what goes out: data (``D``, ``E`` as a form's value, ``F`` as a form, ``S`` as it is, ``U`` a
whole file) and mere text of the request (``T``)."""

CURL_OPTIONS = """
    -d|--data:D --data-ascii:D --data-binary:D --data-raw:S --data-urlencode:E --json:D --url-query:T
    -F|--form:F --form-string:S -T|--upload-file:U -X|--request: -H|--header:T -A|--user-agent:T
    -e|--referer:T -u|--user:T -b|--cookie:T -x|--proxy:H --preproxy:H --socks5:H --socks5-hostname:H
    --socks4:H --socks4a:H --connect-to: --resolve: -o|--output:O -D|--dump-header:w -c|--cookie-jar:w
    --trace:w --trace-ascii:w --stderr:w --hsts:w --alt-svc:w --etag-save:w --etag-compare:r --libcurl:w
    --output-dir: -O|--remote-name --remote-name-all -J|--remote-header-name -K|--config:! -m|--max-time:
    --connect-timeout: --retry: --retry-delay: --retry-max-time: -r|--range: -C: -z: -y: -Y: -w|--write-out:W
    -E|--cert:r --key:r --cacert:r --capath:r --cert-type: --key-type: --pass: --ciphers: --limit-rate:
    --max-filesize: --max-redirs: --interface: --local-port: -U|--proxy-user:T -Q|--quote:! -P: -t:
    --netrc-file:r --oauth2-bearer:T --aws-sigv4: --unix-socket:w --abstract-unix-socket: --url: --variable:!
    --expand-data:! --expand-url:! --proto: --proto-default: --proto-redir: --mail-from: --mail-rcpt:
    --tls-max: --rate: --parallel-max: --happy-eyeballs-timeout-ms: --keepalive-time: --noproxy:
    --dns-servers: --doh-url:H -n|--netrc --netrc-optional -I|--head -G|--get -* --*
"""
WGET_OPTIONS = """
    -O|--output-document:w -o|--output-file:w -a|--append-output:a -P|--directory-prefix: -i|--input-file:r
    --post-data:T --post-file:r --body-data:T --body-file:r --method: --header:T -U|--user-agent:T --referer:T
    --user:T --password:T --save-cookies:w --load-cookies:r --use-askpass:! -e|--execute:! --config:!
    --warc-file:w --rejected-log:w -t|--tries: -T|--timeout: --wait: -w: -Q: -B: -A: -R: -D: -I: -X:
    -l|--level: --limit-rate: --accept: --reject: --domains: --exclude-domains: --ca-certificate:r
    --certificate:r --private-key:r --secure-protocol: --bind-address: --cut-dirs: --default-page:
    --compression: --max-redirect: --spider --progress: -* --*
"""


def curl(call: Call) -> Iterator[AnyEffect]:
    """``curl``: gets, unless an option gives it something to send."""
    parsed = parse(CURL_OPTIONS, call.arguments)
    yield from options(call, parsed)
    yield from _files(parsed)
    for hop in parsed.values(*PROXIES):
        yield Network(direction="get", host=host(hop))
    carried, sends = _payload(parsed, call)
    for address in parsed.operands + parsed.values("url"):
        if any(value.startswith("file:") for value in address.values):
            yield Read(path=literal((address.text or "").removeprefix("file:").replace("//", "", 1)))
            continue
        yield Network(
            direction="send" if sends else "get", host=host(address), carries=carried | address.taint
        )
        yield from deleting((parsed.value("request") or literal("")).text or "", address, sends)
        if parsed.has("remote-name", "remote-name-all", "remote-header-name"):
            yield from written(join(parsed.value("output-dir"), base(address)), "truncate")


def deleting(method: str, address: Word, sends: bool) -> Iterator[AnyEffect]:
    """A request that says itself that something will be gone: by its method, or by its path."""
    path = (address.text or "").lower().partition("?")[0]
    if method.upper() in {"DELETE", "PURGE"} or (sends and re.search(_DELETES, path)):
        yield System(kind="cloud", detail="a request that deletes", destroys=True)


def _payload(parsed: Parsed, call: Call) -> tuple[frozenset[Taint], bool]:
    """What goes out with a request beside its address, and whether it is more than a question."""
    carried = SECRET if parsed.has("netrc", "netrc-optional", "netrc-file") else NOTHING
    method = (parsed.value("request") or literal("")).text or ""
    sends = method.upper() not in {"", "GET", "HEAD", "OPTIONS"}
    for option, value in parsed.given:
        if value is not None and option.role in SENT:
            carried |= value.taint
            sends = sends or (option.role != "T" and not parsed.has("get"))
            for source in _sources(option.role, value):
                carried |= call.input if source.text == "-" else FILE
    return carried, sends


def _sources(kind: str, value: Word) -> list[Word]:
    """The files that a value sends: behind an ``@``, or all of it."""
    if kind == "U":
        return [value]
    found = []
    for text in value.values or (value.prefix,):
        head, _, tail = text.partition("@")
        if kind == "F":
            head, _, tail = text.partition("=")
            head, tail = ("", tail[1:].partition(";")[0]) if tail[:1] in {"@", "<"} else ("=", "")
        if tail and (not head or (kind == "E" and "=" not in head)) and kind not in "TS":
            found.append(literal(tail) if value.values else UNKNOWN)
    return found


def _files(parsed: Parsed) -> Iterator[AnyEffect]:
    """The files that go out, and those that what comes in is written to."""
    for option, value in parsed.given:
        if value is None:
            continue
        if option.role == "O":
            yield from written(join(parsed.value("output-dir"), value), "truncate")
        elif option.role == "W" and "%output{" in (value.text or "%output{"):
            yield Unknown(why="curl writes what it is told to print into a file")
        elif option.role in SENT:
            yield from (Read(path=source) for source in _sources(option.role, value) if source.text != "-")


def wget(call: Call) -> Iterator[AnyEffect]:
    """``wget``: writes what it gets into the folder, unless to standard output."""
    parsed = parse(WGET_OPTIONS, call.arguments)
    yield from options(call, parsed)
    sends = parsed.has("post-data", "post-file", "body-data", "body-file", "method")
    carried = taints([value for option, value in parsed.given if value is not None and option.role == "T"])
    carried |= FILE if parsed.has("post-file", "body-file") else NOTHING
    for address in parsed.operands:
        yield Network(
            direction="send" if sends else "get", host=host(address), carries=carried | address.taint
        )
        yield from deleting((parsed.value("method") or literal("")).text or "", address, sends)
    if not parsed.has("output-document", "spider") and (parsed.operands or parsed.has("input-file")):
        yield from written(parsed.value("directory-prefix") or HERE, "create")


def httpie(call: Call) -> Iterator[AnyEffect]:
    """``http METHOD URL ITEM…``: items make it a post."""
    parsed = parse(
        "-o|--output:w -a|--auth:T -A: --session:c --session-read-only:r -d|--download -* --*", call.arguments
    )
    words = list(parsed.operands)
    method = words.pop(0).text or "" if words and (words[0].text or "").isupper() else ""
    sends = method not in {"", "GET", "HEAD", "OPTIONS"} or (not method and len(words) > 1)
    yield from options(call, parsed)
    if parsed.has("download"):
        yield from written(HERE, "create")
    piped = call.input - {"input"}
    if words:
        files = FILE if any("@" in (word.text or "@") for word in words[1:]) else NOTHING
        yield Network(
            direction="send" if sends or piped else "get",
            host=host(words[0]),
            carries=taints(words) | piped | files,
        )
        yield from deleting(method, words[0], sends)


def fetcher(call: Call) -> Iterator[AnyEffect]:
    """Programs that download addresses into a folder."""
    parsed = parse(
        "-o:w -O:w -d: -P: --dir: --out:w --output:w --exec:x --on-download-complete:! -i:r -* --*",
        call.arguments,
    )
    yield from options(call, parsed)
    for word in parsed.operands:
        yield Network(direction="get", host=host(word), carries=word.taint)
    yield from written(parsed.value("d", "dir", "P") or HERE, "create")


TABLE: Table = {
    "curl": curl,
    "wget": wget,
    **dict.fromkeys(("http", "https", "xh", "xhs"), httpie),
    **dict.fromkeys(("aria2c", "axel", "yt-dlp", "youtube-dl", "gdown"), fetcher),
}
