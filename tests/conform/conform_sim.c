/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The datagram transport over sockets of virtual hosts: conform_sim PLACES runs|plain [FAULTS]. Hosts on one switch,
 * whose links are 10 Gb/s and have small queues; time passes in steps. */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "conform/conform.h"
#include "net/datagram/udp.h"
#include "sim/cluster/net.h"

enum { STEP_NS = 20000 };

static unsigned places;
static int plain;
static const char *faults;

struct world {
    struct rnl_sim *sim;
    struct vc_net *net;
    struct place {
        struct rnl_env env;
        struct world *world;
        int fd;
    } place[CONFORM_PLACES];
};

/* ---- an env that knows virtual time, and no more ---- */

static uint64_t place_now_ns(struct rnl_env *env)
{
    const struct place *p = (const struct place *)(const void *)env;
    return rnl_sim_now(p->world->sim) / VC_TICKS_PER_NS;
}

static const struct rnl_env_ops place_ops = {.size = sizeof place_ops, .now_ns = place_now_ns};

static void place_ring(void *arg)
{
    const struct place *p = arg;
    (void)!eventfd_write(p->fd, 1);
}

static void place_drain(void *arg)
{
    const struct place *p = arg;
    eventfd_t count;
    (void)!eventfd_read(p->fd, &count);
}

static int place_fd(void *arg)
{
    return ((const struct place *)arg)->fd;
}

static int make_place(struct conform_net *net, struct world *w, uint32_t i)
{
    struct place *p = &w->place[i];
    struct rnl_socket *socket;
    p->world = w;
    p->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    p->env = (struct rnl_env){.ops = &place_ops, .rank = i, .size = places, .incarnation = 100 + i};
    int status = vc_net_socket_open(w->net, i,
                                    &(struct vc_net_socket_config){.port = 5000,
                                                                   .plain = (uint8_t)plain,
                                                                   .ring = place_ring,
                                                                   .drain = place_drain,
                                                                   /* Those bodies count on every packet. */
                                                                   .fd = faults ? NULL : place_fd,
                                                                   .arg = p},
                                    &socket);
    if (status == 0)
        rnl_udp_addr_of(&socket->self, &net->addr[i]);
    return status < 0 ? status : rnl_udp_transport_new(&p->env, socket, NULL, &net->t[i]);
}

static int make(struct conform_net *net)
{
    struct world *w = calloc(1, sizeof *w);
    int status = w ? rnl_sim_new(1, &w->sim) : -1;
    net->state = w;
    if (status == 0)
        status = vc_net_new(w->sim, places, 1, &w->net);
    if (status == 0)
        status = vc_net_star(w->net, places,
                             &(struct vc_net_link_config){
                                 .bits_per_s = (uint64_t)10000000000, .delay_ns = 1000, .buffer_bytes = 200000});
    if (status == 0)
        status = vc_net_route(w->net);
    for (uint32_t i = 0; i < places && status == 0; i++)
        status = make_place(net, w, i);
    return status;
}

static void step(struct conform_net *net)
{
    struct world *w = net->state;
    rnl_sim_run(w->sim, rnl_sim_now(w->sim) + STEP_NS * VC_TICKS_PER_NS);
}

static void destroy(struct conform_net *net)
{
    struct world *w = net->state;
    for (uint32_t i = 0; i < places; i++) {
        if (net->t[i])
            net->t[i]->ops->close(net->t[i]);
        close(w->place[i].fd);
    }
    vc_net_free(w->net);
    rnl_sim_free(w->sim);
    free(w);
}

int main(int argc, char **argv)
{
    places = argc > 1 ? (unsigned)atoi(argv[1]) : 2;
    plain = argc > 2 && strcmp(argv[2], "plain") == 0;
    faults = argc > 3 ? argv[3] : NULL;
    return conform_run(&(struct conform_fixture){
        .name = "sim", .places = places, .faults = faults, .make = make, .step = step, .destroy = destroy});
}
