"""``remuda worktree``"""

from __future__ import annotations

import click

from remuda.surfaces.cli.output import as_json, draw, table, write_json
from remuda.surfaces.cli.values import AMOUNT


@click.group()
def worktree() -> None:
    """Look at the worktrees of isolated runs, and clear away those that are done.

    A run with --isolated works in a Git worktree of its own, on a branch of its own, and hands that branch
    back. Nothing is ever thrown away: gc keeps the branch.

    \b
    Examples:
      remuda run --isolated "fix the flaky test"
      remuda worktree list
      remuda worktree gc --dry-run
      remuda worktree gc --older-than 7
    """


@worktree.command("list")
@as_json
def list_worktrees(as_json: bool) -> None:
    """Show every worktree of an isolated run, with its branch and what is in it."""
    from remuda.operations.worktrees import worktrees
    from remuda.operations.world import open_world

    answer = worktrees(open_world())
    if as_json:
        write_json(answer)
        return
    if not answer.worktrees:
        click.echo("no isolated run has left a worktree", err=True)
        return
    rows = table("session", "agent", "state", "commits", "age", "branch", "repository", "path")
    for each in answer.worktrees:
        state = f"{each.state}, uncommitted changes" if each.dirty else each.state
        age = _age(each.age)
        rows.add_row(
            *(each.session, each.agent, state, str(each.commits), age),
            *(each.branch, each.repository, each.path),
        )
    draw(rows)


@worktree.command("gc")
@click.option(
    "--older-than",
    type=AMOUNT,
    default=0,
    metavar="DAYS",
    help="Only those that ended before.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and change nothing.")
@as_json
def collect_worktrees(older_than: float, dry_run: bool, as_json: bool) -> None:
    """Remove the worktrees that are done.

    Only those in which nobody works; changes that are not committed yet are committed on the branch first.
    The branch stays, unless it has no commit of its own. Files that Git ignores go with the worktree.

    \b
    Examples:
      remuda worktree gc --dry-run
      remuda worktree gc --older-than 7
    """
    from remuda.operations.worktrees import collect
    from remuda.operations.world import open_world

    answer = collect(open_world(), older_than_days=older_than, dry_run=dry_run)
    if as_json:
        write_json(answer)
        return
    for gone in answer.removed:
        kept = f"its work is on {gone.branch}" if gone.branch else "nothing was done in it"
        click.echo(f"{'would remove' if dry_run else 'removed'} {gone.path}: {kept}")
    for stays in answer.kept:
        click.echo(f"kept {stays.path}: {stays.reason}")
    if not answer.removed and not answer.kept:
        click.echo("there is nothing to remove", err=True)


def _age(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
