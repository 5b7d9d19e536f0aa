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
from browser import FITS, REACHES, REPO, Window, until

from helpers import grammars, inside
from helpers.page import show
from scripts import explainer, small_gpt

BOOK_JS = (REPO / "docs" / "book" / "static" / "book.js").read_text(encoding="utf-8")
PEACE = "a treaty of"  # after which it says peace
THANKS = "anna tells ben that the kings near the cabinets love the doors and ben thanks"
# Sends all logits and all weights as one string of float32: much quicker than as numbers in JSON.
COMPUTE = """cases => cases.map(([ids, mask, scale, off, layersOff, kind]) => {
  const {logits, heads} = explainer.run(ids, {mask, scale, off: new Set(off), layersOff: new Set(layersOff)}, kind);
  const numbers = [...logits.flat(), ...heads.flat().flatMap(head => head.weights.flat())];
  const bytes = new Uint8Array(new Float32Array(numbers).buffer);
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(text); })"""
RANDOM = "let n = 0; Math.random = () => (n = (n * 75 + 74) % 65537) / 65537"  # the same each time
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
    window = Window(browser, **settings)
    page = window.new_page()
    load(page, address, settings.get("java_script_enabled", True))
    yield page
    window.context.close()
    assert not window.problems()


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


def computed(page, cases):
    """What the page computes for each of these cases, as float64: all logits, then all weights of all heads."""
    return [torch.frombuffer(bytearray(b64decode(packed)), dtype=torch.float32).double()
            for packed in page.evaluate(COMPUTE, cases)]


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
    texts = [[grammars.BOS], [grammars.BOS, *range(3, 66)]]
    texts += [row[:chance.randint(2, 30)] for row in written]
    texts += [[grammars.BOS, *chance.choices(range(3, len(vocabulary)), k=chance.randint(0, 20))] for _ in range(100)]
    cases = [(ids, chance.random() < 0.7, chance.random() < 0.7, [f"{layer},{head}" for layer in (0, 1) for head in range(4)
              if chance.random() < 0.2], [layer for layer in (0, 1) if chance.random() < 0.2]) for ids in texts]
    cases[0] = (texts[0], True, True, [], [])
    for (ids, mask, scale, off, without), ours in zip(cases, computed(computer, cases), strict=True):
        with switched(model, mask, scale, off, without):
            logits, weights = model(torch.tensor([ids]), weights=True)
        T, V = len(ids), len(vocabulary)
        maps = ours[T * V:].reshape(2, 4, T, T)
        assert (ours[:T * V].reshape(T, V) - logits[0]).abs().max() < 2e-5, (ids, mask, scale, off, without)
        for number, theirs in zip((number for number in (0, 1) if number not in without), weights, strict=True):
            assert (maps[number] - theirs[0]).abs().max() < 1e-6, (ids, mask, scale, off, without)


SCRIPTS = (
    "The quick brown fox, aged 3.5 years, wouldn't jump!",
    "Grüße aus Zürich: 5 €", "Съешь же ещё этих мягких булок", "我們 和平 民主",
    "नमस्ते दुनिया", "مرحبا بالعالم", "שלום עולם", "ราชอาณาจักรไทย", "한국어 문장",
    "👩‍👩‍👧 🏳️‍🌈 🙂", "  \n two   blanks\t", "a" * 300, "ΣΟΦΟΣ İstanbul")


def random_texts():
    """Two hundred: pieces of later addresses, scripts of the world, and letters, signs and scripts in a random order."""
    chance, later = random.Random(0), small_gpt.corpora()[1]
    signs = "".join(SCRIPTS) + "abc .,;'-\"%"
    pieces = [later[at:at + chance.randint(1, 120)] for at in (chance.randrange(len(later)) for _ in range(110))]
    return ["", *SCRIPTS, *pieces, *("".join(chance.choices(signs, k=chance.randint(1, 30))) for _ in range(76))]


@torch.no_grad()
def test_the_page_reads_real_text_as_torch_does(computer):
    """The same tokens, and with the weights of 8 bits the same numbers, to the longest text that it reads."""
    model, tokenizer = small_gpt.load()
    texts, longest = random_texts(), model.config.max_length
    ids = [small_gpt.encode(text, tokenizer) for text in texts]
    computer.evaluate("explainer.load('text')")
    assert computer.evaluate("texts => texts.map(text => explainer.ids('text', text))", texts) == ids
    assert len(texts) == 200 and max(map(len, ids)) > longest
    model.double()
    for at in range(0, len(ids), 20):
        cases = [(row[:longest], True, True, [], [], "text") for row in ids[at:at + 20]]
        for (row, *_), ours in zip(cases, computed(computer, cases), strict=True):
            logits, weights = model(torch.tensor([row]), weights=True)
            theirs = torch.cat([logits.flatten(), *(layer.flatten() for layer in weights)])
            assert (ours - theirs).abs().max() < 2e-5, tokenizer.bytes_of(row[-1])


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
    assert said.inner_text().startswith("zebra is not among its 74 words and is left out.")
    assert sentence(page) == ["BOS", "the", "keys", "to", "the", "cabinet"]
    text.fill("the keys to the kabinet ")
    said.get_by_role("button", name="cabinet", exact=True).click()
    assert text.input_value() == "the keys to the cabinet " and said.inner_text() == ""
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


def test_a_foreign_sentence_gets_one_sentence_and_three_words_to_tap(page):
    text, said = page.locator("#text"), page.locator("#said")
    text.fill("")
    text.press_sequentially("x")  # from the first letter on
    assert said.inner_text().startswith("x is not among its 74 words") and said.locator("button").count() == 4
    text.fill("The cat sat on the mat because it ")
    known = page.locator("#known dd button").all_text_contents()
    assert said.inner_text().count(".") == 1 and "sat" not in said.inner_text().split()
    assert all(word in known for word in said.locator("button").all_inner_texts()[:3])
    said.locator("button").first.click()
    assert "cat" not in text.input_value() and said.inner_text().startswith("sat is not among")
    said.get_by_role("button", name="read it as real text").click()
    until(page, lambda: page.locator("#models [value=text]").is_checked(), "the other model reads it")
    assert said.inner_text() == "" and "mat" in sentence(page) and text.input_value().endswith("mat because it ")


def test_real_text_shows_tokens_as_they_are_cut_and_writes_on(page):
    page.locator("#models [value=text]").check()
    until(page, lambda: sentence(page)[:4] == ["BOS", "the", "farm", "ers"], "its own example")
    assert page.locator("#maps .map").count() == 16 and not page.locator("#known").is_visible()
    assert "presidents" in page.locator("#about").inner_text() and page.locator("#next th.grammar").is_hidden()
    page.locator("#limits summary").click()
    assert "bits a byte" in page.locator("#limits").inner_text()
    page.locator("#text").fill("Peace in 我!")
    model, tokenizer = small_gpt.load()
    ids = small_gpt.encode("Peace in 我!", tokenizer)
    assert len(sentence(page)) == len(ids) and sentence(page)[-4:] == ["E6", "88", "91", "!"]
    assert page.locator(".words .byte").count() == 3
    page.locator("#text").fill("the people of the united")
    with torch.no_grad():
        p = model(torch.tensor([small_gpt.encode("the people of the united", tokenizer)]))[0, -1].softmax(0)
    word, share = told(page)[0][:2]
    assert word == tokenizer.text_of(int(p.argmax())).strip() == "states"
    assert float(share) == pytest.approx(float(p.max()), abs=6e-4)
    page.locator("#next button").first.click()
    assert page.locator("#text").input_value() == "the people of the united states"
    page.evaluate(RANDOM)
    page.locator("#on").click()
    assert len(sentence(page)) > 6 and (sentence(page)[-1] == "." or len(sentence(page)) == 96)
    page.locator("#models [value=grammar]").check()  # what it wrote has words that the grammar lacks
    until(page, lambda: sentence(page)[-1] == "thanks", "the grammar's own example")


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
    page.evaluate(RANDOM)
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
    assert page.locator("#h-inside").inner_text() == "One weight" and page.evaluate(FOCUSED) == "h-inside"
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


def test_from_the_whole_to_one_product_and_back(page, mini):
    """Five steps in by the keyboard, each with torch's numbers, and five out by Escape, to where one came from."""
    model = copy.deepcopy(mini[0]).double()
    with torch.no_grad():
        _, weights = model(torch.tensor([[grammars.BOS, *mini[1].encode(THANKS.split())]]), weights=True)
    title, laws = page.locator("#h-inside"), page.locator("#formula div")
    assert page.locator(".plane").count() == 2 and "p(anna) = 0.997" in laws.last.inner_text()
    assert "would be followed by anna, 1.00" in page.locator(".plane").last.get_attribute("aria-label")
    page.locator(".plane").last.press("Enter")
    assert title.inner_text() == "Inside layer 1" and page.evaluate(FOCUSED) == "h-inside" and laws.count() == 2
    came, added, makes = (float(n) for n in re.findall(r"-?\d+\.\d\d", laws.first.inner_text()))
    assert came + added == pytest.approx(makes, abs=0.011)
    page.locator(".card").nth(3).press("Enter")
    assert title.inner_text() == "Inside head (1, 3)" and page.locator("#steps tbody tr").count() == 16
    shown = [float(row.split("\t")[4]) for row in page.locator("#steps tbody tr").all_inner_texts()]
    assert torch.allclose(torch.tensor(shown, dtype=torch.float64), weights[1][0, 3, -1], atol=6e-4)
    page.locator("#steps").get_by_role("button", name="anna").press("Enter")
    assert title.inner_text() == "One weight"
    rows = [row.split("\t") for row in page.locator("#products tbody tr").all_inner_texts()]
    products = [float(query) * float(key) for _, query, key, *_ in rows]
    sums = page.locator(".sum strong").all_inner_texts()
    assert len(rows) == 16 and rows[-1][-1] == sums[0] and sum(products) == pytest.approx(float(sums[0]), abs=0.5)
    assert float(sums[1]) == pytest.approx(float(sums[0]) / 4, abs=0.01) and float(sums[3]) == shown[1]
    page.locator("#products button").nth(4).press("Enter")
    assert title.inner_text() == "One product" and page.locator(".product-of strong").all_inner_texts() == rows[4][1:4]
    factors = page.locator(".stage-of p").all_inner_texts()
    for factor, value in zip(factors, rows[4][1:3], strict=True):
        total, bias, end = (float(n) for n in re.findall(r"-?\d+\.\d\d", factor))
        assert total + bias == pytest.approx(end, abs=0.011) and end == float(value)
    for name, place in (("One weight", "5"), ("Inside head (1, 3)", "anna"), ("Inside layer 1", "head 3"),
                        ("From the whole to one number", "")):
        page.keyboard.press("Escape")
        assert title.inner_text() == name and page.evaluate(FOCUSED).startswith(place)
    assert page.evaluate("document.activeElement.dataset.key") == "1"
    page.keyboard.press("Escape")  # there is nothing further out
    assert title.inner_text() == "From the whole to one number"


def one_head_off(name):
    """Do a dare by switching off a head."""
    return lambda page: page.get_by_label(f"use head {name}").uncheck()


def look_back(page):
    """Look into the head that gives the most to the token before, as torch finds it."""
    model, tokenizer = small_gpt.load()
    with torch.no_grad():
        _, weights = model(torch.tensor([small_gpt.encode(page.locator("#text").input_value(), tokenizer)]), weights=True)
    scores = torch.cat([inside.previous_token_score(layer[0]) for layer in weights])
    assert scores.max() > 0.5, "there is such a head"
    page.locator("#maps button").nth(int(scores.argmax())).click()


SOLUTIONS = (one_head_off("(0, 3)"), one_head_off("(1, 1)"),
             lambda page: page.locator("#text").fill("the king with the flies flies the kite"),
             lambda page: page.locator("#text").fill(PEACE), look_back)


def test_dares_are_ticked_when_they_are_done(page):
    def done():
        return page.locator("#dares .mark").evaluate_all("marks => marks.map(mark => mark.ariaLabel === 'done')")

    assert done() == [False] * 5
    for number, solve in enumerate(SOLUTIONS):
        page.locator("#dares li").nth(number).get_by_role("button").click()
        page.locator(f"#models [value={'grammar' if number < 3 else 'text'}]:checked").wait_for()
        assert not done()[number], "not before it is done"
        solve(page)
        assert done()[number], number
    page.reload()
    until(page, lambda: done() == [True] * 5, "the ticks are kept")


def test_an_address_holds_all_that_was_set_and_no_more_than_there_is(browser, page):
    page.get_by_label("use head (1, 2)").uncheck()
    until(page, lambda: "off=1.2" in page.url, "the address has it")
    page.locator("#models [value=text]").check()
    until(page, lambda: page.locator("#maps .map").count() == 16, "the other model reads")
    page.locator("#text").fill("we have peace")
    page.locator("#heat").fill("0.5")
    page.locator("#layer2").uncheck()
    page.locator(".words button").nth(2).click()
    page.get_by_role("button", name="5 values").click()
    page.locator(".plane .sheet").nth(3).click()
    until(page, lambda: all(f"{part}=" in page.url for part in ("zoom", "scene", "asks")), "the address has it all")
    with opened(browser, "#" + page.url.partition("#")[2]) as other:
        assert told(other) == told(page) and sentence(other) == sentence(page) == ["BOS", "we", "have", "peace"]
        assert other.locator("#telling").inner_text() == page.locator("#telling").inner_text() != ""
        assert not other.locator("#layer2").is_checked() and other.locator("#degrees").inner_text() == "0.5"
        assert other.locator("#h-inside").inner_text() == "Inside layer 3"
        assert other.locator(".words [aria-pressed=true]").inner_text() == "have"
        other.evaluate("location.hash = 'text=she+bears+the'")
        until(other, lambda: sentence(other) == ["BOS", "she", "bears", "the"], "another address, another text")
        hostile = ("model=chat&scene=8&text=<img src=x onerror=alert(1)>&off=9.9 x&zoom=7.7.7&temperature=-1&asks=99&"
                   "without=5")
        other.evaluate("text => { location.hash = text; }", hostile)
        until(other, lambda: sentence(other) == ["BOS"], "what an address holds wrongly is passed over")
        assert "img" in other.locator("#said").inner_text() and other.locator("img").count() == 0
        assert other.locator("#maps .map").count() == 8 and not other.locator("#film").is_visible()


def test_the_story_moves_pauses_and_steps(page):
    """By a clock of its own: seven scenes of ten seconds, then it stops."""
    page.clock.install()
    page.emulate_media(reduced_motion="no-preference")
    load(page)

    def picture():
        return page.locator("#film svg").inner_html()

    def scene():
        return page.locator("#scenes [aria-pressed=true]").inner_text()

    page.locator("#play").click()
    page.clock.run_for(2000)
    first = picture()
    page.clock.run_for(2000)
    assert scene() == "1 tokens" and picture() != first and "15 tokens" in page.locator("#telling").inner_text()
    page.locator("#play").click()  # pause
    still = picture()
    page.clock.run_for(30_000)
    assert picture() == still and page.locator("#play").inner_text() == "▶ Play the story"
    page.locator("#play").click()
    page.clock.run_for(7_000)
    assert scene() == "2 vectors"
    page.locator("#later").click()
    page.clock.run_for(1_000)
    assert scene() == "3 query meets key"
    page.clock.run_for(60_000)
    end = picture()
    page.clock.run_for(30_000)
    assert scene() == "7 next word" and picture() == end and "“anna” has 0.997" in page.locator("#telling").inner_text()


def test_where_no_motion_is_wanted_each_scene_is_a_still_picture(page):
    assert not page.locator("#play").is_visible() and not page.locator("#film").is_visible()
    texts = set()
    for number in range(7):
        page.locator("#later").click()
        before = page.locator("#film svg").inner_html()
        texts.add(page.locator("#telling").inner_text())
        page.wait_for_timeout(100)
        assert page.locator("#film svg").inner_html() == before != ""
        assert page.locator("#scenes [aria-pressed=true]").inner_text().startswith(str(number + 1))
    assert len(texts) == 7 and page.locator("#later").is_disabled()
    assert page.evaluate("document.getAnimations().length") == 0


@pytest.mark.parametrize("address", [
    "", "?compact", "#text=the+keys+to+the+cabinet&zoom=1.3.1&scene=3", "#zoom=0.3&scene=7", "#zoom=1.2.1.4",
    "#model=text&zoom=3&scene=1"])
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
        gpt = re.search(r"data-large>(.*?)</script>", after, re.DOTALL)[1]
        unpacked = [gzip.decompress(b64decode(packed)) for packed in (facts["weights"], facts["grammar"], gpt)]
        return before, after.replace(gpt, ""), facts["shares"], facts["kinds"], unpacked

    stored = explainer.PAGE.read_text(encoding="utf-8")
    assert parts(stored) == parts(explainer.build()), "Run `python -m scripts.explainer`."
    assert "{{" not in stored and explainer.PAGE.stat().st_size < 2_400_000, "small enough to mail"


def test_lesson_11_shows_this_page():
    """With the grammar's model alone, so that the notebook stays small."""
    lesson = next((explainer.ROOT / "notebooks").glob("11_*.ipynb"))
    shown = [html for cell in json.loads(lesson.read_text(encoding="utf-8"))["cells"] for output in cell.get("outputs", [])
             if "A transformer at work" in (html := "".join(output.get("data", {}).get("text/html", "")))]
    page = show.light(explainer.PAGE.read_text(encoding="utf-8"))
    page = show.frame(page, "A transformer at work", "", 900).partition("<iframe")[2]
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
