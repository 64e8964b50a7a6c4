/* SPDX-License-Identifier: BSD-3-Clause
 *
 * group_join.pml - the part of group.pml in which the last member joins (api/group/join.c), and what stands for it where
 * nobody does. That member is blank from the beginning until it has the state. ASKS are those whom it knows and asks
 * first, as bits: the others have joined before it, as far as it can tell. */
#define J (N - 1)
#ifndef ASKS
#define ASKS FIRST
#endif

#if JOINS
#define FIRST     (ALL & ~BIT(J))
#define BLANK(i)  ((i) == J && blank)
#define TO_ASK(i) ((i) == J && asked == 0 && !dead[J])
/* At the coordinator: one is to be let in. */
#define LET_IN (joins[me] && !flushing[me] && LOWEST(IN(me)) == me && !HAS(view[me] | excluded[me], J))

byte asked;
bool blank = true, joins[N], newly[N], was[N], dropped[N], said_blank[N];
byte state_at[N];

/* ---- the members ---- */

/* A view, x, is within `have`. Its sequencer takes the state. */
inline note_view()
{
    dropped[me] = newly[me] && HAS(view[me], J) && !HAS(x, J);
    newly[me] = x / 128;
    was[me] = was[me] || HAS(x, J);
    joins[me] = joins[me] && !HAS(x, J);
    if
    :: newly[me] && !flushing[me] && LOWEST(x % 8) == me ->
#ifdef BUG_STATE_EARLY
        send(J, SNAPSHOT, (x % 128 - 16) / 8, have[me], 0, 0, 0)
#else
        state_at[me] = have[me]
#endif
    :: else
    fi
}

inline give_state()
{
    if
    :: state_at[me] != 0 && known_stable[me] >= state_at[me] ->
        send(J, SNAPSHOT, epoch[me], state_at[me], 0, 0, 0);
        state_at[me] = 0
    :: else
    fi
}

inline drop_state()
{
    state_at[me] = 0
}

/* At the sequencer of a view that is about to begin: who is new in it, or was dropped, hears of that. */
inline welcome()
{
    if
    :: LOWEST(cut_view[me]) == me && cut_view[me] >= 8 ->
        send(J, WELCOME, promised[me], have[me] + 1, LOGGED(me, have[me] + 1), OF(in_log, me, 0) | (OF(in_log, me, 1) << 4) | (OF(in_log, me, 2) << 8), 0)
    :: LOWEST(cut_view[me]) == me && newly[me] && !HAS(cut_view[me], J) -> send(J, JOIN, promised[me], 0, 1, 0, 0)
    :: else
    fi
}

/* At the coordinator, whose new view has `members`. */
inline add_joiner()
{
    if
#ifdef BUG_BLANK_STAYS
    :: !HAS(excluded[me], J) && !HAS(view[me], J) && joins[me] ->
#else
    :: !HAS(excluded[me], J) && (HAS(view[me], J) -> said_blank[me] : joins[me]) ->
#endif
        members = members | BIT(J) | 8;
        OF(end_of, me, J) = 0
    :: else
    fi
}

inline note_blank(note_blank_is)
{
    said_blank[me] = note_blank_is
}

inline take_join(take_join_ep, take_join_seq, take_join_again)
{
    if
    :: HAS(view[me], J) && take_join_again && newly[me] && take_join_ep == epoch[me] && take_join_seq > promised[me] ->
        promised[me] = take_join_seq;
        due = true
    :: !HAS(view[me], J) && (!was[me] || take_join_again) ->
        joins[me] = true;
        due = due || LET_IN
    :: else
    fi
}

/* ---- the one that joins ---- */

inline ask_some(ask_some_set)
{
    y = (ask_some_set); /* before `asked` changes, of which it may be made */
    asked = asked | y;
    if
    :: HAS(y, 0) -> send(0, JOIN, 0, 0, 0, 0, 0)
    :: else
    fi;
    if
    :: HAS(y, 1) -> send(1, JOIN, 0, 0, 0, 0, 0)
    :: else
    fi;
    y = 0
}

/* Whoever joins: somebody of whom it was to hear has gone. */
inline seek()
{
    if
    :: ((view[me] != 0 -> view[me] & FIRST : FIRST) & ~excluded[me]) == 0 -> dead[me] = true /* it ends */
    :: else ->
        if
#ifndef BUG_NO_SEEK
        :: view[me] != 0 && HAS(excluded[me], SEQUENCER(me)) -> send_all(me, JOIN, epoch[me], promised[me], 1, 0, 0)
#endif
        :: view[me] == 0 && asked != 0 && (asked & ~excluded[me]) == 0 -> ask_some(FIRST & ~excluded[me] & ~asked)
        :: else
        fi
    fi
}

inline ask()
{
    ask_some(ASKS);
    if
    :: excluded[me] != 0 -> seek() /* deaths that were known before it asked are told afterwards */
    :: else
    fi
}

/* The log begins with the view that it is new in. */
inline take_welcome(take_welcome_j, take_welcome_ep, take_welcome_seq, take_welcome_what, take_welcome_more)
{
    if
    :: !blank || take_welcome_ep <= epoch[me]
    :: blank && take_welcome_ep > epoch[me] && take_welcome_ep < promised[me] -> send(take_welcome_j, JOIN, take_welcome_ep, promised[me], 1, 0, 0)
    :: blank && take_welcome_ep > epoch[me] && take_welcome_ep >= promised[me] ->
        z = 1;
        do
        :: z < LOG -> LOGGED(me, z) = 0; READY(me, z) = false; z++
        :: else -> break
        od;
        z = 0;
        do
        :: z < N -> OF(in_log, me, z) = END(take_welcome_more, z); z++
        :: else -> break
        od;
        z = 0;
        LOGGED(me, take_welcome_seq) = take_welcome_what;
        READY(me, take_welcome_seq) = true;
        have[me] = take_welcome_seq;
        known_stable[me] = take_welcome_seq - 1;
        state_at[me] = take_welcome_seq;
        view[me] = take_welcome_what % 8;
        promised[me] = take_welcome_ep;
        epoch[me] = take_welcome_ep;
        coordinator[me] = take_welcome_j;
        flushing[me] = false;
        send(take_welcome_j, ACK, take_welcome_ep, take_welcome_seq, 0, 0, 0)
    fi
}

/* Now it has delivered all that is within `have`. */
inline take_snapshot(take_snapshot_j, take_snapshot_ep, take_snapshot_seq)
{
    if
    :: blank && !flushing[me] && take_snapshot_ep == epoch[me] ->
        assert(take_snapshot_seq == state_at[me]); /* lies */
        blank = false;
        state_at[me] = 0;
        z = 1;
        do
        :: z <= have[me] ->
            LOGGED(me, z) = (z < take_snapshot_seq -> LOGGED(take_snapshot_j, z) : LOGGED(me, z));
            y = 0;
            do
            :: y < N ->
                assert(dead[y] || have[y] < z || LOGGED(y, z) == LOGGED(me, z)); /* order */
                y++
            :: else -> break
            od;
            z++
        :: else -> break
        od;
        y = 0;
        z = 0;
        send(SEQUENCER(me), ACK, epoch[me], have[me], 0, 0, 0)
    :: else
    fi
}

inline take_of_joining(of_joining_j, of_joining_kind, of_joining_ep, of_joining_seq, of_joining_what, of_joining_more)
{
    if
    :: of_joining_kind == JOIN && !BLANK(me) -> take_join(of_joining_ep, of_joining_seq, of_joining_what)
    :: of_joining_kind == JOIN && BLANK(me) -> send(of_joining_j, JOIN, epoch[me], promised[me], 1, 0, 0)
    :: of_joining_kind == WELCOME -> take_welcome(of_joining_j, of_joining_ep, of_joining_seq, of_joining_what, of_joining_more)
    :: of_joining_kind == SNAPSHOT -> take_snapshot(of_joining_j, of_joining_ep, of_joining_seq)
    fi
}

#else
#define FIRST     ALL
#define BLANK(i)  false
#define TO_ASK(i) false
#define LET_IN    false

inline note_view() { skip }
inline give_state() { skip }
inline drop_state() { skip }
inline welcome() { skip }
inline add_joiner() { skip }
inline note_blank(note_blank_is) { skip }
inline ask() { skip }
inline seek() { skip }
inline take_of_joining(of_joining_j, of_joining_kind, of_joining_ep, of_joining_seq, of_joining_what, of_joining_more) { skip }
#endif
