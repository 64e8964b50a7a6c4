/* SPDX-License-Identifier: BSD-3-Clause
 *
 * agent_proc.c - reads from /proc which of the ranks' processes run, are stopped, or are ending. The kernel makes these
 * files up by itself, so reading them never blocks. */
#include "job/agent_internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ENDING = 4 /* the kernel's process flag PF_EXITING */ };

/* Returns the state letter of a process or thread, '?' if it cannot be read, and its flags. */
static char state_in(const char *path, unsigned *flags)
{
    char text[512], state = '?';
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    *flags = 0;
    const char *after = strrchr(text, ')'); /* ") S PARENT GROUP SESSION TERMINAL ITS-GROUP FLAGS" */
    if (!after || sscanf(after, ") %c %*d %*d %*d %*d %*d %u", &state, flags) < 1)
        return '?';
    return state;
}

static bool is_stop(char state)
{
    return state == 'T' || state == 't';
}

/* Whether all threads of a process are stopped; a debugger may stop only some. False if that cannot be read. */
static bool is_stopped(pid_t pid)
{
    char path[64];
    unsigned flags;
    bool some = false, all = true;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    for (const struct dirent *d; tasks && all && (d = readdir(tasks));) {
        if (d->d_name[0] == '.')
            continue;
        some = true;
        snprintf(path, sizeof path, "/proc/%d/task/%.20s/stat", (int)pid, d->d_name);
        all = is_stop(state_in(path, &flags));
    }
    if (tasks)
        closedir(tasks);
    return some && all;
}

static pid_t pid_of(const struct agent_rank *r)
{
    return r->joined > 0 ? r->joined : r->started;
}

static bool lives(const struct rnl_agent *a, uint32_t rank)
{
    enum rnl_rank_state state = rnl_membership_state(a->members, rank);
    return !a->rank[rank].is_remote && (state == RNL_RANK_JOINED || state == RNL_RANK_STARTING);
}

bool rnl_agent_runs(struct rnl_agent *a, uint32_t rank, uint64_t now_ns)
{
    struct agent_rank *r = &a->rank[rank];
    char path[32];
    unsigned flags;
    if (!lives(a, rank) || pid_of(r) <= 0)
        return false;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid_of(r));
    char state = state_in(path, &flags);
    if (!is_stop(state) || !is_stopped(pid_of(r)))
        r->stopped_ns = 0;
    else if (r->stopped_ns == 0)
        r->stopped_ns = now_ns;
    return !strchr("TtZX", state); /* '?' (no /proc) counts as running: its end is found by other means */
}

bool rnl_agent_stopped(const struct rnl_agent *a, uint32_t rank, uint64_t *since_ns)
{
    *since_ns = a->rank[rank].stopped_ns;
    return *since_ns > 0 && lives(a, rank);
}

bool rnl_agent_is_ending(const struct agent_rank *r)
{
    char path[32];
    unsigned flags;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid_of(r));
    state_in(path, &flags);
    return flags & ENDING;
}
