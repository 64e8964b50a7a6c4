/* SPDX-License-Identifier: BSD-3-Clause
 *
 * preload.c - the functions behind the interposed ones, RUNNEL_RPC, and what is said on standard error. Everything is
 * looked up when it is first needed: programs that never use RPC only pay for loading this library. */
#include "preload.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct rnl_rpc_tirpc tirpc;
static bool have_tirpc;
static struct rnl_rpc_settings settings;

/* A program may have loaded libtirpc itself (dlopen), where RTLD_NEXT does not look. */
void *rnl_rpc_tirpc_symbol(const char *name)
{
    void *at = dlsym(RTLD_NEXT, name);
    if (!at) {
        void *library = dlopen("libtirpc.so.3", RTLD_LAZY | RTLD_NOLOAD);
        if (library) {
            at = dlsym(library, name);
            dlclose(library); /* the program keeps it */
        }
    }
    return at;
}

static void read_settings(void)
{
    const char *at = secure_getenv("RUNNEL_RPC");
    const struct {
        const char *word;
        bool *set;
    } words[] = {
        {"off", &settings.off}, {"explain", &settings.explain}, {"strict", &settings.strict}, {"now", &settings.now}};
    while (at && *at) {
        size_t n = strcspn(at, ",");
        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
            if (strlen(words[i].word) == n && memcmp(words[i].word, at, n) == 0)
                *words[i].set = true;
        at += n + (at[n] == ',');
    }
}

const struct rnl_rpc_settings *rnl_rpc_settings(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_settings);
    return &settings;
}

void *rnl_rpc_next(_Atomic(void *) *cache, const char *name)
{
    void *at = atomic_load_explicit(cache, memory_order_relaxed);
    if (!at) {
        at = dlsym(RTLD_NEXT, name);
        atomic_store_explicit(cache, at, memory_order_relaxed);
    }
    return at;
}

void *rnl_rpc_next_tirpc(_Atomic(void *) *cache, const char *name)
{
    void *at = atomic_load_explicit(cache, memory_order_relaxed);
    if (!at) {
        at = rnl_rpc_tirpc_symbol(name);
        atomic_store_explicit(cache, at, memory_order_relaxed);
    }
    return at;
}

#define FIND(name, symbol) ((*(void **)(void *)&tirpc.name = rnl_rpc_tirpc_symbol(symbol)) != NULL)

static void find_tirpc(void)
{
    have_tirpc = FIND(authnone_create, "authnone_create") && FIND(svc_reg, "svc_reg") &&
                 FIND(svc_fd_create, "svc_fd_create") && FIND(svc_vc_create, "svc_vc_create") &&
                 FIND(svc_sendreply, "svc_sendreply") && FIND(svcerr_decode, "svcerr_decode") &&
                 FIND(svcerr_noproc, "svcerr_noproc") && FIND(seterr_reply, "_seterr_reply") &&
                 FIND(xdr_callmsg, "xdr_callmsg") && FIND(xdr_replymsg, "xdr_replymsg") &&
                 FIND(xdr_opaque_auth, "xdr_opaque_auth") && FIND(xdr_u_int, "xdr_u_int");
}

const struct rnl_rpc_tirpc *rnl_rpc_tirpc(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_tirpc);
    return have_tirpc ? &tirpc : NULL;
}

void rnl_rpc_explain(const char *format, ...)
{
    char line[400];
    int why = errno;
    va_list args;
    if (!rnl_rpc_settings()->explain)
        return;
    int n = snprintf(line, sizeof line, "runnel rpc: %s[%d]: ", program_invocation_short_name, (int)getpid());
    size_t at = n < 0 ? 0 : (size_t)n < sizeof line / 2 ? (size_t)n : sizeof line / 2;
    va_start(args, format);
    n = vsnprintf(line + at, sizeof line - at - 1, format, args);
    va_end(args);
    at = n < 0 ? at : at + (size_t)n < sizeof line - 2 ? at + (size_t)n : sizeof line - 2;
    line[at] = '\n';
    (void)!write(STDERR_FILENO, line, at + 1);
    errno = why;
}
