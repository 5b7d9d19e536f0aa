"""The one time limit of a cell: for pytest (conftest.py) and for scripts/execute.py."""

CELL_SECONDS = 600  # generous, because a slow machine is a normal machine: it only ends a cell that hangs
