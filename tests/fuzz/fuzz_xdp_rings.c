/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fuzz_xdp_rings.c - the rings and the memory of an AF_XDP queue, which all ranks of a host and the kernel write:
 * between any two calls of an endpoint the others put what they like into descriptors, indices, flags, the lock and the
 * marks of chunks. Whatever that is, the endpoint touches nothing beside its memory, composes only in chunks of its
 * own, and needs a bounded time. Who joins a queue believes none of its memory either. */
#include <linux/if_xdp.h>
#include <sys/mman.h>
#include <unistd.h>

#include "input.h"
#include "net/socket/xdp/area.h"
#include "net/socket/xdp/frame.h"

enum { ENDPOINTS = 3, STEPS = 400, HEAD = 64 };

/* The chunks are megabytes, so they stay: what was written into them is noted, and made zeros again. */
static uint8_t *chunks[ENDPOINTS];
static uint64_t written[STEPS];
static unsigned written_count;

static struct rnl_xdp_ring ring_of(uint32_t entries, size_t entry)
{
    return (struct rnl_xdp_ring){.producer = calloc(1, 4),
                                 .consumer = calloc(1, 4),
                                 .flags = calloc(1, 4),
                                 .entries = calloc(entries, entry),
                                 .entry_count = entries};
}

static void free_ring(struct rnl_xdp_ring *r)
{
    free((void *)r->producer);
    free((void *)r->consumer);
    free((void *)r->flags);
    free(r->entries);
}

static void begin(struct rnl_xdp_rings *r, uint32_t endpoints)
{
    *r = (struct rnl_xdp_rings){.fd = -1, .endpoints = endpoints};
    r->area = calloc(1, sizeof *r->area + (size_t)endpoints * RNL_XDP_OUT);
    if (!chunks[endpoints - 1])
        chunks[endpoints - 1] = calloc(rnl_xdp_chunks(endpoints), RNL_XDP_CHUNK);
    r->chunks = chunks[endpoints - 1];
    r->fill = ring_of(rnl_xdp_power(endpoints * RNL_XDP_IN), sizeof(uint64_t));
    r->done = ring_of(rnl_xdp_power(endpoints * RNL_XDP_OUT), sizeof(uint64_t));
    r->in = ring_of(RNL_XDP_IN, sizeof(struct xdp_desc));
    r->out = ring_of(RNL_XDP_OUT, sizeof(struct xdp_desc));
}

static void end(struct rnl_xdp_rings *r)
{
    free_ring(&r->fill);
    free_ring(&r->done);
    free_ring(&r->in);
    free_ring(&r->out);
    free(r->area);
    while (written_count > 0)
        memset(r->chunks + written[--written_count], 0, HEAD);
}

/* ---- what the others do ---- */

static uint32_t lie(struct fuzz_input *in, uint32_t truth)
{
    return (uint32_t)fuzz_number(in, truth);
}

static void spoil_index(struct fuzz_input *in, struct rnl_xdp_ring *ring)
{
    _Atomic uint32_t *word = fuzz_below(in, 2) ? ring->producer : ring->consumer;
    const uint32_t truth = fuzz_below(in, 2) ? ring->mine : atomic_load(ring->producer);
    atomic_store(word, lie(in, truth));
}

/* A frame arrives, or what claims to be one. */
static void arrive(struct fuzz_input *in, struct rnl_xdp_rings *r)
{
    const uint32_t at = atomic_load(r->in.producer), chunk = fuzz_below(in, rnl_xdp_chunks(r->endpoints));
    const uint64_t address = (uint64_t)chunk * RNL_XDP_CHUNK + 256;
    struct xdp_desc *d = (struct xdp_desc *)r->in.entries + at % RNL_XDP_IN;
    fuzz_bytes(in, r->chunks + address, HEAD);
    written[written_count++] = address;
    d->addr = fuzz_number(in, address);
    d->len = lie(in, 60 + fuzz_below(in, 1600));
    atomic_store(r->in.producer, at + 1);
}

static void give_back(struct fuzz_input *in, struct rnl_xdp_rings *r)
{
    const uint32_t at = atomic_load(r->done.producer);
    ((uint64_t *)r->done.entries)[at % r->done.entry_count] =
        fuzz_number(in, (uint64_t)fuzz_below(in, r->endpoints * RNL_XDP_OUT) * RNL_XDP_CHUNK);
    atomic_store(r->done.producer, at + 1);
}

static void spoil_area(struct fuzz_input *in, struct rnl_xdp_rings *r)
{
    switch (fuzz_below(in, 3)) {
    case 0:
        atomic_store(&r->area->lock, lie(in, r->turn));
        break;
    case 1:
        atomic_store(&r->area->under_way[fuzz_below(in, r->endpoints * RNL_XDP_OUT)], (uint8_t)fuzz_below(in, 256));
        break;
    default:
        fuzz_bytes(in, (uint8_t *)r->area + fuzz_below(in, 128), 16);
    }
}

/* ---- what the endpoint does ---- */

static void receive(struct fuzz_input *in, struct rnl_xdp_rings *r)
{
    struct rnl_xdp_datagram d;
    uint8_t out[RNL_XDP_CHUNK];
    uint32_t bytes = 0;
    bool broken = false;
    const uint8_t *frame = rnl_xdp_rings_next(r, &bytes, &broken);
    FUZZ_MUST(!frame || !broken);
    if (!frame)
        return;
    const uint64_t at = (uint64_t)(frame - r->chunks);
    FUZZ_MUST(frame >= r->chunks && at < (uint64_t)rnl_xdp_chunks(r->endpoints) * RNL_XDP_CHUNK &&
              bytes <= RNL_XDP_CHUNK - at % RNL_XDP_CHUNK);
    if (rnl_xdp_frame_read(frame, bytes, &d)) {
        FUZZ_MUST(d.at <= bytes && d.bytes <= bytes - d.at);
        memcpy(out, frame + d.at, d.bytes);
    }
    if (fuzz_below(in, 4) == 0)
        spoil_index(in, &r->in);
    rnl_xdp_rings_take(r);
    FUZZ_MUST(r->free_count <= RNL_XDP_IN);
}

static void send(struct fuzz_input *in, struct rnl_xdp_rings *r)
{
    const uint32_t bytes = fuzz_below(in, RNL_XDP_FRAME_MOST + 1);
    uint8_t *room = rnl_xdp_rings_room(r);
    if (!room)
        return;
    const size_t own = (size_t)r->endpoint * RNL_XDP_OUT * RNL_XDP_CHUNK;
    FUZZ_MUST(room >= r->chunks + own && room < r->chunks + own + (size_t)RNL_XDP_OUT * RNL_XDP_CHUNK);
    memset(room, 0, bytes);
    rnl_xdp_rings_post(r, bytes);
}

static void settle(struct fuzz_input *in, struct rnl_xdp_rings *r)
{
    const uint32_t before = r->free_count;
    rnl_xdp_rings_settle(r, fuzz_below(in, 2));
    FUZZ_MUST(r->free_count == 0 || r->free_count == before);
    for (uint32_t i = 0; i < r->free_count; i++)
        FUZZ_MUST(r->freed[i] % RNL_XDP_CHUNK == 0);
}

/* A queue whose memory somebody has written before this endpoint joins it. */
static void join(struct fuzz_input *in)
{
    const uint32_t endpoints = 1 + fuzz_below(in, 2);
    struct rnl_xdp_area a = {.magic = RNL_XDP_MAGIC, .endpoints = endpoints, .port = {7, 7, 7}};
    struct rnl_xdp_rings r;
    const int memory = memfd_create("queue", MFD_CLOEXEC);
    FUZZ_MUST(memory >= 0);
    const off_t bytes = (off_t)(fuzz_number(in, rnl_xdp_area_bytes(endpoints)) % (8 << 20));
    fuzz_bytes(in, (uint8_t *)&a + fuzz_below(in, 160), 16);
    FUZZ_MUST(ftruncate(memory, bytes) == 0 && pwrite(memory, &a, sizeof a, 0) == (ssize_t)sizeof a);
    FUZZ_MUST(rnl_xdp_rings_map(&r, -1, memory, (uint16_t)fuzz_below(in, 9)) < 0); /* there is no socket either */
    close(memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, data + size};
    struct rnl_xdp_rings r;
    const uint32_t endpoints = 1 + fuzz_below(&in, ENDPOINTS);
    begin(&r, endpoints);
    r.endpoint = fuzz_below(&in, endpoints);
    for (int i = 0; i < STEPS && fuzz_more(&in); i++)
        switch (fuzz_below(&in, 12)) {
        case 0:
            spoil_index(&in, &r.fill);
            break;
        case 1:
            spoil_index(&in, &r.done);
            break;
        case 2:
            spoil_index(&in, &r.in);
            break;
        case 3:
            spoil_index(&in, &r.out);
            break;
        case 4:
            spoil_area(&in, &r);
            break;
        case 5:
        case 6:
            arrive(&in, &r);
            break;
        case 7:
            give_back(&in, &r);
            break;
        case 8:
            send(&in, &r);
            break;
        case 9:
            atomic_store(r.out.flags, lie(&in, XDP_RING_NEED_WAKEUP));
            (void)rnl_xdp_rings_kick(&r);
            break;
        case 10:
            settle(&in, &r);
            break;
        default:
            receive(&in, &r);
        }
    end(&r);
    if (fuzz_below(&in, 16) == 1)
        join(&in);
    return 0;
}
