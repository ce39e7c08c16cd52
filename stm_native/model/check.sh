#!/usr/bin/env bash
# Checks commit.pml and early.pml: what must hold, and that each planted defect is found. Exits 1 if
# anything is not as expected.
#
#     check.sh                          all of them
#     check.sh 'READER NO_FENCE_PARK'   the one with these macros; those that begin with EARLY are early.pml's
set -u
cd "$(dirname "$0")" || exit 1
for tool in spin gcc timeout; do
    command -v "$tool" >/dev/null || {
        echo "the model needs $tool (on Debian or Ubuntu: apt-get install spin gcc coreutils)" >&2
        exit 1
    }
done
models=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# expected | macros | what it is about. Expected: ok; assert: an assertion fails; sleep: an end state in
# which somebody sleeps or runs for ever although there is work.
checks() {
    cat <<'LIST'
ok|WORKERS=3 TRANSACTIONS=3|three workers
ok|READER PROGRESS|progress under weak fairness
ok|READER TRANSACTIONS=4|two workers and a reader
ok|READER DEPTH=2|store buffers of two entries
ok|TRANSACTIONS=5|a slot of the ring used again
ok|READER SPECULATE|nobody runs an unclaimed head in place
ok|STOP|the job is stopped from outside
ok|HORIZON=2 TRANSACTIONS=4|horizon 2
ok|HORIZON=2 TRANSACTIONS=4 SPECULATE|horizon 2, no unclaimed head
ok|HORIZON=2 TRANSACTIONS=4 READER|horizon 2 and a reader
sleep|HORIZON=2 TRANSACTIONS=4 READER NO_WATCH_FINISHED|the finisher meets a reader and then runs away, like all others
sleep|READER NO_FENCE_FINISH NO_WATCH_FINISHED|FINISHED may become visible after the finisher looked at the turn
sleep|READER NO_FENCE_RELEASE NO_FENCE_WAKE NO_WATCH_FINISHED|the free turn may become visible after the last look at the head
ok|READER NO_FENCE_RELEASE|harmless alone: the fence in wake follows at once
ok|READER NO_FENCE_WAKE|harmless alone: the fence in release_turn precedes
sleep|READER NO_FENCE_PARK|the sleeper may become visible after its last look
sleep|READER NO_LAST_LOOK|no look between the announcement and the sleep
sleep|READER NO_MUTEX_IN_WAKE|a broadcast between the last look and the sleep
sleep|READER NO_WAKE|whoever releases the turn does not wake
sleep|READER READER_DOES_NOT_WAKE|the reader does not wake
sleep|READER HEAD_NOT_LOOKED_AT|the last look leaves out the head
assert|READER TURN_WITHOUT_CAS|look at the turn, then take it
sleep|READER CLAIM_WITHOUT_CAS|look at next_start, then move it: two run the same transaction
assert|READER RERUN_STAYS_FINISHED|a rerun lends the turn while its dropped run is still FINISHED
ok|READER NO_WAKE_IN_LEND|harmless: the lent head is IN_PLACE, so nobody who wakes could advance it
ok|READER WAKE_BEFORE_RELEASE|harmless: who released looks at the head itself
assert|READER ASSERT_NOBODY_SLEEPS_BESIDE_WORK|the price of no wake-up at each commit: a sleeper beside work until the turn is released
ok|READER ASSERT_NOBODY_SLEEPS_BESIDE_WORK WAKE_AT_COMMIT|with a wake-up at each commit it is not paid
ok|DOUBT|finished runs are looked at again while the head runs, or nobody has anything to do
ok|DOUBT READER|and a reader
ok|DOUBT STOP|the job is stopped from outside
ok|DOUBT HORIZON=2 TRANSACTIONS=4|horizon 2
assert|DOUBT DOUBTFUL_WITHOUT_CAS|a doubtful head is committed while somebody looks at it
sleep|DOUBT READER NO_FENCE_REVALIDATED NO_WATCH_FINISHED|a run found to hold may become visible after the look at the turn
sleep|DOUBT READER DOUBTFUL_HEAD_NOT_LOOKED_AT|a doubtful head waits for somebody to look at it
ok|EARLY|early results: three events come in any order
ok|EARLY HORIZON=0|nothing is claimed: whoever has the turn forms the head
ok|EARLY HORIZON=2|horizon 2
ok|EARLY WORKERS=3 EVENTS=2|three workers
ok|EARLY TENTATIVE|the first event is confirmed or withdrawn
ok|EARLY BARRIER POLL|the second event can only run in place, and a reader looks
ok|EARLY ROOM=1|one applied transaction fits into the region
ok|EARLY ROOM=2 BARRIER|two do, and one event can only run in place
ok|EARLY POLL|somebody waits for what is final
ok|EARLY EVENTS=2 POLL_EARLY RAISES|somebody waits for what is applied; events raise when they are final
ok|EARLY EVENTS=2 POLL_EARLY NO_FRONTIER|and gets all of it without a frontier
ok|EARLY EVENTS=2 TENTATIVE POLL_EARLY|what is withdrawn is not there any more for who waits
ok|EARLY EVENTS=2 POLL RAISES NO_MEMORY|one request of memory fails
assert|EARLY FINAL_BEFORE_FRONTIER|final, though an earlier event may come
assert|EARLY TENTATIVE TENTATIVE_IS_FINAL|final, though it may be withdrawn
assert|EARLY REVOKED_IS_FINAL|final passes applied: what was revoked becomes final
assert|EARLY LATE_NOT_REVOKED|a late event is applied behind what belongs after it
assert|EARLY TAKEN_BACK_IN_ORDER|the first one is taken back first
assert|EARLY REVOKED_IS_FORGOTTEN|what was revoked is not applied again
sleep|EARLY TENTATIVE DISSOLVED_IS_APPLIED|what is withdrawn while it is being applied stays
sleep|EARLY SETTLES_IN_SECRET|who ends a run does not work out what there is to do
sleep|EARLY FRONTIER_IN_SECRET|who moves the frontier does not
sleep|EARLY NO_WAKE_FOR_NEW_WORK|nor wakes anybody for it
sleep|EARLY NO_WAKE_AFTER_RELEASE|others sleep while whoever had the turn runs the head
sleep|EARLY RUNS_WITH_THE_TURN|the head runs with the turn held: what comes meanwhile waits for its end
assert|EARLY EVENTS=2 POLL_EARLY SETTLED_TOO_SOON|early results are told while the head runs
sleep|EARLY EVENTS=2 POLL_EARLY NO_FRONTIER SETTLED_NOT_TOLD|only what becomes final wakes who waits
assert|EARLY EVENTS=2 POLL RAISES NO_MEMORY FAILURE_FORGOTTEN|no memory takes the place of an event that has failed
LIST
}

# One line: what happened, and how many states were visited.
check() {
    local number=$1 expected=$2 macros=$3 about=$4 directory=$work/$1 mode="-DSAFETY" run="" got
    mkdir "$directory" && cd "$directory" || return
    local options=() model=$models/commit.pml
    [[ $macros == EARLY* ]] && model=$models/early.pml
    for macro in $macros; do options+=("-D$macro"); done
    [[ $macros == *PROGRESS* ]] && mode="-DNFAIR=3" run="-a -f"
    # shellcheck disable=SC2086
    if ! spin -a "${options[@]}" "$model" >log 2>&1 ||
        ! gcc -O2 -w $mode -DCOLLAPSE -DMEMLIM=3000 -o pan pan.c >>log 2>&1; then
        got="not built"
    else
        timeout 300 ./pan $run -m100000 -w22 >log 2>&1
        # A search that was cut short proves nothing.
        if grep -qE 'max search depth too small|out of memory|Search not completed' log &&
            grep -q 'errors: 0' log; then
            got=incomplete
        elif grep -q 'errors: 0' log; then
            got=ok
        elif grep -q 'assertion violated' log; then
            got=assert
        elif grep -q 'invalid end state' log; then
            got=sleep
        else
            got="other error"
        fi
    fi
    local states mark=as_expected
    states=$(sed -nE 's/^ *([0-9.e+]+) states, stored.*/\1/p' log)
    [[ $got == "$expected" ]] || mark=NOT_EXPECTED
    printf '%-12s %-7s %9s states  %s  (%s)\n' "$mark" "$got" "${states:-?}" "$macros" "$about" \
        >"$work/$(printf '%02d' "$number").line"
}

only=${1:-}
number=0
while IFS='|' read -r expected macros about; do
    [[ -n $only && $macros != "$only" ]] && continue
    number=$((number + 1))
    while [[ $(jobs -rp | wc -l) -ge 2 ]]; do wait -n; done
    check "$number" "$expected" "$macros" "$about" &
done < <(checks)
wait

cat "$work"/*.line
wrong=$(grep -L '^as_expected' "$work"/*.line | wc -l)
lines=$(find "$work" -name '*.line' | wc -l)
echo "$number checks, $((wrong + number - lines)) not as expected"
[[ $wrong -eq 0 && $lines -eq $number && $number -gt 0 ]]
