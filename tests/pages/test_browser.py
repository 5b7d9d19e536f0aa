"""Every lesson opened in a real JupyterLab, as it is stored, with the network closed; all are run there once a week.

nbval runs them all each time, and test_learner.py lesson 02 and parts of others in JupyterLab.
"""

from __future__ import annotations

import subprocess
import sys

import nbformat
import pytest
from browser import LESSONS, PATIENCE, REPO, lesson, until
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output, writes

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
    figures = sum("image/png" in output.get("data", {}) for output in outputs)
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
    notebook = at_peace(name)
    notebook.run_all()
    assert not notebook.errors(), notebook.errors()
    code = [cell for cell in notebook.cells() if cell["type"] == "code" and cell["source"].strip()]
    assert [cell["prompt"] for cell in code] == [f"[{i}]:" for i in range(1, len(code) + 1)], "not every cell ran"


# -- the harness itself is able to fail ----------------------------------------------------------

PIXEL = ("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")


@pytest.mark.weekly
def test_what_a_stored_notebook_does_not_show_is_seen(made):
    good, broken = (new_output("display_data", {"image/png": picture}) for picture in (PIXEL, "broken"))
    cells = [new_markdown_cell("$x$ costs"), new_markdown_cell("<b></b>"),
             new_code_cell("1", execution_count=1, outputs=[good]),
             new_code_cell("2", execution_count=2, outputs=[broken, good]),
             new_code_cell("3", execution_count=3, outputs=[new_output("stream", text="said")])]
    notebook = made(*cells, kernel=False)
    cells[4].outputs.append(good)
    expected = [(1, "its text"), (3, "a picture or a frame"), (4, "2 outputs, 1 figures")]
    expected = [f"made.ipynb, cell {cells[i].id} does not show {words}" for i, words in expected]
    until(notebook.page, lambda: missing(notebook, cells) == expected, lambda: missing(notebook, cells))


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


@pytest.mark.weekly
def test_errors_and_stderr_are_seen(made):
    notebook = made(new_code_cell("1 / 0"), new_code_cell("import warnings; warnings.warn('old')"))
    notebook.run_all()
    assert [line.split(":")[0] for line in notebook.errors()] == ["made.ipynb, cell 0"]     # the rest did not run
    assert notebook.cells()[1]["prompt"].strip("[] :") == ""
    assert "old" in notebook.run(1)["stderr"][0]


@pytest.mark.weekly
def test_requests_of_the_page_are_refused_and_seen(lab, made):
    notebook = made(new_code_cell("from IPython.display import HTML\nHTML('<img src=\"http://example.org/x.png\">')"),
                    new_code_cell("from IPython.display import Javascript\n"
                                  "Javascript('console.error(\"lost\"); fetch(\"https://example.org/y\")')"))
    notebook.run_all()
    assert {"http://example.org/x.png", "https://example.org/y"} <= set(lab.outside)
    assert any("lost" in line for line in notebook.console_errors())


@pytest.mark.weekly
def test_the_kernel_has_no_network(lab, made):
    notebook = made(new_code_cell(
        "import urllib.request\ntry:\n    urllib.request.urlopen('http://192.0.2.1/', timeout=5)\n"
        "    print('reached')\nexcept OSError as error:\n    print('refused', error)"))
    notebook.run_all()
    said = notebook.cells()[0]["output"]
    assert said.startswith("refused"), said
    if lab.closed == "namespace":
        assert "unreachable" in said, said


@pytest.mark.weekly
def test_typing(made):
    notebook = made(new_markdown_cell("# Title"), new_code_cell("def double(x):\n    ..."),
                    new_code_cell("def check(f):\n    print('got', f(2))\ncheck(double)"))
    notebook.run_all()
    assert notebook.answer("double", "def double(x):\n    if x > (1):\n        return [2 * x, 'é']") == "got [4, 'é']"


@pytest.mark.weekly
def test_screenshot_command(tmp_path, browser):
    """What authors use; it shows the stored outputs and leaves the notebook as it was."""
    path = tmp_path / "tall.ipynb"
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    path.write_text(writes(new_notebook(cells=[new_markdown_cell("\n\n".join("line" for _ in range(80)))],
                                        metadata=metadata)))
    before = path.read_bytes()
    subprocess.run([sys.executable, REPO / "tests" / "pages" / "browser.py", "screenshot", path, tmp_path / "out"],
                   check=True, capture_output=True, timeout=4 * PATIENCE)
    pages = sorted((tmp_path / "out").iterdir())
    assert [page.name for page in pages] == ["tall-01.png", "tall-02.png"]
    assert path.read_bytes() == before


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
