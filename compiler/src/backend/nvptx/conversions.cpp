/* Pairs of conversions to 16-bit floats, such as the elements of a matrix in one register.
 *
 *     %low = fptrunc float %a to half                %pair = insertelement (insertelement poison, %low, 0), %high, 1
 *     %high = fptrunc float %b to half               bitcast <2 x half> %pair to i32
 *     or(shl(zext(bitcast %high), 16), zext(bitcast %low))
 *
 * The code generator selects one instruction for the conversions of such a vector (`cvt.rn.f16x2.f32`), if the target has
 * it. Legal because it rounds both as the single conversion does. Profitable if the conversions have no other use: one
 * instruction instead of two conversions and a permutation. */
#include "llvm-c/Core.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Utils/Local.h"

/* Call it after LLVM's passes, which would replace the vector by the integers again. */
extern "C" void weft_pair_conversions(LLVMModuleRef module) {
  using namespace llvm::PatternMatch;
  for (llvm::Function &function : *llvm::unwrap(module)) {
    llvm::SmallVector<llvm::WeakTrackingVH, 16> found;
    for (llvm::Instruction &instruction : llvm::instructions(function))
      if (instruction.getOpcode() == llvm::Instruction::Or && instruction.getType()->isIntegerTy(32))
        found.push_back(&instruction);
    for (llvm::WeakTrackingVH &each : found) {
      auto *pair = llvm::cast_or_null<llvm::Instruction>(each);
      llvm::Instruction *low, *high;
      auto converted = [](llvm::Instruction *&half) {
        return m_OneUse(m_ZExt(m_OneUse(m_BitCast(m_OneUse(m_CombineAnd(m_FPTrunc(m_Value()), m_Instruction(half)))))));
      };
      if (!pair || !match(pair, m_c_Or(m_OneUse(m_Shl(converted(high), m_SpecificInt(16))), converted(low)))) continue;
      llvm::Type *half = low->getType();
      bool is_pair = half == high->getType() && half->is16bitFPTy() && low->getOperand(0)->getType()->isFloatTy() &&
                     high->getOperand(0)->getType()->isFloatTy();
      if (!is_pair) continue;
      llvm::IRBuilder<> builder(pair);
      llvm::Value *vector = llvm::PoisonValue::get(llvm::FixedVectorType::get(half, 2));
      vector = builder.CreateInsertElement(vector, low, builder.getInt32(0));
      vector = builder.CreateInsertElement(vector, high, builder.getInt32(1));
      pair->replaceAllUsesWith(builder.CreateBitCast(vector, pair->getType()));
      llvm::RecursivelyDeleteTriviallyDeadInstructions(pair);
    }
  }
}
