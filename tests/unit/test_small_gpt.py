"""The small GPT of the explainer: what it reads, how it is stored, and that it predicts as well as its file says."""

import gzip
import json
import re

import pytest
import torch
from safetensors import safe_open

from helpers.transformer import Config, LanguageModel
from scripts import small_gpt


@pytest.fixture(scope="module")
def gpt():
    return small_gpt.load()


def test_it_reads_small_letters_with_one_blank_before_each_word(gpt):
    model, tokenizer = gpt
    assert small_gpt.reading("  The\n\tUnited  States ") == " the united states" and small_gpt.reading(" \n") == ""
    assert small_gpt.encode("", tokenizer) == [small_gpt.BOS]
    ids = small_gpt.encode("The UNITED states", tokenizer)
    assert [tokenizer.text_of(i) for i in ids[1:]] == [" the", " united", " states"]
    assert b"".join(map(tokenizer.bytes_of, small_gpt.encode("我們 Ünder", tokenizer))).decode() == " 我們 ünder"
    assert model.config.vocabulary == small_gpt.BOS + 1


def test_what_the_page_says_of_its_texts_is_so():
    learned, later = small_gpt.corpora()
    assert not {"cat", "cats", "girlfriend", "girlfriends", "television", "televisions"} & set(re.findall(r"\w+", learned))
    assert round(8 * len(gzip.compress(later.encode(), 9)) / len(later.encode()), 1) == 2.4, "gzip's bits a byte"


def test_it_predicts_later_addresses_as_well_as_its_file_says(gpt):
    model, tokenizer = gpt
    with safe_open(small_gpt.FILE, "pt") as file:
        about = json.loads(file.metadata()["about"])
    later = small_gpt.corpora()[1]
    ids = torch.tensor(tokenizer.encode(later))
    bits = small_gpt.held_out_bits(model, ids, len(later.encode()))
    assert bits == pytest.approx(about["bits"][1], abs=5e-4) and bits < 1.7
    assert abs(about["bits"][1] - about["bits"][0]) < 0.01, "what 8 bits cost"
    empty = LanguageModel(Config(small_gpt.BOS + 1, **about["settings"]))
    assert small_gpt.held_out_bits(empty, ids[:950], len(b"".join(map(tokenizer.bytes_of, ids[:950].tolist())))) > 2.5
