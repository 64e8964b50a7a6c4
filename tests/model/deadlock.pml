/* deadlock.pml - the rule that lets everybody wait without a deadlock, with finite rings, grants, answer room and stacks.
 *
 * Mirrors src/stream/ (begin, piece, end, dispatch, suspend, reply, keep) and the progress calls of src/endpoint/; the rule itself
 * (a to g) is in doc/DESIGN.md. Rings and wake-ups are exact here: ring_publish.pml and sleep_wake.pml show that they may be.
 *
 * NP processes. Each program starts MSGS messages of the kinds in KINDS, to peers of its choice, one packet at a time; lane 0 from p to
 * q holds RING packets and is granted GRANT of them not yet received by a handler; lane 1 back has room for ANSWERS answers; each
 * process has STACKS handler stacks. A packet is 1 unit, an answer 1 unit; lengths are 1 packet, 2 (more than a ring of 1, fits the
 * grant) and 3 (exceeds the grant of 2). A handler runs in one step: it never waits. Which of the possible steps a process takes
 * is free, so any order of polling is covered; every process keeps calling in (rule g). A state where nothing can move must be
 * the end: everything sent has been handled, everything taken given back. All runs are finite, so that is "all gets delivered".
 *
 * The rule, as modelled:
 *  a  a request that may be answered is dispatched only when the answer fits lane 1; its room is reserved until the answer or the
 *     return. -DASKER_COUNTS: besides, an asker has at most ANSWERS answers outstanding (then a handler that does not answer
 *     must make the library send an empty answer).
 *  b  inside a handler a send goes out whole at once or is left to the program, which sends it later, or while it waits.
 *  c  a send outside handlers that finds no room takes in lanes 1 and 2 and runs lane-0 handlers.
 *  d  a (peer, lane) has one open message: a handler that wants to send to a peer its program has a stream open to finds it busy.
 *     A suspended handler takes every byte that arrives.
 *  e  with no stack free, a message that fits what is left of the grant is collected until it is whole OR a stack is free; a longer one
 *     waits for a stack. Collected bytes leave the ring and stay on the grant.
 *  f  the kinds that wait inside a stream wait for the answer of that very stream's handler (HALF: on lane 1, FM_HALF: on
 *     lane 0); only OVERLAP and GET do more.
 *  KEEP may withhold the grant down to one packet, not below; kept messages are freed by the program when it is in no call.
 *
 * -DPASS: a message that is sent whole passes between the packets of an open stream (it cures FM_HALF, see there).
 * Planted bugs: every BUG_ macro; places where the rule does not protect: every LIMIT_ macro, found as deadlocks too.
 *   LIMIT_FM_HALF   two programs each with half a stream out to the other, waiting for its handler's lane-0 answer: each handler finds
 *                   the way back busy, each program can send what it was left only after its own stream. Needs no shortage of anything.
 *   LIMIT_STACKS    a program that begins a second stream before the first has ended needs, at every process, a stack for each peer:
 *                   with fewer, the first stream can hold the stack the second one waits for, in a circle. */

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
#define PEER(q) true /* a process may talk to itself */
#else
#define PEER(q) ((q) != me)
#endif

/* What a program may send. */
#define SHORT 1
#define REQUEST 2   /* short, may be answered */
#define FORWARD 4   /* short, its handler sends a short one to somebody */
#define MEDIUM 8
#define LONG 16
#define LONG_REQUEST 32
#define HALF 64     /* medium: after its first packet the sender waits for the handler's answer on lane 1 */
#define FM_HALF 128 /* the same, the answer is a message on lane 0 */
#define OVERLAP 256 /* medium: after its first packet the sender sends a long one to somebody else */
#define KEPT 512    /* short, its handler may keep it */
#define ASK_WAIT 1024 /* short request; the program waits for the answer before it does anything else, frees included */
#define HOLD 4096   /* medium: its handler opens a stream to the third process on the first packet and ends it when it returns */
#define HOLD_OVERLAP 8192 /* both */
#define AWAIT 16384 /* medium: after its first packet the sender waits for a message that the third program sends it anyway */
#define GET 2048    /* long request: after its first packet the sender does a lane-2 get to the same peer and waits for it */
#ifndef KINDS
#define KINDS (SHORT + REQUEST + FORWARD + MEDIUM + LONG + LONG_REQUEST + HALF)
#endif
#define MAY(kind) (((KINDS) / (kind)) % 2 == 1 && todo > 0 && pc == TOP && !waits)

/* What a packet says: flags, and packets left in its message, this one included. */
#define ANSWERED 4  /* may be answered on lane 1 */
#define EARLY 8     /* its handler answers on the first packet */
#define EARLY0 16   /* its handler answers on the first packet, on lane 0 */
#define IS_ANSWER 32 /* that answer */
#define FORWARDS 64
#define KEEPS 128
#define HOLDS 512
#define PASSING 256 /* whole, between the packets of an open message */
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
byte collected[ALL]; /* taken out of the ring, waiting to be whole */
byte kept[ALL];
bit open[ALL];       /* p's program has a stream open to q */
/* The handler of that lane, at q. */
#define IDLE 0
#define SUSPENDED 1  /* holds a stack */
#define COLLECTING 2
byte handler[ALL];
short incoming[ALL]; /* what its message's first packet said; ANSWERED is taken out once answered */
/* Lane 1, p to q. */
byte answers[ALL];
byte reserved[ALL];
byte owed[ALL];      /* q's count of p's answers to come: index as the request, p to q */
/* Lane 2. */
bit get[ALL];
bit got[ALL];        /* its answer, on lane 1, p to q */
/* Sends that p's handlers left to p's program. */
byte later[ALL];
byte later_answer[ALL];

/* Room that a suspended handler of q has reserved in its open stream to the third process: index p to q of what it handles. */
bit holding[ALL];
bit promised[ALL];   /* the same by the lane it is in */

byte stacks[NP];
bit answered[NP];    /* the answer on lane 0 is here */
bit served[NP];      /* the get is done */
bit finished[NP];    /* its program has sent all it had to */

#define ROOM(p, q)                                                                                                          \
    (count[IX(p, q)] + promised[IX(p, q)] < RING &&                                                                           \
     count[IX(p, q)] + promised[IX(p, q)] + collected[IX(p, q)] + kept[IX(p, q)] < GRANT)
#define FITS(p, q) (LEFT(first[IX(p, q)]) <= GRANT - kept[IX(p, q)])
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
#ifdef PASS
#define WAY_FREE(q) true
#else
#define WAY_FREE(q) (!open[IX(me, q)])
#endif

inline put(q, what)
{
    printf("%d: packet to %d, flags %d, %d left\n", me, q, (what) - LEFT(what), LEFT(what));
    assert(ROOM(me, q));
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
#if RING > 1
    first[IX(p, me)] = second[IX(p, me)];
    second[IX(p, me)] = 0;
#else
    first[IX(p, me)] = 0;
#endif
    count[IX(p, me)]--
}

/* A send inside a handler (rule b): whole, at once, or left to the program. */
inline send_inside(q, what, left)
{
    if
    :: ROOM(me, q) && WAY_FREE(q) -> put(q, what + 1 + (open[IX(me, q)] -> PASSING : 0))
#ifdef BUG_HANDLER_WAITS
    :: else -> assert(!waits); waits = 1; wait_for = q; wait_what = what
#else
    :: else -> left++; printf("%d: handler finds no room or busy to %d, leaves it to the program\n", me, q)
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
    printf("%d: answers %d on lane 1\n", me, p);
    incoming[IX(p, me)] = incoming[IX(p, me)] - ANSWERED
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
    :: !HAS(incoming[IX(p, me)], ANSWERED)
    fi;
    if
    :: HAS(incoming[IX(p, me)], EARLY0) -> send_inside(p, IS_ANSWER, later_answer[IX(me, p)])
#if NP > 2
    :: HAS(incoming[IX(p, me)], HOLDS) && ROOM(me, THIRD(p)) && !open[IX(me, THIRD(p))] ->
        holding[IX(p, me)] = 1; promised[IX(me, THIRD(p))] = 1; open[IX(me, THIRD(p))] = 1
#endif
    :: else
    fi
}
/* Its code from the last packet to its return. */
inline handle_last(p)
{
    printf("%d: handler of the message from %d returns\n", me, p);
    if
    :: HAS(incoming[IX(p, me)], ANSWERED) -> reply(p) /* the handler's, or the library's empty one */
#ifdef BUG_NO_EMPTY_ANSWER
    :: HAS(incoming[IX(p, me)], ANSWERED) -> reserved[IX(me, p)]--
#endif
    :: else
    fi;
    if
    :: HAS(incoming[IX(p, me)], FORWARDS) ->
        if
        :: true -> send_inside((me + 1) % NP, 0, later[IX(me, (me + 1) % NP)])
#if NP > 2
        :: true -> send_inside((me + 2) % NP, 0, later[IX(me, (me + 2) % NP)])
#endif
        fi
    :: else
    fi;
#if NP > 2
    if
    :: holding[IX(p, me)] ->
        holding[IX(p, me)] = 0; promised[IX(me, THIRD(p))] = 0; open[IX(me, THIRD(p))] = 0;
        put(THIRD(p), 1)
    :: else
    fi;
#endif
    if
    :: HAS(incoming[IX(p, me)], IS_ANSWER) -> answered[me] = 1
    :: else
    fi;
    if
#ifdef BUG_KEEP_ALL
    :: HAS(incoming[IX(p, me)], KEEPS) -> kept[IX(p, me)]++
#else
    :: HAS(incoming[IX(p, me)], KEEPS) && kept[IX(p, me)] + 1 < GRANT -> kept[IX(p, me)]++
#endif
    :: true
    fi;
    incoming[IX(p, me)] = 0
}

/* Lane 0 from p, one packet. */
#define NEW(p) (count[IX(p, me)] > 0 && handler[IX(p, me)] == IDLE && MAY_RUN(p, first[IX(p, me)]))
#define AT_LAST(p) (LEFT(first[IX(p, me)]) == 1)
#ifdef BUG_UNFIT_COLLECTED
#define COLLECTABLE(p) true
#else
#define COLLECTABLE(p) FITS(p, me)
#endif
#ifdef BUG_SUSPENDED_HOLDS_RING
#define TAKES(p) (count[IX(p, me)] >= LEFT(first[IX(p, me)]))
#else
#define TAKES(p) true
#endif

#define LANE0_FROM(p)                                                                                                       \
    :: atomic { PEER(p) && HANDLERS && NEW(p) && AT_LAST(p) -> /* whole: on the caller's stack */                             \
            incoming[IX(p, me)] = first[IX(p, me)]; drop_first(p); handle_first(p); handle_last(p) }                          \
    :: atomic { PEER(p) && HANDLERS && NEW(p) && !AT_LAST(p) && stacks[me] > 0 ->                                             \
            stacks[me]--; handler[IX(p, me)] = SUSPENDED;                                                                     \
            incoming[IX(p, me)] = first[IX(p, me)]; drop_first(p); handle_first(p) }                                          \
    :: atomic { PEER(p) && HANDLERS && count[IX(p, me)] > 0 && handler[IX(p, me)] == IDLE && !AT_LAST(p) &&                   \
            stacks[me] == 0 && COLLECTABLE(p) ->                                                                              \
            handler[IX(p, me)] = COLLECTING;                                                                                  \
            incoming[IX(p, me)] = first[IX(p, me)]; drop_first(p); collected[IX(p, me)]++;                                     \
            printf("%d: no stack for the message from %d, collects\n", me, p) }                                                \
    :: atomic { PEER(p) && HANDLERS && handler[IX(p, me)] == SUSPENDED && count[IX(p, me)] > 0 && TAKES(p) &&                 \
            !HAS(first[IX(p, me)], PASSING) ->                                                                                \
            if                                                                                                                \
            :: AT_LAST(p) -> drop_first(p); handler[IX(p, me)] = IDLE; stacks[me]++; handle_last(p)                           \
            :: else -> drop_first(p)                                                                                          \
            fi }                                                                                                              \
    :: atomic { PEER(p) && HANDLERS && handler[IX(p, me)] == COLLECTING && count[IX(p, me)] > 0 && !AT_LAST(p) ->             \
            drop_first(p); collected[IX(p, me)]++ }                                                                           \
    :: atomic { PEER(p) && HANDLERS && handler[IX(p, me)] == COLLECTING && count[IX(p, me)] > 0 && AT_LAST(p) &&              \
            !HAS(first[IX(p, me)], PASSING) && MAY_RUN(p, incoming[IX(p, me)]) ->                                             \
            drop_first(p); collected[IX(p, me)] = 0; handler[IX(p, me)] = IDLE; handle_first(p); handle_last(p) }             \
    COLLECTING_TO_STACK(p)                                                                                                    \
    PASSING_FROM(p)                                                                                                           \
    :: atomic { PEER(p) && LANE1 && answers[IX(p, me)] > 0 -> answers[IX(p, me)]--; owed[IX(me, p)]-- }                       \
    LANE2_FROM(p)

#ifdef BUG_WHOLE_ONLY
#define COLLECTING_TO_STACK(p)
#else
#define COLLECTING_TO_STACK(p)                                                                                              \
    :: atomic { PEER(p) && HANDLERS && handler[IX(p, me)] == COLLECTING && stacks[me] > 0 && MAY_RUN(p, incoming[IX(p, me)]) -> \
            stacks[me]--; handler[IX(p, me)] = SUSPENDED; collected[IX(p, me)] = 0; handle_first(p) }
#endif
#ifdef PASS
/* Its handler runs at once, beside the one that is suspended. */
#define PASSING_FROM(p)                                                                                                     \
    :: atomic { PEER(p) && HANDLERS && handler[IX(p, me)] != IDLE && count[IX(p, me)] > 0 && HAS(first[IX(p, me)], PASSING) -> \
            if                                                                                                                \
            :: HAS(first[IX(p, me)], IS_ANSWER) -> answered[me] = 1                                                           \
            :: else                                                                                                           \
            fi;                                                                                                               \
            drop_first(p) }
#else
#define PASSING_FROM(p)
#endif
#if ((KINDS) / GET) % 2
#define LANE2_FROM(p)                                                                                                       \
    :: atomic { PEER(p) && get[IX(p, me)] && GET_FITS(me, p) -> get[IX(p, me)] = 0; got[IX(me, p)] = 1 }                      \
    :: atomic { PEER(p) && got[IX(p, me)] -> got[IX(p, me)] = 0; served[me] = 1 }
#else
#define LANE2_FROM(p)
#endif

/* Where the program is. */
#define TOP 0     /* in extract or wait, no stream open */
#define STREAM 1  /* in a piece */
#define WAITING 2 /* in extract, a stream open: the HALF kinds */
#define STREAM2 3 /* in a piece of the second stream */
#define ASKED 4
#define GETTING 5
#define BEGINNING 6 /* the way is busy */
#define BEGINNING2 7

#ifdef BUG_SEND_NO_HANDLERS
#define HANDLERS (!waits && pc != STREAM && pc != STREAM2 && pc != BEGINNING && pc != BEGINNING2)
#else
#define HANDLERS (!waits)
#endif
#ifdef BUG_SEND_NO_LANE1
#define LANE1 (!waits && pc != STREAM && pc != STREAM2 && pc != BEGINNING && pc != BEGINNING2)
#else
#define LANE1 (!waits)
#endif
#ifdef ASKER_COUNTS
#define MAY_ASK(q) (owed[IX(me, q)] < ANSWERS)
#else
#define MAY_ASK(q) true
#endif
#if defined(POSTED)
#define MAY_SEND_LATER (!waits)
#elif defined(BUG_DEFER_TO_END)
#define MAY_SEND_LATER (!waits && pc == TOP)
#else
#define MAY_SEND_LATER (!waits && (pc == TOP || pc == WAITING))
#endif

inline begin(q, flags, packets)
{
    printf("%d: program begins to %d, flags %d, %d packets\n", me, q, flags, packets);
    dest = q; what = flags; left = packets; started = 0; todo--;
    if
    :: open[IX(me, q)] -> pc = BEGINNING /* by a handler that is suspended */
    :: else -> open[IX(me, q)] = 1; pc = STREAM
    fi
}
inline begin_ask(q, flags, packets)
{
    begin(q, ANSWERED + flags, packets);
    owed[IX(me, q)]++
}

#define PROGRAM_TO(q)                                                                                                       \
    :: atomic { PEER(q) && MAY(SHORT) -> begin(q, 0, 1) }                                                                     \
    :: atomic { PEER(q) && MAY(REQUEST) && MAY_ASK(q) -> begin_ask(q, 0, 1) }                                                 \
    :: atomic { PEER(q) && MAY(FORWARD) -> begin(q, FORWARDS, 1) }                                                            \
    :: atomic { PEER(q) && MAY(MEDIUM) -> begin(q, 0, 2) }                                                                    \
    :: atomic { PEER(q) && MAY(LONG) -> begin(q, 0, 3) }                                                                      \
    :: atomic { PEER(q) && MAY(LONG_REQUEST) && MAY_ASK(q) -> begin_ask(q, 0, 3) }                                            \
    :: atomic { PEER(q) && MAY(HALF) && MAY_ASK(q) -> begin_ask(q, EARLY, 2); then = WAITING }                                \
    :: atomic { PEER(q) && MAY(FM_HALF) -> begin(q, EARLY0, 2); then = WAITING; answered[me] = 0 }                            \
    :: atomic { q != me && MAY(OVERLAP) -> begin(q, 0, 2); then = BEGINNING2 }                                                   \
    :: atomic { PEER(q) && MAY(HOLD) -> begin(q, HOLDS, 2) }                                                             \
    :: atomic { q != me && MAY(AWAIT) -> begin(q, 0, 2); then = WAITING; later_answer[IX(THIRD(q), me)]++ }                   \
    :: atomic { q != me && MAY(HOLD_OVERLAP) -> begin(q, HOLDS, 2); then = BEGINNING2 }                      \
    :: atomic { PEER(q) && MAY(KEPT) -> begin(q, KEEPS, 1) }                                                                  \
    :: atomic { PEER(q) && MAY(ASK_WAIT) && MAY_ASK(q) -> begin_ask(q, 0, 1); then = ASKED }                                  \
    :: atomic { PEER(q) && MAY(GET) && MAY_ASK(q) -> begin_ask(q, 0, 3); then = GETTING }                                     \
    /* what handlers left, one at a time */                                                                                   \
    :: atomic { PEER(q) && MAY_SEND_LATER && later[IX(me, q)] > 0 && ROOM(me, q) && WAY_FREE(q) ->                            \
            later[IX(me, q)]--; put(q, 1 + (open[IX(me, q)] -> PASSING : 0)) }                                                \
    :: atomic { PEER(q) && MAY_SEND_LATER && later_answer[IX(me, q)] > 0 && ROOM(me, q) && WAY_FREE(q) ->                     \
            later_answer[IX(me, q)]--; put(q, IS_ANSWER + 1 + (open[IX(me, q)] -> PASSING : 0)) }                             \
    :: atomic { PEER(q) && pc == TOP && !waits && kept[IX(q, me)] > 0 -> kept[IX(q, me)]-- }

proctype process(byte me)
{
    byte pc, then, dest, left, left2, todo = MSGS;
    short what;
    bit started, waits;
    byte wait_for;
    short wait_what;
end:
    do
    LANE0_FROM(0)
    LANE0_FROM(1)
    PROGRAM_TO(0)
    PROGRAM_TO(1)
#if NP > 2
    LANE0_FROM(2)
    PROGRAM_TO(2)
#endif
    :: atomic { pc == BEGINNING && !waits && !open[IX(me, dest)] -> open[IX(me, dest)] = 1; pc = STREAM }
    :: atomic { pc == STREAM && !waits && ROOM(me, dest) ->
            put(dest, what + left);
            left--;
            if
            :: !started -> started = 1;
                if
                :: then != 0 && then != ASKED -> pc = then; then = 0;
                    if
                    :: pc == GETTING -> served[me] = 0; get[IX(me, dest)] = 1
                    :: else
                    fi
                :: else
                fi
            :: else
            fi;
            if
            :: left == 0 -> open[IX(me, dest)] = 0; what = 0; started = 0;
                if
                :: then == ASKED -> then = 0; pc = ASKED
                :: else -> dest = 0; pc = TOP
                fi
            :: else
            fi }
#if NP > 2
    :: atomic { pc == BEGINNING2 && !waits && !open[IX(me, THIRD(dest))] -> open[IX(me, THIRD(dest))] = 1; left2 = 3; pc = STREAM2 }
    :: atomic { pc == STREAM2 && !waits && ROOM(me, THIRD(dest)) ->
            put(THIRD(dest), left2);
            left2--;
            if
            :: left2 == 0 -> open[IX(me, THIRD(dest))] = 0; pc = STREAM
            :: else
            fi }
#endif
    :: atomic { pc == WAITING && !waits && !HAS(what, EARLY) && answered[me] -> answered[me] = 0; pc = STREAM }
    :: atomic { pc == WAITING && !waits && HAS(what, EARLY) && owed[IX(me, dest)] == 0 -> pc = STREAM }
    :: atomic { pc == ASKED && !waits && owed[IX(me, dest)] == 0 -> dest = 0; pc = TOP }
    :: atomic { pc == GETTING && !waits && served[me] -> served[me] = 0; pc = STREAM }
#ifdef BUG_HANDLER_WAITS
    :: atomic { waits && ROOM(me, wait_for) && !open[IX(me, wait_for)] -> put(wait_for, wait_what + 1); waits = 0; wait_for = 0; wait_what = 0 }
#endif
#ifdef BUG_REPLY_NO_RESERVE
    :: atomic { waits && ANSWER_FITS(me, wait_for) -> answers[IX(me, wait_for)]++; waits = 0; wait_for = 0; wait_what = 0 }
#endif
    :: atomic { pc == TOP && todo == 0 && !finished[me] -> finished[me] = 1 }
    od
}

#ifdef BUG_NO_EMPTY_ANSWER
#define OWED_DONE(i) true /* wrong, but what it must be found by is the program that can ask no more */
#else
#define OWED_DONE(i) (owed[i] == 0)
#endif
#define ONE_DONE(i)                                                                                                         \
    (count[i] == 0 && handler[i] == IDLE && collected[i] == 0 && kept[i] == 0 && answers[i] == 0 && reserved[i] == 0 &&       \
     OWED_DONE(i) && !get[i] && !got[i] && later[i] == 0 && later_answer[i] == 0 && !open[i])

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
