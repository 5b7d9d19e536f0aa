"""Every hint of the course in one file, hints.txt, so that a change of words is a diff that somebody reads.

After a change: python tests/unit/test_hints.py writes the file again.
"""

import sys
from pathlib import Path

FILE = Path(__file__).with_name("hints.txt")


def hints():
    """A paragraph an exercise: a line for each probe (?), mistake (!), error (>) and contract (+)."""
    from helpers.checks import INDEX, exercise

    lines = []
    for name, lesson in INDEX.items():
        task = exercise(name)
        lines += ["", f"{lesson} {name}", *(f"  ? {probe.name}: {probe.hint}" for probe in task.probes),
                  *(f"  ! {mistake.id}: {mistake.hint}" for mistake in task.misconceptions),
                  *(f"  > {pattern}: {words}" for pattern, words in task.nudges),
                  *(f"  + {contract.words}" for contract in task.contracts)]
    return "\n".join(lines).strip() + "\n"


def test_the_hints_are_those_that_were_read():
    assert hints() == FILE.read_text(encoding="utf-8"), "read the diff, then run python tests/unit/test_hints.py"


if __name__ == "__main__":
    sys.path.insert(0, str(FILE.parents[2]))
    FILE.write_text(hints(), encoding="utf-8")
