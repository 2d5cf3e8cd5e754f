/* LLVM's passes whose time grows faster than the function: left out, or given less at once, where it is large; the end
 * of a compilation that is given up; what LLVM's C interface cannot say of a loop; and how large a module is.
 *
 * LLVM's C interface can leave a pass out for the whole process only. A context's gate is asked before each pass
 * that may be skipped, by the pipeline and by the code generator. A thread uses one context at a time. */
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/OptBisect.h"

/* Ends the caught call that this thread is in as a fatal error does. */
extern "C" void weft_shim_leave(const char *text);

namespace {

struct Gate final : llvm::OptPassGate {
  /* Not 0 once the compilation is given up: another thread writes it. */
  const unsigned char *stop = nullptr;
  bool large = false, huge = false;
  /* Most of the code generator's passes must run, so it is left where it stands. */
  bool generates = false;

  bool isEnabled() const override { return true; }

  bool shouldRunPass(llvm::StringRef name, llvm::StringRef) const override {
    if (stop && __atomic_load_n(stop, __ATOMIC_RELAXED)) {
      if (generates) weft_shim_leave("the compilation was given up");
      return false;
    }
    if (!large) return true;
    /* Each walks, for each loop or address, the sums of all loops and addresses before it. */
    static constexpr llvm::StringLiteral names[] = {
        "loop-unroll",   /* when the count is known at run time only; loops of few turns are still unrolled */
        "codegenprepare", "Loop Strength Reduction",
        "slsr", "nary-reassociate", "load-store-vectorizer", /* NVPTX */
        "post-RA-sched", /* the CPU's */
    };
    for (llvm::StringRef slow : names)
      if (name == slow) return false;
    /* The first asks of each instruction what all those are that it comes of, the second of each store what all later
     * accesses are. They are worth the time as long as they can be. */
    return !(huge && (name == "loop-vectorize" || name == "dse"));
  }
};

thread_local Gate gate;

/* Instructions that the code generator selects at a time: each of a basic block meets all the others. */
constexpr size_t block_size = 256;

} // namespace

/* Gives a context this thread's gate, which looks at a flag. */
extern "C" void weft_gate(LLVMContextRef context, const unsigned char *stop) {
  gate.stop = stop;
  gate.large = gate.huge = gate.generates = false;
  llvm::unwrap(context)->setOptPassGate(gate);
}

/* From now on the passes of this thread's context are those for large functions, or for huge ones. */
extern "C" void weft_gate_large(int is_huge) {
  gate.large = true;
  gate.huge = is_huge;
}

/* Says whether the code generator is at work. */
extern "C" void weft_gate_generates(int generates) { gate.generates = generates; }

/* The loop that a branch goes back in is unrolled, or not by a number of turns that may leave some over. */
extern "C" void weft_unroll(LLVMValueRef back, int full) {
  llvm::LLVMContext &context = llvm::unwrap(back)->getContext();
  const char *name = full ? "llvm.loop.unroll.full" : "llvm.loop.unroll.runtime.disable";
  llvm::Metadata *hint = llvm::MDNode::get(context, llvm::MDString::get(context, name));
  /* A loop's name is a node of its own: its first operand is itself. */
  llvm::MDNode *loop = llvm::MDNode::getDistinct(context, {nullptr, hint});
  loop->replaceOperandWith(0, loop);
  llvm::cast<llvm::Instruction>(llvm::unwrap(back))->setMetadata(llvm::LLVMContext::MD_loop, loop);
}

/* The functions that stand in a module; their instructions are written. */
extern "C" uint64_t weft_size(LLVMModuleRef module, uint64_t *instructions) {
  uint64_t functions = 0;
  *instructions = 0;
  for (const llvm::Function &function : *llvm::unwrap(module)) {
    functions += !function.isDeclaration();
    *instructions += function.getInstructionCount();
  }
  return functions;
}

/* Splits long basic blocks, which the code generator joins again after selecting instructions. */
extern "C" void weft_split_blocks(LLVMModuleRef module) {
  for (llvm::Function &function : *llvm::unwrap(module)) {
    for (auto block = function.begin(); block != function.end(); ++block) {
      size_t count = 0;
      llvm::Instruction *at = nullptr;
      for (llvm::Instruction &instruction : *block) {
        if (llvm::isa<llvm::AllocaInst>(instruction)) {
          /* Outside of the entry block it would be made anew each time. */
          at = nullptr;
          count = 0;
        } else if (++count > block_size && !at && !llvm::isa<llvm::PHINode>(instruction)) {
          at = &instruction;
        }
      }
      /* The rest is the next block. */
      if (at && !at->isTerminator()) block->splitBasicBlock(at->getIterator());
    }
  }
}
