"""One browser and one JupyterLab for all tests of this folder that a worker runs; one book for all workers."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from browser import REPO, Lab, no_network, start_browser
from nbformat.v4 import new_notebook, writes

from helpers.store.files import locked


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:  # pytest calls this for the items of all folders
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """The book in build/book/html, which the command itself built with the network closed, once for all workers.

    How it ended: ``code``, ``said``, ``complained`` and ``seconds``.
    """
    pytest.importorskip("myst_nb", reason="the book's packages are not installed: `make test` installs them")
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # which the workers share
    kept = folder / "book.json"
    with locked(folder / "book.lock"):
        if not kept.exists():
            closed = {name: "http://127.0.0.1:9" for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")}
            start = time.monotonic()
            done = subprocess.run([*no_network(), sys.executable, "-m", "scripts.book"], cwd=REPO, capture_output=True,
                                  text=True, env={**os.environ, **closed})
            kept.write_text(json.dumps({"code": done.returncode, "said": done.stdout, "complained": done.stderr,
                                        "seconds": time.monotonic() - start}))
        found = json.loads(kept.read_text())
    assert found["code"] == 0, found["said"] + found["complained"]
    return found


@pytest.fixture(scope="package")
def browser():
    """Chromium; without one the test is skipped, and says so.

    It ends with the last test of this folder: as long as playwright is there, nothing else in the process may
    wait for a kernel (both run an event loop).
    """
    with start_browser() as browser:
        yield browser


@pytest.fixture(scope="package")
def lab(browser):
    with Lab(browser) as lab:
        yield lab


@pytest.fixture
def at_peace(lab):
    """Open a notebook; afterwards the page has reported no error and asked nothing of the network."""
    opened = []

    def open_one(name, **how):
        lab.outside.clear()
        opened.append(lab.open(name, **how))
        return opened[-1]
    yield open_one
    try:
        for notebook in opened:
            assert not notebook.console_errors(), f"{notebook.name}: the page reports {notebook.console_errors()}"
        assert not lab.outside, f"the page asked for {sorted(set(lab.outside))}: the course works with no network"
    finally:
        for notebook in opened:
            notebook.close()


@pytest.fixture
def made(lab):
    """Open a notebook made of these cells."""
    opened = []

    def open_cells(*cells, **how):
        metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
        (lab.root / "notebooks" / "made.ipynb").write_text(writes(new_notebook(cells=list(cells), metadata=metadata)))
        lab.outside.clear()
        opened.append(lab.open("made.ipynb", fresh=False, **how))
        return opened[-1]
    yield open_cells
    for notebook in opened:
        notebook.close()
    lab.outside.clear()
