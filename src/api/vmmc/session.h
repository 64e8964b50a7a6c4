/* SPDX-License-Identifier: BSD-3-Clause
 *
 * session.h - the inside of VMMC. An export is an offer of a window, an import is an import of a window with a range of
 * addresses that nobody can use but VMMC_SendMsg, which looks up where in the window they are. VMMC's functions name no
 * session, so this state belongs to the process and not to an endpoint; iface.c registers it.
 *
 * session.c begins and ends it, export.c is the receiver's side, import.c the sender's; both know state.c only. */
#ifndef RNL_API_VMMC_SESSION_H
#define RNL_API_VMMC_SESSION_H

#include "base/iface.h"
#include "runnel/vmmc.h"
#include "stream/stream.h"

enum rnl_vmmc_counter { RNL_VMMC_EXPORTED, RNL_VMMC_IMPORTED, RNL_VMMC_NOTIFIED, RNL_VMMC_COUNTERS };

/* What VMMC_Alloc returned. */
struct rnl_vmmc_area {
    struct rnl_vmmc_area *next;
    unsigned char *at;
    size_t bytes;
    rnl_window *window;
};

struct rnl_vmmc_export {
    struct rnl_vmmc_export *next;
    uint32_t id;
    unsigned importers; /* in `only`; 0 = all */
    unsigned char *at;
    size_t bytes;
    rnl_window *window;
    struct rnl_vmmc_area *area; /* that the window is of, or NULL: the window is the export's own */
    VMMC_MsgHandler *handler;
    VMMC_Importer only[];
};

struct rnl_vmmc_import {
    uintptr_t proxy;
    size_t bytes; /* of the buffer; `mapped` are those of the range */
    size_t mapped;
    rnl_import *import;
};

/* An import that was requested and is not there yet. */
struct rnl_vmmc_request {
    struct rnl_vmmc_request *next;
    rnl_import *import;
    VMMC_NodeID node;
    VMMC_Process process;
    void **proxy;
    int64_t *nbytes;
};

struct rnl_vmmc {
    struct rnl_endpoint *ep; /* NULL: no session */
    struct rnl_vmmc_area *areas;
    struct rnl_vmmc_export *exports;
    struct rnl_vmmc_import *import; /* sorted by address */
    struct rnl_vmmc_import last;    /* the one that was sent to last; bytes 0 = none */
    struct rnl_vmmc_request *requests;
    uint64_t *count; /* by enum rnl_vmmc_counter, in the page of `ep` */
    size_t imports, room;
    uint32_t blocked; /* by VMMC_BlockNotifications */
    bool own;         /* the endpoint is the session's */
    bool in_handler;
};
extern struct rnl_vmmc rnl_vmmc __attribute__((visibility("hidden")));

extern const struct rnl_iface rnl_vmmc_iface;

/* 0, RNL_ERR_CLOSED or RNL_ERR_FORKED. */
int rnl_vmmc_enter(const char *function);
size_t rnl_vmmc_page(void);
/* Whether that process has this node. Returns 0, RNL_ERR_PEER_DEAD or RNL_ERR_RANK. */
int rnl_vmmc_is_there(VMMC_NodeID node, VMMC_Process process);
/* Completes the requests that have been answered. */
void rnl_vmmc_drain(void);
/* Frees all that the session keeps. windows: also gives back windows and imports, which else the endpoint does or has
 * done. */
void rnl_vmmc_free(bool windows);
void rnl_vmmc_free_exports(bool windows);
void rnl_vmmc_free_imports(bool windows);

#endif
