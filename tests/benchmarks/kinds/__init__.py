"""The set of kernels on which code generation for GPUs is developed: kinds on which weft was slower than CUDA C++.

The kinds were found on other kernels. For eight of them there are two kernels here that differ in style, data layout or
types: windows over constant tables, ray marching, attention by warps, overlap masks, union-find, tiles with several
time steps, clamped blurs, and anti-diagonals. In contrast to the second and third set, weft is tuned on these kernels,
so their times say nothing about kernels in general. They are written by the rules of the second set, and they are not
changed to suit weft. Their reference kernels in C are in reference_kernels/, like those of the other sets; there are
none for Numba.
"""

from suite.case import Case, Work

from kinds import attention, boxes, components, diagonals, heat, images, lists, rays, series, volumes

CASES: tuple[Case, ...] = (
    *images.CASES,
    *rays.CASES,
    *attention.CASES,
    *boxes.CASES,
    *components.CASES,
    *heat.CASES,
    *diagonals.CASES,
    *volumes.CASES,
    *lists.CASES,
    *series.CASES,
)

TWINS = {
    "Gauss 7x7 of bytes, normalized at the borders": "windows.gauss",
    "Laplace 7x7 of bytes, a tuple of weights": "windows.laplace",
    "binomial blur 5x5 of bytes": "windows.binomial",
    "box blur 5x5 of RGBA": "windows.blur_rgba",
    "ray marching, solids with smooth unions": "marching.solids",
    "ray marching, repeated pillars with shadows": "marching.pillars",
    "rays against spheres, nearest hit": "marching.nearest_spheres",
    "attention, a warp a query, lanes over features": "attention.attention",
    "causal attention, a warp a query, lanes over keys": "attention.causal_attention",
    "overlap masks of boxes, upper triangle": "regions.overlap_masks",
    "overlap masks of boxes by class, int32": "regions.overlap_by_class",
    "components of tiles in shared memory": "regions.tile_components",
    "components of a batch of pictures": "regions.batch_components",
    "hotspot, three steps in a tile": "diffusion.hotspot",
    "diffusion, two steps in a tile of two buffers": "diffusion.diffusion",
    "Smith-Waterman with affine gaps": "sequences.affine_gaps",
    "dynamic time warping in a window": "sequences.warping_columns",
    "projection of a volume, trilinear samples": "volumes.projection",
    "shallow water, finite volumes": "volumes.shallow_water",
    "wave of fourth order, float64": "volumes.wave64",
    "common neighbors of edges": "lists.common_neighbors",
    "compaction into a queue": "lists.enqueue",
    "nearest neighbors, sorted local arrays": "surveys.nearest_points",
    "structure factors of a crystal": "series.structure_factors",
    "parallel cyclic reduction in a block": "solvers.cyclic_reduction",
}
"""The file and the function of each kernel's reference in C."""

__all__ = ["CASES", "TWINS", "Case", "Work"]
