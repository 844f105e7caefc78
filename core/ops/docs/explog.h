// Docs of the topic explog: what help() and the reference show, but for pointwise ops, whose structs have theirs.
#pragma once

namespace vesta::doc {}  // namespace vesta::doc
