/* SPDX-License-Identifier: BSD-3-Clause
 *
 * forge_alive.c - a rank that attests, with the key of the job, that a rank of another host lives, with a count that
 * none of that host's true attestations reaches: an agent that believes it drops the true ones from then on, and the
 * healthy rank is taken for silent. Rank 1 of two, on the second host, forges; it ends with 0 if nobody has believed
 * it. */
#include "base/env.h"
#include "net/wire/key.h"
#include "open/open.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BYTES = 64, AT_TAG = 32, AT_BITS = 48, ALIVE = 5 };

static void put32(unsigned char *at, uint32_t v)
{
    for (unsigned i = 0; i < 4; i++)
        at[i] = (unsigned char)(v >> 8 * i);
}

static void forge(const unsigned char *key, unsigned char at[BYTES])
{
    unsigned char tag[16];
    memset(at, 0, BYTES);
    memcpy(at, "RNLQ", 4);
    put32(at + 4, ALIVE);
    put32(at + 12, 1);
    put32(at + 16, 1);
    put32(at + 28, 1); /* 2^32 of them have been sent, it says */
    at[AT_BITS] = 1;
    rnl_keyed_hash(tag, key, "probe", at, BYTES);
    memcpy(at + AT_TAG, tag, sizeof tag);
}

/* To every UDP port of this host: its agent listens at one of them. */
static unsigned send_to_all(const char *list, const unsigned char at[BYTES])
{
    unsigned port, n = 0;
    char line[256];
    FILE *f = fopen(list, "re");
    const int s = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    while (f && s >= 0 && fgets(line, sizeof line, f)) {
        const char *local = strchr(line, ':');
        const char *colon = local ? strchr(local + 1, ':') : NULL;
        if (!colon || sscanf(colon + 1, "%x", &port) != 1)
            continue;
        const struct sockaddr_in6 to = {
            .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT, .sin6_port = htons((uint16_t)port)};
        n += sendto(s, at, BYTES, 0, (const struct sockaddr *)&to, sizeof to) == BYTES;
    }
    if (f)
        fclose(f);
    if (s >= 0)
        close(s);
    return n;
}

static uint64_t await_change(struct rnl_env *env, uint64_t before, unsigned ms)
{
    for (unsigned i = 0; i < ms / 10 && env->ops->liveness(env, 0) == before; i++)
        usleep(10000);
    return env->ops->liveness(env, 0);
}

int main(void)
{
    struct rnl_env *env;
    unsigned char at[BYTES];
    if (rnl_job_env(NULL, &env) != 0)
        return 2;
    if (env->rank == 0) { /* it lives, and computes */
        sleep(15);
        return 0;
    }
    const uint64_t first = await_change(env, 0, 20000);
    const unsigned char *key = env->job_key;
    forge(key, at);
    const unsigned sent = send_to_all("/proc/net/udp6", at);
    const uint64_t after = await_change(env, first, 2000); /* the next true one is due in 7 s */
    const uint64_t next = await_change(env, after, 15000);
    printf("sent %u, believed %d, true ones go on %d\n", sent, after != first, next != after);
    return first != 0 && sent > 1 && after == first && next != after ? 0 : 1;
}
