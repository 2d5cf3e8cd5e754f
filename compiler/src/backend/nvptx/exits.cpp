/* Counters of loops that are left in several ways.
 *
 * `while count < limit: if …: break; count += 1` is left with its counter at the break and with `limit` at its end, which LLVM
 * knows to be the counter there. So what stands behind the loop has two sources, and each turn moves both to one register:
 * twice as many moves as the loop has ways out. With the counter from both it has one source. LLVM's next search for equal
 * values would put the bound there again, as the loop is left where the counter `==` it; where it is left at `>=` that is not
 * known. Both are the same, as the counter begins below its bound and grows by one. */
#include "exits.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/PatternMatch.h"

namespace {

using llvm::BasicBlock;

/* A way out of a loop that is taken where its counter reaches a bound. */
struct Exit {
  llvm::BranchInst *branch;
  llvm::ICmpInst *compare;
  /* The counter in this turn and, one more, in the next one. */
  llvm::PHINode *counter;
  llvm::Instruction *next;
  llvm::Value *bound;
  BasicBlock *target;
  bool leaves_if_true;
};

/* That of a block, if it has one. */
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

/* Whether a value behind the loop is its bound at this way out and its counter at another one. */
bool is_split(const llvm::PHINode &phi, const Exit &exit) {
  bool has_counter = false;
  for (unsigned index = 0; index < phi.getNumIncomingValues(); ++index)
    has_counter |= phi.getIncomingValue(index) == exit.counter || phi.getIncomingValue(index) == exit.next;
  return has_counter && phi.getIncomingValueForBlock(exit.branch->getParent()) == exit.bound;
}

/* What is true of a counter below its bound before the loop: signed or not. Nothing of another one. */
std::optional<llvm::CmpInst::Predicate> below(const Exit &exit, const llvm::Loop &loop, llvm::ScalarEvolution &evolution) {
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
        /* Each turn must come to it, or the counter may pass its bound. */
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
