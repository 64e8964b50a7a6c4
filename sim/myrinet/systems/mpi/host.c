/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.c - MPI on FM 1.1 and on FM 2.x (paper 000, sections 3.2 and 4.2).
 *
 * On FM 1.1 a message has to be one buffer, so header and data are copied together; extract hands over all that is
 * here, so a message whose receive is posted is copied to its place, any other into the pool and from there. On FM 2.x
 * header and data are two pieces, the handler takes the data to their place, and extract takes no more than wanted. */
#include "sim/myrinet/systems/fm1/host.h"
#include "sim/myrinet/systems/fm2/host.h"
#include "sim/myrinet/systems/mpi/mpi.h"

enum { LIBRARY = 35, FOR_MPI = 1, TAG = 7 };

/* What experiments ask of either. */
struct exchange {
    struct mpi_state mpi; /* first */
    struct mpi_request *wanted;
    uint32_t in, most;
};

static int open_exchange(struct exchange *x, struct myri_side *side)
{
    x->most = side->largest;
    x->in = myri_host_take(side->host, x->most, 0);
    return mpi_init(&x->mpi, side);
}

static void send_message(struct myri_side *side, uint32_t to, uint32_t bytes)
{
    struct exchange *x = side->state;
    mpi_send(&x->mpi, &x->mpi.world, to, TAG, side->out, bytes);
}

static uint32_t receive_message(struct myri_side *side, uint32_t bytes, uint64_t until)
{
    struct exchange *x = side->state;
    struct mpi_envelope got;
    (void)bytes;
    if (!x->wanted)
        x->wanted = mpi_irecv(&x->mpi, &x->mpi.world, MPI_ANY, TAG, x->in, x->most);
    if (!x->wanted || !mpi_wait(&x->mpi, x->wanted, &got, until))
        return 0;
    x->wanted = NULL;
    side->got = x->in;
    side->from = got.source;
    return got.bytes;
}

/* ---- on FM 1.1 ---- */

struct on_fm1 {
    struct exchange x; /* first */
    struct fm1 fm;
    uint32_t staging;
};

static void fm1_message(struct fm1 *f, uint32_t from, uint32_t at, uint32_t bytes)
{
    struct on_fm1 *st = f->owner;
    struct mpi_state *m = &st->x.mpi;
    struct mpi_envelope e;
    (void)from;
    if (bytes < MPI_HEADER)
        return;
    mpi_from_words(&e, f->side->host, at);
    mpi_did(m, 6);
    struct mpi_request *r = mpi_match(m, &e);
    struct mpi_unexpected *u = r ? NULL : mpi_keep(m, &e);
    mpi_pay(m);
    if (u) {
        myri_task_copy(f->side->task, u->at, at + MPI_HEADER, e.bytes);
        u->whole = 1;
    } else if (r) {
        myri_task_copy(f->side->task, r->at, at + MPI_HEADER, e.bytes < r->most ? e.bytes : r->most);
        mpi_arrived(m, r, &e);
        mpi_pay(m);
    }
}

static void fm1_put(struct mpi_state *m, uint32_t node, const struct mpi_envelope *e, uint32_t at)
{
    struct on_fm1 *st = m->side->state;
    uint32_t words[6];
    mpi_to_words(e, words);
    for (uint32_t i = 0; i < 6; i++)
        myri_host_set_word(m->side->host, st->staging + 4 * i, words[i]);
    myri_task_copy(m->side->task, st->staging + MPI_HEADER, at, e->bytes);
    fm1_send(&st->fm, node, FOR_MPI, st->staging, MPI_HEADER + e->bytes);
}

static int fm1_progress(struct mpi_state *m, uint64_t until)
{
    struct on_fm1 *st = m->side->state;
    uint32_t flag = st->fm.ring + st->fm.next * FM1_FRAME + FM1_FRAME - 4;
    if (!myri_task_poll_by_call(m->side->task, flag, 0, until, LIBRARY))
        return 0;
    (void)fm1_extract(&st->fm);
    return 1;
}

static int fm1_open(struct myri_side *side)
{
    struct on_fm1 *st = side->state;
    st->x.mpi.put = fm1_put;
    st->x.mpi.progress = fm1_progress;
    st->x.mpi.overflow = ", and FM 1.1 hands over what comes, wanted or not";
    if (open_exchange(&st->x, side) < 0)
        return -1;
    st->staging = myri_host_take(side->host, side->largest + MPI_HEADER, 0);
    st->fm.owner = st;
    st->fm.handler[FOR_MPI] = fm1_message;
    side->largest += MPI_HEADER; /* of FM's messages */
    int rc = fm1_initialize(&st->fm, side);

    return rc;
}

static const struct myri_issues fm1_issues = {.transfer = "stores",
                                              .translation = "none to send",
                                              .protection = "none",
                                              .control = "poll",
                                              .reliability = "host credits",
                                              .to_many = "no"};
const struct myri_system myri_system_mpi_fm1 = {
    .name = "mpi-fm1",
    .title = "MPI on Fast Messages 1.1",
    .source = "Lauria et al. 1998, section 3.2",
    .object = "systems/fm1/firmware",
    .machines = "H-S",
    .state_bytes = sizeof(struct on_fm1),
    .most = 32768,
    .look = LIBRARY,
    .buffers_least = 2,
    .buffers_most = FM1_RING,
    .ahead = 1,
    .issues = &fm1_issues,
    .on_crc = FM1_ON_CRC,
    .open = fm1_open,
    .send = send_message,
    .receive = receive_message,
};

/* ---- on FM 2.x ---- */

struct on_fm2 {
    struct exchange x; /* first */
    struct fm2 fm;
    uint32_t header_out, header_in;
};

static void fm2_message(struct fm2_stream *s, uint32_t from)
{
    struct on_fm2 *st = s->fm->owner;
    struct mpi_state *m = &st->x.mpi;
    struct mpi_envelope e;
    uint32_t header = st->header_in + from * MPI_HEADER;
    if (fm2_receive(header, s, MPI_HEADER) != MPI_HEADER)
        return;
    mpi_from_words(&e, m->side->host, header);
    mpi_did(m, 6);
    struct mpi_request *r = mpi_match(m, &e);
    struct mpi_unexpected *u = r ? NULL : mpi_keep(m, &e);
    mpi_pay(m);
    if (u) {
        (void)fm2_receive(u->at, s, e.bytes);
        u->whole = 1;
    } else if (r) {
        (void)fm2_receive(r->at, s, e.bytes < r->most ? e.bytes : r->most);
        mpi_arrived(m, r, &e);
        mpi_pay(m);
    }
}

static void fm2_put(struct mpi_state *m, uint32_t node, const struct mpi_envelope *e, uint32_t at)
{
    struct on_fm2 *st = m->side->state;
    uint32_t words[6];
    mpi_to_words(e, words);
    for (uint32_t i = 0; i < 6; i++)
        myri_host_set_word(m->side->host, st->header_out + 4 * i, words[i]);
    struct fm2_stream *s = fm2_begin_message(&st->fm, node, FOR_MPI);
    fm2_send_piece(s, st->header_out, MPI_HEADER);
    fm2_send_piece(s, at, e->bytes);
    fm2_end_message(s);
}

static int fm2_progress(struct mpi_state *m, uint64_t until)
{
    struct on_fm2 *st = m->side->state;
    return fm2_extract(&st->fm, 1, until) != 0; /* a packet: no more than may be wanted */
}

static int fm2_open(struct myri_side *side)
{
    struct on_fm2 *st = side->state;
    st->x.mpi.put = fm2_put;
    st->x.mpi.progress = fm2_progress;
    st->x.mpi.overflow = "";
    if (open_exchange(&st->x, side) < 0)
        return -1;
    st->header_out = myri_host_take(side->host, (1 + side->nodes) * MPI_HEADER, 0);
    st->header_in = st->header_out + MPI_HEADER;
    st->fm.owner = st;
    st->fm.handler[FOR_MPI] = fm2_message;
    return fm2_initialize(&st->fm, side);
}

static void fm2_close(struct myri_side *side)
{
    struct on_fm2 *st = side->state;
    fm2_finalize(&st->fm);
}

static const struct myri_issues fm2_issues = {.transfer = "stores, combined",
                                              .translation = "none to send",
                                              .protection = "none",
                                              .control = "poll",
                                              .reliability = "host credits",
                                              .to_many = "no"};
const struct myri_system myri_system_mpi_fm2 = {
    .name = "mpi-fm2",
    .title = "MPI on Fast Messages 2.x",
    .source = "Lauria et al. 1998, section 4.2",
    .object = "systems/fm2/firmware",
    .machines = "H-FM2",
    .state_bytes = sizeof(struct on_fm2),
    .most = 65536,
    .look = LIBRARY,
    .buffers_least = 2,
    .buffers_most = FM2_RING,
    .packet_least = 16,
    .packet_most = FM2_DATA,
    .issues = &fm2_issues,
    .on_crc = FM2_ON_CRC,
    .open = fm2_open,
    .send = send_message,
    .receive = receive_message,
    .close = fm2_close,
};
