/* SPDX-License-Identifier: BSD-3-Clause
 *
 * vmmc.h - virtual memory-mapped communication: the model of Dubnicki, Bilas, Li and Philbin, with the calls of
 * Princeton's SHRIMP library under the prefix VMMC_.
 *
 * A process exports memory as a receive buffer, under a number. Another process imports it and gets a proxy address: an
 * address that names the buffer and cannot be read or written. VMMC_SendMsg copies bytes from any memory to a proxy
 * address, and they land in the receive buffer at the same offset. There is no receive: a receiver looks at its memory,
 * or is notified.
 *
 * A process is named by its node and its process number. The node is its rank in the job; with an endpoint alone
 * (runnel/meet.h), the number of the peer. The process number tells apart those that have had that node one after the
 * other, since a rank can be started again and the number of a peer is used again; 0 stands for whichever is there now.
 *
 * A process has one session at a time, between VMMC_Init and VMMC_Exit; its calls are made by one thread. Messages
 * between processes of one host land without the receiver's help, if the buffer is direct (see VMMC_ExportRecvBuf). All
 * others land in its calls: a loop that looks at memory calls VMMC_Poll.
 *
 * Functions return 0 or a positive count, or a negative status; rnl_last_error() then has a sentence. A child process
 * made by fork has no session: what was exported is a private copy there, and calls return RNL_ERR_FORKED. */
#ifndef RNL_VMMC_H
#define RNL_VMMC_H

#include <runnel/window.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t VMMC_NodeID;
typedef uint64_t VMMC_Process;
typedef struct VMMC_Importer {
    VMMC_NodeID node;
    VMMC_Process process;
} VMMC_Importer;

/* ---- the session ---- */

/* Begins the session on endpoint ep, which stays the program's; NULL: on the endpoint of the job, which this call opens
 * and VMMC_Exit closes. Returns 0, RNL_ERR_CONTEXT (there is a session), or an error of rnl_open. */
RNL_PUBLIC RNL_CHECK int VMMC_Init(rnl_endpoint *ep);
/* Ends it: takes back all exports and imports, without waiting for importers. Closes an endpoint that VMMC_Init has
 * opened, which is collective (rnl_close). Returns 0, RNL_ERR_CLOSED (there is no session), RNL_ERR_CONTEXT (in a
 * handler; the session stays), RNL_ERR_FORKED, or an error of rnl_close. */
RNL_PUBLIC int VMMC_Exit(void);
/* Returns the endpoint, for what this interface does not have: deaths, messages, rnl_quiet. NULL: there is no session.
 */
RNL_PUBLIC rnl_endpoint *VMMC_Endpoint(void);
/* Return this process's node, and how many there are; 0 without a session. */
RNL_PUBLIC VMMC_NodeID VMMC_Node(void);
RNL_PUBLIC unsigned VMMC_Nodes(void);
/* Tells the process number of the process that has this node now. It stays 0 while nothing is known of that process.
 * Returns 0, RNL_ERR_RANK, RNL_ERR_CLOSED, RNL_ERR_FORKED. */
RNL_PUBLIC RNL_CHECK int VMMC_ProcessOf(VMMC_NodeID node, VMMC_Process *process);

/* Takes in what has come: messages land, notifications run, requested imports are completed. Never blocks. Returns
 * 0, or an error of rnl_extract. */
RNL_PUBLIC int VMMC_Poll(void);
/* The same, but waits until something has come, at most timeout_ns (negative: no limit). What lands directly is seen by
 * nobody but who looks at the memory, and does not end the wait. Returns 0, RNL_TIMED_OUT, or an error of rnl_wait. */
RNL_PUBLIC int VMMC_Wait(int64_t timeout_ns);

/* ---- receive buffers ---- */

/* Returns at *at zeroed memory of nbytes bytes, rounded up to whole pages, that can be exported without being moved.
 * RNL_ERR_ARG (0 bytes), _CLOSED, _FORKED, _NO_MEMORY, _SYSTEM. */
RNL_PUBLIC RNL_CHECK int VMMC_Alloc(size_t nbytes, void **at);
/* Frees it. Returns 0, RNL_ERR_ARG (not of VMMC_Alloc), RNL_BUSY (it is exported), RNL_ERR_CLOSED, RNL_ERR_FORKED. */
RNL_PUBLIC int VMMC_Free(void *at);

/* Function that an export names: nbytes bytes of a message from this node have landed at `at`, and their sender asked
 * for a notification. It runs in calls of this interface and of the endpoint. Notifications are blocked while it
 * runs. It may send, and must not wait, import with a timeout, or end the session. */
typedef void VMMC_MsgHandler(uint32_t rbufid, void *at, size_t nbytes, VMMC_NodeID node);

enum {
    VMMC_DIRECT = RNL_OFFER_DIRECT,  /* processes of other users may map the buffer, too */
    VMMC_CARRIED = RNL_OFFER_CARRIED /* nobody maps it: each message is checked and copied by this process's calls */
};
typedef struct VMMC_ExportOptions {
    uint32_t size; /* sizeof(struct VMMC_ExportOptions); fields are added at the end */
    uint32_t flags;
    const VMMC_Importer *only;   /* the processes that may import it; copied. NULL = all that `who` lets in */
    unsigned importers;          /* how many these are */
    const struct rnl_admit *who; /* as in struct rnl_offer */
} VMMC_ExportOptions;

/* Exports nbytes bytes at buf as receive buffer number rbufid; both are whole pages, since protection is by page. The
 * number is unique in the process, and buffers do not overlap. The memory stays where it is and keeps its content.
 *
 * Whole memory of VMMC_Alloc and anonymous private memory (static data, malloc) is mapped by importers of this host and
 * user: messages land directly. Other threads must not write to it during the call. Other memory, and parts of what
 * VMMC_Alloc returned, is exported carried.
 *
 * handler: NULL = messages land all the same, and nobody is notified. options: NULL = everybody in the job, and
 * processes of the same user, may import it.
 *
 * Returns 0, RNL_ERR_ARG (not whole pages; an overlap; options), RNL_ERR_REFUSED (the number is taken),
 * RNL_ERR_UNSUPPORTED (VMMC_DIRECT, of memory that cannot be mapped by others), _CLOSED, _FORKED, _NO_MEMORY,
 * _SYSTEM. */
RNL_PUBLIC RNL_CHECK int VMMC_ExportRecvBuf(void *buf, size_t nbytes, uint32_t rbufid, VMMC_MsgHandler *handler,
                                            const VMMC_ExportOptions *options);
/* Takes a buffer back: when it returns 0, no message reaches the memory any more. Importers are told, and waited for up
 * to timeout_ns (negative: no limit); then the memory is moved to other pages, at the same address. Returns 0,
 * RNL_ERR_ARG (there is no such buffer), or an error of rnl_window_revoke. */
RNL_PUBLIC int VMMC_UnexportRecvBuf(uint32_t rbufid, int64_t timeout_ns);
/* The same, and waits for nobody. */
RNL_PUBLIC int VMMC_UnexportRecvBufNow(uint32_t rbufid);
/* Stores up to `most` importers of the buffer, and returns how many there are: an approximation, since they come and
 * go. RNL_ERR_ARG (there is no such buffer), _CLOSED, _FORKED. */
RNL_PUBLIC RNL_CHECK int VMMC_Importers(uint32_t rbufid, VMMC_Importer *importers, unsigned most);

/* ---- proxy addresses ---- */

/* Imports buffer rbufid of that process, and waits until it is exported, at most timeout_ns (negative: no limit). The
 * nbytes bytes from *proxy on name it. A buffer can be imported several times. Returns 0, RNL_TIMED_OUT (not exported),
 * RNL_ERR_REFUSED (exported, but not to this process), RNL_ERR_PEER_DEAD (that process is gone), _RANK, _CLOSED, or
 * another error of rnl_window_import. */
RNL_PUBLIC RNL_CHECK int VMMC_ImportRecvBuf(VMMC_NodeID node, VMMC_Process process, uint32_t rbufid, void **proxy,
                                            size_t *nbytes, int64_t timeout_ns);
/* Begins the same, and returns at once. *nbytes is 0 until a later call of the program (VMMC_Poll, VMMC_Wait) sets
 * it to the size, and *proxy, or to a negative status. Both belong to the session until then. */
RNL_PUBLIC RNL_CHECK int VMMC_ImportRecvBufReq(VMMC_NodeID node, VMMC_Process process, uint32_t rbufid, void **proxy,
                                               int64_t *nbytes);
/* Gives up a request whose *nbytes is still 0. Returns 0, or RNL_ERR_ARG: there is none. */
RNL_PUBLIC int VMMC_CancelImport(int64_t *nbytes);
/* Ends an import; what was sent before still lands. proxy is where it begins. Returns 0, RNL_ERR_ARG (nothing is
 * imported there), _CLOSED, _FORKED. */
RNL_PUBLIC int VMMC_UnimportRecvBuf(void *proxy);

/* ---- messages ---- */

/* Sends nbytes bytes from src, any memory, to proxy address dest; all of them lie in one buffer. Returns when src
 * may be used again, which says nothing of the bytes' arrival (rnl_quiet does). Messages to one process land in the
 * order in which they were sent; within a message only this is sure: its aligned last 8 bytes become visible last.
 * Outside handlers it may wait for room, and run handlers meanwhile. Returns 0, RNL_ERR_ARG (dest names no buffer),
 * RNL_ERR_PAST_END (beyond its end: nothing was sent), RNL_ERR_REVOKED, RNL_ERR_PEER_DEAD, RNL_NO_ROOM (in
 * handlers), _CLOSED, _FORKED. */
RNL_PUBLIC RNL_CHECK int VMMC_SendMsg(const void *src, void *dest, size_t nbytes);
/* The same; when the bytes have landed, the receiver's handler for that buffer runs, if there is one. */
RNL_PUBLIC RNL_CHECK int VMMC_SendMsgWithNotify(const void *src, void *dest, size_t nbytes);
/* Sends asynchronously: returns at once. *status is 1 while src and *status belong to the session; a later call sets
 * it to 0, or to a negative status. flags: 0, or RNL_PUT_NOTIFY for a notification. After an error *status is as it
 * was. RNL_NO_ROOM: too many are under way. */
RNL_PUBLIC RNL_CHECK int VMMC_SendMsgReq(const void *src, void *dest, size_t nbytes, unsigned flags, int32_t *status);

/* Blocks notifications of all buffers of this process, which then wait; they do not get lost. Calls count. */
RNL_PUBLIC void VMMC_BlockNotifications(void);
/* Takes back one VMMC_BlockNotifications. Returns 1: notifications are not blocked now; 0: others block them still;
 * RNL_ERR_CONTEXT: in a handler, which this cannot unblock; RNL_ERR_CLOSED, RNL_ERR_FORKED. */
RNL_PUBLIC int VMMC_UnblockNotifications(void);

#ifdef __cplusplus
}
#endif
#endif
