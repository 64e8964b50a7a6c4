/* SPDX-License-Identifier: BSD-3-Clause
 *
 * remote_fork.c - children that a server forks for a call of a client on another host. The endpoint stays the parent's,
 * so a child hands its replies, whole, to its parent over a socket, and the parent's thread sends them between the
 * parent's own. One socket for each fork; it ends with the child. */
#include "remote_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define S rnl_rpc_remote_state

enum { READ_BYTES = 65536, READS_A_TURN = 16, SLOW_S = 35 };
static const size_t record_most = 256u << 20;

/* What one child has said. */
struct rnl_rpc_relay {
    struct rnl_rpc_relay *next;
    struct rnl_rpc_remote *f; /* NULL = the client has gone */
    int fd;
    bool sending;      /* a part of the record may be on its way */
    uint64_t began_ns; /* since when it is to be sent */
    uint64_t length;   /* of the record, once all eight bytes of it are here */
    size_t n, sent, room;
    unsigned char head[sizeof(uint64_t)], *bytes; /* n counts both */
};

static struct rnl_rpc_relay *relays;                /* under the lock */
static _Thread_local struct rnl_rpc_relay *forking; /* of the fork that this thread is in */

/* ---- before and after a fork ---- */

bool rnl_rpc_remote_share(struct rnl_rpc_remote *f)
{
    int pair[2];
    const struct timeval limit = {SLOW_S, 0};
    if (forking || f->relay >= 0) /* a child's child has its parent's */
        return true;
    struct rnl_rpc_relay *r = calloc(1, sizeof *r);
    if (!r)
        return false;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
        free(r);
        return false;
    }
    struct epoll_event of = {.events = EPOLLIN};
    pthread_mutex_lock(&S.lock);
    if (S.relays < 0)
        S.relays = epoll_create1(EPOLL_CLOEXEC);
    const bool ok = rnl_rpc_has_room(pair[0]) && rnl_rpc_has_room(pair[1]) && S.relays >= 0 &&
                    epoll_ctl(S.relays, EPOLL_CTL_ADD, pair[0], &of) == 0;
    if (ok) {
        (void)setsockopt(pair[1], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
        r->f = f;
        r->fd = pair[0];
        r->next = relays;
        relays = forking = r;
        f->relay = pair[1];
    }
    pthread_mutex_unlock(&S.lock);
    if (ok)
        return true;
    close(pair[0]);
    close(pair[1]);
    free(r);
    return false;
}

void rnl_rpc_remote_forked(bool is_child)
{
    struct rnl_rpc_relay *r = forking, *next;
    forking = NULL;
    if (is_child) {
        if (r)
            r->f->link.out_at = r->f->link.out_end = NULL;
        for (r = relays; r; r = next) {
            next = r->next;
            close(r->fd);
            free(r->bytes);
            free(r);
        }
        relays = NULL;
        if (S.relays >= 0)
            close(S.relays);
        S.relays = -1;
    } else if (r && r->f) {
        close(r->f->relay);
        r->f->relay = -1;
        rnl_rpc_remote_news();
    }
}

/* ---- in a child ---- */

/* Makes room for more of the record, of which all is kept until its end. */
bool rnl_rpc_remote_child_room(struct rnl_rpc_remote *f)
{
    struct rnl_rpc_link *link = &f->link;
    const size_t n = link->out_at ? (size_t)(link->out_at - f->room) : 0, more = n ? 2 * n : RNL_RPC_REMOTE_BYTES;
    unsigned char *larger = more <= record_most ? realloc(f->room, more) : NULL;
    if (!larger)
        return false;
    f->room = larger;
    link->out_at = larger + n;
    link->out_end = larger + more;
    link->out_room = (uint32_t)more;
    return true;
}

static bool say(int fd, const void *bytes, size_t n)
{
    const unsigned char *at = bytes;
    while (n) {
        ssize_t part = send(fd, at, n, MSG_NOSIGNAL);
        if (part < 0 && errno == EINTR)
            continue;
        if (part <= 0)
            return false;
        at += part;
        n -= (size_t)part;
    }
    return true;
}

bool rnl_rpc_remote_child_end(struct rnl_rpc_remote *f)
{
    struct rnl_rpc_link *link = &f->link;
    const uint64_t n = link->out_at ? (uint64_t)(link->out_at - f->room) : 0;
    link->out_at = link->out_end = NULL;
    if (say(f->relay, &n, sizeof n) && say(f->relay, f->room, n))
        return true;
    close(f->relay);
    f->relay = -1;
    link->broken = true;
    return false;
}

/* ---- in the parent ---- */

static bool is_whole(const struct rnl_rpc_relay *r)
{
    return r->n >= sizeof r->head && r->n - sizeof r->head == r->length;
}

/* Returns false when the child has ended, or says what it cannot mean. */
static bool take(struct rnl_rpc_relay *r)
{
    for (unsigned i = 0; i < READS_A_TURN && !is_whole(r); i++) {
        const bool in_head = r->n < sizeof r->head;
        const size_t at = in_head ? r->n : r->n - sizeof r->head;
        const uint64_t left = in_head ? sizeof r->head - at : r->length - at;
        const size_t part = left < READ_BYTES ? (size_t)left : READ_BYTES;
        if (!in_head && r->room - at < part) {
            const size_t larger = 2 * r->room > at + part ? 2 * r->room : at + part;
            unsigned char *bytes = realloc(r->bytes, larger);
            if (!bytes)
                return false;
            r->bytes = bytes;
            r->room = larger;
        }
        ssize_t n = recv(r->fd, in_head ? r->head + at : r->bytes + at, part, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return true;
        if (n <= 0)
            return false;
        r->n += (size_t)n;
        if (in_head && r->n == sizeof r->head) {
            memcpy(&r->length, r->head, sizeof r->length);
            if (r->length > record_most)
                return false;
        }
    }
    return true;
}

/* Sends what there is room for. Returns false if the client has gone, or takes nothing for too long. */
static bool pass_on(struct rnl_rpc_relay *r)
{
    struct rnl_rpc_remote *f = r->f;
    const uint64_t now = rnl_rpc_now_ns();
    if (!r->began_ns)
        r->began_ns = now;
    if (now - r->began_ns > SLOW_S * (uint64_t)1000000000)
        rnl_rpc_remote_drop(f);
    if (f->dead)
        return false;
    if (!r->sending && (f->writing || f->relaying))
        return true;
    r->sending = f->relaying = true;
    for (bool last = false; !last;) {
        const size_t left = (size_t)r->length - r->sent, n = left < RNL_RPC_REMOTE_BYTES ? left : RNL_RPC_REMOTE_BYTES;
        last = n == left;
        if (!rnl_rpc_remote_has_room(f))
            return true;
        const int sent = rnl_rpc_remote_send(f, RNL_RPC_REMOTE_DATA, last, r->bytes + r->sent, n, false);
        if (sent <= 0)
            return sent == 0;
        f->sent += n + RNL_RPC_REMOTE_PART;
        r->sent += n;
    }
    (void)!S.lib->flush(S.ep);
    r->n = r->sent = 0;
    r->length = r->began_ns = 0;
    r->sending = f->relaying = false;
    rnl_rpc_remote_ring(f); /* whoever waits for its turn to write */
    return true;
}

static void end(struct rnl_rpc_relay **at)
{
    struct rnl_rpc_relay *r = *at;
    if (r->f && r->sending)
        r->f->relaying = false;
    *at = r->next;
    (void)epoll_ctl(S.relays, EPOLL_CTL_DEL, r->fd, NULL);
    close(r->fd);
    free(r->bytes);
    free(r);
}

bool rnl_rpc_remote_relay(bool *waits)
{
    *waits = false;
    for (struct rnl_rpc_relay **at = &relays; *at;) {
        struct rnl_rpc_relay *r = *at;
        bool ok = r->f && take(r);
        if (ok && is_whole(r))
            ok = pass_on(r);
        if (!ok) {
            end(at);
            continue;
        }
        *waits |= is_whole(r);
        at = &r->next;
    }
    return relays != NULL;
}

void rnl_rpc_remote_relay_forget(const struct rnl_rpc_remote *f)
{
    for (struct rnl_rpc_relay *r = relays; r; r = r->next)
        if (r->f == f)
            r->f = NULL;
}
