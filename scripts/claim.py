"""How an experiment decides a claim, always in this order:

    c01 = Claim("C01", source=..., criterion=..., baseline=...)       # how we decide, shown before anything is measured
    shares = c01.measure("shares", run, range(5), within=0.02)        # numbers, one or a dict of them for each case
    c01.decide(n=..., result=..., interval=..., verdict=verdict(low, high, at_least=0.8), reach=...)

``make experiments`` measures every case and writes the numbers to ``data/experiments/`` and the entries to the register.
Otherwise an experiment reads the stored numbers, measures the first case again, and stops where they disagree.
"""

import json
import os
from html import escape
from pathlib import Path

from helpers import claims, course, show
from helpers.files import write_whole

NUMBERS = claims.REGISTER.parent / "experiments"  # the folder of the stored numbers, a file a lesson
IN_FULL = "ATTENTION_COURSE_EXPERIMENTS"  # an environment variable: the folder for new entries, set by `make experiments`
STORED = "ATTENTION_COURSE_STORED"  # another: entries are written anew from the stored numbers, where only words changed


def verdict(low, high, at_least=None, at_most=None, only_if=None):
    """The verdict that an interval from ``low`` to ``high`` allows on one criterion, ``at_least`` or ``at_most`` a number.

    "holds" when the whole interval meets the criterion, "does not hold" when none of it does, else "not settled".
    ``only_if``: a dict from a condition in words to the verdict under that condition alone: where the claim as it stands
    does not hold, and does under one of them, the verdict is "holds if <condition>".
    """
    if (at_least is None) == (at_most is None):
        raise ValueError("Give one criterion, at_least or at_most.")
    met = [low >= at_least, high >= at_least] if at_most is None else [low <= at_most, high <= at_most]
    found = "holds" if all(met) else "not settled" if any(met) else "does not hold"
    conditions = [words for words, under in (only_if or {}).items() if under == "holds"]
    return f"holds if {' and '.join(conditions)}" if conditions and found != "holds" else found


class Claim:
    """One claim in an experiment, from the criterion to the verdict.

    ``id``: such as "C05", listed with its words in ``data/course.toml``; ``source``: who says so; ``criterion``: what has to
    be measured for the claim to hold; ``baseline``: the trivial rival that it is held against, or why it needs none.
    Shows how we decide. Raises KeyError for a claim that the course does not have.
    """

    def __init__(self, id, source, criterion, baseline):
        lesson, words = _known()[id]
        self.entry = {"id": id, "lesson": lesson, "claim": words, "source": source, "criterion": criterion,
                      "baseline": baseline}
        show.note(f"<b>{id}. {escape(words)}</b> <i>({escape(source)})</i><br><b>How we decide:</b> {escape(criterion)}"
                  f"<br><b>Baseline:</b> {escape(baseline)}",
                  f"{id}. {words} ({source})\nHow we decide: {criterion}\nBaseline: {baseline}")

    def measure(self, name, run, cases, within):
        """The results of ``run(case)`` for all cases, a list: numbers, or dicts or lists of numbers.

        In full, every case is run and the results are stored under ``name``. Otherwise the stored ones come back, after
        the first case was run again and agreed ``within`` an absolute difference: a number, or one for each name of a
        dict, small enough to notice another result. Raises AssertionError where it does
        not, and ValueError when nothing was stored for these cases.
        """
        key, cases = f"{self.entry['id']} {name}", list(cases)
        path = NUMBERS / f"{self.entry['lesson']}.json"
        stored = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        if os.environ.get(IN_FULL) and not os.environ.get(STORED):
            stored[key] = [_plain(run(case)) for case in cases]
            path.parent.mkdir(exist_ok=True)
            write_whole(path, json.dumps(dict(sorted(stored.items())), indent=1) + "\n")
        elif len(stored.get(key, ())) != len(cases):
            raise ValueError(f"{key} has {len(stored.get(key, ()))} stored results for {len(cases)} cases: "
                             "run `make experiments`.")
        else:
            again = _plain(run(cases[0]))
            assert _agree(again, stored[key][0], within), (
                f"{key}: the first case now gives {again}, stored is {stored[key][0]}: further apart than {within}.")
        return stored[key]

    def decide(self, n, result, interval, verdict, reach):
        """Enter what was found and show it. ``n``: of what how many; ``result`` and ``interval``: made of measured numbers;
        ``verdict``: see `verdict`; ``reach``: in which setting, and what would change it. All are strings.

        In full the entry is written; otherwise it has to equal the register's. Raises ValueError where a field is empty or
        a verdict is none of the four, and AssertionError where the register says something else.
        """
        entry = {**self.entry, "n": n, "result": result, "interval": interval, "verdict": verdict, "reach": reach,
                 "experiment": f"notebooks/experiments/{course.LESSONS[self.entry['lesson']].file}"}
        claims.complete(entry)
        folder = os.environ.get(IN_FULL)
        if folder:
            write_whole(Path(folder) / f"{entry['id']}.json", json.dumps(entry))
        else:
            held = claims.register().get(entry["id"], {})
            other = [name for name in claims.FIELDS if held.get(name) != entry[name]]
            assert not other, (f"{entry['id']}: the register has another {' and '.join(other)} than this experiment "
                               "computes: run `make experiments`.")
        kind = {"holds": "good", "does not hold": "bad"}.get(verdict, "info")
        show.note(f"<b>{entry['id']} {escape(verdict)}.</b> {escape(result)} ({escape(interval)}; {escape(n)}).<br>"
                  f"<b>How far it reaches:</b> {escape(reach)}",
                  f"{entry['id']} {verdict}. {result} ({interval}; {n}).\nHow far it reaches: {reach}", kind)


def _known():
    """Claim -> (lesson, words)."""
    return {id: (lesson.number, words) for lesson in course.LESSONS.values() for id, words in lesson.claims.items()}


def _plain(value):
    """A result as JSON has it."""
    if isinstance(value, dict):
        return {str(name): _plain(v) for name, v in value.items()}
    if hasattr(value, "tolist"):
        return value.tolist()
    return [_plain(v) for v in value] if isinstance(value, (list, tuple)) else value


def _agree(a, b, within):
    """Have two results one form, and do their numbers differ by no more than ``within``?"""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(
            _agree(a[name], b[name], within[name] if isinstance(within, dict) else within) for name in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(_agree(x, y, within) for x, y in zip(a, b, strict=True))
    return abs(a - b) <= within if isinstance(a, (int, float)) and isinstance(b, (int, float)) else a == b
