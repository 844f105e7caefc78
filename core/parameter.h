// The parameter types of the op list that device code needs; all other types are in arguments.h.
#pragma once
#include <cstdint>
#include <optional>

namespace vesta {

class Tensor;
class Operand;  // a tensor or a number: arguments.h
struct Out;     // where a pointwise op writes: arguments.h
using MaybeInt = std::optional<int64_t>;
using MaybeDouble = std::optional<double>;
using MaybeBool = std::optional<bool>;

/// The type T of a parameter that Python takes by keyword only, as all that follow it.
template <class T>
using Kw = T;
/// A double that PyTorch declares as a number of any kind.
using RealScalar = double;

}  // namespace vesta
