/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stream.c - the streams of stream.h: one datagram at a time each way, its acknowledgement awaited. */
#include "sim/cluster/stream.h"

#include "base/error.h"
#include "job/fds.h"
#include "net/wire/bytes.h"
#include "sim/cluster/net.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HEADER = 16, BYTES = 1024, PORT = 6, SOURCE_STREAM = 3, SOURCE_ENTITY = 0x31000000, TRIES = 22, ROOMS = 16 };
enum kind { KIND_CALL = 1, KIND_DATA, KIND_END, KIND_ACK, KIND_RESET };
#define FIRST_NS ((uint64_t)200 * 1000 * 1000)      /* until what was not acknowledged is sent again; then twice that */
#define LAST_NS  ((uint64_t)5 * 1000 * 1000 * 1000) /* at most */
#define IDLE_NS  ((uint64_t)30 * 1000 * 1000 * 1000) /* after which the other end is asked whether it is there */

struct vc_stream {
    uint32_t source, number, its; /* its: the peer's number, 0 = not known yet */
    int fd;                       /* the far end of the daemon's descriptor */
    struct vc_streams *streams;
    struct vc_stream *next;
    uint32_t host, peer;
    uint32_t out_seq, in_seq;
    uint32_t out_bytes; /* of `out`, which is not acknowledged; 0 = nothing is on its way */
    uint32_t tries;
    bool has_ended, is_ending; /* the peer writes no more; KIND_END is on its way, or was */
    struct rnl_sim_event due;
    unsigned char out[HEADER + BYTES];
};

struct end { /* a host's */
    struct vc_streams *streams;
    struct rnl_socket *socket;
    struct rnl_sim_event came;
    int listen; /* what calls are handed to; -1 = nobody listens */
};

struct vc_streams {
    struct vc_cluster *cluster;
    int epoll;
    void (*look)(struct vc_cluster *);
    uint32_t hosts, numbers;
    struct vc_stream *first;
    struct end end[];
};

void vc_stream_ip(uint32_t host, unsigned char ip[16])
{
    const struct rnl_socket_addr at = vc_net_addr(host, PORT);
    memcpy(ip, at.ip, 16);
}

static struct vc_streams *streams_of(struct rnl_sim *sim)
{
    const struct vc_cluster *c = rnl_sim_owner(sim);
    return c->streams;
}

/* ---- datagrams ---- */

static void send_to(struct vc_streams *t, uint32_t host, uint32_t peer, const void *at, uint32_t bytes)
{
    const struct rnl_socket_out out = {.to = vc_net_addr(peer, PORT), .at = at, .bytes = bytes};
    struct rnl_socket_result result;
    (void)t->end[host].socket->ops->send(t->end[host].socket, &out, 1, &result); /* what is lost is sent again */
}

static void head(unsigned char at[HEADER], enum kind kind, uint32_t to, uint32_t from, uint32_t seq)
{
    rnl_put32(at, kind);
    rnl_put32(at + 4, to);
    rnl_put32(at + 8, from);
    rnl_put32(at + 12, seq);
}

static void say(const struct vc_stream *s, enum kind kind, uint32_t seq)
{
    unsigned char at[HEADER];
    head(at, kind, s->its, s->number, seq);
    send_to(s->streams, s->host, s->peer, at, sizeof at);
}

static void due_in(struct vc_stream *s, uint64_t ns)
{
    struct rnl_sim *sim = s->streams->cluster->sim;
    (void)rnl_sim_at(sim, &s->due, rnl_sim_now(sim) + ns * VC_TICKS_PER_NS);
}

/* Sends what is in `out`, and sees to it that it is sent again. */
static void push(struct vc_stream *s, enum kind kind, uint32_t bytes)
{
    head(s->out, kind, s->its, s->number, s->out_seq);
    s->out_bytes = HEADER + bytes;
    s->tries = 0;
    send_to(s->streams, s->host, s->peer, s->out, s->out_bytes);
    due_in(s, FIRST_NS);
}

/* ---- life ---- */

static void end_stream(struct vc_stream *s)
{
    struct vc_stream **at = &s->streams->first;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    rnl_sim_cancel(s->streams->cluster->sim, &s->due);
    close(s->fd);
    free(s);
}

static void again(struct rnl_sim *sim, struct rnl_sim_event *event);

/* Makes a stream whose other descriptor is *theirs. NULL: there is no memory or no descriptor. */
static struct vc_stream *new_stream(struct vc_streams *t, uint32_t host, uint32_t peer, int *theirs)
{
    int ends[2];
    struct vc_stream *s = calloc(1, sizeof *s);
    struct epoll_event e = {.events = EPOLLIN | EPOLLONESHOT, .data.ptr = s};
    if (!s || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0) {
        free(s);
        return NULL;
    }
    if (epoll_ctl(t->epoll, EPOLL_CTL_ADD, ends[0], &e) < 0) {
        close(ends[0]);
        close(ends[1]);
        free(s);
        return NULL;
    }
    *s = (struct vc_stream){.source = SOURCE_STREAM,
                            .number = ++t->numbers,
                            .fd = ends[0],
                            .streams = t,
                            .host = host,
                            .peer = peer,
                            .next = t->first};
    rnl_sim_event_init(&s->due, again, SOURCE_ENTITY + t->hosts + s->number);
    t->first = s;
    *theirs = ends[1];
    return s;
}

/* Reads on from the daemon, if nothing of it is on its way. */
void vc_stream_readable(struct vc_stream *s)
{
    struct epoll_event e = {.events = EPOLLIN | EPOLLONESHOT, .data.ptr = s};
    if (s->out_bytes != 0 || s->is_ending)
        return;
    const ssize_t n = recv(s->fd, s->out + HEADER, BYTES, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        (void)epoll_ctl(s->streams->epoll, EPOLL_CTL_MOD, s->fd, &e);
        return;
    }
    s->is_ending = n <= 0;
    push(s, n > 0 ? KIND_DATA : KIND_END, n > 0 ? (uint32_t)n : 0);
}

static void again(struct rnl_sim *sim, struct rnl_sim_event *event)
{
    struct vc_streams *t = streams_of(sim);
    struct vc_stream *s = t ? t->first : NULL;
    while (s && &s->due != event)
        s = s->next;
    if (!s)
        return;
    if (s->out_bytes == 0) {
        push(s, KIND_DATA, 0);
        return;
    }
    if (++s->tries > TRIES) {
        end_stream(s);
        t->look(t->cluster);
        return;
    }
    send_to(t, s->host, s->peer, s->out, s->out_bytes);
    const uint64_t ns = s->tries < 5 ? FIRST_NS << s->tries : LAST_NS;
    due_in(s, ns < LAST_NS ? ns : LAST_NS);
}

/* ---- what comes ---- */

static void refuse(struct vc_streams *t, uint32_t host, uint32_t peer, uint32_t to)
{
    unsigned char at[HEADER];
    head(at, KIND_RESET, to, 0, 0);
    send_to(t, host, peer, at, sizeof at);
}

static void open_came(struct vc_streams *t, uint32_t host, uint32_t peer, uint32_t from)
{
    struct vc_stream *s = t->first;
    unsigned char ip[16];
    int theirs = -1;
    while (s && (s->host != host || s->peer != peer || s->its != from))
        s = s->next;
    if (!s && t->end[host].listen >= 0) {
        s = new_stream(t, host, peer, &theirs);
        vc_stream_ip(peer, ip);
        if (s && rnl_seqpacket_send(t->end[host].listen, ip, sizeof ip, &theirs, 1, 0) < 0) {
            end_stream(s);
            s = NULL;
        } else if (s) {
            s->its = from;
            s->in_seq = 1;
            due_in(s, IDLE_NS);
        }
        if (theirs >= 0)
            close(theirs);
    }
    if (s)
        say(s, KIND_ACK, s->in_seq);
    else
        refuse(t, host, peer, from);
}

static void ack_came(struct vc_stream *s, uint32_t from, uint32_t seq)
{
    if (s->out_bytes == 0 || seq != s->out_seq + 1)
        return;
    s->its = from;
    s->out_seq++;
    s->out_bytes = 0;
    if (s->is_ending) {
        end_stream(s);
        return;
    }
    due_in(s, IDLE_NS);
    vc_stream_readable(s);
}

/* Bytes of which the daemon takes no more are not acknowledged, and come again. */
static void data_came(struct vc_stream *s, uint32_t kind, uint32_t seq, const unsigned char *at, uint32_t n)
{
    if (seq == s->in_seq && kind == KIND_DATA && n > 0 && send(s->fd, at, n, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 &&
        errno == EAGAIN)
        return;
    if (seq == s->in_seq) {
        s->in_seq++;
        if (kind == KIND_END && !s->has_ended) {
            s->has_ended = true;
            (void)shutdown(s->fd, SHUT_WR);
        }
    }
    say(s, KIND_ACK, s->in_seq);
}

static void came(struct vc_streams *t, uint32_t host, uint32_t peer, const unsigned char *at, uint32_t bytes)
{
    if (bytes < HEADER || bytes > HEADER + BYTES)
        return;
    const uint32_t kind = rnl_get32(at), to = rnl_get32(at + 4), from = rnl_get32(at + 8), seq = rnl_get32(at + 12);
    struct vc_stream *s = t->first;
    if (kind == KIND_CALL) {
        open_came(t, host, peer, from);
        return;
    }
    while (s && (s->number != to || s->host != host || s->peer != peer))
        s = s->next;
    if (!s) {
        if (kind != KIND_RESET)
            refuse(t, host, peer, from);
    } else if (kind == KIND_RESET) {
        end_stream(s);
    } else if (s->its != 0 && s->its != from) {
        refuse(t, host, peer, from);
    } else if (kind == KIND_ACK) {
        ack_came(s, from, seq);
    } else if (kind == KIND_DATA || kind == KIND_END) {
        s->its = from; /* the acknowledgement of the call may be lost */
        data_came(s, kind, seq, at + HEADER, bytes - HEADER);
    }
}

static void rung(void *arg)
{
    struct end *e = arg;
    struct rnl_sim *sim = e->streams->cluster->sim;
    (void)rnl_sim_at(sim, &e->came, rnl_sim_now(sim));
}

static void take_in(struct rnl_sim *sim, struct rnl_sim_event *event)
{
    struct vc_cluster *c = rnl_sim_owner(sim);
    struct vc_streams *t = c->streams;
    const uint32_t host = event->entity - SOURCE_ENTITY;
    struct rnl_socket *socket = t->end[host].socket;
    unsigned char room[ROOMS][HEADER + BYTES];
    do {
        struct rnl_socket_in in[ROOMS];
        for (int i = 0; i < ROOMS; i++)
            in[i] = (struct rnl_socket_in){.at = room[i], .room = sizeof room[i]};
        const int n = socket->ops->recv(socket, in, ROOMS);
        for (int i = 0; i < n; i++) {
            const uint32_t peer = vc_net_host_of(c->net, &in[i].from);
            if (peer < t->hosts && !in[i].cut)
                came(t, host, peer, room[i], in[i].bytes);
        }
    } while (socket->ops->arm(socket) == 1);
    t->look(c);
}

/* ---- what a daemon calls ---- */

static int listen_here(void *arg, uint16_t port)
{
    struct end *e = arg;
    int pair[2];
    (void)port; /* there is one daemon on a host */
    if (rnl_seqpacket_pair(pair) < 0)
        return -EMFILE;
    if (e->listen >= 0)
        close(e->listen);
    e->listen = pair[0];
    return pair[1];
}

static int accept_one(void *arg, int listen, unsigned char ip[16])
{
    struct rnl_seqpacket p;
    (void)arg;
    const int e = rnl_seqpacket_receive(listen, ip, 16, 1, &p, 0);
    return e < 0 ? -EAGAIN : p.nfds == 1 ? p.fds[0] : -EMFILE;
}

static int dial(void *arg, const unsigned char ip[16], uint16_t port)
{
    struct end *e = arg;
    struct vc_streams *t = e->streams;
    struct rnl_socket_addr at = vc_net_addr(0, PORT);
    int theirs;
    (void)port;
    memcpy(at.ip, ip, 16);
    const uint32_t peer = vc_net_host_of(t->cluster->net, &at);
    if (peer >= t->hosts)
        return -EHOSTUNREACH;
    struct vc_stream *s = new_stream(t, (uint32_t)(e - t->end), peer, &theirs);
    if (!s)
        return -EMFILE;
    push(s, KIND_CALL, 0);
    return theirs;
}

void vc_stream_net(struct vc_streams *t, uint32_t host, struct rnl_daemon_net *out)
{
    *out = (struct rnl_daemon_net){.listen = listen_here, .accept = accept_one, .dial = dial, .arg = &t->end[host]};
}

void vc_stream_unlisten(struct vc_streams *t, uint32_t host)
{
    if (t->end[host].listen >= 0)
        close(t->end[host].listen);
    t->end[host].listen = -1;
}

int vc_streams_new(struct vc_cluster *c, int epoll, void (*look)(struct vc_cluster *), struct vc_streams **out)
{
    struct vc_streams *t = calloc(1, sizeof *t + c->opt.hosts * sizeof t->end[0]);
    if (!t)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the streams between %u virtual hosts", c->opt.hosts);
    t->cluster = c;
    t->epoll = epoll;
    t->look = look;
    t->hosts = c->opt.hosts;
    for (uint32_t i = 0; i < t->hosts; i++)
        t->end[i] = (struct end){.streams = t, .listen = -1};
    for (uint32_t i = 0; i < t->hosts; i++) {
        const struct vc_net_socket_config config = {.port = PORT, .plain = 1, .ring = rung, .arg = &t->end[i]};
        const int status = vc_net_socket_open(c->net, i, &config, &t->end[i].socket);
        if (status < 0) {
            vc_streams_free(t);
            return status;
        }
        rnl_sim_event_init(&t->end[i].came, take_in, SOURCE_ENTITY + i);
        if (t->end[i].socket->ops->arm(t->end[i].socket) == 1)
            rung(&t->end[i]);
    }
    *out = t;
    return 0;
}

void vc_streams_free(struct vc_streams *t)
{
    if (!t)
        return;
    while (t->first)
        end_stream(t->first);
    for (uint32_t i = 0; i < t->hosts; i++) {
        vc_stream_unlisten(t, i);
        if (t->end[i].socket)
            t->end[i].socket->ops->close(t->end[i].socket);
    }
    free(t);
}
