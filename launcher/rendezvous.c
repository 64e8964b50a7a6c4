/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rendezvous.c - the launcher's side of job/rendezvous.h: the file, the bootstrap socket, and who comes. A child
 * of the launcher shakes hands with each caller and carries its control stream from then on. So many who have not
 * proven that they have the key are listened to at a time; others wait, and those who say nothing give way to them
 * after a while. Ranks are dealt to hosts in blocks. */
#include "job/rendezvous.h"
#include "base/secret.h"
#include "launcher/hosts.h"
#include "launcher/node.h"
#include "net/probe/address_probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STRANGERS_MAX = 32, SWEEP_MS = 250 };
#define SECOND_NS UINT64_C(1000000000)
static const uint64_t hurry_ns = 2 * SECOND_NS;

struct rnl_bootstrap {
    struct rnl_listener listener;
    uv_timer_t sweep;
    struct rnl_guard guard;       /* removes the file */
    uint32_t joined, calls, room; /* processes that wait; how many have called; of l->node */
    struct rnl_job_host *at;
    unsigned char key[RNL_RENDEZVOUS_KEY];
};

/* Nothing will come of this job; those who wait are told why. */
static void fail(struct rnl_launcher *l, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void fail(struct rnl_launcher *l, int status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(l->why, sizeof l->why, format, args);
    va_end(args);
    rnl_launcher_report(l, "%s", l->why);
    rnl_launcher_give_up(l, status);
}

/* ---- the file ---- */

enum { BACKLOG = 128, ADDRESSES_ROOM = 4000 };
struct text {
    char at[RNL_RENDEZVOUS_TEXT];
    size_t bytes;
};

/* On one address; or on all, of both kinds, or where there is no IPv6 of IPv4. */
static int listen_at(const char *address)
{
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV | AI_NUMERICHOST};
    const int no = 0;
    struct addrinfo *all;
    if (getaddrinfo(address ? address : "::", "0", &hints, &all) != 0)
        return -EADDRNOTAVAIL;
    const int fd = socket(all->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && !address)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    const int e = fd >= 0 && bind(fd, all->ai_addr, all->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0 ? 0 : -errno;
    freeaddrinfo(all);
    if (e == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return address ? e : listen_at("0.0.0.0");
}

static unsigned port_of(int fd)
{
    struct sockaddr_in6 at = {.sin6_port = 0}; /* the port is in the same place in one of IPv4 */
    socklen_t n = sizeof at;
    return getsockname(fd, (struct sockaddr *)&at, &n) == 0 ? ntohs(at.sin6_port) : 0;
}

static void add_line(struct text *t, const char *address, unsigned port)
{
    const size_t room = ADDRESSES_ROOM - t->bytes;
    const int n = snprintf(t->at + t->bytes, room, "master %s %u\n", address, port);
    if (n > 0 && (size_t)n < room)
        t->bytes += (size_t)n;
}

/* The loopback's last. */
static void add_all(struct text *t, unsigned port)
{
    struct rnl_host_address all[RNL_HOST_ADDRESSES_MAX];
    const int n = rnl_host_addresses(all, RNL_HOST_ADDRESSES_MAX);
    for (int i = 0; i < n; i++) {
        char text[INET6_ADDRSTRLEN];
        const bool mapped = IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)(const void *)all[i].ip);
        if (inet_ntop(mapped ? AF_INET : AF_INET6, all[i].ip + (mapped ? 12 : 0), text, sizeof text))
            add_line(t, text, port);
    }
}

/* There is such a file already. */
static void report_owner(const char *file)
{
    struct rnl_rendezvous r;
    if (rnl_rendezvous_read(file, &r) < 0) {
        fprintf(stderr, "runnel: there is a file %s already, which is no rendezvous file of yours: name another\n",
                file);
        return;
    }
    struct rnl_secure_stream *c = rnl_rendezvous_call(&r, 0);
    fprintf(
        stderr,
        c ? "runnel: the rendezvous file %s belongs to a job that runs: name another\n"
          : "runnel: the rendezvous file %s is left over from a launcher that is gone: remove it, or name another\n",
        file);
    rnl_secure_stream_free(c);
    explicit_bzero(&r, sizeof r);
}

static int write_file(const char *file, const struct text *t)
{
    const int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST) {
        report_owner(file);
        return -1;
    }
    const bool good = fd >= 0 && write(fd, t->at, t->bytes) == (ssize_t)t->bytes;
    if (!good)
        fprintf(stderr, "runnel: cannot write the rendezvous file %s: %s\n", file, strerror(errno));
    if (fd >= 0)
        close(fd);
    if (fd >= 0 && !good)
        (void)unlink(file);
    return good ? 0 : -1;
}

static int new_file(const struct rnl_launch *job, const unsigned char *key, int *fd)
{
    const char *address = job->rendezvous_address;
    struct text t;
    *fd = listen_at(address);
    if (*fd < 0) {
        fprintf(stderr, "runnel: cannot listen for ranks%s%s: %s\n", address ? " at " : "", address ? address : "",
                strerror(-*fd));
        return -1;
    }
    sodium_bin2hex(t.at, sizeof t.at, key, RNL_RENDEZVOUS_KEY);
    t.bytes = 2 * RNL_RENDEZVOUS_KEY;
    t.bytes += (size_t)snprintf(t.at + t.bytes, 64, "\nrunnel-rendezvous %d\n", RNL_RENDEZVOUS_VERSION);
    if (address)
        add_line(&t, address, port_of(*fd));
    else
        add_all(&t, port_of(*fd));
    t.bytes += (size_t)snprintf(t.at + t.bytes, sizeof t.at - t.bytes, "agent %s\n", job->agent);
    const int r = write_file(job->rendezvous_file, &t);
    explicit_bzero(&t, sizeof t);
    if (r < 0) {
        close(*fd);
        *fd = -1;
    }
    return r;
}

/* ---- who calls ---- */

static bool is_stranger(const struct rnl_node *n)
{
    return n->state == RNL_NODE_STARTING;
}

static uint32_t strangers(const struct rnl_launcher *l)
{
    uint32_t n = 0;
    for (uint32_t i = l->hosts; i < l->nodes; i++)
        n += is_stranger(l->node[i]);
    return n;
}

static _Noreturn void relay(int fd, int stream, const unsigned char *key, pid_t launcher)
{
    bool answered;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher || dup2(fd, 3) < 0 || dup2(stream, 4) < 0)
        _exit(RNL_EXIT_SYSTEM);
    (void)syscall(SYS_close_range, 5u, ~0u, 0u);
    setsid();
    rnl_spawn_restore_signals();
    struct rnl_secure_stream *s = rnl_secure_stream_open(3, true, key, &answered);
    if (s)
        rnl_secure_stream_relay(s, 4, 4);
    _exit(s ? 0 : RNL_EXIT_SYSTEM);
}

static struct rnl_node *add_node(struct rnl_launcher *l)
{
    struct rnl_bootstrap *b = l->bootstrap;
    struct rnl_node *n = calloc(1, sizeof *n);
    if (n && l->nodes == b->room) {
        struct rnl_node **more = realloc(l->node, (b->room + STRANGERS_MAX) * sizeof(struct rnl_node *));
        b->room += more ? STRANGERS_MAX : 0;
        l->node = more ? more : l->node;
    }
    if (!n || l->nodes == b->room) {
        free(n);
        return NULL;
    }
    l->node[l->nodes++] = n;
    n->launcher = l;
    n->pidfd = -1;
    n->host = RNL_HOSTS_MAX + b->calls++;
    return n;
}

/* A node that has not been started is freed by the sweep. */
static void came(void *arg, int fd)
{
    struct rnl_launcher *l = arg;
    struct rnl_node *n = add_node(l);
    const pid_t launcher = getpid();
    int pair[2];
    if (n && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0) {
        n->pid = rnl_spawn_fork();
        if (n->pid == 0)
            relay(fd, pair[1], l->bootstrap->key, launcher);
        close(pair[1]);
        if (n->pid < 0 || rnl_node_watch(n, (int[]){pair[0], pair[0], -1}) < 0)
            n->state = RNL_NODE_LOST;
    } else if (n) {
        n->state = RNL_NODE_LOST;
    }
    close(fd);
    rnl_listener_hold(&l->bootstrap->listener, strangers(l) >= STRANGERS_MAX);
}

/* Frees callers that have gone: a turn after their handles have been closed, which takes no longer than to the next
 * sweep. */
static void on_sweep(uv_timer_t *timer)
{
    struct rnl_launcher *l = timer->data;
    const bool hurry = strangers(l) >= STRANGERS_MAX;
    const uint64_t now = rnl_now_ns();
    for (uint32_t i = l->hosts; i < l->nodes; i++) {
        struct rnl_node *n = l->node[i];
        if (is_stranger(n) && hurry && now - n->heard_ns >= hurry_ns)
            rnl_node_lose(n);
        if (n->state != RNL_NODE_LOST || !rnl_node_has_left(n))
            continue;
        if (n->started && !uv_is_closing((uv_handle_t *)&n->timer)) {
            uv_close((uv_handle_t *)&n->timer, NULL);
            continue;
        }
        rnl_node_free(n);
        memmove(&l->node[i], &l->node[i + 1], (l->nodes - i - 1) * sizeof l->node[0]);
        l->nodes--;
        i--;
    }
    rnl_listener_hold(&l->bootstrap->listener, strangers(l) >= STRANGERS_MAX);
}

/* ---- who joins ---- */

/* Letters, digits, points and dashes, since it goes into messages; and unlike those before it. */
static void name_host(const struct rnl_launcher *l, const struct rnl_node *n, char out[RNL_JOB_HOST_BYTES])
{
    char plain[RNL_JOB_HOST_BYTES - 8];
    size_t k = 0;
    unsigned alike = 1;
    for (const char *c = n->came->name; *c && k < sizeof plain - 1; c++)
        if ((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ||
            (k > 0 && (*c == '-' || *c == '.')))
            plain[k++] = *c;
    plain[k] = '\0';
    for (uint32_t i = 0; i < l->nodes; i++)
        alike += l->node[i]->came && l->node[i]->host < n->host && strcmp(l->node[i]->came->name, n->came->name) == 0;
    snprintf(out, RNL_JOB_HOST_BYTES, alike > 1 ? "%s-%u" : "%s", k > 0 ? plain : "host", alike);
}

static void gone(struct rnl_launcher *l, const struct rnl_node *n, uint32_t count)
{
    char name[RNL_JOB_HOST_BYTES];
    name_host(l, n, name);
    l->bootstrap->joined -= count;
    for (; count > 0 && l->phase == RNL_LAUNCH_GATHERING; count--)
        rnl_launcher_report(l, "a process on %s that had joined has ended before the job began: waiting for %u more",
                            name, l->job->size - l->bootstrap->joined);
}

static int64_t least_wanted(const struct rnl_node *n)
{
    int64_t least = INT64_MAX;
    for (uint32_t i = 0; i < n->came->count; i++)
        if (n->came->wanted[i] >= 0 && n->came->wanted[i] < least)
            least = n->came->wanted[i];
    return least;
}

/* Hosts by the least rank that is wanted there; else this one first, others in the order in which they called. */
static int by_wish(const void *a, const void *b)
{
    const struct rnl_node *x = *(const struct rnl_node *const *)a, *y = *(const struct rnl_node *const *)b;
    const bool joins_x = x->came && x->came->count > 0, joins_y = y->came && y->came->count > 0;
    if (joins_x != joins_y || !joins_x)
        return joins_y - joins_x;
    const int64_t p = least_wanted(x), q = least_wanted(y);
    if (p != q)
        return (p > q) - (p < q);
    if (x->own != y->own)
        return y->own - x->own;
    return (x->host > y->host) - (x->host < y->host);
}

static void check_wishes(struct rnl_launcher *l, const struct rnl_node *n, const struct rnl_job_host *at)
{
    uint32_t rank[RNL_JOB_RANKS_MAX];
    const uint32_t k = rnl_hosts_deal_ranks(n->came, at->first, rank);
    if (k == at->count || l->phase == RNL_LAUNCH_OVER)
        return;
    const int wanted = n->came->wanted[k];
    if ((uint32_t)wanted - at->first < at->count)
        fail(l, 1, "two processes want rank %d", wanted);
    else
        fail(l, 1, "a process on %s wants rank %d, but this host has ranks %u to %u: those of a host follow each other",
             at->name, wanted, at->first, at->first + at->count - 1);
}

/* All have come. Those who came last to a host are too many if more have come at once. */
static void deal(struct rnl_launcher *l, struct rnl_node *last)
{
    struct rnl_bootstrap *b = l->bootstrap;
    uint32_t hosts = 0, first = 0;
    last->came->count -= b->joined - l->job->size;
    b->joined = l->job->size;
    for (uint32_t i = 0; i < l->nodes; i++)
        hosts += l->node[i]->came && l->node[i]->came->count > 0;
    b->at = calloc(hosts, sizeof *b->at);
    if (!b->at || hosts > RNL_HOSTS_MAX) {
        fail(l, RNL_EXIT_SYSTEM, "the processes have come from %u hosts, which are too many", hosts);
        return;
    }
    qsort(l->node, l->nodes, sizeof l->node[0], by_wish);
    for (uint32_t i = 0; i < hosts; i++) {
        name_host(l, l->node[i], b->at[i].name);
        b->at[i].first = first;
        b->at[i].count = l->node[i]->came->count;
        first += b->at[i].count;
        check_wishes(l, l->node[i], &b->at[i]);
    }
    for (uint32_t i = 0; i < hosts; i++)
        l->node[i]->host = i;
    l->hosts = hosts;
    l->at = b->at;
    if (l->phase != RNL_LAUNCH_OVER)
        rnl_nodes_gathered(l);
}

/* From a host that has no place in the job. */
static void reject(struct rnl_launcher *l, struct rnl_node *n)
{
    char why[120];
    snprintf(why, sizeof why, "all %u ranks of this job have come: this process is one too many", l->job->size);
    rnl_control_send(&n->control, RNL_CONTROL_END, why, strlen(why));
    rnl_launcher_report(l, "a process that came when all %u ranks had was refused", l->job->size);
}

static int receive_arrivals(struct rnl_launcher *l, struct rnl_node *n, struct rnl_unpack *u)
{
    struct rnl_arrivals *a = malloc(sizeof *a), own;
    if (!a || rnl_arrivals_unpack(u, a) < 0) {
        free(a);
        return -1;
    }
    const uint32_t before = n->came ? n->came->count : 0;
    free(n->came);
    n->came = a;
    rnl_hosts_own(&own);
    n->own = memcmp(own.host, a->host, sizeof own.host) == 0;
    if (l->hosts > 0) {
        reject(l, n);
        return 0;
    }
    if (a->count < before)
        gone(l, n, before - a->count);
    else
        l->bootstrap->joined += a->count - before;
    if (l->bootstrap->joined >= l->job->size)
        deal(l, n);
    return 0;
}

static void lost(struct rnl_launcher *l, struct rnl_node *n, const char *why)
{
    if (n->came && l->hosts == 0)
        gone(l, n, n->came->count);
    else if (n->release[0] != '\0')
        rnl_launcher_report(l, "a node agent was refused: %s", why);
    free(n->came);
    n->came = NULL;
    rnl_node_lose(n);
}

void rnl_rendezvous_work(struct rnl_launcher *l)
{
    struct rnl_control_frame f;
    char why[400];
    for (uint32_t i = l->hosts; l->bootstrap && i < l->nodes && l->phase != RNL_LAUNCH_OVER; i++) {
        struct rnl_node *n = l->node[i];
        (void)rnl_node_greeted(n);
        while (n->host >= RNL_HOSTS_MAX && rnl_node_talks(n) && !n->garbled &&
               rnl_reader_next(&n->control.reader, &f)) {
            struct rnl_unpack u = {.at = f.body, .left = f.bytes};
            n->garbled = f.kind != RNL_CONTROL_ARRIVALS || receive_arrivals(l, n, &u) < 0;
        }
        if (n->host >= RNL_HOSTS_MAX && n->state > RNL_NODE_WAITING && n->state < RNL_NODE_LOST &&
            rnl_node_gone(n, why, sizeof why))
            lost(l, n, why);
    }
}

/* ---- beginning and end ---- */

unsigned rnl_rendezvous_joined(const struct rnl_bootstrap *b)
{
    return b->joined;
}

int rnl_rendezvous_open(struct rnl_launcher *l)
{
    struct rnl_bootstrap *b = rnl_secret_new(sizeof *b); /* it has the join key */
    int fd = -1;
    if (!b || sodium_init() < 0) {
        rnl_launcher_report(l, "no memory, or no random numbers, for a rendezvous");
        return -1;
    }
    l->bootstrap = b;
    b->guard = RNL_GUARD_NONE;
    randombytes_buf(b->key, sizeof b->key);
    if (new_file(l->job, b->key, &fd) < 0)
        return -1;
    int e = rnl_guard_start(&b->guard, l->job->rendezvous_file);
    if (e < 0)
        (void)unlink(l->job->rendezvous_file);
    e = e < 0 ? e : rnl_listener_open(&b->listener, l->loop, fd, came, l);
    if (e < 0) {
        rnl_launcher_report(l, "cannot watch the bootstrap socket: %s", strerror(-e));
        return -1;
    }
    (void)uv_timer_init(l->loop, &b->sweep);
    b->sweep.data = l;
    rnl_timer_start(&b->sweep, on_sweep, SWEEP_MS, SWEEP_MS);
    return 0;
}

void rnl_rendezvous_free(struct rnl_bootstrap *b)
{
    if (!b)
        return;
    rnl_guard_end(&b->guard);
    free(b->at);
    if (b->listener.opened)
        close(b->listener.fd);
    rnl_secret_free(b, sizeof *b);
}
