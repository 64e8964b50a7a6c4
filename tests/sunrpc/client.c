/* SPDX-License-Identifier: BSD-3-Clause
 *
 * client.c - an ordinary client on libtirpc, which knows nothing of Runnel: client KIND WHERE [WHAT]. It calls
 * everything that calls.h has, and prints what came of it; the prints of two runs are compared, one with librunnel-rpc
 * and one without.
 *
 * KIND: clnttcp, vc, clntudp, bufcreate, dg, tlitcp, tliudp with WHERE = port on this host, or on $CALLS_HOST;
 *       clntunix with WHERE = path;
 *       tcp, udp, tptcp, tpudp, vers with WHERE = host, through rpcbind
 * $CALLS_SECONDS: how long it may take
 * WHAT: all (default); core, which is all parts with fewer repetitions; or one of the words of `parts` below */
#include "calls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netconfig.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SECONDS = 100, HANDLES = 20, THREADS = 4, LIST = 100 };
static const struct timeval patience = {20, 0}, no_time = {0, 0};
static const char *kind, *where;
static int wrong, checks, datagram, few;
static CLIENT *told; /* the handle that part_told has left */

static void check(int ok, const char *what, int n)
{
    __atomic_fetch_add(&checks, 1, __ATOMIC_RELAXED);
    if (!ok) {
        __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
        printf("wrong: %s, %d\n", what, n);
    }
}

static int is_datagram(const char *k)
{
    return strstr(k, "udp") != NULL || strcmp(k, "dg") == 0 || strcmp(k, "bufcreate") == 0;
}

static CLIENT *make(rpcprog_t program, rpcvers_t version)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct sockaddr_un u = {.sun_family = AF_UNIX};
    struct netbuf to = {sizeof a, sizeof a, &a};
    const struct timeval wait = {5, 0};
    int sock = RPC_ANYSOCK;
    a.sin_port = htons((uint16_t)atoi(where));
    if (getenv("CALLS_HOST"))
        inet_pton(AF_INET, getenv("CALLS_HOST"), &a.sin_addr);
    if (strcmp(kind, "clnttcp") == 0)
        return clnttcp_create(&a, program, version, &sock, 0, 0);
    if (strcmp(kind, "clntudp") == 0)
        return clntudp_create(&a, program, version, wait, &sock);
    if (strcmp(kind, "bufcreate") == 0)
        return clntudp_bufcreate(&a, program, version, wait, &sock, 30000, 30000);
    if (strcmp(kind, "vc") == 0)
        return clnt_vc_create(socket(AF_INET, SOCK_STREAM, 0), &to, program, version, 0, 0);
    if (strcmp(kind, "dg") == 0)
        return clnt_dg_create(socket(AF_INET, SOCK_DGRAM, 0), &to, program, version, 0, 0);
    if (strncmp(kind, "tli", 3) == 0)
        return clnt_tli_create(RPC_ANYFD, getnetconfigent(kind + 3), &to, program, version, 0, 0);
    if (strcmp(kind, "clntunix") == 0) {
        strncpy(u.sun_path, where, sizeof u.sun_path - 1);
        return clntunix_create(&u, program, version, &sock, 0, 0);
    }
    if (strncmp(kind, "tp", 2) == 0)
        return clnt_tp_create(where, program, version, getnetconfigent(kind + 2));
    if (strcmp(kind, "vers") == 0) {
        rpcvers_t got;
        return clnt_create_vers(where, program, &got, version, version, "tcp");
    }
    return clnt_create(where, program, version, kind);
}

static CLIENT *must_make(void)
{
    CLIENT *c = make(CALLS_PROGRAM, CALLS_VERSION);
    if (!c) {
        clnt_pcreateerror("client");
        exit(1);
    }
    return c;
}

static enum clnt_stat call(CLIENT *c, int proc, xdrproc_t xargs, void *args, xdrproc_t xres, void *res)
{
    return clnt_call(c, (rpcproc_t)proc, xargs, (char *)args, xres, (char *)res, patience);
}
#define NOTHING ((xdrproc_t)(void (*)(void))xdr_void)

static char *some_bytes(u_int n, unsigned seed)
{
    char *at = malloc(n + 1);
    for (u_int i = 0; i < n; i++)
        at[i] = (char)((seed = seed * 1103515245u + 12345u) >> 16);
    return at;
}

/* ---- the parts ---- */

static void part_simple(CLIENT *c)
{
    for (int i = 0; i < (few ? 40 : 200); i++) {
        struct calls_pair p = {i, 3 * i - 7};
        int sum = -1;
        check(call(c, CALLS_NULL, NOTHING, NULL, NOTHING, NULL) == RPC_SUCCESS, "null", i);
        check(call(c, CALLS_ADD, (xdrproc_t)xdr_calls_pair, &p, (xdrproc_t)xdr_int, &sum) == RPC_SUCCESS &&
                  sum == 4 * i - 7,
              "add", i);
    }
}

static void part_strings(CLIENT *c)
{
    for (u_int n = 0; n <= 300; n += few ? 7 : 1) {
        char *text = some_bytes(n, n), *back = NULL;
        for (u_int i = 0; i < n; i++)
            text[i] = (char)(' ' + (text[i] & 63));
        text[n] = '\0';
        check(call(c, CALLS_STRING, (xdrproc_t)xdr_calls_string, &text, (xdrproc_t)xdr_calls_string, &back) ==
                      RPC_SUCCESS &&
                  back && strcmp(text, back) == 0,
              "string", (int)n);
        check(clnt_freeres(c, (xdrproc_t)xdr_calls_string, (char *)&back) && !back, "freeres", (int)n);
        free(text);
    }
}

static void part_bytes(CLIENT *c)
{
    u_int max = datagram ? 8000 : few ? 3 << 20 : 8 << 20; /* what libtirpc's datagrams carry; beyond the bulk area */
    u_int step = few ? 11 : 1;
    for (u_int n = 0; n <= max; n = n < 300 ? n + step : n < 9000 ? n + step * n / 7 : n * 2 + 3) {
        struct calls_bytes b = {n, some_bytes(n, n + 1)}, back = {0, NULL};
        check(call(c, CALLS_BYTES, (xdrproc_t)xdr_calls_bytes, &b, (xdrproc_t)xdr_calls_bytes, &back) == RPC_SUCCESS &&
                  back.count == n && memcmp(b.at, back.at ? back.at : b.at, n) == 0,
              "bytes", (int)n);
        (void)clnt_freeres(c, (xdrproc_t)xdr_calls_bytes, (char *)&back);
        free(b.at);
        struct calls_ints a = {n / 4, (int *)(void *)some_bytes(n, n + 2)}, ints = {0, NULL};
        check(call(c, CALLS_INTS, (xdrproc_t)xdr_calls_ints, &a, (xdrproc_t)xdr_calls_ints, &ints) == RPC_SUCCESS &&
                  ints.count == n / 4 && memcmp(a.at, ints.at ? ints.at : a.at, n / 4 * 4) == 0,
              "ints", (int)n);
        (void)clnt_freeres(c, (xdrproc_t)xdr_calls_ints, (char *)&ints);
        free(a.at);
        if (n % 8 == 3 || n < 200) {
            struct calls_hypers h = {n / 8, (int64_t *)(void *)some_bytes(n, n + 3)}, hypers = {0, NULL};
            check(call(c, CALLS_HYPERS, (xdrproc_t)xdr_calls_hypers, &h, (xdrproc_t)xdr_calls_hypers, &hypers) ==
                          RPC_SUCCESS &&
                      hypers.count == n / 8 && memcmp(h.at, hypers.at ? hypers.at : h.at, n / 8 * 8) == 0,
                  "hypers", (int)n);
            (void)clnt_freeres(c, (xdrproc_t)xdr_calls_hypers, (char *)&hypers);
            free(h.at);
        }
    }
}

static void part_shapes(CLIENT *c)
{
    char text[] = "a text in a union";
    for (int k = 0; k < 40; k++) {
        struct calls_shape s = {.kind = k % 4, .number = k, .text = text, .bytes = {(u_int)k, text}}, back = {0};
        if (s.kind == 3 && k > 16)
            s.bytes.count = 16;
        check(call(c, CALLS_SHAPE, (xdrproc_t)xdr_calls_shape, &s, (xdrproc_t)xdr_calls_shape, &back) == RPC_SUCCESS &&
                  back.kind == s.kind,
              "union", k);
        check(s.kind != 1 || back.number == k, "union's number", k);
        check(s.kind != 2 || (back.text && strcmp(back.text, text) == 0), "union's text", k);
        (void)clnt_freeres(c, (xdrproc_t)xdr_calls_shape, (char *)&back);
    }
    struct calls_list nodes[LIST], *list = nodes, *back = NULL;
    for (int i = 0; i < LIST; i++)
        nodes[i] = (struct calls_list){i * i, i + 1 < LIST ? &nodes[i + 1] : NULL};
    check(call(c, CALLS_LIST, (xdrproc_t)xdr_calls_list, &list, (xdrproc_t)xdr_calls_list, &back) == RPC_SUCCESS,
          "list", LIST);
    int n = 0;
    for (struct calls_list *l = back; l; l = l->next, n++)
        check(l->value == n * n, "list's value", n);
    check(n == LIST, "list's length", n);
    while (back) {
        struct calls_list *next = back->next;
        free(back);
        back = next;
    }
    struct calls_vector v = {0xfedcba98, {1, -2, 3, -4, 5}, {0.5, -1e300, 3}}, w = {0};
    check(call(c, CALLS_VECTOR, (xdrproc_t)xdr_calls_vector, &v, (xdrproc_t)xdr_calls_vector, &w) == RPC_SUCCESS &&
              v.number == w.number && memcmp(v.ints, w.ints, sizeof v.ints) == 0 &&
              memcmp(v.doubles, w.doubles, sizeof v.doubles) == 0,
          "vectors", 0);
}

static void show(const char *what, CLIENT *c, enum clnt_stat s)
{
    struct rpc_err e = {0};
    clnt_geterr(c, &e);
    check(e.re_status == s, "geterr's status", (int)e.re_status);
    printf("%s: %s", what, clnt_sperrno(s));
    if (s == RPC_PROGVERSMISMATCH)
        printf(" %u..%u", (unsigned)e.re_vers.low, (unsigned)e.re_vers.high);
    if (s == RPC_AUTHERROR)
        printf(" %d", (int)e.re_why);
    printf("\n");
}

static bool_t xdr_refuses(XDR *x, void *at)
{
    return x->x_op == XDR_FREE || (x->x_op == XDR_ENCODE && xdr_int(x, at) && 0);
}

static void part_errors(CLIENT *c)
{
    int why[] = {0, 100, AUTH_BADCRED, AUTH_REJECTEDCRED, AUTH_BADVERF, AUTH_TOOWEAK}, n = 7, back;
    u_int32_t number = 9, prog = CALLS_PROGRAM, odd = CALLS_PROGRAM + 77;
    for (int again = 0; again < 2; again++) {
        show("no such procedure", c, call(c, 999, NOTHING, NULL, NOTHING, NULL));
        for (unsigned i = 0; i < sizeof why / sizeof why[0]; i++)
            show("refused", c, call(c, CALLS_REFUSE, (xdrproc_t)xdr_int, &why[i], NOTHING, NULL));
        clnt_control(c, CLSET_VERS, (char *)&number);
        show("no such version", c, call(c, CALLS_NULL, NOTHING, NULL, NOTHING, NULL));
        number = CALLS_VERSION_2;
        clnt_control(c, CLSET_VERS, (char *)&number);
        struct calls_pair p = {1, 2};
        show("version 3", c, call(c, CALLS_ADD, (xdrproc_t)xdr_calls_pair, &p, (xdrproc_t)xdr_int, &back));
        check(back == 1003, "version 3's sum", back);
        number = CALLS_VERSION;
        clnt_control(c, CLSET_VERS, (char *)&number);
        clnt_control(c, CLSET_PROG, (char *)&odd);
        show("no such program", c, call(c, CALLS_NULL, NOTHING, NULL, NOTHING, NULL));
        u_int32_t got = 0;
        clnt_control(c, CLGET_PROG, (char *)&got);
        check(got == odd, "CLGET_PROG", (int)got);
        clnt_control(c, CLSET_PROG, (char *)&prog);
        show("results that cannot be decoded", c,
             call(c, CALLS_SLEEP, (xdrproc_t)xdr_int, &(int){0}, (xdrproc_t)xdr_refuses, &n));
        show("arguments that cannot be encoded", c,
             call(c, CALLS_ADD, (xdrproc_t)xdr_refuses, &n, (xdrproc_t)xdr_int, &back));
        if (!datagram) /* libtirpc's UDP server decodes what an earlier datagram has left */
            show("arguments that cannot be decoded", c, call(c, CALLS_ADD, NOTHING, NULL, (xdrproc_t)xdr_int, &back));
        show("after all that", c, call(c, CALLS_NULL, NOTHING, NULL, NOTHING, NULL));
    }
    CLIENT *other = make(CALLS_PROGRAM, CALLS_VERSION);
    u_int32_t xid = 4711, first = 0;
    if (clnt_control(other, CLSET_XID, (char *)&xid)) {
        show("with an xid", other, call(other, CALLS_NULL, NOTHING, NULL, NOTHING, NULL));
        clnt_control(other, CLGET_XID, (char *)&first);
        printf("the xid of the call: %u\n", (unsigned)first);
    }
    clnt_destroy(other);
}

static void part_late(CLIENT *c)
{
    int ms = few ? 120 : 300, back = 0;
    struct timeval brief = {0, 50000}, got = {0};
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    enum clnt_stat s =
        clnt_call(c, CALLS_SLEEP, (xdrproc_t)xdr_int, (char *)&ms, (xdrproc_t)xdr_int, (char *)&back, brief);
    clock_gettime(CLOCK_MONOTONIC, &b);
    double took = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
    check(s == RPC_TIMEDOUT && took > 0.045, "too late", (int)(took * 1000));
    show("too late", c, s);
    struct calls_pair p = {40, 2};
    check(call(c, CALLS_ADD, (xdrproc_t)xdr_calls_pair, &p, (xdrproc_t)xdr_int, &back) == RPC_SUCCESS && back == 42,
          "go on", back);
    clnt_control(c, CLSET_TIMEOUT, (char *)&brief);
    clnt_control(c, CLGET_TIMEOUT, (char *)&got);
    check(got.tv_sec == 0 && got.tv_usec == 50000, "CLGET_TIMEOUT", (int)got.tv_usec);
    show("CLSET_TIMEOUT beats the argument", c,
         call(c, CALLS_SLEEP, (xdrproc_t)xdr_int, &ms, (xdrproc_t)xdr_int, &back));
    brief.tv_sec = 20;
    clnt_control(c, CLSET_TIMEOUT, (char *)&brief);
    check(call(c, CALLS_ADD, (xdrproc_t)xdr_calls_pair, &p, (xdrproc_t)xdr_int, &back) == RPC_SUCCESS && back == 42,
          "go on again", back);
}

static void part_who(CLIENT *c)
{
    struct calls_who w = {0};
    c->cl_auth = authunix_create((char *)(uintptr_t) "somewhere", 4, 5, 3, (gid_t[]){7, 8, 9});
    for (int i = 0; i < 4; i++) {
        memset(&w, 0, sizeof w);
        check(call(c, CALLS_WHO, NOTHING, NULL, (xdrproc_t)xdr_calls_who, &w) == RPC_SUCCESS, "who", i);
        printf("who: flavor %d, uid %d, gid %d, %d groups, netid %s, family %d, %d bytes\n", w.flavor, w.uid, w.gid,
               w.gids, w.netid, w.family, w.addrlen);
        (void)clnt_freeres(c, (xdrproc_t)xdr_calls_who, (char *)&w);
    }
    auth_destroy(c->cl_auth);
    c->cl_auth = authnone_create();
    check(call(c, CALLS_WHO, NOTHING, NULL, (xdrproc_t)xdr_calls_who, &w) == RPC_SUCCESS && w.flavor == AUTH_NONE,
          "nobody", w.flavor);
    (void)clnt_freeres(c, (xdrproc_t)xdr_calls_who, (char *)&w);
}

static void part_batch(CLIENT *c)
{
    int sum = 0, one = 1, batched = few ? 1500 : 15000;
    if (datagram)
        return;
    (void)call(c, CALLS_TOTAL, NOTHING, NULL, (xdrproc_t)xdr_int, &sum);
    for (int i = 0; i < batched; i++)
        check(clnt_call(c, CALLS_COUNT, (xdrproc_t)xdr_int, (char *)&one, NULL, NULL, no_time) == RPC_SUCCESS,
              "batched", i);
    check(call(c, CALLS_TOTAL, NOTHING, NULL, (xdrproc_t)xdr_int, &sum) == RPC_SUCCESS && sum == batched,
          "all batched calls", sum);
    /* Batched calls that are answered all the same: nobody reads the answers until there is no room for more. */
    for (int i = 0; i < (few ? 500 : 2000); i++)
        check(clnt_call(c, CALLS_NULL, (xdrproc_t)(void (*)(void))xdr_void, NULL, NULL, NULL, no_time) == RPC_SUCCESS,
              "batched and answered", i);
    struct calls_pair p = {40, 2};
    check(call(c, CALLS_ADD, (xdrproc_t)xdr_calls_pair, &p, (xdrproc_t)xdr_int, &sum) == RPC_SUCCESS && sum == 42,
          "after them", sum);
    /* The answer is there long before all arguments are. */
    struct calls_bytes b = {4 << 20, calloc(1, 4 << 20)};
    for (int i = 0; i < 3; i++)
        show("many bytes for nobody", c, call(c, 998, (xdrproc_t)xdr_calls_bytes, &b, NOTHING, NULL));
    free(b.at);
}

static void *thread(void *arg)
{
    CLIENT *c = arg;
    for (int i = 0; i < (few ? 100 : 500); i++) {
        struct calls_pair p = {i, (int)(uintptr_t)pthread_self() & 0xffff};
        int sum = 0;
        check(call(c, CALLS_ADD, (xdrproc_t)xdr_calls_pair, &p, (xdrproc_t)xdr_int, &sum) == RPC_SUCCESS &&
                  sum == p.a + p.b,
              "thread", i);
    }
    return NULL;
}

static void part_threads(CLIENT *c)
{
    pthread_t t[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&t[i], NULL, thread, c);
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
}

static void part_handles(CLIENT *c)
{
    CLIENT *many[HANDLES];
    (void)c;
    for (int i = 0; i < HANDLES; i++)
        many[i] = make(i % 2 ? CALLS_PROGRAM : CALLS_OTHER, CALLS_VERSION);
    for (int k = 0; k < (few ? 8 : 20); k++)
        for (int i = 0; i < HANDLES; i++) {
            struct calls_pair p = {i, k};
            int sum = -1;
            check(many[i] &&
                      call(many[i], CALLS_ADD, (xdrproc_t)xdr_calls_pair, &p, (xdrproc_t)xdr_int, &sum) ==
                          RPC_SUCCESS &&
                      sum == i + k,
                  "handle", i);
        }
    for (int i = 0; i < HANDLES; i++)
        if (many[i])
            clnt_destroy(many[i]);
}

/* A forked child uses its parent's handle while the parent waits, then the parent goes on. */
static void part_fork(CLIENT *c)
{
    for (int k = 0; k < 3; k++) {
        struct calls_pair p = {k, 5};
        int sum = 0, status = 1;
        fflush(stdout);
        pid_t child = fork();
        if (child == 0)
            _exit(call(c, CALLS_ADD, (xdrproc_t)xdr_calls_pair, &p, (xdrproc_t)xdr_int, &sum) == RPC_SUCCESS &&
                          sum == k + 5
                      ? 0
                      : 1);
        check(waitpid(child, &status, 0) == child && status == 0, "forked child", status);
        check(call(c, CALLS_ADD, (xdrproc_t)xdr_calls_pair, &p, (xdrproc_t)xdr_int, &sum) == RPC_SUCCESS &&
                  sum == k + 5,
              "its parent", sum);
    }
}

/* ---- parts that `all` leaves out ---- */

static void part_once(CLIENT *c)
{
    check(call(c, CALLS_NULL, NOTHING, NULL, NOTHING, NULL) == RPC_SUCCESS, "null", 0);
}

/* The server forks a child for a call, which takes the arguments and replies while its parent serves the next calls,
 * for instance those that nobody waits for. */
static void part_forking(CLIENT *c)
{
    enum { BYTES = 7000, BATCHED = 60 };
    int sum = 0, all = 0;
    for (u_int n = 0; n < BYTES; n += n / 5 + 9) {
        struct calls_bytes b = {n, some_bytes(n, n)}, back = {0, NULL};
        if (n)
            b.at[0] = (char)(n % 3);
        check(call(c, CALLS_FORK, (xdrproc_t)xdr_calls_bytes, &b, (xdrproc_t)xdr_calls_bytes, &back) == RPC_SUCCESS &&
                  back.count == n && memcmp(back.at ? back.at : b.at, b.at, n) == 0,
              "by a forked child", (int)n);
        (void)clnt_freeres(c, (xdrproc_t)xdr_calls_bytes, (char *)&back);
        free(b.at);
    }
    (void)call(c, CALLS_TOTAL, NOTHING, NULL, (xdrproc_t)xdr_int, &sum);
    for (int i = 1; i <= BATCHED && !datagram; i++)
        check(clnt_call(c, CALLS_FORKED, (xdrproc_t)xdr_int, (char *)&i, NULL, NULL, no_time) == RPC_SUCCESS,
              "batched, by a forked child", i);
    for (int i = 0; i < 500 && !datagram && all != BATCHED * (BATCHED + 1) / 2; i++, all += sum) {
        usleep(10000);
        if (call(c, CALLS_TOTAL, NOTHING, NULL, (xdrproc_t)xdr_int, &sum) != RPC_SUCCESS)
            break;
    }
    check(datagram || all == BATCHED * (BATCHED + 1) / 2, "all batched calls of forked children", all);
}

/* Children of the server reply to calls that were given up, while their parent replies to others. libtirpc's TCP client
 * hangs in that: after a time-out it takes the next reply, whichever it is, for the late one. */
static void part_beside(CLIENT *c)
{
    enum { LATE_MS = 60, LATE_BYTES = 300000, CHILDREN = 12, CALLS = 3000, SETTLES = 100 };
    const struct timeval brief = {0, 1000};
    const int far = getenv("CALLS_HOST") != NULL; /* where a call may take a while to leave, so it is batched */
    struct calls_bytes late = {datagram ? 7000 : LATE_BYTES, some_bytes(LATE_BYTES, 5)}, back = {0, NULL};
    int sum = 0;
    for (int i = 0; i < (far ? SETTLES : 5); i++) {
        check(call(c, CALLS_NULL, NOTHING, NULL, NOTHING, NULL) == RPC_SUCCESS, "null", i);
        usleep(far ? 10000 : 0);
    }
    late.at[0] = LATE_MS;
    for (int i = 0; i < CHILDREN && !far; i++)
        check(clnt_call(c, CALLS_FORK, (xdrproc_t)xdr_calls_bytes, (char *)&late, (xdrproc_t)xdr_calls_bytes,
                        (char *)&back, brief) == RPC_TIMEDOUT,
              "given up", i);
    for (int i = 0; i < CHILDREN && far; i++)
        check(clnt_call(c, CALLS_FORK, (xdrproc_t)xdr_calls_bytes, (char *)&late, NULL, NULL, no_time) == RPC_SUCCESS,
              "batched", i);
    for (int k = 0; k < CALLS; k++) { /* until after the replies of the children */
        struct calls_pair p = {k, 5};
        check(call(c, CALLS_ADD, (xdrproc_t)xdr_calls_pair, &p, (xdrproc_t)xdr_int, &sum) == RPC_SUCCESS &&
                  sum == k + 5,
              "beside a child", k);
        if (k % 10 == 0)
            usleep(1000);
    }
    free(late.at);
}

/* Somebody else ends the server while it hangs in a call of ours; a TCP client is told, a UDP client finds the next
 * server at that port, which does not hang in what is sent again. */
static void part_death(CLIENT *c)
{
    int pid = 0, back = 0;
    struct timeval retry = {0, 300000};
    struct timespec a, b;
    for (int i = 0; i < 5; i++)
        check(call(c, CALLS_PID, NOTHING, NULL, (xdrproc_t)xdr_int, &pid) == RPC_SUCCESS && pid > 0, "pid", i);
    printf("hanging\n");
    fflush(stdout);
    clock_gettime(CLOCK_MONOTONIC, &a);
    if (datagram)
        clnt_control(c, CLSET_RETRY_TIMEOUT, (char *)&retry);
    enum clnt_stat s = call(c, CALLS_HANG, (xdrproc_t)xdr_int, &pid, (xdrproc_t)xdr_int, &back);
    clock_gettime(CLOCK_MONOTONIC, &b);
    printf("told after %ld ms: %s\n", (long)(b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000,
           clnt_sperrno(s));
    for (int i = 0; i < 100 && (i == 0 || (datagram && s != RPC_SUCCESS)); i++) {
        s = call(c, CALLS_NULL, NOTHING, NULL, NOTHING, NULL);
        if (s != RPC_SUCCESS)
            usleep(50000);
    }
    printf("and then: %s\n", s == RPC_SUCCESS ? "served" : "not served");
    for (int i = 0; s == RPC_SUCCESS && i < 6; i++)
        check(call(c, CALLS_NULL, NOTHING, NULL, NOTHING, NULL) == RPC_SUCCESS, "null again", i);
}

/* The server has no time when this client would like to be introduced. */
static void part_patient(CLIENT *c)
{
    for (int i = 0; i < 60; i++)
        check(call(c, CALLS_NULL, NOTHING, NULL, NOTHING, NULL) == RPC_SUCCESS, "null", i);
}

/* Keeps the server busy for more than a second, then stays idle for two. */
static void part_busy(CLIENT *c)
{
    for (time_t until = time(NULL) + 2; time(NULL) < until;)
        for (int i = 0; i < 100; i++)
            check(call(c, CALLS_NULL, NOTHING, NULL, NOTHING, NULL) == RPC_SUCCESS, "busy", i);
    printf("idle\n");
    fflush(stdout);
    sleep(2);
}

/* Does what it is told on its input, and says when that is done: "null N", "bytes N", "nobody N" (a call of N bytes to
 * a procedure that is not there), "batch N", "total", "destroy" (and a new handle), "quit". */
static void part_told(CLIENT *c)
{
    char line[80], word[16];
    alarm(0); /* it ends when nobody can tell it anything any more */
    while (fgets(line, sizeof line, stdin) && strcmp(line, "quit\n") != 0) {
        int n = 0, sum = 0;
        enum clnt_stat s = RPC_SUCCESS;
        struct timespec a, b;
        clock_gettime(CLOCK_MONOTONIC, &a);
        if (sscanf(line, "%15s %d", word, &n) < 1)
            continue;
        if (strcmp(word, "null") == 0) {
            for (int i = 0; i < n && s == RPC_SUCCESS; i++)
                s = call(c, CALLS_NULL, NOTHING, NULL, NOTHING, NULL);
        } else if (strcmp(word, "bytes") == 0 || strcmp(word, "nobody") == 0) {
            struct calls_bytes to = {(u_int)n, some_bytes((u_int)n, (unsigned)n)}, back = {0};
            int proc = strcmp(word, "bytes") == 0 ? CALLS_BYTES : 998;
            s = call(c, proc, (xdrproc_t)xdr_calls_bytes, &to, (xdrproc_t)xdr_calls_bytes, &back);
            check(s != RPC_SUCCESS || (back.count == to.count && memcmp(back.at, to.at, to.count) == 0), word, n);
            free(to.at);
            free(back.at);
        } else if (strcmp(word, "batch") == 0) {
            const int one = 1;
            for (int i = 0; i < n && s == RPC_SUCCESS; i++)
                s = clnt_call(c, CALLS_COUNT, (xdrproc_t)xdr_int, (char *)&one, NULL, NULL, no_time);
        } else if (strcmp(word, "total") == 0) {
            s = call(c, CALLS_TOTAL, NOTHING, NULL, (xdrproc_t)xdr_int, &sum);
        } else if (strcmp(word, "destroy") == 0) {
            clnt_destroy(c);
            c = must_make();
        }
        clock_gettime(CLOCK_MONOTONIC, &b);
        printf("%s %d: %s, %d\n", word, n, clnt_sperrno(s), sum);
        fprintf(stderr, "%s %d: %.1f us each\n", word, n,
                ((double)(b.tv_sec - a.tv_sec) * 1e6 + (double)(b.tv_nsec - a.tv_nsec) / 1e3) / (n > 0 ? n : 1));
        fflush(stdout);
    }
    told = c;
}

static const struct {
    const char *name;
    void (*run)(CLIENT *);
} parts[] = {{"simple", part_simple},   {"strings", part_strings}, {"bytes", part_bytes}, {"shapes", part_shapes},
             {"errors", part_errors},   {"who", part_who},         {"batch", part_batch}, {"threads", part_threads},
             {"fork", part_fork},       {"handles", part_handles}, {"late", part_late},   {"once", part_once},
             {"death", part_death},     {"patient", part_patient}, {"busy", part_busy},   {"told", part_told},
             {"forking", part_forking}, {"beside", part_beside}};
enum { PARTS_OF_ALL = 11 };

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: client KIND WHERE [WHAT]\n");
        return 64;
    }
    kind = argv[1];
    where = argv[2];
    datagram = is_datagram(kind);
    few = argc > 3 && strcmp(argv[3], "core") == 0;
    alarm(getenv("CALLS_SECONDS") ? (unsigned)atoi(getenv("CALLS_SECONDS")) : SECONDS);
    signal(SIGPIPE, SIG_IGN);
    CLIENT *c = must_make();
    int ran = 0;
    for (unsigned i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (argc < 4 || few || strcmp(argv[3], "all") == 0 ? i < PARTS_OF_ALL : strcmp(argv[3], parts[i].name) == 0) {
            parts[i].run(c);
            ran++;
        }
    clnt_destroy(told ? told : c);
    printf("%d checks, %d wrong\n", checks, wrong);
    return wrong || !ran ? 1 : 0;
}
