"""Lesson 08: the walls of clocks that the lesson winds are those of the places it says."""

import numpy as np
import pytest
from notebook_code import LESSONS, definitions

from helpers import attention


@pytest.fixture(scope="module")
def wind():
    return definitions(LESSONS["08"], "turn")["wind"]


@pytest.mark.parametrize("d", [2, 6, 64])
@pytest.mark.parametrize("k", [-7, 0, 1, 40])
def test_one_turn_takes_the_same_step_everywhere(wind, d, k):
    walls = attention.sinusoidal_encoding(100, d)
    places = np.arange(max(0, -k), 100 - max(0, k))
    np.testing.assert_allclose(wind(walls[places], k), walls[places + k], atol=1e-12)


@pytest.mark.parametrize("d", [2, 6, 64])
def test_the_hands_start_at_the_top(d):
    np.testing.assert_array_equal(attention.sinusoidal_encoding(1, d), [[0, 1] * (d // 2)])
