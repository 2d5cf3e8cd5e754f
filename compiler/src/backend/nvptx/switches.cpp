/* Converts switches with short arms to selects.
 *
 * LLVM converts `if d == 0: x += 1 elif d == 1: x -= 1 …` to a switch before it considers if-conversion, and the
 * code generator lowers the switch to a tree of branches. Divergent threads of a warp execute these branches one
 * after another. Executing the few instructions of all arms is cheaper. */
#include "switches.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

namespace {

using llvm::BasicBlock;

/* Limits on the instructions of one arm, and of all arms and their selects. A branch tree has two or three
 * instructions per arm. */
constexpr unsigned ARM = 4, ALL = 20;

bool is_short(const llvm::Instruction &instruction) {
  switch (instruction.getOpcode()) {
  case llvm::Instruction::Add:
  case llvm::Instruction::Sub:
  case llvm::Instruction::Mul:
  case llvm::Instruction::Shl:
  case llvm::Instruction::LShr:
  case llvm::Instruction::AShr:
  case llvm::Instruction::And:
  case llvm::Instruction::Or:
  case llvm::Instruction::Xor:
  case llvm::Instruction::ICmp:
  case llvm::Instruction::FCmp:
  case llvm::Instruction::Select:
  case llvm::Instruction::FAdd:
  case llvm::Instruction::FSub:
  case llvm::Instruction::FMul:
  case llvm::Instruction::FNeg:
  case llvm::Instruction::Trunc:
  case llvm::Instruction::ZExt:
  case llvm::Instruction::SExt:
  case llvm::Instruction::GetElementPtr:
    /* Few units compute float64, and a float64 takes two registers. */
    return !instruction.getType()->isDoubleTy() && !instruction.getType()->isVectorTy();
  default:
    return false;
  }
}

/* The successor of an arm, if the switch is its only predecessor and it contains only short instructions; otherwise
 * null. */
BasicBlock *end_of_arm(BasicBlock &block, const BasicBlock &head) {
  if (block.getUniquePredecessor() != &head || block.hasAddressTaken() || block.phis().begin() != block.phis().end())
    return nullptr;
  auto *jump = llvm::dyn_cast<llvm::BranchInst>(block.getTerminator());
  if (!jump || jump->isConditional() || block.size() > ARM + 1) return nullptr;
  for (const llvm::Instruction &instruction : block)
    if (&instruction != jump && !is_short(instruction)) return nullptr;
  return jump->getSuccessor(0);
}

bool is_unreachable(BasicBlock &block) { return llvm::isa<llvm::UnreachableInst>(block.front()); }

/* Converts a switch whose arms are all short and have a common successor. */
bool choose(llvm::SwitchInst &choice) {
  BasicBlock &head = *choice.getParent();
  llvm::SmallSetVector<BasicBlock *, 8> targets;
  for (const auto &arm : choice.cases()) targets.insert(arm.getCaseSuccessor());
  BasicBlock *fallback = is_unreachable(*choice.getDefaultDest()) ? nullptr : choice.getDefaultDest();
  if (fallback) targets.insert(fallback);
  if (targets.size() < 2) return false;

  /* The common successor is either the successor of an arm or a case's target itself. */
  BasicBlock *meeting = nullptr;
  auto meet_at = [&](BasicBlock *candidate) {
    return candidate && candidate != &head && llvm::all_of(targets, [&](BasicBlock *target) {
             return target == candidate || end_of_arm(*target, head) == candidate;
           });
  };
  for (BasicBlock *candidate : {end_of_arm(*targets.front(), head), targets.front()})
    if (!meeting && meet_at(candidate)) meeting = candidate;
  if (!meeting) return false;

  unsigned cost = choice.getNumCases();
  for (BasicBlock *target : targets)
    if (target != meeting) cost += target->size() - 1;
  for (const llvm::PHINode &phi : meeting->phis()) {
    if (phi.getType()->isDoubleTy() || phi.getType()->isVectorTy()) return false;
    cost += choice.getNumCases();
  }
  if (cost > ALL) return false;

  auto value_of = [&](const llvm::PHINode &phi, BasicBlock *target) {
    return phi.getIncomingValueForBlock(target == meeting ? &head : target);
  };
  /* If the default is unreachable, the last case is the base. */
  BasicBlock *base = fallback ? fallback : std::prev(choice.case_end())->getCaseSuccessor();
  for (BasicBlock *target : targets)
    if (target != meeting)
      while (&target->front() != target->getTerminator()) target->front().moveBefore(choice.getIterator());
  llvm::IRBuilder<> builder(&choice);
  llvm::SmallVector<llvm::Value *, 8> is_case;
  for (const auto &arm : choice.cases())
    is_case.push_back(arm.getCaseSuccessor() == base
                          ? nullptr
                          : builder.CreateICmpEQ(choice.getCondition(), arm.getCaseValue()));
  llvm::SmallVector<std::pair<llvm::PHINode *, llvm::Value *>, 4> chosen;
  for (llvm::PHINode &phi : meeting->phis()) {
    llvm::Value *value = value_of(phi, base);
    for (auto [test, arm] : llvm::zip(is_case, choice.cases()))
      if (llvm::Value *other = value_of(phi, arm.getCaseSuccessor()); test && other != value)
        value = builder.CreateSelect(test, other, value);
    chosen.emplace_back(&phi, value);
  }
  if (!fallback) choice.getDefaultDest()->removePredecessor(&head);
  builder.CreateBr(meeting);
  choice.eraseFromParent();
  for (BasicBlock *target : targets)
    if (target != meeting) llvm::DeleteDeadBlock(target, nullptr, /*KeepOneInputPHIs=*/true);
  for (auto [phi, value] : chosen) {
    phi->removeIncomingValueIf([&](unsigned index) { return phi->getIncomingBlock(index) == &head; },
                               /*DeletePHIIfEmpty=*/false);
    phi->addIncoming(value, &head);
  }
  return true;
}

struct ChooseArms : llvm::PassInfoMixin<ChooseArms> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &) {
    llvm::SmallVector<llvm::SwitchInst *, 4> found;
    for (BasicBlock &block : function)
      if (auto *choice = llvm::dyn_cast<llvm::SwitchInst>(block.getTerminator())) found.push_back(choice);
    bool changed = false;
    for (llvm::SwitchInst *choice : found) changed |= choose(*choice);
    return changed ? llvm::PreservedAnalyses::none() : llvm::PreservedAnalyses::all();
  }
};

} // namespace

void weft::register_switches(llvm::PassBuilder &builder) {
  builder.registerPeepholeEPCallback(
      [](llvm::FunctionPassManager &passes, llvm::OptimizationLevel) { passes.addPass(ChooseArms()); });
}
