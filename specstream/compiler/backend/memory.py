"""The elements of the state in LLVM instructions: one load and one store per variant.

This is where a variant differs from another, and the only place:

- *transactional*: a load looks into the redo log, else reads the word once, atomically, and logs
  (word, value); a store goes to the redo log. The first probe of the index decides in nearly all
  cases and is generated here; C does the rest (``redo_log.c``, and ``redo_index.c``, which must
  agree on the hash).
- *profiled* and *profiled_eager*: the same as the variant beside, and the logs say on which line an
  access stands (:mod:`specstream.compiler.backend.operator_lowering`).
- *eager*: every load and store is a call of C (``eager.c``), which may end the run.
- *plain*: a load is a load; a store first puts (address, old value) into the undo log.
- *log_free* and *locked*: loads and stores.

A row or slice that is read or written as a whole is logged as a whole (``ranges.c``): its elements
are then taken from where C has put them, or put where C says, which is a space of its own, "range".

A speculative load must be one load: an optimiser that read the word again after a bounds check
could see another value. Hence ``load atomic monotonic``; it costs nothing. Stores of the plain
variant are atomic for the speculators that read at the same moment.

Elements narrower than a word (:mod:`specstream.declarations.element_types`) are logged by word,
with a mask of the bytes meant. That is C's work (``narrow.h``); the code generated here for whole
words knows nothing of masks, and leaves them 0. All that several threads touch at once are whole
words: a narrow store of the head writes the word that it has just put into the undo log, with one
element changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from specstream._native import ffi, lib
from specstream.compiler.backend.instructions import (
    BIT,
    F32,
    F64,
    I32,
    I64,
    POINTER,
    Instructions,
    Value,
)
from specstream.compiler.backend.numba_types import (
    BASES,
    EAGER,
    PROFILED,
    SPECULATIVE,
    UNDOING,
    Base,
    ContainerType,
    Variant,
)
from specstream.declarations.codes import EMPTY
from specstream.declarations.element_types import Number, Storage, storage_of
from specstream.declarations.forms import packed_kinds
from specstream.declarations.schema import Kind

__all__ = ["Run"]

# The quiet NaN without sign and payload, as Python's math.nan.
NAN_BITS = 0x7FF8000000000000
NAN32_BITS = 0x7FC00000

_SLOT_BYTES = ffi.sizeof("struct ss_slot")
_READ_BYTES = ffi.sizeof("struct ss_read")
_WRITE_BYTES = ffi.sizeof("struct ss_write")
_UNDO_BYTES = ffi.sizeof("struct ss_undo")
# Of the first word of a struct ss_write: `word` and `bytes` lie below the delta, `is_last` and
# `next` above it.
_DELTA_BIT, _DELTA_BITS = 40, 4
_PENDING = 1 << 32  # SS_PENDING, of src/core/redo_index.h


class Run(Instructions):
    """Writes instructions that use a ``struct ss_run``."""

    def __init__(self, context: Any, builder: Any, pointer: Value) -> None:
        super().__init__(context, builder)
        self.pointer = pointer

    # -- members --

    def member_address(self, name: str, of: ir.Type = I64) -> Value:
        offset = I64(ffi.offsetof("struct ss_run", name))
        address = self.builder.gep(self.pointer, [offset], inbounds=True)
        return self.builder.bitcast(address, of.as_pointer())

    def load_member(self, name: str, of: ir.Type = I64, invariant: bool = False) -> Value:
        """A member. ``invariant``: it stays the same while an entry runs, so that the optimiser
        may keep it in a register across stores to the state."""
        value = self.builder.load(self.member_address(name, of))
        return self.invariant(value) if invariant else value

    def store_member(self, name: str, value: Value) -> None:
        self.builder.store(value, self.member_address(name, value.type))

    def invariant(self, load: Value) -> Value:
        load.set_metadata("invariant.load", self.builder.module.add_metadata([]))
        return load

    def store_told(self, kinds: tuple[str, ...], words: list[Value]) -> None:
        """Puts down what the text of an exception is made of."""
        row = self.member_address("told", ir.ArrayType(I64, lib.SS_ERROR_WORDS))
        for at, word in enumerate([I64(packed_kinds(kinds)), *words]):
            self.builder.store(word, self.builder.gep(row, [I64(0), I64(at)], inbounds=True))

    # -- leaving --

    def leave_if_verdict(self) -> None:
        verdict = self.load_member("verdict", I32)
        self.leave_if(self.builder.icmp_unsigned("!=", verdict, I32(lib.SS_COMPLETED)))

    def poll(self) -> None:
        """Leaves the event where the runtime asked for it."""
        builder = self.builder
        address = self.member_address("kill", I32)
        asked = builder.icmp_unsigned("!=", builder.load_atomic(address, "monotonic", 4), I32(0))
        with builder.if_then(asked, likely=False):
            leaves = self.call("ss_poll", I32, self.pointer)
            self.leave_if(builder.icmp_unsigned("!=", leaves, I32(0)))

    # -- words --

    def address(self, base: Value, index: Value, size: int, of: ir.Type = I64) -> Value:
        """``base + index * size`` as a pointer."""
        offset = self.builder.mul(index, I64(size))
        byte = self.builder.gep(base, [offset], inbounds=True)
        return self.builder.bitcast(byte, of.as_pointer())

    def second(self, entry: Value) -> Value:
        """The second member of a two-word entry."""
        return self.builder.gep(entry, [I64(1)], inbounds=True)

    def word_address(self, space: str, word: Value) -> Value:
        base = self.load_member(space, POINTER, invariant=True)
        return self.address(base, word, 8)

    def element_address(self, space: str, storage: Storage, at: Value) -> Value:
        if space == "range":
            # Counted from the run. An address made of an integer would be one on the null pointer
            # when a helper's optimised code is optimised again, and its loads would be poison.
            offset = self.builder.mul(at, I64(8))
            return self.builder.bitcast(self.builder.gep(self.pointer, [offset]), I64.as_pointer())
        base = self.load_member(space, POINTER, invariant=True)
        return self.address(base, at, storage.size, ir.IntType(8 * storage.size))

    def word_number(self, words: Value) -> Value:
        """The number of a word in the space "range", of its address."""
        builder = self.builder
        bytes_ = builder.sub(builder.ptrtoint(words, I64), builder.ptrtoint(self.pointer, I64))
        return builder.ashr(bytes_, I64(3))

    def moved(self, of: ContainerType, base: Base, at: int) -> Value:
        """Where something of a container lies, or its number, which stands ``at`` in its layout."""
        if not of.is_moved:
            return I64(at)
        place = I64(BASES.index(base))
        word = self.builder.load(self.element_address("scratch", storage_of(int, "a base"), place))
        return self.builder.add(word, I64(at))

    def load(self, space: str, variant: Variant, storage: Storage, at: Value) -> Value:
        """Element number ``at``, widened; the caller has checked the bounds.

        Elements are counted in their own size from the start of the space.
        """
        if space == "state" and variant in SPECULATIVE:
            bits = self._load_speculatively(variant, storage, at)
        else:
            bits = self.builder.load(self.element_address(space, storage, at))
        return self.widen(storage, bits)

    def store(
        self, space: str, variant: Variant, storage: Storage, at: Value, value: Value
    ) -> None:
        """Changes an element; the caller has checked the bounds and the kind.

        An integer that does not fit is a fault, and nothing is stored.
        """
        bits = self.narrow(storage, value)
        if space == "state" and variant in SPECULATIVE:
            self._store_speculatively(variant, storage, at, bits)
        elif space == "state" and variant in UNDOING:
            self._store_plain(storage, at, bits)
        else:
            self.builder.store(bits, self.element_address(space, storage, at))

    def load_range(self, variant: Variant, at: Value, count: Value) -> Value:
        """Neighbouring words of the state, as one entry of the log; their address."""
        symbol = "ss_eager_load_range" if variant in EAGER else "ss_load_range"
        words = self.call(symbol, POINTER, self.pointer, at, count)
        self.leave_if(cgutils.is_null(self.builder, words))
        return words

    def store_range(self, variant: Variant, at: Value, count: Value) -> Value:
        """Where neighbouring words of the state are put as one entry of the log; their address.

        Null: they have to be stored one by one, after a look at the verdict.
        """
        symbol = "ss_eager_store_range" if variant in EAGER else "ss_store_range"
        return self.call(symbol, POINTER, self.pointer, at, count)

    def _load_speculatively(self, variant: Variant, storage: Storage, at: Value) -> Value:
        if variant not in EAGER and not storage.is_narrow:
            return self._load_transactional(variant, at)
        symbol = "ss_eager_load" if variant in EAGER else "ss_load"
        if storage.is_narrow:
            size = I64(storage.size)
            byte = self.builder.mul(at, size)
            bits = self.call(f"{symbol}_bytes", I64, self.pointer, byte, size)
            bits = self.builder.trunc(bits, ir.IntType(8 * storage.size))
        else:
            bits = self.call(symbol, I64, self.pointer, at)
        self.leave_if_verdict()
        return bits

    def _store_speculatively(
        self, variant: Variant, storage: Storage, at: Value, bits: Value
    ) -> None:
        if variant not in EAGER and not storage.is_narrow:
            self._store_transactional(at, bits)
            return
        symbol = "ss_eager_store" if variant in EAGER else "ss_store"
        if storage.is_narrow:
            size = I64(storage.size)
            byte = self.builder.mul(at, size)
            value = self.builder.zext(bits, I64)
            self.call(f"{symbol}_bytes", ir.VoidType(), self.pointer, byte, size, value)
        else:
            self.call(symbol, ir.VoidType(), self.pointer, at, bits)
        self.leave_if_verdict()

    # -- numbers and the bits that they are kept as --

    def widen(self, storage: Storage, bits: Value) -> Value:
        """The number in an element's bits; exact."""
        builder = self.builder
        if not storage.is_narrow:
            if storage.number == "float":
                return builder.bitcast(bits, F64)
            if storage.number == "str":
                none = builder.icmp_unsigned("==", bits, I64(0))
                return builder.select(none, I64(EMPTY), bits)
            if storage.number == "bool":
                return builder.icmp_unsigned("!=", bits, I64(0))
            return bits
        if storage.number == "float":
            return builder.fpext(builder.bitcast(bits, F32), F64)
        if storage.number == "bool":
            return builder.icmp_unsigned("!=", bits, bits.type(0))
        signed = storage.dtype.kind == "i"
        return builder.sext(bits, I64) if signed else builder.zext(bits, I64)

    def narrow(self, storage: Storage, value: Value) -> Value:
        """A number as an element's bits; a fault where it is outside of an integer's range."""
        builder = self.builder
        if storage.number == "str":
            empty = builder.icmp_unsigned("==", value, I64(EMPTY))
            return builder.select(empty, I64(0), value)
        if not storage.is_narrow:
            return self.to_bits(storage.number, value)
        if storage.number == "float":
            rounded = builder.bitcast(builder.fptrunc(value, F32), I32)
            nan = builder.fcmp_unordered("uno", value, value)
            return builder.select(nan, I32(NAN32_BITS), rounded)
        unit = ir.IntType(8 * storage.size)
        if storage.number == "bool":
            return builder.zext(value, unit)
        bits = builder.trunc(value, unit)
        self.fault_if(builder.icmp_signed("!=", self.widen(storage, bits), value), OverflowError)
        return bits

    def to_bits(self, kind: Kind | Number, value: Value) -> Value:
        """A number as a whole word."""
        if kind == "float":
            # Which NaN an operation yields is the processor's choice; what is kept is the same.
            nan = self.builder.fcmp_unordered("uno", value, value)
            return self.builder.select(nan, I64(NAN_BITS), self.builder.bitcast(value, I64))
        if kind == "bool":
            return self.builder.zext(value, I64)
        return value

    # -- plain --

    def _store_plain(self, storage: Storage, at: Value, bits: Value) -> None:
        builder = self.builder
        word = at
        if storage.is_narrow:
            word, kept, part = self._part_of_word(storage, at, bits)
        top = self.load_member("undo_top", POINTER)
        full = builder.icmp_unsigned("==", top, self.load_member("undo_end", POINTER))
        with builder.if_then(full, likely=False):
            grown = self.call("ss_undo_grow", BIT, self.pointer)
            self.leave_if(builder.not_(grown))
        top = self.load_member("undo_top", POINTER)
        address = self.word_address("state", word)
        entry = builder.bitcast(top, I64.as_pointer())
        builder.store(builder.ptrtoint(address, I64), entry)
        old = builder.load(address)
        builder.store(old, self.second(entry))
        self.store_member("undo_top", builder.gep(top, [I64(_UNDO_BYTES)], inbounds=True))
        new = builder.or_(builder.and_(old, kept), part) if storage.is_narrow else bits
        builder.store_atomic(new, address, "monotonic", 8)

    def _part_of_word(self, storage: Storage, at: Value, bits: Value) -> tuple[Value, Value, Value]:
        """The word that an element is in, the bits of it that a store keeps, and those it sets."""
        builder = self.builder
        in_word = 8 // storage.size
        word = builder.lshr(at, I64(in_word.bit_length() - 1))
        # The element at the lowest address is the lowest part: little-endian processors only.
        shift = builder.mul(builder.and_(at, I64(in_word - 1)), I64(8 * storage.size))
        kept = builder.not_(builder.shl(I64(2 ** (8 * storage.size) - 1), shift))
        return word, kept, builder.shl(builder.zext(bits, I64), shift)

    # -- transactional --

    def _probe(self, word: Value) -> tuple[Value, Value, Value]:
        """The first slot for a word: its address, whether it is the word's, whether it is empty."""
        builder = self.builder
        epoch = self.load_member("epoch_key", invariant=True)
        folded = builder.xor(word, builder.lshr(word, I64(11)))
        at = builder.and_(folded, self.load_member("slot_mask", invariant=True))
        slot = self.address(self.load_member("slots", POINTER, invariant=True), at, _SLOT_BYTES)
        key = builder.load(slot)
        found = builder.icmp_unsigned("==", key, builder.or_(epoch, word))
        age = builder.lshr(builder.xor(key, epoch), I64(32))
        # An age of 1 is that of a word with deltas, neither found nor empty (SS_PENDING): C knows.
        return slot, found, builder.icmp_unsigned(">", age, I64(1))

    def _redo_value(self, position: Value) -> Value:
        redo = self.load_member("redo", POINTER, invariant=True)
        return self.second(self.address(redo, position, 8))

    def _branches(
        self, cases: list[tuple[Value | None, Callable[[], Value | None]]]
    ) -> Value | None:
        """The value of the first case whose condition holds; the last has none."""
        builder = self.builder
        after = builder.append_basic_block("after")
        results = []
        for condition, body in cases:
            if condition is None:
                result = body()
                results.append((result, builder.block))
                builder.branch(after)
                continue
            yes, no = builder.append_basic_block("yes"), builder.append_basic_block("no")
            builder.cbranch(condition, yes, no)
            builder.position_at_end(yes)
            result = body()
            results.append((result, builder.block))
            builder.branch(after)
            builder.position_at_end(no)
        builder.position_at_end(after)
        if results[0][0] is None:
            return None
        phi = builder.phi(I64)
        for result, block in results:
            phi.add_incoming(result, block)
        return phi

    def _load_transactional(self, variant: Variant, word: Value) -> Value:
        builder = self.builder
        slot, found, empty = self._probe(word)
        top = self.load_member("read_top", POINTER)
        end = self.load_member("read_end", POINTER, invariant=True)
        fresh = builder.and_(empty, builder.icmp_unsigned("!=", top, end))

        def from_state() -> Value:
            address = self.word_address("state", word)
            value = builder.load_atomic(address, "monotonic", 8)
            entry = builder.bitcast(top, I64.as_pointer())
            builder.store(self._with_site(word) if variant in PROFILED.values() else word, entry)
            builder.store(value, self.second(entry))
            self.store_member("read_top", builder.gep(top, [I64(_READ_BYTES)], inbounds=True))
            return value

        def from_redo_log() -> Value:
            return builder.load(self._redo_value(builder.load(self.second(slot))))

        def from_c() -> Value:
            value = self.call("ss_load", I64, self.pointer, word)
            self.leave_if_verdict()
            return value

        return self._branches([(fresh, from_state), (found, from_redo_log), (None, from_c)])

    def _with_site(self, word: Value) -> Value:
        """The first word of a read log's entry that names the line, too."""
        site = self.builder.zext(self.load_member("site", ir.IntType(16)), I64)
        bits = 8 * ffi.offsetof("struct ss_read", "site")
        return self.builder.or_(word, self.builder.shl(site, I64(bits)))

    def _store_transactional(self, word: Value, bits: Value) -> None:
        builder = self.builder
        slot, found, empty = self._probe(word)
        count = self.load_member("redo_count")
        limit = self.load_member("redo_limit", invariant=True)
        fresh = builder.and_(empty, builder.icmp_unsigned("!=", count, limit))

        def append() -> None:
            epoch = self.load_member("epoch_key", invariant=True)
            builder.store(builder.or_(epoch, word), slot)
            builder.store(builder.add(count, count), self.second(slot))  # in words
            redo = self.load_member("redo", POINTER, invariant=True)
            entry = self.address(redo, count, _WRITE_BYTES)
            builder.store(word, entry)
            builder.store(bits, self.second(entry))
            self.store_member("redo_count", builder.add(count, I64(1)))

        def overwrite() -> None:
            builder.store(bits, self._redo_value(builder.load(self.second(slot))))

        def in_c() -> None:
            self.call("ss_store", ir.VoidType(), self.pointer, word, bits)
            self.leave_if_verdict()

        self._branches([(found, overwrite), (fresh, append), (None, in_c)])

    def update_transactional(
        self, word: Value, delta: int, operand: Value, combined: Callable[[Value, Value], Value]
    ) -> None:
        """An update (``enum ss_delta``) of a whole integer: ``combined`` of it and ``operand``."""
        builder = self.builder
        slot, found, empty = self._probe(word)
        epoch = self.load_member("epoch_key", invariant=True)
        pending = builder.icmp_unsigned(
            "==", builder.load(slot), builder.or_(epoch, builder.or_(word, I64(_PENDING)))
        )
        count = self.load_member("redo_count")
        limit = self.load_member("redo_limit", invariant=True)
        room = builder.and_(
            builder.icmp_unsigned("!=", count, limit),
            builder.icmp_unsigned("<", count, I64(lib.SS_MOST_LINKED)),
        )
        # What identifies an entry: word, bytes and delta, as _DELTA_BIT says.
        head = builder.or_(word, I64(delta << _DELTA_BIT))

        def combine(address: Value) -> None:
            builder.store(combined(builder.load(address), operand), address)

        def stored() -> None:
            combine(self._redo_value(builder.load(self.second(slot))))

        def join() -> None:
            position = builder.load(self.second(slot))
            entry = self.address(self.load_member("redo", POINTER, invariant=True), position, 8)
            own = builder.and_(builder.load(entry), I64((1 << _DELTA_BIT + _DELTA_BITS) - 1))
            is_like_it = builder.icmp_unsigned("==", own, head)
            self._branches([(is_like_it, lambda: combine(self.second(entry))), (None, in_c)])

        def append() -> None:
            builder.store(builder.or_(epoch, builder.or_(word, I64(_PENDING))), slot)
            builder.store(builder.add(count, count), self.second(slot))  # in words
            redo = self.load_member("redo", POINTER, invariant=True)
            entry = self.address(redo, count, _WRITE_BYTES)
            # The last one of a chain of one: `next` is its own place.
            alone = builder.or_(
                I64(1 << _DELTA_BIT + _DELTA_BITS),
                builder.shl(count, I64(_DELTA_BIT + _DELTA_BITS + 1)),
            )
            builder.store(builder.or_(head, alone), entry)
            builder.store(operand, self.second(entry))
            self.store_member("redo_count", builder.add(count, I64(1)))
            deltas = self.load_member("delta_count")
            self.store_member("delta_count", builder.add(deltas, I64(1)))

        def in_c() -> None:
            self.update_in_c("ss_delta", word, 8, delta, operand)

        fresh = builder.and_(empty, room)
        self._branches([(pending, join), (fresh, append), (found, stored), (None, in_c)])

    def update_in_c(self, symbol: str, at: Value, size: int, delta: int, operand: Value) -> None:
        """An update (``enum ss_delta``) of element number ``at``, each of ``size`` bytes."""
        byte = self.builder.mul(at, I64(size))
        self.call(symbol, ir.VoidType(), self.pointer, byte, I64(size), I64(delta), operand)
        self.leave_if_verdict()
