/* SPDX-License-Identifier: BSD-3-Clause
 *
 * call.c - calls a handler with as many arguments as its message has, with its hooks and the accounting of the call. */
#include "api/am/core.h"

typedef int32_t A;
#define TYPES0
#define TYPES1  , A
#define TYPES2  TYPES1, A
#define TYPES3  TYPES2, A
#define TYPES4  TYPES3, A
#define TYPES5  TYPES4, A
#define TYPES6  TYPES5, A
#define TYPES7  TYPES6, A
#define TYPES8  TYPES7, A
#define TYPES9  TYPES8, A
#define TYPES10 TYPES9, A
#define TYPES11 TYPES10, A
#define TYPES12 TYPES11, A
#define TYPES13 TYPES12, A
#define TYPES14 TYPES13, A
#define TYPES15 TYPES14, A
#define TYPES16 TYPES15, A
#define WORDS0
#define WORDS1  , a[0]
#define WORDS2  WORDS1, a[1]
#define WORDS3  WORDS2, a[2]
#define WORDS4  WORDS3, a[3]
#define WORDS5  WORDS4, a[4]
#define WORDS6  WORDS5, a[5]
#define WORDS7  WORDS6, a[6]
#define WORDS8  WORDS7, a[7]
#define WORDS9  WORDS8, a[8]
#define WORDS10 WORDS9, a[9]
#define WORDS11 WORDS10, a[10]
#define WORDS12 WORDS11, a[11]
#define WORDS13 WORDS12, a[12]
#define WORDS14 WORDS13, a[13]
#define WORDS15 WORDS14, a[14]
#define WORDS16 WORDS15, a[15]

/* Each handler is called through a type with exactly its arguments: with another type it would read undefined ones. */
#define CASE(n)                                                                           \
    case n:                                                                               \
        if (payload)                                                                      \
            ((void (*)(void *, void *, size_t TYPES##n))fn)(token, buf, nbytes WORDS##n); \
        else                                                                              \
            ((void (*)(void *TYPES##n))fn)(token WORDS##n);                               \
        break;

RNL_INLINE void apply(rnl_am_fn fn, void *token, int payload, void *buf, size_t nbytes, unsigned numargs,
                      const int32_t *a)
{
    switch (numargs) {
        CASE(0)
        CASE(1)
        CASE(2)
        CASE(3)
        CASE(4)
        CASE(5)
        CASE(6)
        CASE(7)
        CASE(8)
        CASE(9)
        CASE(10)
        CASE(11)
        CASE(12)
        CASE(13)
        CASE(14)
        CASE(15)
        CASE(16)
    default:
        break; /* unreachable: take.c has checked numargs */
    }
}

void rnl_am_call_short(rnl_am_fn fn, struct rnl_am_token *t, const int32_t *args, unsigned numargs)
{
    apply(fn, t, 0, NULL, 0, numargs, args);
}

static RNL_NOINLINE void run_hooked(struct rnl_am_token *t, rnl_am_fn fn, void *buf)
{
    struct rnl_am_token_info info;
    struct rnl_am_hooks hooks = t->ep->hooks; /* the handler may change or free them */
    jmp_buf leave;
    (void)rnl_am_get_token_info(t, &info);
    t->leave = &leave;
    if (_setjmp(leave))
        return;
    if (hooks.before)
        hooks.before(hooks.arg, t, &info, buf);
    apply(fn, t, t->m->op != RNL_AM_OP_SHORT, buf, t->m->nbytes, t->m->numargs, t->m->args);
    if (hooks.after && !rnl_ep_forked(t->port->ep))
        hooks.after(hooks.arg, t, &info, buf);
}

void rnl_am_leave_handler(const struct rnl_am_bundle *b, int gives_up)
{
    struct rnl_am_port *port = b->port;
    if (rnl_am_enter(port) != AM_OK)
        return;
    const struct rnl_am_token *t = port->running; /* this thread's: its runner has the lock */
    (void)rnl_am_leave(port, AM_OK);
    if (!t || !t->leave)
        return;
    if (gives_up)
        port->ep->close.give_up = 1; /* the call that runs this handler may wait for a peer that is stuck */
    _longjmp(*t->leave, 1);
}

void rnl_am_go_on(const struct rnl_am_bundle *b)
{
    b->port->ep->close.give_up = 0;
}

bool rnl_am_hold(void)
{
    struct rnl_am_port *port = rnl_am.port;
    return port && port->guarded && rnl_am_enter(port) == AM_OK;
}

void rnl_am_let_go(int held)
{
    if (held)
        (void)rnl_am_leave(rnl_am.port, AM_OK);
}

void *rnl_am_hooks_arg(const struct rnl_am_endpoint *ep)
{
    return ep->hooks.arg;
}

bool rnl_am_next_serial(const struct rnl_am_endpoint *ep, int index, uint32_t *rank, uint16_t *serial)
{
    const struct rnl_am_port *port = ep->port;
    if (port->guarded || (uint32_t)index >= ep->translations || !ep->translation[index].used)
        return false;
    *rank = ep->translation[index].name.rank;
    *serial = (uint16_t)(port->peer[*rank].requests_sent + 1);
    return true;
}

uint16_t rnl_am_reply_serial(const void *token, uint32_t *rank)
{
    const struct rnl_am_token *t = token;
    *rank = t->rank;
    return t->m->serial;
}

void rnl_am_run(struct rnl_am_token *t, rnl_am_fn fn, void *buf)
{
    struct rnl_am_port *port = t->port;
    const struct rnl_am_message *m = t->m;
    t->self = t;
    port->running = t;
    if (RNL_UNLIKELY(t->ep->hooked))
        run_hooked(t, fn, buf);
    else
        apply(fn, t, m->op != RNL_AM_OP_SHORT, buf, m->nbytes, m->numargs, m->args);
    t->self = NULL;
    port->running = NULL;
    if (RNL_UNLIKELY(rnl_ep_forked(port->ep)))
        return;
    struct rnl_am_bundle *b = t->ep->bundle;
    b->events++;
    if (RNL_UNLIKELY(b->waiting))
        rnl_am_wake(b);
}
