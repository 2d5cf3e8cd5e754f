/* Floats that are computed in one way on every target: what of a library's code leaves the target a choice is decided. */
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"

/* A product and a sum that may be fused are, and nothing is approximated, reordered or less exact than it can be. */
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
        /* Setting flags only adds some. */
        instruction.copyFastMathFlags(llvm::FastMathFlags());
        instruction.setMetadata(llvm::LLVMContext::MD_fpmath, nullptr);
      }
}
