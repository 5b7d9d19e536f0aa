"""What several tests of the classroom begin with."""

import pytest
from results import graded, result, unreadable

from classroom import marks


@pytest.fixture
def out(tmp_path):
    """A graded class of four, whose sheet nobody has marked yet."""
    half = [5, 1, 5, 0, 7, 1, 4, 1]
    results = [result("Ada Lovelace", "1"), result("Ben", "2", half, True, ("=HYPERLINK(1)", "b")),
               unreadable("Cy <b>", "3"), result("Dee", "4", half)]
    graded(tmp_path, results)
    marks.write_sheet(results, tmp_path)
    return tmp_path
