"""Compiles what `memory` names, by numba. Loaded only where kernels are compiled."""

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


_LANES = ir.VectorType(ir.IntType(_WORD), 2)
_FOLD_FOUR = (0x154442BD4, 0x1C6E41596)
"""Powers of x, modulo the polynomial of CRC-32: over 64 bytes."""
_FOLD_ONE = (0x1751997D0, 0x0CCAA009E)
"""The same, over 16 bytes."""


def _multiplies_without_carry(context: Any) -> bool:
    _, _, features = context.codegen().magic_tuple()
    return "+pclmul" in features.split(",")


def _folds_crc32(_typing: object) -> tuple[object, Callable[..., object]]:
    def build(context: Any, _builder: object, _signature: object, _values: object) -> object:
        return ir.Constant(ir.IntType(1), _multiplies_without_carry(context))

    return types.boolean(), build


folds_crc32 = intrinsic(_folds_crc32)


def _fold_crc32(
    _typing: object, rest: object, at: object, times: object
) -> tuple[object, Callable[..., object]]:
    def build(context: Any, builder: Any, signature: Any, values: Any) -> object:
        word = ir.IntType(_WORD)
        low = high = ir.Constant(word, 0)
        if _multiplies_without_carry(context):
            folded = _folded(builder, *values)
            low, high = (builder.extract_element(folded, ir.IntType(32)(i)) for i in (0, 1))
        return context.make_tuple(builder, signature.return_type, [low, high])

    return types.UniTuple(types.uint64, 2)(types.int64, types.int64, types.int64), build


fold_crc32 = intrinsic(_fold_crc32)


def _folded(builder: Any, rest: Any, at: Any, times: Any) -> Any:
    """Build the loop: four times 16 bytes are folded into the next four, at last into one."""
    word, byte = ir.IntType(_WORD), ir.IntType(8)
    kind = ir.FunctionType(_LANES, [_LANES, _LANES, byte])
    multiply = builder.module.declare_intrinsic("llvm.x86.pclmulqdq", fnty=kind)

    def lanes(address: Any, index: int) -> Any:
        pointer = builder.inttoptr(
            builder.add(address, ir.Constant(word, 16 * index)), _LANES.as_pointer()
        )
        return builder.load(pointer, align=1)

    def onto(value: Any, factors: tuple[int, int], next_: Any) -> Any:
        by = ir.Constant(_LANES, list(factors))
        both = [builder.call(multiply, [value, by, ir.Constant(byte, n)]) for n in (0x00, 0x11)]
        return builder.xor(builder.xor(*both), next_)

    begun = ir.Constant(_LANES, [0, 0])
    begun = builder.insert_element(begun, rest, ir.IntType(32)(0))
    first = [builder.xor(lanes(at, 0), begun), *(lanes(at, index) for index in (1, 2, 3))]
    before = builder.block
    loop, end = builder.append_basic_block("fold"), builder.append_basic_block("folded")
    one = ir.Constant(word, 1)
    builder.branch(loop)
    builder.position_at_end(loop)
    done = builder.phi(word)
    done.add_incoming(one, before)
    held = [builder.phi(_LANES) for _ in first]
    for value, given in zip(held, first, strict=True):
        value.add_incoming(given, before)
    body = builder.append_basic_block("fold_more")
    builder.cbranch(builder.icmp_unsigned("<", done, times), body, end)
    builder.position_at_end(body)
    here = builder.add(at, builder.mul(done, ir.Constant(word, 64)))
    for index, value in enumerate(held):
        value.add_incoming(onto(value, _FOLD_FOUR, lanes(here, index)), body)
    done.add_incoming(builder.add(done, one), body)
    builder.branch(loop)
    builder.position_at_end(end)
    folded = held[0]
    for value in held[1:]:
        folded = onto(folded, _FOLD_ONE, value)
    return folded
