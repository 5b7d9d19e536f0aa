"""A plugin of pytest that saves every process of it more than a CPU-second: `addopts` in pyproject.toml names it.

nbformat imports jsonschema, which imports rfc3987_syntax to know a right internationalised address from a wrong one,
which compiles a grammar as soon as it is imported, and isoduration for durations, which imports a calendar. Notebooks
have neither to check, and jsonschema does without where a package is missing. torch.testing.assert_close imports tensors
that are spread over machines, and sympy with them, only to see that none was given to it: 1.7 CPU-seconds in each worker.
"""

import sys

sys.modules.setdefault("rfc3987_syntax", None)
sys.modules.setdefault("isoduration", None)


def pytest_collection_finish():
    """Let assert_close do as where torch was built without them. Another torch may ask otherwise: then they are imported."""
    comparison = sys.modules.get("torch.testing._comparison")
    if hasattr(comparison, "_HAS_DTENSOR"):
        comparison._HAS_DTENSOR = False
