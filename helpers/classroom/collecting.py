"""Find each student's notebook in what a teacher has: folders, loose files, zips of Moodle or Canvas, zips in zips.

Nothing is unpacked to disk, links are not followed, and names that lead elsewhere are refused and told.
"""

import hashlib
import io
import os
import re
import stat
import time
import zipfile
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path, PurePosixPath

from helpers.classroom import notebook

MOST_FILES = 100_000  # in one zip
LARGEST_ZIP = 200_000_000  # bytes of a zip inside a zip
NOISE = re.compile(r"(^|/)(\.|__MACOSX/|__pycache__/)|/\.ipynb_checkpoints/")
MOODLE = re.compile(r"^(?P<name>.+?)_(?P<id>\d+)_assignsubmission_\w*?_?$")
CANVAS = re.compile(r"^(?P<name>[^\W\d_]+)(_LATE)?_(?P<id>\d+)_(?P<file>\d+)_.+$")


class NothingFound(Exception):
    """One sentence: why there is nothing to grade."""


@dataclass
class Submission:
    """What one student handed in. ``student``: their name; ``id``: the learning platform's number for them, or "";
    ``folder``: the name that the platform gave their folder; ``file``: where the notebook is, for people;
    ``read()`` gives its bytes and ``digest`` is their hash; without a notebook ``problem`` says why;
    ``notes``: what the teacher should know."""

    student: str
    id: str = ""
    folder: str = ""
    file: str = ""
    modified: float = 0.0
    read: object = None
    digest: str = ""
    problem: str = ""
    notes: list = field(default_factory=list)

    @property
    def key(self):
        """The name of this student's result: safe in a file system, and always the same for the same student."""
        plain = re.sub(r"[^\w.-]+", "_", self.student).strip("._")[:80]
        if self.id:
            return f"{plain}_{self.id}"
        unique = hashlib.sha256(self.student.encode("utf-8", "replace")).hexdigest()[:6]
        return plain if plain == self.student else f"{plain}-{unique}".strip("-")


@dataclass
class _Entry:
    """A file somewhere below the teacher's folder. ``read()`` gives its bytes."""

    parts: tuple
    modified: float
    read: object = None
    problem: str = ""


def collect(source, assignment, functions):
    """The ``Submission`` of each student in ``source`` (a folder or a zip), in the order of their names, and a list of
    sentences on what was refused. Notebooks are matched by the assignment's id in their metadata; without one, by the
    ``functions`` they define. Raises NothingFound."""
    source = Path(source)
    if not source.exists():
        raise NothingFound(f"{source} does not exist.")
    refused, students = [], {}
    entries = _zip(source, (), (), refused) if source.is_file() else _folder(source, refused)
    entries = _without_wrapper([entry for entry in entries if not NOISE.search("/".join(entry.parts))])
    for entry in entries:
        student = _student(entry.parts)
        students.setdefault((student.student, student.id), (student, []))[1].append(entry)
    if not students:
        raise NothingFound(f"There is no notebook in {source}." + (f" {refused[0]}" if refused else ""))
    found = [_choose(student, mine, assignment, functions)
             for student, mine in sorted(students.values(), key=lambda pair: (pair[0].student.casefold(), pair[0].id))]
    return found, refused


def _folder(top, refused):
    """The notebooks and zips below a folder."""
    for folder, below, names in os.walk(top, followlinks=False):
        for name in sorted(below + names):
            path = Path(folder, name)
            parts = path.relative_to(top).parts
            try:
                kind = path.lstat()
            except OSError:
                continue
            if stat.S_ISLNK(kind.st_mode):
                refused.append(f"{'/'.join(parts)} is a link to another place and was left out.")
                if path.suffix.lower() == ".ipynb" and len(parts) > 1:
                    yield _Entry(parts, kind.st_mtime, problem="The notebook is a link to another place.")
            elif not stat.S_ISREG(kind.st_mode):
                continue
            elif path.suffix.lower() == ".zip":
                yield from _zip(path, (), parts, refused, kind.st_mtime)
            elif path.suffix.lower() == ".ipynb":
                yield _Entry(parts, kind.st_mtime, partial(_read_file, path))


def _read_file(path):
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as file:
        return file.read(notebook.LARGEST + 1)


@lru_cache(maxsize=2)
def _archive(path, inside):
    """The open zip at ``path``, or the one in it that the numbers ``inside`` lead to."""
    if not inside:
        return zipfile.ZipFile(path)
    return zipfile.ZipFile(io.BytesIO(_read_member(path, inside, LARGEST_ZIP)))


def _read_member(path, inside, most=notebook.LARGEST):
    """The bytes of a file in a zip; never unpacks more than ``most`` + 1 of them, whatever the zip says of their
    number. ``inside``: the number of the member, or of the zip in the zip and then of its member."""
    try:
        archive = _archive(path, inside[:-1])
        with archive.open(archive.infolist()[inside[-1]]) as file:
            data = file.read(most + 1)
    except notebook.Unreadable:
        raise
    except Exception as error:  # damaged, encrypted, or a method that is not known
        raise notebook.Unreadable(f"The file cannot be read out of its zip ({str(error)[:80]}).") from None
    if len(data) > most:
        raise notebook.Unreadable(f"Unpacked, the file has more than {most // 1_000_000} MB (a zip bomb?).")
    return data


def _zip(path, inside, where, refused, modified=0.0):
    """The notebooks in a zip, and in zips in it, as entries below ``where``."""
    label = "/".join(where) or path.name
    try:
        members = _archive(path, inside).infolist()
    except Exception as error:  # whatever a hostile file makes zipfile raise
        refused.append(f"{label} is not a zip that can be opened.")
        if where:
            words = str(error) if isinstance(error, notebook.Unreadable) else "The zip is damaged."
            yield _Entry(where, modified, problem=words)
        return
    if len(members) > MOST_FILES:
        refused.append(f"{label} holds {len(members):,} files and was left out.")
        members = []
    where = (*where[:-1], where[-1].rsplit(".", 1)[0]) if where else ()
    for number, member in enumerate(members):
        parts = PurePosixPath(member.filename.replace("\\", "/")).parts
        suffix = member.filename[-6:].lower()
        if member.is_dir() or not suffix.endswith((".ipynb", ".zip")):
            continue
        if ".." in parts or parts[0] == "/" or ":" in parts[0] or stat.S_ISLNK(member.external_attr >> 16):
            refused.append(f"{label}: {member.filename[:100]!r} leads out of the zip and was left out.")
        elif suffix.endswith(".ipynb"):
            yield _Entry(where + parts, _when(member), partial(_read_member, path, (*inside, number)))
        elif len(inside) < 2:
            yield from _zip(path, (*inside, number), where + parts, refused, _when(member))
        else:
            refused.append(f"{label}: {member.filename[:100]!r} is a zip in a zip in a zip and was left out.")


def _when(member):
    try:
        return time.mktime((*member.date_time, 0, 0, -1))
    except (ValueError, OverflowError):
        return 0.0


def _without_wrapper(entries):
    """Leave out folders at the top that hold everything, unless they are a student's."""
    while entries and all(len(e.parts) > 2 for e in entries) and len({e.parts[0] for e in entries}) == 1 \
            and not MOODLE.match(entries[0].parts[0]):
        entries = [_Entry(e.parts[1:], e.modified, e.read, e.problem) for e in entries]
    return entries


def _student(parts):
    """Whose an entry is, by the first folder or, for a loose file, by its name."""
    first = parts[0] if len(parts) > 1 else parts[0].rsplit(".", 1)[0]
    platform = MOODLE.match(first) or CANVAS.match(first)
    if platform:
        return Submission(platform["name"], platform["id"], first)
    return Submission(first, "", first if len(parts) > 1 else "")


def _choose(student, entries, assignment, functions):
    """The newest of the entries that are this assignment."""
    readable, others, problems = [], [], []
    for entry in sorted(entries, key=lambda e: (e.modified, e.parts), reverse=True):
        try:
            if entry.problem:
                raise notebook.Unreadable(entry.problem)
            data = entry.read()
            book = notebook.read(data)
            digest = hashlib.sha256(data).hexdigest()
        except notebook.Unreadable as error:
            problems.append((entry, str(error)))
        except (OSError, MemoryError) as error:
            problems.append((entry, f"The file cannot be read ({type(error).__name__})."))
        else:
            known = book.assignment or set(functions) & set(notebook.definitions(book.code)) and assignment
            if known == assignment:
                readable.append((entry, digest))
            else:
                others.append((entry, digest, book.assignment))
    if readable:
        entry, student.digest = readable[0]
        if len(readable) > 1:
            student.notes.append(f"{len(readable)} notebooks were handed in; the newest counts: {entry.parts[-1]}.")
        if problems and problems[0][0].modified > entry.modified:
            student.notes.append(f"A newer file could not be read: {problems[0][0].parts[-1]}.")
    elif problems:
        entry, student.problem = problems[0]
    elif len(others) == 1 and not others[0][2]:  # no id, no known function: the student's only notebook
        entry, student.digest, _ = others[0]
    else:
        entry, _, other = others[0]
        student.problem = f"No notebook of {assignment} was found" + (f", only one of {other}." if other else ".")
    student.file, student.modified, student.read = "/".join(entry.parts), entry.modified, entry.read
    return student
