// IValue: a tensor, a number, a text, a list or a dictionary, known at run time; what archives, pickles and contexts of
// functions keep. Lists, tuples and dictionaries are shared by copies.
#pragma once
#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <torch/exceptions.h>

namespace c10 {

class IValue;

/// A list of keys and values in the order of insertion. Copies are the same dictionary.
template <class Key, class Value>
class Dict {
 public:
  /// A key and its value.
  class Entry {
   public:
    Entry(Key key, Value value) : key_(std::move(key)), value_(std::move(value)) {}
    const Key& key() const { return key_; }
    const Value& value() const { return value_; }
    void setValue(Value value) { value_ = std::move(value); }

   private:
    Key key_;
    Value value_;
  };
  using iterator = typename std::vector<Entry>::iterator;

  iterator begin() const { return entries_->begin(); }
  iterator end() const { return entries_->end(); }
  size_t size() const { return entries_->size(); }
  bool empty() const { return entries_->empty(); }
  void clear() const { entries_->clear(); }
  iterator find(const Key& key) const {
    return std::find_if(begin(), end(), [&](const Entry& e) { return e.key() == key; });
  }
  bool contains(const Key& key) const { return find(key) != end(); }
  const Value& at(const Key& key) const {
    const iterator found = find(key);
    TORCH_CHECK_INDEX(found != end(), "Dict: expected a key that is in the dictionary.");
    return found->value();
  }
  /// Adds a value where there is none of this key yet; returns where it is and whether it is new.
  std::pair<iterator, bool> insert(Key key, Value value) const {
    if (const iterator found = find(key); found != end()) return {found, false};
    entries_->emplace_back(std::move(key), std::move(value));
    return {std::prev(end()), true};
  }
  std::pair<iterator, bool> insert_or_assign(Key key, Value value) const {
    const iterator found = find(key);
    if (found == end()) return insert(std::move(key), std::move(value));
    found->setValue(std::move(value));
    return {found, false};
  }
  size_t erase(const Key& key) const {
    const iterator found = find(key);
    if (found == end()) return 0;
    entries_->erase(found);
    return 1;
  }

 private:
  std::shared_ptr<std::vector<Entry>> entries_ = std::make_shared<std::vector<Entry>>();
};
namespace impl { using GenericDict = Dict<IValue, IValue>; }

namespace ivalue { struct Tuple; }

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
  IValue(const std::shared_ptr<ivalue::Tuple>& v);
  IValue(impl::GenericDict v) : value_(std::make_shared<impl::GenericDict>(std::move(v))) {}
  template <class Key, class Value>
  IValue(const Dict<Key, Value>& v) : value_(std::make_shared<impl::GenericDict>()) {
    for (const auto& e : v) std::get<Entries>(value_)->insert(e.key(), e.value());
  }
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
  bool isGenericDict() const { return holds<Entries>(); }
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
  std::shared_ptr<ivalue::Tuple> toTuple() const;
  /// Returns a list of any type as one of values.
  std::vector<IValue> toListRef() const {
    const auto each = [](const auto& list) { return std::vector<IValue>(list.begin(), list.end()); };
    if (isIntList()) return each(toIntVector());
    if (isDoubleList()) return each(toDoubleVector());
    return isTensorList() ? each(toTensorVector()) : *get<Elements>("a list");
  }
  std::vector<IValue> toList() const { return toListRef(); }
  impl::GenericDict toGenericDict() const { return *get<Entries>("a dictionary"); }
  /// Compares numbers, texts and None; others are equal only as the same object. For keys.
  friend bool operator==(const IValue& a, const IValue& b) {
    if (a.isTensor() && b.isTensor()) return a.toTensor().is_same(b.toTensor());
    if (a.isTensorList()) return false;
    return std::visit(
        [&](const auto& x) {
          using T = std::decay_t<decltype(x)>;
          if constexpr (std::is_same_v<T, vesta::Tensor> || std::is_same_v<T, std::vector<vesta::Tensor>>) return false;
          else return b.holds<T>() && std::get<T>(b.value_) == x;
        },
        a.value_);
  }
  template <class T>
  T to() const {
    if constexpr (std::is_same_v<T, vesta::Tensor>) return toTensor();
    else if constexpr (std::is_same_v<T, impl::GenericDict>) return toGenericDict();
    else if constexpr (std::is_same_v<T, bool>) return toBool();
    else if constexpr (std::is_integral_v<T>) return T(toInt());
    else if constexpr (std::is_floating_point_v<T>) return T(toDouble());
    else return get<T>("another type");
  }
  /// Returns what it holds, as messages name it ("Double").
  std::string tagKind() const {
    static constexpr const char* kNames[] = {"None",    "Tensor",     "Bool",       "Int",   "Double",     "String",
                                             "IntList", "DoubleList", "TensorList", "Tuple", "GenericDict"};
    return kNames[value_.index()];
  }

 private:
  using Elements = std::shared_ptr<std::vector<IValue>>;
  using Entries = std::shared_ptr<impl::GenericDict>;
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
               std::vector<double>, std::vector<vesta::Tensor>, Elements, Entries>
      value_;
};

namespace ivalue {
/// The elements of a tuple.
struct Tuple {
  explicit Tuple(std::vector<IValue> elements) : elements_(std::move(elements)) {}
  static std::shared_ptr<Tuple> create(std::vector<IValue> elements) {
    return std::make_shared<Tuple>(std::move(elements));
  }
  const std::vector<IValue>& elements() const { return elements_; }
  size_t size() const { return elements_.size(); }
  std::vector<IValue> elements_;
};
}  // namespace ivalue

inline IValue::IValue(const std::shared_ptr<ivalue::Tuple>& v) : IValue(v->elements_) {}
inline std::shared_ptr<ivalue::Tuple> IValue::toTuple() const { return ivalue::Tuple::create(elements()); }

}  // namespace c10

namespace torch { using c10::IValue; }
