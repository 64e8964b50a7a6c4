/* SPDX-License-Identifier: BSD-3-Clause
 *
 * exchange.c - a rank whose caller supplies the exchange (runnel/adapter.h): the functions behind struct rnl_pmix_via.
 * The caller's fence may block, so it runs in a thread of its own, one for each fence; the rank goes on serving
 * messages meanwhile, as a close needs it. Which ranks are on one host is found out by a first exchange, unless the
 * caller says it: they can share memory if they have one kernel, one process namespace and one user. */
#include "base/error.h"
#include "base/secret.h"
#include "job/proto.h"
#include "pmix/pmix_internal.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static const char host_key[] = "runnel.host";

static int refused(const struct rnl_pmix *p, const char *what, int status)
{
    return rnl_fail(RNL_ERR_JOB, "the exchange that rank %u was opened with does not %s: it returned %d",
                    p->local.base.env.rank, what, status);
}

static int put(struct rnl_pmix *p, const char *key, const void *at, size_t bytes)
{
    int s = p->exchange.put(p->exchange.arg, key, at, bytes);
    return s == 0 ? 0 : refused(p, "accept the values that this rank publishes", s);
}

static int get(struct rnl_pmix *p, uint32_t rank, const char *key, void *at, size_t bytes)
{
    memset(at, 0, bytes);
    int s = p->exchange.get(p->exchange.arg, rank, key, at, bytes);
    return s == 0 ? 0 : refused(p, "deliver the values that the ranks published", s);
}

static void *run_fence(void *arg)
{
    struct rnl_pmix *p = arg;
    rnl_pmix_fence_over(p, p->exchange.fence(p->exchange.arg));
    return NULL;
}

static void join_fencer(struct rnl_pmix *p)
{
    if (p->fencing)
        pthread_join(p->fencer, NULL);
    p->fencing = false;
}

static int fence(struct rnl_pmix *p)
{
    sigset_t all, before;
    join_fencer(p); /* the one before is over */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the program's threads */
    int e = pthread_create(&p->fencer, NULL, run_fence, p);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    p->fencing = e == 0;
    return e == 0 ? 0 : rnl_fail_errno(RNL_ERR_SYSTEM, e, "no thread can be started for the fence of an exchange");
}

/* A fence that will never be over keeps its thread, and the memory that this thread uses. */
static void ended(struct rnl_pmix *p)
{
    if (p->fencing && !atomic_load_explicit(&p->fenced, memory_order_acquire)) {
        pthread_detach(p->fencer);
        return;
    }
    join_fencer(p);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    rnl_secret_free(p, sizeof *p);
}

struct host_id { /* what ranks have in common that can share memory */
    uint64_t kernel, processes, user;
};

static int own_host(struct host_id *id)
{
    struct stat st = {.st_ino = 0};
    *id = (struct host_id){.kernel = rnl_host_kernel(), .user = geteuid()};
    if (id->kernel != 0 && stat("/proc/self/ns/pid", &st) == 0) {
        id->processes = st.st_ino;
        return 0;
    }
    if (getrandom(id, sizeof *id, 0) != (ssize_t)sizeof *id) /* like nobody else's: reached by datagrams */
        return rnl_fail_errno(RNL_ERR_SYSTEM, errno, "the system gives no random numbers for the name of this host");
    return 0;
}

static int find_ranks(struct rnl_pmix *p, uint32_t *ranks, uint32_t *count)
{
    struct host_id own, other;
    int status = own_host(&own);
    if (status == 0)
        status = put(p, host_key, &own, sizeof own);
    if (status == 0)
        status = rnl_pmix_fence(p);
    if (status == 0)
        status = rnl_pmix_fence_wait(p);
    for (uint32_t i = 0; i < p->exchange.ranks && status == 0; i++) {
        status = get(p, i, host_key, &other, sizeof other);
        if (status == 0 && memcmp(&own, &other, sizeof own) == 0)
            ranks[(*count)++] = i;
    }
    return status;
}

static int begin(struct rnl_pmix *p, int *udp)
{
    const struct rnl_exchange *x = &p->exchange;
    uint32_t *ranks = calloc(x->ranks, sizeof *ranks), count = x->here;
    if (!ranks)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the numbers of %u ranks", x->ranks);
    p->local.base.env.size = x->ranks;
    p->local.base.env.rank = x->rank;
    if (count)
        memcpy(ranks, x->on_host, count * sizeof *ranks);
    int status = count ? 0 : find_ranks(p, ranks, &count);
    if (status == 0)
        status = rnl_pmix_join(p, ranks, count, udp);
    free(ranks);
    return status;
}

static bool is_sound(const struct rnl_exchange *x)
{
    bool with_us = x->here == 0;
    if (x->size < sizeof *x || !x->put || !x->get || !x->fence || x->ranks < 1 || x->ranks > RNL_JOB_RANKS_MAX ||
        x->rank >= x->ranks || x->here > x->ranks || (x->here && !x->on_host))
        return false;
    for (uint32_t i = 0; i < x->here; i++) {
        if (x->on_host[i] >= x->ranks || (i > 0 && x->on_host[i] <= x->on_host[i - 1]))
            return false;
        with_us |= x->on_host[i] == x->rank;
    }
    return with_us;
}

int rnl_exchange_env(const struct rnl_options *opt, const struct rnl_exchange *x, struct rnl_env **out)
{
    static const struct rnl_pmix_via via = {
        .put = put, .get = get, .fence = fence, .refused = refused, .ended = ended, .lost = RNL_ERR_JOB};
    if (opt && (opt->hub || opt->flags & (RNL_ALONE | RNL_RESTARTED)))
        return rnl_fail(RNL_ERR_ARG, "an endpoint that is opened by an exchange has no hub, and is neither RNL_ALONE "
                                     "nor RNL_RESTARTED");
    if (!x || !is_sound(x))
        return rnl_fail(RNL_ERR_ARG,
                        "rnl_exchange needs its size, three functions, a rank below ranks, 1 to %d of these, and in "
                        "on_host ascending ranks with this one, or none",
                        RNL_JOB_RANKS_MAX);
    struct rnl_pmix *p = rnl_secret_new(sizeof *p); /* since it holds the key of the job */
    if (!p)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory to join a job");
    p->exchange = *x;
    p->exchange.size = sizeof p->exchange;
    p->via = &via;
    const int r = rnl_pmix_start(p, begin, out);
    return r < 0 ? r : 0;
}
