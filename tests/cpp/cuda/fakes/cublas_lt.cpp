// A cuBLASLt for the emulated device: the functions that cuda/lib/cublas_lt.cpp calls, with their published meanings,
// computing by plain loops in long double. Becomes build/fakes/libcublasLt.so.13. FAKE_CUBLAS_LT chooses what it does:
// `refuse` has no algorithm for anything, `old` gives an old version, `strided` takes no arrays of pointers, `plain`
// no epilogue but a bias, `narrow` no float32 results of 16-bit floats.
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <string>

#include <vesta/core/base/half.h>
#include <vesta/cuda/lib/cublas_lt_abi.h>

namespace {
namespace lt = vesta::cuda::cublas_lt;

struct Desc {
  int compute = 0, scale = 0, transa = 0, transb = 0, epilogue = lt::epilogue_default, bias_type = 0;
  const void* bias = nullptr;
  void* aux = nullptr;
  int64_t aux_ld = 0;
  bool has_bias() const { return (epilogue & lt::epilogue_bias) != 0; }
  int kind() const { return epilogue & ~lt::epilogue_bias; }
  bool is_relu() const { return kind() == lt::epilogue_relu || kind() == lt::epilogue_relu_aux; }
  bool is_gelu() const { return kind() == lt::epilogue_gelu || kind() == lt::epilogue_gelu_aux; }
  bool is_gradient() const { return epilogue == lt::epilogue_relu_backward || epilogue == lt::epilogue_gelu_backward; }
  bool has_aux() const { return is_gradient() || kind() == lt::epilogue_relu_aux || kind() == lt::epilogue_gelu_aux; }
  bool has_bits() const { return kind() == lt::epilogue_relu_aux || epilogue == lt::epilogue_relu_backward; }
};
struct Matrix {
  int type = 0;
  uint64_t rows = 0, cols = 0;
  int64_t ld = 0, step = 0;
  int count = 1;
  uint32_t mode = lt::batch_strided;
};
uint64_t calls = 0, tf32_calls = 0, bias_gradients = 0, activations = 0, activation_gradients = 0;

bool told(const char* what) {
  const char* text = std::getenv("FAKE_CUBLAS_LT");
  return text && std::strcmp(text, what) == 0;
}

/// One queued product. pc is null unless the sums start from it.
struct Work {
  Desc desc;
  Matrix a, b, c, d;
  const void *pa, *pb, *pc;
  void* pd;
};

template <class T>
using sum_t = std::conditional_t<std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>,
                                 std::complex<long double>, long double>;

template <class T>
sum_t<T> wide(T v) {
  if constexpr (std::is_class_v<T> && sizeof(T) == 2) return static_cast<float>(v);
  else return v;
}

template <class T>
T narrow(sum_t<T> sum) {
  if constexpr (std::is_class_v<T> && sizeof(T) == 2) return T(float(sum));
  else return T(sum);
}

template <class T>
constexpr bool is_complex = std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

/// The GELU with tanh.
long double gelu(long double x) {
  return x / 2 * (1 + std::tanh(0.7978845608028653558798921198687637369L * (x + 0.044715L * x * x * x)));
}

/// Its slope.
long double gelu_slope(long double x) {
  const long double c = 0.7978845608028653558798921198687637369L;
  const long double t = std::tanh(c * (x + 0.044715L * x * x * x));
  return (1 + t) / 2 + x / 2 * (1 - t * t) * c * (1 + 3 * 0.044715L * x * x);
}

/// A place of the auxiliary matrix: an element, or a bit. The order of bits is the library's own affair: here the last
/// one of a byte comes first, so that nobody can rely on another.
struct Auxiliary {
  void* data;
  uint64_t at;
  template <class T>
  T& element() const {
    return static_cast<T*>(data)[at];
  }
  void set_bit(bool on) const {
    uint8_t& byte = static_cast<uint8_t*>(data)[at / 8];
    const auto bit = uint8_t(128 >> at % 8);
    byte = uint8_t(on ? byte | bit : byte & ~bit);
  }
  bool bit() const { return (static_cast<uint8_t*>(data)[at / 8] >> (7 - at % 8) & 1) != 0; }
};

/// Returns a sum as an epilogue writes it, and writes what it keeps.
template <class T>
long double finish(const Desc& m, long double sum, Auxiliary aux) {
  switch (m.kind()) {
    case lt::epilogue_relu_aux: aux.set_bit(sum > 0); return std::fmax(sum, 0);  // as the library: 0 for NaN
    case lt::epilogue_relu: return std::fmax(sum, 0);
    case lt::epilogue_gelu_aux: aux.element<T>() = narrow<T>(sum); return gelu(sum);
    case lt::epilogue_gelu: return gelu(sum);
    case lt::epilogue_relu_backward: return aux.bit() ? sum : 0;
    case lt::epilogue_gelu_backward: return sum * gelu_slope(wide(aux.element<T>()));
    default: return sum;
  }
}

/// Returns matrix i of a batch: at a distance from the first one, or from an array of pointers on the device.
template <class T, class P>
T* matrix(const Matrix& m, P p, int i) {
  if (m.mode == lt::batch_pointer_array) return static_cast<T* const*>(static_cast<const void*>(p))[i];
  return static_cast<T*>(p) + i * m.step;
}

/// Multiplies matrices of T into one of R.
template <class T, class R = T>
void compute(const Work& w) {
  const uint64_t inner = w.desc.transa == lt::op_t ? w.a.rows : w.a.cols;
  for (int i = 0; i < w.d.count; ++i) {
    const T* a = matrix<const T>(w.a, w.pa, i);
    const T* b = matrix<const T>(w.b, w.pb, i);
    R* d = matrix<R>(w.d, w.pd, i);
    const R* c = w.pc ? matrix<const R>(w.c, w.pc, i) : nullptr;
    for (uint64_t col = 0; col < w.d.cols; ++col) {
      for (uint64_t row = 0; row < w.d.rows; ++row) {
        sum_t<T> sum = 0;
        for (uint64_t k = 0; k < inner; ++k) {
          sum += wide(w.desc.transa == lt::op_t ? a[row * uint64_t(w.a.ld) + k] : a[k * uint64_t(w.a.ld) + row]) *
                 wide(w.desc.transb == lt::op_t ? b[k * uint64_t(w.b.ld) + col] : b[col * uint64_t(w.b.ld) + k]);
        }
        if (c) sum += wide(c[col * uint64_t(w.c.ld) + row]);
        if (w.desc.has_bias()) sum += wide(static_cast<const T*>(w.desc.bias)[row]);
        if constexpr (!is_complex<T>) sum = finish<T>(w.desc, sum, {w.desc.aux, col * uint64_t(w.desc.aux_ld) + row});
        d[col * uint64_t(w.d.ld) + row] = narrow<R>(sum);
      }
      if (w.desc.epilogue != lt::epilogue_bias_gradient_b) continue;
      sum_t<T> sum = 0;
      for (uint64_t k = 0; k < inner; ++k)
        sum += wide(w.desc.transb == lt::op_t ? b[k * uint64_t(w.b.ld) + col] : b[col * uint64_t(w.b.ld) + k]);
      static_cast<T*>(const_cast<void*>(w.desc.bias))[col] = narrow<T>(sum);
    }
  }
}

void run(void* argument) {
  const Work* w = static_cast<Work*>(argument);
  const bool widens = w->a.type != w->d.type;
  switch (w->a.type) {
    case lt::r_32f: compute<float>(*w); break;
    case lt::r_64f: compute<double>(*w); break;
    case lt::r_16f: widens ? compute<vesta::Half, float>(*w) : compute<vesta::Half>(*w); break;
    case lt::r_16bf: widens ? compute<vesta::BFloat16, float>(*w) : compute<vesta::BFloat16>(*w); break;
    case lt::c_32f: compute<std::complex<float>>(*w); break;
    case lt::c_64f: compute<std::complex<double>>(*w); break;
    default: break;
  }
  delete w;
}

/// Returns whether descriptors meet cuBLASLt's demands: sizes, leading dimensions, types, a bias only for a type that
/// takes one.
bool fits(const Desc& m, const Matrix& a, const Matrix& b, const Matrix& c, const Matrix& d) {
  const uint64_t rows = m.transa ? a.cols : a.rows, inner = m.transa ? a.rows : a.cols;
  const uint64_t inner2 = m.transb ? b.cols : b.rows, cols = m.transb ? b.rows : b.cols;
  if (rows != d.rows || cols != d.cols || inner != inner2 || a.type != b.type) return false;
  const bool widens = d.type == lt::r_32f && (a.type == lt::r_16f || a.type == lt::r_16bf);
  if (a.type != d.type && (!widens || told("narrow"))) return false;
  if (c.type != d.type || c.rows != d.rows || c.cols != d.cols) return false;
  for (const Matrix* x : {&a, &b, &c, &d}) {
    if (x->ld < int64_t(x->rows) || x->rows == 0 || x->cols == 0 || x->count != d.count || x->mode != d.mode)
      return false;
  }
  const bool real32 = d.type == lt::r_32f || d.type == lt::r_16f || d.type == lt::r_16bf;
  if (m.epilogue == lt::epilogue_default) return true;
  const bool takes_bias = m.has_bias() || m.epilogue == lt::epilogue_bias_gradient_b;
  if (takes_bias && (!m.bias || m.bias_type != d.type)) return false;
  if (m.has_aux() && (!m.aux || m.aux_ld % (m.has_bits() ? 128 : 8) != 0 || m.aux_ld < int64_t(d.rows))) return false;
  if (m.has_aux() && reinterpret_cast<uintptr_t>(m.aux) % 16 != 0) return false;
  return real32 && (m.epilogue == lt::epilogue_bias || !told("plain"));
}

void enqueue(void* stream, Work* w) {
  using Enqueue = void (*)(void*, const char*, void (*)(void*), void*);
  void* library = dlopen(std::getenv("VESTA_CUDA_LIBRARY"), RTLD_NOW | RTLD_NOLOAD);
  reinterpret_cast<Enqueue>(dlsym(library, "vesta_emulation_enqueue"))(stream, "fake_cublas_lt", run, w);
  dlclose(library);
}

/// Returns whether beta, a number of the scale's type, is 1; the only other one that is used is 0.
bool adds(const void* beta, const Desc& m) {
  const bool is_double = m.scale == lt::r_64f || m.scale == lt::c_64f;
  return (is_double ? *static_cast<const double*>(beta) : double(*static_cast<const float*>(beta))) == 1;
}

template <class T>
void assign(T& to, const void* from, size_t size) {
  if (size == sizeof to) std::memcpy(&to, from, size);
}
}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT uint64_t fake_calls() { return calls; }
EXPORT uint64_t fake_bias_gradients() { return bias_gradients; }
EXPORT uint64_t fake_activations() { return activations; }
EXPORT uint64_t fake_activation_gradients() { return activation_gradients; }
EXPORT uint64_t fake_tf32_calls() { return tf32_calls; }
EXPORT size_t cublasLtGetVersion() { return told("old") ? 110000 : 130100; }
EXPORT int cublasLtCreate(void** handle) {
  *handle = &calls;
  return 0;
}
EXPORT int cublasLtMatmulDescCreate(void** to, int compute, int scale) {
  *to = new Desc{compute, scale};
  return 0;
}
EXPORT int cublasLtMatmulDescDestroy(void* d) {
  delete static_cast<Desc*>(d);
  return 0;
}
EXPORT int cublasLtMatmulDescSetAttribute(void* d, int attribute, const void* value, size_t size) {
  Desc& m = *static_cast<Desc*>(d);
  switch (attribute) {
    case lt::desc_transa: assign(m.transa, value, size); break;
    case lt::desc_transb: assign(m.transb, value, size); break;
    case lt::desc_epilogue: assign(m.epilogue, value, size); break;
    case lt::desc_bias_pointer: assign(m.bias, value, size); break;
    case lt::desc_aux_pointer: assign(m.aux, value, size); break;
    case lt::desc_aux_ld: assign(m.aux_ld, value, size); break;
    case lt::desc_bias_data_type: assign(m.bias_type, value, size); break;
    default: return 7;
  }
  return 0;
}
EXPORT int cublasLtMatrixLayoutCreate(void** to, int type, uint64_t rows, uint64_t cols, int64_t ld) {
  *to = new Matrix{type, rows, cols, ld};
  return 0;
}
EXPORT int cublasLtMatrixLayoutDestroy(void* l) {
  delete static_cast<Matrix*>(l);
  return 0;
}
EXPORT int cublasLtMatrixLayoutSetAttribute(void* l, int attribute, const void* value, size_t size) {
  Matrix& m = *static_cast<Matrix*>(l);
  if (attribute == lt::layout_batch_count) assign(m.count, value, size);
  else if (attribute == lt::layout_strided_batch_offset) assign(m.step, value, size);
  else if (attribute == lt::layout_batch_mode && !told("strided")) assign(m.mode, value, size);
  else return 7;
  return 0;
}
EXPORT int cublasLtMatmulPreferenceCreate(void** to) {
  *to = new int;
  return 0;
}
EXPORT int cublasLtMatmulPreferenceDestroy(void* p) {
  delete static_cast<int*>(p);
  return 0;
}
EXPORT int cublasLtMatmulPreferenceSetAttribute(void*, int, const void*, size_t) { return 0; }
EXPORT int cublasLtMatmulAlgoGetHeuristic(void*, void* m, void* a, void* b, void* c, void* d, void*, int,
                                          lt::HeuristicResult* to, int* found) {
  *found = 0;
  if (told("refuse") || !fits(*static_cast<Desc*>(m), *static_cast<Matrix*>(a), *static_cast<Matrix*>(b),
                              *static_cast<Matrix*>(c), *static_cast<Matrix*>(d))) {
    return 15;
  }
  to[0] = {};
  to[0].workspace = 1 << 20;
  *found = 1;
  return 0;
}
EXPORT int cublasLtMatmul(void*, void* m, const void*, const void* a, void* la, const void* b, void* lb,
                          const void* beta, const void* c, void* lc, void* d, void* ld, const lt::Algo*,
                          void* workspace, size_t, void* stream) {
  if (!workspace) return 7;
  Work* w = new Work{*static_cast<Desc*>(m),
                     *static_cast<Matrix*>(la),
                     *static_cast<Matrix*>(lb),
                     *static_cast<Matrix*>(lc),
                     *static_cast<Matrix*>(ld),
                     a,
                     b,
                     adds(beta, *static_cast<Desc*>(m)) ? c : nullptr,
                     d};
  ++calls;
  tf32_calls += w->desc.compute == lt::compute_32f_fast_tf32;
  bias_gradients += w->desc.epilogue == lt::epilogue_bias_gradient_b;
  activations += w->desc.is_relu() || w->desc.is_gelu();
  activation_gradients += w->desc.is_gradient();
  enqueue(stream, w);
  return 0;
}
