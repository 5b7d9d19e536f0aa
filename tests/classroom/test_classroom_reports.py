"""Pages, the sheet to mark, exports, and the command line, on results that a batch might leave."""

import csv
import io
import json
import zipfile

import pytest
import submissions
from submissions import FULL, NAME

from helpers.classroom import assignment, batch, exports, marks, reports, sandbox
from helpers.classroom.__main__ import main
from helpers.classroom.grading import grade_one
from helpers.files import write_whole


def result(student, number="", points=None, failed=None, answers=("because", None)):
    """What grade_one would say, without running anything. ``points``: of each test; ``failed``: a status for the first."""
    task = assignment.load(NAME)
    made = grade_one(b"", task) | {"status": "graded", "reason": ""}
    for test, given in zip(made["tests"], points or [t.points for t in task.tests], strict=True):
        right = given == test["most"]
        test |= {"status": "passed" if right else "wrong", "points": given, "misconception": None if right else "overflow",
                 "message": "Fine." if right else "exp <overflows>.\nCalled with x."}
    if failed:
        made["tests"][0] |= {"status": failed, "points": None, "message": "It did not end."}
        made |= {"status": "partly graded", "reason": f"most_similar_pair: {failed}"}
    for answer, text in zip(made["answers"], answers, strict=True):
        answer["text"] = text
    about = {"student": student, "id": number, "folder": f"{student}_{number}_assignsubmission_file_", "modified": 1e9,
             "key": f"{student.replace(' ', '_').replace('<', '_')}_{number}", "file": "a.ipynb", "found": [], "of": "x"}
    return about | made


@pytest.fixture
def out(tmp_path):
    lost = result("Cy <b>", "3") | {"status": "unreadable", "reason": "The file is empty."}
    for test in lost["tests"]:
        test |= {"status": "unreadable", "points": None}
    half = [5, 1, 5, 0, 7, 1, 4, 1]
    results = [result("Ada Lovelace", "1"), result("Ben", "2", half, "time limit", ("=HYPERLINK(1)", "b")), lost,
               result("Dee", "4", half)]
    (tmp_path / "results").mkdir()
    for one in results:
        write_whole(tmp_path / "results" / f"{one['key']}.json", json.dumps(one))
    about = {"assignment": NAME, "keys": [r["key"] for r in results], "refused": []}
    write_whole(tmp_path / "batch.json", json.dumps(about))
    marks.write_sheet(results, tmp_path)
    return tmp_path


def fill(out, given, separator=",", encoding="utf-8-sig", point="."):
    """Mark the sheet as a person with a spreadsheet would."""
    rows = marks.read_csv(out / marks.SHEET)
    for row in rows:
        points = given.get((row["student"], row["item"]))
        row["points"] = "" if points is None else str(points).replace(".", point)
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, marks.COLUMNS, delimiter=separator)
    writer.writeheader()
    writer.writerows(rows)
    (out / marks.SHEET).write_text(buffer.getvalue(), encoding=encoding)


ALL = {("Ada Lovelace", "answer-measurement"): 4.5, ("Ada Lovelace", "answer-cosine"): 4,
       ("Ben", "test-most_similar_pair"): 2, ("Ben", "answer-measurement"): 1, ("Ben", "answer-cosine"): 0,
       ("Cy <b>", "everything"): 10, ("Dee", "answer-measurement"): 5, ("Dee", "answer-cosine"): 4}
TOTALS = {"1": "34.5", "2": "22", "3": "10", "4": "33"}


def totals(out):
    return {row["id"]: row["points"] for row in marks.read_csv(out / "grades.csv")}


def test_failures_are_blank_with_a_reason(out):
    _, blank = exports.export(out, "csv")
    rows = {row["student"]: row for row in marks.read_csv(out / "grades.csv")}
    assert blank == 4 and all(row["points"] == "" and row["blank because"] for row in rows.values())
    assert "empty" in rows["Cy <b>"]["blank because"] and "time limit" in rows["Ben"]["blank because"]
    for style in ("canvas", "moodle"):
        exports.export(out, style)
        assert ",0," not in (out / f"{style}.csv").read_text(encoding="utf-8")


@pytest.mark.parametrize(("separator", "encoding", "point"),
                         [(",", "utf-8-sig", "."), (";", "cp1252", ","), ("\t", "utf-16", ".")])
def test_the_sheet_is_read_back(out, separator, encoding, point):
    assert "'=HYPERLINK" in (out / marks.SHEET).read_text(encoding="utf-8")
    fill(out, ALL, separator, encoding, point)
    assert exports.export(out, "csv")[1] == 0
    assert totals(out) == TOTALS
    results, _ = batch.read(out)
    marks.write_sheet(results, out)  # as after grading again
    exports.export(out, "csv")
    assert totals(out) == TOTALS


@pytest.mark.parametrize(("points", "words"),
                         [("five", "not a number"), (99, "at most"), (-1, "at most"), ("nan", "at most")])
def test_slips_on_the_sheet_are_told(out, points, words, capsys):
    fill(out, {("Ada Lovelace", "answer-cosine"): points})
    assert main(["export", str(out)]) == 1
    said = capsys.readouterr().err
    assert words in said and "Ada Lovelace" in said and said.count("\n") == 1


def test_platforms(out):
    fill(out, ALL)
    reports.write_pages(out)
    for style in exports.FORMATS:
        exports.export(out, style)
    canvas = marks.read_csv(out / "canvas.csv")
    title = assignment.load(NAME).title
    assert canvas[0]["Student"].strip() == "Points Possible" and canvas[0][title] == "35"
    assert {row["ID"]: row[title] for row in canvas[1:]} == TOTALS
    assert {row["Identifier"]: row["Grade"] for row in marks.read_csv(out / "moodle.csv")} == {
        f"Participant {number}": total for number, total in TOTALS.items()}
    with zipfile.ZipFile(out / "moodle_feedback.zip") as archive:
        assert "Ada Lovelace_1_assignsubmission_file_/feedback.html" in archive.namelist() and len(archive.namelist()) == 4
    scores = json.loads((out / "gradescope" / "results" / "Dee_4.json").read_text(encoding="utf-8"))
    assert sum(test["score"] for test in scores["tests"]) == 33


def test_the_platforms_own_file_is_filled_in(out, tmp_path):
    fill(out, {key: value for key, value in ALL.items() if key[0] != "Dee"})
    sheet = tmp_path / "worksheet.csv"
    sheet.write_text("Identifier,Full name,Status,Grade,Last modified (submission)\nParticipant 1,Ada Lovelace,-,,-\n"
                     "Participant 4,Dee,-,12,-\nParticipant 9,Zoe,-,,-\n", encoding="utf-8")
    [path], _ = exports.export(out, "moodle", sheet)
    rows = marks.read_csv(path)
    assert [row["Grade"] for row in rows] == ["34.5", "12", ""] and rows[0]["Status"] == "-"
    with pytest.raises(exports.Mismatch, match="no column"):
        exports.export(out, "moodle", sheet, "Points")


def test_pages(out):
    fill(out, ALL)
    page = reports.write_pages(out).read_text(encoding="utf-8")
    assert "overflow" in page and "Ben, Dee" in page and "Cy &lt;b&gt;" in page and "<b>Cy" not in page
    dee = (out / "feedback" / "Dee_4.html").read_text(encoding="utf-8")
    assert "33 of 35" in dee and "exp &lt;overflows&gt;" in dee and "Called with x" in dee and "SOLUTION" not in dee
    assert "could not be graded" not in (out / "feedback" / "Cy__b>_3.html").read_text(encoding="utf-8")  # marked by hand


def test_release_has_no_solutions(tmp_path):
    path = assignment.release(NAME, tmp_path)
    text = path.read_text(encoding="utf-8")
    for word in ("BEGIN", "SOLUTION", "HIDDEN", "judge", "np.tril_indices", "bears* apart"):
        assert word not in text
    raw = json.loads(text)
    assert raw["metadata"]["attention_course"]["assignment"] == NAME
    assert sum("raise NotImplementedError()" in c["source"] for c in map(joined, raw["cells"])) == 4
    assert not any(c.get("outputs") for c in raw["cells"])


def joined(c):
    return {**c, "source": "".join(c["source"])}


def test_points():
    task = assignment.load(NAME)
    assert (task.points, sum(t.points for t in task.tests)) == (35, FULL)
    assert 20 <= task.points <= 40


@pytest.mark.skipif(sandbox.problem() is not None, reason=str(sandbox.problem()))
def test_from_the_command_line(tmp_path, capsys):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "ada.ipynb").write_bytes(submissions.data(submissions.solved()))
    (tmp_path / "in" / "ben.ipynb").write_bytes(b"")
    out = str(tmp_path / "out")
    assert main(["release", NAME, str(tmp_path / "for students")]) == 0
    assert main(["grade", NAME, str(tmp_path / "in"), out, "--workers", "1"]) == 0
    assert main(["feedback", out]) == 0
    assert main(["export", out, "--format", "moodle"]) == 0
    said = capsys.readouterr().out
    assert "1  graded" in said and "1  unreadable" in said and "to_mark.csv" in said and "2 grades are blank" in said
    assert (tmp_path / "out" / "feedback" / "ada.html").exists()


@pytest.mark.parametrize(("arguments", "words"), [
    (["grade", "assignment0", "x", "y"], "There is no assignment"),
    (["grade", NAME, "no such folder", "y"], "does not exist"),
    (["feedback", "no such folder"], "run grade first"),
    (["release", "../assignment1", "y"], "There is no assignment")])
def test_errors_are_one_sentence(arguments, words, capsys):
    assert main(arguments) == 1
    said = capsys.readouterr()
    assert words in said.err and said.err.count("\n") == 1 and not said.out
