/* SPDX-License-Identifier: BSD-3-Clause
 *
 * words.c - see words.h. */
#include "job/words.h"

#include "base/error.h"
#include "job/here.h"

#include <stdlib.h>
#include <string.h>

#define MS ((uint64_t)1000 * 1000)
static const uint64_t first_gap_ns = 20 * MS, most_gap_ns = 500 * MS;

void rnl_words_free(struct rnl_words *w)
{
    free(w->wait);
    *w = (struct rnl_words){.wait = NULL};
}

int rnl_words_waits(const struct rnl_words *w)
{
    return w->next > w->first;
}

int rnl_words_put(struct rnl_words *w, const struct rnl_word *word, uint64_t now_ns)
{
    size_t n = (size_t)(w->next - w->first);
    if (n == w->room && !w->failed) {
        size_t room = w->room == 0 ? 16 : 2 * w->room;
        struct rnl_word *more = realloc(w->wait, room * sizeof *more);
        w->failed = more == NULL;
        w->wait = more != NULL ? more : w->wait;
        w->room = more != NULL ? room : w->room;
    }
    if (w->failed)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for %zu words to another host", n + 1);
    if (n == 0) {
        w->gap_ns = first_gap_ns;
        w->again_ns = now_ns;
    }
    w->wait[n] = *word;
    w->next++;
    w->owes = 1; /* it goes at once, whatever waits for an answer */
    return 0;
}

size_t rnl_words_compose(struct rnl_words *w, unsigned char *at, size_t room, uint64_t now_ns)
{
    struct rnl_pack p = {.at = NULL};
    size_t n = (size_t)(w->next - w->first), most = (room - RNL_WORDS_HEAD) / RNL_WORDS_EACH;
    int again = n > 0 && now_ns >= w->again_ns;
    if (!w->owes && !again)
        return 0;
    n = n < most ? n : most;
    rnl_pack_64(&p, w->had);
    rnl_pack_64(&p, w->first);
    rnl_pack_32(&p, (uint32_t)n);
    rnl_pack_32(&p, 0);
    for (size_t i = 0; i < n; i++)
        rnl_word_pack(&p, &w->wait[i]);
    size_t bytes = p.failed ? 0 : p.bytes; /* later, then */
    if (bytes > 0)
        memcpy(at, p.at, bytes);
    rnl_pack_free(&p);
    w->owes = 0;
    if (again) {
        w->again_ns = now_ns + w->gap_ns;
        w->gap_ns = 2 * w->gap_ns < most_gap_ns ? 2 * w->gap_ns : most_gap_ns;
    }
    return bytes;
}

uint64_t rnl_words_deadline_ns(const struct rnl_words *w)
{
    return w->owes ? 0 : rnl_words_waits(w) ? w->again_ns : UINT64_MAX;
}

static void has_had(struct rnl_words *w, uint64_t had, uint64_t now_ns)
{
    uint64_t n = had - w->first;
    if (had <= w->first || had > w->next)
        return;
    memmove(w->wait, w->wait + n, (size_t)(w->next - had) * sizeof *w->wait);
    w->first = had;
    w->gap_ns = first_gap_ns;
    w->again_ns = now_ns; /* more than one datagram holds */
}

int rnl_words_hear(struct rnl_words *w, const unsigned char *at, size_t bytes, uint64_t now_ns,
                   void (*take)(void *arg, const struct rnl_word *), void *arg)
{
    struct rnl_unpack u = {.at = at, .left = bytes};
    uint64_t had = rnl_unpack_64(&u), first = rnl_unpack_64(&u);
    uint32_t n = rnl_unpack_32(&u), zero = rnl_unpack_32(&u);
    if (u.bad || zero != 0 || n > u.left / RNL_WORDS_EACH)
        return -1;
    has_had(w, had, now_ns);
    w->owes |= n > 0;
    for (uint32_t i = 0; i < n; i++) {
        struct rnl_unpack each = {.at = u.at + (size_t)i * RNL_WORDS_EACH, .left = RNL_WORDS_EACH};
        struct rnl_word word;
        rnl_word_unpack(&each, &word);
        if (first + i != w->had)
            continue; /* had it, or one before it is missing: it comes again */
        w->had++;
        take(arg, &word);
    }
    return 0;
}
