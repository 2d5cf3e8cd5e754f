/* LLVM's passes over a module for a CPU, without runtime unrolling of the loops that each thread runs on its own, of
 * those around vectorized loops, and of the remainders of these.
 *
 * If the trip count of a loop is only known at run time, LLVM unrolls a short body by a factor and adds a remainder
 * loop. Thread loops are long and profit. A sequential loop of the program that remains inside a thread loop has few
 * iterations for each thread, such as `for j in range(starts[i], starts[i + 1])`: most of them would run in the
 * remainder loop. LLVM's options for unrolling are global to the process, so loop metadata disables it. */
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ValueTracking.h"
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
/* Defined in `unmasked_accesses.cpp`. */
bool convert_unmasked_accesses(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);

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

/* Whether a loop runs the last iterations of a vectorized one: fewer than a vector has lanes. */
bool is_remainder(const llvm::Loop &loop) {
  return llvm::getBooleanLoopAttribute(&loop, "llvm.loop.isvectorized") && !has_vectors(loop);
}

/* Whether LLVM has vectorized a loop inside this one and left a scalar loop for its last iterations. A vector loop
 * without such a remainder has a constant trip count. It is often unrolled completely, so the loop around it is an
 * innermost one then, and profits from unrolling. */
bool has_remainder(const llvm::Loop &loop) {
  return llvm::any_of(loop.getLoopsInPreorder(),
                      [&](const llvm::Loop *inner) { return inner != &loop && is_remainder(*inner); });
}

/* The instructions of a loop. */
size_t size_of(const llvm::Loop &loop) {
  size_t size = 0;
  for (const llvm::BasicBlock *block : loop.blocks()) size += block->size();
  return size;
}

/* Instructions of a vector loop over the lanes of a strip that is unrolled like others. */
constexpr size_t short_lanes = 200;

/* Whether a vector loop over the lanes of a strip is long. Its few iterations are not unrolled: the copies would not be
 * faster, and take several times as long to compile. */
bool is_long_strip(const llvm::Loop &loop) {
  return llvm::getBooleanLoopAttribute(&loop, "llvm.loop.unroll.full") && has_vectors(loop) &&
         size_of(loop) > short_lanes;
}

/* Replaces the unrolling that a loop's metadata wants. */
void roll(llvm::Loop &loop) {
  llvm::LLVMContext &context = loop.getHeader()->getContext();
  llvm::MDNode *no = llvm::MDNode::get(context, llvm::MDString::get(context, "llvm.loop.unroll.disable"));
  loop.setLoopID(llvm::makePostTransformationMetadata(context, loop.getLoopID(), {"llvm.loop.unroll."}, {no}));
}

/* Disables unrolling of long vector loops over the lanes of strips, and runtime unrolling of the remainders of
 * vectorized loops, of loops around vectorized ones with remainders, and of the program's innermost loops that are not
 * vectorized. Around a vectorized loop, LLVM would copy the vector loop, its epilogue and its remainder, for example in
 * a loop over the rows of a block. */
void keep_short_loops(llvm::Function &function) {
  llvm::DominatorTree dominators(function);
  llvm::LoopInfo loops(dominators);
  for (llvm::Loop *loop : loops.getLoopsInPreorder()) {
    bool is_short = llvm::getBooleanLoopAttribute(loop, of_program) && loop->isInnermost() && !has_vectors(*loop);
    if (is_long_strip(*loop))
      roll(*loop);
    else if (is_short || is_remainder(*loop) || has_remainder(*loop))
      llvm::addStringMetadataToLoop(loop, "llvm.loop.unroll.runtime.disable");
  }
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

/* Moves divisions of values that do not change in a loop before it, where the loop branches.
 *
 * LLVM 22 vectorizes such a branch into masks. If only an address needs the quotient, as in `if c: s += a[y // h, x]`, it
 * divides once for all lanes, which is right, but under the mask of the first lane: if that lane does not take the
 * branch, the others use an undefined address. A divisor that could trap is replaced by one if it does, since the
 * quotient is not used then. */
struct HoistDivisions : llvm::PassInfoMixin<HoistDivisions> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses) {
    llvm::LoopInfo &loops = analyses.getResult<llvm::LoopAnalysis>(function);
    bool changes = false;
    for (llvm::Loop *loop : loops.getLoopsInPreorder()) {
      llvm::BasicBlock *before = loop->getLoopPreheader();
      if (!loop->isInnermost() || !before) continue;
      for (llvm::BasicBlock *block : loop->blocks())
        for (llvm::Instruction &instruction : llvm::make_early_inc_range(*block)) {
          auto *division = llvm::dyn_cast<llvm::BinaryOperator>(&instruction);
          if (!division || !division->isIntDivRem()) continue;
          /* Operations on the way to the operands are hoisted, too: LICM has left those of earlier divisions. */
          llvm::Instruction *last = before->getTerminator();
          if (!llvm::all_of(division->operands(), [&](llvm::Value *operand) {
                return loop->makeLoopInvariant(operand, changes, last);
              }))
            continue;
          hoist(*division, *before);
          changes = true;
        }
    }
    if (!changes) return llvm::PreservedAnalyses::all();
    llvm::PreservedAnalyses left;
    left.preserveSet<llvm::CFGAnalyses>();
    return left;
  }

  static void hoist(llvm::BinaryOperator &division, llvm::BasicBlock &before) {
    llvm::IRBuilder<> builder(before.getTerminator());
    llvm::Value *dividend = division.getOperand(0), *divisor = division.getOperand(1);
    llvm::Type *type = division.getType();
    if (!llvm::isSafeToSpeculativelyExecute(&division)) {
      dividend = builder.CreateFreeze(dividend);
      divisor = builder.CreateFreeze(divisor);
      llvm::Value *traps = builder.CreateICmpEQ(divisor, llvm::ConstantInt::get(type, 0));
      if (division.getOpcode() == llvm::Instruction::SDiv || division.getOpcode() == llvm::Instruction::SRem) {
        auto *least = llvm::ConstantInt::get(type, llvm::APInt::getSignedMinValue(type->getScalarSizeInBits()));
        llvm::Value *overflows = builder.CreateAnd(builder.CreateICmpEQ(dividend, least),
                                                   builder.CreateICmpEQ(divisor, llvm::ConstantInt::getSigned(type, -1)));
        traps = builder.CreateOr(traps, overflows);
      }
      divisor = builder.CreateSelect(traps, llvm::ConstantInt::get(type, 1), divisor);
    }
    division.replaceAllUsesWith(builder.CreateBinOp(division.getOpcode(), dividend, divisor, division.getName()));
    division.eraseFromParent();
  }
};

/* The metadata of loops over the few threads at a boundary (`Shape::Boundary`). */
constexpr llvm::StringLiteral of_boundary = "weft.boundary";

/* Instructions of a boundary loop that LLVM vectorizes and unrolls like others. */
constexpr size_t short_boundary = 250;

/* Disables vectorization and runtime unrolling of long boundary loops: their code, with tests in each access, would
 * take longer to compile than that of the steady state. */
struct RollBoundaries : llvm::PassInfoMixin<RollBoundaries> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses) {
    for (llvm::Loop *loop : analyses.getResult<llvm::LoopAnalysis>(function).getLoopsInPreorder()) {
      bool is_boundary = loop->isInnermost() && llvm::getBooleanLoopAttribute(loop, of_boundary);
      if (!is_boundary || size_of(*loop) <= short_boundary) continue;
      llvm::addStringMetadataToLoop(loop, "llvm.loop.vectorize.enable");
      llvm::addStringMetadataToLoop(loop, "llvm.loop.unroll.runtime.disable");
    }
    return llvm::PreservedAnalyses::all();
  }
};

/* Converts branches with accesses that the CPU cannot mask (`unmasked_accesses.cpp`). */
struct ConvertUnmaskedAccesses : llvm::PassInfoMixin<ConvertUnmaskedAccesses> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses) {
    return weft::convert_unmasked_accesses(function, analyses) ? llvm::PreservedAnalyses::none()
                                                               : llvm::PreservedAnalyses::all();
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
    builder.registerVectorizerStartEPCallback([](llvm::FunctionPassManager &first, llvm::OptimizationLevel) {
      first.addPass(HoistDivisions());
      first.addPass(RollBoundaries());
      first.addPass(ConvertUnmaskedAccesses());
    });
    builder.registerOptimizerLastEPCallback(
        [](llvm::ModulePassManager &last, llvm::OptimizationLevel, llvm::ThinOrFullLTOPhase) {
          last.addPass(llvm::createModuleToFunctionPassAdaptor(ForwardLanes()));
          last.addPass(llvm::createModuleToFunctionPassAdaptor(PartComparisons()));
        });
  };
  return weft::run_passes(*llvm::unwrap(module), pipeline, machine, is_large, prepare);
}
