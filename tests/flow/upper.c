/* SPDX-License-Identifier: BSD-3-Clause
 *
 * upper.c - units, their fates, and keys. */
#include "flow/upper.h"

#include <stdlib.h>
#include <string.h>

#include "net/wire/bytes.h"

enum fate { UNSENT = 0, FLYING, LOST, DONE };

static void wrong(struct upper *u, const char *what)
{
    if (!u->wrong)
        u->wrong = what;
}

void upper_pair(struct upper *a, struct upper *b, uint32_t unit)
{
    struct upper *both[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        memset(both[i], 0, sizeof *both[i]);
        both[i]->peer = both[!i];
        both[i]->unit = unit;
        both[i]->window = 4 << 20;
    }
}

void upper_free(struct upper *u)
{
    free(u->fate);
    free(u->here);
    free(u->lost);
}

void upper_send(struct upper *u, uint64_t units)
{
    u->known += units;
    rnl_flow_has_data(&u->flow);
}

static void exist(struct upper *u, uint64_t units)
{
    if (units <= u->room)
        return;
    uint64_t old = u->room;
    u->room = units * 2;
    u->fate = realloc(u->fate, u->room);
    u->peer->here = realloc(u->peer->here, u->room);
    memset(u->fate + old, 0, u->room - old);
    memset(u->peer->here + old, 0, u->room - old);
}

static uint32_t fill(void *ctx, unsigned char *at, uint32_t room, struct rnl_flow_note *notes, unsigned *count)
{
    struct upper *u = ctx;
    uint32_t used = 0, most = u->units_per_packet ? u->units_per_packet : RNL_FLOW_NOTES;
    while (used + u->unit <= room && *count < RNL_FLOW_NOTES && *count < most) {
        uint64_t n;
        if (u->lost_head < u->lost_tail)
            n = u->lost[u->lost_head++ % u->lost_room];
        else if (u->next < u->known)
            n = u->next++;
        else
            break;
        exist(u, n + 1);
        if (u->fate[n] != UNSENT && u->fate[n] != LOST)
            wrong(u, "a unit goes out whose fate is not known");
        u->fate[n] = FLYING;
        notes[(*count)++] = (struct rnl_flow_note){.kind = 1, .aux = 7, .from = (uint32_t)n, .to = ~(uint32_t)n};
        memset(at + used, (int)n, u->unit);
        rnl_put64(at + used, n);
        used += u->unit;
    }
    if (u->says_end && u->next == u->known && u->lost_head == u->lost_tail)
        rnl_flow_no_more_data(&u->flow);
    return used;
}

static int known(struct upper *u, const struct rnl_flow_note *note)
{
    if (note->kind == 1 && note->aux == 7 && note->to == ~note->from && note->from < u->next)
        return 1;
    wrong(u, "a note came back changed");
    return 0;
}

static void acked(void *ctx, const struct rnl_flow_note *note)
{
    struct upper *u = ctx;
    if (!known(u, note))
        return;
    if (u->fate[note->from] != FLYING)
        wrong(u, "a note is acked that was not in flight");
    if (!u->peer->here[note->from])
        wrong(u, "what is acked never arrived");
    u->fate[note->from] = DONE;
    u->done++;
}

static void lost(void *ctx, const struct rnl_flow_note *note)
{
    struct upper *u = ctx;
    if (!known(u, note))
        return;
    if (u->fate[note->from] != FLYING)
        wrong(u, "a note is lost that was not in flight");
    u->fate[note->from] = LOST;
    if (u->lost_tail - u->lost_head == u->lost_room) {
        uint64_t room = u->lost_room ? u->lost_room * 2 : 64, *to = malloc(room * sizeof *to);
        for (uint64_t i = u->lost_head; i < u->lost_tail; i++)
            to[i % room] = u->lost[i % u->lost_room];
        free(u->lost);
        u->lost = to;
        u->lost_room = room;
    }
    u->lost[u->lost_tail++ % u->lost_room] = note->from;
}

static int frames(void *ctx, const unsigned char *at, uint32_t bytes, uint64_t number)
{
    struct upper *u = ctx;
    uint32_t unit = u->unit;
    (void)number;
    if (bytes % unit != 0)
        wrong(u, "a body of wrong length arrived");
    for (; bytes >= unit; at += unit, bytes -= unit) {
        uint64_t n = rnl_get64(at);
        if (n >= u->peer->next || (unit > 8 && at[unit - 1] != (unsigned char)n)) {
            wrong(u, "wrong bytes arrived");
            return RNL_ERR_PEER_BROKEN;
        }
        if (u->here[n]) {
            u->again++; /* what was taken for lost had come: it is sent again, and that is the upper side's to see */
            continue;
        }
        u->here[n] = 1;
        u->taken++;
        if (u->arrived)
            u->arrived(u, n);
    }
    return 0;
}

static void *take(void *ctx, size_t bytes)
{
    struct upper *u = ctx;
    if (u->no_memory)
        return NULL;
    u->memory += bytes;
    if (u->memory > u->memory_most)
        u->memory_most = u->memory;
    return malloc(bytes);
}

static void give(void *ctx, void *at, size_t bytes)
{
    ((struct upper *)ctx)->memory -= bytes;
    free(at);
}

static uint32_t window(void *ctx)
{
    return ((struct upper *)ctx)->window;
}

const struct rnl_flow_ops upper_ops = {fill, acked, lost, frames, take, give, window, NULL};

int upper_keys_init(struct upper_keys *k, unsigned pairs)
{
    uint32_t slots = RNL_SEALER_SLOTS_MIN;
    while (slots < 4 * pairs)
        slots *= 2;
    memset(k, 0, sizeof *k);
    k->memory = aligned_alloc(RNL_SEALER_ALIGN, rnl_sealer_bytes(slots));
    if (rnl_ciphers_init(&k->ciphers, ~0u) < 0 || rnl_sealer_init(&k->sealer, &k->ciphers, k->memory, slots) < 0)
        return -1;
    while (!(k->ciphers.have >> k->suite.cipher & 1))
        k->suite.cipher++;
    k->limits = rnl_key_limits_default(k->suite);
    return 0;
}

void upper_keys_free(struct upper_keys *k)
{
    rnl_sealer_wipe(&k->sealer);
    free(k->memory);
}

void upper_keys_make(struct upper_keys *k, struct rnl_keys *out, unsigned i, int forth)
{
    unsigned char secret[2][RNL_KEY_BYTES];
    memset(secret[0], (int)(i % 251 + 1), RNL_KEY_BYTES);
    memset(secret[1], (int)(i % 251 + 1), RNL_KEY_BYTES);
    secret[1][0] ^= 0x80;
    secret[0][1] = secret[1][1] = (unsigned char)(i / 251);
    rnl_keys_init(out, k->suite, secret[!forth], secret[forth], &k->limits);
}
