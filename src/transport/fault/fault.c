/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fault.c - the transport that wraps another one. Packets are judged where they arrive, one by one: below that, the
 * network and the kernel carry them in runs.
 *
 * Of a datagram transport a judged packet is copied and its view released at once: what is late, damaged or doubled
 * needs a place of its own, and must not keep the buffers of the transport below. Only packets of strangers, and those
 * of a peer's other addresses, keep their view, because that alone can be answered. Of a reliable one the views
 * themselves wait, in order; when too many do, nothing more is taken, and its senders have no room. */
#include "transport/fault/fault.h"

#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"

enum { HELD = 1024, BATCH = 16, ROOMS = 64, STRANGERS = 16, LANES = 3, NOROOM_STREAM = 64 };

struct held {
    uint64_t due_ns, number;
    void *copy;
    uint32_t room;         /* of copy, which stays for the next one */
    struct rnl_view view;  /* at: copy, or of a reliable transport */
    struct rnl_view below; /* of a stranger, if keeps */
    struct rnl_addr from;
    uint8_t keeps, out; /* out: handed out, not released */
};

struct fault {
    struct rnl_transport t;
    struct rnl_transport *below;
    struct rnl_fault f;
    uint64_t since_ns, now_ns, numbers, reserves;
    int reliable, nothing;       /* nothing: f is zeros */
    struct rnl_fault_flow *flow; /* by (sender, lane); the last is of strangers */
    struct held *held;
    uint32_t unused[HELD], unused_count;
    uint32_t heap[HELD], waiting; /* by (due, number) */
    uint32_t strangers;           /* that keep a view */
    struct rnl_fault_counts counts;
};

static struct fault *of(struct rnl_transport *t)
{
    return (struct fault *)(void *)t;
}

/* ---- what waits ---- */

static int sooner(const struct fault *m, uint32_t a, uint32_t b)
{
    const struct held *x = &m->held[a], *y = &m->held[b];
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

static void wait_until(struct fault *m, struct held *h, uint64_t due_ns)
{
    h->due_ns = due_ns;
    h->number = m->numbers++;
    m->heap[m->waiting] = (uint32_t)(h - m->held);
    heap_up(m, m->waiting++);
}

static struct held *held_new(struct fault *m)
{
    struct held *h = &m->held[m->unused[--m->unused_count]];
    h->keeps = h->out = 0;
    return h;
}

static void held_free(struct fault *m, struct held *h)
{
    if (h->keeps) {
        m->below->ops->release(m->below, &h->below, 1);
        m->strangers--;
    }
    h->keeps = h->out = 0;
    m->unused[m->unused_count++] = (uint32_t)(h - m->held);
}

/* ---- judging what arrives ---- */

static int blocked(const struct fault *m, const struct rnl_fault_ranks *way, uint32_t peer)
{
    uint32_t own = m->t.env->rank;
    return rnl_fault_names(way, peer) ||
           (m->f.part.count && rnl_fault_names(&m->f.part, peer) != rnl_fault_names(&m->f.part, own));
}

static int in_force(const struct fault *m, uint64_t now_ns)
{
    uint64_t age_ns = now_ns > m->since_ns ? now_ns - m->since_ns : 0;
    return !m->nothing && age_ns >= m->f.after_ns && (m->f.for_ns == 0 || age_ns - m->f.after_ns < m->f.for_ns);
}

static void judge(struct fault *m, const struct rnl_view *v, struct rnl_fault_verdict *verdict, uint64_t now_ns)
{
    uint32_t sender = v->peer < m->t.env->size ? v->peer : m->t.env->size;
    uint32_t at = sender * LANES + v->lane % LANES;
    *verdict = (struct rnl_fault_verdict){.bytes = v->bytes};
    if (!in_force(m, now_ns))
        return;
    rnl_fault_judge(&m->f, &m->flow[at], (uint64_t)m->t.env->rank << 32 | at, v->bytes, verdict);
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

static uint16_t flags_of(uint16_t flags, const struct rnl_fault_verdict *v)
{
    if (v->bleach)
        return flags & (uint16_t) ~(RNL_VIEW_ECT | RNL_VIEW_CE);
    if (v->ce && (flags & RNL_VIEW_ECT))
        return (uint16_t)((flags & ~RNL_VIEW_ECT) | RNL_VIEW_CE);
    return flags;
}

/* One copy of a packet that is not lost; NULL: no memory for it. */
static struct held *copy_of(struct fault *m, const struct rnl_view *v, const struct rnl_fault_verdict *verdict)
{
    struct held *h = held_new(m);
    if (h->room < verdict->bytes || h->copy == NULL) {
        uint32_t room = verdict->bytes < 64 ? 64 : verdict->bytes;
        void *copy = malloc(room);
        if (copy == NULL) {
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
    struct held *h;
    int kept = 0;
    judge(m, v, &verdict, now_ns);
    if (verdict.lost == 0 && v->peer == RNL_PEER_STRANGER && m->strangers == STRANGERS) {
        m->counts.lost[RNL_FAULT_NONE]++;
        verdict.lost = RNL_FAULT_LOSS;
    }
    if (verdict.lost == 0) {
        h = copy_of(m, v, &verdict);
        /* What is answered goes back to where it came from: below, that is known only of what is not released. */
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
        if (verdict.twice && (h = copy_of(m, v, &verdict)) != NULL)
            wait_until(m, h, now_ns + verdict.twice_ns);
    }
    if (!kept)
        m->below->ops->release(m->below, v, 1);
}

static void take_reliable(struct fault *m, const struct rnl_view *v, uint64_t now_ns)
{
    struct rnl_fault_verdict verdict;
    struct held *h = held_new(m);
    judge(m, v, &verdict, now_ns);
    h->view = *v;
    uint64_t due_ns = now_ns + verdict.delay_ns;
    /* In order: not before the one that came before it. */
    for (uint32_t i = 0; i < m->waiting; i++) {
        const struct held *other = &m->held[m->heap[i]];
        if (other->view.peer == v->peer && other->view.lane == v->lane && other->due_ns > due_ns)
            due_ns = other->due_ns;
    }
    wait_until(m, h, due_ns);
}

static void take_in(struct fault *m, uint64_t now_ns)
{
    while (m->unused_count >= 2) { /* a packet may come twice */
        struct rnl_view v[BATCH];
        int n = m->unused_count / 2 < BATCH ? (int)(m->unused_count / 2) : BATCH;
        int got = m->below->ops->poll(m->below, v, n, now_ns);
        for (int i = 0; i < got; i++) {
            if (m->reliable)
                take_reliable(m, &v[i], now_ns);
            else
                take_datagram(m, &v[i], now_ns);
        }
        if (got < n)
            return;
    }
}

/* ---- the operations ---- */

static int fault_reserve(struct rnl_transport *t, uint32_t peer, unsigned lane, uint32_t bytes, struct rnl_room *room,
                         int n)
{
    struct fault *m = of(t);
    if (n > ROOMS)
        n = ROOMS;
    if (m->f.noroom && n > 0 && in_force(m, m->now_ns)) {
        uint64_t draw = rnl_chance(m->f.seed, NOROOM_STREAM, m->t.env->rank, m->reserves++);
        if (rnl_chance_is(draw, m->f.noroom)) {
            uint64_t fewer = rnl_chance_below(rnl_chance_mix(draw), (uint64_t)n);
            /* What is wrong with the call is said all the same. */
            int got = m->below->ops->reserve(m->below, peer, lane, bytes, room, fewer ? (int)fewer : 1);
            m->counts.refused_rooms++;
            if (fewer || got <= 0)
                return got;
            const uint32_t none[1] = {0};
            (void)m->below->ops->commit(m->below, peer, lane, room, none, got, m->now_ns);
            return 0;
        }
    }
    return m->below->ops->reserve(m->below, peer, lane, bytes, room, n);
}

static int fault_commit(struct rnl_transport *t, uint32_t peer, unsigned lane, const struct rnl_room *room,
                        const uint32_t *used, int n, uint64_t now_ns)
{
    struct fault *m = of(t);
    uint32_t none[ROOMS] = {0};
    m->now_ns = now_ns;
    if (!in_force(m, now_ns) || !blocked(m, &m->f.out, peer) || n > ROOMS)
        return m->below->ops->commit(m->below, peer, lane, room, used, n, now_ns);
    int status = m->below->ops->commit(m->below, peer, lane, room, none, n, now_ns), went = 0;
    for (int i = 0; i < n; i++)
        went += used[i] != 0;
    if (status < 0)
        return status;
    m->counts.lost[RNL_FAULT_BLOCKED] += (uint64_t)went;
    return went;
}

static int fault_poll(struct rnl_transport *t, struct rnl_view *v, int n, uint64_t now_ns)
{
    struct fault *m = of(t);
    int got = 0;
    m->now_ns = now_ns;
    if (!m->nothing)
        take_in(m, now_ns);
    for (; got < n && m->waiting && m->held[m->heap[0]].due_ns <= now_ns; got++) {
        struct held *h = &m->held[m->heap[0]];
        heap_take(m, 0);
        v[got] = h->view;
        if (m->reliable)
            held_free(m, h);
        else
            h->out = 1;
    }
    /* Behind what waits: in a reliable flow nothing overtakes. */
    if (m->nothing && got < n && (m->waiting == 0 || !m->reliable))
        got += m->below->ops->poll(m->below, v + got, n - got, now_ns);
    return got;
}

/* One of ours, handed out; else it is of the transport below. */
static struct held *held_of(const struct fault *m, const struct rnl_view *v)
{
    if (m->reliable || v->token >= HELD)
        return NULL;
    struct held *h = &m->held[v->token];
    return h->out && h->copy == v->at ? h : NULL;
}

static void fault_release(struct rnl_transport *t, const struct rnl_view *v, int n)
{
    struct fault *m = of(t);
    for (int i = 0; i < n; i++) {
        struct held *h = held_of(m, &v[i]);
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

/* What is late comes by the deadline, not by the descriptor. */
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

static int fault_address(struct rnl_transport *t, struct rnl_addr *out)
{
    return of(t)->below->ops->address(of(t)->below, out);
}

static int fault_connect(struct rnl_transport *t, uint32_t peer, const struct rnl_addr *addr, uint64_t incarnation)
{
    return of(t)->below->ops->connect(of(t)->below, peer, addr, incarnation);
}

static int fault_disconnect(struct rnl_transport *t, uint32_t peer)
{
    struct fault *m = of(t);
    for (uint32_t i = m->waiting; i-- > 0;) {
        struct held *h = &m->held[m->heap[i]];
        if (h->view.peer != peer)
            continue;
        m->heap[i] = m->heap[--m->waiting];
        held_free(m, h);
    }
    for (uint32_t i = m->waiting / 2; i-- > 0;)
        heap_down(m, i);
    return m->below->ops->disconnect(m->below, peer);
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
    struct held *h = held_of(of(t), v);
    if (h == NULL)
        return of(t)->below->ops->source(of(t)->below, v, out);
    *out = h->from;
    return 0;
}

static int fault_answer(struct rnl_transport *t, const struct rnl_view *v, const void *at, uint32_t bytes,
                        uint64_t now_ns)
{
    struct fault *m = of(t);
    struct held *h = held_of(m, v);
    struct rnl_room room;
    m->now_ns = now_ns;
    if (h && bytes > v->bytes)
        return rnl_fail(RNL_ERR_TOO_LONG, "%u bytes as the answer to %u: an answer is never longer", bytes, v->bytes);
    if (v->peer != RNL_PEER_STRANGER && in_force(m, now_ns) && blocked(m, &m->f.out, v->peer))
        return 1;
    if (h == NULL)
        return m->below->ops->answer(m->below, v, at, bytes, now_ns);
    if (h->keeps)
        return m->below->ops->answer(m->below, &h->below, at, bytes, now_ns);
    if (v->peer == RNL_PEER_STRANGER)
        return 0; /* the second of a packet that came twice: the first can be answered */
    int got = m->below->ops->reserve(m->below, v->peer, 0, bytes, &room, 1);
    if (got <= 0)
        return got == RNL_BUSY ? 0 : got;
    memcpy(room.at, at, bytes);
    return m->below->ops->commit(m->below, v->peer, 0, &room, &bytes, 1, now_ns);
}

static int fault_mark(struct rnl_transport *t, uint32_t peer, int on)
{
    return of(t)->below->ops->mark(of(t)->below, peer, on);
}

static int fault_notice(struct rnl_transport *t, struct rnl_notice *out)
{
    return of(t)->below->ops->notice(of(t)->below, out);
}

static uint32_t fault_holds(struct rnl_transport *t, uint32_t bytes)
{
    return of(t)->below->ops->holds(of(t)->below, bytes);
}

static int fault_also(struct rnl_transport *t, uint32_t peer, const struct rnl_addr *addr, unsigned *way)
{
    return of(t)->below->ops->also(of(t)->below, peer, addr, way);
}

static int fault_aim(struct rnl_transport *t, uint32_t peer, unsigned way)
{
    return of(t)->below->ops->aim(of(t)->below, peer, way);
}

static int fault_toward(struct rnl_transport *t, uint32_t peer, unsigned way, const void *at, uint32_t bytes,
                        uint64_t now_ns)
{
    struct fault *m = of(t);
    m->now_ns = now_ns;
    if (in_force(m, now_ns) && blocked(m, &m->f.out, peer))
        return 1;
    return m->below->ops->toward(m->below, peer, way, at, bytes, now_ns);
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
    .address = fault_address,
    .connect = fault_connect,
    .disconnect = fault_disconnect,
    .mtu = fault_mtu,
    .close = fault_close,
    .source = fault_source,
    .answer = fault_answer,
    .mark = fault_mark,
    .notice = fault_notice,
    .holds = fault_holds,
    .also = fault_also,
    .aim = fault_aim,
    .toward = fault_toward,
};

/* ---- settings ---- */

/* With a text of the setting that tells what is left of it; 1 = nothing is. */
static int left_of(struct rnl_fault *f, char text[RNL_FAULT_TEXT])
{
    f->seed = f->after_ns = f->for_ns = 0;
    return rnl_fault_print(f, text, RNL_FAULT_TEXT) == 0;
}

static int check(const struct rnl_transport *below, const struct rnl_fault *f)
{
    struct rnl_fault rest = *f;
    char text[RNL_FAULT_TEXT];
    rest.delay_least_ns = rest.delay_most_ns = 0;
    rest.noroom = 0;
    if (!(below->caps & RNL_CAP_RELIABLE) || left_of(&rest, text))
        return 0;
    return rnl_fail(RNL_ERR_ARG,
                    "faults: %s on a transport that loses nothing: it takes delay, noroom, after, for and seed", text);
}

static void apply(struct fault *m, const struct rnl_fault *f, uint64_t now_ns)
{
    struct rnl_fault rest = *f;
    char text[RNL_FAULT_TEXT];
    m->f = *f;
    m->nothing = left_of(&rest, text);
    m->since_ns = m->now_ns = now_ns;
}

int rnl_fault_set(struct rnl_transport *t, const struct rnl_fault *f, uint64_t now_ns)
{
    int status = check(of(t)->below, f);
    if (status == 0)
        apply(of(t), f, now_ns);
    return status;
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
    int status = check(below, f);
    if (status < 0)
        return status;
    struct fault *m = calloc(1, sizeof *m);
    if (m == NULL || (m->held = calloc(HELD, sizeof *m->held)) == NULL ||
        (m->flow = calloc(((size_t)below->env->size + 1) * LANES, sizeof *m->flow)) == NULL) {
        if (m)
            free(m->held);
        free(m);
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the faults of %u rank%s", below->env->size,
                        RNL_S(below->env->size));
    }
    m->t.ops = &fault_ops;
    m->t.caps = below->caps;
    m->t.env = below->env;
    m->below = below;
    m->reliable = (below->caps & RNL_CAP_RELIABLE) != 0;
    for (uint32_t i = 0; i < HELD; i++)
        m->unused[m->unused_count++] = HELD - 1 - i;
    apply(m, f, now_ns);
    *out = &m->t;
    return 0;
}

int rnl_fault_wrap(struct rnl_transport **t, const char *text, uint64_t now_ns)
{
    struct rnl_fault f;
    if (text == NULL || text[0] == '\0')
        return 0;
    int status = rnl_fault_parse(text, &f);
    return status < 0 ? status : rnl_fault_transport_new(*t, &f, now_ns, t);
}
