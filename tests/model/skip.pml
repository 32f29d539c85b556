/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rules 3 and 6: cursors that wrap, pads, and the word `skip` (lane/lane.h, memory layout).
 *
 * A writer puts records of one or two units into a ring of R units whose cursors wrap at W, and
 * goes back to the start of the ring by `skip` whenever it finds the ring empty and likes to. A
 * reader follows, gives back what it took now or later, and trusts nothing. W stands for 2^32: the
 * run is long enough for cursors to come by values again that `skip` has had before.
 *
 * Store buffers as in closing.pml: by default x86-TSO; with -DWEAK one queue per word, ordered only
 * by release stores.
 *
 * Properties:
 *   K1  what is taken is what was put, in order, once
 *   K2  an honest writer never breaks the format: the cursor is where the reader accepts it
 *   K3  all is taken: nobody waits for room that is there, or for a record that was published
 */

#define R 4
#define W 12
#define USABLE (R - 1)	/* the rest is kept for END */
#ifndef N
#define N 7
#endif
#define PAD 99

#define MOD(x) ((x) % W)
#define DIFF(a, b) (((a) + W - (b)) % W)
#define AT(c) ((c) % R)

/* Shared words, as others see them. */
byte rec[R], units[R];	/* at the first unit of a record */
byte pub, jump;		/* the writer's; jump is skip, a word of the language */
byte cons;		/* the reader's */

mtype = { RECORD, SKIP, PUB };

#ifdef WEAK
chan w_rec = [3] of { byte, byte, byte };
chan w_skip = [3] of { byte };
chan w_pub = [2] of { byte };
#define STORE_RECORD(at, v, n) w_rec ! at, v, n
#define STORE_SKIP(v) w_skip ! v
#define STORE_PUB(v) w_pub ! v
#else
chan w_buf = [6] of { mtype, byte, byte, byte };
#define STORE_RECORD(at, v, n) w_buf ! RECORD, at, v, n
#define STORE_SKIP(v) w_buf ! SKIP, 0, v, 0
#define STORE_PUB(v) w_buf ! PUB, 0, v, 0
#endif

active proctype memory()
{
	mtype word;
	byte a, v, n;

end:
	do
#ifdef WEAK
	:: atomic { nempty(w_rec) -> w_rec ? a, v, n; rec[a] = v; units[a] = n; a = 0; v = 0; n = 0 }
	:: atomic { nempty(w_skip) -> w_skip ? v; jump = v; v = 0 }
#ifdef NO_RELEASE
	:: atomic { nempty(w_pub) && empty(w_rec) -> w_pub ? v; pub = v; v = 0 }
#else
	:: atomic { nempty(w_pub) && empty(w_rec) && empty(w_skip) -> w_pub ? v; pub = v; v = 0 }
#endif
#else
	:: atomic { nempty(w_buf) ->
		w_buf ? word, a, v, n;
		if
		:: word == RECORD -> rec[a] = v; units[a] = n
		:: word == SKIP -> jump = v
		:: word == PUB -> pub = v
		fi;
		word = 0; a = 0; v = 0; n = 0
	   }
#endif
	od
}

/* ---- writer ---- */

byte sent;
byte wr, acked, named;	/* write, acked, master of skip */
byte live;		/* acked, or where a skip beyond it led to */
byte size, pad, room;

#ifdef NOT_EMPTY
#define MAY_GO_BACK (AT(wr))
#else
#define MAY_GO_BACK (AT(wr) && wr == acked)
#endif

inline pad_for()
{
	pad = (size > R - AT(wr) -> R - AT(wr) : 0)
}

/* live follows at each step, for numbers that are more than W / 2 apart do not compare. */
inline reap()
{
	acked = cons;
#ifndef LIVE_STAYS
	if
	:: DIFF(acked, live) < W / 2 -> live = acked
	:: else
	fi
#endif
}

/* What is skipped takes no room. */
inline used()
{
#ifdef LIVE_STAYS
	room = (DIFF(acked, live) > W / 2 -> DIFF(wr, live) : DIFF(wr, acked))
#else
	room = DIFF(wr, live)
#endif
}

inline go_back()
{
	named = wr;
#ifndef SKIP_LATE
	STORE_SKIP(wr);
#endif
	wr = MOD(wr + R - AT(wr));
	live = wr
}

inline forget_skip()
{
#ifndef NO_FORGET
	if
	:: wr == named && named -> named = 0; STORE_SKIP(0)
	:: else
	fi
#else
	skip
#endif
}

inline put()
{
	forget_skip();
	pad_for();
	if
	:: pad -> STORE_RECORD(AT(wr), PAD, pad)
	:: else
	fi;
	wr = MOD(wr + pad);
	sent++;
	STORE_RECORD(AT(wr), sent, size);
	wr = MOD(wr + size);
	STORE_PUB(wr);
#ifdef SKIP_LATE
	STORE_SKIP(named);
#endif
	pad = 0
}

active proctype writer()
{
end:
	do
	:: sent < N ->
		if
		:: size = 1
		:: size = 2
		fi;
		/* Sooner or later it looks how far the reader is. */
		if
		:: atomic { reap() }
		:: skip
		fi;
		atomic { pad_for(); used() }
		do
		:: room + pad + size <= USABLE -> break
		:: atomic { room + pad + size > USABLE && acked != cons ->
			reap();
			used()
		   }
		od;
		atomic {
			if
			:: MAY_GO_BACK -> go_back()
			:: true
			fi;
			put();
			room = 0;
			size = 0
		}
	:: else -> break
	od
}

/* ---- reader ---- */

byte taken;
byte rd, seen, floor, given;	/* read, seen, floor, master of cons */
byte p, s;

inline follow_skip()
{
#ifndef SKIP_FIRST
	s = jump;
#endif
	if
	:: AT(rd) && rd == seen && given == rd && s == rd ->
		rd = MOD(rd + R - AT(rd));
		seen = rd;
		floor = rd
	:: else
	fi
#ifndef SKIP_FIRST
	;
	s = 0
#endif
}

inline snapshot()
{
	p = pub;
	if
	:: p != seen -> follow_skip()
	:: else
	fi;
	assert(DIFF(p, floor) <= R && DIFF(p, floor) >= DIFF(seen, floor));	/* K2 */
	seen = p;
	p = 0
}

inline take()
{
	if
	:: rec[AT(rd)] == PAD ->
		assert(units[AT(rd)] == R - AT(rd));				/* K2 */
		rd = MOD(rd + units[AT(rd)])
	:: else ->
		taken++;
		assert(rec[AT(rd)] == taken);					/* K1 */
		rd = MOD(rd + units[AT(rd)])
	fi
}

active proctype reader()
{
end:
	do
	:: rd != seen -> atomic { take() }
	:: rd == seen && pub != seen -> snapshot()
#ifdef SKIP_FIRST
	:: s != jump -> s = jump
#endif
	/* A client at once, the daemon at the end of a round. */
	:: atomic { given != rd -> given = rd; floor = rd; cons = rd }
	od
}

active proctype finale()
{
	timeout;
	assert(sent == N && taken == N)		/* K3 */
}
