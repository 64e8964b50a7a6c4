/* SPDX-License-Identifier: BSD-3-Clause
 *
 * membership.pml - the rules of job/membership.h: three ranks that join, send, enter the close, die and return at any
 * time, and the membership that tells them of each other and asks for the waves of the close.
 *
 *   early    the close is found done while a message is under way to a rank that lives, or one has not joined
 *   order    a rank hears of deaths, returns and waves in another order than they happened, twice, or with a gap
 *   stuck    nothing moves any more and a rank that lives does not know that the job has closed, or is gone
 *   freed    the memory of a segment is released while a side has it
 *   kept     ... or is not, though nobody wants it any more
 *
 * A message is under way, then arrives, then is handled; a handler may send another one. A rank sends unasked until it is
 * in close. It reports when it is in close and idle: all that has arrived is handled, and so is all that it sent to
 * ranks that live. What the dead had sent has arrived when a rank hears of the death.
 *
 * MSGS, DEATHS, RETURNS, LOSSES (events that find no memory): how many there are. STARTING: rank 2 has not joined.
 * SEGMENT: ranks 0 and 1 share one. */
#ifndef MSGS
#define MSGS 2
#endif
#ifndef DEATHS
#define DEATHS 0
#endif
#ifndef RETURNS
#define RETURNS 0
#endif
#ifndef LOSSES
#define LOSSES 0
#endif
#define N 3

#define STARTS 0
#define JOINED 1
#define DEAD   2

#define DEATH  16 /* + rank */
#define RETURN 32 /* + rank */
#define ASK    48 /* + wave, modulo 16 */
#define DONE   64
#define BRIEF  80 /* + wave: what a rank that returned hears first */

/* the membership */
byte state[N] = JOINED, act[N], act_0[N], wave, starting, joined = N, reports;
bool reported[N], inconclusive, done, lost[N];
chan events[N] = [14] of { byte };
/* the ranks */
byte activity[N], its_wave[N], reported_wave[N], reported_act[N], heard[N];
bool in_close[N], knows_done[N];
byte msg[N * N]; /* 1 = under way, 2 = arrived */
/* what happened, in order */
byte log[16], end;
byte msgs = MSGS, deaths = DEATHS, returns = RETURNS, losses = LOSSES;
/* the segment: 0 = wanted, 1 = open, 2 = had, 3 = done */
byte side[2];
bool made, released, using[2];

byte k, e, to, q;

#define LIVES(i) (state[i] != DEAD)

inline note(what)
{
    log[end] = what;
    end++
}

/* To rank `whom`: lost for want of memory, or queued. */
inline queue(whom, what)
{
#ifdef BUG_QUEUES_AFTER_LOSS
    if
    :: state[whom] != DEAD ->
#else
    if
    :: state[whom] != DEAD && !lost[whom] ->
#endif
        if
        :: events[whom]!what
        :: losses > 0 -> losses--; lost[whom] = true
        fi
    :: else
    fi
}

inline queue_all(what)
{
    q = 0;
    do
    :: q < N -> queue(q, what); q++
    :: else -> break
    od;
    q = 0
}

inline look_at_wave()
{
    if
#ifdef BUG_ABSENT_IGNORED
    :: !done && joined > 0 && reports >= joined ->
#else
    :: !done && starting == 0 && joined > 0 && reports >= joined ->
#endif
        done = wave > 0 && !inconclusive;
        k = 0;
        do
        :: k < N && state[k] == JOINED ->
#ifndef BUG_NO_ACTIVITY
            done = done && act[k] == act_0[k];
#endif
            act_0[k] = act[k];
            reported[k] = false;
            k++
        :: k < N && state[k] != JOINED -> k++
        :: k == N -> break
        od;
        reports = 0;
        inconclusive = false;
        if
        :: done ->
            assert(starting == 0 && (state[0] == DEAD || msg[0] + msg[3] + msg[6] == 0) && (state[1] == DEAD || msg[1] + msg[4] + msg[7] == 0) &&
                   (state[2] == DEAD || msg[2] + msg[5] + msg[8] == 0)); /* early */
            note(DONE);
            queue_all(DONE)
        :: else ->
            wave++;
            note(ASK + wave);
            queue_all(ASK + wave)
        fi
    :: else
    fi;
    k = 0
}

inline release()
{
    if
    :: made && side[0] == 3 && side[1] == 3 && !released ->
        released = true;
        assert(!using[0] && !using[1]) /* freed */
    :: else
    fi
}

inline gone(i)
{
    if
    :: state[i] == STARTS -> starting--
    :: state[i] == JOINED ->
        joined--;
        reports = reports - reported[i];
#ifndef BUG_DEATH_CONCLUSIVE
        inconclusive = true
#endif
    fi;
    state[i] = DEAD;
    reported[i] = false;
    /* what was for it, or was its to handle, is no more */
    msg[i] = 0;
    msg[3 + i] = 0;
    msg[6 + i] = 0;
#ifdef SEGMENT
    if
#ifdef BUG_DEATH_DROPS_HAD
    :: i < 2 ->
        side[i] = 3;
        release()
#else
    :: i < 2 && side[i] == 0 ->
#ifndef BUG_WANTED_STAYS
        side[i] = 3;
#endif
        release()
#endif
    :: else
    fi;
#endif
    if
    :: done
    :: else ->
        note(DEATH + i);
#ifdef BUG_WAVE_BEFORE_DEATH
        look_at_wave();
        queue_all(DEATH + i)
#else
        queue_all(DEATH + i);
        look_at_wave()
#endif
    fi
}

inline arrive_from(i, dead)
{
    if
    :: msg[3 * (dead) + i] == 1 -> msg[3 * (dead) + i] = 2
    :: else
    fi
}

inline hear(i)
{
    events[i]?e;
    if
    :: e >= BRIEF -> its_wave[i] = e - BRIEF
    :: else ->
        assert(e == log[heard[i]]); /* order */
        heard[i]++;
        if
        :: e >= DONE -> knows_done[i] = true
        :: e >= ASK && e < DONE -> its_wave[i] = e - ASK
        :: e >= DEATH && e < RETURN -> arrive_from(i, e - DEATH)
        :: else
        fi
    fi;
    e = 0
}

inline send(i)
{
    if
    :: to = 0
    :: to = 1
    :: to = 2
    fi;
    if
    :: to != i && msg[3 * i + to] == 0 ->
        msgs--;
        activity[i]++;
        if
        :: LIVES(to) -> msg[3 * i + to] = 1
        :: else
        fi
    :: else
    fi;
    to = 0
}

inline handle(i, j)
{
    msg[3 * (j) + i] = 0;
    activity[i]++;
    if
    :: msgs > 0 -> send(i)
    :: true
    fi
}

#define IDLE(i)                                                                                                   \
    (msg[i] != 2 && msg[3 + i] != 2 && msg[6 + i] != 2 && (!LIVES(0) || msg[3 * i] == 0) &&                       \
     (!LIVES(1) || msg[3 * i + 1] == 0) && (!LIVES(2) || msg[3 * i + 2] == 0))

inline report(i)
{
    reported_wave[i] = its_wave[i] + 1;
    reported_act[i] = activity[i];
    if
    :: !done && its_wave[i] == wave ->
        reports = reports + 1 - reported[i];
        reported[i] = true;
        act[i] = activity[i];
        look_at_wave()
    :: else
    fi
}

inline come_back(i)
{
    returns--;
    state[i] = JOINED;
    joined++;
    note(RETURN + i);
#ifndef BUG_RETURN_KEEPS_QUEUE
    do
    :: nempty(events[i]) -> events[i]?_
    :: empty(events[i]) -> break
    od;
#endif
    lost[i] = false;
    activity[i] = 0;
    inconclusive = true;
    act[i] = 0;
    act_0[i] = 0;
    in_close[i] = false;
    reported_wave[i] = 0;
    its_wave[i] = 0;
    heard[i] = end;
    to = 0;
    do
    :: to < N ->
        msg[3 * i + to] = 0; /* another process: what its peers have not taken in by now is of the old one */
        if
        :: to != i -> queue(to, RETURN + i)
        :: else
        fi;
        to++
    :: else -> break
    od;
    to = 0;
#ifndef BUG_NO_BRIEF
    if
    :: wave > 0 -> queue(i, BRIEF + wave)
    :: else
    fi
#endif
}

#define BUSY(i) (state[i] == JOINED && !knows_done[i])

#ifdef BUG_LOSS_IS_SILENT
#define LOST_TOLD false
#else
#define LOST_TOLD true
#endif

proctype rank(byte i)
{
    byte j;
end_rank:
    do
    :: atomic { state[i] == STARTS -> state[i] = JOINED; starting--; joined++ }
    :: atomic { BUSY(i) && !in_close[i] && msgs > 0 -> send(i) }
    :: atomic { BUSY(i) && !in_close[i] -> in_close[i] = true }
    :: atomic { state[i] == JOINED && nempty(events[i]) -> hear(i) }
    :: atomic { BUSY(i) && in_close[i] && IDLE(i) &&
                (reported_wave[i] != its_wave[i] + 1 || reported_act[i] != activity[i]) -> report(i) }
    :: atomic { (LIVES(i) && deaths > 0 && !knows_done[i]) ||
                (LOST_TOLD && state[i] == JOINED && empty(events[i]) && lost[i]) ->
        if
        :: LOST_TOLD && state[i] == JOINED && empty(events[i]) && lost[i]
        :: deaths > 0 && !knows_done[i] -> deaths--
        fi;
        gone(i) }
    :: atomic { state[i] == DEAD && returns > 0 && !done -> come_back(i) }
    :: atomic { msg[i] + msg[3 + i] + msg[6 + i] > 0 && BUSY(i) ->
        if
        :: j = 0
        :: j = 1
        :: j = 2
        fi;
        if
        :: msg[3 * j + i] == 1 -> msg[3 * j + i] = 2
        :: msg[3 * j + i] == 2 -> handle(i, j)
        :: else
        fi;
        j = 0 }
#ifdef SEGMENT
    /* A rank that died may still have its side: in a process of threads it closes it later. */
    :: atomic { i < 2 && BUSY(i) && side[i] == 0 && (made || LIVES(1 - i)) -> made = true; side[i] = 1; using[i] = true }
    :: atomic { i < 2 && side[i] == 1 -> side[i] = 2 }
    :: atomic { i < 2 && side[i] == 1 && LIVES(i) -> using[i] = false; side[i] = 0 }
    :: atomic { i < 2 && side[i] == 2 -> using[i] = false; side[i] = 3; release() }
#endif
    od
}

init
{
    atomic {
#ifdef STARTING
        state[2] = STARTS;
        joined = 2;
        starting = 1;
#endif
        run rank(0);
        run rank(1);
        run rank(2)
    }
    atomic {
        timeout;
        do
        :: k < N ->
            assert(!LIVES(k) || knows_done[k]); /* stuck */
            assert(!LIVES(k) || heard[k] == end); /* order */
            k++
        :: else -> break
        od;
#ifdef SEGMENT
        assert(!made || LIVES(0) || LIVES(1) || released) /* kept */
#endif
    }
}
