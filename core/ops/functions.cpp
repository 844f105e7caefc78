// The functions of the op list: all other files see their declarations, this one makes bodies of the same lines.
//
// Note [Functions are declarations]
// A program that includes <vesta/vesta.h> compiles what it calls, not the bodies of more than a thousand functions and
// methods, nor the call of each of their objects: those took a third of the time of that header. An op's function is
// therefore a call into the library; operators of two tensors (VESTA_OPERATOR) call the object itself. A definition may
// not repeat the default arguments of a declaration, and no macro can take them out of a line of the op list. So the
// functions are defined where other files see them declared: generate.h gives them bodies in this file, methods.h gives
// the methods theirs in methods.cpp. Lists that are no topic, such as those of plug-ins, keep inline functions
// (VESTA_DECLARE_OPS): they need no source file for them.
// Rejected: lines with a macro in the place of each `= 1`, which every reader of the op list would pay for.
#define VESTA_DEFINES_FUNCTIONS
#include <vesta/core/ops/ops.h>
