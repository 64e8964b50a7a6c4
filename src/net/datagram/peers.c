/* SPDX-License-Identifier: BSD-3-Clause
 *
 * peers.c - the addresses of peers: by rank, and by address in a hash table. */
#include "base/bug.h"
#include "net/datagram/udp_internal.h"

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
    return entry <= u->t.env->size ? &u->peer[entry - 1].addr : &u->further[entry - 1 - u->t.env->size].addr;
}

static uint32_t rank_of(const struct udp *u, uint32_t entry)
{
    return entry <= u->t.env->size ? entry - 1 : u->further[entry - 1 - u->t.env->size].rank;
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
    for (uint32_t i = 0; i < u->furthers; i++)
        slot_add(u, u->t.env->size + 1 + i);
}

/* Fills the hash table anew, with room for so many addresses. At most half of its slots are used, so searches end. */
static int slots_anew(struct udp *u, uint32_t addresses)
{
    uint32_t slots = SLOTS_LEAST;
    while (slots < 2 * addresses)
        slots *= 2;
    if (slots != u->slots) {
        uint32_t *slot = calloc(slots, sizeof *slot);
        if (!slot)
            return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for %u addresses of peers", addresses);
        free(u->slot);
        u->slot = slot;
        u->slots = slots;
    }
    slots_fill(u);
    return 0;
}

/* ---- the operations ---- */

struct udp_peer *rnl_udp_find(struct udp *u, uint32_t rank)
{
    if (rank < u->t.env->size && u->peer[rank].connected)
        return &u->peer[rank];
    rnl_fail(RNL_ERR_RANK, "rank %u is not connected", rank);
    return NULL;
}

static struct udp_further *find_further(struct udp *u, uint32_t rank, unsigned path)
{
    for (uint32_t i = 0; i < u->furthers; i++)
        if (u->further[i].rank == rank && u->further[i].path == path)
            return &u->further[i];
    return NULL;
}

int rnl_udp_path(struct udp *u, uint32_t rank, unsigned path, struct rnl_socket_addr *out)
{
    struct udp_peer *p = rnl_udp_find(u, rank);
    if (!p)
        return RNL_ERR_RANK;
    const struct udp_further *one = p->connected == 2 ? find_further(u, rank, path) : NULL;
    if (!one && (path || p->connected == 2))
        return rnl_fail(RNL_ERR_RANK, "rank %u has no path %u", rank, path);
    *out = one ? one->addr : p->addr;
    return 0;
}

/* Drops all of a rank's entries in further[], or the one with this address. What lies behind them in the list moves up,
 * so the table is filled anew, which needs no more room than it has. */
static void drop_furthers(struct udp *u, uint32_t rank, const struct rnl_socket_addr *only)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < u->furthers; i++)
        if (u->further[i].rank != rank || (only && !rnl_socket_addr_equal(&u->further[i].addr, only)))
            u->further[kept++] = u->further[i];
    u->furthers = kept;
    slots_fill(u);
}

/* Nobody has proved that a peer can be reached at each of its addresses. So one that is not its active path is taken
 * from it for a peer that has no other. True: the address is free now. */
static bool take_from(struct udp *u, uint32_t rank, const struct rnl_socket_addr *a)
{
    if (u->peer[rank].connected != 2 || rnl_socket_addr_equal(&u->peer[rank].addr, a))
        return false;
    drop_furthers(u, rank, a);
    return true;
}

static int room_for_further(struct udp *u, uint32_t n)
{
    if (u->furthers + n <= u->further_room)
        return 0;
    uint32_t room = 2 * u->further_room + n;
    struct udp_further *more = realloc(u->further, room * sizeof *more);
    if (!more)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for %u addresses of peers", room);
    u->further = more;
    u->further_room = room;
    return 0;
}

/* Adds the address as this path of the peer. 1 = it was taken; 0 = another peer has it, or this one has it already. */
static int add_further(struct udp *u, uint32_t rank, const struct rnl_socket_addr *a, unsigned path)
{
    struct udp_peer *p = &u->peer[rank];
    uint32_t entries = p->connected == 2 ? 1 : 2;
    if (rnl_udp_who(u, a) != RNL_PEER_STRANGER)
        return 0; /* for example, hosts may have private networks with the same numbers */
    int status = room_for_further(u, entries);
    if (status == 0 && 2 * (u->connected + u->furthers + entries) > u->slots)
        status = slots_anew(u, u->connected + u->furthers + entries);
    if (status < 0)
        return status;
    if (p->connected == 1) { /* its first address is found by an entry of further[] from now on */
        uint32_t i = hash_of(&p->addr);
        while (u->slot[i & (u->slots - 1)] != rank + 1)
            i++;
        u->further[u->furthers] = (struct udp_further){p->addr, rank, 0};
        u->slot[i & (u->slots - 1)] = u->t.env->size + 1 + u->furthers++;
    }
    u->further[u->furthers] = (struct udp_further){*a, rank, path};
    slot_add(u, u->t.env->size + 1 + u->furthers++);
    p->connected = 2;
    return 1;
}

static int add_first(struct udp *u, uint32_t rank, const struct rnl_socket_addr *a, uint64_t incarnation)
{
    struct udp_peer *p = &u->peer[rank];
    uint32_t other = rnl_udp_who(u, a);
    if (other != RNL_PEER_STRANGER && !u->t.env->meet && !take_from(u, other, a))
        return rnl_fail(RNL_ERR_RANK, "rank %u has the address of rank %u, which is a peer already", rank, other);
    if (2 * (u->connected + u->furthers + 1) > u->slots) {
        int status = slots_anew(u, u->connected + u->furthers + 1);
        if (status < 0)
            return status;
    }
    *p = (struct udp_peer){.addr = *a, .incarnation = incarnation, .connected = 1};
    u->connected++;
    slot_add(u, rank + 1);
    return 0;
}

/* One bit for each address of the list that is the peer's. */
static int taken_of(const struct udp *u, uint32_t rank, const struct rnl_socket_addr *a, unsigned n)
{
    int taken = 0;
    for (unsigned i = 0; i < n; i++)
        taken |= (int)(rnl_udp_who(u, &a[i]) == rank) << i;
    return taken;
}

int rnl_udp_add_peer(struct rnl_transport *t, uint32_t rank, const struct rnl_addr *addr, unsigned n,
                     uint64_t incarnation)
{
    struct udp *u = udp_of(t);
    struct rnl_socket_addr a[RNL_PATHS_MAX];
    int status = 0;
    if (rank >= t->env->size)
        return rnl_fail(RNL_ERR_RANK, "no rank %u: the job has ranks 0 to %u", rank, t->env->size - 1);
    if (!addr || n < 1 || n > RNL_PATHS_MAX)
        return rnl_fail(RNL_ERR_ARG, "%u addresses for rank %u: a peer has 1 to %d", addr ? n : 0, rank, RNL_PATHS_MAX);
    for (unsigned i = 0; i < n && status == 0; i++)
        status = rnl_udp_addr_read(&addr[i], &a[i]);
    if (status < 0)
        return status;
    const struct udp_peer *p = &u->peer[rank];
    if (p->connected) {
        const struct udp_further *one = p->connected == 2 ? find_further(u, rank, 0) : NULL;
        bool same = p->connected == 2 ? one && rnl_socket_addr_equal(&a[0], &one->addr)
                                      : rnl_socket_addr_equal(&a[0], &p->addr);
        if (!same || (incarnation && p->incarnation && incarnation != p->incarnation))
            return rnl_fail(RNL_ERR_PEER_DEAD, "rank %u was added with another address or incarnation; remove it first",
                            rank);
        return taken_of(u, rank, a, n);
    }
    if ((status = add_first(u, rank, &a[0], incarnation)) < 0)
        return status;
    u->changes++;
    int taken = 1;
    for (unsigned i = 1, path = 1; i < n; i++) {
        status = add_further(u, rank, &a[i], path);
        if (status < 0) {
            (void)rnl_udp_remove_peer(t, rank);
            return status;
        }
        path += (unsigned)status;
        taken |= status << i;
    }
    return taken;
}

int rnl_udp_remove_peer(struct rnl_transport *t, uint32_t rank)
{
    struct udp *u = udp_of(t);
    struct udp_peer *p = rnl_udp_find(u, rank);
    if (!p)
        return RNL_ERR_RANK;
    rnl_udp_send_forget(u, rank);
    bool several = p->connected == 2;
    memset(p, 0, sizeof *p);
    u->connected--;
    u->changes++;
    if (several) {
        drop_furthers(u, rank, NULL);
        return 0;
    }
    /* Entries behind the hole must stay reachable from where their search begins, so they are added again. */
    uint32_t mask = u->slots - 1, hole = 0;
    while (u->slot[hole] != rank + 1)
        hole++;
    u->slot[hole] = 0;
    for (uint32_t i = (hole + 1) & mask; u->slot[i]; i = (i + 1) & mask) {
        uint32_t moved = u->slot[i];
        u->slot[i] = 0;
        slot_add(u, moved);
    }
    return 0;
}

int rnl_udp_set_active_path(struct rnl_transport *t, uint32_t rank, unsigned path)
{
    struct udp *u = udp_of(t);
    struct rnl_socket_addr to;
    int status = rnl_udp_path(u, rank, path, &to);
    if (status < 0)
        return status;
    u->peer[rank].addr = to;
    u->changes += !RNL_BUG(net_stale_active_path); /* so that RNL_VIEW_ASIDE of later packets is found anew */
    return 0;
}

bool rnl_udp_is_path_down(struct rnl_transport *t, uint32_t rank, unsigned path)
{
    struct udp *u = udp_of(t);
    struct rnl_socket_addr to;
    return u->socket->ops->is_down && rnl_udp_path(u, rank, path, &to) == 0 && u->socket->ops->is_down(u->socket, &to);
}

uint32_t rnl_udp_mtu(struct rnl_transport *t, uint32_t rank)
{
    (void)rank; /* the MTU of a path is found by net/flow/, which knows what arrived */
    return udp_of(t)->socket->datagram_max;
}
