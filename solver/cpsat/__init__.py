"""The CP-SAT model; the only folder that imports ortools."""
