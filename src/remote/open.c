/* SPDX-License-Identifier: BSD-3-Clause
 *
 * open.c - makes the part of an endpoint that speaks with other hosts: its tables, keys, ciphers and times. */
#include "remote/remote_internal.h"

#include "base/secret.h"

#include <stdlib.h>
#include <string.h>

enum {
    SLOTS = 64,       /* slots for expanded keys, of which a peer uses two */
    SLOTS_FEW = 8,    /* slots where most would have left the caches before they are used again */
    ACTIVE_FEW = 256, /* connections of some 12 KB, and 8 KB more with replies */
    NEAR_TRIPS = 10,  /* near: this many times what four system calls cost, to send, receive and acknowledge a run */
    ACTIVE_LEAST = 8  /* least active_few where many endpoints share a process's memory */
};
#define IDLE_NS          ((uint64_t)50 * 1000 * 1000)
#define HELLO_FIRST_NS   ((uint64_t)20 * 1000 * 1000)
#define HELLO_MOST_NS    ((uint64_t)1000 * 1000 * 1000)
#define NEAR_MOST_NS     ((uint32_t)45 * 1000)
#define HELLO_GIVE_UP_NS ((uint64_t)30 * 1000 * 1000 * 1000)

static int begin_handshakes(struct rnl_remote *r, uint64_t give_up_ns)
{
    struct rnl_env *env = r->env;
    struct rnl_hs_config c = {.rank = env->rank,
                              .ranks = env->size,
                              .incarnation = env->incarnation,
                              .job = &r->keys,
                              .protect = env->protect,
                              .ciphers = (uint8_t)r->ciphers.have,
                              .ack_delay_ns = r->config.ack_delay_ns,
                              .window_bytes = r->window,
                              .first_ns = HELLO_FIRST_NS,
                              .most_ns = HELLO_MOST_NS,
                              .give_up_ns = give_up_ns ? give_up_ns : HELLO_GIVE_UP_NS};
    uint32_t most = RNL_REMOTE_MTU_NEAR; /* taken from any peer; only near peers are asked for it */
    for (unsigned i = 0; i < RNL_MTU_SIZES; i++)
        if (r->config.mtu[i] > most)
            most = r->config.mtu[i];
    c.mtu_bytes = (uint16_t)most;
    for (unsigned i = 0; i < sizeof c.secret; i += 8) {
        uint64_t random = env->ops->random(env);
        memcpy(c.secret + i, &random, sizeof random);
    }
    return rnl_hs_init(&r->hs, &c);
}

/* Returns which round trip counts as near among processes of one kernel, in ns. It depends on what system calls cost,
 * which differs fourfold between machines; a stream never sees less than a run takes. Between hosts no network is
 * faster than the least. */
static uint32_t near_ns(uint32_t least_ns, uint32_t trip_ns)
{
    uint64_t ns = (uint64_t)NEAR_TRIPS * trip_ns;
    ns = ns < NEAR_MOST_NS ? ns : NEAR_MOST_NS;
    return ns > least_ns ? (uint32_t)ns : least_ns;
}

#define SAME(flows, page)                                                                              \
    static_assert(offsetof(struct rnl_counters, page) - offsetof(struct rnl_counters, packets_sent) == \
                      offsetof(struct rnl_flow_counters, flows),                                       \
                  "the flows count in the page")
SAME(sent_bytes, packet_bytes_sent);
SAME(received, packets_received);
SAME(received_bytes, packet_bytes_received);
SAME(acks_sent, acks_sent);
SAME(lost, packets_lost);
SAME(spurious, packets_not_lost);
SAME(probes, probe_timeouts);
SAME(duplicates, packets_again);
SAME(refused, packets_refused);
SAME(mtu_raised, mtu_raised);
SAME(mtu_fell, mtu_fell);
SAME(undone, cuts_undone);
static_assert(sizeof(struct rnl_flow_counters) ==
                  offsetof(struct rnl_counters, strays) - offsetof(struct rnl_counters, packets_sent),
              "all of them");

static void set_times(struct rnl_remote *r, const struct rnl_remote_options *opt)
{
    const struct rnl_env_facts *facts = &r->env->facts;
    rnl_flow_defaults(&r->config);
    r->config.algorithm = r->env->congest_algorithm;
    r->near_ns = near_ns(r->config.congest.near_ns, facts->round_trip_ns);
    if (opt->silent_ns)
        r->config.dead_ns = opt->silent_ns;
    if (r->config.suspect_ns > r->config.dead_ns / 2) /* a suspected peer is probed before it is taken for dead */
        r->config.suspect_ns = r->config.dead_ns / 2;
    r->idle_after_ns = opt->rest_ns ? opt->rest_ns : IDLE_NS;
    if (r->config.linger_ns > r->idle_after_ns)
        r->config.linger_ns = r->idle_after_ns;
    r->active_few = ACTIVE_FEW;
    if (facts->local_endpoints > 1)
        r->active_few =
            ACTIVE_FEW / facts->local_endpoints > ACTIVE_LEAST ? ACTIVE_FEW / facts->local_endpoints : ACTIVE_LEAST;
}

void rnl_remote_free_tables(struct rnl_remote *r)
{
    free(r->sealer_memory);
    free(r->conn);
    free(r->heap);
    free(r->active);
    if (r->pair_keys)
        rnl_secret_free(r->pair_keys, r->env->size * sizeof *r->pair_keys);
    rnl_secret_free(r, sizeof *r);
}

int rnl_remote_new(struct rnl_env *env, struct rnl_counters *counters, const struct rnl_remote_options *opt,
                   struct rnl_remote **out)
{
    static const struct rnl_remote_options defaults;
    uint32_t slots = env->facts.local_endpoints > SLOTS / 2 ? SLOTS_FEW : SLOTS;
    size_t bytes = rnl_sealer_bytes(slots);
    if (env->facts.weak_random)
        return rnl_fail(RNL_ERR_UNSUPPORTED,
                        "packets to other hosts need secret random numbers, and getrandom does not give "
                        "any: let the filter of this process allow it");
    struct rnl_remote *r = rnl_secret_new(sizeof *r); /* it has keys that are derived from the job's, and our secret */
    if (!r)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for connections to other hosts (%zu bytes)", sizeof *r);
    r->conn = calloc(env->size, sizeof(struct rnl_remote_conn *));
    r->heap = calloc(env->size, sizeof *r->heap);
    r->active = calloc(env->size, sizeof *r->active);
    r->sealer_memory =
        aligned_alloc(RNL_SEALER_ALIGN, (bytes + RNL_SEALER_ALIGN - 1) & ~(size_t)(RNL_SEALER_ALIGN - 1));
    int status = RNL_ERR_NO_MEMORY;
    if (!r->conn || !r->heap || !r->active || !r->sealer_memory) {
        rnl_fail(status, "no memory for connections to other hosts (%zu bytes)",
                 bytes + env->size * (sizeof(struct rnl_remote_conn *) + sizeof *r->heap + sizeof *r->active));
        goto failed;
    }
    r->env = env;
    r->pair_keys = env->meet ? rnl_secret_new(env->size * sizeof *r->pair_keys) : NULL;
    if (env->meet && !r->pair_keys) {
        rnl_fail(status, "no memory for keys of connections to other hosts");
        goto failed;
    }
    r->c = counters;
    r->t = env->datagrams;
    r->drained = 1;
    r->count = (struct rnl_flow_counters *)(void *)&counters->packets_sent;
    r->last = &r->first;
    r->event_last = &r->event_first;
    status = rnl_ciphers_init(&r->ciphers, ~0u);
    if (status == 0)
        status = rnl_sealer_init(&r->sealer, &r->ciphers, r->sealer_memory, slots);
    if (status < 0)
        goto failed;
    rnl_job_keys_derive(&r->keys, env->job_key);
    opt = opt ? opt : &defaults;
    set_times(r, opt);
    /* An endpoint that sleeps on the transport's descriptor sleeps on its own, too. */
    r->by_fd = r->t->has_fd && env->ops->park_on;
    status = r->by_fd ? env->ops->fd(env) : 0;
    if (status < 0)
        goto failed;
    r->window = rnl_transport_holds(r->t, r->config.mtu[0]) * (r->config.mtu[0] + r->config.buffer_bytes);
    status = begin_handshakes(r, opt->open_ns);
    if (status < 0)
        goto failed;
    counters->protection = (uint64_t)env->protect + 1;
    *out = r;
    return 0;

failed:
    rnl_remote_free_tables(r);
    return status;
}
