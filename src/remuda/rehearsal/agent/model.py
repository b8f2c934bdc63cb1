"""The model: one streamed request of the Anthropic Messages API over plain HTTP, with quick retries."""

from __future__ import annotations

import http.client
import time
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from remuda.core.errors import ConfigError, RemudaError
from remuda.rehearsal.agent.answer import Answer, Assembly, StreamEvent, Trouble
from remuda.rehearsal.agent.lines import Emit, Retry
from remuda.rehearsal.agent.messages import Request

RETRIES = 2
RETRY_SECONDS = 0.2
CONNECT_SECONDS = 10.0
SILENCE_SECONDS = 300.0


class ModelError(RemudaError):
    """The model did not answer; status 0 means that there was no HTTP answer to speak of."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status

    @property
    def passing(self) -> bool:
        """Whether the same request may succeed a moment later."""
        return self.status == 0 or self.status >= 500


class Endpoint(Struct, frozen=True):
    """Where the model is."""

    host: str
    port: int
    path: str
    api_key: str = ""

    @classmethod
    def parse(cls, base_url: str, api_key: str = "") -> Endpoint:
        """Read a base URL such as http://127.0.0.1:8080."""
        try:
            url = urlsplit(base_url)
            port = url.port or 80
        except ValueError:
            url, port = urlsplit(""), 0
        if url.scheme != "http" or not url.hostname:
            raise ConfigError(
                "REHEARSAL_BASE_URL is not an http:// address", "example: http://127.0.0.1:8080"
            )
        return cls(url.hostname, port, f"{url.path.rstrip('/')}/v1/messages", api_key)


class _ErrorBody(Struct, frozen=True):
    error: Trouble


def ask(endpoint: Endpoint, request: Request, emit: Emit) -> Answer:
    """Ask the model, telling what it says as it comes.

    Retried are failures that may pass, and only until the first word is out: said twice would be worse.
    """
    body = msgspec.json.encode(request)
    attempt = 1
    while True:
        assembly = Assembly(emit)
        try:
            return _exchange(endpoint, body, assembly)
        except ModelError as error:
            if attempt > RETRIES or assembly.has_spoken or not error.passing:
                raise
            emit(Retry(error.status, error.message, attempt))
        time.sleep(RETRY_SECONDS * attempt)
        attempt += 1


def _exchange(endpoint: Endpoint, body: bytes, assembly: Assembly) -> Answer:
    connection = http.client.HTTPConnection(endpoint.host, endpoint.port, timeout=CONNECT_SECONDS)
    headers = {"content-type": "application/json", "anthropic-version": "2023-06-01"}
    if endpoint.api_key:
        headers["x-api-key"] = endpoint.api_key
    try:
        connection.connect()
        connection.sock.settimeout(SILENCE_SECONDS)
        connection.request("POST", endpoint.path, body, headers)
        response = connection.getresponse()
        if response.status != 200:
            raise ModelError(response.status, _message(response))
        return _assemble(response, assembly)
    except (OSError, http.client.HTTPException) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or type(error).__name__
        where = f"{endpoint.host}:{endpoint.port}"
        raise ModelError(0, f"the connection to the model at {where} failed: {reason}") from None
    finally:
        connection.close()


def _message(response: http.client.HTTPResponse) -> str:
    """The words of an error answer."""
    try:
        return msgspec.json.decode(response.read(), type=_ErrorBody).error.message
    except (msgspec.DecodeError, UnicodeDecodeError):
        return f"the model answered {response.status} {response.reason}"


def _assemble(stream: Iterable[bytes], assembly: Assembly) -> Answer:
    try:
        for data in _events(stream):
            event = msgspec.json.decode(data, type=StreamEvent)
            if event.error:
                status = 529 if event.error.type == "overloaded_error" else 500
                raise ModelError(status, event.error.message)
            assembly.add(event)
            if event.type == "message_stop":
                return assembly.finish()
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise ModelError(0, "the model's answer is not of the Anthropic Messages API") from None
    raise ModelError(0, "the connection to the model was lost in the middle of its answer")


def _events(stream: Iterable[bytes]) -> Iterator[bytes]:
    """The data of each server-sent event."""
    data: list[bytes] = []
    for line in stream:
        field, _, value = line.rstrip(b"\r\n").partition(b":")
        if field == b"data":
            data.append(value.removeprefix(b" "))
        elif not field and data:
            yield b"\n".join(data)
            data = []
