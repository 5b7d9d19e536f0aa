"""What the notebooks define, taken out of them: solutions and lessons agree with the helpers, and start light."""

import os
import subprocess
import sys

import numpy as np
import pytest
from mistakes import seeds
from notebook_code import LESSONS, SOLUTIONS, code_cells, definitions

from helpers import attention, embeddings
from helpers.checks import INDEX, exercise
from helpers.checks.core import evaluate
from helpers.embeddings import WordVectors
from helpers.words import NotUsable
from notebooks.figures import lesson02


@pytest.mark.parametrize("name", INDEX)
def test_solution_agrees_with_the_helper_on_random_inputs(name, pytestconfig):
    solved = definitions(SOLUTIONS[INDEX[name]])[name]
    for seed in seeds(pytestconfig):
        outcome = evaluate(exercise(name), solved, seed=seed)
        assert outcome, outcome.message
    assert "ValueError" not in outcome.message, "the solution should keep the contract of the reference"


def test_cosine_of_lesson_01_agrees_with_the_helper():
    cosine = definitions(LESSONS["01"])["cosine"]
    X = np.random.default_rng(0).normal(size=(6, 5))
    pairs = [[cosine(x, y) for y in X] for x in X]
    np.testing.assert_allclose(pairs, embeddings.cosine_similarity(X, X), atol=1e-12)


@pytest.mark.parametrize("number", [pytest.param(number, marks=[] if number == "05" else pytest.mark.weekly)
                                    for number in LESSONS if "01" <= number <= "08"])
def test_a_lesson_shows_its_first_figure_before_it_imports_anything_heavy(number):
    """Runs the cells up to the first figure in a fresh interpreter."""
    lines = []
    for source in code_cells(LESSONS[number]):
        lines.append(source)
        if any(drawn in source for drawn in ("plt.show", "plots.", "figures.")):
            break
    heavy = {"torch", "transformers", "bertviz", "tokenizers"}
    lines.append(f"import sys\nassert not {heavy!r} & set(sys.modules), {heavy!r} & set(sys.modules)")
    environment = {"MPLBACKEND": "agg", "ATTENTION_COURSE_PROGRESS": "off"}
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True,
                          env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr


def test_the_leak_detector_of_lesson_06_accuses_no_honest_softmax():
    """One that first subtracts the largest score of the whole table moves in its last bit."""
    leaks = definitions(LESSONS["06"])["leaks"]
    W_q, W_k, W_v = np.random.default_rng(0).normal(size=(3, 64, 64)) / 8

    def honest(X):
        scores = (X @ W_q) @ (X @ W_k).T / 8
        powers = np.exp(scores - scores.max()) * attention.causal_mask(8)
        return powers / powers.sum(axis=-1, keepdims=True) @ (X @ W_v)

    def hidden_too_late(X):
        return attention.softmax((X @ W_q) @ (X @ W_k).T / 8) * attention.causal_mask(8) @ (X @ W_v)

    assert leaks(honest) is False and leaks(hidden_too_late) is True
    assert leaks(lambda X: np.full_like(X, np.nan)) is None


@pytest.mark.parametrize("sentence, word, senses, told", [
    ("the dates", "date", None, "'date' has to be in the sentence"),
    ("a cold spring", "spring", {"season": "summer", "water": "river"}, "not for 2"),
    ("a cold spring", "spring", {"season": "summer", "water": "qwertz", "metal": "steel"}, "'qwertz' has none"),
])
def test_a_word_and_senses_of_ones_own_in_lesson_02(sentence, word, senses, told):
    names = definitions(LESSONS["02"], "senses", "vectors")
    names["pull"].__globals__.update(self_attention=attention.self_attention)
    with pytest.raises(NotUsable, match=told):
        lesson02.my_arrow(sentence, names["pull"], np.zeros((8, 3)), WordVectors.load(), senses or names["senses"], word)
