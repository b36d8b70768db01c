"""Run exported plans in PyTorch's own pipeline runtime, on CPU, and compare its gradients with a plain model's.

``python -m benchmarks.torch_run plan.json ...`` (extra ``torch``): each schedule is written as a CSV, which
``_PipelineScheduleRuntime`` loads in one gloo process a device. The stages are small MLPs in float64.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from solver import MinbubbleError, Schedule, load_schedule, save

if TYPE_CHECKING:
    from multiprocessing.queues import SimpleQueue

    from torch import Tensor, nn
    from torch.distributed.pipelining import PipelineStage
    from torch.multiprocessing import ProcessContext

    Reports = SimpleQueue[list[tuple[float, bool]]]

WIDTH, ROWS = 8, 3  # features, and samples a micro-batch
TOLERANCE = 1e-12
TIMEOUT = 120.0  # seconds for all plans of one process group


@dataclass(frozen=True)
class Plan:
    """What a rank needs to know: the CSV, and the rank of each stage."""

    title: str
    csv: str
    microbatches: int
    ranks: tuple[int, ...]


@dataclass(frozen=True)
class Run:
    """What happened: the largest gradient difference of any stage, and whether every rank ran as exported."""

    title: str
    difference: float
    in_order: bool

    @property
    def good(self) -> bool:
        """Whether the plan trains as a plain model does, in the order exported."""
        return self.in_order and self.difference <= TOLERANCE


def run_schedules(schedules: Mapping[str, Schedule]) -> list[Run]:
    """Run every schedule for one step; those with the same number of devices share one process group.

    Raises UnsupportedProblem for a schedule that no PyTorch plan can say, RuntimeError where a rank fails or hangs.
    """
    with tempfile.TemporaryDirectory() as folder:
        groups: dict[int, list[Plan]] = defaultdict(list)
        for i, (title, schedule) in enumerate(schedules.items()):
            groups[schedule.problem.devices].append(write_plan(title, schedule, Path(folder) / f"{i}.csv"))
        runs = {run.title: run for devices, plans in groups.items() for run in run_plans(devices, plans)}
    return [runs[title] for title in schedules]


def write_plan(title: str, schedule: Schedule, path: Path) -> Plan:
    """Export the schedule to ``path``, and say what its ranks need to know."""
    save(schedule, path)
    return Plan(title, str(path), schedule.problem.microbatches, schedule.problem.placement.routes[0])


def run_plans(devices: int, plans: Sequence[Plan]) -> list[Run]:
    """One process a rank, one process group for all ``plans``; ranks that hang are ended."""
    import torch.multiprocessing as mp

    with tempfile.TemporaryDirectory() as folder:
        results: Reports = mp.get_context("spawn").SimpleQueue()
        meeting = str(Path(folder) / "meeting")
        ranks = mp.spawn(_rank, (devices, plans, meeting, results), nprocs=devices, join=False)
        try:
            _wait(ranks, time.monotonic() + TIMEOUT)
        finally:
            for process in ranks.processes:
                process.kill()
        reports = [results.get() for _ in range(devices)]
    return [
        Run(plan.title, max(r[i][0] for r in reports), all(r[i][1] for r in reports)) for i, plan in enumerate(plans)
    ]


def _wait(ranks: ProcessContext, deadline: float) -> None:
    """``join`` returns at each rank that ends, and raises what a rank raised."""
    while not ranks.join(timeout=max(0.0, deadline - time.monotonic())):
        if time.monotonic() > deadline:
            raise RuntimeError(f"the ranks did not finish within {TIMEOUT:.0f} s: the plan hangs in PyTorch's runtime")


def _rank(rank: int, devices: int, plans: Sequence[Plan], meeting: str, results: Reports) -> None:
    import torch
    import torch.distributed as dist

    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=devices)
    try:
        results.put([_run(plan, rank) for plan in plans])
        dist.barrier()
    finally:
        dist.destroy_process_group()


def _run(plan: Plan, rank: int) -> tuple[float, bool]:
    """One step of one plan on one rank: its largest gradient difference, and whether the order was the plan's."""
    import torch
    from torch.distributed.pipelining import PipelineStage
    from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime

    count = len(plan.ranks)
    mine = {s: _module(s) for s, home in enumerate(plan.ranks) if home == rank}
    stages = [PipelineStage(module, s, count, torch.device("cpu")) for s, module in mine.items()]
    runtime = _PipelineScheduleRuntime(stages, plan.microbatches, loss_fn=_loss)
    runtime._load_csv(plan.csv, format="compute_only")
    inputs, targets = _batch(plan.microbatches)
    with _recorded(stages) as ran:
        runtime.step(*([inputs] if 0 in mine else []), **({"target": targets} if count - 1 in mine else {}))
    expected = _reference_gradients(count, inputs, targets)
    difference = max(
        float((p.grad - e).abs().max())
        for s, module in mine.items()
        for p, e in zip(module.parameters(), expected[s], strict=True)
    )
    row = Path(plan.csv).read_text().splitlines()[rank]
    return difference, ",".join(ran) == row


def _module(stage: int) -> nn.Module:
    """A small MLP whose weights depend on the stage alone."""
    import torch
    from torch import nn

    torch.manual_seed(stage)
    return nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.Tanh(), nn.Linear(2 * WIDTH, WIDTH))


def _batch(microbatches: int) -> tuple[Tensor, Tensor]:
    import torch

    torch.manual_seed(12345)
    return torch.randn(microbatches * ROWS, WIDTH), torch.randn(microbatches * ROWS, WIDTH)


def _loss(output: Tensor, target: Tensor) -> Tensor:
    return ((output - target) ** 2).mean()


def _reference_gradients(stages: int, inputs: Tensor, targets: Tensor) -> list[list[Tensor]]:
    """Gradients of the same model in one piece on the whole batch: the mean over micro-batches of equal size."""
    from torch import nn

    modules = [_module(s) for s in range(stages)]
    _loss(nn.Sequential(*modules)(inputs), targets).backward()
    return [[p.grad for p in module.parameters() if p.grad is not None] for module in modules]


@contextmanager
def _recorded(stages: Sequence[PipelineStage]) -> Iterator[list[str]]:
    """The actions that the stages really run, as the plan writes them."""
    ran: list[str] = []

    def watch(stage: PipelineStage, method: str, letter: Callable[[Mapping[str, object]], str]) -> None:
        inner = getattr(stage, method)

        def outer(microbatch: int, *args: object, **options: object) -> object:
            ran.append(f"{stage.stage_index}{letter(options)}{microbatch}")
            return inner(microbatch, *args, **options)

        setattr(stage, method, outer)

    for stage in stages:
        watch(stage, "forward_one_chunk", lambda _: "F")
        watch(stage, "backward_one_chunk", lambda options: "B" if options.get("full_backward", True) else "I")
        watch(stage, "backward_weight_one_chunk", lambda _: "W")
    yield ran


@click.command()
@click.argument("schedules", nargs=-1, required=True, type=click.Path(path_type=Path))
def main(schedules: Sequence[Path]) -> None:
    """Run SCHEDULES (.json, as minbubble solve -o saved them) in PyTorch's pipeline runtime on CPU."""
    try:
        runs = run_schedules({str(path): load_schedule(path) for path in schedules})
    except MinbubbleError as err:
        raise click.ClickException(str(err)) from None
    except ImportError:
        raise click.ClickException("PyTorch is missing: pip install 'minbubble[torch]'") from None
    for run in runs:
        order = "the order exported" if run.in_order else "ANOTHER ORDER than exported"
        click.echo(f"{run.title}: ran in {order}; gradients differ by at most {run.difference:.1e}")
    sys.exit(0 if all(run.good for run in runs) else 1)


if __name__ == "__main__":
    main()
