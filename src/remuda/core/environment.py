"""The environment a child gets: an allow-list, what its runtime needs, and nothing else of ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

ORIGIN = "REMUDA_ORIGIN"
"""The chain of agents that called each other: ``agent:session``, the outermost first, joined by ``/``."""

ENDPOINT = "REMUDA_ENDPOINT"
"""Points every agent at another model endpoint: a rehearsal, or a gateway."""

BASE = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "COLORTERM", "NO_COLOR", "PWD", "TMPDIR", "TZ"),
    *("LANG", "LANGUAGE", "LC_*", "XDG_*_HOME", "XDG_*_DIR", "XDG_*_DIRS", "REMUDA_HOME"),
    *("REMUDA_HOOK_ENGINE", "AMPLIHACK_HOOK_ENGINE"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    *("EDITOR", "VISUAL", "PAGER", "GIT_CONFIG_GLOBAL", "GIT_AUTHOR_*", "GIT_COMMITTER_*"),
    *("VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT", "PYENV_VERSION", "NVM_DIR"),
    *("JAVA_HOME", "GOPATH", "GOROOT", "CARGO_HOME", "RUSTUP_HOME"),
)
"""Variables that programs and tools need to work and that hold no secret."""


def allowed(environ: Mapping[str, str], patterns: Iterable[str]) -> dict[str, str]:
    """The variables whose names match a pattern (``*`` as in file names)."""
    wanted = tuple(patterns)
    exact = {pattern for pattern in wanted if "*" not in pattern}
    globs = [pattern for pattern in wanted if "*" in pattern]
    return {
        name: value
        for name, value in environ.items()
        if name in exact or any(fnmatchcase(name, pattern) for pattern in globs)
    }


def without(environ: Mapping[str, str], patterns: Iterable[str]) -> dict[str, str]:
    """The environment less the variables whose names match a pattern."""
    drop = allowed(environ, patterns)
    return {name: value for name, value in environ.items() if name not in drop}
