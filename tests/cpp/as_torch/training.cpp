// A network on handwritten digits in libtorch's words: modules, a loader with threads, optimizers, checkpoints.
#include <torch/torch.h>

#include "check.h"

struct NetImpl : torch::nn::Module {
  explicit NetImpl(int64_t classes)
      : conv(torch::nn::Conv2dOptions(1, 8, /*kernel_size=*/3).padding(1)), norm(8), fc(8 * 4 * 4, classes) {
    register_module("conv", conv);
    register_module("norm", norm);
    register_module("fc", fc);
    scale = register_parameter("scale", torch::ones({1}));
    register_buffer("calls", torch::zeros({1}));
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::max_pool2d(torch::relu(norm(conv->forward(x))), 2);
    x = torch::dropout(x.view({-1, 8 * 4 * 4}), 0.1, is_training());
    return torch::log_softmax(fc->forward(x) * scale, /*dim=*/1);
  }
  torch::nn::Conv2d conv;
  torch::nn::BatchNorm2d norm;
  torch::nn::Linear fc;
  torch::Tensor scale;
};
TORCH_MODULE(Net);

template <class DataLoader>
double accuracy(Net& net, DataLoader& loader) {
  torch::NoGradGuard no_grad;
  net->eval();
  int64_t right = 0, all = 0;
  for (const auto& batch : loader) {
    right += net->forward(batch.data).argmax(1).eq(batch.target).sum().template item<int64_t>();
    all += batch.target.numel();
  }
  net->train();
  return double(right) / double(all);
}

/// Overrides the conversions in libtorch's words.
struct Converted : torch::nn::Module {
  using torch::nn::Module::to;
  void to(torch::Device device, torch::ScalarType dtype, bool non_blocking) override {
    ++calls;
    Module::to(device, dtype, non_blocking);
  }
  void to(torch::ScalarType dtype, bool non_blocking) override {
    ++calls;
    Module::to(dtype, non_blocking);
  }
  int calls = 0;
  torch::nn::Linear fc = register_module("fc", torch::nn::Linear(2, 3));
};

/// Raises for one index.
struct Seven : torch::data::datasets::Dataset<Seven> {
  torch::data::Example<> get(size_t i) override {
    if (i == 7) throw std::runtime_error("seven");
    return {torch::ones({2}), torch::ones({1})};
  }
  torch::optional<size_t> size() const override { return 20; }
};

/// Reads an epoch that raises, then parts of epochs.
void left_early(size_t workers) {
  auto loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      Seven().map(torch::data::transforms::Stack<>()), torch::data::DataLoaderOptions(4).workers(workers));
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::string message;
    try {
      for (auto& batch : *loader) CHECK(batch.data.size(0) == 4);
    } catch (const std::exception& e) {
      message = e.what();
    }
    CHECK(message.find("seven") != std::string::npos);
  }
  CHECK(loader->begin()->data.size(0) == 4);
  if (workers == 0) CHECK(loader->begin()->data.size(0) == 4);
  else CHECK_RAISES(loader->begin(), "not yet exhausted");
}

int main(int, char** argv) {
  left_early(0), left_early(2);
  torch::nn::Module outer;
  const auto inner = outer.register_module("inner", std::make_shared<Converted>());
  outer.to(torch::kDouble), outer.to(torch::kCPU, torch::kFloat), inner->to(torch::ScalarType(torch::kDouble));
  CHECK(inner->calls == 3 && inner->fc->weight.dtype() == torch::kDouble);
  const std::string data = argv[1], folder = argv[2];
  torch::manual_seed(3);
  using torch::data::datasets::MNIST;
  auto train =
      MNIST(data).map(torch::data::transforms::Normalize<>(0.1307, 0.3081)).map(torch::data::transforms::Stack<>());
  auto test = MNIST(data, MNIST::Mode::kTest)
                  .map(torch::data::transforms::Normalize<>(0.1307, 0.3081))
                  .map(torch::data::transforms::Stack<>());
  CHECK(train.size().value() > test.size().value());
  auto loader =
      torch::data::make_data_loader(std::move(train), torch::data::DataLoaderOptions().batch_size(32).workers(2));
  auto test_loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(std::move(test), 100);

  Net net(10);
  net->to(torch::kCPU);
  CHECK(net->parameters().size() == 7 && net->named_parameters().contains("conv.weight") && net->buffers().size() == 4);
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  torch::optim::StepLR schedule(optimizer, 1, 0.5);
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (auto& batch : *loader) {
      optimizer.zero_grad();
      torch::Tensor loss = torch::nll_loss(net->forward(batch.data), batch.target);
      loss.backward();
      torch::nn::utils::clip_grad_norm_(net->parameters(), 5.0);
      optimizer.step();
    }
    schedule.step();
  }
  CHECK(static_cast<torch::optim::SGDOptions&>(optimizer.param_groups()[0].options()).lr() == 0.05 / 4);
  const double reached = accuracy(net, *test_loader);
  CHECK(reached > 0.9);

  torch::save(net, folder + "/net.pt");
  torch::save(optimizer, folder + "/optimizer.pt");
  Net again(10);
  CHECK(!torch::equal(again->fc->weight, net->fc->weight));
  torch::load(again, folder + "/net.pt");
  CHECK(accuracy(again, *test_loader) == reached && torch::equal(again->norm->running_mean, net->norm->running_mean));
  torch::optim::SGD resumed(again->parameters(), torch::optim::SGDOptions(1.0).momentum(0.1));
  torch::load(resumed, folder + "/optimizer.pt");
  for (auto* which : {&optimizer, &resumed}) {
    Net& of = which == &optimizer ? net : again;
    which->zero_grad();
    of->eval();
    of->forward(torch::ones({2, 1, 8, 8})).sum().backward();
    which->step();
  }
  CHECK(torch::equal(net->fc->weight, again->fc->weight));

  torch::nn::Sequential model(torch::nn::Linear(4, 8), torch::nn::Functional(torch::relu), torch::nn::Linear(8, 1));
  torch::optim::LBFGS lbfgs(model->parameters(), torch::optim::LBFGSOptions(1).max_iter(20));
  const torch::Tensor x = torch::randn({16, 4}), y = x.sum(1, true);
  const auto closure = [&] {
    lbfgs.zero_grad();
    torch::Tensor loss = torch::mse_loss(model->forward(x), y);
    loss.backward();
    return loss;
  };
  const double before = lbfgs.step(closure).item<double>();
  CHECK(closure().item<double>() < before / 10);
  CHECK_TEXT(model[0]->name().empty(), "0");
  CHECK_TEXT(net,
             "NetImpl(\n  (conv): torch::nn::Conv2d(1, 8, kernel_size=[3, 3], stride=[1, 1], padding=[1, 1])\n"
             "  (norm): torch::nn::BatchNorm2d(8, eps=1e-05, momentum=0.1, affine=true, track_running_stats=true)\n"
             "  (fc): torch::nn::Linear(in_features=128, out_features=10, bias=true)\n)");
  std::cout << "training: accuracy " << reached << '\n';
}
