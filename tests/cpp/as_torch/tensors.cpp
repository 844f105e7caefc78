// Tensors as libtorch programs use them: options, subscripts, printing, gradients, functions, archives.
#include <c10/util/Optional.h>
#include <torch/script.h>
#include <torch/torch.h>

#include "check.h"

using torch::indexing::Ellipsis;
using torch::indexing::None;
using torch::indexing::Slice;

bool same(const torch::Tensor& a, const torch::Tensor& b) { return torch::equal(a, b) && a.dtype() == b.dtype(); }

void options() {
  const auto wanted = torch::dtype(torch::kFloat64).device(torch::kCPU).requires_grad(true);
  torch::Tensor t = torch::zeros({2, 3}, wanted);
  CHECK(t.dtype() == torch::kDouble && t.requires_grad() && t.device().is_cpu() &&
        t.options().dtype() == torch::kDouble);
  CHECK(torch::ones(3, torch::kLong).scalar_type() == torch::kInt64 &&
        torch::full({2}, 7, torch::kByte).sum().item<int>() == 14);
  CHECK(torch::tensor({1, 2, 3}).dtype() == torch::kLong && torch::tensor({1.5, 2.0}).dtype() == torch::kFloat);
  CHECK(torch::tensor(std::vector<int>{1, 2}).dtype() == torch::kLong && torch::tensor(2).dtype() == torch::kLong);
  CHECK(torch::tensor({{1, 2}, {3, 4}}, torch::kFloat).sizes() == torch::IntArrayRef({2, 2}));
  CHECK(torch::arange(2, 8, 2).sizes().vec() == std::vector<int64_t>{3} && torch::eye(3).sum().item<float>() == 3);
  CHECK(t.to(torch::kInt).dtype() == torch::kInt32 && t.to(torch::kCPU, torch::kHalf).dtype() == torch::kFloat16);
  CHECK(t.to(torch::ones(1, torch::kBool)).dtype() == torch::kBool &&
        t.new_zeros({2}, torch::kLong).dtype() == torch::kLong);
  CHECK(torch::zeros_like(t, torch::kInt).dtype() == torch::kInt && torch::randint(5, {4}).max().item<int64_t>() < 5);
  float memory[] = {1, 2, 3, 4};
  torch::Tensor view = torch::from_blob(memory, {2, 2}, torch::kFloat32);
  view[0][1] = 9;  // written, as in Python
  CHECK(view.data_ptr<float>() == memory && view.accessor<float, 2>()[1][1] == 4 && memory[1] == 9);
  view.index_put_({0, 1}, 2);
  view[1] = torch::tensor({7.0, 8.0});
  CHECK(memory[1] == 2 && memory[3] == 8 && view.nbytes() == 16 && view.use_count() == 1);
  torch::DeviceType kind;
  kind = torch::kCPU;
  CHECK(torch::Device(kind) == torch::Device("cpu") && kind == torch::kCPU &&
        torch::Device(torch::kCUDA, 1).str() == "cuda:1");
  CHECK(t.sum().item().isFloatingPoint());
}

void subscripts() {
  const torch::Tensor t = torch::arange(24).reshape({2, 3, 4});
  CHECK(t.index({1, 2, 3}).item<int>() == 23 && same(t.index({Slice(), 0}), t.select(1, 0)));
  CHECK(same(t.index({Ellipsis, Slice(None, None, 2)}), t.slice(2, 0, 4, 2)) &&
        same(t.index({"...", 1}), t.select(2, 1)));
  CHECK(t.index({None, 0}).sizes() == torch::IntArrayRef({1, 3, 4}) &&
        same(t.index({t > 20}), torch::tensor({21, 22, 23})));
  CHECK(same(t.index({torch::tensor({1, 0}), 0, 0}), torch::tensor({12, 0})) && same(t[torch::tensor(1)], t[1]));
  torch::Tensor u = torch::zeros({3, 3});
  u.index_put_({Slice(1, None), 0}, torch::tensor({5.0, 6.0}));
  u += 1;
  u *= 2;
  CHECK(u.sum().item<float>() == 40);
  CHECK_RAISES(t.index({5}), "index");
  CHECK_RAISES(torch::ones({2}).view({3}), "view");
}

void printing() {
  CHECK_TEXT(torch::ones({2, 2}), " 1  1\n 1  1\n[ CPUFloatType{2,2} ]");
  CHECK_TEXT(torch::tensor({0.5, -2.25}), " 0.5000\n-2.2500\n[ CPUFloatType{2} ]");
  CHECK_TEXT(torch::tensor(1.1), "1.100000023841858\n[ CPUFloatType{} ]");
  CHECK_TEXT(torch::tensor({1000.5, 0.25}), " 1000.5000\n    0.2500\n[ CPUFloatType{2} ]");
  CHECK_TEXT(torch::tensor({1e6, 1.5}), " 1.0000e+06\n 1.5000e+00\n[ CPUFloatType{2} ]");
  CHECK_TEXT(torch::zeros({2, 1, 2}, torch::kInt), "(1,.,.) = \n 0  0\n\n(2,.,.) = \n 0  0\n[ CPUIntType{2,1,2} ]");
  // As libtorch: the first row is not indented, rows behind a scale are by one more.
  CHECK_TEXT(torch::tensor({{{0.5}, {-1.5}}}), "(1,.,.) = \n 0.5000\n -1.5000\n[ CPUFloatType{1,2,1} ]");
  CHECK_TEXT(torch::tensor({{0.001}, {0.002}}), "0.001 *\n 1.0000\n  2.0000\n[ CPUFloatType{2,1} ]");
  CHECK_TEXT(torch::tensor({4000000.5, 5000000.5}), "1000000 *\n 4.0000\n 5.0000\n[ CPUFloatType{2} ]");
  CHECK_TEXT(torch::Tensor(), "[ Tensor (undefined) ]");
  CHECK_TEXT(torch::zeros({0}), "[ CPUFloatType{0} ]");
  CHECK_TEXT(torch::zeros({2, 3}).sizes(), "[2, 3]");
  CHECK_TEXT(torch::zeros({2}).dtype(), "float");
  CHECK_TEXT(torch::Device(torch::kCUDA, 0), "cuda:0");
}

struct Scaled : torch::autograd::Function<Scaled> {
  static torch::Tensor forward(torch::autograd::AutogradContext* ctx, torch::Tensor x, double by, torch::Tensor none) {
    CHECK(!none.defined());
    ctx->save_for_backward({x});
    ctx->saved_data["by"] = by;
    return x * by;
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* ctx,
                                               torch::autograd::tensor_list grads) {
    CHECK(ctx->get_saved_variables()[0].defined());
    return {grads[0] * ctx->saved_data["by"].toDouble(), torch::Tensor(), torch::Tensor()};
  }
};

void gradients() {
  torch::Tensor x = torch::tensor({1.0, 2.0}).requires_grad_();
  CHECK((x + 2).grad_fn()->name().find("Add") == 0 && x.grad_fn() == nullptr && !x.grad().defined());
  Scaled::apply(x, 3.0, torch::Tensor()).sum().backward();
  CHECK(same(x.grad(), torch::tensor({3.0, 3.0})));
  x.mutable_grad().reset();
  const auto once =
      torch::autograd::grad({(x * x * x).sum()}, {x}, {}, /*retain_graph=*/true, /*create_graph=*/true)[0];
  CHECK(same(torch::autograd::grad({once.sum()}, {x})[0], 6 * x.detach()));
  int calls = 0;
  x.register_hook([&](torch::Tensor grad) {
    ++calls;
    return grad * 2;
  });
  (x * 5).sum().backward();
  CHECK(calls == 1 && same(x.grad(), torch::tensor({10.0, 10.0})));
  torch::Tensor y = torch::ones({2}).requires_grad_();
  (y * 2).backward(torch::tensor({1, 3}));  // integers are converted
  CHECK(same(y.grad(), torch::tensor({2.0, 6.0})));
  {
    torch::NoGradGuard off;
    CHECK(!(x * 2).requires_grad());
    x -= 1;
  }
  CHECK(x.is_leaf() && x[0].item<float>() == 0);
  CHECK_RAISES(x.sum().detach().backward(), "require");
}

void functions() {
  const torch::Tensor a = torch::arange(6, torch::TensorOptions(torch::kFloat)).reshape({2, 3}), b = a + 1;
  CHECK(same(torch::einsum("ij,kj->ik", {a, b}), a.mm(b.t())) && same(torch::einsum("ij", {a}), a));
  CHECK(torch::einsum("...i,...i->...", {a, b}).sizes() == torch::IntArrayRef({2}) &&
        same(torch::tensordot(a, b, {1}, {1}), a.mm(b.t())));
  CHECK_RAISES(torch::einsum("ij,jk", {a}), "fewer");
  CHECK(torch::linalg_norm(a).item<float>() == a.norm().item<float>() &&
        torch::meshgrid({a[0], a[0]})[1].sizes()[0] == 3);
  CHECK(torch::nll_loss(torch::log_softmax(a, 1), torch::tensor({0, 1}), {}, torch::Reduction::Sum).dim() == 0);
  CHECK(torch::mse_loss(a, b).item<float>() == 1 &&
        torch::smooth_l1_loss(a, b, torch::Reduction::None).sizes() == a.sizes());
  const auto [values, indices] = a.max(1);
  CHECK(same(indices, torch::tensor({2, 2})) && std::get<0>(a.sort(1, true))[0][0].item<float>() == 2);
  CHECK(torch::hann_window(4)[2].item<float>() == 1 && torch::cat({a, b}).sizes()[0] == 4);
  CHECK(torch::dropout(a, 0.5, false).is_same(a) || same(torch::dropout(a, 0.5, false), a));
}

void nothing() {
  const torch::Tensor none;
  CHECK_RAISES(none.sizes(), "expected a defined tensor");
  CHECK_RAISES(none.dtype(), "expected a defined tensor");
  CHECK_RAISES(none.device(), "expected a defined tensor");
  CHECK_RAISES(none.is_floating_point(), "expected a defined tensor");
  CHECK_RAISES(none.data_ptr<float>(), "expected a defined tensor");
  CHECK_RAISES(none.item<float>(), "item: expected a defined tensor");
  CHECK_RAISES(none.to(torch::kInt), "to: expected a defined tensor");
  CHECK_RAISES(none.detach(), "detach: expected a defined tensor");
  CHECK_RAISES(none.backward(), "backward: expected a defined tensor");
  CHECK_RAISES(none[0], "index: expected a defined tensor");
  CHECK_RAISES(none + 1, "add");
  const torch::Tensor recorded = torch::ones({1}).requires_grad_();
  CHECK_RAISES(none + recorded, "add");
  CHECK_RAISES(recorded * none, "mul");
  CHECK_RAISES(none.pin_memory(), "pin_memory: expected a defined tensor");
  CHECK_RAISES(none.sparse_dim(), "sparse_dim: expected a defined tensor");
  CHECK_RAISES(none.is_coalesced(), "is_coalesced: expected a defined tensor");
  CHECK(!none.requires_grad() && !none.grad().defined() && !none.is_pinned());
  const auto sizes = torch::zeros({2, 3, 4}).sizes();
  CHECK(sizes.slice(1) == torch::IntArrayRef({3, 4}) && sizes.slice(0, 1) == torch::IntArrayRef({2}));
  CHECK_RAISES(sizes.slice(2, 2), "slice");
  torch::set_num_threads(torch::get_num_threads());
}

void tables() {
  namespace nn = torch::nn;
  const torch::Tensor rows = torch::tensor({{0, 0, 1}});
  nn::Embedding table(nn::EmbeddingOptions(3, 1).scale_grad_by_freq(true));
  nn::EmbeddingBag bag(nn::EmbeddingBagOptions(3, 1).scale_grad_by_freq(true).mode(torch::kSum));
  table(rows).sum().backward();
  bag(rows).sum().backward();
  CHECK(same(table->weight.grad(), torch::tensor({1.0, 1.0, 0.0}).unsqueeze(1)));
  CHECK(same(bag->weight.grad(), table->weight.grad()));
}

void archives(const std::string& folder) {
  const torch::Tensor t = torch::randn({3}), u = torch::arange(4);
  torch::save(t, folder + "/tensor.pt");
  torch::Tensor read;
  torch::load(read, folder + "/tensor.pt");
  CHECK(same(read, t));
  std::stringstream stream;
  torch::save(std::vector<torch::Tensor>{t, u}, stream);
  std::vector<torch::Tensor> both;
  torch::load(both, stream);
  CHECK(both.size() == 2 && same(both[1], u));
  torch::serialize::OutputArchive archive;
  archive.write("name", torch::IValue("a\nb"));
  archive.write("list", torch::IValue(std::vector<double>{0.1, 1e300}));
  archive.write("undefined", torch::Tensor());
  archive.save_to(folder + "/values.pt");
  torch::serialize::InputArchive input;
  input.load_from(folder + "/values.pt");
  torch::IValue name, list;
  input.read("name", name), input.read("list", list);
  CHECK(name.toStringRef() == "a\nb" && list.toDoubleVector()[0] == 0.1 && input.keys().size() == 3);
  CHECK_RAISES(name.toDouble(), "expected a double, got String");
  CHECK_RAISES(torch::load(read, folder + "/missing.pt"), "open file failed");
  torch::Tensor other = torch::zeros({7});
  CHECK_RAISES(torch::load(other, folder + "/tensor.pt"), "shape");
}

/// Names and forms that public programs use.
void programs() {
  torch::Tensor x = torch::arange(12, torch::kFloat).view({3, 4});
  CHECK(x.var({1}, false, true).sizes() == torch::IntArrayRef({3, 1}) &&
        x.var({1}, false, true)[0][0].item<float>() == 1.25f);
  CHECK(same(x.std(1, true), torch::std(x, {-1}, true)) && same(x.var({1}, 1), torch::var(x, {1}, true)) &&
        same(std::get<0>(torch::var_mean(x, 1, false, true)), x.var({1}, false, true)) && x.std(false).dim() == 0);
  const torch::ScalarType kind = torch::kLong;
  CHECK(x.to(kind).dtype() == torch::kLong && x.to(torch::kCPU, kind).dtype() == torch::kLong);
  const torch::Tensor row = (x[0] = torch::ones({4})), other = (x[1] = 3);
  CHECK(row.is_same_size(other) && row.sum().item<float>() == 4 && other.sum().item<float>() == 12);

  const auto [slices, which, counts] = torch::unique_dim(torch::tensor({{1, 2}, {0, 5}, {1, 2}}), 0, true, true, true);
  CHECK(torch::equal(slices, torch::tensor({{0, 5}, {1, 2}})) && torch::equal(which, torch::tensor({1, 0, 1})) &&
        torch::equal(counts, torch::tensor({1, 2})));
  const auto [runs, group, lengths] = torch::unique_consecutive(torch::tensor({1, 1, 2, 1}), true, true);
  CHECK(torch::equal(runs, torch::tensor({1, 2, 1})) && torch::equal(group, torch::tensor({0, 0, 1, 2})) &&
        torch::equal(lengths, torch::tensor({2, 1, 1})));
  CHECK(torch::equal(std::get<0>(at::_unique2(torch::tensor({3, 1, 3}))), torch::tensor({1, 3})));
  CHECK(std::get<0>(torch::unique_dim(torch::empty({0, 2}), 0)).numel() == 0);
  CHECK_RAISES(torch::unique_dim(x, 2), "out of range");

  torch::Tensor w = torch::tensor({-1.0, 2.0}).requires_grad_(), z = w * 1;
  torch::leaky_relu_(z, 0.5);
  torch::relu_(x), torch::clamp_(x, 0, 1), torch::sqrt_(x);
  z.sum().backward();
  CHECK(torch::equal(w.grad(), torch::tensor({0.5, 1.0})) && x.max().item<float>() == 1);
  CHECK(at::upsample_bilinear2d(x.view({1, 1, 3, 4}), {6, 8}, true).size(3) == 8 &&
        torch::upsample_nearest1d(x.view({1, 3, 4}), {8}).size(2) == 8);
  CHECK(torch::linalg::matrix_norm(torch::eye(3), "nuc", {-2, -1}).item<float>() == 3 &&
        torch::nuclear_norm(torch::eye(2)).item<float>() == 2);
  CHECK(torch::pad_sequence({torch::ones({2}), torch::ones({3})}, true).sizes() == torch::IntArrayRef({2, 3}));

  CHECK(torch::normal(0, 1, {2, 3}).size(1) == 3 && torch::normal(0.5, 1.0, x.sizes()).is_same_size(x) &&
        torch::normal(x, 0.1).is_same_size(x) && torch::normal(0.0, x).is_same_size(x) &&
        torch::normal(x, x).is_same_size(x));
  CHECK_TEXT((std::vector<torch::Tensor>{torch::ones({1}), torch::ones({1})}),
             " 1\n[ CPUFloatType{1} ]  1\n[ CPUFloatType{1} ]");

  at::globalContext().setAllowTF32CuBLAS(true);
  CHECK(at::globalContext().allowTF32CuBLAS() && at::globalContext().hasCUDA() == torch::cuda::is_available());
  at::globalContext().setAllowTF32CuBLAS(false);
  {
    const torch::NoGradGuard guard;
    CHECK(!torch::autograd::GradMode::is_enabled() && !c10::GradMode::is_enabled());
  }
  torch::autograd::AnomalyMode::set_enabled(true);
  CHECK(torch::autograd::AnomalyMode::is_enabled());
  torch::autograd::AnomalyMode::set_enabled(false);

  const c10::optional<torch::Tensor> none = c10::nullopt;
  const torch::Tensor undefined;
  CHECK(!none && !undefined.is_alias_of(x) && !undefined.grad_fn() && !undefined.is_view());
  CHECK_RAISES(undefined.options(), "defined");
  CHECK_RAISES((undefined.accessor<float, 1>()), "defined");
  CHECK_RAISES(torch::einsum("i->", {undefined}), "defined");
}

int main(int, char** argv) {
  torch::manual_seed(1);
  options();
  subscripts();
  printing();
  gradients();
  functions();
  tables();
  nothing();
  programs();
  archives(argv[1]);
  CHECK_RAISES([] { TORCH_CHECK(1 > 2, "one is ", 1); }(), "one is 1");
  std::cout << "tensors: all as expected\n";
}
