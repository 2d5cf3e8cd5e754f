/* Atomic operations in NVVM IR: inline PTX, because LLVM 7 has neither their scopes nor their orders for PTX. */
#include "llvm/IR/Instructions.h"

#include "printer.h"

namespace weft {

llvm::StringRef space_suffix(unsigned space) {
  switch (space) {
  case 1:
    return ".global";
  case 3:
    return ".shared";
  default:
    return "";
  }
}

/* A scope of LLVM as one of PTX; empty for one that PTX lacks. */
std::string NvvmPrinter::scope_of(llvm::SyncScope::ID scope) {
  llvm::SmallVector<llvm::StringRef> known;
  module.getContext().getSyncScopeNames(known);
  llvm::StringRef name = known[scope];
  if (name.empty()) return ".sys";
  return name == "device" ? ".gpu" : name == "block" ? ".cta" : "";
}

/* An order as a modifier of PTX, after a fence if it is sequential. */
std::string NvvmPrinter::memory_order(llvm::AtomicOrdering order, const std::string &scope) {
  switch (order) {
  case llvm::AtomicOrdering::Acquire:
    return ".acquire";
  case llvm::AtomicOrdering::Release:
    return ".release";
  case llvm::AtomicOrdering::AcquireRelease:
    return ".acq_rel";
  case llvm::AtomicOrdering::SequentiallyConsistent:
    line(inline_ptx("void", joined("fence.sc", scope, ";"), "", {}, Effect::memory));
    return ".acquire";
  default:
    return ".relaxed";
  }
}

static bool is_single_thread(llvm::SyncScope::ID scope) { return scope == llvm::SyncScope::SingleThread; }

void NvvmPrinter::visitFenceInst(llvm::FenceInst &fence) {
  std::string scope = scope_of(fence.getSyncScopeID());
  if (scope.empty() || is_single_thread(fence.getSyncScopeID())) return fail(fence);
  bool is_sequential = fence.getOrdering() == llvm::AtomicOrdering::SequentiallyConsistent;
  line(inline_ptx("void", joined("fence.", is_sequential ? "sc" : "acq_rel", scope, ";"), "", {}, Effect::memory));
}

/* An operation that takes a pointer and values of a type and returns the old value. `code` is the operation and its
 * type in PTX. */
void NvvmPrinter::atomic(llvm::Instruction &instruction, const llvm::Twine &code, const llvm::Value *pointer,
                         const llvm::Type *of, llvm::ArrayRef<std::string> values, llvm::AtomicOrdering order,
                         llvm::SyncScope::ID id) {
  std::string scope = scope_of(id);
  unsigned space = pointer->getType()->getPointerAddressSpace();
  char constraint = constraint_of(of);
  bool is_half = of->isHalfTy();
  if (scope.empty() || is_single_thread(id) || space > 3 || (!constraint && !is_half)) return fail(instruction);
  std::string type_here = is_half ? "i16" : type(of), constraints = joined("=", is_half ? 'h' : constraint, ",l");
  std::vector<std::string> arguments{typed(pointer)};
  std::string list;
  for (std::string shown : values) {
    if (is_half) shown = temporary(joined("bitcast half ", shown, " to i16"));
    arguments.push_back(joined(type_here, " ", shown));
    constraints += joined(",", is_half ? 'h' : constraint);
    list += joined(", $", arguments.size());
  }
  std::string modifiers = memory_order(order, scope) + scope + space_suffix(space).str();
  std::string whole = joined("atom", modifiers, ".", code.str(), " $0, [$1]", list, ";");
  std::string old = inline_ptx(type_here, whole, constraints, arguments, Effect::memory);
  if (auto *swap = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&instruction)) {
    old = temporary(old);
    std::string is_equal = temporary(joined("icmp eq ", type_here, " ", old, ", ", operand(swap->getCompareOperand())));
    std::string pair = type(swap->getType());
    pair = joined(pair, " ", temporary(joined("insertvalue ", pair, " undef, ", type_here, " ", old, ", 0")));
    return define(instruction, joined("insertvalue ", pair, ", i1 ", is_equal, ", 1"));
  }
  define(instruction, is_half ? joined("bitcast i16 ", temporary(old), " to half") : old);
}

void NvvmPrinter::visitAtomicCmpXchgInst(llvm::AtomicCmpXchgInst &operation) {
  const llvm::Type *of = operation.getCompareOperand()->getType();
  if (operation.isVolatile() || !of->isIntegerTy()) return fail(operation);
  atomic(operation, joined("cas.b", of->getIntegerBitWidth()), operation.getPointerOperand(), of,
         {operand(operation.getCompareOperand()), operand(operation.getNewValOperand())},
         operation.getMergedOrdering(), operation.getSyncScopeID());
}

/* The operation and its type in PTX; empty if PTX has none. */
static std::string code_of(const llvm::AtomicRMWInst &operation) {
  const llvm::Type *of = operation.getType();
  unsigned bits = of->getPrimitiveSizeInBits();
  if (of->isIntegerTy() && bits != 32 && bits != 64) return "";
  switch (operation.getOperation()) {
  case llvm::AtomicRMWInst::Add:
  case llvm::AtomicRMWInst::Sub:
    return joined("add.u", bits);
  case llvm::AtomicRMWInst::And:
    return joined("and.b", bits);
  case llvm::AtomicRMWInst::Or:
    return joined("or.b", bits);
  case llvm::AtomicRMWInst::Xor:
    return joined("xor.b", bits);
  case llvm::AtomicRMWInst::Xchg:
    return of->isIntegerTy() ? joined("exch.b", bits) : "";
  case llvm::AtomicRMWInst::Max:
    return joined("max.s", bits);
  case llvm::AtomicRMWInst::Min:
    return joined("min.s", bits);
  case llvm::AtomicRMWInst::UMax:
    return joined("max.u", bits);
  case llvm::AtomicRMWInst::UMin:
    return joined("min.u", bits);
  case llvm::AtomicRMWInst::UIncWrap:
    return bits == 32 ? "inc.u32" : "";
  case llvm::AtomicRMWInst::UDecWrap:
    return bits == 32 ? "dec.u32" : "";
  case llvm::AtomicRMWInst::FAdd:
    if (of->isHalfTy()) return "add.noftz.f16";
    if (of->isBFloatTy()) return "add.noftz.bf16";
    return of->isFloatTy() || of->isDoubleTy() ? joined("add.f", bits) : "";
  default:
    return "";
  }
}

void NvvmPrinter::visitAtomicRMWInst(llvm::AtomicRMWInst &operation) {
  std::string code = code_of(operation);
  const llvm::Type *of = operation.getType();
  if (code.empty() || operation.isVolatile()) return fail(operation);
  std::string value = operand(operation.getValOperand());
  /* PTX has no subtraction. */
  if (operation.getOperation() == llvm::AtomicRMWInst::Sub) value = temporary(joined("sub ", type(of), " 0, ", value));
  atomic(operation, code, operation.getPointerOperand(), of, {value}, operation.getOrdering(),
         operation.getSyncScopeID());
}

void NvvmPrinter::print_atomic_load(llvm::LoadInst &load) {
  const llvm::Type *of = load.getType();
  std::string scope = scope_of(load.getSyncScopeID());
  char constraint = constraint_of(of);
  unsigned space = load.getPointerAddressSpace();
  if (!constraint || scope.empty() || is_single_thread(load.getSyncScopeID()) || space > 3) return fail(load);
  std::string order = memory_order(load.getOrdering(), scope);
  std::string code = joined("ld", order, scope, space_suffix(space), ".b", layout.getTypeSizeInBits(load.getType()),
                            " $0, [$1];");
  define(load, inline_ptx(type(of), code, joined("=", constraint, ",l"), {typed(load.getPointerOperand())},
                          Effect::memory));
}

void NvvmPrinter::print_atomic_store(llvm::StoreInst &store) {
  const llvm::Value *value = store.getValueOperand();
  std::string scope = scope_of(store.getSyncScopeID());
  char constraint = constraint_of(value->getType());
  unsigned space = store.getPointerAddressSpace();
  if (!constraint || scope.empty() || is_single_thread(store.getSyncScopeID()) || space > 3) return fail(store);
  std::string order = memory_order(store.getOrdering(), scope);
  if (order == ".acquire") order = ".relaxed";
  std::string code = joined("st", order, scope, space_suffix(space), ".b",
                            layout.getTypeSizeInBits(value->getType()), " [$0], $1;");
  line(inline_ptx("void", code, joined("l,", constraint), {typed(store.getPointerOperand()), typed(value)},
                  Effect::memory));
}

} // namespace weft
