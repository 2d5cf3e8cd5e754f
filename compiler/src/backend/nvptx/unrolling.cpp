/* Loops that ptxas must not unroll.
 *
 * If a loop continues while its counter is on one side of a bound, ptxas (13.0 and 13.5) may unroll it by four. It
 * then assumes that the counter steps towards the bound, and tests the distance to the bound instead of whether the
 * counter has passed it: `do { i -= 2; } while (i <= 5);` runs for 2^61 iterations where it should end after the
 * first. LLVM creates such loops, too. If `i - 2` may wrap, then `i - 2 > -3` is the same as `unsigned(i) <=
 * 0x8000000000000001`. With signed numbers the distance may wrap as well: `do { i += 1; } while (i < bound);` runs
 * one iteration if `i` is far beyond the bound. ptxas also ignores that four large steps may wrap. */
#include "llvm-c/Core.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"

namespace {

/* More than the unroll factors of ptxas. */
constexpr unsigned max_unroll = 512;

/* Whether `max_unroll` steps exceed the range of a signed distance of this type. */
bool is_large(const llvm::APInt &step) {
  return step.getSignificantBits() + llvm::Log2_32(max_unroll) > step.getBitWidth();
}

/* For a loop that continues while its counter is on the `goes_on` side of `bound`: whether none of these is proven.
 * The first comparison is on that side, or at most a step or two past the bound, or so close that the distance does
 * not wrap. */
bool distance_may_wrap(llvm::CmpInst::Predicate goes_on, const llvm::SCEVAddRecExpr &counter, const llvm::SCEV *bound,
                       llvm::ScalarEvolution &evolution) {
  const llvm::SCEV *first = counter.getStart();
  const llvm::SCEV *step = counter.getStepRecurrence(evolution);
  const llvm::SCEV *before = evolution.getMinusSCEV(first, step), *after = evolution.getAddExpr(bound, step);
  const llvm::Loop *loop = counter.getLoop();
  auto distance = evolution.getSignedRange(first).signedSubMayOverflow(evolution.getSignedRange(bound));
  return distance != llvm::ConstantRange::OverflowResult::NeverOverflows &&
         !evolution.isLoopEntryGuardedByCond(loop, goes_on, first, bound) &&
         !evolution.isLoopEntryGuardedByCond(loop, goes_on, before, bound) &&
         !evolution.isLoopEntryGuardedByCond(loop, goes_on, first, after);
}

/* Whether ptxas would unroll a loop wrongly because of a comparison. The loop exits if the comparison is `leaves`. */
bool misleads(const llvm::Loop &loop, const llvm::ICmpInst &compare, bool leaves, llvm::ScalarEvolution &evolution) {
  if (!evolution.isSCEVable(compare.getOperand(0)->getType()) || !compare.getOperand(0)->getType()->isIntegerTy())
    return false;
  llvm::CmpInst::Predicate goes_on = leaves ? compare.getInversePredicate() : compare.getPredicate();
  const llvm::SCEV *left = evolution.getSCEV(compare.getOperand(0)), *right = evolution.getSCEV(compare.getOperand(1));
  const auto *counter = llvm::dyn_cast<llvm::SCEVAddRecExpr>(left);
  if (!counter || counter->getLoop() != &loop) {
    counter = llvm::dyn_cast<llvm::SCEVAddRecExpr>(right);
    if (!counter || counter->getLoop() != &loop) return false;
    std::swap(left, right);
    goes_on = llvm::CmpInst::getSwappedPredicate(goes_on);
  }
  if (!evolution.isLoopInvariant(right, &loop)) return false;
  const auto *step = llvm::dyn_cast<llvm::SCEVConstant>(counter->getStepRecurrence(evolution));
  if (!step || step->isZero()) return false;
  if (is_large(step->getAPInt())) return true;
  if (llvm::ICmpInst::isEquality(goes_on)) return false;
  bool below = llvm::ICmpInst::isLT(goes_on) || llvm::ICmpInst::isLE(goes_on);
  if (below == step->getAPInt().isNegative()) return true;
  return llvm::ICmpInst::isSigned(goes_on) && distance_may_wrap(goes_on, *counter, right, evolution);
}

bool misleads(const llvm::Loop &loop, const llvm::BasicBlock &exiting, llvm::ScalarEvolution &evolution) {
  using namespace llvm::PatternMatch;
  const auto *branch = llvm::dyn_cast<llvm::BranchInst>(exiting.getTerminator());
  if (!branch || !branch->isConditional()) return false;
  bool leaves = !loop.contains(branch->getSuccessor(0));
  /* Each of these conditions alone makes the loop exit. */
  llvm::SmallVector<std::pair<llvm::Value *, bool>, 4> conditions = {{branch->getCondition(), leaves}};
  llvm::SmallPtrSet<llvm::Value *, 8> seen;
  while (!conditions.empty()) {
    auto [condition, when] = conditions.pop_back_val();
    if (!seen.insert(condition).second) continue;
    llvm::Value *one, *two;
    if (match(condition, m_Not(m_Value(one)))) {
      conditions.emplace_back(one, !when);
    } else if (when ? match(condition, m_LogicalOr(m_Value(one), m_Value(two)))
                    : match(condition, m_LogicalAnd(m_Value(one), m_Value(two)))) {
      conditions.emplace_back(one, when);
      conditions.emplace_back(two, when);
    } else if (const auto *compare = llvm::dyn_cast<llvm::ICmpInst>(condition)) {
      if (misleads(loop, *compare, when, evolution)) return true;
    }
  }
  return false;
}

} // namespace

/* Marks such loops as unrolled, which the code generator passes on to ptxas. Call it after LLVM's passes. */
extern "C" void weft_disable_unrolling(LLVMModuleRef module) {
  for (llvm::Function &function : *llvm::unwrap(module)) {
    if (function.isDeclaration()) continue;
    llvm::DominatorTree dominators(function);
    llvm::LoopInfo loops(dominators);
    if (loops.empty()) continue;
    llvm::AssumptionCache assumptions(function);
    llvm::TargetLibraryInfoImpl implementation(function.getParent()->getTargetTriple());
    llvm::TargetLibraryInfo library(implementation, &function);
    llvm::ScalarEvolution evolution(function, library, assumptions, dominators, loops);
    for (llvm::Loop *loop : loops.getLoopsInPreorder()) {
      llvm::SmallVector<llvm::BasicBlock *, 8> exiting;
      loop->getExitingBlocks(exiting);
      for (const llvm::BasicBlock *block : exiting)
        if (misleads(*loop, *block, evolution)) {
          loop->setLoopAlreadyUnrolled();
          break;
        }
    }
  }
}
