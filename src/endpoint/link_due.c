/* SPDX-License-Identifier: BSD-3-Clause
 *
 * link_due.c - when each link is due: a heap of times. */
#include "endpoint/link.h"

static void place_at(struct rnl_remote *r, uint32_t i, struct rnl_link_due due)
{
    r->heap[i] = due;
    due.link->heap = i + 1;
}

static void sift_up(struct rnl_remote *r, uint32_t i, struct rnl_link_due due)
{
    while (i > 0 && r->heap[(i - 1) / 2].due_ns > due.due_ns) {
        place_at(r, i, r->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    place_at(r, i, due);
}

static void sift_down(struct rnl_remote *r, uint32_t i, struct rnl_link_due due)
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

static void take_out(struct rnl_remote *r, struct rnl_link *link)
{
    uint32_t i = link->heap - 1;
    struct rnl_link_due last = r->heap[--r->heap_count];
    link->heap = 0;
    if (last.link == link)
        return;
    if (i > 0 && r->heap[(i - 1) / 2].due_ns > last.due_ns)
        sift_up(r, i, last);
    else
        sift_down(r, i, last);
}

void rnl_remote_not_due(struct rnl_link *link)
{
    if (link->heap)
        take_out(link->remote, link);
}

/* Times move on with every packet: a link that stands in the heap too early is only looked at once more. */
void rnl_remote_due(struct rnl_link *link, uint64_t due_ns)
{
    struct rnl_remote *r = link->remote;
    const struct rnl_link_due due = {due_ns, link};
    if (due_ns == UINT64_MAX)
        return;
    if (!link->heap)
        sift_up(r, r->heap_count++, due); /* there is a place for each rank */
    else if (due_ns < r->heap[link->heap - 1].due_ns)
        sift_up(r, link->heap - 1, due);
}
