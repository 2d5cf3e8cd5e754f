/* Integer division: removes it where possible, otherwise narrows it from 64 to 32 bits.
 *
 * The front end emits `a // b` and `a % b` of integers as calls of `weft$floordiv.i64` and similar functions
 * (`nvptx/divide.rs`). This pass expands the calls after inlining and LLVM's simplifications, because ranges of the
 * operands and the conditions that guard the call decide on the instructions. Each function is total: a division by
 * zero has quotient and remainder 0, and so has the minimum divided by -1. The unsigned functions take operands that
 * are not negative.
 *
 * A GPU needs about 20 instructions for a 32-bit division and about 70 for a 64-bit one. Hence:
 * - `(x + 1) % w` and `(x - 1) % w`, guarded by `0 <= x < w`, become selects. `x` is also below `w` if it starts at
 *   0 and each iteration of a loop assigns it a remainder by `w`: the head of a ring buffer.
 * - The remainder of an induction variable by a loop-invariant value becomes an induction variable of its own, which
 *   wraps to 0.
 * - LLVM narrows divisions further to 8 or 16 bits where the operands fit. PTX computes these in 32 bits, with masks of
 *   the operands and results, so they are widened again.
 * - If both operands fit 32 bits, the division has 32 bits. If nothing is known, `branch_on_width` for a signed division
 *   and LLVM's code generator for an unsigned one emit both widths and a test at run time. LLVM's test for a signed
 *   division is that neither operand is negative, so that a coordinate of -1 took the long path. */
#include "divisions.h"

#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/LazyValueInfo.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"

namespace {

using llvm::ConstantRange;
using llvm::Value;
namespace pattern = llvm::PatternMatch;

struct Kind {
  bool is_signed, is_remainder;
};

std::optional<Kind> kind_of(const llvm::CallInst &call) {
  const llvm::Function *callee = call.getCalledFunction();
  if (!callee || !callee->isDeclaration() || !callee->getName().starts_with("weft$")) return std::nullopt;
  llvm::StringRef name = callee->getName().drop_front(5).split('.').first;
  if (name == "floordiv") return Kind{true, false};
  if (name == "floormod") return Kind{true, true};
  if (name == "divnonneg") return Kind{false, false};
  if (name == "modnonneg") return Kind{false, true};
  return std::nullopt;
}

/* The division calls of a function, in layout order. */
llvm::SmallVector<llvm::CallInst *, 8> calls_of(llvm::Function &function) {
  llvm::SmallVector<llvm::CallInst *, 8> found;
  for (llvm::Instruction &instruction : llvm::instructions(function))
    if (auto *call = llvm::dyn_cast<llvm::CallInst>(&instruction))
      if (kind_of(*call)) found.push_back(call);
  return found;
}

/* Expands a division as `FunctionEmitter::int_divmod` does for other targets. `fits` says that both operands fit the
 * lower half of their type. */
Value *divide(llvm::IRBuilder<> &builder, Kind kind, Value *a, Value *b, bool is_signed, bool fits) {
  llvm::Type *whole = a->getType();
  unsigned bits = fits ? whole->getIntegerBitWidth() / 2 : whole->getIntegerBitWidth();
  llvm::Type *type = builder.getIntNTy(bits);
  Value *dividend = builder.CreateTrunc(a, type), *divisor = builder.CreateTrunc(b, type);
  Value *zero = llvm::ConstantInt::get(type, 0), *one = llvm::ConstantInt::get(type, 1);
  Value *bad = builder.CreateICmpEQ(divisor, zero);
  if (!is_signed) {
    Value *safe = builder.CreateSelect(bad, one, divisor);
    Value *result = kind.is_remainder
                        ? builder.CreateURem(dividend, safe) // a remainder by one is 0, as required
                        : builder.CreateSelect(bad, zero, builder.CreateUDiv(dividend, safe));
    return builder.CreateZExt(result, whole);
  }
  Value *ones = llvm::Constant::getAllOnesValue(type);
  Value *negates = builder.CreateICmpEQ(divisor, ones);
  Value *overflows = negates;
  /* In the lower half, the minimum divided by -1 does not overflow. Its remainder is 0; the end of this function
   * computes quotients by -1. */
  if (!fits) {
    Value *minimum = llvm::ConstantInt::get(type, llvm::APInt::getSignedMinValue(bits));
    overflows = builder.CreateAnd(builder.CreateICmpEQ(dividend, minimum), negates);
  }
  bad = builder.CreateOr(bad, overflows);
  Value *safe = builder.CreateSelect(bad, one, divisor);
  Value *remainder = builder.CreateSRem(dividend, safe);
  /* `sdiv` truncates: its quotient is one too large if the remainder is not zero and has the other sign than the
   * divisor. */
  Value *inexact = builder.CreateICmpNE(remainder, zero);
  Value *opposite = builder.CreateICmpSLT(builder.CreateXor(remainder, safe), zero);
  Value *adjust = builder.CreateAnd(inexact, opposite);
  if (kind.is_remainder) {
    Value *result = builder.CreateSelect(adjust, builder.CreateAdd(remainder, safe), remainder);
    return builder.CreateSExt(result, whole);
  }
  Value *quotient = builder.CreateSDiv(dividend, safe);
  quotient = builder.CreateSelect(adjust, builder.CreateSub(quotient, one), quotient);
  quotient = builder.CreateSExt(builder.CreateSelect(bad, zero, quotient), whole);
  if (!fits) return quotient;
  return builder.CreateSelect(negates, builder.CreateNeg(a), quotient);
}

class Divisions {
public:
  Divisions(llvm::Function &function, llvm::FunctionAnalysisManager &analyses)
      : layout(function.getDataLayout()), values(analyses.getResult<llvm::LazyValueAnalysis>(function)),
        assumptions(analyses.getResult<llvm::AssumptionAnalysis>(function)),
        dominators(analyses.getResult<llvm::DominatorTreeAnalysis>(function)),
        evolution(analyses.getResult<llvm::ScalarEvolutionAnalysis>(function)) {}

  /* The replacement of a call. The call's operands do not change, so ranges of other calls remain valid. */
  Value *expand(llvm::CallInst &call) {
    Kind kind = *kind_of(call);
    Value *a = call.getArgOperand(0), *b = call.getArgOperand(1);
    ConstantRange of_a = range(a, call), of_b = range(b, call);
    llvm::IRBuilder<> builder(&call);
    /* The emitter has proven that operands of the unsigned functions are not negative. */
    if (!kind.is_signed) of_a = nonneg(of_a), of_b = nonneg(of_b);
    if (Value *chosen = choose(builder, kind, call, of_a, of_b)) return chosen;
    if (kind.is_remainder)
      if (Value *counted = count_along(call, a, b, of_b)) return counted;
    bool is_signed = !of_a.isAllNonNegative() || !of_b.isAllNonNegative();
    unsigned bits = of_a.getBitWidth();
    bool fits = bits == 64 && (is_signed ? fits_signed(of_a) && fits_signed(of_b) : fits_bits(of_a) && fits_bits(of_b));
    if (is_signed && of_b.isAllNonNegative()) {
      bool short_divisor = !of_b.isEmptySet() && bits == 64 && of_b.getSignedMax().isSignedIntN(32);
      return by_nonneg(builder, kind, a, b, fits, short_divisor);
    }
    return divide(builder, kind, a, b, is_signed, fits);
  }

  /* A shorter replacement for a 64-bit division by a constant, if there is one. */
  Value *shorten(llvm::BinaryOperator &operation) {
    Value *a = operation.getOperand(0), *b = operation.getOperand(1);
    ConstantRange of_a = range(a, operation), of_b(llvm::cast<llvm::ConstantInt>(b)->getValue());
    Kind kind{false, operation.getOpcode() == llvm::Instruction::URem};
    llvm::IRBuilder<> builder(&operation);
    if (fits_bits(of_a) && fits_bits(of_b)) return divide(builder, kind, a, b, false, true);
    return kind.is_remainder ? count_along(operation, a, b, of_b) : nullptr;
  }

  /* Whether LLVM has narrowed an unsigned division of 32 or 64 bits to 8 or 16, which a GPU computes in 32, with masks. */
  bool is_too_narrow(llvm::BinaryOperator &operation) {
    unsigned bits = operation.getType()->getIntegerBitWidth();
    auto fits = [&](Value *operand) {
      Value *whole;
      return llvm::isa<llvm::ConstantInt>(operand) ||
             (pattern::match(operand, pattern::m_Trunc(pattern::m_Value(whole))) &&
              range(whole, operation).getUnsignedMax().getActiveBits() <= bits);
    };
    return fits(operation.getOperand(0)) && fits(operation.getOperand(1));
  }

  /* Computes such a division in 32 bits. Its result needs no mask. */
  static void widen(llvm::BinaryOperator &operation) {
    llvm::IRBuilder<> builder(&operation);
    llvm::Type *type = builder.getInt32Ty();
    auto whole = [&](Value *operand) {
      Value *value;
      if (pattern::match(operand, pattern::m_Trunc(pattern::m_Value(value)))) return builder.CreateZExtOrTrunc(value, type);
      return builder.CreateZExt(operand, type);
    };
    Value *left = whole(operation.getOperand(0)), *right = whole(operation.getOperand(1));
    Value *result = builder.CreateBinOp(operation.getOpcode(), left, right, operation.getName());
    for (llvm::User *user : llvm::make_early_inc_range(operation.users()))
      if (llvm::isa<llvm::ZExtInst>(user)) user->replaceAllUsesWith(builder.CreateZExtOrTrunc(result, user->getType()));
    operation.replaceAllUsesWith(builder.CreateTrunc(result, operation.getType()));
  }

private:
  const llvm::DataLayout &layout;
  llvm::LazyValueInfo &values;
  llvm::AssumptionCache &assumptions;
  llvm::DominatorTree &dominators;
  llvm::ScalarEvolution &evolution;

  static bool fits_signed(const ConstantRange &range) {
    return range.getSignedMin().getSignificantBits() <= 32 && range.getSignedMax().getSignificantBits() <= 32;
  }

  static bool fits_bits(const ConstantRange &range) { return range.getUnsignedMax().getActiveBits() <= 32; }

  static ConstantRange nonneg(const ConstantRange &range) {
    unsigned bits = range.getBitWidth();
    ConstantRange all(llvm::APInt::getZero(bits), llvm::APInt::getSignedMinValue(bits));
    ConstantRange known = range.intersectWith(all);
    return known.isEmptySet() ? all : known;
  }

  ConstantRange range(Value *value, llvm::Instruction &at) {
    ConstantRange known = values.getConstantRange(value, &at, /*UndefAllowed=*/false);
    known = known.intersectWith(
        llvm::computeConstantRange(value, /*ForSigned=*/true, /*UseInstrInfo=*/true, &assumptions, &at, &dominators));
    known = known.intersectWith(evolution.getSignedRange(evolution.getSCEV(value)), ConstantRange::Signed);
    /* An empty range means unreachable code. */
    return known.isEmptySet() ? ConstantRange::getFull(known.getBitWidth()) : known;
  }

  /* Whether a dominating branch or ScalarEvolution proves the comparison. */
  bool is_guarded(llvm::CmpInst::Predicate predicate, Value *left, Value *right, llvm::Instruction &at) {
    unsigned steps = 0;
    const auto *node = dominators.getNode(at.getParent());
    for (; node && node->getIDom() && steps < 32; node = node->getIDom(), ++steps) {
      const llvm::BasicBlock *block = node->getBlock(), *before = block->getSinglePredecessor();
      const auto *branch = before ? llvm::dyn_cast<llvm::BranchInst>(before->getTerminator()) : nullptr;
      if (!branch || !branch->isConditional() || branch->getSuccessor(0) == branch->getSuccessor(1)) continue;
      bool holds = branch->getSuccessor(0) == block;
      if (llvm::isImpliedCondition(branch->getCondition(), predicate, left, right, layout, holds).value_or(false))
        return true;
    }
    return evolution.isKnownPredicateAt(predicate, evolution.getSCEV(left), evolution.getSCEV(right), &at);
  }

  /* With a divisor that is not negative, the sign of the remainder decides on the correction. The remainder by a divisor
   * of 32 bits has 32 bits, whatever the dividend. */
  static Value *by_nonneg(llvm::IRBuilder<> &builder, Kind kind, Value *a, Value *b, bool fits, bool short_divisor) {
    llvm::Type *whole = a->getType(), *type = fits ? builder.getInt32Ty() : whole;
    Value *dividend = builder.CreateTrunc(a, type), *divisor = builder.CreateTrunc(b, type);
    Value *zero = llvm::ConstantInt::get(type, 0), *one = llvm::ConstantInt::get(type, 1);
    Value *bad = builder.CreateICmpEQ(divisor, zero);
    Value *safe = builder.CreateSelect(bad, one, divisor);
    Value *remainder = builder.CreateSRem(dividend, safe);
    Value *half = short_divisor && kind.is_remainder ? builder.CreateTrunc(remainder, builder.getInt32Ty()) : remainder;
    Value *below = builder.CreateICmpSLT(half, llvm::ConstantInt::get(half->getType(), 0));
    Value *result;
    if (kind.is_remainder) {
      Value *above = builder.CreateAdd(half, builder.CreateTrunc(safe, half->getType()));
      result = builder.CreateSelect(below, above, half);
    } else {
      Value *quotient = builder.CreateSDiv(dividend, safe);
      quotient = builder.CreateSelect(below, builder.CreateSub(quotient, one), quotient);
      result = builder.CreateSelect(bad, zero, quotient);
    }
    return builder.CreateSExt(result, whole);
  }

  /* Whether `0 <= x < w` is proven. `or_both_zero`: either it holds, or `x` and `w` are 0. */
  enum class Below { unknown, or_both_zero, certain };

  Below below(Value *x, Value *w, llvm::Instruction &at) {
    if (range(x, at).isAllNonNegative() && is_guarded(llvm::CmpInst::ICMP_SLT, x, w, at)) return Below::certain;
    /* All values of `x` are 0 or remainders by `w`. If the definition of `w` dominates the phi `x`, all of them used
     * the same `w`. */
    auto is_remainder = [&](Value *value) {
      if (pattern::match(value, pattern::m_Zero())) return true;
      auto *call = llvm::dyn_cast<llvm::CallInst>(value);
      if (!call) return false;
      auto kind = kind_of(*call);
      return kind && kind->is_remainder && call->getArgOperand(1) == w;
    };
    auto *phi = llvm::dyn_cast<llvm::PHINode>(x);
    bool holds = phi ? llvm::all_of(phi->incoming_values(), is_remainder)
                     : llvm::isa<llvm::CallInst>(x) && is_remainder(x);
    if (!holds || !range(w, at).isAllNonNegative()) return Below::unknown;
    if (auto *made = llvm::dyn_cast<llvm::Instruction>(w); phi && made && !dominators.dominates(made, phi))
      return Below::unknown;
    return range(w, at).contains(llvm::APInt::getZero(w->getType()->getIntegerBitWidth())) ? Below::or_both_zero
                                                                                            : Below::certain;
  }

  /* The result without a division, if `a` is `x`, `x + 1` or `x - 1`, and `0 <= x < b`. */
  Value *choose(llvm::IRBuilder<> &builder, Kind kind, llvm::CallInst &call, const ConstantRange &of_a,
                const ConstantRange &of_b) {
    Value *a = call.getArgOperand(0), *b = call.getArgOperand(1);
    if (!of_b.isAllNonNegative() || llvm::isa<llvm::Constant>(a)) return nullptr;
    Value *zero = llvm::ConstantInt::get(a->getType(), 0), *one = llvm::ConstantInt::get(a->getType(), 1);
    if (below(a, b, call) != Below::unknown ||
        (of_a.isAllNonNegative() && of_a.getSignedMax().slt(of_b.getSignedMin())))
      return kind.is_remainder ? a : zero;
    Value *x;
    const llvm::APInt *by;
    if (!pattern::match(a, pattern::m_Add(pattern::m_Value(x), pattern::m_APInt(by))) ||
        (!by->isOne() && !by->isAllOnes()))
      return nullptr;
    Below known = below(x, b, call);
    if (known == Below::unknown) return nullptr;
    Value *is_zero = known == Below::or_both_zero ? builder.CreateICmpEQ(b, zero) : builder.getFalse();
    auto unless_zero = [&](Value *value) { return builder.CreateSelect(is_zero, zero, value); };
    if (by->isOne()) {
      /* The comparison also holds if `b` is 0. */
      Value *beyond = builder.CreateICmpSGE(a, b);
      if (kind.is_remainder) return builder.CreateSelect(beyond, zero, a);
      return unless_zero(builder.CreateZExt(beyond, a->getType()));
    }
    Value *is_first = builder.CreateICmpEQ(x, zero);
    if (kind.is_remainder) return builder.CreateSelect(is_first, unless_zero(builder.CreateSub(b, one)), a);
    return unless_zero(builder.CreateSExt(is_first, a->getType()));
  }

  /* If a loop computes the remainder of its induction variable in each iteration: a second induction variable for
   * it. */
  Value *count_along(llvm::Instruction &at, Value *a, Value *b, const ConstantRange &of_b) {
    llvm::Type *type = a->getType(), *narrow = type;
    if (!of_b.isAllNonNegative()) return nullptr;
    /* A 32-bit division by a constant is a multiplication anyway. */
    if (llvm::isa<llvm::Constant>(b) && !type->isIntegerTy(64)) return nullptr;
    const auto *counter = llvm::dyn_cast<llvm::SCEVAddRecExpr>(evolution.getSCEV(a));
    if (!counter || !counter->isAffine()) return nullptr;
    const llvm::Loop &loop = *counter->getLoop();
    const auto *first = llvm::dyn_cast<llvm::SCEVConstant>(counter->getStart());
    const auto *step = llvm::dyn_cast<llvm::SCEVConstant>(counter->getStepRecurrence(evolution));
    if (!first || first->getAPInt().isNegative() || !step || !step->getAPInt().isOne()) return nullptr;
    /* If the induction variable wraps, its remainder does not increase by one there. */
    if (!counter->hasNoSignedWrap() && !evolution.getSignedRange(counter).isAllNonNegative()) return nullptr;
    llvm::BasicBlock *before = loop.getLoopPreheader(), *latch = loop.getLoopLatch();
    if (!before || !latch || !loop.contains(&at) || !loop.isLoopInvariant(b) ||
        !dominators.dominates(at.getParent(), latch))
      return nullptr;
    if (type->isIntegerTy(64) && of_b.getSignedMax().getSignificantBits() <= 32)
      narrow = llvm::Type::getInt32Ty(type->getContext());
    llvm::IRBuilder<> outside(before->getTerminator());
    Value *end = outside.CreateTrunc(b, narrow);
    Value *from = divide(outside, {false, true}, llvm::ConstantInt::get(type, first->getAPInt()), b, false, false);
    from = outside.CreateTrunc(from, narrow);
    llvm::IRBuilder<> builder(&loop.getHeader()->front());
    llvm::PHINode *count = builder.CreatePHI(narrow, 2);
    builder.SetInsertPoint(latch->getTerminator());
    /* `count` is below `end`, so the sum does not wrap. If `end` is 0, `count` remains 0. */
    Value *next = builder.CreateAdd(count, llvm::ConstantInt::get(narrow, 1), "", true, true);
    next = builder.CreateSelect(builder.CreateICmpSGE(next, end), llvm::ConstantInt::get(narrow, 0), next);
    count->addIncoming(from, before);
    count->addIncoming(next, latch);
    builder.SetInsertPoint(&at);
    return builder.CreateZExt(count, type);
  }
};

/* Expands the calls of all functions, and shortens 64-bit divisions by constants that LLVM has made. */
struct Expand : llvm::PassInfoMixin<Expand> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses) {
    auto calls = calls_of(function);
    llvm::SmallVector<llvm::BinaryOperator *, 8> plain;
    llvm::SmallVector<llvm::BinaryOperator *, 8> narrow;
    for (llvm::Instruction &instruction : llvm::instructions(function)) {
      if (is_wide(instruction)) plain.push_back(llvm::cast<llvm::BinaryOperator>(&instruction));
      if (is_narrow(instruction)) narrow.push_back(llvm::cast<llvm::BinaryOperator>(&instruction));
    }
    if (calls.empty() && plain.empty() && narrow.empty()) return llvm::PreservedAnalyses::all();
    /* New induction variables need preheaders. LLVM's next pass requires simplified loops, too. */
    analyses.invalidate(function, llvm::LoopSimplifyPass().run(function, analyses));
    Divisions divisions(function, analyses);
    /* Ranges of one call may depend on another call. Hence all calls are replaced only after the last one is
     * analyzed. */
    llvm::SmallVector<std::pair<llvm::Instruction *, Value *>, 8> results;
    for (llvm::CallInst *call : calls) results.emplace_back(call, divisions.expand(*call));
    for (llvm::BinaryOperator *operation : plain)
      if (Value *shorter = divisions.shorten(*operation)) results.emplace_back(operation, shorter);
    llvm::erase_if(narrow, [&](llvm::BinaryOperator *operation) { return !divisions.is_too_narrow(*operation); });
    for (auto &[old, result] : results) {
      old->replaceAllUsesWith(result);
      /* A result may itself be a call that is replaced here. */
      for (auto &other : results)
        if (other.second == old) other.second = result;
    }
    for (auto &[old, result] : results) old->eraseFromParent();
    for (llvm::BinaryOperator *operation : narrow) Divisions::widen(*operation);
    llvm::PreservedAnalyses kept;
    kept.preserveSet<llvm::CFGAnalyses>();
    analyses.invalidate(function, kept);
    /* A quotient and a remainder of the same operands repeat the same tests: merge them. */
    if (!results.empty() || !narrow.empty()) llvm::EarlyCSEPass().run(function, analyses);
    return llvm::PreservedAnalyses::none();
  }
  static bool isRequired() { return true; }

private:
  static bool is_narrow(const llvm::Instruction &instruction) {
    auto opcode = instruction.getOpcode();
    return (opcode == llvm::Instruction::UDiv || opcode == llvm::Instruction::URem) &&
           instruction.getType()->isIntegerTy() && instruction.getType()->getIntegerBitWidth() < 32;
  }

  static bool is_wide(const llvm::Instruction &instruction) {
    auto opcode = instruction.getOpcode();
    const auto *divisor = opcode == llvm::Instruction::UDiv || opcode == llvm::Instruction::URem
                              ? llvm::dyn_cast<llvm::ConstantInt>(instruction.getOperand(1))
                              : nullptr;
    return divisor && instruction.getType()->isIntegerTy(64) && !divisor->getValue().isPowerOf2();
  }
};

/* Expands calls whose divisor has become a constant, so that LLVM simplifies them further. */
struct ExpandConstants : llvm::PassInfoMixin<ExpandConstants> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &) {
    bool changed = false;
    for (llvm::CallInst *call : calls_of(function)) {
      Kind kind = *kind_of(*call);
      Value *a = call->getArgOperand(0), *b = call->getArgOperand(1);
      if (!llvm::isa<llvm::ConstantInt>(b)) continue;
      llvm::IRBuilder<> builder(call);
      call->replaceAllUsesWith(divide(builder, kind, a, b, kind.is_signed, false));
      call->eraseFromParent();
      changed = true;
    }
    if (!changed) return llvm::PreservedAnalyses::all();
    llvm::PreservedAnalyses kept;
    kept.preserveSet<llvm::CFGAnalyses>();
    return kept;
  }
};

/* Whether a value is in (0, 2^31), for which a 32-bit division has the same result and does not overflow. */
bool is_short_divisor(const Value *divisor, const llvm::DataLayout &layout, const llvm::Instruction &at) {
  ConstantRange range = llvm::computeConstantRange(divisor, /*ForSigned=*/true, /*UseInstrInfo=*/true, nullptr, &at)
                            .intersectWith(ConstantRange::fromKnownBits(llvm::computeKnownBits(divisor, layout), true));
  if (range.isEmptySet()) return true;
  return !range.getSignedMin().isNegative() && range.getSignedMax().isSignedIntN(32) &&
         (!range.getSignedMin().isZero() || llvm::isKnownNonZero(divisor, llvm::SimplifyQuery(layout, &at)));
}

/* Both results of one division, at one instruction. */
struct WideDivision {
  llvm::SmallVector<llvm::BinaryOperator *, 2> operations;
};

/* Replaces a division by a branch on the width of its operands. The second result of the same operands, if any, is
 * computed on the same paths. */
void branch_on_width(const WideDivision &division, const llvm::DataLayout &layout) {
  llvm::BinaryOperator *first = division.operations.front();
  Value *a = first->getOperand(0), *b = first->getOperand(1);
  llvm::IRBuilder<> builder(first);
  llvm::Type *narrow = builder.getInt32Ty(), *wide = a->getType();
  Value *low = builder.CreateTrunc(a, narrow);
  Value *fits = builder.CreateICmpEQ(builder.CreateSExt(low, wide), a);
  if (!is_short_divisor(b, layout, *first)) {
    Value *less = builder.CreateSub(b, llvm::ConstantInt::get(wide, 1));
    fits = builder.CreateAnd(fits, builder.CreateICmpULT(less, llvm::ConstantInt::get(wide, INT32_MAX)));
  }
  Value *divisor = builder.CreateTrunc(b, narrow);
  llvm::Instruction *then, *otherwise;
  llvm::SplitBlockAndInsertIfThenElse(fits, first->getIterator(), &then, &otherwise);
  for (llvm::BinaryOperator *operation : division.operations) {
    builder.SetInsertPoint(then);
    Value *result = builder.CreateBinOp(operation->getOpcode(), low, divisor);
    auto *copy = operation->clone();
    copy->insertBefore(otherwise->getIterator());
    Value *other = copy;
    /* If only the lower half is used, it alone is joined. */
    bool is_half = llvm::all_of(operation->users(), [&](const llvm::User *user) {
      return llvm::isa<llvm::TruncInst>(user) && user->getType() == narrow;
    });
    if (is_half) {
      builder.SetInsertPoint(otherwise);
      other = builder.CreateTrunc(copy, narrow);
    } else {
      result = builder.CreateSExt(result, wide);
    }
    llvm::BasicBlock *joined = then->getSuccessor(0);
    builder.SetInsertPoint(joined, joined->begin());
    llvm::PHINode *either = builder.CreatePHI(result->getType(), 2);
    either->addIncoming(result, then->getParent());
    either->addIncoming(other, otherwise->getParent());
    either->takeName(operation);
    if (is_half) {
      for (llvm::User *user : llvm::make_early_inc_range(operation->users())) {
        user->replaceAllUsesWith(either);
        llvm::cast<llvm::Instruction>(user)->eraseFromParent();
      }
    } else {
      operation->replaceAllUsesWith(either);
    }
    operation->eraseFromParent();
  }
}

} // namespace

/* Legal: a quotient or remainder of numbers of 32 bits with a positive divisor has 32 bits. Profitable unless nearly all
 * dividends are long: the long path has the test in addition. Divisions by constants, which are products, and unsigned
 * ones remain. */
void weft::branch_on_width(llvm::Function &function) {
  llvm::SmallVector<WideDivision, 4> found;
  for (llvm::BasicBlock &block : function) {
    size_t earlier = found.size();
    for (llvm::Instruction &instruction : block) {
      auto opcode = instruction.getOpcode();
      if ((opcode != llvm::Instruction::SDiv && opcode != llvm::Instruction::SRem) ||
          !instruction.getType()->isIntegerTy(64) || llvm::isa<llvm::Constant>(instruction.getOperand(1)))
        continue;
      auto *operation = llvm::cast<llvm::BinaryOperator>(&instruction);
      auto *same = std::find_if(found.begin() + earlier, found.end(), [&](const WideDivision &division) {
        return llvm::equal(division.operations.front()->operands(), operation->operands());
      });
      if (same == found.end())
        found.push_back({{operation}});
      else
        same->operations.push_back(operation);
    }
  }
  for (const WideDivision &division : found) ::branch_on_width(division, function.getDataLayout());
}

void weft::register_divisions(llvm::PassBuilder &builder) {
  builder.registerPeepholeEPCallback(
      [](llvm::FunctionPassManager &passes, llvm::OptimizationLevel) { passes.addPass(ExpandConstants()); });
  builder.registerOptimizerEarlyEPCallback(
      [](llvm::ModulePassManager &passes, llvm::OptimizationLevel, llvm::ThinOrFullLTOPhase) {
        passes.addPass(llvm::createModuleToFunctionPassAdaptor(Expand()));
      });
}
