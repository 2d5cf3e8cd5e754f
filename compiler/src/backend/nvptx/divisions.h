/* Registers the passes of divisions.cpp with a pipeline. */
#pragma once
#include "llvm/Passes/PassBuilder.h"

namespace weft {
void register_divisions(llvm::PassBuilder &builder);
}
