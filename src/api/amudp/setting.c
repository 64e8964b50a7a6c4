/* SPDX-License-Identifier: BSD-3-Clause
 *
 * setting.c - AMUDP's settings, and the environment of the master, which workers can ask for. A setting X is the first
 * of the environment variables GASNET_X, AMUDP_X and X that is set. GASNet compiles AMUDP with its own prefix, and
 * programs linked with that AMUDP find their settings here, too. */
#include "api/amudp/amudp_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;
static char *master; /* NAME=VALUE strings, each with its 0; then an empty one */

char *AMUDP_getenv_prefixed(const char *name)
{
    static const char *const prefixes[] = {"GASNET_", "AMUDP_", ""};
    char whole[128];
    for (int i = 0; name && i < 3; i++) {
        if (snprintf(whole, sizeof whole, "%s%s", prefixes[i], name) >= (int)sizeof whole)
            return NULL;
        char *value = getenv(whole);
        if (value)
            return value;
    }
    return NULL;
}

long rnl_amudp_env_long(const char *name, long least, long most, long otherwise)
{
    const char *text = AMUDP_getenv_prefixed(name);
    char *end;
    if (!text || *text == '\0')
        return otherwise;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (errno == 0 && *end == '\0' && n >= least && n <= most)
        return n;
    rnl_amudp_print("%s is '%.40s', not a number from %ld to %ld: taken as %ld", name, text, least, most, otherwise);
    return otherwise;
}

double rnl_amudp_env_probability(const char *name, const char *function)
{
    const char *text = AMUDP_getenv_prefixed(name);
    char *end;
    if (!text || *text == '\0')
        return 0;
    double share = strtod(text, &end);
    if (end != text && *end == '\0' && share >= 0 && share < 1)
        return share;
    (void)rnl_amudp_fail(AM_ERR_BAD_ARG, function,
                         "%s is '%.40s': set it to the share of packets to lose, from 0 to below 1, such as 0.01", name,
                         text);
    return -1;
}

int rnl_amudp_save_environment(const char *text, size_t bytes)
{
    char *copy, *at;
    for (char **e = environ; !text && *e; e++)
        bytes += strlen(*e) + 1;
    if (!(copy = at = calloc(1, bytes + 2)))
        return -1;
    if (text)
        memcpy(copy, text, bytes);
    for (char **e = environ; !text && *e; e++)
        at = stpcpy(at, *e) + 1;
    free(master);
    master = copy;
    return 0;
}

const char *AMUDP_SPMDgetenvMaster(const char *name)
{
    size_t n = name ? strlen(name) : 0;
    if (!rnl_amudp_spmd.started || n == 0)
        return NULL;
    for (const char *p = master; *p != '\0'; p += strlen(p) + 1)
        if (strncmp(p, name, n) == 0 && p[n] == '=')
            return p + n + 1;
    return NULL;
}

const char *AMUDP_check_env_prefix(const char *prefix)
{
    if (!rnl_amudp_spmd.started || !prefix)
        return NULL;
    for (const char *p = master; *p != '\0'; p += strlen(p) + 1)
        if (strncmp(p, prefix, strlen(prefix)) == 0)
            return p;
    return NULL;
}
