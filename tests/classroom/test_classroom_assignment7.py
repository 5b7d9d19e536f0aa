"""Assignment 7 in a class: a sealed circuit for each, forecasts that earn a share, what is handed in instead, attacks."""

import functools
import json
from dataclasses import replace

import pytest
from submissions import cell, data, needs_sandbox, written

from classroom import assignment, batch, grading, marks, reports, tasks, variants
from classroom.grading import grade_one
from classroom.names import name_for_people
from classroom.sandbox import Limits
from classroom.tasks import assignment7
from helpers import sealed
from helpers.sealed import forecasts

NAME = "assignment7"
POINTS = {"rule": 3, "find": 4, "cut": 5, "move": 5, "order": 5}
DETAILS = {"rule": "b", "seed": "one of the tests"}
NEIGHBOUR = {"rule": "b", "seed": "another of the tests"}
KINDS = ("right", "even", "mistakes", "styles", "hostile")


@functools.cache
def cases():
    """What is handed in: for each of KINDS functions, a cell in front, the share of each part's points (None where it
    cannot be judged), a word of each message."""
    asked = assignment7.sheet(**DETAILS)[1]
    right = {part: f"def {part}():\n    return {[list(question.shares) for question in asked[part]]!r}" for part in POINTS}
    even = {part: f"def {part}():\n    return {[[1 / len(q.options)] * len(q.options) for q in asked[part]]!r}"
            for part in POINTS}
    turned = [1 - question.shares[0] for question in asked["cut"]]
    per_cent = [[100 * share for share in question.shares] for question in asked["find"]]
    theirs = [list(question.shares) for question in assignment7.sheet(**NEIGHBOUR)[1]["order"]]
    found = {
        "right": (right, "", dict.fromkeys(POINTS, 1), "worth 100%"),
        "even": (even, "", dict.fromkeys(POINTS, 0), "worth 0%"),
        "mistakes": ({**right, "cut": f"def cut():\n    return {turned}", "find": f"def find():\n    return {per_cent}",
                      "order": f"def order():\n    return {theirs}", "move": "def move():\n    return [0.5] * 7",
                      "rule": "def rule():\n    return 1 / 0"}, "",
                     {"rule": 0, "find": 0, "cut": 0, "move": 0, "order": None}, ""),
        "styles": ({}, """
import numpy as np
import torch
class Rule:
    def __call__(self): return tuple(torch.tensor(x) for x in MINE[0])
rule = Rule()
find = lambda: np.array(MINE[1])
def cut(noisy=True):
    print('hello')
    return torch.tensor([x[0] for x in MINE[2]])
def move(): return [[round(y, 3) for y in x] for x in MINE[3]]
def order(): return iter(MINE[4]) and MINE[4]
""", dict.fromkeys(POINTS, 1), ""),
        "hostile": ({"rule": "def rule():\n    while True: pass", "find": "def find():\n    import os; os._exit(0)",
                     "cut": "def cut():\n    import numpy as np; return np.broadcast_to(1.0, 10**9)",
                     "move": "class Yes(float):\n    def __sub__(self, o): return 0.0\n    __rsub__ = __pow__ = __sub__\n"
                             "def move():\n    return [Yes('nan')] * 8",
                     "order": "def order():\n    x = []; x.append(x); return x"}, """
from helpers.sealed import forecasts
import helpers.checks.core as core
forecasts.points = lambda *a: 1.0
forecasts.Question.shares = property(lambda self: self.options)
core.evaluate = lambda *a, **k: core.Outcome('all', 'passed', None, '')
""", {"rule": None, "find": None, "cut": 0, "move": 0, "order": 0}, ""),
    }
    found["styles"] = (found["styles"][0], f"MINE = {[[list(q.shares) for q in asked[part]] for part in POINTS]!r}"
                       + found["styles"][1], *found["styles"][2:])
    return found


def handed_in(functions, first=""):
    """A submission of this variant without what takes time and does not count."""
    raw = assignment.strip(assignment.source(NAME))
    raw["cells"] = [c for c in written(raw, functions)["cells"] if c["id"] not in ("model", "look", "imports")]
    raw["cells"][1:1] = [cell(first)] if first else []
    return data(raw)


@pytest.fixture(scope="module")
def graded():
    everybody = [DETAILS, NEIGHBOUR]
    task = replace(assignment.load(NAME), limits=Limits(cell_seconds=5, call_seconds=1),
                   details=dict.fromkeys(POINTS, DETAILS), given=dict.fromkeys(POINTS, everybody))
    return {name: grade_one(handed_in(*case[:2]), task) for name, case in cases().items()}


@pytest.mark.slow
@needs_sandbox
@pytest.mark.parametrize("name", KINDS)
def test_forecasts_earn_their_share(graded, name):
    found = {test["function"]: test for test in graded[name]["tests"]}
    for part, share in cases()[name][2].items():
        if share is not None:
            assert found[part]["points"] == pytest.approx(share * POINTS[part], abs=0.02), found[part]
        assert cases()[name][3] in found[part]["message"]


@pytest.mark.slow
@needs_sandbox
def test_what_is_wrong_is_named_and_what_is_a_neighbours_is_told(graded):
    found = {test["function"]: test for test in graded["mistakes"]["tests"]}
    assert found["cut"]["misconception"] == "turned-around" and "of the other option" in found["cut"]["message"]
    assert found["find"]["misconception"] == "per-cent" and "in per cent" in found["find"]["message"]
    assert found["rule"]["status"] == "error" and "ZeroDivisionError" in found["rule"]["message"]
    assert "each of the 8 questions" in found["move"]["message"]
    assert found["order"]["points"] < 0.6 * POINTS["order"], "another twin of the same rule"
    page = reports.student_page({"student": "Ada", "file": ""} | graded["mistakes"] | {"key": "a", "found": []},
                                marks.grade_of(graded["mistakes"] | {"key": "a"}, {}), "A circuit")
    assert "(partly)" in page and page.count("measured 0.") > 8 and "(wrong)" in page
    assert graded["mistakes"]["right_for"] == {"order": NEIGHBOUR}
    hostile = {test["function"]: test["status"] for test in graded["hostile"]["tests"]}
    assert hostile["rule"] == "time limit" and hostile["find"] == "crashed"


@pytest.mark.slow
@needs_sandbox
def test_who_computes_in_the_notebook_gets_the_points():
    """The model's cell is the longest of the course: it runs, for a function that measures and for a cell that does."""
    measure = """
def still_right(heads, turns, n=100):
    ids = sealed.texts(400, seed=8)
    said = model(ids)[:, -1].argmax(-1)  # the model makes no mistake, so this is the right name
    turned = ids[:, -2] == sealed.VOCABULARY[ADVERB]
    ids, said = ids[turned == turns][:n], said[turned == turns][:n]
    def edit(layer, z):
        z[:, [head for at, head in heads if at == layer]] = 0
        return z
    return (inside.trace(model, ids, edit=edit, weights=False).logits[:, -1].argmax(-1) == said).float().mean().item()
"""
    adverb = sealed.deal("practice", "practice")[1].adverb
    raw = assignment.strip(assignment.source(NAME))
    written(raw, {"cut": "def cut():\n    return [still_right(*question) for question in cut_questions]",
                  "rule": "def rule():\n    return my_rule"})
    own = cell("first = still_right(*cut_questions[0])\n"
               f"my_rule = {[list(q.shares) for q in assignment7.sheet('practice', 'practice')[1]['rule']]!r}\n")
    at = next(i for i, c in enumerate(raw["cells"]) if c["id"] == "questions-cut")
    raw["cells"][at + 1:at + 1] = [cell(f"ADVERB = {sealed.VOCABULARY.words[adverb]!r}" + measure), own]
    found = {test["function"]: test for test in grade_one(data(raw), assignment.load(NAME))["tests"]}
    assert found["cut"]["points"] > 4.7 and found["rule"]["points"] == 3, found


def test_a_stub_is_not_started_and_a_share_counts_in_nbgrader():
    def cut():
        raise NotImplementedError()
    assert tasks.judge(cut, NAME).status == "not started"

    def move():
        return [0.9] * 8
    shares = [q.shares[0] for q in assignment7.sheet("practice", "practice")[1]["move"]]
    by_hand = 1 - sum((0.9 - q) ** 2 for q in shares) / sum((0.5 - q) ** 2 for q in shares)
    assert tasks.judge(move, NAME).share == pytest.approx(max(0, by_hand))


def test_a_slip_in_one_row_costs_that_question_alone_and_is_told():
    asked = assignment7.sheet("practice", "practice")[1]
    right = {part: [list(question.shares) for question in asked[part]] for part in POINTS}
    judged = {part: task.exercise.outcome for part, task in assignment7.TASKS.items()}
    high = [[1.1 * share if max(row) < 0.9 else share for share in row] for row in right["find"]]
    assert high != right["find"] and judged["find"](high).share == pytest.approx(1)
    order = judged["order"]([[0.5] * 6, *right["order"][1:]])
    assert 0.5 < order.share < 1 and "Question 1 asks for 6 shares" in order.message and "Question 2" not in order.message
    cut = judged["cut"]([1.6, *(row[0] for row in right["cut"][1:])])
    assert 0.5 < cut.share < 1 and not cut.misconception and "Question 1 asks for one share" in cut.message
    assert order.status == "partly" and "1. where the adverb" in order.detail and "answered no forecast\n" in order.detail
    assert f"2. {forecasts.in_words(asked['cut'][1].asks)}\n   answered {right['cut'][1][0]:.2f}\n   measured " in cut.detail
    assert "answered no forecast\n   measured " + f"{right['cut'][0][0]:.2f}\n" in cut.detail
    none = judged["find"]([[0.5] * 8] * 6)
    assert none.share == 0 and "Question 6 asks for 8 shares" in none.message


@pytest.mark.slow
def test_everybody_gets_one_model_for_all_tasks_which_follows_from_the_key(tmp_path):
    names = [f"Student {number}" for number in range(17)]
    listed = variants.read(variants.release(NAME, tmp_path, "autumn", names[:1]))
    again = variants.Variants(NAME, "autumn", listed.key)
    other = variants.Variants(NAME, "autumn", "00" * 16)
    seen, rules = set(), []
    for name in names:
        mine = again.details[again.give(name)]
        assert len({str(details) for details in mine.values()}) == 1 and set(mine) == set(POINTS)
        assert mine != other.details[other.give(name)]
        seen.add(mine["rule"]["seed"])
        rules.append(mine["rule"]["rule"])
    assert len(seen) == 17 and min(map(len, seen)) >= 32, "too long to try all"
    assert set(rules) == set(sealed.RULES) - {"practice"}
    assert max(map(rules.count, rules)) - min(map(rules.count, rules)) <= 1
    assert again.details.items() >= listed.details.items()
    handout = (tmp_path / NAME / name_for_people(names[0]) / f"{NAME}.ipynb").read_text(encoding="utf-8")
    mine = listed.details[listed.students[names[0]]]["rule"]
    assert mine["seed"] not in handout and "the_cut = [" not in handout and "details=" not in handout
    raw = json.loads(handout)
    space = {}
    for c in raw["cells"]:
        if c["cell_type"] == "code" and c["id"] in ("imports", "model", "questions-cut", "questions-order"):
            exec("".join(c["source"]), space)
    packed, asked = assignment7.sheet(**mine)
    assert sealed.pack(space["model"]) == packed
    assert [tuple(heads) for heads, _ in space["cut_questions"]] == [q.asks.heads for q in asked["cut"]]
    assert [forecasts.Step(tuple(x[0]), *x[1:]) for x in space["order_questions"]] == [q.asks for q in asked["order"]]


def listed_sheets(given):
    return {code: {part: [list(row[2]) for row in sheet] for part, sheet in sheets.items()}
            for code, sheets in json.loads(json.dumps(given.sheets)).items()}


@pytest.mark.slow
def test_the_list_holds_the_sheets_so_that_no_grade_waits_for_one(tmp_path, monkeypatch):
    path = variants.release(NAME, tmp_path, "autumn", ["Ada", "Ben"])
    given = variants.read(path)
    assert set(given.sheets) == {"", *given.students.values()}
    shares, code = listed_sheets(given), given.students["Ada"]
    assert shares[""]["cut"] == [list(q.shares) for q in assignment7.sheet("practice", "practice")[1]["cut"]]

    def too_late(*_):
        raise AssertionError("a sheet is computed while somebody is graded")
    monkeypatch.setattr(assignment7, "sheet", too_late)
    task = replace(assignment.load(NAME), details=given.details[code], given=given.given())
    answers = {"rule": shares[code]["rule"], "find": shares[""]["find"], "cut": [[0.5, 0.5]] * 8,
               "move": shares[given.students["Ben"]]["move"], "order": shares[code]["order"]}
    functions = {part: f"def {part}():\n    return {rows!r}" for part, rows in answers.items()}
    monkeypatch.setattr(batch, "grade_one", grade_one)
    result = batch._job(NAME, handed_in(functions), (), given.details[code], trusted=True, limits=Limits(), secret="",
                        given=task.given)
    assert result["status"] == "graded" and [t["points"] for t in result["tests"]][::2] == [3, 0, 5]
    assert result["right_for"] == {"find": assignment7.TASKS["find"].family.own,
                                   "move": given.details[given.students["Ben"]]["move"]}

    raw = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**raw, "sheets": {code: {"cut": [[1, 2]]}}}), encoding="utf-8")
    with pytest.raises(variants.VariantError, match="not a list of variants"):
        variants.read(path)
    del raw["sheets"]
    path.write_text(json.dumps(raw), encoding="utf-8")
    monkeypatch.undo()
    earlier = variants.read(path)
    assert not earlier.sheets and earlier.details == given.details
    (tmp_path / "in" / "Ada").mkdir(parents=True)
    (tmp_path / "in" / "Ada" / "w.ipynb").write_bytes(handed_in(functions).replace(b'"variant": ""', b'"variant": "x"'))
    seen, task = [], assignment.load(NAME)
    monkeypatch.setattr(batch, "_run", lambda todo, name, keep, workers, options, progress: (
        keep(todo[0][0], grading.failed(task, "crashed", "It was not run.")), seen.append(options["given"])))
    batch.grade(NAME, tmp_path / "in", tmp_path / "out", trusted=True, given=earlier, progress=False)
    assert seen == [given.given()], "a list of an earlier version: its sheets are computed before anybody is graded"


@pytest.mark.parametrize("check", ["slow", "memory", "judged", "error"])
def test_saying_whose_answer_it_is_never_costs_a_grade(monkeypatch, check):
    def whose(details):
        if details["seed"] == "b":
            while check == "slow":
                pass
            raise {"memory": MemoryError(), "judged": grading.NotJudged("crashed", ""), "error": KeyError()}[check]
        return details["seed"] == "c"
    monkeypatch.setattr(grading, "OTHERS_SECONDS", 0.1)
    task = assignment.load(NAME)
    first, second = task.tests[:2]
    given = [{"rule": "a", "seed": seed, "sheet": []} for seed in "abc"]
    task = replace(task, details={"rule": given[0], "find": given[0]}, given={"rule": [given[2]], "find": given})
    assert grading._right_for_others(task, [(first, whose), (second, whose)]) == {"rule": {"rule": "a", "seed": "c"}}
