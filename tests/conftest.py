"""What several test files use."""

import pytest
from browser import Lab, NoBrowser, find_browser


@pytest.fixture(scope="module")
def lab():
    try:
        find_browser()
    except NoBrowser as missing:
        pytest.skip(str(missing))
    with Lab() as lab:
        yield lab
