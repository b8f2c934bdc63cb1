"""What lies where: credentials, the guard's own files, things that run later, the system. Tables by name.

A path is given as its resolved components; the answer does not depend on what exists.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

Mark = Literal["secret", "private", "guard", "repository", "automation", "startup"]
"""``secret``: a store of keys or tokens. ``private``: may hold some (``.env``, histories). ``guard``:
settings and hooks of agent CLIs and of Remuda. ``repository``: git's own files. ``automation``: what a server
or a tool of the project runs later. ``startup``: what decides what a person runs, and who may log in."""

Rules = tuple[tuple[str, Mark | None], ...]

_SECRET: Rules = (("*", "secret"),)
FOLDERS: dict[str, Rules] = {
    ".ssh": (
        *(("*.pub", None), ("known_hosts*", None), ("config", "startup"), ("authorized_keys*", "startup")),
        *(("*", "secret"),),
    ),
    ".gnupg": (("pubring*", None), ("*.conf", None), ("*", "secret")),
    ".aws": (("config", None), ("*", "secret")),
    ".azure": (("config", None), ("*", "secret")),
    ".kube": (("cache*", None), ("*", "secret")),
    ".docker": (("config.json", "secret"),),
    ".password-store": _SECRET,
    ".mozilla": _SECRET,
    "keychains": _SECRET,
    ".config": (
        *(
            ("gh/hosts.yml", "secret"),
            ("glab-cli/*", "secret"),
            ("hub", "secret"),
            ("git/credentials", "secret"),
        ),
        *(("gcloud*", "secret"), ("doctl*", "secret"), ("op/*", "secret"), ("rclone/*", "secret")),
        *(
            ("google-chrome*", "secret"),
            ("chromium*", "secret"),
            ("sops/*", "secret"),
            ("stripe/*", "secret"),
        ),
        *(("remuda*", "guard"), ("opencode*", "guard"), ("git/config", "startup")),
        *(("systemd*", "startup"), ("autostart*", "startup"), ("fish*", "startup")),
    ),
    ".local": (
        *(("share/keyrings*", "secret"), ("share/opencode/auth.json", "secret")),
        *(("share/remuda*", "guard"), ("state/remuda*", "guard"), ("share/opencode*", "guard")),
    ),
    ".cargo": (("credentials*", "secret"),),
    ".gem": (("credentials", "secret"),),
    ".m2": (("settings*.xml", "secret"),),
    ".gradle": (("gradle.properties", "private"),),
    ".terraform.d": (("credentials.tfrc.json", "secret"),),
    ".subversion": (("auth*", "secret"),),
    ".claude": ((".credentials.json", "secret"), ("*", "guard")),
    ".codex": (("auth.json", "secret"), ("*", "guard")),
    ".copilot": (("*token*", "secret"), ("*", "guard")),
    ".gemini": (("oauth_creds.json", "secret"), ("*", "guard")),
    ".pi": (("agent/auth.json", "secret"), ("*", "guard")),
    ".hermes": ((".env", "secret"), ("auth.json", "secret"), ("*", "guard")),
    ".openclaw": (("credentials*", "secret"), ("*", "guard")),
    ".remuda": (("*", "guard"),),
    ".opencode": (("*", "guard"),),
    ".amplifier": (("*", "guard"),),
    ".cursor": (("*", "guard"),),
    ".git": (("*", "repository"),),
    ".github": (("hooks*", "guard"), ("workflows*", "automation"), ("actions*", "automation")),
    ".circleci": (("*", "automation"),),
    ".husky": (("*", "automation"),),
    ".devcontainer": (("*", "automation"),),
    ".vscode": (("tasks.json", "automation"), ("settings.json", "automation"), ("mcp.json", "guard")),
    "/proc": (("*/environ", "secret"), ("*/mem", "secret"), ("kcore", "secret")),
    "/etc": (
        *(("shadow*", "secret"), ("gshadow*", "secret"), ("sudoers*", "private")),
        *(("ssh/ssh_host_*_key", "secret"), ("ssl/private*", "secret"), ("krb5.keytab", "secret")),
    ),
    "/run": (("secrets*", "secret"),),
    "/var": (("run/secrets*", "secret"),),
}
"""By a folder's name, anywhere in the path (or, with a slash, at its root): patterns for what is below it,
of which the first that matches holds."""

NAMES: dict[str, Mark | None] = {
    **dict.fromkeys(("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ed25519_sk", "id_ecdsa_sk"), "secret"),
    **dict.fromkeys((".netrc", "_netrc", ".git-credentials", ".pgpass", ".my.cnf", ".vault-token"), "secret"),
    **dict.fromkeys((".pypirc", ".htpasswd", ".s3cfg", ".boto", ".dockercfg", ".gitcookies"), "secret"),
    **dict.fromkeys((".env", ".envrc.local", ".bash_history", ".zsh_history", ".psql_history"), "private"),
    **dict.fromkeys((".python_history", ".node_repl_history", ".mysql_history", "secrets.yaml"), "private"),
    **dict.fromkeys(("credentials", "credentials.json", "secrets.json", "secrets.yml"), "private"),
    **dict.fromkeys((".mcp.json", "opencode.json", "opencode.jsonc", ".aider.conf.yml"), "guard"),
    **dict.fromkeys((".gitlab-ci.yml", "jenkinsfile", "azure-pipelines.yml", ".travis.yml"), "automation"),
    **dict.fromkeys((".envrc", ".pre-commit-config.yaml", "bitbucket-pipelines.yml"), "automation"),
}  # fmt: skip
"""By the name of the file itself, anywhere."""

ENDINGS: tuple[tuple[str, Mark | None], ...] = (
    *((".env.example", None), (".env.sample", None), (".env.template", None), (".env.dist", None)),
    *((".env.defaults", None), (".env.schema", None)),
    *((".key", "private"), (".p12", "private"), (".pfx", "private"), (".jks", "private")),
    *((".keystore", "private"), (".kdbx", "private"), (".ppk", "private"), (".env", "private")),
    *(("key.pem", "private"), ("private.pem", "private"), ("privkey.pem", "private")),
)

SAMPLES = frozenset(("fixtures", "testdata", "__fixtures__", "mocks", "examples"))
"""Folders whose keys are made up."""

AT_HOME: dict[str, Mark] = {
    **dict.fromkeys((".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile"), "startup"),
    **dict.fromkeys((".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".inputrc"), "startup"),
    **dict.fromkeys((".gitconfig", ".vimrc", ".tmux.conf", ".xprofile", ".xinitrc"), "startup"),
    **dict.fromkeys((".npmrc", ".yarnrc.yml"), "secret"),
    **dict.fromkeys((".claude.json",), "guard"),
}  # fmt: skip
"""By the name of a file that lies directly in a home folder."""

TEMPORARY = (("tmp",), ("var", "tmp"), ("private", "tmp"), ("dev", "shm"), ("var", "folders"))
SYSTEM = frozenset(
    (
        *(
            "bin",
            "boot",
            "dev",
            "etc",
            "lib",
            "lib32",
            "lib64",
            "libx32",
            "opt",
            "proc",
            "root",
            "run",
            "sbin",
        ),
        *("sys", "usr", "var", "System", "Library", "Applications", "private", "nix", "snap"),
    )
)
HOMES = frozenset(("home", "Users"))
NOWHERE = frozenset(
    f"/dev/{name}"
    for name in ("null", "zero", "full", "tty", "stdin", "stdout", "stderr", "random", "urandom")
)
"""Devices that keep nothing of what is written and give nothing away."""


def marks(parts: tuple[str, ...], *, at_home: bool) -> frozenset[Mark]:
    """What a path is, beside where it lies. Names are compared without case, for some file systems do."""
    lower = tuple(part.casefold() for part in parts)
    if not lower:
        return frozenset()
    found = {_first(rules, rest) for rules, rest in _rules(lower)}
    named = _by_name(lower[-1], at_home)
    found.add(None if named == "private" and not SAMPLES.isdisjoint(lower[:-1]) else named)
    return frozenset(each for each in found if each is not None)


def _first(rules: Rules, text: str) -> Mark | None:
    """What the first rule that speaks of a text says."""
    return next((found for pattern, found in rules if _matches(text, pattern)), None)


def _by_name(name: str, at_home: bool) -> Mark | None:
    if at_home and name in AT_HOME:
        return AT_HOME[name]
    if name in NAMES:
        return NAMES[name]
    for ending, found in ENDINGS:
        if name.endswith(ending):
            return found
    return "private" if name.startswith(".env.") else None


def _rules(parts: tuple[str, ...]) -> Iterator[tuple[Rules, str]]:
    """The rules that speak of these components, each with what is below."""
    for index, part in enumerate(parts):
        if part in FOLDERS:
            yield FOLDERS[part], "/".join(parts[index + 1 :])
    if (first := "/" + parts[0]) in FOLDERS:
        yield FOLDERS[first], "/".join(parts[1:])


def _matches(text: str, pattern: str) -> bool:
    """Whether a text matches a pattern, whose only wildcard is the star."""
    if "*" not in pattern:
        return text == pattern
    head, *middle, tail = pattern.split("*")
    if not text.startswith(head) or not text.endswith(tail) or len(text) < len(head) + len(tail):
        return False
    position, end = len(head), len(text) - len(tail)
    for piece in middle:
        found = text.find(piece, position, end)
        if found < 0:
            return False
        position = found + len(piece)
    return True
