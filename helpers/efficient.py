"""Attention that costs less, in torch, and the tools that measure what it costs.

Tokens are rows; heads are ``(B, h, T, d_k)``. Masks are boolean, True = may attend. Each function reads like its formula.
The first five are the exercises of lesson 14.
"""

import math
import os
import time

import torch
from torch.autograd.profiler import profile
from torch.utils import flop_counter
from torch.utils.flop_counter import FlopCounterMode

from helpers import training

# As in training.py: torch's counter would import torch's compiler, for seconds, only to keep it away from one method.
_counter = getattr(flop_counter, "_FlopCounterMode", FlopCounterMode)
_counter.__torch_dispatch__ = getattr(_counter.__torch_dispatch__, "__wrapped__", _counter.__torch_dispatch__)

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # torch's profiler writes two lines to stderr each time otherwise


def sliding_window_mask(T, window, causal):
    """True where the key is at most ``window`` places from the query, and not after it if ``causal``.

    Returns ``(T, T)`` bool, True = may attend; each row has at most 2·window + 1 of them, or window + 1 if causal.
    Raises ValueError when ``window`` is negative. Source: Beltagy et al. 2020, section 3.1 (their w is twice ours).
    """
    if window < 0:
        raise ValueError(f"A window reaches 0 or more places to each side; it is {window}.")
    distance = torch.arange(T)[:, None] - torch.arange(T)  # (T, T): query minus key
    near = distance.abs() <= window
    return near & (distance >= 0) if causal else near


def linear_attention(Q, K, V, feature_map):
    """``φ(Q) (φ(K)ᵀ V)``, each row divided by ``φ(q) · Σ φ(k)``: attention with weights ``φ(q) · φ(k)``, never written down.

    ``Q``: ``(..., T_q, d_k)``; ``K``: ``(..., T_k, d_k)``; ``V``: ``(..., T_k, d_v)``; ``feature_map``: φ, from
    ``(..., T, d_k)`` to positive numbers ``(..., T, r)``. Returns ``(..., T_q, d_v)``. Every query sees every key.
    Source: Katharopoulos et al. 2020, equation 5 (the sums over all keys, not causal).
    """
    Q, K = feature_map(Q), feature_map(K)  # (..., T_q, r), (..., T_k, r)
    summary = K.mT @ V  # (..., r, d_v): all keys and values in one small matrix
    total = K.sum(dim=-2)[..., None]  # (..., r, 1)
    return Q @ summary / (Q @ total)


def grouped_query_attention(Q, K, V):
    """Attention in which h query heads share g heads of keys and values: query head i uses head ``i // (h / g)``.

    ``Q``: ``(B, h, T, d_k)``; ``K``: ``(B, g, T_k, d_k)``; ``V``: ``(B, g, T_k, d_v)``. Returns ``(B, h, T, d_v)``.
    Scaled by √d_k, no mask. g = h is multi-head attention, g = 1 multi-query attention (Shazeer 2019).
    Raises ValueError when g does not divide h. Source: Ainslie et al. 2023, section 2.2.
    """
    (B, h, T, d_k), g = Q.shape, K.shape[1]
    if g < 1 or h % g:
        raise ValueError(f"{h} query heads cannot share {g} heads of keys equally; choose a divisor of {h}.")
    rows = Q.reshape(B, g, h // g * T, d_k)  # the query heads of a group, one below the other
    weights = torch.softmax(rows @ K.mT / math.sqrt(d_k), dim=-1)  # (B, g, h/g·T, T_k)
    return (weights @ V).reshape(B, h, T, V.shape[-1])


def decode_step(q, k, v, cache):
    """One new token attends to itself and to all before it, whose keys and values are kept in ``cache``.

    ``q``, ``k``, ``v``: ``(B, h, 1, d_k)``; ``cache``: None for the first token, then (K, V), each ``(B, h, t, d_k)``.
    Returns (output ``(B, h, 1, d_k)``, the new cache with t + 1 positions). Scaled by √d_k.
    Raises ValueError for more than one new token: each would see the ones after it. Source: Shazeer 2019, section 2.4.
    """
    if q.shape[-2] != 1 or k.shape[-2] != 1:
        raise ValueError(f"A step decodes one token; q holds {q.shape[-2]} and k holds {k.shape[-2]}.")
    K, V = (k, v) if cache is None else (torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2))
    weights = torch.softmax(q @ K.mT / math.sqrt(q.shape[-1]), dim=-1)  # (B, h, 1, t + 1)
    return weights @ V, (K, V)


def online_softmax_attention(q, K, V, block):
    """Attention of one query, exactly, reading the keys ``block`` at a time and never holding more than ``block`` scores.

    ``q``: ``(d,)``; ``K``: ``(T, d)``; ``V``: ``(T, m)``; T at least 1. Returns ``(m,)``, ``softmax(K q / √d) V``.
    What was summed up so far is shrunk whenever a larger score turns up. Raises ValueError when ``block`` is below 1.
    Source: Milakov and Gimelshein 2018, algorithm 3; Dao et al. 2022, section 3.1.
    """
    if block < 1:
        raise ValueError(f"A block holds at least one key; it is {block}.")
    largest = q.new_tensor(-math.inf)  # the largest score so far
    total, output = torch.zeros_like(largest), torch.zeros_like(V[0])  # Σ exp(score - largest), and that times v
    for start in range(0, len(K), block):
        k, v = K[start:start + block], V[start:start + block]  # (block, d), (block, m)
        scores = k @ q / math.sqrt(len(q))  # (block,)
        new = torch.maximum(largest, scores.max())
        shrink, weights = torch.exp(largest - new), torch.exp(scores - new)
        total = shrink * total + weights.sum()
        output = shrink * output + weights @ v
        largest = new
    return output / total


def tiled_attention(Q, K, V, side):
    """`online_softmax_attention` for all queries, ``side`` of them at a time against ``side`` keys: one tile of the table.

    ``Q``: ``(T_q, d)``; ``K``: ``(T, d)``; ``V``: ``(T, m)``. Returns ``(T_q, m)``. Source: Dao et al. 2022, algorithm 1.
    """
    def rows(queries):
        return torch.vmap(lambda q: online_softmax_attention(q, K, V, side))(queries)

    return torch.cat([rows(queries) for queries in Q.split(side)])


# ---------------------------------------------------------------- what it costs


def multiply_adds(function, *inputs):
    """How many multiply-adds the matrix products of ``function(*inputs)`` do, as torch counts them: exact."""
    with training.one_thread(), FlopCounterMode(display=False) as counter:
        function(*inputs)
    return counter.get_total_flops() // 2  # a multiply-add is two floating-point operations


def peak_bytes(function, *inputs):
    """The most memory that ``function(*inputs)`` holds at one time, its result included and its inputs not, in bytes.

    torch's profiler reports every piece of memory that torch takes and gives back, also inside an operation; the largest
    running sum is the peak. Exact, on the CPU, with one thread (more of them work in more memory).
    """
    with training.one_thread(), profile(use_kineto=True, profile_memory=True) as record:
        result = function(*inputs)
    held = most = 0
    for event in record.kineto_results.events():
        if event.name() == "[memory]":
            held += event.nbytes()  # negative when memory is given back
            most = max(most, held)
    del result
    return most


# Processor time leaves out what other programs do, but some systems count it in steps of 16 ms.
_clock = time.process_time if time.get_clock_info("process_time").resolution < 1e-4 else time.perf_counter


def fastest(cases, rounds=5):
    """Seconds that each case takes at its fastest, with one thread.

    ``cases``: name -> function of no arguments. The cases take ``rounds`` turns one after the other, so that a busy moment
    does not hit one of them alone. In a turn a function runs once without being timed, because after another case it finds
    nothing of its own in the processor's fast memory, and then for 2 ms or once: some clocks go on in steps, so that one
    short run may take no time at all. Returns name -> seconds.
    """
    best = dict.fromkeys(cases, math.inf)
    with training.one_thread(), torch.no_grad():
        for _ in range(rounds):
            for name, function in cases.items():
                function()
                start, runs = _clock(), 0
                while (took := _clock() - start) < 2e-3:
                    function()
                    runs += 1
                best[name] = min(best[name], took / runs)
    return best
