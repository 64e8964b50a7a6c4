/* SPDX-License-Identifier: BSD-3-Clause
 *
 * daemon.c - the daemon of daemon.h: callers, services, and processes that wait for one to be offered. */
#include "meet/daemon.h"
#include "base/bug.h"

#include "base/error.h"
#include "job/fds.h"
#include "meet/daemon_internal.h"
#include "meet/who.h"
#include "runnel/meet.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    CALLERS = 4096,
    CALLERS_OF_OTHERS = 64, /* of one user who is not the daemon's */
    SERVICES_MOST = 16384,  /* of one caller */
    WAITING_MOST = 1024,    /* of one caller; each holds a descriptor */
    WAITING_OF_OTHERS = 64,
    BUCKETS = RNL_DAEMON_BUCKETS,
    CURSOR_BITS = 22, /* of a place in a bucket */
    EVENTS = 64,
    ACCEPTS_PER_STEP = 16,
    PACKETS_PER_TURN = 32 /* read from one caller before the next one's turn */
};
#define GREET_NS ((uint64_t)5 * 1000 * 1000 * 1000) /* for a process that connects and says nothing */
#define AGAIN_NS ((uint64_t)10 * 1000 * 1000)       /* before what the system had no room for is tried again */

struct daemon_waiter { /* a process that reaches a service which nobody offers, or whose caller does not read */
    struct daemon_waiter *next;
    struct daemon_caller *caller;
    uint32_t uid, request_id;
    char name[RNL_MEET_NAME_BYTES];
    int sock; /* to be given to whoever offers it */
};

static const struct rnl_meet_admit same_user;

/* ---- saying ---- */

void rnl_daemon_drop(struct rnl_daemon *d, struct daemon_caller *c)
{
    if (c->is_gone)
        return;
    c->is_gone = true;
    d->due_ns = 0; /* it is freed at the end of this step */
}

int rnl_daemon_send(const struct daemon_caller *c, const struct rnl_meet_msg *msg)
{
    unsigned char bytes[RNL_MEET_BYTES_MAX];
    int e = rnl_seqpacket_send(c->sock, bytes, rnl_meet_encode(msg, bytes), NULL, 0, 0);
    explicit_bzero(bytes, sizeof bytes);
    return e;
}

void rnl_daemon_due(struct rnl_daemon *d, uint64_t at_ns)
{
    if (at_ns < d->due_ns)
        d->due_ns = at_ns;
}

void rnl_daemon_send_result(struct rnl_daemon *d, struct daemon_caller *c, uint32_t request_id, int status)
{
    const struct rnl_meet_msg msg = {.kind = RNL_MEET_RESULT, .u.result = {.request_id = request_id, .status = status}};
    if (rnl_daemon_send(c, &msg) < 0)
        rnl_daemon_drop(d, c); /* it does not read what it asked for */
}

/* Gives the waiter's socket to the caller that offers the service. Returns what rnl_seqpacket_send does. */
static int send_request(const struct daemon_service *s, const struct daemon_waiter *w)
{
    const struct daemon_caller *who = w->caller;
    const struct rnl_meet_msg msg = {
        .kind = RNL_MEET_REQUEST,
        .u.request = {.request_id = s->request_id, .uid = who->uid, .gid = who->group[0], .pid = who->pid}};
    unsigned char bytes[RNL_MEET_BYTES_MAX];
    return rnl_seqpacket_send(s->caller->sock, bytes, rnl_meet_encode(&msg, bytes), &w->sock, 1, 0);
}

/* ---- waiting ---- */

static void end_waiter(struct rnl_daemon *d, struct daemon_waiter **at)
{
    struct daemon_waiter *w = *at;
    *at = w->next;
    w->caller->waiting--;
    d->waiters--;
    close(w->sock);
    free(w);
}

static struct daemon_service **bucket_of(struct rnl_daemon *d, uint32_t uid, const char name[RNL_MEET_NAME_BYTES])
{
    uint32_t hash = 2166136261u ^ uid; /* FNV */
    for (size_t i = 0; i < RNL_MEET_NAME_BYTES && name[i]; i++)
        hash = (hash ^ (unsigned char)name[i]) * 16777619u;
    return &d->service[(hash ^ hash >> 16) % BUCKETS];
}

struct daemon_service *rnl_daemon_find(struct rnl_daemon *d, uint32_t uid, const char name[RNL_MEET_NAME_BYTES])
{
    struct daemon_service *s = *bucket_of(d, uid, name);
    while (s && (s->uid != uid || memcmp(s->name, name, RNL_MEET_NAME_BYTES) != 0))
        s = s->next;
    return s;
}

bool rnl_daemon_admits(const struct daemon_service *s, uint32_t uid, const uint32_t *group, uint32_t groups)
{
    return rnl_meet_admits(s->who ? s->who : &same_user, s->uid, uid, group, groups);
}

static bool admits(const struct daemon_service *s, const struct daemon_caller *c)
{
    return rnl_daemon_admits(s, c->uid, c->group, c->groups);
}

void rnl_daemon_watch_room(struct rnl_daemon *d, struct daemon_caller *c, bool is_full)
{
    struct epoll_event e = {.events = is_full ? EPOLLIN | EPOLLOUT : EPOLLIN, .data.ptr = c};
    c->is_full = is_full;
    if (epoll_ctl(d->epoll, EPOLL_CTL_MOD, c->sock, &e) < 0)
        rnl_daemon_drop(d, c);
}

/* Serves the waiter if its service is offered. Returns whether it waits no more. */
static bool serve_waiter(struct rnl_daemon *d, const struct daemon_waiter *w)
{
    const struct daemon_service *s = rnl_daemon_find(d, w->uid, w->name);
    if (!s || s->caller->is_gone || s->caller->is_full)
        return false;
    if (!admits(s, w->caller)) {
        rnl_daemon_send_result(d, w->caller, w->request_id, RNL_ERR_REFUSED);
        return true;
    }
    int e = send_request(s, w);
    if (e == RNL_NO_ROOM)
        rnl_daemon_watch_room(d, s->caller, !RNL_BUG(daemon_forgets_a_full_server));
    else if (e == RNL_ERR_SYSTEM) { /* too many descriptors are on their way */
        rnl_daemon_due(d, d->now_ns + AGAIN_NS);
    } else if (e < 0)
        rnl_daemon_drop(d, s->caller);
    return e == 0;
}

/* Serves all waiters whose service is offered; all of one service unless it is NULL. */
static void serve_waiters(struct rnl_daemon *d, const struct daemon_service *s)
{
    for (struct daemon_waiter **at = &d->waiter; *at;) {
        const struct daemon_waiter *w = *at;
        bool is_asked = !s || (w->uid == s->uid && memcmp(w->name, s->name, sizeof w->name) == 0);
        if (is_asked && serve_waiter(d, w))
            end_waiter(d, at);
        else
            at = &(*at)->next;
    }
}

/* ---- what callers ask ---- */

static void serve_came(struct rnl_daemon *d, struct daemon_caller *c, const struct rnl_meet_serve *q)
{
    bool may = (d->opt.of_node || c->uid == d->own_uid) && c->services < SERVICES_MOST;
    bool others = q->flags || q->uids || q->gids;
    struct daemon_service *s = may && !rnl_daemon_find(d, c->uid, q->name) ? calloc(1, sizeof *s) : NULL;
    if (s && others && !(s->who = malloc(sizeof *s->who))) {
        free(s);
        s = NULL;
    }
    if (!s) {
        rnl_daemon_send_result(d, c, q->request_id, RNL_ERR_REFUSED);
        return;
    }
    s->uid = c->uid;
    memcpy(s->name, q->name, sizeof s->name);
    s->caller = c;
    s->request_id = q->request_id;
    if (others) {
        *s->who = (struct rnl_meet_admit){.flags = q->flags, .uids = q->uids, .gids = q->gids};
        memcpy(s->who->uid, q->uid, sizeof q->uid);
        memcpy(s->who->gid, q->gid, sizeof q->gid);
    }
    struct daemon_service **first = bucket_of(d, s->uid, s->name);
    s->next = *first;
    *first = s;
    d->services++;
    c->services++;
    rnl_daemon_send_result(d, c, q->request_id, 0);
    serve_waiters(d, s);
    rnl_daemon_hosts_serve(d);
}

/* Ends the services of the caller with that request_id, or all of them. */
static void end_services(struct rnl_daemon *d, struct daemon_caller *c, const uint32_t *request_id)
{
    for (unsigned i = 0; i < BUCKETS && c->services > 0; i++)
        for (struct daemon_service **at = &d->service[i]; *at;) {
            struct daemon_service *s = *at;
            if (s->caller != c || (request_id && s->request_id != *request_id)) {
                at = &s->next;
                continue;
            }
            *at = s->next;
            c->services--;
            d->services--;
            free(s->who);
            free(s);
        }
}

static void reach_came(struct rnl_daemon *d, struct daemon_caller *c, const struct rnl_meet_reach *q, int sock)
{
    uint32_t most = c->uid == d->own_uid || d->opt.of_node ? WAITING_MOST : WAITING_OF_OTHERS;
    struct daemon_waiter *w = c->waiting < most ? calloc(1, sizeof *w) : NULL;
    if (!w) {
        close(sock);
        rnl_daemon_send_result(d, c, q->request_id, RNL_NO_ROOM);
        return;
    }
    *w = (struct daemon_waiter){
        .next = d->waiter, .caller = c, .uid = q->uid, .request_id = q->request_id, .sock = sock};
    memcpy(w->name, q->name, sizeof w->name);
    d->waiter = w;
    d->waiters++;
    c->waiting++;
    if (serve_waiter(d, w))
        end_waiter(d, &d->waiter);
}

static void cancel_came(struct rnl_daemon *d, const struct daemon_caller *c, uint32_t request_id)
{
    for (struct daemon_waiter **at = &d->waiter; *at; at = &(*at)->next)
        if ((*at)->caller == c && (*at)->request_id == request_id) {
            end_waiter(d, at);
            return;
        }
    rnl_daemon_call_cancel(d, c, request_id);
}

/* Tells of the first service at or after the cursor, a bucket and a place in it, that the caller may reach. */
static void list_came(struct rnl_daemon *d, struct daemon_caller *c, uint32_t cursor)
{
    struct rnl_meet_msg msg = {.kind = RNL_MEET_LISTED};
    for (uint32_t i = cursor >> CURSOR_BITS; i < BUCKETS && !msg.u.listed.cursor; i++) {
        uint32_t k = 0, from = i == cursor >> CURSOR_BITS ? cursor & ((1u << CURSOR_BITS) - 1) : 0;
        for (const struct daemon_service *s = d->service[i]; s; s = s->next, k++) {
            if (k < from || !admits(s, c) || strncmp(s->name, RNL_MEET_AT, sizeof RNL_MEET_AT - 1) == 0)
                continue;
            msg.u.listed.cursor = (i << CURSOR_BITS) + k + 1;
            msg.u.listed.uid = s->uid;
            msg.u.listed.pid = s->caller->pid;
            memcpy(msg.u.listed.name, s->name, sizeof s->name);
            break;
        }
    }
    if (rnl_daemon_send(c, &msg) < 0)
        rnl_daemon_drop(d, c);
}

/* Returns false if the caller is to be hung up on. */
static bool handle(struct rnl_daemon *d, struct daemon_caller *c, const unsigned char *bytes, struct rnl_seqpacket *p)
{
    struct rnl_meet_msg msg;
    if (p->cut || rnl_meet_decode(RNL_MEET_FROM_RANK, bytes, p->n, &msg) != RNL_MEET_GOOD ||
        p->nfds != rnl_meet_fds(&msg) || (c->since_ns != 0) != (msg.kind == RNL_MEET_GREET))
        return false;
    if (p->nfds == 1 && !rnl_seqpacket_is_socket(p->fds[0]))
        return false;
    p->nfds = 0;
    switch (msg.kind) {
    case RNL_MEET_GREET:
        c->since_ns = 0;
        break;
    case RNL_MEET_SERVE:
        serve_came(d, c, &msg.u.serve);
        break;
    case RNL_MEET_UNSERVE:
        end_services(d, c, &msg.u.request_id.request_id);
        break;
    case RNL_MEET_REACH:
        reach_came(d, c, &msg.u.reach, p->fds[0]);
        break;
    case RNL_MEET_CANCEL:
        cancel_came(d, c, msg.u.request_id.request_id);
        break;
    case RNL_MEET_LIST:
        list_came(d, c, msg.u.request_id.request_id);
        break;
    case RNL_MEET_CALL:
        rnl_daemon_call_came(d, c, &msg.u.call);
        break;
    case RNL_MEET_REPLY:
        rnl_daemon_reply_came(d, c, &msg.u.reply);
        break;
    case RNL_MEET_PART:
        rnl_daemon_part_came(d, c, msg.u.request_id.request_id);
        break;
    }
    return true;
}

static void hear(struct rnl_daemon *d, struct daemon_caller *c)
{
    unsigned char bytes[RNL_MEET_BYTES_MAX + 1];
    struct rnl_seqpacket p;
    for (int i = 0; i < PACKETS_PER_TURN && !c->is_gone; i++) {
        int e = rnl_seqpacket_receive(c->sock, bytes, sizeof bytes, 1, &p, 0);
        if (e == RNL_NO_ROOM)
            return;
        if (e < 0 || !handle(d, c, bytes, &p))
            rnl_daemon_drop(d, c);
        for (unsigned k = 0; e == 0 && k < p.nfds; k++)
            (void)!rnl_seqpacket_refuse_fd(p.fds[k]);
    }
}

/* ---- callers ---- */

static uint32_t count_of(const struct rnl_daemon *d, uint32_t uid)
{
    uint32_t n = 0;
    for (const struct daemon_caller *c = d->caller; c; c = c->next)
        n += c->uid == uid;
    return n;
}

/* Fills in who called, as the kernel says. False: it is not told, or there is no memory. */
static bool identify(struct daemon_caller *c)
{
    struct rnl_who who;
    if (rnl_who_at(c->sock, &who) < 0)
        return false;
    c->uid = who.uid;
    c->pid = who.pid;
    c->groups = who.groups;
    c->group = malloc(c->groups * sizeof *c->group);
    if (c->group)
        memcpy(c->group, who.group, c->groups * sizeof *c->group);
    return c->group != NULL;
}

static void free_caller(struct daemon_caller *c)
{
    close(c->sock);
    free(c->group);
    free(c);
}

static void accept_one(struct rnl_daemon *d, int sock)
{
    struct daemon_caller *c = calloc(1, sizeof *c);
    if (!c) {
        close(sock);
        return;
    }
    c->source = RNL_DAEMON_CALLER;
    c->sock = sock;
    bool in = identify(c) && d->callers < d->opt.callers;
    if (in && c->uid != d->own_uid) {
        uint32_t reserve = d->opt.callers / 4; /* for the daemon's own user, whatever others do */
        in = d->callers < d->opt.callers - reserve &&
             count_of(d, c->uid) < (d->opt.of_node ? d->opt.callers / 4 : CALLERS_OF_OTHERS);
    }
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
    if (!in || epoll_ctl(d->epoll, EPOLL_CTL_ADD, sock, &e) < 0) {
        free_caller(c);
        return;
    }
    c->since_ns = d->now_ns ? d->now_ns : 1;
    c->next = d->caller;
    d->caller = c;
    d->callers++;
    rnl_daemon_due(d, c->since_ns + GREET_NS);
}

static void accept_some(struct rnl_daemon *d)
{
    for (int i = 0; i < ACCEPTS_PER_STEP; i++) {
        int sock = accept4(d->listen, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (sock < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
                struct epoll_event none = {.events = 0}; /* the next look is when a caller may have gone */
                epoll_ctl(d->epoll, EPOLL_CTL_MOD, d->listen, &none);
                d->is_deaf = true;
                rnl_daemon_due(d, d->now_ns + AGAIN_NS);
            }
            return;
        }
        accept_one(d, sock);
    }
}

/* Forgets a caller, its services and what it waits for. */
static void forget(struct rnl_daemon *d, struct daemon_caller *c)
{
    end_services(d, c, NULL);
    rnl_daemon_hosts_forget(d, c);
    for (struct daemon_waiter **at = &d->waiter; c->waiting > 0 && *at;)
        if ((*at)->caller == c)
            end_waiter(d, at);
        else
            at = &(*at)->next;
    d->callers--;
    free_caller(c);
}

static void late(struct rnl_daemon *d)
{
    d->due_ns = UINT64_MAX;
    if (d->is_deaf) {
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = NULL};
        epoll_ctl(d->epoll, EPOLL_CTL_MOD, d->listen, &e);
        d->is_deaf = false;
    }
    for (struct daemon_caller **at = &d->caller, *c; (c = *at) != NULL;) {
        if (c->is_gone || (c->since_ns && d->now_ns >= c->since_ns + GREET_NS)) {
            *at = c->next;
            forget(d, c);
            continue;
        }
        if (c->since_ns)
            rnl_daemon_due(d, c->since_ns + GREET_NS);
        at = &c->next;
    }
    serve_waiters(d, NULL);
    rnl_daemon_hosts_late(d);
}

void rnl_daemon_step(struct rnl_daemon *d, uint64_t now_ns)
{
    struct epoll_event events[EVENTS];
    d->now_ns = now_ns;
    int n = epoll_wait(d->epoll, events, EVENTS, 0);
    for (int i = 0; i < n; i++) {
        struct daemon_caller *c = events[i].data.ptr;
        if (!c) {
            accept_some(d);
            continue;
        }
        if (c->source != RNL_DAEMON_CALLER) {
            rnl_daemon_hosts_event(d, c, events[i].events);
            continue;
        }
        if (events[i].events & EPOLLOUT && !c->is_gone) {
            rnl_daemon_watch_room(d, c, false);
            serve_waiters(d, NULL);
            rnl_daemon_hosts_serve(d);
        }
        hear(d, c);
    }
    while (now_ns >= d->due_ns)
        late(d);
}

uint64_t rnl_daemon_deadline_ns(const struct rnl_daemon *d)
{
    return d->due_ns;
}

int rnl_daemon_fd(const struct rnl_daemon *d)
{
    return d->epoll;
}

void rnl_daemon_state(const struct rnl_daemon *d, struct rnl_daemon_state *out)
{
    *out = (struct rnl_daemon_state){
        .callers = d->callers + rnl_daemon_hosts_calls(d), .services = d->services, .waiting = d->waiters};
}

/* ---- life ---- */

int rnl_daemon_new(const struct rnl_daemon_options *opt, struct rnl_daemon **out)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = NULL};
    int listen_at = rnl_daemon_listen(opt);
    if (listen_at < 0)
        return listen_at;
    struct rnl_daemon *d = calloc(1, sizeof *d);
    if (!d) {
        close(listen_at);
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a daemon");
    }
    d->opt = *opt;
    d->opt.callers = opt->callers ? opt->callers : CALLERS;
    d->own_uid = geteuid();
    d->due_ns = UINT64_MAX;
    d->listen = listen_at;
    d->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (d->epoll < 0 || epoll_ctl(d->epoll, EPOLL_CTL_ADD, d->listen, &e) < 0) {
        int why = errno;
        rnl_daemon_free(d);
        return rnl_fail_errno(RNL_ERR_SYSTEM, why, "cannot watch the daemon's socket");
    }
    int status = rnl_daemon_hosts_new(d);
    if (status < 0) {
        rnl_daemon_free(d);
        return status;
    }
    *out = d;
    return 0;
}

void rnl_daemon_free(struct rnl_daemon *d)
{
    if (!d)
        return;
    rnl_daemon_hosts_free(d); /* first, so that nobody is told that the callers are gone */
    for (struct daemon_caller *c = d->caller, *next; c; c = next) {
        next = c->next;
        forget(d, c);
    }
    close(d->listen);
    if (d->epoll >= 0)
        close(d->epoll);
    free(d);
}
