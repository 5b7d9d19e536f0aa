"""Every lesson opened in a real JupyterLab, as it is stored, with the network closed; all are run there once a week.

nbval runs them all each time, and test_learner.py lesson 02 and parts of others in JupyterLab.
"""

from __future__ import annotations

import nbformat
import pytest
from browser import LESSONS, REPO, lesson, until
from nbformat.v4 import new_code_cell, new_output

# For every cell: the text of its prose, its pictures and frames that have no size, its outputs and figures that can be seen.
SHOWN = """() => window.jupyterapp.shell.currentWidget.content.widgets.map(cell => {
    const all = query => Array.from(cell.node.querySelectorAll(query));
    const seen = node => node.getBoundingClientRect().width > 0 && node.getBoundingClientRect().height > 0;
    const prose = all('.jp-RenderedMarkdown').map(node => {
        const copy = node.cloneNode(true);
        copy.querySelectorAll('code, pre').forEach(code => code.remove());
        return copy.textContent; });
    return {
        text: prose.join('').trim(),
        misspelt: all('mjx-merror').length,
        empty: all('img, iframe').filter(node => !seen(node) || node.naturalWidth === 0).length,
        figures: all('.jp-OutputArea-output img').filter(seen).length,
        outputs: all('.jp-OutputArea-output').filter(seen).length }; })"""


def wrong_with(cell, shown):
    """What is missing on the page from a stored cell, in words; JupyterLab draws prose, formulas and pictures by and by."""
    outputs = cell.get("outputs", [])
    figures = sum(bool({"image/png", "image/svg+xml"} & {*output.get("data", {})}) for output in outputs)
    return [words for words, wrong in {
        "its text": cell.cell_type == "markdown" and not shown["text"],
        "a formula": "$" in shown["text"] or shown["misspelt"],
        "a picture or a frame": shown["empty"],
        f"{len(outputs)} outputs, {figures} figures": (shown["outputs"], shown["figures"]) != (len(outputs), figures),
    }.items() if wrong]


def missing(notebook, cells):
    """One line for each thing in these stored cells that cannot be seen in the open notebook."""
    return [f"{notebook.name}, cell {cell.id} does not show {words}"
            for cell, shown in zip(cells, notebook.page.evaluate(SHOWN), strict=True) for words in wrong_with(cell, shown)]


@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if number % 18 == 11 else pytest.mark.weekly)
                                  for number, name in enumerate(LESSONS)])
def test_a_stored_lesson_opens(at_peace, name):
    notebook = at_peace(name, kernel=False)
    cells = nbformat.read(REPO / "notebooks" / name, as_version=4).cells
    until(notebook.page, lambda: not missing(notebook, cells), lambda: "\n".join(missing(notebook, cells)))
    assert not notebook.errors(), notebook.errors()


@pytest.mark.weekly
@pytest.mark.parametrize("name", LESSONS)
def test_run_all(at_peace, name):
    at_peace(name).run_all()


PIXEL = ("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")


def test_a_dark_theme_turns_figures_round_that_are_drawn_on_white(made):
    figures = [new_output("display_data", {"image/png": PIXEL}, metadata=metadata)
               for metadata in ({}, {"needs_background": "dark"})]
    notebook = made(new_code_cell("1", execution_count=1, outputs=figures), kernel=False)
    turned = """theme => { document.body.dataset.jpThemeLight = theme;
        return [...document.querySelectorAll('.jp-RenderedImage img')].map(
            node => getComputedStyle(node).filter !== 'none'); }"""
    until(notebook.page, lambda: notebook.page.evaluate(turned, "false") == [True, False],
          lambda: notebook.page.evaluate(turned, "false"))
    assert notebook.page.evaluate(turned, "true") == [False, False]


def test_the_room_is_quiet(at_peace):
    """No news, no maintainer's buttons, and a lesson that was only opened is not marked as changed."""
    notebook = at_peace(lesson("01"), kernel=False)
    page = notebook.page
    until(page, lambda: page.evaluate("window.jupyterapp.shell.currentWidget.context.isReady"), "the lesson")
    page.wait_for_timeout(1500)  # what pops up comes a moment later
    shown = page.inner_text("body")
    for words in ("Create Assignment", "Validate", "Assignment List", "Jupyter news", "notified about"):
        assert words not in shown
    assert not page.evaluate("window.jupyterapp.shell.currentWidget.context.model.dirty")
    assert page.locator(".Toastify__toast").count() == 0
