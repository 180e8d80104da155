from .overhead import overhead as overhead
from .overhead import overhead_table as overhead_table
from .overhead import plot_retrieval_radius as plot_retrieval_radius
from .points_of_interest import PointsOfInterest as PointsOfInterest
from .points_of_interest import corridor as corridor
from .private_query import PrivateQuery as PrivateQuery
from .private_query import retrieval_radius as retrieval_radius
