// The records of a topic's pointwise ops, in the order of their lines: what a device fills its kernels into.
//
//   PointwiseInfo* const infos[] = {VESTA_POINTWISE_INFOS(VESTA_OPS_EXPLOG)};
#pragma once
#include <vesta/core/ops/pointwise.h>

#define VESTA_INFO(kind, ...) VESTA_LINE_##kind(VESTA_INFO, __VA_ARGS__)
#define VESTA_INFO_POINTWISE(name, ...) &::vesta::ops::name.info,
#define VESTA_INFO_POINTWISE_PAIR(...) VESTA_INFO_POINTWISE(__VA_ARGS__)
#define VESTA_INFO_OP(...)
#define VESTA_INFO_OUT(...)
#define VESTA_INFO_TWIN(...)
#define VESTA_INFO_COPIED(...)
#define VESTA_INFO_IN(...)
#define VESTA_INFO_FORM(...)
#define VESTA_INFO_PYTHON_FORM(...)
#define VESTA_INFO_ALIAS(...)
#define VESTA_POINTWISE_INFOS(LIST) LIST(VESTA_INFO)
