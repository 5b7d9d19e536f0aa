"""The rooms of helpers/: none imports upwards; and where modules were before, they are still found."""

import ast
import importlib
from pathlib import Path

import pytest

from helpers import former

HELPERS = Path(former.__file__).parent
ORDER = ("store", "", "sealed", "page", "checks", "measure")  # each imports those before it; "": the modules of the lessons


def room(module):
    """The room of a module by its full name: "page" for helpers.page.show, "" for helpers.attention."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in ORDER else ""


def imports(path):
    """The modules of helpers that a file imports, by full name."""
    names = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return [name for name in names if name.split(".")[0] == "helpers"]


def test_no_room_imports_upwards():
    upward = [f"{path.relative_to(HELPERS)} imports {name}" for path in sorted(HELPERS.rglob("*.py"))
              if path.name != "__init__.py" or path.parent != HELPERS
              for name in imports(path)
              if ORDER.index(room(name)) > ORDER.index(room(".".join(["helpers", *path.relative_to(HELPERS).parts])))]
    assert not upward


@pytest.mark.parametrize("name", sorted(former.MODULES))
def test_a_module_is_found_by_its_former_name(name):
    assert importlib.import_module(name) is importlib.import_module(former.MODULES[name])
