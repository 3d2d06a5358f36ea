"""What the demo can be asked for."""

from __future__ import annotations

from dataclasses import dataclass

DECIDING = ("seed", "devices", "batch_size", "hidden_units", "learning_rate", "momentum")
"""The settings that decide every bit of an epoch; the others decide only how many there are, and how they come about.
"""

_WHOLE_NUMBERS = {
    "epochs": (1, 1_000_000),
    "seed": (0, (1 << 64) - 1),
    "devices": (1, 1437),
    "batch_size": (1, 1437),  # all digits that there are to train with
    "hidden_units": (1, 1 << 16),
}
_FRACTIONS = {"learning_rate": 100.0, "momentum": 1.0}


@dataclass(frozen=True)
class Config:
    """The settings of one training run; the defaults recognise 98 % to 99 % of digits that the network has not seen.

    Attributes:
        epochs: How often every digit is shown.
        seed: Decides the first parameters and the order of the digits, and with them every later bit.
        devices: How many devices share each batch.
        overlap: Whether batches are copied on a stream of their own; the result is the same without.
        graph: Whether the work on a batch is captured in CUDA graphs and replayed; the result is the same without.
        batch_size: Digits between two updates, on all devices together.
        hidden_units: Width of the hidden layer.
        learning_rate: Step size.
        momentum: How much of the last step goes into the next.
        save_at: The epoch after which a checkpoint is made; None for no checkpoint.

    Raises:
        TypeError: A setting has another type than here.
        ValueError: A number is too small or too large, or there are more devices than digits in a batch.
    """

    epochs: int = 15
    seed: int = 0
    devices: int = 1
    overlap: bool = True
    graph: bool = False
    # Together they keep matrix products so small that NumPy, where it stands in for a GPU, uses one thread for them:
    # many threads take turns badly on a machine that is busy with something else.
    batch_size: int = 32
    hidden_units: int = 128
    learning_rate: float = 0.2
    momentum: float = 0.9
    save_at: int | None = None

    def __post_init__(self) -> None:
        for name, (least, most) in _WHOLE_NUMBERS.items():
            value = getattr(self, name)
            _require_type(name, value, (int,), "a whole number")
            if value < least:
                raise ValueError(f"{name} is {value}; it must be {least} or more.")
            if value > most:
                raise ValueError(f"{name} is {value}; it must be {most} or less.")
        for name, largest in _FRACTIONS.items():
            fraction = getattr(self, name)
            _require_type(name, fraction, (int, float), "a number")
            if not 0 <= fraction <= largest:
                raise ValueError(f"{name} is {fraction}; it must be 0 to {largest}.")
        for name in ("overlap", "graph"):
            _require_type(name, getattr(self, name), (bool,), "True or False")
        if self.save_at is not None:
            _require_type("save_at", self.save_at, (int,), "a whole number or None")
            if not 1 <= self.save_at <= self.epochs:
                raise ValueError(f"save_at is {self.save_at}; it must be 1 to {self.epochs}, which is the last epoch.")
        if self.devices > self.batch_size:
            raise ValueError(f"A batch of {self.batch_size} digits cannot be shared by {self.devices} devices.")

    def share(self, device: int) -> slice:
        """Return which digits of every batch ``device`` computes with."""
        return slice(device, self.batch_size, self.devices)


def _require_type(name: str, value: object, types: tuple[type, ...], wanted: str) -> None:
    if type(value) not in types:  # True and False would pass for whole numbers
        raise TypeError(f"{name} is {value!r}, a {type(value).__name__}; it must be {wanted}.")
