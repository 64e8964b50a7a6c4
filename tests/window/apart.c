/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rank 0 sends rank 1 half a message and then puts, which has to land before the message is complete; then it puts more
 * than rank 1 takes in, which has to hold up no message. For jobs of real processes, and for the virtual cluster. */
#include <runnel/window.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ID = 7, OWN = 8, SAY = 1, LONG = 2, HALF = 1 << 20, WINDOW_BYTES = 1 << 16, NOTES = 6000 };

static rnl_endpoint *ep;
static unsigned char half[HALF], taken[2 * HALF];
static unsigned notes, longs, echoes, ends;

static int64_t need(int64_t result, const char *what)
{
    if (result < 0) {
        fprintf(stderr, "%s: %s\n", what, rnl_last_error()->text);
        exit(1);
    }
    return result;
}

static void on_note(void *ctx, rnl_window *w, unsigned peer, size_t offset, size_t n)
{
    (void)ctx, (void)w, (void)peer, (void)offset, (void)n;
    notes++;
}

static int on_long(rnl_stream *s, unsigned peer, void *ctx)
{
    (void)peer, (void)ctx;
    longs += rnl_receive(s, taken, sizeof taken) == 0;
    return RNL_DONE;
}

/* Blocks and unblocks notifications, or ends; whatever it is comes back. */
static int on_say(const void *data, size_t n, unsigned peer, void *ctx)
{
    (void)ctx;
    if (rnl_rank(ep) == 0) {
        echoes++;
        return 0;
    }
    const char what = n ? *(const char *)data : '\0';
    if (what == 'b' || what == 'u')
        need(what == 'b' ? rnl_notify_block(ep) : rnl_notify_unblock(ep), "block");
    ends += what == 'e';
    need(rnl_send(ep, peer, SAY, data, n), "echo");
    return 0;
}

static void say(char what)
{
    const unsigned before = echoes;
    need(rnl_send(ep, 1, SAY, &what, 1), "send");
    for (unsigned i = 0; echoes == before; i++) {
        const int64_t did = rnl_wait(ep, 20000000);
        if (did != RNL_TIMED_OUT)
            need(did, "wait");
        if (i > 1000) {
            fprintf(stderr, "no echo of %c\n", what);
            exit(1);
        }
    }
}

static void behind_half_a_message(rnl_import *m)
{
    const struct rnl_message begin = {.peer = 1, .handler = LONG, .bound = sizeof taken};
    unsigned char word[8] = "written", back[8];
    uint64_t was;
    rnl_stream *s;
    need(rnl_begin(ep, &begin, &s), "begin");
    need(rnl_piece(s, half, HALF), "piece");
    need(rnl_flush(ep), "flush");
    need(rnl_put(m, 8, word, 8, RNL_PUT_NOTIFY), "put");
    const int status = rnl_quiet(ep, 1, 5000000000);
    printf("behind half a message: %s\n", status == 0 ? "landed" : rnl_status_name(status));
    fflush(stdout);
    need(status, "quiet");
    need(rnl_get(m, 8, back, 8), "get");
    need(rnl_fetch_add(m, 16, 1, &was), "add");
    if (memcmp(back, word, 8) != 0 || was != 0)
        exit(1);
    need(rnl_piece(s, half, HALF), "second piece");
    need(rnl_end(s), "end");
}

static void beside_puts_that_wait(rnl_import *m)
{
    static rnl_token tokens[NOTES];
    const unsigned char word[8] = "written";
    say('b');
    for (unsigned i = 0; i < NOTES; i++) {
        int status;
        while ((status = rnl_put_async(m, 8, word, 8, RNL_PUT_NOTIFY, &tokens[i])) == RNL_NO_ROOM) {
            const int64_t did = rnl_wait(ep, 1000000);
            if (did != RNL_TIMED_OUT)
                need(did, "wait");
        }
        need(status, "put");
    }
    printf("puts whose notifications wait: %s\n", rnl_status_name(rnl_quiet(ep, 1, 300000000)));
    say('u');
    need(rnl_quiet(ep, 1, 20000000000), "last quiet");
}

int main(void)
{
    rnl_window *w;
    rnl_import *m;
    void *at;
    const struct rnl_offer offer = {.size = sizeof offer, .id = ID, .notify = on_note, .flags = RNL_OFFER_CARRIED};
    need(rnl_open(&ep, NULL), "open");
    need(rnl_handler_whole(ep, SAY, on_say, NULL, 0), "handler");
    need(rnl_handler_stream(ep, LONG, on_long, NULL), "handler");
    if (rnl_size(ep) == 1) {
        printf("a job of one rank: there is nobody to put to\n");
    } else if (rnl_rank(ep) == 0) {
        need(rnl_window_import(ep, 1, ID, 20000000000, &m, NULL), "import");
        rnl_import *own;
        printf("of its own user: %s\n", rnl_status_name(rnl_window_import(ep, 1, OWN, 20000000000, &own, NULL)));
        behind_half_a_message(m);
        beside_puts_that_wait(m);
        say('e');
    } else if (rnl_rank(ep) == 1) {
        const struct rnl_admit nobody = {.flags = 0};
        const struct rnl_offer private = {.size = sizeof private, .id = OWN, .who = &nobody};
        need(rnl_window_alloc(ep, WINDOW_BYTES, &at, &w), "alloc");
        need(rnl_window_offer(w, &private), "offer");
        need(rnl_window_alloc(ep, WINDOW_BYTES, &at, &w), "alloc");
        need(rnl_window_offer(w, &offer), "offer");
        while (!ends || notes < 1 + NOTES)
            need(rnl_wait(ep, 40000000000), "wait");
        printf("%u notifications, %u long message\n", notes, longs);
        fflush(stdout);
    }
    need(rnl_close(ep), "close");
    return 0;
}
