// Which layer is slow, in C++: trains a small convolutional network for some steps and prints what each operation and
// each layer took, forward and backward, beside what this machine could do. With an argument it writes a trace for
// chrome://tracing there.
#include <cstdio>

#include <vesta/core/ops/profile.h>
#include <vesta/vesta.h>

using namespace vesta;

struct Net : nn::Module {
  std::shared_ptr<nn::Conv2d> first = register_module("first", nn::make<nn::Conv2d>(3, 32, 3));
  std::shared_ptr<nn::Conv2d> second = register_module("second", nn::make<nn::Conv2d>(32, 64, 3));
  std::shared_ptr<nn::Linear> head = register_module("head", nn::make<nn::Linear>(64 * 28 * 28, 10));

  Tensor forward(const Tensor& x) override { return (*head)(relu((*second)(relu((*first)(x)))).flatten(1)); }
};

int main(int argc, char** argv) {
  Net net;
  optim::SGD optimizer(net.parameters(), {.lr = 0.01});
  const Tensor images = randn({16, 3, 32, 32}), classes = randint(0, 10, {16});
  const auto step = [&] {
    optimizer.zero_grad();
    nn::functional::cross_entropy(net(images), classes).backward();
    optimizer.step();
  };
  step();  // the first step makes room for gradients

  profiler::Profile profile;
  for (int i = 0; i < 3; ++i) step();
  profile.stop();

  std::fputs(profile.table(12).c_str(), stdout);
  std::fputs("\n", stdout);
  std::fputs(profile.layer_table().c_str(), stdout);
  if (argc > 1) profile.export_chrome_trace(argv[1]);
}
