"""The scripted model server over real sockets."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
import stat
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from remuda.rehearsal.scenario import Scenario, load_scenario, parse_scenario
from remuda.rehearsal.server import NotLoopbackError, RehearsalServer

LAB = parse_scenario(
    """
name: lab
rules:
  - when: {contains: limit}
    steps: [{status: 429, headers: {retry-after: "1"}, times: 1}, {text: recovered}]
  - {when: {contains: cut}, steps: [{text: "This is cut after the first few words of it.", drop: true}]}
  - {when: {contains: hang}, steps: [{hang: true}]}
  - {when: {contains: wait}, steps: [{text: late, delay: 0.2}]}
  - {when: {contains: pace}, steps: [{text: "some words that need several pieces", pace: 0.1}]}
  - {steps: [{text: "Heard {prompt_bytes} bytes."}]}
""",
    "lab",
)
MESSAGES, RESPONSES, CHAT = "/v1/messages", "/v1/responses", "/v1/chat/completions"
GEMINI = "/v1beta/models/gemini-2.5-flash"


@pytest.fixture
def server() -> Iterator[RehearsalServer]:
    with RehearsalServer(LAB) as running:
        yield running


def connect(server: RehearsalServer) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=60)


def body(prompt: str, *, stream: bool = False) -> bytes:
    """A request that every dialect reads; Gemini's says in its path whether it wants a stream."""
    messages = [{"role": "user", "content": prompt}]
    contents = [{"role": "user", "parts": [{"text": prompt}]}]
    request = {"model": "m", "stream": stream, "messages": messages, "input": messages, "contents": contents}
    return json.dumps(request).encode()


def post(
    server: RehearsalServer, path: str, data: bytes, headers: dict[str, str] | None = None
) -> tuple[int, bytes, http.client.HTTPMessage]:
    connection = connect(server)
    try:
        connection.request("POST", path, data, headers or {})
        response = connection.getresponse()
        return response.status, response.read(), response.headers
    finally:
        connection.close()


def get(server: RehearsalServer, path: str, **headers: str) -> tuple[int, bytes]:
    connection = connect(server)
    try:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


@pytest.mark.parametrize(
    "path", [MESSAGES, RESPONSES, "/responses", CHAT, "/chat/completions", f"{MESSAGES}?beta=true"]
)
@pytest.mark.parametrize("stream", [False, True])
def test_every_path_answers_plain_and_streaming(server: RehearsalServer, path: str, stream: bool) -> None:
    status, answer, headers = post(server, path, body("four", stream=stream))
    assert status == 200
    assert headers["Content-Type"] == ("text/event-stream" if stream else "application/json")
    assert b"Heard 4 byte" in answer


@pytest.mark.parametrize("base", [GEMINI, "/v1/models/gemini-2.5-flash"])
@pytest.mark.parametrize("stream", [False, True])
def test_gemini_paths_answer_plain_and_streaming(server: RehearsalServer, base: str, stream: bool) -> None:
    wanted = "streamGenerateContent?alt=sse" if stream else "generateContent"
    status, answer, headers = post(server, f"{base}:{wanted}", body("four"), {"x-goog-api-key": "hidden"})
    assert status == 200
    assert headers["Content-Type"] == ("text/event-stream" if stream else "application/json")
    assert b"Heard 4 byte" in answer
    (heard,) = server.heard()
    assert (heard.api, heard.model, heard.authorised) == ("gemini", "gemini-2.5-flash", True)


def test_gemini_counts_refuses_and_fails_in_its_own_words(server: RehearsalServer) -> None:
    assert json.loads(post(server, f"{GEMINI}:countTokens", body("x" * 400))[1])["totalTokens"] > 100
    assert post(server, f"{GEMINI}:embedContent", body("x"))[0] == 404
    for data, code, word in ((b"x", 400, "INVALID_ARGUMENT"), (body("limit"), 429, "RESOURCE_EXHAUSTED")):
        status, answer, _ = post(server, f"{GEMINI}:generateContent", data)
        assert (status, json.loads(answer)["error"]["status"]) == (code, word)


def test_a_connection_is_kept_for_the_next_request(server: RehearsalServer) -> None:
    connection = connect(server)
    for stream in (True, False, True):
        connection.request("POST", CHAT, body("hi", stream=stream))
        assert b"Heard 2" in connection.getresponse().read()
    connection.close()


def test_the_small_paths(server: RehearsalServer) -> None:
    assert get(server, "/")[0] == 200
    assert json.loads(get(server, "/v1/models?limit=5")[1])["data"][0]["id"]
    assert json.loads(post(server, f"{MESSAGES}/count_tokens", body("x" * 400))[1])["input_tokens"] > 100
    status, answer = get(server, "/v1/nothing")
    assert (status, json.loads(answer)["error"]["type"]) == (404, "not_found_error")
    assert post(server, "/v1/nothing", b"x")[0] == 404
    connection = connect(server)
    connection.request("HEAD", "/")
    assert connection.getresponse().status == 200
    connection.close()


@pytest.mark.parametrize("size", [64 * 1024, 200 * 1024])
def test_a_large_prompt_arrives_byte_for_byte(server: RehearsalServer, size: int) -> None:
    prompt = ("'\"$(x)`\t\n你好🐎" * size)[:size]
    for path in (MESSAGES, RESPONSES, CHAT, f"{GEMINI}:generateContent"):
        post(server, path, body(prompt))
    assert [heard.prompt == prompt for heard in server.heard()] == [True] * 4


@pytest.mark.parametrize(("encoding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
def test_a_compressed_request_is_read(server: RehearsalServer, encoding: str, pack: object) -> None:
    assert callable(pack)
    status, answer, _ = post(server, RESPONSES, pack(body("four")), {"Content-Encoding": encoding})
    assert (status, b"Heard 4" in answer) == (200, True)


def test_a_chunked_request_is_read(server: RehearsalServer) -> None:
    connection = connect(server)
    connection.request("POST", CHAT, iter([body("four")[:9], body("four")[9:]]), encode_chunked=True)
    assert b"Heard 4" in connection.getresponse().read()
    connection.close()


@pytest.mark.parametrize(
    ("data", "headers", "status"),
    [
        (b"x", {"Content-Encoding": "br"}, 415),
        (b"x", {"Content-Encoding": "gzip"}, 400),
        (b"x", {}, 400),
        (b'{"messages":[],"deep":' + b"[" * 100_000, {}, 400),
        (b"", {"Content-Length": "-1"}, 400),
        (b"", {"Content-Length": str(1 << 40)}, 413),
        (b"zz\r\n", {"Transfer-Encoding": "chunked"}, 400),
    ],
)
def test_an_unreadable_request_gets_a_clear_answer(
    server: RehearsalServer, data: bytes, headers: dict[str, str], status: int
) -> None:
    answer = post(server, MESSAGES, data, headers)
    assert answer[0] == status
    assert json.loads(answer[1])["error"]["message"]
    assert server.heard()[-1].status == status


def test_a_limited_fault_passes_and_leaves_other_prompts_alone(server: RehearsalServer) -> None:
    status, answer, headers = post(server, MESSAGES, body("limit"))
    assert (status, headers["retry-after"]) == (429, "1")
    assert json.loads(answer)["error"]["type"] == "rate_limit_error"
    assert post(server, MESSAGES, body("limit for a title"))[0] == 429
    assert b"recovered" in post(server, MESSAGES, body("limit"))[1]


@pytest.mark.parametrize("stream", [False, True])
def test_a_dropped_answer_ends_in_the_middle(server: RehearsalServer, stream: bool) -> None:
    connection = connect(server)
    connection.request("POST", MESSAGES, body("cut", stream=stream))
    response = connection.getresponse()
    assert response.status == 200
    with pytest.raises((http.client.IncompleteRead, ConnectionError)) as caught:
        response.read()
    if stream and isinstance(caught.value, http.client.IncompleteRead):
        assert b"This is" in caught.value.partial
        assert b"message_stop" not in caught.value.partial
    connection.close()


def test_delay_and_pace_take_their_time(server: RehearsalServer) -> None:
    for prompt, least in (("wait", 0.2), ("pace", 0.3)):
        started = time.monotonic()
        assert post(server, CHAT, body(prompt, stream=True))[0] == 200
        assert time.monotonic() - started >= least


def test_leaving_ends_a_hanging_request_at_once() -> None:
    ended: list[BaseException] = []

    def ask(server: RehearsalServer) -> None:
        try:
            post(server, MESSAGES, body("hang"))
        except (http.client.HTTPException, OSError) as problem:
            ended.append(problem)

    with RehearsalServer(LAB) as server:
        client = threading.Thread(target=ask, args=(server,))
        client.start()
        while not server.heard():
            time.sleep(0.01)
        idle = socket.create_connection(server.url.removeprefix("http://").split(":"))
        started = time.monotonic()
    client.join(60)
    assert ended
    assert time.monotonic() - started < 30
    assert [heard.status for heard in server.heard()] == [0]
    idle.close()


def test_what_was_heard_says_that_there_were_credentials_and_never_which(
    server: RehearsalServer, tmp_path: Path
) -> None:
    record = tmp_path / "heard.jsonl"
    with RehearsalServer(load_scenario("default"), record=record, record_bodies=True) as recording:
        post(recording, MESSAGES, body("first"), {"x-api-key": "sk-hidden"})
        post(recording, CHAT, body("second"))
        served = json.loads(get(recording, "/rehearsal/requests")[1])
        heard = recording.heard()
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    assert lines == served
    assert [line["prompt"] for line in lines] == ["first", "second"]
    assert [(one.seq, one.api, one.path, one.authorised) for one in heard] == [
        (1, "anthropic-messages", MESSAGES, True),
        (2, "openai-chat", CHAT, False),
    ]
    assert lines[0]["body"].encode() == body("first")
    assert "sk-hidden" not in record.read_text()
    assert stat.S_IMODE(record.stat().st_mode) == 0o600


def test_the_record_is_not_for_pages_from_elsewhere(server: RehearsalServer) -> None:
    post(server, CHAT, body("private"))
    status, answer = get(server, "/rehearsal/requests", Host="evil.example:80")
    assert (status, b"private" in answer) == (403, False)


def test_the_scenario_can_change_while_serving(server: RehearsalServer) -> None:
    other: Scenario = parse_scenario("{name: other, rules: [{steps: [{text: other}]}]}", "other")
    server.set_scenario(other)
    assert b"other" in post(server, CHAT, body("hi"))[1]


def test_many_clients_at_once(server: RehearsalServer) -> None:
    threads = [
        threading.Thread(target=post, args=(server, CHAT, body(f"p{number}", stream=True)))
        for number in range(32)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(heard.prompt for heard in server.heard()) == sorted(f"p{number}" for number in range(32))
    assert [heard.seq for heard in server.heard()] == list(range(1, 33))


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.4", "example.org", "", "::"])
def test_only_loopback_is_served(host: str) -> None:
    with pytest.raises(NotLoopbackError, match="loopback"):
        RehearsalServer(LAB, host=host)
