"""Write a file so that an interruption leaves the old one or the new one, whole."""

import hashlib
import os
from pathlib import Path


def write_whole(path, contents):
    """Write ``contents``, bytes or a string, beside ``path`` and rename then. Returns the SHA-256 in hex.

    A string is written as UTF-8 with Unix line ends. Raises OSError when the folder cannot be written.
    """
    path = Path(path)
    contents = contents.encode("utf-8", errors="replace") if isinstance(contents, str) else contents
    part = path.with_name(f"{path.name}.{os.getpid()}.part")  # two kernels may write the same file
    try:
        part.write_bytes(contents)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    return hashlib.sha256(contents).hexdigest()
