"""The one clock of an assignment: the zone in which its dates are read and shown, whatever machine a command runs on.

It is asked for (``grade --zone``) or taken from the machine once, and kept in batch.json beside the results.
"""

from contextlib import suppress
from datetime import datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import tzlocal

from classroom import Problem
from classroom.files import read_json, write_json


class ClockError(Problem):
    """One sentence: why a zone is not known, and what to do."""


def zone(name):
    """The zone of this name, such as Europe/Berlin or UTC+02:00; ``str`` gives the name back. Raises ClockError."""
    with suppress(ValueError):
        return datetime.strptime(name, "UTC%z").tzinfo
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # ZoneInfoNotFoundError is a KeyError
        raise ClockError(f"{name[:60]!r} is not a time zone that is known here: name one such as Europe/Berlin or UTC "
                         "(where the system has no list of them, `pip install tzdata` brings it).") from None


def of_machine():
    """The zone of this machine: by its name where that can be found, or else by its distance from UTC today."""
    try:
        return zone(str(tzlocal.reload_localzone()))
    except (ClockError, OSError, ValueError, KeyError):  # as for a rule in TZ that has no name
        minutes = round(datetime.now().astimezone().utcoffset().total_seconds() / 60)
        return timezone(timedelta(minutes=minutes))


def of(out):
    """The zone of the results in ``out``; where they say none yet, this machine's, which is theirs from then on. Raises
    ClockError."""
    path = Path(out) / "batch.json"
    about = read_json(path) or {}
    if isinstance(about.get("zone"), str):
        return zone(about["zone"])
    found = of_machine()
    if about:
        write_json(path, about | {"zone": str(found)})
    return found


def words(seconds, zone):
    """A time for people, "" when it is not known."""
    try:
        return f"{datetime.fromtimestamp(seconds, zone):%Y-%m-%d %H:%M}" if seconds > 0 else ""
    except (ValueError, OverflowError, OSError):  # a file from the year 100,000
        return ""
