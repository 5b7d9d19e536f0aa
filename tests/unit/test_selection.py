"""conftest.py: what --quick and --weekly choose, and that the summary names what was left out."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("options", "to_test", "to_weekly"), [
    (["--quick", "-n", "1"], True, True), (["--collect-only"], False, True), (["--collect-only", "--weekly"], False, False)])
def test_the_summary_names_what_is_left_out(options, to_test, to_weekly):
    """On a file that has both kinds. With workers the summary is written by a process that chose nothing."""
    path = "tests/pages/test_views.py"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", path, *options], cwd=REPO,
                          capture_output=True, text=True, env=environment)
    for words, left in (("`make test`", to_test), ("the weekly run", to_weekly)):
        assert bool(re.search(rf"= left to {words}: [1-9]\d* tests =.*\n +[1-9]\d* of {path}\n", done.stdout)) == left, done
    assert ("fresh installs" in done.stdout) == to_weekly
