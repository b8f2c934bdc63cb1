"""Zstandard, in which OpenClaw keeps long events: by Python where it can, or else by the system's library."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable

LARGEST = 4 * 1024 * 1024
"""OpenClaw compresses no event larger than this."""

Expand = Callable[[bytes], bytes | None]


def expand(data: bytes) -> bytes | None:
    """The bytes that were compressed; None where nothing here can tell, or they are damaged."""
    expander = _expander()
    return expander(data) if expander and len(data) <= LARGEST else None


@functools.cache
def _expander() -> Expand | None:
    return _of_python() or _of_system()


def _of_python() -> Expand | None:
    """Python's own, from version 3.14 on."""
    try:
        module = importlib.import_module("compression.zstd")
    except ImportError:
        return None

    def expander(data: bytes) -> bytes | None:
        try:
            return bytes(module.ZstdDecompressor().decompress(data, max_length=LARGEST))
        except (module.ZstdError, EOFError, ValueError, MemoryError):
            return None

    return expander


def _of_system() -> Expand | None:
    """The shared library that most systems have; it writes into a buffer of a given size and no further.
    Loading it costs as much as a short command, hence here."""
    import ctypes
    import ctypes.util

    try:
        name = ctypes.util.find_library("zstd") or "libzstd.so.1"
        library = ctypes.CDLL(name)
        decompress, failed = library.ZSTD_decompress, library.ZSTD_isError
    except (OSError, AttributeError):
        return None
    decompress.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    decompress.restype, failed.argtypes = ctypes.c_size_t, [ctypes.c_size_t]

    def expander(data: bytes) -> bytes | None:
        buffer = ctypes.create_string_buffer(LARGEST)
        size = decompress(buffer, LARGEST, data, len(data))
        return None if failed(size) else ctypes.string_at(buffer, size)

    return expander
