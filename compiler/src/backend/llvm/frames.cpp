/* Stack use of the functions of a module: the code generator reports the frame sizes as diagnostics; they are summed
 * along the call graph that LLVM's passes leave. */
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SCCIterator.h"
#include "llvm/Analysis/CallGraph.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

namespace {

/* Frame sizes of the module that this thread emits. A function without a frame is not reported. */
thread_local llvm::DenseMap<const llvm::Function *, uint64_t> frames;

/* Return address, frame pointer and alignment. */
constexpr uint64_t around = 128;

/* Upper bound of the stack use of a call, without its callees. */
uint64_t frame_of(const llvm::Function &function) {
  uint64_t align = 0, passed = 0, apart = 0;
  for (const llvm::BasicBlock &block : function)
    for (const llvm::Instruction &instruction : block) {
      if (const auto *place = llvm::dyn_cast<llvm::AllocaInst>(&instruction)) {
        align = std::max(align, place->getAlign().value());
        if (!place->isStaticAlloca())
          if (auto size = place->getAllocationSize(function.getDataLayout())) apart += size->getFixedValue() + 16;
      }
      if (const auto *call = llvm::dyn_cast<llvm::CallBase>(&instruction))
        passed = std::max<uint64_t>(passed, 8 * call->arg_size());
    }
  return frames.lookup(&function) + apart + align + passed + around;
}

} // namespace

/* Makes the code generator report the frame sizes of a module's functions. Static allocas move to the front of the
 * entry block: the code generator may split the block at a division, and an alloca after the split would be dynamic. */
extern "C" void weft_frames_watch(LLVMModuleRef module) {
  frames.clear();
  for (llvm::Function &function : *llvm::unwrap(module)) {
    if (function.isDeclaration()) continue;
    function.addFnAttr("warn-stack-size", "0");
    llvm::BasicBlock &entry = function.getEntryBlock();
    llvm::SmallVector<llvm::AllocaInst *, 8> places;
    for (llvm::Instruction &instruction : entry)
      if (auto *place = llvm::dyn_cast<llvm::AllocaInst>(&instruction))
        if (place->isStaticAlloca()) places.push_back(place);
    for (llvm::AllocaInst *place : places) place->moveBefore(entry, entry.begin());
  }
}

/* Records the frame size of a diagnostic. Returns 0 if the diagnostic is about something else. */
extern "C" int weft_frames_note(LLVMDiagnosticInfoRef told) {
  const auto *info = reinterpret_cast<const llvm::DiagnosticInfo *>(told);
  const auto *frame = llvm::dyn_cast<llvm::DiagnosticInfoStackSize>(info);
  if (!frame) return 0;
  frames[&frame->getFunction()] = frame->getStackSize();
  return 1;
}

/* The stack use of a call of `name` in an emitted module. A recursive function counts once. `more` is the largest
 * stack use of a recursive call up to the next one, which tests the stack pointer again. */
extern "C" uint64_t weft_frames_deepest(LLVMModuleRef module, const char *name, uint64_t *more) {
  llvm::CallGraph calls(*llvm::unwrap(module));
  llvm::DenseMap<const llvm::Function *, uint64_t> depths;
  *more = 0;
  /* Callees come before their callers. */
  for (auto circle = llvm::scc_begin(&calls); !circle.isAtEnd(); ++circle) {
    bool around_again = circle.hasCycle();
    uint64_t largest = 0;
    if (around_again)
      for (const llvm::CallGraphNode *node : *circle)
        if (node->getFunction()) largest = std::max(largest, frame_of(*node->getFunction()));
    for (const llvm::CallGraphNode *node : *circle) {
      const llvm::Function *function = node->getFunction();
      if (!function || function->isDeclaration()) continue;
      uint64_t below = largest;
      for (const auto &call : *node)
        if (const llvm::Function *callee = call.second->getFunction()) below = std::max(below, depths.lookup(callee));
      uint64_t own = frame_of(*function);
      if (around_again) *more = std::max(*more, own + below);
      depths[function] = around_again ? own : own + below;
    }
  }
  const llvm::Function *entry = llvm::unwrap(module)->getFunction(name);
  uint64_t deepest = entry ? depths.lookup(entry) : 0;
  frames.clear();
  return deepest;
}
