"""Files and pictures of schedules, one module a format."""
