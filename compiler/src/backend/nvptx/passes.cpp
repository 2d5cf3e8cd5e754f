/* LLVM's passes over a module that becomes PTX, with what they think of long operations put right.
 *
 * Passes that turn branches into selects take what a branch holds for cheap where its operations are few. A GPU has no
 * instruction for a correctly rounded square root or division: each is a sequence with a branch to a slow path. LLVM gives
 * them the cost of an addition or of a few, so `if disc > 0: t = b - sqrt(disc)` would find the root in every thread and
 * select. There is no setting for that: the costs are the target's, and limits on the number of operations are the
 * process's.
 *
 * What a pass may not do to such an operation it must not be able to do: while one of those passes runs, the operations
 * stand there as calls of functions that may not be called where the program does not call them (LLVM: not
 * `speculatable`). Equal ones on both sides of a branch are still merged. All other passes see them as they are, so they
 * are folded, hoisted out of loops and combined as before. The code generator has such a pass, too:
 * `weft_keep_in_branches` leaves it instructions of NVIDIA's, under the same ban. */
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/PatternMatch.h"

#include "../llvm/passes.h"
#include "differences.h"
#include "divisions.h"
#include "exits.h"
#include "switches.h"

namespace {

/* Whether PTX has no short form of a float operation with these flags: with `afn` there is one of 32 bits. */
bool is_exact(const llvm::Instruction &operation) {
  return operation.getType()->isDoubleTy() || (operation.getType()->isFloatTy() && !operation.hasApproxFunc());
}

/* Whether a division is long. Those of integers by what is not constant stay where they are without help: by zero they
 * are undefined. Of 64 bits those by constants are products of 128 bits. */
bool is_long(const llvm::Instruction &operation) {
  switch (operation.getOpcode()) {
  case llvm::Instruction::FDiv:
    return is_exact(operation);
  case llvm::Instruction::UDiv:
  case llvm::Instruction::SDiv:
  case llvm::Instruction::URem:
  case llvm::Instruction::SRem: {
    const auto *divisor = llvm::dyn_cast<llvm::ConstantInt>(operation.getOperand(1));
    return divisor && operation.getType()->isIntegerTy(64) && !divisor->getValue().abs().isPowerOf2();
  }
  default:
    return false;
  }
}

/* Functions of no more effect than their result that LLVM may call where the program does not, and that are long. */
bool is_long_intrinsic(const llvm::Function &function) {
  switch (function.getIntrinsicID()) {
  case llvm::Intrinsic::sqrt:
    /* A module has approximate ones throughout or not at all. */
    return llvm::none_of(function.users(), [](const llvm::User *user) {
      const auto *call = llvm::dyn_cast<llvm::CallInst>(user);
      return call && !is_exact(*call);
    });
  case llvm::Intrinsic::nvvm_sqrt_rn_f:
  case llvm::Intrinsic::nvvm_sqrt_rn_d:
  case llvm::Intrinsic::nvvm_div_rn_f:
  case llvm::Intrinsic::nvvm_div_rn_d:
  case llvm::Intrinsic::nvvm_rcp_rn_f:
  case llvm::Intrinsic::nvvm_rcp_rn_d:
  case llvm::Intrinsic::nvvm_sqrt_rz_f:
  case llvm::Intrinsic::nvvm_sqrt_rz_d:
  case llvm::Intrinsic::nvvm_sqrt_rm_f:
  case llvm::Intrinsic::nvvm_sqrt_rm_d:
  case llvm::Intrinsic::nvvm_sqrt_rp_f:
  case llvm::Intrinsic::nvvm_sqrt_rp_d:
  case llvm::Intrinsic::nvvm_div_rz_f:
  case llvm::Intrinsic::nvvm_div_rz_d:
  case llvm::Intrinsic::nvvm_div_rm_f:
  case llvm::Intrinsic::nvvm_div_rm_d:
  case llvm::Intrinsic::nvvm_div_rp_f:
  case llvm::Intrinsic::nvvm_div_rp_d:
    return true;
  default:
    return false;
  }
}

void allow_everywhere(llvm::Module &module, bool allowed) {
  for (llvm::Function &function : module) {
    if (!function.isIntrinsic() || !is_long_intrinsic(function)) continue;
    if (allowed)
      function.addFnAttr(llvm::Attribute::Speculatable);
    else
      function.removeFnAttr(llvm::Attribute::Speculatable);
  }
}

/* The operations of one function while they are calls. The callees are declarations, which LLVM's graph of calls leaves
 * out of account. */
class Hidden {
public:
  void hide(llvm::Function &function) {
    llvm::Module &module = *function.getParent();
    llvm::SmallVector<llvm::BinaryOperator *, 8> found;
    for (llvm::Instruction &instruction : llvm::instructions(function))
      if (is_long(instruction)) found.push_back(llvm::cast<llvm::BinaryOperator>(&instruction));
    for (llvm::BinaryOperator *operation : found) {
      llvm::CallInst *call = llvm::CallInst::Create(callee(module, *operation),
                                                    {operation->getOperand(0), operation->getOperand(1)}, "",
                                                    operation->getIterator());
      replace(*operation, *call);
    }
    allow_everywhere(module, false);
  }

  void show(llvm::Function &function) {
    llvm::SmallVector<std::pair<llvm::CallInst *, llvm::Instruction::BinaryOps>, 8> found;
    for (llvm::Instruction &instruction : llvm::instructions(function))
      if (auto *call = llvm::dyn_cast<llvm::CallInst>(&instruction))
        if (const llvm::Function *callee = call->getCalledFunction())
          if (auto known = opcodes.find(callee->getName()); known != opcodes.end())
            found.emplace_back(call, known->second);
    for (auto [call, opcode] : found) {
      auto *operation = llvm::BinaryOperator::Create(opcode, call->getArgOperand(0), call->getArgOperand(1), "",
                                                     call->getIterator());
      replace(*call, *operation);
    }
    allow_everywhere(*function.getParent(), true);
  }

  void forget(llvm::Module &module) {
    for (const auto &known : opcodes)
      if (llvm::Function *function = module.getFunction(known.first()); function && function->use_empty())
        function->eraseFromParent();
  }

private:
  /* By the name of what is called: LLVM drops functions that nobody calls. */
  llvm::StringMap<llvm::Instruction::BinaryOps> opcodes;

  llvm::Function *callee(llvm::Module &module, const llvm::BinaryOperator &operation) {
    llvm::Type *type = operation.getType();
    std::string name = (llvm::Twine("weft$") + operation.getOpcodeName() + (type->isIntegerTy() ? ".i" : ".f") +
                        llvm::Twine(type->getPrimitiveSizeInBits().getFixedValue()) +
                        (llvm::isa<llvm::PossiblyExactOperator>(operation) && operation.isExact() ? ".exact" : ""))
                           .str();
    auto *signature = llvm::FunctionType::get(type, {type, type}, false);
    auto *function = llvm::cast<llvm::Function>(module.getOrInsertFunction(name, signature).getCallee());
    opcodes.try_emplace(name, operation.getOpcode());
    function->setDoesNotAccessMemory();
    function->setDoesNotThrow();
    function->setWillReturn();
    function->setNoSync();
    return function;
  }

  static void replace(llvm::Instruction &old, llvm::Instruction &other) {
    if (llvm::isa<llvm::FPMathOperator>(old)) other.setFastMathFlags(old.getFastMathFlags());
    other.setDebugLoc(old.getDebugLoc());
    other.takeName(&old);
    old.replaceAllUsesWith(&other);
    old.eraseFromParent();
  }
};

/* Passes that execute what stands behind a branch in front of it. */
bool speculates(llvm::StringRef pass) { return pass == "SimplifyCFGPass" || pass == "SpeculativeExecutionPass"; }

} // namespace

/* See `weft::run_passes`. */
extern "C" LLVMErrorRef weft_nvptx_passes(LLVMModuleRef module_ref, const char *pipeline, LLVMTargetMachineRef machine,
                                          int is_large) {
  llvm::Module &module = *llvm::unwrap(module_ref);
  Hidden hidden;
  auto prepare = [&](llvm::PassInstrumentationCallbacks &callbacks, llvm::PassBuilder &builder) {
    callbacks.registerBeforeNonSkippedPassCallback([&](llvm::StringRef pass, llvm::Any unit) {
      if (llvm::Function *function = weft::function_of(unit); function && speculates(pass)) hidden.hide(*function);
    });
    callbacks.registerAfterPassCallback([&](llvm::StringRef pass, llvm::Any unit, const llvm::PreservedAnalyses &) {
      if (llvm::Function *function = weft::function_of(unit); function && speculates(pass)) hidden.show(*function);
    });
    weft::register_differences(builder);
    weft::register_divisions(builder);
    weft::register_switches(builder);
    weft::register_exits(builder);
  };
  if (LLVMErrorRef error = weft::run_passes(module, pipeline, machine, is_large, prepare)) return error;
  hidden.forget(module);
  return nullptr;
}

/* Loop strength reduction takes a quotient for a part of an address and makes it anew as wide as that: 32-bit divisions
 * become those of 64 bits. What is frozen is a number like any other to it. */
static void keep_narrow(llvm::Function &function) {
  for (llvm::BasicBlock &block : function)
    for (llvm::Instruction &instruction : block) {
      bool divides = instruction.getOpcode() == llvm::Instruction::UDiv ||
                     instruction.getOpcode() == llvm::Instruction::URem;
      if (!divides || !instruction.getType()->isIntegerTy(32)) continue;
      bool widens = llvm::any_of(instruction.users(), [](const llvm::User *user) {
        return llvm::isa<llvm::ZExtInst>(user) && user->getType()->isIntegerTy(64);
      });
      if (!widens) continue;
      auto *frozen = new llvm::FreezeInst(&instruction, "", std::next(instruction.getIterator()));
      frozen->setDebugLoc(instruction.getDebugLoc());
      instruction.replaceUsesWithIf(frozen, [&](llvm::Use &use) { return use.getUser() != frozen; });
    }
}

/* Keeps long operations in their branches in the code generator, and short ones short. Nothing but the code generator may come after it. */
extern "C" void weft_keep_in_branches(LLVMModuleRef module_ref) {
  llvm::Module &module = *llvm::unwrap(module_ref);
  for (llvm::Function &function : module) {
    keep_narrow(function);
    llvm::SmallVector<llvm::BinaryOperator *, 8> found;
    for (llvm::BasicBlock &block : function) {
      /* Nothing can be taken out of a block that is come to in more ways, or always. */
      const llvm::BasicBlock *before = block.getSinglePredecessor();
      if (!before || before->getTerminator()->getNumSuccessors() < 2) continue;
      for (llvm::Instruction &instruction : block)
        if (instruction.getOpcode() == llvm::Instruction::FDiv && is_exact(instruction) &&
            !instruction.hasAllowReciprocal() && !instruction.hasApproxFunc())
          found.push_back(llvm::cast<llvm::BinaryOperator>(&instruction));
    }
    for (llvm::BinaryOperator *operation : found) {
      bool wide = operation->getType()->isDoubleTy();
      bool inverts = llvm::PatternMatch::match(operation->getOperand(0), llvm::PatternMatch::m_FPOne());
      llvm::Intrinsic::ID id = inverts ? wide ? llvm::Intrinsic::nvvm_rcp_rn_d : llvm::Intrinsic::nvvm_rcp_rn_f
                               : wide  ? llvm::Intrinsic::nvvm_div_rn_d
                                       : llvm::Intrinsic::nvvm_div_rn_f;
      llvm::SmallVector<llvm::Value *, 2> operands(operation->operands());
      if (inverts) operands.erase(operands.begin());
      llvm::IRBuilder<> builder(operation);
      llvm::Value *quotient =
          builder.CreateCall(llvm::Intrinsic::getOrInsertDeclaration(&module, id), operands, operation->getName());
      operation->replaceAllUsesWith(quotient);
      operation->eraseFromParent();
    }
  }
  allow_everywhere(module, false);
}
