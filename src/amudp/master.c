/* SPDX-License-Identifier: BSD-3-Clause
 *
 * master.c - what the process that the user starts does: finds out how many workers, and how they are started, and
 * becomes `runnel run`, which is console, undertaker and exit status of the job. Only where somebody else starts the
 * workers (a custom spawner, or a function of the program) it stays, beside a launcher whose ranks are stand-ins
 * (place.h). */
#include "amudp/door.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
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
    for (int i = 0; text != NULL && AMUDP_Spawnfn_Desc[i].abbrev != '\0'; i++)
        if (toupper((unsigned char)text[0]) == AMUDP_Spawnfn_Desc[i].abbrev)
            return AMUDP_Spawnfn_Desc[i].fnptr;
    return NULL;
}

/* Takes the first argument away. */
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
    exit(1); /* as AMUDP: there is nobody who could go on */
}

int rnl_amudp_find_tool(const char *name, char *path, size_t room)
{
    const char *all = getenv("PATH");
    while (all != NULL && *all != '\0') {
        size_t n = strcspn(all, ":");
        if (n > 0 && snprintf(path, room, "%.*s/%s", (int)n, all, name) < (int)room && access(path, X_OK) == 0)
            return 0;
        all += n + (all[n] == ':');
    }
    if (snprintf(path, room, "%s/%s", RNL_BINDIR, name) < (int)room && access(path, X_OK) == 0)
        return 0;
    (void)rnl_amudp_wrong(AM_ERR_RESOURCE, STARTUP,
                          "there is no command '%s' in PATH, nor in %s: install it with the library", name, RNL_BINDIR);
    return -1;
}

static char **words(int nproc, char **options, char **program, char *count, size_t room)
{
    size_t n = 7;
    for (char **o = options; o != NULL && *o != NULL; o++)
        n++;
    for (char **p = program; *p != NULL; p++)
        n++;
    char **argv = calloc(n, sizeof *argv), **at = argv;
    if (argv == NULL)
        return NULL;
    static char runnel[] = "runnel", run[] = "run", dash_n[] = "-n", transport[] = "--transport", udp[] = "udp";
    snprintf(count, room, "%d", nproc);
    *at++ = runnel;
    *at++ = run;
    *at++ = dash_n;
    *at++ = count;
    if (rnl_amudp_share("FAULT_RATE", STARTUP) > 0) { /* there have to be packets to lose */
        *at++ = transport;
        *at++ = udp;
    }
    for (char **o = options; o != NULL && *o != NULL; o++)
        *at++ = *o;
    for (char **p = program; *p != NULL; p++)
        *at++ = *p;
    return argv;
}

int rnl_amudp_launch(int nproc, char **options, char **program, int stay)
{
    char path[4096], count[16];
    if (rnl_amudp_find_tool("runnel", path, sizeof path) < 0)
        return -1;
    char **argv = words(nproc, options, program, count, sizeof count);
    if (argv == NULL) {
        (void)rnl_amudp_wrong(AM_ERR_RESOURCE, STARTUP, "no memory for a command line");
        return -1;
    }
    if (rnl_amudp_setting("SPAWN_VERBOSE", 0, 1, 0))
        rnl_amudp_say("%s run -n %d ... %s", path, nproc, program[0]);
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
        (void)rnl_amudp_wrong(AM_ERR_RESOURCE, STARTUP, "cannot start '%s': %s", path, strerror(errno));
    free(argv);
    return (int)child;
}

/* ---- workers that others start ---- */

static volatile sig_atomic_t launcher, signalled;

static void pass_signal(int signal)
{
    int e = errno;
    if (launcher > 0)
        kill((pid_t)launcher, signal);
    signalled = signal;
    errno = e;
}

static void wake(int signal)
{
    (void)signal; /* ends a poll */
}

/* A child that has ended. 1 = it was the launcher: *status; -1 = a command that was to start workers, and failed. */
static int look_at_children(int *status)
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

static int has_to_stop(void)
{
    int status;
    return signalled != 0 || look_at_children(&status) != 0;
}

static int await_launcher(struct rnl_door *door)
{
    const char *trouble = NULL;
    int status = 0, ended;
    while ((ended = look_at_children(&status)) != 1) {
        if (ended < 0)
            kill((pid_t)launcher, SIGTERM);
        rnl_door_turn(door, 200, -1); /* the ways to the hosts come by here */
        if (trouble == NULL && (trouble = rnl_amudp_gather_trouble()) != NULL) {
            fprintf(stderr, "AMUDP: %s; ending the job\n", trouble);
            kill((pid_t)launcher, SIGTERM);
        }
    }
    if (trouble != NULL)
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

/* `runnel run` on the hosts that the workers have come from. 0 or -1. */
static int launch_stand_ins(int nproc, char *hosts, const char *tool, struct rnl_amudp_place *place)
{
    static char stand_in[] = "--stand-in", dash_hosts[] = "--hosts";
    char *program[] = {(char *)(uintptr_t)tool, stand_in, place->file, place->name, NULL};
    char *options[] = {dash_hosts, hosts, NULL}, ssh[4096 + sizeof place->file + 32];
    if (hosts[0] != '\0') {
        snprintf(ssh, sizeof ssh, "'%s' --reach '%s'", tool, place->file);
        setenv("RUNNEL_SSH", ssh, 1);
    }
    launcher = rnl_amudp_launch(nproc, hosts[0] != '\0' ? options : NULL, program, 1);
    return launcher < 0 ? -1 : 0;
}

static int with_spawner(int nproc, int argc, char **argv, amudp_spawnfn_t spawn)
{
    struct rnl_amudp_place place;
    struct rnl_door door;
    char tool[4096], where[sizeof place.file + 160], depth[64];
    int routed = rnl_amudp_setting(spawn == AMUDP_SPMDCustomSpawn ? "CSPAWN_ROUTE_OUTPUT" : "ROUTE_OUTPUT", 0, 1,
                                   spawn != AMUDP_SPMDCustomSpawn) != 0;
    if (rnl_amudp_find_tool("amudprun", tool, sizeof tool) < 0 || rnl_amudp_gather_open(&door, &place) < 0)
        return AM_ERR_RESOURCE;
    take_signals();
    snprintf(where, sizeof where, RNL_AMUDP_STAND_IN "=%d:%d:%s:%s", nproc, routed, place.name, place.file);
    snprintf(depth, sizeof depth, RNL_AMUDP_WORKER "=%s", getenv(RNL_AMUDP_WORKER));
    char *extra[] = {where, depth, NULL}, *hosts = NULL;
    int status = 1;
    int ours = spawn == AMUDP_SPMDCustomSpawn; /* it says why */
    if (!spawn(nproc, argc, argv, extra))
        fprintf(stderr, "AMUDP: the workers could not be started%s%s; ending the job\n", ours ? ": " : "",
                ours ? rnl_last_error()->text : "");
    else
        hosts = rnl_amudp_gather_workers(&door, &place, nproc, has_to_stop);
    if (hosts != NULL && launch_stand_ins(nproc, hosts, tool, &place) == 0)
        status = await_launcher(&door);
    else if (signalled != 0)
        status = 128 + signalled;
    free(hosts);
    unlink(place.file);
    exit(status); /* as AMUDP's master, which never returns; the porters see it end */
}

/* "a b,c;d" becomes "a,b,c,d". */
static void commas(char *to, size_t room, const char *from)
{
    size_t n = 0;
    for (; *from != '\0' && n + 1 < room; from++) {
        if (!isspace((unsigned char)*from) && strchr(",;|", *from) == NULL)
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
    if (servers == NULL || *servers == '\0')
        return rnl_amudp_wrong(AM_ERR_RESOURCE, STARTUP, "SSH_SERVERS names no hosts: set it, or spawn with L");
    const char *ssh = AMUDP_getenv_prefixed("SSH_CMD");
    const char *more = AMUDP_getenv_prefixed("SSH_OPTIONS");
    if (snprintf(command, sizeof command, "%s %s", ssh != NULL && *ssh != '\0' ? ssh : "ssh",
                 more != NULL ? more : "") >= (int)sizeof command)
        return rnl_amudp_wrong(AM_ERR_RESOURCE, STARTUP, "SSH_OPTIONS is too long: put them into ssh_config");
    if (ssh != NULL || more != NULL)
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
        return rnl_amudp_wrong(AM_ERR_BAD_ARG, STARTUP, "%d workers of depth %d cannot be", nproc, depth);
    if (rnl_amudp_share("FAULT_RATE", STARTUP) < 0)
        return AM_ERR_BAD_ARG;
    if (argc == NULL || argv == NULL || *argc < 1)
        return rnl_amudp_wrong(AM_ERR_BAD_ARG, STARTUP, "the master needs the arguments of main");
    AMX_SilentMode = AMUDP_getenv_prefixed("VERBOSEENV") == NULL;
    if (nproc == 0) {
        nproc = *argc > 1 ? atoi((*argv)[1]) : 0;
        if (nproc < 1)
            usage((*argv)[0], "the first argument has to say how many workers there are");
        shift(argc, argv);
    }
    if (spawn == NULL && *argc > 1 && strlen((*argv)[1]) == 1) {
        spawn = rnl_amudp_spawn_named((*argv)[1]);
        if (spawn != NULL)
            shift(argc, argv);
    }
    if (spawn == NULL) {
        const char *text = AMUDP_getenv_prefixed("SPAWNFN");
        spawn = rnl_amudp_spawn_named(text != NULL ? text : "S");
        if (spawn == NULL)
            usage((*argv)[0], "SPAWNFN names no way of spawning");
    }
    char number[16];
    snprintf(number, sizeof number, "%d",
             depth > 0 ? depth : (int)rnl_amudp_setting("NETWORKDEPTH", 1, AMUDP_MAX_NETWORKDEPTH, 128));
    setenv(RNL_AMUDP_WORKER, number, 1);
    if (spawn == AMUDP_SPMDLocalSpawn) {
        (void)rnl_amudp_launch(nproc, here, *argv, 0);
        return AM_ERR_RESOURCE;
    }
    if (spawn == AMUDP_SPMDSshSpawn)
        return over_ssh(nproc, *argv);
    return with_spawner(nproc, *argc, *argv, spawn);
}
