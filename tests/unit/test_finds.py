"""The tools of lesson 17: questions of one form, what one head carries from one to another, and the card of a find."""

from dataclasses import replace

import matplotlib.pyplot as plt
import pytest
import torch

from helpers import inside
from helpers.page import finds

CITIES = {"France": "Paris", "Italy": "Rome", "Japan": "Tokyo", "Spain": "Madrid", "Sweden": "Paris", "Côte d'Ivoire": "x"}


@pytest.fixture(scope="module")
def asked(model):
    return inside.ask(model, "The capital of {} is", CITIES)


@pytest.mark.slow
def test_only_right_answers_of_the_usual_length_count(asked):
    assert asked.subjects == ["France", "Italy", "Japan", "Spain"] and asked.said[2] == "Tokyo"
    assert "Stockholm" in asked.left_out["Sweden"] and "tokens" in asked.left_out["Côte d'Ivoire"]
    assert torch.equal(asked.seen.logits[:, -1].argmax(-1), asked.answers) and asked.seen.states.shape[0] == 31


def test_the_last_token_read_again_gives_the_same(asked):
    assert torch.allclose(asked.last([2, 0]), asked.seen.logits[[2, 0], -1], atol=1e-3)
    own = asked.patch(23, 4, [2, 0])
    assert torch.allclose(asked.last([2, 0], own), asked.seen.logits[[2, 0], -1], atol=1e-3)


@pytest.mark.slow
def test_the_fast_hunter_gives_what_one_patch_gives(asked):
    takers, givers = finds.ring(asked)
    scores = finds.all_heads(asked, takers, givers)
    assert len(scores) == 270 and max(scores, key=scores.get) == (23, 4)
    for layer, head in [(23, 4), (29, 1), (0, 0)]:
        z, clean = asked.last(takers, asked.patch(layer, head, givers)), asked.seen.logits[:, -1]
        wanted = [inside.patching_effect(clean[g], clean[t], row, asked.answers[g], asked.answers[t])
                  for t, g, row in zip(takers, givers, z, strict=True)]
        assert scores[layer, head] == pytest.approx(sum(wanted) / len(wanted), abs=1e-3)


def test_a_ring_pairs_different_answers_and_fresh_pairs_are_others(asked):
    pairs, others = set(zip(*finds.ring(asked), strict=True)), set(zip(*finds.fresh(asked), strict=True))
    assert len(pairs) == 4 and len(others) == 8 and not pairs & others
    assert all(asked.answers[a] != asked.answers[b] for a, b in pairs | others)


def test_a_find_is_judged_drawn_and_written(asked, tmp_path, capsys):
    find = finds.judge(asked, [(23, 4)], {(23, 4): 0.9, (5, 2): -0.1}, hunter="Ada <3")
    assert find.moved > find.fresh / 2 > find.control
    plt.close(finds.card(find))
    page = finds.save(find, tmp_path / "find.html").read_text(encoding="utf-8")
    assert "Head (23, 4)" in page and "Ada &lt;3" in page and page.count("<tr>") == 1 + len(find.examples)
    for one in find.examples:
        answer = {finds.GIVERS: CITIES[one.giver], finds.OWN: one.own}.get(one.whose)
        neither = one.whose == finds.NEITHERS and one.wrote.strip() not in (one.own, CITIES[one.giver])
        assert one.wrote.strip() == answer or neither
    broken = replace(find, examples=[finds.Example("Italy", "Rome", "Spain", " the", finds.NEITHERS), *find.examples[:1]])
    missed = finds.card(replace(broken, examples=broken.examples[:1])).get_suptitle()
    assert missed.startswith("Missed: ") and not finds.card(find).get_suptitle().startswith("Missed")
    words = {text.get_text(): text for text in finds.card(broken).axes[2].texts}
    assert words["the"].get_color() == finds.DIM and find.examples[0].whose == finds.GIVERS
    assert words[find.examples[0].wrote.strip()].get_color() == finds.LIT
    plt.close("all")
    assert "<i>the</i>" in finds.save(broken, tmp_path / "broken.html").read_text(encoding="utf-8")
    asked.rewrite("France", "Japan", 23, 4)
    said = capsys.readouterr().out.splitlines()
    assert "Paris" in said[0] and "Tokyo" in said[1]


def test_the_causal_mask_written_out_changes_nothing(asked):
    ids = asked.ids[:1]
    pieces, weights = inside.seeing(torch.ones(5, 5, dtype=torch.bool).tril())
    logits = asked.model.run(ids, pieces=pieces)[0]
    assert torch.allclose(logits, asked.seen.logits[:1], atol=1e-3)
    assert torch.allclose(torch.stack(weights)[:, 0], asked.seen.weights[:, 0], atol=1e-4)
