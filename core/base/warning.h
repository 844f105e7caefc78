// Warnings: messages to the user that are no errors. The library prints nothing; a front end sets where they go.
#pragma once
#include <string>

#include <vesta/core/base/macros.h>

namespace vesta {

/// A function that receives a warning's text. It is called on any thread, with none of our locks held, and must not
/// throw.
using WarningHandler = void (*)(const std::string& text);

/// Sets where warnings go; null (the default) drops them. Returns the previous handler.
VESTA_API WarningHandler set_warning_handler(WarningHandler handler);
/// Passes a warning to the handler.
VESTA_API void warn(const std::string& text);

}  // namespace vesta
