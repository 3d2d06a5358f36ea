"""Records the allocations of a program: ``python bench/record_trace.py PROGRAM FILE``.

FILE is a trace as ``data/README.md`` describes traces. The weights and the data are random, because only the sizes of
the arrays matter.

The programs of PyTorch train a vision transformer and sample images with a diffusion model. Their first two steps are
not recorded: they make the state of the optimizer, and choose algorithms. These programs need a GPU, PyTorch and
torchvision. The programs of CuPy are those of ``array_programs.py``, which are recorded from begin to end. They also
run on emulated devices: ``python -m tcuda.emulation bench/record_trace.py PROGRAM FILE``.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from array_programs import ARRAY_PROGRAMS
from workloads import FREED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from workloads import Events

_UNRECORDED = 2
_MOST_ENTRIES = 1_000_000
_END = "free_completed"
"""The event of the history by which memory can be handed out again."""


def events_of(history: Iterable[Mapping[str, Any]]) -> Events:
    """Return the events of a trace for the events of ``device_traces`` in a snapshot of torch's or tcuda's allocator.

    A block that was allocated before the history began has no number, and its end is left out.
    """
    events: Events = []
    alive: dict[int, int] = {}
    count = 0
    for each in history:
        if each["action"] == "alloc" and each["size"] > 0:
            alive[each["addr"]] = count
            events.append((count, int(each["size"])))
            count += 1
        elif each["action"] == _END and each["addr"] in alive:
            events.append((alive.pop(each["addr"]), FREED))
    return events


def vit_train() -> Callable[[], None]:
    """Return a step of the training of ViT-B/16 on 48 images of 224 x 224 pixels, in mixed precision."""
    import torch
    from torchvision.models import vit_b_16

    model = vit_b_16().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    images, labels = torch.randn(48, 3, 224, 224, device="cuda"), torch.randint(1000, (48,), device="cuda")

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()

    return step


def diffusion_sample() -> Callable[[], None]:
    """Return a step of the sampling of 8 images of 64 x 64 x 4 numbers, by a U-Net with attention and guidance."""
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self, inputs: int, outputs: int, *, attends: bool) -> None:
            super().__init__()
            self.first = nn.Sequential(nn.GroupNorm(16, inputs), nn.SiLU(), nn.Conv2d(inputs, outputs, 3, padding=1))
            self.second = nn.Sequential(nn.GroupNorm(16, outputs), nn.SiLU(), nn.Conv2d(outputs, outputs, 3, padding=1))
            self.time = nn.Linear(256, outputs)
            self.skip = nn.Conv2d(inputs, outputs, 1)
            self.attention = nn.MultiheadAttention(outputs, 8, batch_first=True) if attends else None

        def forward(self, x: Any, time: Any) -> Any:
            h = self.second(self.first(x) + self.time(time)[:, :, None, None]) + self.skip(x)
            if self.attention is not None:
                flat = h.flatten(2).transpose(1, 2)
                h = h + self.attention(flat, flat, flat, need_weights=False)[0].transpose(1, 2).reshape(h.shape)
            return h

    class UNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            widths = [128, 256, 512, 512]
            self.begin = nn.Conv2d(4, widths[0], 3, padding=1)
            pairs = list(zip([widths[0], *widths], widths, strict=False))
            self.down = nn.ModuleList(Block(a, b, attends=b == 512) for a, b in pairs)
            self.up = nn.ModuleList(Block(2 * b, a, attends=b == 512) for a, b in reversed(pairs))
            self.end = nn.Conv2d(widths[0], 4, 3, padding=1)

        def forward(self, x: Any, time: Any) -> Any:
            x, kept = self.begin(x), []
            for block in self.down:
                x = block(x, time)
                kept.append(x)
                x = nn.functional.avg_pool2d(x, 2)
            for block in self.up:
                x = nn.functional.interpolate(x, scale_factor=2)
                x = block(torch.cat([x, kept.pop()], 1), time)
            return self.end(x)

    model = UNet().cuda().half().eval()
    image = torch.randn(8, 4, 64, 64, device="cuda", dtype=torch.half)
    time = torch.randn(16, 256, device="cuda", dtype=torch.half)

    @torch.no_grad()
    def step() -> None:
        nonlocal image
        with_text, without = model(torch.cat([image, image]), time).chunk(2)
        image = image - 0.01 * (without + 7.5 * (with_text - without))

    return step


PROGRAMS: dict[str, tuple[Callable[[], Callable[[], None]], int]] = {
    "vit_train": (vit_train, 4),
    "diffusion_sample": (diffusion_sample, 50),
}
"""For each program, the function that makes a step, and the number of recorded steps."""


def record(name: str) -> Events:
    """Run a program, and return the trace of the recorded steps, or of the whole program of CuPy."""
    if name in ARRAY_PROGRAMS:
        import tcuda

        tcuda.memory._record_memory_history(context=None, max_entries=_MOST_ENTRIES)
        ARRAY_PROGRAMS[name]()
        return events_of(tcuda.memory._snapshot()["device_traces"][tcuda.current_device()])
    import torch

    make, steps = PROGRAMS[name]
    step = make()
    for _ in range(_UNRECORDED):
        step()
    torch.cuda.synchronize()
    torch.cuda.memory._record_memory_history(context=None, max_entries=_MOST_ENTRIES)
    for _ in range(steps):
        step()
    torch.cuda.synchronize()
    return events_of(torch.cuda.memory._snapshot()["device_traces"][torch.cuda.current_device()])


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", choices=[*PROGRAMS, *ARRAY_PROGRAMS])
    parser.add_argument("file", type=Path)
    options = parser.parse_args()
    events = record(options.program)
    np.savez_compressed(options.file, events=np.array(events, "int64"))
    print(f"{options.file}: {sum(size != FREED for _, size in events):,} allocations in {len(events):,} events")


if __name__ == "__main__":
    main()
