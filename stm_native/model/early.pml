/* Early results: the head is applied and becomes final later. The part of src/jobs/early_steps.c about "early
 * results", small enough to visit every interleaving; what is said of the logs in src/jobs/early.c is a bit
 * for each event here.
 *
 * Who takes part: WORKERS workers, a source that submits EVENTS events in any order and moves the
 * frontier, and with POLL or POLL_EARLY one who waits for what becomes final, or for what is applied
 * (NO_FRONTIER: the frontier stays where it is until all of them have been).
 * The first event is tentative with TENTATIVE: the source confirms it, or withdraws it at any moment
 * before. With RAISES events may raise; with BARRIER the second one can only run in place; with ROOM
 * so many transactions fit into the region; with NO_MEMORY one request of memory fails, whichever.
 *
 * An event's number is its place in the order of keys, and a transaction is one event. Whether a run, or
 * what was revoked, is still valid is a free choice, but for a run that began as the head and met no
 * change since. Runs may be long: some, but never all workers at once, run until nobody has anything to
 * do. So who sleeps beside a step sleeps for ever, and that is an invalid end state.
 *
 * Left out: chunks (what a late event divides is taken back like what was withdrawn), slots, the time
 * that revoking may take, timers, the job's end. Memory is sequentially consistent, and to look for
 * work and go to sleep is one step: the fences, parking.c and who else takes the turn are commit.pml's.
 * What is done with the mutex is one step; where it is given back in between, steps show it.
 *
 * Checked: nothing is final that is not applied, or before an earlier one; nothing final is taken back;
 * the applied image holds events in their order, the last one is taken back first; what is applied again
 * comes before what is behind it; in the end everything is final, or was withdrawn; whoever waits for
 * early results finds all that has come applied, and whoever waits for final ones hears of every failure.
 *
 * What is planted (FINAL_BEFORE_FRONTIER and so on) and what each must lead to: check.sh. */

#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef EVENTS
#define EVENTS 3
#endif
#ifndef HORIZON
#define HORIZON 1
#endif
#ifndef ROOM
#define ROOM EVENTS
#endif
#define NOBODY 255

/* ---- events ---- */

/* Where an event is. Those in the row are applied, the first `applied` of them, or were revoked. */
#define ABSENT 0
#define PENDING 1
#define RUNNING 2
#define FINISHED 3
#define ALONE 4 /* in place */
#define IN_ROW 5
#define FINAL 6
#define GONE 7

byte where[EVENTS];
bit tentative[EVENTS];
bit withdrawn[EVENTS];
bit dissolved[EVENTS];
bit divided[EVENTS];
bit raised[EVENTS];
bit barrier[EVENTS];
bit fresh[EVENTS]; /* its run began as the head, and nothing has changed since */
byte applied;
byte frontier;     /* all before it have come */

/* What the properties speak about: who is in which image, and whose failure was heard of. */
bit in_applied[EVENTS];
bit in_final[EVENTS];
bit heard[EVENTS];

/* ---- words that are read without the mutex ---- */

#define ADVANCE 1
#define CLAIM 2
byte work;
bit turn;
byte readers;
bit has_news;
bit is_settled;

bit has_moved;
byte failed = NOBODY; /* EVENTS: there was no memory */
#ifdef NO_MEMORY
bit memory_fails = 1;
#endif

bit sleeps[WORKERS];
byte long_runs;
bit listens;
byte came; /* events */
bit answered; /* who waits for early results has got all */

#define IS_SAFE(event) ((event) < frontier)

/* Scratch: within one step only. */
byte kind;  /* next_unapplied: who has the earliest event that is not applied */
byte least; /* and which it is */
byte last;  /* the last one that is applied */
byte count; /* in the row */
byte first; /* of the row */
byte some;  /* is divided */
byte step;
byte at;
byte place;
byte bits;

inline clear_scratch()
{
    kind = 0; least = 0; last = 0; count = 0; first = 0; some = 0; step = 0; at = 0; place = 0; bits = 0;
}

#define NEXT_NOBODY 0
#define NEXT_PENDING 1
#define NEXT_ACTIVE 2
#define NEXT_REVOKED 3

inline next_unapplied()
{
    kind = NEXT_NOBODY; least = NOBODY; last = NOBODY; first = NOBODY; count = 0; some = 0;
    for (at : 0 .. EVENTS - 1) {
        if
        :: where[at] == IN_ROW ->
           count++;
           some = some + divided[at];
           if
           :: first == NOBODY -> first = at
           :: else
           fi;
           if
           :: count <= applied -> last = at
           :: count > applied && kind == NEXT_NOBODY -> kind = NEXT_REVOKED; least = at
           :: else
           fi
        :: where[at] == PENDING && kind == NEXT_NOBODY -> kind = NEXT_PENDING; least = at
        :: (where[at] == RUNNING || where[at] == FINISHED || where[at] == ALONE) &&
           kind == NEXT_NOBODY -> kind = NEXT_ACTIVE; least = at
        :: else
        fi
    }
}

#define IS_LATE(event) (applied > 0 && (event) < last)

#ifdef FINAL_BEFORE_FRONTIER
#define IS_DECIDED(event) (!tentative[event])
#else
#ifdef TENTATIVE_IS_FINAL
#define IS_DECIDED(event) (IS_SAFE(event))
#else
#define IS_DECIDED(event) (IS_SAFE(event) && !tentative[event])
#endif
#endif

#ifdef REVOKED_IS_FINAL
#define MAY_FINISH (count > 0)
#else
#define MAY_FINISH (applied > 0)
#endif

#define EARLY_NOTHING 0
#define EARLY_FINISH 1
#define EARLY_REVOKE 2
#define EARLY_REPUBLISH 3
#define EARLY_APPLY 4
#define EARLY_RUN 5
#define EARLY_DISSOLVE 6
#define EARLY_IN_PLACE 7

#define HAS_ROOM (count < ROOM || applied < count)

inline early_step()
{
    next_unapplied();
    if
    :: failed == EVENTS -> step = EARLY_NOTHING
#ifndef LATE_NOT_REVOKED
    :: failed != EVENTS && (some > 0 || (kind != NEXT_NOBODY && IS_LATE(least))) ->
       step = EARLY_REVOKE
#endif
    :: else ->
       if
       :: failed == NOBODY && MAY_FINISH && IS_DECIDED(first) -> step = EARLY_FINISH
       :: else ->
          if
          :: kind == NEXT_NOBODY -> step = EARLY_NOTHING
          :: kind == NEXT_REVOKED -> step = EARLY_REPUBLISH
          :: kind == NEXT_PENDING -> step = (HAS_ROOM -> EARLY_RUN : EARLY_NOTHING)
          :: else ->
             if
             :: where[least] != FINISHED -> step = EARLY_NOTHING
             :: where[least] == FINISHED && barrier[least] ->
                if
                :: applied < count -> step = EARLY_DISSOLVE
                :: else ->
                   step = (failed == NOBODY && count == 0 && IS_DECIDED(least) ->
                           EARLY_IN_PLACE : EARLY_NOTHING)
                fi
             :: else -> step = (HAS_ROOM -> EARLY_APPLY : EARLY_NOTHING)
             fi
          fi
       fi
    fi
}

/* ---- what there is to do ---- */

inline drop_withdrawn()
{
    at = 0;
    do
    :: at == EVENTS -> break
    :: at < EVENTS && where[at] == PENDING && !withdrawn[at] -> break
    :: at < EVENTS && where[at] == PENDING && withdrawn[at] -> where[at] = GONE; at++
    :: else -> at++
    od
}

/* can_claim; behind early_step, whose scratch it uses. `least` is another one here. */
inline look_for_claims()
{
    place = 0; bits = 0;
    for (at : 0 .. EVENTS - 1) {
        if
        :: bits == 0 && where[at] == PENDING ->
           bits = (HORIZON > 0 && place <= HORIZON && applied == count && some == 0 &&
                   count < ROOM && !IS_LATE(at) -> 1 : 2)
        :: bits == 0 && (where[at] == RUNNING || where[at] == FINISHED || where[at] == ALONE) ->
           place++;
           if
           :: dissolved[at] -> bits = 2
           :: else
           fi
        :: else
        fi
    }
    bits = (bits == 1 -> CLAIM : 0)
}

inline wake()
{
    sleeps[0] = 0;
    sleeps[1] = 0;
#if WORKERS == 3
    sleeps[2] = 0;
#endif
}

#ifdef SETTLED_TOO_SOON
#define IS_SETTLED (step == EARLY_NOTHING)
#else
#define IS_SETTLED \
    (step == EARLY_NOTHING && (kind != NEXT_ACTIVE || where[least] == FINISHED))
#endif

/* With the mutex, and in one step with what has changed. */
inline refresh()
{
    drop_withdrawn();
    early_step();
    look_for_claims();
    bits = bits | (step != EARLY_NOTHING -> ADVANCE : 0);
    if
#ifndef NO_WAKE_FOR_NEW_WORK
    :: (bits & (3 - work)) != 0 -> wake()
#endif
    :: else
    fi;
    work = bits;
    is_settled = IS_SETTLED;
    /* head_is_safe: of the earliest one that is not final */
    least = (kind == NEXT_NOBODY || (first != NOBODY && first < least) -> first : least);
    has_news = (failed != NOBODY ||
                (has_moved && !(least != NOBODY &&
                                (withdrawn[least] || (!tentative[least] && IS_SAFE(least))))));
    if
#ifdef SETTLED_NOT_TOLD
    :: has_news -> listens = 0
#else
    :: has_news || is_settled -> listens = 0
#endif
    :: else
    fi;
    clear_scratch()
}

/* ---- the images ---- */

inline changed()
{
    for (at : 0 .. EVENTS - 1) {
        fresh[at] = 0
    }
    at = 0
}

inline publish(event)
{
    assert(!in_applied[event] && !in_final[event]);
    for (at : 0 .. EVENTS - 1) {
        assert(at <= event || !in_applied[at]) /* what is behind was taken back before */
    }
    in_applied[event] = 1;
    changed()
}

inline take_back(event)
{
    assert(in_applied[event] && !in_final[event]);
    for (at : 0 .. EVENTS - 1) {
        assert(at <= event || !in_applied[at])
    }
    in_applied[event] = 0;
    changed()
}

inline finish(event)
{
    assert(in_applied[event] && !in_final[event] && !withdrawn[event]); /* final <= applied */
    for (at : 0 .. EVENTS - 1) {
        assert(at >= event || in_final[at] || where[at] == GONE);
        assert(at < event || !in_final[at])
    }
    at = 0;
    in_final[event] = 1
}

/* Of an event in the row: how many of the row are before it. */
inline find_place(event)
{
    place = 0;
    for (at : 0 .. EVENTS - 1) {
        place = place + (at < event && where[at] == IN_ROW -> 1 : 0)
    }
    at = 0
}

inline fail_for_memory()
{
#ifdef FAILURE_FORGOTTEN
    failed = EVENTS
#else
    failed = (failed == NOBODY -> EVENTS : failed)
#endif
}

#ifdef NO_MEMORY
#define MAY_FAIL memory_fails
#define HAS_FAILED memory_fails = 0
#else
#define MAY_FAIL false
#define HAS_FAILED skip
#endif

#ifdef BARRIER
#define IS_BARRIER(event) ((event) == 1)
#else
#define IS_BARRIER(event) false
#endif

#define ALL_OVER (finals == EVENTS)
byte finals; /* events that are final or were withdrawn; the source and who sleeps look at it */

inline count_finals()
{
    finals = 0;
    for (at : 0 .. EVENTS - 1) {
        finals = finals + (where[at] == FINAL || where[at] == GONE -> 1 : 0)
    }
    at = 0
}

inline with_mutex_over()
{
    refresh();
    count_finals()
}

#ifdef TAKEN_BACK_IN_ORDER
#define IS_NEXT (mine == NOBODY)
#else
#define IS_NEXT true
#endif

/* ---- ss_run_open ---- */

proctype worker(byte me)
{
    byte mine = NOBODY; /* the event that a step or a run is about */
    byte end;
    byte begin;
    bit holds;
    bit runs_next;

again:
    atomic {
        mine = NOBODY; end = 0; begin = 0; holds = 0; runs_next = 0;
        if
        :: (work & ADVANCE) != 0 && readers == 0 && !turn -> turn = 1
        :: else -> goto look_for_claim
        fi
    }

advance: /* advance_early */
    atomic {
        mine = NOBODY; end = 0; begin = 0; holds = 0;
        d_step { early_step() };
        if
        :: step == EARLY_NOTHING -> d_step { with_mutex_over() }; goto release
        :: step == EARLY_FINISH ->
           d_step {
               mine = first;
               end = first;
               place = 0;
               for (at : 0 .. EVENTS - 1) {
                   if
                   :: where[at] == IN_ROW && place < applied && end == at && IS_DECIDED(at) ->
                      place++;
                      end = at + 1
                   :: where[at] != IN_ROW && end == at -> end = at + 1
                   :: else
                   fi
               }
#ifdef REVOKED_IS_FINAL
               end = mine + 1;
#endif
               begin = mine;
               clear_scratch()
           }
           goto finish_first
        :: step == EARLY_REVOKE ->
           d_step {
               end = applied;
               if
               :: kind != NEXT_NOBODY && IS_LATE(least) -> find_place(least); end = place
               :: else
               fi;
               place = 0;
               for (at : 0 .. EVENTS - 1) {
                   if
                   :: where[at] == IN_ROW ->
                      end = (divided[at] && place < end -> place : end);
                      place++
                   :: else
                   fi
               }
               clear_scratch()
           }
           goto revoke
        :: step == EARLY_REPUBLISH ->
           d_step {
               mine = least;
               end = least;
               do
               :: end == EVENTS -> break
               :: end < EVENTS && (where[end] == PENDING || where[end] == RUNNING ||
                                   where[end] == FINISHED || where[end] == ALONE) -> break
               :: else -> end++
               od;
               clear_scratch();
               holds = 1
           }
           goto republish
        :: step == EARLY_APPLY ->
           d_step {
               mine = least;
               where[mine] = RUNNING;
               clear_scratch();
               with_mutex_over()
           }
           goto apply
        :: step == EARLY_RUN ->
           d_step {
               /* The latest one makes room. */
               if
               :: count >= ROOM ->
                  for (at : 0 .. EVENTS - 1) {
                      place = (where[at] == IN_ROW -> at : place)
                  }
                  where[place] = PENDING;
                  divided[place] = 0;
                  early_step() /* as before, but for the row */
               :: else
               fi;
               mine = NOBODY;
               for (at : 0 .. EVENTS - 1) {
                   mine = (where[at] == PENDING && mine == NOBODY -> at : mine)
               }
               clear_scratch()
           }
           if
           :: MAY_FAIL ->
              d_step { HAS_FAILED; fail_for_memory(); with_mutex_over() }
              goto release
           :: skip
           fi;
           d_step { where[mine] = RUNNING; barrier[mine] = 0; runs_next = 1; with_mutex_over() }
           goto next
        :: step == EARLY_DISSOLVE ->
           d_step {
               for (at : 0 .. EVENTS - 1) {
                   place = place + (where[at] == IN_ROW -> 1 : 0);
                   if
                   :: where[at] == IN_ROW && place > applied -> where[at] = PENDING; divided[at] = 0
                   :: else
                   fi
               }
               with_mutex_over()
           }
           goto next
        :: step == EARLY_IN_PLACE ->
           d_step { mine = least; where[mine] = ALONE; clear_scratch(); with_mutex_over() }
           goto in_place
        fi
    }

finish_first: /* [mine, end): those of the row that are decided now, up to one that raises */
    do
    :: mine == end -> break
    :: mine < end ->
       atomic {
           if
           :: where[mine] != IN_ROW -> mine++
           :: where[mine] == IN_ROW && MAY_FAIL -> HAS_FAILED; holds = 1; end = mine
           :: where[mine] == IN_ROW ->
              d_step { finish(mine) };
              mine++;
              if
              :: raised[mine - 1] -> end = mine
              :: else
              fi
           fi
       }
    od;
    atomic {
        at = begin;
        do
        :: at == end -> break
        :: at < end && where[at] == IN_ROW ->
           where[at] = FINAL;
           applied--;
           if
           :: raised[at] -> failed = at
           :: else
           fi;
           at++
        :: else -> at++
        od;
        has_moved = 1;
        if
        :: holds -> fail_for_memory()
        :: else
        fi;
        with_mutex_over()
    }
    if
    :: holds -> goto release
    :: else -> goto next
    fi;
revoke: /* all behind the earliest event, or what is divided; `end`: so many stay applied */
    /* `holds`: nothing of it is left */
    do
    :: holds -> break
    :: else ->
       d_step {
           mine = NOBODY;
           for (at : 0 .. EVENTS - 1) {
               if
               :: where[at] == IN_ROW ->
                  mine = (place >= end && place < applied && in_applied[at] && IS_NEXT ->
                          at : mine);
                  place++
               :: else
               fi
           }
           place = 0;
           at = 0;
           if
           :: mine == NOBODY -> holds = 1
           :: else -> take_back(mine)
           fi
       }
    od;
    atomic {
        applied = end;
        place = 0;
        for (at : 0 .. EVENTS - 1) {
            barrier[at] = 0;
            if
            :: where[at] == IN_ROW ->
               if
               :: divided[at] && place >= end -> where[at] = PENDING; divided[at] = 0
#ifdef REVOKED_IS_FORGOTTEN
               :: !divided[at] && place >= end -> where[at] = GONE
#endif
               :: else
               fi;
               place++
            :: else
            fi
        }
        with_mutex_over()
    }
    goto next;
republish: /* [mine, end): revoked ones up to the next event that is to run */
    do
    :: mine == end || !holds -> break
    :: mine < end && holds ->
       if
       :: where[mine] != IN_ROW -> mine++
       :: where[mine] == IN_ROW ->
          if
          :: d_step { publish(mine); mine++; begin++ }
          :: holds = 0
          fi
       fi
    od;
    atomic {
        applied = applied + begin;
        if
        :: !holds -> where[mine] = PENDING; divided[mine] = 0
        :: else
        fi;
        with_mutex_over()
    }
    goto next;
apply: /* it has run */
    if
    :: holds = 1
    :: !fresh[mine] -> holds = 0
    fi;
    if
    :: !holds ->
       d_step {
           if
           :: dissolved[mine] -> dissolved[mine] = 0; where[mine] = PENDING
           :: else -> runs_next = 1 /* it is RUNNING already */
           fi;
           with_mutex_over()
       }
       goto next
    :: holds && IS_BARRIER(mine) ->
       d_step {
           if
           :: dissolved[mine] -> dissolved[mine] = 0; where[mine] = PENDING
           :: else -> barrier[mine] = 1; where[mine] = FINISHED
           fi;
           with_mutex_over()
       }
       goto next
    :: holds && !IS_BARRIER(mine) && MAY_FAIL -> /* make_applied, or ss_early_reserve */
       d_step {
           HAS_FAILED;
           fail_for_memory();
           dissolved[mine] = 0;
           where[mine] = PENDING;
           with_mutex_over()
       }
       goto next
    :: holds && !IS_BARRIER(mine) -> skip
    fi;
    atomic {
        d_step { publish(mine) };
        if
        :: raised[mine] = 0
#ifdef RAISES
        :: raised[mine] = 1
#endif
        fi
    }
    d_step {
#ifndef DISSOLVED_IS_APPLIED
        divided[mine] = dissolved[mine];
#endif
        dissolved[mine] = 0;
        find_place(mine);
        assert(place == applied); /* ss_early_insert keeps the row in order */
        where[mine] = IN_ROW;
        applied++;
        at = 0;
        /* what could not run may find something else now */
        do
        :: at == EVENTS -> break
        :: at < EVENTS && (where[at] == RUNNING || where[at] == FINISHED) -> barrier[at] = 0; break
        :: else -> at++
        od;
        with_mutex_over()
    }
    goto next;

in_place: /* the turn is lent to whoever wants to look */
    if
    :: readers != 0 ->
       turn = 0;
       d_step { wake() };
       atomic { readers == 0 && !turn -> turn = 1 }
    :: else
    fi;
    d_step {
        in_applied[mine] = 1;
        finish(mine);
        changed()
    }
    d_step { where[mine] = FINAL; has_moved = 1; with_mutex_over() }

next: /* one step at least, then a reader comes first */
    if
#ifdef RUNS_WITH_THE_TURN
    :: runs_next -> goto run_it
#else
    :: runs_next -> goto release
#endif
    :: !runs_next && readers != 0 -> goto release
    :: else -> goto advance
    fi;

release:
    turn = 0;
#ifndef NO_WAKE_AFTER_RELEASE
    d_step { wake() };
#endif
#ifdef RUNS_WITH_THE_TURN
    goto again;
#else
    if
    :: runs_next -> goto run_it
    :: else -> goto again
    fi;
#endif

look_for_claim:
    atomic {
        mine = NOBODY;
        d_step { early_step(); look_for_claims() };
        if
        :: (bits & CLAIM) != 0 ->
           d_step {
               mine = NOBODY;
               for (at : 0 .. EVENTS - 1) {
                   mine = (where[at] == PENDING && mine == NOBODY -> at : mine)
               }
               clear_scratch()
           }
           if
           :: MAY_FAIL ->
              d_step { HAS_FAILED; fail_for_memory(); with_mutex_over() }
              goto again
           :: skip
           fi;
           d_step { where[mine] = RUNNING; barrier[mine] = 0; with_mutex_over() }
           goto run_it
        :: else -> d_step { clear_scratch() }
        fi
    }
    atomic { /* await_work */
        if
        :: (work & CLAIM) != 0 -> goto again
        :: (work & ADVANCE) != 0 && !turn && readers == 0 -> goto again
        :: else -> sleeps[me] = 1
        fi
    }
    if
    :: !sleeps[me] -> goto again
    :: ALL_OVER -> goto done
    fi;

run_it: /* ss_run_speculatively, and settle */
    atomic {
        next_unapplied();
        fresh[mine] = (least == mine);
        clear_scratch()
    }
    if
    :: skip
    :: atomic { long_runs < WORKERS - 1 -> long_runs++ }
       atomic { work == 0 || dissolved[mine] -> long_runs-- }
    fi;
    d_step {
        if
        :: dissolved[mine] -> dissolved[mine] = 0; where[mine] = PENDING
        :: else -> where[mine] = FINISHED
        fi;
#ifndef SETTLES_IN_SECRET
        with_mutex_over()
#endif
    }
#ifdef RUNS_WITH_THE_TURN
    if
    :: runs_next -> turn = 0; d_step { wake() }
    :: else
    fi;
#endif
    goto again;

done:
    skip
}

/* ---- from outside ---- */

#ifdef NO_FRONTIER
#define MAY_MOVE answered
#else
#define MAY_MOVE true
#endif

proctype source()
{
    byte mine;
    do
    :: came < EVENTS || MAY_MOVE || (tentative[0] && !withdrawn[0]) ->
       atomic {
           select (mine : 0 .. EVENTS - 1);
           if
           :: where[mine] == ABSENT ->
              d_step {
                  where[mine] = PENDING;
                  came++;
                  with_mutex_over()
              }
           :: where[mine] != ABSENT && mine == frontier && MAY_MOVE ->
              d_step {
                  frontier++;
#ifndef FRONTIER_IN_SECRET
                  with_mutex_over()
#endif
              }
#ifdef TENTATIVE
           :: where[mine] != ABSENT && tentative[mine] && !withdrawn[mine] ->
              d_step { tentative[mine] = 0; with_mutex_over() }
           :: where[mine] != ABSENT && tentative[mine] && !withdrawn[mine] ->
              d_step {
                  withdrawn[mine] = 1;
                  if
                  :: where[mine] == IN_ROW -> divided[mine] = 1
                  :: where[mine] == RUNNING -> dissolved[mine] = 1
                  :: where[mine] == FINISHED -> where[mine] = PENDING
                  :: else
                  fi;
                  with_mutex_over()
              }
#endif
           :: else
           fi;
           mine = 0
       }
    :: frontier == EVENTS && (!tentative[0] || withdrawn[0]) -> break
    od
}

inline take_turn()
{
    readers++;
    atomic { !turn -> turn = 1 }
}

inline give_turn()
{
    turn = 0;
    readers--;
    d_step { wake() }
}

/* ss_engine_resume */
inline resume()
{
    d_step {
        if
        :: hears != NOBODY && failed == hears ->
           failed = NOBODY;
           if
           :: hears < EVENTS -> heard[hears] = 1
           :: else
           fi;
           with_mutex_over()
        :: else
        fi;
        hears = NOBODY
    }
}

#ifdef POLL
proctype poll()
{
    byte hears = NOBODY;
    do
    :: atomic {
           if
           :: has_news
           :: else -> listens = 1
           fi
       }
       if
       :: !listens
       :: ALL_OVER && !has_moved && failed == NOBODY -> break /* nothing to tell */
       fi;
       if
       :: has_news ->
          take_turn();
          d_step { hears = failed; has_moved = 0; with_mutex_over() }
          give_turn();
          resume()
       :: else
       fi
    od
}
#endif

#ifdef POLL_EARLY
proctype poll_early()
{
    byte hears = NOBODY;
    bit settled;
    do
    :: atomic {
           if
           :: is_settled
           :: else -> listens = 1
           fi
       }
       !listens;
       take_turn();
       d_step {
           hears = failed;
           early_step();
           settled = IS_SETTLED && failed == NOBODY;
           if
           :: settled ->
              answered = 1;
              assert(applied == count && some == 0);
              assert(kind == NEXT_NOBODY || count >= ROOM || barrier[least]);
              for (at : 0 .. EVENTS - 1) {
                  assert(in_applied[at] == (where[at] == IN_ROW || where[at] == FINAL));
                  answered = (where[at] == ABSENT -> 0 : answered)
              }
           :: else
           fi;
           clear_scratch()
       }
       give_turn();
       resume();
       if
       :: settled -> settled = 0;
          !is_settled || failed != NOBODY || ALL_OVER || (came == EVENTS && !answered)
       :: else
       fi;
       if
       :: ALL_OVER && failed == NOBODY -> break
       :: else
       fi
    od
}
#endif

init
{
    atomic {
        tentative[0] = 0;
#ifdef TENTATIVE
        tentative[0] = 1;
#endif
        is_settled = 1;
        run worker(0);
        run worker(1);
#if WORKERS == 3
        run worker(2);
#endif
        run source();
#ifdef POLL
        run poll();
#endif
#ifdef POLL_EARLY
        run poll_early();
#endif
    }
    d_step {
        ALL_OVER && failed == NOBODY ->
        for (at : 0 .. EVENTS - 1) {
            assert(in_final[at] == !withdrawn[at]);
            assert(!in_final[at] || !raised[at] || heard[at])
        }
        at = 0
    }
}
