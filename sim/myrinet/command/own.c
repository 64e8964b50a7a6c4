/* SPDX-License-Identifier: BSD-3-Clause
 *
 * own.c - loads a system of the user's own, which `runnel paper build` made (kit/kit.h), when a command names it by a
 * path. Its host code runs in this process and is trusted; whether it fits to this command is looked at first. */
#include "sim/myrinet/command/command.h"
#include "sim/myrinet/kit/kit.h"
#include "sim/myrinet/systems/added.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

static int is_folder(const char *path)
{
    struct stat is;
    return stat(path, &is) == 0 && S_ISDIR(is.st_mode);
}

int myri_cmd_is_own(const char *what)
{
    size_t n = strlen(what);
    return strchr(what, '/') || (n > 3 && strcmp(what + n - 3, ".so") == 0) || is_folder(what);
}

/* Whoever has changed a source and not built again would look at what was. */
static void warn_if_older(const char *object, const char *folder)
{
    static const char *const sources[] = {"layout.h", "firmware.c", "host.c"};
    struct stat is, source;
    char path[PATH_MAX + 16];
    for (int i = 0; i < 3 && stat(object, &is) == 0; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, sources[i]);
        if (stat(path, &source) == 0 &&
            (source.st_mtim.tv_sec > is.st_mtim.tv_sec ||
             (source.st_mtim.tv_sec == is.st_mtim.tv_sec && source.st_mtim.tv_nsec > is.st_mtim.tv_nsec)))
            fprintf(stderr, "runnel paper: %s has been changed since %s was built: runnel paper build %s\n", path,
                    object, folder);
    }
}

/* FOLDER/NAME.so, whatever way it was named; the folder as it was. */
static int path_of(const char *what, char object[PATH_MAX], char folder[PATH_MAX])
{
    char full[PATH_MAX];
    if (!realpath(what, full))
        return myri_cmd_wrong("%s: %s; give the path of what runnel paper build has made, or of its folder", what,
                              strerror(errno));
    int named_folder = is_folder(full);
    const char *slash = strrchr(what, '/'), *name = strrchr(full, '/') + 1;
    if (named_folder)
        snprintf(folder, PATH_MAX, "%.*s", (int)strlen(what) - (slash && !slash[1]), what);
    else
        snprintf(folder, PATH_MAX, "%.*s", slash ? (int)(slash - what) : 1, slash ? what : ".");
    int n = named_folder ? snprintf(object, PATH_MAX, "%s/%s.so", full, name) : snprintf(object, PATH_MAX, "%s", full);
    struct stat is;
    if (n >= PATH_MAX || stat(object, &is) < 0)
        return myri_cmd_wrong("%s has no %s.so: runnel paper build %s makes it", what, name, what);
    return S_ISREG(is.st_mode) ? 0 : myri_cmd_wrong("%s is no file", object);
}

static int judge(const char *what, const struct myri_kit *kit)
{
    if (kit->version != MYRI_KIT_VERSION || kit->layout != MYRI_KIT_LAYOUT)
        return myri_cmd_wrong(
            "%s was built for another release of runnel (its kit is %u-%016" PRIx64 ", this command's %d-%016" PRIx64
            "): runnel paper build makes it anew; should that not help, the installed headers are not this "
            "command's, so install runnel anew",
            what, kit->version, kit->layout, MYRI_KIT_VERSION, MYRI_KIT_LAYOUT);
    const struct myri_system *s = kit->system;
    const char *lacks = !s->name || !*s->name ? "name"
                        : !s->open            ? "open"
                        : !s->send            ? "send"
                        : !s->receive         ? "receive"
                        : s->most < 4         ? "most (bytes of a message, 4 or more)"
                        : s->state_bytes == 0 ? "state_bytes"
                                              : NULL;
    if (lacks)
        return myri_cmd_wrong("%s: its struct myri_system does not say .%s; host.c has to", what, lacks);
    return myri_cmd_is_name(s->name)
               ? 0
               : myri_cmd_wrong(
                     "%s: its .name, '%s', cannot be the name of a system: host.c has to take letters, digits and "
                     "_, a letter first, %d at most",
                     what, s->name, MYRI_CMD_NAME);
}

/* Where host code dies, its author has to look: the place is told, then the signal does what it does. */
static struct {
    char object[PATH_MAX], said[2 * PATH_MAX + 400];
    unsigned char stack[32 << 10]; /* the task's own may be what has no room */
} dying;

static uintptr_t place(const void *context)
{
#if defined(__x86_64__)
    return (uintptr_t)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (uintptr_t)((const ucontext_t *)context)->uc_mcontext.pc;
#else
    (void)context;
    return 0;
#endif
}

static void dies(int number, siginfo_t *info, void *context)
{
    Dl_info is = {0};
    uintptr_t at = place(context);
    int n = 0;
    if (at && dladdr((void *)at, &is) && is.dli_fname && strcmp(is.dli_fname, dying.object) == 0)
        n = snprintf(dying.said, sizeof dying.said,
                     "runnel paper: host code of %s got signal %d, at address %p; addr2line -fe %s %#" PRIxPTR
                     " names the line, and a task's stack has 64 KB\n",
                     dying.object, number, info->si_addr, dying.object, at - (uintptr_t)is.dli_fbase);
    else
        n = snprintf(dying.said, sizeof dying.said,
                     "runnel paper: signal %d, at address %p, behind a call of %s's host code, it seems\n", number,
                     info->si_addr, dying.object);
    if (n > 0)
        (void)!write(STDERR_FILENO, dying.said, (size_t)n);
}

/* A look each so often, of the processor's time: has the host code called anything since the last looks? */
enum { LOOKS = 5 };
static struct {
    unsigned long seen;
    int looks;
    double seconds;
} computing = {.seconds = MYRI_CMD_TIMEOUT};

static void looks(int number, siginfo_t *info, void *context)
{
    Dl_info is = {0};
    uintptr_t at = place(context);
    (void)number;
    (void)info;
    if (computing.seen != myri_hw_progress) {
        computing.seen = myri_hw_progress;
        computing.looks = 0;
    }
    if (computing.looks++ < LOOKS || !at || !dladdr((void *)at, &is) || !is.dli_fname ||
        strcmp(is.dli_fname, dying.object) != 0) /* firmware may take long, too: then it is not there */
        return;
    int n = snprintf(dying.said, sizeof dying.said,
                     "runnel paper: host code of %s has computed for more than %.10g s without a call of the machine "
                     "(myri_task_...), in which alone time passes; addr2line -fe %s %#" PRIxPTR
                     " names the line; --timeout SECONDS has it last longer\n",
                     dying.object, computing.seconds, dying.object, at - (uintptr_t)is.dli_fbase);
    if (n > 0)
        (void)!write(STDERR_FILENO, dying.said, (size_t)n);
    _exit(1);
}

void myri_cmd_own_timeout(double seconds)
{
    computing.seconds = seconds;
}

static void watch_over(const char *object)
{
    const struct sigaction look = {.sa_sigaction = looks, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    double each = computing.seconds / LOOKS;
    const struct timeval every = {(time_t)each, (suseconds_t)((each - (double)(time_t)each) * 1e6)};
    const struct itimerval timer = {every, every};
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    const stack_t stack = {.ss_sp = dying.stack, .ss_size = sizeof dying.stack};
    struct sigaction action = {.sa_sigaction = dies, .sa_flags = SA_SIGINFO | SA_ONSTACK | (int)SA_RESETHAND};
    snprintf(dying.object, sizeof dying.object, "%s", object);
    sigemptyset(&action.sa_mask);
    if (sigaltstack(&stack, NULL) == 0)
        for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
            sigaction(signals[i], &action, NULL);
    if (sigaction(SIGVTALRM, &look, NULL) == 0)
        (void)setitimer(ITIMER_VIRTUAL, &timer, NULL);
}

static int add(const char *what, const char *folder, const struct myri_kit *kit, const struct myri_system **out)
{
    size_t n = strlen(folder) + sizeof "/firmware", words = strlen(what) + 1;
    struct myri_added *a = calloc(1, sizeof *a + n + words);
    if (!a)
        return myri_cmd_no_memory(sizeof *a + n + words);
    char *object = (char *)(a + 1), *named = object + n;
    snprintf(object, n, "%s/firmware", folder);
    memcpy(named, what, words);
    a->named = named;
    a->system = *kit->system;
    a->system.object = object;
    if (!a->system.title)
        a->system.title = a->system.name;
    if (!a->system.source)
        a->system.source = "of one's own";
    if (!a->system.machines)
        a->system.machines = "H-PP";
    a->object = (struct myri_data){object, kit->object, kit->object_bytes};
    a->lines = (struct myri_data){object, kit->lines, kit->lines_bytes};
    myri_system_add(a);
    *out = &a->system;
    return 0;
}

int myri_cmd_own(const char *what, const struct myri_system **out)
{
    char object[PATH_MAX], folder[PATH_MAX];
    int rc = path_of(what, object, folder);
    rc = rc ? rc : myri_cmd_object_is_whole(object);
    if (rc)
        return rc;
    void *library = dlopen(object, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return myri_cmd_wrong("%s cannot be loaded (%s); runnel paper build makes a system that can", what, dlerror());
    const struct myri_kit *kit = dlsym(library, "myri_kit");
    if (kit)
        rc = judge(what, kit);
    else
        rc = myri_cmd_wrong("%s is a library, but no system: it has no symbol myri_kit; runnel paper build makes one",
                            what);
    if (rc == 0) {
        warn_if_older(object, folder);
        watch_over(object);
        rc = add(what, folder, kit, out);
    }
    if (rc)
        dlclose(library);
    return rc;
}
