"""Lesson 05: a random result is judged by its size, not by the order of its draws; training without a bar of its own."""

import numpy as np
import pytest

from helpers.checks import exercise
from helpers.checks.core import evaluate


def judge(attempt):
    return evaluate(exercise("score_variance"), attempt)


@pytest.mark.parametrize("attempt", [
    lambda d_k, n, rng: np.var([rng.normal(size=d_k) @ rng.normal(size=d_k) for _ in range(n)]),
    lambda d_k, n, rng: np.einsum("dn,dn->n", rng.standard_normal((d_k, n)), rng.normal(0, 1, (d_k, n))).var(ddof=1),
    lambda d_k, n, rng: float(np.mean((rng.normal(size=(2, n, d_k)).prod(axis=0)).sum(axis=1) ** 2)),
], ids=["one at a time", "transposed, n - 1", "both at once, mean square"])
def test_draws_may_come_in_any_order(attempt):
    assert judge(attempt), judge(attempt).message


def test_a_result_that_ignores_the_generator_is_told():
    def attempt(d_k, n, rng):
        return (np.random.default_rng(0).normal(size=(n, d_k)) * np.random.default_rng(1).normal(size=(n, d_k))).sum(1).var()

    assert judge(attempt).misconception == "generator-not-used"


def test_the_inputs_of_the_attention_checker_never_saturate_the_softmax():
    """Saturated inputs would accept no scaling, wrong scaling and hard argmax alike."""
    found = exercise("scaled_dot_product_attention")
    for probe in found.probes:
        drawn = [found.reference(*probe.make(np.random.default_rng(seed)))[1] for seed in range(20)]
        if drawn[0].shape[-1] > 1:  # with one key its weight is 1 by right
            assert np.mean([weights.max(axis=-1).mean() for weights in drawn]) < 0.9, probe.name


def test_fit_without_a_bar(monkeypatch, capsys):
    monkeypatch.setenv("ATTENTION_COURSE_PROGRESS", "")
    torch = pytest.importorskip("torch")
    from helpers import training

    model = torch.nn.Linear(2, 1)
    history = training.fit(model, lambda g: (torch.randn(4, 2, generator=g),), lambda m, x: m(x).pow(2).mean(), 3,
                           label=None)
    assert len(history) == 3
    assert "training" not in capsys.readouterr().err
    assert list(training.bar([1, 2], "series")) == [1, 2]
