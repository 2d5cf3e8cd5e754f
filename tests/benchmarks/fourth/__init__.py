"""The fourth set of kernels: kinds from HeCBench, Parboil, PolyBench-GPU and applications, one file per group.

The rules of `second` apply: weft is not tuned for any of them, the Python code is as a scientist writes it for
numba.cuda, and the C++ kernel is as a CUDA programmer writes the same algorithm on the same grid. The reference kernels
in C and for Numba are in reference_kernels/, like those of the other sets.
"""

from suite.case import Case, Work

from fourth import (
    elements,
    finance_newton,
    kalman,
    keys,
    lifting,
    molecules,
    normalization,
    polybench,
    radiology,
    ragged,
    resampling,
    sequences,
    small_matrices,
    sparse,
    surveys,
    textures,
    trees,
    volumes,
)

CASES: tuple[Case, ...] = (
    *molecules.CASES,
    *radiology.CASES,
    *surveys.CASES,
    *sparse.CASES,
    *resampling.CASES,
    *small_matrices.CASES,
    *sequences.CASES,
    *trees.CASES,
    *keys.CASES,
    *polybench.CASES,
    *normalization.CASES,
    *ragged.CASES,
    *textures.CASES,
    *lifting.CASES,
    *volumes.CASES,
    *elements.CASES,
    *finance_newton.CASES,
    *kalman.CASES,
)

TWINS = {
    "Lennard-Jones, neighbor lists": "molecules.lennard_jones",
    "Coulomb potential, bins within a cutoff": "molecules.coulomb",
    "MRI gridding, Q": "series.gridding",
    "photons in layers of tissue": "photons.photons",
    "angular correlation of galaxies": "surveys.correlation",
    "k-means, nearest centers": "surveys.nearest_center",
    "residual in CSR, a warp a row": "ragged.residual",
    "motion search by half pixels": "resampling.motion",
    "affine map of an image": "resampling.affine",
    "eigenvalues by Jacobi's rotations": "small_matrices.eigenvalues",
    "least squares by QR": "small_matrices.fit",
    "Smith-Waterman, affine gaps": "sequences.local_alignment",
    "dynamic time warping in a band": "sequences.warping",
    "gravity by Barnes and Hut": "molecules.gravity",
    "k-mers in a hash table": "keys.count_kmers",
    "xxHash of records": "keys.xxhash32",
    "bicg, transposed matrix by vector": "solvers.bicg_transposed",
    "Gram-Schmidt, a block a matrix": "small_matrices.gram_schmidt",
    "ADI of float64, columns": "solvers.adi_columns",
    "residual and RMS norm of float16": "normalization.add_rms_norm",
    "depthwise convolution, NHWC": "normalization.depthwise",
    "nearest 8 by insertion, a thread a query": "surveys.nearest_distances",
    "softmax of segments, a warp a segment": "ragged.segment_softmax",
    "PageRank, pushes by a thread a node": "ragged.push",
    "local binary patterns, a block a cell": "resampling.patterns",
    "5/3 wavelet by lifting, a block a line": "normalization.lift",
    "cubic B-spline, affine transform of a volume": "resampling.spline",
    "acoustic wave, damped, of fourth order": "volumes.acoustic_step",
    "finite elements, a thread a triangle": "ragged.assemble",
    "implied volatility by Newton": "solvers.implied",
    "Kalman filter, a thread a track": "small_matrices.kalman",
}
"""The file and the function of each kernel's references."""

__all__ = ["CASES", "TWINS", "Case", "Work"]
