/* Absolute differences of 32-bit integers as one instruction.
 *
 * For `abs(a - b)` of bytes, LLVM selects a 16-bit maximum, minimum and difference, each with a mask: six
 * instructions. PTX has `sad` for it, which also adds a third operand (PTX ISA, "Integer Arithmetic Instructions:
 * sad"). */
#include "differences.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/PatternMatch.h"

namespace {

using namespace llvm::PatternMatch;

/* The addition that is the only use of an absolute difference, if there is one. */
llvm::Instruction *sum_of(llvm::Instruction &size) {
  if (!size.hasOneUse()) return nullptr;
  auto *sum = llvm::dyn_cast<llvm::BinaryOperator>(*size.user_begin());
  bool is_sum = sum && sum->getOpcode() == llvm::Instruction::Add && sum->getParent() == size.getParent();
  return is_sum && sum->getOperand(0) != sum->getOperand(1) ? sum : nullptr;
}

struct Differences : llvm::PassInfoMixin<Differences> {
  static bool isRequired() { return true; }

  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &) {
    llvm::SmallVector<llvm::IntrinsicInst *> sizes;
    llvm::Value *a, *b;
    for (llvm::BasicBlock &block : function)
      for (llvm::Instruction &instruction : block)
        if (auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
            call && call->getIntrinsicID() == llvm::Intrinsic::abs && call->getType()->isIntegerTy(32) &&
            match(call->getArgOperand(0), m_OneUse(m_NSWSub(m_Value(a), m_Value(b)))))
          sizes.push_back(call);
    for (llvm::IntrinsicInst *size : sizes) {
      auto *difference = llvm::cast<llvm::Instruction>(size->getArgOperand(0));
      llvm::Instruction *sum = sum_of(*size);
      llvm::Instruction *last = sum ? sum : size;
      llvm::IRBuilder<> builder(last);
      llvm::Value *more = builder.getInt32(0);
      if (sum) more = sum->getOperand(sum->getOperand(0) == size ? 1 : 0);
      /* The difference does not overflow, so `sad`, which subtracts the smaller from the larger operand, is the
       * same. */
      last->replaceAllUsesWith(builder.CreateIntrinsic(
          llvm::Intrinsic::nvvm_sad_i, {}, {difference->getOperand(0), difference->getOperand(1), more}));
      if (sum) sum->eraseFromParent();
      size->eraseFromParent();
      difference->eraseFromParent();
    }
    return sizes.empty() ? llvm::PreservedAnalyses::all() : llvm::PreservedAnalyses::none();
  }
};

} // namespace

void weft::register_differences(llvm::PassBuilder &builder) {
  builder.registerOptimizerLastEPCallback(
      [](llvm::ModulePassManager &passes, llvm::OptimizationLevel, llvm::ThinOrFullLTOPhase) {
        passes.addPass(llvm::createModuleToFunctionPassAdaptor(Differences()));
      });
}
