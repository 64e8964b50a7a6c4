/* SPDX-License-Identifier: BSD-3-Clause
 *
 * flow_turn.c - one turn of output: a single packet with less work, or batches of packets, into the rooms of the
 * network below. */
#include "base/sometimes.h"
#include "net/flow/flow_internal.h"

enum {
    BATCH = 16,        /* rooms reserved at a time */
    RUN_BYTES = 65507, /* bytes of a run: datagrams sent by one system call, the last perhaps shorter */
    RUN_MOST = 46,     /* most datagrams in a run */
    TURN_RUNS = 4      /* runs, or a run's most datagrams, in one turn */
};

/* Returns how many datagrams may be sent in one turn. They form full runs, since each run costs both sides a pass
 * through the kernel. While more is being composed, what would make a short run waits for it. */
static int turn_of(const struct rnl_flow *f, uint64_t backlog)
{
    uint32_t bytes = f->mtu.bytes, run = RUN_BYTES / bytes;
    if (run > RUN_MOST)
        run = RUN_MOST;
    uint64_t runs = RUN_MOST / run, full = backlog / (bytes * run);
    if (runs > TURN_RUNS)
        runs = TURN_RUNS;
    if (full > 0 && full < runs)
        runs = full;
    return (int)(runs * run);
}

/* Sends up to a batch of at most most_packets; *put: how many were sent. Returns 1 = there may be more; 0 = nothing is
 * left; RNL_NO_ROOM. */
static int put_batch(struct rnl_flow *f, const struct rnl_flow_port *port, int most_packets, int *put, uint64_t now_ns)
{
    struct rnl_room room[BATCH];
    uint32_t used[BATCH] = {0}, bytes = f->mtu.bytes, most = port->mtu(f->ctx);
    if (bytes > most) { /* the MTU of our own host has become smaller */
        RNL_SOMETIMES(1, "the host sends less than the flow knows");
        rnl_flow_too_big(f, bytes, now_ns);
        bytes = f->mtu.bytes;
    }
    if (f->mtu.due_ns <= now_ns)
        bytes = most; /* room to probe whether larger datagrams pass */
    else
        bytes &= ~31u; /* rooms begin at multiples of 8: full packets are contiguous; 32: rnl_copy_trips */
    int k = 0, n = port->reserve(f->ctx, bytes, room, BATCH < most_packets ? BATCH : most_packets);
    *put = 0;
    if (n <= 0)
        return RNL_NO_ROOM;
    bool more = true;
    while (more && k < n && (used[k] = rnl_flow_output(f, room[k].at, room[k].bytes, now_ns)) > 0) {
        k++;
        more = rnl_flow_has_more(f, now_ns);
    }
    port->commit(f->ctx, room, used, n, rnl_flow_ecn(f) != 0, now_ns);
    *put = k;
    return more && k == n;
}

/* Sends one message with less work, where nothing else is to be sent or done. The packet is the same as one of
 * put_batch. Returns false if it is not so. */
static bool send_single(struct rnl_flow *f, const struct rnl_flow_port *port, uint64_t now_ns)
{
    uint32_t bytes = f->mtu.bytes & ~7u;
    if (f->sent.count || !f->wanted || rnl_flow_ecn(f) || RNL_BUGGIFY("a lone one goes with others"))
        return false;
    unsigned char *at = port->reserve_one(f->ctx, bytes);
    struct rnl_flow_single_packet alone;
    uint32_t used = at ? rnl_flow_single(f, at, bytes, now_ns, &alone) : 0;
    if (used) {
        port->send_one(f->ctx, at, used, now_ns);
        rnl_flow_single_sent(f, &alone, now_ns);
    }
    return used != 0;
}

bool rnl_flow_turn(struct rnl_flow *f, const struct rnl_flow_port *port, const struct rnl_flow_want *want,
                   uint64_t now_ns, uint64_t *due_ns)
{
    bool single = want->single && send_single(f, port, now_ns);
    bool any = single ? rnl_flow_has_more(f, now_ns) : rnl_flow_has_output(f, now_ns);
    int more = any;
    if (any) {
        for (int left = turn_of(f, want->backlog), put; more > 0 && left > 0; left -= put)
            more = put_batch(f, port, left, &put, now_ns);
        if (want->flush)
            port->flush(f->ctx, now_ns); /* before our own work */
        (void)rnl_flow_has_output(f, now_ns);
    }
    *due_ns = rnl_flow_deadline(f);
    return more != 0;
}
