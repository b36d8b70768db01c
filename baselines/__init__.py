"""Hand-made schedules, faithful to their papers: name -> Baseline, grouped by placement."""

from collections.abc import Mapping

from baselines.bidirectional import CHIMERA, GEMS
from baselines.dualpipe import DUALPIPE, DUALPIPE_V
from baselines.hanayo import HANAYO
from baselines.interleaved import INTERLEAVED, INTERLEAVED_ZB, LOOPED_BFS
from baselines.linear import EAGER_1F1B, GPIPE, KFKB, NAIVE, ONE_F_ONE_B
from baselines.registry import Baseline
from baselines.v_shape import V_HALF, V_MIN, V_ZB, ZB_V
from baselines.zb_heuristic import ZB_HEURISTIC
from baselines.zero_bubble import ZB_H1, ZB_H2
from solver.errors import ProblemError

_LINEAR = (NAIVE, GPIPE, ONE_F_ONE_B, EAGER_1F1B, KFKB, ZB_H1, ZB_H2, ZB_HEURISTIC)
_LOOPED = (INTERLEAVED, LOOPED_BFS, INTERLEAVED_ZB)
_WAVE = (HANAYO, ZB_V, V_MIN, V_HALF, V_ZB, DUALPIPE_V)
_BIDIRECTIONAL = (CHIMERA, GEMS, DUALPIPE)

BASELINES: Mapping[str, Baseline] = {b.name: b for b in (*_LINEAR, *_LOOPED, *_WAVE, *_BIDIRECTIONAL)}
"""Every hand-made schedule by its name in tables, files and on the command line."""


def get(name: str) -> Baseline:
    """The baseline called ``name``; ProblemError with the valid names for any other."""
    if name not in BASELINES:
        raise ProblemError(f"no such schedule; known are {', '.join(BASELINES)}", name)
    return BASELINES[name]


__all__ = ["BASELINES", "Baseline", "get"]
