"""The English-French grammar: every form, the agreement of what it writes, its alignments and its held-out combinations."""

import functools
from collections import Counter

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


# Written out by hand: what a person would translate. Sentences of the generator are held against the rules further down.
SINGULAR = [
    (("the", ["european", "economic"], "area"), "the european economic area", "la zone économique européenne"),
    (("the", ["european"], "union"), "the european union", "l'union européenne"),
    (("a", ["european"], "area"), "a european area", "une zone européenne"),
    (("a", ["economic"], "area"), "an economic area", "une zone économique"),
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
    (("the", ["small", "red"], "house"), "the small red house", "la petite maison rouge"),
    (("the", ["famous", "old"], "actress"), "the famous old actress", "la vieille actrice célèbre"),
    (("the", [], "fruit fly"), "the fruit fly", "la mouche des fruits"),
    (("our", ["small"], "hiking trail"), "our small hiking trail", "notre petit sentier de randonnée"),
    (("the", ["green"], "apple tree"), "the green apple tree", "le pommier vert"),
]
PLURAL = [
    (("a", ["beautiful"], "tree"), "some beautiful trees", "de beaux arbres"),
    (("a", ["red"], "tree"), "some red trees", "des arbres rouges"),
    (("this", ["old"], "bear"), "these old bears", "ces vieux ours"),
    (("the", ["national"], "project"), "the national projects", "les projets nationaux"),
    (("my", ["grey"], "horse"), "my grey horses", "mes chevaux gris"),
    (("our", ["white"], "fly"), "our white flies", "nos mouches blanches"),
    (("a", ["large"], "potato"), "some large potatoes", "de grandes pommes de terre"),
    (("the", ["social"], "peace treaty"), "the social peace treaties", "les traités de paix sociaux"),
]


@pytest.mark.parametrize(("parts", "english", "french", "plural"), [
    *((*phrase, False) for phrase in SINGULAR), *((*phrase, True) for phrase in PLURAL)])
def test_phrases(parts, english, french, plural):
    pair = noun_phrase(*parts, plural=plural)
    assert (" ".join(pair.source), spelt(pair.target)) == (english, french)


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


ENDINGS = {  # je, il, nous, ils after the stem that all four share
    "aimer": "e e ons ent", "acheter": "ète ète etons ètent", "voir": "is it yons ient", "vendre": "s  ons ent",
    "connaître": "ais aît aissons aissent", "comprendre": "ds d ons nent", "défendre": "s  ons ent",
    "dormir": "s t mons ment"}
STEMS = {"aime": "aimer", "cherche": "aimer", "trouve": "aimer", "dessine": "aimer", "supporte": "aimer", "vole": "aimer",
         "arrive": "aimer", "marche": "aimer", "travaille": "aimer", "achète": "acheter", "voit": "voir", "vend": "vendre",
         "connaît": "connaître", "disparaît": "connaître", "comprend": "comprendre", "défend": "défendre", "dort": "dormir"}


def test_verbs_follow_their_conjugations():
    for row in VERBS.values():
        if row["english"] == "are":
            assert (row["il"], row["ils"]) == ("est", "sont")
            continue
        endings = ENDINGS[STEMS[row["il"]]].split(" ")
        stem = row["il"].removesuffix(endings[1])
        assert [row[person] for person in ("je", "il", "nous", "ils")] == [stem + ending for ending in endings]


# ---------------------------------------------------------------- what the generator writes

STARTS_WITH_VOWEL = {word for row in NOUNS.values() if row["elides"] == "yes"
                     for word in (row["singular French"], row["plural French"])}
VOWEL_VERBS = {"aime", "achète", "arrive"}
BEFORE = {form for row in ADJECTIVES.values() if row["group"] == "before" for form in row.values()}
SINGULAR_ONLY = {"le", "la", "l'", "un", "une", "ce", "cet", "cette", "mon", "ma", "notre"}
PLURAL_ONLY = {"les", "des", "ces", "mes", "nos"}


@pytest.mark.parametrize("of_kind", [train, held_out], ids=["training", "held out"])
def test_elision_and_forms_before_a_vowel(of_kind):
    for pair in of_kind():
        for last, word, after in zip(("", *pair.target), pair.target, pair.target[1:], strict=False):
            vowel = after in STARTS_WITH_VOWEL
            if word in ("l'", "cet", "bel", "vieil", "nouvel"):
                assert vowel, pair
            elif word in ("le", "la", "ce", "ma", "beau", "nouveau"):
                assert not vowel, pair
            elif word == "vieux" and vowel:  # right in the plural only: "les vieux ours"
                assert last in PLURAL_ONLY | {"de"}, pair
            elif word in ("j'", "je"):
                assert (word == "j'") == (after in VOWEL_VERBS), pair
            elif word == "des" and after != "fruits":
                assert after not in BEFORE, pair


def phrases(pair):
    """The noun phrases of a pair, found from its English and its alignment alone: dicts with the French words of each."""
    nouns = {form: (name, form == row["plural"]) for name, row in NOUNS.items() for form in (row["singular"], row["plural"])}
    determiners = {form for row in WORDS["determiner"].values() for form in (row["singular"], row["plural"])} | {"an"}
    for start, word in enumerate(pair.source):
        if word not in determiners:
            continue
        end = start + 1
        adjectives = []
        while pair.source[end] in ADJECTIVES:
            adjectives.append(end)
            end += 1
        two = " ".join(pair.source[end:end + 2])
        name, is_plural = nouns[two] if two in nouns else nouns[pair.source[end]]
        yield start, adjectives, end, NOUNS[name], is_plural


@pytest.mark.parametrize("of_kind", [train, held_out], ids=["training", "held out"])
def test_everything_agrees(of_kind):
    """Gender and number of each adjective, determiner and verb, found by following the alignment from the English word."""
    for pair in of_kind()[:3000]:
        french_of = {}
        for word, places in zip(pair.target, pair.alignment, strict=True):
            for place in places:
                french_of.setdefault(place, []).append(word)
        for start, adjectives, _, noun, is_plural in phrases(pair):
            determiner, = french_of[start]
            assert determiner in (PLURAL_ONLY | {"de"} if is_plural else SINGULAR_ONLY), pair
            assert noun["plural French" if is_plural else "singular French"] in " ".join(pair.target), pair
            if determiner in ("la", "une", "cette", "ma"):
                assert noun["gender"] == "f", pair
            elif determiner in ("le", "un", "ce", "cet"):
                assert noun["gender"] == "m", pair
            for place in adjectives:
                form, = french_of[place]
                row = ADJECTIVES[pair.source[place]]
                right = row[("masculine" if noun["gender"] == "m" else "feminine") + (" plural" if is_plural else "")]
                assert form == right or (form == row["masculine before a vowel"] and not is_plural
                                         and noun["elides"] == "yes" and noun["gender"] == "m"), pair
        if "is" in pair.source or "are" in pair.source:
            verb = pair.source.index("is" if "is" in pair.source else "are")
            _, _, _, noun, is_plural = next(phrases(pair))
            assert french_of[verb] == ["sont" if is_plural else "est"], pair
            row = ADJECTIVES[pair.source[verb + 1]]
            assert french_of[verb + 1] == [
                row[("masculine" if noun["gender"] == "m" else "feminine") + (" plural" if is_plural else "")]], pair


def test_verbs_agree():
    person = {"i": "je", "he": "il", "she": "il", "we": "nous", "they": "ils"}
    seen = Counter()
    for pair in train():
        for row in VERBS.values():
            for english in (row["english"], row["english with he"]):
                words = tuple(english.split())
                for at in range(len(pair.source)):
                    if pair.source[at:at + len(words)] != words or pair.source[at - 1] not in person:
                        continue
                    who = person[pair.source[at - 1]]
                    assert english == row["english with he" if who == "il" else "english"], pair
                    assert row[who] in pair.target, pair
                    seen[who] += 1
    assert min(seen.values()) > 50 and len(seen) == 4


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


def pairs_of(pair):
    """The adjectives and the nouns they describe, found from the English alone; "is" and "are" included."""
    found = []
    for _, adjectives, _, noun, _ in phrases(pair):
        found += [(pair.source[place], noun["singular"]) for place in adjectives]
    if "is" in pair.source or "are" in pair.source:
        verb = pair.source.index("is" if "is" in pair.source else "are")
        found.append((pair.source[verb + 1], next(phrases(pair))[3]["singular"]))
    return found


def test_no_held_out_combination_in_training():
    assert not any(is_held_out(*both) for pair in train() for both in pairs_of(pair))
    assert all(any(is_held_out(*both) for both in pairs_of(pair)) for pair in held_out())


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


def floats(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=torch.float64)


def test_cross_attention_is_the_module_and_torch():
    Y, X, W_q, W_k, W_v = floats(3, 4, 8), floats(3, 6, 8), *(floats(8, 8) + i for i in range(3))
    mask = torch.arange(6) < torch.tensor([6, 2, 3])[:, None]
    module = transformer.MultiHeadAttention(8, 1, bias=False).double()
    with torch.no_grad():
        for linear, W in zip([module.W_q, module.W_k, module.W_v, module.W_o], [W_q, W_k, W_v, torch.eye(8)], strict=True):
            linear.weight.copy_(W.T)
    for source_mask in (None, mask):
        wide = None if source_mask is None else source_mask[:, None, None]
        output, weights = transformer.cross_attention(Y, X, W_q, W_k, W_v, source_mask)
        by_module, seen = module(Y, context=X, mask=wide, weights=True)
        by_torch = torch.nn.functional.scaled_dot_product_attention(
            Y @ W_q, X @ W_k, X @ W_v, attn_mask=None if source_mask is None else source_mask[:, None])
        assert torch.allclose(output, by_module) and torch.allclose(output, by_torch)
        assert torch.allclose(weights, seen[:, 0])
    for result in transformer.cross_attention(Y, X, W_q, W_k, W_v, mask & False):
        assert not result.any(), "a source without a word gives zeros, as in lesson 06"


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
