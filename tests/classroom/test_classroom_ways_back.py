"""Ways back to a platform: feedback and personal notebooks in its own zips, dates, attempts."""

import html
import json
import re
import zipfile

import nbformat
import pytest
from test_classroom_reports import ALL, fill, out, result  # noqa: F401, the fixture is used by its name

from classroom import exports, reports, roster, variants
from classroom.__main__ import main
from helpers.files import write_whole


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


def test_feedback_for_canvas(out):  # noqa: F811
    names = {"Ada_Lovelace_1": ("lovelaceada_1_501_a 2.ipynb",) * 2,
             "Ben_2": ("ben_LATE_2_502_work.zip", "ben_LATE_2_502_work/below/a_9_9_.ipynb"),
             "Cy__b>_3": ("Cy", "Cy/a.ipynb")}
    for key, (folder, file) in names.items():
        path = out / "results" / f"{key}.json"
        folder = folder.rsplit(".", 1)[0]
        write_whole(path, json.dumps(json.loads(path.read_text()) | {"folder": folder, "file": file}))
    fill(out, ALL)
    assert "canvas_feedback.zip" not in str(exports.export(out, "canvas")[0]), "there are no pages yet"
    reports.write_pages(out)
    paths, _, notes = exports.export(out, "canvas")
    assert out / "canvas_feedback.zip" in paths and "number in Canvas is not known: Cy <b>, Dee" in " ".join(notes)
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


def test_personal_notebooks_for_moodle(tmp_path, capsys):
    (tmp_path / "w.csv").write_text("Identifier,Full name,Email address\nParticipant 11,Wei Zhang,a@x.org\n"
                                    "Participant 12,Wei Zhang,b@x.org\nParticipant 13,Seán O'Bri_en,\n", encoding="utf-8")
    assert main(["release", "assignment1", str(tmp_path), "--variant", "v", "--students", str(tmp_path / "w.csv")]) == 0
    assert "assignment1-moodle.zip" in capsys.readouterr().out
    given = {one.moodle: one.variant for one in roster.read(tmp_path / "assignment1-roster.csv")}
    with zipfile.ZipFile(tmp_path / "assignment1-moodle.zip") as archive:
        for path in archive.namelist():
            number, file = as_moodle_reads(path)
            carried = json.loads(archive.read(path))["metadata"]["attention_course"]["variant"]
            assert file == "assignment1.ipynb" and carried == given.pop(number)
    assert not given and len(set(variants.read(tmp_path / "assignment1-variants.json").students)) == 3


@pytest.mark.parametrize("columns", ["Student,ID\nAda,5\n", "Name\nAda\n"])
def test_without_numbers_of_moodle_there_is_no_zip(columns, tmp_path):
    (tmp_path / "c.csv").write_text(columns, encoding="utf-8")
    assert main(["release", "assignment1", str(tmp_path), "--variant", "v", "--students", str(tmp_path / "c.csv")]) == 0
    assert not (tmp_path / "assignment1-moodle.zip").exists()
