/* Peels an iteration of loops that begin another loop's body.
 *
 * `while not done: while labels[i] != i: i = labels[i] …` has two loops whose first blocks are the same in machine code,
 * since nothing is computed between them. ptxas puts a YIELD at the head of a loop that other threads may wait for, so
 * that the warp switches to its other threads. Here it is in each iteration of the inner loop. NVIDIA's compiler peels
 * the first iteration of the inner loop, which gives the outer loop a head of its own.
 *
 * Legal for every loop that LLVM can peel and that has no operation of several threads. It costs a copy of the body, so
 * long bodies are refused, and loops with a known trip count, which ptxas does not let others wait for. */
#include "heads.h"

#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/LoopPeel.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"
#include "llvm/Transforms/Utils/LoopUtils.h"

namespace {

/* The maximum number of instructions of a body. */
constexpr size_t LARGEST_PEELED = 40;

/* Whether a block only joins values and jumps. */
bool only_jumps(const llvm::BasicBlock &block) { return &*block.getFirstNonPHIIt() == block.getTerminator(); }

bool begins_outer_loop(const llvm::Loop &loop, llvm::ScalarEvolution &evolution) {
  const llvm::Loop *outer = loop.getParentLoop();
  const llvm::BasicBlock *before = loop.getLoopPreheader();
  if (!outer || !before || outer->getHeader() != before || !only_jumps(*before) || !loop.isInnermost()) return false;
  if (!llvm::isa<llvm::SCEVCouldNotCompute>(evolution.getBackedgeTakenCount(&loop))) return false;
  size_t count = 0;
  for (const llvm::BasicBlock *block : loop.blocks())
    for (const llvm::Instruction &instruction : *block) {
      const auto *call = llvm::dyn_cast<llvm::CallBase>(&instruction);
      if (call && (call->isConvergent() || call->cannotDuplicate())) return false;
      ++count;
    }
  return count <= LARGEST_PEELED;
}

struct PeelHeads : llvm::PassInfoMixin<PeelHeads> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses) {
    llvm::LoopInfo &loops = analyses.getResult<llvm::LoopAnalysis>(function);
    llvm::DominatorTree &dominators = analyses.getResult<llvm::DominatorTreeAnalysis>(function);
    llvm::ScalarEvolution &evolution = analyses.getResult<llvm::ScalarEvolutionAnalysis>(function);
    llvm::AssumptionCache &assumptions = analyses.getResult<llvm::AssumptionAnalysis>(function);
    bool changes = false;
    for (llvm::Loop *loop : loops.getLoopsInPreorder()) {
      if (!begins_outer_loop(*loop, evolution)) continue;
      llvm::simplifyLoop(loop, &dominators, &loops, &evolution, &assumptions, nullptr, false);
      llvm::formLCSSARecursively(*loop->getOutermostLoop(), dominators, &loops, &evolution);
      if (!loop->isLoopSimplifyForm() || !llvm::canPeel(loop)) continue;
      llvm::ValueToValueMapTy copies;
      changes |= llvm::peelLoop(loop, 1, false, &loops, &evolution, dominators, &assumptions, true, copies);
    }
    return changes ? llvm::PreservedAnalyses::none() : llvm::PreservedAnalyses::all();
  }
};

} // namespace

void weft::register_heads(llvm::PassBuilder &builder) {
  builder.registerOptimizerLastEPCallback(
      [](llvm::ModulePassManager &last, llvm::OptimizationLevel, llvm::ThinOrFullLTOPhase) {
        last.addPass(llvm::createModuleToFunctionPassAdaptor(PeelHeads()));
      });
}
