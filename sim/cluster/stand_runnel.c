/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stand_runnel.c - this library's interfaces, bound to the functions themselves. What they keep for a process (FM's
 * endpoint, the last error) is swapped with the copies, so that they need not know. */
#include "sim/cluster/files.h"
#include "sim/cluster/inside.h"
#include "sim/cluster/stand.h"

#include "base/error.h"
#include "runnel/am.h"
#include "runnel/fm.h"

/* Names of fm1.h, which cannot be included beside fm.h. */
extern void FM1_send_4(unsigned long, unsigned long, int, int, int, int);
extern void FM1_send(unsigned long, unsigned long, const void *, unsigned long);
extern int FM1_extract(void);
extern unsigned long FM1_register_handler(unsigned long, void (*)(void *, unsigned));
extern void FM1_set_parameter(int, ...);
extern void FM1_initialize(void);
extern void FM1_finalize(void);
extern unsigned long FM1_nodeid(void);
extern unsigned long FM1_numnodes(void);

/* What is left of an endpoint when its rank dies is found by these. */
static int stand_rnl_open(rnl_endpoint **out, const struct rnl_options *opt)
{
    rnl_endpoint *ep;
    int status = rnl_open(&ep, opt);
    if (status == 0)
        rnl_guest_now->ep = *out = ep;
    return status;
}

static int stand_rnl_close(rnl_endpoint *ep)
{
    int status = rnl_close(ep);
    if (rnl_guest_now->env == NULL)
        rnl_guest_now->ep = NULL;
    return status;
}

static int stand_rnl_hub_new(unsigned size, rnl_hub **out)
{
    (void)size, (void)out;
    return rnl_fail(RNL_ERR_UNSUPPORTED, "a hub is for threads, and ranks of the virtual cluster have none: start more "
                                         "ranks (runnel sim -n)");
}

static void stand_rnl_hub_free(rnl_hub *hub)
{
    (void)hub; /* there is none */
}

#define LIBRARY(name)                 \
    {                                 \
#name, (void (*)(void))(name) \
    }
const struct rnl_stand rnl_stand_runnel[] = {
    RNL_STAND(rnl_open),
    RNL_STAND(rnl_close),
    RNL_STAND(rnl_hub_new),
    RNL_STAND(rnl_hub_free),
    LIBRARY(rnl_abort),
    LIBRARY(rnl_begin),
    LIBRARY(rnl_end),
    LIBRARY(rnl_extract),
    LIBRARY(rnl_fd),
    LIBRARY(rnl_flush),
    LIBRARY(rnl_get_counters),
    LIBRARY(rnl_get_limits),
    LIBRARY(rnl_handler_stream),
    LIBRARY(rnl_handler_whole),
    LIBRARY(rnl_here),
    LIBRARY(rnl_keep),
    LIBRARY(rnl_kept_data),
    LIBRARY(rnl_kept_free),
    LIBRARY(rnl_last_error),
    LIBRARY(rnl_on_death),
    LIBRARY(rnl_on_refused),
    LIBRARY(rnl_peer),
    LIBRARY(rnl_piece),
    LIBRARY(rnl_post),
    LIBRARY(rnl_rank),
    LIBRARY(rnl_readmit),
    LIBRARY(rnl_receive),
    LIBRARY(rnl_reply),
    LIBRARY(rnl_send),
    LIBRARY(rnl_size),
    LIBRARY(rnl_status_name),
    LIBRARY(rnl_version),
    LIBRARY(rnl_wait),
    LIBRARY(FM_begin_message),
    LIBRARY(FM_end_message),
    LIBRARY(FM_extract),
    LIBRARY(FM_fd),
    LIBRARY(FM_finalize),
    LIBRARY(FM_initialize),
    LIBRARY(FM_nodeid_of_endpoint),
    LIBRARY(FM_numnodes_of_endpoint),
    LIBRARY(FM_reallocate_credit),
    LIBRARY(FM_receive),
    LIBRARY(FM_register_handler),
    LIBRARY(FM_send_piece),
    LIBRARY(FM_set_parameter),
    LIBRARY(FM_wait),
    LIBRARY(FM1_extract),
    LIBRARY(FM1_finalize),
    LIBRARY(FM1_initialize),
    LIBRARY(FM1_nodeid),
    LIBRARY(FM1_numnodes),
    LIBRARY(FM1_register_handler),
    LIBRARY(FM1_send),
    LIBRARY(FM1_send_4),
    LIBRARY(FM1_set_parameter),
    LIBRARY(rnl_am_allocate_bundle),
    LIBRARY(rnl_am_allocate_bundle_on),
    LIBRARY(rnl_am_allocate_endpoint),
    LIBRARY(rnl_am_free_bundle),
    LIBRARY(rnl_am_free_endpoint),
    LIBRARY(rnl_am_get_bundle),
    LIBRARY(rnl_am_get_dest_endpoint),
    LIBRARY(rnl_am_get_event_mask),
    LIBRARY(rnl_am_get_handler),
    LIBRARY(rnl_am_get_msg_tag),
    LIBRARY(rnl_am_get_name),
    LIBRARY(rnl_am_get_num_translations),
    LIBRARY(rnl_am_get_rank),
    LIBRARY(rnl_am_get_seg),
    LIBRARY(rnl_am_get_source_endpoint),
    LIBRARY(rnl_am_get_tag),
    LIBRARY(rnl_am_get_token_info),
    LIBRARY(rnl_am_get_translation_inuse),
    LIBRARY(rnl_am_get_translation_name),
    LIBRARY(rnl_am_get_translation_tag),
    LIBRARY(rnl_am_get_xfer),
    LIBRARY(rnl_am_init),
    LIBRARY(rnl_am_map),
    LIBRARY(rnl_am_map_any),
    LIBRARY(rnl_am_move_endpoint),
    LIBRARY(rnl_am_name_equal),
    LIBRARY(rnl_am_poll),
    LIBRARY(rnl_am_readmit),
    LIBRARY(rnl_am_reply),
    LIBRARY(rnl_am_reply_i),
    LIBRARY(rnl_am_reply_xfer),
    LIBRARY(rnl_am_request),
    LIBRARY(rnl_am_request_i),
    LIBRARY(rnl_am_request_xfer),
    LIBRARY(rnl_am_set_congestion_limit),
    LIBRARY(rnl_am_set_event_mask),
    LIBRARY(rnl_am_set_expected_resources),
    LIBRARY(rnl_am_set_handler),
    LIBRARY(rnl_am_set_handler_any),
    LIBRARY(rnl_am_set_hooks),
    LIBRARY(rnl_am_set_num_translations),
    LIBRARY(rnl_am_set_seg),
    LIBRARY(rnl_am_set_tag),
    LIBRARY(rnl_am_set_translation_tag),
    LIBRARY(rnl_am_terminate),
    LIBRARY(rnl_am_unmap),
    LIBRARY(rnl_am_wait_sema),
    LIBRARY(rnl_am_wait_sema_for),
    RNL_STAND_END,
};
