"""The exercises of lesson 15: counting pairs, merging one, encoding, decoding, bits per byte. Inputs are
plain Python."""

import math
from collections import Counter
from itertools import combinations, pairwise

from helpers.checks.core import Contract, Exercise, Misconception, Probe
from helpers.tokens import bits_per_byte, bpe_decode, bpe_encode, count_pairs, merge_pair

A, B, C, D = 97, 98, 99, 100  # the bytes of a b c d


def _plain(function, *args):
    """What an attempt returns, arrays and tensors as lists."""
    value = function(*args)
    return value.tolist() if hasattr(value, "tolist") else value


def _letters(rng, n, kinds=4):
    return [int(i) for i in A + rng.integers(kinds, size=n)]


# ---------------------------------------------------------------- count_pairs


def _words(rng, n=7, longest=6, kinds=4):
    """Words of random length with their counts; one has one id only, one has ids above 255."""
    words = {
        tuple(_letters(rng, int(rng.integers(2, longest + 1)), kinds)): int(rng.integers(1, 9))
        for _ in range(n)
    }
    words[(int(rng.integers(300, 60_000)), A, int(rng.integers(300, 60_000)))] = int(rng.integers(2, 9))
    words[(D,)] = 3
    return words


def _counted(pairs_of=pairwise, weight=lambda count: count):
    """The reference with other pairs of a word, or another weight of its count."""

    def function(words):
        pairs = Counter()
        for ids, count in words.items():
            for pair in pairs_of(ids):
                pairs[pair] += weight(count)
        return dict(pairs)

    return function


def _no_overlap(ids):
    i = 0
    while i < len(ids) - 1:
        yield ids[i : i + 2]
        i += 2 if ids[i : i + 2] == ids[i + 1 : i + 3] else 1


def _last_wins(words):
    return {pair: count for ids, count in words.items() for pair in pairwise(ids)}


def _across(words):
    pairs = _counted()(words)
    for (left, count), (right, _) in pairwise(words.items()):
        pairs[left[-1], right[0]] = pairs.get((left[-1], right[0]), 0) + count
    return pairs


def _shares(words):
    pairs = count_pairs(words)
    return {pair: count / sum(pairs.values()) for pair, count in pairs.items()}


def _two(rng, first, second):
    return ({first: int(rng.integers(2, 9)), second: int(rng.integers(2, 9))},)


COUNT_PAIRS = Exercise(
    reference=count_pairs,
    use=_plain,
    probes=(
        Probe(
            "one pair",
            lambda rng: ({(A, B): 1},),
            "One word of two ids, seen once: the result is {(97, 98): 1}.",
            draws=1,
        ),
        Probe(
            "seen often",
            lambda rng: ({(A, B): int(rng.integers(3, 9_999))},),
            "The word was seen several times. Its pairs count as often as the word itself.",
        ),
        Probe(
            "both orders",
            lambda rng: ({(A, B, A): 1},),
            "The word a b a holds the pairs (a, b) and (b, a). They are two different pairs.",
            draws=1,
        ),
        Probe(
            "three of a kind",
            lambda rng: ({(A, A, A): 1},),
            "The word a a a holds the pair (a, a) twice, at its first and at its second place.",
            draws=1,
        ),
        Probe(
            "five of a kind",
            lambda rng: ({(A,) * 5: 1},),
            "The word a a a a a holds the pair (a, a) four times: each place counts, also where two overlap.",
            draws=1,
        ),
        Probe(
            "one pair twice",
            lambda rng: ({(A, B, C, A, B): 2},),
            "The pair (a, b) stands at two places in this word: each counts.",
            draws=1,
        ),
        Probe(
            "one pair in two words",
            lambda rng: _two(rng, (A, B, C), (D, A, B)),
            "The pair (a, b) is in both words. Add the counts.",
        ),
        Probe(
            "a word of one id",
            lambda rng: _two(rng, (A,), (B, C)),
            "A word of one id has no pair, and no pair reaches from one word to the next.",
        ),
        Probe(
            "seen once, seen often",
            lambda rng: ({(A, B): 1, (C, D): int(rng.integers(2, 9))},),
            "The pair (a, b) was seen once: it counts 1, and is not left out.",
            draws=1,
        ),
        Probe(
            "byte 0",
            lambda rng: ({(0, A, 0): 1},),
            "0 is an id like any other: this word holds the pairs (0, 97) and (97, 0).",
            draws=1,
        ),
        Probe(
            "no words",
            lambda rng: ({},),
            "Without words there are no pairs: the result is {}.",
            draws=1,
            extreme=True,
        ),
        Probe(
            "many words",
            lambda rng: (_words(rng),),
            "Several words of different lengths, some with ids above 255. Go through the neighbours of each"
            " word, and add the word's count for each.",
            draws=3,
        ),
        Probe(
            "more words",
            lambda rng: (_words(rng, 60, 12, 9),),
            "Sixty words of up to twelve ids. Is there a number in your code that should come from a length?",
            draws=1,
        ),
    ),
    misconceptions=(
        Misconception(
            "count-ignored",
            "Each place counts 1, however often the word was seen. Add the word's count, because the pair"
            " stands in each copy.",
            _counted(weight=lambda count: 1),
        ),
        Misconception(
            "once-a-word",
            "A pair that stands twice in a word is counted once. Each place counts.",
            _counted(lambda ids: dict.fromkeys(pairwise(ids))),
        ),
        Misconception(
            "no-overlap",
            "In a a a you count (a, a) once. Here every place counts, also where two pairs overlap; only"
            " merging avoids that.",
            _counted(_no_overlap),
        ),
        Misconception(
            "last-word-wins",
            "A pair that is in several words keeps the count of the last one. Add to what is there:"
            " pairs[pair] = pairs.get(pair, 0) + count.",
            _last_wins,
        ),
        Misconception(
            "order-ignored",
            "You count (a, b) and (b, a) as one pair. The order matters: 'th' is not 'ht'.",
            _counted(lambda ids: (tuple(sorted(pair)) for pair in pairwise(ids))),
        ),
        Misconception(
            "across-words",
            "You count a pair of the last id of a word and the first one of the next. Words are separate: no"
            " token crosses their borders.",
            _across,
        ),
        Misconception(
            "zero-left-out",
            "You leave out pairs with the id 0, perhaps because `if a and b` takes 0 for false. It is a byte"
            " like any other.",
            _counted(lambda ids: (pair for pair in pairwise(ids) if all(pair))),
        ),
        Misconception(
            "wraps-around",
            "You pair the last id of a word with its first one. A pair stands side by side.",
            _counted(lambda ids: ((ids[i - 1], ids[i]) for i in range(len(ids)))),
        ),
        Misconception(
            "last-pair-missing",
            "The last pair of each word is missing. A word of n ids has n - 1 pairs.",
            _counted(lambda ids: list(pairwise(ids))[:-1]),
        ),
        Misconception(
            "first-pair-missing",
            "The first pair of each word is missing. Places count from 0.",
            _counted(lambda ids: list(pairwise(ids))[1:]),
        ),
        Misconception(
            "every-second-pair",
            "You cut the word into pairs and miss those between them: in a b c the pair (b, c) too stands"
            " side by side.",
            _counted(lambda ids: list(pairwise(ids))[::2]),
        ),
        Misconception(
            "all-pairs",
            "You count any two ids of a word. A pair stands side by side.",
            _counted(lambda ids: combinations(ids, 2)),
        ),
        Misconception(
            "single-ids",
            "You count single ids. Count two neighbours: zip(ids, ids[1:]) gives them.",
            _counted(lambda ids: ids),
        ),
        Misconception(
            "shares", "You divide by the number of all pairs. Return the counts themselves.", _shares
        ),
        Misconception(
            "list-of-pairs",
            "You return a list. Return a dict from pair to count, such as {(97, 98): 3}.",
            lambda words: list(count_pairs(words).items()),
        ),
    ),
)

# ---------------------------------------------------------------- merge_pair


def _merged(
    step=2, last=True, match=lambda a, b, pair: (a, b) == pair, times=math.inf, put=lambda a, b, new: [new]
):
    """The reference with the faults that the arguments choose."""

    def function(ids, pair, new_id):
        out, i, left = [], 0, times
        while i < len(ids):
            if i + 1 < len(ids) and left and match(ids[i], ids[i + 1], tuple(pair)):
                out += put(ids[i], ids[i + 1], new_id)
                i, left = i + step, left - 1
            else:
                out += [ids[i]] if last or i + 1 < len(ids) else []
                i += 1
        return out

    return function


def _from_the_right(ids, pair, new_id):
    return merge_pair(ids[::-1], pair[::-1], new_id)[::-1]


def _every_second(ids, pair, new_id):
    out = []
    for i in range(0, len(ids), 2):
        out += [new_id] if tuple(ids[i : i + 2]) == tuple(pair) else ids[i : i + 2]
    return out


def _in_a_text(ids, pair, new_id):
    text = " ".join(map(str, ids)).replace(" ".join(map(str, pair)), str(new_id))
    return [int(word) for word in text.split()]


def _with_pair(rng, n=14):
    """Ids of three letters in which the pair stands somewhere, and its reverse too."""
    ids = _letters(rng, n, 3)
    return [A, B, *ids, B, A, B], (A, B), int(rng.integers(256, 999))


MERGE_PAIR = Exercise(
    reference=merge_pair,
    use=_plain,
    probes=(
        Probe(
            "only the pair",
            lambda rng: ([A, B], (A, B), 256),
            "The whole list is the pair: the result is [256].",
            draws=1,
        ),
        Probe(
            "nothing to merge",
            lambda rng: ([B, A, C], (A, B), 256),
            "The pair (a, b) does not stand here; b a is another one. The ids stay as they are, the last one"
            " too.",
            draws=1,
        ),
        Probe(
            "at the end",
            lambda rng: ([C, A, B], (A, B), 300),
            "The pair is at the end: the result is [99, 300].",
            draws=1,
        ),
        Probe(
            "in front",
            lambda rng: ([A, B, C], (A, B), 300),
            "The pair is in front: the result is [300, 99].",
            draws=1,
        ),
        Probe(
            "three of a kind",
            lambda rng: ([A, A, A], (A, A), 256),
            "From left to right: the first two become 256, and the third one is left over. An id is used"
            " once.",
            draws=1,
        ),
        Probe(
            "twice",
            lambda rng: ([A, B, C, A, B, D], (A, B), 256),
            "The pair stands at two places, and both are merged.",
            draws=1,
        ),
        Probe(
            "an odd place",
            lambda rng: ([C, A, B, D, D, A, B], (A, B), 256),
            "The pair may begin at any place, even or odd.",
            draws=1,
        ),
        Probe(
            "numbers that look alike",
            lambda rng: ([197, B, A, 985], (A, B), 256),
            "The pair (97, 98) does not stand here: 197 is not 97, and 985 is not 98. Compare the numbers"
            " themselves.",
            draws=1,
        ),
        Probe(
            "byte 0",
            lambda rng: ([10, 0, A, B, 0], (0, A), 256),
            "0 is an id like any other: (0, 97) is merged, and the 0 at the end stays.",
            draws=1,
        ),
        Probe(
            "learned ids",
            lambda rng: ([256, A, 300, 256, A], (256, A), 301),
            "Ids above 255 stand in pairs as well. Here (256, 97) is merged.",
            draws=1,
        ),
        Probe(
            "nothing at all",
            lambda rng: ([], (A, B), 256),
            "Without ids the result is an empty list.",
            draws=1,
            extreme=True,
        ),
        Probe(
            "one id",
            lambda rng: ([A], (A, B), 256),
            "One id has no neighbour: it stays.",
            draws=1,
            extreme=True,
        ),
        Probe(
            "many ids", _with_pair, "Go from left to right, and jump over both ids after a merge.", draws=3
        ),
        Probe(
            "many of a kind",
            lambda rng: ([A] * int(rng.integers(6, 12)) + [B] + [A] * 3, (A, A), 256),
            "Long runs of one id: they are merged two by two, from the left.",
        ),
        Probe(
            "more ids",
            lambda rng: _with_pair(rng, 90),
            "Ninety ids. Is there a number in your code that should come from a length?",
            draws=1,
        ),
    ),
    misconceptions=(
        Misconception(
            "overlap",
            "You use an id for two merges: a a a becomes two new ids. After a merge go on behind both ids.",
            lambda ids, pair, new_id: _overlapping(ids, tuple(pair), new_id),
        ),
        Misconception(
            "second-id-stays",
            "The new id stands there, and the second one of the pair as well. The new id stands for both:"
            " jump over two.",
            _merged(step=1),
        ),
        Misconception(
            "from-the-right",
            "You merge from the right. In a a a the first two are merged: go from left to right.",
            _from_the_right,
        ),
        Misconception(
            "first-only", "Only the first place is merged. Merge the pair everywhere.", _merged(times=1)
        ),
        Misconception(
            "last-id-lost",
            "The last id is lost when it is not part of a pair. It has no neighbour to look at, and it"
            " stays.",
            _merged(last=False),
        ),
        Misconception(
            "order-ignored",
            "You merge b a as well, where the pair is a b. The order matters.",
            _merged(match=lambda a, b, pair: sorted((a, b)) == sorted(pair)),
        ),
        Misconception(
            "first-id-decides",
            "You merge wherever the first id of the pair stands. Its neighbour has to be the second one.",
            _merged(match=lambda a, b, pair: a == pair[0]),
        ),
        Misconception(
            "either-id",
            "You merge where only one of the two ids is right. Both have to be.",
            _merged(match=lambda a, b, pair: a == pair[0] or b == pair[1]),
        ),
        Misconception(
            "even-places", "You look at places 0, 2, 4 only. A pair can begin at any place.", _every_second
        ),
        Misconception(
            "only-new-ids",
            "You return the merged places only. All other ids stay where they are.",
            lambda ids, pair, new_id: [i for i in merge_pair(ids, pair, new_id) if i == new_id],
        ),
        Misconception(
            "removed",
            "The pair is gone, and nothing stands for it. Put new_id in its place.",
            _merged(put=lambda a, b, new: []),
        ),
        Misconception(
            "pair-kept",
            "You put new_id beside the pair. It takes the pair's place.",
            _merged(put=lambda a, b, new: [a, b, new]),
        ),
        Misconception(
            "nothing-merged",
            "Your result is the ids as they were: no place was found. A slice of a list is a list, and never"
            " equal to a tuple: compare tuple(ids[i:i + 2]) with pair.",
            lambda ids, pair, new_id: list(ids),
        ),
        Misconception(
            "written-as-text",
            'You write the ids into a text and replace there: but "97 98" is also a part of "197 98".'
            " Compare the numbers themselves.",
            _in_a_text,
        ),
        Misconception(
            "zero-lost",
            "An id of 0 is lost. `if i` takes 0 for false, and it is a byte like any other: mark a place with"
            " None, or build a new list.",
            lambda ids, pair, new_id: [i for i in merge_pair(ids, pair, new_id) if i],
        ),
        Misconception(
            "always-256",
            "You write 256 for the pair. The new id is the argument new_id.",
            _merged(put=lambda a, b, new: [256]),
        ),
    ),
)


def _overlapping(ids, pair, new_id):
    """Each place that begins a pair becomes the new id, each other one that ends none stays."""
    begins = [i + 1 < len(ids) and (ids[i], ids[i + 1]) == pair for i in range(len(ids))]
    return [new_id if begins[i] else x for i, x in enumerate(ids) if begins[i] or not (i and begins[i - 1])]


# ---------------------------------------------------------------- bpe_encode


def _learned(rng, n=8, kinds=4):
    """Merges in the order learned, with gaps between their ids; later ones build on earlier ones."""
    known, merges, new = [A + i for i in range(kinds)], {}, 255
    while len(merges) < n:
        pair = tuple(int(i) for i in rng.choice(known, size=2))
        if pair not in merges:
            new += int(rng.integers(1, 4))
            merges[pair] = new
            known.append(new)
    return merges


def _text_and_merges(rng, n=24, merges=8, kinds=4):
    return _letters(rng, n, kinds), _learned(rng, merges, kinds)


def _doublings(n):
    """a a is 256, two of these are 257, and so on."""
    return {(A, A) if i == 0 else (255 + i, 255 + i): 256 + i for i in range(n)}


def _two_levels(ids, merges):
    """Without the merges of merges of merges."""
    level = dict.fromkeys(range(256), 0)
    for (a, b), new in merges.items():
        level[new] = 1 + max(level[a], level[b])
    return bpe_encode(ids, {pair: new for pair, new in merges.items() if level[new] <= 2})


def _by_rule(choose, merge=merge_pair):
    """Merge the pair that ``choose(those that can be merged, merges, ids)`` gives, until none is left."""

    def function(ids, merges):
        ids = list(ids)
        while found := [pair for pair in pairwise(ids) if pair in merges]:
            pair = choose(found, merges, ids)
            ids = merge(ids, pair, merges[pair])
        return ids

    return function


def _leftmost(ids, merges):
    """One place at a time, the leftmost that can be merged."""
    ids = list(ids)
    while places := [i for i, pair in enumerate(pairwise(ids)) if pair in merges]:
        i = places[0]
        ids[i : i + 2] = [merges[ids[i], ids[i + 1]]]
    return ids


def _only_one(ids, merges):
    pair = min((p for p in pairwise(ids) if p in merges), key=merges.get, default=None)
    return list(ids) if pair is None else merge_pair(ids, pair, merges[pair])


def _one_pass(ids, merges):
    out, i = [], 0
    while i < len(ids):
        pair = tuple(ids[i : i + 2])
        out.append(merges.get(pair, ids[i]))
        i += 2 if pair in merges else 1
    return out


def _bytes_only(ids, merges):
    for pair, new in merges.items():
        ids = merge_pair(ids, pair, new) if max(pair) < 256 else ids
    return list(ids)


def _longest(ids, merges):
    """From the left, the longest token that fits, as if merges were a list of words."""
    parts = {(i,): i for i in range(256)}
    spelt = {i: (i,) for i in range(256)}
    for (a, b), new in merges.items():
        spelt[new] = spelt[a] + spelt[b]
        parts.setdefault(spelt[new], new)
    out, i = [], 0
    while i < len(ids):
        size = max(n for n in range(1, len(ids) - i + 1) if tuple(ids[i : i + n]) in parts)
        out.append(parts[tuple(ids[i : i + size])])
        i += size
    return out


def _numbered_again(ids, merges):
    again = {new: 256 + i for i, new in enumerate(merges.values())}
    return [again.get(i, i) for i in bpe_encode(ids, merges)]


BPE_ENCODE = Exercise(
    reference=bpe_encode,
    use=_plain,
    probes=(
        Probe(
            "one merge",
            lambda rng: ([A, B, C], {(A, B): 256}),
            "One merge was learned: the result is [256, 99].",
            draws=1,
        ),
        Probe(
            "no merges",
            lambda rng: (_letters(rng, 4), {}),
            "Nothing was learned, so the bytes stay as they are.",
        ),
        Probe(
            "the earlier one is on the right",
            lambda rng: ([A, B, C], {(B, C): 256, (A, B): 257}),
            "Both (a, b) and (b, c) were learned, and (b, c) earlier. So b c is merged first, and a is left"
            " alone.",
            draws=1,
        ),
        Probe(
            "a merge of merges",
            lambda rng: ([A, B, C], {(A, B): 256, (256, C): 257}),
            "First a b becomes 256, then 256 c becomes 257. Look again after each merge.",
            draws=1,
        ),
        Probe(
            "back to the left",
            lambda rng: ([A, B, C], {(B, C): 256, (A, B): 257, (A, 256): 258}),
            "First b c becomes 256. Then a stands before 256, and this pair was learned as well: the result"
            " is [258].",
            draws=1,
        ),
        Probe(
            "frequent and late",
            lambda rng: ([B, C, A, B, A, B], {(B, C): 256, (C, A): 257, (A, B): 258, (258, A): 259}),
            "What counts is which pair was learned first, not how often it stands in this text.",
            draws=1,
        ),
        Probe(
            "neither frequent nor low",
            lambda rng: ([A, B, C, B, C], {(C, B): 256, (B, C): 257, (A, B): 258}),
            "What counts is which pair was learned first, not how often it stands here, nor its ids.",
            draws=1,
        ),
        Probe(
            "early ones have large ids inside",
            lambda rng: (
                [D, C, B, A, A, B],
                {(C, B): 256, (D, 256): 257, (B, A): 258, (A, A): 259, (A, B): 260},
            ),
            "The order of learning decides, not how small the ids of a pair are.",
            draws=1,
        ),
        Probe(
            "three of a kind",
            lambda rng: ([A, A, A], {(A, A): 256}),
            "From left to right: the first two are merged, and the third one is left over.",
            draws=1,
        ),
        Probe(
            "gaps",
            lambda rng: ([A, B, A, B, C], {(A, B): 300, (300, 300): 70_000}),
            "The ids of merges may have gaps, and may be large. Take the new id from merges.",
            draws=1,
        ),
        Probe(
            "900 and 1200",
            lambda rng: ([A, B, C], {(B, C): 900, (A, B): 1200}),
            "The pair (b, c) was learned first, because 900 is less than 1200 as a number.",
            draws=1,
        ),
        Probe(
            "four levels",
            lambda rng: ([A] * 16 + [B], _doublings(4)),
            "Merges of merges of merges of merges: sixteen bytes a become one token. Look again until no"
            " pair is left that was learned.",
            draws=1,
        ),
        Probe(
            "bytes of all kinds",
            lambda rng: ([0, 0xC3, 0xA9, A, 10, 0xFF], {(0xC3, 0xA9): 256, (256, A): 257}),
            "The bytes of a text can be any numbers from 0 to 255. None of them is left out.",
            draws=1,
        ),
        Probe(
            "one byte",
            lambda rng: ([A], {(A, B): 256}),
            "One byte has no neighbour: the result is [97].",
            draws=1,
            extreme=True,
        ),
        Probe(
            "nothing at all",
            lambda rng: ([], {(A, B): 256}),
            "Without ids the result is an empty list.",
            draws=1,
            extreme=True,
        ),
        Probe(
            "a longer text",
            _text_and_merges,
            "Several merges compete. Among the pairs that stand side by side now, merge the one that was"
            " learned first; then look again, until none of them is in merges.",
            draws=6,
        ),
        Probe(
            "more",
            lambda rng: _text_and_merges(rng, 150, 25),
            "150 bytes and 25 merges. Is there a number in your code that should come from a length?",
        ),
    ),
    misconceptions=(
        Misconception(
            "left-first",
            "You merge the leftmost pair that can be merged. Look at all pairs first, and take the one that"
            " was learned earliest.",
            _leftmost,
        ),
        Misconception(
            "latest-first",
            "You merge the pair that was learned last. Early merges are the frequent ones: the smallest new"
            " id comes first.",
            _by_rule(lambda found, merges, ids: max(found, key=merges.get)),
        ),
        Misconception(
            "most-frequent",
            "You merge the pair that is most frequent in this text. That is how merges are learned. To"
            " encode, what was learned first comes first.",
            _by_rule(lambda found, merges, ids: Counter(found).most_common(1)[0][0]),
        ),
        Misconception(
            "lowest-pair",
            "You merge the pair with the lowest ids. The order of learning decides: compare merges[pair], not"
            " pair.",
            _by_rule(lambda found, merges, ids: min(found)),
        ),
        Misconception(
            "from-the-right",
            "You merge a pair from the right. In a a a the first two are merged: go from left to right.",
            _by_rule(lambda found, merges, ids: min(found, key=merges.get), _from_the_right),
        ),
        Misconception(
            "two-levels",
            "You stop at merges of merges. They can be merged again: look again, until no pair is left that"
            " was learned.",
            _two_levels,
        ),
        Misconception(
            "one-merge",
            "You stop after one merge. Look again, until no pair is left that was learned.",
            _only_one,
        ),
        Misconception(
            "one-pass",
            "You go through the text once. Merged ids can be merged again, and the order of learning decides,"
            " not the place.",
            _one_pass,
        ),
        Misconception(
            "bytes-only",
            "You merge pairs of bytes only. New ids stand in pairs too, such as (256, 99).",
            _bytes_only,
        ),
        Misconception(
            "longest-match",
            "You take the longest token that fits, from the left. Other tokenizers do that. Byte-pair"
            " encoding repeats its merges in the order learned, and can end with shorter ones.",
            _longest,
        ),
        Misconception(
            "numbered-again",
            "The pairs are right, but you number the new ids 256, 257 and so on. They may have gaps: take"
            " merges[pair].",
            _numbered_again,
        ),
        Misconception(
            "nothing-merged",
            "Your result is the bytes themselves: nothing was merged. A pair has to be a tuple to be found in"
            " merges: (ids[i], ids[i + 1]), not a list.",
            lambda ids, merges: list(ids),
        ),
    ),
)

# ---------------------------------------------------------------- bpe_decode


def _ids_and_merges(rng, n=9, merges=8):
    learned = _learned(rng, merges)
    return [int(i) for i in rng.choice([A, B, *learned.values()], size=n)], learned


def _taken_apart(times):
    def function(ids, merges):
        pairs = {new: pair for pair, new in merges.items()}
        for _ in range(times):
            ids = [i for x in ids for i in pairs.get(x, (x,))]
        return bytes(i for i in ids if i < 256)

    return function


def _in_characters(ids, merges):
    """Tokens as strings: of a character in two tokens, both halves are lost."""
    return b"".join(bpe_decode([i], merges).decode("utf-8", "replace").encode() for i in ids)


def _reversed(ids, merges):
    parts = {i: bytes([i]) for i in range(256)}
    for (a, b), new in merges.items():
        parts[new] = parts[b] + parts[a]
    return b"".join(parts[i] for i in ids)


def _by_position(ids, merges):
    """As if the ids of merges were 256, 257 and so on."""
    parts = [bytes([i]) for i in range(256)]
    known = {i: i for i in range(256)} | {new: 256 + i for i, new in enumerate(merges.values())}
    for a, b in merges:
        parts.append(parts[known[a]] + parts[known[b]])
    return b"".join(parts[i] for i in ids)


BPE_DECODE = Exercise(
    reference=bpe_decode,
    use=_plain,
    probes=(
        Probe("bytes", lambda rng: ([A, B], {}), "Ids below 256 are bytes: the result is b'ab'.", draws=1),
        Probe(
            "one merge",
            lambda rng: ([256, C], {(A, B): 256}),
            "256 stands for a b, so the result is b'abc'.",
            draws=1,
        ),
        Probe(
            "a merge of merges",
            lambda rng: ([257], {(A, B): 256, (256, C): 257}),
            "257 stands for 256 and c, and 256 for a b. Take apart until only bytes are left: b'abc'.",
            draws=1,
        ),
        Probe(
            "half a character",
            lambda rng: ([0xC3, B, 0xFF], {}),
            "Not all bytes are text: 0xC3 alone is half of a character. The result is bytes, as they are.",
            draws=1,
        ),
        Probe(
            "a merge that ends in half a character",
            lambda rng: ([256, 0xA9], {(B, 0xC3): 256}),
            "256 stands for b and the first half of é, and the second half comes as a token of its own. Put"
            " bytes together, not characters.",
            draws=1,
        ),
        Probe(
            "blanks and zeros",
            lambda rng: ([32, 0, 256, 13, 10], {(A, B): 256}),
            "A blank, byte 0 and the end of a line are bytes like any others: nothing is cut off.",
            draws=1,
        ),
        Probe(
            "four levels",
            lambda rng: ([259, B], _doublings(4)),
            "Merges of merges of merges of merges. Take apart until only bytes are left: sixteen a, and b.",
            draws=1,
        ),
        Probe(
            "gaps",
            lambda rng: ([400, 300], {(A, B): 300, (C, D): 400}),
            "The ids of merges may have gaps. Look the id up in merges instead of counting from 256.",
            draws=1,
        ),
        Probe(
            "nothing at all",
            lambda rng: ([], {(A, B): 256}),
            "Without ids there are no bytes: the result is b''.",
            draws=1,
            extreme=True,
        ),
        Probe(
            "many ids",
            _ids_and_merges,
            "Merges of merges of merges. Build a table from id to bytes, in the order learned: when a merge"
            " comes, both of its parts are already there.",
            draws=3,
        ),
        Probe(
            "more ids",
            lambda rng: _ids_and_merges(rng, 60, 30),
            "Sixty ids and thirty merges. Is there a number in your code that should come from a length?",
            draws=1,
        ),
    ),
    misconceptions=(
        Misconception(
            "text",
            "You return a string. Return the bytes: the ids of a piece of text may end in the middle of a"
            " character, and then no string is right.",
            lambda ids, merges: bpe_decode(ids, merges).decode("utf-8", "replace"),
        ),
        Misconception(
            "latin-text",
            "You make a character of each byte. Characters such as é consist of two bytes: return the bytes"
            " themselves.",
            lambda ids, merges: bpe_decode(ids, merges).decode("latin-1"),
        ),
        Misconception(
            "list",
            "These are the right numbers, in a list. Make bytes of them: bytes(numbers).",
            lambda ids, merges: list(bpe_decode(ids, merges)),
        ),
        Misconception(
            "list-of-pieces",
            "You return a list with the bytes of each token. Join them: b''.join(pieces).",
            lambda ids, merges: [bpe_decode([i], merges) for i in ids],
        ),
        Misconception(
            "taken-apart-once",
            "You take each token apart once. Its parts can be merges too: go on until only bytes are left.",
            _taken_apart(1),
        ),
        Misconception(
            "taken-apart-twice",
            "You take each token apart twice. Merges go deeper than that: go on until only bytes are left.",
            _taken_apart(2),
        ),
        Misconception(
            "each-token-as-text",
            "You make a string of each token. A token may hold half of a character, and no string can: put"
            " the bytes of all tokens together.",
            _in_characters,
        ),
        Misconception(
            "stripped",
            "Blanks or ends of lines at the ends are gone: strip has no place here. They belong to the text.",
            lambda ids, merges: bpe_decode(ids, merges).strip(),
        ),
        Misconception(
            "zero-lost",
            "Byte 0 is lost. `if i` takes 0 for false, and it is a byte like any other.",
            lambda ids, merges: bytes(i for i in bpe_decode(ids, merges) if i),
        ),
        Misconception(
            "parts-swapped",
            "You put the two parts of a merge together in the wrong order: first a, then b.",
            _reversed,
        ),
        Misconception(
            "merges-lost",
            "You leave out the ids above 255. Each stands for the two parts that were merged into it.",
            lambda ids, merges: bytes(i for i in ids if i < 256),
        ),
        Misconception(
            "bytes-of-ids",
            "bytes(ids) works for ids below 256 only. A learned id stands for several bytes: look it up"
            " first.",
            lambda ids, merges: bytes(ids),
        ),
        Misconception(
            "counted-from-256",
            "You find a token by its place in merges, counted from 256. The ids may have gaps: use merges'"
            " own ids.",
            _by_position,
        ),
    ),
    contracts=(Contract("an id that was never learned", lambda rng: ([A, 300], {(A, B): 256})),),
)

# ---------------------------------------------------------------- bits_per_byte


def _measured(rng):
    n_tokens = int(rng.integers(50, 500))
    return float(rng.uniform(0.5, 4)), n_tokens, int(n_tokens * rng.uniform(1.5, 5))


BITS_PER_BYTE = Exercise(
    reference=bits_per_byte,
    use=_plain,
    probes=(
        Probe(
            "one bit",
            lambda rng: (math.log(2), 1, 1),
            "One token of one byte with log 2 nats: 1 bit a byte.",
            draws=1,
        ),
        Probe(
            "bytes as tokens",
            lambda rng: (math.log(256), 10, 10),
            "Each byte is a token, and all 256 are equally probable: 8 bits a byte.",
            draws=1,
        ),
        Probe(
            "tokens of four bytes",
            lambda rng: (math.log(2), 10, 40),
            "Ten tokens cost one bit each, and they stand for 40 bytes: a quarter of a bit a byte.",
            draws=1,
        ),
        Probe(
            "a text",
            _measured,
            "All nats of the text are loss · n_tokens. Make bits of them, and share them out among the"
            " bytes.",
            draws=3,
        ),
        Probe(
            "worse than guessing",
            lambda rng: (math.log(2) * 20, 10, 10),
            "20 bits for each token of one byte: a model that is sure and wrong needs more than 8 bits a"
            " byte.",
            draws=1,
        ),
        Probe(
            "more tokens than bytes",
            lambda rng: (math.log(2), 30, 20),
            "30 tokens for 20 bytes, since marks such as the end of a text have no bytes: 1.5 bits a byte.",
            draws=1,
        ),
        Probe(
            "no loss",
            lambda rng: (0.0, 5, 9),
            "A loss of 0 is 0 bits, however long the text is.",
            draws=1,
            extreme=True,
        ),
    ),
    misconceptions=(
        Misconception(
            "nats",
            "Your result is in nats. One bit is log 2 ≈ 0.69 nats: divide by log 2.",
            lambda loss, n_tokens, n_bytes: loss * n_tokens / n_bytes,
        ),
        Misconception(
            "times-log-2",
            "You multiply by log 2. A nat is more than a bit, so the number of bits is the larger one: divide"
            " by log 2.",
            lambda loss, n_tokens, n_bytes: loss * n_tokens / n_bytes * math.log(2),
        ),
        Misconception(
            "bits-a-token",
            "These are bits a token. Multiply by the number of tokens, and divide by the number of bytes.",
            lambda loss, n_tokens, n_bytes: loss / math.log(2),
        ),
        Misconception(
            "upside-down",
            "Tokens and bytes are swapped. A token of many bytes shares its bits out among them: divide by"
            " the bytes.",
            lambda loss, n_tokens, n_bytes: loss * n_bytes / n_tokens / math.log(2),
        ),
        Misconception(
            "tokens-forgotten",
            "You divide the loss by the bytes. It is a mean for each token: multiply by the number of tokens"
            " first.",
            lambda loss, n_tokens, n_bytes: loss / n_bytes / math.log(2),
        ),
        Misconception(
            "bits-of-the-text",
            "These are the bits of the whole text. Divide by the number of bytes.",
            lambda loss, n_tokens, n_bytes: loss * n_tokens / math.log(2),
        ),
        Misconception(
            "at-most-8",
            "You cut off at 8 bits. A byte has 8, but a model that is sure and wrong can need more.",
            lambda loss, n_tokens, n_bytes: min(8.0, bits_per_byte(loss, n_tokens, n_bytes)),
        ),
        Misconception(
            "base-10",
            "You take the logarithm of 2 to base 10. The loss is in nats: use math.log, the natural"
            " logarithm.",
            lambda loss, n_tokens, n_bytes: loss * n_tokens / n_bytes / math.log10(2),
        ),
        Misconception(
            "log-of-the-loss",
            "You take the logarithm of the loss. The loss is a logarithm already: divide it by log 2.",
            lambda loss, n_tokens, n_bytes: math.log2(loss) * n_tokens / n_bytes if loss else -math.inf,
        ),
        Misconception(
            "two-to-the-power",
            "You raise 2 to the power of the bits. That is a perplexity: leave the bits as they are.",
            lambda loss, n_tokens, n_bytes: 2 ** bits_per_byte(loss, n_tokens, n_bytes),
        ),
    ),
    contracts=(Contract("a text without bytes", lambda rng: (1.0, 3, 0)),),
)

EXERCISES = (COUNT_PAIRS, MERGE_PAIR, BPE_ENCODE, BPE_DECODE, BITS_PER_BYTE)
