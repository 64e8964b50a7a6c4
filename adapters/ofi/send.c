/* SPDX-License-Identifier: BSD-3-Clause
 *
 * send.c - what goes out. A message is composed at once if it is short enough, nothing waits before it, and the peer
 * has room for it even if it has to keep it; else it is queued at the peer, with the bytes left where they are.
 *
 * The receiver keeps what nobody has posted a receive for (rnl_keep), and takes it out of the grant. So `window` of
 * rnl_room falls while a peer does not receive, and messages are only announced then: what one process holds for
 * another is bounded by the grant. `allowance` is what may still be sent before that has to be looked at again. */
#include "ofi.h"

#include <stdlib.h>
#include <string.h>

enum { RESERVE = 8 << 10 /* bytes of the grant that are left for announcements and what answers them */ };

/* What a message takes of the grant, in bytes. */
static int64_t cost_of(size_t length)
{
    return 128 + (int64_t)length;
}

int rnl_ofi_put_message(struct rnl_ofi_domain *d, struct rnl_ofi_peer *p, unsigned kind, size_t answer,
                        const void *head, size_t head_bytes, const struct iovec *iov, size_t pieces, size_t length)
{
    struct rnl_message b = {
        .peer = p->number, .handler = kind, .bound = head_bytes + length, .answer = answer, .flags = RNL_NO_WAIT};
    rnl_stream *s;
    int status = rnl_begin(d->rnl, &b, &s);
    if (RNL_UNLIKELY(status < 0))
        return status == RNL_BUSY ? RNL_NO_ROOM : status;
    status = rnl_piece(s, head, head_bytes);
    for (size_t i = 0; i < pieces && status == 0; i++)
        if (iov[i].iov_len)
            status = rnl_piece(s, iov[i].iov_base, iov[i].iov_len);
    int end = rnl_end(s);
    p->allowance -= cost_of(length);
    return status < 0 ? status : end;
}

static RNL_NOINLINE enum rnl_ofi_room look_for_room(struct rnl_ofi_domain *d, struct rnl_ofi_peer *p, size_t length)
{
    struct rnl_room_info room = {.size = offsetof(struct rnl_room_info, bulk_lane)}; /* that lane would cost time */
    int64_t need = cost_of(length) + RESERVE;
    if (rnl_room(d->rnl, p->number, &room) < 0 || room.lacks & RNL_ROOM_CONNECTION)
        return RNL_OFI_ROOM_NOW; /* sending tells why not */
    if ((int64_t)room.grant >= need) {
        p->allowance = (int64_t)room.grant - RESERVE;
        return RNL_OFI_ROOM_NOW;
    }
    return (int64_t)room.window >= need ? RNL_OFI_ROOM_LATER : RNL_OFI_ROOM_TO_ANNOUNCE;
}

static enum rnl_ofi_room room_for(struct rnl_ofi_domain *d, struct rnl_ofi_peer *p, size_t length)
{
    return RNL_LIKELY(p->allowance >= cost_of(length)) ? RNL_OFI_ROOM_NOW : look_for_room(d, p, length);
}

enum rnl_ofi_room rnl_ofi_send_room(struct rnl_ofi_domain *d, struct rnl_ofi_peer *p, size_t length)
{
    return room_for(d, p, length);
}

/* ---- requests ---- */

struct rnl_ofi_send *rnl_ofi_send_new(struct rnl_ofi_domain *d)
{
    struct rnl_ofi_link *l = rnl_ofi_take(&d->free_sends);
    if (l)
        return RNL_OFI_OF(l, struct rnl_ofi_send, link);
    if ((d->sends & (d->sends - 1)) == 0) {
        struct rnl_ofi_send **more = realloc(d->send, (d->sends ? 2 * (size_t)d->sends : 1) * sizeof(void *));
        if (!more)
            return NULL;
        d->send = more;
    }
    struct rnl_ofi_send *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    rnl_ofi_link_init(&s->link);
    s->number = d->sends;
    d->send[d->sends++] = s;
    return s;
}

/* The request of this number, if it awaits that from this peer. */
static struct rnl_ofi_send *send_of(struct rnl_ofi_domain *d, uint32_t number, unsigned peer,
                                    enum rnl_ofi_send_state awaits)
{
    struct rnl_ofi_send *s = number < d->sends ? d->send[number] : NULL;
    return s && s->state == awaits && s->peer->number == peer ? s : NULL;
}

void rnl_ofi_send_finish(struct rnl_ofi_domain *d, struct rnl_ofi_send *s, int error)
{
    if (s->flags & FI_INJECT && s->state == RNL_OFI_QUEUED)
        s->peer->injects--;
    if (s->flags & RNL_OFI_SILENT)
        d->owed--;
    s->ep->under_way--;
    s->state = RNL_OFI_SEND_FREE;
    rnl_ofi_unlink(&s->link);
    rnl_ofi_complete(s->ep, s->context, s->flags, s->completes, error);
    rnl_ofi_append(&d->free_sends, &s->link);
}

void rnl_ofi_send_await(struct rnl_ofi_send *s, enum rnl_ofi_send_state what)
{
    if (s->flags & FI_INJECT && s->state == RNL_OFI_QUEUED)
        s->peer->injects--;
    s->state = (uint8_t)what;
    rnl_ofi_unlink(&s->link);
    rnl_ofi_append(&s->peer->awaiting, &s->link);
}

void rnl_ofi_send_again(struct rnl_ofi_send *s)
{
    s->state = RNL_OFI_QUEUED;
    if (s->flags & FI_INJECT)
        s->peer->injects++;
    rnl_ofi_unlink(&s->link);
    rnl_ofi_append(s->peer->sends.next, &s->link);
}

/* ---- sending ---- */

static void announce(struct rnl_ofi_domain *d, struct rnl_ofi_send *s, int *status)
{
    struct rnl_ofi_long_head h = {.head = s->head, .request = s->number, .length = s->length};
    *status = rnl_ofi_put_message(d, s->peer, RNL_OFI_ANNOUNCE, 0, &h, sizeof h, NULL, 0, 0);
    if (*status == 0)
        rnl_ofi_send_await(s, RNL_OFI_AWAITS_ASK);
}

/* Sends the first of the queue. Returns false if it has to stay there. */
static bool send_queued(struct rnl_ofi_domain *d, struct rnl_ofi_send *s)
{
    if (s->sender)
        return s->sender->go(d, s);
    enum rnl_ofi_room room = s->length > RNL_OFI_EAGER ? RNL_OFI_ROOM_TO_ANNOUNCE : room_for(d, s->peer, s->length);
    int status = RNL_NO_ROOM;
    if (room == RNL_OFI_ROOM_LATER)
        return false;
    if (room == RNL_OFI_ROOM_TO_ANNOUNCE) {
        announce(d, s, &status);
    } else if (s->head.flags & RNL_OFI_ACKED) {
        struct rnl_ofi_long_head h = {.head = s->head, .request = s->number};
        status =
            rnl_ofi_put_message(d, s->peer, RNL_OFI_MESSAGE, 0, &h, RNL_OFI_ACKED_HEAD, s->iov, s->pieces, s->length);
        if (status == 0)
            rnl_ofi_send_await(s, RNL_OFI_AWAITS_ACK);
    } else {
        status =
            rnl_ofi_put_message(d, s->peer, RNL_OFI_MESSAGE, 0, &s->head, sizeof s->head, s->iov, s->pieces, s->length);
        if (status == 0)
            rnl_ofi_send_finish(d, s, 0);
    }
    if (status < 0 && status != RNL_NO_ROOM)
        rnl_ofi_send_finish(d, s, rnl_ofi_errno(status));
    return status != RNL_NO_ROOM;
}

void rnl_ofi_send_queue(struct rnl_ofi_domain *d, struct rnl_ofi_send *s)
{
    struct rnl_ofi_peer *p = s->peer;
    bool first = !rnl_ofi_is_linked(&p->sends) && p->state == RNL_OFI_UP;
    s->state = RNL_OFI_QUEUED;
    s->ep->under_way++;
    if (s->flags & FI_INJECT)
        p->injects++;
    if (s->flags & RNL_OFI_SILENT)
        d->owed++;
    rnl_ofi_append(&p->sends, &s->link);
    if (!(first && send_queued(d, s)) && !rnl_ofi_is_linked(&p->busy))
        rnl_ofi_append(&d->busy, &p->busy);
    if (s->flags & RNL_OFI_SILENT && (s->state == RNL_OFI_QUEUED || s->state == RNL_OFI_AWAITS_ASK))
        d->help_owed(d);
}

static ssize_t enqueue(struct rnl_ofi_ep *e, struct rnl_ofi_peer *p, const struct rnl_ofi_out *o,
                       const struct rnl_ofi_head *head, size_t length)
{
    struct rnl_ofi_domain *d = e->domain;
    if (o->flags & FI_INJECT && p->injects >= RNL_OFI_INJECTS)
        return -FI_EAGAIN;
    int error = o->flags & RNL_OFI_SILENT ? rnl_ofi_peer_connect_first(d, p) : rnl_ofi_peer_connect(d, p);
    struct rnl_ofi_send *s = error ? NULL : rnl_ofi_send_new(d);
    if (!s)
        return error ? error : -FI_EAGAIN;
    s->ep = e;
    s->peer = p;
    s->context = o->context;
    s->flags = o->flags;
    s->completes = (o->kind & RNL_OFI_TAGGED ? FI_TAGGED : FI_MSG) | FI_SEND;
    s->head = *head;
    s->length = length;
    s->kind = RNL_OFI_MESSAGE;
    s->sender = NULL;
    if (o->flags & FI_INJECT) {
        size_t at = 0;
        for (size_t i = 0; i < o->pieces; at += o->iov[i++].iov_len)
            memcpy(s->own + at, o->iov[i].iov_base, o->iov[i].iov_len);
        s->iov[0] = (struct iovec){s->own, length};
        s->pieces = 1;
    } else {
        memcpy(s->iov, o->iov, o->pieces * sizeof *o->iov);
        s->pieces = (uint32_t)o->pieces;
    }
    rnl_ofi_send_queue(d, s);
    return 0;
}

ssize_t rnl_ofi_send(struct rnl_ofi_ep *e, const struct rnl_ofi_out *o)
{
    const struct rnl_ofi_av *av = e->av;
    struct rnl_ofi_domain *d = e->domain;
    size_t length = 0;
    if (RNL_UNLIKELY(!e->enabled || !av))
        return -FI_EOPBADSTATE;
    if (RNL_UNLIKELY(o->to >= av->count || !av->entry[o->to].peer || o->pieces > RNL_OFI_IOV))
        return -FI_EINVAL;
    for (size_t i = 0; i < o->pieces; i++)
        length += o->iov[i].iov_len;
    if (RNL_UNLIKELY(o->flags & FI_INJECT && length > RNL_OFI_INJECT))
        return -FI_EINVAL;
    struct rnl_ofi_peer *p = av->entry[o->to].peer;
    struct rnl_ofi_head h = {.tag = o->tag,
                             .data = (uint32_t)o->data,
                             .to = (uint8_t)av->entry[o->to].ep,
                             .from = (uint8_t)e->number,
                             .flags = (uint16_t)o->kind};
    if (o->flags & (FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE))
        h.flags |= RNL_OFI_ACKED | (o->flags & FI_MATCH_COMPLETE ? RNL_OFI_MATCHED : 0);
    if (RNL_LIKELY(p->state == RNL_OFI_UP && length <= RNL_OFI_EAGER && !rnl_ofi_is_linked(&p->busy) &&
                   !(h.flags & RNL_OFI_ACKED)) &&
        room_for(d, p, length) == RNL_OFI_ROOM_NOW) {
        int status = rnl_ofi_put_message(d, p, RNL_OFI_MESSAGE, 0, &h, sizeof h, o->iov, o->pieces, length);
        if (RNL_LIKELY(status == 0)) {
            rnl_ofi_complete(e, o->context, o->flags, (o->kind & RNL_OFI_TAGGED ? FI_TAGGED : FI_MSG) | FI_SEND, 0);
            return 0;
        }
        if (status != RNL_NO_ROOM)
            return rnl_ofi_errno(status);
    }
    return enqueue(e, p, o, &h, length);
}

/* ---- answers ---- */

static void posted(void *arg, int status)
{
    struct rnl_ofi_send *s = arg;
    rnl_ofi_send_finish(s->ep->domain, s, rnl_ofi_errno(status));
}

/* Posts the bytes that were asked for. */
static int post_data(struct rnl_ofi_domain *d, struct rnl_ofi_send *s)
{
    struct rnl_buffer piece[RNL_OFI_IOV + 1] = {{&s->data, sizeof s->data}};
    unsigned count = 1;
    size_t left = s->wanted;
    for (uint32_t i = 0; i < s->pieces && left; i++) {
        size_t n = s->iov[i].iov_len < left ? s->iov[i].iov_len : left;
        if (n)
            piece[count++] = (struct rnl_buffer){s->iov[i].iov_base, n};
        left -= n;
    }
    struct rnl_message b = {.peer = s->peer->number, .handler = RNL_OFI_DATA, .bound = sizeof s->data + s->wanted};
    rnl_posted *p;
    s->peer->allowance -= cost_of(s->wanted);
    return rnl_post_held(d->rnl, &b, piece, count, posted, s, &p);
}

static bool try_data(struct rnl_ofi_domain *d, struct rnl_ofi_send *s)
{
    int status = post_data(d, s);
    if (status == RNL_NO_ROOM)
        return false;
    if (status < 0)
        rnl_ofi_send_finish(d, s, rnl_ofi_errno(status));
    else
        rnl_ofi_send_await(s, RNL_OFI_POSTED);
    return true;
}

int rnl_ofi_on_ask(rnl_stream *stream, unsigned peer, void *ctx)
{
    struct rnl_ofi_domain *d = ctx;
    struct rnl_ofi_ask ask;
    if (rnl_receive(stream, &ask, sizeof ask) < 0)
        return RNL_DONE;
    struct rnl_ofi_send *s = send_of(d, ask.request, peer, RNL_OFI_AWAITS_ASK);
    if (!s)
        return RNL_DONE;
    s->wanted = ask.length < s->length ? ask.length : s->length;
    s->data = (struct rnl_ofi_data){.receive = ask.receive};
    if (!rnl_ofi_is_linked(&d->asked) && try_data(d, s))
        return RNL_DONE;
    rnl_ofi_unlink(&s->link);
    rnl_ofi_append(&d->asked, &s->link);
    return RNL_DONE;
}

int rnl_ofi_on_ack(rnl_stream *stream, unsigned peer, void *ctx)
{
    struct rnl_ofi_domain *d = ctx;
    struct rnl_ofi_ack ack;
    if (rnl_receive(stream, &ack, sizeof ack) < 0)
        return RNL_DONE;
    struct rnl_ofi_send *s = send_of(d, ack.request, peer, RNL_OFI_AWAITS_ACK);
    if (!s)
        s = send_of(d, ack.request, peer, RNL_OFI_AWAITS_ASK); /* the receiver wants none of its bytes */
    if (s)
        rnl_ofi_send_finish(d, s, rnl_ofi_told(ack.status));
    return RNL_DONE;
}

/* ---- controls, and all that is queued ---- */

struct ofi_control {
    struct rnl_ofi_link link;
    unsigned kind;
    size_t n;
    unsigned char bytes[sizeof(struct rnl_ofi_ask)];
};

void rnl_ofi_say(struct rnl_ofi_domain *d, struct rnl_ofi_peer *p, unsigned kind, const void *bytes, size_t n)
{
    if (p->state == RNL_OFI_UP && !rnl_ofi_is_linked(&p->controls) &&
        rnl_ofi_put_message(d, p, kind, 0, bytes, n, NULL, 0, 0) == 0)
        return;
    struct ofi_control *c = rnl_ofi_peer_connect(d, p) == 0 ? malloc(sizeof *c) : NULL;
    if (!c)
        return; /* the peer is gone; or it will wait for ever, as whoever has no memory must expect */
    c->kind = kind;
    c->n = n;
    memcpy(c->bytes, bytes, n);
    rnl_ofi_append(&p->controls, &c->link);
    if (!rnl_ofi_is_linked(&p->busy))
        rnl_ofi_append(&d->busy, &p->busy);
    if (kind == RNL_OFI_ACK) {
        d->owed++;
        d->help_owed(d);
    }
}

static void free_control(struct rnl_ofi_domain *d, struct ofi_control *c)
{
    if (c->kind == RNL_OFI_ACK)
        d->owed--;
    free(c);
}

void rnl_ofi_ack(struct rnl_ofi_domain *d, struct rnl_ofi_peer *p, uint32_t request, int status)
{
    struct rnl_ofi_ack ack = {.request = request, .status = status};
    rnl_ofi_say(d, p, RNL_OFI_ACK, &ack, sizeof ack);
}

/* Sends what waits at the peer. Returns true if nothing waits any more. */
static bool flush_peer(struct rnl_ofi_domain *d, struct rnl_ofi_peer *p)
{
    if (!rnl_ofi_peer_go_on(d, p))
        return false;
    while (rnl_ofi_is_linked(&p->controls)) {
        struct ofi_control *c = RNL_OFI_OF(p->controls.next, struct ofi_control, link);
        if (rnl_ofi_put_message(d, p, c->kind, 0, c->bytes, c->n, NULL, 0, 0) == RNL_NO_ROOM)
            return false;
        rnl_ofi_unlink(&c->link);
        free_control(d, c);
    }
    while (rnl_ofi_is_linked(&p->sends))
        if (!send_queued(d, RNL_OFI_OF(p->sends.next, struct rnl_ofi_send, link)))
            return false;
    return true;
}

void rnl_ofi_flush(struct rnl_ofi_domain *d)
{
    while (rnl_ofi_is_linked(&d->asked))
        if (!try_data(d, RNL_OFI_OF(d->asked.next, struct rnl_ofi_send, link)))
            break;
    for (struct rnl_ofi_link *l = d->busy.next, *next; l != &d->busy; l = next) {
        struct rnl_ofi_peer *p = RNL_OFI_OF(l, struct rnl_ofi_peer, busy);
        next = l->next;
        if (flush_peer(d, p) && rnl_ofi_is_linked(&p->busy))
            rnl_ofi_unlink(&p->busy);
    }
}

bool rnl_ofi_has_queued(struct rnl_ofi_domain *d, const struct rnl_ofi_ep *e)
{
    for (struct rnl_ofi_link *l = d->busy.next; l != &d->busy; l = l->next) {
        const struct rnl_ofi_peer *p = RNL_OFI_OF(l, struct rnl_ofi_peer, busy);
        if (!e && (rnl_ofi_is_linked(&p->controls) || rnl_ofi_is_linked(&p->sends)))
            return true;
        for (struct rnl_ofi_link *s = p->sends.next; e && s != &p->sends; s = s->next)
            if (RNL_OFI_OF(s, struct rnl_ofi_send, link)->ep == e)
                return true;
    }
    return false;
}

static void fail_all(struct rnl_ofi_domain *d, struct rnl_ofi_link *head, const struct rnl_ofi_peer *p, int error)
{
    for (struct rnl_ofi_link *l = head->next, *next; l != head; l = next) {
        struct rnl_ofi_send *s = RNL_OFI_OF(l, struct rnl_ofi_send, link);
        next = l->next;
        if (s->peer != p)
            continue;
        if (s->sender)
            s->sender->fail(d, s, error);
        else if (s->state != RNL_OFI_POSTED) /* the library tells what became of a post */
            rnl_ofi_send_finish(d, s, error);
    }
}

void rnl_ofi_sends_fail(struct rnl_ofi_domain *d, struct rnl_ofi_peer *p, int error)
{
    struct rnl_ofi_link *l;
    while ((l = rnl_ofi_take(&p->controls)))
        free_control(d, RNL_OFI_OF(l, struct ofi_control, link));
    fail_all(d, &p->sends, p, error);
    fail_all(d, &p->awaiting, p, error);
    fail_all(d, &d->asked, p, error);
}
