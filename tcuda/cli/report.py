"""The output of the demo, during the training and after it."""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from tcuda._base.console import memory, percent, print_table
from tcuda._runtime import runtime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rich.console import Console

    from tcuda.demo.checkpoint import Checkpoint
    from tcuda.demo.config import Config
    from tcuda.demo.result import Epoch, Loss, Result

_TIMES = {
    "cuda": "Times were measured by CUDA events.",
    "emulated": "Times are modelled, not measured: emulated devices have a clock of their own.",
}


@contextlib.contextmanager
def progress(console: Console, config: Config, resumed_from: Checkpoint | None) -> Iterator[Callable[[Epoch], None]]:
    """Give a function to call after every epoch, which moves a bar, or prints a line if there is no terminal."""
    if not console.is_terminal:
        yield lambda epoch: console.print(_line(epoch, config))
        return
    with Progress(TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn(), console=console) as bar:
        done = resumed_from.epoch if resumed_from else 0
        task = bar.add_task("compiling and starting", completed=done, total=config.epochs)
        yield lambda epoch: bar.update(task, completed=epoch.number, description=_line(epoch, config))


def _line(epoch: Epoch, config: Config) -> str:
    return (
        f"epoch {epoch.number:>{len(str(config.epochs))}}/{config.epochs}  loss {epoch.loss:.4f}  "
        f"accuracy {percent(epoch.accuracy)}"
    )


def show_saved(console: Console, checkpoint: Checkpoint, path: Path) -> None:
    """Print the epoch of ``checkpoint`` and the file to which it was saved."""
    console.print(f"saved after epoch {checkpoint.epoch} to {path}")


def show_page(console: Console, path: Path) -> None:
    """Print the file to which the page of the memory was written."""
    console.print(f"page of the memory written to {path}", soft_wrap=True)


def show_resumed(console: Console, checkpoint: Checkpoint, path: Path) -> None:
    """Print the epoch of ``checkpoint`` and the file from which the training goes on."""
    console.print(f"resumed after epoch {checkpoint.epoch} from {path}")


def show_loss(console: Console, loss: Loss) -> None:
    """Print which workers were lost, and from where the training goes on."""
    lost = " and ".join(loss.workers) or "a worker"
    goes_on = f"after epoch {loss.epoch - 1}" if loss.epoch > 1 else "at the beginning"
    console.print(f"lost {lost} in epoch {loss.epoch}; going on {goes_on} with another worker")


def show(console: Console, result: Result) -> None:
    """Print the accuracy, the times and the memory."""
    console.print(f"accuracy on digits that were held out: {percent(result.accuracy)}")
    console.print()
    total = sum(result.phases.values())
    print_table(
        console,
        ("phase", "total", "share"),
        [(name, f"{time:.2f} ms", percent(time / total)) for name, time in result.phases.items()],
    )
    if result.cluster is None:
        console.print(f"{total:.2f} ms of work in {result.elapsed:.2f} ms. {_TIMES[runtime().name]}")
    else:
        console.print(f"{total:.2f} ms of work on all devices. {_TIMES[result.cluster.runtime]}")
        console.print(f"The training took {result.elapsed / 1000:.2f} s by the clock of this machine.")
    console.print()
    if result.cluster is not None:
        print_table(
            console,
            ("worker", "address", "device", "name", "used", "free"),
            [
                (
                    str(worker.rank),
                    worker.address,
                    str(device.index),
                    device.name,
                    memory(device.used),
                    memory(device.free),
                )
                for worker, device in ((worker, worker.device) for worker in result.cluster.workers)
            ],
        )
        return
    print_table(
        console,
        ("device", "name", "used", "free"),
        [(str(device.index), device.name, memory(device.used), memory(device.free)) for device in result.devices],
    )


def as_dict(result: Result) -> dict[str, Any]:
    """Return the result as ``--json`` prints it: times in milliseconds, memory in bytes."""
    total = sum(result.phases.values())
    name = runtime().name if result.cluster is None else result.cluster.runtime
    described = {
        "runtime": name,
        "times": _TIMES[name],
        "config": asdict(result.config),
        "resumed_after": result.resumed_after,
        "accuracy": result.accuracy,
        "epochs": [asdict(epoch) for epoch in result.epochs],
        "phases": {name: {"milliseconds": time, "share": time / total} for name, time in result.phases.items()},
        "elapsed_milliseconds": result.elapsed,
        "parameters_sha256": hashlib.sha256(result.parameters.tobytes()).hexdigest(),
        "devices": [asdict(device) for device in result.devices],
    }
    if result.cluster is not None:
        described["cluster"] = asdict(result.cluster)
    return described
