"""One notebook, several people: everybody in a team has its grade and a page, and it is marked once."""

import json
import os
import zipfile

import pytest
from commands import command
from results import fill
from submissions import NAME, data, put, solved, zipped

from classroom import batch, collecting, exports, marks, roster, teams, variants
from classroom.__main__ import TRUST


def graded(top, *more):
    """Of what lies in ``in``: the results by name, the students whose work waits for a person, and what is said."""
    said = command("grade", NAME, top / "in", top / "out", TRUST, "--workers", 1, *more)
    results = {result["student"]: result for result in batch.read(top / "out")[0]}
    return results, {row["student"] for row in marks.read_csv(top / "out" / marks.SHEET)}, said


def hand_in(top, folder, code="# a notebook", variant="", modified=1e9):
    raw = solved(code)
    raw["metadata"]["attention_course"] = {"assignment": NAME, "variant": variant}
    put(top / "in" / folder, {"w.ipynb": data(raw)})
    os.utime(top / "in" / folder / "w.ipynb", (modified, modified))


def points(top):
    sheet = marks.read_sheet(top / "out")
    return {result["student"]: marks.grade_of(result, sheet).total for result in batch.read(top / "out")[0]}


def test_lines_of_a_list(tmp_path):
    (tmp_path / "a.txt").write_text("Team 3: Ada Lovelace; Ben Okri\nCy Diaz\nDee Moss;Eva Lind\n")
    (tmp_path / "a.csv").write_text("name,team\nAda Lovelace,3\nBen Okri,3\nCy Diaz,\nDee Moss,4\n")

    def members(made):
        return [(team.name, [one.name for one in team.members]) for team in made]

    assert members(teams.read(tmp_path / "a.txt")) == [
        ("Team 3", ["Ada Lovelace", "Ben Okri"]), ("", ["Dee Moss", "Eva Lind"])]
    (tmp_path / "b.csv").write_text("Nombre,Team\nAda Lovelace,3\nBen Okri,3\n")
    (tmp_path / "w.csv").write_text("ID,Nombre,Estado,Grupo,Nota\nParticipant1,Wei Li,Enviado,Rojo,\n"
                                    "Participant2,Wei Li,Enviado,,\n")
    folders = [collecting.Submission("Wei Li", n, f"Wei Li_{n}_assignsubmission_file", read=bytes) for n in "12"]
    people = roster.read(tmp_path / "w.csv")
    assert teams.shared(folders, people, teams.read(tmp_path / "w.csv")) == (folders, {}), "a name in a worksheet is no team"
    for made in teams.read(tmp_path / "a.csv"), teams.read(tmp_path / "b.csv", ["name=Nombre"]):
        assert members(made) == [("3", ["Ada Lovelace", "Ben Okri"])]


@pytest.mark.slow
def test_a_team_of_the_list_has_one_grade(tmp_path):
    """By the newest notebook of a member, or a folder that is called like the team. Each may have points of their own."""
    (tmp_path / "class.txt").write_text("Team 3: Ada Lovelace; Ben Okri\nCy Diaz; Dee Moss\nEva Lind\n")
    hand_in(tmp_path, "Team 3")
    hand_in(tmp_path, "Cy Diaz", "def most_similar_pair(X): return 0, 0")
    hand_in(tmp_path, "Dee Moss", "# the newer one", modified=1.1e9)
    hand_in(tmp_path, "Eva Lind")
    results, waiting, said = graded(tmp_path, "--roster", tmp_path / "class.txt")
    assert sorted(results) == ["Ada Lovelace", "Ben Okri", "Cy Diaz", "Dee Moss", "Eva Lind"] and "may be a team" not in said
    assert "not among the submissions" not in said and not any(result["flags"] for result in results.values())
    assert waiting == {"Ada Lovelace", "Cy Diaz", "Eva Lind"}
    assert "One notebook for the team Team 3: Ada Lovelace, Ben Okri." in results["Ben Okri"]["found"]
    assert any("The newest of 2 notebooks of the team counts" in note for note in results["Cy Diaz"]["found"])
    fill(tmp_path / "out", {(student, item): 4 for student in waiting for item in ("answer-measurement", "answer-cosine")})
    assert set(points(tmp_path).values()) == {34}
    sheet = (tmp_path / "out" / marks.SHEET).read_text(encoding="utf-8-sig")
    ben = results["Ben Okri"]["key"]
    (tmp_path / "out" / marks.SHEET).write_text(sheet + f"{ben},,answer-cosine,,,,1,He was away.,\r\n", encoding="utf-8-sig")
    assert points(tmp_path)["Ben Okri"] == 31 and points(tmp_path)["Ada Lovelace"] == 34
    command("feedback", tmp_path / "out")
    pages = [path.read_text(encoding="utf-8") for path in (tmp_path / "out/feedback").glob("*.html")]
    assert len(pages) == 5 and sum("He was away." in page for page in pages) == 1
    rows = {row["student"]: row for row in marks.read_csv(tmp_path / "out/grades.csv")}
    assert rows["Ben Okri"]["key"] == ben and rows["Ben Okri"]["answer-cosine"] == "1", "where docs/teaching.md sends people"
    command("copies", tmp_path / "out")
    assert "Ben Okri" not in (tmp_path / "out/copies.html").read_text(encoding="utf-8"), "their code is one notebook's"


@pytest.mark.slow
def test_a_team_is_graded_by_the_variant_that_it_hands_in(tmp_path):
    listed = variants.release(NAME, tmp_path / "handout", "autumn", ["Ada Lovelace", "Ben Okri", "Eva Lind"])
    codes = variants.read(listed).students
    (tmp_path / "class.txt").write_text("Ada Lovelace; Ben Okri\nEva Lind\n")
    hand_in(tmp_path, "Ben Okri", variant=codes["Ben Okri"])
    hand_in(tmp_path, "Eva Lind", variant=codes["Ada Lovelace"])
    results, *_ = graded(tmp_path, "--roster", tmp_path / "class.txt", "--variants", listed)
    assert results["Ada Lovelace"]["variant"] == results["Ben Okri"]["variant"] == codes["Ben Okri"]
    assert not any("carries" in flag for flag in results["Ada Lovelace"]["flags"])
    assert results["Ada Lovelace"]["tests"] == results["Ben Okri"]["tests"]
    assert "Ada Lovelace's" in results["Eva Lind"]["flags"][0], "who is in no team is graded by their own"


@pytest.mark.slow
def test_the_teams_of_the_list_beside_the_variants_count_by_themselves(tmp_path):
    (tmp_path / "class.txt").write_text("Ada Lovelace\nBen Okri\nEva Lind\n")
    command("release", NAME, tmp_path / "handout", "--variant", "v", "--students", tmp_path / "class.txt")
    listed = tmp_path / "handout" / f"{NAME}-variants.json"
    head, *lines = roster.beside(listed).read_text(encoding="utf-8-sig").splitlines()
    roster.beside(listed).write_text("\n".join([f"{head},team", *(
        line + (",3" if line.startswith(("Ada", "Ben")) else ",") for line in lines)]))
    hand_in(tmp_path, "Ada Lovelace", variant=variants.read(listed).students["Ada Lovelace"])
    for more in (), ("--roster", roster.beside(listed)):
        results, waiting, said = graded(tmp_path, "--variants", listed, *more)
        assert set(results) == {"Ada Lovelace", "Ben Okri"}
        assert results["Ada Lovelace"]["tests"] == results["Ben Okri"]["tests"] and waiting == {"Ada Lovelace"}
        assert "1 on the list of students are not among the submissions: Eva Lind." in said


@pytest.mark.slow
def test_moodles_own_teams(tmp_path):
    """Its download has a folder for each group, with a number that is another's in the worksheet, which says who is in it.
    """
    put(tmp_path / "in", {"all.zip": zipped({
        f"{folder}_assignsubmission_file/w.ipynb": data(solved(code))
        for folder, code in (("Rot 1_2", "# red"), ("Blau_1", "# blue"), ("Standard-Gruppe", ""))})})
    class_of = (("1", "Ada Lovelace", "Rot_1"), ("2", "Wei Zhang", "Rot_1"), ("3", "Cy Diaz", "Blau"),
                ("4", "Wei Zhang", "Standard-Gruppe"), ("5", "Eva Lind", "Standard-Gruppe"), ("6", "Fay Moss", "Grün"))
    (tmp_path / "w.csv").write_text("\n".join(
        ["ID,Vollständiger Name,E-Mail-Adresse,Status,Gruppe,Bewertung,Bestwertung,Zuletzt geändert (Abgabe)", *(
            f'Teilnehmer/in{n},{name},p{n}@x.org,Zur Bewertung abgegeben - ,{team},,"35,00",-'
            for n, name, team in class_of)]), encoding="utf-8")
    graded(tmp_path)
    fill(tmp_path / "out", {(student, item): 4 for student in ("Rot 1", "Blau", "Standard-Gruppe")
                            for item in ("answer-measurement", "answer-cosine")})
    with pytest.raises(exports.Mismatch, match="'Gruppe' who is in which group.*--roster"):
        exports.export(tmp_path / "out", "moodle", tmp_path / "w.csv")
    said = command("grade", NAME, tmp_path / "in", tmp_path / "two", TRUST, "--roster", tmp_path / "w.csv")
    assert "1 on the list of students are not among the submissions: Fay Moss." in said
    results = list(batch.read(tmp_path / "two")[0])
    assert sorted((one["id"], one["person"]["name"]) for one in results) == [one[:2] for one in class_of[:5]]
    fill(tmp_path / "two", {(student, item): points for student, points in (("Ada Lovelace", 4), ("Cy Diaz", 1),
                                                                            ("Wei Zhang (4)", 4))
                            for item in ("answer-measurement", "answer-cosine")})
    command("feedback", tmp_path / "two", "--format", "moodle", "--into", tmp_path / "w.csv")
    filled = marks.read_csv(tmp_path / "two/moodle_filled.csv")
    assert [row["Bewertung"] for row in filled] == ["34", "34", "28", "34", "34", ""]
    with zipfile.ZipFile(tmp_path / "two/moodle_feedback.zip") as archive:
        assert sorted(name.split("_")[1] for name in archive.namelist()) == ["1", "2", "3", "4", "5"]


@pytest.mark.slow
def test_moodles_own_teams_before_its_version_4(tmp_path):
    """Its download has a folder for each member, with the group in front; alone with the same file is not a team."""
    put(tmp_path / "in", {"all.zip": zipped({
        f"{folder}_assignsubmission_file_/w.ipynb": data(solved(code)) for folder, code in (
            ("Red-Ada Lovelace_1", "# red"), ("Red-Ben Okri_2", "# red"), ("Blue-Cy Diaz_3", "# red"),
            ("Blue-Dee Moss_4", "# blue"))})})
    results, waiting, _ = graded(tmp_path)
    first = {student: result["team"] for student, result in results.items()}
    assert first["Red-Ada Lovelace"] == first["Red-Ben Okri"] == results["Red-Ada Lovelace"]["key"]
    assert first["Blue-Cy Diaz"] == first["Blue-Dee Moss"] == "" and len(waiting) == 3
    paths, *_ = exports.export(tmp_path / "out", "moodle")
    assert sum(line.startswith("Participant") for line in paths[0].read_text(encoding="utf-8-sig").split("\n")) == 4
    assert json.loads((tmp_path / "out/batch.json").read_text())["told"] == []
