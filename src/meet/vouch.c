/* SPDX-License-Identifier: BSD-3-Clause
 *
 * vouch.c - peers of other hosts that no daemon introduces: both sides are ranks of a job, besides, which vouches for
 * them. Over its connections, which only its members have, they tell each other where they are (rnl_meet_ops.reserve
 * and .vouch). */
#include "base/error.h"
#include "meet/meet_internal.h"
#include "net/wire/bytes.h"

#include <sodium.h>
#include <string.h>
#include <unistd.h>

enum { RANDOM_BYTES = 16 };

int rnl_meet_reserve(struct rnl_env *env, struct rnl_env *by, uint32_t of, uint32_t *rank, uint32_t *port)
{
    struct meet *m = rnl_meet_of(env);
    int status = rnl_meet_forked(m);
    if (status == 0)
        status = rnl_meet_remote_begin(m);
    const int claimed = status == 0 ? rnl_meet_claim(m) : status;
    if (claimed < 0)
        return claimed;
    m->slot[claimed].cred = (struct rnl_cred){.uid = m->own_uid, .gid = getegid()};
    rnl_meet_remote_reserve(m, (uint32_t)claimed, by, of);
    *rank = (uint32_t)claimed;
    *port = m->udp_port;
    return 0;
}

/* Only members of the job know its key, so nobody else can make this one. */
static int make_key(const struct rnl_env *by, uint32_t of, const unsigned char mine[RANDOM_BYTES],
                    const unsigned char its[RANDOM_BYTES], unsigned char key[RNL_MEET_KEY_BYTES])
{
    struct {
        char label[16];
        unsigned char random[2][RANDOM_BYTES], rank[2][4];
    } from = {.label = "vouched"};
    const bool is_second = by->rank > of;
    memcpy(from.random[is_second], mine, RANDOM_BYTES);
    memcpy(from.random[!is_second], its, RANDOM_BYTES);
    rnl_put32(from.rank[is_second], by->rank);
    rnl_put32(from.rank[!is_second], of);
    static_assert(sizeof from == 56, "no byte is left to chance");
    return crypto_generichash(key, RNL_MEET_KEY_BYTES, (const unsigned char *)&from, sizeof from, by->job_key,
                              sizeof by->job_key) == 0
               ? 0
               : rnl_fail(RNL_ERR_SYSTEM, "the key of a pair cannot be made");
}

int rnl_meet_vouch(struct rnl_env *env, uint32_t rank, uint32_t port, uint32_t as, const unsigned char mine[16],
                   const unsigned char its[16])
{
    struct meet *m = rnl_meet_of(env);
    struct rnl_env *by;
    uint32_t of;
    unsigned char key[RNL_MEET_KEY_BYTES];
    int status = rnl_meet_forked(m);
    if (status < 0)
        return status;
    if (!rnl_meet_remote_reserved(m, rank, &by, &of) || port == 0 || port > UINT16_MAX)
        return rnl_fail(RNL_ERR_RANK, "number %u is not reserved for a peer, or %u is no port", rank, port);
    status = make_key(by, of, mine, its, key);
    if (status == 0)
        status = rnl_meet_remote_vouch(m, rank, port, as, key);
    sodium_memzero(key, sizeof key);
    return status;
}
