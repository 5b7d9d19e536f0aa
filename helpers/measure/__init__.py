"""How an experiment decides: a claim and its numbers, many small models at once, another processor emulated."""
