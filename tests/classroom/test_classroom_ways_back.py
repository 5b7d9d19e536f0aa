"""Ways back to a platform: feedback and personal notebooks in its own zips, dates, attempts."""

import html
import json
import os
import re
import subprocess
import sys
import time
import zipfile
from datetime import datetime

import nbformat
import pytest
from commands import command
from languages import LANGUAGES
from results import ALL, change, change_batch, fill
from submissions import FULL, NAME, data, needs_sandbox, put, solved

from classroom import attempts, batch, clock, collecting, dates, exports, marks, reports, roster, variants
from classroom.names import page_of
from classroom.sandbox import ROOT


def as_canvas_reads(name):
    """(user, attachment) that Canvas infers from the name of a file: the first two numbers between underscores."""
    parts = [part for part in name.split("/")[-1].split("_") if part != "LATE"]
    assert not parts[-1].startswith("link")
    return tuple([part for part in parts if re.fullmatch(r"\d+", part)][:2])


def as_moodle_reads(path):
    """(number, file) that Moodle infers from a path in the zip."""
    name, number, kind, plugin, rest = path.split("/")[0].split("_", 4)
    assert name and (kind, plugin, rest) == ("assignsubmission", "file", "")
    return number, path.split("/", 1)[1]


def test_feedback_for_canvas_goes_to_the_file_that_was_handed_in(out):
    """Whatever kind of file that is, and whichever of several."""
    for key, folder, file in (
            ("Ada_Lovelace_1", "ada_1_500_a", "ada_1_501_b-1.ipynb"), ("Ben_2", "ben_2_502_a", "ben_2_502_a.pdf"),
            ("Cy__b__3", "cy_3_503_a", "cy_3_504_z/work/a.ipynb"), ("Dee_4", "dee_4_505_a", "dee_4_505_a.py")):
        change(out, key, folder=folder, file=file)
    fill(out, ALL)
    reports.write_pages(out)
    _, _, notes = exports.export(out, "canvas")
    with zipfile.ZipFile(out / "canvas_feedback.zip") as archive:
        assert sorted(archive.namelist()) == ["ada_1_501_b-1.ipynb", "cy_3_504_z.zip", "dee_4_505_a.py"]
        assert "33 of 35 points" in archive.read("dee_4_505_a.py").decode()
    assert any("Ben (.pdf)" in note and "Send these pages yourself" in note for note in notes)


def test_feedback_for_canvas(out):
    names = {"Ada_Lovelace_1": ("lovelaceada_1_501_a 2.ipynb",) * 2,
             "Ben_2": ("ben_LATE_2_502_work.zip", "ben_LATE_2_502_work/below/a_9_9_.ipynb"),
             "Cy__b__3": ("Cy", "Cy/a.ipynb")}
    for key, (folder, file) in names.items():
        change(out, key, folder=folder.rsplit(".", 1)[0], file=file)
    fill(out, ALL)
    assert "canvas_feedback.zip" not in str(exports.export(out, "canvas")[0]), "there are no pages yet"
    reports.write_pages(out)
    paths, _, notes = exports.export(out, "canvas")
    assert out / "canvas_feedback.zip" in paths and "number in Canvas is not known: Cy <b>; Dee" in " ".join(notes)
    with zipfile.ZipFile(out / "canvas_feedback.zip") as archive:
        found = {as_canvas_reads(name): (name, archive.read(name)) for name in archive.namelist()}
        assert set(found) == {("1", "501"), ("2", "502")}
        name, data = found["1", "501"]
        book = nbformat.reads(data, 4)
        nbformat.validate(book)
        assert name.endswith("a 2.ipynb") and "34.5 of 35 points" in book.cells[0].source
        assert all(line.startswith("    ") or not line for line in book.cells[0].source.split("\n")[1:]), "nothing is markup"
        name, data = found["2", "502"]
        (out / "inner.zip").write_bytes(data)
    with zipfile.ZipFile(out / "inner.zip") as inner:
        page = inner.read("feedback.html").decode()
    assert name.endswith(".zip") and "22 of 35 points" in page and html.escape("exp <overflows>") in page


def test_a_number_fills_only_the_line_of_the_person_that_was_graded(out, tmp_path):
    """Ada's notebook came with another student's number, and Ada was found by her name."""
    into = tmp_path / "gradebook.csv"
    about = {"id": "40880", "folder": "lovelaceada_40880_7_a", "file": "lovelaceada_40880_7_a.ipynb"}
    fill(out, ALL)
    reports.write_pages(out)
    for name, number, last, filled in (("Black, Olivia", "", "Lovelace, Ada", ""), ("Lovelace, Ada", "", "Cy", "34.5"),
                                       ("Black, Olivia", "40880", "Lovelace, Ada", ""), ("A. L.", "40880", "Cy", "34.5")):
        person = {"name": "Ada Lovelace", "canvas": number, "email": "ada@x.org", "login": "al"}
        change(out, "Ada_Lovelace_1", **about, person=person)
        into.write_text(f'Student,ID,SIS Login ID,Work\n"{name}",40880,other,\nBen,2,ben,\n"{last}",40859,,\n',
                        encoding="utf-8")
        (out / "canvas_feedback.zip").unlink(missing_ok=True)
        notes = exports.export(out, "canvas", into, "Work")[2]
        assert [row["Work"] for row in marks.read_csv(out / "canvas_filled.csv")] == [filled, "22", ""]
        assert ("Ada Lovelace has the number 40880, which is another person's" in " ".join(notes)) == (not filled)
        if (out / "canvas_feedback.zip").exists():
            assert about["file"] not in zipfile.ZipFile(out / "canvas_feedback.zip").namelist() or filled


def test_personal_notebooks_for_moodle(tmp_path):
    (tmp_path / "w.csv").write_text("Identifier,Full name,Email address\nParticipant 11,Wei Zhang,a@x.org\n"
                                    "Participant 12,Wei Zhang,b@x.org\nParticipant 13,Seán O'Bri_en,\n", encoding="utf-8")
    said = command("release", "assignment1", tmp_path, "--variant", "v", "--students", tmp_path / "w.csv")
    assert "assignment1-moodle.zip" in said
    given = {one.moodle: one.variant for one in roster.read(tmp_path / "assignment1-roster.csv")}
    with zipfile.ZipFile(tmp_path / "assignment1-moodle.zip") as archive:
        for path in archive.namelist():
            number, file = as_moodle_reads(path)
            carried = json.loads(archive.read(path))["metadata"]["attention_course"]["variant"]
            assert file == "assignment1.ipynb" and carried == given.pop(number)
    assert not given and len(set(variants.read(tmp_path / "assignment1-variants.json").students)) == 3
    (tmp_path / "c.csv").write_text("Student,ID\nAda,5\n")  # numbers of Canvas
    command("release", "assignment1", tmp_path / "canvas", "--variant", "v", "--students", tmp_path / "c.csv")
    assert not (tmp_path / "canvas" / "assignment1-moodle.zip").exists()


# ---------------------------------------------------------------- due, late, extended


def came(out, **times):
    for key, text in times.items():
        change(out, key, modified=dates.when(text).timestamp())


def grades(out):
    exports.export(out, "csv")
    return {row["student"]: float(row["points"]) for row in marks.read_csv(out / "grades.csv")}


def test_late_work_and_an_extension(out):
    fill(out, ALL)
    full = grades(out)
    came(out, Ada_Lovelace_1="2027-10-31 23:59", Ben_2="2027-11-01 00:10", Dee_4="2027-11-02 12:00",
         **{"Cy__b__3": "2027-12-24 12:00"})
    said = command("late", out, "--due", "2027-10-31 23:59", "--penalty", "10", "--most", "50", "--grace", "15")
    assert "Dee: 2 days late" in said and "Cy <b>: 54 days late" in said and "Ben:" not in said and "Ada" not in said
    # of 35 points: none, none thanks to the grace, 20 %, and 50 %, of which Cy has only 10
    assert grades(out) == {"Ada Lovelace": full["Ada Lovelace"], "Ben": full["Ben"], "Dee": full["Dee"] - 7, "Cy <b>": 0}
    said = command("late", out, "--extend", "dee=2027-11-01", "--extend", "Zoë=2027-12-01")
    assert "Dee: 1 day late" in said and "kept for when they are: Zoë" in said
    assert grades(out)["Dee"] == full["Dee"] - 3.5 and grades(out)["Ben"] == full["Ben"]
    reports.write_pages(out)
    page = (out / "feedback" / "Dee_4.html").read_text(encoding="utf-8")
    assert "29.5 of 35 points" in page and "late:" in page and "-3.5 points" in page and "1 day late" in page


def test_late_names_those_who_handed_in_nothing(out):
    people = [roster.Person(name) for name in ("Ada Lovelace", "Ben", "Eve Nobody", "Fay Later")]
    for result in batch.read(out)[0]:
        change(out, result["key"], person={"name": result["student"]})
    results = batch.read(out)[0]
    roster.write_found(out / "roster.csv", results, people)
    longer = ["--extend", "Later=2999-01-01", "--extend", "Eve Nobody=1999-01-01"]
    said = command("late", out, "--due", "2027-10-31", *longer)
    assert "2 handed in nothing: Eve Nobody; Fay Later (may until 2999-01-01 23:59).\n" in said
    (out / "roster.csv").unlink()
    assert "handed in nothing" not in command("late", out)


def test_times_come_from_moodles_worksheet_and_from_no_zip_of_canvas(out, tmp_path):
    fill(out, ALL)
    (tmp_path / "w.csv").write_text(
        'Identifier,Full name,Last modified (submission)\nParticipant 1,Ada,"Tuesday, 2 November 2027, 8:00 AM"\n'
        'Participant 2,Ben,-\nParticipant 9,Xi,"Tuesday, 2 November 2027, 8:00 AM"\n', encoding="utf-8")
    for key, folder in {"Dee_4": "dee_LATE_4_50_a", "Cy__b__3": "cy_3_51_a"}.items():
        change(out, key, folder=folder, modified=4e9)
    said = command("late", out, "--due", "2027-11-01", "--times", tmp_path / "w.csv")
    assert "Ada Lovelace: 1 day late, 2027-11-02 08:00" in said and "does not say by how much: Dee." in said
    assert "For 1 the time is that of the file" in said and grades(out)["Ada Lovelace"] == 31 and grades(out)["Dee"] == 33
    command("late", out, "--came", "Dee=2027-11-03 01:00")
    assert grades(out)["Dee"] == 26


def test_the_page_says_where_a_penalty_ends_and_what_an_extension_did(out):
    fill(out, ALL)
    for key, folder in {"Dee_4": "dee_LATE_4_50_a", "Cy__b__3": "cy_LATE_3_51_a", "Ben_2": "ben_LATE_2_52_a"}.items():
        change(out, key, folder=folder, found=[collecting.LATE])
    came(out, Ada_Lovelace_1="2027-11-04 12:00")
    command("late", out, "--due", "2027-10-31", "--penalty", "20", "--most", "50", "--came", "Dee=2027-11-02",
            "--extend", "Dee=2027-11-05", "--extend", "Ben=2027-11-06", "--came", "Cy <b>=2027-11-20")
    reports.write_pages(out)
    pages = {result["key"]: page_of(result) for result in batch.read(out)[0]}
    ada, ben, cy, dee = [(out / "feedback" / pages[key]).read_text(encoding="utf-8")
                         for key in ("Ada_Lovelace_1", "Ben_2", "Cy__b__3", "Dee_4")]
    assert "20 % of the points a day, at most 50 %, which is what counts here." in ada and "below 0" not in ada
    assert "-10 points" in cy and "The grade does not fall below 0." in cy
    assert "Canvas marks it as late, but in time by your extension, until 2027-11-05 23:59." in dee
    assert "Canvas marks it as late, but you have an extension until 2027-11-06 23:59." in ben
    assert "Canvas marks it as late." in cy


@pytest.mark.parametrize(("arguments", "words"), [
    (["--due", "31/10"], "'31/10' is not a date"), (["--extend", "Ada"], "not a student and a date"),
    (["--extend", "Ada=soon"], "'soon' is not a date"), (["--times", "grades.csv"], "no column that says when"),
    (["--extend", "Ben Twin=2027-01-01"], "may be Ben_2 or Dee_4"),
    (["--extend", "Twin=2027-01-01"], "Twin may be Ben_2 or Dee_4: say which"),
    (["--extend", "Xi="], "Nothing was said of Xi")])
def test_dates_that_cannot_be_told(arguments, words, out, monkeypatch):
    exports.export(out, "csv")
    monkeypatch.chdir(out)
    for key in ("Ben_2", "Dee_4"):
        change(out, key, student="Twin, Ben")
    said = command("late", out, *arguments, fails=True)
    assert words in said and not (out / dates.FILE).exists()


def test_a_family_name_is_enough_and_an_extension_can_be_taken_out(out):
    longer = ["--extend", "Lovelace=2027-11-07", "--extend", "Twin=2027-11-08"]
    said = command("late", out, "--due", "2027-10-31", *longer)
    assert "kept for when they are: Twin. To take one out again: --extend 'Twin='." in said
    assert set(dates.read(out, batch.read(out)[0]).mine) == {"Ada_Lovelace_1"}
    change(out, "Ben_2", student="Byron Lovelace")
    assert set(dates.read(out, batch.read(out)[0]).mine) == {"Ada_Lovelace_1"}  # one who comes later changes nothing
    for key in ("Ben_2", "Dee_4"):
        change(out, key, student="Ben Twin")
    assert "goes with --extend 'Twin='" in command("feedback", out, fails=True)
    command("late", out, "--extend", "Twin=", "--extend", "Ada Lovelace=")
    assert not dates.read(out, batch.read(out)[0]).extensions
    people = [("a", ["Иван Ivanov"]), ("b", ["Ivanova Anna"]), ("c", ["O'Brien, Sean"]), ("d", ["Ann O'Brien"])]
    assert roster.find("Ivanov", people) == ["a"] and roster.find("OBrien", people) == ["c", "d"]


def test_dates_as_people_write_them():
    assert dates.when("2027-10-31") == datetime(2027, 10, 31, 23, 59, 59)
    assert dates.when("2027-10-31T12:00") == dates.when("Sunday, 31 October 2027, 12:00 PM") == datetime(2027, 10, 31, 12)
    assert dates.when("2027-10-31T12:00:00+00:00").timestamp() == 1824984000
    tokyo = clock.zone("Asia/Tokyo")
    assert dates.when("2027-10-31T12:00:00+00:00", tokyo) == datetime(2027, 10, 31, 21)
    for text in (*(date for *_, date, _ in LANGUAGES.values()), "October 31, 2026, 8:00 pm", "31/10/2026 20:00",
                 "Saturday, October 31, 2026, 8:00\u202fPM", "Saturday,\u00a0October 31, 2026, 20:00",
                 "31 October 2026, 20:00", "Oct 31, 2026, 8:00 PM", "2026-10-31 20:00", "sábado, 31 out. 2026, 20:00",
                 "sábado, 31 de outubro de 2026, 20:00", "sábado, 31 de octubre de 2026, 08:00 PM",
                 "sábado, 31 de octubre de 2026, 8:00 p. m.", "sabato, 31 ottobre 2026, 20:00"):
        assert dates.when(text) == dates.when(text, tokyo) == datetime(2026, 10, 31, 20), text
    assert dates.when("7. November 2026") == datetime(2026, 11, 7, 23, 59, 59)
    for text in ("Saturday, October 32, 2026, 8:00 PM", "10/11/2026", "Saturday", "", "next week", "2026", "October 2026",
                 "31 October, 20:00", "35,00"):
        with pytest.raises(dates.DateError):
            dates.when(text)


def course(zone, *words):
    """What a command says on a machine in another time zone."""
    done = subprocess.run([sys.executable, "-m", "classroom", *map(str, words)], env={**os.environ, "TZ": zone},
                          cwd=ROOT, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_one_clock_for_an_assignment_whatever_machine_a_command_runs_on(out):
    """A due date meant another thing in each zone: `late` and then `export` elsewhere changed grades in silence."""
    fill(out, ALL)
    came(out, Ada_Lovelace_1="2026-11-01T00:00:00+00:00", Dee_4="2026-11-01T04:30:00+00:00")
    first = "Asia/Kolkata"
    said = course(first, "late", out, "--due", "2026-10-31 23:59", "--penalty", "10")
    assert f"All dates are by the clock of {first}." in said
    assert "Ada Lovelace: 1 day late" in said, "it is 05:30 there when Europe has midnight"
    rows, pages = [], []
    for zone in ("UTC", "America/New_York"):
        course(zone, "feedback", out)
        pages.append((out / "feedback" / "Dee_4.html").read_text(encoding="utf-8"))
        said = course(zone, "export", out)
        assert f"clock of {first}." in said
        rows.append((out / "grades.csv").read_text(encoding="utf-8"))
        assert f"clock of {first}." in course(zone, "late", out)
    assert len(set(rows)) == 1 and f"handed in ({first})" in rows[0]
    assert len(set(pages)) == 1 and f"Due: 2026-10-31 23:59 ({first})" in pages[0]
    assert json.loads((out / "batch.json").read_text())["zone"] == first


def test_the_zone_of_a_machine_is_found_by_its_name(monkeypatch, tmp_path, out):
    for named, found in (("Europe/Berlin",) * 2, (":/usr/share/zoneinfo/Asia/Tokyo", "Asia/Tokyo"), ("UTC", "UTC")):
        monkeypatch.setenv("TZ", named)
        assert str(clock.of_machine()) == found
    monkeypatch.setenv("TZ", "<+0530>-5:30")  # a rule without a name
    if hasattr(time, "tzset"):
        time.tzset()
        zone = clock.of_machine()
        assert str(zone) == "UTC+05:30" and clock.zone(str(zone)) == zone
    monkeypatch.undo()
    if hasattr(time, "tzset"):
        time.tzset()
    change_batch(out, zone="Nowhere/Atlantis")
    command("export", out, fails=True)
    for name in ("", "..", "/etc/passwd", "Europe", "x" * 5_000, "a\0b"):
        with pytest.raises(clock.ClockError):
            clock.zone(name)


def test_no_page_shows_the_time_of_a_teachers_download(out):
    fill(out, ALL)
    change(out, "Dee_4", folder="dee_4_50_a", history=[
        {"file": "b.ipynb", "modified": 1e9, "points": 3, "counts": False, "status": "graded"}])
    reports.write_pages(out)
    exports.export(out, "csv")
    rows = {row["student"]: row for row in marks.read_csv(out / "grades.csv")}
    column = next(name for name in rows["Dee"] if name.startswith("handed in"))
    assert rows["Dee"][column] == "" and rows["Ben"][column].startswith("2001-09-")
    assert "2001" not in (out / "feedback" / "Dee_4.html").read_text(encoding="utf-8")
    assert "2001" in (out / "feedback" / "Ben_2.html").read_text(encoding="utf-8")


# ---------------------------------------------------------------- one student, and several attempts


@needs_sandbox
def test_one_student_is_graded_and_nobody_else_changes(tmp_path):
    for name in ("Seán O'Brien_11", "Ada Lovelace_12", "Ada Byron_13"):
        put(tmp_path / "in", {f"{name}_assignsubmission_file_/a.ipynb": b""})
    words = ["grade", NAME, tmp_path / "in", tmp_path / "out"]

    def written():
        return {path.stem: path.stat().st_mtime_ns for path in (tmp_path / "out" / "results").iterdir()}

    assert "Nobody called nobody is among the submissions" in command(*words, "--student", "nobody", fails=True)
    assert not (tmp_path / "out").exists()
    command(*words, "--student", "obrien, sean")
    assert list(written()) == ["Sean_O_Brien_11"]
    assert command(*words).count("Lovelace") == 1
    before = written()
    line, others, then = command(*words, "--student", 12, "--again").splitlines()
    assert len(before) == 3
    assert line == "Ada Lovelace: unreadable. The file is empty." and "the others, 2 in all, stay as they were" in others
    assert "Byron" not in line + others and "feedback" in then
    assert {key for key, time in written().items() if time != before[key]} == {"Ada_Lovelace_12"}
    assert len(batch.read(tmp_path / "out")[0]) == 3


@pytest.mark.slow
@needs_sandbox
def test_the_best_or_the_last_attempt_counts(tmp_path):
    worse = data(solved(effective_words="def effective_words(weights):\n    return 1.0"))

    def hand_in(name, content, age):
        put(tmp_path / "in" / "ada", {name: content})
        os.utime(tmp_path / "in" / "ada" / name, (time.time() - age,) * 2)

    def counts(*arguments):
        command("grade", NAME, tmp_path / "in", tmp_path / "out", "--workers", 1, *arguments)
        [found] = batch.read(tmp_path / "out")[0]
        return found["file"], [(one["file"], one["counts"]) for one in found.get("history", [])], found["tests"]

    hand_in("1.ipynb", data(solved()), 100)
    hand_in("2.ipynb", worse, 50)
    file, history, tests = counts("--count", "best")
    assert (file, history) == ("ada/1.ipynb", [("ada/1.ipynb", True), ("ada/2.ipynb", False)])
    assert sum(test["points"] for test in tests) == FULL
    reports.write_pages(tmp_path / "out")
    page = (tmp_path / "out" / "feedback" / "ada.html").read_text(encoding="utf-8")
    assert "26 points for code, which counts" in page and "newest" not in page, "one of the two is said to count"
    [old] = batch.read(tmp_path / "out")[0]
    assert counts("--count", "best", "--cell-seconds", "19")[:2] == (file, history)  # all is graded again
    assert [one["fingerprint"] for one in batch.read(tmp_path / "out")[0]] != [old["fingerprint"]]
    assert counts("--count", "best")[:2] == (file, history)
    before = [one["seed"] for one in attempts.graded(tmp_path / "out", "ada")]
    file, history, tests = counts()  # nothing is graded again, and so no other inputs were drawn
    assert sorted(one["seed"] for one in attempts.graded(tmp_path / "out", "ada")) == sorted(before)
    assert (file, history) == ("ada/2.ipynb", [("ada/1.ipynb", False), ("ada/2.ipynb", True)]) and len(before) == 2
    assert sum(test["points"] for test in tests) < FULL
    (tmp_path / "in" / "ada" / "1.ipynb").unlink()  # the next download has the newest alone
    hand_in("3.ipynb", b"", 1)
    assert counts("--count", "best")[0] == "ada/1.ipynb"
    reports.write_pages(tmp_path / "out")
    page = (tmp_path / "out" / "feedback" / "ada.html").read_text(encoding="utf-8")
    assert "What you handed in" in page and page.count("which counts") == 1 and "26 points for code, which counts" in page
