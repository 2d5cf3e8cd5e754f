/* Registers the pass of differences.cpp with a pipeline. */
#pragma once
#include "llvm/Passes/PassBuilder.h"

namespace weft {
void register_differences(llvm::PassBuilder &builder);
}
