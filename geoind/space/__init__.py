"""Where things are: projections, sites, the public lattice. The only folder that imports pyproj."""
