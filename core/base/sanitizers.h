// Whether a sanitizer watches memory in this build.
#pragma once

/// Is 1 where a sanitizer must see every block of memory taken and given back, so that none may be cached, else 0. GCC
/// says so with macros, Clang with features.
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
