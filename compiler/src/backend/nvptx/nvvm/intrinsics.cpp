/* LLVM's intrinsics in NVVM IR: those of LLVM 7 that libNVVM implements, and expansions of the others. libNVVM would
 * take a call of any other as one of an external function. */
#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/Intrinsics.h"

#include "printer.h"

namespace weft {

void NvvmPrinter::print_intrinsic(llvm::CallInst &call) {
  llvm::StringRef name = call.getCalledFunction()->getName();
  llvm::Intrinsic::ID id = call.getIntrinsicID();
  switch (id) {
  case llvm::Intrinsic::assume:
  case llvm::Intrinsic::lifetime_start:
  case llvm::Intrinsic::lifetime_end:
  case llvm::Intrinsic::experimental_noalias_scope_decl:
  case llvm::Intrinsic::donothing:
    return;
  case llvm::Intrinsic::trap:
    return pass(call, name);
  case llvm::Intrinsic::debugtrap:
    return line(inline_ptx("void", "brkpt;", "", {}, Effect::memory));
  default:
    break;
  }
  bool is_known = name.starts_with("llvm.nvvm.") ? print_nvvm(call, name.drop_front(10))
                                                 : print_integer(call, id) || print_saturating(call, id) ||
                                                       print_float(call, id) || print_memory(call, id);
  if (!is_known) fail(call);
}

static bool is_plain_integer(const llvm::Type *type) {
  return type->isIntegerTy(8) || type->isIntegerTy(16) || type->isIntegerTy(32) || type->isIntegerTy(64);
}

bool NvvmPrinter::print_integer(llvm::CallInst &call, llvm::Intrinsic::ID id) {
  const llvm::Type *of = call.getType();
  std::string name = type(of);
  auto choose = [&](llvm::StringRef predicate) {
    std::string left = operand(call.getArgOperand(0)), right = operand(call.getArgOperand(1));
    std::string is_first = temporary(joined("icmp ", predicate, " ", name, " ", left, ", ", right));
    std::string flag = joined(type(llvm::CmpInst::makeCmpResultType(call.getType())), " ", is_first);
    define(call, joined("select ", flag, ", ", name, " ", left, ", ", name, " ", right));
    return true;
  };
  switch (id) {
  case llvm::Intrinsic::smin:
    return choose("slt");
  case llvm::Intrinsic::smax:
    return choose("sgt");
  case llvm::Intrinsic::umin:
    return choose("ult");
  case llvm::Intrinsic::umax:
    return choose("ugt");
  case llvm::Intrinsic::abs: {
    if (!of->isIntegerTy()) return false;
    std::string value = operand(call.getArgOperand(0));
    std::string negated = temporary(joined("sub ", name, " 0, ", value));
    std::string is_negative = temporary(joined("icmp slt ", name, " ", value, ", 0"));
    define(call, joined("select i1 ", is_negative, ", ", name, " ", negated, ", ", name, " ", value));
    return true;
  }
  case llvm::Intrinsic::ctpop:
  case llvm::Intrinsic::bswap:
  case llvm::Intrinsic::bitreverse:
  case llvm::Intrinsic::ctlz:
  case llvm::Intrinsic::cttz:
  case llvm::Intrinsic::fshl:
  case llvm::Intrinsic::fshr:
    if (!is_plain_integer(of)) return false;
    pass(call, call.getCalledFunction()->getName());
    return true;
  case llvm::Intrinsic::sadd_with_overflow:
  case llvm::Intrinsic::uadd_with_overflow:
  case llvm::Intrinsic::ssub_with_overflow:
  case llvm::Intrinsic::usub_with_overflow:
  case llvm::Intrinsic::smul_with_overflow:
  case llvm::Intrinsic::umul_with_overflow:
    if (!is_plain_integer(call.getArgOperand(0)->getType())) return false;
    pass(call, call.getCalledFunction()->getName());
    return true;
  default:
    return false;
  }
}

/* Saturating sums and differences, and conversions. */
bool NvvmPrinter::print_saturating(llvm::CallInst &call, llvm::Intrinsic::ID id) {
  if (id == llvm::Intrinsic::fptosi_sat || id == llvm::Intrinsic::fptoui_sat) {
    print_saturating_conversion(call, id == llvm::Intrinsic::fptosi_sat);
    return true;
  }
  bool is_sum = id == llvm::Intrinsic::uadd_sat || id == llvm::Intrinsic::sadd_sat;
  bool is_signed = id == llvm::Intrinsic::sadd_sat || id == llvm::Intrinsic::ssub_sat;
  if (!is_sum && id != llvm::Intrinsic::usub_sat && id != llvm::Intrinsic::ssub_sat) return false;
  const llvm::Type *of = call.getType();
  if (!is_plain_integer(of)) return false;
  std::string name = type(of), left = operand(call.getArgOperand(0)), right = operand(call.getArgOperand(1));
  std::string both = joined("{ ", name, ", i1 }");
  std::string checked = joined("llvm.", is_signed ? "s" : "u", is_sum ? "add" : "sub", ".with.overflow.", name);
  std::string pair = temporary(intrinsic(checked, both, {name, name}, {left, right}));
  std::string result = temporary(joined("extractvalue ", both, " ", pair, ", 0"));
  std::string overflows = temporary(joined("extractvalue ", both, " ", pair, ", 1"));
  std::string limit = is_sum ? "-1" : "0";
  if (is_signed) {
    /* The sign of the left operand is the sign of the limit. */
    unsigned bits = of->getIntegerBitWidth();
    std::string sign = temporary(joined("ashr ", name, " ", left, ", ", bits - 1));
    std::string largest = llvm::toString(llvm::APInt::getSignedMaxValue(bits), 10, true);
    limit = temporary(joined("xor ", name, " ", sign, ", ", largest));
  }
  define(call, joined("select i1 ", overflows, ", ", name, " ", limit, ", ", name, " ", result));
  return true;
}

/* PTX saturates to 32 and 64 bits; results of fewer bits are clamped. NaN becomes 0. */
void NvvmPrinter::print_saturating_conversion(llvm::CallInst &call, bool is_signed) {
  const llvm::Value *value = call.getArgOperand(0);
  const llvm::Type *from = value->getType(), *to = call.getType();
  if (from->isVectorTy() || !is_plain_integer(to)) return fail(call);
  std::string shown = from->isBFloatTy() ? widened(value) : operand(value);
  if (from->isHalfTy()) shown = temporary(joined("fpext half ", shown, " to float"));
  bool is_wide = from->isDoubleTy();
  std::string source = is_wide ? "double" : "float";
  unsigned bits = to->getIntegerBitWidth(), done = bits == 64 ? 64 : 32;
  std::string wide = joined("i", done);
  char sign = is_signed ? 's' : 'u';
  std::string code = joined("cvt.rzi.", sign, done, is_wide ? ".f64" : ".f32", " $0, $1;");
  std::string constraints = joined(done == 64 ? "=l," : "=r,", is_wide ? "d" : "f");
  std::string result = temporary(inline_ptx(wide, code, constraints, {joined(source, " ", shown)}, Effect::none));
  std::string is_nan = temporary(joined("fcmp uno ", source, " ", shown, ", ", shown));
  std::string picked = joined("select i1 ", is_nan, ", ", wide, " 0, ", wide, " ", result);
  if (bits >= 32) return define(call, picked);
  result = temporary(picked);
  auto clamp = [&](llvm::StringRef predicate, const llvm::APInt &limit) {
    std::string shown_limit = llvm::toString(limit, 10, is_signed);
    std::string is_inside = temporary(joined("icmp ", predicate, " i32 ", result, ", ", shown_limit));
    result = temporary(joined("select i1 ", is_inside, ", i32 ", result, ", i32 ", shown_limit));
  };
  clamp(is_signed ? "slt" : "ult", is_signed ? llvm::APInt::getSignedMaxValue(bits) : llvm::APInt::getMaxValue(bits));
  if (is_signed) clamp("sgt", llvm::APInt::getSignedMinValue(bits));
  define(call, joined("trunc i32 ", result, " to ", type(to)));
}

/* The intrinsic of LLVM 7 for a function of floats; null if there is none. */
static const char *name_of(llvm::Intrinsic::ID id) {
  switch (id) {
  case llvm::Intrinsic::fma:
    return "fma";
  case llvm::Intrinsic::fmuladd:
    return "fmuladd";
  case llvm::Intrinsic::sqrt:
    return "sqrt";
  case llvm::Intrinsic::fabs:
    return "fabs";
  case llvm::Intrinsic::floor:
    return "floor";
  case llvm::Intrinsic::ceil:
    return "ceil";
  case llvm::Intrinsic::trunc:
    return "trunc";
  case llvm::Intrinsic::rint:
  case llvm::Intrinsic::nearbyint:
  case llvm::Intrinsic::roundeven:
    return "rint";
  case llvm::Intrinsic::copysign:
    return "copysign";
  case llvm::Intrinsic::minnum:
  case llvm::Intrinsic::minimumnum:
    return "minnum";
  case llvm::Intrinsic::maxnum:
  case llvm::Intrinsic::maximumnum:
    return "maxnum";
  default:
    return nullptr;
  }
}

bool NvvmPrinter::print_float(llvm::CallInst &call, llvm::Intrinsic::ID id) {
  if (id == llvm::Intrinsic::is_fpclass) {
    print_class(call);
    return true;
  }
  const llvm::Type *of = call.getType();
  if (id == llvm::Intrinsic::minimum || id == llvm::Intrinsic::maximum) {
    print_minimum(call, id == llvm::Intrinsic::minimum ? "minnum" : "maxnum");
    return true;
  }
  if (id == llvm::Intrinsic::tanh && of->isFloatTy() && call.hasApproxFunc() && sm >= 75) {
    define(call, inline_ptx("float", "tanh.approx.f32 $0, $1;", "=f,f", {typed(call.getArgOperand(0))}, Effect::none));
    return true;
  }
  if (id == llvm::Intrinsic::convert_from_fp16 && (of->isFloatTy() || of->isDoubleTy())) {
    pass(call, call.getCalledFunction()->getName());
    return true;
  }
  const char *name = name_of(id);
  if (!name || of->isVectorTy()) return false;
  if (of->isBFloatTy()) {
    if (id == llvm::Intrinsic::fma && sm >= 80) {
      std::vector<std::string> arguments;
      for (const llvm::Use &argument : call.args()) arguments.push_back(typed(argument));
      define(call, inline_ptx("i16", "fma.rn.bf16 $0, $1, $2, $3;", "=h,h,h,h", arguments, Effect::none));
      return true;
    }
    if (id == llvm::Intrinsic::fma || id == llvm::Intrinsic::fmuladd) return false;
    std::vector<std::string> arguments;
    for (const llvm::Use &argument : call.args()) arguments.push_back(widened(argument));
    std::vector<std::string> types(arguments.size(), "float");
    std::string wide = temporary(intrinsic(joined("llvm.", name, ".f32"), "float", types, arguments));
    define(call, narrowed(wide));
    return true;
  }
  if (id == llvm::Intrinsic::sqrt && of->isFloatTy() && call.hasApproxFunc())
    pass(call, flushes ? "llvm.nvvm.sqrt.approx.ftz.f" : "llvm.nvvm.sqrt.approx.f");
  else
    pass(call, joined("llvm.", name, ".f", of->getPrimitiveSizeInBits().getFixedValue()));
  return true;
}

/* The minimum or maximum, or a NaN if one operand is a NaN. */
void NvvmPrinter::print_minimum(llvm::CallInst &call, llvm::StringRef numeric) {
  const llvm::Type *of = call.getType();
  if (!of->isFloatTy() && !of->isDoubleTy()) return fail(call);
  std::string name = type(of), left = operand(call.getArgOperand(0)), right = operand(call.getArgOperand(1));
  std::string number = temporary(intrinsic(joined("llvm.", numeric, ".f", of->isFloatTy() ? 32 : 64), name,
                                           {name, name}, {left, right}));
  std::string is_nan = temporary(joined("fcmp uno ", name, " ", left, ", ", right));
  std::string nan = temporary(joined("fadd ", name, " ", left, ", ", right));
  define(call, joined("select i1 ", is_nan, ", ", name, " ", nan, ", ", name, " ", number));
}

/* Tests of the bits of a number: `llvm.is.fpclass`. */
void NvvmPrinter::print_class(llvm::CallInst &call) {
  const llvm::Value *value = call.getArgOperand(0);
  const llvm::Type *of = value->getType();
  if (of->isVectorTy()) return fail(call);
  const llvm::fltSemantics &semantics = of->getFltSemantics();
  unsigned bits = of->getPrimitiveSizeInBits();
  uint64_t mask = llvm::cast<llvm::ConstantInt>(call.getArgOperand(1))->getZExtValue();
  std::string name = joined("i", bits);
  std::string whole = temporary(joined("bitcast ", typed(value), " to ", name));
  auto shown = [&](const llvm::APInt &number) { return llvm::toString(number, 10, true); };
  std::string size = temporary(joined("and ", name, " ", whole, ", ", shown(llvm::APInt::getSignedMaxValue(bits))));
  std::string is_negative = temporary(joined("icmp slt ", name, " ", whole, ", 0"));
  llvm::APInt infinity = llvm::APFloat::getInf(semantics).bitcastToAPInt();
  llvm::APInt normal = llvm::APFloat::getSmallestNormalized(semantics).bitcastToAPInt();
  llvm::APInt quiet = llvm::APFloat::getQNaN(semantics).bitcastToAPInt(), zero(bits, 0);
  llvm::APInt end = llvm::APInt::getSignedMinValue(bits);
  std::string result = "false";
  /* Adds the numbers whose size without the sign is in [low, high). */
  auto add = [&](const llvm::APInt &low, const llvm::APInt &high, bool negative, bool positive) {
    if (!negative && !positive) return;
    std::string offset = temporary(joined("sub ", name, " ", size, ", ", shown(low)));
    std::string is_inside = temporary(joined("icmp ult ", name, " ", offset, ", ", shown(high - low)));
    if (negative != positive) {
      std::string side = negative ? is_negative : temporary(joined("xor i1 ", is_negative, ", true"));
      is_inside = temporary(joined("and i1 ", is_inside, ", ", side));
    }
    result = temporary(joined("or i1 ", result, ", ", is_inside));
  };
  add(zero, zero + 1, mask & llvm::fcNegZero, mask & llvm::fcPosZero);
  add(zero + 1, normal, mask & llvm::fcNegSubnormal, mask & llvm::fcPosSubnormal);
  add(normal, infinity, mask & llvm::fcNegNormal, mask & llvm::fcPosNormal);
  add(infinity, infinity + 1, mask & llvm::fcNegInf, mask & llvm::fcPosInf);
  add(infinity + 1, quiet, mask & llvm::fcSNan, mask & llvm::fcSNan);
  add(quiet, end, mask & llvm::fcQNan, mask & llvm::fcQNan);
  define(call, joined("or i1 ", result, ", false"));
}

/* Copies and fills; LLVM 7 writes the type behind the pointer in their names. */
bool NvvmPrinter::print_memory(llvm::CallInst &call, llvm::Intrinsic::ID id) {
  const char *name = id == llvm::Intrinsic::memcpy    ? "llvm.memcpy"
                     : id == llvm::Intrinsic::memmove ? "llvm.memmove"
                     : id == llvm::Intrinsic::memset  ? "llvm.memset"
                                                      : nullptr;
  if (!name) return false;
  std::string overload;
  for (unsigned index : {0, 1})
    if (const llvm::Type *of = call.getArgOperand(index)->getType(); of->isPointerTy())
      overload += joined(".p", of->getPointerAddressSpace(), "i8");
  overload += joined(".", type(call.getArgOperand(2)->getType()));
  /* The intrinsic of LLVM 7 has the same operands; without attributes the accesses are of bytes. */
  pass(call, name + overload);
  return true;
}

} // namespace weft
