/* Registers the pass of exits.cpp with a pipeline. */
#pragma once
#include "llvm/Passes/PassBuilder.h"

namespace weft {
void register_exits(llvm::PassBuilder &builder);
}
