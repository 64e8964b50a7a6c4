/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fuzz_window.c - windows, and a peer that speaks their language and says what it likes in it: as an importer, as an
 * owner whose answers and revokes are lies, true, nearly so or not at all, cut short or followed by more. Nothing
 * beside what it was granted is written, nothing after a revoke, no more is kept for it than its share, and an honest
 * import is served all the same. The two are apart, so that all goes over their endpoints, in one order. */
#include "fuzz/input.h"

#include "endpoint/endpoint.h"
#include "job/job.h"
#include "window/window_internal.h"

enum { BYTES = 4096, GUARD = 64, STEPS = 60, MORE = 300, FREE_ID = 5, TAKEN_ID, OTHERS_ID };

static struct {
    struct fuzz_input in;
    rnl_endpoint *ep[2];
    unsigned char memory[BYTES + 2 * GUARD], fixed[BYTES], own[MORE];
    rnl_window *offered, *kept; /* one for the liar, one that it may not import */
    rnl_import *import;         /* of the liar's */
    rnl_token token;
    uint64_t before;
    unsigned notes;
    uint32_t tag; /* of the last question of ours */
    struct rnl_handler heard;
} z;

static void on_note(void *ctx, rnl_window *w, unsigned peer, size_t offset, size_t n)
{
    (void)ctx, (void)peer;
    FUZZ_MUST(w == z.offered && offset <= BYTES && n <= BYTES - offset);
    z.notes++;
}

static int on_admit(void *ctx, unsigned peer)
{
    (void)ctx;
    return peer == 0 ? 0 : -1;
}

static void offer(void)
{
    const struct rnl_offer o = {.size = sizeof o, .id = FREE_ID, .notify = on_note};
    FUZZ_MUST(rnl_window_wrap(z.ep[0], z.memory + GUARD, BYTES, &z.offered) == 0);
    FUZZ_MUST(rnl_window_offer(z.offered, &o) == 0);
}

/* ---- the liar, rank 1 ---- */

/* Draws the body of a message of that kind. Returns its bytes. */
static size_t draw(unsigned kind, unsigned char *to)
{
    struct fuzz_input *in = &z.in;
    uint32_t tag = (uint32_t)fuzz_number(in, z.tag),
             grant = fuzz_below(in, 8) ? fuzz_below(in, 3) : (uint32_t)fuzz_number(in, 0);
    uint16_t generation = (uint16_t)(fuzz_below(in, 4) ? 0 : fuzz_number(in, 1));
    uint64_t offset = fuzz_number(in, BYTES / 2), n = fuzz_number(in, MORE / 2);
    memset(to, 0, sizeof(struct window_meet));
    switch (kind) {
    case WINDOW_MEET:
    case WINDOW_MET: {
        struct window_meet m = {.address = "rnl1.0.x"};
        fuzz_bytes(in, m.address + 5, fuzz_below(in, 60));
        memcpy(to, &m, sizeof m);
        return sizeof m;
    }
    case WINDOW_IMPORT: {
        static const uint32_t ids[] = {FREE_ID, TAKEN_ID, OTHERS_ID};
        const uint32_t id = ids[fuzz_below(in, 3)];
        const struct window_import m = {.tag = tag, .id = id, .how = (uint32_t)n & 3};
        memcpy(to, &m, sizeof m);
        return sizeof m;
    }
    case WINDOW_UNASK:
    case WINDOW_OFFERED: {
        const struct window_id m = {OTHERS_ID};
        memcpy(to, &m, sizeof m);
        return sizeof m;
    }
    case WINDOW_PUT:
    case WINDOW_PUT_NOTIFY:
    case WINDOW_NOTIFY: {
        const struct window_put m = {.grant = grant, .generation = generation, .offset = offset, .n = n};
        memcpy(to, &m, sizeof m);
        memset(to + sizeof m, 0x77, MORE);
        return sizeof m + (kind == WINDOW_NOTIFY ? 0 : n < MORE ? (size_t)n : MORE);
    }
    case WINDOW_GET: {
        const struct window_get m = {tag, grant, generation, 0, (uint32_t)n, offset};
        memcpy(to, &m, sizeof m);
        return sizeof m;
    }
    case WINDOW_CHANGE:
    case WINDOW_ATOMIC: {
        const uint8_t bytes = (uint8_t)fuzz_number(in, 8), op = (uint8_t)fuzz_below(in, 8);
        const struct window_atomic m = {tag, grant, generation, bytes, op, 0, offset, 0x7777, n};
        memcpy(to, &m, sizeof m);
        return sizeof m;
    }
    case WINDOW_REVOKED: {
        const struct window_revoked m = {tag, grant, generation, 0};
        memcpy(to, &m, sizeof m);
        return sizeof m;
    }
    case WINDOW_DROP: {
        const struct window_drop m = {grant, generation, 0};
        memcpy(to, &m, sizeof m);
        return sizeof m;
    }
    case WINDOW_IMPORTED: {
        const int32_t status = fuzz_below(in, 3) ? 0 : (int32_t)fuzz_number(in, 0);
        const struct window_imported m = {{tag, status}, grant, generation, (uint16_t)(n & 1), fuzz_number(in, BYTES)};
        memcpy(to, &m, sizeof m);
        return sizeof m;
    }
    default: { /* the other answers, and what has no body */
        const int32_t status = fuzz_below(in, 3) ? 0 : (int32_t)fuzz_number(in, 0);
        const struct window_changed m = {{tag, status}, n};
        memcpy(to, &m, sizeof m);
        memset(to + sizeof m.a, 0x66, MORE);
        return sizeof m.a + (kind == WINDOW_GOT ? n % MORE : kind == WINDOW_CHANGED ? 8 : 0);
    }
    }
}

/* The body is drawn, and now and then cut short, or followed by more. */
static size_t draw_odd(unsigned kind, unsigned char to[512])
{
    size_t n = draw(kind, to);
    unsigned odd = fuzz_below(&z.in, 12);
    if (odd == 0)
        n = n * fuzz_below(&z.in, 256) / 256;
    if (odd == 1)
        n += fuzz_below(&z.in, 20);
    return n;
}

static void say(void)
{
    unsigned char bytes[512];
    unsigned kind = fuzz_below(&z.in, WINDOW_KINDS + 1);
    size_t n = draw_odd(kind, bytes), cut = fuzz_below(&z.in, 3) ? 0 : n * fuzz_below(&z.in, 256) / 256;
    const struct rnl_message b = {.peer = 0,
                                  .handler = RNL_LIBRARY_ID + kind,
                                  .bound = n,
                                  .answer = fuzz_below(&z.in, 4) ? RNL_REPLY_MAX : fuzz_below(&z.in, 100),
                                  .flags = RNL_NO_WAIT};
    rnl_stream *s;
    if (rnl_begin(z.ep[1], &b, &s) != 0)
        return;
    if (rnl_piece(s, bytes, cut) < 0 || (cut && rnl_extract(z.ep[0], SIZE_MAX) < 0) ||
        rnl_piece(s, bytes + cut, n - cut) < 0 || rnl_end(s) < 0)
        rnl_abort(s);
}

/* What it is asked, it answers with anything, or with nothing. */
static int on_asked(rnl_stream *s, unsigned peer, void *ctx)
{
    unsigned char bytes[512];
    uint32_t tag = 0;
    (void)peer, (void)ctx;
    if (rnl_length(s, NULL) >= sizeof tag && rnl_receive(s, &tag, sizeof tag) == 0)
        z.tag = tag;
    static const unsigned answers[] = {WINDOW_MET,     WINDOW_IMPORTED, WINDOW_GOT,
                                       WINDOW_CHANGED, WINDOW_QUIETED,  WINDOW_UNMAPPED};
    if (fuzz_below(&z.in, 5) == 0)
        return RNL_DONE;
    unsigned kind = answers[fuzz_below(&z.in, 6)];
    size_t n = draw_odd(kind, bytes);
    (void)!rnl_reply(s, RNL_LIBRARY_ID + kind, bytes, n);
    return RNL_DONE;
}

static const struct rnl_handler *hears(struct rnl_endpoint *ep, unsigned id)
{
    (void)ep, (void)id;
    return &z.heard;
}

static unsigned nothing(struct rnl_endpoint *ep)
{
    (void)ep;
    return 0;
}

static int none(struct rnl_endpoint *ep)
{
    (void)ep;
    return 0;
}

static void gone(struct rnl_endpoint *ep, uint32_t rank)
{
    (void)ep, (void)rank;
}

static void freed(struct rnl_endpoint *ep)
{
    (void)ep;
}

static const struct rnl_window_ops liar = {
    .handler = hears, .progress = nothing, .has = none, .arm = none, .gone = gone, .free = freed};

/* ---- the honest side, rank 0 ---- */

static void use_import(void)
{
    unsigned how = fuzz_below(&z.in, 4);
    size_t offset = fuzz_below(&z.in, BYTES), n = fuzz_below(&z.in, MORE);
    if (how == 0) {
        rnl_import_drop(z.import);
        z.import = NULL;
    } else if (rnl_token_state(&z.token) == 1) {
        return; /* what it writes to is in use */
    } else if (how == 1) {
        (void)!rnl_get_async(z.import, offset, z.own, n, &z.token);
    } else if (how == 2) {
        (void)!rnl_atomic_async(z.import, offset & ~(size_t)7, 8, RNL_ATOMIC_ADD, 1, 0, &z.before, &z.token);
    } else {
        (void)!rnl_put_async(z.import, offset, z.own, n, 0, &z.token);
    }
}

static void step(void)
{
    unsigned what = fuzz_below(&z.in, 12);
    if (what == 0 && !z.import)
        (void)!rnl_import_begin(z.ep[0], 1, OTHERS_ID, &z.import);
    else if (what == 1 && z.import)
        use_import();
    else if (what == 2 && z.offered) {
        FUZZ_MUST(rnl_window_revoke(z.offered, 0) == 0 && rnl_window_free(z.offered) == 0);
        z.offered = NULL;
        memcpy(z.fixed, z.memory + GUARD, BYTES);
    } else if (what == 3 && !z.offered)
        offer();
    else
        say();
    FUZZ_MUST(rnl_extract(z.ep[0], SIZE_MAX) >= 0);
    (void)!rnl_extract(z.ep[1], SIZE_MAX);
}

static void check(void)
{
    for (unsigned i = 0; i < GUARD; i++)
        FUZZ_MUST(z.memory[i] == 0xa5 && z.memory[GUARD + BYTES + i] == 0xa5);
    if (!z.offered)
        FUZZ_MUST(memcmp(z.fixed, z.memory + GUARD, BYTES) == 0);
    const struct window_peer *p = z.ep[0]->windows ? z.ep[0]->windows->peer[1] : NULL;
    if (p)
        FUZZ_MUST(p->early_count <= WINDOW_EARLY && p->waiting_count <= WINDOW_WAITING);
}

/* A rank's own window, by the same messages. */
static void serve_oneself(void)
{
    rnl_import *m;
    uint64_t was = 1;
    FUZZ_MUST(rnl_window_import(z.ep[0], 0, TAKEN_ID, -1, &m, NULL) == 0);
    FUZZ_MUST(rnl_fetch_add(m, 0, 1, &was) == 0 && was == 0);
    FUZZ_MUST(rnl_import_drop(m) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint64_t word;
    const struct rnl_offer kept = {.size = sizeof kept, .id = TAKEN_ID, .admit = on_admit};
    rnl_hub *hub;
    memset(&z, 0, sizeof z);
    z.in = (struct fuzz_input){data, data + size};
    z.heard.stream = on_asked;
    memset(z.memory, 0xa5, sizeof z.memory);
    word = 0;
    if (rnl_hub_new(2, &hub) < 0)
        return 0;
    for (unsigned i = 0; i < 2; i++) {
        struct rnl_options opt = {.size = sizeof opt, .hub = hub, .hub_rank = i, .stacks = 2};
        FUZZ_MUST(rnl_open(&z.ep[i], &opt) == 0);
        z.ep[i]->env->open = NULL;
    }
    z.ep[1]->window_ops = &liar;
    offer();
    FUZZ_MUST(rnl_window_wrap(z.ep[0], &word, sizeof word, &z.kept) == 0 && rnl_window_offer(z.kept, &kept) == 0);
    for (unsigned i = 0; i < STEPS && fuzz_more(&z.in); i++) {
        step();
        check();
    }
    FUZZ_MUST(word == 0);
    serve_oneself();
    rnl_hub_kill(hub, 1, RNL_DEATH_SIGNAL, 9);
    FUZZ_MUST(rnl_extract(z.ep[0], SIZE_MAX) >= 0);
    if (z.offered)
        FUZZ_MUST(rnl_window_importers(z.offered, NULL, 0) == 0);
    if (z.import)
        FUZZ_MUST(rnl_import_drop(z.import) == 0);
    for (unsigned i = 0; i < 2; i++)
        rnl_ep_free(z.ep[i]);
    rnl_hub_free(hub);
    return 0;
}
