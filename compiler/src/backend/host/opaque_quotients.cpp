/* Freezes quotients and remainders by variable divisors, which makes them opaque to loop strength reduction (LSR).
 *
 * LSR would expand them into expressions of their operands and recompute the division in each iteration, because it
 * cannot hoist a division by a value that may be zero. */
#include "llvm-c/Core.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

using namespace llvm;

extern "C" void weft_keep_quotients(LLVMModuleRef module) {
  SmallVector<Instruction *, 16> divisions;
  for (Function &function : *unwrap(module))
    for (BasicBlock &block : function)
      for (Instruction &instruction : block)
        if (instruction.isIntDivRem() && instruction.getType()->isIntegerTy() &&
            !isa<Constant>(instruction.getOperand(1)))
          divisions.push_back(&instruction);
  for (Instruction *division : divisions) {
    IRBuilder<> builder(division->getNextNode());
    /* LSR does not analyze the operand of a freeze. */
    Value *kept = builder.CreateFreeze(division);
    division->replaceUsesWithIf(kept, [kept](Use &use) { return use.getUser() != kept; });
  }
}
