# Written by stm_native/stub.py from the C headers: change those, and run it.

from collections.abc import Callable, Iterator
from typing import Any, Generic, Self, SupportsFloat, SupportsIndex, TypeVar, overload

T = TypeVar("T", covariant=True)
C = TypeVar("C", bound="CData")
F = TypeVar("F", bound=Callable[..., Any])

class CData:
    """Anything of C: a pointer, an array, a structure."""
    def __int__(self) -> int: ...

class Pointer(CData, Generic[T]):
    @overload
    def __getitem__(self, at: SupportsIndex) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> Array[T]: ...
    def __setitem__(self, at: SupportsIndex | slice, value: Any) -> None: ...
    def __add__(self, count: int) -> Self: ...

class Array(Pointer[T]):
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[T]: ...

class FFI:
    NULL: Any  # a pointer of every type
    def new(self, cdecl: str | CType, init: Any = ...) -> Any: ...
    def cast(self, cdecl: str | CType, source: Any) -> Any: ...
    def typeof(self, cdecl: str | CData | Callable[..., Any]) -> CType: ...
    def sizeof(self, cdecl: str | CType | CData) -> int: ...
    def offsetof(self, cdecl: str | CType, *members: str | int) -> int: ...
    def addressof(self, of: Any, *members: str | int) -> Any: ...
    def buffer(self, of: CData, size: int = ...) -> memoryview: ...
    def from_buffer(self, cdecl: Any, of: Any = ..., require_writable: bool = ...) -> Any: ...
    def unpack(self, of: Pointer[Any], length: int) -> Any: ...
    def string(self, of: CData, maxlen: int = ...) -> bytes: ...
    def gc(self, of: C, destructor: Callable[[C], Any] | None, size: int = ...) -> C: ...
    def new_handle(self, of: object) -> CData: ...
    def from_handle(self, handle: CData) -> Any: ...
    def def_extern(
        self, name: str = ..., error: Any = ..., onerror: Callable[..., Any] | None = ...
    ) -> Callable[[F], F]: ...
    def list_types(self) -> tuple[list[str], list[str], list[str]]: ...

class CType:
    cname: str

class int64_t(int): ...
class uint8_t(int): ...
class uint32_t(int): ...
class uint64_t(int): ...

class ss_read(CData):
    word: int
    bytes: int
    site: int
    value: int

class ss_read_p(ss_read, Pointer[ss_read]): ...

class ss_write(CData):
    word: int
    bytes: int
    delta: int
    is_last: int
    next: int
    value: int

class ss_write_p(ss_write, Pointer[ss_write]): ...

class ss_undo(CData):
    address: Pointer[uint64_t]
    value: int

class ss_undo_p(ss_undo, Pointer[ss_undo]): ...

class ss_slot(CData):
    key: int
    position: int

class ss_slot_p(ss_slot, Pointer[ss_slot]): ...

class ss_keyed(CData): ...

class ss_keyed_p(ss_keyed, Pointer[ss_keyed]): ...

class ss_run(CData):
    state: Pointer[uint64_t]
    columns: Pointer[CData]
    scratch: Pointer[uint64_t]
    event: int
    first_sequence: int
    seed: int
    emit_top: Pointer[uint64_t]
    emit_end: Pointer[uint64_t]
    emit_mark: Pointer[uint64_t]
    undo_top: ss_undo_p
    undo_end: ss_undo_p
    undo_base: ss_undo_p
    read_top: ss_read_p
    read_end: ss_read_p
    slots: ss_slot_p
    slot_mask: int
    epoch_key: int
    redo: ss_write_p
    redo_count: int
    redo_limit: int
    delta_count: int
    verdict: int
    kill: int
    speculative: int
    worker: ss_worker_p
    site: int
    changed: int
    boosting: int
    operands: Array[uint64_t]
    raised: int
    arena: ss_arena_p
    arena_words: int
    arena_dirty: int
    objects: ss_objects_p
    told: Array[uint64_t]
    found_in: int
    found_key: Array[uint64_t]
    found_entry: int
    calls: int
    given: Pointer[uint64_t]
    sent: Pointer[uint64_t]
    sent_rows: int
    sent_room: int
    keyed: ss_keyed_p
    ahead: ss_ahead_p
    answered: int
    asks: int
    fires: int

class ss_run_p(ss_run, Pointer[ss_run]): ...

class ss_answer_word(CData):
    word: int
    status: int

class ss_answer_word_p(ss_answer_word, Pointer[ss_answer_word]): ...

class ss_boosted(CData):
    entry: ss_operation_entry
    inverse: ss_operation_entry
    first: int
    words: int

class ss_boosted_p(ss_boosted, Pointer[ss_boosted]): ...

class ss_region(CData):
    first: int
    shift: int

class ss_region_p(ss_region, Pointer[ss_region]): ...

class ss_container(CData):
    kind: int
    header: int
    region: int
    room: int
    limit: int
    key_words: int
    entry_words: int
    expires: int
    rank: int

class ss_container_p(ss_container, Pointer[ss_container]): ...

class ss_config(CData):
    state: Pointer[uint64_t]
    state_words: int
    scratch_words: int
    emit_words: int
    emits_to_sinks: bool
    threads: int
    locks: int
    read_limit: int
    redo_limit: int
    emit_limit: int
    element_limit: int
    seed: int
    protocol: int
    record_shift: int
    records: int
    regions: ss_region_p
    region_count: int
    operations: int
    boosted_first: int
    boosted_end: int
    containers: ss_container_p
    container_count: int
    timers: int

class ss_config_p(ss_config, Pointer[ss_config]): ...

class ss_job(CData):
    columns: Pointer[CData]
    count: int
    first_sequence: int
    chunk: int
    horizon: int
    longest_horizon: int
    mode: int
    ends_input: bool
    early_bytes: int

class ss_job_p(ss_job, Pointer[ss_job]): ...

class ss_segment(CData):
    columns: Pointer[CData]
    first: int
    last: int
    source: int
    first_sequence: int
    left: int
    ahead: int
    untold: int
    submitted: bool
    is_tentative: bool
    is_withdrawn: bool
    replaces: ss_segment_p

class ss_segment_p(ss_segment, Pointer[ss_segment]): ...

class ss_frontier(CData):
    timestamp: int
    source: int

class ss_frontier_p(ss_frontier, Pointer[ss_frontier]): ...

class ss_occasion(CData):
    kind: int
    reason: int
    row: int
    rows: Pointer[uint64_t]
    row_count: int

class ss_occasion_p(ss_occasion, Pointer[ss_occasion]): ...

class ss_fault(CData):
    signal: int
    stack_overflow: bool
    has_address: bool
    address: int
    event: int

class ss_fault_p(ss_fault, Pointer[ss_fault]): ...

class ss_lock_fault(CData):
    kind: int
    event: int
    count: int
    locks: Array[uint64_t]

class ss_lock_fault_p(ss_lock_fault, Pointer[ss_lock_fault]): ...

class ss_firing(CData):
    number: int
    time: int
    at: int
    clock: int
    stamp: int
    key: Array[uint64_t]
    container: int

class ss_firing_p(ss_firing, Pointer[ss_firing]): ...

class ss_outcome(CData):
    job: int
    consumed: int
    failed: bool
    failed_row: int
    fault: ss_fault
    lock_fault: ss_lock_fault
    no_memory: bool
    rows: Pointer[uint64_t]
    row_count: int
    edition: int
    timer_failed: bool
    failed_timer: ss_firing
    ending: int
    firings: ss_firing_p
    firing_count: int

class ss_outcome_p(ss_outcome, Pointer[ss_outcome]): ...

class ss_statistics(CData):
    events: int
    commits: int
    head_runs: int
    reruns: int
    speculative_runs: int
    head_aborts: int
    aborts: Array[uint64_t]
    timers: int
    parks: int
    nanoseconds: int

class ss_statistics_p(ss_statistics, Pointer[ss_statistics]): ...

class ss_hot_place(CData):
    word: int
    bytes: int
    site: int
    aborts: int
    others: int

class ss_hot_place_p(ss_hot_place, Pointer[ss_hot_place]): ...

class ss_memory(CData):
    fixed: int
    thread: int
    transaction: int
    transactions: int
    total: int

class ss_memory_p(ss_memory, Pointer[ss_memory]): ...

class ss_engine(CData): ...

class ss_engine_p(ss_engine, Pointer[ss_engine]): ...

class ss_formed(CData):
    all: int
    before_first: int

class ss_formed_p(ss_formed, Pointer[ss_formed]): ...

class ss_key(CData):
    timestamp: int
    source: int
    sequence: int

class ss_key_p(ss_key, Pointer[ss_key]): ...

class ss_early_told(CData):
    is_whole: bool
    is_settled: bool
    no_memory: bool
    edition: int
    voids: Pointer[uint64_t]
    void_count: int
    kept: Pointer[uint64_t]
    kept_count: int
    finals: Pointer[uint64_t]
    final_count: int
    news: Pointer[uint64_t]
    news_count: int
    has_applied: bool
    applied_to: ss_key
    has_final: bool
    final_to: ss_key

class ss_early_told_p(ss_early_told, Pointer[ss_early_told]): ...

class ss_early_figures(CData):
    transactions: int
    bytes: int
    most_bytes: int
    passes: int
    revoked: int
    republished: int
    rerun: int
    nanoseconds: int
    held: int

class ss_early_figures_p(ss_early_figures, Pointer[ss_early_figures]): ...

class ss_record(CData):
    first: int
    last: int
    nanoseconds: int
    speculative: bool
    dropped: bool
    entry: int
    reads: int
    writes: int
    row_words: int

class ss_record_p(ss_record, Pointer[ss_record]): ...

class ss_recorder(CData):
    records: ss_record_p
    record_capacity: int
    record_count: int
    entries: ss_read_p
    entry_capacity: int
    entry_count: int
    full: bool

class ss_recorder_p(ss_recorder, Pointer[ss_recorder]): ...

class ss_transfer(CData):
    latency: float
    bulk: float

class ss_transfer_p(ss_transfer, Pointer[ss_transfer]): ...

class ss_list(CData):
    count: int
    capacity: int
    words: Pointer[uint64_t]
    kinds: int
    width: int
    run: ss_run_p

class ss_list_p(ss_list, Pointer[ss_list]): ...

class ss_table(CData):
    count: int
    filled: int
    entered: int
    capacity: int
    entries: Pointer[uint64_t]
    changes: int
    key_kinds: int
    value_kinds: int
    key_words: int
    entry_words: int
    index: Pointer[uint64_t]
    mask: int
    run: ss_run_p

class ss_table_p(ss_table, Pointer[ss_table]): ...

class ss_ahead(CData):
    entries: Array[uint32_t]

class ss_ahead_p(ss_ahead, Pointer[ss_ahead]): ...

class ss_keyed_walk(CData):
    count: int
    changes: int
    entries: Pointer[uint64_t]

class ss_keyed_walk_p(ss_keyed_walk, Pointer[ss_keyed_walk]): ...

class ss_object(CData):
    forward: int
    also: int
    same: ss_object_p
    kinds: int
    run: ss_run_p
    next: ss_object_p
    next_also: ss_object_p
    words: Array[uint64_t]

class ss_object_p(ss_object, Pointer[ss_object]): ...

class ss_string_table(CData): ...

class ss_string_table_p(ss_string_table, Pointer[ss_string_table]): ...

class ss_string_column(CData):
    layout: int
    first: int
    count: int
    validity: Pointer[uint8_t]
    places: CData
    data: Pointer[uint8_t]
    buffers: Pointer[Pointer[uint8_t]]

class ss_string_column_p(ss_string_column, Pointer[ss_string_column]): ...

class ss_texts(CData):
    count: int
    bytes: int
    offsets: Pointer[int64_t]
    data: Pointer[uint8_t]
    validity: Pointer[uint8_t]
    null_count: int

class ss_texts_p(ss_texts, Pointer[ss_texts]): ...

class ss_literal(CData):
    bytes: Pointer[bytes]
    length: int
    head: int
    tail: int
    code: int
    is_taken: int

class ss_literal_p(ss_literal, Pointer[ss_literal]): ...

class ss_worker(CData): ...

class ss_worker_p(ss_worker, Pointer[ss_worker]): ...

class ss_arena(CData): ...

class ss_arena_p(ss_arena, Pointer[ss_arena]): ...

class ss_objects(CData): ...

class ss_objects_p(ss_objects, Pointer[ss_objects]): ...

class ss_entry(CData):
    def __call__(
        self,
        next: Pointer[int64_t],
        fault: Pointer[CData],
        run: Pointer[ss_run],
        first: SupportsIndex,
        last: SupportsIndex,
        /,
    ) -> int: ...

class ss_operation_entry(CData):
    def __call__(
        self, returned: Pointer[int64_t], fault: Pointer[CData], run: Pointer[ss_run], /
    ) -> int: ...

class ss_hook(CData):
    def __call__(self, context: CData | bytes, occasion: Pointer[ss_occasion], /) -> int: ...

class ss_answering(CData):
    def __call__(
        self,
        context: CData | bytes,
        row: SupportsIndex,
        firing: Pointer[ss_firing],
        answers: Pointer[ss_answer_word_p],
        /,
    ) -> int: ...

class ss_interpreter(CData):
    def __call__(
        self,
        context: CData | bytes,
        run: Pointer[ss_run],
        variant: SupportsIndex,
        first: SupportsIndex,
        last: SupportsIndex,
        /,
    ) -> int: ...

class Lib:
    def ss_engine_new(self, config: Pointer[ss_config], /) -> ss_engine_p: ...
    def ss_engine_set_entry(
        self, engine: Pointer[ss_engine], variant: SupportsIndex, entry: ss_entry, /
    ) -> None: ...
    def ss_engine_set_operation(
        self, engine: Pointer[ss_engine], number: SupportsIndex, operation: Pointer[ss_boosted], /
    ) -> None: ...
    def ss_engine_state_changed(self, engine: Pointer[ss_engine], /) -> None: ...
    def ss_engine_set_hook(
        self,
        engine: Pointer[ss_engine],
        kinds: SupportsIndex,
        hook: ss_hook,
        context: CData | bytes,
        /,
    ) -> None: ...
    def ss_engine_set_answering(
        self, engine: Pointer[ss_engine], answering: ss_answering, context: CData | bytes, /
    ) -> None: ...
    def ss_engine_thread(self, engine: Pointer[ss_engine], index: SupportsIndex, /) -> int: ...
    def ss_engine_free(self, engine: Pointer[ss_engine], /) -> None: ...
    def ss_engine_start(self, engine: Pointer[ss_engine], job: Pointer[ss_job], /) -> bool: ...
    def ss_engine_wait(
        self, engine: Pointer[ss_engine], milliseconds: SupportsIndex, /
    ) -> bool: ...
    def ss_engine_outcome(self, engine: Pointer[ss_engine], /) -> ss_outcome: ...
    def ss_engine_stop(self, engine: Pointer[ss_engine], /) -> None: ...
    def ss_engine_kill(self, engine: Pointer[ss_engine], /) -> None: ...
    def ss_engine_submit(
        self, engine: Pointer[ss_engine], segment: Pointer[ss_segment], /
    ) -> bool: ...
    def ss_engine_advance(self, engine: Pointer[ss_engine], frontier: ss_frontier, /) -> None: ...
    def ss_engine_go_on_ending(
        self, engine: Pointer[ss_engine], stamp: SupportsIndex, /
    ) -> None: ...
    def ss_engine_await(
        self, engine: Pointer[ss_engine], nanoseconds: SupportsIndex, /
    ) -> bool: ...
    def ss_engine_is_settled(self, engine: Pointer[ss_engine], /) -> bool: ...
    def ss_engine_formed(self, engine: Pointer[ss_engine], /) -> ss_formed: ...
    def ss_engine_clear_rows(self, engine: Pointer[ss_engine], /) -> None: ...
    def ss_engine_resume(
        self, engine: Pointer[ss_engine], failed_row: SupportsIndex, /
    ) -> None: ...
    def ss_engine_take_back_timer(self, engine: Pointer[ss_engine], /) -> bool: ...
    def ss_engine_confirm(
        self, engine: Pointer[ss_engine], segment: Pointer[ss_segment], /
    ) -> None: ...
    def ss_engine_withdraw(
        self, engine: Pointer[ss_engine], segment: Pointer[ss_segment], /
    ) -> None: ...
    def ss_engine_tell_early(self, engine: Pointer[ss_engine], /) -> ss_early_told: ...
    def ss_engine_told_early(self, engine: Pointer[ss_engine], news: SupportsIndex, /) -> None: ...
    def ss_engine_await_early(
        self, engine: Pointer[ss_engine], nanoseconds: SupportsIndex, /
    ) -> bool: ...
    def ss_engine_early_figures(self, engine: Pointer[ss_engine], /) -> ss_early_figures: ...
    def ss_engine_early_image(self, engine: Pointer[ss_engine], /) -> Pointer[uint64_t]: ...
    def ss_engine_early_words(
        self, engine: Pointer[ss_engine], to: Pointer[uint64_t], capacity: SupportsIndex, /
    ) -> int: ...
    def ss_engine_take_turn(self, engine: Pointer[ss_engine], /) -> None: ...
    def ss_engine_try_turn(
        self, engine: Pointer[ss_engine], milliseconds: SupportsIndex, held: Pointer[bool], /
    ) -> bool: ...
    def ss_engine_release_turn(self, engine: Pointer[ss_engine], /) -> None: ...
    def ss_engine_statistics(self, engine: Pointer[ss_engine], /) -> ss_statistics: ...
    def ss_engine_ask(self, engine: Pointer[ss_engine], nanoseconds: SupportsIndex, /) -> None: ...
    def ss_engine_waiting(self, engine: Pointer[ss_engine], /) -> int: ...
    def ss_engine_hot_places(
        self, engine: Pointer[ss_engine], places: Pointer[ss_hot_place], room: SupportsIndex, /
    ) -> int: ...
    def ss_engine_memory(self, engine: Pointer[ss_engine], /) -> int: ...
    def ss_memory_needed(
        self, config: Pointer[ss_config], horizon: SupportsIndex, mode: SupportsIndex, /
    ) -> ss_memory: ...
    def ss_engine_is_idle(self, engine: Pointer[ss_engine], /) -> bool: ...
    def ss_engine_progress(self, engine: Pointer[ss_engine], /) -> int: ...
    def ss_engine_record(
        self, engine: Pointer[ss_engine], recorder: Pointer[ss_recorder], /
    ) -> None: ...
    def ss_clock_nanoseconds(self) -> int: ...
    def ss_sleep(self, nanoseconds: SupportsIndex, /) -> int: ...
    def ss_measure_transfer(self, found: Pointer[ss_transfer], /) -> bool: ...
    def ss_load(self, run: Pointer[ss_run], word: SupportsIndex, /) -> int: ...
    def ss_store(
        self, run: Pointer[ss_run], word: SupportsIndex, value: SupportsIndex, /
    ) -> None: ...
    def ss_load_bytes(
        self, run: Pointer[ss_run], byte: SupportsIndex, size: SupportsIndex, /
    ) -> int: ...
    def ss_store_bytes(
        self,
        run: Pointer[ss_run],
        byte: SupportsIndex,
        size: SupportsIndex,
        value: SupportsIndex,
        /,
    ) -> None: ...
    def ss_load_range(
        self, run: Pointer[ss_run], word: SupportsIndex, count: SupportsIndex, /
    ) -> Pointer[uint64_t]: ...
    def ss_store_range(
        self, run: Pointer[ss_run], word: SupportsIndex, count: SupportsIndex, /
    ) -> Pointer[uint64_t]: ...
    def ss_eager_load(self, run: Pointer[ss_run], word: SupportsIndex, /) -> int: ...
    def ss_eager_store(
        self, run: Pointer[ss_run], word: SupportsIndex, value: SupportsIndex, /
    ) -> None: ...
    def ss_eager_load_bytes(
        self, run: Pointer[ss_run], byte: SupportsIndex, size: SupportsIndex, /
    ) -> int: ...
    def ss_eager_store_bytes(
        self,
        run: Pointer[ss_run],
        byte: SupportsIndex,
        size: SupportsIndex,
        value: SupportsIndex,
        /,
    ) -> None: ...
    def ss_eager_load_range(
        self, run: Pointer[ss_run], word: SupportsIndex, count: SupportsIndex, /
    ) -> Pointer[uint64_t]: ...
    def ss_eager_store_range(
        self, run: Pointer[ss_run], word: SupportsIndex, count: SupportsIndex, /
    ) -> Pointer[uint64_t]: ...
    def ss_delta(
        self,
        run: Pointer[ss_run],
        byte: SupportsIndex,
        size: SupportsIndex,
        delta: SupportsIndex,
        operand: SupportsIndex,
        /,
    ) -> None: ...
    def ss_eager_delta(
        self,
        run: Pointer[ss_run],
        byte: SupportsIndex,
        size: SupportsIndex,
        delta: SupportsIndex,
        operand: SupportsIndex,
        /,
    ) -> None: ...
    def ss_index_hash(self, word: SupportsIndex, /) -> int: ...
    def ss_increment(self, run: Pointer[ss_run], word: SupportsIndex, /) -> int: ...
    def ss_eager_increment(self, run: Pointer[ss_run], word: SupportsIndex, /) -> int: ...
    def ss_boost(
        self, run: Pointer[ss_run], operation: SupportsIndex, operands: Pointer[uint64_t], /
    ) -> int: ...
    def ss_boost_follow(
        self,
        run: Pointer[ss_run],
        operation: SupportsIndex,
        operands: Pointer[uint64_t],
        result: SupportsIndex,
        /,
    ) -> None: ...
    def ss_undo_grow(self, run: Pointer[ss_run], /) -> bool: ...
    def ss_undo_back(self, run: Pointer[ss_run], bytes: SupportsIndex, /) -> None: ...
    def ss_buffer(self, run: Pointer[ss_run], words: SupportsIndex, /) -> Pointer[uint64_t]: ...
    def ss_poll(self, run: Pointer[ss_run], /) -> int: ...
    def ss_answer(
        self, run: Pointer[ss_run], can_do_without: SupportsIndex, /
    ) -> ss_answer_word_p: ...
    def ss_emit_grow(self, run: Pointer[ss_run], /) -> bool: ...
    def ss_random_bits(
        self,
        seed: SupportsIndex,
        timestamp: SupportsIndex,
        source: SupportsIndex,
        sequence: SupportsIndex,
        draw: SupportsIndex,
        /,
    ) -> int: ...
    def ss_random_integer(
        self,
        seed: SupportsIndex,
        timestamp: SupportsIndex,
        source: SupportsIndex,
        sequence: SupportsIndex,
        draw: SupportsIndex,
        low: SupportsIndex,
        high: SupportsIndex,
        result: Pointer[int64_t],
        /,
    ) -> int: ...
    def ss_random_normal(
        self,
        seed: SupportsIndex,
        timestamp: SupportsIndex,
        source: SupportsIndex,
        sequence: SupportsIndex,
        draw: SupportsIndex,
        /,
    ) -> float: ...
    def ss_engine_interpret(
        self, engine: Pointer[ss_engine], interpreter: ss_interpreter, context: CData | bytes, /
    ) -> None: ...
    def ss_interpreted_begin(self, run: Pointer[ss_run], row: SupportsIndex, /) -> None: ...
    def ss_engine_interpret_vertices(
        self, engine: Pointer[ss_engine], interpreter: ss_interpreter, context: CData | bytes, /
    ) -> None: ...
    def ss_vertex_interpret(
        self,
        run: Pointer[ss_run],
        call: SupportsIndex,
        vertex: SupportsIndex,
        in_timer: SupportsIndex,
        given: Pointer[uint64_t],
        /,
    ) -> int: ...
    def ss_phase_raised(self, run: Pointer[ss_run], in_timer: SupportsIndex, /) -> None: ...
    def ss_vertex_send(
        self, run: Pointer[ss_run], words: SupportsIndex, /
    ) -> Pointer[uint64_t]: ...
    def ss_interpreted_load(
        self, run: Pointer[ss_run], byte: SupportsIndex, size: SupportsIndex, /
    ) -> int: ...
    def ss_interpreted_store(
        self,
        run: Pointer[ss_run],
        byte: SupportsIndex,
        size: SupportsIndex,
        value: SupportsIndex,
        /,
    ) -> None: ...
    def ss_interpreted_load_range(
        self,
        run: Pointer[ss_run],
        word: SupportsIndex,
        count: SupportsIndex,
        into: Pointer[uint64_t],
        /,
    ) -> bool: ...
    def ss_interpreted_store_range(
        self,
        run: Pointer[ss_run],
        word: SupportsIndex,
        count: SupportsIndex,
        values: Pointer[uint64_t],
        /,
    ) -> bool: ...
    def ss_interpreted_emit(self, run: Pointer[ss_run], /) -> Pointer[uint64_t]: ...
    def ss_interpreted_emit_words(self, run: Pointer[ss_run], /) -> int: ...
    def ss_lock(self, run: Pointer[ss_run], lock: SupportsIndex, /) -> bool: ...
    def ss_unlock(self, run: Pointer[ss_run], lock: SupportsIndex, /) -> bool: ...
    def ss_math_exp(self, x: SupportsFloat, /) -> float: ...
    def ss_math_exp2(self, x: SupportsFloat, /) -> float: ...
    def ss_math_expm1(self, x: SupportsFloat, /) -> float: ...
    def ss_math_log(self, x: SupportsFloat, /) -> float: ...
    def ss_math_log2(self, x: SupportsFloat, /) -> float: ...
    def ss_math_log10(self, x: SupportsFloat, /) -> float: ...
    def ss_math_log1p(self, x: SupportsFloat, /) -> float: ...
    def ss_math_sin(self, x: SupportsFloat, /) -> float: ...
    def ss_math_cos(self, x: SupportsFloat, /) -> float: ...
    def ss_math_tan(self, x: SupportsFloat, /) -> float: ...
    def ss_math_asin(self, x: SupportsFloat, /) -> float: ...
    def ss_math_acos(self, x: SupportsFloat, /) -> float: ...
    def ss_math_atan(self, x: SupportsFloat, /) -> float: ...
    def ss_math_sinh(self, x: SupportsFloat, /) -> float: ...
    def ss_math_cosh(self, x: SupportsFloat, /) -> float: ...
    def ss_math_tanh(self, x: SupportsFloat, /) -> float: ...
    def ss_math_asinh(self, x: SupportsFloat, /) -> float: ...
    def ss_math_acosh(self, x: SupportsFloat, /) -> float: ...
    def ss_math_atanh(self, x: SupportsFloat, /) -> float: ...
    def ss_math_erf(self, x: SupportsFloat, /) -> float: ...
    def ss_math_erfc(self, x: SupportsFloat, /) -> float: ...
    def ss_math_cbrt(self, x: SupportsFloat, /) -> float: ...
    def ss_math_atan2(self, y: SupportsFloat, x: SupportsFloat, /) -> float: ...
    def ss_math_pow(self, x: SupportsFloat, y: SupportsFloat, result: Pointer[float], /) -> int: ...
    def ss_math_fmod(
        self, x: SupportsFloat, y: SupportsFloat, result: Pointer[float], /
    ) -> int: ...
    def ss_math_ldexp(
        self, x: SupportsFloat, exponent: SupportsIndex, result: Pointer[float], /
    ) -> int: ...
    def ss_float_power(
        self, x: SupportsFloat, y: SupportsFloat, result: Pointer[float], /
    ) -> int: ...
    def ss_float_mod(self, x: SupportsFloat, y: SupportsFloat, /) -> float: ...
    def ss_float_floordiv(self, x: SupportsFloat, y: SupportsFloat, /) -> float: ...
    def ss_int_power(self, base: SupportsIndex, exponent: SupportsIndex, /) -> int: ...
    def ss_int_true_divide_i64(
        self, dividend: SupportsIndex, divisor: SupportsIndex, /
    ) -> float: ...
    def ss_int_true_divide_u64(
        self, dividend: SupportsIndex, divisor: SupportsIndex, /
    ) -> float: ...
    def ss_math_gamma(self, x: SupportsFloat, result: Pointer[float], /) -> int: ...
    def ss_math_lgamma(self, x: SupportsFloat, result: Pointer[float], /) -> int: ...
    def ss_math_remainder(
        self, x: SupportsFloat, y: SupportsFloat, result: Pointer[float], /
    ) -> int: ...
    def ss_math_nextafter(self, x: SupportsFloat, y: SupportsFloat, /) -> float: ...
    def ss_math_ulp(self, x: SupportsFloat, /) -> float: ...
    def ss_math_frexp(self, x: SupportsFloat, exponent: Pointer[int64_t], /) -> float: ...
    def ss_math_modf(self, x: SupportsFloat, whole: Pointer[float], /) -> float: ...
    def ss_math_isclose(
        self,
        x: SupportsFloat,
        y: SupportsFloat,
        relative: SupportsFloat,
        absolute: SupportsFloat,
        /,
    ) -> int: ...
    def ss_math_hypot(
        self, values: Pointer[float], count: SupportsIndex, by_fma: SupportsIndex, /
    ) -> float: ...
    def ss_math_fsum_add(self, words: Pointer[float], term: SupportsFloat, /) -> int: ...
    def ss_math_fsum_total(self, words: Pointer[float], result: Pointer[float], /) -> int: ...
    def ss_math_isqrt(self, n: SupportsIndex, /) -> int: ...
    def ss_math_gcd(self, a: SupportsIndex, b: SupportsIndex, /) -> int: ...
    def ss_math_lcm(
        self, a: SupportsIndex, b: SupportsIndex, limit: SupportsIndex, result: Pointer[uint64_t], /
    ) -> int: ...
    def ss_math_perm(
        self, n: SupportsIndex, k: SupportsIndex, limit: SupportsIndex, result: Pointer[uint64_t], /
    ) -> int: ...
    def ss_math_comb(
        self, n: SupportsIndex, k: SupportsIndex, limit: SupportsIndex, result: Pointer[uint64_t], /
    ) -> int: ...
    def ss_float_round(
        self, x: SupportsFloat, places: SupportsIndex, result: Pointer[float], /
    ) -> int: ...
    def ss_int_round(
        self,
        x: SupportsIndex,
        places: SupportsIndex,
        limit: SupportsIndex,
        result: Pointer[uint64_t],
        /,
    ) -> int: ...
    def ss_int_power_modulo(
        self,
        base: SupportsIndex,
        exponent: SupportsIndex,
        modulus: SupportsIndex,
        negative: SupportsIndex,
        result: Pointer[uint64_t],
        /,
    ) -> int: ...
    def ss_arena_clear(self, run: Pointer[ss_run], /) -> None: ...
    def ss_arena_enter(self, run: Pointer[ss_run], /) -> None: ...
    def ss_arena_run(self, run: Pointer[ss_run], /) -> ss_run_p: ...
    def ss_list_new(
        self, run: Pointer[ss_run], kinds: SupportsIndex, capacity: SupportsIndex, /
    ) -> ss_list_p: ...
    def ss_list_reserve(
        self, list: Pointer[ss_list], kinds: SupportsIndex, more: SupportsIndex, /
    ) -> bool: ...
    def ss_list_gap(
        self, list: Pointer[ss_list], kinds: SupportsIndex, at: SupportsIndex, /
    ) -> Pointer[uint64_t]: ...
    def ss_list_delete(
        self,
        list: Pointer[ss_list],
        first: SupportsIndex,
        step: SupportsIndex,
        length: SupportsIndex,
        /,
    ) -> None: ...
    def ss_list_part(
        self,
        list: Pointer[ss_list],
        first: SupportsIndex,
        step: SupportsIndex,
        length: SupportsIndex,
        /,
    ) -> ss_list_p: ...
    def ss_list_replace(
        self,
        list: Pointer[ss_list],
        first: SupportsIndex,
        step: SupportsIndex,
        length: SupportsIndex,
        by: Pointer[ss_list],
        /,
    ) -> bool: ...
    def ss_list_extend(self, list: Pointer[ss_list], by: Pointer[ss_list], /) -> bool: ...
    def ss_list_joined(self, left: Pointer[ss_list], right: Pointer[ss_list], /) -> ss_list_p: ...
    def ss_list_repeat(self, list: Pointer[ss_list], times: SupportsIndex, /) -> bool: ...
    def ss_list_find(
        self,
        list: Pointer[ss_list],
        kinds: SupportsIndex,
        element: Pointer[uint64_t],
        from_: SupportsIndex,
        to: SupportsIndex,
        /,
    ) -> int: ...
    def ss_list_count(
        self, list: Pointer[ss_list], kinds: SupportsIndex, element: Pointer[uint64_t], /
    ) -> int: ...
    def ss_list_reverse(self, list: Pointer[ss_list], /) -> None: ...
    def ss_list_has_nan(self, list: Pointer[ss_list], /) -> bool: ...
    def ss_list_sort(
        self, list: Pointer[ss_list], keys: Pointer[ss_list], backwards: SupportsIndex, /
    ) -> bool: ...
    def ss_list_compare(
        self, left: Pointer[ss_list], right: Pointer[ss_list], relation: SupportsIndex, /
    ) -> bool: ...
    def ss_list_extreme(self, list: Pointer[ss_list], wins: SupportsIndex, /) -> int: ...
    def ss_list_sum(self, list: Pointer[ss_list], /) -> int: ...
    def ss_elements_compare(
        self,
        left_kinds: SupportsIndex,
        left: Pointer[uint64_t],
        right_kinds: SupportsIndex,
        right: Pointer[uint64_t],
        relation: SupportsIndex,
        /,
    ) -> bool: ...
    def ss_table_new(self, run: Pointer[ss_run], /) -> ss_table_p: ...
    def ss_table_frozen(
        self,
        key_kinds: SupportsIndex,
        value_kinds: SupportsIndex,
        entries: Pointer[uint64_t],
        count: SupportsIndex,
        /,
    ) -> ss_table_p: ...
    def ss_table_find(
        self, table: Pointer[ss_table], key_kinds: SupportsIndex, key: Pointer[uint64_t], /
    ) -> Pointer[uint64_t]: ...
    def ss_table_put(
        self,
        table: Pointer[ss_table],
        key_kinds: SupportsIndex,
        value_kinds: SupportsIndex,
        key: Pointer[uint64_t],
        is_new: Pointer[uint64_t],
        /,
    ) -> Pointer[uint64_t]: ...
    def ss_table_remove(self, table: Pointer[ss_table], entry: Pointer[uint64_t], /) -> None: ...
    def ss_table_next(
        self, table: Pointer[ss_table], position: Pointer[uint64_t], /
    ) -> Pointer[uint64_t]: ...
    def ss_table_last(self, table: Pointer[ss_table], /) -> Pointer[uint64_t]: ...
    def ss_table_clear(self, table: Pointer[ss_table], /) -> None: ...
    def ss_table_copy(self, table: Pointer[ss_table], /) -> ss_table_p: ...
    def ss_table_update(self, table: Pointer[ss_table], by: Pointer[ss_table], /) -> bool: ...
    def ss_table_equal(self, left: Pointer[ss_table], right: Pointer[ss_table], /) -> bool: ...
    def ss_set_combined(
        self, left: Pointer[ss_table], right: Pointer[ss_table], operation: SupportsIndex, /
    ) -> ss_table_p: ...
    def ss_set_change(
        self, left: Pointer[ss_table], right: Pointer[ss_table], operation: SupportsIndex, /
    ) -> bool: ...
    def ss_set_within(self, part: Pointer[ss_table], whole: Pointer[ss_table], /) -> bool: ...
    def ss_set_disjoint(self, left: Pointer[ss_table], right: Pointer[ss_table], /) -> bool: ...
    def ss_keyed_find(
        self, run: Pointer[ss_run], container: SupportsIndex, key: Pointer[uint64_t], /
    ) -> int: ...
    def ss_keyed_ahead(
        self,
        run: Pointer[ss_run],
        container: SupportsIndex,
        columns: SupportsIndex,
        first: SupportsIndex,
        last: SupportsIndex,
        /,
    ) -> None: ...
    def ss_keyed_insert(
        self, run: Pointer[ss_run], container: SupportsIndex, key: Pointer[uint64_t], /
    ) -> int: ...
    def ss_timers_rewound(
        self, run: Pointer[ss_run], container: SupportsIndex, entry: SupportsIndex, /
    ) -> None: ...
    def ss_keyed_remove(
        self, run: Pointer[ss_run], container: SupportsIndex, entry: SupportsIndex, /
    ) -> None: ...
    def ss_keyed_clear(self, run: Pointer[ss_run], container: SupportsIndex, /) -> None: ...
    def ss_keyed_count(self, run: Pointer[ss_run], container: SupportsIndex, /) -> int: ...
    def ss_keyed_entries(
        self, run: Pointer[ss_run], container: SupportsIndex, /
    ) -> ss_keyed_walk_p: ...
    def ss_keyed_changes(self, run: Pointer[ss_run], container: SupportsIndex, /) -> int: ...
    def ss_keyed_key(
        self,
        run: Pointer[ss_run],
        container: SupportsIndex,
        entry: SupportsIndex,
        at: SupportsIndex,
        /,
    ) -> int: ...
    def ss_sequence_element(
        self, run: Pointer[ss_run], container: SupportsIndex, at: SupportsIndex, /
    ) -> int: ...
    def ss_sequence_count(self, run: Pointer[ss_run], container: SupportsIndex, /) -> int: ...
    def ss_sequence_insert(
        self, run: Pointer[ss_run], container: SupportsIndex, at: SupportsIndex, /
    ) -> int: ...
    def ss_sequence_delete(
        self,
        run: Pointer[ss_run],
        container: SupportsIndex,
        first: SupportsIndex,
        step: SupportsIndex,
        length: SupportsIndex,
        /,
    ) -> None: ...
    def ss_timer_set(
        self,
        run: Pointer[ss_run],
        container: SupportsIndex,
        key: Pointer[uint64_t],
        at: SupportsIndex,
        /,
    ) -> int: ...
    def ss_engine_find(
        self, engine: Pointer[ss_engine], container: SupportsIndex, key: Pointer[uint64_t], /
    ) -> int: ...
    def ss_engine_find_applied(
        self, engine: Pointer[ss_engine], container: SupportsIndex, key: Pointer[uint64_t], /
    ) -> int: ...
    def ss_engine_look(
        self,
        engine: Pointer[ss_engine],
        container: SupportsIndex,
        key: Pointer[uint64_t],
        row: Pointer[uint64_t],
        /,
    ) -> int: ...
    def ss_engine_change(self, engine: Pointer[ss_engine], begins: SupportsIndex, /) -> None: ...
    def ss_object_new(self, run: Pointer[ss_run], kinds: SupportsIndex, /) -> ss_object_p: ...
    def ss_object_resolved(self, object: Pointer[ss_object], /) -> ss_object_p: ...
    def ss_object_of(
        self, run: Pointer[ss_run], kinds: SupportsIndex, place: SupportsIndex, /
    ) -> ss_object_p: ...
    def ss_object_leave(self, run: Pointer[ss_run], place: SupportsIndex, /) -> ss_object_p: ...
    def ss_objects_leave(
        self, run: Pointer[ss_run], first: SupportsIndex, words: SupportsIndex, /
    ) -> ss_object_p: ...
    def ss_object_settle(self, object: Pointer[ss_object], place: SupportsIndex, /) -> bool: ...
    def ss_object_moved(
        self, run: Pointer[ss_run], from_: SupportsIndex, to: SupportsIndex, /
    ) -> None: ...
    def ss_object_word(self, object: Pointer[ss_object], at: SupportsIndex, /) -> int: ...
    def ss_engine_use_strings(
        self, engine: Pointer[ss_engine], table: Pointer[ss_string_table], /
    ) -> None: ...
    def ss_text_order(self, left: SupportsIndex, right: SupportsIndex, /) -> int: ...
    def ss_text_length(self, code: SupportsIndex, /) -> int: ...
    def ss_text_contains(self, code: SupportsIndex, part: SupportsIndex, /) -> int: ...
    def ss_text_starts(self, code: SupportsIndex, part: SupportsIndex, /) -> int: ...
    def ss_text_ends(self, code: SupportsIndex, part: SupportsIndex, /) -> int: ...
    def ss_texts_free(self, texts: Pointer[ss_texts], /) -> None: ...
    def ss_strings_open(self, secret: Pointer[uint64_t], /) -> ss_string_table_p: ...
    def ss_strings_close(self, table: Pointer[ss_string_table], /) -> None: ...
    def ss_strings_add(
        self,
        table: Pointer[ss_string_table],
        columns: Pointer[ss_string_column],
        count: SupportsIndex,
        codes: Pointer[int64_t],
        told: Pointer[ss_texts],
        /,
    ) -> int: ...
    def ss_strings_add_one(
        self,
        table: Pointer[ss_string_table],
        text: Pointer[bytes] | bytes,
        length: SupportsIndex,
        code: Pointer[int64_t],
        told: Pointer[ss_texts],
        /,
    ) -> int: ...
    def ss_string_codes(
        self, column: Pointer[ss_string_column], threads: SupportsIndex, codes: Pointer[int64_t], /
    ) -> bool: ...
    def ss_strings_texts(
        self,
        table: Pointer[ss_string_table],
        codes: Pointer[int64_t],
        count: SupportsIndex,
        texts: Pointer[ss_texts],
        /,
    ) -> bool: ...
    def ss_strings_since(
        self, table: Pointer[ss_string_table], number: SupportsIndex, texts: Pointer[ss_texts], /
    ) -> bool: ...
    def ss_strings_next(self, table: Pointer[ss_string_table], /) -> int: ...
    def ss_strings_count(self, table: Pointer[ss_string_table], /) -> int: ...
    def ss_strings_bytes(self, table: Pointer[ss_string_table], /) -> int: ...
    def ss_strings_known(
        self,
        table: Pointer[ss_string_table],
        words: Pointer[int64_t],
        count: SupportsIndex,
        codes: Pointer[int64_t],
        /,
    ) -> int: ...
    def ss_strings_sweep_begin(self, table: Pointer[ss_string_table], /) -> None: ...
    def ss_strings_mark(
        self, table: Pointer[ss_string_table], words: Pointer[int64_t], count: SupportsIndex, /
    ) -> None: ...
    def ss_strings_sweep_end(
        self,
        table: Pointer[ss_string_table],
        window: SupportsIndex,
        dropped: Pointer[Pointer[int64_t]],
        /,
    ) -> int: ...
    def ss_strings_sweep_abandon(self, table: Pointer[ss_string_table], /) -> None: ...
    def ss_codes_free(self, codes: Pointer[int64_t], /) -> None: ...
    def ss_literals_add(
        self,
        table: Pointer[ss_literal],
        places: SupportsIndex,
        bytes: Pointer[bytes] | bytes,
        length: SupportsIndex,
        code: SupportsIndex,
        /,
    ) -> None: ...
    def ss_literals_find(
        self,
        table: Pointer[ss_literal],
        places: SupportsIndex,
        texts: Pointer[ss_string_column],
        other: SupportsIndex,
        numbers: Pointer[int64_t],
        /,
    ) -> None: ...
    ss_python_interpreter: ss_interpreter
    ss_python_hook: ss_hook
    ss_python_answering: ss_answering
    SS_KEY_WORDS: int
    SS_ABI: int
    SS_COMPLETED: int
    SS_RAISED: int
    SS_LOG_FULL: int
    SS_KILLED: int
    SS_ABORTED: int
    SS_FAULTED: int
    SS_NO_MEMORY: int
    SS_LEAVE: int
    SS_SUSPECT: int
    SS_ABORT_CONFLICT: int
    SS_ABORT_RAISED: int
    SS_ABORT_LOG_FULL: int
    SS_ABORT_RUNAWAY: int
    SS_ABORT_INCONSISTENT_SNAPSHOT: int
    SS_ABORT_LOCKED: int
    SS_ABORT_STOLEN: int
    SS_ABORT_REORDERED: int
    SS_ABORT_HOOK: int
    SS_ABORT_FAULT: int
    SS_ABORT_SHADOW: int
    SS_ABORT_TIMER: int
    SS_ABORT_REVOKED: int
    SS_ABORT_REASONS: int
    SS_PROTOCOL_VALUE: int
    SS_PROTOCOL_EAGER: int
    SS_ADD: int
    SS_MINIMUM: int
    SS_MAXIMUM: int
    SS_SIGNED: int
    SS_UNSIGNED: int
    SS_FLOAT: int
    SS_NO_DELTA: int
    SS_FIRST_DELTA: int
    SS_LAST_DELTA: int
    SS_SETTLED: int
    SS_FORESEEN: int
    SS_MOST_LINKED: int
    SS_STORED_RANGE: int
    SS_OPERANDS: int
    SS_ERROR_WORDS: int
    SS_PLAIN: int
    SS_TRANSACTIONAL: int
    SS_LOG_FREE: int
    SS_LOCKED: int
    SS_EAGER: int
    SS_TIMER: int
    SS_VARIANTS: int
    SS_MODE_ORDERED: int
    SS_MODE_SPECULATE: int
    SS_MODE_LOG_FREE: int
    SS_MODE_LOCKED: int
    SS_MODE_OPEN: int
    SS_ON_ABORT: int
    SS_ON_COMMIT: int
    SS_ON_POST_COMMIT: int
    SS_PROCEED: int
    SS_RUN_AGAIN: int
    SS_FAIL: int
    SS_LOCK_NO_FAULT: int
    SS_LOCK_DEADLOCK: int
    SS_LOCK_TAKEN_TWICE: int
    SS_LOCK_NOT_HELD: int
    SS_LOCK_KEPT: int
    SS_LOCK_UNKNOWN: int
    SS_NO_ROW_FOR_MEMORY: int
    SS_NO_ROW_FOR_HOOK: int
    SS_NO_ROW_FOR_TIMER: int
    SS_VERTEX_ROW: int
    SS_VERTEX_TIMER: int
    SS_PHASE_RAISED: int
    SS_VALUE_ERROR: int
    SS_OVERFLOW_ERROR: int
    SS_ZERO_DIVISION_ERROR: int
    SS_EXACT_SUM_WORDS: int
    SS_KIND_INT: int
    SS_KIND_UINT: int
    SS_KIND_FLOAT: int
    SS_KIND_BOOL: int
    SS_KIND_TEXT: int
    SS_KIND_LIST: int
    SS_KIND_TABLE: int
    SS_KIND_OBJECT: int
    SS_EQUAL: int
    SS_UNEQUAL: int
    SS_LESS: int
    SS_LESS_EQUAL: int
    SS_GREATER: int
    SS_GREATER_EQUAL: int
    SS_SET_UNION: int
    SS_SET_INTERSECTION: int
    SS_SET_DIFFERENCE: int
    SS_SET_SYMMETRIC: int
    SS_HEADER_COUNT: int
    SS_HEADER_CHANGES: int
    SS_HEADER_USED: int
    SS_HEADER_START: int
    SS_HEADER_FIRED: int
    SS_HEADER_CAPACITY: int
    SS_HEADER_CLOCK: int
    SS_HEADER_TICK: int
    SS_HEADER_WORDS: int
    SS_ABSENCE_WORDS: int
    SS_MOST_KEY_WORDS: int
    SS_MOST_ENTRY_WORDS: int
    SS_KEYED: int
    SS_LIST: int
    SS_DEQUE: int
    SS_AHEAD: int
    SS_MOST_AHEAD_WORDS: int
    SS_TIMER_PLACE: int
    SS_TIMER_IS_SET: int
    SS_TIMER_TOO_EARLY: int
    SS_TIMERS_FULL: int
    SS_FULL: int
    SS_LOOK_ABSENT: int
    SS_LOOK_FOUND: int
    SS_LOOK_AGAIN: int
    SS_OFFSETS_32: int
    SS_OFFSETS_64: int
    SS_VIEWS: int
    SS_STRINGS_DONE: int
    SS_STRINGS_NO_MEMORY: int
    SS_STRINGS_NO_UTF8: int
    SS_STRINGS_ONE_CODE: int

ffi: FFI
lib: Lib
