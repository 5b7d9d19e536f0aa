"""How an experiment decides: verdicts follow from intervals, stored numbers come back, entries reach the register."""

import json

import numpy as np
import pytest

from helpers.measure import claim as deciding
from helpers.page import claims
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
    monkeypatch.delenv(deciding.ENTRIES, raising=False)
    monkeypatch.delenv(deciding.MEASURE, raising=False)
    return tmp_path


def claim():
    return deciding.Claim("C01", source="somebody", criterion="as often as not", baseline="chance")


FOUND = {"n": "5 seeds", "result": "0.9", "interval": "0.8 to 1.0", "verdict": "holds", "reach": "here"}


@pytest.fixture
def measured(data, monkeypatch):
    """``measured(mode, cases)``: in a fresh kernel, what a claim measures and the cases that were run."""
    def run(mode, cases, name="shares", result=lambda case: {"share": np.float64(case / 10), 3: np.arange(2)}):
        monkeypatch.setenv(deciding.MEASURE, mode)
        monkeypatch.setattr(deciding, "_results", {})
        ran = []
        return claim().measure(name, lambda case: ran.append(case) or result(case), cases), ran
    return run


def test_in_full_all_is_run_and_otherwise_the_stored_numbers_come_back(measured):
    full, ran = measured("all", range(3))
    assert ran == [0, 1, 2] and full[2] == {"share": 0.2, "3": [0, 1]}
    assert measured("", range(3)) == (full, []) == measured("missing", range(3))
    other, ran = measured("all", range(3), result=lambda case: case)
    assert (other, ran) == ([0, 1, 2], [0, 1, 2]) and measured("", range(3)) == (other, [])


def test_what_is_not_stored_is_measured_only_where_that_is_asked_for(measured, data):
    measured("all", range(3))
    with pytest.raises(ValueError, match='5 cases are asked and 3 are.*make experiments NB="notebooks.*01_.*--missing"'):
        measured("", range(5))
    with pytest.raises(ValueError, match="3 cases are asked and 0 are stored"):
        measured("", range(3), "another")
    assert measured("missing", range(3), "another")[1] == [0, 1, 2]
    assert measured("missing", range(5))[1] == [0, 1, 2, 3, 4]
    assert list(json.loads((data / "experiments" / "01.json").read_text())) == ["C01 another", "C01 shares"]


def test_a_number_is_current_only_for_the_case_that_was_measured(measured, data):
    """As many steps of training as before are asked for, or others: 900 are stored and 1,200 asked."""
    result = lambda case: case[1]  # noqa: E731
    measured("all", [("linear", 900)], result=result)
    assert measured("", [("linear", 900)]) == ([900], [])
    with pytest.raises(ValueError, match=r"'linear', 1200.* is asked and .*'linear', 900.* is stored; measure it with make"):
        measured("", [("linear", 1200)])
    assert measured("missing", [("linear", 900)], result=result) == ([900], [])
    assert measured("missing", [("linear", 1200)], result=result) == ([1200], [("linear", 1200)])
    (stored,) = json.loads((data / "experiments" / "01.json").read_text())["C01 shares"]
    assert stored == {"case": "<lambda>(['linear', 1200])", "result": 1200}


def test_another_function_is_another_measurement_and_a_long_case_is_told_briefly(data, monkeypatch):
    monkeypatch.setenv(deciding.MEASURE, "all")

    def trained(case):
        return len(case)

    def untrained(case):
        return 0

    claim().measure("texts", trained, ["word " * 100])
    monkeypatch.setenv(deciding.MEASURE, "")
    assert claim().measure("texts", trained, ["word " * 100]) == [500]
    for run, case in ((untrained, "word " * 100), (trained, "word " * 101)):
        with pytest.raises(ValueError, match="is asked and trained.* characters, .* is stored"):
            claim().measure("texts", run, [case])


def test_nothing_is_measured_twice_in_a_kernel(data, monkeypatch):
    """Another claim asks for the same case. Of long arrays the middle counts as well."""
    monkeypatch.setenv(deciding.MEASURE, "all")
    monkeypatch.setattr(deciding, "_results", {})
    ran, a, b = [], np.arange(2000.0), np.r_[np.arange(999.0), 0, np.arange(1000.0, 2000)]

    def run(case):
        ran.append(case)
        return case.sum()

    for name, cases in (("one", [a, b]), ("another", [b])):
        assert claim().measure(name, run, cases) == [case.sum() for case in cases]
    assert len(ran) == 2


def test_an_entry_has_to_be_the_registers(data, monkeypatch):
    monkeypatch.setenv(deciding.ENTRIES, str(data))
    claim().decide(**FOUND)
    monkeypatch.delenv(deciding.ENTRIES)
    assert experiments.collect(data, data / "claims.json") == {"C01": (None, "holds")}
    claim().decide(**FOUND)
    with pytest.raises(AssertionError, match="another verdict than"):
        claim().decide(**FOUND | {"verdict": "does not hold"})
    assert claims.register(data / "claims.json")["C01"]["source"] == "somebody"


def test_a_changed_verdict_is_told_and_other_entries_stay(data):
    path = data / "claims.json"
    path.write_text(json.dumps([ENTRY | {"id": "C09"}, ENTRY]))
    (data / "new").mkdir()
    (data / "new" / "C01.json").write_text(json.dumps(ENTRY | {"verdict": "not settled"}))
    assert experiments.collect(data / "new", path) == {"C01": ("holds", "not settled")}
    assert [(e["id"], e["verdict"]) for e in claims.register(path).values()] == [("C01", "not settled"), ("C09", "holds")]


def test_a_claim_that_is_taken_out_stays_as_withdrawn_and_keeps_its_number(data):
    path = data / "claims.json"
    path.write_text(json.dumps([ENTRY | {"id": "C998", "claim": "the moon is green"}, ENTRY]))  # the course has no C998
    (data / "new").mkdir()
    experiments.collect(data / "new", path)
    experiments.collect(data / "new", path)
    assert [(id, "withdrawn" in e) for id, e in claims.register(path).items()] == [("C01", False), ("C998", True)]
    path.write_text(json.dumps([ENTRY | {"withdrawn": "The course no longer has this claim."}]))
    with pytest.raises(ValueError, match="C01 was withdrawn .*takes a number that was never used"):
        experiments.collect(data / "new", path)


def test_a_claim_keeps_its_meaning_or_quotes_its_former_words(data):
    path, new = data / "claims.json", data / "new" / "C01.json"
    path.write_text(json.dumps([ENTRY]))
    new.parent.mkdir()
    new.write_text(json.dumps(ENTRY | {"claim": "the moon is green"}))
    with pytest.raises(ValueError, match="C01 was .* and is now 'the moon is green': a number keeps its meaning"):
        experiments.collect(new.parent, path)
    assert json.loads(path.read_text()) == [ENTRY]
    told = {"claim": "the moon is green", "changed": f"The words were: {ENTRY['claim'].lower()}."}
    new.write_text(json.dumps(ENTRY | told))
    experiments.collect(new.parent, path)
    assert claims.register(path)["C01"]["claim"] == "the moon is green"


WORDS = {"plain": "Nine of ten.", "power": "A tenth.", "changed": "Nothing after the run.", "kind": "identity"}


@pytest.mark.parametrize("field", claims.FOR_READERS)
def test_what_is_told_to_readers_is_entered_and_compared(data, monkeypatch, field):
    monkeypatch.setenv(deciding.ENTRIES, str(data))
    claim().decide(**FOUND | WORDS)
    monkeypatch.delenv(deciding.ENTRIES)
    experiments.collect(data, data / "claims.json")
    assert claims.register()["C01"].items() >= WORDS.items()
    claim().decide(**FOUND | WORDS)
    with pytest.raises(AssertionError, match=f"another {field} than"):
        claim().decide(**FOUND | WORDS | {field: "claim"})
    with pytest.raises(AssertionError, match=f"another {field} than"):  # nor may it fall silent
        claim().decide(**FOUND | {name: said for name, said in WORDS.items() if name != field})


@pytest.mark.parametrize(("field", "said", "why"), [
    ("plain", "nine " * 61, "in 61 words"), ("kind", "belief", "'belief'"),
    ("power", " ", "no power"), ("changed", "", "no changed"),
])
def test_what_is_told_to_readers_is_short_and_of_a_known_kind(data, field, said, why):
    with pytest.raises(ValueError, match=why):
        claim().decide(**FOUND | WORDS | {field: said})
    with pytest.raises(TypeError, match="no colour"):
        claim().decide(**FOUND, colour="red")


def test_two_long_cases_that_differ_in_the_middle_have_two_names():
    one, other = list(range(200)), [*range(100), 0, *range(101, 200)]
    assert deciding._in_words(sum, one) != deciding._in_words(sum, other)
    assert len(deciding._in_words(sum, one)) < 260


def test_an_interval_without_numbers_is_no_verdict():
    with pytest.raises(ValueError, match="goes from nan to nan"):
        deciding.verdict(float("nan"), float("nan"), at_least=0.8)
