"""A learner's own copy of the lessons, in my_lessons/: make handout, or python -m scripts.handout [LESSON ...]

Git does not look into that folder, so a new version of the course never meets a learner's answers. Run it again after
an update: a lesson that was never touched is replaced by the new one, and one with work in it is left as it is.
"""

import hashlib
import itertools
import json
import sys
from pathlib import Path

from helpers.files import write_whole

ROOT = Path(__file__).resolve().parent.parent
FOLDER = "my_lessons"


def fingerprint(notebook):
    """A digest of what the cells say, whatever their outputs are."""
    said = [(cell["cell_type"], "".join(cell["source"])) for cell in notebook["cells"]]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


def own_copy(notebook):
    """The lesson without outputs, with links that fit its new place, marked with the fingerprint it then has."""
    for cell in notebook["cells"]:
        source = "".join(cell["source"]).replace("](solutions/", "](../notebooks/solutions/")
        source = source.replace("](experiments/", "](../notebooks/experiments/")
        cell["source"] = source.splitlines(keepends=True)
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
    notebook["metadata"]["attention_course"] = {"handed_out": fingerprint(notebook)}
    return notebook


def marks(path):
    """(the fingerprint that a copy was handed out with, the one that it has now); (None, "") when it tells neither."""
    try:
        there = json.loads(path.read_text(encoding="utf-8"))
        return there["metadata"].get("attention_course", {}).get("handed_out"), fingerprint(there)
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        return None, ""  # not there, or damaged: it is not ours to judge


def places(path, folder):
    """Where a copy of a lesson may lie: 05_scaling.ipynb, 05_scaling.new.ipynb, 05_scaling.new-2.ipynb and so on."""
    yield folder / path.name
    yield folder / f"{path.stem}.new.ipynb"
    yield from (folder / f"{path.stem}.new-{number}.ipynb" for number in itertools.count(2))


def hand_out(path, folder):
    """Copy one lesson into ``folder``: to the first of its places where no work lies, unless a copy of it is there already.

    Returns (state, place); the state is "new", "updated", "same", "kept" (work in it, and the lesson has not changed
    since) or "beside" (work in it, and the lesson has changed: the new one is at the place returned). Raises OSError,
    and ValueError for a file that is not a notebook.
    """
    copy = own_copy(json.loads(path.read_text(encoding="utf-8")))
    new = copy["metadata"]["attention_course"]["handed_out"]
    for place in places(path, folder):
        given, now = marks(place)
        beside = place.name != path.name
        if given == new:
            return "beside" if beside else "same" if now == new else "kept", place
        there = place.exists()
        if not there or now == given:
            write_whole(place, json.dumps(copy, indent=1, ensure_ascii=False) + "\n")
            return "beside" if beside else "updated" if there else "new", place


def main(arguments, folder=None):
    """Hand out the lessons named (paths, or the beginning of a name), by default all; returns the exit status."""
    folder = folder or ROOT / FOLDER
    lessons = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))
    chosen = [path for path in lessons if not arguments or any(path.name.startswith(Path(a).name) for a in arguments)]
    unknown = [a for a in arguments if not any(path.name.startswith(Path(a).name) for path in lessons)]
    if unknown:
        print(f"There is no lesson {unknown[0]!r}: say 03, say, or the name of a file in notebooks/.", file=sys.stderr)
        return 1
    try:
        folder.mkdir(exist_ok=True)
        states = {path: hand_out(path, folder) for path in chosen}
    except OSError as error:
        print(f"{error.filename or folder}: {error.strerror}. Lessons handed out before are as they were.", file=sys.stderr)
        return 1
    except ValueError:
        print("A lesson in notebooks/ is damaged: get it back with `git checkout notebooks/`.", file=sys.stderr)
        return 1
    for path, (state, place) in states.items():
        if state == "beside":
            print(f"{folder.name}/{path.name} has your work in it and stays. The lesson has changed since: "
                  f"the new one is {place.name} beside it.")
    said = [state for state, _ in states.values()]
    count = {state: said.count(state) for state in ("new", "updated", "kept", "same")}
    words = {"new": "new", "updated": "updated", "kept": "with your work in them, left alone", "same": "as they were"}
    said = ", ".join(f"{number} {words[state]}" for state, number in count.items() if number)
    print(f"Your copies are in {folder.name}/{': ' + said if said else ''}. `make lab` opens them.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
