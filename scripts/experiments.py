"""Run the experiments in full and write the register of claims: make experiments [NB="notebooks/experiments/01*.ipynb"].

Writes the measured numbers (data/experiments/), the notebooks' outputs and data/claims.json, and says which verdicts
changed. Entries of experiments that did not run stay as they were. Exit status 1 where a notebook stopped or a verdict
changed: the lessons that quote it have to be read again.

With --missing only what has no stored numbers for its cases is measured, and the entries are written anew from all of
them: for a change of words, or a new measurement. To make one again, take its numbers out of data/experiments/ first.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

from helpers.measure import claim
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
    before = claims.register(path) if path.exists() else {}
    new = {entry["id"]: entry for entry in (json.loads(p.read_text(encoding="utf-8")) for p in Path(folder).glob("C*.json"))}
    changed = {id: (before.get(id, {}).get("verdict"), entry["verdict"]) for id, entry in sorted(new.items())
               if before.get(id, {}).get("verdict") != entry["verdict"]}
    listed = {id for lesson in LESSONS.values() for id in lesson.claims}
    for id, entry in before.items():
        if "withdrawn" in entry and id in listed:
            raise ValueError(f"{id} was withdrawn ({entry['claim']!r}): a new claim takes a number that was never used.")
        if id not in listed:
            entry["withdrawn"] = "The course no longer has this claim."
    for id in sorted(before.keys() & new.keys()):
        was, now, told = before[id]["claim"], new[id]["claim"], new[id].get("changed", "")
        if was != now and was.lower() not in told.lower():
            raise ValueError(f"{id} was {was!r} and is now {now!r}: a number keeps its meaning. Where only the words "
                             "are others, quote the former ones in `changed`; otherwise take a new number.")
    entries = [entry for _, entry in sorted({**before, **new}.items(), key=lambda item: (len(item[0]), item[0]))]
    write_whole(path, json.dumps(entries, indent=1, ensure_ascii=False) + "\n")
    return changed


def main(arguments):
    patterns = [argument for argument in arguments if argument != "--missing"]
    os.environ[claim.MEASURE] = "missing" if "--missing" in arguments else "all"
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # a thread that waits does not spin: the other process has its turn
    with tempfile.TemporaryDirectory() as folder:
        os.environ[claim.ENTRIES] = folder
        failed = execute.main(patterns or ["notebooks/experiments/*.ipynb"], None)  # None: measuring takes minutes
        changed = collect(folder)
    for id, (before, now) in changed.items():
        print(f"{id}: {before or 'no verdict'} before, now {now}.")
    print(f"{len(claims.register())} claims in the register.")
    return 1 if failed or any(before for before, _ in changed.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
