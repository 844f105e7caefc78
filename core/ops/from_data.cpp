#include <vesta/core/ops/from_data.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include <vesta/core/dispatch/layer.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/shape.h>

namespace vesta {

TensorData::TensorData(std::initializer_list<TensorData> parts) {
  if (parts.size() == 0) {
    sizes_.push_back(0);
    return;
  }
  const TensorData& first = *parts.begin();
  sizes_.push_back(int64_t(parts.size()));
  for (const int64_t size : first.sizes_) sizes_.push_back(size);
  dtype_ = first.dtype_;
  for (const TensorData& part : parts) {
    VESTA_CHECK(std::ranges::equal(part.sizes_, first.sizes_), value,
                "tensor: expected lists of equal lengths side by side, got ", IntSpan(first.sizes_), " and ",
                IntSpan(part.sizes_), ".");
    // bool < int64 < floating < complex
    if (part.dtype_ != dtype_) dtype_ = promote(dtype_, part.dtype_);
    values_.insert(values_.end(), part.values_.begin(), part.values_.end());
  }
}

namespace {

/// Moves a tensor made on the CPU to what was asked for.
Tensor moved(const Tensor& made, MaybeDType dtype, MaybeDevice device) {
  const bool other = (dtype && *dtype != made.dtype()) || (device && *device != made.device());
  return other ? _to_copy(made, dtype, device) : made;
}

template <class T>
Scalar scalar_of(T value) {
  if constexpr (std::is_arithmetic_v<T>) return value;
  else if constexpr (requires { value.imag(); }) return complex128(double(value.real()), double(value.imag()));
  else return double(value);
}

}  // namespace

Tensor tensor(const TensorData& data, MaybeDType dtype, MaybeDevice device) {
  const NoGrad off;
  const Tensor made = empty_tensor(data.sizes(), dtype.value_or(data.dtype()));
  visit(made.dtype(), [&]<class T>() {
    T* p = reinterpret_cast<T*>(made.impl()->data());
    for (size_t i = 0; i < data.values().size(); ++i) p[i] = data.values()[i].to<T>("tensor");
  });
  return moved(made, {}, device);
}

Tensor detail::copied(const void* values, int64_t count, DType from, MaybeDType dtype, MaybeDevice device) {
  const NoGrad off;
  const Tensor made = empty_tensor(IntList(count), dtype.value_or(from));
  if (made.dtype() == from) {
    if (count) std::memcpy(made.impl()->data(), values, size_t(count * itemsize(from)));
  } else {
    visit(from, [&]<class From>() {
      visit(made.dtype(), [&]<class T>() {
        T* p = reinterpret_cast<T*>(made.impl()->data());
        for (int64_t i = 0; i < count; ++i)
          p[i] = scalar_of(static_cast<const From*>(values)[i]).template to<T>("tensor");
      });
    });
  }
  return moved(made, {}, device);
}

Tensor from_blob(void* data, IntList sizes, DType dtype, std::function<void(void*)> deleter, MaybeDims strides) {
  constexpr const char* op = "from_blob";
  Dims steps = strides ? *strides : contiguous_strides(sizes);
  VESTA_CHECK(steps.size() == sizes.size(), value, op, ": expected a stride for each of ", sizes.size(),
              " dimensions, got ", steps.size(), ".");
  int64_t last = 0;  // the last element's place
  for (size_t d = 0; d < sizes.size(); ++d) {
    VESTA_CHECK(sizes[d] >= 0 && steps[d] >= 0, value, op, ": expected sizes and strides >= 0, got ", IntSpan(sizes),
                " and ", IntSpan(steps), ".");
    if (sizes[d] > 0) last = checked_add(last, checked_mul(sizes[d] - 1, steps[d], op), op);
  }
  const int64_t count = numel_of(sizes, op);
  VESTA_CHECK(data || count == 0, value, op, ": expected a pointer, got null for a tensor of ", IntSpan(sizes), ".");
  const int64_t bytes = count == 0 ? 0 : checked_mul(checked_add(last, 1, op), itemsize(dtype), op);
  struct Held {
    void* data;
    std::function<void(void*)> deleter;
  };
  auto held = std::make_unique<Held>(Held{data, std::move(deleter)});
  const auto release = [](void* context) {
    const std::unique_ptr<Held> owned(static_cast<Held*>(context));
    if (owned->deleter) owned->deleter(owned->data);
  };
  auto storage = Storage::wrap(data, size_t(bytes), Device(), held.get(), release);
  (void)held.release();  // the storage has it
  return Tensor(TensorImpl::make(std::move(storage), sizes, steps, 0, dtype, op));
}

}  // namespace vesta
