/* progress.pml - the hand-over of an endpoint between its owner and the thread that serves it, on x86-TSO.
 *
 * Mirrors src/endpoint/turn.c (rnl_turn_begin, ask, rnl_turn_end, rnl_turn_take, rnl_turn_sleeps, rnl_turn_slept), the
 * loop of src/stream/serve.c, and of src/endpoint/wait.c the sleep of the thread: load the word, arm, fence, look, sleep.
 *
 * The owner makes CALLS calls and computes before, between and after them for as long as chance says; in a call it
 * takes in what is there. A peer sends MSGS messages, and rings the bell where it finds the endpoint armed. The thread
 * naps while the owner has its turn, for as long as chance says; it takes the turn when no call was marked meanwhile,
 * takes in what is there, gives back when it is asked, and sleeps when chance says and nothing is there. The sleep HAS
 * NO TIME-OUT. The owner's mark waits in its store buffer and drains at any later moment; locked operations wait for
 * that. The heavy fence waits for the buffer, too. The peer's side of arming is sleep_wake.pml's.
 *
 * Proved, for these sizes: never do both work on the endpoint; every message is taken in, though the owner may never
 * call again, and nobody waits for ever; an owner that asks waits for one pass at most that began after it did. Planted
 * bugs: every BUG_ macro; scripts/check-models wants each of them found. */

#ifndef CALLS
#define CALLS 2
#endif
#ifndef MSGS
#define MSGS 2
#endif
#define OWNER 0
#define THREAD 1
#define ASLEEP 2

byte holder = OWNER;
byte calls;           /* as memory has it; odd in a call */
bit asked;
byte published, taken;
bit armed;            /* towards the peer */
byte word;            /* the bell's */
bit sleeps;           /* the kernel's */

bit buffered;         /* the owner's store buffer */
byte mark;

byte working;         /* who works on the endpoint now: 0, 1, or both */
byte passes;          /* of the thread, that began since the owner asked */
bit owner_done;

active proctype drain()
{
end:
    do
    :: d_step { buffered -> calls = mark; buffered = 0; mark = 0 }
    od
}

inline take_in()
{
    d_step { working++; assert(working < 2) }
    if
    :: taken < published -> taken = published
    :: else
    fi;
    working--
}

inline store_mark(value)
{
    d_step { !buffered -> mark = value; buffered = 1 }
}

inline ring()
{
    d_step { word++; sleeps = 0 }
}

active proctype owner()
{
    byte n, was;
    do
    :: n < CALLS ->
        n++;
#ifdef BUG_OWNER_LOOKS_FIRST
        was = holder;
        store_mark(2 * n - 1);
#else
#ifndef BUG_NO_MARK
        store_mark(2 * n - 1);
#endif
        was = holder;
#endif
        if
        :: was == OWNER
        :: else ->
            d_step { asked = 1; passes = 0 }
            !buffered; /* what follows is a locked operation */
            do
            :: d_step { holder == ASLEEP -> holder = OWNER };
                armed = 0;
#ifndef BUG_THREAD_SLEEPS_ON
                ring();
#endif
                break
            :: holder == OWNER -> break
#ifdef BUG_OWNER_TAKES
            :: d_step { holder == THREAD -> holder = OWNER }; break
#endif
            od;
            asked = 0
        fi;
        take_in();
        store_mark(2 * n)
    :: n == CALLS -> break
    od;
    owner_done = 1
}

active proctype peer()
{
    byte n;
    do
    :: n < MSGS ->
        n++;
        published++;
        if
        :: armed -> ring()
        :: else
        fi
    :: n == MSGS -> break
    od
}

active proctype thread()
{
    byte seen, at;
end_nap:
    atomic { calls % 2 == 0 && holder == OWNER && !(owner_done && taken == MSGS) -> seen = calls };
    /* It naps. */
#ifndef BUG_NOT_QUIET
    if
    :: calls != seen -> goto end_nap
    :: else
    fi;
#endif
    if
    :: d_step { holder == OWNER -> holder = THREAD }
    :: holder != OWNER -> goto end_nap
    fi;
#ifndef BUG_NO_HEAVY_FENCE
    !buffered;
#endif
#ifndef BUG_NO_SECOND_LOOK
    if
    :: calls != seen -> holder = OWNER; goto end_nap
    :: else
    fi;
#endif
serve:
    atomic {
        if
#ifndef ANY_PASSES /* of a bug that breaks more than this rule */
        :: asked -> passes++; assert(passes <= 1)
#endif
        :: else
        fi };
    take_in();
#ifndef BUG_NEVER_ASKED
    if
    :: asked -> holder = OWNER; goto end_nap
    :: else
    fi;
#endif
    if
    :: goto serve
    :: skip
    fi;
#ifndef BUG_WORD_LATE
    at = word;
#endif
#ifndef BUG_NOT_ARMED
    armed = 1;
#endif
#ifndef BUG_NO_LOOK
    if
    :: taken < published -> armed = 0; goto serve
    :: else
    fi;
#endif
#ifdef BUG_WORD_LATE
    at = word;
#endif
#ifndef BUG_SLEEPS_WITH_TURN
    holder = ASLEEP;
#endif
    d_step {
        if
        :: word == at -> sleeps = 1
        :: else
        fi }
end_asleep:
    !sleeps;
#ifdef BUG_WAKES_AND_TAKES
    holder = THREAD;
#else
    if
    :: d_step { holder == ASLEEP -> holder = THREAD }
    :: holder != ASLEEP -> goto end_nap
    fi;
#endif
    armed = 0;
    goto serve
}

active proctype monitor()
{
    timeout;
    assert(taken == MSGS && owner_done)
}
