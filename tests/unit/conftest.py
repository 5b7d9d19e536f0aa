"""The chat model, a learner's file of progress or no learner, what is shown, and git."""

import shutil

import pytest

from helpers import smollm2
from helpers.page import show
from helpers.store import model_files, progress


@pytest.fixture(scope="session")
def model():
    """The chat model of lessons 16 to 18, read once."""
    try:
        return smollm2.load()
    except model_files.ModelNotAvailable as error:
        pytest.skip(str(error))


@pytest.fixture
def file(tmp_path, monkeypatch):
    """A file of progress of one's own, not written yet, with nothing remembered of another."""
    path = tmp_path / "progress.json"
    monkeypatch.setenv("ATTENTION_COURSE_PROGRESS", str(path))
    for name, empty in (("_memory", {}), ("_unsaved", {}), ("_told", set())):
        monkeypatch.setattr(progress, name, empty)
    return path


@pytest.fixture
def nobody(monkeypatch):
    """No learner is present."""
    monkeypatch.setenv("ATTENTION_COURSE_PROGRESS", "off")


@pytest.fixture
def pages(monkeypatch):
    """What notes, tables and maps show: (HTML, text) each."""
    shown = []
    monkeypatch.setattr(show, "display", lambda html, text: shown.append((html, text)))
    return shown


@pytest.fixture
def displayed(monkeypatch):
    """What is handed to IPython's display: widgets and figures, and (name, value) of each option."""
    things = []
    monkeypatch.setattr("IPython.display.display", lambda *more, **options: things.extend([*more, *options.items()]))
    return things


@pytest.fixture
def git_program():
    """Skips a test where there is no git, as where the course came in a zip file."""
    if not shutil.which("git"):
        pytest.skip("What the course does with git needs git: on Debian and Ubuntu `sudo apt install git`.")
