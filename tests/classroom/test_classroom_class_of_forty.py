"""A class of forty with assignment 7, ten of whom are wrong in each of four ways: all are graded, who copied is named."""

import json
import resource

import pytest

from classroom import batch, sandbox, variants

NAME = "assignment7"
MOST_SECONDS = 5  # of CPU time for a submission: sandbox and grader


def wrong(way, mine, neighbours):
    """What is handed in instead of the right shares, part -> rows."""
    return {"turned": {part: [row[::-1] for row in rows] for part, rows in mine.items()},
            "per cent": {part: [[100 * x for x in row] for row in rows] for part, rows in mine.items()},
            "a neighbour's": neighbours,
            "unsure": {part: [[(x + 1) / (1 + len(row)) for x in row] for row in rows] for part, rows in mine.items()}}[way]


WAYS = ("turned", "per cent", "a neighbour's", "unsure")


@pytest.mark.weekly
@pytest.mark.skipif(sandbox.problem() is not None, reason=str(sandbox.problem()))
def test_forty_students_who_are_wrong_in_four_ways(tmp_path):
    students = [f"Student {number:02}" for number in range(40)]
    given = variants.read(variants.release(NAME, tmp_path, "winter", students))
    shares = [{part: [row[2] for row in sheet] for part, sheet in given.sheets[given.students[student]].items()}
              for student in students]
    for number, student in enumerate(students):
        answers = wrong(WAYS[number % 4], shares[number], shares[(number + 1) % 40])
        raw = json.loads((tmp_path / NAME / variants.folder_of(student) / f"{NAME}.ipynb").read_text(encoding="utf-8"))
        for cell in raw["cells"]:
            part = cell["metadata"].get("nbgrader", {}).get("grade_id")
            cell["source"] = f"def {part}():\n    return {answers[part]!r}" if part in answers else cell["source"]
        (tmp_path / "in" / student).mkdir(parents=True)
        (tmp_path / "in" / student / "w.ipynb").write_text(json.dumps(raw), encoding="utf-8")

    def used():
        return sum(sum(resource.getrusage(whose)[:2]) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))

    before = used()
    results = list(batch.grade(NAME, tmp_path / "in", tmp_path / "out", given=given, progress=False))
    inside = [result["cpu_seconds"] for result in results]
    each = (used() - before + sum(inside)) / len(results)
    print(f"{each:.2f} CPU-seconds a submission, {max(inside):.2f} at most in a sandbox")
    assert each < MOST_SECONDS and max(inside) < MOST_SECONDS
    assert {result["status"] for result in results} == {"graded"} and len(results) == 40
    for number, result in enumerate(results):
        way, flags = WAYS[number % 4], "; ".join(result["flags"])
        found = {test["function"]: test for test in result["tests"]}
        assert all(test["points"] is not None for test in found.values())
        if way == "a neighbour's":
            assert f"order is right for another variant: that of {students[(number + 1) % 40]}" in flags
        elif way != "unsure":
            assert found["cut"]["misconception"] == {"turned": "turned-around", "per cent": "per-cent"}[way]
        else:
            assert found["find"]["status"] == "partly" and found["find"]["points"] > 0
