"""Right and wrong answers that checkers once judged wrongly, or told a hint that was not theirs: by hostile readers."""

import answers_01_06
import answers_07_10
import answers_11_14
import answers_16_19
import pytest

from helpers.checks import exercise
from helpers.checks.core import evaluate

PARTS = (answers_01_06, answers_07_10, answers_11_14, answers_16_19)


def named(entries):
    return [pytest.param(*entry, id=f"{entry[0]}-{entry[1].__name__}") for entry in entries]


@pytest.mark.parametrize(("name", "attempt", "misconception"), named(sum((part.WRONG for part in PARTS), [])))
def test_wrong_ones_are_refused_with_a_hint_that_is_theirs(name, attempt, misconception):
    outcome = evaluate(exercise(name), attempt)
    assert (outcome.status, outcome.misconception) == ("wrong", misconception), outcome.message


@pytest.mark.parametrize(("name", "attempt"), named(sum((part.RIGHT for part in PARTS), [])))
def test_right_ones_pass_in_whatever_style(name, attempt):
    outcome = evaluate(exercise(name), attempt)
    assert outcome, outcome.message
