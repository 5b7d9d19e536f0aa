"""The heads of all-MiniLM-L6-v2, named by scores in lesson 07: ten sentences, a reader's scores, and where a head rests."""

import numpy as np

from helpers.words import NotUsable, answer_of, array_in, shown

SENTENCES = [
    "the animal didn't cross the street because it was too tired",
    "time flies like an arrow, but fruit flies like a banana",
    "bears won the game, and now the fans love the bears",
    "today's date went well, so we set a date for next week",
    "she bears the pain, and he bears the cost",
    "the old clock in the hall is slower than the clock in the kitchen",
    "the hiking trail led us through bear country, and we met a bear",
    "the woman ate the fish, and the fish ate the worm",
    "the european economic area is larger than the european union",
    "i love bears, but the bears do not love me"]


def special_share(weights, special):
    """How much of its attention a head spends on tokens that are no words.

    ``weights``: ``(h, T, T)``, query by key; ``special``: ``(T,)`` bool, True at [CLS], [SEP] and the like. Returns ``(h,)``
    from 0 to 1: the weight that a query which is not special puts on special keys, a mean over these queries. Raises
    ValueError where every token is special. Source: Clark et al. 2019, section 3.2.
    """
    if special.all():
        raise ValueError("Every token is special, so there is no word whose attention could be counted.")
    return weights[:, ~special][:, :, special].sum(axis=-1).mean(axis=-1)  # (h, words, specials), then (h,)


def scores_of(head_scores, reading):
    """What a reader's ``head_scores(reading)`` gives: {kind of head: scores ``(6, 12)``}.

    Raises NotUsable where it stops, and for what is no such dict or lacks "same word" or "special tokens".
    """
    scores = answer_of(head_scores, reading)
    if not isinstance(scores, dict) or not {"same word", "special tokens"} <= {*scores}:
        raise NotUsable("head_scores returns a dict, for each kind of head the scores of all heads, with the lesson's four "
                        f"kinds and yours; {shown(scores)} came.")
    return {kind: array_in(score, (6, 12), f"The scores of {kind!r}") for kind, score in scores.items()}


def mean_scores(head_scores, readings):
    """The scores of all heads, averaged over the readings: {kind of head: ``(6, 12)``}. Raises as `scores_of` does."""
    scores = [scores_of(head_scores, reading) for reading in readings]
    return {kind: np.mean([score[kind] for score in scores], axis=0) for kind in scores[0]}


def resting(readings, head):
    """The mean weight on [CLS] and on [SEP] of the words with a double in their sentence, and of those without one.

    ``head``: (layer, head). Returns {"with a double": ``(2,)``, "without one": ``(2,)``}, without a kind that never occurs.
    """
    weights = {"with a double": [], "without one": []}
    for reading in readings:
        for place, token in enumerate(reading.tokens[1:-1], start=1):
            kind = "with a double" if reading.tokens.count(token) > 1 else "without one"
            weights[kind].append(reading.weights[head][place, [0, -1]])
    return {kind: np.mean(rows, axis=0) for kind, rows in weights.items() if rows}


def length_at_cls(readings):
    """How long the value at [CLS] is in each head, ``(6, 12)``, the mean length of a word's value in it being 1."""
    lengths = [np.linalg.norm(reading.values, axis=-1) for reading in readings]  # (6, 12, T) each
    return np.mean([n[..., 0] / n[..., 1:-1].mean(axis=-1) for n in lengths], axis=0)


def looks_most(reading, head, special=False):
    """(a word, another one, the weight): where a head, (layer, head), looks most from a word to another place.

    ``special``: whether [CLS] and [SEP] may be looked at; they never ask.
    """
    weights = np.where(np.eye(len(reading.tokens), dtype=bool), 0, reading.weights[head])  # (T, T)
    weights[[0, -1]] = 0
    if not special:
        weights[:, [0, -1]] = 0
    query, key = np.unravel_index(weights.argmax(), weights.shape)
    return reading.tokens[query], reading.tokens[key], weights[query, key]
