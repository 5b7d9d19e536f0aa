"""A reader's own words: how every lesson takes them, and the one sentence where they cannot be used."""

import os
import re
import traceback
import unicodedata
from pathlib import Path

WORD = re.compile(r"\w+(?:['-]\w+)*")  # don't and well-known are one word each


class NotUsable(ValueError):
    """What a reader gave cannot be used; the message says in one sentence what was expected, what came and what to do."""

    def _render_traceback_(self):
        """What a notebook shows when nobody catches it: the sentence alone."""
        return [str(self)]


class Unknown(KeyError):
    """A name that is not known. Unlike a plain KeyError, its message is shown without quotation marks."""

    def __str__(self):
        return str(self.args[0])

    def _render_traceback_(self):
        """What a notebook shows when nobody catches it: the sentence, and no frames of the course's code."""
        return [str(self)]


def listed(names, joint="and"):
    """Names as a sentence has them: "a, b and c"."""
    names = [str(name) for name in names]
    return f" {joint} ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def shown(value, most=60):
    """A value as a sentence quotes it: at most ``most`` characters, no line breaks."""
    text = " ".join(repr(value).split())
    return text if len(text) <= most else f"{text[:most]} …"


def words_in(text, known=None, least=1, most=None, like="the cat sat"):
    """The words of a text in small letters, without what is around them: "(Dates!)" is dates.

    ``text``: a string, or a list of strings. ``known``: what holds the words that can be used; the others are left out, and
    a printed sentence names them. ``like``: an example for whoever gave something else.
    Raises NotUsable for what is no text, and for fewer than ``least`` or more than ``most`` words that can be used.
    """
    example = f'write it as in "{like}"'
    if not isinstance(text, str):
        if not isinstance(text, (list, tuple)) or not all(isinstance(part, str) for part in text):
            raise NotUsable(f"A text in quotation marks is expected here, and {shown(text)} came: {example}.")
        text = " ".join(text)
    plain = unicodedata.normalize("NFC", text).replace("’", "'").lower()
    stop = r"|\." if known is not None and "." in known else ""  # in some languages the full stop is a word
    words = re.findall(WORD.pattern + stop, plain)
    cut = []
    if known is not None:  # a compound that is not known may be two words that are; "won't" is not "won"
        cut = [word for word in dict.fromkeys(words) if word not in known and word.removesuffix("'s") in known]
        words = [part for word in words for part in ([word] if word in known else word.removesuffix("'s").split("-"))]
    usable = [word for word in words if known is None or word in known]
    symbols = [sign for sign in WORD.sub(" ", plain) if unicodedata.category(sign)[0] in "SC" and not sign.isspace()]
    missing = list(dict.fromkeys([word for word in words if word not in set(usable)] + symbols))
    if len(usable) < least:
        number = f"only {len(usable)}" if usable else "none"
        came = f"{shown(text)} has {number}" if text.strip() else "the text is empty"
        if usable and missing:
            came += f" ({', '.join(missing[:8])}: not known)"
        needed = "at least one word" if least == 1 else f"at least {least} words"
        example = f'try other words, as in "{like}"' if missing else example
        raise NotUsable(f"This needs {needed}{' that it knows' if known is not None else ''}, and {came}: {example}.")
    if most is not None and len(usable) > most:
        raise NotUsable(f"This takes at most {most} word{'s' * (most > 1)}, and {shown(text)} has {len(usable)}: "
                        f"shorten it, or {example}.")
    if cut:
        print(f"Read without 's, which is not known here: {', '.join(cut[:8])}.")
    if missing:
        rest = f" and {len(missing) - 8} more" if len(missing) > 8 else ""
        reason = "it is" if len(missing) == 1 else "they are"
        print(f"Left out, because {reason} not known here: {', '.join(missing[:8])}{rest}.")
    return usable


def text_in(text, length=len, most=None, unit="tokens", like="the cat sat"):
    """A whole text as it was given, for what reads every sign of it.

    ``length(text)``: how many of a ``unit`` it has, of which ``most`` can be read.
    Raises NotUsable for what is no text, for an empty one, for half a character, and for one that is too long.
    """
    if not isinstance(text, str) or not text.strip():
        came = "the text is empty" if isinstance(text, str) else f"{shown(text)} came"
        raise NotUsable(f'A text in quotation marks is expected here, and {came}: write it as in "{like}".')
    if any("\ud800" <= sign <= "\udfff" for sign in text):
        raise NotUsable(f"{shown(text)} has half a character in it, which nothing can read: type it again.")
    if most is not None and length(text) > most:
        raise NotUsable(f"At most {most:,} {unit} can be read here, and {shown(text)} has {length(text):,}: shorten it.")
    return text


def texts_in(texts, like="the cat sat", **options):
    """A list of whole texts, each as `text_in` takes it; blank ones are no texts.

    Raises NotUsable for what is no list of texts, and for an empty one.
    """
    if not isinstance(texts, (list, tuple)):
        raise NotUsable(f'A list of texts is expected here, and {shown(texts)} came: write it as in ["{like}"].')
    usable = [text_in(text, like=like, **options) for text in texts if not isinstance(text, str) or text.strip()]
    if not usable:
        came = "every text of the list is empty" if texts else "the list has none"
        raise NotUsable(f'This needs at least one text, and {came}: write it as in ["{like}"].')
    return usable


def pairs_in(pairs, like=("Who wrote Faust?", "Goethe")):
    """A dict from text to text as it was given. Raises NotUsable for anything else, and for none."""
    if not isinstance(pairs, dict) or not all(
            isinstance(part, str) and part.strip() for pair in pairs.items() for part in pair) or not pairs:
        raise NotUsable(f"Pairs of texts in quotation marks are expected here, and {shown(pairs)} came: "
                        f"write them as in {{{like[0]!r}: {like[1]!r}}}.")
    return pairs


def number_in(value, least, most, what, whole=True):
    """A reader's number from ``least`` to ``most``. ``what``: its name. Raises NotUsable for any other value."""
    if isinstance(value, bool) or not isinstance(value, (int,) if whole else (int, float)) or not least <= value <= most:
        raise NotUsable(f"{what} is a {'whole ' * whole}number from {least:,} to {most:,} here, and {shown(value)} came: "
                        "write such a number.")
    return value


def guesses_in(guesses, known):
    """A reader's guesses, {beginning: one word}, each as a word of ``known``, "" for none; a full stop may stand alone.

    Raises NotUsable for what is no such dict, for an empty one, and for more than one word.
    """
    if not isinstance(guesses, dict) or not guesses:
        raise NotUsable(f'A word for each beginning is expected, as in {{"he waits": "."}}, and {shown(guesses)} came.')
    single = {}
    for text, guess in guesses.items():
        words = words_in(guess, known=known, least=0, like="the")
        words = [word for word in words if word != "."] or words[:1]
        if len(words) > 1:
            raise NotUsable(f"One word is expected for each beginning, and {shown(guess)} came.")
        single[text] = words[0] if words else ""
    return single


def answer_of(function, *arguments):
    """What a reader's function returns. Raises NotUsable for what is no function, and where it stops, with the line."""
    if not callable(function):
        raise NotUsable(f"A function is expected here, and {shown(function)} came: write one with def.")
    try:
        return function(*arguments)
    except NotUsable:
        raise
    except Exception as error:
        lines = [frame.line for frame in traceback.extract_tb(error.__traceback__)[1:2] if frame.line]
        where = f" at {shown(lines[0])}" if lines else ""
        raise NotUsable(f"{_name(function)} stopped{where} with {type(error).__name__}, {shown(str(error))}: "
                        "mend it and run the cell again.") from None


def _name(function):
    """What a message calls a function."""
    name = getattr(function, "__name__", shown(function))
    return "The function" if name == "<lambda>" else name


def rows_of(function, X):
    """What a reader's function makes of a copy of X, (T, d): an array of numbers with T rows, NaN for what is infinite.

    Raises NotUsable where it stops, or where anything else comes.
    """
    import numpy as np

    rows = answer_of(function, X.copy())  # a copy, because a function may change what it gets
    numbers = _numbers(rows)
    if numbers.shape[:1] != (len(X),):
        several = isinstance(rows, tuple) and rows and _numbers(rows[0]).shape[:1] == (len(X),)
        came, do = (f"{len(rows)} things", "return the first alone") if several else (
            shown(rows), "return a row of numbers for each row of X")
        raise NotUsable(f"{_name(function)} has to return {len(X)} outputs, one for each place, and {came} came: {do}.")
    return np.where(np.isinf(numbers), np.nan, numbers)


def _numbers(value):
    """A value as a new NumPy array of numbers; a single nan where it is none."""
    import numpy as np

    try:
        return np.array(value, dtype=float)
    except (TypeError, ValueError, RuntimeError):
        return np.array(np.nan)


def array_in(value, shape, what):
    """A reader's value as a NumPy array of finite numbers, of this shape.

    ``what``: its name. Raises NotUsable for any other.
    """
    import numpy as np

    array = _numbers(value)
    if array.shape != tuple(shape) or not np.isfinite(array).all():
        came = f"numbers of shape {array.shape}" if array.ndim else shown(value)
        came += ", not all of them finite," if array.shape == tuple(shape) else ""
        raise NotUsable(f"{what} should be finite numbers of shape {tuple(shape)}, and {came} came: give such an array.")
    return array


def page_in(name, like="my_page.html"):
    """The `Path` of a page that is to be written. Raises NotUsable for a name that does not end in .html."""
    if not isinstance(name, (str, Path)) or Path(name).suffix != ".html":
        raise NotUsable(f"A page's name ends in .html, for example {like}; it is {shown(str(name))}.")
    return Path(os.path.expanduser(name))  # where there is no home, ~ stays
