"""The step-by-step view: a strip without a kernel, a slider with one, every number as text."""

import numpy as np
import pytest

from helpers.page import steps


def two():
    scores = steps.grid([[1.0, 2.0]], "scores", rows=["q"], columns=["a", "<b>"], mark=[[True, False]])
    return [("Scores", [scores, "→"], "First."),
            ("Weights", [steps.grid([0.25, 0.75], "weights", shade=True)], "Then.")]


def test_a_page_without_a_kernel_has_every_step(nobody, pages):
    steps.show(*two())
    (html, text), = pages
    for words in ("1 · Scores", "2 · Weights", "1.00", "2.00", "0.25", "0.75", "First.", "Then."):
        assert words in html and words in text
    assert "&lt;b&gt;" in html and "<b>" not in html
    assert "<th></th>" not in html  # a screen reader would read out a heading without words


def test_the_slider_shows_one_step_at_a_time(file, displayed):
    steps.show(*two())
    slider, page = displayed[0].children
    assert (slider.min, slider.max) == (1, 2)
    assert "Scores" in page.value and "Weights" not in page.value
    slider.value = 2
    assert "Weights" in page.value and "Scores" not in page.value


def test_a_sign_stays_with_the_grid_behind_it(nobody, pages):
    steps.show(*two(), ("Sum", [steps.grid(1), "·", "(", steps.grid(2), ")"], "Third."))
    cells = [card.count("display:flex;align-items:center'><") for card in pages[0][0].split(" · ")[1:]]
    assert cells == [2, 1, 3], "an arrow is no cell of its own, and a last sign is one"


def test_marks_shades_and_groups_fall_on_their_cells():
    html, _ = steps.grid([[1.0, 2.0], [3.0, 4.0]], mark=np.array([[True], [False]]), groups=[0, 1])
    cells = html.split("<td ")[1:]
    assert [("solid #b34700" in cell) for cell in cells] == [True, True, False, False]
    assert ["<strong>" in cell for cell in cells] == [True, True, False, False]  # what is left of it on GitHub
    assert ["background:none" in cell.split("</td>")[0] for cell in cells] == [True, False, True, False]
    dark = steps.grid([0.0, 1.0], shade=True)[0].split("<td ")[1:]
    assert "rgba(0,114,178,0)" in dark[0] and "rgba(0,114,178,0.5)" in dark[1]


def test_what_stands_in_a_cell():
    assert steps.grid([1.0, -np.inf, np.nan])[1] == ": 1.00 -∞ "
    assert steps.grid([3, 4], "n")[1] == "n: 3 4"
    assert steps.grid([["the", "cat"]], "words")[1] == "words: the cat"
    assert steps.grid([-np.inf, 1.0], shade=True)[0].count("<td ") == 2
    assert steps.grid(0.5)[1] == ": 0.50"


def test_labels_that_do_not_fit_are_told():
    with pytest.raises(ValueError, match="3 labels for the 2 columns"):
        steps.grid([1, 2], "w", columns=["a", "b", "c"])
