/* The intrinsics of NVIDIA's GPUs in NVVM IR: those of LLVM 7, and inline PTX for the others. */
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Regex.h"

#include "printer.h"

namespace weft {

/* Functions that LLVM 7 has under the same name. */
static const char *const passed_on =
    "^((add|mul|div)\\.(rn|rz|rm|rp)(\\.ftz)?\\.[fd]|fma\\.(rn|rz|rm|rp)(\\.ftz)?\\.[fd]"
    "|(rcp|sqrt)\\.(rn|rz|rm|rp)(\\.ftz)?\\.[fd]|(div|sqrt|rsqrt|sin|cos|lg2)\\.approx(\\.ftz)?\\.f|rsqrt\\.approx\\.d"
    "|rcp\\.approx\\.ftz\\.d|(d2f|d2i|d2ui|d2ll|d2ull|f2i|f2ui|f2ll|f2ull)\\.(rn|rz|rm|rp)(\\.ftz)?"
    "|(i2f|ui2f|ll2f|ull2f|i2d|ui2d|ll2d|ull2d)\\.(rn|rz|rm|rp)|lohi\\.i2d|d2i\\.(lo|hi)"
    "|mulhi\\.(i|ui|ll|ull)|mul24\\.(i|ui)|sad\\.(i|ui)|prmt|saturate(\\.ftz)?\\.f|saturate\\.d"
    "|f(min|max)(\\.ftz)?\\.f|f(min|max)\\.d|(floor|ceil|round|trunc)(\\.ftz)?\\.f|(floor|ceil|round|trunc)\\.d"
    "|f2h\\.rn(\\.ftz)?|membar\\.(cta|gl|sys)|shfl\\.sync\\.(idx|up|down|bfly)\\.[if]32"
    "|vote\\.(all|any|uni|ballot)\\.sync|bar\\.warp\\.sync|isspacep\\.(global|shared|const|local))$";

bool NvvmPrinter::print_nvvm(llvm::CallInst &call, llvm::StringRef name) {
  if (llvm::StringRef sreg = name; sreg.consume_front("read.ptx.sreg.")) return print_register(call, sreg);
  if (name.starts_with("barrier")) return print_barrier(call, name);
  if (name.starts_with("atomic.")) return print_atomic(call, name);
  if (name == "exit") {
    line(inline_ptx("void", "exit;", "", {}, Effect::memory));
    return true;
  }
  if (name == "nanosleep") {
    line(inline_ptx("void", "nanosleep.u32 $0;", "r", {typed(call.getArgOperand(0))}, Effect::memory));
    return true;
  }
  /* LLVM 7 writes only the letter of the type. */
  if (name == "ex2.approx.f32" || name == "ex2.approx.ftz.f32" || name == "fabs.ftz.f32") {
    pass(call, joined("llvm.nvvm.", name.drop_back(2)));
    return true;
  }
  if (name == "fabs.f32" || name == "fabs.f64") {
    pass(call, joined("llvm.", name));
    return true;
  }
  if (print_warp(call, name)) return true;
  static const llvm::Regex known(passed_on);
  if (!known.match(name)) return false;
  pass(call, joined("llvm.nvvm.", name));
  return true;
}

/* Special registers. LLVM 7 knows how often a register changes; the others are read anew each time. */
bool NvvmPrinter::print_register(llvm::CallInst &call, llvm::StringRef name) {
  static const llvm::Regex known("^((tid|ntid|ctaid|nctaid)\\.[xyz]|laneid|warpsize|clock|clock64|envreg[0-9]+)$");
  if (known.match(name)) {
    pass(call, joined("llvm.nvvm.read.ptx.sreg.", name));
    return true;
  }
  unsigned bits = call.getType()->isIntegerTy() ? call.getType()->getIntegerBitWidth() : 0;
  if (bits != 32 && bits != 64) return false;
  std::string shown = name.starts_with("cluster.") ? joined("cluster_", name.drop_front(8)) : name.str();
  define(call, inline_ptx(type(call.getType()), joined("mov.u", bits, " $0, %", shown, ";"), bits == 64 ? "=l" : "=r",
                          {}, Effect::memory));
  return true;
}

/* Barriers of a block. */
bool NvvmPrinter::print_barrier(llvm::CallInst &call, llvm::StringRef name) {
  const auto *number = llvm::dyn_cast<llvm::ConstantInt>(call.getArgOperand(0));
  bool is_first = number && number->isZero();
  if (name == "barrier.cta.sync.aligned.all" && is_first) {
    line(intrinsic("llvm.nvvm.barrier0", "void", {}, {}));
    return true;
  }
  if (name == "barrier.cta.sync.aligned.all" || name == "barrier.cta.sync.all") {
    llvm::StringRef form = name.contains("aligned") ? "barrier.sync.aligned $0;" : "barrier.sync $0;";
    line(inline_ptx("void", form, "r", {typed(call.getArgOperand(0))}, Effect::converged));
    return true;
  }
  llvm::StringRef reduction = name;
  if (!is_first || !reduction.consume_front("barrier.cta.red.") || !reduction.consume_back(".aligned.all"))
    return false;
  std::string flag = temporary(joined("zext ", typed(call.getArgOperand(1)), " to i32"));
  std::string shown = intrinsic(joined("llvm.nvvm.barrier0.", reduction), "i32", {"i32"}, {flag});
  if (reduction == "popc")
    define(call, shown);
  else
    define(call, joined("icmp ne i32 ", temporary(shown), ", 0"));
  return true;
}

/* Operations of a warp that LLVM 7 lacks. */
bool NvvmPrinter::print_warp(llvm::CallInst &call, llvm::StringRef name) {
  if (name == "activemask") {
    define(call, inline_ptx("i32", "activemask.b32 $0;", "=r", {}, Effect::converged));
    return true;
  }
  if (name == "cp.async.commit.group") {
    line(inline_ptx("void", "cp.async.commit_group;", "", {}, Effect::memory));
    return true;
  }
  if (name == "cp.async.wait.group") {
    line(inline_ptx("void", "cp.async.wait_group $0;", "n", {typed(call.getArgOperand(0))}, Effect::memory));
    return true;
  }
  if (name.starts_with("cp.async.c") && name.contains(".shared.global.")) {
    auto [form, bytes] = name.rsplit('.');
    std::string to = temporary(joined("ptrtoint ", typed(call.getArgOperand(0)), " to i32"));
    std::string from = temporary(joined("ptrtoint ", typed(call.getArgOperand(1)), " to i64"));
    line(inline_ptx("void", joined(form, " [$0], [$1], ", bytes, ";"), "r,l",
                    {joined("i32 ", to), joined("i64 ", from)}, Effect::memory));
    return true;
  }
  if (name.starts_with("ldmatrix.sync.aligned.m8n8.x2.") || name.starts_with("ldmatrix.sync.aligned.m8n8.x4.")) {
    bool is_four = name.contains(".x4.");
    std::string address = temporary(joined("ptrtoint ", typed(call.getArgOperand(0)), " to i32"));
    llvm::StringRef results = is_four ? "{$0, $1, $2, $3}, [$4];" : "{$0, $1}, [$2];";
    std::string code = joined("ldmatrix.sync.aligned.m8n8.x", is_four ? "4" : "2",
                              name.contains(".trans.") ? ".trans" : "", ".shared.b16 ", results);
    define(call, inline_ptx(is_four ? "{ i32, i32, i32, i32 }" : "{ i32, i32 }", code,
                            is_four ? "=r,=r,=r,=r,r" : "=r,=r,r", {joined("i32 ", address)}, Effect::converged));
    return true;
  }
  llvm::StringRef rest = name;
  if (rest.consume_front("redux.sync.")) {
    llvm::StringRef form = llvm::StringSwitch<llvm::StringRef>(rest)
                               .Case("add", "add.s32")
                               .Case("min", "min.s32")
                               .Case("max", "max.s32")
                               .Case("umin", "min.u32")
                               .Case("umax", "max.u32")
                               .Case("and", "and.b32")
                               .Case("or", "or.b32")
                               .Case("xor", "xor.b32")
                               .Default("");
    if (form.empty()) return false;
    define(call, inline_ptx("i32", joined("redux.sync.", form, " $0, $1, $2;"), "=r,r,r",
                            {typed(call.getArgOperand(0)), typed(call.getArgOperand(1))}, Effect::converged));
    return true;
  }
  if (!rest.consume_front("match.")) return false;
  bool is_wide = rest.contains("i64");
  llvm::StringRef size = is_wide ? "b64" : "b32";
  std::string constraint = is_wide ? "l" : "r";
  /* The mask is the first operand here and the last one of the instruction. */
  std::vector<std::string> arguments{typed(call.getArgOperand(1)), typed(call.getArgOperand(0))};
  if (rest == "any.sync.i32" || rest == "any.sync.i64") {
    define(call, inline_ptx("i32", joined("match.any.sync.", size, " $0, $1, $2;"), joined("=r,", constraint, ",r"),
                            arguments, Effect::converged));
    return true;
  }
  if (rest != "all.sync.i32p" && rest != "all.sync.i64p") return false;
  std::string code = joined("{ .reg .pred p; match.all.sync.", size, " $0|p, $2, $3; selp.u32 $1, 1, 0, p; }");
  std::string both = "{ i32, i32 }";
  std::string constraints = joined("=r,=r,", constraint, ",r");
  std::string pair = temporary(inline_ptx(both, code, constraints, arguments, Effect::converged));
  std::string lanes = temporary(joined("extractvalue ", both, " ", pair, ", 0"));
  std::string all = temporary(joined("extractvalue ", both, " ", pair, ", 1"));
  all = temporary(joined("icmp ne i32 ", all, ", 0"));
  std::string result = type(call.getType());
  lanes = temporary(joined("insertvalue ", result, " undef, i32 ", lanes, ", 0"));
  define(call, joined("insertvalue ", result, " ", lanes, ", i1 ", all, ", 1"));
  return true;
}

/* `llvm.nvvm.atomic.add.gen.i.sys`: a relaxed operation with the scope of the system on a generic address. */
bool NvvmPrinter::print_atomic(llvm::CallInst &call, llvm::StringRef name) {
  llvm::SmallVector<llvm::StringRef> parts;
  name.split(parts, '.');
  const llvm::Type *of = call.getType();
  if (parts.size() < 5 || parts[2] != "gen" || parts[4] != "sys" || call.arg_size() != 2) return false;
  bool is_float = of->isFloatTy() || of->isDoubleTy();
  unsigned bits = of->getPrimitiveSizeInBits();
  if (!is_float && bits != 32 && bits != 64) return false;
  llvm::StringRef letter = llvm::StringSwitch<llvm::StringRef>(parts[1])
                               .Case("add", is_float ? "f" : "u")
                               .Cases({"and", "or", "xor", "exch"}, "b")
                               .Cases({"max", "min"}, "s")
                               .Cases({"inc", "dec"}, "u")
                               .Default("");
  if (letter.empty() || (is_float && parts[1] != "add")) return false;
  atomic(call, joined(parts[1], ".", letter, bits), call.getArgOperand(0), of, {operand(call.getArgOperand(1))},
         llvm::AtomicOrdering::Monotonic, llvm::SyncScope::System);
  return true;
}

} // namespace weft
