from .counts import ReleasedCounts as ReleasedCounts
from .counts import release_counts as release_counts
from .numbers import ReleasedNumber as ReleasedNumber
from .numbers import release_mean as release_mean
from .numbers import release_quantile as release_quantile
from .numbers import release_sum as release_sum
from .opendp_query import release_query as release_query
