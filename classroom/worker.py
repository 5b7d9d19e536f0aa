"""Runs inside the sandbox: the code cells of one submission, one by one, then calls of its functions.

    python worker.py LIMITS     lines of JSON in on stdin, lines of JSON out on what was stdout

Everything here is at the mercy of the submission, so nothing here judges: whatever it answers is data to the
grader outside. An error in a cell is recorded and the next cell runs. Each call runs in a fork of its own.
"""

import __future__

import ast
import builtins
import contextlib
import functools
import gc
import importlib
import inspect
import io
import json
import linecache
import math
import operator
import os
import re
import resource
import select
import signal
import sys
import time
import traceback
import types
import warnings

import wire

PRINTED = 2_000  # characters kept of what a call prints
ANSWER = 8_000_000  # bytes of one answer
FUTURES = functools.reduce(operator.or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names))
future = 0  # flags of what the cells imported from __future__


class CellTime(BaseException):
    """Raised inside a cell that takes too long."""


class Printed(io.StringIO):
    """What a call prints, up to a limit; the rest is thrown away."""

    def write(self, text):
        return super().write(text[:PRINTED - self.tell()]) if self.tell() < PRINTED else 0


class Shell:
    """What ``get_ipython()`` gives: every magic is accepted and does nothing."""

    def __init__(self, space):
        self.user_ns = space

    def __getattr__(self, name):
        return self

    def __call__(self, *args, **options):
        return None

    def getoutput(self, *args, **options):
        return []


def main():
    for name, most in json.loads(sys.argv[1]).items():
        limit = getattr(resource, "RLIMIT_" + name, None)
        if limit is not None:
            resource.setrlimit(limit, (most, most))
    questions, answers = os.fdopen(os.dup(0), "rb"), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):  # what a submission reads and prints goes nowhere
        os.dup2(nothing, standard)
    os.environ.setdefault("MPLBACKEND", "Agg")
    module = types.ModuleType("__main__")
    shell = Shell(module.__dict__)
    module.get_ipython = builtins.get_ipython = lambda: shell
    module.display = builtins.display = lambda *things, **options: None
    # The names that serve later calls, before a submission can put others in their place:
    serve = {"import": load, "cell": run_cell, "call": call,
             "loads": json.loads, "dumps": json.dumps, "write": os.write}
    sys.modules["__main__"] = module
    sys.path.insert(0, os.getcwd())
    warnings.simplefilter("ignore")
    getpid, leave, me = os.getpid, os._exit, os.getpid()
    for line in questions:
        question = serve["loads"](line)
        number = question.pop("question")
        answer = serve[question.pop("do")](module.__dict__, **question)
        if getpid() != me:  # a submission forked and both came back here
            leave(0)
        data = memoryview(b"%d %s\n" % (number, answer if isinstance(answer, bytes) else serve["dumps"](answer).encode()))
        while data:
            data = data[serve["write"](answers, data):]


def load(space, modules):
    """Import large libraries once, before any limit runs: interrupted in the middle they stay broken, and a function
    that imports them itself would do so again in each call's fork."""
    gc.disable()  # there is no garbage yet, and looking for it takes a tenth of the time
    for name in modules:
        try:
            importlib.import_module(name)
        except Exception:
            pass
    if "IPython" in modules and "IPython" in sys.modules:  # its own get_ipython gives None where there is no kernel
        sys.modules["IPython"].get_ipython = sys.modules["IPython.core.getipython"].get_ipython = space["get_ipython"]
    gc.freeze()  # nor will these ever be garbage: no fork needs to look
    gc.enable()
    return {}


def run_cell(space, number, source, seconds):
    """Run one cell for at most ``seconds`` of CPU time; ``{"error": None}`` or the error in words."""
    file = f"<cell {number}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)

    def too_long(*_):
        raise CellTime

    signal.signal(signal.SIGPROF, too_long)
    sys.stdout, sys.stderr = Printed(), Printed()
    error, kind = None, ""
    try:
        try:
            signal.setitimer(signal.ITIMER_PROF, seconds, 0.2)  # again and again: a loop may catch everything
            run(source, file, space)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    except CellTime:
        error, kind = f"did not end within {seconds:g} seconds of CPU time", "time limit"
    except MemoryError:
        error, kind = "needed more memory than it may use", "memory limit"
    except BaseException as raised:
        error, kind = in_words(raised, file), type(raised).__name__
    return {"error": error, "kind": kind}


def run(source, file, space):
    """Run a cell as Jupyter does: with ``await`` at its top, and what it imports from ``__future__`` holds from now on."""
    global future
    code = compile(source, file, "exec", future | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    future |= code.co_flags & FUTURES
    if code.co_flags & inspect.CO_COROUTINE:
        import asyncio
        asyncio.run(eval(code, space))
    else:
        exec(code, space)


def in_words(error, file):
    """The exception and the line of ``file``, or of any cell, that raised it."""
    try:
        text = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else '(no message)'}"[:300]
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith("<cell")]
        mine = [frame for frame in frames if frame.filename == file] or frames
        if mine:
            text += f" (in line {mine[-1].lineno} of the cell: {mine[-1].line})"[:300]
        return text
    except BaseException:
        return "an error that cannot be put into words"


def call(space, name, calls, seconds, clock, value=False):
    """Call a function with each of several lists of arguments, one after the other in one fork, which has ``seconds`` of
    CPU time and ``clock`` seconds in all; with ``value`` give what is called so, and call nothing. Returns JSON, as
    bytes: an answer for each call, the last maybe that the fork was stopped."""
    function = space.get(name)
    if value and name in space:
        function = functools.partial(space.get, name)
    if not callable(function):
        return {"missing": True}
    reader, writer = os.pipe()
    child = fork()
    if child is None:
        return {"stopped": "crashed", "reason": "could not be called: the notebook left too many processes running"}
    if child == 0:
        os.close(reader)
        os.setpgid(0, 0)
        signal.signal(signal.SIGXCPU, signal.SIG_DFL)
        with contextlib.suppress(Exception):  # threads that a cell asked for are not in a fork, which would wait for them
            sys.modules["torch"].set_num_threads(1)
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds), math.ceil(seconds) + 1))
        for args in calls:
            answer = json.dumps(in_the_child(function, args)).encode() + b"\n"
            while answer:
                answer = answer[os.write(writer, answer):]
        os._exit(0)
    os.close(writer)
    answers, stopped = wait_for(reader, len(calls), clock)
    os.close(reader)
    for kill in (os.killpg, os.kill):
        try:
            kill(child, signal.SIGKILL)
        except ProcessLookupError:
            pass
    _, status, cpu = os.wait4(child, 0)
    if stopped:
        if status == signal.SIGXCPU or status == signal.SIGKILL and cpu.ru_utime + cpu.ru_stime >= seconds:
            stopped = {"stopped": "time limit", "reason": f"did not end within {seconds:g} seconds of CPU time"}
        answers.append(json.dumps(stopped).encode())
    return b'{"answers": [' + b", ".join(answers) + b"]}"


def fork():
    """os.fork, or None when there are too many processes and none ends. A busy machine takes a while to end them."""
    for _ in range(150):
        try:
            return os.fork()
        except OSError:
            time.sleep(0.2)
    return None


def wait_for(reader, number, clock):
    """The lines that the fork writes, and what became of it if they are fewer than ``number``, else None."""
    data, end = b"", time.monotonic() + clock
    while data.count(b"\n") < number:
        left = end - time.monotonic()
        if left <= 0 or not select.select([reader], [], [], left)[0]:
            stopped = {"stopped": "time limit", "reason": f"did not end within {clock:g} seconds"}
            break
        part = os.read(reader, 1 << 20)
        data += part
        if not part or len(data) > ANSWER:
            stopped = {"stopped": "crashed", "reason": "gave back far more than was asked for" if part
                       else "ended its own process"}
            break
    else:
        stopped = None
    return data.split(b"\n")[:-1][:number], stopped


def in_the_child(function, args):
    """Call and encode the result: ``value``, or ``error`` with its ``type``; ``printed``; ``changed`` inputs."""
    sys.stdout = printed = Printed()
    try:
        named = args.pop()["named"] if args and "named" in args[-1] else {}
        named = {name: wire.decode(a) for name, a in named.items()}
        mine = [wire.decode(a) for a in args]
        warnings.simplefilter("ignore")  # whatever a cell set: a warning is not an error
        wire.np.seterr(all="ignore")
        value = function(*mine, **named)
        after = [wire.encode(a) for a in mine]
        changed = {str(i): a for i, (a, before) in enumerate(zip(after, args, strict=True)) if a != before}
        answer = {"value": wire.encode(value), "changed": changed}
    except MemoryError:
        answer = {"stopped": "memory limit", "reason": "needed more memory than it may use"}
    except BaseException as error:
        if re.search("not enough memory|can't allocate", f"{error}"[:1000]):  # torch
            answer = {"stopped": "memory limit", "reason": "needed more memory than it may use"}
        else:
            answer = {"error": in_words(error, getattr(getattr(function, "__code__", None), "co_filename", "")),
                      "type": type(error).__name__}
    try:
        answer["printed"] = printed.getvalue()
    except BaseException:
        pass
    return answer


if __name__ == "__main__":
    main()
