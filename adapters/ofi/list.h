/* SPDX-License-Identifier: BSD-3-Clause
 *
 * list.h - lists in both directions whose links lie in what they list. A head is a link that points to itself while the
 * list is empty; so does a link that is in no list. */
#ifndef RNL_OFI_LIST_H
#define RNL_OFI_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct rnl_ofi_link {
    struct rnl_ofi_link *next, *prev;
};

#define RNL_OFI_OF(link, type, member) ((type *)(void *)((char *)(link)-offsetof(type, member)))

static inline void rnl_ofi_link_init(struct rnl_ofi_link *l)
{
    l->next = l->prev = l;
}

static inline bool rnl_ofi_is_linked(const struct rnl_ofi_link *l)
{
    return l->next != l;
}

static inline void rnl_ofi_append(struct rnl_ofi_link *head, struct rnl_ofi_link *l)
{
    l->prev = head->prev;
    l->next = head;
    head->prev->next = l;
    head->prev = l;
}

static inline void rnl_ofi_unlink(struct rnl_ofi_link *l)
{
    l->prev->next = l->next;
    l->next->prev = l->prev;
    l->next = l->prev = l;
}

/* Takes the first link out; NULL = the list is empty. */
static inline struct rnl_ofi_link *rnl_ofi_take(struct rnl_ofi_link *head)
{
    struct rnl_ofi_link *l = head->next;
    if (l == head)
        return NULL;
    rnl_ofi_unlink(l);
    return l;
}

#endif
