"""``remuda config``"""

from __future__ import annotations

import json

import click

from remuda.surfaces.cli.output import as_json, write_json

_PROJECT = click.option("--project", is_flag=True, help="The project's .remuda/config.toml instead of yours.")


@click.group()
def config() -> None:
    """Show and change the configuration.

    \b
    Examples:
      remuda config list
      remuda config set agent claude
      remuda config set run.timeout 1800
      remuda config set environment.pass '["JAVA_HOME", "AWS_*"]'
      remuda config unset agent
    """


@config.command("list")
@as_json
def list_settings(as_json: bool) -> None:
    """Show every key with the value in force."""
    from remuda.operations.settings import settings
    from remuda.operations.world import open_world

    answer = settings(open_world())
    if as_json:
        write_json(answer)
        return
    for setting in answer.settings:
        click.echo(f"{setting.key} = {json.dumps(setting.value)}")
    click.echo(f"user file: {answer.user_file}", err=True)
    click.echo(f"project file: {answer.project_file or 'none'}", err=True)


@config.command("get")
@click.argument("key")
@as_json
def get_setting(key: str, as_json: bool) -> None:
    """Show one key's value."""
    from remuda.operations.settings import get
    from remuda.operations.world import open_world

    setting = get(open_world(), key)
    if as_json:
        write_json(setting)
    else:
        click.echo(setting.value if isinstance(setting.value, str) else json.dumps(setting.value))


@config.command("set")
@click.argument("key")
@click.argument("value")
@_PROJECT
def set_setting(key: str, value: str, project: bool) -> None:
    """Set a key; comments and layout of the file stay."""
    _change(key, value, project)


@config.command("unset")
@click.argument("key")
@_PROJECT
def unset_setting(key: str, project: bool) -> None:
    """Remove a key, so that its default holds again."""
    _change(key, None, project)


def _change(key: str, value: str | None, project: bool) -> None:
    from remuda.operations.settings import change
    from remuda.operations.world import open_world

    path = change(open_world(), key, value, project=project)
    click.echo(f"wrote {path}", err=True)


@config.command("path")
def show_path() -> None:
    """Print where your configuration file is."""
    import os

    from remuda.core.paths import folders

    click.echo(folders(os.environ).config_file)
