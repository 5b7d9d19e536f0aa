"""conftest.py: what --quick, --weekly and --skip-green choose, and that the summary names what was left out."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from scripts import verbs
from scripts.verbs import git

REPO = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.tool("conftest.py", __file__)


def run(*arguments, **variables):
    """pytest in a process of its own, on the files and with the options given: its exit code and what it wrote."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_") and name != "CI"}
    done = subprocess.run([sys.executable, "-m", "pytest", *map(str, arguments)], cwd=REPO, capture_output=True, text=True,
                          env=environment | variables)
    return done.returncode, done.stdout


@pytest.mark.parametrize(("options", "to_test", "to_weekly"), [
    (["--quick", "-n", "1"], True, True), (["--collect-only"], False, True), (["--collect-only", "--weekly"], False, False)])
def test_the_summary_names_what_is_left_out(options, to_test, to_weekly):
    """On a file that has both kinds. With workers the summary is written by a process that chose nothing."""
    path = "tests/pages/test_views.py"
    _, said = run("-p", "no:cacheprovider", path, *options)
    for words, left in (("`make test`", to_test), ("the weekly run", to_weekly)):
        assert bool(re.search(rf"= left to {words}: [1-9]\d* tests =.*\n +[1-9]\d* of {path}\n", said)) == left, said
    assert ("fresh installs" in said) == to_weekly


def the_conftest():
    """The module afresh, so that nothing that it remembers reaches another test."""
    spec = importlib.util.spec_from_file_location("the_conftest", REPO / "conftest.py")
    conftest = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(conftest)
    return conftest


@pytest.mark.parametrize(("path", "marks", "options", "changed", "wanted"), [
    ("tests/unit/test_chat_model.py", {}, ["quick"], [], "quick"),
    ("tests/unit/test_chat_model.py", {}, ["quick"], ["helpers/smollm2.py"], ""),
    ("tests/unit/test_chat_model.py", {}, ["quick"], ["tests/unit/test_chat_model.py"], ""),
    ("tests/unit/test_chat_model.py", {}, [], [], ""),
    ("tests/unit/test_plots.py", {}, ["quick"], [], ""),
    ("tests/pages/test_book.py", {}, ["quick"], ["tests/pages/test_book.py"], "quick"),
    ("tests/unit/test_plots.py", {"tool": ("scripts/execute.py",)}, [], [], "weekly"),
    ("tests/unit/test_plots.py", {"tool": ("scripts/execute.py",)}, [], ["scripts/execute.py"], ""),
    ("tests/unit/test_plots.py", {"tool": ("scripts/execute.py",)}, ["weekly"], [], ""),
])
def test_what_is_dear_or_tests_a_tool_runs_where_that_has_changed(path, marks, options, changed, wanted, monkeypatch):
    conftest = the_conftest()
    monkeypatch.delenv("CI", raising=False)
    conftest.changed = lambda *paths: [name for name in changed if name in paths]
    item = SimpleNamespace(
        nodeid=f"{path}::test_it", config=SimpleNamespace(getoption=lambda name: name in options),
        get_closest_marker=lambda name: SimpleNamespace(args=marks[name]) if name in marks else None)
    assert conftest.why_left_out(item) == wanted


@pytest.mark.parametrize(("path", "changed", "options", "variables", "wanted"), [
    ("notebooks/experiments/08_a.ipynb", [], ["skip_green"], {}, "unchanged"),
    ("notebooks/solutions/08_a.ipynb", [], ["skip_green"], {}, "unchanged"),
    ("notebooks/solutions/11_a.ipynb", [], ["skip_green"], {}, ""),
    ("notebooks/08_a.ipynb", [], ["skip_green"], {}, ""),
    ("notebooks/experiments/08_a.ipynb", ["notebooks"], ["skip_green"], {}, ""),
    ("notebooks/experiments/08_a.ipynb", [":(glob)helpers/**/*.py"], ["skip_green"], {}, ""),
    ("notebooks/experiments/08_a.ipynb", [], ["skip_green"], {"CI": "true"}, ""),
    ("notebooks/experiments/08_a.ipynb", [], ["skip_green", "weekly"], {}, ""),
    ("notebooks/experiments/08_a.ipynb", [], [], {}, ""),
])
def test_what_is_read_is_run_where_something_has_changed(path, changed, options, variables, wanted, monkeypatch):
    conftest = the_conftest()
    conftest.changed = lambda *paths: [name for name in changed if name in paths]
    conftest.state_of = lambda path: "its state"
    monkeypatch.delenv("CI", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    conftest.branch_point, conftest.git = lambda: "base", lambda *words: [words[-1]]
    item = SimpleNamespace(nodeid=f"{path}::Cell 0", path=Path(path), cell=None, cell_num=0, config=Options(options))
    assert conftest.why_left_out(item) == wanted


@pytest.mark.skipif(sys.platform != "linux", reason="CI runs what a tool's change can break on Linux")
@pytest.mark.parametrize(("variables", "base", "wanted"), [
    ({}, "HEAD", False), ({"CI": "true"}, "an earlier one", False), ({"CI": "true"}, "HEAD", True)])
def test_where_ci_has_one_commit_everything_may_have_changed(variables, base, wanted, monkeypatch):
    conftest = the_conftest()
    conftest.changed, conftest.branch_point, conftest.git = lambda *paths: [], lambda: base, lambda *words: [words[-1]]
    monkeypatch.delenv("CI", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert conftest.touched("helpers") == wanted


def test_what_has_changed_is_found_on_a_branch_on_main_and_without_origin(tmp_path, monkeypatch):
    def do(*words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True, capture_output=True)

    def commit(name, text="1"):
        (tmp_path / name).write_text(text)
        do("add", "."), do("commit", "-qm", name)

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CI", raising=False)
    do("init", "-qb", "main")
    commit("first")
    assert verbs.changed() == [], "one commit, and nothing before it"
    commit("second")
    assert verbs.changed() == ["second"], "on main, with no origin: the last commit"
    (tmp_path / "new").write_text("not committed")
    assert verbs.changed() == ["new", "second"]
    do("checkout", "-qb", "branch")
    commit("third")
    (tmp_path / "first").unlink()
    assert verbs.changed() == ["first", "new", "third"], "one taken away has changed as well"
    assert verbs.changed("third") == ["third"]
    do("update-ref", "refs/remotes/origin/main", "HEAD")
    assert verbs.changed() == ["first"], "the rest is published"
    monkeypatch.setenv("CI", "true")
    do("checkout", "-q", "main"), do("reset", "-q", "--hard", "branch")
    assert verbs.changed() == ["new", "third"], "in CI, after a push: the last commit"
    do("checkout", "-qb", "a-request"), commit("fourth")
    assert verbs.changed() == ["fourth"], "in CI, for a pull request: its commits"


class Options:
    """The options of a run of pytest."""

    def __init__(self, options):
        self.getoption = lambda name: name in options


def test_git_finds_what_notebooks_use():
    """Its patterns are not Python's: each names at least one file, and helpers' own is one of them."""
    conftest = the_conftest()
    for pattern in conftest.USED:
        assert git("ls-files", f":(glob){pattern}"), pattern
    assert "helpers/adapters.py" in git("ls-files", f":(glob){conftest.USED[0]}")


def test_what_conftest_names_is_there():
    """Or a file that has another name by now would run, or not run, unnoticed."""
    conftest = the_conftest()
    for pattern in [*conftest.DEAR, *sum(conftest.DEAR.values(), []), *conftest.USED, *conftest.NOT_QUICK]:
        assert any(REPO.glob(pattern)), pattern


@pytest.fixture
def notebook():
    """Write a notebook below the repository, so that its conftest.py counts; the path is taken away afterwards."""
    path = REPO / "build" / "selection-test" / "made.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)

    def write(*sources):
        cells = [new_code_cell(source, execution_count=n, outputs=[new_output("stream", text="1\n")])
                 for n, source in enumerate(sources, 1)]
        nbformat.write(new_notebook(cells=cells), path)
        return path
    yield write
    path.unlink()
    path.parent.rmdir()


def test_a_notebook_that_passed_whole_is_not_run_again_until_it_changes(notebook, tmp_path):
    options = ["--nbval", "--nbval-current-env", "--fresh-kernels", "-o", f"cache_dir={tmp_path / 'cache'}"]
    path = notebook("print(1)", "print(2)")

    def passed(*more, **variables):
        """The exit code, how many cells passed, and whether a notebook was left out."""
        code, said = run(path, *options, *more, **variables)
        found = re.search(r"(\d+) passed", said)
        return code, int(found[1]) if found else 0, "1 notebooks were green" in said

    assert passed("--skip-green") == (1, 1, False)          # the second cell fails
    assert passed("--skip-green", "-k", "0") == (0, 1, False), "what failed is run again"
    assert passed("--skip-green", "-k", "0") == (0, 1, False), "a part that passed is not the whole"
    notebook("print(1)", "print(1) ")
    assert passed() == (0, 2, False)
    assert passed("--skip-green", "-n", "1") == (0, 0, True)
    assert passed() == (0, 2, False), "only where it is asked for"
    for more, variables in ((["--all"], {}), (["--weekly"], {}), ([], {"CI": "true"})):
        assert passed("--skip-green", "--collect-only", *more, **variables)[2] is False
    notebook("print(1)", "print( 1)")
    assert passed("--skip-green") == (0, 2, False), "it has changed"
