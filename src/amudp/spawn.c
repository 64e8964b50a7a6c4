/* SPDX-License-Identifier: BSD-3-Clause
 *
 * spawn.c - the spawn functions that programs may call from their own: local processes, and a command. (The master
 * itself starts local ones and those behind ssh by becoming the launcher, master.c.) What they start finds its place in
 * the job by extra_env. */
#include "amudp/place.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static pid_t *spawners;
static size_t spawner_count;

int rnl_amudp_is_spawner(pid_t pid)
{
    for (size_t i = 0; i < spawner_count; i++)
        if (spawners[i] == pid)
            return 1;
    return 0;
}

/* A child that will execute `path`; failing to is told by its status. 0 or -1. */
static int start(const char *path, char **argv, char **extra_env)
{
    pid_t *more = realloc(spawners, (spawner_count + 1) * sizeof *more);
    if (more == NULL)
        return -1;
    spawners = more;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        for (char **e = extra_env; e != NULL && *e != NULL; e++)
            if (putenv(*e) != 0)
                _exit(127);
        execvp(path, argv);
        fprintf(stderr, "AMUDP: cannot start '%s': %s\n", path, strerror(errno));
        _exit(127);
    }
    if (pid < 0)
        return -1;
    spawners[spawner_count++] = pid;
    return 0;
}

int AMUDP_SPMDLocalSpawn(int nproc, int argc, char **argv, char **extra_env)
{
    (void)argc;
    for (int i = 0; i < nproc; i++) {
        if (start(argv[0], argv, extra_env) < 0) {
            (void)rnl_amudp_wrong(AM_ERR_RESOURCE, __func__, "worker %d of %d: %s", i + 1, nproc, strerror(errno));
            return 0;
        }
    }
    return 1;
}

int AMUDP_SPMDSshSpawn(int nproc, int argc, char **argv, char **extra_env)
{
    (void)nproc;
    (void)argc;
    (void)argv;
    (void)extra_env;
    (void)rnl_amudp_wrong(AM_ERR_RESOURCE, __func__,
                          "give it to AMUDP_SPMDStartup, which starts workers by ssh itself");
    return 0;
}

/* ---- a command ---- */

struct text {
    char *at;
    size_t n, room;
    int lost;
};

static void put(struct text *t, const char *from, size_t n)
{
    if (t->room - t->n <= n) {
        size_t room = (t->n + n + 1) * 2;
        char *more = realloc(t->at, room);
        if (more == NULL) {
            t->lost = 1;
            return;
        }
        t->at = more;
        t->room = room;
    }
    memcpy(t->at + t->n, from, n);
    t->n += n;
    t->at[t->n] = '\0';
}

/* One word for the shell, whatever is in it. */
static void put_quoted(struct text *t, const char *word)
{
    put(t, "'", 1);
    for (; *word != '\0'; word++) {
        if (*word == '\'')
            put(t, "'\\''", 4);
        else
            put(t, word, 1);
    }
    put(t, "' ", 2);
}

/* What each worker has to execute: the variables it needs, and the program. */
static void put_command(struct text *t, char **argv, char **extra_env)
{
    const char *env = AMUDP_getenv_prefixed("ENV_CMD");
    put(t, env != NULL ? env : "env", strlen(env != NULL ? env : "env"));
    put(t, " ", 1);
    for (char **e = extra_env; e != NULL && *e != NULL; e++)
        put_quoted(t, *e);
    for (char **a = argv; *a != NULL; a++)
        put_quoted(t, *a);
}

int AMUDP_SPMDCustomSpawn(int nproc, int argc, char **argv, char **extra_env)
{
    static char sh[] = "sh", dash_c[] = "-c";
    const char *command = AMUDP_getenv_prefixed("CSPAWN_CMD"), *servers = AMUDP_getenv_prefixed("CSPAWN_SERVERS");
    char number[16], folder[4096];
    struct text t = {.at = NULL};
    (void)argc;
    if (command == NULL || *command == '\0') {
        (void)rnl_amudp_wrong(AM_ERR_RESOURCE, __func__,
                              "CSPAWN_CMD says nothing: set it to a command that executes %%C %%N times");
        return 0;
    }
    snprintf(number, sizeof number, "%d", nproc);
    for (const char *c = command; *c != '\0'; c++) {
        if (*c != '%' || c[1] == '\0') {
            put(&t, c, 1);
            continue;
        }
        switch (*++c) {
        case 'N':
            put(&t, number, strlen(number));
            break;
        case 'C':
            put_command(&t, argv, extra_env);
            break;
        case 'D':
            put_quoted(&t, getcwd(folder, sizeof folder) != NULL ? folder : ".");
            break;
        case 'P':
            put_quoted(&t, argv[0]);
            break;
        case 'M':
            put(&t, servers != NULL ? servers : "", servers != NULL ? strlen(servers) : 0);
            break;
        default:
            put(&t, c, 1);
        }
    }
    char *words[] = {sh, dash_c, t.at, NULL};
    int ok = !t.lost && start("/bin/sh", words, NULL) == 0;
    if (!ok)
        (void)rnl_amudp_wrong(AM_ERR_RESOURCE, __func__, "cannot start the command in CSPAWN_CMD: %s", strerror(errno));
    free(t.at);
    return ok;
}
