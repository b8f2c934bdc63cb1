"""Trust: where agents may act unasked while nobody watches, and the record of those that did."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import cast

import pytest
from tests.integration.repositories import agent
from tests.support import Ended, Site

BYPASS = ("run", "--agent", "rehearsal", "--json", "--permission", "bypass")
PROMPT = "a-prompt-that-no-record-holds"


def unattended(site: Site, *more: str, **env: str) -> Ended:
    return site.remuda(*BYPASS, "--unattended", *more, PROMPT, **env)


def trusted(site: Site) -> list[str]:
    listed = cast(list[dict[str, str]], site.remuda("trust", "list", "--json").json["trusted"])
    return [each["path"] for each in listed]


def test_an_untrusted_folder_is_refused(site: Site) -> None:
    ended = unattended(site)
    assert (ended.code, ended.error["kind"]) == (5, "refused")
    assert "is not trusted yet" in ended.error["message"]
    assert f"remuda trust add {site.cwd}" in ended.error["message"]
    assert not (site.home / "state" / "unattended.jsonl").exists()


def test_a_trusted_one_is_not_with_all_below_it(site: Site) -> None:
    assert site.remuda("trust", "add").code == 0
    assert trusted(site) == [str(site.cwd)]
    (site.cwd / "sub").mkdir()
    assert unattended(site).code == 0
    assert unattended(site, "--cwd", "sub").code == 0
    assert unattended(site, "--cwd", str(site.folder)).code == 5
    assert site.remuda("trust", "remove").code == 0
    assert unattended(site).code == 5
    assert site.remuda("trust", "remove").code == 4


def test_the_real_path_counts(site: Site) -> None:
    elsewhere = site.folder / "elsewhere"
    elsewhere.mkdir()
    (site.cwd / "link").symlink_to(elsewhere)
    site.remuda("trust", "add")
    assert unattended(site, "--cwd", "link").code == 5
    beside = site.folder / "work-2"
    beside.mkdir()
    assert unattended(site, "--cwd", str(beside)).code == 5
    site.remuda("trust", "add", "link")
    assert unattended(site, "--cwd", str(elsewhere)).code == 0


@pytest.mark.parametrize("more", [(), ("--unattended", "--permission", "ask")])
def test_who_is_there_or_asks_needs_no_trust(site: Site, more: tuple[str, ...]) -> None:
    assert site.remuda(*BYPASS, *more, PROMPT).code == 0


def test_arguments_of_the_programs_own_may_say_that_nobody_is_asked(site: Site) -> None:
    asked = (
        "run",
        "--agent",
        "rehearsal",
        "--json",
        "--unattended",
        PROMPT,
        "--",
        "--permission-mode",
        "bypass",
    )
    assert site.remuda(*asked).code == 5
    site.remuda("trust", "add")
    assert site.remuda(*asked).code == 0


def test_a_session_that_goes_on_is_judged_by_its_own_folder(site: Site) -> None:
    session = str(site.remuda(*BYPASS, PROMPT).events[-1]["session"])
    other = site.folder / "other"
    other.mkdir()
    site.remuda("trust", "add", str(other))
    site.cwd = other
    assert unattended(site, "--session", session).code == 5


def test_an_isolated_run_is_judged_by_its_repository(site: Site) -> None:
    agent(site)
    isolated = ("run", "--agent", "claude", "--json", "--permission", "bypass", "--unattended", "--isolated")
    assert site.remuda(*isolated, "true").code == 5
    site.remuda("trust", "add")
    first = site.remuda(*isolated, "true")
    assert first.code == 0, first.stderr
    again = site.remuda(*isolated, "--session", str(first.events[-1]["session"]), "true")
    assert again.code == 0, again.stdout
    site.remuda("trust", "remove")
    assert site.remuda(*isolated, "--session", str(first.events[-1]["session"]), "true").code == 5


def test_unattended_runs_are_on_record_without_their_prompt(site: Site) -> None:
    site.remuda("trust", "add")
    ended = unattended(site)
    record = site.home / "state" / "unattended.jsonl"
    (line,) = record.read_text().splitlines()
    entry = json.loads(line)
    assert entry.pop("time").startswith("2")
    assert entry == {
        "uid": os.getuid(),
        "agent": "rehearsal",
        "runtime": "rehearsal",
        "session": ended.events[-1]["session"],
        "folder": str(site.cwd),
        "permission": "bypass",
    }
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    assert PROMPT not in line


@pytest.mark.parametrize("harm", ["mode", "malformed"])
def test_a_list_that_others_could_have_written_counts_for_nothing(site: Site, harm: str) -> None:
    site.remuda("trust", "add")
    file = site.home / "config" / "trusted.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    if harm == "mode":
        file.chmod(0o666)
    else:
        file.write_text('{"trusted": [{"path": 5}]}')
    assert unattended(site).code == 5
    assert site.remuda("trust", "list").code in (2, 5)


def test_what_is_no_folder_cannot_be_trusted(site: Site) -> None:
    assert site.remuda("trust", "add", "nowhere").code == 4
    assert not Path(site.home / "config" / "trusted.json").exists()
