// Values of Python pickles, as far as files of PyTorch have them: numbers, texts, tensors, lists, tuples, dictionaries,
// and objects as the name of their class with their state. Nothing that a pickle names is called.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <vesta/core/tensor.h>

namespace vesta::io {

struct PickledValue;
/// A value of a pickle; what a pickle has in two places is one object.
using Pickled = std::shared_ptr<PickledValue>;

/// What a Pickled points to.
struct PickledValue {
  enum class Kind : uint8_t { none, boolean, integer, real, text, tensor, list, tuple, dict, object, global, mark };
  Kind kind = Kind::none;
  int64_t integer = 0;
  double real = 0;
  std::string text;  // and the class of an object, the name of a global: "torch.FloatStorage"
  Tensor tensor;  // may be undefined
  std::vector<Pickled> items;  // elements; of a dict a key, its value, the next key, ...; of an object its state

  PickledValue() = default;
  PickledValue(const PickledValue&) = delete;
  PickledValue& operator=(const PickledValue&) = delete;
  /// Frees items one after the other, however deep they lie.
  VESTA_API ~PickledValue();
};

/// Makes the tensor that a pickle refers to: `id` is ("storage", class, key, location, count).
using StorageReader = std::function<Tensor(const PickledValue& id)>;
/// Gives the tensor's storage a key, under which it is written beside the pickle.
using StorageWriter = std::function<std::string(const Tensor& tensor)>;

/// Reads a pickle. Error(value) names `path` and what is wrong: an operation or a function that files of tensors do not
/// have, values that do not fit or hold themselves, or shared values that would be too many one by one.
Pickled read_pickle(std::string_view bytes, const StorageReader& storage, const std::string& path);
/// Writes a pickle (protocol 2) that PyTorch reads.
std::string write_pickle(const PickledValue& value, const StorageWriter& storage);

}  // namespace vesta::io
