"""A decoder of today, built like the chat model, small and untrained."""

import torch

from helpers import smollm2


def chat_model(V, d, h, g, d_k, m, layers, tokens=None, base=500.0):
    """A ``ChatModel`` of V tokens, d numbers each, h heads on g groups of d_k numbers, m in the gated MLP. ``layers``: which
    of them have numbers, such as ``range(20, 22)`` where nothing runs those below."""
    draw = torch.Generator().manual_seed(0)

    def of(*shape):
        return torch.randn(shape, generator=draw) / shape[0] ** 0.5

    made = [{"norm1": 1 + of(d) / 9, "norm2": 1 + of(d) / 9,
             "W_q": of(d, h * d_k), "W_k": of(d, g * d_k), "W_v": of(d, g * d_k), "W_o": of(h * d_k, d),
             "W_gate": of(d, m), "W_up": of(d, m), "W_down": of(m, d)} for _ in layers]
    return smollm2.ChatModel(4 * of(V, d), 1 + of(d) / 9, [{}] * layers[0] + made, h, g, base=base, eps=1e-5, tokens=tokens)
