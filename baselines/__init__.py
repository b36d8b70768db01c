"""Hand-made schedules, faithful to their papers: name -> Baseline, grouped by placement."""

from collections.abc import Mapping

from baselines.chimera import CHIMERA
from baselines.interleaved import INTERLEAVED
from baselines.linear import GPIPE, NAIVE, ONE_F_ONE_B
from baselines.registry import Baseline
from solver.errors import ProblemError

BASELINES: Mapping[str, Baseline] = {
    baseline.name: baseline for baseline in (NAIVE, GPIPE, ONE_F_ONE_B, INTERLEAVED, CHIMERA)
}
"""Every hand-made schedule by its name in tables, files and on the command line."""


def get(name: str) -> Baseline:
    """The baseline called ``name``; ProblemError with the valid names for any other."""
    if name not in BASELINES:
        raise ProblemError(f"no such schedule; known are {', '.join(BASELINES)}", name)
    return BASELINES[name]


__all__ = ["BASELINES", "Baseline", "get"]
