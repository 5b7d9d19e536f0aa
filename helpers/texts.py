"""Real text to train on: the addresses of ``data/addresses.txt.xz``, or a file of the learner's own (lesson 15)."""

import functools
import lzma
from pathlib import Path

ADDRESSES_FILE = Path(__file__).resolve().parent.parent / "data" / "addresses.txt.xz"


@functools.lru_cache(maxsize=1)
def addresses():
    """The yearly addresses of the presidents of the United States from 1790 to 1950: ``{"1790 Washington": text, ...}``.

    A second address of the same president in a year has "(2)" after its name. See data/README.md.
    """
    found = {}
    for address in lzma.decompress(ADDRESSES_FILE.read_bytes()).decode("utf-8").split("\f")[1:]:
        name, _, text = address.partition("\n")
        found[name if name not in found else f"{name} (2)"] = text
    return found


def read_text(path, least=20_000):
    """The text of a file, to train on. Raises ValueError, in one sentence, when there is none or it is too short."""
    path = Path(path)
    try:
        contents = path.read_bytes()
        text = contents.decode("utf-8-sig").replace("\r\n", "\n")
    except OSError as error:
        raise ValueError(f"The file {path} cannot be read ({error.strerror}); give the path of a text file.") from None
    except UnicodeDecodeError:
        raise ValueError(f"The file {path.name} is not text in UTF-8; save it as plain text first.") from None
    if "\0" in text:
        raise ValueError(f"The file {path.name} is not text: it holds bytes of value 0; save it as plain text first.")
    if len(contents) < least:
        raise ValueError(f"The file {path.name} has {len(contents):,} bytes, and a model needs {least:,} to learn from.")
    return text
