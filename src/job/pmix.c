/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmix.c - see pmix.h. The job has no launcher of ours, so the first rank of each host leaves an agent behind, which
 * serves the others as a launcher would (job/keeper.h). PMIx says how many ranks there are and which are here, and
 * carries what each host says of itself: which ranks it has, where its agent listens and what proves who may come in,
 * where its datagrams go; and from host 0 the key of the job. So it is as secret as PMIx keeps it. On several hosts a
 * second exchange tells everybody what the hosts could not reach, and all or none go on.
 *
 * The library of PMIx is loaded when it is wanted: programs that `runnel run` starts need none of it. */
#include "job/pmix.h"

#include "base/error.h"
#include "runnel/runnel.h"

#ifndef RNL_HAVE_PMIX
#define RNL_HAVE_PMIX 0
#endif

#if RNL_HAVE_PMIX
#include "base/env.h"
#include "job/keeper.h"

#include <dlfcn.h>
#include <errno.h>
#include <pmix.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static const char host_key[] = "runnel.host", vain_key[] = "runnel.vain";

struct calls {
    pmix_status_t (*init)(pmix_proc_t *, pmix_info_t *, size_t);
    pmix_status_t (*finalize)(const pmix_info_t *, size_t);
    pmix_status_t (*get)(const pmix_proc_t *, const char *, const pmix_info_t *, size_t, pmix_value_t **);
    pmix_status_t (*put)(pmix_scope_t, const char *, pmix_value_t *);
    pmix_status_t (*commit)(void);
    pmix_status_t (*fence)(const pmix_proc_t *, size_t, const pmix_info_t *, size_t);
    const char *(*text)(pmix_status_t);
};

struct job {
    const struct calls *call;
    pmix_proc_t me;
    uint32_t size, local;
    uint32_t *mine; /* the `local` ranks of this host, the first of which leads it */
    /* -- what the hosts said of themselves -- */
    uint32_t hosts, host; /* this is `host` */
    uint32_t *host_of, *lead;
    struct rnl_host *at;
    struct rnl_here *here;
    struct rnl_keeper_where where; /* of this host's agent */
    unsigned char key[RNL_JOB_KEY_BYTES];
};

static int load(struct calls *c)
{
    void *lib = dlopen("libpmix.so.2", RTLD_NOW | RTLD_LOCAL);
    if (lib == NULL)
        return rnl_fail(RNL_ERR_JOB,
                        "this process was started by a PMIx server, and libpmix.so.2 cannot be loaded: install it, "
                        "start the job with `runnel run`, or unset PMIX_NAMESPACE to run alone");
    const struct {
        const char *name;
        size_t at;
    } wanted[] = {
        {"PMIx_Init", offsetof(struct calls, init)},        {"PMIx_Finalize", offsetof(struct calls, finalize)},
        {"PMIx_Get", offsetof(struct calls, get)},          {"PMIx_Put", offsetof(struct calls, put)},
        {"PMIx_Commit", offsetof(struct calls, commit)},    {"PMIx_Fence", offsetof(struct calls, fence)},
        {"PMIx_Error_string", offsetof(struct calls, text)}};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        void *f = dlsym(lib, wanted[i].name);
        if (f == NULL)
            return rnl_fail(RNL_ERR_JOB, "libpmix.so.2 has no %s: install PMIx 3 or newer", wanted[i].name);
        memcpy((char *)c + wanted[i].at, &f, sizeof f);
    }
    return 0; /* it stays loaded: it has threads */
}

static int refused(const char *what, const struct calls *c, pmix_status_t s)
{
    return rnl_fail(RNL_ERR_JOB, "the PMIx server of this job does not %s: %s; start the job with `runnel run`", what,
                    c->text(s));
}

static int no_memory(const struct job *j)
{
    return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the places of %u ranks", j->size);
}

/* ---- what PMIx says ---- */

static int get_number(const struct job *j, const char *key, uint32_t *out)
{
    pmix_proc_t all = j->me;
    pmix_value_t *v = NULL;
    all.rank = PMIX_RANK_WILDCARD;
    pmix_status_t s = j->call->get(&all, key, NULL, 0, &v);
    if (s != PMIX_SUCCESS || v->type != PMIX_UINT32)
        return refused("say how large the job is", j->call, s);
    *out = v->data.uint32;
    free(v);
    return 0;
}

/* "0,1,5". 0, or -1: that is no such list, of `local` ranks with this one. */
static int parse_peers(struct job *j, const char *text)
{
    int with_me = 0;
    for (uint32_t n = 0; n < j->local; n++) {
        char *end;
        unsigned long rank = strtoul(text, &end, 10);
        if (end == text || rank >= j->size || (*end != (n + 1 < j->local ? ',' : '\0')) ||
            (n > 0 && rank <= j->mine[n - 1]))
            return -1;
        j->mine[n] = (uint32_t)rank;
        with_me |= rank == j->me.rank;
        text = end + 1;
    }
    return with_me ? 0 : -1;
}

/* Not by the names of hosts: two of one name may be two. */
static int learn_peers(struct job *j)
{
    pmix_proc_t all = j->me;
    pmix_value_t *v = NULL;
    all.rank = PMIX_RANK_WILDCARD;
    j->mine = calloc(j->local, sizeof *j->mine);
    if (j->mine == NULL)
        return no_memory(j);
    for (uint32_t i = 0; i < j->local; i++)
        j->mine[i] = i;
    if (j->local == j->size)
        return 0;
    pmix_status_t s = j->call->get(&all, PMIX_LOCAL_PEERS, NULL, 0, &v);
    int bad = s != PMIX_SUCCESS || v->type != PMIX_STRING || parse_peers(j, v->data.string) < 0;
    if (s == PMIX_SUCCESS && v->type == PMIX_STRING)
        free(v->data.string);
    free(v);
    return bad ? refused("say which ranks are on this host", j->call, s) : 0;
}

/* ---- what ranks tell each other ---- */

static int put(const struct job *j, const char *key, struct rnl_pack *p)
{
    pmix_value_t value = {.type = PMIX_BYTE_OBJECT};
    value.data.bo.bytes = (char *)p->at;
    value.data.bo.size = p->bytes;
    if (p->failed)
        return no_memory(j);
    pmix_status_t s = j->call->put(PMIX_GLOBAL, key, &value);
    if (s == PMIX_SUCCESS)
        s = j->call->commit();
    return s == PMIX_SUCCESS ? 0 : refused("take what this rank says of its host", j->call, s);
}

static int fence(const struct job *j)
{
    pmix_info_t info;
    memset(&info, 0, sizeof info);
    memcpy(info.key, PMIX_COLLECT_DATA, sizeof PMIX_COLLECT_DATA);
    info.value.type = PMIX_BOOL;
    info.value.data.flag = true;
    pmix_status_t s = j->call->fence(NULL, 0, &info, 1);
    return s == PMIX_SUCCESS ? 0 : refused("carry what its hosts say of themselves", j->call, s);
}

/* Malloced, the caller's. */
static int get(const struct job *j, uint32_t rank, const char *key, unsigned char **at, size_t *bytes)
{
    pmix_proc_t who = j->me;
    pmix_value_t *v = NULL;
    pmix_info_t info;
    who.rank = rank;
    memset(&info, 0, sizeof info); /* after the fence it is here or nowhere: do not ask the other host for it */
    memcpy(info.key, PMIX_IMMEDIATE, sizeof PMIX_IMMEDIATE);
    info.value.type = PMIX_BOOL;
    info.value.data.flag = true;
    pmix_status_t s = j->call->get(&who, key, &info, 1, &v);
    if (s == PMIX_SUCCESS && v->type != PMIX_BYTE_OBJECT)
        s = PMIX_ERR_BAD_PARAM;
    if (s != PMIX_SUCCESS)
        return refused("carry what its hosts say of themselves", j->call, s);
    *at = (unsigned char *)v->data.bo.bytes;
    *bytes = v->data.bo.size;
    free(v);
    return 0;
}

/* ---- what a host says of itself: release, name, ranks, agent, key (of host 0), and where it is ---- */

static int say_host(struct job *j, struct rnl_keeper *k)
{
    struct rnl_pack p = {.at = NULL};
    struct rnl_here here = {.host = 0};
    char name[RNL_JOB_HOST_BYTES] = "", own[RNL_RELEASE_BYTES];
    int several = j->local != j->size;
    if (gethostname(name, sizeof name - 1) < 0)
        memcpy(name, "localhost", sizeof "localhost");
    int r = 0, e = rnl_keeper_open(k, j->local, several, &here);
    if (e == 0 && j->me.rank == 0 && getrandom(k->key, sizeof k->key, 0) != (ssize_t)sizeof k->key)
        e = -errno;
    if (e < 0)
        r = rnl_fail_errno(RNL_ERR_SYSTEM, -e,
                           "the sockets of the %u rank%s of this host cannot be opened: raise the limit of descriptors "
                           "(ulimit -n), and allow sockets of UDP in the sandbox that this runs in",
                           j->local, RNL_S(j->local));
    rnl_pack_text(&p, rnl_here_release(own));
    rnl_pack_text(&p, name);
    rnl_pack_32(&p, j->local);
    for (uint32_t i = 0; i < j->local; i++)
        rnl_pack_32(&p, j->mine[i]);
    rnl_pack_bytes(&p, &k->where, sizeof k->where);
    rnl_pack_bytes(&p, k->key, sizeof k->key);
    if (r == 0 && several)
        rnl_here_pack(&p, &here);
    if (r == 0)
        r = put(j, host_key, &p);
    rnl_here_free(&here);
    rnl_pack_free(&p);
    return r;
}

/* Of the host that `rank` leads, which is the next one. */
static int unpack_host(struct job *j, uint32_t rank, const unsigned char *at, size_t bytes)
{
    struct rnl_unpack u = {.at = at, .left = bytes};
    struct rnl_keeper_where where;
    unsigned char key[RNL_JOB_KEY_BYTES];
    char own[RNL_RELEASE_BYTES];
    uint32_t h = j->hosts;
    char *release = rnl_unpack_text(&u), *name = rnl_unpack_text(&u);
    int r = 0;
    if (u.bad || strlen(name) >= sizeof j->at[h].name)
        r = rnl_here_garbled("what PMIx carried");
    else if (strcmp(release, rnl_here_release(own)) != 0)
        r = rnl_fail(
            RNL_ERR_JOB,
            "host %s has protocol and release %.40s, and this one %s: install one release on all hosts of the job",
            name, release, own);
    if (r == 0) {
        memcpy(j->at[h].name, name, strlen(name) + 1);
        j->at[h].count = rnl_unpack_32(&u);
        for (uint32_t i = 0; i < j->at[h].count && !u.bad; i++) {
            uint32_t its = rnl_unpack_32(&u);
            u.bad |= its >= j->size || j->host_of[its] != UINT32_MAX || (i == 0 && its != rank);
            if (!u.bad)
                j->host_of[its] = h;
            if (!u.bad && its == j->me.rank)
                j->host = h;
        }
        rnl_unpack_bytes(&u, &where, sizeof where);
        rnl_unpack_bytes(&u, key, sizeof key);
        if (u.bad || j->at[h].count == 0)
            r = rnl_here_garbled("what PMIx carried");
    }
    if (r == 0 && j->local != j->size)
        r = rnl_here_unpack(&u, 1, &j->at[h], &j->here[h]);
    if (r == 0) {
        j->here[h].host = h;
        j->lead[h] = rank;
        j->hosts++;
        if (j->host_of[j->me.rank] == h)
            j->where = where;
        if (h == 0)
            memcpy(j->key, key, sizeof j->key);
    }
    explicit_bzero(key, sizeof key);
    free(release);
    free(name);
    return r;
}

static int hear_hosts(struct job *j)
{
    j->host_of = malloc(j->size * sizeof *j->host_of);
    j->lead = calloc(j->size, sizeof *j->lead);
    j->at = calloc(j->size, sizeof *j->at);
    j->here = calloc(j->size, sizeof *j->here);
    if (j->host_of == NULL || j->lead == NULL || j->at == NULL || j->here == NULL)
        return no_memory(j);
    memset(j->host_of, 0xff, j->size * sizeof *j->host_of);
    int r = 0;
    for (uint32_t rank = 0; rank < j->size && r == 0; rank++) {
        unsigned char *at = NULL;
        size_t bytes = 0;
        if (j->host_of[rank] != UINT32_MAX)
            continue;
        if (j->hosts == RNL_HOSTS_MAX)
            return rnl_fail(RNL_ERR_JOB, "the ranks of this job are on more than %d hosts: start it on fewer",
                            RNL_HOSTS_MAX);
        r = get(j, rank, host_key, &at, &bytes);
        if (r == 0)
            r = unpack_host(j, rank, at, bytes);
        if (at != NULL)
            explicit_bzero(at, bytes);
        free(at);
    }
    return r;
}

/* ---- what the hosts cannot reach ---- */

static const char *interface_of(const struct job *j, uint32_t host, const uint8_t ip[16])
{
    for (uint32_t k = 0; k < j->here[host].ways; k++)
        if (memcmp(j->here[host].way[k].ip, ip, 16) == 0)
            return j->here[host].way[k].interface;
    return NULL;
}

struct first_line {
    struct job *job;
    uint32_t more;
    char text[640];
};

static const char *line_interface(void *arg, uint32_t host, const uint8_t ip[16])
{
    return interface_of(((struct first_line *)arg)->job, host, ip);
}

static void keep_first(void *arg, const char *line)
{
    struct first_line *f = arg;
    if (f->text[0] == '\0')
        memcpy(f->text, line, strlen(line) + 1);
    else
        f->more++;
}

static int trouble(struct job *j, const struct rnl_trouble *t, uint32_t n)
{
    struct first_line f = {.job = j};
    rnl_troubles_say(&(struct rnl_troubles){
        .at = t, .n = n, .hosts = j->at, .interface = line_interface, .say = keep_first, .arg = &f});
    return f.more > 0 ? rnl_fail(RNL_ERR_JOB, "%s (and %u more of that kind)", f.text, f.more)
                      : rnl_fail(RNL_ERR_JOB, "%s", f.text);
}

enum { NO_AGENT = RNL_KEEPER_TROUBLES + 1 };

/* `own`: what this host tried in vain, n of them, or n is NO_AGENT; if this rank leads it. 0, or RNL_ERR_JOB for all
 * ranks of the job. */
static int share_troubles(struct job *j, const struct rnl_vain *own, uint32_t n)
{
    struct rnl_trouble *all = NULL;
    struct rnl_pack p = {.at = NULL};
    uint32_t total = 0;
    int r = 0;
    if (j->lead[j->host] == j->me.rank) {
        rnl_pack_32(&p, n);
        for (uint32_t i = 0; i < n && n != NO_AGENT; i++)
            rnl_vain_pack(&p, &own[i]);
        r = put(j, vain_key, &p);
        rnl_pack_free(&p);
    }
    if (r == 0)
        r = fence(j);
    for (uint32_t h = 0; h < j->hosts && r == 0; h++) {
        unsigned char *at = NULL;
        size_t bytes = 0;
        r = get(j, j->lead[h], vain_key, &at, &bytes);
        struct rnl_unpack u = {.at = at, .left = bytes};
        uint32_t count = r == 0 ? rnl_unpack_32(&u) : 0;
        if (r == 0 && count == NO_AGENT && !u.bad) {
            free(at);
            r = rnl_fail(RNL_ERR_JOB,
                         "host %s could not start its agent, or its first rank could not reach it: its "
                         "ranks say why",
                         j->at[h].name);
            break;
        }
        struct rnl_trouble *more =
            count > RNL_KEEPER_TROUBLES || u.bad ? NULL : realloc(all, (total + count + 1) * sizeof *all);
        if (r == 0 && more == NULL)
            r = rnl_here_garbled("what became of the tries of a host");
        all = more != NULL ? more : all;
        for (uint32_t i = 0; i < count && r == 0; i++) {
            r = rnl_vain_unpack(&u, j->hosts, &all[total].what);
            all[total++].host = h;
        }
        free(at);
    }
    if (r == 0 && total > 0)
        r = trouble(j, all, total);
    free(all);
    return r;
}

/* ---- joining ---- */

static int start_keeper(struct job *j, struct rnl_keeper *k)
{
    k->size = j->size;
    k->hosts = j->hosts;
    k->host = j->host;
    k->host_of = j->host_of;
    k->at = j->at;
    k->here = j->here;
    memcpy(k->key, j->key, sizeof k->key);
    int e = rnl_keeper_start(k);
    return e == 0 ? 0
                  : rnl_fail_errno(RNL_ERR_SYSTEM, -e,
                                   "the agent of this host cannot be started: raise the limits of processes and "
                                   "descriptors (ulimit -u, ulimit -n)");
}

/* `r`: 0, or why this host has no agent. On several hosts all take part in what follows, or the others would wait. */
static int enter(struct job *j, int r, int *door)
{
    struct rnl_vain *vain = calloc(RNL_KEEPER_TROUBLES, sizeof *vain);
    uint32_t n = 0;
    if (r == 0)
        r = vain == NULL ? no_memory(j) : rnl_keeper_enter(&j->where, j->me.rank, j->hosts, door, vain, &n);
    if (j->hosts > 1) {
        struct rnl_error mine = *rnl_last_error();
        int entered = r == 1, others = share_troubles(j, vain, r < 0 ? NO_AGENT : n);
        if (r < 0)
            r = rnl_fail(r, "%s", mine.text);
        else
            r = others < 0 ? others : 1;
        if (r < 0 && entered)
            close(*door);
    }
    free(vain);
    return r;
}

static int join(struct job *j, int *door)
{
    struct rnl_keeper k = {.listener = -1, .probe = -1};
    int r = get_number(j, PMIX_JOB_SIZE, &j->size);
    if (r == 0)
        r = get_number(j, PMIX_LOCAL_SIZE, &j->local);
    if (r == 0 &&
        (j->size < 1 || j->size > RNL_JOB_RANKS_MAX || j->me.rank >= j->size || j->local < 1 || j->local > j->size))
        r = rnl_fail(RNL_ERR_JOB, "the PMIx server of this job says that it has %u ranks: there can be 1 to %d",
                     j->size, RNL_JOB_RANKS_MAX);
    if (r == 0)
        r = learn_peers(j);
    int leads = r == 0 && j->mine[0] == j->me.rank;
    if (leads)
        r = say_host(j, &k);
    if (r == 0)
        r = fence(j);
    if (r == 0)
        r = hear_hosts(j);
    int heard = r == 0;
    if (r == 0 && leads)
        r = start_keeper(j, &k);
    rnl_keeper_close(&k);
    return heard ? enter(j, r, door) : r;
}

static int join_and_leave(const struct calls *c, int *door)
{
    struct job j = {.call = c};
    pmix_status_t s = c->init(&j.me, NULL, 0);
    if (s != PMIX_SUCCESS)
        return refused("let this process in", c, s);
    int r = join(&j, door);
    for (uint32_t h = 0; h < j.hosts; h++)
        rnl_here_free(&j.here[h]);
    free(j.mine);
    free(j.host_of);
    free(j.lead);
    free(j.at);
    free(j.here);
    explicit_bzero(&j, sizeof j);
    c->finalize(NULL, 0); /* all is said; a server takes a process that ends without this for one that failed */
    return r;
}

int rnl_pmix_door(int *door)
{
    struct calls c;
    if (getenv("PMIX_NAMESPACE") == NULL || getenv("PMIX_RANK") == NULL)
        return 0;
    int r = load(&c);
    return r < 0 ? r : join_and_leave(&c, door);
}
#else
int rnl_pmix_door(int *door)
{
    (void)door;
    return 0;
}
#endif
