"""What an assignment asks, read from its source notebook in nbgrader's layout; and its release to students."""

import ast
import copy
import functools
import hashlib
import json
import re
from dataclasses import dataclass, field
from pathlib import Path

from classroom import Problem, code_cells, own, tasks
from classroom.files import write_json
from classroom.sandbox import ROOT, Limits

SOURCES = ROOT / "notebooks" / "assignments" / "source"
STUB = ("# YOUR CODE HERE", "raise NotImplementedError()")
ANSWER = "YOUR ANSWER HERE"


class AssignmentError(Problem):
    """One sentence: what is wrong with the assignment's name or its source."""


@dataclass(frozen=True)
class Test:
    """A test cell. ``grade_id`` names the function and the part of its probes: see tasks.find; in a teacher's own notebook
    ``names`` are those of the solution that it mentions, and ``words`` what people call it."""

    grade_id: str
    points: float
    names: tuple = ()
    words: str = ""

    @property
    def function(self):
        return self.names[0] if self.names else self.grade_id.removeprefix("test-").partition("-")[0]


@dataclass(frozen=True)
class Question:
    """A written answer, marked by a person. ``words``: the question, in short; ``text``: the question; ``model``: an answer
    with full points; ``rubric``: pairs (points, what they are for); ``handed_out``: what stands in its cell before anybody
    writes; ``task``: whether the answer is in cells that students add, as in nbgrader's tasks."""

    grade_id: str
    points: float
    words: str
    text: str = ""
    model: str = ""
    rubric: tuple = ()
    handed_out: str = ANSWER
    task: bool = False


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
    file: str = ""  # of a teacher's own notebook

    @property
    def points(self):
        return sum(item.points for item in (*self.tests, *self.questions))

    def notebook(self):
        """The teacher's own notebook, with the details of the variant."""
        return source(self.file, next(iter(self.details.values()), None))

    @functools.cached_property
    def own_tests(self):
        """Id of a test in the teacher's own notebook -> what judges it."""
        return {grade_id: exercise for grade_id, *_, exercise in own.tests_of(self.notebook(), strip)}

    @functools.cached_property
    def handed_out(self):
        """The sources of the cells of a teacher's own notebook as students get it."""
        return {source.strip() for _, source, _ in own.cells_of(strip(self.notebook()))} if self.file else set()

    def task(self, test):
        if self.file:
            return tasks.Task(self.own_tests[test.grade_id])
        return tasks.find(self.name, test.grade_id, self.details.get(test.function))


def names():
    """The assignments there are."""
    return sorted(path.parent.name for path in SOURCES.glob("*/*.ipynb") if path.stem == path.parent.name)


def load(name, details=None):
    """The ``Assignment`` called ``name``, with the ``details`` of a variant: function -> its details. Raises
    AssignmentError."""
    raw, mine = source(name, next(iter((details or {}).values()), None)), tasks.is_own(name)
    tests, questions, import_cells, heading, asked = [], [], [], "", []
    for (cell, text, marks), (_, handed_out, _) in zip(own.cells_of(raw), own.cells_of(strip(raw)), strict=True):
        if cell["cell_type"] == "markdown":
            heading, asked = (title, []) if (title := own.title(text)) else (heading, asked)
            asked.append(handed_out.replace(ANSWER, "").strip())
        if marks.get("grade") and marks.get("solution") or marks.get("task"):
            model, rubric = without_rubric(solution_of(text))
            questions.append(Question(marks["grade_id"], marks["points"], heading or marks["grade_id"],
                                      "\n\n".join(filter(None, asked)), model, rubric, handed_out,
                                      bool(marks.get("task"))))
        elif marks.get("grade") and not mine:
            tests.append(Test(marks["grade_id"], marks["points"]))
        elif cell["cell_type"] == "code" and marks.get("locked") and all(
                isinstance(node, ast.Import | ast.ImportFrom) for node in getattr(code_cells.parse(text), "body", [None])):
            import_cells.append(text)
    if mine:
        tests = [Test(grade_id, points, names, words)
                 for grade_id, points, words, names, _ in own.tests_of(raw, strip)]
    title, called = re.search(r"^# +(.+)$", "".join(raw["cells"][0]["source"]), re.MULTILINE), called_by(name)
    return Assignment(called, title[1] if title else called, tuple(tests), tuple(questions), tuple(import_cells),
                      details=details or {}, file=str(name) if mine else "")


def solution_of(text):
    """What stands between the marks of a solution, or of nbgrader's scheme for marking; all where there are none."""
    found = re.search(r"### BEGIN (SOLUTION|MARK SCHEME)\s*\n(.*?)^\s*### END", text, re.MULTILINE | re.DOTALL)
    return found[2] if found else text


def without_rubric(text):
    """A model answer, and its rubric: pairs (points, what they are for) of the lines "- 2 points: ..." at its end."""
    return own.RUBRIC.sub("", text).strip(), tuple((float(points), words) for points, words in own.RUBRIC.findall(text))


def fingerprint(name, *others):
    """A hash of what decides a grade besides the submission: the assignment, the code of classroom/ and helpers/ (grader,
    checkers, references), and ``others``. When it changes, what was graded before is graded again."""
    files = []
    for room in ("classroom", "helpers"):
        files += sorted((ROOT / room).rglob("*.py"))
    digest = hashlib.sha256(repr(others).encode() + path_of(name).read_bytes())
    for path in files:
        digest.update(path.relative_to(ROOT).as_posix().encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def called_by(name):
    """What an assignment is called: a teacher's own as its file, without the ending."""
    return Path(name).name.removesuffix(".ipynb")


def path_of(name):
    """The file of the source notebook: the course's, or a teacher's own, which is named with its ending. Raises
    AssignmentError."""
    if str(name).endswith(".ipynb"):
        if called_by(name) in names():
            raise AssignmentError(f"{name} has the name of one of the course's assignments: give your file another one.")
        if not re.fullmatch(r"[\w .-]{1,60}", called_by(name)):
            raise AssignmentError(f"{name}: the name of a notebook has 1 to 60 letters, digits, blanks, '.', '-' or '_'.")
        if not Path(name).is_file():
            raise AssignmentError(f"{name} does not exist.")
        return Path(name)
    if name not in names():
        raise AssignmentError(f"There is no assignment {name!r}; there are {', '.join(names())}, and your own notebooks, by "
                              "the name of their file, such as questions.ipynb.")
    return SOURCES / name / f"{name}.ipynb"


def template(name):
    """The source notebook, with solutions and hidden tests, and a teacher's own with ``{{name}}`` in it. Raises
    AssignmentError, OwnError."""
    path = path_of(name)
    try:
        raw = json.loads(path.read_bytes())
    except ValueError:
        raise AssignmentError(f"{path} is not a notebook: it is damaged, or another kind of file.") from None
    return own.with_marks(raw, called_by(name)) if tasks.is_own(name) else raw


def source(name, details=None):
    """The source notebook, with solutions and hidden tests; a teacher's own with the ``details`` of a variant, or the first
    ones. Raises AssignmentError, OwnError."""
    return own.with_values(template(name), details) if tasks.is_own(name) else template(name)


def imports(name):
    """The modules that the cells of the source notebook import, and what they take from these: ``helpers.plots``, which
    may be no module."""
    texts = [text for cell, text, _ in own.cells_of(source(name)) if cell["cell_type"] == "code"]
    trees = [code_cells.parse(code_cells.plain_python(text) or "") for text in texts]
    nodes = [node for tree in trees if tree for node in ast.walk(tree)]
    names_imported = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names_imported += [f"{node.module}{more}" for node in nodes if isinstance(node, ast.ImportFrom) and node.module
              for more in ("", *(f".{alias.name}" for alias in node.names))]
    return sorted(set(names_imported))


def release(name, out):
    """Write the students' version of an assignment to ``out/name/name.ipynb`` and return that path; of a teacher's own also
    the one with solutions, as nbgrader takes it, to ``out/name-solutions``. Raises AssignmentError, before it writes."""
    raw, called = source(name), called_by(name)
    books = {Path(out) / called / f"{called}.ipynb": strip(raw)}
    if tasks.is_own(name):
        books[Path(out) / f"{called}-solutions" / f"{called}.ipynb"] = raw
    for path, book in books.items():
        write_json(path, book, ensure_ascii=False)
    return next(iter(books))


def strip(raw):
    """A copy of a source notebook without solutions, hidden tests, model answers and outputs."""
    raw = copy.deepcopy(raw)
    for cell, source, marks in own.cells_of(raw):
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
            source, whole = without(source, "SOLUTION", STUB), source
            source = "\n".join(STUB) if marks.get("solution") and source == whole.rstrip("\n") else source
            source = without(source, "HIDDEN TESTS")
        elif marks.get("solution"):
            source, whole = without(source, "SOLUTION", (ANSWER,)), source
            source = ANSWER if source == whole.rstrip("\n") else source
        elif marks.get("task"):
            source = without(source, "MARK SCHEME")
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
