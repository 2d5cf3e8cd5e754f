/* Registers the passes of divisions.cpp with a pipeline. */
#pragma once
#include "llvm/Passes/PassBuilder.h"

namespace weft {
void register_divisions(llvm::PassBuilder &builder);

/* Computes signed 64-bit divisions in 32 bits where both operands fit at run time. Call it after LLVM's passes. */
void branch_on_width(llvm::Function &function);
}
