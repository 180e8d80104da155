import numpy as np

from geoind import Channel, Grid


def geometric(n, *, epsilon):
    """Return the truncated geometric mechanism on n sites one metre apart."""
    sites = Grid(0, 0, cell=1, columns=n, rows=1)
    steps = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    ends = np.full(n, (1 - np.exp(-epsilon)) / (1 + np.exp(-epsilon)))
    ends[[0, -1]] = 1 / (1 + np.exp(-epsilon))
    return Channel(sites, sites, ends * np.exp(-epsilon * steps))
