"""The dry run for teachers: ten imaginary students, from release to export."""

import copy
import csv
import re

import pytest
from commands import command
from submissions import needs_sandbox

from classroom import assignment, batch, tasks, trial

NAMES = assignment.names()


def without_figures(name):
    """An assignment in which nothing is measured or drawn, which takes most of the time of each notebook."""
    raw = assignment.source(name)
    raw["cells"] = [cell for cell in raw["cells"] if cell["id"] not in ("measurement", "figure")]
    imports = next(cell for cell in raw["cells"] if cell["id"] == "imports")
    imports["source"] = "import numpy as np\nfrom helpers.embeddings import cosine_similarity"
    return raw


@pytest.mark.slow
@needs_sandbox
@pytest.mark.parametrize("name", [NAMES[0], *(pytest.param(name, marks=pytest.mark.weekly) for name in NAMES[1:])])
def test_everybody_gets_what_they_deserve(name, tmp_path, monkeypatch, pytestconfig):
    if not pytestconfig.getoption("weekly", False):
        shorter = without_figures(name)
        monkeypatch.setattr(assignment, "source", lambda *_: copy.deepcopy(shorter))
    out = tmp_path / "trial"
    assert command("try", name, out).count("\n$ python -m classroom ") == 3
    results = {result["student"]: result for result in batch.read(out / "graded")[0]}
    assert set(results) == set(trial.STUDENTS)
    points = {student: [test["points"] for test in result["tests"]] for student, result in results.items()}
    most = [test["most"] for test in results["Rita Right"]["tests"]]
    families = {function for function, task in tasks.tasks_of(name).items() if task.family}
    assert points["Rita Right"] == most and not results["Rita Right"]["flags"]
    assert points["Emil Empty"] == [0] * len(most)
    assert results["Dora Damaged"]["status"] == "unreadable"
    assert {"time limit", "crashed"} <= {test["status"] for test in results["Lena Loop"]["tests"]}
    assert {test["status"] for test in results["Theo Typo"]["tests"]} == {"passed", "function missing"}
    assert {test["status"] for test in results["Hal Half"]["tests"]} == {"passed", "not started"}
    public = {flag.partition(" ")[0] for flag in results["Pia Public"]["flags"] if "whose solution is public" in flag}
    assert public == families
    assert "which is Rita Right's" in " ".join(results["Nora Neighbour"]["flags"])
    assert len({test["misconception"] for test in results["Wim Wrong"]["tests"]} - {None}) >= 2
    for page in ("class.html", "feedback/Rita_Right_101.html"):
        assert "Rita Right" in (out / "graded" / page).read_text(encoding="utf-8")
    pairs = re.findall("<h3>(.*)</h3>", (out / "graded" / "copies.html").read_text(encoding="utf-8"))
    if all(task.family and task.family.keyed for task in tasks.tasks_of(name).values()):  # numbers and no code
        assert "is right for another variant: that of Rita Right" in " ".join(results["Nora Neighbour"]["flags"])
    else:
        assert {"Nora Neighbour", "Rita Right"} in [set(pair.split(" and ")) for pair in pairs]
    with (out / "graded" / "grades.csv").open(encoding="utf-8-sig", newline="") as file:
        grades = {row["student"]: row["points"] for row in csv.DictReader(file)}
    assert {student for student, grade in grades.items() if not grade} == {"Dora Damaged", "Lena Loop", "Theo Typo"}
    assert float(grades["Rita Right"]) > float(grades["Hal Half"]) > float(grades["Emil Empty"]) == 0
    assert "name another folder" in command("try", name, out, fails=True)
