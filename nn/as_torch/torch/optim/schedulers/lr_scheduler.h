// LRScheduler: the base of schedules of learning rates. step() once per epoch sets the rate of every group.
#pragma once
#include <vector>

#include <torch/optim/optimizer.h>

namespace torch::optim {

/// The base of schedules. The optimizer must outlive it.
class LRScheduler {
 public:
  LRScheduler(Optimizer& optimizer) : optimizer_(optimizer) {}
  virtual ~LRScheduler() = default;
  /// Begins the next epoch.
  void step() {
    const std::vector<double> rates = get_lrs();
    std::vector<OptimizerParamGroup>& groups = optimizer_.param_groups();
    TORCH_CHECK(rates.size() == 1 || rates.size() == groups.size(),
                "Number of learning rates not equal to number of param groups\nNumber of learning rates given: ",
                rates.size(), "\nNumber of param groups: ", groups.size());
    for (size_t i = 0; i < groups.size(); ++i) groups[i].options().set_lr(rates.size() == 1 ? rates[0] : rates[i]);
    ++step_count_;
  }

 protected:
  /// Returns the rates of the next epoch, one for all groups or one for each.
  virtual std::vector<double> get_lrs() = 0;
  /// Returns the rates of the groups.
  std::vector<double> get_current_lrs() const {
    std::vector<double> r;
    for (const OptimizerParamGroup& group : optimizer_.param_groups()) r.push_back(group.options().get_lr());
    return r;
  }

  unsigned step_count_ = 0;

 private:
  Optimizer& optimizer_;
};

}  // namespace torch::optim
