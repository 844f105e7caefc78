// DistributedDataParallel over ranks that are threads: every feature is compared with one model that sees the whole
// batch.
#include <vesta/core/random.h>
#include <vesta/multiprocessing/ddp/distributed_data_parallel.h>
#include <vesta/nn/layers/activation.h>
#include <vesta/nn/layers/container.h>
#include <vesta/nn/layers/linear.h>
#include <vesta/nn/optim/optim.h>

#include <catch2/catch.hpp>

#include "ddp_thread_group.h"

namespace {

using namespace vesta;
using namespace vesta::testing;
using ddp::DistributedDataParallel;
using ddp::DistributedDataParallelOptions;

constexpr int kSteps = 6, kRows = 12;

/// A model with a parameter of every kind: shared between two layers, used in some steps only, never used.
struct Net : nn::Module {
  std::shared_ptr<nn::Linear> in = register_module("in", nn::make<nn::Linear>(5, 8));
  std::shared_ptr<nn::Linear> twice = register_module("twice", nn::make<nn::Linear>(8, 8));
  std::shared_ptr<nn::Linear> sometimes = register_module("sometimes", nn::make<nn::Linear>(8, 8, false));
  std::shared_ptr<nn::Linear> never = register_module("never", nn::make<nn::Linear>(2, 2));
  std::shared_ptr<nn::Linear> out = register_module("out", nn::make<nn::Linear>(8, 3));
  Tensor seen = register_buffer("seen", zeros({1}));
  bool detour = false, all = false;

  Tensor forward(const Tensor& x) override {
    Tensor h = (*twice)((*twice)((*in)(x)).tanh()).tanh();
    if (detour) h = h + (*sometimes)(h);
    Tensor y = (*out)(h);
    if (all) y = y + (*never)(zeros({2}, y.dtype())).sum() + (*sometimes)(h).mean({1}, true);
    return y;
  }
};

std::shared_ptr<Net> make_net(uint64_t seed = 3) {
  static std::mutex one_at_a_time;  // the generator belongs to the process
  std::lock_guard lock(one_at_a_time);
  manual_seed(seed);
  auto net = std::make_shared<Net>();
  net->to(DType::float64);
  return net;
}

struct Data {
  Tensor x, y;
  explicit Data(int step) {
    std::vector<double> values(size_t(kRows) * 8);
    for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(double(i) * 0.7 + step);
    Tensor all = empty({kRows, 8}, DType::float64);
    std::copy(values.begin(), values.end(), all.data_ptr<double>());
    x = all.slice(1, 0, 5).contiguous(), y = all.slice(1, 5, 8).contiguous();
  }
  Data part(int rank, int ranks) const {
    Data d = *this;
    const int64_t rows = kRows / ranks;
    d.x = x.slice(0, rank * rows, (rank + 1) * rows), d.y = y.slice(0, rank * rows, (rank + 1) * rows);
    return d;
  }
};

Tensor loss_of(const Tensor& out, const Tensor& y) { return (out - y).square().mean(); }

std::vector<double> values(const nn::Module& net) {
  std::vector<double> r;
  for (const Tensor& p : net.parameters()) {
    Tensor flat = p.detach().contiguous().reshape({-1});
    r.insert(r.end(), flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel());
  }
  return r;
}

bool close(const std::vector<double>& a, const std::vector<double>& b, double tolerance = 1e-12) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::abs(a[i] - b[i]) > tolerance) return false;
  }
  return a.size() == b.size();
}

/// A function that does one step of a feature: `model(x)` is the wrapped or the plain model.
using Step = std::function<void(int step, int rank, Net& net, std::function<Tensor(const Tensor&)> model,
                                std::function<void(std::function<void()>)> locally, const Data& data)>;

/// Trains one model on whole batches.
std::vector<double> alone(const Step& step) {
  auto net = make_net();
  optim::SGD optimizer(net->parameters(), {.lr = 0.1, .momentum = 0.9});
  for (int i = 0; i < kSteps; ++i) {
    optimizer.zero_grad(i % 2 == 0);
    step(i, -1, *net, [&](const Tensor& x) { return (*net)(x); }, [](auto f) { f(); }, Data(i));
    optimizer.step();
  }
  return values(*net);
}

/// Trains on `ranks` threads; returns each rank's parameters.
std::vector<std::vector<double>> together(int ranks, const Step& step, const DistributedDataParallelOptions& options) {
  std::vector<std::vector<double>> result{size_t(ranks)};
  on_ranks(ranks, [&](std::shared_ptr<ThreadGroup> group) {
    auto net = make_net(uint64_t(3 + group->rank()));  // only rank 0 begins with the right values
    DistributedDataParallel<Net> model(net, group, options);
    optim::SGD optimizer(net->parameters(), {.lr = 0.1, .momentum = 0.9});
    auto locally = [&](std::function<void()> f) {
      auto off = model.no_sync();
      f();
    };
    for (int i = 0; i < kSteps; ++i) {
      optimizer.zero_grad(i % 2 == 0);
      step(
          i, group->rank(), *net, [&](const Tensor& x) { return model(x); }, locally,
          Data(i).part(group->rank(), ranks));
      optimizer.step();
    }
    result[size_t(group->rank())] = values(*net);
  });
  return result;
}

/// Checks that ranks agree bit by bit, with a second run too, and with one model on whole batches.
void check(const Step& step, const DistributedDataParallelOptions& options = {}, double tolerance = 1e-12) {
  const std::vector<double> expected = alone(step);
  for (int ranks : {1, 2, 4}) {
    INFO(ranks << " ranks");
    auto first = together(ranks, step, options);
    for (auto& of_rank : first) CHECK(of_rank == first[0]);
    CHECK(close(first[0], expected, tolerance));
    CHECK(together(ranks, step, options) == first);
  }
}

void plain_step(int, int, Net& net, std::function<Tensor(const Tensor&)> model,
                std::function<void(std::function<void()>)>, const Data& data) {
  net.all = true;
  loss_of(model(data.x), data.y).backward();
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.message();
  }
  return "no error";
}

}  // namespace

TEST_CASE("replicas train as one model", "[ddp]") {
  check(plain_step);
  check(plain_step, {.bucket_cap_mb = 1e-4});  // many buckets
  check(plain_step, {.find_unused_parameters = true});
  check(plain_step, {.find_unused_parameters = true, .static_graph = true});
}

TEST_CASE("gradients add up locally within no_sync", "[ddp]") {
  auto step = [](int, int, Net& net, auto model, auto locally, const Data& data) {
    net.all = true;
    locally([&] { loss_of(model(data.x * 0.5), data.y).backward(); });
    locally([&] { loss_of(model(data.x * 2.0), data.y).backward(); });
    loss_of(model(data.x), data.y).backward();
  };
  check(step);
  check(step, {.bucket_cap_mb = 1e-4});
}

TEST_CASE("parameters may get no gradient", "[ddp]") {
  auto step = [](int i, int, Net& net, auto model, auto locally, const Data& data) {
    net.detour = i % 3 == 1;
    if (i % 2 == 1) locally([&] { loss_of(model(data.x * 0.5), data.y).backward(); });
    net.detour = i % 3 == 2;
    loss_of(model(data.x), data.y).backward();
  };
  check(step, {.find_unused_parameters = true});
  check(step, {.bucket_cap_mb = 1e-4, .find_unused_parameters = true});
  auto fixed = [](int, int, Net& net, auto model, auto, const Data& data) {
    net.detour = true;
    loss_of(model(data.x), data.y).backward();
  };
  check(fixed, {.static_graph = true});
  check(fixed, {.bucket_cap_mb = 1e-4, .static_graph = true});
}

TEST_CASE("one rank uses a parameter that the other does not", "[ddp]") {
  auto step = [](int, int rank, Net& net, auto model, auto, const Data& data) {
    auto loss = [&](const Data& part, bool detour) {
      net.detour = detour;
      return loss_of(model(part.x), part.y);
    };
    if (rank >= 0) return loss(data, rank == 0).backward();
    ((loss(data.part(0, 2), true) + loss(data.part(1, 2), false)) * 0.5).backward();
  };
  auto ranks = together(2, step, {.find_unused_parameters = true});
  CHECK(ranks[0] == ranks[1]);
  CHECK(close(ranks[0], alone(step)));
}

TEST_CASE("a parameter that one rank uses gets a gradient on all; one that none uses keeps its own", "[ddp]") {
  on_ranks(2, [&](std::shared_ptr<ThreadGroup> group) {
    auto net = make_net();
    DistributedDataParallel<Net> model(net, group, {.find_unused_parameters = true});
    const Data data(1);
    net->detour = group->rank() == 0;
    loss_of(model(data.x), data.y).backward();
    expect(net->sometimes->weight.grad().defined());
    expect(!net->never->weight.grad().defined());
    Tensor before = net->sometimes->weight.grad().clone();
    Tensor own = full({2, 2}, 0.3, DType::float64);
    net->never->weight.set_grad(own);
    net->detour = false;
    loss_of(model(data.x), data.y).backward();
    expect(equal(net->sometimes->weight.grad(), before));  // not averaged again
    expect(net->never->weight.grad().is_same(own));
    expect(equal(own, full({2, 2}, 0.3, DType::float64)));
  });
}

TEST_CASE("several forwards before a backward, and several backwards", "[ddp]") {
  auto both = [](int, int, Net& net, auto model, auto, const Data& data) {
    net.all = true;
    Tensor a = model(data.x), b = model(data.x * 2.0);
    (loss_of(a, data.y) + loss_of(b, data.y)).backward();
  };
  check(both);
  auto in_turn = [](int, int, Net& net, auto model, auto, const Data& data) {
    net.all = true;
    Tensor a = loss_of(model(data.x), data.y), b = loss_of(model(data.x * 2.0), data.y);
    a.backward();
    b.backward();
    b = loss_of(model(data.x), data.y);
    b.backward({}, true);
    b.backward();
  };
  check(in_turn);
  check(in_turn, {.find_unused_parameters = true});
}

TEST_CASE("a gradient that was kept stays what it was", "[ddp]") {
  on_ranks(2, [&](std::shared_ptr<ThreadGroup> group) {
    auto net = make_net();
    net->all = true;
    DistributedDataParallel<Net> model(net, group);
    std::vector<Tensor> kept, copies;
    for (int i = 0; i < 4; ++i) {
      const Data data(i);
      Tensor loss = loss_of(model(data.x), data.y);
      Tensor view = i > 0 ? net->out->bias.grad().slice(0, 1, 3) : Tensor();
      Tensor view_copy = i > 0 ? view.clone() : Tensor();
      net->zero_grad();
      loss.backward();
      if (i > 0) expect(equal(view, view_copy));
      for (size_t k = 0; k < kept.size(); ++k) expect(equal(kept[k], copies[k]));
      for (const Tensor& p : {net->in->weight, net->out->bias}) {
        kept.push_back(p.grad());
        copies.push_back(p.grad().clone());
      }
    }
    Tensor g = net->in->weight.grad();
    loss_of(model(Data(9).x), Data(9).y).backward();  // not cleared: it is added in place
    expect(net->in->weight.grad().is_same(g));
    expect(g.storage_offset() == 0);
    expect(g.impl()->storage()->nbytes() == size_t(g.numel()) * 8);
    expect(!g.impl()->base);
  });
}

TEST_CASE("a gradient of the user's own takes part and stays his", "[ddp]") {
  on_ranks(2, [&](std::shared_ptr<ThreadGroup> group) {
    auto net = make_net();
    net->all = true;
    DistributedDataParallel<Net> model(net, group);
    const Data data(1);
    loss_of(model(data.x), data.y).backward();
    Tensor once = net->in->weight.grad().clone();
    net->zero_grad();
    Tensor own = full({8, 5}, double(group->rank()), DType::float64);
    net->in->weight.set_grad(own);
    loss_of(model(data.x), data.y).backward();
    expect(net->in->weight.grad().is_same(own));
    expect(((own - once - 0.5).abs() < 1e-12).all().item<bool>());
    net->zero_grad();
    loss_of(model(data.x), data.y).backward();
    expect(equal(net->in->weight.grad(), once));
    expect(((own - once - 0.5).abs() < 1e-12).all().item<bool>());
  });
}

TEST_CASE("buckets follow the order of gradients after the first step", "[ddp]") {
  on_ranks(2, [&](std::shared_ptr<ThreadGroup> group) {
    auto net = make_net();
    net->all = true;
    DistributedDataParallel<Net> model(net, group, {.bucket_cap_mb = 200.0 / (1 << 20)});
    expect(model.reducer().stats().bucket_bytes.size() == 1);
    const Data data(1);
    for (int i = 0; i < 3; ++i) {
      loss_of(model(data.x), data.y).backward();
      int before = group->reduced();
      expect(model.reducer().stats().rounds == i + 1);
      expect(before > 0);
    }
    auto sizes = model.reducer().stats().bucket_bytes;
    expect(model.reducer().stats().rebuilt);
    expect(sizes.size() > 3);
    // The last layer's bias and weight come first: 3 and 24 numbers.
    expect(sizes[0] >= 200);
  });
}

TEST_CASE("buckets become smaller towards the end", "[ddp]") {
  using Limits = std::vector<int64_t>;
  CHECK(ddp::tapered_limits(10, 16, 400) == Limits{16});
  CHECK(ddp::tapered_limits(16 + 64 + 10, 16, 400) == Limits{16, 18, 16, 16, 16, 16});
  const Limits limits = ddp::tapered_limits(10000, 16, 400);
  CHECK(limits.front() == 16);
  CHECK(limits[1] == 400);
  CHECK(limits.back() == 16);
  CHECK(std::ranges::is_sorted(limits.begin() + 1, limits.end(), std::greater<>()));
}

TEST_CASE("buckets are sent while backward goes on", "[ddp]") {
  auto net = make_net();
  auto group = std::make_shared<ThreadGroup>(std::make_shared<ThreadHub>(1), 0);
  struct Watch final : ddp::CommHook {
    std::vector<std::pair<size_t, bool>> seen;  // index of the bucket, whether the first layer had its gradient
    Tensor first;
    struct Done final : ddp::PendingBucket {
      Tensor t;
      Tensor wait() override { return t; }
    };
    std::shared_ptr<ddp::PendingBucket> run(ddp::GradBucket& bucket) override {
      seen.emplace_back(bucket.index(), first.grad().defined());
      CHECK(bucket.gradients().size() == bucket.parameters().size());
      CHECK((!bucket.is_last() || first.grad().defined()));
      auto done = std::make_shared<Done>();
      done->t = (bucket.buffer() * 2.0).to(DType::float32);
      return done;
    }
  };
  net->all = true;
  DistributedDataParallel<Net> model(net, group, {.bucket_cap_mb = 1e-4});
  auto watch = std::make_shared<Watch>();
  watch->first = net->in->weight;
  loss_of((*net)(Data(1).x), Data(1).y).backward();
  Tensor expected = net->out->weight.grad() * 2.0;
  net->zero_grad();
  model.register_comm_hook(watch);
  for (int i = 0; i < 2; ++i) {
    net->zero_grad();
    watch->seen.clear();
    loss_of(model(Data(1).x), Data(1).y).backward();
    CHECK(((net->out->weight.grad() - expected).abs() < 1e-6).all().item<bool>());
  }
  CHECK(watch->seen.size() > 3);
  CHECK(!watch->seen.front().second);
  CHECK(contains(message_of([&] { model.register_comm_hook(watch); }), "can only be called once"));
}

TEST_CASE("buckets are sent in 16 bits", "[ddp]") {
  for (auto which :
       {ddp::BuiltinCommHook::all_reduce, ddp::BuiltinCommHook::fp16_compress, ddp::BuiltinCommHook::bf16_compress}) {
    on_ranks(2, [&](std::shared_ptr<ThreadGroup> group) {
      auto net = make_net();
      net->all = true;
      const Data data(2);
      loss_of((*net)(data.x), data.y).backward();
      Tensor expected = net->in->weight.grad().clone();
      net->zero_grad();
      DistributedDataParallel<Net> model(net, group);
      model.register_comm_hook(ddp::make_builtin_hook(which, group));
      Data mine = data.part(group->rank(), 2);
      loss_of(model(mine.x), mine.y).backward();
      const double tolerance = which == ddp::BuiltinCommHook::all_reduce ? 1e-12 : 1e-3;
      expect(((net->in->weight.grad() - expected).abs() < tolerance).all().item<bool>());
      expect(net->in->weight.grad().dtype() == DType::float64);
    });
  }
}

TEST_CASE("buffers are those of rank 0", "[ddp]") {
  on_ranks(2, [&](std::shared_ptr<ThreadGroup> group) {
    for (bool broadcast : {true, false}) {
      auto net = make_net();
      net->all = true;
      net->seen.fill_(Scalar(double(group->rank() + 5)));
      DistributedDataParallel<Net> model(net, group, {.broadcast_buffers = broadcast});
      expect(net->seen.item<double>() == (broadcast ? 5 : 5 + group->rank()));
      net->seen.fill_(Scalar(double(group->rank() + 7)));
      loss_of(model(Data(1).x), Data(1).y).backward();
      expect(net->seen.item<double>() == (broadcast ? 7 : 7 + group->rank()));
    }
  });
}

TEST_CASE("ranks may have different numbers of inputs", "[ddp]") {
  constexpr int kRanks = 3;
  for (bool by_all : {true, false}) {
    auto net = make_net();
    net->all = true;
    optim::SGD optimizer(net->parameters(), {.lr = 0.1});
    for (int step = 0; step < kRanks + 1; ++step) {  // rank r has r + 2 inputs
      Tensor loss;
      int at_work = 0;
      for (int rank = 0; rank < kRanks; ++rank) {
        if (step >= rank + 2) continue;
        const Data data = Data(step).part(rank, kRanks);
        Tensor one = loss_of((*net)(data.x), data.y);
        loss = loss.defined() ? loss + one : one;
        ++at_work;
      }
      optimizer.zero_grad();
      (loss / (by_all ? kRanks : at_work)).backward();
      optimizer.step();
    }
    const std::vector<double> expected = values(*net);
    on_ranks(kRanks, [&](std::shared_ptr<ThreadGroup> group) {
      auto own = make_net(uint64_t(3 + group->rank()));
      own->all = true;
      DistributedDataParallel<Net> model(own, group);
      optim::SGD of_rank(own->parameters(), {.lr = 0.1});
      auto join = model.join(by_all);
      for (int step = 0; step < group->rank() + 2; ++step) {
        of_rank.zero_grad();
        own->seen.fill_(Scalar(double(10 * step + group->rank())));
        const Data data = Data(step).part(group->rank(), kRanks);
        loss_of(model(data.x), data.y).backward();
        of_rank.step();
      }
      join.finish();
      expect(close(values(*own), expected));
      expect(own->seen.item<double>() == 10 * kRanks + kRanks - 1);  // of the last rank at work
      own->zero_grad();
      loss_of(model(Data(9).x), Data(9).y).backward();  // without join again
      expect(own->in->weight.grad().defined());
    });
  }
}

TEST_CASE("the state's names are those of the Python class", "[ddp]") {
  on_ranks(1, [&](std::shared_ptr<ThreadGroup> group) {
    DistributedDataParallel<Net> model(make_net(), group);
    expect(model.state_dict()[1].first == "module.in.weight");
  });
}

TEST_CASE("what is wrong is said with the parameter's name", "[ddp]") {
  on_ranks(2, [&](std::shared_ptr<ThreadGroup> group) {
    auto net = make_net();
    DistributedDataParallel<Net> model(net, group);
    const Data data(1);
    loss_of(model(data.x), data.y).backward();
    const std::string unused = message_of([&] { model(data.x); });
    expect(contains(unused, "got no gradient: sometimes.weight, never.weight, never.bias."));
    expect(contains(unused, "find_unused_parameters=True"));
    net->all = true;  // and it can continue
    net->zero_grad();
    loss_of(model(data.x), data.y).backward();
    expect(net->never->bias.grad().defined());

    auto other = make_net();
    if (group->rank() == 1) other->out = std::make_shared<nn::Linear>(8, 3);
    struct Small : nn::Module {
      std::shared_ptr<nn::Linear> fc;
      explicit Small(int64_t n) : fc(register_module("fc", nn::make<nn::Linear>(n, 2))) {}
    };
    auto small = std::make_shared<Small>(3 + group->rank());
    const std::string differs = message_of([&] { DistributedDataParallel<Small>(small, group); });
    expect(contains(differs,
                    "parameter 0 is fc.weight of shape [2, 3], float32 on rank 0 and fc.weight of shape "
                    "[2, 4], float32 on rank 1"));
    small->requires_grad_(false);
  });
}

TEST_CASE("after an error in the middle of a backward it can go on", "[ddp]") {
  auto net = make_net();
  net->all = true;
  const Data data(1);
  loss_of((*net)(data.x), data.y).backward();
  const Tensor expected = net->out->weight.grad().clone();
  net->zero_grad();
  // A link so slow that the first bucket is still under way when the error comes and when the next step begins.
  auto group = std::make_shared<ThreadGroup>(std::make_shared<ThreadHub>(1, 1e9, 0.03), 0);
  DistributedDataParallel<Net> model(net, group, {.bucket_cap_mb = 1e-4});
  loss_of(model(data.x), data.y).backward();
  net->zero_grad();
  struct Stop : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  Tensor watched = net->in->bias;
  model(data.x);  // makes the buckets
  const autograd::HookId id = autograd::register_hook(
      watched, autograd::tensor_hook([](const Tensor&) -> Tensor { throw Stop("in the middle"); }));
  CHECK_THROWS_AS(loss_of(model(data.x), data.y).backward(), Stop);
  autograd::remove_hook(watched, id);
  CHECK(contains(message_of([&] { model(data.x); }), "an error in the middle of a backward"));
  for (int i = 0; i < 2; ++i) {
    net->zero_grad();
    loss_of(model(data.x), data.y).backward();
    CHECK(equal(net->out->weight.grad(), expected));
  }
}

TEST_CASE("a second gradient after a bucket is on its way is an error", "[ddp]") {
  on_ranks(1, [&](std::shared_ptr<ThreadGroup> group) {
    auto net = make_net();
    DistributedDataParallel<Net> model(net, group, {.bucket_cap_mb = 1e-4, .find_unused_parameters = true});
    Tensor x = Data(1).x;
    Tensor sneaked = (*net->sometimes)(ones({1, 8}, DType::float64)).sum();  // not through the outputs
    Tensor out = model(x);
    const std::string said = message_of([&] { (loss_of(out, Data(1).y) + sneaked).backward(); });
    expect(contains(said, "mark a variable ready only once") && contains(said, "sometimes.weight"));
  });
}

TEST_CASE("the hooks go with the reducer", "[ddp]") {
  on_ranks(1, [&](std::shared_ptr<ThreadGroup> group) {
    auto net = make_net();
    net->all = true;
    {
      DistributedDataParallel<Net> model(net, group);
      loss_of(model(Data(1).x), Data(1).y).backward();
    }
    int before = group->reduced();
    Tensor g = net->in->weight.grad().clone();
    loss_of((*net)(Data(1).x), Data(1).y).backward();
    expect(group->reduced() == before);
    expect(equal(net->in->weight.grad(), g * 2.0));
  });
}
