"""What is visible to one agent in one folder: looked up on this machine, decided as mounts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from remuda.core.dispatchconfig import SandboxPathConfig
from remuda.core.files import write_new
from remuda.core.paths import Folders
from remuda.runtimes.cell import Cell, Place
from remuda.sandbox.mounts import Kind, Mount
from remuda.sandbox.places import own_places
from remuda.sandbox.profile import Profile, UnresolvableError
from remuda.sandbox.programs import parts_of, toolchains
from remuda.sandbox.repository import repository_mounts, repository_of, unbelieved_mounts
from remuda.sandbox.system import system

_DISPOSABLE = (".cache", ".npm")
"""Folders of the home that are an agent's own and gone afterwards."""

_SETTINGS = (".gitconfig", ".config/git", ".gitignore_global")
"""What is shown of the home."""

_SECRETS = (
    *(".ssh", ".aws", ".azure", ".gnupg", ".kube", ".docker", ".netrc", ".npmrc", ".pypirc", ".vault-token"),
    *(".git-credentials", ".config/git/credentials", ".config/gh", ".config/gcloud", ".config/op"),
    *(".password-store", ".local/share/keyrings", ".mozilla", ".config/google-chrome", ".config/chromium"),
    *(".cargo/credentials", ".cargo/credentials.toml", ".bash_history", ".zsh_history"),
)
"""What stays hidden also where the home is shown, unless a rule names it."""


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """Who works where, with what; ``home`` is the user's, which an agent's own may differ from. ``lends`` are
    folders of ours that are shown, ``gives`` those that may be written to, ``holds`` files in these that stay
    as they are; ``strangers`` are the places of other agent CLIs."""

    cwd: Path
    home: Path
    environ: Mapping[str, str]
    programs: tuple[str, ...]
    cell: Cell
    strangers: tuple[Place, ...]
    folders: Folders
    lends: tuple[Path, ...]
    gives: tuple[Path, ...]
    holds: tuple[Path, ...] = ()


def mounts_of(profile: Profile, scene: Scene) -> tuple[Mount, ...]:
    """Everything that is mounted; of several on one path the last counts."""
    home, users = _home(scene.environ), _home({"HOME": str(scene.home)})
    for each in (users, home):
        _check_folder(scene.cwd, each)
    return (
        *_tools(scene, home),
        *system(),
        *_under_all_names(users, "empty"),
        *_home_mounts(home),
        *_work(profile, scene, home),
        *_secrets(users),
        *_secrets(home),
        *_places(scene, home),
        *(_shown(path, "ro") for path in scene.lends if path.exists()),
        *(_shown(path, "rw") for path in scene.gives),
        *map(_kept, scene.holds),
        *(mount for rule in profile.paths for mount in _rule(rule, profile, scene)),
        *(mount for folder in scene.folders.guarded for mount in _under_all_names(Path(folder), "hidden")),
    )


def _home(environ: Mapping[str, str]) -> Path:
    home = Path(environ.get("HOME") or "/nonexistent")
    if not home.is_absolute() or home.resolve() == Path("/"):
        raise UnresolvableError(f"{home} is no home folder that could be hidden", "Set HOME.")
    return Path(os.path.normpath(home))


def _check_folder(cwd: Path, home: Path) -> None:
    """A working folder that holds everything could not be told from what is to be protected."""
    if home.resolve().is_relative_to(cwd.resolve()):
        raise UnresolvableError(
            f"the working folder {cwd} holds your whole home folder",
            "Work in the folder of a project: --cwd.",
        )


def _shown(path: Path, kind: Kind) -> Mount:
    return Mount(os.path.normpath(path), kind, os.path.realpath(path))


def _kept(path: Path) -> Mount:
    """A file that we write where an agent may write, too. It has to be there to be held."""
    if path.is_symlink():
        raise UnresolvableError(f"{path} is a link, which we would follow out of the sandbox", "Remove it.")
    if not path.exists():
        write_new(path, b"")
    return _shown(path, "ro")


def _under_all_names(path: Path, kind: Kind) -> Iterator[Mount]:
    """A place that must not be seen, by the name that it has and by the one that links on the way lead to. A
    link itself hides nothing."""
    if not path.is_symlink():
        yield Mount(os.path.normpath(path), kind)
    yield Mount(os.path.realpath(path), kind)


def _hidden(path: Path) -> Iterator[Mount]:
    """What is there, hidden."""
    if path.exists():
        yield from _under_all_names(path, "hidden" if path.is_dir() else "hidden-file")


def _home_mounts(home: Path) -> Iterator[Mount]:
    yield from _under_all_names(home, "empty")
    yield from (Mount(str(home / name), "private") for name in _DISPOSABLE)
    yield from (_shown(home / name, "ro") for name in _SETTINGS if (home / name).exists())


def _tools(scene: Scene, home: Path) -> Iterator[Mount]:
    """Programs and what they consist of, as far as that is less than the home folder. Tools that lie in the
    working folder belong to the work; below a link of the root (``/bin``) the system is shown anyway."""
    work = scene.cwd.resolve()
    folders = [each for each in toolchains(scene.environ) if not each.resolve().is_relative_to(work)]
    for program in scene.programs:
        folders += parts_of(program, scene.environ)
    for folder in folders:
        linked = Path("/", *folder.parts[1:2]).is_symlink()
        if folder.is_dir() and not linked and not home.resolve().is_relative_to(folder.resolve()):
            yield _shown(folder, "ro")


def _work(profile: Profile, scene: Scene, home: Path) -> Iterator[Mount]:
    """The working folder, and the repository that it is in."""
    real = scene.cwd.resolve()
    found = repository_of(real)
    if found is None and profile.workspace == "rw":
        yield from unbelieved_mounts(real)
    if found is not None and not home.resolve().is_relative_to(found.top):
        yield from repository_mounts(found, writable=profile.workspace == "rw")
    yield Mount(str(real), profile.workspace)
    if real != scene.cwd:
        yield Mount(str(scene.cwd), "link", str(real))


def _secrets(home: Path) -> Iterator[Mount]:
    for name in _SECRETS:
        yield from _hidden(home / name)


def _places(scene: Scene, home: Path) -> Iterator[Mount]:
    """The homes of other agent CLIs are hidden, the program's own is there."""
    for environ in ({**scene.environ, "HOME": str(scene.home)}, scene.environ):
        for path in (place.at(environ) for place in scene.strangers):
            if path is not None:
                yield from _hidden(path)
    yield from own_places(scene.cell, scene.environ, home)


def _rule(rule: SandboxPathConfig, profile: Profile, scene: Scene) -> Iterator[Mount]:
    """A rule of the profile; a path that cannot be told, or held, is an error."""
    path = _located(rule, scene)
    real = path.resolve()
    if any(real.is_relative_to(Path(folder).resolve()) for folder in scene.folders.guarded):
        raise UnresolvableError(f"the rule for {rule.path} would open Remuda's own folders")
    if any(_leads_out(path, folder) for folder in _changed(profile, scene)):
        raise UnresolvableError(
            f"the rule for {rule.path} leads by a link, which an agent could replace", f"Name {real} itself."
        )
    if rule.mode == "none":
        yield from _hidden(path)
    elif not path.exists():
        raise UnresolvableError(f"{path} is not there, and the profile has a rule for it")
    elif real == Path("/"):
        raise UnresolvableError("a rule for / would leave no walls")
    else:
        yield _shown(path, rule.mode)


def _located(rule: SandboxPathConfig, scene: Scene) -> Path:
    """What a rule is for; below the working folder, by that folder's real name."""
    path = resolved(rule.path, scene.cwd, scene.environ)
    below = path.is_relative_to(scene.cwd)
    return scene.cwd.resolve() / path.relative_to(scene.cwd) if below else path


def _changed(profile: Profile, scene: Scene) -> Iterator[Path]:
    """The folders in which an agent can put a link."""
    yield scene.cwd.resolve()
    yield from (_located(rule, scene) for rule in profile.paths if rule.mode == "rw")


def _leads_out(path: Path, folder: Path) -> bool:
    """Whether there is a link on the way to a path from a folder around it."""
    return path.is_relative_to(folder) and path.resolve() != folder.resolve() / path.relative_to(folder)


def resolved(text: str, cwd: Path, environ: Mapping[str, str]) -> Path:
    """A path as a profile spells it: ``~``, ``$VAR`` and relative to the working folder."""
    words: list[str] = []
    for part in text.split("/"):
        name = part[2:-1] if part.startswith("${") and part.endswith("}") else part[1:]
        if part == "~" and not words:
            words.append(environ.get("HOME", ""))
        elif part.startswith("$"):
            words.append(environ.get(name, ""))
        else:
            words.append(part)
            continue
        if not words[-1]:
            raise UnresolvableError(f"{part} in the path {text} is not set")
    if not text or "\0" in text or any("$" in word or word.startswith("~") for word in words):
        raise UnresolvableError(f"the path {text!r} cannot be understood")
    return Path(os.path.normpath(cwd / "/".join(words)))
