"""Two mistakes at once are told as one of the two, and what no list knows is not accused."""

import functools
import itertools
import types

import numpy as np
import pytest

from helpers.attention import softmax
from helpers.checks import INDEX, exercise
from helpers.checks.core import evaluate
from helpers.checks.errors import whereabouts

RIGHT_FORM = "The result does not have the right form yet"
FORM_ALONE = 0.05  # of the pairs, at most: their message names no cause


def both(task, one, other):
    """A function with both mistakes: where one calls the reference, the other takes its place; and two settings of one
    function go together. None where the two cannot be put together."""
    for outer, inner in ((one, other), (other, one)):
        if isinstance(outer, types.FunctionType) and outer.__globals__.get(task.name) is task.reference \
                and task.name in outer.__code__.co_names:
            made = types.FunctionType(outer.__code__, outer.__globals__ | {task.name: inner}, outer.__name__,
                                      outer.__defaults__, outer.__closure__)
            made.__kwdefaults__ = outer.__kwdefaults__
            return made
    if isinstance(one, functools.partial) and isinstance(other, functools.partial) and one.func is other.func \
            and not one.keywords.keys() & other.keywords.keys():
        return functools.partial(one.func, **one.keywords, **other.keywords)
    return None


def test_two_mistakes_are_rarely_told_the_right_form_alone(pytestconfig):
    """Every third pair of every exercise in the weekly run, and else a few of every eighth exercise."""
    weekly = pytestconfig.getoption("weekly", False)
    wrong, alone = 0, []
    for task in map(exercise, list(INDEX)[::1 if weekly else 8]):
        for one, other in list(itertools.combinations(task.misconceptions, 2))[::3 if weekly else 13]:
            if attempt := both(task, one.function, other.function):
                outcome = evaluate(task, attempt)
                wrong += outcome.status != "passed"
                alone += [f"{task.name}: {one.id} + {other.id}"] if outcome.message.startswith(RIGHT_FORM) else []
    assert wrong > 20 and len(alone) <= FORM_ALONE * wrong, "\n".join(alone)


def scores_without_root(Q, K, V, mask):
    """Neither scaled, nor are rows that see nothing made 0."""
    scores = np.where(mask, Q @ K.swapaxes(-1, -2), -np.inf)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True)
    return weights @ V, weights


def transposed_softmax(Q, K, V, mask):
    """Down the columns, and every axis of a batch turned round."""
    weights = np.nan_to_num(softmax(np.where(mask, Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1]), -np.inf).T).T)
    return weights @ V, weights


BOTH = [  # exercise, an attempt that is wrong twice, what it is told: one of the two
    ("masked_attention", scores_without_root, {"no-scaling", "nan-row"}),
    ("masked_attention", transposed_softmax, {"columns-sum-to-1"}),
    ("bpe_decode", lambda ids, merges: "".join(str(bytes([i % 256])) for i in ids), {"text"}),
    ("self_attention", lambda X: X + X @ X.T @ X, {"x-added", "no-softmax"}),
]


@pytest.mark.parametrize(("name", "attempt", "either"), BOTH)
def test_one_of_two_is_named(name, attempt, either):
    outcome = evaluate(exercise(name), attempt)
    assert outcome.status == "wrong" and (outcome.misconception in either or outcome.misconception is None
                                          and RIGHT_FORM not in outcome.message), outcome.message


def test_a_special_input_accuses_nobody_who_fails_elsewhere():
    """Scores of 0 were blamed for any slip in the scores."""
    outcome = evaluate(exercise("masked_attention"), lambda Q, K, V, mask: (V[..., :1, :] + 0 * Q[..., :1], mask * 1.0))
    assert "score of 0" not in outcome.message
    zeros_hidden = next(m for m in exercise("masked_attention").misconceptions if m.id == "zero-means-hidden")
    assert evaluate(exercise("masked_attention"), zeros_hidden.function).misconception == "zero-means-hidden"


def test_a_name_that_is_missing_is_answered_with_where_it_is():
    space = {}
    exec("def attempt(X):\n    return softmax(X @ X.T) @ X", space)
    outcome = evaluate(exercise("self_attention"), space["attempt"])
    assert outcome.status == "error"
    assert "softmax is in helpers.attention: from helpers.attention import softmax" in outcome.message


@pytest.mark.parametrize(("name", "words"), [
    ("np", "import numpy as np"), ("WordVectors", "from helpers.embeddings import WordVectors"),
    ("plots", "from helpers import plots"), ("show", "from helpers.page import show"),
    ("layer_norm", "from helpers.transformer import layer_norm"), ("qwerty", None)])
def test_whereabouts(name, words):
    assert words in whereabouts(name) if words else whereabouts(name) == ""


def test_every_exercise_is_found_where_it_is_said_to_be():
    for name in INDEX:
        module = whereabouts(name).removeprefix(f"{name} is in ").split(":")[0]
        assert getattr(__import__(module, fromlist=[name]), name) is exercise(name).reference


def test_a_loss_without_a_tensor_passes_and_is_told():
    reference = exercise("language_model_loss").reference
    outcome = evaluate(exercise("language_model_loss"), lambda *args: reference(*args).item())
    assert outcome and "no gradient" in outcome.message
    assert "no gradient" not in evaluate(exercise("language_model_loss"), reference).message
