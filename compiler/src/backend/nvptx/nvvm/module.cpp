/* Modules, functions and their metadata in NVVM IR. */
#include "llvm/IR/CallingConv.h"
#include "llvm-c/Core.h"

#include "printer.h"

namespace weft {

/* The data layout that libNVVM requires (NVVM IR Specification, "Data Layout"). */
static const char *const layout_of_nvvm =
    "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-v16:16:16-v32:32:32-"
    "v64:64:64-v128:128:128-n16:32:64";

bool NvvmPrinter::print() {
  text = joined("target datalayout = \"", layout_of_nvvm, "\"\ntarget triple = \"nvptx64-nvidia-cuda\"\n\n");
  name_records();
  bool has_half = false;
  for (const llvm::Function &function : module)
    if (exports(function))
      has_half |= llvm::StringRef(function_type(function.getFunctionType(), true)).contains("%struct.half");
  if (has_half) text += "%struct.half = type { i16 }\n";
  for (const auto &[record, named] : records) text += joined("%", named.name, " = type ", body(named.shown), "\n");
  for (const llvm::GlobalVariable &global : module.globals()) print_global(global);
  if (!module.alias_empty() || !module.ifunc_empty()) fail("an alias");
  /* Declarations come last, because the printing of functions adds some. */
  for (const llvm::Function &function : module)
    if (!function.isDeclaration()) print_function(const_cast<llvm::Function &>(function));
  for (const llvm::Function &function : module) {
    if (!function.isDeclaration() || function.isIntrinsic() || function.use_empty()) continue;
    /* The name of an operation that weft's own passes expand. */
    if (function.getName().starts_with("weft$")) fail(llvm::Twine("a call of ") + function.getName());
    text += joined("declare ", signature(function), "\n");
    annotate(function);
  }
  for (const auto &[name, declaration] : declared) text += declaration;
  print_used();
  if (!annotations.empty()) {
    std::string list;
    for (unsigned number : annotations) list += joined(list.empty() ? "!" : ", !", number);
    text += joined("\n!nvvm.annotations = !{", list, "}");
  }
  unsigned version = node("i32 2, i32 0");
  text += joined("\n!nvvmir.version = !{!", version, "}\n");
  for (unsigned number = 0; number < nodes.size(); ++number) text += joined("!", number, " = !{", nodes[number], "}\n");
  return error.empty();
}

/* The list of kernels: the linker drops a kernel that is not in it. */
void NvvmPrinter::print_used() {
  std::string kernels;
  unsigned count = 0;
  for (const llvm::Function &function : module) {
    if (function.isDeclaration() || function.getCallingConv() != llvm::CallingConv::PTX_Kernel) continue;
    kernels += joined(count++ ? ", " : "", typed(&function));
  }
  if (count)
    text += joined("\n@llvm.used = appending global [", count, " x i8*] [", kernels, "], section \"llvm.metadata\"\n");
}

unsigned NvvmPrinter::node(std::string content) {
  for (unsigned number = 0; number < nodes.size(); ++number)
    if (nodes[number] == content) return number;
  nodes.push_back(std::move(content));
  return nodes.size() - 1;
}

static bool is_known_linkage(const llvm::GlobalValue &value) {
  return value.hasExternalLinkage() || value.hasLocalLinkage();
}

void NvvmPrinter::print_global(const llvm::GlobalVariable &global) {
  if (global.getName().starts_with("llvm.") || !is_known_linkage(global) || global.isThreadLocal())
    return fail(global);
  bool is_declared = global.isDeclaration();
  unsigned space = global.getAddressSpace();
  text += joined(symbol(&global), " = ", is_declared ? "external " : global.hasLocalLinkage() ? "internal " : "");
  if (space) text += joined("addrspace(", space, ") ");
  if (global.isExternallyInitialized()) text += "externally_initialized ";
  text += joined(global.isConstant() ? "constant " : "global ", type(global.getValueType()));
  if (!is_declared) text += " " + constant(global.getInitializer());
  text += joined(", align ", global.getAlign().value_or(layout.getPreferredAlign(&global)).value(), "\n");
}

/* The attributes of a parameter or of a result that NVVM IR has. */
static std::string attributes_of(llvm::AttributeSet attributes) {
  std::string shown;
  for (auto [kind, name] : {std::pair(llvm::Attribute::ZExt, " zeroext"), std::pair(llvm::Attribute::SExt, " signext"),
                            std::pair(llvm::Attribute::NoAlias, " noalias")})
    if (attributes.hasAttribute(kind)) shown += name;
  if (llvm::MaybeAlign align = attributes.getAlignment()) shown += joined(" align ", align->value());
  return shown;
}

std::string NvvmPrinter::signature(const llvm::Function &function) {
  if (function.isVarArg() || !is_known_linkage(function)) fail(llvm::Twine("the function @") + function.getName());
  std::string params;
  for (const llvm::Argument &param : function.args()) {
    std::string shown = type_in_signature(param.getType(), exports(function));
    params += joined(params.empty() ? "" : ", ", shown,
                     attributes_of(function.getAttributes().getParamAttrs(param.getArgNo())));
    if (!function.isDeclaration()) params += joined(" ", operand(&param), shown == "%struct.half" ? ".whole" : "");
  }
  std::string result = attributes_of(function.getAttributes().getRetAttrs());
  std::string shown = joined(function.hasLocalLinkage() ? "internal" : "", result);
  shown = llvm::StringRef(shown).trim().str();
  shown = joined(shown, shown.empty() ? "" : " ", type_in_signature(function.getReturnType(), exports(function)), " ",
                 symbol(&function), "(", params, ") nounwind");
  for (auto [kind, name] : {std::pair(llvm::Attribute::Convergent, " convergent"),
                            std::pair(llvm::Attribute::AlwaysInline, " alwaysinline"),
                            std::pair(llvm::Attribute::NoInline, " noinline")})
    if (function.hasFnAttribute(kind)) shown += name;
  if (flushes) shown += " \"nvptx-f32ftz\"=\"true\"";
  return shown;
}

/* Names the arguments, blocks and values of a function. */
void NvvmPrinter::number(const llvm::Function &function) {
  names.clear();
  typed_names.clear();
  n_temporaries = 0;
  unsigned n_values = 0, n_blocks = 0;
  for (const llvm::Argument &param : function.args()) names[&param] = joined("%p", param.getArgNo());
  for (const llvm::BasicBlock &block : function) {
    names[&block] = joined("%b", n_blocks++);
    for (const llvm::Instruction &instruction : block)
      if (!instruction.getType()->isVoidTy()) names[&instruction] = joined("%v", n_values++);
  }
}

void NvvmPrinter::print_function(llvm::Function &function) {
  number(function);
  flushes = function.getFnAttribute("denormal-fp-math-f32").getValueAsString().starts_with("preserve-sign") ||
            function.getDenormalModeF32Raw().Output == llvm::DenormalMode::PreserveSign;
  text += joined("define ", signature(function), " {\n");
  is_exported = exports(function);
  for (llvm::BasicBlock &block : function) {
    text += joined(llvm::StringRef(names.lookup(&block)).drop_front(), ":\n");
    for (const llvm::Argument &param : function.args())
      if (block.isEntryBlock() && type_in_signature(param.getType(), is_exported) == "%struct.half")
        define(param, from_signature(param.getType(), operand(&param) + ".whole"));
    for (llvm::Instruction &instruction : block) visit(instruction);
  }
  text += "}\n\n";
  annotate(function);
  flushes = false;
}

/* Annotations of kernels, their launch bounds, and the alignments of structs that are parameters or results. */
void NvvmPrinter::annotate(const llvm::Function &function) {
  std::string notes;
  auto add = [&](llvm::StringRef key, uint64_t value) { notes += joined(", !\"", key, "\", i32 ", value); };
  if (function.getCallingConv() == llvm::CallingConv::PTX_Kernel) add("kernel", 1);
  auto [x, yz] = function.getFnAttribute("nvvm.maxntid").getValueAsString().split(',');
  auto [y, z] = yz.split(',');
  for (auto [key, value] : {std::pair("maxntidx", x), std::pair("maxntidy", y), std::pair("maxntidz", z)})
    if (unsigned bound = 0; !value.getAsInteger(10, bound)) add(key, bound);
  for (const char *key : {"minctasm", "maxclusterrank", "maxnreg"})
    if (unsigned bound = 0;
        !function.getFnAttribute(joined("nvvm.", key)).getValueAsString().getAsInteger(10, bound))
      add(key, bound);
  llvm::AttributeList attributes = function.getAttributes();
  if (llvm::MaybeAlign align = attributes.getRetStackAlignment()) add("align", align->value());
  for (unsigned param = 0; param < function.arg_size(); ++param)
    if (llvm::MaybeAlign align = attributes.getParamStackAlignment(param))
      add("align", uint64_t(param + 1) << 16 | align->value());
  if (notes.empty()) return;
  std::string of = joined(function_type(function.getFunctionType(), exports(function)), "* ", symbol(&function));
  annotations.push_back(node(of + notes));
}

} // namespace weft

/* Prints a module as NVVM IR; null with an error message if it contains what NVVM IR cannot express. Both are messages
 * of LLVM's C interface. */
extern "C" char *weft_nvvm_ir(LLVMModuleRef module, unsigned sm, char **error) {
  weft::NvvmPrinter printer(*llvm::unwrap(module), sm);
  if (printer.print()) return LLVMCreateMessage(printer.text.c_str());
  *error = LLVMCreateMessage(printer.error.c_str());
  return nullptr;
}
