"""A learner's way through the course in a real JupyterLab, with the network closed."""

import hashlib

import pytest
from browser import axe_findings, lesson, until

WRONG_AXIS = """\
def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum(axis=0)"""
RIGHT = """\
def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)"""


def test_lesson_02_is_run_and_a_wrong_answer_is_told_its_cause(at_peace):
    notebook = at_peace(lesson("02"))
    notebook.run_all()
    told = notebook.answer("softmax", WRONG_AXIS)
    assert "axis" in told and "Passed" not in told, told
    answer_the_warm_up(notebook)
    told = notebook.answer("softmax", "def softmax(x):\n    return np.exp(x")
    assert "SyntaxError" in told or "was never closed" in told, told
    told = notebook.answer("softmax", RIGHT)
    assert "Passed" in told, told


def answer_the_warm_up(notebook):
    """The first question by mouse, the second by keyboard: each says whether it was right, and why."""
    asked = notebook._cell(notebook.cell_with("warm_up("))
    options, alerts = asked.locator("button.warm-up"), asked.get_by_role("alert")
    assert options.count() >= 9 and alerts.count() == 0
    options.first.click()
    until(notebook.page, lambda: alerts.count() == 1, "the first answer is told")
    options.last.focus()
    notebook.page.keyboard.press("Enter")
    until(notebook.page, lambda: alerts.count() == 2, "the second answer is told")
    for said, option in zip(alerts.all_inner_texts(), (options.first, options.last), strict=True):
        right = said.startswith("Right.")
        assert right or said.startswith("Not quite."), said
        assert option.inner_text().startswith("✓" if right else "✗"), option.inner_text()


def pictures(notebook, cell):
    """A digest of each picture below a cell: of what it shows, as the address of a widget's picture changes."""
    shown = notebook._cell(cell).locator(".jp-OutputArea-output img").evaluate_all(
        "all => Promise.all(all.map(async i => (await fetch(i.src)).text()))")
    return [hashlib.sha256(picture.encode()).hexdigest() for picture in shown]


def reopened(lab, name, cell):
    """The notebook in a new page, with the widgets of a cell. ipywidgets asks the kernel for them and waits for four
    seconds; on a busy machine that may be too short, and a reader reloads the page."""
    from playwright.sync_api import TimeoutError as TooLong

    for last in (False, False, True):
        lab.page.close()
        notebook = lab.open(name, fresh=False)
        try:
            notebook._cell(cell).get_by_role("radio").first.wait_for(timeout=60_000)
            return notebook
        except TooLong:
            if last:
                raise


def test_predict_slide_reload_and_find_your_progress(lab):
    """Lesson 05: a prediction and a slider, both by keyboard; then everything is closed and opened again.

    Only the cells for it are run; what the lesson trains is no part of it."""
    name = lesson("05")
    with lab.open(name) as notebook:
        asked, shown = (notebook.cell_with(f'{word}("05-spread"') for word in ("predict", "reveal"))
        slides = notebook.cell_with("plots.slider(")
        notebook.run("from helpers.checks import")
        notebook.run("words = ")
        notebook.run(asked)
        assert "You predicted" not in notebook.run(shown)["output"]
        notebook.run(slides)
        assert not notebook.errors(), notebook.errors()
        choices = notebook._cell(asked).get_by_role("radio")
        assert choices.count() == 3
        choices.nth(1).focus()
        notebook.page.keyboard.press("Space")  # "twice as large"; arrow keys belong to JupyterLab here
        notebook.wait_idle()
        assert choices.nth(1).is_checked()
        assert "You predicted that" in notebook.run(shown)["output"]

        before = pictures(notebook, slides)
        handle = notebook._cell(slides).get_by_role("slider")
        assert len(before) == 1 and handle.count() == 1
        handle.scroll_into_view_if_needed()
        handle.focus()
        notebook.page.keyboard.press("ArrowLeft")
        notebook.wait_idle()
        until(notebook.page, lambda: "64" in notebook._cell(slides).locator(".widget-readout").inner_text(),
              "the slider moves")
        after = until(notebook.page, lambda: [now for now in pictures(notebook, slides) if now not in before],
                      "the figure follows the slider")
        assert len(pictures(notebook, slides)) == 1

        told = notebook.answer("score_variance", "def score_variance(d_k, n, rng):\n"
                               "    q, k = rng.standard_normal((2, n, d_k))\n    return (q * k).sum(axis=1).var()")
        assert "Passed" in told, told
        notebook.save()
    with reopened(lab, name, asked) as notebook:  # what was typed, predicted and drawn is there
        assert notebook._cell(asked).get_by_role("radio").nth(1).is_checked()
        until(notebook.page, lambda: pictures(notebook, slides) == after, "the figure is there")
        assert not notebook.console_errors(), notebook.console_errors()
        assert "rng.standard_normal((2, n, d_k))" in notebook.cells()[notebook.cell_with("def score_variance(")]["source"]
        notebook.run("from helpers.checks import")
        notebook.run(asked)
        assert notebook._cell(asked).get_by_role("radio").nth(1).is_checked()
    with lab.open(lesson("00")) as notebook:
        notebook.run("from helpers.checks import")
        said = notebook.run("show_progress()")["output"]
        assert "score_variance" in said, said


@pytest.mark.weekly
def test_our_html_can_be_read_in_both_themes(at_peace):
    """Notes, tables and verdicts have the contrast that WCAG AA asks of text."""
    notebook = at_peace(lesson("02"))
    notebook.run("from helpers.checks import")
    assert "Not yet" in notebook.answer("softmax", WRONG_AXIS)
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        notebook.page.evaluate("theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme})", theme)
        notebook.page.wait_for_function("theme => document.body.dataset.jpThemeName === theme", arg=theme)
        notebook.settle()
        found = axe_findings(notebook.page, ".jp-OutputArea-output[data-mime-type='text/html']", runOnly=["color-contrast"])
        assert not found, "\n".join([theme, *found])
