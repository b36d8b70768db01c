"""Files and pictures of schedules, one module a format."""

from solver.export.registry import FORMATS, load_schedule, save

__all__ = ["FORMATS", "load_schedule", "save"]
