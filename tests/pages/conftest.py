"""What several test files use."""

import pytest
from browser import Lab, NoBrowser, find_browser


@pytest.fixture(scope="session")
def chromium():
    """The browser's program; without one the test is skipped, and says so."""
    try:
        return find_browser()
    except NoBrowser as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def lab(chromium):
    with Lab() as lab:
        yield lab


@pytest.fixture
def at_peace(lab):
    """Open a notebook; afterwards the page has reported no error and asked nothing of the network."""
    opened = []

    def open_one(name):
        lab.outside.clear()
        opened.append(lab.open(name))
        return opened[-1]
    yield open_one
    try:
        for notebook in opened:
            assert not notebook.console_errors(), f"{notebook.name}: the page reports {notebook.console_errors()}"
        assert not lab.outside, f"the page asked for {sorted(set(lab.outside))}: the course works with no network"
    finally:
        for notebook in opened:
            notebook.close()
