/* The features of a CPU by its name, a query that LLVM's C interface lacks. */
#include "llvm-c/Core.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/TargetParser/X86TargetParser.h"

#include <set>
#include <string>

/* The features of an x86-64 CPU, such as `+sse,+avx`; null if LLVM does not know the name. The caller frees the string
 * with LLVMDisposeMessage. */
extern "C" char *weft_cpu_features(const char *name) {
  if (llvm::X86::parseArchX86(name, /*Only64Bit=*/true) == llvm::X86::CK_None) return nullptr;
  llvm::SmallVector<llvm::StringRef, 64> named;
  llvm::X86::getFeaturesForCPU(name, named);
  /* The CPU's own features, and the features that they imply. */
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
