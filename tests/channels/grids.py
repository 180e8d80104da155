"""Grids of every size, near the origin and at the coordinates of a national grid."""

from hypothesis import strategies as st

from geoind import Grid


@st.composite
def grids(draw: st.DrawFn) -> Grid:
    """Return a grid of at most 8 x 8 cells, from a tenth of a millimetre to a hundred kilometres wide."""
    size = st.integers(1, 8)
    place = st.one_of(st.just(0.0), st.floats(-1000, 1000), st.floats(-1e8, 1e8))
    return Grid(draw(place), draw(place), cell=10 ** draw(st.floats(-4, 5)), columns=draw(size), rows=draw(size))
