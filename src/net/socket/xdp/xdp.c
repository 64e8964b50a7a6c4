/* SPDX-License-Identifier: BSD-3-Clause
 *
 * xdp.c - sends and receives by rings where that works, and by the kernel's socket where not. */
#include "net/socket/xdp/xdp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "net/socket/xdp/area.h"
#include "net/socket/xdp/routes.h"
#include "net/socket/xdp/show.h"
#include "net/wire/packet.h"

enum {
    RUN_MOST = 8,     /* datagrams of a run that goes by the ring: measured, see README.md */
    MISSES_MANY = 32, /* looks at the kernel's socket that found nothing, before its bell is asked for */
    LOOK_EVERY = 16,  /* receives between two looks at a silent or a busy one's other way */
    STUCK_MS = 200,   /* what another endpoint of the queue may hold up; then this one leaves it */
    UNWATCHED = 256,  /* receives with an arrival and without an arm after which arrivals wake nobody any more */
    SHOW_MS = 100,    /* between two changes of what is shown */
    CUT_MOST = 64     /* datagrams of a run that one frame holds */
};

struct xdp_socket {
    struct rnl_socket s; /* first */
    struct rnl_socket *kernel;
    struct rnl_xdp_rings rings;
    struct rnl_xdp_routes routes;
    struct rnl_xdp_options options;
    int epoll;
    uint32_t receives, misses, unarmed;
    uint32_t full_ms,
        dry_ms; /* since when no chunk came back; since when the kernel has none to receive into; 0 = not */
    bool watched, armed;
    struct rnl_socket_frames frames;
    struct rnl_xdp_facts facts;
    struct rnl_notes *notes;
    uint32_t shown, shown_ms; /* shown: routes.news of what the notes say */
};

static struct xdp_socket *of(struct rnl_socket *s)
{
    return (struct xdp_socket *)(void *)s;
}

static uint32_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (uint32_t)((uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000);
}

static void show(struct xdp_socket *k, uint32_t ms)
{
    rnl_xdp_show(&k->notes, &k->facts, &k->routes);
    k->shown = k->routes.news;
    k->shown_ms = ms;
}

/* Ends the rings: closing the socket takes it out of the filter, so the kernel has all frames from then on. */
static void leave(struct xdp_socket *k, const char *why)
{
    const int fd = k->rings.fd;
    if (!k->facts.works)
        return;
    k->facts.works = 0;
    snprintf(k->facts.why, sizeof k->facts.why, "%s", why);
    rnl_xdp_rings_leave(&k->rings);
    (void)epoll_ctl(k->epoll, EPOLL_CTL_DEL, fd, NULL);
    (void)close(fd);
    show(k, now_ms());
}

/* What the kernel's socket may do can change with each call. */
static void copy_limits(struct xdp_socket *k)
{
    k->s.datagram_max = k->kernel->datagram_max;
    k->s.segments_max = k->kernel->segments_max;
}

/* ---- sending ---- */

static uint32_t packets_of(const struct rnl_socket_out *o)
{
    return o->segment && o->segment < o->bytes ? (o->bytes + o->segment - 1) / o->segment : 1;
}

/* A long run is faster by segmentation offload, unless it could arrive as one frame: on a virtual wire nobody cuts it,
 * and the receiver's filter lets only longer frames through to its kernel, which does. */
static const struct rnl_xdp_route *route_of(struct xdp_socket *k, const struct rnl_socket_out *o, uint32_t ms)
{
    const uint32_t packets = packets_of(o);
    if (packets > k->options.run_most && k->kernel->segments_max > 1 && o->bytes > RNL_XDP_FRAME_MOST)
        return NULL;
    return rnl_xdp_routes_find(&k->routes, &o->to, packets > 1 ? o->segment : o->bytes, ms);
}

/* Posts one datagram or run. False: no chunk is free for its first. What the ring has no chunk for of the rest is
 * lost, as in any queue. */
static bool post(struct xdp_socket *k, const struct rnl_xdp_route *d, const struct rnl_socket_out *o)
{
    const uint32_t each = packets_of(o) > 1 ? o->segment : o->bytes;
    const uint8_t ecn = k->s.has_ecn ? o->ecn : RNL_ECN_NOT;
    uint32_t at = 0;
    do {
        const uint32_t bytes = o->bytes - at < each ? o->bytes - at : each;
        uint8_t *room = rnl_xdp_rings_room(&k->rings);
        if (!room && rnl_xdp_rings_kick(&k->rings) == 0)
            room = rnl_xdp_rings_room(&k->rings);
        if (!room)
            return at > 0;
        rnl_xdp_rings_post(&k->rings, rnl_xdp_frame_write(&d->head, room, (const uint8_t *)o->at + at, bytes, ecn));
        k->frames.sent++;
        at += bytes;
    } while (at < o->bytes);
    return true;
}

static void kick(struct xdp_socket *k, uint32_t ms)
{
    const int error = rnl_xdp_rings_kick(&k->rings);
    if (!error)
        return;
    if (error != ENETDOWN || !rnl_xdp_routes_follow(&k->routes, ms, true)) {
        char why[160];
        snprintf(why, sizeof why, "the interface takes no frames any more: %s", strerror(error));
        leave(k, why);
    }
}

static int by_kernel(struct xdp_socket *k, const struct rnl_socket_out *out, int n, struct rnl_socket_result *result)
{
    const int went = k->kernel->ops->send(k->kernel, out, n, result);
    k->facts.sent_kernel += (uint32_t)(went > 0 ? went : 0);
    copy_limits(k);
    return went;
}

/* Sends one datagram or run by the kernel; a run that could arrive as one frame, as single datagrams, of which those
 * behind the first may be lost. */
static int one_by_kernel(struct xdp_socket *k, const struct rnl_socket_out *o, struct rnl_socket_result *result)
{
    struct rnl_socket_out one = *o;
    struct rnl_socket_result later;
    if (packets_of(o) == 1 || o->bytes > RNL_XDP_FRAME_MOST)
        return by_kernel(k, o, 1, result);
    one.segment = 0;
    for (uint32_t at = 0; at < o->bytes; at += o->segment) {
        one.at = (const uint8_t *)o->at + at;
        one.bytes = o->bytes - at < o->segment ? o->bytes - at : o->segment;
        if (by_kernel(k, &one, 1, at ? &later : result) < 1)
            return at > 0;
    }
    return 1;
}

/* The chunks of a queue pass through rings that all its endpoints write. Who finds that it gets none any more, whoever
 * is to blame, leaves the queue. */
static void check_chunks(struct xdp_socket *k, uint32_t ms)
{
    const bool dry = rnl_xdp_rings_dry(&k->rings) && rnl_xdp_rings_silent(&k->rings);
    k->dry_ms = !dry ? 0 : k->dry_ms ? k->dry_ms : ms | 1;
    if (k->full_ms && ms - k->full_ms > STUCK_MS)
        leave(k, "frames to send were not taken for 200 ms");
    else if (k->dry_ms && ms - k->dry_ms > STUCK_MS)
        leave(k, "the queue had no memory to receive into for 200 ms");
}

static int xdp_send(struct rnl_socket *s, const struct rnl_socket_out *out, int n, struct rnl_socket_result *result)
{
    struct xdp_socket *k = of(s);
    const uint32_t ms = now_ms();
    int i = 0, posted = 0;
    *result = (struct rnl_socket_result){RNL_SOCKET_WENT, 0};
    if (k->facts.works && !rnl_xdp_routes_follow(&k->routes, ms, false))
        leave(k, "the interface is gone");
    if (k->facts.works)
        check_chunks(k, ms);
    for (; i < n && k->facts.works; i++) {
        const struct rnl_xdp_route *d = route_of(k, &out[i], ms);
        if (d && post(k, d, &out[i])) {
            posted++;
            k->full_ms = 0;
            continue;
        }
        if (d) {
            k->full_ms = k->full_ms ? k->full_ms : ms | 1;
            *result = (struct rnl_socket_result){RNL_SOCKET_FULL, EAGAIN};
            break;
        }
        if (posted)
            kick(k, ms);
        posted = 0;
        if (one_by_kernel(k, &out[i], result) < 1)
            return i;
    }
    if (posted)
        kick(k, ms);
    if (k->facts.works && k->routes.news != k->shown && ms - k->shown_ms >= SHOW_MS)
        show(k, ms);
    return i < n && result->stop == RNL_SOCKET_WENT ? i + by_kernel(k, out + i, n - i, result) : i;
}

/* ---- receiving ---- */

static bool is_ours(const struct xdp_socket *k, const struct rnl_xdp_datagram *d)
{
    return d->to.port == k->routes.self.port &&
           (k->routes.bound_to_all || memcmp(k->routes.self.ip, d->to.ip, sizeof d->to.ip) == 0);
}

/* Fills a room with the datagram of a frame. False: it is none for us. */
static bool take(struct xdp_socket *k, const uint8_t *frame, uint32_t bytes, struct rnl_socket_in *in)
{
    struct rnl_xdp_datagram d;
    if (!rnl_xdp_frame_read(frame, bytes, &d) || !is_ours(k, &d))
        return false;
    if (d.from.ip[0] == 0xfe && (d.from.ip[1] & 0xc0) == 0x80 &&
        (d.from.scope = rnl_xdp_routes_scope(&k->routes, d.tag)) == 0)
        return false;
    in->bytes = d.bytes < in->room ? d.bytes : in->room;
    in->cut = d.bytes > in->room;
    in->ecn = d.ecn;
    in->segment = 0;
    in->from = d.from;
    memcpy(in->at, frame + d.at, in->bytes);
    const uint32_t first = k->options.claims ? k->options.claims(in->at, in->bytes) : 0;
    if (first >= RNL_PACKET_MIN && first < in->bytes && in->bytes <= first * CUT_MOST)
        in->segment = (uint16_t)first;
    return true;
}

static int by_rings(struct xdp_socket *k, struct rnl_socket_in *in, int n)
{
    uint32_t bytes;
    bool broken = false;
    const uint8_t *frame;
    int got = 0;
    for (uint32_t i = 0; got < n && i < RNL_XDP_IN && (frame = rnl_xdp_rings_next(&k->rings, &bytes, &broken)); i++) {
        if (take(k, frame, bytes, &in[got]))
            got++;
        else
            k->frames.refused++;
        rnl_xdp_rings_take(&k->rings);
    }
    k->frames.received += (uint32_t)got;
    if (broken)
        leave(k, "another process wrote into the rings of the queue");
    else
        rnl_xdp_rings_settle(&k->rings, false);
    return got;
}

/* To look at the kernel's socket costs a system call, unless its bell is set, which is a word in memory. */
static bool looks_at_kernel(struct xdp_socket *k, int got)
{
    const _Atomic uint32_t *word;
    uint32_t bits;
    if (!k->facts.works || k->armed)
        return true;
    if (++k->receives % LOOK_EVERY == 0 || (!got && k->misses < MISSES_MANY))
        return true;
    if (got || k->misses == 2 * MISSES_MANY) /* it has no bell */
        return false;
    if (k->misses == MISSES_MANY)
        k->misses = k->kernel->ops->bell(k->kernel, &word, &bits) < 0 ? 2 * MISSES_MANY : MISSES_MANY + 1;
    return true;
}

static int xdp_recv(struct rnl_socket *s, struct rnl_socket_in *in, int n)
{
    struct xdp_socket *k = of(s);
    int got = k->facts.works ? by_rings(k, in, n) : 0;
    if (got < n && looks_at_kernel(k, got)) {
        const int more = k->kernel->ops->recv(k->kernel, in + got, n - got);
        k->frames.links = k->kernel->frames ? k->kernel->frames->links : 0;
        if (more < 0)
            return got ? got : more;
        k->misses = more ? 0 : k->misses + (k->misses < MISSES_MANY);
        k->facts.received_kernel += (uint32_t)more;
        got += more;
        copy_limits(k);
        k->armed = false;
    }
    if (got > 0 && k->watched && ++k->unarmed >= UNWATCHED) {
        (void)epoll_ctl(k->epoll, EPOLL_CTL_DEL, k->rings.fd, NULL);
        k->watched = false;
    }
    return got;
}

static int xdp_error(struct rnl_socket *s, struct rnl_socket_error *e)
{
    return of(s)->kernel->ops->error(of(s)->kernel, e);
}

/* ---- waiting ---- */

static int xdp_arm(struct rnl_socket *s)
{
    struct xdp_socket *k = of(s);
    struct epoll_event e = {.events = EPOLLIN};
    k->armed = true;
    k->unarmed = 0;
    if (!k->facts.works)
        return k->kernel->ops->arm(k->kernel);
    rnl_xdp_rings_settle(&k->rings, true);
    if (!k->watched && epoll_ctl(k->epoll, EPOLL_CTL_ADD, k->rings.fd, &e) < 0)
        return 1; /* the caller must not sleep, because nothing would wake it */
    k->watched = true;
    const int here = k->kernel->ops->arm(k->kernel);
    return here | !rnl_xdp_rings_silent(&k->rings);
}

static int xdp_fd(struct rnl_socket *s)
{
    return of(s)->epoll;
}

/* The index up to which the kernel has filled the ring, which has a bit that ours lacks as soon as it is larger. What
 * comes by the kernel's socket meanwhile is found by the next recv, which callers make now and then all the same. */
static int xdp_bell(struct rnl_socket *s, const _Atomic uint32_t **at, uint32_t *bits)
{
    struct xdp_socket *k = of(s);
    const _Atomic uint32_t *word;
    const int status = k->kernel->ops->bell(k->kernel, k->facts.works ? &word : at, bits);
    if (!k->facts.works || status != 0)
        return status;
    rnl_xdp_rings_settle(&k->rings, true);
    if (!rnl_xdp_rings_silent(&k->rings))
        return 1;
    if (k->rings.in.mine > UINT32_MAX / 2) /* the index is about to wrap; there is no bell for the rest of this life */
        return RNL_ERR_UNSUPPORTED;
    *at = k->rings.in.producer;
    *bits = ~k->rings.in.mine;
    return 0;
}

/* ---- beginning and end ---- */

static void xdp_close(struct rnl_socket *s)
{
    struct xdp_socket *k = of(s);
    leave(k, "closed");
    rnl_notes_free(k->notes);
    rnl_xdp_rings_unmap(&k->rings);
    rnl_xdp_routes_end(&k->routes);
    if (k->epoll >= 0)
        close(k->epoll);
    k->kernel->ops->close(k->kernel);
    free(k);
}

static bool xdp_is_down(struct rnl_socket *s, const struct rnl_socket_addr *to)
{
    struct rnl_socket *const kernel = of(s)->kernel;
    return kernel->ops->is_down && kernel->ops->is_down(kernel, to);
}

static const struct rnl_socket_ops xdp_ops = {
    .size = sizeof xdp_ops,
    .send = xdp_send,
    .recv = xdp_recv,
    .error = xdp_error,
    .arm = xdp_arm,
    .fd = xdp_fd,
    .close = xdp_close,
    .bell = xdp_bell,
    .is_down = xdp_is_down,
};

static int watch_kernel(struct xdp_socket *k)
{
    struct epoll_event e = {.events = EPOLLIN};
    k->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (k->epoll >= 0 && epoll_ctl(k->epoll, EPOLL_CTL_ADD, k->kernel->ops->fd(k->kernel), &e) == 0)
        return 0;
    return rnl_fail_errno(RNL_ERR_SYSTEM, errno, "an AF_XDP socket needs descriptors: raise their limit (ulimit -n)");
}

int rnl_xdp_socket_new(struct rnl_socket *kernel, int socket, int memory, const struct rnl_xdp_options *options,
                       struct rnl_socket **out)
{
    struct xdp_socket *k = calloc(1, sizeof *k);
    if (!k)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for an AF_XDP socket");
    k->s = *kernel;
    k->s.ops = &xdp_ops;
    k->s.frames = &k->frames;
    k->kernel = kernel;
    k->options = options ? *options : (struct rnl_xdp_options){0};
    k->options.run_most = k->options.run_most ? k->options.run_most : RUN_MOST;
    k->routes.ask = k->routes.changes_fd = k->epoll = -1;
    int status = rnl_xdp_rings_map(&k->rings, socket, memory, kernel->self.port);
    if (status == 0)
        status = rnl_xdp_routes_begin(&k->routes, k->rings.area->interface, &kernel->self, RNL_XDP_FRAME_MOST);
    if (status == 0)
        status = watch_kernel(k);
    if (status < 0) {
        rnl_xdp_rings_unmap(&k->rings);
        rnl_xdp_routes_end(&k->routes);
        if (k->epoll >= 0)
            close(k->epoll);
        free(k);
        return status;
    }
    k->facts = (struct rnl_xdp_facts){
        .mode = k->rings.area->mode, .interface = k->rings.area->interface, .queue = k->rings.area->queue, .works = 1};
    const uint32_t room = RNL_XDP_IN * rnl_socket_charge(0);
    k->s.receive_bytes = k->s.receive_bytes < room ? k->s.receive_bytes : room;
    k->s.has_fd = 1;
    show(k, now_ms());
    *out = &k->s;
    return 0;
}

bool rnl_xdp_socket_is(const struct rnl_socket *s)
{
    return s->ops == &xdp_ops;
}

void rnl_xdp_socket_facts(const struct rnl_socket *s, struct rnl_xdp_facts *out)
{
    const struct xdp_socket *k = (const struct xdp_socket *)(const void *)s;
    *out = k->facts;
    out->frames = k->frames;
}
