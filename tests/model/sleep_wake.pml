/* sleep_wake.pml - arming, the heavy fence and the bell, on x86-TSO: nobody sleeps for ever with work there.
 *
 * Mirrors src/endpoint/wait.c (arm_and_look, sleep_until, rnl_ep_empty), rnl_ep_busy of src/endpoint/arm.c, src/endpoint/poll.c
 * (demote, rnl_ep_look_armed, rnl_ep_promote, rnl_ep_check_bell_slow), rnl_ep_ring_bell of src/endpoint/net.c, rnl_tx_armed of
 * src/ring/ring.h, and rnl_rx_advertise with its wake-up.
 *
 * SENDERS processes send MSGS messages each, through a ring of ROOM lines each, to one receiver, which owns an armed
 * word per pair and one bell. Each arming has a number of its own, 0 = not armed; whoever has rung for it does not ring
 * for it again. A sender that needs room (NEED lines at once) and
 * finds none sleeps in the same way on its own bell, armed towards the receiver. One step is one access to shared
 * memory; stores wait in the FIFO store buffer of their process and drain at any later moment (x86-TSO); locked
 * operations wait for the own buffer. A heavy fence waits for the own buffer and then, one process after the other,
 * for everybody else's. The futex compares and sleeps in one step and HAS NO TIME-OUT: the belt of the real code (a
 * time-out, a full look every millisecond) must not be what makes it work.
 *
 * Proved, for these sizes: every message is taken, whatever the timing; no lost wake-up in either direction (a stuck
 * state fails the assertion at the end). The receiver tells lazily: after TELL lines, and before it sleeps.
 *
 * -DFD: the receiver sleeps in epoll on its eventfd instead, takes one message a call, and is armed until one comes
 * (level-triggered); besides, it must not stay readable for nothing.
 * -DCOLD: the receiver polls only some of its rings and the bell's word; the others are cold: armed, without WAKE, so
 * that a ring costs no system call. It cools what is still and sleeps whenever chance says so. While it is awake it
 * polls for ever: there are no rounds, no look but those that the protocol needs.
 * -DSENDERS_FENCE: no heavy fence to be had; whoever publishes or tells fences before it reads armed.
 * -DSPOILER: a stranger that can write the bell takes a ring of it back: that does lose wake-ups, it is what the
 * time-out is for, and with COLD what the rounds are for. With FD it loses none (the descriptor was raised before), but may leave it readable for nothing.
 * Planted bugs: every BUG_ macro below; scripts/check-models wants each of them found. */

#define SENDERS 2
#define R SENDERS /* the receiver's number */
#ifndef MSGS0
#define MSGS0 2
#endif
#ifndef MSGS1
#define MSGS1 2
#endif
#ifndef ROOM
#define ROOM 2
#endif
#ifndef NEED
#define NEED 1
#endif
#ifndef TELL
#define TELL 2
#endif
#ifndef STORES
#define STORES 2
#endif
#ifndef ARMS
#define ARMS 6 /* COLD: it cools or sleeps while there were fewer armings */
#endif

/* Shared memory. */
byte published[SENDERS]; /* headers: messages visible in ring s */
byte position[SENDERS];  /* of ring s, told by the receiver */
byte armed[SENDERS];     /* receiver's, towards sender s: the number of its arming */
byte sender_armed[SENDERS];
byte word[SENDERS + 1];  /* futex words: the senders' bells, the receiver's */
bit readable;            /* receiver's eventfd */

bit asleep[SENDERS + 1]; /* the kernel's */
byte taken[SENDERS];     /* receiver's private reading position */
bit finished[SENDERS];

#define PUBLISHED 1
#define POSITION 2
#define ARMED 3
#define SENDER_ARMED 4
chan buffer[SENDERS + 1] = [STORES] of { byte, byte, byte };

proctype drain(byte me)
{
    byte what, where, value;
end:
    do
    :: d_step {
            buffer[me]?what, where, value;
            if
            :: what == PUBLISHED -> published[where] = value
            :: what == POSITION -> position[where] = value
            :: what == ARMED -> armed[where] = value
            :: what == SENDER_ARMED -> sender_armed[where] = value
            fi;
            what = 0; where = 0; value = 0 }
    od
}

#define MSGS(s) (s -> MSGS1 : MSGS0)
#define OWN_FENCE empty(buffer[me])

/* Stores before, as all others see them, come before loads after. */
inline heavy_fence()
{
#ifdef SENDERS_FENCE
#ifndef BUG_SLEEPER_NO_FENCE
    OWN_FENCE;
#else
    skip;
#endif
#else
#ifndef BUG_NO_FENCE
    OWN_FENCE;
#else
    skip;
#endif
#if !defined(BUG_NO_FENCE) && !defined(BUG_NO_MEMBARRIER)
    do
    :: fenced <= SENDERS -> empty(buffer[fenced]); fenced++
    :: else -> break
    od;
    fenced = 0
#endif
#endif
}

/* Between publishing (or telling) and reading armed. */
inline light_fence()
{
#if defined(SENDERS_FENCE) && !defined(BUG_PUBLISHER_NO_FENCE)
    OWN_FENCE
#else
    skip
#endif
}

/* An arming of the receiver, COLD: its number * 4 + 1 if a system call is needed to wake it + 2 if the ring is cold.
 * Then whoever rang rings again, without a system call: what it rang for may have been taken before the ring was
 * cooled. */
#define wakes(arming) ((arming & 1) && rings_first)
#if defined(COLD) && !defined(BUG_COLD_RINGS_ONCE)
#define again(arming, whom) (whom == R && (arming & 2))
#else
#define again(arming, whom) false
#endif

inline wake(whom)
{
#if defined(FD) && !defined(BUG_FD_RAISED_LATE)
    if
    :: whom == R -> readable = 1 /* first: who finds the word unchanged must not find it readable later */
    :: else
    fi;
#endif
    word[whom]++;
#ifdef COLD
    if
    :: whom != R || wakes(seen_armed) -> asleep[whom] = 0
    :: else
    fi;
#else
    asleep[whom] = 0;
#endif
#if defined(FD) && defined(BUG_FD_RAISED_LATE)
    if
    :: whom == R -> readable = 1
    :: else
    fi
#endif
}

/* Ring a bell, once for each arming of a sleeper. */
inline ring(number, rang, whom)
{
    seen_armed = number;
    if
    :: seen_armed != 0 && (seen_armed != rang || again(seen_armed, whom)) ->
        rings_first = seen_armed != rang;
        rang = seen_armed;
        OWN_FENCE; /* the locked addition to the word */
        wake(whom)
    :: else
    fi;
    rings_first = 0;
    seen_armed = 0
}

inline futex_wait(whom, expected)
{
    atomic {
        if
        :: word[whom] == expected -> asleep[whom] = 1
        :: else
        fi
    }
    expected = 0;
end_asleep: /* the assertion at the end decides whether that was right */
    !asleep[whom]
}

proctype sender(byte me)
{
    byte sent, known, expected, fenced, seen_armed, rang, arms;
    bit rings_first;
    do
    :: sent == MSGS(me) -> break
    :: sent < MSGS(me) ->
        do
        :: sent + NEED - known <= ROOM -> break
        :: else ->
            known = position[me];
            if
            :: sent + NEED - known <= ROOM -> break
            :: else
            fi;
            /* Sleep until there is room. */
            expected = word[me];
            arms++;
            buffer[me]!SENDER_ARMED, me, arms;
            heavy_fence();
            known = position[me];
            if
            :: sent + NEED - known > ROOM -> futex_wait(me, expected)
            :: else -> expected = 0
            fi;
            buffer[me]!SENDER_ARMED, me, 0
        od;
#ifdef BUG_ARMED_FIRST
        seen_armed = armed[me];
        sent++;
        buffer[me]!PUBLISHED, me, sent;
        ring(seen_armed, rang, R)
#else
        sent++;
        buffer[me]!PUBLISHED, me, sent;
        light_fence();
        ring(armed[me], rang, R)
#endif
    od;
    finished[me] = 1
}

#define HERE(s) (published[s] > taken[s])

/* Take one message; tell when enough were taken. */
inline take(s)
{
    d_step { taken[s]++; assert(taken[s] <= published[s]) }
    if
    :: taken[s] - told[s] >= TELL -> tell(s)
    :: else
    fi
}
inline tell(s)
{
    told[s] = taken[s];
    buffer[me]!POSITION, s, told[s];
    light_fence();
#ifndef BUG_TELL_NO_RING
    ring(sender_armed[s], rang[s], s)
#endif
}
inline arm()
{
#ifdef BUG_SAME_ARM
    arms = 1;
#else
    arms++;
#endif
    buffer[me]!ARMED, 0, arms;
    buffer[me]!ARMED, 1, arms
}
inline disarm()
{
    buffer[me]!ARMED, 0, 0;
    buffer[me]!ARMED, 1, 0
}

inline tell_all()
{
    do
    :: s < SENDERS && told[s] < taken[s] -> tell(s)
    :: s < SENDERS && told[s] == taken[s] -> s++
    :: s == SENDERS -> s = 0; break
    od
}
/* The look that counts. */
inline look_again()
{
    do
    :: s < SENDERS && HERE(s) -> found = 1; s = SENDERS
    :: s < SENDERS && !HERE(s) -> s++
    :: s == SENDERS -> s = 0; break
    od
}
inline arm_and_look()
{
#ifndef BUG_NO_TELL_BEFORE_SLEEP
    tell_all();
#endif
#ifdef BUG_FENCE_FIRST
    heavy_fence();
    arm();
#else
    arm();
    heavy_fence();
#endif
#ifndef BUG_NO_LOOK
    look_again();
#endif
    skip
}
#define NOTHING (!HERE(0) && !HERE(1)) /* two loads in one step: only the look after the fence counts */

#ifdef COLD
inline arm_one(i, asking)
{
    arms++;
    buffer[me]!ARMED, i, arms * 4 + asking + (hot[i] -> 0 : 2)
}
/* As rnl_ep_arm: asking says that somebody is going to sleep. */
inline arm_as_is(asking)
{
    do
    :: s < SENDERS && (asking || !hot[s]) -> arm_one(s, asking); s++
    :: s < SENDERS && !asking && hot[s] -> buffer[me]!ARMED, s, 0; s++
    :: s == SENDERS -> s = 0; break
    od
}
inline warm(i)
{
    hot[i] = 1;
    buffer[me]!ARMED, i, 0
}
inline look_cold()
{
#ifndef BUG_SEEN_LATE
    seen = word[R];
#endif
    do
    :: s < SENDERS && !hot[s] && HERE(s) -> warm(s); s++
    :: s < SENDERS && (hot[s] || !HERE(s)) -> s++
    :: s == SENDERS -> s = 0; break
    od;
#ifdef BUG_SEEN_LATE
    seen = word[R]
#else
    skip
#endif
}
#define MAY_COOL (hot[0] || hot[1])

proctype receiver()
{
    byte me = R;
    byte told[SENDERS], rang[SENDERS], arms, seen_armed;
    bit rings_first;
    byte expected, fenced, s, seen;
    bit hot[SENDERS], found;
    d_step { hot[0] = 1; hot[1] = 1 }
end_awake: /* the assertion at the end decides whether that was right */
    do /* what is not executable here is polled in vain */
    :: hot[0] && HERE(0) -> take(0)
    :: hot[1] && HERE(1) -> take(1)
    :: !(hot[0] && hot[1]) && word[R] != seen -> look_cold()
    :: MAY_COOL && arms < ARMS -> /* some of them */
        do
        :: s < SENDERS && hot[s] ->
            if
            :: hot[s] = 0;
                if
                :: told[s] < taken[s] -> tell(s)
                :: else
                fi;
                arm_one(s, 0)
            :: skip
            fi;
            s++
        :: s < SENDERS && !hot[s] -> s++
        :: s == SENDERS -> s = 0; break
        od;
#ifndef BUG_COOL_NO_FENCE
        heavy_fence();
#endif
#ifndef BUG_COOL_NO_LOOK
        look_cold()
#endif
    :: arms < ARMS -> /* sleep */
        expected = word[R];
        tell_all();
#ifdef BUG_COLD_SLEEPS_UNARMED
        do
        :: s < SENDERS && hot[s] -> arm_one(s, 1); s++
        :: s < SENDERS && !hot[s] -> s++
        :: s == SENDERS -> s = 0; break
        od;
#else
        arm_as_is(1);
#endif
        heavy_fence();
        do
#ifdef BUG_COLD_NOT_LOOKED
        :: s < SENDERS && hot[s] && HERE(s) -> found = 1; s = SENDERS
        :: s < SENDERS && !(hot[s] && HERE(s)) -> s++
#else
        :: s < SENDERS && HERE(s) -> found = 1; hot[s] = 1; s = SENDERS
        :: s < SENDERS && !HERE(s) -> s++
#endif
        :: s == SENDERS -> s = 0; break
        od;
        if
        :: found -> found = 0; expected = 0
        :: else -> futex_wait(R, expected);
            look_cold()
        fi;
        arm_as_is(0)
    od
}
#elif defined(FD)
proctype receiver()
{
    byte me = R;
    byte told[SENDERS], rang[SENDERS], arms, seen_armed;
    bit rings_first;
    byte now, seen, fenced, s;
    bit found, fd_armed;
extract:
#ifdef BUG_FD_CLEAR_ALWAYS
    readable = 0;
#endif
    if
    :: HERE(0) -> take(0); goto busy
    :: HERE(1) -> take(1); goto busy
    :: NOTHING
    fi;
    now = word[R];
    if
    :: fd_armed && now == seen -> /* nobody rang since: the descriptor is as it should be */
        now = 0;
        assert(!(readable && finished[0] && finished[1] && word[R] == seen)); /* else readable for nothing, for ever */
        goto sleep
    :: else
    fi;
    OWN_FENCE;
    readable = 0;
    d_step { seen = now; now = 0; fd_armed = 1 }
    arm_and_look();
    if
    :: found -> found = 0; goto busy
    :: else -> goto sleep
    fi;
busy: /* it may leave before all is taken, and the bell may have rung already */
    if
    :: fd_armed -> fd_armed = 0;
        disarm();
#ifndef BUG_FD_NOT_RESET
        OWN_FENCE;
        readable = 1
#endif
    :: else
    fi;
sleep:
end_epoll: /* the assertion at the end decides whether that was right */
    readable;
    goto extract
}
#else
proctype receiver()
{
    byte me = R;
    byte told[SENDERS], rang[SENDERS], arms, seen_armed;
    bit rings_first;
    byte expected, fenced, s;
    bit found;
    do
    :: HERE(0) -> take(0)
    :: HERE(1) -> take(1)
    :: NOTHING ->
#ifndef BUG_WORD_LATE
        expected = word[R];
#endif
        arm_and_look();
#ifdef BUG_WORD_LATE
        expected = word[R];
#endif
        if
        :: found -> found = 0; expected = 0
        :: else -> futex_wait(R, expected)
        fi;
        disarm()
    od
}
#endif

#ifdef SPOILER
proctype spoiler()
{
end:
    d_step { word[R] > 0 -> word[R]-- }
}
#endif

init
{
    atomic {
        readable = 1; /* the first extract finds nothing and arms */
        run sender(0);
        run sender(1);
        run receiver();
        run drain(0);
        run drain(1);
        run drain(R);
#ifdef SPOILER
        run spoiler()
#endif
    }
    timeout; /* nothing moves any more */
    assert(taken[0] == MSGS0 && taken[1] == MSGS1 && finished[0] && finished[1]);
end:
    false
}
