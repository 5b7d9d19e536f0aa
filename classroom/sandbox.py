"""Start a process that can see, reach and use up as little as possible, and talk to it in lines of JSON.

bubblewrap gives it its own namespaces: no network, no other processes, a read-only system, and nothing of the
course but the helpers. Limits keep it from using up the machine.
"""

import json
import os
import platform
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HERE = Path(__file__).resolve().parent
MOST_ANSWER = 9_000_000  # bytes of one line from the sandbox
ORDINARY_UID = 61_234  # whom root becomes: RLIMIT_NPROC does nothing for root
SPACE = str(64 * 2**20)  # bytes of each private folder
LOOK = 0.25  # seconds between two looks at what all processes of a sandbox use
# Calls to the kernel that no notebook needs: memory that no limit counts, and doors through which others got out.
# Written by hand, because libseccomp's bindings are compiled by the system's packager or, on PyPI, not kept any more.
# memfd_create, memfd_secret, shmget, semget, msgget, mq_open, io_uring_setup, userfaultfd, bpf, perf_event_open, add_key,
# request_key, keyctl; what reaches into another process, such as the one that holds the sandbox together: ptrace,
# process_vm_readv, process_vm_writev, pidfd_getfd. Before them the number of the architecture.
REFUSED = {"x86_64": (0xC000003E, 319, 447, 29, 64, 68, 240, 425, 323, 321, 298, 248, 249, 250, 101, 310, 311, 438),
           "aarch64": (0xC00000B7, 279, 447, 194, 190, 186, 180, 425, 282, 280, 241, 217, 218, 219, 117, 270, 271, 438)}
# Sockets are made by two calls, socket and socketpair, and are of these families alone: AF_UNIX, AF_INET, AF_INET6, which
# lead nowhere in a network of one's own. An AF_VSOCK leads out of it, to the host of a virtual machine.
SOCKETS, FAMILIES = {"x86_64": (41, 53), "aarch64": (198, 199)}, (1, 2, 10)


@dataclass(frozen=True)
class Limits:
    """What one submission may use. A cell and a call may use so many seconds of CPU time, so that a busy machine costs
    nobody points, and ``patience`` times as many, and ten, by the clock."""

    cell_seconds: float = 20.0
    call_seconds: float = 5.0
    total_seconds: float = 300.0  # of everything, by the clock
    patience: float = 2.0
    memory: int = 2**31  # bytes of address space for each process
    together: int = 2**32  # bytes of memory in use by all of them
    processes: int = 32
    file_size: int = 16 * 2**20

    def clock(self, seconds):
        return self.patience * seconds + 10


class NoSandbox(RuntimeError):
    """There is no sandbox here; the message says why and what to do."""


class Slow(BaseException):
    """What was to end within some seconds did not."""


@contextmanager
def limited(memory, seconds=None):
    """Meanwhile this process may use so many bytes of address space, and seconds of CPU time, more. Beyond that the kernel
    refuses the memory, a MemoryError, or ends the process. What it starts may set itself other limits. Where the system has
    no such limits, there are none."""
    if not sys.platform.startswith("linux"):
        yield
        return
    import resource
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = {resource.RLIMIT_AS: pages * resource.getpagesize() + memory}
    if seconds is not None:
        most |= {resource.RLIMIT_CPU: int(time.process_time() + seconds) + 1, resource.RLIMIT_CORE: 0}
    before = {limit: resource.getrlimit(limit) for limit in most}
    try:
        for limit, number in most.items():
            soft, hard = before[limit]
            resource.setrlimit(limit, (number if soft == resource.RLIM_INFINITY else min(number, soft), hard))
        yield
    finally:
        for limit, both in before.items():
            resource.setrlimit(limit, both)


@contextmanager
def at_most(seconds):
    """Raises Slow where what is inside computes for longer. Only a main thread can be interrupted, and on POSIX systems."""
    def stop(*_):
        raise Slow

    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGPROF, stop)
    try:
        signal.setitimer(signal.ITIMER_PROF, seconds)
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


class SandboxStopped(Exception):
    """The sandboxed process did not answer. ``status``: "time limit", "memory limit" or "crashed"; ``reason`` in words."""

    def __init__(self, status, reason):
        super().__init__(reason)
        self.status, self.reason = status, reason


@cache
def problem():
    """Why there is no sandbox on this machine, or None when it works."""
    if not sys.platform.startswith("linux"):
        return "The sandbox needs Linux (on Windows use WSL, on macOS a virtual machine)."
    if platform.machine() not in REFUSED:
        return (f"The sandbox refuses dangerous calls to the kernel by their numbers, which it knows for the processors "
                f"{' and '.join(REFUSED)} but not for this one, {platform.machine()}: grade on another machine.")
    if not shutil.which("bwrap"):
        return "The sandbox needs the program bubblewrap: on Debian and Ubuntu `sudo apt install bubblewrap`."
    code = f"import os, resource; resource.setrlimit(resource.RLIMIT_NPROC, ({Limits.processes},) * 2)\n" \
           "print('works' if os.fork() else '', end='', flush=True)"
    try:
        with _rules() as rules:
            tried = subprocess.run(_command([sys.executable, "-S", "-c", code], rules), capture_output=True, text=True,
                                   timeout=60, pass_fds=[rules])
    except (OSError, subprocess.SubprocessError) as error:
        return f"bubblewrap cannot start here: {error}."
    if tried.stdout.strip() == "works":
        return None
    if "BlockingIOError" in tried.stderr:
        return "This kernel counts all your processes against a sandbox's limit: Linux 5.14 or newer is needed."
    last_line = (tried.stderr.strip().splitlines() or ["it said nothing"])[-1]
    return (f"bubblewrap is installed but may not make a sandbox here ({last_line}). Ubuntu's AppArmor and Docker's default "
            "profile forbid it: docs/teaching.md says what to do.")


@contextmanager
def _rules():
    """The descriptor of a file that tells the kernel to refuse what REFUSED lists, and sockets of other families."""
    architecture, *numbers = REFUSED[platform.machine()]
    load, equal, at_least, answer = 0x20, 0x15, 0x35, 0x06
    allowed, error = 0x7FFF0000, 0x00050000
    program = [(load, 4), (equal, architecture, "", "no call"),  # another architecture is refused
               (load, 0), (at_least, 1 << 30, "no call", ""),  # the number of the call; x86's third set of numbers
               *((equal, number, "no call", "") for number in numbers),
               *((equal, number, "a socket", "") for number in SOCKETS[platform.machine()]), (answer, allowed),
               "a socket", (load, 16), *((equal, family, "allowed", "") for family in FAMILIES), (answer, error | 97),
               "no call", (answer, error | 38), "allowed", (answer, allowed)]
    lines = [line for line in program if not isinstance(line, str)]
    places = {line: sum(not isinstance(before, str) for before in program[:i])  # a jump counts from the line after it
              for i, line in enumerate(program) if isinstance(line, str)}
    rules = [(code, *(places[to] - here - 1 if to else 0 for to in jumps or ("", "")), value)
             for here, (code, value, *jumps) in enumerate(lines)]
    reader, writer = os.pipe()
    try:
        os.write(writer, b"".join(struct.pack("=HBBI", *line) for line in rules))
        os.close(writer)
        yield reader
    finally:
        os.close(reader)


def _shown():
    """The folders and files of this machine that a submission may see: {path inside: path outside}."""
    environment = {sys.prefix, sys.base_prefix, os.path.realpath(sys.base_prefix)}
    shown = {path: path for path in sorted(environment) if not path.startswith("/usr/") and path != "/usr"}
    shown |= {"/course/helpers": str(ROOT / "helpers"), "/course/data": str(ROOT / "data"),
              "/grader/worker.py": str(HERE / "worker.py"), "/grader/wire.py": str(HERE / "wire.py")}
    for fonts in Path(os.path.expanduser("~")).glob(".cache/matplotlib/fontlist-*.json"):  # or each searches for fonts again
        shown[f"/tmp/{fonts.name}"] = str(fonts)
    return shown


def _command(program, rules):
    """The command line that runs ``program`` in the sandbox, with what ``_rules`` gave."""
    shown, outer = _shown(), []
    if os.getuid() == 0:  # become an ordinary user first, who may not be able to reach the folders: show them in /mnt
        outer = ["bwrap", "--dev-bind", "/", "/", "--perms", "0755", "--tmpfs", "/mnt"]
        for number, (inside, outside) in enumerate(shown.items()):
            outer += ["--ro-bind", outside, f"/mnt/{number}"]
            shown[inside] = f"/mnt/{number}"
        outer += ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID",
                  "--unshare-pid", "--die-with-parent",  # whatever the grader dies of, nothing is left running
                  "setpriv", f"--reuid={ORDINARY_UID}", f"--regid={ORDINARY_UID}", "--clear-groups", "--inh-caps=-all"]
    inner = ["bwrap", "--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session",
             "--cap-drop", "ALL", "--uid", "65534", "--gid", "65534", "--hostname", "sandbox", "--clearenv",
             "--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64"):
        if os.path.islink("/" + name):
            inner += ["--symlink", os.readlink("/" + name), "/" + name]
        elif os.path.isdir("/" + name):
            inner += ["--ro-bind", "/" + name, "/" + name]
    if os.path.exists("/etc/ld.so.cache"):
        inner += ["--ro-bind", "/etc/ld.so.cache", "/etc/ld.so.cache"]
    inner += ["--proc", "/proc", "--dev", "/dev", "--ro-bind", "/dev/null", "/proc/1/mem"]
    for folder in ("/dev/shm", "/tmp", "/work"):  # before an environment that lies below one of them
        inner += ["--size", SPACE, "--tmpfs", folder]
    for inside, outside in shown.items():
        inner += ["--ro-bind", outside, inside]
    inner += ["--tmpfs", "/course/classroom", "--remount-ro", "/course/classroom",
              "--dir", "/work/home", "--remount-ro", "/", "--chdir", "/work/home"]
    for name, value in _variables("/work/home").items():
        inner += ["--setenv", name, value]
    return [*outer, *inner, "--seccomp", str(rules), *program]


def _variables(home):
    return {"HOME": home, "TMPDIR": "/tmp", "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONPATH": "/course",
            "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
            "ATTENTION_COURSE_PROGRESS": "off", "MPLBACKEND": "Agg", "MPLCONFIGDIR": "/tmp", "IPYTHONDIR": "/tmp"}


class Sandbox:
    """One worker process. ``ask`` sends a question and waits for the answer; ``close`` ends the whole group.

    ``trusted=True`` runs without a sandbox, for a person who trusts every student. Raises NoSandbox.
    """

    def __init__(self, limits, trusted=False):
        most = {"AS": limits.memory, "CPU": int(limits.total_seconds), "FSIZE": limits.file_size, "CORE": 0,
                "NOFILE": 256}
        self.home, self.limits = None, limits
        if trusted:
            if os.name != "posix":
                raise NoSandbox("Submissions cannot be run on Windows itself, not even without a sandbox: use WSL.")
            if sys.platform == "darwin":  # which may refuse to set it
                del most["AS"]
            self.home = tempfile.mkdtemp(prefix="submission-")
            variables = {**_variables(self.home), "PYTHONPATH": str(ROOT), "TMPDIR": self.home, "MPLCONFIGDIR": self.home}
            self._start([sys.executable, str(HERE / "worker.py"), json.dumps(most)], variables)
        else:
            if problem():
                raise NoSandbox(problem())
            most["NPROC"] = limits.processes
            with _rules() as rules:
                command = _command([sys.executable, "/grader/worker.py", json.dumps(most)], rules)
                self._start(command, {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin"}, [rules])
        os.set_blocking(self.process.stdin.fileno(), False)
        self.rest, self.asked = b"", 0

    def _start(self, command, variables, rules=()):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=self.home or "/",
                                        stderr=subprocess.DEVNULL, env=variables, start_new_session=True, bufsize=0,
                                        pass_fds=rules)

    def used(self):
        """Bytes of memory that all its processes use now, and seconds of CPU time that they and those that ended have
        used: the kernel's figures, whatever the submission says. Zeros where there is no /proc."""
        memory, ticks, queue = 0, 0, [str(self.process.pid)] if self.process.returncode is None else []
        while queue:
            here = Path("/proc") / queue.pop()
            try:
                for thread in os.listdir(here / "task"):
                    queue += (here / "task" / thread / "children").read_text().split()
                ticks += sum(map(int, (here / "stat").read_text().rpartition(")")[2].split()[11:15]))
                for line in (here / "status").read_text().splitlines():
                    if line.startswith(("RssAnon:", "RssShmem:")):
                        memory += int(line.split()[1]) * 1024
            except (OSError, ValueError):  # it has just ended
                continue
        return memory, ticks / os.sysconf("SC_CLK_TCK")

    def _look(self, before, allowed):
        """Stop a submission whose processes use too much together. Returns their CPU time."""
        memory, cpu = self.used()
        if memory > self.limits.together:
            most = f"{self.limits.together / 2**30:.3g} GiB"
            raise SandboxStopped("memory limit", f"used more than {most} in its processes together")
        if cpu > self.limits.total_seconds or allowed and before is not None and cpu - before > self.limits.clock(allowed):
            raise SandboxStopped("time limit", "used too much CPU time in its processes together")
        return cpu

    def ask(self, question, seconds, cpu=None, most=MOST_ANSWER):
        """Send a JSON-able question; the answer, a dict. Raises SandboxStopped after ``seconds``, or when the process is
        gone, or when the answer has more than ``most`` bytes, or when all its processes together use too much memory, or
        far more CPU time than ``cpu`` seconds."""
        end = time.monotonic() + seconds
        look, before = time.monotonic() + LOOK, None
        self.asked += 1
        data = memoryview(json.dumps({**question, "question": self.asked}).encode() + b"\n")
        source, target = self.process.stdout.fileno(), self.process.stdin.fileno()
        parts, size = [self.rest], 0
        while b"\n" not in parts[-1]:
            left = end - time.monotonic()
            ready, writable, _ = select.select([source], [target] if data else [], [], max(0, min(left, LOOK)))
            if left <= 0:
                raise SandboxStopped("time limit", f"did not end within {seconds:g} seconds")
            if time.monotonic() > look:
                spent = self._look(before, cpu)
                look, before = time.monotonic() + LOOK, spent if before is None else before
            try:
                if writable:
                    data = data[os.write(target, data[:65536]):]
                if ready:
                    parts.append(os.read(source, 1 << 20))
                    size += len(parts[-1])
            except OSError:
                parts.append(b"")
            if ready and not parts[-1]:
                raise SandboxStopped("crashed", self._how_it_ended())
            if size > MOST_ANSWER:
                raise SandboxStopped("crashed", "sent far more than was asked for")
        line, _, self.rest = b"".join(parts).partition(b"\n")
        number, _, line = line.partition(b" ")
        try:
            answer = json.loads(line) if number == b"%d" % self.asked and len(line) <= most else None
        except (ValueError, RecursionError, MemoryError):
            answer = None
        if not isinstance(answer, dict):
            raise SandboxStopped("crashed", "sent something that cannot be read as an answer")
        return answer

    def _how_it_ended(self):
        try:
            code = self.process.wait(5 * self.limits.patience)
        except subprocess.TimeoutExpired:
            return "closed its connection"
        number = code - 128 if code > 128 else -code if code < 0 else 0
        names = {9: "was killed (SIGKILL), by itself or for using too much", 11: "crashed (segmentation fault)",
                 24: "used too much CPU time", 6: "aborted"}
        return names.get(number, f"was ended by signal {number}") if number else f"ended its own process (exit code {code})"

    def close(self):
        """Kill the whole group and everything in its namespaces."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        if self.home:
            shutil.rmtree(self.home, ignore_errors=True)
