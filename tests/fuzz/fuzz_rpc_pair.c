/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fuzz_rpc_pair.c - a peer that writes what it likes into the segment of a pair while the other side reads and writes:
 * that side stays within the segment and its own copy of a cell, whatever it finds there. */
#include "adapters/sunrpc/pair.h"
#include "adapters/sunrpc/pair_internal.h"

#include "fuzz/input.h"

#include <sys/socket.h>
#include <unistd.h>

static const uint64_t past = 1; /* nobody waits */

static void scribble(struct fuzz_input *in, struct rnl_rpc_segment *s, struct rnl_rpc_pair *p)
{
    struct rnl_rpc_ring *mine = &s->ring[RNL_RPC_CALLS], *other = &s->ring[RNL_RPC_REPLIES];
    struct rnl_rpc_cell *cell = &mine->cell[(p->in_cell + fuzz_below(in, 2)) % RNL_RPC_CELLS];
    uint64_t number = fuzz_number(in, p->in_cell + 1), word = fuzz_number(in, p->in_bulk);
    unsigned bytes = fuzz_below(in, 256), flags = fuzz_below(in, 256), what = fuzz_below(in, 5);
    uint32_t part = (uint32_t)fuzz_number(in, 4096);
    switch (what) {
    case 0:
        atomic_store(&other->cells_read, fuzz_number(in, p->out_cell));
        break;
    case 1:
        atomic_store(&other->bulk_read, fuzz_number(in, p->out_bulk));
        break;
    case 2:
        memcpy(cell->payload, &word, sizeof word);
        memcpy(cell->payload + sizeof word, &part, sizeof part);
        break;
    case 3:
        atomic_store(&cell->header, (uint32_t)number | (uint64_t)bytes << 32 | (uint64_t)flags << 56);
        break;
    default:
        memcpy(cell->payload, &word, sizeof word);
        memcpy(cell->payload + sizeof word, &part, sizeof part);
        atomic_store(&cell->header, (uint32_t)(p->in_cell + 1) | (uint64_t)bytes << 32 | (uint64_t)(flags & 3) << 56);
        break;
    }
}

/* Touches each byte that the reader was given. */
static void look(const struct rnl_rpc_pair *p)
{
    const unsigned char *at = p->link.in_at, *stop = p->link.in_end;
    volatile unsigned char sum = 0;
    if (!at)
        return;
    FUZZ_MUST(stop >= at);
    if (p->link.in_private)
        FUZZ_MUST(at >= p->copy && stop <= p->copy + sizeof p->copy);
    else
        FUZZ_MUST(at >= p->in->bulk && stop <= p->in->bulk + RNL_RPC_BULK_BYTES);
    for (; at < stop; at += 61)
        sum = (unsigned char)(sum + *at);
}

static void move(struct fuzz_input *in, struct rnl_rpc_link *link)
{
    unsigned char header[64];
    unsigned what = fuzz_below(in, 6), n = fuzz_below(in, 64);
    link->deadline_ns = past;
    switch (what) {
    case 0:
        (void)link->ops->here(link);
        break;
    case 1:
        (void)link->ops->peek(link, header, n);
        break;
    case 2:
    case 3:
        (void)link->ops->next(link);
        break;
    case 4:
        (void)link->ops->leave(link);
        break;
    default:
        for (unsigned i = 0; i < n % 8 && !link->broken && link->ops->room(link); i++)
            link->out_at = link->out_end;
        if (!link->broken)
            (void)link->ops->end(link);
        break;
    }
    look(rnl_rpc_pair_of(link));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, data + size};
    int fd[2], memory = rnl_rpc_segment_new();
    if (memory < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) < 0)
        return 0;
    struct rnl_rpc_segment *mine = rnl_rpc_segment_map(memory), *theirs = rnl_rpc_segment_map(memory);
    FUZZ_MUST(mine && theirs);
    struct rnl_rpc_link *link = rnl_rpc_pair_new(mine, fd[0], true, true);
    for (int i = 0; link && i < 500 && fuzz_more(&in); i++) {
        unsigned what = fuzz_below(&in, 2);
        if (what)
            scribble(&in, theirs, rnl_rpc_pair_of(link));
        else if (!link->broken || link->in_open)
            move(&in, link);
    }
    if (link)
        link->ops->close(link);
    rnl_rpc_segment_unmap(theirs);
    close(memory);
    close(fd[0]);
    close(fd[1]);
    return 0;
}
