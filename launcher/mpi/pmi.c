/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmi.c - see pmi.h. */
#include "launcher/mpi/pmi.h"

#include "base/hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rnl_pmi_pair {
    UT_hash_handle hh;
    char *value, key[]; /* which lies behind the key */
};

/* Copies the value of the word `name`, which may not be longer than there is room. */
static bool word(const char *line, const char *name, char *out, size_t room)
{
    const size_t n = strlen(name);
    for (const char *at = line; *at != '\0'; at += strcspn(at, " "), at += *at == ' ') {
        if (strncmp(at, name, n) != 0 || at[n] != '=')
            continue;
        const size_t bytes = strcspn(at + n + 1, " ");
        if (bytes >= room)
            return false;
        memcpy(out, at + n + 1, bytes);
        out[bytes] = '\0';
        return true;
    }
    return false;
}

static const char *find(struct rnl_pmi *p, const char *key)
{
    struct rnl_pmi_pair *pair;
    HASH_FIND_STR(p->pairs, key, pair);
    return pair ? pair->value : NULL;
}

/* Returns whether there was room. The first value of a key stays. */
static bool store(struct rnl_pmi *p, const char *key, const char *value)
{
    const size_t bytes = strlen(key) + strlen(value) + 2;
    if (find(p, key))
        return true;
    struct rnl_pmi_pair *pair = p->bytes + bytes <= RNL_PMI_BYTES ? malloc(sizeof *pair + bytes) : NULL;
    if (!pair)
        return false;
    strcpy(pair->key, key);
    pair->value = strcpy(pair->key + strlen(key) + 1, value);
    HASH_ADD_STR(p->pairs, key, pair);
    if (!find(p, key)) { /* no memory for the table */
        free(pair);
        return false;
    }
    p->bytes += bytes;
    return true;
}

/* Which ranks share a host, as MPICH reads it: (first host, hosts, ranks of each), ... Without room it finds out. */
static void map_hosts(struct rnl_pmi *p, uint32_t hosts, const struct rnl_job_host *at)
{
    char map[RNL_PMI_VALUE] = "(vector";
    size_t n = strlen(map);
    for (uint32_t i = 0, next; i < hosts && n < sizeof map; i = next) {
        for (next = i + 1; next < hosts && at[next].count == at[i].count;)
            next++;
        n += (size_t)snprintf(map + n, sizeof map - n, ",(%u,%u,%u)", i, next - i, at[i].count);
    }
    if (n + 1 < sizeof map) {
        strcpy(map + n, ")");
        (void)store(p, "PMI_process_mapping", map);
    }
}

void rnl_pmi_init(struct rnl_pmi *p, uint64_t number, uint32_t hosts, const struct rnl_job_host *at)
{
    *p = (struct rnl_pmi){.size = at[hosts - 1].first + at[hosts - 1].count};
    snprintf(p->name, sizeof p->name, "runnel-%016llx", (unsigned long long)number);
    map_hosts(p, hosts, at);
}

void rnl_pmi_free(struct rnl_pmi *p)
{
    struct rnl_pmi_pair *pair, *next;
    HASH_ITER(hh, p->pairs, pair, next)
    {
        HASH_DEL(p->pairs, pair);
        free(pair);
    }
    rnl_pack_free(&p->news);
}

/* ---- lines ---- */

static void put(struct rnl_pmi *p, const char *line, char reply[RNL_PMI_LINE])
{
    char name[RNL_PMI_NAME], key[RNL_PMI_KEY], value[RNL_PMI_VALUE];
    const char *why = "success";
    if (!word(line, "kvsname", name, sizeof name) || strcmp(name, p->name) != 0 ||
        !word(line, "key", key, sizeof key) || key[0] == '\0' || !word(line, "value", value, sizeof value))
        why = "no_such_name_or_too_long";
    else if (find(p, key))
        why = "duplicate_key";
    else if (!store(p, key, value))
        why = "no_room";
    if (strcmp(why, "success") == 0) {
        rnl_pack_bytes(&p->news, key, strlen(key) + 1);
        rnl_pack_bytes(&p->news, value, strlen(value) + 1);
    }
    snprintf(reply, RNL_PMI_LINE, "cmd=put_result rc=%d msg=%s\n", strcmp(why, "success") == 0 ? 0 : -1, why);
}

static void get(struct rnl_pmi *p, const char *line, char reply[RNL_PMI_LINE])
{
    char name[RNL_PMI_NAME], key[RNL_PMI_KEY];
    const char *value = NULL;
    if (word(line, "kvsname", name, sizeof name) && strcmp(name, p->name) == 0 && word(line, "key", key, sizeof key))
        value = find(p, key);
    if (value)
        snprintf(reply, RNL_PMI_LINE, "cmd=get_result rc=0 msg=success value=%s\n", value);
    else
        strcpy(reply, "cmd=get_result rc=-1 msg=key_not_found value=unknown\n");
}

/* The lines of a command that spawns end with endcmd, and the last of several such commands has the reply. */
static enum rnl_pmi_turn receive_spawn(struct rnl_pmi_caller *c, const char *line, char reply[RNL_PMI_LINE])
{
    (void)(sscanf(line, "totspawns=%u", &c->in_all) == 1 || sscanf(line, "spawnssofar=%u", &c->so_far) == 1);
    c->spawning = strcmp(line, "endcmd") != 0;
    if (c->spawning || c->so_far < c->in_all)
        return RNL_PMI_SILENT;
    strcpy(reply, "cmd=spawn_result rc=-1 msg=not_served\n");
    return RNL_PMI_NO_SPAWN;
}

static enum rnl_pmi_turn receive_abort(struct rnl_pmi_caller *c, const char *line)
{
    char code[16] = "";
    (void)word(line, "exitcode", code, sizeof code);
    c->status = (int)(strtol(code, NULL, 10) & 255);
    c->status = c->status == 0 ? 1 : c->status; /* it is no success */
    return RNL_PMI_ABORTS;
}

enum rnl_pmi_turn rnl_pmi_receive(struct rnl_pmi *p, struct rnl_pmi_caller *c, const char *line,
                                  char reply[RNL_PMI_LINE])
{
    static const struct {
        const char *command, *reply;
    } fixed[] = {
        {"get_appnum", "cmd=appnum appnum=0\n"},
        {"finalize", "cmd=finalize_ack\n"},
        {"publish_name", "cmd=publish_result rc=-1 msg=not_served\n"},
        {"unpublish_name", "cmd=unpublish_result rc=-1 msg=not_served\n"},
        {"lookup_name", "cmd=lookup_result rc=-1 msg=not_served\n"},
    };
    char command[24], version[8] = "";
    if (c->spawning)
        return receive_spawn(c, line, reply);
    if (strcmp(line, "mcmd=spawn") == 0) {
        *c = (struct rnl_pmi_caller){.spawning = true};
        return RNL_PMI_SILENT;
    }
    if (c->inside || !word(line, "cmd", command, sizeof command))
        return RNL_PMI_NO_COMMAND;
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
        if (strcmp(command, fixed[i].command) == 0) {
            strcpy(reply, fixed[i].reply);
            return RNL_PMI_REPLIES;
        }
    if (strcmp(command, "init") == 0)
        snprintf(reply, RNL_PMI_LINE, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=%d\n",
                 word(line, "pmi_version", version, sizeof version) && strcmp(version, "1") == 0 ? 0 : -1);
    else if (strcmp(command, "get_maxes") == 0)
        snprintf(reply, RNL_PMI_LINE, "cmd=maxes kvsname_max=%d keylen_max=%d vallen_max=%d\n", RNL_PMI_NAME,
                 RNL_PMI_KEY, RNL_PMI_VALUE);
    else if (strcmp(command, "get_my_kvsname") == 0)
        snprintf(reply, RNL_PMI_LINE, "cmd=my_kvsname kvsname=%s\n", p->name);
    else if (strcmp(command, "get_universe_size") == 0)
        snprintf(reply, RNL_PMI_LINE, "cmd=universe_size size=%u rc=0\n", p->size);
    else if (strcmp(command, "put") == 0)
        put(p, line, reply);
    else if (strcmp(command, "get") == 0)
        get(p, line, reply);
    else if (strcmp(command, "barrier_in") == 0)
        c->inside = true;
    else if (strcmp(command, "abort") == 0)
        return receive_abort(c, line);
    else
        return RNL_PMI_NO_COMMAND;
    return c->inside ? RNL_PMI_SILENT : RNL_PMI_REPLIES;
}

int rnl_pmi_learn(struct rnl_pmi *p, const void *news, size_t bytes)
{
    const char *at = news, *end = at + bytes;
    while (at < end) {
        const char *key = at, *value = memchr(key, '\0', (size_t)(end - key));
        const char *last = value && value + 1 < end ? memchr(value + 1, '\0', (size_t)(end - value - 1)) : NULL;
        if (!last || value - key >= RNL_PMI_KEY || last - value > RNL_PMI_VALUE || !store(p, key, value + 1))
            return -1;
        at = last + 1;
    }
    return 0;
}
