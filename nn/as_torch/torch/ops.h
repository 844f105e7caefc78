// The functions of Vesta's op lists in namespace torch, by using-declarations: a directive would bring Vesta's
// namespaces, too (nn), into programs that say `using namespace torch`. What has another form in libtorch is in
// factories.h and functions.h.
#pragma once
#include <torch/tensor.h>  // before Vesta's

#include <vesta/core/ops/ops.h>
#include <vesta/core/ops/topics.h>

// clang-format off
#define VESTA_USING(kind, ...) VESTA_LINE_##kind(VESTA_USING, __VA_ARGS__)
#define VESTA_USING_POINTWISE(name, ...) using vesta::name; using vesta::name##_out;
#define VESTA_USING_POINTWISE_PAIR(name, ...) using vesta::name;
#define VESTA_USING_OP(R, object, name, ...) using vesta::name;
#define VESTA_USING_OUT(R, object, name, ...) using vesta::name; using vesta::name##_out;
#define VESTA_USING_TWIN(...) VESTA_USING_OP(__VA_ARGS__)
#define VESTA_USING_COPIED(source, ...) VESTA_USING_OP(__VA_ARGS__)
#define VESTA_USING_IN(space, R, name, ...) using vesta::space##_##name;
#define VESTA_USING_FORM(R, object, name, ...) using vesta::name;
#define VESTA_USING_PYTHON_FORM(...)
#define VESTA_USING_ALIAS(alias, name) using vesta::alias;
#define VESTA_USING_IN_SPACE(kind, ...) VESTA_LINE_##kind(VESTA_USING_IN_SPACE, __VA_ARGS__)
#define VESTA_USING_IN_SPACE_POINTWISE(...)
#define VESTA_USING_IN_SPACE_POINTWISE_PAIR(...)
#define VESTA_USING_IN_SPACE_OP(...)
#define VESTA_USING_IN_SPACE_OUT(...)
#define VESTA_USING_IN_SPACE_TWIN(...)
#define VESTA_USING_IN_SPACE_COPIED(...)
#define VESTA_USING_IN_SPACE_IN(space, R, name, ...) namespace space { using vesta::space::name; }
#define VESTA_USING_IN_SPACE_FORM(...)
#define VESTA_USING_IN_SPACE_PYTHON_FORM(...)
#define VESTA_USING_IN_SPACE_ALIAS(...)
// clang-format on

namespace torch {

// Topics whose functions have other forms here.
#pragma push_macro("VESTA_OPS_CONV")
#pragma push_macro("VESTA_OPS_FACTORY")
#pragma push_macro("VESTA_OPS_LOSS")
#pragma push_macro("VESTA_OPS_RANDOM")
#undef VESTA_OPS_CONV
#undef VESTA_OPS_FACTORY
#undef VESTA_OPS_LOSS
#undef VESTA_OPS_RANDOM
#define VESTA_OPS_CONV(OP)
#define VESTA_OPS_FACTORY(OP)
#define VESTA_OPS_LOSS(OP)
#define VESTA_OPS_RANDOM(OP)
#define VESTA_X(topic, LIST) LIST(VESTA_USING)
VESTA_TOPICS(VESTA_X)
#undef VESTA_X
#pragma pop_macro("VESTA_OPS_CONV")
#pragma pop_macro("VESTA_OPS_FACTORY")
#pragma pop_macro("VESTA_OPS_LOSS")
#pragma pop_macro("VESTA_OPS_RANDOM")
using vesta::bernoulli;
using vesta::conv_transpose1d;
using vesta::conv_transpose2d;
using vesta::conv_transpose3d;
using vesta::convolution;
using vesta::multinomial;
using vesta::native_dropout;
using vesta::poisson;

#define VESTA_X(topic, LIST) LIST(VESTA_USING_IN_SPACE)
VESTA_TOPICS(VESTA_X)
#undef VESTA_X

}  // namespace torch
