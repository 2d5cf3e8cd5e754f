/* Arithmetic and conversions in NVVM IR. */
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Operator.h"

#include "printer.h"

namespace weft {

/* A `bfloat`, which is an `i16` here, as a `float`. */
std::string NvvmPrinter::widened(const llvm::Value *bfloat) {
  std::string bits = temporary(joined("zext i16 ", operand(bfloat), " to i32"));
  bits = temporary(joined("shl i32 ", bits, ", 16"));
  return temporary(joined("bitcast i32 ", bits, " to float"));
}

/* The right side of the definition of a `bfloat`: a `float`, rounded to the nearest, ties to even. */
std::string NvvmPrinter::narrowed(const std::string &value) {
  if (sm >= 80) return inline_ptx("i16", "cvt.rn.bf16.f32 $0, $1;", "=h,f", {"float " + value}, Effect::none);
  std::string bits = temporary(joined("bitcast float ", value, " to i32"));
  std::string odd = temporary(joined("lshr i32 ", bits, ", 16"));
  odd = temporary(joined("and i32 ", odd, ", 1"));
  std::string half = temporary(joined("add i32 ", odd, ", 32767"));
  std::string rounded = temporary(joined("add i32 ", bits, ", ", half));
  rounded = temporary(joined("lshr i32 ", rounded, ", 16"));
  std::string is_nan = temporary(joined("fcmp uno float ", value, ", ", value));
  rounded = temporary(joined("select i1 ", is_nan, ", i32 32767, i32 ", rounded));
  return joined("trunc i32 ", rounded, " to i16");
}

/* A `double` as a `float` that rounds to the same `bfloat`: towards zero, and the last bit is set if it is inexact. */
std::string NvvmPrinter::rounded_to_odd(const std::string &wide) {
  std::string value = temporary(intrinsic("llvm.nvvm.d2f.rz", "float", {"double"}, {wide}));
  std::string back = temporary(joined("fpext float ", value, " to double"));
  std::string is_inexact = temporary(joined("fcmp une double ", back, ", ", wide));
  std::string sticky = temporary(joined("zext i1 ", is_inexact, " to i32"));
  std::string bits = temporary(joined("bitcast float ", value, " to i32"));
  bits = temporary(joined("or i32 ", bits, ", ", sticky));
  return temporary(joined("bitcast i32 ", bits, " to float"));
}

void NvvmPrinter::visitUnaryOperator(llvm::UnaryOperator &operation) {
  llvm::Type *of = operation.getType();
  const llvm::Value *value = operation.getOperand(0);
  if (operation.getOpcode() != llvm::Instruction::FNeg) return fail(operation);
  if (of->isBFloatTy()) return define(operation, joined("xor i16 ", operand(value), ", -32768"));
  if (of->getScalarType()->isBFloatTy()) return fail(operation);
  /* Not with `contract`: a negated product is no fused operation. */
  define(operation, joined("fsub ", typed(llvm::ConstantFP::getNegativeZero(of)), ", ", operand(value)));
}

/* The flags of an operation that LLVM 7 has, each with a space after it. */
static std::string flags_of(const llvm::BinaryOperator &operation) {
  std::string flags;
  if (llvm::isa<llvm::OverflowingBinaryOperator>(operation)) {
    if (operation.hasNoUnsignedWrap()) flags += "nuw ";
    if (operation.hasNoSignedWrap()) flags += "nsw ";
  } else if (llvm::isa<llvm::PossiblyExactOperator>(operation)) {
    if (operation.isExact()) flags += "exact ";
  } else if (llvm::isa<llvm::FPMathOperator>(operation)) {
    llvm::FastMathFlags fast = operation.getFastMathFlags();
    if (fast.isFast()) return "fast ";
    for (auto [is_set, name] :
         {std::pair(fast.allowReassoc(), "reassoc "), std::pair(fast.noNaNs(), "nnan "),
          std::pair(fast.noInfs(), "ninf "), std::pair(fast.noSignedZeros(), "nsz "),
          std::pair(fast.allowReciprocal(), "arcp "), std::pair(fast.allowContract(), "contract "),
          std::pair(fast.approxFunc(), "afn ")})
      if (is_set) flags += name;
  }
  return flags;
}

void NvvmPrinter::visitBinaryOperator(llvm::BinaryOperator &operation) {
  llvm::Type *of = operation.getType();
  if (of->isBFloatTy()) return print_bfloat(operation);
  /* LLVM 7 computes a remainder from the rounded quotient. */
  if (of->getScalarType()->isBFloatTy() || operation.getOpcode() == llvm::Instruction::FRem) return fail(operation);
  if (of->isFPOrFPVectorTy() && print_separate(operation)) return;
  const char *name = operation.getOpcodeName();
  if (operation.getOpcode() == llvm::Instruction::FDiv && of->isFloatTy() && operation.hasApproxFunc())
    return define(operation, intrinsic(joined("llvm.nvvm.div.approx.", flushes ? "ftz." : "", "f"), "float",
                                       {"float", "float"}, {operand(operation.getOperand(0)),
                                                            operand(operation.getOperand(1))}));
  define(operation, joined(name, " ", flags_of(operation), typed(operation.getOperand(0)), ", ",
                           operand(operation.getOperand(1))));
}

/* Operations of `bfloat` are those of `float`, rounded: its precision is less than half of that of `float`, so that the
 * two roundings are the same as one. */
void NvvmPrinter::print_bfloat(llvm::BinaryOperator &operation) {
  if (operation.getOpcode() == llvm::Instruction::FRem) return fail(operation);
  std::string left = widened(operation.getOperand(0)), right = widened(operation.getOperand(1));
  std::string result = temporary(joined(operation.getOpcodeName(), " float ", left, ", ", right));
  define(operation, narrowed(result));
}

/* Prints a sum or product that must not become part of a fused operation, if the operation is one; libNVVM fuses
 * ordinary ones without regard to their flags. */
bool NvvmPrinter::print_separate(llvm::BinaryOperator &operation) {
  unsigned opcode = operation.getOpcode();
  bool is_product = opcode == llvm::Instruction::FMul;
  bool is_difference = opcode == llvm::Instruction::FSub;
  bool is_sum = opcode == llvm::Instruction::FAdd;
  if (operation.hasAllowContract() || (!is_product && !is_difference && !is_sum)) return false;
  llvm::Type *of = operation.getType();
  if (of->isVectorTy()) {
    fail(operation);
    return true;
  }
  std::string left = operand(operation.getOperand(0)), right = operand(operation.getOperand(1)), name = type(of);
  if (is_difference)
    right = temporary(joined("fsub ", typed(llvm::ConstantFP::getNegativeZero(of)), ", ", right));
  if (of->isHalfTy()) {
    left = temporary(joined("bitcast half ", left, " to i16"));
    right = temporary(joined("bitcast half ", right, " to i16"));
    std::string code = joined(is_product ? "mul" : "add", ".rn.f16 $0, $1, $2;");
    std::string bits = temporary(inline_ptx("i16", code, "=h,h,h", {"i16 " + left, "i16 " + right}, Effect::none));
    define(operation, joined("bitcast i16 ", bits, " to half"));
    return true;
  }
  std::string suffix = of->isDoubleTy() ? "d" : flushes ? "ftz.f" : "f";
  define(operation, intrinsic(joined("llvm.nvvm.", is_product ? "mul" : "add", ".rn.", suffix), name, {name, name},
                              {left, right}));
  return true;
}

void NvvmPrinter::visitCastInst(llvm::CastInst &cast) {
  llvm::Type *from = cast.getSrcTy(), *to = cast.getDestTy();
  bool has_bfloat = from->getScalarType()->isBFloatTy() || to->getScalarType()->isBFloatTy();
  if (has_bfloat && cast.getOpcode() != llvm::Instruction::BitCast) {
    if (!print_bfloat_cast(cast)) fail(cast);
    return;
  }
  if (cast.getOpcode() > llvm::Instruction::AddrSpaceCast || cast.getOpcode() < llvm::Instruction::Trunc)
    return fail(cast);
  define(cast, joined(cast.getOpcodeName(), " ", typed(cast.getOperand(0)), " to ", type(to)));
}

bool NvvmPrinter::print_bfloat_cast(llvm::CastInst &cast) {
  llvm::Type *from = cast.getSrcTy(), *to = cast.getDestTy();
  const llvm::Value *value = cast.getOperand(0);
  if (from->isVectorTy() || to->isVectorTy()) return false;
  switch (cast.getOpcode()) {
  case llvm::Instruction::FPExt:
  case llvm::Instruction::FPToSI:
  case llvm::Instruction::FPToUI: {
    std::string wide = widened(value);
    const char *name = to->isFloatTy() ? "bitcast" : cast.getOpcodeName();
    define(cast, joined(name, " float ", wide, " to ", type(to)));
    return true;
  }
  case llvm::Instruction::FPTrunc:
    if (from->isFloatTy()) {
      define(cast, narrowed(operand(value)));
      return true;
    }
    if (!from->isDoubleTy()) return false;
    define(cast, narrowed(rounded_to_odd(operand(value))));
    return true;
  case llvm::Instruction::SIToFP:
  case llvm::Instruction::UIToFP: {
    unsigned bits = from->getIntegerBitWidth();
    if (bits <= 16) {
      std::string wide = temporary(joined(cast.getOpcodeName(), " ", typed(value), " to float"));
      define(cast, narrowed(wide));
      return true;
    }
    char constraint = constraint_of(from);
    if (sm < 90 || !constraint) return false;
    char sign = cast.getOpcode() == llvm::Instruction::SIToFP ? 's' : 'u';
    define(cast, inline_ptx("i16", joined("cvt.rn.bf16.", sign, bits, " $0, $1;"), joined("=h,", constraint),
                            {typed(value)}, Effect::none));
    return true;
  }
  default:
    return false;
  }
}

} // namespace weft
