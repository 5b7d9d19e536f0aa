"""A hunt: a sealed model for a learner alone, questions about it, points, and hints that cost some."""

import torch

from helpers import sealed
from helpers.sealed.forecasts import PARTS, in_words, questions, read, weighed
from helpers.store import progress
from helpers.words import NotUsable, shown

WORTH = 20  #: points of each of PARTS in a hunt
HINT = 5  #: points that a hint costs
_PATCH = ("patched: at this place, as it is in the text itself, the heads say what they say at the same place of the other "
          "text, which sealed.other(ids, 'verbs') or sealed.other(ids, 'names') gives")
ANSWERS = {  #: what an answer to each of PARTS looks like, and what its words mean
    "rule": "Answer each with a list of shares, one for each option in this order, which add up to 1.",
    "find": "Answer each with eight shares, one for each head in this order, which add up to 1: in which share of the texts "
            "does this head put the largest weight of all eight there?",
    "cut": "Answer each with one share: in which share of such texts is the likeliest word still the right name? Cut: the "
           "output of the heads is 0.",
    "move": "Answer each with one share: in which share of the texts is the likeliest word then the name that is right in "
            f"the other text? {_PATCH.capitalize()}.",
    "order": "Answer each with six shares, one for each order in this order, which add up to 1. R is the right name of the "
             "text, S would be right if the adverb were of the other kind, V is right in the other text with moved verbs; "
             "RSV says that the logit of R is the highest and that of V the lowest. Cut: the output of the heads is 0; "
             f"{_PATCH}."}


class Hunt:
    """A sealed model and questions about it. ``model``: the model; ``ask(part)`` shows questions,
    ``answer(part, forecasts)`` judges what you say, ``hint()`` tells a secret for a price. What you have done is kept, and
    `board` shows it."""

    def __init__(self, seed):
        rules = list(sealed.RULES)[1:]  # without that of the practice
        rule = rules[torch.randint(len(rules), (1,), generator=sealed.seeded(seed, "hunt")).item()]
        self.seed = seed
        self.model, self._key = sealed.deal(rule, ("hunt", seed))
        self._asked = questions(self.model, self._key, ("hunt", seed))

    def __repr__(self):
        return f"hunt {self.seed}: {_summary(self._known())[7:]}"

    def _known(self):
        known = progress.load("hunts").get(str(self.seed), {})
        return {"parts": dict(known.get("parts", {})), "hints": known.get("hints", 0)}

    def ask(self, part):
        """Show the questions of a part, one of PARTS, and what an answer looks like; return what they ask, as a list."""
        asked = self._part(part)
        print(ANSWERS[part])
        for number, question in enumerate(asked, 1):
            print(f"{number}. {in_words(question.asks)}: {', '.join(question.options)}")
        return [question.asks for question in self._asked[part]]

    def answer(self, part, forecasts):
        """Judge a list of forecasts, see `points`. The first answer to a part counts; later ones are judged for practice."""
        asked = self._part(part)
        try:
            rows, amiss = read(forecasts, asked)
        except ValueError as error:
            rows, amiss = [], [error]
        if amiss:
            print(*amiss)
            return
        worth, known = max(0.0, weighed(rows, asked)) * WORTH, self._known()
        if part in known["parts"]:
            print(f"{part}: {worth:.1f} of {WORTH} points, for practice; your first answer had {known['parts'][part]:.1f}.")
            return
        known["parts"][part] = round(worth, 1)
        progress.record("hunts", str(self.seed), known)
        print(f"{part}: {worth:.1f} of {WORTH} points. {_summary(known)}")

    def hint(self):
        """Tell the next secret; each costs HINT points."""
        rule, known = self._asked["rule"], self._known()
        secrets = [f"{question.asks}: {question.options[question.shares.index(1.0)]}" for question in rule]
        secrets += [f"{in_words(question.asks)}: mostly {question.options[question.shares.index(max(question.shares))]}"
                    for question in self._asked["find"]]
        if len(known["parts"]) == len(PARTS):
            print("All parts are answered: a hint would only cost you points. What counts stays as it is.")
            return
        if known["hints"] == len(secrets):
            print("There are no more hints.")
            return
        known["hints"] += 1
        progress.record("hunts", str(self.seed), known)
        secret = secrets[known["hints"] - 1]
        print(f"Hint {known['hints']}, for {HINT} points. {secret[0].upper()}{secret[1:]}.")

    def _part(self, part):
        if part not in PARTS:
            raise NotUsable(f"The parts are {', '.join(PARTS)}, and not {shown(part)}.")
        return self._asked[part]


def hunt(seed):
    """A hunt: the model that ``seed``, a whole number, deals, and questions about it; the same for all who name it."""
    if not isinstance(seed, int):
        raise NotUsable(f"A hunt has a whole number, as in hunts.hunt(1), and {shown(seed)} came.")
    return Hunt(seed)


def total(known):
    """The points of a hunt, from what is kept of it; 0 at least."""
    return max(0.0, round(sum(known["parts"].values()) - HINT * known["hints"], 1))


def _summary(known):
    return (f"So far {total(known):g} points, {len(known['parts'])} of {len(PARTS)} parts, "
            f"{known['hints']} hint{'s' * (known['hints'] != 1)}.")


def board():
    """Print your hunts, the best first."""
    known = progress.load("hunts")
    for seed, one in sorted(known.items(), key=lambda pair: -total(pair[1])):
        print(f"hunt {seed}: {_summary(one)[7:]}")
    if not known:
        print("No hunt yet: begin with hunts.hunt(1).")
