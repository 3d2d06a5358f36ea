"""``cupyx.scipy.sparse``: sparse matrices of emulated devices, compared with SciPy's."""

from __future__ import annotations

import operator
import pickle

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.csgraph
import scipy.sparse.linalg

import tcuda
from tcuda.emulation import xp
from tcuda.emulation.cupyx import scipy as device_scipy
from tcuda.emulation.cupyx.scipy import sparse

pytestmark = [pytest.mark.emulated, pytest.mark.usefixtures("memory_comes_back")]

DENSE = np.array([[0.0, 2, 0, -1], [3, 0, 0, 0], [0, 0, 5, 4]])
FORMATS = ("coo", "csc", "csr")


def made(format: str, kind: str = "matrix", dense: np.ndarray = DENSE):
    """Return the same matrix on the device and on the host."""
    name = f"{format}_{kind}"
    return getattr(sparse, name)(xp.asarray(dense)), getattr(scipy.sparse, name)(dense)


def assert_same(found, wanted):
    """Compare a result on the device with SciPy's: values, formats and dtypes."""
    if isinstance(wanted, tuple):
        for one, other in zip(found, wanted, strict=True):
            assert_same(one, other)
    elif scipy.sparse.issparse(wanted):
        assert sparse.issparse(found)
        assert isinstance(found, sparse.sparray) == isinstance(wanted, scipy.sparse.sparray)
        assert (found.shape, found.format, found.dtype) == (wanted.shape, wanted.format, wanted.dtype)
        np.testing.assert_allclose(found.toarray().get(), wanted.toarray())
    else:
        assert isinstance(found, xp.ndarray)
        np.testing.assert_allclose(found.get(), np.asarray(wanted))
        assert found.dtype == np.asarray(wanted).dtype


@pytest.mark.parametrize("kind", ["matrix", "array"])
@pytest.mark.parametrize("format", FORMATS)
def test_formats_are_converted_to_each_other(format, kind):
    ours, theirs = made(format, kind)
    for other in FORMATS:
        assert_same(ours.asformat(other), theirs.asformat(other))
    assert_same(ours.T.tocsr(), theirs.T.tocsr())
    assert_same(ours.toarray(), theirs.toarray())
    assert type(ours.get()) is type(theirs)
    assert (abs(ours.get() - theirs)).sum() == 0
    assert pickle.loads(pickle.dumps(ours)).nnz == ours.nnz


def test_arrays_of_the_device_are_shared_as_in_cupy():
    data, indices, indptr = xp.array([1.0, 2]), xp.array([0, 1], "i"), xp.array([0, 1, 2], "i")
    a = sparse.csr_matrix((data, indices, indptr), shape=(2, 3))
    assert a.data is data
    assert a.T.data is data
    assert a.copy().data is not data
    data[0] = 7
    assert a[0, 0] == 7


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    "compute",
    [
        lambda a, lib: a + a.tocsc(),
        lambda a, lib: (a - 2 * a).tocsr(),
        lambda a, lib: (a @ a.T).tocsr(),
        lambda a, lib: a @ lib.ones(4),
        lambda a, lib: a @ lib.ones((4, 2)),
        lambda a, lib: lib.ones((2, 3)) @ a,
        lambda a, lib: a * lib.arange(4.0),
        lambda a, lib: a.multiply(a).tocsr(),
        lambda a, lib: a / 2,
        lambda a, lib: a.maximum(a.T.T).tocsr(),
        lambda a, lib: a.sum(),
        lambda a, lib: a.sum(axis=0),
        lambda a, lib: a.mean(axis=1),
        lambda a, lib: a.max(),
        lambda a, lib: a.min(axis=1),
        lambda a, lib: a.argmax(axis=0),
        lambda a, lib: a.diagonal(),
        lambda a, lib: a.tocsr().power(2),
        lambda a, lib: abs(a).sqrt().tocsr(),
        lambda a, lib: a.reshape(4, 3).tocsr(),
    ],
)
def test_operations_give_what_scipy_gives(format, compute):
    ours, theirs = made(format)
    if format != "csr" and compute(theirs, np) is not None and scipy.sparse.issparse(compute(theirs, np)):
        assert_same(compute(ours, xp).tocsr(), compute(theirs, np).tocsr())
    else:
        assert_same(compute(ours, xp), compute(theirs, np))


@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge"])
@pytest.mark.filterwarnings("ignore:Comparing")
def test_comparisons_give_sparse_bools(name):
    ours, theirs = made("csr")
    compare = getattr(operator, name)
    assert_same(compare(ours, 2.0), compare(theirs, 2.0))
    assert_same(compare(ours, ours.T.T), compare(theirs, theirs))


@pytest.mark.parametrize("format", ["csc", "csr"])
@pytest.mark.parametrize(
    "key",
    [
        0,
        -1,
        (1, 0),
        (0, slice(None)),
        (slice(0, 2), slice(1, 4, 2)),
        [2, 0],
        ([0, 2], [1, 3]),
        np.array([True, False, True]),
    ],
)
def test_elements_are_selected(format, key):
    ours, theirs = made(format)
    wanted = theirs[key]
    assert_same(ours[key], wanted if scipy.sparse.issparse(wanted) else np.asarray(wanted))


@pytest.mark.parametrize("format", ["csc", "csr"])
@pytest.mark.filterwarnings("ignore:Changing the sparsity")
def test_elements_are_set(format):
    ours, theirs = made(format)
    for key, value in [((0, 0), 9.0), ((slice(None), 2), 1.0), (([0, 1], [3, 3]), [6.0, 7.0])]:
        ours[key] = value
        theirs[key] = value
    ours.setdiag(xp.array([1.0, 2.0]))
    theirs.setdiag([1.0, 2.0])
    assert_same(ours, theirs)
    ours.data[:] = 0
    ours.eliminate_zeros()
    assert ours.nnz == 0


def test_elements_that_are_stored_twice_are_summed():
    places = xp.array([0, 0, 1], "i"), xp.array([1, 1, 0], "i")
    a = sparse.coo_matrix((xp.array([1.0, 2.0, 4.0]), places), shape=(2, 2))
    assert a.nnz == 3
    assert a.tocsr().nnz == 2
    a.sum_duplicates()
    assert (a.row.tolist(), a.col.tolist(), a.data.tolist()) == ([0, 1], [1, 0], [3, 4])
    b = sparse.csr_matrix((xp.array([1.0, 2.0]), xp.array([1, 1], "i"), xp.array([0, 2], "i")), shape=(1, 3))
    assert not b.has_canonical_format
    assert b.max() == 3
    assert b.has_canonical_format


@pytest.mark.parametrize(
    "build",
    [
        lambda s, a, lib: s.hstack([a, a]),
        lambda s, a, lib: s.vstack([a, a]),
        lambda s, a, lib: s.bmat([[a, None], [None, a]], format="csr"),
        lambda s, a, lib: s.block_diag([a, a], format="csr"),
        lambda s, a, lib: s.kron(a, a, format="csr"),
        lambda s, a, lib: s.kronsum(a @ a.T, a @ a.T, format="csr"),
        lambda s, a, lib: s.tril(a, format="csr"),
        lambda s, a, lib: s.triu(a, k=1, format="csr"),
        lambda s, a, lib: s.eye(3, 4, k=1, format="csr"),
        lambda s, a, lib: s.identity(3, format="csc"),
        lambda s, a, lib: s.diags([lib.ones(3), lib.ones(2)], [0, 1], format="csr"),
        lambda s, a, lib: s.spdiags(lib.arange(8.0).reshape(2, 4), lib.array([0, -1]), 4, 4),
        lambda s, a, lib: s.diags_array([lib.ones(3)], offsets=[0], format="csr"),
    ],
)
def test_matrices_are_built_as_scipy_builds_them(build):
    ours, theirs = made("csr")
    found, wanted = build(sparse, ours, xp), build(scipy.sparse, theirs, np)
    assert_same(found.tocsr(), wanted.tocsr())


def test_random_matrices_have_the_density():
    a = sparse.random(20, 30, 0.1, format="csr", random_state=3)
    assert (a.shape, a.nnz, a.format) == ((20, 30), 60, "csr")
    assert sparse.find(a)[2].min() >= 0


SYSTEM = np.array([[4.0, 1, 0], [1, 3, 1], [0, 1, 5]])
RIGHT = np.array([1.0, 2, 3])


@pytest.mark.parametrize("name", ["cg", "cgs", "gmres", "bicgstab", "minres"])
@pytest.mark.parametrize("as_operator", [False, True])
def test_systems_are_solved_step_by_step(name, as_operator):
    a = sparse.csr_matrix(xp.asarray(SYSTEM))
    called = []
    given = a
    if as_operator:
        given = sparse.linalg.LinearOperator(a.shape, matvec=lambda x: called.append(x) or a @ x, dtype=a.dtype)
    x, info = getattr(sparse.linalg, name)(given, xp.asarray(RIGHT))
    assert info == 0
    np.testing.assert_allclose(x.get(), np.linalg.solve(SYSTEM, RIGHT), rtol=1e-4)
    assert all(isinstance(each, xp.ndarray) for each in called)
    assert bool(called) == as_operator


def test_systems_are_solved_at_once():
    a, b = sparse.csr_matrix(xp.asarray(SYSTEM)), xp.asarray(RIGHT)
    wanted = np.linalg.solve(SYSTEM, RIGHT)
    lu = sparse.linalg.splu(a)
    for x in (sparse.linalg.spsolve(a, b), lu.solve(b), lu.solve(b, "T"), sparse.linalg.factorized(a)(b)):
        np.testing.assert_allclose(x.get(), wanted)
    np.testing.assert_allclose(sparse.linalg.spilu(a, fill_factor=1).solve(b).get(), wanted, rtol=0.1)
    assert isinstance(lu.L, sparse.csr_matrix)
    lower = sparse.linalg.spsolve_triangular(a, b, lower=True)
    np.testing.assert_allclose(lower.get(), np.linalg.solve(np.tril(SYSTEM), RIGHT))
    np.testing.assert_allclose(sparse.linalg.lsmr(a, b)[0].get(), wanted, rtol=1e-4)
    np.testing.assert_allclose(sparse.linalg.lsqr(a, b)[0].get(), wanted)
    with pytest.warns(sparse.SparseEfficiencyWarning):
        sparse.linalg.spsolve(a.tocsc(), b)


def test_eigenvalues_and_singular_values():
    a = sparse.csr_matrix(xp.asarray(SYSTEM))
    values, vectors = sparse.linalg.eigsh(a, k=2)
    np.testing.assert_allclose(values.get(), np.linalg.eigvalsh(SYSTEM)[1:])
    np.testing.assert_allclose((a @ vectors).get(), (vectors * values).get(), atol=1e-8)
    s = sparse.linalg.svds(a, k=1, return_singular_vectors=False)
    np.testing.assert_allclose(s.get(), np.linalg.svd(SYSTEM)[1][:1])
    assert_same(sparse.linalg.norm(a, axis=0), np.linalg.norm(SYSTEM, axis=0))
    found, _ = sparse.linalg.lobpcg(a, xp.asarray(np.eye(3, 1)))
    np.testing.assert_allclose(found.get(), np.linalg.eigvalsh(SYSTEM)[-1:], rtol=1e-4)


def test_operators_are_combined():
    a = sparse.linalg.aslinearoperator(sparse.csr_matrix(xp.asarray(SYSTEM)))
    x = xp.asarray(RIGHT)
    wanted = SYSTEM @ SYSTEM @ RIGHT + 2 * SYSTEM.T @ RIGHT
    np.testing.assert_allclose(((a @ a + 2 * a.H) @ x).get(), wanted)
    np.testing.assert_allclose(((a**2 - -2 * a.T) @ x).get(), wanted)


def test_connected_components():
    graph = np.array([[0.0, 1, 0], [0, 0, 0], [0, 0, 0]])
    count, labels = sparse.csgraph.connected_components(sparse.csr_matrix(xp.asarray(graph)))
    assert (count, labels.tolist()) == (2, [0, 0, 1])
    assert sparse.csgraph.connected_components(xp.asarray(graph), connection="strong", return_labels=False) == 3


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda a: sparse.csr_matrix(DENSE), ValueError),
        (lambda a: sparse.coo_matrix(DENSE), TypeError),
        (lambda a: sparse.csr_matrix(xp.ones((2, 2), int)), ValueError),
        (lambda a: sparse.csr_matrix(xp.ones((2, 2, 2))), ValueError),
        (lambda a: sparse.csr_matrix(a).astype(int).tocsc().get() @ a, TypeError),
        (lambda a: a @ xp.ones(7), ValueError),
        (lambda a: a == a.T, ValueError),
        (lambda a: a + 1, NotImplementedError),
        (lambda a: a.todia(), NotImplementedError),
        (lambda a: a[9, 0], IndexError),
        (lambda a: a.sum(axis=5), ValueError),
        (lambda a: a.max(out=xp.ones(())), ValueError),
        (lambda a: len(a), TypeError),
        (lambda a: bool(a), ValueError),
        (lambda a: a**2, TypeError),
        (lambda a: sparse.linalg.spsolve(a, xp.ones(3)), ValueError),
        (lambda a: sparse.linalg.norm(a, 2), NotImplementedError),
        (lambda a: sparse.linalg.eigsh(a @ a.T, k=3), ValueError),
        (lambda a: np.asarray(a.data), TypeError),
    ],
)
def test_refusals_are_those_of_cupy(call, error):
    ours, _ = made("csr")
    with pytest.raises(error):
        call(ours)


def test_modules_know_sparse_matrices():
    ours, theirs = made("csr", "array")
    assert xp.get_array_module(ours) is xp
    assert device_scipy.get_array_module(ours) is device_scipy
    assert xp.get_array_module(theirs) is np


def test_the_arrays_of_a_matrix_lie_in_memory_of_the_device():
    before = tcuda.memory_allocated()
    places = xp.arange(1000, dtype="i")
    a = sparse.csr_matrix((xp.ones(1000), places, xp.array([0, 1000], "i")), shape=(1, 1000))
    held = a.data.nbytes + a.indices.nbytes
    assert held <= tcuda.memory_allocated() - before < held + 3000
    assert a.device == xp.cuda.Device()
    double = a + a
    assert tcuda.memory_allocated() - before > 2 * held
    del a, double, places
    assert tcuda.memory_allocated() == before


def test_a_conversion_with_more_indices_than_the_device_holds_is_out_of_memory():
    wide = sparse.csr_matrix((xp.ones(1), xp.zeros(1, "q"), xp.array([0, 1], "q")), shape=(1, 2**40))
    with pytest.raises(tcuda.OutOfMemoryError):
        wide.tocsc()


WIDE = 2**32
"""A number of columns for each of which a device has no room for a number."""


def wide(columns, rows=1):
    """Return a matrix with ``WIDE`` columns and the elements 1, 2, 3, ... in ``columns`` of the first row."""
    ends = xp.array([0] + [len(columns)] * rows, "q")
    return sparse.csr_matrix((xp.arange(1.0, 1 + len(columns)), xp.array(columns, "q"), ends), shape=(rows, WIDE))


def test_a_product_needs_memory_for_the_elements_only():
    left = sparse.csr_matrix(xp.asarray([[2.0], [0.0]]))
    product = left @ wide([WIDE - 1, 5])
    assert (product.shape, product.indices.dtype, product.nnz) == ((2, WIDE), np.int64, 2)
    assert dict(zip(product.indices.tolist(), product.data.tolist(), strict=True)) == {WIDE - 1: 2.0, 5: 4.0}
    assert (left @ wide([7, 7])).data.tolist() == [6.0]


def test_columns_are_selected_without_memory_for_the_others():
    a = wide([WIDE - 1, 5], rows=2)
    chosen = a[:, [5, 4, WIDE - 1, 5]]
    assert chosen.toarray().tolist() == [[2.0, 0, 1, 2], [0, 0, 0, 0]]
    assert chosen.has_sorted_indices
    assert a.T[[WIDE - 1]].toarray().tolist() == [[1.0, 0]]
    assert a[[0, 1], [5, 5]].get().tolist() == [[2.0, 0]]


def test_diagonals_of_a_tall_matrix_become_columns():
    tall = sparse.dia_matrix((xp.ones((1, 2)), xp.array([0], "i")), shape=(WIDE, 2)).tocsc()
    assert (tall.nnz, tall.indices.dtype, tall.indices.tolist()) == (2, np.int64, [0, 1])


@pytest.mark.parametrize("format", ["csr", "csc"])
def test_arrays_of_indices_wrap_around(format):
    ours, theirs = made(format)
    assert_same(ours[[4]], theirs[[1]])
    assert_same(ours[:, xp.array([-5, 5])], theirs[:, [3, 1]])
    assert_same(ours[xp.array([1, 0, -4]), :], theirs[[1, 0, 2], :])
    assert_same(ours[..., xp.array([5, 4])], theirs[:, [1, 0]])
    assert_same(ours[[3, 0], [1, 7]], theirs[[0, 0], [1, 3]])
    ours[[4], [4]] = 9.0
    assert ours[1, 0] == 9.0
    with pytest.raises(IndexError):
        ours[3]


def test_blocks_and_conversions_keep_long_indices_and_their_order():
    places = xp.arange(3)
    a = sparse.csr_matrix._from_parts(xp.ones(3), places, xp.arange(4), (3, 3), has_canonical_format=True)
    assert a.indices.dtype == np.int64
    assert sparse.hstack([a, a]).tocsr().indices.dtype == np.int64
    assert sparse.bmat([[a, None], [None, a]]).col.dtype == np.int64
    assert sparse.bmat([[a.astype("f"), xp.ones((3, 1), "f")]]).row.dtype == np.int64
    assert a.tocoo().has_canonical_format
    assert a.tocsc()._has_canonical_format
    assert not sparse.csr_matrix((xp.ones(2), xp.array([1, 0]), xp.array([0, 2]))).tocoo().has_canonical_format


def test_work_whose_size_is_known_is_captured(captured):
    a, x = made("csr")[0], xp.ones(4)
    a.sum_duplicates()
    result, launch = captured(lambda: a @ x)
    launch()
    assert result.tolist() == DENSE.sum(axis=1).tolist()
    a.data *= 2
    launch()
    assert result.tolist() == (2 * DENSE.sum(axis=1)).tolist()


def test_work_that_needs_contents_cannot_be_captured(captured):
    a = made("csr")[0]
    for call in (lambda: a @ a.T, lambda: a[0], lambda: sparse.csr_matrix(xp.ones((2, 2)))):
        with pytest.raises(RuntimeError, match="capturing"):
            captured(call)


def test_work_waits_for_the_stream_only_if_sizes_depend_on_contents():
    a, x = made("csr")[0], xp.ones(4)
    a.sum_duplicates()
    clock = tcuda.emulation.clock()
    begun = clock.now()
    tcuda._sleep(10_000_000)
    result = a @ x
    (a * 2).sum(axis=0)
    assert clock.now() - begun < 9_000_000
    a @ a.T
    assert clock.now() - begun > 9_000_000
    assert result.tolist() == DENSE.sum(axis=1).tolist()


def test_a_stream_sees_what_it_has_written_before():
    stream = tcuda.Stream()
    with tcuda.stream(stream):
        a = made("csr")[0]
        tcuda._sleep(1_000_000)
        a.data *= 3
        square = a @ a.T
        row = a.sum(axis=1)
    stream.synchronize()
    assert square.toarray().tolist() == (9 * DENSE @ DENSE.T).tolist()
    assert row.ravel().tolist() == (3 * DENSE.sum(axis=1)).tolist()


def test_rows_and_columns_are_repeated_where_cupy_repeats_them():
    ours, _ = made("csr")
    assert ours.maximum(ours[1]).toarray().tolist() == np.maximum(DENSE, DENSE[1]).tolist()
    assert (ours > ours[:, 0]).toarray().tolist() == (DENSE[:, :1] < DENSE).tolist()
    with pytest.raises(ValueError, match="inconsistent"):
        ours / ours[1]


@pytest.mark.eager  # the late schedule finds the indices when the work is done
@pytest.mark.parametrize("format", ["csr", "csc"])
@pytest.mark.parametrize(
    ("indices", "indptr", "words"),
    [
        ([0, 3], [0, 1, 2, 2], "from 0 to 2; found 3"),
        ([0, 2**31 - 1], [0, 1, 2, 2], "from 0 to 2; found 2147483647"),
        ([-1, 0], [0, 1, 2, 2], "from 0 to 2; found -1"),
        ([0, 1], [0, 2**31 - 1, 1, 2], "begins with 0 and never decreases"),
        ([0, 1], [0, -(2**31), 1, 2], "begins with 0 and never decreases"),
    ],
)
def test_indices_beyond_the_matrix_are_refused(format, indices, indptr, words):
    parts = (xp.ones(2), xp.asarray(indices, np.int32), xp.asarray(indptr, np.int32))
    matrix = getattr(sparse, f"{format}_matrix")(parts, shape=(3, 3))
    for use in (
        lambda: matrix.toarray(),
        lambda: matrix.tocoo(),
        lambda: matrix.T @ xp.ones(3),
        lambda: matrix @ matrix,
        lambda: matrix.sum(0),
    ):
        with pytest.raises(ValueError, match=words):
            use()
