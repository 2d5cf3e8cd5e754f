/* Full unrolling of loops that LLVM regards as too long.
 *
 * LLVM unrolls a loop with a constant trip count if its iterations have up to 300 instructions together, a limit for
 * CPUs. On a GPU the counter's arithmetic and the loop's branch cost all threads of a warp, loads of one iteration start
 * only after the branch of the one before, and 64 accesses to a window need 64 sums for their addresses instead of a
 * constant offset each. NVIDIA's compiler unrolls longer loops.
 *
 * Legal for every loop whose trip count ScalarEvolution knows, which includes geometric ones (`while length > 32: length
 * //= 2`): barriers and other convergent operations remain in the same order for all threads. Profitable up to a size at
 * which the code of a kernel remains a small part of the instruction cache. Loops with other requests remain. */
#include "full_unrolling.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Utils/LoopUtils.h"

namespace {

/* The maximum trip count. */
constexpr unsigned MAX_TRIP_COUNT = 32;

/* The maximum number of instructions of all iterations, and if the body has neither branches nor barriers: then the accesses
 * of all iterations overlap. */
constexpr unsigned MAX_INSTRUCTIONS = 512;
constexpr unsigned MAX_STRAIGHT_INSTRUCTIONS = 1024;

/* The number of instructions of a loop that remain after code generation; none if it must not be copied. */
std::optional<unsigned> size(const llvm::Loop &loop, const llvm::TargetTransformInfo &target) {
  llvm::InstructionCost cost = 0;
  for (const llvm::BasicBlock *block : loop.blocks())
    for (const llvm::Instruction &instruction : *block) {
      if (const auto *call = llvm::dyn_cast<llvm::CallBase>(&instruction); call && call->cannotDuplicate())
        return std::nullopt;
      cost += target.getInstructionCost(&instruction, llvm::TargetTransformInfo::TCK_CodeSize);
    }
  if (!cost.isValid()) return std::nullopt;
  return cost.getValue();
}

/* Whether a body is one sequence of instructions that other threads do not wait for. */
bool is_straight(const llvm::Loop &loop) {
  return llvm::all_of(loop.blocks(), [&](const llvm::BasicBlock *block) {
    bool jumps = block->getSingleSuccessor() || block == loop.getLoopLatch();
    return jumps && llvm::none_of(*block, [](const llvm::Instruction &instruction) {
      const auto *call = llvm::dyn_cast<llvm::CallBase>(&instruction);
      return call && call->isConvergent();
    });
  });
}

struct RequestFullUnrolling : llvm::PassInfoMixin<RequestFullUnrolling> {
  llvm::PreservedAnalyses run(llvm::Loop &loop, llvm::LoopAnalysisManager &, llvm::LoopStandardAnalysisResults &results,
                              llvm::LPMUpdater &) {
    unsigned trip_count = results.SE.getSmallConstantTripCount(&loop);
    if (trip_count < 2 || trip_count > MAX_TRIP_COUNT || llvm::hasUnrollTransformation(&loop) != llvm::TM_Unspecified)
      return llvm::PreservedAnalyses::all();
    std::optional<unsigned> body = size(loop, results.TTI);
    unsigned most = is_straight(loop) ? MAX_STRAIGHT_INSTRUCTIONS : MAX_INSTRUCTIONS;
    if (body && *body * trip_count <= most)
      llvm::addStringMetadataToLoop(&loop, "llvm.loop.unroll.full");
    return llvm::PreservedAnalyses::all();
  }
};

} // namespace

void weft::register_full_unrolling(llvm::PassBuilder &builder) {
  builder.registerLateLoopOptimizationsEPCallback(
      [](llvm::LoopPassManager &passes, llvm::OptimizationLevel) { passes.addPass(RequestFullUnrolling()); });
}
