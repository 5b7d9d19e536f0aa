"""The numbers that a lesson's prose states, each beside the expression that gives it: the last cell of every lesson.

    numbers.agree({"0.51, queen": similarity("queen"), "34 %": share, "1,350 patches": patches.size})

A test refuses a number in the prose that is neither here nor in the code or outputs of its section: none goes stale.
"""

import re

NUMBER = re.compile(r"([-−]?\d[\d,]*(?:\.(\d+))?)( ?%)?")


def differences(stated):
    """One sentence for each number that comes out otherwise than it is written. ``stated``: as for `agree`."""
    sentences = []
    for words, value in stated.items():
        number = NUMBER.match(words)
        if not number:
            raise ValueError(f"{words!r} does not begin with a number: write it as the text does, such as '34 %' or '0.51'.")
        written = float(number[1].replace(",", "").replace("−", "-"))
        decimals = len(number[2] or "")
        computed = float(value) * (100 if number[3] else 1)
        if not abs(computed - written) <= 0.5 * 10**-decimals + 1e-9:
            sentences.append(f"The text says {words}, and here it is {computed:.{decimals + 1}f}.")
    return sentences


def agree(stated):
    """Say whether the numbers of a text are those that were computed, to the digits that the text writes.

    ``stated``: {a number as the text writes it, with words that tell which if need be: its value}; of "34 %" the value is
    the share, 0.34. Raises ValueError where words do not begin with a number.
    """
    print("\n".join(differences(stated)) or f"All {len(stated)} numbers of the text come out as it says.")
