"""The program of least loss at a given epsilon: an interior-point method and its reductions."""
