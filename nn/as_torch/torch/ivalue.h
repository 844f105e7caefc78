// IValue: a tensor, a number, a text or a list, known at run time; what archives and contexts of functions keep.
#pragma once
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <torch/exceptions.h>

namespace c10 {

class IValue {
 public:
  IValue() = default;
  IValue(std::nullopt_t) {}
  IValue(vesta::Tensor t) : value_(std::move(t)) {}
  IValue(bool v) : value_(v) {}
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  IValue(T v) : value_(int64_t(v)) {}
  template <std::floating_point T>
  IValue(T v) : value_(double(v)) {}
  IValue(const char* v) : value_(std::string(v)) {}
  IValue(std::string v) : value_(std::move(v)) {}
  IValue(vesta::Scalar v) {
    if (v.isBoolean()) value_ = v.toBool();
    else if (v.is_integral()) value_ = v.integer();
    else value_ = v.to<double>("IValue");
  }
  IValue(vesta::IntList v) : value_(v.vec()) {}
  IValue(std::vector<int64_t> v) : value_(std::move(v)) {}
  IValue(std::vector<double> v) : value_(std::move(v)) {}
  IValue(std::vector<vesta::Tensor> v) : value_(std::move(v)) {}
  IValue(std::vector<IValue> v) : value_(std::make_shared<std::vector<IValue>>(std::move(v))) {}
  template <class... T>
  IValue(const std::tuple<T...>& v)
      : IValue(std::apply([](const T&... each) { return std::vector<IValue>{IValue(each)...}; }, v)) {}
  template <class T>
  IValue(const std::optional<T>& v) {
    if (v) *this = IValue(*v);
  }

  bool isNone() const { return holds<std::monostate>(); }
  bool isTensor() const { return holds<vesta::Tensor>(); }
  bool isBool() const { return holds<bool>(); }
  bool isInt() const { return holds<int64_t>(); }
  bool isDouble() const { return holds<double>(); }
  bool isScalar() const { return isBool() || isInt() || isDouble(); }
  bool isString() const { return holds<std::string>(); }
  bool isIntList() const { return holds<std::vector<int64_t>>(); }
  bool isDoubleList() const { return holds<std::vector<double>>(); }
  bool isTensorList() const { return holds<std::vector<vesta::Tensor>>(); }
  bool isTuple() const { return holds<Elements>(); }
  bool isList() const { return isIntList() || isDoubleList() || isTensorList() || isTuple(); }

  vesta::Tensor toTensor() const { return get<vesta::Tensor>("a Tensor"); }
  bool toBool() const { return get<bool>("a bool"); }
  int64_t toInt() const { return get<int64_t>("an int"); }
  double toDouble() const { return get<double>("a double"); }
  vesta::Scalar toScalar() const {
    return isBool() ? vesta::Scalar(toBool()) : isInt() ? vesta::Scalar(toInt()) : vesta::Scalar(toDouble());
  }
  const std::string& toStringRef() const { return get<std::string>("a string"); }
  std::vector<int64_t> toIntVector() const { return get<std::vector<int64_t>>("a list of ints"); }
  std::vector<double> toDoubleVector() const { return get<std::vector<double>>("a list of doubles"); }
  std::vector<vesta::Tensor> toTensorVector() const { return get<std::vector<vesta::Tensor>>("a list of Tensors"); }
  std::vector<int64_t> toIntList() const { return toIntVector(); }
  std::vector<double> toDoubleList() const { return toDoubleVector(); }
  std::vector<vesta::Tensor> toTensorList() const { return toTensorVector(); }
  /// Returns the elements of a tuple.
  const std::vector<IValue>& elements() const { return *get<Elements>("a tuple"); }
  template <class T>
  T to() const {
    if constexpr (std::is_same_v<T, vesta::Tensor>) return toTensor();
    else if constexpr (std::is_same_v<T, bool>) return toBool();
    else if constexpr (std::is_integral_v<T>) return T(toInt());
    else if constexpr (std::is_floating_point_v<T>) return T(toDouble());
    else return get<T>("another type");
  }
  /// Returns what it holds, as messages name it ("Double").
  std::string tagKind() const {
    static constexpr const char* kNames[] = {"None",       "Tensor",     "Bool",       "Int",   "Double",
                                             "String",     "IntList",    "DoubleList", "TensorList", "Tuple"};
    return kNames[value_.index()];
  }

 private:
  using Elements = std::shared_ptr<std::vector<IValue>>;
  template <class T>
  bool holds() const {
    return std::holds_alternative<T>(value_);
  }
  template <class T>
  const T& get(const char* what) const {
    TORCH_CHECK_TYPE(holds<T>(), "IValue: expected ", what, ", got ", tagKind(), ".");
    return std::get<T>(value_);
  }
  std::variant<std::monostate, vesta::Tensor, bool, int64_t, double, std::string, std::vector<int64_t>,
               std::vector<double>, std::vector<vesta::Tensor>, Elements>
      value_;
};

}  // namespace c10

namespace torch {
using c10::IValue;
}
