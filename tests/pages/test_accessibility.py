"""Accessibility: axe finds nothing but what it calls minor on any kind of page, in light and dark, wide and narrow."""

import pytest
from browser import REPO, Window, axe_findings

HTML = REPO / "build" / "book" / "html"
KINDS = ["index", "live", "explainer", "register", "claims/C98", "reference/glossary", "01_word_embeddings_and_similarity",
         "07_multi_head_attention", "12_looking_inside", "experiments/07_multi_head_attention",
         "solutions/07_multi_head_attention"]


@pytest.fixture(scope="module")
def window(built, browser):
    window = Window(browser)
    yield window
    window.context.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("kind", KINDS)
def test_axe_finds_nothing(window, kind, theme):
    page = window.new_page()
    page.emulate_media(color_scheme=theme)
    page.goto((HTML / f"{kind}.html").as_uri())
    page.evaluate("() => window.MathJax && MathJax.startup.promise")
    page.locator("main, [role=main]").first.wait_for()  # the explainer shows it when its model is read
    for width in (1366, 390):
        page.set_viewport_size({"width": width, "height": 900})
        findings = axe_findings(page, iframes=False)
        assert not findings, f"{kind}, {theme}, {width} px: {len(findings)} findings\n" + "\n".join(findings[:20])
    page.close()
