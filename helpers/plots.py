"""Every recurring figure of the course, in one style.

Importing this module sets the style. Colours can be told apart by colour-blind readers and,
by their lightness, on a black-and-white print. In heat maps the query is on the vertical axis
and the key on the horizontal one, always.
"""

import functools
import io

import matplotlib.pyplot as plt
import numpy as np
from IPython import get_ipython
from matplotlib.colors import ListedColormap, to_hex

from helpers.store import progress
from helpers.words import NotUsable, shown

BLUE, ORANGE, GREEN, RED, PURPLE, SKY, GREY = (
    "#0072B2", "#E69F00", "#009E73", "#B34700", "#8E4585", "#56B4E9", "#6b6b6b")  # after Okabe and Ito 2008
INKS = {ORANGE.lower(): "#8a5a00", GREEN.lower(): "#00704f", SKY.lower(): "#1f6f9f"}  # the same, for letters
MARKERS = "osD^vPX"
SIGNED = ListedColormap(plt.get_cmap("RdBu")(np.linspace(0.16, 0.84, 256)))  # ends that no dark page turns into white
AHEAD = 12        # pictures of a slider that are drawn before it is moved
SLIDER_DPI = 150  # so that a page of the slider is drawn in a tenth of a second

plt.rcParams.update({
    "figure.figsize": (7, 4), "figure.dpi": 100, "figure.constrained_layout.use": True,
    "figure.facecolor": "white", "font.size": 11, "axes.titlesize": 12, "axes.titlelocation": "left",
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": False, "legend.frameon": False,
    "axes.prop_cycle": plt.cycler(color=[BLUE, ORANGE, GREEN, RED, PURPLE, SKY, GREY]),
    "image.cmap": "Blues",
})
if get_ipython():
    from matplotlib_inline.backend_inline import set_matplotlib_formats

    set_matplotlib_formats("retina")  # twice as many pixels as the page asks for: sharp on good screens


def ink(colour):
    """The shade of a colour in which letters can be read on white: orange, green and sky blue are too pale for that."""
    return INKS.get(to_hex(colour), colour)


def as_written(artist):
    """Let Matplotlib draw all text in a figure, or a text, as it is written: a dollar begins no formula. Returns it.

    Anybody's own words may be in a figure, so all that this module draws goes through here. (``parse_math=False`` would
    show the backslash of an escaped dollar.)
    """
    for text in artist.findobj(plt.Text):
        text._preprocess_math = lambda words: (words.replace(r"\$", "$"), False)
    return artist


def heatmap(values, queries, keys=None, ax=None, title="", label="attention weight", limits=(0, None),
            cmap="Blues", numbers=None, axis_names=("query", "key"), colorbar=True):
    """Draw a matrix with a row for each query and a column for each key.

    ``values``: ``(T_q, T_k)``; ``queries``, ``keys``: their labels (``keys`` defaults to ``queries``);
    ``limits``: lowest and highest colour (None: from the values); ``numbers``: print each value in its
    cell (default: when there are at most 64). NaN is drawn grey. Returns the axes.
    Raises ValueError when labels and values do not fit.
    """
    values = np.asarray(values, dtype=float)
    keys = queries if keys is None else keys
    if values.shape != (len(queries), len(keys)):
        raise ValueError(f"heatmap got values of shape {values.shape} for {len(queries)} queries and {len(keys)} keys.")
    if ax is None:
        side = 0.55 * max(values.shape) + 1.6
        _, ax = plt.subplots(figsize=(min(side + 1.2, 9), min(side, 7)))
    colours = plt.get_cmap(cmap).with_extremes(bad="#d9d9d9")
    low = np.nanmin(values) if limits[0] is None else limits[0]
    high = np.nanmax(values) if limits[1] is None else limits[1]
    image = ax.imshow(np.ma.masked_invalid(values), cmap=colours, vmin=low, vmax=high)
    ax.set_xticks(range(len(keys)), list(keys), rotation=40, ha="right", rotation_mode="anchor")
    ax.set_yticks(range(len(queries)), list(queries))
    ax.set(xlabel=axis_names[1], ylabel=axis_names[0], title=title)
    ax.spines[:].set_visible(False)
    if numbers if numbers is not None else values.size <= 64:
        for (i, j), value in np.ndenumerate(values):
            red, green, blue, _ = image.cmap(image.norm(value))
            dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
            ax.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=9, color="white" if dark else "black")
    if colorbar:
        ax.figure.colorbar(image, ax=ax, label=label, shrink=0.85)
    as_written(ax.figure)
    return ax


def bars(labels, values, ax=None, title="", xlabel="", colours=BLUE):
    """Draw horizontal bars, the first label on top, each with its value. Returns the axes.

    ``labels``: n strings; ``values``: n numbers; ``colours``: one colour or n of them.
    """
    if ax is None:
        _, ax = plt.subplots(figsize=(7, 0.38 * len(labels) + 1.1))
    patches = ax.barh(range(len(labels)), values, color=colours, height=0.7)
    ax.bar_label(patches, fmt="%.2f", padding=3, fontsize=10)
    ax.set_yticks(range(len(labels)), list(labels))
    ax.invert_yaxis()
    ax.axvline(0, color="black", linewidth=0.8)
    ax.margins(x=0.12)
    ax.set(xlabel=xlabel, title=title)
    as_written(ax.figure)
    return ax


def word_map(points, words, groups=None, title="", xlabel="", ylabel=""):
    """Draw words as labelled points. Returns the axes.

    ``points``: ``(n, 2)``; ``words``: n strings; ``groups``: n group names (colour, marker and legend).
    """
    points = np.asarray(points, dtype=float)
    _, ax = plt.subplots(figsize=(5.6, 5.8))
    groups = [""] * len(words) if groups is None else list(groups)
    for number, group in enumerate(dict.fromkeys(groups)):
        rows = [i for i, g in enumerate(groups) if g == group]
        ax.scatter(*points[rows].T, s=46, marker=MARKERS[number % len(MARKERS)], color=f"C{number}",
                   label=group or None)
    span = np.ptp(points, axis=0) + 1e-9
    for point, word in zip(points, words, strict=True):
        beside = (points - point) / span  # what is close on the right sends the word to the left
        left = ((beside[:, 0] > 0) & (beside[:, 0] < 0.15) & (abs(beside[:, 1]) < 0.04)).any()
        ax.annotate(word, point, (-6, 5) if left else (6, 5), textcoords="offset points", fontsize=13,
                    ha="right" if left else "left")
    if any(groups):
        ax.legend(loc="best", fontsize=13)
    ax.margins(0.17, 0.1)
    ax.set_title(title, fontsize=14)
    ax.set_xlabel(xlabel, fontsize=13)
    ax.set_ylabel(ylabel, fontsize=13)
    as_written(ax.figure)
    return ax


def arrow(ax, start, end, colour=GREY):
    """Draw an arrow from ``start`` to ``end``, both ``(2,)``, on ``ax``."""
    ax.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": 1.8,
                                            "shrinkA": 4, "shrinkB": 4})


def slider(draw, name, values, start):
    """Show the figure that ``draw(value)`` makes, with a slider over ``values`` when a learner is present.

    ``name``: the label of the slider; ``start``: the value drawn first, and the one that stands on a page without a kernel.
    It answers at once: each picture is kept, and up to twelve are drawn ahead; for more, ``draw`` has to be quick.
    Raises ValueError when ``start`` is not one of ``values``.
    """
    values = list(values)
    if start not in values:
        raise ValueError(f"The slider starts at {start!r}, which is not one of its values {values}.")
    if not progress.live():
        draw(start)
        plt.show()
        return
    import ipywidgets
    from IPython.display import display

    picture = functools.cache(lambda value: _picture(draw, value))
    for value in values if len(values) <= AHEAD else [start]:
        picture(value)
    handle = ipywidgets.SelectionSlider(options=values, value=start, description=name,
                                        style={"description_width": "initial"}, layout={"width": "460px"})
    shown = ipywidgets.Image(value=picture(start), layout={"max_width": "100%"})

    def redraw(change=None):
        shown.value = picture(handle.value)
        shown.width = str(int(100 * int.from_bytes(shown.value[16:20], "big") / SLIDER_DPI))  # as wide as on a page

    redraw()
    handle.observe(redraw, "value")
    display(handle, shown)


def _picture(draw, value):
    """The figure that ``draw(value)`` makes, as the bytes of a PNG."""
    plt.close("all")
    draw(value)
    picture = io.BytesIO()
    cut = "tight" if plt.gcf().get_layout_engine() else None  # without one the figure fills its canvas, and none jumps
    plt.gcf().savefig(picture, format="png", dpi=SLIDER_DPI, bbox_inches=cut, pil_kwargs={"compress_level": 1})
    plt.close("all")
    return picture.getvalue()


def boxes(draw, name, values, start=()):
    """Show the figure that ``draw(chosen)`` makes, with a box to tick for each of ``values`` when a learner is present.

    ``name``: what stands before the boxes; ``start``: the values chosen first, and those of a page without a kernel.
    Raises NotUsable when ``start`` is no list, or one of it is not among ``values``.
    """
    values = list(values)
    if not isinstance(start, (list, tuple)) or not all(value in values for value in start):
        raise NotUsable(f"The boxes start with a list of some of {shown(values)}, and {shown(start)} came.")
    if not progress.live():
        draw(list(start))
        plt.show()
        return
    import ipywidgets
    from IPython.display import display

    ticks = {value: ipywidgets.Checkbox(value in start, description=str(value), indent=False,
                                        layout={"width": "max-content"}) for value in values}

    def redraw(**ticked):
        draw([value for value in values if ticked[str(value)]])
        plt.show()

    row = ipywidgets.HBox([ipywidgets.Label(name), *ticks.values()], layout={"flex_flow": "row wrap"})
    display(row, ipywidgets.interactive_output(redraw, {str(value): tick for value, tick in ticks.items()}))


def arc(ax, start, end, height=0.5, base=0.0, head=0, **line):
    """Draw half an ellipse over the words from ``start`` to ``end``, places on the horizontal axis of ``ax``.

    ``height``: of its middle, for each step between the two; below the words if negative; ``base``: where it begins and
    ends; ``head``: the size of an arrow's head at ``end``, in points (0: none); ``line``: as for ``ax.plot``.
    """
    turns = np.linspace(0, np.pi, 60)
    xs = (start + end) / 2 - (end - start) / 2 * np.cos(turns)
    ys = base + height * abs(end - start) * np.sin(turns)
    curve, = ax.plot(xs[:-4] if head else xs, ys[:-4] if head else ys, **{
        "color": BLUE, "solid_capstyle": "butt" if head else "round", **line})
    if head:
        ax.annotate("", (xs[-1], ys[-1]), (xs[-6], ys[-6]), zorder=curve.get_zorder(), arrowprops={
            "arrowstyle": f"-|>,head_width={0.02 * head:g},head_length={0.04 * head:g}", "mutation_scale": 20,
            "color": curve.get_color(), "linewidth": 0, "shrinkA": 0, "shrinkB": 0})


def ribbon(ax, start, end, **fill):
    """Draw a ribbon on ``ax`` that leads from one edge to another, each as (x, top, bottom), level where it begins and ends.

    ``fill``: as for ``ax.fill_between``.
    """
    part = np.linspace(0, 1, 40)
    xs, tops, bottoms = ((1 - s) * a + s * b for a, b, s in zip(
        start, end, (part, *[part * part * (3 - 2 * part)] * 2), strict=True))
    ax.fill_between(xs, tops, bottoms, **{"color": BLUE, "alpha": 0.3, "linewidth": 0, **fill})


def as_drawn(figure):
    """Show a figure that keeps its colours on a dark page, which turns those of all others round.

    For one whose own ground is dark, or whose colours are what it is about.
    """
    from IPython.display import display

    display(figure, metadata={"needs_background": "dark"})
    plt.close(figure)
