"""Allocations of compiled modules that fail when told to.

A shared library calls `malloc` through a table of addresses, which the dynamic linker
fills. `watched` writes the addresses of its own functions there: they count the calls,
and let one of them fail.
"""

import ctypes
import mmap
import platform
import sys
from contextlib import contextmanager

import pytest

# What an ELF file says of its segments and symbols: see elf(5).
DYNAMIC_SEGMENT = 2
STRINGS, SYMBOLS, RELOCATIONS, SIZE, JUMPS_SIZE, JUMPS = 5, 6, 7, 8, 2, 23

RESULT, SIZE_T = ctypes.c_void_p, ctypes.c_size_t
FUNCTIONS = {
    "malloc": ctypes.CFUNCTYPE(RESULT, SIZE_T),
    "calloc": ctypes.CFUNCTYPE(RESULT, SIZE_T, SIZE_T),
    "realloc": ctypes.CFUNCTYPE(RESULT, RESULT, SIZE_T),
}


class Segment(ctypes.Structure):
    _fields_ = [
        ("kind", ctypes.c_uint32), ("flags", ctypes.c_uint32),
        ("offset", ctypes.c_uint64), ("address", ctypes.c_uint64),
        ("physical", ctypes.c_uint64), ("file_size", ctypes.c_uint64),
        ("size", ctypes.c_uint64), ("alignment", ctypes.c_uint64),
    ]  # fmt: skip


class Library(ctypes.Structure):
    _fields_ = [
        ("base", ctypes.c_uint64), ("name", ctypes.c_char_p),
        ("segments", ctypes.POINTER(Segment)), ("n_segments", ctypes.c_uint16),
    ]  # fmt: skip


class Entry(ctypes.Structure):
    _fields_ = [("tag", ctypes.c_int64), ("value", ctypes.c_uint64)]


class Symbol(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_uint32),
        ("kind", ctypes.c_uint16), ("section", ctypes.c_uint16),
        ("value", ctypes.c_uint64), ("size", ctypes.c_uint64),
    ]  # fmt: skip


class Relocation(ctypes.Structure):
    _fields_ = [
        ("offset", ctypes.c_uint64), ("kind", ctypes.c_uint32),
        ("symbol", ctypes.c_uint32), ("addend", ctypes.c_int64),
    ]  # fmt: skip


def places(part):
    """(function, its place in a table) in all libraries whose path has this part."""
    found = []

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Library), SIZE_T, ctypes.c_void_p)
    def look(library, size, data):
        library = library.contents
        if part.encode() in library.name:
            for segment in library.segments[: library.n_segments]:
                if segment.kind == DYNAMIC_SEGMENT:
                    found.extend(_places(library.base, segment.address))
        return 0

    ctypes.CDLL(None).dl_iterate_phdr(look, None)
    return found


def _places(base, address):
    entries = {}
    while (entry := Entry.from_address(base + address)).tag:
        entries[entry.tag] = entry.value
        address += ctypes.sizeof(Entry)
    for start, size in ((RELOCATIONS, SIZE), (JUMPS, JUMPS_SIZE)):
        n = entries.get(size, 0) // ctypes.sizeof(Relocation)
        for relocation in (Relocation * n).from_address(entries.get(start, base)):
            symbol = Symbol.from_address(
                entries[SYMBOLS] + relocation.symbol * ctypes.sizeof(Symbol)
            )
            name = ctypes.string_at(entries[STRINGS] + symbol.name).decode()
            if name in FUNCTIONS:
                yield name, base + relocation.offset


class Watch:
    """Counts allocations, and lets the one with this number fail.

    Attributes
    ----------
    count : int
        Allocations so far.
    fails_at : int or None
    """

    def __init__(self):
        self.count, self.fails_at = 0, None
        libc = ctypes.CDLL(None)
        self.functions = {
            name: kind(self._counted(ctypes.cast(getattr(libc, name), kind)))
            for name, kind in FUNCTIONS.items()
        }

    def _counted(self, function):
        def counted(*args):
            self.count += 1
            return None if self.count == self.fails_at else function(*args)

        return counted

    def restart(self, fails_at=None):
        self.count, self.fails_at = 0, fails_at


def _write(place, address):
    """Write to a table that is read-only by now."""
    libc, page = ctypes.CDLL(None), place // mmap.PAGESIZE * mmap.PAGESIZE
    libc.mprotect.argtypes = [ctypes.c_void_p, SIZE_T, ctypes.c_int]
    if libc.mprotect(page, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE):
        raise OSError("the table of functions cannot be written")
    slot = ctypes.c_void_p.from_address(place)
    before, slot.value = slot.value, address
    return before


@contextmanager
def watched(part):
    """A `Watch` of the allocations of libraries whose path has this part."""
    is_read = sys.maxsize > 2**32 and sys.byteorder == "little"
    if platform.libc_ver()[0] != "glibc" or not is_read:
        pytest.skip("reads the tables of glibc on 64-bit machines")
    watch, before = Watch(), []
    try:
        for name, place in places(part):
            address = ctypes.cast(watch.functions[name], ctypes.c_void_p).value
            before.append((place, _write(place, address)))
        yield watch
    finally:
        for place, address in before:
            _write(place, address)
