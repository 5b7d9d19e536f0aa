"""Write a file so that an interruption leaves the old one or the new one, whole; and let one process at a time do it.

This needs the standard library alone, and no filelock: the set-up asks for the lock before anything is installed, and the
lessons run where it is not, as in a browser.
"""

import contextlib
import errno
import hashlib
import os
import time
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


@contextlib.contextmanager
def locked(path, seconds=None, waits=None):
    """Hold the lock of the file ``path``, which is made if need be and stays; whoever else asks for it has to wait.

    ``waits()`` is called once if this one has to. After ``seconds`` (None: never), and where there are no locks, as on
    some network disks, it goes on without. A process that ends gives its lock back. Raises OSError when the file
    cannot be opened.
    """
    end = time.monotonic() + (float("inf") if seconds is None else seconds)
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        while _is_held(handle) and time.monotonic() < end:
            if waits:
                waits()
                waits = None
            time.sleep(0.05)
        yield
    finally:
        os.close(handle)


def _is_held(handle):
    """Take the lock of an open file; returns whether another one holds it."""
    try:
        try:
            import fcntl
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:  # Windows
            import msvcrt
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    except (ImportError, AttributeError):  # a Python without locks
        return False
    except OSError as error:
        return error.errno in (errno.EAGAIN, errno.EACCES, errno.EDEADLK)
    return False
