// ReduceLROnPlateauScheduler: the rates times a factor where a metric has not become better for some epochs.
#pragma once
#include <algorithm>
#include <iomanip>
#include <iostream>
#include <limits>
#include <vector>

#include <torch/optim/schedulers/lr_scheduler.h>

namespace torch::optim {

class ReduceLROnPlateauScheduler {
 public:
  enum SchedulerMode { min, max };
  enum ThresholdMode { rel, abs };

  /// The optimizer must outlive it. `min_lr` has a least rate for each group, one for all, or none.
  ReduceLROnPlateauScheduler(Optimizer& optimizer, SchedulerMode mode = min, float factor = 0.1, int patience = 10,
                             double threshold = 1e-4, ThresholdMode threshold_mode = rel, int cooldown = 0,
                             const std::vector<float>& min_lr = {}, double eps = 1e-8, bool verbose = false)
      : optimizer_(optimizer),
        mode_(mode),
        factor_(factor),
        patience_(patience),
        threshold_(threshold),
        threshold_mode_(threshold_mode),
        cooldown_(cooldown),
        min_lrs_(min_lr),
        eps_(eps),
        verbose_(verbose),
        best_(mode == min ? std::numeric_limits<float>::max() : std::numeric_limits<float>::min()) {
    TORCH_CHECK(factor < 1, "Factor should be < 1.0.");
    const size_t groups = optimizer.param_groups().size();
    if (min_lrs_.empty()) min_lrs_.assign(groups, 0);
    TORCH_CHECK(min_lrs_.size() == groups, "Number of learning rates not equal to the number of param groups\n",
                "Number of learning rates given: ", min_lrs_.size(), "\nNumber of param groups: ", groups);
  }
  virtual ~ReduceLROnPlateauScheduler() = default;

  /// Takes the metric of an epoch.
  void step(float metric) {
    ++epoch_;
    if (is_better(metric)) {
      best_ = metric;
      bad_epochs_ = 0;
    } else {
      ++bad_epochs_;
    }
    if (cooling_ > 0) {
      --cooling_;
      bad_epochs_ = 0;
    }
    if (bad_epochs_ <= patience_) return;
    reduce();
    cooling_ = cooldown_;
    bad_epochs_ = 0;
  }

 private:
  bool is_better(float metric) const {
    const double t = threshold_;
    if (mode_ == min) return threshold_mode_ == rel ? metric < best_ * (1 - t) : metric < best_ - t;
    return threshold_mode_ == rel ? metric > best_ * (t + 1) : metric > best_ + t;
  }
  void reduce() {
    std::vector<OptimizerParamGroup>& groups = optimizer_.param_groups();
    for (size_t i = 0; i < groups.size(); ++i) {
      const double old = groups[i].options().get_lr(), next = std::max(old * factor_, double(min_lrs_[i]));
      if (old - next <= eps_) continue;
      groups[i].options().set_lr(next);
      if (verbose_) {
        std::cout << std::setprecision(4) << "Epoch " << epoch_ << ": reducing learning rate of group " << i << " to "
                  << next << std::endl;
      }
    }
  }

  Optimizer& optimizer_;
  SchedulerMode mode_;
  float factor_;
  int patience_;
  double threshold_;
  ThresholdMode threshold_mode_;
  int cooldown_;
  std::vector<float> min_lrs_;
  double eps_;
  bool verbose_;
  float best_;
  int epoch_ = 0, bad_epochs_ = 0, cooling_ = 0;
};

}  // namespace torch::optim
