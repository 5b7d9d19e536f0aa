"""How a checker judges: stubs, odd attempts and odd results, the time limit, and what is shown."""

import ast
import functools
import importlib.util
import re
import subprocess
import sys
import threading
import time
import warnings
from dataclasses import replace

import numpy as np
import pytest

from helpers import checks
from helpers.checks import check, core, exercise
from helpers.checks.core import Misconception, evaluate
from helpers.checks.stubs import is_stub


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def judge(attempt, name="softmax", **options):
    return evaluate(exercise(name), attempt, **options)


STUBS = ["def f(x): ...", "def f(x): pass", "def f(x):\n    'What it does.'\n    ...", "def f(x): 'What it does.'",
         "def f(x): raise NotImplementedError", "def f(x, *, y=1):\n    'Words.'\n    raise NotImplementedError('to do')",
         "def f(x): return", "def f(*x): return None"]
WRITTEN = ["def f(x): return x", "def f(x): return 1", "def f(x): return True", "def f(x): return 'words'",
           "def f(x): print(x)", "def f(x): raise ValueError", "def f(x): yield",
           "f = lambda x: 1", "f = len", "class f: pass", "import functools\nf = functools.partial(print)"]


@pytest.mark.parametrize(("source", "expected"), [*((s, True) for s in STUBS), *((s, False) for s in WRITTEN)])
def test_stubs_are_told(tmp_path, source, expected):
    file, names = tmp_path / "cell.py", {}
    file.write_text(source, encoding="utf-8")
    exec(compile(source, str(file), "exec"), names)
    assert is_stub(names["f"]) is is_stub(ast.parse(source).body[0]) is expected


def test_stubs_are_not_started():
    def nested(x):
        """Say what it does."""
        ...

    @functools.wraps(nested)
    def decorated(x):
        return nested(x)

    for stub in (nested, functools.cache(nested), decorated):
        outcome = judge(stub, "softmax")
        assert outcome.status == "not started"
        assert not outcome


def test_an_exercise_of_arrays_is_checked_on_tensors_where_an_attempt_is_written_for_them(capsys):
    import torch

    def rotate(x, positions, base=10000.0):
        angles = positions[:, None] * base ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
        a, b = x[..., ::2], x[..., 1::2]
        return torch.stack([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], -1).flatten(-2)

    def backwards(x, positions):
        return rotate(x, -positions)

    assert not evaluate(exercise("rotate"), rotate) and check(rotate)
    assert check(backwards, "rotate").misconception is not None
    assert "stopped" in check(lambda x, positions: x.nothing, "rotate").message


def stubborn(x):
    while True:
        try:
            x = x + 1
        except BaseException:
            pass


@pytest.mark.parametrize("clock", ["a thread's own", "none, as on Windows", "unreadable, as in Pyodide"])
def test_endless_loops_end_and_a_right_answer_is_right(monkeypatch, clock):
    def unreadable(clock):
        raise OSError(22, "Invalid argument")

    if "Windows" in clock:
        monkeypatch.delattr(time, "pthread_getcpuclockid", raising=False)
    if "Pyodide" in clock:
        monkeypatch.setattr(time, "clock_gettime", unreadable, raising=False)
    outcome = judge(stubborn, seconds=0.3)
    assert outcome.status == "error"
    assert re.search("never ends|computed for less than 0.3 of them", outcome.message)  # where others have the processor
    assert judge(softmax)


def test_the_limit_counts_what_is_computed_and_not_the_clock():
    """A machine that gives a right answer no time for a while is as one on which it sleeps."""
    slept = []

    def attempt(x):
        if not slept:
            time.sleep(0.6)
            slept.append(True)
        return softmax(x)

    assert judge(attempt, seconds=0.4) and slept


def test_an_attempt_that_waits_for_ever_ends_too_and_is_told_so():
    def attempt(x):
        while True:
            time.sleep(0.01)

    outcome = judge(attempt, seconds=0.04)
    assert outcome.status == "error"
    assert "within 0.48 seconds, and computed for less than 0.04 of them" in outcome.message
    assert "never ends" not in outcome.message


def test_a_check_does_not_wait_for_torchs_compiler(monkeypatch):
    """Imported at the first tensor that was watched, it took four CPU-seconds before the learner read a word."""
    pytest.importorskip("torch")
    monkeypatch.setitem(sys.modules, "torch._dynamo", None)  # whoever imports it now gets an ImportError
    found = importlib.util.find_spec("helpers.checks.lesson14")
    fresh = importlib.util.module_from_spec(found)
    found.loader.exec_module(fresh)
    assert evaluate(fresh.LINEAR_ATTENTION, fresh.linear_attention)


def test_the_callers_limit_holds_for_the_attempt_the_mistakes_and_the_contracts(monkeypatch):
    call, given = core.call, set()

    def seen(function, args, seconds, *others):
        given.add(seconds)
        return call(function, args, seconds, *others)

    monkeypatch.setattr(core, "call", seen)
    exact = exercise("nearest_neighbours")
    for attempt in (exact.reference, exact.misconceptions[-1].function):
        evaluate(exact, attempt, seconds=77)
    assert given == {77}


def test_a_mistake_that_takes_too_long_names_nobody():
    def endless(x):
        while True:
            pass

    slow = replace(exercise("softmax"), misconceptions=(Misconception("endless", "You go on for ever.", endless),))
    outcome = evaluate(slow, lambda x: -x, seconds=0.1)
    assert (outcome.status, outcome.misconception) == ("wrong", None)


def test_the_time_limit_leaves_nothing_behind():
    before = set(threading.enumerate())
    for _ in range(200):
        judge(softmax, seconds=0.0005)  # in some calls the limit strikes just when the attempt is ready
        sum(range(1000))
    assert judge(softmax, seconds=600)
    for thread in set(threading.enumerate()) - before:
        thread.join(60)
        assert not thread.is_alive()


def test_where_no_thread_can_start_it_is_the_same():
    """As in a browser: a right answer is right there too, a mistake is named, and endless loops end. In a process of its
    own: Python 3.11 hangs in a traced function once an exception was sent to its thread, as the other tests do."""
    code = """
import sys, threading
from helpers.attention import softmax
from helpers.checks import exercise
from helpers.checks.core import evaluate

def cannot_start(thread):
    raise RuntimeError("can't start new thread")

def endless(x):
    while True:
        x = x + 1

threading.Thread.start = cannot_start
for attempt in (softmax, lambda x: softmax(x.T).T, endless, endless):
    outcome = evaluate(exercise("softmax"), attempt, seconds=0.3 if attempt is endless else 60)
    ended = any(words in outcome.message for words in ("never ends", "Does it sleep"))  # the other on a busy machine
    print(outcome.status, outcome.misconception, ended, sys.gettrace())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines() == ["passed None False None", "wrong columns-sum-to-1 False None",
                                        "error None True None", "error None True None"], done.stderr


def forgets_to_return(x):
    e = np.exp(x)
    e / e.sum()


def crashes(x):
    shifted = x - x.max(axis=7)
    return shifted


def prints(x):
    print("the shape is", x.shape)
    return -x


def in_place(x):
    x -= x.max(axis=-1, keepdims=True)
    return softmax(x)


def stream_in_place(x, memory, look_back, look_across, work, norm1, norm2, norm3):
    x += look_back(norm1(x))
    x += look_across(norm2(x), memory)
    x += work(norm3(x))
    return x


def table_in_place(ids, tokens, positions, blocks, norm, W_out):
    """Right only where no word comes twice."""
    tokens[ids] += positions[:ids.shape[1]]
    return exercise("language_model").reference(ids, tokens, 0 * positions, blocks, norm, W_out)


def heads_in_place(head_outputs, heads, mean=False):
    for head in heads:
        head_outputs[:, head] = head_outputs[:, head].mean(dim=(0, 1)) if mean else 0
    return head_outputs


def whole_row(a, b, c, V):
    found = COSINES((V[b] - V[a] + V[c])[None, :], V)
    found[[a, b, c]] = -np.inf
    return int(found.argmax())


def turned_in_place(way):
    def attempt(x, positions):
        angles = way * positions[:, None] * 10000.0 ** (-np.arange(0, x.shape[-1], 2) / x.shape[-1])
        even, odd = x[..., 0::2], x[..., 1::2]  # no copies
        x[..., 0::2] = even * np.cos(angles) - odd * np.sin(angles)
        x[..., 1::2] = even * np.sin(angles) + odd * np.cos(angles)
        return x
    return attempt


def scores_hidden(Q, K, V, mask, scale):
    with np.errstate(invalid="ignore"):
        weights = np.nan_to_num(softmax(np.where(mask, Q @ np.swapaxes(K, -1, -2) / scale, -np.inf)))
    return weights @ V, weights


def other_keys(q, k, v, cache):
    output, (K, V) = exercise("decode_step").reference(q, k, v, cache)
    return output, (K + 1, V)


def merged_in_place(ids, pair, new_id):
    ids[:] = exercise("merge_pair").reference(ids, pair, new_id)
    return ids


COUNT, LEARN = exercise("count_pairs").reference, exercise("learn_merges").reference
ENCODE, DECODE = exercise("bpe_encode").reference, exercise("bpe_decode").reference
COSINES = exercise("cosine_similarity").reference

TOLD = [  # exercise, attempt, the mistake that is named or else the status, words of the message
    ("softmax", forgets_to_return, "no-return", "return"),
    ("softmax", crashes, "error", "AxisError"),
    ("softmax", crashes, "error", "shifted = x - x.max(axis=7)"),
    ("softmax", prints, "wrong", "It printed: the shape is (3,)"),
    ("softmax", lambda x: __import__("sys").exit(), "error", "SystemExit"),
    ("softmax", lambda x, axis: x, "error", "(x), in this order"),
    ("softmax", lambda x, axis: x, "error", "takes (x, axis)"),
    ("softmax", in_place, "changes-input", "Work on a copy"),
    ("softmax", in_place, "changes-input", "x = x + …"),
    ("decoder_block", stream_in_place, "changes-input", "x += …"),
    ("language_model", table_in_place, "changes-input", "tokens[…] = …"),
    ("ablate_heads", heads_in_place, "changes-input", ""),
    ("softmax", lambda x: np.exp(x) / np.exp(x).sum(axis=0), "columns-sum-to-1", ""),  # and overflow
    ("self_attention", lambda X: None @ X, "error", "return nothing yet"),
    # strange results
    ("softmax", lambda x: 1, "wrong", "shape"),
    ("softmax", lambda x: "text", "wrong", "str"),
    ("softmax", lambda x: {}, "wrong", "dict"),
    ("softmax", lambda x: (yield x), "wrong", "generator"),
    ("softmax", lambda x: softmax(x) if x.ndim == 1 else None, "wrong", "is None"),
    ("softmax", lambda x: softmax(x).astype(complex), "wrong", "real numbers"),
    ("softmax", lambda x: softmax(x) * np.nan, "wrong", "nan"),
    ("cosine_similarity", lambda X, Y: (X @ Y.T).astype(str), "wrong", ""),
    ("analogy", lambda *args: float(exercise("analogy").reference(*args)), "wrong", "whole numbers"),
    ("decode_step", other_keys, "wrong", "the first part of the new cache at ["),
    ("count_pairs", lambda w: {}, "wrong", "should have 1 for (97, 98), and has no (97, 98)"),
    ("count_pairs", lambda w: {(97, 98): 1, (1, 1): 0}, "wrong", "should have no (1, 1), and has 0 for it"),
    ("count_pairs", lambda w: 7, "wrong", "should be a dict, and is of type int"),
    ("merge_pair", lambda i, p, n: [n, n], "wrong", "should be [256], and is [256, 256]"),
    ("merge_pair", lambda i, p, n: "x", "wrong", "should be 1 values, and is of type str"),
    ("merge_pair", merged_in_place, "changes-input", ""),
    ("bpe_decode", lambda i, m: b"no", "wrong", "should be b'ab', and is b'no'"),
    ("hard_attention", lambda q, K, V: V.sum(), "wrong", "An axis is missing"),
    ("hard_attention", lambda q, K, V: V[None], "wrong", "an axis too many"),
    ("scaled_dot_product_attention", lambda Q, K, V: 1, "wrong", "The result does not have the right form yet"),
    ("layer_norm", lambda x, gain, bias, eps: (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True), "std-alone",
     "is nan.\nnan, not a number, is what 0 / 0"),
    # errors, and what to look at
    ("split_heads", lambda X, n: X.reshape(*X.shape[:2], n, X.shape[2] / n), "error", "with //"),
    ("softmax", lambda x: np.exp(x) / np.exp(x).sum(axis=3), "error", "axis=-1"),
    ("softmax", lambda x: (x, x).shape, "error", "Take the one you need"),
    ("nearest_neighbours", lambda q, V, k: [1] if V else [0], "error", "is not None"),
    ("bpe_encode", lambda ids, merges: [merges[pair] for pair in zip(ids, ids[1:], strict=False)], "error", "no such key"),
    ("sliding_window_mask", lambda T, window, causal:
     (distance := np.arange(T)[:, None] - np.arange(T)) <= window and distance >= 0, "error", "& and not with `and`"),
    ("bpe_encode", lambda ids, merges: [min(i for i in ids if i > 255)], "error", "nothing to choose from"),
    ("answer_loss", lambda logits, ids, first, pad=-1: logits[:, :-1][ids != pad].mean(), "error", "Cut it like the ids"),
    ("nearest_neighbours", lambda q, V, k: np.argsort(-COSINES(q, V))[:k], "error", "query[None, :]"),
    ("nearest_neighbours", lambda q, V, k: np.argsort(-(V @ q) / np.linalg.norm(q, axis=1))[:k], "error", "query[None, :]"),
    ("nearest_neighbours", lambda q, V, k: np.argsort(-(V @ q) / (q[:, 0] + 1))[:k], "error", "query[None, :]"),
    ("analogy", lambda a, b, c, V: int(COSINES(V[b] - V[a] + V[c], V).argmax()), "error", "target[None, :]"),
    ("analogy", whole_row, "error", "Take that row with [0]"),
    ("cached_attention", lambda q, k, v, cache=None: (q, (cache[0], cache[1])), "error", "cache is None here"),
    # mistakes with a hint that is theirs
    ("self_attention", lambda X: softmax(X.T @ X) @ X, "error", "X @ X.T"),
    ("rotate", turned_in_place(1), "overwritten", "new array"),
    ("qkv_attention", lambda X, W_q, W_k, W_v: (
        (w := softmax((X @ W_q) @ (X @ W_k).T / W_k.shape[1] ** 0.5)).T @ (X @ W_v), w), "weights-transposed",
     "more than one mistake"),
    ("attention_scores", lambda Q, K: K @ np.swapaxes(Q, -1, -2) / Q.shape[-1] ** 0.5, "scaled", "more than one mistake"),
    ("bilinear_form", lambda W_q, W_k: W_k @ W_q.T / W_q.shape[1] ** 0.5, "keys-first", "more than one mistake"),
    # two mistakes at once, and mistakes that had no hint of their own
    ("masked_attention", lambda Q, K, V, mask: scores_hidden(Q, K, V, ~mask, 1), "inverted", "more than one mistake"),
    ("masked_attention", lambda *args: scores_hidden(*args, args[2].shape[-1] ** 0.5)[::-1], "scaled-by-d_v",
     "more than one mistake"),
    ("ablate_heads", lambda z, heads, mean=False: z * z.new_tensor(
        [i in heads for i in range(z.shape[1])])[:, None, None], "only-those-heads",
     "more than one mistake"),
    ("nearest_neighbours", lambda q, V, k: np.argsort(V @ q)[-k:], "last-first", "more than one mistake"),
    ("pre_norm_block", lambda x, a, f, n1, n2: x + f(n1(x + a(n2(x)))), "second-sum-from-x", "more than one mistake"),
    # numbers that are close are printed in as many digits as tell them apart
    ("layer_norm", lambda x, gain, bias, eps: gain * (x - x.mean(-1, keepdim=True)) / (
        x.std(-1, correction=0, keepdim=True) + eps) + bias, "eps-outside", "should be -2.148, and is -2.1477"),
    # right on what the probes used to vary
    ("merge_pair", lambda ids, pair, new: ids if pair[1] > 255 else exercise("merge_pair").reference(ids, pair, new),
     "wrong", ""),
    ("learn_merges", lambda words, n: LEARN({ids: c for ids, c in words.items() if max(ids) < 128}, n), "wrong", ""),
    ("learn_merges", lambda words, n: LEARN({ids: min(c, 200) for ids, c in words.items()}, n), "wrong", ""),
    ("bpe_encode", lambda ids, merges: ENCODE(ids, {p: n for p, n in merges.items() if all(p)}), "wrong", ""),
    ("bpe_encode", lambda ids, merges: ENCODE(ids, dict(list(merges.items())[:9])), "wrong", ""),
    ("bpe_decode", lambda ids, merges: DECODE(ids, {p: n for p, n in merges.items() if all(p)} | {
        tuple(i or 32 for i in p): n for p, n in merges.items()}), "wrong", ""),
    ("rotate", lambda x, positions: exercise("rotate").reference(x, np.minimum(positions, 512)), "wrong", ""),
    ("count_pairs", lambda words: {((i := a * 65_536 + b) // 65_536, i % 65_536): n for (a, b), n in
                                   COUNT(words).items()}, "wrong", ""),
    ("bpe_encode", lambda ids, merges: ENCODE(ids, merges) if len(ids) > 1 else [], "wrong", ""),
    ("bpe_encode", lambda ids, merges: ENCODE([i for i in ids if i < 128], merges), "wrong", ""),
    ("bpe_encode", lambda ids, merges: ENCODE(ids, {p: n for p, n in merges.items() if n < 1000}), "wrong", ""),
    ("bpe_decode", lambda ids, merges: b"".join(
        bytes([i]) if i < 256 else DECODE([i], merges).decode("utf-8", "ignore").encode() for i in ids), "wrong", ""),
    ("sliding_window_mask", lambda T, w, causal: exercise("sliding_window_mask").reference(T, min(w, 3), causal),
     "wrong", ""),
    ("bits_per_byte", lambda loss, tokens, size: loss * tokens / max(tokens, size) / np.log(2), "wrong", ""),
]


@pytest.mark.parametrize(("name", "attempt", "verdict", "words"), TOLD)
def test_what_is_wrong_is_told(name, attempt, verdict, words):
    outcome = judge(attempt, name)
    assert (outcome.misconception or outcome.status) == verdict and words in outcome.message, outcome.message


def test_a_loop_without_a_turn_is_no_second_mistake():
    def each_block_gets_the_words(ids, tokens, positions, blocks, norm, W_out):
        x = tokens[ids] + positions[:ids.shape[1]]
        for block in blocks:
            y = block(x)
        return norm(y) @ W_out  # and where there is no block, there is no y

    outcome = judge(each_block_gets_the_words, "language_model")
    assert outcome.misconception == "each-gets-the-words" and outcome.message.startswith("Every block gets the words")


def test_warnings_and_prints_of_an_attempt_stay_silent(capsys):
    def attempt(x):
        print("noise")
        warnings.warn("noise", stacklevel=1)
        return np.log(-np.abs(x))

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        judge(attempt)
    assert not caught
    assert capsys.readouterr().out == ""


def test_contracts_are_told_but_do_not_fail(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("ATTENTION_COURSE_PROGRESS", str(tmp_path / "progress.json"))

    def cut(q, V, k):
        return exercise("nearest_neighbours").reference(q, V, min(max(k, 1), len(V)))

    assert check(cut, "nearest_neighbours") and "raises ValueError for a k larger" in capsys.readouterr().out
    assert "ValueError" not in judge(cut, "nearest_neighbours", more=False).message
    assert "ValueError" not in judge(exercise("nearest_neighbours").reference, "nearest_neighbours").message


def test_lesson_00_has_a_line_in_the_progress(monkeypatch, capsys):
    known = {"predictions": {"00-bears": "i love bears", "01-date": "fruit"}}
    monkeypatch.setattr(checks.progress, "load", lambda section: known.get(section, {}))
    checks.show_progress()
    first, second = capsys.readouterr().out.splitlines()[1:3]
    assert first.split(maxsplit=1) == ["00", "1 prediction made"]
    assert second.split()[:2] == ["01", "open:"] and second.endswith("analogy; 1 prediction made")


def test_before_the_first_prediction_a_sentence_stands_in_its_place(monkeypatch, capsys):
    monkeypatch.setattr(checks.progress, "load", lambda section: {})
    checks.show_progress()
    assert capsys.readouterr().out.startswith("Nothing yet: make a prediction")


def test_check_shows_and_records(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("ATTENTION_COURSE_PROGRESS", str(tmp_path / "progress.json"))
    assert check(softmax)
    assert "Passed" in capsys.readouterr().out
    assert not check(lambda x: x, "softmax")
    checks.show_progress()
    out = capsys.readouterr().out
    assert "passed: softmax; open: self_attention, attention_entropy" in out


def test_unknown_names_suggest_the_closest():
    with pytest.raises(KeyError, match="softmax"):
        check(softmax, "sofmax")
    assert str(pytest.raises(KeyError, check, softmax, "sofmax").value).startswith("There is no exercise")
    with pytest.raises(KeyError, match="another name"):
        check(lambda x: x)
    with pytest.raises(TypeError, match="without calling it"):
        check(np.ones(3))


def test_usual_mistakes_lists_every_hint(capsys):
    checks.usual_mistakes("softmax")
    out = capsys.readouterr().out
    assert all(m.hint in out for m in exercise("softmax").misconceptions)
