/* SPDX-License-Identifier: BSD-3-Clause
 *
 * path_measure.c - the measurement of path_measure.h. */
#include "net/probe/path_measure.h"

#include "net/probe/address_probe.h"

#include <stdlib.h>
#include <string.h>

#define MS ((uint64_t)1000 * 1000)
static const uint64_t again_ns = 60 * MS;   /* until a size, or the question for the counts, is sent again */
static const uint64_t pace_ns = 2 * MS;     /* between bursts of the train */
static const uint64_t late_ns = 200 * MS;   /* a datagram without an echo for so long does not fill the window */
static const uint64_t settle_ns = 300 * MS; /* for what is late at the end of the train */
enum { SIZE_TRIES = 5, TALLY_TRIES = 12, BURST = 4, LEAST_TRAIN = 60, ALL_TRAINS = 16000, ALL_WINDOWS = 48 };

/* ---- the receiver ---- */

void rnl_path_receive(struct rnl_path_receiver *r, uint32_t number)
{
    if (number >= RNL_PATH_TRAIN_MOST)
        return;
    uint8_t *seen = &r->seen[number / 8], bit = (uint8_t)(1u << number % 8);
    if (*seen & bit) {
        r->counts.repeated++;
        return;
    }
    *seen |= bit;
    r->counts.came++;
    if (number < r->next)
        r->counts.reordered++;
    else
        r->next = number + 1;
}

/* ---- the sender ---- */

static uint32_t between(uint32_t low, uint32_t n, uint32_t high)
{
    return n < low ? low : n > high ? high : n;
}

void rnl_path_begin(struct rnl_path_sender *s, uint32_t hosts, uint32_t passes, uint64_t now_ns)
{
    memset(s, 0, sizeof *s);
    s->train = between(LEAST_TRAIN, ALL_TRAINS / hosts, RNL_PATH_TRAIN_MOST);
    s->window = between(2, ALL_WINDOWS / hosts, ALL_WINDOWS / 2);
    s->result.passes = passes;
    s->at_ns = now_ns;
}

/* Sizes to be tried: evenly between what passes and what the host takes, with that at the end. */
static void choose_sizes(struct rnl_path_sender *s, uint32_t above, uint64_t now_ns)
{
    const uint32_t room = above - s->result.passes;
    s->sizes = room < RNL_PATH_SIZES ? room : RNL_PATH_SIZES;
    for (uint32_t i = 0; i < s->sizes; i++)
        s->size[i] = s->result.passes + room * (i + 1) / s->sizes;
    s->tries = 0;
    s->begun_ns = s->at_ns = now_ns;
    if (s->sizes == 0) {
        s->phase = RNL_PATH_TRAINS;
        s->next = 0;
    }
}

/* The longest datagram that the own host sends: it refuses at once what is longer, so this is a bisection. */
static void find_limit(struct rnl_path_sender *s, uint64_t now_ns,
                       enum rnl_path_sent (*send)(void *, uint32_t, uint32_t), void *arg)
{
    uint32_t low = s->result.passes, high = RNL_PATH_BYTES_MOST;
    while (low < high) {
        const uint32_t bytes = (low + high + 1) / 2;
        if (send(arg, RNL_PATH_NUMBER_SIZE + bytes, bytes) == RNL_PATH_TOO_LONG)
            high = bytes - 1;
        else
            low = bytes;
    }
    s->result.takes = low;
    s->phase = RNL_PATH_FINDS;
    choose_sizes(s, low, now_ns);
}

static void find_size(struct rnl_path_sender *s, uint64_t now_ns,
                      enum rnl_path_sent (*send)(void *, uint32_t, uint32_t), void *arg)
{
    if (s->tries++ == SIZE_TRIES) { /* the longest that was echoed, and the next one, are what is left to search */
        uint32_t above = s->size[0];
        for (uint32_t i = 0; i < s->sizes && above <= s->result.passes; i++)
            above = s->size[i];
        choose_sizes(s, above - 1 > s->result.passes ? above - 1 : s->result.passes, now_ns);
        return;
    }
    for (uint32_t i = 0; i < s->sizes; i++)
        if (s->size[i] > s->result.passes)
            (void)send(arg, RNL_PATH_NUMBER_SIZE + s->size[i], s->size[i]);
    s->at_ns = now_ns + again_ns;
}

/* How many of the train are on their way, as far as is known. */
static uint32_t without_echo(const struct rnl_path_sender *s, uint64_t now_ns)
{
    uint32_t n = 0;
    for (uint32_t i = s->next; i > 0 && now_ns - s->sent_ns[i - 1] < late_ns; i--)
        n += s->trip_ns[i - 1] == 0;
    return n;
}

static void send_train(struct rnl_path_sender *s, uint64_t now_ns,
                       enum rnl_path_sent (*send)(void *, uint32_t, uint32_t), void *arg)
{
    for (unsigned i = 0; i < BURST && s->next < s->train && without_echo(s, now_ns) < s->window; i++) {
        const uint32_t number = s->next++;
        s->sent_ns[number] = now_ns;
        (void)send(arg, number, number % 2 ? RNL_HOST_PROBE_SHORT_BYTES : RNL_HOST_PROBE_LONG_BYTES);
        s->result.sent++;
    }
    s->at_ns = now_ns + pace_ns;
    if (s->next == s->train) {
        s->phase = RNL_PATH_SETTLES;
        s->at_ns = now_ns + settle_ns;
    }
}

void rnl_path_step(struct rnl_path_sender *s, uint64_t now_ns, enum rnl_path_sent (*send)(void *, uint32_t, uint32_t),
                   void *arg)
{
    if (now_ns < s->at_ns)
        return;
    switch (s->phase) {
    case RNL_PATH_LIMIT:
        find_limit(s, now_ns, send, arg);
        return;
    case RNL_PATH_FINDS:
        find_size(s, now_ns, send, arg);
        return;
    case RNL_PATH_TRAINS:
        send_train(s, now_ns, send, arg);
        return;
    case RNL_PATH_SETTLES:
        s->phase = RNL_PATH_TALLIES;
        s->tries = 0;
        __attribute__((fallthrough));
    case RNL_PATH_TALLIES:
        if (s->tries++ == TALLY_TRIES)
            s->phase = RNL_PATH_OVER;
        else
            (void)send(arg, RNL_PATH_NUMBER_TALLY, RNL_HOST_PROBE_SHORT_BYTES);
        s->at_ns = now_ns + again_ns;
        return;
    case RNL_PATH_OVER:
        return;
    }
}

void rnl_path_echo(struct rnl_path_sender *s, uint32_t number, const struct rnl_path_counts *counts, uint64_t now_ns)
{
    if (s->phase == RNL_PATH_OVER)
        return;
    if (counts->came >= s->result.counts.came && counts->came <= s->result.sent)
        s->result.counts = *counts;
    if (number == RNL_PATH_NUMBER_TALLY) {
        if (s->phase == RNL_PATH_TALLIES) {
            s->result.done = 1;
            s->phase = RNL_PATH_OVER;
        }
    } else if (number > RNL_PATH_NUMBER_SIZE && number <= RNL_PATH_NUMBER_SIZE + s->result.takes) {
        const uint32_t bytes = number - RNL_PATH_NUMBER_SIZE;
        if (bytes > s->result.passes)
            s->result.passes = bytes;
        if (s->phase == RNL_PATH_FINDS && s->result.passes == s->size[s->sizes - 1])
            choose_sizes(s, s->result.passes, now_ns); /* nothing above is left to try */
    } else if (number < s->next && s->trip_ns[number] == 0) {
        const uint64_t trip = now_ns - s->sent_ns[number];
        s->trip_ns[number] = trip > 0 ? trip : 1;
        s->echoed++;
    }
}

uint64_t rnl_path_deadline_ns(const struct rnl_path_sender *s)
{
    return s->phase == RNL_PATH_OVER ? UINT64_MAX : s->at_ns;
}

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

void rnl_path_result(const struct rnl_path_sender *s, struct rnl_path_result *out)
{
    uint64_t trips[RNL_PATH_TRAIN_MOST];
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->next; i++)
        if (s->trip_ns[i] > 0)
            trips[n++] = s->trip_ns[i];
    qsort(trips, n, sizeof trips[0], by_value);
    *out = s->result;
    out->echoes = n;
    if (n > 0) {
        out->least_ns = trips[0];
        out->half_ns = trips[n / 2];
        out->most_ns = trips[n - 1];
    }
}
