"""Assignment 3: masks, heads, positions (lessons 06 to 08)."""

import numpy as np

from classroom.tasks import Task, by_name, in_variants, mistakes
from helpers.checks.core import Contract, Exercise, Probe, example, inputs, larger

# Which keys a query sees, from how many places back they stand.
BEYOND = {"causal": lambda back: back >= 0,
          "window of 2": lambda back: (back >= 0) & (back < 2),
          "window of 3": lambda back: (back >= 0) & (back < 3),
          "every second": lambda back: (back >= 0) & (back % 2 == 0),
          "every third": lambda back: (back >= 0) & (back % 3 == 0)}


def prefix_mask(prefix, T, *, beyond="causal", prefix_sees="itself"):
    """(T, T) bool: every query sees the first ``prefix`` tokens, and itself and what came before it.
    ``beyond``: what of that it sees, a key of BEYOND; ``prefix_sees``: "itself" says nothing more, and with
    "everything" the first tokens see all others (the global tokens of Beltagy et al. 2020)."""
    if not 0 <= prefix <= T:
        raise ValueError(f"The prefix must lie between 0 and {T}, not {prefix}.")
    key = np.arange(T)
    query = key[:, None]
    seen = BEYOND[beyond](query - key) | (key < prefix)
    return seen | (query < prefix) if prefix_sees == "everything" else seen


BLIND = {"nothing": lambda T: np.zeros((T, T), dtype=bool), "itself": lambda T: np.eye(T, dtype=bool),
         "everything": lambda T: np.ones((T, T), dtype=bool)}
GIVEN = {"allowed": lambda mask: mask, "hidden": np.logical_not,
         "added": lambda mask: np.where(mask, 0.0, -np.inf)}


def packed_mask(segments, *, padding=-1, blind="nothing", given="allowed"):
    """segments (B, T), numbers of texts packed into one row, -1 for padding -> (B, T, T) bool: a token sees
    itself and what came before it in its own text. Padding sees nothing and is not seen. ``padding``: its
    number; ``blind``: what it sees, a key of BLIND; ``given``: True for what is allowed or for what is
    hidden, or what is added to the scores, a key of GIVEN."""
    T = segments.shape[1]
    same = segments[:, :, None] == segments[:, None, :]
    seen = same & np.tril(np.ones((T, T), dtype=bool))
    return GIVEN[given](np.where((segments != padding)[:, :, None], seen, BLIND[blind](T)))


def head_contribution(heads, W_o, head, *, first=0, rows="together", axis=1, turned=False):
    """heads (B, h, T, d_k), W_o (h d_k, d) -> (B, T, d): what one head adds to concat(heads) W_o. ``first``:
    the number of the first head; ``rows``: a head's own in W_o stand "together" or, "interleaved", every h-th
    is one; ``axis``: where ``heads`` has its heads, with 2 it is (B, T, h, d_k); ``turned``: W_o is
    (d, h d_k)."""
    heads = np.moveaxis(heads, axis, 0)
    h, B, T, d_k = heads.shape
    of_head = W_o.T if turned else W_o
    i = head - 1 if first else head
    return heads[i] @ (of_head[i * d_k:(i + 1) * d_k] if rows == "together" else of_head[i::h])


def relative_positions(T, limit):
    """(T, T) whole numbers: key position minus query position, clipped to [-limit, limit], plus limit: 0 to
    2 limit (Shaw et al. 2018)."""
    if limit < 1:
        raise ValueError(f"The limit must be at least 1, not {limit}.")
    position = np.arange(T)
    return np.clip(position - position[:, None], -limit, limit) + limit


BEYOND_IN_WORDS = {
    "causal": "the mask is causal", "window of 2": "a query sees itself and the token before it",
    "window of 3": "a query sees itself and the two tokens before it",
    "every second": "a query sees itself and every second token before it, those 2, 4, 6 … places back",
    "every third": "a query sees itself and every third token before it, those 3, 6, 9 … places back",
}
ONE_MORE = {"window of 2": lambda back: (back >= 0) & (back < 3),
            "window of 3": lambda back: (back >= 0) & (back < 4),
            "every second": lambda back: (back > 0) & (back % 2 == 1) | (back == 0),
            "every third": lambda back: (back > 0) & (back % 3 == 1) | (back == 0)}


@in_variants(prefix_mask, {"beyond": tuple(BEYOND), "prefix_sees": ("itself", "everything")})
def _prefix_mask(like, beyond, prefix_sees):
    rule, everything, right = BEYOND_IN_WORDS[beyond], prefix_sees == "everything", like()

    def built(beyond=BEYOND[beyond], columns=lambda key, query, p: key < p,
              rows=lambda key, query, p: (query < p) & everything):
        """What a query sees beyond the prefix, the columns of the prefix, its rows."""
        def function(p, T):
            key, query = np.arange(T), np.arange(T)[:, None]
            return beyond(query - key) | columns(key, query, p) | rows(key, query, p)
        return function

    def not_later(p, T):
        """The prefix sees itself, and later queries see nothing of it."""
        key, query = np.arange(T), np.arange(T)[:, None]
        rest = built(columns=nobody)(p, T) & ~((key < p) & (query >= p))
        return rest | (key < p) & (query < p)

    def nobody(key, query, p):
        return query < 0

    def prefix_only(key, query, p):
        return query < p

    of_the_others = () if beyond == "causal" else (  # under a causal mask later queries see the prefix anyhow
        ("seen-by-nobody", "The prefix sees everything in your mask, as it should. It is seen by"
            " everybody too: fill its columns as well.", built(columns=nobody)) if everything else
        ("rows-and-columns", "You let the prefix's tokens see everything, besides being seen. Fill their "
            "columns, not their rows.", built(rows=prefix_only)),
        ("all-before", f"Beyond the prefix your queries see everything that came before. Here {rule}.",
            built(BEYOND["causal"])),
        ("miscounted", f"You count the places wrongly. Here {rule}.", built(ONE_MORE[beyond])),
        ("both-sides", f"Your queries see to both sides. Beyond the prefix {rule}.",
            built(lambda back: BEYOND[beyond](np.abs(back)))),
    )
    rows = ", and the first two rows are True throughout" if everything else ""
    own = (beyond, prefix_sees) == ("causal", "itself")
    T, prefix = (3, 2) if own else (5, 1)
    mask = like()(prefix, T).astype(int).tolist()
    causal = "(position <= position[:, None])"
    seen = {"causal": causal, "window of 2": f"{causal} & (position > position[:, None] - 2)",
            "window of 3": f"{causal} & (position > position[:, None] - 3)",
            "every second": f"{causal} & ((position[:, None] - position) % 2 == 0)",
            "every third": f"{causal} & ((position[:, None] - position) % 3 == 0)"}[beyond]
    words = {
        "prefix": "Some models for long texts have a few global tokens, which see everything and are seen by "
                  "everybody. Here they are the first `prefix` tokens: **every** query sees all of them, and "
                  "they see every token." if everything else
                  "Some language models read a question with attention in both directions and write the "
                  "answer causally. The first `prefix` tokens are the question: **every** query sees all of "
                  "them.",
        "beyond": f"Apart from that {BEYOND_IN_WORDS[beyond]}.\n0 ≤ prefix ≤ T.",
        "docstring": f"the first tokens {'see all and ' * everything}are seen by everybody, the others "
                     + {"causal": "causally.", "every second": "causally, every second one.",
                        "every third": "causally, every third one."}.get(beyond, f"in a {beyond}."),
        "solution": f"return ({seen}) | (position < prefix)".replace(f"({causal})", causal)
                    + (" \\\n        | (position[:, None] < prefix)" if everything else ""),
        "example": f"mask = prefix_mask({prefix}, {T})\nassert mask.dtype == bool and np.array_equal(mask, "
                   + (f"{mask})" if own else f"[\n    {str(mask)[1:-1]}])"),
    }
    return Exercise(right, probes=(
        example("no prefix", (0, 3), "Here prefix = 0" + (
            ", so this is the causal mask: True on and below the diagonal." if beyond == "causal" else
            f": {rule}.")),
        example("a prefix of two", (2, 4), f"Every row is True in the first two columns{rows}; "
            f"from there on {'it is causal' if beyond == 'causal' else rule}."),
        Probe("drawn at random", lambda rng: (int(rng.integers(2, 4)), int(rng.integers(5, 9))),
            "A row is a query, a column is a key. The first `prefix` columns are True for "
            f"everybody{', and so are the first `prefix` rows' if everything else ''}."),
        example("all prefix", (4, 4), "When all is prefix everybody sees everything."),
        example("nine tokens", (1, 9), f"One token is the prefix. Beyond it {rule}."),
    ), misconceptions=mistakes(
        ("causal-only", "The prefix has no effect: its tokens may be seen by everybody, from before "
            "as well.", built(columns=nobody, rows=nobody)),
        ("transposed", "Your mask is turned round. A row is a query"
            + (": only the prefix sees what comes after it." if everything else "; the prefix fills columns."),
            lambda p, T: right(p, T).T),
        ("columns-of-the-prefix", "Everybody sees the prefix in your mask, as they should. It"
            " sees everything too: fill its rows as well.", built(rows=nobody)) if everything else
        ("rows-of-the-prefix", "You let the prefix's tokens see everything. The others may see the "
            "prefix: fill columns, not rows.", built(columns=nobody, rows=prefix_only)),
        ("one-too-many", "Your prefix is one token too long: it holds the positions 0 to prefix - 1.",
            lambda p, T: built()(p + 1, T)),
        ("prefix-not-seen-later", "After the prefix nobody sees it in your mask. Its columns are True "
            "in every row.", not_later),
        ("not-itself", "A token must see itself: the diagonal is True.",
            built(lambda back: BEYOND[beyond](back) & (back != 0))),
        of_the_others,
        ("numbers", "You return numbers. A mask is boolean.", lambda p, T: right(p, T).astype(float)),
        ("inverted", "True and False have changed places: True means may attend.", lambda p, T: ~right(p, T)),
        ("everything", f"You let everybody see everything. After the prefix {rule}.",
            lambda p, T: np.ones((T, T), dtype=bool)),
    ), contracts=(Contract("a prefix longer than T", lambda rng: (5, 3)),)), words


def _same(segments):
    return segments[:, :, None] == segments[:, None, :]


def _triangle(segments, k=0):
    return np.tril(np.ones((segments.shape[1],) * 2, dtype=bool), k)


@in_variants(packed_mask, {"padding": (-1, 0), "blind": tuple(BLIND), "given": tuple(GIVEN)})
def _packed_mask(like, padding, blind, given):
    sees = {"nothing": "nothing", "itself": "only itself, not the other padding",
            "everything": "the whole row"}
    means = {"allowed": "True means may attend", "hidden": "here True means hidden",
             "added": "0 is for what may be seen, -inf for the rest"}[given]
    turned_round = f"{'0 and -inf' if given == 'added' else 'True and False'} have changed places: {means}."
    give = GIVEN[given]

    def rows(*numbers):
        """The numbers of texts, which begin behind that of padding."""
        return lambda rng: (np.array(numbers) + padding + 1,)

    @inputs
    def random_rows(rng, B, T):
        return rows(*(np.repeat([3, 7, 1, -1], rng.multinomial(T, [0.3, 0.3, 0.2, 0.2])) for _ in range(B)))(rng)

    def texts(seen):
        """``seen(segments)`` is for texts; padding sees what it should."""
        return lambda s: give(np.where((s != padding)[:, :, None], seen(s), BLIND[blind](s.shape[1])))

    right, allowed = like(), like(given="allowed")

    of_the_form = (
        ("booleans", "You return True and False. Numbers are asked for, to be added to the scores: "
            f"{means}.", allowed),
        ("ones", f"You return 1 and 0. These are to be added to the scores: {means}.",
            lambda s: allowed(s).astype(float)),
        ("large-number", "You hide with a large negative number. It depends on the scores what is large: "
            "use -inf.", lambda s: np.where(allowed(s), 0.0, -1e9)),
        ("inverted", turned_round, lambda s: give(~allowed(s))),
    ) if given == "added" else (
        ("numbers", "You return numbers. A mask is boolean.", lambda s: right(s).astype(float)),
        ("inverted", turned_round, lambda s: ~right(s)),
    )
    row = np.array([[5, 1, 1, 0, 0]]) + padding
    mask = like(given="hidden" if given == "hidden" else "allowed")(row)
    text, pad = ("segments >= 0", "segments < 0") if padding == -1 else ("segments > 0", "segments == 0")
    seen = "same & causal" + {"nothing": f" & ({text})[:, :, None]", "everything": f" | ({pad})[:, :, None]",
                              "itself": f" & ({text})[:, :, None] | np.eye(T, dtype=bool)"}[blind]
    kind = {"allowed": "bool", "hidden": "bool, True = hidden", "added": "of 0 and -inf"}[given]
    dtype, values = ('mask.dtype.kind == "f"', "np.exp(mask[0])") if given == "added" else (
        "mask.dtype == bool", "mask[0].astype(int)")
    words = {
        "numbers": f"whole numbers from {padding + 1}, in any order, and {padding} for padding.",
        "padding": {"nothing": "Padding sees nothing and nobody sees it.",
                    "itself": "Each padding token sees only itself, so that no query is left with nothing to "
                              "see, and no other token sees it.",
                    "everything": "Padding sees the whole row, so that no query is left with nothing to see, "
                                  "and no token of a text sees padding."}[blind],
        "return": {"allowed": "Return a boolean array of shape `(B, T, T)`.",
                   "hidden": "Return a boolean array of shape `(B, T, T)` as some libraries want it: "
                             "**`True` means hidden**.",
                   "added": "Return what is **added to the scores** before the softmax: an array of shape "
                            "`(B, T, T)` with 0 for what may be seen and `-np.inf` for the rest."}[given],
        "docstring": f"segments (B, T), {padding} = padding -> (B, T, T) {kind}: causal inside",
        "solution": {"allowed": f"return {seen}", "hidden": f"return ~({seen})",
                     "added": f"return np.where({seen}, 0.0, -np.inf)"}[given],
        "example": f"packed_mask(np.array({row.tolist()}))\nassert {dtype}\n"
                   f"assert np.array_equal({values}, [\n    {str(mask[0].astype(int).tolist())[1:-1]}])",
    }
    return Exercise(right, probes=(
        Probe("one text", rows([0, 0, 0]), "With one text this is "
            + ("the causal mask, with a batch axis in front: (1, 3, 3)." if given == "allowed" else
               f"a causal mask, of shape (1, 3, 3); {means}."), draws=1),
        Probe("two texts", rows([0, 0, 1, 1]), "A token sees only its own text, and there only itself "
            "and what came before.", draws=1),
        Probe("padding", rows([5, 5, -1], [2, -1, -1]), f"{padding} is padding: it sees {sees[blind]}, and "
            f"{'nobody' if blind == 'nothing' else 'no token of a text'} sees it.", draws=1),
        Probe("drawn at random", random_rows(3, 9), "The numbers of the texts are only names: they "
            f"need not start at {padding + 1} or be in order."),
        larger(random_rows(9, 12)),
    ), misconceptions=mistakes(
        ("not-causal", "Tokens see the future of their own text. Each sees itself and what came "
            "before.", texts(_same)),
        ("one-text", "Tokens see the texts before their own. Compare the numbers of query and key.",
            texts(lambda s: _triangle(s) & (s != padding)[:, None, :])),
        ("padding-sees-padding", "Padding has the same number as other padding, so it sees it. It "
            f"must see {sees[blind]}.", lambda s: give(_same(s) & _triangle(s))),
        ("padding-sees-all-padding", "In your mask padding sees all padding of its row. It must see "
            f"{sees[blind]}.", lambda s: give(_same(s) & (_triangle(s) | (s == padding)[:, :, None]))),
        like.others("blind", {other: (f"padding-sees-{other}", f"In your mask padding sees {sees[other]}. It"
            f" must see {sees[blind]}.") for other in BLIND}),
        ("transposed", "Your mask is turned round: row = query, column = key.",
            lambda s: right(s).swapaxes(1, 2)),
        ("not-itself", "A token must see itself" + (", unless it is padding." if blind == "nothing" else "."),
            texts(lambda s: _same(s) & _triangle(s, -1))),
        ("order-of-numbers", "You let a token see texts with smaller numbers. The numbers are only "
            "names: compare for equality.",
            texts(lambda s: (s[:, :, None] >= s[:, None, :]) & _triangle(s) & (s != padding)[:, None, :])),
        padding == -1 and ("zero-is-padding", "You treat text 0 as padding. Padding is -1.",
            lambda s: right(np.where(s == 0, -1, s))),
        of_the_form,
    )), words


@in_variants(head_contribution, {"first": (0, 1), "rows": ("together", "interleaved"), "axis": (1, 2),
                                 "turned": (False, True)})
def _head_contribution(like, first, rows, axis, turned):
    lines, together = "columns" if turned else "rows", rows == "together"
    at = f"heads[{':, ' * axis}{'head - 1' if first else 'head'}]"

    @inputs
    def sized(rng, B, h, T, d_k, d, i):
        X, W = rng.normal(size=(B, h, T, d_k)), rng.normal(size=(h * d_k, d))
        return X if axis == 1 else X.swapaxes(1, 2), W.T if turned else W, i + first

    right = like()

    def numbers(X):
        return range(first, first + X.shape[axis])

    def whole(X, W):
        return sum(right(X, W, j) for j in numbers(X))

    def output(X, W, i):
        return np.moveaxis(X, axis, 0)[i - first]

    first_lines, formula = {
        ("rows", True): ("the first d_k rows", "rows i d_k to (i + 1) d_k"),
        ("columns", True): ("the first d_k columns", "columns i d_k to (i + 1) d_k"),
        ("rows", False): ("every h-th row, from row 0 on,", "rows i, i + h, i + 2h …"),
        ("columns", False): ("every h-th column, from column 0 on,", "columns i, i + h, i + 2h …"),
    }[lines, together]
    X = np.arange(4.0).reshape((1, 2, 1, 2) if axis == 1 else (1, 1, 2, 2))
    W = 10.0 ** (np.arange(4)[None] if turned else np.arange(4)[:, None])
    terms = [like()(X, W, first + i).item() for i in (0, 1)]
    shape, W_o = ("B, h, T, d_k", "B, T, h, d_k")[axis - 1], ("h{}d_k, d", "d, h{}d_k")[turned]
    heads = f"heads[{':, ' * axis}{'head - 1' if first else 'head'}]"
    i = ("(head - 1)", "head") if first else ("head", "(head + 1)")
    if rows == "together":
        size, own_lines = "d_k = heads.shape[-1]", f"{i[0]} * d_k:{i[1]} * d_k"
    else:
        size, own_lines = f"h = heads.shape[{axis}]", f"{i[0].strip('()')}::h"
    words = {
        "order": ("" if rows == "together" else
                  "Here the heads are **interleaved** when they are concatenated: first come the first "
                  "numbers of all heads, then the second numbers of all heads, and so on.\n")
                 + f"Return the term of head number `head`, counted from {first}.",
        "shapes": f"`heads` is `({shape})`, `W_o` is `({W_o.format(' · ')})`"
                  + (" (transposed, as PyTorch keeps its matrices)," if turned else ","),
        "docstring": f"heads ({shape}), W_o ({W_o.format('·')}) ->",
        "solution": f"{size}\n    return {heads} @ "
                    + (f"W_o[:, {own_lines}].T  #" if turned else f"W_o[{own_lines}]  #"),
        "example": f"reshape{X.shape}, np.array({W.tolist()})\n" + "\n".join(
            f"assert np.allclose(head_contribution(heads, W_o, {first + j}), [[[{term:g}]]])"
            for j, term in enumerate(terms)),
    }
    return Exercise(right, probes=(
        Probe("one head", sized(1, 1, 2, 2, 2, 0), "With one head its contribution is all there is: "
            f"heads[{':, ' * axis}0] @ W_o{'.T' if turned else ''}."),
        Probe("first of two", sized(1, 2, 3, 2, 4, 0), f"Head {first} meets {first_lines} of W_o and "
            "no others."),
        Probe("last of three", sized(2, 3, 4, 2, 6, 2), f"Head {'`head`' if first else 'i'} meets the"
            f" {formula} of W_o" + (", where i = head - 1." if first else ".")),
        Probe("all sizes differ", sized(3, 4, 2, 5, 7, 1), "B = 3, h = 4, T = 2, d_k = 5, d = 7: the "
            "result is (3, 2, 7).", draws=3),
        larger(sized(5, 9, 11, 10, 12, 8)),
    ), misconceptions=mistakes(
        ("all-heads", "You add up all heads. Only one is asked for.", lambda X, W, i: whole(X, W)),
        ("all-others", "You leave the head out and return the rest. Return what it adds itself.",
            lambda X, W, i: whole(X, W) - right(X, W, i)),
        ("counted-from-zero", "You count the heads from 0. Here head 1 is the first.",
            like(first=0)) if first else
        ("counted-from-1", "You count the heads from 1. Head 0 is the first.",
            lambda X, W, i: right(X, W, i - 1)),
        ("first-rows", f"You use the first {lines} of W_o for every head. Each head has its own"
            + ("." if together else f": every h-th {lines[:-1]}."),
            lambda X, W, i: output(X, W, i) @ (W.T if turned else W)[:X.shape[-1]]),
        like.others("rows", {
            "interleaved": ("every-hth-row", f"You take every h-th {lines[:-1]} of W_o. The heads stand"
                f" side by side, each with d_k neighbouring {lines}."),
            "together": ("neighbouring-rows", f"You take d_k neighbouring {lines} of W_o. The heads are"
                f" interleaved: every h-th {lines[:-1]} belongs to a head."),
        }),
        turned and ("not-turned", "You take rows of W_o. Here it is (d, h · d_k): a head"
            " meets columns of it, transposed.", like(turned=False)),
        ("without-W_o", "You return the head's output without W_o. Its contribution to the sum has "
            "passed through W_o.", output),
        ("batch-for-head", f"You take an element of the batch. The heads are on axis {axis}: {at}.",
            lambda X, W, i: whole(X, W)[i - first]),
        ("token-for-head", f"You take a token. The heads are on axis {axis}: {at}.", like(axis=3 - axis)),
        ("divided-by-h", "You divide by the number of heads. Contributions are added, not averaged.",
            lambda X, W, i: right(X, W, i) / X.shape[axis]),
    )), words


def _offsets(T):
    position = np.arange(T)
    return position - position[:, None]


RELATIVE_POSITIONS = Exercise(relative_positions, probes=(
    example("two tokens", (2, 3), "With a wide limit nothing is clipped: 0 on the diagonal becomes the limit."),
    example("clipped", (4, 1), "Limit 1: everything to the left is 0, the diagonal 1, "
        "everything to the right 2."),
    Probe("drawn at random", lambda rng: (int(rng.integers(6, 10)), int(rng.integers(2, 4))),
        "Entry [i, j] is j - i, clipped to [-limit, limit], plus limit: whole numbers from 0 to 2 limit."),
), misconceptions=(
    ("sign", "The sign is turned round: key minus query, so that keys to the right have larger "
        "numbers.", lambda T, limit: relative_positions(T, limit).T),
    ("not-clipped", "You do not clip: beyond the limit all distances share a number.",
        lambda T, limit: _offsets(T) + limit),
    ("not-shifted", "You do not add the limit. The numbers are rows of a table, so they start at 0.",
        lambda T, limit: np.clip(_offsets(T), -limit, limit)),
    ("absolute", "You lose the direction: before and after are different.",
        lambda T, limit: np.clip(np.abs(_offsets(T)), 0, limit)),
    ("clipped-after", "You add the limit and then clip to [-limit, limit]. Clip first.",
        lambda T, limit: np.clip(_offsets(T) + limit, -limit, limit)),
    ("floats", "You return floats. Numbers of rows are whole numbers.",
        lambda T, limit: relative_positions(T, limit).astype(float)),
    ("modulo", "You wrap round at the limit. Clip: np.clip.",
        lambda T, limit: np.mod(_offsets(T) + limit, 2 * limit + 1)),
), contracts=(Contract("a limit of 0", lambda rng: (3, 0)),))


TASKS = by_name(_prefix_mask, _packed_mask, _head_contribution, Task(RELATIVE_POSITIONS))
