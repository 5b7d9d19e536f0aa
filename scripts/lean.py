"""A plugin of pytest that saves every process of it a CPU-second: `addopts` in pyproject.toml names it.

nbformat imports jsonschema, which imports rfc3987_syntax to know a right internationalised address from a wrong one,
which compiles a grammar as soon as it is imported. Notebooks have no such addresses to check, and jsonschema does
without where the package is missing.
"""

import sys

sys.modules.setdefault("rfc3987_syntax", None)
