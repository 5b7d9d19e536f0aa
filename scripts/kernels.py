"""Kernels that start warm: each is forked from a process that has imported what notebooks import.

A kernel of its own spends about six CPU-seconds on importing torch and matplotlib before its first cell runs, and
`make test` starts more than fifty. A fork has them at once, and nothing of one kernel reaches another. What it cannot
have is a hash seed of its own: the order of sets is that of its parent, which is another one in each run of pytest.
`make stability` starts every kernel afresh (pytest's option --fresh-kernels), where only another draw of the jitter is
not the matter.
"""

import contextlib
import functools
import gc
import importlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from multiprocessing import connection

LAUNCHER = ["-m", "ipykernel_launcher"]
LIGHT = ("ipykernel.kernelapp", "ipykernel.debugger", "IPython.core.completerlib", "IPython.extensions.storemagic",
         "matplotlib.pyplot", "matplotlib_inline.backend_inline", "PIL.JpegImagePlugin", "ipywidgets", "tqdm.auto")
HEAVY = (*LIGHT, "torch", "scipy.stats")
MODELS = (*HEAVY, "transformers.models.bert.modeling_bert", "transformers.models.llama.modeling_llama")
STEPS = (MODELS, HEAVY, LIGHT)  # each begins with the next: its process is forked from that of the next and imports the rest
POSSIBLE = sys.platform == "linux"  # macOS has fork as well, but its own libraries do not survive it
SHARED = "ATTENTION_COURSE_KERNELS"  # an environment variable: where a process that shares its parents listens
_parents, _asking = [], threading.Lock()


def modules_for(path):
    """What the kernel of a notebook may find imported; lessons 00-05 promise a figure before torch is there, and 13 and 16
    (with 09, which takes as much of torch) compare with models of the library transformers."""
    number, folder = path.name[:2], path.parent.name
    if number in ("13", "16") and folder != "solutions" or number == "09" and folder == "notebooks":
        return MODELS
    return LIGHT if re.match("0[0-5]", number) and folder == "notebooks" else HEAVY


class Parent:
    """A process that forks kernels. It answers one request a line: start a kernel, say how one ended, or fork a process like
    itself that imports more. Where ``modules`` begin with a step of STEPS, it is itself forked from that step's."""

    def __init__(self, modules):
        self.channel, theirs = socket.socketpair()
        step = next((step for step in STEPS if modules[:len(step)] == step != modules), None)
        with theirs:
            self.process = parent_with(step).forked(theirs, modules[len(step):]) if step else subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno()), *modules], pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
                env={**os.environ, "MPLBACKEND": "module://matplotlib_inline.backend_inline"})  # which kernels set too late
        self.lines = self.channel.makefile("rw")
        self.turn = threading.Lock()
        _parents.append(self)

    def forked(self, channel, modules):
        """A process forked from this one that has imported ``modules`` as well and answers at the socket ``channel``."""
        with self.turn:
            self._told(modules=modules)  # now it waits for the socket
            socket.send_fds(self.channel, [b" "], [channel.fileno()])
            return Forked(self, json.loads(self.lines.readline()))

    def _told(self, **request):
        print(json.dumps(request), file=self.lines, flush=True)
        return json.loads(self.lines.readline())

    def ask(self, **request):
        """Its answer to one request. Raises RuntimeError if it has ended."""
        try:
            with self.turn:
                return self._told(**request)
        except (OSError, ValueError):
            raise RuntimeError(f"the process that forks kernels has ended ({self.process.poll()}): with --fresh-kernels "
                               "pytest does without it") from None

    def end(self):
        self.lines.close()
        self.channel.close()
        self.process.wait()


class Forked:
    """A forked process, in the words of subprocess.Popen that jupyter_client uses."""

    stdin = stdout = stderr = None

    def __init__(self, parent, pid):
        self.parent, self.pid, self.returncode = parent, pid, None

    def poll(self):
        if self.returncode is None:
            self.returncode = self.parent.ask(poll=self.pid)
        return self.returncode

    def wait(self, timeout=None):
        end = time.monotonic() + (float("inf") if timeout is None else timeout)
        while self.poll() is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired("a forked kernel", timeout)
            time.sleep(0.01)
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def kill(self):
        self.send_signal(signal.SIGKILL)


parent_with = functools.cache(Parent)


def share():
    """From now on the processes that this one starts, such as pytest's workers, ask here for kernels: the modules are
    imported once for all of them."""
    listener = connection.Listener(None, "AF_UNIX")  # in a folder of this user's own
    os.environ[SHARED] = listener.address
    threading.Thread(target=_listen, args=(listener,), daemon=True).start()


def _listen(listener):
    while True:
        threading.Thread(target=_answer, args=(listener.accept(),), daemon=True).start()


def _answer(line):
    with line:
        modules, request = line.recv()
        try:
            with _asking:
                parent = parent_with(modules)
            line.send(parent.ask(**request))
        except RuntimeError as error:
            line.send(error)


class Shared:
    """The ``Parent`` with these modules of the process that shares its own."""

    def __init__(self, modules):
        self.modules = modules

    def ask(self, **request):
        with connection.Client(os.environ[SHARED]) as line:
            line.send((self.modules, request))
            answer = line.recv()
        if isinstance(answer, RuntimeError):
            raise answer
        return answer


@contextlib.contextmanager
def warm(modules):
    """Whatever kernel jupyter_client starts in the body is forked from a process that has imported ``modules``."""
    from jupyter_client.provisioning import local_provisioner

    afresh = local_provisioner.launch_kernel

    def launch(cmd, cwd=None, env=None, **how):
        if cmd[0] != sys.executable or LAUNCHER[1] not in cmd:
            return afresh(cmd, cwd=cwd, env=env, **how)
        parent = Shared(modules) if os.environ.get(SHARED) else parent_with(modules)
        return Forked(parent, parent.ask(arguments=cmd[cmd.index(LAUNCHER[1]) + 1:], cwd=str(cwd or os.getcwd()),
                                         env=dict(env or os.environ)))

    local_provisioner.launch_kernel = launch
    try:
        yield
    finally:
        local_provisioner.launch_kernel = afresh


def end():
    """End the processes that fork kernels, and the kernels that are left."""
    while _parents:
        _parents.pop().end()  # the newest first: what it was forked from hears how it ended
    parent_with.cache_clear()


# The process itself

def serve(channel, lines):
    """Fork a process for each request. In the new one, return the request; at the end of the requests None."""
    children = set()
    for request in map(json.loads, lines):
        if "poll" in request:
            ended, status = os.waitpid(request["poll"], os.WNOHANG)
            children.discard(ended)
            answer = os.waitstatus_to_exitcode(status) if ended else None
        else:
            if "modules" in request:
                print("null", file=lines, flush=True)
                request["channel"] = socket.recv_fds(channel, 1, 1)[1][0]
            answer = os.fork()
            if not answer:
                os.setpgid(0, 0)
                return request
            os.setpgid(answer, answer)  # before the answer: signals are sent to the kernel's group
            children.add(answer)
            if "channel" in request:
                os.close(request["channel"])
        print(json.dumps(answer), file=lines, flush=True)
    for child in children:
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)


def prepared(modules, channel):
    """Import the modules and serve at the socket whose number is ``channel``; returns what `serve` does."""
    for name in modules:
        importlib.import_module(name)
    if len(os.listdir("/proc/self/task")) > 1:
        raise SystemExit("Something imported has started a thread, which a fork would lack.")
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=channel) as both, both.makefile("rw") as lines:
        return serve(both, lines)


def main(channel, *modules):
    del sys.path[0]  # the folder of this file, which no kernel has
    request = {"modules": modules, "channel": int(channel)}
    while request and "modules" in request:
        request = prepared(**request)
    if request:
        os.chdir(request["cwd"])
        os.environ.clear()
        os.environ.update(request["env"])
        if "numpy.random" in sys.modules:  # or unseeded numbers would be the same in every fork
            sys.modules["numpy.random"].seed()
        # It ends with its parent, which is this process's and not the one that jupyter_client names.
        sys.argv = [LAUNCHER[1], *request["arguments"], f"--IPKernelApp.parent_handle={os.getppid()}"]
        sys.modules["ipykernel.kernelapp"].launch_new_instance()


if __name__ == "__main__":
    main(*sys.argv[1:])
