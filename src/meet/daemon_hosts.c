/* SPDX-License-Identifier: BSD-3-Clause
 *
 * daemon_hosts.c - introductions between hosts: a daemon calls the one of the other host, over a stream
 * (secure_stream.h) that is for one pair of processes and lasts as long as they do. Each daemon says who its process
 * is, as the kernel told it, and gives it the key of the pair; what the two say to each other then goes over neither
 * daemon nor stream. A daemon says over the stream when its process is gone. A stream that ends without that ends no
 * connection: the daemon there may have ended. Then the process here is told that nobody would tell it of the end.
 *
 * Daemons of nodes, which are root's, believe each other's numbers of users and groups. A daemon of a user speaks for
 * that user's processes only, and takes whoever has the user's key for that user. */
#include "base/error.h"
#include "base/secret.h"
#include "meet/daemon_internal.h"
#include "meet/daemon_msg.h"
#include "meet/node_key.h"
#include "runnel/runnel.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    CALLS = 4096,        /* streams at a time */
    CALLS_OF_ONE = 1024, /* of one process, and of one user that is not the daemon's */
    UNPROVEN = 32,       /* streams of strangers; the oldest makes room, unless it is new */
    ACCEPTS_PER_STEP = 16,
    KIND_USER = 1,
    KIND_NODE = 2
};
#define PROVE_NS ((uint64_t)5 * 1000 * 1000 * 1000) /* to prove the key, to request, to take the last word in */
#define NEW_NS   ((uint64_t)500 * 1000 * 1000)      /* in which a stream of a busy host need not have proved the key */
#define AGAIN_NS ((uint64_t)10 * 1000 * 1000)

enum call_state {
    CALL_PROVING = 0, /* the stream is not up */
    CALL_REQUESTING,  /* REQUEST is awaited, or the REPLY to it */
    CALL_WAITING,     /* server: nobody offers the service yet */
    CALL_PENDING,     /* server: who offers it has been asked */
    CALL_UP,
    CALL_ENDING /* what is left is to be sent */
};

struct daemon_call {
    uint8_t source;
    uint8_t state;
    bool is_server, is_gone, is_full;
    struct daemon_call *next;
    struct rnl_secure_stream *stream;
    struct daemon_caller *caller; /* who reaches; who serves, from PENDING on; or NULL */
    uint32_t number;
    uint64_t until_ns; /* 0 = no bound */
    struct rnl_meet_call request;
    uint32_t uid, groups, group[RNL_DAEMON_MSG_GROUPS]; /* server: of who reaches */
};

struct daemon_hosts {
    uint8_t source;
    bool is_deaf; /* out of descriptors: nobody is accepted until the next look */
    int listen;
    uint32_t numbers, calls;
    struct daemon_call *call; /* the newest first */
    unsigned char key[RNL_NODE_KEY_BYTES];
};

static uint32_t kind_of(const struct rnl_daemon *d)
{
    return d->opt.of_node ? KIND_NODE : KIND_USER;
}

/* ---- messages ---- */

static int send_msg(struct daemon_call *k, const struct rnl_daemon_msg *m)
{
    unsigned char out[RNL_SECURE_STREAM_BYTES];
    const size_t n = rnl_daemon_msg_encode(m, out);
    return rnl_secure_stream_send(k->stream, out, n);
}

static int send_request(struct daemon_call *k)
{
    const struct daemon_caller *c = k->caller;
    struct rnl_daemon_msg m = {.kind = RNL_DAEMON_MSG_REQUEST, .uid = c->uid, .request = k->request};
    m.groups = c->groups < RNL_DAEMON_MSG_GROUPS ? c->groups : RNL_DAEMON_MSG_GROUPS;
    memcpy(m.group, c->group, m.groups * sizeof m.group[0]);
    return send_msg(k, &m);
}

/* Takes in who asks for what. A daemon of a user knows one user; that of a node believes the other node. */
static void take_request(const struct rnl_daemon *d, struct daemon_call *k, const struct rnl_daemon_msg *m)
{
    unsigned char ip[RNL_MEET_IP_BYTES];
    memcpy(ip, k->request.ip, sizeof ip);
    k->request = m->request;
    memcpy(k->request.ip, ip, sizeof ip);
    k->uid = d->opt.of_node ? m->uid : d->own_uid;
    k->groups = d->opt.of_node ? m->groups : 1;
    memcpy(k->group, m->group, sizeof k->group);
    if (!d->opt.of_node)
        k->group[0] = getegid();
    if (k->request.flags & RNL_MEET_OWN_USER)
        k->request.uid = k->uid;
}

/* ---- the life of a call ---- */

static struct daemon_call *new_call(struct rnl_daemon *d, int fd, bool is_server)
{
    /* After 30 s without a byte TCP asks the other host every 10 s whether it has the connection still, 6 times. */
    static const int options[][3] = {{IPPROTO_TCP, TCP_KEEPIDLE, 30},
                                     {IPPROTO_TCP, TCP_KEEPINTVL, 10},
                                     {IPPROTO_TCP, TCP_KEEPCNT, 6},
                                     {IPPROTO_TCP, TCP_NODELAY, 1},
                                     {SOL_SOCKET, SO_KEEPALIVE, 1}};
    struct daemon_hosts *h = d->hosts;
    struct daemon_call *k = h->calls < CALLS ? calloc(1, sizeof *k) : NULL;
    if (!k) {
        close(fd);
        return NULL;
    }
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        (void)setsockopt(fd, options[i][0], options[i][1], &options[i][2], sizeof options[i][2]);
    *k = (struct daemon_call){.source = RNL_DAEMON_CALL, .is_server = is_server, .until_ns = d->now_ns + PROVE_NS};
    k->stream = rnl_secure_stream_new(fd, is_server, h->key, kind_of(d), RNL_SECURE_STREAM_BYTES);
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = k};
    if (!k->stream || epoll_ctl(d->epoll, EPOLL_CTL_ADD, fd, &e) < 0) {
        rnl_secure_stream_free(k->stream);
        free(k);
        return NULL;
    }
    k->number = ++h->numbers ? h->numbers : ++h->numbers;
    k->next = h->call;
    h->call = k;
    h->calls++;
    rnl_daemon_due(d, k->until_ns);
    return k;
}

static void part_from(struct daemon_call *k)
{
    if (k->caller)
        k->caller->calls--;
    k->caller = NULL;
}

/* The call is over; nothing is said any more. It is freed at the end of the step. */
static void end_call(struct rnl_daemon *d, struct daemon_call *k)
{
    part_from(k);
    k->is_gone = true;
    d->due_ns = 0;
}

static void watch(struct rnl_daemon *d, struct daemon_call *k)
{
    const int left = k->is_gone ? 0 : rnl_secure_stream_flush(k->stream);
    if (left < 0 || (left == 0 && k->state == CALL_ENDING)) {
        end_call(d, k);
        return;
    }
    struct epoll_event e = {.events = left ? EPOLLIN | EPOLLOUT : EPOLLIN, .data.ptr = k};
    if (k->is_gone || k->is_full == (left != 0))
        return;
    k->is_full = left != 0;
    if (epoll_ctl(d->epoll, EPOLL_CTL_MOD, rnl_secure_stream_fd(k->stream), &e) < 0)
        end_call(d, k);
}

/* Says a last word. */
static void finish(struct rnl_daemon *d, struct daemon_call *k, const struct rnl_daemon_msg *m)
{
    part_from(k);
    if (k->is_gone)
        return;
    k->state = CALL_ENDING;
    k->until_ns = d->now_ns + PROVE_NS;
    rnl_daemon_due(d, k->until_ns);
    if (send_msg(k, m) < 0)
        end_call(d, k);
    else
        watch(d, k);
}

static void send_gone(struct rnl_daemon *d, struct daemon_call *k, uint32_t why)
{
    finish(d, k, &(struct rnl_daemon_msg){.kind = RNL_DAEMON_MSG_GONE, .why = why});
}

static void refuse(struct rnl_daemon *d, struct daemon_call *k, int status)
{
    finish(d, k, &(struct rnl_daemon_msg){.kind = RNL_DAEMON_MSG_REPLY, .status = status});
}

static void gone_came(struct rnl_daemon *d, struct daemon_call *k, uint32_t why)
{
    const struct rnl_meet_msg msg = {.kind = RNL_MEET_GONE, .u.gone = {.call = k->number, .why = why}};
    if (rnl_daemon_send(k->caller, &msg) < 0)
        rnl_daemon_drop(d, k->caller);
    end_call(d, k);
}

/* The call has come to nothing. */
static void fail(struct rnl_daemon *d, struct daemon_call *k, int status)
{
    if (k->caller && k->state < CALL_UP && !k->is_server)
        rnl_daemon_send_result(d, k->caller, k->request.request_id, status);
    if (k->caller && (k->state == CALL_PENDING || k->state == CALL_UP))
        gone_came(d, k, k->state == CALL_UP ? RNL_DEATH_NONE : RNL_DEATH_EXIT);
    else
        end_call(d, k);
}

/* ---- server ---- */

/* Whether another call for a process of this user would leave too few to others. */
static bool is_crowded(const struct rnl_daemon *d, uint32_t uid)
{
    uint32_t n = 0;
    for (const struct daemon_call *k = d->hosts->call; k && uid != d->own_uid; k = k->next)
        n += k->is_server ? k->state > CALL_REQUESTING && k->uid == uid : k->caller && k->caller->uid == uid;
    return n >= CALLS_OF_ONE;
}

/* Asks who offers the service, if anybody does. */
static void serve_call(struct rnl_daemon *d, struct daemon_call *k)
{
    const struct daemon_service *s = rnl_daemon_find(d, k->request.uid, k->request.name);
    if (!d->opt.of_node && k->request.uid != d->own_uid) {
        refuse(d, k, RNL_ERR_REFUSED);
        return;
    }
    if (!s || s->caller->is_gone || s->caller->is_full)
        return;
    if (!rnl_daemon_admits(s, k->uid, k->group, k->groups)) {
        refuse(d, k, RNL_ERR_REFUSED);
        return;
    }
    if (s->caller->calls >= CALLS_OF_ONE) {
        refuse(d, k, RNL_NO_ROOM);
        return;
    }
    struct rnl_meet_msg msg = {.kind = RNL_MEET_CALLED};
    struct rnl_meet_called *m = &msg.u.called;
    m->request_id = s->request_id;
    m->call = k->number;
    m->uid = k->uid;
    m->gid = k->group[0];
    m->place = k->request.place;
    memcpy(m->ip, k->request.ip, sizeof m->ip);
    memcpy(m->token, k->request.token, sizeof m->token);
    rnl_secure_stream_pair_key(k->stream, m->key);
    const int e = rnl_daemon_send(s->caller, &msg);
    explicit_bzero(&msg, sizeof msg);
    if (e == RNL_NO_ROOM) {
        rnl_daemon_watch_room(d, s->caller, true);
    } else if (e < 0) {
        rnl_daemon_drop(d, s->caller);
    } else {
        k->caller = s->caller;
        k->caller->calls++;
        k->state = CALL_PENDING;
    }
}

void rnl_daemon_hosts_serve(struct rnl_daemon *d)
{
    for (struct daemon_call *k = d->hosts ? d->hosts->call : NULL; k; k = k->next)
        if (k->state == CALL_WAITING && !k->is_gone)
            serve_call(d, k);
}

static struct daemon_call *find_call(struct rnl_daemon *d, const struct daemon_caller *c, uint32_t number)
{
    struct daemon_call *k = d->hosts ? d->hosts->call : NULL;
    while (k && (k->number != number || k->caller != c || k->is_gone))
        k = k->next;
    return k;
}

void rnl_daemon_reply_came(struct rnl_daemon *d, struct daemon_caller *c, const struct rnl_meet_reply *a)
{
    struct daemon_call *k = find_call(d, c, a->call);
    if (!k || k->state != CALL_PENDING)
        return;
    if (a->status < 0) {
        refuse(d, k, a->status == RNL_NO_ROOM || a->status == RNL_BUSY ? a->status : RNL_ERR_REFUSED);
        return;
    }
    const struct rnl_daemon_msg m = {
        .kind = RNL_DAEMON_MSG_REPLY, .uid = c->uid, .groups = 1, .group = {c->group[0]}, .place = a->place};
    k->state = CALL_UP;
    if (send_msg(k, &m) < 0)
        end_call(d, k);
    else
        watch(d, k);
}

/* ---- client ---- */

static void met(struct rnl_daemon *d, struct daemon_call *k, const struct rnl_daemon_msg *reply)
{
    struct rnl_meet_msg msg = {.kind = RNL_MEET_MET};
    struct rnl_meet_met *m = &msg.u.met;
    m->request_id = k->request.request_id;
    m->call = k->number;
    m->uid = d->opt.of_node ? reply->uid : d->own_uid;
    m->gid = d->opt.of_node ? reply->group[0] : getegid();
    m->place = reply->place;
    memcpy(m->ip, k->request.ip, sizeof m->ip);
    rnl_secure_stream_pair_key(k->stream, m->key);
    if (rnl_daemon_send(k->caller, &msg) < 0) {
        rnl_daemon_drop(d, k->caller); /* it does not read what it asked for */
    } else {
        k->state = CALL_UP;
        k->until_ns = 0;
    }
    explicit_bzero(&msg, sizeof msg);
}

static int dial(const struct rnl_daemon *d, const unsigned char ip[RNL_MEET_IP_BYTES], uint16_t port)
{
    return d->opt.net ? d->opt.net->dial(d->opt.net->arg, ip, port) : rnl_secure_stream_dial(ip, port);
}

void rnl_daemon_call_came(struct rnl_daemon *d, struct daemon_caller *c, const struct rnl_meet_call *q)
{
    struct daemon_hosts *h = d->hosts;
    if (!h || (!d->opt.of_node && c->uid != d->own_uid) || c->uid == UINT32_MAX) {
        rnl_daemon_send_result(d, c, q->request_id, h ? RNL_ERR_REFUSED : RNL_ERR_UNREACHABLE);
        return;
    }
    const uint16_t own = d->opt.net ? d->opt.port : rnl_node_key_port(h->key, d->opt.of_node);
    const uint16_t port = q->port ? (uint16_t)q->port : own;
    const int fd = c->calls < CALLS_OF_ONE && !is_crowded(d, c->uid) ? dial(d, q->ip, port) : -EMFILE;
    struct daemon_call *k = fd < 0 ? NULL : new_call(d, fd, false);
    if (!k) {
        const bool full = fd >= 0 || fd == -EMFILE || fd == -ENFILE || fd == -ENOBUFS || fd == -ENOMEM;
        rnl_daemon_send_result(d, c, q->request_id, full ? RNL_NO_ROOM : RNL_ERR_UNREACHABLE);
        return;
    }
    k->request = *q;
    k->caller = c;
    c->calls++;
}

void rnl_daemon_call_cancel(struct rnl_daemon *d, const struct daemon_caller *c, uint32_t request_id)
{
    for (struct daemon_call *k = d->hosts ? d->hosts->call : NULL; k; k = k->next)
        if (k->caller == c && !k->is_server && k->request.request_id == request_id && k->state < CALL_UP) {
            if (rnl_secure_stream_is_up(k->stream))
                send_gone(d, k, RNL_DEATH_LEFT); /* it may have been let in meanwhile */
            else
                end_call(d, k);
        }
}

/* ---- both ---- */

void rnl_daemon_part_came(struct rnl_daemon *d, struct daemon_caller *c, uint32_t call)
{
    struct daemon_call *k = find_call(d, c, call);
    if (k && k->state == CALL_UP)
        send_gone(d, k, RNL_DEATH_LEFT);
}

void rnl_daemon_hosts_forget(struct rnl_daemon *d, struct daemon_caller *c)
{
    for (struct daemon_call *k = d->hosts ? d->hosts->call : NULL; k && c->calls > 0; k = k->next) {
        if (k->caller != c)
            continue;
        if (k->state == CALL_UP) {
            send_gone(d, k, RNL_DEATH_EXIT);
        } else if (k->is_server) { /* another process may offer the service */
            part_from(k);
            k->state = CALL_WAITING;
        } else {
            end_call(d, k);
        }
    }
}

/* Takes in a message. Returns false if it is none that may come now. */
static bool handle(struct rnl_daemon *d, struct daemon_call *k, const struct rnl_daemon_msg *m)
{
    if (k->is_server && k->state == CALL_REQUESTING && m->kind == RNL_DAEMON_MSG_REQUEST) {
        take_request(d, k, m);
        if (is_crowded(d, k->uid)) {
            refuse(d, k, RNL_NO_ROOM);
            return true;
        }
        k->state = CALL_WAITING;
        k->until_ns = 0;
        serve_call(d, k);
        return true;
    }
    if (!k->is_server && k->state == CALL_REQUESTING && m->kind == RNL_DAEMON_MSG_REPLY) {
        if (m->status == 0)
            met(d, k, m);
        else
            fail(d, k, m->status == RNL_NO_ROOM || m->status == RNL_BUSY ? m->status : RNL_ERR_REFUSED);
        return true;
    }
    if (k->state == CALL_UP && m->kind == RNL_DAEMON_MSG_GONE) {
        gone_came(d, k, m->why == RNL_DEATH_LEFT ? RNL_DEATH_LEFT : RNL_DEATH_EXIT);
        return true;
    }
    return false;
}

static void receive_call(struct rnl_daemon *d, struct daemon_call *k)
{
    unsigned char bytes[RNL_SECURE_STREAM_BYTES];
    struct rnl_daemon_msg m;
    size_t n;
    int got = 1;
    while (got == 1 && !k->is_gone) {
        got = rnl_secure_stream_receive(k->stream, bytes, &n);
        if (k->state == CALL_PROVING && rnl_secure_stream_is_up(k->stream)) {
            k->state = CALL_REQUESTING;
            k->until_ns = k->is_server ? d->now_ns + PROVE_NS : 0;
            if (!k->is_server)
                got = send_request(k);
        }
        if (got < 0 ||
            (got == 1 && k->state != CALL_ENDING && (!rnl_daemon_msg_decode(bytes, n, &m) || !handle(d, k, &m))))
            fail(d, k, RNL_ERR_UNREACHABLE);
    }
    if (!k->is_gone)
        watch(d, k);
}

/* ---- who calls ---- */

/* Strangers who say nothing keep nobody out: the oldest of them makes room. Returns it, or NULL if there is room. */
static struct daemon_call *oldest_stranger(struct rnl_daemon *d)
{
    struct daemon_call *oldest = NULL;
    uint32_t strangers = 0;
    for (struct daemon_call *k = d->hosts->call; k; k = k->next)
        if (k->is_server && k->state == CALL_PROVING && !k->is_gone) {
            strangers++;
            oldest = k;
        }
    return strangers < UNPROVEN ? NULL : oldest;
}

/* While there is no room or no descriptor, who calls waits: the next look is when one may be free. */
static void deafen(struct rnl_daemon *d, bool is_deaf)
{
    struct daemon_hosts *h = d->hosts;
    struct epoll_event e = {.events = is_deaf ? 0 : EPOLLIN, .data.ptr = h};
    if (h->is_deaf != is_deaf)
        (void)epoll_ctl(d->epoll, EPOLL_CTL_MOD, h->listen, &e);
    h->is_deaf = is_deaf;
    if (is_deaf)
        rnl_daemon_due(d, d->now_ns + AGAIN_NS);
}

static void accept_calls(struct rnl_daemon *d)
{
    for (int i = 0; i < ACCEPTS_PER_STEP; i++) {
        unsigned char ip[RNL_MEET_IP_BYTES];
        struct daemon_call *oldest = oldest_stranger(d);
        if (oldest && oldest->until_ns > d->now_ns + PROVE_NS - NEW_NS) {
            deafen(d, true); /* many processes of a host whose daemon is busy may call at once: who calls waits */
            return;
        }
        const int fd = d->opt.net ? d->opt.net->accept(d->opt.net->arg, d->hosts->listen, ip)
                                  : rnl_secure_stream_accept(d->hosts->listen, ip);
        if (fd < 0) {
            deafen(d, fd == -EMFILE || fd == -ENFILE || fd == -ENOBUFS || fd == -ENOMEM);
            return;
        }
        if (oldest)
            end_call(d, oldest);
        struct daemon_call *k = new_call(d, fd, true);
        if (k)
            memcpy(k->request.ip, ip, sizeof ip);
    }
}

void rnl_daemon_hosts_event(struct rnl_daemon *d, void *source, uint32_t events)
{
    struct daemon_call *k = source;
    (void)events;
    if (k->source == RNL_DAEMON_HOSTS)
        accept_calls(d);
    else if (!k->is_gone)
        receive_call(d, k);
}

void rnl_daemon_hosts_late(struct rnl_daemon *d)
{
    struct daemon_hosts *h = d->hosts;
    if (!h)
        return;
    deafen(d, false);
    for (struct daemon_call **at = &h->call, *k; (k = *at) != NULL;) {
        if (!k->is_gone && k->until_ns && d->now_ns >= k->until_ns)
            fail(d, k, RNL_ERR_UNREACHABLE);
        if (k->is_gone) {
            *at = k->next;
            h->calls--;
            rnl_secure_stream_free(k->stream);
            free(k);
            continue;
        }
        if (k->until_ns)
            rnl_daemon_due(d, k->until_ns);
        at = &k->next;
    }
    rnl_daemon_hosts_serve(d);
}

uint32_t rnl_daemon_hosts_calls(const struct rnl_daemon *d)
{
    return d->hosts ? d->hosts->calls : 0;
}

/* ---- beginning and end ---- */

static int begin(struct rnl_daemon *d)
{
    char file[4096];
    struct epoll_event e = {.events = EPOLLIN};
    const struct rnl_daemon_net *net = d->opt.net;
    int status = d->opt.key || net ? 0 : rnl_node_key_file(file, sizeof file);
    if (status < 0)
        return status;
    struct daemon_hosts *h = rnl_secret_new(sizeof *h);
    if (!h)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a daemon");
    *h = (struct daemon_hosts){.source = RNL_DAEMON_HOSTS, .listen = -1};
    e.data.ptr = h;
    if (net)
        memcpy(h->key, net->key, sizeof h->key);
    else
        status = rnl_node_key_read(d->opt.key ? d->opt.key : file, h->key);
    if (status == 0) {
        const uint16_t port = d->opt.port ? d->opt.port : rnl_node_key_port(h->key, d->opt.of_node);
        h->listen = net ? net->listen(net->arg, port) : rnl_secure_stream_listen(port);
        const int why = h->listen < 0 ? -h->listen : epoll_ctl(d->epoll, EPOLL_CTL_ADD, h->listen, &e) < 0 ? errno : 0;
        if (why)
            status = rnl_fail_errno(RNL_ERR_SYSTEM, why,
                                    "cannot listen for the daemons of other hosts at port %u: no process of another "
                                    "host is introduced here",
                                    port);
    }
    d->hosts = h;
    if (status < 0)
        rnl_daemon_hosts_free(d);
    return status;
}

/* Without a key of its own that was named, a daemon is for its host alone: that is no failure. */
int rnl_daemon_hosts_new(struct rnl_daemon *d)
{
    if (d->opt.name && !d->opt.key && !d->opt.net)
        return 0;
    const int status = begin(d);
    return d->opt.key || d->opt.net ? status : 0;
}

void rnl_daemon_hosts_free(struct rnl_daemon *d)
{
    struct daemon_hosts *h = d->hosts;
    if (!h)
        return;
    for (struct daemon_call *k = h->call, *next; k; k = next) {
        next = k->next;
        part_from(k);
        rnl_secure_stream_free(k->stream);
        free(k);
    }
    if (h->listen >= 0)
        close(h->listen);
    rnl_secret_free(h, sizeof *h);
    d->hosts = NULL;
}
