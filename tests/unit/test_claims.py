"""The register of claims: verdicts follow from intervals, entries are whole, stored numbers are held against new ones."""

import json

import numpy as np
import pytest

from helpers import claims
from scripts import claim as deciding
from scripts import experiments

ENTRY = {name: f"some {name}" for name in claims.FIELDS} | {"id": "C01", "lesson": "01", "verdict": "holds"}


@pytest.mark.parametrize(("low", "high", "criterion", "wanted"), [
    (0.8, 0.9, {"at_least": 0.8}, "holds"),
    (0.7, 0.9, {"at_least": 0.8}, "not settled"),
    (0.7, 0.79, {"at_least": 0.8}, "does not hold"),
    (0.0, 0.1, {"at_most": 0.1}, "holds"),
    (0.05, 0.2, {"at_most": 0.1}, "not settled"),
    (0.2, 0.3, {"at_most": 0.1}, "does not hold"),
    (0.0, 0.1, {"at_least": 0.5, "only_if": {"it rains": "holds"}}, "holds if it rains"),
    (0.0, 0.1, {"at_least": 0.5, "only_if": {"it rains": "not settled"}}, "does not hold"),
    (0.6, 0.7, {"at_least": 0.5, "only_if": {"it rains": "holds"}}, "holds"),
])
def test_the_verdict_is_the_intervals(low, high, criterion, wanted):
    assert deciding.verdict(low, high, **criterion) == wanted


def test_a_verdict_needs_one_criterion():
    for criterion in ({}, {"at_least": 0, "at_most": 1}):
        with pytest.raises(ValueError, match="one criterion"):
            deciding.verdict(0, 1, **criterion)


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A folder of its own for the register and the numbers, not run in full."""
    monkeypatch.setattr(claims, "REGISTER", tmp_path / "claims.json")
    monkeypatch.setattr(deciding, "NUMBERS", tmp_path / "experiments")
    monkeypatch.delenv(deciding.IN_FULL, raising=False)
    return tmp_path


def claim():
    return deciding.Claim("C01", source="somebody", criterion="as often as not", baseline="chance")


FOUND = {"n": "5 seeds", "result": "0.9", "interval": "0.8 to 1.0", "verdict": "holds", "reach": "here"}


def test_in_full_all_is_run_and_stored_and_afterwards_the_first_case_again(data, monkeypatch):
    ran = []

    def run(case):
        ran.append(case)
        return {"share": np.float64(case / 10), "list": [1, 2]}

    monkeypatch.setenv(deciding.IN_FULL, str(data))
    full = claim().measure("shares", run, range(3), within=0.01)
    assert ran == [0, 1, 2] and full[2] == {"share": 0.2, "list": [1, 2]}
    monkeypatch.delenv(deciding.IN_FULL)
    assert claim().measure("shares", run, range(3), within=0.01) == full
    assert ran == [0, 1, 2, 0]
    with pytest.raises(AssertionError, match="C01 shares: the first case now gives"):
        claim().measure("shares", lambda case: {"share": 0.5, "list": [1, 2]}, range(3), within=0.01)
    with pytest.raises(AssertionError, match="apart"):
        claim().measure("shares", lambda case: {"share": 0.0}, range(3), within=0.01)
    wide = {"share": 0.6, "list": 0}
    assert claim().measure("shares", lambda case: {"share": 0.5, "list": [1, 2]}, range(3), within=wide) == full
    with pytest.raises(AssertionError, match="apart"):
        claim().measure("shares", lambda case: {"share": 0.0, "list": [1, 3]}, range(3), within=wide)
    with pytest.raises(ValueError, match="3 stored results for 5 cases"):
        claim().measure("shares", run, range(5), within=0.01)


def test_an_entry_has_to_be_the_registers(data, monkeypatch):
    monkeypatch.setenv(deciding.IN_FULL, str(data))
    claim().decide(**FOUND)
    monkeypatch.delenv(deciding.IN_FULL)
    assert experiments.collect(data, data / "claims.json") == {"C01": (None, "holds")}
    claim().decide(**FOUND)
    with pytest.raises(AssertionError, match="another verdict than"):
        claim().decide(**FOUND | {"verdict": "does not hold"})
    assert claims.register(data / "claims.json")["C01"]["source"] == "somebody"


def test_a_changed_verdict_is_told_and_other_entries_stay(data):
    path = data / "claims.json"
    path.write_text(json.dumps([ENTRY | {"id": "C998"}, ENTRY | {"id": "C09"}, ENTRY]))  # the course has no C998
    (data / "new").mkdir()
    (data / "new" / "C01.json").write_text(json.dumps(ENTRY | {"verdict": "not settled"}))
    assert experiments.collect(data / "new", path) == {"C01": ("holds", "not settled")}
    assert [(e["id"], e["verdict"]) for e in claims.register(path).values()] == [("C01", "not settled"), ("C09", "holds")]


@pytest.mark.parametrize("field", claims.FIELDS)
def test_no_field_may_be_empty(data, field):
    (data / "claims.json").write_text(json.dumps([ENTRY | {field: " "}]))
    with pytest.raises(ValueError, match=f"no {field}|none|begins with"):
        claims.register()


def test_a_verdict_is_one_of_four(data):
    (data / "claims.json").write_text(json.dumps([ENTRY | {"verdict": "probably"}]))
    with pytest.raises(ValueError, match="'probably'"):
        claims.register()


def test_a_register_that_cannot_be_read_says_so(data):
    for text in ("", "{", "[1]", '[{"no": 1}]'):
        (data / "claims.json").write_text(text)
        with pytest.raises(ValueError, match="make experiments"):
            claims.register()


def test_an_unknown_claim(data):
    with pytest.raises(KeyError):
        deciding.Claim("C999", source="a", criterion="b", baseline="c")


def test_a_lesson_shows_its_own(data, capsys):
    (data / "claims.json").write_text(json.dumps([ENTRY, ENTRY | {"id": "C05", "lesson": "02", "claim": "another"}]))
    claims.what_people_say("01")
    said = capsys.readouterr().out
    assert "C01" in said and "holds" in said and "another" not in said


def test_where_only_words_changed_the_stored_numbers_are_entered_anew(data, monkeypatch):
    ran = []
    monkeypatch.setenv(deciding.IN_FULL, str(data))
    claim().measure("shares", lambda case: case, range(3), within=0.01)
    monkeypatch.setenv(deciding.STORED, "yes")
    assert claim().measure("shares", lambda case: ran.append(case) or case, range(3), within=0.01) == [0, 1, 2]
    assert ran == [0]
    claim().decide(**FOUND | {"reach": "elsewhere"})
    assert json.loads((data / "C01.json").read_text())["reach"] == "elsewhere"
