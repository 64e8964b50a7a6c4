/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fm.c - FM 2.x on streams: an FM_stream is a rnl_stream. What FM adds: errors go to a handler, sends to the dead are
 * swallowed, and a suspended handler whose sender died is dropped. */
#include "runnel/fm.h"

#include <limits.h>

#include "fm/process.h"
#include "stream/lone.h"

/* Where messages to the dead go; its endpoint has nothing open, so the short path is never taken. */
static struct rnl_stream swallow = {.state = RNL_STREAM_SWALLOW, .ep = &rnl_fm_nowhere};

static int run(rnl_stream *s, unsigned peer, void *ctx)
{
    FM_handler *h = (FM_handler *)(uintptr_t)ctx;
    return h((FM_stream *)s, peer) == FM_QUIT ? RNL_QUIT : RNL_DONE;
}

/* The message that is open to this peer may end without the caller: it is another thread's or a handler's, or it is the
 * program's and the caller a handler. */
static int may_end(const struct rnl_endpoint *ep, unsigned peer)
{
    return rnl_fm.threads || ep->in_handler || ep->conn[peer]->out[0].owner != NULL;
}

static RNL_NOINLINE FM_stream *begin_slow(unsigned long dest, unsigned long length, unsigned long handler)
{
    struct rnl_begin b = {.peer = dest > UINT_MAX ? UINT_MAX : (unsigned)dest,
                          .handler = handler > UINT_MAX ? UINT_MAX : (unsigned)handler,
                          .bound = length};
    struct rnl_endpoint *ep = rnl_fm_endpoint("FM_begin_message");
    rnl_stream *s = rnl_stream_begin_other(ep, dest, handler, length);
    if (s)
        return (FM_stream *)s;
    int status = rnl_begin(ep, &b, &s);
    if (status == 0)
        return (FM_stream *)s;
    if (status == RNL_NO_ROOM || (status == RNL_BUSY && may_end(ep, b.peer)))
        return NULL;
    return rnl_fm_send_failed(status, dest) ? (FM_stream *)&swallow : NULL;
}

FM_stream *FM_begin_message(unsigned long dest, unsigned long length, unsigned long handler)
{
    struct rnl_stream *s = rnl_stream_begin_short(rnl_fm.here, dest, handler, length);
    return RNL_LIKELY(s != NULL) ? (FM_stream *)s : begin_slow(dest, length, handler);
}

static RNL_NOINLINE void piece_slow(rnl_stream *s, const void *buf, unsigned long bytes)
{
    if (s == &swallow)
        return;
    int status = rnl_piece(s, buf, bytes);
    if (status < 0)
        rnl_fm_send_failed(status, s->conn->rank);
}

void FM_send_piece(FM_stream *stream, const void *buf, unsigned long bytes)
{
    rnl_stream *s = (rnl_stream *)stream;
    if (RNL_UNLIKELY(!rnl_stream_piece_short(s, buf, bytes)))
        piece_slow(s, buf, bytes);
}

static RNL_NOINLINE void end_slow(rnl_stream *s)
{
    if (s == &swallow)
        return;
    int status = rnl_end(s);
    if (status < 0)
        rnl_fm_send_failed(status, s->conn->rank);
}

void FM_end_message(FM_stream *stream)
{
    rnl_stream *s = (rnl_stream *)stream;
    if (RNL_UNLIKELY(!rnl_stream_end_short(s)))
        end_slow(s);
}

static RNL_NOINLINE int extracted_odd(int64_t bytes)
{
    if (bytes >= 0)
        return INT_MAX;
    rnl_fm_error((int)bytes, FM_ANY_ID);
    return 0;
}

/* Of every way but the shortest. */
static int64_t extracted(int64_t bytes)
{
    return RNL_UNLIKELY((uint64_t)bytes > INT_MAX) ? extracted_odd(bytes) : bytes;
}

static RNL_NOINLINE int64_t extract_any(struct rnl_endpoint *ep, size_t max)
{
    (void)ep; /* rnl_fm_nowhere? */
    return extracted(rnl_stream_extract_any(rnl_fm_endpoint("FM_extract"), max));
}

static RNL_NOINLINE int64_t extract_search(struct rnl_endpoint *ep, size_t max)
{
    return extracted(rnl_stream_extract_search(ep, max));
}

static RNL_NOINLINE int64_t extract_told(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn)
{
    return extracted(rnl_stream_extract_told(ep, max, conn));
}

static RNL_NOINLINE int64_t extract_more(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn, int quits)
{
    return extracted(rnl_stream_extract_more(ep, max, conn, quits ? RNL_QUIT : RNL_DONE));
}

static RNL_NOINLINE int64_t extract_again(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn)
{
    return extracted(rnl_stream_extract_again(ep, max, conn));
}

RNL_INLINE int64_t extract_lone(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn, rnl_head h, unsigned ack);
static const struct rnl_stream_ways ways = {
    .lone = extract_lone,
    .told = extract_told,
    .any = extract_any,
    .search = extract_search,
    .more = extract_more,
    .again = extract_again,
    .two_fit = 1,
};
static const struct rnl_stream_ways ways_long = {
    .told = extract_told,
    .any = extract_any,
    .more = extract_more,
    .again = extract_again,
};

/* What `run` does. */
RNL_INLINE int call_fm(struct rnl_stream *s, unsigned peer)
{
    FM_handler *h = (FM_handler *)(uintptr_t)s->h.ctx;
    return h((FM_stream *)s, peer) == FM_QUIT;
}

static RNL_NOINLINE int64_t extract_other(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn, rnl_head h)
{
    if (RNL_LIKELY(conn->in[0].ready == (RNL_READY_FM | RNL_READY_LONG) && max > 0))
        return rnl_stream_take_one(ep, max, conn, h, RNL_HEAD_ACK(h), call_fm, &ways_long);
    return extracted(rnl_stream_extract_one(ep, max, conn, h));
}

RNL_INLINE int64_t extract_lone(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn, rnl_head h, unsigned ack)
{
    if (RNL_UNLIKELY(conn->in[0].ready != RNL_READY_FM || max == 0))
        return extract_other(ep, max, conn, h);
    return rnl_stream_take_one(ep, max, conn, h, ack, call_fm, &ways);
}

int FM_extract(unsigned long maxbytes)
{
    return (int)rnl_stream_extract_first(rnl_fm.here, maxbytes, &ways);
}

static RNL_NOINLINE void receive_slow(void *buffer, rnl_stream *s, unsigned long bytes)
{
    int status = rnl_receive(s, buffer, bytes);
    if (status < 0) {
        rnl_fm_error(status, s->conn->rank);
        memset(buffer, 0, bytes);
    }
}

static RNL_NOINLINE void receive_other(void *buffer, rnl_stream *s, unsigned long bytes)
{
    if (RNL_UNLIKELY(!rnl_stream_receive_short(s, buffer, bytes)))
        receive_slow(buffer, s, bytes);
}

void FM_receive(void *buffer, FM_stream *stream, unsigned long bytes)
{
    rnl_stream *s = (rnl_stream *)stream;
    if (RNL_UNLIKELY(bytes != 8 || !rnl_stream_receive_8(s, buffer)))
        receive_other(buffer, s, bytes);
}

unsigned long FM_register_handler(unsigned long id, FM_handler *h)
{
    struct rnl_handler entry = {.stream = run, .ctx = (void *)(uintptr_t)h, .flags = RNL_HANDLER_DROP | RNL_HANDLER_FM};
    return rnl_fm_register(id, &entry);
}

void FM_reallocate_credit(void)
{
    struct rnl_endpoint *ep = rnl_fm_endpoint("FM_reallocate_credit");
    if (rnl_ep_enter(ep) == 0) {
        rnl_ep_reallocate(ep);
        rnl_ep_leave(ep);
    }
}

int FM_wait(long timeout_us)
{
    return rnl_fm_wait(timeout_us);
}

int FM_fd(void)
{
    int fd = rnl_fd(rnl_fm_endpoint("FM_fd"));
    if (fd < 0)
        rnl_fm_error(fd, FM_ANY_ID);
    return fd;
}

void FM_set_parameter(int key, ...)
{
    va_list args;
    va_start(args, key);
    if (!rnl_fm_parameter(key, args))
        rnl_fm_error(rnl_fail(RNL_ERR_ARG, "FM_set_parameter: there is no key %d; runnel/fm.h lists them", key),
                     FM_ANY_ID);
    va_end(args);
}

void FM_initialize(void)
{
    rnl_fm_initialize();
}

void FM_finalize(void)
{
    rnl_fm_finalize();
}

unsigned long FM_nodeid_of_endpoint(void)
{
    return rnl_fm_nodeid();
}

unsigned long FM_numnodes_of_endpoint(void)
{
    return rnl_fm_numnodes();
}
