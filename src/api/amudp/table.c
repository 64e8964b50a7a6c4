/* SPDX-License-Identifier: BSD-3-Clause
 *
 * table.c - translations: an endpoint's table is the core's, and beside it the names as the program gave them, with the
 * addresses in them. It may be changed at any time. */
#include "api/amudp/amudp_internal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define WRONG(code, ...) rnl_amudp_fail(code, __func__, __VA_ARGS__)

struct amudp_ep *rnl_amudp_endpoint(rnl_am_ep core)
{
    return rnl_am_hooks_arg(core);
}

/* 1 and a copy of the entry, or 0: it is not in use. */
static int look_up(const struct amudp_ep *ep, int index, struct amudp_entry *out)
{
    if (!ep || index < 0)
        return 0;
    int held = rnl_am_hold();
    int used = (uint32_t)index < ep->entries && ep->table[index].used;
    if (used)
        *out = ep->table[index];
    rnl_am_let_go(held);
    return used;
}

static int index_of(const struct amudp_ep *ep, rnl_am_en from)
{
    rnl_am_en name;
    /* A job's table has rank r at index r. */
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t i = pass == 0 ? from.rank : 0; i < (pass == 0 ? from.rank + 1 : ep->entries); i++)
            if (i < ep->entries && ep->table[i].used && rnl_amudp_core_name(ep->table[i].name, &name) == 0 &&
                rnl_am_name_equal(name, from))
                return (int)i;
    return -1;
}

int rnl_amudp_sender(void *token, rnl_am_en *from, const struct amudp_ep **ep, int *index)
{
    rnl_am_ep core;
    int r = rnl_am_get_source_endpoint(token, from);
    if (r == AM_OK)
        r = rnl_am_get_dest_endpoint(token, &core);
    *ep = r == AM_OK ? rnl_amudp_endpoint(core) : NULL;
    *index = *ep ? index_of(*ep, *from) : -1;
    return r;
}

static void note(struct amudp_ep *ep, int index, en_t name, tag_t tag)
{
    ep->table[index] = (struct amudp_entry){.name = name, .tag = tag, .used = 1};
}

int AM_Map(ep_t ep, int index, en_t name, tag_t tag)
{
    rnl_am_en core;
    if (!ep)
        return WRONG(AM_ERR_BAD_ARG, "there is no endpoint");
    if (rnl_amudp_core_name(name, &core) < 0)
        return WRONG(AM_ERR_BAD_ARG, "this is no name of an endpoint: copy the whole of it, sin_zero included");
    int held = rnl_am_hold();
    int r = rnl_am_map(ep->core, index, core, tag);
    if (r == AM_OK)
        note(ep, index, name, tag);
    rnl_am_let_go(held);
    return r == AM_ERR_IN_USE ? rnl_amudp_error(AM_ERR_RESOURCE, __func__) : rnl_amudp_result(r, __func__);
}

int AM_MapAny(ep_t ep, int *index, en_t name, tag_t tag)
{
    rnl_am_en core;
    if (!ep || !index)
        return WRONG(AM_ERR_BAD_ARG, "there is no endpoint, or no place for the index");
    if (rnl_amudp_core_name(name, &core) < 0)
        return WRONG(AM_ERR_BAD_ARG, "this is no name of an endpoint: copy the whole of it, sin_zero included");
    int held = rnl_am_hold();
    int r = rnl_am_map_any(ep->core, index, core, tag);
    if (r == AM_OK)
        note(ep, *index, name, tag);
    rnl_am_let_go(held);
    return rnl_amudp_result(r, __func__);
}

int AM_UnMap(ep_t ep, int index)
{
    if (!ep)
        return WRONG(AM_ERR_BAD_ARG, "there is no endpoint");
    int held = rnl_am_hold();
    int r = rnl_am_unmap(ep->core, index);
    if (r == AM_OK)
        ep->table[index].used = 0;
    rnl_am_let_go(held);
    return rnl_amudp_result(r, __func__);
}

int AM_GetTranslationInuse(ep_t ep, int index)
{
    struct amudp_entry e;
    return look_up(ep, index, &e) ? AM_OK : AM_ERR_RESOURCE;
}

int AM_GetTranslationTag(ep_t ep, int index, tag_t *tag)
{
    struct amudp_entry e;
    if (!look_up(ep, index, &e) || !tag)
        return WRONG(AM_ERR_BAD_ARG, "entry %d of the table is not in use", index);
    *tag = e.tag;
    return AM_OK;
}

int AMUDP_SetTranslationTag(ep_t ep, int index, tag_t tag)
{
    struct amudp_entry e;
    if (!look_up(ep, index, &e))
        return WRONG(AM_ERR_BAD_ARG, "entry %d of the table is not in use", index);
    int held = rnl_am_hold();
    int r = rnl_am_set_translation_tag(ep->core, index, tag);
    if (r == AM_OK)
        ep->table[index].tag = tag;
    rnl_am_let_go(held);
    return rnl_amudp_result(r, __func__);
}

int AM_GetTranslationName(ep_t ep, int index, en_t *name)
{
    struct amudp_entry e;
    if (!look_up(ep, index, &e) || !name)
        return WRONG(AM_ERR_BAD_ARG, "entry %d of the table is not in use", index);
    *name = e.name;
    return AM_OK;
}

int AM_GetNumTranslations(ep_t ep, int *n)
{
    if (!ep || !n)
        return WRONG(AM_ERR_BAD_ARG, "there is no endpoint, or no place for the number");
    int held = rnl_am_hold();
    *n = (int)ep->entries;
    rnl_am_let_go(held);
    return AM_OK;
}

int AM_SetNumTranslations(ep_t ep, int n)
{
    if (!ep || n < 1)
        return WRONG(AM_ERR_BAD_ARG, "a table has 1 entry or more, not %d", n);
    if ((uint32_t)n > AMUDP_MAX_NUMTRANSLATIONS)
        return WRONG(AM_ERR_RESOURCE, "a table has at most %u entries, not %d", AMUDP_MAX_NUMTRANSLATIONS, n);
    struct amudp_entry *more = calloc((size_t)n, sizeof *more);
    if (!more)
        return WRONG(AM_ERR_RESOURCE, "no memory for a table of %d entries", n);
    int held = rnl_am_hold();
    int r = rnl_am_set_num_translations(ep->core, n);
    if (r == AM_OK) {
        struct amudp_entry *before = ep->table;
        memcpy(more, before, sizeof *more * (ep->entries < (uint32_t)n ? ep->entries : (uint32_t)n));
        ep->table = more;
        ep->entries = (uint32_t)n;
        more = before;
    }
    rnl_am_let_go(held);
    free(more);
    return r == AM_ERR_IN_USE ? rnl_amudp_error(AM_ERR_RESOURCE, __func__) : rnl_amudp_result(r, __func__);
}

int AM_SetExpectedResources(ep_t ep, int n_endpoints, int n_outstanding)
{
    if (!ep || n_endpoints < 0)
        return WRONG(AM_ERR_BAD_ARG, "there is no endpoint, or less than none to talk to");
    if (n_outstanding < 1 || n_outstanding > AMUDP_MAX_NETWORKDEPTH)
        return WRONG(AM_ERR_BAD_ARG, "1 to %d requests can be outstanding, not %d", AMUDP_MAX_NETWORKDEPTH,
                     n_outstanding);
    return rnl_amudp_result(rnl_am_set_expected_resources(ep->core, 1, n_outstanding), __func__); /* no table grows */
}

int AMUDP_GetSourceId(void *token, int *source)
{
    rnl_am_en from;
    const struct amudp_ep *ep;
    int index;
    if (!token || !source)
        return WRONG(AM_ERR_BAD_ARG, "there is no token, or no place for the index");
    int r = rnl_amudp_sender(token, &from, &ep, &index);
    if (r != AM_OK)
        return rnl_amudp_result(r, __func__);
    if (index < 0)
        return WRONG(AM_ERR_BAD_ARG, "the sender is in no entry of the table: map it first");
    *source = index;
    return AM_OK;
}

AMUDP_ALSO(AM_Map, AMUDP_Map);
AMUDP_ALSO(AM_MapAny, AMUDP_MapAny);
AMUDP_ALSO(AM_UnMap, AMUDP_UnMap);
AMUDP_ALSO(AM_GetNumTranslations, AMUDP_GetNumTranslations);
AMUDP_ALSO(AM_SetNumTranslations, AMUDP_SetNumTranslations);
AMUDP_ALSO(AM_GetTranslationInuse, AMUDP_GetTranslationInuse);
AMUDP_ALSO(AM_GetTranslationTag, AMUDP_GetTranslationTag);
AMUDP_ALSO(AM_GetTranslationName, AMUDP_GetTranslationName);
AMUDP_ALSO(AM_SetExpectedResources, AMUDP_SetExpectedResources);
