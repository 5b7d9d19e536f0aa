"""What an assignment asks, read from its source notebook in nbgrader's layout; and its release to students."""

import ast
import copy
import hashlib
import json
import re
from dataclasses import dataclass, field
from pathlib import Path

from classroom import Problem, tasks
from classroom.sandbox import ROOT, Limits
from helpers.store.files import write_whole

SOURCES = ROOT / "notebooks" / "assignments" / "source"
STUB = ("# YOUR CODE HERE", "raise NotImplementedError()")
ANSWER = "YOUR ANSWER HERE"


class AssignmentError(Problem):
    """One sentence: what is wrong with the assignment's name or its source."""


@dataclass(frozen=True)
class Test:
    """A test cell. ``grade_id`` names the function and the part of its probes: see tasks.find."""

    grade_id: str
    points: float

    @property
    def function(self):
        return self.grade_id.removeprefix("test-").partition("-")[0]


@dataclass(frozen=True)
class Question:
    """A written answer, marked by a person. ``words``: the question, in short; ``text``: the question; ``model``: an answer
    with full points; ``rubric``: pairs (points, what they are for)."""

    grade_id: str
    points: float
    words: str
    text: str = ""
    model: str = ""
    rubric: tuple = ()


@dataclass(frozen=True)
class Assignment:
    name: str
    title: str
    tests: tuple
    questions: tuple
    import_cells: tuple = ()  # sources of locked cells that hold imports alone
    limits: Limits = Limits()
    details: dict = field(default_factory=dict)  # of a variant: function -> its details
    given: dict = field(default_factory=dict)  # function -> all the details with which somebody has it

    @property
    def points(self):
        return sum(item.points for item in (*self.tests, *self.questions))

    def task(self, test):
        return tasks.find(self.name, test.grade_id, self.details.get(test.function))


def names():
    """The assignments there are."""
    return sorted(path.parent.name for path in SOURCES.glob("*/*.ipynb") if path.stem == path.parent.name)


def load(name):
    """The ``Assignment`` called ``name``. Raises AssignmentError."""
    raw = source(name)
    tests, questions, import_cells, heading, asked = [], [], [], "", ""
    for cell in raw["cells"]:
        text = "".join(cell["source"])
        marks = cell["metadata"].get("nbgrader", {})
        if cell["cell_type"] == "markdown" and (headings := re.findall(r"^#+ +(.+)$", text, re.MULTILINE)):
            heading, asked = re.sub(r" · \d+ points?$", "", headings[-1]), text
        if marks.get("grade") and marks.get("solution"):
            model, rubric = without_rubric(text)
            questions.append(Question(marks["grade_id"], marks["points"], heading, asked, model, rubric))
        elif marks.get("grade"):
            tests.append(Test(marks["grade_id"], marks["points"]))
        elif cell["cell_type"] == "code" and marks.get("locked") and all(
                isinstance(node, ast.Import | ast.ImportFrom) for node in ast.parse(text).body):
            import_cells.append(text)
    title = re.search(r"^# +(.+)$", "".join(raw["cells"][0]["source"]), re.MULTILINE)
    return Assignment(name, title[1] if title else name, tuple(tests), tuple(questions), tuple(import_cells))


def without_rubric(text):
    """A model answer, and its rubric: pairs (points, what they are for) of the lines "- 2 points: ..." at its end."""
    line = r"^- ([\d.]+) points?: (.+)$"
    return (re.sub(line, "", text, flags=re.MULTILINE).strip(),
            tuple((float(points), words) for points, words in re.findall(line, text, re.MULTILINE)))


def fingerprint(name, *others):
    """A hash of what decides a grade besides the submission: the assignment, the code of classroom/ and helpers/ (grader,
    checkers, references), and ``others``. When it changes, what was graded before is graded again."""
    files = [SOURCES / name / f"{name}.ipynb"]
    for room in ("classroom", "helpers"):
        files += sorted((ROOT / room).rglob("*.py"))
    digest = hashlib.sha256(repr(others).encode())
    for path in files:
        digest.update(path.relative_to(ROOT).as_posix().encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def source(name):
    """The source notebook, with solutions and hidden tests. Raises AssignmentError."""
    if name not in names():
        raise AssignmentError(f"There is no assignment {name!r}; there are {', '.join(names())}.")
    return json.loads((SOURCES / name / f"{name}.ipynb").read_bytes())


def imports(name):
    """The modules that the cells of the source notebook import, and what they take from these: ``helpers.plots``, which
    may be no module."""
    trees = [ast.parse("".join(cell["source"])) for cell in source(name)["cells"] if cell["cell_type"] == "code"]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    names_imported = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names_imported += [f"{node.module}{more}" for node in nodes if isinstance(node, ast.ImportFrom) and node.module
              for more in ("", *(f".{alias.name}" for alias in node.names))]
    return sorted(set(names_imported))


def release(name, out):
    """Write the students' version of an assignment to ``out/name/name.ipynb`` and return that path. Raises
    AssignmentError, before a folder is made."""
    text = json.dumps(strip(source(name)), indent=1, ensure_ascii=False)
    path = Path(out) / name / f"{name}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text + "\n")
    return path


def strip(raw):
    """A copy of a source notebook without solutions, hidden tests, model answers and outputs."""
    raw = copy.deepcopy(raw)
    for cell in raw["cells"]:
        source, marks = "".join(cell["source"]), cell["metadata"].get("nbgrader", {})
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
            source = without(source, "SOLUTION", STUB)
            source = without(source, "HIDDEN TESTS")
        elif marks.get("solution"):
            source = ANSWER
        cell["source"] = source.splitlines(keepends=True)
    return raw


def without(source, words, instead=()):
    """The source of a cell with the lines ``instead`` in place of each region between ### BEGIN words and ### END words."""
    lines, indent = [], None
    for line in source.split("\n"):
        mark = re.match(rf"(\s*)### (BEGIN|END) {words}\s*$", line)
        if mark and (mark[2] == "BEGIN") == (indent is None):
            if mark[2] == "BEGIN":
                indent = mark[1]
                lines += [indent + new for new in instead]
            else:
                indent = None
        elif mark:
            raise AssignmentError(f"A region {words} begins or ends twice: {line.strip()}.")
        elif indent is None:
            lines.append(line)
    if indent is not None:
        raise AssignmentError(f"A region {words} does not end.")
    return "\n".join(lines).rstrip("\n")
