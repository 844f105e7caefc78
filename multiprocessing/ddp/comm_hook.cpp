#include <vesta/multiprocessing/ddp/comm_hook.h>

#include <vesta/core/ops/arithmetic.h>

namespace vesta::ddp {
namespace {

/// A running all_reduce of `sent`, whose values belong into `buffer`.
class Reduced final : public PendingBucket {
 public:
  Reduced(WorkPtr work, Tensor sent) : work_(std::move(work)), sent_(std::move(sent)) {}
  Tensor wait() override {
    work_->synchronize();
    work_.reset();
    return std::move(sent_);
  }

 private:
  WorkPtr work_;
  Tensor sent_;
};

class BuiltinHook final : public CommHook {
 public:
  BuiltinHook(BuiltinCommHook which, ProcessGroupPtr group) : which_(which), group_(std::move(group)) {}

  std::shared_ptr<PendingBucket> run(GradBucket& bucket) override {
    NoGrad off;
    Tensor sent = bucket.buffer();
    if (which_ == BuiltinCommHook::fp16_compress) sent = sent.to(DType::float16);
    if (which_ == BuiltinCommHook::bf16_compress) sent = sent.to(DType::bfloat16);
    ops::div(sent, wrapped(double(group_->size())),
             Out{&sent, Out::inplace});  // first: the sum of many float16 may not fit
    return std::make_shared<Reduced>(group_->all_reduce({sent}), sent);
  }

 private:
  BuiltinCommHook which_;
  ProcessGroupPtr group_;
};

}  // namespace

std::shared_ptr<CommHook> make_builtin_hook(BuiltinCommHook which, ProcessGroupPtr group) {
  return std::make_shared<BuiltinHook>(which, std::move(group));
}

}  // namespace vesta::ddp
