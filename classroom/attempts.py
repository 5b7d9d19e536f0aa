"""Several hand-ins of one student: which one counts, and what the others got.

``results/KEY.json`` is the attempt that counts, with the history of all; the others lie in ``attempts/KEY/``.
"""

import hashlib
import json
from pathlib import Path

from helpers.store.files import write_whole

HOW = ("last", "best")


def graded(out, key):
    """The results of all attempts of a student that were ever graded into ``out``, the one that counts first."""
    paths = [Path(out) / "results" / f"{key}.json", *sorted((Path(out) / "attempts" / key).glob("*.json"))]
    results = {}
    for path in paths:
        try:
            result = json.loads(path.read_text(encoding="utf-8"))
            results.setdefault(result["digest"], result)
        except (OSError, ValueError, TypeError, KeyError):
            continue
    return list(results.values())


def keep(out, result):
    """Write the result of an attempt. One of another notebook that is there already is kept as well."""
    results = graded(out, result["key"])
    others = [one for one in results if one["digest"] != result["digest"]]
    for one in [*others, result] if others else []:
        _write(place(out, one), one)
    if results[:1] != others[:1] or not others:
        _write(Path(out) / "results" / f"{result['key']}.json", result)


def settle(out, key, newest, how):
    """Say which attempt of a student counts: the last, whose digest is ``newest``, or the best by the points of its tests,
    and of equals the later one."""
    results = graded(out, key)
    if len(results) < 2:
        return
    rank = {"last": lambda one: (one["digest"] == newest,), "best": lambda one: (points(one), one["modified"])}[how]
    counts = max(results, key=rank)
    history = [{"file": one["file"], "modified": one["modified"], "status": one["status"], "points": points(one),
                "counts": one is counts} for one in sorted(results, key=lambda one: one["modified"])]
    for one in results:
        one.pop("history", None)
        _write(place(out, one), one)
    _write(Path(out) / "results" / f"{key}.json", counts | {"history": history})


def points(result):
    """The points of a result for its tests; what could not be judged counts as none."""
    return sum(test["points"] or 0 for test in result["tests"])


def forget(out, key):
    """Delete all results of a student, to be graded again."""
    (Path(out) / "results" / f"{key}.json").unlink(missing_ok=True)
    for path in (Path(out) / "attempts" / key).glob("*.json"):
        path.unlink()


def place(out, result, folder="attempts"):
    """The file of one attempt, told by what the notebook holds. ``result``: with ``key`` and ``digest``."""
    name = hashlib.sha256(result["digest"].encode()).hexdigest()[:16]
    return Path(out) / folder / result["key"] / f"{name}.json"


def _write(path, result):
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(result, indent=1))
