/* SPDX-License-Identifier: BSD-3-Clause
 *
 * peer.c - peers: who is known by name, introductions, greetings, death.
 *
 *   NAMED ----> CONNECTING ----> UP ----> GONE
 *         a send,         it is introduced,    it died, or cannot be reached
 *         or it came      and was greeted
 *
 * A peer is introduced when something is first sent to it, so address vectors cost no connections. The greeting tells
 * the other side, which may have been told nothing of this process, whose messages these are. */
#include "ofi.h"

#include <stdlib.h>
#include <string.h>

enum { INTRODUCTION_MS = 2000, UNMET_MS = 1000 };

static struct rnl_ofi_peer *find(struct rnl_ofi_domain *d, const unsigned char key[RNL_OFI_PACKED_BYTES])
{
    struct rnl_ofi_peer *p;
    HASH_FIND(hh, d->peers, key, RNL_OFI_PACKED_BYTES, p);
    return p;
}

struct rnl_ofi_peer *rnl_ofi_peer_find(struct rnl_ofi_domain *d, const struct rnl_ofi_name *name)
{
    struct rnl_ofi_peer *p = find(d, name->packed);
    if (p)
        return p;
    p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->name = *name;
    p->name.ep = 0;
    p->number = RNL_OFI_NOBODY;
    rnl_ofi_link_init(&p->unmet);
    rnl_ofi_link_init(&p->busy);
    rnl_ofi_link_init(&p->controls);
    rnl_ofi_link_init(&p->sends);
    rnl_ofi_link_init(&p->awaiting);
    HASH_ADD(hh, d->peers, name.packed, sizeof p->name.packed, p);
    if (find(d, p->name.packed) == p)
        return p;
    free(p); /* no memory for the table */
    return NULL;
}

static void gone(struct rnl_ofi_domain *d, struct rnl_ofi_peer *p, int error)
{
    p->state = RNL_OFI_GONE;
    p->heard = false;
    if (p->number != RNL_OFI_NOBODY && d->known[p->number] == p)
        d->known[p->number] = NULL;
    p->number = RNL_OFI_NOBODY;
    rnl_ofi_sends_fail(d, p, error);
    rnl_ofi_recvs_fail(d, p, error);
    if (rnl_ofi_is_linked(&p->busy))
        rnl_ofi_unlink(&p->busy);
}

/* Takes the number that the library gave the peer. Returns false if somebody else has it. */
static bool take_number(struct rnl_ofi_domain *d, struct rnl_ofi_peer *p, unsigned number)
{
    if (number >= d->known_count || (d->known[number] && d->known[number] != p))
        return false;
    d->known[number] = p;
    p->number = number;
    return true;
}

/* ---- going there ---- */

/* Inserts the address. Returns 0 if the peer has a number, also if it had one. */
static int insert(struct rnl_ofi_domain *d, struct rnl_ofi_peer *p)
{
    char text[RNL_ADDRESS_BYTES];
    unsigned number;
    if (!rnl_ofi_name_unpack(&p->name, text))
        return RNL_ERR_ARG;
    int status = rnl_insert(d->rnl, text, &number);
    if (status < 0)
        return status;
    return take_number(d, p, number) ? 0 : RNL_ERR_REFUSED;
}

int rnl_ofi_peer_connect(struct rnl_ofi_domain *d, struct rnl_ofi_peer *p)
{
    if (p->state == RNL_OFI_GONE)
        return -FI_ECONNRESET;
    if (p->state != RNL_OFI_NAMED)
        return 0;
    p->state = RNL_OFI_CONNECTING;
    p->since_ms = rnl_ofi_now_ms();
    if (!rnl_ofi_is_linked(&p->busy))
        rnl_ofi_append(&d->busy, &p->busy);
    rnl_ofi_peer_go_on(d, p);
    return p->state == RNL_OFI_GONE ? -FI_EHOSTUNREACH : 0;
}

/* The program may make no more progress once this has returned 0, as Open MPI does that waits for its launcher then; so
 * what it injected could lie here as long. A helper (helper.c) introduces a peer that calls nothing for a while. */
int rnl_ofi_peer_connect_first(struct rnl_ofi_domain *d, struct rnl_ofi_peer *p)
{
    int error = rnl_ofi_peer_connect(d, p);
    if (error || p->state != RNL_OFI_CONNECTING)
        return error;
    (void)!rnl_extract(d->rnl, SIZE_MAX);
    rnl_ofi_peer_go_on(d, p);
    if (p->state == RNL_OFI_CONNECTING && rnl_ofi_now_ms() - p->since_ms < INTRODUCTION_MS)
        return -FI_EAGAIN;
    return p->state == RNL_OFI_GONE ? -FI_EHOSTUNREACH : 0;
}

void rnl_ofi_peer_await(struct rnl_ofi_domain *d, struct rnl_ofi_peer *p)
{
    if (p->state != RNL_OFI_NAMED || rnl_ofi_is_linked(&p->unmet))
        return;
    p->since_ms = rnl_ofi_now_ms();
    rnl_ofi_append(&d->unmet, &p->unmet);
}

void rnl_ofi_peers_seek(struct rnl_ofi_domain *d)
{
    int64_t now_ms = rnl_ofi_now_ms();
    while (rnl_ofi_is_linked(&d->unmet)) {
        struct rnl_ofi_peer *p = RNL_OFI_OF(d->unmet.next, struct rnl_ofi_peer, unmet);
        if (p->state == RNL_OFI_NAMED && p->number == RNL_OFI_NOBODY) {
            int status = now_ms - p->since_ms < UNMET_MS ? RNL_NO_ROOM : insert(d, p);
            if (status == RNL_NO_ROOM)
                return;
            if (status < 0)
                gone(d, p, rnl_ofi_errno(status));
        }
        rnl_ofi_unlink(&p->unmet);
    }
}

bool rnl_ofi_peer_go_on(struct rnl_ofi_domain *d, struct rnl_ofi_peer *p)
{
    struct rnl_peer_info info;
    if (RNL_UNLIKELY(p->broken) && p->state != RNL_OFI_GONE) {
        unsigned number = p->number;
        gone(d, p, -FI_ECONNRESET);
        if (number != RNL_OFI_NOBODY)
            (void)rnl_leave(d->rnl, number);
        return true;
    }
    if (p->state != RNL_OFI_CONNECTING)
        return true;
    if (p->number == RNL_OFI_NOBODY) {
        int status = insert(d, p);
        if (status == RNL_NO_ROOM)
            return false;
        if (status < 0) {
            gone(d, p, rnl_ofi_errno(status));
            return true;
        }
    }
    if (rnl_peer(d->rnl, p->number, &info) < 0 || info.state == RNL_PEER_NEW)
        return false; /* a death is told by rnl_ofi_on_death */
    int status = rnl_ofi_put_message(d, p, RNL_OFI_GREETING, 0, &d->name, sizeof d->name, NULL, 0, 0);
    if (status == 0)
        p->state = RNL_OFI_UP;
    return status == 0;
}

/* ---- being visited ---- */

int rnl_ofi_on_greeting(rnl_stream *s, unsigned peer, void *ctx)
{
    struct rnl_ofi_domain *d = ctx;
    struct rnl_ofi_name name;
    char text[RNL_ADDRESS_BYTES];
    if (rnl_receive(s, &name, sizeof name) < 0 || !rnl_ofi_name_unpack(&name, text))
        return RNL_DONE;
    /* The library knows by whose address the peer came, even if it has left by now; another one is no name for it. */
    if (rnl_peer_is(d->rnl, peer, text) != 1)
        return RNL_DONE;
    struct rnl_ofi_peer *p = rnl_ofi_peer_find(d, &name);
    if (!p || p->broken || !take_number(d, p, peer))
        return RNL_DONE;
    if (p->state == RNL_OFI_GONE)
        p->state = RNL_OFI_NAMED;
    p->heard = true;
    return RNL_DONE;
}

void rnl_ofi_on_death(void *domain, unsigned number, enum rnl_death_reason why)
{
    struct rnl_ofi_domain *d = domain;
    struct rnl_ofi_peer *p = number < d->known_count ? d->known[number] : NULL;
    if (p)
        gone(d, p, why == RNL_DEATH_NEVER_JOINED ? -FI_EHOSTUNREACH : -FI_ECONNRESET);
    (void)rnl_leave(d->rnl, number);
}

void rnl_ofi_peers_free(struct rnl_ofi_domain *d)
{
    struct rnl_ofi_peer *p, *next;
    HASH_ITER(hh, d->peers, p, next)
    {
        HASH_DELETE(hh, d->peers, p);
        free(p);
    }
}
