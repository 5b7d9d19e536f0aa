"""Read a GGUF file, in which llama.cpp and its relatives keep a model: its fields, and where its tensors are.

First ``GGUF``, the version, the number of tensors and of fields. Then the fields, each a name, a kind and a value; then of
each tensor its name, shape, kind and place; then, aligned, the numbers. Source: the specification of GGUF, version 3.
"""

import math
import os
import struct
from dataclasses import dataclass

NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}  # as struct has them
STRING, LIST = 8, 9
BLOCKS = {  # kind of numbers in a tensor -> (how many make a block, its bytes); a kind that is not here is not measured
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 10: (256, 84), 11: (256, 110),
    12: (256, 144), 13: (256, 176), 14: (256, 210), 24: (1, 1), 25: (1, 2), 26: (1, 4), 27: (1, 8), 28: (1, 8), 30: (1, 2)}


@dataclass(frozen=True)
class Gguf:
    """What a file says before its numbers begin."""

    path: object  #: the file
    fields: dict  #: name -> number, string, or list of them
    tensors: dict  #: name -> (shape, the last axis first; kind of number; where it begins in the file)


def read(path):
    """The fields and the index of the tensors of a GGUF file; none of its tensors is read.

    Raises ValueError, in one sentence, when it cannot be opened, is another kind of file, or is cut short.
    """
    try:
        with open(path, "rb") as file:
            if file.read(4) != b"GGUF" or _number(file, "I") != 3:
                raise ValueError(f"{path} is not a GGUF file of version 3; give the path of a model's .gguf file.")
            n_tensors, n_fields = _number(file, "Q"), _number(file, "Q")
            fields = {_string(file): _value(file, _number(file, "I")) for _ in range(n_fields)}
            index = {_string(file): (tuple(_number(file, "Q") for _ in range(_number(file, "I"))),
                                     _number(file, "I"), _number(file, "Q")) for _ in range(n_tensors)}
            start = -file.tell() % fields.get("general.alignment", 32) + file.tell()
            size = os.fstat(file.fileno()).st_size
    except OSError as error:
        raise ValueError(f"The model file {path} cannot be read ({error.strerror}).") from None
    except (EOFError, KeyError, TypeError, UnicodeDecodeError, ArithmeticError, MemoryError, RecursionError):
        raise ValueError(f"The model file {path} is cut short or damaged; fetch it again.") from None
    if any(start + place + _size(shape, kind) > size for shape, kind, place in index.values()):
        raise ValueError(f"The model file {path} is cut short: some of its tensors are missing; fetch it again.")
    return Gguf(path, fields, {name: (shape, kind, start + place) for name, (shape, kind, place) in index.items()})


def _size(shape, kind):
    """The bytes of a tensor, or 1 where its kind is not known."""
    numbers, length = BLOCKS.get(kind, (math.prod(shape) or 1, 1))
    return math.prod(shape) // numbers * length


def _bytes(file, length):
    if length > os.fstat(file.fileno()).st_size or len(part := file.read(length)) < length:
        raise EOFError
    return part


def _number(file, form):
    return struct.unpack("<" + form, _bytes(file, struct.calcsize("<" + form)))[0]


def _string(file):
    return _bytes(file, _number(file, "Q")).decode("utf-8")


def _value(file, kind):
    if kind == LIST:
        kind, length = _number(file, "I"), _number(file, "Q")
        return [_value(file, kind) for _ in range(length)]
    return _string(file) if kind == STRING else _number(file, NUMBERS[kind])
