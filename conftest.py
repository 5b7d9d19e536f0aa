"""How the tests and the notebooks are run by pytest: `make test`, or plainly

    pytest --nbval --nbval-current-env notebooks

Add `-n 2` for two at a time. Three speeds: --quick leaves out what `make check` leaves to `make test`; --weekly adds
what `make test` leaves to the weekly run. With --skip-green, as `make test` has it, a notebook that passed whole is not
run again until it, or anything that it may use, has changed, and most solutions and experiments only where something has
changed since the branch point; --all runs them all the same, and so does CI.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import hashlib
import importlib.metadata
import json
import multiprocessing.process  # noqa: F401  it remembers the folder of its import, and tests change folders
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from helpers import jitter
from scripts import kernels
from scripts.limits import CELL_SECONDS, KNOWN_SECONDS
from scripts.verbs import branch_point, changed, git

ROOT = Path(__file__).resolve().parent
GREEN = "course/green-notebooks"                # where pytest's cache keeps what they were like when they last passed

# Small models on few cores: with its default threads torch needs ten times as long as with one
# as soon as two notebooks run at once. The kernels inherit this. Stored outputs hold either way.
os.environ["OMP_NUM_THREADS"] = os.environ.get("ATTENTION_COURSE_THREADS", "1")  # scripts/stability.py asks for two
# No learner is present: nothing is kept, and what would be a widget is printed.
os.environ["ATTENTION_COURSE_PROGRESS"] = "off"
# PYTHONHASHSEED is left alone on purpose: the kernels of every run get another one (scripts/kernels.py), so an output that
# depends on the order of a set fails here and not at a reader's.

# Where nothing is known yet, as on a fresh clone: CPU-seconds, so that the longest files come first.
GUESSES = {"tests/classroom/test_classroom_batch.py": 35, "tests/unit/test_setup.py": 9, "tests/unit/test_mistakes.py": 27,
           "tests/classroom/test_classroom_assignments.py": 20, "tests/unit/test_mutants.py": 23,
           "notebooks/11": 90, "notebooks/10": 80, "notebooks/13": 60, "notebooks/14": 40, "notebooks/12": 35,
           "notebooks/1": 50, "notebooks/0": 12, "notebooks/experiments/1": 20,
           "tests/classroom/test_classroom_assignment5.py": 15, "tests/classroom/test_classroom_trial.py": 10,
           "tests/classroom/test_classroom_variants.py": 12, "tests/classroom/test_classroom_fuzz.py": 9}
PAGES = "tests/pages/"                          # begin with them: they share a browser as long as nothing comes between
NOT_QUICK = (PAGES, "tests/classroom/test_classroom_batch.py", "tests/classroom/test_classroom_sandbox.py")
DEAR = {                                        # with --quick only where one of these has changed since the branch point
    "tests/unit/test_setup.py": ["scripts", "Makefile", "pyproject.toml", "constraints.txt", "environment.yml"],
    "tests/unit/test_chat_model.py": ["helpers/smollm2.py", "helpers/page/chat.py", "helpers/gguf.py", "helpers/tokens.py"],
    "tests/unit/test_mutants.py": ["helpers/checks", "tests/unit/mutants.py"],
    "tests/notebooks/test_lesson15.py": ["notebooks/15*"],
    "tests/notebooks/test_lessons.py": ["notebooks/0*", "helpers"],
    "tests/unit/test_colab.py": ["helpers/page/colab.py", "scripts", "notebooks", "constraints.txt"],
    **dict.fromkeys([f"tests/unit/test_{name}.py" for name in (
        "adapters", "agreement", "attention", "efficient", "embeddings", "inside", "mistakes", "pretrained",
        "tokens", "training",
        "translation")], ["helpers", "data", "tests/unit/mistakes.py", "constraints.txt"]),
    **dict.fromkeys([f"tests/notebooks/test_lesson{number}.py" for number in ("05", "08", "09", "13", "16")],
                    ["notebooks", "helpers", "scripts", "constraints.txt"]),
    **dict.fromkeys([f"tests/classroom/test_classroom_{name}.py" for name in (
        "assignment5", "assignment6", "assignment7", "assignments", "copies", "fuzz", "trial", "variants")],
                    ["classroom", "tests/classroom"])}
WEEKLY = ("every seed, mutant and page of the book; other systems, Pythons and package versions; fresh installs; "
          "every experiment in full")
at_work = Path()                                # the file whose test is running
left_out: dict[str, list[str]] = {"quick": [], "weekly": [], "green": [], "unchanged": []}   # what was deselected, by reason
USED = ("helpers/**/*.py", "classroom/**/*.py", "scripts/**/*.py", "data/**/*", "constraints.txt", "conftest.py",
        "tests/notebooks/sanitize.cfg")         # by notebooks, beside themselves, the packages and Python
# A learner runs the lessons, and `make test` runs each of them. Solutions and experiments are read; CI runs them all with
# every change. Elsewhere those of two lessons stand for the rest until something that they use changes: 05 trains small
# models, 11 the mini-transformer.
ALWAYS, READ = ("05", "11"), ("notebooks/solutions/", "notebooks/experiments/")

try:
    import hypothesis
except ImportError:
    pass
else:                                           # a slow machine is a normal machine
    hypothesis.settings.register_profile("course", deadline=None, derandomize=bool(os.environ.get("CI")), database=None,
                                         suppress_health_check=[hypothesis.HealthCheck.too_slow])
    hypothesis.settings.load_profile("course")


def pytest_addoption(parser):
    group = parser.getgroup("attention course")
    group.addoption("--quick", action="store_true", help="leave out what takes long: pages in a browser, hostile batches, "
                    "everything marked slow, what is dear and has not changed; one seed for each checker")
    group.addoption("--weekly", action="store_true", help="everything, and what is marked weekly as well")
    group.addoption("--skip-green", action="store_true", help="leave out notebooks that have not changed since they passed")
    group.addoption("--all", action="store_false", dest="skip_green", help="run those as well")
    group.addoption("--fresh-kernels", action="store_true", help="start every kernel afresh and fork none")


def pytest_configure(config):
    if not (getattr(config.option, "nbval", False) or getattr(config.option, "nbval_lax", False)):
        return
    forked = kernels.POSSIBLE and not config.getoption("fresh_kernels")
    make_nbval_run_cells_as_jupyter_does(forked)
    config.add_cleanup(kernels.end)
    if config.option.nbval_cell_timeout == 2000:        # nbval's own
        config.option.nbval_cell_timeout = CELL_SECONDS
    if config.option.nbval_kernel_startup_timeout == 60:
        config.option.nbval_kernel_startup_timeout = CELL_SECONDS
    if config.option.nbval_sanitize_with is None:
        config.option.nbval_sanitize_with = str(Path(__file__).with_name("tests") / "notebooks" / "sanitize.cfg")
    if getattr(config.option, "dist", "no") not in ("no", "loadfile", "loadscope"):
        config.option.dist = "loadfile"         # every other way tears the cells of a notebook apart
    if "PYTEST_XDIST_WORKER" not in os.environ:
        # The kernels read no start-up file of the person who tests, and write no history of theirs.
        folder = Path(tempfile.mkdtemp(prefix="ipython-"))
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
        profile = folder / "profile_default"
        profile.mkdir()
        settings = ["c = get_config()", "c.HistoryManager.hist_file = ':memory:'"]
        if os.environ.get(jitter.VARIABLE):     # scripts/stability.py asks for it
            settings.append("c.IPKernelApp.exec_lines = ['from helpers import jitter; jitter.install(); del jitter']")
        (profile / "ipython_kernel_config.py").write_text("\n".join([*settings, ""]))
        os.environ["IPYTHONDIR"] = str(folder)
        if forked:
            kernels.share()
        if hasattr(config.option, "loadscopereorder"):
            config.option.loadscopereorder = False      # our order below is better than the number of cells


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """The files of one folder, tests/pages, go to one worker: two would start two browsers and two JupyterLabs. The weekly
    run has so many of them that it takes two all the same."""
    if config.getoption("dist") != "loadfile" or config.getoption("weekly"):
        return None
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid):
            return PAGES if nodeid.startswith(PAGES) else super()._split_scope(nodeid)

    return Scheduling(config, log)


def make_nbval_run_cells_as_jupyter_does(forked):
    """nbval 0.11 executes with store_history=False, where a trailing `;` hides nothing and every execution count is 0.
    It also gives up when a kernel dies at its start, as when two have taken one port; here it may try again.
    ``forked``: kernels are forked from a warm process."""
    import nbval.kernel as kernel

    wanted = ("RunningKernel", "start_new_kernel")
    if any(not hasattr(kernel, name) for name in wanted) or not hasattr(kernel.RunningKernel, "execute_cell_input"):
        raise pytest.UsageError(
            "this version of nbval has no kernel.start_new_kernel or RunningKernel.execute_cell_input: "
            "adapt make_nbval_run_cells_as_jupyter_does in conftest.py, or install the nbval of constraints.txt")

    def execute_cell_input(self, cell_input, allow_stdin=None):
        return self.kc.execute(cell_input, store_history=True, allow_stdin=allow_stdin, stop_on_error=False)

    kernel.RunningKernel.execute_cell_input = execute_cell_input
    once = getattr(kernel.start_new_kernel, "once", kernel.start_new_kernel)

    def start_new_kernel(*args, **kwargs):
        os.environ[jitter.NOTEBOOK] = str(at_work)
        with kernels.warm(kernels.modules_for(at_work)) if forked else contextlib.nullcontext():
            try:
                return once(*args, **kwargs)
            except RuntimeError:
                return once(*args, **kwargs)

    start_new_kernel.once = once
    kernel.start_new_kernel = start_new_kernel


def known_seconds(config) -> dict[str, float]:
    cache = getattr(config, "cache", None)
    return cache.get(KNOWN_SECONDS, {}) if cache else {}


def is_notebook_cell(item) -> bool:
    return hasattr(item, "cell") and hasattr(item, "cell_num")


def file_of(nodeid: str) -> str:
    return nodeid.split("::")[0]


@functools.cache
def surroundings() -> str:
    """A digest of all that a notebook may use."""
    packages = sorted({f"{found.metadata['Name']} {found.version}" for found in importlib.metadata.distributions()})
    used = hashlib.sha256("\n".join([sys.version, *packages]).encode())
    for path in sorted({path for pattern in USED for path in ROOT.glob(pattern) if path.is_file()}):
        used.update(f"{path.relative_to(ROOT)} {hashlib.sha256(path.read_bytes()).hexdigest()}".encode())
    return used.hexdigest()


@functools.cache
def state_of(notebook: Path) -> str:
    """A digest of a notebook and all that it may use: as long as it stays, a new run says nothing new."""
    text = notebook.read_bytes()
    read = sorted((ROOT / "notebooks").glob("*.ipynb")) if b".ipynb\\" in text else []    # experiment 15 counts words
    return hashlib.sha256(b"".join([surroundings().encode(), text, *(path.read_bytes() for path in read)])).hexdigest()


@functools.cache
def known_green(config) -> dict[str, str]:
    """What the notebooks were like that last passed whole; nothing where all are to run."""
    cache = getattr(config, "cache", None)
    return cache.get(GREEN, {}) if cache and skips_green(config) else {}


def skips_green(config) -> bool:
    return config.getoption("skip_green") and not config.getoption("weekly") and not os.environ.get("CI")


@functools.cache
def touched(*paths) -> bool:
    """Whether something there has changed since the branch point; where CI has fetched one commit and knows no other, all
    may have (on Linux, where all of the tests that ask can run)."""
    alone = os.environ.get("CI") and sys.platform == "linux" and git("rev-parse", "HEAD") == git("rev-parse", branch_point())
    return bool(alone or changed(*paths))


def why_left_out(item) -> str:
    """The option that would bring the item in, or would not leave it out; empty if it is to run."""
    if is_notebook_cell(item):
        path = file_of(item.nodeid)
        if known_green(item.config).get(path) == state_of(item.path):
            return "green"
        read = path.startswith(READ) and not item.path.name.startswith(ALWAYS) and skips_green(item.config)
        return "unchanged" if read and not touched("notebooks", *(f":(glob){pattern}" for pattern in USED)) else ""
    tool = item.get_closest_marker("tool")
    if not item.config.getoption("weekly") and (item.get_closest_marker("weekly") or tool and not touched(*tool.args)):
        return "weekly"
    if not item.config.getoption("quick"):
        return ""
    path = file_of(item.nodeid)
    dear = path in DEAR and not touched(path, *DEAR[path])
    return "quick" if dear or item.get_closest_marker("slow") or path.startswith(NOT_QUICK) else ""


def pytest_collection_modifyitems(config, items):
    """Choose; say of each cell whether its output is compared; start with the files that last took longest."""
    chosen = []
    for item in items:
        reason = why_left_out(item)
        left_out[reason].append(item.nodeid) if reason else chosen.append(item)
    if len(chosen) < len(items):
        taken = set(chosen)
        config.hook.pytest_deselected(items=[item for item in items if item not in taken])
        items[:] = chosen
    for item in filter(is_notebook_cell, items):
        item.user_properties.append(("state", state_of(item.path)))
        item.output_timeout = CELL_SECONDS / 10         # nbval's own 5 s between two messages are few on a busy machine
        if item.cell.source.strip():
            compared = bool(item.options["check"] and not item.options["skip"])
            item.user_properties.append(("compared", compared))
            if not compared:
                item.user_properties.append(("reason", str(item.cell.metadata.get("reason", "no reason given"))))
    known = known_seconds(config)

    def expected(item):
        path = file_of(item.nodeid)
        guess = next((seconds for start, seconds in GUESSES.items() if path.startswith(start)), 0)
        return path.startswith(PAGES), known.get(path, guess)

    items.sort(key=expected, reverse=True)              # stable


def whole(path, outcomes) -> bool:
    """Whether these are all cells of a notebook, and none failed. ``outcomes``: (phase, outcome) of each report."""
    code = sum(cell["cell_type"] == "code" for cell in json.loads((ROOT / path).read_text(encoding="utf-8"))["cells"])
    return outcomes.count(("call", "passed")) == code and {outcome for _, outcome in outcomes} == {"passed"}


def pytest_sessionfinish(session):
    if session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and (left_out["green"] or left_out["unchanged"]):
        session.exitstatus = pytest.ExitCode.OK
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = left_out


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """The workers collect and choose, the one that writes the summary does not: the choice was the same in each."""
    left_out.update(getattr(node, "workeroutput", {}).get("left_out", {}))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    global at_work
    at_work = item.path


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """A cell that was never run has no outputs to compare with, and nbval lets it pass."""
    result = yield
    if is_notebook_cell(item) and item.cell.source.strip() and item.cell.execution_count is None:
        pytest.fail(f"{item.nodeid} was never run, so it proves nothing: "
                    "run the notebook from top to bottom and save it.", pytrace=False)
    return result


def pytest_terminal_summary(terminalreporter, config):
    """What tests have to say; seconds per file, longest first; what is compared, what is not, and why; what was left out."""
    said = [f"{report.nodeid}: {line}" for report in terminalreporter.stats.get("passed", [])
            for name, line in getattr(report, "user_properties", []) if name == "say"]
    section(terminalreporter, "measured by tests", said)
    seconds: dict[str, float] = {}
    compared: dict[str, list[bool]] = {}
    cells: dict[tuple[str, str], list[tuple[str, str]]] = {}    # (notebook, its state): what became of its cells
    ignored = []
    for reports in terminalreporter.stats.values():
        for report in reports:
            path, _, cell = getattr(report, "nodeid", "").partition("::")
            if not path or not hasattr(report, "duration"):
                continue
            seconds[path] = seconds.get(path, 0) + report.duration
            properties = dict(report.user_properties)
            if "state" in properties:
                cells.setdefault((path, properties["state"]), []).append((report.when, report.outcome))
            if report.when == "call" and "compared" in properties:
                compared.setdefault(path, []).append(properties["compared"])
                if not properties["compared"]:
                    ignored.append(f"not compared: {path}, {cell}: {properties['reason']}")
    longest = sorted(seconds, key=seconds.get, reverse=True)[:15]
    section(terminalreporter, "files, longest first", [f"{seconds[path]:7.1f} s  {path}" for path in longest])
    if compared:
        total, kept = sum(map(len, compared.values())), sum(map(sum, compared.values()))
        spent = sum(seconds[path] for path in compared)
        section(terminalreporter, "stored outputs", [
            f"{spent:7.1f} s  {kept} of {total} code cells compared ({kept / total:.1%}) in {len(compared)} notebooks",
            *sorted(ignored)])
    cache = getattr(config, "cache", None)
    if cache:
        cache.set(KNOWN_SECONDS, {**known_seconds(config), **{path: round(s, 1) for path, s in seconds.items()}})
        ran = {path: state if whole(path, outcomes) else "" for (path, state), outcomes in cells.items()}
        cache.set(GREEN, cache.get(GREEN, {}) | ran)
    for option, words in (("quick", "left to `make test`"), ("weekly", "left to the weekly run")):
        files = collections.Counter(map(file_of, left_out[option]))
        lines = [f"{number:5d} of {path}" for path, number in sorted(files.items())]
        if files and option == "weekly":
            lines.append(f"and {WEEKLY}")
        section(terminalreporter, f"{words}: {files.total()} tests", lines)
    green, unchanged = (len(set(map(file_of, left_out[reason]))) for reason in ("green", "unchanged"))
    section(terminalreporter, "not run again: `make test ARGS=--all` runs them too", [
        *[f"{green} notebooks were green, and nothing that they use has changed since."][:green],
        *[f"{unchanged} notebooks of solutions and experiments: nothing that they use has changed since the branch point. "
          f"Those of lessons {', '.join(ALWAYS)} were run, and CI runs all."][:unchanged]])


def section(terminalreporter, title, lines):
    if lines:
        terminalreporter.section(title)
        for line in lines:
            terminalreporter.write_line(line)
