"""How an experiment decides a claim, always in this order:

    c01 = Claim("C01", source=..., criterion=..., baseline=...)       # how we decide, shown before anything is measured
    shares = c01.measure("shares", run, range(5))                     # numbers, one or a dict of them for each case
    c01.decide(n=..., result=..., interval=..., verdict=verdict(low, high, at_least=0.8), reach=...)

``make experiments`` measures every case and writes the numbers to ``data/experiments/`` and the entries to the register.
Otherwise an experiment reads the stored numbers, and where what they were made with has changed it measures the first case
again and stops if they disagree.
"""

import contextlib
import json
import math
import os
import statistics
import sys
import time
from collections import Counter
from html import escape
from pathlib import Path

from helpers import digest
from helpers.jitter import SIZE, jitter
from helpers.page import claims, course, show
from helpers.store.files import write_whole

NUMBERS = claims.REGISTER.parent / "experiments"  # the folder of the stored numbers, a file a lesson
HOW = "how they were measured"  # in such a file: measurement -> digest, CPU-seconds of the first case and of all, spread
ENTRIES = "ATTENTION_COURSE_ENTRIES"  # an environment variable: the folder for new entries; else the register has them
MEASURE = "ATTENTION_COURSE_MEASURE"  # another: "all" cases, always the "first", or "renew" what is no longer current
DRIFT, PART, ROUNDING = 10, 0.1, 1e-3  # how close a number has to come again: see Claim.measure
CHEAP, DEAR = 0.5, 4  # CPU-seconds of a first case
_done = {}  # what ran in this kernel


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

    def measure(self, name, run, cases, within=None, drawn=()):
        """The results of ``run(case)`` for all cases, a list: numbers, or dicts or lists of numbers.

        In full every case is run, and stored with the CPU-seconds of the first one and of all, those too that another
        measurement has run before, a digest of what it was made with (see ``helpers/digest.py``) and its *spread*: by how
        much each number moves when the first weights of whatever is trained differ in their last bit. It is measured by
        three more runs of the first case, by one where that took over DEAR CPU-seconds, and again when the digest
        changed. Otherwise the stored results come back. Where the digest changed, or the first case is cheap, it is run
        again and has to agree: each number within ROUNDING of itself or of the standard deviation between the cases, or
        one in its last place where it was rounded, and where something is trained within DRIFT times the spread of its
        list or PART of that deviation, or of that within its list if it has a name. A number that may so become 0, or
        another case's, is not compared; that is said, and its verdict is compared in ``decide``.

        ``drawn``: names in a result that are only drawn, and so never compared: a share of fifteen places, say, moves by a
        whole place on another processor or not at all. ``within``: an absolute difference instead, where a number is random
        by design, such as a sum of rounding errors; infinite for a time, which is never compared. A ``run`` that trains has
        to train each time: no cache. Raises AssertionError where the first case disagrees, and ValueError when nothing was
        stored for these cases.
        """
        key, cases, mode = f"{self.entry['id']} {name}", list(cases), os.environ.get(MEASURE)
        path = NUMBERS / f"{self.entry['lesson']}.json"
        stored = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        new = mode == "all" or mode == "renew" and key not in stored
        if not new and len(stored.get(key, ())) != len(cases):
            raise ValueError(f"{key} has {len(stored.get(key, ()))} stored results for {len(cases)} cases: {self._again()}.")
        how, made_with = stored.setdefault(HOW, {}), digest.of_call(sys._getframe(1), without=Claim)
        known = how.get(key, {})
        current = bool(made_with) and known.get("digest") == made_with
        if not current or mode in ("all", "first") or not mode and known["seconds"] < CHEAP:
            first, _, seconds = _run(run, cases[0])
            if new:
                found = [_run(run, case) for case in cases]
                stored[key] = [result for result, *_ in found]
                known = {**known, "all": round(sum(used for *_, used in found))}
            else:
                self._compare(key, first, _allowed(stored[key], known, within, drawn))
            if mode in ("all", "renew"):
                spread = known.get("spread")
                if not current:
                    spread = None if within else _spread(run, cases[0], 3 if seconds <= DEAR else 1)
                known = how[key] = {**known, "digest": made_with, "seconds": round(seconds, 1), "spread": spread}
                stored[HOW] = dict(sorted(how.items()))
                path.parent.mkdir(exist_ok=True)
                write_whole(path, json.dumps(dict(sorted(stored.items())), indent=1) + "\n")
        free = _told([place for place, (_, most) in _allowed(stored[key], known, within).items() if most is None])
        if free:
            said = "not compared from run to run, because the last bit of the first weights changes them too much:"
            show.note(f"<b>{escape(key)}:</b> {said} {escape(free)}.", f"{key}: {said} {free}.")
        return stored[key]

    def _compare(self, key, first, allowed):
        """Raises AssertionError where the first case is now further from the stored one than `_allowed` says."""
        found = _places(first)
        wrong = found.keys() ^ allowed.keys() or [
            place for place, (number, most) in allowed.items() if most is not None and _apart(number, found[place]) > most]
        told = [f"{place or 'it'} is {found.get(place)} and was {allowed.get(place, ('nothing',))[0]}" for place in wrong]
        assert not wrong, (f"{key}: the first case now gives another result, and not in its last bit alone: "
                           f"{'; '.join(told)}. If that is meant: {self._again()}.")

    def _again(self):
        return f'make experiments NB="notebooks/experiments/{course.LESSONS[self.entry["lesson"]].file}"'

    def decide(self, n, result, interval, verdict, reach, **for_readers):
        """Enter what was found and show it. ``n``: of what how many; ``result`` and ``interval``: made of measured numbers;
        ``verdict``: see `verdict`; ``reach``: in which setting, and what would change it. ``for_readers``: ``plain``, what
        was found in one sentence of at most 60 words; ``power``, the smallest effect that would have been noticed;
        ``changed``, what of the criterion was changed after a run; ``kind``, one of ``claims.KINDS``. All are strings.

        In full the entry is written; otherwise it has to equal the register's. Raises TypeError for another name,
        ValueError where a field is empty or not allowed (see ``claims.complete``), and AssertionError where the register
        says something else.
        """
        if unknown := for_readers.keys() - set(claims.FOR_READERS):
            raise TypeError(f"An entry has no {', '.join(sorted(unknown))}: it has {', '.join(claims.FOR_READERS)}.")
        entry = {**self.entry, "n": n, "result": result, "interval": interval, "verdict": verdict, "reach": reach,
                 "experiment": f"notebooks/experiments/{course.LESSONS[self.entry['lesson']].file}", **for_readers}
        claims.complete(entry)
        folder = os.environ.get(ENTRIES)
        if folder:
            write_whole(Path(folder) / f"{entry['id']}.json", json.dumps(entry))
        else:
            held = claims.register().get(entry["id"], {})
            other = [name for name in (*claims.FIELDS, *claims.FOR_READERS) if held.get(name) != entry.get(name)]
            assert not other, (f"{entry['id']}: the register has another {' and '.join(other)} than this experiment "
                               "computes: run `make experiments`.")
        kind = {"holds": "good", "does not hold": "bad"}.get(verdict, "info")
        told = {"In plain words": "plain", "Noticed": "power", "How far it reaches": "reach", "Changed": "changed"}
        told = {words: entry[name] for words, name in told.items() if name in for_readers or name == "reach"}
        show.note("<br>".join([f"<b>{entry['id']} {escape(verdict)}.</b> "
                               f"{escape(result)} ({escape(interval)}; {escape(n)}).",
                               *(f"<b>{words}:</b> {escape(said)}" for words, said in told.items())]),
                  "\n".join([f"{entry['id']} {verdict}. {result} ({interval}; {n}).",
                             *(f"{words}: {said}" for words, said in told.items())]), kind)


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


def _run(run, case, draw=None):
    """(result, was anything trained, CPU-seconds) of ``run(case)``, under jitter if a draw is given; once in a kernel.

    Without one the jitter has size 0: it changes nothing, and counts what is trained.
    """
    key = run, repr(_plain(case)), draw  # of a long array repr shows the ends alone
    if key not in _done:
        with jitter(draw or 0, SIZE if draw else 0) if "torch" in sys.modules else contextlib.nullcontext() as made:
            start = time.process_time()
            _done[key] = _plain(run(case)), made is None or bool(made), time.process_time() - start
    return _done[key]


def _spread(run, case, draws):
    """Place in the result -> the most that it moves under jitter, where it moves; None where nothing is trained."""
    plain, trained, _ = _run(run, case)
    if "torch" not in sys.modules or not trained:
        return None
    plain, spread = _places(plain), {}
    for draw in range(1, draws + 1):
        again, trained, _ = _run(run, case, draw)
        if not trained:  # the first run was what imported torch
            return None
        again = _places(again)
        for place in plain.keys() | again.keys():
            spread[place] = max(spread.get(place, 0), _apart(plain.get(place), again.get(place)))
    return {place: float(f"{spread[place]:.2g}") for place in sorted(spread) if spread[place]}


def _allowed(results, known, within, drawn=()):
    """Place in the first result -> (what stands there, the most that it may differ by or None for anything)."""
    allowed, others, spread = {}, [_places(result) for result in results], known.get("spread")
    for place, value in others[0].items():
        name, between = place.split(" / ")[0], 0
        alike = [by for at, by in (spread or {}).items() if at == place or not name.isdigit() and at.split(" / ")[0] == name]
        moved = max(alike, default=0)  # one draw may leave a share of a few things where it was, by chance
        if within is not None:
            most = within
        elif isinstance(value, (int, float)):
            column = [float(other[place]) for other in others if isinstance(other.get(place), (int, float))]
            between = statistics.pstdev(column)
            (at, _, last), around = place.rpartition(" / "), between
            if last.isdigit() and not name.isdigit():  # a list with a name, such as of a case's seeds
                beside = [v for other, v in others[0].items() if other.rpartition(" / ")[0] == at]
                around = max(between, statistics.pstdev(v for v in beside if isinstance(v, (int, float))))
            drift = 0 if spread is None else max(DRIFT * moved, PART * around)
            decimals = len(repr(value).partition(".")[2]) if "e" not in repr(value) else 0
            unit = 10.0**-decimals if decimals >= 3 else 0  # of a rounded number, its last place
            most = drift + ROUNDING * max(abs(value), between) + unit + 1e-9
        else:
            most = 0
        own = (spread or {}).get(place, 0)
        free = own == math.inf or spread and isinstance(most, float) and most >= max(abs(value), between) > 0
        allowed[place] = value, None if free or place.split(" / ")[0] in drawn else most
    return allowed


def _told(places):
    """The places in words: of more than three with one name their number."""
    names = Counter(place.split(" / ")[0] for place in places)
    short = [place for place in places if names[place.split(" / ")[0]] <= 3]
    return ", ".join([*short, *(f"{n} numbers of {name}" for name, n in names.items() if n > 3)])


def _places(value, place=""):
    """A result as a dict from the place, names and positions with " / " between them, to what stands there."""
    if not isinstance(value, (dict, list)):
        return {place: value}
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    return {at: found for name, part in parts
            for at, found in _places(part, f"{place} / {name}" if place else str(name)).items()}


def _apart(a, b):
    """How far two numbers are from each other; infinitely where they are not both numbers and not equal."""
    return abs(a - b) if isinstance(a, (int, float)) and isinstance(b, (int, float)) else 0 if a == b else math.inf
