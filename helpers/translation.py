"""English and French from one small grammar, which knows which word is the translation of which (lesson 10).

It is small enough to read, and exact: a trained translator is judged, not admired. The words are in
``data/translation_lexicon.tsv``.
"""

import functools
import random
from pathlib import Path
from typing import NamedTuple

import torch

from helpers import transformer
from helpers.grammars import EOS, Vocabulary, pad

PIECES = {piece.__name__: piece
          for piece in (transformer.cross_attention, transformer.decoder_block, transformer.greedy_decode)}

ADJECTIVE_ORDER = ("quality", "before", "colour", "origin", "domain")  # in English
LONGEST = 10  # English words in a text
ENGLISH = ("singular", "plural", "english", "english with he")  # the lexicon's columns of English words, and those
NO_WORDS = "group,gender,elides,comes from,held out,goes with,person,subjects,objects".split(",")  # of no words
LEXICON = Path(__file__).resolve().parent.parent / "data" / "translation_lexicon.tsv"


class Pair(NamedTuple):
    """A text, its translation, and which words belong together.

    ``source``: English words; ``target``: French words, "l'" and "j'" being words of their own;
    ``alignment``: for each French word the places of the English words that it comes from, one or more.
    """

    source: tuple
    target: tuple
    alignment: tuple


@functools.cache
def lexicon():
    """The words of the grammar, from ``data/translation_lexicon.tsv``: kind -> English -> row, a dict."""
    words, columns = {}, {}
    for line in LEXICON.read_text(encoding="utf-8").splitlines():
        cells = line.split("\t")
        if len(cells) > 1 and line.startswith("#"):
            columns[cells[0][1:]] = cells[1:]
        elif len(cells) > 1:
            row = {name: "" if cell == "-" else cell for name, cell in zip(columns[cells[0]], cells[1:], strict=True)}
            words.setdefault(cells[0], {})[row.get("english", row.get("singular"))] = row
    return words


def is_held_out(adjective, noun):
    """Is this pair kept from training? Both are English, the noun in the singular."""
    return adjective in lexicon()["noun"][noun]["held out"].split(",")


def noun_phrase(determiner, adjectives, noun, plural=False):
    """``noun_phrase("the", ["european", "economic"], "area")`` is the Pair "the european economic area" and
    "la zone économique européenne".

    ``determiner`` and ``noun`` are given in the singular, ``adjectives`` in their English order. In French those of
    the group "before" stay in front of the noun, and the others follow it in reverse order. Raises KeyError
    for a word that is not in the lexicon.
    """
    words = lexicon()
    det, thing = words["determiner"][determiner], words["noun"][noun]
    adjectives = [words["adjective"][adjective] for adjective in adjectives]
    number = "plural" if plural else "singular"
    english = [det[number], *(adjective["english"] for adjective in adjectives), *thing[number].split()]
    if english[0] == "a" and english[1][0] in "aeiou" and not english[1].startswith(("eu", "uni")):
        english[0] = "an"  # european and union begin with a consonant's sound

    at = 1 + len(adjectives)  # the place of the noun's first English word
    in_order = list(enumerate(adjectives, 1))
    before = [(place, adjective) for place, adjective in in_order if adjective["group"] == "before"]
    after = [(place, adjective) for place, adjective in reversed(in_order) if adjective["group"] != "before"]
    vowel = thing["elides"] == "yes" and not plural
    french = [(_determiner(det, thing, plural, vowel and not before, before), (0,))]
    french += [(_agree(a, thing, plural, vowel and a is before[-1][1]), (place,)) for place, a in before]
    origin = thing["comes from"].split() or ["0"]  # for each French word of the noun the English words of it
    french += [(word, tuple(at + int(i) for i in places))
               for word, places in zip(thing[f"{number} French"].split(), origin, strict=True)]
    french += [(_agree(a, thing, plural), (place,)) for place, a in after]
    return Pair(tuple(english), *zip(*french, strict=True))


def _determiner(row, noun, plural, vowel, before):
    if plural:
        return row["plural before an adjective" if before else "plural French"]
    gender = "masculine" if noun["gender"] == "m" else "feminine"
    return row[f"{gender} before a vowel" if vowel else gender]


def _agree(adjective, noun, plural=False, vowel=False):
    """The form of ``adjective`` that agrees with ``noun``; ``vowel``: the noun follows and begins with a vowel's sound."""
    if noun["gender"] == "m" and vowel and adjective["masculine before a vowel"]:
        return adjective["masculine before a vowel"]
    return adjective[("masculine" if noun["gender"] == "m" else "feminine") + (" plural" if plural else "")]


def _join(*parts):
    """One Pair of several that follow each other in both languages."""
    source, target, alignment = (), (), ()
    for part in parts:
        alignment += tuple(tuple(len(source) + i for i in places) for places in part.alignment)
        source, target = source + part.source, target + part.target
    return Pair(source, target, alignment)


def _one(english, french):
    """A Pair whose single French word comes from all the English ones."""
    words = tuple(english.split())
    return Pair(words, (french,), (tuple(range(len(words))),))


@functools.cache
def _rows(kind, column, group):
    """The rows of the lexicon that have ``group`` in their cell ``column``, or all of a kind."""
    return [row for row in lexicon()[kind].values() if column is None or group in row[column].split(",")]


class _Writer:
    """Draws phrases and sentences. Only ``random.random`` is drawn from: Python keeps its stream the same for ever."""

    def __init__(self, seed):
        self.random, self.words = random.Random(seed).random, lexicon()
        self.pairs = set()  # of an adjective and the noun it describes, since the last sentence

    def choose(self, options):
        return options[int(self.random() * len(options))]

    def choose_from(self, kind, column=None, group=None):
        return self.choose(_rows(kind, column, group))

    def phrase(self, groups):
        """A noun phrase about something in ``groups``. Returns (Pair, noun, plural)."""
        group = self.choose(groups.split(","))
        noun = self.choose_from("noun", "group", group)["singular"]
        n_adjectives = self.choose((0, 0, 1, 1, 1, 2, 2))
        chosen = {}  # group -> adjective: at most one of each group
        while len(chosen) < n_adjectives:
            row = self.choose_from("adjective", "goes with", group)
            chosen[row["group"]] = row["english"]
        adjectives = [chosen[group] for group in ADJECTIVE_ORDER if group in chosen]
        self.pairs |= {(adjective, noun) for adjective in adjectives}
        plural = self.random() < 0.4
        return noun_phrase(self.choose(list(self.words["determiner"])), adjectives, noun, plural), noun, plural

    def sentence(self):
        """A noun phrase, or a sentence with subject and verb. Returns a Pair."""
        self.pairs = set()
        kind = self.random()
        if kind < 0.2:
            return self.phrase("person,animal,place,thing,institution")[0]
        if kind < 0.4:
            row = self.choose_from("pronoun")
            subject, noun, person = _one(row["english"], row["french"]), None, row["person"]
            verb = self.choose([v for v in self.words["verb"].values() if v["nous"]])
            if verb[person][0] in "aeiou" and row["french"] != row["before a vowel"]:
                subject = _one(row["english"], row["before a vowel"])
        else:
            group = self.choose("person,animal,place,thing,institution".split(","))
            subject, noun, plural = self.phrase(group)
            person = "ils" if plural else "il"
            verb = self.choose_from("verb", "subjects", group)
        parts = [subject, _one(verb["english with he" if person == "il" else "english"], verb[person])]
        if verb["objects"] == "adjective":
            parts.append(self.predicate(noun, plural))
        elif verb["objects"]:
            parts.append(self.phrase(verb["objects"])[0])
        elif self.random() < 0.7:
            preposition = self.choose_from("preposition")
            parts += [_one(preposition["english"], preposition["french"]), self.phrase(preposition["goes with"])[0]]
        return _join(*parts)

    def predicate(self, noun, plural):
        """An adjective that says something about the subject: "the house is red"."""
        fitting = _rows("adjective", "goes with", self.words["noun"][noun]["group"])
        row = self.choose([row for row in fitting if row["group"] != "domain" and (row["english"], noun) not in self.pairs])
        self.pairs.add((row["english"], noun))
        return _one(row["english"], _agree(row, self.words["noun"][noun], plural))


def translation_pairs(n, seed, held_out=False, words=(2, LONGEST)):
    """``n`` different texts with their translations, a list of `Pair`: noun phrases and sentences. The same ``seed``
    draws the same ones. ``words``: the fewest and the most English words of a text, from 2 to 12.

    No text for training contains an adjective with a noun from which it is held out. With ``held_out=True`` every
    text contains such a combination, though each of its words occurs in training with others.
    Raises ValueError when ``words`` are not two such numbers.
    """
    if not 2 <= words[0] <= words[1] <= 12:
        raise ValueError(f"The grammar writes texts of 2 to 12 words; it was asked for {words[0]} to {words[1]}.")
    writer, pairs = _Writer(seed), {}
    while len(pairs) < n:
        pair = writer.sentence()
        if words[0] <= len(pair.source) <= words[1] and any(is_held_out(*both) for both in writer.pairs) == held_out:
            pairs[pair.source] = pair
    return list(pairs.values())


@functools.cache
def translation_vocabularies():
    """The vocabularies of all English and all French words of the grammar, each in alphabetical order."""
    english, french = {"an"}, set()
    for rows in lexicon().values():
        for row in rows.values():
            for column, cell in row.items():
                if column in ENGLISH:
                    english.update(cell.split())
                elif column not in NO_WORDS:
                    french.update(cell.split())
    return Vocabulary(sorted(english)), Vocabulary(sorted(french))


def translation_tensors(pairs):
    """Ids and gold alignments of ``pairs`` as three tensors, padded to the longest text:

    source ``(N, T_s)``; target ``(N, T_t)``, EOS behind each text; aligned ``(N, T_t, T_s)`` bool, True where a French
    word comes from an English one. The rows of EOS and of padding are all False.
    """
    english, french = translation_vocabularies()
    source = pad([english.encode(pair.source) for pair in pairs])
    target = pad([[*french.encode(pair.target), EOS] for pair in pairs])
    aligned = torch.zeros(*target.shape, source.shape[1], dtype=torch.bool)
    cells = [(n, t, s) for n, pair in enumerate(pairs) for t, places in enumerate(pair.alignment) for s in places]
    aligned[torch.tensor(cells).unbind(1)] = True
    return source, target, aligned


def trials(d=64):
    """Arguments for the pieces of a translator of width ``d``, to see whether one can be trained: name -> a tuple.

    64 texts of 11 French and 10 English words, and sublayers that are made up: ``(64, 11, d)``, ``(64, 10, d)``.
    """
    g = torch.Generator().manual_seed(0)
    shapes = [(64, 11, d), (64, 10, d), (d, d), (d, d), (d, d)]
    Y, X, *W = (torch.randn(shape, generator=g) / d**0.5 for shape in shapes)
    sublayers = torch.tanh, lambda y, memory: y * memory.mean(1, keepdim=True), torch.sin
    norms = torch.sin, torch.sin, torch.sin
    return {"cross_attention": (Y, X, *W, None), "decoder_block": (Y, X, *sublayers, *norms)}


def spelt(french):
    """French as it is written: the words in one string, without a blank behind an apostrophe."""
    return (french if isinstance(french, str) else " ".join(french)).replace("' ", "'")
