"""What environment variables mean: those that run code, those that find it, and those that hold keys."""

from __future__ import annotations

from typing import Literal

from remuda.guard.model import Word

Danger = Literal["guard", "inject", "search", "library"]
Exposure = Literal["all", "secret"]

GUARD = ("REMUDA_", "AMPLIHACK_", "CLAUDE", "CODEX_", "COPILOT_", "GEMINI_CLI_", "OPENCODE_", "HERMES_")
"""Beginnings of the names that steer Remuda or an agent CLI."""

PROGRAMS = frozenset(
    (
        *(
            "PAGER",
            "GIT_PAGER",
            "MANPAGER",
            "EDITOR",
            "VISUAL",
            "GIT_EDITOR",
            "GIT_SEQUENCE_EDITOR",
            "BROWSER",
        ),
        *(
            "GIT_ASKPASS",
            "SSH_ASKPASS",
            "GIT_SSH",
            "GIT_SSH_COMMAND",
            "GIT_EXTERNAL_DIFF",
            "GIT_PROXY_COMMAND",
        ),
        *(
            "LESSOPEN",
            "LESSCLOSE",
            "RUSTC_WRAPPER",
            "CARGO_BUILD_RUSTC_WRAPPER",
            "SUDO_ASKPASS",
            "PSQL_EDITOR",
        ),
    )
)
"""Each names a program that another one runs."""

HARMLESS = frozenset(
    (
        *("", "cat", "true", ":", "/bin/true", "/bin/cat", "/usr/bin/true", "echo", "false", "/bin/false"),
        *("less", "less -R", "less -F", "less -FRX", "more", "vi", "vim", "nvim", "nano", "emacs", "ed"),
        *("code --wait", "ssh", "delta", "bat"),
    )
)
"""Programs that do nothing of their own to files or hosts when another program runs them."""

INJECTS = frozenset(
    (
        *("BASH_ENV", "ENV", "PROMPT_COMMAND", "PS4", "SHELLOPTS", "BASHOPTS", "ZDOTDIR"),
        *("GIT_EXEC_PATH", "GIT_TEMPLATE_DIR", "GIT_CONFIG", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"),
        *("GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS", "PYTHONSTARTUP", "PYTHONHOME", "PERL5OPT", "PERL5DB"),
        *("RUBYOPT", "NODE_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "MAVEN_OPTS"),
    )
)
_INJECTING = ("LD_", "DYLD_", "BASH_FUNC_", "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_")

LIBRARIES = frozenset(("PYTHONPATH", "NODE_PATH", "PERL5LIB", "RUBYLIB", "CLASSPATH", "GOFLAGS", "CDPATH"))

_NODE_LOADS = ("-r", "--require", "--import", "--loader", "--experimental-loader", "-e", "--eval")
_KEYS = (
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "APIKEY",
    "API_KEY",
    "ACCESS_KEY",
    "PRIVATE_KEY",
    "CREDENTIAL",
)


def setting(name: str, value: Word | None) -> Danger | None:
    """What is dangerous about setting a variable, if anything is."""
    text = value.text if value is not None else None
    if name.startswith(GUARD):
        return "guard"
    if name in PROGRAMS:
        return None if text is not None and text.strip() in HARMLESS else "inject"
    if name == "NODE_OPTIONS" and text is not None and not _loads(text):
        return None
    if name in INJECTS or name.startswith(_INJECTING):
        return "inject"
    if name == "PATH":
        return "search"
    return "library" if name in LIBRARIES else None


def showing(name: str) -> Exposure | None:
    """What is dangerous about showing a variable (``*``: all of them), if anything is."""
    if name == "*":
        return "all"
    upper = name.upper()
    return "secret" if any(key in upper for key in _KEYS) or upper.endswith("_KEY") else None


def _loads(options: str) -> bool:
    return any(word.partition("=")[0] in _NODE_LOADS for word in options.split())
