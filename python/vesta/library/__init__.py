"""Operators of one's own, under ``torch.library``'s names: defined once, called as ``vesta.ops.NAMESPACE.NAME``.

An operator has a schema, a kernel for every device or one for all, and a gradient if it is to have one; a call is one
node of the graph. It works under autocast and in every transform that knows it.

    >>> import vesta
    >>> @vesta.library.custom_op("docs::scaled", mutates_args=())
    ... def scaled(x: vesta.Tensor, by: float = 2.0) -> vesta.Tensor:
    ...     return x * by
    >>> def setup_context(ctx, inputs, output):
    ...     ctx.by = inputs[1]
    >>> scaled.register_autograd(lambda ctx, grad: (grad * ctx.by, None), setup_context=setup_context)
    >>> x = vesta.ones(2, requires_grad=True)
    >>> vesta.ops.docs.scaled(x, 3.0).sum().backward()
    >>> x.grad
    tensor([3., 3.])
"""

from __future__ import annotations

from vesta._names import listing

from .definitions import (
    CustomOpDef,
    Library,
    custom_op,
    define,
    fallthrough_kernel,
    get_ctx,
    impl,
    impl_abstract,
    opcheck,
    register_autocast,
    register_autograd,
    register_fake,
    register_kernel,
    register_torch_dispatch,
    register_vmap,
    triton_op,
    wrap_triton,
)
from .schema import infer_schema

__all__ = [
    "CustomOpDef",
    "Library",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "get_ctx",
    "impl",
    "impl_abstract",
    "infer_schema",
    "opcheck",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
    "register_vmap",
    "triton_op",
    "wrap_triton",
]

__dir__ = listing(globals(), hidden="definitions operators schema")
