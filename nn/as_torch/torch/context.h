// at::globalContext(): switches of the process, and what this build has.
#pragma once
#include <torch/guards.h>

#include <vesta/core/precision.h>

namespace torch {

class Context {
 public:
  bool hasCUDA() const { return cuda::is_available(); }
  bool hasCuDNN() const { return cuda::cudnn_is_available(); }
  bool hasLAPACK() const { return true; }
  bool hasOpenMP() const { return false; }
  bool hasMKL() const { return false; }
  bool hasMKLDNN() const { return false; }
  bool hasMPS() const { return false; }
  bool hasXPU() const { return false; }
  int getNumGPUs() const { return int(cuda::device_count()); }
  bool allowTF32CuBLAS() const { return settings().matmul_allow_tf32; }
  void setAllowTF32CuBLAS(bool on) { settings().matmul_allow_tf32 = on; }
  bool allowTF32CuDNN() const { return settings().convolution_allow_tf32; }
  void setAllowTF32CuDNN(bool on) { settings().convolution_allow_tf32 = on; }
  bool userEnabledCuDNN() const { return settings().convolution_library; }
  void setUserEnabledCuDNN(bool on) { settings().convolution_library = on; }
  bool deterministicAlgorithms() const { return settings().deterministic_only; }
  void setDeterministicAlgorithms(bool on, bool /*warn_only*/ = false) { settings().deterministic_only = on; }
  /// Vesta's convolutions are deterministic unless a program allows others; they stay so with false.
  bool deterministicCuDNN() const { return !vesta::may_be_nondeterministic(); }
  void setDeterministicCuDNN(bool on) {
    if (on) settings().allow_nondeterministic = false;
  }
  /// Algorithms are not chosen by trial: a request to is without effect.
  bool benchmarkCuDNN() const { return false; }
  void setBenchmarkCuDNN(bool /*on*/) {}
  vesta::Generator& defaultGenerator(Device device) const { return vesta::default_generator(device); }

 private:
  static vesta::ProductSettings& settings() { return vesta::product_settings(); }
};

inline Context& globalContext() {
  static Context context;
  return context;
}

}  // namespace torch
