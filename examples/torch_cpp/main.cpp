// Runs a model that AOTInductor compiled, with a kernel of weft as an operator, without Python.
//
//     weft build kernels.py --name block --target sm_80,host -o block
//     python compile.py .
//     cmake -B build -DTORCH=$(python -c "import torch; print(torch.__path__[0])") . && cmake --build build
//     build/run block.pt2 input.pt expected.pt
#include <ATen/ATen.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <vector>

namespace {

// A tensor that torch.save wrote.
at::Tensor read(const char *path) {
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    return torch::jit::pickle_load(bytes).toTensor();
}

}  // namespace

int main(int argc, char **argv) {
    if (argc != 4) {
        std::fprintf(stderr, "usage: %s MODEL INPUT EXPECTED\n", argv[0]);
        return 2;
    }
    const c10::InferenceMode mode;
    torch::inductor::AOTIModelPackageLoader model(argv[1]);
    const at::Tensor input = read(argv[2]), expected = read(argv[3]);
    const at::Tensor result = model.run({input})[0];
    const double error = (result - expected).abs().max().item<double>();
    std::printf("%s: %lld rows, largest difference from Python %.1e\n", input.is_cuda() ? "GPU" : "CPU",
                static_cast<long long>(result.size(0)), error);
    // Another number of rows: the model has a dynamic shape.
    const at::Tensor fewer = model.run({input.slice(0, 0, 5).contiguous()})[0];
    return error < 1e-5 && (fewer - expected.slice(0, 0, 5)).abs().max().item<double>() < 1e-5 ? 0 : 1;
}
