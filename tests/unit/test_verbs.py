"""scripts/verbs.py: what has changed, which tests are nearest to it, and what the verbs run."""

import subprocess
from pathlib import Path

import pytest

from scripts import verbs


def git(*words):
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b.example", *words], check=True, capture_output=True)


def test_what_has_changed_is_found_on_a_branch_on_main_and_without_origin(git_program, tmp_path, monkeypatch):
    def commit(name):
        (tmp_path / name).write_text("1")
        git("add", "."), git("commit", "-qm", name)

    def changed():
        return verbs.changed(verbs.branch_point()), verbs.changed("HEAD")

    monkeypatch.chdir(tmp_path)
    assert changed() == ([], []), "not a git repository: a course from a zip file"
    git("init", "-qb", "main")
    commit("first")
    assert changed() == ([], [])
    (tmp_path / "new").write_text("not committed")
    assert changed() == (["new"], ["new"])
    git("checkout", "-qb", "branch")
    commit("second")
    (tmp_path / "first").unlink()
    assert changed() == (["first", "new", "second"], ["first"]), "one taken away has changed as well"
    git("update-ref", "refs/remotes/origin/main", "HEAD")
    assert changed() == (["first"], ["first"]), "the rest is published"


def test_the_nearest_tests_have_the_name_of_what_changed(monkeypatch):
    monkeypatch.chdir(verbs.ROOT)
    for files, tests in [
        (["helpers/attention.py"], ["tests/unit/test_answers.py", "tests/unit/test_attention.py",
                                    "tests/unit/test_mistakes.py"]),
        (["helpers/measure/claim.py", "README.md"], ["tests/notebooks/test_reference.py", "tests/unit/test_claim.py"]),
        (["helpers/checks/lesson05.py"], ["tests/notebooks/test_lesson05.py", "tests/unit/test_hints.py",
                                            "tests/unit/test_mistakes.py"]),
        (["classroom/roster.py"], ["tests/classroom/test_classroom_roster.py"]),
        (["helpers/__init__.py", "data/course.toml"], ["tests/notebooks/test_course.py"]),
        (["helpers/__init__.py", "docs/book/front.css"], []),
    ]:
        assert verbs.nearest(files) == tests


@pytest.fixture
def ran(monkeypatch):
    """What the verbs run, which is not done: everything goes well."""
    commands = []
    monkeypatch.setattr(verbs, "run", lambda *command, **more: commands.append(command) or 0)
    return commands


def test_check_begins_with_what_is_nearest_and_ends_with_the_notebooks_that_changed(git_program, ran, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in ("tests/unit/test_a.py", "tests/unit/test_b.py", "helpers/a.py", "notebooks/01_gone.ipynb"):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).touch()
    git("init", "-q", "-b", "main")
    git("add", ".")
    git("commit", "-qm", "first")
    assert verbs.check([]) == 0
    assert [command[1] for command in ran] == ["ruff", "codespell_lib", "pytest"]
    Path("helpers/a.py").write_text("a = 1")
    Path("notebooks/01_gone.ipynb").unlink()
    Path("notebooks/02_new.ipynb").touch()
    ran.clear()
    assert verbs.check([]) == 0
    near, rest, notebooks = ran[2:]
    assert near == ("-m", "pytest", "-q", "tests/unit/test_a.py")
    assert "not slow" in rest and rest[-2:] == ("--ignore=tests/unit/test_a.py", "tests")
    assert "--nbval" in notebooks and notebooks[-1] == "notebooks/02_new.ipynb"


def test_lab_trusts_the_courses_own_notebooks_alone(git_program, ran, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    copied = {"gone.ipynb": "my_lessons/gone.ipynb", "changed.ipynb": "my_lessons/changed.ipynb"}
    monkeypatch.setattr(verbs.handout, "fill", dict)  # test_handout.py looks at the copies
    names = ["00_start_here", "solutions/a lesson", "changed", "gone", "staged", "downloaded"]
    own, solution, changed, gone, staged, downloaded = notebooks = [f"notebooks/{name}.ipynb" for name in names]
    for name in notebooks[:4]:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("{}")
    assert verbs.lab([]) == 0
    assert [command[1] for command in ran] == ["jupyterlab"], "a course from a zip file: there is nothing to go by"
    assert "none was marked as trusted" in capsys.readouterr().out
    git("init", "-q")
    git("add", ".")
    assert verbs.own_notebooks() == [], "nothing is committed yet"
    git("commit", "-qm", "first")
    Path(changed).write_text("{ }")
    Path(gone).unlink()
    for name in (staged, downloaded):
        Path(name).write_text("{}")
    git("add", staged)
    monkeypatch.setattr(verbs.handout, "fill", lambda: copied | {Path(own).name: "my_lessons/00_start_here.ipynb"})
    assert verbs.lab(["--port=8889"]) == 0
    assert ran[1] == ("-m", "jupyter", "trust", "--log-level=ERROR", own, solution, "my_lessons/00_start_here.ipynb")
    assert ran[2][1] == "jupyterlab" and own in ran[2] and ran[2][-1] == "--port=8889"
    assert "trusted" not in capsys.readouterr().out


def test_a_style_error_ends_a_check_and_a_misspelt_word_is_explained(monkeypatch, capsys):
    for module, told in (("ruff", ""), ("codespell_lib", "Correct these words")):
        monkeypatch.setattr(verbs, "run", lambda *command, module=module, **more: int(command[1] == module))
        assert verbs.check([]) == 1 and verbs.test([]) == 1
        assert told in capsys.readouterr().out
