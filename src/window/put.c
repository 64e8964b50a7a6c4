/* SPDX-License-Identifier: BSD-3-Clause
 *
 * put.c - the importer's calls that write, read and change a window. Over a direct import they are copies and
 * instructions, and take no lock; over a carried one they are messages. */
#include "base/sense.h"
#include "window/window_internal.h"

#include <stdlib.h>

enum {
    LINE = 64,
    SAMPLE_EVERY = 160,
    SAMPLE_UNIT = 1024,
    SAMPLE_MIN = 1024,
    SAMPLE_MAX = 64 << 10, /* what is longer leaves nothing in the owner's caches, and times the memory */
    SAMPLE_ROOM = 8 + 15,  /* a word, and at most as many bytes as are stored last */
    DOUBT_NS = 6,          /* a sample is a surprise if it moves the average so far */
    DOUBTS_MAX = 12,       /* after so many in a row, this host is known to be uneven */
    SENSE_EVERY = 8
};

/* ---- what all begin with ---- */

static RNL_COLD int past_end(const struct rnl_import *m, size_t offset, size_t n)
{
    return rnl_fail(RNL_ERR_PAST_END, "%zu bytes at offset %zu: window %u has %zu", n, offset, m->id, m->bytes);
}

/* Returns 0 if the import can be used, or why not. */
static int check(const struct rnl_import *m, size_t offset, size_t n)
{
    if (!m->ws)
        return rnl_fail(RNL_ERR_FORKED, "this process was forked from the one that imported the window");
    if (m->state == WINDOW_ENDED)
        return rnl_window_why(m);
    if (m->state != WINDOW_HERE)
        return rnl_fail(RNL_BUSY, "window %u is not imported yet: see rnl_import_state", m->id);
    return rnl_window_in(m->bytes, offset, n) ? 0 : past_end(m, offset, n);
}

/* Pairs with the end of an import, which another thread may notice. */
static bool is_direct(const struct rnl_import *m)
{
    return __atomic_load_n(&m->head.direct_words, __ATOMIC_ACQUIRE) != 0;
}

/* Returns where offset lies if all n bytes can be reached directly, else NULL. */
static unsigned char *direct(const struct rnl_import *m, size_t offset, size_t n)
{
    size_t words = __atomic_load_n(&m->head.direct_words, __ATOMIC_RELAXED); /* set to 0 when the import ends */
    return words && rnl_window_in(words + 7, offset, n) ? m->head.at + offset : NULL;
}

/* Begins an access that is carried. */
static int begin(struct rnl_import *m, size_t offset, size_t n, struct rnl_windows **ws)
{
    if (!m->ws)
        return check(m, offset, n);
    int status = rnl_window_enter(m->ws->ep, ws);
    if (status < 0)
        return status;
    status = check(m, offset, n);
    if (status < 0)
        rnl_window_leave(*ws);
    return status;
}

/* Ends it: an access to a window that is gone meanwhile has failed for that reason. */
static int end(struct rnl_windows *ws, const struct rnl_import *m, int status)
{
    if (status == RNL_ERR_FORKED)
        return status;
    if (status < 0 && status != RNL_NO_ROOM && m->state == WINDOW_ENDED)
        status = rnl_window_why(m);
    rnl_window_leave(ws);
    return status;
}

/* ---- put ---- */

static struct window_put head_of(const struct rnl_import *m, size_t offset, size_t n)
{
    return (struct window_put){.grant = m->grant, .generation = m->generation, .offset = offset, .n = n};
}

/* How far the owner is, is learnt from messages to it (the channel's verdict), and from timing now and then the store
 * to a line at the end of a put, which the owner has read if it waits for the last word or uses what was put. Whichever
 * changed last counts: a program may do nothing but put, and processes are moved to other processors. A sample that
 * differs much from those before is followed by another one at the next put, so that a few puts show such a move. */
static RNL_NOINLINE void sample(struct window_peer *p, unsigned char *at, const unsigned char *from, size_t n)
{
    const size_t i = n - SAMPLE_ROOM - ((uintptr_t)(at + n - SAMPLE_ROOM) & (LINE - 1));
    uint64_t word;
    memcpy(&word, from + i, sizeof word);
    rnl_full_fence(); /* so that no earlier stores are waited for; the word is stored again with the others */
    const int before = p->distance >> 1;
    __atomic_store_n((uint64_t *)(void *)(at + i), word, __ATOMIC_RELAXED);
    p->via->env->ops->sense_fence(p->via->env, &p->distance);
    p->doubts = abs((p->distance >> 1) - before) * RNL_SENSE_UNIT_NS < DOUBT_NS ? 0 : p->doubts + 1;
    p->to_sample = p->doubts % DOUBTS_MAX ? 0 : SAMPLE_EVERY;
}

static unsigned distance_of(struct window_peer *p, unsigned char *at, const void *from, size_t n)
{
    const uint8_t heard = p->via->fast.conn[p->at]->channel.distance;
    if ((heard ^ p->heard) & RNL_FAR)
        p->distance = heard;
    p->heard = heard;
    const size_t part = 1 + n / SAMPLE_UNIT; /* a sample costs the same, whatever is put */
    if (p->to_sample > part)
        p->to_sample = (uint8_t)(p->to_sample - part);
    else if (n <= SAMPLE_MAX)
        sample(p, at, from, n);
    return p->distance;
}

static int put_direct(struct rnl_import *m, unsigned char *at, const void *from, size_t n)
{
    unsigned distance = RNL_NEAR;
    struct rnl_endpoint *ep = m->ws->ep;
    if (ep->fast.open == RNL_EP_OPEN || (ep->fast.open == RNL_EP_SERVED && rnl_ep_enter(ep) == 0)) {
        struct window_peer *p = m->peer; /* in a shared one other threads write there, too */
        if (p && n >= SAMPLE_MIN)
            distance = distance_of(p, at, from, n);
        m->ws->count[WINDOW_PUTS]++;
        rnl_ep_leave(ep);
    }
    rnl_window_store(at, from, n, distance);
    return is_direct(m) ? 0 : rnl_window_why(m);
}

/* Sends it. A wait for room shows without its time: most puts find room at once, so no clock is read for it. */
static int put_message(struct rnl_windows *ws, struct window_peer *p, enum window_kind kind, const struct window_put *h,
                       const void *from, size_t n)
{
    ws->count[WINDOW_WAITS_AT] = 1 + (uint64_t)p->rank;
    ws->count[WINDOW_WAITS_FOR] = WINDOW_WAITS_PUT;
    int status = rnl_window_send(ws, p, kind, h, sizeof *h, from, n, 0);
    if (!rnl_ep_forked(ws->ep))
        rnl_window_waited(ws);
    return status;
}

static int put_carried(struct rnl_import *m, size_t offset, const void *from, size_t n, unsigned flags)
{
    struct rnl_windows *ws;
    const struct window_put h = head_of(m, offset, n);
    int status = begin(m, offset, n, &ws);
    if (status < 0)
        return status;
    struct window_peer *p = m->peer;
    p->is_unsure = 1;
    ws->count[WINDOW_PUTS]++;
    status = put_message(ws, p, flags & RNL_PUT_NOTIFY ? WINDOW_PUT_NOTIFY : WINDOW_PUT, &h, from, n);
    return end(ws, m, status);
}

/* Tells the owner that n bytes have landed; if `waits` is false it returns at once. */
static int notify(struct rnl_import *m, size_t offset, size_t n, bool waits)
{
    struct rnl_windows *ws;
    const struct window_put h = head_of(m, offset, n);
    int status = begin(m, offset, n, &ws);
    if (status < 0)
        return status;
    struct window_peer *p = m->peer;
    p->is_unsure = 1;
    status =
        waits ? put_message(ws, p, WINDOW_NOTIFY, &h, NULL, 0) : rnl_window_post(ws, p, WINDOW_NOTIFY, &h, sizeof h, 0);
    if (status == 0 && ++p->notes % SENSE_EVERY == 0 && p->via)
        p->via->env->ops->sense_fence(p->via->env, &p->via->fast.conn[p->at]->channel.distance);
    return end(ws, m, status);
}

int rnl_put_any(rnl_import *m, size_t offset, const void *from, size_t n, unsigned flags)
{
    unsigned char *at = direct(m, offset, n);
    if (flags & ~(unsigned)RNL_PUT_NOTIFY)
        return rnl_fail(RNL_ERR_ARG, "unknown bits 0x%x in flags; RNL_PUT_NOTIFY is the only one", flags);
    if (!at)
        return put_carried(m, offset, from, n, flags);
    int status = put_direct(m, at, from, n);
    return status == 0 && flags ? notify(m, offset, n, true) : status;
}

/* ---- asynchronous puts ---- */

struct posted {
    rnl_token *token;
    struct window_put head;
};

static void posted(void *arg, int status)
{
    struct posted *a = arg;
    __atomic_store_n(&a->token->state, status, __ATOMIC_RELEASE); /* pairs with rnl_token_state's acquire */
    free(a);
}

int rnl_put_async(rnl_import *m, size_t offset, const void *from, size_t n, unsigned flags, rnl_token *t)
{
    struct rnl_windows *ws;
    unsigned char *at = direct(m, offset, n);
    if (at && !(flags & ~(unsigned)RNL_PUT_NOTIFY)) {
        int status = put_direct(m, at, from, n);
        if (status == 0 && flags)
            status = notify(m, offset, n, false);
        if (status == 0)
            t->state = 0;
        return status;
    }
    int status = flags & ~(unsigned)RNL_PUT_NOTIFY ? rnl_put_any(m, offset, from, n, flags) : begin(m, offset, n, &ws);
    if (status < 0)
        return status;
    struct window_peer *p = m->peer;
    struct posted *a = malloc(sizeof *a);
    if (!a)
        return end(ws, m, rnl_fail(RNL_ERR_NO_MEMORY, "no memory for an asynchronous put"));
    *a = (struct posted){.token = t, .head = head_of(m, offset, n)};
    const struct rnl_buffer piece[] = {{&a->head, sizeof a->head}, {from, n}};
    const struct rnl_message b = {.peer = p->at,
                                  .handler = RNL_LIBRARY_ID + (flags & RNL_PUT_NOTIFY ? WINDOW_PUT_NOTIFY : WINDOW_PUT),
                                  .bound = sizeof a->head + n};
    int32_t was = t->state;
    t->state = 1;
    p->is_unsure = 1;
    status = rnl_post(p->via, &b, piece, 2, posted, a);
    if (status < 0) {
        t->state = was;
        free(a);
    } else {
        ws->count[WINDOW_PUTS]++;
    }
    return end(ws, m, status);
}

/* ---- get ---- */

/* Posts the requests for n bytes, as parts of `whole`. */
static int ask_parts(struct rnl_windows *ws, const struct rnl_import *m, size_t offset, unsigned char *to, size_t n,
                     struct window_op *whole)
{
    struct window_peer *p = m->peer;
    whole->parts = 1; /* of this function, until all are asked for */
    int status = 0;
    for (size_t done = 0; status == 0 && done < n;) {
        size_t part = n - done < WINDOW_GET_BYTES ? n - done : WINDOW_GET_BYTES;
        struct window_op *op = rnl_window_op_new(WINDOW_GOT);
        if (!op)
            return RNL_ERR_NO_MEMORY;
        op->to = to + done;
        op->n = part;
        op->whole = whole;
        rnl_window_op_add(p, op);
        whole->parts++;
        const struct window_get h = {.tag = op->tag,
                                     .grant = m->grant,
                                     .generation = m->generation,
                                     .n = (uint32_t)part,
                                     .offset = offset + done};
        status = rnl_window_post(ws, p, WINDOW_GET, &h, sizeof h, sizeof(struct window_answer) + part);
        if (status < 0) {
            rnl_window_op_remove(p, op);
            rnl_window_op_end(op, status);
        }
        done += part;
    }
    return status;
}

int rnl_get_async(rnl_import *m, size_t offset, void *to, size_t n, rnl_token *t)
{
    struct rnl_windows *ws;
    const unsigned char *at = direct(m, offset, n);
    if (at) {
        rnl_copy_out(to, at, n, m->ws->ep->env->facts.wide_copy);
        t->state = is_direct(m) ? 0 : m->status;
        return t->state < 0 ? rnl_window_why(m) : 0;
    }
    int status = begin(m, offset, n, &ws);
    if (status < 0)
        return status;
    struct window_op *whole = rnl_window_op_new(WINDOW_GOT);
    if (!whole)
        return end(ws, m, RNL_ERR_NO_MEMORY);
    t->state = 1;
    whole->token = t;
    status = ask_parts(ws, m, offset, to, n, whole);
    if (status < 0)
        whole->failed = status;
    if (--whole->parts == 0)
        rnl_window_op_end(whole, whole->failed);
    else
        status = 0; /* the token will say so */
    return end(ws, m, status);
}

/* Waits for a token. */
static int await(struct rnl_windows *ws, struct rnl_import *m, const rnl_token *t, enum window_wait what)
{
    int status = 0;
    if (m->peer)
        rnl_window_waits(ws, what, m->peer->rank);
    while (status == 0 && rnl_token_state(t) == 1) {
        struct rnl_endpoint *via = m->peer ? m->peer->via : ws->ep;
        status = rnl_window_turn(ws, via ? via : ws->ep, UINT64_MAX);
        if (status == RNL_ERR_FORKED)
            return status;
    }
    rnl_window_waited(ws);
    return rnl_token_state(t) == 1 ? status : rnl_token_state(t);
}

int rnl_get(rnl_import *m, size_t offset, void *to, size_t n)
{
    struct rnl_windows *ws;
    rnl_token t = {0};
    if (direct(m, offset, n))
        return rnl_get_async(m, offset, to, n, &t);
    int status = begin(m, offset, n, &ws);
    if (status < 0)
        return status;
    status = rnl_window_may_wait(ws) ? rnl_get_async(m, offset, to, n, &t) : rnl_window_no_context();
    if (status == 0)
        status = await(ws, m, &t, WINDOW_WAITS_GET);
    return end(ws, m, status);
}

int rnl_window_on_got(rnl_stream *s, unsigned peer, void *ctx)
{
    struct rnl_windows *ws = s->ep->windows;
    struct window_answer a;
    struct window_op *op = ws ? rnl_window_op_answered(ws, s, peer, WINDOW_GOT, &a, sizeof a) : NULL;
    (void)ctx;
    if (!op)
        return RNL_DONE;
    int status = a.status < 0 ? a.status : rnl_receive(s, op->to, op->n);
    rnl_window_op_end(op, status);
    ws->changes++;
    rnl_window_watch(ws);
    return RNL_DONE;
}

/* ---- atomics ---- */

static int atomic_carried(struct rnl_windows *ws, struct rnl_import *m, const struct window_atomic *h, uint64_t *before,
                          rnl_token *t)
{
    struct window_peer *p = m->peer;
    struct window_atomic head = *h;
    struct window_op *op = rnl_window_op_new(WINDOW_CHANGED);
    if (!op)
        return RNL_ERR_NO_MEMORY;
    op->to = (unsigned char *)before;
    op->token = t;
    t->state = 1;
    rnl_window_op_add(p, op);
    head.tag = op->tag;
    head.grant = m->grant;
    head.generation = m->generation;
    int status = rnl_window_post(ws, p, WINDOW_ATOMIC, &head, sizeof head, sizeof(struct window_changed));
    if (status < 0) {
        rnl_window_op_remove(p, op);
        rnl_window_op_end(op, status);
    }
    return status;
}

static int check_atomic(size_t offset, unsigned bytes, enum rnl_atomic_op op)
{
    if ((unsigned)op <= RNL_ATOMIC_XOR && (bytes == 4 || bytes == 8) && offset % bytes == 0)
        return 0;
    return rnl_fail(RNL_ERR_ARG, "atomic operation %d of %u bytes at offset %zu: 4 or 8 bytes, at a multiple of that",
                    (int)op, bytes, offset);
}

/* Does it with a token, or starts it and waits. */
static int atomic(rnl_import *m, size_t offset, const struct window_atomic *h, uint64_t *before, rnl_token *t,
                  bool waits)
{
    struct rnl_windows *ws;
    int status = check_atomic(offset, h->bytes, h->op);
    unsigned char *at = status < 0 ? NULL : direct(m, offset, h->bytes);
    if (status < 0)
        return status;
    if (at) {
        status = rnl_window_atomic(at, h->bytes, h->op, h->operand, h->expected, before);
        t->state = status;
        return status < 0 || is_direct(m) ? status : rnl_window_why(m);
    }
    status = begin(m, offset, h->bytes, &ws);
    if (status < 0)
        return status;
    if (waits && !rnl_window_may_wait(ws))
        status = rnl_window_no_context();
    if (status == 0)
        status = atomic_carried(ws, m, h, before, t);
    if (status == 0 && waits)
        status = await(ws, m, t, WINDOW_WAITS_ATOMIC);
    return end(ws, m, status);
}

/* Sends one whose result nobody asks for. */
static int change(rnl_import *m, size_t offset, struct window_atomic *h)
{
    struct rnl_windows *ws;
    int status = begin(m, offset, h->bytes, &ws);
    if (status < 0)
        return status;
    h->grant = m->grant;
    h->generation = m->generation;
    m->peer->is_unsure = 1;
    return end(ws, m, rnl_window_send(ws, m->peer, WINDOW_CHANGE, h, sizeof *h, NULL, 0, 0));
}

static struct window_atomic atomic_of(size_t offset, unsigned bytes, enum rnl_atomic_op op, uint64_t operand,
                                      uint64_t expected)
{
    return (struct window_atomic){
        .bytes = (uint8_t)bytes, .op = (uint8_t)op, .offset = offset, .operand = operand, .expected = expected};
}

int rnl_atomic_any(rnl_import *m, size_t offset, unsigned bytes, enum rnl_atomic_op op, uint64_t operand,
                   uint64_t expected, uint64_t *before)
{
    rnl_token t = {0};
    int status = check_atomic(offset, bytes, op);
    struct window_atomic h = atomic_of(offset, bytes, op, operand, expected);
    if (status < 0)
        return status;
    return before || direct(m, offset, bytes) ? atomic(m, offset, &h, before, &t, true) : change(m, offset, &h);
}

int rnl_atomic_async(rnl_import *m, size_t offset, unsigned bytes, enum rnl_atomic_op op, uint64_t operand,
                     uint64_t expected, uint64_t *before, rnl_token *t)
{
    int status = check_atomic(offset, bytes, op);
    const struct window_atomic h = atomic_of(offset, bytes, op, operand, expected);
    return status < 0 ? status : atomic(m, offset, &h, before, t, false);
}

int rnl_window_on_changed(rnl_stream *s, unsigned peer, void *ctx)
{
    struct rnl_windows *ws = s->ep->windows;
    struct window_changed in;
    struct window_op *op = ws ? rnl_window_op_answered(ws, s, peer, WINDOW_CHANGED, &in, sizeof in) : NULL;
    (void)ctx;
    if (!op)
        return RNL_DONE;
    if (op->to && in.a.status == 0)
        memcpy(op->to, &in.before, sizeof in.before);
    rnl_window_op_end(op, in.a.status);
    ws->changes++;
    rnl_window_watch(ws);
    return RNL_DONE;
}

/* ---- quiet ---- */

static int lost(const struct window_peer *p)
{
    return rnl_fail(RNL_ERR_PEER_DEAD, "rank %u is gone, with the windows that it offered", p->rank);
}

static int quiet(struct rnl_windows *ws, struct window_peer *p, int64_t timeout_ns)
{
    struct window_op *op = rnl_window_op_new(WINDOW_QUIETED);
    rnl_token t = {1};
    if (!op)
        return RNL_ERR_NO_MEMORY;
    op->token = &t;
    rnl_window_op_add(p, op);
    const struct window_tag h = {op->tag};
    uint64_t deadline = rnl_window_deadline(ws, timeout_ns);
    int status = rnl_window_post(ws, p, WINDOW_QUIET, &h, sizeof h, sizeof(struct window_answer));
    p->is_unsure = 0;
    rnl_window_waits(ws, WINDOW_WAITS_QUIET, p->rank);
    while (status == 0 && rnl_token_state(&t) == 1)
        status = rnl_window_turn(ws, p->via ? p->via : ws->ep, deadline);
    if (status == RNL_ERR_FORKED)
        return status;
    rnl_window_waited(ws);
    if (rnl_token_state(&t) == 1) {
        rnl_window_op_remove(p, op);
        rnl_window_op_end(op, status);
        p->is_unsure = 1;
    } else {
        status = rnl_token_state(&t);
    }
    if (status == RNL_TIMED_OUT)
        return rnl_fail(status, "rank %u has not taken in what was put there within the time given", p->rank);
    if (status == RNL_ERR_REVOKED)
        return rnl_fail(status, "something was put to a window that rank %u does not offer any more", p->rank);
    return status == RNL_ERR_PEER_DEAD ? lost(p) : status;
}

int rnl_quiet(rnl_endpoint *ep, unsigned peer, int64_t timeout_ns)
{
    struct rnl_windows *ws;
    struct window_peer *p;
    int status = rnl_window_enter(ep, &ws);
    if (status < 0)
        return status;
    status = rnl_window_peer(ws, peer, &p);
    if (status == 0 && rnl_peer_is_dead(&ep->peer[peer]))
        status = rnl_ep_gone(ep, peer);
    else if (status == 0 && p->is_lost)
        status = lost(p);
    else if (status == 0 && p->is_unsure && p->link == WINDOW_UP)
        status = rnl_window_may_wait(ws) ? quiet(ws, p, timeout_ns) : rnl_window_no_context();
    if (status != RNL_ERR_FORKED)
        rnl_window_leave(ws);
    return status;
}

int rnl_window_on_quieted(rnl_stream *s, unsigned peer, void *ctx)
{
    struct rnl_windows *ws = s->ep->windows;
    struct window_answer a;
    struct window_op *op = ws ? rnl_window_op_answered(ws, s, peer, WINDOW_QUIETED, &a, sizeof a) : NULL;
    (void)ctx;
    if (!op)
        return RNL_DONE;
    rnl_window_op_end(op, a.status);
    ws->changes++;
    rnl_window_watch(ws);
    return RNL_DONE;
}
