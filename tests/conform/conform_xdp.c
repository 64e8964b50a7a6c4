/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The datagram transport over AF_XDP, between two namespaces of this test: conform_xdp PLACES 4|6 generic|copy|vlan
 * [FAULTS]. Places 0 and 2 are on one side of the wire, 1 and 3 on the other; those of one side share a queue. vlan:
 * the addresses are those of a VLAN on the wire. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conform/conform.h"
#include "net/datagram/udp.h"
#include "net/socket/kernel.h"
#include "net/socket/xdp/queue.h"
#include "net/socket/xdp/xdp.h"
#include "runnel/runnel.h"
#include "support/must.h"
#include "support/netns.h"

static unsigned places;
static bool six, vlan;
static enum rnl_xdp_mode mode;
static const char *faults;

struct world {
    struct rnl_env env[CONFORM_PLACES];
    struct rnl_socket *socket[CONFORM_PLACES];
    struct rnl_xdp_queue *queue[2];
};
static uint64_t by_rings, by_kernel;

static const struct rnl_env_ops ops = {.size = sizeof ops, .now_ns = rnl_host_now_ns};

static int open_kernel(unsigned side, struct rnl_socket **out)
{
    struct rnl_socket_addr a = {.port = 0};
    const uint8_t v4[16] = {[10] = 0xff, 0xff, 10, vlan ? 78 : 77, 0, (uint8_t)(side + 1)},
                  v6[16] = {0xfd, vlan ? 0x78 : 0x77, [15] = (uint8_t)(side + 1)};
    memcpy(a.ip, six ? v6 : v4, sizeof a.ip);
    int status = rnl_kernel_socket_open(&a, NULL, out);
    if (status == 0)
        (*out)->datagram_max = six ? 1452 : 1472; /* longer ones do not pass the wire */
    return status;
}

/* Opens the sockets of one side, on one queue. */
static int make_side(struct world *w, unsigned side)
{
    struct rnl_socket *kernel[CONFORM_PLACES] = {NULL};
    uint16_t port[CONFORM_PLACES];
    uint32_t n = 0;
    int status = 0;
    support_netns_enter(side);
    for (unsigned i = side; i < places && status == 0; i += 2)
        if ((status = open_kernel(side, &kernel[n])) == 0) {
            port[n] = kernel[n]->self.port;
            n++;
        }
    if (status == 0 && n > 0)
        status = rnl_xdp_queue_open(SUPPORT_NETNS_WIRE, 0, mode, port, n, &w->queue[side]);
    for (uint32_t i = 0; i < n && status == 0; i++)
        status = rnl_xdp_socket_new(kernel[i], rnl_xdp_queue_socket(w->queue[side], i),
                                    rnl_xdp_queue_memory(w->queue[side]), NULL, &w->socket[side + 2 * i]);
    return status;
}

static int make(struct conform_net *net)
{
    struct world *w = calloc(1, sizeof *w);
    net->state = w;
    int status = w ? make_side(w, 0) : -1;
    if (status == 0)
        status = make_side(w, 1);
    for (uint32_t i = 0; i < places && status == 0; i++) {
        w->env[i] = (struct rnl_env){.ops = &ops, .rank = i, .size = places, .incarnation = 100 + i};
        if (faults) /* those bodies count on every packet */
            w->socket[i]->has_fd = 0;
        rnl_udp_addr_of(&w->socket[i]->self, &net->addr[i]);
        status = rnl_udp_transport_new(&w->env[i], w->socket[i], NULL, &net->t[i]);
    }
    if (status < 0)
        printf("%s\n", rnl_last_error()->text);
    return status;
}

static void step(struct conform_net *net)
{
    (void)net;
    for (uint64_t until = rnl_host_now_ns(NULL) + 1000; rnl_host_now_ns(NULL) < until;)
        ;
}

static void destroy(struct conform_net *net)
{
    struct world *w = net->state;
    struct rnl_xdp_facts f;
    for (uint32_t i = 0; i < places; i++)
        if (net->t[i]) {
            rnl_xdp_socket_facts(w->socket[i], &f);
            TEST_MUST(f.works);
            by_rings += f.frames.received;
            by_kernel += f.received_kernel;
            net->t[i]->ops->close(net->t[i]);
        }
    for (int i = 0; i < 2; i++)
        if (w->queue[i])
            rnl_xdp_queue_close(w->queue[i]);
    free(w);
}

int main(int argc, char **argv)
{
    places = argc > 1 ? (unsigned)atoi(argv[1]) : 2;
    six = argc > 2 && strcmp(argv[2], "6") == 0;
    vlan = argc > 3 && strcmp(argv[3], "vlan") == 0;
    mode = argc > 3 && strcmp(argv[3], "copy") == 0 ? RNL_XDP_COPY : RNL_XDP_GENERIC;
    faults = argc > 4 ? argv[4] : NULL;
    const char *why = support_netns_make();
    if (!why)
        why = support_netns_no_xdp();
    if (why) {
        printf("%s\n", why);
        return 77;
    }
    for (unsigned i = 0; i < 2 && vlan; i++)
        if (!support_netns_try(i, "ip link add link wire name tagged type vlan id 5 2>/dev/null")) {
            printf("the kernel of this machine has no VLANs\n");
            return 77;
        }
    for (unsigned i = 0; i < 2 && vlan; i++)
        support_netns_do(i, "ip addr add 10.78.0.%u/24 dev tagged && ip link set tagged up", i + 1);
    int status = conform_run(&(struct conform_fixture){.name = "xdp",
                                                       .places = places,
                                                       .faults = faults,
                                                       .make = make,
                                                       .step = faults ? step : NULL,
                                                       .destroy = destroy});
    printf("%llu datagrams came by rings, %llu datagrams and runs by the kernel's sockets\n",
           (unsigned long long)by_rings, (unsigned long long)by_kernel);
    return status == 0 && by_rings <= by_kernel ? 1 : status; /* most go by them */
}
