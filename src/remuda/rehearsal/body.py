"""Read the body of an HTTP request: by length or in chunks, plain or compressed."""

from __future__ import annotations

import zlib
from email.message import Message
from io import BufferedIOBase

LARGEST = 64 * 1024 * 1024


class BodyError(Exception):
    """A body that cannot be read; `status` is the HTTP status that says so."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def read_body(headers: Message, stream: BufferedIOBase) -> bytes:
    """The request's body, decompressed."""
    return _inflate(_read_raw(headers, stream), headers.get("Content-Encoding", "").strip().lower())


def _read_raw(headers: Message, stream: BufferedIOBase) -> bytes:
    if "chunked" in headers.get("Transfer-Encoding", "").lower():
        return _read_chunks(stream)
    length = headers.get("Content-Length", "0").strip()
    if not length.isdecimal():
        raise BodyError(400, "Content-Length is not a number")
    return _read_exactly(stream, int(length))


def _read_exactly(stream: BufferedIOBase, length: int) -> bytes:
    if length > LARGEST:
        raise BodyError(413, f"The request is larger than {LARGEST} bytes")
    data = stream.read(length)
    if len(data) < length:
        raise BodyError(400, "The request ended early")
    return data


def _read_chunks(stream: BufferedIOBase) -> bytes:
    parts: list[bytes] = []
    total = 0
    while size := _chunk_size(stream.readline(1024)):
        total += size
        parts.append(_read_exactly(stream, size if total <= LARGEST else total))
        stream.readline(1024)
    while stream.readline(65536).strip():
        pass
    return b"".join(parts)


def _chunk_size(line: bytes) -> int:
    try:
        return int(line.split(b";")[0], 16)
    except ValueError as problem:
        raise BodyError(400, "The request has a malformed chunk") from problem


def _inflate(data: bytes, encoding: str) -> bytes:
    if encoding in ("", "identity"):
        return data
    if encoding not in ("gzip", "deflate"):
        raise BodyError(415, f"Content-Encoding {encoding!r} is not supported: send plain, gzip or deflate")
    try:
        return zlib.decompress(data, wbits=zlib.MAX_WBITS | 32)
    except zlib.error as problem:
        raise BodyError(400, f"The request is not valid {encoding}") from problem
