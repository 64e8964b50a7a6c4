/* SPDX-License-Identifier: BSD-3-Clause
 *
 * join.c - joins a job by two exchanges among all its ranks. In the first each rank publishes its card: its
 * release, its host's addresses, its UDP port, and from rank 0 the key of the job, which is therefore as secret as what
 * carries it. Then the lowest rank of each host probes by which addresses it reaches the others. The second exchange
 * carries the errors of all ranks, so that all of them join or none. */
#include "base/error.h"
#include "job/net.h"
#include "net/wire/packet.h"
#include "pmix/pmix_internal.h"
#include "runnel/runnel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { TROUBLE_BYTES = 640, PROBE_TURN_MS = 10 };
static const char card_key[] = "runnel.card", paths_key[] = "runnel.paths", trouble_key[] = "runnel.trouble";

static int no_memory(const struct rnl_pmix *p)
{
    return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the addresses of %u ranks", p->local.base.env.size);
}

static int garbled(void)
{
    return rnl_fail(RNL_ERR_JOB, "a value of another rank is not understood: use one release of Runnel everywhere");
}

static bool leads(const struct rnl_pmix *p)
{
    return p->local.index == 0;
}

static bool is_several(const struct rnl_pmix *p)
{
    return p->local.count != p->local.base.env.size;
}

/* ---- cards ---- */

static void release_of(char out[RNL_PMIX_RELEASE])
{
    snprintf(out, RNL_PMIX_RELEASE, "%d.%d %s", RNL_LOCAL_VERSION, RNL_WIRE_VERSION, RNL_VERSION);
}

static int fill_host(struct rnl_pmix *p, struct rnl_pmix_card *c)
{
    if (getrandom(c->nonce, sizeof c->nonce, 0) != (ssize_t)sizeof c->nonce ||
        (p->local.base.env.rank == 0 && getrandom(c->key, sizeof c->key, 0) != (ssize_t)sizeof c->key))
        return rnl_fail_errno(RNL_ERR_SYSTEM, errno, "the system gives no random numbers for the key of this job");
    int status = rnl_local_create(&p->local, c->nonce);
    if (status < 0)
        return status;
    c->fd = (uint32_t)p->local.base.file;
    int n = is_several(p) ? rnl_host_addresses(c->address, RNL_PMIX_ADDRESSES) : 0;
    if (n < 0)
        return n;
    c->addresses = (uint32_t)n;
    return 0;
}

static int put_card(struct rnl_pmix *p, int *udp)
{
    struct rnl_pmix_card c = {.leader = p->local.rank[0], .pid = (uint32_t)getpid(), .kernel = rnl_host_kernel()};
    struct rnl_socket_addr at = {.port = 0};
    int e = is_several(p) ? rnl_net_open(RNL_NET_ANY, 1, udp, &at) : 0;
    if (e < 0)
        return rnl_fail_errno(RNL_ERR_SYSTEM, -e, "the UDP socket of this rank cannot be opened: %s",
                              rnl_net_remedy(-e));
    release_of(c.release);
    memcpy(c.host, p->local.base.env.host, sizeof c.host);
    c.port = at.port;
    int status = leads(p) ? fill_host(p, &c) : 0;
    if (status == 0)
        status = p->via->put(p, card_key, &c, sizeof c);
    explicit_bzero(c.key, sizeof c.key);
    return status;
}

static bool is_text(const char *at, size_t bytes)
{
    return memchr(at, '\0', bytes) != NULL;
}

/* Checks and takes in the card of `rank`, after those of all lower ranks. */
static int take_card(struct rnl_pmix *p, uint32_t rank, struct rnl_pmix_card *c, struct rnl_pmix_card *leader)
{
    char own[RNL_PMIX_RELEASE];
    release_of(own);
    if (!is_text(c->release, sizeof c->release) || !is_text(c->host, sizeof c->host))
        return garbled();
    if (strcmp(c->release, own) != 0)
        return rnl_fail(
            RNL_ERR_JOB,
            "host %s has protocol and release %.40s, and this one %s: install one release on all hosts of the job",
            c->host, c->release, own);
    if (c->leader == rank) {
        uint32_t h = p->hosts++;
        p->host[h] = (struct rnl_pmix_host){.leader = rank};
        memcpy(p->host[h].name, c->host, sizeof c->host);
        p->info[h] =
            (struct rnl_host_info){.host = h,
                                   .kernel = c->kernel,
                                   .addresses = c->addresses < RNL_PMIX_ADDRESSES ? c->addresses : RNL_PMIX_ADDRESSES,
                                   .probe_port = (uint16_t)c->port};
        memcpy(p->info[h].address, c->address, sizeof c->address);
        for (uint32_t i = 0; i < p->info[h].addresses; i++)
            p->info[h].address[i].interface[sizeof c->address[i].interface - 1] = '\0';
        p->peer[rank].host = h;
    } else if (c->leader > rank || p->host[p->peer[c->leader].host].leader != c->leader) {
        return garbled();
    } else {
        p->peer[rank].host = p->peer[c->leader].host;
    }
    p->peer[rank].port = (uint16_t)c->port;
    p->peer[rank].pid = c->leader == p->local.rank[0] ? c->pid : 0;
    if ((c->leader == p->local.rank[0]) != (p->local.index_of[rank] != UINT32_MAX) ||
        (is_several(p) && (c->port == 0 || c->port > UINT16_MAX)))
        return garbled();
    if (rank == p->local.rank[0]) {
        p->own_host = p->peer[rank].host;
        *leader = *c;
    }
    if (rank == 0)
        memcpy(p->local.base.env.job_key, c->key, sizeof c->key);
    return 0;
}

/* Takes in all cards. *leader becomes the card of this host's lowest rank. */
static int take_cards(struct rnl_pmix *p, struct rnl_pmix_card *leader)
{
    struct rnl_pmix_card c;
    uint32_t size = p->local.base.env.size;
    int status = 0;
    p->peer = calloc(size, sizeof *p->peer);
    p->host = calloc(size, sizeof *p->host);
    p->info = calloc(size, sizeof *p->info);
    if (!p->peer || !p->host || !p->info)
        return no_memory(p);
    for (uint32_t rank = 0; rank < size && status == 0; rank++) {
        status = p->via->get(p, rank, card_key, &c, sizeof c);
        if (status == 0)
            status = take_card(p, rank, &c, leader);
    }
    explicit_bzero(&c, sizeof c);
    return status;
}

/* ---- addresses ---- */

/* Makes the probe of a host's lowest rank, at a copy of its UDP socket. */
static int open_probe(struct rnl_pmix *p, int udp, struct rnl_host_probe **out)
{
    struct rnl_socket *socket;
    const int fd = fcntl(udp, F_DUPFD_CLOEXEC, 0);
    int status = fd < 0 ? rnl_fail_errno(RNL_ERR_SYSTEM, errno, "there is no descriptor for a probe of the addresses")
                        : rnl_host_probe_adopt(fd, &socket);
    if (status < 0) {
        if (fd >= 0)
            close(fd);
        return status;
    }
    status = rnl_host_probe_new(p->own_host, p->hosts, p->info, p->local.base.env.job_key, rnl_host_random(NULL),
                                socket, rnl_host_now_ns(NULL), out);
    if (status < 0)
        socket->ops->close(socket);
    return status;
}

/* Probes, and replies to the probes of others, until *done or, if that is NULL, until all pairs with this host are
 * agreed or the time to try is over. */
static void run_probe(struct rnl_host_probe *probe, int udp, const _Atomic bool *done)
{
    for (;;) {
        struct pollfd fd = {.fd = udp, .events = POLLIN};
        rnl_host_probe_step(probe, rnl_host_now_ns(NULL));
        if (done ? atomic_load_explicit(done, memory_order_acquire) : rnl_host_probe_done(probe))
            return;
        (void)poll(&fd, 1, PROBE_TURN_MS);
    }
}

/* Publishes the working addresses for the other ranks of this host. Describes in `text` the first host that is not
 * reached; of two hosts that do not reach each other only the one that sent the requests does. */
static int put_paths(struct rnl_pmix *p, const struct rnl_host_probe *probe, char text[TROUBLE_BYTES])
{
    struct rnl_pmix_paths *paths = calloc(p->hosts, sizeof *paths);
    struct rnl_probe_failure failure;
    if (!paths)
        return no_memory(p);
    for (uint32_t h = 0; h < p->hosts; h++) {
        if (rnl_host_probe_address(probe, h, paths[h].ip[0]))
            paths[h].count = 1 + rnl_host_probe_alternates(probe, h, paths[h].ip + 1, RNL_PMIX_ADDRESSES - 1);
        if (text[0] != '\0' || !rnl_host_probe_failed(probe, h, &failure) || !failure.asked)
            continue;
        uint32_t k = 0;
        while (k < failure.addresses && rnl_is_loopback(failure.address[k].ip))
            k++;
        rnl_probe_describe(&p->info[h], k < failure.addresses ? &failure.address[k] : NULL, failure.heard,
                           p->host[p->own_host].name, p->host[h].name, text, TROUBLE_BYTES);
    }
    int status = p->via->put(p, paths_key, paths, p->hosts * sizeof *paths);
    free(paths);
    return status;
}

static int take_paths(struct rnl_pmix *p)
{
    struct rnl_pmix_paths *paths = calloc(p->hosts, sizeof *paths);
    int status = !paths ? no_memory(p) : p->via->get(p, p->local.rank[0], paths_key, paths, p->hosts * sizeof *paths);
    for (uint32_t h = 0; h < p->hosts && status == 0; h++) {
        p->host[h].paths = paths[h];
        if (h != p->own_host && (paths[h].count == 0 || paths[h].count > RNL_PMIX_ADDRESSES))
            status = garbled();
    }
    free(paths);
    return status;
}

/* ---- joining ---- */

/* Exchanges the results of all ranks. Returns an error if this rank's own status or that of any other is one. */
static int share(struct rnl_pmix *p, int own, struct rnl_host_probe *probe, int udp, char text[TROUBLE_BYTES])
{
    char other[TROUBLE_BYTES];
    if (own < 0)
        snprintf(text, TROUBLE_BYTES, "%s", rnl_last_error()->text);
    int status = p->via->put(p, trouble_key, text, TROUBLE_BYTES);
    if (status == 0)
        status = rnl_pmix_fence(p);
    if (status == 0 && probe)
        run_probe(probe, udp, &p->fenced);
    if (status == 0)
        status = rnl_pmix_fence_wait(p);
    for (uint32_t rank = 0; rank < p->local.base.env.size && status == 0; rank++) {
        status = p->via->get(p, rank, trouble_key, other, sizeof other);
        if (status == 0 && (!is_text(other, sizeof other) || other[0] != '\0'))
            status = rnl_fail(RNL_ERR_JOB, "%.*s", TROUBLE_BYTES - 1, other);
    }
    return status;
}

int rnl_pmix_join(struct rnl_pmix *p, const uint32_t *ranks, uint32_t count, int *udp)
{
    struct rnl_pmix_card leader = {.leader = 0};
    char text[TROUBLE_BYTES] = "";
    int status = rnl_local_init(&p->local, ranks, count);
    if (status == 0)
        status = put_card(p, udp);
    if (status == 0)
        status = rnl_pmix_fence(p);
    if (status == 0)
        status = rnl_pmix_fence_wait(p);
    if (status == 0)
        status = take_cards(p, &leader);
    if (status < 0)
        return status;
    struct rnl_host_probe *probe = NULL;
    if (!leads(p))
        status = rnl_local_open(&p->local, (pid_t)leader.pid, (int)leader.fd, leader.nonce);
    if (status == 0)
        status = rnl_local_join(&p->local);
    if (status == 0 && leads(p) && p->hosts > 1)
        status = open_probe(p, *udp, &probe);
    if (status == 0 && probe) {
        run_probe(probe, *udp, NULL);
        status = put_paths(p, probe, text);
    }
    explicit_bzero(&leader, sizeof leader);
    status = share(p, status, probe, *udp, text);
    rnl_host_probe_free(probe);
    return status == 0 && p->hosts > 1 ? take_paths(p) : status;
}
