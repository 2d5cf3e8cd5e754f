/* Removes what makes the results of a library's float code depend on the target, so that they are the same
 * everywhere. */
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"

/* Always fuses a multiply-add that may be fused, and removes fast-math flags and `!fpmath` metadata. */
extern "C" void weft_decide_floats(LLVMModuleRef module) {
  llvm::Module &own = *llvm::unwrap(module);
  for (llvm::Function &function : own)
    for (llvm::BasicBlock &block : function)
      for (llvm::Instruction &instruction : block) {
        if (auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction))
          if (call->getIntrinsicID() == llvm::Intrinsic::fmuladd)
            call->setCalledFunction(
                llvm::Intrinsic::getOrInsertDeclaration(&own, llvm::Intrinsic::fma, {call->getType()}));
        if (!llvm::isa<llvm::FPMathOperator>(instruction)) continue;
        /* `setFastMathFlags` only adds flags. */
        instruction.copyFastMathFlags(llvm::FastMathFlags());
        instruction.setMetadata(llvm::LLVMContext::MD_fpmath, nullptr);
      }
}
