/* SPDX-License-Identifier: BSD-3-Clause
 *
 * agent.c - the launcher's part in a virtual job: see cluster_internal.h. */
#include "sim/cluster/cluster_internal.h"

#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct vc_agent {
    struct rnl_membership *members;
    void (*notify)(void *arg, uint32_t rank);
    void *arg;
    struct rnl_bell *bells;
    _Atomic uint32_t *news;
};

static void notify(void *arg, uint32_t rank)
{
    struct vc_agent *a = arg;
    atomic_fetch_add_explicit(&a->news[rank], 1, memory_order_relaxed);
    a->notify(a->arg, rank);
}

/* Untouched pages cost nothing, and those of a pair that both have left go back at once. */
static int make(void *arg, struct rnl_segment *s)
{
    (void)arg;
    s->base = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return s->base == MAP_FAILED
               ? rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a segment of ranks %u and %u", s->rank[0], s->rank[1])
               : 0;
}

static void release(void *arg, const struct rnl_segment *s)
{
    (void)arg;
    munmap(s->base, s->bytes);
}

struct rnl_membership *vc_agent_members(struct vc_agent *a)
{
    return a->members;
}

void vc_agent_gone(struct vc_agent *a, uint32_t rank, int why, int detail)
{
    bool joined = rnl_membership_state(a->members, rank) == RNL_RANK_JOINED;
    rnl_membership_gone(a->members, rank, joined ? why : RNL_DEATH_NEVER_JOINED, detail);
}

struct rnl_bell *vc_agent_bell(struct vc_agent *a, uint32_t rank)
{
    return &a->bells[rank];
}

const _Atomic uint32_t *vc_agent_news(struct vc_agent *a, uint32_t rank)
{
    return &a->news[rank];
}

int vc_agent_new(uint32_t size, void (*notify_fn)(void *arg, uint32_t rank), void *arg, struct vc_agent **out)
{
    struct vc_agent *a = calloc(1, sizeof *a);
    const struct rnl_membership_options opt = {
        .size = size, .leads = true, .indexed = true, .arg = a, .notify = notify, .make = make, .release = release};
    if (a) {
        a->notify = notify_fn;
        a->arg = arg;
        a->bells = aligned_alloc(RNL_BELL_BYTES, (size_t)size * RNL_BELL_BYTES);
        a->news = calloc(size, sizeof *a->news);
    }
    if (!a || !a->bells || !a->news || rnl_membership_new(&opt, &a->members) < 0) {
        vc_agent_free(a);
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a job of %u rank%s", size, RNL_S(size));
    }
    memset(a->bells, 0, (size_t)size * RNL_BELL_BYTES);
    *out = a;
    return 0;
}

void vc_agent_free(struct vc_agent *a)
{
    if (!a)
        return;
    rnl_membership_free(a->members);
    free(a->bells);
    free(a->news);
    free(a);
}

void vc_agent_say(struct vc_cluster *c, const char *format, ...)
{
    char line[700];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (c->opt.say)
        c->opt.say(c->opt.arg, line);
}
