/* SPDX-License-Identifier: BSD-3-Clause
 *
 * calls.c - XDR routines of the test program. */
#include "calls.h"

bool_t xdr_calls_pair(XDR *x, struct calls_pair *p)
{
    int32_t *in_place = x->x_op == XDR_FREE ? NULL : XDR_INLINE(x, 2 * BYTES_PER_XDR_UNIT);
    if (!in_place)
        return xdr_int(x, &p->a) && xdr_int(x, &p->b);
    if (x->x_op == XDR_ENCODE) {
        IXDR_PUT_INT32(in_place, p->a);
        IXDR_PUT_INT32(in_place, p->b);
    } else {
        p->a = IXDR_GET_INT32(in_place);
        p->b = IXDR_GET_INT32(in_place);
    }
    return TRUE;
}

bool_t xdr_calls_string(XDR *x, char **s)
{
    return xdr_string(x, s, CALLS_STRING_MAX);
}

bool_t xdr_calls_bytes(XDR *x, struct calls_bytes *b)
{
    return xdr_bytes(x, &b->at, &b->count, CALLS_BYTES_MAX);
}

bool_t xdr_calls_ints(XDR *x, struct calls_ints *a)
{
    return xdr_array(x, (char **)(void *)&a->at, &a->count, CALLS_BYTES_MAX / 4, sizeof(int), (xdrproc_t)xdr_int);
}

bool_t xdr_calls_hypers(XDR *x, struct calls_hypers *a)
{
    return xdr_array(x, (char **)(void *)&a->at, &a->count, CALLS_BYTES_MAX / 8, sizeof(int64_t),
                     (xdrproc_t)xdr_int64_t);
}

bool_t xdr_calls_shape(XDR *x, struct calls_shape *s)
{
    if (!xdr_int(x, &s->kind))
        return FALSE;
    switch (s->kind) {
    case 0:
        return TRUE;
    case 1:
        return xdr_int(x, &s->number);
    case 2:
        return xdr_calls_string(x, &s->text);
    default:
        return xdr_calls_bytes(x, &s->bytes);
    }
}

bool_t xdr_calls_list(XDR *x, struct calls_list **l)
{
    struct calls_list *rest;
    for (;;) {
        bool_t more = *l != NULL;
        struct calls_list *next = x->x_op == XDR_FREE && more ? (*l)->next : NULL;
        if (!xdr_bool(x, &more))
            return FALSE;
        if (!more) {
            *l = NULL;
            return TRUE;
        }
        if (!xdr_reference(x, (char **)(void *)l, sizeof **l, (xdrproc_t)xdr_int))
            return FALSE;
        rest = next;
        l = x->x_op == XDR_FREE ? &rest : &(*l)->next;
    }
}

bool_t xdr_calls_who(XDR *x, struct calls_who *w)
{
    return xdr_int(x, &w->flavor) && xdr_int(x, &w->uid) && xdr_int(x, &w->gid) && xdr_int(x, &w->gids) &&
           xdr_calls_string(x, &w->netid) && xdr_int(x, &w->family) && xdr_int(x, &w->addrlen);
}

bool_t xdr_calls_vector(XDR *x, struct calls_vector *v)
{
    return xdr_u_long(x, &v->number) && xdr_vector(x, (char *)v->ints, 5, sizeof(int), (xdrproc_t)xdr_int) &&
           xdr_vector(x, (char *)v->doubles, 3, sizeof(double), (xdrproc_t)xdr_double);
}
