/* Writes calculator.csv: the blocks of a multiprocessor by NVIDIA's occupancy calculator, for the tests of mod.rs.
 *
 * The header is in PyPI's package nvidia-cuda-runtime: gcc -I .../nvidia/cu13/include calculator.c && ./a.out > calculator.csv
 */
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <cuda_occupancy.h>

struct sm {
    int major, minor, warps, shared_kib;
};

/* Warps and shared memory of a multiprocessor: CUDA programming guide, table of compute capabilities. */
static const struct sm sms[] = {
    {7, 5, 32, 64},   {8, 0, 64, 164},  {8, 6, 48, 100},  {8, 7, 48, 164},  {8, 8, 48, 100},
    {8, 9, 48, 100},  {9, 0, 64, 228},  {10, 0, 64, 228}, {10, 1, 48, 228}, {10, 3, 64, 228},
    {11, 0, 48, 228}, {12, 0, 48, 100}, {12, 1, 48, 100},
};

static uint64_t state = 2026;

static int random_below(int count) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)count);
}

static void write_case(const struct sm *sm, int registers, int shared, int threads, int barriers, int carveout) {
    struct cudaOccDeviceProp device = {0};
    struct cudaOccFuncAttributes function = {0};
    struct cudaOccDeviceState preference = {CACHE_PREFER_NONE, carveout};
    struct cudaOccResult result;
    int reserved = sm->major >= 8 ? 1024 : 0;
    device.computeMajor = sm->major;
    device.computeMinor = sm->minor;
    device.maxThreadsPerBlock = 1024;
    device.maxThreadsPerMultiprocessor = sm->warps * 32;
    device.regsPerBlock = device.regsPerMultiprocessor = 65536;
    device.warpSize = 32;
    device.numSms = 1;
    device.sharedMemPerBlock = 48 << 10;
    device.sharedMemPerMultiprocessor = (size_t)sm->shared_kib << 10;
    device.sharedMemPerBlockOptin = device.sharedMemPerMultiprocessor - reserved;
    device.reservedSharedMemPerBlock = reserved;
    function.maxThreadsPerBlock = 1024;
    function.numRegs = registers;
    function.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    function.maxDynamicSharedSizeBytes = shared;
    function.numBlockBarriers = barriers;
    if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &function, &preference, threads, shared)) {
        fprintf(stderr, "%d.%d is unknown\n", sm->major, sm->minor);
        return;
    }
    /* The header computes `limitingFactors` before the limit of barriers, so it can name a limit that is not the lowest. */
    const int by_resource[] = {result.blockLimitWarps, result.blockLimitRegs, result.blockLimitSharedMem,
                               result.blockLimitBlocks, result.blockLimitBarriers};
    int limits = 0;
    for (int i = 0; i < 5; i++) {
        limits |= (by_resource[i] == result.activeBlocksPerMultiprocessor) << i;
    }
    printf("%d,%d,%d,%d,%d,%d,%d,%d\n", sm->major * 10 + sm->minor, registers, shared, threads, barriers, carveout,
           result.activeBlocksPerMultiprocessor, limits);
}

int main(void) {
    static const int blocks[] = {1, 32, 64, 96, 128, 192, 256, 288, 384, 512, 640, 768, 896, 1024};
    static const int carveouts[] = {0, 10, 25, 50, 75, 100};
    puts("# Columns: blocks of a multiprocessor and limits (1: warps, 2: registers, 4: shared memory, 8: blocks,");
    puts("# 16: barriers) from cuda_occupancy.h of CUDA 13; a carve-out of -1 is the default.");
    puts("capability,registers,shared_bytes,threads,barriers,carveout,blocks,limits");
    for (size_t i = 0; i < sizeof sms / sizeof *sms; i++) {
        for (int n = 0; n < 80; n++) {
            int registers = random_below(4) ? 16 + random_below(80) : 1 + random_below(255);
            int most = (sms[i].shared_kib - 1) << 10;
            int shared = random_below(3) ? random_below(random_below(2) ? most : 24 << 10) : 0;
            int threads = random_below(4) ? blocks[random_below(14)] : 1 + random_below(1056);
            int barriers = random_below(3) ? 1 : random_below(17);
            int carveout = random_below(2) ? -1 : carveouts[random_below(6)];
            write_case(&sms[i], registers, shared, threads, barriers, carveout);
        }
    }
    return 0;
}
