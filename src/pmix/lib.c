/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lib.c - a rank below PMIx: wraps the calls of libpmix, which is loaded only in a PMIx job, since it brings
 * threads and a dozen libraries that programs started by `runnel run` do not need. */
#include "pmix/pmix.h"

#if RNL_HAVE_PMIX
#include "base/error.h"
#include "base/secret.h"
#include "job/proto.h"
#include "pmix/pmix_internal.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Never freed, since the thread of libpmix may call back after the env was closed. */
static struct rnl_pmix *joined;

static int load(struct rnl_pmix_calls *c)
{
    void *lib = dlopen("libpmix.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        return rnl_fail(RNL_ERR_JOB,
                        "this process was started by a PMIx server, and libpmix.so.2 cannot be loaded: install it, "
                        "start the job with `runnel run`, or unset PMIX_RANK to run alone");
    const struct {
        const char *name;
        size_t at;
    } wanted[] = {{"PMIx_Init", offsetof(struct rnl_pmix_calls, init)},
                  {"PMIx_Finalize", offsetof(struct rnl_pmix_calls, finalize)},
                  {"PMIx_Get", offsetof(struct rnl_pmix_calls, get)},
                  {"PMIx_Put", offsetof(struct rnl_pmix_calls, put)},
                  {"PMIx_Commit", offsetof(struct rnl_pmix_calls, commit)},
                  {"PMIx_Fence_nb", offsetof(struct rnl_pmix_calls, fence_nb)},
                  {"PMIx_Register_event_handler", offsetof(struct rnl_pmix_calls, on_event)},
                  {"PMIx_Error_string", offsetof(struct rnl_pmix_calls, text)}};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        void *f = dlsym(lib, wanted[i].name);
        if (!f)
            return rnl_fail(RNL_ERR_JOB, "libpmix.so.2 has no %s: install PMIx 3 or newer", wanted[i].name);
        memcpy((char *)c + wanted[i].at, &f, sizeof f);
    }
    return 0; /* never unloaded, since its threads go on running */
}

static int refused(const struct rnl_pmix *p, const char *what, int s)
{
    return rnl_fail(RNL_ERR_JOB, "the PMIx server of this job does not %s: %s; start the job with `runnel run`", what,
                    p->call.text(s));
}

static pmix_status_t get_of_job(const struct rnl_pmix *p, const char *key, pmix_value_t **v)
{
    pmix_proc_t all = p->me;
    all.rank = PMIX_RANK_WILDCARD;
    return p->call.get(&all, key, NULL, 0, v);
}

static int number(const struct rnl_pmix *p, const char *key, uint32_t *out)
{
    pmix_value_t *v = NULL;
    pmix_status_t s = get_of_job(p, key, &v);
    if (s != PMIX_SUCCESS || v->type != PMIX_UINT32)
        return refused(p, "say how large the job is", s);
    *out = v->data.uint32;
    free(v);
    return 0;
}

/* Parses a list like "0,1,5". Returns -1 unless it has `count` ascending ranks, this one among them. */
static int parse_ranks(const struct rnl_pmix *p, const char *text, uint32_t *rank, uint32_t count)
{
    bool with_us = false;
    for (uint32_t n = 0; n < count; n++) {
        char *end;
        unsigned long r = strtoul(text, &end, 10);
        if (end == text || r >= p->local.base.env.size || *end != (n + 1 < count ? ',' : '\0') ||
            (n > 0 && r <= rank[n - 1]))
            return -1;
        rank[n] = (uint32_t)r;
        with_us |= r == p->local.base.env.rank;
        text = end + 1;
    }
    return with_us ? 0 : -1;
}

/* Asks the server, and does not compare host names, since two hosts may have the same. */
static int local_ranks(const struct rnl_pmix *p, uint32_t **rank, uint32_t *count)
{
    pmix_value_t *v = NULL;
    int status = number(p, PMIX_LOCAL_SIZE, count);
    if (status < 0)
        return status;
    if (*count < 1 || *count > p->local.base.env.size)
        return refused(p, "say which ranks are on this host", PMIX_ERR_BAD_PARAM);
    *rank = calloc(*count, sizeof **rank);
    if (!*rank)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the numbers of %u ranks", *count);
    for (uint32_t i = 0; i < *count; i++)
        (*rank)[i] = i;
    if (*count == p->local.base.env.size)
        return 0;
    pmix_status_t s = get_of_job(p, PMIX_LOCAL_PEERS, &v);
    bool good = s == PMIX_SUCCESS && v->type == PMIX_STRING && parse_ranks(p, v->data.string, *rank, *count) == 0;
    if (s == PMIX_SUCCESS && v->type == PMIX_STRING)
        free(v->data.string);
    free(v);
    return good ? 0 : refused(p, "say which ranks are on this host", s);
}

/* ---- values that ranks exchange ---- */

static int put(struct rnl_pmix *p, const char *key, const void *at, size_t bytes)
{
    pmix_value_t value = {.type = PMIX_BYTE_OBJECT};
    value.data.bo.bytes = (char *)(uintptr_t)at; /* PMIx copies it */
    value.data.bo.size = bytes;
    pmix_status_t s = p->call.put(PMIX_GLOBAL, key, &value);
    if (s == PMIX_SUCCESS)
        s = p->call.commit();
    return s == PMIX_SUCCESS ? 0 : refused(p, "accept the values that this rank publishes", s);
}

static pmix_info_t flag(const char *key)
{
    pmix_info_t info;
    memset(&info, 0, sizeof info);
    strncpy(info.key, key, sizeof info.key - 1);
    info.value.type = PMIX_BOOL;
    info.value.data.flag = true;
    return info;
}

static int get(struct rnl_pmix *p, uint32_t rank, const char *key, void *at, size_t bytes)
{
    pmix_proc_t who = p->me;
    pmix_value_t *v = NULL;
    pmix_info_t info = flag(PMIX_IMMEDIATE); /* after the fence every value is on this host */
    who.rank = rank;
    pmix_status_t s = p->call.get(&who, key, &info, 1, &v);
    if (s == PMIX_SUCCESS && (v->type != PMIX_BYTE_OBJECT || v->data.bo.size != bytes))
        s = PMIX_ERR_BAD_PARAM;
    if (s == PMIX_SUCCESS)
        memcpy(at, v->data.bo.bytes, bytes);
    if (v && v->type == PMIX_BYTE_OBJECT && v->data.bo.bytes) {
        explicit_bzero(v->data.bo.bytes, v->data.bo.size);
        free(v->data.bo.bytes);
    }
    free(v);
    return s == PMIX_SUCCESS ? 0 : refused(p, "deliver the values that the ranks published", s);
}

/* Runs in the thread of libpmix at the end of a fence. */
static void fence_over(pmix_status_t status, void *arg)
{
    rnl_pmix_fence_over(arg, status);
}

static int fence(struct rnl_pmix *p)
{
    p->collect = flag(PMIX_COLLECT_DATA); /* must stay valid until the fence is over */
    pmix_status_t s = p->call.fence_nb(NULL, 0, &p->collect, 1, fence_over, p);
    return s == PMIX_SUCCESS ? 0 : refused(p, "let its ranks meet", s);
}

static void leave(struct rnl_pmix *p)
{
    p->call.finalize(NULL, 0);
}

/* ---- life ---- */

/* Runs in the thread of libpmix when the connection to the server is lost. */
static void server_lost(size_t id, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[], size_t n,
                        pmix_info_t *results, size_t results_n, pmix_event_notification_cbfunc_fn_t done, void *arg)
{
    (void)id, (void)source, (void)info, (void)n, (void)results, (void)results_n;
    if (status == PMIX_ERR_LOST_CONNECTION || status == PMIX_ERR_UNREACH) {
        pthread_mutex_lock(&joined->lock);
        atomic_store(&joined->lost, true);
        if (joined->open)
            rnl_local_notify(&joined->local, joined->local.index);
        pthread_cond_signal(&joined->changed);
        pthread_mutex_unlock(&joined->lock);
    }
    if (done) /* lets further handlers run, such as those of an MPI in this process */
        done(PMIX_EVENT_NO_ACTION_TAKEN, NULL, 0, NULL, NULL, arg);
}

static int begin(struct rnl_pmix *p, int *udp)
{
    struct rnl_env *env = &p->local.base.env;
    uint32_t *ranks = NULL, count = 0;
    pmix_status_t s = p->call.init(&p->me, NULL, 0);
    if (s != PMIX_SUCCESS)
        return refused(p, "admit this process", s);
    p->call.on_event(NULL, 0, NULL, 0, server_lost, NULL, NULL);
    int status = number(p, PMIX_JOB_SIZE, &env->size);
    env->rank = p->me.rank;
    if (status == 0 && (env->size < 1 || env->size > RNL_JOB_RANKS_MAX || p->me.rank >= env->size))
        status = rnl_fail(RNL_ERR_JOB, "the PMIx server of this job says that it has %u ranks: there can be 1 to %d",
                          env->size, RNL_JOB_RANKS_MAX);
    if (status == 0)
        status = local_ranks(p, &ranks, &count);
    if (status == 0)
        status = rnl_pmix_join(p, ranks, count, udp);
    free(ranks);
    return status;
}

int rnl_pmix_env(struct rnl_env **out)
{
    static const struct rnl_pmix_via via = {.put = put,
                                            .get = get,
                                            .fence = fence,
                                            .refused = refused,
                                            .leave = leave,
                                            .lost = PMIX_ERR_LOST_CONNECTION,
                                            .attests = true};
    struct rnl_pmix_calls call;
    if (!getenv("PMIX_RANK"))
        return 0;
    if (joined)
        return rnl_fail(RNL_ERR_JOB, "this rank has joined its job before: a job has one endpoint a rank, opened once");
    int status = load(&call);
    if (status < 0)
        return status;
    struct rnl_pmix *p = joined = rnl_secret_new(sizeof *p); /* since it holds the key of the job */
    if (!p)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory to join a job");
    p->call = call;
    p->via = &via;
    return rnl_pmix_start(p, begin, out);
}

void rnl_pmix_leave(void)
{
    struct rnl_pmix *p = joined;
    if (!p || getpid() != p->local.base.owner || !p->open || p->done)
        return;
    p->done = true;
    atomic_store_explicit(&p->local.page->rank[p->local.index].state, RNL_LOCAL_LEFT, memory_order_release);
    p->call.finalize(NULL, 0);
}
#else
void rnl_pmix_leave(void) {}

int rnl_pmix_env(struct rnl_env **out)
{
    (void)out;
    return 0;
}
#endif
