/* SPDX-License-Identifier: BSD-3-Clause
 *
 * complete.c - completions go into their queues here: into a ring that grows, or as errors into a list. */
#include "ofi.h"

#include <stdlib.h>
#include <sys/eventfd.h>

void rnl_ofi_cq_ring(struct rnl_ofi_cq *q)
{
    if (q->bell >= 0)
        (void)eventfd_write(q->bell, 1);
}

/* Wakes whoever sleeps for completions, and the descriptor's own when the helper's thread may have brought this one. */
static void wake(struct rnl_ofi_cq *q)
{
    if (RNL_LIKELY(!q->sleepers && !q->awaited && !q->domain->helped))
        return;
    q->awaited = false;
    rnl_ofi_cq_ring(q);
}

static RNL_NOINLINE bool grow(struct rnl_ofi_cq *q)
{
    uint64_t count = 2 * (q->mask + 1);
    struct rnl_ofi_entry *more = malloc(count * sizeof *more);
    if (!more)
        return false;
    for (uint64_t i = q->head; i != q->tail; i++)
        more[i & (count - 1)] = q->ring[i & q->mask];
    free(q->ring);
    q->ring = more;
    q->mask = count - 1;
    return true;
}

void rnl_ofi_cq_push(struct rnl_ofi_cq *q, const struct fi_cq_tagged_entry *entry, fi_addr_t source)
{
    if (RNL_UNLIKELY(q->tail - q->head > q->mask) && !grow(q)) {
        struct fi_cq_err_entry lost = {.op_context = entry->op_context, .flags = entry->flags, .err = FI_ENOMEM};
        rnl_ofi_cq_push_error(q, &lost);
        return;
    }
    q->ring[q->tail & q->mask].entry = *entry;
    q->ring[q->tail++ & q->mask].source = source;
    wake(q);
}

void rnl_ofi_cq_push_error(struct rnl_ofi_cq *q, const struct fi_cq_err_entry *entry)
{
    struct rnl_ofi_error *e = q ? malloc(sizeof *e) : NULL;
    if (!e)
        return;
    e->entry = *entry;
    rnl_ofi_append(&q->errors, &e->link);
    wake(q);
}

void rnl_ofi_complete(struct rnl_ofi_ep *e, void *context, uint64_t flags, uint64_t completes, int error)
{
    struct rnl_ofi_counter *c = completes & FI_SEND   ? e->count_send
                                : completes & FI_READ ? e->count_read
                                                      : e->count_write;
    if (RNL_UNLIKELY(error)) {
        struct fi_cq_err_entry entry = {.op_context = context, .flags = completes, .err = -error};
        if (c)
            atomic_fetch_add_explicit(&c->errors, 1, memory_order_release);
        /* What was injected has no context, and programs take the one of an error for theirs: they learn it from their
         * next call that names the peer. */
        if (!(flags & RNL_OFI_SILENT))
            rnl_ofi_cq_push_error(e->sent, &entry);
        return;
    }
    rnl_ofi_count(c);
    if (e->sent && !(flags & RNL_OFI_SILENT) && (!e->sent_selective || flags & FI_COMPLETION)) {
        struct fi_cq_tagged_entry entry = {.op_context = context, .flags = completes};
        rnl_ofi_cq_push(e->sent, &entry, FI_ADDR_NOTAVAIL);
    }
}
