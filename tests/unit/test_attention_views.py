"""BertViz with no network: the page is packed whole, and what is in it is text."""

import base64
import gzip
import html
import re
from pathlib import Path

import numpy as np
import pytest

from helpers.page import attention_views as views

REPO = Path(__file__).resolve().parents[2]
TOKENS = ["[CLS]", "time", "flies", "like", "an", "arrow", "[SEP]"]


def weights(T=7, layers=2, heads=3):
    w = np.random.default_rng(0).random((layers, heads, T, T))
    return w / w.sum(-1, keepdims=True)


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


def test_a_last_digit_does_not_change_what_nbval_compares(shown):
    from nbval.plugin import get_sanitize_patterns

    patterns = get_sanitize_patterns((REPO / "tests" / "notebooks" / "sanitize.cfg").read_text())
    (regex, replacement), = patterns
    for w in (weights(), weights() + 0.001):
        views.head_view(w, TOKENS, "heads")
    views.head_view(weights(), TOKENS, "other")
    same, digit, other = (re.sub(regex, replacement, packed) for packed, _ in shown)
    assert shown[0] != shown[1] and same == digit != other and len(same) < 1200


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
        views.neuron_view(weights(2), np.ones((2, 3, 2, 4)), np.ones((2, 3, 2, 4)), ["a", "b"], "x")


def test_a_missing_package_is_told_in_one_sentence(monkeypatch):
    monkeypatch.setattr(views, "SCRIPTS", {"no_such_package": ("no-such-package", "d3.js")})
    with pytest.raises(views.ViewNotAvailable, match="pip install no-such-package"):
        views.head_view(weights(), TOKENS, "x")
