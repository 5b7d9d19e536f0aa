"""For browsers, which lack the package regex: what the course needs of it, made of Python's own re."""

import functools
import itertools
import re
import sys
import unicodedata


@functools.cache
def _ranges(kind):
    r"""All characters of a kind, such as "L", letters, as they are written between the brackets of a pattern of re."""
    if kind == "s":  # re counts four control characters as blanks, and the package does not
        found = [n for n in range(sys.maxunicode + 1) if chr(n).isspace() and not 0x1c <= n <= 0x1f]
    else:
        found = [n for n in range(sys.maxunicode + 1) if unicodedata.category(chr(n)).startswith(kind)]
    runs = [[n for _, n in run] for _, run in itertools.groupby(enumerate(found), lambda pair: pair[1] - pair[0])]
    return "".join(f"\\U{run[0]:08x}-\\U{run[-1]:08x}" for run in runs)


@functools.cache
def _compiled(pattern):
    def written(found):
        inside = re.sub(r"\\p\{(\w)\}|\\(s)", lambda kind: _ranges(kind[1] or kind[2]), found[0])
        inside = re.sub(r"\\S", lambda _: f"[^{_ranges('s')}]", inside)
        return inside if found[0].startswith("[") or found[0] == r"\S" else f"[{inside}]"

    return re.compile(re.sub(r"\[[^\]]*\]|\\p\{\w\}|\\[sS]", written, pattern))


def findall(pattern, text):
    """As re.findall; ``pattern`` may have ``\\p{L}``, ``\\p{N}`` and the like."""
    return _compiled(pattern).findall(text)


def split(pattern, text):
    """As re.split; ``pattern`` may have ``\\p{L}``, ``\\p{N}`` and the like."""
    return _compiled(pattern).split(text)
