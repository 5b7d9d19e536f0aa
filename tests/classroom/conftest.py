"""What several tests of the classroom begin with."""

import pytest
from results import graded, result

from classroom import marks


@pytest.fixture
def out(tmp_path):
    """A graded class of four, whose sheet nobody has marked yet."""
    lost = result("Cy <b>", "3") | {"status": "unreadable", "reason": "The file is empty."}
    for test in lost["tests"]:
        test |= {"status": "unreadable", "points": None}
    half = [5, 1, 5, 0, 7, 1, 4, 1]
    results = [result("Ada Lovelace", "1"), result("Ben", "2", half, "time limit", ("=HYPERLINK(1)", "b")), lost,
               result("Dee", "4", half)]
    graded(tmp_path, results)
    marks.write_sheet(results, tmp_path)
    return tmp_path
