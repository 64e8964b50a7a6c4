/* SPDX-License-Identifier: BSD-3-Clause
 *
 * process.h - what FM 1.1 and FM 2.x share: FM has one endpoint per process and no way to return an error. The only
 * mutable state of the library that hangs from no endpoint; the FM interfaces ask for it. */
#ifndef RNL_FM_PROCESS_H
#define RNL_FM_PROCESS_H

#include <stdarg.h>

#include "stream/stream.h"

enum { RNL_FM_EXIT_STATUS = 70 };

struct rnl_fm {
    struct rnl_endpoint *ep;                                             /* NULL before initialize and after finalize */
    struct rnl_endpoint *here;                                           /* it, or rnl_fm_nowhere */
    void (*error)(int status, unsigned long peer, const char *sentence); /* NULL = the default */
    int quiet, threads, poll_on_send;
    unsigned handlers;
    int64_t rank; /* of the job, or of the last one after finalize; -1 while it is not known */
    uint32_t size;
    char name[64];
};
extern struct rnl_fm rnl_fm __attribute__((visibility("hidden"))); /* found with no table of offsets */

extern struct rnl_endpoint rnl_fm_nowhere; /* reaches nobody: for who does not ask whether there is one */
#define RNL_FM_NEW                                            \
    {                                                         \
        .handlers = 1024, .rank = -1, .here = &rnl_fm_nowhere \
    }
/* NULL: none. */
RNL_INLINE void rnl_fm_be(struct rnl_endpoint *ep)
{
    rnl_fm.ep = ep;
    rnl_fm.here = ep ? ep : &rnl_fm_nowhere;
}

/* How the default error handler speaks and ends the program: NULL = standard error and exit. The simulator has many
 * programs in one process, and keeps one struct rnl_fm for each. */
extern void (*rnl_fm_says)(const char *line);
extern void (*rnl_fm_exits)(int status);

/* Keys of runnel/fm.h; 0 = not one of them. */
int rnl_fm_parameter(int key, va_list args);
void rnl_fm_initialize(void);
void rnl_fm_finalize(void);
/* Tells the error handler what rnl_last_error() says, about `peer` (or ~0ul). Returns if the program is to go on. */
RNL_COLD void rnl_fm_error(int status, unsigned long peer);
/* Status of a send to a peer. 1 = swallow: the peer is dead and that was told. */
RNL_COLD int rnl_fm_send_failed(int status, unsigned long peer);
/* The endpoint, or the program is told that `function` comes before FM_initialize, and ends. */
RNL_COLD struct rnl_endpoint *rnl_fm_missing(const char *function);
RNL_INLINE struct rnl_endpoint *rnl_fm_endpoint(const char *function)
{
    struct rnl_endpoint *ep = rnl_fm.ep;
    return RNL_LIKELY(ep != NULL) ? ep : rnl_fm_missing(function);
}
/* FM_nodeid and FM_numnodes: valid from the first initialize on. */
unsigned long rnl_fm_nodeid(void);
unsigned long rnl_fm_numnodes(void);
unsigned long rnl_fm_register(unsigned long id, const struct rnl_handler *h);
int rnl_fm_wait(long timeout_us);

#endif
