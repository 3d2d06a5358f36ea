"""What the arguments of a call tell about the memory that the call uses."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import pytest

from tcuda import _core

if TYPE_CHECKING:
    from support.stand_in_library import Client

A, B, C = 0x100000, 0x200000, 0x300000
R2C, C2R, C2C = 0x2A, 0x2C, 0x29


@pytest.mark.parametrize(
    ("operations", "a", "b"),
    [
        ((0, 0), [(7, 40), (5, 4)], [(6, 48), (7, 4)]),
        ((1, 0), [(5, 40), (7, 4)], [(6, 48), (7, 4)]),
        ((0, 2), [(7, 40), (5, 4)], [(7, 48), (6, 4)]),
    ],
)
def test_a_product_reads_two_matrices_and_writes_one(
    client: Client, operations: tuple[int, int], a: list[tuple[int, int]], b: list[tuple[int, int]]
) -> None:
    """The columns of a matrix lie apart by the leading dimension."""
    memory = client.memory("cublasSgemm_v2", 1, *operations, 5, 6, 7, 0x20, A, 10, B, 12, 0x30, C, 14)
    assert memory == {
        "alpha": ("read", 0x20, (4, [(1, 4)])),
        "A": ("read", A, (4, a)),
        "B": ("read", B, (4, b)),
        "beta": ("read", 0x30, (4, [(1, 4)])),
        "C": ("write", C, (4, [(6, 56), (5, 4)])),
    }


def test_a_batched_product_has_the_types_of_its_arguments(client: Client) -> None:
    """The bytes of an item come from the codes of the types."""
    half, double = 2, 1
    memory = client.memory(
        "cublasGemmStridedBatchedEx", 1, 0, 0, 2, 3, 4, 0, A, half, 5, 60, B, double, 6, 70, 0, C, 0, 7, 80, 9, 68, 0
    )
    assert memory["A"] == ("read", A, (2, [(9, 120), (4, 10), (2, 2)]))
    assert memory["B"] == ("read", B, (8, [(9, 560), (3, 48), (4, 8)]))
    assert memory["C"] == ("write", C, (4, [(9, 320), (3, 28), (2, 4)]))
    assert "alpha" not in memory


def test_vectors_have_increments(client: Client) -> None:
    """The lengths of the vectors depend on the operation; a negative increment begins at the same address."""
    memory = client.memory("cublasSgemv_v2", 1, 1, 5, 6, 0, A, 8, B, -2, 0, C, 3)
    assert memory["x"] == ("read", B, (4, [(5, 8)]))
    assert memory["y"] == ("write", C, (4, [(6, 12)]))
    assert client.memory("cublasDscal_v2", 1, 10, 0, A, 2) == {"x": ("both", A, (8, [(10, 16)]))}


def test_an_operand_that_is_the_result_is_read_and_written(client: Client) -> None:
    """The first note of an address tells all that happens there."""
    memory = client.memory("cublasSgeam", 1, 0, 0, 5, 6, 0, A, 5, 0, B, 5, A, 5)
    assert memory == {"A": ("both", A, (4, [(6, 20), (5, 4)])), "B": ("read", B, (4, [(6, 20), (5, 4)]))}


def test_no_items_are_no_memory(client: Client) -> None:
    """A product of empty matrices notes nothing; impossible sizes give no extent."""
    assert client.memory("cublasDscal_v2", 1, 0, 0, A, 2) == {}
    assert client.memory("cublasDscal_v2", 1, -1, 0, A, 2) == {"x": ("both", A, None)}


def test_the_workspace_of_a_handle_is_used_until_another_is_set(client: Client) -> None:
    """The calls with the handle use the workspace."""
    client.call("cublasSetWorkspace_v2", 77, A, 1000)
    assert client.memory("cublasDscal_v2", 77, 4, 0, B, 1)["workspace"] == ("both", A, (1, [(1000, 1)]))
    assert "workspace" not in client.memory("cublasDscal_v2", 78, 4, 0, B, 1)
    client.call("cublasSetWorkspace_v2", 77, C, 10)
    assert client.memory("cublasDscal_v2", 77, 4, 0, B, 1)["workspace"] == ("both", C, (1, [(10, 1)]))
    client.call("cublasSetStream_v2", 77, 0)
    assert "workspace" not in client.memory("cublasDscal_v2", 77, 4, 0, B, 1)
    client.call("cublasSetWorkspace_v2", 77, C, 10)
    client.call("cublasDestroy_v2", 77)
    assert "workspace" not in client.memory("cublasDscal_v2", 77, 4, 0, B, 1)


def sparse_product(client: Client) -> tuple[int, int, int]:
    """Make the descriptors of a product of a sparse matrix and a vector."""
    descriptor = ctypes.c_int64()
    client.call("cusparseCreateCsr", ctypes.byref(descriptor), 4, 5, 6, A, B, C, 2, 3, 0, 1)
    matrix = descriptor.value
    client.call("cusparseCreateDnVec", ctypes.byref(descriptor), 5, A + 64, 1)
    x = descriptor.value
    client.call("cusparseCreateDnVec", ctypes.byref(descriptor), 4, A + 128, 1)
    return matrix, x, descriptor.value


def test_descriptors_lead_to_memory(client: Client) -> None:
    """A product notes the memory of its descriptors."""
    matrix, x, y = sparse_product(client)
    memory = client.memory("cusparseSpMV", 1, 0, 0, matrix, x, 0, y, 1, 0, B + 4096)
    assert memory == {
        "A.rowOffsets": ("read", A, (4, [(5, 4)])),
        "A.columnIndices": ("read", B, (8, [(6, 8)])),
        "A.values": ("read", C, (8, [(6, 8)])),
        "x.values": ("read", A + 64, (8, [(5, 8)])),
        "y.values": ("write", A + 128, (8, [(4, 8)])),
        "buffer": ("both", B + 4096, None),
    }
    client.call("cusparseDnVecSetValues", y, B + 8192)
    memory = client.memory("cusparseSpMV", 1, 0, 0, matrix, x, 0, y, 1, 0, 0)
    assert memory["y.values"] == ("write", B + 8192, None)


def test_an_unknown_descriptor_leaves_the_kinds_to_the_kernels(client: Client) -> None:
    """Notes that miss some memory do not claim to know what the kernels do."""
    matrix, x, y = sparse_product(client)
    client.call("cusparseDestroySpMat", matrix)
    memory = client.memory("cusparseSpMV", 1, 0, 0, matrix, x, 0, y, 1, 0, 0)
    assert {kind for kind, _, _ in memory.values()} == {"unknown"}
    assert memory["y.values"][2] == (8, [(4, 8)])


def test_a_failed_call_makes_no_descriptor(client: Client, stand_in: Any) -> None:
    """What a failed call would have written is not read."""
    matrix, x, y = sparse_product(client)
    stand_in.library.let_calls_return(3)
    try:
        client.call("cusparseDnVecSetValues", x, B + 8192)
        client.call("cusparseCreateDnVec", 8, 5, A, 1)  # 8 is no address
    finally:
        stand_in.library.let_calls_return(0)
    assert client.memory("cusparseSpMV", 1, 0, 0, matrix, x, 0, y, 1, 0, 0)["x.values"][1] == A + 64


def test_descriptors_are_forgotten_at_the_end(client: Client) -> None:
    """A descriptor of an earlier interception is unknown."""
    matrix, x, y = sparse_product(client)
    _core.end_library_calls()
    _core.begin_library_calls([str(client.path)])
    assert client.memory("cusparseSpMV", 1, 0, 0, matrix, x, 0, y, 1, 0, 0) == {}


@pytest.mark.parametrize(
    ("type_", "function", "read", "written"),
    [
        (C2C, "cufftExecC2C", ("read", (8, [(30, 8)])), ("write", (8, [(30, 8)]))),
        (C2R, "cufftExecC2R", ("both", (8, [(18, 8)])), ("write", (4, [(30, 4)]))),
        (C2C, "cufftXtExec", ("read", (8, [(30, 8)])), ("write", (8, [(30, 8)]))),
        (C2R, "cufftXtExec", ("both", (8, [(18, 8)])), ("write", (4, [(30, 4)]))),
        (R2C, "cufftXtExec", ("read", (4, [(30, 4)])), ("write", (8, [(18, 8)]))),
    ],
)
def test_a_plan_knows_the_sizes_of_the_transform(
    client: Client, type_: int, function: str, read: tuple[str, Any], written: tuple[str, Any]
) -> None:
    """Three transforms of ten items."""
    client.call("cufftMakePlan1d", 5, 10, type_, 3, 0)
    memory = client.memory(function, 5 | 1 << 40, A, B, 1)
    assert memory == {"input": (read[0], A, read[1]), "output": (written[0], B, written[1])}
    client.call("cufftDestroy", 5)


def test_a_plan_of_embedded_data_has_strides(client: Client) -> None:
    """The advanced layout of cuFFT: two transforms of 3 x 4 items in arrays of 5 x 6 items, every second of them."""
    numbers = ctypes.c_int * 2
    client.call("cufftMakePlanMany", 6, 2, numbers(3, 4), numbers(5, 6), 2, 100, numbers(5, 6), 1, 50, C2C, 2, 0)
    memory = client.memory("cufftExecC2C", 6, A, B, 1)
    assert memory["input"] == ("read", A, (8, [(2, 800), (3, 96), (4, 16)]))
    assert memory["output"] == ("write", B, (8, [(2, 400), (3, 48), (4, 8)]))


def test_a_transform_in_place_reads_and_writes(client: Client) -> None:
    """An unknown plan gives no extents; the work area is used."""
    client.call("cufftSetWorkArea", 9, C)
    assert client.memory("cufftExecC2C", 9, A, A, 1) == {
        "workArea": ("both", C, None),
        "input": ("both", A, None),
    }
    assert client.memory("cufftXtExec", 99, A, B, 1)["input"] == ("unknown", A, None)


def test_a_plan_knows_the_size_of_its_work_area(client: Client) -> None:
    """The size that cuFFT has asked for is the extent."""
    size = ctypes.c_size_t()
    client.call("cufftMakePlan1d", 11, 10, C2C, 3, ctypes.byref(size))
    client.call("cufftSetWorkArea", 11, C)
    assert client.memory("cufftExecC2C", 11, A, B, 1)["workArea"] == ("both", C, (1, [(4096, 1)]))


def test_random_numbers_are_written(client: Client) -> None:
    """The extent is the number of items."""
    zero = ctypes.c_float(0)
    memory = client.memory("curandGenerateNormal", 1, A, 2**33, zero, zero)
    assert memory == {"output": ("write", A, (4, [(2**33, 4)]))}


def test_the_end_of_a_group_has_the_notes_of_its_calls(client: Client) -> None:
    """NCCL launches its kernels at the end of the outermost group."""
    alone = client.memory("ncclAllReduce", A, B, 10, 7, 0, 1, 0x77)
    assert alone == {"send": ("read", A, (4, [(10, 4)])), "receive": ("write", B, (4, [(10, 4)]))}
    client.call("ncclGroupStart")
    client.call("ncclGroupStart")
    client.call("ncclAllReduce", A, B, 10, 8, 0, 1, 0x77)
    assert client.memory("ncclGroupEnd") == {}
    client.call("ncclSend", C, 3, 0, 1, 1, 0x77)
    client.call("ncclGroupEnd")
    ((_, memory),) = client.notes
    assert memory == [
        ("send", "read", A, (8, [(10, 8)])),
        ("receive", "write", B, (8, [(10, 8)])),
        ("send", "read", C, (1, [(3, 1)])),
    ]
    assert client.memory("ncclGroupEnd") == {}


def test_what_a_rank_sends_in_a_broadcast_is_read_by_the_root_only(client: Client) -> None:
    """The call does not say which rank it is; in place, the memory may be read or written."""
    assert client.memory("ncclBroadcast", A, B, 10, 7, 0, 1, 0x77) == {
        "send": ("unknown", A, (4, [(10, 4)])),
        "receive": ("write", B, (4, [(10, 4)])),
    }
    assert client.memory("ncclBroadcast", A, A, 10, 7, 0, 1, 0x77) == {"send": ("unknown", A, (4, [(10, 4)]))}


def test_a_group_on_several_streams_leaves_the_kinds_to_its_kernels(client: Client) -> None:
    """Each stream has a kernel of its own, which uses a part of the memory."""
    client.call("ncclGroupStart")
    client.call("ncclSend", A, 3, 0, 1, 1, 0x77)
    client.call("ncclSend", B, 3, 0, 1, 1, 0x78)
    client.call("ncclGroupEnd")
    ((_, memory),) = client.notes
    assert [kind for _, kind, _, _ in memory] == ["unknown", "unknown"]
    assert [address for _, _, address, _ in memory] == [A, B]


def test_a_group_that_was_open_at_the_end_is_forgotten(client: Client) -> None:
    """A call after the next begin is in no group."""
    client.call("ncclGroupStart")
    client.call("ncclSend", A, 3, 0, 1, 1, 0x77)
    _core.end_library_calls()
    _core.begin_library_calls([str(client.path)])
    client.call("ncclSend", B, 3, 0, 1, 1, 0x77)
    client.call("ncclGroupEnd")
    assert client.notes == [("ncclGroupEnd", [])]
