/* Divisions stay where they are: the code generator's own pass over the addresses of loops takes quotients and
 * remainders for sums of what they are made of, and then divides in every turn, since it may not divide in front of a
 * loop by what may be zero. */
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
    /* A value of which that pass knows nothing more. */
    Value *kept = builder.CreateFreeze(division);
    division->replaceUsesWithIf(kept, [kept](Use &use) { return use.getUser() != kept; });
  }
}
