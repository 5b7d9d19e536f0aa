"""Values in files of JSON: results, lists, notebooks."""

import json
from pathlib import Path

from helpers.store.files import write_whole


def read_json(path, kind=dict):
    """What a JSON file holds, or None where there is no value of this kind in it, or no file."""
    try:
        value = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, kind) else None


def write_files(folder, contents):
    """Write files, name -> text or bytes, into a folder that is made if need be; returns their paths."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        write_whole(folder / name, content)
    return [folder / name for name in contents]


def write_json(path, value, **options):
    """Write a JSON-able value, whole or not at all, into a folder that is made if need be. ``options``: of json.dumps."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(value, indent=1, **options) + "\n")
