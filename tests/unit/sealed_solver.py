"""Somebody who solves a sealed exam by the methods of lessons 12 and 17: none of the grader's code, and other texts."""

import torch

from helpers import inside, sealed
from helpers.sealed import forecasts


class Solver:
    """Somebody with a model, its rule (ids of verb and adverb, and the two distances), and 400 texts."""

    def __init__(self, model, verb, adverb, plain, turned):
        self.model = model
        ids = sealed.texts(1400, seed=0)
        turns = ids[:, -2] == adverb
        self.ids, self.at, self.names, self.seen, self.answers = {}, {}, {}, {}, {}
        for kind, distance, otherwise in ((False, plain, turned), (True, turned, plain)):
            x = ids[turns == kind][:400]
            row = torch.arange(len(x))
            at = (x == verb).int().argmax(1)
            moved = sealed.other(x, "verbs")
            there = (moved == verb).int().argmax(1)
            self.ids[kind], self.at[kind] = x, {"last": torch.full_like(at, 23), "verb": at, "name": at + distance}
            self.names[kind] = torch.stack([x[row, at + distance], x[row, at + otherwise], x[row, there + distance]], 1)
            reversed_names = sealed.other(x, "names")
            self.answers[kind] = {"verbs": self.names[kind][:, 2], "names": reversed_names[row, at + distance]}
            self.seen[kind] = {"own": inside.trace(model, x), "verbs": inside.trace(model, moved),
                               "names": inside.trace(model, reversed_names)}

    def logits(self, step):
        """The lessons' ablation and patch, position by position."""
        def edit(layer, z):
            for at, head in step.heads:
                if at != layer:
                    continue
                if step.what == "cut":
                    z = inside.ablate_heads(z, [head])
                    continue
                giver, at = self.seen[step.turns][step.what].heads[layer], self.at[step.turns][step.place]
                for place in at.unique().tolist():
                    z[at == place] = inside.patch_head(z[at == place], giver[at == place], head, place)
            return z
        return inside.trace(self.model, self.ids[step.turns], edit=edit, weights=False).logits[:, -1]

    def weights(self, start, end, kind):
        at, w = self.at[kind], torch.cat(self.seen[kind]["own"].weights, 1)
        ends = {**at, "earlier": torch.minimum(at["verb"], at["name"]), "later": torch.maximum(at["verb"], at["name"])}
        return w[torch.arange(len(w)), :, ends[start], ends[end]]  # (n, 8)

    def orders(self, z, kind):
        three = z.gather(1, self.names[kind]).argsort(1, descending=True)
        found = ["".join("RSV"[i] for i in row) for row in three.tolist()]
        return [found.count(order) / len(found) for order in forecasts.ORDERS]


def measured(me, asked):
    """The methods of lessons 12 and 17."""
    def share(hits):
        return hits.double().mean().item()
    return {
        "find": [[share(me.weights(*q.asks).argmax(1) == head) for head in range(8)] for q in asked["find"]],
        "cut": [share(me.logits(q.asks).argmax(-1) == me.names[q.asks.turns][:, 0]) for q in asked["cut"]],
        "move": [share(me.logits(q.asks).argmax(-1) == me.answers[q.asks.turns][q.asks.what]) for q in asked["move"]],
        "order": [me.orders(me.logits(q.asks), q.asks.turns) for q in asked["order"]],
    }
