// The docs of structured ops and composites: `doc::NAME`, from the headers of core/ops. An op whose header says nothing
// gets an empty text, by the rule that a namespace's own names come before those of a namespace it uses.
#pragma once
#include <vesta/core/ops/amp.h>
#include <vesta/core/ops/list.h>
#if __has_include(<vesta/core/ops/composite.h>)
#include <vesta/core/ops/composite.h>
#endif
#if __has_include(<vesta/core/ops/copy.h>)
#include <vesta/core/ops/copy.h>
#endif
#if __has_include(<vesta/core/ops/factory.h>)
#include <vesta/core/ops/factory.h>
#endif
#if __has_include(<vesta/core/ops/index.h>)
#include <vesta/core/ops/index.h>
#endif
#include <vesta/core/ops/nn.h>
#if __has_include(<vesta/core/ops/random.h>)
#include <vesta/core/ops/random.h>
#endif
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/scan.h>
#if __has_include(<vesta/core/ops/view.h>)
#include <vesta/core/ops/view.h>
#endif

namespace vesta::doc_missing {
#define VESTA_X_STRUCTURED(R, name, params, args) inline constexpr char name[] = "";
VESTA_STRUCTURED(VESTA_X_STRUCTURED, VESTA_X_STRUCTURED)
VESTA_COMPOSITE(VESTA_X_STRUCTURED, VESTA_X_STRUCTURED)
#undef VESTA_X_STRUCTURED
}  // namespace vesta::doc_missing
namespace vesta::doc { using namespace doc_missing; }
