"""The figures: axes the right way round, bad input told, and a slider that redraws."""

import matplotlib
import numpy as np
import pytest

matplotlib.use("agg")

import matplotlib.pyplot as plt

from helpers import plots


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def test_heatmap_has_queries_down_and_keys_across():
    ax = plots.heatmap(np.arange(6).reshape(2, 3) / 6, ["q1", "q2"], ["k1", "k2", "k3"], title="t")
    assert [label.get_text() for label in ax.get_yticklabels()] == ["q1", "q2"]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["k1", "k2", "k3"]
    assert (ax.get_ylabel(), ax.get_xlabel()) == ("query", "key")
    assert [text.get_text() for text in ax.texts][:3] == ["0.00", "0.17", "0.33"]


def test_numbers_in_a_heatmap_can_be_read_on_their_cell():
    ax = plots.heatmap([[0.0, 1.0]], ["q"], ["a", "b"])
    assert [text.get_color() for text in ax.texts] == ["black", "white"]


def test_heatmap_refuses_labels_that_do_not_fit():
    with pytest.raises(ValueError, match="2 queries and 2 keys"):
        plots.heatmap(np.zeros((2, 3)), ["a", "b"])


def test_bars_stand_in_the_order_of_their_labels():
    ax = plots.bars(["first", "second"], [0.2, 0.1])
    assert ax.get_ylim()[0] > ax.get_ylim()[1]
    assert [bar.get_width() for bar in ax.patches] == [0.2, 0.1]


def test_word_map_marks_groups_by_colour_and_shape():
    ax = plots.word_map([[0, 0], [1, 1]], ["a", "b"], ["one", "two"])
    first, second = ax.collections
    assert first.get_facecolor().tolist() != second.get_facecolor().tolist()
    assert first.get_paths()[0].vertices.shape != second.get_paths()[0].vertices.shape
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["one", "two"]


def test_slider_draws_its_start_when_nobody_is_there(nobody):
    drawn = []
    plots.slider(drawn.append, "k", [1, 2, 3], start=2)
    assert drawn == [2]
    with pytest.raises(ValueError, match="starts at 7"):
        plots.slider(drawn.append, "k", [1, 2, 3], start=7)


@pytest.mark.parametrize("last, ahead", [(3, [1, 2, 3]), (40, [2])])
def test_slider_shows_the_picture_of_its_value(file, displayed, last, ahead):
    drawn = []

    def draw(value):
        drawn.append(value)
        plt.figure(figsize=(value, 1)).text(0.5, 0.5, value)

    plots.slider(draw, "k", range(1, last + 1), start=2)
    handle, image = displayed
    assert drawn == ahead
    first = image.value
    handle.value = 3
    assert image.value != first and sorted({*drawn}) == sorted({*ahead, 3})
    handle.value = 2
    assert image.value == first and len(drawn) == len({*drawn})  # kept, and drawn only once
    assert not plt.get_fignums()


def test_boxes_draw_their_start_when_nobody_is_there(nobody):
    drawn = []
    plots.boxes(drawn.append, "cut", [1, 2, 3], start=[2])
    assert drawn == [[2]]
    with pytest.raises(ValueError, match=r"start with a list of some of .* and \[7\] came"):
        plots.boxes(drawn.append, "cut", [1, 2, 3], start=[7])


def test_boxes_redraw_when_one_is_ticked(file, displayed):
    drawn = []
    plots.boxes(drawn.append, "cut", [1, 2, 3], start=[2])
    ticks = displayed[0].children[1:]
    ticks[2].value = True
    ticks[1].value = False
    assert drawn == [[2], [2, 3], [3]]


def test_an_arc_leads_from_word_to_word_above_or_below():
    _, ax = plt.subplots()
    plots.arc(ax, 6, 2, 0.5, base=1)
    xs, ys = ax.lines[0].get_data()
    assert np.allclose([xs[0], ys[0], xs[-1], ys[-1], ys.max()], [6, 1, 2, 1, 1 + 0.5 * 4], atol=0.01) and not ax.texts
    plots.arc(ax, 2, 6, -0.5, head=10, color="red")
    assert np.isclose(ax.lines[1].get_ydata().min(), -2, atol=0.01)
    assert np.allclose(ax.texts[0].xy, (6, 0), atol=0.01), "the arrow's head is at the end"


def test_a_ribbon_joins_two_edges():
    _, ax = plt.subplots()
    plots.ribbon(ax, (0, 1, 2), (10, 5, 7), color="red", alpha=0.5)
    corners = ax.collections[0].get_paths()[0].vertices
    assert {(0, 1), (0, 2), (10, 5), (10, 7)} <= {tuple(corner) for corner in corners.round(6)}


def test_a_figure_that_keeps_its_colours_says_so(displayed):
    figure, _ = plt.subplots(facecolor="black")
    plots.as_drawn(figure)
    assert displayed == [figure, ("metadata", {"needs_background": "dark"})]
    assert not plt.fignum_exists(figure.number), "it is shown once"
