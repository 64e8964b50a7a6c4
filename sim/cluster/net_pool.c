/* SPDX-License-Identifier: BSD-3-Clause
 *
 * net_pool.c - where packets and their bytes lie while they are under way: in chunks that are kept until the network
 * ends. Bytes come in four sizes. */
#include <stdlib.h>
#include <string.h>

#include "sim/cluster/net_internal.h"

struct net_chunk {
    struct net_chunk *next;
    uint32_t packets; /* 0: bytes of packets */
    max_align_t memory[];
};

enum { PACKETS = 256 };
static const struct {
    uint32_t bytes, count;
} classes[NET_CLASSES] = {{256, 256}, {2048, 64}, {16384, 16}, {65536, 4}};

static void *chunk_new(struct vc_net *net, size_t bytes, uint32_t packets)
{
    struct net_chunk *c = malloc(sizeof *c + bytes);
    if (!c)
        return NULL;
    c->next = net->chunks;
    c->packets = packets;
    net->chunks = c;
    net->counts.pool_bytes += sizeof *c + bytes;
    return c->memory;
}

static bool more_packets(struct vc_net *net)
{
    struct net_packet *p = chunk_new(net, PACKETS * sizeof *p, PACKETS);
    if (!p)
        return false;
    memset(p, 0, PACKETS * sizeof *p);
    for (int i = PACKETS; i-- > 0;) {
        p[i].next = net->unused;
        net->unused = &p[i];
    }
    return true;
}

static bool more_data(struct vc_net *net, unsigned k)
{
    unsigned char *at = chunk_new(net, (size_t)classes[k].bytes * classes[k].count, 0);
    if (!at)
        return false;
    for (uint32_t i = classes[k].count; i-- > 0;) {
        unsigned char *piece = at + (size_t)i * classes[k].bytes;
        memcpy(piece, &net->unused_data[k], sizeof net->unused_data[k]);
        net->unused_data[k] = piece;
    }
    return true;
}

struct net_packet *net_packet_new(struct vc_net *net, uint32_t bytes)
{
    unsigned k = 0;
    while (k < NET_CLASSES && bytes > classes[k].bytes)
        k++;
    if (k == NET_CLASSES || (!net->unused && !more_packets(net)) || (!net->unused_data[k] && !more_data(net, k)))
        return NULL;
    struct net_packet *p = net->unused;
    net->unused = p->next;
    memset(p, 0, sizeof *p);
    p->data = net->unused_data[k];
    p->size_class = (uint8_t)k;
    p->bytes = bytes;
    memcpy(&net->unused_data[k], p->data, sizeof net->unused_data[k]);
    if (++net->counts.under_way > net->counts.pool)
        net->counts.pool = net->counts.under_way;
    return p;
}

void net_packet_free(struct vc_net *net, struct net_packet *p)
{
    memcpy(p->data, &net->unused_data[p->size_class], sizeof net->unused_data[p->size_class]);
    net->unused_data[p->size_class] = p->data;
    p->next = net->unused;
    net->unused = p;
    net->counts.under_way--;
}

void net_pool_end(struct vc_net *net)
{
    while (net->chunks) {
        struct net_chunk *c = net->chunks;
        struct net_packet *p = (struct net_packet *)(void *)c->memory;
        net->chunks = c->next;
        for (uint32_t i = 0; i < c->packets; i++) /* those that do not keep the order of their link */
            rnl_sim_cancel(net->sim, &p[i].event);
        free(c);
    }
}
