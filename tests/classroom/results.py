"""Results as a batch might leave them, without running anything; the sheet filled in by a person; the tags of a page."""

import csv
import io
import json
import re
from html.parser import HTMLParser

from submissions import NAME

from classroom import assignment, marks
from classroom.grading import grade_one
from helpers.store.files import write_whole


def result(student, number="", points=None, ended=False, answers=("because", None), name=NAME, mistakes=None):
    """What grade_one would say, without running anything. ``points``: of each test; ``ended``: did the first one not end;
    ``mistakes``: function -> the misconception for which it has no points."""
    made = grade_one(b"", assignment.load(name)) | {"status": "graded", "reason": ""}
    for test, given in zip(made["tests"], points or [test["most"] for test in made["tests"]], strict=True):
        mistake = (mistakes or {}).get(test["function"])
        right = given == test["most"] and not mistake
        test |= {"status": "passed" if right else "wrong", "points": 0 if mistake else given,
                 "misconception": None if right else mistake or "overflow",
                 "message": "Fine." if right else f"About {mistake or 'exp <overflows>'}.\nCalled with x."}
    if ended:
        made["tests"][0] |= {"status": "time limit", "points": None, "message": "It did not end."}
        made |= {"status": "partly graded", "reason": f"{made['tests'][0]['function']}: time limit"}
    for answer, text in zip(made["answers"], answers, strict=True):
        answer["text"] = text
    return about(student, number) | made


def unreadable(student, number="", name=NAME):
    return about(student, number) | grade_one(b"", assignment.load(name))


def about(student, number):
    """What a batch knows of a submission before it is graded, as from a folder of Moodle."""
    return {"student": student, "id": number, "folder": f"{student}_{number}_assignsubmission_file_", "modified": 1e9,
            "key": f"{re.sub('[ <>]', '_', student)}_{number}", "file": "a.ipynb", "found": []}


def graded(folder, results, name=NAME, **about):
    """Write what a batch of these results leaves in ``folder``, without the sheet."""
    (folder / "results").mkdir(parents=True)
    for one in results:
        write_whole(folder / "results" / f"{one['key']}.json", json.dumps(one))
    about = {"assignment": name, "keys": [one["key"] for one in results], "refused": []} | about
    write_whole(folder / "batch.json", json.dumps(about))
    return folder


def change(out, of, **new):
    """The result with the key ``of`` gets other values."""
    path = out / "results" / f"{of}.json"
    write_whole(path, json.dumps(json.loads(path.read_text(encoding="utf-8")) | new))


def change_batch(out, **new):
    path = out / "batch.json"
    write_whole(path, json.dumps(json.loads(path.read_text(encoding="utf-8")) | new))


def fill(out, given, encoding="utf-8-sig", separator=",", ends="\r\n", head=""):
    """Mark the sheet as a person with a spreadsheet would, which may not know how to write every letter."""
    rows = marks.read_csv(out / marks.SHEET)
    for row in rows:
        points = given.get((row["student"], row["item"]))
        row["points"] = "" if points is None else str(points).replace(".", "," if separator == ";" else ".")
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, marks.COLUMNS, delimiter=separator, lineterminator=ends)
    writer.writeheader()
    writer.writerows(rows)
    (out / marks.SHEET).write_bytes((head + buffer.getvalue()).encode(encoding, errors="replace"))


ALL = {("Ada Lovelace", "answer-measurement"): 4.5, ("Ada Lovelace", "answer-cosine"): 4,
       ("Ben", "test-most_similar_pair"): 2, ("Ben", "answer-measurement"): 1, ("Ben", "answer-cosine"): 0,
       ("Cy <b>", "everything"): 10, ("Dee", "answer-measurement"): 5, ("Dee", "answer-cosine"): 4}
TOTALS = {"1": "34.5", "2": "22", "3": "10", "4": "33"}


MARKUP = "<script>alert(1)</script>' onload='x' \" style=\"x\"><!-- {{ 7 * 7 }} {% raw %} &lt;b&gt; </pre></style>"


class Skeleton(HTMLParser):
    """The tags and attributes of a page, and its text."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, [(name, value) for name, value in attributes if name != "href"]))

    def handle_data(self, data):
        self.text += data
