"""The settings of the demo."""

from __future__ import annotations

from dataclasses import dataclass

DECIDING = ("seed", "devices", "batch_size", "hidden_units", "learning_rate", "momentum", "kernel")
"""The settings that decide every bit of the result of an epoch. The other settings do not change that result.

``devices`` decides nothing if ``kernel`` is ``"exact"``.
"""

KERNELS = ("array", "raw", "exact")
"""The values of the setting ``kernel``."""

_WHOLE_NUMBERS = {
    "epochs": (1, 1_000_000),
    "seed": (0, (1 << 64) - 1),
    "devices": (1, 1437),
    "batch_size": (1, 1437),  # the number of digits for training
    "hidden_units": (1, 1 << 16),
}
_FRACTIONS = {"learning_rate": 100.0, "momentum": 1.0}


@dataclass(frozen=True)
class Config:
    """The settings of one training run; with the defaults, the network recognises 98 % to 99 % of the held-out digits.

    Attributes:
        epochs: The number of epochs; in an epoch, every digit is shown once.
        seed: The seed of the first parameters and of the order of the digits.
        devices: The number of devices, which share each batch.
        overlap: Whether batches are copied on a stream of their own; the result does not depend on this setting.
        graph: Whether the work on a batch is captured in CUDA graphs and replayed; the result does not depend on this
            setting.
        kernel: How the passes are computed: ``"array"`` for operations on arrays, ``"raw"`` for a forward pass by raw
            kernels of CUDA C++, or ``"exact"`` for sums without rounding, whose result does not depend on the number of
            devices. All reach the same accuracy, but round differently.
        batch_size: The number of digits between two updates, on all devices together.
        hidden_units: The width of the hidden layer.
        learning_rate: The step size.
        momentum: The fraction of the last step that is added to the next step.
        save_at: The epoch after which a checkpoint is made; None for no checkpoint.

    Raises:
        TypeError: A setting has a type other than the type declared here.
        ValueError: A number is too small or too large, ``kernel`` has another value, or there are more devices than
            digits in a batch.
    """

    epochs: int = 15
    seed: int = 0
    devices: int = 1
    overlap: bool = True
    graph: bool = False
    kernel: str = "array"
    # The defaults keep matrix products so small that NumPy, which computes on emulated devices, uses one thread for a
    # product. Several threads would slow each other down on a busy machine.
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
        _require_type("kernel", self.kernel, (str,), "a string")
        if self.kernel not in KERNELS:
            raise ValueError(f"kernel is {self.kernel!r}; it must be {' or '.join(map(repr, KERNELS))}.")
        if self.save_at is not None:
            _require_type("save_at", self.save_at, (int,), "a whole number or None")
            if not 1 <= self.save_at <= self.epochs:
                raise ValueError(f"save_at is {self.save_at}; it must be 1 to {self.epochs}, the last epoch.")
        if self.devices > self.batch_size:
            raise ValueError(f"A batch of {self.batch_size} digits cannot be shared by {self.devices} devices.")

    def share(self, device: int) -> slice:
        """Return the slice of every batch that ``device`` works on."""
        return slice(device, self.batch_size, self.devices)


def _require_type(name: str, value: object, types: tuple[type, ...], wanted: str) -> None:
    if type(value) not in types:  # isinstance() would accept True and False as whole numbers.
        raise TypeError(f"{name} is {value!r}, a {type(value).__name__}; it must be {wanted}.")
