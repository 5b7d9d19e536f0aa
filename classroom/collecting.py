"""Find each student's notebook in what a teacher has: folders, loose files, zips of Moodle or Canvas, zips in zips.

Nothing is unpacked to disk, links are not followed, and names that lead elsewhere are refused and told.
"""

import hashlib
import os
import re
import stat
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from classroom import Problem, code_cells, names, notebook, sandbox, zips
from classroom.assignment import ANSWER

MOST_READ = 20  # notebooks of one student
MOST_ATTEMPTS = 5  # notebooks of one student that may be graded
MOST_JSON = 20  # files of one student ending in .json or .py that are looked into
SCRIPT = ("{} is a script, and no notebook: its functions are graded, and written answers are those in its cells # %% "
          "[markdown], below the question.")
MOST_TOLD = 50  # sentences on what was left out
LATE = "Canvas marks it as late."
READING_SECONDS, READING_MEMORY = 30, 2 * 2**30  # of CPU time, and bytes, to look through what one student handed in
NOISE = re.compile(r"(^|/)(\.|__MACOSX/|__pycache__/)|/\.ipynb_checkpoints/")


class NothingFound(Problem):
    """One sentence: why there is nothing to grade."""


@dataclass
class Submission:
    """What one student handed in. ``student``: their name; ``id``: the learning platform's number for them, or "";
    ``folder``: the name that the platform gave their folder; ``file``: where the notebook is, for people;
    ``read()`` gives its bytes and ``digest`` is their hash; without a notebook ``problem`` says why, and ``status`` how
    it ends; ``variant``: what its metadata say of a variant; ``notes``: what the teacher should know; ``alike``: another's
    key would differ in capitals only; ``earlier``: the student's other notebooks, each as a ``Submission``."""

    student: str
    id: str = ""
    folder: str = ""
    file: str = ""
    modified: float = 0.0
    read: object = None
    digest: str = ""
    problem: str = ""
    status: str = "unreadable"
    variant: str = ""
    notes: list = field(default_factory=list)
    alike: bool = False
    earlier: list = field(default_factory=list)
    which: str = ""  # the one of the notes that says which notebook counts, where the last does

    @property
    def key(self):
        """The name of this student's result."""
        return names.key_of(self.student, self.id, self.alike)


def collect(source, assignment, functions, leave_out=None, zone=None):
    """The ``Submission`` of each student in ``source`` (a folder or a zip), in the order of their names, and a list of
    sentences on what was refused. Notebooks are matched by the assignment's id in their metadata; without one, by the
    ``functions`` they define. The folder ``leave_out`` is not a submission; ``zone``: whose clock the times in a zip are
    by, where it has no better ones (default: this machine's). Raises NothingFound."""
    source = Path(source)
    if not source.exists():
        raise NothingFound(f"{source} does not exist: name the folder or the zip with what was handed in.")
    refused = []
    entries = zips.entries(source, (), refused, zone) if source.is_file() else _folder(source, refused, leave_out, zone)
    with sandbox.limited(READING_MEMORY):
        entries = _that_matter(entries, functions)
    students = _by_student(_without_wrapper(entries, assignment), refused)
    if len(refused) > MOST_TOLD:
        refused[MOST_TOLD:] = [f"{len(refused) - MOST_TOLD:,} more."]
    refused[:] = [names.plain_name(words if len(words) < 400 else f"{words[:200]} ... {words[-180:]}") for words in refused]
    if not any(entry.may_be_notebook for _, mine in students for entry in mine):
        raise NothingFound(f"There is no notebook in {source}: name a folder or a zip that holds some, ending in .ipynb."
                           + (f" {refused[0]}" if refused else ""))
    _one_number_each(student for student, _ in students)
    students = {student.key: (student, mine) for student, mine in students}
    keys = Counter(key.casefold() for key in students)  # a folder of Windows takes a.json and A.json for one file
    for key, (student, _) in students.items():
        student.alike = keys[key.casefold()] > 1
    in_order = sorted(students.values(), key=lambda pair: (pair[0].student.casefold(), pair[0].id))
    return [_chosen(student, mine, assignment, functions) for student, mine in in_order], refused


def _by_student(entries, refused):
    """(``Submission``, the entries) of each student; what is nobody's is ``refused``."""
    handed_in = {}
    for entry in entries:
        if NOISE.search(entry.parts[0] + "/"):
            continue
        student = _student(entry.parts)
        if not (entry.may_be_notebook or student.id or len(entry.parts) > 1):
            refused.append(f"{entry.parts[0]} is not a notebook and was left out.{names.remedies(entry.parts)}")
            continue
        # In Moodle a number is one student's, whatever group stands in front of the name.
        moodle = student.id and names.MOODLE.match(student.folder)
        handed_in.setdefault(("number", student.id) if moodle else student.key, []).append((student, entry))
    together = []
    for pairs in handed_in.values():
        without_group = min((student for student, _ in pairs), key=lambda student: len(student.student))
        together.append((without_group, [entry for _, entry in pairs]))
    return together


def _one_number_each(students):
    """Take the number from those who have it together: in Canvas a student may have it in a name that is made up."""
    by_number = {}
    for student in students:
        by_number.setdefault((names.platform_of(student.id, student.folder), student.id), []).append(student)
    for (_, number), some in by_number.items():
        if number and len(some) > 1:
            for student in some:
                student.notes.append(f"The number {number} is in two file names, and so it counts for neither of them.")
                student.id = ""


def _that_matter(entries, functions):
    """The entries without what systems leave behind, and of files that are not notebooks only a few in each folder: what
    systems leave behind is one of these where it lies below a folder, whose student may have nothing else. A script is taken
    for a notebook where it gives one of the ``functions``."""
    words = "|".join(map(re.escape, functions)).encode()
    marks = {".json": re.compile(rb'"(cells|worksheets)"'),
             ".py": re.compile(rb"^(def +(%b) *\(|(%b) *=)" % (words, words), re.MULTILINE)}
    entries = list(entries)
    tops = {entry.parts[0] for entry in entries if len(entry.parts) > 1}
    depth = 1 if len(tops) > 1 else 2  # of students' folders
    looked_into, others, matter = Counter(), Counter(), []
    for entry in entries:
        folder, student = entry.parts[:-1], entry.parts[:depth]
        if entry.read and (mark := marks.get(names.kind_of(entry.parts[-1]))):
            if len(entry.parts) > depth:
                looked_into[student] += 1
            if looked_into[student] > MOST_JSON or not _has(entry, mark):
                entry.read = None
            elif entry.script:
                entry.read = lambda read=entry.read: notebook.of_script(read())
        if NOISE.search("/".join(entry.parts)):
            if not folder or NOISE.search(entry.parts[0] + "/"):
                continue
            entry.read, entry.problem = None, ""
        if not entry.may_be_notebook:
            others[folder] += 1
            if others[folder] > (3 if folder else 10_000):
                continue
        matter.append(entry)
    return matter


def _has(entry, mark):
    try:
        return bool(mark.search(entry.read()))
    except (notebook.Unreadable, OSError, MemoryError):
        return False


def _folder(top, refused, leave_out, zone):
    """The notebooks and zips below a folder."""
    closed = []
    for folder, below, files in os.walk(top, onerror=closed.append, followlinks=False):
        below[:] = [name for name in below if not _same(Path(folder, name), leave_out)]
        for name in sorted(below + files):
            path = Path(folder, name)
            parts = path.relative_to(top).parts
            try:
                kind = path.lstat()
            except OSError as error:
                if len(parts) > 1 or names.kind_of(name) in (".ipynb", ".zip"):
                    yield zips.Entry(parts, 0.0, None, f"The file cannot be read ({error.strerror}).", "unreadable")
                continue
            if stat.S_ISLNK(kind.st_mode):
                refused.append(f"{'/'.join(parts)} is a link to another place and was left out.")
                if names.kind_of(name) == ".ipynb" and len(parts) > 1:
                    yield zips.Entry(parts, kind.st_mtime, problem="The notebook is a link to another place.")
            elif not stat.S_ISREG(kind.st_mode):
                if not stat.S_ISDIR(kind.st_mode):  # a pipe, a device
                    yield zips.Entry(parts, kind.st_mtime)
            elif names.kind_of(name) == ".zip":
                yield from zips.entries(path, parts, refused, zone, kind.st_mtime)
            else:
                yield zips.Entry(parts, kind.st_mtime, partial(_read_file, path) if names.kind_of(name) else None)
    for error in closed:
        parts = Path(error.filename).relative_to(top).parts
        if not parts:
            raise NothingFound(f"{top} cannot be read ({error.strerror}): let yourself read it, or copy it.")
        yield zips.Entry((*parts, "a file"), 0.0, None, f"The folder cannot be read ({error.strerror}).", "unreadable")


def _same(path, other):
    try:
        return other is not None and os.path.samefile(path, other)
    except OSError:  # one of them is not there, or may not be looked at
        return False


def _read_file(path):
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as file:
        return file.read(notebook.LARGEST + 1)


def _without_wrapper(entries, assignment):
    """Leave out folders at the top that hold everything, and what several downloads of a platform lie in."""
    notebooks = [entry.parts for entry in entries if entry.may_be_notebook]
    if notebooks and all(len(parts) > 1 and names.by_platform(parts[1]) and not names.by_platform(parts[0])
                         for parts in notebooks):
        return [_inside(entry) for entry in entries]
    while top := _wrapper(entries, assignment):
        entries = [_inside(entry) if entry.parts[0] == top else entry for entry in entries]
    return entries


def _wrapper(entries, assignment):
    """The one folder at the top that holds folders with all notebooks, or "" where it is a student's: it has a platform's
    name or, in nbgrader's layout, a folder of the assignment is in it."""
    notebooks = [entry.parts for entry in entries if entry.may_be_notebook]
    tops = {parts[0] if len(parts) > 2 else "" for parts in notebooks}
    if len(tops) != 1:
        return ""
    top = tops.pop()
    is_students = names.by_platform(top) or all(parts[1] == assignment for parts in notebooks if len(parts) > 1)
    return "" if is_students else top


def _inside(entry):
    """The entry as it is called in the folder at the top, if it is in one."""
    archives = tuple((depth - 1, when) for depth, when in entry.archives if depth > 1)  # the folder may have been one
    return replace(entry, parts=entry.parts[1:], archives=archives) if len(entry.parts) > 1 else entry


def _student(parts):
    """Whose an entry is, by the first folder or, for a loose file, by its name."""
    first = parts[0] if len(parts) > 1 else names.stem_of(parts[0])
    platform = names.by_platform(first)
    if platform and len(names.MOODLE_ID.findall(first)) < 2:  # else one was written by a student, in a name or a file's
        late = [LATE] if platform.groupdict().get("late") else []
        return Submission(platform["name"], platform["id"] or "", first, notes=late)
    return Submission(first, "", first if len(parts) > 1 else "")


def _chosen(student, entries, assignment, functions):
    """``_choose`` within limits: what takes more is refused, and the others are not affected."""
    try:
        with sandbox.limited(READING_MEMORY), sandbox.at_most(READING_SECONDS):
            return _choose(student, entries, assignment, functions)
    except (sandbox.Slow, MemoryError):
        student.problem, student.status, student.read = (
            f"To look through what was handed in takes more than {READING_SECONDS} seconds of computing or "
            f"{READING_MEMORY // 2**30} GB of memory: hand in the notebook alone."), "refused", None
        student.file, student.modified, student.earlier = "/".join(entries[0].parts), entries[0].came, []
        return student


class _Look(NamedTuple):
    """A notebook that could be read. ``assignment``: its id, or that by the functions in it, or ""."""

    entry: zips.Entry
    digest: str
    variant: str
    assignment: str
    work: int


def _choose(student, entries, assignment, functions):
    """The newest of the entries that are this assignment: by Canvas' numbers where all have one, else by their times, and
    of one time by the number behind a name that they share."""
    attached = [_attachment(entry) for entry in entries if entry.may_be_notebook]
    by_number = len(set(attached)) > 1 and all(attached)

    def age(entry):
        return _attachment(entry) if by_number else 0, entry.came, entry.modified

    newest = sorted(entries, key=lambda entry: (age(entry), names.numbered(entry.parts[-1]), entry.parts), reverse=True)
    notebooks = [entry for entry in newest if entry.may_be_notebook]
    notebooks = [entry for entry in notebooks if not entry.script] or notebooks  # a script beside a notebook is its helper
    looks, problems = _look_through(student, notebooks, functions, assignment)
    mine = [look for look in looks if look.assignment == assignment]
    if len(looks) == 1 and not problems and not looks[0].assignment:
        mine = looks  # the student's only notebook, of which nothing tells
    if mine:
        look, which = _that_counts(mine, age, by_number)
        entry, student.digest, student.variant = look.entry, look.digest, look.variant
        others = [other for other in mine if other.digest != look.digest][:MOST_ATTEMPTS - 1]
        student.earlier = [
            Submission(student.student, student.id, student.folder, "/".join(other.entry.parts), other.entry.came,
                       other.entry.read, other.digest, variant=other.variant) for other in others]
        if len(mine) > 1:
            student.which = f"{len(mine)} notebooks were handed in; the {which} counts: {entry.parts[-1]}."
            student.notes.append(student.which)
        if entry.script:
            student.notes.append(SCRIPT.format(entry.parts[-1]))
        if problems and age(problems[0][0]) > age(entry):
            student.notes.append(f"A newer file could not be read: {problems[0][0].parts[-1]}.")
    elif problems:
        entry, student.problem, student.status = problems[0]
    elif looks:
        entry, other = looks[0].entry, looks[0].assignment
        student.problem = f"No notebook of {assignment} was found" + (f", only one of {other}." if other else ".")
    else:
        entry, files = newest[0], [entry.parts[-1] for entry in newest[:3]]
        student.problem = f"There is no notebook, only {', '.join(files)[:200]}.{names.remedies(files)}"
    student.file, student.modified, student.read = "/".join(entry.parts), entry.came, entry.read
    return student


def _look_through(student, notebooks, functions, assignment):
    """(a ``_Look`` at each of the newest notebooks that can be read; (entry, problem, status) of the others)."""
    looks, problems, room = [], [], zips.MOST_BYTES
    if len(notebooks) > MOST_READ:
        student.notes.append(f"{len(notebooks):,} notebooks were handed in; only the newest {MOST_READ} were looked at.")
    for number, entry in enumerate(notebooks[:MOST_READ]):
        if room <= 0:
            student.notes.append(f"{len(notebooks):,} large notebooks were handed in; only the newest {number} were looked "
                                 "at.")
            break
        try:
            if entry.problem:
                raise notebook.Refused(entry.problem) if entry.status == "refused" else notebook.Unreadable(entry.problem)
            data = entry.read()
            room -= len(data)
            book = notebook.read(data)
        except notebook.Unreadable as error:
            problems.append((entry, str(error), error.status))
        except (OSError, MemoryError) as error:
            problems.append((entry, f"The file cannot be read ({type(error).__name__}).", "unreadable"))
        else:
            by_functions = assignment if set(functions) & set(code_cells.definitions(book.code)) else ""
            looks.append(_Look(entry, hashlib.sha256(data).hexdigest(), book.variant, book.assignment or by_functions,
                               _work(book, functions)))
    return looks, problems


def _that_counts(looks, age, by_number):
    """(the look that counts of several, newest first; in words, which one that is)."""
    as_new = [look for look in looks if age(look.entry) == age(looks[0].entry)]
    if len(as_new) == 1:
        entry = as_new[0].entry
        return as_new[0], f"newest, by Canvas' number {_attachment(entry)} in its name," if by_number else "newest"
    endings = [names.numbered(look.entry.parts[-1]) for look in as_new]
    stems = {(stem, *look.entry.parts[:-1]) for look, (stem, _) in zip(as_new, endings, strict=True)}
    if len(stems) == 1 and len(set(endings)) == len(as_new):
        return as_new[0], "newest, by the number at the end of its name,"
    return (max(as_new, key=lambda look: look.work),
            f"one with most work of the {len(as_new)} newest, which have one time,")


def _attachment(entry):
    """The number that Canvas gave a file, which is higher for what was handed in later; 0 where there is none."""
    canvas = None if names.MOODLE.match(entry.parts[0]) else names.CANVAS.match(entry.parts[0])
    return int(canvas["file"]) if canvas and canvas["file"] and len(canvas["file"]) < 20 else 0


def _work(book, functions):
    """How much somebody wrote: of these functions and of answers those that are no longer as they were handed out."""
    done = code_cells.written_functions(book.code) & set(functions)
    return len(done) + sum(cell.grade_id.startswith("answer-") and cell.source.strip("*_# \n") not in ("", ANSWER)
                           for cell in book.cells)
