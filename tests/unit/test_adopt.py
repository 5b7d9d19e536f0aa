"""What a learner wrote is what runs: a right function in torch trains; one in NumPy, with loops or a mistake does not."""

import time

import numpy as np
import pytest
import torch
from notebook_code import renamed

from helpers import adapters, attention, inside, smollm2, tokens, transformer
from helpers.checks import adopt, adopt_all, yours_or_ours

ARGS = (torch.randn(8, 16, 32, generator=torch.Generator().manual_seed(0)), torch.ones(32), torch.zeros(32), 1e-5)


def layer_norm(x, gain, bias, eps):
    centred = x - x.mean(-1, keepdim=True)
    return gain * centred / (centred.square().mean(-1, keepdim=True) + eps) ** 0.5 + bias


def in_numpy(x, gain, bias, eps):
    x = np.asarray(x)
    centred = x - x.mean(-1, keepdims=True)
    return np.asarray(gain) * centred / np.sqrt((centred**2).mean(-1, keepdims=True) + eps) + np.asarray(bias)


def with_loops(x, gain, bias, eps):
    rows = [layer_norm(row, gain, bias, eps) for row in x.reshape(-1, x.shape[-1])]
    return torch.stack(rows).reshape(x.shape)


def cut_off(x, gain, bias, eps):
    return layer_norm(x.detach(), gain, bias, eps)


def wrong(x, gain, bias, eps):
    return gain * (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + eps) ** 0.5 + bias


def test_a_function_of_another_name_is_known_by_the_variable_that_holds_it(pages):
    notebook = {}
    exec("def mine(x):\n    return x\nfeed = layer_norm = mine\nother = lambda x: x", notebook)
    pieces = adopt_all([notebook["layer_norm"], notebook["other"]], {"layer_norm": transformer.layer_norm})
    assert pieces == {"layer_norm": transformer.layer_norm}
    assert "layer_norm (yours has not passed)" in pages[-1][1] and "<lambda> is no name of an exercise here" in pages[-1][1]


def test_a_right_function_in_torch_runs_and_trains():
    function, whose = adopt(layer_norm, transformer.layer_norm, trains=ARGS)
    assert whose == "yours"
    x = ARGS[0].clone().requires_grad_()
    function(x, *ARGS[1:])[0, 0, 0].backward()
    assert x.grad.abs().sum() > 0


@pytest.mark.parametrize("attempt, why", [(in_numpy, "no gradient comes back"), (cut_off, "no gradient comes back"),
                                          (with_loops, "as loops do")])
def test_what_cannot_be_trained_runs_where_nothing_is_trained(attempt, why):
    assert adopt(attempt, transformer.layer_norm, "layer_norm")[1] == "yours"
    function, whose = adopt(attempt, transformer.layer_norm, "layer_norm", trains=ARGS)
    assert function is transformer.layer_norm
    assert whose.startswith("the course's (yours is right, but") and why in whose


def test_a_clock_that_goes_on_in_steps_refuses_no_right_function(monkeypatch):
    """Steps of 10 ms: the course's function takes 1 ms, and a learner's that takes twelve times as long may train."""
    now = [0.0]

    def slowed(milliseconds):
        def function(x, gain, bias, eps):
            now[0] += milliseconds / 1000
            return layer_norm(x, gain, bias, eps)
        return renamed(function, "layer_norm")

    monkeypatch.setattr(time, "process_time", lambda: now[0] // 0.01 * 0.01)
    assert adopt(slowed(12), slowed(1), "layer_norm", trains=ARGS)[1] == "yours"
    assert "as loops do" in adopt(slowed(60), slowed(1), "layer_norm", trains=ARGS)[1]


def test_training_is_timed_on_one_thread():
    """A thread that waits for another computes too: beside busy programs the course's function would look slow."""
    seen, before = set(), torch.get_num_threads()

    def course(*args):
        seen.add(torch.get_num_threads())
        return transformer.layer_norm(*args)

    torch.set_num_threads(2)
    try:
        adopt(layer_norm, course, "layer_norm", trains=ARGS)
        assert seen == {1} and torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_gradients_that_differ_are_noticed():
    def other(x, gain, bias, eps):  # the same values, and half of the gradient
        y = layer_norm(x, gain, bias, eps)
        return (y + y.detach()) / 2

    assert "other gradients" in adopt(other, transformer.layer_norm, "layer_norm", trains=ARGS)[1]


def test_one_note_says_whose_pieces_run_and_what_the_checker_says(capsys):
    def feed_forward(x, W1, b1, W2, b2): ...

    course = {"layer_norm": transformer.layer_norm, "feed_forward": transformer.feed_forward, "eps": 1e-5}
    pieces = adopt_all([renamed(wrong, "layer_norm"), feed_forward], course)
    said = capsys.readouterr().out
    assert pieces == course
    assert "The course's run: layer_norm (yours has not passed); feed_forward (yours is not started)." in said
    assert "layer_norm: " in said and "correction=0" in said, "the checker's own hint"
    pieces = adopt_all([layer_norm], course, trains={"layer_norm": ARGS})
    assert "Yours run: layer_norm." in capsys.readouterr().out
    assert pieces["layer_norm"] is not course["layer_norm"] and pieces["eps"] == 1e-5


def test_on_arrays_a_right_function_runs_and_the_course_steps_in_for_another(capsys):
    def softmax(x):
        e = np.exp(x - np.max(x, axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)

    assert yours_or_ours(softmax, attention.softmax) is softmax
    assert "your softmax runs" in capsys.readouterr().out

    def softmax(x):
        ...

    assert yours_or_ours(softmax, attention.softmax) is attention.softmax
    assert yours_or_ours(attention.softmax, attention.softmax) is attention.softmax
    assert capsys.readouterr().out.count("the course's softmax runs") == 2


def test_a_right_function_that_is_too_slow_or_stops_on_what_follows_is_replaced(capsys):
    """Lesson 15: a pass through all merges is right on small inputs, and takes seconds for a word of a real model's."""
    def bpe_encode(ids, merges):
        for pair, new in merges.items():
            ids = tokens.merge_pair(ids, pair, new)
        return list(ids)

    few, many = {(97, 98): 256}, {(i, j): 256 + 300 * i + j for i in range(300) for j in range(300)}
    assert yours_or_ours(bpe_encode, tokens.bpe_encode, trial=([97, 98] * 50, few)) is bpe_encode
    assert yours_or_ours(bpe_encode, tokens.bpe_encode, trial=([97, 98] * 200, many)) is tokens.bpe_encode
    stops = renamed(lambda ids, merges: tokens.bpe_encode(ids, merges) if len(ids) < 200 else ids[999], "bpe_encode")
    assert yours_or_ours(stops, tokens.bpe_encode, trial=([97] * 300, few)) is tokens.bpe_encode
    said = capsys.readouterr().out
    assert "your bpe_encode runs.\n" in said and "30 times as long" in said and "IndexError" in said


def on_arrays(X, n_heads):
    """``transpose`` of NumPy takes all axes, torch's takes two."""
    B, T, d = X.shape
    return X.reshape(B, T, n_heads, d // n_heads).transpose(0, 2, 1, 3)


def without_a_word(X, n_heads):
    if not isinstance(X, np.ndarray):
        raise TypeError
    return attention.split_heads(X, n_heads)


@pytest.mark.parametrize(("attempt", "said"), [(on_arrays, "transpose()"), (without_a_word, "TypeError")])
def test_what_only_arrays_can_do_is_told_in_torchs_words_and_the_courses_runs(attempt, said):
    def in_torch(X, n_heads):
        return X.unflatten(-1, (n_heads, -1)).transpose(1, 2)

    assert adopt(attempt, attention.split_heads, "split_heads")[1] == "yours"
    piece, whose = adopt(attempt, in_torch, "split_heads", trains=(torch.ones(2, 3, 4), 2))
    assert piece is in_torch and f"torch says: {said}" in whose and "leaves torch" not in whose


def test_lists_do_where_tuples_and_tensors_are_expected():
    """What passes its check with a list runs: [K, V] comes back as a tuple, layers as one tensor."""
    def with_a_list(q, k, v, cache=None):
        out, kept = smollm2.cached_attention(q, k, v, cache)
        return [out, list(kept)]

    def in_arrays(states, gain, W_U, eps=1e-5):
        gain, W_U = np.asarray(gain), np.asarray(W_U)
        return [gain * x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) @ W_U for x in map(np.asarray, states)]

    function, whose = adopt(with_a_list, smollm2.cached_attention, "cached_attention")
    out, kept = function(*torch.ones(3, 1, 2, 4, 6))
    assert whose == "yours" and out.shape == (1, 2, 4, 6) and type(kept) is tuple and len(kept) == 2
    function, whose = adopt(in_arrays, inside.logit_lens, "logit_lens")
    assert whose == "yours" and function([torch.ones(2, 3)] * 4, torch.ones(3), torch.eye(3)).shape == (4, 2, 3)


def test_what_a_check_on_tensors_refuses_is_not_taken_on_arrays():
    """Lesson 18: whether a matrix of W's size is formed can be seen on tensors only."""
    def formed(x, W, A, B, alpha):
        return x @ (W + alpha / A.shape[1] * (A @ B))

    function, whose = adopt(formed, adapters.lora_linear, "lora_linear")
    assert function is adapters.lora_linear and "has not passed" in whose
