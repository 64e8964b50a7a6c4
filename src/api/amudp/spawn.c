/* SPDX-License-Identifier: BSD-3-Clause
 *
 * spawn.c - the spawn functions that programs may call from their own: local processes, and a command. (The master
 * itself starts local ones and those behind ssh by becoming the launcher, master.c.) What they start finds its place in
 * the job by extra_env. */
#include "api/amudp/amudp_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static pid_t *spawners;
static size_t spawner_count;

bool rnl_amudp_is_spawner(pid_t pid)
{
    for (size_t i = 0; i < spawner_count; i++)
        if (spawners[i] == pid)
            return true;
    return false;
}

/* Starts a child that executes `path`; its exit status is 127 if that fails. Returns 0, or -1 without a child. */
static int start(const char *path, char **argv, char **extra_env)
{
    pid_t *more = realloc(spawners, (spawner_count + 1) * sizeof *more);
    if (!more)
        return -1;
    spawners = more;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        for (char **e = extra_env; e && *e; e++)
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
            (void)rnl_amudp_fail(AM_ERR_RESOURCE, __func__, "worker %d of %d: %s", i + 1, nproc, strerror(errno));
            return 0;
        }
    }
    return 1;
}

int AMUDP_SPMDSshSpawn(int nproc, int argc, char **argv, char **extra_env)
{
    (void)nproc, (void)argc, (void)argv, (void)extra_env;
    (void)rnl_amudp_fail(AM_ERR_RESOURCE, __func__, "give it to AMUDP_SPMDStartup, which starts workers by ssh itself");
    return 0;
}

/* ---- a command ---- */

/* Appends a word, quoted for the shell. */
static void put_quoted(FILE *t, const char *word)
{
    fputc('\'', t);
    for (; *word != '\0'; word++) {
        if (*word == '\'')
            fputs("'\\'", t);
        fputc(*word, t);
    }
    fputs("' ", t);
}

/* What each worker has to execute: the variables it needs, and the program. */
static void put_command(FILE *t, char **argv, char **extra_env)
{
    const char *env = AMUDP_getenv_prefixed("ENV_CMD");
    fprintf(t, "%s ", env ? env : "env");
    for (char **e = extra_env; e && *e; e++)
        put_quoted(t, *e);
    for (char **a = argv; *a; a++)
        put_quoted(t, *a);
}

int AMUDP_SPMDCustomSpawn(int nproc, int argc, char **argv, char **extra_env)
{
    static char sh[] = "sh", dash_c[] = "-c";
    const char *command = AMUDP_getenv_prefixed("CSPAWN_CMD"), *servers = AMUDP_getenv_prefixed("CSPAWN_SERVERS");
    char folder[4096], *text = NULL;
    size_t bytes;
    (void)argc;
    if (!command || *command == '\0') {
        (void)rnl_amudp_fail(AM_ERR_RESOURCE, __func__,
                             "CSPAWN_CMD says nothing: set it to a command that executes %%C %%N times");
        return 0;
    }
    FILE *t = open_memstream(&text, &bytes);
    for (const char *c = command; t && *c != '\0'; c++) {
        switch (*c == '%' && c[1] != '\0' ? *++c : '\0') {
        case 'N':
            fprintf(t, "%d", nproc);
            break;
        case 'C':
            put_command(t, argv, extra_env);
            break;
        case 'D':
            put_quoted(t, getcwd(folder, sizeof folder) ? folder : ".");
            break;
        case 'P':
            put_quoted(t, argv[0]);
            break;
        case 'M':
            fputs(servers ? servers : "", t);
            break;
        default:
            fputc(*c, t);
        }
    }
    int ok = t && !ferror(t);
    ok = t && fclose(t) == 0 && ok;
    char *words[] = {sh, dash_c, text, NULL};
    ok = ok && start("/bin/sh", words, NULL) == 0;
    if (!ok)
        (void)rnl_amudp_fail(AM_ERR_RESOURCE, __func__, "cannot start the command in CSPAWN_CMD: %s", strerror(errno));
    free(text);
    return ok;
}
