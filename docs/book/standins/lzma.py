"""For browsers, which lack lzma: scripts/edition.py packs with bz2 there what is packed with xz elsewhere."""

from bz2 import decompress

__all__ = ["decompress"]
