#include <vesta/autograd/register.h>

#include <string>
#include <string_view>
#include <utility>

#include <vesta/autograd/engine.h>
#include <vesta/autograd/grad_meta.h>
#include <vesta/autograd/rules/rules.h>
#include <vesta/core/autograd_port.h>
#include <vesta/core/cpu/register.h>
#include <vesta/core/dispatch/profiler.h>
#include <vesta/core/meta/register.h>
#include <vesta/core/ops/register.h>
#include <vesta/core/torch_rules.h>

namespace vesta::autograd {
namespace {

/// Returns PyTorch's name of the step that made `t`, as a printed tensor of a PyTorch program shows it, where the step
/// and the number of dimensions say which it is; else the step's own.
std::string pytorchs_step(const Node& fn, const Tensor& t) {
  static constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"GeluErfBackward0", "GeluBackward0"},
      {"GeluTanhBackward0", "GeluBackward0"},
      {"GatedBackward0", "GluBackward0"},
      {"RootBackward0", "LinalgVectorNormBackward0"},
      {"Log1pBackward0", "Log1PBackward0"},
      {"LogsigmoidBackward0", "LogSigmoidBackward0"},
      {"SeluBackward0", "EluBackward0"},
      {"PreluBackward0", "PreluKernelBackward0"},
      {"SquareBackward0", "PowBackward0"},
      {"ClampBetweenBackward0", "ClampBackward1"},
      {"NativeDropoutBackward0", "MulBackward0"},
      {"CopyBackward0", "CopyBackwards"},
      {"ConvolutionBackwardInputBackward0", "ConvolutionBackward0"},
      {"LinalgSolveBackward0", "LinalgSolveExBackward0"},
      {"LinalgInvBackward0", "LinalgInvExBackward0"},
      {"FftC2cBackward0", "FftC2CBackward0"},
      {"FftR2cBackward0", "FftR2CBackward0"},
      {"FftC2rBackward0", "FftC2RBackward0"},
      {"FusedAttentionBackward0", "ScaledDotProductFlashAttentionForCpuBackward0"},
  };
  std::string name = fn.shown_name();
  if (name != fn.name()) return name;
  for (const auto& [ours, theirs] : kNames) {
    if (name == ours) return std::string(theirs);
  }
  const int64_t dims = t.dim();
  if (name == "LinearBackward0" && dims == 2) {
    return fn.edges().size() > 2 && fn.edges()[2].node ? "AddmmBackward0" : "MmBackward0";
  }
  if (name == "MatmulBackward0" && dims == 2) return "MmBackward0";
  if (name == "MatmulBackward0" && dims == 0) return "DotBackward0";
  if (name == "MatmulBackward0" && dims > 2) return "UnsafeViewBackward0";
  if (name == "SumBackward0") return dims ? "SumBackward1" : name;
  if (name == "MeanBackward0") return dims ? "MeanBackward1" : name;
  if (name == "MaxPoolBackward0" && dims >= 4) {
    return dims == 4 ? "MaxPool2DWithIndicesBackward0" : "MaxPool3DWithIndicesBackward0";
  }
  return name;
}

}  // namespace

void register_autograd() {
  rules::register_all();

  profiler::port.node_counter = [] { return sequence_counter; };
  profiler::port.switched = &watch_by_profiler;

  autograd_port.backward = [](const Tensor& t, const Tensor& gradient, bool retain_graph, bool create_graph) {
    run_backward(TensorList::Span(&t, 1), TensorList::Span(&gradient, 1),
                 BackwardOptions{retain_graph || create_graph, create_graph, true, false});
  };
  autograd_port.grad = &grad;
  autograd_port.set_grad = &set_grad;
  autograd_port.requires_grad = [](const Tensor& t) { return requires_grad(t); };
  autograd_port.set_requires_grad = &set_requires_grad;
  autograd_port.is_leaf = &is_leaf;
  autograd_port.become_view = &become_view;
  autograd_port.check_inplace = [](const Tensor& t, const char* op) { check_inplace(t, false, op); };
  autograd_port.name_step = [](const Tensor& t, const char* name) {
    if (const NodePtr fn = grad_fn(t)) fn->show_as(name);
  };
  autograd_port.flatten_step = [](const Tensor& t) {
    if (const NodePtr fn = grad_fn(t)) fn->make_flat();
  };
  autograd_port.repr_suffix = [](const Tensor& t) -> std::string {
    if (!requires_grad(t)) return {};
    NodePtr fn = grad_fn(t);
    return fn ? "grad_fn=<" + (follows_torch() ? pytorchs_step(*fn, t) : fn->name()) + ">" : "requires_grad=True";
  };
}

}  // namespace vesta::autograd

namespace vesta {

// This is the one place where the parts are put together, and so the one file that includes leaves (core/cpu,
// core/meta).
void initialize() {
  register_ops();
  cpu::register_backend();
  cpu::register_all();
  meta::register_backend();
  meta::register_all();
  autograd::register_autograd();
}

namespace {
// Runs when the library is loaded: a program that links libvesta.so or imports the extension finds working ops and
// need not make a call of its own. The order within initialize() is written out, and what it touches is
// constant-initialised, so it depends on no other static object.
[[gnu::constructor]] void on_load() { initialize(); }
}  // namespace

}  // namespace vesta
