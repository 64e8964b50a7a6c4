/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job_look.c - see job_look.h. */
#include "job_look.h"

#include "info.h"
#include "job/proto.h"
#include "machine.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Processor time of a process so far, in ticks. */
static uint64_t ticks_of(int pid)
{
    char dir[32], text[512];
    unsigned long long user = 0, kernel = 0;
    snprintf(dir, sizeof dir, "/proc/%d", pid);
    if (!info_read_line(dir, "stat", text, sizeof text))
        return 0;
    const char *after = strrchr(text, ')');
    if (after)
        (void)sscanf(after, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user, &kernel);
    return user + kernel;
}

/* Whether the job's launcher is that process or above it; an agent of another host may stand between. */
static bool is_of(int pid, int job)
{
    for (int above = pid; above; above = info_launcher_of(above))
        if (above == job)
            return true;
    return false;
}

/* The page of a rank, and not of an endpoint that a process has beside it, alone or for its windows. */
static bool is_rank(const struct rnl_counters *c)
{
    return c->size > 0 && c->size <= RNL_JOB_RANKS_MAX && c->rank < c->size && strcmp(c->program, "windows") != 0;
}

/* Takes in the ranks of one process. The first rank says how large the job is. Returns how many are new; -1 = no
 * memory. */
static int take(struct job_look *l, int pid)
{
    const int n = rnl_counters_find(pid, l->pages, l->fds, RNL_JOB_RANKS_MAX);
    const uint64_t ticks = n > 0 ? ticks_of(pid) : 0;
    int found = 0, first = -1;
    for (int i = 0; i < n; i++) {
        const struct rnl_counters *c = &l->pages[i].core;
        if (!is_rank(c))
            continue;
        if (!l->rank) {
            l->size = c->size;
            l->rank = calloc(l->size, sizeof *l->rank);
            if (!l->rank)
                return -1;
        }
        if (c->size != l->size || l->rank[c->rank].pid)
            continue;
        struct job_rank *r = &l->rank[c->rank];
        r->pid = pid;
        r->fd = l->fds[i];
        r->ticks = ticks;
        r->page = l->pages[i];
        r->shared = first >= 0;
        if (first >= 0)
            l->rank[first].shared = true;
        else
            first = (int)c->rank;
        found++;
    }
    return found;
}

int job_look_find(struct job_look *l, int pid)
{
    const struct dirent *e;
    int found = 0, one = 0;
    *l = (struct job_look){.job = pid};
    for (int above = pid; above; above = info_launcher_of(above))
        l->job = above;
    l->pages = calloc(RNL_JOB_RANKS_MAX, sizeof *l->pages);
    l->fds = calloc(RNL_JOB_RANKS_MAX, sizeof *l->fds);
    DIR *proc = l->pages && l->fds ? opendir("/proc") : NULL;
    while (proc && one >= 0 && (e = readdir(proc)) != NULL) {
        const int at = atoi(e->d_name);
        if (at <= 0 || at == getpid() || !is_of(at, l->job))
            continue;
        one = take(l, at);
        found += one > 0 ? one : 0;
    }
    if (proc)
        closedir(proc);
    l->now_ns = bench_now_ns();
    l->found = (unsigned)found;
    return !l->pages || !l->fds || one < 0 ? -1 : found;
}

/* Looks where the page was before: a search costs ten times as much, which a job of many ranks has to wait for. */
static bool refresh_one(struct job_rank *r)
{
    struct rnl_counters_page *page = &r->page;
    const uint32_t rank = page->core.rank, size = page->core.size;
    if (r->shared || !rnl_counters_again(r->pid, r->fd, page) || page->core.rank != rank || page->core.size != size)
        return false;
    r->ticks = ticks_of(r->pid);
    return true;
}

/* Looks at all ranks of process `pid` that were there before. */
static void refresh(struct job_look *l, int pid, bool *seen)
{
    const int n = rnl_counters_read(pid, l->pages, RNL_JOB_RANKS_MAX);
    const uint64_t ticks = n > 0 ? ticks_of(pid) : 0;
    for (int i = 0; i < n; i++) {
        const struct rnl_counters *c = &l->pages[i].core;
        if (!is_rank(c) || c->size != l->size || l->rank[c->rank].pid != pid)
            continue;
        l->rank[c->rank].page = l->pages[i];
        l->rank[c->rank].ticks = ticks;
        seen[c->rank] = true;
    }
}

int job_look_again(struct job_look *l)
{
    bool seen[RNL_JOB_RANKS_MAX] = {false};
    l->found = 0;
    for (unsigned k = 0; k < l->size; k++) {
        struct job_rank *r = &l->rank[k];
        if (!r->pid)
            continue;
        if (!seen[k])
            seen[k] = refresh_one(r);
        if (!seen[k])
            refresh(l, r->pid, seen);
        if (!seen[k])
            *r = (struct job_rank){.pid = 0};
        l->found += r->pid != 0;
    }
    l->now_ns = bench_now_ns();
    return (int)l->found;
}

void job_look_free(struct job_look *l)
{
    free(l->rank);
    free(l->pages);
    free(l->fds);
    *l = (struct job_look){.rank = NULL};
}
