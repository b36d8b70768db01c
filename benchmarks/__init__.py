"""The command line, the studies and their suites."""
