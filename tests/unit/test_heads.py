"""Scores of heads, and where a head rests, on weights that are known."""

import numpy as np

from helpers import heads
from helpers.minilm import Reading


def reading(text, weights=None):
    """A reading in which all heads have the same weights, (T, T), and values as long as their place, counted from 1."""
    tokens = ["[CLS]", *text.split(), "[SEP]"]
    T = len(tokens)
    weights = np.full((T, T), 1 / T) if weights is None else np.array(weights, dtype=float)
    values = np.arange(1, T + 1)[:, None] * np.array([0.6, 0.8])  # (T, 2)
    return Reading(tokens, None, np.tile(weights, (6, 12, 1, 1)), values=np.tile(values, (6, 12, 1, 1)))


def scores(reading):
    size = len(reading.tokens)
    return {"same word": np.full((6, 12), size), "special tokens": np.zeros((6, 12)), "mine": np.eye(6, 12)}


def test_scores_are_averaged_over_the_readings():
    mean = heads.mean_scores(scores, [reading("a b"), reading("a b c d")])
    assert [*mean] == ["same word", "special tokens", "mine"]
    assert (mean["same word"] == 5).all() and (mean["mine"] == np.eye(6, 12)).all()


def test_a_share_is_what_words_give_to_special_tokens():
    weights = np.random.default_rng(0).dirichlet(np.ones(6), size=(3, 6))  # (3, 6, 6)
    special = np.array([True, False, False, True, False, True])
    by_hand = [np.mean([head[i, 0] + head[i, 3] + head[i, 5] for i in (1, 2, 4)]) for head in weights]
    np.testing.assert_allclose(heads.special_share(weights, special), by_hand)


def test_a_head_rests_with_or_without_a_double():
    weights = np.zeros((5, 5))  # [CLS] a b a [SEP]
    weights[1, [0, 3]] = 0.2, 0.8
    weights[3, [0, 1]] = 0.4, 0.6
    weights[2, [0, 4]] = 0.7, 0.3
    rest = heads.resting([reading("a b a", weights)], (2, 9))
    assert [*rest] == ["with a double", "without one"]
    np.testing.assert_allclose(rest["with a double"], [0.3, 0])
    np.testing.assert_allclose(rest["without one"], [0.7, 0.3])
    assert [*heads.resting([reading("a b")], (0, 0))] == ["without one"]


def test_the_value_at_cls_is_measured_by_those_of_the_words():
    np.testing.assert_allclose(heads.length_at_cls([reading("a b a")]), np.full((6, 12), 1 / 3))  # 1 of 2, 3, 4


def test_a_head_looks_most_at_another_word():
    weights = np.zeros((4, 4))  # [CLS] a b [SEP]
    weights[0, 1] = weights[1, 1] = 1
    weights[1, 2], weights[2, 1], weights[2, 0] = 0.3, 0.4, 0.5
    assert heads.looks_most(reading("a b", weights), (1, 8)) == ("b", "a", 0.4)
    assert heads.looks_most(reading("a b", weights), (1, 8), special=True) == ("b", "[CLS]", 0.5)


def test_the_ten_sentences_have_doubles():
    assert len(heads.SENTENCES) == 10
    assert sum(len({*s.replace(",", "").split()}) < len(s.split()) for s in heads.SENTENCES) >= 8
