/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rules 6, 7 and 8: doorbells, futex waits, waits for space.
 *
 * Two writers each publish a few messages in a lane of their own to one reader.
 * The ring holds CAP records, so that writers wait for space. The reader is a
 * program that polls its descriptor and takes one message each time, that now
 * and then receives without having polled, and that now and then makes a
 * synchronous call: it sleeps on the futex words, passes over what is not its
 * reply, and after a timeout sleeps in ppoll. With -DDAEMON lane 1 is the
 * daemon's: its records count only when they are committed. With -DALARM the call
 * sleeps on one word for both lanes, which the writers count up (lane/alarm.h);
 * with -DSCRIBBLE one of those who may write it puts an old value back.
 *
 * Store buffers as in closing.pml: by default x86-TSO, one queue per process;
 * with -DWEAK one queue per word, ordered only by release stores.
 *
 * Properties:
 *   W1  every message is taken, whoever sleeps where: no lost wake-up (rules 6, 7),
 *       none for the program that takes one message per poll (rule 8)
 *   W2  every writer gets its space
 *   W3  no run goes on for ever: a descriptor that stays readable while there is
 *       nothing to take is a cycle (checked as absence of non-progress cycles)
 *   W4  what is taken is the record that was written (barriers B1, B2)
 */

#ifndef N0
#define N0 2
#endif
#ifndef N1
#define N1 1
#endif
#define CAP 1
#ifndef POLLED
#define POLLED 1	/* receptions without a poll */
#endif
#ifndef CALLS
#define CALLS 1
#endif

/* state and space: mode and number */
#define POLLING 0
#define FUTEX 1
#define ARMED(n) (2 + (n))
#define IS_ARMED(s) ((s) >= 2 && (s) < 100)
#define ASLEEP(n) (100 + (n))	/* on the alarm */
#define IS_ASLEEP(s) ((s) >= 100)

/* Shared words, as others see them. */
byte record[2];		/* one slot per lane */
byte pub[2], commit, bell[2];	/* the writer's; commit stands in the daemon's page */
byte space[2], want[2];
byte cons[2], state[2];	/* the reader's */
byte alarm_word;		/* everybody's */

/* Words of the store buffers. */
mtype = { RECORD, PUB, COMMIT, BELL, SPACE, WANT };

#ifdef WEAK
/* per word; the queue of a release store waits for that of the plain ones */
chan w_record[2] = [2] of { byte };
chan w_pub[2] = [2] of { byte };
chan w_other[2] = [3] of { mtype, byte };
#define STORE(l, word, v) w_other[l] ! word, v
#define STORE_RECORD(l, v) w_record[l] ! v
#define STORE_PUB(l, v) w_pub[l] ! v
#define W_FENCE(l) (empty(w_record[l]) && empty(w_pub[l]) && empty(w_other[l]))
#else
chan w_buf[2] = [6] of { mtype, byte };
#define STORE(l, word, v) w_buf[l] ! word, v
#define STORE_RECORD(l, v) w_buf[l] ! RECORD, v
#define STORE_PUB(l, v) w_buf[l] ! PUB, v
#define W_FENCE(l) (empty(w_buf[l]))
#endif
chan r_buf = [6] of { bit, bit, byte };	/* lane, is state, value */
#define STORE_CONS(l, v) r_buf ! l, 0, v
#define STORE_STATE(l, v) r_buf ! l, 1, v
#define R_FENCE (empty(r_buf))

/* The kernel. */
bool bells[2];		/* doorbells in the reader's sockets: room for one each */
bool space_bell[2];	/* and in the writers' */
bool efd;		/* the reader's eventfd */
bool futex[2];		/* the reader sleeps on bell[l]; futex[0]: on the alarm */

byte sent[2], taken[2];

#ifdef DAEMON
#define IS_DAEMON(l) ((l) == 1)
#define REPLY 1			/* the lane by which a call's reply comes */
#define OTHER 0
#define N_REPLY N1
#else
#define IS_DAEMON(l) 0
#define REPLY 0
#define OTHER 1
#define N_REPLY N0
#endif

#define READABLE (bells[0] || bells[1] || efd)

inline apply(l, word, v)
{
	if
	:: word == RECORD -> record[l] = v
	:: word == PUB && !IS_DAEMON(l) -> pub[l] = v; bell[l] = v	/* one word, in effect */
	:: word == PUB && IS_DAEMON(l) -> pub[l] = v
	:: word == COMMIT -> commit = v
	:: word == BELL -> bell[l] = v
	:: word == SPACE -> space[l] = v
	:: word == WANT -> want[l] = v
	fi
}

active proctype memory()
{
	mtype word;
	byte v;
	bit l, s;

end:
	do
#ifdef WEAK
	:: atomic { nempty(w_record[0]) -> w_record[0] ? v; record[0] = v; v = 0 }
	:: atomic { nempty(w_record[1]) -> w_record[1] ? v; record[1] = v; v = 0 }
#ifdef NO_RELEASE
	:: atomic { nempty(w_pub[0]) -> w_pub[0] ? v; apply(0, PUB, v); v = 0 }
#else
	:: atomic { nempty(w_pub[0]) && empty(w_record[0]) -> w_pub[0] ? v; apply(0, PUB, v); v = 0 }
#endif
	:: atomic { nempty(w_pub[1]) && empty(w_record[1]) -> w_pub[1] ? v; apply(1, PUB, v); v = 0 }
	:: atomic { nempty(w_other[0]) && empty(w_pub[0]) ->
		w_other[0] ? word, v; apply(0, word, v); v = 0; word = 0 }
	:: atomic { nempty(w_other[1]) && empty(w_pub[1]) ->
		w_other[1] ? word, v; apply(1, word, v); v = 0; word = 0 }
#else
	:: atomic { nempty(w_buf[0]) -> w_buf[0] ? word, v; apply(0, word, v); v = 0; word = 0 }
	:: atomic { nempty(w_buf[1]) -> w_buf[1] ? word, v; apply(1, word, v); v = 0; word = 0 }
#endif
	:: atomic { nempty(r_buf) ->
		r_buf ? l, s, v;
		if
		:: s -> state[l] = v
		:: else -> cons[l] = v
		fi;
		l = 0; s = 0; v = 0
	   }
	od
}

/* ---- writers ---- */

#ifdef NO_FENCE_PUBLISH
#define FENCE_PUBLISH(l) true
#else
#define FENCE_PUBLISH(l) W_FENCE(l)
#endif

/* A read-modify-write empties the store buffer. */
#ifdef NO_COUNT
#define COUNT_UP(l) W_FENCE(l)
#else
#define COUNT_UP(l) W_FENCE(l) -> alarm_word++
#endif

#ifdef NO_FENCE_WANT
#define FENCE_WANT(l) skip
#else
#define FENCE_WANT(l) W_FENCE(l)
#endif

/*
 * Stores into the own buffer and private steps are joined with the shared step
 * before them: nobody could see a difference.
 */
proctype writer(bit me; byte n)
{
	byte seen;		/* the reader's state */
	byte rung = 0, number = 0;

end:
	do
	:: atomic { sent[me] < n && sent[me] - cons[me] == CAP ->
		/* Rule 7 with roles swapped: drain, ask with a new number, fence, look. */
		space_bell[me] = 0;
		number++;
		STORE(me, WANT, sent[me] + 1 - CAP);
		STORE(me, SPACE, ARMED(number))
	   }
	   FENCE_WANT(me);
	   if
	   :: sent[me] - cons[me] == CAP ->
		space_bell[me]			/* ppoll; a hang-up would end it too */
	   :: else
	   fi
	:: atomic { sent[me] < n && sent[me] - cons[me] < CAP ->
		sent[me]++;
		STORE_RECORD(me, sent[me]);
		STORE_PUB(me, sent[me]);
		if
#ifdef BELL_EARLY
		:: IS_DAEMON(me) -> STORE(me, BELL, sent[me]); STORE(me, COMMIT, sent[me])
#else
		:: IS_DAEMON(me) -> STORE(me, COMMIT, sent[me]); STORE(me, BELL, sent[me])
#endif
		:: else
		fi
	   }
	   atomic {
		FENCE_PUBLISH(me) ->
		seen = state[me]
	   }
	   if
	   :: atomic { seen == FUTEX && W_FENCE(me) -> futex[me] = 0 }
	   :: atomic { IS_ASLEEP(seen) && seen != rung ->
		COUNT_UP(me);
		rung = seen }
		futex[0] = 0
	   /* EAGAIN counts as rung. */
	   :: atomic { IS_ARMED(seen) && seen != rung && W_FENCE(me) ->
		rung = seen;
		bells[me] = 1 }
	   :: atomic { seen == POLLING || seen == rung }
	   fi;
	   seen = 0
	od
}

/* ---- reader ---- */

byte mode[2];		/* master of state[] */
byte number;		/* the last armed number */
byte found;		/* lane of the next record, or NONE */
byte p, c;
byte asked[2];		/* space numbers that have been rung */
byte seen_bell[2], seen_other;
byte polled_budget, calls_budget;
bool may_time_out;
#define NONE 9

/* Is there a record in lane l? Sets found if there is. */
inline peek(l)
{
	atomic {
		c = 99;
		if
		:: IS_DAEMON(l) -> c = commit
		:: else
		fi
	}
	atomic {
		p = pub[l];
		if
		:: p > taken[l] && c > taken[l] -> found = l
		:: else
		fi;
		p = 0;
		c = 0
	}
}

inline look()
{
	found = NONE;
	peek(1);
	peek(0)
}

#ifdef NO_FENCE_CONSUME
#define FENCE_CONSUME skip
#else
#define FENCE_CONSUME R_FENCE
#endif

#ifdef CURSOR_FIRST
#define COPY_AND_STORE(l) \
	STORE_CONS(l, taken[l] + 1); \
	assert(record[l] == taken[l] + 1)	/* W4 */
#else
#define COPY_AND_STORE(l) \
	assert(record[l] == taken[l] + 1);	/* W4 */ \
	STORE_CONS(l, taken[l] + 1)
#endif

inline take(l)
{
	COPY_AND_STORE(l);
	taken[l]++;
	FENCE_CONSUME;
	atomic {
		if
		:: IS_ARMED(space[l]) && space[l] != asked[l] && taken[l] >= want[l] ->
			asked[l] = space[l]
		:: else -> p = 1
		fi
	}
	if
	:: atomic { !p && R_FENCE -> space_bell[l] = 1 }
	:: p -> p = 0
	fi
}

#ifdef SAME_NUMBER
#define NEXT_NUMBER number = 1
#else
#define NEXT_NUMBER number = number + 1
#endif

inline poll_lane(l)
{
	if
	:: mode[l] != POLLING -> mode[l] = POLLING; STORE_STATE(l, POLLING)
	:: else
	fi
}

inline arm_all()
{
	NEXT_NUMBER;
	mode[0] = ARMED(number);
	STORE_STATE(0, ARMED(number));
	mode[1] = ARMED(number);
	STORE_STATE(1, ARMED(number))
}

#ifdef NO_FENCE_ARM
#define FENCE_ARM skip
#else
#define FENCE_ARM R_FENCE
#endif

#ifdef NO_FENCE_FUTEX
#define FENCE_FUTEX skip
#else
#define FENCE_FUTEX R_FENCE
#endif

/* Rule 7. */
inline arm_and_look()
{
#if defined(LOOK_FIRST)
	look();
	if
	:: found == NONE -> bells[0] = 0; bells[1] = 0; efd = 0; arm_all(); FENCE_ARM
	:: else
	fi
#elif defined(DRAIN_LAST)
	arm_all();
	FENCE_ARM;
	look();
	if
	:: found == NONE -> bells[0] = 0; bells[1] = 0; efd = 0
	:: else
	fi
#else
#ifndef NO_DRAIN
	bells[0] = 0;
	atomic { bells[1] = 0; efd = 0 }
#endif
	atomic { arm_all() }
	FENCE_ARM;
	look()
#endif
}

/* One reception: a record, or EAGAIN after a look with every lane armed. */
inline receive()
{
	found = NONE;
#ifdef DRAIN_ON_WAKE
	bells[0] = 0;
	bells[1] = 0;
	efd = 0;
#endif
	/* Lanes that are polled or whose doorbell has rung. */
	if
	:: mode[0] == POLLING || bells[0] -> peek(0)
	:: else
	fi;
	if
	:: found == NONE && (mode[1] == POLLING || bells[1]) -> peek(1)
	:: else
	fi;
	if
	:: found == NONE -> arm_and_look()
	:: else
	fi;
	if
	:: found != NONE ->
		poll_lane(found);
#ifndef NO_EVENTFD
#ifndef DRAIN_ON_WAKE
		/* The first doorbell of a busy period stays; else the library's own. */
		if
		:: !bells[found] -> efd = 1
		:: else
		fi;
#endif
#endif
		take(found)
	:: else
	fi;
	found = NONE
}

/* Is what a synchronous caller waits for there, or anything it has not passed over? */
inline scan()
{
	found = NONE;
	peek(OTHER);
	if
	:: found == OTHER && seen_other == taken[OTHER] + 1 -> found = NONE
	:: else
	fi;
	peek(REPLY)
}

/* The look that decides, and the sleep, which ends with a wake or a timeout. */
#ifdef ALARM
#define LOAD_ALARM seen_bell[0] = alarm_word

/* A call may pass over a record, and have used up its number, without a second look. */
inline sleep_on_words()
{
#ifndef ALARM_LATE
	LOAD_ALARM;
#endif
	atomic {
		NEXT_NUMBER;
		mode[0] = ASLEEP(number);
		mode[1] = ASLEEP(number);
		STORE_STATE(0, ASLEEP(number));
		STORE_STATE(1, ASLEEP(number))
	}
	FENCE_FUTEX;
	scan();
	if
	:: atomic { found == OTHER -> seen_other = taken[OTHER] + 1; found = NONE }
	:: else
	fi;
#ifdef ALARM_LATE
	LOAD_ALARM;
#endif
	if
	:: found == NONE ->
		atomic {
			if
			:: alarm_word == seen_bell[0] -> futex[0] = 1
			:: else
			fi
		}
		if
		:: !futex[0]
		:: may_time_out -> skip
		fi;
		futex[0] = 0
	:: else
	fi;
	found = NONE
}
#else
inline sleep_on_words()
{
	atomic {
		mode[0] = FUTEX;
		mode[1] = FUTEX;
		STORE_STATE(0, FUTEX);
		STORE_STATE(1, FUTEX)
	}
	FENCE_FUTEX;
	seen_bell[0] = bell[0];
	seen_bell[1] = bell[1];
	scan();
	if
	:: found == NONE ->
		/* futex_waitv compares the words, then sleeps. */
		atomic {
			if
			:: bell[0] == seen_bell[0] && bell[1] == seen_bell[1] ->
				futex[0] = 1;
				futex[1] = 1
			:: else
			fi
		}
		if
		:: !futex[0] || !futex[1]
		:: may_time_out -> skip
		fi;
		atomic { futex[0] = 0; futex[1] = 0 }
	:: found != NONE
	fi
}
#endif

/* The reply is the next record of its lane; those of the other stay where they are. */
inline call()
{
	atomic { poll_lane(0); poll_lane(1) }
	do
	:: skip ->
		sleep_on_words();
		atomic { poll_lane(0); poll_lane(1) }
		scan();
		if
		:: found == NONE && may_time_out ->
			bells[0] = 0;
			atomic { bells[1] = 0; arm_all() }
			FENCE_ARM;
			scan();
			if
			:: found == NONE -> (bells[0] || bells[1])
			:: else
			fi;
			atomic { poll_lane(0); poll_lane(1) }
			scan()
		:: else
		fi;
		if
		:: found == REPLY -> break
		:: found == OTHER -> seen_other = taken[OTHER] + 1
		:: found == NONE
		fi
	od;
	take(REPLY);
	atomic { found = NONE; seen_other = 0; seen_bell[0] = 0; seen_bell[1] = 0 }
#ifndef NO_TOUCH
	efd = 1
#endif
}

active proctype reader()
{
	atomic {
		number = 1;
		mode[0] = ARMED(1);
		mode[1] = ARMED(1);
		state[0] = ARMED(1);
		state[1] = ARMED(1)
	}
	run writer(0, N0);
	run writer(1, N1);
	polled_budget = POLLED;
	calls_budget = CALLS;
	if
	:: may_time_out = 1
#ifndef TIMEOUTS
	:: skip
#endif
	fi;
end:
	do
	:: READABLE -> receive()
	:: polled_budget -> polled_budget--; receive()
	:: calls_budget && taken[REPLY] < N_REPLY -> calls_budget--; call()
	:: calls_budget -> calls_budget--
	od
}

#ifdef SCRIBBLE
active proctype scribbler()
{
	byte old;

	old = alarm_word;
	alarm_word = old
}
#endif

active proctype finale()
{
	timeout;
	assert(sent[0] == N0 && sent[1] == N1);		/* W2 */
	assert(taken[0] == N0 && taken[1] == N1)	/* W1 */
}
