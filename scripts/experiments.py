"""Run the experiments in full and write the register of claims: make experiments [NB="notebooks/experiments/01*.ipynb"].

Writes the measured numbers (data/experiments/), the notebooks' outputs and data/claims.json, and says which verdicts
changed. Entries of experiments that did not run stay as they were. Exit status 1 where a notebook stopped or a verdict
changed: the lessons that quote it have to be read again.

With --stored nothing long is measured: the entries are written anew from the stored numbers, of which the first case is
checked. For a change of words.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

from helpers import claims
from helpers.course import LESSONS
from helpers.files import write_whole
from scripts import claim, execute


def collect(folder, path=claims.REGISTER):
    """Put the entries in ``folder`` into the register at ``path``. Returns {id: (verdict before or None, verdict now)} of
    those that changed their verdict."""
    held = claims.register(path) if path.exists() else {}
    new = {entry["id"]: entry for entry in (json.loads(p.read_text(encoding="utf-8")) for p in Path(folder).glob("C*.json"))}
    changed = {name: (held.get(name, {}).get("verdict"), entry["verdict"]) for name, entry in sorted(new.items())
               if held.get(name, {}).get("verdict") != entry["verdict"]}
    known = {claim for lesson in LESSONS.values() for claim in lesson.claims}  # one that was taken out leaves the register
    entries = [entry for name, entry in sorted({**held, **new}.items(), key=lambda item: (len(item[0]), item[0]))
               if name in known]
    write_whole(path, json.dumps(entries, indent=1, ensure_ascii=False) + "\n")
    return changed


def main(arguments):
    patterns = [argument for argument in arguments if argument != "--stored"]
    if patterns != arguments:
        os.environ[claim.STORED] = "yes"
    with tempfile.TemporaryDirectory() as folder:
        os.environ[claim.IN_FULL] = folder
        failed = execute.main(patterns or ["notebooks/experiments/*.ipynb"], seconds=None)  # measuring takes minutes
        changed = collect(folder)
    for name, (before, now) in changed.items():
        print(f"{name}: {before or 'no verdict'} before, now {now}.")
    used = os.times()
    minutes = (used.children_user + used.children_system) / 60  # 0 on Windows
    print(f"{minutes:.1f} minutes of CPU time. {len(claims.register())} claims in the register.")
    return 1 if failed or any(before for before, _ in changed.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
