"""BertViz with no network: the page is packed whole, and it lives in a notebook and in an exported page."""

import base64
import gzip
import html
import re

import numpy as np
import pytest
import torch
from browser import REPO, look
from nbformat.v4 import new_code_cell, new_notebook, new_output, writes

from helpers import attention_views as views

TOKENS = ["[CLS]", "time", "flies", "like", "an", "arrow", "[SEP]"]


def weights(T=7, layers=2, heads=3):
    w = np.random.default_rng(0).random((layers, heads, T, T))
    return w / w.sum(-1, keepdims=True)


def vectors(T=7, layers=2, heads=3, d_k=4):
    return np.random.default_rng(1).normal(size=(layers, heads, T, d_k))


@pytest.fixture
def shown(monkeypatch):
    """What a view would show: a list of pages, packed and unpacked."""
    pages = []

    def show(page, title):
        packed = views.offline(page, title)
        code = re.search(r'atob\("([^"]*)"\)', html.unescape(packed)).group(1)
        pages.append((packed, gzip.decompress(base64.b64decode(code)).decode()))

    monkeypatch.setattr(views, "_show", show)
    return pages


def test_nothing_is_loaded_from_outside_and_the_same_view_is_the_same_text(shown):
    for _ in range(2):
        views.head_view(weights(), TOKENS, "heads", sentence_b_start=3)
        views.model_view(weights(), TOKENS, "model")
        views.neuron_view(weights(), vectors(), vectors(), TOKENS, "neurons")
        views.neuron_view(weights(), vectors(), vectors(), [f"w{i}" for i in range(7)], "causal", causal=True)
    assert shown[:4] == shown[4:]
    for packed, page in shown[:4]:
        assert not re.search(r"<(script|link|img)[^>]*(src|href)=", page)
        assert "cdnjs" not in page and "http" not in packed
        assert packed.startswith("<div>") and packed.count("'") % 2 == 0
        assert "d3js.org v5" in page and "jQuery v3" in page
        assert page.index("jQuery v3") < page.index("requirejs(")
    assert len({re.search("bertviz-[0-9a-f]{12}", page).group() for _, page in shown[:4]}) == 4


def test_weights_are_rounded_and_given_once(shown):
    views.head_view(weights(), TOKENS, "heads")
    views.head_view([torch.as_tensor(w, dtype=torch.float32, device="cpu").requires_grad_() for w in weights()],
                    TOKENS, "heads")
    assert shown[0] == shown[1]
    numbers = re.findall(r"0\.\d+", shown[0][1].split("requirejs(")[-1].split("BOXHEIGHT")[0])
    assert len(numbers) >= 2 * 3 * 7 * 7 * 0.9 and max(map(len, numbers)) == 5
    assert len(numbers) <= 2 * 3 * 7 * 7


def test_a_last_digit_does_not_change_what_nbval_compares(shown):
    from nbval.plugin import get_sanitize_patterns

    patterns = get_sanitize_patterns((REPO / "tests" / "notebooks" / "sanitize.cfg").read_text())
    (regex, replacement), = patterns
    for w in (weights(), weights() + 0.001):
        views.head_view(w, TOKENS, "heads")
    views.head_view(weights(), TOKENS, "other")
    same, digit, other = (re.sub(regex, replacement, packed) for packed, _ in shown)
    assert shown[0] != shown[1] and same == digit != other and len(same) < 700


def test_tokens_and_titles_are_text_and_nothing_else(shown):
    views.head_view(weights(2, 1, 1), ["</script><b>", "it's \"&\""], "it's <b>")
    packed, page = shown[0]
    assert "<b>" not in packed and packed.count("<iframe") == 1
    assert packed.count("'") % 2 == 0 and "it&#x27;s &lt;b&gt;" in packed
    assert page.count("</script><b>") == 0


def test_bad_input_is_told():
    with pytest.raises(ValueError, match=r"\(h, 2, 2\) for 2 tokens, and have \(3, 7, 7\)"):
        views.head_view(weights(), ["a", "b"], "x")
    with pytest.raises(ValueError, match="no weights"):
        views.model_view([], [], "x")
    with pytest.raises(ValueError, match="begin with .CLS."):
        views.neuron_view(weights(2), vectors(2), vectors(2), ["a", "b"], "x")


def test_a_missing_package_is_told_in_one_sentence(monkeypatch):
    monkeypatch.setattr(views, "SCRIPTS", {"no_such_package": ("no-such-package", "d3.js")})
    with pytest.raises(views.ViewNotAvailable, match="pip install no-such-package"):
        views.head_view(weights(), TOKENS, "x")


# ---------------------------------------------------------------- in a browser

SOURCE = """
import numpy as np
from helpers import attention_views as views
rng = np.random.default_rng(0)
weights = rng.dirichlet(np.ones(7) / 3, size=(2, 3, 7))
vectors = rng.normal(size=(2, 3, 7, 4))
tokens = "[CLS] time flies like an arrow [SEP]".split()
views.head_view(weights, tokens, "heads", sentence_b_start=3)
views.model_view(weights, tokens, "model")
views.neuron_view(weights, vectors, vectors, tokens, "neurons")
"""


def test_views_live_in_jupyterlab_with_no_network_and_after_saving(lab):
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    (lab.root / "notebooks" / "views.ipynb").write_text(writes(new_notebook(cells=[new_code_cell(SOURCE)],
                                                                            metadata=metadata)))
    for run in (True, False):  # and re-opened, as it was saved
        lab.outside.clear()
        with lab.open("views.ipynb", fresh=False) as notebook:
            if run:
                notebook.run_all()
                assert not notebook.errors(), notebook.errors()
            for title, hovered in (("heads", "flies"), ("model", None), ("neurons", "flies")):
                look(notebook.page, title, hovered)
            if run:
                notebook.screenshot(REPO / "build" / "screenshots" / "views")
                notebook.page.keyboard.press("ControlOrMeta+S")
                notebook.page.wait_for_timeout(1500)
            assert not notebook.console_errors(), notebook.console_errors()
        assert not lab.outside, lab.outside


def test_untrusted_pages_say_how_to_see_the_view(lab):
    notebook = new_notebook(cells=[new_code_cell("pass", execution_count=1)], metadata={
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}})
    page = views.offline("<div id='vis'></div>", "unseen")
    notebook.cells[0].outputs = [new_output("display_data", {"text/html": page})]
    (lab.root / "notebooks" / "untrusted.ipynb").write_text(writes(notebook))
    lab.trusted = False
    try:
        with lab.open("untrusted.ipynb", fresh=False) as opened:
            assert "Trust Notebook" in opened.cells()[0]["output"]
    finally:
        lab.trusted = True


def test_views_live_in_an_exported_page(lab, shown, tmp_path):
    from nbconvert import HTMLExporter

    notebook = new_notebook(cells=[new_code_cell("views")])
    views.head_view(weights(), TOKENS, "exported")
    notebook.cells[0].outputs = [new_output("display_data", {"text/html": shown[0][0]})]
    path = tmp_path / "page.html"
    path.write_text(HTMLExporter().from_notebook_node(notebook)[0])
    page = lab._context.new_page()
    try:
        page.goto(path.as_uri(), wait_until="commit")  # nbconvert's own page asks for MathJax, and waits for it
        look(page, "exported", "flies")
    finally:
        page.close()
        lab.outside.clear()
