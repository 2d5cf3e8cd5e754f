/* Narrowing: arithmetic on vectors of 32-bit or 64-bit integers becomes arithmetic on 16-bit vectors, which have two or
 * four times as many elements. For example, a kernel sums the neighboring bytes of an image in `int32`. LLVM itself
 * narrows only computations whose result is truncated.
 *
 * Legality: an interval analysis, which starts at extended bytes, shows that each narrowed value fits in a signed
 * 16-bit integer. Profitability: values that use each other form a group. A group is narrowed if it has at least
 * `WORTH` operations for each of its values that must be widened again for other users. */
#include "llvm-c/Core.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Transforms/Utils/Local.h"

#include <algorithm>
#include <optional>

using namespace llvm;

namespace {

constexpr int64_t LEAST = -32768, LARGEST = 32767;

/* The recursion limit of the interval analysis. */
constexpr unsigned DEEPEST = 200;

/* The minimum number of elements of a narrowed vector. */
constexpr unsigned SHORTEST = 8;

/* The minimum number of narrowed operations for each value that is widened again. */
constexpr unsigned WORTH = 3;

/* A closed interval. */
struct Between {
  int64_t low, high;
  bool fits() const { return LEAST <= low && low <= high && high <= LARGEST; }
};

/* The type, if it is a vector of at least `SHORTEST` 32-bit or 64-bit integers; otherwise null. */
FixedVectorType *wide(Type *type) {
  auto *vector = dyn_cast<FixedVectorType>(type);
  if (!vector || vector->getNumElements() < SHORTEST) return nullptr;
  auto *element = dyn_cast<IntegerType>(vector->getElementType());
  return element && (element->getBitWidth() == 32 || element->getBitWidth() == 64) ? vector : nullptr;
}

class Narrowing {
public:
  explicit Narrowing(Function &function) : function(function) {}

  void run() {
    for (BasicBlock &block : function)
      for (Instruction &instruction : block)
        if (wide(instruction.getType())) between(&instruction, 0);
    choose();
    SmallVector<Instruction *, 16> roots;
    for (BasicBlock &block : function)
      for (Instruction &instruction : block)
        if (is_root(instruction)) roots.push_back(&instruction);
    for (Instruction *root : roots) rewrite(root);
    for (Instruction *node : widened) widen(node);
    for (WeakTrackingVH &dead : left)
      if (auto *node = dyn_cast_or_null<Instruction>(dead)) RecursivelyDeleteTriviallyDeadInstructions(node);
  }

private:
  Function &function;
  DenseMap<Value *, std::optional<Between>> known;
  /* The instructions that are computed in 16 bits. */
  DenseMap<Instruction *, bool> chosen;
  SmallVector<Instruction *, 16> widened;
  DenseMap<Value *, Value *> narrow;
  SmallVector<WeakTrackingVH, 16> left;

  static std::optional<int64_t> splat(Value *value) {
    auto *constant = dyn_cast<Constant>(value);
    auto *of_all = constant ? dyn_cast_or_null<ConstantInt>(constant->getSplatValue()) : nullptr;
    if (!of_all || of_all->getValue().getSignificantBits() > 32) return std::nullopt;
    return of_all->getSExtValue();
  }

  /* The interval of the elements' values, if it is known and fits in 16 bits. */
  std::optional<Between> between(Value *value, unsigned depth) {
    if (auto constant = splat(value)) {
      Between one{*constant, *constant};
      return one.fits() ? std::optional(one) : std::nullopt;
    }
    auto *instruction = dyn_cast<Instruction>(value);
    if (!instruction || !wide(value->getType()) || depth > DEEPEST) return std::nullopt;
    auto seen = known.find(value);
    if (seen != known.end()) return seen->second;
    auto found = compute(*instruction, depth + 1);
    if (found && !found->fits()) found = std::nullopt;
    known[value] = found;
    return found;
  }

  std::optional<Between> compute(Instruction &value, unsigned depth) {
    auto of = [&](unsigned operand) { return between(value.getOperand(operand), depth); };
    if (isa<ZExtInst, SExtInst>(value)) {
      unsigned bits = value.getOperand(0)->getType()->getScalarSizeInBits();
      if (bits == 8) return isa<ZExtInst>(value) ? Between{0, 255} : Between{-128, 127};
      auto from = of(0);
      if (from && isa<ZExtInst>(value) && from->low < 0) return std::nullopt;
      return from;
    }
    if (isa<TruncInst>(value)) return of(0);
    if (isa<SelectInst>(value)) {
      auto a = of(1), b = of(2);
      if (!a || !b) return std::nullopt;
      return Between{std::min(a->low, b->low), std::max(a->high, b->high)};
    }
    if (auto *call = dyn_cast<IntrinsicInst>(&value)) return of_call(*call, depth);
    if (!isa<BinaryOperator>(value)) return std::nullopt;
    auto a = of(0), b = of(1);
    if (!a || !b) return std::nullopt;
    auto constant = splat(value.getOperand(1));
    switch (value.getOpcode()) {
    case Instruction::Add: return Between{a->low + b->low, a->high + b->high};
    case Instruction::Sub: return Between{a->low - b->high, a->high - b->low};
    case Instruction::Mul: {
      int64_t products[] = {a->low * b->low, a->low * b->high, a->high * b->low, a->high * b->high};
      return Between{*std::min_element(products, products + 4), *std::max_element(products, products + 4)};
    }
    case Instruction::Shl:
      if (!constant || *constant < 0 || *constant > 14) return std::nullopt;
      return Between{a->low * (int64_t(1) << *constant), a->high * (int64_t(1) << *constant)};
    case Instruction::LShr:
    case Instruction::AShr:
      if (!constant || *constant < 0 || *constant > 15 || (a->low < 0 && value.getOpcode() == Instruction::LShr))
        return std::nullopt;
      return Between{a->low >> *constant, a->high >> *constant};
    case Instruction::UDiv:
      if (!constant || *constant < 1 || a->low < 0) return std::nullopt;
      return Between{a->low / *constant, a->high / *constant};
    case Instruction::SDiv:
      if (!constant || *constant < 1) return std::nullopt;
      return Between{a->low / *constant, a->high / *constant};
    case Instruction::And:
      /* One nonnegative operand is enough: it clears the upper bits of the other one. */
      if (a->low < 0 && b->low < 0) return std::nullopt;
      if (a->low < 0 || b->low < 0) return Between{0, a->low < 0 ? b->high : a->high};
      return Between{0, std::min(a->high, b->high)};
    case Instruction::Or:
    case Instruction::Xor:
      if (a->low < 0 || b->low < 0) return std::nullopt;
      return Between{0, int64_t(NextPowerOf2(std::max(a->high, b->high))) - 1};
    default: return std::nullopt;
    }
  }

  std::optional<Between> of_call(IntrinsicInst &call, unsigned depth) {
    Intrinsic::ID id = call.getIntrinsicID();
    if (id == Intrinsic::abs) {
      auto a = between(call.getArgOperand(0), depth);
      if (!a) return std::nullopt;
      return Between{a->low > 0 ? a->low : 0, std::max(-a->low, a->high)};
    }
    bool is_max = id == Intrinsic::smax || id == Intrinsic::umax;
    bool is_min = id == Intrinsic::smin || id == Intrinsic::umin;
    if (!is_max && !is_min) return std::nullopt;
    auto a = between(call.getArgOperand(0), depth), b = between(call.getArgOperand(1), depth);
    bool is_unsigned = id == Intrinsic::umax || id == Intrinsic::umin;
    if (!a || !b || (is_unsigned && (a->low < 0 || b->low < 0))) return std::nullopt;
    if (is_max) return Between{std::max(a->low, b->low), std::max(a->high, b->high)};
    return Between{std::min(a->low, b->low), std::min(a->high, b->high)};
  }

  /* A leaf is an extended byte. Its 16-bit version extends the byte again. */
  static bool is_leaf(Instruction &node) {
    return isa<ZExtInst, SExtInst>(node) && node.getOperand(0)->getType()->getScalarSizeInBits() == 8;
  }

  static bool computes(Instruction &node) { return !isa<CastInst>(node); }

  bool is_known(Value *value) {
    auto *node = dyn_cast<Instruction>(value);
    auto found = known.find(value);
    return node && found != known.end() && found->second;
  }

  /* Groups the values with known intervals by their def-use edges, and chooses the groups that are profitable. */
  void choose() {
    EquivalenceClasses<Instruction *> groups;
    for (auto &[value, range] : known) {
      auto *node = cast<Instruction>(value);
      if (!range || is_leaf(*node)) continue;
      groups.insert(node);
      for (Value *operand : node->operands())
        if (is_known(operand) && !is_leaf(*cast<Instruction>(operand)))
          groups.unionSets(node, cast<Instruction>(operand));
    }
    for (const auto *group : groups) {
      if (!group->isLeader()) continue;
      unsigned computed = 0, others = 0;
      for (Instruction *node : groups.members(*group)) {
        computed += computes(*node);
        others += is_asked_for(*node);
      }
      if (computed == 0 || computed < WORTH * others) continue;
      for (Instruction *node : groups.members(*group)) chosen[node] = true;
    }
    for (BasicBlock &block : function)
      for (Instruction &node : block)
        if (chosen.count(&node) && is_asked_for(node)) widened.push_back(&node);
  }

  /* Whether any user needs the value at its full width. */
  bool is_asked_for(Instruction &node) {
    for (User *user : node.users()) {
      auto *instruction = dyn_cast<Instruction>(user);
      if (!instruction || !(is_known(instruction) || takes_narrow(*instruction))) return true;
    }
    return false;
  }

  /* Whether an instruction that is not narrowed itself accepts 16-bit operands. */
  bool takes_narrow(Instruction &user) {
    if (isa<TruncInst>(user)) return user.getType()->getScalarSizeInBits() <= 16;
    if (!isa<ICmpInst>(user)) return false;
    return llvm::all_of(user.operands(), [&](Value *operand) { return between(operand, 0).has_value(); });
  }

  bool is_root(Instruction &user) {
    if (!takes_narrow(user)) return false;
    return llvm::any_of(user.operands(), [&](Value *operand) {
      auto *node = dyn_cast<Instruction>(operand);
      return node && chosen.count(node);
    });
  }

  static Type *narrow_type(Value *value) {
    auto *vector = cast<FixedVectorType>(value->getType());
    return FixedVectorType::get(Type::getInt16Ty(value->getContext()), vector->getNumElements());
  }

  /* The value as a 16-bit vector. */
  Value *narrowed(Value *value) {
    auto seen = narrow.find(value);
    if (seen != narrow.end()) return seen->second;
    if (auto constant = splat(value)) return ConstantInt::get(narrow_type(value), *constant, true);
    auto &node = *cast<Instruction>(value);
    Value *result = build(node);
    narrow[value] = result;
    left.push_back(&node);
    return result;
  }

  Value *build(Instruction &node) {
    Type *type = narrow_type(&node);
    if (is_leaf(node)) {
      IRBuilder<> builder(&node);
      return builder.CreateCast(cast<CastInst>(node).getOpcode(), node.getOperand(0), type);
    }
    if (isa<CastInst>(node)) return narrowed(node.getOperand(0));
    SmallVector<Value *, 3> operands;
    if (auto *select = dyn_cast<SelectInst>(&node)) {
      operands = {narrowed(select->getTrueValue()), narrowed(select->getFalseValue())};
      IRBuilder<> builder(&node);
      return builder.CreateSelect(select->getCondition(), operands[0], operands[1]);
    }
    if (auto *call = dyn_cast<IntrinsicInst>(&node)) {
      operands.push_back(narrowed(call->getArgOperand(0)));
      if (call->getIntrinsicID() == Intrinsic::abs)
        operands.push_back(ConstantInt::getFalse(node.getContext()));
      else
        operands.push_back(narrowed(call->getArgOperand(1)));
      IRBuilder<> builder(&node);
      return builder.CreateIntrinsic(call->getIntrinsicID(), {type}, operands);
    }
    operands = {narrowed(node.getOperand(0)), narrowed(node.getOperand(1))};
    IRBuilder<> builder(&node);
    return builder.CreateBinOp(cast<BinaryOperator>(node).getOpcode(), operands[0], operands[1]);
  }

  void rewrite(Instruction *root) {
    IRBuilder<> builder(root);
    Value *result;
    if (auto *compare = dyn_cast<ICmpInst>(root)) {
      Value *a = narrowed(compare->getOperand(0)), *b = narrowed(compare->getOperand(1));
      builder.SetInsertPoint(root);
      result = builder.CreateICmp(compare->getPredicate(), a, b);
    } else {
      Value *from = narrowed(root->getOperand(0));
      builder.SetInsertPoint(root);
      result = builder.CreateTrunc(from, root->getType());
    }
    root->replaceAllUsesWith(result);
    left.push_back(root);
  }

  /* Sign-extends a narrowed value for the users that need its full width. */
  void widen(Instruction *node) {
    Value *from = narrowed(node);
    SmallVector<Use *, 4> uses;
    for (Use &use : node->uses()) {
      auto *user = dyn_cast<Instruction>(use.getUser());
      if (!user || !(chosen.count(user) || is_root(*user))) uses.push_back(&use);
    }
    IRBuilder<> builder(node);
    Value *all = builder.CreateSExt(from, node->getType());
    for (Use *use : uses) use->set(all);
  }
};

} // namespace

extern "C" void weft_narrow_sums(LLVMModuleRef module) {
  for (Function &function : *unwrap(module))
    if (!function.isDeclaration()) Narrowing(function).run();
}
