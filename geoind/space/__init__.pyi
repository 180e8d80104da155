from .lattice import snap_lonlat as snap_lonlat
