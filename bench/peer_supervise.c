/* SPDX-License-Identifier: BSD-3-Clause
 *
 * peer_supervise.c - see peer.h. Launchers of MPIs start daemons and sessions of their own; the supervisor is the
 * subreaper of all of them, so none gets out of its sight. */
#include "launch.h"
#include "peer.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GRACE_MS = 2000, KILL_MS = 3000, MOST_MAIN = 2, PROGRAM_BYTES = 80 };

struct supervisor {
    const struct bench_peers *peers;
    struct bench_pair *pair;
    unsigned api;
    char work[64], shm[64]; /* folders of its own */
    pid_t main[MOST_MAIN];  /* what it started; 0 = ended */
    int status[MOST_MAIN];
    bool asked; /* to end */
    sigset_t signals;
};

static void give_up(struct supervisor *k, const char *sentence)
{
    if (!bench_pair_failure(k->pair))
        bench_pair_fail(k->pair, 0, sentence);
}

/* What a program said that matters most: the first line with "error", else the first that is more than decoration. */
static void first_words(const struct supervisor *k, char *out, size_t size)
{
    char path[80], line[512];
    bool sure = false;
    *out = 0;
    snprintf(path, sizeof path, "%s/said", k->work);
    FILE *f = fopen(path, "re");
    if (!f)
        return;
    while (!sure && fgets(line, sizeof line, f)) {
        size_t from = strspn(line, " \t*-=#[|+"), n = strcspn(line + from, "\n");
        unsigned letters = 0;
        for (size_t i = 0; i < n; i++) {
            unsigned char c = (unsigned char)line[from + i];
            letters += isalpha(c) != 0;
            if (c < ' ' || c > '~')
                line[from + i] = ' ';
        }
        sure = strcasestr(line, "error") != NULL;
        if (letters > 5 && (sure || !*out))
            snprintf(out, size, "%.*s", (int)n, line + from);
    }
    fclose(f);
}

static void say_how_it_ended(struct supervisor *k, const char *what, int status)
{
    char words[120], sentence[200];
    first_words(k, words, sizeof words);
    if (WIFSIGNALED(status))
        snprintf(sentence, sizeof sentence, "%s ended by signal %d%s%s", what, WTERMSIG(status), *words ? ": " : "",
                 words);
    else
        snprintf(sentence, sizeof sentence, "%s ended with status %d%s%s", what, WEXITSTATUS(status),
                 *words ? ": " : "", words);
    give_up(k, sentence);
}

static void start(struct supervisor *k, int i, char *const *argv)
{
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        bench_end_with(parent, SIGTERM);
        sigprocmask(SIG_UNBLOCK, &k->signals, NULL);
        execvp(argv[0], argv);
        fprintf(stderr, "could not start %s: %s\n", argv[0], strerror(errno));
        _exit(127);
    }
    if (pid < 0)
        give_up(k, "no process could be started for it");
    k->main[i] = pid < 0 ? 0 : pid;
}

static void reap(struct supervisor *k)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        for (int i = 0; i < MOST_MAIN; i++)
            if (k->main[i] == pid) {
                k->main[i] = 0;
                k->status[i] = status;
            }
}

static bool some_run(const struct supervisor *k)
{
    return k->main[0] || k->main[1];
}

/* Until all it started have ended, one has failed, or it is asked to end. */
static void watch(struct supervisor *k)
{
    while (some_run(k) && !k->asked && !k->status[0] && !k->status[1]) {
        int s = sigwaitinfo(&k->signals, NULL);
        if (s == SIGTERM)
            k->asked = true;
        else if (s == SIGCHLD)
            reap(k);
    }
}

/* Signals all below pid, deepest first. */
static unsigned signal_below(pid_t pid, int signal, unsigned depth)
{
    char path[64];
    unsigned n = 0;
    int child;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    FILE *f = depth < 16 ? fopen(path, "re") : NULL;
    if (!f)
        return 0;
    while (fscanf(f, "%d", &child) == 1) {
        n += 1 + signal_below(child, signal, depth + 1);
        kill(child, signal);
    }
    fclose(f);
    return n;
}

static bool no_child_left(struct supervisor *k)
{
    reap(k);
    return waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD;
}

static void wait_for_none(struct supervisor *k, unsigned ms, int signal)
{
    const struct timespec moment = {.tv_nsec = 10000000};
    uint64_t end = bench_now_ns() + (uint64_t)ms * 1000000u;
    while (!no_child_left(k) && bench_now_ns() < end) {
        if (signal)
            signal_below(getpid(), signal, 0);
        nanosleep(&moment, NULL);
    }
}

/* The launcher first: it knows best how to end what it started. */
static void end_all(struct supervisor *k)
{
    for (int i = 0; i < MOST_MAIN; i++)
        if (k->main[i])
            kill(k->main[i], SIGTERM);
    wait_for_none(k, GRACE_MS, 0);
    wait_for_none(k, KILL_MS, SIGKILL);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    remove(path);
    return 0;
}

static bool make_folder(char *path, size_t size, const char *below)
{
    snprintf(path, size, "%s/bench-peer-XXXXXX", below);
    if (strlen(path) + 1 < size && mkdtemp(path))
        return true;
    *path = 0;
    return false;
}

static bool make_folders(struct supervisor *k)
{
    const char *tmp = getenv("TMPDIR");
    if (!(tmp && *tmp && strlen(tmp) < 40 && make_folder(k->work, sizeof k->work, tmp)) &&
        !make_folder(k->work, sizeof k->work, "/tmp"))
        return false;
    if (!make_folder(k->shm, sizeof k->shm, "/dev/shm"))
        *k->shm = 0;
    return true;
}

/* From here on what is said goes to a file, and nobody who reads from runnel bench waits for us. */
static void redirect(const struct supervisor *k)
{
    char path[80];
    snprintf(path, sizeof path, "%s/said", k->work);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC),
        said = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    dup2(null, 0);
    dup2(said < 0 ? null : said, 1);
    dup2(said < 0 ? null : said, 2);
}

/* Waits until the maker has said where the program is, and has it here, too. False: it has to be compiled here. */
static bool take_made(struct supervisor *k, const char *program)
{
    const int *made = k->peers->made[bench_peer_family(k->api)];
    const struct timespec moment = {.tv_nsec = 20000000};
    struct pollfd ready = {.fd = made[0], .events = POLLIN};
    char path[PROGRAM_BYTES];
    close(made[1]); /* so that the maker's end is seen */
    while (!k->asked && poll(&ready, 1, 0) == 0)
        k->asked = sigtimedwait(&k->signals, NULL, &moment) == SIGTERM;
    return !k->asked && read(made[0], path, sizeof path) == sizeof path && link(path, program) == 0;
}

static void tell_made(const struct supervisor *k, const char program[PROGRAM_BYTES])
{
    enum bench_peer_family f = bench_peer_family(k->api);
    for (unsigned i = 1; i < k->peers->sharers[f]; i++)
        (void)!write(k->peers->made[f][1], program, PROGRAM_BYTES);
    close(k->peers->made[f][1]);
}

/* Closes the pipes of other families, whose ends are to be seen by who waits for them. */
static void close_others(const struct supervisor *k)
{
    for (int f = 0; f < BENCH_PEER_FAMILIES; f++)
        for (int i = 0; i < 2; i++)
            if (f != (int)bench_peer_family(k->api) && k->peers->made[f][i] >= 0)
                close(k->peers->made[f][i]);
}

/* False: there is none, and it was said why; or the supervisor is to end. */
static bool make_program(struct supervisor *k, const char program[PROGRAM_BYTES])
{
    enum bench_peer_family f = bench_peer_family(k->api);
    const bool shares = k->peers->made[f][0] >= 0, makes = shares && k->peers->maker[f] == k->api;
    struct bench_words w = {0};
    close_others(k);
    if (shares && !makes && take_made(k, program))
        return true;
    if (k->asked)
        return false;
    bench_peer_compile(k->peers, k->api, program, &w);
    start(k, 0, w.word);
    watch(k);
    if (k->asked)
        return false;
    if (k->status[0]) {
        say_how_it_ended(k, "the compiler", k->status[0]);
        return false;
    }
    if (makes)
        tell_made(k, program);
    return true;
}

static void compile_and_run(struct supervisor *k)
{
    char program[PROGRAM_BYTES] = "", reach[80];
    struct bench_words w;
    snprintf(program, sizeof program, "%s/peer", k->work);
    if (!make_program(k, program))
        return;
    atomic_store_explicit(&k->pair->compiled, 1, memory_order_release);
    bench_futex_wake_all(&k->pair->compiled);
    int ranks = 1;
    snprintf(reach, sizeof reach, "%s/reach", k->work);
    if (*k->peers->area->net.space[0] && bench_peer_reach(&k->peers->area->net, reach)) {
        give_up(k, "the script that leads to the other namespace cannot be written");
        return;
    }
    for (int i = 0; i < ranks; i++) {
        memset(&w, 0, sizeof w);
        ranks = bench_peer_command(k->peers, k->api, (unsigned)i, program, reach, &w);
        start(k, i, w.word);
    }
    watch(k);
    for (int i = 0; i < ranks && !k->asked; i++)
        if (k->status[i])
            say_how_it_ended(k, bench_api_name(k->api), k->status[i]);
    if (!k->asked && k->pair->order.test != BENCH_QUIT)
        say_how_it_ended(k, bench_api_name(k->api), 0);
}

int bench_peer_supervise(const struct bench_peers *p, unsigned api, pid_t parent)
{
    struct supervisor k = {.peers = p, .pair = &p->area->pair[api], .api = api};
    /* Ctrl-C is for runnel bench; the peer's processes are ended from here, in order. */
    setpgid(0, 0);
    sigemptyset(&k.signals);
    for (const int *s = (const int[]){SIGTERM, SIGINT, SIGHUP, SIGCHLD, 0}; *s; s++)
        sigaddset(&k.signals, *s);
    sigprocmask(SIG_BLOCK, &k.signals, NULL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    bench_end_with(parent, SIGTERM);
    if (!make_folders(&k)) {
        give_up(&k, "there is no folder to work in: /tmp cannot be written");
        return 1;
    }
    redirect(&k);
    bench_peer_environment(p, api, k.work, *k.shm ? k.shm : k.work);
    compile_and_run(&k);
    end_all(&k);
    nftw(k.work, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    if (*k.shm)
        nftw(k.shm, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return 0;
}
