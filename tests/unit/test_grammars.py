"""The agreement grammar: its probabilities are exact, its words balanced, its cases what they claim to be."""

import functools
import math

import pytest
import torch

from helpers import grammars
from helpers.grammars import BOS, HOMOGRAPHS, Grammar, agreement_cases, agreement_grammar, other_number

TOY = Grammar({  # "x" alone does not say which rule it came from, so that the reader's state is a mixture
    "S": ["3 THING.n DOES.n .", "1 A sees B and B sees A ."],
    "THING.s": ["2 x", "1 y"], "THING.p": ["1 x x", "1 z y", "2 z MORE"],
    "MORE": ["1", "2 y", "1 y y"],
    "DOES.s": ["1 runs", "3"], "DOES.p": ["1 run"],
}, ["ann", "bob", "x"])


@functools.cache  # and not as soon as this is imported, which each worker does
def full():
    return agreement_grammar()


@functools.cache
def small():
    return agreement_grammar(small=True)


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def ids(grammar, *texts):
    return grammars.pad([[BOS, *grammar.vocabulary.encode(text)] for text in texts])


def sentences(grammar, symbols=("S",)):
    """Every derivation of the rules themselves, by brute force: (words, probability)."""
    if not symbols:
        yield (), 1.0
        return
    first, *rest = symbols
    choices = grammar.rules.get(first, [(1.0, None)])
    for p, expansion in choices:
        for words, q in sentences(grammar, tuple(rest) if expansion is None else (*expansion, *rest)):
            yield ((first, *words) if expansion is None else words), p * q


def test_probabilities_equal_brute_force():
    """A sentence may have several derivations: their probabilities add up to what `read` says."""
    total = {}
    for words, p in sentences(TOY):
        total[words] = total.get(words, 0) + p
    assert sum(total.values()) == pytest.approx(1, abs=1e-12)
    assert len(total) < sum(1 for _ in sentences(TOY)), "the toy grammar should be ambiguous"
    for words, p in total.items():
        assert TOY.read(ids(TOY, " ".join(words))).log_p.sum().exp().item() == pytest.approx(p, abs=1e-9)
    nats, length = TOY.entropy()
    assert nats == pytest.approx(-sum(p * math.log(p) for p in total.values()), abs=1e-9)
    assert length == pytest.approx(sum(p * len(words) for words, p in total.items()), abs=1e-9)


@pytest.mark.parametrize("made", [full, small, lambda: TOY], ids=["full", "small", "toy"])
def test_probabilities_sum_to_1_in_every_state(made):
    grammar = made()
    torch.testing.assert_close(grammar.p[:-1].sum(1), torch.ones(len(grammar.p) - 1, dtype=torch.float64), atol=1e-9, rtol=0)
    assert grammar.p[-1].sum() == 0, "after a word that is not allowed nothing is, until the next full stop"
    assert (grammar.visits()[:-1] > 0).all(), "every state can be reached"


@pytest.mark.parametrize("made", [full, small], ids=["full", "small"])
def test_the_entropy_is_what_sampled_sentences_show(made):
    """-log p of whole sentences against the exact entropy; their number of tokens against the exact length."""
    grammar = made()
    text = grammar.write(6000, 64, seeded(1))
    stop = grammar.vocabulary["."]
    length = (text.tokens == stop).int().argmax(1)  # of the first sentence, which always fits
    nats = -text.log_p.cumsum(1).gather(1, length[:, None])[:, 0]
    exact = grammar.entropy()
    for sample, expected in zip((nats, length.double()), exact, strict=True):
        error = sample.std() / len(sample) ** 0.5
        assert abs(sample.mean() - expected) < 4 * error
        assert error < 0.02 * expected, "the sample should be large enough to tell"


@pytest.mark.parametrize("made", [full, small], ids=["full", "small"])
def test_homographs_are_as_often_nouns_as_verbs(made):
    grammar = made()
    noun = torch.tensor([tag.split(".")[0] in ("HEAD", "NOUN") for tag in grammar.tags])
    expected = grammar.visits()[:, None] * grammar.p  # (S, V) uses in a sentence
    for word in HOMOGRAPHS:
        for form in (word, grammars.with_s(word)):
            if form in grammar.vocabulary.words:
                i = grammar.vocabulary[form]
                uses = [expected[:, i][noun[grammar.tag[:, i]] == kind].sum().item() for kind in (True, False)]
                assert uses[0] == pytest.approx(uses[1], abs=1e-10) and uses[0] > 0.01, form


def test_text_is_repeatable_and_read_as_it_was_written():
    text = full().write(5, 40, seeded(0))
    assert torch.equal(text.tokens, full().write(5, 40, seeded(0)).tokens)
    assert not torch.equal(text.tokens, full().write(5, 40, seeded(1)).tokens)
    assert text.tokens.shape == (5, 40) and (text.tokens[:, 0] == BOS).all() and (text.log_p[:, 0] == 0).all()
    assert torch.isfinite(text.log_p).all()
    states = full().states(text.tokens)
    next_p = full().p[states[:, :-1]].gather(-1, text.tokens[:, 1:, None])[..., 0]
    torch.testing.assert_close(next_p.log(), text.log_p[:, 1:])


@pytest.mark.parametrize(("sentence", "allowed"), [
    ("the keys to the cabinet are rusty .", True),
    ("the keys to the cabinet is rusty .", False),
    ("she bears the pain .", True),
    ("they bears the pain .", False),
    ("the dog that the cabinets please waits .", True),
    ("the dog that the cabinets please wait .", False),
    ("anna tells ben that bears wait and ben thanks anna .", True),
    ("anna tells ben that bears wait and ben thanks carla .", False),
    ("the kings that watch the game watch the film .", True),
    ("flies bear the bear .", False),
])
def test_what_the_grammar_accepts(sentence, allowed):
    log_p = full().read(ids(full(), sentence + " she waits .")).log_p
    assert torch.isfinite(log_p[0, :-3]).all() == allowed
    assert torch.isfinite(log_p[0, -3:]).all(), "after the full stop a new sentence begins"


def test_cases_of_agreement():
    text = full().read(ids(full(), "the keys to the cabinet are rusty . she waits . the dog that bears the pain waits .",
                         "doors with kings near a bear behind the letter fall and plant the tree . keys wait ."))
    cases = agreement_cases(full(), text)
    found = [tuple(map(int, case)) for case in zip(*cases, strict=True)]
    assert found == [(0, 2, 6, 1, 1, 1), (0, 13, 18, 0, 1, 0), (1, 1, 10, 1, 3, 2), (1, 16, 17, 1, 0, 0)]


def test_cases_have_the_right_number():
    text = full().write(300, 64, seeded(2))
    cases, words = agreement_cases(full(), text), full().vocabulary.words
    other = other_number(full().vocabulary)
    verbs = text.tokens[cases.row, cases.verb]
    assert (other[verbs] != verbs).all()
    wrong = text.tokens.clone()
    wrong[cases.row, cases.verb] = other[verbs]
    assert (full().read(wrong).log_p[cases.row, cases.verb] == -torch.inf).all(), "the other form is never allowed"
    nouns = text.tokens[cases.row, cases.subject]
    assert [words[i].endswith("s") for i in nouns] == cases.plural.tolist()
    assert (cases.against <= cases.between).all() and cases.between.max() == 3
