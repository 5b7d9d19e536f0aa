"""The exercises of lesson 15: counting pairs, merging one, learning merges, encoding, decoding, bits per byte.
Inputs are plain Python."""

import math
from collections import Counter
from itertools import combinations, pairwise

from helpers.checks.calls import as_list
from helpers.checks.core import Contract, Exercise, Probe, example, variants
from helpers.tokens import bits_per_byte, bpe_decode, bpe_encode, count_pairs, learn_merges, merge_pair

A, B, C, D = 97, 98, 99, 100  # the bytes of a b c d


def _letters(rng, n, kinds=4):
    return [int(i) for i in A + rng.integers(kinds, size=n)]


# ---------------------------------------------------------------- count_pairs


def _words(rng, n=7, longest=6, kinds=4):
    """Words of random length with their counts; one has one id only, one has ids above 255."""
    lengths = rng.integers(2, longest + 1, size=n)
    words = {tuple(_letters(rng, length, kinds)): int(rng.integers(1, 9)) for length in lengths}
    words[(int(rng.integers(300, 60_000)), A, int(rng.integers(70_000, 200_000)))] = int(rng.integers(2, 9))
    words[(D,)] = 3
    return words


@variants
def _counted(words, *, pairs_of=pairwise, weight=lambda count: count, start=0):
    """The reference with other pairs of a word, another weight of its count, or another count to begin with."""
    pairs = {}
    for ids, count in words.items():
        for pair in pairs_of(ids):
            pairs[pair] = pairs.get(pair, start) + weight(count)
    return pairs


def _slices(size, step=1, last=0):
    """Slices of a word, one from each ``step``-th place to that many before the end."""
    return _counted(pairs_of=lambda ids: (tuple(ids[i:i + size]) for i in range(0, len(ids) - last, step)))


def _no_overlap(ids):
    i = 0
    while i < len(ids) - 1:
        yield ids[i:i + 2]
        i += 2 if ids[i:i + 2] == ids[i + 1:i + 3] else 1


def _across(words):
    pairs = count_pairs(words)
    for (left, count), (right, _) in pairwise(words.items()):
        pairs[left[-1], right[0]] = pairs.get((left[-1], right[0]), 0) + count
    return pairs


def _across_in_one_loop(words):
    pairs, before = Counter(), None
    for ids, count in words.items():
        for one in ids:
            pairs.update({(before, one): count} if before is not None else {})
            before = one
    return dict(pairs)


def _two(first, second):
    return lambda rng: ({first: int(rng.integers(2, 9)), second: int(rng.integers(2, 9))},)


COUNT_PAIRS = Exercise(count_pairs, use=as_list, probes=(
    example("one pair", ({(A, B): 1},), "One word of two ids, seen once: the result is {(97, 98): 1}."),
    Probe("seen often", lambda rng: ({(A, B): int(rng.integers(3, 9_999))},),
        "The word was seen several times. Its pairs count as often as the word itself."),
    example("both orders", ({(A, B, A): 1},), "In a b a there are (a, b) and (b, a), two different pairs.", ),
    Probe("one pair in two words", _two((A, B, C), (D, A, B)), "(a, b) is in both words. Add the counts.", ),
    Probe("a word of one id", _two((A,), (B, C)), "One id makes no pair, and no pair reaches into the next word.", ),
    example("byte 0", ({(0, A, 0): 1},), "0 is an id like others: this word holds the pairs (0, 97) and (97, 0).", ),
    example("no words", ({},), "Without words there are no pairs: the result is {}.", extreme=True),
    Probe("many words", lambda rng: (_words(rng),), "Several words of different lengths, some with ids "
        "above 255. Go through the neighbours of each word, and add the word's count for each.", draws=3),
), misconceptions=(
    ("count-ignored", "Each place counts 1, however often the word was seen. Add the word's count, "
        "because the pair is in each copy.", _counted(weight=lambda count: 1)),
    ("once-a-word", "A pair that stands twice in a word is counted once. Each place counts.",
        _counted(pairs_of=lambda ids: dict.fromkeys(pairwise(ids)))),
    ("no-overlap", "In a a a you count (a, a) once. Here every place counts, also where two pairs "
        "overlap; only merging avoids that.", _counted(pairs_of=_no_overlap)),
    ("last-word-wins", "Of several words the last one's count is kept. Add to it: pairs[pair] = pairs.get(pair, 0) "
        "+ count.", lambda words: {pair: count for ids, count in words.items() for pair in pairwise(ids)}),
    ("order-ignored", "You count (a, b) and (b, a) as one pair. The order matters: 'th' is not 'ht'.",
        _counted(pairs_of=lambda ids: (tuple(sorted(pair)) for pair in pairwise(ids)))),
    ("across-words", "You count a pair of the last id of a word and the first one of the next. Words are "
        "separate: no token crosses their borders.", _across),
    ("zero-left-out", "You leave out pairs with the id 0, perhaps because `if a and b` takes 0 for false. It is a "
        "byte like any other.", _counted(pairs_of=lambda ids: (pair for pair in pairwise(ids) if all(pair)))),
    ("across-words-in-one-loop", "You count a pair of the last id of a word and the first one of the next, because the id "
        "before is kept when a new word begins. Words are separate.", _across_in_one_loop),
    ("returns-after-the-first-word", "Only the pairs of the first word are counted. The return belongs behind the outer "
        "loop.", lambda words: count_pairs(dict(list(words.items())[:1]))),
    ("wraps-around", "You pair the last id of a word with its first one. A pair is side by side.",
        _counted(pairs_of=lambda ids: ((ids[i - 1], ids[i]) for i in range(len(ids))))),
    ("last-pair-missing", "The last pair of each word is missing. A word of n ids has n - 1 pairs.",
        _counted(pairs_of=lambda ids: list(pairwise(ids))[:-1])),
    ("first-pair-missing", "The first pair of each word is missing. Places count from 0.",
        _counted(pairs_of=lambda ids: list(pairwise(ids))[1:])),
    ("every-second-pair", "You cut the word into pairs and miss those between them: in a b c the pair "
        "(b, c) too is side by side.", _counted(pairs_of=lambda ids: list(pairwise(ids))[::2])),
    ("all-pairs", "You count any two ids of a word. A pair is side by side.",
        _counted(pairs_of=lambda ids: combinations(ids, 2))),
    ("single-ids", "You count single ids. Count neighbours: zip(ids, ids[1:]).", _counted(pairs_of=lambda ids: ids)),
    ("one-too-many", "Every count is one too high. A pair that was not seen yet has 0: pairs.get(pair, "
        "0) + count.", _counted(start=1)),
    ("number-of-words", "You count for each pair how many different words hold it. Add the count of each word, "
        "for each place.", lambda words: dict(Counter(pair for ids in words for pair in set(pairwise(ids))))),
    ("only-the-winner", "You return the most frequent pair. That comes later: return the counts of all pairs, as "
        "a dict.", lambda words: max(count_pairs(words), key=count_pairs(words).get, default=None)),
    ("sorted-list", "You return a sorted list. Return a dict from pair to count, in any order.",
        lambda words: Counter(count_pairs(words)).most_common()),
    ("slices-of-one", "Your slices hold one id each. A slice a:b ends before b, so two neighbours are "
        "ids[i:i + 2].", _slices(1, last=1)),
    ("slices-of-three", "Your slices hold three ids. A slice a:b ends before b, so two neighbours are "
        "ids[i:i + 2].", _slices(3, last=1)),
    ("slices-in-twos", "You cut the word into twos and miss the pairs between them, and of an odd word "
        "the last id is left alone. A pair begins at each place but the last.", _slices(2, step=2)),
    ("half-a-pair", "Your last pair of each word holds one id alone. A word of n ids has n - 1 pairs.", _slices(2)),
), nudges=(
    ("unhashable type: 'list'", "A list cannot be a key of a dict. Make a tuple of the two ids: (a, b)."),
    ("^KeyError", "The pair is not in your dict yet when you add to it. pairs.get(pair, 0) gives 0 for such a pair."),
    ("^IndexError", "The last id has no right neighbour: n ids have n - 1 pairs. zip(ids, ids[1:]) stops in time."),
    ("unpack", "words is a dict: words.items() gives each word with its count."),
))

# ---------------------------------------------------------------- merge_pair


@variants
def _merged(ids, pair, new_id, *, step=2, last=True, match=lambda a, b, pair: (a, b) == pair, times=math.inf,
            put=lambda new_id: new_id):
    """The reference with the faults that the arguments choose."""
    out, i, left = [], 0, times
    while i < len(ids):
        if i + 1 < len(ids) and left and match(ids[i], ids[i + 1], tuple(pair)):
            out.append(put(new_id))
            i, left = i + step, left - 1
        else:
            out += [ids[i]] if last or i + 1 < len(ids) else []
            i += 1
    return out


def _overlapping(ids, pair, new_id):
    """Each place that begins a pair becomes the new id, each other one that ends none stays."""
    begins = [ids[i:i + 2] == list(pair) for i in range(len(ids))]
    return [new_id if begins[i] else x for i, x in enumerate(ids) if begins[i] or not (i and begins[i - 1])]


def _from_the_right(ids, pair, new_id):
    return merge_pair(ids[::-1], pair[::-1], new_id)[::-1]


def _from_the_right_first_lost(ids, pair, new_id):
    out, i = [], len(ids) - 1
    while i > 0:
        match = (ids[i - 1], ids[i]) == tuple(pair)
        out.append(new_id if match else ids[i])
        i -= 2 if match else 1
    return out[::-1]


def _in_a_text(ids, pair, new_id):
    text = " ".join(map(str, ids)).replace(" ".join(map(str, pair)), str(new_id))
    return [int(word) for word in text.split()]


def _with_pair(rng, n=14):
    """Ids of three letters in which the pair stands somewhere, and its reverse too."""
    ids = _letters(rng, n, 3)
    return [A, B, *ids, B, A, B], (A, B), int(rng.integers(256, 999))


MERGE_PAIR = Exercise(merge_pair, use=as_list, probes=(
    example("only the pair", ([A, B], (A, B), 256), "The whole list is the pair: the result is [256]."),
    example("nothing to merge", ([B, A, C], (A, B), 256),
        "The pair (a, b) is not here; b a is another one. The ids stay as they are, the last one too."),
    example("three of a kind", ([A, A, A], (A, A), 256), "From left to right: the first two become 256, "
        "and the third one is left over. An id is used once."),
    example("numbers that look alike", ([197, B, A, 985], (A, B), 256), "The pair (97, 98) is not here: "
        "197 is not 97, and 985 is not 98. Compare the numbers themselves."),
    example("byte 0", ([10, 0, A, B, 0], (0, A), 256),
        "0 is an id like any other: (0, 97) is merged, and the 0 at the end stays."),
    example("learned ids", (list(map(int, "300 97 301 300 97".split())), (int("300"), A), 302), "Ids above 255 are "
        "in pairs as well. Here (300, 97) is merged. Compare numbers with ==, and not with `is`.", ),
    example("two learned ids", (list(map(int, "300 97 300 301 300".split())), (int("300"), int("301")), 302),
        "Both ids of a pair may be above 255. Here (300, 301) is merged."),
    example("nothing at all", ([], (A, B), 256), "Without ids the result is an empty list.", extreme=True),
    Probe("many ids", _with_pair, "Go from left to right, and jump over both ids after a merge.", draws=3),
), misconceptions=(
    ("is-in-place-of-equals", "You compare numbers with `is`. It asks for the same object, which Python keeps for "
        "numbers up to 256 only: compare with ==.", _merged(match=lambda a, b, pair: a is pair[0] and b is pair[1])),
    ("overlap", "You use an id for two merges: a a a becomes two new ids. After a merge go on behind "
        "both ids.", _overlapping),
    ("second-id-stays", "The new id is there, and the second one of the pair as well. The new id stands "
        "for both: jump over two.", _merged(step=1)),
    ("from-the-right", "In a a a the first two are merged: go from left to right.", _from_the_right),
    ("a-set-and-no-skip", "A set has no order, so b a is merged as well. And after a merge go on behind both of its ids.",
        lambda ids, pair, new_id: [new_id if {*ids[i:i + 2]} == {*pair} else ids[i] for i in range(len(ids))]),
    ("first-only", "Only the first place is merged. Merge the pair everywhere.", _merged(times=1)),
    ("last-id-lost", "The last id is lost when it is not part of a pair. It has no neighbour to look at, "
        "and it stays.", _merged(last=False)),
    ("order-ignored", "You merge b a as well, where the pair is a b. The order matters.",
        _merged(match=lambda a, b, pair: sorted((a, b)) == sorted(pair))),
    ("first-id-decides", "You merge wherever the first id of the pair is. Its neighbour has to be the "
        "second one.", _merged(match=lambda a, b, pair: a == pair[0])),
    ("even-places", "You look at places 0, 2, 4 only. A pair can begin at any place.",
        lambda ids, pair, new_id: [
            i for at in range(0, len(ids), 2)
            for i in ([new_id] if tuple(ids[at:at + 2]) == tuple(pair) else ids[at:at + 2])]),
    ("nothing-merged", "Your result is the ids as they were: no place was found. A slice of a list is a list, and "
        "never equal to a tuple: compare tuple(ids[i:i + 2]) with pair.", lambda ids, pair, new_id: list(ids)),
    ("nothing-merged-last-lost", "No place was found, and the last id is lost. A slice or [a, b] is a "
        "list, and never equal to a tuple: compare tuples with tuples. And the last id, which has no "
        "neighbour, stays.", lambda ids, pair, new_id: list(ids[:-1])),
    ("each-neighbour", "You go through all neighbours and write one id for each: so a merged pair's second id comes "
        "again, and the last id never. A while loop can jump over two after a merge.", _merged(step=1, last=False)),
    ("each-id-replaced", "You replace every id that is one of the two. They have to be side by side, in "
        "this order.", lambda ids, pair, new_id: [new_id if i in pair else i for i in ids]),
    ("written-as-text", 'You write the ids into a text and replace there: but "97 98" is also a part of '
        '"197 98". Compare the numbers themselves.', _in_a_text),
    ("zero-lost", "An id of 0 is lost. `if i` takes 0 for false, and it is a byte like any other: mark a place with "
        "None, or build a new list.", lambda ids, pair, new_id: [i for i in merge_pair(ids, pair, new_id) if i]),
    ("always-256", "You write 256 for the pair. The new id is new_id.", _merged(put=lambda new_id: 256)),
    ("from-the-right-first-lost", "You go from right to left, and the loop ends before the first id, which is lost "
        "unless a pair begins with it. Go from left to right, and keep what is left.", _from_the_right_first_lost),
), nudges=(
    ("^IndexError", "You look at a neighbour that is not there: the last id has none. Or the list became "
        "shorter while a loop went through it: build a new list."),
))

# ---------------------------------------------------------------- learn_merges


def _lowest(pairs):
    return min(pairs, key=lambda pair: (-pairs[pair], pair))


@variants
def _learner(words, n_merges, *, choose=_lowest, merge=merge_pair, count=count_pairs, first_id=256, step=1,
             ends=lambda pairs: not pairs, carry=lambda words, pair: words):
    """The reference with the faults that the arguments choose. ``ends(pairs)``: stop here? ``carry(words, pair)``: the
    words with their counts that go on to the next round."""
    merges = []
    while len(merges) < n_merges:
        pairs = count(words)
        if ends(pairs):
            break
        pair, new_id = choose(pairs), first_id + step * len(merges)
        words = {tuple(merge(list(ids), pair, new_id)): n for ids, n in carry(words, pair).items()}
        merges.append(pair)
    return merges


def _by_first_count(words, n_merges):
    """The most frequent pairs of the beginning: nothing is merged."""
    pairs = count_pairs(words)
    return sorted(pairs, key=lambda pair: (-pairs[pair], pair))[:n_merges]


def _old_counts(words, n_merges):
    """Pairs are counted once and merged in their order; one that is not left any more is passed over."""
    merges = []
    for pair in _by_first_count(words, None):
        if len(merges) < n_merges and pair in count_pairs(words):
            words = {tuple(merge_pair(ids, pair, 256 + len(merges))): n for ids, n in words.items()}
            merges.append(pair)
    return merges


def _with_counts(words, n_merges):
    merges = []
    for n, pair in enumerate(learn_merges(words, n_merges)):
        merges.append((pair, count_pairs(words)[pair]))
        words = {tuple(merge_pair(ids, pair, 256 + n)): count for ids, count in words.items()}
    return merges


def _texts(rng, n=8, longest=7, kinds=4):
    lengths = rng.integers(1, longest + 1, size=n)
    words = {tuple(_letters(rng, length, kinds)): int(rng.integers(1, 9)) for length in lengths}
    words[A, B, A, B, C] = int(rng.integers(2, 9))
    return words


LEARN_MERGES = Exercise(learn_merges, use=as_list, probes=(
    example("one pair", ({(A, B): 3}, 1), "One pair, and one merge is asked for: the result is [(97, 98)].", ),
    example("no merge", ({(A, B): 3}, 0), "No merge is asked for: the result is []."),
    example("none left", ({(A, B): 3, (C,): 2}, 4), "After one merge none is left. Then stop: [(97, 98)].", ),
    example("seen once", ({(A, B): 2, (C, D): 1}, 2),
        "The pair (c, d) was seen once, and that is enough: it is the second merge."),
    example("a tie", ({(C, D): 4, (A, B): 4}, 2), "Both pairs come 4 times. Of equals the lower pair of "
        "ids goes first, wherever it was met: (97, 98) before (99, 100)."),
    example("a tie of the first ids", ({(A, D): 4, (A, B): 4}, 2), "Both pairs come 4 times and begin "
        "with 97. Then the second id decides: (97, 98) before (97, 100)."),
    example("a merge of a merge", ({(A, B, C): 5, (D, C): 2}, 2), "First (a, b) becomes 256. Now 256 stands "
        "before c, so the second merge is (256, 99). Put the new id into the words, and count again."),
    example("counted again", ({(A, B, C): 5, (B, C): 1, (D, D, A): 4, (D, A): 1}, 4), "A merge takes pairs away: "
        "after (b, c) the pair (a, b) is gone, and (a, 256) has come. Count again after each merge.", ),
    example("byte 0", ({(0, A, 0): 4, (A, B): 3}, 2),
        "0 is an id like any other. The first merge is (0, 97), the second one (256, 0)."),
    example("bytes above 127", ({(200, 201): 4, (A, B): 3}, 1),
        "Bytes reach up to 255. The pair (200, 201) comes four times, more than the 3 of (97, 98)."),
    example("seen thousands of times", ({(A, B): 4_000, (C, D): 5_000}, 2),
        "The pair (c, d) was seen 5,000 times, and (a, b) 4,000 times: (c, d) comes first."),
    example("no words", ({}, 3), "Without words there is nothing to learn: the result is [].", extreme=True),
    Probe("many words", lambda rng: (_texts(rng), 6), "Several words. In each round: count the pairs, choose the "
        "most frequent one (of equals the lowest), put its new id into every word, and note the pair.", draws=4),
), misconceptions=(
    ("ties-first-met", "Of pairs that are equally frequent you take the one that was met first, as "
        "max(pairs, key=pairs.get) does. Take the lowest: compare (-pairs[pair], pair), and the "
        "smallest wins.", _learner(choose=lambda pairs: max(pairs, key=pairs.get))),
    ("ties-last-met", "Of pairs that are equally frequent you take the one that was met last, as a loop with >= "
        "does. Take the lowest pair of ids.", _learner(choose=lambda pairs: max(reversed(pairs), key=pairs.get))),
    ("ties-highest", "Of equally frequent pairs you take the highest, as max does. Take the lowest: the min of "
        "(-pairs[pair], pair).", _learner(choose=lambda pairs: max(pairs, key=lambda pair: (pairs[pair], pair)))),
    ("ties-first-id-only", "Of equally frequent pairs you compare first ids only. Then the second id decides: "
        "compare whole pairs.", _learner(choose=lambda pairs: min(pairs, key=lambda pair: (-pairs[pair], pair[0])))),
    ("counted-once", "You count once, at the beginning, and return the most frequent pairs. Each merge "
        "changes the words: merge, then count again.", _by_first_count),
    ("old-counts", "You merge, but choose by the counts of the beginning. New pairs come with each "
        "merge, such as (256, 99): count again each time.", _old_counts),
    ("never-merged", "The same pair comes again and again: you count again, but the words stay the same. Put the "
        "new id into every word. (Or your merge_pair finds no pair in a tuple: give it list(word).)",
        lambda words, n_merges: [_lowest(count_pairs(words))] * n_merges if count_pairs(words) else []),
    ("crashes-at-the-end", "Your function stops with an error where no pair is left. Then it is done: "
        "leave the loop, and return the merges so far.", _learner(ends=lambda pairs: False)),
    ("always-256", "Every merge gets the id 256. The second one learned is 257, the third 258: 256 + "
        "len(merges), say.", _learner(step=0)),
    ("from-257", "Your new ids begin with 257. The bytes are 0 to 255, so the first new one is 256. "
        "(After merges.append the length is one more.)", _learner(first_id=257)),
    ("from-0", "Your new ids begin with 0, and that is a byte. The bytes are 0 to 255, so the first new one is 256.",
        _learner(first_id=0)),
    ("from-255", "Your new ids begin with 255, which is a byte. The first new one is 256.", _learner(first_id=255)),
    ("counts-ignored", "You count each word once, however often it was seen. count_pairs(words) adds the "
        "counts.", _learner(count=_counted(weight=lambda count: 1))),
    ("counts-lost", "After the first merge every word counts 1. Carry its count over to the merged word.",
        _learner(carry=lambda words, pair: dict.fromkeys(words, 1))),
    ("only-the-merged", "Words that do not hold the merged pair are lost. Carry every word over, merged or not.",
        _learner(carry=lambda words, pair: {ids: n for ids, n in words.items() if pair in pairwise(ids)})),
    ("zero-left-out", "You leave out pairs with the id 0, perhaps as `if a and b` takes 0 for false. It is a byte "
        "too.", _learner(count=_counted(pairs_of=lambda ids: (pair for pair in pairwise(ids) if all(pair))))),
    ("bytes-only", "You prefer pairs of bytes, even where a pair with a new id is more frequent. A new "
        "id counts like any other.",
        _learner(
            choose=lambda pairs: _lowest({pair: n for pair, n in pairs.items() if max(pair) < 256} or pairs))),
    ("least-frequent", "You take the least frequent pair. The most frequent one comes first: with min, compare "
        "-pairs[pair].", _learner(choose=lambda pairs: min(pairs, key=lambda pair: (pairs[pair], pair)))),
    ("lowest-pair", "You take the lowest pair, whatever its count: min(pairs) compares the pairs "
        "themselves. The count decides, and the pair only where counts are equal.", _learner(choose=min)),
    ("not-when-seen-once", "You stop when the most frequent pair was seen once. Here once is enough: go "
        "on while there is a pair.", _learner(ends=lambda pairs: max(pairs.values(), default=0) < 2)),
    ("one-merge", "You return after the first merge. The return belongs behind the loop.",
        lambda words, n_merges: learn_merges(words, min(n_merges, 1))),
    ("one-too-few", "One merge is missing at the end: a range or a comparison ends one early. n_merges are "
        "wanted, if there are as many.", lambda words, n_merges: learn_merges(words, max(n_merges - 1, 0))),
    ("one-too-many", "There is one merge too many: a comparison with <=, perhaps. n_merges are wanted at "
        "most.", lambda words, n_merges: learn_merges(words, n_merges + 1)),
    ("upside-down", "The merges are right, but in the wrong order: the one learned first comes first.",
        lambda words, n_merges: learn_merges(words, n_merges)[::-1]),
    ("dict", "You return a dict, {pair: id}. Here a list of the pairs is wanted, in the order learned.",
        lambda words, n_merges: {pair: 256 + n for n, pair in enumerate(learn_merges(words, n_merges))}),
    ("with-counts", "You return each pair with its count. Return the pairs alone: [(97, 98), ...].", _with_counts),
    ("counts-and-pairs", "You keep the count along with the pair, (-count, pair), as min found it. Take its part [1].",
        lambda words, n_merges: [(-count, pair) for pair, count in _with_counts(words, n_merges)]),
), nudges=(
    ("(min|max)\\(\\) .*empty|^IndexError",
        "Is there a round in which no pair is left? Then the merges are complete: leave the loop."),
    ("unhashable type: 'list'", "merge_pair returns a list, and no list is a key of a dict: tuple(merge_pair(...))."),
    ("changed size during iteration|keys changed",
        "You change a dict while a loop goes through it. Build a new dict of words in each round."),
))

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


def _chain(n):
    """a b is 256, that and another b are 257, and so on."""
    return {(255 + i if i else A, B): 256 + i for i in range(n)}


def _two_levels(ids, merges):
    """Without the merges of merges of merges."""
    level = dict.fromkeys(range(256), 0)
    for (a, b), new in merges.items():
        level[new] = 1 + max(level[a], level[b])
    return bpe_encode(ids, {pair: new for pair, new in merges.items() if level[new] <= 2})


def _earliest(pairs, merges):
    return min(pairs, key=merges.get)


@variants
def _by_rule(ids, merges, *, choose=_earliest, merge=merge_pair, new=lambda pair, merges: merges[pair]):
    """Merge the pair that ``choose(those that can be merged, merges)`` gives, until none is left."""
    ids = list(ids)
    while pairs := [pair for pair in pairwise(ids) if pair in merges]:
        pair = choose(pairs, merges)
        ids = merge(ids, pair, new(pair, merges))
    return ids


def _only_one(ids, merges):
    pairs = [pair for pair in pairwise(ids) if pair in merges]
    return merge_pair(ids, _earliest(pairs, merges), merges[_earliest(pairs, merges)]) if pairs else list(ids)


def _one_pass(ids, merges):
    out, i = [], 0
    while i < len(ids):
        pair = tuple(ids[i:i + 2])
        out.append(merges.get(pair, ids[i]))
        i += 2 if pair in merges else 1
    return out


def _in_turn(ids, merges):
    """The merges one after another, each everywhere."""
    for pair, new in merges:
        ids = merge_pair(ids, pair, new)
    return list(ids)


def _longest(ids, merges):
    """From the left, the longest token that fits, as if merges were a list of words."""
    tokens = {bpe_decode([i], merges): i for i in [*reversed(merges.values()), *range(256)]}
    out = []
    while ids:
        size = max(n for n in range(1, len(ids) + 1) if bpe_decode(ids[:n], {}) in tokens)
        out.append(tokens[bpe_decode(ids[:size], {})])
        ids = ids[size:]
    return out


def _until_one_is_absent(ids, merges):
    for pair, new in merges.items():
        if pair not in pairwise(ids):
            return
        ids = merge_pair(ids, pair, new)
        yield pair, new


BPE_ENCODE = Exercise(bpe_encode, use=as_list, probes=(
    example("one merge", ([A, B, C], {(A, B): 256}), "One merge was learned: the result is [256, 99]."),
    Probe("no merges", lambda rng: (_letters(rng, 4), {}), "Nothing was learned, so the bytes stay as they are."),
    example("the earlier one is on the right", ([A, B, C], {(B, C): 256, (A, B): 257}),
        "Both (a, b) and (b, c) were learned, and (b, c) earlier. So b c is merged first, and a is left alone."),
    example("a merge of merges", ([A, B, C], {(A, B): 256, (256, C): 257}),
        "First a b becomes 256, then 256 c becomes 257. Look again after each merge."),
    example("back to the left", ([A, B, C], {(B, C): 256, (A, B): 257, (A, 256): 258}),
        "First b c becomes 256. Then a is before 256, and this pair was learned as well: the result is [258]."),
    example("neither frequent nor low", ([A, B, C, B, C], {(C, B): 256, (B, C): 257, (A, B): 258}),
        "What counts is which pair was learned first, not how often it is here, nor its ids."),
    example("a small piece learned early", ([A, A, A, A, B], {(A, A): 256, (256, B): 257, (256, 256): 258}),
        "After a a has become 256 both (256, 98) and (256, 256) fit. The first was learned earlier, and so it is "
        "merged, although it makes the smaller piece."),
    example("three of a kind", ([A, A, A], {(A, A): 256}),
        "From left to right: the first two are merged, and the third one is left over."),
    example("gaps", ([A, B, A, B, C], {(A, B): 300, (300, 300): 70_000}),
        "The ids of merges may have gaps, and may be large. Take the new id from merges."),
    example("900 and 1200", ([A, B, C], {(B, C): 900, (A, B): 1200}),
        "The pair (b, c) was learned first, because 900 is less than 1200 as a number, and 900 is its new id."),
    example("twelve levels", ([A, *[B] * 12, C], _chain(12)), "Twelve merges, each of the one before and "
        "b: all but the last byte becomes one token. Look again until no pair is left that was learned."),
    example("bytes of all kinds", ([0, 0xC3, 0xA9, A, 10, 0xFF], {(0xC3, 0xA9): 256, (256, A): 257}),
        "The bytes of a text can be any numbers from 0 to 255. None of them is left out."),
    example("byte 0 in a merge", ([B, 0, A, 0], {(0, A): 256, (256, 0): 257}),
        "0 is an id like any other: (0, 97) becomes 256, and (256, 0) becomes 257."),
    example("one byte", ([A], {(A, B): 256}), "One byte has no neighbour: the result is [97].", extreme=True),
    example("nothing at all", ([], {(A, B): 256}), "Without ids the result is an empty list.", extreme=True),
    Probe("a longer text", _text_and_merges, "Several merges compete. Among the pairs that stand side by side "
        "now, merge the one that was learned first; then look again, until none of them is in merges.", draws=6),
), misconceptions=(
    ("left-first", "You merge the leftmost pair that can be merged. Look at all pairs first, and take "
        "the one that was learned earliest.", _by_rule(choose=lambda pairs, merges: pairs[0], merge=_merged(times=1))),
    ("left-first-everywhere", "You merge the leftmost pair that can be merged, wherever it is. Look at all pairs "
        "first, and take the one that was learned earliest.", _by_rule(choose=lambda pairs, merges: pairs[0])),
    ("latest-first", "You merge the pair that was learned last. Early merges are the frequent ones: the smallest "
        "new id comes first.", _by_rule(choose=lambda pairs, merges: max(pairs, key=merges.get))),
    ("most-frequent", "You merge the pair that is most frequent in this text. Merges are learned so. To encode, the "
        "first learned comes first.", _by_rule(choose=lambda pairs, merges: Counter(pairs).most_common(1)[0][0])),
    ("lowest-pair", "You merge the pair with the lowest ids. The order of learning decides: compare "
        "merges[pair], not pair.", _by_rule(choose=lambda pairs, merges: min(pairs))),
    ("from-the-right", "You merge a pair from the right. In a a a the first two are merged: go from left "
        "to right.", _by_rule(merge=_from_the_right)),
    ("two-levels", "You stop at merges of merges. They can be merged again: look again, until no pair is "
        "left that was learned.", _two_levels),
    ("one-merge", "You stop after one merge. Look again, until no pair is left that was learned.", _only_one),
    ("one-pass", "You go through the text once. Merged ids can be merged again, and the order of "
        "learning decides, not the place.", _one_pass),
    ("bytes-only", "You merge pairs of bytes only. New ids are in pairs too, such as (256, 99).",
        lambda ids, merges: _in_turn(ids, [(p, new) for p, new in merges.items() if max(p) < 256])),
    ("longest-match", "You take the longest token that fits, from the left. Other tokenizers do that. Byte-pair "
        "encoding repeats its merges in the order learned, and can end with shorter ones.", _longest),
    ("reversed-once", "You go through the merges from the last learned to the first. The first learned goes "
        "first, and later ones are built on it.", lambda ids, merges: _in_turn(ids, reversed(merges.items()))),
    ("stops-at-a-gap", "You stop at the first merge whose pair does not occur. Later ones may occur: go "
        "on with the next.", lambda ids, merges: _in_turn(ids, _until_one_is_absent(ids, merges))),
    ("numbered-again", "You number the new ids 256, 257 and so on. They may have gaps: take merges[pair].",
        _by_rule(new=lambda pair, merges: 256 + list(merges).index(pair))),
    ("nothing-merged", "Your result is the bytes themselves: nothing was merged. A pair has to be a "
        "tuple to be found in merges: (ids[i], ids[i + 1]), not a list.", lambda ids, merges: list(ids)),
), nudges=(
    ("(min|max)\\(\\) .*empty", "Here no neighbours are left that were learned as a pair, so there is "
        "nothing to choose from. That is the end, and not an error: return the ids."),
    ("^KeyError", "merges[pair] is asked for a pair that was never learned. Choose among the neighbours "
        "that are in merges, or take merges.get(pair, float('inf'))."),
    ("not supported between .*NoneType", "merges.get gives None for a pair that was never learned. "
        "Choose only among the neighbours that are in merges."),
    ("unhashable type: 'list'", "A list is never a key of merges. Make a tuple of two neighbours: (a, b)."),
    ("^IndexError", "The last id has no right neighbour. zip(ids, ids[1:]) stops in time."),
))

# ---------------------------------------------------------------- bpe_decode


def _ids_and_merges(rng, n=9, merges=8):
    learned = _learned(rng, merges)
    return [int(i) for i in rng.choice([A, B, *learned.values()], size=n)], learned


def _taken_apart_once(ids, merges):
    pairs = {new: pair for pair, new in merges.items()}
    return bytes(i for token in ids for i in pairs.get(token, (token,)) if i < 256)


def _in_characters(ids, merges):
    """Tokens as strings: of a character in two tokens, both halves are lost."""
    return b"".join(bpe_decode([i], merges).decode("utf-8", "replace").encode() for i in ids)


def _by_position(ids, merges):
    """As if the ids of merges were 256, 257 and so on."""
    parts = [bytes([i]) for i in range(256)]
    places = {i: i for i in range(256)} | {new: 256 + i for i, new in enumerate(merges.values())}
    for a, b in merges:
        parts.append(parts[places[a]] + parts[places[b]])
    return b"".join(parts[i] for i in ids)


BPE_DECODE = Exercise(bpe_decode, use=as_list, probes=(
    example("bytes", ([A, B], {}), "Ids below 256 are bytes: the result is b'ab'."),
    example("one merge", ([256, C], {(A, B): 256}), "256 stands for a b, so the result is b'abc'."),
    example("a merge of merges", ([257], {(A, B): 256, (256, C): 257}),
        "257 stands for 256 and c, and 256 for a b. Take apart until only bytes are left: b'abc'."),
    example("half a character", ([0xC3, B, 0xFF], {}),
        "Not all bytes are text: 0xC3 alone is half of a character. The result is bytes, as they are."),
    example("a merge that ends in half a character", ([256, 0xA9], {(B, 0xC3): 256}), "256 stands for b and the "
        "first half of é, and the second half comes as a token of its own. Put bytes together, not characters.", ),
    example("blanks and zeros", ([32, 0, 256, 13, 10], {(A, B): 256}),
        "A blank, byte 0 and the end of a line are bytes like any others: nothing is cut off."),
    example("byte 0 in a merge", ([256, B], {(A, 0): 256}),
        "256 stands for a and byte 0, so the result is b'a\\x00b'. 0 is a byte like any other."),
    example("gaps", ([400, 300], {(A, B): 300, (C, D): 400}),
        "The ids of merges may have gaps. Look the id up in merges instead of counting from 256."),
    example("nothing at all", ([], {(A, B): 256}), "No ids are no bytes: the result is b''.", extreme=True),
    Probe("many ids", _ids_and_merges, "Merges of merges of merges. Build a table from id to bytes, in "
        "the order learned: when a merge comes, both of its parts are already there.", draws=3),
), misconceptions=(
    ("text", "You return a string. Return the bytes: a piece of text may end in the middle of a character, and then "
        "no string is right.", lambda ids, merges: bpe_decode(ids, merges).decode("utf-8", "replace")),
    ("text-or-an-error", "You decode to a string, and where the bytes are half of a character that stops "
        "with an error. Return the bytes.", lambda ids, merges: bpe_decode(ids, merges).decode()),
    ("text-of-the-ids", "You make a string of the ids. Ids from 256 on stand for several bytes, and not all bytes "
        "are text. Build a table from id to bytes, and return bytes.", lambda ids, merges: bytes(ids).decode()),
    ("latin-text", "You make a character of each byte. Characters such as é consist of two bytes: return "
        "the bytes themselves.", lambda ids, merges: bpe_decode(ids, merges).decode("latin-1")),
    ("list", "These are the right numbers, in a list. Make bytes of them: bytes(numbers).",
        lambda ids, merges: list(bpe_decode(ids, merges))),
    ("list-of-pieces", "You return a list with the bytes of each token. Join them: b''.join(pieces).",
        lambda ids, merges: [bpe_decode([i], merges) for i in ids]),
    ("taken-apart-once", "You take each token apart once. Its parts can be merges too: go on until only "
        "bytes are left.", _taken_apart_once),
    ("each-token-as-text", "You make a string of each token. A token may hold half of a character, and "
        "no string can: put the bytes of all tokens together.", _in_characters),
    ("stripped", "Blanks or ends of lines at the ends are gone: strip has no place here. They belong to "
        "the text.", lambda ids, merges: bpe_decode(ids, merges).strip()),
    ("zero-lost", "Byte 0 is lost. `if i` takes 0 for false, and it is a byte like any other.",
        lambda ids, merges: bytes(i for i in bpe_decode(ids, merges) if i)),
    ("parts-swapped", "You put the two parts of a merge together in the wrong order: first a, then b.",
        lambda ids, merges: bpe_decode(ids, {(b, a): new for (a, b), new in merges.items()})),
    ("merges-lost", "You leave out the ids above 255. Each stands for the two parts that were merged "
        "into it.", lambda ids, merges: bytes(i for i in ids if i < 256)),
    ("bytes-of-ids", "bytes(ids) works for ids below 256 only. A learned id stands for several bytes: "
        "look it up first.", lambda ids, merges: bytes(ids)),
    ("bytes-of-a-number", "bytes(97) makes 97 bytes of value 0. One byte of value 97 is bytes([97]), with a list.",
        lambda ids, merges: b"".join(bytes(i) for part in ids for i in bpe_decode([part], merges))),
    ("as-printed", "You return what print would show, b'...' and all. Return the bytes themselves, "
        "without str.", lambda ids, merges: str(bpe_decode(ids, merges))),
    ("halves-dropped", "Bytes are lost that are no whole character, perhaps by errors='ignore'. Decode nothing: "
        "return bytes.", lambda ids, merges: bpe_decode(ids, merges).decode("utf-8", "ignore").encode()),
    ("joined-with-blanks", "There are blanks between the tokens. A blank is a byte of the text: join "
        "with b''.", lambda ids, merges: b" ".join(bpe_decode([i], merges) for i in ids)),
    ("counted-from-256", "You find a token by its place in merges, counted from 256. The ids may have "
        "gaps: use merges' own ids.", _by_position),
), contracts=(
    Contract("an id that was never learned", lambda rng: ([A, 300], {(A, B): 256})),
), nudges=(
    ("^KeyError", "You look an id up that is not in your table. merges is asked by pairs, {(a, b): id}: make a "
        "table the other way round, from id to bytes, in the order learned, and begin it with the 256 bytes."),
    ("range\\(0, 256\\)", "An id of 256 or more is no byte. It stands for the bytes of its two parts."),
    ("codec can't decode", "Not all bytes are text: leave them as bytes, and decode nothing."),
    ("expected a bytes-like object", "b''.join wants bytes: make them with bytes([number])."),
))

# ---------------------------------------------------------------- bits_per_byte


def _measured(rng):
    n_tokens = int(rng.integers(50, 500))
    return float(rng.uniform(0.5, 4)), n_tokens, int(n_tokens * rng.uniform(1.5, 5))


@variants
def _bits(loss, n_tokens, n_bytes, *, share=lambda n_tokens, n_bytes: n_tokens / n_bytes, times=1,
          bits=lambda nats: nats / math.log(2)):
    """The reference with another share of the tokens' loss, a factor more, or nats made into bits otherwise."""
    return bits(loss * share(n_tokens, n_bytes)) * times


BITS_PER_BYTE = Exercise(bits_per_byte, use=as_list, probes=(
    example("one bit", (math.log(2), 1, 1), "One token of one byte with log 2 nats: 1 bit per byte."),
    example("bytes as tokens", (math.log(256), 10, 10),
        "Each byte is a token, and all 256 are equally probable: 8 bits per byte."),
    Probe("a text", _measured, "All nats of the text are loss · n_tokens. Make bits of them, and share "
        "them out among the bytes.", draws=3),
    example("worse than guessing", (math.log(2) * 20, 10, 10), "20 bits for each token of one byte: a "
        "model that is sure and wrong needs more than 8 bits per byte."),
    example("more tokens than bytes", (math.log(2), 30, 20), "30 tokens for 20 bytes, since marks such "
        "as the end of a text have no bytes: 1.5 bits per byte."),
), misconceptions=(
    ("nats", "Your result is in nats. One bit is log 2 ≈ 0.69 nats: divide by log 2.",
        _bits(bits=lambda nats: nats)),
    ("times-log-2", "You multiply by log 2. A nat is more than a bit, so the number of bits is the larger one: "
        "divide by log 2.", _bits(bits=lambda nats: nats * math.log(2))),
    ("bits-a-token", "These are bits per token. Multiply by the number of tokens, and divide by the "
        "number of bytes.", _bits(share=lambda n_tokens, n_bytes: 1)),
    ("upside-down", "Tokens and bytes are swapped. A token of many bytes shares its bits out among them: "
        "divide by the bytes.", _bits(share=lambda n_tokens, n_bytes: n_bytes / n_tokens)),
    ("tokens-forgotten", "You divide the loss by the bytes. It is a mean for each token: multiply by the "
        "number of tokens first.", _bits(share=lambda n_tokens, n_bytes: 1 / n_bytes)),
    ("bits-of-the-text", "These are the bits of the whole text. Divide by the number of bytes.",
        _bits(share=lambda n_tokens, n_bytes: n_tokens)),
    ("at-most-8", "You cut off at 8 bits. A byte has 8, but a model that is sure and wrong can need more.",
        lambda loss, n_tokens, n_bytes: min(8.0, bits_per_byte(loss, n_tokens, n_bytes))),
    ("base-10", "You take the logarithm of 2 to base 10. The loss is in nats: use math.log, the natural "
        "logarithm.", _bits(bits=lambda nats: nats / math.log10(2))),
    ("log-of-the-loss", "You take the logarithm of the loss. The loss is a logarithm already: divide it by log 2.",
        lambda loss, n_tokens, n_bytes: math.log2(loss) * n_tokens / n_bytes if loss else -math.inf),
    ("an-eighth", "You divide by 8. These are bits for each byte already, and not bits for each bit.", _bits(times=1 / 8)),
    ("eightfold", "You multiply by 8. n_bytes counts bytes, and bits for each of them are wanted: leave the 8 out.",
        _bits(times=8)),
    ("two-to-the-power", "You raise 2 to the power of the bits. That is a perplexity: leave the bits as "
        "they are.", lambda loss, n_tokens, n_bytes: 2 ** bits_per_byte(loss, n_tokens, n_bytes)),
), contracts=(
    Contract("a text without bytes", lambda rng: (1.0, 3, 0)),
))

EXERCISES = (COUNT_PAIRS, MERGE_PAIR, LEARN_MERGES, BPE_ENCODE, BPE_DECODE, BITS_PER_BYTE)
