"""The encoder-decoder that attention was invented for: two recurrent networks, and a score between them.

Tokens are rows, batch first. The encoder turns the source into states H ``(B, T_s, d)``, one for each word. The decoder
writes the target word by word; its states are S ``(B, T_t, d)``. Masks are boolean, True = may attend.
"""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from helpers import training

SCORES = ("none", "dot", "general", "concat", "additive")


class Seq2Seq(nn.Module):
    """A GRU encoder, a GRU decoder, and attention between them.

    ``vocabulary``: number of source ids; ``outputs``: number of target ids (default: the same); ``d``: width of every
    state, an even number; ``score``: how a decoder state s is compared with an encoder state h,

    - "none": not at all. The decoder gets one fixed vector, the last encoder state (Cho et al. 2014);
    - "dot": ``s · h``, "general": ``s · W h``, "concat": ``v · tanh(W s + U h)`` (Luong et al. 2015, section 3.1);
    - "additive": the formula of "concat", asked with the state *before* the word (Bahdanau et al. 2014).

    ``before``: ask with s_{t-1}, and feed the context into the decoder's next step (default: for "additive" only).
    Otherwise s_t asks, and the context joins it on the way to the output. The encoder reads in both directions.
    Raises ValueError for an unknown score.
    """

    def __init__(self, vocabulary, d=64, score="dot", before=None, outputs=None):
        super().__init__()
        if score not in SCORES:
            raise ValueError(f"score must be one of {', '.join(SCORES)}, not {score!r}.")
        outputs = vocabulary if outputs is None else outputs
        self.score = score
        self.before = score == "additive" if before is None else before
        self.source, self.target = nn.Embedding(vocabulary, d), nn.Embedding(outputs, d)
        self.encoder = nn.GRU(d, d // 2, batch_first=True, bidirectional=True)
        self.decoder = nn.GRU(2 * d if self.before else d, d, batch_first=True)
        self.output = nn.Sequential(nn.Linear(2 * d, d), nn.Tanh(), nn.Linear(d, outputs))
        if score in ("general", "concat", "additive"):
            self.W = nn.Linear(d, d, bias=False)
        if score in ("concat", "additive"):
            self.U = nn.Linear(d, d, bias=False)
            self.v = nn.Parameter(torch.randn(d))

    def forward(self, source, target, mask=None, weights=False):
        """``source``: ``(B, T_s)`` ids; ``target``: ``(B, T_t)`` ids, the word before each output, so a start id first;
        ``mask``: ``(B, T_s)`` bool, False at padding, which must stand at the end.

        Returns logits ``(B, T_t, outputs)``, or with ``weights=True`` (logits, weights ``(B, T_t, T_s)``).
        Without attention the weights are ``(B, T_t, 1)``: there is one vector to look at.
        """
        H, s = self.encode(source, mask)
        logits, w, _ = self.decode(target, H, s, mask)
        return (logits, w) if weights else logits

    def encode(self, source, mask=None):
        """Returns the encoder states ``(B, T_s, d)`` and the decoder's first state ``(B, d)``."""
        x = self.source(source)  # (B, T_s, d)
        if mask is None:
            H, s = self.encoder(x)
        else:
            packed = pack_padded_sequence(x, mask.sum(1).cpu(), batch_first=True, enforce_sorted=False)
            H, s = self.encoder(packed)
            H = pad_packed_sequence(H, batch_first=True, total_length=x.shape[1])[0]
        s = s.transpose(0, 1).flatten(1)  # (2, B, d/2) -> (B, d): forwards after the last word, backwards after the first
        return (s[:, None] if self.score == "none" else H), s

    def attend(self, S, H, mask=None):
        """``S``: ``(B, T_t, d)``; ``H``: ``(B, T_s, d)``. Returns contexts ``(B, T_t, d)`` and weights ``(B, T_t, T_s)``."""
        if self.score in ("none", "dot"):
            scores = S @ H.transpose(1, 2)
        elif self.score == "general":
            scores = S @ self.W(H).transpose(1, 2)
        else:
            scores = torch.tanh(self.W(S)[:, :, None] + self.U(H)[:, None]) @ self.v  # (B, T_t, T_s, d) @ (d,)
        if mask is not None and self.score != "none":
            scores = scores.masked_fill(~mask[:, None], float("-inf"))
        w = torch.softmax(scores, dim=-1)
        return w @ H, w

    def decode(self, target, H, s, mask=None):
        """Continue from the state ``s`` ``(B, d)``. Returns logits, weights and the last state ``(B, d)``."""
        y, s = self.target(target), s[None].contiguous()  # (B, T_t, d), (1, B, d)
        if self.before:
            steps = []
            for y_t in y.split(1, dim=1):  # one word after the other: each context needs the state before
                c, w = self.attend(s.transpose(0, 1), H, mask)
                s_t, s = self.decoder(torch.cat([y_t, c], dim=-1), s)
                steps.append((s_t, c, w))
            S, C, w = (torch.cat(parts, dim=1) for parts in zip(*steps, strict=True))
        else:
            S, s = self.decoder(y, s)
            C, w = self.attend(S, H, mask)
        return self.output(torch.cat([S, C], dim=-1)), w, s[0]

    @torch.no_grad()
    def translate(self, source, start, length, mask=None):
        """Write ``length`` words, each the most probable after the ones before: ``(B, T_s)`` -> ids ``(B, length)``."""
        H, s = self.encode(source, mask)
        words = [torch.full_like(source[:, :1], start)]
        for _ in range(length):
            logits, _, s = self.decode(words[-1], H, s, mask)
            words.append(logits.argmax(-1))
        return torch.cat(words[1:], dim=1)


# ---------------------------------------------------------------- lesson 03's language: the words of a sentence, reversed

ENGLISH = "european economic area date bears flies time arrow king queen horse house".split()
FRENCH = "européenne économique zone date ours mouches temps flèche roi reine cheval maison".split()  # of the same ids
START = len(ENGLISH)  # the id that is given before the first word


def sentences(n, T, generator):
    """n sentences of T different words, and their translations, which have the words in reverse: ids (n, T) and (n, T)."""
    source = torch.rand(n, len(ENGLISH), generator=generator).argsort(dim=1)[:, :T]
    return source, source.flip(1)


def given(target):
    """What the decoder is given while it learns, the right word before each word: [3, 7, 1] becomes [START, 3, 7]."""
    return torch.cat([torch.full_like(target[:, :1], START), target[:, :-1]], dim=1)


def trained(score, before=None, steps=100, d=48):
    """A ``Seq2Seq`` that has learned to translate 96 sentences of 2 to 8 words a step; ``score``, ``before``: see there."""
    with training.seeded(0):  # all start from the same random numbers
        model = Seq2Seq(START + 1, d=d, score=score, before=before)

    def batch(generator):
        return sentences(96, int(torch.randint(2, 9, (1,), generator=generator)), generator)

    def loss(model, source, target):
        return nn.functional.cross_entropy(model(source, given(target)).flatten(0, 1), target.flatten())

    training.fit(model, batch, loss, steps=steps, lr=0.015, label=score)
    return model


@torch.no_grad()
def share_right(model, T, n=200):
    """Share of right words when the model translates n new sentences of T words by itself."""
    source, target = sentences(n, T, torch.Generator().manual_seed(99))
    with training.one_thread():
        return (model.translate(source, START, T) == target).double().mean().item()


@torch.no_grad()
def looks(model, phrase):
    """Where the model looks while it writes the translation of ``phrase``: (the French words, weights (T, T))."""
    source = torch.tensor([[ENGLISH.index(word) for word in phrase.split()]])
    target = source.flip(1)
    return [FRENCH[i] for i in target[0]], model(source, given(target), weights=True)[1][0].numpy()
