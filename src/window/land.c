/* SPDX-License-Identifier: BSD-3-Clause
 *
 * land.c - what is carried lands here: handlers of the owner's library, which check each access against what was
 * granted and do it in the window. A handler that waits for bytes holds no address of the window meanwhile, since the
 * offer may be revoked and the memory freed; what it had found it looks up again. */
#include "base/bug.h"
#include "window/window_internal.h"

#include "stream/request.h"

enum { LINE = 64, TAIL = 15 /* most bytes of the end of a put that are stored after the others */ };

bool rnl_window_in(size_t bytes, uint64_t offset, uint64_t n)
{
    return offset <= bytes && n <= bytes - offset;
}

/* ---- storing ---- */

/* Returns how many bytes at the end of n bytes at `at` are stored last: its last aligned word and what follows. */
static size_t tail_bytes(const unsigned char *at, size_t n)
{
    size_t over = (uintptr_t)(at + n) & 7;
    return n >= 8 + over ? 8 + over : n <= TAIL ? n : 8 + over;
}

/* Stores the end of a put: all of it, then the aligned word, or the last byte where there is none. */
static void store_tail(unsigned char *at, const unsigned char *from, size_t n)
{
    size_t over = (uintptr_t)(at + n) & 7;
    if (n >= 8 + over) {
        size_t i = n - over - 8;
        uint64_t word;
        memcpy(at, from, i);
        memcpy(at + i + 8, from + i + 8, over);
        memcpy(&word, from + i, 8);
        __atomic_store_n((uint64_t *)(void *)(at + i), word, __ATOMIC_RELEASE); /* pairs with the owner's load */
    } else if (n == 4 && ((uintptr_t)at & 3) == 0) {
        uint32_t half;
        memcpy(&half, from, 4);
        __atomic_store_n((uint32_t *)(void *)at, half, __ATOMIC_RELEASE); /* the same */
    } else if (n == 2 && ((uintptr_t)at & 1) == 0) {
        uint16_t quarter;
        memcpy(&quarter, from, 2);
        __atomic_store_n((uint16_t *)(void *)at, quarter, __ATOMIC_RELEASE); /* the same */
    } else if (n) {
        memcpy(at, from, n - 1);
        __atomic_store_n(at + n - 1, from[n - 1], __ATOMIC_RELEASE); /* the same */
    }
}

void rnl_window_store(unsigned char *at, const void *from, size_t n, unsigned distance)
{
    size_t tail = tail_bytes(at, n), first = n - tail;
    if (first)
        rnl_copy_put(at, from, first, distance & RNL_FAR);
    store_tail(at + first, (const unsigned char *)from + first, tail);
}

#define ATOMIC(type)                                                                                            \
    static uint64_t atomic_##type(type *word, unsigned op, type operand, type expected)                         \
    {                                                                                                           \
        switch (op) {                                                                                           \
        case RNL_ATOMIC_ADD:                                                                                    \
            return __atomic_fetch_add(word, operand, __ATOMIC_SEQ_CST);                                         \
        case RNL_ATOMIC_SWAP:                                                                                   \
            return __atomic_exchange_n(word, operand, __ATOMIC_SEQ_CST);                                        \
        case RNL_ATOMIC_COMPARE_SWAP:                                                                           \
            (void)__atomic_compare_exchange_n(word, &expected, operand, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
            return expected;                                                                                    \
        case RNL_ATOMIC_AND:                                                                                    \
            return __atomic_fetch_and(word, operand, __ATOMIC_SEQ_CST);                                         \
        case RNL_ATOMIC_OR:                                                                                     \
            return __atomic_fetch_or(word, operand, __ATOMIC_SEQ_CST);                                          \
        default:                                                                                                \
            return __atomic_fetch_xor(word, operand, __ATOMIC_SEQ_CST);                                         \
        }                                                                                                       \
    }
ATOMIC(uint32_t)
ATOMIC(uint64_t)

int rnl_window_atomic(unsigned char *at, unsigned bytes, unsigned op, uint64_t operand, uint64_t expected,
                      uint64_t *before)
{
    uint64_t was;
    if (op > RNL_ATOMIC_XOR || (bytes != 4 && bytes != 8) || (uintptr_t)at % bytes != 0)
        return rnl_fail(RNL_ERR_ARG, "atomic operation %u of %u bytes at %p: unknown, or not aligned", op, bytes,
                        (void *)at);
    if (bytes == 8)
        was = atomic_uint64_t((uint64_t *)(void *)at, op, operand, expected);
    else
        was = atomic_uint32_t((uint32_t *)(void *)at, op, (uint32_t)operand, (uint32_t)expected);
    if (before)
        *before = was;
    return 0;
}

/* ---- handlers ---- */

static void refuse(struct rnl_windows *ws, struct window_peer *p)
{
    p->refused = 1;
    ws->count[WINDOW_REFUSED]++;
}

/* Gets the sender's record and the message's head. */
static struct window_peer *begin(rnl_stream *s, unsigned peer, void *head, size_t n)
{
    struct rnl_windows *ws = s->ep->windows;
    struct window_peer *p = ws ? rnl_window_sender(ws, s, peer) : NULL;
    return p && rnl_receive(s, head, n) == 0 ? p : NULL;
}

/* Returns the grant that the put names, if all its bytes lie in the window. */
static struct window_grant *find(struct window_peer *p, const struct window_put *h)
{
    struct window_grant *g = rnl_window_granted(p, h->grant, h->generation);
    return g && (rnl_window_in(g->window->pages.bytes, h->offset, h->n) || RNL_BUG(window_end_unchecked)) ? g : NULL;
}

/* Receives n bytes to `done` of the put, in pieces. */
static bool land_first(rnl_stream *s, struct window_peer *p, const struct window_put *h, size_t n)
{
    unsigned char line[LINE];
    for (size_t done = 0; done < n;) {
        struct window_grant *g = find(p, h);
        size_t here = rnl_peek(s, NULL), left = n - done;
        if (!g)
            return false;
        unsigned char *to = g->window->pages.at + h->offset + done;
        if (here > left)
            here = left;
        if (here) {
            if (rnl_receive(s, to, here) < 0)
                return false;
        } else {
            here = left < LINE ? left : LINE;
            if (rnl_receive(s, line, here) < 0 || !(g = find(p, h)))
                return false;
            memcpy(g->window->pages.at + h->offset + done, line, here);
        }
        done += here;
    }
    return true;
}

static struct window_grant *land(rnl_stream *s, struct window_peer *p, const struct window_put *h)
{
    unsigned char tail[TAIL];
    struct window_grant *g = find(p, h);
    if (!g)
        return NULL;
    size_t last = tail_bytes(g->window->pages.at + h->offset, h->n), first = h->n - last;
    if (!land_first(s, p, h, first) || rnl_receive(s, tail, last) < 0 || !(g = find(p, h)))
        return NULL;
    store_tail(g->window->pages.at + h->offset + first, tail, last);
    return g;
}

static int put(rnl_stream *s, unsigned peer, bool notify)
{
    struct window_put h;
    struct window_peer *p = begin(s, peer, &h, sizeof h);
    if (!p)
        return RNL_DONE;
    struct window_grant *g = land(s, p, &h);
    struct rnl_windows *ws = s->ep->windows;
    if (!ws)
        return RNL_DONE; /* the endpoint was forked, or is being freed */
    if (!g)
        refuse(ws, p);
    else if (notify)
        rnl_window_note(ws, g, h.offset, h.n);
    return RNL_DONE;
}

int rnl_window_on_put(rnl_stream *s, unsigned peer, void *ctx)
{
    (void)ctx;
    return put(s, peer, false);
}

int rnl_window_on_put_notify(rnl_stream *s, unsigned peer, void *ctx)
{
    (void)ctx;
    return put(s, peer, true);
}

int rnl_window_on_notify(rnl_stream *s, unsigned peer, void *ctx)
{
    struct window_put h;
    struct window_peer *p = begin(s, peer, &h, sizeof h);
    (void)ctx;
    if (!p)
        return RNL_DONE;
    struct window_grant *g = find(p, &h);
    if (g)
        rnl_window_note(s->ep->windows, g, h.offset, h.n);
    else
        refuse(s->ep->windows, p);
    return RNL_DONE;
}

int rnl_window_on_get(rnl_stream *s, unsigned peer, void *ctx)
{
    struct window_get h;
    struct window_peer *p = begin(s, peer, &h, sizeof h);
    (void)ctx;
    if (!p)
        return RNL_DONE;
    struct window_answer a = {.tag = h.tag};
    const void *from = NULL;
    struct window_grant *g = rnl_window_granted(p, h.grant, h.generation);
    if (!g)
        a.status = RNL_ERR_REVOKED;
    else if (!rnl_window_in(g->window->pages.bytes, h.offset, h.n) || h.n > WINDOW_GET_BYTES)
        a.status = RNL_ERR_PAST_END;
    else
        from = g->window->pages.at + h.offset;
    if (!from)
        s->ep->windows->count[WINDOW_REFUSED]++;
    (void)!rnl_stream_reply(s, RNL_LIBRARY_ID + WINDOW_GOT, &a, sizeof a, from, from ? h.n : 0);
    return RNL_DONE;
}

static int change(struct rnl_windows *ws, struct window_peer *p, const struct window_atomic *h, uint64_t *before)
{
    struct window_grant *g = rnl_window_granted(p, h->grant, h->generation);
    int status = !g                                                            ? RNL_ERR_REVOKED
                 : !rnl_window_in(g->window->pages.bytes, h->offset, h->bytes) ? RNL_ERR_PAST_END
                                                                               : 0;
    if (status == 0)
        status = rnl_window_atomic(g->window->pages.at + h->offset, h->bytes, h->op, h->operand, h->expected, before);
    if (status < 0)
        ws->count[WINDOW_REFUSED]++;
    return status;
}

int rnl_window_on_change(rnl_stream *s, unsigned peer, void *ctx)
{
    struct window_atomic h;
    struct window_peer *p = begin(s, peer, &h, sizeof h);
    (void)ctx;
    if (p && change(s->ep->windows, p, &h, NULL) < 0)
        p->refused = 1;
    return RNL_DONE;
}

int rnl_window_on_atomic(rnl_stream *s, unsigned peer, void *ctx)
{
    struct window_atomic h;
    struct window_changed out = {.before = 0};
    struct window_peer *p = begin(s, peer, &h, sizeof h);
    (void)ctx;
    if (!p)
        return RNL_DONE;
    out.a.tag = h.tag;
    out.a.status = change(s->ep->windows, p, &h, &out.before);
    (void)!rnl_reply(s, RNL_LIBRARY_ID + WINDOW_CHANGED, &out, sizeof out);
    return RNL_DONE;
}

/* All that was sent before has landed: a lane is taken in in order. */
int rnl_window_on_quiet(rnl_stream *s, unsigned peer, void *ctx)
{
    struct window_tag h;
    struct window_peer *p = begin(s, peer, &h, sizeof h);
    (void)ctx;
    if (!p)
        return RNL_DONE;
    const struct window_answer a = {.tag = h.tag, .status = p->refused ? RNL_ERR_REVOKED : 0};
    p->refused = 0;
    (void)!rnl_reply(s, RNL_LIBRARY_ID + WINDOW_QUIETED, &a, sizeof a);
    return RNL_DONE;
}
