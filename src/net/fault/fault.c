/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fault.c - the transport that wraps another one. Packets are judged where they arrive, one by one, since the network
 * and the kernel below carry them in runs.
 *
 * A judged packet is copied and its view released at once, because a late, damaged or duplicated packet needs memory of
 * its own and must not hold buffers of the transport below. Only packets of strangers, and those that did not come from
 * the peer's active path, keep their view, too, because a reply needs it. */
#include "net/fault/fault.h"

#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"

enum {
    HELD = 1024,
    BATCH = 16,
    ROOMS = 64,
    STRANGERS = 16,
    NOROOM_STREAM = 64,
    APART = 3 /* multiplies the numbers of senders in draws, so that old seeds go on to hit the same packets */
};

struct delayed_datagram {
    uint64_t due_ns, number;
    void *copy;
    uint32_t room;         /* bytes of copy, which stays for the next packet */
    struct rnl_view view;  /* of the copy */
    struct rnl_view below; /* of the packet in the transport below, if keeps */
    struct rnl_addr from;
    uint8_t keeps, out; /* keeps: `below` is not released yet; out: `view` is handed out */
};

struct fault {
    struct rnl_transport t;
    struct rnl_transport *below;
    struct rnl_fault f;
    uint64_t since_ns, now_ns, numbers, reserves;
    int nothing;                 /* f has no faults */
    struct rnl_fault_flow *flow; /* by sender; the last one is for strangers */
    struct delayed_datagram *held;
    uint32_t unused[HELD], unused_count;
    uint32_t heap[HELD], waiting; /* packets that are not due yet, ordered by (due_ns, number) */
    uint32_t strangers;           /* held packets that keep a view below */
    struct rnl_fault_counts counts;
};

static struct fault *of(struct rnl_transport *t)
{
    return (struct fault *)(void *)t;
}

/* ---- what waits ---- */

static bool sooner(const struct fault *m, uint32_t a, uint32_t b)
{
    const struct delayed_datagram *x = &m->held[a], *y = &m->held[b];
    return x->due_ns != y->due_ns ? x->due_ns < y->due_ns : x->number < y->number;
}

static void heap_up(struct fault *m, uint32_t at)
{
    for (; at && sooner(m, m->heap[at], m->heap[(at - 1) / 2]); at = (at - 1) / 2) {
        uint32_t other = m->heap[(at - 1) / 2];
        m->heap[(at - 1) / 2] = m->heap[at];
        m->heap[at] = other;
    }
}

static void heap_down(struct fault *m, uint32_t at)
{
    for (;;) {
        uint32_t least = at;
        for (uint32_t child = 2 * at + 1; child <= 2 * at + 2 && child < m->waiting; child++)
            if (sooner(m, m->heap[child], m->heap[least]))
                least = child;
        if (least == at)
            return;
        uint32_t other = m->heap[least];
        m->heap[least] = m->heap[at];
        m->heap[at] = other;
        at = least;
    }
}

static void heap_take(struct fault *m, uint32_t at)
{
    m->heap[at] = m->heap[--m->waiting];
    if (at < m->waiting) {
        heap_down(m, at);
        heap_up(m, at);
    }
}

static void wait_until(struct fault *m, struct delayed_datagram *h, uint64_t due_ns)
{
    h->due_ns = due_ns;
    h->number = m->numbers++;
    m->heap[m->waiting] = (uint32_t)(h - m->held);
    heap_up(m, m->waiting++);
}

static struct delayed_datagram *held_new(struct fault *m)
{
    struct delayed_datagram *h = &m->held[m->unused[--m->unused_count]];
    h->keeps = h->out = 0;
    return h;
}

static void held_free(struct fault *m, struct delayed_datagram *h)
{
    if (h->keeps) {
        m->below->ops->release(m->below, &h->below, 1);
        m->strangers--;
    }
    h->keeps = h->out = 0;
    m->unused[m->unused_count++] = (uint32_t)(h - m->held);
}

/* ---- judging what arrives ---- */

static bool blocked(const struct fault *m, const struct rnl_fault_ranks *way, uint32_t peer)
{
    uint32_t own = m->t.env->rank;
    return rnl_fault_names(way, peer) ||
           (m->f.part.count && rnl_fault_names(&m->f.part, peer) != rnl_fault_names(&m->f.part, own));
}

static bool in_force(const struct fault *m, uint64_t now_ns)
{
    uint64_t age_ns = now_ns > m->since_ns ? now_ns - m->since_ns : 0;
    return !m->nothing && age_ns >= m->f.after_ns && (m->f.for_ns == 0 || age_ns - m->f.after_ns < m->f.for_ns);
}

static void judge(struct fault *m, const struct rnl_view *v, struct rnl_fault_verdict *verdict, uint64_t now_ns)
{
    uint32_t sender = v->peer < m->t.env->size ? v->peer : m->t.env->size;
    *verdict = (struct rnl_fault_verdict){.bytes = v->bytes};
    if (!in_force(m, now_ns))
        return;
    rnl_fault_judge(&m->f, &m->flow[sender], (uint64_t)m->t.env->rank << 32 | sender * APART, v->bytes, verdict);
    if (blocked(m, &m->f.in, v->peer))
        verdict->lost = RNL_FAULT_BLOCKED;
    m->counts.packets++;
    if (verdict->lost) {
        m->counts.lost[verdict->lost]++;
        return;
    }
    m->counts.delayed += verdict->delay_ns != 0;
    m->counts.reordered += verdict->late;
    m->counts.twice += verdict->twice;
    m->counts.corrupted += verdict->corrupt;
    m->counts.cut += verdict->bytes != v->bytes;
    m->counts.marked += verdict->ce && (v->flags & RNL_VIEW_ECT);
    m->counts.bleached += verdict->bleach && (v->flags & (RNL_VIEW_ECT | RNL_VIEW_CE));
}

static uint32_t flags_of(uint32_t flags, const struct rnl_fault_verdict *v)
{
    if (v->bleach)
        return flags & ~(uint32_t)(RNL_VIEW_ECT | RNL_VIEW_CE);
    if (v->ce && (flags & RNL_VIEW_ECT))
        return (flags & ~(uint32_t)RNL_VIEW_ECT) | RNL_VIEW_CE;
    return flags;
}

/* Copies a packet that is not lost. NULL = there is no memory for it. */
static struct delayed_datagram *copy_of(struct fault *m, const struct rnl_view *v,
                                        const struct rnl_fault_verdict *verdict)
{
    struct delayed_datagram *h = held_new(m);
    if (h->room < verdict->bytes || !h->copy) {
        uint32_t room = verdict->bytes < 64 ? 64 : verdict->bytes;
        void *copy = malloc(room);
        if (!copy) {
            held_free(m, h);
            return NULL;
        }
        free(h->copy);
        h->copy = copy;
        h->room = room;
    }
    memcpy(h->copy, v->at, verdict->bytes);
    if (verdict->corrupt)
        rnl_fault_corrupt(h->copy, verdict->bytes, verdict->corrupt_draw);
    h->view = *v;
    h->view.at = h->copy;
    h->view.bytes = verdict->bytes;
    h->view.flags = flags_of(v->flags, verdict);
    h->view.token = (uint64_t)(h - m->held);
    if (m->below->ops->source(m->below, v, &h->from) < 0)
        memset(&h->from, 0, sizeof h->from);
    return h;
}

static void take_datagram(struct fault *m, const struct rnl_view *v, uint64_t now_ns)
{
    struct rnl_fault_verdict verdict;
    struct delayed_datagram *h;
    int kept = 0;
    judge(m, v, &verdict, now_ns);
    if (verdict.lost == 0 && v->peer == RNL_PEER_STRANGER && m->strangers == STRANGERS) {
        m->counts.lost[RNL_FAULT_NONE]++;
        verdict.lost = RNL_FAULT_LOSS;
    }
    if (verdict.lost == 0) {
        h = copy_of(m, v, &verdict);
        /* A reply goes back to where the packet came from, which the transport below knows until the view is released.
         */
        int elsewhere = v->peer == RNL_PEER_STRANGER || (v->flags & RNL_VIEW_ASIDE && m->strangers < STRANGERS);
        if (h && elsewhere) {
            h->keeps = 1;
            h->below = *v;
            m->strangers++;
            kept = 1;
        }
        if (h)
            wait_until(m, h, now_ns + verdict.delay_ns);
        else
            m->counts.lost[RNL_FAULT_NONE]++;
        if (verdict.twice && (h = copy_of(m, v, &verdict)))
            wait_until(m, h, now_ns + verdict.twice_ns);
    }
    if (!kept)
        m->below->ops->release(m->below, v, 1);
}

static void take_in(struct fault *m, uint64_t now_ns)
{
    while (m->unused_count >= 2) { /* for a packet and its duplicate */
        struct rnl_view v[BATCH];
        int n = m->unused_count / 2 < BATCH ? (int)(m->unused_count / 2) : BATCH;
        int got = m->below->ops->poll(m->below, v, n, now_ns);
        for (int i = 0; i < got; i++)
            take_datagram(m, &v[i], now_ns);
        if (got < n)
            return;
    }
}

/* ---- the operations ---- */

static int fault_reserve(struct rnl_transport *t, uint32_t peer, uint32_t bytes, struct rnl_room *room, int n)
{
    struct fault *m = of(t);
    if (n > ROOMS)
        n = ROOMS;
    if (m->f.noroom && n > 0 && in_force(m, m->now_ns)) {
        uint64_t draw = rnl_chance(m->f.seed, NOROOM_STREAM, m->t.env->rank, m->reserves++);
        if (rnl_chance_is(draw, m->f.noroom)) {
            uint64_t fewer = rnl_chance_below(rnl_chance_mix(draw), (uint64_t)n);
            /* Even if no room is given, the call below is made, so that its errors are returned. */
            int got = m->below->ops->reserve(m->below, peer, bytes, room, fewer ? (int)fewer : 1);
            m->counts.refused_rooms++;
            if (fewer || got <= 0)
                return got;
            const uint32_t none[1] = {0};
            (void)m->below->ops->commit(m->below, peer, room, none, got, false, m->now_ns);
            return 0;
        }
    }
    return m->below->ops->reserve(m->below, peer, bytes, room, n);
}

/* true = what goes to that peer is lost now. */
static bool is_lost_to(struct fault *m, uint32_t peer, uint64_t now_ns)
{
    m->now_ns = now_ns;
    return in_force(m, now_ns) && blocked(m, &m->f.out, peer);
}

static int lose(struct fault *m, uint32_t peer, const struct rnl_room *room, const uint32_t *used, int n,
                uint64_t now_ns)
{
    uint32_t none[ROOMS] = {0};
    int status = m->below->ops->commit(m->below, peer, room, none, n, false, now_ns), went = 0;
    for (int i = 0; i < n; i++)
        went += used[i] != 0;
    if (status < 0)
        return status;
    m->counts.lost[RNL_FAULT_BLOCKED] += (uint64_t)went;
    return went;
}

static int fault_commit(struct rnl_transport *t, uint32_t peer, const struct rnl_room *room, const uint32_t *used,
                        int n, bool ecn, uint64_t now_ns)
{
    struct fault *m = of(t);
    if (is_lost_to(m, peer, now_ns) && n <= ROOMS)
        return lose(m, peer, room, used, n, now_ns);
    return m->below->ops->commit(m->below, peer, room, used, n, ecn, now_ns);
}

static int fault_commit_on_path(struct rnl_transport *t, uint32_t peer, unsigned path, const struct rnl_room *room,
                                const uint32_t *used, int n, bool ecn, uint64_t now_ns)
{
    struct fault *m = of(t);
    if (is_lost_to(m, peer, now_ns) && n <= ROOMS)
        return lose(m, peer, room, used, n, now_ns);
    return m->below->ops->commit_on_path(m->below, peer, path, room, used, n, ecn, now_ns);
}

static int fault_poll(struct rnl_transport *t, struct rnl_view *v, int n, uint64_t now_ns)
{
    struct fault *m = of(t);
    int got = 0;
    m->now_ns = now_ns;
    if (!m->nothing)
        take_in(m, now_ns);
    for (; got < n && m->waiting && m->held[m->heap[0]].due_ns <= now_ns; got++) {
        struct delayed_datagram *h = &m->held[m->heap[0]];
        heap_take(m, 0);
        v[got] = h->view;
        h->out = 1;
    }
    if (m->nothing && got < n)
        got += m->below->ops->poll(m->below, v + got, n - got, now_ns);
    return got;
}

/* Returns the held packet of a view, or NULL if the view is one of the transport below. */
static struct delayed_datagram *held_of(const struct fault *m, const struct rnl_view *v)
{
    if (v->token >= HELD)
        return NULL;
    struct delayed_datagram *h = &m->held[v->token];
    return h->out && h->copy == v->at ? h : NULL;
}

static void fault_release(struct rnl_transport *t, const struct rnl_view *v, int n)
{
    struct fault *m = of(t);
    for (int i = 0; i < n; i++) {
        struct delayed_datagram *h = held_of(m, &v[i]);
        if (h)
            held_free(m, h);
        else
            m->below->ops->release(m->below, &v[i], 1);
    }
}

static int fault_flush(struct rnl_transport *t, uint64_t now_ns)
{
    struct fault *m = of(t);
    m->now_ns = now_ns;
    return m->below->ops->flush(m->below, now_ns);
}

/* Delayed packets become due by the deadline, not by the descriptor. */
static int fault_arm(struct rnl_transport *t)
{
    struct fault *m = of(t);
    if (m->waiting && m->held[m->heap[0]].due_ns <= m->now_ns)
        return 1;
    return m->below->ops->arm(m->below);
}

static int fault_fd(struct rnl_transport *t)
{
    return of(t)->below->ops->fd(of(t)->below);
}

static uint64_t fault_deadline(struct rnl_transport *t)
{
    struct fault *m = of(t);
    uint64_t below_ns = m->below->ops->deadline(m->below);
    uint64_t due_ns = m->waiting ? m->held[m->heap[0]].due_ns : UINT64_MAX;
    return due_ns < below_ns ? due_ns : below_ns;
}

static int fault_add_peer(struct rnl_transport *t, uint32_t peer, const struct rnl_addr *addr, unsigned n,
                          uint64_t incarnation)
{
    return of(t)->below->ops->add_peer(of(t)->below, peer, addr, n, incarnation);
}

static int fault_remove_peer(struct rnl_transport *t, uint32_t peer)
{
    struct fault *m = of(t);
    for (uint32_t i = m->waiting; i-- > 0;) {
        struct delayed_datagram *h = &m->held[m->heap[i]];
        if (h->view.peer != peer)
            continue;
        m->heap[i] = m->heap[--m->waiting];
        held_free(m, h);
    }
    for (uint32_t i = m->waiting / 2; i-- > 0;)
        heap_down(m, i);
    return m->below->ops->remove_peer(m->below, peer);
}

static uint32_t fault_mtu(struct rnl_transport *t, uint32_t peer)
{
    return of(t)->below->ops->mtu(of(t)->below, peer);
}

static void fault_close(struct rnl_transport *t)
{
    struct fault *m = of(t);
    m->below->ops->close(m->below);
    for (int i = 0; i < HELD; i++)
        free(m->held[i].copy);
    free(m->held);
    free(m->flow);
    free(m);
}

static int fault_source(struct rnl_transport *t, const struct rnl_view *v, struct rnl_addr *out)
{
    struct delayed_datagram *h = held_of(of(t), v);
    if (!h)
        return of(t)->below->ops->source(of(t)->below, v, out);
    *out = h->from;
    return 0;
}

static int fault_reply(struct rnl_transport *t, const struct rnl_view *v, const void *at, uint32_t bytes,
                       uint64_t now_ns)
{
    struct fault *m = of(t);
    struct delayed_datagram *h = held_of(m, v);
    struct rnl_room room;
    m->now_ns = now_ns;
    if (h && bytes > v->bytes)
        return rnl_fail(RNL_ERR_TOO_LONG, "%u bytes as the reply to %u: a reply is never longer", bytes, v->bytes);
    if (v->peer != RNL_PEER_STRANGER && in_force(m, now_ns) && blocked(m, &m->f.out, v->peer))
        return 1;
    if (!h)
        return m->below->ops->reply(m->below, v, at, bytes, now_ns);
    if (h->keeps)
        return m->below->ops->reply(m->below, &h->below, at, bytes, now_ns);
    if (v->peer == RNL_PEER_STRANGER)
        return 0; /* a duplicate, which keeps no view; the original can be replied to */
    int got = m->below->ops->reserve(m->below, v->peer, bytes, &room, 1);
    if (got <= 0)
        return got == RNL_BUSY ? 0 : got;
    memcpy(room.at, at, bytes);
    return m->below->ops->commit(m->below, v->peer, &room, &bytes, 1, false, now_ns);
}

static int fault_set_active_path(struct rnl_transport *t, uint32_t peer, unsigned path)
{
    return of(t)->below->ops->set_active_path(of(t)->below, peer, path);
}

static bool fault_is_path_down(struct rnl_transport *t, uint32_t peer, unsigned path)
{
    struct rnl_transport *below = of(t)->below;
    return below->ops->is_path_down && below->ops->is_path_down(below, peer, path);
}

static int fault_send_on_path(struct rnl_transport *t, uint32_t peer, unsigned path, const void *at, uint32_t bytes,
                              uint64_t now_ns)
{
    struct fault *m = of(t);
    if (is_lost_to(m, peer, now_ns))
        return 1;
    return m->below->ops->send_on_path(m->below, peer, path, at, bytes, now_ns);
}

static const struct rnl_transport_ops fault_ops = {
    .size = sizeof fault_ops,
    .reserve = fault_reserve,
    .commit = fault_commit,
    .poll = fault_poll,
    .release = fault_release,
    .flush = fault_flush,
    .arm = fault_arm,
    .fd = fault_fd,
    .deadline = fault_deadline,
    .add_peer = fault_add_peer,
    .remove_peer = fault_remove_peer,
    .mtu = fault_mtu,
    .close = fault_close,
    .source = fault_source,
    .reply = fault_reply,
    .set_active_path = fault_set_active_path,
    .send_on_path = fault_send_on_path,
    .commit_on_path = fault_commit_on_path,
    .is_path_down = fault_is_path_down,
};

/* ---- settings ---- */

/* true = the description has no faults but a seed and times. */
static bool left_of(struct rnl_fault *f, char text[RNL_FAULT_TEXT])
{
    f->seed = f->after_ns = f->for_ns = 0;
    return rnl_fault_print(f, text, RNL_FAULT_TEXT) == 0;
}

static void apply(struct fault *m, const struct rnl_fault *f, uint64_t now_ns)
{
    struct rnl_fault rest = *f;
    char text[RNL_FAULT_TEXT];
    m->f = *f;
    m->nothing = left_of(&rest, text);
    m->since_ns = m->now_ns = now_ns;
}

void rnl_fault_set(struct rnl_transport *t, const struct rnl_fault *f, uint64_t now_ns)
{
    apply(of(t), f, now_ns);
}

const struct rnl_fault *rnl_fault_get(const struct rnl_transport *t)
{
    return &((const struct fault *)(const void *)t)->f;
}

void rnl_fault_counts(const struct rnl_transport *t, struct rnl_fault_counts *out)
{
    *out = ((const struct fault *)(const void *)t)->counts;
}

int rnl_fault_transport_new(struct rnl_transport *below, const struct rnl_fault *f, uint64_t now_ns,
                            struct rnl_transport **out)
{
    struct fault *m = calloc(1, sizeof *m);
    if (!m || !(m->held = calloc(HELD, sizeof *m->held)) ||
        !(m->flow = calloc((size_t)below->env->size + 1, sizeof *m->flow))) {
        if (m)
            free(m->held);
        free(m);
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the faults of %u rank%s", below->env->size,
                        RNL_S(below->env->size));
    }
    m->t.ops = &fault_ops;
    m->t.env = below->env;
    m->t.receive_bytes = below->receive_bytes;
    m->t.frames = below->frames;
    m->t.has_fd = below->has_fd;
    m->t.has_ecn = below->has_ecn;
    m->below = below;
    for (uint32_t i = 0; i < HELD; i++)
        m->unused[m->unused_count++] = HELD - 1 - i;
    apply(m, f, now_ns);
    *out = &m->t;
    return 0;
}

int rnl_fault_wrap(struct rnl_transport **t, const char *text, uint64_t now_ns)
{
    struct rnl_fault f;
    if (!text || text[0] == '\0')
        return 0;
    int status = rnl_fault_parse(text, &f);
    return status < 0 ? status : rnl_fault_transport_new(*t, &f, now_ns, t);
}
