"""Symmetries of a problem, under which one output represents all its images."""

from dataclasses import dataclass

import numpy as np

from geoind.arrays import FloatArray, IntArray
from geoind.space.sites import Sites

__all__ = ["Symmetry", "symmetry_of"]

TOLERANCE = 1e-13


@dataclass(frozen=True)
class Symmetry:
    """A group of permutations of inputs and outputs that leaves distances, losses and prior unchanged.

    Attributes
    ----------
    inputs : (group, n) array of int
        Image of each input under each element.
    outputs : (group, m) array of int
    """

    inputs: IntArray
    outputs: IntArray

    def orbit_of_inputs(self) -> IntArray:
        """Return the orbit of each input, numbered from 0."""
        return np.unique(self.inputs.min(axis=0), return_inverse=True)[1]

    def representatives(self) -> tuple[IntArray, FloatArray]:
        """Return one output for each orbit, and the sizes of the orbits."""
        chosen, size = np.unique(self.outputs.min(axis=0), return_counts=True)
        return chosen, size.astype(np.float64)

    def columns(self, matrix: FloatArray) -> FloatArray:
        """Return one column for each representative, of the mean of a matrix over the group."""
        chosen, _ = self.representatives()
        total = np.zeros((len(chosen), len(matrix)))
        for image_in, image_out in zip(self.inputs, self.outputs, strict=True):
            total += matrix[image_in[:, None], image_out[chosen]].T
        return total / len(self.inputs)

    def expand(self, columns: FloatArray) -> FloatArray:
        """Return the invariant (n, m) matrix from one column for each representative."""
        chosen, size = self.representatives()
        matrix = np.zeros((self.inputs.shape[1], self.outputs.shape[1]))
        for image_in, image_out in zip(self.inputs, self.outputs, strict=True):
            np.add.at(matrix, (image_in[:, None], image_out[chosen]), columns.T * (size / len(self.inputs)))
        return matrix


def symmetry_of(inputs: Sites, outputs: Sites, apart: FloatArray, loss: FloatArray, mass: FloatArray) -> Symmetry:
    """Return the reflections and quarter turns about the inputs' centre that leave the problem unchanged.

    Candidates come from the coordinates and are verified on the matrices. Other symmetries, and those of records
    that are not points of the plane, are not searched.
    """
    turn = np.array([[0, -1], [1, 0]])
    flip = np.array([[1, 0], [0, -1]])
    # The identity is not verified: the check would fail where two sites have the same location.
    found_in, found_out = [np.arange(len(inputs))], [np.arange(len(outputs))]
    for power in range(4) if inputs.xy.shape[1] == outputs.xy.shape[1] == 2 else ():
        for mirror in (np.eye(2), flip)[power == 0 :]:
            linear = np.linalg.matrix_power(turn, power) @ mirror
            image_in = _permutation(inputs, linear, inputs.xy)
            image_out = _permutation(outputs, linear, inputs.xy)
            if image_in is None or image_out is None:
                continue
            same_prior = np.allclose(mass[image_in], mass, rtol=TOLERANCE, atol=0)
            same_loss = np.allclose(loss[np.ix_(image_in, image_out)], loss, rtol=TOLERANCE, atol=0)
            same_distance = np.allclose(apart[np.ix_(image_in, image_in)], apart, rtol=TOLERANCE, atol=0)
            if same_prior and same_loss and same_distance:
                found_in.append(image_in)
                found_out.append(image_out)
    return Symmetry(np.array(found_in), np.array(found_out))


def _permutation(sites: Sites, linear: FloatArray, around: FloatArray) -> IntArray | None:
    """Return the images of the sites under a linear map about the centre of `around`, None if some is no site."""
    centre = (around.min(axis=0) + around.max(axis=0)) / 2
    wanted = (sites.xy - centre) @ linear.T + centre
    image = sites.nearest(wanted)
    tolerance = 1e-9 * (np.abs(sites.xy - centre).max() + 1e-300)
    fits = np.abs(sites.xy[image] - wanted).max() <= tolerance and len(np.unique(image)) == len(sites)
    return image if fits else None
