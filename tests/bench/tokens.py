"""How much computing does learning merges need: the course's trainer, the library `tokenizers`, and the plain way?

    python tests/bench/tokens.py [--merges 256] [--megabytes 0.25] [--tiny]

All three learn equally many merges from the same text, and the merges are compared before the times are shown.

* ours: `tokens.train_bpe`, which counts words and visits, after a merge, the words that held the pair.
* library: `tokenizers` (written in Rust), with the same splitting into words.
* plain: what a first version of such a trainer does, among them minbpe's: after each merge it goes through
  everything again, the text word after word, once to count and once to merge. "plain, counted" does so too, and counts each
  different word once.

Seconds are CPU seconds of this process, one thread; what counts is the ratio within one run.
"""

import argparse
import json
import os
import sys
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

os.environ["RAYON_NUM_THREADS"] = "1"  # read when the library starts
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from helpers import texts, tokens


def rank(pair):
    """Lower ids first, bytes in the order of their symbols."""
    return tuple(ord(tokens.SYMBOLS[i]) if i < 256 else 256 + i for i in pair)


def spelt(merges):
    """Merges as the library writes them."""
    symbols = {i: "".join(tokens.SYMBOLS[b] for b in part) for i, part in tokens.table(merges).items()}
    return [[symbols[a], symbols[b]] for a, b in merges]


def ours(text, n_merges):
    return spelt(tokens.train_bpe(text, n_merges))


def library(text, n_merges):
    found = Tokenizer(models.BPE())
    found.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    found.train_from_iterator([text], trainers.BpeTrainer(
        vocab_size=256 + n_merges, initial_alphabet=found.pre_tokenizer.alphabet(), show_progress=False))
    return json.loads(found.to_str())["model"]["merges"]


def rescanned(words, n_merges):
    """``words``: list of (ids, count), all of which are counted and merged again each time."""
    merges = {}
    for new in range(256, 256 + n_merges):
        pairs = Counter()
        for ids, count in words:
            for pair in pairwise(ids):
                pairs[pair] += count
        best = min(pairs, key=lambda pair: (-pairs[pair], rank(pair)))
        merges[best] = new
        words = [(tokens.merge_pair(ids, best, new), count) for ids, count in words]
    return spelt(merges)


def plain(text, n_merges):
    return rescanned([(list(word), 1) for word in tokens.split(text)], n_merges)


def plain_counted(text, n_merges):
    return rescanned([(list(word), n) for word, n in Counter(tokens.split(text)).items()], n_merges)


WAYS = {"ours": ours, "library": library, "plain, counted": plain_counted, "plain": plain}


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--merges", type=int, default=256)
    parser.add_argument("--megabytes", type=float, default=0.25)
    parser.add_argument("--tiny", action="store_true", help="a few merges, to see that the script works")
    options = parser.parse_args(arguments)
    n, size = (5, 20_000) if options.tiny else (options.merges, int(options.megabytes * 1e6))
    text = "\n".join(texts.addresses().values())[:size]
    print(f"{n} merges of {size / 1e6:.2f} MB, {len(tokens.split(text)):,} words, "
          f"{len(set(tokens.split(text))):,} different ones")
    seconds, merges = {}, {}
    for name, way in WAYS.items():
        start = time.process_time()
        merges[name] = way(text, n)
        seconds[name] = time.process_time() - start
    same = all(found == merges["ours"] for found in merges.values())
    print(f"all the same merges: {same}\nway             CPU seconds  times ours")
    for name, spent in seconds.items():
        print(f"{name:15} {spent:11.2f}  {spent / seconds['ours']:10.2f}")
    if not options.tiny:
        print("the plain way takes at least 10 times as long as ours:", seconds["plain"] >= 10 * seconds["ours"])
    assert same


if __name__ == "__main__":
    main()
