// squared_relu(x) = max(x, 0)^2, elementwise, with its gradient 2 max(x, 0): So et al., "Primer", 2021.
// squared_relu.py compiles it, with squared_relu.cu where there is nvcc.
#include <vesta/extension.h>

using vesta::Tensor, vesta::TensorVector;

void squared_relu_cuda(const Tensor& x, const Tensor& grad, Tensor& out);  // in squared_relu.cu

namespace {

// out = max(x, 0)^2, or grad * 2 max(x, 0) where there is a grad; all contiguous.
template <class T>
void loop(const Tensor& x, const Tensor& grad, Tensor& out) {
  const T* from = x.data_ptr<T>();
  const T* g = grad.defined() ? grad.data_ptr<T>() : nullptr;
  T* to = out.data_ptr<T>();
  for (int64_t i = 0, n = x.numel(); i < n; ++i) {
    const T v = from[i] > 0 ? from[i] : T(0);
    to[i] = g ? g[i] * 2 * v : v * v;
  }
}

Tensor run(const Tensor& x, const Tensor& grad) {
  VESTA_CHECK(x.dtype() == vesta::DType::float32 || x.dtype() == vesta::DType::float64, type,
              "squared_relu: expected float32 or float64, got ", x.dtype(), " (x).");
  Tensor in = x.contiguous(), g = grad.defined() ? grad.contiguous() : grad, out = vesta::empty_like(in);
  if (x.device().type() == vesta::DeviceType::cpu) {
    if (x.dtype() == vesta::DType::float32) loop<float>(in, g, out);
    else loop<double>(in, g, out);
    return out;
  }
#ifdef WITH_CUDA
  squared_relu_cuda(in, g, out);
  return out;
#else
  VESTA_CHECK(false, device, "squared_relu: expected a tensor on the CPU, got one on ", x.device(), " (x).");
#endif
}

struct SquaredRelu : vesta::autograd::Function<SquaredRelu> {
  static constexpr char name[] = "SquaredReluBackward";
  static Tensor forward(vesta::autograd::Context& context, const Tensor& x) {
    context.save_for_backward({x});
    return run(x, {});
  }
  static TensorVector backward(vesta::autograd::Context& context, const TensorVector& grads) {
    return {run(context.saved()[0], grads[0])};
  }
};

}  // namespace

PYBIND11_MODULE(VESTA_EXTENSION_NAME, m) {
  m.def("squared_relu", [](const Tensor& x) { return SquaredRelu::apply(x); }, "max(x, 0)^2, elementwise");
}
