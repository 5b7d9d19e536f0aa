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
from dataclasses import asdict, dataclass, field
from pathlib import Path

from classroom import Problem, assignment, tasks
from classroom.collecting import Submission, words_of
from helpers.files import write_whole

NAME = re.compile(r"[\w.-]{1,60}")


class VariantError(Problem):
    """One sentence: what is wrong with the name of a variant, the list of students, or the teacher's list."""


@dataclass
class Variants:
    """The teacher's list. ``details``: code of a variant, which the notebook carries -> function -> its details;
    ``students``: whose it is, student -> code; empty when one variant was given to everybody."""

    assignment: str
    variant: str
    key: str
    details: dict = field(default_factory=dict)
    students: dict = field(default_factory=dict)

    def give(self, student=""):
        """The code of the variant of a student, or of the class. A new one is drawn among the details that fewest have."""
        code = f"{self.variant}-{self._digest(words_of(student))[:8]}" if student else self.variant
        if code not in self.details:
            self.details[code] = {}
            for function, task in tasks.tasks_of(self.assignment).items():
                if task.family:
                    given = [details.get(function) for details in self.details.values()]
                    counts = [given.count(details) for details in task.family.others]
                    rare = [one for one, count in zip(task.family.others, counts, strict=True) if count == min(counts)]
                    self.details[code][function] = rare[int(self._digest(code, function), 16) % len(rare)]
        if student:
            self.students[student] = code
        return code

    def file_of(self, student=""):
        """The name of the teacher's copy with solutions."""
        return f"{folder_of(student) if student else self.variant}.ipynb"

    def given(self):
        """Function -> the details with which somebody has it: those given out, and the course's own."""
        known = tasks.tasks_of(self.assignment)
        return {function: [task.family.own, *{str(details[function]): details[function]
                                              for details in self.details.values()}.values()]
                for function, task in known.items() if task.family}

    def _digest(self, *words):
        return hmac.new(bytes.fromhex(self.key), repr((self.assignment, self.variant, *words)).encode(),
                        hashlib.sha256).hexdigest()

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
        if details == tasks.tasks_of(self.assignment)[function].family.own:
            return "the course's own, whose solution is public"
        names = [name for name, code in self.students.items() if self.details[code].get(function) == details]
        return f"that of {', '.join(names[:3])}" + (f" and {len(names) - 3} others" if len(names) > 3 else "")


def read(path):
    """The ``Variants`` in a file that ``release`` wrote. Raises VariantError."""
    try:
        raw = json.loads(Path(path).read_text(encoding="utf-8"))
        found = Variants(**{name: raw[name] for name in ("assignment", "variant", "key", "details", "students")})
        known = tasks.tasks_of(found.assignment)
        bytes.fromhex(found.key)
        good = all(details in known[function].family.others
                   for given in found.details.values() for function, details in given.items())
        good = good and set(found.students.values()) <= set(found.details)
    except OSError as error:
        raise VariantError(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, TypeError, KeyError, AttributeError, ModuleNotFoundError):
        good = False
    if not good:
        raise VariantError(f"{path} is not a list of variants, or one of another version of the course: give the file "
                           "ending in -variants.json that release wrote.")
    return found


def release(name, out, variant, students=()):
    """Write an assignment in a variant of its own to ``out``: for everybody ``name/name.ipynb``, or with ``students``
    (names) ``name/STUDENT/name.ipynb`` for each. For the teacher ``name-variants.json``, the list, and ``name-solutions/``,
    a notebook with solutions for each.
    Returns the path of the list. Given again with the same ``out`` and ``variant``, everybody keeps their variant.
    Raises AssignmentError, VariantError."""
    source, out = assignment.source(name), Path(out)
    path = out / f"{name}-variants.json"
    if not NAME.fullmatch(variant):
        raise VariantError(f"A variant's name has 1 to 60 letters, digits, '.', '-' or '_', such as autumn-2027, "
                           f"and not {variant[:80]!r}.")
    if not any(task.family for task in tasks.tasks_of(name).values()):
        raise VariantError(f"{name} has no tasks in variants.")
    given = read(path) if path.exists() else Variants(name, variant, secrets.token_hex(16))
    if (given.variant, bool(given.students)) != (variant, bool(students)) and given.details:
        raise VariantError(f"{path} is the list of the variant {given.variant!r}"
                           f"{' for each student' if given.students else ''}: write another one to another folder.")
    for student in students or [""]:
        code = given.give(student)
        raw = render(source, name, given.details[code], code)
        folder = out / name / folder_of(student) if student else out / name
        _write(folder / f"{name}.ipynb", assignment.strip(raw))
        _write(out / f"{name}-solutions" / given.file_of(student), raw)
    write_whole(path, json.dumps(asdict(given), indent=1, ensure_ascii=False) + "\n")
    return path


def folder_of(student):
    """The name of the folder with a student's notebook."""
    return Submission(student).key


def _write(path, raw):
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(raw, indent=1, ensure_ascii=False) + "\n")


def render(raw, name, details, code=""):
    """A copy of a source notebook in a variant: ``details`` of each function. It carries ``code`` in its metadata."""
    raw, known = copy.deepcopy(raw), tasks.tasks_of(name)
    raw["metadata"]["attention_course"] = {"assignment": name, "variant": code}
    function = None
    for cell in raw["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown" and re.search("^## ", source, re.MULTILINE):
            heading = re.search(r"^## .*`(\w+)\(", source, re.MULTILINE)
            function = heading and heading[1]
        if function in details:
            family, mine = known[function].family, details[function]
            source = exchange(source, family.words(**family.own), family.words(**mine))
            source = re.sub(rf'(judge\({function}, "{name}"(?:, "\w+")?)\)', rf"\1, details={mine!r})", source)
            cell["source"] = source.splitlines(keepends=True)
    return raw


def exchange(text, own, mine):
    """Put each passage of ``mine`` in the place of the one of the same name in ``own``, all at once."""
    instead = {own[name]: mine[name] for name in own if own[name] != mine[name]}
    if not instead:
        return text
    longest = sorted(instead, key=len, reverse=True)
    return re.sub("|".join(map(re.escape, longest)), lambda found: instead[found[0]], text)
