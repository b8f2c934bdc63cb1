"""The part of the configuration that is about dispatch: agents, limits, sandboxes, peers, tasks."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
Count = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
Depth = Annotated[int, msgspec.Meta(ge=1, le=1_000)]

Policy = Literal["auto", "explicit", "round-robin", "failover", "tag-routed"]
"""How an agent is picked. ``auto``: a name is that agent with its failover chain, a runtime's name is the
next of its agents in turn, a tag is the next agent that carries it."""

Network = Literal["none", "loopback", "allowlist", "open"]


class LimitsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How often and how many at a time: a rate as ``30/m``, what may come at once on top, and how many runs
    go side by side (0: any number)."""

    rate: str | None = None
    burst: Count | None = None
    max_concurrent: Count = 0


class AgentConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A named agent: a runtime with an account, labels and bounds of its own."""

    runtime: str
    tags: tuple[str, ...] = ()
    failover_to: tuple[str, ...] = ()
    sandbox: str | None = None
    secrets: str | None = None
    home: str | None = None
    model: str | None = None
    disabled: bool = False
    limits: LimitsConfig | None = None


class DispatchConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How agents are picked; limits for those that have none of their own; how many seconds a run waits for
    its turn; how many agents may call each other in a row; seconds for which an agent that gave no time of
    its own is left alone after a rate limit."""

    mode: Policy = "auto"
    limits: LimitsConfig = LimitsConfig()
    queue_within: Seconds = 60.0
    max_depth: Depth = 3
    cooldown: Seconds = 60.0


class SandboxPathConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What may be done below a path; ``~`` and ``$VAR`` are known, ``.`` is the working folder."""

    path: str
    mode: Literal["ro", "rw", "none"]


class SandboxNetworkConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who may be connected to: nobody but the model, this machine too, the hosts of a list, or anybody."""

    policy: Network = "none"
    allow: tuple[str, ...] = ()


class SandboxLimitsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Bounds of the whole agent: seconds, memory as ``2GB``, shares of the processor, processes."""

    timeout: Seconds = 0
    memory: str | None = None
    cpu_shares: Count | None = None
    process_count: Count | None = None


class SandboxEnvironmentConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Variables that get in, and those that do not; ``*`` matches as in file names."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


class SandboxConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A sandbox profile of the user's own, on top of a built-in one."""

    extends: Literal["workspace", "read-only", "offline"] = "workspace"
    description: str = ""
    paths: tuple[SandboxPathConfig, ...] = ()
    network: SandboxNetworkConfig | None = None
    limits: SandboxLimitsConfig = SandboxLimitsConfig()
    env: SandboxEnvironmentConfig = SandboxEnvironmentConfig()


class PeerConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Panes that are opened for a message: whether also where nobody is in tmux, whether they close after it,
    and how many seconds later."""

    panes: bool = False
    auto_close_panes: bool = True
    auto_close_grace_seconds: Seconds = 0


class TasksConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many tasks a worker carries out at a time, after how many idle seconds one that was started by
    itself ends, for how many days what has ended is kept, and after how many seconds without a sign of life a
    worker counts as dead."""

    concurrency: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 4
    idle: Seconds = 300.0
    retention_days: Count = 30
    lease: Annotated[float, msgspec.Meta(ge=2, le=3600)] = 15.0
