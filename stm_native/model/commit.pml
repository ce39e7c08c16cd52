/* The ordered scheduler's hand-over of the head, and parking: src/core/scheduler.c, src/core/turn.c,
 * src/core/commit.c, src/protocols/revalidation.c (with DOUBT) and src/core/parking.c under protocol `value`, small enough to visit every interleaving.
 *
 * Who takes part: WORKERS workers, TRANSACTIONS transactions, HORIZON, and with READER one thread
 * outside the pool that takes the turn once; with STOP one that ends the job early. What is left
 * out: values (a finished run is found valid or not by a free choice), protocol `eager`, time. The rest
 * of a run that has stopped as the head is handed over as a run that is found invalid.
 *
 * Time. A park has no time-out here: whoever is not woken sleeps for ever, so a lost wake-up is an
 * invalid end state, though in C it would cost a millisecond. Likewise a speculative run may last
 * until it is the head: the watch kills a run that keeps the head from advancing, which is that of the
 * head itself, or, when the head is finished and nobody holds the turn or waits for it, any beyond it
 * (without the latter: NO_WATCH_FINISHED). Polling with naps (lend_turn, take_turn) is waiting, not
 * sleeping. The workers' share of the turn after a reader (`share_end`) is left out: it keeps the next
 * reader waiting, for a time, and here there is one.
 *
 * Memory. Each process has a first-in first-out store buffer of DEPTH entries, as on x86: a store
 * enters it, a process `memory` lets it out at any later moment, the process itself sees its own
 * stores at once, and a fence waits until the buffer is empty. One thing is weaker than x86: an
 * atomic read-modify-write acts on memory without emptying the buffer, because C promises no more
 * for one that is relaxed or acquire; otherwise the locked instructions of x86 would hide missing
 * fences that other machines need. `sleepers` is changed under the mutex only, so its
 * read-modify-write may be a buffered store as well. Stores do not overtake each other: all that
 * are modelled are releases or are followed by one. Loads do not overtake each other; that much is
 * assumed, not checked. What only the holder of the turn touches (`consumed`) needs no buffer, as
 * the turn is handed on by release and acquire.
 *
 * Checked: commits in order, each transaction once; never two holders of the turn; the state
 * stands still while the reader holds it; no end state but "all are done"; and, with PROGRESS and
 * weak fairness, that everything gets committed.
 *
 * What is planted (NO_FENCE_FINISH and so on) and what each must lead to: check.sh. */

#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef TRANSACTIONS
#define TRANSACTIONS 3
#endif
#ifndef HORIZON
#define HORIZON 1
#endif
#ifndef DEPTH
#define DEPTH 1
#endif
/* As ring_resize: the power of two from 2 * (HORIZON + 1) on. */
#if HORIZON == 1
#define RING 4
#else
#define RING 8
#endif

/* ---- memory ---- */

#define NEXT_COMMIT 0
#define TURN 1
#define OVER 2
#define MUTEX 3
#define SLEEPERS 4
#define STATUS(number) (5 + (number) % RING)

#define PROCESSES (WORKERS + 1)

#define NEXT_DOUBTFUL (5 + RING)
#define LAST_DOUBTFUL (6 + RING)

#ifdef DOUBT
byte mem[7 + RING];
#else
byte mem[5 + RING];
#endif
byte pending[PROCESSES]; /* entries in the buffer */
byte where[PROCESSES * DEPTH];
byte what[PROCESSES * DEPTH];

/* Only ever changed by read-modify-write, or by one process that fences at once. */
byte next_start;
byte readers;
bit stop;

/* The number is part of the word. A slot without a tenant has 0. */
#define WORD(number, status) (((number) + 1) * 8 + (status))
#define FREE 0
#define RUNNING 1
#define FINISHED 2
#define IN_PLACE 3
#define DOUBTFUL 4
#ifdef DOUBT
#define HAS_FINISHED(word, number) ((word) == WORD(number, FINISHED) || (word) == WORD(number, DOUBTFUL))
#define HAS_DOUBTFUL (LOAD(NEXT_DOUBTFUL) < LOAD(LAST_DOUBTFUL))
#else
#define HAS_FINISHED(word, number) ((word) == WORD(number, FINISHED))
#define HAS_DOUBTFUL false
#endif

#if DEPTH == 1
#define LOAD(at) (pending[me] == 1 && where[me] == (at) -> what[me] : mem[at])
#define BUFFERED(at) (pending[me] == 1 && where[me] == (at))
#else
#define LOAD(at) (pending[me] == 2 && where[me * 2 + 1] == (at) -> what[me * 2 + 1] : \
    (pending[me] >= 1 && where[me * 2] == (at) -> what[me * 2] : mem[at]))
#define BUFFERED(at) ((pending[me] == 2 && where[me * 2 + 1] == (at)) || \
    (pending[me] >= 1 && where[me * 2] == (at)))
#endif

inline store(address, word)
{
    d_step {
        pending[me] < DEPTH ->
        where[me * DEPTH + pending[me]] = address;
        what[me * DEPTH + pending[me]] = word;
        pending[me]++;
    }
}

#define FENCE pending[me] == 0

proctype memory(byte me)
{
end:
    do
    :: d_step {
           pending[me] > 0 ->
           mem[where[me * DEPTH]] = what[me * DEPTH];
#if DEPTH == 2
           where[me * 2] = where[me * 2 + 1];
           what[me * 2] = what[me * 2 + 1];
           where[me * 2 + 1] = 0;
           what[me * 2 + 1] = 0;
#else
           where[me] = 0;
           what[me] = 0;
#endif
           pending[me]--;
       }
    od
}

/* ---- parking.c ---- */

bit waiting[WORKERS]; /* in the condition variable */

inline lock()
{
    d_step { !BUFFERED(MUTEX) && mem[MUTEX] == 0 -> mem[MUTEX] = 1; }
}

inline unlock()
{
    store(MUTEX, 0);
}

inline broadcast()
{
    d_step {
        waiting[0] = 0;
        waiting[1] = 0;
#if WORKERS == 3
        waiting[2] = 0;
#endif
    }
}

inline wake()
{
#ifndef NO_FENCE_WAKE
    FENCE;
#endif
    if
    :: LOAD(SLEEPERS) == 0
    :: else ->
#ifdef NO_MUTEX_IN_WAKE
       broadcast();
#else
       lock();
       broadcast();
       unlock();
#endif
    fi
}

/* ---- the turn ---- */

/* What the properties speak about. */
byte holders;
byte consumed;

/* The compare-and-swap of the turn; `got` says whether it was free. */
inline take()
{
#ifdef TURN_WITHOUT_CAS
    FENCE;
    got = (mem[TURN] == 0);
    if
    :: got -> d_step { mem[TURN] = 1; assert(holders == 0); holders++; }
    :: else
    fi
#else
    atomic {
        !BUFFERED(TURN) ->
        if
        :: mem[TURN] == 0 -> mem[TURN] = 1; got = 1; assert(holders == 0); holders++;
        :: else -> got = 0;
        fi
    }
#endif
}

inline release_turn()
{
    d_step {
        pending[me] < DEPTH ->
        holders--;
        where[me * DEPTH + pending[me]] = TURN;
        what[me * DEPTH + pending[me]] = 0;
        pending[me]++;
    }
#ifndef NO_FENCE_RELEASE
    FENCE;
#endif
}

inline lend_turn()
{
    release_turn();
#ifndef NO_WAKE_IN_LEND
    wake();
#endif
    do
    :: readers == 0 ->
       take();
       if
       :: got -> break
       :: else
       fi
    od;
    assert(holders == 1)
}

/* ---- looking ---- */

inline head_can_advance()
{
    head = LOAD(NEXT_COMMIT);
    if
    :: head == TRANSACTIONS || stop -> got = 1
    :: else ->
       if
#ifdef DOUBTFUL_HEAD_NOT_LOOKED_AT
       :: LOAD(STATUS(head)) == WORD(head, FINISHED) -> got = 1
#else
       :: HAS_FINISHED(LOAD(STATUS(head)), head) -> got = 1
#endif
       :: else ->
#ifdef SPECULATE
          got = 0
#else
          got = (next_start == head)
#endif
       fi
    fi
}

inline can_claim()
{
    number = next_start;
    got = (number < TRANSACTIONS && number <= LOAD(NEXT_COMMIT) + HORIZON);
}

inline has_work()
{
    if
    :: LOAD(OVER) -> got = 1
    :: else ->
       can_claim();
       got = got || HAS_DOUBTFUL;
       if
       :: got
       :: !got && (LOAD(TURN) != 0) -> got = 0
       :: !got && (LOAD(TURN) == 0) ->
#ifdef HEAD_NOT_LOOKED_AT
          got = 0
#else
          if
          :: readers != 0 -> got = 0
          :: else -> head_can_advance()
          fi
#endif
       fi
    fi
}

/* Somebody sleeps beside work: allowed, see check.sh, and only asked for to show that it happens. */
#define SLEEPS_BESIDE_WORK \
    ((waiting[0] || waiting[1]) && next_start < TRANSACTIONS && \
     next_start <= mem[NEXT_COMMIT] + HORIZON && mem[NEXT_COMMIT] > 0)

#ifndef NO_WATCH_FINISHED
#define WATCHED_BESIDE_HEAD \
    (HAS_FINISHED(mem[STATUS(mem[NEXT_COMMIT])], mem[NEXT_COMMIT]) && \
     mem[TURN] == 0 && readers == 0)
#else
#define WATCHED_BESIDE_HEAD false
#endif

/* ---- revalidation.c ---- */

#ifdef DOUBT
/* The compare-and-swap of a status; `got` says whether it was DOUBTFUL. */
inline win_doubtful(transaction, status)
{
    atomic {
        !BUFFERED(STATUS(transaction)) ->
        if
        :: mem[STATUS(transaction)] == WORD(transaction, DOUBTFUL) ->
           mem[STATUS(transaction)] = WORD(transaction, status);
           got = 1
        :: else -> got = 0
        fi
    }
}

inline doubt_behind()
{
    number = head + 1;
    last = number;
    do
    :: number < next_start ->
       if
       :: LOAD(STATUS(number)) == WORD(number, FINISHED) ->
          store(STATUS(number), WORD(number, DOUBTFUL));
          last = number + 1
       :: else
       fi;
       number++
    :: else -> break
    od;
    store(NEXT_DOUBTFUL, head + 1);
    store(LAST_DOUBTFUL, last);
    d_step { number = 0; last = 0; }
}
#endif

/* ---- scheduler.c, turn.c, commit.c ---- */

proctype worker(byte me)
{
    byte head;
    byte number;
    bit got;
#ifdef DOUBT
    byte last;
#endif

again: /* run, in scheduler.c */
    if
    :: LOAD(OVER) -> goto done
    :: else
    fi;
    head_can_advance();
    if
    :: got && readers == 0 ->
       take();
       if
       :: got -> number = 0; goto advance
       :: else
       fi
    :: else
    fi;

#ifdef DOUBT
    /* revalidate_one */
    do
    :: !HAS_DOUBTFUL -> break
    :: else ->
       number = LOAD(NEXT_DOUBTFUL);
       atomic {
           !BUFFERED(NEXT_DOUBTFUL) ->
           if
           :: mem[NEXT_DOUBTFUL] == number && number < LOAD(LAST_DOUBTFUL) ->
              mem[NEXT_DOUBTFUL] = number + 1;
              got = 1
           :: else -> got = 0
           fi
       }
       if
       :: got -> win_doubtful(number, RUNNING)
       :: else
       fi;
       if
       :: got -> goto revalidate
       :: else
       fi
    od;
#endif

    /* claim */
    do
    :: can_claim();
       if
       :: !got -> goto park
       :: else
       fi;
#ifdef CLAIM_WITHOUT_CAS
       next_start = number + 1;
       break
#else
       d_step {
           if
           :: next_start == number -> next_start = number + 1;
           :: else -> got = 0;
           fi
       }
       if
       :: got -> break
       :: else
       fi
#endif
    od;

speculate: /* run_speculatively */
    store(STATUS(number), WORD(number, RUNNING));
    FENCE; /* as in run_once; the flag `kill` itself is not modelled */
    if
    :: true
    :: true -> /* runs away, until it is the head and the watch kills it */
       mem[NEXT_COMMIT] == number || mem[OVER] || stop || WATCHED_BESIDE_HEAD
    fi;
    store(STATUS(number), WORD(number, FINISHED));
#ifndef NO_FENCE_FINISH
    FENCE;
#endif
    d_step { head = 0; number = 0; got = 0; }
    goto again;

#ifdef DOUBT
revalidate:
    if
    :: goto speculate /* it does not hold */
    :: true
    fi;
    store(STATUS(number), WORD(number, FINISHED));
#ifndef NO_FENCE_REVALIDATED
    FENCE;
#endif
    d_step { head = 0; number = 0; got = 0; }
    goto again;
#endif

park: /* await_work, ss_park. The spinning before it only looks more often. */
    lock();
    number = LOAD(SLEEPERS);
    store(SLEEPERS, number + 1);
#ifndef NO_FENCE_PARK
    FENCE;
#endif
#ifdef NO_LAST_LOOK
    got = 0;
#else
    has_work();
#endif
    if
    :: !got ->
       /* The condition variable: waiting and unlocking are one step for whoever locks. */
       d_step {
           pending[me] < DEPTH ->
           waiting[me] = 1;
           where[me * DEPTH + pending[me]] = MUTEX;
           what[me * DEPTH + pending[me]] = 0;
           pending[me]++;
           head = 0; number = 0;
       }
       waiting[me] == 0;
       lock()
    :: else
    fi;
    number = LOAD(SLEEPERS);
    store(SLEEPERS, number - 1);
    unlock();
    d_step { head = 0; number = 0; got = 0; }
    goto again;

advance:
    if
    :: LOAD(OVER) -> goto release
    :: else
    fi;
    head = LOAD(NEXT_COMMIT);
    if
    :: head == TRANSACTIONS || stop -> goto end_job
    :: else
    fi;
    if
    :: readers != 0 -> goto release
    :: else
    fi;
    number = LOAD(STATUS(head));
    got = (number == WORD(head, FINISHED));
#ifdef DOUBT
    if
    :: number == WORD(head, DOUBTFUL) ->
#ifdef DOUBTFUL_WITHOUT_CAS
       got = 1
#else
       win_doubtful(head, IN_PLACE)
#endif
    :: else
    fi;
#endif
    number = 0;
    if
    :: got ->
       if
       :: d_step { /* still valid: publish */
              assert(holders == 1);
              assert(consumed == head);
              assert(LOAD(STATUS(head)) != WORD(head, RUNNING)); /* nobody else has it */
              consumed++;
          }
          goto committed
       :: skip
#ifndef RERUN_STAYS_FINISHED
          ; store(STATUS(head), WORD(head, IN_PLACE))
#endif
#ifdef DOUBT
          ; doubt_behind()
#endif
       fi
    :: else ->
#ifdef SPECULATE
       goto look_behind
#else
       d_step {
           if
           :: next_start == head -> next_start = head + 1; got = 1;
           :: else -> got = 0;
           fi
       }
       if
       :: !got -> goto look_behind
       :: else
       fi;
       store(STATUS(head), WORD(head, IN_PLACE))
#endif
    fi;

    /* run_in_place */
#ifdef ASSERT_NOBODY_SLEEPS_BESIDE_WORK
    assert(!SLEEPS_BESIDE_WORK);
#endif
    FENCE; /* the flags `yield` and `kill` are not modelled */
    if
    :: stop -> store(STATUS(head), WORD(head, FREE)); goto end_job
    :: else
    fi;
    if
    :: readers != 0 -> lend_turn()
    :: else
    fi;
    d_step {
        assert(holders == 1);
        assert(consumed == head);
        consumed++;
    }

committed:
    store(STATUS(head), WORD(head, FREE));
    store(NEXT_COMMIT, head + 1);
#ifdef WAKE_AT_COMMIT
    wake();
#endif
    goto advance;

look_behind: /* doubt_while_idle */
#ifdef DOUBT
    can_claim();
    if
    :: got || HAS_DOUBTFUL
    :: else -> doubt_behind()
    fi;
    number = 0;
#endif
    goto release;

end_job:
    store(OVER, 1);
    FENCE;

release:
#ifdef WAKE_BEFORE_RELEASE
    wake();
    release_turn();
#else
    release_turn();
#ifndef NO_WAKE
    wake();
#endif
#endif
    d_step { head = 0; got = 0; }
    goto again;

done:
    assert(stop || consumed == TRANSACTIONS);
    d_step { head = 0; number = 0; got = 0; }
}

#ifdef READER
proctype reader(byte me)
{
    byte seen;

    readers++;
    d_step { mem[TURN] == 0 -> mem[TURN] = 1; assert(holders == 0); holders++; }
    seen = consumed;
    assert(holders == 1 && seen == consumed);
    d_step {
        pending[me] < DEPTH ->
        seen = 0;
        holders--;
        where[me * DEPTH] = TURN;
        what[me * DEPTH] = 0;
        pending[me]++;
    }
    FENCE; /* the decrement is a release: it does not overtake the store */
    readers--;
#ifndef READER_DOES_NOT_WAKE
    wake();
#endif
}
#endif

#ifdef STOP
proctype stopper(byte me)
{
    stop = 1;
    wake();
}
#endif

init
{
    atomic {
        run worker(0);
        run memory(0);
        run worker(1);
        run memory(1);
#if WORKERS == 3
        run worker(2);
        run memory(2);
#endif
#ifdef READER
        run reader(WORKERS);
        run memory(WORKERS);
#endif
#ifdef STOP
        run stopper(WORKERS);
        run memory(WORKERS);
#endif
    }
}

#ifdef PROGRESS
ltl progress { <> (consumed == TRANSACTIONS) }
#endif
