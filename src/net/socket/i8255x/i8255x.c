/* SPDX-License-Identifier: BSD-3-Clause
 *
 * i8255x.c - a socket over cards. */
#include "net/socket/i8255x/i8255x.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "net/socket/i8255x/card.h"
#include "net/socket/xdp/frame.h"

enum {
    HEADS = 64,       /* headers that are kept, by a hash of the address; a power of two */
    MISSES_TEND = 64, /* looks that found nothing between two looks at the clock */
    TEND_MS = 1,
    DATAGRAM_MOST = RNL_I8255X_FRAME - RNL_XDP_ETHERNET - 40 - 8
};

struct wire {
    struct rnl_i8255x card;
    struct rnl_socket_addr self;
    int fd[RNL_I8255X_GRANT_FDS]; /* device, registers, line, memory: closed in this order */
    int event;                    /* readable when it has interrupted; -1: it does not */
    uint64_t sent, received, refused;
    bool posted, was_up; /* was_up: as of the last look, which frames.links tells of */
};

struct kept_head {
    struct rnl_socket_addr to; /* port 0 = none */
    struct rnl_xdp_head head;
};

struct card_socket {
    struct rnl_socket s;             /* first */
    struct rnl_socket_frames frames; /* of all cards */
    uint32_t wires, first, misses, tended_ms;
    int epoll; /* of all cards' events; -1: a card does not interrupt */
    bool armed;
    struct wire wire[RNL_I8255X_CARDS];
    struct kept_head head[HEADS];
};

static struct card_socket *of(struct rnl_socket *s)
{
    return (struct card_socket *)(void *)s;
}

static uint32_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (uint32_t)((uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000);
}

void rnl_i8255x_address_of(const uint8_t mac[6], uint32_t wire, uint16_t port, struct rnl_socket_addr *out)
{
    const uint8_t ip[16] = {0xfe,       0x80,   0,      0,    0,    0,      0,      0,
                            mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};
    *out = (struct rnl_socket_addr){.scope = wire, .port = port};
    memcpy(out->ip, ip, sizeof ip);
}

/* False: that is no address of a card. */
static bool mac_of(const struct rnl_socket_addr *a, uint8_t mac[6])
{
    static const uint8_t front[8] = {0xfe, 0x80};
    if (memcmp(a->ip, front, sizeof front) != 0 || a->ip[11] != 0xff || a->ip[12] != 0xfe)
        return false;
    memcpy(mac, a->ip + 8, 3);
    memcpy(mac + 3, a->ip + 13, 3);
    mac[0] ^= 2;
    return !(mac[0] & 1); /* nobody's own address is a group's */
}

static bool is_up(const struct rnl_i8255x *c)
{
    return c->link_up && !c->gone && !c->tx_stuck;
}

/* Calls that send or receive may have learnt before that the card is gone, and told nobody. */
static void tend_card(struct card_socket *k, struct wire *w)
{
    (void)rnl_i8255x_tend(&w->card);
    k->frames.links += w->was_up != is_up(&w->card);
    w->was_up = is_up(&w->card);
}

/* Units that have stopped are restarted, however busy the other direction is. */
static void tend(struct card_socket *k)
{
    const uint32_t ms = now_ms();
    k->misses = 0;
    if (ms - k->tended_ms < TEND_MS)
        return;
    k->tended_ms = ms;
    for (uint32_t i = 0; i < k->wires; i++)
        if (!k->wire[i].card.gone || k->wire[i].was_up)
            tend_card(k, &k->wire[i]);
}

/* ---- sending ---- */

static const struct rnl_xdp_head *head_of(struct card_socket *k, const struct wire *w, const struct rnl_socket_addr *to)
{
    struct kept_head *h = &k->head[(to->ip[15] ^ to->ip[14] ^ to->ip[13] ^ to->port ^ to->scope << 4) % HEADS];
    uint8_t mac[6];
    if (rnl_socket_addr_equal(&h->to, to))
        return &h->head;
    if (!mac_of(to, mac))
        return NULL;
    rnl_xdp_head_make(&h->head, mac, w->card.mac, RNL_XDP_TAG_NONE, to, &w->self);
    h->to = *to;
    return &h->head;
}

static struct wire *wire_to(struct card_socket *k, uint32_t scope)
{
    for (uint32_t i = 0; i < k->wires; i++)
        if (k->wire[i].self.scope == scope)
            return &k->wire[i];
    return NULL;
}

/* Posts one datagram; 0, or why not (enum rnl_socket_stop), with an errno. */
static uint32_t post(struct card_socket *k, const struct rnl_socket_out *o, int32_t *sys_errno)
{
    struct wire *w = wire_to(k, o->to.scope);
    const struct rnl_xdp_head *h;
    uint8_t *room;
    *sys_errno = EMSGSIZE;
    if (o->bytes > DATAGRAM_MOST || (o->segment && o->segment < o->bytes))
        return RNL_SOCKET_TOO_LONG;
    *sys_errno = ENETUNREACH;
    if (!w || w->card.gone || !(h = head_of(k, w, &o->to)))
        return RNL_SOCKET_UNREACHABLE;
    if (!(room = rnl_i8255x_room(&w->card))) {
        rnl_i8255x_kick(&w->card);
        tend(k);
        *sys_errno = EAGAIN;
        return w->card.gone || w->card.tx_stuck ? RNL_SOCKET_UNREACHABLE : RNL_SOCKET_FULL;
    }
    rnl_i8255x_post(&w->card, rnl_xdp_frame_write(h, room, o->at, o->bytes, o->ecn));
    w->sent++;
    k->frames.sent++;
    w->posted = true;
    return RNL_SOCKET_WENT;
}

static int card_send(struct rnl_socket *s, const struct rnl_socket_out *out, int n, struct rnl_socket_result *result)
{
    struct card_socket *k = of(s);
    int i = 0;
    *result = (struct rnl_socket_result){RNL_SOCKET_WENT, 0};
    while (i < n && (result->stop = post(k, &out[i], &result->sys_errno)) == RNL_SOCKET_WENT)
        i++;
    if (result->stop == RNL_SOCKET_WENT)
        result->sys_errno = 0;
    for (uint32_t j = 0; j < k->wires; j++)
        if (k->wire[j].posted) {
            rnl_i8255x_kick(&k->wire[j].card);
            k->wire[j].posted = false;
        }
    return i;
}

/* ---- receiving ---- */

/* Fills a room with the datagram of a frame. False: it is none for us. */
static bool take(const struct wire *w, const uint8_t *frame, uint32_t bytes, struct rnl_socket_in *in)
{
    struct rnl_xdp_datagram d;
    uint8_t mac[6];
    if (!rnl_xdp_frame_read(frame, bytes, &d) || d.to.port != w->self.port ||
        memcmp(d.to.ip, w->self.ip, sizeof d.to.ip) != 0 || !mac_of(&d.from, mac))
        return false;
    d.from.scope = w->self.scope;
    in->bytes = d.bytes < in->room ? d.bytes : in->room;
    in->cut = d.bytes > in->room;
    in->ecn = d.ecn;
    in->segment = 0;
    in->from = d.from;
    memcpy(in->at, frame + d.at, in->bytes);
    return true;
}

/* At most as many frames as the circle has: what strangers send cannot hold a call up. */
static int from_wire(struct card_socket *k, struct wire *w, struct rnl_socket_in *in, int n)
{
    const uint8_t *frame;
    uint32_t bytes;
    int got = 0;
    for (uint32_t i = 0; got < n && i < RNL_I8255X_RX && (frame = rnl_i8255x_next(&w->card, &bytes)); i++) {
        if (take(w, frame, bytes, &in[got])) {
            got++;
        } else {
            w->refused++;
            k->frames.refused++;
        }
        rnl_i8255x_free(&w->card);
    }
    w->received += (uint32_t)got;
    k->frames.received += (uint32_t)got;
    return got;
}

/* Interrupts cost more than frames: while somebody looks for these there are none. Who slept has not looked at the
 * clock for long. */
static void disarm(struct card_socket *k)
{
    k->misses = MISSES_TEND;
    for (uint32_t i = 0; i < k->wires; i++)
        rnl_i8255x_disarm(&k->wire[i].card);
    k->armed = false;
}

static int card_recv(struct rnl_socket *s, struct rnl_socket_in *in, int n)
{
    struct card_socket *k = of(s);
    int got = 0;
    if (k->armed)
        disarm(k);
    for (uint32_t i = 0; i < k->wires && got < n; i++)
        got += from_wire(k, &k->wire[(k->first + i) % k->wires], in + got, n - got);
    if (got == n)
        k->first++; /* a busy card does not keep another from its turn */
    if (++k->misses >= MISSES_TEND)
        tend(k);
    return got;
}

static int card_error(struct rnl_socket *s, struct rnl_socket_error *e)
{
    (void)s;
    (void)e;
    return 0;
}

static bool card_is_down(struct rnl_socket *s, const struct rnl_socket_addr *to)
{
    const struct wire *w = wire_to(of(s), to->scope);
    return w && !is_up(&w->card);
}

/* What uio says of a card that is gone is an error that never ends, which would let nobody sleep. */
static void forget_event(const struct card_socket *k, struct wire *w)
{
    if (w->event == w->fd[0] && k->epoll >= 0)
        (void)epoll_ctl(k->epoll, EPOLL_CTL_DEL, w->event, NULL);
}

static int card_arm(struct rnl_socket *s)
{
    struct card_socket *k = of(s);
    int come = 0;
    for (uint32_t i = 0; i < k->wires; i++) {
        struct wire *w = &k->wire[i];
        if (w->card.gone)
            forget_event(k, w);
        else
            come |= rnl_i8255x_arm(&w->card, w->event, w->fd[0], w->fd[2]);
    }
    k->armed = true;
    return come;
}

static int card_fd(struct rnl_socket *s)
{
    if (of(s)->epoll >= 0)
        return of(s)->epoll;
    return rnl_fail(RNL_ERR_UNSUPPORTED, "a card that is polled has no descriptor to wait for");
}

/* ---- beginning and end ---- */

static void close_wires(struct card_socket *k)
{
    for (uint32_t i = 0; i < k->wires; i++)
        rnl_i8255x_close(&k->wire[i].card);
}

static void close_events(struct card_socket *k)
{
    for (uint32_t i = 0; i < k->wires; i++)
        if (k->wire[i].event >= 0 && k->wire[i].event != k->wire[i].fd[0])
            close(k->wire[i].event);
    if (k->epoll >= 0)
        close(k->epoll);
}

/* One descriptor for the interrupts of all cards, if each has some. */
static void watch_events(struct card_socket *k)
{
    bool all = true;
    k->epoll = epoll_create1(EPOLL_CLOEXEC);
    for (uint32_t i = 0; i < k->wires; i++) {
        struct epoll_event e = {.events = EPOLLIN};
        struct wire *w = &k->wire[i];
        w->event = rnl_i8255x_interrupts(w->fd[0]);
        all &= w->event >= 0 && k->epoll >= 0 && epoll_ctl(k->epoll, EPOLL_CTL_ADD, w->event, &e) == 0;
    }
    if (!all && k->epoll >= 0) {
        close(k->epoll);
        k->epoll = -1;
    }
}

static void card_close(struct rnl_socket *s)
{
    struct card_socket *k = of(s);
    close_wires(k);
    close_events(k);
    for (uint32_t i = 0; i < k->wires; i++)
        for (int j = 0; j < RNL_I8255X_GRANT_FDS; j++)
            close(k->wire[i].fd[j]);
    free(k);
}

static const struct rnl_socket_ops card_ops = {
    .size = sizeof card_ops,
    .send = card_send,
    .recv = card_recv,
    .error = card_error,
    .arm = card_arm,
    .fd = card_fd,
    .close = card_close,
    .is_down = card_is_down,
};

int rnl_i8255x_socket_new(const struct rnl_i8255x_grant *cards, uint32_t n, uint16_t port, struct rnl_socket **out)
{
    struct card_socket *k;
    int status = 0;
    if (n < 1 || n > RNL_I8255X_CARDS || port == 0)
        return rnl_fail(RNL_ERR_ARG, "a socket has 1 to %d cards and a port, not %u and port %u", RNL_I8255X_CARDS, n,
                        port);
    if (!(k = calloc(1, sizeof *k)))
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a socket over %u card%s", n, RNL_S(n));
    while (status == 0 && k->wires < n) {
        struct wire *w = &k->wire[k->wires];
        const struct rnl_i8255x_grant *g = &cards[k->wires];
        status = rnl_i8255x_open(&w->card, g);
        w->fd[0] = g->device;
        w->fd[1] = g->registers;
        w->fd[2] = g->line;
        w->fd[3] = g->memory;
        if (status == 0) {
            rnl_i8255x_address_of(w->card.mac, g->wire, port, &w->self);
            w->was_up = is_up(&w->card);
            k->wires++;
        }
    }
    if (status < 0) {
        close_wires(k);
        free(k);
        return status;
    }
    watch_events(k);
    k->s = (struct rnl_socket){.ops = &card_ops,
                               .frames = &k->frames,
                               .self = k->wire[0].self,
                               .datagram_max = DATAGRAM_MOST,
                               .segments_max = 1,
                               .segment_bytes = DATAGRAM_MOST,
                               .merged_bytes = DATAGRAM_MOST,
                               .receive_bytes = (RNL_I8255X_RX - 2) * rnl_socket_charge(0), /* so many, however long */
                               .has_ecn = 1,
                               .has_fd = k->epoll >= 0};
    *out = &k->s;
    return 0;
}

void rnl_i8255x_socket_address(const struct rnl_socket *s, uint32_t card, struct rnl_socket_addr *out)
{
    *out = ((const struct card_socket *)(const void *)s)->wire[card].self;
}

bool rnl_i8255x_socket_facts(const struct rnl_socket *s, uint32_t card, struct rnl_i8255x_facts *out)
{
    const struct card_socket *k = (const struct card_socket *)(const void *)s;
    if (card >= k->wires)
        return false;
    const struct wire *w = &k->wire[card];
    *out = (struct rnl_i8255x_facts){.gone = w->card.gone,
                                     .link_up = w->card.link_up,
                                     .sent = w->sent,
                                     .received = w->received,
                                     .refused = w->refused,
                                     .rx_restarts = w->card.rx_restarts,
                                     .tx_restarts = w->card.tx_restarts};
    return true;
}
