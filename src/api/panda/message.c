/* SPDX-License-Identifier: BSD-3-Clause
 *
 * message.c - messages: consumed where they lie or from a copy, and the queue of upcalls; sending a header and
 * pieces. */
#include "api/panda/session.h"

#include <stdlib.h>

#include "runnel/adapter.h"

size_t pan_proto_max_size(void)
{
    return RNL_PAN_PROTO_MAX;
}

size_t pan_rpc_proto_offset(void)
{
    return RNL_PAN_RPC_OFFSET;
}

size_t pan_group_proto_offset(void)
{
    return RNL_PAN_GROUP_OFFSET;
}

void *pan_proto_create(size_t size)
{
    void *block = calloc(1, size > RNL_PAN_PROTO_MAX ? size : RNL_PAN_PROTO_MAX);
    if (!block)
        (void)rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a header of %zu bytes", size);
    return block;
}

int pan_msg_consume(pan_msg_p m, void *dst, size_t len)
{
    if (RNL_UNLIKELY(len > m->left))
        return rnl_fail(RNL_ERR_PAST_END, "%zu bytes of a message were asked for, and %zu are left", len, m->left);
    if (m->stream && dst) {
        if (!rnl_stream_receive_short(m->stream, dst, len)) {
            int status = rnl_receive(m->stream, dst, len);
            if (status < 0)
                return status;
        }
    } else if (m->stream) {
        unsigned char skipped[512];
        for (size_t done = 0, now; done < len; done += now) {
            now = len - done < sizeof skipped ? len - done : sizeof skipped;
            int status = rnl_receive(m->stream, skipped, now);
            if (status < 0)
                return status;
        }
    } else {
        if (dst && len)
            memcpy(dst, m->at, len);
        m->at += len;
    }
    m->left -= len;
    return 0;
}

size_t pan_msg_left(pan_msg_p m)
{
    return m->left;
}

int pan_msg_sender(pan_msg_p m)
{
    return (int)m->sender;
}

void pan_msg_clear(pan_msg_p m)
{
    struct rnl_panda *p = rnl_panda_process.session;
    if (!m)
        return;
    rnl_pan_lock(p);
    if (m->in_upcall)
        m->cleared = 1; /* it is freed when the upcall has returned */
    else
        rnl_pan_msg_free(p, m);
    rnl_pan_unlock(p);
}

/* Copies what is left of the message to memory of its own. Returns 0, RNL_ERR_NO_MEMORY, or that it never comes. */
static int keep(struct pan_msg *m)
{
    if (m->own || !m->left) {
        m->stream = NULL;
        return 0;
    }
    unsigned char *own = malloc(m->left);
    if (!own)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a message of %zu bytes", m->left);
    int status = 0;
    if (m->stream)
        status = rnl_receive(m->stream, own, m->left);
    else
        memcpy(own, m->at, m->left);
    m->stream = NULL;
    m->at = m->own = own;
    return status;
}

static void call(struct rnl_panda *p, struct pan_msg *m)
{
    switch (m->kind) {
    case RNL_PAN_OF_REQUEST:
        if (p->request)
            p->request(m->upcall, m, m->proto);
        break;
    case RNL_PAN_OF_REPLY:
        m->done(m->arg, m->status, m->status < 0 ? NULL : m, m->status < 0 ? NULL : m->proto);
        m->cleared |= m->status < 0;
        break;
    case RNL_PAN_OF_GROUP:
    case RNL_PAN_OF_PORT:
        m->group(m, m->proto);
        break;
    case RNL_PAN_OF_DEATH:
        if (p->death)
            p->death(p->death_arg, (int)m->sender);
        m->cleared = 1;
        break;
    default:
        break;
    }
}

/* A message whose bytes never come, or for which there is no memory, is lost with its sender. */
static void lose(struct rnl_panda *p, struct pan_msg *m, int status)
{
    if (m->kind == RNL_PAN_OF_REPLY) {
        m->status = status;
        m->left = 0;
        return;
    }
    if (m->kind == RNL_PAN_OF_REQUEST) {
        m->upcall->next = p->free_upcalls;
        p->free_upcalls = m->upcall;
    }
    m->cleared = 1;
}

void rnl_pan_keep(struct pan_msg *m)
{
    if (keep(m) < 0)
        m->left = 0;
}

void rnl_pan_upcall(struct rnl_panda *p, struct pan_msg *m)
{
    if (RNL_LIKELY(rnl_pan_at_once(p))) {
        m->in_upcall = 1;
        call(p, m);
        rnl_pan_after_upcall(p, m);
        return;
    }
    int status = keep(m);
    if (status < 0)
        lose(p, m, status);
    if (m->cleared) {
        rnl_pan_msg_free(p, m);
        return;
    }
    p->count[RNL_PAN_QUEUED]++;
    m->next = NULL;
    *p->last = m;
    p->last = &m->next;
    if (p->poller && p->threaded && !pthread_equal(p->poll_thread, pthread_self()))
        rnl_wake(p->ep); /* a thread that sends has taken it in, and must not run it */
}

void rnl_pan_run_queue(struct rnl_panda *p)
{
    if (p->dispatching || p->held)
        return;
    p->dispatching = true;
    while (p->first && !p->held) {
        struct pan_msg *m = p->first;
        p->first = m->next;
        if (!p->first)
            p->last = &p->first;
        m->in_upcall = 1;
        rnl_pan_unlock(p);
        call(p, m);
        rnl_pan_lock(p);
        m->in_upcall = 0;
        if (m->cleared)
            rnl_pan_msg_free(p, m);
    }
    p->dispatching = false;
}

/* ---- sending ---- */

int64_t rnl_pan_check_any(const pan_iovec_t *iov, int n, const void *proto, size_t psize, size_t offset)
{
    size_t bytes = 0;
    if (!proto || psize < offset || psize > RNL_PAN_PROTO_MAX)
        return rnl_fail(RNL_ERR_ARG, "a header has %zu to %d bytes with Panda's own, not %zu", offset,
                        RNL_PAN_PROTO_MAX, psize);
    if (n < 0 || n > PAN_PIECES_MAX)
        return rnl_fail(RNL_ERR_ARG, "a message has 0 to %d pieces, not %d", PAN_PIECES_MAX, n);
    for (int i = 0; i < n; i++) {
        if (iov[i].len > UINT32_MAX - bytes)
            return rnl_fail(RNL_ERR_TOO_LONG, "a message of Panda has at most 4 GiB");
        bytes += iov[i].len;
    }
    return (int64_t)bytes;
}

static int compose(struct rnl_panda *p, uint32_t dest, unsigned handler, const void *proto, size_t psize,
                   const pan_iovec_t *iov, int n, size_t bytes)
{
    const struct rnl_message b = {.peer = dest, .handler = handler, .bound = psize + bytes, .answer = 0, .flags = 0};
    rnl_stream *s;
    int status = rnl_begin(p->ep, &b, &s);
    if (status < 0)
        return status;
    status = rnl_piece(s, proto, psize);
    for (int i = 0; i < n && status == 0; i++)
        if (iov[i].len)
            status = rnl_piece(s, iov[i].data, iov[i].len);
    int ended = status < 0 ? rnl_abort(s) : rnl_end(s);
    return status < 0 ? status : ended;
}

int rnl_pan_send_any(struct rnl_panda *p, uint32_t dest, unsigned handler, const void *proto, size_t psize,
                     const pan_iovec_t *iov, int n, size_t bytes)
{
    for (;;) {
        int status = compose(p, dest, handler, proto, psize, iov, n, bytes);
        if (RNL_LIKELY(status != RNL_BUSY))
            return status;
        if (p->ep->fast.in_handler)
            return RNL_NO_ROOM;
        /* Another thread's message to that process is open: it waits for room. */
        int64_t got = rnl_wait(p->ep, 100000);
        if (got < 0 && got != RNL_TIMED_OUT && got != RNL_INTERRUPTED)
            return (int)got;
    }
}
