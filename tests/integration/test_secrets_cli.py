"""``remuda secrets``: values go in unseen, and come out in the environment of an agent only."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import cast

import pytest
from tests.support import PYTHON, SHELL, Site, Terminal, finish

CANARY = "canary-9f31c7-never-shown"
TELLS = f"""{PYTHON}
import json, os
text = json.dumps({{k: v for k, v in os.environ.items() if "KEY" in k or "TOKEN" in k or "URL" in k}})
print(json.dumps({{"type": "system", "subtype": "init", "session_id": "s"}}))
print(json.dumps({{"type": "result", "subtype": "success", "session_id": "s", "result": text}}))
"""
TWO = '[agents.work]\nruntime = "claude"\nsecrets = "office"\n[agents.private]\nruntime = "claude"\n'
KEYRING = """
import os, pathlib
_file = pathlib.Path(os.environ["HOME"]) / "ring"
def _all():
    return dict(line.split("=", 1) for line in _file.read_text().splitlines()) if _file.exists() else {}
def get_password(service, name):
    return _all().get(service + "/" + name)
def set_password(service, name, value):
    _file.write_text("".join(f"{k}={v}\\n" for k, v in {**_all(), service + "/" + name: value}.items()))
def delete_password(service, name):
    kept = _all()
    del kept[service + "/" + name]
    _file.write_text("".join(f"{k}={v}\\n" for k, v in kept.items()))
"""


def keep(site: Site, key: str, value: str, *more: str) -> None:
    ended = site.remuda("secrets", "set", key, *more, stdin=f"{value}\n".encode())
    assert ended.code == 0, ended.stderr
    assert value not in ended.stdout + ended.stderr


def environment(site: Site, agent: str, **env: str) -> dict[str, str]:
    """What an agent finds in its environment."""
    site.program("claude", TELLS)
    ended = site.remuda("run", "--agent", agent, "--json", "hi", **env)
    assert ended.code == 0, ended.stderr
    return cast(dict[str, str], json.loads(str(ended.result["text"])))


def configure(site: Site, text: str) -> None:
    (site.home / "config").mkdir(parents=True, exist_ok=True)
    (site.home / "config" / "config.toml").write_text(text)


def test_two_accounts_side_by_side(site: Site) -> None:
    configure(site, TWO)
    keep(site, "ANTHROPIC_API_KEY", CANARY, "--scope", "office")
    keep(site, "ANTHROPIC_API_KEY", "of-everybody")
    keep(site, "OPENAI_API_KEY", "not-for-claude")
    strays = {"ANTHROPIC_AUTH_TOKEN": "stray", "REMUDA_DATABASE_URL": ""}
    assert environment(site, "work", **strays) == {"ANTHROPIC_API_KEY": CANARY}
    assert environment(site, "private") == {"ANTHROPIC_API_KEY": "of-everybody"}
    assert environment(site, "private", ANTHROPIC_API_KEY="here") == {"ANTHROPIC_API_KEY": "here"}


def test_only_names_are_listed(site: Site) -> None:
    keep(site, "ANTHROPIC_API_KEY", CANARY, "--scope", "office")
    keep(site, "OPENAI_API_KEY", CANARY)
    shown = site.remuda("secrets", "list")
    assert [line.split() for line in shown.stdout.splitlines()[1:]] == [
        ["global", "OPENAI_API_KEY", "file"],
        ["office", "ANTHROPIC_API_KEY", "file"],
    ]
    document = site.remuda("secrets", "list", "--scope", "office", "--json").json
    assert document["secrets"] == [{"scope": "office", "key": "ANTHROPIC_API_KEY", "kept": "file"}]
    assert CANARY not in shown.stdout + shown.stderr + str(document)


def test_a_value_is_never_an_argument(site: Site) -> None:
    ended = site.remuda("secrets", "set", "ANTHROPIC_API_KEY", CANARY)
    assert ended.code == 2
    assert CANARY not in ended.stdout + ended.stderr
    assert not (site.home / "config" / "secrets.toml").exists()


def test_a_value_from_a_variable(site: Site) -> None:
    assert site.remuda("secrets", "set", "OPENAI_API_KEY", "--from-env", "MINE", MINE=CANARY).code == 0
    assert CANARY in (site.home / "config" / "secrets.toml").read_text()
    assert site.remuda("secrets", "set", "OPENAI_API_KEY", "--from-env", "NOBODYS").code == 2


def test_a_typed_value_is_not_shown(site: Site) -> None:
    with Terminal(["remuda", "secrets", "set", "OPENAI_API_KEY"], site.cwd, site.env) as terminal:
        terminal.expect("Value of OPENAI_API_KEY")
        terminal.type(f"{CANARY}\n")
        assert terminal.end() == 0
        assert CANARY not in terminal.shown
    assert CANARY in (site.home / "config" / "secrets.toml").read_text()


@pytest.mark.parametrize("stdin", [b"", b"\n", b"  \n", b"\xff\xfe", b"a\0b", b"x" * 70_000])
def test_what_is_no_value_is_refused(site: Site, stdin: bytes) -> None:
    assert site.remuda("secrets", "set", "OPENAI_API_KEY", stdin=stdin).code == 2
    assert not (site.home / "config" / "secrets.toml").exists()


def test_removing(site: Site) -> None:
    keep(site, "OPENAI_API_KEY", CANARY)
    assert site.remuda("secrets", "remove", "OPENAI_API_KEY", "--scope", "other").code == 4
    assert site.remuda("secrets", "remove", "OPENAI_API_KEY").code == 0
    assert CANARY not in (site.home / "config" / "secrets.toml").read_text()
    assert site.remuda("secrets", "remove", "OPENAI_API_KEY").code == 4


def test_a_file_that_others_can_read_stops_runs_until_it_is_mended(site: Site) -> None:
    keep(site, "ANTHROPIC_API_KEY", CANARY)
    file = site.home / "config" / "secrets.toml"
    file.chmod(0o644)
    site.program("claude", TELLS)
    ended = site.remuda("run", "--agent", "claude", "--json", "hi")
    assert (ended.code, ended.error["kind"]) == (5, "refused")
    assert "chmod 600" in ended.error["message"]
    file.chmod(0o600)
    assert environment(site, "claude") == {"ANTHROPIC_API_KEY": CANARY}


def test_many_at_once_lose_nothing(site: Site) -> None:
    started = [
        site.start("secrets", "set", f"KEY_{number}", "--from-env", "MINE", MINE=CANARY)
        for number in range(8)
    ]
    assert [finish(process).code for process in started] == [0] * 8
    document = site.remuda("secrets", "list", "--json").json
    assert len(cast(list[object], document["secrets"])) == 8


def test_without_a_keyring_that_is_told_and_nothing_is_kept(site: Site) -> None:
    ended = site.remuda("secrets", "set", "OPENAI_API_KEY", "--keyring", stdin=CANARY.encode())
    assert ended.code == 2
    assert "keyring" in ended.stderr
    assert CANARY not in ended.stderr
    assert not (site.home / "config" / "secrets.toml").exists()


def test_with_a_keyring_the_file_only_says_where_it_is(site: Site) -> None:
    (site.folder / "modules").mkdir()
    (site.folder / "modules" / "keyring.py").write_text(KEYRING)
    site.env["PYTHONPATH"] = str(site.folder / "modules")
    keep(site, "ANTHROPIC_API_KEY", CANARY, "--keyring")
    assert CANARY not in (site.home / "config" / "secrets.toml").read_text()
    assert site.remuda("secrets", "list", "--json").json["secrets"] == [
        {"scope": "global", "key": "ANTHROPIC_API_KEY", "kept": "keyring"}
    ]
    assert environment(site, "claude") == {"ANTHROPIC_API_KEY": CANARY}
    assert site.remuda("secrets", "remove", "ANTHROPIC_API_KEY").code == 0
    assert CANARY not in (site.folder / "ring").read_text()
    assert environment(site, "claude") == {}


def test_it_is_nowhere_on_the_command_line(site: Site) -> None:
    process = site.start("secrets", "set", "OPENAI_API_KEY", stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(CANARY.encode())
    with open(f"/proc/{process.pid}/cmdline", "rb") as stream:  # noqa: PTH123
        assert CANARY.encode() not in stream.read()
    assert finish(process).code == 0


def test_a_program_that_quotes_its_key_is_not_repeated(site: Site) -> None:
    site.program("claude", f'{SHELL}echo "Illegal header value: Bearer $ANTHROPIC_API_KEY" >&2\nexit 1\n')
    configure(site, '[agents.work]\nruntime = "claude"\nfailover_to = ["rehearsal"]\n')
    keep(site, "ANTHROPIC_API_KEY", CANARY, "--scope", "work")
    ended = site.remuda("-v", "run", "--agent", "work", "--json", "hi")
    assert "Illegal header value: Bearer <ANTHROPIC_API_KEY>" in ended.stdout
    assert CANARY not in ended.stdout + ended.stderr
    holding = [path.name for path in site.home.rglob("*") if path.is_file() and CANARY in _text(path)]
    assert holding == ["secrets.toml"]


def _text(path: Path) -> str:
    return path.read_bytes().decode("latin-1")


def test_keys_that_cannot_be_read_are_told_of_the_agent_that_needs_them(site: Site) -> None:
    site.program("claude", TELLS)
    configure(site, TWO)
    keep(site, "ANTHROPIC_API_KEY", CANARY, "--scope", "private")
    (site.home / "config" / "secrets.toml").write_text(
        f'[scopes.office]\nANTHROPIC_API_KEY = {{keyring = "remuda"}}\n'
        f'[scopes.private]\nANTHROPIC_API_KEY = "{CANARY}"\n'
    )
    rows = cast(list[dict[str, str]], site.remuda("agents", "--json").json["agents"])
    found = {row["name"]: row for row in rows}
    assert (found["work"]["status"], found["private"]["status"]) == ("unusable", "callable")
    assert "keyring" in found["work"]["reason"]


def test_a_runtime_that_cannot_be_read_is_in_nobodys_way(site: Site) -> None:
    (site.home / "config" / "runtimes").mkdir(parents=True)
    (site.home / "config" / "runtimes" / "mine.toml").write_text("no declaration")
    keep(site, "ANTHROPIC_API_KEY", CANARY)
