"""From results to grades: the sheet on which a person marks, and the sum. What has no points stays blank, never 0."""

import csv
import io
import re
from dataclasses import dataclass
from pathlib import Path

from classroom import Problem
from classroom.grading import FAILED
from helpers.files import write_whole

SHEET = "to_mark.csv"
COLUMNS = ("key", "student", "item", "why", "text", "most", "points", "comment")
FORMULA = "=+@\uff1d\uff0b\uff0d\uff20\\-"  # what a formula begins with, wide forms included, for a regular expression
CHANGED = "CHANGED since it was marked:"
EVERYTHING = "everything"  # the item that stands for a submission of which nothing could be judged


class SheetError(Problem):
    """One sentence: what cannot be read in the sheet, and where."""


@dataclass
class Row:
    """One line of a grade: ``points`` is None where nobody has said."""

    item: str
    most: float
    points: float | None
    status: str
    message: str = ""
    comment: str = ""


@dataclass
class Grade:
    """``total`` is None as long as a row has no points; ``reason`` says which."""

    total: float | None
    most: float
    reason: str
    rows: list


def grade_of(result, sheet):
    """The ``Grade`` of a result, with the points and comments of a person from ``read_sheet``."""
    rows = [Row(t["grade_id"], t["most"], t["points"], t["status"], t["message"]) for t in result["tests"]]
    rows += [Row(a["grade_id"], a["most"], None, "not marked yet", a["text"] or "") for a in result["answers"]]
    for row in rows:
        points, row.comment = sheet.get((result["key"], row.item), (None, ""))
        if points is not None:
            row.points, row.status = points, row.status if row.status in FAILED else "marked"
    most = sum(row.most for row in rows)
    total, comment = sheet.get((result["key"], EVERYTHING), (None, ""))
    if total is not None:
        return Grade(total, most, "", [Row(EVERYTHING, most, total, "marked", result["reason"], comment)])
    blank = [row for row in rows if row.points is None]
    if result["status"] in FAILED and blank:
        return Grade(None, most, f"{result['status']}: {result['reason']}", rows)
    reason = "; ".join(f"{row.item.removeprefix('test-')}: {row.status}" for row in blank)
    return Grade(None if blank else sum(row.points for row in rows), most, reason, rows)


def write_sheet(results, out):
    """Write ``to_mark.csv``: written answers, and what could not be judged. Points and comments in it are kept."""
    known, old = read_sheet(out), _texts(out)
    lines, written = [], set()
    for result in results:
        if result["status"] in FAILED:
            most = sum(item["most"] for item in (*result["tests"], *result["answers"]))
            items = [(EVERYTHING, f"{result['status']}: {result['reason']}", "", most)]
        else:
            items = [(t["grade_id"], f"{t['status']}: {t['message']}", "", t["most"])
                     for t in result["tests"] if t["points"] is None]
            items += [(a["grade_id"], a["question"], a["text"] or "(no answer was found: look in the notebook)", a["most"])
                      for a in result["answers"]]
        for item, why, text, most in items:
            points, comment = known.get((result["key"], item), (None, ""))
            before = old.get((result["key"], item))
            if points is not None and before and _letters(before) != _letters(text):
                why = f"{CHANGED} {why}"
            written.add((result["key"], item))
            lines.append((result["key"], result["student"], item, why, text, most, _number(points), comment))
    lines.sort(key=lambda line: (line[2] != EVERYTHING, line[2], line[1]))  # all answers to one question together
    lines += [(key, "", item, "", "", "", _number(points), comment)  # rows that a person added
              for (key, item), (points, comment) in known.items() if (key, item) not in written]
    write_whole(Path(out) / SHEET, "\ufeff" + csv_text([COLUMNS, *lines]))
    return Path(out) / SHEET


def read_sheet(out):
    """{(key, item): (points or None, comment)} of the sheet; {} when there is none. Raises SheetError."""
    path = Path(out) / SHEET
    if not path.exists():
        return {}
    rows, marked = read_csv(path), {}
    if not rows or not {"key", "item", "points"} <= set(rows[0]):
        raise SheetError(f"{path} has no columns key, item and points in its first line.")
    for line, row in enumerate(rows, start=2):
        item, most = f"{row.get('student') or row['key']}, {row['item']}", row.get("most")
        text = (row["points"] or "").strip().replace(",", ".")
        try:
            points = float(text) if text else None
            fits = points is None or 0 <= points <= (float(most.replace(",", ".")) if most else 1000)
        except ValueError:
            raise SheetError(f"{path}, entry {line - 1} ({item}): {row['points']!r} is not a number of points.") from None
        if not fits:
            raise SheetError(f"{path}, entry {line - 1} ({item}): {row['points']} points, and it has {most} at most.")
        comment = _unguarded(row.get("comment") or "")
        if points is not None or comment:
            marked[_unguarded(row["key"]), row["item"]] = points, comment
    return marked


def read_csv(path):
    """The rows of a CSV file as a spreadsheet may have saved it: commas, semicolons or tabs, UTF-8 or Windows."""
    data = Path(path).read_bytes()
    try:
        text = data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("cp1252", errors="replace")
    first = re.split("[\r\n]", text, maxsplit=1)[0]
    separator = max(",;\t", key=first.count)
    csv.field_size_limit(10_000_000)
    try:
        return list(csv.DictReader(io.StringIO(text, newline=""), delimiter=separator))
    except csv.Error as error:
        raise SheetError(f"{path} cannot be read as CSV ({error}): save it as CSV, UTF-8, from the spreadsheet.") from None


def csv_text(lines, guard=True):
    """Lines as CSV. With ``guard``, text that a spreadsheet would take for a formula gets an apostrophe in front."""
    buffer = io.StringIO()
    lines = [[_guarded(value) for value in line] for line in lines] if guard else lines
    csv.writer(buffer, lineterminator="\r\n").writerows(lines)
    return buffer.getvalue()


def _guarded(value):
    """Text that begins a cell with a formula gets an apostrophe. A spreadsheet set to another separator begins cells
    after semicolons, tabs and line ends as well: there a blank is enough."""
    if not isinstance(value, str):
        return value
    value = re.sub(rf"([;\t\r\n])(?=[{FORMULA}])", r"\1 ", value)
    return "'" + value if re.match(rf"[{FORMULA}\t\r]", value) else value


def _unguarded(text):
    return text[1:] if re.match(f"'[{FORMULA}]", text) else text


def _texts(out):
    """{(key, item): text} of the sheet as it stands."""
    path = Path(out) / SHEET
    rows = read_csv(path) if path.exists() else []
    return {(_unguarded(row["key"] or ""), row["item"]): row.get("text") or "" for row in rows}


def _letters(text):
    return re.sub(r"[\s']+", "", text)


def unknown(results, sheet):
    """What the sheet has for students or items that the results do not have, in words."""
    there = {(result["key"], item) for result in results for item in
             (EVERYTHING, *(i["grade_id"] for i in (*result["tests"], *result["answers"])))}
    return [f"{key}, {item}" for (key, item), (points, _) in sheet.items()
            if points is not None and (key, item) not in there]


def _number(points):
    return "" if points is None else f"{points:g}"
