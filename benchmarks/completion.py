"""``minbubble completion``: the script that makes a shell complete commands and options."""

from __future__ import annotations

import click


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_command(shell: str) -> None:
    """Print a script that completes commands and options with Tab.

    \b
    Examples:
      eval "$(minbubble completion bash)"        now, or in ~/.bashrc for ever
      eval "$(minbubble completion zsh)"
      minbubble completion fish | source
    """
    from click.shell_completion import get_completion_class

    from benchmarks.cli import cli

    source = get_completion_class(shell)
    if source is not None:
        click.echo(source(cli, {}, "minbubble", "_MINBUBBLE_COMPLETE").source())
