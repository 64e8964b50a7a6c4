/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job_look.c - see job_look.h. Of a job of a thousand processes each look costs four system calls a process: it reads
 * one file of /proc, and checks one descriptor; the pages themselves are mapped. */
#include "job_look.h"

#include "info.h"
#include "job/proto.h"
#include "machine.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the processes of this host: who has started whom ---- */

struct process {
    int pid, parent;
    bool launches; /* its command is `runnel` */
};
struct processes {
    struct process *at;
    unsigned count, room;
};

static int by_pid(const void *a, const void *b)
{
    const struct process *x = a, *y = b;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

static const struct process *process_of(const struct processes *p, int pid)
{
    const struct process key = {.pid = pid};
    return bsearch(&key, p->at, p->count, sizeof *p->at, by_pid);
}

/* False: no memory. A process that ends meanwhile is not in it. */
static bool read_processes(struct processes *p)
{
    const struct dirent *e;
    bool good = true;
    *p = (struct processes){.at = NULL};
    DIR *proc = opendir("/proc");
    while (proc && good && (e = readdir(proc)) != NULL) {
        const int pid = atoi(e->d_name);
        struct info_stat stat;
        if (pid <= 0 || !info_stat_of(pid, &stat))
            continue;
        if (p->count == p->room) {
            const unsigned room = p->room ? 2 * p->room : 256;
            struct process *at = realloc(p->at, room * sizeof *at);
            good = at != NULL;
            p->at = good ? at : p->at;
            p->room = good ? room : p->room;
        }
        if (good)
            p->at[p->count++] = (struct process){pid, stat.parent, strcmp(stat.command, "runnel") == 0};
    }
    if (proc)
        closedir(proc);
    if (p->count)
        qsort(p->at, p->count, sizeof *p->at, by_pid);
    return good;
}

/* The launcher of a process: its nearest ancestor of that name; 0 = none. A wrapper may stand between the two. */
static int launcher_of(const struct processes *p, int pid)
{
    enum { ANCESTORS_MAX = 64 };
    const struct process *at = process_of(p, pid);
    for (int steps = 0; at && steps < ANCESTORS_MAX; steps++) {
        at = process_of(p, at->parent);
        if (at && at->launches)
            return at->pid;
    }
    return 0;
}

/* Whether the job's launcher is that process or above it; an agent of another host may stand between. */
static bool is_of(const struct processes *p, int pid, int job)
{
    for (int above = pid; above; above = launcher_of(p, above))
        if (above == job)
            return true;
    return false;
}

/* ---- their ranks ---- */

/* The page of a rank, and not of an endpoint that a process has beside it, alone or for its windows. */
static bool is_rank(const struct rnl_counters *c)
{
    return c->size > 0 && c->size <= RNL_JOB_RANKS_MAX && c->rank < c->size && strcmp(c->program, "windows") != 0;
}

/* Takes in the ranks of one process. The first rank says how large the job is. Returns how many are new; -1 = no
 * memory. */
static int take(struct job_look *l, int pid)
{
    const int n = rnl_counters_find(pid, l->pages, l->views, RNL_JOB_RANKS_MAX);
    struct info_stat stat = {.state = '?'};
    int found = 0, first = -1;
    if (n > 0)
        (void)info_stat_of(pid, &stat);
    for (int i = 0; i < n; i++) {
        const struct rnl_counters *c = &l->pages[i].core;
        if (is_rank(c) && !l->rank) {
            l->size = c->size;
            l->rank = calloc(l->size, sizeof *l->rank);
            found = l->rank ? found : -1;
        }
        if (!is_rank(c) || !l->rank || c->size != l->size || l->rank[c->rank].pid) {
            rnl_counters_unview(&l->views[i]);
            continue;
        }
        first = first < 0 ? (int)c->rank : first;
        l->rank[c->rank] = (struct job_rank){.pid = pid,
                                             .first = (unsigned)first,
                                             .state = stat.state,
                                             .ticks = stat.ticks,
                                             .view = l->views[i],
                                             .page = l->pages[i]};
        found++;
    }
    return found;
}

int job_look_find(struct job_look *l, int pid)
{
    struct processes p;
    int found = 0, one = 0;
    *l = (struct job_look){.job = pid};
    const bool read = read_processes(&p);
    for (int above = pid; read && above; above = launcher_of(&p, above))
        l->job = above;
    l->pages = calloc(RNL_JOB_RANKS_MAX, sizeof *l->pages);
    l->views = calloc(RNL_JOB_RANKS_MAX, sizeof *l->views);
    for (unsigned i = 0; read && l->pages && l->views && i < p.count && one >= 0; i++) {
        if (p.at[i].pid == getpid() || !is_of(&p, p.at[i].pid, l->job))
            continue;
        one = take(l, p.at[i].pid);
        found += one > 0 ? one : 0;
    }
    free(p.at);
    l->now_ns = bench_now_ns();
    l->found = (unsigned)found;
    return !read || !l->pages || !l->views || one < 0 ? -1 : found;
}

int job_look_again(struct job_look *l)
{
    l->found = 0;
    for (unsigned k = 0; k < l->size; k++) { /* each process once */
        struct job_rank *r = &l->rank[k];
        struct info_stat stat = {.state = '?', .ticks = r->ticks};
        if (!r->pid || r->first != k)
            continue;
        (void)info_stat_of(r->pid, &stat);
        r->state = stat.state;
        r->ticks = stat.ticks;
    }
    for (unsigned k = 0; k < l->size; k++) {
        struct job_rank *r = &l->rank[k];
        const uint32_t rank = r->page.core.rank, size = r->page.core.size;
        if (!r->pid)
            continue;
        r->state = l->rank[r->first].state;
        r->ticks = l->rank[r->first].ticks;
        if (rnl_counters_again(r->pid, &r->view, &r->page) && r->page.core.rank == rank && r->page.core.size == size) {
            l->found++;
            continue;
        }
        rnl_counters_unview(&r->view);
        r->pid = 0;
    }
    l->now_ns = bench_now_ns();
    return (int)l->found;
}

void job_look_free(struct job_look *l)
{
    for (unsigned k = 0; k < l->size && l->rank; k++)
        rnl_counters_unview(&l->rank[k].view);
    free(l->rank);
    free(l->pages);
    free(l->views);
    *l = (struct job_look){.rank = NULL};
}
