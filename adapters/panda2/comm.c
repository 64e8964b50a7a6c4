/* SPDX-License-Identifier: BSD-3-Clause
 *
 * comm.c - access points, and what is sent to those of one process or of a set. */
#include "panda2.h"

enum { NSAPS_MAX = 256 };

struct pan2_nsap {
    uint32_t number, kind; /* 0: it has no handler yet */
    int size;              /* of the header, or of small data */
    void (*fragment)(pan_fragment_p frag);
    void (*small)(void *data);
    void (*msg)(pan_msg_p msg);
};

static struct pan2_nsap *nsap[NSAPS_MAX];
static uint32_t nsaps;

pan_nsap_p pan_nsap_create(void)
{
    if (nsaps == NSAPS_MAX)
        pan2_fail("there are %d access points already", NSAPS_MAX);
    struct pan2_nsap *a = pan_calloc(1, sizeof *a);
    a->number = nsaps;
    nsap[nsaps++] = a;
    return a;
}

void pan_nsap_clear(pan_nsap_p a)
{
    nsap[a->number] = NULL;
    free(a);
}

void pan_nsap_fragment(pan_nsap_p a, void rec_frag(pan_fragment_p frag), int header_size, int flags)
{
    (void)flags;
    if (header_size < 0 || header_size > MAX_HEADER_SIZE)
        pan2_fail("a fragment's header has 0 to %d bytes, not %d", MAX_HEADER_SIZE, header_size);
    a->kind = PAN2_FRAGMENT;
    a->size = header_size;
    a->fragment = rec_frag;
}

void pan_nsap_small(pan_nsap_p a, void rec_small(void *data), int len, int flags)
{
    (void)flags;
    if (len < 0 || len > MAX_SMALL_SIZE)
        pan2_fail("small data has 0 to %d bytes, not %d", MAX_SMALL_SIZE, len);
    a->kind = PAN2_SMALL;
    a->size = len;
    a->small = rec_small;
}

void pan_nsap_msg(pan_nsap_p a, void rec_msg(pan_msg_p msg), int flags)
{
    (void)flags;
    a->kind = PAN2_MSG;
    a->msg = rec_msg;
}

/* ---- receiving ---- */

void pan2_take_comm(struct pan2_arrived *in)
{
    pan_nsap_p a = in->head.where < nsaps ? nsap[in->head.where] : NULL;
    const size_t size = a ? (size_t)a->size : 0;
    if (!a || a->kind != in->head.kind)
        return;
    if (a->kind == PAN2_MSG) {
        a->msg(pan2_msg_take(in));
    } else if (a->kind == PAN2_SMALL) {
        if (in->n == size)
            a->small(in->data);
    } else if (in->n >= size) {
        struct pan2_fragment f = {
            .nsap = a, .flags = (int)in->head.flags & 3, .data = in->data + size, .n = in->n - size};
        memcpy(f.header, in->data, size);
        a->fragment(&f);
    }
}

/* ---- sending ---- */

static void send(int dest, pan_pset_p set, const struct pan2_nsap *a, uint32_t kind, uint32_t flags,
                 const struct pan2_piece *pieces, int n)
{
    const struct pan2_head head = {.kind = kind, .where = a ? a->number : 0, .flags = flags};
    if (!a || a->kind != kind)
        pan2_fail("what was sent is not of the kind of its access point: fragments, small data and messages have "
                  "access points of their own");
    if (!set)
        pan2_send_one(dest, &head, pieces, n);
    else
        for (int i = pan_pset_find(set, 0); i >= 0; i = pan_pset_find(set, i + 1))
            pan2_send_one(i, &head, pieces, n);
}

static void send_fragment(int dest, pan_pset_p set, pan_fragment_p f)
{
    const struct pan2_piece pieces[2] = {{f->header, f->nsap ? (size_t)f->nsap->size : 0}, {f->data, f->n}};
    send(dest, set, f->nsap, PAN2_FRAGMENT, (uint32_t)f->flags, pieces, 2);
}

static void send_small(int dest, pan_pset_p set, pan_nsap_p a, const void *data)
{
    const struct pan2_piece piece = {data, (size_t)a->size};
    send(dest, set, a, PAN2_SMALL, 0, &piece, 1);
}

static void send_msg(int dest, pan_pset_p set, pan_msg_p m, pan_nsap_p a)
{
    const struct pan2_piece piece = {m->data, m->size};
    send(dest, set, a, PAN2_MSG, 0, &piece, 1);
}

void pan_comm_unicast_fragment(int dest, pan_fragment_p f)
{
    send_fragment(dest, NULL, f);
}
void pan_comm_multicast_fragment(pan_pset_p set, pan_fragment_p f)
{
    send_fragment(0, set, f);
}
void pan_comm_unicast_small(int dest, pan_nsap_p a, void *data)
{
    send_small(dest, NULL, a, data);
}
void pan_comm_multicast_small(pan_pset_p set, pan_nsap_p a, void *data)
{
    send_small(0, set, a, data);
}
void pan_comm_unicast_msg(int dest, pan_msg_p m, pan_nsap_p a)
{
    send_msg(dest, NULL, m, a);
}
void pan_comm_multicast_msg(pan_pset_p set, pan_msg_p m, pan_nsap_p a)
{
    send_msg(0, set, m, a);
}
