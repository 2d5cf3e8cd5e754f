"""Launches whose blocks are in clusters, on both executors."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import weft
from weft import cuda


@cuda.jit
def number(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] = i


@cuda.jit
def ranks(x):
    if cuda.threadIdx.x == 0:
        x[cuda.blockIdx.x, 0] = cuda.inline_ptx("mov.u32 %0, %%cluster_ctarank;", "=r", np.uint32)
        x[cuda.blockIdx.x, 1] = cuda.inline_ptx("mov.u32 %0, %%cluster_nctaid.x;", "=r", np.uint32)


def needs_clusters() -> None:
    if not cuda.get_current_device().CLUSTER_LAUNCH:
        pytest.skip("this GPU has no clusters")


def test_a_launch_with_clusters_means_the_same() -> None:
    needs_clusters()
    for cluster in (1, 2, (4,), (8, 1, 1), None):
        x = cuda.device_array(1000, np.int64)
        number[8, 128, 0, 0, cluster](x)
        assert x.copy_to_host().tolist() == list(range(1000))
    x = np.zeros(1000, np.int64)
    number.configure(8, 128, cuda.stream(), None, cluster=2)(x)
    assert x.tolist() == list(range(1000))


def test_what_a_configuration_says() -> None:
    kernel = number[8, 128, 0, 0, (2, 1)]
    assert kernel.cluster == (2, 1, 1)
    assert number[8, 128].cluster is None
    assert number[8, 128, 0, 0, 1].cluster is None
    assert pickle.loads(pickle.dumps(kernel)).cluster == (2, 1, 1)


def test_wrong_clusters() -> None:
    needs_clusters()
    x = cuda.device_array(1000, np.int64)
    for cluster, text in (
        (3, r"grid \(8, 1, 1\) is not divisible into clusters \(3, 1, 1\)"),
        ((1, 2), r"grid \(8, 1, 1\) is not divisible into clusters \(1, 2, 1\)"),
    ):
        with pytest.raises(weft.LaunchError, match=text):
            number[8, 128, 0, 0, cluster](x)
    with pytest.raises(weft.LaunchError, match=r"cluster \(64, 1, 1\) has 64 blocks; .* allows \d+"):
        number[64, 16, 0, 0, 64](x)
    with pytest.raises(ValueError, match="cluster must have at least 1 block in each direction"):
        number[8, 128, 0, 0, 0]
    with pytest.raises(TypeError, match="cluster must be a sequence of integers"):
        number[8, 128, 0, 0, 2.0]
    with pytest.raises(ValueError, match="cluster must be a sequence of 1, 2 or 3 integers"):
        number[8, 128, 0, 0, (1, 1, 1, 1)]


def test_clusters_in_a_graph() -> None:
    needs_clusters()
    x = cuda.to_device(np.zeros(1000, np.int64))
    number[8, 128](x)
    x.copy_to_device(np.zeros(1000, np.int64))
    with cuda.graph() as graph:
        number[8, 128, 0, 0, 2](x)
    graph.launch()
    assert x.copy_to_host().tolist() == list(range(1000))


@pytest.mark.cuda
def test_blocks_know_their_cluster() -> None:
    needs_clusters()
    for size in (1, 2, 4, 8):
        x = cuda.to_device(np.full((8, 2), 99, np.uint32))
        ranks[8, 32, 0, 0, size](x)
        assert x.copy_to_host().tolist() == [[block % size, size] for block in range(8)]


@pytest.mark.cuda
def test_clusters_that_are_larger_than_every_gpu_has_them() -> None:
    needs_clusters()
    if cuda.get_current_device().compute_capability[0] not in {9, 10}:
        pytest.skip("this GPU has clusters of 8 blocks at most")
    x = cuda.to_device(np.full((16, 2), 99, np.uint32))
    ranks[16, 32, 0, 0, 16](x)
    assert x.copy_to_host().tolist() == [[block, 16] for block in range(16)]


@pytest.mark.cuda
def test_clusters_that_there_is_no_room_for() -> None:
    needs_clusters()
    most = cuda.get_current_device().MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    x = cuda.to_device(np.zeros((16, 2), np.uint32))
    ranks[16, 32, 0, most](x)
    # Each block occupies a multiprocessor. A launch that fits runs; another one raises an error with a suggestion.
    try:
        ranks[16, 32, 0, most, 16](x)
        cuda.synchronize()
    except weft.LaunchError as error:
        assert "cannot run clusters [16, 1, 1] of such blocks" in str(error)  # noqa: PT017 (it may run)
    else:
        assert x.copy_to_host().tolist() == [[block, 16] for block in range(16)]
