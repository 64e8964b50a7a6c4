/* SPDX-License-Identifier: BSD-3-Clause
 *
 * far_link.c - records between hosts. A part is written in private memory and sent when it is full or the record ends;
 * parts that came lie in private memory, too, so they may be read in place. In a child of the process whose link it is
 * a link is broken. */
#include "far_internal.h"

#include "base/error.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define S rnl_rpc_far_state

enum { TELL_BYTES = RNL_RPC_FAR_WINDOW / 4, TRY_MS = 20 };
static const uint64_t rest_ns = 35000000000u; /* the rest of a record comes within this time, as in libtirpc */

static bool is_broken(struct rnl_rpc_far *f)
{
    if (rnl_rpc_far_is_forked(&f->link))
        f->link.broken = true;
    return f->link.broken;
}

static uint64_t deadline_of(const struct rnl_rpc_link *link)
{
    return link->deadline_ns ? link->deadline_ns : rnl_rpc_now_ns() + rest_ns;
}

/* ---- writing ---- */

static bool has_room(struct rnl_rpc_far *f)
{
    return f->sent + RNL_RPC_FAR_BYTES + RNL_RPC_FAR_PART - f->told <= RNL_RPC_FAR_WINDOW;
}

/* Whether a part of any length can be sent: the peer has taken enough, and the network takes it. */
static bool can_send(struct rnl_rpc_far *f)
{
    struct rnl_room_info room = {.size = sizeof room};
    return has_room(f) && S.lib->room(S.ep, f->peer, &room) == 0 && room.lacks == 0 &&
           room.bound >= RNL_RPC_FAR_BYTES + sizeof(uint32_t);
}

static bool send_part(struct rnl_rpc_far *f, bool last)
{
    struct rnl_rpc_link *link = &f->link;
    const size_t n = link->out_at ? (size_t)(link->out_at - f->room) : 0;
    const uint64_t deadline = deadline_of(link);
    for (;;) {
        int sent = 0;
        pthread_mutex_lock(&S.lock);
        if (has_room(f) && !is_broken(f))
            sent = rnl_rpc_far_send(f, RNL_RPC_FAR_DATA, last, f->room, n, false);
        if (sent > 0)
            f->sent += n + RNL_RPC_FAR_PART;
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
        (void)rnl_rpc_far_wait(f, can_send, now + TRY_MS * (uint64_t)1000000);
    }
    link->out_bytes += n;
    f->begun = true;
    link->out_at = link->out_end = NULL;
    return true;
}

static bool far_room(struct rnl_rpc_link *link)
{
    struct rnl_rpc_far *f = rnl_rpc_far_of(link);
    if (is_broken(f) || (!f->room && !(f->room = malloc(RNL_RPC_FAR_BYTES))))
        return false;
    if (link->out_at && !send_part(f, false))
        return false;
    link->out_at = f->room;
    link->out_end = f->room + RNL_RPC_FAR_BYTES;
    link->out_room = RNL_RPC_FAR_BYTES;
    return true;
}

static bool far_end(struct rnl_rpc_link *link)
{
    struct rnl_rpc_far *f = rnl_rpc_far_of(link);
    if (is_broken(f) || !send_part(f, true))
        return false;
    f->begun = false;
    link->out_bytes = 0;
    pthread_mutex_lock(&S.lock);
    (void)!S.lib->flush(S.ep);
    pthread_mutex_unlock(&S.lock);
    return true;
}

static bool far_drop(struct rnl_rpc_link *link)
{
    if (rnl_rpc_far_of(link)->begun)
        return false;
    link->out_at = link->out_end = NULL;
    return true;
}

/* ---- reading ---- */

static bool has_part(struct rnl_rpc_far *f)
{
    return f->first != NULL;
}

static bool far_here(struct rnl_rpc_link *link)
{
    struct rnl_rpc_far *f = rnl_rpc_far_of(link);
    if (rnl_rpc_far_is_forked(link))
        return false;
    pthread_mutex_lock(&S.lock);
    bool is = has_part(f);
    pthread_mutex_unlock(&S.lock);
    return is;
}

static bool far_peek(struct rnl_rpc_link *link, void *to, size_t n)
{
    struct rnl_rpc_far *f = rnl_rpc_far_of(link);
    pthread_mutex_lock(&S.lock);
    bool is = !link->in_open && f->first && f->first->n >= n;
    if (is)
        memcpy(to, f->first->bytes, n);
    pthread_mutex_unlock(&S.lock);
    return is;
}

/* Frees the part at in_at. The peer is told late, in large steps. */
static void leave_part(struct rnl_rpc_far *f)
{
    f->link.in_at = f->link.in_end = NULL;
    if (!f->open)
        return;
    pthread_mutex_lock(&S.lock);
    f->taken += f->open->n + RNL_RPC_FAR_PART;
    const uint64_t word = htobe64(f->taken);
    if (f->taken - f->taken_told >= TELL_BYTES && !is_broken(f) &&
        rnl_rpc_far_send(f, RNL_RPC_FAR_TAKEN, false, &word, sizeof word, false) > 0)
        f->taken_told = f->taken;
    pthread_mutex_unlock(&S.lock);
    free(f->open);
    f->open = NULL;
}

static bool far_next(struct rnl_rpc_link *link)
{
    struct rnl_rpc_far *f = rnl_rpc_far_of(link);
    if (link->in_open && link->in_last)
        return false;
    leave_part(f);
    if (rnl_rpc_far_is_forked(link) || (!far_here(link) && !rnl_rpc_far_wait(f, has_part, deadline_of(link)))) {
        link->broken = true;
        return false;
    }
    pthread_mutex_lock(&S.lock);
    struct rnl_rpc_far_part *p = f->first;
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

static bool far_leave(struct rnl_rpc_link *link)
{
    while (link->in_open && !link->in_last)
        if (!far_next(link))
            return false;
    leave_part(rnl_rpc_far_of(link));
    link->in_open = link->in_last = false;
    return true;
}

/* ---- waiting ---- */

static bool far_wait(struct rnl_rpc_link *link, uint64_t deadline_ns)
{
    return !is_broken(rnl_rpc_far_of(link)) && rnl_rpc_far_wait(rnl_rpc_far_of(link), has_part, deadline_ns);
}

static void far_arm(struct rnl_rpc_link *link, enum rnl_rpc_arming how)
{
    pthread_mutex_lock(&S.lock);
    link->armed = (uint8_t)how;
    if (how != RNL_RPC_ARM_NONE && !is_broken(rnl_rpc_far_of(link)))
        rnl_rpc_far_arm();
    pthread_mutex_unlock(&S.lock);
}

static void far_drain(struct rnl_rpc_link *link)
{
    struct rnl_rpc_far *f = rnl_rpc_far_of(link);
    char bytes[64];
    ssize_t n;
    if (is_broken(f))
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
    rnl_rpc_far_look();
}

static void far_close(struct rnl_rpc_link *link)
{
    pthread_mutex_lock(&S.lock);
    rnl_rpc_far_free(rnl_rpc_far_of(link));
    pthread_mutex_unlock(&S.lock);
}

static bool is_settled(struct rnl_rpc_far *f)
{
    return f->settled;
}

void rnl_rpc_far_settle(struct rnl_rpc_link *link)
{
    enum { SETTLE_MS = 2000 };
    struct rnl_rpc_far *f = rnl_rpc_far_of(link);
    const uint64_t deadline = rnl_rpc_now_ns() + SETTLE_MS * (uint64_t)1000000;
    int sent = 0;
    if (!link->far)
        return;
    while (sent == 0 && !is_broken(f) && rnl_rpc_now_ns() < deadline) {
        pthread_mutex_lock(&S.lock);
        f->settled = false;
        rnl_rpc_far_pump();
        sent = rnl_rpc_far_send(f, RNL_RPC_FAR_SETTLE, false, NULL, 0, true);
        pthread_mutex_unlock(&S.lock);
    }
    if (sent > 0)
        (void)rnl_rpc_far_wait(f, is_settled, deadline);
}

const struct rnl_rpc_link_ops rnl_rpc_far_ops = {
    .room = far_room,
    .end = far_end,
    .drop = far_drop,
    .here = far_here,
    .peek = far_peek,
    .next = far_next,
    .leave = far_leave,
    .wait = far_wait,
    .arm = far_arm,
    .drain = far_drain,
    .close = far_close,
};
