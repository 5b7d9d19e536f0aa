"""The page over a term: whose work is whose, which mistakes stay. From files as grade leaves them."""

import csv
import json

import pytest
import results
from commands import command
from results import MARKUP, Skeleton

from classroom import marks, term
from classroom.collecting import Submission

A1, A2 = "assignment1", "assignment2"


def work(student, number="", points=None, version="a", canvas=False, **more):
    """One submission: how it is made when the assignment is known. ``more``: for ``results.result``."""
    def made(name):
        result = results.result(student, number, points, answers=("because",) * 2, name=name, **more)
        folder = f"{student}_{number}_77_a.ipynb" if canvas else result["folder"]
        return result | {"fingerprint": f"{version} 0", "folder": folder if number else "",
                         "key": Submission(student, number).key}
    return made


def empty(student, number):
    """One submission that could not be read."""
    return lambda name: results.unreadable(student, number, name) | {"fingerprint": "a 0"}


def graded(folder, name, works, mark=1):
    """A folder as grade leaves it, its sheet filled in with ``mark`` for each answer (None: blank)."""
    made = [one(name) for one in works]
    results.graded(folder, made, name, others=[])
    rows = [(r["key"], r["student"], a["grade_id"], "", "", a["most"], mark, "") for r in made for a in r["answers"]]
    with (folder / marks.SHEET).open("w", newline="", encoding="utf-8-sig") as file:
        csv.writer(file).writerows([marks.COLUMNS, *rows])
    return folder


def table(out):
    """{student: (points, points ...)} of the CSV, blank as ""."""
    rows = marks.read_csv(out / "term_students.csv")
    names = [name for name in rows[0] if name.startswith("assignment") and " " not in name]
    return {row["student"]: tuple(row[name] for name in names) for row in rows}


def text_of(out):
    return " ".join(Skeleton((out / "term.html").read_text(encoding="utf-8").replace("<", " <")).text.split())


def test_who_has_what(tmp_path):
    one = graded(tmp_path / "g1", A1, [work("Ada", "11"), work("Ben", "12", ended=True), empty("Cy", "13"),
                                       work("Dee", "14", [0] * 8)])
    two = graded(tmp_path / "g2", A2, [work("Ada", "21"), work("Ben", "22"), work("Eve", "23")], mark=None)
    rows = marks.read_csv(two / marks.SHEET)
    for row in rows:
        row["points"] = "4" if row["student"] == "Ada" else ""
    (two / marks.SHEET).write_text(marks.csv_text([marks.COLUMNS, *(row.values() for row in rows)]), encoding="utf-8")
    paths, notes = term.write_pages([one, two], tmp_path / "out")
    assert [path.name for path in paths] == ["term.html", "term_students.csv"] and not notes
    assert table(tmp_path / "out") == {"Ada": ("28", "32"), "Ben": ("", ""), "Cy": ("", ""), "Dee": ("2", ""),
                                       "Eve": ("", "")}
    rows = {row["student"]: row for row in marks.read_csv(tmp_path / "out" / "term_students.csv")}
    assert rows["Ben"][f"{A1} blank because"] == "most_similar_pair: time limit" and rows["Ben"][f"{A1} id"] == "12"
    assert rows["Ben"][f"{A2} blank because"] == "answer-measurement: not marked yet; answer-gradient: not marked yet"
    assert rows["Dee"][f"{A2} blank because"] == "not handed in" and rows["Dee"][f"{A1} of"] == "35"
    said = text_of(tmp_path / "out")
    assert "5 students, 2 assignments" in said and "In one assignment only (3): Cy; Dee; Eve." in said
    assert "Ben Assignment 1 most_similar_pair: time limit" in said and "Cy Assignment 1 unreadable" in said
    assert f"Written answers without marks: 2 in {two}/to_mark.csv" in said
    assert "for 2 students the name alone decided" in said


def canvas(student, number):
    return work(student, number, canvas=True)


ZOE = "Zo\u00eb M\u00fcller"
MATCHING = {  # works of assignment 1 and 2 -> the numbers of each student, and a word in what is said
    "Moodle's numbers change": ([work("Ada", "1")], [work("Ada", "2")], ["1 2"], ""),
    "Canvas' do not": ([canvas("ada", "1")], [canvas("byronada", "1")], ["1 1"], ""),
    "a number of Canvas parts one name": ([canvas("ada", "1")], [canvas("ada", "2")], ["1", "2"], ""),
    "two of one name": ([work("Ada", "1"), work("Ada", "2")], [work("Ada", "3")], ["1", "2", "3"], "Who is who"),
    "and later": ([work("Ada", "1")], [work("Ada", "2"), work("Ada", "3")], ["1", "2", "3"], "Who is who"),
    "both with numbers that last": ([canvas("ada", "1"), canvas("ada", "2")], [canvas("ada", "2")], ["1", "2 2"], ""),
    "the same numbers and names": ([work("Ada", "1"), work("Ada", "2")], [work("Ada", "1"), work("Ada", "2")],
                                   ["1 1", "2 2"], ""),
    "a number, then a name alone": ([work("Ada", "1")], [work("Ada")], ["1 -"], ""),
    "a number that lasts, then a name alone": ([canvas("ada", "1")], [work("ada")], ["1 -"], ""),
    "a name alone, then two numbers": ([work("ada")], [canvas("ada", "1"), canvas("ada", "2")], ["-", "1", "2"],
                                       "Who is who"),
    "names alone": ([work("ada")], [work("ada")], ["- -"], ""),
    "names in another order": ([work(ZOE, "1")], [work("Muller, Zoe", "2")], ["1", "2"], "may be the same"),
    "names as Canvas writes them": ([work("Ada Lovelace", "1")], [canvas("lovelaceada", "2")], ["1", "2"],
                                    "may be the same"),
    "one number, two names": ([work("Ada", "1")], [work("Ben", "1")], ["1", "1"], "may be the same"),
    "two people": ([work("Ada", "1")], [work("Ben", "2")], ["1", "2"], ""),
    "marked without names": ([work("Participant", "1"), work("Participant", "2")],
                             [work("Participant", "3"), work("Participant", "4")], ["1", "2", "3", "4"],
                             "Who is who"),
    "a chain of names": ([canvas("ada", "1"), work("ben")], [canvas("ben", "1"), work("ada")], ["-", "-", "1 1"], ""),
}


@pytest.mark.parametrize("case", MATCHING)
def test_nobody_is_taken_for_somebody_else(tmp_path, case):
    first, second, expected, word = MATCHING[case]
    works, notes = term.read([graded(tmp_path / "g1", A1, first), graded(tmp_path / "g2", A2, second)])
    students, unsure = term.match(works)
    assert sorted(" ".join(w.number or "-" for w in student.works) for student in students) == expected and not notes
    assert len({student.label for student in students}) == len(students)
    assert word in " ".join(unsure) and bool(unsure) == bool(word)
    assert any(student.unsure for student in students) == bool(word)


def test_what_cannot_be_matched_is_not_called_missing(tmp_path):
    one = graded(tmp_path / "g1", A1, [work("Ada", "1"), work("Ada", "2"), work("Ben", "3")])
    two = graded(tmp_path / "g2", A2, [work("Ada", "4")])
    term.write_pages([one, two], tmp_path / "out")
    rows = marks.read_csv(tmp_path / "out" / "term_students.csv")
    assert [row[f"{A2} blank because"] for row in rows] == ["could not be matched"] * 2 + ["", "not handed in"]
    assert f"Ada ({one}/ number 1)" == rows[0]["student"]
    said = text_of(tmp_path / "out")
    assert "4 students (fewer, if some of 3 lines are of one)" in said
    assert f"Ada ({one}/ number 1) 28 ?" in said and "Ben 28 –" in said


def test_two_groups_and_one_student_in_both(tmp_path):
    monday = graded(tmp_path / "mon", A1, [work("Ada", "1"), work("Ben", "2"), work("Cy", "3", [0] * 8)])
    tuesday = graded(tmp_path / "tue", A1, [work("Cy", "3"), work("Dee", "4"), work("Eve", "5")])
    _, notes = term.write_pages([monday, tuesday], tmp_path / "out")
    assert notes == [f"Cy: Assignment 1 is in {monday}/ and in {tuesday}/, and none of them counts here. Take what "
                     f"should not count from its submissions, and grade these again."]
    assert table(tmp_path / "out") == {"Ada": ("28",), "Ben": ("28",), "Cy": ("",), "Dee": ("28",), "Eve": ("28",)}
    assert "Cy in two folders" in text_of(tmp_path / "out")


def test_a_name_in_both_groups_may_be_two_students(tmp_path):
    first = graded(tmp_path / "a", A1, [work("ada"), work("ben"), work("cy")])
    second = graded(tmp_path / "b", A1, [work("ada"), work("dee"), work("eve")])
    _, notes = term.write_pages([first, second], tmp_path / "out")
    assert len(notes) == 1 and notes[0].startswith("ada: ") and "Who is who" in notes[0]
    assert len(table(tmp_path / "out")) == 6


def test_mistakes_that_stay(tmp_path):
    """Counted by hand: three make the columns' mistake in assignment 1, one of them in two tasks; two make it again."""
    columns, head = {"softmax_with_temperature": "columns"}, {"attention_head": "columns"}
    one = graded(tmp_path / "g1", A1, [work("Ada", "1", mistakes={**columns, "cosine_attention": "columns"}),
                                       work("Ben", "2", mistakes=columns), work("Dee", "4"),
                                       work("Cy", "3", mistakes={**columns, "effective_words": "entropy"})])
    two = graded(tmp_path / "g2", A2, [work("Ada", "5", mistakes=head), work("Cy", "6"),
                                       work("Ben", "7", mistakes={**head, "unit_divisor": "root"})])
    students, _ = term.match(term.read([one, two])[0])
    found, others = term.mistakes(students, [A1, A2])
    assert [(row["mistake"], len(row["who"]), row["again"], row["newest"]) for row in found] == [
        ("columns", 3, ["Ada", "Ben"], 2), ("root", 1, [], 1)]
    assert found[0]["places"] == [
        (A1, "cosine_attention", 1, "About columns."), (A1, "softmax_with_temperature", 3, "About columns."),
        (A2, "attention_head", 2, "About columns.")]
    assert others == 1
    found, others = term.mistakes(students, [A2, A1])  # the other one is the newest
    assert [(row["mistake"], row["newest"]) for row in found] == [("columns", 3), ("entropy", 1)] and others == 1
    found, others = term.mistakes(students, [A1, A2, "assignment3"])  # nobody has handed in the newest
    assert [(row["mistake"], row["newest"]) for row in found] == [("columns", 0)] and others == 2


def changed(folder, key, change):
    """Change the tests of a result, as another version of the course would have made them."""
    path = folder / "results" / f"{key}.json"
    result = json.loads(path.read_text())
    change(result["tests"])
    path.write_text(json.dumps(result))


@pytest.mark.parametrize("version", ["a", "b"])
def test_versions_are_told(tmp_path, version):
    one = graded(tmp_path / "a", A1, [work("Ada", "1")])
    two = graded(tmp_path / "b", A1, [work("Ben", "2", version=version)])
    other = graded(tmp_path / "c", A2, [work("Ben", "3", version="c")])
    changed(one, "Ada_1", lambda tests: tests[1].update(status="not started", points=0))
    _, notes = term.write_pages([one, two, other], tmp_path / "out")
    assert len(notes) == (version == "b")
    changed(two, "Ben_2", lambda tests: tests[0].update(most=9, points=9))  # a test with other points
    _, notes = term.write_pages([one, two, other], tmp_path / "out")
    assert len(notes) == 1 and "assignment1 was graded with different versions" in notes[0]
    assert "32 of 39" in text_of(tmp_path / "out")


def fails(*arguments):
    """The one sentence with which the command ends."""
    return command("term", *arguments, fails=True)


def test_bad_folders_end_in_a_sentence(tmp_path):
    good = graded(tmp_path / "g", A1, [work("Ada", "1")])
    out = ("--out", tmp_path / "out")
    assert "Nothing was graded into" in fails(good, tmp_path, *out)
    assert "is named twice" in fails(good, tmp_path / "g" / ".." / "g", *out)
    again = graded(tmp_path / "again", A1, [work("Ada", "1"), work("Ben", "2")])
    assert "of the same students (1 of 1)" in fails(good, again, *out)
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert "file" in fails(good, "--out", blocked)
    for damage, words in (("{", "batch.json is not as grade writes it"), ("[]", "batch.json is not"),
                          ('{"keys": []}', "batch.json is not as grade writes it"),
                          ('{"assignment": "assignment1", "keys": ["none"]}', "There are no results")):
        (again / "batch.json").write_text(damage)
        assert words in fails(again, *out)
    (good / "results" / "Ada_1.json").write_text('{"student": "Ada"}')
    assert "Ada_1.json is not as grade writes it: delete it" in fails(good, *out)
    (again / "batch.json").write_text('{"assignment": "assignment1", "keys": ["Ada_1"]}')
    (again / marks.SHEET).write_text("key,item,points\nAda_1,answer-cosine,many\n")
    assert "not a number of points" in fails(again, *out)
    assert not (tmp_path / "out").exists()


def test_lost_results_and_unknown_assignments_are_told(tmp_path):
    folder = graded(tmp_path / "g", A1, [work("Ada", "1"), work("Ben", "2")])
    (folder / "results" / "Ben_2.json").write_text("{")
    about = json.loads((folder / "batch.json").read_text())
    (folder / "batch.json").write_text(json.dumps(about | {"assignment": "last years", "others": ["Cy_3"]}))
    said = command("term", folder, "--out", tmp_path / "out")
    assert "results of Ben_2 are missing or damaged" in said and "Cy_3 were graded there before" in said
    assert "points for what was not graded: Ben_2, answer-measurement" in said
    assert "last years" in text_of(tmp_path / "out")


def test_nothing_in_the_files_is_markup_or_a_formula(tmp_path):
    tags = {}
    for words in ("harmless", MARKUP, "=HYPERLINK(1)"):
        folder = graded(tmp_path / str(len(tags)) / "g", A1, [work("Eve", "1"), work("Ann", "2", ended=True)])
        for path in (folder / "results").glob("*.json"):
            result = json.loads(path.read_text()) | {"student": f"{words} {path.stem}", "reason": words}
            result["status"] = "unreadable"
            for test in result["tests"]:
                test |= {"grade_id": words, "function": words, "misconception": words, "message": words, "points": None}
            path.write_text(json.dumps(result))
        (folder / "batch.json").write_text(json.dumps({"assignment": words, "keys": ["Eve_1", "Ann_2"], "others": [words]}))
        (folder / marks.SHEET).unlink()
        term.write_pages([folder], tmp_path / "out")
        skeleton = Skeleton((tmp_path / "out" / "term.html").read_text(encoding="utf-8"))
        tags[words] = skeleton.tags
        assert words in skeleton.text and "49" not in skeleton.text.replace(str(tmp_path), "")
        with (tmp_path / "out/term_students.csv").open(newline="", encoding="utf-8-sig") as file:
            cells = [cell for row in csv.reader(file) for cell in row]
        assert not [cell for cell in cells if cell.startswith("=")] and any(words in cell for cell in cells)
    assert tags["harmless"] == tags[MARKUP] == tags["=HYPERLINK(1)"]
    assert not any(tag == "script" for tag, _ in tags[MARKUP])
