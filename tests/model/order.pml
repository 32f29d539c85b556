/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rules 10 to 13: causal order over any mixture of direct and relayed messages
 * and broadcasts.
 *
 * Three clients, a lane between any two of them, the daemon. Any client sends
 * any of the M messages at any time: directly, relayed, or as a broadcast. For
 * each message the model keeps the set of messages that its sender knew of when
 * it sent it: those it had sent or been delivered, and what those followed from.
 *
 *   O1  when a client is delivered a message, it has been delivered everything
 *       for it that the message follows from
 *   O2  every message is delivered (nothing is held back for ever)
 *
 * The delays are those between any two steps: reading the clock and taking up a
 * lane, stamping and publishing, the daemon's publication in one lane and in the
 * next, commit, advance of its cursors. What the store buffers do is checked in
 * wakeup.pml: SEND is over behind a full fence, so a published word is visible
 * before anything that its sender does next.
 */

#ifndef M
#define M 3
#endif
#define NONE 9
#define DAEMON 3
#define LATE 99

#define BIT(m) (1 << (m))

/* lane[4 * writer + reader]; 3 is the daemon */
chan lane[16] = [M] of { byte };
#define LANE(w, r) lane[4 * (w) + (r)]

#define NEXT ((me + 1) % 3)
#define AFTER ((me + 2) % 3)
#define OTHERS (7 - BIT(me))

byte now;		/* CLOCK_MONOTONIC: one tick for each stamp */
byte messages;		/* how many have been made */
byte stamp[M + 1], dest[M + 1], causes[M + 1];
byte known[3], got[3];

byte committed[3];	/* records of committed rounds in the daemon's lane to each client */
byte cursor[3];		/* the daemon's consumer cursor of each client's lane */

#ifdef NO_COMMIT
#define COUNTS len(LANE(DAEMON, me))
#else
#define COUNTS committed[me]
#endif

inline deliver(m)
{
	/* O1: of what m follows from, nothing for this client is still missing */
	b = 1;
	do
	:: b > M -> break
	:: else ->
		assert(!(causes[m] & BIT(b)) || !(dest[b] & BIT(me)) || (got[me] & BIT(b)));
		b++
	od;
	b = 0;
	assert(!(got[me] & BIT(m)));
	got[me] = got[me] | BIT(m);
	known[me] = known[me] | BIT(m) | causes[m]
}

/* The first record of a lane that this look may deliver, as lane and stamp. */
inline candidate(w, count)
{
	if
	:: count > 0 ->
		LANE(w, me) ? <m>;
		if
#ifdef ONE_PASS
		:: stamp[m] < best -> from = w; best = stamp[m]
#else
		:: stamp[m] < best && stamp[m] <= t -> from = w; best = stamp[m]
#endif
		:: else
		fi;
		m = 0
	:: else
	fi
}

inline deliver_from()
{
	LANE(from, me) ? m;
	n[from] = n[from] - 1;
	if
	:: from == DAEMON && committed[me] > 0 -> committed[me]--
	:: else
	fi;
	deliver(m);
	m = 0
}

/* Rule 10. */
inline look()
{
#ifndef CLOCK_LATE
	t = now;
#endif
	n[DAEMON] = COUNTS;
	n[NEXT] = len(LANE(NEXT, me));
#ifdef CLOCK_LATE
	n[AFTER] = len(LANE(AFTER, me));
	t = now;
#endif
	/* Delivering is private: nobody sees its steps. */
	atomic {
#ifndef CLOCK_LATE
		n[AFTER] = len(LANE(AFTER, me));
#endif
		do
		:: true ->
			from = NONE;
			best = LATE;
			candidate(DAEMON, n[DAEMON]);
			candidate(NEXT, n[NEXT]);
			candidate(AFTER, n[AFTER]);
			if
			:: from == NONE -> break
			:: else -> deliver_from()
			fi
		od;
		from = 0; t = 0; best = 0; n[0] = 0; n[1] = 0; n[2] = 0; n[3] = 0
	}
}

inline make()
{
	messages++;
	m = messages;
	causes[m] = known[me];
	known[me] = known[me] | BIT(m)
}

#ifdef NO_RULE_13
#define MAY_SEND_DIRECTLY 1
#else
#define MAY_SEND_DIRECTLY (cursor[me] == relayed)
#endif

#define IS_THERE(w) nempty(LANE(w, me))

/* The clients are alike: let the first message be client 0's, and not to 2 alone. */
#define MAY_SEND (messages < M && (messages > 0 || me == 0))

proctype client(byte me)
{
	byte n[4];		/* the snapshot */
	byte t, from, best, m, b, to;
	byte relayed;

end:
	do
	/* Directly: stamp, publish. */
	:: atomic {
		MAY_SEND && MAY_SEND_DIRECTLY ->
		make();
		if
		:: to = NEXT
		:: messages > 1 -> to = AFTER
		fi;
		dest[m] = BIT(to);
		now++;
		stamp[m] = now
	   }
	   atomic { LANE(me, to) ! m; m = 0; to = 0 }
	/* Relayed, to one or to all. */
	:: atomic {
		MAY_SEND ->
		make();
		if
		:: dest[m] = BIT(NEXT)
		:: messages > 1 -> dest[m] = BIT(AFTER)
		:: dest[m] = OTHERS
		fi;
		relayed++;
		LANE(me, DAEMON) ! m;
		m = 0
	   }
	:: COUNTS || IS_THERE(NEXT) || IS_THERE(AFTER) -> look()
	od
}

inline skip_others()
{
	do
	:: i < 3 && !(dest[m] & BIT(i)) -> i++
	:: else -> break
	od
}

/* Rule 12. */
active proctype daemon()
{
	byte taken[3];
	byte m, i;
	bool pending;		/* this round has published something */

end:
	do
	:: atomic {
		nempty(LANE(0, DAEMON)) || nempty(LANE(1, DAEMON)) || nempty(LANE(2, DAEMON)) ->
		if
		:: LANE(0, DAEMON) ? m -> taken[0]++
		:: LANE(1, DAEMON) ? m -> taken[1]++
		:: LANE(2, DAEMON) ? m -> taken[2]++
		fi;
		pending = 1;
		now++;
		stamp[m] = now;
		i = 0;
		skip_others()
	   }
#ifdef CURSOR_FIRST
	   atomic {
		cursor[0] = cursor[0] + taken[0];
		cursor[1] = cursor[1] + taken[1];
		cursor[2] = cursor[2] + taken[2];
		taken[0] = 0; taken[1] = 0; taken[2] = 0
	   }
#endif
	   do
	   :: atomic { i < 3 -> LANE(DAEMON, i) ! m; i++; skip_others() }
	   :: atomic { i == 3 -> i = 0; m = 0; break }
	   od
	:: pending ->
		atomic {
			pending = 0;
			committed[0] = len(LANE(DAEMON, 0));
			committed[1] = len(LANE(DAEMON, 1));
			committed[2] = len(LANE(DAEMON, 2))
		}
		atomic {
			cursor[0] = cursor[0] + taken[0];
			cursor[1] = cursor[1] + taken[1];
			cursor[2] = cursor[2] + taken[2];
			taken[0] = 0; taken[1] = 0; taken[2] = 0
		}
	od
}

active proctype finale()
{
	byte i = 1;

	timeout;
	atomic {
		do
		:: i > M -> break
		:: else ->
			assert((BIT(i) & (got[0] | got[1] | got[2])));	/* O2 */
			assert(!(dest[i] & BIT(0)) || (got[0] & BIT(i)));
			assert(!(dest[i] & BIT(1)) || (got[1] & BIT(i)));
			assert(!(dest[i] & BIT(2)) || (got[2] & BIT(i)));
			i++
		od
	}
}

init {
	atomic {
		run client(0);
		run client(1);
		run client(2)
	}
}
