"""The exercises of lesson 13: names of weights, the mean of a text's tokens, search by meaning. Inputs are
torch tensors."""

import functools
import re

import numpy as np
import torch
from torch.nn import functional as F

from helpers.checks.core import Contract, Exercise, Probe, example, inputs, larger, variants
from helpers.checks.pieces import same
from helpers.minilm import map_weight_name, mean_pool, semantic_search

# ---------------------------------------------------------------- map_weight_name


def _each(said, hint, *names):
    """A probe for each name, so that none is left to chance."""
    return [Probe(said, lambda rng, name=name: (name,), hint, draws=1) for name in names]


def _each_in_a_layer(said, hint, *parts, layers=(1, 10)):
    """The same in a layer drawn at random; of one digit, unless ``layers`` says otherwise."""
    return [Probe(said, lambda rng, part=part: (f"encoder.layer.{rng.integers(*layers)}.{part}",), hint) for part in parts]


@variants
def _named(name, *, read=same, write=same):
    """The reference, given a name that was altered, or with the name that it gives altered."""
    return write(map_weight_name(read(name)))


def _altered(pattern, replacement):
    """The reference, with the name that it gives altered where ``pattern`` is found."""
    return _named(write=functools.partial(re.sub, pattern, replacement))


def _swapped(a, b):
    """The reference with ``a`` and ``b`` exchanged in the name that it gives."""
    return _altered(f"{a}|{b}", lambda found: b if found[0] == a else a)


def _misread(pattern, replacement):
    """The reference, given a name that is altered where ``pattern`` is found: what is taken for what."""
    return _named(read=functools.partial(re.sub, pattern, replacement))


MAP_WEIGHT_NAME = Exercise(map_weight_name, probes=(
    example("the words", ("embeddings.word_embeddings.weight",),
        "The first table has three names that stand alone: word, position and token_type."),
    *_each("position and token type",
        "The first table has three names that stand alone: word, position and token_type.",
        "embeddings.position_embeddings.weight", "embeddings.token_type_embeddings.weight"),
    example("position_ids", ("embeddings.position_ids",),
        "embeddings.position_ids ends neither in .weight nor in .bias. Its new name is position_ids."),
    *_each("the norm of the embeddings",
        "A norm's weight is its gain and its bias is its bias: norm.gain and norm.bias.",
        "embeddings.LayerNorm.weight", "embeddings.LayerNorm.bias"),
    *_each("the pooler", "The pooler stands outside the layers: pooler.W and pooler.b.",
        "pooler.dense.weight", "pooler.dense.bias"),
    example("layer 0", ("encoder.layer.0.attention.self.query.weight",),
        "Inside a layer the name begins with the layer's number and a dot: 0.W_q."),
    *_each_in_a_layer("queries, keys and values",
        "query, key and value become W_q, W_k and W_v, behind the number of their layer.",
        "attention.self.query.weight", "attention.self.key.weight", "attention.self.value.weight"),
    *_each_in_a_layer("biases", "A bias becomes b_q, b_k or b_v: look at the last part of the name.",
        "attention.self.query.bias", "attention.self.key.bias", "attention.self.value.bias"),
    *_each_in_a_layer("attention's output",
        "attention.output.dense becomes W_o and b_o. The letters output.dense also occur elsewhere.",
        "attention.output.dense.weight", "attention.output.dense.bias"),
    *_each_in_a_layer("the MLP, going in", "intermediate.dense is the first matrix of the MLP: W1 and b1.",
        "intermediate.dense.weight", "intermediate.dense.bias"),
    *_each_in_a_layer("the MLP, coming out",
        "output.dense without attention before it is the second matrix of the MLP: W2 and b2.",
        "output.dense.weight", "output.dense.bias"),
    *_each_in_a_layer("the norms",
        "The norm after attention is norm1, the one after the MLP is norm2, each with a gain and a bias.",
        "attention.output.LayerNorm.weight", "attention.output.LayerNorm.bias",
        "output.LayerNorm.weight", "output.LayerNorm.bias"),
    *_each_in_a_layer("a layer of two digits",
        "Larger models have more than ten layers. Take the whole number: split the name at its dots.",
        "attention.self.key.weight", "attention.output.dense.bias", "intermediate.dense.weight",
        "output.dense.weight", "output.LayerNorm.bias", layers=(10, 99)),
), misconceptions=(
    ("output-dense-anywhere", "The name attention.output.dense contains output.dense, so a test for "
        "those letters finds both. You give W_o the name of W2. Ask for the longer name first, or "
        "compare whole names.", _misread(r"\.attention\.output\.dense", ".output.dense")),
    ("output-norm-anywhere", "The name attention.output.LayerNorm contains output.LayerNorm, so a test for those "
        "letters finds both norms. Ask for the longer name first, or compare whole names.",
        _misread(r"\.attention\.output\.LayerNorm", ".output.LayerNorm")),
    ("outputs-anywhere", "Every name with attention.output contains .output as well, so W_o becomes W2 and norm1 "
        "becomes norm2. Ask for the longer names first.", _misread(r"\.attention\.output\.", ".output.")),
    ("attention-output-for-all", "You take every output for attention's: the MLP has one too, W2, b2 and norm2. "
        "Does the word attention stand before it?", _misread(r"(\d)\.output\.", r"\1.attention.output.")),
    ("first-digit", "You take one character as the number of the layer, and layer 11 has two. Split the "
        "name at its dots.", _altered(r"^(\d)\d+", r"\1")),
    ("last-digit", "You take the last digit of the layer's number only. Split the name at its dots.",
        _altered(r"^\d+(\d)\.", r"\1.")),
    ("layers-from-1", "You count layers from 1. They keep the number that they have in the checkpoint: "
        "the first is 0.", _altered(r"^\d+", lambda found: str(int(found[0]) + 1))),
    ("no-layer", "The number of the layer is missing, so the same name stands for many tensors. Put it "
        "in front: 0.W_q.", _altered(r"^\d+\.", "")),
    ("layer-in-words", "Your names say layer0 or layer.0. The number alone stands in front: 0.W_q.",
        _altered(r"^(\d)", r"layer\1")),
    ("layer-dot", "Your names begin with layer. The number alone does: 0.W_q.", _altered(r"^(\d)", r"layer.\1")),
    ("underscore-after-layer", "A dot stands behind the layer's number: 0.W_q.", _altered(r"^(\d+)\.", r"\1_")),
    ("norm-weight", "A norm has a gain and a bias here. In the checkpoint its gain is called weight; "
        "rename it.", _altered("gain", "weight")),
    ("norm-bias-b", "A norm's bias keeps its name, bias. Only those of linear layers become b.",
        _altered(r"norm(\d?)\.bias", r"norm\1.b")),
    ("bias-as-weight", "Weight and bias of a linear layer get the same name. Look at the last part: W "
        "for .weight, b for .bias.", _altered(r"b(_[qkvo]|[12]|$)", r"W\1")),
    ("bias-weight-swapped", "Weight and bias have changed places in the layers: .weight is a W or a gain, .bias "
        "a b or a bias.",
        _misread(r"(?<=\d)(\..*)\.(weight|bias)$", lambda of: of[1] + (".bias" if of[2] == "weight" else ".weight"))),
    ("norms-swapped", "The norms are exchanged: norm1 is attention's, norm2 the MLP's.", _swapped("norm1", "norm2")),
    ("mlp-swapped", "W1 and W2 have changed places. intermediate.dense comes first: 384 numbers go in "
        "and 1,536 come out.", _altered(r"([Wb])([12])$", lambda found: found[1] + str(3 - int(found[2])))),
    ("query-key-swapped", "Queries and keys have changed places. Every shape fits, so no error will tell "
        "you. W_q is query.", _swapped("_q", "_k")),
    ("underscore-in-mlp", "The MLP's are W1 and W2, without an underscore.", _altered(r"([Wb])([12])$", r"\1_\2")),
    ("norm-0", "The norm of the embeddings is called norm, without a number.", _altered(r"^norm\.", "norm0.")),
    ("suffix-kept", "The ending .weight of the embeddings has to go: word, position, token_type.",
        lambda name: map_weight_name(name) + (".weight" if "_embeddings" in name else "")),
    ("unchanged", "The name comes back as it went in. Return the new one from the tables.", lambda name: name),
), contracts=(
    Contract("a name that is in neither table, such as encoder.layer.0.attention.self.gate.weight",
        lambda rng: ("encoder.layer.0.attention.self.gate.weight",)),
    Contract("a name with another ending, such as encoder.layer.0.attention.self.query.scale",
        lambda rng: ("encoder.layer.0.attention.self.query.scale",)),
    Contract("a name with another beginning, such as decoder.block.3.attention.self.query.weight",
        lambda rng: ("decoder.block.3.attention.self.query.weight",)),
    Contract("a layer without a number, such as encoder.layer.x.attention.self.query.weight",
        lambda rng: ("encoder.layer.x.attention.self.query.weight",)),
), nudges=(
    ("^ValueError", "This name is in one of the two tables; refuse only what is in neither."),
    ("KeyError", "Your dictionary has no entry of this name. Compare it letter by letter with the tables: is "
        "there still something in front of it or behind it, such as encoder.layer., a dot, the layer's number (it "
        "may have two digits) or .weight? Or is a row of the tables not in your dictionary?"),
))


# ---------------------------------------------------------------- mean_pool


@inputs
def _padded(rng, lengths, d, whole=False, scale=1.0):
    """Vectors (B, T, d) with padding at the end that is not 0, and a mask of True and False, or of 1 and
    0."""
    T = max(lengths) + (0 if whole else int(rng.integers(1, 3)))
    hidden = torch.tensor(rng.normal(2.0, scale, size=(len(lengths), T, d)))
    return hidden, torch.arange(T) < torch.tensor(lengths)[:, None]


@inputs
def _of_numbers(rng, make):
    """The same with a mask of 1 and 0, as tokenizers give it."""
    hidden, mask = make(rng)
    return hidden, mask.long()


def _padding_in_front(rng):
    hidden, mask = _padded((2, 4), 3)(rng)
    return hidden, mask.flip(1)


def _with_zeros(rng):
    hidden, mask = _padded((4, 3), 3)(rng)
    return (hidden - 2).relu(), mask


def _keep(mask):
    return (mask != 0).double()[..., None]  # (B, T, 1)


def _without_ends(hidden, mask):
    """[CLS] and [SEP], the first and the last token, are left out too."""
    keep = mask != 0
    order = keep.long().cumsum(1)
    keep = keep & (order > 1) & (order < order[:, -1:])
    return (hidden * keep[..., None]).sum(1) / keep.sum(1)[:, None]


MEAN_POOL = Exercise(mean_pool, probes=(
    Probe("one token", _padded((1,), 3, whole=True),
        "One text of one token, without padding: its mean is the token itself, shape (1, d)."),
    Probe("no padding", _padded((3,), 2, whole=True), "No padding: the result is the plain mean over dim=1.", ),
    Probe("two texts of one length", _padded((4, 4), 3, whole=True),
        "Two texts, no padding: each has a mean of its own. The result has shape (B, d)."),
    Probe("one token and padding", _padded((1,), 5),
        "One token, then padding: the mean is the first vector, whatever stands at the padding."),
    Probe("a mask of ones and zeros", _of_numbers(_padded((3, 1), 6)),
        "The mask holds 1 and 0 here, as tokenizers give it, and not True and False. Both have to work."),
    Probe("padding in front", _padding_in_front,
        "The padding stands in front here. Go by the mask, not by the number of tokens."),
    Probe("tokens with zeros", _with_zeros,
        "Some numbers of the tokens are 0 here, and count like all others. Only the mask says what is padding."),
    larger(_padded((10, 1, 9, 4, 7, 3, 2, 8, 5), 13)),
), misconceptions=(
    ("padding-counted", "You average all positions, padding too, so the vector of a text depends on how "
        "long its neighbours in the batch are. Use the mask.", lambda hidden, mask: hidden.mean(dim=1)),
    ("divided-by-T", "The padding adds nothing to your sum, but you divide by T. Divide by the number of tokens "
        "of each text: the sum of its mask.", lambda hidden, mask: (hidden * _keep(mask)).mean(dim=1)),
    ("summed", "You sum the tokens and do not divide. Divide by the number of tokens of each text.",
        lambda hidden, mask: (hidden * _keep(mask)).sum(dim=1)),
    ("first-token", "You take the first vector, that of [CLS]. Some models are trained for that; this "
        "one is trained for the mean.", lambda hidden, mask: hidden[:, 0]),
    ("last-position", "You take the vector at the last position. The mean is taken over all tokens.",
        lambda hidden, mask: hidden[:, -1]),
    ("mask-inverted", "You average the padding and leave out the tokens. True means: this is a token.",
        lambda hidden, mask: (hidden * (1 - _keep(mask))).sum(dim=1) / (1 - _keep(mask)).sum(dim=1)),
    ("inverted-by-tilde", "You average the padding: ~ turns the mask round, and makes -2 of a 1. True means: this is a "
        "token.", lambda hidden, mask: (hidden * ~mask[..., None]).sum(dim=1) / (~mask).sum(dim=1)[:, None]),
    ("zeros-not-counted", "You count the numbers that are not 0. A token may hold a 0, which counts too: divide by the "
        "sum of each text's mask.",
        lambda hidden, mask: (hidden * _keep(mask)).sum(dim=1) / (hidden * _keep(mask) != 0).sum(dim=1)),
    ("over-texts", "You average over the texts (dim=0). The tokens are axis 1; the result has one row for each "
        "text.", lambda hidden, mask: (hidden * _keep(mask)).sum(dim=0) / _keep(mask).sum(dim=0)),
    ("over-numbers", "You average over the d numbers of each token (dim=-1). Average over the tokens, "
        "dim=1.", lambda hidden, mask: (hidden * _keep(mask)).mean(dim=-1)),
    ("one-mean-for-all", "All texts of the batch go into one mean. Each text has its own: sum over dim=1 "
        "only.", lambda hidden, mask: (hidden * _keep(mask)).sum(dim=(0, 1)) / _keep(mask).sum()),
    ("all-texts-in-one-list", "hidden[mask] puts the tokens of all texts into one list, (tokens, d), and "
        "nothing says any more which text a token came from. Keep (B, T, d): multiply by the mask as "
        "(B, T, 1), then sum over dim=1.", lambda hidden, mask: hidden[mask].mean(dim=0)),
    ("axis-kept", "The values are right, in the shape (B, 1, d). Sum without keepdim=True on the tokens.",
        lambda hidden, mask: (hidden * _keep(mask)).sum(dim=1, keepdim=True)
            / _keep(mask).sum(dim=1, keepdim=True)),
    ("divided-by-all-tokens", "You divide by the number of tokens in the whole batch. Each text is divided by its "
        "own: mask.sum(dim=1).", lambda hidden, mask: (hidden * _keep(mask)).sum(dim=1) / _keep(mask).sum()),
    ("maximum", "You take the largest number of each column. That is max pooling; take the mean.",
        lambda hidden, mask: hidden.masked_fill(_keep(mask) == 0, -torch.inf).amax(dim=1)),
    ("unit-length", "You bring the mean to length 1 as well. That helps a search, but it is not asked for: return "
        "the mean itself.", lambda hidden, mask: F.normalize(mean_pool(hidden, mask), dim=-1)),
    ("root-of-count", "You divide by the root of the number of tokens. Divide by the number itself.",
        lambda hidden, mask: (hidden * _keep(mask)).sum(dim=1) / _keep(mask).sum(dim=1).sqrt()),
    ("special-tokens-left-out", "You leave out the first and the last token. [CLS] and [SEP] belong to "
        "the text that the model was trained to average: only padding is left out.", _without_ends),
    ("minus-infinity", "You put -inf at the padding. That is for a softmax. In a mean, a position that must not "
        "count adds 0.", lambda hidden, mask: hidden.masked_fill(_keep(mask) == 0, -torch.inf).mean(dim=1)),
    ("indexed-by-numbers", "A mask of 1 and 0 picks the rows number 1 and 0 when it is used as an index. "
        "Turn it into True and False first: mask.bool().",
        lambda hidden, mask: torch.stack([h[m].mean(dim=0) for h, m in zip(hidden, mask, strict=True)])),
    ("not-of-numbers",
        "~ turns True into False, but 1 into -2. Turn a mask of numbers into True and False first: "
        "mask.bool().", lambda hidden, mask: hidden.masked_fill((~mask).bool()[..., None], 0.0).sum(dim=1)
            / mask.sum(dim=1)[:, None]),
), contracts=(
    Contract("a text without any token", lambda rng: (torch.ones(2, 3, 4), torch.tensor([[1, 1, 0], [0, 0, 0]]))),
), nudges=(
    ("^ValueError", "Padding is no mistake. Refuse only a text without any token: a row of the mask that is 0 throughout."),
    ("must match the size .* dimension 1", "The sums are (B, d), and each row is divided by the count of its own "
        "text: make the divisor (B, 1), with keepdim=True or [:, None]."),
    ("must match the size .* dimension 2", "The mask is (B, T), and one number of it belongs to a whole vector of "
        "d numbers: make it (B, T, 1), with [..., None]."),
    ("to be a boolean tensor|boolean masks|BoolTensor for mask", "The mask holds 1 and 0 here, as tokenizers give "
        "it. mask.bool() makes True and False of them."),
))


# ---------------------------------------------------------------- semantic_search


@inputs
def _rows(rng, n, d, k, spread=1.0):
    """A query, n rows that are 1/spread to spread times as long as they fall, and k."""
    lengths = torch.tensor(rng.permutation(np.geomspace(1 / spread, spread, n)))[:, None]
    return torch.tensor(rng.normal(size=d)), torch.tensor(rng.normal(size=(n, d))) * lengths, k


def _cosine(query, corpus):
    return F.normalize(corpus, dim=-1) @ F.normalize(query, dim=-1)


def _ranked(score):
    """The rows with the largest ``score(query, corpus)``, the largest first."""
    return lambda query, corpus, k: score(query, corpus).argsort(descending=True, stable=True)[:k]


def _opposite(rng):
    """The row that points away from the query is nearest of all in absolute value."""
    query = torch.tensor(rng.normal(size=4))
    corpus = torch.stack([query + torch.tensor(rng.normal(size=4)) * s for s in (0.8, 1.2, 1.6)]
                         + [-3 * query])
    return query, corpus[torch.tensor(rng.permutation(4))], int(rng.integers(2, 4))


SEMANTIC_SEARCH = Exercise(semantic_search, probes=(
    Probe("one row", _rows(1, 3, 1), "One row and k = 1: its number is 0, and the result has shape (1,)."),
    Probe("the best of two", _rows(2, 2, 1),
        "Of two rows, take the one with the larger cosine to the query: its row number, shape (1,)."),
    Probe("all of four", _rows(4, 3, 4), "All four rows, in order: the largest cosine first."),
    Probe("an opposite row", _opposite, "One row points away from the query: its cosine is -1, the smallest.", ),
    larger(_rows(11, 10, 9, 5.0)),
), misconceptions=(
    ("dot-product", "You rank by the dot product, so long rows win. Divide by the length of each row.",
        _ranked(lambda query, corpus: corpus @ query)),
    ("euclidean", "You rank by the distance between the ends of the vectors. The cosine compares directions: bring "
        "the rows and the query to length 1 first.", _ranked(lambda query, corpus: -(corpus - query).norm(dim=-1))),
    ("worst-first", "Your rows come in rising order, so the worst are first. The largest cosine comes "
        "first.", _ranked(lambda query, corpus: -_cosine(query, corpus))),
    ("best-last", "You have the right rows, with the best one last. Turn the order round.",
        lambda query, corpus, k: semantic_search(query, corpus, k).flip(0)),
    ("in-order-of-rows", "You have the right rows, in the order of the corpus. The best comes first.",
        lambda query, corpus, k: semantic_search(query, corpus, k).sort().values),
    ("scores", "You return the cosines. Return the row numbers.",
        lambda query, corpus, k: _cosine(query, corpus).sort(descending=True).values[:k]),
    ("cosines-of-all-rows", "These are the cosines of all rows, in the order of the corpus. A search asks which are "
        "best: sort, largest first, and return k row numbers.", lambda query, corpus, k: _cosine(query, corpus)),
    ("cosines-of-the-first-rows", "You return the cosines of the first k rows, and none is chosen yet. Sort all, "
        "largest first, and return the first k row numbers.", lambda query, corpus, k: _cosine(query, corpus)[:k]),
    ("values-and-indices", "topk and sort give back two things, the values and the row numbers. Return "
        "the row numbers: .indices.", lambda query, corpus, k: tuple(_cosine(query, corpus).topk(k))),
    ("all-rows", "You return all rows. Only the first k are asked for.",
        lambda query, corpus, k: semantic_search(query, corpus, len(corpus))),
    ("kth-only", "You return only row number k of the order. All of the first k are asked for.",
        lambda query, corpus, k: semantic_search(query, corpus, k)[k - 1]),
    ("best-skipped", "You leave out the best row, as one does when a word looks for its own neighbours. Here the "
        "query is not in the corpus.", lambda query, corpus, k: _ranked(_cosine)(query, corpus, k + 1)[1:]),
    ("columns-normalised", "You bring the columns of the corpus to length 1 (dim=0). Each row is a "
        "vector: dim=-1.", _ranked(lambda query, corpus: F.normalize(corpus, dim=0) @ query)),
    ("absolute", "You rank by the size of the cosine without its sign, so a row that points away from "
        "the query comes out on top.", _ranked(lambda query, corpus: _cosine(query, corpus).abs())),
    ("ranks", "You return the place of each row in the order. Return row numbers in that order: one argsort does.",
        lambda query, corpus, k: _cosine(query, corpus).argsort(descending=True, stable=True).argsort()[:k]),
    ("rows-themselves", "You return the vectors of the best rows. Return their numbers.",
        lambda query, corpus, k: corpus[semantic_search(query, corpus, k)]),
    ("length-multiplied", "You multiply the dot product by the length of the row. A cosine divides by it.",
        _ranked(lambda query, corpus: corpus @ query * corpus.norm(dim=-1))),
    ("square-of-length", "You divide by the square of the length. A cosine divides by the length, the root of the "
        "sum of squares.", _ranked(lambda query, corpus: corpus @ query / corpus.square().sum(dim=-1))),
), contracts=(
    Contract("k larger than the number of rows", lambda rng: (torch.ones(3), torch.eye(3), 4)),
    Contract("k below 1", lambda rng: (torch.ones(3), torch.eye(3), 0)),
), nudges=(
    ("^ValueError(?!: step must)", "k may be 1, and it may be the number of rows: refuse what lies outside of these only."),
))

EXERCISES = (MAP_WEIGHT_NAME, MEAN_POOL, SEMANTIC_SEARCH)
