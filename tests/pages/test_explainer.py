"""The live explainer: its numbers are torch's, it can be used with keyboard and screen reader, and it needs no network."""

import contextlib
import copy
import gzip
import json
import random
import re
from base64 import b64decode

import pytest
import torch
from browser import FITS, REACHES, REPO, until

from helpers import grammars, inside, vocabularies
from helpers.page import show
from scripts import explainer

BOOK_JS = (REPO / "docs" / "book" / "static" / "book.js").read_text(encoding="utf-8")
THANKS = "anna tells ben that the kings near the cabinets love the doors and ben thanks"
# Sends all logits and all weights as one string of float32: much quicker than as numbers in JSON.
COMPUTE = """cases => cases.map(([ids, mask, scale, off, layersOff]) => {
  const {logits, heads} = explainer.run(ids, {mask, scale, off: new Set(off), layersOff: new Set(layersOff)});
  const numbers = [...logits.flat(), ...heads.flat().flatMap(head => head.weights.flat())];
  const bytes = new Uint8Array(new Float32Array(numbers).buffer);
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(text); })"""
FOCUSED = "document.activeElement.id || document.activeElement.textContent.trim()"


@pytest.fixture(scope="module")
def mini():
    return inside.load_mini()


def load(page, address="", scripts=True):
    """Load the explainer into ``page``, also where only what follows a # in its address differs."""
    page.goto("about:blank")
    page.goto(explainer.PAGE.as_uri() + address)
    if scripts:
        page.wait_for_function("window.explainer && window.explainer.ready")


@contextlib.contextmanager
def opened(browser, address="", **settings):
    """The page in a window of its own, with every address but the file's own closed."""
    context = browser.new_context(**{"viewport": {"width": 1366, "height": 900}, "reduced_motion": "reduce"} | settings)
    asked, errors = [], []
    page = context.new_page()
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    load(page, address, settings.get("java_script_enabled", True))
    yield page
    context.close()
    assert not errors and all(url.startswith(("file:", "data:", "blob:")) for url in asked), (errors, asked)


@pytest.fixture(scope="module")
def computer(browser):
    """One window for all tests: a new one costs more than twice what loading the page again does."""
    with opened(browser) as page:
        yield page


@pytest.fixture
def page(computer):
    """The page as if nobody had touched it."""
    computer.evaluate("localStorage.clear()")
    computer.set_viewport_size({"width": 1366, "height": 900})
    computer.emulate_media(reduced_motion="reduce")
    load(computer)
    return computer


def told(page):
    """Each row of the next words: (word, model's, grammar's)."""
    return [tuple(row.split()) for row in page.locator("#next tbody tr").all_inner_texts()]


def bars(page):
    """Each row's bar and tick as shares of the scale; a tick is None where there is none."""
    return page.locator("#next tbody .track").evaluate_all("""tracks => tracks.map(track => {
        const [bar, tick] = track.children, share = size => parseFloat(size) / 100;
        return [share(bar.style.width), tick.hidden ? null : share(tick.style.left)]; })""")


def sentence(page):
    return page.locator(".words button").all_inner_texts()


@contextlib.contextmanager
def switched(model, mask, scale, off, without):
    """``model`` without its mask, without scaling, without heads (names "layer,head") and layers, for a while."""
    whole = copy.deepcopy(model.state_dict()) if off else {}
    blocks, before, model.causal = model.blocks, model.blocks[0].attention.scale, mask
    for block in blocks:
        block.attention.scale = before if scale else 1.0
    for layer, head in (map(int, name.split(",")) for name in off):
        blocks[layer].attention.W_o.weight[:, 16 * head:16 * (head + 1)] = 0
    model.blocks = torch.nn.ModuleList(block for number, block in enumerate(blocks) if number not in without)
    yield
    model.blocks, model.causal = blocks, True
    for block in blocks:
        block.attention.scale = before
    if off:
        model.load_state_dict(whole)


@torch.no_grad()
def test_the_page_computes_what_torch_computes(computer, mini):
    """Two hundred random texts, half of them the grammar's, with random switches; and the shortest and the longest one."""
    model, vocabulary = copy.deepcopy(mini[0]).double(), mini[1]
    chance = random.Random(0)
    written = grammars.agreement_grammar().write(100, 40, torch.Generator().manual_seed(0)).tokens.tolist()
    texts = [[vocabularies.BOS], [vocabularies.BOS, *range(3, 66)]]
    texts += [row[:chance.randint(2, 30)] for row in written]
    texts += [[vocabularies.BOS, *chance.choices(range(3, len(vocabulary)), k=chance.randint(0, 20))] for _ in range(100)]
    cases = [(ids, chance.random() < 0.7, chance.random() < 0.7, [f"{layer},{head}" for layer in (0, 1) for head in range(4)
              if chance.random() < 0.2], [layer for layer in (0, 1) if chance.random() < 0.2]) for ids in texts]
    cases[0] = (texts[0], True, True, [], [])
    found = computer.evaluate(COMPUTE, cases)
    for (ids, mask, scale, off, without), packed in zip(cases, found, strict=True):
        ours = torch.frombuffer(bytearray(b64decode(packed)), dtype=torch.float32).double()
        with switched(model, mask, scale, off, without):
            logits, weights = model(torch.tensor([ids]), weights=True)
        T, V = len(ids), len(vocabulary)
        maps = ours[T * V:].reshape(2, 4, T, T)
        assert (ours[:T * V].reshape(T, V) - logits[0]).abs().max() < 2e-5, (ids, mask, scale, off, without)
        for number, theirs in zip((number for number in (0, 1) if number not in without), weights, strict=True):
            assert (maps[number] - theirs[0]).abs().max() < 1e-6, (ids, mask, scale, off, without)


def test_the_grammars_probabilities_are_exact(computer):
    grammar = grammars.agreement_grammar()
    tokens = grammar.write(4, 30, torch.Generator().manual_seed(0)).tokens
    states = grammar.states(tokens)
    for row in range(4):
        for t in (0, 7, 19, 29):
            found = computer.evaluate("ids => explainer.exact(ids)", tokens[row, :t + 1].tolist())
            assert torch.allclose(torch.tensor(found, dtype=torch.float64), grammar.p[states[row, t]], atol=1e-9)


def test_each_word_that_it_knows_is_a_chip_of_one_kind(computer, mini):
    chips = [word for _, group in explainer.kinds(mini[1].words[3:]) for word in group]
    assert sorted(chips) == sorted(mini[1].words[3:]) == sorted(computer.locator("#known dd button").evaluate_all(
        "chips => chips.map(chip => chip.textContent)"))


def test_a_person_can_write(page):
    text, said = page.locator("#text"), page.locator("#said")
    text.fill('The keys, to the "zebra" cabinet! ')  # signs and capitals are passed over, as a person would
    assert said.inner_text() == "zebra is not among its 74 words and is left out."
    assert sentence(page) == ["BOS", "the", "keys", "to", "the", "cabinet"]
    text.fill("the keys to the kabinet ")
    said.get_by_role("button", name="cabinet").click()
    assert text.input_value() == "the keys to the cabinet " and said.inner_text() == ""
    text.fill("anna tells ben! ")
    assert said.inner_text() == "" and sentence(page) == ["BOS", "anna", "tells", "ben"]
    text.fill("")
    text.press_sequentially("the cab")
    options = page.locator("#options button")
    assert options.all_inner_texts() == ["cabinets", "cabinet"] and said.inner_text() == ""
    text.press("ArrowDown")
    text.press("ArrowDown")
    assert text.get_attribute("aria-activedescendant") == options.last.get_attribute("id")
    text.press("Enter")
    assert text.input_value() == "the cabinet " and not options.first.is_visible()
    page.locator("#known summary").click()
    page.locator("#known").get_by_role("button", name="near", exact=True).click()
    assert sentence(page) == ["BOS", "the", "cabinet", "near"]
    page.locator("#back").click()
    assert sentence(page) == ["BOS", "the", "cabinet"]


def test_bars_have_one_scale_and_a_dash_says_that_the_grammar_says_nothing(page):
    for text in ("the keys to the cabinet", "she bears the", ""):
        page.locator("#text").fill(text)
        for (word, share, right), (bar, tick) in zip(told(page), bars(page), strict=True):
            assert bar == pytest.approx(float(share), abs=6e-4), word
            assert tick == pytest.approx(float(right), abs=6e-4), word
    assert page.locator("#silent").inner_text() == ""
    page.locator("#text").fill("the the the")
    assert {right for _, _, right in told(page)} == {"–"} and {tick for _, tick in bars(page)} == {None}
    assert "says nothing" in page.locator("#silent").inner_text()
    page.locator("#text").fill("the the the .")  # all is well again
    assert "–" not in {right for _, _, right in told(page)}


def test_the_next_word_is_written_and_drawn_from_the_bars(page):
    page.locator("#text").fill("the keys to the cabinet")
    first = page.locator("#next button").first
    word = first.inner_text()
    first.click()
    assert sentence(page)[-1] == word
    page.evaluate("Math.random = () => 0.999999")  # the last word that the model thinks possible
    page.locator("#text").fill(THANKS)
    page.locator("#one").click()
    assert len(sentence(page)) == 17 and sentence(page)[-1] == "thanks"
    page.evaluate("Math.random = () => 0.5")
    page.locator("#text").fill(THANKS)
    page.locator("#one").click()
    assert sentence(page)[-1] == "anna"
    page.locator("#on").click()  # to the full stop, at once where no motion is wanted
    assert sentence(page)[-1] == "." and page.locator("#on").inner_text() == "Write on"
    page.locator("#other").click()
    page.evaluate("let n = 0; Math.random = () => (n = (n * 75 + 74) % 65537) / 65537")
    page.locator("#other").click()
    assert len(sentence(page)) > 5 and "–" not in {right for _, _, right in told(page)}


def test_switches_change_what_it_says(page):
    before = told(page)
    page.get_by_label("use head (0, 3)").uncheck()
    page.locator("#mask").uncheck()
    assert told(page) != before
    page.get_by_role("button", name="As trained").click()
    assert told(page) == before and page.get_by_label("use head (0, 3)").is_checked()


def test_arcs_follow_a_word(page):
    def arcs():
        return page.locator(".arcs path[stroke]").evaluate_all(
            "paths => paths.map(path => [path.getAttribute('stroke'), +path.getAttribute('stroke-width')])")

    assert page.locator("#told").inner_text().startswith("thanks looks most at ")
    before = arcs()
    assert len({stroke for stroke, _ in before}) == 8, "one colour a head"
    page.locator(".words button").nth(6).hover()
    assert page.locator("#told").inner_text().startswith("kings looks most at ") and arcs() != before
    page.locator("h1").hover()
    assert arcs() == before
    page.locator(".words button").nth(6).click()  # this one asks now
    assert page.locator(".words [aria-pressed=true]").inner_text() == "kings"
    widest = max(arcs(), key=lambda arc: arc[1])
    best = max((weight, head) for head in range(8) for weight in page.evaluate(
        f"explainer.run([1, ...{ids_of('anna tells ben that the kings')}]).heads.flat()[{head}].weights[6]"))
    assert widest[0] == f"var(--h{best[1] // 4}{best[1] % 4})"


def ids_of(text):
    return inside.load_mini()[1].encode(text.split())


def test_the_keyboard_reaches_every_weight_and_is_never_thrown_back(page):
    page.locator("#text").fill("the keys to the cabinet are")
    thumbnail = page.locator("#maps button").nth(3)
    said = r"Look inside head \(0, 3\)\. are looks most at \w+, [01]\.\d\d\."
    assert re.fullmatch(said, thumbnail.get_attribute("aria-label"))
    thumbnail.press("Enter")
    page.locator(".big svg").focus()
    page.keyboard.press("ArrowLeft")
    assert page.locator("#at").inner_text().startswith("Head (0, 3): are (6) gives cabinet (5) the weight 0.")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowRight")
    assert "may not see" in page.locator("#at").inner_text()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    assert page.locator("#h-inside").inner_text() == "One dot product" and page.evaluate(FOCUSED) == "h-inside"
    page.locator("#trail button").first.press("Enter")  # back out, to where it came from
    assert page.evaluate(FOCUSED) != "" and page.evaluate("document.activeElement !== document.body")
    for place in ("#one", "#mask", "#layer0", "#next button >> nth=0", "#maps input >> nth=2", "#examples button >> nth=1",
                  "#reset"):
        page.locator(place).focus()
        held = page.locator(place).element_handle()
        page.keyboard.press("Space")
        assert held.evaluate("node => node === document.activeElement"), place
        seen = held.evaluate("node => { const at = node.getBoundingClientRect(); return at.bottom > 0 && at.top < 900; }")
        assert seen, f"{place} is still in sight"
    page.locator(".words [tabindex='0']").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert page.evaluate(FOCUSED) == sentence(page)[1] == page.locator(".words [aria-pressed=true]").inner_text()


def test_from_the_whole_to_one_dot_product(page, mini):
    model = copy.deepcopy(mini[0]).double()
    with torch.no_grad():
        _, weights = model(torch.tensor([[vocabularies.BOS, *ids_of(THANKS)]]), weights=True)
    assert page.locator("#stages li").count() == 6 and "anna" in page.locator("#stages li").last.inner_text()
    page.locator(".scene [data-head='13']").click()
    assert page.locator("#h-inside").inner_text() == "Inside head (1, 3)" and page.locator("#steps tbody tr").count() == 16
    shown = [float(row.split("\t")[4]) for row in page.locator("#steps tbody tr").all_inner_texts()]
    assert torch.allclose(torch.tensor(shown, dtype=torch.float64), weights[1][0, 3, -1], atol=6e-4)
    page.locator("#steps").get_by_role("button", name="anna").click()
    rows = [row.split("\t") for row in page.locator("#products tbody tr").all_inner_texts()]
    products = [float(query) * float(key) for _, query, key, *_ in rows]
    sums = page.locator(".sum strong").all_inner_texts()
    assert len(rows) == 16 and rows[-1][-1] == sums[0] and sum(products) == pytest.approx(float(sums[0]), abs=0.5)
    assert float(sums[1]) == pytest.approx(float(sums[0]) / 4, abs=0.01) and float(sums[3]) == shown[1]
    page.locator("#trail button").nth(1).click()
    assert page.locator("#steps").is_visible()


def one_head_off(name):
    """Do a dare by switching off a head."""
    return lambda page: page.get_by_label(f"use head {name}").uncheck()


SOLUTIONS = (one_head_off("(0, 3)"), one_head_off("(1, 1)"),
             lambda page: page.locator("#text").fill("the king with the flies flies the kite"))


def test_dares_are_ticked_when_they_are_done(page):
    def done():
        return page.locator("#dares .mark").evaluate_all("marks => marks.map(mark => mark.ariaLabel === 'done')")

    assert done() == [False, False, False]
    for number, solve in enumerate(SOLUTIONS):
        page.locator("#dares li").nth(number).get_by_role("button").click()
        assert not done()[number], "not before it is done"
        solve(page)
        assert done()[number], number
    page.reload()
    until(page, lambda: done() == [True, True, True], "the ticks are kept")


def test_an_address_holds_text_and_switches(browser, page):
    page.locator("#text").fill("the keys, to the cabinet")
    page.get_by_label("use head (1, 2)").uncheck()
    page.locator("#scale").uncheck()
    page.locator("#layer0").uncheck()
    page.locator("#heat").fill("0.5")
    page.locator(".words button").nth(2).click()
    page.locator("#maps button").nth(5).click()
    until(page, lambda: "zoom=1.1" in page.url, "the address has it all")
    with opened(browser, "#" + page.url.partition("#")[2]) as other:
        assert told(other) == told(page) and sentence(other) == sentence(page)
        assert other.locator("#text").input_value() == "the keys, to the cabinet"
        assert not other.get_by_label("use head (1, 2)").is_checked() and other.locator("#degrees").inner_text() == "0.5"
        assert other.locator(".words [aria-pressed=true]").inner_text() == "keys"
        assert other.locator("#h-inside").inner_text() == "Inside head (1, 1)"
        other.evaluate("location.hash = 'text=she+bears+the'")
        until(other, lambda: sentence(other) == ["BOS", "she", "bears", "the"], "another address, another text")
        assert other.get_by_label("use head (1, 2)").is_checked()
        hostile = "text=<img src=x onerror=alert(1)>&off=9.9 x&zoom=7.7.7&temperature=-1&asks=99&without=5"
        other.evaluate("text => { location.hash = text; }", hostile)
        until(other, lambda: sentence(other) == ["BOS"], "what an address holds wrongly is passed over")
        assert "img" in other.locator("#said").inner_text() and other.locator("img").count() == 0


def test_it_plays_for_five_seconds_and_is_still_where_no_motion_is_wanted(page):
    lasting = "document.getAnimations().map(a => a.effect.getComputedTiming().endTime).reduce((a, b) => Math.max(a, b), 0)"
    page.locator("#play").click()
    assert page.evaluate(lasting) == 0 and page.locator("#stages li").first.is_visible()
    page.emulate_media(reduced_motion="no-preference")
    load(page)
    page.locator("#play").click()
    assert 4000 < page.evaluate(lasting) <= 5000


@pytest.mark.parametrize("address", ["", "?compact", "#text=the+keys+to+the+cabinet&zoom=1.3.1", "#zoom=0.3"])
def test_it_fits_a_phone(computer, address):
    page = computer
    page.set_viewport_size({"width": 390, "height": 844})
    load(page, address)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    beyond = page.locator(".words button, #next td, #maps label, #panel p, .sum li").evaluate_all(
        "nodes => nodes.filter(node => node.getBoundingClientRect().right > 390).length")
    assert beyond == 0


def test_the_compact_form_is_a_sentence_and_what_comes_next(computer):
    page = computer
    page.set_viewport_size({"width": 1366, "height": 900})
    load(page, "?compact&theme=dark")
    assert told(page)[0][0] == "anna" and page.locator(".arcs path[stroke]").count() > 5
    for hidden in ("h1", "#text", "#maps", "#inside", "#dares"):
        assert not page.locator(hidden).is_visible(), hidden
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(19, 20, 22)"
    assert page.evaluate("document.body.offsetHeight") < 620


def test_without_javascript_a_sentence_says_what_is_missing(browser):
    with opened(browser, java_script_enabled=False) as page:
        assert "needs JavaScript" in page.locator("noscript").inner_text()


def test_the_page_is_the_template_with_the_weights_and_the_grammar():
    """Compared unpacked: another zlib packs the same bytes in another way."""
    def parts(text):
        before, facts, after = re.fullmatch(r'(.*id="facts">)(.*?)(</script>.*)', text, re.DOTALL).groups()
        facts = json.loads(facts)
        unpacked = [gzip.decompress(b64decode(facts[name])) for name in ("weights", "grammar")]
        return before, after, facts["shares"], facts["kinds"], unpacked

    stored = explainer.PAGE.read_text(encoding="utf-8")
    assert parts(stored) == parts(explainer.build()), "Run `python -m scripts.explainer`."
    assert "{{" not in stored


def test_lesson_11_shows_this_page():
    lesson = next((explainer.ROOT / "notebooks").glob("11_*.ipynb"))
    shown = [html for cell in json.loads(lesson.read_text(encoding="utf-8"))["cells"] for output in cell.get("outputs", [])
             if "A transformer at work" in (html := "".join(output.get("data", {}).get("text/html", "")))]
    page = show.frame(explainer.PAGE.read_text(encoding="utf-8"), "A transformer at work", "", 900).partition("<iframe")[2]
    assert len(shown) == 1 and page in shown[0], f"Run {lesson.name} again with `make execute`."


@pytest.mark.parametrize("where", ["the book", "a lesson"])
def test_in_a_frame_it_hides_the_note_of_a_lesson_and_nothing_of_the_book(browser, where, monkeypatch):
    """In both the frame becomes as high as the page in it, which reaches nothing outside and follows the theme around it."""
    inside_it = explainer.PAGE.read_text(encoding="utf-8")
    shown = ("<p>What stands before it</p><iframe src='explainer.html' sandbox='allow-scripts' class='explainer tall' "
             "data-address=''></iframe>")
    if where == "a lesson":
        html = []
        monkeypatch.setattr(show, "display", lambda page, text: html.append(page))
        show.page("explainer.html", "What stands before it")
        shown = html[0]
    name = "data-theme='dark'" if where == "the book" else "data-jp-theme-light='false'"
    around = f"<!doctype html><body {name}>{shown}<script>{BOOK_JS if where == 'the book' else ''}</script>"
    context = browser.new_context()
    page = context.new_page()
    page.route("http://course.test/**", lambda route: route.fulfill(
        content_type="text/html", body=inside_it if route.request.url.endswith("explainer.html") else around))
    page.goto("http://course.test/index.html#text=she+bears+the")
    page.frame_locator("iframe").locator("#next button").first.wait_for()
    until(page, lambda: page.frames[1].evaluate(FITS), "the frame is as high as its page")
    assert page.get_by_text("What stands before it").is_visible() == (where == "the book")
    assert page.frames[1].evaluate(REACHES) == "nothing"
    theme = "document.documentElement.dataset.theme"
    until(page, lambda: page.frames[1].evaluate(theme) == "dark", "as dark as the page around it")
    page.evaluate("document.body.dataset.theme = 'light'; document.body.dataset.jpThemeLight = 'true'")
    until(page, lambda: page.frames[1].evaluate(theme) == "light", "and as light")
    if where == "the book":  # its address holds the text
        words = page.frame_locator("iframe").locator(".words button")
        until(page, lambda: words.count() == 4, "the text is the address's")
        page.frame_locator("iframe").locator("#next button").first.click()
        until(page, lambda: "index.html#text=she+bears+the+" in page.url, "and the address the text's")
    context.close()
