"""A plugin of pytest that saves every process of it more than a CPU-second: `addopts` in pyproject.toml names it.

nbformat imports jsonschema, which imports rfc3987_syntax to know a right internationalised address from a wrong one,
which compiles a grammar as soon as it is imported, and isoduration for durations, which imports a calendar. Notebooks
have neither to check, and jsonschema does without where a package is missing.
"""

import sys

sys.modules.setdefault("rfc3987_syntax", None)
sys.modules.setdefault("isoduration", None)
