/* SPDX-License-Identifier: BSD-3-Clause
 *
 * net_bench.h - what the tests of the virtual network share: a network with sockets, and packets that carry a number.
 */
#ifndef RNL_TESTS_SIM_NET_BENCH_H
#define RNL_TESTS_SIM_NET_BENCH_H

#include "runnel/runnel.h"
#include "sim/cluster/net.h"
#include "support/unit.h"

enum { NET_PORT = 7000, NET_HOSTS_MAX = 1024 };

struct net_bench {
    struct rnl_sim *sim;
    struct vc_net *net;
    struct rnl_socket *socket[NET_HOSTS_MAX];
    uint32_t hosts;
};

#define GBPS(n) ((uint64_t)(n)*1000000000u)

static inline struct net_bench *net_bench_new(uint64_t seed, uint32_t hosts, uint32_t switches)
{
    struct net_bench *b = calloc(1, sizeof *b);
    assert_non_null(b);
    assert_int_equal(rnl_sim_new(seed, &b->sim), 0);
    assert_int_equal(vc_net_new(b->sim, hosts, switches, &b->net), 0);
    b->hosts = hosts;
    return b;
}

static inline void net_bench_socket(struct net_bench *b, uint32_t host, struct vc_net_socket_config config)
{
    config.port = config.port ? config.port : NET_PORT;
    assert_int_equal(vc_net_socket_open(b->net, host, &config, &b->socket[host]), 0);
}

/* Routes, and a socket for each host. */
static inline void net_bench_start(struct net_bench *b, struct vc_net_socket_config config)
{
    assert_int_equal(vc_net_route(b->net), 0);
    for (uint32_t i = 0; i < b->hosts; i++)
        net_bench_socket(b, i, config);
}

/* Two hosts and a link between them. */
static inline struct net_bench *net_bench_pair(uint64_t seed, const struct vc_net_link_config *config,
                                               struct vc_net_socket_config sockets)
{
    struct net_bench *b = net_bench_new(seed, 2, 0);
    assert_int_equal(vc_net_connect(b->net, 0, 1, config, NULL), 0);
    net_bench_start(b, sockets);
    return b;
}

static inline void net_bench_free(struct net_bench *b)
{
    vc_net_free(b->net);
    rnl_sim_free(b->sim);
    free(b);
}

static inline uint64_t net_bench_ns(const struct net_bench *b)
{
    return rnl_sim_now(b->sim) / VC_TICKS_PER_NS;
}

static inline void net_bench_run(struct net_bench *b, uint64_t until_ns)
{
    rnl_sim_run(b->sim, until_ns == UINT64_MAX ? RNL_SIM_NEVER : until_ns * VC_TICKS_PER_NS);
}

/* One datagram that begins with `number`: why it was not taken, RNL_SOCKET_WENT. */
static inline uint32_t net_bench_send(struct net_bench *b, uint32_t from, uint32_t to, uint64_t number, uint32_t bytes,
                                      uint8_t ecn)
{
    static unsigned char data[65536];
    struct rnl_socket_out out = {.to = vc_net_addr(to, NET_PORT), .at = data, .bytes = bytes, .ecn = ecn};
    struct rnl_socket_result r;
    memset(data, (int)number, bytes);
    memcpy(data, &number, bytes < 8 ? bytes : 8);
    (void)b->socket[from]->ops->send(b->socket[from], &out, 1, &r);
    return r.stop;
}

/* The next that came; its bytes, or -1. */
static inline int net_bench_recv(struct net_bench *b, uint32_t host, uint64_t *number, uint8_t *ecn)
{
    static unsigned char data[65536];
    struct rnl_socket_in in = {.at = data, .room = sizeof data};
    if (b->socket[host]->ops->recv(b->socket[host], &in, 1) != 1)
        return -1;
    *number = 0;
    memcpy(number, data, in.bytes < 8 ? in.bytes : 8);
    if (ecn)
        *ecn = in.ecn;
    return (int)in.bytes;
}

#endif
