// The few macros that every folder may use. Everything else is a function, a template or a constant.
#pragma once

/// Exports a symbol of the library. The build hides everything else (-fvisibility=hidden).
#define VESTA_API __attribute__((visibility("default")))

#ifdef __CUDACC__
/// Marks a function that both the host and the device may call.
#define VESTA_HD __host__ __device__
/// Inlines at every call, at every optimisation level. See Note [No weak symbols] in core/cpu/simd.h.
#define VESTA_INLINE __forceinline__
#else
#define VESTA_HD
#define VESTA_INLINE inline __attribute__((always_inline))
#endif

/// The instruction set that this translation unit is compiled for: baseline, avx2 or avx512. The build defines it
/// (-DVESTA_ISA=avx2) together with the compiler's flags; code that is compiled once for all sets is baseline.
#ifndef VESTA_ISA
#define VESTA_ISA baseline
#endif

/// The namespace that holds everything that is compiled once per instruction set. See Note [No weak symbols].
#define VESTA_ISA_NS VESTA_ISA

/// The implementation that a tensor's method looks at. A program may hold an undefined tensor, which raises; the
/// library checks tensors where they come in.
#ifdef VESTA_TENSOR_WITHOUT_OPS
#define VESTA_DEFINED(impl) impl
#else
#define VESTA_DEFINED(impl)                                                                             \
  (impl ? void()                                                                                         \
        : ::vesta::fail(::vesta::Cause::value, "Tensor: expected a defined tensor, got an undefined one."), \
   impl)
#endif
