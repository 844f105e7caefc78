// TensorImpl: what a Tensor handle points at. The struct's own comments are the tour of its fields.
#pragma once
#include <cstring>

#include <vesta/core/base/relaxed.h>
#include <vesta/core/dispatch/layer.h>
#include <vesta/core/dtype.h>
#include <vesta/core/shape.h>
#include <vesta/core/storage.h>

namespace vesta {

/// The autograd state of a tensor (gradient, node, hooks, view base); opaque to core.
class VESTA_API AutogradSlot {
 public:
  virtual ~AutogradSlot() = default;
};

/// The port by which a tensor releases a PyObject that it owns because the Python wrapper died first; set by the
/// Python layer.
struct PythonPort {
  void (*release)(void* object) = nullptr;
};
extern VESTA_API PythonPort python_port;

struct SparseParts;

class TensorImpl : public RefCounted {
 public:
  /// Makes a tensor over `storage`. Sizes, strides and offset are in elements. The extent must lie in the storage;
  /// this is always checked.
  VESTA_API static intrusive_ptr<TensorImpl> make(StoragePtr storage, IntSpan sizes, IntSpan strides, int64_t offset,
                                                  DType dtype, const char* op);
  /// Makes a contiguous tensor that fills fresh storage: only the sizes are checked (the hot path).
  VESTA_API static intrusive_ptr<TensorImpl> make_contiguous(IntSpan sizes, int64_t numel, DType dtype, Device device);
  /// Makes a sparse tensor of `parts` (core/sparse.h): no memory but an empty storage, which counts the writes, and
  /// strides of 0.
  VESTA_API static intrusive_ptr<TensorImpl> make_sparse(intrusive_ptr<SparseParts> parts, StoragePtr storage,
                                                         IntSpan sizes, DType dtype, const char* op);
  VESTA_API static void destroy(TensorImpl* t) noexcept;

  IntSpan sizes() const { return {dims_, ndim_}; }
  IntSpan strides() const { return {dims_ + ndim_, ndim_}; }
  int64_t ndim() const { return ndim_; }
  int64_t numel() const { return numel_; }
  int64_t offset() const { return offset_; }
  DType dtype() const { return dtype_; }
  Device device() const { return device_; }
  const StoragePtr& storage() const { return storage_; }
  /// Returns the address of the first element (null if there are no elements and no memory).
  char* data() const { return static_cast<char*>(storage_->data()) + offset_ * itemsize(dtype_); }
  bool contiguous() const { return contiguous_; }
  /// Returns whether the elements fill a block without holes or overlaps, in any order of dimensions.
  bool dense() const { return dense_; }
  /// Returns whether the elements are those of `sparse_parts`, not of the storage.
  bool is_sparse() const { return (layers & bit(Layer::sparse)) != 0; }

  /// Counts the writes through this tensor or any alias of it that shares its counter.
  uint32_t version() const {
    return versions ? versions->version.load(std::memory_order_relaxed) : storage_->version();
  }
  const char* last_writer() const { return versions ? versions->last_writer : storage_->last_writer(); }
  /// Records a write by `op`, whose name must live forever (a literal or an Op's name).
  void bump(const char* op) const {
    if (!versions) [[likely]]
      return storage_->bump(op);
    versions->version.store(version() + 1, std::memory_order_relaxed);
    versions->last_writer = op;
    storage_->bump_unversioned();
  }

  /// Replaces geometry in place (resize_, set_, transpose_); extent checked.
  VESTA_API void set_geometry(IntSpan sizes, IntSpan strides, int64_t offset, const char* op);
  /// Replaces storage, geometry and dtype in place (`x.data = y`).
  VESTA_API void set_storage(StoragePtr storage, IntSpan sizes, IntSpan strides, int64_t offset, DType dtype,
                             const char* op);

  // What owns something is released in destroy(), and counted in has_extras() where most tensors have none.
  Relaxed<uint8_t> layers = 0;   // the layers this tensor wakes up; requires_grad_() may change it on any thread
  bool wrapped_number = false;   // made from a Python number: takes part in promotion weakly
  bool inference = false;        // made in inference mode
  bool view_without_grad = false;  // a view made while recording was off
  bool owns_pyobject = false;    // the wrapper died first: this side keeps it alive now
  AutogradSlot* autograd = nullptr;  // owned
  void* pyobject = nullptr;      // the Python wrapper; borrowed unless owns_pyobject
  intrusive_ptr<VersionCounter> versions;  // of `x.data` and its views; null: the storage's counter
  intrusive_ptr<TensorImpl> base;  // of a view: the tensor that owns the history (never itself a view)
  intrusive_ptr<SparseParts> sparse_parts;  // of a sparse tensor: its indices and values

 private:
  TensorImpl(StoragePtr storage, DType dtype, Device device);
  ~TensorImpl() = delete;  // see destroy()
  void set_dims(IntSpan sizes, IntSpan strides);
  /// Returns whether sizes and strides of `ndim` dimensions lie in the tensor itself.
  static constexpr bool fits_inline(size_t ndim) { return 2 * ndim <= std::size_t(kInline); }
  /// Returns whether anything but the storage and the dimensions must be released with the tensor: one test for most.
  bool has_extras() const noexcept {
    const auto bits = [](const void* p) { return reinterpret_cast<uintptr_t>(p); };
    return (bits(autograd) | bits(versions.get()) | bits(base.get()) | bits(sparse_parts.get()) | owns_pyobject) != 0;
  }
  void release_extras() noexcept;

  static constexpr int kInline = 10;  // enough for five dimensions
  DType dtype_;
  Device device_;
  uint8_t ndim_ = 0;
  bool contiguous_ = true;
  bool dense_ = true;
  int64_t numel_ = 1;
  int64_t offset_ = 0;
  StoragePtr storage_;
  int64_t* dims_ = inline_;  // sizes, then strides
  int64_t inline_[kInline];
};
static_assert(sizeof(TensorImpl) <= 192, "three cache lines: 16 handle state, 24 slots, 32 geometry, 88 dims");

}  // namespace vesta
