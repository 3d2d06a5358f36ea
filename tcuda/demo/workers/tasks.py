"""The functions that Dask runs on a worker. The program imports this module too, so only functions import arrays."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING

from distributed.utils import offload

from tcuda.demo.workers.share import LostMemberError, Share, State

if TYPE_CHECKING:
    from tcuda.dask import Group
    from tcuda.demo.config import Config
    from tcuda.demo.digits import Digits
    from tcuda.demo.workers.member import Member

_members: dict[str, Member] = {}
_running = threading.Lock()


def join(group: Group, config: Config, digits: Digits) -> None:
    """Let this worker join a team.

    Args:
        group: The workers of the team.
        config: The settings.
        digits: The data.
    """
    from tcuda.demo.workers.member import Member

    _members[group.name] = Member(group.join(), config, digits)


def run_epoch(group: Group, before: State | Share | None, *, last: bool) -> Share:
    """Run this worker's part of an epoch. After an error, this worker leaves the team.

    Args:
        group: The workers of the team.
        before: The state before the epoch, or the share of the epoch before; None before the first epoch.
        last: Whether the epoch is the last one.

    Raises:
        LostMemberError: This worker has not joined the team.
        GroupError: Another worker of the team is gone.
    """
    if group.name not in _members:
        raise LostMemberError("This worker has not joined the team, or has left the team.")
    member = _members[group.name]
    with _running:
        try:
            return member.epoch(before.state if isinstance(before, Share) else before, last=last)
        except BaseException as error:
            member.leave(f"an epoch has failed with {type(error).__name__}: {error}")
            raise


async def leave(group: Group) -> None:
    """Let this worker leave a team. An epoch of the team that still runs ends with an error."""
    member = _members.pop(group.name, None)
    if member is not None:
        # The event loop runs this function, and a worker tells the others by this loop that it leaves.
        await (offload(member.leave, "the program has ended the epoch") if is_busy() else offload(member.close))


def is_busy() -> bool:
    """Return whether this worker runs an epoch."""
    return _running.locked()


def end_process() -> None:
    """End the process of this worker, a thread of which may wait for ever."""
    os.kill(os.getpid(), signal.SIGKILL)
