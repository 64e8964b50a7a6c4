/* ring_publish.pml - lines, items, acknowledgements and growth of one pair's rings, on x86-TSO.
 *
 * Mirrors src/ring/ring.h: rnl_tx_place, rnl_tx_publish, rnl_tx_refresh, rnl_rx_peek, rnl_rx_enter, _leave, _tell, and
 * the GROW line (and a way back to the small ring, which the code does not take).
 *
 * Two processes; process d sends MSGS<d> messages through direction d. One step is one access to shared memory. Every
 * store goes into its process's FIFO store buffer and is drained to memory at any later moment (x86-TSO). Own stores
 * are never loaded back, so forwarding is left out. -DWEAK lets payload stores pass header and position stores: what
 * C11 allows around a release.
 *
 * Abstracted: a line holds ITEMS messages, a position is line*4+items, the sequence number is the line number mod
 * SEQS, the payload is the message's number. Whether the next message may share the open line (same handler and
 * length) is a free choice. A fruitless poll changes nothing, so after one the process blocks until a poll or a
 * refresh would find something: being stuck shows as a state in which nothing can move, with no fairness needed.
 *
 * Proved, for these sizes and every interleaving: each message arrives once, in order, with its own payload; a line
 * is never written, and a ring never zeroed, before the reader has left it; nothing gets stuck (all messages arrive).
 *
 * Configurations: default = both directions, acknowledgements ride on headers. -DGROWTH = one direction that moves
 * between the small and the big ring up to MOVES times, sequence numbers come round. -DPURIST = process 0 reads
 * nothing while it waits for room. -DNEED=n = a message wants n lines free. -DOTHERS=n = n of the messages have a
 * line of their own. Planted bugs: every BUG_ macro below; scripts/check-models wants each of them found. */

#ifdef GROWTH
#define SMALL 2
#define BIG 4
#define FIRST 1
#ifndef MOVES
#define MOVES 4
#endif
#ifndef MSGS0
#define MSGS0 8
#endif
#ifndef MSGS1
#define MSGS1 0
#endif
#else
#ifndef SMALL
#define SMALL 4
#endif
#define BIG 0
#define FIRST 7 /* so that sequence number 0 is met while memory is still zero */
#ifndef MSGS0
#define MSGS0 4
#endif
#ifndef MSGS1
#define MSGS1 3
#endif
#endif
#ifndef ITEMS
#define ITEMS 2
#endif
#ifndef STORES
#define STORES 3 /* depth of a store buffer */
#endif
#define SLOTS (SMALL + BIG)
#ifdef BUG_SEQ_SHORT
#define SEQS SMALL /* stale lines match */
#elif !defined(SEQS)
#define SEQS 8
#endif
#ifndef OTHERS
#define OTHERS 0
#endif

#define LINES(ring) ((ring) -> BIG : SMALL)
#define MASK(ring) (LINES(ring) - 1)
#if BIG > 0
#define SLOT(d, ring, line) ((d) * SLOTS + ((ring) -> SMALL + (line) % (BIG) : (line) % SMALL))
#else
#define SLOT(d, ring, line) ((d) * SLOTS + (line) % SMALL)
#endif
/* Lines that a message reserves at once. Position is told when TELL lines are read and not told: as late as is safe,
 * the code uses a quarter ring (so no reservation may exceed three quarters). */
#ifndef NEED
#define NEED 1
#endif
#ifdef BUG_TELL_LATE
#define TELL(ring) (LINES(ring) - NEED + 1)
#else
#define TELL(ring) (LINES(ring) - NEED)
#endif

/* A header: seq, kind (0 items, 1 a line of its own), n. The ack beside it is stored and loaded with it. */
#define HEAD(line, kind, n) (((line) % SEQS) * 8 + (kind) * 4 + (n))
#define SEQ(h) ((h) / 8)
#define KIND(h) (((h) / 4) % 2)
#define N(h) ((h) % 4)
#ifdef BUG_NO_N_CHECK
#define VALID(h, line) (SEQ(h) == (line) % SEQS)
#else
#define VALID(h, line) (SEQ(h) == (line) % SEQS && N(h) > 0)
#endif

/* Shared memory. */
byte head[2 * SLOTS];
byte ack[2 * SLOTS];
byte payload[2 * SLOTS * ITEMS];
byte position[2]; /* of direction d, told by its reader */

/* Store buffers. */
#define PAYLOAD 1
#define HEADER 2
#define POSITION 3
chan buffer[2] = [STORES] of { byte, byte, byte, byte }; /* what, where, value, ack */

/* Seen by assertions only (rline is the reader's private line, kept here so that they can see it). */
byte rline[2];         /* of direction d */
byte written[2 * SLOTS]; /* last line put into the slot */
byte delivered[2];

inline drain_one(what, where, value, a)
{
    if
    :: what == PAYLOAD -> payload[where] = value
    :: what == HEADER -> head[where] = value; ack[where] = a
    :: what == POSITION -> position[where] = value
    fi
}

proctype drain(byte me)
{
    byte what, where, value, a;
end:
    do
    :: d_step {
            buffer[me]?what, where, value, a; drain_one(what, where, value, a);
            what = 0; where = 0; value = 0; a = 0 }
#ifdef WEAK
    :: d_step { buffer[me]??PAYLOAD, where, value, a; drain_one(PAYLOAD, where, value, a); where = 0; value = 0; a = 0 }
#ifdef BUG_HEADER_RELAXED
    :: d_step { buffer[me]??HEADER, where, value, a; drain_one(HEADER, where, value, a); where = 0; value = 0; a = 0 }
#endif
#endif
    od
}

#define TO_SEND (me -> MSGS1 : MSGS0)
#define TO_GET (me -> MSGS0 : MSGS1)
#define IN (1 - me) /* the direction this process reads */
#ifdef BUG_OVERWRITE
#define LINE_FREE (tline + NEED - acked / 4 <= MASK(tring) + 1)
#else
#define LINE_FREE (tline + NEED - acked / 4 <= MASK(tring))
#endif
#define HERE head[SLOT(IN, rring, rline[IN])]
#define NEXT head[SLOT(IN, rring, rline[IN] + 1)]
#define COULD_READ \
    (delivered[IN] < TO_GET && \
     ((SEQ(HERE) == rline[IN] % SEQS && N(HERE) > rn) || (rn > 0 && VALID(NEXT, rline[IN] + 1))))
#define COULD_APPEND (tn > 0 && tn < ITEMS && acked < tline * 4 + tn)
#define COULD_SEND (sent < TO_SEND && (LINE_FREE || position[me] / 4 > acked / 4 || (COULD_APPEND && !starved)))

#define MY_POSITION (rline[IN] * 4 + rn)
#ifdef BUG_ACK_NEXT
#define RIDING ((rline[IN] + 1) * 4) /* the line being read is not left yet */
#else
#define RIDING MY_POSITION
#endif

/* A header and its ack are one word. */
#define READ(h, a, line) atomic { h = head[SLOT(IN, rring, line)]; a = ack[SLOT(IN, rring, line)] }

/* rnl_rx_leave, and the first half of rnl_rx_enter. What was seen of a line says nothing about a later one, whose
 * header may be the same bits when numbers come round: only the line being read is compared with it. */
inline leave()
{
    rline[IN]++;
    rn = 0
}

/* rnl_rx_advertise, when enough was read. */
inline tell()
{
    if
#ifdef BUG_NO_TELL
    :: true
#else
    :: d_step { rline[IN] - told >= TELL(rring) -> told = rline[IN] }
        buffer[me]!POSITION, IN, MY_POSITION, 0
    :: else
#endif
    fi
}

/* The two stores of rnl_tx_publish and of the composing before it. */
inline publish(slot, kind)
{
#ifdef BUG_HEADER_FIRST
    buffer[me]!HEADER, slot, HEAD(tline, kind, tn), RIDING;
    buffer[me]!PAYLOAD, slot * ITEMS + tn - 1, sent, 0;
#else
    if
    :: kind == 0 || OTHERS > 0 -> buffer[me]!PAYLOAD, slot * ITEMS + tn - 1, sent, 0
    :: else
    fi;
    buffer[me]!HEADER, slot, HEAD(tline, kind, tn), RIDING;
#endif
#ifdef BUG_PIGGY_COUNTS
    told = rline[IN]; /* a ride on a header the peer may not read is no telling */
#endif
    slot = 0
}

proctype process(byte me)
{
    /* rnl_tx */
    byte tline = FIRST - 1, tn, acked = FIRST * 4, sent;
    /* rnl_rx; its line is rline[IN] */
    byte rn, told = FIRST;
    bit tring, rring;
    byte others, moves, left[2]; /* line that moved out of the ring; 0 = never in it */
    byte seen, seen_ack; /* header when all its items were read: the same again means nothing new */
    byte h, a, next, next_ack, slot, i;
    bit starved, entered;

again:
    starved = 0;
    if
    :: sent == TO_SEND && delivered[IN] == TO_GET -> goto done
    :: sent < TO_SEND -> goto send
    :: delivered[IN] < TO_GET -> goto peek
    fi;

send:
    if
    :: d_step { COULD_APPEND -> tn++; sent++; slot = SLOT(me, tring, tline) }
        publish(slot, 0);
        goto again
    :: d_step { LINE_FREE ->
            tline++; tn = 1; sent++;
            slot = SLOT(me, tring, tline);
            assert(rline[me] > written[slot]); /* the reader has left it */
            written[slot] = tline }
        publish(slot, 0);
        goto again
#if OTHERS > 0
    :: d_step { LINE_FREE && others < OTHERS ->
            others++;
            tline++; tn = 1; sent++;
            slot = SLOT(me, tring, tline);
            assert(rline[me] > written[slot]);
            written[slot] = tline }
        publish(slot, 1);
        tn = 0; /* closed */
        goto again
#endif
#ifdef GROWTH
    /* Move over: the ring entered must be free of the reader, and read as zero if it was used before. */
#ifdef BUG_ZERO_UNREAD
    :: moves < MOVES && LINE_FREE && empty(buffer[me]) ->
#else
    :: moves < MOVES && LINE_FREE && acked / 4 > left[1 - tring] && (left[1 - tring] == 0 || empty(buffer[me])) ->
#endif
        d_step {
#ifndef BUG_NO_ZERO
            if
            :: left[1 - tring] > 0 ->
                i = 0;
                do
                :: i < LINES(1 - tring) ->
                    slot = SLOT(me, 1 - tring, i);
                    assert(rline[me] > written[slot]);
                    head[slot] = 0;
                    ack[slot] = 0;
                    i++
                :: else -> break
                od;
                i = 0
            :: else
            fi;
#endif
            tline++; tn = 1;
            slot = SLOT(me, tring, tline);
            assert(rline[me] > written[slot]);
            written[slot] = tline
        }
        publish(slot, 1);
        d_step { moves++; left[tring] = tline; tring = 1 - tring; tn = 0 }
        goto again
#endif
    /* No line: rnl_tx_refresh, once. */
    :: !LINE_FREE ->
        d_step {
            if
            :: position[me] > acked -> acked = position[me]
            :: else
            fi
        }
        if
        :: LINE_FREE -> goto again
        :: else -> starved = 1; goto idle
        fi
    fi;

peek:
    /* `next` before `last`: an append precedes the move to the next line. */
#ifndef BUG_LAST_FIRST
    if
    :: rn > 0 -> READ(next, next_ack, rline[IN] + 1)
    :: else
    fi;
#endif
    READ(h, a, rline[IN]);
#ifdef BUG_LAST_FIRST
    if
    :: rn > 0 -> READ(next, next_ack, rline[IN] + 1)
    :: else
    fi;
#endif
    if
    :: rn > 0 && h == seen && a == seen_ack
#ifdef BUG_SEEN_ALWAYS
    :: rn == 0 && h == seen && a == seen_ack -> false /* taken for old by every poll */
#endif
    :: else ->
        if
        :: SEQ(h) == rline[IN] % SEQS && N(h) > rn -> goto deliver
        :: else
        fi
    fi;
    if
    :: rn > 0 && VALID(next, rline[IN] + 1)
    :: else -> goto idle
    fi;
    d_step { leave(); h = next; a = next_ack; entered = 1 }

deliver:
    next = 0;
    d_step {
        next_ack = 0;
        if
        :: a > acked -> acked = a
        :: else
        fi
    }
#ifdef GROWTH
    if
    :: KIND(h) == 1 ->
#ifdef BUG_TELL_BEFORE_SWITCH
        d_step { leave() }
        tell();
        rring = 1 - rring;
#else
        d_step { leave(); rring = 1 - rring }
        tell();
#endif
        h = 0; a = 0; entered = 0;
        goto again
    :: else
    fi;
#endif
    /* Before the handlers: what they send acknowledges these items, not yet the line. */
    d_step { i = rn; rn = N(h) }
    if
    :: entered -> entered = 0; tell()
    :: else
    fi;
#ifdef BUG_ACK_EARLY
    buffer[me]!POSITION, IN, (rline[IN] + 1) * 4, 0;
#endif
    do
    :: d_step { i < rn ->
            /* once, in order, not stale */
            assert(payload[SLOT(IN, rring, rline[IN]) * ITEMS + i] == delivered[IN] + 1);
            delivered[IN]++;
            i++ }
    :: else -> break
    od;
    i = 0;
    d_step {
        if
        :: KIND(h) == 0 -> seen = h; seen_ack = a
        :: else
        fi
    }
    if
    :: N(h) == ITEMS || KIND(h) == 1 -> /* full, or never appended to */
        d_step { h = 0; a = 0; leave() }
        tell()
    :: else -> h = 0; a = 0
    fi;
    goto again;

idle:
    h = 0; a = 0; next = 0; next_ack = 0;
#ifdef PURIST
    if
    :: me == 0 && starved -> COULD_SEND
    :: else -> COULD_SEND || COULD_READ
    fi;
#else
    COULD_SEND || COULD_READ;
#endif
    goto again;
done:
    skip
}

init
{
    atomic {
        rline[0] = FIRST;
        rline[1] = FIRST;
        position[0] = FIRST * 4;
        position[1] = FIRST * 4;
        run process(0);
        run process(1);
        run drain(0);
        run drain(1)
    }
    timeout; /* nothing moves any more */
    assert(delivered[0] == MSGS0 && delivered[1] == MSGS1)
}
