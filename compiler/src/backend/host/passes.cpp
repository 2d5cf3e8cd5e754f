/* LLVM's passes over a module for a CPU, without runtime unrolling of the loops that each thread runs on its own.
 *
 * If the trip count of a loop is only known at run time, LLVM unrolls a short body by a factor and adds a remainder
 * loop. Thread loops are long and profit. A sequential loop of the program that remains inside a thread loop has few
 * iterations for each thread, such as `for j in range(starts[i], starts[i + 1])`: most of them would run in the
 * remainder loop. LLVM's options for unrolling are global to the process, so loop metadata disables it. */
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

/* Defined in `lanes.cpp`. */
bool forward_lanes(llvm::Function &function);

} // namespace weft

namespace {

/* The metadata of sequential loops of the program (`shim::of_program`). */
constexpr llvm::StringLiteral of_program = "weft.of_program";

/* Whether a loop is vectorized, over threads or over its own iterations. */
bool has_vectors(const llvm::Loop &loop) {
  for (const llvm::BasicBlock *block : loop.blocks())
    for (const llvm::Instruction &instruction : *block)
      if (instruction.getType()->isVectorTy()) return true;
  return false;
}

/* Disables runtime unrolling of the program's innermost loops that are not vectorized. */
void keep_short_loops(llvm::Function &function) {
  llvm::DominatorTree dominators(function);
  llvm::LoopInfo loops(dominators);
  for (llvm::Loop *loop : loops.getLoopsInPreorder())
    if (llvm::getBooleanLoopAttribute(loop, of_program) && loop->isInnermost() && !has_vectors(*loop))
      llvm::addStringMetadataToLoop(loop, "llvm.loop.unroll.runtime.disable");
}

/* The attribute of functions in which each warp is a block of its own. */
constexpr llvm::StringLiteral of_one_warp = "weft.of_one_warp";

/* Forwards values between the lanes of such a warp in registers (`lanes.cpp`), then cleans up. */
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

/* Duplicates a comparison of a scalar with a constant that two selects share, such as those around the exponential
 * function. LLVM's code generator turns a shared comparison into a byte of a register, whose other bytes are from the
 * previous iteration: a false dependence. With a comparison for each select it emits masks. The second comparison is
 * equivalent but not equal, so that LLVM does not merge the two: `x < c` is `x <= d`, where `d` is the largest number
 * below `c`. */
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
      /* This only adds loop metadata: cached analyses remain valid. */
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
