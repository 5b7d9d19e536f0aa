"""What maintainers run: the set-up behind make, notebooks, data, the book. Lessons import nothing from here."""
