"""The autograder for Gradescope, run in a container of its own: no network, and of this machine only the environment."""

import json
import os
import shutil
import subprocess
import sys
import zipfile

import pytest
from commands import command
from submissions import FULL, NAME, data, needs_sandbox, solutions, solved

from classroom import roster, variants


def install(tmp_path, *arguments):
    """Where the autograder is unpacked as Gradescope does, with this environment instead of what setup.sh installs; and what
    the command says."""
    packed, home = tmp_path / "autograder.zip", tmp_path / "autograder"
    said = command("gradescope", NAME, packed, *arguments)
    with zipfile.ZipFile(packed) as archive:
        assert {"setup.sh", "run_autograder"} <= set(archive.namelist())
        assert all(archive.getinfo(name).external_attr >> 16 & 0o111 for name in ("setup.sh", "run_autograder"))
        archive.extractall(home / "source")
    shutil.copy(home / "source" / "run_autograder", home)
    (home / "run_autograder").chmod(0o755)
    (home / "source" / "course" / ".venv").symlink_to(sys.prefix)
    assert subprocess.run(["bash", "-n", home / "source" / "setup.sh"]).returncode == 0
    return home, said


def grade(home, notebook, email="nobody@x.org", namespaces=True):
    """What run_autograder writes for a submission, and what it prints; ``namespaces``: whether the container allows them."""
    shutil.rmtree(home / "submission", ignore_errors=True)
    (home / "submission").mkdir()
    (home / "submission" / "my work.ipynb").write_bytes(notebook)
    users = [{"email": email, "id": 5, "name": "S."}]
    (home / "submission_metadata.json").write_text(json.dumps({"id": 1, "users": users}))
    command = ["bwrap", "--unshare-net", "--unshare-uts", "--unshare-ipc", "--die-with-parent", "--tmpfs", "/",
               *(["--cap-add", "ALL"] if namespaces and os.getuid() == 0 else []),
               "--dev", "/dev", *(["--bind", "/proc"] if namespaces else ["--proc"]), "/proc",
               "--tmpfs", "/tmp", "--dir", "/mnt"]
    for path in ("/usr", "/etc", "/bin", "/sbin", "/lib", "/lib64", sys.prefix, os.path.realpath(sys.base_prefix)):
        if os.path.islink(path):
            command += ["--symlink", os.readlink(path), path]
        elif os.path.exists(path) and not path.startswith("/usr/"):
            command += ["--ro-bind", path, path]
    command += ["--bind", str(home), "/autograder", "--chdir", "/autograder", "--clearenv", "--setenv", "HOME", "/root",
                "--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "/autograder/run_autograder"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    answer = json.loads((home / "results" / "results.json").read_text(encoding="utf-8"))
    # The keys and types of Gradescope's specification.
    assert set(answer) <= {"score", "execution_time", "output", "visibility", "stdout_visibility", "extra_data", "tests"}
    for test in answer["tests"]:
        assert set(test) <= {"score", "max_score", "name", "number", "output", "tags", "visibility", "extra_data"}
        assert isinstance(test["max_score"], int | float) and isinstance(test["output"], str)
    assert "score" not in answer or answer["score"] == sum(test["score"] for test in answer["tests"])
    return answer, done.stdout


@pytest.mark.slow
@needs_sandbox
def test_the_autograder_grades_in_a_container(tmp_path):
    home, _ = install(tmp_path)
    compiled = subprocess.run([sys.executable, "-m", "classroom.gradescope"], cwd=home / "source" / "course")
    assert compiled.returncode == 0, "which is what setup.sh ends with"
    answer, printed = grade(home, data(solved()))
    assert "score" in answer, (answer, printed)
    assert answer["score"] == FULL and "written answers are marked by your teacher" in answer["output"], printed
    answer, _ = grade(home, data(solved("open('/autograder/results/results.json', 'w').write('{\"score\": 99}')",
                                        effective_words="def effective_words(weights):\n    return 1.0")))
    assert 0 < answer["score"] < FULL
    if os.getuid() == 0:
        answer, printed = grade(home, data(solved()), namespaces=False)
        assert not answer["tests"] and "score" not in answer and "bubblewrap" in printed, "never without a sandbox"
    answer, _ = grade(home, b"{")
    assert "score" not in answer and not any("score" in test for test in answer["tests"])
    assert "Your teacher will look at it" in answer["output"]


@pytest.mark.slow
@needs_sandbox
def test_variants_are_graded_there_and_their_key_stays_here(tmp_path):
    people = [roster.Person("Ada Lovelace", email="ada@x.org"), roster.Person("Ben Secret", email="ben@x.org")]
    roster.write(tmp_path / "class.csv", people)
    command("release", NAME, tmp_path, "--variant", "v", "--students", tmp_path / "class.csv")
    listed = tmp_path / f"{NAME}-variants.json"
    given = variants.read(listed)
    home, said = install(tmp_path, "--variants", listed)
    assert "2 of 2 students are known there" in said
    settings = (home / "source" / "course" / "autograder.json").read_text()
    for word in (given.key, "Ada", "Ben", "x.org"):
        assert word not in settings, word
    ada = json.loads((tmp_path / f"{NAME}-solutions" / given.file_of("Ada Lovelace")).read_text(encoding="utf-8"))
    ada = solutions(ada)
    assert grade(home, data(ada), "ADA@x.org")[0]["score"] == FULL
    answer, printed = grade(home, data(ada), "ben@x.org")
    assert answer["score"] < FULL and "which is" in printed and "which is" not in json.dumps(answer)
    (tmp_path / "other.json").write_text(listed.read_text().replace(NAME, "assignment2"))
    command("gradescope", "assignment2", tmp_path / "b.zip", "--variants", listed, fails=True)
