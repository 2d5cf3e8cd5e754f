/* Registers the pass of partial_unrolling.cpp with a pipeline. */
#pragma once
#include "llvm/Passes/PassBuilder.h"

namespace weft {
void register_partial_unrolling(llvm::PassBuilder &builder);
}
