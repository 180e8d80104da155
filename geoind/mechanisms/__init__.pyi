from .noise import snap_lonlat as snap_lonlat
from .precision import corrected_epsilon as corrected_epsilon
from .precision import guarantee_of_noise as guarantee_of_noise
