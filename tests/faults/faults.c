/* SPDX-License-Identifier: BSD-3-Clause
 *
 * faults.c - lets every call of the set-up paths fail, one run for each (shim.c says how), and looks at what comes of
 * it: it works, or it ends with a failure and a sentence that says what failed; in no case does it crash, hang, or
 * leave a process, a descriptor, a mapping or a file.
 *
 *   faults [SECONDS [SEED]]     as many of the runs as fit, drawn by SEED
 *   faults all [LINE...]        every run; only the lines of the table whose names match
 *   faults one LINE HOW N       that run, and what it wrote
 *   FAULTS_SENTENCES=1          also each sentence that came, once for each call */
#include "faults/faults.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_MS = 1500, HANG_MS = 10000, LINGER_MS = 2000, NAMES = 400 };

static const struct line {
    const char *name, *place, *target; /* target: what target.c is to be; rank and listen in a job of two */
} lines[] = {
    {"alone", "launcher", "self"},   {"hub", "launcher", "hub"}, {"launcher", "launcher", "rank"},
    {"start", "start1", "rank"},     {"rank0", "rank0", "rank"}, {"rank1", "rank1", "rank"},
    {"listener", "rank1", "listen"}, {"agent", "agent", "rank"},
};
/* What nobody may notice: `works`. */
static const struct way {
    const char *how;
    int works;
} ways[] = {{"usual", 0}, {"other", 0}, {"intr", 1}, {"short", 0}, {"usual+", 0}, {"other+", 0}};
/* A receiver that can map nothing for a long message, or has no memory for the connection that its peer made (calloc;
 * who sends has made it itself, and is told), waits for memory, for ever if none comes. */
static const char *const waits[] = {"mmap64", "mprotect"}, *const only_listener[] = {"calloc"};
enum { LINES = sizeof lines / sizeof *lines, WAYS = sizeof ways / sizeof *ways };

struct run {
    unsigned long at;
    int struck, status, waits;
    char call[64], where[256];
    char problem[300];
    char out[4096], err[8192];
};

static char dir[64], shim[4096], self[4096];
static const char *runnel;

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static const char *path_of(const char *name)
{
    static char path[3][128];
    static unsigned next;
    char *p = path[next++ % 3];
    snprintf(p, sizeof path[0], "%s/%s", dir, name);
    return p;
}

static void read_file(const char *name, char *text, size_t room)
{
    int fd = open(path_of(name), O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, room - 1);
    text[n > 0 ? n : 0] = '\0';
    if (fd >= 0)
        close(fd);
}

__attribute__((format(printf, 2, 3))) static void complain(struct run *r, const char *format, ...)
{
    va_list args;
    if (r->problem[0] != '\0')
        return;
    va_start(args, format);
    vsnprintf(r->problem, sizeof r->problem, format, args);
    va_end(args);
}

static int alone(const struct line *l)
{
    return strcmp(l->target, "self") == 0 || strcmp(l->target, "hub") == 0;
}

/* ---- one run ---- */

static void become(const struct line *l, const struct way *w, unsigned long at)
{
    char number[24];
    static const struct {
        const char *name;
        int flags;
    } streams[] = {{"in", O_RDONLY}, {"out", O_WRONLY | O_TRUNC}, {"err", O_WRONLY | O_TRUNC}};
    for (int i = 0; i < 3; i++) {
        int fd = open(path_of(streams[i].name), streams[i].flags | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0 || dup2(fd, i) < 0)
            _exit(120);
    }
    snprintf(number, sizeof number, "%lu", at);
    setenv("RNL_FAULT_PLACE", l->place, 1);
    setenv("RNL_FAULT_HOW", w->how, 1);
    setenv("RNL_FAULT_AT", number, 1);
    setenv("RNL_FAULT_ME", "000", 1);
    setenv("RNL_FAULT_LOG", path_of("log"), 1);
    setenv("TMPDIR", dir, 1);
    setenv("LD_PRELOAD", shim, 1);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* should we be ended ourselves */
    if (!alone(l))
        execl(runnel, "runnel", "run", "-n", "2", self, "target", l->target, (char *)NULL);
    else
        execl(self, self, "target", l->target, (char *)NULL);
    _exit(121);
}

static void read_log(struct run *r, char *log, size_t room)
{
    read_file("log", log, room);
    const char *failed = strstr(log, "failed ");
    r->struck = failed != NULL && sscanf(failed, "failed %*s %*u %63s %255s", r->call, r->where) == 2;
}

static int is_among(const char *call, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(call, list[i]) == 0)
            return 1;
    return 0;
}

static int may_wait(struct run *r, const struct line *l, const struct way *w)
{
    char log[4096];
    read_log(r, log, sizeof log);
    if (strchr(w->how, '+') == NULL)
        return 0;
    return is_among(r->call, waits, sizeof waits / sizeof *waits) ||
           (strcmp(l->target, "listen") == 0 &&
            is_among(r->call, only_listener, sizeof only_listener / sizeof *only_listener));
}

/* Its status. Who hangs is ended; the ranks of a launcher die with it. */
static int await(struct run *r, const struct line *l, const struct way *w, pid_t pid)
{
    int status = -1;
    struct pollfd p = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
    if (p.fd >= 0 && poll(&p, 1, WAIT_MS) == 0) {
        r->waits = may_wait(r, l, w);
        if (!r->waits && poll(&p, 1, HANG_MS) == 0)
            complain(r, "hangs");
        kill(pid, r->waits ? SIGTERM : SIGKILL);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (p.fd >= 0)
        close(p.fd);
    return status;
}

/* What the dead left to us, their subreaper. */
static void await_others(struct run *r)
{
    char path[64], children[256];
    uint64_t until = now_ms() + LINGER_MS;
    for (;;) {
        pid_t pid = waitpid(-1, NULL, WNOHANG);
        if (pid < 0)
            return;
        if (pid > 0)
            continue;
        if (now_ms() >= until)
            break;
        usleep(2000);
    }
    snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, children, sizeof children - 1);
    if (fd >= 0)
        close(fd);
    children[n > 0 ? n : 0] = '\0';
    complain(r, "leaves processes: %s", children);
    for (char *at = children, *end; *at != '\0'; at = end) {
        long pid = strtol(at, &end, 10);
        if (end == at)
            break;
        kill((pid_t)pid, SIGKILL);
        waitpid((pid_t)pid, NULL, 0);
    }
}

/* Some line says what failed. */
static int explains(const char *err)
{
    static const char *const empty[] = {"Success", "no error", "unknown error", "(null)"};
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++)
        if (strstr(err, empty[i]) != NULL)
            return 0;
    return strncmp(err, "runnel: ", 8) == 0 || strncmp(err, "target: ", 8) == 0 || strstr(err, "\nrunnel: ") != NULL ||
           strstr(err, "\ntarget: ") != NULL;
}

static void judge(struct run *r, const struct line *l, const struct way *w)
{
    char log[4096];
    read_file("out", r->out, sizeof r->out);
    read_file("err", r->err, sizeof r->err);
    read_log(r, log, sizeof log);
    const char *left = strstr(log, "left ");
    int ended = WIFEXITED(r->status) ? WEXITSTATUS(r->status) : 128 + WTERMSIG(r->status);
    int dones = 0;
    for (const char *at = r->out; (at = strstr(at, "done\n")) != NULL; at++)
        dones++;
    if (strstr(r->err, "CHECK failed: sanitizer_") != NULL) /* a sanitizer had no memory for itself */
        return;
    if (strstr(r->err, "Sanitizer") != NULL || strstr(r->err, "runtime error:") != NULL)
        complain(r, "a sanitizer has found something");
    if (r->waits)
        return;
    if (ended == FAULTS_LEFT)
        complain(r, "leaves something of its own behind");
    if (WIFSIGNALED(r->status) || ended == 128 + SIGSEGV || ended == 128 + SIGABRT || ended == 128 + SIGBUS)
        complain(r, "is killed by a signal, status %d", ended);
    if (ended == 0 && dones != (alone(l) ? 1 : 2))
        complain(r, "ends with 0 and has not done its work");
    if (ended != 0 && !explains(r->err))
        complain(r, "ends with %d and no sentence that explains it", ended);
    if (ended != 0 && (!r->struck || w->works))
        complain(r, "ends with %d", ended);
    if (left != NULL)
        complain(r, "leaves a descriptor: %.*s", (int)strcspn(left, "\n"), left);
}

static void run(struct run *r, const struct line *l, const struct way *w, unsigned long at)
{
    memset(r, 0, sizeof *r);
    r->at = at;
    int fd = open(path_of("log"), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0) {
        complain(r, "cannot fork: %s", strerror(errno));
        return;
    }
    if (pid == 0)
        become(l, w, at);
    r->status = await(r, l, w, pid);
    await_others(r);
    judge(r, l, w);
}

static void indent(const char *text)
{
    while (*text != '\0') {
        int n = (int)strcspn(text, "\n");
        printf("    | %.*s\n", n, text);
        text += n + (text[n] == '\n');
    }
}

static void show(const struct run *r, const struct line *l, const struct way *w)
{
    printf("    %s %s %lu (%s, called at %s): %s\n", l->name, w->how, r->at, r->call, r->where,
           r->problem[0] != '\0' ? r->problem : "fine");
    indent(r->out);
    indent(r->err);
    fflush(stdout);
}

/* ---- many ---- */

static void show_sentences(const struct run *r)
{
    static char *seen[NAMES];
    static unsigned n;
    char text[400];
    if (getenv("FAULTS_SENTENCES") == NULL || r->err[0] == '\0')
        return;
    snprintf(text, sizeof text, "%s: %.300s", r->call, r->err);
    for (unsigned i = 0; i < n; i++)
        if (strcmp(seen[i], text) == 0)
            return;
    if (n < NAMES)
        seen[n++] = strdup(text);
    printf("    %s (%s)\n", r->call, r->where);
    indent(r->err);
}

struct total {
    unsigned runs, worked, bad;
    uint64_t longest_ms;
};

/* 0 if there are not so many calls. */
static int once(const struct line *l, const struct way *w, unsigned long at, struct total *t)
{
    static struct run r;
    uint64_t from = now_ms();
    run(&r, l, w, at);
    uint64_t ms = now_ms() - from;
    t->longest_ms = ms > t->longest_ms ? ms : t->longest_ms;
    if (r.problem[0] != '\0') {
        t->bad++;
        show(&r, l, w);
    }
    if (!r.struck)
        return 0;
    t->runs++;
    t->worked += WIFEXITED(r.status) && WEXITSTATUS(r.status) == 0;
    show_sentences(&r);
    return 1;
}

/* Every stride-th n from first on until no call is left, or the time is up. */
static void sweep(const struct line *l, const struct way *w, unsigned long first, unsigned long stride, uint64_t until,
                  struct total *t)
{
    unsigned long at = first;
    while (now_ms() < until && once(l, w, at, t))
        at += stride;
}

static int files_left(void)
{
    static const char *const ours[] = {"in", "out", "err", "log"};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        unlink(path_of(ours[i]));
    return rmdir(dir) < 0;
}

static int report(const struct line *l, const struct total *t)
{
    int bad = t->bad != 0 || t->runs == 0; /* where no call failed, nothing was tested */
    printf("%s - %s: %u calls failed, %u times it went on (longest %llu ms)\n", bad ? "not ok" : "ok", l->name, t->runs,
           t->worked, (unsigned long long)t->longest_ms);
    fflush(stdout);
    return bad;
}

static int all(int argc, char **argv)
{
    int bad = 0;
    for (int i = 0; i < LINES; i++) {
        struct total t = {.runs = 0};
        int asked = argc == 0;
        for (int k = 0; k < argc; k++)
            asked |= strcmp(argv[k], lines[i].name) == 0;
        for (int k = 0; asked && k < WAYS; k++)
            sweep(&lines[i], &ways[k], 1, 1, UINT64_MAX, &t);
        if (asked)
            bad |= report(&lines[i], &t);
    }
    return bad;
}

/* Rounds with ever other n, each line and way in turn, so that a short time goes everywhere. A line whose turn did not
 * come in it, or that has fewer calls than the first n, has its first call fail. */
static int some(unsigned seconds, unsigned seed)
{
    enum { STRIDE = 61 };
    struct total t[LINES] = {{.runs = 0}};
    uint64_t until = now_ms() + (uint64_t)seconds * 1000;
    int bad = 0;
    printf("seed %u\n", seed);
    for (unsigned round = 0; round < STRIDE && now_ms() < until; round++)
        for (int i = 0; i < LINES; i++)
            for (int k = 0; k < WAYS; k++)
                sweep(&lines[i], &ways[k], 1 + (seed + round * 23) % STRIDE, STRIDE, until, &t[i]);
    for (int i = 0; i < LINES; i++) {
        for (unsigned k = 0; k < WAYS && t[i].runs == 0; k++) /* not every way has a call to strike in every line */
            once(&lines[i], &ways[(seed + k) % WAYS], 1, &t[i]);
        bad |= report(&lines[i], &t[i]);
    }
    return bad;
}

static int one(char **argv)
{
    static struct run r;
    for (int i = 0; i < LINES; i++)
        for (int k = 0; k < WAYS; k++)
            if (strcmp(argv[0], lines[i].name) == 0 && strcmp(argv[1], ways[k].how) == 0) {
                run(&r, &lines[i], &ways[k], strtoul(argv[2], NULL, 10));
                show(&r, &lines[i], &ways[k]);
                return r.problem[0] != '\0';
            }
    return 64;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "target") == 0)
        return faults_target(argv[2]);
    const char *build = getenv("RUNNEL_BUILD"), *tmp = getenv("TMPDIR");
    runnel = getenv("RUNNEL");
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (!build || !runnel || n < 0) {
        printf("RUNNEL_BUILD and RUNNEL have to name the build\n");
        return 1;
    }
    self[n] = '\0';
    snprintf(shim, sizeof shim, "%s/tests/libfaults-shim.so", build);
    snprintf(dir, sizeof dir, "%s/faults.XXXXXX", tmp != NULL && strlen(tmp) < 40 ? tmp : "/tmp");
    if (mkdtemp(dir) == NULL) {
        printf("no temporary directory: %s\n", strerror(errno));
        return 1;
    }
    setenv("ASAN_OPTIONS", "verify_asan_link_order=0:abort_on_error=0:detect_stack_use_after_return=0", 1);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    int bad;
    if (argc == 5 && strcmp(argv[1], "one") == 0)
        bad = one(argv + 2);
    else if (argc > 1 && strcmp(argv[1], "all") == 0)
        bad = all(argc - 2, argv + 2);
    else
        bad = some(argc > 1 ? (unsigned)atoi(argv[1]) : 20, argc > 2 ? (unsigned)atoi(argv[2]) : (unsigned)time(NULL));
    int left = files_left();
    printf("%s - no file is left\n", left ? "not ok" : "ok");
    return bad || left;
}
