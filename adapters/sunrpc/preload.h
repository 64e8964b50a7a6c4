/* SPDX-License-Identifier: BSD-3-Clause
 *
 * preload.h - what lies behind the functions that this library takes the place of, what the user asked for, and what he
 * is told. */
#ifndef RNL_RPC_PRELOAD_H
#define RNL_RPC_PRELOAD_H

#include <rpc/rpc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

/* The symbol is visible: the program's own calls, and those of libtirpc, come here. */
#define RNL_RPC_INTERPOSED __attribute__((visibility("default")))

/* Looks up what follows this library in the program, once. */
void *rnl_rpc_next(_Atomic(void *) *cache, const char *name);
/* Looks up a name in libtirpc, which a program may have loaded itself, once. */
void *rnl_rpc_next_tirpc(_Atomic(void *) *cache, const char *name);

/* Defines real_NAME(), which returns the function that the interposed NAME takes the place of. `find` is one of the two
 * above. Object and function pointers have the same form wherever there is a dlsym. */
#define RNL_RPC_REAL(name, find)                 \
    static __typeof__(name) *real_##name(void)   \
    {                                            \
        static _Atomic(void *) cache;            \
        void *at = find(&cache, #name);          \
        __typeof__(name) *function;              \
        memcpy(&function, &at, sizeof function); \
        return function;                         \
    }

/* Functions of libtirpc that this library calls. It is not linked, so that programs without RPC do not load it. */
struct rnl_rpc_tirpc {
    __typeof__(authnone_create) *authnone_create;
    __typeof__(svc_reg) *svc_reg;
    __typeof__(svc_fd_create) *svc_fd_create;
    __typeof__(svc_vc_create) *svc_vc_create;
    __typeof__(svc_sendreply) *svc_sendreply;
    __typeof__(svcerr_decode) *svcerr_decode;
    __typeof__(svcerr_noproc) *svcerr_noproc;
    __typeof__(_seterr_reply) *seterr_reply;
    __typeof__(xdr_callmsg) *xdr_callmsg;
    __typeof__(xdr_replymsg) *xdr_replymsg;
    __typeof__(xdr_opaque_auth) *xdr_opaque_auth;
    __typeof__(xdr_u_int) *xdr_u_int;
};
/* NULL if no libtirpc is loaded, or one that lacks one of them. */
const struct rnl_rpc_tirpc *rnl_rpc_tirpc(void);
/* One function of libtirpc, or NULL. */
void *rnl_rpc_tirpc_symbol(const char *name);

/* The words of RUNNEL_RPC, separated by commas. */
struct rnl_rpc_settings {
    bool off;     /* do nothing */
    bool explain; /* say what is upgraded, and why something is not */
    bool strict;  /* servers refuse an AUTH_SYS uid that is not the calling process's */
    bool now;     /* upgrade before the first call, not before the third */
};
const struct rnl_rpc_settings *rnl_rpc_settings(void);

/* Writes a line to standard error if RUNNEL_RPC=explain asks for it. Keeps errno. */
void rnl_rpc_explain(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
