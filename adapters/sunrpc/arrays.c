/* SPDX-License-Identifier: BSD-3-Clause
 *
 * arrays.c - xdr_array and xdr_vector, which libtirpc does with a call for each element. Where the stream is ours and
 * the elements are numbers of 4 or 8 bytes, whole parts are converted at once; everything else is libtirpc's.
 *
 * Both symbols have libtirpc's version (sunrpc.map): programs with another XDR library do not come here. */
#include "preload.h"
#include "stream.h"

#include <pthread.h>
#include <stdlib.h>

/* Functions of libtirpc that convert one number of this width, whose memory has the same width. */
static const char *const names4[] = {"xdr_int",       "xdr_u_int", "xdr_int32_t", "xdr_uint32_t",
                                     "xdr_u_int32_t", "xdr_float", "xdr_enum",    "xdr_bool"};
static const char *const names8[] = {"xdr_hyper",   "xdr_u_hyper",  "xdr_longlong_t", "xdr_u_longlong_t",
                                     "xdr_int64_t", "xdr_uint64_t", "xdr_u_int64_t",  "xdr_double",
                                     "xdr_quad_t",  "xdr_u_quad_t"};
enum { NAMES4 = sizeof names4 / sizeof names4[0], NAMES8 = sizeof names8 / sizeof names8[0] };
static void *known4[NAMES4], *known8[NAMES8];

static void find(void)
{
    for (unsigned i = 0; i < NAMES4; i++)
        known4[i] = rnl_rpc_tirpc_symbol(names4[i]);
    for (unsigned i = 0; i < NAMES8; i++)
        known8[i] = rnl_rpc_tirpc_symbol(names8[i]);
}

/* The width of the numbers that `element` converts; 0 = it does something else. */
static u_int width_of(xdrproc_t element, u_int size)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    void *at;
    pthread_once(&once, find);
    *(xdrproc_t *)(void *)&at = element;
    for (unsigned i = 0; size == 4 && i < NAMES4; i++)
        if (at && at == known4[i])
            return 4;
    for (unsigned i = 0; size == 8 && i < NAMES8; i++)
        if (at && at == known8[i])
            return 8;
    return 0;
}

RNL_RPC_REAL(xdr_array, rnl_rpc_next_tirpc)
RNL_RPC_REAL(xdr_vector, rnl_rpc_next_tirpc)

RNL_RPC_INTERPOSED bool_t xdr_array(XDR *x, char **at, u_int *count, u_int max, u_int size, xdrproc_t element)
{
    u_int width = rnl_rpc_stream_is_ours(x) ? width_of(element, size) : 0;
    if (width == 0)
        return real_xdr_array()(x, at, count, max, size, element);
    if (x->x_op == XDR_FREE) {
        free(*at);
        *at = NULL;
        return TRUE;
    }
    if (!rnl_rpc_tirpc()->xdr_u_int(x, count) || *count > max || *count > UINT32_MAX / size)
        return FALSE;
    if (!*at) {
        if (*count == 0)
            return TRUE;
        if (x->x_op == XDR_ENCODE || (*at = calloc(*count, size)) == NULL)
            return FALSE;
    }
    return rnl_rpc_stream_numbers(x, *at, *count, width);
}

RNL_RPC_INTERPOSED bool_t xdr_vector(XDR *x, char *at, u_int count, u_int size, xdrproc_t element)
{
    u_int width = x->x_op != XDR_FREE && rnl_rpc_stream_is_ours(x) ? width_of(element, size) : 0;
    if (width == 0)
        return real_xdr_vector()(x, at, count, size, element);
    return rnl_rpc_stream_numbers(x, at, count, width);
}
