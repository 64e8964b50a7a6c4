/* SPDX-License-Identifier: BSD-3-Clause
 *
 * peers.c - who has which address, and what the network says about them. */
#include "transport/udp/in.h"

#include <stdlib.h>

enum { SLOTS_LEAST = 16 };

void rnl_udp_addr_of(const struct rnl_socket_addr *a, struct rnl_addr *out)
{
    static_assert(sizeof *a <= sizeof out->bytes, "an address fits");
    memset(out, 0, sizeof *out);
    out->len = sizeof *a;
    memcpy(out->bytes, a, sizeof *a);
}

int rnl_udp_addr_read(const struct rnl_addr *a, struct rnl_socket_addr *out)
{
    struct rnl_socket_addr read;
    if (a->len != sizeof read)
        return rnl_fail(RNL_ERR_ARG, "an address of %u bytes, where addresses of sockets have %zu", a->len,
                        sizeof read);
    memcpy(&read, a->bytes, sizeof read);
    if (read.port == 0 || read.zero != 0)
        return rnl_fail(RNL_ERR_ARG, "an address without a port");
    *out = read;
    return 0;
}

/* ---- by address ---- */

static uint32_t hash_of(const struct rnl_socket_addr *a)
{
    uint64_t word[3], h = 0;
    memcpy(word, a, sizeof word);
    for (int i = 0; i < 3; i++) {
        h = (h ^ word[i]) * 0xbf58476d1ce4e5b9u;
        h ^= h >> 29;
    }
    return (uint32_t)(h ^ h >> 32);
}

static const struct rnl_socket_addr *addr_of(const struct udp *u, uint32_t entry)
{
    return entry <= u->t.env->size ? &u->peer[entry - 1].addr : &u->also[entry - 1 - u->t.env->size].addr;
}

static uint32_t rank_of(const struct udp *u, uint32_t entry)
{
    return entry <= u->t.env->size ? entry - 1 : u->also[entry - 1 - u->t.env->size].rank;
}

uint32_t rnl_udp_who(const struct udp *u, const struct rnl_socket_addr *a)
{
    if (u->slots == 0)
        return RNL_PEER_STRANGER;
    for (uint32_t i = hash_of(a);; i++) {
        uint32_t entry = u->slot[i & (u->slots - 1)];
        if (entry == 0)
            return RNL_PEER_STRANGER;
        if (rnl_socket_addr_equal(addr_of(u, entry), a))
            return rank_of(u, entry);
    }
}

static void slot_add(struct udp *u, uint32_t entry)
{
    uint32_t i = hash_of(addr_of(u, entry));
    while (u->slot[i & (u->slots - 1)])
        i++;
    u->slot[i & (u->slots - 1)] = entry;
}

static void slots_fill(struct udp *u)
{
    memset(u->slot, 0, u->slots * sizeof *u->slot);
    for (uint32_t rank = 0; rank < u->t.env->size; rank++)
        if (u->peer[rank].connected == 1)
            slot_add(u, rank + 1);
    for (uint32_t i = 0; i < u->alsos; i++)
        slot_add(u, u->t.env->size + 1 + i);
}

/* Of all that are connected, and room for so many addresses; at most half of the slots are used, so searches end. */
static int slots_anew(struct udp *u, uint32_t addresses)
{
    uint32_t slots = SLOTS_LEAST;
    while (slots < 2 * addresses)
        slots *= 2;
    if (slots != u->slots) {
        uint32_t *slot = calloc(slots, sizeof *slot);
        if (slot == NULL)
            return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for %u addresses of peers", addresses);
        free(u->slot);
        u->slot = slot;
        u->slots = slots;
    }
    slots_fill(u);
    return 0;
}

/* ---- the operations ---- */

int rnl_udp_find(struct udp *u, uint32_t rank, struct udp_peer **out)
{
    if (rank >= u->t.env->size || !u->peer[rank].connected)
        return rnl_fail(RNL_ERR_RANK, "rank %u is not connected", rank);
    *out = &u->peer[rank];
    return 0;
}

/* Those of a rank, or one of them: what is behind in the list moves up, so the table is made anew, which needs no more
 * room than it has. */
static void drop_alsos(struct udp *u, uint32_t rank, const struct rnl_socket_addr *only)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < u->alsos; i++)
        if (u->also[i].rank != rank || (only && !rnl_socket_addr_equal(&u->also[i].addr, only)))
            u->also[kept++] = u->also[i];
    u->alsos = kept;
    slots_fill(u);
}

/* That somebody has several addresses is not proved for each of them: one where he is not reached is not kept from whom
 * it is the only one of. 1 = it is free now. */
static int give_up(struct udp *u, uint32_t rank, const struct rnl_socket_addr *a)
{
    if (u->peer[rank].connected != 2 || rnl_socket_addr_equal(&u->peer[rank].addr, a))
        return 0;
    drop_alsos(u, rank, a);
    return 1;
}

int rnl_udp_connect(struct rnl_transport *t, uint32_t rank, const struct rnl_addr *addr, uint64_t incarnation)
{
    struct udp *u = udp_of(t);
    struct rnl_socket_addr a;
    if (rank >= t->env->size)
        return rnl_fail(RNL_ERR_RANK, "no rank %u: the job has ranks 0 to %u", rank, t->env->size - 1);
    if (addr == NULL)
        return rnl_fail(RNL_ERR_ARG, "rank %u cannot be reached without an address", rank);
    int status = rnl_udp_addr_read(addr, &a);
    if (status < 0)
        return status;
    struct udp_peer *p = &u->peer[rank];
    if (p->connected) {
        if (!rnl_socket_addr_equal(&a, &p->addr) || (incarnation && p->incarnation && incarnation != p->incarnation))
            return rnl_fail(RNL_ERR_PEER_DEAD, "rank %u was connected in an earlier life; disconnect it first", rank);
        return 0;
    }
    uint32_t other = rnl_udp_who(u, &a);
    if (other != RNL_PEER_STRANGER && !give_up(u, other, &a))
        return rnl_fail(RNL_ERR_RANK, "rank %u has the address of rank %u, which is connected", rank, other);
    if (2 * (u->connected + u->alsos + 1) > u->slots && (status = slots_anew(u, u->connected + u->alsos + 1)) < 0)
        return status;
    memset(p, 0, sizeof *p);
    p->addr = a;
    p->incarnation = incarnation;
    p->connected = 1;
    u->connected++;
    u->changes++;
    slot_add(u, rank + 1);
    return 0;
}

/* A peer that has several addresses is let go. */
static void forget_also(struct udp *u, uint32_t rank)
{
    memset(&u->peer[rank], 0, sizeof u->peer[rank]);
    u->connected--;
    u->changes++;
    drop_alsos(u, rank, NULL);
}

int rnl_udp_disconnect(struct rnl_transport *t, uint32_t rank)
{
    struct udp *u = udp_of(t);
    struct udp_peer *p = NULL;
    int status = rnl_udp_find(u, rank, &p);
    if (status < 0)
        return status;
    rnl_udp_send_forget(u, rank);
    if (p->connected == 2) {
        forget_also(u, rank);
        return 0;
    }
    memset(p, 0, sizeof *p);
    /* What stands behind it in the table must not be cut off from where its search begins: move it up. */
    uint32_t mask = u->slots - 1, hole = 0;
    while (u->slot[hole] != rank + 1)
        hole++;
    u->slot[hole] = 0;
    for (uint32_t i = (hole + 1) & mask; u->slot[i]; i = (i + 1) & mask) {
        uint32_t moved = u->slot[i];
        u->slot[i] = 0;
        slot_add(u, moved);
    }
    u->connected--;
    u->changes++;
    return 0;
}

static struct udp_also *find_also(struct udp *u, uint32_t rank, unsigned way)
{
    for (uint32_t i = 0; i < u->alsos; i++)
        if (u->also[i].rank == rank && u->also[i].way == way)
            return &u->also[i];
    return NULL;
}

int rnl_udp_way(struct udp *u, uint32_t rank, unsigned way, struct rnl_socket_addr *out)
{
    struct udp_peer *p = NULL;
    int status = rnl_udp_find(u, rank, &p);
    if (status < 0)
        return status;
    const struct udp_also *also = p->connected == 2 ? find_also(u, rank, way) : NULL;
    if (!also && (way || p->connected == 2))
        return rnl_fail(RNL_ERR_RANK, "rank %u has no address number %u", rank, way);
    *out = also ? also->addr : p->addr;
    return 0;
}

/* Room for n more. */
static int also_room(struct udp *u, uint32_t n)
{
    if (u->alsos + n <= u->also_room)
        return 0;
    uint32_t room = 2 * u->also_room + n;
    struct udp_also *more = realloc(u->also, room * sizeof *more);
    if (more == NULL)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for %u addresses of peers", room);
    u->also = more;
    u->also_room = room;
    return 0;
}

int rnl_udp_also(struct rnl_transport *t, uint32_t rank, const struct rnl_addr *addr, unsigned *way)
{
    struct udp *u = udp_of(t);
    struct udp_peer *p = NULL;
    struct rnl_socket_addr a;
    unsigned n = 1;
    int status = rnl_udp_find(u, rank, &p);
    if (status == 0)
        status = rnl_udp_addr_read(addr, &a);
    if (status < 0)
        return status;
    if (rnl_udp_who(u, &a) != RNL_PEER_STRANGER)
        return RNL_ERR_RANK; /* where hosts number their networks alike that is no failure: nothing to be recorded */
    while (p->connected == 2 && find_also(u, rank, n))
        n++;
    if (n >= UDP_WAYS)
        return rnl_fail(RNL_ERR_TOO_LONG, "rank %u has %u addresses already, as many as there may be", rank, n);
    uint32_t entries = p->connected == 2 ? 1 : 2;
    status = also_room(u, entries);
    if (status == 0 && 2 * (u->connected + u->alsos + entries) > u->slots)
        status = slots_anew(u, u->connected + u->alsos + entries);
    if (status < 0)
        return status;
    if (p->connected == 1) { /* what it has had so far is found by another entry from now on */
        uint32_t i = hash_of(&p->addr);
        while (u->slot[i & (u->slots - 1)] != rank + 1)
            i++;
        u->also[u->alsos] = (struct udp_also){p->addr, rank, 0};
        u->slot[i & (u->slots - 1)] = u->t.env->size + 1 + u->alsos++;
    }
    u->also[u->alsos] = (struct udp_also){a, rank, n};
    slot_add(u, u->t.env->size + 1 + u->alsos++);
    p->connected = 2;
    u->changes++;
    *way = n;
    return 0;
}

int rnl_udp_aim(struct rnl_transport *t, uint32_t rank, unsigned way)
{
    struct udp *u = udp_of(t);
    struct rnl_socket_addr to;
    int status = rnl_udp_way(u, rank, way, &to);
    if (status < 0)
        return status;
    u->peer[rank].addr = to;
    u->changes++; /* what comes from there is not from aside any more */
    return 0;
}

int rnl_udp_mark(struct rnl_transport *t, uint32_t rank, int on)
{
    struct udp_peer *p = NULL;
    int status = rnl_udp_find(udp_of(t), rank, &p);
    if (status < 0)
        return status;
    if (on && !(t->caps & RNL_CAP_ECN))
        return rnl_fail(RNL_ERR_UNSUPPORTED, "this socket cannot mark packets");
    p->ecn = on ? RNL_ECN_ECT0 : RNL_ECN_NOT;
    return 0;
}

uint32_t rnl_udp_mtu(struct rnl_transport *t, uint32_t rank)
{
    (void)rank; /* what a way takes is found by who knows what arrived */
    return udp_of(t)->socket->datagram_max;
}

void rnl_udp_note(struct udp *u, struct rnl_notice n)
{
    if (u->notices == UDP_NOTICES) { /* the oldest is forgotten */
        u->notice_first++;
        u->notices--;
    }
    u->notice[(u->notice_first + u->notices++) % UDP_NOTICES] = n;
}

int rnl_udp_notice(struct rnl_transport *t, struct rnl_notice *out)
{
    static const uint8_t kind_of[] = {[RNL_SOCKET_ERROR_REFUSED] = RNL_NOTICE_REFUSED,
                                      [RNL_SOCKET_ERROR_UNREACHABLE] = RNL_NOTICE_UNREACHABLE,
                                      [RNL_SOCKET_ERROR_FORBIDDEN] = RNL_NOTICE_FORBIDDEN,
                                      [RNL_SOCKET_ERROR_TOO_LONG] = RNL_NOTICE_TOO_LONG};
    struct udp *u = udp_of(t);
    struct rnl_socket_error e;
    while (u->socket->ops->error(u->socket, &e) == 1) {
        uint32_t peer = rnl_udp_who(u, &e.to);
        if (peer != RNL_PEER_STRANGER && e.kind < sizeof kind_of && kind_of[e.kind])
            rnl_udp_note(u, (struct rnl_notice){kind_of[e.kind], peer, e.value, e.sys_errno});
    }
    if (u->notices == 0)
        return 0;
    *out = u->notice[u->notice_first++ % UDP_NOTICES];
    u->notices--;
    return 1;
}
