/* SPDX-License-Identifier: BSD-3-Clause
 *
 * template.c - a transport that reaches only its own rank. Each function says what a real one must decide; contract.h
 * says what all of them promise, tests/conform holds them to it.
 *
 * First decision: reliable or datagram. A reliable transport must get every committed packet there once and in order
 * however long the peer does not poll, so it needs room that the receiver grants. A datagram transport may lose, and
 * leaves that to reliable/ above it. */
#include "transport/template/template.h"

#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"

struct packet {
    uint32_t bytes;
    unsigned char payload[RNL_TEMPLATE_MTU] __attribute__((aligned(8)));
};

/* Slots are used in a circle: released <= polled <= committed <= reserved <= released + SLOTS. All count up for ever.
 */
struct lane {
    struct packet slot[RNL_TEMPLATE_SLOTS];
    uint64_t released, polled, committed, reserved;
};

/* State hangs from one struct that begins with struct rnl_transport; nothing is global, nothing is shared between two
 * transports. */
struct template
{
    struct rnl_transport t;
    struct lane lane[RNL_TEMPLATE_LANES];
    int connected;
};

static struct template *of(struct rnl_transport *t)
{
    return (struct template *)(void *)t;
}

static struct packet *slot_of(struct lane *l, uint64_t index)
{
    return &l->slot[index % RNL_TEMPLATE_SLOTS];
}

/* Decide: where the caller composes. The place a packet travels from (a ring, a transmit buffer) saves a copy. And what
 * "no room" is: a full ring, a used-up window, a full transmit queue. It is the value 0, found without waiting, and it
 * passes by itself. Lanes share none of it. */
static int template_reserve(struct rnl_transport *t, uint32_t peer, unsigned lane, uint32_t bytes,
                            struct rnl_room *room, int n)
{
    struct template *m = of(t);
    if (!m->connected || peer != t->env->rank)
        return rnl_fail(RNL_ERR_RANK, "rank %u is not connected", peer);
    if (lane >= RNL_TEMPLATE_LANES || n < 1)
        return rnl_fail(RNL_ERR_ARG, "%d packets on lane %u: at least 1, on a lane of 0 to %d", n, lane,
                        RNL_TEMPLATE_LANES - 1);
    if (bytes > RNL_TEMPLATE_MTU)
        return rnl_fail(RNL_ERR_TOO_LONG, "a packet of %u bytes: the longest is %d", bytes, RNL_TEMPLATE_MTU);
    struct lane *l = &m->lane[lane];
    if (l->reserved != l->committed)
        return rnl_fail(RNL_BUSY, "rooms on lane %u are not committed yet", lane);
    int got = 0;
    for (; got < n && l->reserved < l->released + RNL_TEMPLATE_SLOTS; got++) {
        room[got].at = slot_of(l, l->reserved++)->payload;
        room[got].bytes = bytes;
        room[got].token = 0; /* yours, to find the room again at commit */
    }
    return got;
}

/* Decide: what goes out now and what waits for flush, to share a system call or a doorbell. Room that was not used
 * comes back at once. A datagram transport sets down here what it needs to send the packet: header, authentication,
 * segment sizes. */
static int template_commit(struct rnl_transport *t, uint32_t peer, unsigned lane, const struct rnl_room *room,
                           const uint32_t *used, int n, uint64_t now_ns)
{
    (void)now_ns; /* the only clock there is: for pacing, for deadlines */
    if (peer != t->env->rank || lane >= RNL_TEMPLATE_LANES)
        return rnl_fail(RNL_ERR_RANK, "rank %u is not connected", peer);
    struct lane *l = &of(t)->lane[lane];
    int went = 0;
    if ((uint64_t)n != l->reserved - l->committed)
        return rnl_fail(RNL_ERR_ARG, "a commit of %d rooms, where %d are reserved", n,
                        (int)(l->reserved - l->committed));
    for (int i = 0; i < n; i++) {
        if (used[i] == 0)
            continue;
        struct packet *p = slot_of(l, l->committed++);
        if (p->payload != room[i].at) /* rooms before it were given back */
            memcpy(p->payload, room[i].at, used[i]);
        p->bytes = used[i];
        went++;
    }
    l->reserved = l->committed;
    return went;
}

/* Decide: whose turn it is, so that one busy peer or lane starves no other. Check here, once and on a private copy,
 * everything the other side wrote: lengths, offsets, sequence numbers; what cannot be true breaks that peer (reliable)
 * or is counted and dropped (datagram). A view stays where it is until it is released, whatever arrives meanwhile;
 * RNL_CAP_STABLE_VIEW if nobody can write it. */
static int template_poll(struct rnl_transport *t, struct rnl_view *v, int n, uint64_t now_ns)
{
    struct template *m = of(t);
    int got = 0;
    (void)now_ns;
    for (unsigned lane = 0; lane < RNL_TEMPLATE_LANES; lane++) {
        struct lane *l = &m->lane[lane];
        for (; got < n && l->polled < l->committed; got++) {
            struct packet *p = slot_of(l, l->polled++);
            v[got] = (struct rnl_view){
                .at = p->payload, .bytes = p->bytes, .peer = t->env->rank, .lane = (uint16_t)lane, .token = l->polled};
        }
    }
    return got;
}

/* Decide: how the sender learns of its room: with what travels back anyway, and by itself at the latest when a good
 * part of the room is free, so that a sender that waits cannot wait for ever. */
static void template_release(struct rnl_transport *t, const struct rnl_view *v, int n)
{
    for (int i = 0; i < n; i++)
        of(t)->lane[v[i].lane].released = v[i].token;
}

/* Decide: whether there is anything to push. > 0 means that some of it did not go and the caller comes again. */
static int template_flush(struct rnl_transport *t, uint64_t now_ns)
{
    (void)t, (void)now_ns;
    return 0;
}

/* Decide: whether a descriptor can say that something arrived (RNL_CAP_FD). Arm, then look once more, then say 0: what
 * arrives between the look and the sleep must not be lost. Without the capability both refuse, and whoever waits polls.
 */
static int template_arm(struct rnl_transport *t)
{
    (void)t;
    return rnl_fail(RNL_ERR_UNSUPPORTED, "this transport has no descriptor to wait on");
}

static int template_fd(struct rnl_transport *t)
{
    return template_arm(t);
}

/* Decide: which timers run: held-back packets, retransmission below the contract, signs of life. Time comes in as
 * now_ns only. */
static uint64_t template_deadline(struct rnl_transport *t)
{
    (void)t;
    return UINT64_MAX;
}

/* Decide: what others need to reach us, in at most 60 bytes: it travels through the job's address exchange. */
static int template_address(struct rnl_transport *t, struct rnl_addr *out)
{
    memset(out, 0, sizeof *out);
    out->len = sizeof t->env->rank;
    memcpy(out->bytes, &t->env->rank, out->len);
    return 0;
}

/* Decide: what a connection holds (memory per peer is counted), and how a peer that was restarted, with another
 * incarnation, is kept from getting or sending old packets. Does not wait for the peer. */
static int template_connect(struct rnl_transport *t, uint32_t peer, const struct rnl_addr *addr, uint64_t incarnation)
{
    (void)addr, (void)incarnation;
    if (peer != t->env->rank)
        return rnl_fail(RNL_ERR_RANK, "this transport reaches rank %u only, not %u", t->env->rank, peer);
    of(t)->connected = 1;
    return 0;
}

/* Decide: nothing; let go of all that the connection held. Views and rooms of that peer end here. */
static int template_disconnect(struct rnl_transport *t, uint32_t peer)
{
    struct template *m = of(t);
    if (!m->connected || peer != t->env->rank)
        return rnl_fail(RNL_ERR_RANK, "rank %u is not connected", peer);
    for (unsigned lane = 0; lane < RNL_TEMPLATE_LANES; lane++) {
        struct lane *l = &m->lane[lane];
        l->released = l->polled = l->committed = l->reserved = 0;
    }
    m->connected = 0;
    return 0;
}

/* Decide: the longest packet, headers not counted. It may fall while we run; then longer reserves are refused. */
static uint32_t template_mtu(struct rnl_transport *t, uint32_t peer)
{
    (void)t, (void)peer;
    return RNL_TEMPLATE_MTU;
}

/* Also with packets on the way, rooms reserved and views not released. */
static void template_close(struct rnl_transport *t)
{
    free(of(t));
}

static const struct rnl_transport_ops template_ops = {
    .size = sizeof template_ops,
    .reserve = template_reserve,
    .commit = template_commit,
    .poll = template_poll,
    .release = template_release,
    .flush = template_flush,
    .arm = template_arm,
    .fd = template_fd,
    .deadline = template_deadline,
    .address = template_address,
    .connect = template_connect,
    .disconnect = template_disconnect,
    .mtu = template_mtu,
    .close = template_close,
};

int rnl_template_transport_new(struct rnl_env *env, struct rnl_transport **out)
{
    struct template *m = calloc(1, sizeof *m);
    if (m == NULL)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a transport (%zu bytes)", sizeof *m);
    m->t.ops = &template_ops;
    m->t.caps = RNL_CAP_RELIABLE | RNL_CAP_LANES | RNL_CAP_STABLE_VIEW; /* what you claim, the suite checks */
    m->t.env = env;
    *out = &m->t;
    return 0;
}
