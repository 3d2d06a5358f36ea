"""Programs of CuPy whose allocations ``record_trace.py`` records: inference, learning, sparse work and images.

The weights and the data are random, because only the sizes of the arrays matter. Each program runs from its first to
its last allocation. The sizes and the order of its allocations are the same in every run with one version of CuPy.
"""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_SEED = 0


def generate_with_growing_cache(batches: Sequence[int] = (8, 16, 4), answer: int = 20) -> None:
    """Generate batches of texts by a transformer whose caches of keys and values are concatenated at each token."""
    import cupy as cp

    random = np.random.default_rng(_SEED)
    layers, heads, width, words = 8, 16, 1024, 8192
    weights = [[_weights(cp, width, factor * width) for factor in (3, 1, 4)] for _ in range(layers)]
    back = [_weights(cp, 4 * width, width) for _ in range(layers)]
    embedding = _weights(cp, words, width)

    def split(x: Any) -> Any:
        return x.reshape(*x.shape[:2], heads, width // heads).transpose(0, 2, 1, 3)

    def run(tokens: Any, caches: list[Any]) -> Any:
        x = embedding[tokens]
        for layer, (project, merge, rise) in enumerate(weights):
            query, key, value = (split(part) for part in cp.split(_normal(cp, x) @ project, 3, axis=2))
            if caches[layer] is not None:
                key, value = (cp.concatenate(pair, 2) for pair in zip(caches[layer], (key, value), strict=True))
            caches[layer] = key, value
            scores = query @ key.transpose(0, 1, 3, 2) / math.sqrt(width // heads)
            scores = cp.exp(scores - scores.max(-1, keepdims=True))
            scores /= scores.sum(-1, keepdims=True)
            x = x + (scores @ value).transpose(0, 2, 1, 3).reshape(x.shape) @ merge
            x = x + cp.maximum(_normal(cp, x) @ rise, 0) @ back[layer]
        return (x[:, -1] @ embedding.T).argmax(-1)[:, None]

    for batch in batches:
        caches: list[Any] = [None] * layers
        tokens = cp.asarray(random.integers(0, words, (batch, int(random.integers(64, 256)))))
        for _ in range(answer):
            tokens = run(tokens, caches)


def serve_with_paged_cache(requests: int = 48) -> None:
    """Answer requests of different lengths, up to 24 at once, with caches in pages of 64 tokens."""
    import cupy as cp

    random = np.random.default_rng(_SEED)
    layers, heads, width, page, at_once = 6, 12, 768, 64, 24
    weights = [[_weights(cp, width, factor * width) for factor in (3, 4)] for _ in range(layers)]
    waiting = deque(
        (int(prompt), int(prompt + answer))
        for prompt, answer in zip(random.integers(30, 800, requests), random.geometric(1 / 150, requests), strict=True)
    )
    running: list[tuple[list[Any], list[int]]] = []  # the pages, and the number of tokens now and at the end

    def begin(prompt: int) -> list[Any]:
        pages = [cp.zeros((layers, 2, page, width), cp.float32) for _ in range(0, prompt, page)]
        x = cp.ones((prompt, width), cp.float32)
        for layer, (project, rise) in enumerate(weights):
            projected = _normal(cp, x) @ project
            for place, each in enumerate(pages):
                part = projected[place * page : (place + 1) * page, width:]
                each[layer, 0, : len(part)], each[layer, 1, : len(part)] = part[:, :width], part[:, width:]
            query, key, value = projected.reshape(prompt, 3, heads, width // heads).transpose(1, 2, 0, 3)
            scores = cp.exp(query @ key.transpose(0, 2, 1) / math.sqrt(width // heads))
            scores /= scores.sum(-1, keepdims=True)
            x = x + (scores @ value).transpose(1, 0, 2).reshape(x.shape)
            x = x + cp.maximum(_normal(cp, x) @ rise, 0)[:, :width]
        return pages

    def answer(x: Any, layer: int, pages: list[Any], tokens: int) -> Any:
        keys, values = (cp.concatenate([each[layer, of] for each in pages])[:tokens] for of in range(2))
        scores = cp.exp(keys @ x)
        return (scores / scores.sum()) @ values

    while waiting or running:
        while waiting and len(running) < at_once:
            prompt, end = waiting.popleft()
            running.append((begin(prompt), [prompt, end]))
        x = cp.ones((len(running), width), cp.float32)
        for layer, (_, rise) in enumerate(weights):
            x = _normal(
                cp, x + cp.stack([answer(x[at], layer, each[0], each[1][0]) for at, each in enumerate(running)])
            )
            x = cp.maximum(x @ rise, 0)[:, :width]
        for pages, tokens in running:
            tokens[0] += 32  # a step stands for 32 tokens
            while len(pages) * page < tokens[0]:
                pages.append(cp.zeros((layers, 2, page, width), cp.float32))
        running = [each for each in running if each[1][0] < each[1][1]]


def reinforcement_learning(rollouts: int = 18) -> None:
    """Learn by Q-learning from the images of 64 games, with a replay buffer of the last 12 rollouts."""
    import cupy as cp

    random = np.random.default_rng(_SEED)
    games, side, actions, batch = 64, 84, 6, 128
    parameters = [_weights(cp, 8 * 8 * 4, 32), _weights(cp, 400 * 32, 512), _weights(cp, 512, actions)]
    moments = [[cp.zeros_like(each) for each in parameters] for _ in range(2)]
    targets = [each.copy() for each in parameters]
    buffer: deque[tuple[Any, ...]] = deque(maxlen=12)

    def forward(frames: Any, weights: list[Any]) -> list[Any]:
        x = frames.astype(cp.float32) / 255
        windows = cp.lib.stride_tricks.sliding_window_view(x, (8, 8), axis=(2, 3))[:, :, ::4, ::4]
        columns = windows.transpose(0, 2, 3, 1, 4, 5).reshape(len(x), 400, -1)
        first = cp.maximum(columns @ weights[0], 0)
        second = cp.maximum(first.reshape(len(x), -1) @ weights[1], 0)
        return [columns, first, second, second @ weights[2]]

    def learn() -> None:
        frames, chosen, rewards = buffer[int(random.integers(len(buffer)))]
        at = cp.asarray(random.integers(4, len(frames) - 1, batch))
        game = cp.asarray(random.integers(0, games, batch))
        now, later = (cp.stack([frames[at - back + step, game] for back in range(4)], 1) for step in (0, 1))
        wanted = rewards[at, game] + 0.99 * forward(later, targets)[-1].max(1)
        columns, first, second, values = forward(now, parameters)
        slope = cp.zeros_like(values)
        rows = cp.arange(batch)
        slope[rows, chosen[at, game]] = values[rows, chosen[at, game]] - wanted
        behind = (slope @ parameters[2].T) * (second > 0)
        before = (behind @ parameters[1].T).reshape(first.shape) * (first > 0)
        gradients = [
            cp.tensordot(columns, before, ((0, 1), (0, 1))),
            first.reshape(batch, -1).T @ behind,
            second.T @ slope,
        ]
        for place, gradient in enumerate(gradients):
            mean = moments[0][place] = 0.9 * moments[0][place] + 0.1 * gradient
            square = moments[1][place] = 0.999 * moments[1][place] + 0.001 * gradient * gradient
            parameters[place] = parameters[place] - 1e-4 * mean / (cp.sqrt(square) + 1e-8)

    for _ in range(rollouts):
        frames, chosen, rewards = [], [], []
        for _ in range(int(random.integers(20, 60))):
            frames.append(cp.asarray(random.integers(0, 255, (games, side, side), "u1")))
            if len(frames) >= 4:
                chosen.append(forward(cp.stack(frames[-4:], 1), parameters)[-1].argmax(1))
            else:
                chosen.append(cp.zeros(games, cp.int64))
            rewards.append(cp.asarray(random.random(games, "f4")))
        buffer.append((cp.stack(frames), cp.stack(chosen), cp.stack(rewards)))
        for _ in range(6):
            learn()
        targets = [each.copy() for each in parameters]


def solve_sparse(sides: Sequence[int] = (300, 500, 800, 620, 1000)) -> None:
    """Solve Poisson's equation on grids of growing size, by multigrid cycles and by conjugate gradients."""
    import cupy as cp
    from cupyx.scipy import sparse
    from cupyx.scipy.sparse import linalg

    def laplacian(side: int) -> Any:
        one = sparse.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(side, side), format="csr")
        same = sparse.identity(side, format="csr")
        return (sparse.kron(one, same) + sparse.kron(same, one)).tocsr()

    def coarser(side: int) -> Any:
        half = side // 2
        rows = cp.repeat(cp.arange(half), 2)
        one = sparse.coo_matrix((cp.full(2 * half, 0.5), (rows, cp.arange(2 * half))), shape=(half, side)).tocsr()
        return sparse.kron(one, one).tocsr()

    def cycle(levels: list[tuple[Any, Any, Any]], right: Any) -> Any:
        matrix, inverse, restrict = levels[0]
        x = 0.7 * inverse * right
        for _ in range(2):
            x = x + 0.7 * inverse * (right - matrix @ x)
        if restrict is not None:
            x = x + restrict.T @ cycle(levels[1:], 4 * (restrict @ (right - matrix @ x)))
        return x + 0.7 * inverse * (right - matrix @ x)

    kept = []
    for side in sides:
        matrix = laplacian(side)
        levels: list[tuple[Any, Any, Any]] = []
        while side >= 40:
            restrict = coarser(side)
            levels.append((matrix, 1 / matrix.diagonal(), restrict))
            matrix = (restrict @ matrix @ restrict.T).tocsr()
            side //= 2
        levels.append((matrix, 1 / matrix.diagonal(), None))
        matrix = levels[0][0]
        right = cp.ones(matrix.shape[0])
        x = cp.zeros_like(right)
        for _ in range(6):
            x = x + cycle(levels, right - matrix @ x)
        kept.append(linalg.cg(matrix, right, x0=x, maxiter=20)[0])
        kept.append(sparse.linalg.norm(matrix))


def image_pipeline(tiles: int = 24) -> None:
    """Find and measure the cells in tiles of a stained slide, whose size changes, as a pipeline of cuCIM does."""
    import cupy as cp
    from cupyx.scipy import ndimage

    random = np.random.default_rng(_SEED)
    stains = cp.asarray(np.linalg.inv([[0.65, 0.70, 0.29], [0.07, 0.99, 0.11], [0.27, 0.57, 0.78]]))
    tables = []
    for _ in range(tiles):
        height, width = (int(side) for side in random.integers(384, 1536, 2))
        tile = cp.asarray(random.integers(1, 256, (height, width, 3), "u1"))
        density = -cp.log(tile.astype(cp.float32) / 255)
        nuclei = (density.reshape(-1, 3) @ stains.astype(cp.float32)).reshape(tile.shape)[..., 0]
        smooth = ndimage.gaussian_filter(nuclei, 2)
        background = ndimage.uniform_filter(smooth, 65)
        flat = smooth - background
        counts, edges = cp.histogram(flat, 256)
        below, middles = cp.cumsum(counts), (edges[1:] + edges[:-1]) / 2
        means = cp.cumsum(counts * middles) / cp.maximum(below, 1)
        split = middles[cp.argmax(below * (means - means[-1]) ** 2)]
        mask = ndimage.binary_opening(flat > split, iterations=2, brute_force=True)
        mask = ndimage.binary_fill_holes(mask)
        cells, number = ndimage.label(mask)
        edges_of_cells = ndimage.gaussian_gradient_magnitude(nuclei, 1.5)
        texture = ndimage.gaussian_laplace(nuclei, 2)
        local = ndimage.maximum_filter(smooth, 9) == smooth
        index = cp.arange(1, int(number) + 1)
        measures = [ndimage.sum_labels(cp.ones_like(flat), cells, index)]
        for image in (nuclei, texture):
            measures.append(ndimage.mean(image, cells, index))
            measures.append(ndimage.standard_deviation(image, cells, index))
        measures += [ndimage.maximum(edges_of_cells, cells, index), ndimage.sum_labels(local, cells, index)]
        tables.append(cp.stack([cp.asarray(each, cp.float32) for each in measures], 1))
    cp.concatenate(tables).mean(0)


def _weights(cp: Any, rows: int, columns: int) -> Any:
    return cp.full((rows, columns), 1 / rows, cp.float32)


def _normal(cp: Any, x: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred / cp.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)


ARRAY_PROGRAMS: dict[str, Callable[[], None]] = {
    "kv_generate": generate_with_growing_cache,
    "kv_paged": serve_with_paged_cache,
    "rl_train": reinforcement_learning,
    "sparse_solve": solve_sparse,
    "image_pipeline": image_pipeline,
}
"""The programs by the names of their traces."""
