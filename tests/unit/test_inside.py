"""Looking inside: rollout, scores, ablation, the trace of a model, and the trained mini-transformer in data/."""

import hashlib

import numpy as np
import pytest
import torch

from helpers import grammars, inside, training
from helpers.transformer import Config, Encoder, LanguageModel, language_model_loss
from scripts import mini_transformer


def weights(*shape, seed=0):
    return torch.softmax(torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64), -1)


def normal(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# ---------------------------------------------------------------- rollout


def test_rollout_follows_every_path():
    """Equal to the sum over all paths through three layers, written as loops."""
    layers = [weights(3, 4, 4, seed=s) for s in range(3)]
    step = [0.5 * w.mean(0) + 0.5 * torch.eye(4) for w in layers]
    paths = torch.zeros(4, 4, dtype=torch.float64)
    for i in range(4):
        for j in range(4):
            paths[i, j] = sum(step[2][i, b] * step[1][b, a] * step[0][a, j] for a in range(4) for b in range(4))
    got = inside.attention_rollout(layers)
    torch.testing.assert_close(got, paths)
    torch.testing.assert_close(got.sum(-1), torch.ones(4, dtype=torch.float64))


def test_rollout_stays_causal_and_survives_empty_rows():
    causal = [weights(2, 5, 5, seed=s).tril() for s in range(3)]
    causal = [w / w.sum(-1, keepdim=True) for w in causal]
    assert (inside.attention_rollout(causal).triu(1) == 0).all()
    causal[1][:, 3] = 0
    torch.testing.assert_close(inside.attention_rollout(causal).sum(-1), torch.ones(5, dtype=torch.float64))


# ---------------------------------------------------------------- scores and ablation


def test_previous_token_score_by_hand():
    w = torch.tensor([[[1, 0, 0], [0.9, 0.1, 0], [0.2, 0.7, 0.1]]])
    torch.testing.assert_close(inside.previous_token_score(w), torch.tensor([0.8]))


def test_ablated_heads_add_up():
    z, W_o = normal(2, 3, 5, 4), normal(12, 12)
    whole = z.transpose(1, 2).flatten(2) @ W_o
    before = z.clone()
    parts = [whole - inside.ablate_head(z, W_o, head) for head in range(3)]
    torch.testing.assert_close(sum(parts), whole)
    for head in range(3):
        torch.testing.assert_close(parts[head], z[:, head] @ W_o[4 * head:4 * head + 4])
    assert torch.equal(z, before)


def test_a_patch_is_one_head_at_one_position_of_every_text():
    one, two = torch.tensor([[[[1.0], [2]], [[3], [4]]]]), torch.tensor([[[[5.0], [6]], [[7], [8]]]])
    assert inside.patch_head(one, two, 1, 0).flatten().tolist() == [1, 2, 7, 4], "as lesson 12 has it by hand"
    one, two = normal(3, 4, 5, 6), normal(3, 4, 5, 6, seed=2)
    before, patched = one.clone(), inside.patch_head(one, two, 2, 3)
    assert torch.equal(one, before)
    assert (patched != one).nonzero()[:, 1:3].unique(dim=0).tolist() == [[2, 3]]
    torch.testing.assert_close(patched[:, 2, 3], two[:, 2, 3])


# ---------------------------------------------------------------- a model of the course


def model(causal=False, **options):
    with training.seeded(0):
        config = Config(11, d=12, n_heads=3, n_layers=2, mlp=8, **options)
        return Encoder(config, causal).double().eval()


@pytest.mark.parametrize("options", [{}, {"causal": True}, {"pre_norm": False, "positions": "sinusoidal"}])
def test_trace_is_what_the_model_computes(options):
    m, ids = model(**options), torch.tensor([[1, 2, 3, 4, 5], [5, 4, 3, 2, 2]])
    seen = inside.trace(m, ids)
    logits, w = m(ids, weights=True)
    torch.testing.assert_close(seen.logits, logits)
    for layer in range(2):
        torch.testing.assert_close(seen.weights[layer], w[layer])
        torch.testing.assert_close(seen.heads[layer], w[layer] @ seen.values[layer])
    fast = inside.trace(m, ids, weights=False)
    assert fast.weights is None
    torch.testing.assert_close((fast.logits, fast.heads), (seen.logits, seen.heads))
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in m.modules()), "a hook was left behind"


def test_a_switched_off_an_edited_and_a_joined_head_is_an_ablated_head():
    m, ids = model(), torch.tensor([[1, 2, 3, 4]])
    keep = torch.tensor([[True, True, True], [True, False, True]])
    attention = m.blocks[1].attention
    outputs = []
    hook = attention.register_forward_hook(lambda module, inputs, output: outputs.append(output[0]))
    whole, less = inside.trace(m, ids), inside.trace(m, ids, keep)
    hook.remove()
    heads = whole.weights[1] @ whole.values[1]
    expected = inside.ablate_head(heads, attention.W_o.weight.T, 1) + attention.W_o.bias
    torch.testing.assert_close(outputs[1], expected)
    assert not torch.allclose(whole.logits, less.logits)
    torch.testing.assert_close(inside.trace(m, ids, torch.ones(2, 3)).logits, whole.logits)
    edited = inside.trace(m, ids, edit=lambda layer, z: z if layer == 0 else inside.ablate_heads(z, [1]))
    torch.testing.assert_close(edited.logits, less.logits)
    assert (edited.heads[1][:, 1] == 0).all() and (less.heads[1][:, 1] == 0).all()
    put_back = inside.trace(m, ids, edit=lambda layer, z: whole.heads[layer])
    torch.testing.assert_close(put_back.logits, whole.logits)
    joined = inside.trace(m, ids, join=lambda layer, z, W_o: inside.ablate_head(z, W_o, 1) if layer == 1
                          else z.transpose(1, 2).flatten(2) @ W_o)
    torch.testing.assert_close((joined.logits, joined.heads), (less.logits, whole.heads))
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in m.modules()), "a hook was left behind"


# ---------------------------------------------------------------- the mini-transformer


def test_the_mini_transformer_is_as_good_as_lesson_12_says():
    m, vocabulary = inside.load_mini()
    grammar = grammars.agreement_grammar()
    assert vocabulary.words == grammar.vocabulary.words, "the grammar has changed: run python -m scripts.mini_transformer"
    text = grammar.write(128, m.position.num_embeddings, torch.Generator().manual_seed(7))
    cases = grammars.agreement_cases(grammar, text)
    logits = inside.trace(m, text.tokens).logits
    floor = -text.log_p[:, 1:].mean().item()
    with torch.no_grad():
        assert 0 < language_model_loss(m(text.tokens), text.tokens, grammars.PAD).item() - floor < 0.08
    right = text.tokens[cases.row, cases.verb]
    score, n = logits[cases.row, cases.verb - 1], torch.arange(len(right))
    agrees = score[n, right] > score[n, grammars.other_number(vocabulary)[right]]
    assert agrees[cases.against >= 1].float().mean() > 0.95


def test_stories_are_found_in_a_text():
    grammar = grammars.agreement_grammar()
    tokens = grammar.write(16, 64, torch.Generator().manual_seed(3)).tokens
    found, word = grammars.stories(grammar.vocabulary, tokens), np.array(grammar.vocabulary.words)
    row = [word[tokens[found.row, place]] for place in (*found[1:], found.teller + 1, found.thanks + 1)]
    teller, listener, again, thanks, tells, name = row
    assert len(name) > 20 and set(thanks) == {"thanks"} and set(tells) == {"tells"}
    assert (again == listener).all() and (name == teller).all() and (teller != listener).all()


def test_build_writes_what_load_reads(tmp_path):
    path, short = tmp_path / "mini.safetensors", {"steps": 2, "lr": 0.01, "seed": 0}
    digest = mini_transformer.build(path, short)
    assert digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert mini_transformer.build(path, short) == digest, "the same machine, other bytes"
    m, _ = inside.load_mini(path)
    assert isinstance(m, LanguageModel) and not m.training
    assert [p.name for p in tmp_path.iterdir()] == ["mini.safetensors"]


def test_an_induction_head_scores_one():
    T, period = 9, 4
    weights = torch.zeros(2, T, T)
    for i in range(period, T):
        weights[1, i, i - period + 1] = 1.0
    assert torch.equal(inside.induction_score(weights, period), torch.tensor([0.0, 1.0]))


def test_a_head_is_ablated_with_zeros_or_its_mean():
    heads = torch.randn(2, 3, 4, 5, generator=torch.Generator().manual_seed(0))
    assert not inside.ablate_heads(heads, [1])[:, 1].any()
    mean = inside.ablate_heads(heads, [1], mean=True)
    assert torch.allclose(mean[:, 1], heads[:, 1].mean(dim=(0, 1)).expand(2, 4, 5)) and torch.equal(mean[:, 0], heads[:, 0])


def test_a_patch_that_brings_all_back_has_the_effect_one():
    clean, corrupt, half = torch.tensor([3.0, 1.0]), torch.tensor([1.0, 3.0]), torch.tensor([2.0, 2.0])
    assert [inside.patching_effect(clean, corrupt, p, 0, 1) for p in (clean, corrupt, half)] == [1.0, 0.0, 0.5]
