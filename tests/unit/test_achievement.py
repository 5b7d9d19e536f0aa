"""The record of what a learner has done: what the file says and no more, as one page that needs nothing else."""

import datetime
import hashlib
import json
import re

import pytest

from helpers.page import achievement, inventory
from helpers.page.course import LESSONS

DAY = datetime.date(2027, 10, 31)


def answered(before, after):
    """The inventory's section: the first ``before``, and ``after``, of its questions right, the others open."""
    known = {"seed": 1, "before": "done", "after": "done"}
    for when, n in (("before", before), ("after", after)):
        for i, question in enumerate(inventory.items()):
            right = "right" if i < n else None
            known[f"{when} {question.id}"] = [right, right if question.reasons else None]
    return known


def words(html):
    return " ".join(re.sub(r"<style>.*?</style>|<[^>]+>", " ", html, flags=re.DOTALL).split())


def test_it_says_what_has_been_passed_and_gained(file):
    file.write_text(json.dumps({
        "exercises": dict.fromkeys([*LESSONS["02"].exercises, "rotate", "no_longer_there"], "passed"),
        "predictions": {"02-a": "x", "02-b": "y", "05-a": "z"}, "inventory": answered(6, 18)}), encoding="utf-8")
    said = words(achievement.page("Ada Lovelace", today=DAY))
    everything = sum(len(lesson.exercises) for lesson in LESSONS.values())
    assert f"4 of {everything} exercises passed, all of them in 1 of {len(LESSONS) - 1} lessons; 3 predictions made." in said
    assert "31 October 2027" in said
    assert "02 · Attention as a weighted average 3 of 3 · 2 predictions softmax, self_attention, attention_entropy" in said
    assert "08 · Positional encoding 1 of 3 rotate" in said and "05 · Scaling 0 of 3 · 1 prediction" in said
    assert said.count("not begun") == len(LESSONS) - 3 and "no_longer_there" not in said
    assert "6 of 24 18 of 24" in said and "normalised gain is 67%" in said, "12 of the 18 that were to be gained"
    assert "proves nothing" in said and "Signature of a teacher" in said


@pytest.mark.parametrize(("known", "there", "absent"), [
    ({}, "Not taken twice", "of 24"),
    ({k: v for k, v in answered(3, 0).items() if not k.startswith("after")}, "Not taken twice", "of 24"),
    ({k: v for k, v in answered(3, 9).items() if k != "before"}, "9 of 24", "normalised"),
    (answered(9, 3), "9 of 24 3 of 24", "normalised"),
    (answered(24, 24), "24 of 24 24 of 24", "normalised")])
def test_a_gain_is_told_only_where_there_is_one(file, known, there, absent):
    file.write_text(json.dumps({"inventory": known}), encoding="utf-8")
    said = words(achievement.page(today=DAY))
    assert there in said and absent not in said and "0 of " in said


def test_it_needs_nothing_else_and_what_is_written_is_text(file, tmp_path):
    html = achievement.page("<script>alert(1)</script>", ["<b>bold</b>", str(tmp_path), "\0"], DAY)
    assert "<script" not in html and "<b>bold" not in html and "&lt;b&gt;bold" in html
    assert not re.search(r"(?:src|href)=|url\(|@import", html)
    assert "a line for a name" in achievement.page(today=DAY)


def test_a_file_has_its_size_and_its_digest(file, tmp_path):
    (tmp_path / "my_find.html").write_bytes(b"x" * 20_000)
    said = words(achievement.page(made=[str(tmp_path / "my_find.html"), "a reward"], today=DAY))
    assert f"my_find.html 20 kB, SHA-256 {hashlib.sha256(b'x' * 20_000).hexdigest()} a reward" in said
    assert str(tmp_path) not in said


def test_it_is_saved_where_it_is_said_and_only_for_a_learner(file, pages, tmp_path, monkeypatch):
    achievement.save(tmp_path / "my_record.html", "Ada")
    assert "<h1>Ada</h1>" in (tmp_path / "my_record.html").read_text(encoding="utf-8")
    assert str(tmp_path / "my_record.html") in pages[0][1]
    with pytest.raises(ValueError, match=r"A page's name ends in .html, for example my_record.html; it is 'my_record'.$"):
        achievement.save("my_record")
    with pytest.raises(ValueError, match="is a list"):
        achievement.save(made="a reward of my own")
    monkeypatch.setenv("ATTENTION_COURSE_PROGRESS", "off")
    achievement.save(tmp_path / "other.html")
    assert "In your own copy" in pages[-1][1] and not (tmp_path / "other.html").exists()
