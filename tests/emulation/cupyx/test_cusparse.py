"""``cupyx.cusparse``: descriptors, which libraries import to pickle sparse matrices, conversions and products."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from tcuda.emulation import cupyx, xp

pytestmark = pytest.mark.emulated

cusparse = cupyx.cusparse
MatDescriptor = cusparse.MatDescriptor
sparse = cupyx.scipy.sparse
DENSE = np.asarray([[0.0, 2.0, 0.0], [3.0, 0.0, 4.0]])


def matrix(format: str = "csr", dense: Any = DENSE) -> Any:
    return getattr(sparse, f"{format}_matrix")(xp.asarray(dense))


def column_major(host: Any) -> Any:
    return xp.asarray(host, order="F")


def test_a_descriptor_can_be_made_set_and_pickled() -> None:
    descriptor = MatDescriptor.create()
    assert descriptor.descriptor
    assert descriptor.descriptor != MatDescriptor.create().descriptor
    descriptor.set_mat_type(3)
    descriptor.set_mat_index_base(1)
    descriptor.set_mat_fill_mode(1)
    descriptor.set_mat_diag_type(1)
    assert type(pickle.loads(pickle.dumps(descriptor))) is MatDescriptor


@pytest.mark.parametrize("name", ["set_mat_type", "set_mat_index_base", "set_mat_fill_mode", "set_mat_diag_type"])
@pytest.mark.parametrize("value", [-1, 4])
def test_a_setting_that_cusparse_does_not_have_is_refused(name: str, value: int) -> None:
    with pytest.raises(RuntimeError, match=f"CUSPARSE_STATUS_INVALID_VALUE: .* got {value}"):
        getattr(MatDescriptor.create(), name)(value)


@pytest.mark.parametrize("format", ["csr", "csc", "coo"])
@pytest.mark.parametrize("dtype", ["f", "d", "F", "D"])
def test_matrices_become_dense_and_sparse(format: str, dtype: str) -> None:
    made = cusparse.denseToSparse(column_major(DENSE.astype(dtype)), format)
    assert (made.format, made.dtype, made.nnz, made.has_canonical_format) == (format, dtype, 3, True)
    dense = cusparse.sparseToDense(made)
    assert dense.flags.f_contiguous
    np.testing.assert_array_equal(dense.get(), DENSE.astype(dtype))
    out = xp.empty(DENSE.shape, dtype, order="F")
    assert cusparse.sparseToDense(made, out) is out
    np.testing.assert_array_equal(out.get(), DENSE.astype(dtype))


def test_coordinates_become_rows() -> None:
    x = matrix("coo")
    made = cusparse.coo2csr(x)
    assert (made.format, made.indptr.tolist(), made.indices.tolist()) == ("csr", [0, 1, 3], [1, 0, 2])
    assert made.data is x.data
    assert cusparse.coo2csr(sparse.coo_matrix((2, 3))).indptr.tolist() == [0, 0, 0]


def test_rows_and_columns_are_sorted_in_place() -> None:
    for format, sort in (("csr", cusparse.csrsort), ("csc", cusparse.cscsort)):
        kind = getattr(sparse, f"{format}_matrix")
        x = kind(
            (xp.asarray([1.0, 2.0]), xp.asarray([1, 0]), xp.asarray([0, 2])),
            shape=(1, 2)[:: 1 if format == "csr" else -1],
        )
        sort(x)
        assert (x.indices.tolist(), x.data.tolist()) == ([0, 1], [2.0, 1.0])


@pytest.mark.parametrize("format", ["csr", "csc", "coo"])
@pytest.mark.parametrize("transposed", [False, True])
def test_products_with_vectors_and_arrays(format: str, transposed: bool) -> None:
    a = matrix(format)
    dense = DENSE.T if transposed else DENSE
    x = np.arange(dense.shape[1], dtype=float)
    y = xp.ones(dense.shape[0])
    np.testing.assert_allclose(cusparse.spmv(a, xp.asarray(x), transa=transposed).get(), dense @ x)
    assert cusparse.spmv(a, xp.asarray(x), y, alpha=2, beta=3, transa=transposed) is y
    np.testing.assert_allclose(y.get(), 2 * (dense @ x) + 3)
    b = np.arange(2.0 * dense.shape[1]).reshape(-1, 2)
    made = cusparse.spmm(a, column_major(b), alpha=2, transa=transposed)
    assert made.flags.f_contiguous
    np.testing.assert_allclose(made.get(), 2 * (dense @ b))
    c = column_major(np.ones((dense.shape[0], 2)))
    assert cusparse.spmm(a, column_major(b.T), c, beta=-1, transa=transposed, transb=True) is c
    np.testing.assert_allclose(c.get(), dense @ b - 1)


def test_products_and_sums_of_sparse_matrices() -> None:
    a, b = matrix(), matrix(dense=DENSE.T)
    np.testing.assert_allclose(cusparse.spgemm(a, b, alpha=2).toarray().get(), 2 * (DENSE @ DENSE.T))
    np.testing.assert_allclose(cusparse.csrgeam2(a, a, alpha=2, beta=-3).toarray().get(), -DENSE)


REFUSED = {
    "whole numbers": (ValueError, "unsupported dtype", lambda: cusparse.denseToSparse(xp.ones((2, 2), int))),
    "one axis": (ValueError, "expected 2-D", lambda: cusparse.denseToSparse(xp.ones(2))),
    "a format": (TypeError, "unsupported format", lambda: cusparse.denseToSparse(xp.ones((2, 2)), "dia")),
    "out in rows": (ValueError, "F-contiguous", lambda: cusparse.sparseToDense(matrix(), xp.ones((2, 3)))),
    "out of another type": (
        ValueError,
        "dtype",
        lambda: cusparse.sparseToDense(matrix(), column_major(np.ones((2, 3), "f"))),
    ),
    "a dense matrix": (TypeError, "unsupported type", lambda: cusparse.spmv(xp.ones((2, 3)), xp.ones(3))),
    "a short vector": (ValueError, "dimension mismatch", lambda: cusparse.spmv(matrix(), xp.ones(2))),
    "a short result": (ValueError, "dimension mismatch", lambda: cusparse.spmv(matrix(), xp.ones(3), xp.ones(3))),
    "an array in rows": (ValueError, "F-contiguous", lambda: cusparse.spmm(matrix(), xp.ones((3, 2)))),
    "a vector": (ValueError, "expected 2-D", lambda: cusparse.spmm(matrix(), xp.ones(3))),
    "columns": (TypeError, "unsupported type", lambda: cusparse.spgemm(matrix(), matrix("csc", DENSE.T))),
    "other shapes": (ValueError, "mismatched shape", lambda: cusparse.spgemm(matrix(), matrix())),
    "a sum of other shapes": (
        ValueError,
        "inconsistent shapes",
        lambda: cusparse.csrgeam2(matrix(), matrix(dense=DENSE.T)),
    ),
}


@pytest.mark.parametrize(("error", "text", "call"), REFUSED.values(), ids=REFUSED)
def test_what_cusparse_refuses_is_refused(error: type[Exception], text: str, call: Any) -> None:
    with pytest.raises(error, match=text):
        call()
