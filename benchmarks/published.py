"""Numbers that others published, for tables that show ours beside them."""

from __future__ import annotations

from collections.abc import Mapping

ZERO_BUBBLE: Mapping[str, Mapping[str, float]] = {
    "zb-1.5b": {"1f1b": 0.2431, "zb-h1": 0.1585, "zb-h2": 0.1083, "ZB-1p": 0.1585, "ZB-2p": 0.0433},
    "zb-6.2b": {"1f1b": 0.2347, "zb-h1": 0.1323, "zb-h2": 0.0698, "ZB-1p": 0.1323, "ZB-2p": 0.0029},
    "zb-14.6b": {"1f1b": 0.2552, "zb-h1": 0.1397, "zb-h2": 0.0672, "ZB-1p": 0.1397, "ZB-2p": 0.0066},
    "zb-28.3b": {"1f1b": 0.2646, "zb-h1": 0.1421, "zb-h2": 0.0641, "ZB-1p": 0.1421, "ZB-2p": 0.0038},
}
"""Bubble of the span by model and schedule: Zero Bubble (Qi et al. 2023, arXiv 2401.10241), its bubble rates."""

TIGHT_CAPS: Mapping[tuple[str, str], Mapping[str, int]] = {
    ("unit-P4-M8", "0.5x"): {"ZB heuristic": 51, "ZB ILP on CBC, 60 s": 41, "Tessel on Z3": 44},
    ("unit-P6-M12", "0.5x"): {"ZB heuristic": 101, "ZB ILP on CBC, 60 s": 101, "Tessel on Z3": 67},
    ("real-P4-M8", "0.5x"): {"ZB heuristic": 9447, "ZB ILP on CBC, 60 s": 6993},
    ("real-P4-M8", "0.75x"): {"ZB heuristic": 6801, "ZB ILP on CBC, 60 s": 5801},
    ("real-P4-M8", "1x"): {"ZB heuristic": 4563, "ZB ILP on CBC, 60 s": 4563},
    ("real-P4-M8-latency-60", "1x"): {"ZB heuristic": 5265},
    ("zb-1.5b", "0.5x"): {"ZB heuristic": 4631100},
    ("zb-1.5b", "0.75x"): {"ZB heuristic": 2891900},
    ("zb-1.5b", "1x"): {"ZB heuristic": 1310405, "ZB ILP on CBC, 60 s": 1310405},
}
"""Makespans that other tools' own code reached, by problem and cap: Zero Bubble's heuristic and its ILP (its code, CBC
with 60 s), and Tessel (2311.15269, its code on Z3); each replayed in one checker."""
