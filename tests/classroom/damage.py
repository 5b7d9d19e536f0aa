"""Damaged submissions from a seed: the same seed always gives the same one, so that a failure can be repeated.

    damaged(1234).words     what was done to it
    damaged(1234).files     what lies in the student's folder
"""

import copy
import io
import json
import os
import random
import stat
import struct
import zipfile
from dataclasses import dataclass, field

from submissions import RIGHT, cell, data, from_colab, old, released, solved

WIDE = "a\u0301\u202e\u2066\u200f\ufeff\0\x1b[2J\ud800\U0001f600\u2028\x85<script>alert(1)</script>=1+1\t\r\n;'\""
NUMBERS = (0, -1, 2**63, -2**200, 1e308, 1.5, float("nan"), float("inf"), float("-inf"), True)
ODD = (None, "", "x", "4", WIDE, "code", [], {}, [[]], [1, 2], [None, {}], {"a": {"b": [WIDE]}}, ["a", "b\n"], *NUMBERS)


@dataclass
class Damaged:
    """``files``: pairs of a path and bytes, "link", "pipe" or "socket"; ``runs``: the code differs, so it is worth a
    sandbox."""

    seed: int
    words: str = ""
    files: list = field(default_factory=list)
    runs: bool = False

    @property
    def student(self):
        return f"s{self.seed}"

    def put(self, top):
        """Write it below the folder ``top``."""
        for path, content in self.files:
            path = os.path.join(os.fsencode(top), os.fsencode(path))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if isinstance(content, bytes):
                with open(path, "wb") as file:
                    file.write(content)
            elif content == "link":
                os.symlink("/etc/passwd", path)
            elif content == "pipe":
                os.mkfifo(path)
            else:
                os.mknod(path, stat.S_IFSOCK | 0o600)


def damaged(seed):
    rng = random.Random(seed)
    made = Damaged(seed)
    how = rng.choices((in_bytes, in_structure, in_code, in_containers), (28, 30, 27, 15))[0]
    made.words = how.__name__
    content = how(rng, made)
    if content is not None:
        name = rng.choice(("a", "assignment1 (2)", "Lösung", " "))
        name = f"{made.student}.ipynb" if rng.random() < 0.3 else f"{made.student}/{name}.ipynb"
        made.files = [(name, content)]
    return made


def some_notebook(rng):
    return rng.choice((solved, solved, solved, released, lambda: old(solved()), lambda: from_colab(solved())))()


# ---------------------------------------------------------------- bytes


def cut(rng, content):
    return rng.choice((content[:(at := rng.randrange(len(content) + 1))], content[at:]))


def flipped(rng, content):
    content = bytearray(content)
    for _ in range(rng.choice((1, 10, 1000)) if content else 0):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    return bytes(content)


def inserted(rng, content):
    at = rng.randrange(len(content) + 1)
    what = rng.choice((rng.randbytes(rng.choice((1, 8, 5000))), b"\0", b"\xff", b"}", b'"', b"\\", b"\xed\xa0\x80",
                       b"\\ud800", b"NaN", b"1e999", b"9" * 5000, b"[" * 2000, b'{"a":' * 2000, b"// hi\n"))
    return content[:at] + what + content[at:]


def swapped(rng, content):
    a, b, c = sorted(rng.randrange(len(content) + 1) for _ in range(3))
    return content[:a] + content[b:c] + content[a:b] + content[c:]


def twice(rng, content):
    return content + rng.choice((b"", b",", b"\0" * 4096)) + content[:rng.choice((0, 100, None))]


def encoded(rng, content):
    coding = rng.choice(("utf-16", "utf-16-be", "utf-32-le", "utf-7", "latin-1", "cp1252", "cp037", "utf-8-sig"))
    return content.decode("utf-8", "replace").encode(coding, "replace")[:rng.choice((None, None, -1))]


def marked(rng, content):
    return rng.choice((b"\xef\xbb\xbf", b"\xff\xfe", b"\xff\xfe\0\0", b"\0", b"\x1f\x8b", b"PK\3\4",
    b"%PDF-1.7\n")) + content


def replaced(rng, content):
    key = rng.choice((b'"cells"', b'"source"', b'"metadata"', b'"cell_type"', b'"assignment"', b", ", b"\\n", b": "))
    return content.replace(key, rng.choice((b'"source"', key + b": [], " + key, key.upper(), b'"\\ud800"', b"\r",
                           b"\\u0000")), rng.choice((1, 3, -1)))


def something_else(rng, content):
    return rng.choice((b"", b"\n" * 5000, b"null", b"NaN", b'"x"', b"[]", b"[" * 90_000, b'{"cells":' * 90_000,
                       b"9" * 100_000,
                       b"1." + b"3" * 200_000, bytes(10_000), rng.randbytes(20_000), b'{"cells": {}}',
                       b"# a script\nx = 1\n",
                       b'{"cells": null, "worksheets": {}}', b'{"cells": [' + b"{}," * 1999 + b"{}]}"))


BYTES = (cut, flipped, inserted, swapped, twice, encoded, marked, replaced, something_else)


def in_bytes(rng, made):
    content = data(some_notebook(rng))
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        change = rng.choice(BYTES)
        made.words += f" {change.__name__}"
        content = change(rng, content)
    made.runs = rng.random() < 0.3  # what can still be read may be other code
    return content


# ---------------------------------------------------------------- structure


def odd(rng):
    return copy.deepcopy(rng.choice(ODD))


def all_cells(raw):
    cells = raw.get("cells") if isinstance(raw, dict) else None
    return [c for c in cells if isinstance(c, dict)] if isinstance(cells, list) else []


def nodes(raw):
    """Every place of a value in the notebook: pairs of a container and a key."""
    queue, places = [raw], []
    while queue:
        node = queue.pop()
        for key in list(node) if isinstance(node, dict) else range(len(node)):
            places.append((node, key))
            if isinstance(node[key], dict | list):
                queue.append(node[key])
    return places


def any_value(rng, raw):
    for _ in range(rng.choice((1, 1, 3, 20))):
        if places := nodes(raw):
            node, key = rng.choice(places)
            node[key] = odd(rng)


def any_missing(rng, raw):
    for _ in range(rng.choice((1, 1, 3, 20))):
        if places := nodes(raw):
            node, key = rng.choice(places)
            del node[key]


def any_deep(rng, raw):
    deep = odd(rng)
    for _ in range(rng.choice((50, 300))):
        deep = [deep] if rng.random() < 0.5 else {"a": deep}
    node, key = rng.choice(nodes(raw) or [({}, "a")])
    node[key] = deep


def a_field(rng, raw):
    """A field of many cells has another value."""
    key = rng.choice(("source", "cell_type", "metadata", "id", "outputs", "execution_count", "attachments", "level"))
    for c in all_cells(raw):
        if rng.random() < 0.5:
            c[key] = rng.choice((*ODD, "markdown", "raw", "heading", {"source": "x"}, [{}], ["def f():", "\n", 3],
            "../../etc"))


def at_the_top(rng, raw):
    key = rng.choice(("cells", "metadata", "nbformat", "nbformat_minor", "worksheets"))
    raw[key] = rng.choice((*ODD, 2, 3, 4, 5, "4", 10**9, [{"cells": None}], [{"cells": [None, 1, {}]}], {
        "attention_course": {"assignment": rng.choice((*ODD, "assignment1\n", "../assignment1", "x" * 10_000)),
                             "variant": odd(rng)}}))


def nbgrader(rng, raw):
    """nbgrader's metadata moved, doubled, forged."""
    known = [c["metadata"]["nbgrader"] for c in all_cells(raw)
             if isinstance(c.get("metadata"), dict) and "nbgrader" in c["metadata"]]
    ids = [str(k.get("grade_id")) for k in known if isinstance(k, dict)] + list(RIGHT)
    for c in all_cells(raw):
        if isinstance(c.get("metadata"), dict) and rng.random() < 0.6:
            c["metadata"]["nbgrader"] = rng.choice((*(known or [{}]), *ODD, {
                "grade": rng.choice((True, "yes", 1)), "solution": rng.choice((True, None)), "locked": False,
                "grade_id": rng.choice((*ids, "", WIDE, "x" * 9000, 7, None, ["a"], {"a": 1})),
                "points": rng.choice(("100", 10**30, -5, None, [1], *NUMBERS))}))


def outputs(rng, raw):
    for c in all_cells(raw):
        c["outputs"] = rng.choice((*ODD, [{"output_type": odd(rng), "data": odd(rng), "text": odd(rng)}],
                                   [{"output_type": "display_data", "data": {"image/png": "A" * 300_000}}],
                                   [{"output_type": "error", "traceback": [WIDE], "ename": 3}]))
        c["attachments"] = rng.choice((*ODD, {"a.png": {"image/png": "!"}}, {"../x": 1}))


def order(rng, raw):
    if isinstance(raw.get("cells"), list):
        rng.shuffle(raw["cells"])
        raw["cells"] = raw["cells"] * rng.choice((1, 2, 30))


def added(rng, raw):
    answer = {"cell_type": "markdown", "source": WIDE, "metadata": {"nbgrader": {"grade_id": "answer-1", "grade": True}}}
    more = rng.choice(([cell("")] * 10_000, [cell("# " + "x" * 1_000_000)], [cell("\n" * 99_000)], [None] * 100,
                       [[]], [answer],
                       [{**answer, "source": WIDE * 10_000}], [cell("") | {"source": [WIDE, 3, None, "x = 1"]}]))
    if isinstance(raw.get("cells"), list):
        at = rng.randrange(len(raw["cells"]) + 1)
        raw["cells"][at:at] = more


def answers(rng, raw):
    """Odd text where a written answer belongs."""
    for c in all_cells(raw):
        if c.get("cell_type") == "markdown" and rng.random() < 0.5:
            c["source"] = rng.choice((WIDE, "\ud800" * 100, "=cmd|' /C calc'!A0", "x" * 200_000, "\r\r\n\n\x0b\x0c",
                                      "\0", "'=1",
                                      'a,b\nc;d\te"', ["=", "1"], "</textarea><script>", "{{ 7 * 7 }}", "e\u0301" * 999))


STRUCTURE = (any_value, any_missing, any_deep, a_field, at_the_top, nbgrader, outputs, order, added, answers)


def in_structure(rng, made):
    raw = some_notebook(rng)
    for _ in range(rng.choice((1, 1, 2, 5))):
        change = rng.choice(STRUCTURE)
        made.words += f" {change.__name__}"
        change(rng, raw)
        raw = json.loads(json.dumps(raw))  # nothing of it is also elsewhere
    made.runs = rng.random() < 0.3
    text = json.dumps(raw, ensure_ascii=rng.random() < 0.7, indent=rng.choice((None, 1)))
    return text.encode("utf-8", "surrogatepass")


# ---------------------------------------------------------------- code


CELLS = [
    "x = await f()", "%%writefile x.py\nx = 1", "%timeit\n", "%%", "!", "x = %time 1\n", "%load_ext a\n" * 290 + "(",
    "if 1:\n\tx = 1\n        y = 2", "\fx = 1\f\n", "x = 1\ry = 2", "Ａ = 2\nµ = 3", "lambda x, x: 1", "return 1", "yield 1",
    "nonlocal x", "from __future__ import braces", "from . import x", "__builtins__ = None", "del __builtins__",
    "__name__ = 3\n__loader__ = __spec__ = None",
    "import builtins\nbuiltins.print = builtins.len = builtins.__import__ = None",
    "import sys\nsys.modules.clear()", "import sys\nsys.setrecursionlimit(10)", "import sys\nsys.path[:] = []",
    "import gc\ngc.disable(); gc.freeze()", "import json\njson.dumps = json.loads = None",
    "import os\nfor i in range(3, 99):\n    try: os.write(i, b'9 {}\\n')\n    except OSError: pass",
    "import os\nfor i in range(500): os.mkdir('d'); os.chdir('d')", "import sys\nsys.settrace(lambda *a: 1 / 0)",
    "import os\nos.write = os.read = os.fork = None", "import numpy as np\nnp.asarray = None",
    "import wire\nwire.encode = wire.decode = lambda *a: 3", "x = " + "(" * 150 + "1" + ")" * 150,
    "x = " + "-" * 40_000 + "1",
    "x" + ".a" * 20_000, "if 0: pass\n" + "elif 0: pass\n" * 3000, "x = " + "9" * 5000, "'\\ud800'", "x = '''", "x = 1 \\",
    "x\0 = 1", "\u202ex = 1", "# -*- coding: utf-7 -*-\nx = 1", "# coding: nothing\nx = 1", "type X = int",
    "class effective_words:\n    def __new__(cls, w): return 3", "effective_words = 3", "del softmax_with_temperature",
    "@property\ndef effective_words(w): return 1", "def most_similar_pair(X, X):\n    return 0, 1",
    "most_similar_pair = len",
    "def most_similar_pair(*, X): return 1", "import signal\nsignal.signal(signal.SIGPROF, signal.SIG_IGN)",
    "raise BaseExceptionGroup('a', [SystemExit()])", "class E(Exception):\n    def __str__(self): raise self\nraise E",
    "class E(Exception):\n    def __str__(self): return '\\ud800\\0\\x1b[2J\\u202e' * 900\nraise E",
    "raise Exception('Traceback (most recent call last):\\n')", "assert False, 'x' * 10**6", "input()", "breakpoint()",
    "get_ipython().kernel.shell.x = 3", "### BEGIN HIDDEN TESTS\n(", "### BEGIN SOLUTION\nx\n### END SOLUTION"]
VALUES = [
    "None", "NotImplemented", "1e400", "10**5000", "True", "'x' * 20_000", "b'x'", "{1: 2}", "[]", "range(3)",
    "(i for i in range(3))", "object()", "print", "memoryview(b'x')", "1j", "__import__('decimal').Decimal('sNaN')",
    "[[]] * 300", "[[1, 2], [3]]", "[1, 'a', None]", "[0.0] * 500_000", "[[[[[[[[[[[[1]]]]]]]]]]]]", "rec()",
    "shared()", "np",
    "np.float16(1)", "np.longdouble(1)", "np.array(None)", "np.array('x')", "np.ma.array([1, 2], mask=[0, 1])",
    "np.zeros(3, dtype='i4,f8')", "np.datetime64('NaT')", "np.zeros((0, 0))", "np.zeros((1,) * 64)", "np.array([1], '>f8')",
    "np.broadcast_to(0.0, (10**6, 10**6))", "np.arange(9)[::-2]", "np.random.RandomState(0)",
    "np.lib.stride_tricks.as_strided(np.zeros(1), (3,), (10**9,))", "np.memmap('/tmp/m', 'f8', 'w+', shape=(3,))",
    "Sub(3)", "Lazy()", "SubArray()", "Odd()", "T", "type('\\x1b<b>', (), {})()", "torch.zeros(2).to_sparse()",
    "torch.zeros(2, dtype=torch.complex64).conj().imag", "torch.empty(2, device='meta')",
    "torch.zeros(2, dtype=torch.bfloat16)", "torch.zeros(2, requires_grad=True) * 2",
    "torch.quantize_per_tensor(torch.zeros(2), 1., 0, torch.qint8)",
    "torch.nested.nested_tensor([torch.zeros(1), torch.zeros(2)])", "torch.zeros(10**6).expand(10**3, 10**6)"]
RAISED = [
    "StopIteration(3)", "GeneratorExit", "SystemExit('x')", "KeyboardInterrupt", "MemoryError", "RecursionError",
    "UnicodeDecodeError('a', b'', 0, 1, 'x')", "SyntaxError('x', ('f', 1, 1, 't'))", "KeyError('\\ud800')",
    "ExceptionGroup('a', [ValueError()])", "TimeoutError", "type('ValueError', (BaseException,), {})()",
    "ValueError('Traceback (most recent call last):\\n  File \"/x\"')", "Exception(\"name 'np' is not defined\")",
    "IndexError('\\x1b[2J\\0')"]
HELP = """
def rec():
    x = []
    x.append(x)
    return x
def shared():
    x = [0]
    for _ in range(9): x = [x] * 4
    return x
class Sub(float): pass
class SubArray(np.ndarray):
    def __new__(cls): return np.zeros(2).view(cls)
    shape = property(lambda self: 3 / 0)
class Lazy:
    def __array__(self, *a, **k): return np.zeros(2)
    def __getattr__(self, name): return lambda *a: self
class Odd(list):
    def __len__(self): return 10**9
    def __iter__(self): return iter(int, 1)
T = type("T", (tuple,), {"__len__": lambda self: -1, "__iter__": lambda self: None})()
"""


def in_code(rng, made):
    made.runs = True
    kind = rng.choice(("cells", "cells", "values", "raised", "mangled"))
    raw = solved()
    if kind == "cells":
        for source in rng.sample(CELLS, rng.choice((1, 1, 2, 3))):
            made.words += f" {source[:60]!r}"
            raw["cells"].insert(rng.randrange(1, len(raw["cells"]) + 1), cell(source))
    elif kind == "mangled":
        for c in raw["cells"]:
            if c["cell_type"] == "code" and rng.random() < 0.4:
                source = "".join(c["source"])
                for _ in range(rng.choice((1, 2, 5))):
                    at = rng.randrange(len(source) + 1)
                    what = rng.choice("()[]{}:,;'\"\\\n\t\f\r =#@!%?.*~`$\0é\u202e\ud8000x") * rng.choice((1, 1, 3000))
                    source = source[:at] + what + source[at + rng.randrange(3):]
                c["source"] = source
    else:
        value, name = rng.choice(VALUES if kind == "values" else RAISED), rng.choice(list(RIGHT))
        made.words += f" {name} gives {value}"
        arguments = RIGHT[name].split("(")[1].split(")")[0]
        body = f"raise {value}" if kind == "raised" else rng.choice((f"return {value}", f"return [{value}, {value}]"))
        raw = solved(**{name: f"import numpy as np, torch{HELP}\ndef {name}({arguments}):\n    {body}"})
    return json.dumps(raw).encode()


# ---------------------------------------------------------------- zips, and folders with what is not a file


def in_containers(rng, made):
    good = data(solved())
    change = rng.choice(ZIPS)
    made.words += f" {change.__name__}"
    if change is in_a_folder:
        made.files = change(rng, good, os.fsencode(made.student))
    else:
        made.files = [(made.student + rng.choice((".zip", "/work.zip")), change(rng, good))]


def in_a_folder(rng, good, student):
    name = rng.choice((b"\xff\xfe\x80.ipynb", "x" * 240 + ".ipynb", "\u202egpj.ipynb", "a\nb.ipynb", "-rf.ipynb",
                       "\x1b[2J.ipynb", ".ipynb", "a.ipynb.txt", " .ipynb", "=1+1.ipynb", "a.ipynb~"))
    folder = student + b"/" + rng.choice((b"", b"", b"d/" * 60, b".hidden/", b"__MACOSX/", b"a.ipynb/", b"a.zip/"))
    return [(folder + os.fsencode(name), rng.choice((good, b"", "link", "pipe", "socket"))),
            (student + b"/other.ipynb", rng.choice((good, "pipe", "link")))][:rng.choice((1, 2))]


def zipped(members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)  # not with the time of today
    return buffer.getvalue()


def zip_flipped(rng, good):
    content = bytearray(zipped({"a.ipynb": good, "b.txt": b"x"}))
    low = rng.choice((0, len(content) - 200, len(content) - 22))  # anywhere, in the list of files, at the end
    for _ in range(rng.choice((1, 2, 20))):
        content[rng.randrange(low, len(content))] = rng.randrange(256)
    return bytes(content)


def zip_cut(rng, good):
    content = zipped({"a.ipynb": good})
    return rng.choice((cut(rng, content), rng.randbytes(50) + content, content + content, content + rng.randbytes(500)))


def zip_names(rng, good):
    names = ("../a.ipynb", "/a.ipynb", "a/../../b.ipynb", "C:\\a.ipynb", "NUL.ipynb", "x" * 300 + ".ipynb",
             "d/" * 300 + "a.ipynb",
             "a.ipynb/", "a.ipynb", "A.IPYNB", "\u202e.ipynb", "a\nb.ipynb", "é.ipynb", "e\u0301.ipynb", "//a.ipynb", " ",
             "x" * 60_000 + ".ipynb", "__MACOSX/a.ipynb", "Ada_7_assignsubmission_file_/a.ipynb")
    return zipped(dict.fromkeys(rng.sample(names, rng.choice((1, 2, 5))), good))


def zip_fields(rng, good):
    """A member with odd fields in the list of files, and maybe not at its beginning."""
    info = zipfile.ZipInfo("a.ipynb", date_time=rng.choice(((1980, 0, 0, 0, 0, 0), (2107, 15, 31, 31, 63, 62))))
    info.external_attr = rng.choice((0o120777, 0o010666, 0o040755, 0)) << 16
    info.extra = rng.choice((b"", b"\1\0\x10\0" + b"\xff" * 16, b"\x99\x99\xff\xff"))
    info.compress_type = rng.choice((0, 8, 12, 14))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(info, good)
        archive.comment = rng.choice((b"", b"PK\5\6" + bytes(18), b"x" * 65_535))
    content = bytearray(buffer.getvalue())
    at = content.rfind(b"PK\1\2")
    offset, size, values = rng.choice((  # flags, method, sum, sizes, place, lengths
        (8, 2, (1, 1 << 11, 0xffff)), (10, 2, (99, 1, 97)), (16, 4, (0,)), (20, 4, (0, 2**32 - 1)), (24, 4, (0, 2**32 - 1)),
        (42, 4, (1, 2**32 - 1)), (28, 2, (0, 0xffff)), (34, 2, (7,))))
    content[at + offset:at + offset + size] = rng.choice(values).to_bytes(size, "little")
    return bytes(content)


def zip_overlapping(rng, good):
    """A list of many files that are all the same bytes of the zip."""
    one = zipped({"a.ipynb": rng.choice((good, bytes(20_000_000)))})
    start, end = one.index(b"PK\1\2"), one.index(b"PK\5\6")
    number = rng.choice((2, 30, 3_000))
    size = number * (end - start)
    return one[:start] + one[start:end] * number + b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, number, number, size, start, 0)


def zip_of_little(rng, good):
    return zipped(rng.choice(({}, {"a/": b""}, {"notes.txt": b"x"}, {"b.zip": b""}, {"b.zip": zipped({"b.zip": zipped({})})},
                              {f"{i}.ipynb": good[:i] for i in range(60)}, {"a.ipynb": bytes(26_000_000)})))


ZIPS = (zip_flipped, zip_cut, zip_names, zip_fields, zip_overlapping, zip_of_little, in_a_folder)
