"""BertViz in a real JupyterLab and in an exported page, with the network closed."""

import numpy as np
import pytest
from browser import VIEWS, lesson, look
from nbformat.v4 import new_code_cell, new_notebook, new_output

from helpers.page import attention_views as views

SOURCE = """
import numpy as np
from helpers.page import attention_views as views
rng = np.random.default_rng(0)
weights = rng.dirichlet(np.ones(7) / 3, size=(2, 3, 7))
vectors = rng.normal(size=(2, 3, 7, 4))
tokens = "[CLS] time flies like an arrow [SEP]".split()
views.head_view(weights, tokens, "heads", sentence_b_start=3)
views.model_view(weights, tokens, "model")
views.neuron_view(weights, vectors, vectors, tokens, "neurons")
"""


def test_views_live_in_jupyterlab_and_after_saving(lab, made):
    """Of views made here; the next test looks each time at those that are stored in lesson 12."""
    notebook = made(new_code_cell(SOURCE))
    notebook.run_all()
    assert not notebook.errors(), notebook.errors()
    notebook.save()
    for opened in (notebook, None):  # and re-opened, as it was saved
        if opened is None:
            notebook.close()
            opened = lab.open(notebook.name, fresh=False, kernel=False)
        for title, hovered in (("heads", "flies"), ("model", None), ("neurons", "flies")):
            look(opened.page, title, hovered)
        assert not opened.console_errors(), opened.console_errors()
    assert not lab.outside, lab.outside


def views_of_lesson_12(notebook):
    """Point at a token in every view: title -> how many lines it has."""
    titles = notebook.page.locator("iframe[srcdoc]").evaluate_all("frames => frames.map(f => f.title)")
    lines = {}
    for kind, (wanted, tokens, clicked) in VIEWS.items():
        mine = [title for title in titles if title.startswith(kind)]
        assert len(mine) == wanted, f"{wanted} {kind}s expected in {titles}"
        for title in mine:
            token = next(token for words, token in tokens.items() if words in title)
            lines[title] = look(notebook.page, title, token, clicked)
    assert len(lines) == len(titles) and min(lines.values()) > 40, lines
    return lines


def test_the_stored_views_of_lesson_12_answer(at_peace):
    views_of_lesson_12(at_peace(lesson("12"), kernel=False))


@pytest.mark.weekly
def test_the_views_of_lesson_12_answer_after_running_and_saving(at_peace):
    """Every view is run, counted, pointed at; then the same in the file as it was saved and opened again."""
    notebook = at_peace(lesson("12"))
    notebook.run_all()
    assert not notebook.errors(), notebook.errors()
    seen = views_of_lesson_12(notebook)
    notebook.save()
    notebook.close()
    assert views_of_lesson_12(at_peace(lesson("12"), fresh=False, kernel=False)) == seen


def test_untrusted_pages_say_how_to_see_the_view(lab, made):
    page = views.offline("<div id='vis'></div>", "unseen")
    cell = new_code_cell("pass", execution_count=1, outputs=[new_output("display_data", {"text/html": page})])
    lab.trusted = False
    try:
        assert "Trust Notebook" in made(cell, kernel=False).cells()[0]["output"]
    finally:
        lab.trusted = True


def test_views_live_in_an_exported_page(lab, monkeypatch, tmp_path):
    from nbconvert import HTMLExporter

    packed = []
    monkeypatch.setattr(views, "_show", lambda page, title: packed.append(views.offline(page, title)))
    tokens = "[CLS] time flies like an arrow [SEP]".split()
    views.head_view(np.random.default_rng(0).dirichlet(np.ones(7), size=(2, 3, 7)), tokens, "exported")
    cell = new_code_cell("views", outputs=[new_output("display_data", {"text/html": packed[0]})])
    path = tmp_path / "page.html"
    path.write_text(HTMLExporter().from_notebook_node(new_notebook(cells=[cell]))[0])
    page = lab.new_page()
    try:
        page.goto(path.as_uri(), wait_until="commit")  # nbconvert's own page asks for MathJax, and waits for it
        look(page, "exported", "flies")
    finally:
        page.close()
        lab.outside.clear()
