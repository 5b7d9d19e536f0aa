"""What maintainers run: the set-up behind make, notebooks, data, the book. Lessons import nothing from here."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CELL_SECONDS = 1200  # the limit of a cell: generous, because a slow machine is a normal machine; it only ends one that hangs
