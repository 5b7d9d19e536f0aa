"""Lesson 08: the rotation matrix that the lesson builds takes a step, and turns as `attention.rotate` does."""

import numpy as np
import pytest
from notebook_code import LESSONS, definitions

from helpers import attention


@pytest.fixture(scope="module")
def rotation_matrix():
    return definitions(LESSONS["08"])["rotation_matrix"]


@pytest.mark.parametrize("d", [2, 6, 64])
@pytest.mark.parametrize("k", [-7, 0, 1, 40])
def test_one_matrix_takes_the_same_step_everywhere(rotation_matrix, d, k):
    encoding = attention.sinusoidal_encoding(100, d)
    places = np.arange(max(0, -k), 100 - max(0, k))
    np.testing.assert_allclose(encoding[places] @ rotation_matrix(k, d).T, encoding[places + k], atol=1e-12)


@pytest.mark.parametrize("d", [2, 6, 64])
def test_the_matrix_turns_rows_as_rope_does(rotation_matrix, d):
    x = np.random.default_rng(0).normal(size=(5, d))
    for k in (-3, 0, 1, 12):
        np.testing.assert_allclose(x @ rotation_matrix(k, d), attention.rotate(x, np.full(5, k)), atol=1e-12)
