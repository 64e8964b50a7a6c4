/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fm.c - FM 2.x on streams: an FM_stream is a rnl_stream. FM adds that errors go to an error handler, that messages to
 * dead peers are discarded, and that a suspended handler whose sender died is dropped. */
#include "runnel/fm.h"

#include <limits.h>

#include "api/fm/process.h"
#include "stream/poll.h"

/* The stream that discards messages to dead peers. Its endpoint has nothing open, so the fast path is never taken. */
static struct rnl_stream discarded = {.state = RNL_STREAM_DISCARD_OUT, .ep = &rnl_fm_nowhere};

static int run(rnl_stream *s, unsigned peer, void *ctx)
{
    FM_handler *h = (FM_handler *)(uintptr_t)ctx;
    return h((FM_stream *)s, peer) == FM_QUIT ? RNL_QUIT : RNL_DONE;
}

/* Whether the message that is open to this peer may be ended by somebody else than the caller: by the handler that
 * opened it, or, if the caller is a handler, by the program. Where threads share the endpoint, begin has waited. */
static bool may_end(const struct rnl_endpoint *ep, unsigned peer)
{
    return !rnl_fm.threads && (ep->fast.in_handler || rnl_stream_out(ep->fast.conn[peer])->owner != NULL);
}

static RNL_NOINLINE FM_stream *begin_slow(unsigned long dest, unsigned long length, unsigned long handler)
{
    struct rnl_message b = {.peer = dest > UINT_MAX ? UINT_MAX : (unsigned)dest,
                            .handler = handler > UINT_MAX ? UINT_MAX : (unsigned)handler,
                            .bound = length};
    struct rnl_endpoint *ep = rnl_fm_endpoint("FM_begin_message");
    rnl_stream *s = rnl_stream_begin_other(ep, dest, handler, length);
    if (s)
        return (FM_stream *)s;
    int status = rnl_begin(ep, &b, &s);
    while (status == RNL_BUSY && rnl_fm.threads && (status = rnl_stream_wait_ended(ep, b.peer)) == 0)
        status = rnl_begin(ep, &b, &s);
    if (status == 0)
        return (FM_stream *)s;
    if (status == RNL_NO_ROOM || (status == RNL_BUSY && may_end(ep, b.peer)))
        return NULL;
    return rnl_fm_send_failed(status, dest) ? (FM_stream *)&discarded : NULL;
}

FM_stream *FM_begin_message(unsigned long dest, unsigned long length, unsigned long handler)
{
    struct rnl_stream *s = rnl_stream_begin_short(rnl_fm.here, dest, handler, length);
    return RNL_LIKELY(s) ? (FM_stream *)s : begin_slow(dest, length, handler);
}

static RNL_NOINLINE void piece_slow(rnl_stream *s, const void *buf, unsigned long bytes)
{
    if (s == &discarded)
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
    if (s == &discarded)
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

/* ---- polling: FM's instance of stream/poll.h ---- */

enum { FM_KIND = RNL_KIND_OWN };

/* Calls the handler as `run` does, inlined. */
RNL_INLINE int call_fm(struct rnl_stream *s, unsigned peer)
{
    FM_handler *h = (FM_handler *)(uintptr_t)s->h.ctx;
    return h((FM_stream *)s, peer) == FM_QUIT ? RNL_QUIT : RNL_DONE;
}

static RNL_NOINLINE int64_t poll_general(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn, rnl_header h,
                                         enum rnl_found found)
{
    if (RNL_UNLIKELY(found == RNL_FOUND_UNKNOWN)) /* ep may be rnl_fm_nowhere, which has no handlers */
        ep = rnl_fm_endpoint("FM_extract");
    int64_t bytes = rnl_stream_poll_general(ep, max, conn, h, found);
    if (RNL_LIKELY((uint64_t)bytes <= INT_MAX))
        return bytes;
    if (bytes > 0)
        return INT_MAX;
    rnl_fm_error((int)bytes, FM_ANY_ID);
    return 0;
}

RNL_INLINE int64_t deliver_fm(struct rnl_endpoint *ep, size_t max, struct rnl_conn *conn, rnl_header h, unsigned ack)
{
    return rnl_stream_deliver_single(ep, max, conn, h, ack, (enum rnl_kind)FM_KIND, call_fm, poll_general);
}

int FM_extract(unsigned long maxbytes)
{
    return (int)rnl_stream_poll_fast(rnl_fm.here, maxbytes, (enum rnl_kind)FM_KIND, deliver_fm, poll_general);
}

/* ---- in handlers ---- */

static RNL_NOINLINE void receive_slow(void *buffer, rnl_stream *s, unsigned long bytes)
{
    int status = rnl_receive(s, buffer, bytes);
    if (status == RNL_ERR_CONTEXT)
        (void)rnl_fail(status, "FM_receive belongs inside the handler of this message");
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
    struct rnl_handler entry = {
        .stream = run, .ctx = (void *)(uintptr_t)h, .flags = rnl_handler_flags(&rnl_fm_iface), .kind = FM_KIND};
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
