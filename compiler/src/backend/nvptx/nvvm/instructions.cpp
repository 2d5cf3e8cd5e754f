/* Memory, vectors, aggregates and control flow in NVVM IR. */
#include "llvm/IR/Instructions.h"

#include "printer.h"

namespace weft {

void NvvmPrinter::visitAllocaInst(llvm::AllocaInst &instruction) {
  if (instruction.getAddressSpace() != 0 || !llvm::isa<llvm::ConstantInt>(instruction.getArraySize()))
    return fail(instruction);
  const llvm::Type *of = instruction.getAllocatedType();
  std::string count = instruction.isArrayAllocation() ? ", " + typed(instruction.getArraySize()) : "";
  std::string memory = joined("alloca ", type(of), count, ", align ", instruction.getAlign().value());
  define_pointer(instruction, pointer_type(of, 0), memory);
}

void NvvmPrinter::visitLoadInst(llvm::LoadInst &load) {
  if (load.isAtomic()) return print_atomic_load(load);
  std::string from = typed_pointer(load.getPointerOperand(), load.getType());
  std::string shown = joined("load ", load.isVolatile() ? "volatile " : "", type(load.getType()), ", ", from,
                             ", align ", load.getAlign().value());
  if (load.hasMetadata(llvm::LLVMContext::MD_invariant_load)) shown += joined(", !invariant.load !", node(""));
  define(load, shown);
}

void NvvmPrinter::visitStoreInst(llvm::StoreInst &store) {
  if (store.isAtomic()) return print_atomic_store(store);
  const llvm::Value *value = store.getValueOperand();
  std::string to = typed_pointer(store.getPointerOperand(), value->getType());
  line(joined("store ", store.isVolatile() ? "volatile " : "", typed(value), ", ", to, ", align ",
              store.getAlign().value()));
}

void NvvmPrinter::visitGetElementPtrInst(llvm::GetElementPtrInst &instruction) {
  const llvm::Type *source = instruction.getSourceElementType();
  const auto *record = llvm::dyn_cast<llvm::StructType>(source);
  if (instruction.getType()->isVectorTy() || (record && records.contains(record))) return fail(instruction);
  std::string base = typed_pointer(instruction.getPointerOperand(), source);
  std::string shown = joined("getelementptr ", instruction.isInBounds() ? "inbounds " : "", type(source), ", ", base);
  for (const llvm::Use &index : instruction.indices()) shown += ", " + typed(index);
  define_pointer(instruction, pointer_type(instruction.getResultElementType(), instruction.getAddressSpace()), shown);
}

void NvvmPrinter::visitPHINode(llvm::PHINode &phi) {
  std::string incoming;
  for (unsigned index = 0; index < phi.getNumIncomingValues(); ++index)
    incoming += joined(index ? ", [ " : " [ ", operand(phi.getIncomingValue(index)), ", ",
                       operand(phi.getIncomingBlock(index)), " ]");
  define(phi, joined("phi ", type(phi.getType()), incoming));
}

void NvvmPrinter::visitSelectInst(llvm::SelectInst &select) {
  define(select, joined("select ", typed(select.getCondition()), ", ", typed(select.getTrueValue()), ", ",
                        typed(select.getFalseValue())));
}

void NvvmPrinter::visitICmpInst(llvm::ICmpInst &compare) {
  define(compare, joined("icmp ", llvm::CmpInst::getPredicateName(compare.getPredicate()), " ",
                         typed(compare.getOperand(0)), ", ", operand(compare.getOperand(1))));
}

void NvvmPrinter::visitFCmpInst(llvm::FCmpInst &compare) {
  const llvm::Value *left = compare.getOperand(0), *right = compare.getOperand(1);
  const llvm::Type *of = left->getType();
  std::string predicate = joined("fcmp ", llvm::CmpInst::getPredicateName(compare.getPredicate()), " ");
  if (of->isBFloatTy()) {
    std::string wide = widened(left);
    return define(compare, joined(predicate, "float ", wide, ", ", widened(right)));
  }
  if (of->getScalarType()->isBFloatTy()) return fail(compare);
  define(compare, joined(predicate, typed(left), ", ", operand(right)));
}

void NvvmPrinter::visitExtractValueInst(llvm::ExtractValueInst &extract) {
  std::string shown = "extractvalue " + typed(extract.getAggregateOperand());
  const llvm::Type *whole = extract.getAggregateOperand()->getType();
  for (unsigned index : extract.indices()) {
    shown += joined(", ", element(whole, index));
    whole = llvm::ExtractValueInst::getIndexedType(const_cast<llvm::Type *>(whole), index);
  }
  define(extract, shown);
}

void NvvmPrinter::visitInsertValueInst(llvm::InsertValueInst &insert) {
  std::string shown =
      joined("insertvalue ", typed(insert.getAggregateOperand()), ", ", typed(insert.getInsertedValueOperand()));
  const llvm::Type *whole = insert.getType();
  for (unsigned index : insert.indices()) {
    shown += joined(", ", element(whole, index));
    whole = llvm::ExtractValueInst::getIndexedType(const_cast<llvm::Type *>(whole), index);
  }
  define(insert, shown);
}

void NvvmPrinter::visitExtractElementInst(llvm::ExtractElementInst &extract) {
  define(extract,
         joined("extractelement ", typed(extract.getVectorOperand()), ", ", typed(extract.getIndexOperand())));
}

void NvvmPrinter::visitInsertElementInst(llvm::InsertElementInst &insert) {
  define(insert, joined("insertelement ", typed(insert.getOperand(0)), ", ", typed(insert.getOperand(1)), ", ",
                        typed(insert.getOperand(2))));
}

void NvvmPrinter::visitShuffleVectorInst(llvm::ShuffleVectorInst &shuffle) {
  std::string mask;
  for (int lane : shuffle.getShuffleMask())
    mask += joined(mask.empty() ? "" : ", ", "i32 ", lane < 0 ? "undef" : std::to_string(lane));
  define(shuffle, joined("shufflevector ", typed(shuffle.getOperand(0)), ", ", typed(shuffle.getOperand(1)), ", <",
                         shuffle.getShuffleMask().size(), " x i32> <", mask, ">"));
}

/* A value that went through an instruction of PTX is the same at each use. */
void NvvmPrinter::visitFreezeInst(llvm::FreezeInst &freeze) {
  const llvm::Value *value = freeze.getOperand(0);
  const llvm::Type *of = freeze.getType();
  if (of->isIntegerTy(1) || of->isIntegerTy(8)) {
    std::string wide = temporary(joined("zext ", typed(value), " to i16"));
    wide = temporary(inline_ptx("i16", "mov.b16 $0, $1;", "=h,h", {"i16 " + wide}, Effect::none));
    return define(freeze, joined("trunc i16 ", wide, " to ", type(of)));
  }
  char constraint = constraint_of(of);
  if (!constraint) return fail(freeze);
  unsigned bits = layout.getTypeSizeInBits(freeze.getType());
  define(freeze, inline_ptx(type(of), joined("mov.b", bits, " $0, $1;"), joined("=", constraint, ",", constraint),
                            {typed(value)}, Effect::none));
}

void NvvmPrinter::visitReturnInst(llvm::ReturnInst &instruction) {
  const llvm::Value *value = instruction.getReturnValue();
  line(value ? "ret " + in_signature(value, is_exported) : "ret void");
}

void NvvmPrinter::visitBranchInst(llvm::BranchInst &branch) {
  if (branch.isUnconditional()) return line("br label " + operand(branch.getSuccessor(0)));
  line(joined("br ", typed(branch.getCondition()), ", label ", operand(branch.getSuccessor(0)), ", label ",
              operand(branch.getSuccessor(1))));
}

void NvvmPrinter::visitSwitchInst(llvm::SwitchInst &instruction) {
  std::string cases;
  for (auto choice : instruction.cases())
    cases += joined(" ", typed(choice.getCaseValue()), ", label ", operand(choice.getCaseSuccessor()));
  line(joined("switch ", typed(instruction.getCondition()), ", label ", operand(instruction.getDefaultDest()), " [",
              cases, " ]"));
}

} // namespace weft
