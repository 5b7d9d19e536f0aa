"""Lesson 05: a random result is judged by its size, not by the order of its draws; training without a bar of its own."""

import numpy as np
import pytest
from notebook_code import judge, passes

from helpers.checks import exercise


@pytest.mark.parametrize("attempt", [
    lambda d_k, n, rng: np.var([rng.normal(size=d_k) @ rng.normal(size=d_k) for _ in range(n)]),
    lambda d_k, n, rng: np.einsum("dn,dn->n", rng.standard_normal((d_k, n)), rng.normal(0, 1, (d_k, n))).var(ddof=1),
    lambda d_k, n, rng: float(np.mean((rng.normal(size=(2, n, d_k)).prod(axis=0)).sum(axis=1) ** 2)),
], ids=["one at a time", "transposed, n - 1", "both at once, mean square"])
def test_draws_may_come_in_any_order(attempt):
    passes("score_variance", attempt, seeds=1)


def test_a_result_that_ignores_the_generator_is_told():
    def attempt(d_k, n, rng):
        return (np.random.default_rng(0).normal(size=(n, d_k)) * np.random.default_rng(1).normal(size=(n, d_k))).sum(1).var()

    assert judge("score_variance", attempt).misconception == "generator-not-used"


def test_the_wider_generator_is_told_as_one():
    """And not by its address."""
    message = judge("score_variance", lambda d_k, n, rng: d_k).message
    assert "rng a generator" in message and "0x" not in message


def test_signs_are_told_to_be_another_distribution():
    def attempt(d_k, n, rng):
        return (rng.choice([-1, 1], (n, d_k)) * rng.choice([-1, 1], (n, d_k))).sum(axis=1).var()

    assert "no other distribution" in judge("score_variance", attempt).message
    assert "twice as large" in judge("score_variance", attempt).message


@pytest.mark.parametrize("form", [list, np.array])
def test_dot_products_drawn_one_at_a_time_are_named(form):
    def attempt(d_k, n, rng):
        return form([rng.normal(size=d_k) @ rng.normal(size=d_k) for _ in range(n)])

    assert "np.var" in judge("score_variance", attempt).message


@pytest.mark.parametrize("softmax, named", [
    (lambda s: np.exp(s) / np.exp(s).sum(-1), "no-keepdims-and-no-max"),
    (lambda s: np.exp(s - s.max(-1)) / np.exp(s - s.max(-1)).sum(-1), "no-keepdims-twice"),
    (lambda s: np.exp(s - s.max()) / np.exp(s - s.max()).sum(-1), "no-keepdims"),
])
def test_a_sum_that_loses_its_axis_is_named(softmax, named):
    def attempt(Q, K, V):
        weights = softmax(Q @ np.swapaxes(K, -1, -2) / np.sqrt(Q.shape[-1]))
        return weights @ V, weights

    assert judge("scaled_dot_product_attention", attempt).misconception.startswith(named)


@pytest.mark.parametrize(("name", "most"), [("qkv_attention", 0.85), ("scaled_dot_product_attention", 0.9)])
def test_the_inputs_of_the_attention_checkers_never_saturate_the_softmax(name, most):
    """Saturated inputs would accept no scaling, wrong scaling and hard argmax alike."""
    found = exercise(name)
    for probe in found.probes:
        drawn = [found.reference(*probe.make(np.random.default_rng(seed)))[1] for seed in range(20)]
        if drawn[0].shape[-1] > 1 and not probe.extreme:  # with one key its weight is 1 by right
            assert np.mean([weights.max(axis=-1).mean() for weights in drawn]) < most, probe.name


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
