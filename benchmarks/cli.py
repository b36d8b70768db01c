"""The ``minbubble`` command: a group that imports a command's module only when that command runs.

To add a command, write a click command anywhere and add a line to ``COMMANDS``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click

COMMANDS: dict[str, tuple[str, str]] = {
    "solve": ("benchmarks.solving:solve_command", "The provably best schedule of a problem."),
    "compare": ("benchmarks.compare:compare_command", "Every hand-made schedule beside the proven optimum."),
    "pareto": ("benchmarks.pareto:pareto_command", "What more memory buys: the front of makespan and peak memory."),
    "schedules": ("benchmarks.schedules:schedules_command", "The hand-made schedules: rule, closed form, timeline."),
    "claims": ("benchmarks.claims:claims_command", "What articles and papers claim, checked by simulation and proof."),
    "measured": ("benchmarks.measured:measured_command", "Iterations measured on real machines beside simulated ones."),
    "verify": ("benchmarks.verify:verify_command", "Judge a schedule made anywhere."),
    "sweep": ("benchmarks.sweep:sweep_command", "A grid of problems, schedules and solver settings, recorded."),
    "table": ("benchmarks.table:table_command", "Records of a sweep as Markdown, LaTeX, CSV or JSON."),
    "ablation": ("benchmarks.ablation:ablation_command", "What each strengthening and each bound contributes."),
    "export": ("benchmarks.export:export_command", "A schedule as a PyTorch plan, picture, page or trace."),
    "completion": ("benchmarks.completion:completion_command", "Print a script that completes commands with Tab."),
}
"""Command -> where it is ("module:attribute") and its line in ``minbubble --help``, in this order."""

NO_ARGUMENTS: tuple[()] | type[click.UsageError] = getattr(click.exceptions, "NoArgsIsHelpError", ())
"""What click 8.2 and later raise to show the help of a bare ``minbubble``."""

SIGPIPE_EXIT = 128 + 13
SIGINT_EXIT = 128 + 2


class LazyGroup(click.Group):
    """A group whose commands are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, None if there is none."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command = getattr(import_module(module), attribute)
        return command if isinstance(command, click.Command) else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click's, with a hint at the nearest name."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(args[0], COMMANDS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"choose from {', '.join(COMMANDS)}"
            raise click.UsageError(f"no such command {args[0]!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(None, "--version", "-V", package_name="minbubble", prog_name="minbubble")
def cli() -> None:
    """Provably shortest pipeline-parallel schedules, and how far the hand-made ones are from them.

    \b
    Examples:
      minbubble compare                                  the known schedules beside the optimum
      minbubble solve --devices 4 --microbatches 8 --memory-cap 4
      minbubble solve plan.toml --time-limit 20 -o best.json
      minbubble verify best.json

    A problem is a TOML or JSON file (devices, micro-batches, times, memory), or flags where all stages are equal.

    Exit code: 0 a schedule was found, 1 none exists or none was found, 2 the input or the usage is wrong.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit; a mistake in the input is one line on stderr and code 2."""
    if sys.stdout is None:  # the caller closed it: minbubble solve >&-
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (open until the end)
        os.set_inheritable(sys.stdout.fileno(), True)  # for the processes of a sweep
    try:
        code = run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # so that the interpreter's own flush at exit is quiet too
        code = SIGPIPE_EXIT
    except OSError as err:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        click.echo(f"minbubble: {err.filename or 'output'}: {err.strerror or err}", err=True)
        code = 2
    sys.exit(code)


def run(arguments: Sequence[str] | None = None) -> int:
    """The exit code of a command line."""
    try:
        code = cli.main(arguments, prog_name="minbubble", standalone_mode=False)
    except SystemExit:  # click exits by itself for one thing only: a reader that left
        return SIGPIPE_EXIT
    except click.ClickException as err:
        click.echo(err.format_message() if isinstance(err, NO_ARGUMENTS) else _usage_line(err), err=True)
        return 2
    except (click.Abort, KeyboardInterrupt):
        click.echo("minbubble: stopped", err=True)
        return SIGINT_EXIT
    except Exception as err:  # the class of our own errors is imported only once something went wrong
        if not _is_ours(err):
            raise
        click.echo(f"minbubble: {err}", err=True)
        return 2
    return code if isinstance(code, int) else 0


def _usage_line(err: click.ClickException) -> str:
    context = getattr(err, "ctx", None)
    see = f" (see {context.command_path} --help)" if context else ""
    return f"minbubble: {' '.join(err.format_message().split()).rstrip('.')}{see}"


def _is_ours(err: Exception) -> bool:
    from solver.errors import MinbubbleError

    return isinstance(err, MinbubbleError)
