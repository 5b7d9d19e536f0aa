"""One page over the assignments of a term, from the folders that ``grade`` wrote: who has what, and which
mistakes stay. Whose work belongs together is said wherever it is not certain."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from classroom import Problem, assignment, batch, collecting, dates, first_few, marks, reports
from classroom.files import write_files
from classroom.grading import FAILED
from classroom.names import MOODLE, words_of


class TermError(Problem):
    """One sentence: why these folders cannot go on one page, and what to do."""


@dataclass
class Work:
    """What one student handed in for one assignment, as one folder has it. ``number``: the platform's, or "";
    ``lasting``: whether it is the student's in every assignment; ``form``: tests and their points, the same for all of an
    assignment that was graded with one version; ``mistakes``: {(misconception, function): hint}; ``version``: of what it
    was graded with."""

    folder: str
    assignment: str
    key: str
    student: str
    number: str
    lasting: bool
    grade: marks.Grade
    status: str
    form: tuple
    mistakes: dict
    version: str


@dataclass
class Student:
    """``works`` of one person, in the order of the folders. ``label``: the newest name, and what tells it
    from others; ``unsure``: whether more of the works may be this person's."""

    works: list
    label: str = ""
    unsure: bool = False

    def of(self, name):
        """The works for the assignment ``name``: more than one is a conflict."""
        return [work for work in self.works if work.assignment == name]


def write_pages(folders, out):
    """Write ``term.html`` and ``term_students.csv`` into ``out``; returns their paths, and sentences on what a teacher
    should look at. ``folders``: those that ``grade`` wrote, in the order of the term; several of one assignment are groups
    of a class. Raises TermError, NothingFound, SheetError."""
    works, notes = read(folders)
    names = list(dict.fromkeys(work.assignment for work in works))
    students, unsure = match(works)
    titles = {name: _title(name) for name in names}
    short = {name: title.partition(" · ")[0] for name, title in titles.items()}
    short = short if len(set(short.values())) == len(names) else titles
    conflicts = [
        f"{student.label}: {short[name]} is in {' and in '.join(work.folder for work in mine)}, and none of them counts "
        "here. Take what should not count from its submissions, and grade these again."
        for name in names for student in students if len(mine := student.of(name)) > 1]
    persisting, gone = mistakes(students, names)
    folders = {name: dict.fromkeys(work.folder for work in works if work.assignment == name) for name in names}
    once = [one.label for one in students if not one.unsure and len({work.assignment for work in one.works}) == 1]
    page = reports.PAGES.get_template("term.html").render(
        title="The term", names=names, titles=titles, short=short, folders=folders, conflicts=conflicts,
        unsure=unsure, notes=notes, students=students, cell=_cell, most={name: _most(works, name) for name in names},
        once=once, by_name=sum(map(_by_name, students)), unmarked=_unmarked(students),
        unjudged=_unjudged(students, names), persisting=persisting, gone=gone)
    pages = {"term.html": page, "term_students.csv": _students_csv(students, names)}
    return write_files(out, pages), conflicts + unsure + notes


def read(folders):
    """The ``Work`` of everybody in the folders, and sentences on what is odd. Raises TermError, NothingFound,
    SheetError."""
    works, notes, seen = [], [], set()
    for folder in map(Path, folders):
        if folder.resolve() in seen:
            raise TermError(f"{folder.as_posix()}/ is named twice: name each folder once.")
        seen.add(folder.resolve())
        works += _read(folder, notes)
    _refuse_the_same_again(works)
    for name in dict.fromkeys(work.assignment for work in works):
        mine = [work for work in works if work.assignment == name]
        if len({work.version for work in mine}) > 1 or len({work.form for work in mine}) > 1:
            places = dict.fromkeys(work.folder for work in mine)
            notes.append(f"{name} was graded with different versions of the course, or different limits, in "
                         f"{' and '.join(places)}: its tests may differ. Grade all with one version.")
    return works, notes


def _read(folder, notes):
    """The ``Work`` of everybody in one folder; sentences on what is odd go into ``notes``."""
    label, works = f"{folder.as_posix()}/", []
    results, about = batch.read(folder)
    sheet, due = marks.read_sheet(folder), dates.read(folder, results)
    for path, result in zip(results.paths, results, strict=False):
        try:
            works.append(_work(result, label, about["assignment"], due.grade_of(result, sheet)))
        except (KeyError, TypeError, AttributeError, ValueError):
            raise TermError(f"{path} is not as grade writes it: delete it, and grade into {label} again.") from None
    if not works:
        raise collecting.NothingFound(f"There are no results in {label}: grade again, or leave it out.")
    if lost := sorted({*about["keys"]} - {work.key for work in works}):
        notes.append(f"{label}: the results of {first_few(lost)} are missing or damaged, and so not here. The same grade "
                     "command makes them again.")
    if strange := marks.unknown(results, sheet):
        notes.append(f"{label}{marks.SHEET} has points for what was not graded: {first_few(strange)}.")
    if others := about.get("others"):
        notes.append(f"{label}: {first_few(others)} were graded there before and not by the last grade, and so are not "
                     "here.")
    return works


def _work(result, label, name, grade):
    form, mistakes_made = tuple((test["grade_id"], test["most"]) for test in result["tests"]), {}
    for test in result["tests"]:
        if test["misconception"]:
            mistakes_made.setdefault((test["misconception"], test["function"]), test["message"].split("\n")[0])
    number, version = str(result["id"] or ""), (result.get("fingerprint") or "").partition(" ")[0]
    # Moodle's number is a student's in one assignment only: the same student has another in the next.
    lasting = bool(number) and not MOODLE.match(result["folder"])
    return Work(label, name, result["key"], str(result["student"]), number, lasting, grade,
                result["status"], form, mistakes_made, version)


def _refuse_the_same_again(works):
    """Two folders of an assignment are two groups of students. Where most are in both, one is a copy, or older."""
    people = defaultdict(set)
    for work in works:
        people[work.assignment, work.folder].add((work.number, work.student))
    for ((name, first), ours), ((other, second), theirs) in combinations(people.items(), 2):
        both, fewer = len(ours & theirs), min(len(ours), len(theirs))
        if other == name and both > fewer / 2:
            raise TermError(
                f"{first} and {second} both hold {name} of the same students ({both} of {fewer}). If it was graded again, "
                "name only the folder that counts; add late work to the other submissions, and grade them all into one "
                "folder.")


def match(works):
    """The ``Student`` of each person, by name, and sentences on those who may be one and are kept apart.

    A number that lasts (Canvas) decides. Otherwise a name decides, as it was collected, if no assignment has
    it twice and no two lasting numbers have it.
    """
    groups = defaultdict(list)
    for work in works:
        if work.lasting:
            groups["number", work.number].append(work)
        elif work.number:
            groups["number and name", work.number, work.student].append(work)
        else:
            groups["file", work.folder, work.key].append(work)
    students, unsure, order = [], [], {id(work): i for i, work in enumerate(works)}
    for joined in _joined(list(groups.values())):
        together = sorted(sum(joined, []), key=lambda work: order[id(work)])
        asked = Counter(name for group in joined for name in {work.assignment for work in group})
        if max(asked.values()) == 1 and len({work.number for work in together if work.lasting}) <= 1:
            students.append(Student(together))
            continue
        apart = [Student(group) for group in joined]
        for one in apart:
            one.unsure = any(_could_be_one(one, other) for other in apart if other is not one)
        students += apart
        if some := [work for student in apart if student.unsure for work in student.works]:
            unsure.append(f"{' / '.join(dict.fromkeys(work.student for work in some))}: "
                          f"{first_few(list(map(_place, some)))}. Who is who cannot be told, so each keeps a line "
                          f"of their own.")
    names = Counter(student.works[-1].student for student in students)
    for student in students:
        name = student.works[-1].student
        student.label = name if names[name] == 1 else f"{name} ({', '.join(map(_place, student.works))})"
    students.sort(key=lambda student: (student.label.casefold(), student.label))
    return students, unsure + _perhaps(students)


def _joined(groups):
    """The groups of works in lists: those in one list have names in common, directly or through others."""
    joined = []
    for group in groups:
        names = {work.student for work in group}
        near = [one for one in joined if any(work.student in names for other in one for work in other)]
        joined = [one for one in joined if not any(one is other for other in near)] + [[*sum(near, []), group]]
    return joined


def _could_be_one(one, other):
    """Whether two with a name in common may be one person: no folder has both, nor two numbers that last."""
    return ({work.student for work in one.works} & {work.student for work in other.works}
            and not {work.folder for work in one.works} & {work.folder for work in other.works}
            and not all(any(work.lasting for work in student.works) for student in (one, other)))


def _place(work):
    return f"{work.folder}" + (f" number {work.number}" if work.number else "")


def _perhaps(students):
    """Sentences on those whose names have the same letters, or who have the same number, and no assignment in
    common."""
    alike = defaultdict(list)
    for student in students:
        for name in {work.student for work in student.works}:
            alike["".join(sorted("".join(words_of(name))))].append(student)
        for number in {work.number for work in student.works if work.number and not work.lasting}:
            alike["number", number].append(student)
    pairs = {}
    for letters, some in alike.items():
        for one, other in combinations(some, 2) if letters else ():
            if not any({getattr(work, what) for work in one.works} & {getattr(work, what) for work in other.works}
                       for what in ("assignment", "student")):
                pairs[one.label, other.label] = one.works[-1], other.works[-1]
                one.unsure = other.unsure = True
    return [f"{first.student} ({_place(first)}) and {second.student} ({_place(second)}) may be the same student; they "
            f"are kept apart." for first, second in pairs.values()]


def _by_name(student):
    """Whether nothing but the name put this student's works together."""
    numbers = {(work.lasting, work.number) for work in student.works}
    return len(student.works) > 1 and (len(numbers) > 1 or not student.works[0].number)


def mistakes(students, names):
    """What the checkers recognised in more than one assignment, or in the newest, what most made again first;
    and the number of other mistakes. Dicts with ``mistake``, ``who`` (labels of the students), ``again``
    (those who made it in more than one assignment), ``newest`` (how many made it there) and ``places``
    (assignment, function, how many students, hint)."""
    made, hints = defaultdict(lambda: defaultdict(set)), {}
    for student in students:
        for work in student.works:
            for (mistake, function), hint in work.mistakes.items():
                made[mistake][work.assignment, function].add(student.label)
                hints.setdefault((work.assignment, mistake, function), hint)
    rows = []
    for mistake, places in made.items():
        inside = defaultdict(set)
        for (name, _), who in places.items():
            inside[name] |= who
        if len(inside) == 1 and names[-1] not in inside:
            continue
        times = Counter(label for who in inside.values() for label in who)
        order = sorted(places, key=lambda place: (names.index(place[0]), place[1]))
        rows.append({"mistake": mistake, "who": sorted(times), "newest": len(inside.get(names[-1], ())),
                      "again": sorted(label for label, n in times.items() if n > 1),
                      "places": [(name, function, len(places[name, function]), hints[name, mistake, function])
                                 for name, function in order]})
    rows.sort(key=lambda row: (-len(row["again"]), -row["newest"], -len(row["who"]), row["mistake"]))
    return rows, len(made) - len(rows)


def _title(name):
    try:
        return assignment.load(name).title
    except assignment.AssignmentError:  # graded when there was one
        return name


def _most(works, name):
    """The points that an assignment has for most students."""
    return Counter(work.grade.most for work in works if work.assignment == name).most_common(1)[0][0]


def _cell(student, name):
    """(points or None, most or None, why there are none, in two or three words)."""
    mine = student.of(name)
    if not mine:
        return None, None, "?" if student.unsure else "–"
    if len(mine) > 1:
        return None, None, "in two folders" if len(mine) == 2 else f"in {len(mine)} folders"
    grade = mine[0].grade
    if grade.total is not None:
        return grade.total, grade.most, ""
    if mine[0].status in FAILED:
        return None, grade.most, mine[0].status
    return None, grade.most, ", ".join(dict.fromkeys(row.status for row in grade.rows if row.points is None))


def _open_tests(work):
    """Whether something has no points that a checker should have judged."""
    return work.grade.total is None and (work.status in FAILED or any(
        row.points is None and row.status in FAILED for row in work.grade.rows))


def _unjudged(students, names):
    return [(student.label, name, work.grade.reason, work.folder) for student in students for name in names
            for work in student.of(name) if _open_tests(work)]


def _unmarked(students):
    """{folder: how many wait for nothing but marks for their written answers}."""
    return Counter(work.folder for student in students for work in student.works
                   if work.grade.total is None and not _open_tests(work))


def _students_csv(students, names):
    columns = ("", " of", " blank because", " id", " folder", " mistakes")
    lines = [("student", *(name + column for name in names for column in columns))]
    for student in students:
        line = [student.label]
        for name in names:
            mine = student.of(name)
            points, most, why = _cell(student, name)
            if not mine:
                why = "could not be matched" if student.unsure else "not handed in"
            elif len(mine) == 1:
                why = mine[0].grade.reason
            made = [f"{function}: {mistake}" for work in mine for mistake, function in work.mistakes]
            lists = [work.number for work in mine], [work.folder for work in mine], made
            line += [marks.number(points), marks.number(most), why]
            line += ["; ".join(dict.fromkeys(values)) for values in lists]
        lines.append(line)
    return "\ufeff" + marks.csv_text(lines)
