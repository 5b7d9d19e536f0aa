"""What lies in a zip that nobody can trust, and in zips in it: nothing is unpacked to disk, and everything has a limit.

A .tar or .tar.gz is packed again as a zip in memory, so that what holds of zips holds of it.
"""

import io
import stat
import struct
import tarfile
import warnings
import zipfile
import zlib
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache, partial
from pathlib import PurePosixPath

from classroom import names, notebook

MOST_FILES = 100_000  # in one zip
MOST_ZIPS = 1_000  # zips in one zip, and in zips in it
MOST_BYTES = 300_000_000  # of all zips in the zips of one student; and of the student's notebooks that are looked at
LARGEST_LIST = 20_000_000  # bytes of a zip's list of files, and of those of all zips of one student
LARGEST_ZIP = 100_000_000  # bytes of a zip inside a zip
TIGHTEST = 50  # bytes of a zip for each byte that it takes in its zip: two zips in one another hardly shrink
# Python bounds what it unpacks for these two alone: of 810 bytes in bzip2 it makes 1.8 GB before anybody can stop it.
PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
OTHERS = {1: "Shrink", 6: "Implode", 9: "Deflate64", 12: "bzip2", 14: "LZMA", 93: "Zstandard", 95: "xz", 98: "PPMd"}
GZIP, TAR_MARK = b"\x1f\x8b", slice(257, 262)  # how a .gz begins, and where a .tar says that it is one
EXACT, NO_DATE = 0x5455, (1980, 1, 1)  # where a zip keeps the time in UTC, and what it says where it has none


@dataclass
class Entry:
    """A file somewhere below the teacher's folder. ``read()`` gives its bytes; without it, this is not a notebook."""

    parts: tuple
    modified: float
    read: object = None
    problem: str = ""
    status: str = "refused"  # where there is a problem
    archives: tuple = ()  # in which it lies, outermost first: (number of the parts that name it, when it is from)

    @property
    def came(self):
        """When it was handed in, as far as can be told: the date of a student's archive counts, and not one inside it, which
        the student's own machine wrote. A date of 0 is none."""
        return next((when for _, when in self.archives if when > 0), self.modified)

    @property
    def may_be_notebook(self):
        """Is it a notebook, as far as its name tells, be it one that cannot be read?"""
        return bool(self.read or self.problem)

    @property
    def script(self):
        return names.kind_of(self.parts[-1]) == ".py"

    def __post_init__(self):
        self.parts = tuple(map(names.short, map(names.plain_name, self.parts)))


@lru_cache(maxsize=2)
def archive(path, inside):
    """The open zip at ``path``, or the one in it that the numbers ``inside`` lead to."""
    data = _read_member(path, inside, LARGEST_ZIP) if inside else b""
    with io.BytesIO(data) if inside else path.open("rb") as file:
        begins = file.read(TAR_MARK.stop)
        if begins.startswith(GZIP) or begins[TAR_MARK] == b"ustar":
            file.seek(0)
            data = _as_zip(file.read(LARGEST_ZIP + 1))
    packed = bool(inside or data)
    with io.BytesIO(data) if packed else path.open("rb") as file:
        record = zipfile._EndRecData(file)  # the one that ZipFile goes by: files in the zip may hold others like it
    size = record[zipfile._ECD_SIZE] if record else 0
    if size > LARGEST_LIST:  # the list is read into memory before it can be counted
        raise notebook.Refused("The zip's list of files is too long.")
    opened = zipfile.ZipFile(io.BytesIO(data) if packed else path)
    opened.list_size, opened.size = size, len(data)
    return opened


def _as_zip(packed):
    """The bytes of a zip with what is in a .tar or .tar.gz, the bytes ``packed``. What is no plain file becomes a link,
    which is refused. Raises Unreadable, Refused and what tarfile does."""
    data = packed
    if packed.startswith(GZIP):
        data = zlib.decompressobj(wbits=31).decompress(packed, LARGEST_ZIP + 1)
        if len(data) > max(1_000_000, TIGHTEST * len(packed)):
            raise notebook.Refused("The .tar.gz is packed far too tightly (a zip bomb?).")
    if len(data) > LARGEST_ZIP:
        raise notebook.Refused(f"Unpacked, the .tar has more than {LARGEST_ZIP // 1_000_000} MB: unpack it, or hand in the "
                               "notebook itself.")
    if data[TAR_MARK] != b"ustar":
        raise notebook.Unreadable("What is in the .gz is no .tar, or is damaged: hand in the notebook itself, or a zip.")
    buffer, files = io.BytesIO(), 0
    with (tarfile.open(fileobj=io.BytesIO(data), mode="r:") as tar, zipfile.ZipFile(buffer, "w") as archive,
          warnings.catch_warnings()):
        warnings.simplefilter("ignore")  # that a name stands twice, as it may
        for member in tar:
            files += 1
            if files > MOST_FILES:
                raise notebook.Refused(f"The .tar holds more than {MOST_FILES:,} files.")
            plain = member.isreg() and not member.issparse()
            info = zipfile.ZipInfo(member.name.encode("utf-8", "replace").decode() + "/" * member.isdir())
            if member.mtime > 0:
                info.extra = struct.pack("<HHBi", EXACT, 5, 1, int(min(member.mtime, 2**31 - 1)))
            info.external_attr = 0 if plain or member.isdir() else stat.S_IFLNK << 16
            archive.writestr(info, tar.extractfile(member).read() if plain else b"")
    return buffer.getvalue()


def _read_member(path, inside, most=notebook.LARGEST):
    """The bytes of a file in a zip; never unpacks more than ``most`` + 1 of them, whatever the zip says of their
    number. ``inside``: the number of the member, or of the zip in the zip and then of its member."""
    try:
        opened = archive(path, inside[:-1])
        member = opened.infolist()[inside[-1]]
        if member.compress_type not in PACKED:
            method = OTHERS.get(member.compress_type, f"method {member.compress_type}")
            raise notebook.Refused(f"The file is packed with {method}, which is not unpacked here: hand in the notebook "
                                   "itself, or a zip as the system makes it (Deflate).")
        if member.flag_bits & 1:
            raise notebook.Unreadable("The zip has a password: pack it again without one.")
        if most == LARGEST_ZIP and member.file_size > max(1_000_000, TIGHTEST * member.compress_size):
            raise notebook.Refused("The zip is packed far too tightly (a zip bomb?).")
        with opened.open(member) as file:
            data = file.read(most + 1)
    except notebook.Unreadable:
        raise
    except Exception as error:  # damaged, encrypted, or a method that is not known
        raise notebook.Unreadable(f"The file cannot be read out of its zip ({str(error)[:80]}).") from None
    if len(data) > most:
        raise notebook.Refused(f"Unpacked, the file has more than {most // 1_000_000} MB (a zip bomb?).")
    return data


def entries(path, where, refused, zone, modified=0.0, inside=(), room=None, archives=()):
    """The files in a zip, and in zips in it, each an ``Entry`` below ``where``; sentences on what was ``refused``.

    ``zone``: whose clock times are by; ``modified``: when the zip itself is from; ``inside``: the numbers of the zips in
    which this one is; ``room``: how many zips, files in them and bytes of both the student whose zip this is may still have;
    ``archives``: as ``Entry`` has them, of those around this one.
    """
    label = "/".join(where) or path.name
    try:
        members = _members(path, inside, room)
    except Exception as error:  # whatever a hostile file makes zipfile raise
        readable = isinstance(error, notebook.Unreadable)
        words = str(error) if readable else "The zip is damaged."
        if room is None or room["zips"] >= -1:  # of those that come after too many zips nothing is said
            refused.append(error.told.format(label) if hasattr(error, "told") else
                           f"{label} was left out: {error}" if readable else f"{label} is not a zip that can be opened.")
            if where:
                yield Entry(where, modified, None, words, error.status if readable else "unreadable")
        return
    name, where = where[-1:], (*where[:-1], names.stem_of(where[-1])) if where else ()
    if name and all(member.is_dir() for member in members):
        yield Entry(where + name, modified)
    rooms, archives = {}, (*archives, (len(where), modified)) if where else ()
    for number, member in enumerate(members):
        parts = PurePosixPath(member.filename.replace("\\", "/")).parts
        kind = names.kind_of(parts[-1]) if parts else ""
        if member.is_dir() or not parts:
            continue
        when = _when(member, zone, modified)
        if ".." in parts or parts[0] == "/" or ":" in parts[0] or stat.S_ISLNK(member.external_attr >> 16):
            refused.append(f"{label}: {member.filename[:100]!r} leads out of the zip and was left out.")
            if where:
                yield Entry((*where, "a file"), when, problem="A name in the zip leads out of it.", archives=archives)
        elif not kind:
            yield Entry(where + parts, when, archives=archives)
        elif kind != ".zip":
            yield Entry(where + parts, when, partial(_read_member, path, (*inside, number)), archives=archives)
        elif len(inside) < 2:
            whole = where + parts  # those of one student, or of a zip of which nobody knows whose it is, share a room
            whose = next((i for i, part in enumerate(whole, 1) if names.by_platform(part)), len(where or whole))
            mine = room or rooms.setdefault(whole[:whose], {"zips": MOST_ZIPS, "files": MOST_FILES, "bytes": MOST_BYTES})
            yield from entries(path, whole, refused, zone, when, (*inside, number), mine, archives)
        else:
            refused.append(f"{label}: {member.filename[:100]!r} is a zip in a zip in a zip and was left out.")
            yield Entry(where + parts, when, problem="The notebook is in a zip in a zip in a zip.",
                        archives=archives)


class _TooMany(notebook.Refused):
    """``told``: the sentence for the teacher, with a place for the name of the zip."""

    def __init__(self, words, told):
        super().__init__(words)
        self.told = told


def _members(path, inside, room):
    """The members of a zip, which take their part of the ``room``. Raises what zipfile does, Unreadable and Refused."""
    if room:
        room["zips"] -= 1
        if room["zips"] < 0:
            raise _TooMany(f"The zip holds more than {MOST_ZIPS:,} zips.",
                           f"{{}} and what comes after it were left out: more than {MOST_ZIPS:,} zips in a zip.")
        if room["bytes"] <= 0:
            raise notebook.Refused(f"The zips in the zip have more than {MOST_BYTES // 1_000_000} MB together.")
    opened = archive(path, inside)
    members = opened.infolist()
    if room:
        room["files"] -= len(members)
        room["bytes"] -= opened.size + opened.list_size * (MOST_BYTES // LARGEST_LIST)
    if len(members) > MOST_FILES or room and room["files"] < 0:
        many = (f"holds {len(members):,} files" if len(members) > MOST_FILES
                else f"and others in the same zip hold more than {MOST_FILES:,} files")
        raise _TooMany(f"The zip {many}.", f"{{}} {many} and was left out.")
    return members


def _when(member, zone, zipped):
    """When a file in a zip was written: exactly, if the zip says so as most programs do, or to two seconds by the clock of
    the place where it was packed, which is taken to be one of the ``zone``. A zip that has no dates says 1980: then that of
    the zip itself, ``zipped``, or 0."""
    extra = member.extra
    while len(extra) >= 4:
        kind, size = struct.unpack("<HH", extra[:4])
        if kind == EXACT and size >= 5 and len(extra) >= 9 and extra[4] & 1:
            seconds, = struct.unpack("<i", extra[5:9])
            if seconds > 0:
                return float(seconds)
        extra = extra[4 + size:]
    if member.date_time[:3] == NO_DATE:
        return zipped
    try:
        return datetime(*member.date_time, tzinfo=zone).timestamp()
    except (ValueError, OverflowError, OSError):
        return zipped
