"""Many texts at once for the chat model of `helpers.smollm2`: what comes after each, and writing on after each."""

import torch
from torch.nn import functional as F

from helpers.smollm2 import END, PIECES
from helpers.store import settings
from helpers.training import one_thread
from helpers.transformer import rotate


@settings.usual_torch()
@torch.inference_mode()
def next_logits(model, prefix, rows, ids, at_once=256):
    """What comes after each of some texts that begin alike: the logits of the tokens ``ids``, ``(len(rows), len(ids))``.

    ``prefix``: ids that all begin with, read once; ``rows``: how each goes on, lists of ids of any lengths above 0;
    ``ids``: the tokens that are compared; ``at_once``: how many tokens of rows are read together, and one row more. They
    stand in one line, where each sees its own row and the prefix, and the rows' last tokens come at the end.
    """
    logits, d_k = torch.empty(len(rows), len(ids)), model.layers[0]["W_k"].shape[1] // model.n_groups
    start, past, cache = 0, len(prefix), None
    while start < len(rows):
        end = start + 1
        while end < len(rows) and sum(map(len, rows[start:end])) < at_once:
            end += 1
        line = [(-1, at, token) for at, token in enumerate(prefix)]  # of which row, at which place of its text, which token
        line += [(i, past + at, token) for i in range(start, end) for at, token in enumerate(rows[i][:-1])]
        line += [(i, past + len(rows[i]) - 1, rows[i][-1]) for i in range(start, end)]
        owner, place, tokens = torch.tensor(line).T
        may = ((owner == owner[:, None]) | (owner == -1)) & (place <= place[:, None])
        if cache:
            may, place, tokens = may[past:], place[past:], tokens[past:]
        logits[start:end], new = _in_a_line(model, tokens, place, may, d_k, cache, end - start, ids)
        cache, start = cache or [(K[:, :, :past], V[:, :, :past]) for K, V in new] if past else None, end
    return logits


def _in_a_line(model, tokens, place, may, d_k, cache, last, ids):
    """Read tokens that stand at these places ``(T,)`` of their texts, each seeing what it may ``(T, t + T)``: the logits of
    ``ids`` after the last ones, and the cache."""
    angles = (place[:, None] * model.base ** (-torch.arange(0, d_k, 2, dtype=torch.float64) / d_k)).flatten()

    def attend(q, k, v, past):
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=may, enable_gqa=True), (k, v)

    pieces = PIECES | {"rotate": lambda x, _: rotate(x, angles), "cached_attention": attend}
    with one_thread():
        logits, cache = model.run(tokens[None], cache, pieces, last=last)
    return logits[0][:, ids], cache


class _Together:
    """Texts of any lengths that are written on together: their keys and values, with room for n tokens each.

    What all begin with is read once. ``attend``: as in `write_on`.
    """

    def __init__(self, model, rows, n, pieces, attend):
        self.model, self.pieces, self.attend = model, pieces, attend
        shortest, (g, d_k) = min(map(len, rows)), (model.n_groups, model.layers[0]["W_k"].shape[1] // model.n_groups)
        alike = next((i for i in range(shortest - 1) if len({row[i] for row in rows}) > 1), shortest - 1)
        self.places = torch.tensor([len(row) - 1 for row in rows])  # of each one's last token, which `read` gets
        self.at = int(self.places.max())
        self.seen = (torch.arange(self.at + n) < self.places[:, None]) | (torch.arange(self.at + n) >= self.at)
        self.room = [torch.zeros(2, len(rows), g, self.at + n, d_k) for _ in model.layers]
        if alike:
            _, cache = model.run(torch.tensor([rows[0][:alike]]), None, pieces, last=1)
            for room, keys_values in zip(self.room, cache, strict=True):
                room[..., :alike, :] = torch.stack(keys_values)
        if self.at > alike:
            ids = torch.tensor([row[alike:-1] + [0] * (self.at + 1 - len(row)) for row in rows])  # nothing sees the 0s
            may = torch.ones(self.at, self.at, dtype=torch.bool).tril()[alike:]
            self._run(ids, torch.arange(alike, self.at).expand_as(ids), alike, may)

    def _run(self, ids, places, start, may):
        """Read ids at these places, ``(B, T)`` both, into the room from ``start`` on: the next token's logits ``(B, V)``."""
        rooms, end, d_k = iter(self.room), start + ids.shape[1], self.room[0].shape[-1]
        powers = self.model.base ** (-torch.arange(0, d_k, 2, dtype=torch.float64) / d_k)
        angles = (places[..., None] * powers).flatten()  # (B · T · d_k/2,)

        def turn(x, _):  # (B, h, T · d_k/2, 2): rows one after another, because each has places of its own
            x = x.transpose(0, 1)
            return rotate(x.flatten(1, 2), angles).reshape(x.shape).transpose(0, 1)

        def attend(q, k, v, cache):
            room = next(rooms)
            room[..., start:end, :] = torch.stack([k, v])
            if self.attend:
                return self.attend(q, k, v, tuple(room[..., :start, :]))
            K, V = room[..., :end, :]
            return F.scaled_dot_product_attention(q, K, V, attn_mask=may, enable_gqa=True), (K, V)

        pieces = self.pieces | {"rotate": turn, "cached_attention": attend}
        return self.model.run(ids, None, pieces, last=1)[0][:, 0]

    def read(self, tokens):
        """One token more of each text ``(B,)`` -> logits of the next ``(B, V)``."""
        logits = self._run(tokens[:, None], self.places[:, None], self.at, self.seen[:, None, None, :self.at + 1])
        self.at, self.places = self.at + 1, self.places + 1
        return logits

    def keep(self, which):
        """Go on with these texts only, ``(B,)`` booleans."""
        self.places, self.seen = self.places[which], self.seen[which]
        self.room = [room[:, which] for room in self.room]


@settings.usual_torch()
@torch.inference_mode()
def write_on(model, rows, n, pieces=PIECES, choose=lambda logits: logits.argmax(-1), attend=None,
             enough=lambda row, ids: False):
    """Write n tokens after each of some texts of any lengths, all of them together: ids ``(len(rows), n)``, END from where
    a text ends.

    ``rows``: lists of ids; ``choose(logits)``: ``(B, V)`` -> ``(B,)``; ``pieces``: whose functions run it, but for the
    attention: that is torch's own, or ``attend``, in place of `cached_attention`, for texts of one length;
    ``enough(row, ids)``: ends a text, given its number and what was written, by a true value.
    """
    new, where = torch.full((len(rows), n), END), torch.arange(len(rows))  # the texts that are still together
    with one_thread():
        together, tokens = _Together(model, rows, n, pieces, attend), torch.tensor([row[-1] for row in rows])
        on = torch.ones(len(rows), dtype=torch.bool)
        for i in range(n):
            tokens = choose(together.read(tokens))
            new[where[on], i] = tokens[on]
            on &= tokens != END
            on &= torch.tensor([bool(o) and not enough(row, new[row, :i + 1].tolist())
                                for o, row in zip(on.tolist(), where.tolist(), strict=True)])
            if not on.any():
                break
            if on.sum() < 0.8 * len(on):  # a copy of what is left costs more than a few rows too many
                together.keep(on)
                where, tokens, on = where[on], tokens[on], on[on]
    return new
