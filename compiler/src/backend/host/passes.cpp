/* LLVM's passes over a module that becomes code for a CPU, without the unrolling of loops that a thread runs by itself.
 *
 * Where the number of turns is known at run time only, LLVM makes eight turns of a short loop one, with a second loop for
 * what is left. Loops over a block's threads are long, and gain by it. A loop of the program's that is left for each thread
 * alone, because it goes on as long as that thread needs (`for j in range(starts[i], starts[i + 1])`), has a few turns at a
 * time: the threads would run most of them in the second loop. LLVM's settings for that are the process's. */
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Utils/LoopUtils.h"

#include "../llvm/passes.h"

namespace weft {

/* Of `lanes.cpp`. */
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

/* Comparisons of scalars with a constant that two selections ask, as those around the exponential function do. LLVM's code generator
 * then makes no mask of the comparison, but a byte of a register, of which the rest is what the last turn has left there: each
 * turn would wait for the one before. So the second selection asks the same in other words: what is less than a constant is no more
 * than the number below it. */
struct PartComparisons : llvm::PassInfoMixin<PartComparisons> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &) {
    llvm::SmallVector<llvm::FCmpInst *> comparisons;
    for (llvm::Instruction &instruction : llvm::instructions(function))
      if (auto *comparison = llvm::dyn_cast<llvm::FCmpInst>(&instruction)) comparisons.push_back(comparison);
    bool changes = false;
    for (llvm::FCmpInst *comparison : comparisons) changes |= part(*comparison);
    if (!changes) return llvm::PreservedAnalyses::all();
    llvm::PreservedAnalyses left;
    left.preserveSet<llvm::CFGAnalyses>();
    return left;
  }

  static bool part(llvm::FCmpInst &comparison) {
    llvm::Type *type = comparison.getOperand(0)->getType();
    auto *bound = llvm::dyn_cast<llvm::ConstantFP>(comparison.getOperand(1));
    bool less = comparison.getPredicate() == llvm::CmpInst::FCMP_OLT;
    if (!bound || type->isVectorTy() || !comparison.hasNUses(2) || !bound->getValueAPF().isNormal()) return false;
    if (!less && comparison.getPredicate() != llvm::CmpInst::FCMP_OGT) return false;
    llvm::SelectInst *last = nullptr;
    for (llvm::User *user : comparison.users()) {
      auto *selection = llvm::dyn_cast<llvm::SelectInst>(user);
      if (!selection || selection->getCondition() != &comparison || selection->getType() != type) return false;
      last = selection;
    }
    llvm::APFloat beside = bound->getValueAPF();
    beside.next(less);
    auto predicate = less ? llvm::CmpInst::FCMP_OLE : llvm::CmpInst::FCMP_OGE;
    llvm::IRBuilder<> builder(&comparison);
    last->setCondition(
        builder.CreateFCmp(predicate, comparison.getOperand(0), llvm::ConstantFP::get(type->getContext(), beside)));
    return true;
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
          last.addPass(llvm::createModuleToFunctionPassAdaptor(PartComparisons()));
        });
  };
  return weft::run_passes(*llvm::unwrap(module), pipeline, machine, is_large, prepare);
}
