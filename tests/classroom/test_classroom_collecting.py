"""Whatever a teacher has is found, the newest counts, and nothing leads out of the folder or the zip."""

import gzip
import io
import json
import os
import re
import signal
import struct
import sys
import tarfile
import time
import tracemalloc
import zipfile
from datetime import datetime
from types import SimpleNamespace

import pytest
from submissions import FULL, NAME, RIGHT, data, needs_sandbox, put, released, solved, written, zipped

from classroom import assignment, clock, code_cells, collecting, grading, notebook, zips
from classroom.collecting import NothingFound, collect
from classroom.names import kind_of
from classroom.sandbox import Limits

GOOD = data(solved())


def found(source, zone=None):
    zips.archive.cache_clear()
    submissions, refused = collect(source, NAME, set(RIGHT), zone=zone)
    return {s.student: s for s in submissions}, refused


def with_a_password():
    content = bytearray(zipped({"a.ipynb": GOOD}))
    content[6] |= 1
    content[content.index(b"PK\1\2") + 8] |= 1
    return bytes(content)


LINK = zipfile.ZipInfo("mallory/link.ipynb")
LINK.external_attr = 0o120777 << 16
OTHER = data({**solved(), "metadata": {"attention_course": {"assignment": "assignment9"}}})
DEEP = {"a.zip": zipped({"b.zip": zipped({"c.zip": zipped({"d.ipynb": GOOD})})})}
REMEDY = "of packed files .zip, .tar and .tar.gz are read, so unpack it, or pack it as .zip."
LEFT_OUT = "is not a notebook and was left out."
TWO = "Ada_12_assignsubmission_file_99_assignsubmission_file_"
FOUND = {  # what lies there, in a folder or ``zip=`` in one -> {who, with the platform's number: notebook, or words of why}
    "folders and files": (dict.fromkeys((
        "Ada Lovelace/solution (2).ipynb", "ben/deep/below/a.ipynb", "carl.ipynb", "ben/.ipynb_checkpoints/a.ipynb"), GOOD),
        {"Ada Lovelace": GOOD, "ben": GOOD, "carl": GOOD}, []),
    "other assignments": (
        {"both/mine.ipynb": GOOD, "both/other.ipynb": OTHER, "other/a.ipynb": OTHER,
         "bare/a.ipynb": (bare := data({**released(), "metadata": {}}))},
        {"both": GOOD, "other": "only one of assignment9", "bare": bare}, []),
    "a zip of Moodle, in one form of Unicode": (dict(zip={
        "Ada Lovelace_12345_assignsubmission_file_/a.ipynb": GOOD,
        "Ben O\u0301g_77_assignsubmission_file_/work.zip": zipped({"folder/b.ipynb": GOOD, "__MACOSX/._b.ipynb": b"x"}),
        "Eve_8_assignsubmission_file_/notes.txt": "no notebook"}),
        {"Ada Lovelace 12345": GOOD, "Ben Óg 77": GOOD, "Eve 8": "There is no notebook, only notes.txt"}, []),
    "underscores in Canvas, where the first two numbers count": (dict(zip=dict.fromkeys((
        "lovelaceada_101_5001_assignment1-2.ipynb", "ji_woopark_40321_700177_assignment1.ipynb",
        "de_la_cruz_LATE_40322_700178_a.ipynb", "mallory_40323_700179_hw_40324_5_a.ipynb"), GOOD)),
        {"lovelaceada 101": GOOD, "ji_woopark 40321": GOOD, "de_la_cruz 40322": GOOD, "mallory 40323": GOOD}, []),
    "several downloads": ({
        f"group {group}.zip": zipped({f"Student {n}_{n}_assignsubmission_file_/a.ipynb": GOOD for n in numbers})
        for group, numbers in (("A", "12"), ("B", "34"))}, {f"Student {n} {n}": GOOD for n in "1234"}, []),
    "students' own zips, in which nobody can be somebody else": (
        {"mallory.zip": zipped({"Student 1_1_assignsubmission_file_/a.ipynb": b"{"}), "ben.zip": zipped({"a.ipynb": GOOD})},
        {"mallory": "not a notebook", "ben": GOOD}, []),
    "who handed in no notebook in Canvas": (dict(zip={
        "lovelaceada_1_5_a.ipynb": GOOD, "byronada2_LATE_2_6_report.pdf": "x", "readme.txt": "x"}),
        {"lovelaceada 1": GOOD, "byronada2 2": "only byronada2_LATE_2_6_report.pdf"}, [f"readme.txt {LEFT_OUT}"]),
    "who handed in no notebook in a zip": (
        {"ada.zip": zipped({"a.ipynb": GOOD}), "evil.zip": zipped({"../a.ipynb": GOOD}), "bomb.zip": zipped(DEEP),
         "texts.zip": zipped(dict.fromkeys("abcdef", "")), "zoe.zip": with_a_password()},
        {"ada": GOOD, "evil": "leads out", "bomb": "a zip in a zip", "texts": "There is no notebook",
         "zoe": "The zip has a password: pack it again without one."}, ["leads out", "is a zip in a zip in a zip"]),
    "what cannot be seen": (
        {"ada.zip": zipped({}), "ben/work.zip": zipped({"folder/": b""}), "carl/.ipynb": GOOD, "good.ipynb": GOOD,
         "dora/d.zip": zipped({"__MACOSX/._a.ipynb": b"x"}), ".DS_Store": b"x", "good/.DS_Store": b"x",
         "__MACOSX/._a.ipynb": b"x"},
        {"ada": "There is no notebook, only ada.zip.", "ben": "There is no notebook", "carl": "no notebook, only .ipynb.",
         "dora": "There is no notebook", "good": GOOD}, []),
    "a class in a folder in a zip": (dict(zip={f"class/term/s{i}/a.ipynb": GOOD for i in range(3)}),
                                     {f"s{i}": GOOD for i in range(3)}, []),
    "thirty zips": ({f"student {i}.zip": zipped({"a.ipynb": GOOD}) for i in range(30)},
                    {f"student {i}": GOOD for i in range(30)}, []),
    "zips that would do harm": (dict(zip={
        "../../evil.ipynb": GOOD, "/etc/evil.ipynb": GOOD, "..\\evil.ipynb": GOOD, "C:\\evil.ipynb": GOOD,
        LINK: "/etc/passwd", "ada/a.ipynb": GOOD, "bomb/a.ipynb": bytes(notebook.LARGEST + 10),
        "damaged/a.zip": b"PK\3\4 no zip", "bomb2/a.zip": zipped(DEEP)}),
        {"ada": GOOD, "bomb": "refused: .*zip bomb", "bomb2": "refused: ", "damaged": "unreadable: The zip is damaged"},
        ["leads out"] * 5 + ["is not a zip that can be opened", "zip in a zip"]),
    "other JSON, and other kinds with their remedy": (
        {file: GOOD if file.endswith("ipynb") else b'{"name": 1}' for file in (
            "Ada/w.ipynb", "Ada/package.json", "Ben/w.rar", "Cid/w.py", "Dee/w.tar.xz", "Eve/w.pdf", "Fay/w.rar (1)",
            "package.json", "w.7z")},
        {"Ada": GOOD, "Ben": f"There is no notebook, only w.rar. w.rar: {REMEDY}", "Eve": "that ends in .ipynb",
         "Cid": "a script without a function that is asked for", "Dee": ".tar.gz are read", "Fay": ".tar.gz are read"},
        [f"package.json {LEFT_OUT}", f"w.7z {LEFT_OUT} w.7z: {REMEDY}"]),
    "a name that looks like Moodle's": (dict(zip={
        "Ada_12_assignsubmission_file_/a.ipynb": GOOD, f"{TWO}/a.ipynb": GOOD,
        f"Bob_7_assignsubmission_file_{TWO}.ipynb": GOOD,
        f"Bob_7_assignsubmission_file_{TWO}.zip": zipped({"a.ipynb": GOOD}),
        "Ada_\u0661\u0662_assignsubmission_file_/a.ipynb": GOOD}),
        {"Ada 12": GOOD, TWO: GOOD, f"Bob_7_assignsubmission_file_{TWO}": GOOD,
         "Ada_\u0661\u0662": GOOD}, []),
}


@pytest.mark.parametrize("case", FOUND)
def test_who_handed_in_what(case, tmp_path):
    files, expected, refusals = FOUND[case]
    source = tmp_path / "in"
    if "zip" in files:
        zipped(files["zip"], source)
    else:
        put(source, files)
    before = set(tmp_path.rglob("*"))
    students, refused = found(source)
    assert set(tmp_path.rglob("*")) == before, "nothing is unpacked"
    there = {f"{one.student} {one.id}".strip(): one for one in students.values()}
    assert there.keys() == expected.keys()
    for student, what in expected.items():
        one = there[student]
        notes = [note for note in one.notes if one.id or "2 notebooks were handed in" not in note]
        assert one.key.isascii() and notes == [collecting.LATE] * ("_LATE_" in one.folder), one.notes
        if isinstance(what, bytes):
            assert one.read() == what and not one.problem, one.problem
        else:
            assert re.search(what.replace("(", r"\("), f"{one.status}: {one.problem}"), one.problem
    assert len(refused) == len(refusals) and all(
        any(words in sentence for sentence in refused) for words in refusals), refused


def test_newest_counts_and_is_told(tmp_path):
    newer = data(solved("x = 1"))
    for name, content, age in (("z.ipynb", GOOD, 100), ("a.ipynb", newer, 50), ("broken.ipynb", b"{", 10)):
        put(tmp_path / "ada", {name: content})
        os.utime(tmp_path / "ada" / name, (time.time() - age,) * 2)
    students, _ = found(tmp_path)
    assert students["ada"].read() == newer
    assert "2 notebooks" in students["ada"].notes[0] and "a.ipynb" in students["ada"].notes[0]
    assert "broken.ipynb" in students["ada"].notes[1]


def test_of_one_time_the_number_of_the_file_says_which_is_newer(tmp_path):
    """What Canvas packs has the time of the download, and the newer file may hold less work: fewer functions, or answers."""
    answers = ("answer-measurement", "answer-cosine")
    less = data(written(released(), dict.fromkeys(answers, "Because.")))
    unanswered = data(written(solved(), dict.fromkeys(answers, assignment.ANSWER)))
    zipped({"lovelaceada_17_502_work-1.ipynb": less, "lovelaceada_17_98_work.ipynb": GOOD, "bb_18_3_a.ipynb": GOOD},
           tmp_path / "submissions.zip")
    ada = found(tmp_path / "submissions.zip")[0]["lovelaceada"]
    assert ada.read() == less and [one.read() for one in ada.earlier] == [GOOD]
    assert ada.notes == ["2 notebooks were handed in; the newest, by Canvas' number 502 in its name, counts: "
                         "lovelaceada_17_502_work-1.ipynb."]
    for names, newest, how in ((("work.ipynb", "work-2.ipynb", "work-10.ipynb"), "work-10.ipynb", "number at the end"),
                               (("work.ipynb", "work (1).ipynb", "work (2).ipynb"), "work (2).ipynb", "number at the end"),
                               (("a.ipynb", "work-10.ipynb", "work-2.ipynb"), "a.ipynb", "one with most work")):
        for name in names:
            content = unanswered if name == "work-2.ipynb" else less if name in ("work-10.ipynb", "work (2).ipynb") else GOOD
            put(tmp_path / newest / "ada", {name: content})
            os.utime(tmp_path / newest / "ada" / name, (1e9, 1e9))
        ada = found(tmp_path / newest)[0]["ada"]
        assert how in ada.notes[0] and ada.notes[0].endswith(f" {newest}."), ada.notes


@pytest.mark.parametrize("place", ["America/Los_Angeles", "Asia/Tokyo"])
def test_the_time_of_a_file_in_a_zip(tmp_path, place):
    """Exactly where the zip has it, wherever the teacher is. A student's archive counts by its own date and not by one
    inside it; one of a platform, of a folder, by those inside it."""
    zone = clock.zone(place)
    exact, plain = 1_825_113_661, (2027, 11, 2, 10, 0, 2)
    dated = zipfile.ZipInfo("Ada_1_assignsubmission_file_/a.ipynb", plain)
    dated.extra = struct.pack("<HHBi", 0x5455, 5, 1, exact)
    bare = zipfile.ZipInfo("Ben_2_assignsubmission_file_/a.ipynb", plain)
    inner = zipped({zipfile.ZipInfo("a.ipynb"): GOOD})  # without a date
    packed = zipfile.ZipInfo("Cy_3_assignsubmission_file_/work.zip", plain)
    none = zipfile.ZipInfo("Dee_4_assignsubmission_file_/a.ipynb")
    early, late = tarred({"work/a.ipynb": GOOD}), zipfile.ZipInfo("Gil_6_assignsubmission_file_/w.tar.gz", plain)
    undated = zipfile.ZipInfo("Hal_7_assignsubmission_file_/w.tar.gz")
    zipped({dated: GOOD, bare: GOOD, packed: inner, none: GOOD, late: early, undated: early}, tmp_path / "in.zip")
    put(tmp_path / "platform", {"all.zip": (tmp_path / "in.zip").read_bytes()})
    put(tmp_path / "folder", {"Flo/a.ipynb": GOOD, "Eve/work.zip": inner})
    os.utime(tmp_path / "folder" / "Eve" / "work.zip", (exact, exact))
    there = datetime(*plain, tzinfo=zone).timestamp()
    times = {"Ada": exact, "Ben": there, "Cy": there, "Dee": 0, "Gil": there, "Hal": exact}
    assert {name: one.modified for name, one in found(tmp_path / "in.zip", zone)[0].items()} == times
    os.utime(tmp_path / "platform" / "all.zip", (exact + 9, exact + 9))
    assert {name: one.modified for name, one in found(tmp_path / "platform", zone)[0].items()} == times | {
        "Dee": exact + 9, "Hal": exact + 9}
    assert found(tmp_path / "folder", zone)[0]["Eve"].modified == exact


def test_one_student_cannot_keep_the_grader_busy(tmp_path, monkeypatch):
    monkeypatch.setattr(zips, "MOST_FILES", 1000)
    zipped({f"{i:03}.ipynb": b"{" for i in range(500)}, tmp_path / "many.zip")
    zipped({f"{i}.ipynb": b"" for i in range(1500)}, tmp_path / "most.zip")
    zipped({f"\x1b[2J{i}.txt": b"" for i in range(200)} | {"a.ipynb": GOOD}, tmp_path / "all.zip")
    students, refused = found(tmp_path)
    assert "newest 20" in students["many"].notes[0] and "1,500 files" in students["most"].problem
    _, refused = found(tmp_path / "all.zip")
    assert len(refused) == 51 and refused[-1] == "150 more." and all(sentence.isprintable() for sentence in refused)
    inner = zipped({f"{i}.ipynb": GOOD for i in range(50)})
    monkeypatch.setattr(zips, "LARGEST_LIST", 1000)
    zipped({"ada/a.zip": inner}, tmp_path / "listed.zip")
    assert "too long" in found(tmp_path / "listed.zip")[0]["ada"].problem


@pytest.mark.parametrize("wrapper", ["", "class/"])
def test_one_students_endless_json_takes_nobody_elses_place(wrapper, tmp_path):
    (tmp_path / "class.zip").write_bytes(zipped({
        **{f"{wrapper}mallory/{i}/data.json": b'{"cells": []}' for i in range(300)}, f"{wrapper}zoe/w.json": GOOD}))
    students, _ = found(tmp_path / "class.zip")
    assert students["zoe"].read() == GOOD and not students["zoe"].problem and "mallory" in students


def test_what_would_take_memory_is_not_read():
    much = {"cells": [{"cell_type": "code", "source": "x = 1\n" * 15_000}] * 5}
    for content, words in ((b'{"cells": [' + b"[]," * 2_000_001 + b"[]]}", "lists"), (json.dumps(much).encode(), "code")):
        with pytest.raises(notebook.Unreadable, match=words):
            notebook.read(content)


def imports_of(*sources):
    """What looks for the modules to import, before any code is run."""
    session = grading.Session(list(sources), Limits(), True)
    session.sandbox = SimpleNamespace(ask=lambda *_, **limits: {})
    session._load()


@pytest.mark.parametrize("hostile", [
    lambda: code_cells.plain_python("%x 1\n" * 3000 + "("), lambda: code_cells.plain_python("%%time\n" * 10_000),
    lambda: code_cells.plain_python("-" * 90_000 + "1"), lambda: code_cells.plain_python("(" * 90_000),
    lambda: code_cells.plain_python("x" * 200_000), lambda: code_cells.plain_python("### BEGIN HIDDEN TESTS\n" * 4_000),
    lambda: code_cells.plain_cells(["a, b = !ls\n" * 100] * 5), lambda: imports_of(*["x = 1" + "\n" * 90_000 + "y = 2"] * 4),
    lambda: kind_of("w.ipynb" + " 1" * 30_000 + "x"), lambda: kind_of("w.ipynb" + ".txt" * 20_000 + "!"),
    lambda: kind_of("a" * 65_000)])
def test_hostile_text_takes_the_grader_no_time(hostile):
    """Nothing limits the grader's own process; the work is compared with that of an ordinary long cell."""
    begin = time.process_time()
    code_cells.plain_python("x = [1, 2, 3]\n" * 7_000)
    ordinary, begin = time.process_time() - begin, time.process_time()
    hostile()
    assert time.process_time() - begin < 50 * ordinary


@pytest.mark.skipif(os.name != "posix", reason="this system has no such links and pipes")
def test_links_are_not_followed(tmp_path):
    secret, top = tmp_path / "secret", tmp_path / "in"
    put(secret, {"other.ipynb": GOOD})
    (top / "mallory").mkdir(parents=True)
    (top / "mallory" / "a.ipynb").symlink_to(secret / "other.ipynb")
    (top / "folder").symlink_to(secret)
    (top / "eve").mkdir()
    for student in ("mallory", "eve"):
        os.mkfifo(top / student / "pipe.ipynb")
    students, refused = found(top)
    assert "link" in students["mallory"].problem and sorted(students) == ["eve", "mallory"] and len(refused) == 2
    assert students["eve"].problem == "There is no notebook, only pipe.ipynb."


def test_a_thousand_names_stay_apart(tmp_path):
    for name in ("Ana Maria", "Ana_Maria", "Ana  Maria", "..a", "~", "@", "x" * 200, "x" * 201, "00123", "1E5", "李" * 60,
                 "An\u0303a Mari\u0301a", "Ana_Maria-5f2b0c11", "Ana_Maria_7", "-rf", "a\nb", "\x1b[2J", "\u202egpj"):
        (tmp_path / f"{name}.ipynb").write_bytes(GOOD)
    submissions, _ = collect(tmp_path, NAME, set(RIGHT))
    keys = [s.key for s in submissions]
    assert len({key.casefold() for key in keys}) == len(keys) == 17  # a file whose name begins with a dot is nobody's
    assert all(key.isascii() and len(key) < 120 and not key.replace(".", "").isdigit() for key in keys)
    assert all(key and "/" not in key and not key.startswith(".") for key in keys)


@pytest.mark.parametrize("content", [b"", b"PK\5\6", b"hello"])
def test_what_is_no_zip_is_told(tmp_path, content):
    (tmp_path / "a.zip").write_bytes(content)
    with pytest.raises(NothingFound, match="no notebook"):
        collect(tmp_path / "a.zip", NAME, set(RIGHT))
    with pytest.raises(NothingFound, match="does not exist"):
        collect(tmp_path / "b.zip", NAME, set(RIGHT))


# ---------------------------------------------------------------- found by damaged submissions, and by hand


@pytest.mark.skipif(os.name != "posix", reason="names of files are text here")
def test_names_that_are_not_utf_8_stay_two(tmp_path):
    for name in (b"\xff.ipynb", b"\xfe.ipynb", "\u202ea.ipynb".encode(), "\u202da.ipynb".encode()):
        with open(os.path.join(os.fsencode(tmp_path), name), "wb") as file:
            file.write(GOOD)
    students, _ = found(tmp_path)
    assert len(students) == 4 and all(name.isascii() and not s.notes for name, s in students.items())


def test_names_that_differ_in_capitals_get_two_files_on_windows(tmp_path):
    zipped({"Ada.ipynb": GOOD, "ada.ipynb": GOOD, "Ben.ipynb": GOOD, "con.ipynb": GOOD}, tmp_path / "all.zip")
    keys = {name: s.key for name, s in found(tmp_path / "all.zip")[0].items()}
    assert len({key.casefold() for key in keys.values()}) == 4
    assert keys["Ben"] == "Ben" and keys["con"].startswith("con-")


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="this system has no such permissions")
def test_a_folder_that_may_not_be_read_costs_only_itself(tmp_path):
    for student in ("closed", "listed", "good", "out"):
        (tmp_path / "in" / student / "below").mkdir(parents=True)
        (tmp_path / "in" / student / "a.ipynb").write_bytes(GOOD)
    (tmp_path / "in" / "closed").chmod(0)
    (tmp_path / "in" / "listed").chmod(0o444)
    me, top = os.geteuid(), [tmp_path, *tmp_path.parents][:-2]
    modes = {folder: folder.stat().st_mode & 0o7777 for folder in top}
    try:
        if me == 0:  # who may read everything
            for folder in top:
                folder.chmod(0o755)
            os.seteuid(61_234)
        submissions, _ = collect(tmp_path / "in", NAME, set(RIGHT), leave_out=tmp_path / "in" / "out")
        problems = {s.student: s.problem for s in submissions}
    finally:
        os.seteuid(me)
        for folder, mode in modes.items() if me == 0 else ():
            folder.chmod(mode)
        for student in ("closed", "listed"):
            (tmp_path / "in" / student).chmod(0o755)
    assert re.fullmatch(r"The (folder|file) cannot be read \(Permission denied\)\.", problems.pop("listed"))
    assert problems == {"closed": "The folder cannot be read (Permission denied).", "good": ""}


def test_small_zips_that_hold_endless_zips_are_not_read(tmp_path, monkeypatch):
    """657 bytes took half a minute and half a gigabyte of the grader's own process."""
    bombs = zipped({f"{i}.zip": bytes(5_000_000) for i in range(3)})
    zipped({"a.ipynb": GOOD, "b.zip": bombs}, tmp_path / "mallory.zip")
    zipped({"a.ipynb": GOOD}, tmp_path / "ada.zip")
    students, refused = found(tmp_path)
    assert not students["mallory"].problem and len(refused) == 3
    zipped({"b.zip": bombs}, tmp_path / "mallory.zip")
    assert "far too tightly" in found(tmp_path)[0]["mallory"].problem
    monkeypatch.setattr(zips, "MOST_ZIPS", 5)
    one = zipped({"a.ipynb": GOOD})
    (tmp_path / "mallory.zip").write_bytes(zipped({f"{i}/b.zip": one for i in range(9)}))
    (tmp_path / "ada.zip").write_bytes(zipped({"b.zip": one}))
    students, refused = found(tmp_path)
    assert [s for s in refused if "more than 5 zips" in s] and students["ada"].read() == GOOD
    assert students["mallory"].notes == [
        "5 notebooks were handed in; the one with most work of the 5 newest, which have one time, counts: a.ipynb."]
    monkeypatch.setattr(zips, "MOST_FILES", 12)
    seven = zipped({f"{i}.ipynb": b"" for i in range(7)})
    (tmp_path / "mallory.zip").write_bytes(zipped({"1.zip": seven, "2.zip": seven}))
    assert any("others in the same zip hold more than 12 files" in sentence for sentence in found(tmp_path)[1])


def packed_with(method, members):
    """A zip whose members are marked as packed with this method; for those that Python knows, they are."""
    real = method if method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA) else 0
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", real) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        for member in archive.infolist():
            member.compress_type = method  # written into the list of files at the end, which is what is read
    return buffer.getvalue()


@pytest.mark.parametrize("method", [*zips.OTHERS, 97, 0xFFFF])
def test_what_is_not_deflated_is_refused_by_name(method, tmp_path):
    """A bzip2 of 810 bytes made 1.8 GB in the teacher's own process: Python bounds it only after unpacking."""
    bomb = packed_with(method, {"a.ipynb": bytes(notebook.LARGEST + 1_000_000)})
    inside = packed_with(method, {"b.zip": zipped({"a.ipynb": GOOD})})
    small = bomb if len(bomb) < 10**6 else packed_with(method, {"a.ipynb": b"{}"})
    put(tmp_path, {"mallory.zip": bomb, "nested.zip": zipped({"b.zip": small}), "inside.zip": inside,
                   "ada.zip": zipped({"a.ipynb": GOOD})})
    del bomb, small
    tracemalloc.start()
    try:
        students, _ = found(tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 20e6, "bytes were unpacked before the method was looked at"
    finally:
        tracemalloc.stop()
    name = zips.OTHERS.get(method, f"method {method}")
    for student in ("mallory", "nested", "inside"):
        assert students[student].status == "refused" and f"packed with {name}," in students[student].problem, student
    assert students["ada"].read() == GOOD


@pytest.mark.parametrize("size", [0, 5, notebook.LARGEST, 2**31])
def test_a_zip_that_lies_about_sizes_is_read_no_further_than_its_limit(size, tmp_path):
    content = bytearray(zipped({"a.ipynb": bytes(notebook.LARGEST + 1_000_000)}))
    place = content.index(b"PK\1\2") + 24
    content[place:place + 4] = struct.pack("<I", size)
    (tmp_path / "mallory.zip").write_bytes(content)
    (tmp_path / "ada.zip").write_bytes(zipped({"a.ipynb": GOOD}))
    tracemalloc.start()
    try:
        students, _ = found(tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 3 * notebook.LARGEST
    finally:
        tracemalloc.stop()
    assert students["mallory"].problem and students["ada"].read() == GOOD


def test_zips_in_a_zip_are_counted_together_by_their_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(zips, "MOST_BYTES", 2_000_000)
    filler = zipped({"a.ipynb": GOOD, "x.txt": os.urandom(700_000)})
    (tmp_path / "mallory.zip").write_bytes(zipped({f"{i}.zip": filler for i in range(9)}))
    (tmp_path / "ada.zip").write_bytes(zipped({"1.zip": filler}))
    students, refused = found(tmp_path)
    assert not students["ada"].problem and "3 notebooks were handed in" in students["mallory"].notes[0]
    assert sum("have more than 2 MB together" in sentence for sentence in refused) == 6
    monkeypatch.setattr(zips, "MOST_BYTES", 3 * len(GOOD))
    many = zipped({f"{i}.ipynb": GOOD for i in range(9)})
    (tmp_path / "mallory.zip").write_bytes(many)
    (tmp_path / "ada.zip").write_bytes(zipped({"a.ipynb": GOOD}))
    students, _ = found(tmp_path)
    assert "9 large notebooks were handed in; only the newest 3 were looked at." in students["mallory"].notes


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system interrupts nothing")
@pytest.mark.parametrize("burden", ["time", "memory"])
def test_who_takes_too_long_to_be_read_costs_only_the_own_submission(burden, tmp_path, monkeypatch):
    honest = notebook.read
    if burden == "memory" and not sys.platform.startswith("linux"):
        pytest.skip("address space is limited on Linux")

    def read(data):
        if b"mallory" in data and burden == "time":
            while True:
                pass
        return bytearray(10**9) if b"mallory" in data else honest(data)

    monkeypatch.setattr(notebook, "read", read)
    monkeypatch.setattr(collecting, "READING_SECONDS", 1)
    monkeypatch.setattr(collecting, "READING_MEMORY", 500_000_000)
    put(tmp_path, {"ada/a.ipynb": GOOD, "mallory/a.ipynb": b"mallory", "zoe/a.ipynb": GOOD})
    students, _ = found(tmp_path)
    assert students["mallory"].problem and students["mallory"].file == "mallory/a.ipynb"
    assert not students["ada"].problem and not students["zoe"].problem
    bytearray(600_000_000)  # the limit is gone


def test_sixty_students_zips_in_a_zip_do_not_share_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(zips, "MOST_ZIPS", 2)
    for form in ("class/s{}.zip", "s{}.zip", "class/Ada_{}_assignsubmission_file_/a.zip"):
        zipped({form.format(i): zipped({"a.ipynb": GOOD}) for i in range(60)}, tmp_path / "all.zip")
        zips.archive.cache_clear()
        students, refused = collect(tmp_path / "all.zip", NAME, set(RIGHT))
        assert len(students) == 60 and not refused and not any(s.problem for s in students)


def test_the_length_of_a_zips_list_is_looked_up_where_zipfile_does(tmp_path, monkeypatch):
    """A zip64 has it in another record, and the record at the end may hold what looks like one more."""
    monkeypatch.setattr(zips, "LARGEST_LIST", 1_000)
    monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 10)
    zipped({f"{i}.ipynb": GOOD for i in range(30)}, tmp_path / "zip64.zip")
    content = bytearray((tmp_path / "zip64.zip").read_bytes())
    assert content[-42:-38] == b"PK\6\7"
    content[-10:-6] = bytes(4)  # the length in the old record
    (tmp_path / "zip64.zip").write_bytes(content)
    inside = content[:-98] + b"PK\5\6PK\5\6" + content[-14:]
    (tmp_path / "inside.zip").write_bytes(inside)
    students, _ = found(tmp_path)
    assert "too long" in students["zip64"].problem and students["inside"].problem


def test_what_looks_like_a_zips_end_in_a_students_file_is_not_taken_for_it(tmp_path):
    """A file that is stored as it is, last in the class's zip, must not cost the whole class its work."""
    forged = b"PK\5\6" + bytes(8) + b"\xff" * 8 + bytes(2) + b"PK\6\6" + b"\xff" * 52
    with zipfile.ZipFile(tmp_path / "class.zip", "w") as archive:
        archive.writestr("ada/a.ipynb", GOOD)
        archive.writestr("zoe/forged.bin", forged)
        archive.writestr("zoe/z.zip", forged)
    students, refused = found(tmp_path / "class.zip")
    assert students["ada"].problem == "" and students["zoe"].problem
    assert refused == ["zoe/z.zip was left out: The zip's list of files is too long."]


def test_endless_names_are_cut(tmp_path):
    zipped({f"{'x' * 60_000}_7_assignsubmission_file_/{'y' * 5_000}.ipynb": GOOD, "good.ipynb": GOOD}, tmp_path / "all.zip")
    students, _ = found(tmp_path / "all.zip")
    assert len(students) == 2 and max(len(s.student + s.file) for s in students.values()) < 1_000


def test_the_id_of_another_assignment_is_plain_text(tmp_path):
    for value in ("assignment1\0", "a\u202e\ud800\x1b[2J\n=1", {"a": [1]}, ["assignment1"], 10**400):
        raw = {**solved(), "metadata": {"attention_course": {"assignment": value}}}
        (tmp_path / "ada.ipynb").write_bytes(data(raw))
        problem = found(tmp_path)[0]["ada"].problem
        assert problem.isprintable() and bool(problem) == isinstance(value, str)


@pytest.mark.parametrize("source", ["def f(x, x): return 1", "def f(a=1, *a): return 1", "def f(x, *, x=2): return 1"])
def test_a_name_twice_in_a_signature_costs_only_that_function(source):
    """It made the grader stop, and the whole submission was not graded."""
    assert code_cells.signature(code_cells.parse(source).body[0]) is None


STUB = "def f(x):\n    raise NotImplementedError()"


def test_a_stub_copied_below_is_not_run():
    sources = ["def f(x):\n    return x", "import a\ndef f(x):\n    raise NotImplementedError()", "def g(x): ..."]
    assert code_cells.without_stubs(sources) == sources
    assert code_cells.without_stubs([sources[0], "def f(x):\n    '''Doc'''\n    ..."]) == [sources[0], None]
    for other in ("f = lambda x: x", "from mine import g as f", "class f: pass", "(f, g) = 1, 2"):
        assert code_cells.without_stubs([other, sources[1]]) == [other, sources[1]] == [other, "import a\n" + STUB]
        assert code_cells.without_stubs([other, STUB]) == [other, None]


def test_reading_never_raises_anything_else():
    for content in (b"null", b"[]", b'{"cells": 3}', b'{"cells": [3, null, {}]}', b'{"cells": [{"source": [1, "x"]}]}',
                    b'{"metadata": 3, "cells": [{"metadata": 4, "cell_type": "code", "source": {}}]}',
                    b'{"worksheets": [1]}', json.dumps({"cells": [{}] * 3000}).encode(),
                    b'{"cells": [{"source": 1e400}]}', b"1" * 5000):
        try:
            assert isinstance(notebook.read(content).code, list)
        except notebook.Unreadable as error:
            assert str(error).endswith(".")


ENDINGS = ("w.ipynb", "w.IPYNB", "w.ipynb.txt", "w.ipynb.json", "w.json", "w.JSON", "w.ipynb (1)", "w (1).ipynb",
           "w(2).ipynb.txt", "w.ipynb.TXT", "w.ipynb.bin", "w.ipynb.download", "w.ipynb - Copy", "w.ipynb 2",
           "w.ipynb.json.txt", "w.zip", "w.ZIP", "w.zip (1)", "w.zip.download")


@pytest.mark.parametrize("name", ENDINGS)
@pytest.mark.parametrize("packed", [False, True])
def test_endings_that_browsers_and_systems_add_are_read(tmp_path, name, packed):
    content = zipped({"inner.ipynb.txt": GOOD}) if "zip" in name.lower() else b"\xef\xbb\xbf" + GOOD
    if packed:
        zipped({f"Ada Lovelace/{name}": content, "Ben/w.ipynb": GOOD}, tmp_path / "in.zip")
    put(tmp_path / "in", {f"Ada Lovelace/{name}": content, "Ben/w.ipynb": GOOD, f"Zoe{name[1:]}": content})
    students, refused = found(tmp_path / ("in.zip" if packed else "in"))
    ada = students["Ada Lovelace"]
    assert not ada.problem and ada.read() in (GOOD, content) and not refused
    assert packed or {"Ada Lovelace", "Ben"} < set(students) and not students[max(students)].problem
    assert packed or max(students) in ("Zoe", "Zoe (1)", "Zoe(2)")


def tarred(members, packed="gz"):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=f"w:{packed}") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            if isinstance(content, str):  # where a link leads
                info.type, info.linkname, content = tarfile.SYMTYPE, content, b""
            info.size, info.mtime = len(content), 1_825_113_661
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


@pytest.mark.parametrize("inside", [False, True])
def test_a_tar_is_read_as_a_zip_is(tmp_path, inside):
    """In a folder and in a platform's zip; links, damage, bombs and what leads out are refused."""
    good = {"work/a.ipynb": GOOD}
    far = b"\0" * (zips.LARGEST_ZIP + 1)
    files = {"Ada/w.tar.gz": tarred(good), "Ben/w.tgz (1)": tarred(good), "Cid/w.tar": tarred(good, ""),
             "Dee/w.tar.gz": tarred({"../a.ipynb": GOOD}), "Eve/w.tar.gz": tarred({"a.ipynb": "/etc/passwd"}),
             "Fay/w.tar.gz": tarred(good)[:-2000], "Gus/w.tar.gz": gzip.compress(far), "Hal/w.tar.gz": gzip.compress(GOOD),
             "Ida/w.tar.gz": tarred({"b.zip": zipped(good), "\udcff.txt": b"x"}), "Jim/w.tar.gz": b"",
             "Kim/w.tar": tarred({name: b"" for name in map(str, range(40))} | good, "")}
    if inside:
        zipped(files, tmp_path / "in.zip")
    else:
        put(tmp_path / "in", files)
    students, refused = found(tmp_path / ("in.zip" if inside else "in"))
    for student in ("Ada", "Ben", "Cid", "Ida", "Kim"):
        assert students[student].read() == GOOD, students[student].problem
    for student, words in (("Dee", "leads out"), ("Eve", "leads out"), ("Fay", "damaged"), ("Hal", "no .tar, or is damaged"),
                           ("Gus", "zip bomb"), ("Jim", "damaged")):
        assert words in students[student].problem and not students[student].read, (student, students[student].problem)
    assert len(refused) == 6


@needs_sandbox
def test_a_script_counts_where_there_is_no_notebook(tmp_path):
    """With its cells, of JupyterLab's or jupytext's form, or none; one that is damaged costs only itself."""
    code = [RIGHT[name].strip() for name in RIGHT]
    wide = "# é\nimport numpy as np\nfrom helpers.embeddings import cosine_similarity\n"
    question = next(q.text for q in assignment.load(NAME).questions)
    asked = "\n".join(f"# {line}" for line in question.split("\n"))
    jupytext = "# ---\n# jupyter:\n# ---\n\n# %%\n" + "\n\n# %%\n".join([wide, "1 / 0", *code]) + (
        f"\n# %% [markdown]\n{asked}\n\n# %% [markdown]\n# Because.\n")
    exported = "#!/usr/bin/env python\n# coding: utf-8\n\n# In[1]:\n\n\n" + "\n\n# In[ ]:\n\n\n".join([wide, "1 / 0", *code])
    put(tmp_path, {"Ada/w.py": jupytext.encode(), "Ben/w.py": exported.encode(),
                   "Cid/w.py": "\n".join([wide, *code]).encode(), "Dee/w.ipynb": GOOD,
                   "Dee/helper.py": code[0].encode(), "Eve.py": exported.encode("latin-1")})
    students, refused = found(tmp_path)
    assert sorted(students) == ["Ada", "Ben", "Cid", "Dee", "Eve"] and not refused
    assert students["Dee"].read() == GOOD and not students["Dee"].notes
    for name in ("Ada", "Ben", "Cid", "Eve"):
        assert "is a script, and no notebook" in students[name].notes[0]
    for name in ("Ada", "Cid"):
        result = grading.grade_one(students[name].read(), assignment.load(NAME))
        assert sum(test["points"] for test in result["tests"]) == FULL, result
        assert ("Because." in (result["answers"][0]["text"] or "")) == (name == "Ada")
        assert any("ZeroDivisionError" in note for note in result["notes"]) == (name == "Ada")
