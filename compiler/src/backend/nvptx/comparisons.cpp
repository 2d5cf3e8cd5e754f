/* 64-bit comparisons, minima and maxima of values that fit 32 bits.
 *
 *     %small = icmp sgt i64 %left, 1792        %small = icmp sgt i32 (trunc %left), 1792
 *
 * A comparison of 64 bits is two instructions, a minimum or maximum four, of 32 bits one.
 *
 * Legal if LLVM's ranges prove that both operands fit `int32`, or both fit `uint32` and the comparison is unsigned or
 * of equality: the lower halves then compare as the whole values. Unknown ranges are those of 64 bits, which do not
 * fit. Profitable, since the lower half of a 64-bit register is a register, except for the induction variable of a loop:
 * ptxas unrolls a loop only if it counts in the width of its comparison, which loop strength reduction would not do. */
#include "llvm-c/Core.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

namespace {

using llvm::Value;

class Halves {
public:
  explicit Halves(llvm::ScalarEvolution &evolution) : evolution(evolution) {}

  bool can(const Value *left, const Value *right, bool may_be_signed, bool may_be_unsigned) {
    return (may_be_signed && fits_signed(left) && fits_signed(right)) ||
           (may_be_unsigned && fits_unsigned(left) && fits_unsigned(right));
  }

  /* Whether a value is an induction variable of a loop around an instruction. */
  bool counts(const Value *value, const llvm::Instruction &at) {
    const auto *counter = llvm::dyn_cast<llvm::SCEVAddRecExpr>(of(value));
    return counter && counter->getLoop()->contains(&at);
  }

  static Value *half(Value *value, llvm::IRBuilder<> &builder) {
    llvm::Type *narrow = builder.getInt32Ty();
    if (auto *extension = llvm::dyn_cast<llvm::CastInst>(value);
        extension && llvm::isa<llvm::SExtInst, llvm::ZExtInst>(extension) && extension->getSrcTy() == narrow)
      return extension->getOperand(0);
    return builder.CreateTrunc(value, narrow);
  }

private:
  llvm::ScalarEvolution &evolution;

  bool fits_signed(const Value *value) {
    return evolution.getSignedRange(of(value)).getMinSignedBits() <= 32;
  }
  bool fits_unsigned(const Value *value) {
    return evolution.getUnsignedRange(of(value)).getActiveBits() <= 32;
  }
  const llvm::SCEV *of(const Value *value) { return evolution.getSCEV(const_cast<Value *>(value)); }
};

/* A comparison has the same result for unsigned and signed halves if no value is negative. */
void narrow(llvm::ICmpInst &compare, Halves &halves) {
  Value *left = compare.getOperand(0), *right = compare.getOperand(1);
  if (halves.counts(left, compare) || halves.counts(right, compare)) return;
  if (!halves.can(left, right, !compare.isUnsigned(), !compare.isSigned())) return;
  llvm::IRBuilder<> builder(&compare);
  Value *narrow = builder.CreateICmp(compare.getPredicate(), Halves::half(left, builder),
                                     Halves::half(right, builder), compare.getName());
  compare.replaceAllUsesWith(narrow);
  compare.eraseFromParent();
}

void narrow(llvm::MinMaxIntrinsic &chosen, Halves &halves) {
  Value *left = chosen.getLHS(), *right = chosen.getRHS();
  bool is_signed = chosen.isSigned();
  if (!halves.can(left, right, is_signed, !is_signed)) return;
  llvm::IRBuilder<> builder(&chosen);
  Value *narrow = builder.CreateBinaryIntrinsic(chosen.getIntrinsicID(), Halves::half(left, builder),
                                                Halves::half(right, builder));
  Value *whole = is_signed ? builder.CreateSExt(narrow, chosen.getType()) : builder.CreateZExt(narrow, chosen.getType());
  chosen.replaceAllUsesWith(whole);
  chosen.eraseFromParent();
}

} // namespace

/* Call it after LLVM's passes, and before `weft_disable_unrolling`, which judges the comparisons that ptxas sees. */
extern "C" void weft_narrow_comparisons(LLVMModuleRef module) {
  for (llvm::Function &function : *llvm::unwrap(module)) {
    if (function.isDeclaration()) continue;
    llvm::SmallVector<llvm::ICmpInst *, 32> compares;
    llvm::SmallVector<llvm::MinMaxIntrinsic *, 8> chosen;
    for (llvm::Instruction &instruction : llvm::instructions(function)) {
      if (auto *compare = llvm::dyn_cast<llvm::ICmpInst>(&instruction);
          compare && compare->getOperand(0)->getType()->isIntegerTy(64))
        compares.push_back(compare);
      if (auto *either = llvm::dyn_cast<llvm::MinMaxIntrinsic>(&instruction); either && either->getType()->isIntegerTy(64))
        chosen.push_back(either);
    }
    if (compares.empty() && chosen.empty()) continue;
    llvm::DominatorTree dominators(function);
    llvm::LoopInfo loops(dominators);
    llvm::AssumptionCache assumptions(function);
    llvm::TargetLibraryInfoImpl implementation(function.getParent()->getTargetTriple());
    llvm::TargetLibraryInfo library(implementation, &function);
    llvm::ScalarEvolution evolution(function, library, assumptions, dominators, loops);
    Halves halves(evolution);
    for (llvm::MinMaxIntrinsic *each : chosen) narrow(*each, halves);
    for (llvm::ICmpInst *each : compares) narrow(*each, halves);
  }
}
