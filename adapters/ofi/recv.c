/* SPDX-License-Identifier: BSD-3-Clause
 *
 * recv.c - what comes in. A handler finds the receive and takes the bytes straight to its buffer, beginning with the
 * first packet. A message that nobody has posted a receive for is listed first and kept then, since its handler may be
 * suspended for bytes while a receive for it is posted, or it is probed for. */
#include "ofi.h"

#include <stdlib.h>
#include <string.h>

/* ---- requests ---- */

static struct rnl_ofi_recv *new_recv(struct rnl_ofi_domain *d)
{
    struct rnl_ofi_recv *r;
    struct rnl_ofi_link *l = rnl_ofi_take(&d->free_recvs);
    if (l) {
        r = RNL_OFI_OF(l, struct rnl_ofi_recv, order);
        uint32_t number = r->number;
        memset(r, 0, sizeof *r);
        r->number = number;
    } else {
        if ((d->recvs & (d->recvs - 1)) == 0) {
            struct rnl_ofi_recv **more = realloc(d->recv, (d->recvs ? 2 * (size_t)d->recvs : 1) * sizeof(void *));
            if (!more)
                return NULL;
            d->recv = more;
        }
        r = calloc(1, sizeof *r);
        if (!r)
            return NULL;
        r->number = d->recvs;
        d->recv[d->recvs++] = r;
    }
    r->used = true;
    rnl_ofi_link_init(&r->order);
    rnl_ofi_link_init(&r->chain);
    return r;
}

static void free_recv(struct rnl_ofi_domain *d, struct rnl_ofi_recv *r)
{
    r->used = false;
    r->sender = NULL;
    rnl_ofi_append(&d->free_recvs, &r->order);
}

/* The message of this head has come for the receive, with `got` of its `length` bytes; frees the receive. */
static void complete(struct rnl_ofi_recv *r, const struct rnl_ofi_head *h, uint64_t source, size_t length, size_t got,
                     int error)
{
    struct rnl_ofi_ep *e = r->ep;
    struct rnl_ofi_recv *parent = r->parent;
    uint64_t flags = (r->tagged ? FI_TAGGED : FI_MSG) | FI_RECV | (h->flags & RNL_OFI_HAS_DATA ? FI_REMOTE_CQ_DATA : 0);
    if (RNL_UNLIKELY(parent != NULL) && --parent->open == 0 && !parent->multi)
        flags |= FI_MULTI_RECV; /* nothing comes to the buffer any more */
    if (RNL_UNLIKELY(error || length > r->length)) {
        struct fi_cq_err_entry entry = {.op_context = r->context,
                                        .flags = flags,
                                        .len = got,
                                        .buf = r->iov[0].iov_base,
                                        .data = h->data,
                                        .tag = h->tag,
                                        .olen = length > r->length ? length - r->length : 0,
                                        .err = error ? -error : FI_ETRUNC};
        rnl_ofi_cq_push_error(e->received, &entry);
        if (e->count_recv)
            atomic_fetch_add_explicit(&e->count_recv->errors, 1, memory_order_release);
    } else {
        rnl_ofi_count(e->count_recv);
        if (e->received && (!e->received_selective || r->flags & FI_COMPLETION || flags & FI_MULTI_RECV)) {
            struct fi_cq_tagged_entry entry = {r->context, flags, got, r->iov[0].iov_base, h->data, h->tag};
            rnl_ofi_cq_push(e->received, &entry,
                            e->tells_source && e->av ? rnl_ofi_av_source(e->av, source) : FI_ADDR_NOTAVAIL);
        }
    }
    if (flags & FI_MULTI_RECV)
        free_recv(e->domain, parent);
    e->under_way--;
    free_recv(e->domain, r);
}

/* Takes a posted receive for a message: the receive itself, or a part of a multi-receive. NULL = no memory. */
static struct rnl_ofi_recv *take(struct rnl_ofi_match *m, struct rnl_ofi_recv *r, size_t length)
{
    r->ep->under_way++;
    if (RNL_LIKELY(!r->multi)) {
        rnl_ofi_match_withdraw(m, r);
        return r;
    }
    struct rnl_ofi_recv *part = new_recv(r->ep->domain);
    if (!part) {
        r->ep->under_way--;
        return NULL;
    }
    size_t n = length < r->length ? length : r->length;
    part->ep = r->ep;
    part->context = r->context;
    part->flags = r->flags;
    part->tagged = r->tagged;
    part->parent = r;
    part->iov[0] = (struct iovec){r->iov[0].iov_base, n};
    part->pieces = 1;
    part->length = n;
    r->open++;
    r->iov[0].iov_base = (char *)r->iov[0].iov_base + n;
    r->length -= n;
    if (r->length < r->ep->multi_recv_least || r->length == 0) {
        rnl_ofi_match_withdraw(m, r);
        r->multi = false;
    }
    return part;
}

static int scatter(rnl_stream *s, const struct rnl_ofi_recv *r, size_t n)
{
    int status = 0;
    for (uint32_t i = 0; i < r->pieces && n && status == 0; i++) {
        size_t part = r->iov[i].iov_len < n ? r->iov[i].iov_len : n;
        if (part)
            status = rnl_receive(s, r->iov[i].iov_base, part);
        n -= part;
    }
    return status;
}

static void copy(const struct rnl_ofi_recv *r, const unsigned char *from, size_t n)
{
    for (uint32_t i = 0; i < r->pieces && n; i++) {
        size_t part = r->iov[i].iov_len < n ? r->iov[i].iov_len : n;
        if (part)
            memcpy(r->iov[i].iov_base, from, part);
        from += part;
        n -= part;
    }
}

/* ---- messages that nobody has posted a receive for ---- */

static struct rnl_ofi_message *new_message(struct rnl_ofi_ep *e, const struct rnl_ofi_head *h, struct rnl_ofi_peer *p,
                                           size_t length, uint32_t request, enum rnl_ofi_message_state state)
{
    if (RNL_UNLIKELY(p->unexpected >= RNL_OFI_UNEXPECTED)) {
        rnl_ofi_peer_break(e->domain, p);
        return NULL;
    }
    struct rnl_ofi_link *l = rnl_ofi_take(&e->domain->free_messages);
    struct rnl_ofi_message *u = l ? RNL_OFI_OF(l, struct rnl_ofi_message, order) : malloc(sizeof *u);
    if (!u)
        return NULL;
    memset(u, 0, sizeof *u);
    u->head = *h;
    u->peer = p;
    u->source = rnl_ofi_source_of(p, h->from);
    u->length = length;
    u->request = request;
    u->state = (uint8_t)state;
    p->unexpected++;
    rnl_ofi_match_add(e->match[h->flags & RNL_OFI_TAGGED], u);
    return u;
}

static void free_message(struct rnl_ofi_domain *d, struct rnl_ofi_message *u)
{
    rnl_kept_free(u->kept);
    if (RNL_UNLIKELY(u->copy != NULL))
        u->peer->copies -= u->length;
    free(u->copy);
    u->peer->unexpected--;
    rnl_ofi_append(&d->free_messages, &u->order);
}

/* Asks for the bytes of an announced message. */
static void ask(struct rnl_ofi_domain *d, struct rnl_ofi_recv *r, const struct rnl_ofi_head *h, struct rnl_ofi_peer *p,
                size_t length, uint32_t request)
{
    struct rnl_ofi_ask a = {
        .length = length < r->length ? length : r->length, .receive = r->number, .request = request};
    if (p->state == RNL_OFI_GONE) {
        complete(r, h, rnl_ofi_source_of(p, h->from), 0, 0, -FI_ECONNRESET);
    } else if (a.length == 0) {
        rnl_ofi_ack(d, p, request, 0);
        complete(r, h, rnl_ofi_source_of(p, h->from), length, 0, 0);
    } else {
        r->head = *h;
        r->sender = p;
        r->announced = length;
        rnl_ofi_say(d, p, RNL_OFI_ASK, &a, sizeof a);
    }
}

/* A message that is no longer listed goes to its receive. */
static void give(struct rnl_ofi_domain *d, struct rnl_ofi_message *u, struct rnl_ofi_recv *r)
{
    if (u->state == RNL_OFI_COMING) {
        u->taker = r;
        return;
    }
    if (u->state == RNL_OFI_ANNOUNCED) {
        ask(d, r, &u->head, u->peer, u->length, u->request);
    } else {
        size_t n = u->length < r->length ? u->length : r->length;
        if (!u->error)
            copy(r, u->kept ? rnl_kept_data(u->kept, NULL, NULL) : u->copy, n);
        if (u->head.flags & RNL_OFI_MATCHED)
            rnl_ofi_ack(d, u->peer, u->request, 0);
        complete(r, &u->head, u->source, u->length, n, u->error);
    }
    free_message(d, u);
}

/* A message that is no longer listed is wanted by nobody. */
static void drop(struct rnl_ofi_domain *d, struct rnl_ofi_message *u)
{
    if (u->state == RNL_OFI_COMING) {
        u->dropped = true;
        return;
    }
    if (u->state == RNL_OFI_ANNOUNCED || u->head.flags & RNL_OFI_MATCHED)
        rnl_ofi_ack(d, u->peer, u->request, 0);
    free_message(d, u);
}

/* Takes in the bytes of an unexpected message. The core keeps them, and the grant shrinks by them. Senders heed that,
 * so it has no room only for those that do not, and when the budget is used up; what it does not keep is copied, as far
 * as one peer may take memory for that. */
static int keep(struct rnl_ofi_domain *d, rnl_stream *s, struct rnl_ofi_message *u)
{
    int status = rnl_keep(s, &u->kept);
    if (status == RNL_NO_ROOM) {
        if (u->length > RNL_OFI_COPIES - u->peer->copies) {
            rnl_ofi_peer_break(d, u->peer);
            return RNL_ERR_PEER_BROKEN;
        }
        u->copy = malloc(u->length ? u->length : 1);
        u->peer->copies += u->copy ? u->length : 0;
        status = !u->copy ? RNL_ERR_NO_MEMORY : u->length ? rnl_receive(s, u->copy, u->length) : 0;
    } else if (status == 0) {
        size_t n;
        rnl_kept_data(u->kept, &n, NULL);
        u->length = n < u->length ? n : u->length;
    }
    return status;
}

/* ---- handlers ---- */

int rnl_ofi_on_message(rnl_stream *s, unsigned number, void *ctx)
{
    struct rnl_ofi_domain *d = ctx;
    struct rnl_ofi_long_head h = {.length = 0};
    size_t length = rnl_length(s, NULL), used = sizeof h.head;
    struct rnl_ofi_peer *p = rnl_ofi_peer_at(d, number);
    if (RNL_UNLIKELY(!p) || rnl_receive(s, &h, sizeof h.head) < 0)
        return RNL_DONE;
    if (RNL_UNLIKELY(h.head.flags & RNL_OFI_ACKED)) {
        used = RNL_OFI_ACKED_HEAD;
        if (rnl_receive(s, &h.request, sizeof h.request + sizeof h.zero) < 0)
            return RNL_DONE;
    }
    struct rnl_ofi_ep *e = d->ep[h.head.to];
    length -= used;
    if (RNL_UNLIKELY(!e))
        return RNL_DONE;
    struct rnl_ofi_match *m = e->match[h.head.flags & RNL_OFI_TAGGED];
    struct rnl_ofi_recv *r = rnl_ofi_match_recv(m, h.head.tag, rnl_ofi_source_of(p, h.head.from));
    if (RNL_LIKELY(r && (r = take(m, r, length)))) {
        size_t n = length < r->length ? length : r->length;
        int status = scatter(s, r, n);
        if (h.head.flags & RNL_OFI_ACKED)
            rnl_ofi_ack(d, p, h.request, 0);
        complete(r, &h.head, rnl_ofi_source_of(p, h.head.from), length, n, rnl_ofi_errno(status));
        return RNL_DONE;
    }
    struct rnl_ofi_message *u = new_message(e, &h.head, p, length, h.request, RNL_OFI_COMING);
    if (!u)
        return RNL_DONE;
    int status = keep(d, s, u), ending = u->kept ? RNL_KEEP : RNL_DONE;
    u->state = RNL_OFI_HERE;
    u->error = rnl_ofi_errno(status);
    if ((h.head.flags & (RNL_OFI_ACKED | RNL_OFI_MATCHED)) == RNL_OFI_ACKED)
        rnl_ofi_ack(d, p, h.request, 0);
    if (u->taker)
        give(d, u, u->taker);
    else if (u->dropped)
        drop(d, u);
    return ending;
}

int rnl_ofi_on_announce(rnl_stream *s, unsigned number, void *ctx)
{
    struct rnl_ofi_domain *d = ctx;
    struct rnl_ofi_long_head h;
    struct rnl_ofi_peer *p = rnl_ofi_peer_at(d, number);
    if (!p || rnl_receive(s, &h, sizeof h) < 0 || !d->ep[h.head.to])
        return RNL_DONE;
    struct rnl_ofi_ep *e = d->ep[h.head.to];
    struct rnl_ofi_match *m = e->match[h.head.flags & RNL_OFI_TAGGED];
    struct rnl_ofi_recv *r = rnl_ofi_match_recv(m, h.head.tag, rnl_ofi_source_of(p, h.head.from));
    h.head.flags &= (uint16_t)~RNL_OFI_MATCHED; /* ASK or ACK will tell it */
    if (r && (r = take(m, r, h.length)))
        ask(d, r, &h.head, p, h.length, h.request);
    else
        (void)new_message(e, &h.head, p, h.length, h.request, RNL_OFI_ANNOUNCED);
    return RNL_DONE;
}

int rnl_ofi_on_data(rnl_stream *s, unsigned number, void *ctx)
{
    struct rnl_ofi_domain *d = ctx;
    struct rnl_ofi_data h;
    struct rnl_ofi_peer *p = rnl_ofi_peer_at(d, number);
    if (!p || rnl_receive(s, &h, sizeof h) < 0 || h.receive >= d->recvs)
        return RNL_DONE;
    struct rnl_ofi_recv *r = d->recv[h.receive];
    if (!r->used || r->sender != p)
        return RNL_DONE;
    r->sender = NULL; /* once */
    size_t n = r->announced < r->length ? r->announced : r->length;
    int status = scatter(s, r, n);
    complete(r, &r->head, rnl_ofi_source_of(p, r->head.from), r->announced, n, rnl_ofi_errno(status));
    return RNL_DONE;
}

/* ---- calls ---- */

/* FI_PEEK, and FI_CLAIM and FI_DISCARD of what a peek has claimed, which its fi_context names. */
static ssize_t probe(struct rnl_ofi_ep *e, const struct rnl_ofi_in *in, uint64_t from, struct rnl_ofi_peer *sender)
{
    struct rnl_ofi_domain *d = e->domain;
    struct fi_context *context = in->context;
    uint64_t flags = (in->tagged ? FI_TAGGED : FI_MSG) | FI_RECV;
    struct rnl_ofi_message *u;
    if (in->flags & FI_PEEK) {
        u = rnl_ofi_match_message(e->match[in->tagged], in->tag, in->ignore, from);
        if (!u) {
            if (sender && sender->state == RNL_OFI_GONE)
                return -FI_ECONNRESET; /* MPI takes an error that comes with a completion for one more "not yet" */
            if (sender && sender->number == RNL_OFI_NOBODY)
                rnl_ofi_peer_await(d, sender);
            struct fi_cq_err_entry none = {.op_context = context, .flags = flags, .tag = in->tag, .err = FI_ENOMSG};
            rnl_ofi_cq_push_error(e->received, &none);
            return 0;
        }
        if (in->flags & (FI_CLAIM | FI_DISCARD))
            rnl_ofi_match_remove(e->match[in->tagged], u);
        if (in->flags & FI_CLAIM)
            context->internal[0] = u;
    } else {
        u = context->internal[0];
    }
    struct fi_cq_tagged_entry entry = {context,
                                       flags | (u->head.flags & RNL_OFI_HAS_DATA ? FI_REMOTE_CQ_DATA : 0),
                                       in->flags & FI_PEEK ? u->length : 0,
                                       NULL,
                                       u->head.data,
                                       u->head.tag};
    if (e->received)
        rnl_ofi_cq_push(e->received, &entry, e->av ? rnl_ofi_av_source(e->av, u->source) : FI_ADDR_NOTAVAIL);
    if (in->flags & FI_DISCARD && !(in->flags & FI_PEEK && in->flags & FI_CLAIM))
        drop(d, u);
    return 0;
}

static void cancel(struct rnl_ofi_match *m, struct rnl_ofi_recv *r, int error)
{
    struct rnl_ofi_ep *e = r->ep;
    uint64_t flags = (r->tagged ? FI_TAGGED : FI_MSG) | FI_RECV;
    rnl_ofi_match_withdraw(m, r);
    if (r->multi && r->open) {
        r->multi = false; /* its last part tells that the buffer is free */
        return;
    }
    struct fi_cq_err_entry entry = {
        .op_context = r->context, .flags = flags | (r->multi ? FI_MULTI_RECV : 0), .tag = r->tag, .err = error};
    rnl_ofi_cq_push_error(e->received, &entry);
    free_recv(e->domain, r);
}

/* Fails a posted receive that only a peer that is gone could have filled. */
static void lose(struct rnl_ofi_match *m, struct rnl_ofi_recv *r, int error)
{
    if (r->ep->count_recv)
        atomic_fetch_add_explicit(&r->ep->count_recv->errors, 1, memory_order_release);
    cancel(m, r, -error);
}

/* A receive was posted that no message which is here fits, and that only this peer can fill. */
static void look_after(struct rnl_ofi_match *m, struct rnl_ofi_recv *r, struct rnl_ofi_peer *from)
{
    if (from->state == RNL_OFI_GONE)
        lose(m, r, -FI_ECONNRESET);
    else
        rnl_ofi_peer_await(r->ep->domain, from);
}

/* Returns false if the receive is not posted any more. */
static bool post_multi(struct rnl_ofi_match *m, struct rnl_ofi_recv *r)
{
    struct rnl_ofi_message *u;
    rnl_ofi_match_post(m, r);
    while (r->multi && (u = rnl_ofi_match_message(m, r->tag, r->ignore, r->from))) {
        struct rnl_ofi_recv *part = take(m, r, u->length);
        if (!part)
            break;
        bool last = !r->multi;
        rnl_ofi_match_remove(m, u);
        give(r->ep->domain, u, part); /* the last part may free the receive */
        if (last)
            return false;
    }
    return true;
}

ssize_t rnl_ofi_recv(struct rnl_ofi_ep *e, const struct rnl_ofi_in *in)
{
    struct rnl_ofi_domain *d = e->domain;
    uint64_t from = RNL_OFI_ANYONE;
    struct rnl_ofi_peer *sender = NULL;
    if (RNL_UNLIKELY(!e->enabled))
        return -FI_EOPBADSTATE;
    if (RNL_UNLIKELY(in->pieces > RNL_OFI_IOV || (in->flags & FI_MULTI_RECV && in->pieces != 1)))
        return -FI_EINVAL;
    if (in->from != FI_ADDR_UNSPEC && e->directs) {
        if (!e->av || in->from >= e->av->count || !e->av->entry[in->from].peer)
            return -FI_EINVAL;
        sender = e->av->entry[in->from].peer;
        from = rnl_ofi_source_of(sender, e->av->entry[in->from].ep);
    }
    if (RNL_UNLIKELY(in->flags & FI_PEEK || (in->flags & FI_CLAIM && in->flags & FI_DISCARD)))
        return probe(e, in, from, sender);
    struct rnl_ofi_recv *r = new_recv(d);
    if (!r)
        return -FI_EAGAIN;
    r->ep = e;
    r->context = in->context;
    r->flags = in->flags;
    r->tag = in->tag;
    r->ignore = in->ignore;
    r->from = from;
    r->tagged = in->tagged;
    r->multi = (in->flags & FI_MULTI_RECV) != 0;
    r->pieces = (uint32_t)in->pieces;
    for (size_t i = 0; i < in->pieces; i++) {
        r->iov[i] = in->iov[i];
        r->length += in->iov[i].iov_len;
    }
    struct rnl_ofi_match *m = e->match[in->tagged];
    if (RNL_UNLIKELY(r->multi)) {
        if (post_multi(m, r) && sender && sender->number == RNL_OFI_NOBODY)
            look_after(m, r, sender);
        return 0;
    }
    struct rnl_ofi_message *u;
    if (RNL_UNLIKELY(in->flags & FI_CLAIM)) {
        u = ((struct fi_context *)in->context)->internal[0];
    } else {
        u = rnl_ofi_match_message(m, in->tag, in->ignore, from);
        if (!u) {
            rnl_ofi_match_post(m, r);
            if (RNL_UNLIKELY(sender && sender->number == RNL_OFI_NOBODY))
                look_after(m, r, sender);
            return 0;
        }
        rnl_ofi_match_remove(m, u);
    }
    e->under_way++;
    give(d, u, r);
    return 0;
}

ssize_t rnl_ofi_recv_cancel(struct rnl_ofi_ep *e, void *context)
{
    for (int i = 0; i < 2; i++)
        for (struct rnl_ofi_recv *r = rnl_ofi_match_first_recv(e->match[i]); r;
             r = rnl_ofi_match_next_recv(e->match[i], r))
            if (r->context == context) {
                cancel(e->match[i], r, FI_ECANCELED);
                return 0;
            }
    return -FI_ENOENT;
}

void rnl_ofi_recvs_drop(struct rnl_ofi_ep *e)
{
    struct rnl_ofi_recv *r;
    struct rnl_ofi_message *u;
    for (int i = 0; i < 2; i++) {
        while ((r = rnl_ofi_match_first_recv(e->match[i]))) {
            rnl_ofi_match_withdraw(e->match[i], r);
            if (r->multi && r->open)
                r->multi = false;
            else
                free_recv(e->domain, r);
        }
        while ((u = rnl_ofi_match_first_message(e->match[i]))) {
            rnl_ofi_match_remove(e->match[i], u);
            drop(e->domain, u);
        }
    }
}

void rnl_ofi_recvs_fail(struct rnl_ofi_domain *d, struct rnl_ofi_peer *p, int error)
{
    for (uint32_t i = 0; i < d->recvs; i++) {
        struct rnl_ofi_recv *r = d->recv[i];
        if (r->used && r->sender == p)
            complete(r, &r->head, rnl_ofi_source_of(p, r->head.from), 0, 0, error);
    }
    for (unsigned i = 0; i < 2 * RNL_OFI_EPS; i++) { /* those that only this peer could have filled */
        struct rnl_ofi_match *m = d->ep[i / 2] ? d->ep[i / 2]->match[i % 2] : NULL;
        for (struct rnl_ofi_recv *r = m ? rnl_ofi_match_first_recv(m) : NULL, *next; r; r = next) {
            next = rnl_ofi_match_next_recv(m, r);
            if (r->from == RNL_OFI_ANYONE || rnl_ofi_peer_of(r->from) != p)
                continue;
            lose(m, r, error);
        }
    }
}
