"""Every checker names each of its mistakes as itself."""

from dataclasses import replace

import pytest
from mistakes import misnamed

from helpers.checks import INDEX, exercise
from helpers.checks.core import Misconception


@pytest.mark.parametrize("name", sorted(INDEX))
def test_mistakes_are_named_as_themselves(name, pytestconfig):
    found = misnamed(exercise(name), pytestconfig)
    assert not found, "\n".join(found)


def test_a_mistake_that_only_raises_is_noticed(pytestconfig):
    """It would give its hint to whoever's function stops with the same error."""
    broken = Misconception("broken", "You add None to the scores.", lambda x: x + None)
    found = misnamed(replace(exercise("softmax"), misconceptions=(broken,)), pytestconfig)
    assert found and all("raises TypeError everywhere" in line for line in found)
