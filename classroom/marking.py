"""The marking page: written answers, and what could not be judged, one after the other. It is served to this machine
alone, under an address that nobody can guess, so that every step is saved in the sheet at once.

The page gets no names unless the teacher asks for them. What students wrote travels as JSON and becomes text in it: the
page runs its one script and no other, and asks this server alone.
"""

import base64
import hashlib
import json
import re
import secrets
import sys
import threading
import unicodedata
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from classroom import Problem, assignment, batch, marks
from classroom.files import read_json
from classroom.reports import PAGES

PERSON = re.compile(r"[\w-]{1,40}")
LARGEST = 1_000_000  # bytes that are read of one step
LONGEST = 10_000  # characters of a comment
PATIENCE = 60  # seconds until one who sends nothing more is left alone
TOKEN = 24  # bytes of the address that nobody can guess


class MarkingError(Problem):
    """One sentence: why a step was not saved, or why sheets cannot be merged."""


class Marking:
    """What waits for a person among the results in ``out``. ``by``: whose sheet, "" for the one that counts."""

    def __init__(self, out, by="", names=False):
        if by and not PERSON.fullmatch(by):
            raise MarkingError(f"--by is a name of 1 to 40 letters, digits, '-' or '_', and not {by[:60]!r}.")
        results, about = batch.read(out)
        self.out, self.names, self.lock = Path(out), names, threading.Lock()
        self.task, self.path = assignment.load(about["assignment"]), self.out / (sheet_of(by) if by else marks.SHEET)
        marks.write_sheet(results, out)
        if by:
            mine = marks.read_sheet(out, self.path.name)
            rows = marks.read_csv(self.out / marks.SHEET)
            for row in rows:
                points, row["comment"] = mine.get(marks.place(row), (None, ""))
                row["points"] = marks.number(points)
            marks.write_rows(self.path, rows)
        details = {result["key"]: (result.get("details") or {}) if self.task.file else {} for result in results}
        tasks = {str(one): assignment.load(about["assignment"], one) for one in details.values()}
        self.questions = {key: {q.grade_id: q for q in tasks[str(one)].questions} for key, one in details.items()}
        self.keys = sorted((result["key"] for result in results), key=_shuffled)
        self.items = []  # (key, item, why, text, most)
        for result in results:
            self.items += [(result["key"], *item) for item in marks.to_mark(result)]
        self.items.sort(key=lambda i: (i[1] not in (marks.EVERYTHING, marks.CODE), i[1], _shuffled(i[0] + i[1])))
        self.then = "" if by else f"python -m classroom feedback {out}"
        self.students = {result["key"]: result["student"] for result in results}

    def page(self, nonce):
        """The whole page. ``nonce``: what its script has, and what the policy of its answer names."""
        marked = marks.read_sheet(self.out, self.path.name)
        lines = {marks.place(row): row for row in marks.read_csv(self.path)}
        rows, asked = [], list(dict.fromkeys(q for mine in self.questions.values() for q in mine.values()))
        numbers = {q: number for number, q in enumerate(asked)}
        for number, (key, item, why, text, most) in enumerate(self.items):
            points, comment = marked.get((key, item), (None, ""))
            why = (lines.get((key, item)) or {}).get("why") or why
            rows.append({"number": number, "item": item, "question": numbers.get(self.questions[key].get(item)),
                         "student": self.keys.index(key) + 1, "text": text, "most": most,
                         "name": self.students[key] if self.names else "", "points": points, "comment": comment,
                         "why": why if item.startswith("test-") or item in (marks.EVERYTHING, marks.CODE)
                         or why.startswith((marks.CHANGED, marks.TWO)) else ""})
        questions = [{"title": q.words, "text": re.sub(r"\A#+ .*\n?", "", q.text), "most": q.points, "model": q.model,
                      "rubric": q.rubric} for q in asked]  # each student's of their variant
        return PAGES.get_template("mark.html").render(title=f"Marking {self.task.title}", nonce=nonce,
                                                      data={"rows": rows, "questions": questions, "then": self.then})

    def work(self, number):
        """The code and the pictures of a student, by their number on the page; and where there is no code, the file in
        which to look for it."""
        key = self.keys[number - 1]
        result = read_json(self.out / "results" / f"{key}.json") or {}
        file = "" if result.get("code") or result.get("raw_code") else result.get("file", "")
        cells = [*enumerate(filter(None, result.get("code") or result.get("raw_code") or ()), 1)]
        return {"file": file, "code": [{"number": n, "source": source} for n, source in cells],
                "figures": [f"data:image/{'png' if f.startswith('iVBOR') else 'jpeg'};base64,{f}"
                            for f in batch.read_figures(self.out, result)]}

    def save(self, number, points, comment):
        """Write one line of the sheet, as it is on the disk now. Raises MarkingError, SheetError, OSError."""
        key, item, why, text, most = self.items[number]
        if points is not None and not 0 <= points <= most:
            raise MarkingError(f"{str(points)[:20]} points, and it has {most:g} at most.")
        if len(comment) > LONGEST:
            raise MarkingError(f"The comment has {len(comment):,} characters, and {LONGEST:,} is the most.")
        comment = "".join(c if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cs") else " " for c in comment)
        with self.lock:
            rows, place = marks.read_csv(self.path), (key, item)
            marks.read_sheet(self.out, self.path.name)  # what a spreadsheet spoiled is told, and not written over
            row = next((row for row in rows if marks.place(row) == place), None)
            if row is None:
                row = dict.fromkeys(marks.COLUMNS, "") | {"key": key, "student": self.students[key], "item": item,
                                                           "text": text, "most": f"{most:g}"}
                rows.append(row)
            row |= {"points": marks.number(points), "comment": comment, "why": why, "version": marks.version_of(text)}
            marks.write_rows(self.path, rows)


def sheet_of(person):
    """The name of a second marker's sheet."""
    return marks.SHEET.replace(".csv", f"-{person}.csv")


def merge(out, paths):
    """Enter into the sheet what others gave on theirs. Returns how many lines were entered, and sentences on conflicts:
    where two give other points the line stays open, and what the sheet already has stays. Raises SheetError."""
    results, _ = batch.read(out)
    marks.write_sheet(results, out)
    others = {}
    for path in map(Path, paths):
        if not path.is_file():
            raise MarkingError(f"{path} does not exist: name a sheet such as {Path(out) / sheet_of('ana')}.")
        name = path.stem.removeprefix(marks.SHEET.removesuffix(".csv")).strip("-_ ") or path.stem
        others[name if name not in others else str(path)] = marks.read_sheet(path.parent, path.name)
    rows, entered, conflicts = marks.read_csv(Path(out) / marks.SHEET), 0, []
    mine = marks.read_sheet(out)
    for row in rows:
        place, label = marks.place(row), f"{row['student']}, {row['item'].removeprefix('answer-')}"
        given = {name: sheet[place] for name, sheet in others.items() if place in sheet}
        points = {name: given_points for name, (given_points, _) in given.items() if given_points is not None}
        words = " and ".join(f"{name} {p:g}" for name, p in points.items())
        own, comment = mine.get(place, (None, ""))
        lines = "\n".join([comment, *(said for _, said in given.values())]).split("\n")
        row["comment"] = "\n".join(dict.fromkeys(filter(None, lines)))
        if own is not None:
            if set(points.values()) - {own}:
                conflicts.append(f"{label}: the sheet has {own:g}, which stays; {words}")
        elif len(set(points.values())) > 1:
            row["why"] = f"{marks.TWO} {words}"
            conflicts.append(f"{label}: {words}; left open")
        elif points:
            row["points"] = marks.number(next(iter(points.values())))
            entered += 1
    marks.write_rows(Path(out) / marks.SHEET, rows)
    return entered, conflicts


def _shuffled(words):
    """An order that has nothing to do with names, and is the same next time."""
    return hashlib.sha256(words.encode("utf-8", "replace")).hexdigest()


class Server(ThreadingHTTPServer):
    """Serves a ``Marking`` to this machine. ``address``: the one that opens it."""

    daemon_threads = True

    def __init__(self, marking, port=0):
        self.marking, self.token = marking, secrets.token_urlsafe(TOKEN)
        super().__init__(("127.0.0.1", port), _Handler)
        self.hosts = [f"{name}:{self.server_port}" for name in ("127.0.0.1", "localhost")]
        self.address = f"http://{self.hosts[0]}/{self.token}/"


class _Handler(BaseHTTPRequestHandler):
    timeout = PATIENCE

    def log_message(self, *words):
        pass

    def do_GET(self):
        self._in_words(self._show)

    def do_POST(self):
        self._in_words(self._save)

    def _in_words(self, do):
        """Whatever becomes of a request, it is answered, and what went wrong is one sentence."""
        try:
            do()
        except Problem as error:
            self._answer(200, json.dumps({"problem": str(error)}))
        except (ConnectionError, TimeoutError):
            self.close_connection = True  # the browser did not wait, or did not go on
        except OSError as error:
            words = f"{self.server.marking.path.name} cannot be opened ({error.strerror}): is it open in a spreadsheet?"
            self._answer(200, json.dumps({"problem": words}))
        except Exception as error:
            print(f"The marking page stopped at a request ({type(error).__name__}: {error})."[:300], file=sys.stderr)
            self._answer(500, json.dumps({"problem": f"the program that serves this page stopped at it: {error}"[:300]}))

    def _show(self):
        place = self._place()
        if place == "":
            nonce = base64.b64encode(secrets.token_bytes(18)).decode()
            try:
                self._answer(200, self.server.marking.page(nonce), "text/html", nonce)
            except marks.SheetError as error:  # what a spreadsheet spoiled
                self._answer(200, f"{error} Correct it there, save it, and load this page again.", "text/plain")
        elif place and (work := re.fullmatch(r"work/([0-9]{1,6})", place)) and (
                1 <= int(work[1]) <= len(self.server.marking.keys)):
            self._answer(200, json.dumps(self.server.marking.work(int(work[1]))))
        else:
            self._answer(404, "{}")

    def _save(self):
        body = self.rfile.read(min(LARGEST, max(0, int(self.headers.get("Content-Length", 0)))))
        if self._place() != "save" or self.headers.get("Content-Type") != "application/json":
            self._answer(404, "{}")
        else:
            step = json.loads(body)  # of the page itself: nobody else comes so far
            self.server.marking.save(step["number"], step["points"], step["comment"])
            self._answer(200, "{}")

    def _place(self):
        """What the address says behind the token, or None where a stranger asks: another page of the browser may not. A
        browser says with every step from which page it comes."""
        _, token, *rest = self.path.split("/")[:4] if self.path.count("/") > 1 else ["", "", ""]
        same = secrets.compare_digest(token.encode("utf-8", "replace"), self.server.token.encode())
        host, origin = self.headers.get("Host"), self.headers.get("Origin")
        ours = origin == f"http://{host}" or origin is None and self.command == "GET"
        return "/".join(rest) if same and ours and host in self.server.hosts else None

    def _answer(self, status, words, kind="application/json", nonce=""):
        data = words.encode("utf-8", "replace")
        policy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        if nonce:
            policy += f"; script-src 'nonce-{nonce}'; style-src 'unsafe-inline'; img-src data:; connect-src 'self'"
        self.send_response(status)
        for name, value in (("Content-Type", f"{kind}; charset=utf-8"), ("Content-Length", str(len(data))),
                            ("Cache-Control", "no-store"), ("Referrer-Policy", "no-referrer"),
                            ("X-Content-Type-Options", "nosniff"), ("Content-Security-Policy", policy)):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)
