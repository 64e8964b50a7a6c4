/* SPDX-License-Identifier: BSD-3-Clause
 *
 * table - a hash table spread over all ranks of a job, on active messages.
 *
 *     runnel run -n 4 table 100000
 *
 * A key belongs to one rank. To store or look up is a request that runs a handler there; the handler replies. Each rank
 * stores so many keys, and looks up those of its neighbour when all have stored theirs. A request to a rank that has
 * died comes back to handler 0, and counts as lost (runnel run --keep-going). */
#include <runnel/am.h>
#include <stdio.h>
#include <stdlib.h>

enum { RETURNED = 0, PUT, GET, STORED, FOUND, REST, AT_ONCE = 64 };

struct entry {
    uint64_t key, value; /* key 0: none */
};
static struct entry *table;
static size_t room; /* a power of two */
static unsigned rank, size;
static unsigned char *rests; /* by rank: it has stored its keys */
static uint64_t stored, found, missing, wrong, lost;

/* ---- the part of this rank ---- */

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
    return x ^ x >> 32;
}

static unsigned owner(uint64_t key)
{
    return (unsigned)(mix(key) >> 32) % size;
}

static struct entry *place_of(uint64_t key)
{
    size_t i = mix(key) & (room - 1);
    while (table[i].key != 0 && table[i].key != key)
        i = (i + 1) & (room - 1);
    return &table[i];
}

/* ---- handlers ---- */

static uint64_t join(int32_t high, int32_t low)
{
    return (uint64_t)(uint32_t)high << 32 | (uint32_t)low;
}
#define HALVES(x) (int32_t)(uint32_t)((x) >> 32), (int32_t)(uint32_t)(x)

static void put(void *token, int32_t key_high, int32_t key_low, int32_t high, int32_t low)
{
    struct entry *e = place_of(join(key_high, key_low));
    e->key = join(key_high, key_low);
    e->value = join(high, low);
    (void)AM_Reply0(token, STORED);
}

static void get(void *token, int32_t key_high, int32_t key_low)
{
    const struct entry *e = place_of(join(key_high, key_low));
    (void)AM_Reply4(token, FOUND, key_high, key_low, HALVES(e->value));
}

static void on_stored(void *token)
{
    (void)token;
    stored++;
}

static void on_found(void *token, int32_t key_high, int32_t key_low, int32_t high, int32_t low)
{
    (void)token;
    uint64_t value = join(high, low);
    found += value == mix(join(key_high, key_low));
    missing += value == 0;
    wrong += value != 0 && value != mix(join(key_high, key_low));
}

static void on_rest(void *token)
{
    en_t source;
    if (AM_GetSourceEndpoint(token, &source) == AM_OK)
        rests[source.rank] = 1;
}

static void on_returned(int status, op_t opcode, void *token)
{
    struct rnl_am_token_info info;
    if (status != AM_EUNREACHABLE)
        wrong++;
    else if (opcode == AM_REQUEST_M && AM_GetTokenInfo(token, &info) == AM_OK && info.handler != REST)
        lost++; /* a reply to the dead is nobody's loss */
}

/* ---- the program ---- */

static void check(int status, const char *what)
{
    if (status == AM_OK)
        return;
    fprintf(stderr, "table: %s: %s\n", what, rnl_last_error()->text);
    exit(1);
}

static int all_rest(rnl_endpoint *job)
{
    struct rnl_peer_info peer;
    for (unsigned i = 0; i < size; i++)
        if (!rests[i] && (rnl_peer(job, i, &peer) < 0 || peer.state != RNL_PEER_DEAD))
            return 0;
    return 1;
}

/* Keys are never 0. */
static uint64_t key_of(unsigned of, uint64_t i)
{
    return (uint64_t)of << 40 | (i + 1);
}

int main(int argc, char **argv)
{
    char *end = NULL;
    unsigned long long keys = argc > 1 ? strtoull(argv[1], &end, 10) : 10000;
    eb_t bundle;
    ep_t ep;
    en_t name;
    if (argc > 2 || (end && (*end || end == argv[1])) || keys > 100000000) {
        fprintf(stderr, "usage: runnel run -n RANKS table [KEYS]   (up to 100000000 for each rank; default 10000)\n");
        return 2;
    }
    check(AM_Init(), "AM_Init");
    check(AM_AllocateBundle(AM_SEQ, &bundle), "joining the job");
    check(AM_AllocateEndpoint(bundle, &ep, &name), "AM_AllocateEndpoint");
    rank = rnl_rank(AM_GetRank(bundle));
    size = rnl_size(AM_GetRank(bundle));
    for (room = 64; room < keys * 2 + 1000; room *= 2)
        ; /* the keys are spread evenly, more or less */
    table = calloc(room, sizeof *table);
    rests = calloc(size, 1);
    if (!table || !rests) {
        fprintf(stderr, "table: no memory for %zu entries\n", room);
        return 1;
    }
    check(AM_SetTag(ep, 42), "AM_SetTag");
    check(AM_SetHandler(ep, RETURNED, on_returned), "AM_SetHandler");
    check(AM_SetHandler(ep, PUT, put), "AM_SetHandler");
    check(AM_SetHandler(ep, GET, get), "AM_SetHandler");
    check(AM_SetHandler(ep, STORED, on_stored), "AM_SetHandler");
    check(AM_SetHandler(ep, FOUND, on_found), "AM_SetHandler");
    check(AM_SetHandler(ep, REST, on_rest), "AM_SetHandler");
    check(AM_SetEventMask(bundle, AM_NOTEMPTY), "AM_SetEventMask");
    if (size > 256)
        check(AM_SetNumTranslations(ep, (int)size), "AM_SetNumTranslations");
    for (unsigned i = 0; i < size; i++) /* each rank has one endpoint, its first: number 0 */
        check(AM_Map(ep, (int)i, AM_NameOf(i, 0), 42), "AM_Map");

    for (uint64_t i = 0; i < keys; i++) {
        uint64_t key = key_of(rank, i);
        check(AM_Request4(ep, (int)owner(key), PUT, HALVES(key), HALVES(mix(key))), "storing");
        while (i + 1 - stored - lost > AT_ONCE)
            check(AM_WaitSema(bundle), "waiting");
    }
    while (stored + lost < keys)
        check(AM_WaitSema(bundle), "waiting");
    uint64_t lost_keys = lost;
    lost = 0;
    for (unsigned i = 0; i < size; i++) /* all are told, and wait for all */
        check(AM_Request0(ep, (int)i, REST), "telling");
    while (!all_rest(AM_GetRank(bundle))) { /* a death wakes nobody who waits for handlers: look now and then */
        int status = AM_WaitSemaFor(bundle, 10000000);
        check(status == AM_ERR_NOT_SENT ? AM_OK : status, "waiting");
    }
    for (uint64_t i = 0; i < keys; i++) {
        uint64_t key = key_of((rank + 1) % size, i);
        check(AM_Request2(ep, (int)owner(key), GET, HALVES(key)), "looking up");
        while (i + 1 - found - missing - lost > AT_ONCE)
            check(AM_WaitSema(bundle), "waiting");
    }
    while (found + missing + lost < keys)
        check(AM_WaitSema(bundle), "waiting");
    printf("rank %u of %u: %llu stored, %llu found, %llu missing, %llu lost\n", rank, size, (unsigned long long)stored,
           (unsigned long long)found, (unsigned long long)missing, (unsigned long long)(lost_keys + lost));
    check(AM_Terminate(), "leaving the job");
    free(table);
    free(rests);
    return wrong ? 1 : 0;
}
