/* SPDX-License-Identifier: BSD-3-Clause
 *
 * core.h - runnel/am.h and amudp.h side by side. Both have the names of AM-2, with different types behind them: here
 * those of am.h are rnl_am_eb and so on, and its functions go by their own names, rnl_am_...; what is called AM_Poll or
 * en_t is AMUDP's. The values that both have are the same ones, which api.c asserts. */
#ifndef RNL_AMUDP_CORE_H
#define RNL_AMUDP_CORE_H

#if defined(RNL_AM_H) || defined(AMUDP_H)
#error "core.h includes both headers itself"
#endif

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
#undef AM_NONE
#undef AM_ALL
#undef AM_MaxShort
#undef AM_MaxMedium
#undef AM_MaxLong
#undef AM_MaxLongRequest
#undef AM_Poll
#undef AM_GetSourceEndpoint
#undef AM_GetDestEndpoint
#undef AM_GetMsgTag
#undef AM_GetTokenInfo
#undef AM_WaitSema
#undef AM_WaitSemaFor
#undef AM_SetEventMask
#undef AM_GetEventMask
#undef AM_Map
#undef AM_MapAny
#undef AM_UnMap
#undef AM_GetTranslationInuse
#undef AM_GetTranslationTag
#undef AM_GetTranslationName
#undef AM_SetTranslationTag
#undef AM_GetNumTranslations
#undef AM_SetNumTranslations
#undef AM_SetExpectedResources
#undef AM_SetHandler
#undef AM_SetHandlerAny
#undef AM_GetHandler
#undef AM_MaxNumHandlers
#undef AM_SetHooks
#undef AM_SetTag
#undef AM_GetTag
#undef AM_SetSeg
#undef AM_GetSeg
#undef AM_AllocateEndpoint
#undef AM_FreeEndpoint
#undef AM_MoveEndpoint
#undef AM_AllocateBundle
#undef AM_AllocateBundleOn
#undef AM_FreeBundle
#undef AM_Init
#undef AM_Terminate
#undef AM_NameEqual
#undef AM_GetName
#undef AM_GetBundle
#undef AM_GetRank
#undef AM_SetCongestionLimit
#undef AM_Readmit
#undef AM_MaxNumTranslations
#undef AM_GetNumHandlers
#undef AM_SetNumHandlers
#undef AM_MaxSegLength

#include "amudp.h"
#include "amudp_spmd.h"

#endif
