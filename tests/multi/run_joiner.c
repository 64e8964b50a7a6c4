/* SPDX-License-Identifier: BSD-3-Clause
 *
 * run_joiner.c - a rank for the tests of the launcher: joins the job and does as its arguments say. Without
 * arguments: closes.
 *
 *   close           join, close with everybody, leave
 *   all             a segment with everybody, a word each way, then close
 *   all-for MS      the same, but lives MS milliseconds in between; a peer's death is fine
 *   ready           join, say "rank R ready", wait to be ended
 *   stubborn        as ready, but ignores SIGINT, SIGTERM and SIGHUP
 *   die RANK HOW    everybody connects; then RANK dies (9: by that signal, e2: exits with 2);
 *                   the others say how long it took them to learn it, and close. exec: becomes a shell that says
 *                   "replaced" and exits with 0 a while later; cut: closes its sockets, and exits with 0 a while later
 *   late MS         joins after MS milliseconds, then closes
 *   system COMMAND  runs a shell command, then closes
 *   twice           opens a second time, says what it was told
 *   garbage         rank 1 writes noise into its sockets; all wait to be ended */
#include "base/bell.h"
#include "open/open.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MS 1000000ull

struct joiner {
    struct rnl_env *env;
    _Atomic uint64_t **word; /* of each rank: [0] the lower one's, [8] the higher one's */
    int dead, done;
    uint64_t activity;
};

static void fail(const struct joiner *j, const char *what)
{
    fprintf(stderr, "joiner: rank %u: %s: %s\n", j->env != NULL ? j->env->rank : 9999, what, rnl_last_error()->text);
    exit(3);
}

/* 1 if something happened. */
static int take_event(struct joiner *j, struct rnl_event *e)
{
    if (!j->env->ops->event(j->env, e))
        return 0;
    if (e->kind == RNL_EVENT_JOB_GONE)
        fail(j, "the launcher is gone");
    if (e->kind == RNL_EVENT_DEATH)
        j->dead++;
    if (e->kind == RNL_EVENT_CLOSE_DONE)
        j->done = 1;
    return 1;
}

static void sleep_until(struct joiner *j, uint64_t deadline_ns, struct rnl_event *e, int *got)
{
    struct rnl_env *env = j->env;
    uint32_t bell = atomic_load(&env->bell->word);
    *got = take_event(j, e);
    if (!*got)
        env->ops->park(env, &env->bell->word, bell, deadline_ns);
}

static void close_all(struct joiner *j)
{
    struct rnl_env *env = j->env;
    struct rnl_event e;
    int got;
    if (env->ops->close_report(env, 0, j->activity) < 0)
        fail(j, "report");
    while (!j->done) {
        sleep_until(j, UINT64_MAX, &e, &got);
        if (got && e.kind == RNL_EVENT_CLOSE_REQUEST && env->ops->close_report(env, e.wave, j->activity) < 0)
            fail(j, "report");
    }
    for (uint32_t i = 0; j->word != NULL && i < env->size; i++)
        if (j->word[i] != NULL)
            env->ops->segment_unmap(env, (int)i, j->word[i], 4096);
    free(j->word);
    env->ops->close(env);
}

static _Atomic uint64_t *half(struct joiner *j, uint32_t rank, int ours)
{
    return j->word[rank] + ((j->env->rank > rank) == ours ? 8 : 0);
}

static void connect_all(struct joiner *j)
{
    struct rnl_env *env = j->env;
    struct rnl_event e;
    j->word = calloc(env->size, sizeof *j->word);
    for (uint32_t i = 0; i < env->size; i++) {
        int segment;
        void *at = NULL;
        if (i == env->rank)
            continue;
        int r = env->ops->segment_open(env, i, 65536, UINT64_MAX, &segment);
        if (r == RNL_ERR_PEER_DEAD)
            continue;
        if (r < 0 || env->ops->segment_map(env, segment, 0, 4096, 1, &at) < 0)
            fail(j, "connect");
        env->ops->segment_mapped(env, segment);
        j->word[i] = at;
        atomic_store(half(j, i, 1), env->rank + 1);
    }
    for (uint32_t i = 0; i < env->size; i++)
        while (j->word[i] != NULL && atomic_load(half(j, i, 0)) == 0 && !j->dead) {
            take_event(j, &e);
            env->ops->yield(env);
        }
    for (uint32_t i = 0; i < env->size; i++)
        if (j->word[i] != NULL && !j->dead && atomic_load(half(j, i, 0)) != i + 1)
            fail(j, "a wrong word");
}

static void live(struct joiner *j, uint64_t until_ns)
{
    struct rnl_event e;
    int got;
    while (j->env->ops->now_ns(j->env) < until_ns)
        sleep_until(j, until_ns, &e, &got);
}

static void die(struct joiner *j, uint32_t rank, const char *how)
{
    struct rnl_env *env = j->env;
    struct rnl_event e;
    int got = 0;
    connect_all(j);
    if (env->rank == rank) {
        usleep(50000); /* the others sleep by then */
        for (uint32_t i = 0; i < env->size; i++)
            if (i != rank)
                atomic_store(half(j, i, 1), env->ops->now_ns(env));
        if (strcmp(how, "exec") == 0)
            execl("/bin/sh", "sh", "-c", "sleep 0.5; echo replaced", (char *)NULL);
        if (strcmp(how, "cut") == 0) {
            for (int fd = 3; fd < 64; fd++)
                close(fd);
            usleep(500000);
            _exit(0);
        }
        if (how[0] == 'e')
            _exit(atoi(how + 1));
        raise(atoi(how));
    }
    while (!j->dead)
        sleep_until(j, UINT64_MAX, &e, &got);
    uint64_t us = (env->ops->now_ns(env) - atomic_load(half(j, rank, 0))) / 1000;
    printf("rank %u learnt after %llu us that rank %u died: why %d detail %d\n", env->rank, (unsigned long long)us,
           e.rank, e.why, e.detail);
    fflush(stdout);
    close_all(j);
    exit(us < 2000000 ? 0 : 4); /* by an event: the bound of silence is many times that, a busy machine is not */
}

/* Into every socket we have but the standard ones. */
static void write_garbage(void)
{
    for (int fd = 3; fd < 64; fd++)
        (void)!send(fd, "\377\376\375 nonsense", 12, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int main(int argc, char **argv)
{
    struct joiner j = {.env = NULL};
    const char *what = argc > 1 ? argv[1] : "close";
    if (strcmp(what, "stubborn") == 0) {
        signal(SIGINT, SIG_IGN);
        signal(SIGTERM, SIG_IGN);
        signal(SIGHUP, SIG_IGN);
    }
    if (strcmp(what, "late") == 0 && argc > 2)
        usleep((useconds_t)atoi(argv[2]) * 1000);
    if (rnl_job_env(NULL, &j.env) < 0)
        fail(&j, "join");
    if (strcmp(what, "all") == 0) {
        connect_all(&j);
    } else if (strcmp(what, "all-for") == 0 && argc > 2) {
        connect_all(&j);
        live(&j, j.env->ops->now_ns(j.env) + (uint64_t)atoi(argv[2]) * MS);
    } else if (strcmp(what, "ready") == 0 || strcmp(what, "stubborn") == 0 || strcmp(what, "garbage") == 0) {
        printf("rank %u ready\n", j.env->rank);
        fflush(stdout);
        if (strcmp(what, "garbage") == 0 && j.env->rank == 1) {
            write_garbage();
            for (;;)
                pause();
        }
        live(&j, UINT64_MAX);
    } else if (strcmp(what, "die") == 0 && argc > 3) {
        die(&j, (uint32_t)atoi(argv[2]), argv[3]);
    } else if (strcmp(what, "system") == 0 && argc > 2) {
        if (system(argv[2]) < 0)
            fail(&j, "system");
    } else if (strcmp(what, "twice") == 0) {
        struct rnl_env *second;
        printf("%d %s\n", rnl_job_env(NULL, &second), rnl_last_error()->text);
    }
    close_all(&j);
    return 0;
}
