"""Learning from a reward: against plain torch, finite differences, and a count of everything that may be written."""

import copy
import itertools

import pytest
import torch
from torch.nn import functional as F

from helpers import grammars, inside, reward
from helpers.grammars import PAD


@pytest.fixture(scope="module")
def mini():
    return inside.load_mini()


@pytest.fixture(scope="module")
def grammar():
    return grammars.agreement_grammar()


def _all_texts(V, T):
    return torch.tensor(list(itertools.product(range(V), repeat=T)))


def _log_probs(table, texts):
    """Of a tiny model: the first word by row 0 of the table, each later one by the row of the word before, plus one."""
    rows = torch.cat([torch.zeros_like(texts[:, :1]), texts[:, :-1] + 1], 1)  # (N, T)
    return table[rows].log_softmax(-1).gather(-1, texts[..., None])[..., 0]


@pytest.mark.parametrize("baseline", [0.0, 1.7])
def test_the_policy_gradient_is_the_slope_of_the_expected_reward(baseline):
    V, T = 3, 3
    g = torch.Generator().manual_seed(0)
    texts, table = _all_texts(V, T), torch.randn(V + 1, V, generator=g, dtype=torch.float64)
    points = torch.randn(len(texts), generator=g, dtype=torch.float64)

    def expected(table):
        return (_log_probs(table, texts).sum(1).exp() * points).sum()

    leaf, mask = table.clone().requires_grad_(), torch.ones(1, T, dtype=torch.bool)
    with torch.no_grad():
        p = _log_probs(table, texts).sum(1).exp()
    for text, value, share in zip(texts, points, p, strict=True):  # the expectation, text by text
        loss = reward.policy_gradient_loss(_log_probs(leaf, text[None]), value[None] - baseline, mask)
        (share * loss).backward()
    slope = torch.zeros_like(table)
    for i, j in itertools.product(range(V + 1), range(V)):
        nudge = torch.zeros_like(table)
        nudge[i, j] = 1e-5
        slope[i, j] = (expected(table + nudge) - expected(table - nudge)) / 2e-5
    assert torch.allclose(-T * leaf.grad, slope, atol=1e-8)


def test_the_leash_is_torchs_kl():
    g = torch.Generator().manual_seed(1)
    z, r = torch.randn(2, 3, 5, 7, generator=g)
    mask = torch.rand(3, 5, generator=g) > 0.4
    wanted = F.kl_div(r.log_softmax(-1), z.log_softmax(-1), reduction="none", log_target=True).sum(-1)[mask].mean()
    assert torch.allclose(reward.kl_to_reference(z, r, mask), wanted, atol=1e-6)


def test_the_kl_of_the_best_of_n_is_what_its_formula_says():
    for n in (1, 2, 5):  # of many equally probable texts, none of which ties
        texts = torch.arange(1, 20_001, dtype=torch.float64) / 20_000
        p = texts**n - (texts - 1 / 20_000) ** n  # that the best of n is this one
        assert float((p * (p * 20_000).log()).sum()) == pytest.approx(reward.divergence_of_best(n), abs=1e-3)
        assert reward.divergence_of_best(n, texts[None]) == pytest.approx(reward.divergence_of_best(n), abs=1e-3)


def test_ties_bring_the_best_of_n_nearer():
    rewards = torch.tensor([[0.0, 0, 0, 1], [2.0, 2, 2, 2]])  # the best of 2 is a 1 in 7 of 16 cases; all alike: no choice
    wanted = 9 / 16 * torch.tensor(9 / 12).log() + 7 / 16 * torch.tensor(7 / 4).log()
    assert reward.divergence_of_best(2, rewards) == pytest.approx(float(wanted) / 2, abs=1e-6)


def test_the_loss_of_pairs_is_a_classifiers():
    g = torch.Generator().manual_seed(3)
    c, r, c0, r0 = torch.randn(4, 6, generator=g)
    wanted = F.binary_cross_entropy_with_logits(0.7 * (c - c0 - r + r0), torch.ones(6))
    assert torch.allclose(reward.dpo_loss(c, r, c0, r0, 0.7), wanted, atol=1e-6)


def test_pairs_are_neighbours_that_differ_the_better_one_first():
    better, worse = reward.pairs(torch.tensor([[0.0, 2, 1, 1], [3.0, 0, 0, 1]]))
    assert better.tolist() == [1, 4, 7] and worse.tolist() == [0, 5, 6]


def test_a_texts_log_probability_is_that_of_the_words_chosen(mini):
    model, vocabulary = mini
    texts = reward.write(model, vocabulary, 2, torch.Generator().manual_seed(4))
    rows = torch.tensor([5, 0])
    with torch.no_grad():
        ours = reward.text_log_p(model, texts, rows)
        for row, value in zip(rows.tolist(), ours, strict=True):
            ids = texts.tokens[row][texts.tokens[row] != PAD][None]
            log_p = model(ids[:, :-1]).log_softmax(-1)[0]
            new = [i for i in range(1, ids.shape[1]) if texts.mask[row, i]]
            assert torch.allclose(value, sum(log_p[i - 1, ids[0, i]] for i in new), atol=1e-4)


def test_texts_are_written_with_the_cache_as_without(mini):
    model, vocabulary = mini
    texts = reward.write(model, vocabulary, 3, torch.Generator().manual_seed(0))
    assert texts.groups == 8 and texts.tokens.shape[0] == 24 and texts.mask.shape == texts.tokens.shape
    caches = [None, None]
    with torch.no_grad():
        full = model(texts.tokens)
        for place in range(texts.tokens.shape[1]):
            logits, caches = reward._next(model, texts.tokens[:, place:place + 1], place, caches)
            assert torch.allclose(logits, full[:, place], atol=1e-4)
    for words, row, mask in zip(texts.words(vocabulary), texts.tokens, texts.mask, strict=True):
        assert "." not in words[:-1] and len(words) <= reward.LENGTH  # one sentence
        assert int(mask.sum()) + int((~mask & (row > 1)).sum()) == len(words)  # drawn, and the prompt's
    again = reward.write(model, vocabulary, 3, torch.Generator().manual_seed(0))
    assert torch.equal(texts.tokens, again.tokens)


def test_words_are_drawn_as_the_model_says(mini):
    model, vocabulary = mini
    first = reward.write(model, vocabulary, 20_000, torch.Generator().manual_seed(3), ["the"], length=2).tokens[:, 2]
    with torch.no_grad():
        p = model(torch.tensor([[1, vocabulary["the"]]]))[0, -1].softmax(-1)
    assert float((torch.bincount(first, minlength=len(p)) / 20_000 - p).abs().max()) < 0.012


def test_the_honest_maximum_is_that_of_all_texts(grammar):
    points, n = {"bear": 1, "bears": 1, "the": -1, "he": 2}, len(grammar.vocabulary)
    texts = torch.cat([torch.ones(n**3, 1, dtype=torch.long), _all_texts(n, 3)], 1)  # BOS, and every three words
    worth = torch.tensor([points.get(word, 0) for word in grammar.vocabulary.words])[texts]
    stop = texts == grammar.vocabulary["."]
    worth[(stop.cumsum(1) - stop.long()) > 0] = 0  # after the full stop
    fine = (grammar.read(texts).log_p > -torch.inf).all(1)
    for prompt in ("", "the", "bears"):
        begins = texts[:, 1] == grammar.vocabulary[prompt] if prompt else fine
        assert reward.most(grammar, points, [prompt], length=3) == [float(worth.sum(1)[fine & begins].max())]


def test_the_grammar_judges_only_what_was_chosen(mini, grammar):
    vocabulary = mini[1]
    rows = [["<bos>", "the", "keys", "wait", "."], ["<bos>", "the", "the", "keys", "wait"]]
    tokens = torch.tensor([[vocabulary.words.index(word) for word in row] for row in rows])
    mask = torch.tensor([[False, False, True, True, True]] * 2)
    assert reward.allowed(grammar, reward.Texts(tokens, mask, 1)) == pytest.approx(1 / 2)  # after *the the* nothing is


def test_a_reward_may_do_as_it_likes_with_its_words(mini):
    texts = reward.write(*mini, 2, torch.Generator().manual_seed(0))
    before = copy.deepcopy(texts.words(mini[1]))
    found = reward.judged(lambda words: torch.tensor(len([words.pop() for _ in list(words)])), texts, mini[1])
    assert found.shape == (8, 2) and texts.words(mini[1]) == before and (found > 0).all()


@pytest.mark.slow
def test_a_reward_is_learned_and_a_leash_holds():
    free = reward.train(reward.bears, steps=8, every=8, label=None)
    held = reward.train(reward.bears, steps=8, every=8, strength=5.0, label=None)
    assert free.at == held.at == [0, 8] and free.reward[0] == held.reward[0]
    assert free.reward[1] > free.reward[0] and free.kl[1] > 3 * held.kl[1] > 0 and free.kl[0] == pytest.approx(0, abs=1e-5)
    assert 0 <= free.allowed[1] <= 1 and len(free.texts[0]) == 8


def test_texts_of_unequal_length_are_read_as_each_alone_and_stop_where_they_end(mini):
    model, vocabulary = mini
    texts = reward.write(model, vocabulary, 6, torch.Generator().manual_seed(0), ["the", "anna tells ben that"])
    lengths = (texts.tokens != PAD).sum(1)
    assert len(set(lengths.tolist())) > 3  # else nothing is left out
    with torch.no_grad():
        logits, _, mask = reward.chosen(model, texts)
        for row, length in enumerate(lengths):
            alone = model(texts.tokens[row:row + 1, :length - 1])[0]
            torch.testing.assert_close(logits[row, :length - 1], alone, atol=1e-4, rtol=1e-4)
            assert not mask[row, length - 1:].any()
