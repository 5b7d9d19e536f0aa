"""The texts that the course's models are trained on: two grammars, what turns their words into ids, and real text.

Both grammars are small enough to read, and exact: the translations carry their word alignments, and the
agreement text carries the probability of every word. So a trained model is judged, not admired.
"""

import functools
import itertools
import lzma
import random
from pathlib import Path
from typing import NamedTuple

import torch

PAD, BOS, EOS = 0, 1, 2  # the first ids of every vocabulary
SPECIAL = ("<pad>", "<bos>", "<eos>")
ADDRESSES_FILE = Path(__file__).resolve().parent.parent / "data" / "addresses.txt.xz"


class Vocabulary:
    """Words and their ids: the three of SPECIAL first, then ``words`` in the order given, each once.

    ``vocabulary[word]`` is an id, ``vocabulary.words[i]`` a word. Raises ValueError when a word is given twice.
    """

    def __init__(self, words):
        self.words = (*SPECIAL, *words)
        self._ids = {word: i for i, word in enumerate(self.words)}
        if len(self._ids) < len(self.words):
            twice = next(word for word in self.words if self.words.count(word) > 1)
            raise ValueError(f"Each word may stand in a vocabulary once, and {twice!r} is there twice.")

    def __len__(self):
        return len(self.words)

    def __getitem__(self, word):
        if word not in self._ids:
            raise ValueError(f"The vocabulary of {len(self)} words does not hold {word!r}.")
        return self._ids[word]

    def encode(self, sentence):
        """Ids of a sentence: a string of words with blanks between them, or a list of words.
        Raises ValueError for an unknown word."""
        return [self[word] for word in (sentence.split() if isinstance(sentence, str) else sentence)]

    def decode(self, ids):
        """The words of ``ids`` as one string, up to the first EOS, without the special ones."""
        words = []
        for i in map(int, ids):
            if i == EOS:
                break
            if i >= len(SPECIAL):
                words.append(self.words[i])
        return " ".join(words)


def pad(sequences):
    """Lists of ids as one tensor ``(N, T)``, PAD behind each; T is the longest sequence's."""
    length = max(map(len, sequences))
    return torch.tensor([[*ids, *[PAD] * (length - len(ids))] for ids in sequences])


# ---------------------------------------------------------------- English and French

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
        wanted = self.choose((0, 0, 1, 1, 1, 2, 2))
        chosen = {}  # group -> adjective: at most one of each group
        while len(chosen) < wanted:
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


def spelt(french):
    """French as it is written: the words in one string, without a blank behind an apostrophe."""
    return (french if isinstance(french, str) else " ".join(french)).replace("' ", "'")


# ---------------------------------------------------------------- agreement

# A rule is a weight and what its symbol is replaced by. n and m stand for s (singular) and p (plural): the same n
# everywhere in a rule and its head is agreement. A and B stand for two different names.

NAMES = "anna ben carla david emma felix".split()
NOUNS = "key cabinet letter door king dog".split()
HOMOGRAPHS = {  # noun or verb, as the words to the left decide -> what the verb is done to
    "bear": "pain load", "fly": "kite plane", "date": "actor singer", "watch": "game film", "plant": "tree rose"}
AGREEMENT = {
    "S": ["6 CLAUSE .", "4 A tells B that CLAUSE and B thanks A ."],
    "CLAUSE": ["3 SUBJECT.n MORE.n PREDICATE.n", "1 PRONOUN.n PREDICATE.n"],
    "SUBJECT.s": ["1 the HEAD.s", "1 a HEAD.s"],
    "SUBJECT.p": ["1 the HEAD.p", "1 HEAD.p"],
    "HEAD.n": ["1 NOUN.n"],
    "PRONOUN.s": ["1 she", "1 he"],
    "PRONOUN.p": ["1 they", "1 we"],
    "MORE.n": ["4", "3 PLACE", "2 PLACE PLACE", "3 PLACE PLACE PLACE", "4 that the NOUN.m LOVES.m", "4 that ACTION.n"],
    "PLACE": ["3 near OTHER.m", "3 behind OTHER.m", "3 with OTHER.m", "1 to OTHER.m"],
    "OTHER.s": ["1 the NOUN.s", "1 a NOUN.s"],
    "OTHER.p": ["1 the NOUN.p", "1 NOUN.p"],
    "PREDICATE.n": ["7 IS.n ADJECTIVE", "6 WAITS.n", "3 WAITS.n and ACTION.n", "4 ACTION.n"],
    "ACTION.n": ["1 LOVES.n OTHER.m", "4 BEARS.n"],
    "IS.s": ["1 is"],
    "IS.p": ["1 are"],
    "ADJECTIVE": ["1 rusty", "1 old", "1 new", "1 small", "1 lost"],
}


def with_s(word):
    """The plural of a noun, or what a verb is with she."""
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + ("es" if word.endswith("ch") else "s")


def agreement_rules(nouns=NOUNS, homographs=HOMOGRAPHS):
    """AGREEMENT with its words. Homographs are a quarter of the nouns: so each of their forms is as often a noun as a
    verb, exactly."""
    rules = dict(AGREEMENT)
    for n, noun, verb in (("s", str, with_s), ("p", with_s, str)):
        rules["NOUN." + n] = [f"{3 / len(nouns)} {noun(word)}" for word in nouns]
        rules["NOUN." + n] += [f"{1 / len(homographs)} {noun(word)}" for word in homographs]
        rules["WAITS." + n] = [f"1 {verb(word)}" for word in ("wait", "fall", "return")]
        rules["LOVES." + n] = [f"1 {verb(word)}" for word in ("love", "follow", "hide", "please")]
        rules["BEARS." + n] = [f"1 {verb(word)} the OBJECT.{word}" for word in homographs]
    return rules | {f"OBJECT.{word}": [f"1 {thing}" for thing in objects.split()] for word, objects in homographs.items()}


class Text(NamedTuple):
    """Rows of text that a grammar wrote or read. Nothing is known of the first token of a row, which is BOS."""

    tokens: torch.Tensor  #: (N, T) ids
    log_p: torch.Tensor  #: (N, T) log probability of each token given all before it; -inf: not allowed; 0 for BOS
    tags: torch.Tensor  #: (N, T) ids of `Grammar.tags`


class Grammar:
    """A probabilistic grammar without recursion, compiled to states, so that it writes text and knows its entropy.

    ``rules``: as AGREEMENT; ``names``: what A and B may be; ``marks``: symbols (without their .s or .p) that words are
    tagged with; of several the outermost counts. A state is what a reader knows: which symbols may still be to come,
    and how probable each continuation is, given the words so far. After a full stop it is the first state again.

    ``p``: ``(S, V)`` probability of each word in each state; ``next``: ``(S, V)`` the state after it, S - 1 after a word
    that is not allowed, until the next full stop; ``tag``: ``(S, V)`` ids of ``tags``, of which 0 is no tag.
    Raises ValueError when a word could have two tags in the same place.
    """

    def __init__(self, rules, names=(), marks=()):
        self.rules = {}
        for head, lines in rules.items():
            for n in "sp" if head.endswith(".n") else " ":
                self.rules[head.replace(".n", "." + n)] = self._versions(lines, n, names)
        self.marks = tuple(marks)
        start = ((("S",), 1.0),)
        numbers, edges = {start: 0}, []  # state -> its number; (state, word, probability, tag, state)
        for state in (queue := [start]):
            for word, p, tag, new in self._after(state, start):
                if new not in numbers:
                    numbers[new] = len(queue)
                    queue.append(new)
                edges.append((numbers[state], word, p, tag, numbers[new]))
        self.vocabulary = Vocabulary(dict.fromkeys(edge[1] for edge in edges))
        self.tags = ("", *sorted({edge[3] for edge in edges} - {""}))
        S, V = len(numbers) + 1, len(self.vocabulary)
        self.p = torch.zeros(S, V, dtype=torch.float64)
        self.next = torch.full((S, V), S - 1)
        self.tag = torch.zeros(S, V, dtype=torch.long)
        for state, word, p, tag, new in edges:
            i = self.vocabulary[word]
            self.p[state, i], self.next[state, i], self.tag[state, i] = p, new, self.tags.index(tag)
            if new == 0:
                self.next[-1, i] = 0  # after a full stop all is well again
        self._below = self.p.cumsum(1).masked_fill(self.p.flip(1).cumsum(1).flip(1) - self.p < 1e-12, 2.0)

    @staticmethod
    def _versions(lines, n, names):
        """Rules without variables: (probability, symbols). What a variable may be is equally probable."""
        versions = []
        for line in lines:
            weight, *symbols = line.split()
            filled = {tuple(s.replace(".n", "." + i).replace(".m", "." + j) if "." in s else {"A": a, "B": b}.get(s, s)
                            for s in symbols): None
                      for i in n.strip() or "sp" for j in "sp" for a, b in itertools.permutations(names or "AB", 2)}
            versions += [(float(weight) / len(filled), symbols) for symbols in filled]
        total = sum(weight for weight, _ in versions)
        return [(weight / total, symbols) for weight, symbols in versions]

    def _first(self, symbols):
        """Every word that ``symbols`` can begin with: (probability, word, symbols left, tag)."""
        if symbols[0] not in self.rules:
            yield 1.0, symbols[0], symbols[1:], ""
            return
        marked = symbols[0].split(".")[0] in self.marks
        for p, expansion in self.rules[symbols[0]]:
            for q, word, left, tag in self._first(expansion + symbols[1:]):
                yield p * q, word, left, symbols[0] if marked else tag

    def _after(self, state, start):
        """Every word that may come in ``state``: (word, probability, tag, next state)."""
        found = {}
        for symbols, p in state:
            for q, word, left, tag in self._first(symbols):
                tag_before, continuations = found.setdefault(word, (tag, {}))
                if tag != tag_before:
                    raise ValueError(f"{word!r} could be {tag or 'untagged'} and {tag_before or 'untagged'} in one place.")
                continuations[left] = continuations.get(left, 0) + p * q
        for word, (tag, continuations) in found.items():
            p = sum(continuations.values())
            ended = () in continuations
            yield word, p, tag, start if ended else tuple(sorted((c, round(q / p, 12)) for c, q in continuations.items()))

    def write(self, n, T, generator):
        """Draw ``n`` rows of ``T`` tokens from a ``torch.Generator``: BOS, then sentence after sentence, cut off at T."""
        states, tokens = [torch.zeros(n, dtype=torch.long)], [torch.full((n,), BOS)]
        for u in torch.rand(T - 1, n, 1, generator=generator, dtype=torch.float64):
            tokens.append((self._below[states[-1]] <= u).sum(1))  # the first word whose cumulated probability is above u
            states.append(self.next[states[-1], tokens[-1]])
        return self._text(torch.stack(tokens, 1), torch.stack(states, 1))

    def read(self, tokens):
        """Go along ``tokens`` ``(N, T)``, each row beginning with BOS, and say how probable they are: a ``Text``."""
        return self._text(tokens, self.states(tokens))

    def _text(self, tokens, states):
        places = states[:, :-1], tokens[:, 1:]  # the word that came in each state
        log_p, tags = torch.zeros(tokens.shape, dtype=torch.float64), torch.zeros_like(tokens)
        log_p[:, 1:], tags[:, 1:] = self.p[places].log(), self.tag[places]
        return Text(tokens, log_p, tags)

    def states(self, tokens):
        """``(N, T)`` ids -> ``(N, T)``: the state after each token, so that ``p[states]`` is what may come next."""
        states = [torch.zeros(len(tokens), dtype=torch.long)]
        for word in tokens.T[1:]:
            states.append(self.next[states[-1], word])
        return torch.stack(states, 1)

    def visits(self):
        """``(S,)``: how often each state is visited in a sentence, expected. The first state counts once."""
        visits = torch.zeros(len(self.p), dtype=torch.float64)
        here = visits.clone()
        here[0] = 1.0
        while here.sum() > 0:
            visits += here
            step = torch.zeros_like(here).index_add(0, self.next.flatten(), (here[:, None] * self.p).flatten())
            step[0] = 0  # the sentence is over
            here = step
        return visits

    def entropy(self):
        """Exact: (nats in a sentence, tokens in a sentence), both expected. Their ratio is the entropy rate, in nats a
        token: no model of the text can have a lower loss (Shannon 1948, theorem 5)."""
        visits = self.visits()
        return float((visits * torch.special.entr(self.p).sum(1)).sum()), float(visits.sum())


def agreement_grammar(small=False):
    """The grammar of lesson 11. Words that are a subject's noun are tagged HEAD, other nouns NOUN or OBJECT, the verb
    that agrees with the subject PREDICATE, other verbs ACTION or LOVES; with .s or .p for their number.
    ``small``: the same rules with half of the nouns and names, for experiments that train many models."""
    marks = ("HEAD", "NOUN", "OBJECT", "PREDICATE", "ACTION", "LOVES")
    if small:
        few = {word: HOMOGRAPHS[word] for word in ("bear", "fly")}
        return Grammar(agreement_rules(NOUNS[:3], few), NAMES[:3], marks)
    return Grammar(agreement_rules(), NAMES, marks)


class Cases(NamedTuple):
    """The places in a text where a verb agrees with a noun before it: n numbers each."""

    row: torch.Tensor  #: (n,) the row of the text
    subject: torch.Tensor  #: (n,) where the subject's noun stands
    verb: torch.Tensor  #: (n,) where the verb stands
    plural: torch.Tensor  #: (n,) bool: the number of both
    between: torch.Tensor  #: (n,) nouns between the two, the distractors
    against: torch.Tensor  #: (n,) how many of them have the other number


def agreement_cases(grammar, text):
    """Find every verb tagged PREDICATE whose subject is a noun, in a ``Text`` of ``agreement_grammar()``."""
    roles = [(tag.split(".")[0], tag.endswith(".p")) for tag in grammar.tags]
    cases = []
    for row, tags in enumerate(text.tags.tolist()):
        subject, nouns = None, []
        for place, (role, plural) in enumerate(roles[tag] for tag in tags):
            if role == "HEAD":
                subject, nouns = place, []
            elif role in ("NOUN", "OBJECT"):
                nouns.append(plural)
            elif role == "PREDICATE":
                if subject is not None:  # else a pronoun is the subject
                    cases.append((row, subject, place, plural, len(nouns), nouns.count(not plural)))
                subject = None
    return Cases(*(torch.tensor(column) for column in zip(*cases, strict=True)))


def other_number(vocabulary):
    """``(V,)``: for each id that of the same word in the other number, such as keys for key, and wait for waits; for a
    word that has none its own."""
    other = torch.arange(len(vocabulary))
    for word in vocabulary.words:
        pair = {"is": "are"}.get(word, with_s(word))
        if pair in vocabulary.words:
            i, j = vocabulary[word], vocabulary[pair]
            other[i], other[j] = j, i
    return other


# ---------------------------------------------------------------- real text


@functools.lru_cache(maxsize=1)
def addresses():
    """The yearly addresses of the presidents of the United States from 1790 to 1950: ``{"1790 Washington": text, ...}``.

    A second address of the same president in a year has "(2)" after its name. See data/README.md.
    """
    found = {}
    for address in lzma.decompress(ADDRESSES_FILE.read_bytes()).decode("utf-8").split("\f")[1:]:
        name, _, text = address.partition("\n")
        found[name if name not in found else f"{name} (2)"] = text
    return found


def read_text(path, least=20_000):
    """The text of a file, to train on. Raises ValueError, in one sentence, when there is none or it is too short."""
    path = Path(path)
    try:
        contents = path.read_bytes()
        text = contents.decode("utf-8-sig").replace("\r\n", "\n")
    except OSError as error:
        raise ValueError(f"The file {path} cannot be read ({error.strerror}); give the path of a text file.") from None
    except UnicodeDecodeError:
        raise ValueError(f"The file {path.name} is not text in UTF-8; save it as plain text first.") from None
    if "\0" in text:
        raise ValueError(f"The file {path.name} is not text: it holds bytes of value 0; save it as plain text first.")
    if len(contents) < least:
        raise ValueError(f"The file {path.name} has {len(contents):,} bytes, and a model needs {least:,} to learn from.")
    return text
