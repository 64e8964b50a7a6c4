/* SPDX-License-Identifier: BSD-3-Clause
 *
 * amudp_const.h - the constants of AMUDP 3.21's interface, and which of its two configurations a program is compiled
 * for. Part of amudp.h; a program that must not see AM's names includes it alone.
 *
 * The values are those that programs written for AMUDP have compiled into them, so none of them ever changes. */
#ifndef AMUDP_CONST_H
#define AMUDP_CONST_H

#include <stdint.h>

#ifndef AMUDP
#define AMUDP 1
#endif

#define AMX_STRINGIFY_(x) #x
#define AMX_STRINGIFY(x)  AMX_STRINGIFY_(x)
#define AMX_CONCAT_(a, b) a##b
#define AMX_CONCAT(a, b)  AMX_CONCAT_(a, b)

#define AMUDP_LIBRARY_VERSION_MAJOR 3
#define AMUDP_LIBRARY_VERSION_MINOR 21
#define AMUDP_LIBRARY_VERSION       AMUDP_LIBRARY_VERSION_MAJOR.AMUDP_LIBRARY_VERSION_MINOR
#define AMUDP_LIBRARY_VERSION_STR   AMX_STRINGIFY(AMUDP_LIBRARY_VERSION)

/* -DAMUDP_DEBUG=1 or -DAMUDP_NDEBUG=1, or what the client says of itself; nothing is the second. Only the names of two
 * functions depend on it, and this library has both: it checks in either. */
#if defined(AMUDP_DEBUG) && defined(AMUDP_NDEBUG)
#error "define one of AMUDP_DEBUG and AMUDP_NDEBUG, not both"
#endif
#if !defined(AMUDP_DEBUG) && !defined(AMUDP_NDEBUG)
#if defined(GASNET_DEBUG) || defined(AMX_DEBUG)
#define AMUDP_DEBUG 1
#else
#define AMUDP_NDEBUG 1
#endif
#endif
#undef AMX_DEBUG
#undef AMX_NDEBUG
#ifdef AMUDP_DEBUG
#define AMX_DEBUG          1
#define AMUDP_DEBUG_CONFIG _DEBUG
#else
#define AMX_NDEBUG         1
#define AMUDP_DEBUG_CONFIG _NDEBUG
#endif

/* ---- limits ---- */

#define AMUDP_MAX_SHORT            16    /* arguments of a message */
#define AMUDP_MAX_LONG             65000 /* bytes */
#define AMUDP_MAX_MEDIUM           AMUDP_MAX_LONG
#define AMUDP_MAX_NUMHANDLERS      256
#define AMUDP_INIT_NUMTRANSLATIONS 256
#define AMUDP_MAX_NUMTRANSLATIONS  (1U << 20)
#define AMUDP_MAX_SEGLENGTH        ((uintptr_t)-1)
#define AMUDP_MAX_BUNDLES          255
#define AMUDP_MAX_NETWORKDEPTH     1024
#define AMUDP_MAX_RECVDEPTH        65534
#define AMUDP_MAX_SPMDPROCS        AMUDP_MAX_NUMTRANSLATIONS

#ifndef AMUDP_COLLECT_STATS
#define AMUDP_COLLECT_STATS 1
#endif
#ifndef AMUDP_COLLECT_LATENCY_STATS
#define AMUDP_COLLECT_LATENCY_STATS 1
#endif

#define AM_MaxShort()            AMUDP_MAX_SHORT
#define AM_MaxMedium()           AMUDP_MAX_MEDIUM
#define AM_MaxLong()             AMUDP_MAX_LONG
#define AM_MaxNumHandlers()      AMUDP_MAX_NUMHANDLERS
#define AM_GetNumHandlers(ep, n) ((ep) ? (*(n) = AMUDP_MAX_NUMHANDLERS, AM_OK) : AM_ERR_BAD_ARG)
#define AM_SetNumHandlers(ep, n) ((ep) ? ((n) == AMUDP_MAX_NUMHANDLERS ? AM_OK : AM_ERR_RESOURCE) : AM_ERR_BAD_ARG)
#define AM_MaxNumTranslations(n) (*(n) = AMUDP_MAX_NUMTRANSLATIONS, AM_OK)

/* ---- values ---- */

/* Tags of an endpoint: takes no message, takes each message; any other takes those that carry the same one. */
#define AM_NONE 0
#define AM_ALL  1

/* What wakes AM_WaitSema. */
typedef enum { AM_NOEVENTS, AM_NOTEMPTY, AM_NUMEVENTMASKS } amudp_eventmask_t;

/* Kinds of bundles. */
typedef enum { AM_SEQ, AM_PAR, AM_NUM_BUNDLE_MODES } amudp_bundle_mode_t;

/* Results of the calls. */
#define AM_OK           0
#define AM_ERR_NOT_INIT 1
#define AM_ERR_BAD_ARG  2
#define AM_ERR_RESOURCE 3
#define AM_ERR_NOT_SENT 4
#define AM_ERR_IN_USE   5

/* What the message was that handler 0 gets back (op_t). */
#define AM_REQUEST_M      1
#define AM_REQUEST_IM     2
#define AM_REQUEST_XFER_M 3
#define AM_REPLY_M        4
#define AM_REPLY_IM       5
#define AM_REPLY_XFER_M   6

#endif
