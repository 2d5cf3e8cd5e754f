/* Registers the pass of switches.cpp with a pipeline. */
#pragma once
#include "llvm/Passes/PassBuilder.h"

namespace weft {
void register_switches(llvm::PassBuilder &builder);
}
