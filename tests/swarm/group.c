/* SPDX-License-Identifier: BSD-3-Clause
 *
 * group.c - see world.h: totally ordered multicast among the hosts of a schedule, and what must be true of it. A member
 * stands if its process has not died and it was in the group until it left. All that stand have delivered the same at
 * each place; each of them every place from its first view on, each sender's messages in their order and without a gap,
 * and its own all. A group that may be taken for dead wrongly has a majority, or two sides would go on. */
#include <stdlib.h>
#include <string.h>

#include "base/chance.h"
#include "runnel/group.h"
#include "support/must.h"
#include "support/random.h"
#include "swarm/world.h"

enum { HANDLER = 7, MESSAGES_MAX = 48, LONGEST = 20000, STATE_BYTES = SWARM_HOSTS_MAX * 8 };

struct swarm_member {
    struct swarm_host *host;
    rnl_group *group;
    uint64_t drawn, sent;
    uint64_t first, last;                /* places that it has delivered; 0 = none yet */
    uint64_t *what;                      /* of each place from `first` on */
    uint64_t delivered[SWARM_HOSTS_MAX]; /* messages of each, as the state has them before its first view */
    uint64_t room;
    unsigned join_after; /* messages of the program; 0 = it is in the first view */
    uint8_t in_view, loaded, ended, left;
    uint8_t sending; /* a call that may wait: what its handlers sent would come before it */
};

static uint64_t drawn_for_all(const struct swarm_world *w, uint64_t k, uint64_t below)
{
    return swarm_draw(w->plan.seed, SWARM_STREAM_FAULT + SWARM_GROUP, 0, k, below);
}
static uint64_t draw(struct swarm_member *m, uint64_t below)
{
    return swarm_draw(m->host->w->plan.seed, SWARM_STREAM_FAULT + SWARM_GROUP, 1 + m->host->rank, m->drawn++, below);
}

/* The k-th message of a rank. */
static uint64_t id_of(const struct swarm_world *w, unsigned rank, uint64_t k)
{
    return rnl_chance(w->plan.seed, SWARM_GROUP, rank, k);
}
static size_t length_of(const struct swarm_world *w, unsigned rank, uint64_t k)
{
    const uint64_t id = id_of(w, rank, k), most = id % 8 ? 200 : LONGEST;
    return id / 8 % (most < w->plan.longest ? most : w->plan.longest);
}

static void note_place(struct swarm_member *m, uint64_t number, uint64_t what)
{
    if (m->ended || (m->last ? number != m->last + 1 : number == 0))
        swarm_wrong("rank %u delivers place %llu of the group after %llu, %s", m->host->rank,
                    (unsigned long long)number, (unsigned long long)m->last, m->ended ? "and is out" : "in it");
    m->first = m->first ? m->first : number;
    m->last = number;
    if (number - m->first == m->room) {
        m->room = m->room ? 2 * m->room : 64;
        m->what = realloc(m->what, m->room * sizeof *m->what);
        TEST_MUST(m->what != NULL);
    }
    m->what[number - m->first] = what;
    rnl_sim_note(m->host->w->sim, SWARM_NOTE_MESSAGE, m->host->rank, 8, what);
}

static void send(struct swarm_member *m, unsigned flags)
{
    const struct swarm_world *w = m->host->w;
    const unsigned rank = m->host->rank;
    const struct rnl_buffer piece = {test_pattern(id_of(w, rank, m->sent), 0), length_of(w, rank, m->sent)};
    if (m->sent == MESSAGES_MAX || m->left || m->sending)
        return;
    m->sending = 1;
    m->sent++; /* it may be delivered before the call returns */
    int status = rnl_group_send(m->group, &piece, 1, flags);
    m->sending = 0;
    if (status < 0)
        m->sent--;
    if (status < 0 && status != RNL_NO_ROOM && status != RNL_ERR_REFUSED && status != RNL_ERR_NO_MEMORY &&
        status != RNL_ERR_CLOSED)
        swarm_wrong("rank %u, a message to the group: %s", rank, rnl_last_error()->text);
}

static void deliver(rnl_group *g, const struct rnl_group_message *message, void *ctx)
{
    struct swarm_member *m = ctx;
    const struct swarm_world *w = m->host->w;
    const uint64_t k = m->delivered[message->sender]++;
    (void)g;
    if (message->n != length_of(w, message->sender, k) ||
        (message->n && memcmp(message->buf, test_pattern(id_of(w, message->sender, k), 0), message->n) != 0))
        swarm_wrong("rank %u delivers %zu bytes of rank %u, which are not those of its message %llu to the group",
                    m->host->rank, message->n, message->sender, (unsigned long long)k);
    note_place(m, message->number, (uint64_t)message->sender << 32 | k);
    if (draw(m, 8) == 0)
        send(m, RNL_NO_WAIT);
}

static void changed(rnl_group *g, const struct rnl_group_view *view, void *ctx)
{
    struct swarm_member *m = ctx;
    uint64_t what = rnl_chance(view->count, 1, view->sequencer, 0) | (uint64_t)1 << 63;
    (void)g;
    if (m->join_after && !m->loaded && !m->first)
        swarm_wrong("rank %u is in the group, and has not been given its state", m->host->rank);
    m->in_view = 0;
    for (unsigned i = 0; i < view->count; i++) {
        what = rnl_chance(what, 2, view->ranks[i], i) | (uint64_t)1 << 63;
        m->in_view |= view->ranks[i] == m->host->rank;
    }
    note_place(m, view->number, what);
}

static void ended(rnl_group *g, int status, void *ctx)
{
    struct swarm_member *m = ctx;
    (void)g, (void)status;
    m->ended = 1;
}

static void save(rnl_group *g, void *ctx)
{
    const struct swarm_member *m = ctx;
    const size_t half = STATE_BYTES / 2;
    if (rnl_group_put_state(g, m->delivered, half) < 0 ||
        rnl_group_put_state(g, (const unsigned char *)m->delivered + half, STATE_BYTES - half) < 0)
        swarm_wrong("rank %u, the state of the group: %s", m->host->rank, rnl_last_error()->text);
}

static void load(rnl_group *g, const void *buf, size_t n, void *ctx)
{
    struct swarm_member *m = ctx;
    (void)g;
    if (m->loaded == 2 || n != STATE_BYTES / 2 || m->first)
        swarm_wrong("rank %u is given %zu bytes of the state of the group, piece %u", m->host->rank, n, m->loaded);
    memcpy((unsigned char *)m->delivered + m->loaded++ * n, buf, n);
}

static void open_group(struct swarm_member *m)
{
    const struct swarm_world *w = m->host->w;
    unsigned first[SWARM_HOSTS_MAX];
    struct rnl_group_options opt = {
        .size = sizeof opt,
        .flags = swarm_has(&w->plan, SWARM_GONE) || drawn_for_all(w, 0, 2) ? RNL_GROUP_MAJORITY : 0,
        .handler = HANDLER,
        .budget = w->plan.hosts * ((size_t)4096 << drawn_for_all(w, 1, 5)),
        .method = (enum rnl_group_method)drawn_for_all(w, 2, 4),
        .flat = 1 + (unsigned)drawn_for_all(w, 3, 8),
        .deliver = deliver,
        .changed = changed,
        .ended = ended,
        .ctx = m,
        .first_ranks = first,
        .save = save,
        .load = load};
    for (unsigned i = 0; i < w->plan.hosts; i++)
        if (w->host[i].member->join_after == 0)
            first[opt.first_count++] = i;
    if (rnl_group_open(m->host->ep, &opt, &m->group) < 0)
        swarm_wrong("rank %u, the group: %s", m->host->rank, rnl_last_error()->text);
}

void swarm_group_begins(struct swarm_host *h)
{
    struct swarm_world *w = h->w;
    if (!swarm_has(&w->plan, SWARM_GROUP) || swarm_host_life(h) > 0)
        return;
    for (unsigned i = 0, oldest = (unsigned)drawn_for_all(w, 4, w->plan.hosts); i < w->plan.hosts; i++) {
        struct swarm_member *m = w->host[i].member;
        if (m)
            continue;
        w->host[i].member = m = calloc(1, sizeof *m);
        TEST_MUST(m != NULL);
        m->host = &w->host[i];
        if (i != oldest && drawn_for_all(w, 10 + i, 3) == 0)
            m->join_after = 1 + (unsigned)drawn_for_all(w, 200 + i, w->plan.messages);
    }
    if (h->member->join_after == 0)
        open_group(h->member);
}

void swarm_group_goes_on(struct swarm_host *h, unsigned i)
{
    struct swarm_member *m = h->member;
    if (!m || m->host != h || swarm_host_life(h) > 0)
        return;
    if (!m->group && i + 1 == m->join_after)
        open_group(m);
    if (m->group && draw(m, 3))
        send(m, m->in_view && draw(m, 2) ? 0 : RNL_NO_WAIT); /* who is not in it has no room, perhaps never */
}

void swarm_group_leaves(struct swarm_host *h)
{
    struct swarm_member *m = h->member;
    if (!m || !m->group || swarm_host_life(h) > 0)
        return;
    int status = rnl_group_leave(m->group, -1);
    if (status < 0 && status != RNL_ERR_JOB)
        swarm_wrong("rank %u leaves the group: %s", h->rank, rnl_last_error()->text);
    m->group = NULL;
    m->left = 1;
}

static int stands(const struct swarm_host *h)
{
    const struct swarm_member *m = h->member;
    return m->left && !m->ended && m->first && !m->in_view;
}

void swarm_group_settle(struct swarm_world *w)
{
    const struct swarm_member *by = NULL; /* who has the most of what has been compared */
    for (unsigned i = 0; i < w->plan.hosts && w->host[i].member; i++) {
        const struct swarm_member *m = w->host[i].member;
        if (!stands(&w->host[i]))
            continue;
        if (m->delivered[i] != m->sent)
            swarm_wrong("rank %u was in the group to its end, and has got %llu of its own %llu messages", i,
                        (unsigned long long)m->delivered[i], (unsigned long long)m->sent);
        for (uint64_t at = m->first; by && at <= m->last; at++)
            if (at >= by->first && at <= by->last && m->what[at - m->first] != by->what[at - by->first])
                swarm_wrong("ranks %u and %u have delivered different things at place %llu of the group",
                            by->host->rank, i, (unsigned long long)at);
        by = !by || m->last > by->last ? m : by;
    }
    for (unsigned i = 0; i < w->plan.hosts; i++) {
        if (w->host[i].member)
            free(w->host[i].member->what);
        free(w->host[i].member);
        w->host[i].member = NULL;
    }
}
