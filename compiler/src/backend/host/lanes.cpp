/* Store-to-load forwarding between the lanes of a warp: a load that spans two stored vectors becomes a shuffle of them.
 *
 * In a warp operation, each lane stores a value to its own cell and loads another lane's cell. If a warp is a block of
 * its own, the cells are an array on the stack, and LLVM vectorizes the loop over the 32 lanes. A loaded vector may
 * start in the middle of a stored one. LLVM does not forward parts of two stores, and a CPU delays such a load until
 * both stores are in its cache.
 *
 * Legality: every use of the array is a load, a store or a memset of whole cells at a constant offset. The pass tracks
 * the contents of cells within a block and from a single predecessor. A cell that no instruction stores to is
 * undefined, so its value is arbitrary. */
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"

#include <limits>
#include <map>
#include <optional>

using namespace llvm;

namespace {

/* An access to contiguous cells. */
struct Access {
  int64_t first;
  unsigned count;
};

/* The location of a cell's value: an element of a vector. */
struct Place {
  Value *of;
  unsigned lane;
  bool operator==(const Place &other) const { return of == other.of && lane == other.lane; }
};

using Known = std::map<int64_t, Place>;

class Cells {
public:
  Cells(AllocaInst &cells, const DataLayout &layout) : cells(cells), layout(layout) {}

  /* Whether every use is a load, a store or a memset of whole cells at a constant offset, or a lifetime marker. */
  bool are_plain() {
    auto *array = dyn_cast<ArrayType>(cells.getAllocatedType());
    Type *element = array ? array->getElementType() : cells.getAllocatedType();
    if (!element->isSingleValueType() || element->isVectorTy() || element->isPointerTy()) return false;
    bytes = layout.getTypeStoreSize(element).getFixedValue();
    return visit(cells, 0);
  }

  /* Replaces loads by shuffles. Returns whether there were any. */
  bool forward(Function &function) {
    bool changed = false;
    DenseMap<BasicBlock *, Known> at_end;
    for (BasicBlock *block : ReversePostOrderTraversal<Function *>(&function)) {
      Known known;
      if (BasicBlock *before = block->getSinglePredecessor())
        if (auto found = at_end.find(before); found != at_end.end()) known = found->second;
      for (Instruction &instruction : make_early_inc_range(*block)) {
        auto found = accesses.find(&instruction);
        if (found == accesses.end()) continue;
        auto *load = dyn_cast<LoadInst>(&instruction);
        if (!load) {
          auto *store = dyn_cast<StoreInst>(&instruction);
          keep(known, store ? store->getValueOperand() : nullptr, found->second);
        } else if (replace(known, *load, found->second)) {
          accesses.erase(load);
          load->eraseFromParent();
          changed = true;
        }
      }
      at_end[block] = std::move(known);
    }
    return changed;
  }

private:
  AllocaInst &cells;
  const DataLayout &layout;
  uint64_t bytes = 0;
  DenseMap<Instruction *, Access> accesses;
  /* The range of cells that the function stores to. */
  int64_t low = std::numeric_limits<int64_t>::max(), high = std::numeric_limits<int64_t>::min();

  bool visit(Value &pointer, int64_t offset) {
    for (User *user : pointer.users()) {
      if (auto *address = dyn_cast<GEPOperator>(user)) {
        APInt more(layout.getIndexTypeSizeInBits(address->getType()), 0);
        if (address->getPointerOperand() != &pointer || !address->accumulateConstantOffset(layout, more)) return false;
        if (!visit(*address, offset + more.getSExtValue())) return false;
        continue;
      }
      auto *instruction = dyn_cast<Instruction>(user);
      if (!instruction) return false;
      if (instruction->isLifetimeStartOrEnd()) continue;
      if (auto *fill = dyn_cast<MemSetInst>(instruction)) {
        auto *length = dyn_cast<ConstantInt>(fill->getLength());
        if (fill->getRawDest() != &pointer || fill->isVolatile() || !length) return false;
        if (!note(*fill, offset, length->getZExtValue())) return false;
        continue;
      }
      if (getLoadStorePointerOperand(instruction) != &pointer || instruction->isVolatile()) return false;
      Type *type = getLoadStoreType(instruction);
      uint64_t size = layout.getTypeStoreSize(type).getFixedValue();
      if (type->isScalableTy() || !note(*instruction, offset, size)) return false;
    }
    return true;
  }

  bool note(Instruction &instruction, int64_t offset, uint64_t size) {
    if (offset < 0 || offset % bytes != 0 || size % bytes != 0) return false;
    Access access{static_cast<int64_t>(offset / bytes), static_cast<unsigned>(size / bytes)};
    accesses[&instruction] = access;
    if (!isa<LoadInst>(instruction)) {
      low = std::min(low, access.first);
      high = std::max(high, access.first + access.count);
    }
    return true;
  }

  /* The number of elements of a vector type, if they have the size of a cell; otherwise 0. */
  unsigned elements(Type *type) const {
    auto *vector = dyn_cast<FixedVectorType>(type);
    if (!vector || vector->getElementType()->isPointerTy()) return 0;
    return layout.getTypeSizeInBits(vector->getElementType()) == 8 * bytes ? vector->getNumElements() : 0;
  }

  void keep(Known &known, Value *value, Access access) {
    bool is_vector = value && elements(value->getType()) == access.count;
    for (unsigned lane = 0; lane < access.count; lane++) {
      if (is_vector)
        known[access.first + lane] = Place{value, lane};
      else
        known.erase(access.first + lane);
    }
  }

  bool replace(const Known &known, LoadInst &load, Access access) {
    if (elements(load.getType()) != access.count) return false;
    Value *sources[2] = {nullptr, nullptr};
    SmallVector<int, 32> mask;
    for (unsigned lane = 0; lane < access.count; lane++) {
      int64_t cell = access.first + lane;
      auto found = known.find(cell);
      if (found == known.end()) {
        if (low <= cell && cell < high) return false;
        mask.push_back(-1);
        continue;
      }
      Value *of = found->second.of;
      int number = !sources[0] || sources[0] == of ? 0 : 1;
      if (sources[number] && sources[number] != of) return false;
      if (number == 1 && of->getType() != sources[0]->getType()) return false;
      sources[number] = of;
      mask.push_back(found->second.lane + number * elements(of->getType()));
    }
    if (!sources[0]) return false;
    /* An undefined cell gets element 0. */
    for (int &lane : mask)
      if (lane < 0) lane = 0;
    IRBuilder<> builder(&load);
    Value *other = sources[1] ? sources[1] : sources[0];
    Value *value = builder.CreateShuffleVector(sources[0], other, mask);
    load.replaceAllUsesWith(builder.CreateBitCast(value, load.getType()));
    return true;
  }
};

} // namespace

namespace weft {

/* Forwards stored vectors to loads of the function's stack arrays. Returns whether the function changed. */
bool forward_lanes(Function &function) {
  const DataLayout &layout = function.getParent()->getDataLayout();
  bool changed = false;
  SmallVector<AllocaInst *, 8> all;
  for (Instruction &instruction : function.getEntryBlock())
    if (auto *cells = dyn_cast<AllocaInst>(&instruction)) all.push_back(cells);
  for (AllocaInst *cells : all) {
    Cells found(*cells, layout);
    if (found.are_plain()) changed |= found.forward(function);
  }
  return changed;
}

} // namespace weft
