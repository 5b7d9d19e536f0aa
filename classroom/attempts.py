"""Several hand-ins of one student: which one counts, and what the others got.

``results/KEY.json`` is the attempt that counts, with the history of all; the others lie in ``attempts/KEY/``.
"""

import hashlib
from pathlib import Path

from classroom.files import read_json, write_json

HOW = ("last", "best")


def graded(out, key):
    """The results of all attempts of a student that were ever graded into ``out``, the one that counts first."""
    paths = [Path(out) / "results" / f"{key}.json", *sorted((Path(out) / "attempts" / key).glob("*.json"))]
    results = {}
    for result in filter(None, map(read_json, paths)):
        results.setdefault(result["digest"], result)
    return list(results.values())


def keep(out, result):
    """Write the result of an attempt. One of another notebook that is there already is kept as well."""
    results = graded(out, result["key"])
    others = [one for one in results if one["digest"] != result["digest"]]
    for one in [*others, result] if others else []:
        write_json(place(out, one), one)
    if results[:1] != others[:1] or not others:
        write_json(Path(out) / "results" / f"{result['key']}.json", result)


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
        write_json(place(out, one), one)
    write_json(Path(out) / "results" / f"{key}.json", counts | {"history": history})


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
