/* SPDX-License-Identifier: BSD-3-Clause
 *
 * endpoint.c - bundles and endpoints: AMUDP's, each beside the core's one that does the work. */
#include "api/amudp/amudp_internal.h"

#include <assert.h>
#include <stdlib.h>

#define WRONG(code, ...) rnl_amudp_fail(code, __func__, __VA_ARGS__)
#define PASS_ON(object, what, call) \
    ((object) ? rnl_amudp_result(call, __func__) : WRONG(AM_ERR_BAD_ARG, "there is no " what))

/* The values that both interfaces have are the same, so they pass through unchanged. */
static_assert((int)RNL_AM_SEQ == (int)AM_SEQ && (int)RNL_AM_PAR == (int)AM_PAR, "");
static_assert((int)RNL_AM_NOEVENTS == (int)AM_NOEVENTS && (int)RNL_AM_NOTEMPTY == (int)AM_NOTEMPTY, "");
static_assert(AM_EBADARGS == EBADARGS && AM_EBADENTRY == EBADENTRY && AM_EBADTAG == EBADTAG, "");
static_assert(AM_EBADHANDLER == EBADHANDLER && AM_EBADSEGOFF == EBADSEGOFF && AM_EBADLENGTH == EBADLENGTH, "");
static_assert(AM_EBADENDPOINT == EBADENDPOINT && AM_ECONGESTION == ECONGESTION, "");
static_assert(AM_EUNREACHABLE == EUNREACHABLE && AM_EREPLYREJECTED == EREPLYREJECTED, "");
static_assert(AMUDP_MAX_MEDIUM == RNL_AM_MEDIUM && AMUDP_MAX_SHORT == RNL_AM_SHORT, "");
static_assert(AMUDP_INIT_NUMTRANSLATIONS == RNL_AM_TRANSLATIONS, "");
static_assert(AMUDP_MAX_NUMTRANSLATIONS == RNL_AM_TRANSLATIONS_MAX, "");
static_assert(sizeof(amudp_stats_t) == 320 && sizeof(amudp_spawnfn_desc_t) == 24, "programs have them compiled in");

static int sessions;

int AM_Init(void)
{
    int r = rnl_am_init();
    if (r == AM_OK)
        sessions++;
    return rnl_amudp_result(r, "AM_Init");
}

static void drop_endpoint(struct amudp_ep *ep)
{
    rnl_amudp_fault_free(ep);
    rnl_amudp_latency_free(ep);
    free(ep->table);
    free(ep);
}

static void drop_bundle(struct amudp_eb *eb)
{
    int held = rnl_am_hold();
    struct amudp_eb **at = &rnl_amudp_bundles;
    while (*at && *at != eb)
        at = &(*at)->next;
    if (*at)
        *at = eb->next;
    rnl_am_let_go(held);
    while (eb->first) {
        struct amudp_ep *ep = eb->first;
        eb->first = ep->next;
        drop_endpoint(ep);
    }
    free(eb);
}

int AM_Terminate(void)
{
    if (sessions == 0)
        return WRONG(AM_ERR_NOT_INIT, "AM_Terminate was called more often than AM_Init");
    for (struct amudp_eb *eb = rnl_amudp_bundles; sessions == 1 && eb; eb = eb->next)
        for (struct amudp_ep *ep = eb->first; ep; ep = ep->next)
            rnl_amudp_fault_flush(ep);
    int r = rnl_am_terminate();
    if (--sessions == 0) { /* handlers ran in there, so the callbacks' endpoints had to live */
        while (rnl_amudp_bundles)
            drop_bundle(rnl_amudp_bundles);
        rnl_amudp_fault_end();
    }
    return rnl_amudp_result(r, __func__);
}

int AM_AllocateBundle(int type, eb_t *bundle)
{
    unsigned count = 0;
    if (!bundle || type < AM_SEQ || type >= AM_NUM_BUNDLE_MODES)
        return WRONG(AM_ERR_BAD_ARG, "a bundle is AM_SEQ or AM_PAR, not %d, and needs a place to be returned", type);
    int held = rnl_am_hold();
    for (struct amudp_eb *eb = rnl_amudp_bundles; eb; eb = eb->next)
        count++;
    rnl_am_let_go(held);
    if (count >= AMUDP_MAX_BUNDLES)
        return WRONG(AM_ERR_RESOURCE, "there are %u bundles already, which is the most: free one", count);
    struct amudp_eb *eb = calloc(1, sizeof *eb);
    if (!eb)
        return WRONG(AM_ERR_RESOURCE, "no memory for a bundle");
    int r = rnl_am_allocate_bundle(type, &eb->core);
    if (r != AM_OK) {
        free(eb);
        return rnl_amudp_result(r, __func__);
    }
    held = rnl_am_hold(); /* it may be this one that makes calls lock */
    eb->next = rnl_amudp_bundles;
    rnl_amudp_bundles = eb;
    rnl_am_let_go(held);
    *bundle = eb;
    return AM_OK;
}

int AM_FreeBundle(eb_t bundle)
{
    if (!bundle)
        return WRONG(AM_ERR_BAD_ARG, "there is no bundle");
    for (struct amudp_ep *ep = bundle->first; ep; ep = ep->next)
        rnl_amudp_fault_flush(ep);
    int r = rnl_am_free_bundle(bundle->core);
    if (r != AM_OK)
        return rnl_amudp_result(r, __func__);
    drop_bundle(bundle);
    return AM_OK;
}

int AM_AllocateEndpoint(eb_t bundle, ep_t *out, en_t *name)
{
    rnl_am_en core = {.rank = 0};
    if (!bundle || !out)
        return WRONG(AM_ERR_BAD_ARG, "there is no bundle, or no place for the endpoint");
    struct amudp_ep *ep = calloc(1, sizeof *ep);
    if (ep)
        ep->table = calloc(AMUDP_INIT_NUMTRANSLATIONS, sizeof *ep->table);
    if (!ep || !ep->table) {
        free(ep);
        return WRONG(AM_ERR_RESOURCE, "no memory for an endpoint");
    }
    int held = rnl_am_hold();
    int r = rnl_am_allocate_endpoint(bundle->core, &ep->core, &core);
    if (r != AM_OK)
        goto no_endpoint;
    ep->entries = AMUDP_INIT_NUMTRANSLATIONS;
    ep->stats = AMUDP_initial_stats;
    ep->bundle = bundle;
    rnl_amudp_latency_new(ep);
    r = rnl_amudp_hook(ep);
    if (r == AM_OK)
        r = rnl_amudp_fault_new(ep);
    if (r != AM_OK)
        goto not_ready;
    ep->next = bundle->first;
    bundle->first = ep;
    *out = ep;
    if (name)
        *name = rnl_amudp_name(core, rnl_size(rnl_am_get_rank(bundle->core)));
    rnl_am_let_go(held);
    return AM_OK;
not_ready:
    rnl_amudp_latency_free(ep);
    (void)rnl_am_free_endpoint(ep->core);
no_endpoint:
    rnl_am_let_go(held);
    free(ep->table);
    free(ep);
    return rnl_amudp_result(r, __func__);
}

static void unlink_endpoint(struct amudp_ep *ep)
{
    struct amudp_ep **at = &ep->bundle->first;
    while (*at && *at != ep)
        at = &(*at)->next;
    if (*at)
        *at = ep->next;
}

int AM_FreeEndpoint(ep_t ep)
{
    if (!ep)
        return WRONG(AM_ERR_BAD_ARG, "there is no endpoint");
    rnl_amudp_fault_flush(ep);
    int r = rnl_am_free_endpoint(ep->core);
    if (r != AM_OK)
        return rnl_amudp_result(r, __func__);
    int held = rnl_am_hold();
    unlink_endpoint(ep);
    rnl_am_let_go(held);
    drop_endpoint(ep);
    return AM_OK;
}

int AM_MoveEndpoint(ep_t ep, eb_t from, eb_t to)
{
    if (!ep || !from || !to)
        return WRONG(AM_ERR_BAD_ARG, "there is no endpoint, or no bundle");
    int held = rnl_am_hold();
    int r = rnl_am_move_endpoint(ep->core, from->core, to->core);
    if (r == AM_OK) {
        unlink_endpoint(ep);
        ep->bundle = to;
        ep->next = to->first;
        to->first = ep;
    }
    rnl_am_let_go(held);
    return rnl_amudp_result(r, __func__);
}

int AM_GetTag(ep_t ep, tag_t *tag)
{
    return PASS_ON(ep, "endpoint", rnl_am_get_tag(ep->core, tag));
}

int AM_SetTag(ep_t ep, tag_t tag)
{
    return PASS_ON(ep, "endpoint", rnl_am_set_tag(ep->core, tag));
}

int AM_GetSeg(ep_t ep, void **at, uintptr_t *nbytes)
{
    return PASS_ON(ep, "endpoint", rnl_am_get_seg(ep->core, at, nbytes));
}

int AM_SetSeg(ep_t ep, void *at, uintptr_t nbytes)
{
    return PASS_ON(ep, "endpoint", rnl_am_set_seg(ep->core, at, nbytes));
}

int AM_MaxSegLength(uintptr_t *nbytes)
{
    if (!nbytes)
        return WRONG(AM_ERR_BAD_ARG, "there is no place for the length");
    *nbytes = AMUDP_MAX_SEGLENGTH;
    return AM_OK;
}

int AM_GetEventMask(eb_t bundle, int *mask)
{
    return PASS_ON(bundle, "bundle", rnl_am_get_event_mask(bundle->core, mask));
}

int AM_SetEventMask(eb_t bundle, int mask)
{
    return PASS_ON(bundle, "bundle", rnl_am_set_event_mask(bundle->core, mask));
}

AMUDP_ALSO(AM_Init_AMUDP_NDEBUG, AM_Init_AMUDP_DEBUG);
AMUDP_ALSO(AM_Terminate, AMUDP_Terminate);
AMUDP_ALSO(AM_AllocateBundle, AMUDP_AllocateBundle);
AMUDP_ALSO(AM_AllocateEndpoint, AMUDP_AllocateEndpoint);
AMUDP_ALSO(AM_FreeBundle, AMUDP_FreeBundle);
AMUDP_ALSO(AM_FreeEndpoint, AMUDP_FreeEndpoint);
AMUDP_ALSO(AM_MoveEndpoint, AMUDP_MoveEndpoint);
AMUDP_ALSO(AM_GetSeg, AMUDP_GetSeg);
AMUDP_ALSO(AM_SetSeg, AMUDP_SetSeg);
AMUDP_ALSO(AM_MaxSegLength, AMUDP_MaxSegLength);
AMUDP_ALSO(AM_GetTag, AMUDP_GetTag);
AMUDP_ALSO(AM_SetTag, AMUDP_SetTag);
AMUDP_ALSO(AM_GetEventMask, AMUDP_GetEventMask);
AMUDP_ALSO(AM_SetEventMask, AMUDP_SetEventMask);
