"""The live explainer: its numbers are torch's, it can be used with keyboard and screen reader, and it needs no network."""

import contextlib
import gzip
import json
import re
from base64 import b64decode

import pytest
import torch
from browser import FITS, REACHES, REPO, until

from helpers import grammars, inside, show, vocabularies
from scripts import explainer

BOOK_JS = (REPO / "docs" / "book" / "static" / "book.js").read_text(encoding="utf-8")
TEXTS = ["", "the keys to the cabinet", "anna tells ben that the kings near the cabinets love the doors and ben thanks",
         "she bears the pain . they watch the game and"]


@pytest.fixture(scope="module")
def mini():
    return inside.load_mini()


@contextlib.contextmanager
def opened(browser):
    """The page in a window of its own, with every address but the file's own closed."""
    context = browser.new_context(viewport={"width": 1366, "height": 900})
    asked, errors = [], []
    page = context.new_page()
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(explainer.PAGE.as_uri())
    page.wait_for_function("window.explainer && window.explainer.ready")
    yield page
    context.close()
    assert not errors and all(url.startswith(("file:", "data:", "blob:")) for url in asked), (errors, asked)


@pytest.fixture
def page(browser):
    """One that nobody has touched."""
    with opened(browser) as page:
        yield page


@pytest.fixture(scope="module")
def computer(browser):
    """One for all tests that only have it compute, which leaves nothing behind."""
    with opened(browser) as page:
        yield page


def ids_of(text, vocabulary):
    return [vocabularies.BOS, *vocabulary.encode(text.split())]


@pytest.mark.parametrize("text", TEXTS)
def test_the_page_computes_what_torch_computes(computer, mini, text):
    model, vocabulary = mini
    ids = ids_of(text, vocabulary)
    found = computer.evaluate("ids => explainer.run(ids)", ids)
    with torch.no_grad():
        logits, weights = model.double()(torch.tensor([ids]), weights=True)
    assert torch.allclose(torch.tensor(found["logits"], dtype=torch.float64), logits[0], atol=1e-5)
    for layer, heads in enumerate(found["heads"]):
        ours = torch.tensor([head["weights"] for head in heads], dtype=torch.float64)
        assert torch.allclose(ours, weights[layer][0], atol=1e-5)


def test_what_is_switched_off_is_off_in_torch_too(computer, mini):
    """No mask, no scaling, a head whose columns of W_o are 0, a block that is left out."""
    ids = ids_of(TEXTS[2], mini[1])

    def theirs(change):
        model, _ = inside.load_mini()
        causal, blocks = change(model.double())
        model.causal, model.blocks = causal, torch.nn.ModuleList(blocks)
        with torch.no_grad():
            return model(torch.tensor([ids]))[0]

    def unscaled(model):
        for block in model.blocks:
            block.attention.scale = 1.0
        return True, model.blocks

    def beheaded(model):
        with torch.no_grad():
            model.blocks[0].attention.W_o.weight[:, 48:64] = 0
        return True, model.blocks

    cases = {"({mask: false})": lambda model: (False, model.blocks), "({scale: false})": unscaled,
             "({off: new Set(['0,3'])})": beheaded, "({layersOff: new Set([1])})": lambda model: (True, model.blocks[:1])}
    for options, change in cases.items():
        found = computer.evaluate(f"ids => explainer.run(ids, {options}).logits", ids)
        assert torch.allclose(torch.tensor(found, dtype=torch.float64), theirs(change), atol=1e-5), options


def test_the_grammars_probabilities_are_exact(computer):
    grammar = grammars.agreement_grammar()
    tokens = grammar.write(4, 30, torch.Generator().manual_seed(0)).tokens
    states = grammar.states(tokens)
    for row in range(4):
        for t in (0, 7, 19, 29):
            found = computer.evaluate("ids => explainer.exact(ids)", tokens[row, :t + 1].tolist())
            assert torch.allclose(torch.tensor(found, dtype=torch.float64), grammar.p[states[row, t]], atol=1e-9)


def test_a_person_can_use_it(page):
    text, said = page.locator("#text"), page.locator("#said")
    text.fill("the keys to the zebra cabinet")
    assert "zebra" in said.inner_text() and "left out" in said.inner_text()
    assert page.locator(".token").all_inner_texts() == ["BOS", "the", "keys", "to", "the", "cabinet"]
    text.fill("the keys to the cabinet")
    first = page.locator("#next button").first
    assert said.inner_text() == "" and page.locator("#next tr").count() >= 3
    word = first.inner_text()
    first.click()  # the likeliest word is written
    assert text.input_value() == f"the keys to the cabinet {word}"
    before = page.locator("#next").inner_text()
    page.get_by_label("use head (0, 3)").uncheck()
    page.locator("#mask").uncheck()
    assert page.locator("#next").inner_text() != before
    page.get_by_role("button", name="As trained").click()
    assert page.locator("#next").inner_text() == before


def test_the_keyboard_reaches_every_weight(page):
    page.locator("#text").fill("the keys to the cabinet are")
    canvas = page.locator("canvas").nth(3)
    said = canvas.get_attribute("aria-label")
    assert re.fullmatch(r"Attention of head \(0, 3\)\. are looks most at \w+, [01]\.\d\d\.", said)
    canvas.focus()
    page.keyboard.press("ArrowLeft")
    told = page.locator("#told").inner_text()
    assert told.startswith("Head (0, 3): are (6) gives cabinet (5) the weight 0.")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowRight")
    assert "may not see" in page.locator("#told").inner_text()
    page.keyboard.press("Enter")
    assert "query of cabinet" in page.locator("#lead").inner_text()
    assert page.locator("#steps tbody tr").count() == 7


def test_it_fits_a_phone(page):
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_page_is_the_template_with_the_weights_and_the_grammar():
    """Compared unpacked: another zlib packs the same bytes in another way."""
    def facts(text):
        found = json.loads(re.search(r'id="facts">(.*?)</script>', text, re.DOTALL)[1])
        return found["shares"], *(gzip.decompress(b64decode(found[name])) for name in ("weights", "grammar"))

    stored = explainer.PAGE.read_text(encoding="utf-8")
    assert facts(stored) == facts(explainer.build()), "Run `python -m scripts.explainer`."
    before, after = explainer.TEMPLATE.read_text(encoding="utf-8").split("{{facts}}")
    assert stored.startswith(before) and stored.endswith(after), "Run `python -m scripts.explainer`."


def test_lesson_11_shows_this_page():
    lesson = next((explainer.ROOT / "notebooks").glob("11_*.ipynb"))
    shown = [html for cell in json.loads(lesson.read_text(encoding="utf-8"))["cells"] for output in cell.get("outputs", [])
             if "A transformer at work" in (html := "".join(output.get("data", {}).get("text/html", "")))]
    page = show.frame(explainer.PAGE.read_text(encoding="utf-8"), "A transformer at work", "", 900).partition("<iframe")[2]
    assert len(shown) == 1 and page in shown[0], f"Run {lesson.name} again with `make execute`."


@pytest.mark.parametrize("where", ["the book", "a lesson"])
def test_in_a_frame_it_hides_the_note_of_a_lesson_and_nothing_of_the_book(browser, where):
    """In both the frame becomes as high as the page in it, which reaches nothing outside."""
    inside_it = explainer.PAGE.read_text(encoding="utf-8")
    shown = (show.frame(inside_it, "live", "What stands before it", 900) if where == "a lesson" else
             "<p>What stands before it</p><iframe src='explainer.html' sandbox='allow-scripts' class='explainer tall'>"
             "</iframe>")
    around = f"<!doctype html>{shown}<script>{BOOK_JS if where == 'the book' else ''}</script>"
    context = browser.new_context()
    page = context.new_page()
    page.route("http://course.test/**", lambda route: route.fulfill(
        content_type="text/html", body=inside_it if route.request.url.endswith("explainer.html") else around))
    page.goto("http://course.test/index.html")
    page.frame_locator("iframe").locator("#next button").first.wait_for()
    until(page, lambda: page.frames[1].evaluate(FITS), "the frame is as high as its page")
    assert page.get_by_text("What stands before it").is_visible() == (where == "the book")
    assert page.frames[1].evaluate(REACHES) == "nothing"
    context.close()
