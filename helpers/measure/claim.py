"""How an experiment decides a claim, always in this order:

    c01 = Claim("C01", source=..., criterion=..., baseline=...)       # how we decide, shown before anything is measured
    shares = c01.measure("shares", run, range(5))                     # numbers, one or a dict of them for each case
    c01.decide(n=..., result=..., interval=..., verdict=verdict(low, high, at_least=0.8), reach=...)

An experiment reads its stored numbers, in ``data/experiments/``, and computes the verdict from them. `make experiments`
measures them anew and writes the entries of the register.
"""

import json
import os
import zlib
from html import escape
from pathlib import Path

from helpers.page import claims, course, show
from helpers.store.files import write_whole

NUMBERS = Path(__file__).resolve().parents[2] / "data" / "experiments"  # the stored numbers, a file a lesson
MEASURE = "ATTENTION_COURSE_MEASURE"  # an environment variable: measure "all", or what is "missing"; else nothing
ENTRIES = "ATTENTION_COURSE_ENTRIES"  # another: the folder for new entries; without it, the register has to have them
_results = {}  # (run, case) -> result, in this kernel


def verdict(low, high, at_least=None, at_most=None, only_if=None):
    """The verdict that an interval from ``low`` to ``high`` allows on one criterion, ``at_least`` or ``at_most`` a number.

    "holds" when the whole interval meets the criterion, "does not hold" when none of it does, else "not settled".
    ``only_if``: a dict from a condition in words to the verdict under that condition alone: where the claim as it stands
    does not hold, or is not settled, and does hold under some of them, each alone, the verdict is "holds if <condition>",
    with "or" between them. Raises ValueError for an end that is no number, or without just one criterion.
    """
    if (at_least is None) == (at_most is None):
        raise ValueError("Give one criterion, at_least or at_most.")
    if low != low or high != high:
        raise ValueError(f"An interval has two ends, and this one goes from {low} to {high}: was anything measured?")
    if at_most is None:
        meets = [low >= at_least, high >= at_least]
    else:
        meets = [low <= at_most, high <= at_most]
    plain = "holds" if all(meets) else "not settled" if any(meets) else "does not hold"
    conditions = [words for words, under in (only_if or {}).items() if under == "holds"]
    return f"holds if {' or '.join(conditions)}" if conditions and plain != "holds" else plain


class Claim:
    """One claim in an experiment, from the criterion to the verdict.

    ``id``: such as "C05", listed with its words in ``data/course.toml``; ``source``: who says so; ``criterion``: what has to
    be measured for the claim to hold; ``baseline``: the trivial rival that it is held against, or why it needs none.
    Shows how we decide. Raises KeyError for a claim that the course does not have.
    """

    def __init__(self, id, source, criterion, baseline):
        lesson, words = _listed()[id]
        self.entry = {"id": id, "lesson": lesson, "claim": words, "source": source, "criterion": criterion,
                      "baseline": baseline}
        show.note(f"<b>{id}. {escape(words)}</b> <i>({escape(source)})</i><br><b>How we decide:</b> {escape(criterion)}"
                  f"<br><b>Baseline:</b> {escape(baseline)}")

    def measure(self, name, run, cases):
        """The results of ``run(case)`` for all cases, a list: numbers, or dicts or lists of numbers.

        They are the stored ones, unless the environment says to measure: then each case is run, once in a kernel even where
        several claims ask for it, and stored with what was asked, such as "trained(['linear', 900])". Raises ValueError when
        what is stored was measured for other cases.
        """
        key, cases = f"{self.entry['id']} {name}", list(cases)
        path = NUMBERS / f"{self.entry['lesson']}.json"
        stored = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        asked = [_in_words(run, case) for case in cases]
        measured = [item["case"] for item in stored.get(key, ())]
        mode = os.environ.get(MEASURE)
        if mode == "all" or mode == "missing" and measured != asked:
            stored[key] = [{"case": words, "result": _measured(run, case)}
                           for words, case in zip(asked, cases, strict=True)]
            path.parent.mkdir(exist_ok=True)
            write_whole(path, _a_line_each(stored))
        elif measured != asked:
            other = next((f"{a} is asked and {m} is stored" for a, m in zip(asked, measured, strict=False) if a != m),
                         f"{len(asked)} cases are asked and {len(measured)} are stored")
            raise ValueError(f'{key}: {other}; measure it with make experiments NB="{self._notebook()} --missing".')
        return [item["result"] for item in stored[key]]

    def _notebook(self):
        return f"notebooks/experiments/{course.LESSONS[self.entry['lesson']].file}"

    def decide(self, n, result, interval, verdict, reach, **for_readers):
        """Enter what was found and show it. ``n``: of what how many; ``result`` and ``interval``: made of measured numbers;
        ``verdict``: see `verdict`; ``reach``: in which setting, and what would change it. ``for_readers``: ``plain``, what
        was found in one sentence of at most 30 words; ``power``, the smallest effect that would have been noticed;
        ``changed``, what of the criterion was changed after a run; ``kind``, one of ``claims.KINDS``. All are strings.

        `make experiments` writes the entry; otherwise it has to equal the register's. Raises TypeError for another name,
        ValueError where a field is empty or not allowed (see ``claims.complete``), and AssertionError where the register
        says something else.
        """
        if unknown := for_readers.keys() - set(claims.FOR_READERS):
            raise TypeError(f"An entry has no {', '.join(sorted(unknown))}: it has {', '.join(claims.FOR_READERS)}.")
        entry = {**self.entry, "n": n, "result": result, "interval": interval, "verdict": verdict, "reach": reach,
                 "experiment": self._notebook(), **for_readers}
        claims.complete(entry)
        folder = os.environ.get(ENTRIES)
        if folder:
            write_whole(Path(folder) / f"{entry['id']}.json", json.dumps(entry))
        else:
            registered = claims.register().get(entry["id"], {})
            different = [name for name in (*claims.FIELDS, *claims.FOR_READERS) if registered.get(name) != entry.get(name)]
            assert not different, (f"{entry['id']}: the register has another {' and '.join(different)} than this experiment "
                                   f'computes: run make experiments NB="{self._notebook()} --missing".')
        kind = {"holds": "good", "does not hold": "bad"}.get(verdict, "info")
        titles = {"plain": "In plain words", "power": "Noticed", "reach": "How far it reaches", "changed": "Changed"}
        told = {title: entry[name] for name, title in titles.items() if name in entry}
        show.note("<br>".join([f"<b>{entry['id']} {escape(verdict)}.</b> "
                               f"{escape(result)} ({escape(interval)}; {escape(n)}).",
                               *(f"<b>{title}:</b> {escape(words)}" for title, words in told.items() if title != "Changed"),
                               *(f"<details><summary>{title}</summary>{escape(words)}</details>"
                                 for title, words in told.items() if title == "Changed")]),
                  "\n".join([f"{entry['id']} {verdict}. {result} ({interval}; {n}).",
                             *(f"{title}: {words}" for title, words in told.items())]), kind)


def _listed():
    """Claim -> (lesson, words)."""
    return {id: (lesson.number, words) for lesson in course.LESSONS.values() for id, words in lesson.claims.items()}


def _a_line_each(stored):
    """Stored numbers as JSON with a line for each case, so that a diff shows which came out otherwise."""
    groups = (f" {json.dumps(key)}: [\n  " + ",\n  ".join(map(json.dumps, stored[key])) + "\n ]" for key in sorted(stored))
    return "{\n" + ",\n".join(groups) + "\n}\n"


def _measured(run, case):
    """The result of ``run(case)`` as JSON has it; each case is run once in a kernel."""
    key = run, repr(_plain(case))  # of a long array repr would show the ends alone
    if key not in _results:
        _results[key] = _plain(run(case))
    return _results[key]


def _in_words(run, case):
    """What is run, such as "trained(['linear', 900])"; of the middle of a long text or array only a checksum is left."""
    case = _plain(case)
    words = f"{getattr(run, '__name__', 'run')}({getattr(case, '__name__', None) or repr(case)})"
    if len(words) <= 240:
        return words
    return f"{words[:160]} ... {len(words) - 200} characters, {zlib.crc32(words.encode()):08x} ... {words[-40:]}"


def _plain(value):
    """A result as JSON has it: arrays as lists, numbers of NumPy as Python's."""
    if isinstance(value, dict):
        return {str(name): _plain(v) for name, v in value.items()}
    if hasattr(value, "tolist"):
        return value.tolist()
    return [_plain(v) for v in value] if isinstance(value, (list, tuple)) else value
