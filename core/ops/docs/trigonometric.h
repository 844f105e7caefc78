// Docs of the topic trigonometric: what help() and the reference show, but for pointwise ops (their structs do).
#pragma once

namespace vesta::doc {}  // namespace vesta::doc
