// Schedules of learning rates: `step()` once per epoch, or per batch, sets the rate of every group. A schedule of one's
// own is a class with `rate(base, epoch)`, or a function:
//
//   optim::LambdaLR schedule(optimizer, [](int64_t epoch) { return std::pow(0.95, double(epoch)); });
//
// Rates follow from the epoch by a closed form: several schedules over one optimizer do not multiply as in Python.
#pragma once
#include <functional>
#include <limits>
#include <vector>

#include <vesta/nn/optim/optimizer.h>

namespace vesta::optim {

/// The base of schedules by epoch. The optimizer must outlive it.
class VESTA_API LRScheduler {
 public:
  explicit LRScheduler(Optimizer& optimizer);
  LRScheduler(const LRScheduler&) = delete;
  LRScheduler& operator=(const LRScheduler&) = delete;
  virtual ~LRScheduler() = default;
  /// Begins the next epoch.
  void step() { set_epoch(epoch_ + 1); }
  /// Goes to an epoch, 0 for the first: to continue from a checkpoint. Groups that were added since take part with the
  /// rates that they have. An optimizer's state dict has the rates with which its groups began, so a schedule over one
  /// that was loaded continues it.
  void set_epoch(int64_t epoch);
  int64_t epoch() const { return epoch_; }
  /// Returns the rates of the groups.
  std::vector<double> last_lr() const;

 protected:
  /// Returns the rate in an epoch of a group that began with `base`.
  virtual double rate(double base, int64_t epoch) const = 0;
  /// Sets the rates of the first epoch; for constructors, when the schedule is complete.
  void begin() { set_epoch(0); }

 private:
  Optimizer& optimizer_;
  int64_t epoch_ = 0;
};

/// base * f(epoch).
class VESTA_API LambdaLR : public LRScheduler {
 public:
  LambdaLR(Optimizer& optimizer, std::function<double(int64_t epoch)> f);

 protected:
  double rate(double base, int64_t epoch) const override;

 private:
  std::function<double(int64_t)> f_;
};

/// base * gamma ** (epoch / step_size), in whole steps.
class VESTA_API StepLR : public LRScheduler {
 public:
  StepLR(Optimizer& optimizer, int64_t step_size, double gamma = 0.1);

 protected:
  double rate(double base, int64_t epoch) const override;

 private:
  int64_t step_size_;
  double gamma_;
};

/// base * gamma ** (number of milestones reached).
class VESTA_API MultiStepLR : public LRScheduler {
 public:
  MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma = 0.1);

 protected:
  double rate(double base, int64_t epoch) const override;

 private:
  std::vector<int64_t> milestones_;
  double gamma_;
};

/// base * gamma ** epoch.
class VESTA_API ExponentialLR : public LRScheduler {
 public:
  ExponentialLR(Optimizer& optimizer, double gamma);

 protected:
  double rate(double base, int64_t epoch) const override;

 private:
  double gamma_;
};

/// base times a factor that goes from start_factor to end_factor in total_iters epochs: a warm-up.
class VESTA_API LinearLR : public LRScheduler {
 public:
  explicit LinearLR(Optimizer& optimizer, double start_factor = 1.0 / 3, double end_factor = 1,
                    int64_t total_iters = 5);

 protected:
  double rate(double base, int64_t epoch) const override;

 private:
  double start_, end_;
  int64_t total_;
};

/// eta_min + (base - eta_min) * (1 + cos(pi * epoch / t_max)) / 2 (Loshchilov and Hutter 2017, without restarts).
class VESTA_API CosineAnnealingLR : public LRScheduler {
 public:
  CosineAnnealingLR(Optimizer& optimizer, int64_t t_max, double eta_min = 0);

 protected:
  double rate(double base, int64_t epoch) const override;

 private:
  int64_t t_max_;
  double eta_min_;
};

struct ReduceLROnPlateauOptions {
  std::string mode = "min";  // or "max": what is better
  double factor = 0.1;
  int64_t patience = 10;
  double threshold = 1e-4;
  std::string threshold_mode = "rel";  // or "abs"
  int64_t cooldown = 0;
  double min_lr = 0, eps = 1e-8;
};
/// A schedule that multiplies the rates by `factor` where a metric has not become better for more than `patience`
/// epochs.
class VESTA_API ReduceLROnPlateau {
 public:
  explicit ReduceLROnPlateau(Optimizer& optimizer, ReduceLROnPlateauOptions options = {});
  /// Takes the metric of an epoch.
  void step(double metric);
  double best() const { return best_; }

 private:
  bool is_better(double metric) const;
  Optimizer& optimizer_;
  ReduceLROnPlateauOptions options_;
  double best_;
  int64_t bad_epochs_ = 0, cooling_ = 0;
};

}  // namespace vesta::optim
