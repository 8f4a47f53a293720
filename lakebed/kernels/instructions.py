"""What `memory` names, as numba compiles it. Loaded only where kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_WORD = 64


def _load(bits: int, result: Any, *, signed: bool) -> Any:
    """Return a load of so many bits, at any alignment, little-endian, as a 64-bit number."""

    def load(_typing: object, address: object) -> tuple[object, Callable[..., object]]:
        def build(_context: object, builder: Any, _signature: object, values: Any) -> object:
            kind = ir.IntType(bits)
            pointer = builder.inttoptr(values[0], kind.as_pointer())
            value = builder.load(pointer, align=1)
            if bits == _WORD:
                return value
            extend = builder.sext if signed else builder.zext
            return extend(value, ir.IntType(_WORD))

        return result(types.int64), build

    return intrinsic(load)


load_u64 = _load(64, types.uint64, signed=False)
load_i64 = _load(64, types.int64, signed=True)
load_i32 = _load(32, types.int64, signed=True)
load_i16 = _load(16, types.int64, signed=True)
load_u16 = _load(16, types.int64, signed=False)
load_i8 = _load(8, types.int64, signed=True)
load_u8 = _load(8, types.int64, signed=False)


def _big_endian(_typing: object, value: object) -> tuple[object, Callable[..., object]]:
    def build(_context: object, builder: Any, _signature: object, values: Any) -> object:
        return builder.bswap(values[0])

    return types.uint64(types.uint64), build


big_endian = intrinsic(_big_endian)


def _copy(lanes: int) -> Any:
    """Return a copy of so many words, at any alignment."""

    def copy(_typing: object, to: object, source: object) -> tuple[object, Callable[..., object]]:
        def build(context: Any, builder: Any, _signature: object, values: Any) -> object:
            kind = ir.VectorType(ir.IntType(_WORD), lanes).as_pointer()
            value = builder.load(builder.inttoptr(values[1], kind), align=1)
            builder.store(value, builder.inttoptr(values[0], kind), align=1)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), build

    return intrinsic(copy)


copy_16 = _copy(2)
copy_32 = _copy(4)


def _store(bits: int) -> Any:
    """Return a store of the lowest bits of a number, at any alignment, little-endian."""

    def store(_typing: object, to: object, value: object) -> tuple[object, Callable[..., object]]:
        def build(context: Any, builder: Any, _signature: object, values: Any) -> object:
            kind = ir.IntType(bits)
            lowest = values[1] if bits == _WORD else builder.trunc(values[1], kind)
            builder.store(lowest, builder.inttoptr(values[0], kind.as_pointer()), align=1)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), build

    return intrinsic(store)


store_u8 = _store(8)
store_32 = _store(32)
store_64 = _store(64)


def _zeros(*, leading: bool) -> Any:
    """Return a count of the zero bits at one end of a word; 64 for zero."""

    def count(_typing: object, value: object) -> tuple[object, Callable[..., object]]:
        def build(_context: object, builder: Any, _signature: object, values: Any) -> object:
            instruction = builder.ctlz if leading else builder.cttz
            return instruction(values[0], ir.Constant(ir.IntType(1), 0))

        return types.int64(types.uint64), build

    return intrinsic(count)


leading_zeros = _zeros(leading=True)
trailing_zeros = _zeros(leading=False)


def _prefetch(_typing: object, address: object) -> tuple[object, Callable[..., object]]:
    def build(context: Any, builder: Any, _signature: object, values: Any) -> object:
        byte = ir.IntType(8).as_pointer()
        flag = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        function = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        pointer = builder.inttoptr(values[0], byte)
        builder.call(function, [pointer, flag(0), flag(3), flag(1)])
        return context.get_dummy_value()

    return types.void(types.int64), build


prefetch = intrinsic(_prefetch)


def _call_5(
    _typing: object, function: object, a: object, b: object, c: object, d: object, e: object
) -> tuple[object, Callable[..., object]]:
    def build(_context: object, builder: Any, _signature: object, values: Any) -> object:
        word = ir.IntType(_WORD)
        kind = ir.FunctionType(word, [word] * 5).as_pointer()
        return builder.call(builder.inttoptr(values[0], kind), values[1:])

    return types.int64(*[types.int64] * 6), build


call_5 = intrinsic(_call_5)
