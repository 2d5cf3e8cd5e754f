/* Unrolling by four of loops that LLVM regards as too long.
 *
 * LLVM unrolls a loop whose trip count is known at run time if its iterations have up to 75 instructions together, a
 * limit for CPUs, which execute loads of later iterations early. A GPU does not, so that each iteration waits for its
 * loads. NVIDIA's compiler unrolls longer loops by four.
 *
 * Legal for each innermost loop that LLVM can unroll with a remainder: its trip count can be computed before it, it exits
 * at its end only, and it has no convergent operation, which the remainder would separate from the other threads'.
 * Profitable if an iteration loads from global memory and writes nothing: the loads of four iterations then overlap. The
 * pass skips loops inside other loops, which often have few iterations, and bodies above a size limit, for which ptxas
 * needs more registers, and fewer warps fit. Loops with an unrolling annotation of their own are not changed. */
#include "partial_unrolling.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/LoopUtils.h"

namespace {

/* LLVM's own limit for all iterations, see `NVPTXTTIImpl::getUnrollingPreferences`. */
constexpr unsigned LLVM_LIMIT = 75;

/* The unroll factor, and the maximum number of instructions of all its iterations. */
constexpr unsigned UNROLL_FACTOR = 4;
constexpr unsigned MAX_UNROLLED_INSTRUCTIONS = 256;

/* The number of instructions of a loop that LLVM does not count for each iteration: the comparison and the branch. */
constexpr unsigned BACK_EDGE_INSTRUCTIONS = 2;

/* The address space of global memory. */
constexpr unsigned GLOBAL = 1;

/* The fewest iterations that pay, if the number is bounded at all. */
constexpr unsigned MIN_TRIP_COUNT = 2 * UNROLL_FACTOR;

/* Whether a loop counts by one. The pass `unroll` has unrolled others, and what is left of them has few iterations. */
bool counts_by_one(const llvm::Loop &loop, llvm::ScalarEvolution &evolution) {
  const auto *branch = llvm::dyn_cast<llvm::BranchInst>(loop.getLoopLatch()->getTerminator());
  const auto *compare =
      branch && branch->isConditional() ? llvm::dyn_cast<llvm::ICmpInst>(branch->getCondition()) : nullptr;
  return compare && llvm::any_of(compare->operands(), [&](llvm::Value *operand) {
           if (!evolution.isSCEVable(operand->getType())) return false;
           const auto *counter = llvm::dyn_cast<llvm::SCEVAddRecExpr>(evolution.getSCEV(operand));
           return counter && counter->getLoop() == &loop && counter->getStepRecurrence(evolution)->isOne();
         });
}

/* The number of instructions of an iteration, if it loads from global memory, writes nothing, and may be copied for some
 * of the threads only. */
std::optional<unsigned> size_of_loading(const llvm::Loop &loop, const llvm::TargetTransformInfo &target) {
  llvm::InstructionCost cost = 0;
  bool loads = false;
  for (const llvm::BasicBlock *block : loop.blocks())
    for (const llvm::Instruction &instruction : *block) {
      if (const auto *call = llvm::dyn_cast<llvm::CallBase>(&instruction);
          call && (call->cannotDuplicate() || call->isConvergent() || !llvm::isa<llvm::IntrinsicInst>(call)))
        return std::nullopt;
      if (instruction.mayWriteToMemory()) return std::nullopt;
      const auto *load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
      loads |= load && load->getPointerAddressSpace() == GLOBAL;
      cost += target.getInstructionCost(&instruction, llvm::TargetTransformInfo::TCK_CodeSize);
    }
  if (!loads || !cost.isValid()) return std::nullopt;
  return cost.getValue();
}

struct RequestPartialUnrolling : llvm::PassInfoMixin<RequestPartialUnrolling> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses) {
    auto &loops = analyses.getResult<llvm::LoopAnalysis>(function);
    if (loops.empty()) return llvm::PreservedAnalyses::all();
    auto &evolution = analyses.getResult<llvm::ScalarEvolutionAnalysis>(function);
    auto &target = analyses.getResult<llvm::TargetIRAnalysis>(function);
    for (llvm::Loop *loop : loops.getLoopsInPreorder()) {
      llvm::BasicBlock *exiting = loop->getExitingBlock();
      if (!loop->isInnermost() || !loop->isOutermost() || !exiting || exiting != loop->getLoopLatch()) continue;
      if (llvm::hasUnrollTransformation(loop) != llvm::TM_Unspecified) continue;
      if (!counts_by_one(*loop, evolution)) continue;
      if (evolution.getSmallConstantTripCount(loop) ||
          llvm::isa<llvm::SCEVCouldNotCompute>(evolution.getBackedgeTakenCount(loop)))
        continue;
      unsigned most = evolution.getSmallConstantMaxTripCount(loop);
      if (most && most < MIN_TRIP_COUNT) continue;
      std::optional<unsigned> size = size_of_loading(*loop, target);
      if (!size || *size < BACK_EDGE_INSTRUCTIONS) continue;
      unsigned unrolled = (*size - BACK_EDGE_INSTRUCTIONS) * UNROLL_FACTOR + BACK_EDGE_INSTRUCTIONS;
      if (unrolled <= LLVM_LIMIT || unrolled > MAX_UNROLLED_INSTRUCTIONS) continue;
      llvm::addStringMetadataToLoop(loop, "llvm.loop.unroll.count", UNROLL_FACTOR);
    }
    return llvm::PreservedAnalyses::all();
  }
};

} // namespace

void weft::register_partial_unrolling(llvm::PassBuilder &builder) {
  builder.registerVectorizerStartEPCallback([](llvm::FunctionPassManager &passes, llvm::OptimizationLevel) {
    passes.addPass(RequestPartialUnrolling());
  });
}
