"""Run the experiments in full and write the register of claims: make experiments [NB="notebooks/experiments/01*.ipynb"].

Writes the measured numbers (data/experiments/), the notebooks' outputs and data/claims.json, and says which verdicts
changed, and what share of the CPU time each notebook took. Entries of experiments that did not run stay as they were.
Exit status 1 where a notebook stopped or a verdict changed: the lessons that quote it have to be read again.

With --stored nothing long is measured: the entries are written anew from the stored numbers. For a change of words.
With --renew the first case of each measurement whose code or data changed is measured, has to agree with what is stored,
and its digest and spread (see ``helpers/experiment.py``) are stored anew. For a change of code that leaves the numbers.
With --new the same, what has not been measured yet is measured, and the entries are written anew. For a new measurement.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

from helpers import experiment
from helpers.page import claims
from helpers.page.course import LESSONS
from helpers.store.files import write_whole
from scripts import execute


def collect(folder, path=claims.REGISTER):
    """Put the entries in ``folder`` into the register at ``path``. Returns {id: (verdict before or None, verdict now)} of
    those that changed their verdict.

    A claim that the course no longer has stays, marked as withdrawn, so that its number never means anything else. Raises
    ValueError where a new entry has such a number, or other words than before and does not quote those in ``changed``.
    """
    held = claims.register(path) if path.exists() else {}
    new = {entry["id"]: entry for entry in (json.loads(p.read_text(encoding="utf-8")) for p in Path(folder).glob("C*.json"))}
    changed = {name: (held.get(name, {}).get("verdict"), entry["verdict"]) for name, entry in sorted(new.items())
               if held.get(name, {}).get("verdict") != entry["verdict"]}
    known = {claim for lesson in LESSONS.values() for claim in lesson.claims}
    for name, entry in held.items():
        if "withdrawn" in entry and name in known:
            raise ValueError(f"{name} was withdrawn ({entry['claim']!r}): a new claim takes a number that was never used.")
        if name not in known:
            entry["withdrawn"] = "The course no longer has this claim."
    for name in sorted(held.keys() & new.keys()):
        before, now, told = held[name]["claim"], new[name]["claim"], new[name].get("changed", "")
        if before != now and before.lower() not in told.lower():
            raise ValueError(f"{name} was {before!r} and is now {now!r}: a number keeps its meaning. Where only the words "
                             "are others, quote the former ones in `changed`; otherwise take a new number.")
    entries = [entry for _, entry in sorted({**held, **new}.items(), key=lambda item: (len(item[0]), item[0]))]
    write_whole(path, json.dumps(entries, indent=1, ensure_ascii=False) + "\n")
    return changed


def shares(used):
    """A line for each notebook, the dearest first: its CPU-minutes and their share of all. ``used``: path -> CPU-seconds."""
    whole = sum(used.values()) or 1  # 0 on Windows
    return [f"{seconds / 60:5.1f} minutes {seconds / whole:4.0%}  {Path(path).stem}"
            for path, seconds in sorted(used.items(), key=lambda item: -item[1])]


def main(arguments):
    patterns = [argument for argument in arguments if argument not in ("--stored", "--renew", "--new")]
    renew, used = "--renew" in arguments, {}
    if "--stored" not in arguments:
        os.environ[experiment.MEASURE] = "renew" if renew or "--new" in arguments else "all"
    with tempfile.TemporaryDirectory() as folder:
        if not renew:
            os.environ[experiment.ENTRIES] = folder
        failed = execute.main(patterns or ["notebooks/experiments/*.ipynb"], None, used)  # None: measuring takes minutes
        changed = collect(folder)
    for name, (before, now) in changed.items():
        print(f"{name}: {before or 'no verdict'} before, now {now}.")
    for line in shares(used):
        print(line)
    print(f"{sum(used.values()) / 60:.1f} minutes of CPU time. {len(claims.register())} claims in the register.")
    return 1 if failed or any(before for before, _ in changed.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
