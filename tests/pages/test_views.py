"""BertViz in a real JupyterLab, with the network closed; test_book.py looks at the same views in an exported page."""

from browser import lesson, look, look_at_lesson_12
from nbformat.v4 import new_code_cell, new_output

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
    notebook.save()
    for opened in (notebook, None):  # and re-opened, as it was saved
        if opened is None:
            notebook.close()
            opened = lab.open(notebook.name, fresh=False, kernel=False)
        for title, hovered in (("heads", "flies"), ("model", None), ("neurons", "flies")):
            look(opened.page, title, hovered)
        assert not opened.console_errors(), opened.console_errors()
    assert not lab.outside, lab.outside


def test_untrusted_pages_say_how_to_see_the_view(lab, made):
    page = views.offline("<div id='vis'></div>", "unseen")
    cell = new_code_cell("pass", execution_count=1, outputs=[new_output("display_data", {"text/html": page})])
    lab.trusted = False
    try:
        assert "Trust Notebook" in made(cell, kernel=False).cells()[0]["output"]
    finally:
        lab.trusted = True


def test_the_stored_views_of_lesson_12_answer(at_peace):
    """Point at a token in every view."""
    look_at_lesson_12(at_peace(lesson("12"), kernel=False).page)
