/* Runs LLVM's passes over a module, with additions by the target. */
#ifndef WEFT_LLVM_PASSES_H
#define WEFT_LLVM_PASSES_H

#include "llvm-c/Error.h"
#include "llvm-c/TargetMachine.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Passes/StandardInstrumentations.h"
#include "llvm/Target/TargetMachine.h"

namespace weft {

/* Like `LLVMRunPasses` with its default options; `is_large` disables interleaving and SLP vectorization. `prepare`
 * gets the callbacks and the builder before the pipeline is parsed. */
template <typename Prepare>
LLVMErrorRef run_passes(llvm::Module &module, const char *pipeline, LLVMTargetMachineRef machine, bool is_large,
                        Prepare prepare) {
  llvm::PipelineTuningOptions options;
  /* Interleaving vector loops by four makes the code four times as long. */
  if (is_large) options.LoopInterleaving = options.SLPVectorization = false;
  llvm::PassInstrumentationCallbacks callbacks;
  llvm::PassBuilder builder(reinterpret_cast<llvm::TargetMachine *>(machine), options, std::nullopt, &callbacks);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  builder.registerLoopAnalyses(loops);
  builder.registerFunctionAnalyses(functions);
  builder.registerCGSCCAnalyses(components);
  builder.registerModuleAnalyses(modules);
  builder.crossRegisterProxies(loops, functions, components, modules);
  llvm::StandardInstrumentations standard(module.getContext(), false);
  standard.registerCallbacks(callbacks, &modules);
  prepare(callbacks, builder);
  llvm::ModulePassManager passes;
  if (llvm::Error error = builder.parsePassPipeline(passes, pipeline)) return llvm::wrap(std::move(error));
  passes.run(module, modules);
  return nullptr;
}

/* The function that a pass works on, if it works on one. LLVM provides it as const to prevent accidental changes. */
inline llvm::Function *function_of(llvm::Any unit) {
  const llvm::Function *const *function = llvm::any_cast<const llvm::Function *>(&unit);
  return function ? const_cast<llvm::Function *>(*function) : nullptr;
}

} // namespace weft

#endif
