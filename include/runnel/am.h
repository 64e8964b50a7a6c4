/* SPDX-License-Identifier: BSD-3-Clause
 *
 * am.h - Active Messages 2 (Mainwaring and Culler, "Active Message Applications Programming Interface and Communication
 * Subsystem Organization", 1996; Bonachea and Hettena, "AMUDP", sections 3 and 6.4) on runnel.h.
 *
 * An endpoint has a name, a tag, a memory segment, a table of 256 handlers and a table of translations; an index into
 * the translations names the endpoint that a message is sent to. A request runs a handler there, which may reply once.
 * A message that cannot be delivered comes back and runs handler 0 of the endpoint that sent it, with the reason. Each
 * message does exactly one of the two, exactly once. Messages are not ordered.
 *
 * A bundle is a set of endpoints that are polled together. It belongs to one thread (AM_SEQ), or any thread may call
 * (AM_PAR). All bundles of a process share one runnel endpoint, the rank of the process in the job, and a call for one
 * of them takes in the messages of all. Two threads that want to share nothing therefore need a rank each
 * (AM_AllocateBundleOn). A second bundle on a rank, and the first AM_PAR one, is allocated while no other thread calls
 * for that rank.
 *
 * Every function returns AM_OK or one of AM_ERR_...; rnl_last_error() then holds one sentence: what was asked, what the
 * limit is, and what to change. The functions are named rnl_am_...; programs use the names of the specification,
 * which a table near the end gives them: AM_Poll for rnl_am_poll.
 * Unless its comment says otherwise, a function does not block and runs no handler, any thread may call it for an
 * AM_PAR bundle, and it is allowed in handlers. Read this file in this order: Request, Poll, Reply; AllocateEndpoint,
 * Map, SetHandler; the rest. */
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
/* The global name of an endpoint, 16 bytes: programs copy and send it freely and compare it with AM_NameEqual. `zero`
 * is zero. */
typedef struct {
    uint32_t rank;       /* rank of the endpoint's process in the job */
    uint32_t generation; /* tells apart all endpoints that ever had that number; 0 = the one that has it now */
    uint16_t number;     /* number in its process: the lowest free one, so the first allocated endpoint has 0 */
    uint16_t zero[3];
} en_t;
/* Any handler. A handler of M arguments is void h(void *token, int32_t a0, ... aM-1); that of a medium or bulk message
 * is void h(void *token, void *buf, size_t nbytes, int32_t a0, ...); handler 0 is an AM_returned. */
typedef void (*rnl_am_fn)(void);
/* Handler 0: takes a returned message. status is one of AM_EBAD..., opcode says what the message was (AM_REQUEST_M
 * ...), and AM_GetTokenInfo of the token has everything but the payload. It must not send. */
typedef void AM_returned(int status, op_t opcode, void *token);

enum { AM_OK = 0, AM_ERR_NOT_INIT, AM_ERR_BAD_ARG, AM_ERR_RESOURCE, AM_ERR_NOT_SENT, AM_ERR_IN_USE };
/* AM_ERR_NOT_INIT: the call came before AM_Init, after AM_Terminate, or in a forked child. Only calls without a bundle
 *                  or endpoint return it: those are freed with their session and must not be used after it.
 * AM_ERR_BAD_ARG:  an argument is wrong.
 * AM_ERR_RESOURCE: the call is not allowed here (a request, a poll or a wait in a handler, a second reply), can never
 *                  succeed (an asynchronous message too long to go at once), or memory or the system failed.
 * AM_ERR_NOT_SENT: an asynchronous message would have to wait now: poll and try again.
 * AM_ERR_IN_USE:   the translation is in use, or a handler would have to wait for bulk messages that are being written
 *                  to the segment. */

enum { AM_SEQ = 0, AM_PAR = 1 };       /* types of a bundle, for AM_AllocateBundle */
enum { AM_NOEVENTS = 0, AM_NOTEMPTY }; /* event masks */

/* Reasons for which a message comes back. */
enum {
    AM_EBADARGS = 1,       /* more arguments than allowed, or fewer than the message says: its sender is not AM-2 */
    AM_EBADENTRY = 2,      /* the translation was not in use */
    AM_EBADTAG = 3,        /* the tag is not that of the receiver, whose tag may be AM_NONE */
    AM_EBADHANDLER = 4,    /* the receiver has no handler of that number; handler 0 cannot be called by a request */
    AM_EBADSEGOFF = 5,     /* the offset is beyond the receiver's segment */
    AM_EBADLENGTH = 6,     /* the offset is in the receiver's segment but the end is not, or the message is too long
                              for its kind */
    AM_EBADENDPOINT = 7,   /* no endpoint has that name, or none has it any more */
    AM_ECONGESTION = 8,    /* the receiver made no room for longer than AM_SetCongestionLimit allows */
    AM_EUNREACHABLE = 9,   /* the receiver's process is dead or cannot be reached; it may have run the handler */
    AM_EREPLYREJECTED = 10 /* a reply could not be delivered to the requester */
};
enum { AM_REQUEST_M = 1, AM_REQUEST_IM, AM_REQUEST_XFER_M, AM_REPLY_M, AM_REPLY_IM, AM_REPLY_XFER_M, AM_GET_XFER_M };

enum {
    RNL_AM_SHORT = 16,        /* most arguments of a message */
    RNL_AM_MEDIUM = 65000,    /* most bytes of a medium message, a bulk reply or a get */
    RNL_AM_LONG = 1 << 30,    /* most bytes of a bulk request */
    RNL_AM_ASYNC = 256 << 10, /* most bytes of an asynchronous bulk request; longer ones are AM_ERR_RESOURCE */
    RNL_AM_HANDLERS = 256,
    RNL_AM_TRANSLATIONS = 256, /* size of a new table */
    RNL_AM_TRANSLATIONS_MAX = 1 << 20,
    RNL_AM_ENDPOINTS = 65535 /* most endpoints of a rank */
};

/* ---- requests: not in handlers ----
 *
 * AM_RequestM(ep, index, handler, a0 ... aM-1) and its variants, M = 0 to 16, are inline functions at the end of this
 * file; the functions here take the arguments as an array. `index` names the receiver in ep's translations. A request
 * sends, then polls (so handlers may run), and waits for room while it runs handlers, sleeping if that takes long. The
 * memory passed in belongs to the caller again on return. To another host, requests that follow one that is not yet
 * acknowledged leave together: at the next poll, at each 32nd request, or when a datagram is full; a program that then
 * does something else for long polls once. AM_OK means that the handler runs at the receiver once, or handler 0 here
 * (it may have run already). AM_ERR_BAD_ARG: an index outside the table, too many arguments or too many bytes;
 * AM_ERR_RESOURCE, AM_ERR_NOT_INIT. */

/* Short request: arguments only. */
RNL_PUBLIC int rnl_am_request(ep_t ep, int index, handler_t handler, int numargs, const int32_t *args);
/* Medium request: also sends nbytes from src, which the handler gets in an 8-byte aligned buffer that is its own until
 * it returns. */
RNL_PUBLIC int rnl_am_request_i(ep_t ep, int index, handler_t handler, const void *src, size_t nbytes, int numargs,
                                const int32_t *args);
/* Bulk request: writes nbytes from src to dest_offset in the receiver's segment, where its handler finds them. With
 * async != 0 the call neither waits nor polls. AM_ERR_NOT_SENT: try again later; AM_ERR_RESOURCE: never
 * (rnl_last_error() has the limit). */
RNL_PUBLIC int rnl_am_request_xfer(ep_t ep, int index, uintptr_t dest_offset, handler_t handler, const void *src,
                                   size_t nbytes, int async, int numargs, const int32_t *args);
/* Get: fetches nbytes from source_offset of the receiver's segment to dest_offset of ep's own, then runs the handler at
 * ep as that of a bulk reply. No handler runs at the receiver, but somebody has to poll there. */
RNL_PUBLIC int rnl_am_get_xfer(ep_t ep, int index, uintptr_t source_offset, handler_t handler, uintptr_t dest_offset,
                               size_t nbytes, int async, int numargs, const int32_t *args);

/* Runs the handlers of messages that have arrived, for all bundles of the rank. Never blocks. AM_ERR_RESOURCE: the call
 * came in a handler, or a message waits for memory. AM_ERR_NOT_SENT: a message came back to an endpoint whose handler 0
 * is not set. The error is returned once for each such message, and nothing else is lost. */
RNL_PUBLIC int rnl_am_poll(eb_t bundle);

/* ---- replies: in the handler of a request, once, by the thread that runs it ----
 *
 * These functions are as the requests above, but send to the requester. They never wait, since room was reserved. The
 * handler of a reply must not send. AM_ERR_RESOURCE: not in a request's handler, or a second reply. */

/* Short reply: arguments only. */
RNL_PUBLIC int rnl_am_reply(void *token, handler_t handler, int numargs, const int32_t *args);
/* Medium reply: also sends nbytes from src. */
RNL_PUBLIC int rnl_am_reply_i(void *token, handler_t handler, const void *src, size_t nbytes, int numargs,
                              const int32_t *args);
/* Bulk reply: writes up to RNL_AM_MEDIUM bytes to dest_offset in the requester's segment. */
RNL_PUBLIC int rnl_am_reply_xfer(void *token, uintptr_t dest_offset, handler_t handler, const void *src, size_t nbytes,
                                 int numargs, const int32_t *args);

/* ---- tokens: in a handler, until it returns ---- */

/* Gets the endpoint that sent the message; in handler 0, the endpoint that it was sent to. */
RNL_PUBLIC int rnl_am_get_source_endpoint(void *token, en_t *name);
/* Gets the endpoint whose handler runs. */
RNL_PUBLIC int rnl_am_get_dest_endpoint(void *token, ep_t *ep);
/* Gets the tag that let the message in. For a reply or a returned message this is the endpoint's own tag, since having
 * sent a request is what lets a reply in. */
RNL_PUBLIC int rnl_am_get_msg_tag(void *token, tag_t *tag);
struct rnl_am_token_info {
    op_t opcode; /* AM_REQUEST_M ...; AM_GET_XFER_M for the reply to a get */
    int status;  /* in handler 0, the reason; else 0 */
    int index;   /* in handler 0 of a request, the translation it was sent by; else -1 */
    int numargs;
    handler_t handler; /* in handler 0, the handler that the message was for */
    size_t nbytes;     /* bytes of payload; in handler 0, those that the message had */
    uintptr_t dest_offset;
    int32_t args[RNL_AM_SHORT];
};
/* Gets everything that a token holds. */
RNL_PUBLIC int rnl_am_get_token_info(void *token, struct rnl_am_token_info *info);

/* ---- events ---- */

/* Runs the handlers of arriving messages, and sleeps until a message for one of the bundle's endpoints has been
 * handled, here or by another thread, since the last AM_Poll or AM_WaitSema of the bundle began. The event mask must
 * have AM_NOTEMPTY, and keeps it. Not allowed in handlers. AM_ERR_BAD_ARG: the mask is AM_NOEVENTS, so the call would
 * sleep for ever. Other errors are those of AM_Poll. */
RNL_PUBLIC int rnl_am_wait_sema(eb_t bundle);
/* Waits as AM_WaitSema does, but at most timeout_ns (negative: no limit). AM_ERR_NOT_SENT: nothing came. */
RNL_PUBLIC int rnl_am_wait_sema_for(eb_t bundle, int64_t timeout_ns);
/* Sets the event mask: AM_NOEVENTS, the initial value, or AM_NOTEMPTY. */
RNL_PUBLIC int rnl_am_set_event_mask(eb_t bundle, int mask);
/* Gets the event mask. */
RNL_PUBLIC int rnl_am_get_event_mask(eb_t bundle, int *mask);

/* ---- translations ---- */

/* Makes entry index name `name`; requests by that entry bring `tag`. Allowed at any time. AM_ERR_IN_USE: the entry is
 * in use; unmap it first. AM_ERR_BAD_ARG: the index is outside the table, or the name is not of this job. */
RNL_PUBLIC int rnl_am_map(ep_t ep, int index, en_t name, tag_t tag);
/* Maps the lowest free entry. AM_ERR_RESOURCE: the table is full; AM_SetNumTranslations grows it. */
RNL_PUBLIC int rnl_am_map_any(ep_t ep, int *index, en_t name, tag_t tag);
/* Frees an entry. Messages that were sent by it are still delivered. AM_ERR_BAD_ARG: the entry was not in use. */
RNL_PUBLIC int rnl_am_unmap(ep_t ep, int index);
/* Returns AM_OK if the entry is in use, and AM_ERR_RESOURCE if not. */
RNL_PUBLIC int rnl_am_get_translation_inuse(ep_t ep, int index);
/* Gets the tag of an entry. AM_ERR_BAD_ARG: the entry is not in use. */
RNL_PUBLIC int rnl_am_get_translation_tag(ep_t ep, int index, tag_t *tag);
/* Gets the name in an entry. AM_ERR_BAD_ARG: the entry is not in use. */
RNL_PUBLIC int rnl_am_get_translation_name(ep_t ep, int index, en_t *name);
/* Gives an entry in use another tag. Extension. */
RNL_PUBLIC int rnl_am_set_translation_tag(ep_t ep, int index, tag_t tag);
/* Gets the number of entries of the table, initially 256. */
RNL_PUBLIC int rnl_am_get_num_translations(ep_t ep, int *entries);
/* Grows or shrinks the table. AM_ERR_RESOURCE: more than RNL_AM_TRANSLATIONS_MAX entries, or no memory; AM_ERR_IN_USE:
 * an entry in use would be lost. */
RNL_PUBLIC int rnl_am_set_num_translations(ep_t ep, int entries);
static inline int AM_MaxNumTranslations(int *entries)
{
    *entries = RNL_AM_TRANSLATIONS_MAX;
    return AM_OK;
}
/* Hints how many endpoints and outstanding requests there will be, so that memory is made ready. Allowed at any time,
 * any number of times. AM_ERR_BAD_ARG: a number is below 1. */
RNL_PUBLIC int rnl_am_set_expected_resources(ep_t ep, int n_endpoints, int n_outstanding);

/* ---- handlers ---- */

/* Sets or replaces a handler at any time; NULL removes it. Handler 0, an AM_returned, takes returned messages. */
RNL_PUBLIC int rnl_am_set_handler(ep_t ep, handler_t handler, rnl_am_fn fn);
/* Sets the lowest free handler from 1 up. AM_ERR_RESOURCE: none is free. */
RNL_PUBLIC int rnl_am_set_handler_any(ep_t ep, handler_t *handler, rnl_am_fn fn);
/* Gets a handler; NULL = none. Extension. */
RNL_PUBLIC int rnl_am_get_handler(ep_t ep, handler_t handler, rnl_am_fn *fn);
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
/* Functions that are called around each handler of ep, by the thread that runs it, for measurements and for libraries
 * above. Either may be NULL, and they must not send. buf is NULL for a message that has none. Extension. */
struct rnl_am_hooks {
    void (*before)(void *arg, void *token, const struct rnl_am_token_info *info, void *buf);
    void (*after)(void *arg, void *token, const struct rnl_am_token_info *info, void *buf);
    void *arg;
};
/* Sets the hooks of ep. *hooks is copied; NULL removes them. */
RNL_PUBLIC int rnl_am_set_hooks(ep_t ep, const struct rnl_am_hooks *hooks);

/* ---- tags, segments ---- */

/* Sets the tag that a request must bring, initially AM_NONE. It holds for messages that are taken in from now on. */
RNL_PUBLIC int rnl_am_set_tag(ep_t ep, tag_t tag);
/* Gets the tag. */
RNL_PUBLIC int rnl_am_get_tag(ep_t ep, tag_t *tag);
/* Sets the memory that bulk messages write to and that gets read from; initially none. With addr NULL and a length,
 * offsets are addresses. May wait, running handlers, for bulk messages that are being written into the old segment; in
 * a handler that is AM_ERR_IN_USE instead. */
RNL_PUBLIC int rnl_am_set_seg(ep_t ep, void *addr, uintptr_t nbytes);
/* Gets the segment. */
RNL_PUBLIC int rnl_am_get_seg(ep_t ep, void **addr, uintptr_t *nbytes);
/* A segment may be any memory of the process. */
static inline int AM_MaxSegLength(uintptr_t *nbytes)
{
    *nbytes = UINTPTR_MAX;
    return AM_OK;
}

/* ---- set-up and end: not in handlers ---- */

/* Makes an endpoint of the bundle, and its name. It has tag AM_NONE and no segment, handlers or translations.
 * AM_ERR_RESOURCE: no memory, or too many endpoints. */
RNL_PUBLIC int rnl_am_allocate_endpoint(eb_t bundle, ep_t *ep, en_t *name);
/* Frees an endpoint. Messages on the way to it come back to their senders. May wait as AM_SetSeg does. */
RNL_PUBLIC int rnl_am_free_endpoint(ep_t ep);
/* Moves an endpoint to another bundle of the same rank; it keeps its name. AM_ERR_BAD_ARG: it is not in `from`;
 * AM_ERR_RESOURCE: the two bundles have different ranks. */
RNL_PUBLIC int rnl_am_move_endpoint(ep_t ep, eb_t from, eb_t to);
/* Makes a bundle of type AM_SEQ or AM_PAR on the rank of this process in the job that started it, or else in a job of
 * one. Joins the job if that has not happened, which blocks. AM_ERR_RESOURCE: joining failed (rnl_last_error() has the
 * reason). */
RNL_PUBLIC int rnl_am_allocate_bundle(int type, eb_t *bundle);
/* Makes a bundle on a rank that the program opened: an endpoint of a hub for each thread, or one that the program also
 * uses for other messages, in whose calls handlers may then run. The rank must not be RNL_SHARED, since the bundle does
 * the locking. The bundle takes the rank's handlers RNL_AM_ID_FIRST to RNL_AM_ID_LAST. Free it before rnl_close.
 * Extension. */
RNL_PUBLIC int rnl_am_allocate_bundle_on(rnl_endpoint *rank, int type, eb_t *bundle);
enum { RNL_AM_ID_FIRST = 1000, RNL_AM_ID_LAST = 1002 };
/* Frees a bundle and its endpoints. */
RNL_PUBLIC int rnl_am_free_bundle(eb_t bundle);
/* Begins a session of this process; sessions nest. */
RNL_PUBLIC int rnl_am_init(void);
/* Ends a session. The last one frees all bundles, takes in what is on the way and leaves the job; as rnl_close does, it
 * waits for the other ranks to do the same. */
RNL_PUBLIC int rnl_am_terminate(void);

/* ---- names, ranks: extensions ---- */

/* Returns 1 if two names are of one endpoint, else 0. A generation of 0 equals any. */
RNL_PUBLIC int rnl_am_name_equal(en_t a, en_t b);
/* Returns the name of whichever endpoint has that number in that rank when a message arrives. SPMD programs begin with
 * it. */
static inline en_t AM_NameOf(unsigned rank, unsigned number)
{
    en_t name = {(uint32_t)rank, 0, (uint16_t)number, {0, 0, 0}};
    return name;
}
/* Gets the name of an endpoint of this process. */
RNL_PUBLIC int rnl_am_get_name(ep_t ep, en_t *name);
/* Gets the bundle of an endpoint. */
RNL_PUBLIC int rnl_am_get_bundle(ep_t ep, eb_t *bundle);
/* Returns the runnel endpoint below a bundle, for rnl_rank, rnl_size, rnl_peer and rnl_get_counters. */
RNL_PUBLIC rnl_endpoint *rnl_am_get_rank(eb_t bundle);
/* Sets how long a request may wait for room before it comes back with AM_ECONGESTION. 0, the initial value, means no
 * limit: a peer that lives makes room at last. */
RNL_PUBLIC int rnl_am_set_congestion_limit(ep_t ep, uint64_t limit_ns);
/* Takes back a rank of which the job has started another process after it died (rnl_peer: RNL_PEER_RETURNED), or that
 * was only silent. By then everything sent to the former process has come back. The names of its endpoints are invalid
 * from now on (AM_EBADENDPOINT); AM_NameOf's lead to the new process. Programs call this instead of rnl_readmit, which
 * would bypass AM. Not allowed in handlers. AM_ERR_NOT_SENT: its death is not fully handled yet: poll and try again.
 * AM_ERR_RESOURCE: there is no such process, or not yet. AM_ERR_BAD_ARG: the rank is wrong. Extension. */
RNL_PUBLIC int rnl_am_readmit(eb_t bundle, unsigned rank);

/* ---- the names of the specification ----
 *
 * Who defines RNL_AM_PREFIXED goes without them: amudp.h has the same ones. */
#ifndef RNL_AM_PREFIXED
#define AM_NONE                           ((tag_t)0) /* tag of an endpoint that lets no request in */
#define AM_ALL                            ((tag_t)1) /* lets all requests in; other tags must match */
#define AM_MaxShort()                     RNL_AM_SHORT
#define AM_MaxMedium()                    RNL_AM_MEDIUM
#define AM_MaxLong()                      RNL_AM_MEDIUM /* of requests and of replies */
#define AM_MaxLongRequest()               RNL_AM_LONG
#define AM_Poll                           rnl_am_poll
#define AM_GetSourceEndpoint              rnl_am_get_source_endpoint
#define AM_GetDestEndpoint                rnl_am_get_dest_endpoint
#define AM_GetMsgTag                      rnl_am_get_msg_tag
#define AM_GetTokenInfo                   rnl_am_get_token_info
#define AM_WaitSema                       rnl_am_wait_sema
#define AM_WaitSemaFor                    rnl_am_wait_sema_for
#define AM_SetEventMask                   rnl_am_set_event_mask
#define AM_GetEventMask                   rnl_am_get_event_mask
#define AM_Map                            rnl_am_map
#define AM_MapAny                         rnl_am_map_any
#define AM_UnMap                          rnl_am_unmap
#define AM_GetTranslationInuse            rnl_am_get_translation_inuse
#define AM_GetTranslationTag              rnl_am_get_translation_tag
#define AM_GetTranslationName             rnl_am_get_translation_name
#define AM_SetTranslationTag              rnl_am_set_translation_tag
#define AM_GetNumTranslations             rnl_am_get_num_translations
#define AM_SetNumTranslations             rnl_am_set_num_translations
#define AM_SetExpectedResources           rnl_am_set_expected_resources
#define AM_SetHandler(ep, handler, fn)    rnl_am_set_handler(ep, handler, (rnl_am_fn)(fn))
#define AM_SetHandlerAny(ep, handler, fn) rnl_am_set_handler_any(ep, handler, (rnl_am_fn)(fn))
#define AM_GetHandler                     rnl_am_get_handler
#define AM_MaxNumHandlers()               RNL_AM_HANDLERS
#define AM_SetHooks                       rnl_am_set_hooks
#define AM_SetTag                         rnl_am_set_tag
#define AM_GetTag                         rnl_am_get_tag
#define AM_SetSeg                         rnl_am_set_seg
#define AM_GetSeg                         rnl_am_get_seg
#define AM_AllocateEndpoint               rnl_am_allocate_endpoint
#define AM_FreeEndpoint                   rnl_am_free_endpoint
#define AM_MoveEndpoint                   rnl_am_move_endpoint
#define AM_AllocateBundle                 rnl_am_allocate_bundle
#define AM_AllocateBundleOn               rnl_am_allocate_bundle_on
#define AM_FreeBundle                     rnl_am_free_bundle
#define AM_Init                           rnl_am_init
#define AM_Terminate                      rnl_am_terminate
#define AM_NameEqual                      rnl_am_name_equal
#define AM_GetName                        rnl_am_get_name
#define AM_GetBundle                      rnl_am_get_bundle
#define AM_GetRank                        rnl_am_get_rank
#define AM_SetCongestionLimit             rnl_am_set_congestion_limit
#define AM_Readmit                        rnl_am_readmit
#endif

/* ---- the calls for each number of arguments ---- */

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
/* The calls with n arguments: each puts them into an array and calls the function that takes an array. */
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
