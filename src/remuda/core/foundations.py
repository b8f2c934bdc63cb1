"""What nearly everything here stands on, loaded the quick way."""

import sys


def load() -> None:
    """Import msgspec without ``typing_extensions``, which it can do without, and which takes longer to load
    than msgspec itself."""
    spared = "typing_extensions" not in sys.modules
    if spared:
        sys.modules["typing_extensions"] = None  # type: ignore[assignment]
    try:
        __import__("msgspec")
    finally:
        if spared:
            del sys.modules["typing_extensions"]
