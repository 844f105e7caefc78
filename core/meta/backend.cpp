// The port of a device without memory: storages know their size, nothing is ever computed.
#include <vesta/core/backend.h>

#include <algorithm>

#include <vesta/core/meta/register.h>
#include <vesta/core/ops/activation.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/compare.h>
#include <vesta/core/ops/explog.h>
#include <vesta/core/ops/numbers.h>
#include <vesta/core/ops/pointwise_table.h>
#include <vesta/core/ops/select.h>
#include <vesta/core/ops/special.h>
#include <vesta/core/ops/topics.h>
#include <vesta/core/ops/trigonometric.h>

namespace vesta::meta {
namespace {

class MetaBackend final : public Backend {
 public:
  const char* name() const override { return "meta"; }
  int device_count() const override { return 1; }
  Memory allocate(size_t, Device) override { return {}; }
  void copy_bytes(void*, const void*, size_t, Device) override {}
  void run(const PointwisePlan&) override {}
  void synchronize(Device) override {}
  void raise_later(const bool*, const char*, Device) override {}
};

/// Lets a pointwise op take the dtypes that it has CPU kernels for. They are never called: run() above does nothing.
void take_dtypes_of_cpu(PointwiseInfo& info) {
  const auto& from = info.kernels[int(DeviceType::cpu)];
  auto& to = info.kernels[int(DeviceType::meta)];
  for (size_t variant = 0; variant < std::size(from); ++variant) {
    std::copy(std::begin(from[variant]), std::end(from[variant]), std::begin(to[variant]));
  }
}

}  // namespace

void register_backend() {
  static MetaBackend backend;
  set_backend(DeviceType::meta, &backend);
}

void register_pointwise() {
#define VESTA_X(topic, LIST)                                                  \
  {                                                                           \
    PointwiseInfo* const infos[] = {VESTA_POINTWISE_INFOS(LIST)};             \
    for (PointwiseInfo* info : infos) take_dtypes_of_cpu(*info);              \
  }
  VESTA_POINTWISE_TOPICS(VESTA_X)
#undef VESTA_X
}

}  // namespace vesta::meta
