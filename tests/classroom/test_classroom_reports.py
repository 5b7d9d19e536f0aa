"""Pages, the sheet to mark, exports, and the command line, on results that a batch might leave."""

import csv
import os
import shutil
import subprocess
import sys
import zipfile
from urllib.parse import quote

import pytest
from commands import command
from results import ALL, MARKUP, TOTALS, Skeleton, change, change_batch, fill, result
from submissions import NAME, put

from classroom import assignment, batch, clock, exports, marks, overview, reports, roster, sandbox
from classroom.collecting import Submission
from classroom.names import page_of
from classroom.roster import Person


def totals(out):
    return {row["id"]: row["points"] for row in marks.read_csv(out / "grades.csv")}


def test_failures_are_blank_with_a_reason(out):
    _, blank, _ = exports.export(out, "csv")
    rows = {row["student"]: row for row in marks.read_csv(out / "grades.csv")}
    assert blank == 4 and all(row["points"] == "" and row["blank because"] for row in rows.values())
    assert "empty" in rows["Cy <b>"]["blank because"] and "time limit" in rows["Ben"]["blank because"]
    for style in ("canvas", "moodle"):
        exports.export(out, style)
        assert ",0," not in (out / f"{style}.csv").read_text(encoding="utf-8")


def test_a_class_that_wrote_no_answer_gets_its_pages(out):
    """The sheet then has its first line and no more."""
    results = [one | {"answers": [answer | {"text": None, "untouched": True} for answer in one["answers"]]}
               for one in batch.read(out)[0] if one["status"] == "graded"]
    (out / marks.SHEET).unlink()
    marks.write_sheet(results, out)
    assert marks.read_csv(out / marks.SHEET) == [] and marks.read_sheet(out) == {}
    reports.write_pages(out)
    for text in ("", "name,mail\n"):
        (out / marks.SHEET).write_text(text)
        with pytest.raises(marks.SheetError, match="no columns key, item and points"):
            marks.read_sheet(out)


@pytest.mark.parametrize(("value", "written"), [
    *((number, number) for number in ("-3.3", "-3.3e-05", "-0.5", "-7", "-.5", "-1E3", "3.3", "0")),
    *((text, f"'{text}") for text in ("=1+1", "+1", "@x", "-x", "-1+1", "--1", "-1e", "- 1", "-\u0663", "-1=1", "-", "'=1",
                                      "\uff1d1", "-1+cmd|' /C calc'!A0"))])
def test_a_number_below_zero_is_a_number_and_a_formula_is_text(value, written):
    assert marks.csv_text([[value]]).strip() == written and marks._unguarded(written) == value


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


MOODLE = ["Identifier", "Full name", "Email address", "Status", "Grade", "Maximum grade", "Last modified (grade)"]


def written(path, *rows, separator=",", encoding="utf-8-sig"):
    with path.open("w", newline="", encoding=encoding) as file:
        csv.writer(file, delimiter=separator).writerows(rows)
    return path


def test_moodle_worksheet_and_zip_in_one_step(out, tmp_path):
    change(out, "Ben_2", student="Zo\u00eb M\u00fcller", id="")
    change(out, "Dee_4", student="dee@example.org", id="")
    fill(out, {(n, i): p for (n, i), p in ALL.items() if n[0] in "AC"})
    reports.write_pages(out)
    people = [(1, "Renamed", ""), (2, "Mu\u0308ller, Zoe\u0308", ""), (4, "D.", "dee@example.org"), (5, "Twin", ""),
              (6, "Twin", "")]
    sheet = written(tmp_path / "worksheet.csv", MOODLE, *(
        [f"Participant {n}", name, mail, "Submitted", "", "100,00", "-"] for n, name, mail in people), separator=";")
    said = command("export", out, "--format", "moodle", "--into", sheet)
    assert [row["Grade"] for row in marks.read_csv(out / "moodle_filled.csv")] == ["34,5", "", "", "", ""]
    assert "says 100,00 points at most and this assignment has 35" in said and said.count("points at most") == 1
    assert "so not filled in: Cy <b>." in said and "2 grades are blank" in said and "run feedback" not in said
    with zipfile.ZipFile(out / "moodle_feedback.zip") as archive:
        folders = sorted(name.split("/")[0] for name in archive.namelist())
    assert folders == ["Ada Lovelace_1_assignsubmission_file_", "Cy b_3_assignsubmission_file_",
                       "Zo\u00eb M\u00fcller_2_assignsubmission_file_", "dee example.org_4_assignsubmission_file_"]
    for folder in folders:  # as Moodle reads it
        name, number, kind, plugin, rest = folder.split("_", 4)
        assert number.isdigit() and (kind, plugin, rest) == ("assignsubmission", "file", "")
    ben = next(result for result in batch.read(out)[0] if result["key"] == "Ben_2")
    os.utime(out / "feedback" / page_of(ben), (1, 1))
    assert any("run feedback" in note for note in exports.export(out, "moodle")[2])


def test_a_grade_never_goes_to_somebody_else(out, tmp_path):
    for key, name in {"Ada_Lovelace_1": "12", "Ben_2": "Twin", "Dee_4": "\u2014"}.items():
        change(out, key, student=name, id="")
    fill(out, {(row["student"], row["item"]): 1 for row in marks.read_csv(out / marks.SHEET)})
    sheet = written(tmp_path / "w.csv", MOODLE, ["Participant 5", "Twin", "", "-", "12", "35", "-"],
                    ["Participant 6", "Twin", "", "-", "1", "35", "-"], ["Participant 7", "", "", "\u2014", "", "35", "-"],
                    ["Participant 3", "Cy", "", "-", "", "35", "-"])
    exports.export(out, "moodle", sheet)
    rows = marks.read_csv(out / "moodle_filled.csv")
    assert [row["Grade"] for row in rows] == ["12", "1", "", "1"] and rows[0]["Status"] == "-"
    with pytest.raises(exports.Mismatch, match="no column"):
        exports.export(out, "moodle", sheet, "Points")


def test_canvas_columns(out, tmp_path):
    fill(out, ALL)
    head = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Homework 1 (901)", "Homework 10 (902)", "Final"]
    sheet = written(tmp_path / "g.csv", head, ["    Points Possible", "", "", "", "", "30", "10", "(read only)"],
                    ["Lovelace, Ada", "1", "", "", "A", "", "7", "80"])
    with pytest.raises(exports.Mismatch, match="several columns"):
        exports.export(out, "canvas", sheet, "Homework")
    _, _, notes = exports.export(out, "canvas", sheet, "Homework 1")
    rows = marks.read_csv(out / "canvas_filled.csv")
    assert list(rows[0]) == head and rows[0]["Student"] == "    Points Possible" and rows[0]["Homework 1 (901)"] == "30"
    assert (rows[1]["Homework 1 (901)"], rows[1]["Homework 10 (902)"]) == ("34.5", "7")
    assert "30 points at most" in notes[0] and "Ben; Cy <b>; Dee" in notes[1]
    with pytest.raises(exports.Mismatch, match="canvas and moodle"):
        exports.export(out, "csv", sheet)


def test_the_assignments_short_name_is_found_and_blank_cells_have_names(out, tmp_path):
    fill(out, {place: points for place, points in ALL.items() if place[0] != "Dee"})
    sheet = written(tmp_path / "g.csv", ["Student", "ID", "Assignment 1 (4502)", "Assignment 10 (4503)"],
                    ["Lovelace, Ada", "1", "", ""], ["Dee", "4", "", ""], ["Nobody, Xi", "5", "", ""],
                    ["Student, Test", "6", "", ""])
    *_, notes = exports.export(out, "canvas", sheet)
    rows = marks.read_csv(out / "canvas_filled.csv")
    assert [row["Assignment 1 (4502)"] for row in rows] == ["34.5", "", "", ""] and not rows[0]["Assignment 10 (4503)"]
    assert "Blank, because points are missing: Dee." in notes
    assert any(note.endswith("their cell stays as it is: Nobody, Xi.") for note in notes)


def test_the_page_for_the_class_says_who_handed_in_nothing(out):
    people = [Person(f"Student <{i}>") for i in range(30)]
    _, told = roster.who([Submission("Student <0>")], people, None)
    change_batch(out, told=told)
    page = reports.write_pages(out).read_text(encoding="utf-8")
    assert "29 on the list of students are not among the submissions" in page and "Student &lt;29&gt;" in page


@pytest.mark.parametrize(("student", "key", "name"), [
    ("Wei Zhang", "zw17", "Wei_Zhang-zw17"), ("Wei Zhang", "Wei_Zhang_17", "Wei_Zhang_17"), ("zw17", "zw17", "zw17"),
    ("李小龙", Submission("李小龙").key, "李小龙-" + Submission("李小龙").key[-8:]),
    ("Participant 123", Submission("Participant 123", "123").key, "Participant_123_123")])
def test_a_page_has_the_name_of_its_student(out, student, key, name):
    (out / "results" / "Ada_Lovelace_1.json").rename(out / "results" / f"{key}.json")
    change(out, key, student=student, key=key)
    change_batch(out, keys=[key])
    (out / "feedback").mkdir()
    (out / "feedback" / f"{key}.html").write_text("as an older version called it")
    page = reports.write_pages(out).read_text(encoding="utf-8")
    assert [file.name for file in (out / "feedback").iterdir()] == [f"{name}.html"]
    assert f'href="feedback/{quote(name)}.html"' in page
    assert student in (out / "feedback" / f"{name}.html").read_text(encoding="utf-8")


def test_a_reader_that_has_seen_enough_is_no_problem(out):
    """As with ``| head -1``, whoever closes the pipe first."""
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([sys.executable, "-m", "classroom", "feedback", str(out)], stdout=write, stderr=subprocess.PIPE,
                          cwd=sandbox.ROOT, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"") and (out / "class.html").exists()


def test_marks_for_what_is_not_there_are_told(out):
    fill(out, ALL)
    path = out / marks.SHEET
    path.write_bytes(path.read_bytes().replace(b"Dee_4,", b"Dee 4,"))  # as a spreadsheet that knows better
    _, blank, notes = exports.export(out, "csv")
    assert blank == 1 and "Dee 4, answer-cosine" in notes[0]


def test_the_sheet_survives_spreadsheets_and_students(out):
    fill(out, ALL)
    path, text = out / marks.SHEET, (out / marks.SHEET).read_text(encoding="utf-8-sig")
    assert "'=HYPERLINK" in text
    for damaged in (text.replace("\r\n", "\r"), text + ",,,,,,,\r\n" * 3, text.replace(",student,", ",name,")):
        path.write_text(damaged, encoding="utf-8", newline="")
        exports.export(out, "csv")
        assert totals(out) == TOTALS
    results = list(batch.read(out)[0])
    results[0]["answers"][0]["text"] = '= 1\n=2;=3\n- a point\ufeff\n"quoted, \n\uff1d4"'
    marks.write_sheet(results, out)
    rows = {(row["student"], row["item"]): row for row in marks.read_csv(path)}
    row = rows["Ada Lovelace", "answer-measurement"]
    assert row["why"].startswith(marks.CHANGED) and row["points"] == "4.5"
    assert not any(marks.CHANGED in other["why"] for other in rows.values() if other is not row)
    assert row["text"].startswith("'= 1\n =2; =3\n - a point")
    path.write_bytes(b'key,item,points\r\na,b,"' + b"x" * 11_000_000)
    with pytest.raises(marks.SheetError, match="cannot be read as CSV"):
        marks.read_sheet(out)


def test_dates_cannot_stop_a_page():
    zone = clock.zone("Europe/Berlin")
    assert clock.words(4e18, zone) == clock.words(0, zone) == "" and clock.words(1e9, zone) == "2001-09-09 03:46"


def test_pages(out):
    fill(out, ALL)
    page = reports.write_pages(out).read_text(encoding="utf-8")
    assert "overflow" in page and "Ben<br>Dee<br>" in page and "Cy &lt;b&gt;" in page and "<b>Cy" not in page
    pages = {result["key"]: out / "feedback" / page_of(result) for result in batch.read(out)[0]}
    dee = pages["Dee_4"].read_text(encoding="utf-8")
    assert "33 of 35" in dee and "exp &lt;overflows&gt;" in dee and "Called with x" in dee and "SOLUTION" not in dee
    assert "could not be graded" not in pages["Cy__b__3"].read_text(encoding="utf-8")  # marked by hand


def test_what_the_class_did_is_counted_by_question(out):
    fill(out, ALL)
    results, about = batch.read(out)
    results, sheet = list(results), marks.read_sheet(out)
    grades = {one["key"]: marks.grade_of(one, sheet) for one in results}
    by_item = {one.item: one for one in overview.questions(results, grades)}
    pair = by_item["test-most_similar_pair"]  # Ada 5 of 5, Ben 2 by hand, Cy's whole by hand, Dee 5
    assert dict(pair.ends) == {"all points": 2, "some": 1, "no points yet": 1} and pair.share == pytest.approx(12 / 15)
    assert by_item["answer-cosine"].ends == {"all points": 2, "none": 1, "no points yet": 1}
    assert all(sum(one.ends.values()) == 4 for one in by_item.values())
    assert sum(by_item["test-effective_words-extreme"].mistakes.values()) == 0
    assert overview.totals(results, grades) == [10, 22, 33, 34.5]
    (out / "roster.csv").write_text('name,handed in\n"Lovelace, Ada",a.ipynb\n"Nobody, Xi",\n', encoding="utf-8")
    page = reports.write_pages(out).read_text(encoding="utf-8")
    hardest = min((one for one in by_item.values() if one.share is not None), key=lambda one: one.share)
    assert f"<b>Hardest:</b> {reports._task_name(hardest.item)}" in page and "<li>Nobody, Xi</li>" in page
    assert page.count('role="img"') == 3 and '<span class="part0" style="flex: 2">2</span>' in page
    assert overview.absent(out) == ["Nobody, Xi"]
    assert overview.columns([], 0) == [] and [n for *_, n in overview.columns([0, 3, 10], 10)] == [1, 0, 0, 1, *[0] * 5, 1]


def test_one_command_writes_everything(out, tmp_path):
    fill(out, ALL)
    sheet = written(tmp_path / "w.csv", MOODLE, ["Participant 1", "Ada Lovelace", "", "-", "", "35,00", "-"])
    command("feedback", out, "--format", "moodle", "--into", sheet)
    assert {"class.html", "copies.html", "grades.csv", "moodle_filled.csv", "moodle_feedback.zip"} <= {
        file.name for file in out.iterdir()}
    assert "--format" in command("feedback", out, "--into", sheet, fails=True)


def test_nothing_a_student_wrote_is_markup(out):
    """The tags of the pages are the same with harmless words and with hostile ones in every place that can hold words."""
    pages = {}
    for words in ("harmless", MARKUP):
        one = result("Eve", "1", answers=(words, words)) | {"student": words, "file": words, "found": [words],
                                                             "flags": [words], "notes": [words]}
        for test in one["tests"]:
            test |= {"points": 0, "status": words, "message": f"{words}\n{words}", "misconception": words, "function": words}
        for answer in one["answers"]:
            answer["question"] = words
        for status in ("graded", "partly graded", "unreadable"):
            one |= {"status": status, "reason": words}
            grade = marks.grade_of(one, {("Eve_1", "answer-cosine"): (None, words)})
            for page in (reports.student_page(one, grade, words),
                         reports.class_page([one], {"Eve_1": grade}, words, {"refused": [words], "told": [words]}, [words])):
                skeleton = Skeleton(page)
                pages.setdefault(words, []).append(skeleton.tags)
                assert words in skeleton.text and "49" not in skeleton.text
    assert pages["harmless"] == pages[MARKUP] and len(pages[MARKUP]) == 6
    assert not any(tag == "script" for tags in pages[MARKUP] for tag, _ in tags)


def make(*arguments):
    if not shutil.which("make"):
        pytest.skip("there is no make here")
    names = ("A", "FROM", "OUT", "FORMAT", "INTO", "COLUMN", "ARGS", "GRADED", "MAKEFLAGS", "MFLAGS", "MAKELEVEL")
    return subprocess.run(["make", *arguments], cwd=sandbox.ROOT, env={**os.environ, **dict.fromkeys(names, "")},
                          capture_output=True, text=True)


@pytest.mark.parametrize(("arguments", "words"), [
    (["release", "A=assignment1"], "Say OUT= as well, as in: make release A=assignment1 OUT=handout"),
    (["grade", "OUT=x", "FROM=y"], "Say A= as well"), (["grade", "A=x", "OUT=y"], "Say FROM= as well"),
    (["feedback"], "Say OUT= as well"), (["copies"], "Say OUT= as well"), (["export"], "Say OUT= as well"),
    (["term"], "Say GRADED= as well, as in: make term GRADED='graded1 graded2'")])
def test_make_asks_for_what_is_missing(arguments, words):
    done = make(*arguments)
    assert done.returncode != 0 and words in done.stdout and done.stdout.count("\n") == 1


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_terminal_without_a_students_letters_ends_no_command(encoding, out):
    change(out, "Dee_4", student="\u674e\u5c0f\u9f99 \u2264")
    for words in (["late", out, "--due", "2001-01-01"], ["export", out], ["late", out, "--due", "\u674e"]):
        done = subprocess.run([sys.executable, "-m", "classroom", *map(str, words)], cwd=sandbox.ROOT, capture_output=True,
                              env={**os.environ, "PYTHONIOENCODING": encoding})
        said = (done.stdout + done.stderr).decode(encoding)
        assert "Traceback" not in said and done.returncode == (words[-1] == "\u674e"), said
        if words[0] == "late":
            assert "\\u674e" in said


@pytest.mark.skipif(os.name != "posix", reason="users have numbers on POSIX systems")
def test_without_a_home_every_command_starts():
    """In a container with any user's number and without HOME nobody can say where home is."""
    code = ("import os, sys; os.getuid = lambda: 54321; from classroom import __main__, sandbox; sandbox._shown()\n"
            "from helpers.store import model_files; from helpers import minilm\n"
            "try: model_files.find(minilm.MINILM, '~/x')\n"
            "except model_files.ModelNotAvailable: __main__.main(['--help'])")
    done = subprocess.run([sys.executable, "-c", code], cwd=sandbox.ROOT, capture_output=True, text=True,
                          env={name: value for name, value in os.environ.items() if name != "HOME"})
    assert done.returncode == 0 and "Graded work for a class" in done.stdout, done.stderr


def test_make_hands_everything_on():
    wanted = ["OUT=my out", "FORMAT=canvas", "INTO=a b.csv", "COLUMN=Homework 1", "A=assignment1", "FROM=x.zip",
              "GRADED=g1 g2", "PYTHON=echo"]
    for verb, words in (("export", "export my out --format canvas --into a b.csv --column Homework 1"),
                        ("grade", "grade assignment1 x.zip my out"), ("feedback", "feedback my out"),
                        ("copies", "copies my out"), ("term", "term g1 g2 --out my out")):
        done = make(verb, *wanted)
        assert done.stdout.split() == ["scripts/environment.py", "classroom", *words.split()], done.stderr


LISTS = {"names.txt": b"Ada\n", "twice.txt": b"Ada Lovelace\nLovelace, ADA\n", "empty.txt": b"\n\n",
         "odd.csv": b"mail,mark\na@b,3\n", "list.json": b'{"Ada": 1}\n', "mails.txt": b"Ada, ada@x.org\n",
         "old.txt": "Zoë".encode("latin-1")}


@pytest.mark.parametrize(("arguments", "words"), [
    ("grade assignment0 x y", "There is no assignment"), (f"grade {NAME} none y", "does not exist"),
    ("feedback none", "run grade first"), ("release ../assignment1 y", "There is no assignment"),
    ("release assignment0 y", "There is no assignment"), ("release assignment0 y --variant v", "There is no assignment"),
    ("try assignment0 y", "There is no assignment"), ("copies y", "run grade first"), ("export y", "run grade first"),
    ("term y --out z", "run grade first"),
    *((f"release {NAME} y {more}", words) for more, words in (
        ("--variant a/b", "1 to 60 letters"), ("--students names.txt", "with --variant NAME as well"),
        ("--variant v --students no.csv", "no.csv does not exist."), ("--variant v --students twice.txt", "stands twice"),
        ("--variant v --students empty.txt", "holds no names"), ("--variant v --students odd.csv", "no column of names"),
        ("--variant v --students old.txt", "in UTF-8"), ("--variant v --students list.json", "has '{' in it"),
        ("--variant v --students mails.txt", "has '@' in it")))])
def test_errors_are_one_sentence(arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    put(tmp_path, LISTS)
    assert words in command(*arguments.split(), fails=True)
    assert {path.name for path in tmp_path.iterdir()} == set(LISTS), "a folder was made before the names were looked at"
