/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ranks that put into each other's windows, all to all: for jobs of real processes, and for the virtual cluster. Rank 0
 * prints one line at the end. The option says which kind of import it expects: -d direct, -c carried, none either. */
#include <runnel/window.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ID = 5, SLOT = 3000, ROUNDS = 12 };

static unsigned notes;

static int64_t need(int64_t result, const char *what)
{
    if (result < 0) {
        fprintf(stderr, "%s: %s\n", what, rnl_last_error()->text);
        exit(1);
    }
    return result;
}

static void must(int truth, const char *what)
{
    if (!truth) {
        fprintf(stderr, "not so: %s\n", what);
        exit(1);
    }
}

/* The bytes of a round are those that the notification finds, since each slot is written once. */
static void on_note(void *ctx, rnl_window *w, unsigned peer, size_t offset, size_t n)
{
    const unsigned char *at = (const unsigned char *)ctx + offset;
    (void)w;
    must(n == SLOT - 8, "length of a notification");
    for (size_t i = 0; i < n; i++)
        must(at[i] == (unsigned char)(peer + 1 + i % 13), "bytes of a notified put");
    notes++;
}

int main(int argc, char **argv)
{
    rnl_endpoint *ep;
    rnl_window *w;
    const char how = argc > 1 ? argv[1][1] : '\0';
    unsigned char own[SLOT];
    need(rnl_open(&ep, NULL), "open");
    const unsigned me = rnl_rank(ep), all = rnl_size(ep);
    struct rnl_offer offer = {.size = sizeof offer, .id = ID, .notify = on_note};
    const size_t head = 4096, bytes = head + (size_t)all * ROUNDS * SLOT;
    void *at;
    need(rnl_window_alloc(ep, bytes, &at, &w), "alloc");
    offer.ctx = at;
    need(rnl_window_offer(w, &offer), "offer");
    for (size_t i = 0; i < sizeof own; i++)
        own[i] = (unsigned char)(me + 1 + i % 13);
    for (unsigned k = 0; k < all; k++) {
        const unsigned peer = (me + k) % all;
        rnl_import *m;
        uint64_t was;
        need(rnl_window_import(ep, peer, ID, 20000000000, &m, NULL), "import");
        must(how == '\0' || peer == me || rnl_import_is_direct(m) == (how == 'd'), "kind of import");
        for (unsigned r = 0; r < ROUNDS; r++) {
            const size_t slot = head + ((size_t)me * ROUNDS + r) * SLOT;
            need(rnl_put(m, slot, own, SLOT - 8, RNL_PUT_NOTIFY), "put");
            need(rnl_fetch_add(m, 8 * r, 1, &was), "add");
            must(was < all, "sum of an atomic");
        }
        need(rnl_quiet(ep, peer, 20000000000), "quiet");
        unsigned char back[SLOT];
        need(rnl_get(m, head + (size_t)me * ROUNDS * SLOT, back, SLOT - 8), "get");
        must(memcmp(back, own, SLOT - 8) == 0, "bytes that were got");
        need(rnl_import_drop(m), "drop");
    }
    while (notes < all * ROUNDS)
        need(rnl_notify_wait(ep, 20000000000), "wait");
    uint64_t sum[ROUNDS];
    do {
        need(rnl_extract(ep, SIZE_MAX), "extract");
        memcpy(sum, at, sizeof sum);
    } while (sum[ROUNDS - 1] < all);
    for (unsigned r = 0; r < ROUNDS; r++)
        must(sum[r] == all, "sum of all");
    need(rnl_close(ep), "close");
    if (me == 0)
        printf("%u ranks, %u notifications\n", all, notes);
    return 0;
}
