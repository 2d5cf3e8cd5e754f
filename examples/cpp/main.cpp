// Heats a plate with kernels that Python wrote, on a GPU if there is one and on the CPU otherwise.
//
//     weft build kernels.py --name heat --target sm_80,sm_90,host -o heat
//     cmake -B build . && cmake --build build
//     build/plate [cpu|gpu] [FILE]
//
// With FILE it writes the temperatures there, as float32.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "heat.h"

namespace {

constexpr int64_t rows = 300, cols = 500;
constexpr int steps = 200;
constexpr float rate = 0.2f, top = 100.0f;

// Ends the program if a call has failed.
void check(weft_status status) {
    if (status == WEFT_OK) return;
    std::fprintf(stderr, "plate: %s\n", weft_message());
    std::exit(1);
}

weft_float32_2d plate(weft_where where) {
    void *memory;
    check(weft_allocate(where, rows * cols * sizeof(float), &memory));
    return {static_cast<float *>(memory), {rows, cols}, {}};
}

}  // namespace

int main(int argc, char **argv) {
    const bool wants_gpu = argc > 1 ? std::strcmp(argv[1], "gpu") == 0 : weft_gpu_count() > 0;
    const weft_where where = wants_gpu ? weft_on_gpu(nullptr) : weft_on_cpu();

    // The upper edge is hot.
    std::vector<float> temperatures(rows * cols);
    for (int64_t x = 0; x < cols; x++) temperatures[x] = top;

    weft_float32_2d now = plate(where), next = plate(where);
    check(weft_upload(where, now.data, temperatures.data(), temperatures.size() * sizeof(float)));
    for (int i = 0; i < steps; i++) {
        check(heat_step(where, now, rate, next));
        std::swap(now, next);
    }

    int64_t bins;
    check(heat_histogram_shape_of_counts(now, top, &bins));
    std::vector<int32_t> counts(bins);
    void *memory;
    check(weft_allocate(where, bins * sizeof(int32_t), &memory));
    weft_int32_1d on_device{static_cast<int32_t *>(memory), {bins}, {}};
    check(heat_histogram(where, now, top, on_device));

    check(weft_download(where, counts.data(), on_device.data, bins * sizeof(int32_t)));
    check(weft_download(where, temperatures.data(), now.data, temperatures.size() * sizeof(float)));
    for (void *used : {static_cast<void *>(now.data), static_cast<void *>(next.data), memory}) check(weft_free(where, used));

    double sum = 0;
    for (float temperature : temperatures) sum += temperature;
    std::printf("%s: mean %.6f, coldest bin %d\n", wants_gpu ? "GPU" : "CPU", sum / (rows * cols), counts[0]);
    if (argc > 2) {
        std::FILE *file = std::fopen(argv[2], "wb");
        if (file == nullptr) return 1;
        std::fwrite(temperatures.data(), sizeof(float), temperatures.size(), file);
        std::fwrite(counts.data(), sizeof(int32_t), counts.size(), file);
        std::fclose(file);
    }
    return 0;
}
