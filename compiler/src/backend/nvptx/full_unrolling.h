/* Registers the pass of full_unrolling.cpp with a pipeline. */
#pragma once
#include "llvm/Passes/PassBuilder.h"

namespace weft {
void register_full_unrolling(llvm::PassBuilder &builder);
}
