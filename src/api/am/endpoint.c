/* SPDX-License-Identifier: BSD-3-Clause
 *
 * endpoint.c - AM endpoints: how they are made, freed and moved; their names, tags and segments. */
#include "api/am/core.h"
#include "base/bug.h"

#include <stdlib.h>

enum { ENDPOINTS_FIRST = 8 };

static int bad(const char *function)
{
    return rnl_am_fail(AM_ERR_BAD_ARG, "%s needs an endpoint, and a place for its result", function);
}

/* ---- life ---- */

/* Returns the lowest free number, or -1 if all are taken or there is no memory. */
static int64_t free_number(struct rnl_am_port *port)
{
    for (uint32_t i = 0; i < port->endpoints; i++)
        if (!port->endpoint[i])
            return i;
    uint32_t was = port->endpoints, room = was ? was * 2 : ENDPOINTS_FIRST;
    if (was >= RNL_AM_ENDPOINTS)
        return -1;
    if (room > RNL_AM_ENDPOINTS)
        room = RNL_AM_ENDPOINTS;
    struct rnl_am_endpoint **more = realloc(port->endpoint, room * sizeof(struct rnl_am_endpoint *));
    if (!more)
        return -1;
    for (uint32_t i = was; i < room; i++)
        more[i] = NULL;
    port->endpoint = more;
    port->endpoints = room;
    return was;
}

static int allocate(struct rnl_am_bundle *b, ep_t *out, en_t *name)
{
    struct rnl_am_port *port = b->port;
    int64_t number = free_number(port);
    /* The endpoint fills whole cache lines, so it shares none with the endpoint of another thread on another rank. */
    struct rnl_am_endpoint *ep = number < 0 ? NULL : aligned_alloc(64, (sizeof *ep + 63) & ~(size_t)63);
    struct rnl_am_translation *table = ep ? calloc(RNL_AM_TRANSLATIONS, sizeof *table) : NULL;
    if (!table) {
        free(ep);
        return rnl_am_fail(AM_ERR_RESOURCE, "no memory for an endpoint, or %d of them on this rank", RNL_AM_ENDPOINTS);
    }
    memset(ep, 0, sizeof *ep);
    if (++port->generation == 0)
        port->generation = 1;
    ep->port = port;
    ep->bundle = b;
    ep->number = (uint16_t)number;
    ep->generation = port->generation;
    ep->tag = AM_NONE;
    ep->translation = table;
    ep->translations = RNL_AM_TRANSLATIONS;
    port->endpoint[number] = ep;
    *out = ep;
    return rnl_am_get_name(ep, name);
}

int rnl_am_allocate_endpoint(eb_t bundle, ep_t *ep, en_t *name)
{
    if (!bundle || !ep || !name)
        return rnl_am_fail(AM_ERR_BAD_ARG, "AM_AllocateEndpoint needs a bundle, and places for an endpoint and a name");
    int status = rnl_am_enter(bundle->port);
    if (status != AM_OK)
        return status;
    status = rnl_am_outside(bundle->port, "AM_AllocateEndpoint");
    if (status == AM_OK)
        status = allocate(bundle, ep, name);
    return rnl_am_leave(bundle->port, status);
}

void rnl_am_free_endpoint_now(struct rnl_am_endpoint *ep)
{
    ep->port->endpoint[ep->number] = NULL;
    free(ep->translation);
    free(ep);
}

/* Waits until no handler waits for the rest of a message to ep, since what has arrived of it lies in the segment. */
static int is_idle(struct rnl_am_endpoint *ep)
{
    struct rnl_endpoint *core = ep->port->ep;
    struct rnl_idle w = {.deadline_ns = UINT64_MAX};
    if (!ep->busy)
        return AM_OK;
    if (rnl_am_outside(ep->port, "waiting for a bulk message") != AM_OK)
        return rnl_am_fail(AM_ERR_IN_USE, "a bulk message is being written into the segment: change it when the "
                                          "handler has returned");
    while (ep->busy) {
        if (rnl_stream_progress(core))
            w.polls = w.yields = 0;
        else if (!rnl_ep_forked(core))
            rnl_ep_idle(core, &w);
        if (rnl_ep_forked(core))
            return rnl_am_enter_slow(ep->port);
        if (core->close.job_gone | core->close.give_up)
            return rnl_am_fail(AM_ERR_RESOURCE, "the launcher of this job is gone, or the job ends");
    }
    return AM_OK;
}

int rnl_am_free_endpoint(ep_t ep)
{
    if (!ep)
        return bad("AM_FreeEndpoint");
    struct rnl_am_port *port = ep->port;
    int status = rnl_am_enter(port);
    if (status != AM_OK)
        return status;
    status = rnl_am_outside(port, "AM_FreeEndpoint");
    if (status == AM_OK)
        status = is_idle(ep);
    if (status == AM_OK)
        rnl_am_free_endpoint_now(ep);
    return rnl_am_leave(port, status);
}

int rnl_am_move_endpoint(ep_t ep, eb_t from, eb_t to)
{
    if (!ep || !from || !to)
        return rnl_am_fail(AM_ERR_BAD_ARG, "AM_MoveEndpoint needs an endpoint and two bundles");
    struct rnl_am_port *port = ep->port;
    int status = rnl_am_enter(port);
    if (status != AM_OK)
        return status;
    status = rnl_am_outside(port, "AM_MoveEndpoint");
    if (status == AM_OK && ep->bundle != from)
        status = rnl_am_fail(AM_ERR_BAD_ARG, "the endpoint is not in the bundle that it is to leave");
    if (status == AM_OK && to->port != port)
        status = rnl_am_fail(AM_ERR_RESOURCE, "an endpoint keeps its name, and with it its rank; the other bundle has "
                                              "another one");
    if (status == AM_OK)
        ep->bundle = to;
    return rnl_am_leave(port, status);
}

/* ---- names ---- */

int rnl_am_get_name(ep_t ep, en_t *name)
{
    if (!ep || !name)
        return bad("AM_GetName");
    *name = (en_t){.rank = ep->port->ep->rank, .generation = ep->generation, .number = ep->number};
    return AM_OK;
}

int rnl_am_get_bundle(ep_t ep, eb_t *bundle)
{
    if (!ep || !bundle)
        return bad("AM_GetBundle");
    int status = rnl_am_enter(ep->port);
    if (status != AM_OK)
        return status;
    *bundle = ep->bundle;
    return rnl_am_leave(ep->port, AM_OK);
}

int rnl_am_name_equal(en_t a, en_t b)
{
    return a.rank == b.rank && a.number == b.number &&
           (a.generation == b.generation || a.generation == 0 || b.generation == 0);
}

/* ---- tags, limits ---- */

int rnl_am_set_tag(ep_t ep, tag_t tag)
{
    if (!ep)
        return bad("AM_SetTag");
    int status = rnl_am_enter(ep->port);
    if (status != AM_OK)
        return status;
    ep->tag = tag;
    return rnl_am_leave(ep->port, AM_OK);
}

int rnl_am_get_tag(ep_t ep, tag_t *tag)
{
    if (!ep || !tag)
        return bad("AM_GetTag");
    int status = rnl_am_enter(ep->port);
    if (status != AM_OK)
        return status;
    *tag = ep->tag;
    return rnl_am_leave(ep->port, AM_OK);
}

int rnl_am_set_congestion_limit(ep_t ep, uint64_t limit_ns)
{
    if (!ep)
        return bad("AM_SetCongestionLimit");
    int status = rnl_am_enter(ep->port);
    if (status != AM_OK)
        return status;
    ep->congestion_ns = limit_ns;
    return rnl_am_leave(ep->port, AM_OK);
}

/* ---- segments ---- */

int rnl_am_set_seg(ep_t ep, void *addr, uintptr_t nbytes)
{
    if (!ep)
        return bad("AM_SetSeg");
    if (nbytes && (uintptr_t)addr + (nbytes - 1) < (uintptr_t)addr)
        return rnl_am_fail(AM_ERR_BAD_ARG, "a segment of %zu bytes at %p goes past the end of memory", (size_t)nbytes,
                           addr);
    int status = rnl_am_enter(ep->port);
    if (status != AM_OK)
        return status;
    status = is_idle(ep);
    if (status == AM_OK) {
        ep->seg = addr;
        ep->seg_bytes = nbytes;
    }
    return rnl_am_leave(ep->port, status);
}

int rnl_am_get_seg(ep_t ep, void **addr, uintptr_t *nbytes)
{
    if (!ep || !addr || !nbytes)
        return bad("AM_GetSeg");
    int status = rnl_am_enter(ep->port);
    if (status != AM_OK)
        return status;
    *addr = ep->seg;
    *nbytes = ep->seg_bytes;
    return rnl_am_leave(ep->port, AM_OK);
}

int rnl_am_segment(const struct rnl_am_endpoint *ep, uint64_t offset, uint64_t nbytes)
{
    if (offset > ep->seg_bytes)
        return AM_EBADSEGOFF;
    return nbytes > ep->seg_bytes - offset && !RNL_BUG(am_segment_end_unchecked) ? AM_EBADLENGTH : 0;
}
