/* window.pml - a window that is offered, imported, written, and revoked, and the notifications of what was put.
 *
 * Mirrors src/window: offer.c (revoke), grant.c (entries and generations, who waits), import.c (the answer, OFFERED,
 * REVOKED before the answer), land.c (a put in two pieces, QUIET), note.c (the ring of notifications, which are
 * blocked, or not for the thread). That the owner and its thread never work at once is progress.pml's; here each step
 * of theirs is one.
 *
 * The owner offers the window OFFERS times, and revokes it in between; it waits for the importer's answer for as long as
 * chance says, and then moves the pages. The importer imports it IMPORTS times, each time puts PUTS times, may ask for
 * quiet, and drops it. A put is a store into what is mapped and a message NOTE, or a message of two pieces
 * between which the owner may do anything. Requests of each side are one lane in order, and its replies another one.
 *
 * Proved, for these sizes: when a revoke has returned, nothing that was imported before it reaches the owner's memory;
 * each notification runs once, in order, after its data is in memory, never while they are blocked, and never in the
 * thread unless it is marked; quiet is answered when each put has landed or was refused, and tells that; every import
 * and every revoke ends. Planted bugs: every BUG_ macro; scripts/check-models wants each of them found. */

#ifndef OFFERS
#define OFFERS 2
#endif
#ifndef IMPORTS
#define IMPORTS 2
#endif
#ifndef PUTS
#define PUTS 2
#endif
#ifndef NOTES
#define NOTES 1
#endif
#ifdef IN_THREAD
#define MARKED 1
#else
#define MARKED 0
#endif
#define ENTRIES 3
#define GRANTS (IMPORTS + OFFERS)

mtype = { IMPORT, PUT, REST, NOTE, QUIET, DROP, OFFERED, REVOKED, IMPORTED, NOT_YET, UNMAPPED, QUIETED };
mtype = { NONE, ASKED, WAITS, HERE, ENDED };

/* Kind, entry, generation, and what it is about: a put's number, a grant's, or a status. */
chan to_owner = [4] of { mtype, byte, byte, byte };
chan to_importer = [4] of { mtype, byte, byte, byte };
chan answers = [4] of { mtype, byte, byte, byte };  /* the owner's replies */
chan unmapped = [4] of { mtype, byte, byte, byte }; /* the importer's replies */

/* ---- the owner ---- */

bit offered, waiting, blocked;
byte pages;              /* which pages are at the window's address */
bit used[ENTRIES], live[ENTRIES], told[ENTRIES];
byte generation[ENTRIES], grant_of[ENTRIES], pages_of[GRANTS + 1];
byte grants;             /* that were ever made */
bit over[GRANTS + 1];    /* a revoke of it has returned */
byte notes;              /* in the ring of notifications */
byte note[NOTES];
byte data;               /* put whose data is in the owner's memory, the last one */
bit begun_live;          /* BUG_LOOKS_ONCE: what was found at the first piece */
bit refused;             /* since the last QUIET */
byte settled, landed;    /* puts that have landed or were refused; that have landed, and notify */
byte ran, last_ran;
bit owner_done;

/* The put reaches the owner's memory by this grant. */
inline reach(g, k)
{
    assert(!over[g]); /* nothing of a revoked import */
    data = k
}

#if defined(BUG_THREAD_RUNS)
#define MAY_RUN(is_thread) 1
#else
#define MAY_RUN(is_thread) (MARKED || !is_thread)
#endif

inline run_note(is_thread)
{
    d_step {
#ifndef BUG_RUNS_BLOCKED
        notes > 0 && !blocked && MAY_RUN(is_thread) ->
#else
        notes > 0 && MAY_RUN(is_thread) ->
#endif
        assert(!blocked && (MARKED || !is_thread));
        assert(note[0] <= data && note[0] > last_ran);
        last_ran = note[0];
        ran++;
        notes--;
        j = 0;
        do
        :: j < notes -> note[j] = note[j + 1]; j++
        :: else -> break
        od
    }
}

/* The ring has room, or the message stays at the head of its lane. */
#ifdef BUG_FULL_DROPS
#define ROOM 1
#else
#define ROOM (notes < NOTES)
#endif

inline add_note(k)
{
    if
    :: notes < NOTES -> note[notes] = k; notes++
    :: else
    fi;
    landed++
}

#define GRANTED(e, g) (live[e] && generation[e] == g)

inline free_entry(e)
{
    used[e] = 0;
    live[e] = 0;
    told[e] = 0;
    generation[e]++
}

inline on_import()
{
    if
    :: !offered -> waiting = 1; answers!NOT_YET(0, 0, 0)
    :: offered ->
        j = 0;
        do
        :: used[j] -> j++
        :: else -> break
        od;
        assert(j < ENTRIES);
        grants++;
        used[j] = 1;
        live[j] = 1;
        grant_of[j] = grants;
        pages_of[grants] = pages; /* the file goes to the importer now */
        answers!IMPORTED(j, generation[j], grants)
    fi
}

/* One message, or one note, of the owner's or the thread's turn. */
inline take_in(is_thread)
{
    atomic {
        if
        :: to_owner?[IMPORT(_, _, _)] && nfull(answers) -> to_owner?IMPORT(e, g, k); on_import()
        :: to_owner?[PUT(_, _, _)] ->
            to_owner?PUT(e, g, k);
            begun_live = GRANTED(e, g);
            if
            :: begun_live ->
#ifdef BUG_NOTE_FIRST
                if
                :: notes < NOTES -> note[notes] = k; notes++
                :: else
                fi
#endif
            :: else
            fi
        :: to_owner?[REST(_, _, _)] && ROOM ->
            to_owner?REST(e, g, k);
            settled++;
            if
#ifdef BUG_LOOKS_ONCE
            :: begun_live ->
#else
            :: begun_live && GRANTED(e, g) ->
#endif
                reach(grant_of[e], k);
#ifdef BUG_NOTE_FIRST
                landed++
#else
                add_note(k)
#endif
            :: else -> refused = 1
            fi
        :: to_owner?[NOTE(_, _, _)] && ROOM ->
            to_owner?NOTE(e, g, k);
            settled++;
            if
            :: GRANTED(e, g) -> add_note(k)
            :: else -> refused = 1
            fi
        :: to_owner?[QUIET(_, _, _)] && nfull(answers) ->
            to_owner?QUIET(e, g, k);
#ifdef BUG_QUIET_SAYS_YES
            answers!QUIETED(0, 0, 0);
#else
            answers!QUIETED(0, 0, refused);
#endif
            refused = 0
        :: to_owner?[DROP(_, _, _)] ->
            to_owner?DROP(e, g, k);
            if
            :: GRANTED(e, g) -> free_entry(e)
            :: else
            fi
        :: unmapped?[UNMAPPED(_, _, _)] -> unmapped?UNMAPPED(e, g, k); free_entry(e)
        :: run_note(is_thread)
        fi;
        e = 0; g = 0; k = 0; j = 0
    }
}

inline offer()
{
    atomic {
        nfull(to_importer) -> offered = 1;
        if
        :: waiting -> waiting = 0; to_importer!OFFERED(0, 0, 0)
        :: else
        fi
    }
}

/* The entry ends first; then the importer is told. */
inline revoke()
{
    atomic {
        offered = 0;
        e = 0;
        do
        :: e < ENTRIES && live[e] ->
            live[e] = 0;
            told[e] = 1;
            to_importer!REVOKED(e, generation[e], 0);
            e++
        :: e < ENTRIES && !live[e] -> e++
        :: e == ENTRIES -> break
        od;
        e = 0
    }
    do
    :: take_in(0)
    :: atomic { told[0] + told[1] + told[2] == 0 -> break }
    :: break /* no time is left */
    od;
    atomic {
#ifndef BUG_PAGES_STAY
        if
        :: told[0] + told[1] + told[2] > 0 -> pages++
        :: else
        fi;
#endif
        for (e : 0 .. ENTRIES - 1) {
            if
            :: told[e] -> told[e] = 0
            :: else
            fi
        }
        for (e : 1 .. GRANTS) {
            if
            :: e <= grants -> over[e] = 1
            :: else
            fi
        }
        e = 0
    }
}

active proctype owner()
{
    byte e, g, k, j, offers;
    do
    :: offers < OFFERS ->
        offer();
        offers++;
        do
        :: take_in(0)
        :: blocked = !blocked
        :: break
        od;
        if
        :: offers < OFFERS -> revoke()
        :: else
        fi
    :: else -> break
    od;
    blocked = 0;
    owner_done = 1;
end:
    do
    :: take_in(0)
    od
}

active proctype thread()
{
    byte e, g, k, j;
end:
    do
    :: take_in(1)
    od
}

/* ---- the importer ---- */

mtype state = NONE;
byte own_entry, own_generation, own_grant, own_pages;
bit mapped, is_offered, early, quieted, quiet_status;
byte early_entry, early_generation;
byte sent; /* puts */
bit importer_done;

#ifdef BUG_BY_INDEX
#define IS_EARLY(e, g) (early && early_entry == e)
#else
#define IS_EARLY(e, g) (early && early_entry == e && early_generation == g)
#endif

inline end_import(e, g)
{
    assert(!GRANTED(e, g)); /* none is lost that was not revoked */
    state = ENDED;
    mapped = 0
}

/* What comes at any time, whatever the importer's program does. */
active proctype hears()
{
    byte e, g, k;
end:
    do
    :: atomic { to_importer?OFFERED(_, _, _) ->
#ifndef BUG_OFFERED_EARLY
        is_offered = 1;
#endif
        if
        :: state == WAITS -> state = NONE
        :: else
        fi }
    :: atomic { to_importer?REVOKED(e, g, _) ->
        if
        :: state == HERE && own_entry == e && own_generation == g ->
#ifdef BUG_ANSWERS_FIRST
            unmapped!UNMAPPED(e, g, 0)
        :: else ->
            if
            :: state == ASKED -> early = 1; early_entry = e; early_generation = g
            :: else
            fi;
            unmapped!UNMAPPED(e, g, 0)
        fi }
        if
        :: state == HERE && own_entry == e && own_generation == g -> end_import(e, g)
        :: else
        fi
#else
            end_import(e, g)
        :: else ->
#ifndef BUG_NO_EARLY
            if
            :: state == ASKED -> early = 1; early_entry = e; early_generation = g
            :: else
            fi
#endif
        fi;
        unmapped!UNMAPPED(e, g, 0) }
#endif
    :: atomic { answers?IMPORTED(e, g, k) ->
        if
        :: IS_EARLY(e, g) -> end_import(e, g)
        :: else ->
            state = HERE;
            own_entry = e;
            own_generation = g;
            own_grant = k;
            own_pages = pages_of[k];
            if
            :: mapped = 1
            :: mapped = 0
            fi
        fi;
        early = 0 }
    :: atomic { answers?NOT_YET(_, _, _) ->
        if
        :: is_offered -> state = NONE
        :: else -> state = WAITS
        fi }
    :: atomic { answers?QUIETED(_, _, k) -> quieted = 1; quiet_status = k }
    od
}

inline put()
{
    if
    :: atomic { state == HERE && mapped ->
        sent++;
        if
        :: own_pages == pages -> reach(own_grant, sent)
        :: else
        fi }
        to_owner!NOTE(own_entry, own_generation, sent)
    :: atomic { state == HERE && !mapped -> sent++; to_owner!PUT(own_entry, own_generation, sent) }
        to_owner!REST(own_entry, own_generation, sent)
    :: state != HERE -> skip
    fi
}

active proctype importer()
{
    byte imports, puts, sent_before, landed_before;
    do
    :: imports < IMPORTS ->
        imports++;
        do
        :: atomic { state == NONE || state == ENDED -> state = ASKED; is_offered = 0 }
            to_owner!IMPORT(0, 0, 0)
        :: atomic { state == HERE || state == ENDED -> break }
        od;
        puts = 0;
        do
        :: puts < PUTS -> put(); puts++
        :: else -> break
        od;
        if
        :: to_owner!QUIET(0, 0, 0)
        :: imports < IMPORTS -> goto leaves
        fi;
        atomic {
            quieted -> quieted = 0;
            assert(settled == sent);                     /* each has landed, or was refused */
            assert(quiet_status || landed - landed_before == sent - sent_before); /* and that is told */
            sent_before = sent;
            landed_before = landed
        }
leaves:
        if
        :: atomic { state == HERE -> state = NONE; mapped = 0; to_owner!DROP(own_entry, own_generation, 0) }
        :: atomic { state != HERE -> state = NONE }
        fi
    :: else -> break
    od;
    importer_done = 1
}

active proctype in_the_end()
{
    timeout -> assert(owner_done && importer_done && ran == landed)
}
