"""Streams: launches and copies run in order within a stream, and concurrently with those of other streams."""

import numpy as np
from weft import cuda


@cuda.jit
def step(x, turns):
    i = cuda.grid(1)
    if i < x.size:
        value = x[i]
        for _ in range(turns):
            value = value * 0.5 + 1
        x[i] = value


def main():
    chunks = [np.full(100_000, float(k)) for k in range(4)]
    streams = [cuda.stream() for _ in chunks]
    results = [np.empty_like(chunk) for chunk in chunks]
    for chunk, result, stream in zip(chunks, results, streams, strict=True):
        d_chunk = cuda.to_device(chunk, stream=stream)
        step[(chunk.size + 255) // 256, 256, stream](d_chunk, 50)
        d_chunk.copy_to_host(result, stream=stream)
    for stream in streams:
        stream.synchronize()
    for result in results:
        np.testing.assert_allclose(result, 2.0, rtol=1e-12)  # x = x / 2 + 1 tends to 2
    print(f"10_streams: {len(streams)} streams: ok")


if __name__ == "__main__":
    main()
