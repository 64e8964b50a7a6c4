/* SPDX-License-Identifier: BSD-3-Clause
 *
 * schedule.c - whose turn it is (a queue), when a connection is due (a heap of times), and what is to be reported to
 * the endpoint (the queue of events). */
#include "remote/remote_internal.h"

/* ---- turns ---- */

void rnl_remote_schedule(struct rnl_remote_conn *rc, enum rnl_remote_urgency how)
{
    struct rnl_remote *r = rc->remote;
    if (!rc->scheduled)
        rc->rings = 0;
    if (rc->scheduled < how)
        rc->scheduled = (uint8_t)how;
    r->urgent |= how == RNL_REMOTE_URGENT;
    if (rc->queued)
        return;
    rc->queued = 1;
    rc->next = NULL;
    *r->last = rc;
    r->last = &rc->next;
}

struct rnl_remote_conn *rnl_remote_dequeue(struct rnl_remote *r)
{
    struct rnl_remote_conn *rc = r->first;
    r->first = rc->next;
    if (!r->first)
        r->last = &r->first;
    rc->queued = 0;
    return rc;
}

void rnl_remote_unqueue(struct rnl_remote_conn *rc)
{
    struct rnl_remote *r = rc->remote;
    for (struct rnl_remote_conn **at = &r->first; rc->queued && *at; at = &(*at)->next) {
        if (*at != rc)
            continue;
        *at = rc->next;
        if (!rc->next)
            r->last = at;
        rc->queued = 0;
        return;
    }
}

/* ---- times ---- */

static void place_at(struct rnl_remote *r, uint32_t i, struct rnl_remote_due due)
{
    r->heap[i] = due;
    due.rc->heap = i + 1;
}

static void sift_up(struct rnl_remote *r, uint32_t i, struct rnl_remote_due due)
{
    while (i > 0 && r->heap[(i - 1) / 2].due_ns > due.due_ns) {
        place_at(r, i, r->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    place_at(r, i, due);
}

static void sift_down(struct rnl_remote *r, uint32_t i, struct rnl_remote_due due)
{
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child + 1 < r->heap_count && r->heap[child + 1].due_ns < r->heap[child].due_ns)
            child++;
        if (child >= r->heap_count || r->heap[child].due_ns >= due.due_ns)
            break;
        place_at(r, i, r->heap[child]);
        i = child;
    }
    place_at(r, i, due);
}

void rnl_remote_not_due(struct rnl_remote_conn *rc)
{
    struct rnl_remote *r = rc->remote;
    if (!rc->heap)
        return;
    uint32_t i = rc->heap - 1;
    struct rnl_remote_due last = r->heap[--r->heap_count];
    rc->heap = 0;
    if (last.rc == rc)
        return;
    if (i > 0 && r->heap[(i - 1) / 2].due_ns > last.due_ns)
        sift_up(r, i, last);
    else
        sift_down(r, i, last);
}

/* Deadlines move on with every packet: a connection that is too early in the heap is only looked at once more. */
void rnl_remote_due(struct rnl_remote_conn *rc, uint64_t due_ns)
{
    struct rnl_remote *r = rc->remote;
    const struct rnl_remote_due due = {due_ns, rc};
    if (due_ns == UINT64_MAX)
        return;
    if (!rc->heap)
        sift_up(r, r->heap_count++, due); /* there is a place for each rank */
    else if (due_ns < r->heap[rc->heap - 1].due_ns)
        sift_up(r, rc->heap - 1, due);
}

/* ---- events ---- */

void rnl_remote_raise(struct rnl_remote_conn *rc, enum rnl_remote_event_kind what)
{
    struct rnl_remote *r = rc->remote;
    if (!rc->events) {
        rc->next_event = NULL;
        *r->event_last = rc;
        r->event_last = &rc->next_event;
    }
    rc->events |= (uint8_t)(1u << what);
}

/* Removes the first connection of the queue, which has no more events. */
static void drop_first(struct rnl_remote *r)
{
    r->event_first = r->event_first->next_event;
    if (!r->event_first)
        r->event_last = &r->event_first;
}

void rnl_remote_no_events(struct rnl_remote_conn *rc)
{
    struct rnl_remote *r = rc->remote;
    struct rnl_remote_conn **at = &r->event_first;
    if (!rc->events)
        return;
    while (*at != rc)
        at = &(*at)->next_event;
    *at = rc->next_event;
    if (!rc->next_event)
        r->event_last = at;
    rc->events = 0;
}

static int accept_event(const struct rnl_remote *r, struct rnl_remote_event *out)
{
    const struct rnl_view *v = &r->view[r->hello[r->hello_next]];
    uint32_t dst;
    *out = (struct rnl_remote_event){.kind = RNL_REMOTE_ACCEPT};
    return rnl_hello_peek(v->at, v->bytes, &out->rank, &dst); /* fills in the rank; it is a HELLO */
}

int rnl_remote_event(struct rnl_remote *r, struct rnl_remote_event *out)
{
    struct rnl_remote_conn *rc = r->event_first;
    if (RNL_UNLIKELY(r->hello_next < r->hellos))
        return accept_event(r, out);
    if (!rc)
        return 0;
    out->kind = (uint32_t)__builtin_ctz(rc->events);
    out->rank = rc->rank;
    out->why = rc->lost_why;
    rc->events &= (uint8_t)(rc->events - 1);
    if (!rc->events)
        drop_first(r);
    return 1;
}
