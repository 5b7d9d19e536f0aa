"""One call of an attempt: on a copy of its inputs, silently, and never for longer than it may take."""

import contextlib
import copy
import ctypes
import io
import sys
import threading
import time
from dataclasses import dataclass

import numpy as np

from helpers.checks.comparison import array_of
from helpers.checks.errors import error_text
from helpers.store import settings

PATIENCE = 12  # times as many seconds on the clock as of computing, for an attempt that sleeps or waits


class TimeLimit(BaseException):
    """Raised inside an attempt that computes for too long."""


class Waiting(TimeLimit):
    """Raised inside an attempt that does not come back and hardly computes."""


@dataclass(frozen=True)
class Result:
    """What one call of an attempt came to. ``changed``: the numbers of the arguments that it changed in place."""

    kind: str  # "value", "error" or "timeout"
    value: object = None  # the value returned, or in words the error or what took too long
    error: type | None = None
    changed: tuple = ()
    printed: str = ""


def plain_use(function, *args):
    """``function(*args)``: what an attempt's result is in most exercises."""
    return function(*args)


def as_list(function, *args):
    """What an attempt returns, arrays and tensors as lists."""
    value = function(*args)
    return value.tolist() if hasattr(value, "tolist") else value


@settings.usual()
def call(function, args, seconds, use=plain_use):
    """The ``Result`` of ``use(function, *args)`` on a copy of ``args``, silently and within ``seconds`` of
    computing. torch gets one thread: on a busy machine, several compute while they wait for one another."""
    mine = copied(args)
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed), _one_thread():
            value = _within(seconds, lambda: use(function, *mine))
    except TimeLimit as limit:
        return Result("timeout", _took_too_long(limit, seconds), printed=printed.getvalue())
    except (Exception, SystemExit) as error:
        return Result("error", error_text(error, function), type(error), printed=printed.getvalue())
    changed = tuple(i for i, (before, after) in enumerate(zip(args, mine, strict=True)) if not _same_input(before, after))
    return Result("value", value, changed=changed, printed=printed.getvalue())


def copied(args):
    """A deep copy, also of a ``torch.Generator``, which ``copy`` cannot copy."""
    return tuple(a.clone_state() if hasattr(a, "clone_state") else copy.deepcopy(a) for a in args)


def _same_input(before, after):
    if isinstance(before, (tuple, list)):
        return len(before) == len(after) and all(map(_same_input, before, after))
    if isinstance(before, dict):
        return before.keys() == after.keys() and all(_same_input(value, after[key]) for key, value in before.items())
    if isinstance(before, np.ndarray) or hasattr(before, "detach"):
        b, a = array_of(before), array_of(after)
        return b.shape == a.shape and (b.tobytes() == a.tobytes() or np.array_equal(b, a, equal_nan=b.dtype.kind == "f"))
    return before == after if isinstance(before, (int, str, bytes)) else True


def _one_thread():
    if "torch" not in sys.modules:
        return contextlib.nullcontext()
    from helpers.training import one_thread

    return one_thread()


def _took_too_long(limit, seconds):
    if isinstance(limit, Waiting):
        return (f"did not come back within {PATIENCE * seconds:g} seconds, and computed for less than "
                f"{seconds:g} of them. Does it sleep, or wait for something?")
    of_what = "" if sys.platform == "emscripten" else " of computing"
    return f"did not finish within {seconds:g} seconds{of_what}. Is there a loop that never ends?"


def _computing():
    """A clock, to be read in any thread, of the seconds for which this thread has computed. Where the system
    has none, as on macOS and Windows, all threads of the process count; a browser names one that cannot be
    read, and there the process' goes on by itself."""
    try:
        mine = time.pthread_getcpuclockid(threading.get_ident())
        time.clock_gettime(mine)
    except (AttributeError, OSError):
        return time.process_time
    return lambda: time.clock_gettime(mine)


def _within(seconds, function):
    """``function()``. Raise TimeLimit in it when it has computed for more than ``seconds``, and Waiting when
    PATIENCE times as many have gone by on the clock; the interrupt is repeated, so that a loop that catches
    everything does not survive it for long. Where no thread can start, as in a browser, the limits are looked
    at before every line instead, and such a loop survives. Locks of threading.Event are avoided: an interrupt
    inside one would leave it locked for ever."""
    limits = _limits(seconds)
    caller = ctypes.c_ulong(threading.get_ident())
    sending, end, ended = threading.Lock(), threading.Lock(), False
    end.acquire()

    def watch():
        wait = seconds
        while not end.acquire(timeout=wait):
            with sending:
                if ended:  # and the caller, whose clock `limits` reads, may be gone
                    return
                limit, wait = limits()
                if limit:
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(caller, ctypes.py_object(limit))

    interrupts = True  # may one be on its way?
    try:
        try:
            threading.Thread(target=watch, daemon=True).start()
        except RuntimeError:
            interrupts = False
            return _traced(limits, function)
        return function()
    finally:
        while interrupts:
            try:
                ended = True
                with sending:  # nothing is sent after this
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(caller, None)
                    interrupts = False
            except TimeLimit:
                pass
        end.release()


def _limits(seconds):
    """A function that gives the exception to raise, or None within the limits, and when to ask again."""
    clock = _computing()
    begun, begun_on_clock = clock(), time.monotonic()

    def look():
        left = seconds - (clock() - begun)
        left_on_clock = PATIENCE * seconds - (time.monotonic() - begun_on_clock)
        if left > 0 and left_on_clock > 0:
            return None, max(min(left, left_on_clock), 0.0005)  # nothing computes faster than the clock goes
        return (TimeLimit if left <= 0 else Waiting), 0.01

    return look


def _traced(limits, function):
    """``function()``; what ``limits`` gives is raised at the first line of Python that begins after it."""
    before = sys.gettrace()

    def look(frame, event, arg):
        limit, _ = limits()
        if limit:
            raise limit
        return look

    sys.settrace(look)
    try:
        return function()
    finally:
        sys.settrace(before)
