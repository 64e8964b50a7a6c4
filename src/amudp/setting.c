/* SPDX-License-Identifier: BSD-3-Clause
 *
 * setting.c - AMUDP's settings are variables of the environment, each under three names: GASNET_X, AMUDP_X and X, of
 * which the first that is set counts. (GASNet compiles AMUDP with its own prefix; a program that was linked with that
 * one is to find its settings here, too.) And the environment of the master, which workers can ask for. */
#include "amudp/amudp_in.h"

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
    for (int i = 0; name != NULL && i < 3; i++) {
        if (snprintf(whole, sizeof whole, "%s%s", prefixes[i], name) >= (int)sizeof whole)
            return NULL;
        char *value = getenv(whole);
        if (value != NULL)
            return value;
    }
    return NULL;
}

long rnl_amudp_setting(const char *name, long least, long most, long otherwise)
{
    const char *text = AMUDP_getenv_prefixed(name);
    char *end;
    if (text == NULL || *text == '\0')
        return otherwise;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (errno == 0 && *end == '\0' && n >= least && n <= most)
        return n;
    rnl_amudp_say("%s is '%.40s', not a number from %ld to %ld: taken as %ld", name, text, least, most, otherwise);
    return otherwise;
}

double rnl_amudp_share(const char *name, const char *function)
{
    const char *text = AMUDP_getenv_prefixed(name);
    char *end;
    if (text == NULL || *text == '\0')
        return 0;
    double share = strtod(text, &end);
    if (end != text && *end == '\0' && share >= 0 && share < 1)
        return share;
    (void)rnl_amudp_wrong(AM_ERR_BAD_ARG, function,
                          "%s is '%.40s': set it to the share of packets to lose, from 0 to below 1, such as 0.01",
                          name, text);
    return -1;
}

int rnl_amudp_keep_environment(const char *text, size_t bytes)
{
    size_t n = 1, at = 0;
    for (char **e = environ; text == NULL && *e != NULL; e++)
        n += strlen(*e) + 1;
    if (text != NULL)
        n = bytes + 2;
    char *copy = malloc(n);
    if (copy == NULL)
        return -1;
    if (text != NULL) {
        memcpy(copy, text, bytes);
        copy[bytes] = copy[bytes + 1] = '\0';
    } else {
        for (char **e = environ; *e != NULL; e++) {
            size_t m = strlen(*e) + 1;
            memcpy(copy + at, *e, m);
            at += m;
        }
        copy[at] = '\0';
    }
    free(master);
    master = copy;
    return 0;
}

const char *AMUDP_SPMDgetenvMaster(const char *name)
{
    size_t n = name != NULL ? strlen(name) : 0;
    if (!rnl_amudp_spmd.started || n == 0)
        return NULL;
    for (const char *p = master; *p != '\0'; p += strlen(p) + 1)
        if (strncmp(p, name, n) == 0 && p[n] == '=')
            return p + n + 1;
    return NULL;
}

const char *AMUDP_check_env_prefix(const char *prefix)
{
    if (!rnl_amudp_spmd.started || prefix == NULL)
        return NULL;
    for (const char *p = master; *p != '\0'; p += strlen(p) + 1)
        if (strncmp(p, prefix, strlen(prefix)) == 0)
            return p;
    return NULL;
}
