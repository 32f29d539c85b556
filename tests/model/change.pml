/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rules 10, 12 and 13 where the daemon changes what clients go by: a new
 * introduction, and a name that moves to another owner.
 *
 * The daemon introduces A to C. A then sends 1 to C over the new lane and 2 to B,
 * and B, on 2, sends 3 to C. Meanwhile the daemon moves a name from B to C: it
 * stores the generation and tells B, and B tells A (message 4). A, before each
 * message to the name, compares the generation with that of its cached owner.
 *
 *   C1  C is delivered 1 before 3: the introduction is taken up in the same look
 *   C2  once A knows of the move, it sends nothing to the old owner directly
 */

#define NONE 9
#define LATE 99
#define INTRO 1
#define MOVED 2

chan d_to_a = [1] of { byte };
chan d_to_b = [1] of { byte };
chan d_to_c = [1] of { byte };
chan ab = [2] of { byte };
chan ba = [1] of { byte };
chan ac = [1] of { byte };
chan bc = [1] of { byte };

byte now, stamp[5];
byte generation;
bool intro_done, got_1, got_3;

active proctype introducer()
{
#ifdef TELL_SENDER_FIRST
	d_to_a ! INTRO;
	d_to_c ! INTRO;
#else
	d_to_c ! INTRO;		/* published and committed */
	d_to_a ! INTRO
#endif
}

active proctype registry()
{
#ifdef GENERATION_LATE
	d_to_b ! MOVED;		/* published and committed */
	generation = 1
#else
	generation = 1;
	d_to_b ! MOVED
#endif
}

active proctype a()
{
	byte seen;
	bool knows;

end:
	do
	:: d_to_a ? INTRO ->
		atomic { now++; stamp[1] = now }
		ac ! 1;
		atomic { now++; stamp[2] = now }
		ab ! 2
	:: ba ? 4 -> knows = 1
	/* A message to the name. */
	:: true ->
		seen = generation;
		if
		:: seen == 0 -> assert(!knows)	/* C2: directly, to the old owner */
		:: else
		fi;
		seen = 0;
		if
		:: knows -> break
		:: else
		fi
	od;
	/* What is left of A's script. */
end_2:
	d_to_a ? INTRO ->
	atomic { now++; stamp[1] = now }
	ac ! 1;
	atomic { now++; stamp[2] = now }
	ab ! 2
}

active proctype b()
{
end:
	do
	:: ab ? 2 ->
		atomic { now++; stamp[3] = now }
		bc ! 3
	:: d_to_b ? MOVED -> ba ! 4
	od
}

active proctype c()
{
	byte t;
	bit n_a, n_b;

end:
	do
	:: nempty(d_to_c) || nempty(bc) || (intro_done && nempty(ac)) ->
		t = now;
#ifdef INTRO_NEXT_LOOK
		n_a = (intro_done -> len(ac) : 0);
		if
		:: d_to_c ? INTRO -> intro_done = 1
		:: empty(d_to_c)
		fi;
#else
		if
		:: d_to_c ? INTRO -> intro_done = 1
		:: empty(d_to_c)
		fi;
		n_a = (intro_done -> len(ac) : 0);
#endif
		n_b = len(bc);
		atomic {
			if
			:: n_a && stamp[1] <= t -> ac ? 1; got_1 = 1
			:: else
			fi;
			if
			:: n_b && stamp[3] <= t -> bc ? 3; assert(got_1); got_3 = 1	/* C1 */
			:: else
			fi;
			n_a = 0;
			n_b = 0;
			t = 0
		}
	od
}

active proctype finale()
{
	timeout;
	assert(got_1 && got_3)
}
