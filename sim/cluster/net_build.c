/* SPDX-License-Identifier: BSD-3-Clause
 *
 * net_build.c - nodes, links and routes, and what can be changed about them. */
#include <stdlib.h>
#include <string.h>

#include "sim/cluster/net_internal.h"
#include "sim/engine/random.h"

enum { MTU = 1500, MTU_LEAST = 68, MTU_MOST = 65535, LINKS_FIRST = 16, NODES_MOST = 1 << 22 };

int vc_net_new(struct rnl_sim *sim, uint32_t hosts, uint32_t switches, struct vc_net **out)
{
    if (hosts == 0 || hosts > NODES_MOST || switches > NODES_MOST)
        return rnl_fail(RNL_ERR_ARG, "a network of %u hosts and %u switches: 1 to %d hosts, at most as many switches",
                        hosts, switches, NODES_MOST);
    struct vc_net *net = calloc(1, sizeof *net);
    if (!net || !(net->node = calloc((size_t)hosts + switches, sizeof *net->node)) ||
        !(net->host = calloc(hosts, sizeof *net->host))) {
        if (net)
            free(net->node);
        free(net);
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a network of %u hosts", hosts);
    }
    net->sim = sim;
    net->hosts = hosts;
    net->nodes = hosts + switches;
    for (uint32_t i = 0; i < net->nodes; i++)
        net->node[i].only = UINT32_MAX;
    for (uint32_t i = 0; i < hosts; i++)
        net->host[i].first_link = UINT32_MAX;
    *out = net;
    return 0;
}

int vc_net_set_switches(struct vc_net *net, uint32_t switches)
{
    if (net->links || switches > NODES_MOST)
        return rnl_fail(RNL_ERR_ARG, "%u switches: at most %d, and before the first link", switches, NODES_MOST);
    struct net_node *node = realloc(net->node, ((size_t)net->hosts + switches) * sizeof *node);
    if (!node)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for %u switches", switches);
    net->node = node;
    net->nodes = net->hosts + switches;
    for (uint32_t i = net->hosts; i < net->nodes; i++)
        node[i] = (struct net_node){.only = UINT32_MAX};
    return 0;
}

void vc_net_free(struct vc_net *net)
{
    if (!net)
        return;
    for (uint32_t i = 0; i < net->hosts; i++)
        while (net->host[i].sockets)
            net_socket_end(net->host[i].sockets);
    for (uint32_t i = 0; i < net->links; i++) {
        rnl_sim_cancel(net->sim, &net->link[i]->event);
        free(net->link[i]->waits);
        free(net->link[i]);
    }
    for (uint32_t i = 0; i < net->nodes; i++)
        free(net->node[i].routes);
    net_pool_end(net);
    free(net->link);
    free(net->node);
    free(net->host);
    free(net->blocked);
    free(net);
}

struct rnl_sim *vc_net_sim(const struct vc_net *net)
{
    return net->sim;
}

uint32_t vc_net_hosts(const struct vc_net *net)
{
    return net->hosts;
}

uint32_t vc_net_nodes(const struct vc_net *net)
{
    return net->nodes;
}

uint32_t vc_net_links(const struct vc_net *net)
{
    return net->links;
}

/* ---- links ---- */

static struct vc_net_link_config completed(const struct vc_net_link_config *config)
{
    struct vc_net_link_config c = *config;
    c.mtu = c.mtu ? c.mtu : MTU;
    c.mtu = c.mtu < MTU_LEAST ? MTU_LEAST : c.mtu > MTU_MOST ? MTU_MOST : c.mtu;
    c.overhead_bytes = c.overhead_bytes ? c.overhead_bytes : VC_NET_OVERHEAD;
    return c;
}

static int link_new(struct vc_net *net, uint32_t from, uint32_t to, const struct vc_net_link_config *config)
{
    if (net->links == net->link_room) {
        uint32_t room = net->link_room ? 2 * net->link_room : LINKS_FIRST;
        struct net_link **link = realloc(net->link, room * sizeof(struct net_link *));
        if (!link)
            return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for %u links", room);
        net->link = link;
        net->link_room = room;
    }
    struct net_link *l = calloc(1, sizeof *l);
    if (!l)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for link %u", net->links);
    l->net = net;
    l->id = net->links;
    l->from = from;
    l->to = to;
    l->config = completed(config);
    rnl_sim_event_init(&l->event, net_line_arrives, (uint32_t)VC_NET_ENTITY + l->id);
    net->link[net->links++] = l;
    if (from < net->hosts && net->host[from].first_link == UINT32_MAX)
        net->host[from].first_link = l->id;
    return 0;
}

int vc_net_connect(struct vc_net *net, uint32_t a, uint32_t b, const struct vc_net_link_config *config, uint32_t *out)
{
    uint32_t first = net->links;
    if (a >= net->nodes || b >= net->nodes || a == b)
        return rnl_fail(RNL_ERR_ARG, "a link between nodes %u and %u: two different ones of %u", a, b, net->nodes);
    int status = link_new(net, a, b, config);
    if (status < 0 || (status = link_new(net, b, a, config)) < 0)
        return status;
    if (out)
        *out = first;
    return 0;
}

int vc_net_star(struct vc_net *net, uint32_t hub, const struct vc_net_link_config *config)
{
    for (uint32_t i = 0; i < net->hosts; i++) {
        int status = i == hub ? 0 : vc_net_connect(net, i, hub, config, NULL);
        if (status < 0)
            return status;
    }
    return 0;
}

int vc_net_find_link(const struct vc_net *net, uint32_t a, uint32_t b, uint32_t *out)
{
    for (uint32_t i = 0; i < net->links; i++) {
        if (net->link[i]->from == a && net->link[i]->to == b) {
            *out = i;
            return 0;
        }
    }
    return rnl_fail(RNL_ERR_ARG, "there is no link from node %u to node %u", a, b);
}

void vc_net_link_ends(const struct vc_net *net, uint32_t link, uint32_t *from, uint32_t *to)
{
    *from = net->link[link]->from;
    *to = net->link[link]->to;
}

/* ---- routes ---- */

/* The links into each node, behind one another: what a search backwards from a host walks along. */
struct inward {
    uint32_t *begin, *link;  /* of node i: link[begin[i] .. begin[i + 1] - 1] */
    uint32_t *found, *first; /* nodes in the order of finding; by node: its link towards the host */
};

static int inward_new(const struct vc_net *net, struct inward *in)
{
    in->begin = calloc((size_t)net->nodes + 1, sizeof *in->begin);
    in->link = calloc(net->links ? net->links : 1, sizeof *in->link);
    in->found = calloc(net->nodes, sizeof *in->found);
    in->first = calloc(net->nodes, sizeof *in->first);
    if (!in->begin || !in->link || !in->found || !in->first)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the routes of %u nodes", net->nodes);
    for (uint32_t i = 0; i < net->links; i++)
        in->begin[net->link[i]->to + 1]++;
    for (uint32_t i = 0; i < net->nodes; i++)
        in->begin[i + 1] += in->begin[i];
    for (uint32_t i = 0; i < net->links; i++) {
        uint32_t *count = &in->found[net->link[i]->to];
        in->link[in->begin[net->link[i]->to] + (*count)++] = i;
    }
    return 0;
}

static void inward_free(struct inward *in)
{
    free(in->begin);
    free(in->link);
    free(in->found);
    free(in->first);
}

/* All nodes' first links towards the nth address of a host. */
static void search(const struct vc_net *net, struct inward *in, uint32_t host, uint32_t nth)
{
    uint32_t count = 1;
    memset(in->first, 0xff, net->nodes * sizeof *in->first);
    in->found[0] = host;
    in->first[host] = net->links; /* found, and goes nowhere */
    for (uint32_t next = 0; next < count; next++) {
        uint32_t node = in->found[next];
        for (uint32_t i = in->begin[node]; i < in->begin[node + 1]; i++) {
            const struct net_link *l = net->link[in->link[i]];
            if (in->first[l->from] != UINT32_MAX || (node < net->hosts && node != host))
                continue; /* hosts do not pass on what is for others */
            if (l->config.only_nth && l->config.only_nth != nth + 1)
                continue;
            in->first[l->from] = l->id;
            in->found[count++] = l->from;
        }
    }
}

int vc_net_route(struct vc_net *net)
{
    struct inward in = {0};
    int status = inward_new(net, &in);
    net->apart_from = net->apart_to = 0;
    uint32_t *outward = calloc(net->nodes, sizeof *outward);
    if (status == 0 && !outward)
        status = rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the routes of %u nodes", net->nodes);
    net->planes = 1;
    for (uint32_t i = 0; i < net->links && status == 0; i++) {
        if (net->link[i]->config.only_nth > net->planes)
            net->planes = net->link[i]->config.only_nth;
        outward[net->link[i]->from]++;
        net->node[net->link[i]->from].only = i;
    }
    for (uint32_t i = 0; i < net->nodes && status == 0; i++) {
        free(net->node[i].routes);
        net->node[i].routes = NULL;
        if (outward[i] < 2 && i < net->hosts)
            continue; /* the way out is the only one */
        net->node[i].routes = malloc((size_t)net->planes * net->hosts * sizeof(uint32_t));
        if (!net->node[i].routes)
            status = rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the routes of %u nodes", net->nodes);
    }
    for (uint32_t k = 0; k < net->planes * net->hosts && status == 0; k++) {
        const uint32_t host = k % net->hosts;
        search(net, &in, host, k / net->hosts);
        for (uint32_t i = 0; i < net->hosts && net->apart_from == net->apart_to; i++)
            if (in.first[i] == UINT32_MAX) {
                net->apart_from = i;
                net->apart_to = host;
            }
        for (uint32_t i = 0; i < net->nodes; i++)
            if (net->node[i].routes)
                net->node[i].routes[k] = in.first[i];
    }
    free(outward);
    inward_free(&in);
    return status;
}

bool vc_net_apart(const struct vc_net *net, uint32_t *from, uint32_t *to)
{
    *from = net->apart_from;
    *to = net->apart_to;
    return *from != *to;
}

/* ---- changes ---- */

const struct vc_net_link_config *vc_net_link_get(const struct vc_net *net, uint32_t link)
{
    return &net->link[link]->config;
}

void vc_net_link_set(struct vc_net *net, uint32_t link, const struct vc_net_link_config *config)
{
    struct net_link *l = net->link[link];
    l->config = completed(config);
    if (l->from < net->hosts && net->host[l->from].first_link == link)
        net_host_limits(net, l->from);
}

void vc_net_link_up(struct vc_net *net, uint32_t link, int up)
{
    struct net_link *l = net->link[link];
    l->down_count += !up && !l->down; /* what is under way has an older count */
    l->down = !up;
}

int vc_net_link_fault(struct vc_net *net, uint32_t link, const struct rnl_fault *f)
{
    struct net_link *l = net->link[link];
    if (f->in.count || f->out.count || f->part.count || f->noroom)
        return rnl_fail(RNL_ERR_ARG, "faults: in, out, part and noroom are not for links; there are the verbs block "
                                     "and partition, and small buffers");
    l->fault = *f;
    l->fault.seed = rnl_sim_random(rnl_sim_seed(net->sim), VC_CHANCE_NET, link, f->seed);
    l->faulty = 1;
    l->fault_since = rnl_sim_now(net->sim);
    return 0;
}

void vc_net_host_up(struct vc_net *net, uint32_t host, int up)
{
    net->host[host].down = !up;
}

void vc_net_host_group(struct vc_net *net, uint32_t host, uint32_t group)
{
    net->host[host].group = group;
}

int vc_net_block(struct vc_net *net, uint32_t from, uint32_t to, int on)
{
    uint64_t bits = (uint64_t)net->hosts * net->hosts, bit = (uint64_t)from * net->hosts + to;
    if (!net->blocked && !on)
        return 0;
    if (!net->blocked && !(net->blocked = calloc(bits / 64 + 1, sizeof *net->blocked)))
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for who of %u hosts is blocked", net->hosts);
    if (on)
        net->blocked[bit / 64] |= (uint64_t)1 << bit % 64;
    else
        net->blocked[bit / 64] &= ~((uint64_t)1 << bit % 64);
    return 0;
}
