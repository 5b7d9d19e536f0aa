"""What people say about attention, and what the course's experiments found: the register in ``data/claims.json``.

The experiments write the register, through ``helpers/measure/claim.py``; a lesson says in a few sentences what it holds.
"""

import json
from pathlib import Path

REGISTER = Path(__file__).resolve().parents[2] / "data" / "claims.json"
FIELDS = ("id", "lesson", "claim", "source", "criterion", "baseline", "n", "result", "interval", "verdict", "reach",
          "experiment")
FOR_READERS = ("plain", "power", "changed", "kind")  # what `helpers.measure.claim.Claim.decide` also enters where it is told
VERDICTS = ("holds", "holds if", "holds in part", "does not hold", "not settled")
KINDS = ("claim", "identity", "misprint")  # the last two are the second list: equalities, shapes, counts, our own code
MOST_WORDS = 30  # of a plain sentence


def register(path=None):
    """The register: a dict from a claim's id, such as "C05", to its entry, a dict with FIELDS, all of them strings.

    An entry that also has "withdrawn", a sentence, is no longer the course's, and keeps its id.

    Raises ValueError when the file cannot be read or an entry lacks a field.
    """
    path = Path(path or REGISTER)
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
        by_id = {entry["id"]: entry for entry in entries}
    except (OSError, ValueError, TypeError, KeyError):
        raise ValueError(f"The register {path.name} cannot be read: get it back with `git checkout data/{path.name}`, "
                         "or write it with `make experiments`.") from None
    for entry in by_id.values():
        complete(entry)
    return by_id


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
