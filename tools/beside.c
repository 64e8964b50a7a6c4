/* SPDX-License-Identifier: BSD-3-Clause
 *
 * beside.c - finds a library that belongs to this command (tool.h). */
#include "tool.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool rnl_tool_find(const char *in_tree, const char *installed, char path[PATH_MAX])
{
    char self[PATH_MAX], near[PATH_MAX * 2];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = '\0';
    snprintf(near, sizeof near, "%s/../%s", self, in_tree);
    if (slash && realpath(near, path))
        return true;
    snprintf(near, sizeof near, "%s/%s/%s", self, RNL_LIBDIR_FROM_BIN, installed);
    if (slash && realpath(near, path))
        return true;
    snprintf(near, sizeof near, "%s/%s", RNL_LIBDIR, installed);
    return realpath(near, path) != NULL;
}
