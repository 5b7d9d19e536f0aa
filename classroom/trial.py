"""A dry run for teachers: ten imaginary students hand in, and everything runs from release to export."""

import ast
import copy
import json
import re
import shlex
import zipfile
from dataclasses import asdict
from pathlib import Path

from classroom import Problem, assignment, marks, tasks, variants
from classroom.files import write_json
from classroom.names import name_for_people
from classroom.own import cells_of
from helpers.checks.core import evaluate
from helpers.store.files import write_whole

STUDENTS = {  # name -> what the person hands in
    "Rita Right": "solved everything, in ways of her own",
    "Carl Copy": "took Rita's functions and wrote answers of his own",
    "Pia Public": "took the course's own solutions, which are public",
    "Wim Wrong": "made mistakes that people make",
    "Hal Half": "solved the first half",
    "Emil Empty": "handed in the notebook as it was",
    "Lena Loop": "wrote a loop that never ends and left its process in another task",
    "Theo Typo": "has a cell that is not Python",
    "Dora Damaged": "handed in half a file",
    "Nora Neighbour": "handed in Rita's file",
}


class TrialError(Problem):
    """One sentence: why there is no dry run."""


def run(name, out, command):
    """Release ``name`` to ten imaginary students, hand in for them, grade, report and export, all below the new folder
    ``out``. ``command(arguments)`` runs a command of ``python -m classroom`` and returns its exit status, as this does.
    Raises AssignmentError, TrialError."""
    if assignment.load(name).file:
        raise TrialError("A dry run is of one of the course's assignments, whose usual mistakes are known. In your own "
                         "notebook release tries the solutions and what is handed out.")
    out = Path(out)
    if out.exists() and any(out.iterdir()):
        raise TrialError(f"{out} is there already and not empty: name another folder, as in "
                         f"python -m classroom try {name} trial2.")
    listed, graded = out / "handout" / f"{name}-variants.json", out / "graded"
    # nobody's secret, and the same variants every time: by chance so many may have one that no two look alike
    write_json(listed, asdict(variants.Variants(name, "trial", bytes(16).hex())))
    write_whole(out / "students.txt", "\n".join(STUDENTS) + "\n")

    def say(arguments):
        print(f"\n$ python -m classroom {shlex.join(map(str, arguments))}", flush=True)
        return command([*map(str, arguments)])

    if status := say(["release", name, out / "handout", "--variant", "trial", "--students", out / "students.txt"]):
        return status
    hand_in(name, variants.read(listed), out / "handout", out / "submissions.zip")
    print(f"\nTen imaginary students handed in {out / 'submissions.zip'}, as a platform would give it:")
    print("\n".join(f"  {student:15} {words}" for student, words in STUDENTS.items()))
    if status := say(["grade", name, out / "submissions.zip", graded, "--variants", listed,
                      "--cell-seconds", 2, "--call-seconds", 1]):
        return status
    mark(graded)
    print(f"\nThe written answers in {graded / marks.SHEET} got some points, as you would give them in a spreadsheet.")
    if status := say(["feedback", graded]):
        return status
    print(f"\nLook at {graded / 'class.html'} first, then at a student's page in {graded / 'feedback'}, at "
          f"{graded / 'copies.html'} and at {graded / 'grades.csv'}. Delete {out} when you have seen enough.")
    return 0


def hand_in(name, given, handout, path):
    """Write a zip like Moodle's with what the STUDENTS hand in."""
    def released(student):
        return json.loads((handout / name / name_for_people(student) / f"{name}.ipynb").read_text(encoding="utf-8"))

    def own(student, change=lambda function, code, details: code, words=""):
        raw = json.loads((handout / f"{name}-solutions" / given.file_of(student)).read_text(encoding="utf-8"))
        return solved(raw, given.details[given.students[student]], change,
                      words or f"An answer as {student} would write it, in words that nobody else has chosen.")

    books = {student: released(student) for student in STUDENTS}
    functions = list(tasks.tasks_of(name))
    numpy = "import numpy" in json.dumps(assignment.source(name)["cells"])
    books["Rita Right"] = own("Rita Right", lambda function, code, _: rewritten(code, numpy))
    books["Nora Neighbour"] = books["Rita Right"]
    books["Carl Copy"] = own("Carl Copy", lambda function, *_: function_in(books["Rita Right"], function))
    public = solved(assignment.source(name), {})
    books["Pia Public"] = own("Pia Public", lambda function, *_: function_in(public, function), PUBLIC)
    books["Wim Wrong"] = own("Wim Wrong", lambda function, code, details: mistaken(name, function, code, details))
    stub = {function: function_in(released("Hal Half"), function) for function in functions}
    half = functions[:len(functions) // 2]
    books["Hal Half"] = own("Hal Half", lambda function, code, _: code if function in half else stub[function])
    books["Lena Loop"] = own("Lena Loop", lambda function, code, _: {
        functions[0]: _with_body(code, "while True:\n    pass"), functions[1]: _with_body(code, "import os\nos._exit(0)"),
    }.get(function, code))
    books["Theo Typo"] = own("Theo Typo", lambda function, code, _: code.replace(":", "", 1) if function == functions[-1]
                                else code)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, (student, raw) in enumerate(books.items(), 101):
            text = json.dumps(raw, ensure_ascii=False, indent=1)
            text = text[:len(text) // 2] if student == "Dora Damaged" else text
            archive.writestr(f"{student}_{number}_assignsubmission_file_/{name}.ipynb", text)


PUBLIC = object()  # the model answers of the source
SLIPS = (  # in a solution, that checkers know as mistakes: a pattern, and what takes its place
    (r"(axis|dim)=-1", r"\1=0"), (r" [-/] ", " * "), (r" \+ ", " - "), (r"(np|torch)\.sqrt\(", "("), (r"\.T\b", ""),
    (r" [&|] (~?\([^()]*\)|\w+)(\[:, :, None\])?", ""), (r" <= ", " < "), (r" < ", " <= "), (r" \* ", " + "),
    (r"return (\w+)$", r"return [1 - x for x in \1]"), (r"return (\w+)$", r"return [[100 * x for x in row] for row in \1]"),
    (r"return ", "return -"), (r"return ", "return ~"), (r"return (.*), (.*)", r"return \2, \1"), (r"\[([^]]*)\]$", ""))


def solved(raw, details, change=lambda function, code, details: code, words=PUBLIC):
    """A student's copy of a source notebook with its solutions; ``change(function, code, details)`` gives the code that
    stands in the cell of each function, ``words`` the written answers."""
    raw = copy.deepcopy(raw)
    for cell, source, grading in cells_of(raw):
        if cell["cell_type"] != "code":
            if grading.get("solution"):
                cell["source"] = assignment.without_rubric(source)[0] if words is PUBLIC else words
            continue
        source = assignment.without(source, "HIDDEN TESTS")
        source = re.sub(r"\n *### (BEGIN|END) SOLUTION.*", "", source)
        if grading.get("solution"):
            function = ast.parse(source).body[-1].name
            source = change(function, source, details.get(function))
        cell.update(source=source, outputs=[], execution_count=None)
    return raw


def function_in(raw, name):
    """The source of the cell that defines a function."""
    return next(source for cell, source, _ in cells_of(raw) if cell["cell_type"] == "code" and f"def {name}(" in source)


def rewritten(code, numpy):
    """The same function with other operations: a product by a call, x · (1/y) for x / y, x + (-y) for x - y.
    ``numpy``: whether its notebook imports NumPy."""
    tree = _OtherOperations("np" if numpy and "torch." not in code else "torch").visit(ast.parse(code))
    return ast.unparse(ast.fix_missing_locations(tree))


class _OtherOperations(ast.NodeTransformer):
    def __init__(self, library):
        self.library = library

    def visit_BinOp(self, node):
        self.generic_visit(node)
        left, right = node.left, node.right
        if isinstance(node.op, ast.MatMult):
            return ast.Call(ast.parse(f"{self.library}.matmul", mode="eval").body, [left, right], [])
        if isinstance(node.op, ast.Div):
            return ast.BinOp(left, ast.Mult(), ast.BinOp(ast.Constant(1), ast.Div(), right))
        if isinstance(node.op, ast.Sub):
            return ast.BinOp(left, ast.Add(), ast.UnaryOp(ast.USub(), right))
        return node


def mistaken(name, function, code, details):
    """``code`` with the first small change that the checker of the task knows as a mistake; as it is if there is none."""
    exercise = tasks.tasks_of(name)[function].variant(details).exercise
    space = {}
    exec("import math\nimport numpy as np\n"
         "from helpers import attention, embeddings\nfrom helpers.attention import *", space)
    if "torch" in code or "F." in code:
        exec("import torch\nfrom torch.nn import functional as F", space)
    forecasts = isinstance(exercise, tasks.Forecasts)
    places = [(place, instead) for slip, instead in SLIPS for place in re.finditer(slip, code, re.MULTILINE)]
    for place, instead in places:
        changed = code[:place.start()] + place.expand(instead) + code[place.end():]
        try:
            exec(changed, space)
            judged = exercise.evaluate(space[function]) if forecasts else evaluate(exercise, space[function], seconds=2)
            if judged.misconception:
                return changed
        except Exception:
            continue
    return code


def _with_body(code, body):
    tree = ast.parse(code)
    tree.body[-1].body = ast.parse(body).body
    return ast.unparse(tree)


def mark(graded):
    """Give half of the points to every written answer in the sheet. What could not be judged stays open."""
    rows = marks.read_csv(graded / marks.SHEET)
    for row in rows:
        if not row["item"].startswith("test-") and row["item"] != marks.EVERYTHING:
            row["points"] = 0 if row["text"].startswith("(no answer") else f"{float(row['most']) / 2:g}"
    marks.write_rows(graded / marks.SHEET, rows)
