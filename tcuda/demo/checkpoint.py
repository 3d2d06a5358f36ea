"""Checkpoints: the state of a training run after an epoch, from which another run goes on to the same bits."""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy

from tcuda._base.files import read_regular_file, replace_file, require_replaceable
from tcuda.demo.config import DECIDING, Config
from tcuda.demo.result import Epoch
from tcuda.demo.shapes import parameter_count

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray
    from typing_extensions import Self

    from tcuda.demo.arrays import Floats, RngState

_FORMAT = "tcuda demo checkpoint 1"
MARK = numpy.str_(_FORMAT).tobytes()
"""Bytes near the start of each checkpoint, because the format is the first array."""

_SETTINGS = ("epochs", *DECIDING)
_LARGEST_FILE = 1 << 26  # a million epochs of the largest network have less


@dataclass(frozen=True)
class Checkpoint:
    """The state of a training run after an epoch.

    Attributes:
        config: The settings of the run.
        parameters: The parameters of the network, as one vector on the host.
        velocity: The momentum of the parameters, as one vector on the host.
        rng_state: The state of the generator that draws the order of the digits.
        epochs: The results of the epochs so far; empty before the first epoch.
    """

    config: Config
    parameters: Floats
    velocity: Floats
    rng_state: RngState
    epochs: tuple[Epoch, ...]

    @property
    def epoch(self) -> int:
        """The epoch after which the checkpoint was made."""
        return len(self.epochs)

    def require_fitting(self, config: Config) -> None:
        """Insist that a run with the settings ``config`` can go on from this checkpoint.

        Raises:
            ValueError: A setting that decides the result differs, no epoch is left to run, or ``save_at`` names an
                epoch that is over.
        """
        different = [name for name in DECIDING if getattr(self.config, name) != getattr(config, name)]
        if self.config.kernel == config.kernel == "exact":
            different = [name for name in different if name != "devices"]
        if different:
            theirs, ours = (
                " and ".join(f"{name} {getattr(settings, name)}" for name in different)
                for settings in (self.config, config)
            )
            raise ValueError(f"The checkpoint was made with {theirs}; a run with {ours} cannot go on from it.")
        if config.epochs <= self.epoch:
            raise ValueError(
                f"The checkpoint was made after epoch {self.epoch}, and epochs is {config.epochs}; ask for more."
            )
        if config.save_at is not None and config.save_at <= self.epoch:
            raise ValueError(
                f"The checkpoint was made after epoch {self.epoch}, and save_at is {config.save_at}; it must be "
                f"{self.epoch + 1} to {config.epochs}."
            )

    @staticmethod
    def require_writable(path: Path) -> None:
        """Insist that :meth:`save` can write to ``path``, as far as that can be told without writing.

        Raises:
            OSError: ``path``, or a temporary file beside it, cannot be written.
        """
        require_replaceable(path)

    def save(self, path: Path) -> None:
        """Write the checkpoint to the file ``path``, which has its old content until the new content is complete.

        The settings that do not change the result, ``overlap``, ``graph`` and ``save_at``, are left out.

        Raises:
            OSError: The file cannot be written.
        """
        arrays: dict[str, Any] = {
            "format": _FORMAT,
            **{name: getattr(self.config, name) for name in _SETTINGS},
            "parameters": self.parameters,
            "velocity": self.velocity,
            "rng_state": self.rng_state,
            "loss": numpy.array([epoch.loss for epoch in self.epochs], numpy.float64),
            "accuracy": numpy.array([epoch.accuracy for epoch in self.epochs], numpy.float64),
        }
        content = io.BytesIO()
        numpy.savez(content, **arrays)
        replace_file(path, content.getvalue())

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a checkpoint from a file that :meth:`save` wrote; no code in the file is run.

        Raises:
            OSError: The file cannot be read.
            ValueError: The file is not a checkpoint, or a part of the checkpoint is missing.
        """
        try:
            content = read_regular_file(path, _LARGEST_FILE)
            _require_small(content)
            with numpy.load(io.BytesIO(content), allow_pickle=False) as arrays:
                return cls._from_arrays(arrays)
        except OSError:
            raise
        except Exception as error:  # NumPy, zipfile and zlib raise many types of errors for other files.
            raise ValueError(f"{str(path)!r} is not a checkpoint of tcuda demo, or a part of it is missing.") from error

    @classmethod
    def _from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        if arrays["format"].item() != _FORMAT:
            raise ValueError("It has another format.")
        # Checkpoints of earlier versions have no kernel. Their runs used the default.
        names = [name for name in _SETTINGS if name != "kernel" or name in arrays]
        config = Config(**{name: arrays[name].item() for name in names})
        parameters, velocity = (
            _checked(arrays[name], numpy.float32, parameter_count(config.hidden_units))
            for name in ("parameters", "velocity")
        )
        loss = _checked(arrays["loss"], numpy.float64, arrays["loss"].size)
        accuracy = _checked(arrays["accuracy"], numpy.float64, loss.size)
        scores = zip(loss.tolist(), accuracy.tolist(), strict=True)
        epochs = tuple(Epoch(number, *score) for number, score in enumerate(scores, start=1))
        return cls(config, parameters, velocity, _checked(arrays["rng_state"], numpy.uint8, 16), epochs)


def _require_small(content: bytes) -> None:
    """Insist that the arrays in a file are not too large: a small compressed file could fill the memory."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        size = sum(member.file_size for member in archive.infolist())
    if size > _LARGEST_FILE:
        raise ValueError(f"Its arrays have {size:,} bytes.")


def _checked(array: NDArray[Any], dtype: type[numpy.generic], size: int) -> NDArray[Any]:
    if array.dtype != dtype or array.shape != (size,):
        raise ValueError(f"An array is {array.dtype}{array.shape}, not {numpy.dtype(dtype)}{(size,)}.")
    if not numpy.isfinite(array).all():
        raise ValueError("An array has numbers that are infinite or none.")
    return array
