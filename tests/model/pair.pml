/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rule 15: both sides of a channel closing at once, and the end of a channel.
 *
 * Two sides send K messages each to the other, one thread sending, one reading.
 * Each reading thread may say BYEBYE or stop its lane alone; with -DKILL side 1
 * is killed at any step. closing.pml has checked the shared words of one lane
 * under store buffers; here they are stored at once, and the questions are:
 *
 *   P1  every message of a side that has neither died nor ended is delivered:
 *       taken by the other side, or sent again through the daemon; not twice
 *   P2  a side never has to send again after the daemon has said goodbye to it
 *   P3  no deadlock, without anybody's bound running out
 */

#define K 2

#define OPEN 0
#define CLOSING 1
#define CLOSED 2

/* Lane i is written by side i and read by side 1 - i, which stores cons[i]. */
byte pub[2], cons[2];
byte reading[2];	/* side i's word, as the reader of lane 1 - i */
bool busy[2];		/* side i's section of rule 6 */
bool gone[2];		/* the daemon has accepted side i's BYEBYE */
bool over[2];		/* side i uses its lane no more and has sent again what came back */
bool ended[2];		/* side i's lane has its END record */
bool hup[2];		/* side i has closed its end of the socket, or is dead */
bool dropped[2];	/* side i has forgotten the channel */
bool dead;		/* side 1 */
byte again[2];		/* sent again through the daemon */
bool r_done[2];

#define peer (1 - me)

/* What lies beyond the final cursor goes through the daemon. */
inline settle()
{
	atomic {
		!over[me] ->
		over[me] = 1;
		if
		:: cons[me] < pub[me] ->
			assert(!gone[me] || dead);	/* P2 */
			again[me] = pub[me] - cons[me]
		:: else
		fi
	}
}

inline send_one()
{
	pub[me]++;
	if
	:: reading[peer] == CLOSING && !hup[peer] ->
		(reading[peer] != CLOSING || hup[peer])
	:: else
	fi;
	if
	:: reading[peer] == CLOSED || hup[peer] -> settle()
	:: else
	fi
}

proctype sender(bit me)
{
	{
end:
	do
	:: atomic { !busy[me] && pub[me] < K && !gone[me] && !over[me] && !ended[me] ->
		busy[me] = 1 }
	   send_one();
	   busy[me] = 0
	:: atomic { !busy[me] && !over[me] && !dropped[me] &&
			(reading[peer] == CLOSED || hup[peer]) ->
		busy[me] = 1 }
	   settle();
	   busy[me] = 0
	od
	} unless { dead && me == 1 }
}

inline enter()
{
	atomic { !busy[me] -> busy[me] = 1 }
}

inline take_one()
{
	atomic {
		assert(!over[peer]);	/* P1: what came back is not taken as well */
		cons[peer]++
	}
}

inline byebye()
{
#if !defined(LOCK_AFTER) && !defined(NO_LOCK)
	enter();
#endif
	reading[me] = CLOSING;
#ifdef LOCK_AFTER
	enter();
#endif
	if
	:: pub[peer] > cons[peer] && !over[peer] -> reading[me] = OPEN
	:: else ->
		gone[me] = 1;
		reading[me] = CLOSED
	fi;
#ifndef NO_LOCK
	busy[me] = 0
#endif
}

/* A lane is over for its writer: consumed to its end, or settled. */
#ifdef CLOSE_EARLY
#define LANE_OVER 1
#else
#define LANE_OVER (over[me] || cons[me] == pub[me])
#endif

proctype reader(bit me)
{
	byte limit;
	bool bye, stop;

	{
	if
	:: bye = 1
	:: stop = 1
	:: bye = 1; stop = 1
	:: skip
	fi;
end:
	do
	:: reading[me] == OPEN && pub[peer] > cons[peer] && !over[peer] -> take_one()
	:: bye && reading[me] == OPEN ->
		bye = 0;
		byebye()
	:: stop && reading[me] == OPEN ->
		stop = 0;
		reading[me] = CLOSING;
		limit = pub[peer];
		do
		:: cons[peer] < limit -> take_one()
		:: else -> break
		od;
		limit = 0;
		reading[me] = CLOSED
	/* A side that has ended, or that has stopped reading and ends its own lane. */
	:: reading[me] == CLOSED && !ended[me] ->
		enter();
		ended[me] = 1;
		busy[me] = 0
	:: atomic { ended[me] && !busy[me] && LANE_OVER && !dropped[me] ->
		dropped[me] = 1; hup[me] = 1; break }
	od;
	r_done[me] = 1
	} unless { dead && me == 1 }
}

active proctype killer()
{
#ifdef KILL
	if
	:: dead = 1; hup[1] = 1
	:: skip
	fi
#else
	skip
#endif
}

#define DELIVERED(i) (cons[i] + again[i] == pub[i])

active proctype finale()
{
	timeout;
	assert(!busy[0] && (dead || !busy[1]));			/* P3 */
	assert(DELIVERED(0) || (gone[0] && dead));		/* P1 */
	assert(DELIVERED(1) || dead)
}

init {
	atomic {
		run sender(0);
		run sender(1);
		run reader(0);
		run reader(1)
	}
}
