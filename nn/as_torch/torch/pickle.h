// torch::pickle_save and torch::pickle_load: values as the bytes of a file that torch.save writes and torch.load reads.
#pragma once
#include <torch/ivalue.h>

#include <string>
#include <string_view>
#include <vector>

#include <vesta/core/io/torch_archive.h>

namespace torch {
namespace detail {

constexpr int kDeepestValue = 200;  // levels of lists in lists

/// Returns what a pickle's value is as an IValue; an object is the dictionary of its attributes.
inline IValue unpickled(const vesta::io::PickledValue& v, int depth = 0) {
  using Kind = vesta::io::PickledValue::Kind;
  TORCH_CHECK(depth < kDeepestValue, "load: expected values at most ", kDeepestValue, " levels deep.");
  const auto item = [&](size_t i) { return unpickled(*v.items[i], depth + 1); };
  const auto all = [&](Kind kind) {
    return !v.items.empty() &&
           std::all_of(v.items.begin(), v.items.end(), [&](const auto& i) { return i->kind == kind; });
  };
  const auto list = [&](auto of, auto member) {
    for (const auto& i : v.items) of.push_back((*i).*member);
    return IValue(std::move(of));
  };
  switch (v.kind) {
    case Kind::none: return {};
    case Kind::boolean: return v.integer != 0;
    case Kind::integer: return v.integer;
    case Kind::real: return v.real;
    case Kind::text: return v.text;
    case Kind::tensor: return v.tensor;
    case Kind::list:
      if (all(Kind::integer)) return list(std::vector<int64_t>(), &vesta::io::PickledValue::integer);
      if (all(Kind::real)) return list(std::vector<double>(), &vesta::io::PickledValue::real);
      if (all(Kind::tensor)) return list(std::vector<Tensor>(), &vesta::io::PickledValue::tensor);
      [[fallthrough]];
    case Kind::tuple: {
      std::vector<IValue> elements;
      for (size_t i = 0; i < v.items.size(); ++i) elements.push_back(item(i));
      return elements;
    }
    case Kind::dict: {
      c10::impl::GenericDict entries;
      for (size_t i = 0; i + 1 < v.items.size(); i += 2) entries.insert_or_assign(item(i), item(i + 1));
      return entries;
    }
    case Kind::object: return v.items.empty() ? IValue(c10::impl::GenericDict()) : item(0);
    default: TORCH_CHECK(false, "load: expected values, got the class ", v.text, " itself");
  }
}

inline vesta::io::Pickled pickled(const IValue& v, int depth = 0) {
  using Value = vesta::io::PickledValue;
  TORCH_CHECK(depth < kDeepestValue, "save: expected values at most ", kDeepestValue, " levels deep.");
  auto made = std::make_shared<Value>();
  const auto add = [&](const IValue& item) { made->items.push_back(pickled(item, depth + 1)); };
  if (v.isTensor()) made->kind = Value::Kind::tensor, made->tensor = v.toTensor();
  else if (v.isBool()) made->kind = Value::Kind::boolean, made->integer = v.toBool();
  else if (v.isInt()) made->kind = Value::Kind::integer, made->integer = v.toInt();
  else if (v.isDouble()) made->kind = Value::Kind::real, made->real = v.toDouble();
  else if (v.isString()) made->kind = Value::Kind::text, made->text = v.toStringRef();
  else if (v.isGenericDict()) {
    made->kind = Value::Kind::dict;
    for (const auto& entry : v.toGenericDict()) add(entry.key()), add(entry.value());
  } else if (v.isList()) {
    made->kind = v.isTuple() ? Value::Kind::tuple : Value::Kind::list;
    for (const IValue& item : v.toListRef()) add(item);
  }
  return made;
}

}  // namespace detail

/// Returns the bytes of a file with this value, which torch.load reads in Python.
inline std::vector<char> pickle_save(const IValue& value) {
  const std::string bytes = vesta::io::write_torch_archive(*detail::pickled(value));
  return {bytes.begin(), bytes.end()};
}
/// Reads the bytes of a file that torch.save wrote. Error: they are none, or hold more than numbers, texts, tensors,
/// lists and dictionaries of them.
inline IValue pickle_load(const std::vector<char>& data) {
  return detail::unpickled(*vesta::io::read_torch_archive(std::string_view(data.data(), data.size())));
}

}  // namespace torch
