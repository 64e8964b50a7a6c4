/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The datagram transport over the kernel's sockets on loopback: conform_udp PLACES 4|6|46 runs|plain|threads
 * [FAULTS]. 4, 6: the loopback address of that family; 46: bound to all addresses of both, IPv4 travels. plain: without
 * what a kernel may lack. threads: each transport has a thread of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conform/conform.h"
#include "net/datagram/udp.h"
#include "net/socket/kernel.h"
#include "runnel/runnel.h"

static unsigned places;
static bool plain, threads;
static const char *family, *faults;

struct world {
    struct rnl_env env[CONFORM_PLACES];
};

static const struct rnl_env_ops ops = {.size = sizeof ops, .now_ns = rnl_host_now_ns};

static int open_socket(struct rnl_socket **out)
{
    struct rnl_socket_addr a = {.port = 0};
    struct rnl_kernel_options o = {
        .without = plain ? RNL_KERNEL_SEGMENT | RNL_KERNEL_MERGE | RNL_KERNEL_ECN | RNL_KERNEL_ERRORS : 0};
    if (strcmp(family, "6") == 0)
        a.ip[15] = 1;
    else if (strcmp(family, "4") == 0)
        memcpy(a.ip, (const uint8_t[16]){[10] = 0xff, 0xff, 127, 0, 0, 1}, sizeof a.ip);
    int status = rnl_kernel_socket_open(&a, &o, out);
    if (status == 0 && strcmp(family, "46") == 0) /* what the others are to send to */
        memcpy((*out)->self.ip, (const uint8_t[16]){[10] = 0xff, 0xff, 127, 0, 0, 1}, sizeof a.ip);
    return status;
}

static int make(struct conform_net *net)
{
    struct world *w = calloc(1, sizeof *w);
    int status = w ? 0 : -1;
    net->state = w;
    for (uint32_t i = 0; i < places && status == 0; i++) {
        struct rnl_socket *s;
        w->env[i] = (struct rnl_env){.ops = &ops, .rank = i, .size = places, .incarnation = 100 + i};
        status = open_socket(&s);
        if (status == 0 && faults) /* those bodies count on every packet */
            s->has_fd = 0;
        if (status == 0)
            rnl_udp_addr_of(&s->self, &net->addr[i]);
        if (status == 0 && (status = rnl_udp_transport_new(&w->env[i], s, NULL, &net->t[i])) < 0)
            s->ops->close(s);
    }
    return status;
}

/* What the faults hold back comes when its time has come, and bodies count in steps. */
static void step(struct conform_net *net)
{
    (void)net;
    for (uint64_t until = rnl_host_now_ns(NULL) + 1000; rnl_host_now_ns(NULL) < until;)
        ;
}

static void destroy(struct conform_net *net)
{
    for (uint32_t i = 0; i < places; i++)
        if (net->t[i])
            net->t[i]->ops->close(net->t[i]);
    free(net->state);
}

int main(int argc, char **argv)
{
    struct rnl_socket *s;
    places = argc > 1 ? (unsigned)atoi(argv[1]) : 2;
    family = argc > 2 ? argv[2] : "4";
    plain = argc > 3 && strcmp(argv[3], "plain") == 0;
    threads = argc > 3 && strcmp(argv[3], "threads") == 0;
    faults = argc > 4 ? argv[4] : NULL;
    if (open_socket(&s) < 0) {
        printf("no such loopback address on this machine: %s\n", rnl_last_error()->text);
        return 77;
    }
    s->ops->close(s);
    return conform_run(&(struct conform_fixture){.name = "udp",
                                                 .places = places,
                                                 .threads = threads,
                                                 .faults = faults,
                                                 .make = make,
                                                 .step = faults ? step : NULL,
                                                 .destroy = destroy});
}
