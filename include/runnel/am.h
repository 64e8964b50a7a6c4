/* SPDX-License-Identifier: BSD-3-Clause
 *
 * am.h - Active Messages 2 (Mainwaring and Culler, "Active Message Applications Programming Interface and Communication
 * Subsystem Organization", 1996; Bonachea and Hettena, "AMUDP", sections 3 and 6.4) on runnel.h.
 *
 * An endpoint has a name, a tag, a memory segment, a table of 256 handlers and a table of translations, by whose index
 * it names the endpoints that it sends to. A request runs a handler there, which may reply once; a message that cannot
 * be delivered comes back and runs handler 0 of the endpoint that sent it, with the reason. Each message does exactly
 * one of the two, exactly once. Messages are not ordered.
 *
 * A bundle is a set of endpoints that are polled together. It belongs to one thread (AM_SEQ), or any thread may call
 * (AM_PAR). The bundles of a process stand on one runnel endpoint, its rank in the job, and a call for one of them
 * takes in the messages of all. So two threads that want to share nothing have a rank each (AM_AllocateBundleOn).
 * A second bundle on a rank, and the first AM_PAR one, is allocated while no other thread calls for that rank.
 *
 * Results: AM_OK or AM_ERR_...; rnl_last_error() then says what was asked, what the limit is and what to change.
 * The functions are named rnl_am_...; programs use the names of the specification below. Unless a function says
 * otherwise it does not block and runs no handler, any thread may call it for an AM_PAR bundle, and it is allowed in
 * handlers. Read in this order: Request, Poll, Reply; AllocateEndpoint, Map, SetHandler; the rest. */
#ifndef RNL_AM_H
#define RNL_AM_H

#include "runnel/runnel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rnl_am_bundle *eb_t;   /* opaque */
typedef struct rnl_am_endpoint *ep_t; /* opaque */
typedef uint64_t tag_t;
typedef uint8_t handler_t;
typedef int op_t;
/* A global name: copied and sent freely, compared with AM_NameEqual. 16 bytes; `zero` is zero. */
typedef struct {
    uint32_t rank;       /* of its process in the job */
    uint32_t generation; /* no two endpoints that ever had that number have it in common; 0 = whoever has it now */
    uint16_t number;     /* in its process: the first allocated is 0; the lowest free one is taken */
    uint16_t zero[3];
} en_t;
/* Any handler. One of M arguments is void h(void *token, int32_t a0, ... aM-1); of a medium or bulk message
 * void h(void *token, void *buf, size_t nbytes, int32_t a0, ...); handler 0 is AM_returned. */
typedef void (*rnl_am_fn)(void);
/* Handler 0: one of AM_EBAD..., what the message was (AM_REQUEST_M ...), a token: AM_GetTokenInfo has all of it but the
 * payload. Must not send. */
typedef void AM_returned(int status, op_t opcode, void *token);

enum { AM_OK = 0, AM_ERR_NOT_INIT, AM_ERR_BAD_ARG, AM_ERR_RESOURCE, AM_ERR_NOT_SENT, AM_ERR_IN_USE };
/* AM_ERR_NOT_INIT: before AM_Init or after AM_Terminate (of calls without a bundle or endpoint: these are freed with
 *                  their session, and must not be used any more), or in a forked child.
 * AM_ERR_BAD_ARG:  an argument is wrong.
 * AM_ERR_RESOURCE: not from here (a request, a poll or a wait in a handler, a second reply), never so (an asynchronous
 *                  message too long to go at once), memory, or the system.
 * AM_ERR_NOT_SENT: an asynchronous message would have to wait now: poll and try again.
 * AM_ERR_IN_USE:   the translation is in use, or the segment is being written to from within a handler's reach. */

enum { AM_SEQ = 0, AM_PAR = 1 };       /* AM_AllocateBundle */
enum { AM_NOEVENTS = 0, AM_NOTEMPTY }; /* event masks */
#define AM_NONE ((tag_t)0)             /* of an endpoint: no request is let in */
#define AM_ALL  ((tag_t)1)             /* ... all are; else those that bring the same tag */

/* Why a message came back. */
enum {
    AM_EBADARGS = 1,       /* more arguments than there can be, or fewer than it says: its sender is no AM-2 */
    AM_EBADENTRY = 2,      /* the translation was not in use */
    AM_EBADTAG = 3,        /* the tag is not that of the receiver, which may be AM_NONE */
    AM_EBADHANDLER = 4,    /* the receiver has no handler of that number; 0 cannot be asked for */
    AM_EBADSEGOFF = 5,     /* the offset is beyond the receiver's segment */
    AM_EBADLENGTH = 6,     /* ... is not, but the end is; or longer than such a message can be */
    AM_EBADENDPOINT = 7,   /* there is no endpoint of that name, or not any more */
    AM_ECONGESTION = 8,    /* the receiver did not make room for longer than AM_SetCongestionLimit allows */
    AM_EUNREACHABLE = 9,   /* the receiver's process is dead, or cannot be reached; it may have run the handler */
    AM_EREPLYREJECTED = 10 /* a reply could not be delivered to who had asked */
};
enum { AM_REQUEST_M = 1, AM_REQUEST_IM, AM_REQUEST_XFER_M, AM_REPLY_M, AM_REPLY_IM, AM_REPLY_XFER_M, AM_GET_XFER_M };

enum {
    RNL_AM_SHORT = 16,        /* arguments */
    RNL_AM_MEDIUM = 65000,    /* bytes of a medium message, of a bulk reply, of a get */
    RNL_AM_LONG = 1 << 30,    /* bytes of a bulk request */
    RNL_AM_ASYNC = 256 << 10, /* bytes of an asynchronous bulk request: longer ones are AM_ERR_RESOURCE */
    RNL_AM_HANDLERS = 256,
    RNL_AM_TRANSLATIONS = 256, /* at first */
    RNL_AM_TRANSLATIONS_MAX = 1 << 20,
    RNL_AM_ENDPOINTS = 65535 /* per rank */
};
#define AM_MaxShort()       RNL_AM_SHORT
#define AM_MaxMedium()      RNL_AM_MEDIUM
#define AM_MaxLong()        RNL_AM_MEDIUM /* of requests and replies */
#define AM_MaxLongRequest() RNL_AM_LONG

/* ---- requests: not in handlers ----
 *
 * AM_RequestM(ep, index, handler, a0 ... aM-1) and the others, M = 0 to 16, are inline functions at the end of this
 * file; these take the arguments as an array. `index` names the receiver in ep's translations. They send, then poll
 * (so handlers may run), and wait for room, running handlers meanwhile, sleeping if it takes long. Memory is the
 * caller's again on return. To another host, requests that follow one that is not acknowledged yet leave together: with
 * the next poll, each 32nd request, or what fills a datagram; who then does something else for long polls once. AM_OK
 * means: the handler runs there once, or handler 0 here (it may have already).
 * AM_ERR_BAD_ARG: an index outside the table, too many arguments, too many bytes; AM_ERR_RESOURCE, AM_ERR_NOT_INIT. */

/* Short: arguments only. */
RNL_PUBLIC int rnl_am_request(ep_t ep, int index, handler_t handler, int numargs, const int32_t *args);
/* Medium: and nbytes from src, which the handler gets in a buffer, 8-byte aligned, its own until it returns. */
RNL_PUBLIC int rnl_am_request_i(ep_t ep, int index, handler_t handler, const void *src, size_t nbytes, int numargs,
                                const int32_t *args);
/* Bulk: nbytes from src to dest_offset in the receiver's segment, where its handler finds them. async != 0: does
 * neither wait nor poll; AM_ERR_NOT_SENT: try later, AM_ERR_RESOURCE: never (rnl_last_error() says the limit). */
RNL_PUBLIC int rnl_am_request_xfer(ep_t ep, int index, uintptr_t dest_offset, handler_t handler, const void *src,
                                   size_t nbytes, int async, int numargs, const int32_t *args);
/* Fetch: nbytes from source_offset of the receiver's segment to dest_offset of ep's own; then the handler runs at ep,
 * as of a bulk reply. No handler runs there, but somebody has to poll there. */
RNL_PUBLIC int rnl_am_get_xfer(ep_t ep, int index, uintptr_t source_offset, handler_t handler, uintptr_t dest_offset,
                               size_t nbytes, int async, int numargs, const int32_t *args);

/* Runs handlers of what has arrived, for all bundles of the rank. Never blocks. AM_ERR_RESOURCE: in a handler, or no
 * memory for a message, which waits; AM_ERR_NOT_SENT: a message came back to an endpoint whose handler 0 is not set;
 * said once for each, and nothing else is lost. */
RNL_PUBLIC int rnl_am_poll(eb_t bundle);
#define AM_Poll rnl_am_poll

/* ---- replies: in the handler of a request, once, by the thread that runs it ----
 *
 * As the requests; to who asked. They never wait: room was set aside. The handler of a reply must not send.
 * AM_ERR_RESOURCE: not in a request's handler, or a second reply. */

/* Short. */
RNL_PUBLIC int rnl_am_reply(void *token, handler_t handler, int numargs, const int32_t *args);
/* Medium. */
RNL_PUBLIC int rnl_am_reply_i(void *token, handler_t handler, const void *src, size_t nbytes, int numargs,
                              const int32_t *args);
/* Bulk, of up to RNL_AM_MEDIUM bytes, to dest_offset in the asker's segment. */
RNL_PUBLIC int rnl_am_reply_xfer(void *token, uintptr_t dest_offset, handler_t handler, const void *src, size_t nbytes,
                                 int numargs, const int32_t *args);

/* ---- tokens: in a handler, until it returns ---- */

/* Who sent the message; for handler 0, who was to take it. */
RNL_PUBLIC int rnl_am_get_source_endpoint(void *token, en_t *name);
#define AM_GetSourceEndpoint rnl_am_get_source_endpoint
/* The endpoint whose handler this is. */
RNL_PUBLIC int rnl_am_get_dest_endpoint(void *token, ep_t *ep);
#define AM_GetDestEndpoint rnl_am_get_dest_endpoint
/* The tag that let the message in; of a reply or a returned message, the endpoint's own: having been asked lets a reply
 * in. */
RNL_PUBLIC int rnl_am_get_msg_tag(void *token, tag_t *tag);
#define AM_GetMsgTag rnl_am_get_msg_tag
struct rnl_am_token_info {
    op_t opcode; /* AM_REQUEST_M ...; of the answer to a get AM_GET_XFER_M */
    int status;  /* handler 0: the reason; else 0 */
    int index;   /* handler 0 of a request: the translation it was sent by; else -1 */
    int numargs;
    handler_t handler; /* handler 0: which it was for */
    size_t nbytes;     /* of payload; handler 0: that it had */
    uintptr_t dest_offset;
    int32_t args[RNL_AM_SHORT];
};
/* All that a token knows. */
RNL_PUBLIC int rnl_am_get_token_info(void *token, struct rnl_am_token_info *info);
#define AM_GetTokenInfo rnl_am_get_token_info

/* ---- events ---- */

/* Sleeps until a message for one of the bundle's endpoints has been handled since its last AM_Poll or AM_WaitSema
 * began, here or by another thread, if the mask has AM_NOTEMPTY, which stays set; runs the handlers of what comes.
 * Not in handlers. AM_ERR_BAD_ARG with AM_NOEVENTS: it would sleep for ever. Else as AM_Poll. */
RNL_PUBLIC int rnl_am_wait_sema(eb_t bundle);
#define AM_WaitSema rnl_am_wait_sema
/* The same for at most timeout_ns (negative: for ever). AM_ERR_NOT_SENT: nothing came. */
RNL_PUBLIC int rnl_am_wait_sema_for(eb_t bundle, int64_t timeout_ns);
#define AM_WaitSemaFor rnl_am_wait_sema_for
/* AM_NOEVENTS, as at first, or AM_NOTEMPTY. */
RNL_PUBLIC int rnl_am_set_event_mask(eb_t bundle, int mask);
#define AM_SetEventMask rnl_am_set_event_mask
/* Reads it. */
RNL_PUBLIC int rnl_am_get_event_mask(eb_t bundle, int *mask);
#define AM_GetEventMask rnl_am_get_event_mask

/* ---- translations ---- */

/* Entry index names `name`, and requests by it bring `tag`. At any time. AM_ERR_IN_USE: it is in use; unmap it first.
 * AM_ERR_BAD_ARG: outside the table, or no name of this job. */
RNL_PUBLIC int rnl_am_map(ep_t ep, int index, en_t name, tag_t tag);
#define AM_Map rnl_am_map
/* The same for the lowest free entry. AM_ERR_RESOURCE: the table is full; AM_SetNumTranslations grows it. */
RNL_PUBLIC int rnl_am_map_any(ep_t ep, int *index, en_t name, tag_t tag);
#define AM_MapAny rnl_am_map_any
/* Frees an entry. What was sent by it goes on. AM_ERR_BAD_ARG: it was not in use. */
RNL_PUBLIC int rnl_am_unmap(ep_t ep, int index);
#define AM_UnMap rnl_am_unmap
/* AM_OK: the entry is in use; AM_ERR_RESOURCE: it is not. */
RNL_PUBLIC int rnl_am_get_translation_inuse(ep_t ep, int index);
#define AM_GetTranslationInuse rnl_am_get_translation_inuse
/* Of an entry in use, else AM_ERR_BAD_ARG. */
RNL_PUBLIC int rnl_am_get_translation_tag(ep_t ep, int index, tag_t *tag);
#define AM_GetTranslationTag rnl_am_get_translation_tag
/* The same. */
RNL_PUBLIC int rnl_am_get_translation_name(ep_t ep, int index, en_t *name);
#define AM_GetTranslationName rnl_am_get_translation_name
/* Another tag for an entry in use. An extension. */
RNL_PUBLIC int rnl_am_set_translation_tag(ep_t ep, int index, tag_t tag);
#define AM_SetTranslationTag rnl_am_set_translation_tag
/* Entries of the table: 256 at first. */
RNL_PUBLIC int rnl_am_get_num_translations(ep_t ep, int *entries);
#define AM_GetNumTranslations rnl_am_get_num_translations
/* Grows or shrinks it. AM_ERR_RESOURCE: above RNL_AM_TRANSLATIONS_MAX, or no memory; AM_ERR_IN_USE: an entry in use
 * would go. */
RNL_PUBLIC int rnl_am_set_num_translations(ep_t ep, int entries);
#define AM_SetNumTranslations rnl_am_set_num_translations
static inline int AM_MaxNumTranslations(int *entries)
{
    *entries = RNL_AM_TRANSLATIONS_MAX;
    return AM_OK;
}
/* A hint of how many endpoints and outstanding requests there will be: memory is made ready. Any time, any number of
 * times. AM_ERR_BAD_ARG: below 1. */
RNL_PUBLIC int rnl_am_set_expected_resources(ep_t ep, int n_endpoints, int n_outstanding);
#define AM_SetExpectedResources rnl_am_set_expected_resources

/* ---- handlers ---- */

/* Sets or replaces a handler, at any time; NULL takes it away. 0 is for returned messages: AM_returned. */
RNL_PUBLIC int rnl_am_set_handler(ep_t ep, handler_t handler, rnl_am_fn fn);
#define AM_SetHandler(ep, handler, fn) rnl_am_set_handler(ep, handler, (rnl_am_fn)(fn))
/* The lowest number from 1 up that has none. AM_ERR_RESOURCE: all have. */
RNL_PUBLIC int rnl_am_set_handler_any(ep_t ep, handler_t *handler, rnl_am_fn fn);
#define AM_SetHandlerAny(ep, handler, fn) rnl_am_set_handler_any(ep, handler, (rnl_am_fn)(fn))
/* NULL: none. An extension. */
RNL_PUBLIC int rnl_am_get_handler(ep_t ep, handler_t handler, rnl_am_fn *fn);
#define AM_GetHandler rnl_am_get_handler
static inline int AM_GetNumHandlers(ep_t ep, int *entries)
{
    (void)ep;
    *entries = RNL_AM_HANDLERS;
    return AM_OK;
}
static inline int AM_SetNumHandlers(ep_t ep, int entries)
{
    (void)ep;
    return entries == RNL_AM_HANDLERS ? AM_OK : AM_ERR_RESOURCE;
}
#define AM_MaxNumHandlers() RNL_AM_HANDLERS
/* What is called around each handler of ep, by the thread that runs it; either may be NULL. For measuring and for
 * libraries above: they must not send. buf is NULL where a message has none. An extension. */
struct rnl_am_hooks {
    void (*before)(void *arg, void *token, const struct rnl_am_token_info *info, void *buf);
    void (*after)(void *arg, void *token, const struct rnl_am_token_info *info, void *buf);
    void *arg;
};
/* hooks is copied; NULL = none. */
RNL_PUBLIC int rnl_am_set_hooks(ep_t ep, const struct rnl_am_hooks *hooks);
#define AM_SetHooks rnl_am_set_hooks

/* ---- tags, segments ---- */

/* The tag that a request must bring; AM_NONE at first. Holds for what is taken in from now on. */
RNL_PUBLIC int rnl_am_set_tag(ep_t ep, tag_t tag);
#define AM_SetTag rnl_am_set_tag
/* Reads it. */
RNL_PUBLIC int rnl_am_get_tag(ep_t ep, tag_t *tag);
#define AM_GetTag rnl_am_get_tag
/* The memory that bulk messages write to and gets read from; none at first. addr NULL with a length: offsets are
 * addresses. May wait, running handlers, for bulk messages that are being written into the old one; AM_ERR_IN_USE: the
 * same in a handler. */
RNL_PUBLIC int rnl_am_set_seg(ep_t ep, void *addr, uintptr_t nbytes);
#define AM_SetSeg rnl_am_set_seg
/* Reads it. */
RNL_PUBLIC int rnl_am_get_seg(ep_t ep, void **addr, uintptr_t *nbytes);
#define AM_GetSeg rnl_am_get_seg
/* Any memory of the process will do. */
static inline int AM_MaxSegLength(uintptr_t *nbytes)
{
    *nbytes = UINTPTR_MAX;
    return AM_OK;
}

/* ---- life: not in handlers ---- */

/* A new endpoint of the bundle and its name: tag AM_NONE, no segment, no handlers, no translations. AM_ERR_RESOURCE. */
RNL_PUBLIC int rnl_am_allocate_endpoint(eb_t bundle, ep_t *ep, en_t *name);
#define AM_AllocateEndpoint rnl_am_allocate_endpoint
/* What is on its way to it comes back to who sent it. May wait as AM_SetSeg. */
RNL_PUBLIC int rnl_am_free_endpoint(ep_t ep);
#define AM_FreeEndpoint rnl_am_free_endpoint
/* The endpoint goes on in another bundle of the same rank, with its name. AM_ERR_BAD_ARG: it is not in `from`;
 * AM_ERR_RESOURCE: the two have different ranks. */
RNL_PUBLIC int rnl_am_move_endpoint(ep_t ep, eb_t from, eb_t to);
#define AM_MoveEndpoint rnl_am_move_endpoint
/* AM_SEQ or AM_PAR, on the rank of this process in the job that started it; alone, in a job of one. Joins the job if
 * need be, which blocks. AM_ERR_RESOURCE: it could not (rnl_last_error() says why). */
RNL_PUBLIC int rnl_am_allocate_bundle(int type, eb_t *bundle);
#define AM_AllocateBundle rnl_am_allocate_bundle
/* The same on a rank that the program opened: an endpoint of a hub for each thread, or one that it also uses for other
 * messages, in whose calls handlers may then run. Not RNL_SHARED: the bundle does the locking. Handlers RNL_AM_ID_FIRST
 * to RNL_AM_ID_LAST of it are taken. Freed before rnl_close. An extension. */
RNL_PUBLIC int rnl_am_allocate_bundle_on(rnl_endpoint *rank, int type, eb_t *bundle);
#define AM_AllocateBundleOn rnl_am_allocate_bundle_on
enum { RNL_AM_ID_FIRST = 1000, RNL_AM_ID_LAST = 1002 };
/* Frees its endpoints, too. */
RNL_PUBLIC int rnl_am_free_bundle(eb_t bundle);
#define AM_FreeBundle rnl_am_free_bundle
/* Begins a session of this process; they nest. */
RNL_PUBLIC int rnl_am_init(void);
#define AM_Init rnl_am_init
/* Ends one. The last frees all bundles, takes in what is under way and leaves the job: as rnl_close it waits for the
 * other ranks to do the same. */
RNL_PUBLIC int rnl_am_terminate(void);
#define AM_Terminate rnl_am_terminate

/* ---- names, ranks: extensions ---- */

/* 1: two names of one endpoint. A generation of 0 equals any. */
RNL_PUBLIC int rnl_am_name_equal(en_t a, en_t b);
#define AM_NameEqual rnl_am_name_equal
/* The name of whoever has that number in that rank when a message arrives: how SPMD programs begin. */
static inline en_t AM_NameOf(unsigned rank, unsigned number)
{
    en_t name = {(uint32_t)rank, 0, (uint16_t)number, {0, 0, 0}};
    return name;
}
/* The name of an endpoint of one's own. */
RNL_PUBLIC int rnl_am_get_name(ep_t ep, en_t *name);
#define AM_GetName rnl_am_get_name
/* Its bundle. */
RNL_PUBLIC int rnl_am_get_bundle(ep_t ep, eb_t *bundle);
#define AM_GetBundle rnl_am_get_bundle
/* The runnel endpoint a bundle stands on: for rnl_rank, rnl_size, rnl_peer, rnl_get_counters. */
RNL_PUBLIC rnl_endpoint *rnl_am_get_rank(eb_t bundle);
#define AM_GetRank rnl_am_get_rank
/* How long a request may wait for room before it comes back with AM_ECONGESTION; 0 = for ever, as at first: a peer that
 * lives makes room at last. */
RNL_PUBLIC int rnl_am_set_congestion_limit(ep_t ep, uint64_t limit_ns);
#define AM_SetCongestionLimit rnl_am_set_congestion_limit
/* Takes back a rank of which the job has started another process after it died (rnl_peer: RNL_PEER_RETURNED), or that
 * was only not heard. What was sent to the one before has come back then. Its names lead nowhere any more
 * (AM_EBADENDPOINT), AM_NameOf's to the new one. In the place of rnl_readmit, which would not ask AM. Not in handlers.
 * AM_ERR_NOT_SENT: its death is not over yet: poll, and try again; AM_ERR_RESOURCE: there is no such process, or not
 * yet; AM_ERR_BAD_ARG. An extension. */
RNL_PUBLIC int rnl_am_readmit(eb_t bundle, unsigned rank);
#define AM_Readmit rnl_am_readmit

/* ---- the calls by number of arguments ---- */

/* clang-format off */
#define RNL_AM_P0
#define RNL_AM_P1  , int32_t a0
#define RNL_AM_P2  RNL_AM_P1, int32_t a1
#define RNL_AM_P3  RNL_AM_P2, int32_t a2
#define RNL_AM_P4  RNL_AM_P3, int32_t a3
#define RNL_AM_P5  RNL_AM_P4, int32_t a4
#define RNL_AM_P6  RNL_AM_P5, int32_t a5
#define RNL_AM_P7  RNL_AM_P6, int32_t a6
#define RNL_AM_P8  RNL_AM_P7, int32_t a7
#define RNL_AM_P9  RNL_AM_P8, int32_t a8
#define RNL_AM_P10 RNL_AM_P9, int32_t a9
#define RNL_AM_P11 RNL_AM_P10, int32_t a10
#define RNL_AM_P12 RNL_AM_P11, int32_t a11
#define RNL_AM_P13 RNL_AM_P12, int32_t a12
#define RNL_AM_P14 RNL_AM_P13, int32_t a13
#define RNL_AM_P15 RNL_AM_P14, int32_t a14
#define RNL_AM_P16 RNL_AM_P15, int32_t a15
#define RNL_AM_W0  0
#define RNL_AM_W1  a0
#define RNL_AM_W2  RNL_AM_W1, a1
#define RNL_AM_W3  RNL_AM_W2, a2
#define RNL_AM_W4  RNL_AM_W3, a3
#define RNL_AM_W5  RNL_AM_W4, a4
#define RNL_AM_W6  RNL_AM_W5, a5
#define RNL_AM_W7  RNL_AM_W6, a6
#define RNL_AM_W8  RNL_AM_W7, a7
#define RNL_AM_W9  RNL_AM_W8, a8
#define RNL_AM_W10 RNL_AM_W9, a9
#define RNL_AM_W11 RNL_AM_W10, a10
#define RNL_AM_W12 RNL_AM_W11, a11
#define RNL_AM_W13 RNL_AM_W12, a12
#define RNL_AM_W14 RNL_AM_W13, a13
#define RNL_AM_W15 RNL_AM_W14, a14
#define RNL_AM_W16 RNL_AM_W15, a15
/* The calls with n arguments: each puts them into an array and hands that to the general one. */
#define RNL_AM_CALLS(n) \
    static inline int AM_Request##n(ep_t ep, int index, handler_t h RNL_AM_P##n) \
    { \
        const int32_t w[] = {RNL_AM_W##n}; \
        return rnl_am_request(ep, index, h, n, w); \
    } \
    static inline int AM_RequestI##n(ep_t ep, int index, handler_t h, const void *src, size_t nbytes RNL_AM_P##n) \
    { \
        const int32_t w[] = {RNL_AM_W##n}; \
        return rnl_am_request_i(ep, index, h, src, nbytes, n, w); \
    } \
    static inline int AM_RequestXfer##n(ep_t ep, int index, uintptr_t dest_offset, handler_t h, const void *src, \
                                        size_t nbytes RNL_AM_P##n) \
    { \
        const int32_t w[] = {RNL_AM_W##n}; \
        return rnl_am_request_xfer(ep, index, dest_offset, h, src, nbytes, 0, n, w); \
    } \
    static inline int AM_RequestXferAsync##n(ep_t ep, int index, uintptr_t dest_offset, handler_t h, const void *src, \
                                             size_t nbytes RNL_AM_P##n) \
    { \
        const int32_t w[] = {RNL_AM_W##n}; \
        return rnl_am_request_xfer(ep, index, dest_offset, h, src, nbytes, 1, n, w); \
    } \
    static inline int AM_GetXfer##n(ep_t ep, int index, uintptr_t source_offset, handler_t h, uintptr_t dest_offset, \
                                    size_t nbytes RNL_AM_P##n) \
    { \
        const int32_t w[] = {RNL_AM_W##n}; \
        return rnl_am_get_xfer(ep, index, source_offset, h, dest_offset, nbytes, 0, n, w); \
    } \
    static inline int AM_GetXferAsync##n(ep_t ep, int index, uintptr_t source_offset, handler_t h, \
                                         uintptr_t dest_offset, size_t nbytes RNL_AM_P##n) \
    { \
        const int32_t w[] = {RNL_AM_W##n}; \
        return rnl_am_get_xfer(ep, index, source_offset, h, dest_offset, nbytes, 1, n, w); \
    } \
    static inline int AM_Reply##n(void *token, handler_t h RNL_AM_P##n) \
    { \
        const int32_t w[] = {RNL_AM_W##n}; \
        return rnl_am_reply(token, h, n, w); \
    } \
    static inline int AM_ReplyI##n(void *token, handler_t h, const void *src, size_t nbytes RNL_AM_P##n) \
    { \
        const int32_t w[] = {RNL_AM_W##n}; \
        return rnl_am_reply_i(token, h, src, nbytes, n, w); \
    } \
    static inline int AM_ReplyXfer##n(void *token, uintptr_t dest_offset, handler_t h, const void *src, \
                                      size_t nbytes RNL_AM_P##n) \
    { \
        const int32_t w[] = {RNL_AM_W##n}; \
        return rnl_am_reply_xfer(token, dest_offset, h, src, nbytes, n, w); \
    }
RNL_AM_CALLS(0) RNL_AM_CALLS(1) RNL_AM_CALLS(2) RNL_AM_CALLS(3) RNL_AM_CALLS(4) RNL_AM_CALLS(5) RNL_AM_CALLS(6)
RNL_AM_CALLS(7) RNL_AM_CALLS(8) RNL_AM_CALLS(9) RNL_AM_CALLS(10) RNL_AM_CALLS(11) RNL_AM_CALLS(12) RNL_AM_CALLS(13)
RNL_AM_CALLS(14) RNL_AM_CALLS(15) RNL_AM_CALLS(16)
/* clang-format on */

#ifdef __cplusplus
}
#endif
#endif
