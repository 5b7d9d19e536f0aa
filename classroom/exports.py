"""Grades in the form that a learning platform reads. A grade that is not complete is blank and has its reason."""

import html
import io
import json
import re
import zipfile
from datetime import datetime
from pathlib import Path

from classroom import Problem, assignment, batch, dates, first_few, marks, worksheets
from classroom.names import name_for_people, page_of, platform_of, words_of
from classroom.roster import NOBODY, alone, keys_of, people_in
from helpers.store.files import write_whole

PAGE_TEXT = re.compile(r"</(h1|h2|p|div|section|pre|li)>|<br>")  # ends of lines in a page of feedback
MOODLE_DATE = "%A, %d %B %Y, %I:%M %p"
FORMATS = ("csv", "canvas", "moodle")


class Mismatch(Problem):
    """One sentence: why the platform's own file cannot be filled in."""


def export(out, style, into=None, column=None):
    """Write the grades of ``out`` in ``style`` (one of FORMATS); returns the paths written, how many grades are blank,
    and sentences on what a teacher should look at.

    ``into``: a gradebook or grading worksheet that the platform gave; a copy with the grades filled in is written.
    ``column``: its column for the grade. Raises Mismatch, SheetError.
    """
    out = Path(out)
    results, about = batch.read(out)
    sheet = marks.read_sheet(out)
    due = dates.read(out, results)
    grades = [(result, due.grade_of(result, sheet)) for result in results]
    title, notes = assignment.load(about["assignment"]).title, [f"All dates are by the clock of {due.zone}."] * bool(due.due)
    if lost := marks.unknown(results, sheet):
        notes.append(f"{marks.SHEET} has points for what was not graded: {first_few(lost)}.")
    numbers = {result["key"]: number for result, _ in grades if (number := _number(result, style))}
    if into and style not in ("canvas", "moodle"):
        raise Mismatch(f"--into is for the formats canvas and moodle: {style} has no file to fill in. Leave it out.")
    if into:
        wanted = [column] if column else ["Grade"] if style == "moodle" else [title, title.partition(" · ")[0]]
        paths = [_fill(out, style, Path(into), wanted, grades, numbers, notes)]
    else:
        write = {"csv": _csv, "canvas": _canvas, "moodle": _moodle}[style]
        paths = [write(out, title, grades, due)]
    if style == "moodle":
        named = {key: (moodle_folder(result["student"], numbers[key]), "feedback.html")
                 for result in results if (key := result["key"]) in numbers}
    if style == "canvas":
        named = {result["key"]: _canvas_name(result) for result in results
                 if platform_of(result["id"], result["folder"]) == "canvas" and result["key"] in numbers}
    paths += _feedback(out, style, named, results, notes) if style != "csv" else []
    if blank := [result["student"] for result, grade in grades if grade.total is None]:
        notes.append(f"Blank, because points are missing: {'; '.join(blank)}.")
    return paths, len(blank), notes


def _csv(out, title, grades, due):
    items = list(dict.fromkeys(row.item for _, grade in grades for row in grade.rows if row.item != marks.EVERYTHING))
    lines = [("student", "id", "key", "file", f"handed in ({due.zone})", "status", "points", "maximum", "blank because",
              *items)]
    for result, grade in grades:
        by_item = {row.item: marks.number(row.points) for row in grade.rows}
        lines.append((*(result[name] for name in ("student", "id", "key", "file")), due.shown(result), result["status"],
                      marks.number(grade.total), marks.number(grade.most), grade.reason,
                      *(by_item.get(item, "") for item in items)))
    return _write(out / "grades.csv", lines)


def _canvas(out, title, grades, due):
    lines = [("Student", "ID", "SIS User ID", "SIS Login ID", "Section", title),
             ("    Points Possible", "", "", "", "", marks.number(max((g.most for _, g in grades), default=0)))]
    lines += [(result["student"], result["id"], "", "", "", marks.number(grade.total)) for result, grade in grades]
    return _write(out / "canvas.csv", lines)


def _moodle(out, title, grades, due):
    """The grading worksheet."""
    now = f"{datetime.now(due.zone):{MOODLE_DATE}}"
    lines = [("Identifier", "Full name", "Grade", "Maximum grade", "Last modified (grade)", "Feedback comments")]
    lines += [(f"Participant {result['id']}" if result["id"] else "", result["student"], marks.number(grade.total),
               marks.number(grade.most), now,
               f"Not graded yet: {grade.reason}" if grade.total is None else "See the feedback file.")
              for result, grade in grades]
    return _write(out / "moodle.csv", lines)


def _feedback(out, style, named, results, notes):
    """A zip of everybody's feedback page, for a platform to hand out. ``named``: {key: (folder or "", file)} as the platform
    wants them: ``KINDS`` says what a file of this kind gets."""
    missing, other, sheet, pages, files = [], [], out / marks.SHEET, [], {}
    for result in results:
        page = out / "feedback" / page_of(result)
        if not page.exists() or result["key"] not in named:
            missing.append(result["student"])
            continue
        pages.append(page.stat().st_mtime)
        folder, file = named[result["key"]]
        kind = Path(file).suffix.lower()
        if kind in KINDS:
            files[f"{folder}/{file}" if folder else file] = KINDS[kind](page.read_bytes())
        else:
            other.append(f"{result['student']} ({kind or 'no ending'})")
    if pages and sheet.exists() and min(pages) < sheet.stat().st_mtime:
        notes.append(f"{marks.SHEET} is newer than the feedback pages in the zip: run feedback, then export again.")
    if missing and (pages or style == "moodle"):
        notes.append(f"Not in the zip of feedback, because they have no page (run feedback first) or their number in "
                     f"{style.capitalize()} is not known: {first_few(missing)}.")
    if other:
        notes.append(f"Not in the zip of feedback, because {style.capitalize()} names our file as theirs, and no page is of "
                     f"that kind: {first_few(other)}. Send these pages yourself.")
    if not pages:
        return []
    write_whole(out / f"{style}_feedback.zip", _zip(files))
    return [out / f"{style}_feedback.zip"]


def moodle_folder(student, number):
    """A folder of "Upload multiple feedback files in a zip": Moodle reads whose it is from
    NAME_NUMBER_assignsubmission_file_, and a name with an underscore would hide the number."""
    name = " ".join(re.sub(r"[^\w .-]|_", " ", student[:100]).split()).strip(" .") or "student"
    return f"{name}_{number}_assignsubmission_file_"


def moodle_handout(out, name, students):
    """A zip with everybody's own notebook, from the folders that release wrote: its path, or None where Moodle's numbers are
    not known. ``students``: (name on the list, ``Person``) of each."""
    students = [(student, person) for student, person in students if person.moodle]
    if not students:
        return None
    write_whole(out / f"{name}-moodle.zip", _zip({
        f"{moodle_folder(person.name, person.moodle)}/{name}.ipynb":
        (out / name / name_for_people(student) / f"{name}.ipynb").read_bytes() for student, person in students}))
    return out / f"{name}-moodle.zip"


def _canvas_name(result):
    """("", the name that Canvas gave the file): by it Canvas knows whose it is, and it gives the student our file under the
    name of theirs, so it has to be a file of the same kind. What is in a zip is known by the zip's name."""
    first, inside, _ = result["file"].partition("/")
    return "", f"{first}.zip" if inside else first


def _text(page):
    """The text of a page."""
    text = PAGE_TEXT.sub("\n", page.decode().partition("<body")[2].partition(">")[2])
    text = html.unescape(re.sub(r"<[^>]*>", "", text))
    return (re.sub(r"\n\s*\n+", "\n\n", text).strip() + "\n").encode()


def _notebook(page):
    """The text of a page as a notebook of one cell, in which nothing is markup."""
    lines = [f"    {line.rstrip()}" for line in _text(page).decode().strip().split("\n")]
    cell = {"cell_type": "markdown", "id": "feedback", "metadata": {}, "source": "# Feedback\n\n" + "\n".join(lines)}
    return json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1).encode()


def _zip(files):
    """A zip with these files, name -> contents."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, contents in files.items():
            archive.writestr(name, contents)
    return buffer.getvalue()


KINDS = {".html": bytes, ".htm": bytes, ".ipynb": _notebook, ".zip": lambda page: _zip({"feedback.html": page}),
         **dict.fromkeys((".txt", ".md", ".py"), _text)}


def _fill(out, style, into, wanted, grades, numbers, notes):
    """A copy of the platform's own file with our grades in the column of one of the names ``wanted``, the first that it
    has; what we leave blank stays as it is there. The numbers that it has for students whose number is not known yet are
    added to ``numbers``."""
    lines = people_in(into, nameless=True)
    rows = [row for row, _ in lines]
    columns = worksheets.columns(rows)
    by_place = style == "moodle" and worksheets.grade(rows)
    if by_place and wanted == ["Grade"]:
        column = by_place[0]
        notes.append(f"The grades are in the column {column!r}; to have them in another one, say --column.")
    else:
        column = _column(into, columns, wanted)
    people = [[person.name, person.email, person.login, row.get("SIS User ID") or ""] for row, person in lines]
    if style == "moodle" and (groups := _groups(grades, rows, columns[2:columns.index(column)])):
        raise Mismatch(f"{into} says in its column {groups!r} who is in which group, and each group was graded as one "
                       f"person: give grade --roster {into}, and then this command again.")
    digits = [getattr(person, style) for _, person in lines]
    owners, strangers = _owners(style, [result for result, _ in grades], digits, people)
    totals = {result["key"]: grade.total for result, grade in grades}
    maximum = by_place[1] if by_place else None
    numbers_there = [(row[name] or "").strip() for row in rows for name in (column, maximum) if name]
    point = "," if any(re.fullmatch(r"\d+,\d+", number) for number in numbers_there) else "."
    filled, ungraded = 0, []
    for row, words, number, key, stranger in zip(rows, people, digits, owners, strangers, strict=True):
        if stranger:
            notes.append(f"The file of {stranger['student']} has the number {number}, which is another person's in "
                         f"{into}, {words[0]}: nobody's line is filled in with these points. Find out whose they are.")
            numbers.pop(stranger["key"], None)
        if style == "canvas" and words[0].split() == ["Points", "Possible"]:
            _compare_most(into, row[column], grades, notes)
        elif key:
            if number:
                numbers.setdefault(key, number)
            _compare_most(into, row[maximum] if maximum else None, grades, notes)
            if totals[key] is not None:
                row[column] = marks.number(totals[key]).replace(".", point)
                filled += 1
        elif any(words) and words_of(words[0]) not in NOBODY:
            ungraded.append(next(filter(None, words)))
    if not filled and any(total is not None for total in totals.values()):
        raise Mismatch(f"No student of {into} is among those graded: neither the numbers nor the names agree. Give the file "
                       "of this assignment and this class, or grade with --roster and that file.")
    there = {*owners, *(stranger["key"] for stranger in strangers if stranger)}
    if missing := [result["student"] for result, _ in grades if result["key"] not in there]:
        notes.append(f"Not in {into}, so not filled in: {first_few(missing)}.")
    if ungraded:
        notes.append(f"In {into} and not among those graded, so their cell stays as it is: {'; '.join(ungraded)}.")
    return _write(out / f"{style}_filled.csv", [columns, *([row[c] for c in columns] for row in rows)], guard=False)


def _groups(grades, rows, columns):
    """The column of Moodle's worksheet in which most stand who were graded, so that they are groups; or None."""
    graded = {words_of(result["student"]) for result, _ in grades if not result.get("person")}
    there = {column: graded & {words_of(row[column] or "") for row in rows} for column in columns}
    return next((column for column, some in there.items() if len(some) > len(graded) / 2), None)


def _column(into, columns, wanted):
    """The column of the platform's file for the grade, also with a number in brackets behind. Raises Mismatch."""
    exact = ([name for name in columns if re.fullmatch(rf"{re.escape(column)}{number}", name)]
             for column in wanted for number in ("", r" \(\d+\)"))
    names = next(filter(None, exact), None) or [name for name in columns if name.startswith(wanted[0])]
    if len(names) != 1:
        raise Mismatch(f"{into} has {'several columns' if names else 'no column'} {wanted[0]!r}; name one with --column: "
                       f"{', '.join(names or columns)[:300]}.")
    return names[0]


def _owners(style, results, digits, people):
    """Whose each row is: keys, by the row's number or by a name that it alone has (as full name, login, number at the
    school or e-mail address), or None; and the result, or None, whose number the row has with another person's name."""
    keys = [set().union(*map(keys_of, words)) for words in people]
    by_number = {number: result for result in results if (number := _number(result, style))}
    named = [(result["key"], set().union(*map(keys_of, _called(result)))) for result in results
             if not _number(result, style)]
    by_name = {row: key for key, row in alone(named, list(enumerate(keys)))}
    owners, strangers, every = [], [], set().union(*keys)
    for row, (number, words) in enumerate(zip(digits, people, strict=True)):
        result = by_number.get(number)
        agree = result and _agree(result, style, words, every)
        owners.append(result["key"] if agree else by_name.get(row))
        strangers.append(None if agree else result)
    return owners, strangers


def _number(result, style):
    """The platform's number of a student, as the submission or the list of students has it."""
    return result["id"] or (result.get("person") or {}).get(style, "")


def _agree(result, style, words, every):
    """Whether a submission may fill the row that has its number: ``words`` of the row, such as the name, have to be those of
    the person that ``grade`` found, unless the list of students has this number for them and no row has their name.
    ``every``: the keys of all rows."""
    person, mine = result.get("person") or {}, set().union(*map(keys_of, _called(result)))
    listed = person.get(style) == _number(result, style) and not mine & every
    return not person or not any(words) or listed or bool(mine & set().union(*map(keys_of, words)))


def _called(result):
    """What a student is called: name, e-mail address, login."""
    person = result.get("person") or {}
    return [word for word in (person.get("name") or result["student"], person.get("email"), person.get("login")) if word]


def _compare_most(into, maximum, grades, notes):
    """Tell once when the platform counts out of another number of points than the assignment."""
    most = max((grade.most for _, grade in grades), default=0)
    note = f"{into} says {maximum} points at most and this assignment has {most:g}: set that on the platform first."
    try:
        if float((maximum or "").replace(",", ".")) != most and note not in notes:
            notes.append(note)
    except ValueError:
        pass  # "(read only)", or a scale


def _write(path, lines, guard=True):
    write_whole(path, ("\ufeff" if path.name == "grades.csv" else "") + marks.csv_text(lines, guard))
    return path
