"""The English-French grammar: every form, the agreement of what it writes, its alignments and its held-out combinations."""

import functools

import pytest
import torch

from helpers import training, transformer, translation
from helpers.grammars import BOS, EOS, PAD
from helpers.translation import is_held_out, lexicon, noun_phrase, spelt, translation_pairs

WORDS = lexicon()
NOUNS, ADJECTIVES, VERBS = WORDS["noun"], WORDS["adjective"], WORDS["verb"]


@functools.cache  # and not as soon as this is imported, which each worker does
def train():
    return translation_pairs(6000, seed=0)


@functools.cache
def held_out():
    return translation_pairs(1500, seed=1, held_out=True)


def fits(adjective, noun):
    """Does the grammar let ``adjective`` describe ``noun``? Both are English, the noun in the singular."""
    return NOUNS[noun]["group"] in ADJECTIVES[adjective]["goes with"].split(",")


# Written out by hand: what a person would translate, phrases first and then sentences.
SINGULAR = [
    (("the", ["european", "economic"], "area"), "the european economic area", "la zone économique européenne"),
    (("a", ["european"], "area"), "a european area", "une zone européenne"),
    (("a", [], "union"), "a union", "une union"),
    (("a", ["old"], "tree"), "an old tree", "un vieil arbre"),
    (("this", ["new"], "agreement"), "this new agreement", "ce nouvel accord"),
    (("this", [], "agreement"), "this agreement", "cet accord"),
    (("this", ["english"], "hero"), "this english hero", "ce héros anglais"),
    (("the", [], "hero"), "the hero", "le héros"),
    (("the", [], "man"), "the man", "l'homme"),
    (("the", ["old"], "hero"), "the old hero", "le vieux héros"),
    (("my", ["beautiful"], "star"), "my beautiful star", "ma belle étoile"),
    (("my", ["red"], "star"), "my red star", "mon étoile rouge"),
    (("the", ["famous", "old"], "actress"), "the famous old actress", "la vieille actrice célèbre"),
    (("our", ["small"], "hiking trail"), "our small hiking trail", "notre petit sentier de randonnée"),
    (("the", ["green"], "apple tree"), "the green apple tree", "le pommier vert"),
]
PLURAL = [
    (("a", ["beautiful"], "tree"), "some beautiful trees", "de beaux arbres"),
    (("a", ["red"], "tree"), "some red trees", "des arbres rouges"),
    (("this", ["old"], "bear"), "these old bears", "ces vieux ours"),
    (("the", ["national"], "project"), "the national projects", "les projets nationaux"),
    (("a", ["large"], "potato"), "some large potatoes", "de grandes pommes de terre"),
    (("the", ["social"], "peace treaty"), "the social peace treaties", "les traités de paix sociaux"),
]


@pytest.mark.parametrize(("parts", "english", "french", "plural"), [
    *((*phrase, False) for phrase in SINGULAR), *((*phrase, True) for phrase in PLURAL)])
def test_phrases(parts, english, french, plural):
    pair = noun_phrase(*parts, plural=plural)
    assert (" ".join(pair.source), spelt(pair.target)) == (english, french)


SENTENCES = [
    ("i love our white cows", "j'aime nos vaches blanches"),
    ("i see our dangerous new princesses", "je vois nos nouvelles princesses dangereuses"),
    ("he draws my beautiful black fruit fly", "il dessine ma belle mouche des fruits noire"),
    ("he looks for my castle", "il cherche mon château"),
    ("she walks with the dangerous bird", "elle marche avec l'oiseau dangereux"),
    ("she works in some strange castles", "elle travaille dans des châteaux étranges"),
    ("we understand these old political economies", "nous comprenons ces vieilles économies politiques"),
    ("they buy these small english apple trees", "ils achètent ces petits pommiers anglais"),
    ("this english economy is new", "cette économie anglaise est nouvelle"),
    ("the old red jewel is green", "le vieux bijou rouge est vert"),
    ("our old economic reforms are large", "nos vieilles réformes économiques sont grandes"),
    ("some new laws are english", "de nouvelles lois sont anglaises"),
]


@pytest.mark.parametrize(("english", "french"), SENTENCES, ids=[english for english, _ in SENTENCES])
def test_sentences(english, french):
    assert [spelt(pair.target) for pair in train() if " ".join(pair.source) == english] == [french]


# ---------------------------------------------------------------- every form of the lexicon


def plural(word):
    """The regular plural of a French noun or masculine adjective."""
    if word.endswith(("s", "x")):
        return word
    if word.endswith("al"):
        return word[:-2] + "aux"
    if word.endswith("eau") or word == "bijou":
        return word + "x"
    return word + "s"


IRREGULAR = {"blanc": "blanche", "beau": "belle", "vieux": "vieille", "nouveau": "nouvelle"}


def feminine(word):
    """The regular feminine of a French adjective."""
    if word in IRREGULAR or word.endswith("e"):
        return IRREGULAR.get(word, word)
    if word.endswith("en"):
        return word + "ne"
    return word[:-1] + "se" if word.endswith("eux") else word + "e"


def test_adjectives_follow_the_rules():
    for row in ADJECTIVES.values():
        masculine = row["masculine"]
        assert row["masculine plural"] == plural(masculine), row
        assert row["feminine"] == feminine(masculine), row
        assert row["feminine plural"] == feminine(masculine) + "s", row
    assert {row["masculine"]: row["masculine before a vowel"] for row in ADJECTIVES.values()
            if row["masculine before a vowel"]} == {"beau": "bel", "vieux": "vieil", "nouveau": "nouvel"}


def test_nouns_follow_the_rules():
    for name, row in NOUNS.items():
        french, many = row["singular French"], row["plural French"]
        head, _, rest = french.partition(" ")
        assert many == " ".join([plural(head), rest]).strip(), name
        vowel = french[0] in "aeiouéèêîô" or french == "homme"  # the h of héros is aspirated
        assert row["elides"] == ("yes" if vowel else "no"), name
        assert row["gender"] in ("m", "f"), name


def test_verbs_follow_the_rules():
    for row in VERBS.values():
        je, il, nous, ils = (row[person] for person in ("je", "il", "nous", "ils"))
        if row["english"] == "are":
            assert (il, ils) == ("est", "sont")
            continue
        assert nous.endswith("ons") and ils.endswith("ent"), row
        if il.endswith("e"):
            assert (je, ils) == (il, il + "nt") and nous == il.replace("è", "e")[:-1] + "ons", row
        else:
            assert je == (il[:-1] if il.endswith("t") else il).replace("î", "i") + "s", row


# ---------------------------------------------------------------- alignments


@pytest.mark.parametrize("of_kind", [train, held_out], ids=["training", "held out"])
def test_alignments_cover_both_sides(of_kind):
    for pair in of_kind():
        assert len(pair.alignment) == len(pair.target)
        assert all(places and all(0 <= place < len(pair.source) for place in places) for places in pair.alignment)
        assert {place for places in pair.alignment for place in places} == set(range(len(pair.source))), pair


def test_alignment_of_words_that_cross_and_that_are_not_one_to_one():
    assert noun_phrase("the", ["european", "economic"], "area").alignment == ((0,), (3,), (2,), (1,))
    assert noun_phrase("a", [], "potato").alignment == ((0,), (1,), (1,), (1,))
    assert noun_phrase("a", ["small"], "hiking trail").alignment == ((0,), (1,), (3,), (2,), (2,))
    assert noun_phrase("a", ["red"], "apple tree").alignment == ((0,), (2, 3), (1,))
    looked = next(pair for pair in train() if pair.source[:2] == ("i", "look"))
    assert looked.target[1] == "cherche" and looked.alignment[1] == (1, 2)


# ---------------------------------------------------------------- training and held out


def combinations(pair):
    """The adjectives and the nouns they describe, found from the English alone; "is" and "are" included."""
    nouns = {form: row["singular"] for row in NOUNS.values() for form in (row["singular"], row["plural"])}
    found, adjectives, subject = [], [], None
    for word, after in zip(pair.source, (*pair.source[1:], ""), strict=True):
        if word in ADJECTIVES:
            adjectives.append(word)
        elif noun := nouns.get(f"{word} {after}") or nouns.get(word):
            found += [(adjective, noun) for adjective in adjectives]
            adjectives, subject = [], subject or noun
    return found + [(adjective, subject) for adjective in adjectives]


def test_no_held_out_combination_in_training():
    assert not any(is_held_out(*both) for pair in train() for both in combinations(pair))
    assert all(any(is_held_out(*both) for both in combinations(pair)) for pair in held_out())


def test_every_word_of_the_held_out_texts_is_learned_elsewhere():
    for side in (0, 1):
        known = {word for pair in train() for word in pair[side]}
        assert {word for pair in held_out() for word in pair[side]} <= known
        assert len(known) >= 0.98 * (len(translation.translation_vocabularies()[side]) - 3)


def test_held_out_combinations_fit_and_leave_enough():
    for name, row in NOUNS.items():
        held_out = row["held out"].split(",")
        assert len(held_out) == 2 and all(fits(adjective, name) for adjective in held_out), name
    for adjective in ADJECTIVES:
        partners = [name for name in NOUNS if fits(adjective, name)]
        kept = [name for name in partners if not is_held_out(adjective, name)]
        assert len(kept) >= 0.6 * len(partners) and len(kept) < len(partners), adjective


# ---------------------------------------------------------------- size, order, tensors


def test_texts_are_different_and_short():
    assert len({pair.source for pair in train()}) == len(train())
    assert max(len(pair.source) for pair in train() + held_out()) == translation.LONGEST
    assert {len(pair.source) for pair in translation_pairs(200, seed=3, words=(11, 12))} == {11, 12}


def test_no_two_translations_of_one_text():
    translations = {}
    for pair in train() + held_out() + translation_pairs(6000, seed=2):
        assert translations.setdefault(pair.source, pair.target) == pair.target


def test_tensors():
    english, french = translation.translation_vocabularies()
    pairs = train()[:50]
    source, target, aligned = translation.translation_tensors(pairs)
    assert source.shape[0] == target.shape[0] == 50 and aligned.shape == (50, target.shape[1], source.shape[1])
    assert aligned.dtype == torch.bool and source.dtype == target.dtype == torch.int64
    for n, pair in enumerate(pairs):
        assert english.decode(source[n]) == " ".join(pair.source)
        assert french.decode(target[n]) == " ".join(pair.target)
        assert target[n].tolist().count(EOS) == 1 and BOS not in target[n]
        assert (source[n] != PAD).sum() == len(pair.source)
        for t in range(target.shape[1]):
            places = pair.alignment[t] if t < len(pair.alignment) else ()
            assert aligned[n, t].nonzero().flatten().tolist() == sorted(places)


def test_lengths_that_no_text_has():
    for words in ((1, 5), (8, 6), (5, 40)):
        with pytest.raises(ValueError, match="2 to 12 words"):
            translation_pairs(5, seed=0, words=words)


def test_spelling():
    assert spelt(("l'", "arbre", "est", "vieux")) == spelt("l' arbre est vieux") == "l'arbre est vieux"


# ---------------------------------------------------------------- what the lesson builds, against the library


def test_a_source_without_a_word_gives_zeros():
    """As in lesson 06; test_lesson10.py holds the rest against the module."""
    Y, X, W = torch.ones(3, 4, 8), torch.ones(3, 6, 8), torch.eye(8)
    for result in transformer.cross_attention(Y, X, W, W, W, torch.zeros(3, 6, dtype=torch.bool)):
        assert not result.any()


def translator(vocabulary):
    return transformer.TranslationModel(transformer.Config(vocabulary, d=16, n_heads=2, mlp=16, positions="rope"), 20).eval()


def test_greedy_decoding_is_what_translate_writes():
    """Untrained models write anything: some texts end, others do not."""
    source = torch.randint(3, 20, (10, 5), generator=torch.Generator().manual_seed(0))
    ended = []
    for seed in range(6):
        with training.seeded(seed), torch.no_grad():
            model = translator(7)
            for row, text in zip(model.translate(source, BOS, EOS, 9).tolist(), source, strict=True):
                memory = model.encode(text[None])
                ids = transformer.greedy_decode(lambda ids, to=model, memory=memory:
                                                to.decode(torch.tensor([ids]), memory)[0, -1], BOS, EOS, 9)
                ended.append(ids[-1] == EOS)
                assert row[:len(ids)] == ids and set(row[len(ids):]) <= {EOS}
    assert 0 < sum(ended) < len(ended)
