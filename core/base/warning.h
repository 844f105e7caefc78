// Warnings: what a user should know and no error is. The library prints nothing; a front end says where they go.
#pragma once
#include <string>

#include <vesta/core/base/macros.h>

namespace vesta {

/// Takes a warning's text. Called on any thread, holding no lock of ours; must not throw.
using WarningHandler = void (*)(const std::string& text);

/// Sets where warnings go; null (the default) drops them. Returns the handler before.
VESTA_API WarningHandler set_warning_handler(WarningHandler handler);
/// Passes a warning on.
VESTA_API void warn(const std::string& text);

}  // namespace vesta
