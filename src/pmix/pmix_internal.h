/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmix_internal.h - the state of a rank below PMIx or below an exchange of its caller, shared by what carries values
 * from rank to rank (lib.c, exchange.c), joining (join.c) and the env (env.c). */
#ifndef RNL_PMIX_PMIX_INTERNAL_H
#define RNL_PMIX_PMIX_INTERNAL_H

#include "job/local.h"
#include "net/probe/address_probe.h"
#include "pmix/pmix.h"
#include "runnel/adapter.h"

#include <pthread.h>

#if RNL_HAVE_PMIX
#include <pmix.h>

struct rnl_pmix_calls {
    pmix_status_t (*init)(pmix_proc_t *, pmix_info_t *, size_t);
    pmix_status_t (*finalize)(const pmix_info_t *, size_t);
    pmix_status_t (*get)(const pmix_proc_t *, const char *, const pmix_info_t *, size_t, pmix_value_t **);
    pmix_status_t (*put)(pmix_scope_t, const char *, pmix_value_t *);
    pmix_status_t (*commit)(void);
    pmix_status_t (*fence_nb)(const pmix_proc_t *, size_t, const pmix_info_t *, size_t, pmix_op_cbfunc_t, void *);
    void (*on_event)(pmix_status_t *, size_t, pmix_info_t *, size_t, pmix_notification_fn_t, pmix_hdlr_reg_cbfunc_t,
                     void *);
    const char *(*text)(pmix_status_t);
};
#endif

/* What carries values from rank to rank. Each returns 0 or, after rnl_fail, a negative rnl_status. */
struct rnl_pmix;
struct rnl_pmix_via {
    int (*put)(struct rnl_pmix *, const char *key, const void *at, size_t bytes);
    /* Gets a value of exactly `bytes`. RNL_ERR_JOB: rank has published none, or one of another size. */
    int (*get)(struct rnl_pmix *, uint32_t rank, const char *key, void *at, size_t bytes);
    int (*fence)(struct rnl_pmix *);                                /* begins it; see rnl_pmix_fence_over */
    int (*refused)(const struct rnl_pmix *, const char *what, int); /* RNL_ERR_JOB */
    void (*leave)(struct rnl_pmix *);                               /* after the close; may be NULL */
    void (*ended)(struct rnl_pmix *);                               /* the env is closed; may be NULL */
    int lost;                                                       /* status of a fence that will never be over */
    bool attests; /* it ends the job when a rank dies, so ranks of other hosts live while it does */
};

/* What one rank publishes about itself (PMI's business card). The fields about the host are valid in the card of its
 * lowest rank, the key in that of rank 0. */
enum { RNL_PMIX_RELEASE = 48, RNL_PMIX_HOST = 64, RNL_PMIX_ADDRESSES = 8 };
struct rnl_pmix_card {
    char release[RNL_PMIX_RELEASE], host[RNL_PMIX_HOST];
    uint64_t kernel;
    uint32_t leader;  /* the lowest rank of its host */
    uint32_t pid, fd; /* where the memory file of the host is: descriptor fd of process pid (job/local.h) */
    uint32_t addresses;
    uint32_t port, zero;
    struct rnl_host_address address[RNL_PMIX_ADDRESSES];
    unsigned char nonce[RNL_LOCAL_NONCE], key[RNL_ENV_KEY_BYTES];
};
static_assert(sizeof(struct rnl_pmix_card) == 448, "ranks of one release exchange cards as they lie in memory");

struct rnl_pmix_peer { /* where a rank is */
    uint32_t host;     /* hosts are numbered 0, 1, .. in the order of their lowest ranks */
    uint16_t port;
    uint32_t pid; /* of a rank of this host; else 0 */
};
struct rnl_pmix_host {
    char name[RNL_PMIX_HOST];
    uint32_t leader;
    struct rnl_pmix_paths {
        uint32_t count; /* of the addresses that work from here, and are tried in this order */
        uint8_t ip[RNL_PMIX_ADDRESSES][16];
    } paths;
};

struct rnl_pmix {
    struct rnl_local local; /* first */
    const struct rnl_pmix_via *via;
#if RNL_HAVE_PMIX
    struct rnl_pmix_calls call;
    pmix_proc_t me;
    pmix_info_t collect;
#endif
    struct rnl_exchange exchange;
    pthread_t fencer;           /* of an exchange: the thread in which its fence runs */
    bool fencing;               /* there is one that was not joined */
    struct rnl_pmix_peer *peer; /* by rank */
    struct rnl_pmix_host *host;
    struct rnl_host_info *info; /* by host */
    uint32_t hosts, own_host;
    /* -- shared with the thread of libpmix, or of the exchange's fence -- */
    pthread_mutex_t lock;
    pthread_cond_t changed;    /* signalled when `fenced` or `lost` is set */
    bool open;                 /* under the lock: that thread may notify the rank */
    _Atomic bool fenced, lost; /* the fence is over; the server is gone */
    _Atomic int fence_status;
    /* -- the close -- */
    uint64_t wave;      /* the wave that this rank has reported for */
    bool waits, done;   /* the fence of that wave is under way; the close is over */
    bool loss_reported; /* RNL_EVENT_JOB_GONE has been reported */
    uint64_t *before;   /* by rank: its activity in the wave before; NULL in wave 0 */
};

/* env.c */
/* Makes the env. `begin` joins; *udp is the UDP socket of this rank, -1 if all are on this host. Returns 1 and *out, or
 * an error; `p` is gone then as after its close. */
int rnl_pmix_start(struct rnl_pmix *p, int (*begin)(struct rnl_pmix *, int *udp), struct rnl_env **out);
/* Begins a fence over all ranks; p->fenced is set when it is over. */
int rnl_pmix_fence(struct rnl_pmix *);
int rnl_pmix_fence_wait(struct rnl_pmix *);
/* The fence is over, with that status, 0 = success. Any thread may call it. */
void rnl_pmix_fence_over(struct rnl_pmix *, int status);
/* join.c */
/* Joins as `rank` of `size`; `ranks` lists the `count` ranks of this host, ascending, this one among them. */
int rnl_pmix_join(struct rnl_pmix *, const uint32_t *ranks, uint32_t count, int *udp);

#endif
