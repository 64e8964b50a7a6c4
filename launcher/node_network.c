/* SPDX-License-Identifier: BSD-3-Clause
 *
 * node_network.c - connects a node agent's ranks to the other hosts: their UDP sockets, the probes, the table of rank
 * addresses that results, liveness attestation, and the cards that its ranks drive. */
#include "launcher/node_agent_internal.h"

#include "base/env.h"
#include "base/notes.h"
#include "job/net.h"
#include "net/socket/i8255x/card.h"
#include "net/socket/xdp/queue.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* For the addresses of a host that is examined to answer; the measurements follow. */
static const uint64_t examine_ns = UINT64_C(3000000000);

/* ---- cards: an agent takes them before it says HERE, learns their addresses, and hands their descriptors to ranks
 * when these join: the first card to the first rank, and so on, from the beginning again. The n-th card of a host is on
 * wire n. Where the hosts are namespaces of one machine, its cards are dealt to them in turn, and the n-th that one
 * gets is on wire n. What an agent keeps of a card takes the bus from it when the rank has ended: nothing writes into
 * memory afterwards. ---- */

static_assert((int)RNL_JOB_CARDS_MAX == (int)RNL_I8255X_CARDS && (int)RNL_HOST_CARDS_MAX == (int)RNL_I8255X_CARDS,
              "as many as a socket has");

/* Takes one card and asks for its address. It is silent afterwards, until a rank starts it. */
static int take(const char *slot, enum rnl_i8255x_way way, uint32_t wire, struct rnl_i8255x_grant *g, uint8_t mac[6])
{
    struct rnl_i8255x card;
    int status = rnl_i8255x_take(slot, way, g);
    if (status < 0)
        return status;
    status = rnl_i8255x_open(&card, g);
    if (status == 0) {
        memcpy(mac, card.mac, sizeof card.mac);
        rnl_i8255x_close(&card);
        status = rnl_i8255x_label(g, wire);
    }
    if (status < 0)
        rnl_i8255x_give_back(g);
    return status;
}

/* Takes the cards of this host for the job, if it wants them. If it gets none, the reason has been said. */
static void take_cards(struct rnl_node_agent *n)
{
    char slot[RNL_I8255X_CARDS][RNL_I8255X_SLOT_BYTES];
    enum rnl_i8255x_way way[RNL_I8255X_CARDS];
    if (!rnl_node_agent_is(n, RNL_JOB_CARDS) || n->count == 0)
        return;
    const int found = rnl_i8255x_find(slot, way);
    if (found < 0)
        rnl_node_agent_report(n, "does without cards, its datagrams go by the kernel: %s", rnl_last_error()->text);
    const bool shared = rnl_node_agent_is(n, RNL_JOB_ONE_MACHINE);
    const uint32_t first = shared ? n->spec.host : 0, step = shared ? n->spec.hosts : 1;
    uint32_t wire = 1;
    for (uint32_t i = first; found > 0 && i < (uint32_t)found; i += step, wire++)
        if (take(slot[i], way[i], wire, &n->card[wire - 1], n->info[n->spec.host].card[wire - 1]) < 0)
            rnl_node_agent_report(n, "does without the card %s: %s", slot[i], rnl_last_error()->text);
}

struct rnl_agent_cards *rnl_node_cards_give(struct rnl_node_agent *n)
{
    struct rnl_agent_cards *all = NULL;
    for (uint32_t i = 0; i < RNL_JOB_CARDS_MAX; i++) {
        struct rnl_i8255x_grant *g = &n->card[i];
        if (g->wire == 0 || (!all && !(all = calloc(n->count, sizeof *all))))
            continue;
        struct rnl_agent_cards *of = &all[(g->wire - 1) % n->count];
        int *fd = of->fd + (size_t)of->count++ * RNL_I8255X_GRANT_FDS;
        fd[0] = g->device;
        fd[1] = g->registers;
        fd[2] = g->line;
        fd[3] = g->memory;
        g->device = g->registers = g->memory = g->line = -1;
    }
    return all;
}

void rnl_node_cards_end(struct rnl_node_agent *n, uint32_t rank)
{
    for (uint32_t i = 0; i < RNL_JOB_CARDS_MAX; i++)
        if (n->card[i].wire && rnl_node_card_is_of(n->card[i].wire, rank - n->first, n->count)) {
            rnl_i8255x_give_back(&n->card[i]);
            n->card[i].wire = 0;
        }
}

/* Datagrams between ranks of one host go over its loopback interface: nobody else reaches their sockets. */
void rnl_node_network_open(struct rnl_node_agent *n)
{
    const bool alone = n->spec.hosts == 1;
    struct rnl_host_info *own;
    struct rnl_socket_addr probe, *at = calloc(n->count, sizeof *at);
    n->probed = alone;
    n->info = calloc(n->spec.hosts, sizeof *n->info);
    own = n->info ? &n->info[n->spec.host] : NULL;
    int e = !at || !own ? -ENOMEM : 0;
    if (e == 0 && (!alone || rnl_node_agent_is(n, RNL_JOB_DATAGRAMS))) {
        n->sockets = malloc(n->count * sizeof *n->sockets);
        e = !n->sockets ? -ENOMEM : rnl_net_open(alone ? RNL_NET_LOOPBACK : RNL_NET_ANY, n->count, n->sockets, at);
        for (uint32_t i = 0; n->sockets && e < 0 && i < n->count; i++)
            n->sockets[i] = -1;
    }
    if (e == 0 && !alone)
        e = rnl_net_open(RNL_NET_ANY, 1, &n->probe_fd, &probe);
    const int addresses = e == 0 && !alone ? rnl_host_addresses(own->address, RNL_HOST_ADDRESSES_MAX) : 0;
    if (addresses < 0)
        e = -rnl_last_error()->sys_errno;
    if (e < 0)
        rnl_node_agent_fail(n, RNL_EXIT_SYSTEM, "cannot open %u UDP socket%s for the ranks: %s; %s", n->count,
                            RNL_S(n->count), strerror(-e), rnl_net_remedy(-e));
    if (e == 0) {
        own->addresses = (uint32_t)addresses;
        own->kernel = rnl_host_kernel();
        own->host = n->spec.host;
        own->ranks = n->count;
        own->probe_port = alone ? 0 : probe.port;
        for (uint32_t i = 0; i < n->count; i++)
            own->port[i] = at[i].port;
        if (!alone)
            take_cards(n);
        if (alone) {
            memcpy(own->address[0].ip, at[0].ip, sizeof own->address[0].ip);
            own->addresses = own->kernel = 1;
        }
    }
    free(at);
}

/* ---- AF_XDP ---- */

/* Which queue a frame comes by is the card's decision, unless it is told. */
static void note_queues(struct rnl_node_agent *n, const char *interface)
{
    const uint32_t others = rnl_xdp_queue_others(n->queue);
    char text[256];
    if (!others)
        return;
    int bytes =
        snprintf(text, sizeof text,
                 "AF_XDP: ranks have queue 0 of %s; what the card puts into its %u other%s comes by the kernel: "
                 "ethtool -L %s combined 1 leaves one\n",
                 interface, others, RNL_S(others), interface);
    (void)rnl_notes_set(&n->notes, text, (size_t)bytes < sizeof text ? (size_t)bytes : sizeof text - 1);
    rnl_node_agent_report(n, "%.*s", bytes - 1, text);
}

/* The queue of one interface serves: the one by which the first other host is reached. What goes by another interface,
 * and all of it where there is no queue, goes by the kernel's sockets. */
int *rnl_node_network_rings(struct rnl_node_agent *n)
{
    const struct rnl_host_info *own = &n->info[n->spec.host];
    const uint32_t other = n->spec.host == 0 ? 1 : 0;
    uint8_t ip[16];
    char interface[16];
    if (!rnl_node_agent_is(n, RNL_JOB_RINGS) || !n->probe || n->count == 0)
        return NULL;
    int *rings = malloc(n->count * sizeof *rings);
    int status = rings ? 0 : rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the sockets of %u ranks", n->count);
    if (status == 0 && !rnl_host_probe_address(n->probe, other, ip))
        status = rnl_fail(RNL_ERR_UNREACHABLE, "host %s has no address", n->spec.at[other].name);
    if (status == 0)
        status = rnl_xdp_interface_to(ip, interface);
    if (status == 0)
        status = rnl_xdp_queue_open(interface, 0, RNL_XDP_ANY, own->port, n->count, &n->queue);
    for (uint32_t i = 0; status == 0 && i < n->count; i++)
        rings[i] = rnl_xdp_queue_socket(n->queue, i);
    if (status == 0) {
        note_queues(n, interface);
        return rings;
    }
    char shown[512];
    int bytes = snprintf(shown, sizeof shown, "AF_XDP: all datagrams go by the kernel: %s\n", rnl_last_error()->text);
    (void)rnl_notes_set(&n->notes, shown, (size_t)bytes < sizeof shown ? (size_t)bytes : sizeof shown - 1);
    rnl_node_agent_report(n, "does without AF_XDP, its datagrams go by the kernel: %s", rnl_last_error()->text);
    free(rings);
    return NULL;
}

/* ---- probes ---- */

static void on_probe_events(uv_poll_t *handle, int status, int events);

static void start_probe(struct rnl_node_agent *n)
{
    struct rnl_socket *socket;
    int r = rnl_host_probe_adopt(n->probe_fd, &socket);
    if (r == 0) {
        r = rnl_host_probe_new(n->spec.host, n->spec.hosts, n->info, n->spec.agents, rnl_host_random(NULL), socket,
                               rnl_now_ns(), &n->probe);
        if (r < 0)
            socket->ops->close(socket);
    }
    if (r == 0 && rnl_node_agent_is(n, RNL_JOB_EXAMINE))
        r = rnl_host_probe_measure(n->probe, examine_ns);
    const int e = r < 0 ? 0 : rnl_watch(n->loop, &n->probe_events, n->probe_fd, on_probe_events, n);
    if (e < 0)
        r = rnl_fail_errno(RNL_ERR_SYSTEM, -e, "a socket cannot be watched");
    if (r < 0)
        rnl_node_agent_fail(n, RNL_EXIT_SYSTEM, "%s", rnl_last_error()->text);
}

int rnl_node_network_hosts(struct rnl_node_agent *n, struct rnl_unpack *u)
{
    if (n->probe || n->probe_fd < 0 || n->phase != RNL_NODE_AGENT_PROBING)
        return -1;
    for (uint32_t i = 0; i < n->spec.hosts; i++)
        if (rnl_host_info_unpack(u, n->spec.hosts, n->spec.at, &n->info[i]) < 0 || n->info[i].host != i)
            return -1;
    start_probe(n);
    return 0;
}

static void report_probe(struct rnl_node_agent *n)
{
    struct rnl_pack p = {.at = NULL}, all = {.at = NULL};
    struct rnl_probe_failure failure;
    uint32_t failures = 0;
    for (uint32_t i = 0; i < n->spec.hosts; i++)
        if (rnl_host_probe_failed(n->probe, i, &failure)) {
            rnl_probe_failure_pack(&p, &failure);
            failures++;
        }
    rnl_pack_bytes(&all, &failures, sizeof failures);
    rnl_pack_bytes(&all, p.at, p.bytes);
    all.failed |= p.failed;
    rnl_control_send_pack(&n->control, RNL_CONTROL_PROBED, &all);
    rnl_pack_free(&p);
    rnl_pack_free(&all);
}

static void report_paths(struct rnl_node_agent *n)
{
    struct rnl_pack p = {.at = NULL};
    struct rnl_path_report report;
    const uint32_t others = n->spec.hosts - 1;
    rnl_pack_bytes(&p, &others, sizeof others);
    for (uint32_t i = 0; i < n->spec.hosts; i++)
        if (i != n->spec.host) {
            rnl_host_probe_report(n->probe, i, &report);
            rnl_path_report_pack(&p, &report);
        }
    rnl_control_send_pack(&n->control, RNL_CONTROL_PATHS, &p);
    rnl_pack_free(&p);
}

void rnl_node_network_work(struct rnl_node_agent *n)
{
    if (!n->probe || n->phase != RNL_NODE_AGENT_PROBING)
        return;
    rnl_host_probe_step(n->probe, rnl_now_ns());
    rnl_timer_at(&n->probe_timer, rnl_timer_wake, rnl_host_probe_deadline_ns(n->probe));
    if (!n->probed && rnl_host_probe_done(n->probe)) {
        n->probed = true;
        if (rnl_node_agent_is(n, RNL_JOB_EXAMINE))
            report_paths(n);
        else
            report_probe(n);
    }
}

/* ---- liveness attestation ---- */

/* What other agents attest of their ranks is passed on to ours. */
static void on_probe_events(uv_poll_t *handle, int status, int events)
{
    struct rnl_node_agent *n = handle->data;
    const uint64_t now = rnl_now_ns();
    unsigned char bits[RNL_JOB_RANKS_MAX / 8];
    uint32_t host;
    uint64_t when;
    (void)status;
    (void)events;
    if (n->phase == RNL_NODE_AGENT_PROBING || !n->agent)
        return; /* the work that follows takes it in */
    rnl_host_probe_step(n->probe, now);
    while (rnl_host_probe_attested(n->probe, &host, bits, sizeof bits, &when))
        for (uint32_t i = 0; i < n->spec.at[host].count; i++)
            if (bits[i / 8] >> i % 8 & 1)
                rnl_agent_attest(n->agent, n->spec.at[host].first + i, when);
}

/* Who only computes is not to be taken for dead, by ranks of this host either. */
static void on_attest(uv_timer_t *timer)
{
    struct rnl_node_agent *n = timer->data;
    const uint64_t now = rnl_now_ns();
    unsigned char bits[RNL_JOB_RANKS_MAX / 8] = {0};
    for (uint32_t i = 0; i < n->count; i++)
        if (rnl_agent_runs(n->agent, n->first + i, now)) {
            bits[i / 8] |= (unsigned char)(1u << i % 8);
            rnl_agent_attest(n->agent, n->first + i, now);
        }
    if (n->probe)
        rnl_host_probe_attest(n->probe, bits, (n->count + 7) / 8, now);
}

void rnl_node_network_attest(struct rnl_node_agent *n)
{
    (void)uv_timer_stop(&n->probe_timer);
    /* What is heard is up to two periods old, three if a datagram is lost: less than a silence that makes one dead. */
    const uint64_t usual_ms = (uint64_t)1000 * RNL_HOST_PROBE_ATTEST_EVERY_S, silence_ms = n->spec.silence_ms;
    const uint64_t every_ms = silence_ms && silence_ms / 4 < usual_ms ? silence_ms / 4 : usual_ms;
    if (n->sockets)
        rnl_timer_start(&n->attest, on_attest, 0, every_ms);
}

/* ---- addresses ---- */

/* Where datagrams between ranks of this host go, if they are to be exchanged. */
static void own_address(const struct rnl_node_agent *n, uint8_t ip[16])
{
    const struct rnl_host_info *own = &n->info[n->spec.host];
    memset(ip, 0, 16);
    if (own->addresses > 0)
        memcpy(ip, own->address[own->addresses - 1].ip, 16); /* the loopback's, if there is one */
}

void rnl_node_network_places(const struct rnl_node_agent *n, struct rnl_rank_location *places)
{
    const struct rnl_host_info *own = &n->info[n->spec.host];
    const bool datagrams = rnl_node_agent_is(n, RNL_JOB_DATAGRAMS);
    for (uint32_t h = 0; h < n->spec.hosts; h++) {
        const struct rnl_job_host *at = &n->spec.at[h];
        uint8_t ip[16], further[RNL_RANK_ALTERNATES][16] = {{0}};
        if (h == n->spec.host) {
            own_address(n, ip);
        } else {
            (void)rnl_host_probe_address(n->probe, h, ip);
            (void)rnl_host_probe_alternates(n->probe, h, further, RNL_RANK_ALTERNATES);
        }
        for (uint32_t i = 0; i < at->count; i++) {
            struct rnl_rank_location *p = &places[at->first + i];
            memset(p, 0, sizeof *p);
            p->host = datagrams ? at->first + i : h;
            p->same_kernel = own->kernel != 0 && own->kernel == n->info[h].kernel;
            if (h == n->spec.host && !datagrams)
                continue;
            memcpy(p->at.ip, ip, sizeof ip);
            memcpy(p->further, further, sizeof further);
            p->at.port = n->info[h].port[i];
            for (uint32_t w = 1; w <= RNL_JOB_CARDS_MAX; w++)
                if (rnl_node_card_is_of(w, i, at->count))
                    memcpy(p->card[w - 1], n->info[h].card[w - 1], sizeof p->card[w - 1]);
        }
    }
}

void rnl_node_network_free(struct rnl_node_agent *n)
{
    if (n->sockets)
        rnl_net_close(n->spec.at[n->spec.host].count, n->sockets);
    if (n->probe)
        rnl_host_probe_free(n->probe);
    else if (n->probe_fd >= 0)
        close(n->probe_fd);
    if (n->queue)
        rnl_xdp_queue_close(n->queue);
    rnl_notes_free(n->notes);
    for (uint32_t i = 0; i < n->count; i++)
        rnl_node_cards_end(n, n->first + i);
    free(n->info);
    free(n->sockets);
}
