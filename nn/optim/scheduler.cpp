#include <vesta/nn/optim/scheduler.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace vesta::optim {

LRScheduler::LRScheduler(Optimizer& optimizer) : optimizer_(optimizer) {}

void LRScheduler::set_epoch(int64_t epoch) {
  VESTA_CHECK(epoch >= 0, value, "LRScheduler: expected an epoch >= 0, got ", epoch, ".");
  for (size_t g = 0; g < optimizer_.num_groups(); ++g) {
    if (!optimizer_.initial_lr(g)) optimizer_.set_initial_lr(g, optimizer_.lr(g));
    optimizer_.set_lr(g, rate(*optimizer_.initial_lr(g), epoch));
  }
  epoch_ = epoch;
}

std::vector<double> LRScheduler::last_lr() const {
  std::vector<double> r;
  for (size_t g = 0; g < optimizer_.num_groups(); ++g) r.push_back(optimizer_.lr(g));
  return r;
}

LambdaLR::LambdaLR(Optimizer& optimizer, std::function<double(int64_t)> f) : LRScheduler(optimizer), f_(std::move(f)) {
  VESTA_CHECK(f_, value, "LambdaLR: expected a function, got none.");
  begin();
}
double LambdaLR::rate(double base, int64_t epoch) const { return base * f_(epoch); }

StepLR::StepLR(Optimizer& optimizer, int64_t step_size, double gamma)
    : LRScheduler(optimizer), step_size_(step_size), gamma_(gamma) {
  VESTA_CHECK(step_size > 0, value, "StepLR: expected step_size > 0, got ", step_size, ".");
  begin();
}
double StepLR::rate(double base, int64_t epoch) const {
  return base * std::pow(gamma_, static_cast<double>(epoch / step_size_));
}

MultiStepLR::MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma)
    : LRScheduler(optimizer), milestones_(std::move(milestones)), gamma_(gamma) {
  begin();
}
double MultiStepLR::rate(double base, int64_t epoch) const {
  return base * std::pow(gamma_, double(std::ranges::count_if(milestones_, [&](int64_t m) { return m <= epoch; })));
}

ExponentialLR::ExponentialLR(Optimizer& optimizer, double gamma) : LRScheduler(optimizer), gamma_(gamma) { begin(); }
double ExponentialLR::rate(double base, int64_t epoch) const { return base * std::pow(gamma_, double(epoch)); }

LinearLR::LinearLR(Optimizer& optimizer, double start_factor, double end_factor, int64_t total_iters)
    : LRScheduler(optimizer), start_(start_factor), end_(end_factor), total_(total_iters) {
  VESTA_CHECK(start_ > 0 && start_ <= 1, value, "LinearLR: expected start_factor in (0, 1], got ", start_, ".");
  VESTA_CHECK(end_ >= 0 && end_ <= 1, value, "LinearLR: expected end_factor in [0, 1], got ", end_, ".");
  VESTA_CHECK(total_ > 0, value, "LinearLR: expected total_iters > 0, got ", total_, ".");
  begin();
}
double LinearLR::rate(double base, int64_t epoch) const {
  return base * (start_ + (end_ - start_) * double(std::min(epoch, total_)) / double(total_));
}

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, int64_t t_max, double eta_min)
    : LRScheduler(optimizer), t_max_(t_max), eta_min_(eta_min) {
  VESTA_CHECK(t_max > 0, value, "CosineAnnealingLR: expected t_max > 0, got ", t_max, ".");
  begin();
}
double CosineAnnealingLR::rate(double base, int64_t epoch) const {
  return eta_min_ + (base - eta_min_) * (1 + std::cos(std::numbers::pi * double(epoch) / double(t_max_))) / 2;
}

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& optimizer, ReduceLROnPlateauOptions o)
    : optimizer_(optimizer), options_(std::move(o)) {
  VESTA_CHECK(options_.factor < 1, value, "ReduceLROnPlateau: Factor should be < 1.0, got ", options_.factor, ".");
  VESTA_CHECK(options_.mode == "min" || options_.mode == "max", value, "ReduceLROnPlateau: mode ", options_.mode,
              " is unknown! Use 'min' or 'max'.");
  VESTA_CHECK(options_.threshold_mode == "rel" || options_.threshold_mode == "abs", value,
              "ReduceLROnPlateau: threshold mode ", options_.threshold_mode, " is unknown! Use 'rel' or 'abs'.");
  const double worst = std::numeric_limits<double>::infinity();
  best_ = options_.mode == "min" ? worst : -worst;
}

bool ReduceLROnPlateau::is_better(double metric) const {
  const bool lower = options_.mode == "min";
  const double by = options_.threshold_mode == "abs" ? options_.threshold : 0;
  const double share = options_.threshold_mode == "rel" ? options_.threshold : 0;
  return lower ? metric < best_ * (1 - share) - by : metric > best_ * (1 + share) + by;
}

void ReduceLROnPlateau::step(double metric) {
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
  if (bad_epochs_ <= options_.patience) return;
  for (size_t g = 0; g < optimizer_.num_groups(); ++g) {
    const double old = optimizer_.lr(g), next = std::max(old * options_.factor, options_.min_lr);
    if (old - next > options_.eps) optimizer_.set_lr(g, next);
  }
  cooling_ = options_.cooldown;
  bad_epochs_ = 0;
}

}  // namespace vesta::optim
