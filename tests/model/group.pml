/* SPDX-License-Identifier: BSD-3-Clause
 *
 * group.pml - the rules of api/group/order.h: N members that send MSGS messages each, of whom DEATHS die at any time,
 * and what is under way from them arrives up to any place.
 *
 *   order    two members that live have another message or view at the same place
 *   lost     a member lacks what the one who has the longest log keeps no more
 *   lies     an honest member is found to break the protocol: it would be excluded
 *   stuck    nothing moves any more, and a message of a member that lives is not delivered by all who live, or a dead
 *            member's message by some of them
 *
 * In the code's words: PB, or with BB defined BB; ACCEPT, ACK, STABLE; FLUSH, STATE, REFUSE, CUT, FILL, GONE; with JOINS
 * defined, for which N is 3, also JOIN, WELCOME, SNAPSHOT: the last member is not in the first view, and joins at any
 * time. Left out are GSB and trees, leaving, and suspicions that are wrong. A message counts 1, and CREDIT of them may be
 * sent ahead. An entry of the log is a message, its sender * 4 + its number from 1 on, or 16 + 8 * epoch + members as
 * bits, + 128 if the last one is new. Delivered is what is within `have`, but for who joins and is blank: nothing. The
 * state that it is given is the log before the view that it is new in. */
#ifndef N
#define N 3
#endif
#ifndef MSGS
#define MSGS 1
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#ifndef CREDIT
#define CREDIT 2
#endif
#ifndef JOINS
#define JOINS 0
#endif
#ifndef SENDERS
#define SENDERS 7 /* as bits: who sends */
#endif
#define LOG (3 + JOINS + DEATHS + N * MSGS)
#define ALL ((1 << N) - 1)

mtype = { PLACE, MESSAGE, BODY, ACCEPT, ACK, STABLE, FLUSH, STATE, REFUSE, CUT, FILL, GONE, JOIN, WELCOME, SNAPSHOT };

chan line[N * N] = [6] of { mtype, byte, byte, byte, short, byte }; /* epoch, seq, what, more, set */
chan early[N] = [4] of { byte, mtype, byte, byte, byte, short, byte };

byte log[N * LOG], have[N], known_stable[N], top[N], epoch[N], promised[N], coordinator[N], view[N], excluded[N];
bool ready[N * LOG], flushing[N], dead[N], again[N]; /* again: a member of the new view is excluded already */
byte cut[N], cut_view[N], answered[N]; /* cut: 0 = none */
byte end_of[N * N], acked[N * N], in_log[N * N], seen[N * N], body[N * N];
byte sent[N], own_stable[N];
byte deaths = DEATHS;

hidden byte due;
hidden byte me, x, y, z, least, donor, members;
hidden short ends;

#define BIT(i)       (1 << (i))
#define HAS(set, i)  (((set) >> (i)) & 1)
#define LOGGED(i, s) log[(i) * LOG + (s)]
#define READY(i, s)  ready[(i) * LOG + (s)]
#define OF(a, i, j)  a[(i) * N + (j)]
#define LOWEST(set)  ((set) & 1 -> 0 : ((set) & 2 -> 1 : ((set) & 4 -> 2 : 3)))
#define IN(i)        (view[i] & ~excluded[i])
#define SEQUENCER(i) LOWEST(view[i])

#define END(e, j) (((e) >> (4 * (j))) & 15)
#include "group_join.pml"

inline send(send_b, send_kind, send_ep, send_seq, send_what, send_more, send_set)
{
    if
    :: (send_b) == (me) || dead[send_b] || HAS(excluded[me], send_b)
    :: else -> assert(nfull(line[me * N + (send_b)])); line[me * N + (send_b)]!send_kind, send_ep, send_seq, send_what, send_more, send_set
    fi
}

inline send_all(send_all_but, send_all_kind, send_all_ep, send_all_seq, send_all_what, send_all_more, send_all_set)
{
    z = 0;
    do
    :: z < N && z != (send_all_but) && HAS(view[me], z) -> send(z, send_all_kind, send_all_ep, send_all_seq, send_all_what, send_all_more, send_all_set); z++
    :: z < N && (z == (send_all_but) || !HAS(view[me], z)) -> z++
    :: z == N -> break
    od;
    z = 0
}

inline release(release_s)
{
    if
    :: (release_s) > known_stable[me] ->
        known_stable[me] = ((release_s) > have[me] -> have[me] : (release_s));
        own_stable[me] = 0;
        z = 1;
        do
        :: z <= known_stable[me] ->
            own_stable[me] = own_stable[me] + (LOGGED(me, z) < 16 && LOGGED(me, z) / 4 == (me));
            z++
        :: else -> break
        od;
        z = 0
    :: else
    fi
}

inline note_ack(note_ack_j, note_ack_s)
{
    if
    :: (note_ack_s) > OF(acked, me, note_ack_j) ->
        OF(acked, me, note_ack_j) = note_ack_s;
        least = note_ack_s;
        z = 0;
        do
        :: z < N ->
#ifndef BUG_STABLE_EARLY
            least = (HAS(view[me], z) && OF(acked, me, z) < least -> OF(acked, me, z) : least);
#endif
            z++
        :: else -> break
        od;
        if
        :: least > known_stable[me] ->
            release(least);
            give_state();
#ifndef BUG_NO_STABLE
            send_all(me, STABLE, epoch[me], 0, 0, known_stable[me], 0)
#endif
        :: else
        fi;
        least = 0
    :: else
    fi
}

/* Delivers what follows in the log, and says so. */
inline advance()
{
    x = 0;
    do
    :: LOGGED(me, have[me] + 1) != 0 && READY(me, have[me] + 1) ->
        have[me]++;
        x = LOGGED(me, have[me]);
        if
        :: x < 16 ->
            assert(x % 4 == OF(in_log, me, x / 4) + 1 && HAS(view[me], x / 4)); /* lies */
            OF(in_log, me, x / 4) = x % 4
        :: else ->
            note_view();
            view[me] = x % 8 + (N == 4 -> 8 * ((x / 128) & 1) : 0);
            epoch[me] = (x % 128 - 16) / 8
        fi;
        y = 0;
        do
        :: y < N ->
            assert(dead[y] || BLANK(y) || BLANK(me) || have[y] < have[me] || LOGGED(y, have[me]) == LOGGED(me, have[me])); /* order */
            y++
        :: else -> break
        od;
        y = 0
    :: else -> break
    od;
    if
    :: x == 0 || flushing[me] || BLANK(me)
    :: x != 0 && !flushing[me] && !BLANK(me) && SEQUENCER(me) == me -> note_ack(me, have[me])
    :: x != 0 && !flushing[me] && !BLANK(me) && SEQUENCER(me) != me -> send(SEQUENCER(me), ACK, epoch[me], have[me], 0, 0, 0)
    fi;
    x = 0
}

inline give_place(give_place_what, give_place_accept_all)
{
    top[me]++;
    OF(seen, me, (give_place_what) / 4) = (give_place_what) % 4;
    LOGGED(me, top[me]) = give_place_what;
    READY(me, top[me]) = true;
    if
    :: give_place_accept_all -> send_all(me, ACCEPT, epoch[me], top[me], give_place_what, known_stable[me], 0)
    :: else ->
        send((give_place_what) / 4, ACCEPT, epoch[me], top[me], give_place_what, known_stable[me], 0);
        send_all((give_place_what) / 4, MESSAGE, epoch[me], top[me], give_place_what, known_stable[me], 0)
    fi;
    advance()
}

inline place_own(place_own_n)
{
    if
    :: SEQUENCER(me) == me -> give_place((me) * 4 + (place_own_n), false)
#ifdef BB
    :: SEQUENCER(me) != me -> send_all(me, BODY, epoch[me], 0, (me) * 4 + (place_own_n), 0, 0)
#else
    :: SEQUENCER(me) != me -> send(SEQUENCER(me), PLACE, epoch[me], 0, (me) * 4 + (place_own_n), 0, 0)
#endif
    fi
}

/* ---- new views ---- */

inline freeze(freeze_ep, freeze_who)
{
    promised[me] = freeze_ep;
    coordinator[me] = freeze_who;
    flushing[me] = true;
    cut[me] = 0;
    drop_state();
    z = have[me] + 1;
    do
    :: z < LOG ->
#ifndef BUG_KEEPS_AFTER_GAP
        LOGGED(me, z) = 0;
        READY(me, z) = false;
#endif
        z++
    :: else -> break
    od;
    z = 0;
    do
    :: z < N -> OF(body, me, z) = 0; z++
    :: else -> break
    od;
    z = 0
}

inline try_cut()
{
    if
    :: cut[me] != 0 && flushing[me] && have[me] == cut[me] ->
        flushing[me] = false;
        cut[me] = 0;
        LOGGED(me, have[me] + 1) = 16 + 8 * promised[me] + cut_view[me] % 8 + (cut_view[me] / 8) * 128;
        READY(me, have[me] + 1) = true;
        z = 0;
        do
        :: z < N ->
#ifndef BUG_SEEN_KEPT
            OF(seen, me, z) = OF(in_log, me, z);
#endif
            OF(acked, me, z) = (OF(end_of, me, z) < have[me] -> OF(end_of, me, z) : have[me]);
            z++
        :: else -> break
        od;
        top[me] = have[me] + 1;
        welcome();
        advance();
#ifndef BUG_NOT_AGAIN
        donor = OF(in_log, me, me) + 1;
        do
        :: donor <= sent[me] -> place_own(donor); donor++
        :: else -> break
        od;
        donor = 0;
#endif
        again[me] = (view[me] & excluded[me]) != 0 || LET_IN
    :: else
    fi
}


/* Everybody who takes part: the donor makes up for what the others lack. */
inline make_cut(make_cut_who, make_cut_at, make_cut_ends, make_cut_set)
{
    y = 0;
    do
    :: y < N ->
        OF(end_of, me, y) = END(make_cut_ends, y);
        if
        :: (make_cut_who) == me && HAS(make_cut_set, y) && END(make_cut_ends, y) < (make_cut_at) && (y != J || (make_cut_set) < ALL + 1) ->
            assert(END(make_cut_ends, y) >= known_stable[me]); /* lost */
            x = END(make_cut_ends, y) + 1;
            do
            :: x <= (make_cut_at) -> send(y, FILL, promised[me], x, LOGGED(me, x), 0, 0); x++
            :: else -> break
            od;
            x = 0
        :: else
        fi;
        y++
    :: else -> break
    od;
    y = 0;
    cut[me] = make_cut_at;
    cut_view[me] = make_cut_set;
    try_cut()
}

inline conclude()
{
    if
    :: (answered[me] & IN(me)) == IN(me) ->
        donor = me;
        ends = 0;
        z = 0;
        members = IN(me);
        add_joiner();
        do
        :: z < N && HAS(IN(me), z) ->
            ends = ends | (OF(end_of, me, z) << (4 * z));
#ifndef BUG_DONOR_SELF
            donor = (OF(end_of, me, z) > OF(end_of, me, donor) -> z : donor);
#endif
            z++
        :: z < N && !HAS(IN(me), z) -> z++
        :: z == N -> break
        od;
        least = donor;
        send_all(me, CUT, promised[me], OF(end_of, me, least), least, ends, members);
        donor = 0;
        make_cut(least, OF(end_of, me, least), ends, members);
        least = 0;
        members = 0;
        ends = 0
    :: else
    fi
}

inline start()
{
    if
    :: BLANK(me) -> seek()
    :: !BLANK(me) && LOWEST(IN(me)) == me ->
        least = (promised[me] > epoch[me] -> promised[me] : epoch[me]) + 1;
        freeze(least, me);
        least = 0;
        answered[me] = BIT(me);
        OF(end_of, me, me) = have[me];
        note_blank(false);
        send_all(me, FLUSH, promised[me], 0, 0, 0, excluded[me]);
        conclude()
    :: !BLANK(me) && LOWEST(IN(me)) != me -> send(LOWEST(IN(me)), GONE, epoch[me], 0, 0, 0, excluded[me])
    fi
}

inline gone(gone_set)
{
    due = ((gone_set) & ~excluded[me] & (BLANK(me) -> ALL : view[me] | (flushing[me] -> BIT(coordinator[me]) : 0))) != 0;
    excluded[me] = excluded[me] | (gone_set)
}

/* ---- one message ---- */

inline put(put_seq, put_what, put_here)
{
    assert((put_seq) > have[me] && LOGGED(me, put_seq) == 0); /* lies */
    LOGGED(me, put_seq) = put_what;
    READY(me, put_seq) = put_here
}

inline normal(normal_j, normal_kind, normal_seq, normal_what, normal_more)
{
    if
    :: normal_kind == PLACE || (normal_kind == BODY && SEQUENCER(me) == me) ->
        assert(SEQUENCER(me) == me && normal_what % 4 == OF(seen, me, normal_j) + 1); /* lies */
        give_place(normal_what, normal_kind == BODY)
    :: normal_kind == BODY && SEQUENCER(me) != me ->
        OF(body, me, normal_j) = normal_what % 4;
        z = have[me] + 1;
        do
        :: z < LOG -> READY(me, z) = READY(me, z) || LOGGED(me, z) == normal_what; z++
        :: else -> break
        od;
        z = 0;
        advance()
    :: normal_kind == MESSAGE ->
        release(normal_more);
        put(normal_seq, normal_what, true);
        advance()
    :: normal_kind == ACCEPT ->
        release(normal_more);
        put(normal_seq, normal_what, normal_what / 4 == me || OF(body, me, normal_what / 4) >= normal_what % 4);
        advance()
    :: normal_kind == ACK -> note_ack(normal_j, normal_seq)
    :: normal_kind == STABLE -> release(normal_more)
    fi
}

inline handle(handle_j, handle_kind, handle_ep, handle_seq, handle_what, handle_more, handle_set)
{
    if
    :: HAS(excluded[me], handle_j)
    :: else ->
        if
        :: handle_kind == FLUSH && handle_ep <= promised[me] -> send(handle_j, REFUSE, handle_ep, promised[me], 0, 0, 0)
        :: handle_kind == FLUSH && handle_ep > promised[me] ->
            excluded[me] = excluded[me] | handle_set;
            freeze(handle_ep, handle_j);
            send(handle_j, STATE, handle_ep, have[me], BLANK(me), 0, excluded[me])
        :: (handle_kind == STATE || handle_kind == REFUSE || handle_kind == CUT || handle_kind == FILL) && (!flushing[me] || handle_ep != promised[me] || (BLANK(me) && handle_kind != STATE))
        :: handle_kind == STATE && flushing[me] && handle_ep == promised[me] && coordinator[me] == me ->
            answered[me] = answered[me] | BIT(handle_j);
            note_blank(handle_what);
            OF(end_of, me, handle_j) = handle_seq;
            gone(handle_set);
            if
            :: due
            :: else -> conclude()
            fi
        :: handle_kind == REFUSE && !BLANK(me) && flushing[me] && handle_ep == promised[me] ->
            promised[me] = handle_seq;
            due = true
        :: handle_kind == CUT && !BLANK(me) && flushing[me] && handle_ep == promised[me] ->
            assert(handle_seq >= have[me]); /* lies */
            make_cut(handle_what, handle_seq, handle_more, handle_set)
        :: handle_kind == FILL && !BLANK(me) && flushing[me] && handle_ep == promised[me] ->
            put(handle_seq, handle_what, true);
            advance();
            try_cut()
        :: handle_kind == GONE ->
            gone(handle_set);
            due = due || (handle_ep < epoch[me] && HAS(view[me], handle_j)) /* it lacks what a dead one was to send it */
        :: handle_kind <= JOIN -> take_of_joining(handle_j, handle_kind, handle_ep, handle_seq, handle_what, handle_more)
        :: handle_kind <= PLACE && handle_kind >= STABLE ->
            if
#ifdef BUG_NO_HOLD
            :: handle_ep > epoch[me]
#else
            :: handle_ep > epoch[me] -> early[me]!handle_j, handle_kind, handle_ep, handle_seq, handle_what, handle_more, handle_set
#endif
#ifdef BUG_FLUSH_TAKES
            :: handle_ep < epoch[me]
            :: handle_ep == epoch[me] && flushing[me] -> normal(handle_j, handle_kind, handle_seq, handle_what, handle_more)
#else
            :: handle_ep < epoch[me] || (handle_ep == epoch[me] && flushing[me])
#endif
            :: handle_ep == epoch[me] && !flushing[me] -> normal(handle_j, handle_kind, handle_seq, handle_what, handle_more)
            fi
        fi
    fi
}


#define FORGET j = 0; ep = 0; seq = 0; what = 0; set = 0; more = 0; kind = PLACE
#define FROM(k) ((k) < N && (k) != i && (nempty(line[((k) % N) * N + i]) || (dead[(k) % N] && !HAS(excluded[i], k))))
#define EARLY  early[i]??[j, kind, eval(epoch[i]), seq, what, more, set]

proctype member(byte i)
{
    byte j, ep, seq, what, set;
    short more;
    mtype kind;
end_member:
    do
    :: atomic { TO_ASK(i) -> me = i; ask(); me = 0 }
    :: atomic { !dead[i] && !BLANK(i) && HAS(SENDERS, i) && sent[i] < MSGS && sent[i] - own_stable[i] < CREDIT ->
        me = i;
        sent[i]++;
        if
        :: flushing[i]
        :: else -> place_own(sent[i])
        fi;
        me = 0 }
    :: atomic { !dead[i] && (again[i] || (!flushing[i] && EARLY) || FROM(0) || FROM(1) || FROM(2) || FROM(3)) ->
        me = i;
        if
        :: again[i] -> again[i] = false; due = true; j = i /* of nobody */
        :: !again[i] && !flushing[i] && EARLY -> early[i]??j, kind, eval(epoch[i]), seq, what, more, set; ep = epoch[i]
        :: !again[i] && (flushing[i] || !(EARLY)) ->
            if
            :: FROM(0) -> j = 0
            :: FROM(1) -> j = 1
            :: FROM(2) -> j = 2
            :: FROM(3) -> j = 3
            fi;
            if
            :: nempty(line[j * N + i]) -> line[j * N + i]?kind, ep, seq, what, more, set
            :: dead[j] && !HAS(excluded[i], j) -> /* the rest of what it sent does not come */
                do
                :: nempty(line[j * N + i]) -> line[j * N + i]?_, _, _, _, _, _
                :: empty(line[j * N + i]) -> break
                od;
                gone(BIT(j));
                j = i
            fi
        fi;
        if
        :: j != i -> handle(j, kind, ep, seq, what, more, set)
        :: j == i
        fi;
        if
        :: due -> due = false; start()
        :: else
        fi;
        me = 0;
        FORGET }
    :: atomic { !dead[i] && deaths > 0 ->
        deaths--;
        dead[i] = true;
        j = 0;
        do
        :: j < N && nempty(line[j * N + i]) -> line[j * N + i]?_, _, _, _, _, _
        :: j < N && empty(line[j * N + i]) -> j++
        :: j == N -> break
        od;
        do
        :: nempty(early[i]) -> early[i]?_, _, _, _, _, _, _
        :: empty(early[i]) -> break
        od;
        FORGET }
    od
}

init
{
    byte i, j;
    atomic {
        do
        :: i < N ->
            if
            :: HAS(FIRST, i) ->
                LOGGED(i, 1) = 16 + 8 + FIRST % 8 + (FIRST / 8) * 128;
                READY(i, 1) = true;
                have[i] = 1;
                top[i] = 1;
                epoch[i] = 1;
                promised[i] = 1;
                view[i] = FIRST
            :: else -> flushing[i] = true
            fi;
            i++
        :: else -> break
        od;
        i = 0;
        run member(0);
        run member(1);
#if N == 4
        run member(3);
#endif
        run member(2)
    }
    atomic {
        timeout;
        do
        :: i < N ->
            j = 0;
            assert(dead[i] || (!BLANK(i) && HAS(view[i], i))); /* stuck */
            do
            :: j < N ->
                assert(dead[i] || dead[j] || have[i] == have[j]);                                  /* stuck */
                assert(dead[i] || dead[j] || !HAS(SENDERS, j) || OF(in_log, i, j) == MSGS);       /* stuck */
                j++
            :: else -> break
            od;
            i++
        :: else -> break
        od
    }
}
