"""A small transformer that keeps in memory what its backward pass needs."""

import math

from tcuda import xp


def normalized(x):
    """Return x with a mean of 0 and a variance of 1 in each row, and the scale of each row."""
    centred = x - x.mean(axis=-1, keepdims=True)
    scale = 1 / xp.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5)
    return centred * scale, scale


def normalized_back(gradient, result, scale):
    """Return the gradient of the input of normalized()."""
    mean = gradient.mean(axis=-1, keepdims=True)
    return scale * (gradient - mean - result * (gradient * result).mean(axis=-1, keepdims=True))


def softmax(scores):
    """Return weights that add up to 1 in each row."""
    powers = xp.exp(scores - scores.max(axis=-1, keepdims=True))
    powers /= powers.sum(axis=-1, keepdims=True)
    return powers


def gelu(x):
    """Return the activation of x."""
    return x / (1 + xp.exp(-1.702 * x))


def gelu_back(gradient, x):
    """Return the gradient of the input of gelu()."""
    gate = 1 / (1 + xp.exp(-1.702 * x))
    return gradient * gate * (1 + 1.702 * x * (1 - gate))


def product_back(gradient, x):
    """Return the gradient of the weights by which x was multiplied."""
    return x.reshape(-1, x.shape[-1]).T @ gradient.reshape(-1, gradient.shape[-1])


class Block:
    """Attention and two dense layers, each added to its input."""

    def __init__(self, width):
        """Create the weights."""
        shapes = {"query": (width, width), "key": (width, width), "value": (width, width)}
        shapes |= {"wide": (width, 4 * width), "narrow": (4 * width, width)}
        self.weights = {
            name: xp.random.standard_normal(shape, dtype="float32") / math.sqrt(shape[0])
            for name, shape in shapes.items()
        }
        self.gradients = {}
        self.kept = []

    def forward(self, x):
        """Return the output for x, and keep what backward() needs."""
        return self.feed_forward(x + self.attention(x))

    def attention(self, x):
        """Return for each token a mean of the tokens of its text."""
        x, scale = normalized(x)
        query = x @ self.weights["query"]
        key = x @ self.weights["key"]
        value = x @ self.weights["value"]
        shares = softmax(query @ key.swapaxes(1, 2) / math.sqrt(x.shape[-1]))
        self.kept.append((x, scale, query, key, value, shares))
        return shares @ value

    def feed_forward(self, x):
        """Return x and what two dense layers add."""
        rows, scale = normalized(x)
        hidden = rows @ self.weights["wide"]
        active = gelu(hidden)
        self.kept.append((rows, scale, hidden, active))
        return x + active @ self.weights["narrow"]

    def backward(self, gradient):
        """Return the gradient of the input, and set the gradients of the weights."""
        rows, scale, hidden, active = self.kept.pop()
        self.gradients["narrow"] = product_back(gradient, active)
        inner = gelu_back(gradient @ self.weights["narrow"].T, hidden)
        self.gradients["wide"] = product_back(inner, rows)
        gradient = gradient + normalized_back(inner @ self.weights["wide"].T, rows, scale)
        x, scale, query, key, value, shares = self.kept.pop()
        of_shares = gradient @ value.swapaxes(1, 2)
        of_scores = shares * (of_shares - (of_shares * shares).sum(axis=-1, keepdims=True)) / math.sqrt(x.shape[-1])
        inner = {
            "query": of_scores @ key,
            "key": of_scores.swapaxes(1, 2) @ query,
            "value": shares.swapaxes(1, 2) @ gradient,
        }
        self.gradients |= {name: product_back(part, x) for name, part in inner.items()}
        of_x = sum(part @ self.weights[name].T for name, part in inner.items())
        return gradient + normalized_back(of_x, x, scale)
