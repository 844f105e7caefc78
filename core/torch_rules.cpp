#include <vesta/core/torch_rules.h>

#include <atomic>
#include <utility>

#include <vesta/core/autograd_port.h>

namespace vesta {
namespace {

constinit std::atomic<bool> follows{false};

void name_step(const Tensor& t, const char* step) {
  if (t.defined() && t.requires_grad()) autograd_port.name_step(t, step);
}

}  // namespace

bool follows_torch() { return follows.load(std::memory_order_relaxed); }
void follow_torch(bool on) { follows.store(on, std::memory_order_relaxed); }

Tensor named_step(Tensor t, const char* step) {
  if (follows_torch()) name_step(t, step);
  return t;
}

TensorPair named_step(TensorPair pair, const char* step) {
  if (follows_torch()) name_step(std::get<0>(pair), step), name_step(std::get<1>(pair), step);
  return pair;
}

Tensor flat_step(Tensor t, const char* step) {
  if (!t.requires_grad()) return t;
  autograd_port.flatten_step(t);
  return step ? named_step(std::move(t), step) : t;
}

TensorPair flat_step(TensorPair pair, const char* step) {
  flat_step(std::get<0>(pair), nullptr);
  return step ? named_step(std::move(pair), step) : pair;
}

TensorVector named_step(TensorVector list, const char* step) {
  if (follows_torch()) {
    for (const Tensor& t : list) name_step(t, step);
  }
  return list;
}

}  // namespace vesta
