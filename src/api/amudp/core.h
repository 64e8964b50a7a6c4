/* SPDX-License-Identifier: BSD-3-Clause
 *
 * core.h - runnel/am.h and amudp.h side by side. Both have the names of AM-2, with different types behind them: here
 * those of am.h are rnl_am_eb and so on, and its functions go by their own names, rnl_am_...; what is called AM_Poll or
 * en_t is AMUDP's. The values that both have are the same ones, which endpoint.c asserts. */
#ifndef RNL_API_AMUDP_CORE_H
#define RNL_API_AMUDP_CORE_H

#define RNL_AM_PREFIXED
#define eb_t                  rnl_am_eb
#define ep_t                  rnl_am_ep
#define tag_t                 rnl_am_tag
#define handler_t             rnl_am_handler
#define op_t                  rnl_am_op
#define en_t                  rnl_am_en
#define AM_SEQ                RNL_AM_SEQ
#define AM_PAR                RNL_AM_PAR
#define AM_NOEVENTS           RNL_AM_NOEVENTS
#define AM_NOTEMPTY           RNL_AM_NOTEMPTY
#define AM_MaxNumTranslations rnl_am_max_num_translations
#define AM_GetNumHandlers     rnl_am_get_num_handlers
#define AM_SetNumHandlers     rnl_am_set_num_handlers
#define AM_MaxSegLength       rnl_am_max_seg_length

#include "runnel/am.h"

#undef eb_t
#undef ep_t
#undef tag_t
#undef handler_t
#undef op_t
#undef en_t
#undef AM_SEQ
#undef AM_PAR
#undef AM_NOEVENTS
#undef AM_NOTEMPTY
#undef AM_MaxNumTranslations
#undef AM_GetNumHandlers
#undef AM_SetNumHandlers
#undef AM_MaxSegLength

#include "amudp.h"
#include "amudp_spmd.h"

#endif
