"""Whose a submission is: by the platform's number, by what a list says, then by the name; right, or refused by name."""

import json
import re
from dataclasses import replace

import pytest
from commands import command
from submissions import NAME, RIGHT, data, needs_sandbox, put, solved, zipped

from classroom import batch, exports, marks, roster, variants
from classroom.collecting import Submission, collect
from classroom.roster import Person

GOOD = data(solved())
NAMES = ("Wei Zhang", "Wei Zhang", "Seán O'Brien", "李小龙", "Søren Kierkegaard", "Anne-Marie Smith", "Marie Smith",
         "Ada s/o Byron", "Zoë Müller", "José Ángel García López",
         "सीता", "Li", "Łukasz Żak", "Nguyễn Thị Hoa", "Student 07", "Mary_Jane Watson")
CLASS = [Person(name, f"9{i:03}", f"{i}07", f"u{i}@example.org", f"login{i}") for i, name in enumerate(NAMES)]
TWINS = {"9000", "9001"}


def moodle(person, form, group=""):
    """As Moodle writes it: underscores become blanks, and what a file system may not like goes."""
    name = re.sub(r"""[?*|"'/\\:<>&]""", "", person.name.replace("_", " "))
    return form.format(f"{group}{name}_{person.moodle}")


def canvas(person, form):
    """As Canvas writes it: the family name first, and letters and digits alone."""
    *first, last = person.name.split()
    name = re.sub(r"_(\d+)_", r"\1", "".join(c for c in f"{last}{''.join(first)}".lower() if c.isalnum() or c in "ाी_"))
    return form.format(name.replace("_", ""), person.canvas)


LAYOUTS = {  # name -> path of the notebook of a person
    "moodle, folders": lambda one: moodle(one, "{}_assignsubmission_file_/a.ipynb"),
    "moodle 4.1": lambda one: moodle(one, "{}_assignsubmission_file/a.ipynb", "Tutorial B-"),
    "moodle, files": lambda one: moodle(one, "{}_assignsubmission_file_a_2.ipynb"),
    "moodle, blind": lambda one: f"Participant_{one.moodle}_assignsubmission_file_/a.ipynb",
    "canvas": lambda one: canvas(one, "{}_{}_50001_a-1.ipynb"),
    "canvas, late": lambda one: canvas(one, "{}_LATE_{}_50001_2026_final.ipynb"),
    "nbgrader": lambda one: f"submitted/{one.login}/{NAME}/{NAME}.ipynb",
    "folders": lambda one: f"class/{one.name.replace('/', '_')}/a.ipynb",
}


def matched(tmp_path, paths, people, carried=()):
    """{path: name and number of the person, or why there is none}, and the sentences for the teacher."""
    zipped(dict.fromkeys(paths, GOOD), tmp_path / "all.zip")
    submissions, refused = collect(tmp_path / "all.zip", NAME, set(RIGHT))
    assert not refused and sorted(one.file.split("/")[-1] for one in submissions) == sorted(p.split("/")[-1] for p in paths)
    found = roster.match(submissions, people)
    told = roster.told(found, submissions, people)
    assert len({one.key for one in submissions}) == len(paths)
    order = {one.file: match.person or match.why for one, match in zip(submissions, found, strict=True)}
    return [next(value for file, value in order.items() if path.endswith(file)) for path in paths], told


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("known", ["everything", "names"])
def test_the_right_person_or_nobody(layout, known, tmp_path):
    paths = {}
    for one in CLASS:
        paths.setdefault(LAYOUTS[layout](one), one)
    people = CLASS if known == "everything" else [Person(one.name) for one in CLASS]
    found, told = matched(tmp_path, list(paths), people)
    right = 0
    for one, person in zip(paths.values(), found, strict=True):
        if isinstance(person, Person):
            assert person.name == one.name and (known == "names" or person is one), (one, person)
            assert one.moodle not in TWINS or known == "everything"
            right += 1
        else:
            assert one.words if known == "everything" else one.name in str(told) or len(told) == 1, told
    by_name = len(CLASS) - 2  # the twins
    wanted = {"everything": by_name if layout == "folders" else len(CLASS),
              "names": 0 if layout in ("moodle, blind", "nbgrader") else by_name}[known]
    assert right == wanted, [(one.name, why) for one, why in zip(paths.values(), found, strict=True) if isinstance(why, str)]


@pytest.mark.parametrize(("name", "whose"), [
    ("Wei Zhang 2", "nobody called Wei Zhang 2 is on the list"), ("Wei Zhang", "may be called so"),
    ("Wei Zhang (107)", 1), ("zhang, wei", "may be called so"), ("Seán O´Brien", 2), ("OBRIEN sean", 2),
    ("O’Brien, Sean", 2),
    ("Sren Kierkegaard", "Søren Kierkegaard comes nearest"), ("Soren Kierkegaard", 4), ("Sren", "nobody called Sren"),
    ("李小", "nobody"), ("李小龍", "nobody"), ("李小龙", 3), ("Marie-Anne Smith", "nobody"), ("Smith, Marie", 6),
    ("सता", "nobody"),
    ("\uff2c\uff29", 11), ("u5@example.org", 5), ("U5", 5), ("Lukasz Zak", 12), ("Student 7", "nobody"), ("—", "nobody"),
    ("HOA NGUYỄN THỊ", 13), ("Tutorial B-Li", "nobody")])
def test_odd_names_are_right_or_refused(name, whose):
    [found] = roster.match([Submission(name)], CLASS)
    assert found.person is CLASS[whose] if isinstance(whose, int) else not found.person and whose in found.why, found


def submission(student, number, form):
    return Submission(student, number, form.format(student, number))


def test_nobody_can_be_somebody_else_by_a_number_or_a_name():
    """A number and a name that are two people's, one number under two names, two submissions for one person."""
    form = "{}_{}_50001_a"
    [found] = roster.match([submission("garcialópezjoséángel", CLASS[3].canvas, form)], CLASS)
    assert not found.person and "307 is 李小龙's" in found.why
    [sure, not_sure] = roster.match([submission("sean_obrien".replace("_", ""), "207", form),
                                     submission("mallory", "207", "x" + form)], CLASS)
    assert sure.person is CLASS[2] and "more than one submission" in not_sure.why
    both = roster.match([Submission("Marie Smith"), Submission("Smith, Marie")], CLASS)
    assert not any(one.person for one in both) and all("Marie Smith" in one.why for one in both)
    # Moodle's numbers are none of Canvas', and the other way round
    [found] = roster.match([submission("Anon", "107", "{}_{}_assignsubmission_file_")], CLASS)
    assert not found.person


def test_a_number_in_two_file_names_is_nobodys(tmp_path):
    """In Canvas a student may be called x_5, and then Canvas itself takes 5 for the number."""
    zipped(dict.fromkeys(("ada_5_50_a.ipynb", "x_5_77_50_a.ipynb", "ben_6_50_a.ipynb"), GOOD), tmp_path / "all.zip")
    found = {one.student: one for one in collect(tmp_path / "all.zip", NAME, set(RIGHT))[0]}
    assert {name: one.id for name, one in found.items()} == {"ada": "", "x": "", "ben": "6"}
    assert "is in two file names" in found["ada"].notes[0] and len({one.key for one in found.values()}) == 3


def test_groups_of_moodle_are_one_student(tmp_path):
    zipped({f"{group}Ada Lovelace_12_assignsubmission_file_/a.ipynb": GOOD for group in ("", "Tutorial B-")},
           tmp_path / "all.zip")
    [one], _ = collect(tmp_path / "all.zip", NAME, set(RIGHT))
    assert (one.student, one.id) == ("Ada Lovelace", "12") and "2 notebooks" in one.notes[0]


def test_one_line_when_most_are_unmatched():
    strangers = [Submission(f"Stranger {i}") for i in range(30)]
    given = variants.Variants(NAME, "spring", "00" * 16)
    given.give("Ada")
    whose, told = roster.who([*strangers, Submission("Ada", variant=given.students["Ada"])], [], given)
    assert len(told) == 1 and "30 of 31" in told[0] and "Stranger 0" in told[0] and "is it the list of this class" in told[0]
    assert whose[-1][1:] == (given.students["Ada"], "") and not any(code for _, code, _ in whose[:-1])
    given = variants.Variants(NAME, "spring", "00" * 16)
    codes = [given.give(f"Person {i}") for i in range(30)]  # their notebooks say who they are
    whose, told = roster.who([replace(one, variant=code) for one, code in zip(strangers, codes, strict=True)], [], given)
    assert [code for _, code, _ in whose] == codes and not any(flag for *_, flag in whose) and len(told) == 1


def test_two_of_one_name_who_handed_in_nothing_are_told_apart():
    people = [Person("Zhang, Wei", canvas="17"), Person("Zhang, Wei", canvas="18"), Person("Ada")]
    _, told = roster.who([Submission("Ada")], people, None)
    assert told == ["2 on the list of students are not among the submissions: Zhang, Wei (17); Zhang, Wei (18)."]


def test_no_carried_variant_tells_two_of_one_name_apart():
    given = variants.Variants(NAME, "spring", "00" * 16)
    code = {name: given.give(name) for name, _ in roster.label(CLASS[:3])}
    people = [replace(one, variant=code[name]) for name, one in roster.label(CLASS[:3])]
    assert list(code) == ["Wei Zhang (007)", "Wei Zhang (107)", "Seán O'Brien"]

    def whose(*submissions):
        return [(person and person.canvas, given_code) for person, given_code, _ in
                roster.who([Submission(name, file=str(i), variant=carried) for i, (name, carried) in enumerate(submissions)],
                           people, given)[0]]

    first, second, third = code.values()
    assert whose(("Wei Zhang", first)) == [(None, None)], "one may have it from the other"
    assert whose(("Wei Zhang", first), ("Zhang Wei", second)) == [(None, None)] * 2
    assert whose(("Wei Zhang (107)", second), ("Wei Zhang", first)) == [("107", second), (None, None)]
    [stranger] = [Submission("Wei Zhang", "999", "Wei Zhang_999_assignsubmission_file_", variant=second)]
    assert roster.who([stranger], people, given)[0][0][0] is None
    assert whose(("Wei Zhang", first), ("Zhang Wei", first)) == [(None, None)] * 2, "one of them copied"
    assert whose(("Wei Zhang", third)) == [(None, None)], "a notebook of somebody else"
    assert whose(("Wei Zhang", "")) == [(None, None)]
    [*twins] = [Submission(name, variant=first) for name in ("Wei Zhang", "Zhang Wei")]
    flags = [flag for *_, flag in roster.who(twins, people, given)[0]]
    assert all("007" in flag for flag in flags) and {one.problem for one in twins} == {roster.UNCERTAIN}, "students read it"


def test_all_that_is_odd_in_a_list_is_told_at_once(tmp_path):
    (tmp_path / "a.txt").write_text("Ada <b>\nBen\nCem@x\n—\nDee\x07\n", encoding="utf-8")
    with pytest.raises(roster.RosterError) as error:
        roster.read(tmp_path / "a.txt")
    words = ("'Ada <b>' has '<'", "'Cem@x' has '@'", "'—' has no letters", "Dee\\x07")
    assert all(word in str(error.value) for word in words)
    assert str(error.value).count("\n") == 0
    (tmp_path / "b.csv").write_text("Name,ID\nAda,1\nBen,1\nCem,2\nCem,\nEve,3\nEve,3\n", encoding="utf-8")
    with pytest.raises(roster.RosterError, match="1 stands twice, for Ada; Ben.*3 stands .*Eve stands twice"):
        roster.read(tmp_path / "b.csv")


@pytest.mark.parametrize(("text", "first"), [
    ("Identifier,Full name,Email address,Grade\nParticipant 9000,Wei Zhang,U0@example.org,\n",
     Person("Wei Zhang", "9000", email="u0@example.org")),
    ('Student,ID,SIS User ID,SIS Login ID,Section\n    Points Possible,,,,\n"Zhang, Wei",007,S1,login0,A\n',
     Person("Zhang, Wei", canvas="007", login="login0")),
    ("First name;Surname;Username\nWei;Zhang;login0\n", Person("Wei Zhang", login="login0")),
    ("name,id\nWei Zhang,7.0\n", Person("Wei Zhang", "7", "7")), ("\nWei  Zhang \n\n", Person("Wei Zhang"))])
def test_lists_of_platforms(text, first, tmp_path):
    path = tmp_path / ("a.csv" if "ame" in text or "Student" in text else "a.txt")
    path.write_text(text, encoding="utf-8")
    assert roster.read(path) == [first]


def test_release_writes_what_grade_reads(tmp_path):
    """Two of one name get notebooks of their own; released again with numbers, everybody keeps theirs."""
    (tmp_path / "class.csv").write_text(
        "Student,ID\nWei Zhang,1\nWei Zhang,2\n=Seán O'Brien,3\n".replace("=", ""), encoding="utf-8")
    arguments = ["release", NAME, str(tmp_path / "out"), "--variant", "spring", "--students"]
    written = roster.beside(tmp_path / "out" / f"{NAME}-variants.json")
    assert str(written) in command(*arguments, tmp_path / "class.csv")
    first, given = roster.read(written), variants.read(tmp_path / "out" / f"{NAME}-variants.json").students
    assert [(one.name, one.canvas) for one in first] == [("Wei Zhang", "1"), ("Wei Zhang", "2"), ("Seán O'Brien", "3")]
    assert [one.variant for one in first] == [given[name] for name in ("Wei Zhang (1)", "Wei Zhang (2)", "Seán O'Brien")]
    (tmp_path / "more.csv").write_text("Student,ID,SIS Login ID\nWei Zhang,2,wz2\nNew One,4,\n\"O'Brien, Seán\",,so\n",
                                       encoding="utf-8")
    command(*arguments, tmp_path / "more.csv")
    again = {one.mark: one for one in roster.read(written)}
    assert set(again) == {"1", "2", "3", "4"} and again["2"].login == "wz2" and again["3"].login == "so"
    assert {mark: again[mark].variant for mark in "123"} == {one.mark: one.variant for one in first}
    assert len(list((tmp_path / "out" / NAME).iterdir())) == 4
    head, *lines = written.read_text(encoding="utf-8-sig").splitlines()
    written.write_text("\n".join([f"{head},Team,note", *(f"{line},{n},=1+{n}" for n, line in enumerate(lines))]))
    before = {row["variant"]: (row["Team"], row["note"].lstrip("'")) for row in marks.read_csv(written)}
    (tmp_path / "last.csv").write_text("Student,ID\nLast One,5\n")
    for students in ("more.csv", "last.csv"):
        command(*arguments, tmp_path / students)
    after = {row["variant"]: (row["Team"], row["note"].lstrip("'")) for row in marks.read_csv(written)}
    assert before.items() < after.items() and len(after) == 5, "columns of the teacher's own stay"
    assert list(marks.read_csv(written)[0])[-3:] == ["folder", "Team", "note"]


@needs_sandbox
def test_a_roster_is_joined_to_the_list_beside_the_variants(tmp_path):
    """The worksheet of the next assignment has other numbers for the same people, one of them somebody else's before."""
    head = "Identifier,Full name,Email address\n"
    mail = ("Wei Zhang,a@x.org", "Wei Zhang,b@x.org", "Ada,c@x.org", "Ben,d@x.org")
    for name, numbers in (("old", (11, 12, 13, 14)), ("new", (21, 22, 14, 24))):
        (tmp_path / f"{name}.csv").write_text(head + "".join(
            f"Participant {number},{who}\n" for number, who in zip(numbers, mail, strict=True)), encoding="utf-8")
    command("release", NAME, tmp_path, "--variant", "v", "--students", tmp_path / "old.csv")
    code = {one.email: one.variant for one in roster.read(tmp_path / f"{NAME}-roster.csv")}
    for number, name in ((21, "Wei Zhang"), (22, "Wei Zhang"), (14, "Ada")):
        put(tmp_path / "in", {f"{name}_{number}_assignsubmission_file_/a.ipynb": b""})
    said = command("grade", NAME, tmp_path / "in", tmp_path / "out", "--workers", 1, "--variants",
                   tmp_path / f"{NAME}-variants.json", "--roster", tmp_path / "new.csv")
    people = {result["id"]: result["person"] for result in batch.read(tmp_path / "out")[0]}
    assert {number: one["variant"] for number, one in people.items()} == {
        "21": code["a@x.org"], "22": code["b@x.org"], "14": code["c@x.org"]}
    assert "1 on the list of students are not among the submissions: Ben." in said
    # a login is somebody's as well, and a number of Moodle alone is not
    before = [Person("Ada", "1", login="a", variant="A"), Person("Ada", "2", login="b", variant="B"),
              Person("Cy", "3", variant="C")]
    [one, other, *left] = roster.joined([Person("Ada", "2", login="a"), Person("Dee", "3")], before)
    assert (one.variant, other.variant, [old.variant for old in left]) == ("A", "", ["B", "C"])


@needs_sandbox
def test_a_list_goes_from_grade_to_export(tmp_path):
    """A folder of logins and names becomes a worksheet with numbers; the result keeps its name when the list comes later."""
    put(tmp_path / "in", dict.fromkeys(("login2/a.ipynb", "Wei Zhang/a.ipynb", "Xia/a.ipynb"), b""))
    out, arguments = tmp_path / "out", ["grade", NAME, str(tmp_path / "in"), str(tmp_path / "out")]
    command(*arguments)
    before = {path.name for path in (out / "results").iterdir()}
    assert before == {"login2.json", "Wei_Zhang-" + Submission("Wei Zhang").key[-8:] + ".json", "Xia.json"}
    roster.write(tmp_path / "class.csv", CLASS[:4])
    said = command(*arguments, "--roster", tmp_path / "class.csv")
    assert "3  unreadable" in said and marks.SHEET in said
    assert "Not matched to the list of students: Wei Zhang (2 on the list may be called so" in said
    assert "李小龙" in said.partition("are not among the submissions")[2]
    assert before == {path.name for path in (out / "results").iterdir()}
    assert {result["student"] for result in batch.read(out)[0]} == {"Seán O'Brien", "Wei Zhang", "Xia"}
    rows = marks.read_csv(out / marks.SHEET)
    (out / marks.SHEET).write_text(marks.csv_text([marks.COLUMNS, *(
        [{**row, "points": "7"}[column] for column in marks.COLUMNS] for row in rows)]), encoding="utf-8")
    (tmp_path / "w.csv").write_text("Identifier,Full name,Grade\nParticipant 9000,Wei Zhang,\nParticipant 9001,Wei Zhang,\n"
                                    "Participant 9002,S. O.,\n", encoding="utf-8")
    exports.export(out, "moodle", tmp_path / "w.csv")
    assert [row["Grade"] for row in marks.read_csv(out / "moodle_filled.csv")] == ["", "", "7"]
    assert json.loads((out / "results" / "login2.json").read_text())["person"]["moodle"] == "9002"


@needs_sandbox
def test_the_teacher_sees_which_number_is_whose(tmp_path):
    """A class released by names alone, in Canvas' layout: the list that grade writes has the numbers, to be given back."""
    (tmp_path / "names.txt").write_text("Ada Lovelace\n李小龙\nSeán O'Brien\n", encoding="utf-8")
    command("release", NAME, tmp_path, "--variant", "v", "--students", tmp_path / "names.txt")
    rows = marks.read_csv(tmp_path / f"{NAME}-roster.csv")
    folders = {path.name for path in (tmp_path / NAME).iterdir()}
    assert {row["folder"] for row in rows} == folders and len(folders) == 3
    put(tmp_path / "in", dict.fromkeys((
        "lovelaceada_LATE_17_501_a.ipynb", "李小龙_18_502_a-1.ipynb", "nobody_19_503_a.ipynb"), b""))
    said = command("grade", NAME, tmp_path / "in", tmp_path / "out", "--variants", tmp_path / f"{NAME}-variants.json")
    assert f"{tmp_path / 'out' / 'roster.csv'}." in said
    found = {row["name"]: (row["canvas id"], row["handed in"]) for row in marks.read_csv(tmp_path / "out" / "roster.csv")}
    assert found == {"Ada Lovelace": ("17", "lovelaceada_LATE_17_501_a.ipynb"), "李小龙": ("18", "李小龙_18_502_a-1.ipynb"),
                     "Seán O'Brien": ("", "")}
    people = roster.read(tmp_path / "out" / "roster.csv")
    assert {one.name: one.canvas for one in people} == {name: number for name, (number, _) in found.items()}


def test_one_student_in_nbgraders_layout_is_not_the_assignment(tmp_path):
    put(tmp_path, {f"submitted/ada/{NAME}/a.ipynb": GOOD})
    assert [one.student for one in collect(tmp_path, NAME, set(RIGHT))[0]] == ["ada"]


def test_the_number_of_a_group_of_moodles_is_nobodys():
    """Where nobody on the list has the folder's name; in an anonymous download all have one name, and the number counts."""
    people = [Person("Ada", "1"), Person("Ben", "2")]

    def matched(*folders):
        return roster.match([Submission(*one.split("_"), f"{one}_assignsubmission_file") for one in folders], people)

    red, ada = matched("Red_2", "Ada_1")
    assert red.refused and "the number 2 is Ben's, and nobody is called Red" in red.why and ada.person is people[0]
    assert [one.person.name for one in matched("Participant_2", "Participant_1")] == ["Ben", "Ada"]
