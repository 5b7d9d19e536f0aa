"""What the tests of everything that a learner has done share."""

import pytest

from helpers.store import progress


@pytest.fixture
def file(tmp_path, monkeypatch):
    """A file of progress of one's own, not written yet, with nothing remembered of another."""
    path = tmp_path / "progress.json"
    monkeypatch.setenv("ATTENTION_COURSE_PROGRESS", str(path))
    for name, empty in (("_memory", {}), ("_unsaved", {}), ("_told", set())):
        monkeypatch.setattr(progress, name, empty)
    return path
