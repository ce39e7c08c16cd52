/* Protocol `eager`, the dissertation's: conflicts are found at the access (Brito 2010, 2.2 and 4.2).
 *
 * Two transactions access one position of memory, tx1 before tx2 in the order of events. Table 4.1 of
 * the dissertation says what that is to each of them, and here is where it comes about; eager.c unless
 * another file is named. Position means all words of one record.
 *
 *     case  contention                           tx1         tx2
 *     1     tx1 reads before tx2 has read        none        none
 *     2     tx1 reads after tx2 has read         none        none
 *     3     tx1 reads before tx2 has written     none        none
 *     4     tx1 reads after tx2 has written      none        none
 *     5     tx1 writes before tx2 has read       none        aborts on read
 *     6     tx1 writes after tx2 has read        none        validation eventually fails
 *     7     tx1 writes before tx2 has written    none        aborts on write
 *     8     tx1 writes after tx2 has written     forces tx2  aborts on next operation
 *                                                to abort
 *
 *     1, 2  A read leaves no trace but in the reader's own log: read_words touches the record with a
 *           load only.
 *     3     The version that tx1 has logged is the record's. tx2 locks it, and does not change it:
 *           memory keeps the committed value until tx2 commits, which is after tx1. When tx1 validates,
 *           the version below the lock is still the one that it has read (validity_interval.c).
 *     4     read_words finds the lock of a later transaction. Memory has the committed value, and the
 *           version is in the entry of the lock's owner (ss_version_below, ownership_records.h).
 *     5     read_words finds the lock of an earlier transaction: SS_ABORT_LOCKED, and tx2 waits for tx1
 *           in the retry queue.
 *     6     tx1 locks the record, and at its commit gives it a new version. Either one tells tx2: when it
 *           extends its interval (SS_ABORT_INCONSISTENT_SNAPSHOT), or at the latest when it is validated
 *           as the head (SS_ABORT_CONFLICT).
 *     7     lock_record finds the lock of an earlier transaction: as case 5.
 *     8     lock_record finds the lock of a later transaction, takes it over, with the version, and dooms
 *           tx2 (forced_abort.c), which aborts at its next operation: SS_ABORT_STOLEN.
 *
 * tests/test_table_4_1.c goes through all of them, step by step. */
#ifndef SPECSTREAM_EAGER_H
#define SPECSTREAM_EAGER_H

#include "core/protocol.h"

extern const struct ss_protocol ss_protocol_eager;

#endif
