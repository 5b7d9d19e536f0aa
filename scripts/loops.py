"""Make the two figures that move, of five seconds each, and their stills: python -m scripts.loops

Lesson 08's clocks and lesson 16's tower, for the README and the book, with letters that are read on a telephone.
"""


import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from PIL import Image

from helpers import smollm2
from notebooks.figures import lesson08, lesson16
from scripts import ROOT

FOLDER = ROOT / "docs" / "loops"
QUESTION = "What is the capital of France?"


def clocks():
    """The hands of eight clocks from place 0 to 40."""
    lines, columns = np.divmod(np.arange(8), 2)
    centres = np.stack([1.3 + 5 * columns, 8 - 2.27 * lines], axis=1)
    frames = []
    for step in range(81):
        figure, ax = _canvas("white")
        lesson08._dials(ax, centres, step / 2 * lesson08.SPEEDS, lesson08.COLOURS)
        for i, (x, y) in enumerate(centres):
            ax.text(x + 1.25, y, f"a turn in\n{lesson08._turn_in(i)}\nplaces", va="center", fontsize=12.5)
        ax.text(5, 9.55, f"place {step // 2}", ha="center", va="center", fontsize=16, weight="bold")
        frames.append(_picture(figure))
    _write("clocks", frames)
    _write("clocks-dark", [_turned_round(frame) for frame in frames])


def tower():
    """For each word of the chat model's answer a light climbs the thirty storeys of lesson 16's tower."""
    words = [step.text for step in smollm2.stream(smollm2.load(), [{"role": "user", "content": QUESTION}])]
    figure, ax = _canvas(lesson16.NIGHT)
    ax.fill_between([0.5, 3.5], 1.3, 8.43, color=lesson16.WALL)
    floors, columns = np.divmod(np.arange(30 * 13), 13)
    windows = ax.scatter(0.7 + 0.215 * columns, 1.47 + 0.233 * floors, s=33, marker="s", linewidths=0, zorder=2)
    low, high = 1.35 + 0.233 * 14, 1.59 + 0.233 * 14  # the storey that is shown large
    ax.plot([4.05, 3.5, 0.5, 0.5, 3.5, 4.05], [1.3, low, low, high, high, 8.43], color=lesson16.LIGHT, linewidth=1)
    for i, (name, lesson) in enumerate(lesson16.LAYER):
        lesson16._room(ax, 4.05, 1.3 + 0.553 * i, name, lesson, width=5.45, height=0.49)
    ax.text(0.5, 0.65, QUESTION, va="center", fontsize=14.5, style="italic", color=lesson16.LIGHT)
    answer = ax.text(0.5, 9.2, "", va="center", fontsize=14.5, weight="bold", color=lesson16.LIGHT)
    colours = np.array([to_rgb(lesson16.LESSON[lesson]) for _, lesson in lesson16.LAYER])  # (13, 3)
    wall, frames = np.array(to_rgb(lesson16.WALL)), []
    for said in range(len(words)):
        for light in range(0, 40, 5):  # the storey that it has reached
            bright = np.where(floors > light, 0.25, 0.25 + 0.75 * np.exp((floors - light) / 6))[:, None]
            windows.set_facecolor(wall + bright * (colours[columns] - wall))
            answer.set_text("".join(words[:said + (light > 30)]))
            frames.append(_picture(figure))
    windows.set_facecolor(colours[columns])
    _write("tower", [*frames, _picture(figure)])


def _canvas(ground):
    """A square figure, and a drawing area of it from 0 to 10."""
    figure = FigureCanvasAgg(Figure((5, 5), dpi=160, facecolor=ground, layout="none")).figure
    ax = figure.add_axes((0, 0, 1, 1), xlim=(0, 10), ylim=(0, 10))
    ax.axis("off")
    return figure, ax


def _picture(figure):
    """A figure as a picture of 800 × 800."""
    figure.canvas.draw()
    return Image.fromarray(np.asarray(figure.canvas.buffer_rgba())[..., :3])


def _turned_round(picture):
    """A picture for a dark page: light is dark, and a hue stays what it is."""
    inverted = 255 - 0.945 * np.asarray(picture, dtype=float)
    light = inverted @ [0.213, 0.715, 0.072]
    return Image.fromarray((2 * light[..., None] - inverted).clip(0, 255).astype("uint8"))


def _write(name, frames):
    """A loop of five seconds, the last frame for as long as is left of them, and that frame as a still."""
    step = 4000 // (len(frames) - 1) // 10 * 10  # milliseconds: a GIF counts in hundredths of a second
    palette = Image.fromarray(np.hstack(frames[::-7])).quantize(256)
    small = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    small[0].save(FOLDER / f"{name}.gif", save_all=True, append_images=small[1:], loop=0,
                  duration=[step] * (len(frames) - 1) + [5000 - step * (len(frames) - 1)])
    small[-1].save(FOLDER / f"{name}.png", optimize=True)


if __name__ == "__main__":
    clocks()
    tower()
