/* Induction variables of loops with several exits.
 *
 * `while count < limit: if …: break; count += 1` exits with its counter at the break and with `limit` at the end,
 * because LLVM replaces the counter by the equal `limit` there. The value after the loop then has two sources, and
 * each iteration moves both to one register: twice as many moves as the loop has exits. This pass uses the counter
 * at both exits, so there is one source. LLVM's next value numbering would replace it by `limit` again, since the
 * exit condition is `counter == limit`; therefore the pass changes the condition to `>=`. Both conditions are the
 * same, because the counter starts below its bound and grows by one. */
#include "exits.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/PatternMatch.h"

namespace {

using llvm::BasicBlock;

/* An exit that a loop takes when its counter reaches a bound. */
struct Exit {
  llvm::BranchInst *branch;
  llvm::ICmpInst *compare;
  /* The counter of this iteration, and that of the next one: one more. */
  llvm::PHINode *counter;
  llvm::Instruction *next;
  llvm::Value *bound;
  BasicBlock *target;
  bool leaves_if_true;
};

/* Finds such an exit at the end of a block. */
bool find(BasicBlock &block, const llvm::Loop &loop, Exit &exit) {
  auto *branch = llvm::dyn_cast<llvm::BranchInst>(block.getTerminator());
  if (!branch || !branch->isConditional()) return false;
  auto *compare = llvm::dyn_cast<llvm::ICmpInst>(branch->getCondition());
  if (!compare || !compare->isEquality() || !compare->hasOneUse()) return false;
  bool leaves_if_true = compare->getPredicate() == llvm::ICmpInst::ICMP_EQ;
  BasicBlock *target = branch->getSuccessor(leaves_if_true ? 0 : 1);
  if (loop.contains(target) || !loop.contains(branch->getSuccessor(leaves_if_true ? 1 : 0))) return false;
  for (unsigned side : {0, 1}) {
    auto *next = llvm::dyn_cast<llvm::Instruction>(compare->getOperand(side));
    llvm::Value *bound = compare->getOperand(1 - side), *before = nullptr;
    if (!next || !loop.contains(next) || !loop.isLoopInvariant(bound)) continue;
    if (!llvm::PatternMatch::match(next, llvm::PatternMatch::m_Add(llvm::PatternMatch::m_Value(before),
                                                                 llvm::PatternMatch::m_One())))
      continue;
    auto *counter = llvm::dyn_cast<llvm::PHINode>(before);
    if (!counter || counter->getParent() != loop.getHeader()) continue;
    exit = {branch, compare, counter, next, bound, target, leaves_if_true};
    return true;
  }
  return false;
}

/* Whether a phi after the loop has the bound from this exit and the counter from another one. */
bool is_split(const llvm::PHINode &phi, const Exit &exit) {
  bool has_counter = false;
  for (unsigned index = 0; index < phi.getNumIncomingValues(); ++index)
    has_counter |= phi.getIncomingValue(index) == exit.counter || phi.getIncomingValue(index) == exit.next;
  return has_counter && phi.getIncomingValueForBlock(exit.branch->getParent()) == exit.bound;
}

/* The signed or unsigned predicate by which the counter is proven to be below its bound before the loop, if any. */
std::optional<llvm::CmpInst::Predicate> below(const Exit &exit, const llvm::Loop &loop,
                                             llvm::ScalarEvolution &evolution) {
  BasicBlock *entry = loop.getLoopPredecessor(), *latch = loop.getLoopLatch();
  if (!entry || !latch || exit.counter->getIncomingValueForBlock(latch) != exit.next) return std::nullopt;
  const llvm::SCEV *start = evolution.getSCEV(exit.counter->getIncomingValueForBlock(entry));
  const llvm::SCEV *bound = evolution.getSCEV(exit.bound);
  for (llvm::CmpInst::Predicate predicate : {llvm::CmpInst::ICMP_SLT, llvm::CmpInst::ICMP_ULT})
    if (evolution.isLoopEntryGuardedByCond(&loop, predicate, start, bound)) return predicate;
  return std::nullopt;
}

struct CountExits : llvm::PassInfoMixin<CountExits> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses) {
    auto &loops = analyses.getResult<llvm::LoopAnalysis>(function);
    auto &dominators = analyses.getResult<llvm::DominatorTreeAnalysis>(function);
    bool changed = false;
    for (llvm::Loop *loop : loops.getLoopsInPreorder())
      for (BasicBlock *block : loop->blocks()) {
        Exit exit;
        if (loops.getLoopFor(block) != loop || !find(*block, *loop, exit)) continue;
        llvm::SmallVector<llvm::PHINode *, 2> split;
        for (llvm::PHINode &phi : exit.target->phis())
          if (is_split(phi, exit)) split.push_back(&phi);
        /* Each iteration must execute the comparison, or the counter may pass its bound. */
        if (split.empty() || !loop->getLoopLatch() || !dominators.dominates(block, loop->getLoopLatch())) continue;
        auto predicate = below(exit, *loop, analyses.getResult<llvm::ScalarEvolutionAnalysis>(function));
        if (!predicate) continue;
        for (llvm::PHINode *phi : split) phi->setIncomingValueForBlock(block, exit.next);
        exit.compare->setOperand(0, exit.next);
        exit.compare->setOperand(1, exit.bound);
        exit.compare->setPredicate(exit.leaves_if_true ? llvm::CmpInst::getInversePredicate(*predicate) : *predicate);
        exit.compare->setSameSign(false);
        changed = true;
      }
    return changed ? llvm::PreservedAnalyses::none() : llvm::PreservedAnalyses::all();
  }
};

} // namespace

void weft::register_exits(llvm::PassBuilder &builder) {
  builder.registerOptimizerLastEPCallback(
      [](llvm::ModulePassManager &passes, llvm::OptimizationLevel, llvm::ThinOrFullLTOPhase) {
        passes.addPass(llvm::createModuleToFunctionPassAdaptor(CountExits()));
      });
}
