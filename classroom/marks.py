"""From results to grades: the sheet on which a person marks, and the sum. What has no points stays blank, never 0."""

import csv
import hashlib
import io
import re
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from classroom import Problem
from classroom.grading import FAILED
from helpers.store.files import write_whole

SHEET = "to_mark.csv"
COLUMNS = ("key", "student", "item", "why", "text", "most", "points", "comment", "version")
FORMULA = "=+@\uff1d\uff0b\uff0d\uff20\\-"  # what a formula begins with, wide forms included, for a regular expression
NUMBER = re.compile(r"-?([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?", re.IGNORECASE)  # which is no formula
CHANGED = "CHANGED since it was marked:"
EVERYTHING = "everything"  # the item that stands for a submission of which nothing could be read
CODE = "code"  # the item that stands for all tests, where no code could be judged and the answers can be read
TWO = "TWO MARKERS:"  # what an item begins with to which two sheets give other points


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
    detail: str = ""
    name: str = ""  # for people, where the item is not enough


@dataclass
class Grade:
    """``total`` is None as long as a row has no points; ``reason`` says which."""

    total: float | None
    most: float
    reason: str
    rows: list

    @property
    def known(self):
        """The points that there are so far."""
        return sum(row.points for row in self.rows if row.points is not None)


def grade_of(result, sheet):
    """The ``Grade`` of a result, with the points and comments of a person from ``read_sheet``."""
    rows = [Row(t["grade_id"], t["most"], t["points"], t["status"], t["message"], detail=t.get("detail", ""),
                name=t.get("words", ""))
            for t in result["tests"]]
    points, comment = _given(sheet, result, CODE)
    if result["status"] in FAILED and (points is not None or comment):
        rows = [Row(CODE, sum(row.most for row in rows), None, result["status"], result["reason"])]
    rows += [Row(a["grade_id"], a["most"], 0 if a.get("untouched") else None,
                 "not started" if a.get("untouched") else "not marked yet", a["text"] or "") for a in result["answers"]]
    for row in rows:
        points, row.comment = _given(sheet, result, row.item)
        if points is not None:
            row.points, row.status = points, row.status if row.status in FAILED else "marked"
    most = sum(row.most for row in rows)
    total, comment = _given(sheet, result, EVERYTHING)
    if total is not None:
        return Grade(total, most, "", [Row(EVERYTHING, most, total, "marked", result["reason"], comment)])
    blank = [row for row in rows if row.points is None]
    if result["status"] in FAILED and any(row.item.startswith("test-") or row.item == CODE for row in blank):
        return Grade(None, most, f"{result['status']}: {result['reason']}", rows)
    reason = "; ".join(f"{row.item.removeprefix('test-')}: {row.status}" for row in blank)
    return Grade(None if blank else sum(row.points for row in rows), most, reason, rows)


def _given(sheet, result, item):
    """Points and comment: of a student's own line, or of that of their team, which is marked once."""
    return sheet.get((result["key"], item)) or sheet.get((result.get("team"), item), (None, ""))


def to_mark(result):
    """What of a result waits for a person: (item, why, text, most) of each. An answer that was left as it was handed out
    is 0 by itself and does not wait, nor does what the first of a team has too."""
    if result.get("team") not in (None, "", result["key"]):
        return []
    tests, answers = result["tests"], result["answers"]
    seen = result["status"] not in ("unreadable", "refused") and any(
        answer["text"] or answer.get("untouched") for answer in answers)
    if result["status"] in FAILED and not seen:
        return [(EVERYTHING, f"{result['status']}: {result['reason']}", "", sum(i["most"] for i in (*tests, *answers)))]
    if result["status"] in FAILED:
        items = [(CODE, f"{result['status']}: {result['reason']}", "", sum(test["most"] for test in tests))]
    else:
        items = [(t["grade_id"], f"{t['status']}: {t['message']}", "", t["most"]) for t in tests if t["points"] is None]
    return items + [(a["grade_id"], a["question"], a["text"] or "(no answer was found: look in the notebook)", a["most"])
                    for a in answers if not a.get("untouched")]


def write_sheet(results, out):
    """Write ``to_mark.csv``: written answers, and what could not be judged. Points and comments in it are kept."""
    marked, path = read_sheet(out), Path(out) / SHEET
    old = {place(row): (row.get("why") or "", row.get("version")) for row in (read_csv(path) if path.exists() else [])}
    lines, written = [], set()
    for result in results:
        for item, why, text, most in to_mark(result):
            points, comment = marked.get((result["key"], item), (None, ""))
            old_why, version = old.get((result["key"], item), ("", ""))
            other = version and version != version_of(text)
            if points is not None and (other or old_why.startswith(CHANGED)):  # until a person takes the word away
                why = f"{CHANGED} {why}"
            elif points is None and old_why.startswith(TWO):
                why = old_why
            written.add((result["key"], item))
            lines.append((result["key"], result["student"], item, why, text, most, number(points), comment,
                          version_of(text)))
    lines.sort(key=lambda line: (line[2] not in (EVERYTHING, CODE), line[2], line[1]))  # all answers to a question together
    lines += [(key, "", item, "", "", "", number(points), comment, "")  # rows that a person added
              for (key, item), (points, comment) in marked.items() if (key, item) not in written]
    write_whole(path, "\ufeff" + csv_text([COLUMNS, *lines]))
    return path


def write_rows(path, rows):
    """Write lines of the sheet, dicts, with further columns that a person added."""
    columns = [*COLUMNS, *(c for c in (rows[0] if rows else ()) if c and c not in COLUMNS)]
    lines = [[row.get(column) or "" for column in columns] for row in rows]
    write_whole(path, "\ufeff" + csv_text([columns, *lines]))


def version_of(text):
    """Letters that stand for a text, and that no spreadsheet and no encoding changes."""
    return "v" + hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8]


def read_sheet(out, name=SHEET):
    """{(key, item): (points or None, comment)} of the sheet; {} when there is none. Raises SheetError."""
    path = Path(out) / name
    if not path.exists():
        return {}
    rows, marked = read_csv(path), {}
    columns = set(rows[0]) if rows else set(re.findall("[a-z]+", path.read_bytes().replace(b"\0", b"").decode("latin-1")))
    if not {"key", "item", "points"} <= columns:  # a sheet without rows has its first line: nobody wrote an answer
        raise SheetError(f"{path} has no columns key, item and points in its first line: write them there again, or "
                         "delete the file and give the command of grade once more, which writes it without points.")
    for line, row in enumerate(rows, start=2):
        item, most = f"{row.get('student') or row['key']}, {row['item']}", row.get("most")
        text = (row["points"] or "").strip().replace(",", ".")
        try:
            points = float(text) + 0.0 if text else None  # -0 is 0
            fits = points is None or 0 <= points <= (float(most.replace(",", ".")) if most else 1000)
        except ValueError:
            raise SheetError(f"{path}, entry {line - 1} ({item}): {row['points']!r} is not a number of points: correct "
                             "the cell, such as 2.5, or leave it blank.") from None
        if not fits:
            raise SheetError(f"{path}, entry {line - 1} ({item}): {row['points']} points, and it has {most} at most: "
                             "correct the cell.")
        comment = _unguarded(row.get("comment") or "")
        if points is not None or comment:
            marked[place(row)] = points, comment
    return marked


def read_csv(path):
    """The rows of a CSV file as a spreadsheet may have saved it: commas, semicolons or tabs, UTF-8 or Windows. Raises
    SheetError."""
    try:
        data = Path(path).read_bytes()
    except IsADirectoryError:
        raise SheetError(f"{path} is a folder: name the file in it.") from None
    if data.startswith((b"PK", b"<", b"{", b"[{", b"\xd0\xcf", b"%PDF")):
        raise SheetError(f"{path} is not CSV but another kind of file: save or download it once more, as CSV.")
    try:
        text = data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("cp1252", errors="replace")
    text = re.sub('\\A"?sep=."?[\r\n]+', "", text)  # a line that tells spreadsheets their separator
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
    """Text that begins a cell with a formula gets an apostrophe, as text does that begins so already; a number is none. A
    spreadsheet set to another separator begins cells after semicolons, tabs and line ends as well: there a blank is
    enough."""
    if not isinstance(value, str) or NUMBER.fullmatch(value):
        return value
    value = re.sub(rf"([;\t\r\n])(?=[{FORMULA}])", r"\1 ", value)
    return "'" + value if re.match(rf"'*[{FORMULA}\t\r]", value) else value


def _unguarded(text):
    return text[1:] if re.match(rf"'+[{FORMULA}\t\r]", text) else text


def unknown(results, sheet):
    """What the sheet has for students or items that the results do not have, in words, with the nearest that there are."""
    there = {result["key"]: [EVERYTHING, CODE, *(i["grade_id"] for i in (*result["tests"], *result["answers"]))]
             for result in results}
    return [f"{key}, {item}" + _nearest(*((item, there[key], "item") if key in there else (key, there, "key")))
            for (key, item), (points, _) in sheet.items() if points is not None and item not in there.get(key, ())]


def _nearest(word, words, what):
    near = get_close_matches(word, words, 3, 0.5)
    return f" (the nearest {what}{'s are' if len(near) > 1 else ' is'} {' or '.join(near)})" if near else ""


def place(row):
    """(key, item) of a line of the sheet."""
    return _unguarded(row["key"] or ""), row["item"]


def number(points):
    """Points as a sheet and a gradebook have them, "" for none."""
    return "" if points is None else f"{points + 0.0:.10g}"  # -0.0 is 0
