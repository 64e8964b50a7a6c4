/* SPDX-License-Identifier: BSD-3-Clause
 *
 * table.c - an endpoint's translations and handlers, which may change at any time; and queries about tokens. */
#include "api/am/core.h"

#include <stdlib.h>

static int no_endpoint(const char *function)
{
    return rnl_am_fail(AM_ERR_BAD_ARG, "%s needs an endpoint, and a place for its result", function);
}

/* ---- translations ---- */

static int outside(const struct rnl_am_endpoint *ep, int index)
{
    return rnl_am_fail(AM_ERR_BAD_ARG,
                       "there is no translation %d: the table has 0 to %u; AM_SetNumTranslations grows it", index,
                       ep->translations - 1);
}

static int check_name(const struct rnl_am_endpoint *ep, en_t name)
{
    if (name.rank < ep->port->ep->size && !name.zero[0] && !name.zero[1] && !name.zero[2])
        return AM_OK;
    return rnl_am_fail(AM_ERR_BAD_ARG, "the name's rank %u is not one of this job, which has ranks 0 to %u", name.rank,
                       ep->port->ep->size - 1);
}

int rnl_am_map(ep_t ep, int index, en_t name, tag_t tag)
{
    if (!ep)
        return no_endpoint("AM_Map");
    int status = rnl_am_enter(ep->port);
    if (status != AM_OK)
        return status;
    if (index < 0 || (uint32_t)index >= ep->translations)
        status = outside(ep, index);
    else if (ep->translation[index].used)
        status = rnl_am_fail(AM_ERR_IN_USE, "translation %d is in use: unmap it first", index);
    else
        status = check_name(ep, name);
    if (status == AM_OK)
        ep->translation[index] = (struct rnl_am_translation){.name = name, .tag = tag, .used = 1};
    return rnl_am_leave(ep->port, status);
}

int rnl_am_map_any(ep_t ep, int *index, en_t name, tag_t tag)
{
    if (!ep || !index)
        return no_endpoint("AM_MapAny");
    int status = rnl_am_enter(ep->port);
    if (status != AM_OK)
        return status;
    uint32_t i = 0;
    while (i < ep->translations && ep->translation[i].used)
        i++;
    if (i == ep->translations)
        status = rnl_am_fail(AM_ERR_RESOURCE, "all %u translations are in use; AM_SetNumTranslations makes it more", i);
    else
        status = check_name(ep, name);
    if (status == AM_OK) {
        ep->translation[i] = (struct rnl_am_translation){.name = name, .tag = tag, .used = 1};
        *index = (int)i;
    }
    return rnl_am_leave(ep->port, status);
}

/* Returns the entry if it is in use, else NULL and sets *status. The lock is held. */
static struct rnl_am_translation *used(struct rnl_am_endpoint *ep, int index, int *status)
{
    struct rnl_am_translation *t = NULL;
    if (index < 0 || (uint32_t)index >= ep->translations)
        *status = outside(ep, index);
    else if (!ep->translation[index].used)
        *status = rnl_am_fail(AM_ERR_BAD_ARG, "translation %d is not in use", index);
    else
        t = &ep->translation[index];
    return t;
}

int rnl_am_unmap(ep_t ep, int index)
{
    if (!ep)
        return no_endpoint("AM_UnMap");
    int status = rnl_am_enter(ep->port);
    if (status != AM_OK)
        return status;
    struct rnl_am_translation *t = used(ep, index, &status);
    if (t)
        *t = (struct rnl_am_translation){.used = 0};
    return rnl_am_leave(ep->port, status);
}

int rnl_am_get_translation_inuse(ep_t ep, int index)
{
    if (!ep)
        return no_endpoint("AM_GetTranslationInuse");
    int status = rnl_am_enter(ep->port);
    if (status != AM_OK)
        return status;
    if (index < 0 || (uint32_t)index >= ep->translations)
        status = outside(ep, index);
    else if (!ep->translation[index].used)
        status = rnl_am_fail(AM_ERR_RESOURCE, "translation %d is not in use", index);
    return rnl_am_leave(ep->port, status);
}

int rnl_am_get_translation_tag(ep_t ep, int index, tag_t *tag)
{
    if (!ep || !tag)
        return no_endpoint("AM_GetTranslationTag");
    int status = rnl_am_enter(ep->port);
    if (status != AM_OK)
        return status;
    struct rnl_am_translation *t = used(ep, index, &status);
    if (t)
        *tag = t->tag;
    return rnl_am_leave(ep->port, status);
}

int rnl_am_get_translation_name(ep_t ep, int index, en_t *name)
{
    if (!ep || !name)
        return no_endpoint("AM_GetTranslationName");
    int status = rnl_am_enter(ep->port);
    if (status != AM_OK)
        return status;
    struct rnl_am_translation *t = used(ep, index, &status);
    if (t)
        *name = t->name;
    return rnl_am_leave(ep->port, status);
}

int rnl_am_set_translation_tag(ep_t ep, int index, tag_t tag)
{
    if (!ep)
        return no_endpoint("AM_SetTranslationTag");
    int status = rnl_am_enter(ep->port);
    if (status != AM_OK)
        return status;
    struct rnl_am_translation *t = used(ep, index, &status);
    if (t)
        t->tag = tag;
    return rnl_am_leave(ep->port, status);
}

int rnl_am_get_num_translations(ep_t ep, int *entries)
{
    if (!ep || !entries)
        return no_endpoint("AM_GetNumTranslations");
    int status = rnl_am_enter(ep->port);
    if (status != AM_OK)
        return status;
    *entries = (int)ep->translations;
    return rnl_am_leave(ep->port, AM_OK);
}

static int resize(struct rnl_am_endpoint *ep, uint32_t entries)
{
    for (uint32_t i = entries; i < ep->translations; i++)
        if (ep->translation[i].used)
            return rnl_am_fail(AM_ERR_IN_USE, "translation %u is in use, and would not be among %u: unmap it first", i,
                               entries);
    struct rnl_am_translation *table = realloc(ep->translation, entries * sizeof *table);
    if (!table)
        return rnl_am_fail(AM_ERR_RESOURCE, "no memory for %u translations", entries);
    for (uint32_t i = ep->translations; i < entries; i++)
        table[i] = (struct rnl_am_translation){.used = 0};
    ep->translation = table;
    ep->translations = entries;
    return AM_OK;
}

int rnl_am_set_num_translations(ep_t ep, int entries)
{
    if (!ep)
        return no_endpoint("AM_SetNumTranslations");
    if (entries < 1)
        return rnl_am_fail(AM_ERR_BAD_ARG, "a table of %d translations: it has at least one", entries);
    if (entries > RNL_AM_TRANSLATIONS_MAX)
        return rnl_am_fail(AM_ERR_RESOURCE, "a table of %d translations: it has at most %d", entries,
                           RNL_AM_TRANSLATIONS_MAX);
    int status = rnl_am_enter(ep->port);
    return status != AM_OK ? status : rnl_am_leave(ep->port, resize(ep, (uint32_t)entries));
}

int rnl_am_set_expected_resources(ep_t ep, int n_endpoints, int n_outstanding)
{
    if (!ep)
        return no_endpoint("AM_SetExpectedResources");
    if (n_endpoints < 1 || n_outstanding < 1)
        return rnl_am_fail(AM_ERR_BAD_ARG, "%d endpoints and %d outstanding requests are expected: at least one each",
                           n_endpoints, n_outstanding);
    int status = rnl_am_enter(ep->port);
    if (status != AM_OK)
        return status;
    uint32_t entries = n_endpoints > RNL_AM_TRANSLATIONS_MAX ? RNL_AM_TRANSLATIONS_MAX : (uint32_t)n_endpoints;
    if (entries > ep->translations)
        status = resize(ep, entries);
    return rnl_am_leave(ep->port, status);
}

/* ---- handlers ---- */

int rnl_am_set_handler(ep_t ep, handler_t handler, rnl_am_fn fn)
{
    if (!ep)
        return no_endpoint("AM_SetHandler");
    int status = rnl_am_enter(ep->port);
    if (status != AM_OK)
        return status;
    ep->handler[handler] = fn;
    return rnl_am_leave(ep->port, AM_OK);
}

int rnl_am_set_handler_any(ep_t ep, handler_t *handler, rnl_am_fn fn)
{
    if (!ep || !handler || !fn)
        return rnl_am_fail(AM_ERR_BAD_ARG, "AM_SetHandlerAny needs an endpoint, a handler, and a place for its number");
    int status = rnl_am_enter(ep->port);
    if (status != AM_OK)
        return status;
    unsigned i = 1;
    while (i < RNL_AM_HANDLERS && ep->handler[i])
        i++;
    if (i < RNL_AM_HANDLERS) {
        ep->handler[i] = fn;
        *handler = (handler_t)i;
    } else {
        status = rnl_am_fail(AM_ERR_RESOURCE, "all handler numbers from 1 to %d are taken", RNL_AM_HANDLERS - 1);
    }
    return rnl_am_leave(ep->port, status);
}

int rnl_am_get_handler(ep_t ep, handler_t handler, rnl_am_fn *fn)
{
    if (!ep || !fn)
        return no_endpoint("AM_GetHandler");
    int status = rnl_am_enter(ep->port);
    if (status != AM_OK)
        return status;
    *fn = ep->handler[handler];
    return rnl_am_leave(ep->port, AM_OK);
}

int rnl_am_set_hooks(ep_t ep, const struct rnl_am_hooks *hooks)
{
    static const struct rnl_am_hooks none;
    if (!ep)
        return no_endpoint("AM_SetHooks");
    int status = rnl_am_enter(ep->port);
    if (status != AM_OK)
        return status;
    ep->hooks = hooks ? *hooks : none;
    ep->hooked = ep->hooks.before || ep->hooks.after;
    return rnl_am_leave(ep->port, AM_OK);
}

/* ---- tokens ---- */

static const struct rnl_am_token *valid(const void *token, const void *out)
{
    const struct rnl_am_token *t = token;
    if (t && out && t->self == t)
        return t;
    (void)rnl_am_fail(AM_ERR_BAD_ARG, "a token is good in its handler only, until that returns; and the answer needs "
                                      "a place");
    return NULL;
}

int rnl_am_get_source_endpoint(void *token, en_t *name)
{
    const struct rnl_am_token *t = valid(token, name);
    if (!t)
        return AM_ERR_BAD_ARG;
    *name = (en_t){.rank = t->rank, .generation = t->m->from_generation, .number = t->m->from};
    return AM_OK;
}

int rnl_am_get_dest_endpoint(void *token, ep_t *ep)
{
    const struct rnl_am_token *t = valid(token, ep);
    if (!t)
        return AM_ERR_BAD_ARG;
    *ep = t->ep;
    return AM_OK;
}

int rnl_am_get_msg_tag(void *token, tag_t *tag)
{
    const struct rnl_am_token *t = valid(token, tag);
    if (!t)
        return AM_ERR_BAD_ARG;
    *tag = t->tag;
    return AM_OK;
}

int rnl_am_get_token_info(void *token, struct rnl_am_token_info *info)
{
    const struct rnl_am_token *t = valid(token, info);
    if (!t)
        return AM_ERR_BAD_ARG;
    const struct rnl_am_message *m = t->m;
    memset(info, 0, sizeof *info);
    info->opcode = rnl_am_opcode(m, m->status ? m->was : t->s != NULL);
    info->status = m->status;
    info->index = t->index;
    info->numargs = m->numargs;
    info->handler = m->handler;
    info->nbytes = m->op == RNL_AM_OP_SHORT ? 0 : (size_t)m->nbytes;
    info->dest_offset = (uintptr_t)m->dest_offset;
    memcpy(info->args, m->args, (size_t)m->numargs * 4);
    return AM_OK;
}
