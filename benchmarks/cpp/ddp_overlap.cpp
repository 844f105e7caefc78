// Measures how much of data parallel training's communication is not hidden by backward: a transformer of 12 layers
// whose gradients go over a link of a given speed. The link is simulated (one process; an all_reduce takes latency +
// bytes / speed, one after the other), so the figure does not depend on a network, and little on how busy the machine
// is: the link's speed is chosen such that all communication takes a given share of the backward measured in the same
// run.
//
//   build/bin/ddp_overlap [SHARE of backward, 0.7] [LATENCY in ms, 0.2] [WIDTH 256]
//
// Prints, for PyTorch's bucket sizes and for our tapered ones, the median over steps of the seconds waited at the end
// of backward as a share of the seconds that the link was busy.
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/random.h>
#include <vesta/core/random.h>
#include <vesta/multiprocessing/ddp/distributed_data_parallel.h>
#include <vesta/nn/layers/linear.h>
#include <vesta/nn/module.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <thread>

using namespace vesta;
using Clock = std::chrono::steady_clock;

namespace {

/// One end of a link of two ranks. The other end is always ready and sends zeros.
class LinkGroup final : public ProcessGroup {
 public:
  LinkGroup() : ProcessGroup("link", "simulated", 0, 2, std::chrono::minutes(1)), thread_([this] { work_off(); }) {}
  ~LinkGroup() override {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  void set_speed(double bytes_per_second, double latency) {
    std::lock_guard lock(mutex_);
    speed_ = bytes_per_second, latency_ = latency;
  }
  double take_busy() {
    std::lock_guard lock(mutex_);
    return std::exchange(busy_, 0.0);
  }
  WorkPtr all_reduce(std::vector<Tensor> tensors, ReduceOp, const CallOptions&) override { return send(tensors); }
  WorkPtr broadcast(std::vector<Tensor> tensors, int, const CallOptions&) override { return send(tensors); }

 private:
  WorkPtr send(const std::vector<Tensor>& tensors) {
    auto work = std::make_shared<Work>("all_reduce");
    double bytes = 0;
    for (const Tensor& t : tensors) bytes += double(t.numel() * t.element_size());
    {
      std::lock_guard lock(mutex_);
      queue_.emplace_back(work, bytes);
    }
    changed_.notify_all();
    return work;
  }
  void work_off() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stop_ || !queue_.empty(); });
      if (queue_.empty()) return;
      auto [work, bytes] = queue_.front();
      queue_.pop_front();
      const double seconds = speed_ > 0 ? latency_ + bytes / speed_ : 0;
      busy_ += seconds;
      lock.unlock();
      if (seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
      work->finish();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<WorkPtr, double>> queue_;
  double speed_ = 0, latency_ = 0, busy_ = 0;
  bool stop_ = false;
  std::thread thread_;
};

Tensor normed(const Tensor& x) {
  Tensor centred = x - x.mean({-1}, true);
  return centred / (centred.square().mean({-1}, true) + 1e-5).sqrt();
}

struct Block : nn::Module {
  int64_t width, heads;
  std::shared_ptr<nn::Linear> qkv, proj, up, down;
  Block(int64_t w, int64_t h) : width(w), heads(h) {
    qkv = register_module("qkv", std::make_shared<nn::Linear>(w, 3 * w));
    proj = register_module("proj", std::make_shared<nn::Linear>(w, w));
    up = register_module("up", std::make_shared<nn::Linear>(w, 4 * w));
    down = register_module("down", std::make_shared<nn::Linear>(4 * w, w));
  }
  Tensor forward(const Tensor& x) override {
    const int64_t b = x.size(0), t = x.size(1), each = width / heads;
    Tensor all = (*qkv)(normed(x)).view({b, t, 3, heads, each}).permute({2, 0, 3, 1, 4});
    Tensor scores = all[0].matmul(all[1].transpose(-1, -2)) * (1 / std::sqrt(double(each)));
    Tensor mixed = scores.softmax(-1).matmul(all[2]).transpose(1, 2).reshape({b, t, width});
    Tensor y = x + (*proj)(mixed);
    return y + (*down)((*up)(normed(y)).gelu());
  }
};

struct Transformer : nn::Module {
  std::shared_ptr<nn::Embedding> words;
  std::vector<std::shared_ptr<Block>> blocks;
  std::shared_ptr<nn::Linear> head;
  Transformer(int64_t layers, int64_t width, int64_t vocabulary) {
    words = register_module("words", std::make_shared<nn::Embedding>(nn::EmbeddingOptions{vocabulary, width}));
    for (int64_t i = 0; i < layers; ++i)
      blocks.push_back(register_module("block" + std::to_string(i), std::make_shared<Block>(width, width / 64)));
    head = register_module("head", std::make_shared<nn::Linear>(width, vocabulary, false));
  }
  Tensor forward(const Tensor& tokens) override {
    Tensor x = (*words)(tokens);
    for (auto& block : blocks) x = (*block)(x);
    return (*head)(normed(x));
  }
};

double median(std::vector<double> v) {
  std::ranges::sort(v);
  return v[v.size() / 2];
}

struct Figures {
  double exposed, backward;
  size_t buckets;
};

/// Trains some steps; returns medians of the exposed share and of the seconds of backward.
Figures measure(Transformer& model, const std::shared_ptr<LinkGroup>& group, bool taper, double speed, double latency) {
  std::vector<Tensor> parameters;
  std::vector<std::string> names;
  for (auto& [name, p] : model.named_parameters()) names.push_back(name), parameters.push_back(p);
  ddp::ReducerOptions options;
  options.taper = taper;
  auto reducer = ddp::Reducer::make(parameters, names, group, options);
  group->set_speed(speed, latency);
  Tensor tokens = randint(0, 512, {8, 64});
  std::vector<double> exposed, backward;
  for (int step = 0; step < 9; ++step) {
    model.zero_grad();
    reducer->prepare_for_forward();
    group->take_busy();
    Tensor loss = model(tokens).square().mean();
    reducer->prepare_for_backward({}, true);
    loss.backward();
    const ddp::ReducerStats stats = reducer->stats();
    if (step < 2) continue;  // the first step has one bucket, the second makes the others
    exposed.push_back(stats.exposed_seconds / std::max(group->take_busy(), 1e-9));
    backward.push_back(stats.backward_seconds - stats.exposed_seconds);
  }
  return {median(exposed), median(backward), reducer->stats().bucket_bytes.size()};
}

}  // namespace

int main(int argc, char** argv) {
  const double share = argc > 1 ? std::atof(argv[1]) : 0.7, latency = (argc > 2 ? std::atof(argv[2]) : 0.2) * 1e-3;
  const int64_t width = argc > 3 ? std::atoi(argv[3]) : 256;
  manual_seed(0);
  Transformer model(12, width, 512);
  double bytes = 0;
  for (const Tensor& p : model.parameters()) bytes += double(p.numel() * 4);
  auto group = std::make_shared<LinkGroup>();
  const double backward = measure(model, group, false, 0, 0).backward;
  const double speed = bytes / (share * backward);
  std::printf("%.1f MiB of gradients, backward %.1f ms, link %.2f GB/s: communication takes %.0f%% of backward\n",
              bytes / (1 << 20), backward * 1e3, speed * 1e-9, share * 100);
  for (bool taper : {false, true}) {
    const Figures r = measure(model, group, taper, speed, latency);
    std::printf("%-34s %2zu buckets, %.1f%% of communication is not hidden\n",
                taper ? "buckets that taper off (default):" : "PyTorch's sizes:", r.buckets, r.exposed * 100);
  }
}
