/* Scalarization of gathers and scatters: `masked.gather` and `masked.scatter` become one scalar load or store for each
 * lane. This pays on CPUs whose gather and scatter instructions are microcode.
 *
 * The expansion has no branches: an inactive lane accesses a slot on the stack. */
#include "llvm-c/Core.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace {

/* The addresses of a vector of pointers, by lane. */
class Lanes {
public:
  /* `masked`: the vector is a select between pointers and the slot, so its base and indices cannot be separated. */
  Lanes(IRBuilder<> &builder, Value *pointers, bool masked) : builder(builder), pointers(pointers) {
    auto *gep = masked ? nullptr : dyn_cast<GetElementPtrInst>(pointers);
    if (!gep || gep->getNumIndices() != 1 || gep->getPointerOperandType()->isVectorTy()) return;
    Value *indices = gep->getOperand(1);
    if (!indices->getType()->isVectorTy()) return;
    base = gep->getPointerOperand();
    element = gep->getSourceElementType();
    index = gep->getOperand(1)->getType()->getScalarType();
    is_signed = true;
    /* The indices take fewer registers before their extension. */
    if (isa<SExtInst, ZExtInst>(indices)) {
      is_signed = isa<SExtInst>(indices);
      indices = cast<CastInst>(indices)->getOperand(0);
    }
    this->indices = indices;
  }

  Value *at(unsigned lane) {
    if (!base) return builder.CreateExtractElement(pointers, lane);
    Value *own = builder.CreateExtractElement(indices, lane);
    own = is_signed ? builder.CreateSExt(own, index) : builder.CreateZExt(own, index);
    return builder.CreateGEP(element, base, own);
  }

private:
  IRBuilder<> &builder;
  Value *pointers;
  Value *base = nullptr;
  Value *indices = nullptr;
  Type *element = nullptr;
  Type *index = nullptr;
  bool is_signed = true;
};

/* Whether a mask is a constant that selects every lane. */
bool all(Value *mask) {
  auto *constant = dyn_cast<Constant>(mask);
  return constant && constant->isAllOnesValue();
}

/* The pointers of the active lanes, and the address of a stack slot for the others. */
Value *kept(IRBuilder<> &builder, Value *pointers, Value *mask, FixedVectorType *values) {
  if (all(mask)) return pointers;
  BasicBlock &entry = builder.GetInsertBlock()->getParent()->getEntryBlock();
  IRBuilder<> first(&entry, entry.getFirstInsertionPt());
  Value *slot = first.CreateAlloca(values->getElementType());
  /* Tables of the math library are in an address space of constants. */
  slot = first.CreateAddrSpaceCast(slot, pointers->getType()->getScalarType());
  return builder.CreateSelect(mask, pointers, builder.CreateVectorSplat(values->getElementCount(), slot));
}

void expand(IntrinsicInst *call) {
  IRBuilder<> builder(call);
  bool is_gather = call->getIntrinsicID() == Intrinsic::masked_gather;
  Value *pointers = call->getArgOperand(is_gather ? 0 : 1);
  Value *mask = call->getArgOperand(is_gather ? 1 : 2);
  auto *type = dyn_cast<FixedVectorType>(is_gather ? call->getType() : call->getArgOperand(0)->getType());
  if (!type) return;
  Align align = call->getParamAlign(is_gather ? 0 : 1).valueOrOne();
  AAMDNodes known = call->getAAMetadata();
  MDNode *group = call->getMetadata(LLVMContext::MD_access_group);
  Lanes lanes(builder, kept(builder, pointers, mask, type), !all(mask));
  Value *result = PoisonValue::get(type);
  for (unsigned lane = 0; lane < type->getNumElements(); lane++) {
    Instruction *access;
    if (is_gather) {
      access = builder.CreateAlignedLoad(type->getElementType(), lanes.at(lane), align);
      result = builder.CreateInsertElement(result, access, lane);
    } else {
      Value *value = builder.CreateExtractElement(call->getArgOperand(0), lane);
      access = builder.CreateAlignedStore(value, lanes.at(lane), align);
    }
    access->setAAMetadata(known);
    if (group) access->setMetadata(LLVMContext::MD_access_group, group);
  }
  if (is_gather) {
    if (!all(mask)) result = builder.CreateSelect(mask, result, call->getArgOperand(2));
    call->replaceAllUsesWith(result);
  }
  call->eraseFromParent();
}

} // namespace

extern "C" void weft_single_accesses(LLVMModuleRef module) {
  SmallVector<IntrinsicInst *, 16> calls;
  for (Function &function : *unwrap(module))
    for (BasicBlock &block : function)
      for (Instruction &instruction : block)
        if (auto *call = dyn_cast<IntrinsicInst>(&instruction))
          if (call->getIntrinsicID() == Intrinsic::masked_gather || call->getIntrinsicID() == Intrinsic::masked_scatter)
            calls.push_back(call);
  for (IntrinsicInst *call : calls) expand(call);
}
