/* SPDX-License-Identifier: BSD-3-Clause
 *
 * agent_tell.c - what the agent watches, and what it tells its ranks and the other agents: packets that a rank's socket
 * has no room for wait here. Nothing here ends a rank's life. */
#include "base/bell.h"
#include "base/env.h"
#include "job/agent_in.h"
#include "job/fds.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { RETRY_NS = 10000000 /* after the kernel refused a packet for want of memory */ };
static const uint64_t refused_ns_max = 3000000000; /* so long a rank may hear nothing for that reason */

/* ---- watching ---- */

int rnl_agent_watch(struct rnl_agent *a, int fd, enum rnl_agent_source source, uint32_t rank, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.u64 = (uint64_t)source << 32 | rank};
    if (epoll_ctl(a->epoll, EPOLL_CTL_MOD, fd, &e) == 0)
        return 0;
    return errno == ENOENT && epoll_ctl(a->epoll, EPOLL_CTL_ADD, fd, &e) == 0 ? 0 : -errno;
}

void rnl_agent_drop_fd(struct rnl_agent *a, int *fd)
{
    if (*fd < 0)
        return;
    epoll_ctl(a->epoll, EPOLL_CTL_DEL, *fd, NULL); /* not by close: others may hold the same file open */
    close(*fd);
    *fd = -1;
}

void rnl_agent_wish(struct rnl_agent *a, uint64_t at_ns)
{
    if (at_ns < a->deadline_ns)
        a->deadline_ns = at_ns;
}

/* ---- telling ---- */

void rnl_agent_spread(struct rnl_agent *a, const struct rnl_word *word)
{
    if (a->tell != NULL)
        a->tell(a->tell_arg, word);
}

static void wake(struct rnl_agent *a, uint32_t rank)
{
    const uint64_t one = 1;
    struct agent_rank *r = &a->rank[rank];
    /* Pairs with the owner's relaxed polling: the event itself travels through the socket. */
    atomic_fetch_add_explicit(&a->status->rank[rank].news, 1, memory_order_release);
    /* Before the bell: whoever sees its word change must find the descriptor raised. */
    while (r->raise >= 0 && write(r->raise, &one, sizeof one) < 0 && errno == EINTR)
        ;
    atomic_fetch_add_explicit(&a->bells[rank].word, 1, memory_order_release); /* pairs with the load before park */
    rnl_host_wake(NULL, &a->bells[rank].word);
}

static void pop(struct agent_rank *r)
{
    struct agent_out *o = r->first;
    r->first = o->next;
    if (r->first == NULL)
        r->last = NULL;
    r->queued--;
    r->answers -= o->is_answer;
    if (o->owned >= 0)
        close(o->owned);
    free(o);
}

void rnl_agent_tell_none(struct agent_rank *r)
{
    while (r->first != NULL)
        pop(r);
}

void rnl_agent_fail(struct rnl_agent *a, uint32_t rank, int e)
{
    a->rank[rank].broken = 1;
    a->rank[rank].sys_errno = e;
    rnl_agent_wish(a, a->now_ns);
}

void rnl_agent_flush(struct rnl_agent *a, uint32_t rank)
{
    struct agent_rank *r = &a->rank[rank];
    int news = 0, e = 0; /* news: also answers, since nobody need wait for them in a call */
    if (r->sock < 0 || r->state != RNL_RANK_JOINED)
        return;
    while (r->first != NULL && e == 0) {
        const struct agent_out *o = r->first;
        const int pages[4] = {a->status_fd, a->bells_fd, a->places_fd, r->net};
        if (o->is_welcome)
            e = rnl_packet_send(r->sock, o->bytes, o->n, pages, a->places_fd < 0 ? 2 : 4, 0);
        else
            e = rnl_packet_send(r->sock, o->bytes, o->n, &o->owned, o->owned >= 0, 0);
        if (e == 0) {
            news |= !o->is_welcome;
            r->refused_ns = 0;
            pop(r);
        }
    }
    if (e < 0 && e != -EAGAIN && e != -EPIPE && e != -ECONNRESET) { /* ENOBUFS, ETOOMANYREFS */
        r->retry = 1;
        rnl_agent_wish(a, a->now_ns + RETRY_NS);
        if (r->refused_ns == 0)
            r->refused_ns = a->now_ns;
        else if (a->now_ns > r->refused_ns + refused_ns_max)
            rnl_agent_fail(a, rank, -e);
    }
    uint32_t interest = (r->answers > 0 ? 0u : EPOLLIN) | (e == -EAGAIN ? EPOLLOUT : 0u);
    if (!r->hung_up && interest != r->interest && rnl_agent_watch(a, r->sock, RNL_AGENT_SOCK, rank, interest) == 0)
        r->interest = interest;
    if (news)
        wake(a, rank);
}

void rnl_agent_tell(struct rnl_agent *a, uint32_t rank, const struct rnl_msg *msg, int owned)
{
    struct agent_rank *r = &a->rank[rank];
    if (r->state != RNL_RANK_JOINED || r->away) {
        if (owned >= 0)
            close(owned);
        return;
    }
    struct agent_out *o = malloc(sizeof *o);
    if (o == NULL || r->queued > 3 * a->size + 64) {
        rnl_agent_fail(a, rank, o == NULL ? ENOMEM : 0); /* or it makes us queue without end */
        if (owned >= 0)
            close(owned);
        free(o);
        return;
    }
    o->next = NULL;
    o->owned = owned;
    o->is_answer = msg->kind == RNL_MSG_GIVE;
    o->is_welcome = msg->kind == RNL_MSG_WELCOME;
    o->n = rnl_msg_encode(msg, o->bytes);
    if (r->last != NULL)
        r->last->next = o;
    else
        r->first = o;
    r->last = o;
    r->queued++;
    r->answers += o->is_answer;
    rnl_agent_flush(a, rank);
}
