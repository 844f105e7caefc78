#include <vesta/autograd/gradcheck.h>

#include <cmath>

#include <vesta/autograd/engine.h>
#include <vesta/autograd/grad_meta.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/random.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/trigonometric.h>
#include <vesta/core/ops/view.h>

namespace vesta::autograd {
namespace {

/// Reads real number i of a float64 or complex128 tensor (a complex element has two).
double number_at(const Tensor& t, int64_t i) { return static_cast<const double*>(t.data_ptr())[i]; }
int64_t numbers_in(const Tensor& t) { return t.numel() * (t.is_complex() ? 2 : 1); }

Tensor as_wide(const Tensor& t) {
  return contiguous(t.detach().to(t.is_complex() ? DType::complex128 : DType::float64));
}

/// Returns leaves equal to the inputs, in their own memory.
std::vector<Tensor> fresh_leaves(const std::vector<Tensor>& inputs) {
  std::vector<Tensor> r;
  for (const Tensor& t : inputs) {
    if (!t.defined() || !requires_grad(t)) {
      r.push_back(t);
      continue;
    }
    VESTA_CHECK(t.dtype() == DType::float64 || t.dtype() == DType::complex128, value,
                "gradcheck: expected inputs of float64 or complex128, got ", t.dtype(), ". Use .to(float64).");
    Tensor leaf = clone(contiguous(t.detach()));
    set_requires_grad(leaf, true);
    r.push_back(leaf);
  }
  return r;
}

/// Shifts one number of a leaf, calls f, and shifts it back.
Tensor shifted(const CheckedFunction& f, const std::vector<Tensor>& leaves, const Tensor& leaf, int64_t i, double by) {
  NoGrad off;
  double& x = static_cast<double*>(leaf.data_ptr())[i];
  const double old = x;
  x = old + by;
  Tensor y = clone(as_wide(f(leaves)));
  x = old;
  return y;
}

/// Returns the gradient of output number k by backward, for each number of each leaf: d y_k / d x.
std::vector<Tensor> row_by_backward(const Tensor& y, const std::vector<Tensor>& wanted, int64_t k) {
  Tensor seed = zeros(y.sizes(), y.dtype());
  static_cast<double*>(seed.data_ptr())[k] = 1;  // along the real or the imaginary axis
  std::vector<Tensor> g = vesta::grad({y}, wanted, {seed}, true, false, true);
  for (size_t i = 0; i < g.size(); ++i) {
    g[i] = g[i].defined() ? as_wide(g[i]) : zeros(wanted[i].sizes(), wanted[i].dtype());
  }
  return g;
}

}  // namespace

bool gradcheck(const CheckedFunction& f, const std::vector<Tensor>& inputs, const GradcheckOptions& o) {
  std::vector<Tensor> leaves = fresh_leaves(inputs), wanted;
  for (const Tensor& t : leaves) {
    if (t.defined() && requires_grad(t)) wanted.push_back(t);
  }
  VESTA_CHECK(!wanted.empty(), value, "gradcheck: expected an input that requires grad, got none.");
  Tensor y = f(leaves);
  if (!requires_grad(y)) return true;
  std::vector<std::vector<Tensor>> rows;
  for (int64_t k = 0; k < numbers_in(y); ++k) rows.push_back(row_by_backward(y, wanted, k));
  for (size_t w = 0; w < wanted.size(); ++w) {
    for (int64_t i = 0; i < numbers_in(wanted[w]); ++i) {
      Tensor up = shifted(f, leaves, wanted[w], i, o.eps), down = shifted(f, leaves, wanted[w], i, -o.eps);
      for (int64_t k = 0; k < numbers_in(y); ++k) {
        double numeric = (number_at(up, k) - number_at(down, k)) / (2 * o.eps);
        double analytic = number_at(rows[size_t(k)][w], i);
        bool close = std::abs(numeric - analytic) <= o.atol + o.rtol * std::abs(numeric);
        VESTA_CHECK(close, runtime, "gradcheck: Jacobian mismatch for output ", k, " with respect to input ", w,
                    " at element ", i, ": differences give ", numeric, ", backward gives ", analytic, ".");
      }
    }
  }
  return true;
}

bool gradgradcheck(const CheckedFunction& f, const std::vector<Tensor>& inputs, const GradcheckOptions& o) {
  Tensor y = f(inputs);
  Tensor direction;
  {
    NoGrad off;
    Tensor steps = reshape(arange(1, double(y.numel()) + 1, 1, DType::float64), y.sizes());
    direction = sin(steps).to(y.dtype());  // any direction without structure
  }
  set_requires_grad(direction, true);
  std::vector<Tensor> all = inputs;
  all.push_back(direction);
  auto gradients = [&](const std::vector<Tensor>& in) {
    EnableGrad on;  // the inner gradient is part of the function, even where gradcheck only evaluates it
    std::vector<Tensor> xs(in.begin(), in.end() - 1), wanted;
    for (const Tensor& t : xs) {
      if (t.defined() && requires_grad(t)) wanted.push_back(t);
    }
    Tensor out = f(xs);
    std::vector<Tensor> g = vesta::grad({out}, wanted, {in.back()}, true, true, true);
    std::vector<Tensor> flat;
    for (size_t i = 0; i < g.size(); ++i) {
      if (g[i].defined()) flat.push_back(reshape(g[i], -1));
    }
    return cat(flat);
  };
  return gradcheck(gradients, all, o);
}

}  // namespace vesta::autograd
