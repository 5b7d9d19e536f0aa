"""A learner's own copy of the lessons and solutions, in my_lessons/: `make lab` makes it and keeps it up to date.

Git does not look into that folder, so a new version of the course never meets a learner's answers: a lesson that was never
touched is replaced by the new one, and one with work in it is left as it is. `make handout NB="03"`, or
python -m scripts.handout [LESSON ...], puts the new version beside such a lesson.
"""

import hashlib
import itertools
import json
import platform
import re
import sys
from collections import Counter
from pathlib import Path

from helpers.store.files import write_whole
from scripts import ROOT

FOLDER = "my_lessons"
DRAWING = "map"  # the id of the cell that shows where a lesson is in the whole model
FOLD = "<details><summary>What we saw: open this when you have run the cell above</summary>"
CALL = re.compile(r"^\s*(predict|reveal)\(\s*[\"'](.+?)[\"']", re.MULTILINE)
TOLD = "told.json"  # in that folder: the changed lessons of which `make lab` has told


def fingerprint(notebook):
    """A digest of what the cells say, whatever their outputs are."""
    cells = [(cell["cell_type"], "".join(cell["source"])) for cell in notebook["cells"]]
    return hashlib.sha256(json.dumps(cells).encode()).hexdigest()


def own_copy(notebook):
    """The notebook without Colab's cell and without outputs but the drawing at its top, with links that fit its new place,
    marked with the fingerprint it then has. What is said of an answer is in a fold. It names the Python at hand, or
    JupyterLab would open it as changed."""
    notebook["cells"] = [cell for cell in notebook["cells"] if "remove-cell" not in cell["metadata"].get("tags", ())]
    fold_what_answers(notebook["cells"])
    for cell in notebook["cells"]:
        source = re.sub(r"\]\((\.\./)?(experiments|assignments)/", r"](\1../notebooks/\2/", "".join(cell["source"]))
        cell["source"] = source.splitlines(keepends=True)
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = cell["outputs"] if cell.get("id") == DRAWING else [], None
    notebook["metadata"].get("kernelspec", {})["display_name"] = "Python 3 (ipykernel)"
    notebook["metadata"].get("language_info", {})["version"] = platform.python_version()
    notebook["metadata"]["attention_course"] = {"handed_out": fingerprint(notebook)}
    return notebook


def fold_what_answers(cells):
    """Put the words between a question and its answer, and the first ones behind the answer, into folds: a text cell is seen
    before any cell is run. Headings, and exercises with them, stay in sight."""
    sources, asked = ["".join(cell["source"]) for cell in cells], {}
    for i, cell in enumerate(cells):
        for call, key in CALL.findall(sources[i]) if cell["cell_type"] == "code" else ():
            if call == "predict":
                asked[key] = i
                continue
            words = [j for j, other in enumerate(cells) if other["cell_type"] == "markdown"]
            behind = [j for j in words if j > i][:1]
            for j in [j for j in words if asked.get(key, i) < j < i] + behind:
                heading = re.search(r"^#+ ", sources[j], re.MULTILINE)
                before, rest = (sources[j][:heading.start()], sources[j][heading.start():]) if heading else (sources[j], "")
                if before.strip() and not before.startswith(FOLD):
                    sources[j] = f"{FOLD}\n\n{before.strip()}\n\n</details>\n{rest and chr(10) + rest}"
                    cells[j]["source"] = sources[j]


def marks(path):
    """(the fingerprint that a copy was handed out with, the one that it has now); (None, "") when it tells neither."""
    try:
        there = json.loads(path.read_text(encoding="utf-8"))
        return there["metadata"].get("attention_course", {}).get("handed_out"), fingerprint(there)
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        return None, ""  # not there, or damaged: it is not ours to judge


def places(path, folder):
    """Where a copy of a lesson may lie: 05_scaling.ipynb; beside work 05_scaling.new.ipynb, 05_scaling.new-2.ipynb, ..."""
    endings = itertools.chain(("", ".new"), (f".new-{number}" for number in itertools.count(2)))
    return (folder / f"{path.stem}{ending}.ipynb" for ending in endings)


def hand_out(path, folder, beside=True):
    """Copy one lesson into ``folder``: to the first of its places where no work lies, unless a copy of it is there already.

    Returns (state, place); the state is "new", "updated", "same", "kept" (work in it, and the lesson has not changed
    since) or "beside" (work in it, and the lesson has changed: the new one is at the place returned). With ``beside=False``
    nothing is put beside work: the state is then "moved on", and the place that of the work. Raises OSError, and ValueError
    for a file that is not a notebook.
    """
    copy = own_copy(json.loads(path.read_text(encoding="utf-8")))
    new, first = copy["metadata"]["attention_course"]["handed_out"], folder / path.name
    for place in places(path, folder):
        given, now = marks(place)
        if given == new or now == given or not place.exists():
            break
    if place == first and given == new:
        state = "same" if now == new else "kept"
    elif place == first:
        state = "updated" if place.exists() else "new"
    elif given == new or beside:
        state = "beside"
    else:
        return "moved on", first
    if given != new:
        write_whole(place, json.dumps(copy, indent=1, ensure_ascii=False) + "\n")
    return state, place


def lessons():
    return sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))


def copies(chosen, folder, beside=True):
    """Hand out lessons and their solutions: lesson -> (state, place). Raises as `hand_out`."""
    (folder / "solutions").mkdir(parents=True, exist_ok=True)
    for path in chosen:
        if (solution := path.parent / "solutions" / path.name).exists():
            hand_out(solution, folder / "solutions", beside)
    return {path: hand_out(path, folder, beside) for path in chosen}


def fill():
    """What `make lab` does first: new lessons and solutions come into the folder, untouched ones are brought up to date, and
    of a lesson with work in it that has changed since it tells, once. Returns the copies that were written now. Raises as
    `hand_out`."""
    folder = ROOT / FOLDER
    began = not folder.exists()
    states = copies(lessons(), folder, beside=False)
    if began:
        print(f"Your own copies of the lessons are in {folder.name}/, without results, and updates never touch your work.")
    changed = {path.name: fingerprint(json.loads(path.read_text(encoding="utf-8")))
               for path, (state, _) in states.items() if state == "moved on"}
    try:
        told = json.loads((folder / TOLD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        told = {}
    for name in sorted(changed):
        if told.get(name) != changed[name]:
            print(f"{folder.name}/{name} has your work in it and stays as it is, and the lesson has changed since: "
                  f"`make handout NB={name[:2]}` puts the new one beside it.")
    if changed:
        write_whole(folder / TOLD, json.dumps(changed, indent=1) + "\n")
    return {path.name: str(place) for path, (state, place) in states.items() if state in ("new", "updated")}


def trouble(error, folder):
    """One sentence for what `hand_out` raises."""
    if isinstance(error, OSError):
        return f"{error.filename or folder}: {error.strerror}. Lessons handed out before are as they were."
    return "A lesson in notebooks/ is damaged: get it back with `git checkout notebooks/`."


def main(arguments):
    """Hand out the lessons named (paths, or the beginning of a name), by default all; returns the exit status."""
    folder, chosen = ROOT / FOLDER, []
    for argument in arguments or [""]:
        named = [path for path in lessons() if path.name.startswith(Path(argument).name)]
        if not named:
            print(f"There is no lesson {argument!r}: say 03, say, or the name of a file in notebooks/.", file=sys.stderr)
            return 1
        chosen += named
    try:
        states = copies(chosen, folder)
    except (OSError, ValueError) as error:
        print(trouble(error, folder), file=sys.stderr)
        return 1
    for path, (state, place) in states.items():
        if state == "beside":
            print(f"{folder.name}/{path.name} has your work in it and stays. The lesson has changed since: "
                  f"the new one is {place.name} beside it.")
    words = {"new": "new", "updated": "updated", "kept": "with your work in them, left alone", "same": "as they were"}
    counts = Counter(state for state, _ in states.values())
    sums = ", ".join(f"{counts[state]} {meaning}" for state, meaning in words.items() if counts[state])
    print(f"Your copies are in {folder.name}/{': ' + sums if sums else ''}. `make lab` opens them.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
