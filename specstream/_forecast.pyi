# Written by stm_native/stub.py from the C headers: change those, and run it.

from specstream._native import CData, FFI, Pointer, int64_t, uint64_t

class replay_access(CData):
    byte: int
    value: int
    size: int
    kind: int

class replay_access_p(replay_access, Pointer[replay_access]): ...

class replay_event(CData):
    plain: int
    speculative: int
    first: int
    last: int
    row_words: int
    is_dropped: int

class replay_event_p(replay_event, Pointer[replay_event]): ...

class replay_load(CData):
    threads: int
    horizon: int
    chunk: int
    is_eager: bool
    is_forced: bool
    held: int
    count: int
    warm: int
    read_limit: int
    redo_limit: int
    row_limit: int
    events: replay_event_p
    accesses: replay_access_p
    state_words: int
    regions: Pointer[uint64_t]
    region_count: int
    words: Pointer[uint64_t]
    before: Pointer[uint64_t]
    behind: Pointer[uint64_t]
    word_count: int
    costs: Pointer[int64_t]

class replay_load_p(replay_load, Pointer[replay_load]): ...

class replay_result(CData):
    nanoseconds: int
    bad_event: int
    transfers: int
    accesses: int
    wrong: int
    speculative_runs: int
    dropped: int
    parks: int

class replay_result_p(replay_result, Pointer[replay_result]): ...

class Lib:
    def replay_run(self, load: Pointer[replay_load], /) -> replay_result: ...
    REPLAY_LOAD: int
    REPLAY_STORE: int
    REPLAY_ADD: int
    REPLAY_NO_MEMORY: int
    REPLAY_BAD_SETTING: int
    REPLAY_BAD_EVENT: int

ffi: FFI
lib: Lib
