/* SPDX-License-Identifier: BSD-3-Clause
 *
 * handler.c - what handlers call: receive, peek, keep; reply.c has their replies. A handler on a coroutine is suspended
 * only in receive (or keep), when it has taken every byte that arrived. So it holds no ring space and waits for its
 * stream alone (clause d of the deadlock rule). */
#include <stdlib.h>

#include "base/bug.h"
#include "stream/stream_internal.h"

enum { KEEP_MIN = RNL_GRANT_MIN / 2 /* units that kept messages never take from a peer */ };

/* ---- taking bytes ---- */

int rnl_stream_lost(const struct rnl_stream *s)
{
    if (s->lost == RNL_ERR_ABORTED)
        return rnl_fail(RNL_ERR_ABORTED,
                        "rank %u aborted this message before it was complete: drop what came of it and return",
                        s->conn->rank);
    if (s->lost == RNL_ERR_JOB)
        return rnl_fail(RNL_ERR_JOB, "the rest of this message never comes: the launcher of this job is gone, or this "
                                     "endpoint is being closed");
    return rnl_ep_gone(s->ep, s->conn->rank);
}

/* Suspends the handler until `n` bytes are in buf, or the message ends or is lost. Returns the bytes in buf, or a
 * negative status. */
static int64_t wait_bytes(struct rnl_stream *s, unsigned char *buf, size_t n)
{
    s->want = buf;
    s->want_bytes = n;
    s->state = RNL_STREAM_SUSPENDED;
    rnl_stream_promote(s->ep); /* so that a short message which this handler has open is marked as a handler's */
    rnl_coro_yield(s->coro);
    if (s->want_bytes && s->lost)
        return rnl_stream_lost(s);
    return (int64_t)(n - s->want_bytes);
}

static RNL_NOINLINE int receive_slow(struct rnl_stream *s, void *buf, size_t n)
{
    size_t arrived = (size_t)(s->end - s->at);
    if (rnl_ep_forked(s->ep))
        return rnl_ep_enter_slow(s->ep);
    if (s->state != RNL_STREAM_INLINE && s->state != RNL_STREAM_RUNNING)
        return rnl_fail(RNL_ERR_CONTEXT, "a message is received inside its own handler only");
    if (n <= arrived) {
        rnl_stream_take_bytes(s, buf, n);
        return 0;
    }
    if (s->lost)
        return rnl_stream_lost(s);
    if (s->last || n > s->bound - rnl_stream_received(s))
        return rnl_fail(RNL_ERR_PAST_END, "%zu bytes asked for, but this message has only %zu left", n,
                        s->last ? arrived : (size_t)(s->bound - rnl_stream_received(s)));
    rnl_stream_take_bytes(s, buf, arrived);
    int64_t got = wait_bytes(s, (unsigned char *)buf + arrived, n - arrived);
    if (got < 0)
        return (int)got;
    if ((size_t)got < n - arrived)
        return rnl_fail(RNL_ERR_PAST_END, "%zu bytes asked for, but the message ended after %zu more", n,
                        arrived + (size_t)got);
    return 0;
}

static RNL_NOINLINE int receive_other(struct rnl_stream *s, void *buf, size_t n)
{
    const unsigned char *at = s->at;
    if (rnl_stream_receive_short(s, buf, n))
        return 0;
    if (n <= RNL_CELL_PAYLOAD || n > (size_t)(s->end - at) || s->state != RNL_STREAM_INLINE || rnl_ep_forked(s->ep))
        return receive_slow(s, buf, n);
    s->at += n;
    rnl_stream_copy_out(s, buf, at, n);
    return 0;
}

int rnl_receive(rnl_stream *s, void *buf, size_t n)
{
    return RNL_LIKELY(n == 8 && rnl_stream_receive_8(s, buf)) ? 0 : receive_other(s, buf, n);
}

size_t rnl_peek(rnl_stream *s, const void **view)
{
    if (view)
        *view = s->at;
    return (size_t)(s->end - s->at);
}

/* ---- keeping ---- */

/* A message that the program keeps: a private copy. The peer gets its units back when it is freed. */
struct rnl_kept {
    struct rnl_endpoint *ep;
    struct rnl_conn *conn;
    size_t bytes;
    uint64_t units;
    unsigned char data[];
};

int rnl_keep(rnl_stream *s, rnl_kept **out)
{
    struct rnl_endpoint *ep = s->ep;
    if (ep->fast.open == RNL_EP_FORKED)
        return rnl_ep_enter_slow(ep);
    if ((s->state != RNL_STREAM_INLINE && s->state != RNL_STREAM_RUNNING) || s->lane != 0)
        return rnl_fail(RNL_ERR_CONTEXT, "rnl_keep belongs inside the handler of a message that is no reply");
    if (s->lost)
        return rnl_stream_lost(s);
    size_t left = s->last ? (size_t)(s->end - s->at) : (size_t)(s->bound - rnl_stream_received(s));
    if (ep->credit.kept_bytes + ep->credit.reassembly_bytes + left > ep->credit.budget)
        return rnl_fail(
            RNL_NO_ROOM,
            "keeping %zu bytes more would pass the receive budget of %llu; free kept messages, or raise receive_budget",
            left, (unsigned long long)ep->credit.budget);
    struct rnl_rx *r = &s->conn->channel.rx[0];
    if (r->withheld + 1 + left / 64 + KEEP_MIN > r->outstanding_max)
        return rnl_fail(
            RNL_NO_ROOM,
            "rank %u has %llu of its %llu units in kept messages; the rest is for its next messages: free some",
            s->conn->rank, (unsigned long long)r->withheld, (unsigned long long)r->outstanding_max);
    struct rnl_kept *k = malloc(sizeof *k + left);
    if (!k)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory to keep %zu bytes", left);
    ep->credit.kept_bytes += left; /* other handlers may be suspended in rnl_keep, too */
    size_t arrived = (size_t)(s->end - s->at), n = arrived < left ? arrived : left;
    rnl_stream_take_bytes(s, k->data, n);
    if (!s->last && n < left) {
        int64_t got = wait_bytes(s, k->data + n, left - n);
        if (got < 0) {
            ep->credit.kept_bytes -= left;
            free(k);
            return (int)got;
        }
        n += (size_t)got;
    }
    k->ep = ep;
    k->conn = s->conn;
    k->bytes = n;
    k->units = 1 + n / 64;
    s->conn->channel.rx[0].withheld += RNL_BUG(stream_kept_not_charged) ? 0 : k->units;
    ep->credit.kept_bytes -= left - n;
    ep->c->kept_bytes = ep->credit.kept_bytes;
    *out = k;
    return 0;
}

const void *rnl_kept_data(const rnl_kept *kept, size_t *n, unsigned *peer)
{
    if (n)
        *n = kept->bytes;
    if (peer)
        *peer = kept->conn->rank;
    return kept->data;
}

void rnl_kept_free(rnl_kept *kept)
{
    if (!kept)
        return;
    struct rnl_endpoint *ep = kept->ep;
    struct rnl_conn *conn = kept->conn;
    if (rnl_ep_enter(ep) < 0)
        return;
    conn->channel.rx[0].withheld -= kept->units;
    ep->credit.kept_bytes -= kept->bytes;
    ep->c->kept_bytes = ep->credit.kept_bytes;
    if (!conn->gone) {
        rnl_rx_advertise(&conn->channel.rx[0]);
        rnl_ep_advertised(ep, conn);
    } else if (ep->retired) {
        rnl_ep_release_retired(ep, conn);
    }
    rnl_ep_leave(ep);
    free(kept);
}
