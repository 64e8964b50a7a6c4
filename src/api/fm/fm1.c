/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fm1.c - FM 1.1: single calls with contiguous buffers. Handlers take whole messages and may send; a message that a
 * handler sends and that finds no room is copied and queued, within the budget of rnl_post. */
#include "runnel/fm1.h"

#include <limits.h>
#include <stdlib.h>

#include "api/fm/process.h"

static int run(const void *buf, size_t n, unsigned peer, void *ctx)
{
    (void)peer;
    FM1_handler *h = (FM1_handler *)(uintptr_t)ctx;
    h((void *)(uintptr_t)buf, (unsigned)n); /* the buffer is private to the handler, which may change it */
    return RNL_DONE;
}

static void sent(void *copy, int status)
{
    (void)status; /* on_death reports a peer's death, so it is not an error here */
    free(copy);
}

static int queue_copy(struct rnl_endpoint *ep, const struct rnl_message *b, const void *buf, size_t n)
{
    void *copy = malloc(n ? n : 1);
    if (!copy)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory to queue a message of %zu bytes", n);
    memcpy(copy, buf, n);
    struct rnl_buffer piece = {copy, n};
    int status = rnl_post(ep, b, &piece, 1, sent, copy);
    if (status < 0)
        free(copy);
    return status;
}

static int send_long(struct rnl_endpoint *ep, const struct rnl_message *b, const void *buf, size_t n)
{
    rnl_stream *s;
    if (ep->fast.in_handler && n > RNL_RESERVE_MAX)
        return queue_copy(ep, b, buf, n);
    int status = rnl_begin(ep, b, &s);
    if ((status == RNL_NO_ROOM || status == RNL_BUSY) && ep->fast.in_handler)
        return queue_copy(ep, b, buf, n);
    if (status < 0)
        return status;
    status = rnl_piece(s, buf, n);
    int ended = rnl_end(s);
    return status < 0 ? status : ended;
}

static void send(unsigned long dest, unsigned long handler, const void *buf, size_t n)
{
    struct rnl_endpoint *ep = rnl_fm_endpoint("FM_send or FM_send_4");
    unsigned peer = dest > UINT_MAX ? UINT_MAX : (unsigned)dest, id = handler > UINT_MAX ? UINT_MAX : (unsigned)handler;
    int status = n <= RNL_SHORT_MAX ? rnl_send(ep, peer, id, buf, n) : RNL_NO_ROOM;
    if (status == RNL_BUSY && ep->fast.in_handler) /* the program has a long message to that peer open */
        status = RNL_NO_ROOM;
    if (RNL_UNLIKELY(status == RNL_NO_ROOM)) {
        struct rnl_message b = {.peer = peer, .handler = id, .bound = n};
        if (n > FM1_MAX)
            status =
                rnl_fail(RNL_ERR_TOO_LONG,
                         "FM_send takes up to %d bytes, not %zu; send it in parts, or use FM 2.x streams", FM1_MAX, n);
        else
            status = n <= RNL_SHORT_MAX ? queue_copy(ep, &b, buf, n) : send_long(ep, &b, buf, n);
    }
    if (RNL_UNLIKELY(status < 0))
        rnl_fm_send_failed(status, dest);
    if (RNL_UNLIKELY(rnl_fm.poll_on_send) && !ep->fast.in_handler)
        (void)FM1_extract();
}

void FM1_send_4(unsigned long dest, unsigned long handler, int i0, int i1, int i2, int i3)
{
    int words[4] = {i0, i1, i2, i3};
    send(dest, handler, words, sizeof words);
}

void FM1_send(unsigned long dest, unsigned long handler, const void *buf, unsigned long size)
{
    send(dest, handler, buf, size);
}

int FM1_extract(void)
{
    struct rnl_endpoint *ep = rnl_fm_endpoint("FM_extract");
    uint64_t before = ep->c->messages_received;
    int64_t bytes = rnl_extract(ep, SIZE_MAX);
    if (RNL_UNLIKELY(bytes < 0)) {
        rnl_fm_error((int)bytes, FM_ANY_ID);
        return 0;
    }
    return (int)(ep->c->messages_received - before);
}

unsigned long FM1_register_handler(unsigned long id, FM1_handler *h)
{
    struct rnl_handler entry = {.whole = run, .ctx = (void *)(uintptr_t)h};
    return rnl_fm_register(id, &entry);
}

void FM1_set_parameter(int key, ...)
{
    va_list args;
    va_start(args, key);
    if (key == FM1_POLL_ON_SEND)
        rnl_fm.poll_on_send = va_arg(args, int);
    else if (!rnl_fm_parameter(key, args))
        rnl_fm_error(rnl_fail(RNL_ERR_ARG, "FM_set_parameter: there is no key %d; runnel/fm1.h lists them", key),
                     FM_ANY_ID);
    va_end(args);
}

void FM1_initialize(void)
{
    rnl_fm_initialize();
}

void FM1_finalize(void)
{
    rnl_fm_finalize();
}

unsigned long FM1_nodeid(void)
{
    return rnl_fm_nodeid();
}

unsigned long FM1_numnodes(void)
{
    return rnl_fm_numnodes();
}
