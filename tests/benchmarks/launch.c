// Times cuLaunchKernel on the host: prints "PARAMETERS NANOSECONDS" for 0, 1, 4, 16 and 256 pointer parameters.
//
// Needs no CUDA toolkit: the driver is opened at run time, and the kernels are PTX. Usage: launch BATCH BATCHES
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int (*Init)(unsigned);
typedef int (*DeviceGet)(int *, int);
typedef int (*Retain)(void **, int);
typedef int (*SetCurrent)(void *);
typedef int (*Load)(void **, const void *);
typedef int (*GetFunction)(void **, void *, const char *);
typedef int (*Allocate)(unsigned long long *, size_t);
typedef int (*Synchronize)(void);
typedef int (*Launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                      void **);

static void *driver;

static void *symbol(const char *name) {
    void *found = dlsym(driver, name);
    if (!found) {
        fprintf(stderr, "libcuda.so.1 has no %s\n", name);
        exit(1);
    }
    return found;
}

static void check(int status, const char *what) {
    if (status) {
        fprintf(stderr, "%s failed with error %d\n", what, status);
        exit(1);
    }
}

static double now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// A kernel that writes its first array if that were null, which it never is: it has work that no compiler drops.
static void write_ptx(char *text, size_t size, int count) {
    size_t used = (size_t)snprintf(text, size, ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry empty(");
    for (int i = 0; i < count; ++i)
        used += (size_t)snprintf(text + used, size - used, "%s.param .u64 p%d", i ? ", " : "", i);
    used += (size_t)snprintf(text + used, size - used, ")\n{\n.reg .pred %%q; .reg .b64 %%a;\n");
    if (count)
        used += (size_t)snprintf(text + used, size - used,
                                 "ld.param.u64 %%a, [p0]; setp.eq.u64 %%q, %%a, 0; @%%q st.global.u64 [%%a], %%a;\n");
    snprintf(text + used, size - used, "ret;\n}\n");
}

int main(int argc, char **argv) {
    int batch = argc > 1 ? atoi(argv[1]) : 512, batches = argc > 2 ? atoi(argv[2]) : 41;
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    Launch launch = (Launch)symbol("cuLaunchKernel");
    Synchronize synchronize = (Synchronize)symbol("cuCtxSynchronize");
    int device;
    void *context;
    check(((Init)symbol("cuInit"))(0), "cuInit");
    check(((DeviceGet)symbol("cuDeviceGet"))(&device, 0), "cuDeviceGet");
    check(((Retain)symbol("cuDevicePrimaryCtxRetain"))(&context, device), "cuDevicePrimaryCtxRetain");
    check(((SetCurrent)symbol("cuCtxSetCurrent"))(context), "cuCtxSetCurrent");
    double *samples = malloc(sizeof(double) * (size_t)batches);
    const int counts[] = {0, 1, 4, 16, 256};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; ++c) {
        static char ptx[16384];
        unsigned long long arrays[256];
        void *module, *function, *parameters[256];
        write_ptx(ptx, sizeof ptx, counts[c]);
        check(((Load)symbol("cuModuleLoadData"))(&module, ptx), "cuModuleLoadData");
        check(((GetFunction)symbol("cuModuleGetFunction"))(&function, module, "empty"), "cuModuleGetFunction");
        for (int i = 0; i < counts[c]; ++i) {
            check(((Allocate)symbol("cuMemAlloc_v2"))(&arrays[i], 64), "cuMemAlloc");
            parameters[i] = &arrays[i];
        }
        for (int b = -3; b < batches; ++b) {
            check(synchronize(), "cuCtxSynchronize");
            double begin = now_ns();
            int status = 0;
            for (int i = 0; i < batch; ++i)
                status |= launch(function, 1, 1, 1, 32, 1, 1, 0, NULL, counts[c] ? parameters : NULL, NULL);
            double each = (now_ns() - begin) / batch;
            check(status, "cuLaunchKernel");
            if (b >= 0) samples[b] = each;
        }
        check(synchronize(), "cuCtxSynchronize");
        qsort(samples, (size_t)batches, sizeof *samples, ascending);
        printf("%d %.1f\n", counts[c], samples[batches / 2]);
    }
    return 0;
}
