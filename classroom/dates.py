"""When something was due and when it came: what is taken off for late work, and extensions for one student.

Nothing is graded again: what is agreed lies in ``dates.json`` beside the results, and every page and export reads it. All
dates are by the assignment's one clock (clock.py).
"""

import functools
import json
import math
import re
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

from classroom import Problem, batch, clock, collecting, first_few, marks, names, overview, roster, worksheets
from helpers.store.files import write_whole

FILE = "dates.json"
ITEM = "late"
HALVES = (r"a\. ?m\.", "AM"), (r"p\. ?m\.", "PM")  # of the day, as Spanish writes them and dateparser does not read them


class DateError(Problem):
    """One sentence: what is not a date, or of whom it is not clear."""


@dataclass
class Dates:
    """``due``: for everybody, or None; ``penalty``: per cent of the assignment's points for each day begun, ``most``
    per cent in all; ``grace``: minutes that do not count; ``extensions``: {student as the teacher wrote it: due}; ``times``:
    {the same: when it came} where the time of the file does not say. ``mine`` and ``came`` are these by result. ``zone``:
    of the clock by which all of them are."""

    due: datetime | None = None
    penalty: float = 10.0
    most: float = 100.0
    grace: float = 0.0
    extensions: dict = field(default_factory=dict)
    times: dict = field(default_factory=dict)
    mine: dict = field(default_factory=dict)
    came: dict = field(default_factory=dict)
    zone: object = timezone.utc

    def of(self, result):
        """(due, when it came or None where that is not known, days late) of a result. Days that have begun count."""
        due, came = self.mine.get(result["key"], self.due), self.came.get(result["key"])
        if not came and self.shown(result):
            came = datetime.fromtimestamp(min(result["modified"], 4e9), self.zone).replace(tzinfo=None)
        if not due or not came or came <= due + timedelta(minutes=self.grace):
            return due, came, 0
        return due, came, math.ceil((came - due) / timedelta(days=1))

    def shown(self, result, attempt=None):
        """The time of a student's file, or of that of an ``attempt``, for people; "" where it is not known, as in Canvas,
        whose zip has the time of the teacher's download."""
        return "" if names.CANVAS.match(result["folder"] or "") else clock.words((attempt or result)["modified"], self.zone)

    def until(self, result):
        """When it was due for this student, with the zone, for people; "" where nothing is due."""
        due, *_ = self.of(result)
        return f"{_words(due)} ({self.zone})" if due else ""

    def found(self, result):
        """What was noticed when the files were collected, with what became of the word of Canvas that it is late: its date
        is the same for all."""
        due, came, days = self.of(result)
        longer = result["key"] in self.mine
        if not due or days or not (came or longer):
            return result["found"]
        more = (("in time by your extension" if longer else "it is in time here") + f", until {_words(due)}" if came else
                f"you have an extension until {_words(due)}")
        return [f"{note.removesuffix('.')}, but {more}." if note == collecting.LATE else note for note in result["found"]]

    def grade_of(self, result, sheet):
        """The ``marks.Grade`` of a result with what is taken off for being late, as a row of its own."""
        grade = marks.grade_of(result, sheet)
        due, came, days = self.of(result)
        if not days or not self.penalty:
            return grade
        most = grade.most if grade.total is None else grade.total
        share = min(days * self.penalty, self.most) / 100 * grade.most
        off = min(share, most)
        words = (f"It was due on {_words(due)} and came on {_words(came)} ({self.zone}): {_days(days)} late, "
                 f"{self.penalty:g} % of the points a day" + (f", at most {self.most:g} %" if self.most < 100 else "")
                 + (", which is what counts here" if self.most < min(100, days * self.penalty) else "") + "."
                 + (" The grade does not fall below 0." if share > most or days * self.penalty > 100 else ""))
        row = marks.Row(ITEM, 0, 0 - off, ITEM, words)
        return replace(grade, total=None if grade.total is None else grade.total - off, rows=[*grade.rows, row])


def read(out, results):
    """The ``Dates`` of a folder of results; without a file nothing is due. Raises DateError."""
    dates = _read(out)
    _by_key(dates, results)
    return dates


def _read(out):
    zone = clock.of(out)
    try:
        raw = json.loads((Path(out) / FILE).read_text(encoding="utf-8"))
        return Dates(when(raw.pop("due"), zone) if raw.get("due") else None, zone=zone, **{name: raw[name] for name in (
            "penalty", "most", "grace")}, **{name: {who: when(text, zone) for who, text in raw[name].items()}
                                             for name in ("extensions", "times")})
    except FileNotFoundError:
        return Dates(zone=zone)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        raise DateError(f"{Path(out) / FILE} cannot be read: delete it and give the command late once more.") from None


def write(out, dates):
    """Keep ``dates`` beside the results."""
    raw = {name: value for name, value in asdict(replace(dates, zone=None)).items() if name not in ("mine", "came", "zone")}
    raw |= {name: {who: date.isoformat() for who, date in raw[name].items()} for name in ("extensions", "times")}
    write_whole(Path(out) / FILE, json.dumps(raw | {"due": raw["due"] and raw["due"].isoformat()}, indent=1) + "\n")


def _by_key(dates, results):
    people = [(result["key"], roster.called(result)) for result in results if "key" in result]
    for name, found, option in (("extensions", dates.mine, "extend"), ("times", dates.came, "came")):
        found.clear()
        for who, date in getattr(dates, name).items():
            keys = roster.find(who, people)
            if len(keys) > 1:
                raise DateError(f"{roster.which(who, keys)} What was said of {who} before goes with --{option} '{who}='.")
            if keys:
                found[keys[0]] = date


def when(text, zone=None):
    """A date, with or without a time, as people or Moodle write it in their language, by the clock of ``zone`` (default:
    this machine's); one alone is the end of the day. Raises DateError, also where day and month cannot be told apart."""
    text = " ".join(str(text).split())
    try:
        date, timed = datetime.fromisoformat(text), not re.fullmatch(r"\d{4}-?\d\d-?\d\d", text)
    except ValueError:
        date, timed = _in_words(text)
    date = date.astimezone(zone).replace(tzinfo=None) if date.tzinfo else date
    return date if timed else date.replace(hour=23, minute=59, second=59)


def _in_words(text):
    """(a date as people write it, whether it has a time). Raises DateError."""
    for half, latin in HALVES:
        text = re.sub(half, latin, text, flags=re.IGNORECASE)
    year = re.search(r"(?<!\d)\d{4}(?!\d)", text)
    read = [_parser(order).get_date_data(text) for order in ("DMY", "MDY")] if year and len(text) < 100 else []
    if len({found.date_obj for found in read}) == 2:
        raise DateError(f"{text!r} may be two dates: write it as 2027-10-31 or 2027-10-31 23:59.")
    if not read or not read[0].date_obj:
        raise DateError(f"{text[:60]!r} is not a date: write it as 2027-10-31 or 2027-10-31 23:59.")
    return read[0].date_obj, read[0].period == "time"


@functools.cache
def _parser(order):
    """A reader of dates in every language. ``order``: of day, month and year where all are numbers."""
    from dateparser.date import (
        DateDataParser,  # a tenth of a second, which the other commands need not wait for
    )

    return DateDataParser(settings={"DATE_ORDER": order, "PREFER_LOCALE_DATE_ORDER": False, "PARSERS": ["absolute-time"],
                                    "REQUIRE_PARTS": ["day", "month", "year"], "RETURN_TIME_AS_PERIOD": True})


def _days(days):
    return f"{days} day" if days == 1 else f"{days} days"


def _words(date):
    return f"{date:%Y-%m-%d %H:%M}"


def agree(out, due=None, penalty=None, most=None, grace=None, extend=(), came=(), times=None, column=None):
    """Keep what is given here beside what was agreed before, and return sentences for the teacher: who is late, and by how
    much. ``extend`` and ``came``: "STUDENT=DATE" each, and "STUDENT=" takes out what was said before; ``times``: Moodle's
    grading worksheet, which says when everybody handed in, in its ``column`` of this name (default: the one found by its
    place). Raises DateError and SheetError, and then nothing is changed."""
    results, _ = batch.read(out)
    dates = _read(out)
    people = [(result["key"], roster.called(result)) for result in results]
    given = {"due": due and when(due, dates.zone), "penalty": penalty, "most": most, "grace": grace}
    dates = replace(dates, **{name: value for name, value in given.items() if value is not None})
    for name, pairs in (("extensions", extend), ("times", came)):
        for pair in pairs:
            who, sign, text = pair.rpartition("=")
            if not sign or not who.strip():
                raise DateError(f"{pair!r} is not a student and a date, as in 'Ada Lovelace=2027-11-07'.")
            _say(getattr(dates, name), who.strip(), text.strip(), people, dates.zone)
    notes = [f"All dates are by the clock of {dates.zone}."]
    if times:
        notes += _times(dates, results, times, column)
    _by_key(dates, results)
    write(out, dates)
    if absent := [who for who in dates.extensions if not roster.find(who, people)]:
        notes.append(f"Not among those graded, and kept for when they are: {'; '.join(absent)}. "
                     f"To take one out again: --extend '{absent[0]}='.")
    if not dates.due:
        notes.append("Nothing is due yet: say --due.")
    return notes + _missing(out, results, dates) + _late(results, dates)


def _late(results, dates):
    """Sentences on who is late, by how much, and on whose time nobody has said."""
    unknown, late, by_file = [], [], 0
    for result in results:
        due, time, days = dates.of(result)
        if days:
            late.append(f"{result['student']}: {_days(days)} late, {_words(time)}, due {_words(due)}")
        canvas = names.CANVAS.match(result["folder"] or "")
        if canvas and canvas["late"] and not time:
            unknown.append(result["student"])
        by_file += result["key"] not in dates.came and time is not None
    notes = late or (["Nobody is late."] if dates.due and not unknown else [])
    if unknown:
        notes.append(f"Late in Canvas, which does not say by how much: {'; '.join(unknown)}. Say it with "
                     "--came 'STUDENT=DATE'.")
    if by_file and dates.due:
        notes.append(f"For {by_file} the time is that of the file; Moodle's grading worksheet tells it better: "
                     "--times worksheet.csv.")
    return notes


def _missing(out, results, dates):
    """A sentence that names those on the list of students who handed in nothing, and how long they still may; none where
    there was no list."""
    absent = overview.absent(out)
    now = datetime.now(dates.zone).replace(tzinfo=None)
    longer = {found[0]: date for who, date in dates.extensions.items() if date > now
              and len(found := roster.find(who, [(name, [name]) for name in absent])) == 1}
    words = [name + (f" (may until {_words(longer[name])})" if name in longer else "") for name in absent]
    lost = ", apart from those not matched to the list" if any(not result.get("person") for result in results) else ""
    return [f"{len(absent)} handed in nothing{lost}: {'; '.join(words)}."] if absent else []


def _say(dates, who, text, people, zone):
    """Enter the date ``text`` in ``dates``, under a name that stays clear whoever hands in later; "" takes out what was said
    of this student. Raises DateError."""
    keys = roster.find(who, people)
    same = [name for name in dates if len(keys) == 1 and roster.find(name, people) == keys]
    if text:
        date = when(text, zone)
    else:
        same = [who] if who in dates else same
        if not same:
            raise DateError(f"Nothing was said of {who}, so nothing can be taken out"
                            f"{': there is ' if dates else ''}{'; '.join([*dates][:10])}.")
    for name in same:
        del dates[name]
    if text:
        dates[keys[0] if len(keys) == 1 else who] = date


def _times(dates, results, path, column):
    """Enter when everybody handed in, from a column of Moodle's worksheet; sentences on what could not be read."""
    lines = roster.people_in(path, nameless=True)
    rows = [row for row, _ in lines]
    headings = worksheets.columns(rows)
    column = column or worksheets.handed_in(rows, _is_date)
    if column not in headings:
        raise DateError(f"{path} has no column that says when everybody handed in, as Moodle's grading worksheet has: name "
                        f"it with --column; there are {first_few(headings)}.")
    numbers = {result["id"] or (result.get("person") or {}).get("moodle"): result["key"] for result in results}
    odd = []
    for row, person in lines:
        text = (row[column] or "").strip()
        if person.moodle and person.moodle in numbers and text not in ("", "-"):
            try:
                dates.times[numbers[person.moodle]] = when(text, dates.zone)
            except DateError:
                odd.append(text)
    notes = [f"When everybody handed in is taken from the column {column!r}."]
    if odd:
        notes.append(f"{len(odd)} dates in it cannot be read, such as {odd[0]!r}: say these with --came 'STUDENT=DATE'.")
    return notes


def _is_date(text):
    try:
        return bool(when(text))
    except DateError:
        return False
