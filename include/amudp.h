/* SPDX-License-Identifier: BSD-3-Clause
 *
 * amudp.h - Active Messages 2 with the interface of AMUDP 3.21, on Runnel: a program written for AMUDP is compiled
 * against this header, or linked against this library as it was compiled, and runs. Written anew from the interface.
 *
 *     cc -DAMUDP -DAMUDP_NDEBUG=1 program.c -lamudp
 *
 * What differs from AMUDP is that the library keeps AM-2's promises: translations may be added, changed and taken away
 * at any time, AM_SetExpectedResources is a hint that may be repeated, arguments and states are checked in both
 * configurations, and messages between processes of one host go through shared memory. amudp(3) has the list.
 *
 * All calls return AM_OK or an AM_ERR_ code; with AMX_VerboseErrors a sentence goes to standard error. One thread at a
 * time, unless the bundle is AM_PAR. Handlers run inside AM_Poll, AM_WaitSema, the request calls and AMUDP_SPMDBarrier,
 * and nowhere else. Read in this order: requests and replies, polling, handlers; translations; bundles and endpoints.
 */
#ifndef AMUDP_H
#define AMUDP_H

#include <netinet/in.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <amudp_const.h>

#if defined(__GNUC__)
#define AMUDP_PUBLIC             __attribute__((visibility("default")))
#define AMUDP_PRINTF(text, args) __attribute__((__format__(__printf__, text, args)))
#else
#define AMUDP_PUBLIC
#define AMUDP_PRINTF(text, args)
#endif

#ifdef __cplusplus
#define AMUDP_BEGIN_EXTERNC extern "C" {
#define AMUDP_END_EXTERNC   }
#define AMUDP_EXTERNC       extern "C"
#else
#define AMUDP_BEGIN_EXTERNC
#define AMUDP_END_EXTERNC
#define AMUDP_EXTERNC extern
#endif

AMUDP_BEGIN_EXTERNC

typedef uint64_t tag_t;
typedef uint8_t handler_t;
typedef uint32_t amudp_node_t;   /* an index of a translation table */
typedef struct sockaddr_in en_t; /* the name of an endpoint. Treat it as a whole: sin_zero is part of it */
typedef uint64_t amx_tick_t;     /* nanoseconds */
typedef int op_t;                /* AM_REQUEST_M ... AM_REPLY_XFER_M */
#define AMUDP_BADHANDLERVAL(h) (0)

typedef struct amudp_eb *eb_t; /* a bundle of endpoints */
typedef struct amudp_ep *ep_t; /* an endpoint */

typedef enum { amudp_Short = 0, amudp_Medium = 1, amudp_Long = 2, amudp_NumCategories = 3 } amudp_category_t;

/* A handler, whatever its arguments: (void *token, int32_t ...), or of bulk messages (void *token, void *buf,
 * size_t bytes, int32_t ...); number 0, which gets returned messages: (int status, op_t opcode, void *token). buf is
 * 8-byte aligned; that of a medium message may be written to and is valid until the handler returns. */
#if defined(__GNUC__) && !defined(__cplusplus)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#endif
typedef void (*amudp_handler_fn_t)();
#if defined(__GNUC__) && !defined(__cplusplus)
#pragma GCC diagnostic pop
#endif
#define amx_handler_fn_t amudp_handler_fn_t

/* Why a message came back: the status of handler 0. */
#define EBADARGS       1  /* the request or reply was not a proper one */
#define EBADENTRY      2  /* that entry of the translation table is empty */
#define EBADTAG        3  /* the endpoint does not take this tag */
#define EBADHANDLER    4  /* nobody set that handler there */
#define EBADSEGOFF     5  /* the transfer begins outside the segment */
#define EBADLENGTH     6  /* the transfer ends outside the segment */
#define EBADENDPOINT   7  /* there is no such endpoint (any more) */
#define ECONGESTION    8  /* the endpoint was reached, but could not take it */
#define EUNREACHABLE   9  /* its process is dead or out of reach */
#define EREPLYREJECTED 10 /* the endpoint that had asked does not take the reply */

/* Sends numargs int32_t, and for I and Xfer nbytes from `from`, to a handler of the endpoint in entry `dest` of ep's
 * table; Xfer puts the bytes at dest_offset of its segment. Polls first. Waits for room, running handlers meanwhile;
 * with `async` returns AM_ERR_IN_USE instead. `from` is the caller's again on return. To ep itself: the handler runs
 * inside the call. Not inside the handler of a reply. What cannot be delivered comes back to handler 0. AM_ERR_BAD_ARG,
 * AM_ERR_RESOURCE, AM_ERR_NOT_INIT. */
AMUDP_PUBLIC int AMUDP_Request(ep_t ep, amudp_node_t dest, handler_t handler, int numargs, ...);
AMUDP_PUBLIC int AMUDP_RequestI(ep_t ep, amudp_node_t dest, handler_t handler, void *from, size_t nbytes, int numargs,
                                ...);
AMUDP_PUBLIC int AMUDP_RequestXfer(ep_t ep, amudp_node_t dest, handler_t handler, void *from, size_t nbytes,
                                   uintptr_t dest_offset, int async, int numargs, ...);

/* Answers the request that `token` stands for: once, inside its handler. Never waits. AM_ERR_RESOURCE: not in the
 * handler of a request, or a second time. AM_ERR_BAD_ARG. */
AMUDP_PUBLIC int AMUDP_Reply(void *token, handler_t handler, int numargs, ...);
AMUDP_PUBLIC int AMUDP_ReplyI(void *token, handler_t handler, void *from, size_t nbytes, int numargs, ...);
AMUDP_PUBLIC int AMUDP_ReplyXfer(void *token, handler_t handler, void *from, size_t nbytes, uintptr_t dest_offset,
                                 int numargs, ...);

/* The same six with their arguments in a va_list, numargs of int. */
AMUDP_PUBLIC int AMUDP_RequestVA(ep_t ep, amudp_node_t dest, handler_t handler, int numargs, va_list args);
AMUDP_PUBLIC int AMUDP_RequestIVA(ep_t ep, amudp_node_t dest, handler_t handler, void *from, size_t nbytes, int numargs,
                                  va_list args);
AMUDP_PUBLIC int AMUDP_RequestXferVA(ep_t ep, amudp_node_t dest, handler_t handler, void *from, size_t nbytes,
                                     uintptr_t dest_offset, int async, int numargs, va_list args);
AMUDP_PUBLIC int AMUDP_ReplyVA(void *token, handler_t handler, int numargs, va_list args);
AMUDP_PUBLIC int AMUDP_ReplyIVA(void *token, handler_t handler, void *from, size_t nbytes, int numargs, va_list args);
AMUDP_PUBLIC int AMUDP_ReplyXferVA(void *token, handler_t handler, void *from, size_t nbytes, uintptr_t dest_offset,
                                   int numargs, va_list args);

/* ---- names ---- */

/* With AMUDP_COEXIST_WITH_AM these names are left to another library: a program's own calls go to AMUDP_Poll and so on.
 */
#ifdef AMUDP_COEXIST_WITH_AM
#define AM_Terminate            AMUDP_Terminate
#define AM_AllocateBundle       AMUDP_AllocateBundle
#define AM_AllocateEndpoint     AMUDP_AllocateEndpoint
#define AM_FreeBundle           AMUDP_FreeBundle
#define AM_FreeEndpoint         AMUDP_FreeEndpoint
#define AM_MoveEndpoint         AMUDP_MoveEndpoint
#define AM_GetSeg               AMUDP_GetSeg
#define AM_SetSeg               AMUDP_SetSeg
#define AM_MaxSegLength         AMUDP_MaxSegLength
#define AM_GetTag               AMUDP_GetTag
#define AM_SetTag               AMUDP_SetTag
#define AM_Map                  AMUDP_Map
#define AM_MapAny               AMUDP_MapAny
#define AM_UnMap                AMUDP_UnMap
#define AM_GetNumTranslations   AMUDP_GetNumTranslations
#define AM_SetNumTranslations   AMUDP_SetNumTranslations
#define AM_GetTranslationInuse  AMUDP_GetTranslationInuse
#define AM_GetTranslationTag    AMUDP_GetTranslationTag
#define AM_GetTranslationName   AMUDP_GetTranslationName
#define AM_SetExpectedResources AMUDP_SetExpectedResources
#define _AM_SetHandler          AMUDP_SetHandler
#define _AM_SetHandlerAny       AMUDP_SetHandlerAny
#define AM_GetEventMask         AMUDP_GetEventMask
#define AM_SetEventMask         AMUDP_SetEventMask
#define AM_WaitSema             AMUDP_WaitSema
#define AM_GetSourceEndpoint    AMUDP_GetSourceEndpoint
#define AM_GetDestEndpoint      AMUDP_GetDestEndpoint
#define AM_GetMsgTag            AMUDP_GetMsgTag
#define AM_Poll                 AMUDP_Poll
#endif
#undef AM_Init
#define AM_Init AMX_CONCAT(AM_Init_AMUDP, AMUDP_DEBUG_CONFIG)

/* ---- polling and waiting ---- */

/* Takes in what has arrived for the endpoints of the bundle and runs its handlers. Never blocks. Not inside a handler:
 * AM_ERR_RESOURCE. */
AMUDP_PUBLIC int AM_Poll(eb_t bundle);
/* Sleeps until an event of the bundle's mask, then polls once. AM_ERR_RESOURCE: the mask is AM_NOEVENTS, so nothing
 * would end it. The mask stays. */
AMUDP_PUBLIC int AM_WaitSema(eb_t bundle);
/* Reads the mask. */
AMUDP_PUBLIC int AM_GetEventMask(eb_t bundle, int *mask);
/* AM_NOEVENTS or AM_NOTEMPTY: a message waits or arrives. */
AMUDP_PUBLIC int AM_SetEventMask(eb_t bundle, int mask);

/* ---- handlers and tokens ---- */

/* Sets a handler, at any time; replaces. Any: takes the first free number from 1 up. Number 0 gets returned messages;
 * until it is set, one of those prints why and aborts. */
AMUDP_PUBLIC int _AM_SetHandler(ep_t ep, handler_t handler, amudp_handler_fn_t function);
AMUDP_PUBLIC int _AM_SetHandlerAny(ep_t ep, handler_t *handler, amudp_handler_fn_t function);
#define AM_SetHandler(ep, handler, function)    _AM_SetHandler((ep), (handler), (amudp_handler_fn_t)(function))
#define AM_SetHandlerAny(ep, handler, function) _AM_SetHandlerAny((ep), (handler), (amudp_handler_fn_t)(function))

/* Who sent, by the name that our table has; of a returned message, who was to take it. */
AMUDP_PUBLIC int AM_GetSourceEndpoint(void *token, en_t *name);
/* The endpoint whose handler this is. */
AMUDP_PUBLIC int AM_GetDestEndpoint(void *token, ep_t *ep);
/* The tag that let a request in; of a reply, or what is returned, the endpoint's own. */
AMUDP_PUBLIC int AM_GetMsgTag(void *token, tag_t *tag);
/* Who sent: its index in our table. AM_ERR_BAD_ARG: it stands in none. */
AMUDP_PUBLIC int AMUDP_GetSourceId(void *token, int *source);
/* Of a message in its handler, also of a returned one. The getters above, too, work only there. */
AMUDP_PUBLIC int AMUDP_GetTokenInfo(void *token, handler_t *handler, amudp_category_t *category, int *is_request);

/* ---- the translation table ---- */

/* Binds an index, or the first free one, to an endpoint: requests to it carry the tag. AM_ERR_RESOURCE: the index is in
 * use, or the table is full. */
AMUDP_PUBLIC int AM_Map(ep_t ep, int index, en_t name, tag_t tag);
AMUDP_PUBLIC int AM_MapAny(ep_t ep, int *index, en_t name, tag_t tag);
/* Frees an index; what was sent by it goes on. AM_ERR_BAD_ARG: it was not in use. */
AMUDP_PUBLIC int AM_UnMap(ep_t ep, int index);
/* AM_OK = in use. */
AMUDP_PUBLIC int AM_GetTranslationInuse(ep_t ep, int index);
/* The tag, and the name, of an index in use, as they were given. */
AMUDP_PUBLIC int AM_GetTranslationTag(ep_t ep, int index, tag_t *tag);
/* Extension: another tag for an index in use. */
AMUDP_PUBLIC int AMUDP_SetTranslationTag(ep_t ep, int index, tag_t tag);
AMUDP_PUBLIC int AM_GetTranslationName(ep_t ep, int index, en_t *name);
/* Entries of the table, used or not. */
AMUDP_PUBLIC int AM_GetNumTranslations(ep_t ep, int *n);
/* Room for n entries, AMUDP_INIT_NUMTRANSLATIONS at first. AM_ERR_RESOURCE: above the maximum, or an entry that would
 * go is in use. */
AMUDP_PUBLIC int AM_SetNumTranslations(ep_t ep, int n);
/* A hint, and may be repeated. n_outstanding, 1 to 1024: requests to one endpoint that may be unanswered at a time. */
AMUDP_PUBLIC int AM_SetExpectedResources(ep_t ep, int n_endpoints, int n_outstanding);
/* 1 = the two names are of one endpoint. */
AMUDP_PUBLIC int AMUDP_enEqual(en_t a, en_t b);

/* ---- bundles and endpoints ---- */

/* Counted: as many AM_Terminate. The last of those frees all bundles. */
AMUDP_PUBLIC int AM_Init(void);
AMUDP_PUBLIC int AM_Terminate(void);
/* type: AM_SEQ or AM_PAR. */
AMUDP_PUBLIC int AM_AllocateBundle(int type, eb_t *bundle);
/* With all its endpoints. */
AMUDP_PUBLIC int AM_FreeBundle(eb_t bundle);
/* A new endpoint takes no messages (tag AM_NONE) until it is given a tag. */
AMUDP_PUBLIC int AM_AllocateEndpoint(eb_t bundle, ep_t *ep, en_t *name);
/* Requests to it come back to their senders from now on (EBADENDPOINT). Not inside a handler. */
AMUDP_PUBLIC int AM_FreeEndpoint(ep_t ep);
/* Its name, table and messages go with it. */
AMUDP_PUBLIC int AM_MoveEndpoint(ep_t ep, eb_t from, eb_t to);
/* AM_NONE at first. */
AMUDP_PUBLIC int AM_GetTag(ep_t ep, tag_t *tag);
/* AM_ALL takes each message, AM_NONE none, any other those that carry it. */
AMUDP_PUBLIC int AM_SetTag(ep_t ep, tag_t tag);
/* As it was set; NULL and 0 at first. */
AMUDP_PUBLIC int AM_GetSeg(ep_t ep, void **at, uintptr_t *nbytes);
/* Where Xfers may write. at NULL with (uintptr_t)-1 is all of memory: offsets are then addresses. */
AMUDP_PUBLIC int AM_SetSeg(ep_t ep, void *at, uintptr_t nbytes);
/* The longest that can be set. */
AMUDP_PUBLIC int AM_MaxSegLength(uintptr_t *nbytes);

/* ---- statistics ---- */

typedef struct {
    uint64_t RequestsSent[amudp_NumCategories];
    uint64_t RepliesSent[amudp_NumCategories];
    uint64_t
        RequestsRetransmitted[amudp_NumCategories]; /* because of AMUDP_FAULT_RATE; below, the network's are packets */
    uint64_t RepliesRetransmitted[amudp_NumCategories];
    uint64_t RepliesSquashed[amudp_NumCategories];
    uint64_t RequestsReceived[amudp_NumCategories];
    uint64_t RepliesReceived[amudp_NumCategories];
    uint64_t ReturnedMessages;
    uint64_t OutOfOrderRequests; /* always 0: messages of one sender arrive in order */
    uint64_t OutOfOrderReplies;
    amx_tick_t RequestMinLatency; /* latencies are not counted: nothing is sent that tells when a request was handled */
    amx_tick_t RequestMaxLatency;
    amx_tick_t RequestSumLatency;
    uint64_t RequestDataBytesSent[amudp_NumCategories]; /* arguments and data */
    uint64_t ReplyDataBytesSent[amudp_NumCategories];
    uint64_t RequestTotalBytesSent[amudp_NumCategories]; /* and headers */
    uint64_t ReplyTotalBytesSent[amudp_NumCategories];
    uint64_t TotalBytesSent;
} amudp_stats_t;
#define amx_stats_t amudp_stats_t

/* An endpoint's counters. */
AMUDP_PUBLIC int AMUDP_GetEndpointStatistics(ep_t ep, amudp_stats_t *stats);
/* They begin again with AMUDP_initial_stats. */
AMUDP_PUBLIC int AMUDP_ResetEndpointStatistics(ep_t ep);
/* Adds. */
AMUDP_PUBLIC int AMUDP_AggregateStatistics(amudp_stats_t *sum, amudp_stats_t *more);
/* As text, to fp (a FILE *, may be NULL); returns the text, which the next call overwrites. global: stats are the sum
 * of all processes. */
AMUDP_PUBLIC const char *AMUDP_DumpStatistics(void *fp, amudp_stats_t *stats, int global);
/* What counters begin with. */
extern AMUDP_PUBLIC const amudp_stats_t AMUDP_initial_stats;

typedef void (*AMUDP_preHandlerCallback_t)(amudp_category_t category, int is_request, int handler, void *token,
                                           void *buf, size_t nbytes, int numargs, uint32_t *args);
typedef void (*AMUDP_postHandlerCallback_t)(amudp_category_t category, int is_request);
/* Called before and after each handler; NULL = nobody. They must not call AM. */
AMUDP_PUBLIC int AMUDP_SetHandlerCallbacks(ep_t ep, AMUDP_preHandlerCallback_t pre, AMUDP_postHandlerCallback_t post);

/* ---- settings and errors ---- */

/* 1 = waits inside requests sleep. */
extern AMUDP_PUBLIC int AMUDP_PoliteSync;
/* 1 = each error of a call goes to standard error with what was asked and what to change. */
extern AMUDP_PUBLIC int AMX_VerboseErrors;
/* 1 = nothing but errors is printed. */
extern AMUDP_PUBLIC int AMX_SilentMode;
/* Stands before each printed line; NULL = the library's own. */
extern AMUDP_PUBLIC const char *AMX_ProcessLabel;
/* Prints and ends the program by abort(). */
AMUDP_PUBLIC AMUDP_PRINTF(1, 2) void AMX_FatalErr(const char *format, ...);
/* The local IPv4 address, in host order, that names of new endpoints show; 0 = this host's own. */
AMUDP_PUBLIC int AMUDP_SetUDPInterface(uint32_t address);
/* What asks other processes to end the job (amudp_spmd.h) is looked at; *serviced, if not NULL, says how many did. */
AMUDP_PUBLIC int AMUDP_SPMDHandleControlTraffic(int *serviced);

#define amx_category_t            amudp_category_t
#define amx_Short                 amudp_Short
#define amx_Medium                amudp_Medium
#define amx_Long                  amudp_Long
#define AMX_SetTranslationTag     AMUDP_SetTranslationTag
#define AMX_GetEndpointStatistics AMUDP_GetEndpointStatistics
#define AMX_DumpStatistics        AMUDP_DumpStatistics
#define AMX_AggregateStatistics   AMUDP_AggregateStatistics
#define AMX_initial_stats         AMUDP_initial_stats
#define AMX_GetSourceId           AMUDP_GetSourceId
#define AMX_GetTokenInfo          AMUDP_GetTokenInfo
#define AMX_enEqual               AMUDP_enEqual

AMUDP_END_EXTERNC

/* ---- requests and replies ----
 *
 * AM_Request4(ep, dest, handler, a0, a1, a2, a3) and its kin, 0 to 16 arguments each:
 *
 *   AM_RequestN(ep, dest, handler, ...)                            AM_ReplyN(token, handler, ...)
 *   AM_RequestIN(ep, dest, handler, from, bytes, ...)              AM_ReplyIN(token, handler, from, bytes, ...)
 *   AM_RequestXferN(ep, dest, offset, handler, from, bytes, ...)   AM_ReplyXferN(token, offset, handler, from, bytes,
 * ...) AM_RequestXferAsyncN, as AM_RequestXferN
 *
 * Arguments are 32 bits: each is converted to int32_t. A call with another number of them does not compile. */
#define AMUDP_W1(a)                                       (int32_t)(a)
#define AMUDP_W2(a, b)                                    (int32_t)(a), (int32_t)(b)
#define AMUDP_W3(a, b, c)                                 (int32_t)(a), (int32_t)(b), (int32_t)(c)
#define AMUDP_W4(a, b, c, d)                              (int32_t)(a), (int32_t)(b), (int32_t)(c), (int32_t)(d)
#define AMUDP_W5(a, b, c, d, x0)                          AMUDP_W4(a, b, c, d), AMUDP_W1(x0)
#define AMUDP_W6(a, b, c, d, x0, x1)                      AMUDP_W4(a, b, c, d), AMUDP_W2(x0, x1)
#define AMUDP_W7(a, b, c, d, x0, x1, x2)                  AMUDP_W4(a, b, c, d), AMUDP_W3(x0, x1, x2)
#define AMUDP_W8(a, b, c, d, x0, x1, x2, x3)              AMUDP_W4(a, b, c, d), AMUDP_W4(x0, x1, x2, x3)
#define AMUDP_W9(a, b, c, d, x0, x1, x2, x3, x4)          AMUDP_W4(a, b, c, d), AMUDP_W5(x0, x1, x2, x3, x4)
#define AMUDP_W10(a, b, c, d, x0, x1, x2, x3, x4, x5)     AMUDP_W4(a, b, c, d), AMUDP_W6(x0, x1, x2, x3, x4, x5)
#define AMUDP_W11(a, b, c, d, x0, x1, x2, x3, x4, x5, x6) AMUDP_W4(a, b, c, d), AMUDP_W7(x0, x1, x2, x3, x4, x5, x6)
#define AMUDP_W12(a, b, c, d, x0, x1, x2, x3, x4, x5, x6, x7) \
    AMUDP_W4(a, b, c, d), AMUDP_W8(x0, x1, x2, x3, x4, x5, x6, x7)
#define AMUDP_W13(a, b, c, d, x0, x1, x2, x3, x4, x5, x6, x7, x8) \
    AMUDP_W4(a, b, c, d), AMUDP_W9(x0, x1, x2, x3, x4, x5, x6, x7, x8)
#define AMUDP_W14(a, b, c, d, x0, x1, x2, x3, x4, x5, x6, x7, x8, x9) \
    AMUDP_W4(a, b, c, d), AMUDP_W10(x0, x1, x2, x3, x4, x5, x6, x7, x8, x9)
#define AMUDP_W15(a, b, c, d, x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10) \
    AMUDP_W4(a, b, c, d), AMUDP_W11(x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10)
#define AMUDP_W16(a, b, c, d, x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11) \
    AMUDP_W4(a, b, c, d), AMUDP_W12(x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11)

#define AM_Request0(ep, dest, h)       AMUDP_Request(ep, dest, h, 0)
#define AM_Request1(ep, dest, h, ...)  AMUDP_Request(ep, dest, h, 1, AMUDP_W1(__VA_ARGS__))
#define AM_Request2(ep, dest, h, ...)  AMUDP_Request(ep, dest, h, 2, AMUDP_W2(__VA_ARGS__))
#define AM_Request3(ep, dest, h, ...)  AMUDP_Request(ep, dest, h, 3, AMUDP_W3(__VA_ARGS__))
#define AM_Request4(ep, dest, h, ...)  AMUDP_Request(ep, dest, h, 4, AMUDP_W4(__VA_ARGS__))
#define AM_Request5(ep, dest, h, ...)  AMUDP_Request(ep, dest, h, 5, AMUDP_W5(__VA_ARGS__))
#define AM_Request6(ep, dest, h, ...)  AMUDP_Request(ep, dest, h, 6, AMUDP_W6(__VA_ARGS__))
#define AM_Request7(ep, dest, h, ...)  AMUDP_Request(ep, dest, h, 7, AMUDP_W7(__VA_ARGS__))
#define AM_Request8(ep, dest, h, ...)  AMUDP_Request(ep, dest, h, 8, AMUDP_W8(__VA_ARGS__))
#define AM_Request9(ep, dest, h, ...)  AMUDP_Request(ep, dest, h, 9, AMUDP_W9(__VA_ARGS__))
#define AM_Request10(ep, dest, h, ...) AMUDP_Request(ep, dest, h, 10, AMUDP_W10(__VA_ARGS__))
#define AM_Request11(ep, dest, h, ...) AMUDP_Request(ep, dest, h, 11, AMUDP_W11(__VA_ARGS__))
#define AM_Request12(ep, dest, h, ...) AMUDP_Request(ep, dest, h, 12, AMUDP_W12(__VA_ARGS__))
#define AM_Request13(ep, dest, h, ...) AMUDP_Request(ep, dest, h, 13, AMUDP_W13(__VA_ARGS__))
#define AM_Request14(ep, dest, h, ...) AMUDP_Request(ep, dest, h, 14, AMUDP_W14(__VA_ARGS__))
#define AM_Request15(ep, dest, h, ...) AMUDP_Request(ep, dest, h, 15, AMUDP_W15(__VA_ARGS__))
#define AM_Request16(ep, dest, h, ...) AMUDP_Request(ep, dest, h, 16, AMUDP_W16(__VA_ARGS__))

#define AM_RequestI0(ep, dest, h, p, n)       AMUDP_RequestI(ep, dest, h, p, n, 0)
#define AM_RequestI1(ep, dest, h, p, n, ...)  AMUDP_RequestI(ep, dest, h, p, n, 1, AMUDP_W1(__VA_ARGS__))
#define AM_RequestI2(ep, dest, h, p, n, ...)  AMUDP_RequestI(ep, dest, h, p, n, 2, AMUDP_W2(__VA_ARGS__))
#define AM_RequestI3(ep, dest, h, p, n, ...)  AMUDP_RequestI(ep, dest, h, p, n, 3, AMUDP_W3(__VA_ARGS__))
#define AM_RequestI4(ep, dest, h, p, n, ...)  AMUDP_RequestI(ep, dest, h, p, n, 4, AMUDP_W4(__VA_ARGS__))
#define AM_RequestI5(ep, dest, h, p, n, ...)  AMUDP_RequestI(ep, dest, h, p, n, 5, AMUDP_W5(__VA_ARGS__))
#define AM_RequestI6(ep, dest, h, p, n, ...)  AMUDP_RequestI(ep, dest, h, p, n, 6, AMUDP_W6(__VA_ARGS__))
#define AM_RequestI7(ep, dest, h, p, n, ...)  AMUDP_RequestI(ep, dest, h, p, n, 7, AMUDP_W7(__VA_ARGS__))
#define AM_RequestI8(ep, dest, h, p, n, ...)  AMUDP_RequestI(ep, dest, h, p, n, 8, AMUDP_W8(__VA_ARGS__))
#define AM_RequestI9(ep, dest, h, p, n, ...)  AMUDP_RequestI(ep, dest, h, p, n, 9, AMUDP_W9(__VA_ARGS__))
#define AM_RequestI10(ep, dest, h, p, n, ...) AMUDP_RequestI(ep, dest, h, p, n, 10, AMUDP_W10(__VA_ARGS__))
#define AM_RequestI11(ep, dest, h, p, n, ...) AMUDP_RequestI(ep, dest, h, p, n, 11, AMUDP_W11(__VA_ARGS__))
#define AM_RequestI12(ep, dest, h, p, n, ...) AMUDP_RequestI(ep, dest, h, p, n, 12, AMUDP_W12(__VA_ARGS__))
#define AM_RequestI13(ep, dest, h, p, n, ...) AMUDP_RequestI(ep, dest, h, p, n, 13, AMUDP_W13(__VA_ARGS__))
#define AM_RequestI14(ep, dest, h, p, n, ...) AMUDP_RequestI(ep, dest, h, p, n, 14, AMUDP_W14(__VA_ARGS__))
#define AM_RequestI15(ep, dest, h, p, n, ...) AMUDP_RequestI(ep, dest, h, p, n, 15, AMUDP_W15(__VA_ARGS__))
#define AM_RequestI16(ep, dest, h, p, n, ...) AMUDP_RequestI(ep, dest, h, p, n, 16, AMUDP_W16(__VA_ARGS__))

#define AM_RequestXfer0(ep, dest, off, h, p, n) AMUDP_RequestXfer(ep, dest, h, p, n, off, 0, 0)
#define AM_RequestXfer1(ep, dest, off, h, p, n, ...) \
    AMUDP_RequestXfer(ep, dest, h, p, n, off, 0, 1, AMUDP_W1(__VA_ARGS__))
#define AM_RequestXfer2(ep, dest, off, h, p, n, ...) \
    AMUDP_RequestXfer(ep, dest, h, p, n, off, 0, 2, AMUDP_W2(__VA_ARGS__))
#define AM_RequestXfer3(ep, dest, off, h, p, n, ...) \
    AMUDP_RequestXfer(ep, dest, h, p, n, off, 0, 3, AMUDP_W3(__VA_ARGS__))
#define AM_RequestXfer4(ep, dest, off, h, p, n, ...) \
    AMUDP_RequestXfer(ep, dest, h, p, n, off, 0, 4, AMUDP_W4(__VA_ARGS__))
#define AM_RequestXfer5(ep, dest, off, h, p, n, ...) \
    AMUDP_RequestXfer(ep, dest, h, p, n, off, 0, 5, AMUDP_W5(__VA_ARGS__))
#define AM_RequestXfer6(ep, dest, off, h, p, n, ...) \
    AMUDP_RequestXfer(ep, dest, h, p, n, off, 0, 6, AMUDP_W6(__VA_ARGS__))
#define AM_RequestXfer7(ep, dest, off, h, p, n, ...) \
    AMUDP_RequestXfer(ep, dest, h, p, n, off, 0, 7, AMUDP_W7(__VA_ARGS__))
#define AM_RequestXfer8(ep, dest, off, h, p, n, ...) \
    AMUDP_RequestXfer(ep, dest, h, p, n, off, 0, 8, AMUDP_W8(__VA_ARGS__))
#define AM_RequestXfer9(ep, dest, off, h, p, n, ...) \
    AMUDP_RequestXfer(ep, dest, h, p, n, off, 0, 9, AMUDP_W9(__VA_ARGS__))
#define AM_RequestXfer10(ep, dest, off, h, p, n, ...) \
    AMUDP_RequestXfer(ep, dest, h, p, n, off, 0, 10, AMUDP_W10(__VA_ARGS__))
#define AM_RequestXfer11(ep, dest, off, h, p, n, ...) \
    AMUDP_RequestXfer(ep, dest, h, p, n, off, 0, 11, AMUDP_W11(__VA_ARGS__))
#define AM_RequestXfer12(ep, dest, off, h, p, n, ...) \
    AMUDP_RequestXfer(ep, dest, h, p, n, off, 0, 12, AMUDP_W12(__VA_ARGS__))
#define AM_RequestXfer13(ep, dest, off, h, p, n, ...) \
    AMUDP_RequestXfer(ep, dest, h, p, n, off, 0, 13, AMUDP_W13(__VA_ARGS__))
#define AM_RequestXfer14(ep, dest, off, h, p, n, ...) \
    AMUDP_RequestXfer(ep, dest, h, p, n, off, 0, 14, AMUDP_W14(__VA_ARGS__))
#define AM_RequestXfer15(ep, dest, off, h, p, n, ...) \
    AMUDP_RequestXfer(ep, dest, h, p, n, off, 0, 15, AMUDP_W15(__VA_ARGS__))
#define AM_RequestXfer16(ep, dest, off, h, p, n, ...) \
    AMUDP_RequestXfer(ep, dest, h, p, n, off, 0, 16, AMUDP_W16(__VA_ARGS__))

#define AM_RequestXferAsync0(ep, dest, off, h, p, n) AMUDP_RequestXfer(ep, dest, h, p, n, off, 1, 0)
#define AM_RequestXferAsync1(ep, dest, off, h, p, n, ...) \
    AMUDP_RequestXfer(ep, dest, h, p, n, off, 1, 1, AMUDP_W1(__VA_ARGS__))
#define AM_RequestXferAsync2(ep, dest, off, h, p, n, ...) \
    AMUDP_RequestXfer(ep, dest, h, p, n, off, 1, 2, AMUDP_W2(__VA_ARGS__))
#define AM_RequestXferAsync3(ep, dest, off, h, p, n, ...) \
    AMUDP_RequestXfer(ep, dest, h, p, n, off, 1, 3, AMUDP_W3(__VA_ARGS__))
#define AM_RequestXferAsync4(ep, dest, off, h, p, n, ...) \
    AMUDP_RequestXfer(ep, dest, h, p, n, off, 1, 4, AMUDP_W4(__VA_ARGS__))
#define AM_RequestXferAsync5(ep, dest, off, h, p, n, ...) \
    AMUDP_RequestXfer(ep, dest, h, p, n, off, 1, 5, AMUDP_W5(__VA_ARGS__))
#define AM_RequestXferAsync6(ep, dest, off, h, p, n, ...) \
    AMUDP_RequestXfer(ep, dest, h, p, n, off, 1, 6, AMUDP_W6(__VA_ARGS__))
#define AM_RequestXferAsync7(ep, dest, off, h, p, n, ...) \
    AMUDP_RequestXfer(ep, dest, h, p, n, off, 1, 7, AMUDP_W7(__VA_ARGS__))
#define AM_RequestXferAsync8(ep, dest, off, h, p, n, ...) \
    AMUDP_RequestXfer(ep, dest, h, p, n, off, 1, 8, AMUDP_W8(__VA_ARGS__))
#define AM_RequestXferAsync9(ep, dest, off, h, p, n, ...) \
    AMUDP_RequestXfer(ep, dest, h, p, n, off, 1, 9, AMUDP_W9(__VA_ARGS__))
#define AM_RequestXferAsync10(ep, dest, off, h, p, n, ...) \
    AMUDP_RequestXfer(ep, dest, h, p, n, off, 1, 10, AMUDP_W10(__VA_ARGS__))
#define AM_RequestXferAsync11(ep, dest, off, h, p, n, ...) \
    AMUDP_RequestXfer(ep, dest, h, p, n, off, 1, 11, AMUDP_W11(__VA_ARGS__))
#define AM_RequestXferAsync12(ep, dest, off, h, p, n, ...) \
    AMUDP_RequestXfer(ep, dest, h, p, n, off, 1, 12, AMUDP_W12(__VA_ARGS__))
#define AM_RequestXferAsync13(ep, dest, off, h, p, n, ...) \
    AMUDP_RequestXfer(ep, dest, h, p, n, off, 1, 13, AMUDP_W13(__VA_ARGS__))
#define AM_RequestXferAsync14(ep, dest, off, h, p, n, ...) \
    AMUDP_RequestXfer(ep, dest, h, p, n, off, 1, 14, AMUDP_W14(__VA_ARGS__))
#define AM_RequestXferAsync15(ep, dest, off, h, p, n, ...) \
    AMUDP_RequestXfer(ep, dest, h, p, n, off, 1, 15, AMUDP_W15(__VA_ARGS__))
#define AM_RequestXferAsync16(ep, dest, off, h, p, n, ...) \
    AMUDP_RequestXfer(ep, dest, h, p, n, off, 1, 16, AMUDP_W16(__VA_ARGS__))

#define AM_Reply0(tok, h)       AMUDP_Reply(tok, h, 0)
#define AM_Reply1(tok, h, ...)  AMUDP_Reply(tok, h, 1, AMUDP_W1(__VA_ARGS__))
#define AM_Reply2(tok, h, ...)  AMUDP_Reply(tok, h, 2, AMUDP_W2(__VA_ARGS__))
#define AM_Reply3(tok, h, ...)  AMUDP_Reply(tok, h, 3, AMUDP_W3(__VA_ARGS__))
#define AM_Reply4(tok, h, ...)  AMUDP_Reply(tok, h, 4, AMUDP_W4(__VA_ARGS__))
#define AM_Reply5(tok, h, ...)  AMUDP_Reply(tok, h, 5, AMUDP_W5(__VA_ARGS__))
#define AM_Reply6(tok, h, ...)  AMUDP_Reply(tok, h, 6, AMUDP_W6(__VA_ARGS__))
#define AM_Reply7(tok, h, ...)  AMUDP_Reply(tok, h, 7, AMUDP_W7(__VA_ARGS__))
#define AM_Reply8(tok, h, ...)  AMUDP_Reply(tok, h, 8, AMUDP_W8(__VA_ARGS__))
#define AM_Reply9(tok, h, ...)  AMUDP_Reply(tok, h, 9, AMUDP_W9(__VA_ARGS__))
#define AM_Reply10(tok, h, ...) AMUDP_Reply(tok, h, 10, AMUDP_W10(__VA_ARGS__))
#define AM_Reply11(tok, h, ...) AMUDP_Reply(tok, h, 11, AMUDP_W11(__VA_ARGS__))
#define AM_Reply12(tok, h, ...) AMUDP_Reply(tok, h, 12, AMUDP_W12(__VA_ARGS__))
#define AM_Reply13(tok, h, ...) AMUDP_Reply(tok, h, 13, AMUDP_W13(__VA_ARGS__))
#define AM_Reply14(tok, h, ...) AMUDP_Reply(tok, h, 14, AMUDP_W14(__VA_ARGS__))
#define AM_Reply15(tok, h, ...) AMUDP_Reply(tok, h, 15, AMUDP_W15(__VA_ARGS__))
#define AM_Reply16(tok, h, ...) AMUDP_Reply(tok, h, 16, AMUDP_W16(__VA_ARGS__))

#define AM_ReplyI0(tok, h, p, n)       AMUDP_ReplyI(tok, h, p, n, 0)
#define AM_ReplyI1(tok, h, p, n, ...)  AMUDP_ReplyI(tok, h, p, n, 1, AMUDP_W1(__VA_ARGS__))
#define AM_ReplyI2(tok, h, p, n, ...)  AMUDP_ReplyI(tok, h, p, n, 2, AMUDP_W2(__VA_ARGS__))
#define AM_ReplyI3(tok, h, p, n, ...)  AMUDP_ReplyI(tok, h, p, n, 3, AMUDP_W3(__VA_ARGS__))
#define AM_ReplyI4(tok, h, p, n, ...)  AMUDP_ReplyI(tok, h, p, n, 4, AMUDP_W4(__VA_ARGS__))
#define AM_ReplyI5(tok, h, p, n, ...)  AMUDP_ReplyI(tok, h, p, n, 5, AMUDP_W5(__VA_ARGS__))
#define AM_ReplyI6(tok, h, p, n, ...)  AMUDP_ReplyI(tok, h, p, n, 6, AMUDP_W6(__VA_ARGS__))
#define AM_ReplyI7(tok, h, p, n, ...)  AMUDP_ReplyI(tok, h, p, n, 7, AMUDP_W7(__VA_ARGS__))
#define AM_ReplyI8(tok, h, p, n, ...)  AMUDP_ReplyI(tok, h, p, n, 8, AMUDP_W8(__VA_ARGS__))
#define AM_ReplyI9(tok, h, p, n, ...)  AMUDP_ReplyI(tok, h, p, n, 9, AMUDP_W9(__VA_ARGS__))
#define AM_ReplyI10(tok, h, p, n, ...) AMUDP_ReplyI(tok, h, p, n, 10, AMUDP_W10(__VA_ARGS__))
#define AM_ReplyI11(tok, h, p, n, ...) AMUDP_ReplyI(tok, h, p, n, 11, AMUDP_W11(__VA_ARGS__))
#define AM_ReplyI12(tok, h, p, n, ...) AMUDP_ReplyI(tok, h, p, n, 12, AMUDP_W12(__VA_ARGS__))
#define AM_ReplyI13(tok, h, p, n, ...) AMUDP_ReplyI(tok, h, p, n, 13, AMUDP_W13(__VA_ARGS__))
#define AM_ReplyI14(tok, h, p, n, ...) AMUDP_ReplyI(tok, h, p, n, 14, AMUDP_W14(__VA_ARGS__))
#define AM_ReplyI15(tok, h, p, n, ...) AMUDP_ReplyI(tok, h, p, n, 15, AMUDP_W15(__VA_ARGS__))
#define AM_ReplyI16(tok, h, p, n, ...) AMUDP_ReplyI(tok, h, p, n, 16, AMUDP_W16(__VA_ARGS__))

#define AM_ReplyXfer0(tok, off, h, p, n)       AMUDP_ReplyXfer(tok, h, p, n, off, 0)
#define AM_ReplyXfer1(tok, off, h, p, n, ...)  AMUDP_ReplyXfer(tok, h, p, n, off, 1, AMUDP_W1(__VA_ARGS__))
#define AM_ReplyXfer2(tok, off, h, p, n, ...)  AMUDP_ReplyXfer(tok, h, p, n, off, 2, AMUDP_W2(__VA_ARGS__))
#define AM_ReplyXfer3(tok, off, h, p, n, ...)  AMUDP_ReplyXfer(tok, h, p, n, off, 3, AMUDP_W3(__VA_ARGS__))
#define AM_ReplyXfer4(tok, off, h, p, n, ...)  AMUDP_ReplyXfer(tok, h, p, n, off, 4, AMUDP_W4(__VA_ARGS__))
#define AM_ReplyXfer5(tok, off, h, p, n, ...)  AMUDP_ReplyXfer(tok, h, p, n, off, 5, AMUDP_W5(__VA_ARGS__))
#define AM_ReplyXfer6(tok, off, h, p, n, ...)  AMUDP_ReplyXfer(tok, h, p, n, off, 6, AMUDP_W6(__VA_ARGS__))
#define AM_ReplyXfer7(tok, off, h, p, n, ...)  AMUDP_ReplyXfer(tok, h, p, n, off, 7, AMUDP_W7(__VA_ARGS__))
#define AM_ReplyXfer8(tok, off, h, p, n, ...)  AMUDP_ReplyXfer(tok, h, p, n, off, 8, AMUDP_W8(__VA_ARGS__))
#define AM_ReplyXfer9(tok, off, h, p, n, ...)  AMUDP_ReplyXfer(tok, h, p, n, off, 9, AMUDP_W9(__VA_ARGS__))
#define AM_ReplyXfer10(tok, off, h, p, n, ...) AMUDP_ReplyXfer(tok, h, p, n, off, 10, AMUDP_W10(__VA_ARGS__))
#define AM_ReplyXfer11(tok, off, h, p, n, ...) AMUDP_ReplyXfer(tok, h, p, n, off, 11, AMUDP_W11(__VA_ARGS__))
#define AM_ReplyXfer12(tok, off, h, p, n, ...) AMUDP_ReplyXfer(tok, h, p, n, off, 12, AMUDP_W12(__VA_ARGS__))
#define AM_ReplyXfer13(tok, off, h, p, n, ...) AMUDP_ReplyXfer(tok, h, p, n, off, 13, AMUDP_W13(__VA_ARGS__))
#define AM_ReplyXfer14(tok, off, h, p, n, ...) AMUDP_ReplyXfer(tok, h, p, n, off, 14, AMUDP_W14(__VA_ARGS__))
#define AM_ReplyXfer15(tok, off, h, p, n, ...) AMUDP_ReplyXfer(tok, h, p, n, off, 15, AMUDP_W15(__VA_ARGS__))
#define AM_ReplyXfer16(tok, off, h, p, n, ...) AMUDP_ReplyXfer(tok, h, p, n, off, 16, AMUDP_W16(__VA_ARGS__))

#endif
