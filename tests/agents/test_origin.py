"""The real programs cannot call themselves from within, whatever they keep from their tools."""

from __future__ import annotations

from tests.agents.lab import DONE, REMUDA, Lab, shell


def test_an_agent_that_calls_itself_is_refused(shell_lab: Lab) -> None:
    """A tool of the agent starts Remuda with the same agent, first as it is, then without any environment."""
    call = f"{REMUDA} run --agent {shell_lab.runtime.name} hi"
    (shell_lab.cwd / "try.sh").write_text(
        "env | cut -d= -f1 > names\n"
        f"{call} > plain 2>&1; echo $? >> plain\n"
        f"env -i PATH=/usr/bin:/bin HOME=$HOME {call} > scrubbed 2>&1; echo $? >> scrubbed\n"
    )
    shell_lab.play(shell("sh try.sh"), DONE)
    ended = shell_lab.run("Go.", *shell_lab.bypass)
    assert ended.code == 0, (ended.stderr, ended.result)
    for file in ("plain", "scrubbed"):
        told = (shell_lab.cwd / file).read_text()
        assert "refusing to dispatch to the calling session" in told, (file, told)
        assert told.rstrip().endswith("\n5"), told
    given = set((shell_lab.cwd / "names").read_text().split())
    assert not shell_lab.runtime.within or given & {*shell_lab.runtime.within}, (
        "it does not mark its sessions as declared: ",
        sorted(given),
    )
