/* Prints an LLVM module as NVVM IR, the input of NVIDIA's libNVVM.
 *
 * NVVM IR is the textual IR of LLVM 7 with fewer constructs (NVIDIA's "NVVM IR Specification", version 2.0). All values
 * and blocks are numbered. Differences to LLVM 22:
 *
 * - Pointers have types. Every pointer is an `i8 addrspace(n)*` here, and each use casts it to what it points to.
 * - There is no `bfloat`: it is an `i16` here. There are no `freeze`, `fneg` and poison values, and fewer flags.
 * - Intrinsics and atomic operations that LLVM 7 lacks are expanded or written as inline PTX.
 * - Kernels, launch bounds and alignments of parameters are metadata.
 *
 * An instruction, type or constant that the printer does not know is an error: libNVVM accepts a call of an unknown
 * intrinsic as one of an external function, so nothing may be printed on the chance that it is known. */
#ifndef WEFT_NVVM_PRINTER_H
#define WEFT_NVVM_PRINTER_H

#include <map>
#include <string>
#include <vector>

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstVisitor.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"

namespace weft {

/* Concatenates what an LLVM stream can print. */
template <typename... Parts> std::string joined(const Parts &...parts) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  (stream << ... << parts);
  return text;
}

/* What inline PTX does besides computing its results. */
enum class Effect { none, memory, converged };

class NvvmPrinter : public llvm::InstVisitor<NvvmPrinter> {
public:
  /* `sm` is the number of the target: 90. */
  NvvmPrinter(const llvm::Module &module, unsigned sm) : module(module), layout(module.getDataLayout()), sm(sm) {}

  /* Prints the module; false if it contains what NVVM IR cannot express. */
  bool print();

  std::string text;
  /* The first error: the instruction, type or constant. */
  std::string error;

  /* instructions.cpp */
  void visitInstruction(llvm::Instruction &instruction) { fail(instruction); }
  void visitAllocaInst(llvm::AllocaInst &instruction);
  void visitLoadInst(llvm::LoadInst &load);
  void visitStoreInst(llvm::StoreInst &store);
  void visitGetElementPtrInst(llvm::GetElementPtrInst &instruction);
  void visitPHINode(llvm::PHINode &phi);
  void visitSelectInst(llvm::SelectInst &select);
  void visitICmpInst(llvm::ICmpInst &compare);
  void visitFCmpInst(llvm::FCmpInst &compare);
  void visitExtractValueInst(llvm::ExtractValueInst &extract);
  void visitInsertValueInst(llvm::InsertValueInst &insert);
  void visitExtractElementInst(llvm::ExtractElementInst &extract);
  void visitInsertElementInst(llvm::InsertElementInst &insert);
  void visitShuffleVectorInst(llvm::ShuffleVectorInst &shuffle);
  void visitFreezeInst(llvm::FreezeInst &freeze);
  void visitReturnInst(llvm::ReturnInst &instruction);
  void visitBranchInst(llvm::BranchInst &branch);
  void visitSwitchInst(llvm::SwitchInst &instruction);
  void visitUnreachableInst(llvm::UnreachableInst &) { line("unreachable"); }
  /* arithmetic.cpp */
  void visitUnaryOperator(llvm::UnaryOperator &operation);
  void visitBinaryOperator(llvm::BinaryOperator &operation);
  void visitCastInst(llvm::CastInst &cast);
  /* calls.cpp */
  void visitCallInst(llvm::CallInst &call);
  /* atomics.cpp */
  void visitAtomicRMWInst(llvm::AtomicRMWInst &operation);
  void visitAtomicCmpXchgInst(llvm::AtomicCmpXchgInst &operation);
  void visitFenceInst(llvm::FenceInst &fence);

private:
  const llvm::Module &module;
  const llvm::DataLayout &layout;
  const unsigned sm;
  llvm::DenseMap<const llvm::Value *, std::string> names;
  /* Pointers that are also there with a type: the type and the name. */
  llvm::DenseMap<const llvm::Value *, std::pair<std::string, std::string>> typed_names;
  unsigned n_temporaries = 0;
  /* Declarations of intrinsics, by name. */
  std::map<std::string, std::string> declared;
  /* Nodes of metadata, by number. */
  std::vector<std::string> nodes;
  /* Numbers of nodes of `nvvm.annotations`. */
  std::vector<unsigned> annotations;

  /* Structs that functions of other modules take or return have a name, because the linker matches them with those of
   * CUDA C++ only then, and inlines the calls. */
  struct Record {
    std::string name;
    /* The struct without explicit padding, if that has the same layout; the struct itself otherwise. */
    const llvm::StructType *shown;
  };
  llvm::MapVector<const llvm::StructType *, Record> records;
  /* Whether the current function is called by other modules. */
  bool is_exported = false;

  /* module.cpp */
  void name_records();
  void number(const llvm::Function &function);
  void print_global(const llvm::GlobalVariable &global);
  void print_used();
  void print_function(llvm::Function &function);
  void annotate(const llvm::Function &function);
  std::string signature(const llvm::Function &function);
  unsigned node(std::string content);
  /* Whether 32-bit operations of the current function flush denormals. */
  bool flushes = false;

  /* constants.cpp */
  std::string type(const llvm::Type *type);
  std::string body(const llvm::StructType *type);
  /* The number of an element of an aggregate. */
  unsigned element(const llvm::Type *aggregate, unsigned index);
  std::string pointer_type(const llvm::Type *pointee, unsigned space);
  /* `exported` says that the function is one of those that other modules call or define. */
  std::string function_type(const llvm::FunctionType *type, bool exported);
  std::string type_in_signature(const llvm::Type *type, bool exported);
  /* A value in the struct of a 16-bit float, with its type; other values as they are. */
  std::string in_signature(const llvm::Value *value, bool exported);
  /* The right side of the definition of a 16-bit float that is in a struct. */
  std::string from_signature(const llvm::Type *type, const std::string &value);
  std::string constant(const llvm::Constant *constant);
  std::string elements(const llvm::Constant *constant);
  std::string expression(const llvm::ConstantExpr *expression);
  std::string symbol(const llvm::GlobalValue *value);
  /* A value without its type, and with it. */
  std::string operand(const llvm::Value *value);
  std::string typed(const llvm::Value *value) { return joined(type(value->getType()), " ", operand(value)); }
  /* A pointer with the type "pointer to `pointee`", without that type. */
  std::string pointer(const llvm::Value *value, const llvm::Type *pointee);
  /* The same with its type. */
  std::string typed_pointer(const llvm::Value *value, const llvm::Type *pointee);

  /* Errors and lines. */
  void fail(const llvm::Value &value);
  void fail(const llvm::Twine &what) {
    if (error.empty()) error = what.str();
  }
  void line(const llvm::Twine &content) { text += ("  " + content + "\n").str(); }
  /* A line that defines the value of an instruction. */
  void define(const llvm::Value &instruction, const llvm::Twine &content) {
    line(joined(names.lookup(&instruction), " = ", content.str()));
  }
  /* The same for a pointer that is computed with the type `from`. */
  void define_pointer(const llvm::Value &instruction, const std::string &from, const std::string &content);
  /* A line that defines a temporary value; returns its name. */
  std::string temporary(const llvm::Twine &content) {
    std::string name = joined("%t", n_temporaries++);
    line(joined(name, " = ", content.str()));
    return name;
  }

  /* arithmetic.cpp */
  std::string widened(const llvm::Value *bfloat);
  std::string narrowed(const std::string &value);
  std::string rounded_to_odd(const std::string &wide);
  void print_bfloat(llvm::BinaryOperator &operation);
  bool print_separate(llvm::BinaryOperator &operation);
  bool print_bfloat_cast(llvm::CastInst &cast);

  /* calls.cpp */
  std::string inline_ptx(const llvm::Twine &result, const llvm::Twine &code, const llvm::Twine &constraints,
                         llvm::ArrayRef<std::string> arguments, Effect effect);
  std::string intrinsic(llvm::StringRef name, llvm::StringRef result, llvm::ArrayRef<std::string> types,
                        llvm::ArrayRef<std::string> arguments);
  std::string quoted(llvm::StringRef bytes);
  void print_call(llvm::CallInst &call);
  void print_inline_ptx(llvm::CallInst &call, const llvm::InlineAsm &code);
  std::vector<std::string> operands(const llvm::CallInst &call);
  /* Prints the call of an intrinsic that NVVM has under this name, with the same operands. */
  void pass(llvm::CallInst &call, llvm::StringRef name);

  /* intrinsics.cpp */
  void print_intrinsic(llvm::CallInst &call);
  bool print_integer(llvm::CallInst &call, llvm::Intrinsic::ID id);
  bool print_saturating(llvm::CallInst &call, llvm::Intrinsic::ID id);
  bool print_float(llvm::CallInst &call, llvm::Intrinsic::ID id);
  void print_minimum(llvm::CallInst &call, llvm::StringRef numeric);
  void print_saturating_conversion(llvm::CallInst &call, bool is_signed);
  void print_class(llvm::CallInst &call);
  bool print_memory(llvm::CallInst &call, llvm::Intrinsic::ID id);
  /* nvvm_intrinsics.cpp */
  bool print_nvvm(llvm::CallInst &call, llvm::StringRef name);
  bool print_barrier(llvm::CallInst &call, llvm::StringRef name);
  bool print_warp(llvm::CallInst &call, llvm::StringRef name);
  bool print_register(llvm::CallInst &call, llvm::StringRef name);
  bool print_atomic(llvm::CallInst &call, llvm::StringRef name);

  /* atomics.cpp */
  std::string scope_of(llvm::SyncScope::ID scope);
  std::string memory_order(llvm::AtomicOrdering order, const std::string &scope);
  void atomic(llvm::Instruction &instruction, const llvm::Twine &code, const llvm::Value *pointer,
              const llvm::Type *type, llvm::ArrayRef<std::string> values, llvm::AtomicOrdering order,
              llvm::SyncScope::ID scope);
  void print_atomic_load(llvm::LoadInst &load);
  void print_atomic_store(llvm::StoreInst &store);
};

/* Whether other modules call or define the function. */
inline bool exports(const llvm::Function &function) {
  return !function.hasLocalLinkage() && !function.isIntrinsic() &&
         function.getCallingConv() != llvm::CallingConv::PTX_Kernel;
}

/* The constraint of a type of inline PTX; 0 if it has none. */
char constraint_of(const llvm::Type *type);
/* The name of an address space in an instruction: `.global`; empty for generic addresses. */
llvm::StringRef space_suffix(unsigned space);

} // namespace weft

#endif
