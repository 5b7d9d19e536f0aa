"""Every assignment: complete, its checkers sound, released without solutions, and usable with nbgrader unchanged."""

import ast
import importlib
import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import hygiene
import pytest
import submissions
from commands import nbgrader
from jobs import NotRun
from mistakes import misnamed
from mutants import survivors
from submissions import needs_sandbox, sources

from classroom import assignment, grading, sandbox, tasks
from classroom.grading import grade_one
from classroom.sandbox import Limits
from helpers.checks import INDEX
from helpers.checks.core import Exercise, evaluate

NAMES = assignment.names()


def judged_by_probes(name, function):
    """Not what only says what it expects, and is scored by what then happens: test_classroom_assignment7 has tests of it."""
    return isinstance(whole(name, function), Exercise)


def whole(name, function):
    return importlib.import_module(f"classroom.tasks.{name}").TASKS[function].exercise


TASKS = [(name, function) for name in NAMES
         for function in dict.fromkeys(test.function for test in assignment.load(name).tests)
         if judged_by_probes(name, function)]
EQUIVALENT = {  # mutants that compute the same as the reference: a piece of their text, and why
    "np.where(weights > 0, weights, 2)": "the weight 0 is multiplied by the logarithm that it replaces",
    "BLIND[blind](1)": "padding that sees nothing needs no size",
}

# Asked in assignment 4 before lesson 16 asked it too: hand-outs of that name are about, and have to be graded.
PUBLIC = {"rms_norm"}


@pytest.mark.parametrize("name", NAMES)
def test_is_complete(name):
    task = assignment.load(name)
    known = importlib.import_module(f"classroom.tasks.{name}").TASKS
    assert 20 <= task.points <= 40 and task.questions
    assert set(known) == {test.function for test in task.tests}
    assert not set(known) & set(INDEX) - PUBLIC, "a task must not be an exercise of a lesson"
    for test in task.tests:
        assert not judged_by_probes(name, test.function) or task.task(test).exercise.probes, test.grade_id
    for function in [function for function in known if judged_by_probes(name, function)]:
        parts = {test.grade_id.partition(function)[2] for test in task.tests if test.function == function}
        extreme = any(probe.extreme for probe in known[function].exercise.probes)
        assert parts == ({"", "-extreme"} if extreme else {""}), f"{function}: probes that no test cell uses, or too few"


@pytest.mark.parametrize("name", NAMES)
def test_keeps_the_rules_of_a_notebook(name):
    """Those of tests/notebooks/hygiene.py that are not about lessons: run from top to bottom, no warnings, no paths, ids ...
    A figure is the students' to read."""
    book = hygiene.Book(assignment.SOURCES / name / f"{name}.ipynb")
    rules = [rule for word, (where, rule) in hygiene.RULES.items()
             if where == "all" and word not in ("number_and_title", "colab_first", "figures_in_words")]
    assert len(rules) >= 12
    assert [sentence for rule in rules for sentence in rule(book)] == []


@pytest.mark.parametrize(("name", "function"), TASKS)
def test_reference_passes_and_mutants_do_not(name, function, pytestconfig):
    exercise = whole(name, function)
    assert len(exercise.misconceptions) >= 5 and exercise.name == function
    weekly = pytestconfig.getoption("weekly", False)
    for seed in range(50 if weekly else 3):
        outcome = evaluate(exercise, exercise.reference, seed=seed)
        assert outcome, outcome.message
    tried, alive, endless = survivors(exercise, lambda mutant: any(text in mutant.source for text in EQUIVALENT),
                                each=1 if weekly else 8)
    assert len(tried) > 2 * len(endless) and not alive, "\n\n".join(map(str, alive))


@pytest.mark.parametrize(("name", "function"), TASKS)
def test_mistakes_are_named_as_themselves(name, function, pytestconfig):
    found = misnamed(whole(name, function), pytestconfig)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", NAMES)
def test_release_keeps_no_solution_line(name, tmp_path):
    source = json.loads((assignment.SOURCES / name / f"{name}.ipynb").read_text(encoding="utf-8"))
    text = assignment.release(name, tmp_path).read_text(encoding="utf-8")
    assert "BEGIN SOLUTION" not in text and "judge(" not in text
    for cell in source["cells"]:
        lines = "".join(cell["source"]).split("\n")
        if cell["metadata"].get("nbgrader", {}).get("solution") and cell["cell_type"] == "code":
            inside = lines[lines.index("    ### BEGIN SOLUTION") + 1:lines.index("    ### END SOLUTION")]
            assert not any(json.dumps(line, ensure_ascii=False)[1:-1] in text for line in inside if len(line) > 12)
    for cell in json.loads(text)["cells"]:
        if cell["cell_type"] == "code":
            ast.parse("".join(cell["source"]))


@pytest.mark.slow
@needs_sandbox
@pytest.mark.parametrize("name", NAMES)
def test_solution_has_full_marks_and_release_none(name, tmp_path, monkeypatch, pytestconfig):
    task = assignment.load(name)
    solution = grade_one(assignment.path_of(name).read_bytes(), task)
    assert [t["points"] for t in solution["tests"]] == [t.points for t in task.tests], solution
    assert not solution["flags"]
    if not pytestconfig.getoption("weekly", False):
        monkeypatch.setattr(grading, "Session", NotRun)  # whether a function is as it was handed out is read from the code
    released = grade_one(assignment.release(name, tmp_path).read_bytes(), task)
    assert {(t["status"], t["points"]) for t in released["tests"]} == {("not started", 0)}


HANDED_OUT = json.loads(Path(__file__).with_name("handed_out.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", HANDED_OUT)
def test_what_classes_were_given_before_can_still_be_imported(name):
    """Of the helpers; the next test, once a week, runs the rest."""
    imports = [node for source in HANDED_OUT[name] if "BEGIN HIDDEN TESTS" not in source
               for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert any(isinstance(node, ast.ImportFrom) and node.module.startswith("helpers") for node in imports)
    for node in imports:
        exec(compile(ast.Module([node], []), name, "exec"), {})


@pytest.mark.weekly
@needs_sandbox
@pytest.mark.parametrize("name", HANDED_OUT)
def test_what_classes_were_given_before_still_has_full_marks(name):
    """The code cells of November 2026, solved, as nbgrader gives them back: with hidden tests that import the checkers
    from where they were then. What the helpers offered to a hand-out they still do: no cell has a complaint."""
    cells = [submissions.cell(source) for source in HANDED_OUT[name]]
    result = grade_one(json.dumps({"cells": cells, "metadata": {}}).encode(), assignment.load(name))
    assert "from helpers.classroom.tasks import judge" in "".join(HANDED_OUT[name])
    assert [(t["points"], t["message"]) for t in result["tests"] if t["points"] != t["most"]] == []
    assert (result["status"], result["notes"], result["flags"]) == ("graded", [], [])


@pytest.mark.slow
@needs_sandbox
def test_what_the_task_excludes_is_told_and_costs_nothing():
    """A right function may hang or give back nonsense where the temperature is not above 0."""
    task = replace(assignment.load("assignment1"), limits=Limits(call_seconds=1))
    for does in ("while True: pass", "return object()"):
        slow = submissions.RIGHT["softmax_with_temperature"].replace("):", f"):\n    if temperature <= 0:\n        {does}")
        result = grade_one(submissions.data(submissions.solved(softmax_with_temperature=slow)), task)
        judged = [test for test in result["tests"] if "softmax" in test["grade_id"]]
        assert judged and all(test["points"] == test["most"] for test in judged), (does, judged)
        assert "raises ValueError for a temperature of 0" in judged[0]["message"]


@pytest.mark.weekly
@pytest.mark.parametrize("name", NAMES)
def test_nbgrader_takes_them_unchanged_and_runs_the_hidden_tests(name, tmp_path):
    shutil.copytree(assignment.SOURCES / name, tmp_path / "source" / name)
    nbgrader(tmp_path, "generate_assignment", name, "--create")
    released = assignment.release(name, tmp_path / "ours")
    assert sources(tmp_path / "release" / name / f"{name}.ipynb") == sources(released)
    patient = ("--Execute.timeout=600", "--Execute.iopub_timeout=60")  # a busy machine takes its time to import torch
    assert "Success" in nbgrader(tmp_path, "validate", *patient, f"source/{name}/{name}.ipynb")


def imported(room):
    """The packages that the modules of a folder name in their imports."""
    found = set()
    for path in (sandbox.ROOT / room).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and not node.level else []
            found |= {name.partition(".")[0] for name in names}
    return found - set(sys.stdlib_module_names)


def test_what_the_classroom_needs():
    """The course itself and the extra `classes`; and no lesson needs the classroom."""
    assert imported("classroom") == {"IPython", "classroom", "dateparser", "helpers", "jinja2", "matplotlib",
                                     "numpy", "pebble", "scipy", "torch", "tomli", "tqdm", "tzlocal",
                                     "wire"}  # tomli before Python 3.11
    assert "classroom" not in imported("helpers")


def test_unknown_tasks_are_told():
    with pytest.raises(KeyError, match="no task"):
        tasks.find(NAMES[0], "test-nothing")
    with pytest.raises(assignment.AssignmentError, match="does not end"):
        assignment.strip({"cells": [{"cell_type": "code", "metadata": {}, "source": "### BEGIN SOLUTION\nx"}]})
