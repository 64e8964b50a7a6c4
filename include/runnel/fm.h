/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fm.h - Illinois Fast Messages 2.x (Lauria, Pakin, Chien: "Efficient Layering for High Speed Communication: Fast
 * Messages 2.x", Table 2) on runnel.h. A process has one endpoint. A source file includes this header or fm1.h, not
 * both.
 *
 * FM has no means of returning an error, so errors go to the handler that FM_ERROR_HANDLER sets. The default handler
 * explains the error on standard error and ends the program with status 70. After a peer's death in a job that was run
 * with --keep-going the default explains it once and the program continues. */
#ifndef RNL_FM_H
#define RNL_FM_H
#ifdef RNL_FM1_H
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

typedef struct FM_stream FM_stream;
/* Handles a message as one logical thread. The handler runs inside FM_extract, FM_wait, FM_finalize or a send that
 * waits, as soon as the first packet of the message has arrived. A handler that is suspended has a stack of 64 KiB, so
 * large arrays belong into static or allocated memory. Returns FM_CONTINUE, or FM_QUIT to make the running extract
 * return. */
typedef int FM_handler(FM_stream *, unsigned sender);
enum { FM_QUIT = 0, FM_CONTINUE = 1 };
#define FM_ANY_ID (~0ul)

/* Takes in packets until maxbytes of payload are taken in (rounded up to a packet), a handler returned FM_QUIT, or all
 * that had arrived at the call is taken in. Returns the bytes taken in, at most INT_MAX; 0 means that nothing was
 * found, and repeated calls that find nothing give the processor away. FM_extract(0) takes in credit and deaths only.
 * Never blocks. Must not be called inside a handler. */
FM_PUBLIC int FM_extract(unsigned long maxbytes);
/* In a handler: copies the next `bytes` bytes of the message to buffer, in pieces of any size, and suspends the handler
 * until they have arrived. If the sender dies first or gives the message up, the handler is never resumed: its stack is
 * released without unwinding, the message that it had open is given up, and the error handler is called for a death.
 * Receiving past the end is an error; if the error handler returns, the buffer is filled with zeros. */
FM_PUBLIC void FM_receive(void *buffer, FM_stream *, unsigned long bytes);

/* Opens a message. length is an upper bound on the bytes that follow. Only one message can be open to each peer.
 * Outside handlers the call waits for room and runs handlers meanwhile. With FM_THREADS it also waits while another
 * thread or a suspended handler has a message to that peer open; without, it returns NULL while a suspended handler
 * has: extract, then try again. An open message that the caller must end itself is an error. Inside a handler the call
 * returns NULL when the whole bound cannot be reserved now (no room, or a message to that peer is open): do not spin
 * there, but send later from the program. It also returns NULL after an error, if the error handler returns. For a dead
 * peer the error handler is called once; later messages to it are discarded. */
FM_PUBLIC FM_stream *FM_begin_message(unsigned long dest, unsigned long length, unsigned long handler);
/* FM_send_piece appends any number of bytes at any alignment, any number of times; FM_end_message completes the
 * message. The buffer belongs to the caller again after FM_end_message. Neither function takes a NULL stream. */
FM_PUBLIC void FM_send_piece(FM_stream *, const void *, unsigned long bytes);
FM_PUBLIC void FM_end_message(FM_stream *);

/* Registers a handler under id, or FM_ANY_ID for the next free one from 1 up, and replaces the one that had this id.
 * Returns the id. Messages carry ids, never addresses. A message that arrives before its handler is registered
 * waits. */
FM_PUBLIC unsigned long FM_register_handler(unsigned long id, FM_handler *);
/* Redistributes receive credit: reclaims what peers were granted and do not use. */
FM_PUBLIC void FM_reallocate_credit(void);
/* Extension: waits until something was taken in or timeout_us has passed (negative: no limit); an idle wait uses no
 * CPU. Returns bytes as FM_extract does. */
FM_PUBLIC int FM_wait(long timeout_us);
/* Extension: returns a level-triggered descriptor for poll or epoll, readable while FM_extract would find something. */
FM_PUBLIC int FM_fd(void);

/* The parameters, with the type of their one argument. They are set before FM_initialize, except FM_ERROR_HANDLER and
 * FM_QUIET. */
enum {
    FM_QUIET = 1,     /* int: 1 = the default error handler prints nothing when the program continues */
    FM_MAX_HANDLERS,  /* int: default 1024, at most 65536 */
    FM_GRM_NAME,      /* const char *: accepted and unused, for the launcher replaces FM's resource manager */
    FM_GRM_PORT,      /* int: accepted and unused */
    FM_CM_PORT,       /* int: accepted and unused */
    FM_KEY_NAME,      /* const char *: name that `runnel info` shows */
    FM_THREADS = 100, /* int: 1 = any thread may call */
    FM_ERROR_HANDLER  /* FM_error *: NULL = the default handler */
};
/* Handles an error. status is an enum rnl_status; peer is the rank that the error is about, or FM_ANY_ID. */
typedef void FM_error(int status, unsigned long peer, const char *sentence);
/* Sets one of the parameters above to its argument. A wrong parameter or argument goes to the error handler. */
FM_PUBLIC void FM_set_parameter(int key, ...);
/* Joins the job that started this process, or else becomes a job of one rank. */
FM_PUBLIC void FM_initialize(void);
/* Leaves the job. Collective: runs handlers, and returns when all peers have finished or died and every message has
 * been handled. A rank that exits without calling FM_finalize is dead to its peers; what it had not taken in is lost,
 * and the peers' error handlers are called. */
FM_PUBLIC void FM_finalize(void);

/* Returns the rank of this process, 0 to FM_numnodes - 1. Valid from FM_initialize on; after FM_finalize this function
 * and the next return the values of the last job. */
FM_PUBLIC unsigned long FM_nodeid_of_endpoint(void);
/* Returns the number of ranks in the job. */
FM_PUBLIC unsigned long FM_numnodes_of_endpoint(void);
#define FM_nodeid   (FM_nodeid_of_endpoint())
#define FM_numnodes (FM_numnodes_of_endpoint())

#ifdef __cplusplus
}
#endif
#endif
