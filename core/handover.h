/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CORE_HANDOVER_H
#define CORE_HANDOVER_H

/*
 * What moves when a name passes between an activator and another owner (spec §10.6).
 *
 * Invariants
 *
 *  1. All slots of calls made through the name, received ones included, now expect the
 *     new owner, whoever made the calls (defect 14 of §17.1).
 *  2. Queued messages addressed through the name move in order, charged to their senders
 *     at the new owner. Others stay.
 *  3. What does not fit is lost: counted at the new owner, and reported dead to who
 *     waits for an answer (the other half of defect 14).
 *  4. It happens before the NAME_CHANGE, with names held exclusively, so no message by
 *     that name comes in between.
 *
 * Locks: names exclusive; conn of both owners; of requesters whose call is lost, note.
 */

#include "deliver.h"

/**
 * core_hand_over() - move slots and messages of a name
 * @from:    owner up to now
 * @to:      owner from now on
 * @name_id: internal id of the name
 *
 * Cannot fail. A slice in @to is taken for each message, with the content copied by the
 * host; the host's object around the entry moves as it is.
 */
void core_hand_over(struct core_conn *from, struct core_conn *to, u64 name_id);

#endif
