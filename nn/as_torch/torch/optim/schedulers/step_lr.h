// StepLR: the rates times gamma after every step_size epochs.
#pragma once
#include <vector>

#include <torch/optim/schedulers/lr_scheduler.h>

namespace torch::optim {

class StepLR : public LRScheduler {
 public:
  StepLR(Optimizer& optimizer, unsigned step_size, double gamma = 0.1)
      : LRScheduler(optimizer), step_size_(step_size), gamma_(gamma) {
    TORCH_CHECK(step_size > 0, "StepLR: expected step_size > 0, got 0");
  }

 private:
  std::vector<double> get_lrs() override {
    std::vector<double> rates = get_current_lrs();
    if (step_count_ > 0 && step_count_ % step_size_ == 0) {
      for (double& rate : rates) rate *= gamma_;
    }
    return rates;
  }

  unsigned step_size_;
  double gamma_;
};

}  // namespace torch::optim
