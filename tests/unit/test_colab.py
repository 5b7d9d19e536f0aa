"""The first cell of every lesson: it brings the course to Colab, and does nothing elsewhere."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import hygiene
import nbformat
import pytest
import yaml

from helpers.page import colab
from scripts import address as writer

ROOT = colab.ROOT
COLAB = """
from IPython.core.interactiveshell import InteractiveShell

class Shell(InteractiveShell):
    def __repr__(self):
        return "<google.colab._shell.Shell>"

"""


def code(name):
    path = next((ROOT / "notebooks").glob(f"{name}_*.ipynb"))
    return [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


@pytest.fixture
def repository(git_program, tmp_path):
    """The files of the course that lessons need, in a git repository of their own."""
    folder = tmp_path / "published"
    for name in ("helpers", "data", "notebooks/figures"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b.invalid", "-c", "init.defaultBranch=main"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "all"]):
        subprocess.run([*git, *command], check=True)
    return folder


def run(cells, folder, answer="", shell=""):
    """A Python of its own, somewhere else, which runs these cells as a notebook does."""
    script = (f"{shell or 'from IPython.core.interactiveshell import InteractiveShell as Shell'}\n"
              f"shell = Shell.instance()\nfor cell in {cells!r}:\n    shell.run_cell(cell).raise_error()")
    environment = os.environ | {"IPYTHONDIR": str(folder / ".ipython")}
    return subprocess.run([sys.executable, "-c", script], cwd=folder, input=answer, capture_output=True, text=True,
                          env=environment)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Colab has a newer Python, and tomllib with it")
def test_on_colab_it_fetches_the_course_and_the_lesson_runs(repository, tmp_path):
    content = tmp_path / "content"
    content.mkdir()
    first, _, imports, *cells = code("01")
    where = "import helpers, pathlib; print(pathlib.Path(helpers.__file__).parent)"
    done = run([first, first, imports, where, cells[0]], content, f"{repository}\n{repository}\n", COLAB)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("The course is ready") == 2 and str(content / "course" / "helpers") in done.stdout
    assert "Installing" not in done.stdout, "everything is installed here"


def test_elsewhere_it_does_nothing(tmp_path):
    done = run(["import sys\nbefore = list(sys.path), set(sys.modules)", code("01")[0],
                "assert (list(sys.path), set(sys.modules)) == before"], tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not (tmp_path / "course").exists()


def test_an_address_that_leads_nowhere_is_told(tmp_path):
    done = run([code("01")[0]], tmp_path, "no such place\n", COLAB)
    assert "repository 'no such place' does not exist" in done.stdout + done.stderr


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Colab has a newer Python, and tomllib with it")
def test_only_what_is_missing_is_installed(monkeypatch, capsys):
    real, calls = colab.importlib.metadata.version, []

    def version(name):
        if name in ("bertviz", "nbval", "jupyterlab"):
            raise colab.importlib.metadata.PackageNotFoundError(name)
        return "0.1" if name == "sacrebleu" else real(name)

    def pip(command, **options):
        calls.append(command)
        return subprocess.CompletedProcess(command, len(calls) - 1, "", "noise\nno space left\n")

    monkeypatch.setattr(colab.importlib.metadata, "version", version)
    monkeypatch.setattr(colab.subprocess, "run", pip)
    assert [line.split(">")[0] for line in colab.missing()] == ["bertviz", "sacrebleu"]
    colab.set_up()
    assert calls[0][1:5] == ["-m", "pip", "install", "-q"] and calls[0][5:] == colab.missing()
    assert "Installing what Colab does not have: bertviz" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="run this cell again; pip's last words were: no space left"):
        colab.set_up()


@pytest.fixture
def course(tmp_path):
    shutil.copytree(ROOT / "notebooks", tmp_path / "notebooks", ignore=shutil.ignore_patterns(".*", "assignments"))
    for name in ("README.md", "CITATION.cff"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


@pytest.mark.slow
def test_the_address_is_written_everywhere_once(course):
    writer.write_address("ada/attention-course", course)
    assert writer.known_name(course) == "ada/attention-course"
    lessons = sorted((course / "notebooks").rglob("*.ipynb"))
    assert len(lessons) > 20
    for path in lessons:
        assert list(hygiene.colab_first(hygiene.Book(path, course))) == [], path
        before = json.loads((ROOT / path.relative_to(course)).read_text(encoding="utf-8"))
        now = json.loads(path.read_text(encoding="utf-8"))
        index = next(i for i, cell in enumerate(now["cells"]) if cell["cell_type"] == "code")
        assert '--depth 1 "https://github.com/ada/attention-course" course' in "".join(now["cells"][index]["source"])
        before["cells"][index]["source"] = now["cells"][index]["source"]
        assert now == before, "and nothing else has changed"
    readme = (course / "README.md").read_text(encoding="utf-8")
    assert "https://colab.research.google.com/github/ada/attention-course/blob/main/notebooks/00_start_here.ipynb" in readme
    assert "https://mybinder.org/v2/gh/ada/attention-course/main?labpath=my_lessons/00_start_here.ipynb" in readme
    assert "https://ada.github.io/attention-course/" in readme
    assert "[![Tests](https://github.com/ada/attention-course/actions/workflows/ci.yml/badge.svg)]" in readme
    citation = yaml.safe_load((course / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["repository-code"] == "https://github.com/ada/attention-course"
    saved = {path: path.read_bytes() for path in (*lessons, course / "README.md", course / "CITATION.cff")}
    writer.write_address("ada/attention-course", course)
    assert saved == {path: path.read_bytes() for path in saved}, "a second time changes nothing"
    writer.write_address("grace/course", course)
    assert "ada" not in (course / "README.md").read_text(encoding="utf-8").split("end of badges")[0]
    assert "ada/" not in (course / "CITATION.cff").read_text(encoding="utf-8")


@pytest.mark.parametrize("arguments", [[], ["github.com/a/b"], ["https://gitlab.example/a/b"], ["https://github.com/a"]])
def test_an_address_that_is_none_is_told(arguments, capsys):
    assert writer.main(arguments) == 1
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and "https://github.com/OWNER/NAME" in told


def test_an_address_is_taken_as_git_and_browsers_write_it(monkeypatch, capsys):
    taken = []
    monkeypatch.setattr(writer, "write_address", taken.append)
    for end in ("", "/", ".git"):
        assert writer.main([f"https://github.com/ada/attention-course{end}"]) == 0
    assert taken == ["ada/attention-course"] * 3 and "git diff" in capsys.readouterr().out


def test_the_services_open_files_that_exist():
    name = writer.known_name() or "ada/attention-course"
    for service in writer.SERVICES:
        address = writer.link(service, name)
        assert name in address and "{" not in address
        for part in address.split("main/")[1:] + address.split("labpath=")[1:]:
            assert (ROOT / part.replace("my_lessons/", "notebooks/")).exists()
    assert (ROOT / ".github/workflows/ci.yml").exists()
    assert Path(ROOT / "environment.yml").exists(), "Binder reads it"
    assert "scripts.handout" in (ROOT / "postBuild").read_text() and os.access(ROOT / "postBuild", os.X_OK), "and runs this"
