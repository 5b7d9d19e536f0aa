"""What becomes of cells between a student's notebook and the grader: slips of the keyboard, kinds, halves, magics."""

import json
import os

import pytest

from classroom import assignment, code_cells
from classroom.grading import grade_one

pytestmark = pytest.mark.skipif(os.name != "posix", reason="submissions are run on POSIX systems only")
TASK = assignment.load("assignment2")
IMPORTS = "import numpy as np\nfrom helpers.attention import softmax\n"
HEAD = "def unit_divisor(d_k, sigma_q, sigma_k):\n"
RIGHT = HEAD + "    return np.sqrt(d_k) * sigma_q * sigma_k\n"
WRONG = RIGHT.replace("np.sqrt(d_k)", "d_k")
STUB = HEAD + "    raise NotImplementedError()\n"
ROOT = "def root(x):\n    return np.sqrt(x)\n"
USES_ROOT = RIGHT.replace("np.sqrt", "root")


def cell(source, grade_id=None, kind="code"):
    return {"cell_type": kind, "metadata": {"nbgrader": {"grade_id": grade_id}} if grade_id else {}, "source": source}


def graded(*cells):
    """The result of the test of ``unit_divisor`` in a notebook of these cells, and the notes."""
    raw = {"cells": [cell(one) if isinstance(one, str) else one for one in cells], "nbformat": 4, "nbformat_minor": 4,
           "metadata": {"attention_course": {"assignment": TASK.name}}}
    result = grade_one(json.dumps(raw).encode(), TASK, seed=1, trusted=True)
    return next(test for test in result["tests"] if test["function"] == "unit_divisor"), "\n".join(result["notes"])


SLIPS = {"syntax": "{}x = = 3\n", "indent": "{}  y = 3\n", "merge": "<<<<<<< HEAD\n{}=======\n{}>>>>>>> theirs\n",
         "quotes": "{}print(\u201chi\u201d)\n", "null byte": "{}\0", "tabs": "{}if 1:\n\tx = 1\n        y = 2\n",
         "return": "{}return 3\n", "arguments": "{}def g(a, a): pass\n", "text": "Here it is:\n{}"}


@pytest.mark.parametrize("slip", SLIPS)
def test_what_depends_on_a_cell_that_is_not_python_is_marked_by_hand(slip):
    def broken(source):
        return SLIPS[slip].replace("{}", source)
    cases = [((IMPORTS, broken(ROOT), USES_ROOT), "unit_divisor needs root"),
             ((IMPORTS, broken(RIGHT)), "The cell that defines unit_divisor did not run"),
             ((IMPORTS, ROOT.replace("sqrt", "abs"), broken(ROOT), USES_ROOT), "unit_divisor needs root"),
             ((IMPORTS, STUB, broken(RIGHT)), "The cell that defines unit_divisor did not run"),
             ((IMPORTS, WRONG, broken(RIGHT)), "The cell that defines unit_divisor did not run")]
    for cells, where in cases if slip == "syntax" else cases[:2]:
        test, _ = graded(*cells)
        assert (test["status"], test["points"]) == ("function missing", None), (cells, test)
        assert where in test["message"] and f"code cell {len(cells) - ('root' in where)}" in test["message"], test
    test, _ = graded(IMPORTS, broken("def other(x):\n    return x\n"), WRONG)
    assert (test["status"], test["points"]) == ("wrong", 0), "what does not depend on it is judged"
    test, _ = graded(IMPORTS, broken(RIGHT), WRONG)
    assert (test["status"], test["points"]) == ("wrong", 0), "nor is a draft above that was given up an excuse"
    test, _ = graded(IMPORTS, RIGHT, broken(WRONG))
    assert test["points"] == 4


@pytest.mark.parametrize("source", [
    "from google.colab import drive\ndrive.mount('/content/drive')\n" + IMPORTS, "import no_such\n" + IMPORTS, "",
    "import numpy as np,\nfrom helpers.attention import softmax\n", "from helpers.attention import softmacks\n" + IMPORTS,
    "import asyncio\nawait asyncio.sleep(0)\n" + IMPORTS, IMPORTS.replace("as np", "as numpy")])
@pytest.mark.parametrize("grade_id", ["imports", None])
def test_a_broken_imports_cell_harms_nobody(source, grade_id):
    assert graded(cell(source, grade_id), RIGHT)[0]["points"] == 4
    assert graded(cell(source, grade_id), WRONG)[0]["points"] == 0


def test_what_a_student_imports_counts():
    assert graded(cell("from math import sqrt\n" + IMPORTS, "imports"), RIGHT.replace("np.sqrt", "sqrt"))[0]["points"] == 4
    mine = "def softmax(x):\n    return np.sqrt(x)\n"
    assert graded(cell(IMPORTS + mine, "imports"), RIGHT.replace("np.sqrt", "softmax"))[0]["points"] == 4
    assert code_cells.handed_out_imports(TASK.import_cells, [*TASK.import_cells, RIGHT]) == "", "nothing is run twice"
    assert "matplotlib" not in code_cells.handed_out_imports(TASK.import_cells, [IMPORTS, RIGHT]), "nor what nobody uses"


@pytest.mark.parametrize("cells", [
    [cell(RIGHT, "unit_divisor", "markdown")], [cell(RIGHT, None, "raw")], [STUB, cell(RIGHT, None, "markdown")],
    [cell(f"My answer:\n\n```python\n{RIGHT}```\n", None, "markdown")]])
def test_a_solution_in_a_text_cell_is_graded_and_said(cells):
    test, notes = graded(IMPORTS, *cells)
    assert test["points"] == 4 and "is a text cell" in notes and "No code cell defines unit_divisor" in notes
    test, notes = graded(IMPORTS, WRONG, *cells[-1:])
    assert test["points"] == 0 and not notes, "what is in code counts"
    assert not graded(IMPORTS, cell(STUB, None, "markdown"), RIGHT)[1]


@pytest.mark.parametrize("parts", [
    (HEAD + "    root = np.sqrt(d_k)", "    return root * sigma_q * sigma_k"), (HEAD, RIGHT.removeprefix(HEAD)),
    (HEAD.rstrip(), "    root = np.sqrt(d_k)", "    return root * sigma_q * sigma_k"),
    (HEAD + "    return np.sqrt(d_k", ") * sigma_q * sigma_k"), ("%matplotlib inline\n" + HEAD, RIGHT.removeprefix(HEAD))])
def test_a_cell_that_was_split_is_run_as_one(parts):
    test, notes = graded(IMPORTS, *parts, "x = 1")
    assert test["points"] == 4 and "are one cell that was split in two" in notes


def test_merged_moved_and_copied_cells():
    assert graded(cell(IMPORTS + RIGHT, "imports"))[0]["points"] == 4
    assert graded(RIGHT, IMPORTS)[0]["points"] == 4
    assert graded(IMPORTS, USES_ROOT, ROOT)[0]["points"] == 4
    assert graded(IMPORTS, RIGHT, RIGHT, STUB)[0]["points"] == 4


@pytest.mark.parametrize("magic", [
    "np.sqrt?", "np.sqrt??", "?np.sqrt", "%timeit unit_divisor(1, 1, 1)", "!pip install numpy",
    "!pip install \\\n   numpy", "%%time", "%%timeit", "%%memit", "%%capture out", "files = !ls", "%load_ext autoreload",
    "%cd ..", "%env X=1",
    "get_ipython().run_line_magic('matplotlib', 'inline')", "get_ipython().system('ls')", "get_ipython().user_ns['q'] = 1",
    "from IPython import get_ipython\nget_ipython().run_line_magic('matplotlib', 'inline')",
    "from IPython.display import display, Markdown\ndisplay(Markdown('x'))", "import asyncio\nawait asyncio.sleep(0)"])
def test_magics_cost_nothing(magic):
    assert graded(IMPORTS, f"{magic}\n{RIGHT}")[0]["points"] == 4


def test_what_is_imported_from_the_future_holds_in_later_cells():
    first = "from __future__ import annotations\n" + IMPORTS
    assert graded(first, RIGHT.replace("sigma_q,", "sigma_q: Nothing,"))[0]["points"] == 4


def test_names_of_a_cell_that_is_not_python():
    source = ("import numpy as np, os.path\nfrom helpers import attention as a, plots  # (\nasync def f(x):\n    inner = 1\n"
              "class Rule:\nleft, right = 1, 2\nsize: int = 3\nx == 4\nf(:")
    assert code_cells.names_of(source) == {"np", "os", "a", "plots", "f", "Rule", "left", "right", "size"}
    assert code_cells.names_of(source, functions=False) == code_cells.names_of(source) - {"f"}
    assert code_cells.names_of(" " + source.replace("\n", "\n ")) == code_cells.names_of(source)


def test_a_forbidden_name_is_seen_behind_other_names_and_not_behind_a_local_one():
    cells = ["soft = F.softmax", "rule = lambda x: soft(x)", "w = torch.softmax(1)",
             "def f(x):\n    w = rule(x)\n    return w", "def g(w):\n    return w"]
    assert code_cells.uses(cells, "f", ("softmax",)) == [("softmax", 1)]
    assert code_cells.uses(cells, "g", ("softmax",)) == []


def test_an_answer_whose_cell_has_lost_its_name_is_found_below_its_question():
    raw = assignment.strip(assignment.source(TASK.name))
    raw["cells"] = [{"cell_type": one["cell_type"], "metadata": {}, "source": "The temperature decides." if str(
        one["metadata"].get("nbgrader", {}).get("grade_id")).startswith("answer") else one["source"]}
        for one in raw["cells"] if one["cell_type"] == "markdown"]
    answers = grade_one(json.dumps(raw).encode(), TASK, trusted=True)["answers"]
    assert len(answers) == len(TASK.questions) and not any(answer["untouched"] for answer in answers)
    assert all(answer["text"].endswith(")\nThe temperature decides.") for answer in answers), answers
    for one in raw["cells"]:  # and neither is one whose words are in the question
        one["source"] = "temperature" if one["source"] == "The temperature decides." else one["source"]
    answers = grade_one(json.dumps(raw).encode(), TASK, trusted=True)["answers"]
    assert all(answer["text"].endswith(")\ntemperature") for answer in answers), answers
    for one in raw["cells"]:
        one["source"] = assignment.ANSWER if one["source"] == "temperature" else one["source"]
    answers = grade_one(json.dumps(raw).encode(), TASK, trusted=True)["answers"]
    assert all(answer["text"] is None and not answer["untouched"] for answer in answers), "for a person to look at"
