/* SPDX-License-Identifier: BSD-3-Clause
 *
 * membership.c - the ranks, events and close of membership.h. A report costs constant time, the end of a wave or a
 * death one pass over the ranks. */
#include "job/membership.h"

#include "base/bug.h"
#include "base/error.h"
#include "job/membership_internal.h"
#include "runnel/runnel.h"

#include <stdlib.h>

/* The room for events that a rank gets when it joins, enough for a connection and a death of each of a few peers and a
 * close: these events cannot be lost for want of memory. */
enum { EVENTS_FIRST = 64 };

static void publish(struct rnl_membership *m, const struct rnl_word *word)
{
    if (m->opt.publish)
        m->opt.publish(m->opt.arg, word);
}

/* ---- events ---- */

static int make_room(struct rnl_member *r, uint32_t room)
{
    struct rnl_event *events = room > r->room ? malloc(room * sizeof *events) : r->events;
    if (!events)
        return RNL_ERR_NO_MEMORY;
    if (events == r->events)
        return 0;
    for (uint64_t n = r->taken; n < r->queued; n++)
        events[n % room] = r->events[n % r->room];
    free(r->events);
    r->events = events;
    r->room = room;
    return 0;
}

static void queue(struct rnl_membership *m, uint32_t rank, const struct rnl_event *event)
{
    struct rnl_member *r = &m->member[rank];
    if (!r->is_here || rnl_member_is_gone(r) || r->lost)
        return;
    struct rnl_event *last = r->queued > r->taken ? &r->events[(r->queued - 1) % r->room] : NULL;
    if (event->kind == RNL_EVENT_CLOSE_REQUEST && last && last->kind == RNL_EVENT_CLOSE_REQUEST) {
        last->wave = event->wave; /* merged, so the queue stays bounded if a rank reports without taking its events */
        return;
    }
    if (r->queued - r->taken == r->room && make_room(r, r->room ? 2 * r->room : EVENTS_FIRST) < 0)
        r->lost = true;
    else
        r->events[r->queued++ % r->room] = *event;
    if (m->opt.notify)
        m->opt.notify(m->opt.arg, rank);
}

static void queue_all(struct rnl_membership *m, const struct rnl_event *event, uint32_t except)
{
    for (uint32_t i = 0; i < m->opt.size; i++)
        if (i != except)
            queue(m, i, event);
}

const struct rnl_event *rnl_membership_next(struct rnl_membership *m, uint32_t rank)
{
    static const struct rnl_event gone = {.kind = RNL_EVENT_JOB_GONE};
    const struct rnl_member *r = &m->member[rank];
    if (r->taken < r->queued)
        return &r->events[r->taken % r->room];
    return r->lost && !r->gone_reported && !RNL_BUG(membership_hides_loss) ? &gone : NULL;
}

void rnl_membership_took(struct rnl_membership *m, uint32_t rank)
{
    struct rnl_member *r = &m->member[rank];
    if (r->taken == r->queued) {
        r->gone_reported = true;
        return;
    }
    const struct rnl_event *event = &r->events[r->taken++ % r->room];
    if (event->kind == RNL_EVENT_RETURN)
        m->seen[rnl_member_pair(m, rank, event->rank)] = (uint32_t)event->wave;
}

bool rnl_membership_event(struct rnl_membership *m, uint32_t rank, struct rnl_event *out)
{
    const struct rnl_event *next = rnl_membership_next(m, rank);
    if (!next)
        return false;
    *out = *next;
    rnl_membership_took(m, rank);
    return true;
}

uint64_t rnl_membership_queued(const struct rnl_membership *m, uint32_t rank)
{
    return m->member[rank].queued;
}

uint64_t rnl_membership_taken(const struct rnl_membership *m, uint32_t rank)
{
    return m->member[rank].taken;
}

void rnl_membership_cut_off(struct rnl_membership *m, uint32_t rank)
{
    m->member[rank].lost = true;
    if (m->opt.notify)
        m->opt.notify(m->opt.arg, rank);
}

static void queue_death(struct rnl_membership *m, uint32_t rank, uint32_t dead)
{
    const struct rnl_member *d = &m->member[dead];
    const struct rnl_event event = {
        .kind = RNL_EVENT_DEATH, .rank = dead, .incarnation = d->incarnation, .why = d->why, .detail = d->detail};
    queue(m, rank, &event);
}

void rnl_member_connect(struct rnl_membership *m, uint32_t rank, uint32_t from)
{
    const struct rnl_event event = {
        .kind = RNL_EVENT_CONNECT, .rank = from, .incarnation = m->member[from].incarnation};
    queue(m, rank, &event);
}

/* ---- the close ---- */

static void announce(struct rnl_membership *m, enum rnl_word_kind kind, uint64_t wave)
{
    const struct rnl_event event = {.kind = kind == RNL_WORD_DONE ? RNL_EVENT_CLOSE_DONE : RNL_EVENT_CLOSE_REQUEST,
                                    .wave = wave};
    m->wave = wave;
    m->done = kind == RNL_WORD_DONE;
    m->reported = 0;
    for (uint32_t i = 0; i < m->opt.size; i++) {
        m->member[i].reported = false;
        if (m->member[i].state == RNL_RANK_JOINED)
            queue(m, i, &event);
    }
}

/* Ends the wave if its last report is in: the close is done, or the next wave is asked for. */
static void look_at_wave(struct rnl_membership *m)
{
    if (!m->opt.leads || m->done || m->starting > 0 || m->joined == 0 || m->reported < m->joined)
        return;
    bool quiet = m->wave > 0 && (!m->inconclusive || RNL_BUG(membership_ignores_death_in_wave));
    for (uint32_t i = 0; i < m->opt.size; i++) {
        struct rnl_member *r = &m->member[i];
        if (r->state != RNL_RANK_JOINED)
            continue;
        quiet = quiet && (r->activity == r->activity_0 || RNL_BUG(membership_ignores_activity));
        r->activity_0 = r->activity;
    }
    m->inconclusive = false;
    const struct rnl_word word = {.kind = quiet ? RNL_WORD_DONE : RNL_WORD_REQUEST, .wave = m->wave + !quiet};
    publish(m, &word);
    announce(m, word.kind, word.wave);
}

int rnl_membership_report(struct rnl_membership *m, uint32_t rank, uint64_t wave, uint64_t activity)
{
    struct rnl_member *r = &m->member[rank];
    if (r->state != RNL_RANK_JOINED || wave > m->wave)
        return rnl_fail(RNL_ERR_JOB, "rank %u reported wave %llu of the close, which nobody asked it for", rank,
                        (unsigned long long)wave);
    if (m->done || wave < m->wave)
        return 0;
    m->reported += !r->reported;
    r->reported = true;
    r->activity = activity;
    const struct rnl_word word = {.kind = RNL_WORD_REPORT, .rank = rank, .wave = wave, .activity = activity};
    if (!m->opt.leads)
        publish(m, &word);
    look_at_wave(m);
    return 0;
}

bool rnl_membership_closed(const struct rnl_membership *m)
{
    return m->done;
}

/* ---- ranks ---- */

static void set_state(struct rnl_membership *m, uint32_t rank, enum rnl_rank_state state)
{
    struct rnl_member *r = &m->member[rank];
    m->starting -= r->state == RNL_RANK_STARTING;
    m->joined -= r->state == RNL_RANK_JOINED;
    m->reported -= r->reported;
    m->starting += state == RNL_RANK_STARTING;
    m->joined += state == RNL_RANK_JOINED;
    r->reported = false;
    r->state = state;
    if (m->opt.changed)
        m->opt.changed(m->opt.arg, rank);
}

static void empty_queue(struct rnl_member *r)
{
    r->taken = r->queued;
    r->lost = r->gone_reported = false;
}

int rnl_membership_join(struct rnl_membership *m, uint32_t rank, uint64_t incarnation)
{
    struct rnl_member *r = &m->member[rank];
    if (r->state != RNL_RANK_STARTING)
        return rnl_fail(RNL_ERR_JOB,
                        "rank %u has been in this job before: a process joins it once, and one that was "
                        "started anew is not taken back",
                        rank);
    uint32_t room = m->opt.size < EVENTS_FIRST / 2 ? 2 * m->opt.size + 8 : EVENTS_FIRST;
    if (r->is_here && make_room(r, room) < 0)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the events of rank %u", rank);
    if (incarnation)
        r->incarnation = incarnation;
    r->has_joined = true;
    set_state(m, rank, RNL_RANK_JOINED);
    const struct rnl_word word = {.kind = RNL_WORD_JOINED, .rank = rank};
    if (!m->opt.leads)
        publish(m, &word);
    return 0;
}

void rnl_membership_unjoin(struct rnl_membership *m, uint32_t rank)
{
    struct rnl_member *r = &m->member[rank];
    if (r->state != RNL_RANK_JOINED || r->reported || m->done)
        return;
    set_state(m, rank, RNL_RANK_STARTING);
    empty_queue(r); /* what it has taken is queued anew below, for the next process that joins */
    rnl_member_connect_again(m, rank);
    for (uint32_t i = 0; i < m->opt.size; i++)
        if (m->member[i].state == RNL_RANK_DEAD)
            queue_death(m, rank, i);
    const struct rnl_word word = {.kind = RNL_WORD_UNJOINED, .rank = rank};
    if (!m->opt.leads)
        publish(m, &word);
}

int rnl_membership_rejoin(struct rnl_membership *m, uint32_t rank, uint64_t incarnation)
{
    struct rnl_member *r = &m->member[rank];
    uint32_t size = m->opt.size;
    if (r->state == RNL_RANK_STARTING)
        return rnl_membership_join(m, rank, incarnation);
    if (r->state != RNL_RANK_DEAD || m->done || m->opt.publish)
        return rnl_fail(RNL_ERR_JOB, "rank %u cannot come back: %s", rank,
                        r->state == RNL_RANK_JOINED ? "its process lives"
                        : m->opt.publish            ? "a job of several hosts takes nobody back"
                                                    : "the job has closed");
    if (!m->seen)
        m->seen = calloc((size_t)size * size, sizeof *m->seen);
    if (!m->seen || make_room(r, EVENTS_FIRST) < 0)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory to take rank %u back", rank);
    r->returns++;
    r->before = r->incarnation;
    r->incarnation = incarnation;
    r->has_joined = true;
    r->activity = r->activity_0 = 0;
    empty_queue(r);
    set_state(m, rank, RNL_RANK_JOINED);
    m->inconclusive = true;
    const struct rnl_event back = {
        .kind = RNL_EVENT_RETURN, .rank = rank, .incarnation = incarnation, .wave = r->returns}; /* _took reads wave */
    const struct rnl_event ask = {.kind = RNL_EVENT_CLOSE_REQUEST, .wave = m->wave};
    for (uint32_t i = 0; i < size; i++) {
        rnl_member_set_bit(m->mapped, rnl_member_pair(m, rank, i), false);
        rnl_member_set_bit(m->mapped, rnl_member_pair(m, i, rank), false);
        rnl_member_set_bit(m->disconnected, rnl_member_pair(m, rank, i), false);
        rnl_member_set_bit(m->disconnected, rnl_member_pair(m, i, rank), false);
        m->seen[rnl_member_pair(m, rank, i)] = m->member[i].returns;
        if (m->member[i].state == RNL_RANK_DEAD)
            queue_death(m, rank, i);
    }
    if (m->wave > 0)
        queue(m, rank, &ask);
    queue_all(m, &back, rank);
    return 0;
}

void rnl_membership_gone(struct rnl_membership *m, uint32_t rank, int why, int detail)
{
    struct rnl_member *r = &m->member[rank];
    if (rnl_member_is_gone(r))
        return;
    if (m->done) { /* after the close an end is no death */
        set_state(m, rank, RNL_RANK_LEFT);
        return;
    }
    r->why = why;
    r->detail = detail;
    m->inconclusive |= r->state == RNL_RANK_JOINED;
    set_state(m, rank, RNL_RANK_DEAD);
    rnl_member_drop_wanted(m, rank);
    for (uint32_t i = 0; i < m->opt.size; i++)
        queue_death(m, i, rank);
    if (!m->opt.leads && !r->is_here) /* the leader itself has sent this death */
        return;
    const struct rnl_word word = {
        .kind = m->opt.leads ? RNL_WORD_DEATH : RNL_WORD_GONE, .rank = rank, .why = why, .detail = detail};
    publish(m, &word);
    look_at_wave(m);
}

static void disconnected(struct rnl_membership *m, const struct rnl_word *w)
{
    const struct rnl_event event = {.kind = RNL_EVENT_DEATH,
                                    .rank = w->rank,
                                    .incarnation = m->member[w->rank].incarnation,
                                    .why = RNL_DEATH_DISCONNECTED};
    if (m->member[w->other].is_here)
        queue(m, w->other, &event);
    else
        publish(m, w);
}

int rnl_membership_disconnect(struct rnl_membership *m, uint32_t rank, uint32_t other)
{
    const struct rnl_word word = {.kind = RNL_WORD_DISCONNECT, .rank = rank, .other = other, .why = RNL_DEATH_BROKEN};
    if (rank == other)
        return rnl_fail(RNL_ERR_JOB, "rank %u disconnects from itself", rank);
    if (rnl_member_bit(m->disconnected, rnl_member_pair(m, rank, other))) /* once, so queues stay bounded */
        return 0;
    rnl_member_set_bit(m->disconnected, rnl_member_pair(m, rank, other), true);
    disconnected(m, &word);
    return 0;
}

/* Whether it is one of the messages that the leader sends. */
static bool receive_leader(struct rnl_membership *m, const struct rnl_word *w)
{
    switch (w->kind) {
    case RNL_WORD_DEATH: /* of a rank that is here, this membership finds the death itself */
        if (!m->member[w->rank].is_here)
            rnl_membership_gone(m, w->rank, w->why, w->detail);
        return true;
    case RNL_WORD_REQUEST:
    case RNL_WORD_DONE:
        announce(m, w->kind, w->wave);
        return true;
    case RNL_WORD_DISCONNECT:
        if (m->member[w->other].is_here)
            disconnected(m, w);
        return true;
    }
    return false;
}

/* Whether it is one of the messages that are sent to the leader. */
static bool receive_follower(struct rnl_membership *m, const struct rnl_word *w)
{
    enum rnl_rank_state state = m->member[w->rank].state;
    switch (w->kind) {
    case RNL_WORD_JOINED:
        return state != RNL_RANK_STARTING || rnl_membership_join(m, w->rank, 0) == 0;
    case RNL_WORD_UNJOINED:
        rnl_membership_unjoin(m, w->rank);
        return true;
    case RNL_WORD_REPORT: /* a report may be in flight when the leader declares its rank dead */
        return state != RNL_RANK_JOINED || rnl_membership_report(m, w->rank, w->wave, w->activity) == 0;
    case RNL_WORD_GONE:
        rnl_membership_gone(m, w->rank, w->why, w->detail);
        return true;
    case RNL_WORD_DISCONNECT:
        disconnected(m, w);
        return true;
    }
    return false;
}

int rnl_membership_receive(struct rnl_membership *m, const struct rnl_word *w)
{
    bool good = w->rank < m->opt.size && w->other < m->opt.size && w->why >= 0 && w->why <= RNL_DEATH_HOST;
    if (good && (m->opt.leads ? receive_follower(m, w) : receive_leader(m, w)))
        return 0;
    return rnl_fail(RNL_ERR_JOB,
                    "another host's agent sent message %u about rank %u, which it may not send: run one release of "
                    "runnel on all hosts",
                    w->kind, w->rank);
}

enum rnl_rank_state rnl_membership_state(const struct rnl_membership *m, uint32_t rank)
{
    return m->member[rank].state;
}

void rnl_membership_death(const struct rnl_membership *m, uint32_t rank, int32_t *why, int32_t *detail)
{
    *why = m->member[rank].why;
    *detail = m->member[rank].detail;
}

uint32_t rnl_member_returns_seen(const struct rnl_membership *m, uint32_t self, uint32_t rank)
{
    return self == rank ? m->member[rank].returns : m->seen ? m->seen[rnl_member_pair(m, self, rank)] : 0;
}

uint64_t rnl_membership_incarnation(const struct rnl_membership *m, uint32_t self, uint32_t rank)
{
    const struct rnl_member *r = &m->member[rank];
    if (!r->has_joined)
        return 0;
    return rnl_member_returns_seen(m, self, rank) == r->returns ? r->incarnation : r->before;
}

/* ---- life ---- */

int rnl_membership_new(const struct rnl_membership_options *opt, struct rnl_membership **out)
{
    struct rnl_membership *m = calloc(1, sizeof *m + opt->size * sizeof m->member[0]);
    size_t bits = ((size_t)opt->size * opt->size + 7) / 8;
    if (m) {
        m->opt = *opt;
        m->starting = opt->size;
        m->mapped = calloc(bits, 1);
        m->disconnected = calloc(bits, 1);
    }
    if (!m || !m->mapped || !m->disconnected) {
        rnl_membership_free(m);
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a job of %u rank%s", opt->size, RNL_S(opt->size));
    }
    for (uint32_t i = 0; i < opt->size; i++) {
        m->member[i].incarnation = i + 1;
        m->member[i].is_here = !opt->is_here || opt->is_here[i];
    }
    m->opt.is_here = NULL;
    *out = m;
    return 0;
}

void rnl_membership_free(struct rnl_membership *m)
{
    if (!m)
        return;
    rnl_member_release_all(m);
    for (uint32_t i = 0; i < m->opt.size; i++)
        free(m->member[i].events);
    free(m->at);
    free(m->mapped);
    free(m->disconnected);
    free(m->seen);
    free(m);
}
