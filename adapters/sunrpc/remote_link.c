/* SPDX-License-Identifier: BSD-3-Clause
 *
 * remote_link.c - records between hosts. A part is written in private memory and sent when it is full or the record
 * ends; parts that came lie in private memory, too, so they may be read in place. A child of the process whose link it
 * is reads nothing from it, and writes to it only if it was forked for a call (remote_fork.c). */
#include "remote_internal.h"

#include "base/error.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define S rnl_rpc_remote_state

enum { ADVERTISE_BYTES = RNL_RPC_REMOTE_WINDOW / 4, TRY_MS = 20 };
static const uint64_t rest_ns = 35000000000u; /* the rest of a record comes within this time, as in libtirpc */

static bool is_broken(struct rnl_rpc_remote *f)
{
    if (rnl_rpc_remote_is_forked(&f->link) && f->relay < 0)
        f->link.broken = true;
    return f->link.broken;
}

/* Whether this process has no part in what comes. */
static bool is_deaf(struct rnl_rpc_remote *f)
{
    return is_broken(f) || rnl_rpc_remote_is_forked(&f->link);
}

static uint64_t deadline_of(const struct rnl_rpc_link *link)
{
    return link->deadline_ns ? link->deadline_ns : rnl_rpc_now_ns() + rest_ns;
}

/* ---- writing ---- */

/* Whether a part of any length can be sent: the peer has taken enough, and the network takes it. */
static bool can_send(struct rnl_rpc_remote *f)
{
    struct rnl_room_info room = {.size = offsetof(struct rnl_room_info, bulk_lane)}; /* that lane would cost time */
    return rnl_rpc_remote_has_room(f) && S.lib->room(S.ep, f->peer, &room) == 0 && room.lacks == 0 &&
           room.bound >= RNL_RPC_REMOTE_BYTES + sizeof(uint32_t);
}

static bool send_part(struct rnl_rpc_remote *f, bool last)
{
    struct rnl_rpc_link *link = &f->link;
    const size_t n = link->out_at ? (size_t)(link->out_at - f->room) : 0;
    const uint64_t deadline = deadline_of(link);
    for (;;) {
        int sent = 0;
        pthread_mutex_lock(&S.lock);
        if (rnl_rpc_remote_has_room(f) && !is_broken(f))
            sent = rnl_rpc_remote_send(f, RNL_RPC_REMOTE_DATA, last, f->room, n, false);
        if (sent > 0)
            f->sent += n + RNL_RPC_REMOTE_PART;
        pthread_mutex_unlock(&S.lock);
        if (sent > 0)
            break;
        if (is_broken(f))
            return false;
        const uint64_t now = rnl_rpc_now_ns();
        if (now >= deadline) {
            link->broken = true; /* a record was begun that cannot be ended */
            return false;
        }
        if (link->blocked)
            link->blocked(link);
        (void)rnl_rpc_remote_wait(f, can_send, now + TRY_MS * (uint64_t)1000000);
    }
    link->out_bytes += n;
    f->begun = true;
    link->out_at = link->out_end = NULL;
    return true;
}

static bool remote_room(struct rnl_rpc_link *link)
{
    struct rnl_rpc_remote *f = rnl_rpc_remote_of(link);
    if (rnl_rpc_remote_is_forked(link))
        return !is_broken(f) && rnl_rpc_remote_child_room(f);
    if (is_broken(f) || (!f->room && !(f->room = malloc(RNL_RPC_REMOTE_BYTES))))
        return false;
    if (link->out_at && !send_part(f, false))
        return false;
    link->out_at = f->room;
    link->out_end = f->room + RNL_RPC_REMOTE_BYTES;
    link->out_room = RNL_RPC_REMOTE_BYTES;
    return true;
}

static bool remote_end(struct rnl_rpc_link *link)
{
    struct rnl_rpc_remote *f = rnl_rpc_remote_of(link);
    if (rnl_rpc_remote_is_forked(link))
        return !is_broken(f) && rnl_rpc_remote_child_end(f);
    if (is_broken(f) || !send_part(f, true))
        return false;
    f->begun = false;
    link->out_bytes = 0;
    pthread_mutex_lock(&S.lock);
    (void)!S.lib->flush(S.ep);
    pthread_mutex_unlock(&S.lock);
    return true;
}

static bool remote_drop(struct rnl_rpc_link *link)
{
    if (rnl_rpc_remote_of(link)->begun)
        return false;
    link->out_at = link->out_end = NULL;
    return true;
}

/* ---- reading ---- */

static bool has_part(struct rnl_rpc_remote *f)
{
    return f->first != NULL;
}

static bool remote_here(struct rnl_rpc_link *link)
{
    struct rnl_rpc_remote *f = rnl_rpc_remote_of(link);
    if (rnl_rpc_remote_is_forked(link))
        return false;
    pthread_mutex_lock(&S.lock);
    bool is = has_part(f);
    pthread_mutex_unlock(&S.lock);
    return is;
}

static bool remote_peek(struct rnl_rpc_link *link, void *to, size_t n)
{
    struct rnl_rpc_remote *f = rnl_rpc_remote_of(link);
    pthread_mutex_lock(&S.lock);
    bool is = !link->in_open && f->first && f->first->n >= n;
    if (is)
        memcpy(to, f->first->bytes, n);
    pthread_mutex_unlock(&S.lock);
    return is;
}

/* Frees the part at in_at. The peer is acknowledged late, in large steps. */
static void leave_part(struct rnl_rpc_remote *f)
{
    f->link.in_at = f->link.in_end = NULL;
    if (!f->open)
        return;
    pthread_mutex_lock(&S.lock);
    f->taken += f->open->n + RNL_RPC_REMOTE_PART;
    const uint64_t word = htobe64(f->taken);
    if (f->taken - f->taken_advertised >= ADVERTISE_BYTES && !is_deaf(f) &&
        rnl_rpc_remote_send(f, RNL_RPC_REMOTE_TAKEN, false, &word, sizeof word, false) > 0)
        f->taken_advertised = f->taken;
    pthread_mutex_unlock(&S.lock);
    free(f->open);
    f->open = NULL;
}

static bool remote_next(struct rnl_rpc_link *link)
{
    struct rnl_rpc_remote *f = rnl_rpc_remote_of(link);
    if (link->in_open && link->in_last)
        return false;
    leave_part(f);
    if (rnl_rpc_remote_is_forked(link) ||
        (!remote_here(link) && !rnl_rpc_remote_wait(f, has_part, deadline_of(link)))) {
        link->broken = true;
        return false;
    }
    pthread_mutex_lock(&S.lock);
    struct rnl_rpc_remote_part *p = f->first;
    f->first = p->next;
    if (!f->first)
        f->end = &f->first;
    pthread_mutex_unlock(&S.lock);
    f->open = p;
    link->in_private = link->in_open = true;
    link->in_last = p->last;
    link->in_at = p->bytes;
    link->in_end = p->bytes + p->n;
    return true;
}

static bool remote_leave(struct rnl_rpc_link *link)
{
    while (link->in_open && !link->in_last)
        if (!remote_next(link))
            return false;
    leave_part(rnl_rpc_remote_of(link));
    link->in_open = link->in_last = false;
    return true;
}

/* ---- waiting ---- */

static bool remote_wait(struct rnl_rpc_link *link, uint64_t deadline_ns)
{
    return !is_deaf(rnl_rpc_remote_of(link)) && rnl_rpc_remote_wait(rnl_rpc_remote_of(link), has_part, deadline_ns);
}

static void remote_arm(struct rnl_rpc_link *link, enum rnl_rpc_arming how)
{
    pthread_mutex_lock(&S.lock);
    link->armed = (uint8_t)how;
    if (how != RNL_RPC_ARM_NONE && !is_deaf(rnl_rpc_remote_of(link)))
        rnl_rpc_remote_arm();
    pthread_mutex_unlock(&S.lock);
}

static void remote_drain(struct rnl_rpc_link *link)
{
    struct rnl_rpc_remote *f = rnl_rpc_remote_of(link);
    char bytes[64];
    ssize_t n;
    if (is_deaf(f))
        return;
    if (!f->is_server) {
        (void)!read(link->fd, bytes, 8);
        return;
    }
    do
        n = recv(link->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    while (n == (ssize_t)sizeof bytes || (n < 0 && errno == EINTR));
    if (n == 0 || (n < 0 && errno != EAGAIN))
        link->broken = true;
    rnl_rpc_remote_look();
}

static void remote_close(struct rnl_rpc_link *link)
{
    pthread_mutex_lock(&S.lock);
    rnl_rpc_remote_free(rnl_rpc_remote_of(link));
    pthread_mutex_unlock(&S.lock);
}

/* ---- forking ---- */

static void remote_share(struct rnl_rpc_link *link)
{
    link->shared = true;
    (void)rnl_rpc_remote_share(rnl_rpc_remote_of(link));
}

static bool is_free(struct rnl_rpc_remote *f)
{
    return !f->relaying;
}

static bool remote_claim(struct rnl_rpc_link *link)
{
    struct rnl_rpc_remote *f = rnl_rpc_remote_of(link);
    const uint64_t deadline = deadline_of(link);
    if (rnl_rpc_remote_is_forked(link))
        return !is_broken(f);
    for (;;) {
        const uint64_t now = rnl_rpc_now_ns();
        pthread_mutex_lock(&S.lock);
        const bool is = is_free(f);
        f->writing = is;
        pthread_mutex_unlock(&S.lock);
        if (is || is_broken(f) || now >= deadline)
            return is;
        if (link->blocked)
            link->blocked(link);
        (void)rnl_rpc_remote_wait(f, is_free, now + TRY_MS * (uint64_t)1000000);
    }
}

static void remote_release(struct rnl_rpc_link *link)
{
    pthread_mutex_lock(&S.lock);
    rnl_rpc_remote_of(link)->writing = false;
    pthread_mutex_unlock(&S.lock);
    rnl_rpc_remote_news();
}

static bool is_flushed(struct rnl_rpc_remote *f)
{
    return f->flushed;
}

void rnl_rpc_remote_flush(struct rnl_rpc_link *link)
{
    enum { FLUSH_MS = 2000 };
    struct rnl_rpc_remote *f = rnl_rpc_remote_of(link);
    const uint64_t deadline = rnl_rpc_now_ns() + FLUSH_MS * (uint64_t)1000000;
    int sent = 0;
    if (!link->remote)
        return;
    while (sent == 0 && !is_deaf(f) && rnl_rpc_now_ns() < deadline) {
        pthread_mutex_lock(&S.lock);
        f->flushed = false;
        rnl_rpc_remote_pump();
        sent = rnl_rpc_remote_send(f, RNL_RPC_REMOTE_FLUSH, false, NULL, 0, true);
        pthread_mutex_unlock(&S.lock);
    }
    if (sent > 0)
        (void)rnl_rpc_remote_wait(f, is_flushed, deadline);
}

const struct rnl_rpc_link_ops rnl_rpc_remote_ops = {
    .room = remote_room,
    .end = remote_end,
    .drop = remote_drop,
    .here = remote_here,
    .peek = remote_peek,
    .next = remote_next,
    .leave = remote_leave,
    .wait = remote_wait,
    .arm = remote_arm,
    .drain = remote_drain,
    .share = remote_share,
    .claim = remote_claim,
    .release = remote_release,
    .close = remote_close,
};
