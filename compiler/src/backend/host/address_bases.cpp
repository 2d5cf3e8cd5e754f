/* Sums that do not change in a loop become opaque bases of addresses before loop strength reduction (LSR).
 *
 * LSR tries each subset of up to three terms of an address for a register, and combines the results of all addresses:
 * its time grows with the third power of the terms. The elements of a tile have addresses such as
 * `p + 4 * (x + y * w + z * w * h)`, and a loop over a column of a tile has many of them. The sum without the induction
 * variable is computed before the loop. Addresses with a constant distance share it. */
#include "llvm-c/Core.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/Local.h"
#include "llvm/Transforms/Utils/LoopUtils.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"

using namespace llvm;

namespace bases {

/* LSR makes about as many formulae for an address as the third power of its terms. A loop with fewer is left as it is:
 * LSR takes less than about half a millisecond. */
constexpr size_t least_formulae = 60;

/* An address with fewer terms has nothing to share. */
constexpr size_t least_terms = 2;

/* The nested sums that `terms` counts the terms of. LSR expands no more. */
constexpr unsigned most_nested = 3;

/* The number of terms of a sum, with those of sums that a constant multiplies. */
size_t terms(const SCEV *value, unsigned depth = 0) {
  if (isa<SCEVConstant>(value)) return 0;
  if (depth == most_nested) return 1;
  size_t count = 0;
  if (auto *sum = dyn_cast<SCEVAddExpr>(value)) {
    for (const SCEV *operand : sum->operands()) count += terms(operand, depth + 1);
    return count;
  }
  if (auto *recurrence = dyn_cast<SCEVAddRecExpr>(value))
    return (recurrence->getStart()->isZero() ? 0 : terms(recurrence->getStart(), depth + 1)) + 1;
  if (auto *product = dyn_cast<SCEVMulExpr>(value); product && product->getNumOperands() == 2)
    if (isa<SCEVConstant>(product->getOperand(0))) return terms(product->getOperand(1), depth + 1);
  return 1;
}

/* An access in a loop and its address there. */
struct Access {
  Instruction *instruction;
  unsigned operand;
  const SCEVAddRecExpr *address;
  size_t terms;
};

/* The addresses of a loop's accesses. */
SmallVector<Access, 16> accesses(const Loop &loop, ScalarEvolution &evolution) {
  SmallVector<Access, 16> found;
  for (BasicBlock *block : loop.blocks())
    for (Instruction &instruction : *block) {
      unsigned operand = 0;
      if (isa<StoreInst>(instruction)) {
        operand = StoreInst::getPointerOperandIndex();
      } else if (auto *call = dyn_cast<IntrinsicInst>(&instruction)) {
        if (call->getIntrinsicID() == Intrinsic::masked_store)
          operand = 1;
        else if (call->getIntrinsicID() != Intrinsic::masked_load)
          continue;
      } else if (!isa<LoadInst>(instruction)) {
        continue;
      }
      auto *address = dyn_cast<SCEVAddRecExpr>(evolution.getSCEV(instruction.getOperand(operand)));
      if (!address || address->getLoop() != &loop || !address->isAffine()) continue;
      found.push_back({&instruction, operand, address, terms(address->getStart())});
    }
  return found;
}

/* Addresses with a constant distance, and the sum that they share. */
struct Base {
  const SCEV *start;
  Value *value;
};

/* Computes the bases of a loop's addresses before it, if LSR would take long. */
void share(Loop &loop, ScalarEvolution &evolution, DominatorTree &dominators, LoopInfo &loops) {
  SmallVector<Access, 16> all = accesses(loop, evolution);
  size_t formulae = 0;
  for (const Access &access : all) formulae += access.terms * access.terms * access.terms;
  if (formulae < least_formulae) return;
  BasicBlock *before = loop.getLoopPreheader();
  if (!before) before = InsertPreheaderForLoop(&loop, &dominators, &loops, nullptr, /*PreserveLCSSA=*/false);
  if (!before) return;
  SCEVExpander expander(evolution, "address");
  SmallVector<Base, 8> bases;
  SmallVector<WeakTrackingVH, 16> dead;
  for (const Access &access : all) {
    if (access.terms < least_terms) continue;
    const SCEV *start = access.address->getStart();
    const SCEV *distance = nullptr;
    auto *base = find_if(bases, [&](const Base &other) {
      const SCEV *between = evolution.getMinusSCEV(start, other.start);
      if (!isa<SCEVConstant>(between)) return false;
      distance = between;
      return true;
    });
    Value *old = access.instruction->getOperand(access.operand);
    const SCEV *step = access.address->getStepRecurrence(evolution);
    const SCEV *offset = evolution.getAddRecExpr(evolution.getZero(step->getType()), step, &loop, SCEV::FlagAnyWrap);
    if (!expander.isSafeToExpandAt(offset, access.instruction)) continue;
    if (base == bases.end()) {
      if (!expander.isSafeToExpandAt(start, before->getTerminator())) continue;
      Value *sum = expander.expandCodeFor(start, old->getType(), before->getTerminator()->getIterator());
      IRBuilder<> builder(before->getTerminator());
      bases.push_back({start, builder.CreateFreeze(sum, "base")});
      base = &bases.back();
      distance = evolution.getZero(step->getType());
    }
    Value *moved = expander.expandCodeFor(offset, step->getType(), access.instruction->getIterator());
    IRBuilder<> builder(access.instruction);
    Value *address = builder.CreatePtrAdd(base->value, moved);
    if (!distance->isZero()) address = builder.CreatePtrAdd(address, cast<SCEVConstant>(distance)->getValue());
    access.instruction->setOperand(access.operand, address);
    dead.emplace_back(old);
  }
  RecursivelyDeleteTriviallyDeadInstructionsPermissive(dead);
}

void share(Function &function) {
  DominatorTree dominators(function);
  LoopInfo loops(dominators);
  AssumptionCache assumptions(function);
  TargetLibraryInfoImpl library(Triple(function.getParent()->getTargetTriple()));
  TargetLibraryInfo functions(library);
  ScalarEvolution evolution(function, functions, assumptions, dominators, loops);
  for (Loop *loop : loops.getLoopsInPreorder())
    if (loop->isInnermost()) share(*loop, evolution, dominators, loops);
}

} // namespace bases

extern "C" void weft_share_bases(LLVMModuleRef module) {
  for (Function &function : *unwrap(module))
    if (!function.isDeclaration()) bases::share(function);
}
