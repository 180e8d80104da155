"""Several reports at once.

The laws, each with a test:

- **Sequential** (`compose`): two reports about the same truth cost the sum of their epsilons.
- **Post-processing** (`channel @ step`): what happens to a report afterwards costs nothing.
- **Parallel**: independent reports about different persons (or disjoint parts of a database) cost the larger of
  the epsilons, in the metric that adds up the persons' distances.
- **Group**: places k steps apart are protected k times less than neighbours; k persons who move together by d each
  cost k * epsilon * d.
"""

from geoind.channels.channel import Channel
from geoind.errors import SitesMismatchError
from geoind.space.sites import Places, same_sites

__all__ = ["compose"]


def compose(first: Channel, second: Channel) -> Channel:
    """Return the channel whose report is the pair of both reports about the same truth.

    Its epsilon is at most the sum of the two, and measured like that of any channel.

    Parameters
    ----------
    first, second : Channel
        With the same inputs.

    Returns
    -------
    Channel
        Report number `i * len(second.outputs) + j` stands for the pair (i, j); its place is their midpoint.

    Examples
    --------
    >>> from geoind import randomised_response
    >>> coin = randomised_response(2, epsilon=0.5)
    >>> round(compose(coin, coin).epsilon, 9)
    1.0
    """
    if not same_sites(first.inputs, second.inputs):
        raise SitesMismatchError("both channels must have the same inputs")
    matrix = first.matrix[:, :, None] * second.matrix[:, None, :]
    if (columns := first.outputs.xy.shape[1]) != second.outputs.xy.shape[1]:
        raise SitesMismatchError("the reports of both channels must have the same number of columns")
    places = (first.outputs.xy[:, None] + second.outputs.xy) / 2
    return Channel(first.inputs, Places(places.reshape(-1, columns)), matrix.reshape(len(first.inputs), -1))
