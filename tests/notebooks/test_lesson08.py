"""Lesson 08: the hands that the lesson draws are turned on by `attention.rotate`, one step at a time or many."""

import numpy as np
import pytest
from notebook_code import LESSONS, definitions

from helpers import attention


@pytest.fixture(scope="module")
def hands():
    return definitions(LESSONS["08"])["hands"]


@pytest.mark.parametrize("d", [2, 6, 64])
@pytest.mark.parametrize("k", [-7, 0, 1, 40])
def test_one_turn_takes_the_same_step_everywhere(hands, d, k):
    clock = hands(100, d)
    places = np.arange(max(0, -k), 100 - max(0, k))
    turned = attention.rotate(clock[places], np.full(len(places), k))
    np.testing.assert_allclose(turned, clock[places + k], atol=1e-12)


@pytest.mark.parametrize("d", [2, 6, 64])
def test_the_hands_start_on_the_right(hands, d):
    np.testing.assert_array_equal(hands(1, d), [[1, 0] * (d // 2)])
    np.testing.assert_array_equal(hands(5, d)[:, 1::2], attention.sinusoidal_encoding(5, d)[:, 0::2])
