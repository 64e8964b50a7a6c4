/* deadlock.pml - the rule that lets everybody wait without a deadlock, with finite rings, grants, answers, stacks.
 *
 * Mirrors src/stream/ (begin, piece, end, dispatch, suspend, reply, keep) and the progress calls of src/endpoint/;
 * the rule itself (a to g) is in doc/design.md. Rings and wake-ups are exact here: ring_publish.pml and
 * sleep_wake.pml show that they may be.
 *
 * NP processes. Each program starts MSGS messages of the kinds in KINDS, to peers of its choice, a packet at a time.
 * Lane 0 from p to q holds RING packets and is granted GRANT of them not yet received by a handler; lane 1 back has
 * room for ANSWERS answers; each process has STACKS handler stacks. Lengths are 1 packet, 2 (more than a ring of 1,
 * fits the grant of 2) and 3 (exceeds it). What a handler does with a packet is one step: it never waits. Which of
 * the possible steps a process takes is free, so any order of polling is covered; every process keeps calling in
 * (rule g). A state where nothing can move must be the end: all that was sent has been handled, all that was taken is
 * given back. All runs are finite, so that is "everything gets delivered".
 *
 * The rule, as modelled:
 *  a  a request that may be answered is dispatched only when the answer fits lane 1; its room is reserved until the
 *     answer or the return. -DASKER_COUNTS: besides, an asker has at most ANSWERS answers outstanding; a handler that
 *     returns without one makes the library send an empty one, else the asker would count it for ever.
 *     A handler may put its answer off: what it reserved stays so, and ANSWERS - 1 at most are put off, so one more
 *     always fits in the end. It is sent by the handler of a later message of the same process, or when that process
 *     has sent all (DEFER).
 *  b  inside a handler a send goes out whole at once or is left to the program, which sends it at the top, or while
 *     it waits in a stream for an answer. -DPOSTED: the library sends it in any call, also while the program is in a
 *     send.
 *  c  a send outside handlers that finds no room takes in lanes 1 and 2 and runs lane-0 handlers.
 *  d  a (peer, lane) has one open message: a handler that wants to send to a peer its program has a stream open to
 *     finds it busy. A suspended handler takes every byte that arrives. -DPASS: a message that is sent whole passes
 *     between the packets of an open stream, and its handler runs beside the suspended one.
 *  e  with no stack free, a message that fits what is left of the grant is collected until it is whole OR a stack is
 *     free; a longer one waits for a stack. Collected bytes leave the ring and stay on the grant.
 *  f  a program that waits inside a stream waits for that very stream's handler (HALF, FM_HALF), or for what a third
 *     program sends anyway (AWAIT).
 *  The bulk lane (BULK): a post of 3 packets, which the library sends in any call. -DBULK_WAITS: not while a stream to
 *  that peer is open. Its packets go through the ring of lane 0; the receiver takes them out of it at once and parks
 *  them. A parked packet is on the grant, and what lane 0 had in the bulk area behind it stays on it, too (pinned), until
 *  it is taken in. A packet goes only if as much of the grant as the lane then has stays free for lane 0. Its handler
 *  has a stack of its own. -DBULK_MISSING: its handler is missing for ever, and lane 0 has to go on all the same.
 *  Lane-2 answers have room of their own on lane 1. KEEP withholds the grant down to one packet, not below; kept
 *  messages are freed by the program when it is in no call.
 *
 * Planted bugs: every BUG_ macro; scripts/check-models wants each found. These limits it holds to be true:
 *  limit-fm-half       without PASS: two programs, each with half a stream out to the other, wait for the other's
 *                      handler to answer on lane 0; each handler finds the way back busy. Nothing is short. (Answers
 *                      on lane 1, HALF, are safe.)
 *  limit-few-stacks    with fewer stacks than peers, an open stream holds a stack while its program begins another
 *                      one (overlap), or waits for a program that needs the stack (await): in a circle.
 *  limit-hold-overlap  a handler that suspends with a stream open to a third process makes the way busy for its
 *                      program. */

#ifndef NP
#define NP 2
#endif
#ifndef MSGS
#define MSGS 2
#endif
#ifndef RING
#define RING 1 /* 1 or 2 */
#endif
#ifndef GRANT
#define GRANT 2
#endif
#ifndef ANSWERS
#define ANSWERS 1
#endif
#ifndef STACKS
#define STACKS (NP - 1)
#endif
#ifdef SELF
#define PEER(q) true /* a process may talk to itself: NP stacks */
#else
#define PEER(q) ((q) != me)
#endif

/* What a program may send. */
#define SHORT 1
#define REQUEST 2      /* short, may be answered on lane 1 */
#define FORWARD 4      /* short, its handler sends a short one to somebody */
#define MEDIUM 8
#define LONG 16
#define LONG_REQUEST 32
#define HALF 64        /* medium: after its first packet the sender waits for the handler's answer on lane 1 */
#define FM_HALF 128    /* the same, the answer is a message on lane 0 */
#define KEPT 256       /* short, its handler may keep it */
#define ASK_WAIT 512   /* short request; the program does nothing, frees nothing, until the answer is here */
#define GET 1024       /* long request: after its first packet the sender waits for a lane-2 get to the same peer */
#define OVERLAP 2048   /* medium: after its first packet the sender sends a long one to the third process */
#define AWAIT 4096     /* medium: after its first packet the sender waits for a message of the third program */
#define HOLD 8192      /* medium: its handler opens a stream to the third process at once, ends it on return */
#define HOLD_OVERLAP 16384 /* both */
#define DEFER 32768    /* short request, its handler may put the answer off */
#define BULK 65536     /* a post on the bulk lane */
#ifndef KINDS
#define KINDS SHORT + REQUEST + FORWARD + MEDIUM + LONG + LONG_REQUEST + HALF
#endif

/* What a packet says: flags, and packets left in its message, this one included. */
#define ANSWERED 4     /* may be answered on lane 1 */
#define EARLY 8        /* its handler answers on the first packet */
#define EARLY0 16      /* its handler answers on the first packet, on lane 0 */
#define IS_ANSWER 32   /* that answer */
#define FORWARDS 64
#define KEEPS 128
#define HOLDS 256
#define DEFERS 1024
#define IS_BULK 2048
#define PASSING 512    /* whole, between the packets of an open message */
#define LEFT(x) ((x) & 3)
#define HAS(x, flag) (((x) & (flag)) != 0)

#define THIRD(q) (3 - me - (q))
#define IX(p, q) ((p) * NP + (q))
#define ALL (NP * NP)
/* Lane 0, p to q. */
short first[ALL];
#if RING > 1
short second[ALL];
#endif
byte count[ALL];
bit promised[ALL];   /* room that a suspended handler of p has reserved */
byte collected[ALL]; /* packets taken out of the ring, waiting to be whole */
byte kept[ALL];
bit open[ALL];       /* p has a stream open to q */
/* The handler of that lane, at q. */
#define IDLE 0
#define SUSPENDED 1  /* holds a stack */
#define COLLECTING 2
byte handler[ALL];
short incoming[ALL]; /* what its message's first packet said; ANSWERED is taken out once answered */
bit holding[ALL];    /* it has a stream open to the third process */
/* Lane 1, p to q. */
byte answers[ALL];
byte reserved[ALL];
byte deferred[ALL];  /* answers that p put off and owes q; reserved, too */
byte owed[ALL];      /* to p by q */
/* Lane 2, p to q. */
bit get[ALL];
bit got[ALL];        /* an answer to one, on lane 1 */
/* Sends that p's handlers, or its plans, left to p's program. */
byte later[ALL];
byte later_answer[ALL];

/* The bulk lane, p to q. */
byte posts[ALL];     /* that p's library has not sent whole */
byte bulk_sent[ALL]; /* packets of the first of them that it has sent */
byte bulk_ring[ALL]; /* packets in the ring of lane 0 */
byte parked[ALL];
byte pinned[ALL];    /* packets of lane 0 behind them, received */
byte bulk_got[ALL];  /* packets of the open message that q has taken in */

byte stacks[NP];
bit answered[NP];    /* the message a program waits for is here */
bit served[NP];      /* the get is done */
bit finished[NP];    /* the program has sent all it had to */

#define ROOM(p, q)                                                                                                     \
    (count[IX(p, q)] + promised[IX(p, q)] < RING &&                                                                    \
     ON_GRANT(p, q) < GRANT)
#define ON_GRANT(p, q)                                                                                                 \
    (count[IX(p, q)] + promised[IX(p, q)] + collected[IX(p, q)] + kept[IX(p, q)] + parked[IX(p, q)] + pinned[IX(p, q)])
#ifdef BUG_BULK_TAKES_ALL
#define BULK_ROOM(q) ROOM(me, q)
#else
#define BULK_ROOM(q) (ROOM(me, q) && GRANT - ON_GRANT(me, q) - 1 >= bulk_ring[IX(me, q)] + parked[IX(me, q)] + 1)
#endif
#ifdef BULK_WAITS
#define BULK_MAY(q) (!open[IX(me, q)])
#else
#define BULK_MAY(q) true
#endif
#ifdef BULK_MISSING
#define BULK_TAKEN false
#else
#define BULK_TAKEN true
#endif
#ifdef BUG_BULK_SHARES_STACKS
#define BULK_STACK(p) (bulk_got[IX(p, me)] > 0 || stacks[me] > 0)
#define BULK_STACKS 1
#else
#define BULK_STACK(p) true
#define BULK_STACKS 0
#endif
#ifdef BUG_NO_STANDING_GRANT
/* Lane 1 has what lane 0 leaves of one pool; lane 0 has its minimum of one packet. */
#define POOL(p, q) (kept[IX(q, p)] + 1 + answers[IX(p, q)] + reserved[IX(p, q)] < GRANT)
#else
#define POOL(p, q) true
#endif
#ifdef BUG_SHARED_ANSWER_ROOM
#define ANSWER_FITS(p, q) (answers[IX(p, q)] + reserved[IX(p, q)] + got[IX(p, q)] < ANSWERS && POOL(p, q))
#define GET_FITS(p, q) ANSWER_FITS(p, q)
#else
#define ANSWER_FITS(p, q) (answers[IX(p, q)] + reserved[IX(p, q)] < ANSWERS && POOL(p, q))
#define GET_FITS(p, q) (!got[IX(p, q)])
#endif
#ifdef BUG_REPLY_NO_RESERVE
#define MAY_RUN(p, x) true
#else
#define MAY_RUN(p, x) (!HAS(x, ANSWERED) || ANSWER_FITS(me, p))
#endif
#ifdef BUG_DEFER_ALL
#define MAY_DEFER(p) true
#else
#define MAY_DEFER(p) (deferred[IX(me, p)] + 1 < ANSWERS)
#endif
#ifdef PASS
#define WAY_FREE(q) true
#else
#define WAY_FREE(q) (!open[IX(me, q)])
#endif
#define WHOLE(q) (1 + (open[IX(me, q)] -> PASSING : 0)) /* the only packet of its message */

inline put(q, what)
{
    assert(ROOM(me, q));
    printf("%d: packet to %d, flags %d, %d left\n", me, q, (what) - LEFT(what), LEFT(what));
#if RING > 1
    if
    :: count[IX(me, q)] == 0 -> first[IX(me, q)] = what
    :: else -> second[IX(me, q)] = what
    fi;
#else
    first[IX(me, q)] = what;
#endif
    count[IX(me, q)]++
}
inline drop_first(p)
{
    if
    :: parked[IX(p, me)] > 0 && !HAS(first[IX(p, me)], IS_BULK + PASSING) &&
            (handler[IX(p, me)] != IDLE || LEFT(first[IX(p, me)]) > 1) -> pinned[IX(p, me)]++
    :: else
    fi;
#if RING > 1
    first[IX(p, me)] = second[IX(p, me)];
    second[IX(p, me)] = 0;
#else
    first[IX(p, me)] = 0;
#endif
    count[IX(p, me)]--
}
inline open_message(p)
{
    incoming[IX(p, me)] = first[IX(p, me)];
    drop_first(p)
}

/* A send inside a handler (rule b): whole, at once, or left to the program. */
inline send_inside(q, what, left)
{
    if
    :: ROOM(me, q) && WAY_FREE(q) -> put(q, what + WHOLE(q))
#ifdef BUG_HANDLER_WAITS
    :: else -> assert(!waits); waits = 1; wait_for = q; wait_what = what
#else
    :: else -> left++; printf("%d: no room, or busy, to %d: left to the program\n", me, q)
#endif
    fi
}
inline reply(p)
{
#ifdef BUG_REPLY_NO_RESERVE
    if
    :: ANSWER_FITS(me, p) -> answers[IX(me, p)]++
    :: else -> assert(!waits); waits = 1; wait_for = p; wait_what = ANSWERED
    fi;
#else
    reserved[IX(me, p)]--;
    assert(answers[IX(me, p)] < ANSWERS); /* an answer never waits */
    answers[IX(me, p)]++;
#endif
    printf("%d: answer to %d on lane 1\n", me, p);
    incoming[IX(p, me)] = incoming[IX(p, me)] - ANSWERED
}
/* Sends an answer that was put off. */
inline answer_late(p)
{
    deferred[IX(me, p)]--;
#ifdef BUG_DEFER_UNRESERVED
    if
    :: ANSWER_FITS(me, p) -> answers[IX(me, p)]++
    :: else -> assert(!waits); waits = 1; wait_for = p; wait_what = ANSWERED
    fi;
#else
    reserved[IX(me, p)]--;
    assert(answers[IX(me, p)] < ANSWERS);
    answers[IX(me, p)]++;
#endif
    printf("%d: late answer to %d on lane 1\n", me, p)
}
/* The handler's code for the first packet of a message from p. */
inline handle_first(p)
{
    printf("%d: handler of a message from %d starts, flags %d, %d packets, stacks free %d\n", me, p,
        incoming[IX(p, me)] - LEFT(incoming[IX(p, me)]), LEFT(incoming[IX(p, me)]), stacks[me]);
#ifndef BUG_REPLY_NO_RESERVE
    if
    :: HAS(incoming[IX(p, me)], ANSWERED) -> assert(ANSWER_FITS(me, p)); reserved[IX(me, p)]++
    :: else
    fi;
#endif
    if
    :: HAS(incoming[IX(p, me)], ANSWERED) -> reply(p)
    :: HAS(incoming[IX(p, me)], ANSWERED) && !HAS(incoming[IX(p, me)], EARLY)
    :: HAS(incoming[IX(p, me)], DEFERS) && MAY_DEFER(p) ->
        deferred[IX(me, p)]++;
#ifdef BUG_DEFER_UNRESERVED
        reserved[IX(me, p)]--;
#endif
        printf("%d: the answer to %d is put off\n", me, p);
        incoming[IX(p, me)] = incoming[IX(p, me)] - ANSWERED
    :: !HAS(incoming[IX(p, me)], ANSWERED)
    fi;
    if
    :: HAS(incoming[IX(p, me)], EARLY0) -> send_inside(p, IS_ANSWER, later_answer[IX(me, p)])
#if NP > 2
    :: HAS(incoming[IX(p, me)], HOLDS) && ROOM(me, THIRD(p)) && !open[IX(me, THIRD(p))] ->
        holding[IX(p, me)] = 1;
        promised[IX(me, THIRD(p))] = 1;
        open[IX(me, THIRD(p))] = 1;
        printf("%d: its handler opens a stream to %d\n", me, THIRD(p))
#endif
    :: else
    fi
}
/* Its code from the last packet to its return. */
inline handle_last(p)
{
    if
    :: HAS(incoming[IX(p, me)], ANSWERED) -> reply(p) /* the handler's, or the library's empty one */
#ifdef BUG_NO_EMPTY_ANSWER
    :: HAS(incoming[IX(p, me)], ANSWERED) -> reserved[IX(me, p)]--
#endif
    :: else
    fi;
    if
    :: HAS(incoming[IX(p, me)], FORWARDS) -> send_inside((me + 1) % NP, 0, later[IX(me, (me + 1) % NP)])
#if NP > 2
    :: HAS(incoming[IX(p, me)], FORWARDS) -> send_inside((me + 2) % NP, 0, later[IX(me, (me + 2) % NP)])
    :: holding[IX(p, me)] ->
        holding[IX(p, me)] = 0;
        promised[IX(me, THIRD(p))] = 0;
        open[IX(me, THIRD(p))] = 0;
        put(THIRD(p), 1)
#endif
    :: HAS(incoming[IX(p, me)], IS_ANSWER) -> answered[me] = 1
    :: HAS(incoming[IX(p, me)], KEEPS)
#ifdef BUG_KEEP_ALL
    :: HAS(incoming[IX(p, me)], KEEPS) -> kept[IX(p, me)]++
#else
    :: HAS(incoming[IX(p, me)], KEEPS) && kept[IX(p, me)] + 1 < GRANT -> kept[IX(p, me)]++
#endif
    :: !HAS(incoming[IX(p, me)], FORWARDS + IS_ANSWER + KEEPS) && !holding[IX(p, me)]
    fi;
    if
    :: !HAS(incoming[IX(p, me)], DEFERS) && deferred[IX(me, p)] > 0 -> answer_late(p)
    :: else
    fi;
    printf("%d: handler of the message from %d returns\n", me, p);
    incoming[IX(p, me)] = 0
}

/* Where the program is. */
#define TOP 0        /* in extract or wait, no stream open */
#define BEGINNING 1  /* the way is busy: a handler has a stream open there */
#define STREAM 2     /* in a piece */
#define WAITING 3    /* in extract, a stream open */
#define BEGINNING2 4 /* the second stream, first one open */
#define STREAM2 5
#define ASKED 6
#define GETTING 7
#define IN_SEND (pc == STREAM || pc == STREAM2 || pc == BEGINNING || pc == BEGINNING2)

#ifdef BUG_SEND_NO_HANDLERS
#define HANDLERS (!waits && !IN_SEND)
#else
#define HANDLERS (!waits)
#endif
#ifdef BUG_SEND_NO_LANE1
#define LANE1 (!waits && !IN_SEND)
#else
#define LANE1 (!waits)
#endif
#ifdef ASKER_COUNTS
#define MAY_ASK(q) (owed[IX(q, me)] < ANSWERS)
#else
#define MAY_ASK(q) true
#endif
#if defined(POSTED)
#define SENDS_LATER (!waits)
#elif defined(BUG_DEFER_TO_END)
#define SENDS_LATER (!waits && pc == TOP)
#else
#define SENDS_LATER (!waits && (pc == TOP || pc == WAITING))
#endif
#ifdef BUG_UNFIT_COLLECTED
#define COLLECTABLE(p) true
#else
#define COLLECTABLE(p) (LEFT(first[IX(p, me)]) <= GRANT - kept[IX(p, me)])
#endif
#ifdef BUG_SUSPENDED_HOLDS_RING
#define TAKES(p) (count[IX(p, me)] >= LEFT(first[IX(p, me)]))
#else
#define TAKES(p) true
#endif
#ifdef BUG_WHOLE_ONLY
#define RECONSIDERS false
#else
#define RECONSIDERS true
#endif

/* What can be done about a packet from p. From the guard to the end of the body named is one step. */
#define LAST(p) (LEFT(first[IX(p, me)]) == 1)
#define PASSES(p) HAS(first[IX(p, me)], PASSING)
#define IS(p, state) (handler[IX(p, me)] == state)
#define TAKE(p, guard, body) :: atomic { PEER(p) && HANDLERS && count[IX(p, me)] > 0 && guard -> peer = p; goto body }
#define IN_BULK(p) HAS(first[IX(p, me)], IS_BULK)
#define FROM(p)                                                                                                        \
    TAKE(p, IN_BULK(p), park)                                                                                          \
    :: atomic { PEER(p) && HANDLERS && parked[IX(p, me)] > 0 && BULK_TAKEN && BULK_STACK(p) -> peer = p; goto take_bulk } \
    FROM_LANE0(p)
#define FROM_LANE0(p)                                                                                                  \
    TAKE(p, !IN_BULK(p) && IS(p, IDLE) && LAST(p) && MAY_RUN(p, first[IX(p, me)]), run_whole)                                         \
    TAKE(p, !IN_BULK(p) && IS(p, IDLE) && !LAST(p) && stacks[me] > 0 && MAY_RUN(p, first[IX(p, me)]), start)                          \
    TAKE(p, !IN_BULK(p) && IS(p, IDLE) && !LAST(p) && stacks[me] == 0 && COLLECTABLE(p), collect_first)                               \
    TAKE(p, !IN_BULK(p) && IS(p, SUSPENDED) && TAKES(p) && !PASSES(p), resume)                                                        \
    TAKE(p, !IN_BULK(p) && IS(p, COLLECTING) && !LAST(p), collect)                                                                    \
    TAKE(p, !IN_BULK(p) && IS(p, COLLECTING) && LAST(p) && !PASSES(p) && MAY_RUN(p, incoming[IX(p, me)]), run_collected)              \
    TAKE(p, !IS(p, IDLE) && PASSES(p), run_passing)                                                                    \
    :: atomic { PEER(p) && HANDLERS && IS(p, COLLECTING) && RECONSIDERS && stacks[me] > 0 &&                           \
            MAY_RUN(p, incoming[IX(p, me)]) -> peer = p; goto start_collected }                                        \
    :: atomic { PEER(p) && LANE1 && answers[IX(p, me)] > 0 -> answers[IX(p, me)]--; owed[IX(p, me)]-- }                \
    :: atomic { PEER(p) && get[IX(p, me)] && GET_FITS(me, p) -> get[IX(p, me)] = 0; got[IX(me, p)] = 1 }               \
    :: atomic { PEER(p) && got[IX(p, me)] -> got[IX(p, me)] = 0; served[me] = 1 }

/* What the program can do towards q: begin, send what was left to it, free what it kept. */
#define MAY(kind) (((KINDS) / (kind)) % 2 == 1 && todo > 0 && pc == TOP)
#define BEGIN(q, kind, flags, packets, after)                                                                          \
    :: atomic { PEER(q) && MAY(kind) && (!HAS(flags, ANSWERED) || MAY_ASK(q)) ->                                       \
            dest = q; what = flags; left = packets; then = after; goto begin }
#define TO(q)                                                                                                          \
    BEGIN(q, SHORT, 0, 1, TOP)                                                                                         \
    BEGIN(q, REQUEST, ANSWERED, 1, TOP)                                                                                \
    BEGIN(q, FORWARD, FORWARDS, 1, TOP)                                                                                \
    BEGIN(q, MEDIUM, 0, 2, TOP)                                                                                        \
    BEGIN(q, LONG, 0, 3, TOP)                                                                                          \
    BEGIN(q, LONG_REQUEST, ANSWERED, 3, TOP)                                                                           \
    BEGIN(q, HALF, ANSWERED + EARLY, 2, WAITING)                                                                       \
    BEGIN(q, FM_HALF, EARLY0, 2, WAITING)                                                                              \
    BEGIN(q, KEPT, KEEPS, 1, TOP)                                                                                      \
    BEGIN(q, ASK_WAIT, ANSWERED, 1, ASKED)                                                                             \
    BEGIN(q, GET, ANSWERED, 3, GETTING)                                                                                \
    BEGIN(q, DEFER, ANSWERED + DEFERS, 1, TOP)                                                                         \
    :: atomic { PEER(q) && MAY(BULK) -> todo--; posts[IX(me, q)]++ }                                                   \
    :: atomic { PEER(q) && !waits && posts[IX(me, q)] > 0 && BULK_MAY(q) && BULK_ROOM(q) -> peer = q; goto send_bulk } \
    :: atomic { PEER(q) && !waits && deferred[IX(me, q)] > 0 && finished[q] && count[IX(q, me)] == 0 ->                \
            answer_late(q) }                                                                                           \
    :: atomic { PEER(q) && SENDS_LATER && later[IX(me, q)] > 0 && ROOM(me, q) && WAY_FREE(q) ->                        \
            later[IX(me, q)]--; peer = q; now = 0; goto send_whole }                                                   \
    :: atomic { PEER(q) && SENDS_LATER && later_answer[IX(me, q)] > 0 && ROOM(me, q) && WAY_FREE(q) ->                 \
            later_answer[IX(me, q)]--; peer = q; now = IS_ANSWER; goto send_whole }                                    \
    :: atomic { PEER(q) && pc == TOP && !waits && kept[IX(q, me)] > 0 -> kept[IX(q, me)]-- }
#define TO_OF_3(q)                                                                                                     \
    BEGIN(q, OVERLAP, 0, 2, BEGINNING2)                                                                                \
    BEGIN(q, HOLD, HOLDS, 2, TOP)                                                                                      \
    BEGIN(q, HOLD_OVERLAP, HOLDS, 2, BEGINNING2)                                                                       \
    :: atomic { PEER(q) && MAY(AWAIT) ->                                                                               \
            later_answer[IX(THIRD(q), me)]++; dest = q; what = 0; left = 2; then = WAITING; goto begin }

proctype process(byte me)
{
    byte pc, then, dest, left, left2, todo = MSGS;
    short what;
    bit started;
    byte peer;
    short now;
    bit waits; /* a handler waits: only bugs do that */
    byte wait_for;
    short wait_what;
end:
    do
    FROM(0)
    FROM(1)
    TO(0)
    TO(1)
#if NP > 2
    FROM(2)
    TO(2)
    TO_OF_3(0)
    TO_OF_3(1)
    TO_OF_3(2)
#endif
    :: atomic { pc == BEGINNING && !waits && !open[IX(me, dest)] -> open[IX(me, dest)] = 1; pc = STREAM }
    :: atomic { pc == STREAM && !waits && ROOM(me, dest) ->
            put(dest, what + left);
            left--;
            if
            :: left == 0 -> /* end */
                open[IX(me, dest)] = 0;
                what = 0;
                started = 0;
                pc = then; /* TOP or ASKED */
                then = TOP;
                if
                :: pc == TOP -> dest = 0
                :: else
                fi
            :: left > 0 && !started && then != TOP -> /* do something before the rest */
                started = 1;
                pc = then;
                then = TOP;
                if
                :: pc == GETTING -> get[IX(me, dest)] = 1
                :: else
                fi
            :: else -> started = 1
            fi }
#if NP > 2
    :: atomic { pc == BEGINNING2 && !waits && !open[IX(me, THIRD(dest))] ->
            open[IX(me, THIRD(dest))] = 1; left2 = 3; pc = STREAM2 }
    :: atomic { pc == STREAM2 && !waits && ROOM(me, THIRD(dest)) ->
            put(THIRD(dest), left2);
            left2--;
            if
            :: left2 == 0 -> open[IX(me, THIRD(dest))] = 0; pc = STREAM
            :: else
            fi }
#endif
    :: atomic { pc == WAITING && !waits && !HAS(what, EARLY) && answered[me] -> answered[me] = 0; pc = STREAM }
    :: atomic { pc == WAITING && !waits && HAS(what, EARLY) && owed[IX(dest, me)] == 0 -> pc = STREAM }
    :: atomic { pc == ASKED && !waits && owed[IX(dest, me)] == 0 -> dest = 0; pc = TOP }
    :: atomic { pc == GETTING && !waits && served[me] -> served[me] = 0; pc = STREAM }
#ifdef BUG_HANDLER_WAITS
    :: atomic { waits && ROOM(me, wait_for) && WAY_FREE(wait_for) ->
            peer = wait_for; now = wait_what; waits = 0; wait_for = 0; wait_what = 0; goto send_whole }
#endif
#if defined(BUG_REPLY_NO_RESERVE) || defined(BUG_DEFER_UNRESERVED)
    :: atomic { waits && ANSWER_FITS(me, wait_for) ->
            answers[IX(me, wait_for)]++; waits = 0; wait_for = 0; wait_what = 0 }
#endif
    :: atomic { pc == TOP && todo == 0 && !finished[me] -> finished[me] = 1 }

    /* Bodies, entered by goto only: jumping from one atomic sequence into the middle of another stays one step. */
    :: atomic { false ->
        begin:
            printf("%d: program begins to %d, flags %d, %d packets\n", me, dest, what, left);
            todo--;
            if
            :: HAS(what, ANSWERED) -> owed[IX(dest, me)]++
            :: else
            fi;
            if
            :: open[IX(me, dest)] -> pc = BEGINNING
            :: else -> open[IX(me, dest)] = 1; pc = STREAM
            fi }
    :: atomic { false ->
        send_whole:
            put(peer, now + WHOLE(peer)); peer = 0; now = 0 }
    :: atomic { false ->
        send_bulk:
            put(peer, IS_BULK + 1);
            bulk_ring[IX(me, peer)]++;
            bulk_sent[IX(me, peer)]++;
            if
            :: bulk_sent[IX(me, peer)] == 3 -> bulk_sent[IX(me, peer)] = 0; posts[IX(me, peer)]--
            :: else
            fi;
            peer = 0 }
    :: atomic { false ->
        park:
            drop_first(peer); bulk_ring[IX(peer, me)]--; parked[IX(peer, me)]++; peer = 0 }
    :: atomic { false ->
        take_bulk:
            printf("%d: bulk from %d\n", me, peer);
            if
            :: bulk_got[IX(peer, me)] == 0 -> stacks[me] = stacks[me] - BULK_STACKS
            :: else
            fi;
            parked[IX(peer, me)]--;
            bulk_got[IX(peer, me)]++;
            if
            :: parked[IX(peer, me)] == 0 -> pinned[IX(peer, me)] = 0
            :: else
            fi;
            if
            :: bulk_got[IX(peer, me)] == 3 -> bulk_got[IX(peer, me)] = 0; stacks[me] = stacks[me] + BULK_STACKS
            :: else
            fi;
            peer = 0 }
    :: atomic { false ->
        run_whole: /* on the caller's stack */
            open_message(peer); handle_first(peer); handle_last(peer); peer = 0 }
    :: atomic { false ->
        start: /* on a stack of its own, and suspend */
            stacks[me]--; handler[IX(peer, me)] = SUSPENDED; open_message(peer); handle_first(peer); peer = 0 }
    :: atomic { false ->
        collect_first:
            printf("%d: no stack for the message from %d: it is collected\n", me, peer);
            handler[IX(peer, me)] = COLLECTING; open_message(peer); collected[IX(peer, me)]++; peer = 0 }
    :: atomic { false ->
        collect:
            drop_first(peer); collected[IX(peer, me)]++; peer = 0 }
    :: atomic { false ->
        run_collected: /* whole: on the caller's stack */
            drop_first(peer); collected[IX(peer, me)] = 0; handler[IX(peer, me)] = IDLE;
            handle_first(peer); handle_last(peer); peer = 0 }
    :: atomic { false ->
        start_collected:
            stacks[me]--; handler[IX(peer, me)] = SUSPENDED; collected[IX(peer, me)] = 0; handle_first(peer); peer = 0 }
    :: atomic { false ->
        resume:
            if
            :: LAST(peer) ->
                drop_first(peer); handler[IX(peer, me)] = IDLE; stacks[me]++; assert(stacks[me] <= STACKS);
                handle_last(peer)
            :: else -> drop_first(peer)
            fi;
            peer = 0 }
    :: atomic { false ->
        run_passing: /* an answer or a forwarded message: its handler sends nothing */
            if
            :: HAS(first[IX(peer, me)], IS_ANSWER) -> answered[me] = 1
            :: else
            fi;
            drop_first(peer); peer = 0 }
    od
}

#ifdef BUG_NO_EMPTY_ANSWER
#define OWED_DONE(i) true /* wrong, but what it must be found by is the program that can ask no more */
#else
#define OWED_DONE(i) (owed[i] == 0)
#endif
#ifdef BULK_MISSING
#define BULK_DONE(i) true /* it cannot be; lane 0 is what counts */
#else
#define BULK_DONE(i) (posts[i] == 0 && bulk_got[i] == 0 && parked[i] == 0 && pinned[i] == 0)
#endif
#define ONE_DONE(i)                                                                                                    \
    (count[i] == 0 && handler[i] == IDLE && collected[i] == 0 && kept[i] == 0 && answers[i] == 0 &&                    \
     reserved[i] == 0 && deferred[i] == 0 && OWED_DONE(i) && !get[i] && !got[i] && BULK_DONE(i) && later[i] == 0 && later_answer[i] == 0 && !open[i])

init
{
    byte i;
    atomic {
        do
        :: i < NP -> stacks[i] = STACKS; run process(i); i++
        :: else -> break
        od;
        i = 0
    }
    timeout; /* nothing moves any more */
    d_step {
        do
        :: i < NP -> assert(finished[i] && stacks[i] == STACKS); i++
        :: else -> break
        od;
        i = 0;
        do
        :: i < ALL -> assert(ONE_DONE(i)); i++
        :: else -> break
        od;
        i = 0
    }
}
