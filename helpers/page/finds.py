"""A find of lesson 17's hunt as one picture, and as a page of its own that any browser opens."""

import base64
import io
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from string import Template

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.colors import LinearSegmentedColormap

from helpers import plots
from helpers.store.files import write_whole
from helpers.words import NotUsable, listed, page_in, shown

GIVERS, OWN, NEITHERS = "the giver's", "its own", "neither's"  #: whose answer a model writes


@dataclass(frozen=True)
class Example:
    """A question that the model was asked while the team said what it says for another one."""

    asked: str
    own: str  #: what it answers by itself
    giver: str  #: the other question
    wrote: str
    whose: str  #: one of GIVERS, OWN and NEITHERS


@dataclass(frozen=True)
class Find:
    """What somebody found: which heads carry a relation in a chat model."""

    frame: str  #: such as "The capital of {} is"
    team: list  #: one to three heads (layer, head)
    moved: int  #: pairs of fresh ones whose answer it moved
    fresh: int  #: pairs that had no part in the choice
    control: int  #: the same with as many heads drawn at random
    examples: list  #: four of class Example
    scores: dict = field(default_factory=dict)  #: (layer, head) -> a number, of the heads that were tried
    hunter: str = ""
    layers: int = 30  #: of the model
    heads: int = 9  #: of a layer


def named(find):
    """Its heads in words: "Head (5, 2)", or "Heads (5, 2) and (7, 0)"."""
    return f"Head{'s' * (len(find.team) > 1)} {listed(f'({layer}, {head})' for layer, head in find.team)}"


PAGE = Path(__file__).with_name("find.html")
NIGHT, STAR, LIT, DIM = "#0b1420", "#33475f", "#ffb000", "#9fb0bf"  # the colours of a card


def headline(find):
    """What one sees first of a find: a sentence that the team changed, or one that it missed; why; whether it changed."""
    if not find.examples:
        return f"Missed: “{find.frame.format('…')} …”", named(find), False
    best = next((one for one in find.examples if one.whose == GIVERS), find.examples[0])
    changed, team = best.whose == GIVERS, ("one", "two", "three")[len(find.team) - 1]
    missed, why = ("", "because") if changed else ("Missed: ", "although")
    return (f"{missed}{find.frame.format(best.asked)} {_short(best.wrote)}",
            f"{why} {team} of its {find.layers * find.heads} heads heard “{find.frame.format(best.giver)}”", changed)


def _short(wrote):
    return wrote.strip().split("\n")[0][:22]


def card(find, best=None):
    """Draw a find: a sentence that it changed, or a dim one that it missed; all heads as a night sky, the brighter the
    higher their score, with the team ringed; the fresh pairs, a dot each, those lit that it moved; and four examples.
    Returns the figure.

    ``best``: what the course's own hunter moves (`to_beat`), marked beside the goal, ten more or all.
    """
    fig, (sky, race, low) = plt.subplots(3, 1, figsize=(7.4, 7.6), height_ratios=(3.4, 1.3, 1.9), facecolor=NIGHT)
    sentence, why, changed = headline(find)
    by = f", found by {find.hunter}" if find.hunter else ""
    fig.suptitle(sentence, fontsize=min(22, 800 / len(sentence)), weight="bold", x=0.06, ha="left",
                 color=LIT if changed else DIM)
    sky.set_title(why + by, fontsize=min(14, 900 / len(why + by)), color="white", loc="left")
    _sky(sky, find, changed)
    pairs = np.arange(find.fresh)
    race.scatter(pairs + 1, 0 * pairs, s=22, linewidth=0, c=[LIT if n < find.moved else STAR for n in pairs])
    marks = [(find.moved, f"moved: {find.moved} of {find.fresh} pairs", 0.55, LIT),
             (find.control, f"random heads: {find.control}", -0.62, DIM)]
    if best is not None:
        goal = min(best + 10, find.fresh)
        marks += [(best, f"the course's best head: {best}", -1.3, DIM), (goal, f"goal: {goal}", 1.15, "white")]
    for x, words, y, colour in marks:
        step, side = (-1, "right") if x > 0.7 * find.fresh else (1, "left")
        race.plot([x, x], [0.25 * np.sign(y), y], color=colour, linewidth=1)
        race.text(x + step, y, words, color=colour, fontsize=12, ha=side, va="center", in_layout=False,
                  bbox={"facecolor": NIGHT, "edgecolor": "none", "pad": 1})
    race.set(xlim=(-1, find.fresh + 2), ylim=(-1.6, 1.5))
    styles = {GIVERS: {"weight": "bold", "color": LIT}, NEITHERS: {"style": "italic", "color": DIM}}
    for row, one in enumerate(find.examples):
        for x, text, style in ((0, find.frame.format(one.asked), {}), (0.45, one.own, {"color": DIM}),
                               (0.61, f"with {one.giver}:", {}), (0.83, _short(one.wrote), styles.get(one.whose, {}))):
            low.text(x, 0.88 - 0.25 * row, text, va="center", in_layout=False, **{"fontsize": 12, "color": "white", **style})
    low.set(xlim=(0, 1), ylim=(0, 1))
    for ax in race, low:
        ax.axis("off")
    return plots.as_written(fig)


def _sky(ax, find, changed):
    """The heads that were tried, as stars; those that were not are dim dots. The team is ringed, and glows if it changed."""
    layers, heads = find.layers, find.heads
    places = [(layer, head) for layer in range(layers) for head in range(heads)]
    most = max([1e-9, *find.scores.values()])
    light = np.array([max(0, find.scores.get(place, 0)) / most for place in places])
    glow = LinearSegmentedColormap.from_list("glow", [STAR, "#a8761a", LIT, "#fff6d8"])
    ax.scatter(*np.transpose(places), s=18 + 80 * light, c=light, cmap=glow, vmin=0, vmax=1, linewidth=0)
    for size in (200, 480, 960) if changed else ():
        ax.scatter(*np.transpose(find.team), s=size, color=LIT, alpha=0.13, linewidth=0)
    ax.scatter(*np.transpose(find.team), s=260, facecolor="none", edgecolor="white", linewidth=1.8)
    for n, (layer, head) in enumerate(find.team):
        step, side = (-1, "right") if layer > layers / 2 else (1, "left")
        lower = sum(head == other for _, other in find.team[:n])  # of two in a row, the second below the first
        ax.text(layer + step, head - 0.1 + lower, f"({layer}, {head})", color="white", fontsize=13, ha=side, va="center",
                bbox={"facecolor": NIGHT, "edgecolor": "none", "pad": 1.5})
    ax.set(facecolor=NIGHT, xlim=(-1, layers), ylim=(heads - 0.3, -0.7))
    ax.set(xticks=range(0, layers, 5), yticks=range(0, heads, 2))
    tried = f"{len(find.scores)} of {layers * heads} heads tried" if find.scores else "your scores will light the stars"
    ax.set_xlabel(f"layer; {tried}", fontsize=12, color="white")
    ax.set_ylabel("head", fontsize=12, color="white")
    ax.tick_params(length=0, labelcolor="white", labelsize=11)
    ax.spines[:].set_visible(False)


def save(find, name):
    """Write the find as a page to the file ``name``, whole or not at all. Returns its path.

    Raises NotUsable for a name that does not end in .html, and where nothing can be written.
    """
    path = page_in(name, like="my_find.html")
    picture, fig = io.BytesIO(), card(find)
    fig.savefig(picture, dpi=130, bbox_inches="tight", facecolor=NIGHT)
    plt.close(fig)
    rows = ""
    for one in find.examples:
        tag = {GIVERS: "b", NEITHERS: "i", OWN: "span"}[one.whose]
        rows += (f"<tr><td>{escape(find.frame.format(one.asked))}</td><td>{escape(one.own)}</td>"
                 f"<td>{escape(one.giver)}</td><td><{tag}>{escape(one.wrote.strip())}</{tag}></td></tr>")
    title, (sentence, why, _) = f"{named(find)}, of {find.layers * find.heads}", headline(find)
    page = Template(PAGE.read_text(encoding="utf-8")).substitute(
        title=escape(title), headline=escape(f"{sentence}: {why}"), rows=rows, team=named(find).lower(),
        picture=base64.b64encode(picture.getvalue()).decode(), layers=find.layers, heads=find.heads,
        hunter=f"<p>Found by {escape(find.hunter)}.</p>" if find.hunter else "", question=escape(find.frame.format("…")),
        moved=find.moved, fresh=find.fresh, control=find.control)
    try:
        write_whole(path, page)
    except OSError as error:
        raise NotUsable(f"Nothing can be written at {shown(str(path))} ({error.strerror}): give another name.") from None
    return path


def ring(asked):
    """Each question takes from the next one that has another answer (the last ones from the first): takers and givers."""
    n = len(asked.subjects)
    pairs = []
    for a in range(n):
        others = [b for b in (*range(a + 1, n), *range(a)) if asked.answers[b] != asked.answers[a]]
        pairs += [(a, b) for b in others[:1]]
    return [a for a, _ in pairs], [b for _, b in pairs]


def fresh(asked):
    """All pairs with different answers but those of the ring: (takers, givers)."""
    used = set(zip(*ring(asked), strict=True))
    pairs = [pair for pair in zip(*asked.pairs(), strict=True) if pair not in used]
    return [a for a, _ in pairs], [b for _, b in pairs]


def together(asked, team, givers):
    """An edit: at the last word each head of the team, (layer, head), says what it said for the givers."""
    edits = [asked.patch(layer, head, givers) for layer, head in team]

    def edit(where, z):
        for one in edits:
            z = one(where, z)
        return z
    return edit


def moved(asked, team, takers, givers):
    """In how many pairs the giver's answer comes out above the taker's own."""
    z, n = asked.last(takers, together(asked, team, givers)), range(len(takers))
    return int((z[n, asked.answers[givers]] > z[n, asked.answers[takers]]).sum())


def all_heads(asked, takers, givers):
    """The course's own hunter: the mean effect of each head alone at the last word, (layer, head) -> a number.

    Effect 0: the takers' answers as before; 1: as if the givers had been asked. Only a head's own layer and those above run.
    """
    model, h, found = asked.model, asked.model.n_heads, {}
    own, other = asked.answers[takers], asked.answers[givers]
    low, high = (asked.seen.logits[rows, -1, other] - asked.seen.logits[rows, -1, own] for rows in (takers, givers))
    wanted, column = asked.answers.unique(return_inverse=True)  # of 49,152 logits these are all that is asked for
    own, other = column[takers], column[givers]
    rows = torch.tensor(takers).repeat(h)  # all heads of a layer in one batch: the first head's pairs, then the second's
    for layer in range(len(model.layers)):
        past = [(K[rows, :, :-1], V[rows, :, :-1]) for K, V in asked.seen.cache[layer:]]
        state = asked.seen.states[layer, rows, -1:]

        def put_states(number, x, state=state):
            return state if number == 0 else x

        def put_heads(number, z, layer=layer):
            z = z.clone()
            for head in range(h if number == 0 else 0):
                part = slice(head * len(takers), (head + 1) * len(takers))
                z[part, head] = asked.seen.heads[layer, givers, head, -1:]
            return z

        rest = replace(model, layers=model.layers[layer:], embedding=model.embedding[wanted])
        with torch.no_grad():
            z = rest.run(column[rows, None], past, edit=put_heads, edit_states=put_states)[0][:, -1]
        n = range(len(rows))
        lead = (z[n, other.repeat(h)] - z[n, own.repeat(h)]).view(h, -1)  # (h, pairs)
        for head, effect in enumerate(((lead - low) / (high - low)).mean(1).tolist()):
            found[layer, head] = effect
    return found


def to_beat(asked):
    """What the course's own hunter gets: in how many fresh pairs its best head, chosen on the ring, moves the answer."""
    scores = all_heads(asked, *ring(asked))
    return moved(asked, [max(scores, key=scores.get)], *fresh(asked))


def judge(asked, team, scores=None, hunter=""):
    """Judge a hunt on fresh pairs: a `Find`.

    ``team``: one to three heads (layer, head); ``scores``: (layer, head) -> a number, of those tried; ``hunter``: a name.

    Raises NotUsable, in one sentence, when a team or scores are not of this form.
    """
    layers, heads = len(asked.model.layers), asked.model.n_heads
    known, given = {(a, b) for a in range(layers) for b in range(heads)}, team
    try:
        team, scores = [*map(tuple, team)], {} if scores is None else dict(scores)
        scores = {head: float(score) for head, score in scores.items()}
        usable = (1 <= len(team) <= 3 and len(set(team)) == len(team) and set(team) | set(scores) <= known
                  and np.isfinite(list(scores.values())).all())
    except (TypeError, ValueError):  # such as (23, 5), one head without its list
        usable = False
    if not usable:
        raise NotUsable("A team is one to three different heads such as [(5, 2), (7, 0)], and scores are a dict such as "
                        f"{{(5, 2): 0.9}}, layers 0 to {layers - 1}, heads 0 to {heads - 1}; the team is {shown(given)}, "
                        f"the scores are {shown(scores)}.")
    takers, givers = fresh(asked)
    others = sorted(known - set(team))
    chance = [others[n] for n in np.random.default_rng(0).choice(len(others), len(team), replace=False)]
    every = list(zip(takers, givers, strict=True))[::max(1, len(takers) // 4)][:4]
    examples = []
    for t, g in every:
        edit = together(asked, team, [g])
        first = int(asked.last([t], edit)[0].argmax())
        whose = {int(asked.answers[t]): OWN, int(asked.answers[g]): GIVERS}.get(first, NEITHERS)
        examples.append(Example(asked.subjects[t], asked.said[t], asked.subjects[g], asked.write(t, edit, n=1), whose))
    return Find(asked.frame, team, moved(asked, team, takers, givers), len(takers), moved(asked, chance, takers, givers),
                examples, scores, "" if hunter is None else str(hunter)[:60], layers, heads)
