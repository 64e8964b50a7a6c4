/* SPDX-License-Identifier: BSD-3-Clause
 *
 * greet.c - greeting over the socket of a pair, and who is admitted. The side that goes to the other makes the
 * segment and sends it with its HELLO; the other one answers when it is welcome. Each HELLO carries the credentials of
 * its sender, which the kernel has checked, so that a process that was given somebody else's socket is still seen as
 * itself.
 *
 * Two endpoints that insert each other's address become one peer of each other. A HELLO says whose it is; where both
 * are under way, the connection that the endpoint of the lesser name offers is kept, and takes the number that the
 * program has been given for the other one. */
#include "base/bug.h"
#include "base/error.h"
#include "meet/meet_internal.h"
#include "meet/who.h"
#include "ring/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SO_PASSPIDFD
#define SO_PASSPIDFD 76
#endif

#define GREETING_NS ((uint64_t)5 * 1000 * 1000 * 1000) /* for a process that connects and says nothing */

/* ---- sending ---- */

static int send_hello(const struct meet *m, const struct meet_slot *s)
{
    struct rnl_meet_msg msg = {.kind = RNL_MEET_HELLO};
    msg.u.hello.channel_bytes = RNL_CHANNEL_BYTES;
    msg.u.hello.offers = s->offers;
    msg.u.hello.pair = s->pair;
    memcpy(msg.u.hello.token, s->token, sizeof s->token);
    memcpy(msg.u.hello.own, m->address, sizeof m->address);
    return rnl_meet_send(s->sock, &msg, s->offers ? s->segment : -1);
}

void rnl_meet_send_denied(int sock, enum rnl_denied why)
{
    const struct rnl_meet_msg msg = {.kind = RNL_MEET_DENIED, .u.denied = {.why = why}};
    (void)!rnl_meet_send(sock, &msg, -1);
}

/* ---- beginning ---- */

int rnl_meet_take_sock(struct meet *m, uint32_t rank, int sock)
{
    const int on = 1;
    struct meet_slot *s = &m->slot[rank];
    int e = rnl_seqpacket_is_socket(sock) ? 0 : -ENOTSOCK;
    if (e == 0 && setsockopt(sock, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) < 0)
        e = -errno;
    if (e == 0)
        e = rnl_meet_watch(m, sock, MEET_SOCK, rank);
    if (e < 0) {
        (void)!rnl_seqpacket_refuse_fd(sock);
        return rnl_fail_errno(RNL_ERR_SYSTEM, -e,
                              "cannot watch the socket of a peer: raise the limit of descriptors (ulimit -n)");
    }
    s->sock = sock;
    s->state = MEET_GREETING;
    if (!s->is_ours) {
        s->due_ns = m->now_ns + GREETING_NS;
        rnl_meet_due(m, s->due_ns);
    }
    return 0;
}

int rnl_meet_offer(struct meet *m, uint32_t rank, int sock)
{
    const int on = 1;
    struct meet_slot *s = &m->slot[rank];
    int status = rnl_memfd_new("runnel-pair", RNL_CHANNEL_BYTES, F_SEAL_SEAL, &s->segment);
    if (status < 0) {
        close(sock);
        return status;
    }
    s->offers = true;
    s->pair = ++m->pairs & RNL_MEET_PAIR_MOST;
    status = rnl_meet_take_sock(m, rank, sock);
    if (status < 0)
        return status;
    s->wants_pidfd = setsockopt(sock, SOL_SOCKET, SO_PASSPIDFD, &on, sizeof on) == 0; /* from Linux 6.5 on */
    int e = send_hello(m, s);
    return e < 0 ? rnl_fail_errno(RNL_ERR_SYSTEM, -e, "cannot send a greeting to a peer") : 0;
}

int rnl_meet_offer_pair(struct meet *m, uint32_t rank, int *theirs)
{
    int pair[2];
    int status = rnl_seqpacket_pair(pair);
    if (status < 0)
        return status;
    status = rnl_meet_offer(m, rank, pair[0]);
    if (status < 0)
        close(pair[1]);
    else
        *theirs = pair[1];
    return status;
}

/* ---- the peer's process ---- */

static bool is_hung_up(int sock)
{
    struct pollfd p = {.fd = sock, .events = POLLIN};
    return poll(&p, 1, 0) == 1 && p.revents & POLLHUP;
}

/* Watches the process of the peer. It is the one that greeted, if the kernel has given it with the greeting or as the
 * other end of the socket. An older kernel is asked by number, which may be another process's by now if the peer has
 * ended; then its socket is hung up, unless a child of it holds that. Returns false if the process has ended. */
static bool watch_process(struct meet *m, uint32_t rank)
{
    struct meet_slot *s = &m->slot[rank];
    if (s->cred.pid == m->owner) /* its socket shows its end */
        rnl_meet_drop_fd(m, &s->watch);
    if (s->cred.pid == m->owner || (s->cred.pid <= 0 && s->watch < 0))
        return true;
    if (s->watch < 0)
        s->watch = rnl_who_pidfd(s->sock, s->cred.pid);
    if (s->watch < 0) {
        s->watch = (int)syscall(SYS_pidfd_open, s->cred.pid, 0);
        if (s->watch < 0 && errno == ESRCH)
            return false;
        if (s->watch >= 0 && is_hung_up(s->sock))
            rnl_meet_drop_fd(m, &s->watch);
    }
    if (s->watch >= 0 && rnl_meet_watch(m, s->watch, MEET_WATCH, rank) < 0)
        rnl_meet_drop_fd(m, &s->watch);
    return true;
}

/* Both sides have greeted: the peer is one. */
static int up(struct meet *m, uint32_t rank)
{
    struct meet_slot *s = &m->slot[rank];
    int status = rnl_meet_join(m, rank);
    if (status < 0)
        return status;
    status = rnl_membership_segment_add(m->members, rank, 0, RNL_CHANNEL_BYTES, &s->shared);
    if (status < 0) {
        rnl_membership_gone(m->members, rank, RNL_DEATH_NEVER_JOINED, status);
        return status;
    }
    rnl_membership_segment_mapped(m->members, s->shared, rank); /* the peer's side is the peer's business */
    rnl_membership_segment_close(m->members, s->shared, rank);
    s->state = MEET_UP;
    s->due_ns = 0;
    s->service = NULL;
    rnl_meet_show(m, rank);
    if (!watch_process(m, rank))
        rnl_meet_ended(m, rank, RNL_DEATH_EXIT, -1);
    return 0;
}

static void welcome(struct meet *m, uint32_t rank)
{
    struct meet_slot *s = &m->slot[rank];
    if (up(m, rank) < 0) {
        rnl_meet_send_denied(s->sock, RNL_DENIED_NO_ROOM);
        rnl_meet_failed(m, rank, RNL_ERR_NO_MEMORY);
    } else if (s->state == MEET_UP && send_hello(m, s) < 0) {
        rnl_meet_ended(m, rank, RNL_DEATH_LEFT, 0);
    }
}

void rnl_meet_deny(struct meet *m, uint32_t rank, enum rnl_denied why)
{
    if (m->slot[rank].is_remote) {
        rnl_meet_end_request(m, &m->slot[rank]);
        rnl_meet_reply_remote(m, rank, why == RNL_DENIED_NO_ROOM ? RNL_NO_ROOM : RNL_ERR_REFUSED);
        return;
    }
    rnl_meet_send_denied(m->slot[rank].sock, why);
    rnl_meet_failed(m, rank, RNL_ERR_REFUSED);
}

/* ---- who may come ---- */

/* Whether the process of this user that has greeted is admitted. Its supplementary groups are known where it is the one
 * that made, or connected, the socket: then it is the side that offers. */
static bool is_admitted(const struct meet *m, const struct meet_slot *s, const struct rnl_meet_admit *who,
                        const struct rnl_seqpacket *p)
{
    struct rnl_who maker;
    const uint32_t gid = rnl_who_gid(p->gid), uid = rnl_who_uid(p->uid);
    if (rnl_meet_admits(who, m->own_uid, uid, &gid, 1))
        return true;
    return who->gids && !s->offers && p->pid > 0 && rnl_who_at(s->sock, &maker) == 0 && maker.uid == uid &&
           maker.pid == (uint32_t)p->pid && rnl_meet_admits(who, m->own_uid, uid, maker.group, maker.groups);
}

/* Whether the process that has greeted may be the peer of this slot. */
static bool may_come(const struct meet *m, const struct meet_slot *s, const struct rnl_meet_hello *hello,
                     const struct rnl_seqpacket *p)
{
    if (!p->has_cred)
        return false;
    if (s->is_known && s->uid != rnl_who_uid(p->uid))
        return false; /* somebody else has the socket */
    if (s->service && s->service == m->listener && sodium_memcmp(hello->token, m->token, sizeof m->token) != 0 &&
        !RNL_BUG(meet_token_unchecked))
        return false;
    const struct rnl_meet_admit *who = s->who ? s->who : s->service ? &s->service->who : NULL;
    return !who || is_admitted(m, s, who, p) ||
           (s->service == m->listener && rnl_meet_inserted(m, rnl_who_uid(p->uid), hello->own) != 0);
}

/* ---- both ways at once ---- */

uint32_t rnl_meet_inserted(const struct meet *m, uint32_t uid, const unsigned char at[RNL_MEET_TOKEN_BYTES])
{
    for (uint32_t i = 1; i < m->env.size; i++) {
        const struct meet_slot *s = &m->slot[i];
        if (s->by_address && s->state == MEET_GREETING && s->uid == uid &&
            (!at || memcmp(s->at, at, sizeof s->at) == 0))
            return i;
    }
    return 0;
}

/* Gives the socket of the slot `from` to the slot `to`, which has inserted the address of the same peer. */
static void take_place(struct meet *m, uint32_t from, uint32_t to)
{
    struct meet_slot *f = &m->slot[from], *t = &m->slot[to];
    const int sock = f->sock;
    struct epoll_event e = {.events = EPOLLIN, .data.u64 = (uint64_t)MEET_SOCK << 32 | to};
    rnl_meet_hang_up(m, t);
    if (epoll_ctl(m->epoll, EPOLL_CTL_MOD, sock, &e) == 0)
        f->sock = -1;
    t->sock = f->sock < 0 ? sock : -1;
    t->offers = t->wants_pidfd = t->yields = false;
    t->due_ns = 0;
    rnl_meet_abandon(m, from);
}

/* Somebody has come by the address whom this endpoint has inserted, or has as a peer, too. Returns the slot in which it
 * is to go on, or 0: this connection is one too many. */
static uint32_t choose_slot(struct meet *m, uint32_t rank, const struct rnl_meet_hello *hello, uint32_t uid)
{
    for (uint32_t i = 1; i < m->env.size; i++) {
        struct meet_slot *s = &m->slot[i];
        if (i == rank || s->state != MEET_UP || s->cred.uid != uid || memcmp(s->at, hello->own, sizeof s->at) != 0)
            continue;
        rnl_meet_receive_slot(m, i); /* it may have left before it came again */
        if (s->state == MEET_UP)
            return 0;
    }
    uint32_t twin = rnl_meet_inserted(m, uid, hello->own);
    if (!twin)
        return rank;
    if (memcmp(m->address, hello->own, sizeof m->address) < 0 && !m->slot[twin].yields)
        return 0;
    take_place(m, rank, twin);
    return twin;
}

/* The other endpoint keeps the connection that it has offered: that one is about to come, or is here. */
void rnl_meet_yield(struct meet *m, uint32_t rank)
{
    struct meet_slot *s = &m->slot[rank];
    rnl_meet_hang_up(m, s);
    s->by_name = false;
    s->yields = true;
    s->due_ns = m->now_ns + GREETING_NS;
    rnl_meet_due(m, s->due_ns);
}

/* ---- greeting ---- */

static void await_program(struct meet *m, uint32_t rank)
{
    struct meet_slot *s = &m->slot[rank];
    s->state = MEET_REQUESTING;
    s->due_ns = m->now_ns + GREETING_NS;
    rnl_meet_due(m, s->due_ns);
    m->requests++;
    rnl_meet_notify(m);
}

static void hello_came(struct meet *m, uint32_t rank, const struct rnl_meet_hello *hello, struct rnl_seqpacket *p)
{
    struct meet_slot *s = &m->slot[rank];
    const int off = 0;
    if (hello->offers == (uint32_t)s->offers || hello->channel_bytes != RNL_CHANNEL_BYTES ||
        (p->nfds == 1 && rnl_memfd_check(p->fds[0], RNL_CHANNEL_BYTES, F_SEAL_SEAL) < 0)) {
        rnl_meet_deny(m, rank, RNL_DENIED_VERSION);
        return;
    }
    if (!may_come(m, s, hello, p)) {
        rnl_meet_deny(m, rank, RNL_DENIED_ADMIT);
        return;
    }
    if (s->wants_pidfd)
        (void)!setsockopt(s->sock, SOL_SOCKET, SO_PASSPIDFD, &off, sizeof off);
    if (s->service && s->service == m->listener) {
        uint32_t other = choose_slot(m, rank, hello, rnl_who_uid(p->uid));
        if (!other) {
            rnl_meet_deny(m, rank, RNL_DENIED_TWICE);
            return;
        }
        rank = other;
        s = &m->slot[rank];
    }
    s->cred = (struct rnl_cred){.uid = rnl_who_uid(p->uid), .gid = rnl_who_gid(p->gid), .pid = p->pid};
    memcpy(s->at, hello->own, sizeof s->at);
    if (m->world)
        s->virtual_pid = m->world->pid(&m->env, s->at);
    s->watch = p->pidfd;
    p->pidfd = -1;
    if (!s->offers) {
        s->segment = p->fds[0];
        s->pair = hello->pair;
        p->nfds = 0;
    }
    if (s->offers) {
        if (up(m, rank) < 0)
            rnl_meet_failed(m, rank, RNL_ERR_NO_MEMORY);
    } else if (s->service && s->service->f) {
        await_program(m, rank);
    } else {
        welcome(m, rank);
    }
}

void rnl_meet_greeted(struct meet *m, uint32_t rank, const struct rnl_meet_msg *msg, enum rnl_meet_verdict verdict,
                      struct rnl_seqpacket *p)
{
    const bool denied = verdict == RNL_MEET_GOOD && msg->kind == RNL_MEET_DENIED;
    if (verdict == RNL_MEET_OTHER_VERSION)
        rnl_meet_deny(m, rank, RNL_DENIED_VERSION);
    else if (verdict == RNL_MEET_GOOD && msg->kind == RNL_MEET_HELLO && p->nfds == rnl_meet_fds(msg))
        hello_came(m, rank, &msg->u.hello, p);
    else if (denied && msg->u.denied.why == RNL_DENIED_NO_ROOM)
        rnl_meet_hung_up(m, rank); /* it may have room later */
    else if (denied && msg->u.denied.why == RNL_DENIED_TWICE && m->slot[rank].by_address)
        rnl_meet_yield(m, rank);
    else
        rnl_meet_failed(m, rank, denied ? RNL_ERR_REFUSED : RNL_ERR_UNREACHABLE);
}

/* ---- peers of other hosts ---- */

void rnl_meet_reply_remote(struct meet *m, uint32_t rank, int status)
{
    const uint32_t call = rnl_meet_remote_call_of(m, rank);
    if (status == 0)
        status = rnl_meet_remote_up(m, rank) < 0 ? RNL_NO_ROOM : 0;
    const int e = rnl_meet_remote_reply(m, call, rank, status);
    if (status < 0)
        rnl_meet_failed(m, rank, status);
    else if (e < 0)
        rnl_meet_ended(m, rank, RNL_DEATH_LEFT, 0);
}

/* Returns the slot for who comes by the address: one that has inserted the caller's address, too, if the caller's
 * connection is the one to be kept; RNL_BUSY: the own one is, or the two are peers already. */
static int place_for(struct meet *m, struct meet_service *s, const struct rnl_meet_called *c)
{
    for (uint32_t i = 1; s == m->listener && i < m->env.size; i++)
        if (m->slot[i].state == MEET_UP && m->slot[i].is_remote && m->slot[i].cred.uid == c->uid &&
            memcmp(m->slot[i].at, c->place.own, sizeof m->slot[i].at) == 0)
            return RNL_BUSY;
    const uint32_t twin = s == m->listener ? rnl_meet_inserted(m, c->uid, c->place.own) : 0;
    if (!twin)
        return rnl_meet_claim_for(m, c->uid, s);
    if (memcmp(m->address, c->place.own, sizeof m->address) < 0 && !m->slot[twin].yields)
        return RNL_BUSY;
    if (m->slot[twin].by_name)
        rnl_meet_cancel(m, twin);
    m->slot[twin].yields = false;
    m->slot[twin].due_ns = 0;
    return (int)twin;
}

void rnl_meet_called(struct meet *m, struct meet_service *s, const struct rnl_meet_called *c)
{
    const bool has_token = s && (s != m->listener || sodium_memcmp(c->token, m->token, sizeof m->token) == 0);
    const int rank = !has_token ? RNL_ERR_REFUSED : rnl_meet_remote_begin(m) < 0 ? RNL_NO_ROOM : place_for(m, s, c);
    if (rank < 0) {
        (void)!rnl_meet_remote_reply(m, c->call, 0, rank == RNL_ERR_REFUSED || rank == RNL_BUSY ? rank : RNL_NO_ROOM);
        return;
    }
    m->slot[rank].cred = (struct rnl_cred){.uid = c->uid, .gid = c->gid};
    rnl_meet_remote_take(m, (uint32_t)rank, c->call, &c->place, c->ip, c->key);
    if (s->f && !m->slot[rank].is_ours)
        await_program(m, (uint32_t)rank);
    else
        rnl_meet_reply_remote(m, (uint32_t)rank, 0);
}

void rnl_meet_met_remote(struct meet *m, uint32_t rank, const struct rnl_meet_met *c)
{
    m->slot[rank].cred = (struct rnl_cred){.uid = c->uid, .gid = c->gid};
    rnl_meet_remote_take(m, rank, c->call, &c->place, c->ip, c->key);
    if (rnl_meet_remote_up(m, rank) < 0)
        rnl_meet_failed(m, rank, RNL_ERR_NO_MEMORY);
}

void rnl_meet_reply(struct rnl_env *env, uint32_t rank, bool is_welcome)
{
    struct meet *m = rnl_meet_of(env);
    if (m->slot[rank].state != MEET_REQUESTING)
        return;
    rnl_meet_end_request(m, &m->slot[rank]);
    if (is_welcome && m->slot[rank].is_remote)
        rnl_meet_reply_remote(m, rank, 0);
    else if (is_welcome)
        welcome(m, rank);
    else
        rnl_meet_deny(m, rank, RNL_DENIED_ADMIT);
}
