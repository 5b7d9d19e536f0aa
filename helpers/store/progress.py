"""One small local file that remembers predictions and passed exercises.

The file is ``.progress.json`` at the top of the course. The environment variable
``ATTENTION_COURSE_PROGRESS`` names another path, or ``off``: nobody is at the keyboard,
so nothing is kept and widgets are drawn as static text (used when notebooks are tested).
"""

import copy
import itertools
import json
import os
import time
from pathlib import Path

from helpers.store.files import locked, write_whole

_memory = {}  # what this kernel knows, used when there is no file to write to
_unsaved = {}  # of this, what the file lacks because it could not be read or written
_told = set()


def live():
    """True when a learner is at the keyboard, False when ``ATTENTION_COURSE_PROGRESS=off``."""
    return os.environ.get("ATTENTION_COURSE_PROGRESS") != "off"


def path():
    """Where the progress file lives (it need not exist yet)."""
    named = os.environ.get("ATTENTION_COURSE_PROGRESS")
    return Path(named) if named else Path(__file__).resolve().parents[2] / ".progress.json"


def load(section):
    """What is known about ``section`` ("predictions" or "exercises"), as a dict.

    A damaged file is renamed and kept, one sentence says where, and what this kernel knows comes back; so it does, and one
    sentence is printed, when the file cannot be read.
    """
    known = _memory
    if live():
        try:
            known = _known()
        except OSError as error:
            _tell(f"Your progress in {path()} cannot be read ({error.strerror}): the file stays as it is.")
    return dict(known.get(section, {}))


def record(section, key, value):
    """Remember ``value`` under ``key`` in ``section``. Never raises: when the file cannot be read or written it stays
    as it is, one sentence is printed, and the value waits in this kernel for the next time."""
    _put(_memory, {section: {key: value}})
    if not live():
        return
    _put(_unsaved, {section: {key: value}})
    target = path()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with locked(target.with_name(f"{target.name}.lock"), seconds=5):  # no other kernel writes in between
            known = _known()
            write_whole(target, json.dumps(known, indent=1, ensure_ascii=False, sort_keys=True))
    except OSError as error:
        _tell(f"Your progress could not be saved in {target} ({error.strerror}); it is kept until this kernel "
              "stops, and saved with the next exercise or prediction if that works again.")
    else:
        _put(_memory, known)
        _unsaved.clear()


def _put(known, more):
    """Enter ``more`` into ``known``; both are {section: {key: value}}."""
    for section, entries in more.items():
        known.setdefault(section, {}).update(entries)


def _known():
    """What the file says, and what it lacks as yet; without a file, what this kernel knows. Raises OSError when there
    is a file that cannot be read."""
    stored = _stored()
    known = copy.deepcopy(_memory) if stored is None else stored
    _put(known, _unsaved)
    return known


def _stored():
    """What the file says, or None when there is none; a damaged one is set aside. Raises OSError when there is one that
    cannot be read."""
    for pause in (0.1, 0.3, None):  # another program may hold it for a moment
        try:
            data = json.loads(path().read_text(encoding="utf-8"))
            if not isinstance(data, dict) or not all(isinstance(v, dict) for v in data.values()):
                raise ValueError("not a progress file")
            return data
        except (FileNotFoundError, NotADirectoryError):
            return None
        except ValueError:
            return _set_aside(path())
        except OSError:
            if pause is None:
                raise
            time.sleep(pause)


def _set_aside(damaged):
    aside = next(place for number in itertools.count(1)
                 if not (place := damaged.with_name(f"{damaged.name}.damaged-{number}")).exists())
    try:
        os.replace(damaged, aside)
    except OSError as error:
        raise OSError(error.errno, f"it is damaged and cannot be renamed, {error.strerror}") from error
    _tell(f"The progress file was damaged; it is kept as {aside.name} and a new one is started.")


def _tell(sentence):
    if sentence not in _told:
        _told.add(sentence)
        print(sentence)
