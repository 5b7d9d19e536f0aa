"""Lesson 04: the puzzle, phrases of known words, and a hint that is theirs."""

import numpy as np
import pytest
from notebook_code import LESSONS, definitions, judge

from helpers import attention, phrases
from helpers.embeddings import WordVectors
from notebooks.figures import lesson04 as figures


def test_a_transposed_matrix_before_the_tokens_is_named():
    """It got the question whether a transpose is missing, which led further away."""
    outcome = judge("project", lambda X, W: W.T @ X)
    assert outcome.misconception == "W-transposed-first" and "missing" not in outcome.message


def test_the_puzzle_begins_unsolved_and_says_when_it_is_solved(capsys, monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.setattr(plt, "show", plt.close)
    names = definitions(LESSONS["04"], "words", "X", "W_v")
    for W_q, W_k, said in [([[0, 1], [1, 0], [0, 0]], [[1, 0], [0, -1], [-1, -1]], "Not yet"),
                           ([[0, 1], [1, 0], [0, -1]], [[1, 0], [0, -1], [-1, -1]], "Not yet"),  # a tie
                           ([[0, 1], [1, 0], [1, -2]], [[1, 0], [0, -1], [-1, -1]], "Solved"),
                           ([[-1, 1], [1, 0], [0, -1]], [[1, 0], [0, -1], [-1, 1]], "circle is closed")]:
        figures.puzzle(W_q, W_k, names["X"], names["W_v"], names["words"], attention.qkv_attention)
        assert said in capsys.readouterr().out


def test_phrases_hold_out_every_fourth_word_and_all_words_have_vectors():
    known, new = phrases.split()
    seen, held_out = ({word for kind in kinds for side in kind for word in side} for kinds in (known, new))
    assert not seen & held_out and {"bear", "country", "hiking", "trail"} <= held_out
    made = phrases.sentences(known, 20, np.random.default_rng(0)) + phrases.sentences(new, 20, np.random.default_rng(0))
    assert {len(sentence) for sentence in made} == {8}
    assert WordVectors.load().rows([*seen, *held_out, *(word for sentence in made for word in sentence)]).shape[1] == 384
