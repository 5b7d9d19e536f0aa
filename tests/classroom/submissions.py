"""Submissions as a class might hand them in, good and bad, made from the assignment's own source."""

import io
import json
import time
import zipfile

import pytest

from classroom import assignment, sandbox

NAME = "assignment1"
FULL = 26  # points for code
needs_sandbox = pytest.mark.skipif(sandbox.problem() is not None, reason=str(sandbox.problem()))
RIGHT = {  # right answers in a style of their own
    "most_similar_pair": """
def most_similar_pair(X):
    best, pair = -2, None
    for i in range(len(X)):
        for j in range(i + 1, len(X)):
            lengths = (X[i] @ X[i]) ** 0.5 * (X[j] @ X[j]) ** 0.5
            cosine = X[i] @ X[j] / lengths if lengths > 0 else 0
            if cosine > best:
                best, pair = cosine, (i, j)
    return pair
""",
    "softmax_with_temperature": """
def softmax_with_temperature(x, temperature):
    x = np.array(x) / temperature
    e = np.exp(x - np.max(x, axis=-1)[..., None])
    return e / np.sum(e, axis=-1)[..., None]
""",
    "cosine_attention": """
def cosine_attention(X, temperature):
    w = softmax_with_temperature(cosine_similarity(X, X), temperature)
    return [w @ X, w]
""",
    "effective_words": """
def effective_words(weights):
    w = np.array(weights)
    w[w == 0] = 1
    return np.exp((w * -np.log(w)).sum(-1))
""",
}


def released():
    """The notebook as it is handed out."""
    return assignment.strip(json.loads((assignment.SOURCES / NAME / f"{NAME}.ipynb").read_text(encoding="utf-8")))


def cell(source):
    return {"cell_type": "code", "id": f"new{abs(hash(source)) % 10**9}", "metadata": {}, "source": source, "outputs": [],
            "execution_count": None}


def written(raw, sources):
    """The notebook with these ``sources`` in the cells of these names: {grade_id of nbgrader: text}."""
    for c in raw["cells"]:
        c["source"] = sources.get(c["metadata"].get("nbgrader", {}).get("grade_id"), c["source"])
    return raw


def solutions(raw):
    """The teacher's notebook with its imports and solutions alone, as a student might hand it in: nothing is measured."""
    return with_cells(raw, lambda cells: [c for c in cells if c["id"] == "imports" or (
        c["cell_type"] == "code" and c["metadata"]["nbgrader"]["solution"])])


def solved(first=None, last=None, **functions):
    """A notebook with right answers, except for the ``functions`` given here, and without what takes most of the time;
    ``first``, one or a list, and ``last``: cells to add."""
    raw = released()
    raw["cells"] = [c for c in raw["cells"] if c["id"] not in ("measurement", "figure")]
    raw["cells"][1]["source"] = "import numpy as np\nfrom helpers.embeddings import cosine_similarity"
    written(raw, {name: source.strip() for name, source in (RIGHT | functions).items()})
    written(raw, dict.fromkeys(("answer-measurement", "answer-cosine"), "=1+1, because the temperature is low."))
    raw["cells"][1:1] = [cell(source) for source in (first if isinstance(first, list) else [first] if first else [])]
    raw["cells"] += [cell(last)] if last else []
    return raw


def old(raw):
    """The same notebook in nbformat 3."""
    cells = [{"cell_type": c["cell_type"], "metadata": {}, "input" if c["cell_type"] == "code" else "source": c["source"],
              **({"language": "python", "outputs": [], "collapsed": False} if c["cell_type"] == "code" else {})}
             for c in raw["cells"]]
    return {"metadata": {"name": ""}, "nbformat": 3, "nbformat_minor": 0, "worksheets": [{"cells": cells, "metadata": {}}]}


def sources(path):
    """The texts of a notebook's cells."""
    return ["".join(c["source"]) for c in json.loads(path.read_text(encoding="utf-8"))["cells"]]


def with_cells(raw, change):
    return {**raw, "cells": change(raw["cells"])}


def is_test(c):
    return c["metadata"].get("nbgrader", {}).get("grade") and c["cell_type"] == "code"


def renamed(cells):
    for number, c in enumerate(cells):
        c["metadata"] = {"nbgrader": {**c["metadata"].get("nbgrader", {}), "grade_id": f"cell-{number}", "points": 1000}}
    return cells


SWALLOWS = """
while True:
    try:
        while True: pass
    except BaseException: pass
"""
DETACHED = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True: time.sleep(0.1)  # left behind
    os._exit(0)
"""
BOMB = """
import os
while True:
    try: os.fork()
    except OSError: pass
"""
PATCHES = """
import sys, builtins, numpy as np
import helpers.checks, helpers.checks.core as core
core.evaluate = helpers.checks.evaluate = lambda *a, **k: core.Outcome("all", "passed", None, "")
np.allclose = np.array_equal = np.isclose = lambda *a, **k: True
np.testing.assert_allclose = lambda *a, **k: None
core.compare = lambda *a, **k: None
class Everything(str):
    def __eq__(self, other): return True
    def __hash__(self): return 0
core.Outcome.__bool__ = lambda self: True
"""
HOSTILE = """
class Liar:
    __array_priority__ = 1e9
    @property
    def __class__(self): return np.ndarray
    def __eq__(self, other): return True
    def __array__(self, *a, **k): raise SystemExit
    def __len__(self): return 10**12
    def __getattr__(self, name): return self
    def __call__(self, *a, **k): return self
def {name}(*args): return Liar()
"""
PLOTS = """
%matplotlib inline
import warnings, sys
import matplotlib.pyplot as plt
!ls -l
files = !ls
%config InlineBackend.figure_format = "svg"
warnings.warn("careful")
print("noise", file=sys.stderr)
plt.plot([1, 2])
plt.show()
%timeit sum(range(10))
"""

FRAME = """
import os, sys
frame = sys._getframe()
while "answers" not in frame.f_locals: frame = frame.f_back
answers, number = frame.f_locals["answers"], frame.f_locals["number"]
"""
AHEAD = FRAME + '''
for n in range(number, number + 600): os.write(answers, b'%d {"answers": [{"value": {"plain": null}}]}\\n' % n)
'''
FLOOD = FRAME + 'os.write(answers, b"x" * 30_000_000)'
DEEP = FRAME + 'os.write(answers, b"%d " % number + b"[" * 100_000 + b"\\n")'
ELSEWHERE = {name: f"def {name}(*a):\n    raise NotImplementedError()" for name in RIGHT}
OTHER_STYLES = """
from __future__ import annotations
import functools
import numpy as np
from helpers.embeddings import cosine_similarity as cos
def pair(X):
    c = cos(X, X)
    c[np.tril_indices(len(X))] = -np.inf
    return np.array(np.unravel_index(np.argmax(c), c.shape))
def twice(f):
    @functools.wraps(f)
    def g(*a): return f(*a)
    return g
class Words:
    def __call__(self, w):
        w = np.array(w, dtype=np.longdouble)
        w[w == 0] = 1
        return np.exp(-(w * np.log(w)).sum(-1))
@twice
def soft(x: np.ndarray, temperature: float = 1.0) -> list:
    print("hello")
    e = np.float32(x / temperature)
    e = np.exp(e - e.max(-1, keepdims=True))
    return (e / e.sum(-1, keepdims=True)).tolist()
most_similar_pair, softmax_with_temperature, effective_words = lambda X: pair(X), functools.partial(soft), Words()
def cosine_attention(X, temperature):
    w = np.array(softmax_with_temperature(cos(X, X), temperature))
    return (w @ X).tolist(), w
"""


def from_colab(raw):
    """As Colab saves it: its own metadata in place of all other."""
    cells = [{**c, "metadata": {"id": c["id"], "outputId": "x", "colab": {"base_uri": "https://localhost/"}}}
             for c in raw["cells"]]
    return {**raw, "nbformat_minor": 0, "cells": [{k: v for k, v in c.items() if k != "id"} for c in cells],
            "metadata": {"colab": {"provenance": []}, "accelerator": "GPU", "kernelspec": {"name": "python3"}}}


RAW_FORMS = """
import sys
import numpy as np
wire = sys.modules["wire"]
encode = wire.encode
class Form:
    def __init__(self, form): self.form = form
wire.encode = lambda value, *a: value.form if type(value) is Form else encode(value, *a)
"""
BOMBS = {  # what the functions give back, or what they say that they do: a few bytes that become gigabytes outside
    "most_similar_pair": "[np.zeros((60_000, 0))] * 201",
    "softmax_with_temperature": "Form({'dtype': 'i1', 'shape': [100_000] + [1] * 31, 'data': 'AAAA' * 33_333 + 'AA==', "
                                "'is': 'list'})",
    "cosine_attention": "Form({'generator': {'bit_generator': 'PCG64', 'state': {'state': -1, 'inc': 10**4000}}})",
    "effective_words": "np.zeros((2_000_000, 2_000_000, 0))",
}
LINES = [  # answers of a cell
    'b"9" * 100_000', 'b"[" + b"[]," * 1_000_000 + b"0]"', 'b"{" + b\'"error": [],\' * 500_000 + b\'"kind": NaN}\'',
    'b\'{"error": \' + b"[" * 9_000', 'b\'{"error": [\' + b"[]," * 1_500_000 + b"0]}"']


# name -> (notebook, or text, or bytes; points expected or None; status expected; words in the reason, notes or messages)
PAIR = "def most_similar_pair(X):\n    "
WORDS = "def effective_words(w):\n    "
CASES = {
    "good": (solved(), FULL, "graded", ""),
    # cells that end badly cost nothing when the functions are there
    "cell_swallows": (solved(SWALLOWS), FULL, "graded", "did not end within"),
    "cell_exit": (solved("import os; os._exit(0)"), FULL, "graded", "exit code 0"),
    "cell_kill": (solved("import os, signal; os.kill(os.getpid(), signal.SIGKILL)"), FULL, "graded", "SIGKILL"),
    "cell_kill_all": (solved("import os; os.kill(-1, 9)"), FULL, "graded", ""),
    "cell_stop": (solved("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)"), FULL, "graded", "did not end"),
    "cell_close": (solved("import os; os.closerange(0, 200)"), FULL, "graded", ""),
    "cell_memory": (solved("x = bytearray(6 * 2**30)"), FULL, "graded", "memory"),
    "cell_output": (solved("import os\nprint('x' * 200_000_000)\nfor _ in range(200): os.write(1, b'x' * 1_000_000)"),
                    FULL, "graded", ""),
    "cell_file": (solved("with open('/tmp/big', 'wb') as f:\n    for _ in range(1000): f.write(bytes(1_000_000))"),
                  FULL, "graded", "too large"),
    "cell_detached": (solved(DETACHED), FULL, "graded", ""),
    "cell_sys_exit": (solved("import sys; sys.exit()"), FULL, "graded", "SystemExit"),
    "cell_bash": (solved("%%bash\nrm -rf / &\n"), FULL, "graded", ""),
    "cell_plots": (solved(PLOTS), FULL, "graded", ""),
    "fork_bomb": (solved("import os\nwhile True: os.fork()"), FULL, "graded", "unavailable"),
    "fork_bomb_2": (solved(BOMB), FULL, "graded", "did not end|used too much CPU time"),  # what a machine comes to first
    "cell_strict": (solved("import warnings\nimport numpy as np\nwarnings.simplefilter('error')\nnp.seterr(all='raise')"),
                    FULL, "graded", ""),
    "other_styles": (solved(OTHER_STYLES, **ELSEWHERE), FULL, "graded", ""),
    "other_styles_below": (solved(last=OTHER_STYLES, **ELSEWHERE), FULL, "graded", ""),
    "colab": (from_colab(solved("from google.colab import drive\ndrive.mount('/content/drive')")), FULL, "graded", "google"),
    # the connection belongs to the submission: it can break it, and gains nothing
    "fork_and_both_answer": (solved("import os; os.fork()"), FULL, "graded", ""),
    "answers_ahead": (solved(AHEAD), 0, "graded", "None"),
    "answers_flood": (solved(FLOOD), FULL, "graded", "far more"),
    "answers_deep": (solved(DEEP), FULL, "graded", "cannot be read as an answer"),
    # one function fails and costs one test or two
    "function_endless": (solved(most_similar_pair=PAIR + "while True: pass"), FULL - 6, "partly graded", "did not end"),
    "function_exit": (solved(most_similar_pair=PAIR + "import os; os._exit(0)"), FULL - 6, "partly graded",
                      "ended its own process"),
    "function_memory": (solved(most_similar_pair=PAIR + "return bytearray(6 * 2**30)"), FULL - 6, "partly graded", "memory"),
    "interface": (solved(effective_words="class A:\n    __array_interface__ = {'shape': (10**9,), 'typestr': '<f8', 'data': "
                         "(0, True), 'version': 3}\ndef effective_words(w):\n    return np.asarray(A())"),
                  FULL - 5, "partly graded", ""),
    "cyclic": (solved(effective_words=WORDS + "x = []; x.append(x); return x"), FULL - 5, "graded", "ValueError"),
    "prints_codes": (solved(effective_words=WORDS + "print('\\x1b[2J\\0<b>'); return w"), FULL - 5, "graded",
                     "printed: ?[2J?<b>"),
    "function_huge": (solved(most_similar_pair=PAIR + "return np.broadcast_to(0.0, 10**9)"), FULL - 6, "graded", "1000000"),
    "function_segfault": (solved(most_similar_pair=PAIR + "import ctypes; ctypes.string_at(0)"), FULL - 6,
                          "partly graded", ""),
    "everything_endless": (with_cells(solved(**{name: f"def {name}(*a):\n    while True: pass" for name in RIGHT}),
                                      lambda cells: [c for c in cells if not is_test(c)]), None, "time limit", ""),
    # wrong values are wrong, whatever else the notebook does
    "patched": (solved(PATCHES, most_similar_pair=PAIR + "return Everything()"), FULL - 6, "graded", ""),
    "hostile": (solved(most_similar_pair=HOSTILE.replace("{name}", "most_similar_pair")), FULL - 6, "graded", ""),
    "nan": (solved(effective_words=WORDS + "return np.full(w.shape[:-1], np.nan)"), FULL - 5, "graded", "nan"),
    "complex": (solved(effective_words=RIGHT["effective_words"].strip() + " * (1 + 0j)"), FULL - 5, "graded", "real"),
    "objects": (solved(effective_words=WORDS + "return np.full(w.shape[:-1], None)"), FULL - 5, "graded", "object"),
    "strings": (solved(effective_words=WORDS + "return '\\ud800' * 50"), FULL - 5, "graded", ""),
    "overflow": (solved(softmax_with_temperature="def softmax_with_temperature(x, t):\n    e = np.exp(x / t)\n"
                        "    return e / e.sum(-1, keepdims=True)"), FULL - 2, "graded", "overflow"),
    "changes_input": (solved(effective_words=RIGHT["effective_words"].replace("w = np", "weights *= 0.5; w = 2 * np")),
                      FULL - 5, "graded", "changes its input"),
    "wrong_signature": (solved(effective_words="def effective_words(a, b):\n    return 1"), FULL - 5, "graded", "signature"),
    # cells and files in disorder
    "tests_deleted": (with_cells(solved(), lambda cells: [c for c in cells if not is_test(c)]), FULL, "graded", ""),
    "duplicated": (with_cells(solved(), lambda cells: cells + cells), FULL, "graded", ""),
    "reversed": (with_cells(solved(), lambda cells: cells[::-1]), FULL, "graded", ""),
    "renamed": (with_cells(solved(), renamed), FULL, "graded", ""),
    "format_3": (old(solved()), FULL, "graded", "old format"),
    "empty": (b"", None, "unreadable", "empty"),
    "corrupt": (json.dumps(solved())[:-500], None, "unreadable", "cut off"),
    "not_a_notebook": (b'{"a": [1, 2]}', None, "unreadable", "no cells"),
    "binary": (bytes(range(256)) * 50, None, "unreadable", "not a notebook"),
    "latin_1": (json.dumps(solved("# caf\u00e9"), ensure_ascii=False).encode("latin-1"), FULL, "graded", "UTF-8"),
    "utf_16": (json.dumps(solved()).encode("utf-16"), FULL, "graded", ""),
    "deep_json": (b"[" * 100_000, None, "unreadable", "not a notebook"),
}


# What people thought of since. Each runs beside honest ones, and costs them nothing.
IGNORES = """
import signal
for s in range(1, 65):
    try: signal.signal(s, signal.SIG_IGN)
    except (OSError, ValueError): pass
"""
WORDS_THAT_END = """
class E(Exception):
    def __str__(self):
        while True: pass
raise E
"""
HOOK = """
import sys
class Hook:
    def find_spec(self, *a): raise SystemExit
sys.meta_path.insert(0, Hook())
"""
KILLED = "did not end|used too much CPU time|memory|SIG"
LATER = {
    "later_recursion": ("import sys; sys.setrecursionlimit(10**9)\ndef f(): f()\nf()",
                        "did not end|SIG|RecursionError|memory"),
    "later_threads": ("import threading, time\nfor _ in range(200):\n"
                      "    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()", ""),
    "later_ignores": (IGNORES, ""),
    "later_timer": ("import signal; signal.setitimer(signal.ITIMER_PROF, 0)\nwhile True: pass", KILLED),
    "later_at_exit": ("import atexit, os; atexit.register(os.abort)", ""),
    "later_stdin": ("print(open(0).read())", ""),
    "later_many_files": ("for i in range(10**6): open(f'/tmp/{i}', 'w').close()", ""),
    "later_sparse_file": ("open('/dev/shm/x', 'wb').truncate(10**12)", "OSError"),
    "later_link_loop": ("import os; os.symlink('/tmp/a', '/tmp/a'); open('/tmp/a')", "OSError"),
    "later_own_memory": ("open('/proc/self/mem', 'r+b').write(b'x')", "Error"),
    "later_mount": ("import ctypes; assert ctypes.CDLL(None).mount(b'/', b'/tmp', b'', 4096, b'') == 0", "AssertionError"),
    "later_pattern": ("import re; re.match('(a+)+$', 'a' * 50 + 'b')", KILLED),
    "later_words": ("class E(Exception):\n    def __str__(self): return 'x' * 10**9\nraise E", ""),
    "later_endless_words": (WORDS_THAT_END, KILLED),
    "later_hook": (HOOK, ""),
    "later_collector": ("import gc; gc.callbacks.append(lambda *a: 1 / 0)", ""),
    "later_sleeps": ("import time\nwhile True:\n    try: time.sleep(1000)\n    except BaseException: pass", "did not end"),
}
CASES |= {name: (solved(source), FULL, "graded", words) for name, (source, words) in LATER.items()}
CASES |= {  # these harm themselves: they leave no room for a call, or take away what they need
    "later_threads": (*CASES["later_threads"][:1], None, "time limit", "can't start new thread"),
    "later_ignores": (*CASES["later_ignores"][:1], None, "crashed", "")}
CASES["bombs"] = (solved(RAW_FORMS, **{name: f"def {name}(*a):\n    return {bomb}" for name, bomb in BOMBS.items()}), 0,
                  "partly graded", "more than 100,000 members")
CASES["bombs_of_json"] = (solved([FRAME + f'os.write(answers, b"%d " % number + {line} + b"\\n")' for line in LINES]), FULL,
                          "graded", "cannot be read as an answer")

EVERY_TIME = {  # one of a kind; the rest is left to the weekly run
    "good", "other_styles_below", "colab", "tests_deleted", "duplicated", "cell_exit",
    "cell_kill_all", "cell_memory", "cell_detached", "cell_swallows", "cell_output", "cell_plots",
    "fork_bomb", "fork_bomb_2", "fork_and_both_answer", "answers_ahead", "answers_flood", "function_endless",
    "function_exit", "function_memory", "function_segfault", "hostile", "patched", "changes_input", "overflow", "bombs",
    "bombs_of_json", "later_stdin", "empty", "corrupt", "not_a_notebook", "binary", "deep_json",
    "format_3", "latin_1", "utf_16"}


def data(content):
    """The bytes of a case's file."""
    return content if isinstance(content, bytes) else (content if isinstance(content, str) else json.dumps(content)).encode()


def put(top, files):
    """Write files below the folder ``top``: path -> bytes."""
    for path, content in files.items():
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_bytes(content)


def zipped(members, path=None):
    """A zip of these members, name -> content, without a date: its bytes, or at a ``path``."""
    buffer = path or io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            member = zipfile.ZipInfo(name) if isinstance(name, str) else name
            archive.writestr(member, content, zipfile.ZIP_DEFLATED)
    return None if path else buffer.getvalue()


def read(path):
    """The bytes of a file that may have gone by now."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def gone(left):
    """Killed processes need a moment to go: all of ``left()`` do, however slow the machine is."""
    for _ in range(600):
        if not left():
            return
        time.sleep(0.1)
    pytest.fail(f"processes are left: {left()}")
