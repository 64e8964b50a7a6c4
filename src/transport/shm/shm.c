/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shm.c - packets over a pair of ring directions per peer and lane.
 *
 * Two positions per lane that is received: `look`, how far poll has gone (private; a struct rnl_rx that never tells),
 * and pair.rx, how far the caller has released, which is what the peer is told. A view's token holds both marks behind
 * it, so that a release need not read shared memory:
 *
 *   bit 0                                  32                                 64
 *   +--------------------------------------+-----------------------------------+
 *   | line * 8 + items, low 32 bits        | end in the bulk area / 64, low 32 |
 *   +--------------------------------------+-----------------------------------+ */
#include "transport/shm/shm.h"

#include <stdlib.h>

#include "base/bell.h"
#include "base/fence.h"
#include "transport/shm/pair.h"

enum { FULL_BEFORE_GROW = 2, ROOMS_MAX = RNL_BIG };

struct lane_out {
    uint32_t rooms;    /* of the reserve that is outstanding, 0 = none */
    uint32_t bytes;    /* of each of them */
    uint32_t full;     /* times a reserve found less than it asked for */
    uint64_t bulk0;    /* rnl_tx.bulk_head before the reserve */
    uint64_t *extents; /* where each room begins; NULL until needed */
    uint32_t extents_max;
};

struct shm_peer {
    struct rnl_pair pair;
    struct lane_out out[RNL_LANES];
    struct rnl_rx look[RNL_LANES];
    uint64_t bulk_polled[RNL_LANES]; /* end of the last extent that was polled */
    uint64_t incarnation;
    uint32_t rank;
    uint8_t broken;
};

struct shm {
    struct rnl_transport t; /* first */
    struct shm_peer **peer; /* by rank, NULL = not connected */
    uint32_t *connected;    /* ranks, `count` of them */
    uint32_t count;
    uint32_t turn; /* which (peer, lane) the next poll begins with */
    uint8_t armed;
};

static struct shm *of(struct rnl_transport *t)
{
    return (struct shm *)(void *)t;
}

static int find(struct rnl_transport *t, uint32_t rank, struct shm_peer **out)
{
    struct shm *m = of(t);
    *out = rank < t->env->size ? m->peer[rank] : NULL;
    if (*out == NULL)
        return rnl_fail(RNL_ERR_RANK, "rank %u is not connected; connect first, to a rank of 0 to %u", rank,
                        t->env->size - 1);
    return 0;
}

static int broke(struct shm_peer *p, const char *what)
{
    p->broken = 1;
    return rnl_fail(RNL_ERR_PEER_BROKEN, "rank %u broke the protocol: %s; nothing more is sent to it or taken from it",
                    p->rank, what);
}

/* 0, or RNL_ERR_PEER_BROKEN. */
static int check_joined(struct shm_peer *p)
{
    if (RNL_UNLIKELY(!p->pair.joined && rnl_pair_joined(&p->pair) < 0))
        return broke(p, "its side of the segment has a version that this release does not know");
    return 0;
}

/* ---- bells ---- */

static void ring_bell(struct shm *m, struct shm_peer *p)
{
    struct rnl_env *env = m->t.env;
    if (p->pair.senders_fence) {
        rnl_full_fence(); /* F1: the receiver has none for us */
    }
    uint32_t armed = rnl_pair_must_ring(&p->pair, RNL_ARMED_LINES);
    struct rnl_bell *bell = armed ? env->bell_of(env, p->rank) : NULL;
    if (bell == NULL)
        return;
    atomic_fetch_add_explicit(&bell->word, 1, memory_order_release); /* pairs with the load before park */
    env->ops->wake(env, &bell->word);
    if (armed & RNL_ARMED_FD)
        env->ops->fd_raise(env, p->rank);
}

/* ---- sending ---- */

/* Lines that may be used now, at least one if there is one. 0 = none, negative = broken. */
static int lines_left(struct shm *m, struct shm_peer *p, unsigned lane, int wanted)
{
    struct rnl_tx *t = &p->pair.tx[lane];
    if (RNL_LINE_START(t->pos) + (unsigned)wanted * 8 > t->stop && rnl_tx_refresh(t, m->t.env, &p->pair.distance) < 0)
        return broke(p, "a reading position past what was written");
    uint64_t start = RNL_LINE_START(t->pos), left = t->stop > start ? (t->stop - start) / 8 : 0;
    return left < (unsigned)wanted ? (int)left : wanted;
}

static int reserve_lines(struct shm_peer *p, unsigned lane, uint32_t bytes, struct rnl_room *room, int n)
{
    const struct rnl_tx *t = &p->pair.tx[lane];
    for (int i = 0; i < n; i++) {
        room[i].at = rnl_line_of(t->ring, t->wrap, RNL_LINE_START(t->pos) + (unsigned)i * 8)->payload;
        room[i].bytes = bytes;
        room[i].token = (uint32_t)i;
    }
    return n;
}

static int make_extents(struct lane_out *o, int n)
{
    if (o->extents_max >= (unsigned)n)
        return 0;
    uint64_t *extents = realloc(o->extents, (unsigned)n * sizeof *extents);
    if (extents == NULL)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory to reserve %d packets", n);
    o->extents = extents;
    o->extents_max = (uint32_t)n;
    return 0;
}

/* An extent and a line for each packet; lines and extents draw on one grant. */
static int reserve_extents(struct shm_peer *p, unsigned lane, uint32_t bytes, struct rnl_room *room, int n)
{
    struct lane_out *o = &p->out[lane];
    struct rnl_tx *t = &p->pair.tx[lane];
    int status = make_extents(o, n), got = 0;
    if (status < 0)
        return status;
    for (; got < n; got++) {
        uint64_t start, before = t->bulk_head;
        int there = rnl_tx_bulk_room(t, bytes, &start);
        if (there < 0)
            return broke(p, "a bulk position past what was written");
        if (!there)
            break;
        rnl_tx_bulk_take(t, start + ((bytes + 63u) & ~63u));
        if (RNL_LINE_START(t->pos) + (unsigned)got * 8 >= t->stop) {
            rnl_tx_bulk_take(t, before);
            break;
        }
        o->extents[got] = start;
        room[got].at = t->bulk + (start & (RNL_BULK_BYTES - 1));
        room[got].bytes = bytes;
        room[got].token = (uint32_t)got;
    }
    return got;
}

static int shm_reserve(struct rnl_transport *t, uint32_t rank, unsigned lane, uint32_t bytes, struct rnl_room *room,
                       int n)
{
    struct shm *m = of(t);
    struct shm_peer *p;
    int status = find(t, rank, &p);
    if (status < 0)
        return status;
    if (lane >= RNL_LANES || n < 1)
        return rnl_fail(RNL_ERR_ARG, "%d packets on lane %u: at least 1, on a lane of 0 to %d", n, lane, RNL_LANES - 1);
    if (bytes > RNL_SHM_MTU)
        return rnl_fail(RNL_ERR_TOO_LONG, "a packet of %u bytes to rank %u: the longest is %d", bytes, rank,
                        RNL_SHM_MTU);
    if (p->broken)
        return broke(p, "earlier");
    struct lane_out *o = &p->out[lane];
    if (o->rooms)
        return rnl_fail(RNL_BUSY, "%u rooms to rank %u on lane %u are not committed yet", o->rooms, rank, lane);
    status = check_joined(p);
    if (status < 0)
        return status;
    struct rnl_tx *tx = &p->pair.tx[lane];
    if (n > ROOMS_MAX)
        n = ROOMS_MAX;
    int left = lines_left(m, p, lane, n);
    if (left > 0 && o->full >= FULL_BEFORE_GROW && lane == 0 && !p->pair.big_tx) {
        o->full = 0; /* traffic asks for the big ring */
        if (rnl_pair_grow_tx(&p->pair) == 0) {
            ring_bell(m, p);
            left = lines_left(m, p, lane, n);
        }
    }
    o->full += left < n;
    if (left <= 0)
        return left;
    o->bulk0 = tx->bulk_head;
    left = bytes <= RNL_LINE_PAYLOAD ? reserve_lines(p, lane, bytes, room, left)
                                     : reserve_extents(p, lane, bytes, room, left);
    if (left > 0) {
        o->rooms = (uint32_t)left;
        o->bytes = bytes;
    }
    return left;
}

/* Publishes `len` payload bytes that lie at `from`, which may be the very place. 1, or RNL_ERR_PEER_BROKEN. */
static int publish(struct shm_peer *p, unsigned lane, unsigned kind, const void *from, unsigned len)
{
    struct rnl_tx *t = &p->pair.tx[lane];
    rnl_head key = rnl_head_key(kind, 0, len);
    int fresh = 1;
    /* Never behind `from`, and no line further than the rooms reserved: an item goes into the open line or the next. */
    unsigned char *at = rnl_tx_place(t, key, &fresh);
    if (at == NULL)
        return broke(p, "it took back what it had granted");
    if (at != from)
        memmove(at, from, len);
    rnl_pair_publish(&p->pair, lane, key, at + len, fresh, lane);
    return 1;
}

static int shm_commit(struct rnl_transport *t, uint32_t rank, unsigned lane, const struct rnl_room *room,
                      const uint32_t *used, int n, uint64_t now_ns)
{
    struct shm *m = of(t);
    struct shm_peer *p;
    int status = find(t, rank, &p), went = 0;
    (void)now_ns;
    if (status < 0)
        return status;
    struct lane_out *o = lane < RNL_LANES ? &p->out[lane] : NULL;
    if (o == NULL || o->rooms == 0 || (unsigned)n != o->rooms)
        return rnl_fail(RNL_ERR_ARG, "a commit of %d rooms to rank %u on lane %u, where %u are reserved", n, rank, lane,
                        o ? o->rooms : 0);
    for (int i = 0; i < n; i++)
        if (used[i] > o->bytes)
            return rnl_fail(RNL_ERR_ARG, "%u bytes committed in a room of %u", used[i], o->bytes);
    struct rnl_tx *tx = &p->pair.tx[lane];
    uint64_t end = o->bulk0;
    o->rooms = 0;
    for (int i = 0; i < n && !p->broken; i++) {
        if (used[i] == 0)
            continue;
        if (o->bytes <= RNL_LINE_PAYLOAD) {
            status = publish(p, lane, RNL_LINE_ITEMS, room[i].at, used[i]);
        } else {
            struct rnl_extent e = {.start = o->extents[i],
                                   .reserved = used[i],
                                   .published = used[i],
                                   .bound = used[i],
                                   .flags = RNL_EXTENT_FIRST | RNL_EXTENT_LAST | RNL_EXTENT_CLOSED};
            status = publish(p, lane, RNL_LINE_EXTENT, &e, sizeof e);
            end = e.start + ((used[i] + 63u) & ~63u);
        }
        if (status < 0)
            return status;
        went++;
    }
    if (o->bytes > RNL_LINE_PAYLOAD)
        rnl_tx_bulk_take(tx, end); /* what lies behind the last packet was not needed */
    if (went)
        ring_bell(m, p);
    return went;
}

/* ---- receiving ---- */

/* The small ring of lane 0 is read; the peer goes on in the big one. */
static int grow_look(struct shm_peer *p, rnl_head h)
{
    struct rnl_pair *pair = &p->pair;
    struct rnl_rx *look = &p->look[0];
    if (pair->big_rx)
        return broke(p, "a second change of ring");
    rnl_rx_read(look, h, 1);
    rnl_rx_leave(look);
    (void)!rnl_pair_grow_rx(pair); /* nobody waits for lines of the small ring any more */
    rnl_rx_grow(look, pair->rx[0].ring);
    look->tell_pos = UINT64_MAX;
    return 0;
}

/* What has been read from `look` on is `bytes` at `at`. */
static void view_of(struct shm_peer *p, unsigned lane, const void *at, uint32_t bytes, struct rnl_view *v)
{
    v->at = at;
    v->bytes = bytes;
    v->peer = p->rank;
    v->lane = (uint16_t)lane;
    v->flags = 0;
    v->token = (uint32_t)p->look[lane].pos | (p->bulk_polled[lane] / 64) << 32;
}

static int poll_items(struct shm_peer *p, unsigned lane, rnl_head h, struct rnl_view *v, int n)
{
    struct rnl_rx *look = &p->look[lane];
    unsigned count = RNL_HEAD_N(h), len = RNL_HEAD_LEN(h);
    if (len == 0 || count * len > RNL_LINE_PAYLOAD || RNL_HEAD_HANDLER(h) != 0)
        return broke(p, "items that are empty, longer than their line, or not packets");
    const unsigned char *payload = rnl_rx_payload(look, h);
    int got = 0;
    for (unsigned i = rnl_rx_from(look, h); got < n && i < count; got++) {
        rnl_rx_read(look, h, i + 1);
        view_of(p, lane, payload + i * len, len, &v[got]);
        i++;
    }
    return got;
}

static int poll_extent(struct shm_peer *p, unsigned lane, rnl_head h, struct rnl_view *v)
{
    struct rnl_rx *look = &p->look[lane];
    struct rnl_extent e;
    if (RNL_HEAD_LEN(h) != sizeof e || RNL_HEAD_N(h) != 1 || RNL_HEAD_HANDLER(h) != 0)
        return broke(p, "a malformed announcement of a packet");
    rnl_rx_load(&e, rnl_rx_payload(look, h), sizeof e);
    if (rnl_rx_extent(look, &e) < 0 || e.flags != (RNL_EXTENT_FIRST | RNL_EXTENT_LAST | RNL_EXTENT_CLOSED) ||
        e.published == 0 || e.published > RNL_SHM_MTU || e.bound != e.published || e.answer != 0)
        return broke(p, "a packet outside its bulk area, or in parts");
    uint64_t end = e.start + ((e.published + 63u) & ~63u);
    rnl_rx_read(look, h, 1);
    look->bulk_next = end;
    p->bulk_polled[lane] = end;
    view_of(p, lane, p->pair.rx[lane].bulk + (e.start & (RNL_BULK_BYTES - 1)), e.published, v);
    return 1;
}

static int poll_lane(struct shm_peer *p, unsigned lane, struct rnl_view *v, int n)
{
    struct rnl_rx *look = &p->look[lane];
    int got = 0;
    while (got < n) {
        rnl_head h = rnl_rx_peek(look);
        if (h == 0) {
            rnl_rx_requote(look, &p->pair.tx[lane], RNL_QUOTE_BEHIND);
            break;
        }
        int status = check_joined(p), here = 0;
        if (status < 0)
            return got;
        unsigned acklane = RNL_HEAD_ACKLANE(h);
        if (acklane >= RNL_LANES || rnl_tx_acked(&p->pair.tx[acklane], look, RNL_HEAD_ACK(h)) < 0)
            here = broke(p, "a reading position past what was written");
        else if (RNL_HEAD_KIND(h) == RNL_LINE_ITEMS)
            here = poll_items(p, lane, h, v + got, n - got);
        else if (RNL_HEAD_KIND(h) == RNL_LINE_EXTENT)
            here = poll_extent(p, lane, h, v + got);
        else if (RNL_HEAD_KIND(h) == RNL_LINE_GROW && lane == 0)
            here = grow_look(p, h);
        else
            here = broke(p, "a line that is no packet");
        if (here < 0) /* broken */
            break;
        got += here;
    }
    return got;
}

static void disarm(struct shm *m)
{
    for (uint32_t i = 0; i < m->count; i++)
        rnl_pair_arm(&m->peer[m->connected[i]]->pair, 0);
    m->armed = 0;
}

static int shm_poll(struct rnl_transport *t, struct rnl_view *v, int n, uint64_t now_ns)
{
    struct shm *m = of(t);
    uint32_t lanes = m->count * RNL_LANES;
    int got = 0;
    (void)now_ns;
    for (uint32_t k = 0; k < lanes && got < n; k++) {
        uint32_t at = m->turn < lanes ? m->turn : 0;
        struct shm_peer *p = m->peer[m->connected[at / RNL_LANES]];
        m->turn = at + 1;
        if (!p->broken)
            got += poll_lane(p, at % RNL_LANES, v + got, n - got);
    }
    if (got && m->armed)
        disarm(m);
    return got;
}

static void shm_release(struct rnl_transport *t, const struct rnl_view *v, int n)
{
    for (int i = 0; i < n; i++) {
        struct shm_peer *p = v[i].peer < t->env->size ? of(t)->peer[v[i].peer] : NULL;
        if (p == NULL || v[i].lane >= RNL_LANES)
            continue;
        struct rnl_rx *r = &p->pair.rx[v[i].lane];
        uint64_t at = r->pos, units = r->bulk_read / 64;
        uint64_t to = at + (uint32_t)((uint32_t)v[i].token - (uint32_t)at);
        units += (uint32_t)((uint32_t)(v[i].token >> 32) - (uint32_t)units);
        if (to == at || to > p->look[v[i].lane].pos || units * 64 > p->bulk_polled[v[i].lane])
            continue; /* released before */
        r->pos = to;  /* the rest of it moves in `look` */
        if ((to & ~(uint64_t)7) >= r->tell_pos)
            rnl_rx_tell(r);
        rnl_rx_bulk_done(r, units * 64);
        r->told = 0; /* nobody sleeps for room here */
    }
}

static int shm_flush(struct rnl_transport *t, uint64_t now_ns)
{
    (void)t, (void)now_ns; /* a commit is visible at once */
    return 0;
}

/* ---- waiting ---- */

static int shm_arm(struct rnl_transport *t)
{
    struct shm *m = of(t);
    struct rnl_env *env = t->env;
    int fd = env->ops->fd(env), here = 0;
    if (fd < 0)
        return fd;
    env->ops->fd_drain(env);
    for (uint32_t i = 0; i < m->count; i++) {
        struct shm_peer *p = m->peer[m->connected[i]];
        for (unsigned lane = 0; lane < RNL_LANES; lane++)
            rnl_rx_tell(&p->pair.rx[lane]);
        rnl_pair_arm(&p->pair, RNL_ARMED_LINES | RNL_ARMED_FD); /* F1 */
    }
    if (env->ops->heavy_fence(env) < 0)
        rnl_full_fence(); /* and senders fence */
    for (uint32_t i = 0; i < m->count && !here; i++) {
        struct shm_peer *p = m->peer[m->connected[i]];
        for (unsigned lane = 0; lane < RNL_LANES && !p->broken; lane++)
            here |= rnl_rx_peek(&p->look[lane]) != 0;
    }
    m->armed = 1;
    if (here)
        disarm(m);
    return here;
}

static int shm_fd(struct rnl_transport *t)
{
    return t->env->ops->fd(t->env);
}

static uint64_t shm_deadline(struct rnl_transport *t)
{
    (void)t;
    return UINT64_MAX;
}

/* ---- peers ---- */

static int shm_address(struct rnl_transport *t, struct rnl_addr *out)
{
    memset(out, 0, sizeof *out);
    out->len = sizeof t->env->rank;
    memcpy(out->bytes, &t->env->rank, sizeof t->env->rank);
    return 0;
}

static int shm_connect(struct rnl_transport *t, uint32_t rank, const struct rnl_addr *addr, uint64_t incarnation)
{
    static const uint64_t ring_lines[RNL_LANES] = {RNL_BIG, RNL_SMALL1, RNL_SMALL2};
    struct shm *m = of(t);
    if (rank >= t->env->size || (addr && (addr->len != sizeof rank || memcmp(addr->bytes, &rank, sizeof rank) != 0)))
        return rnl_fail(RNL_ERR_RANK, "no rank %u at that address: the job has ranks 0 to %u", rank, t->env->size - 1);
    struct shm_peer *p = m->peer[rank];
    if (p != NULL) {
        if (incarnation && p->incarnation && incarnation != p->incarnation)
            return rnl_fail(RNL_ERR_PEER_DEAD, "rank %u was connected in an earlier life; disconnect it first", rank);
        return p->broken ? broke(p, "earlier") : 0;
    }
    p = aligned_alloc(64, (sizeof *p + 63) / 64 * 64);
    if (p == NULL)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the connection to rank %u (%zu bytes)", rank, sizeof *p);
    memset(p, 0, sizeof *p);
    int status = rnl_pair_open(&p->pair, t->env, rank, UINT64_MAX);
    if (status < 0) {
        free(p);
        return status;
    }
    p->rank = rank;
    p->incarnation = incarnation;
    for (unsigned lane = 0; lane < RNL_LANES; lane++) {
        /* Room is what rings and bulk areas hold: the transport knows no smaller budget. */
        rnl_rx_grant(&p->pair.rx[lane], ring_lines[lane] + RNL_BULK_BYTES / 64 + RNL_GRANT_MIN);
        p->look[lane] = p->pair.rx[lane];
        p->look[lane].tell_pos = UINT64_MAX;
    }
    if (m->armed)
        rnl_pair_arm(&p->pair, RNL_ARMED_LINES | RNL_ARMED_FD);
    m->peer[rank] = p;
    m->connected[m->count++] = rank;
    return 0;
}

static int shm_disconnect(struct rnl_transport *t, uint32_t rank)
{
    struct shm *m = of(t);
    struct shm_peer *p;
    int status = find(t, rank, &p);
    if (status < 0)
        return status;
    uint32_t i = 0;
    while (m->connected[i] != rank)
        i++;
    m->connected[i] = m->connected[--m->count];
    m->peer[rank] = NULL;
    for (unsigned lane = 0; lane < RNL_LANES; lane++)
        free(p->out[lane].extents);
    rnl_pair_close(&p->pair);
    free(p);
    return 0;
}

static uint32_t shm_mtu(struct rnl_transport *t, uint32_t rank)
{
    (void)t, (void)rank;
    return RNL_SHM_MTU;
}

static void shm_close(struct rnl_transport *t)
{
    struct shm *m = of(t);
    while (m->count)
        (void)shm_disconnect(t, m->connected[0]);
    free(m->peer);
    free(m->connected);
    free(m);
}

static const struct rnl_transport_ops shm_ops = {
    .size = sizeof shm_ops,
    .reserve = shm_reserve,
    .commit = shm_commit,
    .poll = shm_poll,
    .release = shm_release,
    .flush = shm_flush,
    .arm = shm_arm,
    .fd = shm_fd,
    .deadline = shm_deadline,
    .address = shm_address,
    .connect = shm_connect,
    .disconnect = shm_disconnect,
    .mtu = shm_mtu,
    .close = shm_close,
};

int rnl_shm_transport_new(struct rnl_env *env, struct rnl_transport **out)
{
    struct shm *m = calloc(1, sizeof *m);
    if (m == NULL || (m->peer = calloc(env->size, sizeof(struct shm_peer *))) == NULL ||
        (m->connected = calloc(env->size, sizeof *m->connected)) == NULL) {
        if (m != NULL)
            free(m->peer);
        free(m);
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a transport to %u rank%s", env->size, RNL_S(env->size));
    }
    m->t.ops = &shm_ops;
    m->t.caps = RNL_CAP_RELIABLE | RNL_CAP_LANES | RNL_CAP_FD;
    m->t.env = env;
    *out = &m->t;
    return 0;
}
