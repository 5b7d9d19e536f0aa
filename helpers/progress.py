"""One small local file that remembers predictions and passed exercises.

The file is ``.progress.json`` at the top of the course. The environment variable
``ATTENTION_COURSE_PROGRESS`` names another path, or ``off``: nobody is at the keyboard,
so nothing is kept and widgets are drawn as static text (used when notebooks are tested).
"""

import itertools
import json
import os
from pathlib import Path

from helpers.files import write_whole

_memory = {}  # used when there is no file to write to
_told = set()


def live():
    """True when a learner is at the keyboard, False when ``ATTENTION_COURSE_PROGRESS=off``."""
    return os.environ.get("ATTENTION_COURSE_PROGRESS") != "off"


def path():
    """Where the progress file lives (it need not exist yet)."""
    named = os.environ.get("ATTENTION_COURSE_PROGRESS")
    return Path(named) if named else Path(__file__).resolve().parent.parent / ".progress.json"


def load(section):
    """What is known about ``section`` ("predictions" or "exercises"), as a dict.

    A damaged file is renamed and kept, one sentence says where, and an empty dict comes back.
    """
    return dict(_read().get(section, {}))


def record(section, key, value):
    """Remember ``value`` under ``key`` in ``section``. Never raises: a file that cannot be
    written costs one printed sentence, and the value is kept until the kernel stops."""
    data = _read()
    data.setdefault(section, {})[key] = value
    _memory.update(data)
    if not live():
        return
    target = path()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, json.dumps(data, indent=1, ensure_ascii=False, sort_keys=True))
    except OSError as error:
        _tell(f"Your progress could not be saved in {target} ({error.strerror}); "
              "it is kept until this kernel stops.")


def _read():
    if not live() or not path().exists():
        return json.loads(json.dumps(_memory))
    try:
        data = json.loads(path().read_text(encoding="utf-8"))
        if not isinstance(data, dict) or not all(isinstance(v, dict) for v in data.values()):
            raise ValueError("not a progress file")
        return data
    except OSError as error:
        _tell(f"Your progress in {path()} cannot be read ({error.strerror}); starting without it.")
    except ValueError:
        _set_aside(path())
    return json.loads(json.dumps(_memory))


def _set_aside(damaged):
    aside = next(place for number in itertools.count(1)
                 if not (place := damaged.with_name(f"{damaged.name}.damaged-{number}")).exists())
    try:
        os.replace(damaged, aside)
        _tell(f"The progress file was damaged; it is kept as {aside.name} and a new one is started.")
    except OSError as error:
        _tell(f"The progress file {damaged} is damaged and cannot be moved ({error.strerror}); "
              "please delete or repair it.")


def _tell(sentence):
    if sentence not in _told:
        _told.add(sentence)
        print(sentence)
