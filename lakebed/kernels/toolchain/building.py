"""Compiles a kernel to machine code that stands alone. The only module that asks numba to.

Around the kernel is put an entry of one form for all: it takes the address of 64-bit numbers, which
are the arguments (of an array its address and its lengths, of a record those of its fields), and
the address of the result, and returns 0, or another number where a check failed.
"""

from __future__ import annotations

import typing
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import compiler, registry
from numba.core.compiler_lock import global_compiler_lock
from numba.core.runtime import rtsys
from numba.np import arrayobj

from lakebed.kernels.toolchain.compiling import CHECKED, with_parts
from lakebed.kernels.toolchain.native import ENTRY, array_of, is_record

_OUTSIDE = {"memcpy", "memset", "memmove"}
"""Functions that code may call besides numba's runtime: every process has them."""

_WORD = ir.IntType(64)


def part_of(function: FunctionType) -> object:
    """Return a function that kernels can call."""
    return numba.njit(nogil=True, boundscheck=CHECKED)(function)


@global_compiler_lock  # type: ignore[untyped-decorator]  # numba has no types
def build(function: FunctionType) -> bytes:
    """Return a kernel's object code, with an entry called ENTRY."""
    typing_context = registry.cpu_target.typing_context
    target = registry.cpu_target.target_context
    target.refresh()
    typing_context.refresh()
    hints = typing.get_type_hints(function)
    wanted = hints.pop("return")
    arguments = tuple(_type(hint) for hint in hints.values())
    result = types.none if wanted is type(None) else types.int64
    flags = compiler.Flags()
    flags.no_cpython_wrapper = True
    flags.no_cfunc_wrapper = True
    flags.nrt = True
    flags.boundscheck = CHECKED
    compiled = compiler.compile_extra(
        typing_context, target, with_parts(function), arguments, result, flags, {}
    )
    library = target.codegen().create_library(function.__name__)
    library.enable_object_caching()
    library.add_linking_library(compiled.library)
    library.add_linking_library(rtsys.library)
    library.add_ir_module(_entry(target, compiled, library))
    library.finalize()
    for found in library._final_module.functions:  # noqa: SLF001  no public name
        name = found.name
        known = name.startswith(("llvm.", "NRT_")) or name in _OUTSIDE
        assert known or not found.is_declaration, f"{function.__name__} would need {name}"
    library.get_pointer_to_function(ENTRY)
    code: bytes = library._get_compiled_object()  # noqa: SLF001  what numba keeps in its own cache
    return code


def _type(hint: object) -> Any:
    """Return numba's type of an argument."""
    simple = {int: types.int64, bool: types.boolean, np.uint64: types.uint64}
    if hint in simple:
        return simple[hint]
    if is_record(hint):
        fields = typing.get_type_hints(hint).values()
        return types.BaseTuple.from_types([_type(field) for field in fields], hint)
    kind, dimensions = array_of(hint)
    return types.Array(numba.from_dtype(kind), dimensions, "C")


def _entry(target: Any, compiled: Any, library: Any) -> ir.Module:
    module = library.create_ir_module(ENTRY)
    kind = ir.FunctionType(ir.IntType(32), [_WORD.as_pointer(), _WORD.as_pointer()])
    entry = ir.Function(module, kind, ENTRY)
    builder = ir.IRBuilder(entry.append_basic_block())
    given, out = entry.args
    index = 0

    def word() -> Any:
        nonlocal index
        index += 1
        return builder.load(builder.gep(given, [_WORD(index - 1)]))

    values = [_argument(target, builder, type_, word) for type_ in compiled.signature.args]
    name = compiled.fndesc.llvm_func_name
    callee = ir.Function(
        module,
        target.call_conv.get_function_type(compiled.signature.return_type, compiled.signature.args),
        name,
    )
    status, result = target.call_conv.call_function(
        builder, callee, compiled.signature.return_type, compiled.signature.args, values
    )
    with builder.if_then(status.is_error, likely=False):
        builder.ret(ir.IntType(32)(1))
    if compiled.signature.return_type != types.none:
        builder.store(result, out)
    builder.ret(ir.IntType(32)(0))
    return module


def _argument(target: Any, builder: Any, type_: Any, word: Callable[[], Any]) -> Any:
    if isinstance(type_, types.BaseTuple):
        fields = [_argument(target, builder, field, word) for field in type_.types]
        return target.make_tuple(builder, type_, fields)
    if not isinstance(type_, types.Array):
        value = word()
        return builder.trunc(value, ir.IntType(1)) if type_ == types.boolean else value
    address = word()
    shape = [word() for _ in range(type_.ndim)]
    array = target.make_array(type_)(target, builder)
    element = target.get_data_type(type_.dtype)
    size = target.get_constant(types.intp, target.get_abi_sizeof(element))
    strides = [size]
    for length in shape[:0:-1]:
        strides.insert(0, builder.mul(strides[0], length))
    arrayobj.populate_array(
        array,
        data=builder.inttoptr(address, element.as_pointer()),
        shape=shape,
        strides=strides,
        itemsize=size,
        meminfo=None,
    )
    return array._getvalue()  # noqa: SLF001  numba's own name for it
