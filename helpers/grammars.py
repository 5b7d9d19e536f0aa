"""A grammar that writes text and knows the probability of every word in it (lessons 11 and 12), and ids for its words.

So the entropy of the text is known exactly, and a trained language model is judged, not admired.
"""

import itertools
from typing import NamedTuple

import torch

from helpers.words import NotUsable, shown

# ---------------------------------------------------------------- words to ids and back

PAD, BOS, EOS = 0, 1, 2  # the first ids of every vocabulary
SPECIAL = ("<pad>", "<bos>", "<eos>")


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

    def __contains__(self, word):
        return word in self._ids

    def __getitem__(self, word):
        if word not in self._ids:
            raise NotUsable(f"The vocabulary of {len(self)} words does not hold {shown(word)}: take words that it holds.")
        return self._ids[word]

    def encode(self, sentence):
        """Ids of a sentence: a string of words with blanks between them, or a list of words.
        Raises NotUsable for an unknown word; `words.words_in` brings a reader's text to such a list."""
        if not isinstance(sentence, (str, list, tuple)):
            raise NotUsable(f"A sentence is a text or a list of words, and {shown(sentence)} came.")
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


# ---------------------------------------------------------------- the grammar of agreement

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
        words = {}
        for symbols, p in state:
            for q, word, left, tag in self._first(symbols):
                tag_before, continuations = words.setdefault(word, (tag, {}))
                if tag != tag_before:
                    raise ValueError(f"{word!r} could be {tag or 'untagged'} and {tag_before or 'untagged'} in one place.")
                continuations[left] = continuations.get(left, 0) + p * q
        for word, (tag, continuations) in words.items():
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


class Stories(NamedTuple):
    """The places in a text where somebody thanks somebody: n numbers each. Of "emma tells ben that ... and ben thanks"
    emma is the teller, ben the listener, who is named again before he thanks."""

    row: torch.Tensor  #: (n,) the row of the text
    teller: torch.Tensor  #: (n,) where the name of the teller is
    listener: torch.Tensor  #: (n,) where the listener's name is the first time
    again: torch.Tensor  #: (n,) where it is the second time, before *thanks*
    thanks: torch.Tensor  #: (n,) where *thanks* is; the next word is the teller's name


def stories(vocabulary, tokens):
    """Find every *thanks* that is not the last word of its row, in ids ``(N, T)`` of ``agreement_grammar()``."""
    row, thanks = (tokens[:, :-1] == vocabulary["thanks"]).nonzero().T  # (n,) each
    place = torch.arange(tokens.shape[1])
    tells_before = (tokens[row] == vocabulary["tells"]) & (place < thanks[:, None])  # (n, T)
    tells = torch.where(tells_before, place, -1).amax(1)  # (n,): the last one before *thanks*
    return Stories(row, tells - 1, tells + 1, thanks - 1, thanks)


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
