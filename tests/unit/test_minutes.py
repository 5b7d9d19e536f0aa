"""The minutes of a lesson are counted as scripts/minutes.py says."""

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from scripts.minutes import minutes

FOLDED = {"jupyter": {"source_hidden": True}}


@pytest.mark.parametrize(("cells", "exercises", "seconds", "wanted"), [
    ([], 0, 0, 0),
    ([new_markdown_cell("word " * 825)], 0, 0, 5),
    ([new_markdown_cell("word " * 826)], 0, 0, 10),
    ([new_markdown_cell("[word](a_long_link.ipynb) <b>" * 825)], 0, 0, 5),
    ([new_code_cell("x = 1\n\n" * 60)], 0, 0, 5),
    ([new_code_cell("x = 1\n" * 61)], 0, 0, 10),
    ([new_code_cell("x = 1\n" * 61, metadata=FOLDED)], 0, 0, 0),
    ([new_code_cell('predict("a")')], 3, 0, 35),
    ([], 0, 301, 10),
])
def test_minutes(cells, exercises, seconds, wanted):
    assert minutes(new_notebook(cells=cells), exercises, seconds) == wanted
