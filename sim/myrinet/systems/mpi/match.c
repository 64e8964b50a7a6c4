/* SPDX-License-Identifier: BSD-3-Clause
 *
 * match.c - MPI's queues; see mpi.h. The numbers behind mpi_did are the loads, compares, stores and branches of the
 * lines beside them. */
#include "sim/myrinet/systems/mpi/mpi.h"

#include <string.h>

enum { ENTRY = 35 }; /* of a call that programs make, its checks of arguments: as for all libraries here */

void mpi_did(struct mpi_state *m, uint32_t operations)
{
    m->operations += operations;
}

void mpi_pay(struct mpi_state *m)
{
    uint32_t operations = m->operations;
    m->operations = 0;
    if (operations)
        myri_task_operate(m->side->task, operations, "MPI");
}

static int fits(struct mpi_state *m, uint32_t asked, uint32_t is)
{
    mpi_did(m, 3); /* a load, a compare, a branch; wildcards once more */
    if (asked == is)
        return 1;
    mpi_did(m, 2);
    return asked == MPI_ANY;
}

static int matches(struct mpi_state *m, const struct mpi_request *r, const struct mpi_envelope *e)
{
    mpi_did(m, 3);
    return r->context == e->context && fits(m, r->tag, e->tag) && fits(m, r->source, e->source);
}

struct mpi_request *mpi_match(struct mpi_state *m, const struct mpi_envelope *e)
{
    mpi_did(m, 2);
    for (struct mpi_request **at = &m->posted; *at; at = &(*at)->next) {
        mpi_did(m, 3); /* the next of the queue */
        if (!matches(m, *at, e))
            continue;
        struct mpi_request *r = *at;
        mpi_did(m, 5);
        *at = r->next;
        if (m->last_posted == &r->next)
            m->last_posted = at;
        return r;
    }
    return NULL;
}

void mpi_arrived(struct mpi_state *m, struct mpi_request *r, const struct mpi_envelope *e)
{
    mpi_did(m, 8); /* the envelope, the flag */
    r->got = *e;
    if (r->got.bytes > r->most) {
        myri_hw_fault(m->side->hw, "node %u: a message of %u bytes comes for a receive of %u", m->side->node, e->bytes,
                      r->most);
        r->got.bytes = r->most;
    }
    r->done = 1;
}

struct mpi_unexpected *mpi_keep(struct mpi_state *m, const struct mpi_envelope *e)
{
    struct mpi_unexpected *u = m->unused;
    mpi_did(m, 3);
    if (!u) {
        myri_hw_fault(m->side->hw, "node %u: MPI's pool of %u messages is full%s; send fewer (--count)", m->side->node,
                      m->slots, m->overflow);
        return NULL;
    }
    mpi_did(m, 14); /* off one queue, onto another, and its envelope */
    m->unused = u->next;
    u->next = NULL;
    u->got = *e;
    u->whole = 0;
    *m->last_unexpected = u;
    m->last_unexpected = &u->next;
    m->kept++;
    return u;
}

/* ---- calls ---- */

void mpi_send(struct mpi_state *m, const struct mpi_communicator *c, uint32_t to, uint32_t tag, uint32_t at,
              uint32_t bytes)
{
    struct mpi_envelope e = {c->context, c->rank, tag, bytes, m->numbers++, 0};
    mpi_did(m, ENTRY + 10); /* the node of the rank, six words of envelope */
    mpi_pay(m);
    m->put(m, c->node[to], &e, at);
}

/* One of those that came before, if it is there; its bytes may still be coming. */
static struct mpi_unexpected *find_early(struct mpi_state *m, const struct mpi_request *r,
                                         struct mpi_unexpected ***link)
{
    mpi_did(m, 2);
    for (struct mpi_unexpected **at = &m->unexpected; *at; at = &(*at)->next) {
        mpi_did(m, 3);
        if (matches(m, r, &(*at)->got)) {
            *link = at;
            return *at;
        }
    }
    return NULL;
}

static void take_early(struct mpi_state *m, struct mpi_request *r, struct mpi_unexpected **link)
{
    struct mpi_unexpected *u = *link;
    mpi_did(m, 9); /* off its queue, into the free ones */
    *link = u->next;
    if (m->last_unexpected == &u->next)
        m->last_unexpected = link;
    mpi_arrived(m, r, &u->got);
    mpi_pay(m);
    myri_task_copy(m->side->task, r->at, u->at, r->got.bytes);
    u->next = m->unused;
    m->unused = u;
}

struct mpi_request *mpi_irecv(struct mpi_state *m, const struct mpi_communicator *c, uint32_t from, uint32_t tag,
                              uint32_t at, uint32_t most)
{
    struct mpi_request *r = m->unused_requests;
    struct mpi_unexpected **link = NULL, *u;
    if (!r) {
        myri_hw_fault(m->side->hw, "node %u: %d receives are posted already", m->side->node, MPI_REQUESTS);
        return NULL;
    }
    mpi_did(m, ENTRY + 10); /* a request: off the free ones, its fields */
    m->unused_requests = r->next;
    *r = (struct mpi_request){.context = c->context, .source = from, .tag = tag, .at = at, .most = most};
    while ((u = find_early(m, r, &link)) && !u->whole && !m->side->hw->fault[0]) {
        mpi_pay(m);
        (void)m->progress(m, RNL_SIM_NEVER);
    }
    if (u) {
        take_early(m, r, link);
    } else {
        mpi_did(m, 4);
        *m->last_posted = r;
        m->last_posted = &r->next;
    }
    mpi_pay(m);
    return r;
}

int mpi_wait(struct mpi_state *m, struct mpi_request *r, struct mpi_envelope *got, uint64_t until)
{
    mpi_did(m, ENTRY);
    while (!r->done && !m->side->hw->fault[0]) {
        mpi_did(m, 3);
        mpi_pay(m);
        if (!m->progress(m, until))
            break;
    }
    int done = r->done;
    if (done) {
        mpi_did(m, 8);
        *got = r->got;
        r->next = m->unused_requests;
        m->unused_requests = r;
    }
    mpi_pay(m);
    return done;
}

void mpi_comm_dup(struct mpi_state *m, const struct mpi_communicator *c, struct mpi_communicator *out)
{
    *out = *c;
    out->context = ++m->contexts; /* each node makes them in the same order, as MPI has it */
}

void mpi_to_words(const struct mpi_envelope *e, uint32_t words[6])
{
    const uint32_t w[6] = {e->context, e->source, e->tag, e->bytes, e->number, e->spare};
    memcpy(words, w, sizeof w);
}

void mpi_from_words(struct mpi_envelope *e, const struct myri_host *h, uint32_t at)
{
    e->context = myri_host_word(h, at);
    e->source = myri_host_word(h, at + 4);
    e->tag = myri_host_word(h, at + 8);
    e->bytes = myri_host_word(h, at + 12);
    e->number = myri_host_word(h, at + 16);
    e->spare = myri_host_word(h, at + 20);
}

int mpi_init(struct mpi_state *m, struct myri_side *side)
{
    uint32_t slot = (side->largest + 3) & ~3u;
    m->side = side;
    m->last_posted = &m->posted;
    m->last_unexpected = &m->unexpected;
    m->slots = MPI_POOL_BYTES / slot < MPI_POOL_MOST ? MPI_POOL_BYTES / slot : MPI_POOL_MOST;
    uint32_t pool = myri_host_take(side->host, m->slots * slot, 0);
    for (uint32_t i = 0; i < m->slots; i++) {
        m->pool[i].at = pool + i * slot;
        m->pool[i].next = m->unused;
        m->unused = &m->pool[i];
    }
    for (uint32_t i = 0; i < MPI_REQUESTS; i++) {
        m->request[i].next = m->unused_requests;
        m->unused_requests = &m->request[i];
    }
    m->world.size = side->nodes;
    m->world.rank = side->node;
    for (uint32_t i = 0; i < side->nodes; i++)
        m->world.node[i] = i;
    return side->hw->fault[0] ? -1 : 0;
}
