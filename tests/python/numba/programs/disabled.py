"""A program that runs with and without `NUMBA_DISABLE_CUDA`."""

import numpy as np
from numba import cuda
from numba.cuda import config


@cuda.jit
def kernel(x):
    x[0] = 1


print(cuda.is_available(), config.DISABLE_CUDA)
uses = {
    "a launch": lambda: kernel[1, 1](np.zeros(1)),
    "a copy": lambda: cuda.to_device(np.zeros(1)),
    "the device": cuda.get_current_device,
    "the devices": lambda: cuda.gpus[0],
    "a list of them": lambda: len(cuda.list_devices()),
}
for name, use in uses.items():
    try:
        use()
    except cuda.CudaSupportError as error:
        print(name, "CUDA is disabled" in str(error))
print("visible .entry" in cuda.compile_ptx(kernel, "void(float64[:])")[0])
