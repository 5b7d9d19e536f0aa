"""What a notebook defines, taken out of it without running the notebook; and attempts at its exercises, judged."""

import ast
import contextlib
from pathlib import Path

import nbformat

from helpers.checks import evaluate, exercise

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
LESSONS = {path.name[:2]: path for path in sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))}
SOLUTIONS = {path.name[:2]: path for path in sorted((NOTEBOOKS / "solutions").glob("[0-9][0-9]_*.ipynb"))}


def code_cells(path):
    """The source of each code cell of a lesson, without the one for Colab."""
    return [cell.source for cell in nbformat.read(path, as_version=4).cells
            if cell.cell_type == "code" and "remove-cell" not in cell.metadata.get("tags", ())]  # that is Colab's


def definitions(path, *assigned):
    """Run the imports, functions and classes of a notebook, and assignments to the names ``assigned``; nothing else.

    Returns the names. Definitions that need a value which only a run of the whole notebook has are left out.
    """
    names = {}
    for source in code_cells(path):
        for node in ast.parse(source).body:
            wanted = isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) in assigned
            if wanted or isinstance(node, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)):
                with contextlib.suppress(NameError):
                    exec(compile(ast.Module([node], []), path.name, "exec"), names)
    return names


def judge(name, attempt, **options):
    """What the checker of an exercise says of an attempt: an ``Outcome``."""
    return evaluate(exercise(name), attempt, **options)


def passes(name, attempt, seeds=5):
    """An attempt is right, with every one of the seeds."""
    for seed in range(seeds):
        outcome = judge(name, attempt, seed=seed)
        assert outcome, outcome.message


def renamed(function, name):
    function.__name__ = name
    return function
