"""The checkers: references pass, misconceptions are named, mutants are rejected, odd attempts are survived."""

import time
import warnings

import numpy as np
import pytest
from mutants import mutants

from helpers import checks
from helpers.checks import INDEX, check, exercise
from helpers.checks.core import evaluate

ALL = sorted(INDEX)
CASES = [(name, m) for name in ALL for m in exercise(name).misconceptions]

# Mutants that compute the same as the reference: (exercise, text of the mutant, why it is the same).
EQUIVALENT = [
    ("cosine_similarity", "np.where(lengths == 0, 2, lengths)", "0 divided by 2 is 0, as is 0 divided by 1"),
    ("masked_attention", "np.where(nothing, 1.0, scores)", "a stand-in for a row that is set to 0 afterwards"),
]


def equivalent(name, source):
    return any(name == n and text in source for n, text, _ in EQUIVALENT)


@pytest.mark.parametrize("name", ALL)
def test_reference_passes_on_many_seeds(name):
    for seed in range(25):
        outcome = evaluate(exercise(name), exercise(name).reference, seed=seed)
        assert outcome, outcome.message


@pytest.mark.parametrize("name", ALL)
def test_exercise_is_complete(name):
    found = exercise(name)
    ids = [m.id for m in found.misconceptions]
    assert found.name == name
    assert len(ids) >= 5, f"{name} needs at least five misconceptions"
    assert len(set(ids)) == len(ids)
    assert all(len(m.hint) > 30 for m in found.misconceptions)
    assert all(len(p.hint) > 30 for p in found.probes)


@pytest.mark.parametrize(("name", "misconception"), CASES, ids=[f"{n}-{m.id}" for n, m in CASES])
def test_misconception_is_named_as_itself(name, misconception):
    for seed in range(10):
        outcome = evaluate(exercise(name), misconception.function, seed=seed)
        assert (outcome.status, outcome.misconception) == ("wrong", misconception.id), (seed, outcome)
        assert misconception.hint in outcome.message


def test_mutants_are_rejected(record_property):
    """Says the kill rate of all checkers together, which conftest.py prints at the end of the run."""
    tried, alive = 0, []
    for name in ALL:
        found = exercise(name)
        for fault, mutant, source in mutants(found.reference):
            if equivalent(name, source):
                continue
            tried += 1
            if evaluate(found, mutant, seconds=0.5):
                alive.append(f"{name}: {fault}\n{source}")
    rate = 1 - len(alive) / tried
    record_property("say", f"mutation kill rate {rate:.1%} of {tried} mutants of {len(ALL)} references "
                           f"({len(EQUIVALENT)} that compute the same are listed apart)")
    assert not alive, "mutants that pass the checker:\n" + "\n\n".join(alive)


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def judge(attempt, name="softmax", **options):
    return evaluate(exercise(name), attempt, **options)


def test_stubs_are_not_started():
    def dots(x): ...

    def documented(x):
        """Say what it does."""
        ...

    def passing(x):
        pass

    def raising(x):
        raise NotImplementedError

    for stub in (dots, documented, passing, raising):
        outcome = judge(stub)
        assert outcome.status == "not started"
        assert not outcome


def test_a_short_attempt_is_not_taken_for_a_stub():
    assert judge(lambda x: x).status == "wrong"
    assert judge(lambda x: 1).status == "wrong"


def test_float32_lists_and_torch_tensors_are_accepted():
    torch = pytest.importorskip("torch")
    assert judge(lambda x: softmax(x).astype(np.float32))
    assert judge(lambda x: softmax(x).tolist())
    assert judge(lambda x: torch.softmax(torch.tensor(x, dtype=torch.float32, requires_grad=True), -1))


def test_numpy_integers_are_accepted_as_an_index_and_floats_are_not():
    right = exercise("analogy").reference
    assert judge(lambda *args: np.int32(right(*args)), "analogy")
    outcome = judge(lambda *args: float(right(*args)), "analogy")
    assert outcome.status == "wrong"
    assert "whole numbers" in outcome.message


def test_a_forgotten_return_is_named():
    def attempt(x):
        e = np.exp(x)
        e / e.sum()

    outcome = judge(attempt)
    assert (outcome.status, outcome.misconception) == ("wrong", "no-return")
    assert "return" in outcome.message


def test_a_crash_shows_the_line():
    def attempt(x):
        shifted = x - x.max(axis=7)
        return shifted

    outcome = judge(attempt)
    assert outcome.status == "error"
    assert "AxisError" in outcome.message
    assert "shifted = x - x.max(axis=7)" in outcome.message


def test_endless_loops_end():
    def stubborn(x):
        while True:
            try:
                x = x + 1
            except BaseException:
                pass

    start = time.perf_counter()
    outcome = judge(stubborn, seconds=0.3)
    assert outcome.status == "error"
    assert "never ends" in outcome.message
    assert time.perf_counter() - start < 20


def test_the_time_limit_leaves_nothing_behind():
    for _ in range(200):
        assert judge(softmax, seconds=0.5)


def test_changed_inputs_are_told():
    def attempt(x):
        x -= x.max(axis=-1, keepdims=True)
        return softmax(x)

    outcome = judge(attempt)
    assert (outcome.status, outcome.misconception) == ("wrong", "changes-input")


def test_a_wrong_signature_is_told():
    outcome = judge(lambda x, axis: x)
    assert outcome.status == "error"
    assert "(x)" in outcome.message and "(x, axis)" in outcome.message


def test_two_faults_at_once_still_name_the_first():
    """Wrong axis and overflow together: the axis is named."""
    outcome = judge(lambda x: np.exp(x) / np.exp(x).sum(axis=0))
    assert outcome.misconception == "columns-sum-to-1"


def test_strange_results_are_described():
    for value, words in (("text", "str"), (object(), "object"), ({}, "dict"), ((1, 2), "shape")):
        outcome = judge(lambda x, value=value: value)
        assert outcome.status == "wrong", outcome
        assert words in outcome.message, outcome.message
    assert judge(lambda X, Y: (X @ Y.T).astype(str), "cosine_similarity").misconception is None
    outcome = judge(lambda x: (yield x))
    assert "generator" in outcome.message
    outcome = judge(lambda x: softmax(x) if x.ndim == 1 else None)
    assert "is None" in outcome.message
    outcome = judge(lambda x: softmax(x).astype(complex))
    assert "real numbers" in outcome.message
    outcome = judge(lambda x: softmax(x) * np.nan)
    assert "nan" in outcome.message


def test_warnings_and_prints_of_an_attempt_stay_silent(capsys):
    def attempt(x):
        print("noise")
        warnings.warn("noise", stacklevel=1)
        return np.log(-np.abs(x))

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        judge(attempt)
    assert not caught
    assert capsys.readouterr().out == ""


def test_prints_of_a_failing_call_are_shown():
    def attempt(x):
        print("the shape is", x.shape)
        return -x

    assert "It printed: the shape is (3,)" in judge(attempt).message


def test_leaving_the_interpreter_is_an_error_like_any_other():
    assert judge(lambda x: __import__("sys").exit()).status == "error"


def test_a_helper_of_the_learner_that_returns_nothing_yet_is_guessed():
    unfinished = None
    assert "return nothing yet" in judge(lambda X: unfinished @ X, "self_attention").message


def test_contracts_are_told_but_do_not_fail():
    outcome = judge(lambda q, V, k: exercise("nearest_neighbours").reference(q, V, min(max(k, 1), len(V))),
                    "nearest_neighbours")
    assert outcome
    assert "ValueError" in outcome.message
    assert "ValueError" not in judge(exercise("nearest_neighbours").reference, "nearest_neighbours").message


def test_check_shows_and_records(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("ATTENTION_COURSE_PROGRESS", str(tmp_path / "progress.json"))
    assert check(softmax)
    assert "Passed" in capsys.readouterr().out
    assert not check(lambda x: x, "softmax")
    checks.show_progress()
    out = capsys.readouterr().out
    assert "✓ softmax" in out and "· self_attention" in out and "1 of 3" in out


def test_unknown_names_suggest_the_closest():
    with pytest.raises(KeyError, match="softmax"):
        check(softmax, "sofmax")
    assert str(pytest.raises(KeyError, check, softmax, "sofmax").value).startswith("There is no exercise")
    with pytest.raises(KeyError, match="another name"):
        check(lambda x: x)
    with pytest.raises(TypeError, match="without calling it"):
        check(np.ones(3))


def test_usual_mistakes_lists_every_hint(capsys):
    checks.usual_mistakes("softmax")
    out = capsys.readouterr().out
    assert all(m.hint in out for m in exercise("softmax").misconceptions)


@pytest.mark.parametrize(("name", "attempt", "words"), [
    ("split_heads", lambda X, n: X.reshape(*X.shape[:2], n, X.shape[2] / n), "with //"),
    ("softmax", lambda x: np.exp(x) / np.exp(x).sum(axis=3), "axis=-1"),
    ("softmax", lambda x: (x, x).shape, "Take the one you need"),
    ("nearest_neighbours", lambda q, V, k: [1] if V else [0], "is not None"),
])
def test_common_errors_get_a_nudge(name, attempt, words):
    outcome = judge(attempt, name)
    assert outcome.status == "error"
    assert words in outcome.message
