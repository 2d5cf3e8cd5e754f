/* What LLVM knows of a CPU by its name, which its C interface does not tell. */
#include "llvm-c/Core.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/TargetParser/X86TargetParser.h"

#include <set>
#include <string>

/* The features of an x86-64 CPU: `+sse,+avx`; null if LLVM knows none of that name. Freed with LLVMDisposeMessage. */
extern "C" char *weft_cpu_features(const char *name) {
  if (llvm::X86::parseArchX86(name, /*Only64Bit=*/true) == llvm::X86::CK_None) return nullptr;
  llvm::SmallVector<llvm::StringRef, 64> named;
  llvm::X86::getFeaturesForCPU(name, named);
  /* Those that it has by name, and those that these need. */
  llvm::StringMap<bool> features;
  for (llvm::StringRef feature : named) {
    features[feature] = true;
    llvm::X86::updateImpliedFeatures(feature, true, features);
  }
  std::set<llvm::StringRef> sorted;
  for (const auto &feature : features)
    if (feature.second) sorted.insert(feature.first());
  std::string text;
  for (llvm::StringRef feature : sorted) text += (text.empty() ? "+" : ",+") + feature.str();
  return LLVMCreateMessage(text.c_str());
}
