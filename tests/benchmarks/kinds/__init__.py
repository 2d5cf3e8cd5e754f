"""The set of kernels on which code generation for GPUs is developed: kinds on which weft was slower than CUDA C++.

The kinds were found on other kernels. For eight of them there are two kernels here that differ in style, data layout or
types: windows over constant tables, ray marching, attention by warps, overlap masks, union-find, tiles with several
time steps, clamped blurs, and anti-diagonals. In contrast to the second and third set, weft is tuned on these kernels,
so their times say nothing about kernels in general. They are written by the rules of the second set, and they are not
changed to suit weft.
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

__all__ = ["CASES", "Case", "Work"]
