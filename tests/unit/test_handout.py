"""A learner's own copies: what is theirs is never touched."""

import json
import os
import platform
import re
import shutil
import subprocess
import sys

import nbformat
import pytest

from scripts import handout, verbs

COURSE = handout.ROOT


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course with two lessons, and the folder of copies."""
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "solutions").mkdir()
    for path in sorted((handout.ROOT / "notebooks").glob("0[12]_*.ipynb")):
        shutil.copy(path, tmp_path / "notebooks")
        shutil.copy(path.parent / "solutions" / path.name, tmp_path / "notebooks" / "solutions")
    monkeypatch.setattr(handout, "ROOT", tmp_path)
    return tmp_path


def edit(path, old, new):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"]).replace(old, new)
    path.write_text(json.dumps(notebook), encoding="utf-8")


def copies(course):
    return sorted(path.name for path in (course / "my_lessons").glob("*.ipynb"))


def test_a_copy_is_a_valid_notebook_without_outputs_whose_links_lead_somewhere(course, capsys):
    assert handout.main([]) == 0
    assert "2 new" in capsys.readouterr().out
    first, second = (nbformat.read(course / "my_lessons" / name, as_version=4) for name in copies(course))
    nbformat.validate(first)
    assert not any("google.colab" in c.source for c in first.cells)
    code = [c for c in first.cells if c.cell_type == "code"]
    assert all(c.execution_count is None and bool(c.outputs) == (c.id == handout.DRAWING) for c in code)
    assert any(c.outputs for c in code), "the drawing at the top, which tells no answer"
    assert first.metadata.language_info.version == platform.python_version(), "or it opens as changed"
    solution = nbformat.read(course / "my_lessons" / "solutions" / copies(course)[0], as_version=4)
    for folder, notebook in (("", first), ("", second), ("solutions/", solution)):
        for link in re.findall(r"\]\(([^)#:]+\.(?:ipynb|md|py))", "".join(cell.source for cell in notebook.cells)):
            place = os.path.normpath(f"my_lessons/{folder}{link}")  # in the whole course every lesson has its copy
            assert (COURSE / re.sub("^my_lessons", "notebooks", place)).exists(), link


def test_what_is_said_of_an_answer_is_folded_until_the_learner_opens_it():
    code = {"cell_type": "code", "metadata": {}}
    words = {"cell_type": "markdown", "metadata": {}}
    cells = [{**words, "source": "Why?"}, {**code, "source": 'predict("01-a")'},
             {**words, "source": ["It was\n", "x.\n", "\n", "### Exercise 1\n", "\nDo it."]}, {**code, "source": "draw()"},
             {**code, "source": 'if model:\n    reveal(\n        "01-a", "x")'}, {**code, "source": "draw()"},
             {**words, "source": "*In words:* x."}, {**words, "source": "And so on."}]
    handout.fold_what_answers(cells)
    said = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    assert said[0] == "Why?" and said[3] == "And so on."
    assert said[1] == f"{handout.FOLD}\n\nIt was\nx.\n\n</details>\n\n### Exercise 1\n\nDo it."
    assert said[2] == f"{handout.FOLD}\n\n*In words:* x.\n\n</details>\n"


def test_a_new_version_of_the_course_does_not_touch_work(course, capsys):
    handout.main([])
    lesson, other = sorted((course / "notebooks").glob("*.ipynb"))
    mine = course / "my_lessons" / lesson.name
    edit(mine, "    ...", "    return 42")
    before = mine.read_bytes()
    handout.main([])
    assert "1 with your work in them" in capsys.readouterr().out and mine.read_bytes() == before
    edit(lesson, "# 01", "# 01 (new)")
    edit(other, "# 02", "# 02 (new)")
    handout.main([])
    said = capsys.readouterr().out
    assert mine.read_bytes() == before and f"{lesson.stem}.new.ipynb" in said and "1 updated" in said
    assert copies(course) == [f"{lesson.stem}.ipynb", f"{lesson.stem}.new.ipynb", other.name]
    assert "# 02 (new)" in (course / "my_lessons" / other.name).read_text(encoding="utf-8")


def test_work_in_the_new_copy_beside_the_old_one_is_not_touched_either(course, capsys):
    handout.main(["01"])
    lesson = next((course / "notebooks").glob("01*"))
    edit(course / "my_lessons" / lesson.name, "    ...", "    return 42")
    edit(lesson, "# 01", "# 01 (new)")
    handout.main(["01"])
    beside = course / "my_lessons" / f"{lesson.stem}.new.ipynb"
    edit(beside, "    ...", "    return 43")
    worked = beside.read_bytes()
    handout.main(["01"])  # nothing is new since
    assert beside.read_bytes() == worked and len(copies(course)) == 2
    edit(lesson, "# 01 (new)", "# 01 (newer)")
    capsys.readouterr()
    handout.main(["01"])
    handout.main(["01"])
    assert f"{lesson.stem}.new-2.ipynb beside it" in capsys.readouterr().out
    assert beside.read_bytes() == worked and len(copies(course)) == 3
    assert "# 01 (newer)" in (course / "my_lessons" / f"{lesson.stem}.new-2.ipynb").read_text(encoding="utf-8")
    edit(lesson, "# 01 (newer)", "# 01 (newest)")
    handout.main(["01"])  # and a copy beside it without work is replaced, not heaped up
    assert beside.read_bytes() == worked and len(copies(course)) == 3


def test_outputs_alone_are_no_work(course, capsys):
    """JupyterLab and VS Code rewrite a notebook when it is run and saved."""
    handout.main(["01"])
    lesson = next((course / "notebooks").glob("01*"))
    mine = course / "my_lessons" / lesson.name
    notebook = nbformat.read(mine, as_version=4)
    notebook.metadata["language_info"] = {"name": "python", "version": "3.13.0"}
    notebook.metadata["widgets"] = {}
    notebook.cells[2].execution_count = 7
    nbformat.write(notebook, mine)
    edit(lesson, "# 01", "# 01 (new)")
    handout.main(["01"])
    assert "1 updated" in capsys.readouterr().out


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"cells": 3, "metadata": {}}'])
def test_a_damaged_copy_is_kept(course, damage):
    handout.main(["01"])
    mine = next((course / "my_lessons").glob("*.ipynb"))
    mine.write_text(damage, encoding="utf-8")
    assert handout.main(["01"]) == 0
    assert mine.read_text(encoding="utf-8") == damage and len(copies(course)) == 2


def test_one_lesson_and_an_unknown_one(course, capsys):
    assert handout.main(["notebooks/02_attention_as_a_weighted_average.ipynb"]) == 0
    assert copies(course) == ["02_attention_as_a_weighted_average.ipynb"]
    assert handout.main(["77"]) == 1
    assert "no lesson '77'" in capsys.readouterr().err


def test_ruff_and_git_do_not_look_into_the_copies():
    """A learner's unfinished cell must not fail `make lint`, and a pull must not meet it."""
    folder = handout.ROOT / handout.FOLDER
    mine = folder / "test_of_ruff.py"
    had = folder.exists()
    folder.mkdir(exist_ok=True)
    mine.write_text("def f(:")
    seen = subprocess.run([sys.executable, "-m", "ruff", "check", "--show-files", "."], cwd=handout.ROOT,
                          capture_output=True, text=True, check=True).stdout
    mine.unlink()
    if not had:
        folder.rmdir()
    assert "00_start_here.ipynb" in seen and handout.FOLDER not in seen
    if (handout.ROOT / ".git").exists() and shutil.which("git"):
        subprocess.run(["git", "check-ignore", "-q", f"{handout.FOLDER}/x.ipynb"], cwd=handout.ROOT, check=True)


def test_make_lab_fills_in_and_tells_once_of_a_lesson_that_moved_on(course, capsys):
    written = handout.fill()
    assert sorted(written) == copies(course)
    assert all(os.path.samefile(course / "my_lessons" / name, place) for name, place in written.items())
    assert "Your own copies" in capsys.readouterr().out and len(copies(course)) == 2
    assert len(list((course / "my_lessons" / "solutions").glob("*.ipynb"))) == 2
    lesson, other = sorted((course / "notebooks").glob("*.ipynb"))
    mine = course / "my_lessons" / lesson.name
    edit(mine, "    ...", "    return 42")
    before = mine.read_bytes()
    handout.fill()
    assert capsys.readouterr().out == ""
    edit(lesson, "# 01", "# 01 (new)")
    edit(other, "# 02", "# 02 (new)")
    handout.fill()
    said = capsys.readouterr().out
    assert said.count("\n") == 1 and "make handout NB=01" in said
    assert mine.read_bytes() == before and len(copies(course)) == 2
    assert "# 02 (new)" in (course / "my_lessons" / other.name).read_text(encoding="utf-8")
    handout.fill()
    assert capsys.readouterr().out == "", "told once"
    edit(lesson, "# 01 (new)", "# 01 (newer)")
    handout.fill()
    assert "make handout NB=01" in capsys.readouterr().out, "it moved on again"


@pytest.fixture
def started(tmp_path, monkeypatch):
    """What `make lab` starts, which is not done, for a course in an empty folder."""
    commands = []
    monkeypatch.chdir(handout.ROOT)
    monkeypatch.setattr(handout, "ROOT", tmp_path)
    monkeypatch.setattr(verbs, "own_notebooks", list)
    monkeypatch.setattr(verbs, "run", lambda *command, **more: commands.append(command) or 0)
    return commands


def test_make_lab_where_nothing_can_be_written_opens_the_finished_lessons(started, tmp_path, capsys):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "my_lessons").write_text("a file, where the folder should be")
    assert verbs.lab([]) == 0
    said = capsys.readouterr().out
    assert "my_lessons" in said and "finished lessons open" in said
    assert "notebooks/00_start_here.ipynb" in started[0]
    assert (tmp_path / "my_lessons").read_text() == "a file, where the folder should be"


def test_finished_opens_the_stored_lessons_and_makes_no_copies(started, tmp_path):
    assert verbs.lab(["--finished", "--port=8899"]) == 0
    assert "notebooks/00_start_here.ipynb" in started[0] and "--finished" not in started[0] and "--port=8899" in started[0]
    assert not (tmp_path / "my_lessons").exists()
