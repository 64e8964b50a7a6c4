/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fuzz_take.c - an endpoint whose peer writes any lines, positions and bulk bytes: it must end in RNL_ERR_PEER_BROKEN
 * or in messages, never outside its mapping, and close must end. Input: records of 1 + 63 bytes. The first byte says
 * what the rest is (a line of lane 0 or 1 with the sequence number that is due, the raw side page, bulk bytes). */
#include <stdlib.h>
#include <string.h>

#include "endpoint/endpoint.h"
#include "job/job.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int on_stream(rnl_stream *s, unsigned peer, void *ctx)
{
    static unsigned char buf[70000];
    unsigned *calls = ctx;
    size_t n = rnl_peek(s, NULL);
    (void)peer;
    (*calls)++;
    if (rnl_receive(s, buf, n < sizeof buf ? n / 2 : 100) < 0)
        return RNL_DONE;
    if (*calls % 3 == 0)
        (void)!rnl_reply(s, 1, buf, n % 200);
    (void)!rnl_receive(s, buf, n - n / 2 < sizeof buf ? n - n / 2 : 7);
    return *calls % 5 == 0 ? RNL_REJECT(3) : RNL_DONE;
}

static int on_whole(const void *buf, size_t n, unsigned peer, void *ctx)
{
    volatile unsigned char sum = 0;
    (void)peer;
    (void)ctx;
    for (size_t i = 0; buf && i < n; i += 61)
        sum = (unsigned char)(sum + ((const unsigned char *)buf)[i]);
    return RNL_DONE;
}

static void write_record(struct rnl_conn *conn, const uint8_t *record, size_t n)
{
    if (n < 2)
        return;
    unsigned lane = record[0] & 1;
    struct rnl_rx *r = &conn->channel.rx[lane];
    struct rnl_control_page *theirs = conn->channel.theirs;
    if ((record[0] & 6) == 6) { /* anything, anywhere in the page they write */
        memcpy((unsigned char *)theirs + (size_t)record[1] * 15, record + 1, n - 1);
        return;
    }
    if ((record[0] & 6) == 4 && r->bulk) {
        memcpy((unsigned char *)(uintptr_t)r->bulk + (size_t)record[1] * 4096, record + 1, n - 1);
        return;
    }
    int append = (r->pos & 7) != 0 && !(record[0] & 8);
    struct rnl_cell *to = append ? r->last : r->next;
    uint64_t start = append ? r->pos & ~(uint64_t)7 : r->next_pos;
    rnl_header h = 0;
    memcpy(&h, record + 1, n - 1 < 8 ? n - 1 : 8);
    if (n > 9)
        memcpy(to->payload, record + 9, n - 9);
    /* The number of items is drawn by bits 34 to 36, which are zero in a header. */
    rnl_header drawn = (rnl_header)7 << 34;
    atomic_store_explicit(&to->header, (h & ~drawn & ~(rnl_header)0xffff) | (uint16_t)(start + ((h & drawn) >> 34)),
                          memory_order_release);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rnl_hub *hub;
    rnl_endpoint *ep;
    struct rnl_conn *conn;
    unsigned calls = 0;
    if (rnl_hub_new(2, &hub) < 0)
        return 0;
    struct rnl_options opt = {.size = sizeof opt, .hub = hub, .stacks = 2, .handlers = 8};
    if (rnl_open(&ep, &opt) < 0 || rnl_ep_connect(ep, 1, &conn) < 0)
        abort();
    (void)!rnl_handler_stream(ep, 0, on_stream, &calls);
    (void)!rnl_handler_stream(ep, 1, on_stream, &calls);
    (void)!rnl_handler_whole(ep, 2, on_whole, NULL, 0);
    (void)!rnl_handler_whole(ep, 3, on_whole, NULL, RNL_IN_PLACE);
    conn->lane1_polled = 1;
    for (size_t at = 0; at < size && !conn->gone; at += 64) {
        write_record(conn, data + at, size - at < 64 ? size - at : 64);
        if (rnl_extract(ep, SIZE_MAX) < 0)
            abort();
        (void)!rnl_send(ep, 1, 0, "x", 1); /* 20 lines fit: it never waits */
        if (at > 64 * 20)
            break;
    }
    rnl_hub_kill(hub, 1, RNL_DEATH_SIGNAL, 9);
    (void)!rnl_extract(ep, SIZE_MAX);
    rnl_ep_free(ep);
    rnl_hub_free(hub);
    return 0;
}
