"""How the notebooks are run by pytest: `make test`, or plainly

    pytest --nbval --nbval-current-env notebooks

Add `-n 2` for two at a time.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

# Small models on few cores: with its default threads torch needs ten times as long as with one
# as soon as two notebooks run at once. The kernels inherit this. Stored outputs hold either way.
os.environ["OMP_NUM_THREADS"] = os.environ.get("ATTENTION_COURSE_THREADS", "1")  # scripts/stability.py asks for two
# No learner is present: nothing is kept, and what would be a widget is printed.
os.environ["ATTENTION_COURSE_PROGRESS"] = "off"
# PYTHONHASHSEED is left alone on purpose: every kernel gets another one, so an output that depends on
# the order of a set fails here and not at a reader's.

KNOWN_SECONDS = "course/seconds-per-notebook"
LONGEST = "tests/pages/test_browser.py"               # runs every lesson once more, in a browser: begin with it
CELL_TIMEOUT = 300                              # seconds; nbval's own 2000 hides a cell that hangs

try:
    import hypothesis
except ImportError:
    pass
else:                                           # shared machines are slow at times
    hypothesis.settings.register_profile("course", deadline=None, derandomize=bool(os.environ.get("CI")))
    hypothesis.settings.load_profile("course")


def pytest_configure(config):
    if not (getattr(config.option, "nbval", False) or getattr(config.option, "nbval_lax", False)):
        return
    make_nbval_run_cells_as_jupyter_does()
    if config.option.nbval_cell_timeout == 2000:
        config.option.nbval_cell_timeout = CELL_TIMEOUT
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
        (profile / "ipython_kernel_config.py").write_text("get_config().HistoryManager.hist_file = ':memory:'\n")
        os.environ["IPYTHONDIR"] = str(folder)
        if hasattr(config.option, "loadscopereorder"):
            config.option.loadscopereorder = False      # our order below is better than the number of cells


def make_nbval_run_cells_as_jupyter_does():
    """nbval 0.11 executes with store_history=False, where a trailing `;` hides nothing and every
    execution count is 1. It also gives up when a kernel is slow to start; here it may try again."""
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
        try:
            return once(*args, **kwargs)
        except RuntimeError:                    # died or not ready in time; two may have taken one port
            return once(*args, **kwargs)

    start_new_kernel.once = once
    kernel.start_new_kernel = start_new_kernel


def known_seconds(config) -> dict[str, float]:
    cache = getattr(config, "cache", None)
    return cache.get(KNOWN_SECONDS, {}) if cache else {}


def is_notebook_cell(item) -> bool:
    return hasattr(item, "cell") and hasattr(item, "cell_num")


def pytest_collection_modifyitems(config, items):
    """Say of each cell whether its output is compared, and start with the notebooks that last took longest."""
    for item in filter(is_notebook_cell, items):
        if item.cell.source.strip():
            compared = bool(item.options["check"] and not item.options["skip"])
            item.user_properties.append(("compared", compared))
            if not compared:
                item.user_properties.append(("reason", str(item.cell.metadata.get("reason", "no reason given"))))
    known = {**known_seconds(config), LONGEST: float("inf")}
    items.sort(key=lambda item: -known.get(item.nodeid.split("::")[0], 0))      # stable


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """A cell that was never run has no outputs to compare with, and nbval lets it pass."""
    result = yield
    if is_notebook_cell(item) and item.cell.source.strip() and item.cell.execution_count is None:
        pytest.fail(f"{item.nodeid} was never run, so it proves nothing: "
                    "run the notebook from top to bottom and save it.", pytrace=False)
    return result


def pytest_terminal_summary(terminalreporter, config):
    """What tests have to say; seconds per notebook, longest first; how much is compared, what is not, and why."""
    said = [f"{report.nodeid}: {line}" for report in terminalreporter.stats.get("passed", [])
            for name, line in getattr(report, "user_properties", []) if name == "say"]
    if said:
        terminalreporter.section("measured by tests")
        for line in said:
            terminalreporter.write_line(line)
    seconds: dict[str, float] = {}
    compared: dict[str, list[bool]] = {}
    ignored = []
    for reports in terminalreporter.stats.values():
        for report in reports:
            path, _, cell = getattr(report, "nodeid", "").partition("::")
            if not path.endswith(".ipynb") or not hasattr(report, "duration"):
                continue
            seconds[path] = seconds.get(path, 0) + report.duration
            properties = dict(report.user_properties)
            if report.when == "call" and "compared" in properties:
                compared.setdefault(path, []).append(properties["compared"])
                if not properties["compared"]:
                    ignored.append(f"{path}, {cell}: {properties['reason']}")
    if not seconds:
        return
    write = terminalreporter.write_line
    terminalreporter.section("notebooks, longest first")
    for path in sorted(seconds, key=seconds.get, reverse=True):
        cells = compared.get(path, [])
        write(f"{seconds[path]:7.1f} s  {sum(cells):3d} of {len(cells):3d} code cells compared  {path}")
    total, kept = sum(map(len, compared.values())), sum(map(sum, compared.values()))
    write(f"{sum(seconds.values()):7.1f} s  {kept:3d} of {total:3d} code cells compared "
          f"({kept / max(total, 1):.1%}) in {len(seconds)} notebooks")
    for line in sorted(ignored):
        write(f"not compared: {line}")
    cache = getattr(config, "cache", None)
    if cache:
        cache.set(KNOWN_SECONDS, {**known_seconds(config), **{path: round(s, 1) for path, s in seconds.items()}})
