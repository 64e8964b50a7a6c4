/* SPDX-License-Identifier: BSD-3-Clause
 *
 * beside.c - cards and the kernel's socket as one socket. */
#include "net/socket/i8255x/beside.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/error.h"

enum {
    TEND_NS = 10000000, /* between two looks at cards that interrupt: one may have stopped, or be gone */
    NAP_NS = 200000,    /* between two looks at the cards while somebody sleeps on the descriptor */
    LOOK_EVERY = 16 /* receives between two looks at the kernel's socket, which cost a system call, while cards bring */
};

struct both {
    struct rnl_socket s; /* first */
    struct rnl_socket *cards, *kernel;
    int epoll, timer;
    struct rnl_socket_frames frames; /* of the cards, with the links of both */
    uint32_t receives;
    bool armed;
};

static struct both *of(struct rnl_socket *s)
{
    return (struct both *)(void *)s;
}

/* What the kernel's socket may do can change with each call. */
static void copy_limits(struct both *b)
{
    b->s.datagram_max = b->kernel->datagram_max;
    b->s.segments_max = b->kernel->segments_max;
}

/* ---- sending ---- */

/* Sends one run by cards, as single datagrams. What the cards have no room for behind the first is lost, as in any
 * queue. */
static bool by_cards(struct both *b, const struct rnl_socket_out *run, struct rnl_socket_result *result)
{
    struct rnl_socket_out one = *run;
    struct rnl_socket_result later;
    const uint32_t each = run->segment && run->segment < run->bytes ? run->segment : run->bytes;
    uint32_t at = 0;
    one.segment = 0;
    do {
        one.at = (const uint8_t *)run->at + at;
        one.bytes = run->bytes - at < each ? run->bytes - at : each;
        if (b->cards->ops->send(b->cards, &one, 1, at ? &later : result) < 1)
            return at > 0;
        at += each;
    } while (at < run->bytes);
    return true;
}

static bool is_run(const struct rnl_socket_out *o)
{
    return o->segment && o->segment < o->bytes;
}

/* How many neighbours from out[0] on go the same way: one run by cards, or single datagrams by cards, or by the
 * kernel. */
static int alike(const struct rnl_socket_out *out, int n)
{
    const bool card = out[0].to.scope != 0;
    int i = 1;
    while (i < n && (out[i].to.scope != 0) == card && !(card && (is_run(&out[0]) || is_run(&out[i]))))
        i++;
    return i;
}

static int both_send(struct rnl_socket *s, const struct rnl_socket_out *out, int n, struct rnl_socket_result *result)
{
    struct both *b = of(s);
    int i = 0;
    *result = (struct rnl_socket_result){RNL_SOCKET_WENT, 0};
    while (i < n) {
        const int some = alike(out + i, n - i);
        const bool card = out[i].to.scope != 0;
        const int went = !card             ? b->kernel->ops->send(b->kernel, out + i, some, result)
                         : is_run(&out[i]) ? by_cards(b, out + i, result)
                                           : b->cards->ops->send(b->cards, out + i, some, result);
        i += went > 0 ? went : 0;
        if (went < some)
            break;
        *result = (struct rnl_socket_result){RNL_SOCKET_WENT, 0};
    }
    copy_limits(b);
    return i;
}

/* ---- receiving ---- */

static int both_recv(struct rnl_socket *s, struct rnl_socket_in *in, int n)
{
    struct both *b = of(s);
    int got = b->cards->ops->recv(b->cards, in, n);
    b->frames = *b->cards->frames;
    b->frames.links += b->kernel->frames ? b->kernel->frames->links : 0;
    if (got >= n || (got > 0 && !b->armed && ++b->receives % LOOK_EVERY != 0))
        return got;
    const int more = b->kernel->ops->recv(b->kernel, in + got, n - got);
    b->armed = false;
    copy_limits(b);
    return more < 0 ? (got > 0 ? got : more) : got + more;
}

static int both_error(struct rnl_socket *s, struct rnl_socket_error *e)
{
    return of(s)->kernel->ops->error(of(s)->kernel, e);
}

/* ---- waiting ---- */

static bool any_works(const struct both *b)
{
    struct rnl_i8255x_facts f;
    for (uint32_t i = 0; rnl_i8255x_socket_facts(b->cards, i, &f); i++)
        if (!f.gone)
            return true;
    return false;
}

/* To set the timer takes from it that it has rung. */
static int both_arm(struct rnl_socket *s)
{
    struct both *b = of(s);
    const long each_ns = b->cards->has_fd ? TEND_NS : NAP_NS;
    const struct itimerspec nap = {.it_value.tv_nsec = any_works(b) ? each_ns : 0};
    b->armed = true;
    if (b->cards->has_fd && b->cards->ops->arm(b->cards) != 0)
        return 1;
    if (timerfd_settime(b->timer, 0, &nap, NULL) < 0)
        return 1; /* the caller must not sleep, because nothing would wake it */
    return b->kernel->ops->arm(b->kernel);
}

static bool both_is_down(struct rnl_socket *s, const struct rnl_socket_addr *to)
{
    struct rnl_socket *const by = to->scope != 0 ? of(s)->cards : of(s)->kernel;
    return by->ops->is_down && by->ops->is_down(by, to);
}

static int both_fd(struct rnl_socket *s)
{
    return of(s)->epoll;
}

/* ---- beginning and end ---- */

static void both_close(struct rnl_socket *s)
{
    struct both *b = of(s);
    b->cards->ops->close(b->cards);
    b->kernel->ops->close(b->kernel);
    close(b->epoll);
    close(b->timer);
    free(b);
}

static const struct rnl_socket_ops both_ops = {
    .size = sizeof both_ops,
    .send = both_send,
    .recv = both_recv,
    .error = both_error,
    .arm = both_arm,
    .fd = both_fd,
    .close = both_close,
    .is_down = both_is_down,
};

static int watch(struct both *b)
{
    struct epoll_event e = {.events = EPOLLIN};
    b->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    b->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (b->timer >= 0 && b->epoll >= 0 && epoll_ctl(b->epoll, EPOLL_CTL_ADD, b->timer, &e) == 0 &&
        epoll_ctl(b->epoll, EPOLL_CTL_ADD, b->kernel->ops->fd(b->kernel), &e) == 0 &&
        (!b->cards->has_fd || epoll_ctl(b->epoll, EPOLL_CTL_ADD, b->cards->ops->fd(b->cards), &e) == 0))
        return 0;
    return rnl_fail_errno(RNL_ERR_SYSTEM, errno,
                          "a socket over cards needs descriptors: raise their limit (ulimit -n)");
}

int rnl_i8255x_beside(struct rnl_socket *cards, struct rnl_socket *kernel, struct rnl_socket **out)
{
    struct both *b = calloc(1, sizeof *b);
    if (!b)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a socket over cards");
    b->s = *kernel;
    b->s.ops = &both_ops;
    b->s.frames = &b->frames;
    b->cards = cards;
    b->kernel = kernel;
    const int status = watch(b);
    if (status < 0) {
        if (b->timer >= 0)
            close(b->timer);
        if (b->epoll >= 0)
            close(b->epoll);
        free(b);
        return status;
    }
    if (b->s.receive_bytes > cards->receive_bytes)
        b->s.receive_bytes = cards->receive_bytes;
    b->s.has_fd = 1;
    *out = &b->s;
    return 0;
}

const struct rnl_socket *rnl_i8255x_beside_cards(const struct rnl_socket *s)
{
    return s->ops == &both_ops ? ((const struct both *)(const void *)s)->cards : NULL;
}
