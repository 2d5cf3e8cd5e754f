/* If-conversion of gathers and scatters that the CPU cannot mask: all on CPUs without AVX-512, and those of bytes and
 * 16-bit elements on others.
 *
 *     if (c) *p = *q + 1;            value = *(c ? q : &slot) + 1;
 *                                    *(c ? p : &slot) = value;
 *
 * A thread for which the condition does not hold accesses a slot on the stack, whose value no thread uses. LLVM would
 * not vectorize the loop, because it would branch for each lane; in a loop over threads that remains scalar, an
 * unpredictable condition costs more than the accesses.
 *
 * Converted are branches of thread loops whose arms have a few independent accesses, and cheap operations, only.
 * Branches with a condition that does not change in the loop remain, as do those with contiguous accesses only, of
 * which this would make gathers, and those with an access to one element, which is no gather before. A load of one
 * element that is in bounds in any case, such as one of shared memory, becomes unconditional. */
#include "llvm/ADT/DenseSet.h"
#include "llvm/Analysis/Loads.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/LoopUtils.h"

using namespace llvm;

namespace unmasked {

/* The metadata of sequential loops of the program (`shim::of_program`). */
constexpr StringLiteral of_program = "weft.of_program";

/* The attribute of functions in which each warp is a block of its own: `lanes.cpp` finds their accesses. */
constexpr StringLiteral of_one_warp = "weft.of_one_warp";

/* The most accesses, and the most other operations, of the arms of a branch. */
constexpr unsigned max_accesses = 4;
constexpr unsigned max_operations = 24;

/* A number of lanes. That of the vectors is not chosen yet. */
constexpr unsigned lanes = 8;

bool is_access(const Instruction &instruction) { return isa<LoadInst, StoreInst>(instruction); }

class Conversion {
public:
  Conversion(Function &function, LoopInfo &loops, ScalarEvolution &evolution, const TargetTransformInfo &target)
      : function(function), loops(loops), target(target), layout(function.getDataLayout()) {
    for (Loop *loop : loops.getLoopsInPreorder()) {
      if (!loop->isInnermost() || getBooleanLoopAttribute(loop, of_program)) continue;
      for (BasicBlock *block : loop->blocks())
        for (Instruction &instruction : *block)
          if (is_access(instruction) && is_unmasked(instruction, *loop, evolution)) unmasked.insert(&instruction);
    }
  }

  bool run() {
    bool changes = false;
    if (unmasked.empty()) return false;
    for (Loop *loop : loops.getLoopsInPreorder()) {
      if (!loop->isInnermost() || getBooleanLoopAttribute(loop, of_program)) continue;
      while (convert_one(*loop)) changes = true;
    }
    return changes;
  }

private:
  Function &function;
  LoopInfo &loops;
  const TargetTransformInfo &target;
  const DataLayout &layout;
  DenseSet<const Instruction *> unmasked;
  DenseMap<std::pair<Type *, unsigned>, AllocaInst *> slots;

  /* Whether accesses are neither to one element nor contiguous, and a vector of them cannot have a mask. */
  bool is_unmasked(const Instruction &access, const Loop &loop, ScalarEvolution &evolution) const {
    Type *type = getLoadStoreType(&access);
    Value *pointer = const_cast<Value *>(getLoadStorePointerOperand(&access));
    if (!VectorType::isValidElementType(type) || loop.isLoopInvariant(pointer)) return false;
    auto *change = dyn_cast<SCEVAddRecExpr>(evolution.getSCEV(pointer));
    if (change && change->getLoop() == &loop) {
      auto *step = dyn_cast<SCEVConstant>(change->getStepRecurrence(evolution));
      if (step && step->getAPInt() == layout.getTypeStoreSize(type).getFixedValue()) return false;
    }
    auto *vector = FixedVectorType::get(type, lanes);
    Align align = getLoadStoreAlignment(&access);
    return isa<LoadInst>(access) ? !target.isLegalMaskedGather(vector, align)
                                 : !target.isLegalMaskedScatter(vector, align);
  }

  /* Whether all threads may run an instruction, if its accesses are to the slot for some. */
  bool can_move(const Instruction &instruction) const {
    if (auto *load = dyn_cast<LoadInst>(&instruction)) return load->isSimple() && is_independent(*load);
    if (auto *store = dyn_cast<StoreInst>(&instruction)) return store->isSimple() && is_independent(*store);
    if (isa<PHINode, CallBase>(instruction) || instruction.mayReadOrWriteMemory()) return false;
    bool is_cheap = target.getInstructionCost(&instruction, TargetTransformInfo::TCK_SizeAndLatency) <=
                    TargetTransformInfo::TCC_Basic * 4;
    return is_cheap && isSafeToSpeculativelyExecute(&instruction);
  }

  /* Whether an access is annotated as independent of those of other threads, and may be to the slot. Others, such as
   * those of atomic additions to shared memory, wait for each other: the choice of the address would be part of that
   * chain. */
  bool is_independent(const Instruction &access) const {
    return access.hasMetadata(LLVMContext::MD_access_group) &&
           getLoadStoreAddressSpace(&access) == layout.getAllocaAddrSpace() &&
           VectorType::isValidElementType(getLoadStoreType(&access));
  }

  /* The block after an arm of a branch, if the arm can be converted. */
  BasicBlock *end_of_arm(BasicBlock &arm, const BasicBlock &branch, const Loop &loop) const {
    BasicBlock *end = arm.getSingleSuccessor();
    bool is_arm = arm.getSinglePredecessor() == &branch && end && end != loop.getHeader() && loop.contains(end);
    if (!is_arm || !loop.contains(&arm)) return nullptr;
    return all_of(arm, [&](const Instruction &one) { return one.isTerminator() || can_move(one); }) ? end : nullptr;
  }

  bool convert_one(Loop &loop) {
    for (BasicBlock *block : loop.blocks()) {
      auto *branch = dyn_cast<BranchInst>(block->getTerminator());
      if (!branch || !branch->isConditional() || loop.isLoopInvariant(branch->getCondition())) continue;
      BasicBlock *first = branch->getSuccessor(0), *second = branch->getSuccessor(1);
      if (first == second) continue;
      BasicBlock *after_first = end_of_arm(*first, *block, loop), *after_second = end_of_arm(*second, *block, loop);
      SmallVector<BasicBlock *, 2> arms;
      BasicBlock *end = nullptr;
      if (after_first && after_first == after_second) {
        arms = {first, second};
        end = after_first;
      } else if (after_first == second) {
        arms = {first};
        end = second;
      } else if (after_second == first) {
        arms = {second};
        end = first;
      }
      if (arms.empty() || !pays(arms, loop)) continue;
      convert(*branch, arms, *end, loop);
      return true;
    }
    return false;
  }

  /* Whether an access is a load of one element that is in bounds for all threads. */
  bool is_uniform_load(const Instruction &access, const Loop &loop) const {
    auto *load = dyn_cast<LoadInst>(&access);
    return load && loop.isLoopInvariant(load->getPointerOperand()) &&
           isDereferenceableAndAlignedPointer(load->getPointerOperand(), load->getType(), load->getAlign(), layout);
  }

  bool pays(ArrayRef<BasicBlock *> arms, const Loop &loop) const {
    unsigned accesses = 0, operations = 0;
    bool some = false;
    for (const BasicBlock *arm : arms)
      for (const Instruction &instruction : *arm) {
        const Value *pointer = getLoadStorePointerOperand(&instruction);
        if (is_uniform_load(instruction, loop)) continue;
        if (pointer && loop.isLoopInvariant(pointer)) return false;
        some |= unmasked.contains(&instruction);
        (is_access(instruction) ? accesses : operations)++;
      }
    return some && accesses <= max_accesses && operations <= max_operations;
  }

  /* Loads and stores have different slots, so that no load waits for a store. */
  AllocaInst *slot(const Instruction &access) {
    Type *type = getLoadStoreType(&access);
    AllocaInst *&known = slots[{type, access.getOpcode()}];
    if (!known) {
      BasicBlock &entry = function.getEntryBlock();
      known = IRBuilder<>(&entry, entry.getFirstInsertionPt()).CreateAlloca(type);
    }
    return known;
  }

  void convert(BranchInst &branch, ArrayRef<BasicBlock *> arms, BasicBlock &end, const Loop &loop) {
    BasicBlock &block = *branch.getParent();
    IRBuilder<> builder(&branch);
    Value *condition = branch.getCondition();
    auto choose = [&](bool is_first, Value *inside, Value *outside) {
      return is_first ? builder.CreateSelect(condition, inside, outside)
                      : builder.CreateSelect(condition, outside, inside);
    };
    for (BasicBlock *arm : arms) {
      bool is_first = branch.getSuccessor(0) == arm;
      for (Instruction &instruction : make_early_inc_range(*arm)) {
        if (instruction.isTerminator()) continue;
        instruction.moveBefore(branch.getIterator());
        if (!is_access(instruction) || is_uniform_load(instruction, loop)) continue;
        builder.SetInsertPoint(&instruction);
        unsigned operand = isa<LoadInst>(instruction) ? 0 : 1;
        Value *pointer = instruction.getOperand(operand);
        instruction.setOperand(operand, choose(is_first, pointer, slot(instruction)));
        instruction.dropUnknownNonDebugMetadata({LLVMContext::MD_tbaa, LLVMContext::MD_alias_scope,
                                                 LLVMContext::MD_noalias, LLVMContext::MD_access_group});
        builder.SetInsertPoint(&branch);
      }
    }
    for (PHINode &phi : end.phis()) {
      Value *one = phi.getIncomingValueForBlock(arms[0]);
      Value *other = phi.getIncomingValueForBlock(arms.size() == 2 ? arms[1] : &block);
      Value *value = one == other ? one : choose(branch.getSuccessor(0) == arms[0], one, other);
      for (BasicBlock *arm : arms) phi.removeIncomingValue(arm, false);
      if (int at = phi.getBasicBlockIndex(&block); at >= 0)
        phi.setIncomingValue(at, value);
      else
        phi.addIncoming(value, &block);
    }
    builder.CreateBr(&end);
    branch.eraseFromParent();
    for (BasicBlock *arm : arms) {
      loops.removeBlock(arm);
      arm->getTerminator()->eraseFromParent();
      arm->eraseFromParent();
    }
    MergeBlockIntoPredecessor(&end, nullptr, &loops);
  }
};

} // namespace unmasked

namespace weft {

/* Returns whether the function has changed. */
bool convert_unmasked_accesses(Function &function, FunctionAnalysisManager &analyses) {
  if (function.hasFnAttribute(unmasked::of_one_warp)) return false;
  auto &loops = analyses.getResult<LoopAnalysis>(function);
  auto &evolution = analyses.getResult<ScalarEvolutionAnalysis>(function);
  return unmasked::Conversion(function, loops, evolution, analyses.getResult<TargetIRAnalysis>(function)).run();
}

} // namespace weft
