"""Moodle's files in any language: people, times and the column for the grade are found by place and content."""

import csv
from datetime import datetime

import pytest
from commands import command
from languages import LANGUAGES, worksheet
from results import ALL, fill

from classroom import batch, dates, exports, marks, roster, worksheets
from classroom.roster import Person

PEOPLE = [(1, "Ada Lovelace", "ada@example.org"), (2, "Ben", "ben@example.org"), (3, "Cy <b>", "cy@example.org"),
          (4, "Dee", "dee@example.org"), (9, "李小龙", "xi@example.org")]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_worksheet_in_any_language_goes_from_the_list_to_the_grades(language, out, tmp_path):
    sheet = worksheet(tmp_path / "w.csv", language, [one for one in PEOPLE if "<" not in one[1]])
    assert roster.read(sheet) == [Person(name, str(number), "", address) for number, name, address in PEOPLE
                                  if "<" not in name]
    fill(out, ALL)
    headings, *_, point = LANGUAGES[language]
    assert repr(headings[7]) in command("late", out, "--due", "2026-10-31 12:00", "--times", sheet)
    came = dates.read(out, batch.read(out)[0]).came
    assert came == dict.fromkeys(("Ada_Lovelace_1", "Ben_2", "Dee_4"), datetime(2026, 10, 31, 20))
    [path], _, notes = exports.export(out, "moodle", sheet)
    rows = marks.read_csv(path)
    assert [row[headings[4]] for row in rows] == ["31", f"18{point}5", f"29{point}5", ""]
    assert list(rows[0]) == list(headings) and any(f"in the column {headings[4]!r}" in note for note in notes)
    assert not any("points at most" in note for note in notes)


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_cannot_be_found_is_asked_for(language, out, tmp_path):
    """A blind worksheet has no names; one without a highest grade, or with one column of dates, could be misread."""
    sheet = worksheet(tmp_path / "w.csv", language, PEOPLE, blind=True)
    assert worksheets.names(marks.read_csv(sheet)) == [] and worksheets.is_moodle(marks.read_csv(sheet))
    if not language.startswith("en"):
        assert "--column name=" in command("release", "assignment1", tmp_path / "hand", "--variant", "x",
                                           "--students", sheet, fails=True)
    with sheet.open(newline="", encoding="utf-8-sig") as file:
        lines = [[cell for n, cell in enumerate(line) if n not in (3, 7)] for line in csv.reader(file)]
    with sheet.open("w", newline="", encoding="utf-8-sig") as file:
        csv.writer(file).writerows(lines)
    if not language.startswith("en"):
        assert "name it with --column" in command("late", out, "--times", sheet, fails=True)
        with pytest.raises(exports.Mismatch, match="--column"):
            exports.export(out, "moodle", sheet)
    command("late", out, "--times", sheet, "--column", lines[0][4])


@pytest.mark.parametrize(("text", "given", "people"), [
    ("Nachname;Vorname;ID-Nummer;E-Mail-Adresse\nLi;Xi;7;xi@example.org\nNg;Bo;8;bo@example.org\n", [],
     [Person("Li Xi", email="xi@example.org"), Person("Ng Bo", email="bo@example.org")]),
    ("Nr;Studierende\n7;Li Xi\n", ["name=Studierende", "canvas id=nr"], [Person("Li Xi", canvas="7")]),
    ("Familie,Ruf\nLi,Xi\n", ["name=Ruf", "name=Familie"], [Person("Xi Li")]),
    ("LastName,FirstName,ID,SIS Login ID\n    Points Possible,,,\nLi,Xi,7,xl\n", [], [Person("Xi Li", "", "7", "", "xl")]),
    ("Familie,Ruf\nLi,Xi\n", [], "has no column of names that is known. Say which it is, such as --column name="),
    ("Familie,Ruf\nLi,Xi\n", ["name=Vorname"], "which has Familie; Ruf"),
    ("name\nXi\n", ["phone=name"], "say one of name,")])
def test_lists_in_other_words(text, given, people, tmp_path):
    path = tmp_path / "list.csv"
    path.write_text(text, encoding="utf-8")
    if isinstance(people, str):
        with pytest.raises(roster.RosterError, match=people.replace("(", "\\(")):
            roster.read(path, given)
    else:
        assert roster.read(path, given) == people


def test_canvas_numbers_have_the_comma_of_its_language(out, tmp_path):
    fill(out, ALL)
    path = tmp_path / "g.csv"
    path.write_text('LastName,FirstName,ID,Assignment 1 (12)\n    Points Possible,,,"35,00"\nLovelace,Ada,1,\n',
                    encoding="utf-8")
    exports.export(out, "canvas", path)
    assert marks.read_csv(out / "canvas_filled.csv")[1]["Assignment 1 (12)"] == "34,5"


@pytest.mark.parametrize(("identifiers", "moodle"), [
    (("Participant 1", "Participant 2"), True), (("Participant 1", "Group 2"), False),
    (("Participant 1", "Participant 1"), False), (("Participant", "Participant 2"), False)])
def test_moodles_identifiers_are_one_word_and_a_number_of_its_own(identifiers, moodle):
    assert worksheets.is_moodle([{"Identifier": identifier, "Full name": "Ada"} for identifier in identifiers]) is moodle
