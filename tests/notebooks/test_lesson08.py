"""Lesson 08: the walls of clocks that the lesson turns are those of the places it says."""

import numpy as np
import pytest
from notebook_code import LESSONS, definitions

from helpers import attention


@pytest.mark.parametrize("d", [2, 6, 64])
@pytest.mark.parametrize("k", [-7, 0, 1, 40])
def test_one_turn_takes_the_same_step_everywhere(d, k):
    walls = definitions(LESSONS["08"])["up_first"](attention.sinusoidal_encoding(100, d))
    places = np.arange(max(0, -k), 100 - max(0, k))
    turned = attention.rotate(walls[places], np.full(len(places), k))
    np.testing.assert_allclose(turned, walls[places + k], atol=1e-12)


@pytest.mark.parametrize("d", [2, 6, 64])
def test_the_hands_start_at_the_top(d):
    np.testing.assert_array_equal(attention.sinusoidal_encoding(1, d), [[0, 1] * (d // 2)])
