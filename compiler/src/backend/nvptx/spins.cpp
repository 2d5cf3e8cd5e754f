/* Atomic operations on shared memory that ptxas expands to compare-and-swap loops.
 *
 * Hardware has no atomic addition of floats in shared memory, and exchange is the only 64-bit atomic operation
 * there. For all others ptxas (13.0 and 13.5) emits a loop that compares and swaps until it succeeds
 * (`ATOMS.CAST.SPIN`). If such an operation is the first instruction of a loop, both loops have the same head, and
 * ptxas does not reconverge the warp after the inner loop. However, ptxas has already found the trip count of the
 * outer loop to be uniform and counts its iterations in a uniform register. Each lane that leaves the inner loop
 * alone then counts for the other lanes, too, and the outer loop runs too few iterations, or 2^64 more. A
 * non-volatile instruction before the operation does not help, because ptxas moves it to the front of the loop or
 * after the operation. A volatile access is not moved. */
#include "llvm-c/Core.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

namespace {

constexpr unsigned shared = 3;

/* Whether ptxas expands the operation to a loop. LLVM itself expands the operations that PTX lacks. */
bool spins(const llvm::AtomicRMWInst &operation) {
  const llvm::Type &type = *operation.getType();
  return operation.getPointerAddressSpace() == shared && operation.getOperation() != llvm::AtomicRMWInst::Xchg &&
         (type.isFloatingPointTy() || type.getScalarSizeInBits() == 64);
}

/* Whether an earlier instruction of the block cannot be moved. */
bool is_behind_another(const llvm::Instruction &operation) {
  for (const llvm::Instruction *before = operation.getPrevNode(); before; before = before->getPrevNode())
    if (before->isAtomic() || before->isVolatile()) return true;
  return false;
}

} // namespace

/* Inserts a volatile load of the same address before each such operation that may be the first instruction of a
 * loop. Call it after LLVM's passes. */
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
    /* ptxas may inline functions into loops that call them. */
    bool is_kernel = function.getCallingConv() == llvm::CallingConv::PTX_Kernel;
    for (llvm::AtomicRMWInst *operation : found) {
      if (is_kernel && !loops.getLoopFor(operation->getParent())) continue;
      llvm::IRBuilder<> builder(operation);
      builder.CreateAlignedLoad(operation->getType(), operation->getPointerOperand(), operation->getAlign(), true);
    }
  }
}
