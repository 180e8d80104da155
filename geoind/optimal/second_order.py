"""Second-order cones of three dimensions: x0 >= hypot(x1, x2), with the scaling of Nesterov and Todd.

An element is an array whose first axis is 3; the other axes number the cones. The cone is its own dual, and with
the product x o y = (x.y, x0 y1 + y0 x1, x0 y2 + y0 x2) it is that of the squares. The formulas are those of
Andersen, Dahl and Vandenberghe (Interior-point methods for large-scale cone programming, 2011).
"""

import numpy as np

from geoind.arrays import FloatArray

__all__ = ["Scaling", "divide", "dot", "eigenvalues", "from_eigenvalues", "product", "steepest"]


def dot(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return the scalar product in each cone."""
    return np.asarray(x[0] * y[0] + x[1] * y[1] + x[2] * y[2])


def product(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return x o y."""
    return np.stack([dot(x, y), x[0] * y[1] + y[0] * x[1], x[0] * y[2] + y[0] * x[2]])


def eigenvalues(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return x0 - hypot(x1, x2) and x0 + hypot(x1, x2); an element is inside if both are positive."""
    length = _length(x[1], x[2])
    return x[0] - length, x[0] + length


def from_eigenvalues(low: FloatArray, high: FloatArray, like: FloatArray) -> FloatArray:
    """Return the element with these eigenvalues in the frame of another element."""
    ahead = (high - low) / (2 * np.maximum(_length(like[1], like[2]), np.finfo(float).tiny))
    return np.stack([(low + high) / 2, ahead * like[1], ahead * like[2]])


def divide(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return the z with x o z = y."""
    low, high = eigenvalues(x)
    first = (x[0] * y[0] - x[1] * y[1] - x[2] * y[2]) / (low * high)
    return np.stack([first, (y[1] - first * x[1]) / x[0], (y[2] - first * x[2]) / x[0]])


def steepest(x: FloatArray, change: FloatArray) -> float:
    """Return the largest rate at which a change leads out of a cone; steps up to its inverse stay inside."""
    low, high = eigenvalues(x)
    root = np.sqrt(low * high)
    ahead = (x[0] * change[0] - x[1] * change[1] - x[2] * change[2]) / root
    turn = (ahead + change[0]) / (root + x[0])
    return float(((_length(change[1] - turn * x[1], change[2] - turn * x[2]) - ahead) / root).max())


class Scaling:
    """The symmetric W of each cone with W z = W^-1 s, for s and z strictly inside.

    Parameters
    ----------
    s, z : (3, ...) arrays
    """

    def __init__(self, s: FloatArray, z: FloatArray) -> None:
        (low, high), (least, most) = eigenvalues(s), eigenvalues(z)
        long, wide = np.sqrt(low * high), np.sqrt(least * most)
        s, z = s / long, z / wide
        # A unit vector; W is its quadratic representation, times `size`.
        self.w = np.stack([s[0] + z[0], s[1] - z[1], s[2] - z[2]]) / np.sqrt(2 * (1 + dot(s, z)))
        self.size = np.sqrt(long / wide)

    def inverse(self, x: FloatArray) -> FloatArray:
        """Return W^-1 x."""
        w = self.w
        along = w[1] * x[1] + w[2] * x[2]
        turn = along / (1 + w[0]) - x[0]
        return np.asarray(np.stack([w[0] * x[0] - along, x[1] + turn * w[1], x[2] + turn * w[2]]) / self.size)

    def press(self, x: FloatArray) -> FloatArray:
        """Return W^-2 x."""
        w = self.w
        ahead = 2 * (w[0] * x[0] - w[1] * x[1] - w[2] * x[2])
        pressed = np.stack([ahead * w[0] - x[0], x[1] - ahead * w[1], x[2] - ahead * w[2]])
        return np.asarray(pressed / self.size**2)

    def stiffness(self) -> tuple[FloatArray, ...]:
        """Return the entries 00, 01, 02, 11, 12 and 22 of W^-2."""
        w: FloatArray = self.w
        scale: FloatArray = 1 / self.size**2
        twice = 2 * scale * w
        return (
            twice[0] * w[0] - scale,
            -twice[0] * w[1],
            -twice[0] * w[2],
            twice[1] * w[1] + scale,
            twice[1] * w[2],
            twice[2] * w[2] + scale,
        )


def _length(x: FloatArray, y: FloatArray) -> FloatArray:
    # Several times as fast as np.hypot; the numbers are far from the limits of doubles.
    return np.sqrt(x * x + y * y)
