/* Types, constants and operands of NVVM IR. */
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Operator.h"

#include "printer.h"

namespace weft {

void NvvmPrinter::fail(const llvm::Value &value) {
  std::string shown;
  llvm::raw_string_ostream(shown) << value;
  fail(llvm::StringRef(shown).trim());
}

static std::string in_space(unsigned space) { return space ? joined(" addrspace(", space, ")*") : "*"; }

std::string NvvmPrinter::type(const llvm::Type *of) {
  switch (of->getTypeID()) {
  case llvm::Type::VoidTyID:
    return "void";
  case llvm::Type::HalfTyID:
    return "half";
  case llvm::Type::BFloatTyID:
    return "i16";
  case llvm::Type::FloatTyID:
    return "float";
  case llvm::Type::DoubleTyID:
    return "double";
  case llvm::Type::IntegerTyID:
    return joined("i", of->getIntegerBitWidth());
  case llvm::Type::PointerTyID:
    return "i8" + in_space(of->getPointerAddressSpace());
  case llvm::Type::ArrayTyID:
    return joined("[", of->getArrayNumElements(), " x ", type(of->getArrayElementType()), "]");
  case llvm::Type::FixedVectorTyID: {
    const auto *vector = llvm::cast<llvm::FixedVectorType>(of);
    return joined("<", vector->getNumElements(), " x ", type(vector->getElementType()), ">");
  }
  case llvm::Type::StructTyID: {
    const auto *record = llvm::cast<llvm::StructType>(of);
    if (auto named = records.find(record); named != records.end()) return "%" + named->second.name;
    if (record->isOpaque()) break;
    return body(record);
  }
  default:
    break;
  }
  std::string shown;
  llvm::raw_string_ostream(shown) << "the type " << *of;
  fail(shown);
  return "void";
}

std::string NvvmPrinter::body(const llvm::StructType *record) {
  std::string inside;
  for (const llvm::Type *element : record->elements()) inside += (inside.empty() ? " " : ", ") + type(element);
  if (!inside.empty()) inside += " ";
  return record->isPacked() ? joined("<{", inside, "}>") : joined("{", inside, "}");
}

static bool is_padding(const llvm::Type *element) { return element->isArrayTy(); }

unsigned NvvmPrinter::element(const llvm::Type *aggregate, unsigned index) {
  const auto *record = llvm::dyn_cast<llvm::StructType>(aggregate);
  auto named = record ? records.find(record) : records.end();
  if (named == records.end() || named->second.shown == record) return index;
  return index - llvm::count_if(record->elements().take_front(index), is_padding);
}

/* Names the literal structs of functions of other modules. Their elements are scalars, and arrays that are padding. */
void NvvmPrinter::name_records() {
  auto add = [&](llvm::Type *type) {
    auto *record = llvm::dyn_cast<llvm::StructType>(type);
    if (!record || !record->isLiteral() || records.contains(record)) return;
    llvm::SmallVector<llvm::Type *> kept;
    llvm::SmallVector<uint64_t> offsets;
    for (unsigned index = 0; index < record->getNumElements(); ++index) {
      if (is_padding(record->getElementType(index))) continue;
      kept.push_back(record->getElementType(index));
      offsets.push_back(layout.getStructLayout(record)->getElementOffset(index));
    }
    auto *shown = llvm::StructType::get(record->getContext(), kept);
    bool is_same = layout.getTypeAllocSize(shown) == layout.getTypeAllocSize(record);
    for (unsigned index = 0; index < kept.size(); ++index)
      is_same &= uint64_t(layout.getStructLayout(shown)->getElementOffset(index)) == offsets[index];
    records[record] = {joined("struct.", records.size()), is_same ? shown : record};
  };
  for (const llvm::Function &function : module) {
    if (function.hasLocalLinkage() || function.isIntrinsic()) continue;
    add(function.getReturnType());
    for (llvm::Type *param : function.getFunctionType()->params()) add(param);
  }
}

std::string NvvmPrinter::pointer_type(const llvm::Type *pointee, unsigned space) {
  return type(pointee) + in_space(space);
}

std::string NvvmPrinter::function_type(const llvm::FunctionType *of, bool exported) {
  if (of->isVarArg()) fail("a function with a variable number of arguments");
  std::string params;
  for (const llvm::Type *param : of->params())
    params += (params.empty() ? "" : ", ") + type_in_signature(param, exported);
  return joined(type_in_signature(of->getReturnType(), exported), " (", params, ")");
}

static bool is_half(const llvm::Type *type) { return type->isHalfTy() || type->isBFloatTy(); }

/* A 16-bit float is a struct of CUDA C++: `__half`, `__nv_bfloat16`. libNVVM passes a bare one in 32 bits. */
std::string NvvmPrinter::type_in_signature(const llvm::Type *of, bool exported) {
  return exported && is_half(of) ? "%struct.half" : type(of);
}

std::string NvvmPrinter::in_signature(const llvm::Value *value, bool exported) {
  if (!exported || !is_half(value->getType())) return typed(value);
  std::string bits = temporary(joined("bitcast ", typed(value), " to i16"));
  return "%struct.half " + temporary(joined("insertvalue %struct.half undef, i16 ", bits, ", 0"));
}

std::string NvvmPrinter::from_signature(const llvm::Type *of, const std::string &value) {
  std::string bits = temporary(joined("extractvalue %struct.half ", value, ", 0"));
  return joined("bitcast i16 ", bits, " to ", type(of));
}

/* A local symbol must be an identifier of PTX, too. */
std::string NvvmPrinter::symbol(const llvm::GlobalValue *value) {
  std::string name = value->getName().str();
  if (value->hasLocalLinkage())
    for (size_t at; (at = name.find('.')) != std::string::npos;) name.replace(at, 1, "$_");
  auto is_letter = [](char letter) { return llvm::isAlnum(letter) || letter == '_' || letter == '$'; };
  bool is_plain = llvm::all_of(name, is_letter);
  return is_plain ? "@" + name : joined("@\"", quoted(name), "\"");
}

static std::string float_bits(const llvm::ConstantFP &number) {
  llvm::APFloat value = number.getValueAPF();
  if (number.getType()->isBFloatTy()) return llvm::toString(value.bitcastToAPInt(), 10, true);
  if (number.getType()->isHalfTy())
    return "0xH" + llvm::utohexstr(value.bitcastToAPInt().getZExtValue(), false, 4);
  /* LLVM writes a `float` as the `double` of the same value. The bits of a NaN are shifted, not converted. */
  bool loses = false;
  value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &loses);
  return "0x" + llvm::utohexstr(value.bitcastToAPInt().getZExtValue(), false, 16);
}

std::string NvvmPrinter::constant(const llvm::Constant *of) {
  if (const auto *number = llvm::dyn_cast<llvm::ConstantInt>(of); number && number->getType()->isIntegerTy()) {
    if (number->getBitWidth() == 1) return number->isZero() ? "false" : "true";
    return llvm::toString(number->getValue(), 10, true);
  }
  if (const auto *number = llvm::dyn_cast<llvm::ConstantFP>(of); number && !number->getType()->isVectorTy())
    return float_bits(*number);
  if (llvm::isa<llvm::ConstantPointerNull>(of)) return "null";
  if (llvm::isa<llvm::UndefValue>(of)) return "undef";
  if (llvm::isa<llvm::ConstantAggregateZero>(of)) return "zeroinitializer";
  if (const auto *global = llvm::dyn_cast<llvm::GlobalVariable>(of)) {
    std::string from = pointer_type(global->getValueType(), global->getAddressSpace()), to = type(of->getType());
    return from == to ? symbol(global) : joined("bitcast (", from, " ", symbol(global), " to ", to, ")");
  }
  if (const auto *function = llvm::dyn_cast<llvm::Function>(of))
    return joined("bitcast (", function_type(function->getFunctionType(), exports(*function)), "* ", symbol(function),
                  " to i8*)");
  if (const auto *expression_of = llvm::dyn_cast<llvm::ConstantExpr>(of)) return expression(expression_of);
  if (llvm::isa<llvm::ConstantDataSequential, llvm::ConstantAggregate>(of)) return elements(of);
  if (of->getType()->isVectorTy() && of->getSplatValue()) return elements(of);
  fail(*of);
  return "undef";
}

/* The elements of an array, a struct or a vector. */
std::string NvvmPrinter::elements(const llvm::Constant *of) {
  if (const auto *data = llvm::dyn_cast<llvm::ConstantDataSequential>(of); data && data->isString())
    return joined("c\"", quoted(data->getAsString()), "\"");
  const llvm::Type *whole = of->getType();
  unsigned count = 0;
  const char *open = "[", *close = "]";
  if (const auto *record = llvm::dyn_cast<llvm::StructType>(whole)) {
    if (records.contains(record)) fail(*of);
    count = record->getNumElements();
    open = record->isPacked() ? "<{ " : "{ ";
    close = record->isPacked() ? " }>" : " }";
  } else if (const auto *vector = llvm::dyn_cast<llvm::FixedVectorType>(whole)) {
    count = vector->getNumElements();
    open = "<";
    close = ">";
  } else {
    count = whole->getArrayNumElements();
  }
  std::string inside;
  for (unsigned index = 0; index < count; ++index)
    inside += (inside.empty() ? "" : ", ") + typed(of->getAggregateElement(index));
  return joined(open, inside, close);
}

std::string NvvmPrinter::expression(const llvm::ConstantExpr *of) {
  std::string to = type(of->getType());
  if (const auto *offset = llvm::dyn_cast<llvm::GEPOperator>(of)) {
    const llvm::Type *source = offset->getSourceElementType();
    std::string inside = joined(type(source), ", ", typed_pointer(offset->getPointerOperand(), source));
    for (const llvm::Use &index : offset->indices()) inside += ", " + typed(index);
    std::string from = pointer_type(offset->getResultElementType(), offset->getPointerAddressSpace());
    std::string at = joined("getelementptr ", offset->isInBounds() ? "inbounds " : "", "(", inside, ")");
    return from == to ? at : joined("bitcast (", from, " ", at, " to ", to, ")");
  }
  switch (of->getOpcode()) {
  case llvm::Instruction::AddrSpaceCast:
  case llvm::Instruction::PtrToInt:
  case llvm::Instruction::IntToPtr:
  case llvm::Instruction::BitCast:
  case llvm::Instruction::Trunc:
    return joined(of->getOpcodeName(), " (", typed(of->getOperand(0)), " to ", to, ")");
  case llvm::Instruction::Add:
  case llvm::Instruction::Sub:
  case llvm::Instruction::Xor:
    return joined(of->getOpcodeName(), " (", typed(of->getOperand(0)), ", ", typed(of->getOperand(1)), ")");
  default:
    fail(*of);
    return "undef";
  }
}

std::string NvvmPrinter::operand(const llvm::Value *value) {
  if (const auto *known = llvm::dyn_cast<llvm::Constant>(value)) return constant(known);
  std::string name = names.lookup(value);
  if (name.empty()) fail(*value);
  return name;
}

std::string NvvmPrinter::pointer(const llvm::Value *value, const llvm::Type *pointee) {
  std::string from = type(value->getType()), to = pointer_type(pointee, value->getType()->getPointerAddressSpace());
  if (from == to) return operand(value);
  if (const auto *global = llvm::dyn_cast<llvm::GlobalVariable>(value);
      global && type(global->getValueType()) == type(pointee))
    return symbol(global);
  if (const auto *known = llvm::dyn_cast<llvm::Constant>(value))
    return joined("bitcast (", from, " ", constant(known), " to ", to, ")");
  if (auto known = typed_names.find(value); known != typed_names.end() && known->second.first == to)
    return known->second.second;
  return temporary(joined("bitcast ", from, " ", operand(value), " to ", to));
}

void NvvmPrinter::define_pointer(const llvm::Value &instruction, const std::string &from, const std::string &content) {
  std::string to = type(instruction.getType());
  if (from == to) return define(instruction, content);
  std::string name = temporary(content);
  typed_names[&instruction] = {from, name};
  define(instruction, joined("bitcast ", from, " ", name, " to ", to));
}

std::string NvvmPrinter::typed_pointer(const llvm::Value *value, const llvm::Type *pointee) {
  std::string cast = pointer(value, pointee);
  return joined(pointer_type(pointee, value->getType()->getPointerAddressSpace()), " ", cast);
}

} // namespace weft
