"""Every checker: its reference passes, and small faults put into the reference are rejected."""

import collections

import numpy as np
import pytest
from mutants import SECONDS, survivors
from sentences import refusal

from helpers.checks import INDEX, exercise
from helpers.checks.core import evaluate

ALL = sorted(INDEX)

# Mutants that compute the same as the reference: (exercise, piece of the fault or of its text, why it is the same).
EQUIVALENT = [
    ("cosine_similarity", "np.where(lengths == 0, 2, lengths)", "0 divided by 2 is 0, as is 0 divided by 1"),
    ("masked_attention", "np.where(nothing, 1.0, scores)", "a stand-in for a row that is set to 0 afterwards"),
    ("ablate_head", ": head_outputs.shape[1]", "the number of heads is only used to refuse one that does not exist"),
    ("decode_step", ": q, axis -2", "there is one new token: its axis has length 1"),
    ("decode_step", ": k, axis -2", "there is one new token: its axis has length 1"),
    ("decode_step", ": v, axis -2", "there is one new token: its axis has length 1"),
    ("dequantise", "dim=1", "codes have two axes, and the last is axis 1"),
    ("cached_attention", "1: k.shape[1]", "the number of groups is only used to refuse one that does not divide h"),
    ("nucleus", "if p == 0", "p = 1 is a short cut: the sum keeps all words but those lost in rounding"),
    ("nucleus", "if p == 2", "the same"),
    ("induction_score", "T = weights.shape[1]", "the weights of a head are square"),
    ("induction_score", "T = weights.shape[-2]", "the weights of a head are square"),
    ("special_share", "mean(axis=1)", "of two axes this is the last"),
    ("induction_score", "mean(dim=1)", "of two axes this is the last"),
    ("advantages", "dim=1", "rewards have two axes, and the last is axis 1"),
    ("wilson_interval", "constant 2.0: 1.0", "no interval ends above 1 but by rounding"),
]


def equivalent(name):
    return lambda mutant: any(name == n and text in str(mutant) for n, text, _ in EQUIVALENT)


@pytest.mark.parametrize("name", ALL)
def test_exercise_is_complete(name):
    found = exercise(name)
    ids = [m.id for m in found.misconceptions]
    assert found.name == name
    assert len(ids) >= 5, f"{name} needs at least five misconceptions"
    assert len(set(ids)) == len(ids)
    assert all(len(m.hint) > 30 for m in found.misconceptions)
    assert all(len(p.hint) > 30 for p in found.probes)


@pytest.mark.parametrize("name", ALL)
def test_reference_passes(name, pytestconfig):
    for seed in range(50 if pytestconfig.getoption("weekly", False) else 2):
        outcome = evaluate(exercise(name), exercise(name).reference, seed=seed, more=True)
        assert outcome, outcome.message
        assert "\n" not in outcome.message, outcome.message


@pytest.mark.parametrize("name", [name for name in ALL if exercise(name).contracts])
def test_a_callers_mistake_is_told_in_one_sentence(name):
    for contract in exercise(name).contracts:
        refusal(ValueError, exercise(name).reference, *contract.make(np.random.default_rng(0)))


@pytest.mark.slow
@pytest.mark.parametrize("each", [40, pytest.param(1, marks=pytest.mark.weekly)],
                         ids=["a fortieth", "all"])
def test_mutants_are_rejected(record_property, each):
    """Says the kill rate of all checkers together, which conftest.py prints at the end of the run."""
    ended, alive, too_long = 0, [], collections.Counter()
    for name in ALL:
        tried, survived, endless = survivors(exercise(name), equivalent(name), each)
        ended += len(tried) - len(endless)
        alive += [f"{name}: {mutant}" for mutant in survived]
        too_long[name] += len(endless)
    record_property("say", f"mutation kill rate {1 - len(alive) / ended:.1%} of {ended} mutants of {len(ALL)} references "
                           f"({len(EQUIVALENT)} kinds that compute the same are listed apart); {too_long.total()} more did "
                           f"not end within {SECONDS:g} seconds of computing and count as neither: {dict(+too_long)}")
    assert ended > 50 / each * len(ALL)
    assert not alive, ("mutants that pass the checker (add a probe; one that computes the same as the reference goes into "
                       "EQUIVALENT):\n" + "\n\n".join(alive))
