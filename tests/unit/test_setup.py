"""The set-up: what a person meets before the first lesson, and each way in which it can fail."""

import ast
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import yaml

import helpers
from helpers.minilm import MINILM
from helpers.store.files import locked
from helpers.tokens import SMOLLM2
from scripts import verbs

try:
    import tomllib
except ImportError:  # before Python 3.11
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "environment.py"
LISTS = ("pyproject.toml", "constraints.txt", "environment.yml", "README.md", "LICENSE")
BIN = "Scripts/python.exe" if os.name == "nt" else "bin/python"
PIP = re.compile(r"^ {6}- (.+)$", re.MULTILINE)  # a line of environment.yml's pip section


@pytest.fixture
def course(tmp_path):
    """A copy of what the set-up needs, in a folder whose name has a space."""
    folder = tmp_path / "the course"
    ignore = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints")
    for name in ("helpers", "scripts"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignore)
    for name in (*LISTS, "Makefile"):
        shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.fixture
def script(course, monkeypatch):
    """setup.py of that copy as a module; it changes the working directory."""
    monkeypatch.chdir(course)
    spec = importlib.util.spec_from_file_location("setup_under_test", course / "scripts" / "setup.py")
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

def test_the_script_keeps_to_old_syntax(script):
    source = SCRIPT.read_bytes().decode("ascii")  # Python 2 refuses anything else without a declaration
    tree = ast.parse(source, feature_version=(3, 4))
    assert not any(isinstance(node, ast.JoinedStr) for node in ast.walk(tree))
    assert f"sys.version_info < {script.OLDEST}" in source and "Python {}.{} or newer".format(*script.OLDEST) in source


def make(*arguments, **changes):
    if not shutil.which("make"):
        pytest.skip("there is no make here")
    return subprocess.run(["make", *arguments], cwd=ROOT, env=environment(**changes), capture_output=True, text=True)


def test_make_alone_lists_the_verbs():
    listed = make()
    assert listed.returncode == 0 and listed.stderr == ""
    for verb in ("setup", "lab", "handout", "check", "test", "weekly", "execute", "stability", "lint", "book", "clean"):
        assert re.search(rf"^  {verb} +\S.{{10,}}$", listed.stdout, re.MULTILINE), listed.stdout


def test_the_verbs_of_the_set_up_are_those_that_can_be_done(script):
    assert set(script.EXTRAS) == {"setup", *verbs.VERBS, *verbs.MODULES}
    called = set(re.findall(r"\$\(RUN\) (\w+)", (ROOT / "Makefile").read_text()))
    assert called == set(script.EXTRAS)
    for extras in script.EXTRAS.values():
        assert set(extras.split()) <= set(requirements())
    assert all(importlib.util.find_spec(module) for module in verbs.MODULES.values())


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
    assert not script.VENV.exists()


@pytest.mark.parametrize("number, words", [("EACCES", "cannot be written"), ("EROFS", "cannot be written"),
                                           ("ENOSPC", "disk is full"), ("EIO", "set-up stopped")])
def test_a_folder_that_refuses_says_so(script, monkeypatch, capsys, number, words):
    def refuse(path, *mode):
        raise OSError(getattr(script.errno, number), "refused", path)
    monkeypatch.setattr(script.os, "mkdir", refuse)
    assert script.main(["lab"]) == 1
    assert words in one_sentence(capsys.readouterr().err)


def test_an_unknown_verb_says_so(script, capsys):
    assert script.main(["labb"]) == 1 and script.main([]) == 1
    assert "execute|experiments|handout|lab|lint|setup|slides|stability|test|weekly" in capsys.readouterr().err


@pytest.mark.parametrize("words, meaning", [
    ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "disk is full"),
    ("  cause: There is not enough space on the disk. (os error 112)", "disk is full"),
    ("ERROR: ResolutionImpossible: for help visit", "contradicts"),
    ("ERROR: No matching distribution found for torch==2", "64-bit Linux"),
    ("ERROR: ResolutionImpossible\nNewConnectionError: failed", "could not be reached"),
    ("error: Failed to fetch: ...\n  cause: client error\n  cause: invalid peer certificate: UnknownIssuer", "certificate"),
    ("error: No solution found\n\nhint: Packages were unavailable because the network was disabled.", "not be reached"),
    ("  cause: failed to create file: Access is denied. (os error 5)", "folder of your own"),
    ("ERROR: something new", "could not be installed"),
])
def test_an_installers_words_become_one_sentence(script, tmp_path, monkeypatch, words, meaning):
    monkeypatch.setattr(script, "LOG", tmp_path / "log")
    with pytest.raises(script.Stop) as told:
        script.install([sys.executable, "-c", f"print({words!r})\nraise SystemExit(1)"], dict(os.environ))
    assert meaning in one_sentence(str(told.value)) and words.splitlines()[0] in script.LOG.read_text()


def test_what_pip_is_configured_with_reaches_uv(script, tmp_path, monkeypatch):
    """From a file, from variables, which count more, and from uv's own variables, which count most."""
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(script, "PYTHON", Path(sys.executable))
    (tmp_path / "pip.conf").write_text(f"[global]\nfind-links = {tmp_path}/missing\n    {tmp_path}\nno-index = true\n"
                                       "[install]\nconstraint = caps.txt\nproxy = other.example:8080\n")
    settings = {"CONFIG_FILE": str(tmp_path / "pip.conf"), "INDEX_URL": "https://mirror.example/simple",
                "EXTRA_INDEX_URL": "https://a.example https://b.example", "TRUSTED_HOST": "mirror.example",
                "CERT": "/etc/own.pem", "PROXY": "proxy.example:3128", "CONSTRAINT": "", "DEFAULT_TIMEOUT": "180"}
    for name, value in settings.items():
        monkeypatch.setenv("PIP_" + name, value)
    options, seen = script.for_uv()
    assert options == ["--no-index"]
    wanted = {"UV_DEFAULT_INDEX": settings["INDEX_URL"], "UV_INDEX": settings["EXTRA_INDEX_URL"],
              "ALL_PROXY": settings["PROXY"], "UV_INSECURE_HOST": "mirror.example", "SSL_CERT_FILE": "/etc/own.pem",
              "UV_HTTP_TIMEOUT": "180", "UV_FIND_LINKS": str(tmp_path), "UV_CONSTRAINT": "caps.txt",
              "UV_INDEX_STRATEGY": "unsafe-best-match"}
    assert {name: seen[name] for name in wanted} == wanted
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://other.example")
    assert script.for_uv()[1]["UV_DEFAULT_INDEX"] == "https://other.example"


GPU = "Would install 3 packages\n + numpy==2.4\n + nvidia-cublas==13.1\n + torch==2.1\n"


@pytest.mark.parametrize("plain, reachable, tries, options, told", [
    (GPU, True, 2, ["--torch-backend=cpu"], ""),
    (GPU, False, 2, [], "several GB"),
    (GPU.replace("nvidia", "not-nvidia"), True, 1, [], ""),  # macOS, Windows, a folder of wheels: nothing to avoid
])
def test_torchs_cpu_build_is_taken_where_another_comes(script, monkeypatch, capsys, plain, reachable, tries, options, told):
    tried = []

    def uv(what):
        tried.append(what)
        if "--torch-backend=cpu" in what and not reachable:
            raise script.Stop("no")
        return plain
    monkeypatch.setattr(script, "uv", uv)
    assert script.torch_build(["-e", "."]) == options
    assert len(tried) == tries and all("--dry-run" in what and what[-2:] == ["-e", "."] for what in tried)
    said = capsys.readouterr().out
    assert told in one_sentence(said) if told else not said


# The second run

def bare(script):
    """In the place of make_bare: this Python, pip and all."""
    if os.name == "nt":
        pytest.skip("needs links to programs")
    script.PYTHON.parent.mkdir(parents=True)
    script.PYTHON.symlink_to(sys.executable)


def pretend_it_is_installed(script, extras=("maintain",)):
    bare(script)
    script.COMPLETE.write_text("\n".join([str(script.ROOT), script.fingerprint(), " ".join(extras), ""]))


@pytest.fixture
def installed(script, monkeypatch):
    """What pip and uv are called for, which is not done."""
    called = []
    monkeypatch.setattr(script, "install", lambda command, seen: called.append(" ".join(map(str, command[1:]))) or "")
    monkeypatch.setattr(script, "for_uv", lambda: ([], {}))
    return called


def test_a_second_run_installs_nothing(script, installed, capsys):
    pretend_it_is_installed(script)
    script.prepare([])
    script.prepare(["maintain"])
    assert installed == [] and capsys.readouterr().out == ""


@pytest.mark.parametrize("name, change, again", [
    ("constraints.txt", lambda text: text + "nowhere-else==1\n", True),
    ("pyproject.toml", lambda text: text.replace("numpy>=1.26", "numpy>=1.27"), True),
    ("pyproject.toml", lambda text: text.replace("line-length = 110", "").replace("\n", "\r\n"), False),
], ids=["a pin", "a dependency", "settings of tools, and Windows' ends of lines"])
def test_a_change_of_what_is_installed_installs_again_and_once(script, installed, course, name, change, again):
    pretend_it_is_installed(script)
    path = course / name
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8", newline="")
    for _ in range(2):
        script.prepare(["maintain"])
    assert [line.removeprefix(f"-m uv pip install --python {script.PYTHON} ") for line in installed[1:]] == again * [
        "--dry-run -e .[maintain]", "-e .[maintain]", f"--no-deps {' '.join(script.MODELS)}"]
    assert not again or installed[0].startswith("-m pip install") and installed[0].endswith("-c constraints.txt uv")


def test_a_second_set_up_waits_for_the_first(script, monkeypatch, capsys):
    made = []
    monkeypatch.setattr(script, "make", made.append)
    with locked(script.LOCK):
        waiting = threading.Thread(target=script.prepare, args=[["maintain"]])
        waiting.start()
        waiting.join(0.5)
        assert not made
    waiting.join(60)
    assert made == [["maintain"]]
    assert "waiting for it" in one_sentence(capsys.readouterr().out.replace("...", "."))


def test_an_environment_is_not_moved_when_its_folder_has_another_name(script, installed, course):
    """A link in the path, or capital letters on a disk that does not tell them apart."""
    pretend_it_is_installed(script)
    (course.parent / "link").symlink_to(course)
    script.COMPLETE.write_text(script.COMPLETE.read_text().replace(str(script.ROOT), str(course.parent / "link"), 1))
    left = script.VENV / "left over"
    left.touch()
    script.prepare(["maintain"])
    script.prepare(["maintain", "book"])
    assert left.exists() and installed[-1].endswith(" ".join(script.MODELS))


@pytest.mark.parametrize("whose", ["a person's", "a person's, and its Python is gone", "another course's"])
def test_an_environment_that_the_set_up_did_not_make_stays(script, installed, course, capsys, whose):
    if whose == "another course's":  # .venv is a link to it
        other = course.parent / "other" / ".venv"
        other.mkdir(parents=True)
        script.VENV.symlink_to(other)
        (other / "complete.txt").write_text("\n".join([str(other.parent), "", "", ""]))
    else:
        pretend_it_is_installed(script)
        script.COMPLETE.unlink()
        if "gone" in whose:
            script.PYTHON.unlink()
    before = sorted(script.VENV.rglob("*"))
    assert script.main(["setup"]) == 1
    assert "did not make, so it stays" in one_sentence(capsys.readouterr().err)
    assert installed == [] and sorted(script.VENV.rglob("*")) == before


@pytest.mark.parametrize("why", ["unfinished", "moved", "python gone", "its removal was interrupted"])
def test_a_broken_environment_is_made_again(script, installed, monkeypatch, why):
    def interrupt(path):
        script.COMPLETE.unlink(missing_ok=True)
        raise KeyboardInterrupt

    pretend_it_is_installed(script)
    left = script.VENV / "left over"
    left.touch()
    if why == "unfinished":
        script.COMPLETE.unlink()
        script.UNFINISHED.touch()
    elif why == "moved":
        script.COMPLETE.write_text("\n".join(["/elsewhere", script.fingerprint(), "", ""]))
    else:
        script.PYTHON.unlink()
    if "interrupted" in why:
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(script.shutil, "rmtree", interrupt)
            script.prepare([])
    monkeypatch.setattr(script, "make_bare", lambda: bare(script))
    script.prepare([])
    assert not left.exists() and script.works() and not script.UNFINISHED.exists()


def test_the_map_of_helpers_names_every_module():
    left = [line.strip().split("  ")[0] for line in helpers.__doc__.splitlines() if line.startswith("    ")]
    modules = {path.stem for path in (ROOT / "helpers").glob("[a-z]*.py")} - {"former"}
    rooms = {f"{path.parent.name}/" for path in (ROOT / "helpers").glob("*/__init__.py")}
    assert {*", ".join(left).split(", ")} - {"(the modules above)"} == modules | rooms


# One list of versions

def test_the_dev_container_is_made_by_our_own_set_up():
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    verb = container["postCreateCommand"].removeprefix("make ")
    assert verb in (ROOT / "scripts" / "setup.py").read_text() and f"\n{verb}:" in (ROOT / "Makefile").read_text()
    assert container["image"].startswith("python:3.11"), "the Python that the stored outputs were made with"


def test_the_book_is_published_after_the_tests_of_the_same_commit():
    """Only ci.yml calls what publishes, in a job that needs all tests; YAML reads the key `on` as True."""
    folder = ROOT / ".github" / "workflows"
    book, ci = (yaml.safe_load((folder / name).read_text(encoding="utf-8")) for name in ("book.yml", "ci.yml"))
    assert list(book[True]) == ["workflow_call"] and "deploy-pages" in str(book["jobs"]["publish"])
    job = ci["jobs"]["book"]
    assert "book.yml" in job["uses"] and job["needs"] == "test" and job["if"] == "github.event_name == 'push'"
    assert ".ci/run" in str(ci["jobs"]["test"]) and "continue-on-error" not in str(ci)
    assert ci[True]["push"] == {"branches": ["main"]}


def test_environment_yml_names_no_versions_of_its_own():
    lines = [line.strip() for line in (ROOT / "environment.yml").read_text().splitlines() if "#" not in line]
    assert [line for line in lines if re.search(r"[=<>~]", line)] == ["- python=3.11"]
    assert PIP.findall((ROOT / "environment.yml").read_text()) == ["-c constraints.txt", "-e .[model]"]


def requirements():
    """The names of the dependencies by group."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = {"dependencies": project["dependencies"], **project["optional-dependencies"]}
    return {group: [re.match("[A-Za-z0-9-]+", line)[0].lower() for line in lines] for group, lines in groups.items()}


def test_every_dependency_has_a_reason_and_an_exact_version():
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    pinned = re.findall(r"^([a-z0-9.-]+)==[^\s;*]+(?: ; .+)?$", "\n".join(lines), re.MULTILINE)
    assert len(lines) == len(pinned), "a line of constraints.txt pins nothing"
    assert sum(bool(re.match(r"torch==[\d.]+$", line)) for line in lines) == 1, "torch: one version, and any build of it"
    reasons = re.findall(r'^ {4}"([A-Za-z0-9-]+)[>=]=.+",\s+# \S', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    for name in sum(requirements().values(), []):
        assert name in pinned and name in map(str.lower, reasons), name


def test_the_script_installs_the_models(script):
    """The first one is in pyproject.toml for conda as well; the second one's own dependencies would have to be compiled."""
    assert requirements()["model"] == [script.MODELS[0]] and script.MODELS == (MINILM.package, SMOLLM2.package)
    pins = (ROOT / "constraints.txt").read_text()
    assert all(f"\n{model}==" in pins for model in script.MODELS)


@pytest.mark.weekly
@pytest.mark.parametrize("python, platform", [
    *((f"3.{minor}", "linux") for minor in range(10, 15)), ("3.11", "windows"), ("3.14", "windows"),
    ("3.11", "aarch64-apple-darwin"), ("3.14", "aarch64-apple-darwin")])
def test_every_package_on_every_system_has_one_version(script, monkeypatch, python, platform):
    """uv resolves the whole list for another Python and system; constraints.txt decides all but the GPU packages."""
    monkeypatch.setattr(script, "PYTHON", Path(sys.executable))
    options, seen = script.for_uv()
    done = subprocess.run(
        [sys.executable, "-m", "uv", "pip", "compile", *options, "pyproject.toml", "--all-extras", "-c", "constraints.txt",
         "--python-version", python, "--python-platform", platform, "--no-header", "--no-annotate", "--quiet"],
        env={**seen, "MACOSX_DEPLOYMENT_TARGET": "14.0"}, capture_output=True, text=True)  # torch needs macOS 14
    if re.search("Failed to fetch|Request failed", done.stderr):
        pytest.skip("the package index cannot be reached: the list was not resolved")
    assert done.returncode == 0, done.stderr
    pinned = {line.split("==")[0] for line in Path("constraints.txt").read_text().splitlines() if not line.startswith("#")}
    found = {line.split("==")[0] for line in done.stdout.splitlines()}
    assert len(found) > 100
    assert not {name for name in found - pinned if not re.match("nvidia-|cuda-|triton$", name)}


@pytest.mark.weekly
def test_the_set_up_makes_an_environment_from_nothing(course):
    seen = {**environment(), **{k: v for k, v in os.environ.items() if k.startswith("PIP_")}}
    command = [sys.executable, "scripts/environment.py", "setup"]
    done = subprocess.run(command, cwd=course, env=seen, capture_output=True, text=True)
    if "could not be reached: check" in done.stderr:
        pytest.skip("the package index cannot be reached: the set-up was not tried")
    assert done.returncode == 0, done.stdout + done.stderr
    again = subprocess.run(command, cwd=course, env=seen, capture_output=True, text=True)
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    python = course / ".venv" / BIN
    code = "import torch, helpers, jupyterlab; print(torch.__version__.split('+')[0])"
    done = subprocess.run([python, "-c", code], cwd=course, capture_output=True, text=True)
    assert f"\ntorch=={done.stdout.strip()}\n" in (ROOT / "constraints.txt").read_text(), done.stderr
