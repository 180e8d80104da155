from .graphs import GraphDistance as GraphDistance
from .graphs import road_distance as road_distance
from .lattice import snap_lonlat as snap_lonlat
