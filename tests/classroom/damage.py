"""Damaged submissions from a seed: the same seed always gives the same one, so that a failure can be repeated.

    damaged(1234).words     what was done to it
    damaged(1234).files     what lies there: path -> bytes
"""

import copy
import json
import random
import struct
from dataclasses import dataclass

from submissions import RIGHT, cell, data, from_colab, old, released, solved, zipped

WIDE = "a\u0301\u202e\u2066\u200f\ufeff\0\x1b[2J\ud800\U0001f600\u2028\x85<script>alert(1)</script>=1+1\t\r\n;'\""
NUMBERS = (0, -1, 2**63, -2**200, 1e308, 1.5, float("nan"), float("inf"), float("-inf"), True)
ODD = (None, "", "x", "4", WIDE, "code", [], {}, [[]], [1, 2], [None, {}], {"a": {"b": [WIDE]}}, ["a", "b\n"], *NUMBERS)


@dataclass
class Damaged:
    student: str
    words: str
    files: dict


def damaged(seed):
    rng, student = random.Random(seed), f"s{seed}"
    how = rng.choices((in_bytes, in_structure, in_code, in_a_zip), (28, 30, 27, 10))[0]
    words, content = how(rng)
    name = rng.choice(("a", "assignment1 (2)", "Lösung", " "))
    path = f"{student}.ipynb" if rng.random() < 0.3 else f"{student}/{name}.ipynb"
    if how is in_a_zip:
        path = student + rng.choice((".zip", "/work.zip"))
    return Damaged(student, f"damaged({seed}): {how.__name__} {words}", {path: content})


def some_notebook(rng):
    return rng.choice((solved, solved, solved, released, lambda: old(solved()), lambda: from_colab(solved())))()


def place(rng, content):
    return rng.randrange(len(content) + 1)


def flipped(rng, content):
    content = bytearray(content)
    for _ in range(rng.choice((1, 10, 1000)) if content else 0):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    return bytes(content)


def inserted(rng, content):
    at = place(rng, content)
    what = rng.choice((rng.randbytes(rng.choice((1, 8, 5000))), b"\0", b"\xff", b"}", b'"', b"\\", b"\xed\xa0\x80",
                       b"\\ud800", b"NaN", b"1e999", b"9" * 5000, b"[" * 2000, b'{"a":' * 2000, b"// hi\n"))
    return content[:at] + what + content[at:]


def encoded(rng, content):
    coding = rng.choice(("utf-16", "utf-16-be", "utf-32-le", "utf-7", "latin-1", "cp1252", "cp037", "utf-8-sig"))
    return content.decode("utf-8", "replace").encode(coding, "replace")


def replaced(rng, content):
    key = rng.choice((b'"cells"', b'"source"', b'"metadata"', b'"cell_type"', b'"assignment"', b", ", b"\\n", b": "))
    return content.replace(key, rng.choice((b'"source"', key + b": [], " + key, key.upper(), b'"\\ud800"', b"\r")))


BYTES = {
    "cut": lambda rng, content: content[:place(rng, content)],
    "beheaded": lambda rng, content: content[place(rng, content):],
    "flipped": flipped, "inserted": inserted, "encoded": encoded, "replaced": replaced,
    "twice": lambda rng, content: content + rng.choice((b"", b",", b"\0" * 4096)) + content,
    "marked": lambda rng, content: rng.choice((b"\xff\xfe", b"\0", b"\x1f\x8b", b"PK\3\4", b"%PDF-1.7\n")) + content,
    "something else": lambda rng, _: rng.choice((
        b"", b"\n" * 5000, b"null", b"NaN", b'"x"', b"[" * 90_000, b'{"cells":' * 90_000, b"1." + b"3" * 200_000,
        rng.randbytes(20_000), b'{"cells": {}}', b"# a script\nx = 1\n", b'{"cells": null, "worksheets": {}}',
        b'{"cells": [' + b"{}," * 1999 + b"{}]}"))}


def in_bytes(rng):
    content, words = data(some_notebook(rng)), rng.choices(list(BYTES), k=rng.choice((1, 1, 1, 2, 4)))
    for word in words:
        content = BYTES[word](rng, content)
    return ", ".join(words), content


def nodes(raw):
    """Every place of a value in the notebook: pairs of a container and a key."""
    queue, places = [raw], []
    while queue:
        node = queue.pop()
        for key in list(node) if isinstance(node, dict) else range(len(node)):
            places.append((node, key))
            if isinstance(node[key], dict | list):
                queue.append(node[key])
    return places or [({"a": 0}, "a")]


def odd(rng):
    """A value that stands nowhere in a good notebook, or stands there at another place."""
    deep = copy.deepcopy(rng.choice((*ODD, "../../etc", ["def f():", "\n", 3], {"a.png": {"image/png": "!"}},
                                     "=cmd|' /C calc'!A0", "e\u0301" * 999)))
    for _ in range(rng.choice((0, 0, 0, 300))):
        deep = [deep] if rng.random() < 0.5 else {"a": deep}
    return deep


def some_places(rng, raw):
    """Odd or missing."""
    for _ in range(rng.choice((1, 1, 3, 20))):
        node, key = rng.choice(nodes(raw))
        node[key] = odd(rng)
        if rng.random() < 0.5:
            del node[key]


def one_key_everywhere(rng, raw):
    """Such as the source of half of the cells, or the grade_id that nbgrader gave to them."""
    wanted = rng.choice(("source", "cell_type", "metadata", "id", "outputs", "attachments", "nbgrader", "grade_id", "points",
                         "grade", "solution", "assignment", "nbformat", "cells"))
    for node, key in nodes(raw):
        if key == wanted and rng.random() < 0.6:
            node[key] = rng.choice((odd(rng), *RIGHT, 10**30, "answer-1"))


def order(rng, raw):
    if isinstance(raw.get("cells"), list):
        rng.shuffle(raw["cells"])
        raw["cells"] *= rng.choice((1, 2, 30)) if len(raw["cells"]) < 100 else 1


def much(rng, raw):
    """More than anybody wrote, at one place."""
    node, key = rng.choice(nodes(raw))
    node[key] = rng.choice(([cell("")] * 10_000, [None] * 100, "\n" * 99_000, "A" * 300_000, WIDE * 10_000))


def in_structure(rng):
    raw = some_notebook(rng)
    changes = rng.choices((some_places, one_key_everywhere, order), (2, 1, 1), k=rng.choice((1, 1, 2, 5)))
    changes += [much] * (rng.random() < 0.1)
    for change in changes:
        change(rng, raw)
        raw = json.loads(json.dumps(raw))  # nothing of it is also elsewhere
    text = json.dumps(raw, ensure_ascii=rng.random() < 0.7, indent=rng.choice((None, 1)))
    return ", ".join(change.__name__ for change in changes), text.encode("utf-8", "surrogatepass")


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


def mangled(rng, source):
    for _ in range(rng.choice((1, 2, 5))):
        at = place(rng, source)
        what = rng.choice("()[]{}:,;'\"\\\n\t\f\r =#@!%?.*~`$\0é\u202e\ud8000x") * rng.choice((1, 1, 3000))
        source = source[:at] + what + source[at + rng.randrange(3):]
    return source


def in_code(rng):
    kind, raw, words = rng.choice(("cells", "cells", "values", "raised", "mangled")), solved(), "mangled"
    if kind == "cells":
        words = rng.sample(CELLS, rng.choice((1, 1, 2, 3)))
        for source in words:
            raw["cells"].insert(rng.randrange(1, len(raw["cells"]) + 1), cell(source))
    elif kind == "mangled":
        for c in raw["cells"]:
            if c["cell_type"] == "code" and rng.random() < 0.4:
                c["source"] = mangled(rng, "".join(c["source"]))
    else:
        value, name = rng.choice(VALUES if kind == "values" else RAISED), rng.choice(list(RIGHT))
        arguments = RIGHT[name].split("(")[1].split(")")[0]
        words = f"{name} gives {value}"
        body = f"raise {value}" if kind == "raised" else rng.choice((f"return {value}", f"return [{value}, {value}]"))
        raw = solved(**{name: f"import numpy as np, torch{HELP}\ndef {name}({arguments}):\n    {body}"})
    return str(words)[:200], json.dumps(raw).encode()


def in_a_zip(rng):
    """Bytes changed anywhere, in the list of files or at the end; cut; or a list of many files that are the same bytes."""
    good = data(solved())
    content = zipped({rng.choice(("a.ipynb", "A.IPYNB/", "x" * 60_000 + ".ipynb", "a\nb.ipynb")): good, "b.txt": b"x"})
    how = rng.choice(("changed", "changed", "changed", "cut", "overlapping"))
    if how == "changed":
        content, low = bytearray(content), rng.choice((0, len(content) - 200, len(content) - 22))
        for _ in range(rng.choice((1, 2, 20))):
            content[rng.randrange(low, len(content))] = rng.choice((0, 1, 255, rng.randrange(256)))
    elif how == "cut":
        content = rng.choice((content[:place(rng, content)], rng.randbytes(50) + content, content + rng.randbytes(500)))
    else:
        one, number = zipped({"a.ipynb": rng.choice((good, bytes(20_000_000)))}), rng.choice((2, 30, 3_000))
        start, end = one.index(b"PK\1\2"), one.index(b"PK\5\6")
        size = number * (end - start)
        content = one[:start] + one[start:end] * number + b"PK\5\6" + struct.pack(
            "<HHHHIIH", 0, 0, number, number, size, start, 0)
    return how, bytes(content)
