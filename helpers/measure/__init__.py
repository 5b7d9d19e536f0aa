"""How an experiment decides: a claim and its numbers, many small models at once, many texts at once for the chat model,
another processor emulated."""
