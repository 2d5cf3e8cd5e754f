/* LLVM's optimization passes for PTX, with corrected costs of long operations.
 *
 * Passes that turn branches into selects regard a branch with few operations as cheap. A GPU has no instruction for
 * a correctly rounded square root or division: each is a sequence with a branch to a slow path. LLVM assigns them
 * the cost of one addition or a few, so `if disc > 0: t = b - sqrt(disc)` would compute the root in every thread and
 * select. LLVM has no setting for that: the costs are the target's, and limits on the number of operations are
 * global to the process.
 *
 * So that such a pass cannot speculate a long operation, the operation is replaced while the pass runs by a call of
 * a function that is not `speculatable`. Equal calls on both sides of a branch are still merged. All other passes
 * see the original operations, so they fold, hoist and combine them as usual. The code generator has such a pass,
 * too: for it, `weft_keep_in_branches` replaces the operations by NVIDIA's intrinsics, which are not `speculatable`
 * either. */
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Utils/Local.h"

#include "../llvm/passes.h"
#include "differences.h"
#include "divisions.h"
#include "exits.h"
#include "full_unrolling.h"
#include "heads.h"
#include "partial_unrolling.h"
#include "switches.h"

namespace {

/* Whether PTX has no short form of a float operation with these flags. With `afn` there is a 32-bit one. */
bool is_exact(const llvm::Instruction &operation) {
  return operation.getType()->isDoubleTy() || (operation.getType()->isFloatTy() && !operation.hasApproxFunc());
}

/* Whether a division is long. Integer divisions by a non-constant are never speculated, because division by zero is
 * undefined behavior. 64-bit divisions by constants are 128-bit products. */
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

/* Long functions without side effects that LLVM may speculate. */
bool is_long_intrinsic(const llvm::Function &function) {
  switch (function.getIntrinsicID()) {
  case llvm::Intrinsic::sqrt:
    /* Either all square roots of a module are approximate, or none is. */
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

/* The operations of one function while they are calls. The callees are declarations, which LLVM's call graph
 * ignores. */
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
  /* Keyed by the callee's name, because LLVM removes functions without calls. */
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

/* Whether a pass speculates instructions that a branch guards. */
bool speculates(llvm::StringRef pass) { return pass == "SimplifyCFGPass" || pass == "SpeculativeExecutionPass"; }

/* Whether a pass gains nothing on a GPU. LLVM vectorizes loops over 8-bit and 16-bit integers for PTX, but their sums are
 * split again (packed.rs), and accesses of unknown alignment are not merged. The vectorized copy of the body only needs
 * more registers: a blur of interleaved bytes needed 127 instead of 40 and took 1.3 times as long. */
bool is_useless(llvm::StringRef pass) { return pass == "LoopVectorizePass"; }

} // namespace

/* See `weft::run_passes`. */
extern "C" LLVMErrorRef weft_nvptx_passes(LLVMModuleRef module_ref, const char *pipeline, LLVMTargetMachineRef machine,
                                          int is_large) {
  llvm::Module &module = *llvm::unwrap(module_ref);
  Hidden hidden;
  auto prepare = [&](llvm::PassInstrumentationCallbacks &callbacks, llvm::PassBuilder &builder) {
    callbacks.registerShouldRunOptionalPassCallback([](llvm::StringRef pass, llvm::Any) { return !is_useless(pass); });
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
    weft::register_full_unrolling(builder);
    weft::register_heads(builder);
    weft::register_partial_unrolling(builder);
  };
  if (LLVMErrorRef error = weft::run_passes(module, pipeline, machine, is_large, prepare)) return error;
  hidden.forget(module);
  return nullptr;
}

/* Whether a 32-bit value, or a sum or product with it, is extended to 64 bits. */
static bool is_extended(const llvm::Value &value, unsigned depth) {
  return llvm::any_of(value.users(), [&](const llvm::User *user) {
    if (llvm::isa<llvm::ZExtInst, llvm::SExtInst>(user)) return user->getType()->isIntegerTy(64);
    const auto *operation = llvm::dyn_cast<llvm::BinaryOperator>(user);
    if (!operation || depth == 0) return false;
    switch (operation->getOpcode()) {
    case llvm::Instruction::Add:
    case llvm::Instruction::Sub:
    case llvm::Instruction::Mul:
    case llvm::Instruction::Shl:
      return is_extended(*operation, depth - 1);
    default:
      return false;
    }
  });
}

/* Loop strength reduction treats a quotient as part of an address and recomputes it in the width of the address:
 * 32-bit divisions become 64-bit ones. A frozen value is opaque to it. */
static void keep_narrow(llvm::Function &function) {
  for (llvm::BasicBlock &block : function)
    for (llvm::Instruction &instruction : block) {
      bool divides = instruction.getOpcode() == llvm::Instruction::UDiv ||
                     instruction.getOpcode() == llvm::Instruction::URem;
      if (!divides || !instruction.getType()->isIntegerTy(32)) continue;
      if (!is_extended(instruction, 3)) continue;
      auto *frozen = new llvm::FreezeInst(&instruction, "", std::next(instruction.getIterator()));
      frozen->setDebugLoc(instruction.getDebugLoc());
      instruction.replaceUsesWithIf(frozen, [&](llvm::Use &use) { return use.getUser() != frozen; });
    }
}

/* Offsets of addresses as LLVM has them after its passes: `(i << 32) >> 30` of 64 bits in place of `int64(int32(i))`, and
 * the sum `i` in 64 bits, too. As an extension of 32 bits, an offset is one instruction with its address, `mad.wide`. */
class Offsets {
public:
  void extend(llvm::Function &function) {
    find(function);
    for (auto [offset, value, shift] : offsets) {
      llvm::IRBuilder<> builder(offset);
      llvm::Value *extended = builder.CreateSExt(lower_half(value, builder), offset->getType());
      offset->replaceAllUsesWith(builder.CreateShl(extended, shift, "", false, true));
    }
    for (auto [offset, value, shift] : offsets) llvm::RecursivelyDeleteTriviallyDeadInstructions(offset);
  }

private:
  struct Offset {
    llvm::Instruction *offset;
    llvm::Value *value;
    uint64_t shift;
  };
  llvm::SmallVector<Offset, 16> offsets;
  /* Operations of which only the lower halves are used, by offsets and by each other. */
  llvm::SmallPtrSet<const llvm::User *, 32> narrow;
  llvm::DenseMap<llvm::Value *, llvm::Value *> halves;

  static bool has_lower_half(const llvm::Value *value) {
    const auto *operation = llvm::dyn_cast<llvm::BinaryOperator>(value);
    if (!operation || !operation->getType()->isIntegerTy(64)) return false;
    switch (operation->getOpcode()) {
    case llvm::Instruction::Add:
    case llvm::Instruction::Sub:
    case llvm::Instruction::Mul:
    case llvm::Instruction::And:
    case llvm::Instruction::Or:
    case llvm::Instruction::Xor:
      return true;
    default:
      return false;
    }
  }

  void find(llvm::Function &function) {
    using namespace llvm::PatternMatch;
    llvm::SmallVector<llvm::Value *, 32> pending;
    for (llvm::Instruction &instruction : llvm::instructions(function)) {
      llvm::Value *value = nullptr;
      const llvm::APInt *right = nullptr;
      bool is_offset = instruction.getType()->isIntegerTy(64) && !instruction.use_empty() &&
                       llvm::all_of(instruction.users(),
                                    [](const llvm::User *user) { return llvm::isa<llvm::GetElementPtrInst>(user); });
      if (!is_offset ||
          !match(&instruction, m_AShr(m_OneUse(m_Shl(m_Value(value), m_SpecificInt(32))), m_APInt(right))) ||
          right->ugt(32))
        continue;
      offsets.push_back({&instruction, value, 32 - right->getZExtValue()});
      narrow.insert(llvm::cast<llvm::User>(instruction.getOperand(0)));
      pending.push_back(value);
    }
    llvm::SmallVector<llvm::BinaryOperator *, 32> candidates;
    while (!pending.empty()) {
      llvm::Value *value = pending.pop_back_val();
      if (!has_lower_half(value) || !narrow.insert(llvm::cast<llvm::User>(value)).second) continue;
      candidates.push_back(llvm::cast<llvm::BinaryOperator>(value));
      pending.append(candidates.back()->value_op_begin(), candidates.back()->value_op_end());
    }
    for (bool changes = true; changes;) {
      changes = false;
      for (llvm::BinaryOperator *candidate : candidates)
        if (narrow.contains(candidate) &&
            !llvm::all_of(candidate->users(), [&](const llvm::User *user) { return narrow.contains(user); }))
          changes = narrow.erase(candidate);
    }
  }

  /* The lower half of a value, in 32 bits. */
  llvm::Value *lower_half(llvm::Value *value, llvm::IRBuilder<> &builder) {
    llvm::Type *type = builder.getInt32Ty();
    if (auto *extension = llvm::dyn_cast<llvm::CastInst>(value);
        extension && llvm::isa<llvm::SExtInst, llvm::ZExtInst>(extension) && extension->getSrcTy() == type)
      return extension->getOperand(0);
    auto *operation = llvm::dyn_cast<llvm::BinaryOperator>(value);
    if (!operation || !narrow.contains(operation)) return builder.CreateTrunc(value, type);
    if (llvm::Value *known = halves.lookup(operation)) return known;
    llvm::IRBuilder<> here(operation);
    llvm::Value *left = lower_half(operation->getOperand(0), here), *right = lower_half(operation->getOperand(1), here);
    return halves[operation] = here.CreateBinOp(operation->getOpcode(), left, right, operation->getName());
  }
};

/* Computes the extent that is added to a negative index, `i < 0 ? extent : 0`, as `(unsigned(i) >> 31) * extent`: with the
 * addition it is a `mad`, so that a shift and a `mad` replace a shift, an `and` and an addition. LLVM's passes and its
 * code generator prefer the `and` for a select. Legal for all values. Constants remain: their products become shifts. */
static void multiply_by_sign(llvm::Function &function) {
  using namespace llvm::PatternMatch;
  llvm::SmallVector<llvm::Instruction *, 16> found;
  for (llvm::Instruction &instruction : llvm::instructions(function)) {
    llvm::Value *index, *extent;
    bool is_added = instruction.hasOneUse() && instruction.user_back()->getOpcode() == llvm::Instruction::Add;
    if (!is_added || !instruction.getType()->isIntegerTy(32)) continue;
    bool matches =
        match(&instruction, m_Select(m_SpecificICmp(llvm::CmpInst::ICMP_SLT, m_Value(index), m_Zero()), m_Value(extent),
                                     m_Zero())) ||
        match(&instruction, m_Select(m_SpecificICmp(llvm::CmpInst::ICMP_SGT, m_Value(index), m_AllOnes()), m_Zero(),
                                     m_Value(extent)));
    if (!matches || !index->getType()->isIntegerTy() || llvm::isa<llvm::Constant>(extent)) continue;
    llvm::IRBuilder<> builder(&instruction);
    llvm::Value *sign = builder.CreateLShr(index, index->getType()->getIntegerBitWidth() - 1);
    instruction.replaceAllUsesWith(builder.CreateMul(builder.CreateZExtOrTrunc(sign, builder.getInt32Ty()), extent));
    found.push_back(&instruction);
  }
  for (llvm::Instruction *instruction : found) llvm::RecursivelyDeleteTriviallyDeadInstructions(instruction);
}

/* Stops the code generator from speculating long operations and from widening divisions, and narrows offsets. Call it
 * directly before the code generator. */
extern "C" void weft_keep_in_branches(LLVMModuleRef module_ref) {
  llvm::Module &module = *llvm::unwrap(module_ref);
  for (llvm::Function &function : module) {
    weft::branch_on_width(function);
    keep_narrow(function);
    Offsets().extend(function);
    multiply_by_sign(function);
    llvm::SmallVector<llvm::BinaryOperator *, 8> found;
    for (llvm::BasicBlock &block : function) {
      /* Only a block with one predecessor that branches can be speculated. */
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
