"""Train several small models at once, such as one for each seed of an experiment.

A step of a small model costs more in calls than in arithmetic. So the models take their steps side by side: the texts of all
go through one forward pass, model after model, and where weights are met each model's texts meet its own weights.
"""

import copy
from dataclasses import replace

import torch
from torch import nn
from torch.nn import functional as F

from helpers import training


class Side(nn.Module):
    """Linear layers, norms or tables of several models, as one: ``x`` has the texts of the first model, then of the next.

    ``parts``: layers of one kind and shape, one of each model.
    """

    def __init__(self, parts):
        super().__init__()
        self.parts = list(parts)  # a list: they are not trained themselves
        for name, _ in parts[0].named_parameters():
            setattr(self, name, nn.Parameter(torch.stack([getattr(part, name).detach() for part in parts])))

    def forward(self, x):
        """``x``: ``(n · B, ...)`` -> ``(n · B, ..., d)``, where n is the number of models."""
        first, n = self.parts[0], len(self.parts)
        if isinstance(first, nn.Embedding):
            start = first.num_embeddings * torch.arange(n).view(n, *[1] * x.ndim)  # each model's rows follow the last one's
            return F.embedding((x.unflatten(0, (n, -1)) + start).flatten(0, 1), self.weight.flatten(0, 1))
        rows = x.reshape(n, -1, x.shape[-1])  # (n, B · T, d)
        if isinstance(first, nn.LayerNorm):
            y = torch.addcmul(self.bias[:, None], F.layer_norm(rows, rows.shape[-1:], eps=first.eps), self.weight[:, None])
        else:
            y = torch.baddbmm(self.bias[:, None], rows, self.weight.mT)
        return y.view(*x.shape[:-1], -1)

    def give_back(self):
        """Write each model's weights into its own layer."""
        with torch.no_grad():
            for name, stacked in self.named_parameters():
                for part, weight in zip(self.parts, stacked, strict=True):
                    getattr(part, name).copy_(weight)


class Placed(nn.Module):
    """A table of tokens and one of learned positions, added."""

    def __init__(self, tokens, positions):
        super().__init__()
        self.tokens, self.positions = tokens, positions

    def forward(self, tokens):
        return self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]).expand(tokens.shape))


def side_by_side(models):
    """One model of several `transformer.Encoder` of the same sizes. ``(n · B, T)`` ids -> ``(n · B, T, outputs)``."""
    joint_of = {}

    def joined(parts):
        first = parts[0]
        if first is None or id(first) in joint_of:  # a table may stand in two places
            return joint_of.get(id(first))
        if isinstance(first, (nn.Linear, nn.LayerNorm, nn.Embedding)):
            layer = Side(parts)
        else:
            layer = copy.copy(first)
            layer._modules = {name: joined([part._modules[name] for part in parts]) for name in first._modules}
        joint_of[id(first)] = layer
        return layer

    model = joined(list(models))
    if model.config.positions == "learned":
        model.embedding, model.position = Placed(model.embedding, model.position), None
        model.config = replace(model.config, positions="none")
    return model


def fit(models, batch, loss, steps, lr, seeds, optimizers=None):
    """Train ``models``, `transformer.Encoder` of the same sizes, in place: each as `training.fit` does with its own seed.

    ``batch``, ``loss``, ``steps`` and ``lr`` as there. The results are the same up to rounding. ``optimizers``: a function
    from the one model of `side_by_side` to a list of optimisers, which take their steps in AdamW's place, each with its own
    rates for ``lr``. Raises ValueError when a loss stops being a finite number.
    """
    model, generators = side_by_side(models), [torch.Generator().manual_seed(seed) for seed in seeds]
    weights = list(model.parameters())
    chosen = optimizers(model) if optimizers else [torch.optim.AdamW(weights, lr=lr, fused=True)]
    schedules = [torch.optim.lr_scheduler.OneCycleLR(one, [group["lr"] for group in one.param_groups], steps)
                 for one in chosen]
    with training.one_thread():
        for step in range(steps):
            each = [batch(generator) for generator in generators]
            parts = model(torch.cat([tokens for tokens, *_ in each])).chunk(len(each))
            value = sum(loss(lambda *_, part=part: part, *inputs) for part, inputs in zip(parts, each, strict=True))
            if not torch.isfinite(value):
                raise ValueError(f"A loss became {value.item()} at step {step}; try a smaller lr than {lr}.")
            model.zero_grad()
            value.backward()
            with torch.no_grad():  # gradients of a model that are longer than 1 together are shortened to it
                norm = torch.stack([w.grad.flatten(1).norm(dim=1) for w in weights]).norm(dim=0)  # (n,)
                shorter = (1 / (norm + 1e-6)).clamp(max=1)
                for w in weights:
                    w.grad.mul_(shorter.view(-1, *[1] * (w.ndim - 1)))
            for optimizer, schedule in zip(chosen, schedules, strict=True):
                optimizer.step()
                schedule.step()
    for layer in model.modules():
        if isinstance(layer, Side):
            layer.give_back()
    for one in models:
        one.eval()
