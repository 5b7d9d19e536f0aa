"""Find each student's notebook in what a teacher has: folders, loose files, zips of Moodle or Canvas, zips in zips.

Nothing is unpacked to disk, links are not followed, and names that lead elsewhere are refused and told.
"""

import hashlib
import io
import os
import re
import stat
import struct
import unicodedata
import zipfile
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache, partial
from pathlib import Path, PurePosixPath

from classroom import Problem, notebook, sandbox
from classroom.assignment import ANSWER

MOST_FILES = 100_000  # in one zip
MOST_READ = 20  # notebooks of one student
MOST_ATTEMPTS = 5  # notebooks of one student that may be graded
EXACT, NO_DATE = 0x5455, (1980, 1, 1)  # where a zip keeps the time in UTC, and what it says where it has none
LATE = "Canvas marks it as late."
MOST_TOLD = 50  # sentences on what was left out
LARGEST_LIST = 20_000_000  # bytes of a zip's list of files, and of those of all zips of one student
LARGEST_ZIP = 100_000_000  # bytes of a zip inside a zip
MOST_ZIPS = 1_000  # zips in one zip, and in zips in it
MOST_BYTES = 300_000_000  # of all zips in the zips of one student; and of the student's notebooks that are looked at
TIGHTEST = 50  # bytes of a zip for each byte that it takes in its zip: two zips in one another hardly shrink
# Python bounds what it unpacks for these two alone: of 810 bytes in bzip2 it makes 1.8 GB before anybody can stop it.
PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
OTHERS = {1: "Shrink", 6: "Implode", 9: "Deflate64", 12: "bzip2", 14: "LZMA", 93: "Zstandard", 95: "xz", 98: "PPMd"}
READING_SECONDS, READING_MEMORY = 30, 2 * 2**30  # of CPU time, and bytes, to look through what one student handed in
NOISE = re.compile(r"(^|/)(\.|__MACOSX/|__pycache__/)|/\.ipynb_checkpoints/")
PLAIN = str.maketrans({"ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ß": "ss"})
WINDOWS = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)", re.IGNORECASE)  # names that no file may have there
# What a platform calls a student's folder or, in a download without folders, each file:
MOODLE = re.compile(r"^(?P<name>.+?)_(?P<id>[0-9]+)_assignsubmission_(file|onlinetext)(_.*)?$", re.DOTALL)
MOODLE_ID = re.compile(r"_[0-9]+_assignsubmission_")
CANVAS = re.compile(r"^(?P<name>.+?)(?P<late>_LATE)?_(?P<id>[0-9]+)_(?:(?P<file>[0-9]+)_.+|(?:text|link)(?:\.html)?)$",
                    re.DOTALL)


# What browsers and systems put behind a name: "w.ipynb.txt", "w.ipynb.json", "w.ipynb (1)", "w.ipynb - Copy".
ADDED = re.compile(r"(?<=\w)(\.(txt|json|bin|dms|download)|[ _-]?\(\d{1,4}\)| \d{1,3}| ?-? ?(cop(y|i[ae])|kopie))+$",
                   re.IGNORECASE)
MOST_JSON = 20  # files of one student ending in .json that are looked into
REMEDIES = {  # how a name ends -> what to do
    r"\.(rar|7z|tar|gz|tgz|bz2|tbz2?|xz|zst)$": "of packed files only .zip is read, so unpack it, or pack it as .zip",
    r"\.py$": "a script has no cells and no written answers, so ask for the notebook, which ends in .ipynb",
    r"\.(pdf|html?|docx?|odt|rtf|md|png|jpe?g)$": "this shows a notebook at most, so ask for the one that ends in .ipynb"}


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
        """The name of this student's result: ASCII, safe in a file system and a spreadsheet, always the same for the same
        student, and nobody else's."""
        letters = unicodedata.normalize("NFKD", self.student).encode("ascii", "ignore").decode()
        plain = re.sub(r"[^\w-]+", "_", letters).strip("_-")[:80] or "student"
        plain += f"_{self.id}" if self.id else ""
        unique = hashlib.sha256(self.student.encode("utf-8", "replace")).hexdigest()[:8]
        clear = self.id or plain == self.student and re.search("[A-Za-z]{2}", plain) and not re.search(
            r"_\d+$|-[0-9a-f]{8}$", plain) and not WINDOWS.fullmatch(plain)
        return plain if clear and not self.alike else f"{plain}-{unique}"


def name_for_people(student, key):
    """A name of a folder or a page in which people find ``student``, with letters of all scripts, as different from others
    as the ``key``, which is a result's and stays as it is. Where that has all letters, it is this name; where it does not
    begin with them, it comes behind the name."""
    plain = unicodedata.normalize("NFKD", student.translate(PLAIN))
    letters = "".join(c for c in plain if unicodedata.category(c)[0] in "LNM" and not "\u0300" <= c <= "\u036f" or c in "_-"
                      or c.isspace() or c.isascii())
    words = re.sub(r"[^\w\u0900-\u0dff\u0e00-\u0fff-]+", "_", unicodedata.normalize("NFC", letters)).strip("_-")[:50]
    ascii_alone = unicodedata.normalize("NFKD", student).encode("ascii", "ignore").decode()
    kept = re.sub(r"[^\w-]+", "_", ascii_alone).strip("_-")[:80] or "student"
    if not key.startswith(kept):  # such as a folder zw17 of somebody whose name is on the list
        return f"{words}-{key}" if words and len(key) < 40 else key
    end = key[len(kept):]
    return f"{words}{end}" if words and end and words != kept[:50] and len(end) < 40 else key


def page_of(result):
    """The name of the file of a student's page of feedback, in which a teacher finds the student."""
    return f"{name_for_people(result['student'], result['key'])}.html"


def words_of(name):
    """The words of a name in any order and without accents: "Müller, Zoë" and "Zoe Muller" agree."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", name.casefold()) if not unicodedata.combining(c))
    return tuple(sorted(re.findall(r"[^\W_]+", plain)))


@dataclass
class _Entry:
    """A file somewhere below the teacher's folder. ``read()`` gives its bytes; without it, this is not a notebook."""

    parts: tuple
    modified: float
    read: object = None
    problem: str = ""
    status: str = "refused"  # where there is a problem

    def __post_init__(self):
        self.parts = tuple(map(_short, map(_plain_name, self.parts)))


def _plain_name(name):
    """A name in one form of Unicode. Characters that move a terminal's cursor or turn the text around, and bytes that are
    not UTF-8, become their numbers: two names stay two."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in unicodedata.normalize("NFC", name))


def kind_of(name):
    """".ipynb" or ".zip" by the end of a file's name, whatever was put behind it; ".json" where that is all; else ""."""
    plain = _without_added(name).lower()
    return next((end for end in (".ipynb", ".zip") if plain.endswith(end)), ".json" * name.lower().endswith(".json"))


def _without_added(name):
    return name[:-60] + ADDED.sub("", name[-60:])


def _stem(name):
    """The name of a file without its ending and what was put behind that."""
    plain = _without_added(name) if kind_of(name) in (".ipynb", ".zip") else name
    return plain.rpartition(".")[0] or plain


def _remedies(names):
    """Sentences on what to do with files that are not notebooks."""
    found = {words: name for name in names for end, words in REMEDIES.items()
             if re.search(end, _without_added(name), re.IGNORECASE)}
    return "".join(f" {name}: {words}." for words, name in found.items())


def _short(name):
    """A name no longer than those of files: in a zip it may have 65,000 letters."""
    return name if len(name) <= 255 else f"{name[:240]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def collect(source, assignment, functions, leave_out=None, zone=None):
    """The ``Submission`` of each student in ``source`` (a folder or a zip), in the order of their names, and a list of
    sentences on what was refused. Notebooks are matched by the assignment's id in their metadata; without one, by the
    ``functions`` they define. The folder ``leave_out`` is not a submission; ``zone``: whose clock the times in a zip are
    by, where it has no better ones (default: this machine's). Raises NothingFound."""
    source = Path(source)
    if not source.exists():
        raise NothingFound(f"{source} does not exist.")
    refused, students = [], {}
    entries = _zip(source, (), (), refused, zone) if source.is_file() else _folder(source, refused, leave_out, zone)
    with sandbox.limited(READING_MEMORY):
        entries = _that_matter(entries)
    for entry in _without_wrapper(entries, assignment):
        if NOISE.search(entry.parts[0] + "/"):
            continue
        student = _student(entry.parts)
        if not (entry.read or entry.problem or student.id or len(entry.parts) > 1):
            refused.append(f"{entry.parts[0]} is not a notebook and was left out.{_remedies(entry.parts)}")
            continue
        # In Moodle a number is one student's, whatever group stands in front of the name.
        moodle = student.id and MOODLE.match(student.folder)
        students.setdefault(("number", student.id) if moodle else student.key, []).append((student, entry))
    if len(refused) > MOST_TOLD:
        refused[MOST_TOLD:] = [f"{len(refused) - MOST_TOLD:,} more."]
    refused[:] = [_plain_name(words if len(words) < 400 else f"{words[:200]} ... {words[-180:]}") for words in refused]
    students = [(min((student for student, _ in both), key=lambda student: len(student.student)),
                 [entry for _, entry in both]) for both in students.values()]
    if not any(entry.read or entry.problem for _, mine in students for entry in mine):
        raise NothingFound(f"There is no notebook in {source}." + (f" {refused[0]}" if refused else ""))
    _one_number_each(student for student, _ in students)
    students = {student.key: (student, mine) for student, mine in students}
    keys = Counter(key.casefold() for key in students)  # a folder of Windows takes a.json and A.json for one file
    for key, (student, _) in students.items():
        student.alike = keys[key.casefold()] > 1
    found = [_chosen(student, mine, assignment, functions)
             for student, mine in sorted(students.values(), key=lambda pair: (pair[0].student.casefold(), pair[0].id))]
    return found, refused


def platform_of(number, folder):
    """"moodle" or "canvas" where the name of a student's folder has the platform's number, else ""."""
    if not number:
        return ""
    return "moodle" if MOODLE.match(folder) else "canvas" if CANVAS.match(folder) else ""


def _one_number_each(students):
    """Take the number from those who have it together: in Canvas a student may have it in a name that is made up."""
    by_number = {}
    for student in students:
        by_number.setdefault((platform_of(student.id, student.folder), student.id), []).append(student)
    for (_, number), some in by_number.items():
        if number and len(some) > 1:
            for student in some:
                student.notes.append(f"The number {number} is in two file names, and so it counts for neither of them.")
                student.id = ""


def _that_matter(entries):
    """The entries without what systems leave behind, and of files that are not notebooks only a few in each folder: what
    systems leave behind is one of these where it lies below a folder, whose student may have nothing else."""
    entries = list(entries)
    others, kept, looked = Counter(), [], Counter()
    depth = 1 if len({entry.parts[0] for entry in entries if len(entry.parts) > 1}) > 1 else 2  # of students' folders
    for entry in entries:
        if entry.read and kind_of(entry.parts[-1]) == ".json":
            looked[entry.parts[:depth]] += len(entry.parts) > depth
            entry.read = entry.read if looked[entry.parts[:depth]] <= MOST_JSON and _has_cells(entry) else None
        if NOISE.search("/".join(entry.parts)):
            if len(entry.parts) == 1 or NOISE.search(entry.parts[0] + "/"):
                continue
            entry.read, entry.problem = None, ""
        others[entry.parts[:-1]] += not (entry.read or entry.problem)
        if entry.read or entry.problem or others[entry.parts[:-1]] <= (3 if len(entry.parts) > 1 else 10_000):
            kept.append(entry)
    return kept


def _has_cells(entry):
    try:
        return any(word in entry.read() for word in (b'"cells"', b'"worksheets"'))
    except (notebook.Unreadable, OSError, MemoryError):
        return False


def _folder(top, refused, leave_out, zone):
    """The notebooks and zips below a folder."""
    closed = []
    for folder, below, names in os.walk(top, onerror=closed.append, followlinks=False):
        below[:] = [name for name in below if not _same(Path(folder, name), leave_out)]
        for name in sorted(below + names):
            path = Path(folder, name)
            parts = path.relative_to(top).parts
            try:
                kind = path.lstat()
            except OSError as error:
                if len(parts) > 1 or kind_of(name) in (".ipynb", ".zip"):
                    yield _Entry(parts, 0.0, None, f"The file cannot be read ({error.strerror}).", "unreadable")
                continue
            if stat.S_ISLNK(kind.st_mode):
                refused.append(f"{'/'.join(parts)} is a link to another place and was left out.")
                if kind_of(name) == ".ipynb" and len(parts) > 1:
                    yield _Entry(parts, kind.st_mtime, problem="The notebook is a link to another place.")
            elif not stat.S_ISREG(kind.st_mode):
                if not stat.S_ISDIR(kind.st_mode):  # a pipe, a device
                    yield _Entry(parts, kind.st_mtime)
            elif kind_of(name) == ".zip":
                yield from _zip(path, (), parts, refused, zone, kind.st_mtime)
            else:
                yield _Entry(parts, kind.st_mtime, partial(_read_file, path) if kind_of(name) else None)
    for error in closed:
        parts = Path(error.filename).relative_to(top).parts
        if not parts:
            raise NothingFound(f"{top} cannot be read ({error.strerror}).")
        yield _Entry((*parts, "a file"), 0.0, None, f"The folder cannot be read ({error.strerror}).", "unreadable")


def _same(path, other):
    try:
        return other is not None and os.path.samefile(path, other)
    except OSError:  # one of them is not there, or may not be looked at
        return False


def _read_file(path):
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as file:
        return file.read(notebook.LARGEST + 1)


@lru_cache(maxsize=2)
def _archive(path, inside):
    """The open zip at ``path``, or the one in it that the numbers ``inside`` lead to."""
    data = _read_member(path, inside, LARGEST_ZIP) if inside else b""
    with io.BytesIO(data) if inside else path.open("rb") as file:
        record = zipfile._EndRecData(file)  # the one that ZipFile goes by: files in the zip may hold others like it
    size = record[zipfile._ECD_SIZE] if record else 0
    if size > LARGEST_LIST:  # the list is read into memory before it can be counted
        raise notebook.Refused("The zip's list of files is too long.")
    archive = zipfile.ZipFile(io.BytesIO(data) if inside else path)
    archive.list_size, archive.size = size, len(data)
    return archive


def _read_member(path, inside, most=notebook.LARGEST):
    """The bytes of a file in a zip; never unpacks more than ``most`` + 1 of them, whatever the zip says of their
    number. ``inside``: the number of the member, or of the zip in the zip and then of its member."""
    try:
        archive = _archive(path, inside[:-1])
        member = archive.infolist()[inside[-1]]
        if member.compress_type not in PACKED:
            method = OTHERS.get(member.compress_type, f"method {member.compress_type}")
            raise notebook.Refused(f"The file is packed with {method}, which is not unpacked here: hand in the notebook "
                                   "itself, or a zip as the system makes it (Deflate).")
        if member.flag_bits & 1:
            raise notebook.Unreadable("The zip has a password: pack it again without one.")
        if most == LARGEST_ZIP and member.file_size > max(1_000_000, TIGHTEST * member.compress_size):
            raise notebook.Refused("The zip is packed far too tightly (a zip bomb?).")
        with archive.open(member) as file:
            data = file.read(most + 1)
    except notebook.Unreadable:
        raise
    except Exception as error:  # damaged, encrypted, or a method that is not known
        raise notebook.Unreadable(f"The file cannot be read out of its zip ({str(error)[:80]}).") from None
    if len(data) > most:
        raise notebook.Refused(f"Unpacked, the file has more than {most // 1_000_000} MB (a zip bomb?).")
    return data


def _zip(path, inside, where, refused, zone, modified=0.0, room=None):
    """The notebooks in a zip, and in zips in it, as entries below ``where``. ``room``: how many zips, files in them and
    bytes of both the student whose zip this is may still have."""
    label = "/".join(where) or path.name
    if room:
        room["zips"] -= 1
        if room["zips"] < 0:
            if room["zips"] == -1:
                refused.append(f"{label} and what comes after it were left out: more than {MOST_ZIPS:,} zips in a zip.")
                yield _Entry(where, modified, problem=f"The zip holds more than {MOST_ZIPS:,} zips.")
            return
    try:
        if room and room["bytes"] <= 0:
            raise notebook.Refused(f"The zips in the zip have more than {MOST_BYTES // 1_000_000} MB together.")
        archive = _archive(path, inside)
        members = archive.infolist()
    except Exception as error:  # whatever a hostile file makes zipfile raise
        known = isinstance(error, notebook.Unreadable)
        refused.append(f"{label} was left out: {error}" if known else f"{label} is not a zip that can be opened.")
        if where:
            yield _Entry(where, modified, None, str(error) if known else "The zip is damaged.",
                         error.status if known else "unreadable")
        return
    if room:
        room["files"] -= len(members)
        room["bytes"] -= archive.size + archive.list_size * (MOST_BYTES // LARGEST_LIST)
    if len(members) > MOST_FILES or room and room["files"] < 0:
        many = (f"holds {len(members):,} files" if len(members) > MOST_FILES
                else f"and others in the same zip hold more than {MOST_FILES:,} files")
        refused.append(f"{label} {many} and was left out.")
        if where:
            yield _Entry(where, modified, problem=f"The zip {many}.")
        return
    name, where = where[-1:], (*where[:-1], _stem(where[-1])) if where else ()
    if name and all(member.is_dir() for member in members):
        yield _Entry(where + name, modified)
    rooms = {}
    for number, member in enumerate(members):
        parts = PurePosixPath(member.filename.replace("\\", "/")).parts
        kind = kind_of(parts[-1]) if parts else ""
        if member.is_dir() or not parts:
            continue
        if ".." in parts or parts[0] == "/" or ":" in parts[0] or stat.S_ISLNK(member.external_attr >> 16):
            refused.append(f"{label}: {member.filename[:100]!r} leads out of the zip and was left out.")
            if where:
                yield _Entry((*where, "a file"), _when(member, zone, modified), problem="A name in the zip leads out of it.")
        elif not kind:
            yield _Entry(where + parts, _when(member, zone, modified))
        elif kind != ".zip":
            yield _Entry(where + parts, _when(member, zone, modified), partial(_read_member, path, (*inside, number)))
        elif len(inside) < 2:
            whole = where + parts  # those of one student, or of a zip of which nobody knows whose it is, share a room
            whose = next((i for i, part in enumerate(whole, 1) if _by_platform(part)), len(where or whole))
            mine = room or rooms.setdefault(whole[:whose], {"zips": MOST_ZIPS, "files": MOST_FILES, "bytes": MOST_BYTES})
            yield from _zip(path, (*inside, number), where + parts, refused, zone, _when(member, zone, modified), mine)
        else:
            refused.append(f"{label}: {member.filename[:100]!r} is a zip in a zip in a zip and was left out.")
            yield _Entry(where + parts, _when(member, zone, modified), problem="The notebook is in a zip in a zip in a zip.")


def _when(member, zone=None, zipped=0.0):
    """When a file in a zip was written: exactly, if the zip says so as most programs do, or to two seconds by the clock of
    the place where it was packed, which is taken to be one of the ``zone``. A zip that has no dates says 1980: then that of
    the zip itself, ``zipped``, or 0."""
    extra = member.extra
    while len(extra) >= 4:
        kind, size = struct.unpack("<HH", extra[:4])
        if kind == EXACT and size >= 5 and len(extra) >= 9 and extra[4] & 1:
            seconds, = struct.unpack("<i", extra[5:9])
            if seconds > 0:
                return float(seconds)
        extra = extra[4 + size:]
    if member.date_time[:3] == NO_DATE:
        return zipped
    try:
        return datetime(*member.date_time, tzinfo=zone).timestamp()
    except (ValueError, OverflowError, OSError):
        return zipped


def _by_platform(name):
    return MOODLE.match(name) or CANVAS.match(name)


def _without_wrapper(entries, assignment):
    """Leave out folders at the top that hold everything, unless they are a student's; and what several downloads of a
    platform lie in. In nbgrader's layout a folder of the assignment lies in the student's."""
    notebooks = [e.parts for e in entries if e.read or e.problem]
    if notebooks and all(len(p) > 1 and _by_platform(p[1]) and not _by_platform(p[0]) for p in notebooks):
        return [_Entry(e.parts[len(e.parts) > 1:], e.modified, e.read, e.problem, e.status) for e in entries]
    while tops := {e.parts[:1] if len(e.parts) > 2 else () for e in entries if e.read or e.problem}:
        top = tops.pop()
        if tops or not top or _by_platform(*top) or all(
                e.parts[1] == assignment for e in entries if (e.read or e.problem) and e.parts[:1] == top):
            break
        entries = [_Entry(e.parts[e.parts[:1] == top and len(e.parts) > 1:], e.modified, e.read, e.problem, e.status)
                   for e in entries]
    return entries


def _student(parts):
    """Whose an entry is, by the first folder or, for a loose file, by its name."""
    first = parts[0] if len(parts) > 1 else _stem(parts[0])
    platform = _by_platform(first)
    if platform and len(MOODLE_ID.findall(first)) < 2:  # else one was written by a student, in a name or a file's
        late = [LATE] if platform.groupdict().get("late") else []
        return Submission(platform["name"], platform["id"], first, notes=late)
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
        student.file, student.modified, student.earlier = "/".join(entries[0].parts), entries[0].modified, []
        return student


def _choose(student, entries, assignment, functions):
    """The newest of the entries that are this assignment: by Canvas' numbers where all have one, else by their times, and
    of one time by the number behind a name that they share."""
    readable, others, problems = [], [], []
    attached = [_attachment(e) for e in entries if e.read or e.problem]
    by_number = len(set(attached)) > 1 and all(attached)

    def age(entry):
        return _attachment(entry) if by_number else 0, entry.modified

    newest = sorted(entries, key=lambda e: (age(e), _ending(e), e.parts), reverse=True)
    notebooks = [entry for entry in newest if entry.read or entry.problem]
    if len(notebooks) > MOST_READ:
        student.notes.append(f"{len(notebooks):,} notebooks were handed in; only the newest {MOST_READ} were looked at.")
    if not notebooks:
        names = [entry.parts[-1] for entry in newest[:3]]
        student.problem = f"There is no notebook, only {', '.join(names)[:200]}.{_remedies(names)}"
        student.file, student.modified = "/".join(newest[0].parts), newest[0].modified
        return student
    room = MOST_BYTES
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
            digest = hashlib.sha256(data).hexdigest()
        except notebook.Unreadable as error:
            problems.append((entry, str(error), error.status))
        except (OSError, MemoryError) as error:
            problems.append((entry, f"The file cannot be read ({type(error).__name__}).", "unreadable"))
        else:
            known = book.assignment or set(functions) & set(notebook.definitions(book.code)) and assignment
            if known == assignment:
                readable.append((entry, digest, book.variant, _work(book, functions)))
            else:
                others.append((entry, digest, book.variant, book.assignment))
    if readable:
        as_new = [one for one in readable if age(one[0]) == age(readable[0][0])]
        endings = [_ending(one[0]) for one in as_new]
        counted = len({(name, *one[0].parts[:-1]) for one, (name, _) in zip(as_new, endings, strict=True)}) == 1 and (
            len(set(endings)) == len(as_new) > 1)
        entry, student.digest, student.variant, _ = as_new[0] if counted else max(as_new, key=lambda one: one[3])
        earlier = [one for one in readable if one[1] != student.digest][:MOST_ATTEMPTS - 1]
        student.earlier = [Submission(student.student, student.id, student.folder, "/".join(other.parts), other.modified,
                                      other.read, digest, variant=variant) for other, digest, variant, _ in earlier]
        if len(readable) > 1:
            which = ("newest" if len(as_new) == 1 and not by_number else
                     f"newest, by Canvas' number {_attachment(entry)} in its name," if len(as_new) == 1 else
                     "newest, by the number at the end of its name," if counted else
                     f"one with most work of the {len(as_new)} newest, which have one time,")
            student.which = f"{len(readable)} notebooks were handed in; the {which} counts: {entry.parts[-1]}."
            student.notes.append(student.which)
        if problems and age(problems[0][0]) > age(entry):
            student.notes.append(f"A newer file could not be read: {problems[0][0].parts[-1]}.")
    elif problems:
        entry, student.problem, student.status = problems[0]
    elif len(others) == 1 and not others[0][3]:  # no id, no known function: the student's only notebook
        entry, student.digest, student.variant, _ = others[0]
    else:
        entry, *_, other = others[0]
        student.problem = f"No notebook of {assignment} was found" + (f", only one of {other}." if other else ".")
    student.file, student.modified, student.read = "/".join(entry.parts), entry.modified, entry.read
    return student


def _attachment(entry):
    """The number that Canvas gave a file, which is higher for what was handed in later; 0 where there is none."""
    found = None if MOODLE.match(entry.parts[0]) else CANVAS.match(entry.parts[0])
    return int(found["file"]) if found and found["file"] and len(found["file"]) < 20 else 0


def _ending(entry):
    """(name, number) of a file that may be called like another and get a number for it, as ``work.ipynb`` and then
    ``work-2.ipynb`` or ``work (2).ipynb``."""
    stem, added = _stem(entry.parts[-1]), re.search(r"\(([0-9]{1,4})\)$", entry.parts[-1])
    found = re.fullmatch(r"(.+?)(?:-([0-9]{1,4})| ?\(([0-9]{1,4})\))", stem, re.DOTALL)
    return (found[1], int(found[2] or found[3])) if found else (stem, int(added[1]) if added else 0)


def _work(book, functions):
    """How much somebody wrote: of these functions and of answers those that are no longer as they were handed out."""
    defined = notebook.definitions(book.code)
    done = sum(not all(notebook.is_stub(tree) for _, tree in defined[name]) for name in functions if name in defined)
    return done + sum(cell.grade_id.startswith("answer-") and cell.source.strip("*_# \n") not in ("", ANSWER)
                      for cell in book.cells)
