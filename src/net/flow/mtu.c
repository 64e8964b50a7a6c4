/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mtu.c - searches the table upwards for the largest size that passes, and falls back to the first one. */
#include "net/flow/mtu.h"
#include "base/sometimes.h"
#include <stdbool.h>

#define NEVER UINT64_MAX

/* Returns the size at an index of the table, at most the limit of both sides; 0 = the search is over. */
static uint32_t size_at(const struct rnl_mtu *mtu, unsigned at)
{
    if (at >= RNL_MTU_SIZES || mtu->table[at] == 0)
        return 0;
    uint32_t bytes = mtu->table[at] < mtu->limit ? mtu->table[at] : mtu->limit;
    return at == 0 || bytes > mtu->bytes ? bytes : 0;
}

uint32_t rnl_mtu_first(const struct rnl_mtu *mtu)
{
    return mtu->table[0] < mtu->limit ? mtu->table[0] : mtu->limit;
}

void rnl_mtu_init(struct rnl_mtu *mtu, const uint16_t *table, uint32_t limit)
{
    *mtu = (struct rnl_mtu){.table = table, .due_ns = NEVER, .at = 1};
    mtu->limit = limit < UINT16_MAX ? (uint16_t)limit : UINT16_MAX;
    mtu->bytes = (uint16_t)rnl_mtu_first(mtu);
}

static void search(struct rnl_mtu *mtu, uint64_t now_ns)
{
    mtu->tries = 0;
    mtu->due_ns = size_at(mtu, mtu->at) ? now_ns : NEVER;
    if (mtu->due_ns == NEVER)
        mtu->again_ns = now_ns + RNL_MTU_AGAIN_S * (uint64_t)1000000000;
}

void rnl_mtu_filled(struct rnl_mtu *mtu, uint64_t now_ns)
{
    if (mtu->due_ns == NEVER && now_ns >= mtu->again_ns)
        search(mtu, now_ns);
}

uint32_t rnl_mtu_probe(struct rnl_mtu *mtu, uint32_t room, int spare, uint64_t pto_ns, uint64_t now_ns)
{
    uint32_t bytes = now_ns >= mtu->due_ns ? size_at(mtu, mtu->at) : 0;
    if (bytes == 0)
        return 0;
    if (mtu->tries == 1 && !spare && !mtu->put_off) {
        mtu->put_off = 1;
        mtu->due_ns += RNL_MTU_MISSES_MAX * pto_ns - pto_ns / 2;
        if (now_ns < mtu->due_ns)
            return 0;
    }
    if (mtu->tries >= RNL_MTU_TRIES) {
        /* The size does not pass, so larger ones will not either. */
        mtu->due_ns = NEVER;
        mtu->tries = 0;
        mtu->again_ns = now_ns + RNL_MTU_AGAIN_S * (uint64_t)1000000000;
        return 0;
    }
    if (bytes > room && !mtu->cramped) { /* this room was made for data; the next one may fit the probe */
        mtu->cramped = 1;
        return 0;
    }
    mtu->cramped = 0;
    mtu->tries++;
    mtu->put_off = 0;
    mtu->due_ns = now_ns + (mtu->tries == 1 ? pto_ns / 2 : RNL_MTU_MISSES_MAX * pto_ns);
    return bytes <= room ? bytes : 0; /* there may be more room next time */
}

bool rnl_mtu_passed(struct rnl_mtu *mtu, uint32_t bytes, uint64_t now_ns)
{
    if (bytes != size_at(mtu, mtu->at))
        return false;
    mtu->bytes = (uint16_t)bytes;
    mtu->vanished = 0;
    mtu->at++;
    search(mtu, now_ns);
    return true;
}

void rnl_mtu_acked(struct rnl_mtu *mtu, uint64_t number, uint32_t bytes)
{
    if (bytes <= mtu->table[0])
        return;
    mtu->vanished = 0;
    if (number > mtu->large_acked)
        mtu->large_acked = number;
}

static bool fall(struct rnl_mtu *mtu, uint64_t now_ns)
{
    uint32_t first = rnl_mtu_first(mtu);
    if (mtu->bytes <= first)
        return false;
    mtu->bytes = (uint16_t)first;
    RNL_SOMETIMES(1, "packets have to become smaller");
    mtu->at = 1;
    mtu->vanished = 0;
    search(mtu, now_ns);
    return true;
}

int rnl_mtu_lost(struct rnl_mtu *mtu, uint64_t number, uint32_t bytes, uint64_t now_ns)
{
    if (bytes <= mtu->table[0] || number < mtu->large_acked || ++mtu->vanished < RNL_MTU_VANISHED)
        return 0;
    return fall(mtu, now_ns);
}

int rnl_mtu_refused(struct rnl_mtu *mtu, uint32_t bytes, uint64_t now_ns)
{
    if (bytes > mtu->limit || bytes <= mtu->table[0])
        return 0;
    mtu->limit = (uint16_t)(bytes - 1);
    if (mtu->bytes > mtu->limit)
        return fall(mtu, now_ns);
    if (mtu->due_ns != NEVER)
        search(mtu, now_ns);
    return 0;
}
