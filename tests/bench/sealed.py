"""Who gets which points in a sealed exam, over 100 seeds: python tests/bench/sealed.py [seeds] [name of the draw]

``measured`` uses the methods of lessons 12 and 17 alone and none of the grader's code; it has 400 texts of its own. The
others are what should not be enough. Between the eight rules the mean points of a solver may differ by EVEN at most; another
name of the draw gives models, words and questions on which nothing was ever chosen.
"""

import itertools
import multiprocessing
import sys
import time

import numpy as np
import torch

from helpers import inside, sealed
from helpers.sealed import forecasts as about

POINTS = {"rule": 3, "find": 4, "cut": 5, "move": 5, "order": 5}  # of assignment 7
EVEN = {"measured": 0.5, "maps": 4.0}  # points


def read_rule(model, ids):
    """(shares of the answers for each verb and distance, for each adverb): what the model does, by looking on."""
    said = inside.trace(model, ids, weights=False).logits[:, -1].argmax(-1)
    row, table = torch.arange(len(ids)), {}
    for adverb in sealed.ADVERBS:
        some = ids[:, -2] == sealed.VOCABULARY[adverb]
        for verb, distance in itertools.product(sealed.VERBS, sealed.DISTANCES):
            at = (ids == sealed.VOCABULARY[verb]).int().argmax(1) + distance
            table[adverb, verb, distance] = (ids[row, at] == said)[some].double().mean().item()
    best = {adverb: max(itertools.product(sealed.VERBS, sealed.DISTANCES), key=lambda x, a=adverb: table[(a, *x)])
            for adverb in sealed.ADVERBS}
    usual = max(best.values(), key=list(best.values()).count)
    turning = next(adverb for adverb in sealed.ADVERBS if best[adverb] != usual)
    return usual[0], usual[1], turning, best[turning][1]


class Solver:
    """Somebody with a model, 400 texts, and what can be seen without touching anything."""

    def __init__(self, model):
        self.model = model
        verb, plain, adverb, turned = self.rule = read_rule(model, sealed.texts(400, seed=1))
        key = sealed.VOCABULARY
        ids = sealed.texts(1400, seed=0)
        turns = ids[:, -2] == key[adverb]
        self.ids, self.at, self.names, self.seen, self.answers = {}, {}, {}, {}, {}
        for kind, distance, otherwise in ((False, plain, turned), (True, turned, plain)):
            x = ids[turns == kind][:400]
            row = torch.arange(len(x))
            at = (x == key[verb]).int().argmax(1)
            moved = sealed.other(x, "verbs")
            there = (moved == key[verb]).int().argmax(1)
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
        return [found.count(order) / len(found) for order in about.ORDERS]


def one_hot(options, right):
    return [float(str(option) == str(right)) for option in options]


def measured(me, asked):
    """The methods of lessons 12 and 17."""
    def share(hits):
        return hits.double().mean().item()
    return {
        "rule": [one_hot(q.options, right) for q, right in zip(asked["rule"], me.rule, strict=True)],
        "find": [[share(me.weights(*q.asks).argmax(1) == head) for head in range(8)] for q in asked["find"]],
        "cut": [share(me.logits(q.asks).argmax(-1) == me.names[q.asks.turns][:, 0]) for q in asked["cut"]],
        "move": [share(me.logits(q.asks).argmax(-1) == me.answers[q.asks.turns][q.asks.what]) for q in asked["move"]],
        "order": [me.orders(me.logits(q.asks), q.asks.turns) for q in asked["order"]],
    }


def maps(me, asked):
    """Reads attention maps and touches nothing: a head that looks at the verb or the name is thought to carry it."""
    def look(start, end, kind):
        return {head for head, w in zip(sealed.HEADS, me.weights(start, end, kind).mean(0).tolist(), strict=True) if w > 0.4}
    looks = {kind: {"last": look("last", "verb", kind), "too": look("last", "name", kind),
                    "early": look("later", "earlier", kind)} for kind in (False, True)}

    def carries(step):
        seen = looks[step.turns]
        at_end = seen["last"] | seen["too"]
        return bool(set(step.heads) & {"last": at_end, "everywhere": at_end | seen["early"]}.get(step.place, seen["early"]))

    def order(step):
        if carries(step):
            return [1 / 6] * 6 if step.what == "cut" else one_hot(about.ORDERS, "VRS" if step.what == "verbs" else "SRV")
        return me.orders(me.seen[step.turns]["own"].logits[:, -1], step.turns)
    return {**{part: measured(me, {**asked, "cut": [], "move": [], "order": []})[part] for part in ("rule", "find")},
            "cut": [0.0 if carries(q.asks) else 1.0 for q in asked["cut"]],
            "move": [1.0 if carries(q.asks) else 0.0 for q in asked["move"]],
            "order": [order(q.asks) for q in asked["order"]]}


def even(me, asked):
    return {part: [[1 / len(q.options)] * len(q.options) for q in some] for part, some in asked.items()}


SOLVERS = (measured, maps, even)


def rows(seeds, draw):
    """For each seed but the first eight: (its rule, solver -> points of each part and of all, how many cuts and patches
    change much). One neighbour is the seed before, the other the last of the same rule. And the CPU-seconds that a sheet of
    questions takes."""
    found, seconds, before, names = [], [], [], list(sealed.RULES)[1:]
    for seed in seeds:
        start = time.process_time()
        model, key = sealed.deal(names[seed % 8], f"{draw} {seed}")
        asked = about.questions(model, key, f"{draw} {seed}")
        seconds.append(time.process_time() - start)
        me = Solver(model)
        if len(before) == 8:
            said = {solver.__name__.replace("_", " "): solver(me, asked) for solver in SOLVERS}
            for words, (theirs, questions) in (("a neighbour", before[-1]), ("same rule", before[0])):
                said[f"{words}'s answers"] = {part: [q.shares for q in some] for part, some in questions.items()}
                said[f"{words}'s heads"] = measured(theirs, asked)
            worth = {}
            for solver, forecasts in said.items():
                parts = {part: max(0.0, about.points(forecasts[part], asked[part])) for part in about.PARTS}
                worth[solver] = [*parts.values(), sum(POINTS[part] * parts[part] for part in POINTS)]
            strong = [sum(q.shares[0] < 0.5 for q in asked["cut"]), sum(q.shares[0] >= 0.5 for q in asked["move"])]
            found.append((names[seed % 8], worth, strong))
        before = [*before, (me, asked)][-8:]
    return found, seconds


def main(seeds=100, draw="bench", workers=2):
    """Print the mean points of each solver, and how even the exam is. Returns whether it is as even as EVEN says."""
    edges = np.linspace(0, int(seeds), workers + 1).astype(int).tolist()
    with multiprocessing.Pool(workers) as pool:
        parts = pool.starmap(rows, [(range(low, high + 8), draw) for low, high in itertools.pairwise(edges)])
    found, seconds = ([x for part in parts for x in part[i]] for i in range(2))
    print(f"{seeds} twins, {sum(POINTS.values())} points; a sheet of questions takes {np.median(seconds):.1f} CPU-seconds")
    print(f"{'':22}" + "".join(f"{part:>8}" for part in (*about.PARTS, "points")) + "    sd  lowest highest")
    for solver in found[0][1]:
        table = np.array([worth[solver] for _, worth, _ in found])
        total = table[:, 5]
        print(f"{solver:22}" + "".join(f"{x:8.0%}" for x in table.mean(0)[:5])
              + f"{total.mean():8.1f}{total.std():6.1f}{total.min():8.1f}{total.max():8.1f}")
    even = True
    for solver, margin in EVEN.items():
        means = {rule: np.mean([worth[solver][5] for name, worth, _ in found if name == rule])
                 for rule in sorted({rule for rule, _, _ in found})}
        apart = max(means.values()) - min(means.values())
        even &= bool(apart <= margin)
        print(f"{solver}, by rule:", ", ".join(f"{rule} {mean:.1f}" for rule, mean in means.items())
              + f"; {apart:.1f} apart, at most {margin} allowed")
    strong = np.array([strong for *_, strong in found])
    print("of 8 cuts, and of 8 patches, those that change most answers: mean", strong.mean(0), "from", strong.min(0), "to",
          strong.max(0))
    return even


if __name__ == "__main__":
    sys.exit(not main(*sys.argv[1:]))
