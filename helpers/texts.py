"""Real text: a letter (lesson 14), the addresses of ``data/addresses.txt.xz``, one text in six languages, or a learner's own
file (lesson 15)."""

import functools
import lzma
import os
from pathlib import Path

from helpers.words import NotUsable, shown, text_in

DECLARATION_FILE = Path(__file__).resolve().parent.parent / "data" / "declaration.tsv"
ADDRESSES_FILE = Path(__file__).resolve().parent.parent / "data" / "addresses.txt.xz"
LETTER = """Dear Ben, thank you for your letter, and for the photographs of the garden. We
have made up our minds at last: we are coming to see you in May. My sister wanted to fly, but I
get ill in every aeroplane, and she has promised to carry the large suitcase if I let her have the
window. So we shall be with you on the first Saturday of the month, late in the afternoon. Our
train leaves at ten past nine from platform four, and we change only once, in Basel, where we have
forty minutes for a coffee. Please do not cook anything. Anna will bring a cake, and I shall bring
the cheese that you liked so much the last time, although the whole carriage will hate us for it.
Is the old dog still alive? I have bought him a ball. Let us go up to the lake on Sunday if the
weather is fine, and if it rains, you can show me how to play that card game again, which I have
forgotten. With love to all of you, your Emma"""  # which lesson 14 asks a chat model about


@functools.lru_cache(maxsize=1)
def addresses():
    """The yearly addresses of the presidents of the United States from 1790 to 1950: ``{"1790 Washington": text, ...}``.

    A second address of the same president in a year has "(2)" after its name. See data/README.md.
    """
    by_name = {}
    for address in lzma.decompress(ADDRESSES_FILE.read_bytes()).decode("utf-8").split("\f")[1:]:
        name, _, text = address.partition("\n")
        by_name[name if name not in by_name else f"{name} (2)"] = text
    return by_name


def declaration():
    """Articles 1, 3, 4, 5, 6 and 9 of the Universal Declaration of Human Rights: ``{language: [article, ...]}``."""
    articles = {}
    for row in DECLARATION_FILE.read_text(encoding="utf-8").splitlines():
        language, _, article = row.split("\t")
        articles.setdefault(language, []).append(article)
    return articles


def read_text(path, least=20_000):
    """The text of a file. Raises NotUsable when there is none, or it has fewer than ``least`` bytes."""
    path = path if isinstance(path, Path) else text_in(path, like="my_text.txt")
    path = Path(os.path.expanduser(path))  # ~ is the home folder; where there is none, it stays
    name = shown(str(path))
    try:
        contents = path.read_bytes()
        text = contents.decode("utf-8-sig").replace("\r\n", "\n")
    except OSError as error:
        raise NotUsable(f"The file {name} cannot be read ({error.strerror}): give the path of a text file.") from None
    except UnicodeDecodeError:
        raise NotUsable(f"The file {name} is not text in UTF-8: save it as plain text first.") from None
    if "\0" in text:
        raise NotUsable(f"The file {name} is not text, as it holds bytes of value 0: save it as plain text first.")
    if len(contents) < least:
        raise NotUsable(f"The file {name} has {len(contents):,} byte{'s' * (len(contents) != 1)}, and {least:,} are needed: "
                        "give it more text.")
    return text
