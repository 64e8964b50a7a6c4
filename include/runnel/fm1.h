/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fm1.h - Illinois Fast Messages 1.1 (Lauria, Pakin, Chien: "Efficient Layering for High Speed Communication: Fast
 * Messages 2.x", Table 1) on runnel.h. The names map to FM1_ symbols, since FM_extract has another signature in FM 2.x.
 * A source file includes this header or fm.h, not both. Errors are reported as fm.h describes. */
#ifndef RNL_FM1_H
#define RNL_FM1_H
#ifdef RNL_FM_H
#error "fm.h and fm1.h share the name FM_extract: include one of them in a file"
#endif

#if defined(__GNUC__)
#define FM_PUBLIC __attribute__((visibility("default")))
#else
#define FM_PUBLIC
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Handles a message; runs once the whole message has arrived. buffer is valid until the handler returns. The handler
 * may send; a send that finds no room is queued, within a budget. */
typedef void FM1_handler(void *buffer, unsigned size);
#define FM_ANY_ID (~0ul)
enum { FM1_MAX = 1 << 20 }; /* bytes of the longest FM_send, since the receiver needs the message in one piece */

/* Sends four words to a handler. Outside handlers the call waits for room and runs handlers meanwhile; inside a handler
 * it queues the message. */
FM_PUBLIC void FM1_send_4(unsigned long dest, unsigned long handler, int i0, int i1, int i2, int i3);
/* Sends size bytes to a handler, under the same rules. buf belongs to the caller again on return. */
FM_PUBLIC void FM1_send(unsigned long dest, unsigned long handler, const void *buf, unsigned long size);
/* Runs the handlers of all messages that had arrived at the call, and returns their number. Must not be called inside a
 * handler. */
FM_PUBLIC int FM1_extract(void);
/* Registers a handler under id, or FM_ANY_ID for the next free one from 1 up, and replaces the one that had this id.
 * Returns the id. */
FM_PUBLIC unsigned long FM1_register_handler(unsigned long id, FM1_handler *);
/* Sets one parameter. The keys and arguments are those of fm.h, with the same numbers, and FM1_POLL_ON_SEND. */
FM_PUBLIC void FM1_set_parameter(int key, ...);
enum {
    FM_QUIET = 1,
    FM_MAX_HANDLERS,
    FM_GRM_NAME,
    FM_GRM_PORT,
    FM_CM_PORT,
    FM_KEY_NAME,
    FM_THREADS = 100,
    FM_ERROR_HANDLER,
    FM1_POLL_ON_SEND = 200 /* int: 1 = every send outside handlers also extracts; 0 (default) = only a send that must
                              wait */
};
typedef void FM1_error(int status, unsigned long peer, const char *sentence);
/* Joins the job that started this process, or else becomes a job of one rank. */
FM_PUBLIC void FM1_initialize(void);
/* Leaves the job. Collective: runs handlers, and returns when all peers have finished or died and every message has
 * been handled. A rank that exits without calling FM_finalize is dead to its peers; what it had not taken in is lost,
 * and the peers' error handlers are called. */
FM_PUBLIC void FM1_finalize(void);
/* Returns the rank of this process, 0 to FM_numnodes - 1. */
FM_PUBLIC unsigned long FM1_nodeid(void);
/* Returns the number of ranks in the job. */
FM_PUBLIC unsigned long FM1_numnodes(void);

#define FM_send_4           FM1_send_4
#define FM_send             FM1_send
#define FM_extract          FM1_extract
#define FM_handler          FM1_handler
#define FM_error            FM1_error
#define FM_register_handler FM1_register_handler
#define FM_set_parameter    FM1_set_parameter
#define FM_initialize       FM1_initialize
#define FM_finalize         FM1_finalize
#define FM_nodeid           (FM1_nodeid())
#define FM_numnodes         (FM1_numnodes())

#ifdef __cplusplus
}
#endif
#endif
