/* SPDX-License-Identifier: BSD-3-Clause
 *
 * remote_lib.c - librunnel is loaded when it is first needed, and whether it could be of use is found out before that.
 * */
#include "remote_lib.h"

#include "remote.h"

#include <dlfcn.h>
#include <pthread.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct rnl_rpc_runnel runnel;
static bool have_runnel;

#define FIND(name) ((*(void **)(void *)&runnel.name = dlsym(library, "rnl_" #name)) != NULL)

static void load(void)
{
    void *library = dlopen("librunnel.so.0", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    have_runnel = library && FIND(open) && FIND(size) && FIND(serve) && FIND(reach) && FIND(leave) && FIND(peer) &&
                  FIND(peer_cred) && FIND(on_death) && FIND(handler_stream) && FIND(length) && FIND(receive) &&
                  FIND(reply) && FIND(begin) && FIND(piece) && FIND(end) && FIND(abort) && FIND(flush) &&
                  FIND(extract) && FIND(arm) && FIND(room) && FIND(last_error);
}

const struct rnl_rpc_runnel *rnl_rpc_runnel(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return have_runnel ? &runnel : NULL;
}

/* A daemon that was given its key by an option runs already; any other finds it in one of these places. */
static bool has_key(void)
{
    char path[4096];
    const struct passwd *own = geteuid() == 0 ? NULL : getpwuid(geteuid());
    if (access("/etc/runnel/key", F_OK) == 0)
        return true;
    if (!own || !own->pw_dir)
        return false;
    snprintf(path, sizeof path, "%s/.config/runnel/key", own->pw_dir);
    return access(path, F_OK) == 0;
}

static bool has_daemon(void)
{
    char line[512], own[80], node[80];
    bool found = false;
    const char *name = secure_getenv("RUNNEL_DAEMON");
    snprintf(own, sizeof own, "@runnel-daemon-%.40s%s%u", name ? name : "", name ? "-" : "", (unsigned)geteuid());
    snprintf(node, sizeof node, "@runnel-daemon-%.40s%snode", name ? name : "", name ? "-" : "");
    FILE *f = fopen("/proc/net/unix", "re");
    while (f && !found && fgets(line, sizeof line, f))
        found = strstr(line, own) || strstr(line, node);
    if (f)
        fclose(f);
    return found;
}

const char *rnl_rpc_remote_lacks(void)
{
    if (!has_key() && !has_daemon())
        return "this host has no key for other hosts (see `runnel key`)";
    return NULL;
}
