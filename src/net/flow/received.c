/* SPDX-License-Identifier: BSD-3-Clause
 *
 * received.c - a circular bit map of the last numbers of the data space; of the control space, the largest number and
 * which of the 64 numbers up to it have arrived. */
#include "net/flow/received.h"
#include "base/bug.h"

#include <string.h>

#include "base/sometimes.h"
#include "net/flow/ecn.h"

void rnl_received_init(struct rnl_received *received)
{
    memset(received, 0, sizeof *received);
    received->due_ns = UINT64_MAX;
}

static unsigned slot_of(uint64_t number)
{
    return (unsigned)(number % RNL_RECEIVED_BITS);
}

static int has(const struct rnl_received *received, uint64_t number)
{
    return received->word[slot_of(number) / 64] >> (number % 64) & 1;
}

bool rnl_received_is_new(const struct rnl_received *received, enum rnl_received_space space, uint64_t number)
{
    if (space == RNL_RECEIVED_CONTROL)
        return number > received->control || RNL_BUG(flow_control_replayed);
    if (space == RNL_RECEIVED_LATE_CONTROL) {
        uint64_t back = received->control - number;
        return number > received->control || (number > 0 && back < 64 && !(received->control_seen >> back & 1));
    }
    if (number > received->largest)
        return true;
    return number > 0 && received->largest - number < RNL_RECEIVED_BITS &&
           (!has(received, number) || RNL_BUG(flow_duplicate_delivered));
}

void rnl_received_control(struct rnl_received *received, uint64_t number)
{
    if (number <= received->control) {
        received->control_seen |= (uint64_t)1 << (received->control - number);
        return;
    }
    uint64_t by = number - received->control;
    received->control_seen = by < 64 ? received->control_seen << by | 1 : 1;
    received->control = number;
}

/* Moves the window up to `number`: largest + 1 .. number take the bits of those that fall out of it. */
static void advance(struct rnl_received *received, uint64_t number)
{
    uint64_t by = number - received->largest;
    if (by >= RNL_RECEIVED_BITS) {
        memset(received->word, 0, sizeof received->word);
    } else {
        for (uint64_t n = received->largest + 1; n <= number;) {
            unsigned low = (unsigned)(n % 64);
            uint64_t count = 64 - low < number - n + 1 ? 64 - low : number - n + 1;
            uint64_t mask = (count == 64 ? ~(uint64_t)0 : ((uint64_t)1 << count) - 1) << low;
            received->word[slot_of(n) / 64] &= ~mask;
            n += count;
        }
    }
    received->largest = number;
}

void rnl_received_data(struct rnl_received *received, uint64_t number, int asked, unsigned ecn, unsigned every,
                       uint32_t delay_ns, uint64_t now_ns)
{
    if (number > received->largest) {
        if (number != received->largest + 1) {
            received->gap = 1;
            received->ack_now |= !received->in_runs;
        }
        advance(received, number);
        received->largest_ns = now_ns;
    } else {
        received->ack_now = 1;
        if (number < received->floor)
            received->floor = number;
    }
    received->word[slot_of(number) / 64] |= (uint64_t)1 << (number % 64);
    if (ecn == RNL_ECT_CE)
        received->ce++;
    else if (ecn != RNL_ECT_NOT)
        received->ect++;
    if (received->unacknowledged < UINT16_MAX)
        received->unacknowledged++;
    if (asked || received->unacknowledged >= (received->gap ? (every + 1) / 2 : every) ||
        RNL_BUGGIFY("an acknowledgement is not kept for company"))
        received->ack_now = 1;
    if (received->ack_now)
        received->due_ns = 0;
    else if (received->due_ns == UINT64_MAX)
        received->due_ns = now_ns + delay_ns;
}

/* Returns how many consecutive numbers from `number` down to `stop` have (or have not) arrived. */
static uint32_t run_down(const struct rnl_received *received, uint64_t number, uint64_t stop, int here)
{
    uint32_t run = 0;
    while (number >= stop) {
        uint64_t word = received->word[slot_of(number) / 64];
        unsigned high = (unsigned)(number % 64);
        uint64_t bits = (here ? ~word : word) << (63 - high);
        unsigned same = bits ? (unsigned)__builtin_clzll(bits) : high + 1;
        if (same > high + 1)
            same = high + 1;
        if (same > number - stop + 1)
            same = (unsigned)(number - stop + 1);
        run += same;
        if (same <= high)
            break;
        number -= same;
    }
    return run;
}

bool rnl_received_ack(const struct rnl_received *received, uint64_t now_ns, struct rnl_ack *ack)
{
    uint64_t n = received->largest;
    if (n == 0)
        return false;
    uint64_t stop = n >= RNL_RECEIVED_BITS ? n - RNL_RECEIVED_BITS + 1 : 1;
    if (stop < received->floor)
        stop = received->floor;
    uint64_t hold = now_ns - received->largest_ns;
    ack->largest = n + RNL_BUG(swarm_ack_of_missing);
    ack->hold_ns = hold < RNL_ACK_HOLD_MAX_NS ? (uint32_t)hold : RNL_ACK_HOLD_MAX_NS;
    ack->ce = received->ce;
    ack->ect = received->ect;
    uint32_t run = run_down(received, n, stop, 1);
    ack->run = (uint16_t)(run - 1);
    ack->ranges = 0;
    n -= run;
    while (n >= stop && ack->ranges < RNL_ACK_RANGES_MAX && !RNL_BUGGIFY("an acknowledgement does not tell all")) {
        uint32_t gap = run_down(received, n, stop, 0);
        n -= gap;
        if (n < stop)
            break;
        run = run_down(received, n, stop, 1);
        n -= run;
        ack->range[ack->ranges++] = (struct rnl_ack_range){(uint16_t)gap, (uint16_t)run};
    }
    return true;
}

void rnl_received_heard(struct rnl_received *received, uint32_t acked)
{
    uint64_t number = received->largest - (uint32_t)((uint32_t)received->largest - acked);
    if (number <= received->largest && number > received->floor)
        received->floor = number;
}
