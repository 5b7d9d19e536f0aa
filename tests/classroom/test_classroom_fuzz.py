"""Damaged submissions from a generator, beside good ones: each ends in a named status and costs nobody else anything.

A failure names the seed and what was done: ``damage.damaged(SEED)`` makes the same submission again.
"""

import csv
import io
import json
import re

import pytest
import submissions
from damage import damaged
from jobs import NotRun
from submissions import FULL, NAME, needs_sandbox

from classroom import batch, code_cells, collecting, exports, grading, marks, names, notebook, reports
from classroom.sandbox import Limits

GOOD = submissions.data(submissions.solved())
STATUSES = ("graded", "partly graded", *grading.FAILED)
LIMITS = Limits(cell_seconds=2, call_seconds=1, total_seconds=100, patience=1)
CLASS = 25  # damaged submissions in one batch, with two good ones


Session = grading.Session
GOOD_CODE = code_cells.without_stubs(code_cells.plain_cells(notebook.read(GOOD).code))


def in_this_process(todo, name, keep, workers, options, progress):
    """What ``batch._run`` does, without a pool, so that whatever is raised ends the test."""
    for about, submission in todo:
        in_this_process.graded.append(about["student"])
        keep(about, batch._job(name, *batch._data(submission), about["details"], **options))


def check(seeds, top, monkeypatch, run=False, packed=False):
    """Hand in, collect, grade, report and export a class of the damaged submissions ``seeds`` and two good ones."""
    monkeypatch.setattr(batch, "_run", in_this_process)
    monkeypatch.setattr(grading, "Session", lambda sources, *more: (
        Session if run or sources == GOOD_CODE else NotRun)(sources, *more))
    class_ = [damaged(seed) for seed in seeds]
    said = {made.student: made.words for made in class_}
    files = {path: content for made in class_ for path, content in made.files.items()}
    files |= {"good/a.ipynb": GOOD, "right.ipynb": GOOD}
    source = top / "in"
    if packed:  # as a platform gives it
        submissions.zipped(files, source)
    else:
        submissions.put(source, files)
    in_this_process.graded = []
    results = {result["key"]: result for result in batch.grade(NAME, source, top / "out", limits=LIMITS, progress=False)}
    refused = json.loads((top / "out" / "batch.json").read_text())["refused"]

    known = {result["student"] for result in results.values()} | set(re.findall(r"s\d+", " ".join(refused)))
    forgotten = [words for student, words in said.items() if student not in known]
    more = re.fullmatch(r"([\d,]+) more\.", refused[-1]) if len(refused) > collecting.MOST_TOLD else None
    assert len(forgotten) <= (int(more[1].replace(",", "")) if more else 0), f"forgotten: {forgotten}"
    for result in results.values():
        sound(result, said.get(result["student"], "a good one"))
    for name in ("good", "right"):
        points = sum(test["points"] or 0 for test in results[name]["tests"])
        assert (results[name]["status"], points, results[name]["notes"]) == ("graded", FULL, []), said
    for path in (top / "out" / "results").iterdir():
        json.loads(path.read_bytes(), parse_constant=lambda word, path=path: pytest.fail(f"{word} in {path}: {said}"))
    written(top / "out", results, said)

    in_this_process.graded = []
    batch.grade(NAME, source, top / "out", limits=LIMITS, progress=False)
    assert in_this_process.graded == [], f"graded again: {[said.get(name, name) for name in in_this_process.graded]}"


def sound(result, said):
    """Is this a result that people and programs can use?"""
    assert result["status"] in STATUSES, said
    told = [result["reason"], result["student"], result["file"], *result["found"], *result["notes"], *result["flags"]]
    told += [line for test in result["tests"] for line in test["message"].split("\n")]
    for words in told:
        assert not re.search("[\0-\x08\x0a-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]",
            words), f"{said}: {words!r}"
        assert not re.search(r'File "/(?!x)', words) and len(words) <= 4000, f"{said}: {words!r}"
        assert not words.startswith(("The grader itself", "Traceback")), f"{said}: {words!r}"
    if result["status"] in ("unreadable", "refused"):
        assert re.fullmatch(r"[A-Z][^\n]{5,300}\.", result["reason"]), f"{said}: {result['reason']!r}"
    for test in result["tests"]:
        assert test["status"] in (*grading.JUDGED, *grading.FAILED) and test["message"], said
        assert (test["points"] is None) == (test["status"] in grading.FAILED), said
        assert test["points"] in (None, 0, test["most"]), said
        assert (test["points"] == test["most"]) == (test["status"] == "passed"), said


def written(out, results, said):
    """Pages, sheet and exports of the class are written and can be read."""
    sheet = marks.write_sheet(results.values(), out)
    rows = list(csv.DictReader(io.StringIO(sheet.read_text("utf-8-sig"), newline="")))
    untouched = {key for key, result in results.items() if not marks.to_mark(result)}  # which is 0 by itself
    assert all(results[key]["status"] == "graded" for key in untouched), said
    assert {marks._unguarded(row["key"]) for row in rows} == set(results) - untouched, said
    with sheet.open("a", encoding="utf-8") as file:
        file.write("good,,most_similar_pair,,,,,a comment\r\n")
    assert marks.read_sheet(out), said
    marks.write_sheet(results.values(), out)
    reports.write_pages(out)
    for key in results:
        page = (out / "feedback" / names.page_of(results[key])).read_text(encoding="utf-8")
        assert "<script>alert" not in page and page.rstrip().endswith("</html>"), said
    for style in exports.FORMATS:
        paths, _, _ = exports.export(out, style)
        assert paths and all(path.exists() for path in paths), said
    lines = list(csv.reader(io.StringIO((out / "grades.csv").read_text("utf-8-sig"), newline="")))
    assert len(lines) == len(results) + 1 and len({len(line) for line in lines}) == 1, said


@pytest.mark.slow
@needs_sandbox
def test_damaged_submissions_cost_nobody_else_anything(tmp_path, monkeypatch):
    """Those whose code differs are read, and not run."""
    check(range(CLASS), tmp_path, monkeypatch)


@pytest.mark.slow
@needs_sandbox
def test_damaged_code_is_run(tmp_path, monkeypatch):
    check([seed for seed in range(200) if "in_code" in damaged(seed).words][:4], tmp_path, monkeypatch, run=True)


@needs_sandbox
@pytest.mark.weekly
@pytest.mark.parametrize("group", range(120))
def test_three_thousand_damaged_submissions(tmp_path, monkeypatch, group):
    start = 1000 + group * CLASS
    check(range(start, start + CLASS), tmp_path, monkeypatch, run=True, packed=group % 3 == 0)
