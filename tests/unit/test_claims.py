"""The register of claims: its entries are whole, and each tells its reader all."""

import json

import pytest

from helpers.page import claims

ENTRY = {name: f"some {name}" for name in claims.FIELDS} | {"id": "C01", "lesson": "01", "verdict": "holds"}


@pytest.fixture
def register(tmp_path, monkeypatch):
    """Write the register, a text or a list of entries."""
    monkeypatch.setattr(claims, "REGISTER", tmp_path / "claims.json")
    return lambda entries: claims.REGISTER.write_text(entries if isinstance(entries, str) else json.dumps(entries))


@pytest.mark.parametrize("field", claims.FIELDS)
def test_no_field_may_be_empty(register, field):
    register([ENTRY | {field: " "}])
    with pytest.raises(ValueError, match=f"no {field}|none|begins with"):
        claims.register()


def test_a_verdict_is_one_of_five(register):
    register([ENTRY | {"verdict": "probably"}])
    with pytest.raises(ValueError, match="'probably'"):
        claims.register()


@pytest.mark.parametrize("text", ["", "{", "[1]", '[{"no": 1}]'])
def test_a_register_that_cannot_be_read_says_so(register, text):
    register(text)
    with pytest.raises(ValueError, match="make experiments"):
        claims.register()


def test_every_entry_tells_its_reader_all():
    entries = [entry for entry in claims.register().values() if "withdrawn" not in entry]
    assert [e["id"] for e in entries if set(claims.FOR_READERS) - e.keys()] == []
    assert [e["id"] for e in entries if e["source"].startswith(("most ", "a common ", "every ", "introductions"))] == []
