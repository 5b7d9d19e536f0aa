"""Make the two figures that move, of five seconds each, and their stills: python -m scripts.loops

Lesson 08's clocks and lesson 17's night sky, for the README and the book. The second needs the chat model: it is drawn in a
kernel that has run the lesson up to its figure.
"""

import io
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "loops"
SECONDS, DOTS = 5, 100  # of a loop; dots an inch
SKY = "17_inside_a_chat_model.ipynb"


def clocks():
    """The hands of eight clocks from place 0 to 40."""
    from notebooks.figures import lesson08

    frames = []
    for step in range(81):
        lesson08.clocks(step / 2)
        plt.gca().text(3.9, -4.75, f"place {step // 2}", ha="center", fontsize=17, weight="bold")
        plt.gca().set_ylim(-5.1, 1.8)
        plt.gcf().set_size_inches(7.6, 5.4)  # as large as the night sky, beside which it stands
        frames.append(_picture(plt.gcf()))
    _write("clocks", frames)
    _write("clocks-dark", [_turned_round(frame) for frame in frames])


def night_sky(by_head, words):
    """Layer after layer is tried, until one head turns Rome into Paris. ``by_head``: effects ``(places, layers, h)``."""
    from notebooks.figures import lesson17

    frames = []
    for tried in range(by_head.shape[1] + 1):
        effects = by_head.clone()
        effects[:, tried:] = 0
        figure = lesson17.night(effects, words, named=False)  # which head it is, the lesson asks
        figure.axes[0].axvspan(tried - 0.5, by_head.shape[1], color=lesson17.NIGHT, alpha=0.7, zorder=3)  # not tried yet
        frames.append(_picture(figure))
    _write("night_sky", frames)


def _picture(figure):
    """A figure as a picture, which is then closed."""
    file = io.BytesIO()
    figure.savefig(file, dpi=DOTS, facecolor=figure.get_facecolor(), bbox_inches=None)
    plt.close(figure)
    return Image.open(file).convert("RGB")


def _turned_round(picture):
    """A picture for a dark page: light is dark, and a hue stays what it is."""
    inverted = 255 - 0.945 * np.asarray(picture, dtype=float)
    light = inverted @ [0.213, 0.715, 0.072]
    return Image.fromarray((2 * light[..., None] - inverted).clip(0, 255).astype("uint8"))


def _write(name, frames):
    """A loop of ``SECONDS``, the last frame for as long as is left of them, and that frame as a still."""
    FOLDER.mkdir(exist_ok=True)
    step = 3000 // (len(frames) - 1) // 10 * 10  # milliseconds: a GIF counts in hundredths of a second
    rest = 1000 * SECONDS - step * (len(frames) - 1)
    palette = frames[-1].quantize(128)
    small = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    small[0].save(FOLDER / f"{name}.gif", save_all=True, append_images=small[1:], loop=0,
                  duration=[step] * (len(frames) - 1) + [rest])
    small[-1].save(FOLDER / f"{name}.png", optimize=True)


def main():
    """Draw both, the clocks for light pages and dark ones."""
    import nbformat
    from nbclient import NotebookClient

    clocks()
    lesson = nbformat.read(ROOT / "notebooks" / SKY, 4)
    figure = next(i for i, cell in enumerate(lesson.cells) if cell.source.startswith("figures.night_sky("))
    lesson.cells = lesson.cells[:figure + 1]
    lesson.cells[figure].source = lesson.cells[figure].source.replace("figures.", "loops.")
    lesson.cells.insert(figure, nbformat.v4.new_code_cell("from scripts import loops"))
    NotebookClient(lesson, timeout=600, resources={"metadata": {"path": str(ROOT / "notebooks")}}).execute()


if __name__ == "__main__":
    main()
