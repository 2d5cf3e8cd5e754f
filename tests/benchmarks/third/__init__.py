"""The third set of kernels, for the CPU alone: forms that the other two do not have, one file per group.

They come from Rodinia, the CUDA samples, and what courses have their students write, in the form that is usual there.
Each was written before it was timed, and none is changed to suit weft. Their reference kernels in C are in
reference_kernels/, like those of the other sets; there are none for Numba. A case that launches many kernels is a host
function (`forms.Host`).
"""

from suite.case import Case, Work

from third import chances, elimination, fields, filters, graphs, grids, layers, orders, particles, transforms

CASES: tuple[Case, ...] = (
    *grids.CASES,
    *layers.CASES,
    *elimination.CASES,
    *filters.CASES,
    *particles.CASES,
    *graphs.CASES,
    *orders.CASES,
    *fields.CASES,
    *transforms.CASES,
    *chances.CASES,
)

TWINS = {
    "hotspot3D": "rodinia_grids.hotspot3d",
    "SRAD, coefficients": "rodinia_grids.srad1",
    "SRAD, update": "rodinia_grids.srad2",
    "backprop, layer forward": "layers.layerforward",
    "backprop, adjust weights": "layers.adjust_weights",
    "max pooling, 2x2": "layers.max_pool",
    "im2col, 3x3": "layers.im2col",
    "embedding, a block a token": "layers.embedding",
    "layer norm, a warp a row": "layers.layer_norm",
    "batch statistics, a block a channel": "layers.batch_statistics",
    "attention's scores, causal": "layers.scores",
    "LUD in blocks": "elimination.lud",
    "Gaussian elimination": "elimination.gaussian",
    "Cholesky, 6x6 a thread": "elimination.cholesky",
    "inverses, 4x4 with pivots": "elimination.inverse4",
    "convolution 7x7, tile with halo": "filters.convolution_shared",
    "convolution of columns, 17 high": "filters.convolution_columns",
    "box filter, running sums": "filters.box_columns",
    "bilateral filter": "filters.bilateral",
    "median 3x3 of bytes": "filters.median",
    "thin edges after Canny": "filters.suppress",
    "nearest neighbors, distances": "particles.euclid",
    "particle filter, likelihood": "particles.likelihood",
    "particle filter, search of the index": "particles.find_index",
    "streamcluster, cost": "particles.compute_cost",
    "Euler flux, unstructured": "particles.compute_flux",
    "lavaMD": "particles.lava",
    "BFS with masks, all levels": "graphs.bfs_masks",
    "ELL by vector": "graphs.spmv_ell",
    "COO by vector, atomics": "graphs.spmv_coo",
    "B+ tree, a block a query": "graphs.find",
    "Needleman-Wunsch, tiles of 16x16": "graphs.needle",
    "pattern in bytes, naive": "orders.match",
    "merge by ranks": "orders.merge",
    "radix sort, counts of digits": "orders.radix_count",
    "odd-even sort in a block": "orders.odd_even",
    "bitonic sort in a block": "orders.bitonic_block",
    "segmented scan in a block": "orders.segmented",
    "dot product": "orders.dot_product",
    "FDTD in two dimensions": "fields.fdtd",
    "Jacobi, two buffers": "fields.jacobi_two_buffers",
    "SOR, red and black": "fields.sor",
    "Gray-Scott, periodic": "fields.gray_scott",
    "wave of eighth order": "fields.wave",
    "Ising's spins by colors": "fields.ising",
    "rule 30": "fields.cells",
    "DCT of 8x8": "transforms.dct",
    "Haar's wavelet": "transforms.haar",
    "cipher by tables": "transforms.cipher",
    "SHA-256 of messages": "transforms.sha256",
    "options by Monte-Carlo": "chances.options",
    "membranes by Runge-Kutta": "chances.membrane",
    "queens by backtracking": "chances.queens",
    "Levenshtein, a thread a word": "chances.levenshtein",
}
"""The file and the function of each kernel's reference in C."""

__all__ = ["CASES", "TWINS", "Case", "Work"]
