/* SPDX-License-Identifier: BSD-3-Clause
 *
 * handshake.pml - the rules of net/flow/handshake.c: two processes, each of which may want a connection, give up and be
 * restarted, over a network that keeps everything that was ever said and gives it to its receiver at any time, any number
 * of times, or never: loss, disorder and repetition, and an attacker who says again what he heard.
 *
 * A nonce is a number for (incarnation, generation) of its side; a HELLO is (nonce of its sender, echo, what it says).
 * At any time the world may become calm: the network forgets, then each HELLO arrives once, in any order, and who waits
 * speaks again when nothing is under way.
 *
 *   twice    the same side makes a connection of the same two nonces again: its keys, and then its nonces, come twice
 *   sure     a side is sure of a connection that the other never made
 *   died     a connection that was up ends, though both processes live and neither gave it up
 *   endless  a calm world does not come to rest
 *   stuck    it does, and who wants a connection has none, or another one than the peer
 *
 * INCS0, INCS1: processes there are of each side, one after the other; GENS: connections and attempts of each process;
 * OPENS: wishes of each side; GIVE_UPS: how often one gives up while it opens; GIVE_UPS_MADE: ... a connection it is not
 * sure of (the other side may then be sure of it: that is a death); TOLD: the job tells who was restarted.
 *
 * A limit: if both sides restart, and the job does not tell, a HELLO of the first process of one may make a connection
 * after its second was heard; that one then has to give up, once, before it gets its own. */
#ifndef INCS0
#define INCS0 1
#endif
#ifndef INCS1
#define INCS1 1
#endif
#ifndef GENS
#define GENS 5
#endif
#ifndef OPENS
#define OPENS 1
#endif
#ifndef GIVE_UPS
#define GIVE_UPS 0
#endif
#ifndef GIVE_UPS_MADE
#define GIVE_UPS_MADE 0
#endif
#if INCS0 > INCS1
#define INCS INCS0
#else
#define INCS INCS1
#endif
#define N (INCS * GENS) /* nonces of a side, from 1 on */

#define IDLE    0
#define OPENING 1
#define MADE    2
#define UP      3

#define ANSWER 0 /* what a HELLO says: nothing, */
#define WANT   1
#define HAVE   2
#define SURE   3 /* HAVE, and sure of it */

#define INC(nonce)    (((nonce) - 1) / GENS)
#define AT(o, e, f)   ((((o) - 1) * (N + 1) + (e)) * 4 + (f))
#define MESSAGES      (N * (N + 1) * 4)
#define NOW(s)        (inc[s] * GENS + gen[s] + 1)
#define PAIRED(s, a, b) (made[(s) * N + (a) - 1] & (1 << (b)))

byte st[2], inc[2], gen[2], my[2], th[2], opens[2], refused[2] = 255;
byte give_ups, give_ups_made, moves, rounds;
byte said0[MESSAGES / 4], said1[MESSAGES / 4]; /* a bit for each f */
short made[2 * N]; /* for the assertions: of each own nonce a bit for each of the peer's */
bool calm, over, opener;
bool dead; /* one side gave up what the other may have been sure of: the end of that proves nothing */

#define SAID(s, i) (((s) == 0 -> said0[(i) / 4] : said1[(i) / 4]) & (1 << ((i) % 4)))

inline say(s, o, e, f)
{
    if
    :: s == 0 -> said0[AT(o, e, f) / 4] = said0[AT(o, e, f) / 4] | (1 << (AT(o, e, f) % 4))
    :: else -> said1[AT(o, e, f) / 4] = said1[AT(o, e, f) / 4] | (1 << (AT(o, e, f) % 4))
    fi
}

inline say_pair(s)
{
    say(s, my[s], th[s], (st[s] == UP -> SURE : HAVE))
}

inline sure_of(s)
{
    st[s] = UP;
    assert(PAIRED(1 - s, th[s], my[s]) != 0) /* sure */
}

inline make(s, o, f)
{
    assert(PAIRED(s, NOW(s), o) == 0); /* twice */
    my[s] = NOW(s);
    th[s] = o;
    made[(s) * N + my[s] - 1] = made[(s) * N + my[s] - 1] | (1 << (o));
#ifndef BUG_KEEP_GENERATION
    gen[s] = gen[s] + 1;
#endif
    st[s] = MADE;
    if
#ifdef BUG_SURE_EARLY
    :: true -> sure_of(s)
#else
    :: f >= HAVE -> sure_of(s)
    :: else
#endif
    fi
    say_pair(s)
}

#ifdef BUG_LATE_WISH
#define LATE false
#else
#define LATE (st[s] >= MADE && th[s] == o)
#endif
/* In MADE and UP an answer makes another connection only if it is of another incarnation. */
#ifdef BUG_ANY_ANSWER
#define ANOTHER(s, o) true
#else
#define ANOTHER(s, o) (INC(o) != INC(th[s]))
#endif
#ifdef BUG_NO_ECHO
#define ECHOED(s, o, e, f) (e == NOW(s) || f == WANT)
#else
#define ECHOED(s, o, e, f) (e == NOW(s) && (st[s] < MADE || f != ANSWER || ANOTHER(s, o)))
#endif
/* It answers us, and does not have our pair. */
#ifdef BUG_RESTART_IGNORED
#define RESTARTED(s, o, e) false
#else
#define RESTARTED(s, o, e) (st[s] == MADE && e == my[s] && ANOTHER(s, o))
#endif

/* Side s hears HELLO (o, e, f). */
inline hear(s, o, e, f)
{
    printf("%d in state %d, my %d their %d next %d, hears nonce %d echo %d says %d\n", s, st[s], my[s], th[s], NOW(s), o, e, f);
    if
    :: INC(o) == refused[s]
#ifdef TOLD
    :: INC(o) != inc[1 - s]
#endif
    :: else ->
        if
        :: LATE ->
            if
            :: f >= HAVE && e == my[s] && st[s] == MADE -> sure_of(s)
            :: else
            fi;
            if
#ifdef BUG_SURE_ANSWERS
            :: f >= HAVE || f == WANT -> say_pair(s)
#else
            :: f == HAVE || f == WANT -> say_pair(s)
#endif
            :: else
            fi
        :: !LATE && ECHOED(s, o, e, f) ->
            if
            :: st[s] == UP && INC(o) == INC(th[s]) ->
                st[s] = IDLE;
                refused[s] = INC(o);
                assert(dead) /* died */
            :: else -> make(s, o, f)
            fi
        :: !LATE && !ECHOED(s, o, e, f) ->
            if
            :: st[s] == OPENING && f != ANSWER -> say(s, NOW(s), o, WANT)
            :: RESTARTED(s, o, e) -> say(s, NOW(s), o, WANT)
#ifdef BUG_ANSWERS_ALL
            :: else -> say(s, NOW(s), o, ANSWER)
#else
            :: else ->
                if
                :: f != ANSWER -> say(s, NOW(s), o, ANSWER)
                :: else
                fi
#endif
            fi
        fi
    fi
}

/* Who waits speaks. */
inline speak(s)
{
    if
    :: st[s] == OPENING -> say(s, NOW(s), 0, WANT)
#ifndef BUG_MADE_IS_SILENT
    :: st[s] == MADE -> say_pair(s)
#endif
    :: else
    fi
}

inline forget()
{
    i = 0;
    do
    :: i < MESSAGES / 4 ->
        said0[i] = 0;
        said1[i] = 0;
        i++
    :: else -> break
    od
}

inline restart(s)
{
    printf("%d restarts\n", s);
    inc[s] = inc[s] + 1;
    gen[s] = 0;
    st[s] = IDLE;
    my[s] = 0;
    th[s] = 0;
    refused[s] = 255;
#ifdef TOLD
    if
    :: st[1 - s] >= MADE -> st[1 - s] = IDLE
    :: else
    fi
#endif
}

/* Any HELLO that there is, to whom it is for: s, o, e, f. */
inline pick()
{
    if
    :: s = 0
    :: s = 1
    fi;
    i = 0;
    do
    :: i < MESSAGES && SAID(1 - s, i) == 0 -> i++
    :: i < MESSAGES && SAID(1 - s, i) != 0 ->
        if
        :: break
        :: i++
        fi
    :: i >= MESSAGES -> break
    od
}

active proctype world()
{
    short i, k;
    byte s;
    bool someone;
    do
    :: !over -> atomic {
        if
        :: !calm ->
            if
            :: pick(); /* a HELLO arrives, and may again */
                if
                :: i < MESSAGES && gen[s] < GENS - 1 -> hear(s, i / 4 / (N + 1) + 1, (i / 4) % (N + 1), i % 4)
                :: else
                fi
            :: s = 0; speak(s)
            :: s = 1; speak(s)
            :: st[0] == IDLE && opens[0] < OPENS -> opens[0]++; st[0] = OPENING
            :: st[1] == IDLE && opens[1] < OPENS -> opens[1]++; st[1] = OPENING
            :: inc[0] < INCS0 - 1 -> restart(0)
            :: inc[1] < INCS1 - 1 -> restart(1)
            :: give_ups < GIVE_UPS ->
                if
                :: s = 0
                :: s = 1
                fi;
                if
                :: st[s] == OPENING && gen[s] < GENS - 1 ->
                    give_ups++;
                    gen[s] = gen[s] + 1;
                    st[s] = IDLE
                :: else
                fi
            :: give_ups_made < GIVE_UPS_MADE ->
                if
                :: s = 0
                :: s = 1
                fi;
                if
                :: st[s] == MADE ->
                    give_ups_made++;
                    dead = true;
                    st[s] = IDLE
                :: else
                fi
            :: gen[0] < GENS - 2 && gen[1] < GENS - 2 ->
                calm = true;
                printf("calm; states %d %d\n", st[0], st[1]);
                forget();
                opener = st[0] == OPENING || st[1] == OPENING ||
                         (!GIVE_UPS && !GIVE_UPS_MADE && (st[0] == MADE || st[1] == MADE))
            fi
        :: calm ->
            k = 0;
            someone = false;
            do
            :: k < MESSAGES / 4 -> someone = someone || said0[k] || said1[k]; k++
            :: else -> break
            od;
            if
            :: someone ->
                pick();
                if
                :: i < MESSAGES ->
                    if
                    :: s == 0 -> said1[i / 4] = said1[i / 4] & ~(1 << (i % 4))
                    :: else -> said0[i / 4] = said0[i / 4] & ~(1 << (i % 4))
                    fi;
                    hear(s, i / 4 / (N + 1) + 1, (i / 4) % (N + 1), i % 4);
                    moves++;
                    assert(moves < 30) /* endless */
                :: else
                fi
            :: !someone && rounds < 3 -> rounds++; speak(0); speak(1)
            :: !someone && rounds == 3 ->
                over = true;
                assert(!opener || refused[0] != 255 || refused[1] != 255 ||
                       (st[0] == UP && st[1] == UP && my[0] == th[1] && my[1] == th[0])) /* stuck */
            fi
        fi;
        i = 0;
        k = 0;
        s = 0;
        someone = false
      }
    :: over -> break
    od
}
