/* SPDX-License-Identifier: BSD-3-Clause
 *
 * master.c - the process that the user starts. It finds out how many workers there are to be and how they are started,
 * and executes `runnel run`, which connects their output, reaps them, and returns the exit status of the job. Where a
 * custom spawner or a function of the program starts the workers, the master runs `runnel run --wait-for` in a child,
 * and the workers join that job. */
#include "api/amudp/amudp_internal.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STARTUP "AMUDP_SPMDStartup"

amudp_spawnfn_desc_t const AMUDP_Spawnfn_Desc[] = {
    {'S', "ssh: workers on the hosts of SSH_SERVERS", AMUDP_SPMDSshSpawn},
    {'L', "local: workers on this host", AMUDP_SPMDLocalSpawn},
    {'C', "custom: workers by the command in CSPAWN_CMD", AMUDP_SPMDCustomSpawn},
    {'\0', NULL, NULL},
};

amudp_spawnfn_t rnl_amudp_spawn_named(const char *text)
{
    for (int i = 0; text && AMUDP_Spawnfn_Desc[i].abbrev != '\0'; i++)
        if (toupper((unsigned char)text[0]) == AMUDP_Spawnfn_Desc[i].abbrev)
            return AMUDP_Spawnfn_Desc[i].fnptr;
    return NULL;
}

/* Removes the first argument. */
static void shift(int *argc, char ***argv)
{
    (*argv)[1] = (*argv)[0];
    (*argv)++;
    (*argc)--;
}

static int usage(const char *program, const char *what)
{
    fprintf(stderr, "AMUDP: %s\nusage: %s WORKERS [SPAWN] ARGUMENT...\n", what, program);
    for (int i = 0; AMUDP_Spawnfn_Desc[i].abbrev != '\0'; i++)
        fprintf(stderr, "  SPAWN %c  %s\n", AMUDP_Spawnfn_Desc[i].abbrev, AMUDP_Spawnfn_Desc[i].desc);
    exit(1); /* as AMUDP does */
}

int rnl_amudp_find_tool(const char *name, char *path, size_t room)
{
    const char *all = getenv("PATH");
    while (all && *all != '\0') {
        size_t n = strcspn(all, ":");
        if (n > 0 && snprintf(path, room, "%.*s/%s", (int)n, all, name) < (int)room && access(path, X_OK) == 0)
            return 0;
        all += n + (all[n] == ':');
    }
    if (snprintf(path, room, "%s/%s", RNL_BINDIR, name) < (int)room && access(path, X_OK) == 0)
        return 0;
    (void)rnl_amudp_fail(AM_ERR_RESOURCE, STARTUP,
                         "there is no command '%s' in PATH, nor in %s: install it with the library", name, RNL_BINDIR);
    return -1;
}

static size_t length(char **words)
{
    size_t n = 0;
    while (words && words[n])
        n++;
    return n;
}

static char **launcher_argv(char **options, char **program, int stay, char *count)
{
    static char runnel[] = "runnel", run[] = "run", dash_n[] = "-n", wait_for[] = "--wait-for",
                transport[] = "--transport", udp[] = "udp";
    const int lossy = rnl_amudp_env_probability("FAULT_RATE", STARTUP) > 0; /* only datagrams can be lost */
    char *head[] = {runnel, run, stay ? wait_for : dash_n, count, lossy ? transport : NULL, udp, NULL};
    char **parts[] = {head, options, program};
    char **argv = calloc(length(head) + length(options) + length(program) + 1, sizeof *argv), **at = argv;
    for (int i = 0; argv && i < 3; i++)
        for (size_t k = 0; k < length(parts[i]); k++)
            *at++ = parts[i][k];
    return argv;
}

int rnl_amudp_launch(int nproc, char **options, char **program, int stay)
{
    char path[4096], count[16];
    if (rnl_amudp_find_tool("runnel", path, sizeof path) < 0)
        return -1;
    snprintf(count, sizeof count, "%d", nproc);
    char **argv = launcher_argv(options, program, stay, count);
    if (!argv) {
        (void)rnl_amudp_fail(AM_ERR_RESOURCE, STARTUP, "no memory for a command line");
        return -1;
    }
    if (rnl_amudp_env_long("SPAWN_VERBOSE", 0, 1, 0))
        rnl_amudp_print("%s run %s %d ... %s", path, argv[2], nproc, stay ? "" : program[0]);
    fflush(NULL);
    pid_t parent = getpid(), child = stay ? fork() : 0;
    if (child == 0) {
        if (stay && (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != parent))
            _exit(1);
        execv(path, argv);
        int e = errno;
        if (stay)
            _exit(127);
        errno = e;
        child = -1;
    }
    if (child < 0)
        (void)rnl_amudp_fail(AM_ERR_RESOURCE, STARTUP, "cannot start '%s': %s", path, strerror(errno));
    free(argv);
    return (int)child;
}

/* ---- workers that others start ---- */

static volatile sig_atomic_t launcher;

static void pass_signal(int signal)
{
    int e = errno;
    if (launcher > 0)
        kill((pid_t)launcher, signal);
    errno = e;
}

static void wake(int signal)
{
    (void)signal; /* its arrival ends a sleep */
}

/* Reaps children that have ended. Returns 1 if the launcher was one, with its status in *status; -1 if a command that
 * was to start workers has failed; else 0. */
static int reap_children(int *status)
{
    for (;;) {
        pid_t pid = waitpid(-1, status, WNOHANG);
        if (pid <= 0)
            return pid < 0 && errno == ECHILD && launcher > 0;
        if (pid == launcher)
            return 1;
        if (!rnl_amudp_is_spawner(pid) || (WIFEXITED(*status) && WEXITSTATUS(*status) == 0))
            continue;
        fprintf(stderr, "AMUDP: the command that starts the workers failed (%s %d); ending the job\n",
                WIFEXITED(*status) ? "status" : "signal",
                WIFEXITED(*status) ? WEXITSTATUS(*status) : WTERMSIG(*status));
        return -1;
    }
}

/* Waits until the launcher has ended, or, if `file` is not NULL, until the launcher has written the file. Returns the
 * exit status of the job, or -1 if the file has been written. */
static int await_launcher(const char *file)
{
    const struct timespec pause = {.tv_nsec = file ? 2000000 : 200000000}; /* SIGCHLD ends it */
    struct stat st;
    int status = 0, ended, failed = 0;
    while ((ended = reap_children(&status)) != 1) {
        if (ended < 0) {
            failed = 1;
            kill((pid_t)launcher, SIGTERM);
        }
        if (file && stat(file, &st) == 0 && st.st_size > 0)
            return -1;
        nanosleep(&pause, NULL);
    }
    if (failed)
        return 1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void take_signals(void)
{
    static const int passed[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
    for (size_t i = 0; i < sizeof passed / sizeof passed[0]; i++) {
        struct sigaction act = {.sa_handler = pass_signal};
        sigaction(passed[i], &act, NULL);
    }
    struct sigaction act = {.sa_handler = wake, .sa_flags = SA_NOCLDSTOP};
    sigaction(SIGCHLD, &act, NULL);
}

/* Chooses an unpredictable name for the rendezvous file, which the launcher makes. Returns 0, or -1 on failure, which
 * is recorded. */
static int name_file(char *file, size_t room)
{
    const char *folder = getenv("TMPDIR");
    uint64_t number[2];
    if (getrandom(number, sizeof number, 0) != (ssize_t)sizeof number) {
        (void)rnl_amudp_fail(AM_ERR_RESOURCE, STARTUP, "there are no random numbers here");
        return -1;
    }
    if (!folder || access(folder, W_OK) < 0)
        folder = "/tmp";
    if (snprintf(file, room, "%s/amudp-key-%016llx%016llx", folder, (unsigned long long)number[0],
                 (unsigned long long)number[1]) < (int)room)
        return 0;
    (void)rnl_amudp_fail(AM_ERR_RESOURCE, STARTUP,
                         "the name of the folder for temporary files is too long: set TMPDIR to another");
    return -1;
}

static int with_spawner(int nproc, int argc, char **argv, amudp_spawnfn_t spawn)
{
    static char rendezvous[] = "--rendezvous", at[] = "--rendezvous-address";
    char file[256], where[sizeof file + 24], routed[24], depth[64];
    char *address = (char *)(uintptr_t)AMUDP_getenv_prefixed("MASTERIP"), *nothing[] = {NULL};
    if (address && *address == '\0')
        address = NULL;
    char *options[] = {rendezvous, file, address ? at : NULL, address, NULL};
    if (name_file(file, sizeof file) < 0)
        return AM_ERR_RESOURCE;
    take_signals();
    launcher = rnl_amudp_launch(nproc, options, nothing, 1);
    if (launcher < 0)
        return AM_ERR_RESOURCE;
    if (await_launcher(file) >= 0)
        return rnl_amudp_fail(AM_ERR_RESOURCE, STARTUP, "cannot listen for workers%s%s: the launcher has said why",
                              address ? " at MASTERIP, " : "", address ? address : "");
    const int ours = spawn == AMUDP_SPMDCustomSpawn; /* our own function records why it fails */
    snprintf(where, sizeof where, "RUNNEL_RENDEZVOUS=%s", file);
    snprintf(routed, sizeof routed, RNL_AMUDP_ROUTED "=%d",
             rnl_amudp_env_long(ours ? "CSPAWN_ROUTE_OUTPUT" : "ROUTE_OUTPUT", 0, 1, !ours) != 0);
    snprintf(depth, sizeof depth, RNL_AMUDP_WORKER "=%s", getenv(RNL_AMUDP_WORKER));
    char *extra[] = {where, routed, depth, NULL};
    int status = 1;
    if (!spawn(nproc, argc, argv, extra)) {
        fprintf(stderr, "AMUDP: the workers could not be started%s%s; ending the job\n", ours ? ": " : "",
                ours ? rnl_last_error()->text : "");
        kill((pid_t)launcher, SIGTERM);
        (void)await_launcher(NULL);
    } else {
        status = await_launcher(NULL);
    }
    exit(status); /* as AMUDP's master, which never returns */
}

/* Writes a list of hosts with commas between them: "a b,c;d" becomes "a,b,c,d". */
static void commas(char *to, size_t room, const char *from)
{
    size_t n = 0;
    for (; *from != '\0' && n + 1 < room; from++) {
        if (!isspace((unsigned char)*from) && !strchr(",;|", *from))
            to[n++] = *from;
        else if (n > 0 && to[n - 1] != ',')
            to[n++] = ',';
    }
    while (n > 0 && to[n - 1] == ',')
        n--;
    to[n] = '\0';
}

static int over_ssh(int nproc, char **argv)
{
    static char hosts[] = "--hosts";
    char list[4096], command[4096];
    const char *servers = AMUDP_getenv_prefixed("SSH_SERVERS");
    if (!servers || *servers == '\0')
        return rnl_amudp_fail(AM_ERR_RESOURCE, STARTUP, "SSH_SERVERS names no hosts: set it, or spawn with L");
    const char *ssh = AMUDP_getenv_prefixed("SSH_CMD");
    const char *more = AMUDP_getenv_prefixed("SSH_OPTIONS");
    if (snprintf(command, sizeof command, "%s %s", ssh && *ssh != '\0' ? ssh : "ssh", more ? more : "") >=
        (int)sizeof command)
        return rnl_amudp_fail(AM_ERR_RESOURCE, STARTUP, "SSH_OPTIONS is too long: put them into ssh_config");
    if (ssh || more)
        setenv("RUNNEL_SSH", command, 1);
    commas(list, sizeof list, servers);
    char *options[] = {hosts, list, NULL};
    (void)rnl_amudp_launch(nproc, options, argv, 0);
    return AM_ERR_RESOURCE;
}

int rnl_amudp_master(int *argc, char ***argv, int nproc, int depth, amudp_spawnfn_t spawn)
{
    static char *here[] = {NULL};
    if (nproc < 0 || (uint32_t)nproc > AMUDP_MAX_SPMDPROCS || depth < 0 || depth > AMUDP_MAX_NETWORKDEPTH)
        return rnl_amudp_fail(AM_ERR_BAD_ARG, STARTUP, "%d workers of depth %d cannot be", nproc, depth);
    if (rnl_amudp_env_probability("FAULT_RATE", STARTUP) < 0)
        return AM_ERR_BAD_ARG;
    if (!argc || !argv || *argc < 1)
        return rnl_amudp_fail(AM_ERR_BAD_ARG, STARTUP, "the master needs the arguments of main");
    AMX_SilentMode = !AMUDP_getenv_prefixed("VERBOSEENV");
    if (nproc == 0) {
        nproc = *argc > 1 ? atoi((*argv)[1]) : 0;
        if (nproc < 1)
            usage((*argv)[0], "the first argument has to say how many workers there are");
        shift(argc, argv);
    }
    if (!spawn && *argc > 1 && strlen((*argv)[1]) == 1) {
        spawn = rnl_amudp_spawn_named((*argv)[1]);
        if (spawn)
            shift(argc, argv);
    }
    if (!spawn) {
        const char *text = AMUDP_getenv_prefixed("SPAWNFN");
        spawn = rnl_amudp_spawn_named(text ? text : "S");
        if (!spawn)
            usage((*argv)[0], "SPAWNFN names no way of spawning");
    }
    char number[16];
    snprintf(number, sizeof number, "%d",
             depth > 0 ? depth : (int)rnl_amudp_env_long("NETWORKDEPTH", 1, AMUDP_MAX_NETWORKDEPTH, 128));
    setenv(RNL_AMUDP_WORKER, number, 1);
    if (spawn == AMUDP_SPMDLocalSpawn) {
        (void)rnl_amudp_launch(nproc, here, *argv, 0);
        return AM_ERR_RESOURCE;
    }
    if (spawn == AMUDP_SPMDSshSpawn)
        return over_ssh(nproc, *argv);
    return with_spawner(nproc, *argc, *argv, spawn);
}
