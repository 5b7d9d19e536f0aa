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
import warnings
import zipfile
from dataclasses import dataclass, field

from submissions import RIGHT, data, from_colab, old, released, solved

WIDE = "a\u0301\u202e\u2066\u200f\ufeff\0\x1b[2J\ud800\U0001f600\u2028\x85<script>alert(1)</script>=1+1\t\r\n;'\""
NUMBERS = (0, -1, 1, 2**63, -2**200, 1e308, 1.5, float("nan"), float("inf"), float("-inf"), True, False)
ODD = (None, "", "x", "4", WIDE, "code", [], {}, [[]], [1, 2], [None, {}], {"a": {"b": [WIDE]}}, ["a", "b\n"], *NUMBERS)


@dataclass
class Damaged:
    """``files``: pairs of a path and bytes, "link", "pipe" or "socket"; ``loose``: not in a folder of its own; ``runs``:
    the code differs, so it is worth a sandbox."""

    seed: int
    words: str = ""
    files: list = field(default_factory=list)
    loose: bool = False
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
        made.loose = rng.random() < 0.3
        name = rng.choice(("a", "assignment1 (2)", "Lösung", " "))
        name = f"{made.student}.ipynb" if made.loose else f"{made.student}/{name}.ipynb"
        made.files = [(name, content)]
    return made


def some_notebook(rng):
    return rng.choice((solved, solved, solved, released, lambda: old(solved()), lambda: from_colab(solved())))()


# ---------------------------------------------------------------- bytes


def in_bytes(rng, made):
    content = data(some_notebook(rng))
    if rng.random() < 0.2:
        content = json.dumps(some_notebook(rng), ensure_ascii=False, indent=1).encode()
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        name = rng.choice([name for name in globals() if name.startswith("bytes_")])
        made.words += f" {name}"
        content = globals()[name](rng, content)
    made.runs = made.runs or rng.random() < 0.3  # what can still be read may be other code
    return content


def bytes_cut(rng, content):
    return content[:rng.randrange(len(content) + 1)]


def bytes_cut_front(rng, content):
    return content[rng.randrange(len(content) + 1):]


def bytes_flipped(rng, content):
    content = bytearray(content)
    for _ in range(rng.choice((1, 1, 10, 1000)) if content else 0):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    return bytes(content)


def bytes_inserted(rng, content):
    at = rng.randrange(len(content) + 1)
    what = rng.choice((rng.randbytes(rng.choice((1, 8, 5000))), b"\0", b"\xff", b"}", b"]", b'"', b"\\",
        b"\xed\xa0\x80", b"\r\n",
                       b"\\ud800", b"NaN", b"1e999", b"9" * 5000, b"[" * 2000, b'{"a":' * 2000,
                       b"[" * (n := rng.randrange(880, 1000)) + b"]" * n, b"\xc0\x80", b"\x1a", b"// hi\n"))
    return content[:at] + what + content[at:]


def bytes_swapped(rng, content):
    a, b, c = sorted(rng.randrange(len(content) + 1) for _ in range(3))
    return content[:a] + content[b:c] + content[a:b] + content[c:]


def bytes_twice(rng, content):
    return content + rng.choice((b"", b"\n", b",", b"\0" * 4096, b" " * 10_000, b"\x00\x01")) + content[:rng.choice((0,
        100, None))]


def bytes_encoded(rng, content):
    text = content.decode("utf-8", "replace")
    coding = rng.choice(("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-7", "latin-1", "cp1252",
        "cp037", "utf-8-sig"))
    return text.encode(coding, "replace")[:rng.choice((None, None, -1))]


def bytes_marked(rng, content):
    return rng.choice((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\xff\xfe\0\0", b"\xef\xbb\xbf\xef\xbb\xbf", b"\0",
        b"\x1f\x8b", b"PK\3\4",
                       b"%PDF-1.7\n", b"<html>")) + content


def bytes_lines(rng, content):
    return content.replace(rng.choice((b", ", b"\\n", b": ")), rng.choice((b",\r\n", b"\r", b"\\r\\n", b"\\r",
        b"\\u2028", b":\t", b"\\u0000")))


def bytes_keys(rng, content):
    key = rng.choice((b'"cells"', b'"source"', b'"metadata"', b'"cell_type"', b'"worksheets"', b'"assignment"'))
    return content.replace(key, rng.choice((b'"cells"', b'"source"', key + b": [], " + key, key + b': "", ' + key,
        key.upper(), b'""',
                                            b'"\\ud800"')), rng.choice((1, 3, -1)))


def bytes_of_something_else(rng, content):
    return rng.choice((b"", b" ", b"\n" * 5000, b"null", b"true", b"0", b"NaN", b"-", b'"', b'"x"', b"[]", b"{}",
        b"[" * 90_000, b'{"cells":' * 90_000,
                       b"9" * 100_000, b"1e" + b"9" * 5000, b"1." + b"3" * 200_000, bytes(10_000), b"\xff" * 9000,
                       rng.randbytes(20_000),
                       b'{"cells": []}', b'{"cells": {}}', b'{"cells": null, "worksheets": {}}',
                       b"# a script\nx = 1\n", b'{"cells": [[[[]]]]}',
                       b'{"cells": [' + b"{}," * 1999 + b"{}]}", b'{"cells": [' + b"[]," * 9999 + b"[]]}"))


# ---------------------------------------------------------------- structure


def in_structure(rng, made):
    raw = some_notebook(rng)
    for _ in range(rng.choice((1, 1, 2, 5))):
        name = rng.choice([name for name in globals() if name.startswith("cells_")])
        made.words += f" {name}"
        changed = globals()[name](rng, raw)
        raw = json.loads(json.dumps(raw if changed is None else changed))  # nothing of it is also elsewhere
    made.runs = made.runs or rng.random() < 0.3
    text = json.dumps(raw, ensure_ascii=rng.random() < 0.7, indent=rng.choice((None, 1)))
    return text.encode("utf-8", "surrogatepass")


def cell(source):
    return {"cell_type": "code", "id": "new", "metadata": {}, "source": source, "outputs": [], "execution_count": None}


def odd(rng):
    return copy.deepcopy(rng.choice(ODD))


def all_cells(raw):
    cells = raw.get("cells") if isinstance(raw, dict) else None
    return [c for c in cells if isinstance(c, dict)] if isinstance(cells, list) else []


def nodes(raw):
    """Every place of a value in the notebook: pairs of a container and a key."""
    queue, found = [raw], []
    while queue:
        node = queue.pop()
        for key in list(node) if isinstance(node, dict) else range(len(node)):
            found.append((node, key))
            if isinstance(node[key], dict | list):
                queue.append(node[key])
    return found


def cells_any_value(rng, raw):
    for _ in range(rng.choice((1, 1, 3, 20))):
        if places := nodes(raw):
            node, key = rng.choice(places)
            node[key] = odd(rng)


def cells_any_missing(rng, raw):
    for _ in range(rng.choice((1, 1, 3, 20))):
        if places := nodes(raw):
            node, key = rng.choice(places)
            del node[key]


def cells_field(rng, raw):
    """A field of many cells has another value."""
    key = rng.choice(("source", "cell_type", "metadata", "id", "outputs", "execution_count", "attachments", "input",
        "language", "level"))
    for c in all_cells(raw):
        if rng.random() < 0.5:
            c[key] = rng.choice((*ODD, "markdown", "raw", "heading", "Code", {"source": "x"}, [{}], ["def f():", "\n",
                3]))


def cells_top(rng, raw):
    key = rng.choice(("cells", "metadata", "nbformat", "nbformat_minor", "worksheets"))
    raw[key] = rng.choice((*ODD, 2, 3, 4, 5, "4", 10**9, [{"cells": None}], [{"cells": [None, 1, {}]}]))


def cells_worksheets(rng, raw):
    sheets = [{"cells": raw.get("cells", []), "metadata": odd(rng)}, odd(rng), {"cells": odd(rng)}]
    rng.shuffle(sheets)
    return {"nbformat": rng.choice((2, 3, 4, 5, "3")), "worksheets": sheets, "metadata": odd(rng),
            **({"cells": odd(rng)} if rng.random() < 0.5 else {})}


def cells_ids(rng, raw):
    for c in all_cells(raw):
        c["id"] = rng.choice(("same", "", WIDE, "../../etc", "x" * 5000, 3, None, "a b"))


def cells_nbgrader(rng, raw):
    """nbgrader's metadata moved, doubled, forged."""
    known = [c["metadata"]["nbgrader"] for c in all_cells(raw)
             if isinstance(c.get("metadata"), dict) and "nbgrader" in c["metadata"]]
    ids = [str(k.get("grade_id")) for k in known if isinstance(k, dict)] + list(RIGHT)
    for c in all_cells(raw):
        if isinstance(c.get("metadata"), dict) and rng.random() < 0.6:
            c["metadata"]["nbgrader"] = rng.choice((*(known or [{}]), *ODD, {
                "grade": rng.choice((True, "yes", 1)), "solution": rng.choice((True, None)), "locked": False,
                "schema_version": rng.choice((3, "9", -1)),
                "grade_id": rng.choice((*ids, "", WIDE, "x" * 9000, 7, None, ["a"], {"a": 1})),
                "points": rng.choice(("100", "NaN", 10**30, -5, None, [1], *NUMBERS))}))


def cells_assignment(rng, raw):
    raw["metadata"] = {"attention_course": rng.choice((*ODD, *({"assignment": value} for value in (
        *ODD, "assignment2", "assignment1\n", "ASSIGNMENT1", " assignment1", "../assignment1", "assignment1\0",
            "x" * 10_000)),
        {"assignment": "assignment1", "variant": odd(rng)}))}


def cells_outputs(rng, raw):
    for c in all_cells(raw):
        c["outputs"] = rng.choice((*ODD, [{"output_type": odd(rng), "data": odd(rng), "text": odd(rng)}],
                                   [{"output_type": "display_data", "data": {"image/png": "A" * rng.choice((10,
                                   300_000))}}],
                                   [{"output_type": "error", "traceback": ["Traceback (most recent call last)", WIDE],
                                   "ename": 3}]))
        c["attachments"] = rng.choice((*ODD, {"a.png": {"image/png": "!"}}, {"../x": 1}))


def cells_order(rng, raw):
    if isinstance(raw.get("cells"), list):
        rng.shuffle(raw["cells"])


def cells_doubled(rng, raw):
    if isinstance(raw.get("cells"), list):
        raw["cells"] = raw["cells"] * rng.choice((2, 3, 30))


def cells_added(rng, raw):
    more = rng.choice(([cell("")] * 10_000, [cell("")] * 1500, [cell("# " + "x" * 1_000_000)], [cell("x" * 90_000)],
        [cell("\n" * 99_000)],
                       [{"cell_type": "markdown", "source": WIDE * 10_000, "metadata": {}}], [None] * 100, [[]], [{}],
                       [cell(WIDE)],
                       [{"cell_type": "markdown", "source": WIDE, "metadata": {"nbgrader": {"grade_id": c,
                       "solution": True, "grade": True}}}
                        for c in ("answer-temperature", "answer-1", "")], [cell([WIDE, 3, None, "x = 1"])]))
    if isinstance(raw.get("cells"), list):
        at = rng.randrange(len(raw["cells"]) + 1)
        raw["cells"][at:at] = more


def cells_deep(rng, raw):
    deep = odd(rng)
    for _ in range(rng.choice((50, 300))):
        deep = [deep] if rng.random() < 0.5 else {"a": deep}
    node, key = rng.choice(nodes(raw) or [({}, "a")])
    node[key] = deep


def cells_answers(rng, raw):
    """Odd text where a written answer belongs."""
    for c in all_cells(raw):
        if c.get("cell_type") == "markdown" and rng.random() < 0.5:
            c["source"] = rng.choice((WIDE, "\ud800" * 100, "=cmd|' /C calc'!A0", "x" * 200_000, "\r\r\n\n\x0b\x0c",
                "@SUM(1)", "\0", "*", "\u200b", "'=1",
                                      'a,b\nc;d\te"', ["=", "1"], "\u2066\u2069" * 10, "</textarea><script>",
                                      "{{ 7 * 7 }}", "\N{COMBINING ACUTE ACCENT}" * 999))


# ---------------------------------------------------------------- code


SYNTAX = [
    "async def most_similar_pair(X):\n    return 0, 1", "x = await f()", "async with a as b: pass", "%%time",
    "%%bash\nls", "%%writefile x.py\nx = 1",
    "!ls", "x = !ls", "?print", "print??", "%timeit\n", "%%", "%", "!", "%%%time\nx", "%%timeit -n1\nx = 1",
    "x = %time 1\n", "%load_ext a\n" * 290 + "(",
    "(y := 1)", "[y := 1, y**2]", "def f(a, /, b, *, c=(z := 2)): pass", "if 1:\n\tx = 1\n        y = 2",
    "\fx = 1\f\n", "x = 1\r\ny = 2\r\n", "x = 1\ry = 2",
    "été = 1\nＡ = 2\nµ = 3", "def most_similar_pair(X, X):\n    return 0, 1", "def effective_words(a=1, *a): pass",
    "def cosine_attention(X, *, X=2): pass",
    "lambda x, x: 1", "def f():\n    return\n yield", "return 1", "yield 1", "break", "global x\nx = 1", "nonlocal x",
    "from __future__ import braces",
    "from __future__ import annotations", "from . import x", "import " + "a." * 500 + "b", "__builtins__ = None",
    "__builtins__ = {}", "del __builtins__",
    "__name__ = 3\n__loader__ = __spec__ = None",
    "import builtins\nbuiltins.print = builtins.len = builtins.__import__ = None", "print = exec = eval = None",
    "import sys\nsys.modules.clear()", "import sys\nsys.modules['numpy'] = None",
    "import sys\nsys.setrecursionlimit(10)", "import sys\nsys.path[:] = []",
    "import gc\ngc.disable(); gc.freeze()", "import json\njson.dumps = json.loads = None",
    "import socket\nsocket.socket(40, 1).connect((2, 22))",
    "import socket\nsocket.socket(16, 3).sendto(b'x' * 99, (0, 0))",
    "import os\nfor i in range(3, 99):\n    try: os.write(i, b'9 {}\\n')\n    except OSError: pass",
    "import os\nos.closerange(0, 99)",
    "import signal\nsignal.setitimer(signal.ITIMER_PROF, 0)", "import os\nfor i in range(500): os.mkdir('d'); os.chdir('d')",
    "import sys\nsys.settrace(lambda *a: 1 / 0)", "import sys\nsys.setprofile(lambda *a: 1 / 0)",
    "import os\nos.write = os.read = os.fork = None", "import os\nos.chdir('/')",
    "import numpy as np\nnp.asarray = None", "import numpy as np\nnp.random = None",
    "import wire\nwire.encode = wire.decode = lambda *a: 3", "import wire\nwire.np = None",
    "x = " + "(" * 150 + "1" + ")" * 150, "x = " + "-" * 40_000 + "1", "x = 1" + " + 1" * 20_000, "x" + ".a" * 20_000,
    "x" + "[0]" * 20_000, "not " * 9_000 + "x",
    "\n".join("  " * i + "if 1:" for i in range(90)) + "\n" + "  " * 90 + "x = 1",
    "if 0: pass\n" + "elif 0: pass\n" * 3000, "x = " + "9" * 5000, "x = 1e" + "9" * 400,
    "x = '\ud800'", "'\\N{nothing}'", "'\\ud800'", "f'{x!r:{y}}' f'{'", "b'é'", "x = '''", "\\", "x = 1 \\", "\0",
    "x\0 = 1", "\ufeffx = 1", "\u202ex = 1", "x\u00a0= 1", "\u200bx",
    "# -*- coding: utf-7 -*-\nx = 1", "# coding: nothing\nx = 1", "match x:\n    case {'a': [*_, 1]}: pass",
    "type X = int", "def f[T](x: T): pass", "try: pass\nexcept* E: pass",
    "class effective_words:\n    def __new__(cls, w): return 3", "effective_words = None", "effective_words = 3",
    "del softmax_with_temperature", "@property\ndef effective_words(w): return 1",
    "@staticmethod\ndef effective_words(w): return 1",
    "import functools\n@functools.cache\ndef effective_words(w): return 1",
    "class M(type):\n    def __call__(c, *a): return 1\nclass effective_words(metaclass=M): pass",
    "def most_similar_pair(X): ...\ndef most_similar_pair(X): return 0, 1",
    "if 1:\n    def most_similar_pair(X): return 1, 0", "def most_similar_pair(): return 0, 1",
    "def most_similar_pair(*, X): return 1",
    "def most_similar_pair(X, **k): return k", "def most_similar_pair(X, a, b, c): return 1",
    "most_similar_pair = print", "most_similar_pair = len", "from math import sin as effective_words",
    "import signal\nsignal.alarm(1)", "import signal\nsignal.signal(signal.SIGPROF, signal.SIG_IGN)",
    "import threading\nthreading.Thread(target=lambda: [None for _ in iter(int, 1)], daemon=True).start()",
    "import atexit\natexit.register(print)", "import sys\nsys.exit(3)", "raise SystemExit", "raise KeyboardInterrupt",
    "raise BaseException", "raise BaseExceptionGroup('a', [SystemExit()])",
    "class E(Exception):\n    def __str__(self): raise self\nraise E",
    "class E(Exception):\n    def __str__(self): return '\\ud800\\0\\x1b[2J\\u202e' * 900\nraise E",
    "raise Exception('Traceback (most recent call last):\\n')",
    "class E(BaseException): __name__ = 3\nraise E", "def f(): f()\nf()", "assert False, 'x' * 10**6", "1/0",
    "import nothing_at_all", "exec('x' * 10**6)", "import warnings\nwarnings.filterwarnings('error')",
    "from IPython import get_ipython\nget_ipython().run_line_magic('a', 'b')", "get_ipython().kernel.shell.x = 3",
    "import IPython.display as d\nd.display(d.HTML('x'))", "input()", "breakpoint()", "help()",
    "import matplotlib.pyplot as plt\nplt.show()", "\n" * 5000 + "x = 1" + "\n" * 5000,
    "### BEGIN HIDDEN TESTS\nx = 1\n### END HIDDEN TESTS", "### BEGIN HIDDEN TESTS\n(",
    "### BEGIN SOLUTION\nx\n### END SOLUTION"]
VALUES = [
    "None", "...", "NotImplemented", "float('nan')", "1e400", "10**30", "10**5000", "-1", "True", "'x'",
    "'x' * 20_000", "b'x'", "bytearray(9)", "set()", "{1: 2}", "{}", "[]", "()", "range(3)", "iter([1])",
    "(i for i in range(3))", "map(int, '12')", "object()", "type", "print", "lambda: 1", "Exception('x')",
    "memoryview(b'x')", "slice(1)", "1j", "float('inf')", "__import__('decimal').Decimal('sNaN')",
    "__import__('fractions').Fraction(1, 3)", "__import__('datetime').datetime.now()", "[[]] * 300", "[[1, 2], [3]]",
    "[1, 'a', None]", "[None] * 5", "[0.0] * 500_000", "tuple(range(201))", "[[[[[[[[[[[[1]]]]]]]]]]]]",
    "rec()", "shared()", "np", "np.float64('nan')", "np.float16(1)", "np.longdouble(1)", "np.clongdouble(1j)",
    "np.array(None)", "np.array('x')", "np.array([{}])", "np.ma.masked", "np.ma.array([1, 2], mask=[0, 1])",
    "np.matrix([[1]])", "np.zeros(3, dtype='i4,f8')", "np.rec.array([(1, 2.0)])", "np.datetime64('NaT')",
    "np.timedelta64(1)", "np.zeros(2, 'S3')", "np.zeros((0, 0))", "np.zeros((1,) * 32)", "np.zeros((1,) * 64)",
    "np.broadcast_to(0.0, (10**6, 10**6))", "np.arange(9)[::-2]", "np.array([1], '>f8')", "np.empty(10**9, 'i1')",
    "np.random.default_rng(0)", "np.random.RandomState(0)", "np.random.Generator(np.random.MT19937())",
    "np.nditer([1])",
    "np.lib.stride_tricks.as_strided(np.zeros(1), (3,), (10**9,))", "np.frombuffer(b'12345678')",
    "np.memmap('/tmp/m', 'f8', 'w+', shape=(3,))", "Sub(3)", "Lazy()", "SubArray()", "Odd()", "T",
    "type('\\x1b<b>', (), {})()",
    "type('x' * 900, (), {})()", "torch.zeros(2)", "torch.zeros(2).to_sparse()",
    "torch.zeros(2, dtype=torch.complex64)", "torch.zeros(2, dtype=torch.complex64).conj()",
    "torch.zeros(2, dtype=torch.complex64).conj().imag",
    "torch.empty(2, device='meta')", "torch.zeros(2, dtype=torch.bfloat16)", "torch.zeros(2, requires_grad=True) * 2",
    "torch.quantize_per_tensor(torch.zeros(2), 1., 0, torch.qint8)", "torch.nn.Linear(1, 1)", "torch.Generator()",
    "torch.zeros(2, dtype=torch.uint16)", "torch.zeros(2, dtype=torch.float8_e4m3fn)", "torch.tensor(float('nan'))",
    "torch.nested.nested_tensor([torch.zeros(1), torch.zeros(2)])", "torch.zeros(10**6).expand(10**3, 10**6)",
    "[torch.zeros(1)] * 300"]
RAISED = ["StopIteration", "StopIteration(3)", "GeneratorExit", "SystemExit('x')", "KeyboardInterrupt", "MemoryError",
    "RecursionError", "OSError(2, 'x')", "UnicodeDecodeError('a', b'', 0, 1, 'x')",
    "SyntaxError('x', ('f', 1, 1, 't'))",
          "KeyError('\\ud800')", "ExceptionGroup('a', [ValueError()])", "NotImplementedError", "AssertionError",
          "TimeoutError", "Warning('x')", "np.exceptions.AxisError(3)", "np.linalg.LinAlgError('x')",
          "type('Own', (Exception,), {})()",
          "type('ValueError', (BaseException,), {})()",
          "ValueError('Traceback (most recent call last):\\n  File \"/x\"')",
          "Exception(\"name 'np' is not defined\")", "NameError(\"name 'most_similar_pair' is not defined\")",
          "IndexError('\\x1b[2J\\0')",
          "Exception(Exception(Exception('not enough memory')))"]
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
    kind = rng.choice(("syntax", "syntax", "values", "raised", "mangled", "random"))
    if kind == "syntax":
        chosen = rng.sample(SYNTAX, rng.choice((1, 1, 2, 3)))
        made.words += f" {[c[:60] for c in chosen]}"
        raw = solved()
        for source in chosen:
            raw["cells"].insert(rng.randrange(1, len(raw["cells"]) + 1), cell(source))
    elif kind in ("values", "raised"):
        value = rng.choice(VALUES if kind == "values" else RAISED)
        name = rng.choice(list(RIGHT))
        arguments = RIGHT[name].split("(")[1].split(")")[0]
        made.words += f" {name} gives {value}"
        body = f"return {value}" if rng.random() < 0.7 else f"return [{value}, {value}]"
        body = f"raise {value}" if kind == "raised" else body
        first = "\nimport torch" if "torch" in value else ""
        raw = solved(**{name: f"import numpy as np{first}{HELP}\ndef {name}({arguments}):\n    {body}"})
    else:
        raw = solved()
        for c in raw["cells"]:
            if c["cell_type"] == "code" and rng.random() < 0.4:
                source = "".join(c["source"])
                for _ in range(rng.choice((1, 2, 5))):
                    at = rng.randrange(len(source) + 1)
                    what = rng.choice("()[]{}:,;'\"\\\n\t\f\r =#@!%?.*~`$\0é\u202e\ud8000x")
                    what *= 1 if kind == "mangled" else rng.randrange(3000)
                    source = source[:at] + what + source[at + rng.randrange(3):]
                c["source"] = source
    return json.dumps(raw).encode()


# ---------------------------------------------------------------- containers


def in_containers(rng, made):
    """Zips, and folders with what is not a file."""
    good = data(solved())
    name = rng.choice([name for name in globals() if name.startswith("zip_")])
    made.words += f" {name}"
    me = made.student
    if name != "zip_in_a_folder":
        content = globals()[name](rng, good)
        made.files = [(f"{me}.zip" if rng.random() < 0.5 else f"{me}/work.zip", content)]
    else:
        odd = rng.choice((b"\xff\xfe\x80.ipynb", "con.ipynb", "x" * 240 + ".ipynb", "é" * 110 + ".ipynb",
            "\u202egpj.ipynb", "a\nb.ipynb", "-rf.ipynb", "\x1b[2J.ipynb",
                          ".ipynb", "..ipynb", "a.IPYNB", "a.ipynb.txt", "a.ipynb.zip", " .ipynb", "=1+1.ipynb",
                          "a.ipynb~", "a.ipynb.gz"))
        folder = os.fsencode(me) + b"/" + rng.choice((b"", b"", b"d/" * 60, b".hidden/", b"__MACOSX/",
        b".ipynb_checkpoints/", b"a.ipynb/", b"a.zip/"))
        made.files = [(folder + os.fsencode(odd), rng.choice((good, b"", "link", "pipe", "socket")))]
        if rng.random() < 0.5:
            made.files.append((os.fsencode(me) + b"/other.ipynb", rng.choice((good, "pipe", "link"))))


def zipped(members):
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        warnings.simplefilter("ignore")  # two members of one name are meant
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)  # not with the time of today
    return buffer.getvalue()


def zip_flipped(rng, good):
    content = bytearray(zipped([("a.ipynb", good), ("b.txt", b"x")]))
    low = rng.choice((0, len(content) - 200, len(content) - 22))  # anywhere, in the list of files, at the end
    for _ in range(rng.choice((1, 2, 20))):
        content[rng.randrange(low, len(content))] = rng.randrange(256)
    return bytes(content)


def zip_cut(rng, good):
    content = zipped([("a.ipynb", good)])
    return rng.choice((content[:rng.randrange(len(content))], content[rng.randrange(len(content)):],
        rng.randbytes(50) + content, content + content, content + rng.randbytes(500)))


def zip_names(rng, good):
    names = ("../a.ipynb", "/a.ipynb", "a/../../b.ipynb", "C:\\a.ipynb", "a\\b.ipynb", "NUL.ipynb", "com1/a.ipynb",
        "x" * 300 + ".ipynb", "d/" * 300 + "a.ipynb", "a.ipynb/", "a.ipynb", "A.IPYNB", "a.ipynb ", ".ipynb",
             "\u202e.ipynb", "a\nb.ipynb", "é.ipynb", "e\u0301.ipynb", "//a.ipynb", "./a.ipynb", " ", "a//b.ipynb",
             "~/a.ipynb", "$(x).ipynb", "x" * 60_000 + ".ipynb", "__MACOSX/a.ipynb", ".DS_Store",
             "Ada_7_assignsubmission_file_/a.ipynb")
    return zipped([(n, good) for n in rng.sample(names, rng.choice((1, 2, 5)))])


def zip_fields(rng, good):
    """A member with odd fields, in the list of files and maybe not at its beginning."""
    info = zipfile.ZipInfo("a.ipynb", date_time=rng.choice(((1980, 0, 0, 0, 0, 0), (2107, 15, 31, 31, 63, 62), (1980,
        1, 1, 0, 0, 0), (2107, 12, 31, 23, 59, 58))))
    info.external_attr = rng.choice((0o120777, 0o010666, 0o040755, 0o060000, 0, 0xffff)) << 16
    info.extra = rng.choice((b"", b"\1\0\x10\0" + b"\xff" * 16, b"\x99\x99\xff\xff", b"\x75\x70\5\0\1abcd"))
    info.comment = rng.choice((b"", b"PK\5\6" + bytes(18), b"\xff" * 500))
    info.compress_type = rng.choice((0, 8, 12, 14))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(info, good)
        archive.comment = rng.choice((b"", b"PK\5\6" + bytes(18), b"x" * 65_535))
    content = bytearray(buffer.getvalue())
    at = content.rfind(b"PK\1\2")
    offset, size, values = rng.choice(((8, 2, (1, 1 << 11, 1 << 6, 0xffff)), (10, 2, (99, 1, 9, 97)), (16, 4, (0,)),
        (20, 4, (0, 1, 2**32 - 1)), (24, 4, (0, 1, 2**31, 2**32 - 1)), (12, 4, (0, 2**32 - 1)),
                                        (42, 4, (1, 2**32 - 1)), (28, 2, (0, 0xffff)), (4, 2, (0xffff,)), (34, 2, (7,
                                        ))))
    if rng.random() < 0.7:
        content[at + offset:at + offset + size] = rng.choice(values).to_bytes(size, "little")
    return bytes(content)


def zip_nested(rng, good):
    content = good
    for depth in range(rng.choice((1, 2, 3, 6))):
        content = zipped([(f"{depth}.zip" if depth else "a.ipynb", content)])
    return content


def zip_overlapping(rng, good):
    """A list of many files that are all the same bytes of the zip."""
    one = zipped([("a.ipynb", rng.choice((good, bytes(20_000_000), b" " * 24_000_000)))])
    start, end = one.index(b"PK\1\2"), one.index(b"PK\5\6")
    number = rng.choice((2, 30, 3_000))
    size = number * (end - start)
    return one[:start] + one[start:end] * number + b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, number, number, size, start, 0)


def zip_of_nothing(rng, good):
    return rng.choice((b"", zipped([]), zipped([("a/", b"")]), zipped([("__MACOSX/._a.ipynb", b"x")]),
        zipped([("notes.txt", b"x")]), zipped([(".ipynb_checkpoints/a.ipynb", good)]), zipped([("b.zip", zipped([]))]),
                       zipped([("b.zip", b"")]), zipped([("a.ipynb", b"")]), zipped([("a.ipynb", bytes(26_000_000))]),
                           zipped([(f"{i}.ipynb", good[:i]) for i in range(60)]), zipped([("a.ipynb", good)] * 3)))


def zip_in_a_folder(rng, good):
    raise NotImplementedError("written by in_containers")
