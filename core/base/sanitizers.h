// A macro for builds in which a sanitizer checks memory.
#pragma once

/// Expands to 1 if a sanitizer checks memory, else to 0. It must then see each allocation and each release, so no block
/// may be cached. GCC defines macros for sanitizers; Clang has __has_feature.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_HWADDRESS__) || defined(__SANITIZE_THREAD__)
#define VESTA_SANITIZED 1
#elif !defined(__has_feature)
#define VESTA_SANITIZED 0
#elif __has_feature(address_sanitizer) || __has_feature(hwaddress_sanitizer) || __has_feature(memory_sanitizer) || \
    __has_feature(thread_sanitizer)
#define VESTA_SANITIZED 1
#else
#define VESTA_SANITIZED 0
#endif
