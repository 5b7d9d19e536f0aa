"""Grades in the form that a learning platform reads. A grade that is not complete is blank and has its reason."""

import io
import json
import re
import time
import zipfile
from pathlib import Path

from helpers.classroom import assignment, batch, marks
from helpers.files import write_whole

FORMATS = ("csv", "canvas", "moodle", "gradescope")


class Mismatch(Exception):
    """One sentence: why the platform's own file cannot be filled in."""


def export(out, style, into=None, column=None):
    """Write the grades of ``out`` in ``style`` (one of FORMATS); returns the paths written and how many are blank.

    ``into``: a gradebook or grading worksheet that the platform gave; a copy with the grades filled in is written.
    ``column``: its column for the grade. Raises Mismatch, SheetError.
    """
    results, about = batch.read(out)
    sheet = marks.read_sheet(out)
    grades = [(result, marks.grade_of(result, sheet)) for result in results]
    blank = sum(grade.total is None for _, grade in grades)
    title = assignment.load(about["assignment"]).title
    if into:
        return [_fill(Path(out), style, Path(into), column or ("Grade" if style == "moodle" else title), grades)], blank
    writer = {"csv": _csv, "canvas": _canvas, "moodle": _moodle, "gradescope": _gradescope}[style]
    return writer(Path(out), title, grades), blank


def _points(value):
    return "" if value is None else f"{value:g}"


def _csv(out, title, grades):
    items = list(dict.fromkeys(row.item for _, grade in grades for row in grade.rows if row.item != marks.EVERYTHING))
    lines = [("student", "id", "file", "handed in", "status", "points", "of", "blank because", *items)]
    for result, grade in grades:
        by_item = {row.item: _points(row.points) for row in grade.rows}
        lines.append((result["student"], result["id"], result["file"], batch.when(result["modified"]), result["status"],
                      _points(grade.total), _points(grade.most), grade.reason, *(by_item.get(item, "") for item in items)))
    return [_write(out / "grades.csv", lines)]


def _canvas(out, title, grades):
    lines = [("Student", "ID", "SIS User ID", "SIS Login ID", "Section", title),
             ("    Points Possible", "", "", "", "", _points(max((g.most for _, g in grades), default=0)))]
    lines += [(result["student"], result["id"], "", "", "", _points(grade.total)) for result, grade in grades]
    return [_write(out / "canvas.csv", lines)]


def _moodle(out, title, grades):
    """The grading worksheet, and a zip with everybody's feedback page for "Upload multiple feedback files"."""
    now = time.strftime("%A, %d %B %Y, %I:%M %p")
    lines = [("Identifier", "Full name", "Grade", "Maximum Grade", "Last modified (grade)", "Feedback comments")]
    lines += [(f"Participant {result['id']}" if result["id"] else "", result["student"], _points(grade.total),
               _points(grade.most), now,
               f"Not graded yet: {grade.reason}" if grade.total is None else "See the feedback file.")
              for result, grade in grades]
    paths = [_write(out / "moodle.csv", lines)]
    pages = [(result, out / "feedback" / f"{result['key']}.html") for result, _ in grades]
    if any(page.exists() for _, page in pages):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for result, page in pages:
                if page.exists():
                    folder = re.sub(r"[^\w .-]+", "_", result["folder"] or result["key"]).strip(". ") or result["key"]
                    archive.writestr(f"{folder}/feedback.html", page.read_bytes())
        (out / "moodle_feedback.zip").write_bytes(buffer.getvalue())
        paths.append(out / "moodle_feedback.zip")
    return paths


def _gradescope(out, title, grades):
    """One results.json for each student, as an autograder leaves it. No scores where the grade is not complete."""
    folder = out / "gradescope" / "results"
    folder.mkdir(parents=True, exist_ok=True)
    for result, grade in grades:
        tests = [{"name": row.item, "max_score": row.most, "output": row.message or row.comment,
                  **({} if grade.total is None else {"score": row.points})} for row in grade.rows]
        answer = {"output": f"Not graded yet: {grade.reason}" if grade.total is None else "", "tests": tests}
        write_whole(folder / f"{result['key']}.json", json.dumps(answer, indent=1))
    return [folder]


def _fill(out, style, into, column, grades):
    """A copy of the platform's own file with our grades in ``column``; what we leave blank stays as it is there."""
    rows = marks.read_csv(into)
    columns = list(rows[0]) if rows else []
    found = [name for name in columns if name == column] or [name for name in columns if name and name.startswith(column)]
    if not found:
        raise Mismatch(f"{into} has no column {column!r}; name one with --column: {', '.join(map(str, columns))[:300]}.")
    number = columns[0] if style == "moodle" else "ID"
    by_id = {result["id"]: grade for result, grade in grades if result["id"]}
    names = [_words(result["student"]) for result, _ in grades]
    by_name = {_words(result["student"]): grade for result, grade in grades
               if not result["id"] and names.count(_words(result["student"])) == 1}
    filled = 0
    for row in rows:
        digits = re.search(r"\d+", row.get(number) or "")
        name = _words(row.get("Full name") or row.get("Student") or "")
        grade = by_id.get(digits[0] if digits else None) or by_name.get(name)
        if grade and grade.total is not None:
            row[found[0]] = _points(grade.total)
            filled += 1
    if not filled and any(grade.total is not None for _, grade in grades):
        raise Mismatch(f"No student of {into} is among those graded: neither the numbers nor the names agree.")
    return _write(out / f"{style}_filled.csv", [columns, *([row[c] for c in columns] for row in rows)], guard=False)


def _words(name):
    """The words of a name in any order: "Lovelace, Ada" and "Ada Lovelace" agree."""
    return tuple(sorted(re.findall(r"[^\W\d_]+", name.casefold())))


def _write(path, lines, guard=True):
    write_whole(path, ("\ufeff" if path.name == "grades.csv" else "") + marks.csv_text(lines, guard))
    return path
