"""Many texts at once through the chat model: each gets what it would have alone."""

import pytest
import torch

from helpers import smollm2
from helpers.measure import many_texts


def test_what_comes_after_texts_that_begin_alike_is_what_each_has_alone(model):
    prefix, *rows = map(model.tokens.encode, ("The capital of", " France is", " Japan is", " the United Kingdom is"))
    ids = [model.tokens.encode(city)[0] for city in (" Paris", " Tokyo", " London")]
    found = many_texts.next_logits(model, prefix, rows, ids, at_once=1)
    with torch.inference_mode():
        alone = torch.stack([model.run(torch.tensor([prefix + row]))[0][0, -1, ids] for row in rows])
    assert torch.allclose(found, alone, atol=1e-3) and not torch.allclose(found, alone.flip(0), atol=1)
    assert torch.allclose(many_texts.next_logits(model, prefix, rows, ids), alone, atol=1e-3)


@pytest.mark.slow
def test_texts_that_are_written_on_together_are_what_each_would_be_alone(model):
    rows = [model.tokens.encode(f"The capital of {name} is") for name in ("France", "Japan", "the United Kingdom")]
    found = many_texts.write_on(model, rows, 6)
    for row, new in zip(rows, found, strict=True):
        ids = row
        with torch.inference_mode():
            for _ in range(6):
                ids = ids + [int(model.run(torch.tensor([ids]), last=1)[0].argmax())]
        assert new.tolist() == ids[len(row):]
    short = many_texts.write_on(model, rows, 6, enough=lambda row, ids: row < 2 and len(ids) == 2)
    assert short[2].equal(found[2]) and short[:2, :2].equal(found[:2, :2]) and (short[:2, 2:] == smollm2.END).all()
    lone = many_texts.write_on(model, rows[:1], 6, attend=smollm2.cached_attention)
    assert lone[0].equal(found[0])
