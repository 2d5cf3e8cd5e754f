/* Keeps stores of blended values, `store(select(c, x, load(p)), p)`, on CPUs without masked vectors of all types.
 *
 * LLVM's code generator would make masked stores of them. On AMD Zen before AVX-512 a masked store is microcode, and on
 * each CPU a load soon after it waits until the store is in the cache. */
#include "llvm-c/Core.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

using namespace llvm;

extern "C" void weft_keep_blends(LLVMModuleRef module) {
  SmallVector<std::pair<SelectInst *, unsigned>, 16> blends;
  for (Function &function : *unwrap(module))
    for (BasicBlock &block : function)
      for (Instruction &instruction : block) {
        auto *store = dyn_cast<StoreInst>(&instruction);
        if (!store || !store->getValueOperand()->getType()->isVectorTy()) continue;
        auto *blend = dyn_cast<SelectInst>(store->getValueOperand());
        for (unsigned operand : {1u, 2u}) {
          auto *load = blend ? dyn_cast<LoadInst>(blend->getOperand(operand)) : nullptr;
          if (load && load->getPointerOperand() == store->getPointerOperand()) blends.push_back({blend, operand});
        }
      }
  for (auto [blend, operand] : blends) {
    IRBuilder<> builder(blend);
    /* The code generator looks for a load, and no freeze. */
    blend->setOperand(operand, builder.CreateFreeze(blend->getOperand(operand)));
  }
}
