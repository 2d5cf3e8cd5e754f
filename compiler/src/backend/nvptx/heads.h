/* Registers the pass of heads.cpp with a pipeline. */
#pragma once
#include "llvm/Passes/PassBuilder.h"

namespace weft {
void register_heads(llvm::PassBuilder &builder);
}
