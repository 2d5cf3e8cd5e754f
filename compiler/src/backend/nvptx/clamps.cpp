/* Clamps of floats that were converted to 64-bit integers.
 *
 *     %x = f2ll(%f)                          %y = smin(smax(f2i(%f), -2^30), 2^30 - 1)
 *     smin(smax(add %x, 1), 0), %n - 1)      sext(smin(smax(add %y, 1), 0), trunc(%n - 1)))
 *
 * `int(math.floor(x))` is an `int64`, and neighbors of a sample are clamped to the image. A minimum or maximum of 64 bits is
 * four instructions, and the conversion runs at a quarter of the rate of one to 32 bits. `narrow/saturated.rs` does the
 * same within a function, before functions are inlined.
 *
 * Legal if the clamp's result and its bounds are within [-2^29, 2^30 - 2^16), and the constants that are added on the way
 * are below 2^16 together: a value differs from its narrow one only if both are beyond all of these bounds, on the same
 * side, where every minimum and maximum selects alike, and the result is within them. Profitable if both a minimum and a
 * maximum become narrow: these are eight instructions, a second conversion and its clamp, if others need the first, three. */
#include "llvm-c/Core.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Utils/Local.h"

namespace {

class Clamps {
public:
  explicit Clamps(llvm::ScalarEvolution &evolution) : evolution(evolution) {}

  /* Narrows a minimum or maximum, if it ends such a clamp. */
  void narrow(llvm::MinMaxIntrinsic &clamp) {
    if (!clamp.getType()->isIntegerTy(64) || !is_bounded(&clamp)) return;
    auto *inner = llvm::dyn_cast<llvm::MinMaxIntrinsic>(clamp.getLHS());
    if (!inner || as_signed(*inner) == as_signed(clamp)) return;
    if (llvm::Value *half = narrow(&clamp, MAX_SUM)) {
      llvm::IRBuilder<> builder(&clamp);
      clamp.replaceAllUsesWith(builder.CreateSExt(half, clamp.getType()));
      llvm::RecursivelyDeleteTriviallyDeadInstructions(&clamp);
    }
  }

private:
  static constexpr int64_t MAX_SUM = (1 << 16) - 1;
  static constexpr int64_t LOWEST = -(1 << 29), HIGHEST = (1 << 30) - (1 << 16) - 1;
  llvm::ScalarEvolution &evolution;
  llvm::DenseMap<llvm::Value *, llvm::Value *> conversions;

  bool is_bounded(llvm::Value *value) {
    llvm::ConstantRange range = evolution.getSignedRange(evolution.getSCEV(value));
    return range.getSignedMin().sge(LOWEST) && range.getSignedMax().sle(HIGHEST);
  }

  /* The signed operation, also for the unsigned minimum of numbers that are not negative, which LLVM prefers. */
  llvm::Intrinsic::ID as_signed(const llvm::MinMaxIntrinsic &either) {
    if (either.isSigned()) return either.getIntrinsicID();
    auto is_nonneg = [&](llvm::Value *value) { return evolution.isKnownNonNegative(evolution.getSCEV(value)); };
    bool is_same = either.getIntrinsicID() == llvm::Intrinsic::umin && is_nonneg(either.getLHS()) &&
                   is_nonneg(either.getRHS());
    return is_same ? llvm::Intrinsic::smin : llvm::Intrinsic::not_intrinsic;
  }

  static llvm::Intrinsic::ID narrow_conversion(llvm::Intrinsic::ID wide) {
    switch (wide) {
    case llvm::Intrinsic::nvvm_f2ll_rz:
      return llvm::Intrinsic::nvvm_f2i_rz;
    case llvm::Intrinsic::nvvm_d2ll_rz:
      return llvm::Intrinsic::nvvm_d2i_rz;
    default:
      return llvm::Intrinsic::not_intrinsic;
    }
  }

  /* The narrow value of a 64-bit one; null if it is not built from conversions as above. Constants of at most `sum` may be
   * added. */
  llvm::Value *narrow(llvm::Value *value, int64_t sum) {
    using namespace llvm::PatternMatch;
    auto *instruction = llvm::dyn_cast<llvm::Instruction>(value);
    if (!instruction) return nullptr;
    llvm::IRBuilder<> builder(instruction);
    llvm::Type *type = builder.getInt32Ty();
    llvm::Value *part, *condition;
    const llvm::APInt *constant;
    if (match(value, m_Add(m_Value(part), m_APInt(constant)))) {
      if (constant->abs().ugt(sum)) return nullptr;
      llvm::Value *half = narrow(part, sum - constant->abs().getSExtValue());
      return half ? builder.CreateNSWAdd(half, builder.getInt32(constant->getSExtValue())) : nullptr;
    }
    bool is_first = match(value, m_Select(m_Value(condition), m_APInt(constant), m_Value(part)));
    if (is_first || match(value, m_Select(m_Value(condition), m_Value(part), m_APInt(constant)))) {
      if (constant->slt(LOWEST) || constant->sgt(HIGHEST)) return nullptr;
      llvm::Value *half = narrow(part, sum), *other = builder.getInt32(constant->getSExtValue());
      if (!half) return nullptr;
      return is_first ? builder.CreateSelect(condition, other, half) : builder.CreateSelect(condition, half, other);
    }
    if (auto *either = llvm::dyn_cast<llvm::MinMaxIntrinsic>(instruction)) {
      llvm::Intrinsic::ID operation = as_signed(*either);
      if (operation == llvm::Intrinsic::not_intrinsic || !is_bounded(either->getRHS())) return nullptr;
      llvm::Value *half = narrow(either->getLHS(), sum);
      if (!half) return nullptr;
      return builder.CreateBinaryIntrinsic(operation, half, builder.CreateTrunc(either->getRHS(), type));
    }
    auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(instruction);
    llvm::Intrinsic::ID conversion = call ? narrow_conversion(call->getIntrinsicID()) : llvm::Intrinsic::not_intrinsic;
    if (conversion == llvm::Intrinsic::not_intrinsic) return nullptr;
    llvm::Value *&known = conversions[call];
    if (!known) {
      known = builder.CreateIntrinsic(type, conversion, {call->getArgOperand(0)});
      known = builder.CreateBinaryIntrinsic(llvm::Intrinsic::smax, known, builder.getInt32(-(1 << 30)));
      known = builder.CreateBinaryIntrinsic(llvm::Intrinsic::smin, known, builder.getInt32((1 << 30) - 1));
    }
    return known;
  }
};

} // namespace

/* Call it after LLVM's passes, which inline functions and give clamps this form. */
extern "C" void weft_narrow_clamps(LLVMModuleRef module) {
  for (llvm::Function &function : *llvm::unwrap(module)) {
    if (function.isDeclaration()) continue;
    llvm::SmallVector<llvm::WeakTrackingVH, 16> found;
    bool converts = false;
    for (llvm::Instruction &instruction : llvm::instructions(function)) {
      if (llvm::isa<llvm::MinMaxIntrinsic>(instruction)) found.push_back(&instruction);
      if (auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction))
        converts |= call->getIntrinsicID() == llvm::Intrinsic::nvvm_f2ll_rz ||
                    call->getIntrinsicID() == llvm::Intrinsic::nvvm_d2ll_rz;
    }
    if (found.empty() || !converts) continue;
    llvm::DominatorTree dominators(function);
    llvm::LoopInfo loops(dominators);
    llvm::AssumptionCache assumptions(function);
    llvm::TargetLibraryInfoImpl implementation(function.getParent()->getTargetTriple());
    llvm::TargetLibraryInfo library(implementation, &function);
    llvm::ScalarEvolution evolution(function, library, assumptions, dominators, loops);
    Clamps clamps(evolution);
    for (llvm::WeakTrackingVH &each : found)
      if (auto *clamp = llvm::dyn_cast_or_null<llvm::MinMaxIntrinsic>(each)) clamps.narrow(*clamp);
  }
}
