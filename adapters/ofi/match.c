/* SPDX-License-Identifier: BSD-3-Clause
 *
 * match.c - which receive takes which message: the first posted that fits, and the first come.
 *
 * Receives that ignore the same bits of the tag, and all name a sender or all do not, are a class. A class has a table
 * of chains, by the tag without the ignored bits and by the sender, for what is posted and one for what has come.
 * A message asks each class for its first receive, and takes the one with the smallest place; a receive asks its own
 * class alone. MPI has four classes; what ignores other bits than the first RNL_OFI_CLASSES did is found by going
 * through all. */
#include "ofi.h"

#include <stdlib.h>

enum { CHAINS = 256, NONE = -1 };

struct match_class {
    uint64_t ignore;
    bool directed;
    size_t posted;
    struct rnl_ofi_link recvs[CHAINS], messages[CHAINS];
};
struct rnl_ofi_match {
    struct match_class *of[RNL_OFI_CLASSES];
    int classes;
    size_t others; /* posted receives of no class */
    uint64_t place;
    struct rnl_ofi_link recvs, messages; /* all, in order */
};

static unsigned chain_of(const struct match_class *c, uint64_t tag, uint64_t source)
{
    uint64_t key = tag & ~c->ignore;
    if (c->directed)
        key ^= source >> 4 ^ source << 52; /* of aligned addresses the lowest bits say little */
    return (unsigned)(key * 0x9e3779b97f4a7c15u >> 56);
}
static_assert(CHAINS == 1 << 8, "chain_of gives 8 bits");

static bool fits(const struct rnl_ofi_recv *r, uint64_t tag, uint64_t source)
{
    return ((r->tag ^ tag) & ~r->ignore) == 0 && (r->from == RNL_OFI_ANYONE || r->from == source);
}

static int find_class(const struct rnl_ofi_match *m, uint64_t ignore, bool directed)
{
    for (int i = 0; i < m->classes; i++)
        if (m->of[i]->ignore == ignore && m->of[i]->directed == directed)
            return i;
    return NONE;
}

/* Makes a class, with all that has come in it; without memory, or place, there is none. */
static int add_class(struct rnl_ofi_match *m, uint64_t ignore, bool directed)
{
    struct match_class *c = m->classes < RNL_OFI_CLASSES ? calloc(1, sizeof *c) : NULL;
    if (!c)
        return NONE;
    c->ignore = ignore;
    c->directed = directed;
    for (unsigned i = 0; i < CHAINS; i++) {
        rnl_ofi_link_init(&c->recvs[i]);
        rnl_ofi_link_init(&c->messages[i]);
    }
    for (struct rnl_ofi_link *l = m->messages.next; l != &m->messages; l = l->next) {
        struct rnl_ofi_message *u = RNL_OFI_OF(l, struct rnl_ofi_message, order);
        rnl_ofi_append(&c->messages[chain_of(c, u->head.tag, u->source)], &u->chain[m->classes]);
    }
    m->of[m->classes] = c;
    return m->classes++;
}

static int class_of(struct rnl_ofi_match *m, uint64_t ignore, uint64_t from)
{
    int found = find_class(m, ignore, from != RNL_OFI_ANYONE);
    return found == NONE ? add_class(m, ignore, from != RNL_OFI_ANYONE) : found;
}

struct rnl_ofi_match *rnl_ofi_match_new(void)
{
    struct rnl_ofi_match *m = calloc(1, sizeof *m);
    if (m) {
        rnl_ofi_link_init(&m->recvs);
        rnl_ofi_link_init(&m->messages);
    }
    return m;
}

void rnl_ofi_match_free(struct rnl_ofi_match *m)
{
    for (int i = 0; m && i < m->classes; i++)
        free(m->of[i]);
    free(m);
}

void rnl_ofi_match_post(struct rnl_ofi_match *m, struct rnl_ofi_recv *r)
{
    int i = class_of(m, r->ignore, r->from);
    r->place = ++m->place;
    rnl_ofi_append(&m->recvs, &r->order);
    if (i == NONE) {
        m->others++;
        rnl_ofi_link_init(&r->chain);
        return;
    }
    m->of[i]->posted++;
    rnl_ofi_append(&m->of[i]->recvs[chain_of(m->of[i], r->tag, r->from)], &r->chain);
}

void rnl_ofi_match_withdraw(struct rnl_ofi_match *m, struct rnl_ofi_recv *r)
{
    rnl_ofi_unlink(&r->order);
    int i = find_class(m, r->ignore, r->from != RNL_OFI_ANYONE);
    if (i == NONE || !rnl_ofi_is_linked(&r->chain)) {
        m->others--;
        return;
    }
    m->of[i]->posted--;
    rnl_ofi_unlink(&r->chain);
}

static struct rnl_ofi_recv *first_of_others(struct rnl_ofi_match *m, uint64_t tag, uint64_t source,
                                            struct rnl_ofi_recv *best)
{
    for (struct rnl_ofi_link *l = m->recvs.next; l != &m->recvs; l = l->next) {
        struct rnl_ofi_recv *r = RNL_OFI_OF(l, struct rnl_ofi_recv, order);
        if (best && r->place >= best->place)
            break;
        if (!rnl_ofi_is_linked(&r->chain) && fits(r, tag, source))
            return r;
    }
    return best;
}

struct rnl_ofi_recv *rnl_ofi_match_recv(struct rnl_ofi_match *m, uint64_t tag, uint64_t source)
{
    struct rnl_ofi_recv *best = NULL;
    for (int i = 0; i < m->classes; i++) {
        struct match_class *c = m->of[i];
        if (!c->posted)
            continue;
        struct rnl_ofi_link *head = &c->recvs[chain_of(c, tag, source)];
        for (struct rnl_ofi_link *l = head->next; l != head; l = l->next) {
            struct rnl_ofi_recv *r = RNL_OFI_OF(l, struct rnl_ofi_recv, chain);
            if (fits(r, tag, source)) {
                best = !best || r->place < best->place ? r : best;
                break;
            }
        }
    }
    return RNL_UNLIKELY(m->others) ? first_of_others(m, tag, source, best) : best;
}

void rnl_ofi_match_add(struct rnl_ofi_match *m, struct rnl_ofi_message *u)
{
    rnl_ofi_append(&m->messages, &u->order);
    for (int i = 0; i < m->classes; i++)
        rnl_ofi_append(&m->of[i]->messages[chain_of(m->of[i], u->head.tag, u->source)], &u->chain[i]);
}

void rnl_ofi_match_remove(struct rnl_ofi_match *m, struct rnl_ofi_message *u)
{
    rnl_ofi_unlink(&u->order);
    for (int i = 0; i < m->classes; i++)
        rnl_ofi_unlink(&u->chain[i]);
}

struct rnl_ofi_message *rnl_ofi_match_message(struct rnl_ofi_match *m, uint64_t tag, uint64_t ignore, uint64_t from)
{
    if (!rnl_ofi_is_linked(&m->messages))
        return NULL;
    int i = class_of(m, ignore, from);
    struct match_class *c = i == NONE ? NULL : m->of[i];
    struct rnl_ofi_link *head = c ? &c->messages[chain_of(c, tag, from)] : &m->messages;
    for (struct rnl_ofi_link *l = head->next; l != head; l = l->next) {
        struct rnl_ofi_message *u =
            c ? RNL_OFI_OF(l - i, struct rnl_ofi_message, chain) : RNL_OFI_OF(l, struct rnl_ofi_message, order);
        if (((u->head.tag ^ tag) & ~ignore) == 0 && (from == RNL_OFI_ANYONE || from == u->source))
            return u;
    }
    return NULL;
}

struct rnl_ofi_recv *rnl_ofi_match_first_recv(struct rnl_ofi_match *m)
{
    return rnl_ofi_is_linked(&m->recvs) ? RNL_OFI_OF(m->recvs.next, struct rnl_ofi_recv, order) : NULL;
}

struct rnl_ofi_recv *rnl_ofi_match_next_recv(struct rnl_ofi_match *m, struct rnl_ofi_recv *r)
{
    return r->order.next != &m->recvs ? RNL_OFI_OF(r->order.next, struct rnl_ofi_recv, order) : NULL;
}

struct rnl_ofi_message *rnl_ofi_match_first_message(struct rnl_ofi_match *m)
{
    return rnl_ofi_is_linked(&m->messages) ? RNL_OFI_OF(m->messages.next, struct rnl_ofi_message, order) : NULL;
}
