"""Squared paper in the notebook: 64 cells to draw a digit on, with the mouse or with Tab and the space bar (lesson 20)."""

from helpers import vision
from helpers.store import progress
from helpers.words import NotUsable

INK = "primary"  # the style of a button that stands for a cell with ink: it has the page's strongest colour


def board(text, react):
    """Show a drawing, eight lines of ``#`` and ``.``, as cells that can be switched, and ``react(image)`` below it, anew
    with each change; ``image`` is ``(8, 8)``. Without a learner present only ``react`` runs. Raises NotUsable as
    ``vision.drawing`` does."""
    image = vision.drawing(text)
    if not progress.live():
        react(image)
        return
    import ipywidgets
    from IPython.display import display

    signs = "".join(text.split())
    cells = [ipywidgets.ToggleButton(value=sign == vision.INK, button_style=INK if sign == vision.INK else "",
                                     tooltip=f"row {i // 8 + 1}, column {i % 8 + 1}",
                                     layout={"width": "30px", "height": "30px", "margin": "0", "padding": "0"})
             for i, sign in enumerate(signs)]
    wipe = ipywidgets.Button(description="new sheet", layout={"width": "auto"})
    below = ipywidgets.Output()

    def draw(change=None):
        if change:
            change["owner"].button_style = INK if change["new"] else ""
        lines = "".join(vision.INK if cell.value else vision.PAPER for cell in cells)
        below.clear_output(wait=True)
        with below:
            try:
                react(vision.drawing("\n".join(lines[i:i + 8] for i in range(0, 64, 8))))
            except NotUsable as nothing:
                print(nothing)

    def clear(_):
        for cell in cells:
            cell.unobserve(draw, "value")
            cell.value, cell.button_style = False, ""
            cell.observe(draw, "value")
        draw()

    for cell in cells:
        cell.observe(draw, "value")
    wipe.on_click(clear)
    grid = ipywidgets.GridBox(cells, layout={"grid_template_columns": "repeat(8, 31px)"})
    display(ipywidgets.VBox([grid, wipe, below]))
    draw()
