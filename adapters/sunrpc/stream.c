/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stream.c - XDR streams over a link. Parts of a record may have any length, so a word can lie across two of them. */
#include "stream.h"

#include "host.h"

#include "base/copy.h"
#include "base/error.h"

#include <arpa/inet.h>
#include <endian.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { WORD = 4, SHORT_MAX = 64, REMOTE_MIN = 1024 };
typedef uint32_t __attribute__((may_alias, aligned(1))) loose_word;

static struct rnl_rpc_link *link_of(XDR *x)
{
    return x->x_private;
}

/* ---- copies ---- */

/* Where the other core is far, a plain store into a line that it has read waits for that line; a whole line that is
 * written past the caches does not. Where it is near, that is the slower one. */
static void copy_remote(unsigned char *to, const unsigned char *from, size_t n)
{
#ifdef __SSE2__
    size_t odd = (64 - ((uintptr_t)to & 63)) & 63;
    memcpy(to, from, odd);
    for (to += odd, from += odd, n -= odd; n >= 64; to += 64, from += 64, n -= 64)
        for (int i = 0; i < 64; i += 16)
            _mm_stream_si128((__m128i *)(void *)(to + i), _mm_loadu_si128((const __m128i *)(const void *)(from + i)));
    _mm_sfence(); /* before the line that hands this part over */
#endif
    memcpy(to, from, n);
}

static void store(struct rnl_rpc_link *link, const void *from, size_t n)
{
    if (RNL_LIKELY(n <= SHORT_MAX))
        rnl_copy_short(link->out_at, from, n);
    else if (n >= REMOTE_MIN && (link->distance & 1) == RNL_FAR)
        copy_remote(link->out_at, from, n);
    else
        rnl_copy_in(link->out_at, from, n);
    link->out_at += n;
}

/* ---- writing ---- */

bool rnl_rpc_stream_put(struct rnl_rpc_link *link, const void *from, size_t n)
{
    while (n > 0) {
        if (link->out_at == link->out_end && !link->ops->room(link))
            return false;
        size_t k = (size_t)(link->out_end - link->out_at);
        k = k < n ? k : n;
        store(link, from, k);
        from = (const char *)from + k;
        n -= k;
    }
    return true;
}

static bool put_word(struct rnl_rpc_link *link, uint32_t host)
{
    uint32_t word = htonl(host);
    if (RNL_UNLIKELY(link->out_end - link->out_at < WORD))
        return rnl_rpc_stream_put(link, &word, sizeof word);
    memcpy(link->out_at, &word, sizeof word);
    link->out_at += sizeof word;
    return true;
}

static bool_t out_long(XDR *x, const long *value)
{
    return put_word(link_of(x), (uint32_t)*value);
}

static bool_t out_bytes(XDR *x, const char *from, u_int n)
{
    return rnl_rpc_stream_put(link_of(x), from, n);
}

static u_int out_position(XDR *x)
{
    struct rnl_rpc_link *link = link_of(x);
    if (!link->out_at)
        return (u_int)link->out_bytes;
    return (u_int)(link->out_bytes + link->out_room - (uint64_t)(link->out_end - link->out_at));
}

static int32_t *out_inline(XDR *x, u_int n)
{
    struct rnl_rpc_link *link = link_of(x);
    unsigned char *at = link->out_at;
    if (!at || (size_t)(link->out_end - at) < n || (uintptr_t)at % WORD != 0)
        return NULL;
    link->out_at += n;
    return (int32_t *)(void *)at;
}

/* ---- reading ---- */

static bool get(struct rnl_rpc_link *link, void *to, size_t n)
{
    while (n > 0) {
        if (link->in_at == link->in_end && !link->ops->next(link))
            return false;
        size_t k = (size_t)(link->in_end - link->in_at);
        k = k < n ? k : n;
        if (RNL_LIKELY(k <= SHORT_MAX))
            rnl_copy_short(to, link->in_at, k);
        else
            rnl_copy_out(to, link->in_at, k, rnl_rpc_host.facts.wide_copy);
        link->in_at += k;
        to = (char *)to + k;
        n -= k;
    }
    return true;
}

static bool get_word(struct rnl_rpc_link *link, uint32_t *host)
{
    uint32_t word;
    if (RNL_UNLIKELY(link->in_end - link->in_at < WORD)) {
        if (!get(link, &word, sizeof word))
            return false;
    } else {
        word =
            *(const volatile loose_word *)link->in_at; /* volatile: it must not be loaded again after it was checked */
        link->in_at += sizeof word;
    }
    *host = ntohl(word);
    return true;
}

static bool_t in_long(XDR *x, long *value)
{
    uint32_t word;
    if (!get_word(link_of(x), &word))
        return FALSE;
    *value = (long)word; /* not extended by its sign, as libtirpc does it: xdr_u_long takes this over as it is */
    return TRUE;
}

static bool_t in_bytes(XDR *x, char *to, u_int n)
{
    return get(link_of(x), to, n);
}

static int32_t *in_inline(XDR *x, u_int n)
{
    struct rnl_rpc_link *link = link_of(x);
    const unsigned char *at = link->in_at;
    if (x->x_op != XDR_DECODE || !link->in_private || !at || (size_t)(link->in_end - at) < n ||
        (uintptr_t)at % WORD != 0)
        return NULL;
    link->in_at += n;
    return (int32_t *)(void *)(uintptr_t)at;
}

static u_int in_position(XDR *x)
{
    (void)x;
    return 0;
}

/* ---- both ---- */

static bool_t refuse_position(XDR *x, u_int position)
{
    (void)x, (void)position;
    return FALSE;
}

static bool_t refuse_control(XDR *x, int request, void *info)
{
    (void)x, (void)request, (void)info;
    return FALSE;
}

static void do_nothing(XDR *x)
{
    (void)x;
}

/* A stream that only writes is never asked to read, but programs may try. */
static bool_t refuse_long(XDR *x, long *value)
{
    (void)x, (void)value;
    return FALSE;
}
static bool_t refuse_put_long(XDR *x, const long *value)
{
    (void)x, (void)value;
    return FALSE;
}
static bool_t refuse_bytes(XDR *x, char *to, u_int n)
{
    (void)x, (void)to, (void)n;
    return FALSE;
}
static bool_t refuse_put_bytes(XDR *x, const char *from, u_int n)
{
    (void)x, (void)from, (void)n;
    return FALSE;
}

static const struct xdr_ops out_ops = {refuse_long,     out_long,   refuse_bytes, out_bytes,     out_position,
                                       refuse_position, out_inline, do_nothing,   refuse_control};
static const struct xdr_ops in_ops = {in_long,         refuse_put_long, in_bytes,   refuse_put_bytes, in_position,
                                      refuse_position, in_inline,       do_nothing, refuse_control};

void rnl_rpc_stream_out(XDR *x, struct rnl_rpc_link *link)
{
    *x = (XDR){.x_op = XDR_ENCODE, .x_ops = &out_ops, .x_private = link};
}

void rnl_rpc_stream_in(XDR *x, struct rnl_rpc_link *link)
{
    *x = (XDR){.x_op = XDR_DECODE, .x_ops = &in_ops, .x_private = link};
}

bool rnl_rpc_stream_is_ours(const XDR *x)
{
    return x->x_ops == &in_ops || x->x_ops == &out_ops;
}

bool_t rnl_rpc_xdr_nothing(XDR *x, ...)
{
    (void)x;
    return TRUE;
}

/* ---- numbers ---- */

static void swap(unsigned char *to, const unsigned char *from, size_t n, u_int width)
{
    if (width == WORD)
        for (size_t i = 0; i < n; i++) {
            uint32_t word;
            memcpy(&word, from + i * sizeof word, sizeof word);
            word = htobe32(word);
            memcpy(to + i * sizeof word, &word, sizeof word);
        }
    else
        for (size_t i = 0; i < n; i++) {
            uint64_t word;
            memcpy(&word, from + i * sizeof word, sizeof word);
            word = htobe64(word);
            memcpy(to + i * sizeof word, &word, sizeof word);
        }
}

static bool put_numbers(struct rnl_rpc_link *link, const unsigned char *at, size_t n, u_int width)
{
    while (n > 0) {
        if (link->out_at == link->out_end && !link->ops->room(link))
            return false;
        size_t k = (size_t)(link->out_end - link->out_at) / width;
        k = k < n ? k : n;
        swap(link->out_at, at, k, width);
        link->out_at += k * width;
        if (k == 0) { /* one across the end of a part */
            unsigned char one[8];
            swap(one, at, k = 1, width);
            if (!rnl_rpc_stream_put(link, one, width))
                return false;
        }
        at += k * width;
        n -= k;
    }
    return true;
}

static bool get_numbers(struct rnl_rpc_link *link, unsigned char *at, size_t n, u_int width)
{
    while (n > 0) {
        if (link->in_at == link->in_end && !link->ops->next(link))
            return false;
        size_t k = (size_t)(link->in_end - link->in_at) / width;
        k = k < n ? k : n;
        swap(at, link->in_at, k, width);
        link->in_at += k * width;
        if (k == 0) {
            unsigned char one[8];
            if (!get(link, one, width))
                return false;
            swap(at, one, k = 1, width);
        }
        at += k * width;
        n -= k;
    }
    return true;
}

bool rnl_rpc_stream_numbers(XDR *x, char *at, u_int n, u_int width)
{
    unsigned char *bytes = (unsigned char *)at;
    return x->x_op == XDR_ENCODE ? put_numbers(link_of(x), bytes, n, width) : get_numbers(link_of(x), bytes, n, width);
}
