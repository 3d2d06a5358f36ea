"""Wrong arguments of collectives: torch's errors, raised before any work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from support.device_arrays import on_each, read
from tcuda import nccl, xp

if TYPE_CHECKING:
    from collections.abc import Callable

Arrays = list[Any]


def pair(length: int = 4, dtype: str = "float32") -> Arrays:
    return on_each([np.arange(length).astype(dtype)] * 2)


def host() -> Any:
    return np.arange(4, dtype="float32")


REFUSED: dict[str, tuple[Callable[[Arrays], object], type[Exception], str]] = {
    # The beginnings of the messages are torch's.
    "array": (lambda t: nccl.all_reduce(t[0]), TypeError, "Inputs should be a collection of tensors"),
    "text": (lambda t: nccl.reduce(""), TypeError, "Inputs should be a collection of tensors; got"),
    "bytes": (lambda t: nccl.all_reduce(b"ab"), TypeError, "Inputs should be a collection of tensors; got"),
    "iterator": (lambda t: nccl.all_reduce(iter(t)), TypeError, "Inputs should be a collection of tensors"),
    "output": (lambda t: nccl.all_gather(t, t[0]), TypeError, "Inputs should be a collection of tensors"),
    "no array": (lambda t: nccl.all_reduce([t[0], 3]), TypeError, r"expected Tensor at 1 \(got int\)"),
    "host": (
        lambda t: nccl.all_reduce([t[0], host()]),
        RuntimeError,
        r"input and output elements have to be cuda dense Tensors: inputs\[1\] is a numpy.ndarray",
    ),
    "host output": (
        lambda t: nccl.all_reduce(t, [t[0], host()]),
        RuntimeError,
        "input and output elements have to be cuda dense Tensors",
    ),
    "empty": (lambda t: nccl.all_reduce([]), RuntimeError, "input sequence can't be empty"),
    "empty broadcast": (lambda t: nccl.broadcast([]), RuntimeError, "invalid root"),
    "sizes": (
        lambda t: nccl.broadcast([t[0], t[1][:3]]),
        RuntimeError,
        r"all inputs must have the same number of elements: inputs\[0\] has 4, inputs\[1\] has 3",
    ),
    "dtypes": (
        lambda t: nccl.broadcast([t[0], pair(4, "float64")[1]]),
        RuntimeError,
        "all inputs and outputs must be of the same Tensor dtype: .* float32, .* float64",
    ),
    "output dtype": (
        lambda t: nccl.all_reduce(t, pair(4, "int32")),
        RuntimeError,
        "all inputs and outputs must be of the same Tensor dtype",
    ),
    "gaps": (
        lambda t: nccl.broadcast([array[::2] for array in t]),
        RuntimeError,
        "all inputs and outputs have to be contiguous",
    ),
    "same device": (
        lambda t: nccl.broadcast([t[0], t[0]]),
        RuntimeError,
        r"inputs must be on unique devices: inputs\[0\] and inputs\[1\] are on device 0",
    ),
    "outputs on other devices": (
        lambda t: nccl.all_reduce(t, t[::-1]),
        RuntimeError,
        "input and output must be on the same device",
    ),
    "one output": (
        lambda t: nccl.all_reduce(t, t[:1]),
        RuntimeError,
        "inputs and outputs sequences have to be of the same length, but got input of length 2 and output of length 1",
    ),
    "size of outputs": (
        lambda t: nccl.all_gather(t, pair(7)),
        RuntimeError,
        r"output must be of size input_size \* size_multiplier: outputs\[0\] has 7 elements; it must have 8",
    ),
    "size of parts": (
        lambda t: nccl.reduce_scatter(t, pair(3)),
        RuntimeError,
        r"output must be of size input_size \* size_multiplier: outputs\[0\] has 3 elements; it must have 4 / 2",
    ),
    "size of output": (
        lambda t: nccl.reduce(t, t[0][:3]),
        RuntimeError,
        r"output must be of size input_size \* size_multiplier",
    ),
    "root output": (
        lambda t: nccl.reduce(t, t[0], root=1),
        RuntimeError,
        "input and output must be on the same device",
    ),
    "root": (lambda t: nccl.broadcast(t, 2), RuntimeError, "invalid root: root is 2, and there are 2 ranks"),
    "negative root": (lambda t: nccl.broadcast(t, -1), RuntimeError, "invalid root"),
    "root of no kind": (lambda t: nccl.broadcast(t, "0"), TypeError, "str"),  # type: ignore[arg-type]
    "reduce to a missing root": (lambda t: nccl.reduce(t, root=5), IndexError, "list index out of range"),
    "reduce to a negative root": (lambda t: nccl.reduce(t, root=-1), RuntimeError, "invalid root"),
    "both outputs": (
        lambda t: nccl.reduce(t, t[0], outputs=t),
        ValueError,
        "'output' and 'outputs' can not be both specified. 'outputs' is deprecated in favor of 'output', taking in a "
        r"single output tensor. The signature of reduce is: reduce\(inputs, output=None, root=0, op=SUM, streams=None, "
        r"comms=None\).",
    ),
    "operation": (
        lambda t: nccl.all_reduce(t, op=99),
        ValueError,
        r"op is 99; the operations of NCCL are 0 \(sum\), 1 \(prod\), 2 \(max\), 3 \(min\), 4 \(avg\)",
    ),
    "negative operation": (lambda t: nccl.reduce(t, op=-1), ValueError, "op is -1"),
    "operation of no kind": (lambda t: nccl.reduce_scatter(t, t, "sum"), TypeError, "op must be an integer"),  # type: ignore[arg-type]
    "short": (
        lambda t: nccl.all_reduce(pair(4, "int16")),
        RuntimeError,
        "Unconvertible NCCL type Short: NCCL has no sum for int16",
    ),
    "complex": (
        lambda t: nccl.all_reduce(pair(4, "complex64"), op=1),
        RuntimeError,
        "Unconvertible NCCL type ComplexFloat: NCCL has no prod for complex64",
    ),
    "average of truth values": (
        lambda t: nccl.all_reduce(pair(4, "bool"), op=4),
        RuntimeError,
        "NCCL has no avg for bool",
    ),
    "number of streams": (
        lambda t: nccl.all_reduce(t, streams=[None]),
        RuntimeError,
        "number of streams is not equal to number of inputs: 1 streams, 2 inputs",
    ),
    "streams of no kind": (lambda t: nccl.all_reduce(t, streams=3), RuntimeError, "streams must be a sequence"),  # type: ignore[arg-type]
    "junk": (
        lambda t: nccl.all_reduce(t, streams=[None, "s"]),
        RuntimeError,
        "Unknown data type found in stream list. Need torch.cuda.Stream or None",
    ),
    "stream of another device": (
        lambda t: nccl.all_reduce(t, streams=[None, tcuda.Stream(device=0)]),
        RuntimeError,
        r"input and stream must be on the same device: inputs\[1\] is on device 1, streams\[1\] is on device 0",
    ),
    "communicator of no kind": (
        lambda t: nccl.all_reduce(t, comms=["c", "d"]),
        ValueError,
        r"comms must be communicators, which init_rank\(\) returns; got a str",
    ),
    "no communicator": (
        lambda t: nccl.all_reduce(t, comms=[]),
        RuntimeError,
        "number of communicators is not equal to number of inputs: 0 communicators, 2 inputs",
    ),
    "uid of no kind": (lambda t: nccl.init_rank(1, "x" * 128, 0), TypeError, "uid must be the bytes"),  # type: ignore[arg-type]
    "short uid": (
        lambda t: nccl.init_rank(1, b"x", 0),
        RuntimeError,
        r"invalid unique_id \(expected 128 bytes, got 1\)",
    ),
    "rank": (
        lambda t: nccl.init_rank(2, nccl.unique_id(), 2),
        RuntimeError,
        r"NCCL Error 4: invalid argument \(run with NCCL_DEBUG=WARN for details\)\ninit_rank\(\) got num_ranks=2 and "
        "rank=2; rank can be 0 to 1",
    ),
    "no ranks": (lambda t: nccl.init_rank(0, nccl.unique_id(), 0), RuntimeError, "num_ranks must be 1 or more"),
    "rank of no kind": (lambda t: nccl.init_rank(1, nccl.unique_id(), None), TypeError, "rank must be an integer"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_wrong_argument_is_refused_and_nothing_is_written(name: str) -> None:
    call, error, text = REFUSED[name]
    arrays = pair()
    with pytest.raises(error, match=text) as raised:
        call(arrays)
    assert raised.type is error or issubclass(raised.type, RuntimeError)
    assert all((got == host()).all() for got in read(arrays))


def test_the_output_of_reduce_may_still_be_a_list() -> None:
    arrays, [output] = pair(), on_each([np.zeros(4, "float32")])
    text = "nccl.reduce with an output tensor list is deprecated. Please specify a single output tensor."
    with pytest.warns(FutureWarning, match=f"^{text}$") as warned:
        nccl.reduce(arrays, [output])
    assert warned[0].filename == __file__
    assert (read([output])[0] == 2 * host()).all()


def test_outputs_of_reduce_are_deprecated() -> None:
    arrays, outputs = pair(), pair()
    text = (
        "`nccl.reduce` with an output tensor list is deprecated. Please specify a single output tensor with argument "
        "'output' instead instead."
    )
    with pytest.warns(FutureWarning, match=f"^{text}$") as warned:
        nccl.reduce(arrays, outputs=outputs, root=1)
    assert warned[0].filename == __file__
    assert [got.tolist() for got in read(outputs)] == [[0, 1, 2, 3], [0, 2, 4, 6]]


class SparseArray:
    nnz = 0


def test_is_available_says_whether_nccl_takes_the_arrays() -> None:
    arrays = pair()
    assert nccl.is_available(arrays)
    assert nccl.is_available([])
    assert not nccl.is_available([arrays[0], arrays[0]])
    assert not nccl.is_available([arrays[0], host()])
    assert not nccl.is_available([arrays[0][::2]])
    assert not nccl.is_available(xp.zeros((2, 2)))  # its rows are arrays of one device
    assert not nccl.is_available([SparseArray(), 3])
    with pytest.raises(TypeError, match=r"^is_available\(\) takes a sequence of arrays; got an int in it\.$"):
        nccl.is_available([3])


def test_the_version_and_the_unique_ids_are_those_of_a_library() -> None:
    major, minor, patch = nccl.version()
    assert (major, minor) >= (2, 8)
    assert patch >= 0
    assert nccl.SUM == 0
    # pytest adds names that begin with "@" to the modules of an installed plugin.
    assert {name for name in dir(nccl) if name[0] not in "_@"} == set(nccl.__all__)
    uids = {nccl.unique_id() for _ in range(3)}
    assert len(uids) == 3
    assert all(isinstance(uid, bytes) and len(uid) == 128 for uid in uids)
