/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rule 15: the hand-over when a reader stops reading, and the reader's death.
 *
 * A sender S sends the messages 1..NM to the owner of one name. R owns it and
 * is introduced to S; the daemon D gives the name to N as soon as R has said
 * BYEBYE or is gone. S mixes direct and relayed messages as it likes (rule 13
 * permitting). R takes messages, says BYEBYE up to twice, stops the lane alone
 * once (as rule 17 asks for) and, with -DKILL_R, is killed between any two
 * steps; with -DKILL_S so is S.
 *
 * Shared words go through store buffers: S's published cursor, R's consumer
 * cursor and R's state word. The default is x86-TSO (one queue per side);
 * -DWEAK gives R one queue per word, where only a release store keeps order.
 * A system call counts as a full fence only where the rule names one; a process
 * that dies leaves no store behind in its buffer before its sockets hang up.
 *
 * Properties, checked as assertions and as absence of deadlock:
 *   P1  every message is delivered exactly once, to R or to N
 *   P2  each receiver gets S's messages in the order S sent them
 *   P3  no message whose SEND was over comes back from a live reader
 *       (hence a live reader's closing breaks no causality)
 *   P4  S, D and R never wait for each other for ever
 */

#ifndef NM
#define NM 3
#endif
#ifndef BYES
#define BYES 1
#endif
#ifndef STOPS
#define STOPS 1
#endif

/* R's state word. */
#define OPEN 0
#define CLOSING 1
#define CLOSED 2

#define NONE 99

byte lane[NM + 1];	/* records of the lane S -> R, by cursor */
byte pub;		/* S's published cursor, as others see it */
byte cons, state;	/* R's page, as others see it */

chan buf_s = [NM] of { byte };
#ifdef WEAK
chan buf_cons = [4] of { byte };
chan buf_state = [4] of { byte };
#define R_DRAINED (empty(buf_cons) && empty(buf_state))
#define STORE_CONS(v) buf_cons ! v
#define STORE_STATE(v) buf_state ! v
#else
chan buf_r = [6] of { bit, byte };
#define R_DRAINED (empty(buf_r))
#define STORE_CONS(v) buf_r ! 0, v
#define STORE_STATE(v) buf_r ! 1, v
#endif

chan to_d = [NM] of { byte };	/* S's lane to the daemon */
chan back = [NM + 1] of { byte };	/* S's socket to the daemon: what came back, then 0 */
chan from_d = [1] of { bit };	/* the daemon's lane to S: the end of R */
chan relay = [NM] of { byte };	/* the daemon's lane to R */
chan cmd = [1] of { bit };	/* R's BYEBYE and its verdict */
chan verdict = [1] of { bit };

byte d_cursor;		/* the daemon's consumer cursor of to_d */
byte stamped;		/* the clock: stamps are message numbers */
bool r_dead, r_gone, hup_s, hup_d, s_dead, s_hup;
bool futex_wait;	/* S sleeps on R's state word */
bool rung;		/* R's doorbell at S */
bool unsettled;		/* S: the lane's closing outlasted the bound */
bool r_done;

/* What the properties speak about. */
byte last_r, last_n;
byte got_r, got_n;	/* sets of messages */
byte over;		/* messages whose SEND returned, no bound passed */
byte sent;

#define BIT(m) (1 << (m))

inline deliver_r(m)
{
	atomic {
		assert(!((got_r | got_n) & BIT(m)));	/* P1: not twice */
		assert(m > last_r);			/* P2 */
		last_r = m;
		got_r = got_r | BIT(m);
	}
}

inline deliver_n(m)
{
	atomic {
		assert(!((got_r | got_n) & BIT(m)));
		assert(m > last_n);
		last_n = m;
		got_n = got_n | BIT(m);
	}
}

/* Memory, and the kernel that closes a dead process's sockets in any order. */
active proctype kernel()
{
	bool may_kill_r, may_kill_s;

#ifdef KILL_R
	if
	:: may_kill_r = 1
	:: skip
	fi;
#endif
#ifdef KILL_S
	if
	:: may_kill_s = 1
	:: skip
	fi;
#endif
end:
	do
	:: atomic { nempty(buf_s) -> buf_s ? pub }
#ifdef WEAK
	:: atomic { nempty(buf_cons) -> buf_cons ? cons }
#ifdef NO_RELEASE
	:: atomic { nempty(buf_state) -> buf_state ? state }
#else
	:: atomic { nempty(buf_state) && empty(buf_cons) -> buf_state ? state }
#endif
#else
	:: atomic {
		nempty(buf_r) ->
		if
		:: buf_r ? [0, _] -> buf_r ? 0, cons
		:: else -> buf_r ? 1, state
		fi
	   }
#endif
	:: atomic { may_kill_r && !r_done -> r_dead = 1; may_kill_r = 0 }
	:: atomic { (r_dead || r_done) && R_DRAINED && !hup_s -> hup_s = 1 }
	:: atomic { (r_dead || r_done) && R_DRAINED && !hup_d -> hup_d = 1 }
	:: atomic { may_kill_s -> s_dead = 1; may_kill_s = 0; futex_wait = 0 }
	:: atomic { s_dead && empty(buf_s) && !s_hup -> s_hup = 1 }
	od
}

/* ---- reader ---- */

byte r_cursor;		/* private master of cons */
byte r_limit;		/* snapshot of pub */
byte r_count;		/* snapshot of the daemon's lane */
byte r_clock, r_head, r_relay;
byte byes, stops;
bool stopped;		/* R reads the direct lane no more */
bit r_verdict;

#ifdef NO_FENCE_R
#define FENCE_R skip
#else
#define FENCE_R R_DRAINED
#endif

/* Delivers, oldest first, what the snapshot holds and is stamped by r_clock. */
inline take_up()
{
	do
	:: atomic {
		r_head = (r_cursor < r_limit -> lane[r_cursor + 1] : NONE);
		r_relay = NONE;
		if
		:: r_count > 0 -> relay ? <r_relay>
		:: r_count == 0
		fi
	   }
	   if
	   :: r_head < r_relay && r_head <= r_clock ->
#ifdef APPLICATION_FIRST
		deliver_r(r_head);
		r_cursor = r_cursor + 1;
		STORE_CONS(r_cursor)
#else
		atomic {
			r_cursor = r_cursor + 1;
			STORE_CONS(r_cursor);
			deliver_r(r_head)
		}
#endif
	   :: r_relay < r_head && r_relay <= r_clock ->
		atomic {
			relay ? r_relay;
			r_count = r_count - 1;
			deliver_r(r_relay)
		}
	   :: else -> break
	   fi
	od;
	atomic { r_limit = 0; r_count = 0; r_head = 0; r_relay = 0; r_clock = 0 }
}

inline wake_sender()
{
	R_DRAINED;		/* a system call */
	futex_wait = 0
}

inline end_lane()
{
	STORE_CONS(r_cursor);
	STORE_STATE(CLOSED);
	wake_sender();
	rung = 1;
	stopped = 1
}

inline take_back()
{
	STORE_STATE(OPEN);
#ifndef SILENT_TAKE_BACK
	wake_sender()
#endif
}

active proctype reader()
{
	{
	if
	:: byes = 0
	:: byes = BYES
	fi;
	if
	:: stops = 0
	:: stops = STOPS
	fi;
end:
	do
	:: atomic {
		(!stopped && pub > r_cursor) || nempty(relay) ->
		r_clock = stamped
	   }
	   r_count = len(relay);
	   if
	   :: !stopped -> r_limit = pub
	   :: else
	   fi;
	   take_up()

	/* Stops this lane alone and lives on. */
	:: !stopped && stops ->
		stops--;
		STORE_STATE(CLOSING);
#ifndef NO_LOOK
		FENCE_R;
		r_limit = pub;
		atomic { r_clock = stamped; r_count = len(relay) }
		take_up();
#endif
		end_lane()

	/* BYEBYE */
	:: byes ->
		byes--;
		if
		:: !stopped -> STORE_STATE(CLOSING)
		:: else
		fi;
#ifndef NO_LOOK
		FENCE_R;
#endif
		if
#ifndef NO_LOOK
		:: atomic { len(relay) > 0 || (!stopped && pub > r_cursor) ->
			r_verdict = 1 }
#endif
		:: else ->
			cmd ! 1;
			verdict ? r_verdict
		fi;
		if
		:: r_verdict ->
			r_verdict = 0;
			if
			:: !stopped -> take_back()
			:: else
			fi
		:: else ->
			if
			:: !stopped -> end_lane()
			:: else
			fi;
			r_done = 1;
			break
		fi
	od
	} unless { r_dead }
}

/* ---- daemon ---- */

byte held;		/* what lay in the daemon's lane to the dead R, and what came back */
bool frozen;
byte d_msg;

inline route(m)
{
	if
	:: r_gone -> deliver_n(m)
	:: else -> relay ! m
	fi
}

inline route_held()
{
	d_msg = 1;
	do
	:: d_msg > NM -> break
	:: d_msg <= NM && (held & BIT(d_msg)) -> deliver_n(d_msg); d_msg++
	:: else -> d_msg++
	od;
	d_msg = 0;
	held = 0;
	frozen = 0
}

#ifdef NO_FREEZE
#define MAY_TAKE 1
#else
#define MAY_TAKE (!frozen)
#endif

active proctype daemon()
{
	bool ended = 0;

end:
	do
	/* A round: take one request, deliver, advance the cursor. */
	:: atomic {
		nempty(to_d) && MAY_TAKE ->
		to_d ? d_msg;
		route(d_msg);
		d_msg = 0
	   }
	   d_cursor++

	/* BYEBYE succeeds only when R has consumed all that was relayed to it. */
	:: atomic {
		nempty(cmd) && !ended ->
		cmd ? _;
		if
		:: len(relay) > 0 -> verdict ! 1
		:: else -> r_gone = 1; verdict ! 0
		fi
	   }

	/* The end of R. */
	:: atomic {
		hup_d && !ended ->
		ended = 1;
		r_gone = 1;
		do
		:: len(relay) > 0 ->
			relay ? d_msg;
#if defined(AS_DESIGNED) || defined(REROUTE_AT_ONCE)
			deliver_n(d_msg)
#else
			held = held | BIT(d_msg)
#endif
		:: else -> break
		od;
		d_msg = 0;
#ifndef AS_DESIGNED
		frozen = !s_hup;
		if
		:: s_hup -> route_held()
		:: else
		fi;
#endif
		from_d ! 1
	   }

	/* What the sender gives back, until it says that this is all. */
	:: atomic {
		nempty(back) ->
		back ? d_msg;
		if
		:: d_msg -> held = held | BIT(d_msg)
		:: else -> route_held()
		fi;
		d_msg = 0
	   }

	/* The end of S: its answer will not come. */
	:: atomic { s_hup && frozen && empty(back) -> route_held() }
	od
}

/* ---- sender ---- */

byte s_pub;		/* private master of pub */
byte s_relayed;		/* records sent through the daemon */
byte s_final;		/* R's final cursor */
byte s_state, s_msg;
bool lane_over, s_ended;

#ifdef NO_FENCE_S
#define FENCE_S skip
#else
#define FENCE_S empty(buf_s)
#endif

/* After closed: everything beyond R's cursor, again, through the daemon. */
inline settle_closed()
{
	atomic {
		s_state = 0;
		lane_over = 1;
		unsettled = 0;
#ifndef STALE_CURSOR
		s_final = cons;
#endif
	}
	do
	:: atomic {
		s_final < s_pub ->
		s_final++;
		assert(!(over & BIT(lane[s_final])));	/* P3 */
		to_d ! lane[s_final];
		s_relayed++
	   }
	:: else -> break
	od;
	s_final = 0
}

/* After R's death: everything beyond R's cursor, back to the daemon. */
inline settle_dead()
{
#ifdef AS_DESIGNED
	atomic { hup_s -> s_final = (lane_over -> s_pub : cons) };
	do
	:: atomic {
		s_final < s_pub ->
		s_final++;
		to_d ! lane[s_final];
		s_relayed++
	   }
	:: else -> break
	od;
	atomic { lane_over = 1; unsettled = 0; s_ended = 1; s_final = 0; s_state = 0 }
#else
	from_d ? _;
	s_final = (lane_over -> s_pub : cons);
	do
	:: atomic {
		s_final < s_pub ->
		s_final++;
		back ! lane[s_final]
	   }
	:: else -> break
	od;
	back ! 0;
	atomic { lane_over = 1; unsettled = 0; s_ended = 1; s_final = 0; s_state = 0 }
#endif
}

#ifdef AS_DESIGNED
#define R_ENDED (hup_s && !s_ended)
#else
#define R_ENDED (nempty(from_d) && !s_ended)
#endif

/*
 * Waits while R's state word reads closing: FUTEX_WAIT compares and goes to
 * sleep in one step; it wakes by R's FUTEX_WAKE, or in slices sees the hang-up
 * and then waits for the daemon's word that R has ended.
 */
inline await_closed()
{
	do
	:: atomic { state == CLOSING && !hup_s -> futex_wait = 1 }
	   if
	   :: !futex_wait
	   :: hup_s -> futex_wait = 0
#ifdef BOUND
	   :: atomic { futex_wait -> futex_wait = 0; unsettled = 1; break }
#endif
	   fi
	:: atomic { state == CLOSED -> s_state = CLOSED; break }
	:: atomic { state == OPEN && !hup_s -> s_state = OPEN; break }
	:: atomic { hup_s && state != CLOSED -> s_state = CLOSING; break }
	od
}

inline send_direct()
{
	atomic {
		stamped = sent;
		s_pub++;
		lane[s_pub] = sent
	}
	buf_s ! s_pub;
	FENCE_S;
#ifdef STALE_CURSOR
	s_final = cons;
#endif
	s_state = state;
	if
	:: s_state == CLOSING -> await_closed()
	:: else
	fi;
	if
	:: unsettled -> skip
	:: s_state == OPEN -> atomic { over = over | BIT(sent) }
	:: s_state == CLOSED -> settle_closed()
	:: else -> settle_dead()
	fi;
	s_state = 0
}

/*
 * While a closing outlasts the bound the lane counts as full: nothing goes to
 * that destination, on no path.
 */
#ifdef RELAY_AT_BOUND
#define MAY_SEND (sent < NM)
#else
#define MAY_SEND (sent < NM && !unsettled)
#endif

active proctype sender()
{
	{
end:
	do
	:: MAY_SEND && !lane_over && !unsettled && d_cursor == s_relayed ->
		sent++;
		send_direct()
#ifdef DIRECT_ONLY
	:: MAY_SEND && lane_over ->
#else
	:: MAY_SEND ->
#endif
		atomic {
			sent++;
			stamped = sent;
			to_d ! sent;
			s_relayed++
		}
#ifdef RESEND_AT_BOUND
	:: unsettled && !lane_over -> settle_closed()
#endif
	:: R_ENDED -> settle_dead()
	/* The doorbell of closed; there is one per lane. */
	:: atomic { rung && !lane_over && state == CLOSED ->
#ifdef STALE_CURSOR
		s_final = cons
#else
		skip
#endif
	   }
	   settle_closed()
	/* A closing taken back: the message is in the lane of a live reader. */
	:: atomic { unsettled && state == OPEN -> unsettled = 0 }
	od
	} unless { s_dead }
}

/* When nothing can move any more. */
active proctype finale()
{
	timeout;
	assert(!futex_wait && !frozen);
	assert(s_dead || (sent == NM && !unsettled));
	assert(s_dead || (got_r | got_n) == BIT(NM + 1) - 2)
}
