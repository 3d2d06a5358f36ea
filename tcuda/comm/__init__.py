"""Copies and sums over several devices, as in ``torch.cuda.comm``."""

from tcuda._base.public_names import public_names
from tcuda.comm._broadcast import broadcast
from tcuda.comm._coalesced import broadcast_coalesced, reduce_add_coalesced
from tcuda.comm._gather import gather
from tcuda.comm._reduce import reduce_add
from tcuda.comm._scatter import scatter

__all__ = ["broadcast", "broadcast_coalesced", "gather", "reduce_add", "reduce_add_coalesced", "scatter"]
__dir__ = public_names(__name__)
