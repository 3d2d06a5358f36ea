"""The routes by which an array reaches several devices."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.sizes import KIB, MIB
from tcuda.comm._routes import best_sum, best_way, cuts, duration, route

MEASURED = {
    # (devices, bytes): microseconds of (flat, tree, {pieces of a chain})
    (2, 1 * KIB): (11.75, 12.38, {}),
    (3, 1 * KIB): (14.55, 16.37, {}),
    (4, 1 * KIB): (18.99, 20.41, {}),
    (3, 64 * KIB): (15.41, 16.57, {}),
    (4, 64 * KIB): (19.36, 20.61, {}),
    (3, 1 * MIB): (19.85, 24.5, {4: 47.98, 8: 70.34, 16: 132.5}),
    (4, 1 * MIB): (26.81, 27.69, {4: 64.44, 8: 110.41, 16: 204.14}),
    (2, 4 * MIB): (23.02, 23.54, {4: 41.19, 8: 55.56, 16: 104.34}),
    (3, 4 * MIB): (35.7, 36.04, {4: 56.26, 8: 78.75, 16: 140.21}),
    (4, 4 * MIB): (50.75, 46.73, {4: 71.64, 8: 117.71, 16: 206.21}),
    (2, 32 * MIB): (98.33, 99.17, {4: 110.76, 8: 120.26, 16: 138.16}),
    (3, 32 * MIB): (187.23, 190.83, {4: 143.21, 8: 142.23, 16: 164.89}),
    (4, 32 * MIB): (279.5, 195.51, {4: 177.39, 8: 164.96, 16: 223.53}),
    (2, 256 * MIB): (694.77, 694.92, {4: 700.31, 8: 716.12, 16: 748.35}),
    (3, 256 * MIB): (1391.28, 1373.97, {4: 892.13, 8: 829.42, 16: 817.01}),
    (4, 256 * MIB): (2053.99, 1376.06, {4: 1075.87, 8: 922.96, 16: 870.64}),
}
"""Times on four H200s."""

DEVICES = st.integers(1, 64)
SIZES = st.one_of(st.integers(0, 4096), st.integers(0, 1 << 32), st.sampled_from([1 << n for n in range(33)]))


@pytest.mark.parametrize(("devices", "nbytes"), MEASURED)
def test_the_choice_is_at_most_a_tenth_slower_than_the_fastest_route(devices: int, nbytes: int) -> None:
    flat, tree, chains = MEASURED[devices, nbytes]
    way = best_way(devices, nbytes)
    chosen = {"flat": flat, "tree": tree, "chain": chains.get(way.pieces, float("inf"))}[way.kind]
    assert chosen <= 1.1 * min(flat, tree, *chains.values())


@pytest.mark.parametrize("nbytes", [1 * KIB, 1 * MIB, 4 * MIB, 32 * MIB, 256 * MIB])
def test_the_kinds_of_routes_of_four_devices(nbytes: int) -> None:
    kinds = {1 * KIB: "flat", 1 * MIB: "tree", 4 * MIB: "tree", 32 * MIB: "chain", 256 * MIB: "chain"}
    assert best_way(4, nbytes).kind == kinds[nbytes]


@given(DEVICES, SIZES)
def test_every_device_gets_every_byte_once(devices: int, nbytes: int) -> None:
    pieces: list[list[tuple[int, int]]] = [[(0, nbytes)], *([] for _ in range(devices - 1))]
    for source, target, begin, end, to in route(devices, nbytes):
        assert to == begin
        assert any(start <= begin and end <= stop for start, stop in pieces[source]), "the source has the bytes"
        pieces[target].append((begin, end))
    for have in pieces:
        assert have[0][0] == 0
        assert have[-1][1] == nbytes
        assert all(end == begin for (_, end), (begin, _) in itertools.pairwise(have))


@given(st.integers(2, 64), SIZES)
def test_no_other_kind_of_route_is_faster_by_the_model(devices: int, nbytes: int) -> None:
    best = duration(best_way(devices, nbytes), devices, nbytes)
    assert best <= duration(best_way(2, nbytes), devices, nbytes)


@given(st.integers(1, 64), SIZES)
def test_more_devices_take_no_less_time(devices: int, nbytes: int) -> None:
    more = devices + 1
    now, then = (duration(best_way(count, nbytes), count, nbytes) for count in (devices, more))
    assert now <= then or devices <= 2


@given(SIZES, st.integers(1, 64), st.sampled_from([1, 512]))
def test_pieces_follow_each_other(nbytes: int, pieces: int, unit: int) -> None:
    found = cuts(nbytes, pieces, unit)
    assert len(found) <= pieces
    assert sum(end - begin for begin, end in found) == nbytes
    assert all(begin % unit == 0 and begin < end for begin, end in found)


@given(st.integers(2, 64), SIZES)
def test_two_devices_add_without_a_chain(devices: int, nbytes: int) -> None:
    way = best_sum(devices, nbytes)
    assert way.kind in ("flat", "chain")
    assert best_sum(2, nbytes).kind == "flat"
    assert best_sum(devices, 1024).kind == "flat"
