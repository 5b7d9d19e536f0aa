"""How pytest runs the tests (`pytest tests`) and the notebooks (`pytest --nbval notebooks`).

Add `-n 2` for two at a time, `-m "not slow"` for the quick tests alone, `--weekly` for what `make test` leaves out.
"""

from __future__ import annotations

import collections
import contextlib
import multiprocessing.process  # noqa: F401  it remembers the folder of its import, and tests change folders
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from helpers.measure import jitter
from scripts import CELL_SECONDS

# Small models on few cores: with its default threads torch needs ten times as long as with one
# as soon as two notebooks run at once. The kernels inherit this. Stored outputs hold either way.
os.environ["OMP_NUM_THREADS"] = os.environ.get("ATTENTION_COURSE_THREADS", "1")  # scripts/stability.py asks for two
# No learner is present: nothing is kept, and what would be a widget is printed.
os.environ["ATTENTION_COURSE_PROGRESS"] = "off"
# PYTHONHASHSEED is left alone on purpose: every kernel gets another one, so an output that depends on the order of a set
# fails here and not at a reader's.

with contextlib.suppress(ImportError):          # who only runs notebooks needs no hypothesis
    import hypothesis
    hypothesis.settings.register_profile("course", deadline=None, derandomize=bool(os.environ.get("CI")), database=None,
                                         suppress_health_check=[hypothesis.HealthCheck.too_slow])
    hypothesis.settings.load_profile("course")


def pytest_addoption(parser):
    parser.getgroup("attention course").addoption(
        "--weekly", action="store_true", help="everything, what is marked weekly as well, and more seeds")


def pytest_configure(config):
    options = config.option
    if not (getattr(options, "nbval", False) or getattr(options, "nbval_lax", False)):
        return
    run_cells_as_jupyter_does()
    options.nbval_current_env = not options.nbval_kernel_name
    if options.nbval_cell_timeout == 2000:      # nbval's own
        options.nbval_cell_timeout = CELL_SECONDS
    if options.nbval_kernel_startup_timeout == 60:
        options.nbval_kernel_startup_timeout = CELL_SECONDS
    options.nbval_sanitize_with = options.nbval_sanitize_with or str(config.rootpath / "tests/notebooks/sanitize.cfg")
    if getattr(options, "dist", "no") not in ("no", "loadfile", "loadscope"):
        options.dist = "loadfile"               # every other way tears the cells of a notebook apart
    if "PYTEST_XDIST_WORKER" not in os.environ:
        # The kernels read no start-up file of the person who tests, and write no history of theirs.
        folder = Path(tempfile.mkdtemp(prefix="ipython-"))
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
        settings = ["c = get_config()", "c.HistoryManager.hist_file = ':memory:'"]
        if os.environ.get(jitter.VARIABLE):     # scripts/stability.py asks for it
            settings.append("c.IPKernelApp.exec_lines = ['import helpers.measure.jitter as j; j.install(); del j']")
        (folder / "profile_default").mkdir()
        (folder / "profile_default" / "ipython_kernel_config.py").write_text("\n".join([*settings, ""]))
        os.environ["IPYTHONDIR"] = str(folder)


def run_cells_as_jupyter_does():
    """nbval 0.11 executes with store_history=False, where a trailing `;` hides nothing and every execution count is 0.
    It also gives up when a kernel dies at its start, as when two have taken one port; here it may try again."""
    from nbval import kernel

    start = kernel.start_new_kernel
    if not hasattr(kernel.RunningKernel, "execute_cell_input"):
        raise pytest.UsageError("This version of nbval has no RunningKernel.execute_cell_input: adapt "
                                "run_cells_as_jupyter_does in conftest.py, or install the nbval of constraints.txt.")

    def start_new_kernel(*args, **options):
        try:
            return start(*args, **options)
        except RuntimeError:
            return start(*args, **options)

    def execute_cell_input(self, cell_input, allow_stdin=None):
        return self.kc.execute(cell_input, store_history=True, allow_stdin=allow_stdin, stop_on_error=False)

    kernel.start_new_kernel = start_new_kernel
    kernel.RunningKernel.execute_cell_input = execute_cell_input


def is_notebook_cell(item) -> bool:
    return hasattr(item, "cell") and hasattr(item, "cell_num")


def pytest_collection_modifyitems(config, items):
    for item in filter(is_notebook_cell, items):
        item.output_timeout = CELL_SECONDS / 10         # nbval's own 5 s between two messages are few on a busy machine
    if not config.getoption("weekly"):
        weekly = {item for item in items if item.get_closest_marker("weekly")}
        config.hook.pytest_deselected(items=list(weekly))
        items[:] = [item for item in items if item not in weekly]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """A cell that was never run has no outputs to compare with, and nbval lets it pass."""
    result = yield
    if is_notebook_cell(item) and item.cell.source.strip() and item.cell.execution_count is None:
        pytest.fail(f"{item.nodeid} was never run, so it proves nothing: "
                    "run the notebook from top to bottom and save it.", pytrace=False)
    return result


def pytest_terminal_summary(terminalreporter):
    """What tests have to say, and a line for each reason to skip some."""
    for report in terminalreporter.getreports("passed"):
        for words in (words for name, words in report.user_properties if name == "say"):
            terminalreporter.write_line(f"{report.nodeid}: {words}")
    reasons = collections.Counter(report.longrepr[2] for report in terminalreporter.getreports("skipped"))
    for reason, number in sorted(reasons.items()):
        terminalreporter.write_line(f"{number} skipped. {reason.removeprefix('Skipped: ')}")
