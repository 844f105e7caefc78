// Distances, products of vectors, covariances.
#pragma once
#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/distance.h>

namespace vesta {

VESTA_DECLARE_TOPIC(VESTA_OPS_DISTANCE)

}  // namespace vesta
