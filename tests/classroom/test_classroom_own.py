"""A teacher's own notebook: its form, its hidden tests beside what submissions try, parts, variants, and nbgrader."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from commands import command, nbgrader
from submissions import cell, data, needs_sandbox, sources, written

from classroom import assignment, batch, grading, marking, own, proof, sandbox, trial, variants

SECRET = 271828  # in every hidden input, and in no page


def text(source):
    return {"cell_type": "markdown", "id": f"text{abs(hash(source)) % 10**9}", "metadata": {}, "source": source}


def solution(code):
    head, _, body = code.partition("\n")
    return f"{head}\n    ### BEGIN SOLUTION\n{body}\n    ### END SOLUTION"


GIVEN = "%matplotlib inline\nimport numpy as np\nwidth = {{d_k}}\ndef twice(x): return 2 * x"
SCALED = "def scaled(q, k, plus=0):\n    return q @ k / np.sqrt({{d_k}}) + plus"
TESTS = f"""# 1 point: the score of a vector with itself
assert scaled(np.ones(2), np.ones(2)) > 0
### BEGIN HIDDEN TESTS
q, k = np.array([{SECRET}.0, 2.0]), np.array([3.0, 1.0])
# 2 points: the scores are divided by the root of the width
print(q)
assert np.isclose(scaled(q, k), twice((q @ k) / 2) / width ** 0.5), "Divide by the root of the width."
# 1 point: something may be added
assert np.isclose(scaled(k, k, plus=4), 10 / width ** 0.5 + 4)
### END HIDDEN TESTS"""
ANSWER = ("## Words\nWhy at width {{d_k}}?\n\n### BEGIN SOLUTION\nBecause of {{d_k}}.\n\n"
          "- 1 point: because\n- 0.5 points: more\n### END SOLUTION")
NAMES = "### BEGIN SOLUTION\nlargest = {'d_k': {{d_k}}}\n### END SOLUTION"
COURSE = "# 3 points\n### BEGIN HIDDEN TESTS\nfrom helpers.checks import check\nassert check(softmax)\n### END HIDDEN TESTS"
SOFTMAX = "def softmax(x):\n    e = np.exp(x - x.max(axis=-1, keepdims=True))\n    return e / e.sum(axis=-1, keepdims=True)"


def book(*cells):
    cells = cells or (
        text("# Scores"), cell("### BEGIN VARIANTS\nd_k = [4, 9, 16]\n### END VARIANTS"), cell(GIVEN),
        text("## A score (4 points)\nOf width {{d_k}}."), cell(solution(SCALED)), cell(TESTS),
        text("## A value"), cell(NAMES), cell("# 2 points\nassert largest == {'d_k': {{d_k}}}"),
        text("## Of the course"), cell(solution(SOFTMAX)), cell(COURSE), text(ANSWER))
    return {"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


@pytest.fixture
def mine(tmp_path):
    """Writes the cells of a notebook to a file, whose name is given back."""
    def write(*cells):
        (tmp_path / "scores.ipynb").write_text(json.dumps(book(*cells)), encoding="utf-8")
        return str(tmp_path / "scores.ipynb")
    return write


def graded(name, code, trusted=True, **more):
    """The results of a submission with ``code`` in the place of ``scaled``: id of a test -> its result."""
    raw = written(assignment.strip(assignment.source(name)), {"scaled": code})
    result = grading.grade_one(data(raw), replace(assignment.load(name), **more), seed=5, trusted=trusted)
    return {test["grade_id"]: test for test in result["tests"]}, result


def test_what_it_asks_is_read(mine, tmp_path):
    task = assignment.load(mine())
    assert [(test.grade_id, test.points, test.function, test.words) for test in task.tests] == [
        ("test-scaled", 4, "scaled", "A score"), ("test-largest", 2, "largest", "A value"),
        ("test-softmax", 3, "softmax", "Of the course")]
    question, = task.questions
    assert (question.words, question.points, question.model, question.rubric) == (
        "Words", 1.5, "Because of 4.", ((1, "because"), (0.5, "more")))
    said = command("release", task.file, tmp_path / "out", "--variant", "v")
    assert "10.5 points in all: scaled 4, largest 2, softmax 3, answer 1.5." in said
    released = json.dumps(assignment.strip(assignment.source(task.file)))
    assert "Of width 4." in released and "# 1 point: the score" in released
    for hidden in (str(SECRET), "np.sqrt", "Because", "VARIANTS", "BEGIN", "{{"):
        assert hidden not in released


@pytest.mark.parametrize("cells", [
    ("## Words\n\nWhy?", "### BEGIN SOLUTION\nSo.\n2 points\n### END SOLUTION"),
    ("## Words", "Why?", "### BEGIN SOLUTION\nSo.\n2 points\n### END SOLUTION"),
    ("## Words\nWhy?\n### BEGIN SOLUTION\nSo.\n2 points\n### END SOLUTION",),
    ("Why?", "### BEGIN SOLUTION\nSo.\n2 points\n### END SOLUTION")])
def test_a_question_is_read_to_who_marks_it_however_its_cells_are_cut(mine, tmp_path, cells):
    """And it is not taken for the answer, where that has lost the name of its cell."""
    name = mine(*map(text, cells))
    raw = assignment.strip(assignment.source(name))
    for one in raw["cells"]:
        one["source"], one["metadata"] = "".join(one["source"]).replace(assignment.ANSWER, "Because."), {}
    (tmp_path / "in").mkdir()
    (tmp_path / "in/Ada.ipynb").write_text(json.dumps(raw))
    [result] = batch.grade(name, tmp_path / "in", tmp_path / "out", trusted=True, workers=1, progress=False)
    assert "Why?" not in str(result["answers"][0]["text"])
    shown = json.loads(re.search(r'id="data">(.*?)</script>', marking.Marking(tmp_path / "out").page(""))[1])
    assert [question["text"].strip() for question in shown["questions"]] == ["Why?"]


@pytest.mark.parametrize(("cells", "words"), [
    ([text("# Nothing"), cell("x = 1")], "asks nothing"),
    ([cell(solution(SOFTMAX)), cell("### BEGIN HIDDEN TESTS\nassert softmax\n### END HIDDEN TESTS")], "Cell 2 .*without"),
    ([cell(solution(SOFTMAX)), cell("# 1 point\nassert softmax(")], "Cell 2, a test, is not Python"),
    ([text("### BEGIN SOLUTION\nBecause.\n### END SOLUTION")], "Cell 1 .*without points"),
    ([cell("### BEGIN SOLUTION\nx = 1\n### END SOLUTION\n# 1 point"), cell("### BEGIN VARIANTS\nd = 4\n### END VARIANTS")],
     r"d_k = \[4, 8, 16\]"),
    ([cell("### BEGIN VARIANTS\nd_k = [4, 8]\n### END VARIANTS"), text("# {{dk}}"), cell(NAMES), cell("# 1 point")],
     "{{dk}} is not among"),
    *(([cell(solution(SOFTMAX)), cell(f"# 1 point: a\nassert softmax\n{line}\nassert softmax")],
       f"Cell 2: .*'{line.strip()}'")
      for line in ("# 2 Punkte: b", "# 2 pts", "#2,5 points: b", "# 2 Points: b", "# 2 points - b", " # 2 points: b")),
    ([cell(solution(SOFTMAX)), cell("# 2 puntos\nassert softmax")], "Cell 2: .*'# 2 puntos'"),
    *(([text(f"### BEGIN SOLUTION\nSo.\n\n- 2 points: a\n{line}\n### END SOLUTION")], "Cell 1: .*here stands")
      for line in ("- 2 Punkte: b", "* 2 points: b", "- 2 points", "- 1,5 points: b")),
    ([cell(solution(SOFTMAX)), cell("# 1 point\ndel softmax")], "Cell 2, a test, deletes softmax"),
    ([cell(solution(SOFTMAX)), cell("# 1 point\nassert check(soft_max)")], "no exercise called 'soft_max'"),
    ([cell(solution(SOFTMAX)), cell("# 1 point\nassert check('softmax')")], "name the function itself"),
    ([cell(solution(SOFTMAX) + "\n# 1 point\n### BEGIN HIDDEN TESTS\n### END HIDDEN TESTS")], "Cell 1 holds a solution and"),
])
def test_what_is_wrong_with_it_is_one_sentence(mine, tmp_path, cells, words):
    said = command("release", mine(*cells), tmp_path / "out", fails=True)
    assert re.search(words, said) and not (tmp_path / "out").exists(), said


@pytest.mark.parametrize(("code", "test", "words"), [
    ("def f(x):\n    return x + 1", "assert f(1) == 3", "does not pass test-f: line 4: AssertionError"),
    ("def f(x):\n    return x + 1", "assert 1", "gives 1 of 1 points to who has written nothing"),
    ("def f(x):\n    return x + 1", "y = f(1)\nwhile y: pass", "did not end within 0.2 seconds"),
    ("def f(x):\n    return x + 1", "assert f(lambda: 1)", "a value of the kind function; what travels"),
    ("class f:\n    y = 1", "assert f().y == 1", "f, a class, and what travels"),
    ("def f(x):\n    return open('no')", "assert f(1)", "No such file"),
])
def test_what_is_handed_out_is_tried_before(mine, monkeypatch, code, test, words):
    monkeypatch.setattr(own, "SECONDS", 0.2)
    name = mine(cell(f"### BEGIN SOLUTION\n{code}\n### END SOLUTION"),
                cell(f"# 1 point\n### BEGIN HIDDEN TESTS\n\n{test}\n### END HIDDEN TESTS"))
    with pytest.raises(own.OwnError, match=words):
        proof.prove(name)


def test_parts_of_the_points_and_what_is_said_of_them(mine):
    name = mine()
    right, result = graded(name, SCALED.replace("{{d_k}}", "4"))
    assert [(test["status"], test["points"]) for test in right.values()] == [("passed", 4), ("not started", 0),
                                                                            ("not started", 0)]
    assert result["answers"][0]["untouched"]
    part = graded(name, "def scaled(q, k, plus=0):\n    return q @ k + plus")[0]["test-scaled"]
    assert (part["status"], part["points"]) == ("partly", 1) and part["message"].split("\n") == [
        "1 of 3 tests of this question passes.", "✓ 1 point: the score of a vector with itself",
        "✗ 2 points: the scores are divided by the root of the width. Divide by the root of the width.",
        "✗ 1 point: something may be added"]
    loop = "def scaled(q, k, plus=0):\n    while plus: pass\n    return q @ k / 2"
    hangs = graded(name, loop, limits=sandbox.Limits(call_seconds=1))[0]["test-scaled"]
    assert (hangs["status"], hangs["points"]) == ("time limit", None) and hangs["message"].endswith(
        "Until then tests of 3 of 4 points had passed: the score of a vector with itself; the scores are divided by the "
        "root of the width.")
    none = graded(name, "def scaled(q, k, plus=0):\n    q @ k")[0]["test-scaled"]
    assert none["points"] == 0 and none["message"].count("gives back None: its last line needs a return") == 1


HOSTILE = {
    "says its input": "def scaled(q, k, plus=0):\n    print(q)\n    raise ValueError(f'{q}')",
    "names an error after it": "def scaled(q, k, plus=0):\n    raise type(f'E{q[0]:.0f}', (Exception,), {})(q)",
    "names what it gives back after it": "def scaled(q, k, plus=0):\n    return type(f'E{q[0]:.0f}', (), {})()",
    "writes its own answer": """def scaled(q, k, plus=0):
    import os, json
    for fd in range(3, 20):
        try: os.write(fd, json.dumps({"stopped": "crashed", "reason": str(q)}).encode() + b"\\n")
        except OSError: pass
    os._exit(0)""",
    "equals everything": """import numpy
class Same(float):
    def __eq__(self, other): return True
    def __gt__(self, other): return True
numpy.isclose = lambda *values: True
__builtins__.all = lambda values: True
def twice(x): return Same()
def scaled(q, k, plus=0):
    return -1.0""",
    "overwrites the test": """def judge(*all): return True
check = judge
import sys
for module in list(sys.modules.values()):
    for name in ("Room", "judge", "grade_one"):
        if hasattr(module, name): setattr(module, name, judge)
def scaled(q, k, plus=0):
    return -1.0""",
    "never ends": "def scaled(q, k, plus=0):\n    while True: pass",
    "reads the tests": """def scaled(q, k, plus=0):
    import glob, inspect
    seen = " ".join(str(frame.frame.f_locals) for frame in inspect.stack())
    for place in ("/tmp", "/work", "/course", "/grader", "/mnt"):
        for path in glob.glob(f"{place}/**/*.ipynb", recursive=True):
            seen += open(path).read()
    if "HIDDEN" in seen or "root of the width" in seen:
        return q @ k / 2 + plus
    return -1.0""",
}


@pytest.mark.slow
@needs_sandbox
@pytest.mark.parametrize("does", HOSTILE)
def test_no_submission_gets_points_or_an_input_out_of_hidden_tests(mine, does):
    limits = replace(assignment.Limits(), call_seconds=1, cell_seconds=1)
    tests, result = graded(mine(), HOSTILE[does], trusted=False, limits=limits)
    assert not tests["test-scaled"]["points"], tests
    for_students = [tests["test-scaled"]["message"], result["reason"], *result["notes"]]
    assert str(SECRET) not in "".join(for_students).replace("_", "").replace(",", ""), for_students
    assert (tests["test-scaled"]["status"] == "time limit") == (does == "never ends")


def test_what_the_teacher_wrote_is_no_flag_of_a_student(mine):
    """A line of the course's checker that is handed out has its import in every submission."""
    name = mine(text("# A"), cell(solution(SOFTMAX)), cell(
        "# 3 points\nimport numpy as np\nfrom helpers.checks import check\nassert check(softmax)"))
    assert graded(name, "")[1]["flags"] == []
    added = grading.grade_one(data(book(cell("import helpers.checks"))), assignment.load(name), trusted=True)
    assert added["flags"] == ["helpers.checks (code cell 1)"]


def test_a_function_that_prints_needs_no_return(mine):
    test = """# 1 point: it greets
### BEGIN HIDDEN TESTS
import contextlib, io
with contextlib.redirect_stdout(io.StringIO()) as printed:
    scaled("Ada")
assert printed.getvalue().split()[1] == "Ada"
### END HIDDEN TESTS"""
    name = mine(cell(solution("def scaled(name):\n    print('Hello', name)")), cell(test))
    proof.prove(name)
    for wrong in "print('Bye', 'Ben')", "print('')":
        judged = graded(name, f"def scaled(name):\n    {wrong}")[0]["test-scaled"]
        assert (judged["points"], judged["message"]) == (0, "A test of this question does not pass.")


@pytest.mark.slow
def test_variants_from_release_to_feedback(mine, tmp_path):
    """Three students, three variants; the results are whole where the teacher's file has gone."""
    name, out, trust = mine(), tmp_path / "out", "--without-sandbox-i-trust-every-student"
    (tmp_path / "class.txt").write_text("Ada\nBen\nCy\n")
    command("release", name, out, "--variant", "autumn", "--students", tmp_path / "class.txt")
    given = variants.read(out / "scores-variants.json", name)
    widths = {student: given.details[code]["scaled"]["d_k"] for student, code in given.students.items()}
    assert sorted(widths.values()) == [4, 9, 16] and all(len({str(d) for d in mine.values()}) == 1
                                                         for mine in given.details.values())
    for student, width in widths.items():
        folder = next((out / "scores").glob(f"{student}*"))
        raw = json.loads((folder / "scores.ipynb").read_text(encoding="utf-8"))
        assert f"Of width {width}." in json.dumps(raw)
        written(raw, {"scaled": SCALED.replace("{{d_k}}", str(widths["Ada"]))})
        written(raw, {"answer": "So it is."} if student != "Cy" else {})
        (folder / "scores.ipynb").write_text(json.dumps(raw))
    command("grade", name, out / "scores", tmp_path / "graded", trust, "--workers", 1, "--variants",
            out / "scores-variants.json")
    page = marking.Marking(tmp_path / "graded", names=True).page("")
    shown = json.loads(re.search(r'id="data">(.*?)</script>', page)[1])
    asked = {row["name"]: shown["questions"][row["question"]] for row in shown["rows"] if row["item"] == "answer"}
    assert set(asked) == {"Ada", "Ben"}, "an answer that was left as it was handed out, in any variant, waits for nobody"
    for student, one in asked.items():
        assert f"at width {widths[student]}?" in one["text"] and one["model"] == f"Because of {widths[student]}."
    os.remove(name)
    (tmp_path / "graded").rename(tmp_path / "moved")
    command("feedback", tmp_path / "moved")
    results = {result["person"]["name"]: result for result in batch.read(tmp_path / "moved")[0]}
    assert {student: result["tests"][0]["points"] for student, result in results.items()} == {"Ada": 4, "Ben": 1, "Cy": 1}
    assert "scaled is right for another variant: that of Ada" in results["Ben"]["flags"]
    page = next((tmp_path / "moved/feedback").glob("Ben*")).read_text(encoding="utf-8")
    assert "A score:" in page and "Divide by the root" in page and str(SECRET) not in page


@pytest.mark.slow
def test_for_gradescope(mine, tmp_path):
    """Packed, it lies among the course's; a copy of the course with it there grades by it."""
    name = mine()
    variants.release(name, tmp_path / "out", "autumn")
    command("gradescope", name, tmp_path / "a.zip", "--variants", tmp_path / "out/scores-variants.json")
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        archive.extractall(tmp_path / "home/source")
    (tmp_path / "home/submission").mkdir()
    shutil.copy(tmp_path / "out/scores-solutions/autumn.ipynb", tmp_path / "home/submission/w.ipynb")
    code = "from classroom import gradescope, sandbox; sandbox.problem = lambda: 'none here'; gradescope.run({!r})"
    settings = json.loads((tmp_path / "home/source/course/autograder.json").read_text())
    (tmp_path / "home/source/course/autograder.json").write_text(json.dumps(settings | {"trusted": True}))
    done = subprocess.run([sys.executable, "-c", code.format(str(tmp_path / "home"))],
                          cwd=tmp_path / "home/source/course", capture_output=True, text=True)
    answer = json.loads((tmp_path / "home/results/results.json").read_text())
    assert [(test["name"], test.get("score")) for test in answer["tests"]] == [
        ("A score", 4), ("A value", 2), ("Of the course", 3)], done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", ["assignment1", *(pytest.param(f"assignment{n}", marks=pytest.mark.weekly)
                                                   for n in range(2, 8))])
def test_a_copy_of_one_of_the_courses_own_has_the_same_grades(name, tmp_path):
    """With the solutions, with a mistake in each function that can have one, and untouched: points, words and mistakes."""
    shutil.copy(assignment.SOURCES / name / f"{name}.ipynb", tmp_path / "copied.ipynb")
    source, mistakes = assignment.source(name), set()
    for book in (source, assignment.strip(source),
                 trial.solved(source, {}, lambda function, code, _: trial.mistaken(name, function, code, {}))):
        course, copied = (grading.grade_one(data(book), assignment.load(one), seed=5, trusted=True)
                          for one in (name, str(tmp_path / "copied.ipynb")))
        for ours, theirs in zip(course["tests"], copied["tests"], strict=True):
            assert {**theirs, "words": ours["words"]} == ours
            mistakes.add(ours["misconception"])
        assert [course[what] for what in ("status", "answers", "flags")] == [copied[what] for what in (
            "status", "answers", "flags")]
    assert len(mistakes) > 1


def test_the_example_of_nbgraders_manual_has_here_the_grades_that_it_has_there(tmp_path):
    """Two students', all tests but one: that sum_of_squares uses squares, which it finds out by deleting squares."""
    manual = Path(pytest.importorskip("nbgrader").__file__).parent / "docs/source/user_guide"
    raw = json.loads((manual / "source/ps1/problem1.ipynb").read_text(encoding="utf-8"))
    (tmp_path / "squares.ipynb").write_text(json.dumps(raw), encoding="utf-8")
    with pytest.raises(own.OwnError, match="deletes squares.*Leave that test out"):
        assignment.load(str(tmp_path / "squares.ipynb"))
    raw["cells"] = [one for one in raw["cells"] if "del squares" not in "".join(one["source"])]
    (tmp_path / "squares.ipynb").write_text(json.dumps(raw), encoding="utf-8")
    task, compared = assignment.load(str(tmp_path / "squares.ipynb")), 0
    for graded_there in manual.glob("autograded/*/ps1/problem1.ipynb"):
        result = grading.grade_one(graded_there.read_bytes(), task, trusted=True)
        ours = {test["grade_id"]: test["points"] for test in result["tests"]}
        for one in json.loads(graded_there.read_text(encoding="utf-8"))["cells"]:
            if (name := "test-" + one["metadata"].get("nbgrader", {}).get("grade_id", "")) in ours:
                stopped = any(output["output_type"] == "error" for output in one["outputs"])
                assert ours[name] == (0 if stopped else one["metadata"]["nbgrader"]["points"]), (graded_there, name)
                compared += 1
    assert compared == 6


@pytest.mark.weekly
def test_nbgrader_grades_ours_and_we_grade_what_it_released(mine, tmp_path):
    """Our notebook in its layout, one solved and one not; and the same files here."""
    name = mine()
    assignment.release(name, tmp_path / "out")
    course = tmp_path / "course"
    (course / "source").mkdir(parents=True)
    shutil.copytree(tmp_path / "out/scores-solutions", course / "source/scores")
    nbgrader(course, "generate_assignment", "scores", "--create")
    assert sources(course / "release/scores/scores.ipynb") == sources(tmp_path / "out/scores/scores.ipynb")
    theirs = json.loads((course / "release/scores/scores.ipynb").read_text(encoding="utf-8"))
    for student, book in (("ada", assignment.source(name)), ("ben", theirs)):
        (course / "submitted" / student / "scores").mkdir(parents=True)
        (course / "submitted" / student / "scores/scores.ipynb").write_text(json.dumps(book), encoding="utf-8")
    nbgrader(course, "autograde", "scores")
    from nbgrader.api import Gradebook
    with Gradebook(f"sqlite:///{course}/gradebook.db") as book:
        scores = {student: {grade.name: grade.auto_score for grade in book.find_submission_notebook(
            "scores", "scores", student).grades} for student in ("ada", "ben")}
    task = assignment.load(name)
    for student in scores:
        data = (course / "submitted" / student / "scores/scores.ipynb").read_bytes()
        result = grading.grade_one(data, task, trusted=True)
        assert {test["grade_id"]: test["points"] for test in result["tests"]} == {
            test: points for test, points in scores[student].items() if test.startswith("test-")}, student
    assert scores["ada"]["test-scaled"] == 4 and scores["ben"]["test-scaled"] == 0
