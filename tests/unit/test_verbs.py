"""scripts/verbs.py: what has changed, and which tests are nearest to it."""

import subprocess

from scripts import verbs


def test_what_has_changed_is_found_on_a_branch_on_main_and_without_origin(git_program, tmp_path, monkeypatch):
    def do(*words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b.example", *words], check=True, capture_output=True)

    def commit(name, text="1"):
        (tmp_path / name).write_text(text)
        do("add", "."), do("commit", "-qm", name)

    def changed():
        return verbs.changed(verbs.branch_point()), verbs.changed("HEAD")

    monkeypatch.chdir(tmp_path)
    assert changed() == ([], []), "not a git repository: a course from a zip file"
    do("init", "-qb", "main")
    commit("first")
    assert changed() == ([], [])
    (tmp_path / "new").write_text("not committed")
    assert changed() == (["new"], ["new"])
    do("checkout", "-qb", "branch")
    commit("second")
    (tmp_path / "first").unlink()
    assert changed() == (["first", "new", "second"], ["first"]), "one taken away has changed as well"
    do("update-ref", "refs/remotes/origin/main", "HEAD")
    assert changed() == (["first"], ["first"]), "the rest is published"


def test_the_nearest_tests_have_the_name_of_what_changed(monkeypatch):
    monkeypatch.chdir(verbs.ROOT)
    for files, tests in [
        (["helpers/attention.py"], ["tests/unit/test_attention.py"]),
        (["helpers/measure/claim.py", "README.md"], ["tests/unit/test_claim.py"]),
        (["notebooks/05_scaling.ipynb"], ["tests/notebooks/test_hygiene.py", "tests/notebooks/test_lesson05.py"]),
        (["helpers/checks/lesson05.py"], ["tests/notebooks/test_lesson05.py", "tests/unit/test_hints.py",
                                            "tests/unit/test_mistakes.py"]),
        (["docs/glossary.md"], ["tests/notebooks/test_reference.py"]),
        (["classroom/roster.py"], ["tests/classroom/test_classroom_roster.py"]),
        (["tests/unit/test_verbs.py"], ["tests/unit/test_verbs.py"]),
        (["helpers/__init__.py", "data/course.toml"], []),
    ]:
        assert verbs.nearest(files) == tests
