/* The size of a difference of integers of 32 bits, as one instruction.
 *
 * `abs(a - b)` of bytes becomes a maximum, a minimum and a difference of 16 bits when LLVM selects instructions, each with a
 * mask: six for what PTX has `sad` for (PTX ISA, "Integer Arithmetic Instructions: sad"), which adds it to a sum, too. */
#include "differences.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/PatternMatch.h"

namespace {

using namespace llvm::PatternMatch;

/* The sum that a size is only a part of; nothing if there is none. */
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
      /* The difference does not overflow, so the larger number less the smaller one is its size. */
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
