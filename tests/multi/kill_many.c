/* SPDX-License-Identifier: BSD-3-Clause
 *
 * kill_many.c - kills random ranks of many jobs at random moments, and looks at what the survivors say: multi-kill_many
 * [KILLS [SECONDS [SEED [MODE]]]], by default as many as fit in a short test. Half-way of the start, in the middle of
 * traffic, after SIGSTOP, with the others blocked, asleep or holding half a message. With RNL_TEST_HOSTS=A,B the ranks
 * are on these hosts, which are network namespaces (test_kill_hosts.sh).
 *
 * With --keep-going every survivor must be told, finish its checked traffic with the other survivors, and end well.
 * Without it the job ends with one line that names rank and signal. Whatever is killed, the launcher too, nothing may
 * be left behind. Times are printed, not judged: who is never told hangs its job. That a death rings each bell at once
 * is for tests/job/test_agent.c. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "multi/fm_check.h"
#include "multi/kill_job.h"

#define MS 1000000ull
enum { RANKS_MOST = 6, TIMES_MAX = 1 << 18, JOB_LIMIT_S = FM_SANITIZED ? 90 : 20 };
enum { PROGRESS = 1000 };

enum mode { TRAFFIC, WAIT, POLL, SEND, STUCK, HALF, MODES };
static const char *const mode_names[] = {"traffic", "wait", "poll", "send", "stuck", "half"};

struct times {
    const char *what;
    uint64_t *ns;
    unsigned n;
};

static char runnel[4096], worker[4096], tmp[64], hosts[512];
static struct kill_job job;
static uint64_t random_state, typical_ns[RANKS_MOST + 1];
static struct times told[MODES], ended, orphans;
static unsigned kills, missed, jobs, by_default, launchers, stops, early, failures;

static void complain(const char *what, const char *detail)
{
    failures++;
    printf("# %s%s%s\n#   ", what, detail ? ": " : "", detail ? detail : "");
    for (int i = 1; job.argv[i]; i++)
        printf("%s ", job.argv[i]);
    printf("-> status 0x%x after %.1f ms\n", (unsigned)job.status, (double)job.ns / 1e6);
    for (unsigned i = 0; i < job.shots; i++)
        printf("#   rank %d at %.2f ms%s: %s\n", job.shot[i].rank, (double)job.shot[i].at_ns / 1e6,
               job.shot[i].stop_ns ? ", stopped before" : "", job.shot[i].hit ? "hit" : "missed");
    printf("#   output: %.3000s\n#   errors: %.3000s\n", job.out, job.err);
    fflush(stdout);
}

static void note(struct times *t, uint64_t ns)
{
    if (!t->ns)
        t->ns = malloc(TIMES_MAX * sizeof *t->ns);
    if (t->ns != NULL && t->n < TIMES_MAX)
        t->ns[t->n++] = ns;
}

/* ---- what the ranks said ---- */

/* What follows `begin` on the line that begins with it, or NULL. */
static const char *line_after(const char *begin)
{
    size_t n = strlen(begin);
    const char *line = job.out;
    while (line && strncmp(line, begin, n) != 0) {
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    return line ? line + n : NULL;
}

/* Time at which `reporter` said that `rank` is dead, 0 = it did not. */
static uint64_t dead_line(int reporter, int rank)
{
    char begin[64];
    snprintf(begin, sizeof begin, "dead %d %d ", reporter, rank);
    const char *ns = line_after(begin);
    return ns ? strtoull(ns, NULL, 10) : 0;
}

static int done_line(int rank)
{
    char begin[64];
    snprintf(begin, sizeof begin, "done %d ", rank);
    return line_after(begin) != NULL;
}

/* ---- one job ---- */

static const struct kill_shot *shot_of(int rank)
{
    for (unsigned i = 0; i < job.shots; i++)
        if (job.shot[i].rank == rank && job.shot[i].hit)
            return &job.shot[i];
    return NULL;
}

/* But for those of a sanitizer that was killed while it looked for leaks: ==PROCESS==... */
static int lines(const char *text)
{
    int n = 0;
    for (const char *end; (end = strchr(text, '\n')) != NULL; text = end + 1)
        n += strncmp(text, "==", 2) != 0;
    return n;
}

static void look_at_survivors(enum mode mode)
{
    int dead = 0;
    for (int rank = 0; rank < (int)job.ranks; rank++)
        dead += shot_of(rank) != NULL && !done_line(rank);
    for (int rank = 0; rank < (int)job.ranks; rank++) {
        if (shot_of(rank))
            continue;
        if (!done_line(rank)) {
            complain("a survivor did not finish", NULL);
            return;
        }
        for (unsigned i = 0; i < job.shots; i++) {
            const struct kill_shot *s = &job.shot[i];
            uint64_t at = s->hit ? dead_line(rank, s->rank) : 0;
            if (at)
                note(&told[mode], at > s->when_ns ? at - s->when_ns : 0);
            else if (s->hit && mode != TRAFFIC) /* there the survivor may have been in FM_finalize */
                complain("a survivor was not told", NULL);
        }
    }
    if (dead && !(WIFEXITED(job.status) && WEXITSTATUS(job.status) == 128 + 9))
        complain("a rank was killed, but the status is not 137", NULL);
}

static void look_at_default_end(enum mode mode)
{
    const struct kill_shot *s = &job.shot[0];
    if (!s->hit || (done_line(s->rank) && job.status == 0))
        return; /* too late to matter */
    char rank[32];
    snprintf(rank, sizeof rank, "rank %d ", s->rank);
    if (!WIFEXITED(job.status) || WEXITSTATUS(job.status) != 128 + 9)
        complain("the job of a killed rank does not end with 137", NULL);
    if (lines(job.err) != 1 || !strstr(job.err, rank) || !strstr(job.err, "signal 9"))
        complain("the job of a killed rank does not end with one line that names rank and signal", NULL);
    /* On another host it hears of the death a moment before SIGTERM comes, and may be done with it by then. */
    for (int other = 0; other < (int)job.ranks && mode != TRAFFIC && !job.hosts; other++)
        if (done_line(other))
            complain("a rank went on to its end although the job had failed", NULL);
    note(&ended, job.ns - (s->when_ns ? s->at_ns : 0));
}

static void look_behind(void)
{
    char now[300] = "";
    if (job.hung)
        complain("the job hung", NULL);
    if (job.left)
        complain("processes were left behind", NULL);
    DIR *d = opendir(tmp);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        if (strncmp(e->d_name, "tsan.", 5) == 0) /* the thread sanitizer's own: it makes and unlinks one as it starts */
            unlinkat(dirfd(d), e->d_name, 0);
        else if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            snprintf(now, sizeof now, "%s", e->d_name);
    }
    if (d)
        closedir(d);
    if (now[0])
        complain("the temporary directory holds", now);
}

/* A rank that breaks a promise says so; so do the sanitizers. */
static int bad_words(void)
{
    static const char *const words[] = {"Sanitizer", "runtime error", "wrong byte", "does not hold", "\nrank "};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(job.err, words[i]))
            return 1;
    return strncmp(job.err, "rank ", 5) == 0;
}

static void plan(enum mode mode, int keep_going)
{
    uint64_t span = typical_ns[job.ranks];
    unsigned most = keep_going && mode == TRAFFIC && job.ranks > 2 ? job.ranks - 1 : 1;
    unsigned first = check_below(&random_state, job.ranks);
    job.shots = mode == TRAFFIC ? 1 + check_below(&random_state, most) : 1;
    for (unsigned i = 0; i < job.shots; i++) {
        struct kill_shot *s = &job.shot[i];
        memset(s, 0, sizeof *s);
        s->rank = (int)((first + i) % job.ranks);
        s->at_ns = check_random(&random_state) % (span + span / 8);
        if (check_below(&random_state, 5) == 0) {
            s->at_ns /= 8; /* while it starts */
            early++;
        }
        if (check_below(&random_state, 4) == 0) {
            s->stop_ns = 1 + check_random(&random_state) % (20 * MS);
            s->at_ns += s->stop_ns;
            stops++;
        }
    }
}

static void run_job(unsigned ranks, enum mode mode, int keep_going, int shoot)
{
    char n[16], seed[32], victim[16], limit[16];
    snprintf(n, sizeof n, "%u", ranks);
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)(check_random(&random_state) >> 20));
    snprintf(limit, sizeof limit, "%d", JOB_LIMIT_S);
    job.ranks = ranks;
    job.limit_ns = (JOB_LIMIT_S + 5) * 1000 * MS;
    job.shots = 0;
    if (shoot)
        plan(mode, keep_going);
    snprintf(victim, sizeof victim, "%d", shoot ? job.shot[0].rank : 0);
    char *argv[20];
    int argc = 0;
    argv[argc++] = runnel;
    argv[argc++] = (char *)(uintptr_t) "run";
    if (keep_going)
        argv[argc++] = (char *)(uintptr_t) "--keep-going";
    argv[argc++] = (char *)(uintptr_t) "--timeout";
    argv[argc++] = limit;
    if (hosts[0]) {
        argv[argc++] = (char *)(uintptr_t) "--launcher";
        argv[argc++] = (char *)(uintptr_t) "netns";
        argv[argc++] = (char *)(uintptr_t) "--hosts";
        argv[argc++] = hosts;
    }
    argv[argc++] = (char *)(uintptr_t) "-n";
    argv[argc++] = n;
    argv[argc++] = worker;
    argv[argc++] = (char *)(uintptr_t)mode_names[mode];
    argv[argc++] = seed;
    argv[argc++] = victim;
    argv[argc] = NULL;
    job.argv = argv;
    if (shoot == 2)
        job.shot[0].rank = -1;
    if (kill_job_run(&job) < 0) {
        printf("Bail out! cannot start a process\n");
        exit(1);
    }
    jobs++;
    for (unsigned i = 0; i < job.shots; i++) {
        kills += (unsigned)job.shot[i].hit;
        missed += !job.shot[i].hit;
    }
    look_behind();
    if (bad_words())
        complain("a promise was broken", NULL);
    if (shoot == 2)
        note(&orphans, job.gone_ns);
    else if (job.hung)
        return;
    else if (keep_going)
        look_at_survivors(mode);
    else if (shoot)
        look_at_default_end(mode);
}

/* ---- all ---- */

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void print_times(const char *what, struct times *t)
{
    if (t->n == 0)
        return;
    qsort(t->ns, t->n, sizeof *t->ns, compare);
    printf("# %-28s %6u times, ms: median %.2f, 90%% %.2f, 99%% %.2f, worst %.2f\n", what, t->n,
           (double)t->ns[t->n / 2] / 1e6, (double)t->ns[t->n * 9 / 10] / 1e6, (double)t->ns[t->n * 99 / 100] / 1e6,
           (double)t->ns[t->n - 1] / 1e6);
}

static int named_ours(const char *name)
{
    return strstr(name, "runnel") != NULL || strstr(name, "rnl") != NULL;
}

static int count_ours(const char *folder)
{
    int n = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;)
        n += named_ours(e->d_name);
    if (d)
        closedir(d);
    return n;
}

static int count_fds(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    for (; d && readdir(d) != NULL; n++)
        ;
    if (d)
        closedir(d);
    return n;
}

static void verdict(const char *name, int good)
{
    printf("%s - %s\n", good ? "ok" : "not ok", name);
}

static void find_programs(void)
{
    const char *build = getenv("RUNNEL_BUILD"), *command = getenv("RUNNEL");
    if (!build || !command) {
        printf("RUNNEL_BUILD and RUNNEL do not say where the build and the command are\n");
        exit(77);
    }
    snprintf(runnel, sizeof runnel, "%s", command);
    snprintf(worker, sizeof worker, "%s/tests/multi-kill_rank", build);
    if (access(runnel, X_OK) < 0 || access(worker, X_OK) < 0) {
        printf("%s or %s is not built\n", runnel, worker);
        exit(77);
    }
    const char *list = getenv("RNL_TEST_HOSTS");
    snprintf(hosts, sizeof hosts, "%s", list != NULL ? list : "");
    job.hosts = hosts[0] != '\0';
    snprintf(tmp, sizeof tmp, "/tmp/kill-XXXXXX");
    if (mkdtemp(tmp) == NULL || setenv("TMPDIR", tmp, 1) < 0)
        exit(1);
}

/* How long jobs take here when nobody is killed: the span in which moments are drawn. */
static void learn_span(void)
{
    for (unsigned ranks = 2; ranks <= RANKS_MOST; ranks++) {
        for (int i = 0; i < 2; i++) {
            run_job(ranks, TRAFFIC, 1, 0);
            if (job.status != 0)
                complain("a job in which nobody was killed failed", NULL);
            typical_ns[ranks] = job.ns;
        }
    }
}

int main(int argc, char **argv)
{
    unsigned wanted = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 0) : FM_SANITIZED ? 60 : 400;
    uint64_t seconds = argc > 2 ? strtoull(argv[2], NULL, 0) : 60, began_ns = check_now_ns();
    random_state = argc > 3 ? strtoull(argv[3], NULL, 0) : began_ns;
    setvbuf(stdout, NULL, _IOLBF, 0);
    unsigned shown = 0;
    int only = -1;
    for (int m = 0; argc > 4 && m < MODES; m++)
        only = strcmp(argv[4], mode_names[m]) == 0 ? m : only;
    find_programs();
    printf("# seed %llu\n", (unsigned long long)random_state);
    int shm = count_ours("/dev/shm"), fds = count_fds();
    if (kill_job_prepare() < 0)
        exit(1);
    learn_span();
    while (kills < wanted && check_now_ns() - began_ns < seconds * 1000 * MS && failures < 20) {
        unsigned ranks = 2 + check_below(&random_state, RANKS_MOST - 1), kind = check_below(&random_state, 20);
        unsigned other = check_below(&random_state, MODES - 1);
        enum mode mode = only >= 0 ? (enum mode)only : kind < 11 ? TRAFFIC : (enum mode)(1 + other);
        int keep_going = kind % 6 != 5, shoot = kind == 0 ? 2 : 1;
        launchers += shoot == 2;
        by_default += !keep_going;
        run_job(ranks, mode, keep_going, shoot);
        if (kills / PROGRESS > shown) {
            shown = kills / PROGRESS;
            printf("# %u of %u\n", kills, wanted);
        }
    }
    rmdir(tmp);
    printf("# %u processes killed in %u jobs in %.1f s: %u while it started, %u stopped before, %u launchers, %u jobs "
           "without --keep-going; %u had ended before\n",
           kills, jobs, (double)(check_now_ns() - began_ns) / 1e9, early, stops, launchers, by_default, missed);
    for (unsigned m = 0; m < MODES; m++) {
        char what[64];
        snprintf(what, sizeof what, "survivors told (%s)", mode_names[m]);
        print_times(what, &told[m]);
    }
    print_times("job ended (no --keep-going)", &ended);
    print_times("ranks ended (launcher killed)", &orphans);
    verdict("every promise held in every job", failures == 0);
    verdict("nothing is left in /dev/shm", count_ours("/dev/shm") <= shm);
    verdict("no descriptor is left", count_fds() == fds);
    verdict("somebody was killed", kills > 0);
    for (unsigned m = 0; m < MODES; m++)
        free(told[m].ns);
    free(ended.ns);
    free(orphans.ns);
    return failures || !kills;
}
