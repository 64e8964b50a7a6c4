/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.c - what MPI-FM did to a message, on FM 1.1 and on FM 2.x (paper 000, sections 3.2 and 4.2): the blocking send
 * and receive of one byte stream, with a header of 24 bytes (5: the shortest that MPI put before its data).
 *
 * On FM 1.1 a message has to be one buffer, so header and data are copied together; extract hands over all that is
 * here, so a message whose receive is posted is copied to its place, any other into a pool and from there. On FM 2.x
 * header and data are two pieces, and the handler takes the data to their place.
 *
 * Ours: the operations of a call and of a match, as for all libraries here, and how large the pool is. */
#include "sim/myrinet/systems/fm1/host.h"
#include "sim/myrinet/systems/fm2/host.h"

enum { HEADER = 24, LIBRARY = 35, MATCH = 15, FOR_MPI = 1, POOL_BYTES = 4 << 20, POOL_MOST = 1024 };

/* ---- on FM 1.1 ---- */

struct on_fm1 {
    struct fm1 fm;
    uint32_t staging, in, pool, slot_bytes, slots; /* host addresses */
    uint32_t taken, put;                           /* of the pool, ever */
    uint32_t length[POOL_MOST];
    uint32_t wants, got; /* a receive is posted; bytes that it has got */
};

static void fm1_message(struct fm1 *f, uint32_t from, uint32_t at, uint32_t bytes)
{
    struct on_fm1 *st = f->owner;
    struct myri_task *t = f->side->task;
    f->side->from = from;
    if (bytes < HEADER)
        return;
    myri_task_operate(t, MATCH, "match");
    if (st->wants && !st->got) {
        st->got = bytes - HEADER;
        myri_task_copy(t, st->in, at + HEADER, st->got);
    } else if (st->put - st->taken == st->slots) {
        myri_hw_fault(f->side->hw,
                      "node %u: MPI's pool of %u messages is full, and FM 1.1 hands over what comes, wanted or not; "
                      "send fewer (--count)",
                      f->side->node, st->slots);
    } else {
        uint32_t slot = st->put++ % st->slots;
        st->length[slot] = bytes - HEADER;
        myri_task_copy(t, st->pool + slot * st->slot_bytes, at + HEADER, bytes - HEADER);
    }
}

static int fm1_open(struct myri_side *side)
{
    struct on_fm1 *st = side->state;
    st->slot_bytes = (side->largest + 3) & ~3u;
    st->slots = POOL_BYTES / st->slot_bytes < POOL_MOST ? POOL_BYTES / st->slot_bytes : POOL_MOST;
    st->in = myri_host_take(side->host, side->largest, 0);
    st->staging = myri_host_take(side->host, side->largest + HEADER, 0);
    st->pool = myri_host_take(side->host, st->slots * st->slot_bytes, 0);
    st->fm.owner = st;
    st->fm.handler[FOR_MPI] = fm1_message;
    side->largest += HEADER; /* of FM's messages */
    return fm1_initialize(&st->fm, side);
}

static void fm1_send_message(struct myri_side *side, uint32_t to, uint32_t bytes)
{
    struct on_fm1 *st = side->state;
    myri_task_operate(side->task, LIBRARY, "MPI");
    myri_task_copy(side->task, st->staging + HEADER, side->out, bytes);
    fm1_send(&st->fm, to, FOR_MPI, st->staging, HEADER + bytes);
}

static uint32_t fm1_receive_message(struct myri_side *side, uint32_t bytes, uint64_t until)
{
    struct on_fm1 *st = side->state;
    (void)bytes;
    myri_task_operate(side->task, LIBRARY, "MPI");
    side->got = st->in;
    if (st->taken != st->put) { /* it came before it was wanted */
        uint32_t slot = st->taken++ % st->slots, n = st->length[slot];
        myri_task_operate(side->task, MATCH, "match");
        myri_task_copy(side->task, st->in, st->pool + slot * st->slot_bytes, n);
        return n;
    }
    st->wants = 1;
    st->got = 0;
    while (!st->got && !side->hw->fault[0]) {
        uint32_t flag = st->fm.ring + st->fm.next * FM1_FRAME + FM1_FRAME - 4;
        if (!myri_task_poll_by_call(side->task, flag, 0, until, LIBRARY))
            break;
        (void)fm1_extract(&st->fm);
    }
    st->wants = 0;
    return st->got;
}

const struct myri_system myri_system_mpi_fm1 = {
    .name = "mpi-fm1",
    .title = "MPI on Fast Messages 1.1",
    .source = "paper 000, section 3.2",
    .object = "systems/fm1/firmware",
    .machines = "H-S",
    .state_bytes = sizeof(struct on_fm1),
    .most = 32768,
    .look = LIBRARY,
    .buffers_least = 2,
    .buffers_most = FM1_RING,
    .on_crc = FM1_ON_CRC,
    .open = fm1_open,
    .send = fm1_send_message,
    .receive = fm1_receive_message,
};

/* ---- on FM 2.x ---- */

struct on_fm2 {
    struct fm2 fm;
    uint32_t header_out, header_in, in[MYRI_HW_NODES], got, length; /* in: what comes from each node */
};

static void fm2_message(struct fm2_stream *s, uint32_t from)
{
    struct on_fm2 *st = s->fm->owner;
    struct myri_side *side = s->fm->side;
    if (fm2_receive(st->header_in + from * HEADER, s, HEADER) != HEADER)
        return;
    myri_task_operate(side->task, MATCH, "match");
    st->length = fm2_receive(st->in[from], s, side->largest);
    side->got = st->in[from];
    side->from = from;
    st->got++;
}

static int fm2_open(struct myri_side *side)
{
    struct on_fm2 *st = side->state;
    for (uint32_t i = 0; i < side->nodes; i++)
        st->in[i] = i == side->node ? 0 : myri_host_take(side->host, side->largest, 0);
    st->header_out = myri_host_take(side->host, (1 + side->nodes) * HEADER, 0);
    st->header_in = st->header_out + HEADER;
    st->fm.owner = st;
    st->fm.handler[FOR_MPI] = fm2_message;
    return fm2_initialize(&st->fm, side);
}

static void fm2_close(struct myri_side *side)
{
    struct on_fm2 *st = side->state;
    fm2_finalize(&st->fm);
}

static void fm2_send_message(struct myri_side *side, uint32_t to, uint32_t bytes)
{
    struct on_fm2 *st = side->state;
    myri_task_operate(side->task, LIBRARY, "MPI");
    struct fm2_stream *s = fm2_begin_message(&st->fm, to, FOR_MPI);
    fm2_send_piece(s, st->header_out, HEADER);
    fm2_send_piece(s, side->out, bytes);
    fm2_end_message(s);
}

/* FM 2.x lets the receiver say how much it takes: the message that is wanted, no more. */
static uint32_t fm2_receive_message(struct myri_side *side, uint32_t bytes, uint64_t until)
{
    struct on_fm2 *st = side->state;
    (void)bytes;
    myri_task_operate(side->task, LIBRARY, "MPI");
    st->got = 0;
    while (!st->got)
        if (fm2_extract(&st->fm, 1, until) == 0)
            return 0;
    return st->length;
}

const struct myri_system myri_system_mpi_fm2 = {
    .name = "mpi-fm2",
    .title = "MPI on Fast Messages 2.x",
    .source = "paper 000, section 4.2",
    .object = "systems/fm2/firmware",
    .machines = "H-FM2",
    .state_bytes = sizeof(struct on_fm2),
    .most = 65536,
    .look = LIBRARY,
    .buffers_least = 2,
    .buffers_most = FM2_RING,
    .packet_least = 16,
    .packet_most = FM2_DATA,
    .on_crc = FM2_ON_CRC,
    .open = fm2_open,
    .send = fm2_send_message,
    .receive = fm2_receive_message,
    .close = fm2_close,
};
