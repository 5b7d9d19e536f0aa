"""A teacher's own notebook as an assignment: solutions and hidden tests between nbgrader's marks, free answers, variants.

Hidden tests run here, outside of the sandbox, and never where a submission is: in their names, the functions and values of
the solution are the student's. So no submission can read a test, change one, or answer for it. What a page says of a test
is made of the teacher's words, the kind of a result and the student's own code, and never of an input.
"""

import ast
import contextlib
import copy
import inspect
import itertools
import os
import random
import re
from collections import Counter
from dataclasses import dataclass, field

import matplotlib
import numpy as np

from classroom import Problem, code_cells, wire
from classroom.sandbox import Slow, at_most
from classroom.tasks import Family, Scored, Task

POINTS = re.compile(r"^# *(\d+(?:\.\d+)?) points?(?:: *(\S.*?))? *$", re.MULTILINE)  # of a test, or of a part of it
RUBRIC = re.compile(r"^- (\d+(?:\.\d+)?) points?: (.+)$", re.MULTILINE)
ALONE = re.compile(r"^\**(\d+(?:\.\d+)?) points?\.?\** *$", re.MULTILINE)  # of a free answer without a rubric
LIKE_POINTS = re.compile(r"^[ \t]*(?:#|[-*+] ) *\d+(?:[.,]\d+)? *(?:[^\W\d_]+\.? *(?::.*)?|points?\b.*)$",
                         re.MULTILINE | re.IGNORECASE)  # a number and a word, which may be meant for points
VARIANTS = re.compile(r"^### BEGIN VARIANTS$(.*?)^### END VARIANTS$", re.MULTILINE | re.DOTALL)
HOLE = re.compile(r"\{\{ *(\w+) *\}\}")
MOST_VARIANTS = 10_000
SECONDS = 10  # of CPU time, for a test, and for all other cells of the notebook together
TRAVELS = ("what travels to a submission and back are numbers, text, arrays, tensors, and lists, tuples, dicts and sets of "
           "them")


class OwnError(Problem):
    """One sentence: what is wrong with a teacher's notebook."""


# ---------------------------------------------------------------- the notebook


def with_marks(raw, name):
    """A copy of a teacher's notebook, in nbgrader's own form: each cell that asks or gives something has its metadata. Those
    that are there already stay. Raises OwnError."""
    if not isinstance(raw, dict) or not isinstance(raw.get("cells"), list) or raw.get("nbformat") != 4:
        raise OwnError(f"{name} is not a notebook of nbformat 4: open it in JupyterLab and save it again.")
    raw, uses, names = copy.deepcopy(raw), Counter(), []
    raw.setdefault("metadata", {})["attention_course"] = {"assignment": name}
    for number, cell in enumerate(raw["cells"], 1):
        source, metadata = "".join(cell["source"]), cell.setdefault("metadata", {})
        marks = metadata.get("nbgrader") or _marks(cell["cell_type"], source, number, names)
        if marks:
            grade_id = marks.get("grade_id") or f"cell-{number}"
            uses[grade_id] += 1
            marks["grade_id"] = grade_id if uses[grade_id] == 1 else f"{grade_id}-{uses[grade_id]}"
            metadata["nbgrader"] = {"grade": False, "locked": False, "solution": False, "task": False, "schema_version": 3,
                                    **marks}
        if cell["cell_type"] == "code":
            cell |= {"outputs": [], "execution_count": None}
            names += _names_in_order(source) if marks.get("solution") else []
    if not any(marks.get("grade") or marks.get("task") for *_, marks in cells_of(raw)):
        raise OwnError(f"{name} asks nothing: no cell has nbgrader's metadata, or the lines ### BEGIN SOLUTION and ### END "
                       "SOLUTION, with ### BEGIN HIDDEN TESTS and ### END HIDDEN TESTS in a cell below.")
    return raw


def cells_of(raw):
    """(cell, its source, what nbgrader's metadata say of it) of each cell of a teacher's notebook."""
    return [(cell, "".join(cell["source"]), cell["metadata"].get("nbgrader", {})) for cell in raw["cells"]]


def _marks(kind, source, number, names):
    """What nbgrader's metadata would say of a cell that has none, or {} where it is plain text. ``names``: the names that
    the solutions above it define."""
    solution = "### BEGIN SOLUTION" in source
    if kind == "markdown":
        if not solution:
            return {}
        _refuse_other_words(source, RUBRIC, "- 2 points: says why", number)
        points = [float(points) for points, _ in RUBRIC.findall(source)] or list(map(float, ALONE.findall(source)))
        if not points:
            raise OwnError(f"Cell {number} is a free answer without points: write lines such as '- 2 points: says why' "
                           "into its solution, or one with '2 points' alone.")
        return {"grade": True, "solution": True, "grade_id": "answer", "points": sum(points)}
    if kind != "code" or VARIANTS.search(source):
        return {}
    points = [float(points) for points, _ in POINTS.findall(source)]
    if solution and "### BEGIN HIDDEN TESTS" in source:
        raise OwnError(f"Cell {number} holds a solution and its hidden tests: put the tests into a cell below it.")
    if solution:
        name = next(iter(_names_in_order(source)), f"cell-{number}")
        return {"solution": True, "grade_id": _plain(name)} | ({"grade": True, "points": sum(points)} if points else {})
    is_test = points or "### BEGIN HIDDEN TESTS" in source or _of_the_course(source)
    if is_test or re.search("^assert ", source, re.MULTILINE):
        _refuse_other_words(source, POINTS, "# 2 points: what is tested", number)
    if is_test:
        if not points:
            raise OwnError(f"Cell {number} is a test without points: write a line such as # 2 points into it, or "
                           "# 2 points: what is tested, before each part.")
        tested = next((name for name in _mentions(_parsed(source, number)) if name in names), str(number))
        return {"grade": True, "locked": True, "grade_id": f"test-{_plain(tested)}", "points": sum(points)}
    return {"locked": True, "grade_id": f"given-{number}"}


def _refuse_other_words(source, known, example, number):
    """Raises OwnError at a line that looks like points and would count as none."""
    for line in LIKE_POINTS.finditer(source):
        if line[0].lstrip().startswith("#") == example.startswith("#") and not known.fullmatch(line[0]):
            raise OwnError(f"Cell {number}: a line with points is {example!r}, with the English word in any language, and "
                           f"here stands {line[0].strip()[:80]!r}: write points, or begin that line with another word.")


def _mentions(tree):
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    return [node.id for node in sorted(nodes, key=lambda node: (node.lineno, node.col_offset))]


def _plain(name):
    return re.sub(r"[^a-zA-Z0-9_-]", "-", name)


def _names_in_order(source):
    tree = code_cells.parse(source)
    return [name for node in (tree.body if tree else ()) for name in sorted(code_cells._given_by(node))]


def parameters(raw):
    """What changes from variant to variant, name -> list of values: from the cell between ### BEGIN VARIANTS and ### END
    VARIANTS, with a line ``name = [value, value]`` for each. Raises OwnError."""
    lists = {}
    for _, source, _ in cells_of(raw):
        if lines := VARIANTS.search(source):
            try:
                for node in ast.parse(lines[1]).body:
                    (target,), values = node.targets, ast.literal_eval(node.value)
                    if not isinstance(values, list | tuple) or len(values) < 2:
                        raise ValueError
                    lists[target.id] = list(values)
            except (SyntaxError, ValueError, AttributeError, TypeError):
                raise OwnError("Between ### BEGIN VARIANTS and ### END VARIANTS stand lines such as d_k = [4, 8, 16]: a "
                               "name and a list of at least two numbers or texts.") from None
    number = 1
    for values in lists.values():
        number *= len(values)
    if number > MOST_VARIANTS:
        raise OwnError(f"The variants have {number:,} combinations, and {MOST_VARIANTS:,} is the most.")
    return lists


def with_values(raw, details=None):
    """The notebook with the values of a variant in the places of ``{{name}}``, by default the first ones, and without the
    cell that lists them. Raises OwnError."""
    lists = parameters(raw)
    if not lists:
        return raw
    values = {name: those[0] for name, those in lists.items()} | (details or {})
    raw = copy.deepcopy(raw)
    raw["cells"] = [cell for cell, source, _ in cells_of(raw) if not VARIANTS.search(source)]
    for cell, source, _ in cells_of(raw):
        if strange := [name for name in HOLE.findall(source) if name not in values]:
            raise OwnError(f"{{{{{strange[0]}}}}} is not among the variants of the notebook, which are {', '.join(values)}.")
        cell["source"] = HOLE.sub(lambda hole: str(values[hole[1]]), source).splitlines(keepends=True)
    return raw


# ---------------------------------------------------------------- its tasks


class Parameters(Family):
    """The variants of a notebook: all its functions have the same details, and no solution is public."""

    public, shared = False, True

    @property
    def others(self):
        return [dict(zip(self.details, values, strict=True)) for values in itertools.product(*self.details.values())]


@dataclass(frozen=True)
class Part:
    """A part of a test cell. ``words``: what it tests, for the student; ``code``: its statements, compiled one by one."""

    points: float
    words: str
    code: tuple


@dataclass(frozen=True)
class Tests:
    """What stands in the place of an ``Exercise`` where a test cell of the teacher judges. ``names``: what it mentions of
    the solution, name -> the source of its cell as handed out; ``lines``: of the cell, None where they are hidden;
    ``first``: code that every part needs."""

    name: str
    names: dict
    lines: list
    first: tuple
    parts: tuple
    messages: dict = field(default_factory=dict)  # number of a line -> what its assert says, where that is plain text


def tests_of(raw, strip):
    """The tests of a notebook that has its values: a list of (id, points, heading, names, exercise) with an ``Exercise`` of
    the course or ``Tests``. ``strip``: gives a notebook as it is handed out. Raises OwnError."""
    tests, heading, stubs = [], "", {}
    for (cell, source, marks), (_, handed_out, _) in zip(cells_of(raw), cells_of(strip(raw)), strict=True):
        if marks.get("solution") and cell["cell_type"] == "code":
            stubs |= dict.fromkeys(_names_in_order(source), handed_out)
    for number, (cell, source, marks) in enumerate(cells_of(raw), 1):
        if cell["cell_type"] == "markdown":
            heading = title(source) or heading
        elif marks.get("grade") and not marks.get("solution"):
            grade_id = "test-" + marks["grade_id"].removeprefix("test-")
            if course := _of_the_course(source):
                tests.append((grade_id, marks["points"], heading, course[:1], course[1]))
                continue
            names = {name: stubs[name] for name in dict.fromkeys(_mentions(_parsed(source, number))) if name in stubs}
            tests.append((grade_id, marks["points"], heading, tuple(names), _tests(grade_id, source, names, number)))
    headings = Counter(words for _, _, words, *_ in tests)
    several, numbered = Counter(), []
    for grade_id, points, words, *rest in tests:
        several[words] += 1
        more = f", part {several[words]}" if words and headings[words] > 1 else ""
        numbered.append((grade_id, points, words + more, *rest))
    return numbered


def title(source):
    """The last heading of a text, without the points that it may name, or ""."""
    headings = re.findall(r"^#+ +(.+)$", _without_marks(source), re.MULTILINE)
    return re.sub(r" *(· |\()\d+(\.\d+)? points?\)?$", "", headings[-1]) if headings else ""


def _of_the_course(source):
    """(name of the function, ``Exercise``) of a cell with a line ``assert check(softmax)``, or ``judge(...)`` as in the
    course's own assignments; () where there is none. Raises OwnError."""
    from classroom import tasks
    from helpers import checks
    for node in ast.walk(code_cells.parse(_without_marks(source)) or ast.Module([], [])):
        if not isinstance(node, ast.Call) or code_cells.name_of(node.func) not in ("check", "judge") or not node.args:
            continue
        if isinstance(node.args[0], ast.Constant):
            raise OwnError(f"{ast.unparse(node)}: name the function itself, without quotes.")
        if isinstance(node.args[0], ast.Name):
            name, *more = [getattr(arg, "value", None) for arg in node.args[1:]] or [None]
            try:
                if code_cells.name_of(node.func) == "check":
                    return node.args[0].id, checks.exercise(name or node.args[0].id)
                test = "-".join(["test", node.args[0].id, *more])
                return node.args[0].id, tasks.find(name, test).exercise
            except (KeyError, ImportError, TypeError) as error:
                raise OwnError(f"{ast.unparse(node)}: {error.args[0] if error.args else error}") from None
    return ()


def _without_marks(source):
    return re.sub(r"^[ \t]*### (BEGIN|END) .*$", "", source, flags=re.MULTILINE)


def _parsed(source, number):
    try:
        return ast.parse(_without_marks(source))
    except (SyntaxError, ValueError) as error:
        raise OwnError(f"Cell {number}, a test, is not Python: {getattr(error, 'msg', error)}, in line "
                       f"{getattr(error, 'lineno', 1)}.") from None


def _tests(name, source, names, number):
    """The ``Tests`` in the source of a cell, whose parts begin at lines with points."""
    tree, lines, hidden, visible = _parsed(source, number), source.split("\n"), False, []
    if gone := [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Del)]:
        raise OwnError(f"Cell {number}, a test, deletes {gone[0]}: it runs outside of the submission, whose functions find "
                       "each other all the same. Leave that test out, or ask for it in a free answer.")
    for line in lines:
        hidden = not line.strip().startswith("### END HIDDEN") and (hidden or line.strip().startswith("### BEGIN HIDDEN"))
        visible.append(None if hidden else line)
    starts = [(n, match) for n, line in enumerate(lines, 1) if (match := POINTS.match(line))]
    starts = starts if len(starts) > 1 else [(0, starts[0][1] if starts else None)]

    def code(first, last):
        return tuple(compile(ast.Module([node], []), f"<{name}>", "exec") for node in tree.body
                     if first < node.lineno <= last)

    ends = [n for n, _ in starts[1:]] + [len(lines)]
    parts = tuple(Part(float(match[1]) if match else 1.0, (match[2] if match else None) or "", code(n, end))
                  for (n, match), end in zip(starts, ends, strict=True))
    messages = {node.lineno: node.msg.value for node in ast.walk(tree) if isinstance(node, ast.Assert)
                and isinstance(node.msg, ast.Constant) and isinstance(node.msg.value, str)}
    return Tests(name, names, visible, code(0, starts[0][0]), parts, messages)


def tasks_of(raw, strip):
    """Name of the function -> ``Task``: the first one of each, for its variants."""
    lists = parameters(raw)
    family = Parameters(lists, lambda **details: None, lambda **details: {}) if lists else None
    return {(names or (grade_id,))[0]: Task(exercise, family=family)
            for grade_id, _, _, names, exercise in reversed(tests_of(with_values(raw), strip))}


# ---------------------------------------------------------------- where its tests run


class Room:
    """Where the tests of one submission run, one after the other as in the notebook, after the teacher's other cells.
    ``student``: name and what the solution has under it -> what stands for the student's; ``where``: name of a function and
    its error -> at which line of the student's, in words. Raises OwnError."""

    def __init__(self, raw, student, where):
        self.student, self.where, self.calls, self.trace, self.passed = student, where, [], "", []
        self.space = {"__name__": "__main__", "display": lambda *things, **more: None, "get_ipython": lambda: None}
        matplotlib.use("Agg")  # a figure of the teacher's opens no window
        code = [(number, source, marks) for number, (cell, source, marks) in enumerate(cells_of(raw), 1)
                if cell["cell_type"] == "code"]
        for number, source, marks in code:
            if marks.get("grade") and not marks.get("solution"):
                continue
            try:
                with _quiet(), at_most(SECONDS):
                    exec(compile(code_cells.plain_python(source) or "", f"<cell {number}>", "exec"), self.space)
            except Slow:
                raise OwnError(f"Cell {number} takes more than {SECONDS} seconds, and runs again for every submission: keep "
                               "slow work out of this notebook.") from None
            except (Exception, SystemExit) as error:
                raise OwnError(f"Cell {number} stops with {_in_words(error)}: with its solutions the notebook has to run "
                               "from top to bottom.") from None
        solved = {name for _, source, marks in code if marks.get("solution") for name in code_cells.names_of(source)}
        self.solution = {name: self.space.pop(name) for name in solved if name in self.space
                         and not inspect.ismodule(self.space[name])}
        functions = code_cells.definitions(source for _, source, _ in code)
        self.nothing = {name for name, places in functions.items() if not _gives_back(places[-1][1])}
        self.space |= {name: self._function(name, solution) for name, solution in self.solution.items()
                       if callable(solution) and not inspect.isclass(solution)}

    def _function(self, name, solution):
        def call(*args, **named):
            for value in (*args, *named.values()):
                if not _goes(wire.encode(value)):
                    raise TypeError(f"the test gives {name} a value of the kind {type(value).__name__}; {TRAVELS}")
            self.calls.append([name, "nothing", None])
            try:
                value = remote(*args, **named)
            except Exception as error:
                self.calls[-1][2] = error
                raise
            self.calls[-1][1] = "" if value is None and name in self.nothing else kind_of(value)
            return value

        remote = self.student(name, solution)
        call.__name__ = name
        return call

    def judge(self, tests, seed):
        """The ``Scored`` outcome of a test cell; ``trace`` says of the last failure what only the teacher may read. What
        cannot be judged is raised, and ``passed`` holds each ``Part`` that passed until then."""
        for name in tests.names:
            if inspect.isclass(self.solution.get(name)):
                raise OwnError(f"{tests.name} tests {name}, a class, and {TRAVELS}. Ask for a function that makes one and "
                               "calls it, and test that.")
            if name in self.solution and name not in self.space:
                self.space[name] = self.student(name, self.solution[name])
        self.trace, self.passed, whys, earlier = "", [], [], ""
        random.seed(seed)
        np.random.seed(seed % 2**32)
        before = self._why(tests, tests.first)
        for part in tests.parts:
            why = self._why(tests, part.code, earlier) if before is None else before
            earlier = earlier or why or ""
            whys.append(why)
            self.passed += [part] if why is None else []
        earned, most = sum(p.points for p, why in zip(tests.parts, whys, strict=True) if why is None), sum(
            p.points for p in tests.parts)
        share = earned / most if most else float(not any(whys))
        if share == 1:
            words = "Your code passes every test of this question."
            return Scored(tests.name, "passed", None, words + _listed(tests, whys), 1.0)
        stopped = next((why for why in whys if why), "")
        if len(tests.parts) == 1:
            return Scored(tests.name, "wrong", None, f"A test of this question does not pass. {stopped}".strip(), 0.0)
        passed = sum(why is None for why in whys)
        words = f"{passed} of {len(whys)} tests of this question {'passes' if passed == 1 else 'pass'}."
        return Scored(tests.name, "partly" if share else "wrong", None, words + _listed(tests, whys), share)

    def _why(self, tests, code, earlier=""):
        """Run a part: None where it passes, or why it does not, in words that a student may read. All of it runs, since what
        it defines may be needed by the next; ``earlier``: why an earlier part did not pass."""
        whys = []
        self.calls.clear()
        with _quiet(), at_most(SECONDS):
            for statement in code:
                try:
                    exec(statement, self.space)
                except (Exception, SystemExit) as error:
                    whys.append(self._words(tests, error, earlier or next(iter(whys), "")))
        return whys[0] if whys else None

    def _words(self, tests, error, earlier):
        line = _line_of(error, tests.name)
        self.trace = self.trace or f"line {line}: {_in_words(error)}"
        name, kind, stopped = self.calls[-1] if self.calls else ("", "", None)
        if stopped is not None and stopped is error:
            return f"{name} stopped with {type(error).__name__}{self.where(name, error)}."
        words = tests.messages.get(line, "") if isinstance(error, AssertionError) else ""
        if kind != "None" and line <= len(tests.lines) and (seen := tests.lines[line - 1]):
            words = words or f"It is this one, which you can run yourself: {seen.strip()}"
        if isinstance(error, NameError) and earlier:  # what stopped before gave it no value
            return earlier
        if kind == "None":
            return f"{name} gives back None: its last line needs a return. {words}".strip()
        if not isinstance(error, AssertionError) and name and kind and not words:
            return f"The test cannot use what {name} gives back, {kind}."
        return words


def _listed(tests, whys):
    """The parts, one a line; what is wrong with several alike is said once."""
    if len(tests.parts) == 1:
        return ""
    return "".join(f"\n{'✓' if why is None else '✗'} {part.points:g} {'point' if part.points == 1 else 'points'}: "
                   f"{part.words or 'a test'}" + (f". {why}" if why and why not in whys[:number] else "")
                   for number, (part, why) in enumerate(zip(tests.parts, whys, strict=True)))


def kind_of(value):
    """What a value is, in one of a few words, so that no input can hide in them."""
    kinds = {bool: "True or False", int: "a number", float: "a number", complex: "a number", str: "a text", list: "a list",
             tuple: "a tuple", dict: "a dict", set: "a set", np.ndarray: "an array", type(None): "None"}
    if type(value).__name__ == "Tensor":
        return "a tensor"
    return "a number" if isinstance(value, np.generic) else kinds.get(type(value), "something of another kind")


def _gives_back(function):
    """Whether a function, as a syntax tree, gives back more than None."""
    return any(isinstance(node, ast.Yield | ast.YieldFrom) or isinstance(node, ast.Return) and node.value
               and not (isinstance(node.value, ast.Constant) and node.value.value is None) for node in ast.walk(function))


def _goes(form):
    inside = form.get("tuple") or form.get("list") or form.get("set") or [
        one for pair in form.get("dict", ()) for one in pair]
    return not {"other", "large"} & set(form) and all(map(_goes, inside))


def _line_of(error, name):
    lines, trace = [0], error.__traceback__
    while trace:
        if trace.tb_frame.f_code.co_filename == f"<{name}>":
            lines.append(trace.tb_lineno)
        trace = trace.tb_next
    return lines[-1]


def _in_words(error):
    return f"{type(error).__name__}: {error}".split("\n")[0][:300].rstrip(": ")


@contextlib.contextmanager
def _quiet():
    """Meanwhile nothing is printed: a test may print its input."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere, contextlib.redirect_stdout(nowhere), \
            contextlib.redirect_stderr(nowhere):
        yield
