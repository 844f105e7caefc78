// TORCH_ARG: a field of an options class with a setter that returns the options, so that calls form a chain.
#pragma once
#include <utility>

#define TORCH_ARG(T, name)                                            \
 public:                                                              \
  auto name(const T& value) -> decltype(*this) {                      \
    this->name##_ = value;                                            \
    return *this;                                                     \
  }                                                                   \
  auto name(T&& value) -> decltype(*this) {                           \
    this->name##_ = std::move(value);                                 \
    return *this;                                                     \
  }                                                                   \
  const T& name() const noexcept { return this->name##_; }            \
  T& name() noexcept { return this->name##_; }                        \
                                                                      \
 private:                                                             \
  T name##_ /* NOLINT */
