"""The register of claims: verdicts follow from intervals, entries are whole, stored numbers are held against new ones."""

import ast
import inspect
import json
import textwrap

import numpy as np
import pytest

from helpers import digest, training
from helpers import experiment as deciding
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
def notebook(data, monkeypatch):
    """Run cells as one notebook, in a fresh kernel: ``notebook(mode, *cells)`` returns its names."""
    def run(mode, *cells):
        monkeypatch.setenv(deciding.MEASURE, mode)
        monkeypatch.setattr(deciding, "_done", {})
        names = {"In": [""], "Claim": deciding.Claim, "ran": []}
        for cell in map(textwrap.dedent, cells):
            names["In"].append(cell)
            exec(compile(cell, "<cell>", "exec"), names)
        return names
    return run


@pytest.fixture
def dear(monkeypatch):
    """Nothing is so cheap that it is run again anyway."""
    monkeypatch.setattr(deciding, "CHEAP", 0)


def how(data):
    """How the one measurement was measured, as it is stored."""
    (known,) = json.loads((data / "experiments" / "01.json").read_text())[deciding.HOW].values()
    return known


CLAIM = 'c01 = Claim("C01", source="somebody", criterion="as often as not", baseline="chance")'
COUNT = """
    def run(case):
        ran.append(case)
        return {"share": case / 10, "list": [1, 2]}
"""
MEASURE = 'found = c01.measure("shares", run, range(3))'
TRAIN = """
    import torch
    from helpers import training

    def run(seed):
        ran.append(seed)
        with training.seeded(seed):
            model = torch.nn.Linear(3, 1)
        X = torch.randn(8, 3, generator=torch.Generator().manual_seed(seed))
        training.fit(model, lambda g: (X,), lambda m, X: (m(X) ** 2).mean(), steps=3, lr=0.01, label=None)
        return {"loss": (model(X) ** 2).mean().item(), "other": 1.0 + seed / 2}
"""


def test_in_full_all_is_run_and_what_is_unchanged_is_not_run_again(notebook, data, dear):
    full = notebook("all", CLAIM, COUNT, MEASURE)
    assert full["ran"] == [0, 1, 2] and full["found"][2] == {"share": 0.2, "list": [1, 2]}
    assert how(data)["spread"] is None  # nothing was trained
    again = notebook("", CLAIM, COUNT, MEASURE)
    assert again["ran"] == [] and again["found"] == full["found"]
    assert notebook("first", CLAIM, COUNT, MEASURE)["ran"] == [0]
    with pytest.raises(ValueError, match="3 stored results for 5 cases.*make experiments NB="):
        notebook("", CLAIM, COUNT, MEASURE.replace("3", "5"))


def test_what_is_cheap_is_always_run_again(notebook):
    notebook("all", CLAIM, COUNT, MEASURE)
    assert notebook("", CLAIM, COUNT, MEASURE)["ran"] == [0]


@pytest.mark.parametrize("other", ['{"share": 0.5, "list": [1, 2]}', '{"share": 0.0}', '{"share": 0.0, "list": [1]}', "0"])
def test_another_result_says_what_to_run(notebook, other):
    notebook("all", CLAIM, COUNT, MEASURE)
    with pytest.raises(AssertionError, match='C01 shares: the first case now gives another.*make experiments NB="note'):
        notebook("", CLAIM, f"def run(case): return {other}", MEASURE)


def test_the_spread_is_measured_and_bounds_what_is_accepted(notebook, data, monkeypatch):
    full = notebook("all", CLAIM, TRAIN, MEASURE)
    assert full["ran"] == [0, 1, 2, 0, 0, 0]  # the first one three times more, with other last bits
    spread, losses = how(data)["spread"], [found["loss"] for found in full["found"]]
    assert 0 < spread["loss"] < 1e-5 * losses[0] and "other" not in spread
    assert notebook("all", CLAIM, TRAIN, MEASURE)["ran"] == [0, 1, 2]  # nothing changed, so it is what it was
    assert how(data)["spread"] == spread

    def shifted(by):
        return TRAIN.replace(".item()", f".item() + {by!r}")

    monkeypatch.setattr(deciding, "ROUNDING", 0)
    for part, most in [(0, 10 * spread["loss"]), (0.1, 0.1 * float(np.std(losses)))]:
        monkeypatch.setattr(deciding, "PART", part)
        assert notebook("", CLAIM, shifted(0.9 * most), MEASURE)["ran"] == [0]
        with pytest.raises(AssertionError, match="loss is"):
            notebook("", CLAIM, shifted(1.1 * most), MEASURE)


def test_a_dear_first_case_is_run_once_more_and_not_three_times(notebook, monkeypatch):
    monkeypatch.setattr(deciding, "DEAR", -1)  # some clocks go on in steps, and a short run takes 0.0
    assert notebook("all", CLAIM, TRAIN, MEASURE)["ran"] == [0, 1, 2, 0]


def test_what_drifts_as_much_as_it_is_large_is_not_compared(notebook, capsys):
    chaotic = TRAIN.replace('"other"', '"noise": 3e6 * (model(X) ** 2).mean().item() % 1, "other"')
    notebook("all", CLAIM, chaotic, MEASURE)
    said = "changes them too much: noise."
    assert said in capsys.readouterr().out
    notebook("", CLAIM, chaotic.replace("3e6", "5e6"), MEASURE)
    assert said in capsys.readouterr().out
    with pytest.raises(AssertionError, match="other is 3.0 and was 1.0"):
        notebook("", CLAIM, chaotic.replace("1.0 +", "3.0 +"), MEASURE)


def test_a_number_that_is_random_by_design_says_how_far_it_may_go(notebook):
    wide = MEASURE.replace("range(3)", "range(3), within=0.6")
    notebook("all", CLAIM, COUNT, wide)
    notebook("", CLAIM, COUNT.replace("case / 10", "0.5"), wide)
    with pytest.raises(AssertionError, match="share is 0.7"):
        notebook("", CLAIM, COUNT.replace("case / 10", "0.7"), wide)
    notebook("", CLAIM, COUNT.replace("case / 10", "0.7"), wide.replace("0.6", 'float("inf")'))


def test_what_is_only_drawn_is_not_compared(notebook):
    drawn = MEASURE.replace("range(3)", 'range(3), drawn=["list"]')
    notebook("all", CLAIM, COUNT, drawn)
    notebook("", CLAIM, COUNT.replace("[1, 2]", "[1, 3]"), drawn)
    with pytest.raises(AssertionError, match="share is 0.7"):
        notebook("", CLAIM, COUNT.replace("case / 10", "0.7"), drawn)


def test_nothing_is_trained_twice(notebook):
    """Another claim asks for the same case; for its spread too. Of long arrays the middle counts as well."""
    a, b = np.arange(2000.0), np.r_[np.arange(999.0), 0, np.arange(1000.0, 2000)]
    assert [deciding._run(np.sum, case)[0] for case in (a, b)] == [a.sum(), b.sum()]
    more = CLAIM.replace("01", "02"), 'c02.measure("more", run, [0, 5])'
    assert notebook("all", CLAIM, TRAIN, MEASURE, *more)["ran"] == [0, 1, 2, 0, 0, 0, 5]


def test_only_what_is_old_is_renewed_and_only_where_it_agrees(notebook, data, dear):
    notebook("all", CLAIM, COUNT, MEASURE)
    before = how(data)
    assert notebook("renew", CLAIM, COUNT, MEASURE)["ran"] == []
    changed = COUNT.replace("case / 10", "case / 5")
    assert notebook("renew", CLAIM, changed, MEASURE)["ran"] == [0] and how(data)["digest"] != before["digest"]
    assert notebook("", CLAIM, changed, MEASURE)["ran"] == []
    with pytest.raises(AssertionError, match="share is 1.0"):
        notebook("renew", CLAIM, COUNT.replace("case / 10", "1.0"), MEASURE)
    assert notebook("", CLAIM, changed, MEASURE)["ran"] == []


def edit(monkeypatch, module, old, new):
    """From now on the digest finds a module of helpers as if it had been edited."""
    text, real = inspect.getsource(module), digest._module
    assert old in text
    monkeypatch.setattr(digest, "_module", lambda name: (
        ast.parse(text.replace(old, new)).body if f"helpers.{name}" == module.__name__ else real(name)))


def test_the_first_case_runs_again_when_what_it_is_made_with_changes_and_not_otherwise(notebook, dear, monkeypatch):
    cells = ["from helpers import translation, training\nfactor = 2\nunused = 3",
             "def known():\n    with training.seeded(0):\n        return len(translation.lexicon()) * factor",
             COUNT.replace("case / 10", "known()")]
    notebook("all", CLAIM, *cells, MEASURE)

    def runs(claim=CLAIM, cells=cells, last=MEASURE, old="", new=""):
        return notebook("", claim, *[cell.replace(old, new) for cell in cells], last)["ran"] == [0]

    assert not runs()
    assert not runs(claim=CLAIM.replace("somebody", "somebody else"))
    assert not runs(old="unused = 3", new="unused = 4  # a comment")
    assert not runs(old="def known():\n", new="def known( ):\n    'A docstring.'\n\n    # a comment\n")
    assert not runs(last="print()\n" + MEASURE)
    assert runs(old="factor = 2", new="factor = 4 // 2")
    assert runs(cells=[*cells, "factor += 0"])
    assert runs(cells=[*cells, "for factor in [1, 2]: pass"])
    assert runs(last=MEASURE.replace("range(3)", "[0, 1, 2]"))
    edit(monkeypatch, training, "def fit(", "def fit(unused, ")  # known() does not call it
    assert not runs()
    edit(monkeypatch, training, "torch.manual_seed(seed)", "torch.manual_seed(seed)  # a comment")
    assert not runs()
    edit(monkeypatch, training, "torch.manual_seed(seed)", "torch.manual_seed(seed + 0)")
    assert runs()


def test_a_data_file_counts_where_it_is_named(monkeypatch, tmp_path):
    def both():
        return [digest._digest(ast.parse("from helpers import translation").body, {name})
                for name in ("translation.lexicon", "translation.LONGEST")]

    monkeypatch.setattr(digest, "DATA", tmp_path)
    (tmp_path / "translation_lexicon.tsv").write_text("a")
    before = both()
    (tmp_path / "translation_lexicon.tsv").write_text("b")
    assert [a == b for a, b in zip(before, both(), strict=True)] == [False, True]


def test_a_digest_is_the_same_in_every_python():
    source = """
def f(x: int, *, y=1e-3, **more) -> str:
    "said"
    return f"{x!r:>{y}} a" "b" if x is not None else b"c"[-1:] + f"{y=}"
z = [f(i) for i in range(3) if (j := i)]
"""
    assert digest._digest(ast.parse(source).body, {"z"}) == "a638527c6116d55f"  # of Python 3.11


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


def test_a_full_run_says_what_share_each_notebook_took():
    told = experiments.shares({"notebooks/experiments/01_a.ipynb": 30.0, "notebooks/experiments/10_b.ipynb": 90.0})
    assert [line.split() for line in told] == [["1.5", "minutes", "75%", "10_b"], ["0.5", "minutes", "25%", "01_a"]]
    assert experiments.shares({"01_a.ipynb": 0.0})  # where no time is told


def test_a_claim_that_is_taken_out_stays_as_withdrawn_and_keeps_its_number(data, capsys):
    path = data / "claims.json"
    path.write_text(json.dumps([ENTRY | {"id": "C998", "claim": "the moon is green"}, ENTRY]))  # the course has no C998
    (data / "new").mkdir()
    experiments.collect(data / "new", path)
    experiments.collect(data / "new", path)
    assert [(id, "withdrawn" in e) for id, e in claims.register(path).items()] == [("C01", False), ("C998", True)]
    claims.what_people_say("01")
    said = capsys.readouterr().out
    assert "C01" in said and "green" not in said
    claims.what_people_say("01", later=["C01"])  # a question further down asks for it
    said = capsys.readouterr().out
    assert "C01" in said and "guess first" in said and ENTRY["verdict"] not in said
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


@pytest.mark.parametrize("field", claims.FIELDS)
def test_no_field_may_be_empty(data, field):
    (data / "claims.json").write_text(json.dumps([ENTRY | {field: " "}]))
    with pytest.raises(ValueError, match=f"no {field}|none|begins with"):
        claims.register()


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


def test_a_verdict_is_one_of_five(data):
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


def test_where_only_words_changed_the_entry_is_written_anew(data, monkeypatch):
    monkeypatch.setenv(deciding.ENTRIES, str(data))
    claim().decide(**FOUND | {"reach": "elsewhere"})
    assert json.loads((data / "C01.json").read_text())["reach"] == "elsewhere"


def test_every_entry_tells_its_reader_all():
    entries = [entry for entry in claims.register().values() if "withdrawn" not in entry]
    assert [e["id"] for e in entries if set(claims.FOR_READERS) - e.keys()] == []
    assert [e["id"] for e in entries if e["source"].startswith(("most ", "a common ", "every ", "introductions"))] == []


def test_what_was_rounded_may_move_by_one_in_its_last_place_and_a_list_by_its_largest_spread():
    results = [{"share": [0.967, 0.865], "other": 0.7764, "whole": 3}] * 2
    known = {"spread": {"share / 1": 0.004}}
    allowed = {place: most for place, (_, most) in deciding._allowed(results, known, None).items()}
    assert 0.04 < allowed["share / 1"] < allowed["share / 0"] < 0.043  # the first one's own spread was 0, by chance
    assert 8e-4 < allowed["other"] < 9e-4
    assert allowed["whole"] < 0.0031
    seeds = deciding._allowed([{"seeds": [-3.5, -1.5], "one": 0.5}], {"spread": {"seeds / 0": 1e-4}}, None)
    assert 0.1 < seeds["seeds / 0"][1] < 0.11 and seeds["one"][1] < 0.002  # by a tenth of what the seeds of a case differ by
    free = deciding._allowed([{"seeds": [0.2, 3.0]}], {"spread": {"seeds / 1": 0.03}}, None)
    assert free["seeds / 0"][1] is None and free["seeds / 1"][1] < 0.5  # the first might be 0, and nobody would notice
    assert deciding._told(["a / 0", *(f"b / {i}" for i in range(4))]) == "a / 0, 4 numbers of b"
    bare = deciding._allowed([[0.5, 0.25]], {"spread": {"0": 0.01}}, None)
    assert bare["1"][1] < 0.01 < 0.1 < bare["0"][1]  # the numbers of a bare list are different things
