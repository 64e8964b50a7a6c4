/* SPDX-License-Identifier: BSD-3-Clause
 *
 * resend.c - see resend.h. */
#include "job/resend.h"

#include "job/pack.h"

#include <stdlib.h>
#include <string.h>

void rnl_resend_free(struct rnl_resend *k)
{
    if (k->at != NULL)
        explicit_bzero(k->at, k->room); /* a job's key may have been in it */
    free(k->at);
    *k = (struct rnl_resend){.at = NULL};
}

int rnl_resend_put(struct rnl_resend *k, const void *bytes, size_t n)
{
    if (k->first > 0 && k->end + n > k->room) {
        memmove(k->at, k->at + k->first, k->end - k->first);
        k->next -= k->first;
        k->end -= k->first;
        k->first = 0;
    }
    if (k->end + n > k->room && rnl_pack_room(&k->at, &k->room, k->end + n) < 0)
        return -1;
    if (n > 0)
        memcpy(k->at + k->end, bytes, n);
    k->end += n;
    return 0;
}

size_t rnl_resend_ready(const struct rnl_resend *k, const unsigned char **at)
{
    *at = k->at + k->next;
    return k->end - k->next;
}

static void forget(struct rnl_resend *k, size_t n)
{
    k->first += n;
    k->base += n;
    if (k->first == k->end)
        k->first = k->next = k->end = 0;
}

void rnl_resend_left(struct rnl_resend *k, size_t n)
{
    k->next += n;
    if (!k->keeps)
        forget(k, n);
}

int rnl_resend_acknowledged(struct rnl_resend *k, uint64_t through)
{
    if (through > k->base + (k->next - k->first))
        return -1;
    if (through > k->base)
        forget(k, (size_t)(through - k->base));
    return 0;
}

int rnl_resend_again(struct rnl_resend *k, uint64_t through)
{
    if (through < k->base || rnl_resend_acknowledged(k, through) < 0)
        return -1;
    k->next = k->first;
    return 0;
}
