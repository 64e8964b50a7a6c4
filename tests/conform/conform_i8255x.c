/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The datagram transport over two cards of this machine that are on one wire, through uio or vfio:
 * conform_i8255x uio|vfio SLOT SLOT [FAULTS]. tests/vm runs it in a machine that has such cards. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conform/conform.h"
#include "net/datagram/udp.h"
#include "net/socket/i8255x/i8255x.h"
#include "runnel/runnel.h"

static char **slot;
static enum rnl_i8255x_way way;
static const char *faults;
static uint64_t received, refused, restarts;

struct world {
    struct rnl_env env[2];
    struct rnl_socket *socket[2];
    struct rnl_i8255x_grant grant[2];
};
static const struct rnl_env_ops ops = {.size = sizeof ops, .now_ns = rnl_host_now_ns};

static int open_card(struct world *w, unsigned i)
{
    struct rnl_i8255x_grant *g = &w->grant[i];
    int status = rnl_i8255x_take(slot[i], way, g);
    g->wire = 1;
    if (status == 0 && (status = rnl_i8255x_socket_new(g, 1, 7000, &w->socket[i])) < 0)
        rnl_i8255x_give_back(g);
    if (status == 0)
        g->device = g->registers = g->memory = g->line = -1;
    return status;
}

static int make(struct conform_net *net)
{
    struct world *w = calloc(1, sizeof *w);
    int status = w ? 0 : -1;
    net->state = w;
    for (uint32_t i = 0; i < 2 && status == 0; i++) {
        status = open_card(w, i);
        if (status < 0)
            break;
        w->env[i] = (struct rnl_env){.ops = &ops, .rank = i, .size = 2, .incarnation = 100 + i};
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
    struct rnl_i8255x_facts f;
    for (int i = 0; i < 2; i++) {
        if (net->t[i]) {
            (void)rnl_i8255x_socket_facts(w->socket[i], 0, &f);
            received += f.received;
            refused += f.refused;
            restarts += f.rx_restarts + f.tx_restarts;
            net->t[i]->ops->close(net->t[i]);
        }
        if (w->socket[i]) /* was opened; a case may have closed it */
            rnl_i8255x_give_back(&w->grant[i]);
    }
    free(w);
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        printf("it takes two cards\n");
        return 77;
    }
    way = strcmp(argv[1], "vfio") == 0 ? RNL_I8255X_VFIO : RNL_I8255X_UIO;
    slot = argv + 2;
    faults = argc > 4 ? argv[4] : NULL;
    const int status = conform_run(&(struct conform_fixture){.name = "i8255x",
                                                             .places = 2,
                                                             .wakes_ms = 2000,
                                                             .faults = faults,
                                                             .make = make,
                                                             .step = step,
                                                             .destroy = destroy});
    printf("%llu datagrams came by cards, %llu frames were none, units were started again %llu times\n",
           (unsigned long long)received, (unsigned long long)refused, (unsigned long long)restarts);
    return status == 0 && received == 0 ? 1 : status;
}
