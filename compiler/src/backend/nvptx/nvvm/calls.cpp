/* Calls and inline PTX in NVVM IR. */
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/Instructions.h"

#include "printer.h"

namespace weft {

char constraint_of(const llvm::Type *type) {
  if (type->isFloatTy()) return 'f';
  if (type->isDoubleTy()) return 'd';
  if (type->isPointerTy() || type->isIntegerTy(64)) return 'l';
  if (type->isIntegerTy(32)) return 'r';
  return type->isIntegerTy(16) || type->isBFloatTy() ? 'h' : 0;
}

/* Bytes in quotes: `\22` for a quotation mark. */
std::string NvvmPrinter::quoted(llvm::StringRef bytes) {
  std::string shown;
  llvm::raw_string_ostream stream(shown);
  llvm::printEscapedString(bytes, stream);
  return shown;
}

std::string NvvmPrinter::inline_ptx(const llvm::Twine &result, const llvm::Twine &code, const llvm::Twine &constraints,
                                    llvm::ArrayRef<std::string> arguments, Effect effect) {
  std::string all = constraints.str();
  if (effect != Effect::none) all += all.empty() ? "~{memory}" : ",~{memory}";
  return joined("call ", result.str(), " asm ", effect == Effect::none ? "" : "sideeffect ", "\"", quoted(code.str()),
                "\", \"", all, "\"(", llvm::join(arguments, ", "), ") nounwind",
                effect == Effect::converged ? " convergent" : "");
}

/* The right side of the definition of a call of an intrinsic, which is declared. */
std::string NvvmPrinter::intrinsic(llvm::StringRef name, llvm::StringRef result, llvm::ArrayRef<std::string> types,
                                   llvm::ArrayRef<std::string> arguments) {
  declared[name.str()] = joined("declare ", result, " @", name, "(", llvm::join(types, ", "), ")\n");
  std::string list;
  for (auto [type, argument] : llvm::zip(types, arguments))
    list += joined(list.empty() ? "" : ", ", type, " ", argument);
  return joined("call ", result, " @", name, "(", list, ")");
}

std::vector<std::string> NvvmPrinter::operands(const llvm::CallInst &call) {
  std::vector<std::string> shown;
  for (const llvm::Use &argument : call.args()) shown.push_back(operand(argument));
  return shown;
}

void NvvmPrinter::pass(llvm::CallInst &call, llvm::StringRef name) {
  std::vector<std::string> types;
  for (const llvm::Use &argument : call.args()) types.push_back(type(argument->getType()));
  std::string shown = intrinsic(name, type(call.getType()), types, operands(call));
  if (call.getType()->isVoidTy()) return line(shown);
  define(call, shown);
}

void NvvmPrinter::visitCallInst(llvm::CallInst &call) {
  if (call.isMustTailCall() || call.hasOperandBundles()) return fail(call);
  if (const auto *code = llvm::dyn_cast<llvm::InlineAsm>(call.getCalledOperand())) return print_inline_ptx(call, *code);
  const llvm::Function *callee = call.getCalledFunction();
  if (callee && callee->isIntrinsic()) return print_intrinsic(call);
  print_call(call);
}

void NvvmPrinter::print_inline_ptx(llvm::CallInst &call, const llvm::InlineAsm &code) {
  if (code.canThrow() || code.getDialect() != llvm::InlineAsm::AD_ATT) return fail(call);
  std::string arguments;
  for (const llvm::Use &argument : call.args()) arguments += joined(arguments.empty() ? "" : ", ", typed(argument));
  std::string strings =
      joined("\"", quoted(code.getAsmString()), "\", \"", quoted(code.getConstraintString()), "\"");
  const char *effect = code.hasSideEffects() ? "sideeffect " : "";
  std::string shown = joined("call ", type(call.getType()), " asm ", effect, strings, "(", arguments, ") nounwind",
                             call.isConvergent() ? " convergent" : "");
  if (call.getType()->isVoidTy()) return line(shown);
  define(call, shown);
}

/* A call of a function of the module, of another module, or through a pointer. */
void NvvmPrinter::print_call(llvm::CallInst &call) {
  const llvm::FunctionType *of = call.getFunctionType();
  const auto *callee = llvm::dyn_cast<llvm::Function>(call.getCalledOperand());
  std::string to, aligns;
  bool exported = false;
  if (callee && callee->getFunctionType() == of) {
    to = symbol(callee);
    exported = exports(*callee);
    /* The code generator of libNVVM reads the alignments of structs at the call. */
    llvm::AttributeList attributes = callee->getAttributes();
    auto add = [&](unsigned value) { aligns += joined(aligns.empty() ? "" : ", ", "i32 ", value); };
    if (llvm::MaybeAlign align = attributes.getRetStackAlignment()) add(align->value());
    for (unsigned param = 0; param < callee->arg_size(); ++param)
      if (llvm::MaybeAlign align = attributes.getParamStackAlignment(param)) add((param + 1) << 16 | align->value());
  } else {
    to = temporary(joined("bitcast ", typed(call.getCalledOperand()), " to ", function_type(of, false), "*"));
  }
  std::string arguments;
  for (unsigned index = 0; index < call.arg_size(); ++index) {
    std::string extension = call.paramHasAttr(index, llvm::Attribute::ZExt)   ? "zeroext "
                            : call.paramHasAttr(index, llvm::Attribute::SExt) ? "signext "
                                                                              : "";
    const llvm::Value *argument = call.getArgOperand(index);
    std::string whole = in_signature(argument, exported);
    size_t after_type = type_in_signature(argument->getType(), exported).size() + 1;
    arguments += joined(index ? ", " : "", whole.substr(0, after_type), extension, whole.substr(after_type));
  }
  std::string result = type_in_signature(call.getType(), exported);
  std::string shown = joined("call ", result, " ", to, "(", arguments, ") nounwind",
                             call.isConvergent() ? " convergent" : "");
  if (!aligns.empty()) shown += joined(", !callalign !", node(aligns));
  if (call.getType()->isVoidTy()) return line(shown);
  define(call, result == "%struct.half" ? from_signature(call.getType(), temporary(shown)) : shown);
}

} // namespace weft
