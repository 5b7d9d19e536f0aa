"""What maintainers run: the set-up behind make, notebooks, data, the book. Lessons import nothing from here."""

from scripts import lean  # noqa: F401  before anything imports nbformat
