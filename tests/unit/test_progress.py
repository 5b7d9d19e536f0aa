"""Progress, predictions, notes and tables."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from helpers.page import numbers, predictions, show
from helpers.store import progress
from helpers.store.files import locked


def test_what_is_recorded_is_read_back(file):
    progress.record("exercises", "softmax", "passed")
    progress.record("predictions", "01-bears", "lions")
    assert progress.load("exercises") == {"softmax": "passed"}
    assert json.loads(file.read_text(encoding="utf-8"))["predictions"] == {"01-bears": "lions"}
    assert sorted(p.name for p in file.parent.iterdir()) == ["progress.json", "progress.json.lock"]


@pytest.mark.parametrize("damage", [b"", b"{", b"[1]", b'{"exercises": 3}', b"\x00\x01", b"\xff\xfe\xfa"])
def test_a_damaged_file_is_set_aside(file, damage, capsys):
    file.write_bytes(damage)
    assert progress.load("exercises") == {}
    assert capsys.readouterr().out.count("damaged") >= 1
    assert (file.parent / "progress.json.damaged-1").read_bytes() == damage
    progress.record("exercises", "softmax", "passed")
    assert progress.load("exercises") == {"softmax": "passed"}
    file.write_text("damaged again", encoding="utf-8")
    progress.load("exercises")
    assert (file.parent / "progress.json.damaged-1").read_bytes() == damage
    assert (file.parent / "progress.json.damaged-2").read_text(encoding="utf-8") == "damaged again"


def test_a_file_that_cannot_be_written_costs_one_sentence(file, monkeypatch, capsys):
    monkeypatch.setenv("ATTENTION_COURSE_PROGRESS", str(file / "x" / "progress.json"))
    file.write_text("a file where a folder should be", encoding="utf-8")
    progress.record("exercises", "softmax", "passed")
    progress.record("exercises", "analogy", "passed")
    assert capsys.readouterr().out.count("could not be saved") == 1
    assert progress.load("exercises") == {"softmax": "passed", "analogy": "passed"}


@pytest.mark.parametrize("fails", ["for a moment", "this time", "because it is damaged and cannot be renamed"])
def test_what_cannot_be_read_is_not_written_over(file, monkeypatch, capsys, fails):
    progress.record("exercises", "softmax", "passed")
    stored = file.read_text(encoding="utf-8")
    monkeypatch.setattr(progress, "_memory", {})  # as in a kernel that has just started
    monkeypatch.setattr(progress.time, "sleep", lambda seconds: None)
    read, replace, left = Path.read_text, os.replace, [1] if fails == "for a moment" else [10]

    def refuse(path, *_, **__):
        left[0] -= 1
        if left[0] >= 0:
            raise PermissionError(13, "Another program uses it", str(path))
        return read(path, encoding="utf-8")

    if "damaged" in fails:
        file.write_text(stored := "{", encoding="utf-8")
        monkeypatch.setattr(os, "replace", lambda old, new: refuse(old))
    else:
        monkeypatch.setattr(Path, "read_text", refuse)
    progress.record("exercises", "analogy", "passed")
    said = capsys.readouterr().out
    if fails == "for a moment":
        assert said == ""
    else:
        assert said.count("could not be saved") == 1 and read(file, encoding="utf-8") == stored
        assert progress.load("exercises") == {"analogy": "passed"}, "this kernel knows it nevertheless"
    monkeypatch.setattr(Path, "read_text", read)
    monkeypatch.setattr(os, "replace", replace)
    progress.record("exercises", "nearest", "passed")  # and what waited is saved with the next one
    softmax = {} if "damaged" in fails else {"softmax": "passed"}
    wanted = {**softmax, "analogy": "passed", "nearest": "passed"}
    assert json.loads(file.read_text(encoding="utf-8")) == {"exercises": wanted} and progress.load("exercises") == wanted


def test_two_kernels_keep_each_others_entries(file):
    """Each reads, enters and writes, over and over."""
    code = ("import sys; from helpers.store import progress\n"
            "for n in range(60): progress.record('exercises', sys.argv[1] + str(n), 'passed')")
    kernels = [subprocess.Popen([sys.executable, "-c", code, name], cwd=Path(__file__).parents[2]) for name in "ab"]
    assert [kernel.wait() for kernel in kernels] == [0, 0]
    assert set(progress.load("exercises")) == {f"{name}{n}" for name in "ab" for n in range(60)}
    progress.record("exercises", "a1", "once more")
    assert progress.load("exercises")["a1"] == "once more" and len(progress.load("exercises")) == 120


def test_a_lock_that_is_not_given_back_does_not_stop_a_lesson(file, monkeypatch):
    monkeypatch.setattr(progress, "locked", lambda path, seconds: locked(path, seconds / 100))
    with locked(file.with_name("progress.json.lock")):
        progress.record("exercises", "softmax", "passed")
    assert progress.load("exercises") == {"softmax": "passed"}


def test_windows_has_locks_too(file, monkeypatch):
    """As msvcrt has them: for an open file, and refused at once to any other."""
    held = []

    def locking(handle, how, size):
        if (how, size) != ("at once", 1) or held:
            raise PermissionError(13, "Permission denied")
        held.append(handle)

    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setitem(sys.modules, "msvcrt", SimpleNamespace(LK_NBLCK="at once", locking=locking))
    waited = []
    with locked(file), locked(file, 0.1, lambda: waited.append(1)):
        pass
    assert waited == [1] and len(held) == 1
    monkeypatch.setitem(sys.modules, "msvcrt", None)
    with locked(file, waits=waited.clear):  # and a Python without locks goes on
        assert waited


def test_off_keeps_nothing(nobody, tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "_memory", {})
    monkeypatch.chdir(tmp_path)
    progress.record("exercises", "softmax", "passed")
    assert not progress.live()
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def asked(monkeypatch):
    """The predictions of data/predictions.toml are these."""
    known = {"01-x": {"question": "Which of {n}?", "options": ["a", "b"]},
             "01-y": {"question": "Which?", "options": ["a", "b"]}}
    monkeypatch.setattr(predictions, "load", lambda: known)


def test_every_prediction_has_a_question_and_different_options():
    for key, entry in predictions.load().items():
        assert entry["question"] and len(entry["options"]) == len(set(entry["options"])) > 1, key


def test_prediction_is_compared_with_the_measurement(file, asked, capsys):
    predictions.predict("01-x", n=2)
    assert "Predict. Which of 2?" in capsys.readouterr().out
    predictions.reveal("01-x", "a")
    assert "You predicted" not in capsys.readouterr().out
    progress.record("predictions", "01-x", "b")
    predictions.reveal("01-x", "a")
    assert "You predicted: b" in capsys.readouterr().out
    progress.record("predictions", "01-x", "a")
    predictions.reveal("01-x", "a")
    assert "You predicted that" in capsys.readouterr().out
    with pytest.raises(ValueError, match="not one of the options"):
        predictions.reveal("01-x", "c")
    with pytest.raises(ValueError, match="no prediction '01-q'"):
        predictions.predict("01-q")
    predictions.reveal("01-x", 1)
    assert "Measured: b" in capsys.readouterr().out
    predictions.reveal("01-x", {"a": 1 > 2, "b": 2 > 1})
    assert "Measured: b" in capsys.readouterr().out
    with pytest.raises(ValueError, match="should be one"):
        predictions.reveal("01-x", {"a": True, "b": True})


def test_buttons_keep_the_choice(file, asked, displayed):
    predictions.predict("01-y")
    buttons = displayed[-1]
    assert buttons.value is None
    buttons.value = "b"
    predictions.predict("01-y")
    assert progress.load("predictions") == {"01-y": "b"}
    assert displayed[-1].value == "b"


def test_numbers_of_a_text_are_compared_to_the_digits_that_it_writes(capsys):
    numbers.agree({"0.51, queen": 0.5149, "34 %": 0.336, "1,350 patches": 1350, "-4": -4.0})
    assert capsys.readouterr().out == "All 4 numbers of the text come out as it says.\n"
    numbers.agree({"0.51": 0.5151, "34 %": 0.5, "7": float("nan")})
    assert capsys.readouterr().out.splitlines() == [
        "The text says 0.51, and here it is 0.515.", "The text says 34 %, and here it is 50.0.",
        "The text says 7, and here it is nan."]
    with pytest.raises(ValueError, match="does not begin with a number"):
        numbers.agree({"queen 0.5": 0.5})


def test_table_refuses_a_ragged_row():
    with pytest.raises(ValueError, match="2 columns"):
        show.table(["a", "b"], [["1"]])
