"""Progress, predictions, notes and tables."""

import json

import pytest

from helpers import predictions, progress, show


@pytest.fixture
def file(tmp_path, monkeypatch):
    path = tmp_path / "progress.json"
    monkeypatch.setenv("ATTENTION_COURSE_PROGRESS", str(path))
    monkeypatch.setattr(progress, "_memory", {})
    monkeypatch.setattr(progress, "_told", set())
    return path


def test_what_is_recorded_is_read_back(file):
    progress.record("exercises", "softmax", "passed")
    progress.record("predictions", "01-bears", "lions")
    assert progress.load("exercises") == {"softmax": "passed"}
    assert json.loads(file.read_text(encoding="utf-8"))["predictions"] == {"01-bears": "lions"}
    assert [p.name for p in file.parent.iterdir()] == ["progress.json"]


@pytest.mark.parametrize("damage", ["", "{", "[1]", '{"exercises": 3}', "\x00\x01"])
def test_a_damaged_file_is_set_aside(file, damage, capsys):
    file.write_text(damage, encoding="utf-8")
    assert progress.load("exercises") == {}
    assert capsys.readouterr().out.count("damaged") >= 1
    assert (file.parent / "progress.json.damaged-1").read_text(encoding="utf-8") == damage
    progress.record("exercises", "softmax", "passed")
    assert progress.load("exercises") == {"softmax": "passed"}


def test_bytes_that_are_not_text_are_set_aside(file):
    file.write_bytes(b"\xff\xfe\xfa")
    assert progress.load("exercises") == {}
    assert (file.parent / "progress.json.damaged-1").read_bytes() == b"\xff\xfe\xfa"


def test_a_second_damaged_file_does_not_replace_the_first(file):
    for damage in ("first", "second"):
        file.write_text(damage, encoding="utf-8")
        progress.load("exercises")
    assert (file.parent / "progress.json.damaged-1").read_text(encoding="utf-8") == "first"
    assert (file.parent / "progress.json.damaged-2").read_text(encoding="utf-8") == "second"


def test_a_file_that_cannot_be_written_costs_one_sentence(file, monkeypatch, capsys):
    monkeypatch.setenv("ATTENTION_COURSE_PROGRESS", str(file / "x" / "progress.json"))
    file.write_text("a file where a folder should be", encoding="utf-8")
    progress.record("exercises", "softmax", "passed")
    progress.record("exercises", "analogy", "passed")
    assert capsys.readouterr().out.count("could not be saved") == 1
    assert progress.load("exercises") == {"softmax": "passed", "analogy": "passed"}


def test_off_keeps_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_COURSE_PROGRESS", "off")
    monkeypatch.setattr(progress, "_memory", {})
    monkeypatch.chdir(tmp_path)
    progress.record("exercises", "softmax", "passed")
    assert not progress.live()
    assert list(tmp_path.iterdir()) == []


def test_prediction_is_compared_with_the_measurement(file, capsys):
    predictions.predict("01-x", "Which?", ["a", "b"])
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
    predictions.reveal("01-x", {"a": 1 > 2, "b": 2 > 1})
    assert "Measured: b" in capsys.readouterr().out
    with pytest.raises(ValueError, match="should be one"):
        predictions.reveal("01-x", {"a": True, "b": True})


def test_buttons_keep_the_choice(file):
    from unittest import mock

    shown = []
    with mock.patch("IPython.display.display", side_effect=lambda *things, **_: shown.extend(things)):
        predictions.predict("01-y", "Which?", ["a", "b"])
        buttons = shown[-1]
        assert buttons.value is None
        buttons.value = "b"
        predictions.predict("01-y", "Which?", ["a", "b"])
    assert progress.load("predictions") == {"01-y": "b"}
    assert shown[-1].value == "b"


def test_bad_options_are_refused():
    with pytest.raises(ValueError, match="two different options"):
        predictions.predict("01-z", "Which?", ["a", "a"])


def test_table_refuses_a_ragged_row():
    with pytest.raises(ValueError, match="2 columns"):
        show.table(["a", "b"], [["1"]])
