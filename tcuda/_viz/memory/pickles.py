"""A reader for pickles that calls no function that a pickle names, as files from any source may name any function."""

from __future__ import annotations

import io
import pickle
from typing import NoReturn

_PLAIN = "a snapshot has only dicts, lists, tuples, texts and numbers"


class _PlainUnpickler(pickle.Unpickler):
    """An unpickler of dicts, lists, tuples, sets, texts, bytes, numbers, booleans and None."""

    def find_class(self, module: str, name: str) -> NoReturn:
        """Refuse a class or a function."""
        raise pickle.UnpicklingError(f"it asks for {module[:100]}.{name[:100]}, and {_PLAIN}")


def load(data: bytes) -> object:
    """Return the object that the pickle ``data`` holds.

    Args:
        data: A pickle of plain data, of any protocol.

    Raises:
        ValueError: ``data`` is not a pickle, ends too early, holds other objects, or needs more memory than there is.
    """
    try:
        return _PlainUnpickler(io.BytesIO(data)).load()
    except MemoryError:
        raise ValueError("it needs more memory than there is") from None
    except pickle.UnpicklingError as error:
        asks = str(error).startswith("it asks for ")
        raise ValueError(str(error) if asks else "it is not a pickle, or its end is missing") from None
    except Exception:  # a file with wrong bytes raises an error of any type
        raise ValueError("it is not a pickle, or its end is missing") from None


__all__ = ["load"]
