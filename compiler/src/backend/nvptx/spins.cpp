/* Atomic operations on shared memory that ptxas makes loops of.
 *
 * Hardware has no atomic addition of floats in shared memory, and of 64-bit operations there it has exchanges only, so
 * ptxas (13.0 and 13.5) compares and swaps until it succeeds (`ATOMS.CAST.SPIN`). Where such an operation is the first
 * thing of a loop, both loops begin at one place, and ptxas no longer joins the lanes of a warp behind the inner one. It
 * has found before that the lanes take the same turns of the outer loop, though, and counts them once for all in a
 * uniform register: each lane that leaves the inner loop alone counts for the others, too. They then do too few turns, or
 * 2^64 more. What moves to the front of the loop, or behind the operation, does not help; an access that is volatile
 * stays in its place. */
#include "llvm-c/Core.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

namespace {

constexpr unsigned shared = 3;

/* Whether ptxas makes a loop of it. LLVM makes its own of what PTX has no instruction for. */
bool spins(const llvm::AtomicRMWInst &operation) {
  const llvm::Type &type = *operation.getType();
  return operation.getPointerAddressSpace() == shared && operation.getOperation() != llvm::AtomicRMWInst::Xchg &&
         (type.isFloatingPointTy() || type.getScalarSizeInBits() == 64);
}

/* Whether something before it in its block stays there. */
bool is_behind_another(const llvm::Instruction &operation) {
  for (const llvm::Instruction *before = operation.getPrevNode(); before; before = before->getPrevNode())
    if (before->isAtomic() || before->isVolatile()) return true;
  return false;
}

} // namespace

/* Puts a volatile load of the same place in front of each that may be the first thing of a loop. It is for a module that
 * LLVM's passes have been through. */
extern "C" void weft_look_before_spinning(LLVMModuleRef module) {
  for (llvm::Function &function : *llvm::unwrap(module)) {
    if (function.isDeclaration()) continue;
    llvm::SmallVector<llvm::AtomicRMWInst *, 8> found;
    for (llvm::BasicBlock &block : function)
      for (llvm::Instruction &instruction : block)
        if (auto *operation = llvm::dyn_cast<llvm::AtomicRMWInst>(&instruction))
          if (spins(*operation) && !is_behind_another(*operation)) found.push_back(operation);
    if (found.empty()) continue;
    llvm::DominatorTree dominators(function);
    llvm::LoopInfo loops(dominators);
    /* ptxas may take functions into the loops that call them. */
    bool is_kernel = function.getCallingConv() == llvm::CallingConv::PTX_Kernel;
    for (llvm::AtomicRMWInst *operation : found) {
      if (is_kernel && !loops.getLoopFor(operation->getParent())) continue;
      llvm::IRBuilder<> builder(operation);
      builder.CreateAlignedLoad(operation->getType(), operation->getPointerOperand(), operation->getAlign(), true);
    }
  }
}
