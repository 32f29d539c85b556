/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rule 14 (and 9): the end of a peer, and one outcome for each call.
 *
 * A calls B twice and waits. B answers each call, directly or through the
 * daemon, or not at all, sends a signal, and with -DKILL dies at any step; its
 * sockets hang up afterwards, in any order. With -DHOSTILE it hangs up on the
 * daemon and goes on writing. A deadline passes at any moment, or never.
 *
 *   E1  each call has exactly one outcome: reply, reply-dead or timeout
 *   E2  what B sent before its end is delivered before its end is
 *   E3  nothing of B is delivered after its end
 *   E4  no call whose reply was sent in time is declared late
 */

#define NONE 0
#define SIGNAL 3
#define GONE 4

/* Outcomes. */
#define OPEN 0
#define REPLY 1
#define DEAD 2
#define TIMEOUT 3

#define BIT(m) (1 << (m))

chan calls = [2] of { byte };	/* lane A -> B */
chan direct = [3] of { byte };	/* lane B -> A */
chan to_d = [3] of { byte };	/* lane B -> daemon */
chan from_d = [5] of { byte };	/* lane daemon -> A, committed */

byte outcome[3];
byte got;		/* messages of B that A was delivered */
byte sent;		/* what B sent before its end */
byte over;		/* whose SEND is over */
byte in_time;		/* over when the deadline passed */
bool dead, hup_d, hup_a, expired;
bool cut;		/* A has taken up B's end */

active proctype b()
{
	byte m, next;

	{
end:
	do
	:: calls ? m ->
		if
		:: skip				/* no answer, or not now */
		:: atomic { direct ! m; over = over | BIT(m);
			sent = sent | (hup_d -> 0 : BIT(m)) }
		:: atomic { to_d ! m; sent = sent | (hup_d -> 0 : BIT(m)) }
		fi;
		m = 0
	:: next == 0 ->
		next = 1;
		if
		:: atomic { direct ! SIGNAL; sent = sent | (hup_d -> 0 : BIT(SIGNAL)) }
		:: atomic { to_d ! SIGNAL; sent = sent | (hup_d -> 0 : BIT(SIGNAL)) }
		fi
	od
	} unless { dead }
}

active proctype kernel()
{
	bool may_die, may_expire;

	if
	:: may_expire = 1
	:: skip
	fi;
#ifdef KILL
	may_die = 1;
#endif
end:
	do
	:: atomic { may_die -> dead = 1; may_die = 0 }
	:: atomic { dead && !hup_d -> hup_d = 1 }
	:: atomic { dead && !hup_a -> hup_a = 1 }
#ifdef HOSTILE
	:: atomic { !hup_d -> hup_d = 1 }
#endif
	:: atomic { may_expire -> may_expire = 0; expired = 1; in_time = over }
	od
}

active proctype daemon()
{
	byte m;
	bool ended;

end:
	do
	:: atomic { !ended && nempty(to_d) -> to_d ? m; from_d ! m; over = over | BIT(m); m = 0 }
#ifdef NO_DRAIN
	:: atomic { hup_d && !ended -> ended = 1; from_d ! GONE }
#else
	:: atomic { hup_d && !ended && empty(to_d) -> ended = 1; from_d ! GONE }
#endif
	od
}

/* ---- A ---- */

inline settle(c, how)
{
	if
	:: outcome[c] == OPEN ->
		assert(how != TIMEOUT || !(in_time & BIT(c)));	/* E4 */
		outcome[c] = how
	/* A reply that comes too late finds no slot; nothing else ends a call twice. */
	:: else -> assert(how == REPLY && outcome[c] == TIMEOUT)	/* E1 */
	fi
}

inline end_of_b()
{
	assert((sent & got) == sent);				/* E2 */
	if
	:: outcome[1] == OPEN -> settle(1, DEAD)
	:: else
	fi;
	if
	:: outcome[2] == OPEN -> settle(2, DEAD)
	:: else
	fi;
	cut = 1
}

inline deliver()
{
	if
	:: m == GONE -> end_of_b()
	:: else ->
		assert(!cut);					/* E3 */
		assert(!(got & BIT(m)));
		got = got | BIT(m);
		if
		:: m != SIGNAL -> settle(m, REPLY)
		:: else
		fi
	fi
}

#ifdef NO_CUT
#define COUNTS 1
#else
#define COUNTS (!cut)
#endif

inline deliver_all()
{
	atomic {
		do
		:: n_direct > 0 -> n_direct--; direct ? m; deliver()
		:: n_direct == 0 -> break
		od;
		do
		:: n_daemon > 0 -> n_daemon--; from_d ? m; deliver()
		:: n_daemon == 0 -> break
		od;
		m = 0
	}
}

/*
 * The daemon's lane first: if B's end is in it, B's lane is final by the time it
 * is looked at. (A look with T finds it out by the stamps, too; the scan of a
 * synchronous call has no T.)
 */
inline look()
{
#ifdef PEER_FIRST
	n_direct = (COUNTS -> len(direct) : 0);
	n_daemon = len(from_d);
#else
	n_daemon = len(from_d);
	n_direct = (COUNTS -> len(direct) : 0);
#endif
	deliver_all()
}

active proctype a()
{
	byte m, n_direct, n_daemon;

	calls ! 1;
	calls ! 2;
end:
	do
	:: nempty(from_d) || (COUNTS && nempty(direct)) -> look()
	:: expired && (outcome[1] == OPEN || outcome[2] == OPEN) ->
#ifndef NO_LAST_LOOK
		look();
#endif
		atomic {
			if
			:: outcome[1] == OPEN -> settle(1, TIMEOUT)
			:: else
			fi;
			if
			:: outcome[2] == OPEN -> settle(2, TIMEOUT)
			:: else
			fi
		}
#ifdef DEAD_AT_HANGUP
	/* The channel hangs up: look at the channel, and that is that. */
	:: hup_a && !cut ->
		n_direct = len(direct);
		deliver_all();
		atomic { end_of_b() }
#endif
	od
}

active proctype finale()
{
	timeout;
	assert(!(dead || expired) || (outcome[1] != OPEN && outcome[2] != OPEN))	/* E1 */
}
