"""Start a process that can see, reach and use up as little as possible, and talk to it in lines of JSON.

bubblewrap gives it its own namespaces: no network, no other processes, a read-only system, and nothing of the
course but the helpers without this package. Limits keep it from using up the machine.
"""

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
MOST_ANSWER = 25_000_000  # bytes of one line from the sandbox
ORDINARY_UID = 61_234  # whom root becomes: RLIMIT_NPROC does nothing for root
SPACE = str(64 * 2**20)  # bytes of each private folder


@dataclass(frozen=True)
class Limits:
    """What one submission may use. A cell and a call may use so many seconds of CPU time, so that a busy machine costs
    nobody points, and ``patience`` times as many, and ten, by the clock."""

    cell_seconds: float = 20.0
    call_seconds: float = 5.0
    total_seconds: float = 300.0  # of everything, by the clock
    patience: float = 2.0
    memory: int = 2**31  # bytes of address space for each process
    processes: int = 32
    file_size: int = 16 * 2**20

    def clock(self, seconds):
        return self.patience * seconds + 10


class NoSandbox(RuntimeError):
    """No sandbox can be had here; the message says why and what to do."""


class Stopped(Exception):
    """The sandboxed process did not answer. ``status``: "time limit" or "crashed"; ``reason`` in words."""

    def __init__(self, status, reason):
        super().__init__(reason)
        self.status, self.reason = status, reason


@cache
def problem():
    """Why there is no sandbox on this machine, or None when it works."""
    if not sys.platform.startswith("linux"):
        return "The sandbox needs Linux (on Windows use WSL, on macOS a virtual machine)."
    if not shutil.which("bwrap"):
        return "The sandbox needs the program bubblewrap: on Debian and Ubuntu `sudo apt install bubblewrap`."
    try:
        tried = subprocess.run(_command([sys.executable, "-S", "-c", "print('works')"]), capture_output=True,
                               text=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        return f"bubblewrap cannot start here: {error}."
    if tried.stdout.strip() == "works":
        return None
    said = (tried.stderr.strip().splitlines() or ["it said nothing"])[-1]
    return (f"bubblewrap is installed but may not make a sandbox here ({said}). Ubuntu's AppArmor and Docker's default "
            "profile forbid it: docs/teaching.md says what to do.")


def _shown():
    """The folders and files of this machine that a submission may see: {path inside: path outside}."""
    environment = {sys.prefix, sys.base_prefix, os.path.realpath(sys.base_prefix)}
    shown = {path: path for path in sorted(environment) if not path.startswith("/usr/") and path != "/usr"}
    shown |= {"/course/helpers": str(ROOT / "helpers"), "/course/data": str(ROOT / "data"),
              "/grader/worker.py": str(HERE / "worker.py"), "/grader/wire.py": str(HERE / "wire.py")}
    for fonts in Path.home().glob(".cache/matplotlib/fontlist-*.json"):  # or each sandbox searches for fonts again
        shown[f"/tmp/{fonts.name}"] = str(fonts)
    return shown


def _command(program):
    """The command line that runs ``program`` in the sandbox."""
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
    inner += ["--proc", "/proc", "--dev", "/dev"]
    for folder in ("/dev/shm", "/tmp", "/work"):  # before an environment that lies below one of them
        inner += ["--size", SPACE, "--tmpfs", folder]
    for inside, outside in shown.items():
        inner += ["--ro-bind", outside, inside]
    inner += ["--tmpfs", "/course/helpers/classroom", "--remount-ro", "/course/helpers/classroom",
              "--dir", "/work/home", "--remount-ro", "/", "--chdir", "/work/home"]
    for name, value in _variables("/work/home").items():
        inner += ["--setenv", name, value]
    return [*outer, *inner, *program]


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
        self.home = None
        if trusted:
            if os.name != "posix":
                raise NoSandbox("Submissions cannot be run on Windows itself, not even without a sandbox: use WSL.")
            self.home = tempfile.mkdtemp(prefix="submission-")
            command = [sys.executable, str(HERE / "worker.py"), json.dumps(most)]
            variables = {**_variables(self.home), "PYTHONPATH": str(ROOT), "TMPDIR": self.home, "MPLCONFIGDIR": self.home}
        else:
            if problem():
                raise NoSandbox(problem())
            most["NPROC"] = limits.processes
            command = _command([sys.executable, "/grader/worker.py", json.dumps(most)])
            variables = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin"}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=self.home or "/",
                                        stderr=subprocess.DEVNULL, env=variables, start_new_session=True, bufsize=0)
        os.set_blocking(self.process.stdin.fileno(), False)
        self.rest, self.asked = b"", 0

    def ask(self, question, seconds):
        """Send a JSON-able question; the answer, a dict. Raises Stopped after ``seconds`` or when the process is gone."""
        end = time.monotonic() + seconds
        self.asked += 1
        data = memoryview(json.dumps({**question, "question": self.asked}).encode() + b"\n")
        source, target = self.process.stdout.fileno(), self.process.stdin.fileno()
        parts, size = [self.rest], 0
        while b"\n" not in parts[-1]:
            left = end - time.monotonic()
            ready, writable, _ = select.select([source], [target] if data else [], [], max(0, left))
            if left <= 0:
                raise Stopped("time limit", f"did not end within {seconds:g} seconds")
            try:
                if writable:
                    data = data[os.write(target, data[:65536]):]
                if ready:
                    parts.append(os.read(source, 1 << 20))
                    size += len(parts[-1])
            except OSError:
                parts.append(b"")
            if ready and not parts[-1]:
                raise Stopped("crashed", self._how_it_ended())
            if size > MOST_ANSWER:
                raise Stopped("crashed", "sent far more than was asked for")
        line, _, self.rest = b"".join(parts).partition(b"\n")
        number, _, line = line.partition(b" ")
        try:
            answer = json.loads(line) if number == b"%d" % self.asked else None
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise Stopped("crashed", "sent something that is no answer")
        return answer

    def _how_it_ended(self):
        try:
            code = self.process.wait(2)
        except subprocess.TimeoutExpired:
            return "closed its connection"
        signal = code - 128 if code > 128 else -code if code < 0 else 0
        names = {9: "was killed (SIGKILL), by itself or for using too much", 11: "crashed (segmentation fault)",
                 24: "used too much CPU time", 6: "aborted"}
        return names.get(signal, f"was ended by signal {signal}") if signal else f"ended its own process (exit code {code})"

    def close(self):
        """Kill the whole group and everything in its namespaces."""
        import signal
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        if self.home:
            shutil.rmtree(self.home, ignore_errors=True)
