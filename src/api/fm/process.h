/* SPDX-License-Identifier: BSD-3-Clause
 *
 * process.h - what FM 1.1 and FM 2.x share. FM has one endpoint per process and its functions cannot return errors, so
 * this state belongs to the process and not to an endpoint; iface.c registers it. */
#ifndef RNL_API_FM_PROCESS_H
#define RNL_API_FM_PROCESS_H

#include <stdarg.h>

#include "base/iface.h"
#include "stream/stream.h"

enum { RNL_FM_EXIT_STATUS = 70, RNL_FM_HANDLERS = 1024 };
enum rnl_fm_counter { RNL_FM_ERRORS, RNL_FM_COUNTERS };

struct rnl_fm {
    struct rnl_endpoint *ep;                                             /* NULL before initialize and after finalize */
    struct rnl_endpoint *here;                                           /* `ep`, or rnl_fm_nowhere if that is NULL */
    void (*error)(int status, unsigned long peer, const char *sentence); /* NULL = the default */
    bool missing; /* the error handler has been called because there is no endpoint */
    int quiet, threads, poll_on_send;
    unsigned handlers;
    int64_t rank; /* this process's rank, kept after finalize; -1 before the first initialize */
    uint32_t size;
    char name[64];
    uint64_t *count; /* by enum rnl_fm_counter, in the page of `ep`; NULL while there is none */
};
extern struct rnl_fm rnl_fm __attribute__((visibility("hidden"))); /* hidden, so reached without the GOT */

extern struct rnl_endpoint rnl_fm_nowhere; /* an endpoint without peers, so that fast paths need no check for NULL */
#define RNL_FM_NEW                                                       \
    {                                                                    \
        .handlers = RNL_FM_HANDLERS, .rank = -1, .here = &rnl_fm_nowhere \
    }
/* Makes ep the endpoint of the process; NULL = it has none. */
RNL_INLINE void rnl_fm_be(struct rnl_endpoint *ep)
{
    rnl_fm.ep = ep;
    rnl_fm.here = ep ? ep : &rnl_fm_nowhere;
}

extern const struct rnl_iface rnl_fm_iface;

/* Sets a parameter with a key of runnel/fm.h. Returns 0 if the key is not one of them. */
bool rnl_fm_parameter(int key, va_list args);
void rnl_fm_initialize(void);
void rnl_fm_finalize(void);
/* Calls the error handler with the sentence of rnl_last_error(), about `peer` (or ~0ul). Returns if the program is to
 * go on; the default handler may end the process. */
RNL_COLD void rnl_fm_error(int status, unsigned long peer);
/* Handles the error of a send. Returns true if the peer is dead, which has then been reported: the message is to be
 * discarded. */
RNL_COLD bool rnl_fm_send_failed(int status, unsigned long peer);
/* Reports that `function` was called without an endpoint, and ends the process. Does not return. */
RNL_COLD struct rnl_endpoint *rnl_fm_missing(const char *function);
RNL_INLINE struct rnl_endpoint *rnl_fm_endpoint(const char *function)
{
    struct rnl_endpoint *ep = rnl_fm.ep;
    return RNL_LIKELY(ep) ? ep : rnl_fm_missing(function);
}
/* FM_nodeid and FM_numnodes; they also work after finalize. */
unsigned long rnl_fm_nodeid(void);
unsigned long rnl_fm_numnodes(void);
unsigned long rnl_fm_register(unsigned long id, const struct rnl_handler *h);
int rnl_fm_wait(long timeout_us);

#endif
