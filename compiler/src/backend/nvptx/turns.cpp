/* Loops that ptxas must take turn by turn.
 *
 * Where a loop goes on while its counter is on one side of a bound, ptxas (13.0 and 13.5) may take four turns in one. It
 * then trusts that the counter steps towards the bound, and asks how far the bound is, not whether it has been passed:
 * `do { i -= 2; } while (i <= 5);` goes on for 2^61 turns where it should end after the first. LLVM makes such loops,
 * too: where `i - 2` may wrap, `i - 2 > -3` is the same as `unsigned(i) <= 0x8000000000000001`. With signed numbers the
 * distance may wrap as well: `do { i += 1; } while (i < bound);` does one turn where `i` is far beyond the bound. Nor does
 * ptxas see that four steps wrap where the step is large. */
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

/* More turns than ptxas takes in one. */
constexpr unsigned turns = 512;

/* Whether that many steps leave the half of their type's numbers that a distance has. */
bool is_large(const llvm::APInt &step) { return step.getSignificantBits() + llvm::Log2_32(turns) > step.getBitWidth(); }

/* Whether it is not certain that a loop that goes on while its counter is on this side of `bound` comes to the first
 * comparison on that side, or a step or two behind it, or so near that the distance does not wrap. */
bool comes_from_afar(llvm::CmpInst::Predicate goes_on, const llvm::SCEVAddRecExpr &counter, const llvm::SCEV *bound,
                     llvm::ScalarEvolution &evolution) {
  const llvm::SCEV *first = counter.getStart();
  const llvm::SCEV *step = counter.getStepRecurrence(evolution);
  const llvm::SCEV *before = evolution.getMinusSCEV(first, step), *behind = evolution.getAddExpr(bound, step);
  const llvm::Loop *loop = counter.getLoop();
  auto distance = evolution.getSignedRange(first).signedSubMayOverflow(evolution.getSignedRange(bound));
  return distance != llvm::ConstantRange::OverflowResult::NeverOverflows &&
         !evolution.isLoopEntryGuardedByCond(loop, goes_on, first, bound) &&
         !evolution.isLoopEntryGuardedByCond(loop, goes_on, before, bound) &&
         !evolution.isLoopEntryGuardedByCond(loop, goes_on, first, behind);
}

/* Whether a comparison that leaves the loop, where it is what `leaves` says, is such a one. */
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
  return llvm::ICmpInst::isSigned(goes_on) && comes_from_afar(goes_on, *counter, right, evolution);
}

bool misleads(const llvm::Loop &loop, const llvm::BasicBlock &exiting, llvm::ScalarEvolution &evolution) {
  using namespace llvm::PatternMatch;
  const auto *branch = llvm::dyn_cast<llvm::BranchInst>(exiting.getTerminator());
  if (!branch || !branch->isConditional()) return false;
  bool leaves = !loop.contains(branch->getSuccessor(0));
  /* Each of these leaves the loop by itself. */
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

/* Marks them, so that the code generator tells ptxas. It is for a module that LLVM's passes have been through. */
extern "C" void weft_turn_by_turn(LLVMModuleRef module) {
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
