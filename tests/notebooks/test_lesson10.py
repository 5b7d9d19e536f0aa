"""Lesson 10: the translator that the lesson writes is the helpers' with one head, and a learner's pieces train in it."""

import pytest
import torch
from notebook_code import LESSONS, SOLUTIONS, definitions

from helpers import training, transformer, translation
from helpers.checks import adopt_all
from helpers.grammars import BOS, PAD

COURSES = {name: getattr(transformer, name)
           for name in ("cross_attention", "decoder_block", "greedy_decode", "shift_right")}
SHAPES = [(64, 11, 64), (64, 10, 64), (64, 64), (64, 64), (64, 64)]  # as the lesson has them


def lesson(pieces):
    """What the lesson defines, made of these pieces."""
    english, french = translation.translation_vocabularies()
    found = definitions(LESSONS["10"])
    found.update(mine=pieces, english=english, french=french)
    return found


def test_the_translator_is_the_helpers():
    with training.seeded(0):
        ours = lesson(COURSES)["Translator"]().eval()
        config = transformer.Config(ours.output.out_features, d=64, n_heads=4, mlp=128, positions="rope")
        theirs = transformer.TranslationModel(config, ours.encoder.embedding.num_embeddings).eval()
    block, decoder = theirs.decoder.blocks[0], theirs.decoder
    theirs.encoder.load_state_dict(ours.encoder.state_dict())
    pairs = [(decoder.embedding, ours.words), (block.attention, ours.attention), (block.mlp, ours.mlp),
             (block.norm1, ours.norms[0]), (block.cross_norm, ours.norms[1]), (block.norm2, ours.norms[2]),
             (decoder.norm, ours.norms[3]), (decoder.output, ours.output)]
    for there, here in pairs:
        there.load_state_dict(here.state_dict())
    with torch.no_grad():
        for linear, W in zip([block.cross.W_q, block.cross.W_k, block.cross.W_v], ours.across, strict=True):
            linear.weight.copy_(W.T)
            linear.bias.zero_()
        block.cross.W_o.weight.copy_(torch.eye(64))
        block.cross.W_o.bias.zero_()
    source, target, _ = translation.translation_tensors(translation.translation_pairs(20, seed=3))
    read = transformer.shift_right(target, BOS)
    logits, seen = theirs(source, read, source != PAD, weights=True)
    torch.testing.assert_close(ours.decode(read, ours.encode(source), source != PAD), logits, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(ours.seen, seen[0][:, 0], atol=1e-5, rtol=1e-4)


def adopted(attempts):
    g = torch.Generator().manual_seed(0)
    Y, X, *W = (torch.randn(shape, generator=g) / 8 for shape in SHAPES)
    return adopt_all(attempts, COURSES, trains={
        "cross_attention": (Y, X, *W, None),
        "decoder_block": (Y, X, torch.tanh, lambda y, memory: y * memory.mean(1, keepdim=True), torch.tanh,
                          torch.sin, torch.sin, torch.sin)})


def test_a_learners_pieces_train_and_write(capsys):
    """Those of the solutions."""
    solved = definitions(SOLUTIONS["10"])
    pieces = adopted([solved[name] for name in COURSES])
    told = capsys.readouterr().out
    assert "Yours run" in told and all(name in told for name in COURSES) and "times as long" not in told
    source, target, _ = translation.translation_tensors(translation.translation_pairs(8, seed=3))
    losses = []
    for these in (pieces, COURSES):
        found = lesson(these)
        model = found["build"](0)
        losses.append(training.fit(model, lambda generator: (source, target), found["loss"], steps=5, label=None))
        words, weights = found["translate"](model, "the european economic area")
        assert weights.shape == (len(words), 4)
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)
    assert losses[0][-1] < losses[0][0]
