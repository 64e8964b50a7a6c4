/* SPDX-License-Identifier: BSD-3-Clause
 *
 * spmd.c - a program as AMUDP's users write them, compiled with the plain command line of amudp.h: cases of a job of
 * some workers, one named by its first argument. spmd_ends.c has those in which a worker ends the job. Run by
 * test_spmd.sh, as its own master and under `runnel run`. */
#include "spmd.h"

#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

eb_t eb;
ep_t ep;
int rank, size;
char segment[SEGMENT_BYTES];

enum { PING = 1, PONG, MEDIUM, MEDIUM_BACK, LONG, LONG_BACK, MANY, MANY_BACK };
static int pongs, mediums, longs, manys;

static void ping(void *token, int32_t a, int32_t b)
{
    int from;
    handler_t h;
    amudp_category_t cat;
    int isreq;
    en_t name, mapped;
    ep_t dest;
    OK(AMUDP_GetSourceId(token, &from));
    OK(AMUDP_GetTokenInfo(token, &h, &cat, &isreq));
    OK(AM_GetSourceEndpoint(token, &name));
    OK(AM_GetTranslationName(ep, from, &mapped));
    OK(AM_GetDestEndpoint(token, &dest));
    MUST(h == PING && cat == amudp_Short && isreq && dest == ep && AMUDP_enEqual(name, mapped));
    MUST(((uintptr_t)token & 1) == 0);
    OK(AM_Reply2(token, PONG, a + 1, b + from));
}

static void pong(void *token, int32_t a, int32_t b)
{
    int from;
    OK(AMUDP_GetSourceId(token, &from));
    MUST(a == 41 + from && b == 1000 + rank);
    pongs++;
}

static void medium(void *token, void *buf, size_t n, int32_t seed)
{
    unsigned char *p = buf;
    MUST(((uintptr_t)buf & 7) == 0);
    for (size_t i = 0; i < n; i++) {
        MUST(p[i] == (unsigned char)(seed + (int)i));
        p[i] = (unsigned char)(p[i] + 1); /* it is ours until we return */
    }
    OK(AM_ReplyI1(token, MEDIUM_BACK, buf, n, seed + 1));
}

static void medium_back(void *token, void *buf, size_t n, int32_t seed)
{
    const unsigned char *p = buf;
    (void)token;
    for (size_t i = 0; i < n; i++)
        MUST(p[i] == (unsigned char)(seed + (int)i));
    mediums++;
}

static void bulk(void *token, void *buf, size_t n, int32_t offset)
{
    MUST(buf == segment + offset);
    OK(AM_ReplyXfer1(token, 2 * AMUDP_MAX_LONG, LONG_BACK, buf, n, (int32_t)n));
}

static void bulk_back(void *token, void *buf, size_t n, int32_t want)
{
    (void)token;
    MUST(buf == segment + 2 * AMUDP_MAX_LONG && n == (size_t)want);
    longs++;
}

static void many(void *token, int32_t a0, int32_t a1, int32_t a2, int32_t a3, int32_t a4, int32_t a5, int32_t a6,
                 int32_t a7, int32_t a8, int32_t a9, int32_t a10, int32_t a11, int32_t a12, int32_t a13, int32_t a14,
                 int32_t a15)
{
    MUST(a0 == 0 && a1 == 1 && a2 == 2 && a3 == 3 && a4 == 4 && a5 == 5 && a6 == 6 && a7 == 7 && a8 == 8);
    MUST(a9 == 9 && a10 == 10 && a11 == 11 && a12 == 12 && a13 == 13 && a14 == 14 && a15 == -15);
    OK(AM_Reply3(token, MANY_BACK, a15, 2.9, 7L));
}

static void many_back(void *token, int32_t a, int32_t b, int32_t c)
{
    (void)token;
    MUST(a == -15 && b == 2 && c == 7);
    manys++;
}

static void until(const int *counter, int n)
{
    while (*counter < n) {
        OK(AM_SetEventMask(eb, AM_NOTEMPTY));
        OK(AM_WaitSema(eb));
        OK(AM_Poll(eb));
    }
}

static void messages(void)
{
    static unsigned char from[AMUDP_MAX_LONG];
    for (int i = 0; i < size; i++)
        OK(AM_Request2(ep, i, PING, 40 + i, 1000));
    until(&pongs, size);
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (unsigned char)(i + 7);
    const size_t sizes[] = {0, 1, 8, 100, 4096, AMUDP_MAX_MEDIUM};
    for (int s = 0; s < 6; s++)
        OK(AM_RequestI1(ep, (rank + 1) % size, MEDIUM, from, sizes[s], 7));
    until(&mediums, 6);
    memset(segment, 0, sizeof segment);
    OK(AMUDP_SPMDBarrier());
    OK(AM_RequestXfer1(ep, (rank + 1) % size, 16, LONG, from, AMUDP_MAX_LONG, 16));
    until(&longs, 1);
    MUST(memcmp(segment + 2 * AMUDP_MAX_LONG, from, sizeof from) == 0);
    int r;
    while ((r = AM_RequestXferAsync1(ep, (rank + 1) % size, 32, LONG, from, 1000, 32)) == AM_ERR_IN_USE)
        OK(AM_Poll(eb));
    OK(r);
    until(&longs, 2);
    OK(AM_Request16(ep, (rank + 1) % size, MANY, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, -15));
    until(&manys, 1);
    OK(AMUDP_SPMDBarrier());
}

static void gathers(void)
{
    enum { LONGEST = 100000 };
    const size_t lens[] = {1, 4, 1000, 65000, LONGEST};
    unsigned char *mine = malloc(LONGEST), *all = malloc((size_t)size * LONGEST);
    MUST(mine != NULL && all != NULL);
    for (int round = 0; round < 20; round++) {
        size_t len = lens[round % 5];
        memset(mine, rank + round, len);
        memset(all, 255, (size_t)size * len);
        OK(AMUDP_SPMDAllGather(mine, all, len));
        for (int i = 0; i < size; i++)
            for (size_t b = 0; b < len; b += 97)
                MUST(all[(size_t)i * len + b] == (unsigned char)(i + round));
        if (round % 3 == 0)
            OK(AMUDP_SPMDBarrier());
    }
    free(mine);
    free(all);
}

/* Nobody leaves a barrier before the last has come: the slowest says so in a file of the test. */
static void barrier(const char *file)
{
    for (int slow = 0; slow < size && slow < 3; slow++) {
        char name[512];
        snprintf(name, sizeof name, "%s.%d", file, slow);
        if (rank == slow) {
            usleep(50000);
            FILE *f = fopen(name, "w");
            MUST(f != NULL && fclose(f) == 0);
        }
        OK(AMUDP_SPMDBarrier());
        MUST(access(name, F_OK) == 0);
    }
}

/* ---- faults of AMUDP that are none here: the case is called as the test in test_spmd.sh ---- */

/* Memory of this process that it shares with nobody, and half of what it shares with one. But not the pages of programs
 * and libraries, whose share changes with each process that starts or ends on the host. And not the buffers that
 * datagrams are received into, a mapping of malloc's of 4 MiB: there is one for all peers, and how many of them a run
 * of datagrams fills is chance. */
static long private_kb(void)
{
    enum { BUFFERS_KB = 4 << 10 };
    FILE *f = fopen("/proc/self/smaps", "r");
    char line[512];
    long kb = 0, pss = 0, own = 0, bytes_kb = 0, n;
    int mapped = 0, file = 0;
    MUST(f != NULL);
    while (fgets(line, sizeof line, f) != NULL) {
        if (sscanf(line, "Size: %ld", &n) == 1)
            bytes_kb = n;
        else if (sscanf(line, "Pss: %ld", &n) == 1)
            pss = n;
        else if (sscanf(line, "Anonymous: %ld", &n) == 1)
            own = n;
        else if (strncmp(line, "VmFlags:", 8) == 0 && (mapped || bytes_kb < BUFFERS_KB || strstr(line, " nr") != NULL))
            kb += file ? own : pss; /* nr: memory that is not set aside, as that of peers */
        else if (strchr(line, '-') != NULL && strchr(line, '-') < strchr(line, ' ')) {
            mapped = strchr(line, '/') != NULL || strchr(line, '[') != NULL;
            file = strstr(line, " /") != NULL && strstr(line, " /memfd:") == NULL && strstr(line, " /dev/shm/") == NULL;
        }
    }
    fclose(f);
    return kb;
}

static char longest[AMUDP_MAX_LONG];

static void ask_longest(void *token)
{
    OK(AM_ReplyI1(token, MEDIUM_BACK, longest, sizeof longest, 0));
}

/* What rank 0's memory grows by while each peer answers 128 requests with replies of 65,000 bytes. AMUDP keeps them
 * all, 8.2 MB a peer. `both`: the requests have 65,000 bytes, too. */
static void w4(int both)
{
    enum { ASK_LONGEST = 100 };
    for (size_t i = 0; i < sizeof longest; i++)
        longest[i] = (char)i;
    OK(AM_SetHandler(ep, ASK_LONGEST, ask_longest));
    OK(AMUDP_SPMDBarrier());
    long before = private_kb();
    for (int i = 0; rank == 0 && i < 128; i++) {
        for (int peer = 1; peer < size; peer++) {
            if (both)
                OK(AM_RequestI1(ep, peer, MEDIUM, longest, sizeof longest, 0));
            else
                OK(AM_Request0(ep, peer, ASK_LONGEST));
        }
    }
    if (rank == 0)
        until(&mediums, 128 * (size - 1));
    long kb = private_kb() - before;
    if (rank == 0)
        printf("%ld kB\n", kb);
    OK(AMUDP_SPMDBarrier());
}

static void pong_only(void *token, int32_t a, int32_t b)
{
    (void)token;
    (void)a;
    (void)b;
    pongs++;
}

/* Round trips of two that share one core and only poll: AMUDP needs 8 ms of it for each. */
static void w5(void)
{
    struct rusage u;
    OK(AM_SetHandler(ep, PONG, pong_only));
    OK(AMUDP_SPMDBarrier());
    for (int i = 0; rank == 0 && i < 500; i++) {
        OK(AM_Request2(ep, 1, PING, 1, 2));
        while (pongs <= i)
            OK(AM_Poll(eb));
    }
    while (rank == 1 && pongs == 0) { /* until rank 0 is through */
        OK(AM_Poll(eb));
    }
    if (rank == 0)
        OK(AM_Request2(ep, 1, PONG, 0, 0));
    getrusage(RUSAGE_SELF, &u);
    double us = (double)u.ru_utime.tv_sec * 1e6 + (double)u.ru_utime.tv_usec + (double)u.ru_stime.tv_sec * 1e6 +
                (double)u.ru_stime.tv_usec;
    printf("rank %d: %.0f us of processor time a round trip\n", rank, us / 500);
    MUST(us / 500 < 2000);
    OK(AMUDP_SPMDBarrier());
}

/* Whoever knows process and address of the master can tell AMUDP's tags. */
static void w8(void)
{
    tag_t tag, *all = malloc(sizeof *all * (size_t)size);
    MUST(all != NULL);
    OK(AM_GetTag(ep, &tag));
    OK(AMUDP_SPMDAllGather(&tag, all, sizeof tag));
    for (int i = 0; i < size; i++) {
        tag_t mapped;
        OK(AM_GetTranslationTag(ep, i, &mapped));
        MUST(mapped == all[i]);
        for (int k = 0; k < i; k++)
            MUST((all[i] ^ all[k]) >> 32 != 0 && ((all[i] ^ all[k]) & 0xffffffff) != 0);
    }
    printf("tag %016llx\n", (unsigned long long)tag);
    free(all);
}

static int lost;
static void on_lost(int status, op_t opcode, void *token)
{
    (void)token;
    MUST(status == EUNREACHABLE && opcode == AM_REQUEST_M);
    lost++;
}

/* Rank 1 dies; the others are told, forget it, and go on. */
static void w15(void)
{
    OK(AM_SetHandler(ep, 0, on_lost));
    OK(AM_SetHandler(ep, PONG, pong_only));
    OK(AMUDP_SPMDBarrier());
    if (rank == 1)
        abort();
    while (lost == 0) {
        OK(AM_Request2(ep, 1, PING, 0, 0));
        OK(AM_Poll(eb));
    }
    OK(AM_UnMap(ep, 1));
    int before = pongs, others = 0;
    for (int i = 0; i < size; i++) {
        if (i != 1) {
            OK(AM_Request2(ep, i, PING, 0, 0));
            others++;
        }
    }
    until(&pongs, before + others);
    printf("rank %d goes on\n", rank);
    fflush(stdout);
    for (int i = 0; i < 400; i++) { /* for those who still ask */
        OK(AM_Poll(eb));
        usleep(1000);
    }
    _exit(0);
}

/* As GASNet finds out who shares memory: those whose names have one address. */
static void hosts(void)
{
    uint32_t seen[64];
    int n = 0;
    for (int i = 0; i < size && i < 64; i++) {
        en_t name;
        int k = 0;
        OK(AM_GetTranslationName(ep, (amudp_node_t)i, &name));
        while (k < n && seen[k] != name.sin_addr.s_addr)
            k++;
        if (k == n)
            seen[n++] = name.sin_addr.s_addr;
    }
    printf("rank %d of %d sees %d hosts\n", rank, size, n);
}

/* ---- a steady exchange, for a network that changes ---- */

enum { STEADY = 101, STEADY_BACK };
static int32_t heard_of[64], steady;

static void on_steady(void *token, int32_t from, int32_t k)
{
    MUST(heard_of[from] == k); /* each once, in order */
    heard_of[from]++;
    OK(AM_Reply1(token, STEADY_BACK, k));
}

static void on_steady_back(void *token, int32_t k)
{
    (void)token;
    (void)k;
    steady++;
}

/* An endpoint that is made now is on the same host. */
static void is_at(const en_t *own)
{
    ep_t other;
    en_t name;
    OK(AM_AllocateEndpoint(eb, &other, &name));
    MUST(name.sin_addr.s_addr == own->sin_addr.s_addr);
    OK(AM_FreeEndpoint(other));
}

/* Until the file is there. Says `beats RANK` now and then; the names in the table stay what they were, those that are
 * told meanwhile equal them, and lead where they led. */
static void beat(const char *file)
{
    enum { EVERY = 10, PAUSE_US = 2000 };
    struct {
        en_t name;
        int32_t round, enough;
    } mine, all[64];
    en_t first[64];
    tag_t tag;
    memset(&mine, 0, sizeof mine);
    OK(AM_SetHandler(ep, STEADY, on_steady));
    OK(AM_SetHandler(ep, STEADY_BACK, on_steady_back));
    MUST(size <= 64);
    for (int i = 0; i < size; i++)
        OK(AM_GetTranslationName(ep, i, &first[i]));
    OK(AMUDP_SPMDBarrier());
    for (mine.round = 0;; mine.round++) {
        for (int i = 0; i < size; i++)
            OK(AM_Request2(ep, (amudp_node_t)i, STEADY, rank, mine.round));
        until(&steady, (mine.round + 1) * size);
        usleep(PAUSE_US);
        if (mine.round % EVERY != 0)
            continue;
        mine.enough = access(file, F_OK) == 0;
        OK(AM_GetTranslationName(ep, rank, &mine.name));
        OK(AMUDP_SPMDAllGather(&mine, all, sizeof mine));
        int enough = 0;
        is_at(&first[rank]);
        for (int i = 0; i < size; i++) {
            enough |= all[i].enough;
            MUST(all[i].round == mine.round && memcmp(&all[i].name, &first[i], sizeof first[i]) == 0);
            OK(AM_GetTranslationTag(ep, i, &tag));
            OK(AM_UnMap(ep, i));
            OK(AM_Map(ep, i, all[i].name, tag));
        }
        if (enough)
            break;
        if (mine.round % (2 * EVERY) == 0) {
            printf("beats %d\n", rank);
            fflush(stdout);
        }
    }
    OK(AMUDP_SPMDBarrier());
}

static eb_t shared;
static void *poll_on(void *arg)
{
    for (;;) {
        OK(AM_Poll(shared));
        usleep(20); /* who has the lock gets it again */
    }
    return arg;
}
/* A spawner of the program's own. */
static int own_spawner(int nproc, int argc, char **argv, char **extra_env)
{
    MUST(argc == 2 || argc == 3);
    for (int i = 0; i < nproc; i++) {
        pid_t pid = fork();
        if (pid > 0)
            continue;
        for (char **e = extra_env; pid == 0 && e != NULL && *e != NULL; e++)
            putenv(*e);
        if (pid == 0)
            execv(argv[0], argv);
        return 0;
    }
    return 1;
}

int main(int argc, char **argv)
{
    uint64_t job = 0;
    int was_worker = AMUDP_SPMDIsWorker(argv);
    AMX_VerboseErrors = getenv("SILENT") == NULL;
    if (argc > 1 && strcmp(argv[argc - 1], "setproc") == 0 && was_worker)
        AMUDP_SPMDSetProc(atoi(getenv("MY_RANK")));
    amudp_spawnfn_t spawner = getenv("SPAWNS_ITSELF") != NULL ? own_spawner : NULL;
    if (AMUDP_SPMDStartup(&argc, &argv, spawner != NULL ? 3 : 0, 0, spawner, &job, &eb, &ep) != AM_OK)
        return 9;
    rank = AMUDP_SPMDMyProc();
    size = AMUDP_SPMDNumProcs();
    const char *what = argc > 1 ? argv[1] : "";
    MUST(was_worker && AMUDP_SPMDIsWorker(argv) && job != 0);
    OK(AM_SetHandler(ep, PING, ping));
    OK(AM_SetHandler(ep, PONG, pong));
    OK(AM_SetHandler(ep, MEDIUM, medium));
    OK(AM_SetHandler(ep, MEDIUM_BACK, medium_back));
    OK(AM_SetHandler(ep, LONG, bulk));
    OK(AM_SetHandler(ep, LONG_BACK, bulk_back));
    OK(AM_SetHandler(ep, MANY, many));
    OK(AM_SetHandler(ep, MANY_BACK, many_back));
    OK(AM_SetSeg(ep, segment, sizeof segment));
    OK(AMUDP_SPMDBarrier());
    spmd_ends(what, argv);
    if (strcmp(what, "messages") == 0) {
        messages();
    } else if (strcmp(what, "gathers") == 0) {
        gathers();
    } else if (strcmp(what, "barrier") == 0) {
        barrier(argv[2]);
    } else if (strcmp(what, "print") == 0) {
        const char *value = AMUDP_SPMDgetenvMaster("WHAT_THE_MASTER_HAS");
        const char *first = AMUDP_check_env_prefix("WHAT_THE_MASTER_H");
        MUST(!value ? !first : first != NULL && strcmp(strchr(first, '=') + 1, value) == 0);
        printf("rank %d of %d has %s and %d arguments\n", rank, size, value != NULL ? value : "nothing", argc);
        fprintf(stderr, "errors of rank %d\n", rank);
    } else if (strcmp(what, "hosts") == 0) {
        hosts();
        messages();
    } else if (strcmp(what, "gathers-threads") == 0) { /* its messages are taken in by others */
        pthread_t thread;
        OK(AM_AllocateBundle(AM_PAR, &shared));
        for (int i = 0; i < 2; i++)
            MUST(pthread_create(&thread, NULL, poll_on, NULL) == 0);
        for (int i = 0; i < 20; i++)
            gathers();
        OK(AMUDP_SPMDBarrier());
    } else if (strcmp(what, "w4") == 0) {
        w4(0);
    } else if (strcmp(what, "w4-both") == 0) {
        w4(1);
    } else if (strcmp(what, "w5") == 0) {
        w5();
    } else if (strcmp(what, "w8") == 0) {
        w8();
    } else if (strcmp(what, "w15") == 0) {
        w15();
    } else if (strcmp(what, "talk") == 0) { /* for as long as the test wants */
        OK(AM_SetHandler(ep, PONG, pong_only));
        printf("rank %d talks\n", rank);
        for (long i = 0; access(argv[2], F_OK) == 0; i++) {
            OK(AM_Request2(ep, (rank + 1) % size, PING, 0, 0));
            until(&pongs, (int)i + 1);
        }
    } else if (strcmp(what, "beat") == 0) {
        beat(argv[2]);
    } else if (strcmp(what, "setproc") == 0) {
        MUST(rank == atoi(getenv("MY_RANK")));
    } else if (strcmp(what, "return") == 0) {
        OK(AMUDP_SPMDBarrier());
        return rank == 1 ? 7 : 0;
    } else if (strcmp(what, "killed") == 0) {
        OK(AMUDP_SPMDBarrier());
        if (rank == 1)
            abort();
        for (;;)
            pause();
    }
    OK(AMUDP_SPMDBarrier());
    AMUDP_SPMDExit(0);
    return 99;
}
