#include <vesta/core/tensor_impl.h>

#include <new>

#include <vesta/core/pool.h>
#include <vesta/core/sparse.h>

namespace vesta {

PythonPort python_port;
constinit thread_local LayerState layer_state __attribute__((tls_model("initial-exec"))) = {};

namespace {
/// Checks that every element lies inside the storage; the arithmetic is checked too.
void check_extent(const Storage& s, IntSpan sizes, IntSpan strides, int64_t offset, DType d, const char* op) {
  int64_t last = offset;
  VESTA_CHECK(offset >= 0, value, op, ": expected a storage offset >= 0, got ", offset, ".");
  checked_mul(offset, itemsize(d), op);  // also for an empty tensor, which has an address
  for (size_t i = 0; i < sizes.size(); ++i) {
    VESTA_CHECK(strides[i] >= 0, value, op, ": expected strides >= 0, got ", strides, ".");
    if (sizes[i] == 0) return;
    last = checked_add(last, checked_mul(sizes[i] - 1, strides[i], op), op);
  }
  int64_t bytes = checked_mul(checked_add(last, 1, op), itemsize(d), op);
  VESTA_CHECK(uint64_t(bytes) <= s.nbytes(), value, op, ": sizes ", sizes, ", strides ", strides, " and offset ",
              offset, " need ", bytes, " bytes, the storage has ", s.nbytes(), ".");
}
}  // namespace

TensorImpl::TensorImpl(StoragePtr storage, DType dtype, Device device)
    : dtype_(dtype), device_(device), storage_(std::move(storage)) {}

void TensorImpl::set_dims(IntSpan sizes, IntSpan strides) {
  size_t n = sizes.size();
  int64_t* to = fits_inline(n) ? inline_ : new int64_t[2 * n];
  if (n) {
    std::memmove(to, sizes.data(), n * sizeof(int64_t));
    std::memmove(to + n, strides.data(), n * sizeof(int64_t));
  }
  dims_ = to;
  ndim_ = uint8_t(n);
}

intrusive_ptr<TensorImpl> TensorImpl::make(StoragePtr storage, IntSpan sizes, IntSpan strides, int64_t offset,
                                           DType dtype, const char* op) {
  int64_t n = numel_of(sizes, op);
  check_extent(*storage, sizes, strides, offset, dtype, op);
  const Device device = storage->device();
  auto* t = new (pool::take_counted(sizeof(TensorImpl))) TensorImpl(std::move(storage), dtype, device);
  auto owner = intrusive_ptr<TensorImpl>::first(t);
  t->offset_ = offset, t->numel_ = n;
  t->set_dims(sizes, strides);
  t->contiguous_ = is_contiguous(sizes, strides);
  t->dense_ = t->contiguous_ || is_non_overlapping_and_dense(sizes, strides);
  t->inference = layer_state.inference;
  t->layers = uint8_t(t->inference << int(Layer::autograd));  // so that a write outside the mode is refused
  return owner;
}

intrusive_ptr<TensorImpl> TensorImpl::make_sparse(intrusive_ptr<SparseParts> parts, StoragePtr storage, IntSpan sizes,
                                                  DType dtype, const char* op) {
  const int64_t n = numel_of(sizes, op);
  const Device device = storage->device();
  auto* t = new (pool::take_counted(sizeof(TensorImpl))) TensorImpl(std::move(storage), dtype, device);
  auto owner = intrusive_ptr<TensorImpl>::first(t);
  t->numel_ = n;
  t->set_dims(sizes, Dims(sizes.size(), 0));
  t->contiguous_ = t->dense_ = false;
  t->sparse_parts = std::move(parts);
  t->inference = layer_state.inference;
  t->layers = uint8_t(bit(Layer::sparse) | (t->inference ? bit(Layer::autograd) : 0u));
  return owner;
}

intrusive_ptr<TensorImpl> TensorImpl::make_contiguous(IntSpan sizes, int64_t numel, DType dtype, Device device) {
  TensorImpl* t;
  {
    StoragePtr storage = Storage::allocate(size_t(numel) * size_t(itemsize(dtype)), device);
    void* const block = pool::take_counted(sizeof(TensorImpl));
    t = new (block) TensorImpl(StoragePtr::adopt(storage.get()), dtype, device);
    storage.detach();  // last, so that the compiler sees that nothing is left to release
  }
  auto owner = intrusive_ptr<TensorImpl>::first(t);
  t->numel_ = numel;
  size_t n = sizes.size();
  int64_t* to = fits_inline(n) ? t->inline_ : new int64_t[2 * n];
  int64_t step = 1;
  for (size_t i = n; i-- > 0;) {
    to[i] = sizes[i], to[n + i] = step;
    step *= sizes[i] ? sizes[i] : 1;
  }
  t->dims_ = to, t->ndim_ = uint8_t(n);
  t->inference = layer_state.inference;
  t->layers = uint8_t(t->inference << int(Layer::autograd));  // so that a write outside the mode is refused
  return owner;
}

[[gnu::noinline]] void TensorImpl::release_extras() noexcept {
  delete autograd;
  if (owns_pyobject) python_port.release(pyobject);
  sparse_parts.reset();
  base.reset();
  versions.reset();
}

[[gnu::flatten]] void TensorImpl::destroy(TensorImpl* t) noexcept {
  if (t->has_extras()) [[unlikely]]
    t->release_extras();
  if (!fits_inline(t->ndim_)) [[unlikely]]
    delete[] t->dims_;
  t->storage_.reset();
  pool::give_counted(t, sizeof(TensorImpl));  // without a destructor: nothing is left that it would release
}

void TensorImpl::set_geometry(IntSpan sizes, IntSpan strides, int64_t offset, const char* op) {
  set_storage(storage_, sizes, strides, offset, dtype_, op);
}

void TensorImpl::set_storage(StoragePtr storage, IntSpan sizes, IntSpan strides, int64_t offset, DType dtype,
                             const char* op) {
  VESTA_CHECK(!is_sparse(), not_implemented, op, ": expected a dense tensor, got a sparse one.");
  int64_t n = numel_of(sizes, op);
  check_extent(*storage, sizes, strides, offset, dtype, op);
  Dims new_sizes(sizes), new_strides(strides);  // the spans may point into this very tensor
  int64_t* old = dims_;
  set_dims(new_sizes, new_strides);
  if (old != inline_ && old != dims_) delete[] old;
  storage_ = std::move(storage);
  dtype_ = dtype, device_ = storage_->device();
  numel_ = n, offset_ = offset;
  contiguous_ = is_contiguous(new_sizes, new_strides);
  dense_ = contiguous_ || is_non_overlapping_and_dense(new_sizes, new_strides);
}

}  // namespace vesta
