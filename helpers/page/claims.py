"""What people say about attention, and what the course's experiments found: the register in ``data/claims.json``.

A lesson closes with ``what_people_say("01")``. The experiments write the register, through ``helpers/measure/claim.py``.
"""

import json
from pathlib import Path

from helpers.page import show

REGISTER = Path(__file__).resolve().parents[2] / "data" / "claims.json"
FIELDS = ("id", "lesson", "claim", "source", "criterion", "baseline", "n", "result", "interval", "verdict", "reach",
          "experiment")
FOR_READERS = ("plain", "power", "changed", "kind")  # what `helpers.measure.claim.Claim.decide` also enters where it is told
VERDICTS = ("holds", "holds if", "holds in part", "does not hold", "not settled")
KINDS = ("claim", "identity", "misprint")  # the last two are the second list: equalities, shapes, counts, our own code
MOST_WORDS = 60  # of a plain sentence


def register(path=None):
    """The register: a dict from a claim's id, such as "C05", to its entry, a dict with FIELDS, all of them strings.

    An entry that also has "withdrawn", a sentence, is no longer the course's, and keeps its id.

    Raises ValueError when the file cannot be read or an entry lacks a field.
    """
    path = Path(path or REGISTER)
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
        found = {entry["id"]: entry for entry in entries}
    except (OSError, ValueError, TypeError, KeyError):
        raise ValueError(f"The register {path.name} cannot be read: get it back with `git checkout data/{path.name}`, "
                         "or write it with `make experiments`.") from None
    for entry in found.values():
        complete(entry)
    return found


def what_people_say(lesson, later=()):
    """Show the claims of a lesson, such as "01", and the verdict of each, without those that were withdrawn.

    ``later``: ids whose verdict would answer a question that the reader meets further down; it is not told here.
    """
    entries = [e for e in register().values() if e["lesson"] == lesson and "withdrawn" not in e]
    rows = [(e["id"], e["claim"], "guess first, in Going deeper" if e["id"] in later else e["verdict"]) for e in entries]
    show.table(["Claim", "What people say", "Verdict"], rows)


def complete(entry):
    """Raises ValueError where a field of ``entry`` is empty, its verdict is none of VERDICTS or its kind none of KINDS, or
    its plain sentence has more than MOST_WORDS words."""
    needed = [*FIELDS, *(name for name in FOR_READERS if name in entry)]
    empty = [name for name in needed if not isinstance(entry.get(name), str) or not entry[name].strip()]
    if empty:
        raise ValueError(f"{entry.get('id', 'An entry')} has no {', no '.join(empty)}: each field is a sentence or a word.")
    if not entry["verdict"].startswith(VERDICTS):
        raise ValueError(f"{entry['id']} has the verdict {entry['verdict']!r}: it begins with one of {', '.join(VERDICTS)}.")
    if entry.get("kind", KINDS[0]) not in KINDS:
        raise ValueError(f"{entry['id']} is of the kind {entry['kind']!r}: it is one of {', '.join(KINDS)}.")
    words = len(entry.get("plain", "").split())
    if words > MOST_WORDS:
        raise ValueError(f"{entry['id']} says in {words} words what was found: at most {MOST_WORDS} are plain.")
