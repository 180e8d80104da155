from .cells import CellSites as CellSites
from .cells import cell_centres as cell_centres
from .cells import cell_names as cell_names
from .graphs import GraphDistance as GraphDistance
from .graphs import road_distance as road_distance
