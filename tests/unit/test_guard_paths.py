"""Where paths lead: links, dots, globs, zones and what lies there."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.guard.globs import LONGEST
from remuda.guard.model import UNKNOWN, Capability, Context, Word, literal
from remuda.guard.paths import Disk, Observer, Terrain, within

LINKS = {
    "/w/one/up": "/w",
    "/w/one/etc": "/etc",
    "/w/one/file": "/w/notes",
    "/w/one/in": "/w/one/src",
    "/w/one/near": "../one/src",
    "/w/one/loop": "loop",
    "/w/here": "one",
}
NAMES = {
    "/w": ["one", "two", "one-more", ".git"],
    "/w/one": ["src", "up", ".env", ".claude", "a.log"],
    "/": ["etc", "home", "w"],
    "/etc": ["hosts", "shadow"],
    "/proc/1": ["environ", "status"],
    "/w/one/.claude": ["settings.json", "hooks"],
    "/w/one/.claude/hooks": ["guard.sh"],
    "/home/alice": [".ssh", "notes"],
    "/home/alice/.ssh": ["id_rsa", "id_rsa.pub", "known_hosts"],
}


class Seen:
    """A file system in two tables."""

    def link(self, path: str) -> str | None:
        return LINKS.get(path)

    def entries(self, folder: str) -> Iterable[tuple[str, bool]]:
        return [(name, f"{folder}/{name}" in LINKS) for name in NAMES.get(folder, ())]

    def folder(self, path: str) -> bool:
        return True


def terrain(
    capability: Capability = "builder", worktree: str | None = "/w/one", observer: Observer | None = None
) -> Terrain:
    context = Context(capability=capability, worktree=worktree, project_root="/w", home="/home/alice")
    return Terrain(context, "/w/one", observer or Seen())


@pytest.mark.parametrize(
    ("path", "resolved", "zone"),
    [
        ("/w/one/src/a.py", "/w/one/src/a.py", "inside"),
        ("/w/one", "/w/one", "ground"),
        ("/w/one/", "/w/one", "ground"),
        ("/w/one/src/..", "/w/one", "ground"),
        ("/w/one/src/../../two/x", "/w/two/x", "outside"),
        ("/w/one-more/x", "/w/one-more/x", "outside"),
        ("/w/One/x", "/w/One/x", "outside"),
        ("/w/one/up/notes", "/w/notes", "outside"),
        ("/w/one/etc/passwd", "/etc/passwd", "system"),
        ("/w/one/file", "/w/notes", "outside"),
        ("/w/one/in/x", "/w/one/src/x", "inside"),
        ("/w/one/near/x", "/w/one/src/x", "inside"),
        ("/w/here/x", "/w/one/x", "inside"),
        ("/w/one/up/one/x", "/w/one/x", "inside"),
        ("/w/one/etc/../x", "/x", "root"),
        ("/w", "/w", "root"),
        ("/", "/", "root"),
        ("/home/alice", "/home/alice", "root"),
        ("/home/me", "/home/me", "root"),
        ("/home/alice/x", "/home/alice/x", "home"),
        ("/etc", "/etc", "root"),
        ("/tmp", "/tmp", "temporary"),
        ("/tmp/x", "/tmp/x", "temporary"),
        ("/var/tmp/x", "/var/tmp/x", "temporary"),
        ("/dev/sda", "/dev/sda", "device"),
        ("/dev/shm/x", "/dev/shm/x", "temporary"),
        ("/dev/null", "/dev/null", "nowhere"),
        ("/dev/../dev/null", "/dev/null", "nowhere"),
        ("/dev/fd/7", "/dev/fd/7", "nowhere"),
        ("/proc/self/root/etc/passwd", "/etc/passwd", "system"),
        ("src/new/deep/x", "/w/one/src/new/deep/x", "inside"),
        ("...", "/w/one/...", "inside"),
    ],
)
def test_a_path_leads_where_the_kernel_would_go(path: str, resolved: str, zone: str) -> None:
    place = terrain().place(path)
    assert (place.path, place.zone) == (resolved, zone)


@pytest.mark.parametrize(
    "path", ["", "/w/one/a\0b", "/w/one/loop/x", "/proc/self/cwd/x", "/proc/9/fd/1", "/" + "a/" * LONGEST]
)
def test_a_path_that_nobody_can_follow_is_unknown(path: str) -> None:
    assert terrain().place(path).zone == "unknown"


def test_the_end_of_a_path_is_followed_by_what_is_done_to_it() -> None:
    assert terrain().place("/w/one/up", follows=False).zone == "inside"
    assert terrain().place("/w/one/up/", follows=False).path == "/w"
    assert terrain().place("/w/one/up/.", follows=False).path == "/w"
    assert terrain().place("/w/one/up/one/up", follows=False).path == "/w/one/up"


def test_links_of_the_same_call_are_followed() -> None:
    land = terrain()
    assert [lead.path for lead in land.link(literal("/w/one/new"), literal("/w/two"))] == ["/w/two"]
    assert land.place("/w/one/new/x").path == "/w/two/x"
    land.link(literal("/w/one/src/rel"), literal("../../two"))
    assert land.place("/w/one/src/rel/x").path == "/w/two/x"


def test_a_link_to_nobody_knows_where_is_unknown_from_then_on() -> None:
    land = terrain()
    assert [lead.zone for lead in land.link(literal("/w/one/new"), UNKNOWN)] == ["unknown"]
    assert land.place("/w/one/new/x").zone == "unknown"


def test_a_link_that_may_have_two_names_has_both() -> None:
    land = terrain()
    land.link(Word(("/w/one/new", "/w/one/new/two")), literal("/w/two"))
    assert land.place("/w/one/new/x").path == "/w/two/x"
    assert land.place("/w/one/new/two/x").zone == "outside"


def test_nothing_is_inside_where_no_worktree_is_known() -> None:
    context = Context(capability="builder", home="/home/alice")
    assert Terrain(context, "/w/one", Seen()).place("/w/one/x").zone == "outside"


def test_a_supervised_agent_stands_where_it_works() -> None:
    context = Context(home="/home/alice")
    assert Terrain(context, "/w/one", Seen()).place("/w/one/x").zone == "inside"
    assert Terrain(context, "/", Seen()).place("/etc/x").zone == "system"


def test_a_worktree_behind_a_link_is_the_place_it_leads_to() -> None:
    assert terrain(worktree="/w/here").place("/w/one/x").zone == "inside"


def places(pattern: str) -> dict[str, str]:
    return {place.path: place.zone for place in terrain().places(Word((pattern,), pattern=True))}


def test_a_glob_may_stand_for_what_is_there_and_what_is_to_come() -> None:
    assert places("/w/one/*.log") == {"/w/one/*.log": "inside"}
    assert places("/w/on?/x")["/w/one/x"] == "inside"
    assert places("/w/on?/x")["/w/on?/x"] == "outside"
    assert places("/w/one/u*/x")["/w/x"] == "outside"


def test_a_glob_may_stand_for_a_link_of_the_same_call() -> None:
    land = terrain()
    land.link(literal("/w/one/esc"), literal("/w/two"))
    found = land.places(Word(("/w/one/e*/x",), pattern=True))
    assert "/w/two/x" in {place.path for place in found}


def test_too_many_names_are_unknown_but_to_readers() -> None:
    class Full(Seen):
        def entries(self, folder: str) -> Iterable[tuple[str, bool]]:
            return [(f"d{number}", False) for number in range(1000)]

    land, word = terrain(observer=Full()), Word(("/w/one/*/x",), pattern=True)
    assert land.places(word)[-1].zone == "unknown"
    assert {place.zone for place in land.places(word, reads=True)} == {"inside"}
    assert [place.zone for place in land.places(Word(("/w/one/*",), pattern=True))] == ["inside"]


def test_what_is_searched_for_may_be_protected() -> None:
    def guarded(pattern: str, *, removes: bool) -> set[str]:
        found = terrain().places(Word((pattern,), pattern=True), removes=removes)
        return {place.path for place in found if "guard" in place.marks}

    assert guarded("/w/one/**", removes=False) == set()
    assert "/w/one/.claude/hooks/guard.sh" in guarded("/w/one/**", removes=True)
    assert guarded("/w/one/**/*.sh", removes=True) == {"/w/one/.claude/hooks/guard.sh"}
    assert guarded("/w/one/**/*.py", removes=True) == set()
    assert guarded("/w/one/**/settings.json", removes=False) == {"/w/one/.claude/settings.json"}


def test_hidden_names_need_a_dot() -> None:
    assert "/w/one/.env" not in places("/w/one/*")
    assert "/w/one/.env" in places("/w/one/.*")
    assert places("/w/one/.*")["/w"] == "root"


def test_a_glob_may_spell_a_secret() -> None:
    found = terrain().places(Word(("/home/alice/.ss?/id_rs*",), pattern=True))
    assert {place.path for place in found if "secret" in place.marks} >= {"/home/alice/.ssh/id_rsa"}
    for spelled in ("/home/alice/**/id_*", "/etc/sh*", "/e*/sh?dow", "/proc/*/environ", "/proc/1/env*"):
        found = terrain().places(Word((spelled,), pattern=True))
        assert any("secret" in place.marks for place in found), spelled


def test_words_with_several_values_lead_to_several_places() -> None:
    assert [place.zone for place in terrain().places(Word(("/w/one/a", "/w/two/a")))] == ["inside", "outside"]
    assert [place.zone for place in terrain().places(UNKNOWN)] == ["unknown"]


@pytest.mark.parametrize(
    ("path", "mark"),
    [
        ("/home/alice/.ssh/id_ed25519", "secret"),
        ("/srv/ci/.ssh/deploy", "secret"),
        ("/home/alice/.ssh", "secret"),
        ("/w/one/backup/id_rsa", "secret"),
        ("/home/alice/.SSH/key", "secret"),
        ("/home/alice/.aws/credentials", "secret"),
        ("/home/alice/.config/gh/hosts.yml", "secret"),
        ("/home/alice/.npmrc", "secret"),
        ("/proc/1/environ", "secret"),
        ("/etc/shadow", "secret"),
        ("/run/secrets/db", "secret"),
        ("/home/alice/.codex/auth.json", "secret"),
        ("/w/one/.env", "private"),
        ("/w/one/.env.local", "private"),
        ("/w/one/prod.env", "private"),
        ("/w/one/server.key", "private"),
        ("/home/alice/.bash_history", "private"),
        ("/home/alice", "private"),
        ("/", "private"),
        ("/w/one/.claude/settings.json", "guard"),
        ("/w/one/sub/.remuda/config.toml", "guard"),
        ("/w/one/.Claude/settings.json", "guard"),
        ("/w/one/.mcp.json", "guard"),
        ("/w/one/.github/hooks/x.json", "guard"),
        ("/home/alice/.config/remuda/config.toml", "guard"),
        ("/w/one/.git", "repository"),
        ("/w/one/.git/hooks/pre-commit", "repository"),
        ("/w/one/.github/workflows/ci.yml", "automation"),
        ("/home/alice/.bashrc", "startup"),
    ],
)
def test_what_lies_at_a_path_is_known_by_name(path: str, mark: str) -> None:
    assert mark in terrain().place(path).marks


@pytest.mark.parametrize(
    "path",
    [
        *(
            "/home/alice/.ssh/id_rsa.pub",
            "/home/alice/.ssh/known_hosts",
            "/w/one/.env.example",
            "/w/one/.npmrc",
        ),
        *("/w/one/src/secrets.py", "/w/one/.gitignore", "/w/one/.gitattributes", "/w/one/.bashrc", "/etc"),
        *("/w/one/cert.pem", "/w/one/environment.py", "/home/alice/notes", "/home/alice/.aws/config"),
    ],
)
def test_ordinary_files_are_not_marked(path: str) -> None:
    assert not terrain().place(path).marks


def test_downloads_are_remembered_by_where_they_are() -> None:
    land = terrain()
    land.downloads.add("/w/one/x.sh")
    assert land.downloaded(literal("src/../x.sh"))
    assert land.downloaded(Word(("other", "/w/here/x.sh")))
    assert not land.downloaded(literal("y.sh"))


def test_within_goes_by_components() -> None:
    assert within("/w/one/x", "/w/one")
    assert within("/w/one", "/w/one")
    assert within("/anything", "/")
    assert not within("/w/one10", "/w/one")


def test_the_disk_is_seen_as_it_is(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("disk")
    (folder / "a").mkdir()
    (folder / "b").symlink_to("a")
    disk = Disk()
    assert disk.link(str(folder / "b")) == "a"
    assert disk.link(str(folder / "a")) is None
    assert disk.link("/no\0where") is None
    assert sorted(disk.entries(str(folder))) == [("a", False), ("b", True)]
    assert list(disk.entries(str(folder / "none"))) == []


@given(st.text(), st.booleans(), st.booleans())
def test_every_text_is_some_place(text: str, pattern: bool, follows: bool) -> None:
    for place in terrain().places(Word((text,), pattern=pattern), follows=follows):
        assert place.path == "" or place.path.startswith("/")


@given(st.lists(st.sampled_from(["..", ".", "src", "up", "in", "etc", "one", "near", "", "*"]), max_size=8))
def test_what_is_inside_never_resolves_outside(parts: list[str]) -> None:
    place = terrain().place("/w/one/" + "/".join(parts))
    assert (place.zone in ("inside", "ground")) == within(place.path, "/w/one")
