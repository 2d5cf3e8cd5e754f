/* LLVM's passes over a module that becomes code for a CPU, without the unrolling of loops that a thread runs by itself.
 *
 * Where the number of turns is known at run time only, LLVM makes eight turns of a short loop one, with a second loop for
 * what is left. Loops over a block's threads are long, and gain by it. A loop of the program's that is left for each thread
 * alone, because it goes on as long as that thread needs (`for j in range(starts[i], starts[i + 1])`), has a few turns at a
 * time: the threads would run most of them in the second loop. LLVM's settings for that are the process's. */
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Utils/LoopUtils.h"

#include "../llvm/passes.h"

namespace weft {

/* Of `llvm/lanes.cpp`. */
bool forward_lanes(llvm::Function &function);

} // namespace weft

namespace {

/* What the back end says of loops of the program's (`shim::of_program`). */
constexpr llvm::StringLiteral of_program = "weft.of_program";

/* Whether a loop works on vectors: of threads, or of its own turns. */
bool has_vectors(const llvm::Loop &loop) {
  for (const llvm::BasicBlock *block : loop.blocks())
    for (const llvm::Instruction &instruction : *block)
      if (instruction.getType()->isVectorTy()) return true;
  return false;
}

/* Leaves the loops of single threads out of what is unrolled at counts that are known at run time only. */
void keep_short_loops(llvm::Function &function) {
  llvm::DominatorTree dominators(function);
  llvm::LoopInfo loops(dominators);
  for (llvm::Loop *loop : loops.getLoopsInPreorder())
    if (llvm::getBooleanLoopAttribute(loop, of_program) && loop->isInnermost() && !has_vectors(*loop))
      llvm::addStringMetadataToLoop(loop, "llvm.loop.unroll.runtime.disable");
}

/* Functions in which a warp is a block of its own. */
constexpr llvm::StringLiteral of_one_warp = "weft.of_one_warp";

/* What the lanes of such a warp hand on, in registers. */
struct ForwardLanes : llvm::PassInfoMixin<ForwardLanes> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses) {
    if (!function.hasFnAttribute(of_one_warp) || !weft::forward_lanes(function)) return llvm::PreservedAnalyses::all();
    analyses.invalidate(function, llvm::PreservedAnalyses::none());
    for (bool arrays : {true, false}) {
      llvm::PreservedAnalyses left = arrays ? llvm::SROAPass(llvm::SROAOptions::PreserveCFG).run(function, analyses)
                                            : llvm::InstCombinePass().run(function, analyses);
      analyses.invalidate(function, left);
    }
    return llvm::PreservedAnalyses::none();
  }
};

} // namespace

/* See `weft::run_passes`. */
extern "C" LLVMErrorRef weft_host_passes(LLVMModuleRef module, const char *pipeline, LLVMTargetMachineRef machine,
                                         int is_large) {
  auto prepare = [](llvm::PassInstrumentationCallbacks &callbacks, llvm::PassBuilder &builder) {
    callbacks.registerBeforeNonSkippedPassCallback([](llvm::StringRef pass, llvm::Any unit) {
      /* What a loop is to be spared is no change of its code. */
      if (llvm::Function *function = weft::function_of(unit); function && pass == "LoopUnrollPass")
        keep_short_loops(*function);
    });
    builder.registerOptimizerLastEPCallback(
        [](llvm::ModulePassManager &last, llvm::OptimizationLevel, llvm::ThinOrFullLTOPhase) {
          last.addPass(llvm::createModuleToFunctionPassAdaptor(ForwardLanes()));
        });
  };
  return weft::run_passes(*llvm::unwrap(module), pipeline, machine, is_large, prepare);
}
