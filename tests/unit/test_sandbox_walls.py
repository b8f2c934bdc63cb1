"""The command line of bubblewrap, the order of mounts, and what Landlock cannot say."""

from __future__ import annotations

import marshal
import os
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.sandbox import cgroups
from remuda.sandbox.bwrap import Walls, arguments
from remuda.sandbox.fences import rules_of
from remuda.sandbox.hosts import Host
from remuda.sandbox.landlock import MACHINES, filter_lines
from remuda.sandbox.mounts import Kind, Mount, layered
from remuda.sandbox.profile import UnresolvableError
from remuda.sandbox.spec import Cgroup, Egress, Network, Rule, Spec, encoded, named
from remuda.sandbox.standby import Told

ARITY = {
    **dict.fromkeys(("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"), 0),
    **dict.fromkeys(("--unshare-net", "--die-with-parent", "--new-session"), 0),
    **dict.fromkeys(("--cap-drop", "--proc", "--dev", "--tmpfs", "--remount-ro", "--chdir"), 1),
    **dict.fromkeys(("--ro-bind", "--ro-bind-try", "--bind", "--symlink"), 2),
}

names = st.text(
    st.characters(blacklist_characters="/\0", blacklist_categories=("Cs",)), min_size=1, max_size=12
)
paths = st.lists(names.filter(lambda name: name not in (".", "..")), min_size=1, max_size=5).map(
    lambda parts: "/" + "/".join(parts)
)
kinds = st.sampled_from(("ro", "rw", "empty", "hidden", "hidden-file", "private", "link"))
mounts = st.lists(st.builds(Mount, paths, kinds, paths), max_size=12)


def options(argv: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The options as bubblewrap reads them."""
    found, rest = [], list(argv)
    while rest:
        count = ARITY[rest[0]] + 1
        found.append(tuple(rest[:count]))
        del rest[:count]
    return found


class TestArguments:
    @given(mounts, paths)
    def test_no_path_becomes_an_option(self, given: list[Mount], cwd: str) -> None:
        argv = arguments(Walls(mounts=tuple(given), cwd=Path(cwd), network=False))
        read = options(argv)
        assert ("--unshare-net",) in read
        assert ("--cap-drop", "ALL") in read
        assert ("--remount-ro", "/") in read
        for option, *operands in read:
            if option in ("--ro-bind", "--bind", "--tmpfs", "--remount-ro", "--chdir"):
                assert all(operand.startswith("/") for operand in operands)
        rw = {option[2] for option in read if option[0] == "--bind"}
        opened = [PurePosixPath(mount.path) for mount in given if mount.kind == "rw"]
        assert all(any(PurePosixPath(path).is_relative_to(each) for each in opened) for path in rw)

    def test_a_link_that_looks_like_an_option(self) -> None:
        argv = arguments(Walls(mounts=(Mount("/x", "link", "--bind"),), cwd=Path("/"), network=True))
        assert ("--symlink", "./--bind", "/x") in options(argv)

    @pytest.mark.parametrize("path", ["relative", "--bind", "", "/a\0b"])
    def test_a_path_that_is_none_is_an_error(self, path: str) -> None:
        with pytest.raises(ValueError, match="absolute"):
            arguments(Walls(mounts=(Mount(path, "ro"),), cwd=Path("/"), network=True))

    def test_what_is_open_and_what_has_a_terminal(self) -> None:
        argv = arguments(Walls(mounts=(), cwd=Path("/"), network=True, terminal=True))
        assert not {"--unshare-net", "--new-session"} & {*argv}


class TestLayers:
    @given(mounts)
    def test_outer_ones_come_first_and_each_path_once(self, given: list[Mount]) -> None:
        made = layered(given)
        depths = [mount.path.count("/") for mount in made]
        assert depths == sorted(depths)
        assert len({mount.path for mount in made}) == len(made)
        last = {mount.path: mount for mount in given}
        assert all(last.get(mount.path, mount) == mount for mount in made)
        assert {mount.path for mount in given if mount.kind == "rw" and last[mount.path] == mount} <= {
            mount.path for mount in made
        }

    def test_nothing_hides_what_nobody_sees(self) -> None:
        hidden: Kind = "hidden"
        given = (Mount("/home/me", "empty"), Mount("/home/me/.ssh", hidden), Mount("/project", "rw"))
        assert [mount.path for mount in layered(given)] == ["/project", "/home/me"]
        shown = (*given, Mount("/home/me", "ro"))
        assert Mount("/home/me/.ssh", hidden) in layered(shown)

    def test_folders_around_what_is_held_are_held_in_place(self) -> None:
        given = (Mount("/p", "rw", "/real"), Mount("/p/a/b/c", "ro"), Mount("/p/d/e", "rw"))
        assert [mount for mount in layered(given) if mount not in given] == [
            Mount("/p/a", "rw", "/real/a"),
            Mount("/p/a/b", "rw", "/real/a/b"),
        ]


class TestLandlock:
    def test_mounts_as_rules(self) -> None:
        rules = rules_of((Mount("/usr", "ro"), Mount("/project", "rw"), Mount("/home", "empty")))
        assert Rule("/usr", False) in rules
        assert Rule("/project", True) in rules
        assert not [rule for rule in rules if rule.path == "/home"]

    @pytest.mark.parametrize(
        "inner",
        [
            Mount("/project/.git/hooks", "ro"),
            Mount("/project/secret", "hidden"),
            Mount("/project/x", "empty"),
        ],
    )
    def test_what_lies_inside_of_something_else_cannot_be_kept(self, inner: Mount) -> None:
        with pytest.raises(UnresolvableError, match="Landlock cannot keep"):
            rules_of((Mount("/project", "rw"), inner))

    @pytest.mark.parametrize("machine", MACHINES)
    def test_jumps_of_the_filter_stay_inside(self, machine: str) -> None:
        lines = filter_lines(MACHINES[machine])
        for number, line in enumerate(lines):
            then, otherwise = line[2], line[3]
            assert number + 1 + max(then, otherwise) < len(lines) or line[:2] == b"\x06\x00"


def test_a_group_that_somebody_of_our_number_left_is_no_obstacle(tmp_path: Path) -> None:
    """Numbers come again; of the others, only those that nobody has are taken away."""
    left, taken = tmp_path / f"remuda-{os.getpid()}", tmp_path / f"remuda-{os.getppid()}"
    gone = tmp_path / f"remuda-{2**22 + 1}"
    for folder in (left, taken, gone):
        folder.mkdir()
    cgroups.enter((Cgroup(str(tmp_path), str(tmp_path), (("memory.max", "1"),)),))
    assert (left / "memory.max").read_text() == "1"
    assert taken.exists()
    assert not gone.exists()


def test_what_the_launcher_is_told_arrives() -> None:
    spec = Spec(
        command=("/usr/bin/bwrap", "--chdir", "/x y"),
        rules=(Rule("/a", True),),
        inside=("python",),
        network=Network((1, 2), False, Egress(3128, (Host("a.b", 1, True), Host(".c")), "http://u:p@h")),
        hooks=("/a", "/b"),
        cgroups=(Cgroup("/base", "/own", (("memory.max", "1"),)),),
        timeout=1.5,
    )
    told = Told(*marshal.loads(encoded(spec)))
    assert (told.command, told.rules, told.inside) == (spec.command, spec.rules, spec.inside)
    assert (told.hooks, told.cgroups, told.timeout) == (spec.hooks, spec.cgroups, spec.timeout)
    assert told.network is not None
    assert named(told.network) == spec.network
    assert Told(*marshal.loads(encoded(Spec()))).network is None
