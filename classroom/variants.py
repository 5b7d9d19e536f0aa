"""Variants of an assignment: other details in its tasks, the same for a whole class or others for each student.

Which details a student gets follows from a key that only the teacher's list holds: the same student always gets the
same, and nobody can tell another's. What may change in a task is said by its ``Family`` in tasks/.
"""

import copy
import hashlib
import hmac
import json
import re
import secrets
import sys
import textwrap
from dataclasses import asdict, dataclass, field
from difflib import get_close_matches
from pathlib import Path

from classroom import Problem, assignment, progress_bar, tasks
from classroom.files import write_json
from classroom.names import key_of, name_for_people, words_of
from classroom.own import cells_of
from classroom.sandbox import ROOT
from helpers.checks.core import evaluate

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

NAME = re.compile(r"[\w.-]{1,60}")


class VariantError(Problem):
    """One sentence: what is wrong with the name of a variant, the list of students, or the teacher's list."""


@dataclass
class Variants:
    """The teacher's list. ``details``: code of a variant, which the notebook carries -> function -> its details;
    ``students``: whose it is, student -> code; empty when one variant was given to everybody; ``sheets``: what of the right
    answers takes seconds to compute, code -> function -> a ``Family``'s sheet, "" for the course's own."""

    assignment: str
    variant: str
    key: str
    details: dict = field(default_factory=dict)
    students: dict = field(default_factory=dict)
    sheets: dict = field(default_factory=dict)

    def give(self, student="", private=None):
        """The code of the variant of a student, or of the class. A new one is drawn among the details that fewest have, and
        among the teacher's own, ``private``: function -> list of them."""
        code = f"{self.variant}-{self._digest(words_of(student))[:8]}" if student else self.variant
        if code not in self.details:
            self.details[code], shared = {}, None
            for function, task in tasks.tasks_of(self.assignment).items():
                given, mine = [details.get(function, {}) for details in self.details.values()], {}
                if family := task.family:
                    mine = self._rare(code, function, family.others, [family.listed(_public(one)) for one in given])
                    if family.shared:
                        mine = shared = shared or mine | {name: self._digest(code, name) for name in family.keyed}
                if own := (private or {}).get(function):
                    mine = mine | {"private": self._rare(code, function, own, [one.get("private") for one in given])}
                if mine:
                    self.details[code][function] = mine
        if student:
            self.students[student] = code
        return code

    def _rare(self, code, function, values, given):
        """One of those ``known`` that are rarest among the ``given``."""
        counts = [given.count(one) for one in values]
        rare = [one for one, count in zip(values, counts, strict=True) if count == min(counts)]
        return rare[int(self._digest(code, function), 16) % len(rare)]

    def file_of(self, student=""):
        """The name of the teacher's copy with solutions."""
        return f"{name_for_people(student) if student else self.variant}.ipynb"

    def given(self):
        """Function -> the details with which somebody has it, with their sheets: those given out, and the course's own."""
        tasks_by_name, everybody = tasks.tasks_of(self.assignment), [("", self._own()), *self.details.items()]
        return {function: list({str(details[function]): details[function] | self._sheet(code, function)
                                for code, details in everybody if function in details}.values())
                for function, task in tasks_by_name.items()
                if task.family or any(function in details for details in self.details.values())}

    def _own(self):
        return {function: task.own for function, task in tasks.tasks_of(self.assignment).items()
                if not task.family or task.family.public}

    def _sheet(self, code, function):
        return {"sheet": sheet} if (sheet := self.sheets.get(code, {}).get(function)) else {}

    def compute_sheets(self, shown=True):
        """Compute the sheets that the list does not hold yet: seconds for each variant. ``shown``: with a bar."""
        families = {function: task.family for function, task in tasks.tasks_of(self.assignment).items()
                    if task.family and task.family.sheet}
        everybody = {"": self._own(), **self.details} if families else {}
        missing = [code for code in everybody if code not in self.sheets]
        with progress_bar("Computing the sheets of answers", len(missing), shown) as bar:
            for code in missing:
                sheets = {function: family.sheet(**_public(everybody[code][function]))
                          for function, family in families.items() if function in everybody[code]}
                self.sheets[code] = json.loads(json.dumps(sheets))  # as it is read again
                bar.update()

    def _digest(self, *words):
        what = assignment.called_by(self.assignment), self.variant, *words
        return hmac.new(bytes.fromhex(self.key), repr(what).encode(), hashlib.sha256).hexdigest()

    def find(self, student, carried, mine="", free=True):
        """(code, flag) for what a student handed in, whose notebook says ``carried``: the variant by which to grade it,
        or None if it cannot be told, and one sentence for the teacher, or "". ``mine``: the code of the student's own
        variant, if it is known who that is; ``free``: whether nobody else has handed in what this notebook carries."""
        says = f"carries the variant {carried[:80]!r}" if carried else "carries no variant"
        if not self.students:
            same = carried == self.variant
            return self.variant, "" if same else f"the notebook {says}; it was graded as {self.variant!r}"
        owner = next((name for name, code in self.students.items() if code == carried), None)
        if mine:
            whose = f", which is {owner}'s" if owner else ", which nobody was given" if carried else ""
            return mine, "" if carried == mine else f"the notebook {says}{whose}; it was graded as this student's own"
        if owner and free:
            return carried, f"nobody called {student} is on the list of variants; the notebook carries {owner}'s"
        which = (f", which is {owner}'s, who handed in as well" if owner else ", which the list does not know" if carried
                 else "")
        return None, f"The notebook {says}{which}, and nobody called {student} is on the list."

    def whose(self, function, details):
        """In words: who was given these details of a function."""
        task = tasks.tasks_of(self.assignment)[function]
        if details == task.own and (not task.family or task.family.public):
            return "the course's own, whose solution is public"
        names = [name for name, code in self.students.items() if self.details[code].get(function) == details]
        return f"that of {'; '.join(names[:3])}" + (f" and {len(names) - 3} others" if len(names) > 3 else "")


def read(path, name=""):
    """The ``Variants`` in a file that ``release`` wrote; ``name``: the assignment, where it is a teacher's own notebook.
    Raises VariantError."""
    try:
        raw = json.loads(Path(path).read_text(encoding="utf-8"))
        if name and raw["assignment"] == assignment.called_by(name):
            raw["assignment"] = str(name)
        elif name and str(raw["assignment"]) not in assignment.names():
            raise VariantError(f"{path} is a list of variants of {raw['assignment']}, and not of {name}.")
        listed = Variants(**{name: raw[name] for name in ("assignment", "variant", "key", "details", "students")},
                         sheets=raw.get("sheets", {}))  # which lists of earlier versions lack
        known_tasks = tasks.tasks_of(listed.assignment)
        bytes.fromhex(listed.key)
        good = all(family.listed(_public(details)) in family.others if (family := known_tasks[function].family) else
                   not _public(details)
                   for given in listed.details.values() for function, details in given.items())
        for details in (details for given in listed.details.values() for details in given.values() if "private" in details):
            compile(details["private"]["first"], "<private>", "exec")
            good = good and isinstance(details["private"]["text"], str)
        good = good and set(listed.students.values()) <= set(listed.details)
        for function, given in listed.given().items():
            for details in given:
                known_tasks[function].variant(details)
    except OSError as error:
        raise VariantError(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, TypeError, KeyError, AttributeError, assignment.AssignmentError, SyntaxError):
        good = False
    if not good:
        raise VariantError(f"{path} is not a list of variants, or one of another version of the course: give the file "
                           "ending in -variants.json that release wrote.")
    return listed


def _public(details):
    """Details without what is the teacher's alone: lines of their own, and the sheet of answers."""
    return {name: value for name, value in details.items() if name not in ("private", "sheet")}


def read_private(path, name):
    """The teacher's own details in a TOML file: function -> list of {"text", "first"}. Each is tried out: with it the
    public solution is wrong, and the solutions as ``render`` writes them pass every test. Raises VariantError."""
    path, known_tasks = Path(path), tasks.tasks_of(name)
    if tasks.is_own(name):
        raise VariantError("--private is for the course's assignments; in your own notebook everything is yours.")
    if ROOT in path.resolve().parents:
        raise VariantError(f"{path} is inside the course's folder, from where it may be published: keep it elsewhere.")
    try:
        private = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:  # not TOML, or not UTF-8
        raise VariantError(f"{path} cannot be read as TOML: {error}.") from None
    if not private:
        raise VariantError(f"{path} has no entry: it begins with [[{next(iter(known_tasks))}]] or another function of "
                           f"{name}.")
    for function, entries in private.items():
        if function not in known_tasks:
            near = get_close_matches(function, known_tasks, 1)
            raise VariantError(f"{path}: {name} has no function {function!r}" + (
                f"; did you mean {near[0]}?" if near else f"; it has {', '.join(known_tasks)}."))
        private[function] = entries if isinstance(entries, list) else [entries]
        for number, entry in enumerate(private[function], 1):
            try:
                _hold(name, function, entry)
            except VariantError as error:
                raise VariantError(f"{path}, [[{function}]] number {number}: {error}") from None
    return private


def _hold(name, function, entry):
    """Raises VariantError unless this is a detail of the teacher's own that works and that changes something."""
    if not isinstance(entry, dict) or entry.keys() != {"text", "first"} or not all(
            isinstance(value, str) and value.strip() for value in entry.values()):
        raise VariantError("an entry has two texts in quotes and no more, text (for the student) and first (lines of Python "
                           "that change the arguments).")
    try:
        compile(textwrap.dedent(entry["first"]).strip("\n"), "first", "exec")
    except (SyntaxError, ValueError) as error:
        line, words = getattr(error, "lineno", 1), getattr(error, "msg", error)
        raise VariantError(f"first is not Python, line {line} ({words}).") from None
    task = tasks.tasks_of(name)[function]
    try:
        exercise = task.variant({"private": entry}).exercise
        same = any(evaluate(exercise, task.exercise.reference, seed) for seed in range(3))
        _try_out(name, {function: task.own | {"private": entry}})
    except Exception as error:
        words = f"{type(error).__name__}: {error}".split("\n")[0][:300]
        raise VariantError(f"the solutions with it do not pass ({words}). Another function that uses this one may need the "
                           "same change.") from None
    if same:
        raise VariantError("it changes too little: the public solution still passes.")


def _try_out(name, details):
    """Run the functions and the tests, hidden ones too, of the solutions with these details."""
    space = {"__name__": "__main__", "display": lambda *_: None}
    for cell, source, marks in cells_of(render(assignment.source(name), name, details)):
        if cell["cell_type"] == "code" and (marks.get("solution") or marks.get("grade") or "import " in source):
            exec(source, space)


def release(name, out, variant, students=(), private=None):
    """Write an assignment in a variant of its own to ``out``: for everybody ``name/name.ipynb``, or with ``students``
    (names) ``name/STUDENT/name.ipynb`` for each. For the teacher ``name-variants.json``, the list, and ``name-solutions/``,
    a notebook with solutions for each. ``private``: what ``read_private`` read.
    Returns the path of the list. Given again with the same ``out`` and ``variant``, everybody keeps their variant.
    Raises AssignmentError, VariantError."""
    source, out, called = assignment.source(name), Path(out), assignment.called_by(name)
    path = out / f"{called}-variants.json"
    if not NAME.fullmatch(variant):
        raise VariantError(f"A variant's name has 1 to 60 letters, digits, '.', '-' or '_', such as autumn-2027, "
                           f"and not {variant[:80]!r}.")
    if not private and not any(task.family for task in tasks.tasks_of(name).values()):
        raise VariantError(f"{name} has no tasks in variants." + (
            " In your own notebook a cell says what changes: ### BEGIN VARIANTS, lines such as d_k = [4, 8, 16], ### END "
            "VARIANTS; and {{d_k}} stands in texts and code." if tasks.is_own(name) else ""))
    given = read(path, name) if path.exists() else Variants(name, variant, secrets.token_hex(16))
    if (given.variant, bool(given.students)) != (variant, bool(students)) and given.details:
        raise VariantError(f"{path} is the list of the variant {given.variant!r}"
                           f"{' for each student' if given.students else ''}: write another one to another folder.")
    codes = {student: given.give(student, private) for student in students or [""]}
    if tasks.is_own(name):
        from classroom import proof  # which renders variants
        proof.prove(name, [given.details[code] for code in codes.values()])
    given.compute_sheets()
    write_json(path, asdict(given) | {"assignment": called}, ensure_ascii=False)
    with progress_bar("Writing notebooks", len(codes)) as bar:
        for student, code in codes.items():
            raw = render(source, name, given.details[code], code)
            folder = out / called / name_for_people(student) if student else out / called
            if student and not folder.exists() and (old := out / called / key_of(student)).is_dir():
                old.rename(folder)  # as an earlier release called it
            write_json(folder / f"{called}.ipynb", assignment.strip(raw), ensure_ascii=False)
            write_json(out / f"{called}-solutions" / given.file_of(student), raw, ensure_ascii=False)
            bar.update()
    return path


def render(raw, name, details, code=""):
    """A copy of a source notebook in a variant: ``details`` of each function. It carries ``code`` in its metadata."""
    if tasks.is_own(name):
        raw = assignment.source(name, next(iter(details.values()), None))
        raw["metadata"]["attention_course"] |= {"variant": code}
        return raw
    raw, known_tasks = copy.deepcopy(raw), tasks.tasks_of(name)
    raw["metadata"]["attention_course"] = {"assignment": name, "variant": code}
    function = None
    for cell, source, _ in cells_of(raw):
        if cell["cell_type"] == "markdown" and re.search("^## ", source, re.MULTILINE):
            heading = re.search(r"^## .*`(\w+)\(", source, re.MULTILINE)
            function = heading and heading[1]
        if function in details:
            family, mine, private = known_tasks[function].family, details[function], details[function].get("private")
            if family:
                source = exchange(source, family.words(**family.own), family.words(**_public(mine)))
            source = re.sub(rf'(judge\({function}, "{name}"(?:, "\w+")?)\)',
                            lambda found, mine=mine: f"{found[1]}, details={mine!r})", source)
            source = _with_private(source, cell, private) if private else source
            cell["source"] = source.splitlines(keepends=True)
    return raw


def _with_private(source, cell, private):
    """The source of one of a task's cells with the teacher's own detail in it: text, solution, and no public example."""
    if cell["cell_type"] == "markdown" and source.startswith("## "):
        return f"{source.rstrip()}\n\n**In your notebook:** {private['text']} (So the tests below show no example.)"
    if cell["cell_type"] == "code" and "### BEGIN HIDDEN TESTS" in source:
        no_example = "# The example of the public text does not hold in your notebook.\n"
        return no_example + source[source.index("### BEGIN HIDDEN"):]
    lines = textwrap.indent(textwrap.dedent(private["first"]).strip("\n"), "    ")
    return source.replace("### BEGIN SOLUTION\n", f"### BEGIN SOLUTION\n{lines}\n", 1)


def exchange(text, own, mine):
    """Put each passage of ``mine`` in the place of the one of the same name in ``own``, all at once."""
    instead = {own[name]: mine[name] for name in own if own[name] != mine[name]}
    if not instead:
        return text
    longest = sorted(instead, key=len, reverse=True)
    return re.sub("|".join(map(re.escape, longest)), lambda found: instead[found[0]], text)
