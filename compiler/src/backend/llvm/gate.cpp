/* Settings that LLVM's C interface does not have: skipping or limiting passes with superlinear time for large
 * functions, cancelling a compilation, metadata of loops, and the size of a module.
 *
 * LLVM's C interface can skip a pass only for the whole process. Here each context has a gate. The pass pipeline and
 * the code generator query it before each pass that may be skipped. A thread uses one context at a time. */
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/OptBisect.h"

/* Leaves this thread's innermost caught call as a fatal error does. */
extern "C" void weft_shim_leave(const char *text);

namespace {

struct Gate final : llvm::OptPassGate {
  /* Points to a flag that another thread sets to nonzero to cancel the compilation. */
  const unsigned char *stop = nullptr;
  bool large = false, huge = false;
  /* Passes that compare each address with many others would take too long. */
  bool keeps_addresses = false;
  /* The code is for warps: threads that a branch separates wait for each other where its paths join. */
  bool warps = false;
  /* While the code generator runs, most passes cannot be skipped; cancelling leaves it by a long jump. */
  bool generates = false;

  bool isEnabled() const override { return true; }

  bool shouldRunPass(llvm::StringRef name, llvm::StringRef) const override {
    if (stop && __atomic_load_n(stop, __ATOMIC_RELAXED)) {
      if (generates) weft_shim_leave("the compilation was given up");
      return false;
    }
    if (keeps_addresses && (name == "Loop Strength Reduction" || name == "load-store-vectorizer")) return false;
    /* Tail duplication copies a block where paths join into its predecessors. The paths then join later: threads that
     * leave `if a < b: … else: …` at the end of a loop's body would run the whole next iteration one path at a time. */
    if (warps && name == "early-tailduplication") return false;
    if (!large) return true;
    /* For each loop or address, these passes visit the expressions of all earlier loops and addresses. */
    static constexpr llvm::StringLiteral names[] = {
        "loop-unroll",   /* unrolling by a run-time trip count; loops with a small constant one are still unrolled */
        "codegenprepare",
        "slsr", "nary-reassociate", /* NVPTX */
        "post-RA-sched", /* CPU */
    };
    for (llvm::StringRef slow : names)
      if (name == slow) return false;
    /* loop-vectorize visits all transitive operands of each instruction, dse all later accesses for each store. Both
     * are worth their time unless the function is huge. */
    return !(huge && (name == "loop-vectorize" || name == "dse"));
  }
};

thread_local Gate gate;

/* Maximal number of instructions per block for instruction selection, whose time is quadratic in the size of a
 * block. */
constexpr size_t block_size = 256;

} // namespace

/* Installs this thread's gate in a context. `stop` is the cancellation flag. */
extern "C" void weft_gate(LLVMContextRef context, const unsigned char *stop) {
  gate.stop = stop;
  gate.large = gate.huge = gate.keeps_addresses = gate.warps = gate.generates = false;
  llvm::unwrap(context)->setOptPassGate(gate);
}

/* From now on, this thread's context uses the passes for large functions, or for huge ones. */
extern "C" void weft_gate_large(int is_huge) {
  gate.large = true;
  gate.huge = is_huge;
}

/* From now on, this thread's context skips loop strength reduction and the vectorizer of loads and stores. */
extern "C" void weft_gate_addresses() { gate.keeps_addresses = true; }

/* From now on, this thread's context keeps the blocks where the paths of a warp's threads join. */
extern "C" void weft_gate_warps() { gate.warps = true; }

/* Sets whether the code generator is running. */
extern "C" void weft_gate_generates(int generates) { gate.generates = generates; }

/* Attaches metadata to the loop whose latch branch is `back`. */
extern "C" void weft_loop_hint(LLVMValueRef back, const char *text) {
  llvm::LLVMContext &context = llvm::unwrap(back)->getContext();
  llvm::Metadata *hint = llvm::MDNode::get(context, llvm::MDString::get(context, text));
  /* A loop ID is a distinct node whose first operand is the node itself. */
  llvm::MDNode *loop = llvm::MDNode::getDistinct(context, {nullptr, hint});
  loop->replaceOperandWith(0, loop);
  llvm::cast<llvm::Instruction>(llvm::unwrap(back))->setMetadata(llvm::LLVMContext::MD_loop, loop);
}

/* Returns the number of functions with a body, and writes the number of their instructions. */
extern "C" uint64_t weft_size(LLVMModuleRef module, uint64_t *instructions) {
  uint64_t functions = 0;
  *instructions = 0;
  for (const llvm::Function &function : *llvm::unwrap(module)) {
    functions += !function.isDeclaration();
    *instructions += function.getInstructionCount();
  }
  return functions;
}

/* Splits long basic blocks. The code generator merges them again after instruction selection. */
extern "C" void weft_split_blocks(LLVMModuleRef module) {
  for (llvm::Function &function : *llvm::unwrap(module)) {
    for (auto block = function.begin(); block != function.end(); ++block) {
      size_t count = 0;
      llvm::Instruction *at = nullptr;
      for (llvm::Instruction &instruction : *block) {
        if (llvm::isa<llvm::AllocaInst>(instruction)) {
          /* An alloca outside of the entry block would be dynamic. */
          at = nullptr;
          count = 0;
        } else if (++count > block_size && !at && !llvm::isa<llvm::PHINode>(instruction)) {
          at = &instruction;
        }
      }
      /* The loop visits the rest of the block next. */
      if (at && !at->isTerminator()) block->splitBasicBlock(at->getIterator());
    }
  }
}
