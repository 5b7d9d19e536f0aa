"""What conftest.py and scripts share about the running of notebooks."""

KNOWN_SECONDS = "course/seconds-per-file"  # where pytest's cache keeps how long each file took last
CELL_SECONDS = 1200  # generous, because a slow machine is a normal machine: it only ends a cell that hangs
