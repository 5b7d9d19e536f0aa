"""Compare the training of lesson 10 with the usual one, in CPU-seconds to the same quality on held-out combinations.

    python tests/bench/translation.py            # three seeds of each, until 99% exact match; half an hour
    python tests/bench/translation.py --seeds 1  # fewer
    python tests/bench/translation.py --tiny     # a few steps, to see that it runs

Ours: `TranslationModel`, AdamW with OneCycle, the data in one tensor; one run of fixed length. The usual one:
`nn.Transformer` of the same width and depth, sinusoidal positions, a DataLoader, Adam at a constant rate; tested
every 250 steps, and stopped at the first test that reaches what is asked for. Testing costs neither of them anything.
"""

import argparse
import sys
import time
import warnings
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from helpers import attention, training, translation
from helpers.transformer import Config, TranslationModel, shift_right
from helpers.vocabularies import BOS, EOS, PAD

EVERY = 250  # steps between two tests of the usual training


class Usual(nn.Module):
    """`nn.Transformer` with what everybody writes around it."""

    def __init__(self, source_vocabulary, target_vocabulary, d=64, dropout=0.1):
        super().__init__()
        self.d = d
        self.source, self.target = nn.Embedding(source_vocabulary, d), nn.Embedding(target_vocabulary, d)
        self.register_buffer("positions", torch.tensor(attention.sinusoidal_encoding(32, d), dtype=torch.float32))
        self.transformer = nn.Transformer(d, nhead=4, num_encoder_layers=1, num_decoder_layers=1, dim_feedforward=128,
                                          dropout=dropout, batch_first=True)
        self.output = nn.Linear(d, target_vocabulary)

    def embed(self, embedding, tokens):
        return embedding(tokens) * self.d ** 0.5 + self.positions[:tokens.shape[1]]

    def forward(self, source, target, source_mask):
        causal = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        return self.output(self.transformer(
            self.embed(self.source, source), self.embed(self.target, target), tgt_mask=causal, tgt_is_causal=True,
            src_key_padding_mask=~source_mask, memory_key_padding_mask=~source_mask))

    @torch.no_grad()
    def translate(self, source, bos, eos, length, source_mask):
        words = torch.full_like(source[:, :1], bos)
        for _ in range(length):
            words = torch.cat([words, self(source, words, source_mask)[:, -1:].argmax(-1)], dim=1)
        return words[:, 1:]


def loss(model, source, target):
    logits = model(source, shift_right(target, BOS), source != PAD)
    return F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=PAD)


def trim(source, target):
    """Leave the columns out that are padding in every row."""
    return source[:, :int((source != PAD).sum(1).max())], target[:, :int((target != PAD).sum(1).max())]


class Task:
    """The pairs for training and testing, as tensors."""

    def __init__(self, n, n_test):
        self.source, self.target, _ = translation.translation_tensors(translation.translation_pairs(n, seed=0))
        held_out = translation.translation_pairs(n_test, seed=1, held_out=True)
        self.asked, self.wanted, self.aligned = translation.translation_tensors(held_out)
        self.sizes = [len(vocabulary) for vocabulary in translation.translation_vocabularies()]

    def exact(self, model):
        """Share of the held-out texts that come out right to the last word."""
        model.eval()
        written = model.translate(self.asked, BOS, EOS, self.wanted.shape[1], self.asked != PAD)
        written = F.pad(written, (0, self.wanted.shape[1] - written.shape[1]), value=EOS)
        model.train()
        return ((written == self.wanted) | (self.wanted == PAD)).all(1).double().mean().item()

    def alignment(self, model):
        """Share of French words whose largest weight lies on a word that they come from."""
        with torch.no_grad():
            _, seen = model(self.asked, shift_right(self.wanted, BOS), self.asked != PAD, weights=True)
        best = seen[-1].mean(1).argmax(-1, keepdim=True)  # (N, T_t, 1)
        right = self.aligned.gather(2, best)[..., 0]
        return right[self.aligned.any(2)].double().mean().item()


def ours(task, seed, steps):
    """-> (CPU-seconds, steps, exact match, alignment)"""
    with training.seeded(seed):
        model = TranslationModel(Config(task.sizes[1], d=64, n_heads=4, mlp=128, positions="rope"), task.sizes[0])

    def batch(generator):
        rows = torch.randint(len(task.source), (64,), generator=generator)
        return trim(task.source[rows], task.target[rows])

    start = time.process_time()
    training.fit(model, batch, loss, steps, lr=0.01, seed=seed, label=None)
    seconds = time.process_time() - start
    return seconds, steps, task.exact(model), task.alignment(model)


def usual(task, seed, lr, dropout, enough, limit):
    """-> (CPU-seconds, steps, exact match)"""
    with training.seeded(seed):
        model = Usual(*task.sizes, dropout=dropout).train()
        optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        loader = DataLoader(TensorDataset(task.source, task.target), batch_size=64, shuffle=True)
        seconds, steps, exact = 0.0, 0, 0.0
        while True:
            start = time.process_time()
            for source, target in loader:
                optimizer.zero_grad()
                loss(model, *trim(source, target)).backward()
                optimizer.step()
                steps += 1
                if steps % EVERY == 0 or steps >= limit:
                    seconds += time.process_time() - start
                    exact = task.exact(model)
                    if exact >= enough or steps >= limit:
                        return seconds, steps, exact
                    start = time.process_time()
            seconds += time.process_time() - start


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--enough", type=float, default=0.99, help="exact match at which the usual training may stop")
    parser.add_argument("--limit", type=int, default=6000, help="most steps of the usual training")
    parser.add_argument("--tiny", action="store_true", help="a few steps of each")
    options = parser.parse_args(arguments)
    settings = [(5e-4, 0.1), (1e-3, 0.1), (1e-3, 0.0)]  # rate, dropout
    if options.tiny:
        options.seeds, options.limit, settings = 1, 3, settings[:1]
    warnings.filterwarnings("ignore", message=".*nested tensors.*")  # torch's own, when the usual model is tested
    task = Task(200, 20) if options.tiny else Task(60_000, 1000)
    print(f"{'training':32}{'seed':>5}{'steps':>7}{'CPU-s':>8}{'exact':>8}{'aligned':>9}", flush=True)
    ratios = []
    with training.one_thread():
        for seed in range(options.seeds):
            ours_needs, steps, exact, aligned = ours(task, seed, 3 if options.tiny else 1300)
            print(f"{'ours':32}{seed:5}{steps:7}{ours_needs:8.1f}{exact:8.3f}{aligned:9.3f}", flush=True)
            runs = []
            for lr, dropout in settings:
                needed, steps, exact = usual(task, seed, lr, dropout, options.enough, options.limit)
                there = exact >= options.enough
                runs.append((not there, needed))
                name = f"usual, Adam {lr:g}, dropout {dropout:g}"
                print(f"{name:32}{seed:5}{steps:7}{needed:8.1f}{exact:8.3f}{'' if there else '  not there yet'}", flush=True)
            missed, needed = min(runs)
            ratios.append(f"{'more than ' if missed else ''}{needed / ours_needs:.1f}")
    print(f"CPU-seconds, the best of the usual settings over ours, seed by seed: {', '.join(ratios)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
