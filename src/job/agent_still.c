/* SPDX-License-Identifier: BSD-3-Clause
 *
 * agent_still.c - who runs, for whom others vouch then; and who is stopped and was found silent, for whom the job's
 * close does not wait for ever. Its own agent sees that it stands still and says so; when a wave of the close lacks
 * nobody else, the leader asks that agent to give it up. From then on it is dead for all, and has no job any more when
 * it goes on: nobody's messages are lost in silence. Before that, all goes on as soon as it runs. */
#include "job/agent.h"

#include "base/env.h"
#include "job/agent_in.h"
#include "runnel/runnel.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* So long it has to stand still, as seen now and then; less than what makes others find it silent (30 s). */
static const uint64_t patience_ns = 20000000000;

/* The state of a process or thread as the kernel's letter, '?' if it cannot be read. */
static char state_in(const char *path)
{
    char text[128];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *name = strrchr(text, ')');
    return name != NULL && name[1] != '\0' ? name[2] : '?';
}

static int is_stop(char state)
{
    return state == 'T' || state == 't';
}

static pid_t pid_of(const struct agent_rank *r)
{
    if (r->away || (r->state != RNL_RANK_JOINED && r->state != RNL_RANK_STARTING))
        return 0;
    return r->joined > 0 ? r->joined : r->started;
}

/* All its threads: a debugger may hold some of them only. What cannot be looked at is not known to be stopped. */
static int is_stopped(pid_t pid)
{
    char path[64];
    int some = 0, all = 1;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *tasks = pid > 0 ? opendir(path) : NULL;
    for (const struct dirent *d; tasks != NULL && all && (d = readdir(tasks)) != NULL;) {
        if (d->d_name[0] == '.')
            continue;
        some = 1;
        snprintf(path, sizeof path, "/proc/%d/task/%.20s/stat", (int)pid, d->d_name);
        all = is_stop(state_in(path));
    }
    if (tasks != NULL)
        closedir(tasks);
    return some && all;
}

void rnl_agent_goes_on(struct rnl_agent *a, uint32_t rank)
{
    struct agent_rank *r = &a->rank[rank];
    const struct rnl_word word = {.kind = RNL_WORD_RUNS, .rank = rank};
    r->still_ns = 0;
    if (r->still && !a->leads)
        rnl_agent_spread(a, &word);
    r->still = 0;
}

int rnl_agent_runs(struct rnl_agent *a, uint32_t rank, uint64_t now_ns)
{
    struct agent_rank *r = &a->rank[rank];
    const struct rnl_word word = {.kind = RNL_WORD_STOPPED, .rank = rank};
    char path[32];
    pid_t pid = pid_of(r);
    if (pid <= 0)
        return 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    char state = state_in(path);
    if (!is_stop(state) || !is_stopped(pid)) {
        rnl_agent_goes_on(a, rank);
        return strchr("TtZX", state) == NULL; /* '?': no /proc here, its end would be told */
    }
    if (r->still_ns == 0)
        r->still_ns = now_ns;
    if (r->given_up && !r->still && r->state == RNL_RANK_JOINED && now_ns >= r->still_ns + patience_ns) {
        r->still = 1;
        if (a->leads)
            rnl_agent_close_without(a);
        else
            rnl_agent_spread(a, &word);
    }
    return 0;
}

void rnl_agent_stands_still(struct rnl_agent *a, uint32_t rank)
{
    a->rank[rank].still = a->rank[rank].state == RNL_RANK_JOINED;
    rnl_agent_close_without(a);
}

void rnl_agent_close_without(struct rnl_agent *a)
{
    uint32_t still = 0;
    for (uint32_t i = 0; i < a->size; i++)
        if (rnl_waves_lacks(a->waves, i) && !a->rank[i].still)
            return;
        else
            still += rnl_waves_lacks(a->waves, i) != 0;
    for (uint32_t i = 0; still > 0 && i < a->size; i++) {
        const struct rnl_word word = {.kind = RNL_WORD_GIVE_UP, .rank = i};
        if (!a->rank[i].still || !rnl_waves_lacks(a->waves, i))
            continue;
        if (a->rank[i].away) {
            a->rank[i].still = 0; /* said once; should it run now, it is said again that it stands still */
            rnl_agent_spread(a, &word);
        } else {
            rnl_agent_give_up(a, i);
        }
    }
}

void rnl_agent_give_up(struct rnl_agent *a, uint32_t rank)
{
    struct agent_rank *r = &a->rank[rank];
    int stands = r->still && is_stopped(pid_of(r));
    r->still = 0;
    if (stands)
        rnl_agent_gone(a, rank, RNL_DEATH_SILENT, 0);
}
